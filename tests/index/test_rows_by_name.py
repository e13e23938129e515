"""A column that is added by the recipe of CONTRIBUTING.md is written and read, also in bulk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import pytest

from index.conftest import Desk
from memoranda.index import rows, tables, writer
from memoranda.index.rows import NOTE_COLUMNS, NoteInfo
from memoranda.note.model import Note, Provenance
from memoranda.sources.base import Stamp

CLAUDE = Provenance("agent:claude", "agent", "claude-code")


@pytest.fixture
def with_colour(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An index whose table of notes has one column more, the last one of its rows."""
    desk.db.execute("alter table note add column colour text")
    make: Callable[..., tables.Row] = writer._note_row

    def with_more(note: Note, *arguments: Any, **options: Any) -> tables.Row:
        row = make(note, *arguments, **options)
        return {**row, "colour": f"colour of {note.path}"}

    monkeypatch.setattr(writer, "_note_row", with_more)
    return desk


def colours(desk: Desk) -> dict[str, str]:
    return dict(desk.db.execute("select path, colour from note").fetchall())


def test_column_added_note_put_holds_it(with_colour: Desk) -> None:
    with_colour.put("a.md", "one")
    assert colours(with_colour) == {"a.md": "colour of a.md"}


def test_column_added_many_notes_loaded_keep_column_and_provenance(with_colour: Desk) -> None:
    desk = with_colour
    desk.put("first.md", "so that the project is known")
    with desk.index.transaction(), ThreadPoolExecutor(1) as threads:
        loading = writer.Loading(desk.db, "notes", threads)
        for number in range(100):
            note = desk.note(f"{number:03}.md", f"text {number}")
            prepared = writer.prepare(note, Stamp(1, 2, number, 3), loading.project)
            prepared.sign(CLAUDE)
            loading.add(prepared)
        loading.end()
    loaded = {path: colour for path, colour in colours(desk).items() if path != "first.md"}
    assert loaded == {f"{n:03}.md": f"colour of {n:03}.md" for n in range(100)}
    info = rows.get(desk.db, "notes", "042.md")
    assert info is not None
    assert info.provenance == CLAUDE


def test_columns_are_read_into_the_fields_of_their_names(desk: Desk) -> None:
    desk.put("a.md", "---\ntags: [x]\nsource: radio\naliases: [y]\n---\none")
    info = rows.get(desk.db, "notes", "a.md")
    assert info is not None
    assert info.tags == ("x",)
    assert info.source == "radio"
    assert info.aliases == ("y",)
    for name, column in NOTE_COLUMNS.items():
        source = "note n join project p on p.id = n.project join text t on t.row = n.row"
        (value,) = desk.db.execute(f"select {column.sql} from {source}").fetchone()
        assert getattr(info, name) == (column.read(value) if column.read else value), name


def test_every_field_of_a_note_is_read_from_a_column() -> None:
    field_names = {field.name for field in fields(NoteInfo) if field.init}
    assert field_names == set(NOTE_COLUMNS)


def test_row_with_another_column_than_the_first_is_refused(desk: Desk) -> None:
    with pytest.raises(KeyError), desk.index.transaction():
        tables.insert(desk.db, "superseded", [{"id": "a", "note": 1}, {"id": "b"}])
