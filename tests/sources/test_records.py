"""A JSON Lines file used in place: what is kept byte for byte, what is refused, and how a change
reaches the disk.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from contract.graph_tools import GraphFile, Nodes, die, person
from memoranda.engine import open_session
from memoranda.engine.graphs import opener

pytestmark = pytest.mark.promise("002-14.21", "002-14.22")

ADA = person("Ada", "likes tea")
BOB = person("Bob")
KNOWS = '{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}\n'


def test_unknown_keys_stay_byte_for_byte_also_when_their_line_changes(
    graph_file: GraphFile,
) -> None:
    line = '{"createdAt": 1.50e3, "type":"entity","name":"Ada","observations":["a"],"entityType":"p","z":{"b": [1]}}\n'
    graph_file.write(line)
    graph_file.add("Ada", "é")
    assert graph_file.data.decode() == line.replace('["a"]', '["a","é"]')
    graph_file.drop("Ada", "a", "é")
    assert graph_file.data.decode() == line.replace('["a"]', "[]")


BAD = {
    b"no JSON\n": "not JSON",
    b'{"type":"entity","name":"To\n': "not JSON",
    b'{"type":"entity","name":"a"}{"type":"enti\n': "not JSON",
    b'{"type":"entity","name":"\xff"}\n': "not UTF-8",
    b"[1]\n": "no JSON object",
    b'{"type":"entity","name":NaN}\n': "not JSON",
    b"[" * 100_000 + b"\n": "not JSON",
    b'{"type":"entity","observations":[]}\n': "an entity without a name",
    b'{"type":"entity","name":"x","observations":[1]}\n': "an entity whose type or observations are no texts",
    b'{"type":"relation","from":"x"}\n': "a relation without from, to or relationType",
    b'{"name":"x"}\n': "an object without a type",
}


def test_a_bad_line_is_skipped_reported_and_kept(
    graph_file: GraphFile, caplog: pytest.LogCaptureFixture
) -> None:
    for bad, why in BAD.items():
        graph_file.write(ADA.encode() + bad + BOB.encode())
        warnings = [f"memory.jsonl line 2: {why}, kept and ignored"]
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert graph_file.names() == ["Ada", "Bob"]
            assert graph_file.warnings() == warnings
        messages = [record.getMessage() for record in caplog.records]
        assert messages == warnings
        graph_file.delete("Ada")
        assert graph_file.data == bad + BOB.encode()
        assert graph_file.warnings() == [f"memory.jsonl line 1: {why}, kept and ignored"]


def test_many_bad_lines_are_five_and_a_number(graph_file: GraphFile) -> None:
    graph_file.write(ADA + "x\n" * 8)
    assert graph_file.warnings()[5:] == ["and 3 more"]
    assert graph_file.nodes.reply("create_entities", {"entities": []}).meta is None


def test_a_newline_is_added_before_an_appended_line(graph_file: GraphFile) -> None:
    graph_file.write(ADA.rstrip("\n"))
    graph_file.nodes.relate("Ada knows Bob")
    assert graph_file.data.decode() == ADA + KNOWS


def test_crlf_blank_lines_and_a_bom_stay(graph_file: GraphFile) -> None:
    first = ADA.replace("\n", "\r\n")
    second = BOB.replace("\n", "\r\n")
    graph_file.write("\ufeff" + first + "\r\n   \n" + second)
    assert graph_file.names() == ["Ada", "Bob"]
    assert graph_file.warnings() == []
    graph_file.add("Bob", "x")
    assert graph_file.data.decode() == "\ufeff" + first + "\r\n   \n" + second.replace(
        "[]", '["x"]'
    )
    graph_file.add("Ada", "y")
    assert graph_file.data.decode().startswith("\ufeff" + first.replace('tea"', 'tea","y"'))


def test_missing_keys_of_an_entity_are_filled_in_when_its_line_changes(
    graph_file: GraphFile,
) -> None:
    graph_file.write('{"type":"entity","name":"Ada"}\n')
    assert graph_file.nodes("read_graph")["entities"] == [
        {"name": "Ada", "entityType": "", "observations": []}
    ]
    graph_file.add("Ada", "x")
    assert (
        graph_file.data.decode()
        == '{"type":"entity","name":"Ada","entityType":"","observations":["x"]}\n'
    )


def test_of_two_lines_of_one_name_the_first_changes_and_both_are_deleted(
    graph_file: GraphFile,
) -> None:
    twin = ADA.replace("likes tea", "other")
    graph_file.write(ADA + twin + BOB)
    assert graph_file.names() == ["Ada", "Ada", "Bob"]
    assert graph_file.nodes.names("open_nodes", names=["Ada"]) == ["Ada", "Ada"]
    graph_file.add("Ada", "other")
    graph_file.drop("Ada", "likes tea")
    assert graph_file.data.decode() == ADA.replace("likes tea", "other") + twin + BOB
    graph_file.delete("Ada")
    assert graph_file.data.decode() == BOB


SHAPES = [
    (f"[{ADA.strip()},{BOB.strip()}]", "a JSON array"),
    ("[1]", "a JSON array"),
    (f"[\n{ADA.strip()},\n{BOB.strip()}\n]\n", "a JSON array"),
    (f"[\n{ADA.strip()},\n{BOB.strip()},\n", "one JSON value over several lines, cut off"),
    (json.dumps({"entities": [1]}, indent=2), "one JSON value over several lines"),
    (json.dumps({"type": "entity", "name": "x"}, indent=2), "one JSON value over several lines"),
    ('\ufeff{"mcpServers": {}}\n', "one JSON object without a type"),
    ("# Notes\n\nnothing here\n", "a file of another kind"),
    ('"text"', "a file of another kind"),
    (ADA.encode("utf-16"), "a file of another kind"),
]
RELATION = {"from": "a", "to": "b", "relationType": "c"}
CALLS: dict[str, dict[str, Any]] = {
    "read_graph": {},
    "search_nodes": {"query": ""},
    "open_nodes": {"names": ["x"]},
    "create_entities": {"entities": [{"name": "x", "entityType": "", "observations": []}]},
    "create_relations": {"relations": [RELATION]},
    "delete_relations": {"relations": [RELATION]},
    "add_observations": {"observations": [{"entityName": "x", "contents": []}]},
    "delete_entities": {"entityNames": ["x"]},
    "delete_observations": {"deletions": []},
}


def test_a_file_of_another_shape_is_refused_by_every_call_and_never_written(
    graph_file: GraphFile,
) -> None:
    for data, shape in SHAPES:
        graph_file.write(data)
        before = graph_file.data
        for tool, arguments in [*CALLS.items()] * 2:
            assert graph_file.nodes.error(tool, **arguments) == (
                f"memory.jsonl is {shape}, not one JSON object a line; nothing was changed."
                f" Take it into the notes with: memory graph import {graph_file.place}"
            )
        assert graph_file.data == before
        graph_file.write(ADA)
        assert graph_file.names() == ["Ada"]


@pytest.mark.parametrize("data", [None, "", " \n\n", "\ufeff"])
def test_nothing_or_no_file_is_an_empty_graph(graph_file: GraphFile, data: str | None) -> None:
    if data is not None:
        graph_file.write(data)
    assert graph_file.nodes("read_graph") == {"entities": [], "relations": []}
    graph_file.delete("x")
    assert graph_file.place.exists() == (data is not None)
    graph_file.nodes.entity("Bob", kind="person")
    assert graph_file.data.decode().endswith(BOB)
    assert graph_file.data.decode().startswith(data or "{")


def test_a_file_and_folders_we_make_are_private(graph_file: GraphFile) -> None:
    place = graph_file.place.parent / "a" / "b.jsonl"
    before = os.umask(0)
    try:
        Nodes(graph_file.memory, open_graph=opener(place)).entity("x")
    finally:
        os.umask(before)

    mode = stat.S_IMODE(place.stat().st_mode)
    assert mode == 0o600
    mode = stat.S_IMODE(place.parent.stat().st_mode)
    assert mode == 0o700


def test_a_large_addition_is_renamed_over_the_file(graph_file: GraphFile) -> None:
    graph_file.write(ADA)
    inode = graph_file.place.stat().st_ino
    graph_file.nodes.entity("big", "x" * 70_000)

    assert graph_file.place.stat().st_ino != inode
    assert graph_file.data.startswith(ADA.encode())
    assert graph_file.is_alone()
    verbs = [change.verb for change in graph_file.memory.log()]
    assert verbs == ["write"]


def test_a_rewrite_keeps_the_mode_and_goes_through_a_symlink(
    graph_file: GraphFile, tmp_path: Path
) -> None:
    real = tmp_path / "real" / "graph.jsonl"
    real.parent.mkdir()
    real.write_text(ADA)
    real.chmod(0o640)
    graph_file.place.symlink_to(real)
    graph_file.add("Ada", "x")

    assert graph_file.place.is_symlink()
    mode = stat.S_IMODE(real.stat().st_mode)
    assert mode == 0o640
    assert '"likes tea","x"' in real.read_text()
    names = [path.name for path in real.parent.iterdir()]
    assert names == ["graph.jsonl"]
    assert graph_file.is_alone()


@pytest.mark.parametrize(
    ("call", "number"), [("rename", errno.EBUSY), ("rename", errno.EXDEV), ("open", errno.EACCES)]
)
def test_a_file_nothing_can_be_renamed_over_is_kept_in_the_history_and_written_in_place(
    graph_file: GraphFile,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    call: str,
    number: int,
) -> None:
    graph_file.write(ADA + BOB)
    inode = graph_file.place.stat().st_ino
    real = getattr(os, call)

    def refused(path: Any, *arguments: Any, **more: Any) -> Any:
        if ".tmp-" in str(path) and str(graph_file.place.parent) in str(path):
            raise OSError(number, os.strerror(number))
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, call, refused)
    graph_file.delete("Ada")
    monkeypatch.undo()
    assert graph_file.data.decode() == BOB
    assert graph_file.place.stat().st_ino == inode
    assert graph_file.is_alone()
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["memory.jsonl cannot be replaced by a rename; it was written in place"]
    history = graph_file.memory.engine.ledger.history
    assert history.text(next(history.changes()).files[0].old or "", "").decode() == ADA + BOB


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_disk_that_refuses_leaves_the_file_as_it_was(
    graph_file: GraphFile, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    graph_file.write(ADA + KNOWS + BOB)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    graph_file.names()
    monkeypatch.setattr(os, call, full)
    for tool, arguments in (
        ("create_entities", {"entities": [{"name": "x", "entityType": "", "observations": []}]}),
        ("delete_entities", {"entityNames": ["Ada"]}),
        ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["x"]}]}),
    ):
        assert (
            graph_file.nodes.error(tool, **arguments)
            == "Could not write memory.jsonl: the disk is full. Nothing was changed."
        )
    monkeypatch.undo()
    assert graph_file.data.decode() == ADA + KNOWS + BOB
    assert graph_file.names() == ["Ada", "Bob"]
    assert graph_file.is_alone()


def test_two_homes_see_one_file_and_a_cursor_survives_what_the_other_deletes(
    graph_file: GraphFile, tmp_path: Path
) -> None:
    graph_file.nodes(
        "create_entities",
        entities=[{"name": str(i), "entityType": "", "observations": []} for i in range(6)],
    )
    page = graph_file.nodes("read_graph", limit=2)
    with open_session(tmp_path / "other", watch=False) as memory:
        other_nodes = Nodes(memory, open_graph=opener(graph_file.place))
        other_nodes("delete_entities", entityNames=["0", "1", "4"])
        other_nodes.entity("6")

    assert graph_file.nodes.names("read_graph", limit=2, cursor=page["nextCursor"]) == ["2", "3"]


def test_what_we_write_is_read_by_any_json_lines_parser(graph_file: GraphFile) -> None:
    graph_file.nodes.entity('a\nb\u2028\x00 é"', "one\r\ntwo", kind="")
    graph_file.nodes.relate("Ada knows Bob")
    graph_file.add('a\nb\u2028\x00 é"', "three")
    assert graph_file.data.count(b"\n") == 2
    assert [json.loads(line) for line in graph_file.data.decode().split("\n") if line] == [
        {
            "type": "entity",
            "name": 'a\nb\u2028\x00 é"',
            "entityType": "",
            "observations": ["one\r\ntwo", "three"],
        },
        {"type": "relation", "from": "Ada", "to": "Bob", "relationType": "knows"},
    ]


def test_a_torn_first_line_is_no_other_shape(graph_file: GraphFile) -> None:
    graph_file.write('{"type":"entity","na')
    assert graph_file.names() == []


@pytest.mark.parametrize(
    ("point", "count"),
    [("rename", 1), ("after rename", 1), *(("fsync", count) for count in range(1, 3))],
)
def test_a_process_that_dies_in_a_rewrite_leaves_the_old_file_or_the_new(
    graph_file: GraphFile, point: str, count: int
) -> None:
    graph_file.write(ADA + BOB)
    new = (ADA + BOB).replace('tea"', 'tea","x"')
    assert die(graph_file, point, count, "rewrite") == 9
    assert graph_file.data.decode() in (ADA + BOB, new)
    assert graph_file.names_anew() == ["Ada", "Bob"]
    assert graph_file.is_alone()
    graph_file.add("Ada", "x")
    assert graph_file.data.decode() == new
