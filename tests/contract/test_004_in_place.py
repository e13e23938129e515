"""Contract 004, 7 and 9.9: the JSON files of the agent-memory server, used in place."""

from __future__ import annotations

import errno
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.key_value import CASES, NAMES, KeyValue, play
from memoranda.engine import open_session
from memoranda.faces.kv import JsonFolder, toolset
from memoranda.faces.tool import Registry
from memoranda.sources import locked_file
from movable_clock import Clock
from serve.process import ServerProcess, connected

pytestmark = pytest.mark.promise("004-9.9")

ALICE = {
    "key": "name",
    "value": "Zoë",
    "created_at": "2026-05-01T08:00:00Z",
    "accessed_at": "2026-05-02T08:00:00Z",
    "expires_at": None,
    "access_count": 7,
}


class Folder(KeyValue):
    """The tools over a folder of JSON files."""

    def __init__(self, memory: Any, place: Path):
        self.place = JsonFolder(str(place))
        super().__init__(memory, Registry([toolset(self.place)]))
        self.root = place

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The entries in a file, which is in the form that server writes."""
        text = self.file(name).read_text(encoding="ascii")
        rows = json.loads(text)
        assert text.rstrip("\n") == json.dumps(rows, indent=2)
        return rows


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def entries(tmp_path: Path, clock: Clock) -> Iterator[Folder]:
    with open_session(tmp_path / "home", clock=clock, watch=False) as memory:
        yield Folder(memory, tmp_path / "kept")


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_case_of_the_tools_holds_for_json_files_too(case, tmp_path, clock):
    with open_session(tmp_path / "home", clock=clock, watch=False) as memory:
        entries = Folder(memory, tmp_path / "kept")
        play(
            case,
            lambda tool, arguments: entries.call(tool.removeprefix("memory_"), **arguments),
            clock.later,
        )


def test_a_new_entry_has_the_form_of_that_server(entries):
    entries.remember("name", "Zoë")
    entries.remember("token", "t", ttl=60)
    now = "2026-05-07T10:00:00Z"
    times = {"created_at": now, "accessed_at": now}

    assert entries.rows("default.json") == [
        {"key": "name", "value": "Zoë", **times, "expires_at": None, "access_count": 0},
        {"key": "token", "value": "t", **times, "expires_at": 1778148060.25, "access_count": 0},
    ]
    assert list(entries.rows("default.json")[0]) == list(ALICE)
    assert json.loads(entries.file("_meta.json").read_text()) == {
        "total_entries": 2,
        "namespace_count": 1,
    }
    paths = entries.root.iterdir()
    assert {oct(path.stat().st_mode & 0o777) for path in paths} == {"0o600"}
    assert entries.root.stat().st_mode & 0o777 == 0o700


def test_entries_of_that_server_are_read_and_its_fields_survive(entries):
    strange_entry = {**ALICE, "importance": [1, {"a": None}]}
    later_entry = {**ALICE, "key": "later", "expires_at": 1893456000.5}
    entries.put("default.json", json.dumps([strange_entry, later_entry], indent=2) + "\n").chmod(
        0o640
    )
    fields = entries.ok("recall", key="name")
    assert (fields["value"], fields["created_at"], fields["access_count"]) == (
        "Zoë",
        ALICE["created_at"],
        8,
    )
    assert entries.ok("recall", key="later")["expires_at"] == "2030-01-01T00:00:00.500Z"
    entries.remember("new", "n")
    assert entries.rows("default.json")[:2] == [strange_entry, later_entry]
    entries.remember("name", "Ann")
    moved = entries.rows("default.json")
    assert [row["key"] for row in moved] == ["later", "new", "name"]
    assert moved[2] == {
        **moved[2],
        "value": "Ann",
        "access_count": 0,
        "importance": strange_entry["importance"],
    }
    assert entries.file("default.json").read_bytes().endswith(b"]\n")
    assert entries.file("default.json").stat().st_mode & 0o777 == 0o640


def test_times_are_read_in_both_forms_and_those_of_other_entries_stay(entries, clock):
    iso = {**ALICE, "expires_at": "2026-05-07T10:00:05Z", "accessed_at": 1777968000.5}
    entries.put("default.json", json.dumps([iso]))
    expires_at = entries.ok("recall", key="name")["expires_at"]
    assert expires_at == "2026-05-07T10:00:05.000Z"
    entries.remember("other", "o")
    assert entries.rows("default.json")[0] == iso
    clock.later(6)
    assert entries.refused("recall", key="name") == "Key 'name' has expired"
    keys = [row["key"] for row in entries.rows("default.json")]
    assert keys == ["other"]


NAMES_APART = ("a/b", "a b", "a_b", "A_B", "..", "_meta", "_meta_", "é" * 300, "x" * 300)


def test_namespaces_that_share_a_file_stay_apart(entries):
    for name in NAMES_APART:
        entries.remember("k", f"in {name}", name)
    assert [entries.value("k", name) for name in NAMES_APART] == [
        f"in {name}" for name in NAMES_APART
    ]
    listed = [namespace["namespace"] for namespace in entries.ok("list_namespaces")["namespaces"]]
    assert listed == sorted(NAMES_APART)
    assert [row.get("namespace") for row in entries.rows("a_b.json")] == ["a/b", "a b", None]
    assert [row.get("namespace") for row in entries.rows("_meta_.json")] == ["_meta", None]
    assert json.loads(entries.file("_meta.json").read_text()) == {
        "total_entries": 9,
        "namespace_count": 9,
    }
    assert entries.ok("clear_namespace", namespace="a/b")["deleted_count"] == 1
    assert (
        entries.refused("recall", key="k", namespace="a/b")
        == "Key 'k' not found in namespace 'a/b'"
    )
    assert entries.value("k", "a_b") == "in a_b"


def test_a_namespace_field_that_means_another_file_is_only_a_field(entries):
    entries.put("default.json", json.dumps([{**ALICE, "namespace": "elsewhere"}]))
    assert entries.value("name") == "Zoë"
    namespaces = [
        namespace["namespace"] for namespace in entries.ok("list_namespaces")["namespaces"]
    ]
    assert namespaces == ["default"]


BROKEN = {
    "torn": b'[{"key": "a", "val',
    "an object": b'{"key": "a"}',
    "a text inside": b'["a"]',
    "no key": b'[{"value": "a"}]',
    "a number as key": b'[{"key": 1, "value": "a"}]',
    "no UTF-8": b'[{"key": "\xff"}]',
    "no number": b'[{"key": "a", "n": NaN}]',
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("remember", {"key": "a", "value": "v"}),
    ("recall", {"key": "a"}),
    ("forget", {"key": "a"}),
    ("search", {"query": "a", "namespace": "default"}),
    ("clear_namespace", {"namespace": "default"}),
]


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_no_array_of_entries_is_never_written(entries, data):
    file = entries.put("default.json", "")
    file.write_bytes(data)
    for tool, arguments in CALLS:
        assert (
            entries.refused(tool, **arguments)
            == "Namespace 'default' cannot be read; run memory doctor"
        )
    for tool, arguments in (("search", {"query": "a"}), ("list_namespaces", {}), ("stats", {})):
        unreadable = entries.ok(tool, **arguments)["unreadable"]
        assert unreadable == "default"
    entries.remember("k", "v", "sound")
    keys = [result["key"] for result in entries.ok("search", query="k")["results"]]
    assert keys == ["k"]
    namespaces = [
        namespace["namespace"] for namespace in entries.ok("list_namespaces")["namespaces"]
    ]
    assert namespaces == ["sound"]
    entries.place.close()
    assert file.read_bytes() == data
    assert sorted(entries.files()) == ["_meta.json", "default.json", "sound.json"]


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_touched(entries, kind):
    entries.root.mkdir()
    place = entries.file("default.json")
    place.mkdir() if kind == "folder" else os.mkfifo(place)
    for tool, arguments in CALLS:
        assert (
            entries.refused(tool, **arguments)
            == "Namespace 'default' cannot be read; run memory doctor"
        )
    assert [path.name for path in entries.root.iterdir()] == ["default.json"]


def test_a_broken_count_file_stays_as_it_is_and_is_in_nobodys_way(entries):
    entries.put("_meta.json", "[1")
    entries.remember("k", "v")
    assert entries.value("k") == "v"
    assert entries.file("_meta.json").read_text() == "[1"


def test_an_empty_file_is_an_empty_array(entries):
    entries.put("default.json", "")
    namespace_count = entries.ok("list_namespaces")["namespace_count"]
    assert namespace_count == 0
    entries.remember("k", "v")
    assert entries.value("k") == "v"
    entries.ok("forget", key="k")
    text = entries.file("default.json").read_text()
    assert text == "[]"


def test_what_only_looks_makes_no_file(entries):
    entries.refused("recall", key="k")
    entries.refused("forget", key="k")
    entries.ok("clear_namespace", namespace="nobody")

    root = entries.root
    stats = entries.ok("stats")
    assert stats["storage_path"] == str(root)
    matches = entries.ok("search", query="k")
    assert matches["total_matches"] == 0
    assert not root.exists()


def test_recalls_are_counted_at_once_and_added_to_the_files_at_the_end_only(entries, clock):
    entries.put("default.json", json.dumps([ALICE], indent=2))
    before = entries.file("default.json").read_bytes()
    clock.later(60)
    counts = [entries.ok("recall", key="name")["access_count"] for _ in range(3)]
    assert counts == [8, 9, 10]

    access_count = entries.ok("search", query="Zo")["results"][0]["access_count"]
    assert access_count == 10

    content = entries.file("default.json").read_bytes()
    assert content == before


def test_recalls_are_in_the_files_once_their_process_ended(entries, clock):
    entries.put("default.json", json.dumps([ALICE], indent=2))
    clock.later(60)
    for _ in range(3):
        entries.ok("recall", key="name")
    entries.place.close()
    expected = {**ALICE, "access_count": 10, "accessed_at": "2026-05-07T10:01:00Z"}
    rows = entries.rows("default.json")
    assert rows == [expected]

    reply = entries.ok("recall", key="name")
    assert reply["access_count"] == 11


def test_process_that_ends_without_a_recall_leaves_the_files_as_they_were(entries):
    entries.put("default.json", json.dumps([ALICE], indent=2))
    entries.ok("recall", key="name")
    entries.place.close()
    file = entries.file("default.json")
    after = file.read_bytes()
    entries.place.close()
    content = file.read_bytes()
    assert content == after


def test_recalls_of_an_entry_replaced_or_forgotten_do_not_count_for_the_next(entries):
    for end in (lambda: None, lambda: entries.ok("forget", key="k")):
        entries.remember("k", "v")
        entries.value("k")
        end()
        entries.remember("k", "w")
        assert entries.ok("recall", key="k")["access_count"] == 1


def test_a_change_by_another_program_is_in_the_next_reply(entries):
    entries.remember("k", "v")
    rows = entries.rows("default.json")
    entries.file("default.json").write_text(json.dumps([{**rows[0], "value": "by hand"}]))
    assert entries.value("k") == "by hand"
    entries.file("default.json").unlink()
    assert entries.refused("recall", key="k") == "Key 'k' not found in namespace 'default'"


def test_expired_entries_of_all_files_end_with_the_next_change(entries, clock):
    entries.remember("secret", "hush", "one", ttl=5)
    entries.remember("k", "v", "one")
    clock.later(6)
    entries.remember("k", "v", "two")

    state = entries.memory.home / ".memoranda"
    assert b"hush" not in b"".join(entries.files().values())
    holding = [path for path in state.rglob("*") if b"hush" in _bytes(path)]
    assert holding == []


def _bytes(file: Path) -> bytes:
    if file.is_file():
        return file.read_bytes()
    return b""


def test_a_link_to_a_file_stays_a_link(entries, tmp_path):
    target = tmp_path / "elsewhere.json"
    target.write_text(json.dumps([ALICE]))
    entries.root.mkdir()
    entries.file("default.json").symlink_to(target)
    entries.remember("k", "v")

    assert entries.file("default.json").is_symlink()
    keys = [row["key"] for row in json.loads(target.read_text())]
    assert keys == ["name", "k"]


def test_a_full_disk_is_said_and_leaves_everything_as_it_was(entries, monkeypatch):
    entries.remember("k", "v")
    before = entries.files()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(locked_file.files, "write_file", full)
    for namespace in ("default", "new"):
        problem = f"Could not write {namespace}.json: the disk is full. Nothing was changed."
        arguments = {"key": "k", "value": "w", "namespace": namespace}
        assert (
            entries.refused("remember", **arguments)
            == f"Internal error in memory_remember: {problem}"
        )
    assert entries.files() == before


HARD = ("\n\nx\n", "a\r\nb", "a\0b", "---\nx", "  ", "\U0001f980", "‏שלום", '"\\', "y" * 100_000)


def test_hard_values_and_keys_come_back_exactly(entries):
    for n, value in enumerate(HARD):
        entries.remember(f" {value[:900]} {n} ", value)
    for n, value in enumerate(HARD):
        assert entries.value(f" {value[:900]} {n} ") == value

    assert len(entries.rows("default.json")) == len(HARD)


@pytest.fixture
def serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers `--as agent-memory` over the folder, each on a new home if asked to."""
    monkeypatch.setenv("AGENT_MEMORY_PATH", str(tmp_path / "kept"))
    started: list[ServerProcess] = []

    def start(home: str = "home") -> ServerProcess:
        started.append(connected(tmp_path / home, "--as", "agent-memory"))
        return started[-1]

    yield start
    for server in started:
        server.__exit__()


