"""A name reaches only the note that it names, and what is deleted is named exactly (docs/format.md,
"Names").
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memoranda import Draft, errors
from memoranda.engine import MemorySession
from memoranda.engine.upkeep import Upkeep
from memoranda.jobs.lifecycle import archive_named
from memoranda.note.edit import Append
from memoranda.note.names import Looseness

REST_OF_ID = "1111-4222-8333-444455556666"
# An id with the same first digits as another one, as a file name shows them.
OTHER_REST = "9999-4222-8333-444455556666"


def put_memory(home: Path, name: str, note_id: str) -> Path:
    """Put the file of a memory into the home, as an editor would."""
    file = home / "categories" / "skills" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nid: {note_id}\n---\nThe text of {name}.\n")
    return file


def put_note(home: Path, path: str, text: str) -> Path:
    """Put a note into the project `notes`."""
    file = home / "notes" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def texts(home: Path) -> dict[str, bytes]:
    """All notes of a home and their bytes, by path."""
    files = [file for file in home.glob("*/**/*.md") if ".memoranda" not in file.parts]
    return {str(file.relative_to(home)): file.read_bytes() for file in files}


@pytest.mark.parametrize("command", ["restore", "log", "diff", "read", "erase"])
def test_a_title_that_begins_an_id_is_refused_by_every_command(terminal: Any, command: str) -> None:
    put_memory(terminal.home, "x", f"beef0000-{REST_OF_ID}")
    put_note(terminal.home, "beef.md", "A note.\n")
    before = texts(terminal.home)
    ran = terminal(command, "beef", *(["--yes"] if command == "erase" else []))

    assert "names 2 notes" in ran.err
    assert texts(terminal.home) == before


@pytest.mark.parametrize("command", ["restore", "erase", "log", "delete"])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_id_that_only_begins_like_that_of_a_memory_reaches_nothing(
    terminal: Any, command: str, is_deleted: bool
) -> None:
    put_memory(terminal.home, "x-abcd1234", f"abcd1234-{REST_OF_ID}")
    terminal("tag", "abcd1234", "--add", "tea")
    if is_deleted:
        terminal("delete", "abcd1234")
    before = texts(terminal.home)
    words = [command, f"abcd1234-{OTHER_REST}"]
    if command == "erase":
        words.append("--yes")
    ran = terminal(*words)

    assert ran.status != 0
    assert "not found" in ran.err
    after = texts(terminal.home)
    assert after == before


def test_digits_that_two_deleted_memories_share_are_refused_and_a_whole_id_is_not(
    terminal: Any,
) -> None:
    for rest, name in ((REST_OF_ID, "x"), (OTHER_REST, "y")):
        put_memory(terminal.home, f"{name}-abcd1234", f"abcd1234-{rest}")
        terminal("delete", f"abcd1234-{rest}")

    assert "ambiguous id" in terminal("restore", "abcd1234").err
    assert terminal("restore", f"abcd1234-{REST_OF_ID}").status == 0
    assert list(texts(terminal.home)) == ["categories/skills/x-abcd1234.md"]


def merge_two(memory: MemorySession) -> tuple[str, str, str]:
    """Merge a memory into another. Return the id of the one that stays, and the id and the address
    of the one that is gone.
    """
    kept = memory.write(Draft("The bell rings at six.", category="skills"))
    gone = memory.write(Draft("The gate opens at five.", category="skills"))
    Upkeep(memory).merge(memory.memory_id(kept.id), memory.memory_id(gone.id))
    return kept.id, gone.id, f"{gone.project}/{gone.path}"


@pytest.mark.parametrize("reference", ["whole id", "beginning of the id"])
def test_the_id_of_a_merged_memory_reads_the_other_and_deletes_nothing(
    memory: MemorySession, reference: str
) -> None:
    kept_id, gone_id, _ = merge_two(memory)
    ref = gone_id if reference == "whole id" else gone_id[:8]
    assert memory.read(ref).id == kept_id

    with pytest.raises(errors.NotFound) as caught:
        memory.delete(ref)
    # The one that has its words now is named.
    assert memory.find(caught.value.suggestions[0]).id == kept_id


def test_what_is_restored_by_the_id_of_a_merged_memory_is_that_memory(
    memory: MemorySession,
) -> None:
    kept_id, gone_id, gone_address = merge_two(memory)
    text_of_kept = memory.file(memory.find(kept_id)).data
    place, _ = memory.restore(gone_id)

    assert place == gone_address
    assert memory.find(gone_id).id == gone_id
    assert memory.file(memory.find(kept_id)).data == text_of_kept


def test_a_merged_memory_whose_file_name_lacks_its_id_restores_no_other(
    memory: MemorySession,
) -> None:
    gone_id = f"beef0000-{REST_OF_ID}"
    kept = memory.write(Draft("The bell rings at six.", category="skills"))
    put_memory(Path(memory.engine.ledger.layout.root), "x", gone_id)
    Upkeep(memory).merge(memory.memory_id(kept.id), memory.memory_id(gone_id))

    with pytest.raises(errors.NotFound):
        memory.restore(gone_id)
    # By its place it is brought back.
    assert memory.restore("categories/skills/x.md")[0] == "categories/skills/x.md"


def test_a_merged_memory_is_restored_while_the_other_is_archived(memory: MemorySession) -> None:
    kept_id, gone_id, gone_address = merge_two(memory)
    archive_named(memory, [kept_id])
    place, _ = memory.restore(gone_id)

    assert place == gone_address


DAY_NOTE = "---\nid: 20240101123456\n---\nBody\n"


def test_the_beginning_of_an_id_that_somebody_made_up_is_no_name_for_a_change(
    memory: MemorySession,
) -> None:
    home = Path(memory.engine.ledger.layout.root)
    file = put_note(home, "Meeting.md", DAY_NOTE)
    # The note of the day is gone, or was never there.
    note = memory.read("20240101")
    assert note.title == "Meeting"

    with pytest.raises(errors.NotFound):
        memory.delete("20240101")
    with pytest.raises(errors.NotFound):
        memory.move("20240101", "elsewhere.md")
    assert file.read_text() == DAY_NOTE

    memory.delete("20240101123456")
    assert not file.exists()


@pytest.mark.parametrize(("name", "twin"), [("Tea", "tea"), ("ß", "ss"), ("a:b", "a/b")])
def test_an_entry_is_reached_by_its_own_key_and_no_other(
    terminal: Any, name: str, twin: str
) -> None:
    for key in (name, twin):
        terminal.ok("kv", "set", key, f"the value of {key}")
    assert terminal("read", f"kv/default/{name}").out.count(f"the value of {name}") == 1
    terminal("delete", f"kv/default/{name}")

    assert terminal("kv", "get", name).status != 0
    assert f"the value of {twin}" in terminal("kv", "get", twin).out
    # The entry is gone, so its name reaches nothing.
    assert terminal("delete", f"kv/default/{name}").status != 0
    assert terminal("erase", f"kv/default/{twin}", "--yes").status == 0
    assert terminal("kv", "get", twin).status != 0


def test_a_name_that_is_two_entries_is_refused(terminal: Any) -> None:
    for namespace, key in (("a", "b/c"), ("a/b", "c")):
        arguments = f'{{"namespace": "{namespace}", "key": "{key}", "value": "v"}}'
        terminal.ok("call", "memory_remember", arguments)
    before = texts(terminal.home)
    for command in ("delete", "erase"):
        ran = terminal(command, "kv/a/b/c", *(["--yes"] if command == "erase" else []))
        assert "names 2 notes" in ran.err
    assert texts(terminal.home) == before


def put_secret_of_work(terminal: Any, folder: Path) -> Path:
    """Add a folder with one note as project Work, and return the note's file."""
    folder.mkdir()
    file = folder / "Secret.md"
    file.write_text("text\n")
    terminal.ok("project", "add", "Work", str(folder))
    return file


