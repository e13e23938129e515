"""The redo record: what counts in a file that keeps the bytes of older records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.store.journal import RedoRecord, redo_lines

LONG = [{"mark": "x" * 300}, {"steps": ["y" * 5000]}]
SHORT = [{"mark": "a"}, {"steps": []}]


@pytest.fixture
def redo(tmp_path: Path) -> Iterator[RedoRecord]:
    made = RedoRecord(tmp_path / "redo")
    yield made
    made.close()


def write(redo: RedoRecord, rows: list[dict[str, object]]) -> None:
    for row in rows:
        redo.add(row, is_new=row is rows[0])


def test_an_older_longer_record_does_not_show_through(redo: RedoRecord) -> None:
    write(redo, LONG)
    assert redo_lines(redo.read()) == LONG
    redo.drop()
    assert not redo.waits()
    assert redo_lines(redo.read()) == []
    redo.add(SHORT[0], is_new=True)
    assert redo.waits()
    assert redo_lines(redo.read()) == SHORT[:1]
    redo.add(SHORT[1])
    assert redo_lines(redo.read()) == SHORT


def test_a_record_mixed_from_two_of_one_shape_is_damaged(redo: RedoRecord) -> None:
    write(redo, [{"mark": "a"}, {"steps": ["one", "two"]}])
    older = redo.read()
    redo.drop()
    write(redo, [{"mark": "b"}, {"steps": ["six", "ten"]}])
    newer = redo.read()
    assert len(older) == len(newer)
    for at in range(1, len(older)):
        mixed = newer[:at] + older[at:]
        if mixed not in (older, newer):
            with pytest.raises(ValueError, match="checksum"):
                redo_lines(mixed)


def test_a_record_from_before_there_were_checksums_is_read() -> None:
    assert redo_lines(b"".join(json.dumps(row).encode() + b"\n" for row in SHORT)) == SHORT
    assert redo_lines(b'{"mark":"a"}\n{"steps":') == SHORT[:1]
