"""Contract 000a, 12.3, 12.4 and 12.11: no update is lost, whoever else writes."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from contract.memory_tool import answered
from memoranda.anthropic import AsyncMemoryTool, MemoryTool
from serve.process import ServerProcess, connected

EDITS = 50


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("shared") / "home"


@pytest.fixture(scope="module")
def servers(home: Path) -> Iterator[list[ServerProcess]]:
    """Two servers on one home, after their handshakes."""
    with (
        connected(home, "--tools", "memory") as first,
        connected(home, "--tools", "memory") as second,
    ):
        for server in (first, second):
            server.call("memory", {"command": "view", "path": "/memories"})
        yield [first, second]


def send_at_once(
    server: ServerProcess, calls: list[dict[str, Any]]
) -> Callable[[], list[tuple[str, bool]]]:
    """Send all calls as one piece; the function gives their answers, which must come in the order
    sent.
    """
    requests = [
        {
            "jsonrpc": "2.0",
            "id": f"call {number}",
            "method": "tools/call",
            "params": {"name": "memory", "arguments": call},
        }
        for number, call in enumerate(calls)
    ]
    server.write(b"".join(json.dumps(request).encode() + b"\n" for request in requests))

    def answers() -> list[tuple[str, bool]]:
        received = [server.receive() for _ in calls]
        assert [answer["id"] for answer in received] == [request["id"] for request in requests]
        return [answered(answer["result"]) for answer in received]

    return answers


@pytest.mark.promise("000a-12.3")
def test_a_hundred_edits_sent_at_once_each_needing_the_one_before_all_succeed(servers):
    path = "/memories/counter.md"
    calls: list[dict[str, Any]] = [{"command": "create", "path": path, "file_text": "count 0\n"}]
    for n in range(EDITS):
        calls.append(
            {
                "command": "str_replace",
                "path": path,
                "old_str": f"count {n}\n",
                "new_str": f"count {n + 1}\n",
            }
        )
        calls.append(
            {
                "command": "insert",
                "path": path,
                "insert_line": n + 1,
                "insert_text": f"line {n + 1}",
            }
        )
    calls.append({"command": "view", "path": path})
    replies = send_at_once(servers[0], calls)()
    assert [text for text, failed in replies if failed] == []
    lines = [f"count {EDITS}", *(f"line {n + 1}" for n in range(EDITS)), ""]
    numbered_lines = [f"{number:6d}\t{line}" for number, line in enumerate(lines, 1)]
    assert replies[-1][0].split("\n")[1:] == numbered_lines


@pytest.mark.promise("000a-12.3")
def test_a_view_shows_what_was_sent_before_it_and_nothing_sent_after(servers):
    path = "/memories/turn.md"
    calls: list[dict[str, Any]] = [{"command": "create", "path": path, "file_text": ""}]
    for n in range(10):
        calls += [
            {"command": "insert", "path": path, "insert_line": n, "insert_text": f"line {n}"},
            {"command": "view", "path": path},
        ]
    calls += [
        {"command": "rename", "old_path": path, "new_path": "/memories/turned.md"},
        {"command": "view", "path": "/memories/turned.md", "view_range": [1, 1]},
        {"command": "delete", "path": "/memories/turned.md"},
        {"command": "view", "path": path},
    ]
    replies = send_at_once(servers[0], calls)()
    for n, (text, failed) in enumerate(replies[2:21:2]):
        assert not failed
        assert text.split("\n")[-2:] == [f"{n + 1:6d}\tline {n}", f"{n + 2:6d}\t"]

    assert [failed for _, failed in replies[21:]] == [False, False, False, True]


@pytest.mark.promise("000a-12.4")
def test_two_servers_with_fifty_edits_each_on_one_file_lose_none(servers, home):
    path = "/memories/both.md"
    two_lines = "first 0.\nsecond 0.\n"
    servers[0].text("memory", {"command": "create", "path": path, "file_text": two_lines})
    waiting = []
    for server, name in zip(servers, ("first", "second"), strict=True):
        calls = []
        for n in range(EDITS // 2):
            old = f"{name} {n}."
            new = f"{name} {n + 1}."
            calls.append({"command": "str_replace", "path": path, "old_str": old, "new_str": new})
            calls.append(
                {
                    "command": "insert",
                    "path": path,
                    "insert_line": 0,
                    "insert_text": f"line of {name} {n}",
                }
            )
        waiting.append(send_at_once(server, calls))
    for answers in waiting:
        texts = [text for text, failed in answers() if failed]
        assert texts == []
    file = home / "memories" / "both.md"
    lines = file.read_text().splitlines()
    assert lines[-2:] == [f"first {EDITS // 2}.", f"second {EDITS // 2}."]
    assert len(lines) == EDITS + 2
    for name in ("first", "second"):
        theirs = [line for line in lines if line.startswith(f"line of {name}")]
        assert theirs == [f"line of {name} {n}" for n in reversed(range(EDITS // 2))]


def edits(thread: int) -> list[dict[str, Any]]:
    """Edits of one thread, each needing the one before."""
    path = "/memories/threads.md"
    calls = []
    for n in range(13):
        old = f"thread {thread}: {n}."
        new = f"thread {thread}: {n + 1}."
        calls.append({"command": "str_replace", "path": path, "old_str": old, "new_str": new})
        calls.append(
            {
                "command": "insert",
                "path": path,
                "insert_line": 4,
                "insert_text": f"{thread} wrote {n}",
            }
        )
    return calls


START = {
    "command": "create",
    "path": "/memories/threads.md",
    "file_text": "".join(f"thread {thread}: 0.\n" for thread in range(4)),
}


def check_threads(home: Path) -> None:
    lines = (home / "memories" / "threads.md").read_text().splitlines()
    assert lines[:4] == [f"thread {thread}: 13." for thread in range(4)]
    written = [f"{thread} wrote {n}" for thread, n in product(range(4), range(13))]
    assert sorted(lines[4:]) == sorted(written)


@pytest.mark.promise("000a-12.4")
def test_four_threads_through_one_tool_lose_none(tmp_path):
    tool = MemoryTool(tmp_path / "home")
    refused = []

    def work(thread: int) -> None:
        try:
            for call in edits(thread):
                tool.call(call)
        # Told below: a thread's own exception fails no test
        except Exception as error:
            refused.append(error)

    tool.call(START)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    tool.close()
    assert refused == []
    check_threads(tmp_path / "home")


@pytest.mark.promise("000a-12.4")
def test_four_tasks_through_one_async_tool_lose_none(tmp_path):
    tool = AsyncMemoryTool(tmp_path / "home")

    async def work(number: int) -> None:
        for call in edits(number):
            await tool.call(call)

    async def run() -> None:
        await tool.call(START)
        await asyncio.wait_for(asyncio.gather(*(work(number) for number in range(4))), 60)

    asyncio.run(run())
    tool.close()
    check_threads(tmp_path / "home")


def in_place(file: Path, data: bytes) -> None:
    with open(file, "r+b") as stream:
        stream.write(data)
        stream.truncate()


def replaced(file: Path, data: bytes) -> None:
    new = file.with_name("new")
    new.write_bytes(data)
    os.replace(new, file)


def unnoticed(file: Path, data: bytes) -> None:
    """The same size and the same times as before."""
    before = file.stat()
    assert len(data) == before.st_size
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.promise("000a-12.11")
@pytest.mark.parametrize(
    "another_program", [in_place, replaced, unnoticed], ids=lambda change: change.__name__
)
@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"command": "str_replace", "old_str": "two", "new_str": "2"}, b"1NE\n2\nthree\n"),
        ({"command": "insert", "insert_line": 1, "insert_text": "new"}, b"1NE\nnew\ntwo\nthree\n"),
    ],
    ids=["str_replace", "insert"],
)
def test_an_edit_goes_on_top_of_what_another_program_wrote(
    servers, home, another_program, edit, expected
):
    path = "/memories/other.md"
    file = home / "memories" / "other.md"
    servers[0].text("memory", {"command": "create", "path": path, "file_text": "one\ntwo\nthree\n"})
    servers[0].text("memory", {"command": "view", "path": path})
    another_program(file, b"1NE\ntwo\nthree\n")
    _, failed = answered(servers[0].call("memory", {"path": path, **edit}))

    assert not failed
    assert file.read_bytes() == expected


@pytest.mark.promise("000a-12.11")
def test_what_another_program_took_away_or_made_is_seen_by_the_next_command(servers, home):
    path = "/memories/other.md"
    file = home / "memories" / "other.md"
    servers[0].text("memory", {"command": "create", "path": path, "file_text": "one\n"})
    file.unlink()
    replace = {"command": "str_replace", "path": path, "old_str": "one", "new_str": "two"}
    missing = f"The path {path} does not exist. Please provide a valid path."
    assert answered(servers[0].call("memory", replace)) == (missing, True)
    assert not file.exists()
    file.mkdir()
    assert answered(servers[0].call("memory", replace)) == (f"The path {path} is not a file.", True)
    (file / "inside.md").write_text("by hand\n")
    view = {"command": "view", "path": "/memories/other.md/inside.md"}
    text = servers[0].text("memory", view)
    assert text.endswith("     1\tby hand\n     2\t")
    assert not answered(servers[0].call("memory", {"command": "delete", "path": path}))[1]
    assert not file.exists()
