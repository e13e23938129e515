"""The knowledge graph: its conformance cases, and what clients see over MCP stdio (contract 002, 13
and 14).
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract.graph_tools import Nodes
from contract.home_kinds import FILE, in_database
from contract.mcp_server import Server
from memoranda.engine import open_session
from memoranda.engine.graphs import opener
from memoranda.note.entity import EntityText
from memoranda.note.markdown import parse_note
from serve.process import ServerProcess, memory_mcp, run_memory

NAMES = (
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "read_graph",
    "search_nodes",
    "open_nodes",
)
RESOURCES = ("thoughtbox://memory/graph", "memory://knowledge-graph")


def entity(name: str, *observations: str, kind: str = "thing") -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(triple: str) -> dict[str, str]:
    source, kind, target = triple.split()
    return {"from": source, "to": target, "relationType": kind}


def serving(home: Path, *arguments: str, **env: str) -> Server:
    return Server(*(arguments or ("--tools", "graph")), MEMORY_HOME=str(home), **env)


def answers(server: Server, count: int) -> dict[int, dict[str, Any]]:
    """The next `count` answers by their ids."""
    messages = [server.receive() for _ in range(count)]
    return {message["id"]: message["result"] for message in messages}


def told(server: Server, tool: str, **arguments: Any) -> list[str]:
    """The resources of which subscribers are told before the tool's answer."""
    number = server.begin(f"memory_{tool}", **arguments)
    uris = []
    while "id" not in (message := server.receive()):
        assert message["method"] == "notifications/resources/updated"
        uris.append(message["params"]["uri"])
    assert message["id"] == number
    return uris


