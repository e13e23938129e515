"""Contract 004, 9.6 and 9.7: several servers on one home, and servers killed at random moments."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace import open_memory
from contract.key_value import KeyValue
from serve.process import ServerProcess, memory_mcp

KILLS = int(os.environ.get("COMMONPLACE_KILLS", "20"))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[], ServerProcess]]:
    """Starts servers on one home, after their handshakes."""
    started: list[ServerProcess] = []

    def start() -> ServerProcess:
        server = ServerProcess(command=memory_mcp(tmp_path / "home", "--tools", "kv"), user=tmp_path)
        started.append(server.__enter__())
        server.handshake()
        return server

    yield start
    for server in started:
        server.__exit__()


def at_once(server: ServerProcess, tool: str, calls: list[dict[str, Any]]) -> Callable[[], list[bool]]:
    """Send all calls without waiting; the function waits and tells which failed."""
    for given in calls:
        server.send("tools/call", {"name": tool, "arguments": given})
    return lambda: [server.receive()["result"]["isError"] for _ in calls]


@pytest.mark.promise("004-9.6")
def test_four_servers_with_fifty_keys_each_keep_all_two_hundred(serve, tmp_path):
    servers = [serve() for _ in range(4)]
    waiting = [
        at_once(server, "memory_remember", [{"key": f"k{n}-{m}", "value": f"value {n} {m}"} for m in range(50)])
        for n, server in enumerate(servers)
    ]
    assert not any(failed for answers in waiting for failed in answers())
    assert len(list((tmp_path / "home" / "kv" / "default").iterdir())) == 200
    with open_memory(tmp_path / "home") as memory:
        entries = KeyValue(memory)
        for n in range(4):
            for m in range(50):
                assert entries.value(f"k{n}-{m}") == f"value {n} {m}"
        assert entries.ok("stats")["total_entries"] == 200


@pytest.mark.promise("004-9.6")
def test_two_servers_with_forty_values_each_for_one_key_leave_one_and_seventy_nine_in_the_history(serve, tmp_path):
    servers = [serve() for _ in range(2)]
    waiting = [
        at_once(server, "memory_remember", [{"key": "k", "value": f"value {n} {m}"} for m in range(40)])
        for n, server in enumerate(servers)
    ]
    assert not any(failed for answers in waiting for failed in answers())
    with open_memory(tmp_path / "home") as memory:
        entries = KeyValue(memory)
        assert set(entries.files()) == {"default/k.md"}
        values = {entries.value("k")}
        changes = memory.log("kv/default/k.md", limit=0)
        replaced = [each.old for change in changes for each in change.texts() if each.old]
        assert len(replaced) == 79
        texts = [memory.engine.home.history.text(old, "k").decode() for old in replaced]
        values |= {text.rsplit("---\n")[-1].rstrip("\n") for text in texts}
        assert values == {f"value {n} {m}" for n in range(2) for m in range(40)}


@pytest.mark.promise("004-9.6")
def test_two_hundred_recalls_at_once_count_two_hundred(serve, tmp_path):
    servers = [serve() for _ in range(4)]
    servers[0].text("memory_remember", {"key": "k", "value": "v"})
    waiting = [at_once(server, "memory_recall", [{"key": "k"}] * 50) for server in servers]
    assert not any(failed for answers in waiting for failed in answers())
    assert "**access_count:** 201" in servers[0].text("memory_recall", {"key": "k"})
    assert servers[0].close() == 0
    with open_memory(tmp_path / "home", watch=False) as memory:
        assert memory.find("k", "kv").access_count == 201


@pytest.mark.promise("004-9.7")
def test_servers_killed_at_random_moments_keep_every_acknowledged_value(serve, tmp_path):
    moment, acknowledged = random.Random(4), dict[str, str]()
    for life in range(KILLS):
        server = serve()
        server.text("memory_remember", {"key": "first", "value": "x"})
        sent = [(f"k{n % 7}", f"value {life} {n} " + "x" * 300) for n in range(200)]
        for key, value in sent:
            server.send("tools/call", {"name": "memory_remember", "arguments": {"key": key, "value": value}})
        threading.Timer(moment.uniform(0.0, 0.25), server.process.kill).start()
        answers = server.rest()
        assert not any(answer["result"]["isError"] for answer in answers)
        acknowledged |= dict(sent[: len(answers)])
        with open_memory(tmp_path / "home", watch=False) as memory:
            entries = KeyValue(memory)
            for key, value in acknowledged.items():
                unanswered = [later for other, later in sent[len(answers) :] if other == key]
                acknowledged[key] = entries.value(key)
                assert acknowledged[key] in (value, *unanswered)
            assert memory.unreadable == {}
    assert list((tmp_path / "home").rglob(".tmp-*")) == []
