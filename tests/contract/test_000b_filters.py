"""Contract 000b, 12.7: filters of search_notes, in parameters and in the text, and queries nobody would write."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace import open_memory
from contract.note_tools import Tools, put
from contract.tables import tables

TABLES = tables("note_filters")

pytestmark = pytest.mark.promise("000b-12.7")

HEADERS = TABLES["headers"]
BODIES = {
    "spec": "- [decision] use tabs #Dark\n",
    "log": "- [Decision] use spaces\n- [fact] it rained #ui\n",
    "bare": "- [x] done #ui/deep\n",
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("filters")
    for name, header in HEADERS.items():
        front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in header.items())
        put(root / f"home/notes/{name}.md", f"---\n{front}---\nsame words\n{BODIES.get(name, '')}")
    put(root / "home/memories/note.md", "---\nsource: me\nscope: agent:ada\n---\n- same words #ui\n")
    put(root / "home/categories/inbox/memo.md", "same words too\n")
    with open_memory(root / "home", watch=False) as memory:
        yield Tools(memory)


def names(tools: Tools, **arguments: Any) -> set[str]:
    return {Path(path).stem for path in tools.paged("search_notes", "results", "file_path", **arguments)}


EVERY = {*HEADERS, "note", "memo"}
FILTERED = TABLES["filtered"]


@pytest.mark.parametrize(("arguments", "expected"), FILTERED, ids=[str(given)[:60] for given, _ in FILTERED])
def test_filters_keep_just_what_passes(shelf: Tools, arguments: dict[str, Any], expected: set[str]) -> None:
    assert names(shelf, **arguments) == set(expected)


def test_a_word_with_a_colon_that_is_no_filter_is_text(tools: Tools) -> None:
    tools.put("a.md", "see http://example.org/x and key:value at 10:30\n")
    tools.put("b.md", "nothing\n")
    for query in ("http://example.org", "key:value", "10:30", "see key:value", "Key:Value"):
        assert tools.found(query) == {"a.md"}, query
    tools.put("c.md", "after nonsense before key\n")
    assert tools.found("after:nonsense key") == {"c.md"}


def test_a_category_filter_shows_the_observation(shelf: Tools) -> None:
    hits = shelf("search_notes", query="words", categories=["decision"])["results"]
    assert {hit["file_path"]: "use " in hit["snippet"] for hit in hits} == {"spec.md": True, "log.md": True}
    assert not any("rained" in hit["snippet"] for hit in hits)


def test_the_newest_come_first_without_a_query(tmp_path: Path) -> None:
    now = datetime(2026, 3, 11, tzinfo=UTC)
    with open_memory(tmp_path / "home", clock=lambda: now, watch=False) as memory:
        tools = Tools(memory)
        for name, age in (("b", 2), ("a", 1), ("c", 3)):
            moment = (now - timedelta(days=age)).timestamp()
            os.utime(tools.put(f"{name}.md", "---\nstatus: open\n---\n"), (moment, moment))
        assert tools.paged("search_notes", "results", "file_path", status="open") == ["a.md", "b.md", "c.md"]
        assert tools.paged("search_notes", "results", "file_path", query="status:open after:2d") == ["a.md", "b.md"]
        assert tools.paged("search_notes", "results", "file_path", query="status:open before:2d") == ["c.md"]


def test_neither_query_nor_filter_is_an_error(shelf: Tools) -> None:
    for arguments in ({}, {"query": ""}, {"query": "  "}, {"project": "notes"}, {"tags": []}):
        text = shelf.refused("search_notes", "invalid", **arguments)
        assert "`query`" in text
        assert "recent_activity" in text


@pytest.mark.parametrize("bad", [{"a": {"$no": 1}}, {"a": {"$in": 3}}, {"a": {"$between": [1]}}, {"a": {}}, {"": 1}])
def test_a_filter_nobody_understands_is_named(shelf: Tools, bad: dict[str, Any]) -> None:
    reply = shelf.call("search_notes", query="same", metadata_filters=bad)
    assert not reply.is_error or "metadata_filters" in reply.text


NASTY = [*TABLES["nasty"], "a" * 5000, "x " * 3000]


@pytest.mark.parametrize("query", NASTY, ids=lambda query: ascii(query)[:30])
def test_no_query_makes_an_engine_error(shelf: Tools, query: str) -> None:
    for kind in ("text", "title", "permalink", "hybrid"):
        reply = shelf.call("search_notes", query=query, search_type=kind)
        if reply.is_error:
            assert reply.data["code"] in ("invalid", "project_not_found", "outside")
            assert "fts" not in reply.text.lower()
            assert "sql" not in reply.text.lower()


WORDS = st.sampled_from(
    ["same", "words", "AND", "OR", "NOT", '"', "(", ")", "*", "tag:ui", "type:", "NEAR(", ":", "中文", "-", "^"]
)
QUERIES = st.one_of(
    st.text(max_size=60),
    st.lists(WORDS, max_size=12).map(" ".join),
    st.lists(st.one_of(WORDS, st.text(max_size=5))).map("".join),
)


@settings(max_examples=250, deadline=None)
@given(QUERIES, st.sampled_from(["text", "title", "permalink", "vector"]))
def test_any_text_is_a_query(shelf: Tools, query: str, kind: str) -> None:
    reply = shelf.call("search_notes", query=query, search_type=kind)
    if reply.is_error:
        assert reply.data["code"] in ("invalid", "project_not_found", "outside")
    else:
        assert reply.data["total"] >= len(reply.data["results"])