@pytest.mark.parametrize("name", ["wörk", "w-o-r-k", "Wo rk"])
def test_a_project_is_named_exactly_where_its_notes_are_changed(
    terminal: Any, tmp_path: Path, name: str
) -> None:
    file = put_secret_of_work(terminal, tmp_path / "vault")
    commands = (
        ("erase", "--project", name, "--yes"),
        ("erase", f"{name}/Secret.md", "--yes"),
        ("delete", f"{name}/Secret.md"),
        ("delete", f"{name}: Secret"),
        ("tag", f"{name}/Secret.md", "--add", "tea"),
        ("restore", f"{name}/Secret.md"),
    )
    for command in commands:
        ran = terminal(*command)
        assert ran.status != 0
        assert "Did you mean" in ran.err
    assert file.read_text() == "text\n"


@pytest.mark.parametrize("name", ["Work", "work", "WORK"])
def test_a_project_may_be_named_in_any_case_where_its_notes_are_deleted(
    terminal: Any, tmp_path: Path, name: str
) -> None:
    file = put_secret_of_work(terminal, tmp_path / "vault")

    terminal.ok("delete", f"{name}/Secret.md")
    assert not file.exists()


@pytest.mark.parametrize("name", [".memoranda", ".archive", ".Memoranda", ".x"])
def test_no_project_has_a_name_that_the_ledger_uses_for_itself(
    memory: MemorySession, name: str
) -> None:
    caller = memory.as_caller("mallory", "mcp")
    folder = Path(memory.engine.ledger.layout.root) / "projects" / "p"

    with pytest.raises(errors.InvalidInput, match="begins with no dot"):
        caller.add_project(name, str(folder))
    assert not folder.exists()


