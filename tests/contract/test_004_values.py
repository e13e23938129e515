"""Contract 004, 9: the listed cases; what is kept comes back exactly, from several servers and
after kills too.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.home_kinds import in_database
from contract.key_value import CASES, LIMIT, NAMES, KeyValue, play
from editing import replace_in
from memoranda import __version__
from memoranda.engine import open_session
from movable_clock import Clock
from serve.process import ServerProcess, connected, memory_mcp

VALUES = {
    "blanks": "  \t ",
    "line breaks": "\n\nx\n\n\n",
    "one line break": "\n",
    "crlf": "a\r\nb\r\n",
    "cr": "\r",
    "nul": "a\0b",
    "fence": "---",
    "frontmatter": "---\nkey: other\nexpires_at: 2001-01-01\n---\n",
    "dots": "...\n",
    "emoji": "👩‍👩‍👧 🏳️‍🌈",
    "right to left": "\u202eabc\u202c ‏שלום",
    "bom": "\ufeffx",
    "separators": "a\u2028b\x85c",
    "markup": "- [fact] likes [[tea]] #drink\n```\nx\n",
    "replacement": "\ufffd",
    "last plane": "\U0010ffff\uffff",
    "a megabyte": "0123456789abcdef" * 65536,
}
KEYS = (
    " a ",
    "a",
    "../../x",
    "..",
    ".",
    "/etc/passwd",
    "~",
    "con",
    "nul.md",
    "a\nb",
    "a\0b",
    "A",
    "a/b",
    "a b",
    "a_b",
    "A_B",
    "a-b",
    "a.b",
    "node_modules",
    "true",
    "null",
    "1.10",
    "2026-05-07",
    "- x",
    "key: value",
    "#tag",
    '"q"',
    "é",
    "e\u0301",
    "键",
    "k" * 80,
    "k" * 81,
    "k" * 900,
    "键" * 1000,
    ".hidden",
    "-",
    "_meta",
    "%2e%2e",
    "a\\b",
    "[[x]]",
    "a\u2028b",
    "~a~",
)


@pytest.fixture
def entries(tmp_path: Path) -> Iterator[KeyValue]:
    with open_session(tmp_path / "home", clock=Clock(), watch=False) as memory:
        yield KeyValue(memory)


@pytest.mark.promise("004-9.3")
@pytest.mark.parametrize("name", VALUES)
def test_a_hard_value_comes_back_exactly(entries, name):
    entries.remember("k", VALUES[name])
    assert entries.value("k") == VALUES[name]
    _, stored = entries.file("default/k.md").read_bytes().split(b"access_count: 0\n---\n", 1)
    assert stored == VALUES[name].encode() + b"\n"


@pytest.mark.promise("004-9.3", "004-9.10")
def test_hard_keys_and_namespaces_are_all_different(entries, tmp_path):
    for name in KEYS:
        entries.remember(name, f"key {name}")
        entries.remember("x", f"namespace {name}", namespace=name)
    for name in KEYS:
        assert entries.value(name) == f"key {name}"
        assert entries.value("x", namespace=name) == f"namespace {name}"
    assert set(entries.found("key ", limit=1000, namespace="default")) == {
        ("default", name) for name in KEYS
    }
    listed = [namespace["namespace"] for namespace in entries.ok("list_namespaces")["namespaces"]]
    assert listed == sorted([*KEYS, "default"])[: len(listed)]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["home"]
    for path in entries.root.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
    for name in KEYS:
        entries.ok("forget", key=name)
        deleted_count = entries.ok("clear_namespace", namespace=name)["deleted_count"]
        assert deleted_count == 1
    paths = list(entries.root.iterdir())
    assert paths == []


@pytest.mark.promise("004-9.3")
def test_any_text_is_a_value_a_key_and_a_namespace(tmp_path):
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)

    with open_session(tmp_path / "home", clock=Clock(), watch=False) as memory:
        entries = KeyValue(memory)

        @given(
            key=texts.filter(str.strip), namespace=texts.filter(str.strip), value=texts.filter(bool)
        )
        def round_trip(key: str, namespace: str, value: str) -> None:
            entries.remember(key, value, namespace)
            assert entries.value(key, namespace) == value
            assert (namespace, key) in entries.found(key, namespace=namespace, limit=400)
            text, failed = entries.call("recall", key=key, namespace=namespace)
            assert text.split("**value:** ", 1)[1].startswith(value)
            assert failed is False
            entries.ok("forget", key=key, namespace=namespace)
            assert entries.refused("recall", key=key, namespace=namespace).startswith("Key '")

        round_trip()
        assert entries.files() == {}


@pytest.mark.promise("004-9.4")
@pytest.mark.parametrize("sign", ["A", "世", "🎉", "\n", '"', "\x07"])
def test_a_long_value_comes_in_pieces_that_join_to_it(entries, sign):
    value = "".join(f"{number:04d}{sign}" * 6 for number in range(1250))
    entries.remember("long", value)
    joined = ""
    offset = 0
    count = 0
    while offset is not None:
        text, _ = entries.call("recall", key="long", offset=offset, format="json")
        fields = json.loads(text)
        assert fields["offset"] == offset
        assert fields["value_length"] == len(value)
        joined += fields["value"]
        offset = fields["next_offset"]
        count = fields["access_count"]
        assert fields["truncated"] == (offset is not None)
        # No longer beginning would have fitted
        if offset is not None:
            assert LIMIT - 12 < len(text) <= LIMIT

    assert joined == value
    assert count >= 2


@pytest.mark.promise("004-9.4")
def test_in_markdown_a_mark_follows_the_piece_shown(entries):
    entries.remember("long", "世" * 30_000)
    text, _ = entries.call("recall", key="long")
    assert len(text) == LIMIT
    assert "世... [TRUNCATED at 25000 chars]\n**created_at:** " in text
    shown_characters = text.count("世")
    assert text.endswith(
        f"**truncated:** True\n**value_length:** 30000\n**offset:** 0\n**next_offset:** {shown_characters}"
    )
    rest, _ = entries.call("recall", key="long", offset=shown_characters)
    assert rest.count("世") == 30_000 - shown_characters
    assert "TRUNCATED" not in rest
    assert rest.endswith(
        f"**truncated:** False\n**value_length:** 30000\n**offset:** {shown_characters}\n**next_offset:** None"
    )


@pytest.mark.promise("004-9.4")
def test_names_that_fill_a_reply_leave_room_for_the_value(entries):
    key = "🔑" * 1000
    namespace = "📦" * 1000
    stored = entries.ok("remember", key=key, value="🎉" * 200, namespace=namespace)
    assert stored["key"] == "🔑" * 470 + "... [TRUNCATED at 500 chars]"
    assert entries.value(key, namespace) == "🎉" * 200
    (result,) = entries.ok("search", query="🎉")["results"]
    assert result["key"].endswith("... [TRUNCATED at 100 chars]")
    assert entries.ok("list_namespaces")["namespaces"][0]["namespace"] == namespace
    entries.ok("forget", key=key, namespace=namespace)


def state(root: Path) -> dict[Path, tuple[bytes, int, int]]:
    """Bytes, time and inode of every file."""
    paths = root.rglob("*.md")
    files = {path: path.stat() for path in paths}
    return {
        file: (file.read_bytes(), status.st_mtime_ns, status.st_ino)
        for file, status in files.items()
    }


@pytest.mark.promise("004-9.8")
def test_recall_and_search_leave_every_file_as_it_was(entries):
    for number in range(20):
        entries.remember(f"k{number}", f"value {number}", namespace=f"n{number % 3}")
    before = state(entries.root)
    for number in range(20):
        assert (
            entries.ok("recall", key=f"k{number}", namespace=f"n{number % 3}")["access_count"] == 1
        )

    assert len(entries.found("value", limit=50)) == 20
    assert state(entries.root) == before


@pytest.mark.promise("004-9.10")
def test_no_reply_tells_a_path_but_where_the_entries_lie(entries, tmp_path):
    entries.remember("k", "v")
    entries.file("default/broken.md").mkdir()
    replies = [
        entries.call("recall", key="broken"),
        entries.call("remember", key="broken", value="v"),
        entries.call("forget", key="../../etc"),
        entries.call("clear_namespace", namespace="/"),
        entries.call("recall", key="k", namespace="n" * 300),
        entries.call("search", query="k", namespace=".."),
        entries.call("remember", key="k", value="v", namespace="n" * 300),
        entries.call("list_namespaces"),
    ]
    assert not [text for text, _ in replies if str(tmp_path) in text or "Traceback" in text]
    assert (
        replies[0]
        == replies[1]
        == ("## ❌ Error\n**Namespace 'default' cannot be read; run memory doctor**", True)
    )
    assert entries.ok("stats")["storage_path"] == str(tmp_path / "home" / "kv")


@pytest.mark.promise("004-9.12")
def test_what_an_editor_does_to_a_file_counts_at_once(entries):
    entries.remember("k", "before")
    file = entries.file("default/k.md")
    replace_in(file, "before", "after")
    assert entries.value("k") == "after"
    assert entries.found("after") == [("default", "k")]
    file.unlink()
    assert entries.refused("recall", key="k") == "Key 'k' not found in namespace 'default'"
    assert entries.refused("forget", key="k") == "Key 'k' not found in namespace 'default'"
    assert entries.ok("list_namespaces") == {"namespace_count": 0, "namespaces": []}


@pytest.mark.promise("004-9.12")
def test_a_file_made_by_hand_is_an_entry_named_by_its_place_or_its_frontmatter(entries):
    entries.put("Work/To Do.md", "buy milk\n")
    entries.put("Work/b.md", "---\nnamespace: home\nkey: garden\n---\nwater")
    entries.put("top.md", "at the top")
    assert entries.value("To Do", "Work") == "buy milk"
    assert entries.value("garden", "home") == "water"
    assert entries.value("top") == "at the top"
    assert sorted(entries.found("a", limit=50)) == [("default", "top"), ("home", "garden")]
    entries.remember("To Do", "done", "Work")
    assert entries.value("To Do", "Work") == "done"
    assert set(entries.files()) == {"Work/To Do.md", "Work/b.md", "top.md"}
    entries.ok("forget", key="To Do", namespace="Work")
    deleted_count = entries.ok("clear_namespace", namespace="home")["deleted_count"]
    assert deleted_count == 1
    assert set(entries.files()) == {"top.md"}


@pytest.mark.promise("004-9.1", "004-9.2")
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case_through_the_registry(case, tmp_path):
    clock = Clock()
    with open_session(tmp_path / "home", clock=clock, watch=False) as memory:
        entries = KeyValue(memory)
        play(
            case,
            lambda tool, arguments: entries.call(tool.removeprefix("memory_"), **arguments),
            clock.later,
        )


def at_the_start_of_a_second() -> None:
    """Entries of one case must not be written in two different seconds: their order is part of some replies."""
    while time.time() % 1 > 0.5:
        time.sleep(0.05)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for all cases, which ends well and says nothing on stderr."""
    user = tmp_path_factory.mktemp("stdio")
    with connected(user / "home", "--tools", "kv") as server:
        yield server
        assert server.close() == 0
        assert server.errors() == ""


