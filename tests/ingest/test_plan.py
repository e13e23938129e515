"""Planning and applying: what is new, what changed, what stays gone (contract 001, 11)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memoranda import ingest
from memoranda.engine import open_session
from memoranda.engine.contents import content_of
from memoranda.engine.upkeep import Ingested, Upkeep
from memoranda.ingest.sources import SOURCES, Tree
from memoranda.note import edit
from memoranda.note.model import Draft

MOMENT = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)


class Ground:
    """A memory, and a vault to take in."""

    def __init__(self, memory, vault):
        self.memory = memory
        self.vault = vault
        self.upkeep = Upkeep(memory)

    def put(self, **files):
        for name, text in files.items():
            (self.vault / f"{name}.md").write_text(text, "utf-8")

    def plan(self, **more):
        ingested = Ingested(self.memory).known()
        return ingest.plan([(SOURCES["obsidian"], Tree(self.vault))], ingested, **more), ingested

    def take(self, **more):
        """(new, updated, skipped) of one run."""
        plans, ingested = self.plan(**more)
        (outcome,) = ingest.apply(self.memory, plans, ingested)
        assert not outcome.warnings
        return outcome.ingested, outcome.updated, outcome.skipped

    def texts(self):
        return sorted(content_of(self.memory, info) for info in self.upkeep.every())

    def one(self, name):
        return next(
            info
            for info in self.upkeep.every()
            if info.header.get("source_ref") == f"obsidian:{name}.md"
        )

    def files(self):
        return {
            path: (path.read_bytes(), path.stat().st_mtime_ns)
            for path in self.memory.home.rglob("*.md")
        }


@pytest.fixture
def ground(tmp_path):
    (tmp_path / "vault").mkdir()
    with open_session(tmp_path / "home", clock=lambda: MOMENT) as memory:
        yield Ground(memory, tmp_path / "vault")


def test_a_file_becomes_an_inbox_memory_that_expires(ground):
    ground.put(a="text #tag")
    assert ground.take() == (1, 0, 0)
    record = ground.memory.read(ground.one("a"), count=False)
    assert (record.phase, record.category, record.scope, record.source) == (
        "inbox",
        "inbox",
        "global",
        "obsidian",
    )
    assert (record.created, record.updated, record.version) == (MOMENT, MOMENT, 1)
    assert record.expires == MOMENT + timedelta(hours=168)
    assert record.tags == ("obsidian", "tag")


def test_a_text_any_memory_has_is_skipped(ground):
    ground.memory.write(Draft("written by hand", project="categories", category="people"))
    ground.put(a="written by hand\n")
    assert ground.take() == (0, 0, 1)


def test_new_text_of_a_known_file_updates_its_memory_wherever_it_is(ground):
    ground.put(a="first #old")
    ground.take()
    info = ground.upkeep.change(
        ground.one("a"), {"phase": "organized", "expires_at": None}, "dream", category="skills"
    )
    ground.memory.tag(info.id, add=["mine"])
    ground.put(a="---\naliases: [Other]\n---\nsecond #new")
    assert ground.take() == (0, 1, 0)
    record = ground.memory.read(info.id, count=False)
    assert (record.content, record.version, record.category, record.phase) == (
        "second #new",
        2,
        "skills",
        "organized",
    )
    assert record.tags == ("obsidian", "old", "mine", "other", "new")
    assert record.header["aliases"] == ["Other"]
    assert record.created == MOMENT
    assert ground.take() == (0, 0, 1)


def test_a_memory_changed_here_is_not_set_back_by_its_unchanged_file(ground):
    ground.put(a="as in the file")
    ground.take()
    info = ground.one("a")
    ground.memory.edit(info.id, edit.Append("and a word from an agent"))
    edited = ground.texts()
    assert ground.take() == (0, 0, 1)
    assert ground.texts() == edited
    (ground.vault / "a.md").rename(ground.vault / "renamed.md")
    assert ground.take() == (0, 0, 1)
    (ground.vault / "renamed.md").unlink()
    ground.put(a="new in the file")
    assert ground.take() == (0, 1, 0)


def test_an_archived_memory_is_there_and_follows_its_file(ground):
    ground.put(a="one", b="two")
    ground.take()
    info = ground.one("a")
    ground.upkeep.archive(info, "decay", "decay")
    assert ground.take() == (0, 0, 2)
    assert ground.take(takes_removed=True) == (0, 0, 2)
    ground.put(a="one, rewritten", c="one")
    assert ground.take() == (1, 1, 1)
    note = ground.memory.read(info.id)
    assert (note.content, note.phase, note.path.partition("/")[0]) == (
        "one, rewritten",
        "organized",
        "knowledge",
    )


def test_what_was_removed_is_brought_back_only_on_demand(ground):
    ground.put(a="one", b="two")
    ground.take()
    ground.memory.delete(ground.one("a"))
    assert ground.take() == (0, 0, 2)
    # The file is known
    ground.put(a="one, rewritten")
    assert ground.take() == (0, 0, 2)
    (ground.vault / "a.md").unlink()
    # The text is known
    ground.put(other="one")
    assert ground.take() == (0, 0, 2)
    assert ground.take(takes_removed=True) == (1, 0, 1)
    assert ground.texts() == ["one", "two"]
    assert ground.take() == (0, 0, 2)


def test_what_was_deleted_and_brought_back_follows_its_file_again(ground):
    ground.put(a="one")
    ground.take()
    ground.memory.delete(ground.one("a").id)
    ground.memory.undo()
    ground.put(a="two")
    assert ground.take() == (0, 1, 0)


def test_once_the_history_holds_it_no_more_a_removed_text_is_new(ground):
    ground.put(a="one", b="two")
    ground.take()
    ground.memory.delete(ground.one("a").id)
    ground.memory.delete(ground.one("b").id)
    ground.memory.engine.ledger.purge(MOMENT + timedelta(days=1))
    # The latest change always stays
    assert ground.take() == (1, 0, 1)


def test_a_moved_memory_counts_as_no_removed_one(ground):
    ground.put(a="one")
    ground.take()
    info = ground.upkeep.change(ground.one("a"), {"phase": "organized"}, "dream", category="people")
    ground.upkeep.rewrite(info, "two", {"source_ref": "elsewhere", "source_hash": "0"}, "test")

    assert ground.take() == (1, 0, 0)


def test_a_memory_merged_away_is_not_brought_back_but_its_files_new_text_is_taken(ground):
    ground.put(a="the same and more\nlines", b="the same and more")
    ground.take()
    ground.upkeep.merge(ground.one("a"), ground.one("b"))
    assert ground.take() == (0, 0, 2)
    ground.put(b="something else")
    assert ground.take() == (1, 0, 1)
    assert ground.texts() == ["something else", "the same and more\nlines"]


def test_files_that_pass_their_texts_on_are_settled_in_one_run(ground):
    ground.put(a="1", b="2", c="3")
    ground.take()
    ground.put(a="2", b="3", c="4", d="1", e="4")
    assert ground.take() == (1, 3, 1)
    before = ground.files()
    assert ground.take() == (0, 0, 5)
    assert ground.files() == before
    # Each has what the other had: both texts are held
    ground.put(a="3", b="2")
    assert ground.take() == (0, 0, 5)


def test_two_runs_at_once_store_each_file_once(ground):
    ground.put(a="one", b="two")
    first = ground.plan()
    second = ground.plan()
    ingested = ingest.apply(ground.memory, *first)[0].ingested
    assert ingested == 2
    late = ingest.apply(ground.memory, *second)[0]
    assert late.ingested == 0
    assert late.skipped == 2
    assert ground.texts() == ["one", "two"]


def test_other_writers_do_not_hinder_a_run(ground):
    ground.put(a="one")
    plans, ingested = ground.plan()
    ground.memory.write(Draft("meanwhile", project="categories"))
    assert ingest.apply(ground.memory, plans, ingested)[0].ingested == 1


def test_a_memory_that_changed_since_the_plan_or_is_locked_is_left_with_a_warning(ground):
    ground.put(a="one", b="two", c="three")
    ground.take()
    ground.upkeep.change(ground.one("c"), {"locked": True}, "test")
    ground.put(a="1", b="2", c="3")
    plans, ingested = ground.plan()
    ground.memory.tag(ground.one("a").id, add=["later"])
    ground.memory.delete(ground.one("b").id)
    (outcome,) = ingest.apply(ground.memory, plans, ingested)

    assert outcome.updated == 0
    assert outcome.skipped == 3
    assert [warning.partition(":")[0] for warning in outcome.warnings] == ["a.md", "b.md", "c.md"]
    assert ground.texts() == ["one", "three"]


def test_a_damaged_text_of_the_history_is_passed_over(ground):
    ground.put(a="one", b="two")
    ground.take()
    ground.memory.delete(ground.one("a").id)
    home = ground.memory.engine.ledger
    assert len(list(home.history.texts())) == 1
    with home.database.transaction() as connection:
        connection.execute("update text set data = ?", (b"damaged",))
    assert ground.take() == (1, 0, 1)


def test_as_an_agent_only_what_it_sees_counts(ground):
    ground.put(a="secret of y")
    ground.memory.write(Draft("secret of y", project="categories", scope="agent:y"))
    of_y = Draft("gone with y", project="categories", scope="agent:y", metadata={"source_ref": "x"})
    deleted_note = ground.memory.write(of_y)
    ground.memory.delete(deleted_note.id)
    ingested = Ingested(ground.memory.as_caller("x")).known()

    assert ingested.hashes == {}
    assert ingested.gone_hashes == set()
    assert ingested.gone_refs == set()
    gone_refs = Ingested(ground.memory).known().gone_refs
    assert gone_refs == {"x"}
