"""Graph files of other known forms: read as they are, and lines of JSON from the first change on
(docs/faces/knowledge-graph.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contract.graph_tools import GraphFile, Nodes, person
from memoranda.engine import open_session
from memoranda.sources.graph_lines import as_lines, parse_line

ADA = person("Ada", "likes tea")
BOB = person("Bob", "}{ is text")
EVE = person("Eve")
KNOWS = '{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}\n'


def untyped(*lines: str) -> list[dict[str, Any]]:
    return [{k: v for k, v in json.loads(line).items() if k != "type"} for line in lines]


WHOLE = {"entities": untyped(ADA, BOB), "relations": untyped(KNOWS)}
A = ADA.strip()
B = BOB.strip()
K = KNOWS.strip()

FORMS = [
    ("{}", ""),
    ("[]", ""),
    ("{}\n", ""),
    (" [ ]\n\n", ""),
    ("\ufeff{}", ""),
    ("{\n}\n", ""),
    (json.dumps(WHOLE), ADA + BOB + KNOWS),
    (json.dumps(WHOLE, indent=2), ADA + BOB + KNOWS),
    ("\ufeff" + json.dumps(WHOLE, indent=4).replace("\n", "\r\n"), ADA + BOB + KNOWS),
    (json.dumps({"relations": untyped(KNOWS)}), KNOWS),
    ('{"entities": [], "relations": []}', ""),
    ('{"entities": null}', ""),
    (json.dumps({"entities": untyped(ADA), "version": 2}), ADA + '{"version":2}\n'),
    (
        '{"entities":[{"name":"Ada","type":"person","observations":["likes tea"]}]}',
        '{"type":"entity","name":"Ada","observations":["likes tea"],"entityType":"person"}\n',
    ),
    (
        '{"entities":[{"name":"é","x":"\\ud800"}]}',
        '{"type":"entity","name":"\\u00e9","x":"\\ud800"}\n',
    ),
    (A + B, ADA + BOB),
    (A + B + "\n", ADA + BOB),
    (A + " " + K + "\t" + B + "\n", ADA + KNOWS + BOB),
    (ADA + B + K + "\n" + EVE, ADA + BOB + KNOWS + EVE),
    ("\ufeff" + A + B + "\r\n" + EVE, ADA + BOB + EVE),
    ("{}" + A + "\n", ADA),
    ("[]" + A + "\n" + BOB, ADA + BOB),
    ("{}\n" + ADA + BOB, ADA + BOB),
    ("[]\n" + ADA + "torn\n", ADA + "torn\n"),
    (json.dumps(WHOLE) + "\n" + EVE, ADA + BOB + KNOWS + EVE),
    (ADA + "\n" + B + A + "\nno JSON\n", ADA + "\n" + BOB + ADA + "no JSON\n"),
]


@pytest.mark.parametrize(("data", "lines"), FORMS)
def test_a_file_of_a_known_form_is_read_and_becomes_lines_at_the_first_change(
    graph_file: GraphFile, data: str, lines: str
) -> None:
    graph_file.write(data)
    assert b"".join(as_lines(data.encode()) or []).decode() == lines
    names = [
        name
        for line in lines.splitlines()
        if line.startswith('{"type":"entity"') and (name := json.loads(line)["name"])
    ]
    assert graph_file.names() == names
    graph_file.nodes("delete_entities", entityNames=["nobody"])
    assert graph_file.text == data
    before = graph_file.data
    graph_file.nodes(
        "create_entities", entities=[{"name": "New", "entityType": "person", "observations": []}]
    )
    assert graph_file.text == lines + person("New")
    assert graph_file.names() == [*names, "New"]
    assert graph_file.names_anew() == [*names, "New"]
    history = graph_file.memory.engine.ledger.history
    change = history.change(history.last)
    assert change is not None
    text = history.text(change.files[0].old or "", "memory.jsonl")
    assert text == before
    graph_file.memory.undo()
    assert graph_file.text == lines
    assert graph_file.is_alone()


@pytest.mark.parametrize(
    "data",
    [
        ADA,
        ADA + BOB + KNOWS,
        A.replace("likes tea", "}{") + "\n",
        A.replace("likes tea", '\\"entities\\"') + "\n",
        "",
        "\n",
        "[1]",
        f"[{A}]",
        '{"entities": [1]}',
        '{"entities": {}}',
        '{"type": "entity", "entities": []}',
        '{"mcpServers": {}}',
        A + '{"type":"enti\n',
        A + "x\n",
        A + "1\n",
        "# Notes\n",
        "[" * 2000,
    ],
)
def test_other_files_are_no_such_form(data: str) -> None:
    assert as_lines(data.encode()) is None


def test_lines_made_are_lines() -> None:
    for data, lines in FORMS:
        lines_made = as_lines(data.encode()) or []
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines_made)
        assert len(lines_made) == lines.count("\n")


def test_relations_and_observations_of_such_a_file_change(graph_file: GraphFile) -> None:
    graph_file.write(json.dumps(WHOLE))
    graph_file.add("Ada", "wades")
    assert graph_file.text == ADA.replace('tea"', 'tea","wades"') + BOB + KNOWS
    graph_file.write(json.dumps(WHOLE))
    graph_file.delete("Bob")
    assert graph_file.text == ADA
    graph_file.memory.undo()
    assert graph_file.text == ADA + BOB + KNOWS


def test_another_program_may_go_on_with_the_other_form(graph_file: GraphFile) -> None:
    graph_file.write("{}")
    assert graph_file.names() == []
    graph_file.write(json.dumps(WHOLE))
    assert graph_file.names() == ["Ada", "Bob"]
    graph_file.write(ADA)
    assert graph_file.names() == ["Ada"]
    graph_file.write(A + B)
    assert graph_file.names() == ["Ada", "Bob"]
    graph_file.write(A + B + "\n" + EVE)
    assert graph_file.names() == ["Ada", "Bob", "Eve"]
    graph_file.delete("Ada")
    graph_file.write(graph_file.text + ADA)
    assert graph_file.names() == ["Bob", "Eve", "Ada"]


def test_a_line_of_very_many_glued_objects_is_read_in_time() -> None:
    lines_made = as_lines((A * 20_000).encode())
    assert lines_made is not None
    assert len(lines_made) == 20_000
    assert parse_line(lines_made[-1]) == json.loads(A)


def test_an_erased_entity_is_gone_from_the_kept_text_of_the_other_form(tmp_path: Path) -> None:
    place = tmp_path / "people.jsonl"
    place.write_text(json.dumps(WHOLE))
    home = tmp_path / "home"
    with open_session(home, projects={"people": place}, watch=False) as memory:
        memory.sync()
        create = {"entities": [{"name": "New", "entityType": "", "observations": []}]}
        Nodes(memory)("create_entities", project="people", **create)
        memory.erase("people/Ada")
    assert "Ada" not in place.read_text()
    home_bytes = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert b"likes tea" not in home_bytes
