"""`import --from` with another kind than the store has: the error names the right command."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transfer.conftest import files

CLAUDE = [{"uuid": "c", "name": "Tea", "chat_messages": [{"sender": "human", "text": "Which?"}]}]
CHATGPT = [
    {
        "conversation_id": "c",
        "title": "Tea",
        "mapping": {
            "q": {
                "parent": None,
                "message": {
                    "author": {"role": "user"},
                    "content": {"content_type": "text", "parts": ["Which tea?"]},
                },
            }
        },
    }
]
ENTITY = {"type": "entity", "name": "Tea", "entityType": "drink", "observations": ["hot"]}
# The kind of a store -> the files in its folder.
STORES: dict[str, dict[str, Any]] = {
    "claude": {"conversations.json": CLAUDE},
    "chatgpt": {"conversations.json": CHATGPT},
    "mem0": {"memories.json": {"results": [{"id": "m", "memory": "Likes tea"}]}},
    "deja-vu": {"notes.jsonl": {"text": "Use Postgres", "session": "s"}},
    "agent-memory": {"default.json": [{"key": "tea", "value": "green"}]},
    "memory-bank": {"projects/tea/readme.md": "# Tea"},
    "basic-memory": {"Tea.md": "# Tea"},
    "graph-jsonl": {"memory.jsonl": ENTITY},
}
KINDS = (*STORES, "mcp-memory-service", "claude-mem", "mirror", "okf", "agent-files")
# These kinds take a folder of Markdown files as theirs.
OF_MARKDOWN = {"basic-memory", "memory-bank", "okf"}


def _lay(folder: Path, kind: str) -> Path:
    """Make a store of this kind. Returns its path, as `import --from` takes it."""
    for name, content in STORES[kind].items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder / "memory.jsonl" if kind == "graph-jsonl" else folder


def _wrong_kinds(kind: str) -> Iterator[str]:
    """Yield the kinds that such a store is not."""
    for wrong_kind in KINDS:
        are_both_of_markdown = kind in OF_MARKDOWN and wrong_kind in OF_MARKDOWN
        if wrong_kind != kind and not are_both_of_markdown:
            yield wrong_kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
def test_a_store_named_as_another_kind_is_refused_with_the_command_that_imports_it(terminal, kind):
    # The blank shows that the command can be pasted into a shell.
    place = _lay(terminal.folder / "old store", kind)
    right_command = f"memory import --from {kind} {shlex.quote(str(place))}"
    unhelpful_errors = {}
    for wrong_kind in _wrong_kinds(kind):
        ran = terminal("import", "--from", wrong_kind, str(place))
        if ran.status != 1 or not ran.error.endswith(f"This imports it: {right_command}"):
            unhelpful_errors[wrong_kind] = (ran.status, ran.out, ran.err)
    assert unhelpful_errors == {}
    assert terminal.ok(*shlex.split(right_command)[1:]).startswith("Imported 1 ")


@pytest.mark.parametrize("kind", ["claude", "graph-jsonl", "basic-memory"])
def test_import_of_another_programs_store_without_from_names_the_command(terminal, kind):
    place = _lay(terminal.folder / "store", kind)
    ran = terminal("import", str(place))
    assert ran.status == 1
    assert ran.error.endswith(f". This imports it: memory import --from {kind} {place}")


def test_a_line_with_the_keys_of_another_program_is_imported_if_it_can_be(terminal):
    place = terminal.folder / "lines.jsonl"
    place.write_text(json.dumps({"id": "550e8400-e29b-41d4-a716-446655440000", "content": "tea"}))
    assert terminal.ok("import", str(place)) == "Imported 1 memories\n"


@pytest.mark.parametrize("kind", ["mem0", "mcp-memory-service", "claude", "graph-jsonl"])
def test_lines_of_memory_export_named_as_a_kind_are_refused(terminal, kind):
    terminal.write("one")
    place = terminal.folder / "lines.jsonl"
    terminal.ok("export", "--output", str(place))
    before = files(terminal.home / "categories")
    ran = terminal("import", "--from", kind, str(place))
    assert ran.status == 1
    assert ran.error.endswith(f"This imports it: memory import {place}")
    assert files(terminal.home / "categories") == before


def test_a_folder_of_texts_is_a_memory_store_of_anthropic_unless_its_contents_say_otherwise(
    terminal,
):
    folder = terminal.folder / "memories"
    folder.mkdir()
    (folder / "tea.md").write_text("Likes tea.")
    output = terminal.ok("import", "--from", "anthropic-memory", str(folder))
    assert output.startswith("Imported 1 ")
    export = _lay(terminal.folder / "export", "claude")
    ran = terminal("import", "--from", "anthropic-memory", str(export))
    assert ran.error.endswith(f"memory import --from claude {export}")


def test_a_large_folder_is_not_looked_through_to_recognize_it(terminal, monkeypatch):
    from memoranda.cli import import_kinds

    place = _lay(terminal.folder / "store", "claude")
    (place / "deep").mkdir()
    for number in range(3):
        (place / "deep" / f"{number}.txt").touch()
    monkeypatch.setattr(import_kinds, "_MOST_FILES_LOOKED_AT", 4)
    wrong = ("import", "--from", "chatgpt", str(place))
    assert terminal(*wrong).error.endswith(f"memory import --from claude {place}")
    monkeypatch.setattr(import_kinds, "_MOST_FILES_LOOKED_AT", 3)
    assert terminal(*wrong).error == f"{place} holds no conversations.json of ChatGPT"


def test_a_folder_that_is_no_store_is_refused_without_a_command(terminal):
    folder = terminal.folder / "empty"
    folder.mkdir()
    ran = terminal("import", "--from", "chatgpt", str(folder))
    assert ran.error == f"{folder} holds no conversations.json of ChatGPT"


def _piped(data: bytes) -> str:
    """Return the path of a pipe with this data, as `<(command)` in a shell gives it."""
    read_end, write_end = os.pipe()
    os.write(write_end, data)
    os.close(write_end)
    return f"/dev/fd/{read_end}"


@pytest.mark.parametrize("kind", ["claude", "chatgpt", "mem0", "graph-jsonl"])
def test_a_store_that_comes_through_a_pipe_is_imported(terminal, kind):
    (content,) = STORES[kind].values()
    place = _piped(json.dumps(content).encode())
    assert terminal.ok("import", "--from", kind, place).startswith("Imported 1 ")


@pytest.mark.parametrize("kind", ["claude", "mem0"])
def test_a_pipe_without_such_a_store_is_refused(terminal, kind):
    ran = terminal("import", "--from", kind, _piped(b"tea"))
    assert ran.status == 1
    assert "is no JSON" in ran.error
