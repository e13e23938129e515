"""The home on its worst days: a death seen by two processes, a change nobody can finish, a broken
taking back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from memoranda import clock
from memoranda.errors import MemorandaError, NotPutBack, StorageError
from memoranda.ledger import execution
from memoranda.ledger.execution import Execution
from memoranda.ledger.ledger import Ledger
from memoranda.sources.folder import FolderSource
from memoranda.sources.layout import Layout
from memoranda.sources.step import Step

from .test_ledger import commit, files, put, step


class Died(KeyboardInterrupt):
    """Stands for a process that ends here: nothing of the home's own clearing up may run."""


def dies(ledger: Ledger, monkeypatch, at: int, *steps: Step) -> None:
    """Begin a change and die before its step number `at` (from 0); the ledger and the files stay as
    a dead process leaves them.
    """
    with monkeypatch.context() as patch:
        planned_steps = []
        execute = Execution.run

        def last_breath(self, planned):
            if len(planned_steps) == at:
                raise Died
            planned_steps.append(planned)
            execute(self, planned)

        patch.setattr(Execution, "run", last_breath)
        with pytest.raises(Died):
            commit(ledger, *steps)


def again(ledger: Ledger) -> Ledger:
    return Ledger(Layout(ledger.layout.root), clock.now)


def retry_all(ledger: Ledger) -> None:
    with ledger.lock:
        for name in ledger.set_aside():
            ledger.retry(name)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The folder of another project, on a separate disk."""
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


def dies_between(
    ledger: Ledger, notes: FolderSource, disk: Path, monkeypatch, text: str = "a"
) -> None:
    """Die when `a.md` of the home is written and `b.md` of the disk is not."""
    dies(ledger, monkeypatch, 1, put(notes, "a.md", text), on_disk(disk, "put", "b.md", data=b"b"))


def test_a_change_set_aside_is_finished_even_when_other_changes_came_meanwhile(
    ledger, notes, disk, monkeypatch
):
    dies_between(ledger, notes, disk, monkeypatch)
    with unplugged(disk):
        second_ledger = again(ledger)
        with second_ledger.lock:
            pass
        commit(second_ledger, put(notes, "c.md", "c"))
    [waiting] = second_ledger.set_aside()
    with second_ledger.lock:
        second_ledger.retry(waiting)
    assert (disk / "b.md").read_text() == "b"
    assert list(files(notes)) == ["a.md", "c.md"]
    assert [change.number for change in second_ledger.history.changes()] == [2, 1]
    assert second_ledger.set_aside() == []
    second_ledger.close()


def test_two_changes_set_aside_are_both_finished(ledger, notes, disk, monkeypatch):
    for name in ("one", "two"):
        files_on_disk = on_disk(disk, "put", f"{name}.md", data=name.encode())
        dies(ledger, monkeypatch, 1, put(notes, f"{name}.md", name), files_on_disk)
        with unplugged(disk), ledger.lock:
            pass
    assert len(ledger.set_aside()) == 2
    retry_all(ledger)
    names = sorted(path.name for path in disk.iterdir())
    assert names == ["one.md", "two.md"]


def test_a_retry_that_fails_again_leaves_the_change_waiting(ledger, notes, disk, monkeypatch):
    dies_between(ledger, notes, disk, monkeypatch)
    with unplugged(disk):
        with ledger.lock:
            pass
        before = ledger.set_aside()
        with pytest.raises(MemorandaError):
            retry_all(ledger)
        with ledger.lock:
            pass
    assert ledger.set_aside() == before
    assert not ledger.unfinished()


def test_recovery_keeps_what_an_editor_saved_after_the_death(ledger, notes, monkeypatch):
    commit(ledger, put(notes, "a.md", "first"))
    dies(ledger, monkeypatch, 0, put(notes, "a.md", "of the dead"))
    (Path(notes.root) / "a.md").write_text("saved by hand")
    again(ledger).close()
    with ledger.lock:
        assert ledger.history.last == 1

    assert files(notes) == {"a.md": "saved by hand"}


def test_recovery_after_some_steps_keeps_a_hand_made_change(ledger, notes, monkeypatch):
    commit(ledger, put(notes, "a.md", "a1"))
    commit(ledger, put(notes, "b.md", "b1"))
    dies(ledger, monkeypatch, 1, put(notes, "a.md", "a2"), put(notes, "b.md", "b2"))
    (Path(notes.root) / "b.md").write_text("saved by hand")
    again(ledger).close()
    assert files(notes) == {"a.md": "a2", "b.md": "saved by hand"}
    with ledger.lock:
        newest = next(ledger.history.changes())
        text = ledger.history.text(newest.files[1].old, "b.md")
        assert text == b"b1"


@pytest.mark.parametrize("at", range(4))
def test_recovery_carries_out_whatever_was_left_and_leaves_no_temporary_file(
    ledger, notes, monkeypatch, at
):
    commit(ledger, put(notes, "a.md", "a1"), put(notes, "b.md", "b1"), put(notes, "c.md", "c1"))
    steps = [
        put(notes, "a.md", "a2"),
        step(notes, "remove", "b.md", old=notes.read("b.md")),
        step(notes, "move", "c.md", to="d.md", old=notes.read("c.md")),
    ]
    dies(ledger, monkeypatch, at, *steps) if at < 3 else commit(ledger, *steps)
    again(ledger).close()

    assert files(notes) == {"a.md": "a2", "d.md": "c1"}
    names = os.listdir(notes.root)
    assert sorted(names) == ["a.md", "d.md"]


def test_a_foreign_file_in_a_folder_to_be_taken_back_is_left_and_the_rest_goes(
    ledger, notes, monkeypatch
):
    commit(ledger, put(notes, "old.md", "old"))
    commit(ledger, put(notes, "last.md", "last"))
    steps = [put(notes, "old.md", "new"), put(notes, "fresh/a.md", "a"), put(notes, "last.md", "x")]
    run = Execution.run

    def refuse_last(self, planned):
        if planned.path == "last.md":
            (Path(notes.root) / "fresh" / "foreign.txt").write_text("mine")
            raise OSError(errno.ENOSPC, "full")
        run(self, planned)

    with monkeypatch.context() as patch:
        patch.setattr(Execution, "run", refuse_last)
        with pytest.raises(StorageError):
            commit(ledger, *steps)
    again(ledger).close()
    assert files(notes) == {"fresh/foreign.txt": "mine", "last.md": "last", "old.md": "old"}


def test_removing_a_link_spares_a_file_that_took_its_place(ledger, notes):
    (Path(notes.root) / "l.md").write_text("precious")
    with pytest.raises(MemorandaError):
        commit(ledger, step(notes, "unlink", "l.md", link="elsewhere"))
    assert files(notes) == {"l.md": "precious"}


def test_forgetting_old_changes_spares_the_texts_of_one_set_aside(ledger, notes, disk, monkeypatch):
    commit(ledger, put(notes, "a.md", "a1"))
    dies_between(ledger, notes, disk, monkeypatch, "a2")
    with unplugged(disk), ledger.lock:
        ledger.purge(clock.now() - timedelta(days=90))
    retry_all(ledger)
    newest = next(ledger.history.changes())

    text = ledger.history.text(newest.files[0].old, "a.md")
    assert text == b"a1"


def test_a_removal_is_not_taken_for_done_while_its_disk_is_away(ledger, disk, monkeypatch):
    (disk / "b.md").write_text("b")
    old = FolderSource("disk", disk).read("b.md")
    dies(ledger, monkeypatch, 0, on_disk(disk, "remove", "b.md", old=old))
    with unplugged(disk), ledger.lock:
        assert len(ledger.set_aside()) == 1
    assert (disk / "b.md").exists()
    retry_all(ledger)
    assert ledger.history.last == 1
    paths = list(disk.iterdir())
    assert paths == []


def test_a_dead_move_is_finished_when_its_source_was_made_anew(ledger, notes, monkeypatch):
    commit(ledger, put(notes, "a.md", "moved"))
    old = notes.read("a.md")
    dies(
        ledger,
        monkeypatch,
        2,
        step(notes, "move", "a.md", to="x/a.md", old=old),
        put(notes, "b.md", "b"),
    )
    (Path(notes.root) / "a.md").write_text("another")
    again(ledger).close()
    assert files(notes) == {"a.md": "another", "b.md": "b", "x/a.md": "moved"}
    with ledger.lock:
        assert (ledger.set_aside(), ledger.history.last) == ([], 2)


def test_what_cannot_be_taken_back_is_named_and_nothing_is_lost(ledger, notes, monkeypatch):
    commit(ledger, put(notes, "a.md", "a1"))
    commit(ledger, put(notes, "b.md", "b1"))
    steps = [put(notes, "a.md", "a2"), put(notes, "b.md", "b2")]
    with monkeypatch.context() as patch:
        calls = []
        exchange = execution.exchange

        def only_once(new, place):
            calls.append(place)
            if len(calls) > 1:
                raise OSError(errno.EIO, "Input/output error")
            exchange(new, place)

        patch.setattr(execution, "exchange", only_once)
        with pytest.raises(NotPutBack, match=r"not put back: a\.md"):
            commit(ledger, *steps)
    assert files(notes) == {"a.md": "a2", "b.md": "b1"}
    newest = next(ledger.history.changes())
    paths = [touched.path for touched in newest.files]
    assert paths == ["a.md"]
    text = ledger.history.text(newest.files[0].old, "a.md")
    assert text == b"a1"
    commit(ledger, put(notes, "b.md", "b3"))
    again(ledger).close()
    assert files(notes) == {"a.md": "a2", "b.md": "b3"}
    numbers = [change.number for change in ledger.history.changes()]
    assert numbers == [4, 3, 2, 1]


@pytest.mark.parametrize("at", range(1, 5))
def test_control_c_between_two_steps_leaves_all_or_nothing(ledger, notes, monkeypatch, at):
    commit(ledger, put(notes, "a.md", "a1"))
    commit(ledger, put(notes, "b.md", "b1"))
    steps_seen = []
    with monkeypatch.context() as patch:

        def interrupted(function):
            def call(*args, **more):
                result = function(*args, **more)
                steps_seen.append(1)
                if len(steps_seen) == at:
                    raise KeyboardInterrupt
                return result

            return call

        patch.setattr(os, "rename", interrupted(os.rename))
        patch.setattr(os, "unlink", interrupted(os.unlink))
        patch.setattr(execution, "exchange", interrupted(execution.exchange))
        with pytest.raises(KeyboardInterrupt):
            commit(ledger, put(notes, "a.md", "a2"), put(notes, "b.md", "b2"))
    with ledger.lock:
        numbers = [change.number for change in ledger.history.changes()]
    assert files(notes) in ({"a.md": "a1", "b.md": "b1"}, {"a.md": "a2", "b.md": "b2"})
    assert (files(notes)["a.md"] == "a2") == (numbers == [3, 2, 1])
    commit(ledger, put(notes, "c.md", "c"))
    numbers = [change.number for change in ledger.history.changes()]
    assert numbers == sorted(set(numbers), reverse=True)
