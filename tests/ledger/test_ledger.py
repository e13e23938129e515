"""The ledger: all or nothing, durable, taken back on failure, finished after a death."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from memoranda import clock
from memoranda.errors import Conflict, Exists, NotFound, StorageError
from memoranda.ledger.database import LedgerRefused
from memoranda.ledger.execution import Execution
from memoranda.ledger.ledger import Ledger
from memoranda.sources.files import lock_owner
from memoranda.sources.folder import FolderSource
from memoranda.sources.step import Step


def step(notes: FolderSource, do: str, path: str, **more) -> Step:
    return Step(do, "notes", notes.root, path, **more)


def put(notes: FolderSource, path: str, text: str) -> Step:
    try:
        old = notes.read(path)
    except NotFound:
        old = None
    return step(notes, "put", path, data=text.encode(), old=old)


def commit(ledger: Ledger, *steps: Step, verb: str = "write"):
    with ledger.lock:
        return ledger.write(verb, lambda: steps, ("notes", steps[0].path))


def files(notes: FolderSource) -> dict[str, str]:
    root = Path(notes.root)
    return {str(p.relative_to(root)): p.read_text() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(("before", "refusal"), [("one", Conflict), (None, Exists)])
def test_a_file_that_changed_or_came_since_it_was_looked_at_is_not_written_over(
    ledger, notes, before, refusal
):
    if before is not None:
        commit(ledger, put(notes, "a.md", before))
    stale = put(notes, "a.md", "mine")
    (Path(notes.root) / "a.md").write_text("theirs!")
    with pytest.raises(refusal):
        commit(ledger, stale)

    assert files(notes) == {"a.md": "theirs!"}


def test_a_change_of_many_files_is_nothing_when_one_step_is_refused(ledger, notes):
    commit(ledger, put(notes, "a.md", "a"), put(notes, "b.md", "b"), put(notes, "c.md", "c"))
    steps = [
        put(notes, "a.md", "A"),
        step(notes, "remove", "b.md", old=notes.read("b.md")),
        step(notes, "move", "c.md", to="d/c.md", old=notes.read("c.md")),
        put(notes, "new/x.md", "x"),
        step(notes, "move", "a.md", to="d/c.md"),
    ]
    with pytest.raises(Exists):
        commit(ledger, *steps)

    assert files(notes) == {"a.md": "a", "b.md": "b", "c.md": "c"}
    names = os.listdir(notes.root)
    assert sorted(names) == ["a.md", "b.md", "c.md"]
    assert ledger.history.last == 1
    assert not ledger.unfinished()


def test_a_ledger_that_refuses_changes_nothing(ledger, notes, monkeypatch):
    commit(ledger, put(notes, "a.md", "one"))

    def full(*_, **__):
        raise LedgerRefused("the disk is full")

    changed = put(notes, "a.md", "two")
    new = put(notes, "b.md", "b")
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_record", full)
        with pytest.raises(StorageError, match=r"a\.md: the disk is full"):
            commit(ledger, changed, new)
    assert files(notes) == {"a.md": "one"}
    assert ledger.history.last == 1


def test_a_file_that_cannot_be_replaced_takes_the_whole_change_back(ledger, notes, monkeypatch):
    commit(ledger, put(notes, "a.md", "one"))
    commit(ledger, put(notes, "c.md", "c"))
    steps = [
        put(notes, "a.md", "two"),
        put(notes, "b.md", "b"),
        step(notes, "remove", "c.md", old=notes.read("c.md")),
        put(notes, "d.md", "d"),
    ]
    link = os.link

    def refuse_last(source, target, **more):
        if target == "d.md":
            raise OSError(errno.ENOSPC, "No space left on device")
        link(source, target, **more)

    monkeypatch.setattr(os, "link", refuse_last)
    with pytest.raises(StorageError, match="disk is full"):
        commit(ledger, *steps)
    assert files(notes) == {"a.md": "one", "c.md": "c"}
    assert ledger.history.last == 2
    assert list(ledger.history.texts()) == []


def test_purging_forgets_old_changes_and_their_texts_and_numbers_go_on(ledger, notes):
    for text in ("one", "two", "three"):
        commit(ledger, put(notes, "a.md", text))
    with ledger.lock:
        assert ledger.purge(clock.now()) == 2
    numbers = [change.number for change in ledger.history.changes()]
    assert numbers == [3]
    number = commit(ledger, put(notes, "a.md", "four")).number
    assert number == 4
    texts = [ledger.history.text(digest, "") for digest in ledger.history.texts()]
    assert sorted(texts) == [b"three", b"two"]


def is_free(ledger: Ledger) -> bool:
    """Whether another process could lock the home."""
    fd = os.open(ledger.layout.private, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def test_a_home_that_was_away_when_its_lock_was_wanted_is_not_locked_once_it_is_back(
    ledger, tmp_path
):
    away = tmp_path / "away"
    os.rename(ledger.layout.root, away)
    with pytest.raises(FileNotFoundError), ledger.lock:
        pass
    os.rename(away, ledger.layout.root)
    assert is_free(ledger)


def test_a_deleted_lock_file_lets_no_second_writer_in(ledger):
    with ledger.lock:
        ledger.layout.lock.unlink()
        assert not is_free(ledger)
    pid = str(os.getpid())
    with ledger.lock:
        assert not is_free(ledger)
        owner = lock_owner(ledger.layout.private)
        assert owner is not None
        assert owner.pid == pid
        assert str(owner).startswith(f"process {pid} (")

    assert lock_owner(ledger.layout.private) is None


def test_a_process_that_ended_is_never_named_as_the_holder(ledger):
    with ledger.lock:
        ledger.layout.lock.write_text("4194304 1700000000.000 memory write".ljust(79) + "\n")
        owner = lock_owner(ledger.layout.private)
        assert owner is not None
        assert owner.pid != "4194304"


def test_a_process_that_has_the_number_of_one_that_ended_is_never_named_as_the_holder(ledger):
    with ledger.lock, subprocess.Popen(["sleep", "60"]) as later:
        signed = time.time() - 100
        line = f"{later.pid} {signed:.3f} memory write"
        ledger.layout.lock.write_text(line.ljust(79) + "\n")
        owner = lock_owner(ledger.layout.private)
        later.kill()
    assert owner is not None
    assert owner.pid != str(later.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says when a process began")
def test_a_killed_holder_is_not_named_while_its_child_keeps_the_lock(tmp_path):
    code = (
        "import os, pathlib, sys, time\n"
        "from memoranda.ledger.lock import HomeLock\n"
        "HomeLock(pathlib.Path(sys.argv[1]), lambda died: None).__enter__()\n"
        "child = os.fork()\n"
        "if child: print(child, flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        before = lock_owner(tmp_path)
        holder.kill()
        holder.wait()
        after = lock_owner(tmp_path)
        os.kill(child, signal.SIGKILL)
    assert before is not None
    assert before.pid == str(holder.pid)
    assert after is not None
    assert after.pid != str(holder.pid)


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
    ledger, notes, tmp_path
):
    commit(ledger, put(notes, "a.md", "one"))
    away = tmp_path / "away"
    os.rename(ledger.layout.root, away)
    with pytest.raises(OSError, match="No such file"):
        commit(ledger, step(notes, "put", "b.md", data=b"two"))
    with others():
        os.rename(away, ledger.layout.root)
        commit(ledger, put(notes, "b.md", "two"))
        numbers = [change.number for change in ledger.history.changes()]
        assert numbers == [2, 1]


def test_a_ledger_that_was_deleted_begins_again_and_the_notes_are_whole(ledger, notes):
    commit(ledger, put(notes, "a.md", "one"))
    for path in ledger.layout.private.glob("ledger.db*"):
        path.unlink()
    commit(ledger, put(notes, "b.md", "two"))

    paths = [change.path for change in ledger.history.changes()]
    assert paths == ["b.md"]
    assert files(notes) == {"a.md": "one", "b.md": "two"}


@pytest.mark.parametrize("at", [0, 4000])
def test_a_damaged_ledger_is_set_aside_and_its_history_begins_again(ledger, notes, at):
    for text in ("one", "two", "three"):
        commit(ledger, put(notes, "a.md", text * 1000))
    ledger.close()
    data = bytearray(ledger.layout.ledger.read_bytes())
    data[at : at + 9000] = b"x" * 9000
    ledger.layout.ledger.write_bytes(data)
    second_ledger = Ledger(ledger.layout, clock.now)
    with suppress(StorageError):
        commit(second_ledger, put(notes, "b.md", "b"))
    commit(second_ledger, put(notes, "c.md", "c"))
    assert files(notes)["a.md"] == "three" * 1000
    assert files(notes)["c.md"] == "c"
    assert "its history begins again" in second_ledger.trouble().replace("their", "its")
    second_ledger.close()


def test_a_command_in_the_lock_file_has_two_words_and_no_private_ones(ledger, monkeypatch):
    for arguments, expected_command in (
        (["/usr/bin/memory", "write", "my secret"], "memory write"),
        (["/usr/bin/memory", "My secret", "x"], "memory"),
        (["memory", "--home=/private"], "memory"),
    ):
        monkeypatch.setattr(sys, "argv", arguments)
        with ledger.lock:
            owner = lock_owner(ledger.layout.private)
        assert owner is not None
        assert owner.command == expected_command


def test_a_change_reaches_into_more_folders_than_a_process_may_have_files_open(ledger, notes):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    paths = [f"{number}/a.md" for number in range(450)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, limits[1]))
    try:
        commit(ledger, *(put(notes, path, path) for path in paths))
        assert files(notes) == {path: path for path in paths}
        removals = [step(notes, "remove", path, old=notes.read(path)) for path in paths]
        with pytest.raises(NotFound):
            commit(ledger, *removals, step(notes, "rmdir", "0"), step(notes, "rmdir", "0"))
        assert files(notes) == {path: path for path in paths}
        commit(ledger, *removals, *(step(notes, "rmdir", path.partition("/")[0]) for path in paths))
        names = os.listdir(notes.root)
        assert names == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_recovery_syncs_every_folder_a_dead_writer_used_before_the_ledger_forgets_it(
    ledger, notes, monkeypatch
):
    paths = [f"{number}/a.md" for number in range(450)]
    with monkeypatch.context() as patch:
        patch.setattr(Execution, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            commit(ledger, *(put(notes, path, path) for path in paths))
    synced = set[int]()
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), sync(fd))[1])
    with ledger.lock:
        assert len(list(ledger.history.changes())) == 1
    folders = [os.path.join(notes.root, path.partition("/")[0]) for path in paths]

    inodes = {os.stat(folder).st_ino for folder in folders}
    assert inodes <= synced
    assert ledger.database.rows("select * from unsynced") == []


def test_files_are_synced_and_their_new_texts_forgotten(ledger, notes):
    commit(ledger, put(notes, "a.md", "one"))
    data = ledger.database.row("select data from pending_step")["data"]
    assert data == b"one"
    ledger.file_sync.sync()
    assert ledger.database.rows("select * from pending_step") == []
    assert ledger.database.rows("select * from unsynced") == []


def test_what_is_synced_is_everything_a_change_touched(ledger, notes, monkeypatch):
    commit(ledger, put(notes, "a/x.md", "one"))
    ledger.file_sync.sync()
    synced = set[int]()
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), sync(fd))[1])
    commit(ledger, put(notes, "a/x.md", "two"), step(notes, "move", "a/x.md", to="b/y.md"))
    ledger.file_sync.sync()
    root = Path(notes.root)

    inodes = {os.stat(root / name).st_ino for name in ("a", "b")}
    assert inodes <= synced


def test_a_large_text_is_kept_as_a_file_beside_the_ledger(ledger, notes):
    large = "x" * (2 << 20)
    commit(ledger, put(notes, "a.md", large))
    change = commit(ledger, put(notes, "a.md", "small"))
    digest = change.files[0].old
    text = ledger.history.text(digest, "a.md")
    assert text == large.encode()
    names = os.listdir(ledger.layout.texts)
    assert names == [digest]
    assert ledger.layout.ledger.stat().st_size < 1 << 20
    with ledger.lock:
        ledger.file_sync.sync()
        ledger.history.retract([2])
    names = os.listdir(ledger.layout.texts)
    assert names == []


@pytest.mark.parametrize("size", [10, 2 << 20], ids=["small", "large"])
def test_a_change_that_is_taken_back_leaves_no_text_but_those_other_changes_keep(
    ledger, notes, monkeypatch, size
):
    commit(ledger, put(notes, "a.md", "a" * size))
    commit(ledger, put(notes, "a.md", "b" * size))
    texts = set(ledger.history.texts())

    def refuse(self, step, *_):
        raise OSError(errno.EIO, "no")

    steps = [put(notes, "a.md", "c" * size), put(notes, "b.md", "b")]
    with monkeypatch.context() as patch:
        patch.setattr(Execution, "run", refuse)
        with pytest.raises(StorageError):
            commit(ledger, *steps)
    assert texts == set(ledger.history.texts()) != set()
    assert ledger.history.unreferenced() == []


@pytest.mark.parametrize("size", [10, 2 << 20], ids=["small", "large"])
def test_a_change_that_is_taken_back_leaves_the_text_that_another_program_replaced_elsewhere(
    ledger, notes, monkeypatch, size
):
    text = "a" * size
    written = commit(ledger, put(notes, "a.md", text))
    # Another program replaced it, and has a copy in another file
    Path(notes.root, "a.md").write_text("other")
    ledger.history.keep_overwritten(text.encode())
    Path(notes.root, "b.md").write_text(text)

    def refuse(self, step, *_):
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patch:
        patch.setattr(Execution, "run", refuse)
        with pytest.raises(StorageError):
            commit(ledger, put(notes, "b.md", "new"))
    assert ledger.history.text(written.files[0].new, "a.md") == text.encode()