@pytest.mark.parametrize("command", ["delete", "erase", "pin", "tag", "archive", "restore"])
def test_an_id_that_an_archived_note_shares_with_a_later_one_is_refused(
    terminal: Any, command: str
) -> None:
    put_note(terminal.home, "Roof.md", "The old roof.\n")
    terminal.ok("archive", "notes/Roof.md")
    # The id of a note without one in its header follows from its place.
    put_note(terminal.home, "Roof.md", "The new roof.\n")
    shared_id = terminal("read", "notes/Roof.md", "--json").json["note"]["id"]
    before = texts(terminal.home)
    options = {"erase": ["--yes"], "tag": ["--add", "t"]}
    refused = terminal(command, shared_id, *options.get(command, []))

    assert "names 2 notes: .archive/knowledge/Roof.md, notes/Roof.md" in refused.err
    assert texts(terminal.home) == before
    terminal.ok("delete", ".archive/knowledge/Roof.md")
    terminal.ok("delete", "notes/Roof.md")
    assert texts(terminal.home) == {}


@pytest.fixture
def archived_path(terminal: Any, tmp_path: Path) -> str:
    """The path of an archived memory. A project called `archive` has a note at the same path."""
    folder = tmp_path / "own"
    (folder / "skills").mkdir(parents=True)
    (folder / "skills" / "x.md").write_text("The note of the project.\n")
    file = terminal.home / "archive" / "skills" / "x.md"
    file.parent.mkdir(parents=True)
    file.write_text(f"---\nid: beef0000-{REST_OF_ID}\nphase: archived\n---\nThe archived memory.\n")
    terminal("project", "add", "archive", str(folder))
    return "skills/x.md"


@pytest.mark.parametrize("command", ["read", "delete", "erase", "restore", "tag"])
def test_a_path_in_the_archive_and_in_a_project_of_that_name_is_refused(
    terminal: Any, archived_path: str, command: str
) -> None:
    before = texts(terminal.home)
    options = {"erase": ["--yes"], "tag": ["--add", "red"]}.get(command, [])
    ran = terminal(command, f"archive/{archived_path}", *options)
    assert f"names 2 notes: .archive/{archived_path}, " in ran.err
    assert texts(terminal.home) == before


