"""The passages of a long note come into the index in parts (`index/placing.py`)."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from memoranda import Draft, Query
from memoranda.engine import MemorySession, open_session
from memoranda.engine.transaction import Transaction
from memoranda.errors import StorageError
from memoranda.faces import registry
from memoranda.index.index import Index
from memoranda.index.placing import PASSAGES_AT_ONCE
from memoranda.note.edit import Append, Rewrite

SECONDS = 60
PARAGRAPHS = 3 * PASSAGES_AT_ONCE
LONG = "\n\n".join(f"amber{n} " + "birch cedar delta ember " * 45 for n in range(PARAGRAPHS))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", watch=False) as session:
        yield session


class Passages:
    """What an index has of passages."""

    def __init__(self, memory: MemorySession):
        db = memory.engine.index.connection
        self.listed = db.execute("select count(*) from passage").fetchone()[0]
        self.waiting = db.execute("select count(*) from unplaced").fetchone()[0]
        db.execute("create virtual table temp.terms using fts5vocab(main, passage_fts, row)")
        self.terms = db.execute("select term, doc, cnt from temp.terms order by term").fetchall()
        db.execute("drop table temp.terms")


def of_a_new_index(memory: MemorySession) -> Passages:
    """What the index has once it is made again."""
    memory.engine.rebuild_index()
    memory.engine.fresh()
    return Passages(memory)


def shown(memory: MemorySession, word: str) -> str:
    (hit,) = memory.search(Query(text=word)).hits
    return hit.passage


def test_a_long_note_has_all_its_passages_once_it_is_written(memory: MemorySession) -> None:
    memory.write(Draft(LONG, title="Long"))
    passages = Passages(memory)
    assert passages.listed > 2 * PASSAGES_AT_ONCE
    assert passages.waiting == 0
    last_word = f"amber{PARAGRAPHS - 1}"
    assert last_word in shown(memory, last_word)
    assert passages.terms == of_a_new_index(memory).terms


@pytest.mark.parametrize(
    "change",
    [
        lambda memory: memory.edit("notes/long", Append("one more")),
        lambda memory: memory.edit("notes/long", Rewrite("short")),
        lambda memory: memory.delete("notes/long"),
        lambda memory: memory.move("notes/long", "moved/long.md"),
        lambda memory: (memory.home / "notes/Long.md").write_text(LONG[::-1]),
        lambda memory: (memory.home / "notes/Long.md").unlink(),
    ],
    ids=["append", "rewrite", "delete", "move", "saved by an editor", "removed by an editor"],
)
def test_a_change_of_a_long_note_leaves_no_passage_and_no_word_behind(
    memory: MemorySession, change: Callable[[MemorySession], object]
) -> None:
    memory.write(Draft(LONG, title="Long"))
    change(memory)
    memory.list(Query())
    passages = Passages(memory)
    new_passages = of_a_new_index(memory)
    assert passages.waiting == 0
    assert passages.listed == new_passages.listed
    assert passages.terms == new_passages.terms


class Between:
    """Has others do `work` after each part of the passages; `times` counts the parts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, part: str, work: Callable[[], object]):
        self.times = 0
        self._threads = ThreadPoolExecutor(1)
        do_part = getattr(Index, part)

        def counted(index: Index, *arguments: object) -> bool:
            # Another thread that asks for it counts no part.
            is_mine = threading.get_ident() == self._thread
            if is_mine and self.times:
                # It was let in after the part before.
                self._waiting.result(timeout=SECONDS)
            did_part: bool = do_part(index, *arguments)
            if is_mine and did_part:
                self.times += 1
                self._waiting = self._threads.submit(work)
            return did_part

        self._thread = threading.get_ident()
        monkeypatch.setattr(Index, part, counted)


def test_others_are_let_in_between_the_parts_of_a_new_note(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write(Draft("short", title="Short"))
    between = Between(monkeypatch, "place", lambda: memory.edit("notes/short", Append("more")))
    memory.write(Draft(LONG, title="Long"))
    content = memory.read("notes/short").content
    assert between.times > 1
    assert content.count("more") >= between.times - 1


@pytest.mark.parametrize(
    "change",
    [
        lambda memory: memory.edit("notes/long", Append("one more")),
        lambda memory: memory.delete("notes/long"),
    ],
    ids=["edit", "delete"],
)
def test_others_are_let_in_between_the_parts_of_a_replaced_note(
    memory: MemorySession,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[MemorySession], object],
) -> None:
    memory.write(Draft(LONG, title="Long"))
    between = Between(monkeypatch, "withdraw", lambda: memory.search(Query(text="amber7")))
    change(memory)
    assert between.times > 1
    assert Passages(memory).waiting == 0


