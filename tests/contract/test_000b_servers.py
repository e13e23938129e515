"""Contract 000b, 12.14: two servers that write and edit in one project at once lose nothing and
double nothing.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.mcp_server import Server
from contract.note_tools import Tools, texts
from memoranda.engine import open_session

pytestmark = pytest.mark.promise("000b-12.14")

COUNT = 100


def both(
    servers: list[Server], calls: list[list[tuple[str, dict[str, Any]]]]
) -> list[list[dict[str, Any]]]:
    """Send each server its calls without waiting for answers in between; the results in order."""
    for server, call in zip(servers, calls, strict=True):
        for tool, arguments in call:
            server.send("tools/call", {"name": tool, "arguments": arguments})
    results = []
    for server, call in zip(servers, calls, strict=True):
        results.append([server.receive()["result"] for _ in call])
    return results


def assert_no_error(results: list[list[dict[str, Any]]]) -> None:
    """No answer of either server is an error."""
    for answers_of_server in results:
        for answer in answers_of_server:
            assert not answer["isError"], answer


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers") / "home"


@pytest.fixture(scope="module")
def servers(home: Path) -> Iterator[list[Server]]:
    """Two servers of one home, each for another agent; no two tests use the same notes."""
    with (
        Server("--home", str(home), "--agent", "one") as first,
        Server("--home", str(home), "--agent", "two") as second,
    ):
        yield [first, second]
        assert [server.close() for server in (first, second)] == [0, 0]


def index_of(home: Path, query: str) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(f"file:{home}/.memoranda/index.db?mode=ro", uri=True)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def text_of_note(who: str, number: int) -> str:
    return f"- [fact] by {who} {number} #t\n- next [[Note {who} {number + 1}]]\n"


def creation(who: str, number: int) -> tuple[str, dict[str, Any]]:
    """The call that makes a note of agent `who`."""
    arguments = {
        "title": f"Note {who} {number}",
        "directory": "shared",
        "content": text_of_note(who, number),
    }
    return "write_note", arguments


def addition(who: str, number: int) -> tuple[str, dict[str, Any]]:
    """The call that adds a line to a note of agent `who`."""
    arguments = {
        "operation": "append",
        "identifier": f"notes/shared/note-{who}-{number}",
        "content": f"- [more] {who} {number}\n",
    }
    return "edit_note", arguments


def assert_files_hold_both_texts(files: dict[str, bytes]) -> None:
    for path, data in files.items():
        who, number = re.fullmatch(r"shared/Note (\w) (\d+)\.md", path).groups()
        text = text_of_note(who, int(number))
        assert data.endswith(f"{text}- [more] {who} {number}\n".encode())


def assert_server_shows_all(server: Server) -> None:
    """A server shows all notes, and the facts and links of one of them without doubles."""
    reply = server.data("search_notes", categories=["more"], page_size=100)
    assert reply["total"] == 2 * COUNT

    (context,) = server.data("build_context", url="notes/shared/note-a-7")["results"]
    facts = []
    for observation in context["observations"]:
        facts.append((observation["category"], observation["content"]))
    assert facts == [("fact", "by a 7 #t"), ("more", "a 7")]

    links = []
    for relation in context["relations"]:
        links.append((relation["direction"], relation["target"]))
    assert sorted(links) == [("in", "Note a 6"), ("out", "Note a 8")]


@pytest.mark.slow
def test_two_servers_write_and_edit_a_hundred_notes_each(home: Path, servers: list[Server]) -> None:
    creations = [[creation(who, n) for n in range(COUNT)] for who in "ab"]
    # Each server edits the other's notes
    edits = [[addition(who, n) for n in range(COUNT)] for who in "ba"]

    written = both(servers, creations)
    edited = both(servers, edits)

    assert_no_error(written)
    assert_no_error(edited)

    files = {f"shared/{path}": data for path, data in texts(home / "notes/shared").items()}
    assert len(files) == 2 * COUNT
    assert_files_hold_both_texts(files)

    acknowledged = {}
    for answers_of_server in edited:
        for answer in answers_of_server:
            data = answer["structuredContent"]
            acknowledged[data["file_path"]] = data["checksum"]
    checksums = {path: hashlib.sha256(data).hexdigest()[:8] for path, data in files.items()}
    assert checksums == acknowledged

    rows = index_of(home, "select path, permalink, id from note where path like 'shared/%'")
    assert sorted(path for path, _, _ in rows) == sorted(files)
    assert len({permalink for _, permalink, _ in rows}) == 2 * COUNT
    assert len({id for _, _, id in rows}) == 2 * COUNT

    for server in servers:
        assert_server_shows_all(server)

    links = "select count(*), count(distinct note || target) from link where target like 'Note %'"
    assert index_of(home, links) == [(2 * COUNT, 2 * COUNT)]

    with open_session(home, watch=False) as memory:
        changes = [change for change in memory.log(limit=0) if change.path.startswith("shared/")]
        assert len({change.number for change in changes}) == 4 * COUNT
        agents = {change.agent for change in changes}
        assert agents == {"one", "two"}

        before = Tools(memory).paged("search_notes", "results", "permalink", query="by")
        assert len(before) == 2 * COUNT
        memory.reindex()
        assert Tools(memory).paged("search_notes", "results", "permalink", query="by") == before


def test_two_servers_edit_the_same_note(home: Path, servers: list[Server]) -> None:
    servers[0].data("write_note", title="Shared", content="start\n")
    shared = {"identifier": "Shared", "operation": "append"}
    lines_of_agent = {who: [f"- [{who}] {n}" for n in range(50)] for who in "ab"}
    calls = []
    for agent_lines in lines_of_agent.values():
        calls.append([("edit_note", shared | {"content": f"{line}\n"}) for line in agent_lines])

    assert_no_error(both(servers, calls))

    lines = (home / "notes/Shared.md").read_text().splitlines()
    for who, agent_lines in lines_of_agent.items():
        assert [line for line in lines if line.startswith(f"- [{who}]")] == agent_lines


def test_of_two_servers_that_write_the_same_new_note_one_wins(
    home: Path, servers: list[Server]
) -> None:
    calls = []
    for who in "ab":
        calls.append([("write_note", {"title": f"Race {n}", "content": who}) for n in range(40)])
    first_answers, second_answers = both(servers, calls)
    for number, (a, b) in enumerate(zip(first_answers, second_answers, strict=True)):
        assert a["isError"] != b["isError"]
        loser, winner = (a, "b") if a["isError"] else (b, "a")
        assert loser["structuredContent"]["code"] == "exists"
        text = (home / f"notes/Race {number}.md").read_text()
        assert text.endswith(f"\n{winner}\n")


def test_a_checksum_of_before_the_other_servers_edit_is_a_conflict(servers: list[Server]) -> None:
    first, second = servers
    read = first.data("write_note", title="Guarded", content="start\n")["checksum"]
    second.data("edit_note", identifier="Guarded", operation="append", content="two\n")
    late = first.call(
        "edit_note",
        identifier="Guarded",
        operation="append",
        content="one\n",
        expected_checksum=read,
    )
    assert late["structuredContent"]["code"] == "conflict"
    now = first.data("read_note", identifier="Guarded")["checksum"]
    first.data(
        "edit_note",
        identifier="Guarded",
        operation="append",
        content="one\n",
        expected_checksum=now,
    )


def test_what_one_server_writes_the_other_finds_by_its_next_call(servers: list[Server]) -> None:
    for number in range(30):
        writer = servers[number % 2]
        reader = servers[1 - number % 2]
        writer.data("write_note", title=f"Turn {number}", content=f"turnword{number}\n")
        total = reader.data("search_notes", query=f"turnword{number}")["total"]
        assert total == 1
        reader.data("move_note", identifier=f"Turn {number}", destination_path=f"moved/{number}.md")
        assert (
            writer.data("search_notes", query=f"turnword{number}")["results"][0]["file_path"]
            == f"moved/{number}.md"
        )
        writer.data("delete_note", identifier=f"moved/{number}.md")
        total = reader.data("search_notes", query=f"turnword{number}")["total"]
        assert total == 0