def terminated(server: ServerProcess) -> int:
    """The exit status after SIGTERM."""
    server.process.terminate()
    return server.process.wait(60)


@pytest.mark.parametrize("end", [ServerProcess.close, terminated])
def test_the_server_serves_the_folder_and_adds_the_recalls_when_it_ends(serve, tmp_path, end):
    (tmp_path / "kept").mkdir()
    file = tmp_path / "kept" / "default.json"
    file.write_text(json.dumps([ALICE], indent=2))
    server = serve()

    text = server.text("memory_recall", {"key": "name"})
    assert "**value:** Zoë" in text
    document = json.loads(file.read_text())
    assert document == [ALICE]
    assert end(server) == 0
    assert server.errors() == ""
    access_count = json.loads(file.read_text())[0]["access_count"]
    assert access_count == 8


@pytest.mark.parametrize(
    ("variable", "arguments"),
    [
        ("", ["--as", "agent-memory"]),
        ("~/.agent-memory", ["--tools", "kv"]),
        ("~/.agent-memory", ["--tools", "all"]),
    ],
)
def test_the_folder_in_the_users_home_or_the_one_the_variable_names_is_used(
    tmp_path, monkeypatch, variable, arguments
):
    monkeypatch.setenv("AGENT_MEMORY_PATH", variable)
    if not variable:
        monkeypatch.delenv("AGENT_MEMORY_PATH")
        (tmp_path / ".agent-memory").mkdir()
    with connected(tmp_path / "home", *arguments) as server:
        server.text("memory_remember", {"key": "k", "value": "v"})
        assert server.close() == 0

    assert (tmp_path / ".agent-memory" / "default.json").exists()
    assert not (tmp_path / "home" / "kv" / "default").exists()


