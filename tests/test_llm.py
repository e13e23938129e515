"""The endpoint that may help."""

from __future__ import annotations

from typing import Any

import pytest

from contract.language_model import language_model
from memoranda.llm import PAUSE, Endpoint, NoAnswer


def same(answer: Any) -> Any:
    return answer


def test_an_answer_may_stand_between_fences() -> None:
    with language_model() as model:
        endpoint = Endpoint(model.url + "/chat/completions/", "small")
        model.content = '```json\n{"a": 1}\n```'
        assert endpoint.ask("system", "user", same) == {"a": 1}
        assert model.asked[0][0] == "/v1/chat/completions"
        assert "Authorization" not in model.asked[0][1]


def test_three_failures_in_a_row_turn_it_off_for_ten_minutes() -> None:
    seconds = [0.0]
    with language_model() as model:
        endpoint = Endpoint(model.url, "small", clock=lambda: seconds[0])

        def fails(times: int = 1) -> None:
            for _ in range(times):
                with pytest.raises(NoAnswer):
                    endpoint.ask("", "", same)

        model.content = "[]"
        model.status = 500
        fails(2)
        model.status = 200
        # The count starts again
        assert endpoint.ask("", "", same) == []
        model.status = 500
        fails(2)
        assert not endpoint.is_off
        fails()
        assert endpoint.is_off
        requests_before = len(model.asked)
        model.status = 200
        seconds[0] = PAUSE - 1
        fails()
        assert len(model.asked) == requests_before
        seconds[0] = PAUSE
        assert not endpoint.is_off
        assert endpoint.ask("", "", same) == []


def test_a_redirect_is_not_followed_and_no_error_holds_the_key() -> None:
    with language_model() as model, language_model() as other_model:
        model.status = 307
        model.headers = {"Location": other_model.url}
        with pytest.raises(NoAnswer) as failure:
            Endpoint(model.url, "small", "the-key").ask("", "", same)
        assert "the-key" not in str(failure.value)
        assert other_model.asked == []


def test_an_answer_that_trickles_in_is_not_waited_for() -> None:
    moments = iter([0.0, 30.0, 30.0])
    with language_model() as model:
        model.content = "1"
        with pytest.raises(NoAnswer, match="too long"):
            Endpoint(model.url, "small", clock=lambda: next(moments)).ask("", "", same)
