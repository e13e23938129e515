"""The sample vault is large enough, holds the oddities its README lists, and names no machine."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
import yaml

from commonplace.note.markdown import parse_note
from commonplace.note.model import Note

SAMPLES = Path(__file__).parents[1] / "samples"
VAULT = SAMPLES / "vault"
NOTES = sorted(VAULT.rglob("*.md"))
CHINESE = re.compile(r"[\u4e00-\u9fff]{4}")
KANA = re.compile(r"[\u3041-\u30fa]")


def _header(path: Path) -> str:
    """The YAML between the two `---` lines."""
    found = re.match(r"---[ \t]*\n(.*?)^---[ \t]*$", path.read_text("utf-8-sig"), re.DOTALL | re.MULTILINE)
    assert found, f"{path.name} has no frontmatter"
    return found[1]


@cache
def _parsed() -> dict[str, Note]:
    """Every note of the vault by its path from the vault's root."""
    paths = {note.relative_to(VAULT).as_posix(): note for note in NOTES}
    written = datetime(2025, 11, 3, tzinfo=UTC)
    return {
        path: parse_note(note.read_bytes().decode("utf-8"), project="sample", path=path, changed=written, born=None)
        for path, note in paths.items()
    }


def _targets(path: str) -> set[str]:
    return {relation.target for relation in _parsed()[path].relations}


def test_there_are_at_least_forty_notes_in_several_folders() -> None:
    assert len(NOTES) >= 40
    assert len({note.parent for note in NOTES}) >= 8


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_a_note_has_ten_to_sixty_lines_of_utf8(note: Path) -> None:
    assert 10 <= len(note.read_bytes().decode("utf-8").splitlines()) <= 60


def test_at_least_eight_notes_are_written_in_chinese_and_one_in_japanese() -> None:
    def of(folder: str) -> list[Path]:
        return [note for note in NOTES if note.parent.name == folder]

    assert len([note for note in of("中文") if len(CHINESE.findall(note.read_text("utf-8"))) >= 10]) >= 8
    assert any(len(KANA.findall(note.read_text("utf-8"))) >= 50 for note in of("日本語"))


def test_exactly_one_note_has_windows_line_endings_throughout() -> None:
    odd = [note for note in NOTES if b"\r" in note.read_bytes()]
    assert [note.name for note in odd] == ["ADR-006 No ORM.md"]
    data = odd[0].read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r")


def test_exactly_one_note_begins_with_a_byte_order_mark() -> None:
    odd = [note.name for note in NOTES if note.read_bytes().startswith(b"\xef\xbb\xbf")]
    assert odd == ["2025-11-03.md"]


def test_exactly_one_note_has_no_final_newline() -> None:
    assert [note.name for note in NOTES if not note.read_bytes().endswith(b"\n")] == ["Git tricks.md"]


def test_exactly_one_note_has_no_frontmatter() -> None:
    odd = [note.name for note in NOTES if not note.read_text("utf-8-sig").startswith("---")]
    assert odd == ["2025-05-04.md"]


def test_the_header_of_one_note_is_no_yaml_and_all_others_are_mappings() -> None:
    broken = VAULT / "howto" / "Shell pitfalls.md"
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(_header(broken))
    for note in NOTES:
        if note != broken and note.name != "2025-05-04.md":
            assert isinstance(yaml.load(_header(note), Loader=yaml.BaseLoader), dict), note.name


def test_the_scalars_that_yaml_changes_are_there_as_written() -> None:
    header = _header(VAULT / "decisions" / "ADR-004 Version numbers are text.md")
    for line in ("version: 1.10 ", "country: no ", "start: 12:30 ", "sheet: 012 "):
        assert f"\n{line}" in header


def test_the_readme_lists_every_oddity_under_a_file_that_exists() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (SAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(named) >= 20
    assert [name for name in named if not (VAULT / name).exists()] == []


def test_git_is_told_to_leave_the_bytes_alone() -> None:
    assert "samples/vault/** -text" in (SAMPLES.parent / ".gitattributes").read_text().splitlines()


def test_no_file_names_a_place_on_a_machine() -> None:
    machine = re.compile(r"(?<![\w.~])/(?:home|Users|root|work|tmp|opt|mnt|var)/|\b[A-Z]:\\|file://")
    files = [file for file in SAMPLES.rglob("*") if file.is_file()]
    assert [file.name for file in files if machine.search(file.read_text("utf-8"))] == []


def test_every_note_parses_and_the_vault_is_rich_in_observations_and_relations() -> None:
    notes = _parsed().values()
    assert len(notes) == len(NOTES)
    assert sum(len(note.observations) for note in notes) >= 100
    assert sum(len(note.relations) for note in notes) >= 120
    assert all(note.title for note in notes)


def test_only_the_two_odd_headers_cause_warnings() -> None:
    warned = {path for path, note in _parsed().items() if note.warnings}
    assert warned == {"howto/Shell pitfalls.md", "reading/Reading list.md"}


def test_titles_come_from_the_header_or_else_from_the_file_name() -> None:
    expected = {
        "howto/Python pathlib os.path.md": "Python: pathlib / os.path",
        "howto/Shell pitfalls.md": "Shell pitfalls",
        "journal/2025-05-04.md": "2025-05-04",
        "journal/2025-10-06.md": "2025-10-06",
        "journal/2025-11-03.md": "2025-11-03",
        "decisions/ADR-006 No ORM.md": "ADR-006 No ORM",
        "reading/Reading list.md": "Reading list, 2025",
    }
    assert {path: _parsed()[path].title for path in expected} == expected


def test_code_comments_escapes_and_embedded_pictures_hold_no_links() -> None:
    assert _targets("decisions/ADR-002 Write-ahead logging.md").isdisjoint({"Nowhere"})
    assert _targets("howto/SQLite WAL mode.md").isdisjoint({"so is this"})
    assert _targets("howto/SQLite FTS5.md").isdisjoint({"Fenced link"})
    assert _targets("howto/Watching files with inotify.md").isdisjoint({"Commented out", "also not read"})
    assert _targets("projects/Search rewrite.md").isdisjoint({"Not a link", "not a link either"})
    assert _targets("中文/中文全文检索.md").isdisjoint({"不存在的链接"})
    assert _targets("life/Danube by bike.md").isdisjoint({"danube.svg"})
    assert "Checklist" in _targets("projects/Release 1.10.md")


def test_clock_values_checkboxes_references_and_quotations_are_no_observations() -> None:
    categories = {path: {observation.category for observation in note.observations} for path, note in _parsed().items()}
    assert categories["team/Lunch talk on crash safety.md"] == {"insight", "number", "a", "plan"}
    assert categories["team/Code review habits.md"] == {"habit", "limit", None}
    assert categories["projects/Heron Sync.md"] == {"principle", "fact", "mistake"}
    assert "not an item" not in categories["decisions/ADR-003 Files are the truth.md"]
    assert "nested" in categories["team/Weekly rhythm.md"]


def test_the_scalars_that_yaml_changes_are_kept_as_written() -> None:
    header = _parsed()["decisions/ADR-004 Version numbers are text.md"].header
    assert [header[key] for key in ("version", "country", "start", "sheet")] == ["1.10", "no", "12:30", "012"]


def test_no_note_stands_alone() -> None:
    """Every note is the target of a link, so that a walk over the graph reaches it."""
    linked = {relation.target.casefold() for note in _parsed().values() for relation in note.relations}
    alone = [
        path
        for path, note in _parsed().items()
        if linked.isdisjoint(name.casefold() for name in (note.title, *note.aliases, path[:-3], Path(path).stem))
    ]
    assert alone == []
