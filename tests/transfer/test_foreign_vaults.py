"""Vaults of other programs, used in place: names and links lead where they led there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoranda.engine import open_session
from memoranda.engine.links.attachments import unresolved_links
from memoranda.engine.memory import MemorySession
from memoranda.engine.upkeep import Upkeep
from memoranda.note.edit import Append, ReplaceSection, StrReplace
from memoranda.note.model import Draft

TRIP = "0123456789abcdef0123456789abcdef"
DAY = "fedcba9876543210fedcba9876543210"


def test_an_export_of_notion_is_read_by_its_titles_and_by_its_file_names(tmp_path: Path) -> None:
    vault = tmp_path / "notion"
    inner = vault / f"Trip {TRIP}"
    inner.mkdir(parents=True)
    (vault / f"Trip {TRIP}.md").write_text(f"# Trip\n[Day](Trip%20{TRIP}/Day%201%20{DAY}.md)\n")
    (inner / f"Day 1 {DAY}.md").write_text(f"# Day 1\n[[Trip]] [[Trip {TRIP}]]\n")
    with open_session(tmp_path / "home", projects={"notion": vault}, watch=False) as memory:
        memory.sync()
        trip = memory.find("notion/Trip")
        day = memory.find("notion/Day 1")
        assert trip is not None
        assert day is not None
        assert trip.title == "Trip"
        assert day.title == "Day 1"
        row = memory.find(f"notion/Trip {TRIP}").row
        assert row == trip.row
        row = memory.find(f"notion/Trip {TRIP}.md").row
        assert row == trip.row
        titles = [info.title for info in memory.backlinks(day)]
        assert titles == ["Trip"]
        titles = [info.title for info in memory.backlinks(trip)]
        assert titles == ["Day 1"]


def test_a_tag_that_goes_goes_from_every_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    vault = tmp_path / "vault"
    vault.mkdir()
    place = vault / "note.md"
    place.write_text("---\nTags: [heron, marsh]\ntag: reed\n---\ntext\n")
    with open_session(home, projects={"vault": vault}, watch=False) as memory:
        memory.sync()
        note = memory.find("vault/note")
        memory.tag(note, ["pond"], ["reed"])
        assert memory.read("vault/note").tags == ("heron", "marsh", "pond")

    assert "reed" not in place.read_text()


WEB_ADDRESSES = [
    # (the link as Notion writes it, whether it is the page DAY)
    ("[Day](https://www.notion.so/Day-1-{id})", True),
    ("[Day](https://www.notion.so/Day-1-{id}?pvs=21)", True),
    ("[Day](https://www.notion.so/acme/Day-1-{id}?pvs=4#aa11bb22cc33dd44ee55ff6600112233)", True),
    ("[Day](http://notion.so/{id})", True),
    ("[Day](https://www.notion.so/{dashed})", True),
    ("[Day](notion.so/Day-1-{id})", True),
    ("[Day](notion://www.notion.so/Day-1-{id})", True),
    ("[Day](https://acme.notion.site/Day-1-{id})", True),
    ("[Day](https://app.notion.com/p/acme/Day-1-{id})", True),
    ("[Day](<https://www.notion.so/Day-1-{id}>)", True),
    ("[Day](https://www.notion.so/D%C3%A4y-1-{id})", True),
    ("[Day](https://www.notion.so/{other}?v={other}&p={id}&pm=s)", True),
    ("[Day](https://www.notion.so/Day-1-{upper})", True),
    ('[Day (1)](https://www.notion.so/Day-1-{id} "Day")', True),
    ("See https://www.notion.so/Day-1-{id}, please.", True),
    ("<https://www.notion.so/Day-1-{id}>", True),
    ("- https://www.notion.so/acme/Day-1-{id}?pvs=4", True),
    ("> [Day](https://www.notion.so/Day-1-{id})", True),
    ("| a | [Day](https://www.notion.so/Day-1-{id}) |", True),
    ("- [ ] [Day](https://www.notion.so/Day-1-{id})", True),
    ("[https://www.notion.so/Day-1-{id}](https://www.notion.so/Day-1-{id}?pvs=21)", True),
    ("`[Day](https://www.notion.so/Day-1-{id})`", False),
    ("[Day](https://www.notion.so/Day-1-{other})", False),
    ("[Day](https://www.notion.so/Day-1-{id}0)", False),
    ("[Day](https://example.org/Day-1-{id})", False),
    ("[Day](https://notion.so.example.org/Day-1-{id})", False),
    ("[Day](https://www.notion.so/help/guides)", False),
    ("[Day](https://www.notion.so/{id}/settings/x)", False),
]


@pytest.mark.parametrize(("link", "is_day"), WEB_ADDRESSES)
def test_the_web_address_of_a_notion_page_leads_to_its_note(
    tmp_path: Path, link: str, is_day: bool
) -> None:
    dashed = f"{DAY[:8]}-{DAY[8:12]}-{DAY[12:16]}-{DAY[16:20]}-{DAY[20:]}"
    written = link.format(id=DAY, dashed=dashed, upper=DAY.upper(), other="1" * 32)
    vault = tmp_path / "notion"
    vault.mkdir()
    (vault / f"Trip {TRIP}.md").write_text(f"# Trip\n\n{written}\n")
    (vault / f"Day 1 {DAY}.md").write_text("# Day 1\n")
    with open_session(tmp_path / "home", projects={"notion": vault}, watch=False) as memory:
        memory.sync()
        edges = memory.outgoing("notion/Trip")
        titles = [edge.note.title for edge in edges if edge.note is not None]
        assert titles == (["Day 1"] if is_day else [])
        # What leads to no note here leads to the web, and is no broken link
        assert len(edges) == len(titles)
        assert unresolved_links(memory, "notion") == []


def test_a_renamed_notion_page_is_still_led_to_from_its_web_addresses(tmp_path: Path) -> None:
    vault = tmp_path / "notion"
    vault.mkdir()
    trip = vault / f"Trip {TRIP}.md"
    text = f"# Trip\n\n[Day](https://www.notion.so/Day-1-{DAY}?pvs=21) and notion.so/{DAY}\n"
    trip.write_text(text)
    (vault / f"Day 1 {DAY}.md").write_text("# Day 1\n")
    with open_session(tmp_path / "home", projects={"notion": vault}, watch=False) as memory:
        memory.sync()
        moved = memory.move("notion/Day 1", f"days/Day {DAY}.md")
        assert moved.updated == []
        assert trip.read_text() == text
        renamed = memory.move("notion/Day", "First day.md")
        titles = [edge.note.title for edge in memory.outgoing("notion/Trip") if edge.note]
        assert titles == ["First day"]
        # The address in running text stays, and is named
        assert "](First%20day.md) and notion.so/" in trip.read_text()
        assert renamed.broken == [f"Trip {TRIP}.md"]
        memory.undo()
        assert trip.read_text() == text


NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NOW_MILLISECONDS = "1772600767000"
OLD = 1700000000123

# The value of `updated`, what an edit leaves there, and whether it is the time shown.
UPDATED = [
    (f"{OLD}", NOW_MILLISECONDS, True),
    (f"'{OLD}'", NOW_MILLISECONDS, True),
    (f"{OLD} # by Dendron", f"{NOW_MILLISECONDS} # by Dendron", True),
    ("1700000000", NOW_MILLISECONDS[:10], True),
    ("2023-11-14", "2023-11-14", False),
    ("2023-11-14T22:13:20Z", "2023-11-14T22:13:20Z", False),
    ("yesterday", "yesterday", False),
    ("17000000001", "17000000001", False),
    ("1.7e12", "1.7e12", False),
    ("-1700000000123", "-1700000000123", False),
    ("[1700000000123]", "[1700000000123]", False),
    ("", "", False),
]


@pytest.fixture
def dendron(tmp_path: Path) -> Iterator[tuple[MemorySession, Path]]:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "dendron.yml").write_text("version: 5\n")
    with open_session(
        tmp_path / "home", projects={"vault": vault}, clock=lambda: NOW, watch=False
    ) as memory:
        yield memory, vault


@pytest.mark.parametrize(("value", "after_edit", "is_time"), UPDATED)
def test_an_edit_keeps_the_time_of_change_as_dendron_counts_it(
    dendron: tuple[MemorySession, Path], value: str, after_edit: str, is_time: bool
) -> None:
    memory, vault = dendron
    place = vault / "daily.journal.md"
    text = f"---\nid: abc123def456\ntitle: Journal\nupdated: {value}\ncreated: {OLD}\n---\nOne\n"
    place.write_text(text)
    note = memory.read("vault/daily.journal")
    assert note.created == datetime.fromtimestamp(OLD / 1000, UTC)
    assert (note.updated is not None) == is_time
    memory.edit("vault/daily.journal", StrReplace("One", "Two"))
    written = place.read_text()
    expected = text.replace("One", "Two").replace(f"updated: {value}", f"updated: {after_edit}")
    assert written.replace("'", "") == expected.replace("'", "")
    memory.undo()
    assert place.read_text() == text


@pytest.mark.parametrize("verb", ["append", "section", "tag", "pin", "overwrite", "relink"])
def test_every_way_of_editing_keeps_the_time_of_change(
    dendron: tuple[MemorySession, Path], verb: str
) -> None:
    memory, vault = dendron
    place = vault / "note.md"
    text = f"---\ntitle: Note\nupdated: {OLD}\n---\n# A\n[[other]]\n"
    place.write_text(text)
    (vault / "other.md").write_text("Other\n")
    memory.sync()
    if verb == "append":
        memory.edit("vault/note", Append("more"))
    elif verb == "section":
        memory.edit("vault/note", ReplaceSection(section="# A", text="new"))
    elif verb == "tag":
        memory.tag(memory.find("vault/note"), ["pond"], [])
    elif verb == "pin":
        Upkeep(memory).pin([memory.find("vault/note")])
    elif verb == "overwrite":
        memory.store(Draft(text="New text", title="note", project="vault"), overwrite=True)
    else:
        memory.move("vault/other", "another.md")
    assert f"updated: {NOW_MILLISECONDS}" in place.read_text()
    memory.undo()
    assert place.read_text() == text


def test_an_edit_that_sets_the_time_of_change_is_left_alone(
    dendron: tuple[MemorySession, Path],
) -> None:
    memory, vault = dendron
    place = vault / "note.md"
    place.write_text(f"---\nupdated: {OLD}\n---\nText\n")
    memory.edit("vault/note", StrReplace(str(OLD), str(OLD + 1)))

    text = place.read_text()
    assert text == f"---\nupdated: {OLD + 1}\n---\nText\n"


def test_a_move_leaves_the_time_of_change_of_the_note_that_moves(
    dendron: tuple[MemorySession, Path],
) -> None:
    memory, vault = dendron
    text = f"---\nupdated: {OLD}\n---\nText\n"
    (vault / "note.md").write_text(text)
    memory.move("vault/note", "elsewhere.md")
    assert (vault / "elsewhere.md").read_text() == text
