"""Vaults of other programs, used in place: names and links lead where they led there."""

from __future__ import annotations

from pathlib import Path

from memoranda.engine import open_session

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
        assert (trip.title, day.title) == ("Trip", "Day 1")
        assert memory.find(f"notion/Trip {TRIP}").row == trip.row
        assert memory.find(f"notion/Trip {TRIP}.md").row == trip.row
        assert [info.title for info in memory.backlinks(day)] == ["Trip"]
        assert [info.title for info in memory.backlinks(trip)] == ["Day 1"]


def test_a_tag_that_goes_goes_from_every_key(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    place = vault / "note.md"
    place.write_text("---\nTags: [heron, marsh]\ntag: reed\n---\ntext\n")
    with open_session(tmp_path / "home", projects={"vault": vault}, watch=False) as memory:
        memory.sync()
        memory.tag(memory.find("vault/note"), ["pond"], ["reed"])
        assert memory.read("vault/note").tags == ("heron", "marsh", "pond")
    assert "reed" not in place.read_text()
