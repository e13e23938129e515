"""What the programs that know a folder of notes have set for it, read from their own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoranda.sources.conventions import (
    Conventions,
    conventions_of,
    daily_path,
    marks_of,
    title_of_day,
)
from memoranda.sources.folder import FolderSource


@pytest.fixture(autouse=True)
def _without_basic_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BASIC_MEMORY_CONFIG_DIR", str(tmp_path / "no-such-folder"))


def read(root: Path, files: dict[str, str]) -> Conventions:
    """The conventions of a folder with these files."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return conventions_of(str(root), has_programs=True)


def left_out(conventions: Conventions, *paths: str) -> list[str]:
    return [path for path in paths if conventions.rules.reason(path)]


def test_folder_that_no_program_knows_has_no_conventions(tmp_path: Path) -> None:
    assert read(tmp_path, {"a.md": "x"}) == Conventions()


def test_obsidian_is_known_by_its_folder(tmp_path: Path) -> None:
    conventions = read(
        tmp_path,
        {
            ".obsidian/app.json": json.dumps(
                {
                    "attachmentFolderPath": "Files",
                    "useMarkdownLinks": True,
                    "newFileLocation": "folder",
                    "newFileFolderPath": "Inbox",
                    "userIgnoreFilters": ["Private/", "/old$/", "/(/"],
                }
            ),
            ".obsidian/templates.json": '{"folder": "Templates"}',
            ".obsidian/daily-notes.json": '{"folder": "Daily/", "format": "YYYY/MM/YYYY-MM-DD"}',
        },
    )
    assert conventions.programs == ["Obsidian"]
    assert conventions.attachments == "Files"
    assert conventions.new_notes == "Inbox"
    assert conventions.has_markdown_links
    assert conventions.templates == "Templates"
    assert daily_path(conventions, 2026, 3, 7) == "Daily/2026/03/2026-03-07"
    assert left_out(conventions, "Private/a.md", "Templates/a.md", "a.md") == [
        "Private/a.md",
        "Templates/a.md",
    ]
    assert len(conventions.warnings) == 1
    assert "/(/" in conventions.warnings[0]


def test_periodic_notes_and_templater_have_their_own_settings(tmp_path: Path) -> None:
    conventions = read(
        tmp_path,
        {
            ".obsidian/app.json": "{}",
            ".obsidian/plugins/periodic-notes/data.json": json.dumps(
                {"daily": {"enabled": True, "folder": "Days", "format": "dddd, D MMMM YYYY"}}
            ),
            ".obsidian/plugins/templater-obsidian/data.json": '{"templates_folder": "T/x"}',
        },
    )
    assert daily_path(conventions, 2026, 3, 7) == "Days/Saturday, 7 March 2026"
    assert left_out(conventions, "T/x/a.md", "T/a.md") == ["T/x/a.md"]


def test_obsidian_without_settings_has_its_usual_ones(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    conventions = conventions_of(str(tmp_path), has_programs=True)
    assert conventions.programs == ["Obsidian"]
    assert daily_path(conventions, 2026, 12, 31) == "2026-12-31"


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"attachmentFolderPath": ["x"]}', "\x00"])
def test_settings_that_cannot_be_read_are_no_error(tmp_path: Path, text: str) -> None:
    conventions = read(tmp_path, {".obsidian/app.json": text})
    assert conventions.attachments == ""
    assert bool(conventions.warnings) != text.startswith('{"')


def test_logseq_is_known_by_its_configuration(tmp_path: Path) -> None:
    text = """{:meta/version 1
 ;; :journals-directory "commented"
 :journals-directory "days"
 :journal/file-name-format "yyyy-MM-dd EEEE"
 :hidden ["/archived" "drafts/old"]}"""
    conventions = read(tmp_path, {"logseq/config.edn": text})
    assert conventions.programs == ["Logseq"]
    assert daily_path(conventions, 2026, 3, 7) == "days/2026-03-07 Saturday"
    assert conventions.new_notes == "pages"
    assert conventions.attachments == "assets"
    paths = ("logseq/bak/pages/a.md", "archived/a.md", "drafts/old/a.md", "pages/a.md")
    assert left_out(conventions, *paths) == list(paths[:3])


def test_logseq_without_keys_has_its_usual_ones(tmp_path: Path) -> None:
    conventions = read(tmp_path, {"logseq/config.edn": "{}"})
    assert daily_path(conventions, 2026, 3, 7) == "journals/2026_03_07"


