"""What something newer contradicts is told with a mark, wherever a session is told it unasked.

A pin or a confirmation makes a note the owner's word. It does not keep a value alive that ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.clients import hook
from memoranda.clients.hook_events import PROMPT, START, HookEvent
from memoranda.engine import MemorySession, open_session
from memoranda.engine.overview import Overview
from memoranda.engine.telling.session_start import introduction
from memoranda.engine.upkeep import Upkeep
from memoranda.faces import registry
from memoranda.faces.agent.session import Session
from movable_clock import Clock

QUESTION = "Where does Lena Fischer live?"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", clock=clock, watch=False) as opened:
        yield opened


def told_by_the_hook(reader: MemorySession, event: HookEvent) -> str:
    answer = json.loads(hook.answer(reader, event))
    told: str = answer["hookSpecificOutput"]["additionalContext"]
    return told


def the_start_of_a_session(reader: MemorySession) -> str:
    return told_by_the_hook(reader, HookEvent("codex", START, "SessionStart", "SessionStart"))


def a_prompt(reader: MemorySession) -> str:
    event = HookEvent("codex", PROMPT, "UserPromptSubmit", "UserPromptSubmit", prompt=QUESTION)
    return told_by_the_hook(reader, event)


def a_context(reader: MemorySession) -> str:
    return reader.context_for(QUESTION)


def a_prompt_of_the_server(reader: MemorySession) -> str:
    prompt = registry(("notes",), reader.settings).prompts["search_knowledge_base"]
    return prompt.render(reader, {"query": "Lena Fischer"})


PLACES = [the_start_of_a_session, introduction, a_prompt, a_context, a_prompt_of_the_server]
MARK = re.compile(r"newer: Gdańsk \([0-9a-f]{8}, \d{4}-\d\d-\d\d, by claude, unconfirmed\)")


def note_of_lena(memory: MemorySession) -> None:
    text = "- [place] lives in Porto\n- [allergy] hazelnuts"
    memory.write(Draft(text, project="notes", title="Lena Fischer"))


def memory_of_lena(memory: MemorySession) -> None:
    memory.write(Draft("Lena Fischer lives in Porto.", project="categories", category="people"))


def claude_says(memory: MemorySession, text: str) -> None:
    claude = memory.as_caller("claude", "mcp")
    claude.write(Draft(text, project="categories", category="people"))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("older", [note_of_lena, memory_of_lena])
def test_a_pinned_note_is_told_with_what_is_newer(
    memory: MemorySession,
    clock: Clock,
    older: Callable[[MemorySession], None],
    place: Callable[[MemorySession], str],
) -> None:
    older(memory)
    Upkeep(memory).pin(memory.list()[0])
    clock.later(days=3)
    claude_says(memory, "Lena Fischer moved to Gdańsk.")
    told = place(memory.as_caller("codex", "mcp"))
    assert "lives in Porto" in told
    assert MARK.search(told)


def test_the_overview_and_the_context_of_an_agent_tell_what_is_newer(
    memory: MemorySession, clock: Clock
) -> None:
    memory_of_lena(memory)
    clock.later(days=3)
    claude_says(memory, "Lena Fischer moved to Gdańsk.")
    overview = Overview(memory).text()
    assert MARK.search(overview)
    codex = memory.as_caller("codex", "mcp")
    injected = Session(codex).inject_context(QUESTION)
    assert MARK.search(injected)


@pytest.mark.parametrize(
    "newer", ["Lena Fischer was born in Gdańsk.", "Lena Fischer lives in Porto.", "Lena met Ann."]
)
@pytest.mark.parametrize("place", PLACES)
def test_a_pinned_note_that_still_holds_has_no_mark(
    memory: MemorySession, clock: Clock, newer: str, place: Callable[[MemorySession], str]
) -> None:
    note_of_lena(memory)
    Upkeep(memory).pin(memory.list()[0])
    clock.later(days=3)
    claude_says(memory, newer)
    told = place(memory.as_caller("codex", "mcp"))
    assert "lives in Porto" in told
    assert "newer:" not in told
