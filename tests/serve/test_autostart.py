"""The daemon that a client starts, and clients of one that is stopped or gone (docs/clients.md)."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest

from memoranda.config import load
from memoranda.engine import daemon_client
from memoranda.engine.daemon_client import why_not_started
from memoranda.errors import Busy
from memoranda.serve import pump, sessions
from memoranda.serve.daemon import Daemon
from serve.daemon_process import Client, DaemonProcess
from serve.process import SECONDS, environment, memory_mcp
from serve.test_pump import passes_on


@pytest.fixture
def autostart(monkeypatch, home):
    """Let clients start daemons, and end the one they started."""
    monkeypatch.delenv("CI")
    yield
    daemon_client.stop(home / ".daemon.lock", SECONDS)


def memory(home, *words, **more):
    command = [sys.executable, "-m", "memoranda", "--home", str(home), *words]
    return subprocess.run(
        command, env=environment(home.parent), capture_output=True, timeout=SECONDS, **more
    )


def state(home):
    return json.loads(memory(home, "status", "--json").stdout)["daemon"]


@pytest.mark.slow
@pytest.mark.promise("daemon-starts")
def test_the_first_client_starts_a_daemon_that_serves_the_next_ones(autostart, home, start):
    start(command=memory_mcp(home), user=home.parent).handshake()
    # The client waits for it, but not on a machine as busy as that of tests may be
    assert daemon_client.wait_for(home / "memory.sock", SECONDS)
    first, second = (start(command=memory_mcp(home), user=home.parent) for _ in range(2))
    for server in (first, second):
        server.handshake()
        assert passes_on(server)
    first.text("write_note", {"title": "Tea", "content": "green", "directory": ""})
    text = second.text("read_note", {"identifier": "Tea"})
    assert "green" in text
    first_state = state(home)
    assert first_state["running"] is True
    assert first_state["autostarted"] is True
    assert first_state["answers"] is True
    assert "started by a client, " in memory(home, "status").stdout.decode()
    log = home / ".memoranda" / "daemon.log"
    mode = stat.S_IMODE(log.stat().st_mode)
    assert mode == 0o600
    stopped = memory(home, "serve", "--stop").stdout.decode()
    assert stopped == (
        f"The daemon (process {first_state['pid']}) has ended. The next client starts another one.\n"
    )
    # The sessions go on, with the next daemon
    text = first.text("read_note", {"identifier": "Tea"})
    assert "green" in text
    pid = state(home)["pid"]
    assert pid not in (first_state["pid"], None)


@pytest.mark.slow
@pytest.mark.promise("daemon-starts")
@pytest.mark.parametrize(
    "event",
    [
        {"hook_event_name": "SessionStart", "source": "startup"},
        {
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "npm install moment"},
        },
    ],
    ids=["session", "tool"],
)
def test_a_hook_starts_it_and_a_person_s_daemon_takes_its_place(
    autostart, home, monkeypatch, event
):
    monkeypatch.setenv("MEMORY_HOOK_SECONDS", "30")
    event |= {"session_id": "s", "cwd": str(home.parent), "transcript_path": "/nowhere"}
    memory(home, "hook", "claude-code", input=json.dumps(event).encode())
    assert daemon_client.wait_for(home / "memory.sock", SECONDS)
    first = int((home / ".daemon.lock").read_text().split()[0])
    with DaemonProcess(home, "--interval", "1h") as own_daemon:
        assert own_daemon.ready().startswith("Memory daemon running")
        text = (home / ".daemon.lock").read_text()
        assert text == f"{own_daemon.process.pid}\n"
        assert own_daemon.process.pid != first
        own_daemon.stop()


@pytest.mark.slow
@pytest.mark.promise("daemon-starts")
@pytest.mark.parametrize("arguments", [("--no-daemon",), ("--as", "basic-memory")])
def test_a_client_that_wants_none_starts_none(autostart, home, start, arguments):
    server = start(command=memory_mcp(home, *arguments), user=home.parent)
    server.handshake()
    assert not passes_on(server)
    assert not state(home)["running"]


@pytest.mark.promise("daemon-starts")
def test_where_a_daemon_is_not_wanted_or_cannot_be_the_reason_is_named(tmp_path, monkeypatch):
    settings = load(tmp_path / "home")
    assert why_not_started(settings, {}) == ""
    assert why_not_started(settings, {"CI": "false"}) == ""
    assert "CI" in why_not_started(settings, {"CI": "true"})
    (tmp_path / "config.yaml").write_text("daemon:\n  autostart: false\n")
    off = load(tmp_path / "home", tmp_path / "config.yaml")
    assert why_not_started(off, {}) == "daemon.autostart is off"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert why_not_started(settings, {}) == "the home cannot be written"


@pytest.mark.slow
@pytest.mark.promise("daemon-starts")
def test_it_ends_a_while_after_its_last_client(home):
    with DaemonProcess(home, "--interval", "1h", "--idle", "1s") as daemon:
        daemon.ready()
        with Client(home) as client:
            client.call("memory_list")
        assert daemon.ended()[0] == 0
    assert not (home / "memory.sock").exists()


@pytest.mark.slow
@pytest.mark.promise("daemon-stopped")
def test_a_stopped_daemon_holds_up_no_client_for_more_than_five_seconds(home, start):
    with DaemonProcess(home, "--interval", "1h") as daemon:
        daemon.ready()
        old = start(command=memory_mcp(home), user=home.parent)
        old.handshake()
        old.text("write_note", {"title": "Tea", "content": "green", "directory": ""})
        assert passes_on(old)
        daemon.process.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        answer = old.ask("tools/call", {"name": "read_note", "arguments": {"identifier": "Tea"}})
        assert time.monotonic() - begun < 5.5
        assert "went away before it answered" in answer["error"]["message"]
        text = old.text("read_note", {"identifier": "Tea"})
        assert "green" in text
        begun = time.monotonic()
        new = start(command=memory_mcp(home), user=home.parent)
        new.handshake()
        assert not passes_on(new)
        text = new.text("read_note", {"identifier": "Tea"})
        assert "green" in text
        output = memory(home, "status").stdout.decode()
        assert "does not answer; end it with: memory serve --stop" in output
        process = memory(home, "serve", "--stop")
        assert b"has ended" in process.stdout
        daemon.ended()


@pytest.mark.promise("daemon-stopped")
def test_a_daemon_at_work_says_so_to_who_waits(home, start, monkeypatch):
    assert sessions._ALIVE_EVERY * 3 < pump._MAX_SILENT_SECONDS
    assert pump._GRANT_SECONDS < 5
    assert pump._MAX_SILENT_SECONDS < 5


class Unready:
    """A scheduler whose round cannot begin at first."""

    def __init__(self):
        self.tries = 0
        self.stop = lambda: False
        self.memory = SimpleNamespace(settings=SimpleNamespace(transcripts=False))

    def steps(self):
        self.tries += 1
        if self.tries == 1:
            raise Busy("a long call (process 1)")
        if self.tries == 2:
            raise RuntimeError("nobody thought of this")
        return [("sync", lambda: 0)]

    def keep_up(self):
        pass


@pytest.mark.promise("daemon-stopped")
def test_a_round_that_cannot_begin_waits_for_the_next_and_is_named(caplog):
    daemon = Daemon(Unready(), timedelta(hours=1))
    assert not daemon.round()
    assert "long call" in daemon.state()["failed"]["round"]
    assert "Traceback" not in caplog.text
    assert not daemon.round()
    assert "nobody thought of this" in caplog.text
    assert daemon.round()
    failed = daemon.state()["failed"]
    assert failed == {}
    assert daemon.state()["next_round"] is not None
