"""Files that the disk refused to sync are written again, with the next change or process."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from memoranda import clock
from memoranda.ledger.ledger import Ledger
from memoranda.ledger.refused_files import RefusedFiles
from memoranda.sources.folder import FolderSource
from memoranda.sources.layout import Layout
from memoranda.sources.step import Step


def put(notes: FolderSource, path: str, text: str) -> Step:
    is_there = Path(notes.root, path).exists()
    old = notes.read(path) if is_there else None
    return Step("put", "notes", notes.root, path, data=text.encode(), old=old)


def commit(ledger: Ledger, step: Step) -> None:
    with ledger.lock:
        ledger.write("write", lambda: [step], ("notes", step.path))


class Disk:
    """A disk that refuses to sync while `refuses` is true, and knows the files it synced."""

    def __init__(self) -> None:
        self.refuses = True
        self.synced: set[int] = set()
        self._sync = os.fsync

    def fsync(self, fd: int) -> None:
        if self.refuses:
            raise OSError(errno.EIO, "Input/output error")
        self.synced.add(os.fstat(fd).st_ino)
        self._sync(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk.fsync)
    monkeypatch.setattr("memoranda.ledger.file_sync.SECONDS", 3600)
    return disk


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "another")


@pytest.fixture
def is_always_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoranda.ledger.refused_files._FIRST_PAUSE", 0.0)


def inode(notes: FolderSource, path: str) -> int:
    return os.stat(Path(notes.root, path)).st_ino


def unsynced(ledger: Ledger) -> list[int]:
    return [row["change"] for row in ledger.database.rows("select change from unsynced")]


def test_refused_files_are_named_until_they_are_written(
    ledger: Ledger, notes: FolderSource, disk: Disk, is_always_due: None
) -> None:
    assert ledger.refused_files.trouble() == ""
    commit(ledger, put(notes, "a.md", "one"))
    ledger.file_sync.sync()
    trouble = ledger.refused_files.trouble()
    assert "the files of 1 change ([Errno 5] Input/output error)" in trouble
    disk.refuses = False
    commit(ledger, put(notes, "b.md", "two"))
    assert ledger.refused_files.trouble() == ""


def test_the_next_change_writes_refused_files_as_new_files(
    ledger: Ledger, notes: FolderSource, disk: Disk, is_always_due: None
) -> None:
    commit(ledger, put(notes, "a.md", "one"))
    ledger.file_sync.sync()
    first_inode = inode(notes, "a.md")
    time_of_writing = os.stat(Path(notes.root, "a.md")).st_mtime_ns
    disk.refuses = False
    commit(ledger, put(notes, "b.md", "two"))
    second_inode = inode(notes, "a.md")
    assert second_inode != first_inode
    assert second_inode in disk.synced
    assert os.stat(Path(notes.root, "a.md")).st_mtime_ns == time_of_writing
    assert notes.read("a.md").data == b"one"
    assert unsynced(ledger) == [2]
    names = os.listdir(notes.root)
    assert sorted(name for name in names if name.endswith(".md")) == ["a.md", "b.md"]
    assert not [name for name in names if name.startswith(".tmp")]


def test_an_edit_of_a_refused_file_stays(
    ledger: Ledger, notes: FolderSource, disk: Disk, is_always_due: None
) -> None:
    commit(ledger, put(notes, "a.md", "one"))
    ledger.file_sync.sync()
    disk.refuses = False
    Path(notes.root, "a.md").write_text("by hand")
    commit(ledger, put(notes, "b.md", "two"))
    assert notes.read("a.md").data == b"by hand"
    assert unsynced(ledger) == [2]


def test_a_file_of_zeros_where_the_disk_failed_gets_its_text(
    ledger: Ledger, notes: FolderSource, disk: Disk, is_always_due: None
) -> None:
    commit(ledger, put(notes, "a.md", "one"))
    ledger.file_sync.sync()
    disk.refuses = False
    Path(notes.root, "a.md").write_bytes(b"\0\0\0")
    commit(ledger, put(notes, "b.md", "two"))
    assert notes.read("a.md").data == b"one"


def test_a_file_of_zeros_gets_the_text_of_the_latest_change(
    ledger: Ledger, notes: FolderSource, disk: Disk, is_always_due: None
) -> None:
    for text in ("one", "two"):
        commit(ledger, put(notes, "a.md", text))
    ledger.file_sync.sync()
    Path(notes.root, "a.md").write_bytes(bytes(3))
    disk.refuses = False
    commit(ledger, put(notes, "b.md", "three"))
    assert notes.read("a.md").data == b"two"


def test_refused_files_are_not_tried_with_every_change(
    ledger: Ledger, notes: FolderSource, disk: Disk
) -> None:
    commit(ledger, put(notes, "a.md", "one"))
    ledger.file_sync.sync()
    disk.refuses = False
    commit(ledger, put(notes, "b.md", "two"))
    assert unsynced(ledger) == [1, 2]


def test_the_pause_doubles_and_ends_with_success(ledger: Ledger) -> None:
    refused = RefusedFiles(ledger.database, "boot")
    pauses = []
    for _ in range(10):
        refused.record([], "no")
        pauses.append(refused.pause)
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    refused.record_written()
    refused.record([], "no")
    assert refused.pause == 2


def test_a_disk_that_still_refuses_keeps_the_changes(
    ledger: Ledger, notes: FolderSource, disk: Disk, is_always_due: None
) -> None:
    commit(ledger, put(notes, "a.md", "one"))
    ledger.file_sync.sync()
    commit(ledger, put(notes, "b.md", "two"))
    assert unsynced(ledger) == [1, 2]
    assert notes.read("a.md").data == b"one"
    disk.refuses = False
    commit(ledger, put(notes, "c.md", "three"))
    assert 1 not in unsynced(ledger)


def test_the_next_process_writes_refused_files_again(
    ledger: Ledger, notes: FolderSource, disk: Disk
) -> None:
    commit(ledger, put(notes, "a.md", "one"))
    ledger.close()
    first_inode = inode(notes, "a.md")
    disk.refuses = False
    again = Ledger(ledger.layout, clock.now)
    assert "1 change:" in again.refused_files.trouble()
    with again.lock:
        assert again.refused_files.trouble() == ""
    again.close()
    assert inode(notes, "a.md") != first_inode


@pytest.mark.parametrize("boot", ["before", "after"])
def test_a_change_that_was_taken_back_does_not_return(
    layout: Layout, disk: Disk, monkeypatch: pytest.MonkeyPatch, boot: str
) -> None:
    monkeypatch.setattr("memoranda.ledger.ledger.boot_id", lambda: "before")
    disk.refuses = False
    ledger = Ledger(layout, clock.now)
    Path(layout.root, "notes").mkdir()
    notes = FolderSource("notes", layout.built_in["notes"])
    commit(ledger, put(notes, "a.md", "first"))
    ledger.file_sync.sync()
    disk.refuses = True
    commit(ledger, put(notes, "a.md", "second"))
    ledger.file_sync.sync()
    disk.refuses = False
    commit(ledger, put(notes, "a.md", "first"))
    ledger.close()
    monkeypatch.setattr("memoranda.ledger.ledger.boot_id", lambda: boot)
    again = Ledger(layout, clock.now)
    with again.lock:
        assert unsynced(again) == []
    again.close()
    assert notes.read("a.md").data == b"first"