@pytest.mark.promise("004-9.1", "004-9.2")
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case_over_mcp_stdio(case, server):
    def call(tool: str, arguments: dict) -> tuple[str, bool]:
        result = server.call(tool, arguments)
        assert set(result) == {"content", "isError"}
        (block,) = result["content"]
        assert set(block) == {"type", "text"}
        return block["text"], result["isError"]

    for namespace in json.loads(call("memory_list_namespaces", {"format": "json"})[0])[
        "namespaces"
    ]:
        call("memory_clear_namespace", {"namespace": namespace["namespace"]})
    if any(step.get("tool") == "memory_search" for step in case["steps"]):
        at_the_start_of_a_second()
    play(case, call, time.sleep)


HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
TOOLS = {
    "memory_remember": (
        "key*,value*,namespace,ttl_seconds:integer,format",
        (False, False, True, False),
    ),
    "memory_recall": ("key*,namespace,format,offset:integer", (True, False, True, False)),
    "memory_forget": ("key*,namespace,format", (False, True, True, False)),
    "memory_search": (
        "query*,namespace,limit:integer,format,offset:integer",
        (True, False, True, True),
    ),
    "memory_list_namespaces": ("format,offset:integer", (True, False, True, True)),
    "memory_clear_namespace": ("namespace*,format", (False, True, True, False)),
    "memory_stats": ("format", (True, False, True, True)),
}


