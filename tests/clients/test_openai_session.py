"""A session of the OpenAI Agents SDK: its transcript comes back exactly, where default search does
not look.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from memoranda import Query
from memoranda.engine import open_session
from memoranda.errors import InvalidInput

agents = pytest.importorskip(
    "agents.memory", reason="openai-agents is not installed: pip install openai-agents"
)

from memoranda.clients.openai_agents import MemorandaSession  # noqa: E402
from memoranda.note.model import TRACE_PROJECT  # noqa: E402

ITEMS: list[Any] = [
    {"role": "user", "content": "Where does the heron nest? [[link]]\n```\nfence\n```\n- [fact] x"},
    {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a": "\\u2028"}'},
    {
        "role": "assistant",
        "content": [{"type": "output_text", "text": "在湖边 \u2028\u0085 🙂 \ud800"}],
    },
]
run = asyncio.run


def test_items_come_back_exactly_in_their_order_also_in_another_process_of_the_same_home(
    tmp_path: Path,
) -> None:
    with open_session(tmp_path, agent="support") as memory:
        session = MemorandaSession("chat/1 ..", memory)
        assert isinstance(session, agents.Session)
        run(session.add_items(ITEMS[:1]))
        run(session.add_items(ITEMS[1:]))
        run(session.add_items([]))
    with open_session(tmp_path, agent="support") as memory:
        session = MemorandaSession("chat/1 ..", memory)
        assert run(session.get_items()) == ITEMS
        assert run(session.get_items(limit=2)) == ITEMS[1:]
        assert run(session.get_items(limit=0)) == []
        assert run(MemorandaSession("chat/2", memory).get_items()) == []
        limited = MemorandaSession(
            "chat/1 ..", memory, session_settings=agents.SessionSettings(limit=1)
        )
        assert run(limited.get_items()) == ITEMS[2:]


def test_the_last_item_is_popped_until_none_is_left_and_a_session_can_be_cleared(
    tmp_path: Path,
) -> None:
    with open_session(tmp_path) as memory:
        session = MemorandaSession("s", memory)
        run(session.add_items(ITEMS[:1]))
        run(session.add_items(ITEMS[1:]))
        assert [run(session.pop_item()) for _ in range(4)] == [*reversed(ITEMS), None]
        run(session.add_items(ITEMS))
        run(session.clear_session())
        run(session.clear_session())
        assert run(session.get_items()) == []


def test_a_transcript_is_found_in_its_project_and_by_no_default_search(tmp_path: Path) -> None:
    with open_session(tmp_path) as memory:
        run(MemorandaSession("s", memory).add_items(ITEMS))
        assert memory.search("heron").hits == []
        assert len(memory.search(Query("heron", projects=(TRACE_PROJECT,))).hits) == 1


def test_many_programs_may_add_to_one_session_and_nothing_is_lost(tmp_path: Path) -> None:
    async def add(memory: Any) -> None:
        await asyncio.gather(
            *(MemorandaSession("s", memory).add_items([{"n": n}]) for n in range(8))
        )

    with open_session(tmp_path) as memory:
        run(add(memory))
        assert sorted(item["n"] for item in run(MemorandaSession("s", memory).get_items())) == list(
            range(8)
        )


def test_what_cannot_be_kept_is_refused_with_a_reason(tmp_path: Path) -> None:
    with open_session(tmp_path) as memory:
        with pytest.raises(InvalidInput, match="must not be empty"):
            MemorandaSession(" ", memory)
        session = MemorandaSession("s", memory)
        with pytest.raises(InvalidInput, match="no JSON"):
            run(session.add_items([{"x": object()}]))
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(InvalidInput, match="no JSON"):
            run(session.add_items([{"x": deep}]))
        run(session.add_items(ITEMS))
        file = next((tmp_path).rglob("00000001.md"))
        file.write_text(file.read_text("utf-8").replace('"role"', "role"), "utf-8")
        with pytest.raises(
            InvalidInput, match=r"no transcript: .* Mend it, or restore it with memory restore\."
        ):
            run(session.get_items())
        file.write_text(file.read_text("utf-8").replace("{role", "[" * 100_000), "utf-8")
        with pytest.raises(InvalidInput, match="no transcript"):
            run(session.get_items())
        with pytest.raises(InvalidInput, match="`limit` must be at least 0; got -1"):
            run(session.get_items(limit=-1))


def test_a_runner_goes_on_where_the_session_stood(tmp_path: Path) -> None:
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    inputs: list[str] = []

    class Fake(Model):  # type: ignore[misc,unused-ignore]  # the SDK may be missing where types are checked
        async def get_response(
            self, system_instructions: Any, input: Any, *args: Any, **more: Any
        ) -> ModelResponse:
            inputs.append(json.dumps(input))
            text = ResponseOutputText(
                annotations=[], text=f"answer {len(inputs)}", type="output_text"
            )
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **more: Any) -> Any:
            raise NotImplementedError

    async def ask(memory: Any, text: str) -> str:
        result = await Runner.run(
            Agent("a", model=Fake()),
            text,
            session=MemorandaSession("s", memory),
            run_config=RunConfig(tracing_disabled=True),
        )
        return str(result.final_output)

    with open_session(tmp_path) as memory:
        assert run(ask(memory, "the first question")) == "answer 1"
        assert run(ask(memory, "the second question")) == "answer 2"
    assert "the first question" in inputs[1]
    assert "answer 1" in inputs[1]
