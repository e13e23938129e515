"""Writers that wait for the disk together: killed, refused by the disk, read and undone, all is as
for each alone.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crash import batches
from crash.batches import CALLS, at_once, begin
from crash.mortal import ENVIRONMENT, mortals, watched_disk
from crash.test_bad_days import Refusal
from crash.test_kill import KILLS, SECONDS, next_process
from memoranda import Draft, faces
from memoranda.clock import wait_for
from memoranda.engine import MemorySession, open_session
from memoranda.errors import NotFound
from memoranda.ledger import execution
from memoranda.note.edit import Append
from serve.daemon_process import Client, DaemonProcess

MADE = {
    "new": {"notes/New.md": "new new"},
    "overwritten": {"notes/Old.md": "after after"},
    "edited": {"notes/Edited.md": "added"},
    "entry": {"kv/default/colour.md": "red"},
    "superseding": {"notes/Now.md": "now", "notes/Then.md": "valid_until"},
}
"""The files each call changes, and what they hold only then."""


def prepared(home: Path) -> Path:
    with open_session(home) as memory:
        begin(memory)
    return home


def made(home: Path) -> set[str]:
    """The calls whose change is there as a whole. Fails when one is there in part."""
    names = set()
    for name, files in MADE.items():
        is_there_by_part = {
            (home / path).exists() and text in (home / path).read_text()
            for path, text in files.items()
        }
        assert len(is_there_by_part) == 1, name
        names |= {name} if is_there_by_part == {True} else set()
    for path in (*home.glob("notes/*.md"), *home.glob("kv/**/*.md")):
        text = path.read_text()
        assert text.endswith("\n")
        assert ("new" in text or "after" in text) <= (
            "new " * 199 in text or "after " * 199 in text
        ), path
    return names


def check(home: Path, acknowledged: set[str]) -> set[str]:
    """What the next process finds: every acknowledged change, each whole and in the journal,
    nothing left behind.
    """
    with next_process(home) as memory:
        names = made(home)
        assert acknowledged <= names, acknowledged - names
        log = memory.log(limit=0)
        numbers = [change.number for change in log]
        assert numbers == list(range(len(log), 0, -1))
        assert len(log) == 4 + len(names)
        infos, _ = memory.list(limit=0)
        on_disk = set()
        for top in ("notes", "kv"):
            on_disk |= {str(path.relative_to(home)) for path in (home / top).rglob("*.md")}
        assert {f"{info.project}/{info.path}" for info in infos} == on_disk
    return names


def succeed_at_once(memory: MemorySession, calls: dict[str, tuple[str, dict[str, Any]]]) -> None:
    with at_once(memory, calls) as replies:
        pass
    assert not any(reply is None or reply.is_error for reply in replies.values())


def in_turn_before(
    memory: MemorySession, work: Callable[[], Any], other_work: Callable[[], Any] = lambda: None
) -> None:
    """`work` as a call that may wait for others with its change, since `other_work` waits to come in after it."""
    waiting = threading.Thread(target=lambda: memory.as_caller("a", "mcp").in_turn(other_work))

    def run() -> None:
        if waiting.ident is None:
            waiting.start()
            while not memory.engine.guard.may_share:
                threading.Event().wait(0.001)
        work()

    memory.in_turn(run)
    waiting.join(SECONDS)


@pytest.mark.slow
@pytest.mark.promise("issue-batches", "issue-kill-9-at-every-step")
def test_a_batch_killed_at_each_write_rename_and_sync_leaves_each_change_whole_or_not_at_all(
    tmp_path,
):
    states_found = []
    with mortals(batches.__file__) as work:
        lines, total = work(prepared(tmp_path / "count"))
        assert sorted(lines) == sorted(CALLS)
        assert total > 40
        for die_at in range(1, total + 5):
            home = prepared(tmp_path / f"die-{die_at}")
            lines, _ = work(home, die_at)
            states_found.append(check(home, {line for line in lines if line in CALLS}))

    assert set() in states_found
    assert set(CALLS) in states_found


@pytest.mark.slow
@pytest.mark.promise("issue-batches", "issue-kill-9-random")
def test_a_server_killed_again_and_again_under_many_clients_of_its_socket_loses_nothing_acknowledged(
    tmp_path,
):
    program = [
        sys.executable,
        str(Path(batches.__file__).with_name("socket_kills.py")),
        str(tmp_path),
        str(KILLS),
    ]
    ran = subprocess.run(
        program, env=ENVIRONMENT, capture_output=True, text=True, timeout=10 * KILLS
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"done: {KILLS} kills"), ran.stdout


@pytest.mark.promise("issue-batches")
@pytest.mark.parametrize("watch", [True, False])
def test_a_batch_waits_once_for_each_file_of_the_home_and_no_step_comes_before_what_it_needs(
    tmp_path, monkeypatch, watch
):
    with open_session(prepared(tmp_path / "home"), watch=watch) as memory:
        memory.sync()
        steps = []

        def with_note(call, word):
            def noting(*args, **more):
                if word == "link":
                    steps.append("link" if args[0].startswith(".tmp-") else "")
                else:
                    steps.append(word)
                return call(*args, **more)

            return noting

        # One batch, however slow the machine
        monkeypatch.setattr("memoranda.ledger.planned_change.MOST_SECONDS", SECONDS)
        monkeypatch.setattr("memoranda.ledger.file_sync.SECONDS", SECONDS)
        home = memory.engine.ledger
        monkeypatch.setattr(home, "_record", with_note(home._record, "commit"))
        monkeypatch.setattr(execution, "exchange", with_note(execution.exchange, "exchange"))
        monkeypatch.setattr(execution, "write_file", with_note(execution.write_file, "temp"))
        monkeypatch.setattr(os, "link", with_note(os.link, "link"))
        monkeypatch.setattr(os, "fsync", with_note(os.fsync, "sync"))
        with at_once(memory, CALLS) as replies:
            steps.clear()
        assert not any(reply is None or reply.is_error for reply in replies.values())
        order = [word for word in steps if word]
    assert order.count("temp") == 6
    assert order.count("link") + order.count("exchange") == 6
    assert order.count("commit") == 1
    assert order.count("sync") == 0
    commit = order.index("commit")
    assert {*order[:commit]} == {"temp"}
    assert {*order[commit + 1 :]} == {"link", "exchange"}


@pytest.mark.promise("issue-batches")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_when_the_disk_refuses_a_batch_once_each_change_is_made_alone(tmp_path, monkeypatch, code):
    def run(home: Path, refusal: Refusal) -> None:
        with open_session(home) as memory, watched_disk(refusal.counted):
            memory.sync()
            with at_once(memory, CALLS) as replies:
                refusal.awake = True
            refusal.awake = False
            failed = {
                name: reply.text
                for name, reply in replies.items()
                if reply is None or reply.is_error
            }
        # The one that was alone when the disk refused
        assert len(failed) <= 1, failed
        for text in failed.values():
            assert "Errno" not in text
        assert check(home, set(CALLS) - set(failed)) == set(CALLS) - set(failed)

    counting = Refusal(0, code)
    run(prepared(tmp_path / "count"), counting)
    assert counting.seen > 20
    for at in range(1, counting.seen + 1, 3):
        run(prepared(tmp_path / f"at-{at}"), Refusal(at, code))


@pytest.mark.promise("issue-batches", "issue-full-disk")
def test_on_a_full_disk_every_call_of_a_batch_says_so_and_no_file_changes(tmp_path, monkeypatch):
    home = prepared(tmp_path / "home")
    paths = home.rglob("*.md")
    before = {path: path.read_bytes() for path in paths}
    with open_session(home) as memory:
        memory.sync()

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with at_once(memory, CALLS) as replies:
                pass
        for reply in replies.values():
            if reply is not None:
                assert "the disk is full" in reply.text
        assert {path: path.read_bytes() for path in home.rglob("*.md")} == before
        succeed_at_once(memory, CALLS)
    assert check(home, set(CALLS)) == set(CALLS)


FILLING = """
import json, resource, sys
from pathlib import Path
from memoranda.engine import open_session
from crash.batches import CALLS, at_once
home = Path(sys.argv[1])
with open_session(home) as memory:
    memory.sync()
    size = (home / ".memoranda/ledger.db-wal").stat().st_size
    with at_once(memory, CALLS) as replies:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 60_000, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(json.dumps({name: reply.is_error for name, reply in replies.items()}))
