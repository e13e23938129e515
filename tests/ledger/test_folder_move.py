"""A file or folder is moved though the system cannot rename it: a folder of a lower layer of
overlayfs, or two places on different file systems. A shim raises EXDEV as they do.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.errors import MemorandaError
from memoranda.ledger import folder_move

NAMES = ("plans/trip.md", "plans/deep/er/list.md", "plans/picture.bin")
SAVED = "saved by the editor\n"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", watch=False) as opened:
        opened.write(Draft("by train\n", project="notes", folder="plans", title="trip"))
        opened.write(Draft("socks\n", project="notes", folder="plans/deep/er", title="list"))
        picture = notes(opened) / "plans/picture.bin"
        picture.write_bytes(bytes(range(256)) * 300)
        picture.chmod(0o640)
        (notes(opened) / "plans/link.md").symlink_to("trip.md")
        yield opened


def notes(memory: MemorySession) -> Path:
    return memory.engine.layout.root / "notes"


def texts(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their path in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def refuse_renames(
    monkeypatch: pytest.MonkeyPatch, is_refused: Callable[[os.stat_result, str], bool]
) -> list[str]:
    """Have os.rename fail with EXDEV where `is_refused` says so of the status and the name.

    What a process itself made has only one layer, so temporary names can always be renamed.
    """
    rename = os.rename
    refused: list[str] = []

    def shim(source: Any, target: Any, **folders: Any) -> None:
        status = os.stat(source, dir_fd=folders.get("src_dir_fd"), follow_symlinks=False)
        name = os.path.basename(os.fspath(source))
        if not name.startswith(".tmp-") and is_refused(status, name):
            refused.append(name)
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(source, target, **folders)

    monkeypatch.setattr(os, "rename", shim)
    return refused


def is_folder(status: os.stat_result, name: str) -> bool:
    del name
    return stat.S_ISDIR(status.st_mode)


def is_anything(status: os.stat_result, name: str) -> bool:
    del status, name
    return True


@pytest.mark.parametrize("is_refused", [is_folder, is_anything])
def test_a_folder_moves_whole_and_back_where_it_cannot_be_renamed(
    memory: MemorySession,
    monkeypatch: pytest.MonkeyPatch,
    is_refused: Callable[[os.stat_result, str], bool],
) -> None:
    before = texts(notes(memory) / "plans")
    refused = refuse_renames(monkeypatch, is_refused)
    memory.move_folder("notes", "plans", "done/old")
    assert refused
    moved = notes(memory) / "done/old"
    assert texts(moved) == before
    assert os.readlink(moved / "link.md") == "trip.md"
    mode = stat.S_IMODE((moved / "picture.bin").stat().st_mode)
    assert mode == 0o640
    assert not (notes(memory) / "plans").exists()
    path = memory.search("train").hits[0].note.path
    assert path == "done/old/trip.md"
    memory.undo()
    assert texts(notes(memory) / "plans") == before
    assert not (notes(memory) / "done/old").exists()
    assert not [*memory.engine.layout.root.rglob(".tmp-*")]


def test_a_note_moves_where_files_cannot_be_renamed(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = refuse_renames(monkeypatch, is_anything)
    memory.move("notes/plans/trip", "away/trip.md")

    assert refused
    assert not (notes(memory) / "plans/trip.md").exists()
    text = (notes(memory) / "away/trip.md").read_text()
    assert text.endswith("by train\n")


def test_what_an_editor_saves_during_the_copy_is_in_the_new_place(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_renames(monkeypatch, is_folder)
    remove_copied = folder_move._remove_copied
    source = notes(memory) / "plans"

    def with_a_save(*arguments: Any, **more: Any) -> None:
        monkeypatch.setattr(folder_move, "_remove_copied", remove_copied)
        (source / "trip.md").write_text(SAVED)
        (source / "new.md").write_text(SAVED)
        remove_copied(*arguments, **more)

    monkeypatch.setattr(folder_move, "_remove_copied", with_a_save)
    memory.move_folder("notes", "plans", "done")
    text = (notes(memory) / "done/trip.md").read_text()
    assert text == SAVED
    text = (notes(memory) / "done/new.md").read_text()
    assert text == SAVED
    assert not source.exists()


@pytest.mark.parametrize("failing", ["mkdir", "fsync", "fchmod"])
def test_a_copy_that_fails_leaves_everything_as_it_was(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    before = texts(notes(memory))
    refuse_renames(monkeypatch, is_folder)
    copy = folder_move._copy

    def full(*arguments: Any, **named: Any) -> Any:
        def fail(*arguments: Any, **more: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, failing, fail)
            return copy(*arguments, **named)

    monkeypatch.setattr(folder_move, "_copy", full)
    with pytest.raises(MemorandaError):
        memory.move_folder("notes", "plans", "done")
    assert texts(notes(memory)) == before
    assert not [*memory.engine.layout.root.rglob(".tmp-*")]


def test_a_writer_that_died_between_copy_and_removal_is_completed(tmp_path: Path) -> None:
    old = tmp_path / "plans"
    new = tmp_path / "done"
    for folder in (old, new):
        (folder / "deep").mkdir(parents=True)
        (folder / "a.md").write_text("a")
        (folder / "deep/b.md").write_text("b")
    (old / "edited.md").write_text("by somebody")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    entries = [folder_move.Entry(descriptor, name) for name in ("plans", "done")]
    folder_move.clear_moved(*entries)
    os.close(descriptor)

    assert texts(old) == {"edited.md": b"by somebody"}
    assert texts(new) == {"a.md": b"a", "deep/b.md": b"b"}
