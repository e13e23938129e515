"""`memory hook` as clients run it: status 0, silence, its time limit, the daemon (docs/hooks.md)."""

from __future__ import annotations

import ast
import json
import socket
import subprocess
import sys
import threading
import time

import pytest

from memoranda import Draft, Query
from memoranda.engine import open_session
from serve.daemon_process import DaemonProcess
from serve.forked import run
from serve.process import environment

KEY = "ghp_" + "8sK2mPq7Zt4XvB9nWc3RyD6fHj1LgE5aUo0T"
BASE = {"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/"}
START = {**BASE, "hook_event_name": "SessionStart", "source": "startup"}
PROMPT = {
    **BASE,
    "hook_event_name": "UserPromptSubmit",
    "prompt": "how do we deploy the zebrafish pipeline?",
}


@pytest.fixture
def home(tmp_path):
    with open_session(tmp_path / "home") as memory:
        memory.write(
            Draft(
                "Zebrafish pipeline deploys need --no-thaw",
                project="categories",
                category="preferences",
            )
        )
    return tmp_path / "home"


def hook(home, payload, *argv, **environ):
    if isinstance(payload, bytes):
        data = payload
    else:
        data = json.dumps(payload).encode()
    command = [
        sys.executable,
        "-m",
        "memoranda",
        "--home",
        str(home),
        "hook",
        *(argv or ("claude-code",)),
    ]
    return run(command, input=data, env={**environment(), "MEMORY_HOOK_SECONDS": "30", **environ})


def context(process):
    return json.loads(process.stdout)["hookSpecificOutput"]["additionalContext"]


@pytest.mark.slow
def test_a_hook_without_a_daemon_answers_with_one_json_document(home):
    process = hook(home, START)
    assert process.returncode == 0
    assert process.stderr == b""
    assert "--no-thaw" in context(process)
    process = hook(home, {**PROMPT, "session_id": "s2"})
    assert "--no-thaw" in context(process)


@pytest.mark.parametrize(
    "argv",
    [(), ("nobody",), ("claude-code", "x", "y", "z"), ("--what",), ("claude-code", "--json")],
)
def test_a_hook_called_wrongly_still_ends_with_status_0_and_says_nothing_on_stdout(home, argv):
    process = run(
        [sys.executable, "-m", "memoranda", "--home", str(home), "hook", *argv],
        input=b"{}",
        env=environment(),
    )
    assert (process.returncode, process.stdout) == (0, b"")


@pytest.mark.parametrize("argv", [("--help",), ("-h",), ("claude-code", "--help")])
def test_a_hook_asked_for_its_help_shows_it(home, argv):
    process = run(
        [sys.executable, "-m", "memoranda", "--home", str(home), "hook", *argv],
        input=b"",
        env=environment(),
    )
    assert (process.returncode, process.stdout[:25]) == (0, b"Usage: memory hook [OPTIO")


@pytest.mark.promise("issue-hook-events")
@pytest.mark.parametrize("payload", [b"\xff", {"hookEventName": "SessionStart"}])
def test_a_hook_is_silent_on_what_it_does_not_know(home, payload):
    process = hook(home, payload)
    assert (process.returncode, process.stdout, process.stderr) == (0, b"", b"")


def test_a_hook_is_silent_on_trouble_and_says_what_it_is_when_asked(home):
    (home / "config.yaml").write_text("history: [\n")
    process = hook(home, START)
    assert process.returncode == 0
    assert process.stdout == b""
    assert process.stderr == b""
    process = hook(home, START, MEMORY_HOOK_DEBUG="1")
    assert process.returncode == 0
    assert process.stdout == b""
    assert b"load config" in process.stderr


def test_the_first_event_after_a_setting_was_changed_is_answered_by_the_daemon_as_the_setting_is(
    home,
):
    with open_session(home) as memory:
        memory.write(Draft("use date-fns instead of moment", project="categories"))
    call = {
        **BASE,
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "npm install moment"},
    }
    with DaemonProcess(home, "--interval", "1h") as daemon:
        daemon.ready()
        assert b"date-fns" in hook(home, {**call, "session_id": "before"}).stdout
        (home / "config.yaml").write_text("hooks:\n  tools: false\n")
        assert hook(home, {**call, "session_id": "after"}).stdout == b""


@pytest.mark.parametrize("payload", [b"{", {**START, "transcript_path": ""}, {"a": 1}])
def test_a_hook_that_is_asked_says_that_what_it_read_is_no_event(home, payload):
    process = hook(home, payload, MEMORY_HOOK_DEBUG="1")
    assert (process.returncode, process.stdout) == (0, b"")
    assert b"This is no event that the hook of claude-code answers." in process.stderr


@pytest.mark.promise("issue-hook-events")
def test_a_client_that_never_ends_its_event_is_left_after_less_than_a_second(home):
    command = [sys.executable, "-m", "memoranda", "--home", str(home), "hook", "claude-code"]
    begun = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.wait(timeout=30) == 0
        assert process.stdout.read() == b""
    # Not the limit itself: machines that run tests are slow
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("seconds", ["", "0"])
def test_what_is_asked_of_a_hook_without_time_is_stored_by_the_next_process(home, seconds):
    with open_session(home) as memory, memory.exclusive():
        payload = {**PROMPT, "prompt": "Remember that I always use pnpm, please"}
        process = hook(home, payload, MEMORY_HOOK_SECONDS=seconds)
        again = hook(home, payload, MEMORY_HOOK_SECONDS=seconds)
        secret = {**PROMPT, "prompt": f"Remember that the key is {KEY} for now"}
        hook(home, secret, MEMORY_HOOK_SECONDS=seconds)
    assert process.returncode == 0
    assert process.stdout == b""
    assert process.stderr == b""
    assert again.returncode == 0
    assert again.stdout == b""
    with open_session(home) as memory:
        infos, total = memory.list(Query(projects=("categories",)))
        assert total == 2
        assert infos[0].category == "preferences"
        assert infos[0].expires is None
        assert infos[0].provenance.who == "owner"
        paths = list((home / ".memoranda" / "asked").iterdir())
        assert not paths
        memory.write(Draft("still writable", project="categories"))


