"""The knowledge graph in a JSON Lines file used in place, over MCP stdio (contract 002, 6, 8, 9 and
14).
"""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from contract.graph_tools import Nodes
from contract.home_kinds import FILE
from contract.mcp_server import Server, environment
from contract.tables import tables
from contract.test_002_graph import RESOURCES, answers, entity, parsed, relation, told
from contract.test_002_graph import serving as serving_notes
from memoranda.engine import open_session
from memoranda.engine.graphs import opener

TABLES = tables("graph_file")


def serving(home: Path, file: Path, *arguments: str, **env: str) -> Server:
    return Server(
        *(arguments or ("--tools", "graph")),
        "--graph-file",
        str(file),
        MEMORY_HOME=str(home),
        **env,
    )


def is_alone(file: Path) -> bool:
    return [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place" / "memory.jsonl"


@pytest.mark.folder_home(FILE)
@pytest.mark.promise("002-14.21", "002-14.24")
def test_a_bad_line_is_a_warning_beside_the_answer_and_on_stderr_once(
    tmp_path: Path, file: Path
) -> None:
    line = (
        json.dumps(
            {"type": "entity", "name": "Ada", "entityType": "p", "observations": [], "createdAt": 1}
        )
        + "\n"
    )
    file.write_text(f"{line}torn\n")
    bad_line = "memory.jsonl line 2: not JSON, kept and ignored"
    with serving(tmp_path, file) as server:
        for tool, arguments in (
            ("read_graph", {}),
            ("search_nodes", {"query": "ada"}),
            ("open_nodes", {"names": ["Ada"]}),
        ):
            result = server.call(f"memory_{tool}", **arguments)
            assert result["_meta"] == {"memoranda/warnings": [bad_line]}
            assert result["structuredContent"]["entities"] == [entity("Ada", kind="p")]
        with file.open("a") as appended:
            appended.write(
                json.dumps({"type": "relation", "from": "Ada", "to": "x", "relationType": "y"})
                + "\n"
            )
        assert server.data("memory_open_nodes", names=["Ada"])["relations"] == [relation("Ada y x")]
        server.data(
            "memory_add_observations", observations=[{"entityName": "Ada", "contents": ["z"]}]
        )
        assert file.read_text().startswith(line.replace("[]", '["z"]') + "torn\n")
        assert server.close() == 0
        # It was loaded twice
        assert server.errors().splitlines() == [bad_line, bad_line]


@pytest.mark.folder_home(FILE)
@pytest.mark.promise("002-14.21")
def test_an_array_is_refused_and_a_resource_does_not_show_it_as_empty(
    tmp_path: Path, file: Path
) -> None:
    file.write_text("[1]")
    with serving(tmp_path, file, "--as", "server-memory") as server:
        assert server.ask("resources/subscribe", {"uri": RESOURCES[1]})["result"] == {}
        result = server.call("read_graph")
        assert result["isError"]
        text = result["content"][0]["text"]
        assert text.startswith("memory.jsonl is a JSON array")
        assert text.endswith(f"memory graph import {file}")
        assert text in json.dumps(server.ask("resources/read", {"uri": RESOURCES[1]})["error"])
        reply = server.call("create_entities", entities=[entity("x")])
        assert reply["isError"]

    assert file.read_text() == "[1]"


@pytest.mark.folder_home(FILE)
@pytest.mark.promise("002-14.22", "002-14.12")
def test_a_subscriber_is_told_of_changes_by_us_and_by_others_and_a_no_op_leaves_the_file(
    tmp_path, file
):
    with serving(tmp_path, file) as server:
        server.ask("resources/subscribe", {"uri": RESOURCES[0]})
        assert told(server, "read_graph") == []
        assert not file.exists()
        assert told(server, "create_entities", entities=[entity("Ada", "é")]) == [RESOURCES[0]]
        before = file.stat()
        assert told(server, "create_entities", entities=[entity("Ada")]) == []
        assert told(server, "delete_entities", entityNames=["x"]) == []
        assert file.stat() == before or file.stat().st_mtime_ns == before.st_mtime_ns
        with file.open("a") as appended:
            appended.write('{"type":"entity","name":"Bob","entityType":"","observations":[]}\n')
        assert told(server, "read_graph", limit=0) == [RESOURCES[0]]
        (content,) = server.ask("resources/read", {"uri": RESOURCES[0]})["result"]["contents"]
        assert json.loads(content["text"]) == parsed(file)
    assert is_alone(file)


@pytest.mark.folder_home(FILE)
@pytest.mark.promise("002-14.23")
def test_we_and_a_server_that_rewrites_the_whole_file_take_turns(
    tmp_path: Path, file: Path
) -> None:
    def other_adds(name: str) -> None:
        """What the reference server does: read all lines, write all lines, no newline at the end."""
        rows = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line.strip()]
        rows.append({"type": "entity", "name": name, "entityType": "thing", "observations": []})
        entities = [row for row in rows if row["type"] == "entity"]
        relations = [row for row in rows if row["type"] == "relation"]
        file.write_text(
            "\n".join(json.dumps(row, ensure_ascii=False) for row in [*entities, *relations])
        )

    with serving(tmp_path, file) as server:
        for number in range(5):
            server.data("memory_create_entities", entities=[entity(f"ours {number}")])
            server.data("memory_create_relations", relations=[relation(f"a{number} b c")])
            other_adds(f"theirs {number}")
            server.data(
                "memory_add_observations",
                observations=[
                    {"entityName": f"theirs {number}", "contents": [str(number)]},
                ],
            )
        graph = server.data("memory_read_graph")
    assert graph == parsed(file)
    expected = []
    for number in range(5):
        expected += [(f"ours {number}", []), (f"theirs {number}", [str(number)])]
    entities = [(entity["name"], entity["observations"]) for entity in graph["entities"]]
    assert entities == expected
    assert len(graph["relations"]) == 5


