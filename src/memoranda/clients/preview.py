"""Previews the texts that a client would be told at the start of a session and for a prompt.

Nothing is recorded: a later session is told the same texts again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from memoranda.clients.hook_context import FLOOR, PROMPT_TOKENS, at_start, for_prompt
from memoranda.clients.hook_events import CLIENTS, PROMPT, START, HookEvent, is_long_enough
from memoranda.clients.hook_words import own_words
from memoranda.clients.table import clients
from memoranda.engine import MemorySession
from memoranda.index.told_notes import ToldNote, ToldText
from memoranda.text.user_path import user_folder

_SESSION = "preview"
_MOST_NEAREST = 3


class Preview(NamedTuple):
    """The texts that a client would put into an agent's context, with their notes.

    at_start: the text at the start of a session.
    for_prompt: the text for a prompt.
    nearest: the notes that come nearest to a prompt for which nothing is told, the best first.
    is_too_short: whether the memory is not searched for the prompt, because it is too short.
    floor: the relevance that a note needs by its words to be told for a prompt.
    """

    at_start: ToldText
    for_prompt: ToldText
    nearest: list[ToldNote]
    is_too_short: bool
    floor: float = FLOOR


class InstalledProgram(NamedTuple):
    """A program on this machine that can use the memory.

    id: the id of the client, such as `claude-code`.
    title: the name for people, such as `Claude Code`.
    is_connected: whether the program is connected to the memory.
    file: the file that gets the entry which connects it, as people write it: `~/.claude.json`.
    hook_file: the file that gets hooks. "" if the program has no hooks.
    """

    id: str
    title: str
    is_connected: bool
    file: str = ""
    hook_file: str = ""


def preview(memory: MemorySession, agent: str, prompt: str) -> Preview:
    """Return the texts that `agent` would be told if a session began now, and for `prompt`.

    A blank prompt gives an empty second text, and no nearest notes.
    """
    caller = memory.as_caller(agent, "preview")
    caller.only_reads = True
    client = _client_of(agent)
    session = caller.session_rows(client, _SESSION)
    start_event = _event(client, START, prompt="")
    start_text = caller.at_once(lambda: at_start(caller, start_event, session))
    if not prompt.strip():
        return Preview(start_text, ToldText(), [], is_too_short=False)

    prompt_text = for_prompt(caller, _event(client, PROMPT, prompt), session)
    nearest = [] if prompt_text.text else _nearest(caller, prompt)
    is_too_short = not is_long_enough(own_words(prompt))
    return Preview(start_text, prompt_text, nearest, is_too_short)


def _nearest(caller: MemorySession, prompt: str) -> list[ToldNote]:
    """Return the notes that come nearest to a prompt, however far they are from it."""
    words = own_words(prompt)
    notes = caller.recall(words, least=0.0, max_tokens=PROMPT_TOKENS, limit=_MOST_NEAREST)
    return sorted(notes, key=lambda told_note: -told_note.relevance)


def _client_of(agent: str) -> str:
    """Return the id of the client with hooks through which an agent acts, or else the agent."""
    for client, dialect in CLIENTS.items():
        if dialect.agent == agent:
            return client
    return agent


def _event(client: str, kind: str, prompt: str) -> HookEvent:
    """Return an event of the previewed session, with all other fields empty.

    client: the id of the client.
    kind: the kind of event, such as START.
    """
    return HookEvent(client=client, kind=kind, name="", session="", prompt=prompt)


def installed_programs() -> list[InstalledProgram]:
    """Return the clients that are installed on this machine, connected ones first."""
    programs = []
    for client in clients().values():
        if client.is_here(os.environ):
            file = client.place(os.environ)
            program = InstalledProgram(
                client.id,
                client.title,
                _is_connected(file),
                _with_tilde(file),
                _with_tilde(client.hook_file(os.environ)),
            )
            programs.append(program)
    return sorted(programs, key=lambda program: not program.is_connected)


def _is_connected(file: Path | None) -> bool:
    """Whether the configuration file of a client has the word "memoranda".

    A file that cannot be read counts as one without it.
    """
    try:
        if file is None or not file.is_file():
            return False
        return "memoranda" in file.read_text("utf-8", "replace")
    except OSError:
        return False


def _with_tilde(file: Path | None) -> str:
    """Return a path with `~` in the place of the user's home folder. "" without a file."""
    if file is None:
        return ""
    folder = user_folder()
    if folder is not None and file.is_relative_to(folder):
        return f"~/{file.relative_to(folder)}"
    return str(file)
