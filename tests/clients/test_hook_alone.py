"""A hook before a tool runs that no daemon answers: it looks into the indexes first, opens the memory
only if a note says something about the call, and tells no note that is other than it was indexed.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time

import pytest

from memoranda.clients import hook
from memoranda.clients.hook_events import TOOL, HookEvent
from memoranda.config import load
from memoranda.engine import open_session
from memoranda.engine.entries import NoteEntries
from memoranda.engine.read_session import ReadSession
from serve.process import environment

COMMAND = "npm install moment"
LINE = "Never use moment; use date-fns."


class Shop:
    """A memory with a project `shop`, and hooks before tools that no daemon answers."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.notes = folder / "shop"
        self.notes.mkdir(parents=True)
        with open_session(self.home, watch=False) as memory:
            memory.add_project("shop", str(self.notes))

    def write(self, name, text):
        """Write a note as another program does."""
        (self.notes / f"{name}.md").write_text(text)

    def index(self):
        """Bring the index up to date, as any command does."""
        with open_session(self.home, watch=False) as memory:
            memory.sync()

    def told(self, command=COMMAND, session="s"):
        tool_input = json.dumps({"command": command})
        event = HookEvent(
            "claude-code", TOOL, "PreToolUse", session, "/work", tool="Bash", arguments=tool_input
        )
        return hook.answer_to(event, load(self.home), None)


@pytest.fixture
def shop(tmp_path):
    shop = Shop(tmp_path)
    shop.write("Dates", f"# Dates\n\n{LINE}\n")
    shop.index()
    return shop


def test_a_note_that_speaks_against_the_call_is_told_once(shop):
    assert "date-fns" in shop.told()
    assert shop.told() == ""
    assert "date-fns" in shop.told(session="other")


def test_a_word_that_merely_occurs_does_not_open_the_memory(shop, monkeypatch):
    shop.write("Clock", "At the moment the clock of the shop is right.\n")
    shop.index()

    def opened(*arguments, **options):
        raise AssertionError("the memory was opened")

    monkeypatch.setattr(ReadSession, "open", opened)
    assert shop.told("grep -rn moment src") == ""
    assert shop.told("ls clock") == ""
    with pytest.raises(AssertionError, match="was opened"):
        shop.told()


def test_a_note_that_was_changed_since_is_told_once_the_index_has_it(shop):
    shop.write("Dates", "# Dates\n\nUse moment, not dayjs.\n")
    assert shop.told() == ""
    shop.index()
    assert shop.told() == ""
    assert "not dayjs" in shop.told("npm install dayjs")


def test_a_note_that_is_gone_is_not_told(shop):
    (shop.notes / "Dates.md").unlink()
    assert shop.told() == ""


def test_a_note_that_the_owner_keeps_out_is_not_told(shop):
    config = shop.home / "config.yaml"
    config.write_text(f'{config.read_text()}access:\n  shop:\n    ignore: ["Dates.md"]\n')
    assert shop.told() == ""


@pytest.mark.parametrize(("agent", "is_told"), [("cursor", False), ("claude", True)])
def test_a_note_that_only_other_agents_may_see_from_now_on_is_not_told(shop, agent, is_told):
    config = shop.home / "config.yaml"
    config.write_text(f"{config.read_text()}access:\n  shop:\n    agents: [{agent}]\n")
    assert shop.told() == ""
    shop.index()
    assert bool(shop.told(session="other")) is is_told


def test_a_note_is_told_while_another_process_writes_and_an_entry_has_expired(shop):
    with open_session(shop.home, watch=False) as other:
        NoteEntries(other).put("default", "once", f"{LINE} expired", ttl=1)
        other.sync()
        time.sleep(1.1)
        with other.engine.writing():
            told = shop.told()
    assert LINE in told
    assert "expired" not in told


def test_an_index_that_is_missing_is_made_before_a_note_is_told(shop):
    (shop.home / ".memoranda" / "index.db").unlink()
    with ReadSession.open(shop.home, watch=False, follows=False) as memory:
        _, total = memory.list()
    assert total == 1


def test_a_memory_of_a_caller_that_follows_sees_changes_at_once(shop):
    shop.write("Dates", f"# Dates\n\n{LINE}\n\nAnd never use luxon.\n")
    with ReadSession.open(shop.home, watch=False) as memory:
        assert "luxon" in memory.read("Dates").body
        assert memory.search("luxon").total == 1
    shop.write("Dates", f"# Dates\n\n{LINE}\n\nAnd never use pendulum.\n")
    with ReadSession.open(shop.home, watch=False, follows=False) as memory:
        assert memory.search("pendulum").total == 0


def payload(command):
    """The event before a command, as Claude Code sends it."""
    event = {
        "session_id": "s1",
        "transcript_path": "/t.jsonl",
        "cwd": "/",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
    }
    return json.dumps(event).encode()


def modules_loaded(home, command):
    """The modules that a hook before this command loads, and what it printed."""
    loads = "import sys; from memoranda.cli import run; import os; os._exit = lambda _: ("
    loads += "print(sorted(sys.modules), file=sys.stderr), sys.stderr.flush(), kill(0)); run()"
    loads = f"from os import _exit as kill; {loads}"
    process = subprocess.run(
        [sys.executable, "-c", loads, "--home", str(home), "hook", "claude-code"],
        input=payload(command),
        env={**environment(), "MEMORY_HOOK_SECONDS": "30"},
        capture_output=True,
        timeout=60,
    )
    return set(ast.literal_eval(process.stderr.decode())), process.stdout.decode()


def test_without_a_daemon_neither_the_command_line_nor_what_writes_is_loaded(shop):
    modules, printed = modules_loaded(shop.home, "grep moment src")
    assert printed == ""
    assert modules.isdisjoint({"click", "yaml", "memoranda.engine.engine", "memoranda.cli.syntax"})
    modules, printed = modules_loaded(shop.home, COMMAND)
    assert "date-fns" in printed
    assert modules.isdisjoint(
        {"click", "memoranda.engine.notes", "memoranda.transcripts.databases"}
    )


def test_an_agent_that_is_named_is_checked_by_the_full_command(shop):
    process = subprocess.run(
        [sys.executable, "-m", "memoranda", "--home", str(shop.home), "hook", "claude-code"],
        input=payload(COMMAND),
        env={
            **environment(),
            "MEMORY_HOOK_SECONDS": "30",
            "MEMORY_AGENT": "web",
            "MEMORY_HOOK_DEBUG": "1",
        },
        capture_output=True,
        timeout=60,
    )
    assert (process.returncode, process.stdout) == (0, b"")
    assert b"invalid agent" in process.stderr
