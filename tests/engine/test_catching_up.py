"""A server with a large project: calls are answered at once, and what changed while none ran is
found behind them.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.note_tools import Tools
from editing import replace_in
from memoranda import Draft, Exists, NotFound
from memoranda.engine import MemorySession, freshness, open_session
from memoranda.engine.engine import Engine

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vault large enough to be late, that was indexed, and that other programs have changed
    since.
    """
    monkeypatch.setattr(freshness, "LARGE", 3)
    root = tmp_path / "vault"
    for name in ("kept", "edited", "removed", "sub/moved", "gone/a", "gone/b"):
        put(
            root / f"{name}.md", f"# {Path(name).name}\n\nthe first {name.replace('/', ' ')} text\n"
        )
    with open_session(tmp_path / "home", projects={"vault": root}) as memory:
        hits = memory.search("first")
        assert len(hits) == 6
        (row,) = [hit.note.row for hit in memory.search("moved")]
    put(root / "edited.md", "# edited\n\nanother text than before\n")
    put(root / "new/added.md", "# added\n\nfreshly added\n")
    (root / "removed.md").unlink()
    os.rename(root / "sub/moved.md", root / "new/moved.md")
    for name in ("a", "b"):
        (root / f"gone/{name}.md").unlink()
    (root / "gone").rmdir()
    put(root / "row", str(row))
    return root


@pytest.fixture
def opened(vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemorySession]:
    """A server of that vault, which compares it with the disk only when a test says so."""
    monkeypatch.setattr(Engine, "_compare_late_projects", lambda _: None)
    with open_session(tmp_path / "home", projects={"vault": vault}, serving=True) as memory:
        memory.stats()
        yield memory


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def found(memory: MemorySession, text: str) -> set[str]:
    return {hit.note.path for hit in memory.search(text)}


def catch_up(memory: MemorySession) -> int:
    """How many pieces the rest of the comparison takes."""
    pieces = 0
    while memory.engine.freshness.late_sweeps:
        memory.engine.freshness.catch_up(0)
        pieces += 1
    return pieces


def test_the_first_search_shows_what_is_known_and_says_so(opened: MemorySession) -> None:
    assert found(opened, "first") == {
        "kept.md",
        "edited.md",
        "removed.md",
        "sub/moved.md",
        "gone/a.md",
        "gone/b.md",
    }
    (warning,) = opened.warnings
    assert "project vault" in warning
    assert "may be missing" in warning
    assert warning in Tools(opened)("search_notes", query="first", project="vault")["warnings"]
    catch_up(opened)
    assert not Tools(opened)("search_notes", query="first", project="vault").get("warnings")


def test_behind_the_calls_all_of_it_is_found_in_pieces_and_watched_from_then_on(
    opened: MemorySession, vault: Path
) -> None:
    assert catch_up(opened) > 3
    assert opened.warnings == []
    assert found(opened, "first") == {"kept.md", "new/moved.md"}
    assert found(opened, "another") == {"edited.md"}
    assert found(opened, "freshly") == {"new/added.md"}
    (hit,) = opened.search("moved")
    # The same note still
    assert hit.note.row == int((vault / "row").read_text())
    # In a folder that is watched since then
    put(vault / "new/later.md", "a wagtail\n")
    assert found(opened, "wagtail") == {"new/later.md"}


def test_what_changes_meanwhile_is_seen_at_once(opened: MemorySession, vault: Path) -> None:
    put(vault / "sub/late.md", "a heron\n")
    assert found(opened, "heron") == {"sub/late.md"}
    file = vault / "kept.md"
    put(file, "a kingfisher\n")
    assert found(opened, "kingfisher") == {"kept.md"}
    file.unlink()
    assert found(opened, "kingfisher") == set()


def test_what_changed_meanwhile_stays_as_it_was_seen_once_all_is_read(
    opened: MemorySession, vault: Path
) -> None:
    put(vault / "sub/late.md", "a heron\n")
    file = vault / "kept.md"
    put(file, "a kingfisher\n")
    assert found(opened, "kingfisher") == {"kept.md"}
    file.unlink()
    assert found(opened, "kingfisher") == set()
    catch_up(opened)
    assert found(opened, "heron") == {"sub/late.md"}
    assert found(opened, "kingfisher") == set()


