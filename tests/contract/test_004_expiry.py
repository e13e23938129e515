"""Contract 004, 4 and 9.5: a time to live ends an entry everywhere, and for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.key_value import KeyValue
from editing import replace_in
from memoranda import NotFound, Query, faces
from memoranda.engine import open_session
from memoranda.engine.completion import permalinks
from memoranda.engine.entries import NoteEntries
from memoranda.errors import CannotUndo
from movable_clock import Clock
from serve.process import connected

pytestmark = pytest.mark.promise("004-9.5")
SECRET = "xyzzy-plugh"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[False, True], ids=["looked at", "watched"])
def entries(request, tmp_path: Path, clock: Clock) -> Iterator[KeyValue]:
    with open_session(tmp_path / "home", clock=clock, watch=request.param) as memory:
        yield KeyValue(memory)


def left_in(folder: Path) -> list[str]:
    """Files below `folder` that hold the secret."""
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def history_of(entries: KeyValue) -> Path:
    return entries.memory.home / ".memoranda" / "history"


def test_an_entry_lives_until_its_moment_and_not_longer(entries, clock):
    stored = entries.ok("remember", key="k", value="v", ttl_seconds=1)
    assert (stored["expires_in"], stored["expires_at"]) == ("1s", "2026-05-07T10:00:01.250Z")
    clock.later(1)
    assert entries.ok("recall", key="k")["expires_at"] == "2026-05-07T10:00:01.250Z"
    clock.later(0.001)
    assert entries.found("v") == []
    stats = entries.ok("stats")
    listed = entries.ok("list_namespaces")
    assert (stats["total_entries"], stats["namespace_count"]) == (0, 1)
    assert (listed["namespace_count"], listed["namespaces"][0]["expired_entries"]) == (1, 1)
    (listed,) = entries.ok("list_namespaces")["namespaces"]
    assert listed == {
        "namespace": "default",
        "total_entries": 1,
        "active_entries": 0,
        "expired_entries": 1,
    }
    assert entries.refused("recall", key="k") == "Key 'k' has expired"
    assert entries.files() == {}
    assert entries.refused("recall", key="k") == "Key 'k' not found in namespace 'default'"


@pytest.mark.parametrize("ttl", [None, 0, 0.0])
def test_without_a_time_to_live_an_entry_stays(entries, clock, ttl):
    assert entries.ok("remember", key="k", value="v", ttl_seconds=ttl)["expires_at"] is None
    clock.later(10**9)
    assert entries.value("k") == "v"


def test_an_expired_entry_is_out_of_every_other_face(entries, clock):
    entries.remember("k", f"the {SECRET} [[other]]", ttl=60)
    entries.put("default/other.md", "see [[k]]\n")
    memory = entries.memory
    tools = faces.registry(["notes"], memory.settings)
    permalink = memory.find("k", "kv").permalink

    def seen() -> list[bool]:
        whole_tree = {"project": "kv", "dir_name": "/", "depth": 5}
        listed = tools.call(memory, "list_directory", whole_tree).text
        infos, _ = memory.list(Query(projects=("kv",)))
        return [
            memory.search(SECRET).total == 1,
            bool(memory.context_for(f"what is {SECRET}?")),
            "k.md" in [info.path.rpartition("/")[2] for info in infos],
            bool(memory.list(Query(address="kv/default/k*"))[1]),
            "k.md" in listed,
            permalink in permalinks(memory, "kv/"),
            memory.stats().projects["kv"] == 2,
            memory.list(Query(projects=("kv",), after=memory.since("1d")))[1] == 2,
            bool(memory.backlinks(("kv", "default/other.md"))),
            memory.outgoing(("kv", "default/other.md"))[0].note is not None,
            not tools.call(
                memory, "read_note", {"identifier": permalink, "project": "kv"}
            ).is_error,
        ]

    assert all(seen())
    clock.later(61)
    assert not any(seen())
    with pytest.raises(NotFound):
        memory.read(("kv", "default/k.md"))
    memory.reindex()
    assert not any(seen())
    assert entries.refused("recall", key="k") == "Key 'k' has expired"


@pytest.mark.parametrize(
    "end", ["recalled", "forgotten", "cleared", "purged", "overwritten", "edited", "deleted"]
)
def test_nothing_of_it_stays_in_the_history(entries, clock, end):
    entries.remember("k", SECRET, "n", ttl=60)
    if end == "recalled":
        clock.later(61)
        assert entries.refused("recall", key="k", namespace="n") == "Key 'k' has expired"
    elif end == "purged":
        clock.later(61)
        entries.remember("other", "v")
    elif end == "forgotten":
        entries.ok("forget", key="k", namespace="n")
    elif end == "cleared":
        clock.later(61)
        assert entries.ok("clear_namespace", namespace="n")["deleted_count"] == 1
    elif end == "overwritten":
        entries.remember("k", "v2", "n")
    elif end == "edited":
        tools = faces.registry(["notes"], entries.memory.settings)
        edit = {
            "identifier": "n/k",
            "operation": "find_replace",
            "find_text": SECRET,
            "content": "x",
            "project": "kv",
        }
        assert not tools.call(entries.memory, "edit_note", edit).is_error
    else:
        entries.memory.delete(("kv", "n/k.md"))
    assert left_in(history_of(entries)) == left_in(entries.root) == []
    number = entries.memory.log("kv/n/k.md" if end != "cleared" else None)[0].number
    with pytest.raises(CannotUndo) as refused:
        entries.memory.undo(number)
    assert (
        str(refused.value)
        == f"cannot undo #{number}: the text of an entry with a time to live is not kept"
    )
    assert entries.file("n/k.md").exists() == (end in ("overwritten", "edited"))


def test_what_had_no_time_to_live_stays_in_the_history(entries):
    entries.remember("k", "first")
    entries.remember("k", SECRET, ttl=60)
    entries.memory.undo()
    assert entries.value("k") == "first"
    assert left_in(history_of(entries)) == []


def test_a_cleared_namespace_comes_back_but_for_what_had_a_time_to_live(entries, clock):
    entries.remember("a", "1", "n")
    entries.remember("b", SECRET, "n", ttl=60)
    entries.remember("c", "3", "n", ttl=1)
    clock.later(2)
    deleted_count = entries.ok("clear_namespace", namespace="n")["deleted_count"]
    assert deleted_count == 3
    namespace_count = entries.ok("list_namespaces")["namespace_count"]
    assert namespace_count == 0
    entries.memory.undo()
    assert set(entries.files()) == {"n/a.md"}
    assert entries.value("a", "n") == "1"


def test_an_expired_entry_is_overwritten_forgotten_and_counted_like_any_other(entries, clock):
    for key in "abc":
        entries.remember(key, "old", ttl=1)
    clock.later(2)
    assert entries.refused("recall", key="a") == "Key 'a' has expired"
    entries.ok("forget", key="b")
    assert entries.refused("forget", key="b") == "Key 'b' not found in namespace 'default'"
    entries.remember("c", "new")
    assert entries.value("c") == "new"
    expired_entries = entries.ok("list_namespaces")["namespaces"][0]["expired_entries"]
    assert expired_entries == 0


def test_every_changing_call_removes_up_to_a_hundred_expired_ones(entries, clock):
    for number in range(230):
        entries.put(
            f"n{number % 2}/k{number}.md", "---\nexpires_at: 2026-05-07T10:00:01Z\n---\nold\n"
        )
    entries.put("n0/stays.md", "stays")
    clock.later(60)

    def expired() -> int:
        return sum(
            namespace["expired_entries"]
            for namespace in entries.ok("list_namespaces")["namespaces"]
        )

    assert expired() == 230
    entries.remember("k", "v")
    assert expired() == 130
    assert entries.found("old") == []
    entries.ok("forget", key="k")
    assert expired() == 30
    assert entries.ok("clear_namespace", namespace="none")["deleted_count"] == 0
    assert expired() == 0
    assert set(entries.files()) == {"n0/stays.md"}
    assert NoteEntries(entries.memory).purge() == 0


def test_an_undo_without_a_number_passes_over_what_expired(entries, clock):
    entries.remember("gone", "v", ttl=1)
    clock.later(2)
    entries.remember("k", "v")
    verbs = [change.verb for change in entries.memory.log()]
    assert verbs == ["expire", "write", "write"]
    entries.memory.undo()
    assert entries.files() == {}


def test_an_expiry_written_or_taken_back_by_hand_counts(entries, clock):
    entries.remember("k", "v")
    file = entries.file("default/k.md")
    replace_in(file, "expires_at: null", "expires_at: 2026-05-07T09:00:00Z")
    assert entries.found("v") == []
    replace_in(file, "T09:00:00Z", "T11:00:00Z")
    assert entries.found("v") == [("default", "k")]
    assert entries.value("k") == "v"
    clock.later(3601)
    assert entries.found("v") == []
    new_place = entries.file("default/moved.md")
    file.rename(new_place)
    (namespace,) = entries.ok("list_namespaces")["namespaces"]
    assert namespace["expired_entries"] == 1
    refusal = entries.refused("recall", key="k")
    assert refusal == "Key 'k' has expired"
    assert entries.files() == {}


def test_with_a_real_clock_a_second_is_a_second(tmp_path):
    with connected(tmp_path / "home", "--tools", "kv,notes") as server:
        server.text("memory_remember", {"key": "k", "value": SECRET, "ttl_seconds": 1})
        text = server.text("memory_recall", {"key": "k"})
        assert SECRET in text
        end = time.monotonic() + 30
        while server.call("search_notes", {"query": SECRET})["structuredContent"]["total"]:
            assert time.monotonic() < end
            time.sleep(0.05)
        result = server.call("memory_recall", {"key": "k"})
        assert result["content"][0]["text"] == "## ❌ Error\n**Key 'k' has expired**"
    assert left_in(tmp_path / "home" / "kv") == []
    assert left_in(tmp_path / "home" / ".memoranda" / "history") == []
