"""Changes to a graph file: logged if and only if made, taken back by lines, whole after a death
(contract 002, 9).
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from contract.graph_tools import GraphFile, Nodes, die, person
from memoranda.engine import open_session
from memoranda.engine.graphs import opener
from memoranda.errors import CannotUndo

ADA = person("Ada", "likes tea")
BOB = person("Bob")
EVE = person("Eve")
KNOWS = '{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}\n'


def test_every_change_is_in_the_log_and_one_that_changes_nothing_is_not(kept: GraphFile) -> None:
    kept.nodes.entity("Ada", "likes tea")
    kept.nodes.relate("Ada knows Bob")
    kept.add("Ada", "x")
    kept.add("Ada", "x")
    kept.delete("nobody")
    kept.delete("Ada")
    assert kept.log() == ["delete", "edit", "edit", "write"]
    assert {(each.project, each.path) for each in kept.memory.log()} == {("memory", "memory.jsonl")}


def test_a_deletion_comes_back_where_it_stood_byte_for_byte(kept: GraphFile) -> None:
    odd = ADA.replace('"type":"entity"', '"createdAt": 1.50, "type":"entity"')
    before = KNOWS + odd + BOB + '{"type":"relation","from":"Bob","to":"Ada","relationType":"é"}\n'
    kept.write(before)
    kept.delete("Ada")
    assert kept.text == BOB
    kept.memory.undo()
    assert kept.text == before
    kept.delete("Ada")
    with kept.place.open("a") as lines:
        lines.write(EVE)
    kept.memory.undo()
    assert kept.text == before + EVE
    assert kept.names() == ["Ada", "Bob", "Eve"]


def test_an_edit_is_taken_back_and_the_undo_too(kept: GraphFile) -> None:
    kept.write(ADA + BOB)
    kept.add("Ada", "x")
    kept.nodes.entity("Eve")
    edited = kept.text
    assert kept.memory.undo(1).undoes == 1
    assert kept.text == ADA + BOB + EVE.replace("person", "thing")
    assert kept.memory.undo(3).undoes == 3
    assert kept.text == edited


def test_lines_that_changed_since_are_not_taken_back(kept: GraphFile) -> None:
    kept.write(ADA + BOB)
    kept.add("Ada", "x")
    kept.add("Ada", "y")
    before = kept.text
    with pytest.raises(CannotUndo, match=r"#1: memory/memory\.jsonl changed later \(#2\)"):
        kept.memory.undo(1)
    kept.delete("Bob")
    kept.write(kept.text + BOB)
    with pytest.raises(CannotUndo, match="changed later"):
        # That Bob is there again
        kept.memory.undo(3)
    assert kept.text == before.replace(BOB, "") + BOB


def test_an_undo_by_another_user_of_the_home_needs_no_project(kept: GraphFile) -> None:
    kept.write(ADA)
    kept.delete("Ada")
    with open_session(kept.memory.home, watch=False) as other:
        assert other.undo().undoes == 1
    assert kept.text == ADA
    assert kept.names() == ["Ada"]


def test_what_undo_needs_outlives_the_clearing_of_the_history(kept: GraphFile) -> None:
    kept.write(ADA)
    kept.nodes.entity("Bob")
    kept.delete("Ada")
    kept.memory.reindex()
    kept.memory.undo()
    kept.memory.undo(1)
    assert kept.text == ADA


def test_a_change_that_can_be_neither_confirmed_nor_taken_back_is_told_as_made(
    kept: GraphFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.write(ADA + BOB)
    kept.nodes("read_graph")
    folder = kept.place.parent.stat().st_ino
    sync = os.fsync
    rename = os.rename
    renamed = []

    def refusing(fd: int) -> None:
        if os.fstat(fd).st_ino == folder:
            raise OSError(errno.EIO, "Input/output error")
        sync(fd)

    def once(source: str, target: str) -> None:
        if renamed:
            raise OSError(errno.EIO, "Input/output error")
        renamed.append(target)
        rename(source, target)

    monkeypatch.setattr(os, "fsync", refusing)
    monkeypatch.setattr(os, "rename", once)
    said = kept.nodes.error("delete_entities", entityNames=["Ada"])
    assert said == (
        "memory.jsonl is changed, but the disk reported an input/output error:"
        " the change may not outlive a power failure."
    )
    monkeypatch.undo()
    assert (kept.text, kept.names(), kept.log()) == (BOB, ["Bob"], ["delete"])
    assert os.listdir(kept.place.parent) == ["memory.jsonl"]
    kept.memory.undo()
    assert kept.text == ADA + BOB


WHOLE = person("x") + person("y") + person("z")


@pytest.mark.slow
@pytest.mark.promise("002-14.26")
@pytest.mark.parametrize(
    "count", [1, 20, len(person("x")), len(person("x")) + 5, len(WHOLE) - 1, len(WHOLE)]
)
def test_an_append_torn_anywhere_is_completed_by_the_next_reader(
    kept: GraphFile, count: int
) -> None:
    kept.write(ADA)
    assert kept.names() == ["Ada"]
    assert die(kept, "torn", count) == 9
    assert kept.text == ADA + WHOLE[:count]
    assert kept.names() == ["Ada", "x", "y", "z"]
    assert kept.text == ADA + WHOLE
    assert kept.log() == ["write"]
    kept.memory.undo()
    assert kept.text == ADA


@pytest.mark.promise("002-14.26")
@pytest.mark.parametrize("count", [20, len(person("x")), len(person("x")) + 5])
def test_what_others_append_behind_a_torn_line_stays(
    kept: GraphFile, count: int, tmp_path: Path
) -> None:
    kept.write(ADA)
    assert die(kept, "torn", count) == 9
    # A home that has no record of it
    with open_session(tmp_path / "other", watch=False) as memory:
        Nodes(memory, open_graph=opener(kept.place)).entity("Bob", kind="person")
    assert kept.names() == ["Ada", "x", "y", "z", "Bob"]
    assert kept.text == ADA + WHOLE + BOB


@pytest.mark.promise("002-14.26")
@pytest.mark.parametrize("point", ["pwrite", "fsync", "write", "open"])
def test_a_death_at_any_call_leaves_all_of_it_or_nothing_and_the_log_right(
    kept: GraphFile, point: str
) -> None:
    kept.write(ADA)
    for count in range(1, 40):
        if die(kept, point, count) == 7:
            break
        with open_session(kept.memory.home, watch=False) as memory:
            names = Nodes(memory, open_graph=opener(kept.place)).names("read_graph")
            assert names in (["Ada"], ["Ada", "x", "y", "z"])
            assert kept.text == ADA + (WHOLE if len(names) > 1 else "")
            assert [each.verb for each in memory.log()] == (["write"] if len(names) > 1 else [])
            if len(names) > 1:
                memory.undo()
            kept.write(ADA)
        with kept.memory.engine.ledger.lock:
            kept.memory.engine.ledger.history.replace_all([])
        assert os.listdir(kept.place.parent) == ["memory.jsonl"]
    else:
        pytest.fail("it never lived")


@pytest.mark.promise("002-14.22", "002-14.26")
@pytest.mark.parametrize("count", [0, 1, 30, len(ADA + EVE)])
def test_a_file_written_in_place_is_completed_after_a_death(
    kept: GraphFile, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    kept.write(ADA + BOB + EVE)
    kept.nodes("read_graph")

    class Dead(BaseException):
        pass

    def busy(*_: Any) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    def torn(fd: int, data: bytes) -> int:
        if os.fstat(fd).st_ino != inode:
            return real(fd, data)
        real(fd, data[:count])
        raise Dead

    inode = kept.place.stat().st_ino
    real = os.write
    monkeypatch.setattr(os, "rename", busy)
    monkeypatch.setattr(os, "write", torn)
    with pytest.raises(Dead):
        kept.delete("Bob")
    monkeypatch.undo()
    assert kept.text == (ADA + EVE)[:count] + (ADA + BOB + EVE)[count:]
    assert kept.names() == ["Ada", "Eve"]
    assert (kept.text, kept.log()) == (ADA + EVE, ["delete"])
    kept.memory.undo()
    assert kept.text == ADA + BOB + EVE


@pytest.mark.promise("002-14.26")
def test_a_file_out_of_reach_keeps_its_record_until_it_is_back(kept: GraphFile) -> None:
    kept.write(ADA)
    assert die(kept, "torn", 20) == 9
    away = kept.place.parent.with_name("away")
    kept.place.parent.rename(away)
    kept.place.parent.write_text("no folder")
    with open_session(kept.memory.home, watch=False) as memory:
        memory.sync()
        assert memory.engine.ledger.has_line_change()
    kept.place.parent.unlink()
    away.rename(kept.place.parent)
    assert kept.names() == ["Ada", "x", "y", "z"]
