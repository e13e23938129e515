"""What an unconfirmed note of an agent says against the owner's note, or in its place, is told
besides, and never instead (docs/trust.md). A broken assert means that an agent silences the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.clients import hook
from memoranda.clients.hook_events import PROMPT, START, HookEvent
from memoranda.engine import MemorySession, open_session
from memoranda.engine.overview import Overview
from memoranda.engine.telling.profile import profile
from memoranda.engine.telling.session_start import introduction
from memoranda.engine.upkeep import Upkeep
from memoranda.faces import registry
from memoranda.faces.agent.session import Session
from memoranda.index.rows import NoteInfo

OWNERS = "The zebrafish deploy port is 8080."
AGENTS = "The zebrafish deploy port is 6666."
ABOUT_PERSON = {"pinned": True, "type": "preference"}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", watch=False) as opened:
        yield opened


def by_draft(memory: MemorySession, mine: NoteInfo) -> None:
    mallory = memory.as_caller("mallory", "mcp")
    mallory.write(Draft(AGENTS, title="Zebrafish 2", metadata=ABOUT_PERSON, supersedes=(mine.id,)))


def by_verb(memory: MemorySession, mine: NoteInfo) -> None:
    mallory = memory.as_caller("mallory", "mcp")
    mallory.supersede(mine.id, Draft(AGENTS, title="Zebrafish 2", metadata=ABOUT_PERSON))


def by_header(memory: MemorySession, mine: NoteInfo) -> None:
    mallory = memory.as_caller("mallory", "mcp")
    header = {**ABOUT_PERSON, "supersedes": mine.id}
    mallory.write(Draft(AGENTS, title="Zebrafish 2", metadata=header))


def by_name(memory: MemorySession, mine: NoteInfo) -> None:
    mallory = memory.as_caller("mallory", "mcp")
    header = {**ABOUT_PERSON, "supersedes": "[[Zebrafish]]"}
    mallory.write(Draft(AGENTS, title="Zebrafish 2", metadata=header))


def by_a_newer_claim(memory: MemorySession, mine: NoteInfo) -> None:
    mallory = memory.as_caller("mallory", "mcp")
    mallory.write(Draft(AGENTS, title="Zebrafish 2", metadata=ABOUT_PERSON))


def the_start_of_a_session(reader: MemorySession) -> str:
    return hook.answer(reader, HookEvent("codex", START, "SessionStart", "SessionStart"))


def a_prompt(reader: MemorySession) -> str:
    event = HookEvent(
        "codex", PROMPT, "UserPromptSubmit", "UserPromptSubmit", prompt="Which zebrafish port?"
    )
    return hook.answer(reader, event)


def a_context(reader: MemorySession) -> str:
    return reader.context_for("What is the zebrafish deploy port?")


def the_prompts_of_the_server(reader: MemorySession) -> str:
    prompt = registry(("notes",), reader.settings).prompts["search_knowledge_base"]
    return prompt.render(reader, {"query": "zebrafish"})


WAYS = [by_draft, by_verb, by_header, by_name, by_a_newer_claim]
PLACES = [
    the_start_of_a_session,
    introduction,
    a_prompt,
    a_context,
    the_prompts_of_the_server,
]


def owners_note(memory: MemorySession) -> NoteInfo:
    return memory.write(Draft(OWNERS, title="Zebrafish", metadata=ABOUT_PERSON))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", WAYS)
def test_an_agent_that_contradicts_the_owner_is_told_behind_the_owner(
    memory: MemorySession,
    way: Callable[[MemorySession, NoteInfo], None],
    place: Callable[[MemorySession], str],
) -> None:
    way(memory, owners_note(memory))

    told = place(memory.as_caller("codex", "mcp"))

    assert OWNERS in told
    assert AGENTS in told
    assert told.index(OWNERS) < told.index(AGENTS)
    assert "mallory" in told
    assert "unconfirmed" in told


def test_an_agent_that_supersedes_the_owners_note_by_other_words_does_not_hide_it(
    memory: MemorySession,
) -> None:
    mine = owners_note(memory)
    memory.as_caller("mallory", "mcp").supersede(mine.id, Draft("Nothing.", title="Nothing"))

    context = a_context(memory.as_caller("codex", "mcp"))

    assert OWNERS in context


def test_an_agents_successor_takes_the_place_of_the_owners_note_once_it_is_confirmed(
    memory: MemorySession,
) -> None:
    by_verb(memory, owners_note(memory))
    Upkeep(memory).pin([memory.find("Zebrafish 2")])

    texts = [entry.text.strip() for entry in profile(memory.as_caller("codex", "mcp"))]

    assert any(AGENTS in text for text in texts)
    assert not any(OWNERS in text for text in texts)


def test_an_agent_writes_no_end_into_a_note_of_the_owner(memory: MemorySession) -> None:
    mine = owners_note(memory)
    by_verb(memory, mine)

    assert memory.read(mine.id).valid_until is None


def test_the_owners_own_successor_takes_the_place_of_his_note(memory: MemorySession) -> None:
    mine = owners_note(memory)
    memory.supersede(mine.id, Draft("The zebrafish deploy port is 7777.", title="Zebrafish 2"))

    context = a_context(memory.as_caller("codex", "mcp"))

    assert "7777" in context
    assert OWNERS not in context


def test_an_agent_takes_the_place_of_its_own_note(memory: MemorySession) -> None:
    mallory = memory.as_caller("mallory", "mcp")
    old = mallory.write(Draft(OWNERS, title="Zebrafish"))
    mallory.supersede(old.id, Draft(AGENTS, title="Zebrafish 2"))

    context = a_context(memory.as_caller("codex", "mcp"))

    assert AGENTS in context
    assert OWNERS not in context


def test_the_overview_and_a_context_of_the_agent_keep_the_memory_that_an_agent_supersedes(
    memory: MemorySession,
) -> None:
    mine = memory.write(Draft("Anna lives in Berlin", project="categories", category="people"))
    mallory = memory.as_caller("mallory", "mcp")
    mallory.supersede(
        mine.id, Draft("Anna lives in Munich", project="categories", category="people")
    )

    overview = Overview(memory).text()
    injected = Session(memory.as_caller("codex", "mcp")).inject_context("Anna lives")

    assert "Berlin" in overview
    assert "Munich" in overview
    assert injected.index("Berlin") < injected.index("Munich")