def test_each_spelling_that_the_refusal_names_reaches_its_note(
    terminal: Any, archived_path: str
) -> None:
    refusal = terminal("delete", f"archive/{archived_path}").err
    spellings = refusal.splitlines()[0].partition("notes: ")[2].split(", ")
    ran = terminal("delete", "--dry-run", *spellings)
    assert ran.out.splitlines() == [
        f"Would delete memory: beef0000-{REST_OF_ID}",
        f"Would delete note: archive/{archived_path}",
    ]


def test_a_path_that_only_the_archive_has_means_the_archived_memory(
    terminal: Any, archived_path: str, tmp_path: Path
) -> None:
    (tmp_path / "own" / archived_path).unlink()
    ran = terminal("delete", "--dry-run", f"archive/{archived_path}")
    assert ran.out == f"Would delete memory: beef0000-{REST_OF_ID}\n"


def test_a_path_that_only_the_project_has_means_its_note(terminal: Any, archived_path: str) -> None:
    (terminal.home / "archive" / archived_path).unlink()
    ran = terminal("delete", "--dry-run", f"archive/{archived_path}")
    assert ran.out == f"Would delete note: archive/{archived_path}\n"


def plant(memory: MemorySession, header: str) -> None:
    """Write a note `trap.md` whose header claims the name of another note."""
    put_note(memory.engine.layout.root, "trap.md", f"---\n{header}\n---\nNot the note you named.\n")


@pytest.mark.parametrize("name", ["notes/plans/Tea.md", "plans/Tea.md"])
@pytest.mark.parametrize("header", ["title: {}", "aliases: ['{}']", "permalink: {}"])
def test_the_place_of_a_note_means_it_though_another_note_is_called_so(
    memory: MemorySession, header: str, name: str
) -> None:
    memory.write(Draft("The note.\n", project="notes", folder="plans", title="Tea"))
    plant(memory, header.format(name))
    found = memory.find(name, looseness=Looseness.EXACT)
    assert found.path == "plans/Tea.md"


@pytest.mark.parametrize("name", ["notes/plans/tea", "notes/plans/Tea"])
@pytest.mark.parametrize("header", ["title: {}", "aliases: ['{}']"])
def test_an_address_as_lists_print_it_means_its_note_though_another_is_called_so(
    memory: MemorySession, header: str, name: str
) -> None:
    memory.write(Draft("The note.\n", project="notes", folder="plans", title="Tea"))
    plant(memory, header.format(name))
    found = memory.find(name, looseness=Looseness.EXACT)
    assert found.path == "plans/Tea.md"


def test_a_permalink_means_its_note_though_another_file_is_at_that_path(
    memory: MemorySession,
) -> None:
    memory.write(Draft("One.\n", project="notes", title="Tea"))
    memory.move("notes/Tea.md", "old/Tea.md")
    memory.write(Draft("Two.\n", project="notes", title="tea"))
    found = memory.find("notes/tea")
    assert found.path == "old/Tea.md"


def test_the_place_in_another_project_means_its_note_though_a_title_of_the_default_one_is_so(
    memory: MemorySession, tmp_path: Path
) -> None:
    memory.add_project("work", str(tmp_path / "work"))
    memory.write(Draft("The note.\n", project="work", title="Tea"))
    plant(memory, "title: work/Tea.md")
    found = memory.find("work/Tea.md")
    assert (found.project, found.path) == ("work", "Tea.md")


def test_a_note_is_edited_and_not_the_one_with_its_place_for_an_alias(
    memory: MemorySession,
) -> None:
    memory.write(Draft("The note.\n", project="notes", title="Tea"))
    plant(memory, "aliases: [notes/Tea.md]")
    trap = memory.engine.layout.root / "notes" / "trap.md"
    before = trap.read_bytes()
    memory.edit("notes/Tea.md", Append("More.\n"))
    assert trap.read_bytes() == before


def test_an_address_with_a_scheme_erases_the_note_at_its_place(memory: MemorySession) -> None:
    memory.write(Draft("The note.\n", project="notes", title="Tea"))
    plant(memory, "aliases: [notes/Tea.md]")
    erased = memory.erase("memory://notes/Tea.md", dry_run=True)
    assert erased.notes == ("notes/Tea.md",)