@pytest.mark.promise("002-14.1")
def test_the_nine_tools_are_listed_as_published(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        tools = server.ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == [f"memory_{name}" for name in NAMES]
    assert [tool["title"] for tool in tools] == [name.replace("_", " ").title() for name in NAMES]
    assert len(json.dumps(tools, ensure_ascii=False, separators=(",", ":"))) <= 12_000
    for tool in tools:
        name = tool["name"].removeprefix("memory_")
        hints = tool["annotations"]
        reads = name in NAMES[6:]
        deletes = name.startswith("delete")
        assert hints == {
            "readOnlyHint": reads,
            "destructiveHint": deletes,
            "idempotentHint": reads or deletes,
            "openWorldHint": False,
        }
        assert tool["outputSchema"]["additionalProperties"] is False
        assert "$schema" not in tool["inputSchema"]
        assert "additionalProperties" not in json.dumps(tool["inputSchema"])


@pytest.mark.promise("002-14.3", "002-14.4", "002-14.5", "002-14.6", "002-14.7", "002-14.10")
def test_the_example_of_the_contract_and_a_restart(tmp_path: Path) -> None:
    ada = entity("Ada", "likes tea", kind="person")
    with serving(tmp_path) as server:
        created = server.data(
            "memory_create_entities",
            entities=[
                entity("Ada", "likes tea", "likes tea", kind="person"),
                entity("Ada", kind="x"),
            ],
        )
        assert created == {"entities": [ada]}
        assert server.data("memory_create_entities", entities=[ada]) == {"entities": []}
        triples = [
            relation(words) for words in ("Ada works_at Acme", "Ada is Ada", "Nobody knows Ada")
        ]
        assert server.data("memory_create_relations", relations=[*triples, triples[0]]) == {
            "relations": triples
        }
        assert server.data("memory_create_relations", relations=triples) == {"relations": []}
        opened = server.data("memory_open_nodes", names=["Acme", "Ada"])
        assert opened["entities"] == [ada]
        assert sorted(map(str, opened["relations"])) == sorted(map(str, triples))
        failed = server.call(
            "memory_add_observations",
            observations=[
                {"entityName": "Ada", "contents": ["x"]},
                {"entityName": "Bob", "contents": ["y"]},
            ],
        )
        assert failed == {
            "content": [{"type": "text", "text": "Entity with name Bob not found"}],
            "isError": True,
        }
        totals = server.data("memory_read_graph", limit=0)
        assert (totals["totalEntities"], totals["totalRelations"]) == (1, 3)
    with serving(tmp_path) as server:
        assert server.data("memory_open_nodes", names=["Ada"]) == opened
        assert server.data("memory_read_graph", limit=0) == totals
        assert (
            server.data("memory_delete_entities", entityNames=["Acme", "no such"])["success"]
            is True
        )
        assert server.data("memory_read_graph", limit=0)["totalRelations"] == 2
        server.data("memory_delete_entities", entityNames=["Ada"])
        assert server.data("memory_read_graph", limit=0)["totalEntities"] == 0
        assert server.data("memory_read_graph")["relations"] == []


@pytest.mark.promise("002-14.12")
def test_each_resource_is_the_whole_graph_and_tells_its_subscribers_once(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert server.hello["capabilities"]["resources"]["subscribe"] is True
        listed = server.ask("resources/list")["result"]["resources"]
        assert [
            (resource["uri"], resource["name"], resource["title"], resource["mimeType"])
            for resource in listed
        ] == [
            (RESOURCES[0], "Knowledge Graph", "Knowledge Graph", "application/json"),
            (RESOURCES[1], "knowledge-graph", "Knowledge Graph", "application/json"),
        ]
        for uri in RESOURCES:
            assert server.ask("resources/subscribe", {"uri": uri})["result"] == {}
        assert (
            server.ask("resources/subscribe", {"uri": "memory://other"})["error"]["code"] == -32602
        )
        assert told(server, "create_entities", entities=[entity("Ada", "likes tea")]) == [
            *RESOURCES
        ]
        assert told(server, "create_entities", entities=[entity("Ada")]) == []
        assert told(server, "read_graph") == []
        assert (
            told(
                server,
                "add_observations",
                observations=[{"entityName": "Nobody", "contents": ["x"]}],
            )
            == []
        )
        assert told(server, "create_relations", relations=[relation("Ada knows Bob")]) == [
            *RESOURCES
        ]
        server.ask("resources/unsubscribe", {"uri": RESOURCES[0]})
        assert told(server, "delete_entities", entityNames=["Ada"]) == [RESOURCES[1]]
        assert told(server, "create_entities", entities=[entity("Eve", "é")]) == [RESOURCES[1]]
        whole = server.data("memory_read_graph")
        for uri in RESOURCES:
            (content,) = server.ask("resources/read", {"uri": uri})["result"]["contents"]
            assert content == {
                "uri": uri,
                "mimeType": "application/json",
                "text": json.dumps(whole, ensure_ascii=False, indent=2),
            }
        assert server.close() == 0


@pytest.mark.promise("002-14.12")
def test_a_stream_of_the_newest_revision_is_told_and_ends_with_the_client(tmp_path: Path) -> None:
    with ServerProcess(command=memory_mcp(tmp_path, "--tools", "graph"), user=tmp_path) as server:

        def send(method: str, **params: Any) -> int:
            return server.send(method, params | {"_meta": server.envelope("test")})

        stream = send(
            "subscriptions/listen", notifications={"resourceSubscriptions": [RESOURCES[1]]}
        )
        assert server.receive()["method"] == "notifications/subscriptions/acknowledged"
        call = send(
            "tools/call", name="memory_create_entities", arguments={"entities": [entity("Ada")]}
        )
        messages = [server.receive(), server.receive()]
        updates = [message["params"]["uri"] for message in messages if "id" not in message]
        assert updates == [RESOURCES[1]]
        ids = [message["id"] for message in messages if "id" in message]
        assert ids == [call]
        assert server.close() == 0
        assert server.receive()["id"] == stream


@pytest.mark.promise("002-14.13")
def test_server_memory_preset_has_the_names_of_the_reference_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path, "--as", "server-memory") as server:
        tools = server.ask("tools/list")["result"]["tools"]
        listed = server.ask("resources/list")["result"]["resources"]
        result = server.call("create_entities", entities=[entity("é")])

    names = [tool["name"] for tool in tools]
    assert names == [*NAMES]
    for tool in tools:
        assert "project" not in tool["inputSchema"]["properties"]
    uris = [resource["uri"] for resource in listed]
    assert uris == [RESOURCES[1]]
    entities = result["structuredContent"]["entities"]
    assert result["content"][0]["text"] == json.dumps(entities, ensure_ascii=False, indent=2)


@pytest.mark.promise("002-14.13")
def test_thoughtbox_preset_has_its_names_and_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path, "--as", "thoughtbox") as server:
        tools = server.ask("tools/list")["result"]["tools"]
        text = server.call("memory_read_graph")["content"][0]["text"]

    names = [tool["name"] for tool in tools]
    assert names == [f"memory_{name}" for name in NAMES]
    assert text.startswith("Cannot use" if in_database() else '{\n  "entities"')


