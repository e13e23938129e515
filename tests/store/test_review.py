"""The home on its worst days: a death seen by two processes, a record nobody can finish, a broken
taking back.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from memoranda import clock
from memoranda.errors import MemorandaError, StorageError
from memoranda.store import change as working
from memoranda.store.change import Step
from memoranda.store.folder import FolderStore
from memoranda.store.home import Home
from memoranda.store.journal import RedoRecord, redo_lines
from memoranda.store.layout import Layout

from .test_home import commit, files, put, step


class Died(Exception):
    """Stands for a process that ends here: nothing of the home's own clearing up may run."""


def dies(home: Home, monkeypatch, at: int, *steps: Step) -> None:
    """Begin a change and die before its step number `at` (from 0); the record stays as a dead
    process leaves it.
    """
    with monkeypatch.context() as patch:
        seen = []
        execute = working.Execution.run

        def last_breath(self, each):
            if len(seen) == at:
                raise Died
            seen.append(each)
            execute(self, each)

        patch.setattr(working.Execution, "run", last_breath)
        patch.setattr(working.Execution, "rollback", lambda self: None)
        patch.setattr(working.Execution, "remove_temps", lambda self, steps: None)
        patch.setattr(RedoRecord, "drop", lambda self: None)
        with pytest.raises(Died):
            commit(home, *steps)


def again(home: Home) -> Home:
    return Home(Layout(home.layout.root), clock.now)


