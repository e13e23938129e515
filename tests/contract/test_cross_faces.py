"""What one face writes every other finds, and the shell takes back; no face leads out of the home.

Over MCP stdio with the official client, all faces in one server: contract 002 (14.14), 003 (11.3),
004 (9.3), and the promise of the design's first page.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contract.home_kinds import notes_below
from contract.note_tools import put, seen
from serve.client import OfficialClient
from serve.process import memory_mcp, run_memory

BANK = {"bank_type": "global", "bank_id": "default"}


class Faces:
    """All faces of one server on `home`, and the shell beside it."""

    def __init__(self, client: OfficialClient, user: Path, home: Path):
        self._client = client
        self.user = user
        self.home = home

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self._client.call(tool, arguments)

    def text(self, tool: str, **arguments: Any) -> str:
        """The text of a call that succeeds."""
        reply = self(tool, **arguments)
        assert not reply["is_error"], reply
        return reply["text"]

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured reply of a call that succeeds."""
        reply = self(tool, **arguments)
        assert not reply["is_error"], reply
        return reply["structured"]

    def shell(self, *argv: str) -> str:
        """Return what `memory`, as a separate process, prints."""
        return run_memory(self.home, *argv)


@pytest.fixture
def faces(tmp_path: Path) -> Iterator[Faces]:
    user = tmp_path / "user"
    user.mkdir()
    home = user / ".memory"
    with OfficialClient(memory_mcp(home, "--tools", "all"), user) as client:
        yield Faces(client, user, home)


def answers(faces: Faces) -> dict[str, Any]:
    """What each face says of the four things, and what all of them find."""
    return {
        "kv": faces("memory_recall", key="boat_colour", format="json")["text"].partition(
            '"accessed_at"'
        )[0],
        "graph": faces.data("memory_read_graph"),
        "bank": faces.data("activate", **BANK)["content"],
        "memory": faces("memory", command="view", path="/memories/logbook.md")["text"],
        "found": {
            result["permalink"] for result in faces.data("search_notes", query="heron")["results"]
        },
    }


CHAIN = ["kv/default/boat-colour", "graph/ada", "banks/global/default/context", "memories/logbook"]
"""The four things by their addresses; each leads to the next."""


@pytest.mark.promise("002-14.14")
def test_four_faces_write_one_search_finds_a_walk_passes_and_the_shell_takes_back_each(
    faces: Faces,
) -> None:
    faces.data("write_note", title="Harbour plan", content="Opens in May.", directory="plans")
    faces.data("activate", **BANK)
    states = [answers(faces)]

    def kept() -> None:
        states.append(answers(faces))

    faces.text("memory_remember", key="boat_colour", value="The heron boat is blue, ask [[Ada]]")
    kept()
    ada = {"name": "Ada", "entityType": "person", "observations": ["feeds the heron"]}
    faces.data("memory_create_entities", entities=[ada])
    kept()
    ends = [("works_on", "Harbour plan"), ("keeps", "context")]
    relations = [{"from": "Ada", "to": to, "relationType": kind} for kind, to in ends]
    faces.data("memory_create_relations", relations=relations)
    kept()
    faces.data(
        "update", **BANK, target_file="context.md", content="The heron nests; seen in [[logbook]]"
    )
    kept()
    faces.text(
        "memory", command="create", path="/memories/logbook.md", file_text="4 May: one heron\n"
    )
    kept()

    results = faces.data("search_notes", query="heron")["results"]
    assert {
        result["permalink"]: (result["project"], result["file_path"], result["title"])
        for result in results
    } == {
        "kv/default/boat-colour": ("kv", "default/boat_colour.md", "boat_colour"),
        "graph/ada": ("graph", "Ada.md", "Ada"),
        "banks/global/default/context": ("banks", "global/default/context.md", "context"),
        "memories/logbook": ("memories", "logbook.md", "logbook"),
    }
    text = faces.text("search_notes", query="heron")
    for address in CHAIN:
        assert f"{address.partition('/')[0]}: {address})" in text

    for link_source, link_target in pairwise(CHAIN):
        (context,) = faces.data("build_context", url=f"memory://{link_source}", depth=1)["results"]
        leading = {
            relation["permalink"]
            for relation in context["relations"]
            if relation["direction"] == "out"
        }
        assert link_target in leading
    (context,) = faces.data("build_context", url=CHAIN[0], depth=3)["results"]
    steps = {near_note["permalink"]: near_note["depth"] for near_note in context["related_results"]}
    assert steps == {CHAIN[1]: 1, CHAIN[2]: 2, "notes/plans/harbour-plan": 2, CHAIN[3]: 3}

    undone = []
    for before in reversed(states[:-1]):
        undone.append(faces.shell("undo").split(": ", 1)[1].strip())
        assert answers(faces) == before
    places = [
        "memories/logbook.md",
        "banks/global/default/context.md",
        "graph/Ada.md",
        "graph/Ada.md",
        "kv/default/boat_colour.md",
    ]
    assert [line_undone.rpartition(" ")[2] for line_undone in undone] == places
    assert faces.data("search_notes", query="heron")["total"] == 0
    assert faces.data("read_note", identifier="Harbour plan")["title"] == "Harbour plan"


