"""The file of vectors: appended by any process, never half, and lean again when texts are gone."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoranda.errors import StorageError
from memoranda.index.vectors.store import EMBEDDED, VectorFile, locked, passages_of


def rows(*keys: int) -> Any:
    return np.array([[key, key + 0.5, -key] for key in keys], np.float32)


def some(path: Path, *keys: int) -> VectorFile:
    file = VectorFile(path, "m")
    file.append(np.array(keys, np.uint64), rows(*keys))
    return file


def held(file: VectorFile) -> dict[int, list[float]]:
    file.refresh()
    return {int(key): row.tolist() for key, row in zip(file.keys, file.vectors, strict=True)}


def test_what_one_appends_the_others_see(tmp_path: Path) -> None:
    path = tmp_path / "private" / "v.vectors"
    other_file = VectorFile(path, "m")
    assert held(other_file) == {}
    assert other_file.refresh() is False
    big = 2**64 - 1
    some(path, 1, big)
    assert held(other_file) == {1: [1, 1.5, -1], big: rows(big)[0].tolist()}
    some(path, 3)
    assert sorted(held(other_file)) == [1, 3, big]
    assert not other_file.refresh()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("cut", [1, 7, 8, 19])
def test_half_a_record_of_a_killed_process_counts_for_nothing(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "v"
    some(path, 1, 2)
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - cut)
    assert sorted(held(VectorFile(path, "m"))) == [1]
    some(path, 3)
    assert held(VectorFile(path, "m")) == {1: rows(1)[0].tolist(), 3: rows(3)[0].tolist()}


@pytest.mark.parametrize(
    "damage", [b"", b"x" * 100, b"\0" * 400, b"[1]" + b"\0" * 300, b'{"format": 9}' + b"\0" * 300]
)
def test_a_damaged_file_is_begun_anew(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "v"
    path.write_bytes(damage)
    assert held(VectorFile(path, "m")) == {}
    some(path, 5)
    assert sorted(held(VectorFile(path, "m"))) == [5]


def test_vectors_of_another_length_replace_the_old_ones(tmp_path: Path) -> None:
    path = tmp_path / "v"
    file = some(path, 1)
    held(file)
    file.append(np.array([2], np.uint64), np.ones((1, 5), np.float32))

    assert held(file) == {2: [1.0] * 5}


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "v"
    file = some(path, 1)
    write = os.write

    def full(fd: int, data: Any) -> int:
        if len(data) < 16:
            raise OSError(errno.ENOSPC, "no space")
        return write(fd, data[:-9])

    monkeypatch.setattr(os, "write", full)
    before = path.read_bytes()
    with pytest.raises(StorageError, match="the disk is full"):
        some(path, 2)
    assert path.read_bytes() == before
    monkeypatch.undo()
    some(path, 2)
    monkeypatch.setattr(os, "write", full)
    before = path.read_bytes()
    lock = path.with_suffix(".lock")
    kept_rows = np.array([1], np.uint64)
    with locked(lock), pytest.raises(StorageError, match="the disk is full"):
        file.keep(kept_rows)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_dropping_keeps_the_wanted_vectors_once(tmp_path: Path) -> None:
    path = tmp_path / "v"
    some(path, 1, 2, 3)
    some(path, 2)
    reader = VectorFile(path, "m")
    held(reader)
    old = reader.vectors
    with locked(path.with_suffix(".lock")):
        assert VectorFile(path, "m").keep(np.array([2, 3, 9], np.uint64)) == 2
        assert VectorFile(path, "m").keep(np.array([2, 3, 9], np.uint64)) == 0
    # Who still looks at the old file may go on
    assert old[0].tolist() == [1, 1.5, -1]
    assert sorted(held(reader)) == [2, 3]
    with locked(path.with_suffix(".lock")):
        assert reader.keep(np.empty(0, np.uint64)) == 2
    assert held(reader) == {}
    assert not path.exists()


def test_a_taken_lock_is_not_waited_for_unless_asked(tmp_path: Path) -> None:
    with locked(tmp_path / "l") as mine, locked(tmp_path / "l", wait=False) as second:
        assert (mine, second) == (True, False)
    with locked(tmp_path / "l", wait=False) as free:
        assert free


@pytest.mark.promise("issue-long-texts")
def test_what_is_embedded_of_a_long_note_is_bounded_however_long_its_first_line_is():
    line = "word " * 200_000
    passages = passages_of(line, f"# {line}\n{line}\n" * 2)

    assert passages[-1].stop <= EMBEDDED
    assert max(len(passage.text) for passage in passages) < 3_000
    assert sum(len(passage.text) for passage in passages) < 2 * EMBEDDED