def test_a_note_whose_passages_are_not_all_there_is_found_by_all_its_words(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    last_word = f"amber{PARAGRAPHS - 1}"
    totals: list[int] = []
    between = Between(
        monkeypatch, "place", lambda: totals.append(memory.search(Query(text=last_word)).total)
    )
    memory.write(Draft(LONG, title="Long"))
    assert between.times > 1
    assert set(totals) == {1}


def test_a_process_that_ended_between_the_parts_has_the_next_one_go_on(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Index, "place", end)
        with pytest.raises(KeyboardInterrupt):
            memory.write(Draft(LONG, title="Long"))
    assert Passages(memory).waiting == 1

    with open_session(memory.home, watch=False) as next_process:
        next_process.list(Query())
        passages = Passages(next_process)
        assert passages.waiting == 0
        assert passages.terms == of_a_new_index(next_process).terms


def test_an_index_that_refuses_a_part_gets_it_with_the_next_call(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bool:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Index, "place", refuse)
        memory.write(Draft(LONG, title="Long"))
    memory.list(Query())
    assert Passages(memory).waiting == 0


def test_a_note_that_is_not_replaced_after_all_gets_its_passages_back(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise StorageError("the disk", "it is full")

    memory.write(Draft(LONG, title="Long"))
    before = Passages(memory)
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", refuse)
        with pytest.raises(StorageError):
            memory.edit("notes/long", Append("one more"))
    after = Passages(memory)
    assert after.waiting == 0
    assert after.terms == before.terms


def test_a_note_changed_before_its_passages_were_there_has_those_of_its_new_text(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = memory.home / "notes/Long.md"
    with monkeypatch.context() as patch:
        patch.setattr(Index, "place", lambda *_: False)
        memory.write(Draft(LONG, title="Long"))
        assert Passages(memory).waiting == 1
        file.write_text(LONG[: len(LONG) // 2])
    memory.list(Query())
    passages = Passages(memory)
    assert passages.waiting == 0
    assert passages.terms == of_a_new_index(memory).terms


def test_two_edits_of_one_long_note_at_once_are_both_made(memory: MemorySession) -> None:
    memory.write(Draft(LONG, title="Long"))
    begin = threading.Barrier(2)

    def append(line: str) -> None:
        begin.wait(SECONDS)
        memory.edit("notes/long", Append(line))

    with ThreadPoolExecutor(2) as writers:
        futures = [writers.submit(append, line) for line in ("first line", "second line")]
        for future in futures:
            future.result(timeout=SECONDS)
    text = (memory.home / "notes/Long.md").read_text()
    assert "first line" in text
    assert "second line" in text
    passages = Passages(memory)
    assert passages.waiting == 0
    assert passages.terms == of_a_new_index(memory).terms


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "insert", "insert_line": 0, "insert_text": "first\n"},
        {"command": "str_replace", "old_str": "amber7 ", "new_str": "opal "},
        {"command": "delete"},
        {"command": "rename", "old_path": "/memories/large.md", "new_path": "/memories/new.md"},
    ],
    ids=["insert", "str_replace", "delete", "rename"],
)
def test_others_are_let_in_while_the_memory_tool_changes_a_large_file(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, object]
) -> None:
    memory.write(Draft("short", title="Short"))
    folder = memory.home / "memories"
    folder.mkdir(exist_ok=True)
    (folder / "large.md").write_text(LONG)
    contents: list[str] = []
    foresee = Transaction.foresee

    def while_another_reads(transaction: Transaction) -> None:
        foresee(transaction)
        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(memory.read, "notes/short")
            contents.append(reading.result(timeout=SECONDS).content)

    monkeypatch.setattr(Transaction, "foresee", while_another_reads)
    reply = registry(["memory"], memory.settings).call(
        memory, "memory", arguments | {"path": "/memories/large.md"}
    )
    assert not reply.is_error
    assert contents == ["short"]


def test_a_folder_is_deleted_though_another_agent_puts_a_file_in_it_meanwhile(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = memory.home / "memories" / "plans"
    folder.mkdir(parents=True)
    (folder / "large.md").write_text(LONG)
    tools = registry(["memory"], memory.settings)
    other = memory.as_caller("codex", "mcp")
    foresee = Transaction.foresee
    is_first = True

    def while_another_creates(transaction: Transaction) -> None:
        nonlocal is_first
        foresee(transaction)
        if not is_first:
            return
        is_first = False
        arguments = {"command": "create", "path": "/memories/plans/new.md", "file_text": "new"}
        with ThreadPoolExecutor(1) as threads:
            creating = threads.submit(tools.call, other, "memory", arguments)
            assert not creating.result(timeout=SECONDS).is_error

    monkeypatch.setattr(Transaction, "foresee", while_another_creates)
    reply = tools.call(memory, "memory", {"command": "delete", "path": "/memories/plans"})
    assert not reply.is_error, reply.text
    assert not is_first
    assert not folder.exists()


def test_a_note_that_is_edited_while_its_move_is_prepared_moves_with_its_new_text(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write(Draft(LONG, title="Long"))
    foresee = Transaction.foresee
    edits: list[str] = []

    def while_another_edits(transaction: Transaction) -> None:
        foresee(transaction)
        if transaction.verb == "move" and not edits:
            edits.append("last line of another")
            with ThreadPoolExecutor(1) as threads:
                editing = threads.submit(memory.edit, "notes/long", Append(edits[0]))
                editing.result(timeout=SECONDS)

    monkeypatch.setattr(Transaction, "foresee", while_another_edits)
    memory.move("notes/long", "new/long")
    text = (memory.home / "notes/new/long.md").read_text()
    passages = Passages(memory)
    moved = memory.log(limit=1)[0].files[-1].old
    assert edits[0] in text
    assert passages.waiting == 0
    assert passages.terms == of_a_new_index(memory).terms
    assert moved == hashlib.sha256(text.encode()).hexdigest()
    assert memory.read("notes/new/long").content.endswith(edits[0])


def come_in(memory: MemorySession) -> None:
    """Enter the guard of a home and leave it, as calls of another thread do."""

    def enter() -> None:
        with memory.engine.guard:
            pass

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()


def test_a_part_waits_until_a_call_that_came_in_has_passed(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = memory.engine.guard
    entries_to_come = 3
    sleeps = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) <= entries_to_come:
            come_in(memory)

    monkeypatch.setattr("memoranda.engine.guard.time.sleep", sleep)
    with guard, memory.engine.home_released_if_allowed() as is_allowed:
        assert is_allowed
        come_in(memory)
    assert len(sleeps) == entries_to_come + 1


def test_a_part_waits_for_nobody_if_nobody_came_in(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeps: list[float] = []
    monkeypatch.setattr("memoranda.engine.guard.time.sleep", sleeps.append)
    with memory.engine.guard, memory.engine.home_released_if_allowed() as is_allowed:
        assert is_allowed
    assert sleeps == []


def test_a_part_does_not_wait_for_ever_while_others_keep_coming(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter(range(1000))
    monkeypatch.setattr("memoranda.engine.guard.time.sleep", lambda _: come_in(memory))
    monkeypatch.setattr("memoranda.engine.guard._SECONDS_OF_COURTESY", 5)
    monkeypatch.setattr("memoranda.engine.guard.time.monotonic", lambda: next(moments))
    with memory.engine.guard, memory.engine.home_released_if_allowed():
        come_in(memory)
    assert next(moments) < 20


def test_others_are_let_in_before_the_first_part(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = memory.engine
    releases_before_parts = []
    releases = []
    released = engine.guard.released
    place = Index.place

    def counted_release() -> object:
        releases.append(1)
        return released()

    def counted_place(index: Index, note: int) -> bool:
        releases_before_parts.append(len(releases))
        return place(index, note)

    with engine.guard:
        pass
    monkeypatch.setattr(engine.guard, "released", counted_release)
    monkeypatch.setattr(Index, "place", counted_place)
    memory.write(Draft(LONG, title="Long"))
    steps = [after - before for before, after in pairwise(releases_before_parts)]
    assert set(steps) == {1}
    # One for the checks of a large change, one before the first part
    assert releases_before_parts[0] == 2