def test_foam_is_known_by_the_settings_of_its_editor(tmp_path: Path) -> None:
    text = """{
  // notes of days
  "foam.openDailyNote.directory": "journal",
  "foam.openDailyNote.filenameFormat": "'day-'yyyy-mm-dd",
  "foam.files.ignore": ["**/_layouts/**", "/drafts/"],
}"""
    conventions = read(tmp_path, {".vscode/settings.json": text})
    assert conventions.programs == ["Foam"]
    assert conventions.daily_folder == "journal"
    assert daily_path(conventions, 2026, 3, 7) == "journal/day-2026-03-07"
    assert left_out(conventions, "a/_layouts/x.md", "drafts/a.md", "a.md") == [
        "a/_layouts/x.md",
        "drafts/a.md",
    ]


def test_settings_of_another_editor_are_not_those_of_foam(tmp_path: Path) -> None:
    assert read(tmp_path, {".vscode/settings.json": '{"editor.tabSize": 2}'}).programs == []


def test_dendron_is_known_by_its_file(tmp_path: Path) -> None:
    text = "version: 5\nworkspace:\n  journal:\n    dailyDomain: daily\n    name: journal\n    dateFormat: y.MM.dd\n"
    conventions = read(tmp_path, {"dendron.yml": text})
    assert conventions.programs == ["Dendron"]
    assert daily_path(conventions, 2026, 3, 7) == "daily.journal.2026.03.07"


def test_zk_is_known_by_its_folder(tmp_path: Path) -> None:
    text = """[note]
ignore = ["drafts/*"]
[group.daily]
paths = ["journal/daily"]
[format.markdown]
link-format = "wiki"
"""
    conventions = read(tmp_path, {".zk/config.toml": text})
    assert conventions.programs == ["zk"]
    assert not conventions.has_markdown_links
    assert daily_path(conventions, 2026, 3, 7) == "journal/daily/2026-03-07"
    assert left_out(conventions, "drafts/a.md", "a.md") == ["drafts/a.md"]


def test_basic_memory_is_known_by_its_list_of_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings"
    settings.mkdir()
    root = tmp_path / "notes"
    root.mkdir()
    (settings / "config.json").write_text(json.dumps({"projects": {"main": str(root)}}))
    monkeypatch.setenv("BASIC_MEMORY_CONFIG_DIR", str(settings))

    programs = conventions_of(str(root), has_programs=True).programs
    assert programs == ["Basic Memory"]
    programs = conventions_of(str(settings), has_programs=True).programs
    assert programs == []


def test_our_list_can_take_back_what_a_program_leaves_out(tmp_path: Path) -> None:
    conventions = read(
        tmp_path,
        {
            ".obsidian/templates.json": '{"folder": "Templates"}',
            ".memoryignore": "!Templates/\nOther/\n",
        },
    )
    assert left_out(conventions, "Templates/a.md", "Other/a.md") == ["Other/a.md"]


def test_marks_change_with_the_files_that_are_read(tmp_path: Path) -> None:
    before = marks_of(str(tmp_path), has_programs=True)
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian/app.json").write_text("{}")
    assert marks_of(str(tmp_path), has_programs=True) != before


def test_folder_of_this_home_has_no_programs(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian/app.json").write_text('{"userIgnoreFilters": ["a"]}')
    store = FolderSource("notes", tmp_path, optional=True)
    assert store.conventions.programs == []
    assert store.is_note("a.md")


def test_patterns_of_the_configuration_count_too(tmp_path: Path) -> None:
    store = FolderSource("vault", tmp_path, ignored=["drafts/"])
    assert not store.is_note("drafts/a.md")
    assert store.rules.reason("drafts/a.md") == "the configuration, line 1"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("journals/2025_12_01.md", "Dec 1st, 2025"),
        ("journals/2025_09_22.md", "Sep 22nd, 2025"),
        ("journals/2025_09_13.md", "Sep 13th, 2025"),
        ("journals/2025_02_30.md", ""),
        ("journals/other.md", ""),
        ("pages/2025_12_01.md", ""),
    ],
)
def test_note_of_a_day_has_the_name_that_logseq_gives_it(
    tmp_path: Path, path: str, name: str
) -> None:
    conventions = read(tmp_path, {"logseq/config.edn": "{}"})
    assert title_of_day(conventions, path) == name