@pytest.mark.promise("004-9.1", "004-9.2")
def test_agent_memory_is_a_server_of_that_name_with_exactly_these_tools(tmp_path, monkeypatch):
    monkeypatch.delenv("AGENT_MEMORY_PATH", raising=False)
    with connected(tmp_path / "home", "--as", "agent-memory") as server:
        assert server.hello["serverInfo"] == {"name": "agent-memory", "version": __version__}
        assert server.hello["instructions"].count(". ") == 0
        tools_by_name = {tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]}
    assert list(tools_by_name) == list(TOOLS)
    for name, (arguments, hints) in TOOLS.items():
        schema = tools_by_name[name]["inputSchema"]
        assert schema["additionalProperties"] is False
        required = schema.get("required", [])
        parameters = [
            parameter
            + ("*" if parameter in required else "")
            + (":integer" if inner["type"] == "integer" else "")
            for parameter, inner in schema["properties"].items()
        ]
        assert ",".join(parameters) == arguments
        assert tuple(tools_by_name[name]["annotations"][hint] for hint in HINTS) == hints
        assert schema["properties"]["format"]["enum"] == ["markdown", "json"]


KILLS = int(os.environ.get("MEMORANDA_KILLS", "20"))


def started(home: Path, user: Path, count: int) -> list[ServerProcess]:
    """So many servers on one home, after their handshakes; they start side by side."""
    command = memory_mcp(home, "--tools", "kv")
    servers = [ServerProcess(command=command, user=user).__enter__() for _ in range(count)]
    for server in servers:
        server.handshake()
    return servers


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared") / "home"