def test_what_is_read_is_as_it_is_on_disk(opened: MemorySession) -> None:
    text = opened.read("edited", project="vault").text
    assert "another text" in text
    text = opened.read("new/added.md", project="vault").text
    assert "freshly" in text
    text = opened.read(("vault", "new/added.md")).text
    assert "freshly" in text
    for missing_name in ("removed", "gone/a"):
        with pytest.raises(NotFound):
            opened.read(missing_name, project="vault")
    assert opened.warnings != []


def test_a_write_meets_the_file_another_program_made(opened: MemorySession, vault: Path) -> None:
    draft = Draft("mine\n", project="vault", folder="new", title="added")
    with pytest.raises(Exists):
        opened.write(draft)
    assert (vault / "new/added.md").read_text() == "# added\n\nfreshly added\n"
    created = opened.store(draft, overwrite=True).created
    assert created is False


def test_undo_of_an_overwrite_gives_back_the_file_another_program_made(
    opened: MemorySession, vault: Path
) -> None:
    draft = Draft("mine\n", project="vault", folder="new", title="added")
    opened.store(draft, overwrite=True)
    opened.undo()
    assert (vault / "new/added.md").read_text() == "# added\n\nfreshly added\n"
    catch_up(opened)
    assert found(opened, "freshly") == {"new/added.md"}


def test_a_note_written_where_one_was_removed_stays(opened: MemorySession, vault: Path) -> None:
    opened.write(Draft("a sparrow\n", project="vault", folder="sub", title="moved"))
    catch_up(opened)
    assert found(opened, "sparrow") == {"sub/moved.md"}
    assert found(opened, "first") == {"kept.md", "new/moved.md"}


def test_a_folder_is_deleted_with_all_that_is_in_it_now(opened: MemorySession, vault: Path) -> None:
    opened.delete_folder("vault", "new")
    assert not (vault / "new").exists()
    # That had to look at every file
    assert opened.warnings == []


def test_a_sync_leaves_nothing_for_later(opened: MemorySession, vault: Path) -> None:
    assert opened.sync().total == 6
    assert opened.warnings == []
    put(vault / "new/later.md", "a wagtail\n")
    assert found(opened, "wagtail") == {"new/later.md"}


def test_a_write_the_index_could_not_take_is_not_late(
    opened: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(opened.engine.index, "put_all", full)
        plover = Draft("a plover\n", project="vault", title="Plover")
        opened.write(plover)
    assert found(opened, "plover") == {"Plover.md"}
    assert opened.warnings == []


def test_a_folder_that_went_while_it_was_compared_loses_its_notes(
    opened: MemorySession, vault: Path
) -> None:
    opened.engine.freshness.catch_up(0)
    os.rename(vault / "new", vault.parent / "away")
    catch_up(opened)

    assert found(opened, "freshly") == set()
    assert found(opened, "first") == {"kept.md"}


def test_memories_are_never_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LARGE", 0)
    with open_session(tmp_path / "home") as memory:
        note = memory.write(Draft("likes tea", project="categories", category="preferences"))
        (file,) = (tmp_path / "home/categories/preferences").iterdir()
    replace_in(file, "tea", "cocoa")
    with open_session(tmp_path / "home", serving=True) as memory:
        ids = [hit.note.id for hit in memory.search("cocoa")]
        assert ids == [note.id]
        assert memory.warnings == []


def test_it_ends_by_itself(vault: Path, tmp_path: Path) -> None:
    with open_session(tmp_path / "home", projects={"vault": vault}, serving=True) as memory:
        memory.stats()
        behind = memory.engine._catching_up
        assert behind is not None
        behind.join(30)
        assert memory.warnings == []
        assert found(memory, "first") == {"kept.md", "new/moved.md"}


def test_it_ends_with_the_memory(vault: Path, tmp_path: Path) -> None:
    with (
        open_session(tmp_path / "home", projects={"vault": vault}, serving=True) as memory,
        memory.engine.guard,
    ):
        memory.stats()
        behind = memory.engine._catching_up
    assert behind is not None
    behind.join(30)
    assert not behind.is_alive()


def test_who_does_not_serve_sees_every_change(vault: Path, tmp_path: Path) -> None:
    with open_session(tmp_path / "home", projects={"vault": vault}) as memory:
        assert found(memory, "first") == {"kept.md", "new/moved.md"}
        assert memory.warnings == []