def retry_all(home: Home) -> None:
    with home.lock:
        for record in home.set_aside():
            home.retry(record)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The folder of another project, on a disk of its own."""
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@contextmanager
def unplugged(disk: Path) -> Iterator[None]:
    away = disk.with_name("away")
    os.rename(disk, away)
    yield
    os.rename(away, disk)


def on_disk(folder: Path, do: str, path: str, **more) -> Step:
    return Step(do, "disk", str(folder), path, **more)


def dies_between(home: Home, notes: FolderStore, disk: Path, monkeypatch, text: str = "a") -> None:
    """Die when `a.md` of the home is written and `b.md` of the disk is not."""
    dies(home, monkeypatch, 1, put(notes, "a.md", text), on_disk(disk, "put", "b.md", data=b"b"))


def test_a_record_set_aside_is_finished_even_when_other_changes_came_meanwhile(
    home, notes, disk, monkeypatch
):
    dies_between(home, notes, disk, monkeypatch)
    with unplugged(disk):
        with again(home).lock:
            pass
        other = again(home)
        commit(other, put(notes, "c.md", "c"))
    [record] = other.set_aside()
    with other.lock:
        other.retry(record)
    assert (disk / "b.md").read_text() == "b"
    assert list(files(notes)) == ["a.md", "c.md"]
    assert [each.number for each in other.history.changes()] == [2, 1]
    assert other.set_aside() == []
    other.close()


def test_two_records_set_aside_do_not_overwrite_each_other(home, notes, disk, monkeypatch):
    for name in ("one", "two"):
        there = on_disk(disk, "put", f"{name}.md", data=name.encode())
        dies(home, monkeypatch, 1, put(notes, f"{name}.md", name), there)
        with unplugged(disk), home.lock:
            pass
    retry_all(home)
    assert sorted(each.name for each in disk.iterdir()) == ["one.md", "two.md"]


def test_a_retry_that_fails_again_leaves_one_record(home, notes, disk, monkeypatch):
    dies_between(home, notes, disk, monkeypatch)
    with unplugged(disk):
        with home.lock:
            pass
        before = home.set_aside()
        with pytest.raises(MemorandaError):
            retry_all(home)
        with home.lock:
            pass
    assert home.set_aside() == before
    assert not home.unfinished()


def test_a_process_that_was_running_when_a_record_was_set_aside_uses_the_new_one(
    home, notes, disk, monkeypatch
):
    running = again(home)
    dies_between(home, notes, disk, monkeypatch)
    with unplugged(disk):
        with home.lock:
            pass
        aside = {name: Path(name).read_bytes() for name in home.set_aside()}
        with running.lock:
            pass
        dies(running, monkeypatch, 1, put(notes, "c.md", "c"), put(notes, "d.md", "d"))
        third = again(home)
    assert {name: Path(name).read_bytes() for name in third.set_aside()} == aside
    assert {"c.md", "d.md"} <= set(files(notes))
    third.close()
    running.close()


@pytest.mark.parametrize(
    "data",
    [
        b'{"mark":"x","places":[]}\n\0\0\0\0\n',
        b'{"mark":"x"}\n{"change":"{}","steps":[]}\n',
        b'{"mark":"x","places":[["notes"]]}\n',
        b"{\xff\n{}\n",
        b"{}\n[]\n",
    ],
)
def test_a_damaged_record_stops_nobody(home, notes, data):
    home.layout.redo.write_bytes(data)
    with home.lock:
        pass
    commit(home, put(notes, "a.md", "a"))
    assert files(notes) == {"a.md": "a"}
    for record in home.set_aside():
        with pytest.raises(MemorandaError), home.lock:
            home.retry(record)
    commit(home, put(notes, "b.md", "b"))


def test_a_record_mixed_from_two_of_one_shape_is_damaged(tmp_path):
    redo = RedoRecord(tmp_path / "redo")
    written = []
    for mark, paths in (("a", ["one", "two"]), ("b", ["six", "ten"])):
        redo.add({"mark": mark}, is_new=True)
        redo.add({"steps": paths})
        written.append(redo.read())
        redo.drop()
    older, newer = written
    assert len(older) == len(newer)
    for mixed in {newer[:at] + older[at:] for at in range(1, len(older))} - {older, newer}:
        with pytest.raises(ValueError, match="checksum"):
            redo_lines(mixed)
    redo.close()


def test_a_record_from_before_there_were_checksums_is_read():
    rows = [{"mark": "a"}, {"steps": []}]
    assert redo_lines(b"".join(json.dumps(row).encode() + b"\n" for row in rows)) == rows
    assert redo_lines(b'{"mark":"a"}\n{"steps":') == rows[:1]


def test_recovery_keeps_what_an_editor_saved_after_the_death(home, notes, monkeypatch):
    commit(home, put(notes, "a.md", "first"))
    dies(home, monkeypatch, 0, put(notes, "a.md", "of the dead"))
    (Path(notes.root) / "a.md").write_text("saved by hand")
    again(home).close()
    with home.lock:
        assert home.history.last == 1
    assert files(notes) == {"a.md": "saved by hand"}


def test_recovery_after_some_steps_puts_a_hand_made_change_into_the_history(
    home, notes, monkeypatch
):
    commit(home, put(notes, "a.md", "a1"))
    commit(home, put(notes, "b.md", "b1"))
    dies(home, monkeypatch, 1, put(notes, "a.md", "a2"), put(notes, "b.md", "b2"))
    (Path(notes.root) / "b.md").write_text("saved by hand")
    again(home).close()
    assert files(notes) == {"a.md": "a2", "b.md": "b2"}
    with home.lock:
        newest = next(home.history.changes())
        assert home.history.text(newest.files[1].old, "b.md") == b"saved by hand"


def test_a_foreign_file_in_a_folder_to_be_taken_back_is_left_and_the_rest_goes(
    home, notes, monkeypatch
):
    commit(home, put(notes, "old.md", "old"))
    steps = [put(notes, "old.md", "new"), put(notes, "fresh/a.md", "a")]
    with monkeypatch.context() as patch:

        def refuse(self, lines, last):
            (Path(notes.root) / "fresh" / "foreign.txt").write_text("mine")
            raise OSError(errno.ENOSPC, "full")

        patch.setattr(type(home.history), "append_lines", refuse)
        with pytest.raises(StorageError):
            commit(home, *steps)
    again(home).close()
    assert files(notes) == {"fresh/foreign.txt": "mine", "old.md": "old"}


def test_removing_a_link_spares_a_file_that_took_its_place(home, notes):
    (Path(notes.root) / "l.md").write_text("precious")
    with pytest.raises(MemorandaError):
        commit(home, step(notes, "unlink", "l.md", link="elsewhere"))
    assert files(notes) == {"l.md": "precious"}


def test_a_damaged_text_in_the_history_does_not_stop_a_sound_one_from_being_kept(home, notes):
    commit(home, put(notes, "a.md", "text"))
    digest = commit(home, put(notes, "a.md", "other")).files[0].old
    Path(home.history.object_path(digest)).write_text("spoilt by a program that kept it open")
    commit(home, put(notes, "b.md", "text"))
    commit(home, put(notes, "b.md", "other"))
    assert home.history.text(digest, "b.md") == b"text"


def test_forgetting_old_changes_spares_the_texts_of_a_record_set_aside(
    home, notes, disk, monkeypatch
):
    commit(home, put(notes, "a.md", "a1"))
    dies_between(home, notes, disk, monkeypatch, "a2")
    with unplugged(disk), home.lock:
        home.purge(clock.now() - timedelta(days=90))
    retry_all(home)
    newest = next(home.history.changes())
    assert home.history.text(newest.files[0].old, "a.md") == b"a1"


def test_a_lost_folder_of_the_history_is_made_anew(home, notes):
    commit(home, put(notes, "d/a.md", "a"))
    shutil.rmtree(home.layout.objects)
    digest = commit(home, put(notes, "d/a.md", "b")).files[0].old
    assert home.history.text(digest, "d/a.md") == b"a"


def test_a_removal_is_not_taken_for_done_while_its_disk_is_away(home, disk, monkeypatch):
    (disk / "b.md").write_text("b")
    old = FolderStore("disk", disk).read("b.md")
    dies(home, monkeypatch, 0, on_disk(disk, "remove", "b.md", old=old))
    with unplugged(disk), home.lock:
        assert home.history.last == 0
    retry_all(home)
    assert home.history.last == 1
    assert list(disk.iterdir()) == []


def test_a_dead_move_is_finished_when_its_source_was_made_anew(home, notes, monkeypatch):
    commit(home, put(notes, "a.md", "moved"))
    old = notes.read("a.md")
    dies(
        home,
        monkeypatch,
        2,
        step(notes, "move", "a.md", to="x/a.md", old=old),
        put(notes, "b.md", "b"),
    )
    (Path(notes.root) / "a.md").write_text("another")
    again(home).close()
    assert files(notes) == {"a.md": "another", "b.md": "b", "x/a.md": "moved"}
    with home.lock:
        assert (home.set_aside(), home.history.last) == ([], 2)


def test_a_failure_of_the_taking_back_leaves_no_record_behind(home, notes, monkeypatch):
    commit(home, put(notes, "a.md", "a1"))
    commit(home, put(notes, "b.md", "b1"))
    passing = put(notes, "a.md", "a2")
    passing.kept = False
    steps = [passing, put(notes, "b.md", "b2")]
    with monkeypatch.context() as patch:

        def full(*_):
            raise OSError(errno.ENOSPC, "full")

        patch.setattr(type(home.history), "append_lines", full)
        write = working.write_file
        patch.setattr(
            working,
            "write_file",
            lambda name, *a, **k: full() if "-back-" in name else write(name, *a, **k),
        )
        with pytest.raises(StorageError):
            commit(home, *steps)
    assert files(notes) == {"a.md": "a1", "b.md": "b1"}
    again(home).close()
    assert files(notes) == {"a.md": "a1", "b.md": "b1"}
    assert home.history.last == 2


@pytest.mark.parametrize("at", range(1, 5))
def test_control_c_between_two_steps_leaves_all_or_nothing(home, notes, monkeypatch, at):
    commit(home, put(notes, "a.md", "a1"))
    commit(home, put(notes, "b.md", "b1"))
    seen = []
    with monkeypatch.context() as patch:

        def interrupted(function):
            def call(*args, **more):
                done = function(*args, **more)
                seen.append(1)
                if len(seen) == at:
                    raise KeyboardInterrupt
                return done

            return call

        patch.setattr(os, "rename", interrupted(os.rename))
        patch.setattr(os, "fdatasync", interrupted(os.fdatasync))
        with pytest.raises(KeyboardInterrupt):
            commit(home, put(notes, "a.md", "a2"), put(notes, "b.md", "b2"))
    with home.lock:
        numbers = [each.number for each in home.history.changes()]
    assert files(notes) in ({"a.md": "a1", "b.md": "b1"}, {"a.md": "a2", "b.md": "b2"})
    assert (files(notes)["a.md"] == "a2") == (numbers == [3, 2, 1])
    commit(home, put(notes, "c.md", "c"))
    numbers = [each.number for each in home.history.changes()]
    assert numbers == sorted(set(numbers), reverse=True)