@pytest.mark.promise("002-14.13")
@pytest.mark.parametrize(
    ("arguments", "env", "graph_file", "place"),
    [
        pytest.param(
            *row_of_table, marks=() if row_of_table[-1] is None else pytest.mark.folder_home(FILE)
        )
        for row_of_table in TABLES["places"]
    ],
)
def test_where_the_graph_file_is_looked_for(
    tmp_path, monkeypatch, arguments, env, graph_file, place
):
    home = tmp_path / "home"
    user = tmp_path / "user"
    work = tmp_path / "work"
    for folder in (home, user, work):
        folder.mkdir()
    if graph_file == "config":
        (home / "config.yaml").write_text("graph:\n  file: ~configured\n")
    elif graph_file:
        (work / graph_file).parent.mkdir()
        (work / graph_file).touch(0o600)
    monkeypatch.chdir(work)
    for name in ("MEMORY_FILE_PATH", "THOUGHTBOX_MEMORY_PATH"):
        monkeypatch.delenv(name, raising=False)
    prefix = "" if "server-memory" in arguments else "memory_"
    with Server(*arguments, HOME=str(user), MEMORY_HOME=str(home), **env) as server:
        entities = server.data(prefix + "read_graph")["entities"]
        assert entities == []
        server.data(prefix + "create_entities", entities=[entity("Ada")])
    if place is None:
        assert (home / "graph" / "Ada.md").exists()
        return
    if place.startswith("HOME/"):
        file = user / place.removeprefix("HOME/")
    else:
        file = work / place

    entities = parsed(file)["entities"]
    assert entities == [entity("Ada")]
    mode = stat.S_IMODE(file.stat().st_mode)
    assert mode == 0o600
    assert not (home / "graph" / "Ada.md").exists()


def begin_addition(server: Server, name: str, text: str) -> None:
    """Send a call that adds an observation to an entity, without waiting for its answer."""
    observations = [{"entityName": name, "contents": [text]}]
    server.begin("memory_add_observations", observations=observations)


def assert_all_are_created(servers: dict[str, Server]) -> None:
    """A hundred entities that each server creates, with all calls in flight."""
    for number in range(100):
        for letter, server in servers.items():
            server.begin("memory_create_entities", entities=[entity(f"{letter}{number}")])
    for server in servers.values():
        for answer in answers(server, 100).values():
            assert answer["structuredContent"]["entities"]


def assert_one_call_creates(servers: dict[str, Server], name: str) -> None:
    """Of twenty calls at once that create an entity, one does."""
    for _ in range(10):
        for server in servers.values():
            server.begin("memory_create_entities", entities=[entity(name)])
    created_counts = []
    for server in servers.values():
        for answer in answers(server, 10).values():
            created_counts.append(len(answer["structuredContent"]["entities"]))
    assert sorted(created_counts) == [0] * 19 + [1]


def assert_all_are_added(servers: dict[str, Server], name: str) -> None:
    """Fifty observations that each server adds to one entity are there, in its order."""
    texts = {letter: [f"{letter}{number}" for number in range(50)] for letter in servers}
    for number in range(50):
        for letter, server in servers.items():
            begin_addition(server, name, texts[letter][number])
    for server in servers.values():
        answers(server, 50)
        (hub,) = server.data("memory_open_nodes", names=[name])["entities"]
    for letter, expected in texts.items():
        added = [text for text in hub["observations"] if text[0] == letter]
        assert added == expected


