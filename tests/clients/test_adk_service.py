"""The memory service of Google's ADK: each user's own, nothing twice, what is deleted stays so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from memoranda.engine import open_session

pytest.importorskip(
    "google.adk.memory", reason="google-adk is not installed: pip install google-adk"
)
pytestmark = pytest.mark.filterwarnings("ignore")
from google.adk.events.event import Event  # noqa: E402
from google.adk.memory.memory_entry import MemoryEntry  # noqa: E402
from google.adk.sessions.session import Session  # noqa: E402
from google.genai.types import Content, FunctionCall, Part  # noqa: E402

from memoranda.clients.adk import MemorandaMemoryService  # noqa: E402


def event(identity: str, text: str, author: str = "user") -> Event:
    return Event(
        id=identity,
        author=author,
        timestamp=1_760_000_000.0,
        content=Content(role="user", parts=[Part(text=text)]),
    )


def session(
    events: list[Event], app: str = "app", user: str = "anna", identity: str = "s"
) -> Session:
    return Session(id=identity, app_name=app, user_id=user, events=events, last_update_time=0)


def found(service: Any, query: str, app: str = "app", user: str = "anna") -> list[str]:
    response = asyncio.run(service.search_memory(app_name=app, user_id=user, query=query))
    return [memory.content.parts[0].text for memory in response.memories]


def test_a_session_added_twice_is_there_once_and_only_for_its_user_of_its_application(
    tmp_path: Path,
) -> None:
    calls = Event(
        id="c",
        author="bot",
        content=Content(parts=[Part(function_call=FunctionCall(name="f", args={}))]),
    )
    with open_session(tmp_path, agent="adk-app") as memory:
        service = MemorandaMemoryService(memory)
        events = [
            event("1", "The heron nests by the lake."),
            calls,
            event("2", "It eats fish.", "bot"),
        ]
        for _ in range(2):
            asyncio.run(service.add_session_to_memory(session(events)))
        asyncio.run(
            service.add_session_to_memory(session([event("3", "The heron is mine.")], user="bo"))
        )
        asyncio.run(
            service.add_session_to_memory(session([event("4", "A heron elsewhere.")], app="other"))
        )
        assert found(service, "heron") == ["The heron nests by the lake."]
        assert found(service, "where does the heron nest?")[0] == "The heron nests by the lake."
        assert found(service, "heron", user="bo") == ["The heron is mine."]
        assert found(service, " ") == []
        # What was said is no memory of other agents
        assert memory.search("heron").hits == []
        entry = asyncio.run(
            service.search_memory(app_name="app", user_id="anna", query="fish")
        ).memories[0]
        assert (entry.id, entry.author) == ("2", "bot")
        assert entry.timestamp.startswith("2025-10-09")


def test_a_delta_of_events_adds_to_the_session_that_is_there(tmp_path: Path) -> None:
    with open_session(tmp_path) as memory:
        service = MemorandaMemoryService(memory)
        asyncio.run(service.add_session_to_memory(session([event("1", "One heron.")])))
        for _ in range(2):
            asyncio.run(
                service.add_events_to_memory(
                    app_name="app",
                    user_id="anna",
                    events=[event("1", "One heron."), event("2", "Two herons, a heron.")],
                )
            )
        assert sorted(found(service, "heron")) == ["One heron.", "Two herons, a heron."]


def test_a_memory_given_as_such_is_found_by_every_agent(tmp_path: Path) -> None:
    with open_session(tmp_path) as memory:
        service = MemorandaMemoryService(memory)
        entry = MemoryEntry(content=Content(parts=[Part(text="Anna prefers oat milk.")]))
        asyncio.run(service.add_memory(app_name="app", user_id="anna", memories=[entry]))
        assert found(service, "oat milk") == ["Anna prefers oat milk."]
        assert found(service, "oat milk", user="bo") == []
        hits = memory.search("oat milk").hits
        assert len(hits) == 1


@pytest.mark.parametrize("is_event", [True, False])
def test_what_is_deleted_is_gone_for_its_user_and_does_not_come_back(
    tmp_path: Path, is_event: bool
) -> None:
    with open_session(tmp_path) as memory:
        service = MemorandaMemoryService(memory)
        events = [event("1", "The heron nests by the lake.")]
        if is_event:
            asyncio.run(service.add_session_to_memory(session(events)))
        else:
            asyncio.run(
                service.add_memory(
                    app_name="app",
                    user_id="anna",
                    memories=[MemoryEntry(id="1", content=events[0].content)],
                )
            )
        asyncio.run(service.delete_memory(app_name="app", user_id="bo", memory_id="1"))
        assert found(service, "heron") != []
        asyncio.run(service.delete_memory(app_name="app", user_id="anna", memory_id="1"))
        assert found(service, "heron") == []
        if is_event:
            asyncio.run(service.add_session_to_memory(session(events)))
            assert found(service, "heron") == []
            assert found(service, "deleted") == []