def test_a_tool_called_once_uses_the_folder_and_counts_its_recall(terminal, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENT_MEMORY_PATH", str(tmp_path / "kept"))
    (tmp_path / "kept").mkdir()
    file = tmp_path / "kept" / "default.json"
    file.write_text(json.dumps([ALICE], indent=2))

    assert "**value:** Zoë" in terminal.ok("call", "memory_recall", '{"key": "name"}')
    access_count = json.loads(file.read_text())[0]["access_count"]
    assert access_count == 8


@pytest.mark.parametrize("homes", [("home", "home"), ("one", "two")])
def test_two_servers_on_one_folder_lose_nothing(serve, tmp_path, homes):
    servers = [serve(home) for home in homes]
    for n in range(40):
        for m, server in enumerate(servers):
            server.send(
                "tools/call",
                {"name": "memory_remember", "arguments": {"key": f"k{m}-{n}", "value": "v"}},
            )
    for server in servers:
        assert not any(server.receive()["result"]["isError"] for _ in range(40))
    for server in servers:
        for _ in range(20):
            server.send("tools/call", {"name": "memory_recall", "arguments": {"key": "k0-0"}})
    for server in servers:
        assert not any(server.receive()["result"]["isError"] for _ in range(20))
        assert server.close() == 0
    rows = {row["key"]: row for row in json.loads((tmp_path / "kept" / "default.json").read_text())}
    assert len(rows) == 80
    assert rows["k0-0"]["access_count"] == 40
    meta = json.loads((tmp_path / "kept" / "_meta.json").read_text())
    assert meta == {"total_entries": 80, "namespace_count": 1}
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "_meta.json",
        "default.json",
    ]


def test_servers_killed_while_they_write_leave_whole_files_with_every_acknowledged_value(
    serve, tmp_path
):
    chance = random.Random(4)
    acknowledged = 0
    for n in range(5):
        server = serve()
        for m in range(30):
            server.send(
                "tools/call",
                {"name": "memory_remember", "arguments": {"key": f"{n}-{m}", "value": "v" * 999}},
            )
        for _ in range(chance.randrange(1, 25)):
            server.receive()
            acknowledged += 1
        server.process.kill()
        server.process.wait()
    last = serve()
    last.text("memory_remember", {"key": "last", "value": "v"})
    assert last.close() == 0
    rows = json.loads((tmp_path / "kept" / "default.json").read_text())
    assert len(rows) >= acknowledged + 1
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "_meta.json",
        "default.json",
    ]
