"""The verbs of upkeep: whole records, keys and categories, merging, folding counts (contract 001, 2
and 5).
"""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from jobs.homes import MOMENT, ONE, THREE, TWO, Home, further, tree
from memoranda.engine import open_session
from memoranda.errors import Conflict, Exists
from memoranda.note.markdown import Record
from memoranda.note.model import Draft


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    with home.memory:
        yield home


@pytest.fixture
def memory(home):
    return home.memory


@pytest.fixture
def upkeep(home):
    return home.upkeep


def remember(memory, text, category=None, **more):
    note = memory.write(Draft(text, project="categories", category=category, **more))
    return memory.memory_id(note.id)


def test_organizing_moves_the_file_and_keeps_every_other_byte(memory, upkeep):
    info = remember(memory, "user prefers dark mode\r\n- odd", metadata={"mine": "kept"})
    path = memory.home / "categories" / info.path
    path.write_bytes(path.read_bytes().replace(b"mine: kept", b"mine:   kept  # a comment"))
    info = memory.memory_id(info.id)
    moved = upkeep.change(
        info, {"phase": "organized", "expires_at": None}, "upgrade", category="preferences"
    )
    data = (memory.home / "categories" / moved.path).read_bytes()
    assert moved.path == info.path.replace("inbox/", "preferences/")
    assert not path.exists()
    assert b"mine:   kept  # a comment" in data
    assert b"dark mode\r\n- odd\n" in data
    assert (moved.phase, moved.category, moved.expires, moved.id) == (
        "organized",
        "preferences",
        None,
        info.id,
    )
    memory.undo()
    assert memory.memory_id(info.id).path == info.path


def test_merging_unites_what_both_have_and_the_merged_id_still_reads(home, memory, upkeep):
    home.put(ONE, "long text\nmore", "preferences", tags=("a", "B"), links=(TWO,), access_count=2)
    home.put(
        TWO,
        "long text",
        "soul",
        tags=("b", "c"),
        access_count=3,
        created=datetime(2026, 5, 1, tzinfo=UTC),
        links=(ONE,),
        further={"title": "Long"},
    )
    home.put(THREE, "third", links=(TWO,))
    memory.read(TWO)
    upkeep.merge(memory.memory_id(ONE), memory.memory_id(TWO))
    survivor = memory.read(TWO, count=False)
    assert (survivor.id, survivor.content, survivor.category) == (
        ONE,
        "long text\nmore",
        "preferences",
    )
    assert (survivor.tags, survivor.links, survivor.access_count) == (("a", "B", "c"), (), 6)
    assert survivor.created == datetime(2026, 5, 1, tzinfo=UTC)
    assert further(survivor) == {"aliases": ["Long"], "merged": [TWO]}
    assert memory.memory_id("33333333").links == (ONE,)
    memory.undo()
    assert memory.read(TWO).content == "long text"


def test_folding_moves_counts_into_files_and_no_count_changes(memory, upkeep):
    info = remember(memory, "read me", "people")
    note = memory.write(Draft("text", title="A note"))
    for _ in range(3):
        memory.read(info.id)
        memory.read(("notes", note.path))
    text = (memory.home / "notes" / note.path).read_bytes()
    assert upkeep.fold() == 1
    access_count = memory.memory_id(info.id).access_count
    assert access_count == 3
    content = (memory.home / "categories" / info.path).read_bytes()
    assert b"access_count: 3" in content
    content = (memory.home / "notes" / note.path).read_bytes()
    assert content == text
    assert memory.find("A note").access_count == 3
    assert memory.engine.reads.counts() == {note.id: 3}
    assert upkeep.fold() == 0
    memory.read(info.id)
    access_count = memory.memory_id(info.id).access_count
    assert access_count == 4


def test_folding_is_no_change_and_blocks_no_undo(memory, upkeep):
    info = remember(memory, "one", "people")
    memory.tag(info.id, add=["x"])
    changes = len(memory.log(limit=0))
    memory.read(info.id)
    upkeep.fold()

    assert len(memory.log(limit=0)) == changes
    assert memory.undo().undoes == changes
    tags = memory.memory_id(info.id).tags
    assert tags == ()


def test_an_entry_of_kv_gets_its_count_and_the_time_of_its_last_recall(memory, upkeep):
    from memoranda.engine.entries import NoteEntries

    entries = NoteEntries(memory)
    entries.put("default", "name", "Ada")
    entries.count(entries.get("default", "name"))
    assert upkeep.fold() == 1
    access_count = entries.get("default", "name").access_count
    assert access_count == 1
    content = (memory.home / "kv" / "default" / "name.md").read_bytes()
    assert b"accessed_at: 2" in content


@pytest.mark.slow
def test_reads_of_other_threads_and_processes_are_not_lost_while_the_log_is_folded(
    memory, upkeep, tmp_path
):
    info = remember(memory, "one", "people")

    def read():
        with open_session(tmp_path / "home", watch=False) as other_memory:
            for _ in range(40):
                other_memory.read(info.id)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    while any(reader.is_alive() for reader in readers):
        upkeep.fold()
    for reader in readers:
        reader.join()
    upkeep.fold()
    assert memory.memory_id(info.id).access_count == 120
    assert memory.engine.reads.rows() == {}


def test_of_two_memories_linked_by_a_job_both_must_be_as_they_were(memory, upkeep):
    a = remember(memory, "a", "people")
    b = remember(memory, "b", "people")
    memory.tag(b.id, add=["new"])
    with pytest.raises(Conflict):
        upkeep.link(a, b)
    links = memory.memory_id(a.id).links
    assert links == ()
    first_linked, second_linked = upkeep.link(a, memory.memory_id(b.id))
    assert first_linked.links == (b.id,)
    assert second_linked.links == (a.id,)
    assert upkeep.link(first_linked, second_linked) == []
    memory.undo()
    links = memory.memory_id(b.id).links
    assert links == ()


def test_what_is_derived_from_a_memory_is_linked_with_it_in_one_change(memory, upkeep):
    source = remember(memory, "call Bob tomorrow", "people")
    before = tree(memory.home)
    record = Record(ONE, "call Bob", "reminders", MOMENT, MOMENT)
    new, after = upkeep.derive(source, record, {"mine": ["x"]}, "remind")
    assert new.id == ONE
    assert new.links == (source.id,)
    assert after.links == (ONE,)
    assert after.header["mine"] == ["x"]
    with pytest.raises(Exists):
        upkeep.derive(after, record, {}, "remind")
    with pytest.raises(Conflict):
        upkeep.derive(source, replace(record, id=TWO), {}, "remind")
    memory.undo()
    assert tree(memory.home) == before


def test_a_hand_made_file_keeps_its_id_when_it_is_linked(memory, upkeep):
    path = memory.home / "categories" / "people" / "bob.md"
    path.parent.mkdir(parents=True)
    path.write_text("Bob\n")
    bob = next(info for info in upkeep.every() if info.path == "people/bob.md")
    upkeep.link(bob, remember(memory, "call Bob", "people"))
    path.rename(path.with_name("robert.md"))

    path = memory.memory_id(bob.id).path
    assert path == "people/robert.md"


def test_the_targets_of_wikilinks_are_those_of_the_text(memory, upkeep):
    a = remember(memory, "see [[Bob]], [[bob]] and `[[code]]`", "people")
    memory.link(a.id, remember(memory, "x", "people").id)
    a = memory.memory_id(a.id)
    assert upkeep.targets([a])[a.row] == ("Bob", "bob")