"""


@pytest.mark.promise("issue-batches")
def test_a_ledger_that_cannot_grow_takes_the_changes_that_fit_and_refuses_the_others(tmp_path):
    home = prepared(tmp_path / "home")
    # So that the ledger, not a note or the index, is the file that is full
    with open_session(home) as memory:
        for number in range(30):
            memory.write(Draft("x", title=f"Filling {number}", folder="f"))
    ran = subprocess.run(
        [sys.executable, "-c", FILLING, str(home)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
    assert ran.returncode == 0, ran.stderr
    failures = json.loads(ran.stdout)
    acknowledged = {name for name, is_error in failures.items() if not is_error}
    assert len(acknowledged) < len(CALLS)
    assert made(home) == acknowledged
    with open_session(home, watch=False) as memory:
        changes = memory.log(limit=0)
        assert len(changes) == 34 + len(acknowledged)


@pytest.mark.promise("issue-batches")
def test_what_waits_is_made_before_anybody_else_looks(tmp_path):
    with open_session(tmp_path / "home") as memory:
        memory.sync()
        states: list[tuple[bool, int]] = []
        path = tmp_path / "home" / "notes" / "Waiting.md"

        def look() -> None:
            with memory.engine.guard:
                states.append((path.exists(), len(memory.log(limit=0))))

        def write() -> None:
            reader.start()
            memory.write(Draft("text that waits", title="Waiting"))
            assert path.read_text().rstrip().endswith("text that waits")
            assert memory.index.notes.get("notes", "Waiting.md") is not None
            changes = memory.log(limit=0)
            assert len(changes) == 2

        memory.write(Draft("first", title="First"))
        reader = threading.Thread(target=look)
        in_turn_before(memory, write)
        reader.join(SECONDS)
        assert states == [(True, 2)]


@pytest.mark.promise("issue-batches")
def test_two_calls_at_one_place_are_both_made_one_after_the_other(tmp_path):
    with open_session(prepared(tmp_path / "home")) as memory:
        memory.sync()
        edit = {"identifier": "notes/edited", "operation": "append"}
        calls = {
            f"line {number}": ("edit_note", edit | {"content": f"line {number}\n"})
            for number in range(6)
        }
        succeed_at_once(memory, calls)
        text = (tmp_path / "home" / "notes" / "Edited.md").read_text()
        for name in calls:
            assert text.count(f"{name}\n") == 1


@pytest.mark.promise("issue-batches")
def test_of_two_new_notes_with_one_title_one_is_told_that_the_other_is_there(tmp_path):
    with open_session(prepared(tmp_path / "home")) as memory:
        memory.sync()
        calls = {
            name: ("write_note", {"title": "Same", "content": name, "directory": ""})
            for name in "abc"
        }
        with at_once(memory, calls) as replies:
            pass
        created = [name for name, reply in replies.items() if reply and not reply.is_error]
        assert len(created) == 1
        file = tmp_path / "home/notes/Same.md"
        assert file.read_text().rstrip().endswith(created[0])


@pytest.mark.promise("issue-batches")
def test_new_notes_whose_titles_have_one_slug_get_addresses_of_their_own(tmp_path):
    with open_session(prepared(tmp_path / "home")) as memory:
        memory.sync()
        calls = {
            title: ("write_note", {"title": title, "content": title, "directory": ""})
            for title in ("C", "C++", "C#")
        }
        succeed_at_once(memory, calls)
        infos, _ = memory.list(limit=0)
        permalinks = [info.permalink for info in infos]
        assert len(set(permalinks)) == len(permalinks)


@pytest.mark.promise("issue-batches")
def test_a_call_that_waited_sees_what_was_on_disk_before_it_and_does_not_look_again(
    tmp_path, monkeypatch
):
    with open_session(tmp_path / "home") as memory:
        memory.write(Draft("first", title="First"))
        (tmp_path / "home" / "notes" / "By hand.md").write_text("# By hand\n")
        looks = []
        titles = []
        look = memory.engine.freshness._update

        def counted_look(*arguments, **options):
            looks.append(1)
            look(*arguments, **options)

        monkeypatch.setattr(memory.engine.freshness, "_update", counted_look)

        def late() -> None:
            titles.append(
                memory.as_caller("a", "mcp").edit("notes/by-hand", Append("added")).note.title
            )

        in_turn_before(memory, lambda: memory.write(Draft("one", title="One")), late)
        assert titles == ["By hand"]
        assert len(looks) == 1
        assert memory.read("notes/by-hand").text.rstrip().endswith("added")


@pytest.mark.promise("issue-batches")
def test_a_call_finds_what_it_has_just_written(tmp_path):
    with open_session(tmp_path / "home") as memory:
        memory.write(Draft("old", title="Old"))

        def write() -> None:
            memory.write(Draft("one", title="One"))
            memory.edit("notes/one", Append("two"))
            content = memory.read("notes/one").content
            assert content.split() == ["one", "two"]
            memory.delete("notes/old")
            with pytest.raises(NotFound):
                memory.read("notes/old")

        in_turn_before(memory, write)
        assert [change.verb for change in memory.log(limit=4)] == [
            "delete",
            "edit",
            "write",
            "write",
        ]


@pytest.mark.promise("issue-batches")
def test_changes_that_are_refused_together_are_made_one_by_one(tmp_path, monkeypatch):
    with open_session(prepared(tmp_path / "home")) as memory:
        memory.sync()
        home = memory.engine.ledger
        record = home._record
        sizes = []

        def refuse_several(changes: Any) -> None:
            sizes.append(len(changes))
            if len(changes) > 1:
                raise OSError(errno.EIO, "Input/output error")
            record(changes)

        monkeypatch.setattr("memoranda.ledger.planned_change.MOST_SECONDS", SECONDS)
        monkeypatch.setattr(home, "_record", refuse_several)
        succeed_at_once(memory, CALLS)
        assert sizes[0] == len(CALLS)
        assert sizes.count(1) == len(CALLS)
    assert check(tmp_path / "home", set(CALLS)) == set(CALLS)


@pytest.mark.promise("issue-batches")
def test_each_change_of_a_batch_is_in_the_log_and_is_undone_alone(tmp_path):
    with open_session(prepared(tmp_path / "home")) as memory:
        memory.sync()
        succeed_at_once(memory, CALLS)
        log = memory.log(limit=5)
        assert [change.number for change in log] == [9, 8, 7, 6, 5]
        assert sorted(change.verb for change in log) == [
            "edit",
            "overwrite",
            "overwrite",
            "supersede",
            "write",
        ]
        overwritten = next(change for change in log if change.path == "Old.md")
        memory.undo(overwritten.number)
        assert memory.read("notes/old").content.strip() == "before Old"
        assert memory.read("notes/new").content.split() == ["new"] * 200


@pytest.mark.promise("issue-batches")
def test_a_note_changed_by_an_editor_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    home = prepared(tmp_path / "home")
    with open_session(home) as memory:
        memory.sync()
        make = memory.engine.ledger.make

        def saved_before(changes: Any) -> None:
            if len(changes) > 1:
                (home / "notes" / "Edited.md").write_text("# Edited\n\nby an editor\n")
                monkeypatch.setattr(memory.engine.ledger, "make", make)
            make(changes)

        monkeypatch.setattr(memory.engine.ledger, "make", saved_before)
        succeed_at_once(memory, CALLS)
        text = (home / "notes" / "Edited.md").read_text()
        assert "by an editor" in text
        assert text.rstrip().endswith("added")


WRITING = r"""
import sys, threading
from memoranda import faces
from memoranda.engine import open_session
with open_session(sys.argv[1]) as memory:
    tools = faces.registry(["notes"], memory.settings)
    def write(number):
        for each in range(8):
            title = f"{sys.argv[2]} {number} {each}"
            reply = tools.call(memory, "write_note", {"title": title, "content": title * 50, "directory": ""})
            assert not reply.is_error, reply.text
            sys.stdout.write(f"{title}\n")
    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