def assert_seen_at_once(first: Server, second: Server, name: str, text: str) -> None:
    """What a server answers, the next call of the other sees."""
    observations = [{"entityName": name, "contents": [text]}]
    first.data("memory_add_observations", observations=observations)
    entities = second.data("memory_search_nodes", query=text.upper())["entities"]
    assert entities[0]["name"] == name

    deletions = [{"entityName": name, "observations": [text]}]
    second.data("memory_delete_observations", deletions=deletions)
    entities = first.data("memory_open_nodes", names=[name])["entities"]
    assert entities[0]["observations"] == []


@pytest.mark.slow
@pytest.mark.promise("002-14.25")
@pytest.mark.parametrize(
    "kind", ["notes", pytest.param("file", marks=pytest.mark.folder_home(FILE))]
)
def test_calls_in_flight_and_two_processes_lose_nothing_and_see_each_other(tmp_path, file, kind):
    def start(home: str) -> Server:
        if kind == "file":
            return serving(tmp_path / home, file)
        return serving_notes(tmp_path / "home")

    with start("a") as first, start("b") as second:
        servers = {"a": first, "b": second}
        assert_all_are_created(servers)
        assert_one_call_creates(servers, "one")
        assert_all_are_added(servers, "a0")
        with start("c") as third:
            for server in (first, second, third):
                graph = server.data("memory_read_graph", limit=0)
                assert graph["totalEntities"] == 201
        for number in range(5):
            assert_seen_at_once(first, second, "b1", f"x{number}")
    if kind == "file":
        assert len(parsed(file)["entities"]) == 201
        assert is_alone(file)


WRITER = """
import os, sys
from pathlib import Path
from memoranda.engine import open_session
from memoranda.engine.graphs import opener
from contract.graph_tools import Nodes

home = sys.argv[1]
options = {"open_graph": opener(Path(sys.argv[2]))} if sys.argv[2:] else {}
for line in sys.stdin:
    child = os.fork()
    if not child:
        with open_session(home, watch=False) as memory:
            nodes = Nodes(memory, **options)
            print("pid", os.getpid(), flush=True)
            for number in range(int(line), int(line) + 6):
                entities = [{"name": f"{number} {part}", "entityType": "", "observations": ["x"]} for part in "abc"]
                nodes("create_entities", entities=entities)
                print("made", number, flush=True)
                nodes("add_observations", observations=[{"entityName": "hub", "contents": [str(number)]}])
                print("noted", number, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print("dead", 0, flush=True)
"""
"""For each line read, the number to begin with, forks a process that calls twelve tools and says
what was done.
"""


def killed_twenty_times(program: list[str]) -> dict[str, set[int]]:
    """Run WRITER, kill each of its children at a random event, and return the numbers of events."""
    chance = random.Random(11)
    numbers: dict[str, set[int]] = {"made": set(), "noted": set(), "pid": set(), "dead": set()}
    env = environment(PYTHONPATH=os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")]))
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True, env=env) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for turn in range(20):
            writer.stdin.write(f"{turn * 6 + 1}\n")
            writer.stdin.flush()
            pid = 0
            events_left = chance.randrange(12)
            event = ""
            while event != "dead":
                event, number = writer.stdout.readline().split()
                numbers[event].add(int(number))
                if event == "pid":
                    pid = int(number)
                else:
                    events_left -= 1
                if events_left == 0:
                    # It was done already
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        writer.stdin.close()
    return numbers


@pytest.mark.slow
@pytest.mark.promise("002-14.26")
@pytest.mark.parametrize(
    "kind", ["notes", pytest.param("file", marks=pytest.mark.folder_home(FILE))]
)
def test_twenty_kills_lose_nothing_acknowledged_and_leave_no_call_half_done(tmp_path, file, kind):
    home = tmp_path / "home"
    places = [file] if kind == "file" else []
    with open_session(home, watch=False) as memory:
        Nodes(memory, **({"open_graph": opener(file)} if places else {})).entity("hub")
    program = [sys.executable, "-c", WRITER, str(home), *map(str, places)]

    done_numbers = killed_twenty_times(program)

    assert len(done_numbers["noted"]) < 20 * 6
    made_numbers = done_numbers["made"]
    noted_numbers = {str(number) for number in done_numbers["noted"]}
    with serving(home, file) if places else serving_notes(home) as server:
        first, *other_entities = server.data("memory_read_graph")["entities"]
    names = {entity["name"] for entity in other_entities}
    whole = {int(name.split()[0]) for name in names}
    assert made_numbers <= whole
    expected = set()
    for number in whole:
        expected |= {f"{number} a", f"{number} b", f"{number} c"}
    assert names == expected
    assert noted_numbers <= set(first["observations"])
    if places:
        entities = parsed(file)["entities"]
        assert entities == [first, *other_entities]
        assert is_alone(file)
    else:
        file_names = {place.name for place in (home / "graph").iterdir()}
        assert file_names == {f"{name}.md" for name in {"hub", *names}}


