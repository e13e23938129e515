"""`supersedes` by name and `expires_at`, written by hand or by an agent into the header of any note."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoranda import Query
from memoranda.engine import open_session
from memoranda.engine.memory import MemorySession
from memoranda.engine.telling.session_start import introduction
from movable_clock import Clock

pytestmark = pytest.mark.promise("issue-facts")

NOW = datetime(2031, 6, 10, 12, tzinfo=UTC)


class Shelf:
    """A vault and the home's own projects, to which files are written by hand."""

    def __init__(self, memory: MemorySession, vault: Path):
        self.memory = memory
        self.vault = vault

    def put(self, path: str, header: str, text: str = "The lantern is green") -> None:
        place = self.vault / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"---\n{header}\n---\n{text}\n" if header else f"{text}\n")

    def found(self) -> list[str]:
        return sorted(hit.note.path for hit in self.memory.search(Query(text="lantern")).hits)

    def marks(self) -> dict[str, str]:
        infos, _ = self.memory.list(Query(projects=("vault",)), limit=0)
        marks = self.memory.validity_marks(infos)
        return {info.path: marks[info.row] for info in infos if info.row in marks}


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def shelf(tmp_path: Path, clock: Clock) -> Iterator[Shelf]:
    vault = tmp_path / "vault"
    vault.mkdir()
    with open_session(
        tmp_path / "home", projects={"vault": vault}, clock=clock, watch=False
    ) as memory:
        yield Shelf(memory, vault)


# The header of the new note, and whether the note `plans/Old plan.md` is over.
NAMES = [
    ("supersedes: Old plan", True),
    ("supersedes: old plan", True),
    ('supersedes: "[[Old plan]]"', True),
    ('supersedes: "[[Old plan|before]]"', True),
    ('supersedes: "[[plans/Old plan]]"', True),
    ('supersedes: ["[[Old plan]]", "[[Nowhere]]"]', True),
    ("supersedes:\n  - Old plan\n  - Older plan", True),
    ("supersedes: [[Old plan]]", True),
    ("supersedes: plans/Old plan.md", True),
    ("supersedes: vault::Old plan", True),
    ('supersedes: "[[vault::Old plan]]"', True),
    ("supersedes: vault/plans/old-plan", True),
    ("supersedes: Lamp", True),
    ("supersedes: old-plan-id", True),
    ("supersedes: Old plan!", True),
    ("supersedes: Old", False),
    ("supersedes: New plan", False),
    ("supersedes:", False),
    ("supersedes: 17", False),
    ("supersedes: {a: Old plan}", False),
    ("supersedes: nowhere::Old plan", False),
    ("superseded_by: Old plan", False),
]


@pytest.mark.parametrize(("header", "is_over"), NAMES)
def test_a_note_is_superseded_by_name(shelf: Shelf, header: str, is_over: bool) -> None:
    shelf.put("plans/Old plan.md", "id: old-plan-id\naliases: [Lamp]")
    shelf.put("New plan.md", header)
    old = ["plans/Old plan.md"]

    assert shelf.found() == ["New plan.md", *([] if is_over else old)]
    assert list(shelf.marks()) == (old if is_over else [])


def test_a_name_with_a_comma_is_one_name(shelf: Shelf) -> None:
    shelf.put("Plan, first.md", "")
    shelf.put("Plan.md", "")
    shelf.put("New.md", "supersedes: Plan, first")
    assert shelf.found() == ["New.md", "Plan.md"]


def test_a_name_that_several_notes_have_ends_none(shelf: Shelf) -> None:
    shelf.put("a/Plan.md", "")
    shelf.put("b/Plan.md", "")
    shelf.put("c/New.md", "supersedes: Plan")
    assert shelf.found() == ["a/Plan.md", "b/Plan.md", "c/New.md"]
    # The one beside the link is meant
    shelf.put("c/Plan.md", "")
    assert shelf.found() == ["a/Plan.md", "b/Plan.md", "c/New.md"]


def test_a_name_may_come_before_its_note(shelf: Shelf) -> None:
    shelf.put("New.md", "supersedes: Old")
    assert shelf.found() == ["New.md"]
    shelf.put("Old.md", "")
    assert shelf.found() == ["New.md"]
    (shelf.vault / "New.md").unlink()
    assert shelf.found() == ["Old.md"]


def test_the_history_of_a_fact_follows_names(shelf: Shelf) -> None:
    shelf.put("One.md", "")
    shelf.put("Two.md", "supersedes: One")
    shelf.put("Three.md", 'supersedes: "[[Two]]"')
    shelf.memory.sync()
    versions = shelf.memory.versions(shelf.memory.find("vault/One"))

    titles = sorted(info.title for info in versions.values())
    assert titles == ["One", "Three", "Two"]


# The header of a note, and whether it is over on the tenth of June.
ENDS = [
    ("expires_at: 2031-06-09", True),
    ("expires_at: 2031-06-10", True),
    ("expires_at: 2031-06-11", False),
    ("expires_at: 2031-06-10T11:59:00Z", True),
    ("expires_at: 2031-06-10T12:01:00Z", False),
    ("expires_at: 2031-06-10T13:30:00+02:00", True),
    ("expires_at: 2031-06-10T13:30:00+01:00", False),
    ("expires_at: '2025-01-01'", True),
    ("expires_at: 1700000000000", True),
    ("expires_at: null", False),
    ("expires_at: never", False),
    ("expires_at:", False),
    ("expires_at: 2032-01-01\nvalid_until: 2031-01-01", True),
    ("expires_at: 2031-01-01\nvalid_until: 2032-01-01", True),
    ("expires_at: 2032-01-01\nvalid_until: 2033-01-01", False),
    ("expires: 2020-01-01", False),
]


@pytest.mark.parametrize(("header", "is_over"), ENDS)
def test_a_note_that_expires_is_over_then(shelf: Shelf, header: str, is_over: bool) -> None:
    shelf.put("Offer.md", header)
    shelf.put("Other.md", "")
    assert shelf.found() == [*([] if is_over else ["Offer.md"]), "Other.md"]
    # A list shows what is over, marked; nothing moved or removed the note
    infos, _ = shelf.memory.list(Query(projects=("vault",)), limit=0)
    paths = {info.path for info in infos}
    assert paths == {"Offer.md", "Other.md"}
    if is_over:
        assert shelf.marks()["Offer.md"].startswith("valid until 20")
    assert (shelf.vault / "Offer.md").exists()


def test_a_note_expires_while_nobody_changes_it(shelf: Shelf, clock: Clock) -> None:
    shelf.put("Offer.md", "expires_at: 2031-06-12T00:30:00Z")
    assert shelf.found() == ["Offer.md"]
    clock.later(days=2)
    shelf.put("Other.md", "")
    assert shelf.found() == ["Other.md"]


@pytest.mark.parametrize(
    "header",
    ["expires_at: 2031-06-01", "valid_until: 2031-06-01", ""],
    ids=["expired", "over", "superseded"],
)
def test_a_session_is_not_told_what_is_over(shelf: Shelf, header: str) -> None:
    shelf.put("Style.md", f"pinned: true\n{header}".strip(), "The owner likes tabs")
    if not header:
        assert "likes tabs" in introduction(shelf.memory)
        new = "pinned: true\nsupersedes: Style"
        shelf.put("New style.md", new, "The owner likes blanks")
        assert "likes blanks" in introduction(shelf.memory)
    assert "likes tabs" not in introduction(shelf.memory)
