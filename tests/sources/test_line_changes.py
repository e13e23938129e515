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


def test_every_change_is_in_the_log_and_one_that_changes_nothing_is_not(
    graph_file: GraphFile,
) -> None:
    graph_file.nodes.entity("Ada", "likes tea")
    graph_file.nodes.relate("Ada knows Bob")
    graph_file.add("Ada", "x")
    graph_file.add("Ada", "x")
    graph_file.delete("nobody")
    graph_file.delete("Ada")
    assert graph_file.log() == ["delete", "edit", "edit", "write"]
    assert {(change.project, change.path) for change in graph_file.memory.log()} == {
        ("memory", "memory.jsonl")
    }


def test_a_deletion_comes_back_where_it_stood_byte_for_byte(graph_file: GraphFile) -> None:
    odd = ADA.replace('"type":"entity"', '"createdAt": 1.50, "type":"entity"')
    before = KNOWS + odd + BOB + '{"type":"relation","from":"Bob","to":"Ada","relationType":"é"}\n'
    graph_file.write(before)
    graph_file.delete("Ada")
    assert graph_file.text == BOB
    graph_file.memory.undo()
    assert graph_file.text == before
    graph_file.delete("Ada")
    with graph_file.place.open("a") as lines:
        lines.write(EVE)
    graph_file.memory.undo()
    assert graph_file.text == before + EVE
    assert graph_file.names() == ["Ada", "Bob", "Eve"]


def test_an_edit_is_taken_back_and_the_undo_too(graph_file: GraphFile) -> None:
    graph_file.write(ADA + BOB)
    graph_file.add("Ada", "x")
    graph_file.nodes.entity("Eve")
    edited = graph_file.text

    undoes = graph_file.memory.undo(1).undoes
    assert undoes == 1
    assert graph_file.text == ADA + BOB + EVE.replace("person", "thing")
    undoes = graph_file.memory.undo(3).undoes
    assert undoes == 3
    assert graph_file.text == edited


def test_lines_that_changed_since_are_not_taken_back(graph_file: GraphFile) -> None:
    graph_file.write(ADA + BOB)
    graph_file.add("Ada", "x")
    graph_file.add("Ada", "y")
    before = graph_file.text
    with pytest.raises(CannotUndo, match=r"#1: memory/memory\.jsonl changed later \(#2\)"):
        graph_file.memory.undo(1)
    graph_file.delete("Bob")
    graph_file.write(graph_file.text + BOB)
    with pytest.raises(CannotUndo, match="changed later"):
        # That Bob is there again
        graph_file.memory.undo(3)

    assert graph_file.text == before.replace(BOB, "") + BOB


def test_an_undo_by_another_user_of_the_home_needs_no_project(graph_file: GraphFile) -> None:
    graph_file.write(ADA)
    graph_file.delete("Ada")
    with open_session(graph_file.memory.home, watch=False) as other_memory:
        undo = other_memory.undo()

    assert undo.undoes == 1
    assert graph_file.text == ADA
    assert graph_file.names() == ["Ada"]


def test_what_undo_needs_outlives_the_clearing_of_the_history(graph_file: GraphFile) -> None:
    graph_file.write(ADA)
    graph_file.nodes.entity("Bob")
    graph_file.delete("Ada")
    graph_file.memory.reindex()
    graph_file.memory.undo()
    graph_file.memory.undo(1)
    assert graph_file.text == ADA


