"""Previewing the texts a client would be told, for a prompt and at the start of a session.

Nothing is recorded.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from memoranda.clients.hook_context import at_start, for_prompt
from memoranda.clients.hook_events import PROMPT, START, HookEvent
from memoranda.clients.table import clients
from memoranda.engine import MemorySession

_CLIENT = "claude-code"
_SESSION = "preview"


class Preview(NamedTuple):
    """The texts a client would put into an agent's context. Empty if there is nothing to tell."""

    at_start: str
    for_prompt: str


class InstalledProgram(NamedTuple):
    """A program on this machine that can use the memory, and whether it is connected."""

    id: str
    title: str
    is_connected: bool


def preview(memory: MemorySession, agent: str, prompt: str) -> Preview:
    """The texts that `agent` would be told if a session began now, and for `prompt`."""
    caller = memory.as_caller(agent, "preview")
    caller.only_reads = True
    session = caller.session_rows(_CLIENT, _SESSION)
    session_start = caller.at_once(lambda: at_start(caller, _event(START, ""), session))
    added = ""
    if prompt.strip():
        added = for_prompt(caller, _event(PROMPT, prompt), session).text
    return Preview(session_start.text, added)


def _event(kind: str, prompt: str) -> HookEvent:
    empty = dict.fromkeys(HookEvent._fields, "")
    return HookEvent(**{**empty, "client": _CLIENT, "kind": kind, "prompt": prompt})


def installed_programs() -> list[InstalledProgram]:
    """The programs found on this machine, those that are set up first."""
    programs = []
    for client in clients().values():
        if client.is_here(os.environ):
            programs.append(InstalledProgram(client.id, client.title, _is_connected(client)))
    return sorted(programs, key=lambda program: not program.is_connected)


def _is_connected(client: object) -> bool:
    """Whether the configuration of a program names this memory."""
    place = client.place(os.environ)  # type: ignore[attr-defined]
    if place is None or not place.is_file():
        return False
    return "memoranda" in place.read_text("utf-8", "replace")
