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
    return [
        [server.receive()["result"] for _ in call]
        for server, call in zip(servers, calls, strict=True)
    ]


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


@pytest.mark.slow
def test_two_servers_write_and_edit_a_hundred_notes_each(home: Path, servers: list[Server]) -> None:
    notes = {
        who: [
            (f"Note {who} {n}", f"- [fact] by {who} {n} #t\n- next [[Note {who} {n + 1}]]\n")
            for n in range(COUNT)
        ]
        for who in "ab"
    }
    creations = [
        [
            ("write_note", {"title": title, "directory": "shared", "content": text})
            for title, text in note
        ]
        for note in notes.values()
    ]
    append = {"operation": "append"}
    edits = [
        [
            (
                "edit_note",
                append
                | {
                    "identifier": f"notes/shared/note-{who}-{n}",
                    "content": f"- [more] {who} {n}\n",
                },
            )
            for n in range(COUNT)
        ]
        # Each the other's notes
        for who in "ba"
    ]
    written = both(servers, creations)
    edited = both(servers, edits)
    assert not [
        answer
        for results in (written, edited)
        for result in results
        for answer in result
        if answer["isError"]
    ]
    files = {f"shared/{path}": data for path, data in texts(home / "notes/shared").items()}
    acknowledged = {
        answer["structuredContent"]["file_path"]: answer["structuredContent"]["checksum"]
        for answers_of_server in edited
        for answer in answers_of_server
    }
    assert {
        path: hashlib.sha256(data).hexdigest()[:8] for path, data in files.items()
    } == acknowledged
    assert len(files) == 2 * COUNT
    for path, data in files.items():
        who, number = re.fullmatch(r"shared/Note (\w) (\d+)\.md", path).groups()
        assert data.endswith(f"{notes[who][int(number)][1]}- [more] {who} {number}\n".encode())
    rows = index_of(home, "select path, permalink, id from note where path like 'shared/%'")
    assert sorted(path for path, _, _ in rows) == sorted(files)
    assert (
        len({permalink for _, permalink, _ in rows}) == len({id for _, _, id in rows}) == 2 * COUNT
    )
    for server in servers:
        reply = server.data("search_notes", categories=["more"], page_size=100)
        assert reply["total"] == 2 * COUNT
        (context,) = server.data("build_context", url="notes/shared/note-a-7")["results"]
        facts = [
            (observation["category"], observation["content"])
            for observation in context["observations"]
        ]
        assert facts == [("fact", "by a 7 #t"), ("more", "a 7")]
        links = sorted(
            (relation["direction"], relation["target"]) for relation in context["relations"]
        )
        assert links == [("in", "Note a 6"), ("out", "Note a 8")]
    links = "select count(*), count(distinct note || target) from link where target like 'Note %'"
    assert index_of(home, links) == [(2 * COUNT, 2 * COUNT)]
    with open_session(home, watch=False) as memory:
        changes = [change for change in memory.log(limit=0) if change.path.startswith("shared/")]
        assert len({change.number for change in changes}) == 4 * COUNT
        assert {change.agent for change in changes} == {"one", "two"}
        before = Tools(memory).paged("search_notes", "results", "permalink", query="by")
        assert len(before) == 2 * COUNT
        memory.reindex()
        assert Tools(memory).paged("search_notes", "results", "permalink", query="by") == before


def test_two_servers_edit_the_same_note(home: Path, servers: list[Server]) -> None:
    servers[0].data("write_note", title="Shared", content="start\n")
    shared = {"identifier": "Shared", "operation": "append"}
    calls = [
        [("edit_note", shared | {"content": f"- [{who}] {n}\n"}) for n in range(50)] for who in "ab"
    ]
    edited = both(servers, calls)
    assert not [
        answer for answers_of_server in edited for answer in answers_of_server if answer["isError"]
    ]
    lines = (home / "notes/Shared.md").read_text().splitlines()
    for who in "ab":
        assert [line for line in lines if line.startswith(f"- [{who}]")] == [
            f"- [{who}] {n}" for n in range(50)
        ]


def test_of_two_servers_that_write_the_same_new_note_one_wins(
    home: Path, servers: list[Server]
) -> None:
    calls = [
        [("write_note", {"title": f"Race {n}", "content": who}) for n in range(40)] for who in "ab"
    ]
    first_answers, second_answers = both(servers, calls)
    for number, (a, b) in enumerate(zip(first_answers, second_answers, strict=True)):
        assert a["isError"] != b["isError"]
        loser, winner = (a, "b") if a["isError"] else (b, "a")
        assert loser["structuredContent"]["code"] == "exists"
        assert (home / f"notes/Race {number}.md").read_text().endswith(f"\n{winner}\n")


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
        assert reader.data("search_notes", query=f"turnword{number}")["total"] == 1
        reader.data("move_note", identifier=f"Turn {number}", destination_path=f"moved/{number}.md")
        assert (
            writer.data("search_notes", query=f"turnword{number}")["results"][0]["file_path"]
            == f"moved/{number}.md"
        )
        writer.data("delete_note", identifier=f"moved/{number}.md")
        assert reader.data("search_notes", query=f"turnword{number}")["total"] == 0