@pytest.mark.folder_home(FILE)
@pytest.mark.promise("002-14.27")
def test_a_read_only_file_is_read_and_refuses_changes(tmp_path, file, monkeypatch):
    line = '{"type":"entity","name":"Ada","entityType":"","observations":[]}\n'
    file.write_text(line)
    real = os.open

    def refusing(path: Any, flags: int, *arguments: Any, **more: Any) -> int:
        if str(path) == str(file) and flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *arguments, **more)

    monkeypatch.setattr(os, "open", refusing)
    with open_session(tmp_path / "home", watch=False) as memory:
        nodes = Nodes(memory, open_graph=opener(file))
        assert nodes.names("read_graph") == ["Ada"]
        refusal = nodes.error("delete_entities", entityNames=["Ada"])
        assert refusal == "Could not write memory.jsonl: permission denied. Nothing was changed."
        assert nodes.names("read_graph") == ["Ada"]
    assert file.read_text() == line


@pytest.mark.folder_home(FILE)
@pytest.mark.promise("002-14.27")
def test_a_folder_in_place_of_the_file_is_named_as_one_and_no_call_advises_to_remove_it(
    tmp_path, file
):
    file.mkdir()
    with open_session(tmp_path / "home", watch=False) as memory:
        nodes = Nodes(memory, open_graph=opener(file))
        errors = {
            nodes.error("read_graph"),
            nodes.error("delete_entities", entityNames=["Ada"]),
        }
    assert errors == {
        "Could not read memory.jsonl: it is a folder. "
        "Name the file of the graph in it, or a new one."
    }


@pytest.mark.folder_home(FILE)
@pytest.mark.promise("002-14.14", "002-14.24")
def test_the_note_tools_of_the_server_find_read_and_walk_the_entities_of_the_file(
    tmp_path: Path, file: Path
) -> None:
    with serving(tmp_path, file, "--tools", "graph,notes") as server:
        server.data(
            "memory_create_entities", entities=[entity("useState", "returns a pair", kind="hook")]
        )
        server.data("memory_create_entities", entities=[entity("React")])
        server.data("memory_create_relations", relations=[relation("useState part_of React")])
        (hit,) = server.data("search_notes", query="pair")["results"]
        assert (hit["title"], hit["permalink"]) == ("useState", "memory/use-state")
        assert (
            "- returns a pair"
            in server.call("read_note", identifier="memory/use-state")["content"][0]["text"]
        )
        assert (
            "React"
            in server.call("build_context", url="memory://memory/use-state")["content"][0]["text"]
        )
        assert "useState" in server.call("recent_activity")["content"][0]["text"]
        with file.open("a") as appended:
            appended.write(
                '{"type":"entity","name":"Bob","entityType":"","observations":["plays chess"]}\n'
            )
        assert [
            result["title"] for result in server.data("search_notes", query="chess")["results"]
        ] == ["Bob"]
        before = file.read_bytes()
        for tool, arguments in (
            (
                "edit_note",
                {"identifier": "memory/use-state", "operation": "append", "content": "x"},
            ),
            ("write_note", {"title": "New", "content": "x", "project": "memory"}),
            ("delete_note", {"identifier": "memory/use-state"}),
            ("move_note", {"identifier": "memory/use-state", "destination_path": "x.md"}),
        ):
            reply = server.call(tool, **arguments)
            assert reply["isError"], tool
            assert "graph tools" in reply["content"][0]["text"]
        assert file.read_bytes() == before
        ranked = server.data("memory_search_nodes", query="pair returns", ranked=True)
        assert [entity["name"] for entity in ranked["entities"]] == ["useState"]
        server.data("memory_delete_entities", entityNames=["useState"])
        assert server.data("search_notes", query="pair")["total"] == 0
    program = [sys.executable, "-m", "memoranda", "undo"]
    subprocess.run(
        program,
        env=environment(MEMORY_HOME=str(tmp_path)),
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert file.read_bytes() == before
    assert is_alone(file)
