"""Previews the texts that a client would be told at the start of a session and for a prompt.

Nothing is recorded: a later session is told the same texts again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from memoranda.clients.hook_context import at_start, for_prompt
from memoranda.clients.hook_events import PROMPT, START, HookEvent
from memoranda.clients.table import clients
from memoranda.engine import MemorySession
from memoranda.index.told_notes import ToldText
from memoranda.text.user_path import user_folder

_CLIENT = "claude-code"
_SESSION = "preview"


class Preview(NamedTuple):
    """The texts that a client would put into an agent's context, with their notes.

    at_start: the text at the start of a session.
    for_prompt: the text for a prompt.
    """

    at_start: ToldText
    for_prompt: ToldText


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

    A blank prompt gives an empty second text.
    """
    caller = memory.as_caller(agent, "preview")
    caller.only_reads = True
    session = caller.session_rows(_CLIENT, _SESSION)
    start_text = caller.at_once(lambda: at_start(caller, _event(START, prompt=""), session))
    prompt_text = ToldText()
    if prompt.strip():
        prompt_text = for_prompt(caller, _event(PROMPT, prompt), session)
    return Preview(start_text, prompt_text)


def _event(kind: str, prompt: str) -> HookEvent:
    """Return an event of the previewed session, with all other fields empty.

    kind: the kind of event, such as START.
    """
    return HookEvent(client=_CLIENT, kind=kind, name="", session="", prompt=prompt)


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
