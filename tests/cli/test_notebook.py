"""The command as a notebook: today, tidy, older texts and what changed in them."""

from __future__ import annotations

import json
from typing import Any


def test_alone_it_tells_of_today_in_ten_lines_and_five_commands(terminal: Any) -> None:
    output = terminal.ok()
    assert output == terminal.ok("help")
    terminal.write("prefers dark mode", "--category", "preferences")
    call = {"title": "Auth", "folder": "", "content": "JWT"}
    terminal.ok("call", "write_note", json.dumps(call), "--agent", "claude")
    today, _, steps = terminal.ok().partition("\n\n")
    lines = today.splitlines()
    assert len(lines) <= 10
    assert lines[0].startswith("2 notes in ")
    assert lines[1].split() == ["new", "2", "by", "claude", "1,", "owner", "1"]
    assert "Auth: JWT" in lines[2]
    assert [line.split()[0] for line in lines[4:]] == ["changed", "due", "questions"]
    assert steps.count("\n  memory ") == 5
    assert steps.endswith("All commands: memory help\n")


def test_the_words_are_explained_in_few_lines(terminal: Any) -> None:
    text = terminal.ok("help", "words")
    assert len(text.splitlines()) < 40
    for word in ("note", "project", "home", "agent", "change"):
        assert f"\n  {word} " in text


SURE = "we decided to use postgres for the shop"
UNSURE = "these are unquoted words"


def category_of(terminal: Any, memory_id: str) -> str:
    return terminal("read", memory_id, "--json").json["memory"]["category"]


def test_tidy_as_a_dry_run_says_what_it_would_sort_and_sorts_nothing(terminal: Any) -> None:
    memory_id = terminal.write(SURE)
    planned = terminal.ok("tidy", "--dry-run")
    assert planned.startswith(f"would classify {memory_id[:8]} decisions")
    assert category_of(terminal, memory_id) == "inbox"


def test_tidy_sorts_what_is_sure_and_says_how_many_questions_are_left(terminal: Any) -> None:
    memory_id = terminal.write(SURE)
    terminal.write(UNSURE)
    output = terminal.ok("tidy")
    assert output.startswith(f"organized {memory_id[:8]} decisions")
    assert output.endswith("1 question for you: memory review\n")


def test_tidy_has_nothing_to_do_a_second_time(terminal: Any) -> None:
    terminal.write(SURE)
    terminal.ok("tidy")
    assert terminal.ok("tidy").startswith("Nothing to do.\n")


def test_memory_that_tidy_is_not_sure_of_stays_in_the_inbox_and_is_asked_about(
    terminal: Any,
) -> None:
    memory_id = terminal.write(UNSURE)
    terminal.ok("tidy")
    terminal.ok("dream", "--level", "3")
    assert category_of(terminal, memory_id) == "inbox"
    document = terminal("review", "--json").json
    (question,) = document["items"]
    assert question["refs"] == [memory_id]


def test_of_several_that_say_the_same_each_is_asked_about_once(terminal: Any) -> None:
    for text in (
        "Torvald keeps the heron gate code of the archive",
        "The heron gate code of the archive Torvald keeps",
        "Torvald keeps the archive heron gate code",
    ):
        terminal.write(text, "--category", "knowledge")
    refs = []
    for item in terminal("review", "--kind", "merge", "--json").json["items"]:
        refs.extend(item["refs"])
    assert len(refs) == len(set(refs))


def test_older_texts_are_shown_by_change_and_by_time(terminal: Any) -> None:
    create = {"command": "create", "path": "/memories/shop.md", "file_text": "run make deploy\n"}
    change = {
        "command": "str_replace",
        "path": "/memories/shop.md",
        "old_str": "deploy",
        "new_str": "release",
    }
    for arguments in (create, change):
        terminal.ok("call", "memory", json.dumps(arguments), "--agent", "claude")
    assert terminal.ok("show", "memories/shop", "--at", "1") == "run make deploy\n"
    assert terminal.ok("show", "memories/shop", "--at", "2") == "run make release\n"
    assert terminal("show", "memories/shop", "--at", "2001-01-01").status == 1
    difference = "  ~ run make [-deploy-]{+release+}\n"
    assert terminal.ok("diff", "memories/shop").endswith(difference)
    assert terminal.ok("log", "-p", "-n", "1").endswith(difference)
    assert terminal.ok("diff", "shop", "1").endswith("  + run make deploy\n")
    row = terminal("diff", "memories/shop.md", "--json").json
    assert (row["change"], row["after"]) == (2, "run make release\n")
    assert terminal("diff", "memories/shop", "9").error == "#9 is no change of memories/shop"


def test_a_patch_shows_what_a_person_changed_and_no_bookkeeping(terminal: Any) -> None:
    written = terminal.ok("write", "likes tea", "--category", "preferences", "--tags", "home")
    note = written.split()[-1]
    created = ["+ category: preferences", "+ tags: home", "+ likes tea"]
    assert patch_of_last_change(terminal) == created
    terminal.ok("tag", note, "--add", "drink")
    assert patch_of_last_change(terminal) == ["~ tags: home{+, drink+}"]


def test_a_patch_of_a_pin_and_of_its_end_is_one_line(terminal: Any) -> None:
    note = terminal.write("likes tea")
    terminal.ok("pin", note)
    assert patch_of_last_change(terminal) == ["+ pinned: yes"]
    terminal.ok("unpin", note)
    assert patch_of_last_change(terminal) == ["- pinned: yes"]


def test_a_note_that_moves_is_no_removed_and_no_new_text(terminal: Any) -> None:
    note = terminal.ok("write", "likes tea").split()[-1]
    terminal.ok("upgrade", note, "--category", "people")
    category, expiry = patch_of_last_change(terminal)

    assert category == "~ category: [-inbox-]{+people+}"
    assert expiry.startswith("- expires_at: ")


def patch_of_last_change(terminal: Any) -> list[str]:
    """The lines below the newest change in `memory log -p`, without their indent."""
    return [line.strip() for line in terminal.ok("log", "-p", "-n", "1").splitlines()[1:]]
