"""A process that was stopped while it had the lock: everybody else is answered, and told who it is."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from crash.mortal import ENVIRONMENT
from crash.test_kill import SECONDS
from memoranda import Draft, faces
from memoranda.engine import open_session
from memoranda.errors import Busy
from memoranda.note.edit import Append
from serve.daemon_process import Client, DaemonProcess
from serve.forked import run
from serve.process import ServerProcess, memory_mcp

LONGEST = 6.0
HOLDER = """
import sys
import threading
from memoranda.engine import open_session
with open_session(sys.argv[1], watch=False) as memory, memory.exclusive():
    if "index" in sys.argv:
        memory.index.connection.execute("begin immediate")
    print("held", flush=True)
    sys.stdin.read()
"""
CALLS = [
    ("search_notes", {"query": "dark"}, "Note 3"),
    ("read_note", {"identifier": "notes/note-3"}, "text 3"),
    ("write_note", {"title": "New", "content": "x", "directory": ""}, None),
    ("recent_activity", {}, "Ada"),
    ("build_context", {"url": "memory://notes/note-3"}, "Note 3"),
    ("memory", {"command": "view", "path": "/memories/a.md"}, "first line"),
    ("memory", {"command": "create", "path": "/memories/b.md", "file_text": "x"}, None),
    (
        "memory",
        {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "x"},
        None,
    ),
    ("memory_search_nodes", {"query": "Ada"}, "Ada"),
    ("memory_open_nodes", {"names": ["Ada"]}, "Ada"),
    (
        "memory_create_entities",
        {"entities": [{"name": "Bob", "entityType": "p", "observations": []}]},
        None,
    ),
    ("memory_recall", {"key": "colour"}, "blue"),
    ("memory_list_namespaces", {}, "default"),
    ("memory_remember", {"key": "colour", "value": "red"}, None),
]
"""Calls of the faces, and what they answer beside a stopped holder; None: that the memory is in
use.
"""


def on_this_machine(seconds: float) -> float:
    """So many seconds, longer while more programs want to run than there are processors."""
    return seconds * max(1, os.getloadavg()[0] / (os.cpu_count() or 1))


@contextmanager
def stopped(home: Path, *options: str) -> Iterator[int]:
    """A process that holds the lock of `home` and is stopped."""
    command = [sys.executable, "-c", HOLDER, str(home), *options]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        process.send_signal(signal.SIGSTOP)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / ".memory"
    with open_session(home) as memory:
        memory.write_many([Draft(f"text {n}, dark", title=f"Note {n}") for n in range(10)])
        tools = faces.registry(["all"], memory.settings)
        for name, arguments in (
            (
                "memory",
                {"command": "create", "path": "/memories/a.md", "file_text": "first line\n"},
            ),
            (
                "memory_create_entities",
                {"entities": [{"name": "Ada", "entityType": "p", "observations": ["o"]}]},
            ),
            ("memory_remember", {"key": "colour", "value": "blue"}),
        ):
            assert not tools.call(memory, name, arguments).is_error
        memory.sync()
    return home


def check(text: str, is_error: bool, expected: str | None, pid: int) -> None:
    if expected is None:
        assert is_error
        assert f"process {pid}" in text
        assert " since 20" in text
    else:
        assert expected in text, text
        assert not is_error


def calls_in_process(home: Path, count: int, pid: int) -> list[float]:
    """`count` calls by 8 threads of one open memory; how long each took."""
    with open_session(home) as memory:
        tools = faces.registry(["all"], memory.settings)

        def call(number: int) -> float:
            name, arguments, expected = CALLS[number % len(CALLS)]
            begun = time.monotonic()
            reply = tools.call(memory, name, arguments)
            took = time.monotonic() - begun
            # The threads of one process wait for each other, too
            if "another call of this process" not in reply.text:
                check(reply.text, reply.is_error, expected, pid)
            return took

        with ThreadPoolExecutor(8) as threads:
            return list(threads.map(call, range(count)))


def calls_of_server(home: Path, count: int, pid: int) -> list[float]:
    """`count` calls sent at once to one `memory mcp`; how long after that each was answered."""
    own_config = home.parent / "own.yaml"
    # A daemon serves no client that is configured otherwise
    own_config.write_text("gate:\n  secrets: allow\n")
    with ServerProcess(
        command=memory_mcp(home, "--config", str(own_config), "--tools", "all"), user=home.parent
    ) as server:
        server.handshake()
        sent = {}
        begun = time.monotonic()
        for number in range(count):
            name, arguments, expected = CALLS[number % len(CALLS)]
            sent[server.send("tools/call", {"name": name, "arguments": arguments})] = expected
        took = []
        for _ in range(count):
            answer = server.receive()
            took.append(time.monotonic() - begun)
            block, *_ = answer["result"]["content"]
            check(block["text"], answer["result"]["isError"], sent[answer["id"]], pid)
        return took


def calls_of_daemon(home: Path, count: int, pid: int) -> list[float]:
    """`count` connections to one `memory serve` at once, a call each."""
    with DaemonProcess(home, "--tools", "all") as daemon:
        daemon.ready()

        def call(number: int) -> float:
            name, arguments, expected = CALLS[number % len(CALLS)]
            begun = time.monotonic()
            with Client(home) as client:
                answer = client.ask(name, params=arguments)
            took = time.monotonic() - begun
            text = json.dumps(answer, ensure_ascii=False)
            if "another call of this process" not in text:
                check(text, 'is_error": true' in text or "error" in answer, expected, pid)
            return took

        with ThreadPoolExecutor(8) as threads:
            took = list(threads.map(call, range(count)))
        begun = time.monotonic()
        status, _, _ = daemon.stop()
        assert status == 0
        assert time.monotonic() - begun < on_this_machine(3)
        return took


def calls_of_command(home: Path, count: int, pid: int) -> list[float]:
    """`count` commands of their own, two at a time."""
    commands = [["search", "dark"], ["write", "x"], ["log"], ["status"]]

    def call(number: int) -> float:
        arguments = commands[number % len(commands)]
        begun = time.monotonic()
        command = [sys.executable, "-m", "memoranda", "--home", str(home), *arguments]
        ran = run(command, env=ENVIRONMENT, timeout=SECONDS)
        took = time.monotonic() - begun
        if arguments[0] == "write":
            check(ran.stderr.decode(), ran.returncode == 1, None, pid)
        else:
            assert ran.returncode == 0, ran.stderr
        return took

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(call, range(count)))


@pytest.mark.slow
@pytest.mark.promise("issue-stopped-holder")
def test_all_calls_of_all_faces_beside_a_stopped_holder_are_answered_and_told_who_it_is(home):
    ways = (calls_in_process, calls_of_server, calls_of_daemon, calls_of_command)
    shares = (42, 42, 14, 8)
    with stopped(home) as pid, ThreadPoolExecutor(len(ways)) as threads:
        running = [
            threads.submit(way, home, share, pid) for way, share in zip(ways, shares, strict=True)
        ]
        took = []
        for call_result in running:
            took.extend(call_result.result())

    assert len(took) == sum(shares)
    assert max(took) < on_this_machine(LONGEST)


@pytest.mark.slow
@pytest.mark.promise("issue-stopped-holder")
@pytest.mark.parametrize("options", [(), ("index",)])
def test_beside_a_stopped_holder_changes_by_other_programs_are_found(home, options):
    with stopped(home, *options) as pid, open_session(home) as memory:
        file = home / "notes" / "late.md"
        file.write_text("a darkling thrush\n")
        hits = memory.search("darkling")
        paths = [hit.note.path for hit in hits]
        assert paths == ["late.md"]
        text = memory.read("late").text
        assert text == "a darkling thrush\n"
        assert memory.warnings == []
        with pytest.raises(
            Busy, match=f"process {pid} .* since 20.* Nothing was changed. Try again"
        ):
            memory.edit("late", Append("more"))
    with open_session(home) as memory:
        memory.edit("late", Append("more"))
        assert memory.search("darkling").total == 1


@pytest.mark.slow
@pytest.mark.promise("issue-stopped-holder")
def test_beside_a_stopped_holder_an_index_too_large_to_copy_answers_and_a_warning_says_what_may_be_missing(
    home,
):
    os.truncate(home / ".memoranda/index.db", 257 << 20)
    with stopped(home), open_session(home) as memory:
        (home / "notes" / "late.md").write_text("a darkling thrush\n")
        assert memory.search("dark").total == 10
        assert memory.search("thrush").total == 0
        (warning,) = memory.warnings
        assert warning.startswith(
            "The last changes on disk may be missing here: the index could not follow ("
        )
    with open_session(home) as memory:
        assert memory.search("darkling").total == 1
        assert memory.warnings == []


@pytest.mark.slow
@pytest.mark.promise("issue-stopped-holder")
def test_a_server_that_waits_for_the_lock_obeys_the_first_sigterm(home):
    with stopped(home), ServerProcess(command=memory_mcp(home), user=home.parent) as server:
        server.handshake()
        server.text("read_note", {"identifier": "notes/note-3"})
        server.send("tools/call", {"name": CALLS[2][0], "arguments": CALLS[2][1]})
        begun = time.monotonic()
        while not os.path.exists(f"/proc/{server.process.pid}") or time.monotonic() - begun < 0.3:
            os.sched_yield()
        server.process.terminate()
        assert server.process.wait(SECONDS) == 0
        assert time.monotonic() - begun < 2


@pytest.mark.slow
@pytest.mark.promise("issue-stopped-holder")
def test_a_command_waits_on_while_the_lock_goes_from_one_process_to_the_next(home):
    lock = home / ".memoranda/lock"
    end = time.monotonic() + LONGEST + 1

    def take_turns() -> None:
        with lock.open("r+b", buffering=0) as file:
            while time.monotonic() < end:
                fcntl.flock(file, fcntl.LOCK_EX)
                os.pwrite(file.fileno(), f"{os.getpid()} {time.time():.3f} \n".encode(), 0)
                threading.Event().wait(0.5)
                fcntl.flock(file, fcntl.LOCK_UN)

    with ThreadPoolExecutor(2) as threads:
        # As one lets go, the other has it
        turns = [threads.submit(take_turns) for _ in range(2)]
        command = [sys.executable, "-m", "memoranda", "--home", str(home), "write", "x"]
        ran = run(command, env=ENVIRONMENT, timeout=SECONDS)
        assert ran.returncode == 0
        assert ran.stderr == b""
        for turn in turns:
            turn.result()
