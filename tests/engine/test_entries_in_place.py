"""Entries in the JSON files of another program: their history, undo, erasing, and a writer that
dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.engine.entries import EntryExpired, Unreadable
from memoranda.engine.json_entries import JsonEntries, JsonEntryFolder
from memoranda.errors import CannotUndo
from movable_clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", clock=clock, watch=False) as memory:
        yield memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def entries(memory: MemorySession, folder: Path) -> JsonEntries:
    return JsonEntryFolder(folder).entries(memory.as_caller("claude", "mcp"))


def rows(folder: Path, name: str = "default") -> list[dict[str, Any]]:
    return json.loads((folder / f"{name}.json").read_text())


def values(folder: Path, name: str = "default") -> dict[str, str]:
    return {row["key"]: row["value"] for row in rows(folder, name)}


def test_each_change_is_in_the_log_with_its_author(
    memory: MemorySession, entries: JsonEntries, folder: Path
) -> None:
    entries.put("default", "name", "Ann")
    entries.put("default", "name", "Zoë")
    entries.remove("default", "name")
    changes = memory.log()
    assert [(change.verb, change.path, change.agent) for change in changes] == [
        ("delete", "default.json:name", "claude"),
        ("overwrite", "default.json:name", "claude"),
        ("write", "default.json:name", "claude"),
    ]
    roots = [change.root for change in changes]
    assert roots == [str(folder)] * 3
    of_entry = memory.log(f"{folder}/default.json:name")
    numbers = [change.number for change in of_entry]
    assert numbers == [3, 2, 1]


def test_changes_go_back_in_any_order_and_come_again(
    memory: MemorySession, entries: JsonEntries, folder: Path
) -> None:
    entries.put("default", "name", "Ann")
    entries.put("default", "name", "Zoë")
    entries.put("default", "town", "Kyoto")
    entries.count(entries.get("default", "name"))
    memory.undo(2)
    assert values(folder) == {"name": "Ann", "town": "Kyoto"}
    memory.undo()
    assert values(folder) == {"name": "Ann"}
    memory.undo(5)
    memory.undo(4)
    assert values(folder) == {"name": "Zoë", "town": "Kyoto"}
    memory.undo(2)
    memory.undo(1)
    assert values(folder) == {"town": "Kyoto"}


def test_what_came_later_is_in_the_way_and_named(
    memory: MemorySession, entries: JsonEntries, folder: Path
) -> None:
    entries.put("default", "name", "Ann")
    entries.put("default", "name", "Zoë")
    with pytest.raises(CannotUndo, match=r"default\.json:name changed later \(#2\)"):
        memory.undo(1)
    entries.remove("default", "name")
    entries.put("default", "name", "Bob")
    with pytest.raises(CannotUndo, match="changed later"):
        memory.undo(3)
    text = (folder / "default.json").read_text().replace("Bob", "Eve")
    (folder / "default.json").write_text(text)
    with pytest.raises(CannotUndo, match="changed later"):
        memory.undo(4)
    assert values(folder) == {"name": "Eve"}


def test_fields_of_the_other_program_come_back_at_their_place(
    memory: MemorySession, entries: JsonEntries, folder: Path
) -> None:
    folder.mkdir()
    row = {"created_at": "2026-05-01T08:00:00Z", "expires_at": None, "access_count": 3}
    before = [
        {"key": key, "value": key * 3, **row, "importance": [1, {"a": None}]} for key in "abc"
    ]
    text = json.dumps(before, indent=2) + "\n"
    (folder / "default.json").write_text(text)
    entries.put("default", "b", "new")
    entries.remove("default", "a")
    memory.undo()
    memory.undo()
    assert (folder / "default.json").read_text() == text
    entries.clear("default")
    memory.undo()
    assert (folder / "default.json").read_text() == text


def test_an_entry_with_a_time_to_live_leaves_no_value(
    memory: MemorySession, entries: JsonEntries, folder: Path, clock: Clock
) -> None:
    entries.put("default", "token", "zq4711secret", ttl=60)
    entries.put("default", "name", "Ann")
    private = memory.engine.layout.private
    ledger_bytes = b"".join(path.read_bytes() for path in private.glob("ledger.db*"))
    assert b"zq4711secret" not in ledger_bytes
    memory.undo(1)
    assert values(folder) == {"name": "Ann"}
    entries.put("default", "token", "zq4711secret", ttl=60)
    entries.remove("default", "token")
    with pytest.raises(CannotUndo, match="time to live"):
        memory.undo()
    entries.put("default", "token", "again", ttl=60)
    clock.later(61)
    with pytest.raises(EntryExpired):
        entries.get("default", "token")
    # That it expired is upkeep: the latest change is the one before
    assert memory.log()[0].verb == "expire"
    with pytest.raises(CannotUndo):
        memory.undo()
    assert values(folder) == {"name": "Ann"}


def test_erasing_an_entry_leaves_nothing_of_it_in_the_history(
    memory: MemorySession, entries: JsonEntries, folder: Path, tmp_path: Path
) -> None:
    entries.put("default", "zq4711key", "zq4712first value")
    entries.put("default", "other", "stays here")
    entries.put("default", "zq4711key", "zq4713second value")
    entries.put("default", "zq4714gone", "zq4715value of it")
    entries.remove("default", "zq4714gone")
    entries.clear("default")
    memory.undo()
    for key in ("zq4711key", "zq4714gone"):
        erasure = memory.erase(f"{folder}/default.json:{key}")
        assert erasure.remains == ()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    for word in (b"zq4711", b"zq4712", b"zq4713", b"zq4714", b"zq4715"):
        paths = [path for path in files if word in path.read_bytes()]
        assert paths == []
    assert values(folder) == {"other": "stays here"}
    written = next(change for change in memory.log(limit=0) if change.path == "default.json:other")
    memory.undo(written.number)
    assert values(folder) == {}


KILLED = """
import os, sys
from memoranda.engine import open_session
from memoranda.engine.json_entries import JsonEntryFolder
home, folder, event, count = sys.argv[1:]
left = int(count)
def dies(name, arguments):
    global left
    if name == event and folder in str(arguments):
        left -= 1
        if left < 0:
            os._exit(9)