@pytest.mark.promise("002-14.13")
def test_entity_made_by_one_preset_is_found_by_the_note_tools_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path, "--tools", "memory,notes,graph") as server:
        tools = server.ask("tools/list")["result"]["tools"]
        server.data("memory_create_entities", entities=[entity("é")])
        total = server.data("search_notes", query="é")["total"]

    assert "memory" in [tool["name"] for tool in tools]
    assert total == 1


@pytest.mark.promise("002-14.14")
def test_from_the_first_entity_to_an_undone_deletion(tmp_path: Path) -> None:
    with serving(tmp_path, "--tools", "graph,notes") as server:
        server.data(
            "memory_create_entities",
            entities=[
                entity("useState", "returns a pair", kind="hook"),
                entity("React Hooks"),
                entity("React"),
            ],
        )
        server.data(
            "memory_add_observations",
            observations=[
                {"entityName": "React", "contents": ["a library"]},
                {"entityName": "React Hooks", "contents": ["since 16.8"]},
            ],
        )
        server.data(
            "memory_create_relations",
            relations=[
                {"from": "useState", "to": "React Hooks", "relationType": "is_a"},
                {"from": "React Hooks", "to": "React", "relationType": "part of"},
                {"from": "React", "to": "useState", "relationType": "exports"},
            ],
        )
        walked = server.data("memory_open_nodes", names=["useState"], depth=2, direction="out")
        assert [entity["name"] for entity in walked["entities"]] == [
            "useState",
            "React Hooks",
            "React",
        ]
        some = server.data("memory_open_nodes", names=["useState"], depth=1, relationTypes=["is_a"])
        assert [entity["name"] for entity in some["entities"]] == ["useState", "React Hooks"]
        totals = server.data("memory_read_graph", limit=0)
        assert (totals["totalEntities"], totals["totalRelations"]) == (3, 3)
        hits = server.data("search_notes", query="pair")
        assert [hit["title"] for hit in hits["results"]] == ["useState"]
        context = server.call("build_context", url="memory://graph/react-hooks")["content"][0][
            "text"
        ]
        assert "useState" in context
        assert "React" in context
        server.data("memory_delete_entities", entityNames=["React Hooks"])
        assert server.data("memory_read_graph", limit=0)["totalRelations"] == 1
        run_memory(tmp_path, "undo")
        assert (
            server.data("memory_open_nodes", names=["useState"], depth=2, direction="out") == walked
        )


