"""`memory review`: lines where nobody can press a key, one question at a time on a terminal."""

from __future__ import annotations

import sys
from typing import Any

import click
import pytest

from memoranda.cli import main
from memoranda.engine import MemorySession
from memoranda.note.model import Draft


@pytest.fixture
def near(terminal: Any) -> Any:
    """Two memories that say the same in other words, and one of an unknown category."""
    terminal.write("Ben is allergic to peanuts.", "--category", "people")
    terminal.write("Ben has a peanut allergy.", "--category", "people")
    terminal.write("zxcv qwer")
    return terminal


def press(near: Any, monkeypatch: pytest.MonkeyPatch, keys: str) -> str:
    """What a terminal shows while these keys are pressed."""
    pressed = iter(keys)
    printed: list[str] = []
    with monkeypatch.context() as screen:
        screen.setattr(click, "getchar", lambda: next(pressed))
        screen.setattr("memoranda.cli.output.text", printed.append)
        for stream in (sys.stdin, sys.stdout):
            screen.setattr(stream, "isatty", lambda: True, raising=False)
        assert main(["--home", str(near.home), "review"]) == 0
    assert next(pressed, None) is None
    return "\n".join(printed)


def test_elsewhere_the_questions_are_lines(near: Any) -> None:
    merge, category = near.ok("review").splitlines()
    assert merge.startswith("merge     ")
    assert '"Ben is allergic to peanuts."' in merge
    assert category.startswith("category  ")
    assert near.ok("review", "--kind", "archive") == "Nothing to review.\n"
    assert near.ok("review", "--limit", "1").splitlines() == [
        merge,
        "More: memory review --limit 2",
    ]


def test_json_lists_the_same(near: Any) -> None:
    document = near("review", "--json").json
    assert list(document) == ["schema", "items", "more"]
    assert document["more"] is False
    kinds = [item["kind"] for item in document["items"]]
    assert kinds == ["merge", "category"]
    assert list(document["items"][0]) == ["key", "kind", "text", "refs", "lines", "choices"]
    assert document["items"][0]["choices"][-1] == {"letter": "n", "label": "keep both"}


def test_a_kind_there_is_not_is_refused_with_those_there_are(near: Any) -> None:
    ran = near("review", "--kind", "x")
    assert (ran.status, ran.out) == (1, "")
    assert ran.error.startswith(
        'invalid kind "x" (one of project, suspicious, reminder, contradiction'
    )


def test_an_agent_is_asked_nothing(near: Any) -> None:
    assert near.ok("--agent", "claude", "review") == "Nothing to review.\n"


def test_on_a_terminal_a_key_answers_and_q_ends(near: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    screen_text = press(near, monkeypatch, "x1q")
    assert "1 of 2  Do these say the same?" in screen_text
    assert "Press one of the keys shown." in screen_text
    assert "-> keep the first" in screen_text
    assert "Answered 1 of 2 questions." in screen_text
    assert near.ok("list", "--category", "people").endswith("Showing 1 of 1 memories\n")


def test_on_a_terminal_u_takes_the_last_answer_back_and_s_leaves_it_for_later(
    near: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen_text = press(near, monkeypatch, "un" + "u" + "ss")
    assert "Nothing answered yet." in screen_text
    assert "Taken back." in screen_text
    assert "Answered 0 of 2 questions." in screen_text
    questions = near.ok("review").splitlines()
    assert len(questions) == 2


def test_u_takes_its_own_answer_back_though_somebody_else_wrote_meanwhile(
    near: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = MemorySession.decide

    def and_somebody_writes(memory: MemorySession, *arguments: Any) -> Any:
        item = decide(memory, *arguments)
        memory.as_caller(None, "mcp").write(Draft("from elsewhere", project="categories"))
        return item

    monkeypatch.setattr(MemorySession, "decide", and_somebody_writes)
    assert "Taken back." in press(near, monkeypatch, "1uq")
    assert near.ok("list", "--category", "people").endswith("Showing 2 of 2 memories\n")
    assert "from elsewhere" in near.ok("list")


def test_the_answer_given_last_can_be_undone_from_the_shell(
    near: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    press(near, monkeypatch, "nq")
    assert len(near.ok("review").splitlines()) == 1
    near.ok("undo")
    assert len(near.ok("review").splitlines()) == 2


def test_many_of_a_kind_are_one_question_with_a_list(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("zxcv qwer", "wvut yxzb", "qqqq wwww", "kjhg fdsa"):
        terminal.write(text)
    question, *lines = terminal.ok("review").splitlines()
    assert question == "category  Sort these 4 memories of the inbox as shown?"
    assert sorted(line[11:] for line in lines)[3] == '"zxcv qwer" -> knowledge'
    assert len(lines) == 4
    screen_text = press(terminal, monkeypatch, "y")
    assert '"zxcv qwer" -> knowledge' in screen_text
    assert "Answered 1 of 1 question." in screen_text