def test_a_place_and_a_path_below_a_folder_called_as_the_project_are_refused(
    memory: MemorySession,
) -> None:
    memory.write(Draft("One.\n", project="notes", title="Tea"))
    memory.write(Draft("Two.\n", project="notes", folder="notes", title="Tea"))
    with pytest.raises(errors.Ambiguous) as raised:
        memory.find("notes/Tea.md")
    for name in raised.value.candidates:
        assert memory.find(name).path.endswith("Tea.md")


GONE = "notes/plans/Tea.md"


def check_names_nothing(memory: MemorySession, name: str) -> None:
    """Check that a deletion by this name is refused."""
    with pytest.raises(errors.NotFound):
        memory.delete(name)


@pytest.mark.parametrize("name", [GONE, "plans/Tea.md", "notes: plans/Tea.md"])
@pytest.mark.parametrize(
    "header", ["title: '{}'", "aliases: ['{}']", "permalink: '{}'", "id: '{}'"]
)
def test_the_place_of_a_note_that_is_gone_deletes_no_note_that_is_called_so(
    memory: MemorySession, header: str, name: str
) -> None:
    plant(memory, header.format(name))
    with pytest.raises(errors.NotFound):
        memory.delete(name)
    assert memory.find("trap.md").path == "trap.md"


@pytest.mark.parametrize("path", ["old/plans/Tea.md", "old/notes/plans/Tea.md"])
@pytest.mark.parametrize("name", [GONE, "plans/Tea.md", "Tea.md", "plans/Tea"])
def test_a_deletion_that_is_repeated_deletes_no_file_whose_path_ends_so(
    memory: MemorySession, name: str, path: str
) -> None:
    file = put_note(memory.engine.layout.root, path, "Another note.\n")
    with pytest.raises(errors.NotFound):
        memory.delete(name)
    assert file.exists()


def test_a_place_in_a_project_is_no_path_in_a_folder_of_another_that_is_called_so(
    memory: MemorySession, tmp_path: Path
) -> None:
    other_note = put_note(tmp_path, GONE, "Another note.\n")
    memory.add_project("work", str(tmp_path / "notes"))
    check_names_nothing(memory, GONE)
    assert other_note.exists()


def test_the_refusal_names_the_note_that_is_called_so_by_an_address_of_its_own(
    memory: MemorySession,
) -> None:
    plant(memory, f"permalink: {GONE}")
    with pytest.raises(errors.NotFound) as raised:
        memory.delete(GONE)
    assert raised.value.suggestions == ["trap.md"]


def test_an_edit_by_a_place_that_is_gone_edits_no_note_that_is_called_so(
    memory: MemorySession,
) -> None:
    plant(memory, f"aliases: [{GONE}]")
    with pytest.raises(errors.NotFound):
        memory.edit(GONE, Append("More.\n"))


def test_erasing_a_place_erases_its_past_and_not_the_note_that_is_called_so(
    memory: MemorySession,
) -> None:
    memory.write(Draft("The note.\n", project="notes", folder="plans", title="Tea"))
    memory.delete(GONE)
    plant(memory, f"aliases: [{GONE}]")
    assert memory.erase(GONE, dry_run=True).notes == (GONE,)


def test_a_file_of_the_memory_tool_that_is_gone_is_no_note_that_is_called_so(
    memory: MemorySession,
) -> None:
    plant(memory, "title: memories/rules.txt")
    with pytest.raises(errors.NotFound):
        memory.delete("memories/rules.txt")


def test_an_entry_that_is_gone_is_no_note_that_is_called_so(terminal: Any) -> None:
    put_note(terminal.home, "trap.md", "---\ntitle: kv/default/tea\n---\nA note.\n")
    assert terminal("delete", "kv/default/tea").status != 0
    assert "notes/trap.md" in texts(terminal.home)


def test_a_place_reads_the_note_that_is_called_so(memory: MemorySession) -> None:
    plant(memory, f"aliases: [{GONE}]")
    assert memory.read(GONE).path == "trap.md"