@pytest.mark.promise("002-14.27")
def test_a_full_disk_is_an_error_and_the_store_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    with open_session(tmp_path, watch=False) as memory:
        nodes = Nodes(memory)
        nodes.entity("Ada", "likes tea")
        before = nodes("read_graph")
        files = nodes.files()

        def full(*_: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        text = nodes.error("create_entities", entities=[entity("Bob"), entity("Eve")])
        assert "Nothing was changed" in text
        nodes.error("add_observations", observations=[{"entityName": "Ada", "contents": ["x"]}])
        monkeypatch.undo()
        assert (nodes("read_graph"), nodes.files()) == (before, files)


@pytest.mark.promise("002-14.28")
def test_no_reply_of_a_large_graph_exceeds_the_bound_and_its_pages_are_complete(
    tmp_path: Path,
) -> None:
    with open_session(tmp_path, watch=False) as memory:
        nodes = Nodes(memory)
        nodes(
            "create_entities", entities=[entity(f"n{i}", "fact " * 8, "x", "y") for i in range(799)]
        )
        nodes.entity("hub", *(f"observation {i} " + "z" * 20 for i in range(3000)))
        nodes.relate(*(f"n{i} knows hub" for i in range(600)))
        names: list[str] = []
        relations = 0
        cursor = {}
        while True:
            reply = nodes.reply("read_graph", cursor)
            assert len(reply.text) <= 80_000
            names += [entity["name"] for entity in reply.data["entities"]]
            relations += len(reply.data["relations"])
            if "nextCursor" not in reply.data:
                break
            cursor = {"cursor": reply.data["nextCursor"]}
        assert names == [*(f"n{i}" for i in range(799)), "hub"]
        assert relations == 600
        read: list[str] = []
        while len(read) < 3000:
            reply_of_hub = nodes(
                "open_nodes", names=["hub"], observationOffset=len(read), direction="out"
            )
            read += reply_of_hub["entities"][0]["observations"]
        assert len(set(read)) == 3000
        whole = nodes.like(reply_chars=0)("read_graph")
        assert len(whole["entities"]) == 800
        assert len(whole["relations"]) == 600


@pytest.mark.promise("002-14.30")
def test_a_graph_is_taken_in_once_and_comes_out_the_same(tmp_path: Path, terminal: Any) -> None:
    lines = [
        {
            "type": "entity",
            "name": "React",
            "entityType": "library",
            "observations": ["a"],
            "createdAt": "2024-01-01",
        },
        {"type": "entity", "name": "React", "entityType": "other", "observations": ["b", "a"]},
        "not JSON",
        {"type": "relation", "from": "nobody", "to": "React", "relationType": "uses"},
        {"type": "relation", "from": "React", "to": "x\ny", "relationType": "is a"},
        {"type": "entity", "entityType": "nameless", "observations": []},
    ]
    file = tmp_path / "memory.jsonl"
    file.write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    )
    summary = "Imported 1 entities, 2 relations (2 lines skipped)\n"
    first = terminal("graph", "import", str(file))
    assert (first.status, first.out) == (0, summary)
    assert [line.split(":")[0] for line in first.err.splitlines()] == ["line 3", "line 6"]
    exported = terminal.ok("graph", "export")
    assert terminal("graph", "import", str(file)).out == summary.replace(
        "Imported", "Nothing new in"
    )
    assert terminal.ok("graph", "export") == exported
    assert len(terminal.ok("log").splitlines()) == 1
    assert '"observations":["a","b"]' in exported
    assert '\ncreatedAt: "2024-01-01"\n' in (terminal.home / "graph" / "React.md").read_text()
    other_home = str(tmp_path / "other")
    assert terminal("--home", other_home, "graph", "import", "-", stdin=exported).status == 0
    assert terminal("--home", other_home, "graph", "export").out == exported
    place = tmp_path / "out.jsonl"
    assert terminal.ok("graph", "export", str(place)) == f"Exported 3 lines to {place}\n"
    assert place.read_text() == exported
    whole = {"entities": [{"name": "Y", "entityType": "t", "observations": []}], "relations": []}
    assert terminal.ok("graph", "import", "-", stdin=json.dumps(whole)).startswith(
        "Imported 1 entities"
    )
    listed = json.dumps([{"type": "entity", "name": "Z"}])
    assert terminal.ok("graph", "import", "-", stdin=listed).startswith("Imported 1 entities")


