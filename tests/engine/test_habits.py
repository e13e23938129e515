"""Notes that agents write into a folder look like those that are there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from contract.note_tools import Tools, put
from memoranda.engine import MemorySession, open_session
from memoranda.note import edit as edits
from memoranda.note.model import Draft

Folder = Callable[[dict[str, str]], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    def make(files: dict[str, str]) -> Path:
        root = tmp_path / "vault"
        root.mkdir()
        for name, text in files.items():
            put(root / name, text)
        return root

    return make


@contextmanager
def opened(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", projects={"vault": tmp_path / "vault"}) as memory:
        yield memory.as_caller("claude", "mcp")


PLAIN = {".obsidian/app.json": "{}", "One.md": "text\n", "Two.md": "[[One]]\n"}


def test_note_in_a_folder_without_headers_has_none(tmp_path: Path, folder: Folder) -> None:
    root = folder(PLAIN)
    with opened(tmp_path) as memory:
        Tools(memory)(
            "write_note", title="New idea", content="# New idea\n\n[[One]]", project="vault"
        )
        assert (root / "New idea.md").read_text() == "# New idea\n\n[[One]]\n"
        note = memory.read("New idea")
    assert note.title == "New idea"


def test_its_tags_are_written_as_the_folder_has_them(tmp_path: Path, folder: Folder) -> None:
    root = folder(PLAIN)
    with opened(tmp_path) as memory:
        memory.write(Draft("text", project="vault", title="New", tags=["idea", "work/now"]))
        assert (root / "New.md").read_text() == "text\n\n#idea #work/now\n"
        paths = [hit.note.path for hit in memory.search("tag:work").hits]
        assert paths == ["New.md"]


def test_what_the_caller_asks_for_is_written(tmp_path: Path, folder: Folder) -> None:
    root = folder(PLAIN)
    with opened(tmp_path) as memory:
        memory.write(
            Draft("text", project="vault", title="A: B?", type="idea", metadata={"rating": 4})
        )
        note = memory.read("A: B?")
    text = (root / note.path).read_text()
    assert note.title == "A: B?"
    assert note.type == "idea"
    assert "rating: 4" in text
    assert "permalink" not in text
    assert "created_at" not in text


def test_note_has_the_header_keys_that_others_have(tmp_path: Path, folder: Folder) -> None:
    header = "---\ntitle: {0}\ntype: note\npermalink: {0}\n---\ntext\n"
    root = folder({f"{name}.md": header.format(name) for name in ("one", "two", "three")})
    with opened(tmp_path) as memory:
        memory.write(Draft("text", project="vault", title="Four"))
    assert (root / "Four.md").read_text() == (
        "---\ntitle: Four\ntype: note\npermalink: vault/four\n---\ntext\n"
    )


def test_empty_folder_that_no_program_knows_has_our_header(tmp_path: Path, folder: Folder) -> None:
    root = folder({})
    with opened(tmp_path) as memory:
        memory.write(Draft("text", project="vault", title="First"))
    assert "permalink: vault/first" in (root / "First.md").read_text()


def test_replaced_note_keeps_the_header_it_has(tmp_path: Path, folder: Folder) -> None:
    root = folder({**PLAIN, "Three.md": "---\nstatus: open\n---\nold\n"})
    with opened(tmp_path) as memory:
        for title in ("One", "Three"):
            memory.store(Draft("new", project="vault", title=title), overwrite=True)

    assert (root / "One.md").read_text() == "new\n"
    assert (root / "Three.md").read_text() == "---\nstatus: open\n---\nnew\n"


def test_appending_to_a_missing_note_makes_one_in_the_same_way(
    tmp_path: Path, folder: Folder
) -> None:
    root = folder(PLAIN)
    with opened(tmp_path) as memory:
        memory.edit("Log", edits.Append("- first\n"), create=True, project="vault")
    assert (root / "Log.md").read_text() == "- first\n"


def test_note_without_a_folder_goes_where_obsidian_puts_new_ones(
    tmp_path: Path, folder: Folder
) -> None:
    app = json.dumps({"newFileLocation": "folder", "newFileFolderPath": "Inbox"})
    root = folder({**PLAIN, ".obsidian/app.json": app})
    with opened(tmp_path) as memory:
        memory.write(Draft("text", project="vault", title="New"))
        memory.write(Draft("text", project="vault", title="Other", folder="Topics"))
        memory.write(Draft("text", project="vault", title="Root", folder="/"))

    assert (root / "Inbox/New.md").exists()
    assert (root / "Topics/Other.md").exists()
    assert (root / "Root.md").exists()


def test_note_of_a_day_goes_where_notes_of_days_are(tmp_path: Path, folder: Folder) -> None:
    daily = json.dumps({"folder": "Daily", "format": "YYYY/YYYY-MM-DD"})
    root = folder({**PLAIN, ".obsidian/daily-notes.json": daily})
    with opened(tmp_path) as memory:
        memory.write(Draft("text", project="vault", title="2026-03-07"))
        memory.edit("2026-03-07", edits.Append("more\n"), create=True, project="vault")

    assert (root / "Daily/2026/2026-03-07.md").read_text() == "text\nmore\n"


def test_logseq_pages_get_their_properties_as_logseq_has_them(
    tmp_path: Path, folder: Folder
) -> None:
    root = folder({"logseq/config.edn": "{}", "pages/One.md": "- text\n"})
    with opened(tmp_path) as memory:
        memory.write(Draft("- text", project="vault", title="New", tags=["a b", "c"]))
        memory.write(Draft("- text", project="vault", title="2026-03-07"))
        paths = [hit.note.path for hit in memory.search("tag:c").hits]

    assert (root / "pages/New.md").read_text() == "tags:: a b, c\n\n- text\n"
    assert "- text" in (root / "journals/2026_03_07.md").read_text()
    assert paths == ["pages/New.md"]


def test_agents_are_told_how_a_folder_is_kept(tmp_path: Path, folder: Folder) -> None:
    folder({**PLAIN, ".obsidian/daily-notes.json": '{"folder": "Daily"}'})
    with opened(tmp_path) as memory:
        text = Tools(memory).text("list_memory_projects")
    assert "kept with: Obsidian" in text
    assert "notes of days: Daily/YYYY-MM-DD" in text