STRINGS = [
    "../../x",
    "..",
    "/etc/passwd",
    "..%2f..%2f",
    "%2e%2e/%2e%2e/x",
    "a/../../b",
    "..\\..\\x",
    "x\0y",
    "~/.ssh/id",
    "C:\\x",
    "CON",
    "\u202ex",
    "x" * 300,
    "y" * 5000,
    "a/" * 200 + "b",
    ".memoranda/index.db",
    "memories/../../x",
]
PLACES: dict[str, Any] = {
    "bank_id": lambda text: ("activate", {"bank_type": "global", "bank_id": text}),
    "bank_id of update": lambda text: (
        "update",
        {"bank_type": "code", "bank_id": text, "content": "heron"},
    ),
    "project_name": lambda text: (
        "activate",
        {"bank_type": "project", "bank_id": "auto", "project_name": text},
    ),
    "target_file": lambda text: (
        "update",
        {**BANK, "target_file": f"{text}.md", "content": "heron"},
    ),
    "namespace": lambda text: (
        "memory_remember",
        {"key": "k", "value": "heron", "namespace": text},
    ),
    "key": lambda text: ("memory_remember", {"key": text, "value": "heron"}),
    "entity": lambda text: (
        "memory_create_entities",
        {"entities": [{"name": text, "entityType": text, "observations": ["heron", text]}]},
    ),
    "relation": lambda text: (
        "memory_create_relations",
        {"relations": [{"from": f"{text} of nobody", "to": text, "relationType": text}]},
    ),
    "graph project": lambda text: (
        "memory_create_entities",
        {"project": text, "entities": [{"name": "x", "entityType": "x", "observations": []}]},
    ),
    "memory path": lambda text: (
        "memory",
        {"command": "create", "path": f"/memories/{text}", "file_text": "heron"},
    ),
    "whole memory path": lambda text: (
        "memory",
        {"command": "create", "path": text, "file_text": "heron"},
    ),
    "memory goal": lambda text: (
        "memory",
        {
            "command": "rename",
            "old_path": f"/memories/start{STRINGS.index(text)}",
            "new_path": f"/memories/g/{text}",
        },
    ),
    "title": lambda text: ("write_note", {"title": text, "content": "heron", "directory": "d"}),
    "directory": lambda text: ("write_note", {"title": "t", "content": "heron", "directory": text}),
    "note project": lambda text: (
        "write_note",
        {"title": "t", "content": "heron", "directory": "d", "project": text},
    ),
    "destination": lambda text: (
        "move_note",
        {"identifier": "notes/start", "destination_path": text},
    ),
    "identifier": lambda text: ("read_note", {"identifier": text}),
}
"""Where a string of a caller may come near a path: the call that takes it there."""


def outside(faces: Faces) -> dict[str, Any]:
    """All there is beside the home, up to the folder above the user's, with modes, times and bytes."""
    whole = seen(faces.user.parent)
    inside = f"user/{faces.home.name}"
    # Their times are those of the home's making
    changing = {"user", "."}
    return {
        name: content
        for name, content in whole.items()
        if not name.startswith(inside) and name not in changing
    }


OUTSIDE = (
    "x",
    "x.md",
    "b",
    "user/x",
    "user/x.md",
    "user/b.md",
    "user/.ssh/id",
    "user/.ssh/id.md",
)
"""Files beside the home that a string of STRINGS might lead to."""


def is_accepted(faces: Faces, place: str, text: str) -> bool:
    """Whether a call takes the text; its reply tells nothing of the files outside either way."""
    tool, arguments = PLACES[place](text)
    reply = faces(tool, **arguments)
    assert "Traceback" not in reply["text"]
    assert "outside heron" not in reply["text"]
    return not reply["is_error"]


@pytest.mark.slow
@pytest.mark.promise("003-11.3", "004-9.3")
def test_no_string_of_a_caller_leads_out_of_the_home_through_any_face(faces: Faces) -> None:
    for name in OUTSIDE:
        put(faces.user.parent / name, "outside heron\n")
    faces.data("write_note", title="start", content="start", directory="")
    for number in range(len(STRINGS)):
        faces.text("memory", command="create", path=f"/memories/start{number}", file_text="start")
    faces.data("activate", **BANK)
    before = outside(faces)

    accepted: dict[str, set[str]] = {}
    for place in PLACES:
        accepted[place] = {text for text in STRINGS if is_accepted(faces, place, text)}
        assert outside(faces) == before, place

    links = [path for path in faces.home.rglob("*") if path.is_symlink()]
    assert links == []
    folders = {"notes", "graph", "banks", "kv", "memories", ".memoranda"}
    assert set(notes_below({path.name: path for path in faces.home.iterdir()})) == folders
    bank_folders = {path.name for path in (faces.home / "banks").iterdir()}
    assert bank_folders == {"global", "projects", "code"}
    assert (faces.home / ".memoranda" / "index.db").read_bytes().startswith(b"SQLite format 3")
    results = faces.data("search_notes", query="outside heron", page_size=50)["results"]
    assert not any("outside heron" in hit["snippet"] for hit in results)

    climbing = {
        "../../x",
        "..",
        "..%2f..%2f",
        "%2e%2e/%2e%2e/x",
        "a/../../b",
        "..\\..\\x",
        "memories/../../x",
        "x\0y",
    }
    # Below /memories these are names like others
    absolute = {"/etc/passwd", "~/.ssh/id"}
    for place in ("memory path", "memory goal"):
        assert accepted[place].isdisjoint(climbing), place
    for place in (
        "bank_id",
        "bank_id of update",
        "target_file",
        "graph project",
        "note project",
        "whole memory path",
        "directory",
        "destination",
    ):
        assert accepted.get(place, set()).isdisjoint(climbing | absolute), place
    for text in accepted["key"]:
        assert faces("memory_recall", key=text)["is_error"] is False
    assert accepted["key"] >= climbing | {"/etc/passwd", "x\0y", "CON", "~/.ssh/id", "x" * 300}
    assert accepted["namespace"] == accepted["key"]
    assert accepted["entity"] == set(STRINGS)
    opened = faces.data("memory_open_nodes", names=STRINGS, observationLimit=1)
    assert {entity["name"] for entity in opened["entities"]} == set(STRINGS)