@pytest.mark.slow
@pytest.mark.promise("issue-batches")
def test_two_processes_with_batches_keep_each_other_s_changes(tmp_path):
    home = tmp_path / "home"
    open_session(home, watch=False).close()
    with ThreadPoolExecutor(2) as threads:
        ran = list(
            threads.map(
                lambda name: subprocess.run(
                    [sys.executable, "-c", WRITING, str(home), name],
                    env=ENVIRONMENT,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                ),
                "ab",
            )
        )
    assert [process.returncode for process in ran] == [0, 0], [process.stderr for process in ran]
    with open_session(home, watch=False) as memory:
        titles = []
        for process in ran:
            titles.extend(process.stdout.splitlines())
        assert len(titles) == 128
        assert {path.stem for path in (home / "notes").glob("*.md")} == set(titles)
        assert [change.number for change in memory.log(limit=0)] == list(range(128, 0, -1))


@pytest.mark.slow
@pytest.mark.promise("issue-batches")
def test_a_server_told_to_end_while_many_write_has_kept_what_it_acknowledged(tmp_path):
    home = tmp_path / "home"
    acknowledged: list[str] = []
    with DaemonProcess(home, "--tools", "notes") as daemon:
        assert daemon.ready()
        begun = threading.Event()

        def write(number: int) -> None:
            with Client(home) as client:
                for count in range(1000):
                    params = {"title": f"{number}x{count}", "content": "text", "directory": ""}
                    try:
                        answer = client.ask(
                            "tools/call", params={"name": "write_note", "arguments": params}
                        )
                    except (OSError, ValueError):
                        return
                    if answer["result"]["is_error"]:
                        return
                    acknowledged.append(f"{number}x{count}")
                    begun.set()

        with ThreadPoolExecutor(8) as threads:
            for number in range(8):
                threads.submit(write, number)
            assert begun.wait(SECONDS)
            status, _, error = daemon.stop()
    assert status == 0, error
    assert acknowledged
    with open_session(home, watch=False) as memory:
        assert {path.stem for path in (home / "notes").glob("*.md")} >= set(acknowledged)
        assert len(memory.log(limit=0)) >= len(acknowledged)


@pytest.mark.promise("issue-batches")
def test_what_others_write_while_a_call_waits_for_the_lock_is_seen_by_it(tmp_path):
    with open_session(tmp_path) as holder:
        holder.write(Draft("there", project="notes", title="There"))
    with (
        open_session(tmp_path) as holder,
        open_session(tmp_path) as memory,
        ThreadPoolExecutor(1) as pool,
    ):
        registry = faces.registry(["notes"], memory.settings)
        arguments = {"title": "Foo", "content": "after", "directory": "", "overwrite": True}
        with holder.exclusive():
            call = pool.submit(registry.call, memory, "write_note", arguments)
            # Its first look, without the lock
            assert wait_for(lambda: memory.engine.freshness.is_swept)
            (tmp_path / "notes/By Hand.md").write_text("---\npermalink: notes/foo\n---\nbefore\n")
        assert not call.result().is_error
        # What it wrote gives way to the permalink it saw
        assert "permalink: notes/foo-1\n" in (tmp_path / "notes/Foo.md").read_text()
        assert "before" in (tmp_path / "notes/By Hand.md").read_text()
