"""log, undo, restore (contract 001, 16)."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest

from editing import replace_in
from memoranda.cli.history_commands import _why_no_patch
from memoranda.cli.older_texts import is_number
from memoranda.engine.history.verbs import Revision
from memoranda.ledger.change import Touched
from memoranda.sources.step import StepKind

KEYS = ["change", "time", "verb", "project", "path", "old_hash", "new_hash", "agent", "face"]


def test_an_entry_has_the_hashes_of_its_file(terminal: Any) -> None:
    a = terminal.write("alpha")
    terminal.ok("tag", a, "--add", "x")
    tagged, written = terminal("log", "--json").json["entries"]

    assert list(tagged) == KEYS
    assert list(written) == KEYS
    assert written["old_hash"] is None
    assert written["agent"] is None
    assert written["face"] == "cli"
    assert tagged["old_hash"] == written["new_hash"] != tagged["new_hash"]
    assert tagged["change"] == 2
    assert tagged["verb"] == "tag"
    assert tagged["project"] == "categories"


def test_the_log_is_narrowed_by_note_agent_time_and_number(terminal: Any) -> None:
    a = terminal.write("alpha")
    b = terminal.write("beta")
    terminal.ok("--agent", "claude", "tag", a, "--add", "x")

    def numbers(*argv: str) -> list[int]:
        return [entry["change"] for entry in terminal("log", *argv, "--json").json["entries"]]

    assert numbers() == [3, 2, 1]
    assert numbers(a) == [3, 1]
    assert numbers(a[:8]) == [3, 1]
    assert numbers(f"categories/inbox/beta-{b[:8]}.md") == [2]
    assert numbers("--agent", "claude") == [3]
    assert numbers("--limit", "1") == [3]
    assert numbers("--limit", "0") == [3, 2, 1]
    assert numbers("--since", "yesterday") == [3, 2, 1]
    assert numbers("--since", "2099-01-01") == []
    terminal.ok("delete", b)
    assert numbers(b) == [4, 2]
    assert terminal("log", "--since", "soonish").error == 'invalid --since date: "soonish"'
    assert terminal("log", "nobody").error == "memory not found: nobody"


def test_before_the_command_the_agent_is_who_looks(terminal: Any) -> None:
    terminal.write("private", "--scope", "agent:claude")
    assert terminal("--agent", "copilot", "log").out == "No changes found.\n"
    assert terminal("log", "--agent", "copilot").out == "No changes found.\n"
    assert terminal("--agent", "claude", "log").out != "No changes found.\n"


@pytest.mark.parametrize("taken", ["other.md", "OTHER.md"])
def test_a_text_is_not_restored_to_a_path_like_that_of_another_note(
    terminal: Any, taken: str
) -> None:
    notes = terminal.home / "notes"
    notes.mkdir(parents=True)
    (notes / "Plan.md").write_text("plan\n")
    (notes / taken).write_text("other\n")
    terminal.ok("delete", "notes/Plan.md")
    ran = terminal("restore", "notes/Plan.md", "--to", "notes/Other.md")
    assert ran.status == 1
    assert f"notes/{taken}" in ran.error
    names = sorted(file.name for file in notes.iterdir())
    assert names == [taken]


def test_an_older_text_is_found_by_change_or_time(terminal: Any) -> None:
    def store(text: str) -> None:
        note = {"title": "Plan", "content": text, "overwrite": True}
        terminal.ok("call", "write_note", json.dumps(note))

    store("first")
    store("second")
    written = terminal("log", "--json").json["entries"][1]["time"]
    store("third")
    file = terminal.home / "notes" / "Plan.md"
    terminal.ok("restore", "notes/Plan.md", "--change", "2", "--to", "notes/Old.md")
    assert file.with_name("Old.md").read_text().endswith("first\n")
    terminal.ok("restore", "notes/Plan.md", "--at", written)
    assert file.read_text().endswith("first\n")
    assert terminal("restore", "notes/Plan.md", "--to", "notes/Old.md").status == 1
    assert terminal("restore", "notes/Plan.md", "--at", "once").error == 'invalid --at time: "once"'
    assert terminal("restore", "notes/None.md").error == "no older text of notes/None.md is kept"
    for ref in ("nobody", "nobody/x.md"):
        assert terminal("restore", ref).error == f"memory not found: {ref}"
    ran = terminal("restore", "notes/Plan.md", "--change", "99")
    assert ran.error == "#99 replaced or deleted no text of notes/Plan.md"
    assert "memory log notes/Plan.md" in ran.err


def test_a_memory_restored_beside_the_one_that_has_its_id_gets_an_id_of_its_own(
    terminal: Any,
) -> None:
    a = terminal.write("green tea", "--category", "skills")
    terminal.ok("tag", a, "--add", "hot")
    path = terminal("log", a, "--json").json["entries"][0]["path"]
    terminal.ok("restore", f"categories/{path}", "--to", "categories/people/older.md")
    memories = terminal("list", "--json").json["memories"]
    contents = {memory["content"] for memory in memories}
    assert contents == {"green tea"}
    ids = {memory["id"] for memory in memories}
    assert len(ids) == 2
    document = terminal("read", a, "--json").json
    assert document["memory"]["tags"] == ["hot"]
    (copy,) = [memory for memory in memories if memory["id"] != a]
    assert copy["tags"] == []
    assert copy["path"] == "categories/people/older.md"
    assert "duplicate_id" not in terminal.ok("doctor")


def test_a_memory_restored_into_another_project_gets_an_id_of_its_own(terminal: Any) -> None:
    tea = terminal.write("green tea", "--category", "skills")
    terminal.ok("tag", tea, "--add", "hot")
    terminal.ok("restore", tea, "--to", "notes/older.md")
    assert "duplicate_id" not in terminal.ok("doctor")


def test_a_note_of_a_person_keeps_its_own_kind_of_id_when_it_is_restored(terminal: Any) -> None:
    for name in ("A.md", "B.md"):
        file = terminal.home / "notes" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("---\nid: recipe\n---\ntea\n", encoding="utf-8")
    terminal.ok("delete", "notes/A.md")
    terminal.ok("restore", "notes/A.md")
    assert (
        (terminal.home / "notes/A.md").read_text(encoding="utf-8").startswith("---\nid: recipe\n")
    )


def test_what_an_upgrade_moved_is_restored_at_its_old_place_as_another_memory(
    terminal: Any,
) -> None:
    a = terminal.write("green tea")
    old = terminal("read", a, "--json").json["memory"]["path"]
    terminal.ok("upgrade", a, "--category", "skills")
    terminal.ok("restore", old)
    document = terminal("read", a, "--json").json
    assert document["memory"]["category"] == "skills"
    document = terminal("list", "--json").json
    assert document["total"] == 2
    terminal.ok("delete", a)
    terminal.ok("restore", a)
    document = terminal("read", a, "--json").json
    assert document["memory"]["category"] == "skills"


def test_erase_asks_on_a_terminal_and_refuses_elsewhere(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = terminal.write("the plan of zq4711vault")
    ran = terminal("erase", a)
    assert (ran.status, ran.error) == (
        1,
        "erase cannot be undone: give --yes, or run it on a terminal to be asked",
    )
    assert terminal("erase").error == "erase needs a REF, --agent, --project or --source"
    assert terminal("--agent", "bob", "erase", a, "--yes").error.startswith(
        "Only the owner can erase"
    )
    assert terminal("erase", "zzzz", "--yes").status == 1
    place = f"categories/inbox/the-plan-of-zq4711vault-{a[:8]}.md"
    assert terminal.ok("erase", a[:8], "--dry-run") == f"would erase {place}\n"

    class Typed(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("io.TextIOWrapper", Typed)
    monkeypatch.setenv("NO_COLOR", "1")
    ran = terminal("erase", a, stdin="n\n")
    assert (ran.status, ran.err) == (
        1,
        f"{place}\nErase 1 for good, with every older version? [y/N] Error: nothing was erased\n",
    )
    assert terminal("erase", a, stdin="y\n").out.startswith(
        f"Erased {place}\nGone with it: 1 in the log"
    )


@pytest.fixture
def quoted(terminal: Any) -> tuple[str, str]:
    """The id of a tagged memory, and the path of another that quotes it."""
    a = terminal.write("the plan of zq4711vault")
    terminal.ok("tag", a, "--add", "x")
    b = terminal.write("he quoted zq4711vault")
    return a, f"categories/inbox/he-quoted-zq4711vault-{b[:8]}.md"


def test_erase_says_what_it_searched_and_what_stays(terminal: Any, quoted: tuple[str, str]) -> None:
    a, quoting = quoted
    lines = terminal.ok("erase", a, "--yes").splitlines()
    assert lines[1] == "Gone with it: 2 in the log, 1 in the history"
    assert re.fullmatch(r"Searched \d+ files, [\d,]+ bytes: nothing of it is left", lines[2])
    assert lines[3:] == [f"named by {quoting}, which stays as it is"]


def test_the_log_names_what_was_erased_only_by_its_project(
    terminal: Any, quoted: tuple[str, str]
) -> None:
    a, quoting = quoted
    terminal.ok("erase", a, "--yes")
    rows = []
    for row in terminal.ok("log").splitlines():
        before_text, _, _ = row.partition('  "')
        rows.append(before_text.split()[3:])
    assert rows == [["erase", "owner", "(notes:", "1)"], ["write", "owner", quoting]]


def test_what_was_erased_cannot_be_undone(terminal: Any, quoted: tuple[str, str]) -> None:
    terminal.ok("erase", quoted[0], "--yes")
    assert terminal("undo").error == (
        "cannot undo #5: what was erased is gone for good; memory undo N takes back another change"
    )


def test_erasing_a_project_lists_its_notes_and_that_nothing_is_left(
    terminal: Any, quoted: tuple[str, str]
) -> None:
    a, quoting = quoted
    terminal.ok("erase", a, "--yes")
    erased = terminal("erase", "--project", "categories", "--yes", "--json").json
    assert erased["notes"] == [quoting]
    assert erased["remains"] == []
    assert erased["mentions"] == []


def test_erasing_an_agent_that_wrote_nothing_erases_nothing(terminal: Any) -> None:
    terminal.write("x")
    output = terminal.ok("erase", "--agent", "bob", "--yes")
    assert output == "Nothing to erase.\n"


def test_what_was_just_restored_is_not_restored_further_back_without_a_word(terminal: Any) -> None:
    a = terminal.write("alpha")
    b = terminal.write("beta")
    terminal.ok("link", a, b)
    path = terminal("read", a, "--json").json["memory"]["path"]
    terminal.ok("delete", a)
    terminal.ok("restore", a)
    text = (terminal.home / path).read_text()
    assert b in text
    refusal = f"{path} was restored already (#5); --change N or --at TIME names an older text (memory log {a}), "
    ran = terminal("restore", a)
    assert ran.error == f"{refusal}memory undo takes it back"
    assert (terminal.home / path).read_text() == text
    terminal.ok("restore", a, "--change", "3")
    assert b not in (terminal.home / path).read_text()
    (terminal.home / path).write_text(text + "by hand\n")
    # Nobody restored what is there now
    terminal.ok("restore", a)


def test_undo_and_restore_keep_the_count_of_reads(terminal: Any) -> None:
    a = terminal.write("alpha")
    terminal.ok("tag", a, "--add", "x")

    def shown() -> tuple[int, list[str]]:
        memory = terminal("list", "--json").json["memories"][0]
        return memory["access_count"], memory["tags"]

    restore = ["restore", a, "--change", "2"]
    for back, tags in ((["undo"], []), (["undo", "4"], ["x"]), (restore, [])):
        if back == ["undo"] or "restore" in back:
            terminal.ok("read", a)
            assert terminal("serve", "--once").err == "[fold] processed 1 items\n"
        before, _ = shown()
        terminal.ok(*back)
        assert shown() == (before, tags)
    assert before == 2


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("a\n", "a\n", "the same text"),
        ("a\n", "a\r\n\r\n", "line ends"),
        ("---\nversion: 1\n---\na\n", "---\nversion: 2\n---\na\n", "what memoranda notes"),
    ],
)
def test_a_change_without_words_is_said_to_be_what_it_is(
    before: str, after: str, words: str
) -> None:
    unused: Any = None
    touched = Touched(StepKind.PUT, "notes", "a.md")
    assert words in _why_no_patch(Revision(unused, touched, before, after))


def _edit_outside(terminal: Any) -> None:
    """Have an editor replace "noon" in the only note by "one"."""
    entry = terminal("log", "--json").json["entries"][0]
    file = terminal.home / entry["project"] / entry["path"]
    replace_in(file, "noon", "one")


def _lose_index(terminal: Any) -> None:
    """Throw the index away, which alone had the text that an editor has just replaced."""
    for path in (terminal.home / ".memoranda").glob("index*.db*"):
        path.unlink()


def test_a_text_that_an_editor_replaced_is_in_log_and_diff(terminal: Any) -> None:
    a = terminal.write("meet at noon")
    _edit_outside(terminal)
    terminal.ok("tag", a, "--add", "y")
    assert terminal.ok("log", "-p").splitlines()[-1] == "  + meet at noon"
    document = terminal("diff", a, "1", "--json").json
    assert "meet at noon" in document["after"]
    assert document["text_lost"] is False


LOST_TEXT = "(the history does not keep a text of this change)"


@pytest.fixture
def replaced_unseen(terminal: Any) -> str:
    """The id of a memory whose second text was replaced while no index was there."""
    a = terminal.write("meet at noon")
    terminal.ok("tag", a, "--add", "x")
    _edit_outside(terminal)
    _lose_index(terminal)
    terminal.ok("tag", a, "--add", "y")
    return a


def test_a_diff_says_that_a_text_replaced_unseen_is_lost(
    terminal: Any, replaced_unseen: str
) -> None:
    assert terminal.ok("diff", replaced_unseen, "2").splitlines()[1:] == [f"  {LOST_TEXT}"]
    output = terminal.ok("diff", replaced_unseen, "3")
    assert LOST_TEXT not in output


def test_the_log_says_once_that_a_text_replaced_unseen_is_lost(
    terminal: Any, replaced_unseen: str
) -> None:
    output = terminal.ok("log", "-p")
    assert output.count(LOST_TEXT) == 1


def test_a_diff_in_json_says_that_a_text_replaced_unseen_is_lost(
    terminal: Any, replaced_unseen: str
) -> None:
    a = replaced_unseen
    document = terminal("diff", a, "2", "--json").json
    assert document["after"] is None
    assert document["text_lost"] is True
    document = terminal("diff", a, "3", "--json").json
    assert document["text_lost"] is False


def test_a_new_notes_text_that_was_replaced_unseen_is_said_to_be_lost(terminal: Any) -> None:
    a = terminal.write("meet at noon")
    _edit_outside(terminal)
    _lose_index(terminal)
    terminal.ok("tag", a, "--add", "y")
    lost_text = "(the history does not keep a text of this change)"

    assert terminal.ok("log", "-p").splitlines()[-1] == f"  {lost_text}"
    assert terminal.ok("diff", a, "1").splitlines()[1:] == [f"  {lost_text}"]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("7", True),
        ("#12345678", True),
        ("123456789", True),
        # Changes of files used in place have numbers from a billion on.
        ("#1000000012", True),
        ("1" * 11, False),
        ("2026-11-29", False),
        ("20261129T1200", False),
    ],
)
def test_a_number_of_any_change_is_taken_for_a_number(text: str, is_one: bool) -> None:
    assert is_number(text) is is_one


def _call(terminal: Any, tool: str, **arguments: Any) -> None:
    terminal.ok("call", tool, json.dumps(arguments))


@pytest.fixture
def moved(terminal: Any) -> Any:
    """The command, in a home where `notes/a/Plan.md` was moved to `notes/b/Plan.md`."""
    # Without a permalink, the former path does not name the note at its new place.
    folder = terminal.home / "notes" / "a"
    folder.mkdir(parents=True)
    (folder / "Plan.md").write_text("alpha\n")
    _call(
        terminal,
        "edit_note",
        identifier="a/Plan.md",
        operation="append",
        content="more",
        project="notes",
    )
    _call(
        terminal,
        "move_note",
        identifier="a/Plan.md",
        destination_path="b/Plan.md",
        project="notes",
    )
    return terminal


def test_a_place_has_no_text_after_the_change_that_moved_its_note_away(moved: Any) -> None:
    number = str(moved("log", "--json").json["entries"][0]["change"])
    shown = moved("show", "notes/a/Plan.md", "--at", number)
    assert shown.status == 1
    assert shown.error == f"there was no text of notes/a/Plan.md at {number}"
    assert "alpha" not in shown.out


def test_the_new_place_has_the_text_after_the_change_that_moved_a_note_there(moved: Any) -> None:
    number = str(moved("log", "--json").json["entries"][0]["change"])
    assert "alpha" in moved.ok("show", "notes/b/Plan.md", "--at", number)


def test_the_former_place_has_the_text_before_the_change_that_moved_it_away(moved: Any) -> None:
    number = moved("log", "--json").json["entries"][0]["change"] - 1
    # The history keeps a text when a later change replaces it.
    _call(
        moved,
        "edit_note",
        identifier="b/Plan.md",
        operation="append",
        content="most",
        project="notes",
    )
    assert "alpha" in moved.ok("show", "notes/a/Plan.md", "--at", str(number))


def test_a_place_has_no_text_after_the_change_that_deleted_its_note(moved: Any) -> None:
    moved.ok("delete", "notes/b/Plan.md")
    number = str(moved("log", "--json").json["entries"][0]["change"])
    shown = moved("show", "notes/b/Plan.md", "--at", number)
    assert shown.error == f"there was no text of notes/b/Plan.md at {number}"