@pytest.fixture(scope="module")
def servers(home: Path) -> Iterator[list[ServerProcess]]:
    """Four servers on one home, where no two tests use the same namespace."""
    servers = started(home, home.parent, 4)
    yield servers
    for server in servers:
        server.__exit__()


def at_once(
    server: ServerProcess, tool: str, calls: list[dict[str, Any]]
) -> Callable[[], list[bool]]:
    """Send all calls without waiting; the function waits and tells which failed."""
    for arguments in calls:
        server.send("tools/call", {"name": tool, "arguments": arguments})
    return lambda: [server.receive()["result"]["isError"] for _ in calls]


@pytest.mark.promise("004-9.6")
def test_four_servers_with_fifty_keys_each_keep_all_two_hundred(servers, home):
    keys = {}
    for n in range(4):
        for m in range(50):
            keys[(n, m)] = {"key": f"k{n}-{m}", "value": f"value {n} {m}", "namespace": "n"}
    waiting = []
    for n, writing_server in enumerate(servers):
        keys_of_server = [keys[n, m] for m in range(50)]
        waiting.append(at_once(writing_server, "memory_remember", keys_of_server))
    for answers in waiting:
        assert not any(answers())
    paths = list((home / "kv" / "n").iterdir())
    assert len(paths) == 200
    with open_session(home) as memory:
        entries = KeyValue(memory)
        for key in keys.values():
            assert entries.value(key["key"], "n") == key["value"]
        active_entries = entries.ok("list_namespaces")["namespaces"][0]["active_entries"]
        assert active_entries == 200


