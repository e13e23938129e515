"""No error sends the reader to a tool that is not served, or to a project their access leaves out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda import faces
from memoranda.engine import open_session
from memoranda.errors import NotFound

SOURCE = Path(memoranda.__file__).parent
NODE = {"name": "A", "entityType": "x", "observations": []}
PAIR = {"from": "nobody", "to": "A", "relationType": "x"}
BANK = {"bank_type": "project", "bank_id": "p", "content": "x"}
FAILING: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "memory": [
        ("memory", {"command": "view", "path": "/memories/none.md"}),
        (
            "memory",
            {"command": "str_replace", "path": "/memories/none.md", "old_str": "a", "new_str": "b"},
        ),
        ("memory", {"command": "rename", "old_path": "/memories/none", "new_path": "/memories/b"}),
    ],
    "notes": [
        ("read_note", {"identifier": "none"}),
        ("write_note", {"title": "A", "content": "y", "directory": ""}),
        ("search_notes", {"query": "x", "project": "nowhere"}),
        (
            "edit_note",
            {"identifier": "A", "operation": "find_replace", "find_text": "q", "content": "y"},
        ),
    ],
    "graph": [
        ("memory_delete_entities", {"entityNames": ["A"], "project": "notes"}),
        ("memory_read_graph", {"project": "nowhere"}),
        ("memory_create_relations", {"relations": [PAIR], "project": "notes"}),
        ("memory_add_observations", {"observations": [{"entityName": "none", "contents": ["x"]}]}),
    ],
    "bank": [
        ("update", {**BANK, "target_file": "../x.md"}),
        ("update", {**BANK, "operation": "rub"}),
    ],
    "kv": [
        ("memory_recall", {"key": "none"}),
        ("memory_forget", {"key": "none"}),
        ("memory_remember", {"key": " "}),
    ],
    "agent": [
        ("memory_read", {"id": "none"}),
        ("memory_delete", {"id": "none"}),
        ("memory_tag", {"id": "none", "add": ["x"]}),
        ("memory_search", {"query": ""}),
    ],
}
OWN = {
    "memory": ("memory", {"command": "view", "path": "/memories/a.md"}),
    "graph": ("memory_create_entities", {"entities": [NODE]}),
    "bank": ("update", BANK),
    "kv": ("memory_remember", {"key": "a", "value": "b"}),
    "agent": ("memory_write", {"content": "x", "category": "knowledge"}),
}
"""By toolset that has its own project, a call that needs it."""


def names_of(toolset: str, settings: Any) -> set[str]:
    return set(faces.registry([toolset], settings).tools)


@pytest.mark.parametrize("toolset", faces.TOOLSETS)
def test_no_error_of_a_toolset_alone_names_a_tool_it_does_not_serve(
    tmp_path: Path, toolset: str
) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        served = faces.registry([toolset], memory.settings)
        assert [*served.tools] == faces.FACES[toolset].tool_names()
        all_tools = set(faces.tool_names(faces.TOOLSETS))
        strange = re.compile(
            rf"\b({'|'.join(name for name in all_tools - set(served.tools) if '_' in name)})\b"
        )
        faces.registry(["notes"], memory.settings).call(
            memory, "write_note", {"title": "A", "content": "x", "directory": ""}
        )
        for tool, arguments in FAILING[toolset]:
            reply = served.call(memory, tool, arguments)
            assert reply.is_error, (tool, arguments)
            assert not strange.search(f"{reply.text} {reply.hint} {reply.data}"), reply.text


def strings_of(node: ast.AST) -> list[str]:
    """The texts in a piece of code."""
    values = [child.value for child in ast.walk(node) if isinstance(child, ast.Constant)]
    return [value for value in values if isinstance(value, str)]


def below_the_faces() -> Iterator[Path]:
    """The modules whose errors do not know which tools are served."""
    for layer in ("errors.py", "engine/*.py", "index/*.py", "note/*.py", "sources/*.py"):
        yield from sorted(SOURCE.glob(layer))


def advice_in(nodes: list[ast.AST]) -> list[ast.Call]:
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    return [call for call in calls if getattr(call.func, "id", "") == "Advice"]


def strings_outside(nodes: list[ast.AST], advice: list[ast.Call]) -> list[str]:
    """The texts in a module that are neither its docstrings nor advice."""
    docstrings = [node.value for node in nodes if isinstance(node, ast.Expr)]
    allowed = set()
    for node in (*docstrings, *advice):
        allowed |= {id(child) for child in ast.walk(node)}
    constants = [node for node in nodes if isinstance(node, ast.Constant)]
    return [str(node.value) for node in constants if id(node) not in allowed]


def test_errors_of_the_engine_name_tools_in_their_advice_only(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        tool = re.compile(rf"\b({'|'.join(names_of('notes', memory.settings))})\b")
    advice_count = 0
    for place in below_the_faces():
        nodes = list(ast.walk(ast.parse(place.read_text("utf-8"))))
        advice = advice_in(nodes)
        for string in strings_outside(nodes, advice):
            assert not tool.search(string), (place, string)
        for call in advice:
            text, tools, *otherwise = map(strings_of, call.args)
            matches = tool.findall("".join(text))
            assert set(matches) == set(tools), (place, text)
            assert not tool.search(str(otherwise)), (place, otherwise)
        advice_count += len(advice)

    assert advice_count >= 9


def test_advice_is_kept_where_its_tool_is_served(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        for toolsets, end in (
            (["graph", "notes"], "; use delete_note"),
            (["graph"], " and are not deleted here"),
        ):
            call = ("memory_delete_entities", {"entityNames": ["A"], "project": "notes"})
            text = faces.registry(toolsets, memory.settings).call(memory, *call).text
            assert text == f'Entities of project "notes" are notes{end}'


def test_a_bank_gives_no_advice_of_other_toolsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object) -> None:
        raise NotFound("activeContext.md", "banks")

    monkeypatch.setattr("memoranda.faces.bank.Bank.load", load)
    with open_session(tmp_path / "home", watch=False) as memory:
        served = faces.registry(["bank"], memory.settings)
        arguments = {"bank_type": "project", "bank_id": "p"}
        reply = served.call(memory, "activate", arguments)
    assert "Note not found in banks" in reply.text
    assert "search_notes" not in reply.text


@pytest.mark.parametrize("toolset", OWN)
def test_an_access_without_a_toolsets_project_says_so_in_one_sentence(
    tmp_path: Path, toolset: str
) -> None:
    open_session(tmp_path / "home", watch=False).close()
    with open_session(tmp_path / "home", watch=False, only=("notes",)) as memory:
        reply = faces.registry([toolset], memory.settings).call(memory, *OWN[toolset])
        assert reply.is_error
        assert "This access is limited to the projects notes; the project " in reply.text
        assert "Internal" not in reply.text