def test_a_change_that_can_be_neither_confirmed_nor_taken_back_is_told_as_made(
    graph_file: GraphFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph_file.write(ADA + BOB)
    graph_file.nodes("read_graph")
    folder = graph_file.place.parent.stat().st_ino
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
    complaint = graph_file.nodes.error("delete_entities", entityNames=["Ada"])
    assert complaint == (
        "memory.jsonl is changed, but the disk reported an input/output error:"
        " the change may not outlive a power failure."
    )
    monkeypatch.undo()
    assert (graph_file.text, graph_file.names(), graph_file.log()) == (BOB, ["Bob"], ["delete"])
    assert os.listdir(graph_file.place.parent) == ["memory.jsonl"]
    graph_file.memory.undo()
    assert graph_file.text == ADA + BOB


WHOLE = person("x") + person("y") + person("z")


@pytest.mark.slow
@pytest.mark.promise("002-14.26")
@pytest.mark.parametrize(
    "count", [1, 20, len(person("x")), len(person("x")) + 5, len(WHOLE) - 1, len(WHOLE)]
)
def test_an_append_torn_anywhere_is_completed_by_the_next_reader(
    graph_file: GraphFile, count: int
) -> None:
    graph_file.write(ADA)
    assert graph_file.names() == ["Ada"]
    assert die(graph_file, "torn", count) == 9
    assert graph_file.text == ADA + WHOLE[:count]
    assert graph_file.names() == ["Ada", "x", "y", "z"]
    assert graph_file.text == ADA + WHOLE
    assert graph_file.log() == ["write"]
    graph_file.memory.undo()
    assert graph_file.text == ADA


@pytest.mark.promise("002-14.26")
@pytest.mark.parametrize("count", [20, len(person("x")), len(person("x")) + 5])
def test_what_others_append_behind_a_torn_line_stays(
    graph_file: GraphFile, count: int, tmp_path: Path
) -> None:
    graph_file.write(ADA)
    assert die(graph_file, "torn", count) == 9
    # A home that has no record of it
    with open_session(tmp_path / "other", watch=False) as memory:
        Nodes(memory, open_graph=opener(graph_file.place)).entity("Bob", kind="person")
    assert graph_file.names() == ["Ada", "x", "y", "z", "Bob"]
    assert graph_file.text == ADA + WHOLE + BOB


@pytest.mark.promise("002-14.26")
@pytest.mark.parametrize("point", ["pwrite", "fsync", "write", "open"])
def test_a_death_at_any_call_leaves_all_of_it_or_nothing_and_the_log_right(
    graph_file: GraphFile, point: str
) -> None:
    graph_file.write(ADA)
    for count in range(1, 40):
        if die(graph_file, point, count) == 7:
            break
        with open_session(graph_file.memory.home, watch=False) as memory:
            names = Nodes(memory, open_graph=opener(graph_file.place)).names("read_graph")
            assert names in (["Ada"], ["Ada", "x", "y", "z"])
            assert graph_file.text == ADA + (WHOLE if len(names) > 1 else "")
            verbs = [change.verb for change in memory.log()]
            assert verbs == (["write"] if len(names) > 1 else [])
            if len(names) > 1:
                memory.undo()
            graph_file.write(ADA)
        with graph_file.memory.engine.ledger.lock:
            graph_file.memory.engine.ledger.history.replace_all([])
        assert os.listdir(graph_file.place.parent) == ["memory.jsonl"]
    else:
        pytest.fail("it never lived")


@pytest.mark.promise("002-14.22", "002-14.26")
@pytest.mark.parametrize("count", [0, 1, 30, len(ADA + EVE)])
def test_a_file_written_in_place_is_completed_after_a_death(
    graph_file: GraphFile, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    graph_file.write(ADA + BOB + EVE)
    graph_file.nodes("read_graph")

    class Dead(BaseException):
        pass

    def busy(*_: Any) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    def torn(fd: int, data: bytes) -> int:
        if os.fstat(fd).st_ino != inode:
            return real(fd, data)
        real(fd, data[:count])
        raise Dead

    inode = graph_file.place.stat().st_ino
    real = os.write
    monkeypatch.setattr(os, "rename", busy)
    monkeypatch.setattr(os, "write", torn)
    with pytest.raises(Dead):
        graph_file.delete("Bob")
    monkeypatch.undo()
    assert graph_file.text == (ADA + EVE)[:count] + (ADA + BOB + EVE)[count:]
    assert graph_file.names() == ["Ada", "Eve"]
    assert graph_file.text == ADA + EVE
    assert graph_file.log() == ["delete"]
    graph_file.memory.undo()
    assert graph_file.text == ADA + BOB + EVE


@pytest.mark.promise("002-14.26")
def test_a_file_out_of_reach_keeps_its_record_until_it_is_back(graph_file: GraphFile) -> None:
    graph_file.write(ADA)
    assert die(graph_file, "torn", 20) == 9
    away = graph_file.place.parent.with_name("away")
    graph_file.place.parent.rename(away)
    graph_file.place.parent.write_text("no folder")
    with open_session(graph_file.memory.home, watch=False) as memory:
        memory.sync()
        assert memory.engine.ledger.has_line_change()
    graph_file.place.parent.unlink()
    away.rename(graph_file.place.parent)
    assert graph_file.names() == ["Ada", "x", "y", "z"]


def test_a_change_of_one_line_keeps_no_copy_of_a_large_file(graph_file: GraphFile) -> None:
    graph_file.write("".join(person(f"N{number}", "x" * 50) for number in range(2_000)))
    before = graph_file.text
    graph_file.add("N1000", "more")
    graph_file.delete("N7")
    graph_file.nodes.entity("New")
    history = graph_file.memory.engine.ledger.history
    texts = [history.text(digest, "") for digest in history.texts()]
    assert sum(map(len, texts)) < 2_000 < len(before) / 50
    for number in (2, 1, 3):
        graph_file.memory.undo(number)
    assert graph_file.text == before
