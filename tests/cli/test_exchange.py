"""`export` and `import` at the command line (contract 001, 12)."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from editing import replace_in
from transfer.conftest import files

ONE = "550e8400-e29b-41d4-a716-446655440000"


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_export_prints_lines_and_nothing_else_with_json_too(terminal):
    terminal.write("one", "--category", "soul")
    terminal.write("中\u2028文")
    plain = terminal.ok("export")

    contents = [memory["content"] for memory in map(json.loads, plain.split("\n")[:-1])]
    assert contents == [
        "one",
        "中\u2028文",
    ]
    assert terminal.ok("export", "--json") == plain == terminal.ok("export", "--output", "-")


def test_export_to_a_file_is_private_and_says_how_many(terminal):
    terminal.write("one")
    place = terminal.folder / "e.jsonl"
    output = terminal.ok("export", "--output", str(place))
    assert output == f"Exported 1 memories to {place}\n"
    mode = stat.S_IMODE(place.stat().st_mode)
    assert mode == 0o600


def test_export_to_a_file_writes_what_it_else_prints(terminal):
    terminal.write("one")
    place = terminal.folder / "e.jsonl"
    terminal.ok("export", "--output", str(place))
    text = place.read_text()
    assert text == terminal.ok("export")


def test_export_to_a_file_in_json_names_the_file_and_the_number(terminal):
    terminal.write("one")
    place = terminal.folder / "e.jsonl"
    ran = terminal("export", "--output", str(place), "--json")
    assert ran.json == {"schema": "export/1", "exported": 1, "file": str(place)}


def test_export_keeps_mode_and_link_of_the_file_it_replaces(terminal):
    terminal.write("one")
    place = terminal.folder / "e.jsonl"
    link = terminal.folder / "link"
    place.write_text("older")
    place.chmod(0o640)
    link.symlink_to(place)
    terminal.ok("export", "--output", str(link))
    assert link.is_symlink()
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    assert len(records(place.read_text())) == 1


def test_export_into_no_folder_fails_and_leaves_nothing(terminal):
    terminal.write("one")
    place = terminal.folder / "none" / "e.jsonl"
    ran = terminal("export", "--output", str(place))
    assert ran.status == 1
    assert ran.error == f"cannot write {place}: no such file or directory"
    ran = terminal("export", "--output", str(terminal.folder))
    assert ran.status == 1
    names = [path.name for path in terminal.folder.iterdir()]
    assert names == ["user"]


def test_without_memories_nothing_is_exported_and_an_older_file_stays(terminal):
    place = terminal.folder / "e.jsonl"
    place.write_text("a backup")
    export = ("export", "--output", str(place))
    ran = terminal(*export)
    assert ran.status == 0
    assert ran.out == ""
    assert ran.err == "No memories to export.\n"
    document = terminal(*export, "--json").json
    assert document == {"schema": "export/1", "exported": 0, "file": None}
    assert place.read_text() == "a backup"


def test_export_takes_one_category_or_scope(terminal):
    terminal.write("one", "--category", "soul")
    terminal.write("two", "--scope", "agent:claude")
    assert [
        record["content"] for record in records(terminal.ok("export", "--category", "soul"))
    ] == ["one"]
    assert [
        record["content"] for record in records(terminal.ok("export", "--scope", "agent:claude"))
    ] == ["two"]
    assert terminal("export", "--category", "nope").error == 'invalid category "nope"'
    assert terminal("export", "--scope", "nope").error == 'invalid scope "nope"'


def test_a_file_that_cannot_be_read_is_mentioned(terminal):
    terminal.write("one")
    broken = terminal.home / "categories" / "soul" / "x.md"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"caf\xe9\n")
    ran = terminal("export")
    assert len(records(ran.out)) == 1
    assert ran.err == "warning: 1 unreadable file, run memory doctor\n"


@pytest.mark.promise("001-17.15")
def test_a_home_is_carried_over_by_a_file_and_by_a_pipe(terminal):
    terminal.write("remember", "--category", "soul", "--tags", "a,b")
    terminal.write("and this", "--scope", "agent:claude")
    text = terminal.ok("export")
    place = terminal.folder / "e.jsonl"
    place.write_text(text)
    for number, argv in enumerate((["--input", str(place)], [], ["--input", "-"])):
        home = ["--home", str(terminal.folder / f"home{number}")]
        assert terminal.ok(*home, "import", *argv, stdin=text) == "Imported 2 memories\n"
        assert terminal.ok(*home, "export") == text
        ran = terminal(*home, "import", *argv, "--json", stdin=text)
        assert ran.json == {
            "schema": "import/1",
            "imported": 0,
            "updated": 0,
            "unchanged": 2,
            "skipped": 0,
        }


def test_an_input_that_can_be_read_but_once_is_imported(terminal):
    pipe = terminal.folder / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(
        target=pipe.write_bytes, args=[b'{"content":"through a pipe"}\n'], daemon=True
    )
    writing.start()
    assert terminal.ok("import", "--input", str(pipe)) == "Imported 1 memories\n"
    writing.join(10)
    assert list((terminal.home / ".memoranda").glob("tmp*")) == []


@pytest.mark.promise("001-17.15")
def test_a_bad_record_imports_nothing_unless_it_is_left_out(terminal):
    text = '{"content":"ok"}\n{"content":5}\n{"content":"too"}\n'
    ran = terminal("import", stdin=text)
    assert ran.status == 1
    assert ran.out == ""
    assert ran.err == "Error: malformed JSON at record 2: content must be a text\n"
    assert files(terminal.home) == {}
    ran = terminal("import", "--skip-bad", stdin=text)
    assert ran.status == 0
    assert ran.out == "Imported 2 memories\n"
    assert ran.err == "warning: malformed JSON at record 2: content must be a text\n"


def test_a_dry_run_prints_the_plan_and_changes_nothing(terminal):
    text = json.dumps({"id": ONE, "content": "# Title\nmore"}) + '\n{"content":"no id"}\n'
    output = terminal.ok("import", "--dry-run", stdin=text)
    assert (
        output == "would import 550e8400 # Title\nwould import new no id\nWould import 2 memories\n"
    )
    assert terminal("import", "--dry-run", "--json", stdin=text).json["imported"] == 2
    assert files(terminal.home) == {}


@pytest.mark.promise("001-17.13")
def test_an_agent_cannot_import_another_ones_memories(terminal):
    ran = terminal("import", "--agent", "claude", stdin='{"content":"a","scope":"agent:codex"}\n')
    assert (ran.status, ran.error) == (1, 'malformed JSON at record 1: invalid scope "agent:codex"')


@pytest.mark.promise("001-17.8")
@pytest.mark.parametrize("name", ["../../x", "a/../../b", "/abs", "..", "x\\y", "a\x00b", "~/.."])
def test_traversal_strings_in_a_record_are_refused(terminal, name):
    for key in ("id", "category", "scope"):
        ran = terminal("import", stdin=json.dumps({"content": "a", key: name}))
        assert ran.status == 1, (key, name)
        assert "malformed JSON at record 1: invalid" in ran.err
    assert files(terminal.folder) == {}


def test_what_is_said_about_an_input_that_cannot_be_opened(terminal):
    assert terminal("import", "--input", "nofile").error == "open input file: nofile: no such file"
    folder = str(terminal.folder)
    assert (
        terminal("import", "--input", folder).error == f"open input file: {folder}: it is a folder"
    )


def lay(root, texts):
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.fixture
def stores(terminal):
    """One store of each kind: what is said of it, and what a note of it is found by afterwards."""
    root = terminal.folder / "stores"
    graph = '{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea"]}\nx\n'
    lay(
        root,
        {
            "memory.jsonl": graph,
            "am/default.json": '[{"key": "user", "value": "Alice likes tea", "created_at": "2026-05-07T10:00:00Z"}]',
            "repo/.git/HEAD": "ref: refs/heads/main\n",
            "repo/memory-bank/activeContext.md": "# Context\nabout tea\n",
            "vault/sub/note.md": "# Note\ntea\n",
        },
    )
    return {
        ("graph-jsonl", str(root / "memory.jsonl")): (
            "1 entities, 0 relations (1 lines skipped)",
            "graph/Ada.md",
        ),
        ("agent-memory", str(root / "am")): (
            "1 entries (0 were there, 0 skipped)",
            "kv/default/user.md",
        ),
        ("memory-bank", str(root / "repo" / "memory-bank")): (
            "1 files (0 were there, 0 skipped)",
            "banks/code/repo/activeContext.md",
        ),
        ("basic-memory", str(root / "vault")): (
            "1 files (0 were there, 0 skipped)",
            "notes/sub/note.md",
        ),
    }


def test_each_kind_of_store_is_moved_in_and_moving_it_in_twice_changes_nothing(terminal, stores):
    for argv, (summary, path) in stores.items():
        planned = terminal("import", "--from", *argv, "--dry-run")
        assert planned.out.splitlines()[-1] == f"Would import {summary}"
        assert planned.out.startswith("would import ")
        assert not (terminal.home / path).exists()
        ran = terminal("import", "--from", *argv)
        assert (ran.status, ran.out) == (0, f"Imported {summary}\n")
        assert (terminal.home / path).exists()
        before = files(terminal.home)
        again = terminal("import", "--from", *argv, "--json").json
        skipped = int(argv[0] == "graph-jsonl")
        assert again == {
            "schema": "import/1",
            "imported": 0,
            "updated": 0,
            "unchanged": 1,
            "skipped": skipped,
        }
        assert files(terminal.home) == before
        terminal.ok("undo")
        assert not (terminal.home / path).exists()
        terminal("import", "--from", *argv)
    for name, query in (("search_notes", "tea"), ("memory_open_nodes", "Ada")):
        if name == "search_notes":
            arguments = {"query": query}
        else:
            arguments = {"names": [query]}
        assert "likes tea" in terminal.ok("call", name, json.dumps(arguments))


@pytest.mark.promise("002-14.30")
def test_a_graph_is_the_same_by_either_command_and_from_stdin(terminal, stores):
    (kind, place), (summary, _) = next(iter(stores.items()))
    other_home = ["--home", str(terminal.folder / "other")]
    ran = terminal("graph", "import", place)
    assert ran.out == f"Imported {summary}\n"
    by_stdin = terminal(*other_home, "import", "--from", kind, "-", stdin=Path(place).read_bytes())
    assert by_stdin.out == ran.out
    assert by_stdin.err == ran.err
    output = terminal.ok("graph", "export")
    assert output == terminal.ok(*other_home, "graph", "export")


def test_a_line_that_is_no_utf8_stays_behind_alone_from_stdin_too(terminal):
    lines = b'{"type": "entity", "name": "Ada", "entityType": "x", "observations": []}\n"\xff"\n'
    (file := terminal.folder / "g.jsonl").write_bytes(lines)
    ran = terminal("graph", "import", "-", stdin=lines)

    assert ran.status == 0
    assert ran.out == "Imported 1 entities, 0 relations (1 lines skipped)\n"
    assert ran.err.startswith("line 2: ")
    assert terminal("graph", "import", str(file)).err == ran.err


def test_unknown_keys_of_an_entity_survive_import_and_export(terminal):
    unknown_keys = {
        "createdAt": "2026-01-02T03:04:05Z",
        "rank": 3,
        "id": "e1",
        "scope": "team",
        "labels": ["a", "2", 2],
        "shares": {"one": 0.5, "two": "0.5"},
        "version": "1.10",
        "is": True,
    }
    line = json.dumps(
        {"type": "entity", "name": "Ada", "entityType": "x", "observations": ["o"]} | unknown_keys
    )
    (file := terminal.folder / "g.jsonl").write_text(line + "\n")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MEMORY_FILE_PATH", str(file))
        assert json.loads(terminal.ok("graph", "export")) == json.loads(line)
    terminal.ok("graph", "import", str(file))
    exported = terminal.ok("graph", "export")
    assert json.loads(exported) == json.loads(line)
    note = next((terminal.home / "graph").iterdir())
    # By hand; no number of JSON is written so
    replace_in(note, "rank: 3", "rank: 3.10")
    assert json.loads(terminal.ok("graph", "export"))["rank"] == "3.10"
    assert "Nothing new" in terminal("graph", "import", "-", stdin=exported.encode()).out


def test_a_vault_goes_into_the_project_that_is_named(terminal, stores):
    terminal.ok("project", "add", "work", str(terminal.folder / "work"))
    vault = next(argv for argv in stores if argv[0] == "basic-memory")
    terminal.ok("import", "--from", *vault, "--project", "work")

    text = (terminal.folder / "work" / "sub" / "note.md").read_text()
    assert text == "# Note\ntea\n"
    assert (
        terminal("import", "--from", *vault, "--project", "none").error == "no such project: none"
    )


def test_what_stays_behind_is_said_on_stderr(terminal, stores):
    vault = next(argv for argv in stores if argv[0] == "basic-memory")
    lay(terminal.home / "notes", {"sub/note.md": "mine"})
    ran = terminal("import", "--from", *vault)

    assert ran.status == 0
    assert ran.out == "Imported 0 files (0 were there, 1 skipped)\n"
    assert ran.err == "skipped notes/sub/note.md: another text is there\n"


def test_a_folder_that_holds_the_memory_home_is_not_moved_into_it(terminal):
    home = terminal.folder / "vault" / "home"
    terminal.ok("--home", str(home), "write", "tea", "--category", "people")
    before = files(home)
    for kind in ("basic-memory", "memory-bank", "agent-memory"):
        for place in (home, home.parent):
            ran = terminal("--home", str(home), "import", "--from", kind, str(place))
            assert ran.status == 1
            assert ran.error == f"{place} holds the memory home itself: {home}"
    assert files(home) == before
    lay(terminal.folder / "user", {"note.md": "beside a hidden home"})
    ran = terminal("import", "--from", "basic-memory", str(terminal.folder / "user"))
    assert ran.status == 0


def test_a_path_of_another_kind_is_named(terminal):
    file = terminal.folder / "file.json"
    file.write_text("{}")
    for kind, expected_kind in (
        ("agent-memory", "a folder of agent-memory"),
        ("memory-bank", "a folder of memory banks"),
        ("basic-memory", "a folder of notes"),
    ):
        assert (
            terminal("import", "--from", kind, str(file)).error
            == f"{file} is a file, not {expected_kind}"
        )
        assert terminal("import", "--from", kind, "nowhere").error == "no such folder: nowhere"
    assert (
        terminal("import", "--from", "graph-jsonl", "nowhere").error
        == "open input file: nowhere: no such file"
    )


def test_memories_of_agents_come_from_the_folder_that_holds_the_home_too(terminal):
    person = terminal.folder / "person"
    lay(person, {".codex/memories/a.md": "Uses tabs."})
    home = str(person / "notes")
    output = terminal.ok("--home", home, "import", "--from", "agent-files", str(person))

    assert output.startswith("Imported 1 ")


def test_second_import_of_lines_says_how_many_were_here(terminal):
    terminal.write("one")
    place = terminal.folder / "e.jsonl"
    terminal.ok("export", "--output", str(place))
    ran = terminal("import", str(place))
    assert ran.out == "Imported 0 memories\n"
    assert ran.err == "1 was here already\n"


@pytest.mark.parametrize(
    "argv",
    [
        ("export", "--output"),
        ("import",),
        ("backup",),
        ("mirror",),
        ("graph", "import"),
        ("import", "--from", "basic-memory"),
    ],
)
def test_empty_path_is_refused_and_not_the_working_folder(terminal, argv):
    terminal.write("one")
    ran = terminal(*argv, "")
    assert ran.status == 1
    assert ran.err == "Error: The path is an empty text. Name a file or a folder.\n"