@pytest.mark.promise("004-9.6")
def test_two_servers_with_forty_values_each_for_one_key_leave_one_and_seventy_nine_in_the_history(
    servers, home
):
    values_written = []
    waiting = []
    for n, writing_server in enumerate(servers[:2]):
        values_of_server = [f"value {n} {m}" for m in range(40)]
        values_written += values_of_server
        rows = [{"key": "k", "value": value, "namespace": "one"} for value in values_of_server]
        waiting.append(at_once(writing_server, "memory_remember", rows))
    for answers in waiting:
        assert not any(answers())
    with open_session(home) as memory:
        entries = KeyValue(memory)
        names = [path.name for path in (home / "kv" / "one").iterdir()]
        assert names == ["k.md"]
        values = {entries.value("k", "one")}
        changes = memory.log("kv/one/k.md", limit=0)
        replaced = []
        for change in changes:
            replaced += [text.old for text in change.texts() if text.old]
        assert len(replaced) == 79
        texts = [memory.engine.ledger.history.text(old, "k").decode() for old in replaced]
        values |= {text.rsplit("---\n")[-1].rstrip("\n") for text in texts}
        assert values == set(values_written)


@pytest.mark.promise("004-9.6")
def test_two_hundred_recalls_at_once_count_two_hundred(servers, home):
    entry = {"key": "counted", "namespace": "counted"}
    servers[0].text("memory_remember", {**entry, "value": "v"})
    waiting = [at_once(server, "memory_recall", [entry] * 50) for server in servers]
    for answers in waiting:
        assert not any(answers())
    count = servers[0].text("memory_recall", entry)
    # There a server asks for others' every ten seconds
    assert "**access_count:** 201" in count or in_database()
    with open_session(home, watch=False) as memory:
        access_count = memory.find("counted", "kv").access_count
        assert access_count == 201


@pytest.mark.slow
@pytest.mark.promise("004-9.7")
def test_servers_killed_at_random_moments_keep_every_acknowledged_value(tmp_path):
    """Two servers live at a time, so that one starts while the other does."""
    moment = random.Random(4)
    acknowledged = dict[str, str]()
    for life in range((KILLS + 1) // 2):
        servers = started(tmp_path / "home", tmp_path, 2)
        sent = {}
        for n, writing_server in enumerate(servers):
            sent[writing_server] = [
                (f"k{n}-{m % 7}", f"value {life} {m} " + "x" * 300) for m in range(200)
            ]
        for server in servers:
            server.text("memory_remember", {"key": "first", "value": "x"})
        for server in servers:
            for key, value in sent[server]:
                server.send(
                    "tools/call",
                    {"name": "memory_remember", "arguments": {"key": key, "value": value}},
                )
            threading.Timer(moment.uniform(0.0, 0.25), server.process.kill).start()
        possible: dict[str, list[str]] = {}
        for server, pairs in sent.items():
            answers = server.rest()
            for answer in answers:
                assert not answer["result"]["isError"]
            acknowledged |= dict(pairs[: len(answers)])
            for key, value in pairs[len(answers) :]:
                possible.setdefault(key, []).append(value)
            server.__exit__()
        with open_session(tmp_path / "home", watch=False) as memory:
            entries = KeyValue(memory)
            for key, value in acknowledged.items():
                acknowledged[key] = entries.value(key)
                assert acknowledged[key] in (value, *possible.get(key, ()))
            assert memory.unreadable == {}

    paths = list((tmp_path / "home").rglob(".tmp-*"))
    assert paths == []
