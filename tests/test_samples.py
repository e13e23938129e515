"""The sample vault is large enough, holds the oddities its README lists, and names no machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

SAMPLES = Path(__file__).parents[1] / "samples"
VAULT = SAMPLES / "vault"
NOTES = sorted(VAULT.rglob("*.md"))


def _header(path: Path) -> str:
    """The YAML between the two `---` lines."""
    match = re.match(
        r"---[ \t]*\n(.*?)^---[ \t]*$", path.read_text("utf-8-sig"), re.DOTALL | re.MULTILINE
    )
    assert match, f"{path.name} has no frontmatter"
    return match[1]


def test_exactly_one_note_has_windows_line_endings_throughout() -> None:
    odd = [note for note in NOTES if b"\r" in note.read_bytes()]
    assert [note.name for note in odd] == ["ADR-006 No ORM.md"]
    data = odd[0].read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r")


def test_the_header_of_one_note_is_no_yaml_and_all_others_are_mappings() -> None:
    broken = VAULT / "howto" / "Shell pitfalls.md"
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(_header(broken))
    for note in NOTES:
        if note != broken and note.name != "2025-05-04.md":
            assert isinstance(yaml.load(_header(note), Loader=yaml.BaseLoader), dict), note.name


def test_the_readme_lists_every_oddity_under_a_file_that_exists() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (SAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    file_names = []
    for row in rows:
        file_names.extend(re.findall(r"`([^`]+)`", row))
    assert len(file_names) >= 20
    names = [name for name in file_names if not (VAULT / name).exists()]
    assert names == []


def test_git_is_told_to_leave_the_bytes_alone() -> None:
    assert "samples/vault/** -text" in (SAMPLES.parent / ".gitattributes").read_text().splitlines()


def test_no_file_names_a_place_on_a_machine() -> None:
    machine = re.compile(
        r"(?<![\w.~])/(?:home|Users|root|work|tmp|opt|mnt|var)/|\b[A-Z]:\\|file://"
    )
    files = [file for file in SAMPLES.rglob("*") if file.is_file()]

    names = [file.name for file in files if machine.search(file.read_text("utf-8"))]
    assert names == []


@pytest.mark.parametrize(
    ("is_odd", "name"),
    [
        (lambda data: data.startswith(b"\xef\xbb\xbf"), "2025-11-03.md"),
        (lambda data: not data.endswith(b"\n"), "Git tricks.md"),
        (lambda data: not data.removeprefix(b"\xef\xbb\xbf").startswith(b"---"), "2025-05-04.md"),
    ],
)
def test_exactly_one_note_has_each_oddity(is_odd, name) -> None:
    assert [note.name for note in NOTES if is_odd(note.read_bytes())] == [name]