CASES = json.loads(
    Path(__file__).with_name("data").joinpath("graph_cases.json").read_text("utf-8")
)["cases"]
OVER_STDIO = 2
TEXT_KEYS = {
    "create_entities": "entities",
    "create_relations": "relations",
    "add_observations": "results",
}


def comparable(data: dict[str, Any]) -> dict[str, Any]:
    """A graph with its relations as a set."""
    if "entities" in data and "relations" in data:
        return data | {"relations": sorted(map(json.dumps, data["relations"]))}
    return data


def check(result: dict[str, Any], call: dict[str, Any]) -> None:
    # A second text may teach
    expect, (content, *_) = call["expect"], result["content"]
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
        if call["tool"] in TEXT_KEYS:
            spoken = data[TEXT_KEYS[call["tool"]]]
        else:
            spoken = data
        assert content["text"] == json.dumps(spoken, ensure_ascii=False, separators=(",", ":"))


def decoded(folder: Path) -> dict[str, Any]:
    """The graph the files themselves tell, by section 5."""
    notes = []
    for place in folder.rglob("*.md"):
        text = place.read_bytes().decode()
        notes.append(
            (
                parse_note(text, project="graph", path=place.name, changed=datetime.now(UTC)),
                EntityText(text),
            )
        )
    notes.sort(key=lambda decoded_note: decoded_note[0].created)
    entities = [
        {"name": note.title, "entityType": note.type, "observations": text.observations}
        for note, text in notes
        if "placeholder" not in note.header
    ]
    relations = []
    for note, text_of_note in notes:
        for relation in text_of_note.relations:
            edge = {"from": note.title, "to": relation.target, "relationType": relation.type}
            relations.append(edge)
    return {"entities": entities, "relations": relations}


def parsed(file: Path) -> dict[str, Any]:
    """The graph a plain parser of JSON Lines finds."""
    if file.exists():
        rows = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]
    else:
        rows = []
    rows_by_type: dict[str, list[Any]] = {"entity": [], "relation": []}
    for row in rows:
        rows_by_type[row.pop("type")].append(row)
    return {"entities": rows_by_type["entity"], "relations": rows_by_type["relation"]}


def stored(home: Path, file: Path | None) -> dict[str, Any]:
    """The graph as the file or the notes tell it themselves."""
    if file:
        return parsed(file)
    return decoded(home / "graph")


@pytest.fixture(params=["notes", pytest.param("file", marks=pytest.mark.folder_home(FILE))])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """The graph file, None for the notes."""
    if request.param == "file":
        return tmp_path / "memory.jsonl"
    return None


def forget_index(home: Path) -> None:
    for place in (home / ".memoranda").glob("index*"):
        place.unlink()


@pytest.mark.promise("002-14.2", "002-14.21")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_case_holds_and_outlives_a_restart_without_the_index(case, tmp_path, file):
    home = tmp_path / "home"
    options = {"open_graph": opener(file)} if file else {}
    with open_session(home, watch=False) as memory:
        nodes = Nodes(memory, **options)
        for call in case["calls"]:
            reply = nodes.reply(call["tool"], call["args"])
            result = {"content": [{"text": reply.text}], "isError": reply.is_error}
            check(result | ({} if reply.data is None else {"structuredContent": reply.data}), call)
        before = nodes("read_graph")
    assert comparable(before) == comparable(case["final"]) == comparable(stored(home, file))
    # In order
    assert file is None or before == case["final"] == parsed(file)
    forget_index(home)
    with open_session(home, watch=False) as memory:
        assert Nodes(memory, **options)("read_graph") == before


@pytest.mark.promise("002-14.2")
@pytest.mark.parametrize("case", CASES[:OVER_STDIO], ids=lambda case: case["id"])
def test_cases_hold_over_stdio_and_after_a_restart(
    case: dict[str, Any], tmp_path: Path, file: Path | None
) -> None:
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
