"""The conformance cases of the knowledge graph, in notes and in a file (contract 002, 13)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commonplace import open_memory
from commonplace.engine.graphs import opener
from commonplace.note.entity import EntityText
from commonplace.note.markdown import parse_note
from contract.graph_tools import Nodes
from contract.home_kinds import FILE
from contract.mcp_server import Server

CASES = json.loads(Path(__file__).with_name("data").joinpath("graph_cases.json").read_text("utf-8"))["cases"]
OVER_STDIO = 6
TEXT_KEYS = {"create_entities": "entities", "create_relations": "relations", "add_observations": "results"}


def comparable(data: dict[str, Any]) -> dict[str, Any]:
    """A graph with its relations as a set."""
    if "entities" in data and "relations" in data:
        return data | {"relations": sorted(map(json.dumps, data["relations"]))}
    return data


def check(result: dict[str, Any], call: dict[str, Any]) -> None:
    expect, (content, *_) = call["expect"], result["content"]  # a second text may teach
    if "structured" not in expect:
        assert result["isError"]
        assert "structuredContent" not in result
        if "error" in expect:
            assert content["text"] == expect["error"]
        else:
            assert content["text"].startswith("Input validation error: ")
        return
    data = result["structuredContent"]
    assert not result["isError"]
    assert comparable(data) == comparable(expect["structured"])
    if call["tool"].startswith("delete"):
        assert content["text"] == data["message"]
    else:
        said = data[TEXT_KEYS[call["tool"]]] if call["tool"] in TEXT_KEYS else data
        assert content["text"] == json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def decoded(folder: Path) -> dict[str, Any]:
    """The graph the files themselves tell, by section 5."""
    notes = []
    for place in folder.rglob("*.md"):
        text = place.read_bytes().decode()
        notes.append((parse_note(text, project="graph", path=place.name, changed=datetime.now(UTC)), EntityText(text)))
    notes.sort(key=lambda each: each[0].created)
    entities = [
        {"name": note.title, "entityType": note.type, "observations": text.observations}
        for note, text in notes
        if "placeholder" not in note.header
    ]
    relations = [
        {"from": note.title, "to": each.target, "relationType": each.type}
        for note, text in notes
        for each in text.relations
    ]
    return {"entities": entities, "relations": relations}


def parsed(file: Path) -> dict[str, Any]:
    """The graph a plain parser of JSON Lines finds."""
    rows = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line] if file.exists() else []
    found: dict[str, list[Any]] = {"entity": [], "relation": []}
    for row in rows:
        found[row.pop("type")].append(row)
    return {"entities": found["entity"], "relations": found["relation"]}


def stored(home: Path, file: Path | None) -> dict[str, Any]:
    """The graph as the file or the notes tell it themselves."""
    return parsed(file) if file else decoded(home / "graph")


@pytest.fixture(params=["notes", pytest.param("file", marks=pytest.mark.folder_home(FILE))])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """The graph file, None for the notes."""
    return tmp_path / "memory.jsonl" if request.param == "file" else None


def forget_index(home: Path) -> None:
    for place in (home / ".commonplace").glob("index*"):
        place.unlink()


@pytest.mark.promise("002-14.2", "002-14.21")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_case_holds_and_outlives_a_restart_without_the_index(case, tmp_path, file):
    home, options = tmp_path / "home", {"open_graph": opener(file)} if file else {}
    with open_memory(home, watch=False) as memory:
        nodes = Nodes(memory, **options)
        for call in case["calls"]:
            reply = nodes.reply(call["tool"], call["args"])
            result = {"content": [{"text": reply.text}], "isError": reply.is_error}
            check(result | ({} if reply.data is None else {"structuredContent": reply.data}), call)
        before = nodes("read_graph")
    assert comparable(before) == comparable(case["final"]) == comparable(stored(home, file))
    assert file is None or before == case["final"] == parsed(file)  # in order
    forget_index(home)
    with open_memory(home, watch=False) as memory:
        assert Nodes(memory, **options)("read_graph") == before


@pytest.mark.promise("002-14.2")
@pytest.mark.parametrize("case", CASES[:OVER_STDIO], ids=lambda case: case["id"])
def test_cases_hold_over_stdio_and_after_a_restart(case: dict[str, Any], tmp_path: Path, file: Path | None) -> None:
    home = tmp_path / "home"
    arguments = ("--tools", "graph", *(("--graph-file", str(file)) if file else ()))
    with Server(*arguments, MEMORY_HOME=str(home)) as server:
        for call in case["calls"]:
            check(server.call("memory_" + call["tool"], **call["args"]), call)
        before = server.data("memory_read_graph")
        assert server.close() == 0
    assert comparable(before) == comparable(case["final"]) == comparable(stored(home, file))
    forget_index(home)
    with Server(*arguments, MEMORY_HOME=str(home)) as server:
        assert server.data("memory_read_graph") == before