with open_session(home, watch=False) as memory:
    entries = JsonEntryFolder(folder).entries(memory)
    sys.addaudithook(dies)
    entries.put("default", "name", "second")
    entries.remove("default", "gone")
os._exit(0)
"""


@pytest.mark.parametrize("event", ["open", "os.rename"])
@pytest.mark.parametrize("count", range(6))
def test_a_writer_that_dies_leaves_file_and_history_alike(
    tmp_path: Path, folder: Path, event: str, count: int
) -> None:
    home = tmp_path / "home"
    with open_session(home, watch=False) as memory:
        entries = JsonEntryFolder(folder).entries(memory)
        entries.put("default", "name", "first")
        entries.put("default", "gone", "x")
    command = [sys.executable, "-c", KILLED, str(home), str(folder), event, str(count)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ)
    assert process.returncode in (0, 9), process.stderr
    with open_session(home, watch=False) as memory:
        verbs = [change.verb for change in memory.log(limit=0)][:-2]
        now = values(folder)
        assert verbs in ([], ["overwrite"], ["delete", "overwrite"])
        assert now.get("name") == ("second" if "overwrite" in verbs else "first")
        assert ("gone" in now) == ("delete" not in verbs)
        for _ in verbs:
            memory.undo()
        assert values(folder) == {"name": "first", "gone": "x"}


def test_counts_of_recalls_reach_the_file_as_a_change_that_nobody_sees(
    memory: MemorySession, folder: Path
) -> None:
    entry_folder = JsonEntryFolder(folder)
    entries = entry_folder.entries(memory)
    for key in ("name", "town", "street"):
        entries.put("default", key, "Ann")
    entries.put("default", "name", "Zoë")
    for _ in range(3):
        entries.count(entries.get("default", "town"))
    entry_folder.fold()
    keys = [row["key"] for row in rows(folder)]
    assert keys == ["town", "street", "name"]
    access_counts = [row["access_count"] for row in rows(folder)]
    assert access_counts == [3, 0, 0]
    history = memory.engine.ledger.history
    verb = next(history.changes()).verb
    assert verb == "fold"
    verbs = [change.verb for change in memory.log()]
    assert verbs == ["overwrite", "write", "write", "write"]
    memory.undo(2)
    keys = [row["key"] for row in rows(folder)]
    assert keys == ["street", "name"]
    undone = memory.log()[0]
    memory.undo(undone.number)
    access_counts = [row["access_count"] for row in rows(folder)]
    assert access_counts == [3, 0, 0]


def test_counts_of_many_large_entries_are_folded_whatever_the_limit(
    memory: MemorySession, folder: Path
) -> None:
    entry_folder = JsonEntryFolder(folder)
    entries = entry_folder.entries(memory)
    object.__setattr__(memory.engine.settings, "note_bytes", 1000)
    for key in ("name", "town", "street"):
        entries.put("default", key, "x" * 500)
        entries.count(entries.get("default", key))
    memory.close()

    access_counts = [row["access_count"] for row in rows(folder)]
    assert access_counts == [1, 1, 1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("7", "8", id="text"),
        pytest.param(7.0, 8.0, id="fraction-of-zero"),
        pytest.param(7, 8, id="whole-number"),
        pytest.param("many", 1, id="no-number"),
        pytest.param(None, 1, id="null"),
        pytest.param(True, 1, id="truth-value"),
        pytest.param("9" * 5000, 1, id="too-many-digits"),
    ],
)
def test_a_count_of_another_program_goes_on_in_its_form(
    memory: MemorySession, folder: Path, before: Any, after: Any
) -> None:
    folder.mkdir()
    row = {"key": "name", "value": "Ann", "access_count": before}
    (folder / "default.json").write_text(json.dumps([row]))
    entry_folder = JsonEntryFolder(folder)
    entries = entry_folder.entries(memory)

    entries.count(entries.get("default", "name"))
    entry_folder.fold()

    count = rows(folder)[0]["access_count"]
    assert count == after
    assert type(count) is type(after)


def test_a_count_written_as_a_text_is_told_as_a_number(
    memory: MemorySession, entries: JsonEntries, folder: Path
) -> None:
    folder.mkdir()
    row = {"key": "name", "value": "Ann", "access_count": "7"}
    (folder / "default.json").write_text(json.dumps([row]))
    assert entries.get("default", "name").access_count == 7


@pytest.mark.parametrize(
    ("expires_at", "shown"),
    [
        (1893456000, "2030-01-01T00:00:00+00:00"),
        (1893456000000, "2030-01-01T00:00:00+00:00"),
        ("1893456000", "2030-01-01T00:00:00+00:00"),
        ("1893456000.5", "2030-01-01T00:00:00.500000+00:00"),
        ("1893456000000", "2030-01-01T00:00:00+00:00"),
        ("2030-01-01", "2030-01-01T00:00:00+00:00"),
        ("20300101", "2030-01-01T00:00:00+00:00"),
        ("2030-01-01T00:00:00", "2030-01-01T00:00:00+00:00"),
        ("2030-01-01T02:00:00+02:00", "2030-01-01T00:00:00+00:00"),
        ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00+00:00"),
    ],
)
def test_an_expiry_in_any_form_of_a_time_is_read(
    entries: JsonEntries, folder: Path, expires_at: object, shown: str
) -> None:
    folder.mkdir()
    row = {"key": "token", "value": "t", "expires_at": expires_at}
    (folder / "default.json").write_text(json.dumps([row]))
    expires = entries.get("default", "token").expires
    assert expires is not None
    assert expires.isoformat() == shown


@pytest.mark.parametrize("expires_at", ["0", 0, -5, "-5", "1767225600", "2026-01-01T00:00:00z"])
def test_an_expiry_in_the_past_ends_the_entry(
    entries: JsonEntries, folder: Path, expires_at: object
) -> None:
    folder.mkdir()
    row = {"key": "token", "value": "t", "expires_at": expires_at}
    (folder / "default.json").write_text(json.dumps([row]))
    with pytest.raises(EntryExpired):
        entries.get("default", "token")


@pytest.mark.parametrize(
    "expires_at", ["soon", "", True, [1], "10:30", 10**18, "9" * 400, "2030-13-01", "٣٠"]
)
def test_an_expiry_that_is_no_time_leaves_the_file_unread_and_as_it_was(
    entries: JsonEntries, folder: Path, expires_at: object
) -> None:
    folder.mkdir()
    file = folder / "default.json"
    file.write_text(json.dumps([{"key": "token", "value": "t", "expires_at": expires_at}]))
    data = file.read_bytes()
    with pytest.raises(Unreadable):
        entries.get("default", "token")
    with pytest.raises(Unreadable):
        entries.put("default", "other", "v")
    assert file.read_bytes() == data
