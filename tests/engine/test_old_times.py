"""Changes of a file that times and watches do not tell: a text changed in place under its old time,
and one written under another name of the file, a hard link.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, freshness, open_session
from memoranda.faces import registry
from memoranda.note.edit import Append
from memoranda.note.model import Draft


def change_in_place(path: Path, old: str, new: str) -> None:
    """Change a text as a program does that keeps size, inode and time of the file."""
    overwrite(path, path.read_bytes().replace(old.encode(), new.encode()))


def overwrite(path: Path, data: bytes) -> None:
    before = path.stat()
    assert before.st_size == len(data)
    assert path.read_bytes() != data
    after = before
    # Until the clock of the file system has ticked
    while after.st_ctime_ns == before.st_ctime_ns:
        with open(path, "r+b") as file:
            file.write(data)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = path.stat()
    assert after.st_mtime_ns == before.st_mtime_ns
    assert after.st_ino == before.st_ino


def titles(memory: MemorySession, words: str) -> list[str]:
    return [hit.note.title for hit in memory.search(words)]


@pytest.fixture
def vault(tmp_path: Path, memory: MemorySession) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Tea.md").write_text("drinks green tea\n")
    memory.add_project("vault", str(folder))
    return folder


def test_a_text_changed_under_its_old_time_is_found(memory: MemorySession, vault: Path) -> None:
    assert titles(memory, "green") == ["Tea"]
    change_in_place(vault / "Tea.md", "green", "black")
    assert titles(memory, "green") == []
    assert titles(memory, "black") == ["Tea"]


def test_a_note_of_ours_changed_under_its_old_time_is_found(memory: MemorySession) -> None:
    note = memory.store(Draft("drinks green tea", title="Tea", project="notes")).note
    change_in_place(memory.home / "notes" / note.path, "green", "black")
    assert titles(memory, "black") == ["Tea"]


def test_an_edited_note_changed_under_its_old_time_is_found(memory: MemorySession) -> None:
    memory.store(Draft("drinks tea", title="Tea", project="notes"))
    note = memory.edit("Tea", Append("\ngreen")).note
    change_in_place(memory.home / "notes" / note.path, "green", "black")

    assert titles(memory, "black") == ["Tea"]
    assert titles(memory, "green") == []


def test_an_old_file_changed_under_its_old_time_is_found(
    memory: MemorySession, vault: Path
) -> None:
    os.utime(vault / "Tea.md", (1_000_000_000, 1_000_000_000))
    assert titles(memory, "green") == ["Tea"]
    change_in_place(vault / "Tea.md", "green", "black")
    assert titles(memory, "black") == ["Tea"]


def test_another_process_finds_it_too(memory: MemorySession, vault: Path) -> None:
    assert titles(memory, "green") == ["Tea"]
    change_in_place(vault / "Tea.md", "green", "black")
    with open_session(memory.home) as other_memory:
        assert titles(other_memory, "black") == ["Tea"]


def test_a_watching_process_finds_it(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=True) as memory:
        note = memory.store(Draft("drinks green tea", title="Tea", project="notes")).note
        assert titles(memory, "green") == ["Tea"]
        change_in_place(memory.home / "notes" / note.path, "green", "black")
        assert titles(memory, "black") == ["Tea"]


def test_a_file_that_was_no_note_is_looked_at_again(memory: MemorySession) -> None:
    folder = memory.home / "memories"
    folder.mkdir()
    (folder / "tea.md").write_bytes(b"green \xff\n")
    assert titles(memory, "green") == []
    overwrite(folder / "tea.md", b"green t\n")
    assert titles(memory, "green") == ["tea"]


@pytest.mark.parametrize("disturb", ["chmod", "link", "rename and back", "touch ctime alone"])
def test_what_changes_no_text_changes_no_note(
    memory: MemorySession, vault: Path, disturb: str
) -> None:
    file = vault / "Tea.md"
    before = memory.find("Tea")
    if disturb == "chmod":
        file.chmod(0o640)
    elif disturb == "link":
        os.link(file, vault / "copy.txt")
    elif disturb == "rename and back":
        file.rename(vault / "x")
        (vault / "x").rename(file)
    else:
        os.utime(file, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    after = memory.find("Tea")

    assert after.row == before.row
    assert after.etag == before.etag
    assert after.changed == before.changed


def test_a_moved_file_is_still_the_same_note(memory: MemorySession, vault: Path) -> None:
    row = memory.find("Tea").row
    (vault / "sub").mkdir()
    (vault / "Tea.md").rename(vault / "sub" / "Tea.md")
    assert memory.find("Tea").row == row


def test_an_edit_does_not_bury_a_text_changed_under_its_old_time(
    memory: MemorySession, vault: Path
) -> None:
    assert titles(memory, "green") == ["Tea"]
    change_in_place(vault / "Tea.md", "green", "black")
    memory.edit("Tea", Append("\nat four"))
    assert (vault / "Tea.md").read_text() == "drinks black tea\n\nat four\n"


def test_a_write_leaves_nothing_to_read_again(memory: MemorySession) -> None:
    memory.store(Draft("drinks green tea", title="Tea", project="notes"))
    assert memory.sync().total == 0
    info = memory.find("Tea")
    status = os.stat(memory.home / "notes" / info.path)
    assert info.ctime_ns == status.st_ctime_ns


def test_writes_that_wait_for_the_disk_together_leave_nothing_to_read_again(
    memory: MemorySession,
) -> None:
    tools = registry(["notes"], memory.settings)

    def write(number: int) -> None:
        arguments = {"title": f"Tea {number}", "directory": "", "content": "green"}
        assert not tools.call(memory, "write_note", arguments).is_error

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(100)))
    for info in memory.list(limit=0)[0]:
        assert info.ctime_ns == os.stat(memory.home / "notes" / info.path).st_ctime_ns


def test_a_graph_file_changed_under_its_old_time_is_read_again(
    tmp_path: Path, memory: MemorySession
) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_text('{"type":"entity","name":"Tea","entityType":"x","observations":["green"]}\n')
    memory.add_project("graphs", str(file))
    assert titles(memory, "green") == ["Tea"]
    change_in_place(file, "green", "black")
    assert titles(memory, "black") == ["Tea"]


# Two names of one file


@pytest.fixture(params=[True, False], ids=["watching", "not watching"])
def linked(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[MemorySession, Path, Path]]:
    """A memory over a vault in which `Tea.md` has the other name `elsewhere/tea.txt`."""
    vault = tmp_path / "vault"
    vault.mkdir()
    other_name = tmp_path / "elsewhere" / "tea.txt"
    other_name.parent.mkdir()
    (vault / "Tea.md").write_text("drinks green tea\n")
    os.link(vault / "Tea.md", other_name)
    with open_session(tmp_path / "home", watch=request.param) as memory:
        memory.add_project("vault", str(vault))
        assert titles(memory, "green") == ["Tea"]
        yield memory, vault, other_name


Linked = tuple[MemorySession, Path, Path]


def test_what_is_written_under_the_other_name_is_found(linked: Linked) -> None:
    memory, _, other_name = linked
    other_name.write_text("drinks black tea\n")
    assert titles(memory, "black") == ["Tea"]
    with open(other_name, "a") as file:
        file.write("and coffee\n")
    assert titles(memory, "coffee") == ["Tea"]
    assert titles(memory, "green") == []


def test_what_is_written_under_the_other_name_with_its_old_time_is_found(linked: Linked) -> None:
    memory, _, other_name = linked
    change_in_place(other_name, "green", "black")
    assert titles(memory, "black") == ["Tea"]


def test_a_link_that_comes_into_the_vault_is_followed_too(linked: Linked) -> None:
    memory, vault, other_name = linked
    plain = other_name.with_name("plain.txt")
    plain.write_text("red wine\n")
    place_in_vault = vault / "Wine.md"
    os.link(plain, place_in_vault)
    assert titles(memory, "red") == ["Wine"]
    plain.write_text("white wine\n")
    assert titles(memory, "white") == ["Wine"]


def test_an_edit_gives_the_note_a_file_of_its_own_and_the_other_name_keeps_its_text(
    linked: Linked,
) -> None:
    memory, vault, other_name = linked
    memory.edit("Tea", Append("\nat four"))
    assert (vault / "Tea.md").read_text() == "drinks green tea\n\nat four\n"
    assert other_name.read_text() == "drinks green tea\n"
    other_name.write_text("drinks black tea\n")
    assert titles(memory, "black") == []
    memory.undo()
    assert (vault / "Tea.md").read_text() == "drinks green tea\n"
    assert other_name.read_text() == "drinks black tea\n"


def test_a_deleted_note_leaves_the_other_name(linked: Linked) -> None:
    memory, vault, other_name = linked
    memory.delete("Tea")
    assert not (vault / "Tea.md").exists()
    assert other_name.read_text() == "drinks green tea\n"
    memory.undo()
    assert titles(memory, "green") == ["Tea"]


@pytest.fixture
def twins(linked: Linked) -> Linked:
    """The same with `Tea.md` and `Drinks.md` of one project as names of one file."""
    memory, vault, other_name = linked
    os.link(other_name, vault / "Drinks.md")
    assert sorted(titles(memory, "green")) == ["Drinks", "Tea"]
    return linked


def test_two_names_in_one_project_are_two_notes(twins: Linked) -> None:
    memory, vault, _ = twins
    memory.edit("Tea", Append("\nat four"))
    assert titles(memory, "four") == ["Tea"]
    body = memory.read("Drinks").body
    assert body.strip() == "drinks green tea"
    (vault / "Drinks.md").write_text("drinks coffee\n")
    assert titles(memory, "coffee") == ["Drinks"]
    assert titles(memory, "green") == ["Tea"]


def test_one_of_two_names_goes_and_the_other_stays(twins: Linked) -> None:
    memory, vault, other_name = twins
    (vault / "Tea.md").unlink()
    assert titles(memory, "green") == ["Drinks"]
    other_name.write_text("drinks black tea\n")
    assert titles(memory, "black") == ["Drinks"]
    (vault / "Drinks.md").rename(vault / "Moved.md")
    assert titles(memory, "black") == ["Moved"]


def test_moving_and_erasing_one_name_leaves_the_other(twins: Linked) -> None:
    memory, vault, _ = twins
    memory.move("Tea", "sub/")
    assert sorted(titles(memory, "green")) == ["Drinks", "Tea"]
    memory.erase("Tea")
    assert titles(memory, "green") == ["Drinks"]
    assert (vault / "Drinks.md").read_text() == "drinks green tea\n"


def test_very_many_links_are_followed(linked: Linked, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, vault, other_name = linked
    monkeypatch.setattr(freshness, "_MAX_SHARED_FILES", 5)
    for number in range(10):
        (other_name.parent / f"{number}.txt").write_text(f"glass number{number}\n")
        os.link(other_name.parent / f"{number}.txt", vault / f"{number}.md")
    assert titles(memory, "number7") == ["7"]
    (other_name.parent / "7.txt").write_text("a broken glass\n")
    assert titles(memory, "broken") == ["7"]
    (vault / "7.md").unlink()
    assert titles(memory, "broken") == []