def test_through_the_daemon_it_answers_as_without_and_writes(home):
    alone = context(hook(home, {**START, "session_id": "other"}))
    with DaemonProcess(home, "--interval", "1h") as daemon:
        daemon.ready()
        assert context(hook(home, START)) == alone
        # Given at the start of this session
        process = hook(home, PROMPT)
        assert process.stdout == b""
        payload = {**PROMPT, "prompt": "Remember that owls fly at night."}
        assert "owls fly at night" in context(hook(home, payload))
        process = hook(home, {**BASE, "hook_event_name": "SessionEnd"})
        assert process.stdout == b""
        assert daemon.stop()[0] == 0
    with open_session(home) as memory:
        (note,), _ = memory.list(Query(projects=("categories",), source="hook-claude-code"))
        assert note.provenance.who == "owner"
        assert note.provenance.client == "claude-code"


def test_a_hook_with_a_daemon_imports_neither_the_engine_nor_the_command_line(home):
    event = {
        **BASE,
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "deploy zebrafish"},
    }
    loads = "import sys; from memoranda.cli import run; import os; os._exit = lambda _: print("
    loads += "[m for m in sys.modules if m.startswith(('memoranda.', 'click', 'yaml', 'sqlite3'))],"
    loads += " file=sys.stderr); run()"
    with DaemonProcess(home, "--interval", "1h") as daemon:
        daemon.ready()
        process = subprocess.run(
            [sys.executable, "-c", loads, "--home", str(home), "hook", "claude-code"],
            input=json.dumps(event).encode(),
            env={**environment(), "MEMORY_HOOK_SECONDS": "30"},
            capture_output=True,
            timeout=60,
        )
        assert daemon.stop()[0] == 0
    # The stub of os._exit lets the whole command go on after it.
    first = process.stderr.decode().splitlines()[0]
    assert set(ast.literal_eval(first)) == {
        "memoranda.cli",
        "memoranda.clients",
        "memoranda.clients.hook",
        "memoranda.clients.hook_relay",
        "memoranda.engine",
        "memoranda.engine.daemon_peer",
    }


@pytest.mark.parametrize("listener", ["refuses", "older", "silent"])
def test_a_hook_does_by_itself_what_a_daemon_cannot_answer(home, tmp_path, listener):
    replies = {"refuses": b"", "older": b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -1}}\n'}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home / "memory.sock"))
        server.listen()
        if listener == "silent":
            # The time is up while the hook waits: nothing is said, and nothing is broken.
            process = hook(home, START, MEMORY_HOOK_SECONDS="0.3")
            assert process.returncode == 0
            assert process.stdout == b""
            return
        server.settimeout(60)
        answering = threading.Thread(target=_answer_all, args=(server, replies[listener]))
        answering.start()
        process = hook(home, START)
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(home / "memory.sock"))
            last.sendall(END)
        answering.join(60)

    assert "--no-thaw" in context(process)


@pytest.mark.parametrize("words", ["Remember that I always use pnpm", "记住:我总是用 pnpm"])
@pytest.mark.parametrize("is_escaped", [True, False])
def test_what_is_asked_is_kept_if_the_daemon_does_not_answer_in_time(home, words, is_escaped):
    payload = json.dumps({**PROMPT, "prompt": words}, ensure_ascii=is_escaped).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home / "memory.sock"))
        server.listen()
        process = hook(home, payload, MEMORY_HOOK_SECONDS="0.3")
    assert process.returncode == 0
    assert process.stdout == b""
    with open_session(home) as memory:
        infos, _ = memory.list(Query(projects=("categories",), source="hook-claude-code"))
    assert ["pnpm" in info.title for info in infos] == [True]


def test_what_is_asked_is_kept_if_a_character_of_it_is_cut_in_two(home):
    payload = {**PROMPT, "prompt": "Remember that owls fly at night \ud83e"}
    assert "owls fly at night" in context(hook(home, payload))
    with open_session(home) as memory:
        (note,), _ = memory.list(Query(projects=("categories",), source="hook-claude-code"))
    assert note.title.startswith("owls fly at night")


END = b"end"


def _answer_all(server, reply):
    """Give every connection the same reply, until one says END."""
    while True:
        connection, _ = server.accept()
        with connection:
            connection.settimeout(60)
            if connection.recv(1 << 20) == END:
                return
            if reply:
                connection.sendall(reply)


def test_the_socket_answers_no_event_of_an_unknown_client_and_lives_on(home):
    with DaemonProcess(home, "--interval", "1h") as daemon:
        daemon.ready()
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            client.connect(str(home / "memory.sock"))
            for params in (
                {"client": "x", "kind": "start", "name": "", "session": "s"},
                {"a": 1},
                {},
            ):
                client.sendall(
                    json.dumps({"id": 1, "method": "hook", "params": params}).encode() + b"\n"
                )
                assert "error" in json.loads(client.recv(65_536))
        assert daemon.stop()[0] == 0
