"""Every kind of source turns an edit into steps by one protocol, and the ledger makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda import clock
from memoranda.errors import Conflict
from memoranda.ledger.ledger import Ledger
from memoranda.note.entity import Entity
from memoranda.sources.folder import FolderSource
from memoranda.sources.graph_file import GraphFileSource, LineEdit
from memoranda.sources.json_files import JsonFile, JsonFiles
from memoranda.sources.json_rows import RowEdit
from memoranda.sources.layout import Layout
from memoranda.sources.source import EditableSource, FileEdit

ROW = {"key": "k", "value": "new"}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    new_ledger = Ledger(Layout(tmp_path / "home"), clock.now)
    yield new_ledger
    new_ledger.close()


Kind = tuple[EditableSource[Any], Callable[[], Any], Callable[[], Any], Path]
"""(source, an edit, an edit that changes nothing, the file it is in)"""


def folder(place: Path) -> Kind:
    source = FolderSource("notes", place)
    return source, lambda: FileEdit("put", "a.md", data=b"new"), lambda: None, place / "a.md"


def graph_file(place: Path) -> Kind:
    source = GraphFileSource("people", place / "people.jsonl", optional=True)

    def edit() -> LineEdit:
        edited = LineEdit(source, verb="write")
        edited.create(Entity("new", "person", ()), {})
        return edited

    return source, edit, lambda: LineEdit(source), place / "people.jsonl"


def json_file(place: Path) -> Kind:
    source = JsonFile(JsonFiles(place), "default", make=True)
    edit = RowEdit("write", added=[ROW])
    return source, lambda: edit, lambda: RowEdit("write"), place / "default.json"


KINDS = pytest.mark.parametrize("kind", [folder, graph_file, json_file])


def write(ledger: Ledger, source: EditableSource[Any], plan: Callable[[], Any]) -> Any:
    with ledger.writing(), source.changing():
        steps = source.steps(plan())
        return ledger.write("write", lambda: steps, (source.name, steps[0].path))


@KINDS
def test_an_edit_becomes_steps_that_the_ledger_makes_one_change(
    ledger: Ledger, tmp_path: Path, kind: Callable[[Path], Kind]
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    source, edit, _, file = kind(place)
    change = write(ledger, source, edit)

    assert b"new" in file.read_bytes()
    numbers = [logged.number for logged in ledger.history.changes()]
    assert numbers == [1]
    assert [change.number] == [1]
    projects = {touched.project for touched in change.files}
    assert projects == {source.name}


@KINDS
def test_steps_that_nobody_makes_change_nothing(
    ledger: Ledger, tmp_path: Path, kind: Callable[[Path], Kind]
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    source, edit, _, file = kind(place)

    def give_up() -> None:
        with ledger.writing(), source.changing():
            assert source.steps(edit())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        give_up()
    assert not file.exists()
    assert ledger.history.last == 0
    write(ledger, source, edit)
    assert b"new" in file.read_bytes()


@pytest.mark.parametrize("kind", [graph_file, json_file])
def test_an_edit_that_changes_nothing_has_no_steps(
    tmp_path: Path, kind: Callable[[Path], Kind]
) -> None:
    source, _, nothing, file = kind(tmp_path)
    with source.changing():
        assert list(source.steps(nothing())) == []
    assert not file.exists() or not file.stat().st_size


@pytest.mark.parametrize("kind", [graph_file, json_file])
def test_the_inverse_of_an_edit_brings_the_file_back(
    ledger: Ledger, tmp_path: Path, kind: Callable[[Path], Kind]
) -> None:
    source, edit, *_, file = kind(tmp_path)
    change = write(ledger, source, edit)
    kept_lines = ledger.lines.lines_of(change.files[-1])
    write(ledger, source, lambda: source.inverse(kept_lines))  # type: ignore[attr-defined]
    assert b"new" not in file.read_bytes()
    with source.changing():
        assert source.inverse(kept_lines) is None  # type: ignore[attr-defined]


def test_a_file_that_somebody_makes_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    source, edit, _, file = graph_file(tmp_path)
    theirs = '{"type":"entity","name":"theirs","entityType":"t","observations":[]}\n'

    def be_late() -> None:
        with source.changing():
            planned = edit()
            file.write_text(theirs)
            source.steps(planned)

    with pytest.raises(Conflict):
        be_late()
    assert file.read_text() == theirs
