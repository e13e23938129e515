"""The index follows what a store shows: plan, then apply."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from index.conftest import Desk
from memoranda.engine import open_session
from memoranda.errors import Busy
from memoranda.index import sync
from memoranda.index.database import merge_words
from memoranda.note.model import Note
from memoranda.sources.base import Stamp


class Shelf:
    """A store of notes kept in memory: path → (text, stamp)."""

    def __init__(self, desk: Desk):
        self.desk = desk
        self.files: dict[str, tuple[str, Stamp]] = {}
        self.read: list[str] = []

    def write(self, path: str, text: str, mtime: int, inode: int = 0) -> None:
        self.files[path] = (text, Stamp(len(text), mtime, inode or hash(path) & 0xFFFF))

    def load(self, path: str) -> tuple[Note, Stamp] | None:
        self.read.append(path)
        if path not in self.files:
            return None
        text, stamp = self.files[path]
        return self.desk.note(path, text), stamp

    def plan(self) -> list[sync.Difference]:
        parts = ({path: stamp} for path, (_, stamp) in self.files.items())
        return [*self.desk.index.plan("notes", parts)]

    def sync(self, changes: Sequence[sync.Difference] | None = None) -> sync.Result:
        result = sync.Result()
        planned = self.plan() if changes is None else changes
        self.desk.index.apply("notes", planned, self.load, nullcontext(), result)
        self.desk.check()
        return result


@pytest.fixture
def shelf(desk: Desk) -> Shelf:
    new_shelf = Shelf(desk)
    for mtime, path in enumerate(("c.md", "a.md", "b/d.md"), 1):
        new_shelf.write(path, f"text of {path}", mtime)
    return new_shelf


def test_a_second_sync_has_nothing_to_do_and_reads_nothing(shelf: Shelf) -> None:
    shelf.sync()
    shelf.read.clear()
    assert shelf.plan() == []
    assert shelf.sync() == sync.Result()
    assert shelf.read == []


def test_what_changed_again_between_plan_and_apply_is_taken_as_it_is_then(shelf: Shelf) -> None:
    planned = shelf.plan()
    del shelf.files["a.md"]
    shelf.write("c.md", "newer", 50)
    added = shelf.sync(changes=planned).added
    assert added == 2
    assert shelf.desk.found("newer") == ["c.md"]
    planned = shelf.desk.index.plan("notes", [])
    assert shelf.sync(changes=planned) == sync.Result()
    assert sorted(shelf.desk.list()) == ["b/d.md", "c.md"]


def test_what_another_process_indexed_between_plan_and_apply_stays_as_it_is(shelf: Shelf) -> None:
    shelf.sync()
    shelf.files["moved.md"] = shelf.files.pop("a.md")
    shelf.write("new.md", "new", 9)
    planned = shelf.plan()
    shelf.sync()
    rows = [*shelf.desk.db.execute("select row, path from note order by row")]

    assert shelf.sync(changes=planned) == sync.Result()
    assert [*shelf.desk.db.execute("select row, path from note order by row")] == rows


def test_a_file_that_was_listed_twice_is_one_note(shelf: Shelf) -> None:
    for number in range(60):
        shelf.write(f"n{number}.md", "x", number)
    assert shelf.sync(changes=[*shelf.plan(), *shelf.plan()[-5:]]).added == 63


def test_changes_come_in_an_order_of_their_own_however_the_disk_is_listed(shelf: Shelf) -> None:
    shelf.write("old.md", "old", 7)
    shelf.write("as before.md", "same", 3)
    shelf.sync()
    shelf.files["b/moved.md"] = shelf.files.pop("old.md")
    del shelf.files["c.md"]
    for mtime, path in (
        (-5, "y.md"),
        (1 << 70, "z.md"),
        (2, "b/ä.md"),
        (2, "b/a.md"),
        (9, "b/d.md"),
        (8, "a.md"),
    ):
        shelf.write(path, "changed", mtime)
    planned = shelf.desk.index.plan(
        "notes", ({path: stamp} for path, (_, stamp) in reversed(shelf.files.items()))
    )
    assert [(planned_change.path, planned_change.old) for planned_change in planned] == [
        ("c.md", "c.md"),
        ("b/moved.md", "old.md"),
        ("y.md", None),
        ("b/a.md", None),
        ("b/ä.md", None),
        ("z.md", None),
        ("a.md", "a.md"),
        ("b/d.md", "b/d.md"),
    ]
    assert [planned_change.stamp for planned_change in planned[2:5]] == [
        shelf.files[planned_change][1] for planned_change in ("y.md", "b/a.md", "b/ä.md")
    ]
    assert planned[5].stamp == Stamp(len("changed"), (1 << 63) - 1, shelf.files["z.md"][1].inode)


def test_many_changes_are_applied_in_portions_that_are_told(shelf: Shelf) -> None:
    for number in range(450):
        shelf.write(f"n{number}.md", "x", number)
    progress: list[tuple[int, int]] = []
    result = sync.Result()
    changes = shelf.plan()
    shelf.desk.index.apply(
        "notes",
        changes,
        shelf.load,
        nullcontext(),
        result,
        lambda count, all: progress.append((count, all)),
    )
    assert progress == [(200, 453), (400, 453), (453, 453)]
    assert result.added == 453


@pytest.mark.slow
def test_many_new_notes_are_indexed_as_each_by_itself_would_be(shelf: Shelf, tmp_path) -> None:
    for at in range(90):
        header = f"tags: [t{at % 7}]\nscope: {'agent:eve' if at % 9 == 0 else 'global'}"
        text = f"---\n{header}\n---\n# One {at}\n- [fact] x #y\n"
        text += f"[[One {at + 1}]] 面包 " + "word " * (at % 2 * 4000)
        shelf.write(f"d{at % 4}/One {at % 30}{'!' * (at // 30)}.md", text, at)
    shelf.write("odd \0.md", '---\npermalink: "a\\0b"\n---\n\ud800', 95)
    shelf.sync()
    alone = Desk(tmp_path / "alone.db")
    for path, (text, stamp) in sorted(
        shelf.files.items(), key=lambda file_state: (file_state[1][1].mtime_ns, file_state[0])
    ):
        with alone.index.transaction():
            alone.index.put(alone.note(path, text), stamp)
    alone.check()
    for table in ("text", "note_fold", "link", "passage", "feature", "tally"):
        sql = f"select * from {table}"
        assert [*shelf.desk.db.execute(sql)] == [*alone.db.execute(sql)], table
    columns = "select row, path, permalink, base, own, tags, scope, etag, size, mtime_ns from note"
    assert [*shelf.desk.db.execute(columns)] == [*alone.db.execute(columns)]
    for query in ("fact", "面包", "One 3", "tag:t3", "word"):
        assert shelf.desk.asked(query) == alone.asked(query) != []
    alone.index.close()


def test_many_bytes_are_indexed_in_batches_that_give_the_lock_back(tmp_path, monkeypatch):
    monkeypatch.setattr("memoranda.index.sync.BATCH_BYTES", 10)
    with open_session(tmp_path, watch=False) as memory:
        memory.sync()
        for name in "abcde":
            (tmp_path / "notes").mkdir(exist_ok=True)
            file = tmp_path / "notes" / f"{name}.md"
            file.write_text("six by")
        locks_taken = []
        monkeypatch.setattr(memory.engine.ledger.lock, "_on_taken", lambda _: locks_taken.append(1))
        memory.sync()
        assert memory.list()[1] == 5

    assert len(locks_taken) == 3


def test_after_many_new_notes_the_words_lie_in_one_segment(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def segments() -> dict[str, int]:
        sql = "select count(distinct segid) from {}_idx"
        return {
            table: shelf.desk.db.execute(sql.format(table)).fetchone()[0]
            for table in ("note_fts", "stem_fts")
        }

    monkeypatch.setattr(sync, "BATCH", 5)
    for number in range(40):
        shelf.write(f"{number}.md", f"heron{number} by the river {'word' * (number % 5)}", number)
    monkeypatch.setattr(sync, "_MANY_CHANGES", 100)
    shelf.sync(changes=shelf.plan()[:20])
    assert segments()["note_fts"] > 1
    monkeypatch.setattr(sync, "_MANY_CHANGES", 10)
    monkeypatch.setattr("memoranda.index.database._PAGES_PER_MERGE", 1)
    shelf.sync()
    assert segments() == {"note_fts": 1, "stem_fts": 1}
    assert shelf.desk.found("heron7") == ["7.md"]
    assert len(shelf.desk.found("river")) == 40


def test_words_are_merged_as_far_as_the_lock_can_be_had(shelf: Shelf) -> None:
    class Taken:
        def __enter__(self) -> None:
            raise Busy("another process")

        def __exit__(self, *_: object) -> None: ...

    shelf.sync()
    merge_words(shelf.desk.db, Taken())
    assert shelf.plan() == []
