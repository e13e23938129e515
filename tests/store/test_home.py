"""The home: all or nothing, durable, taken back on failure, finished after a death."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoranda import clock
from memoranda.errors import Conflict, Exists, NotFound, StorageError
from memoranda.store.change import Step
from memoranda.store.files import lock_file, lock_owner
from memoranda.store.folder import FolderStore
from memoranda.store.home import Home
from memoranda.store.journal import Change, History


def step(notes: FolderStore, do: str, path: str, **more) -> Step:
    return Step(do, "notes", notes.root, path, **more)


def put(notes: FolderStore, path: str, text: str) -> Step:
    try:
        old = notes.read(path)
    except NotFound:
        old = None
    return step(notes, "put", path, data=text.encode(), old=old)


def commit(home: Home, *steps: Step, verb: str = "write"):
    with home.lock:
        return home.commit(verb, steps, about=("notes", steps[0].path))


def files(notes: FolderStore) -> dict[str, str]:
    root = Path(notes.root)
    return {str(p.relative_to(root)): p.read_text() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(("before", "refusal"), [("one", Conflict), (None, Exists)])
def test_a_file_that_changed_or_came_since_it_was_looked_at_is_not_written_over(
    home, notes, before, refusal
):
    if before is not None:
        commit(home, put(notes, "a.md", before))
    stale = put(notes, "a.md", "mine")
    (Path(notes.root) / "a.md").write_text("theirs!")
    with pytest.raises(refusal):
        commit(home, stale)
    assert files(notes) == {"a.md": "theirs!"}


def test_a_change_of_many_files_is_nothing_when_one_step_is_refused(home, notes):
    commit(home, put(notes, "a.md", "a"), put(notes, "b.md", "b"), put(notes, "c.md", "c"))
    steps = [
        put(notes, "a.md", "A"),
        step(notes, "remove", "b.md", old=notes.read("b.md")),
        step(notes, "move", "c.md", to="d/c.md", old=notes.read("c.md")),
        put(notes, "new/x.md", "x"),
        step(notes, "move", "a.md", to="d/c.md"),
    ]
    with pytest.raises(Exists):
        commit(home, *steps)
    assert files(notes) == {"a.md": "a", "b.md": "b", "c.md": "c"}
    assert sorted(os.listdir(notes.root)) == ["a.md", "b.md", "c.md"]
    assert home.history.last == 1
    assert not home.unfinished()


def test_a_disk_that_refuses_the_journal_line_takes_everything_back(home, notes, monkeypatch):
    commit(home, put(notes, "a.md", "one"))

    def full(lines, last):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(home.history, "append_lines", full)
    with pytest.raises(StorageError, match="disk is full"):
        commit(home, put(notes, "a.md", "two"), put(notes, "b.md", "b"))
    assert files(notes) == {"a.md": "one"}


def test_purging_forgets_old_changes_and_their_texts_and_numbers_go_on(home, notes):
    for text in ("one", "two", "three"):
        commit(home, put(notes, "a.md", text))
    with home.lock:
        assert home.history.purge(clock.now()) == 2
    assert [change.number for change in home.history.changes()] == [3]
    assert commit(home, put(notes, "a.md", "four")).number == 4
    kept = [p for p in Path(home.layout.objects).rglob("*") if p.is_file()]
    assert sorted(p.read_text() for p in kept) == ["three", "two"]


def test_a_half_written_journal_line_spoils_no_other(home, notes):
    commit(home, put(notes, "a.md", "one"))
    with open(home.layout.journal, "ab") as journal:
        journal.write(b'{"change": 2, "ti')
    assert commit(home, put(notes, "a.md", "two")).number == 2
    assert [change.number for change in home.history.changes()] == [2, 1]


def test_a_home_that_was_away_when_its_lock_was_wanted_is_not_locked_once_it_is_back(
    home, tmp_path
):
    lock = home.layout.lock
    away = tmp_path / "away"
    os.rename(home.layout.root, away)
    with pytest.raises(FileNotFoundError), home.lock:
        pass
    os.rename(away, home.layout.root)
    os.close(lock_file(lock, fcntl.LOCK_EX | fcntl.LOCK_NB))


def test_a_lock_file_removed_while_others_wait_lets_one_writer_in_at_a_time(home):
    with home.lock:
        home.layout.lock.unlink()
    # Its descriptor is that of the removed file: only the check afterwards finds out
    with home.lock:
        with pytest.raises(BlockingIOError):
            lock_file(home.layout.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owner = lock_owner(home.layout.lock)
        assert owner is not None
        assert owner.pid == str(os.getpid())
        assert str(owner).startswith(f"process {os.getpid()} (")


@contextmanager
def others() -> Iterator[None]:
    """Files of others, which get the numbers of closed descriptors: nobody else closes them or puts
    his in their place."""
    opened = [os.open(os.devnull, os.O_RDWR) for _ in range(20)]
    null = os.stat(os.devnull)
    yield
    strangers = [fd for fd in opened if not os.path.samestat(os.fstat(fd), null)]
    for fd in {*opened} - {*strangers}:
        os.close(fd)
    assert strangers == []


def test_a_home_that_was_away_for_a_moment_is_written_again_with_no_descriptor_used_twice(
    home, notes, tmp_path
):
    commit(home, put(notes, "a.md", "one"))
    away = tmp_path / "away"
    os.rename(home.layout.root, away)
    with pytest.raises(OSError, match="No such file"):
        commit(home, step(notes, "put", "b.md", data=b"two"))
    with others():
        os.rename(away, home.layout.root)
        commit(home, put(notes, "b.md", "two"))
        assert [change.number for change in home.history.changes()] == [2, 1]


def test_a_journal_that_cannot_be_opened_again_leaves_no_closed_descriptor_in_use(home, notes):
    commit(home, put(notes, "a.md", "one"))
    home.layout.journal.unlink()
    home.layout.journal.mkdir()
    with pytest.raises(IsADirectoryError), home.lock:
        pass
    with others():
        home.layout.journal.rmdir()
        commit(home, put(notes, "b.md", "two"))
        assert [change.path for change in home.history.changes()] == ["b.md"]


def test_a_command_in_the_lock_file_has_two_words_and_no_private_ones(home, monkeypatch):
    for arguments, shown in (
        (["/usr/bin/memory", "write", "my secret"], "memory write"),
        (["/usr/bin/memory", "My secret", "x"], "memory"),
        (["memory", "--home=/private"], "memory"),
    ):
        monkeypatch.setattr(sys, "argv", arguments)
        with home.lock:
            owner = lock_owner(home.layout.lock)
        assert owner is not None
        assert owner.command == shown


def test_a_change_reaches_into_more_folders_than_a_process_may_have_files_open(home, notes):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    paths = [f"{number}/a.md" for number in range(450)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, limits[1]))
    try:
        commit(home, *(put(notes, path, path) for path in paths))
        assert files(notes) == {path: path for path in paths}
        gone = [step(notes, "remove", path, old=notes.read(path)) for path in paths]
        with pytest.raises(NotFound):
            commit(home, *gone, step(notes, "rmdir", "0"), step(notes, "rmdir", "0"))
        assert files(notes) == {path: path for path in paths}
        commit(home, *gone, *(step(notes, "rmdir", path.partition("/")[0]) for path in paths))
        assert os.listdir(notes.root) == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_recovery_syncs_every_folder_a_dead_writer_used_before_the_journal_says_so(
    home, notes, monkeypatch
):
    paths = [f"{number}/a.md" for number in range(450)]
    with monkeypatch.context() as patch:
        patch.setattr(History, "append_lines", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            commit(home, *(put(notes, path, path) for path in paths))
    synced = set[int]()
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), sync(fd))[1])
    with home.lock:
        assert len(list(home.history.changes())) == 1
    assert {
        os.stat(os.path.join(notes.root, path.partition("/")[0])).st_ino for path in paths
    } <= synced


def test_a_long_line_of_the_journal_is_read_about_as_fast_as_it_is_parsed(home, notes):
    commit(home, put(notes, "a.md", "one"))
    change = next(home.history.changes())
    change.number = 2
    change.files = change.files * 60_000
    with open(home.layout.journal, "ab") as journal:
        journal.write(line := change.dump())
    begun = time.process_time()
    Change.load(line)
    loaded = time.process_time()
    with home.lock:
        assert home.history.last == 2
    assert time.process_time() - loaded < 2 * (loaded - begun)
