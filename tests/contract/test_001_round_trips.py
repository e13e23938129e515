"""Contract 001, 17.3: what is written is in the file, and comes back from it, byte for byte."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.home_kinds import notes_below
from contract.note_tools import put, texts
from contract.tables import tables
from memoranda import Draft
from memoranda.engine import open_session

TABLES = tables("memory_contents")

pytestmark = pytest.mark.promise("001-17.3")

CONTENTS = {
    "plain": "user prefers dark mode",
    "CRLF": "one\r\ntwo\r\n",
    "bare CR": "one\rtwo\r",
    "edge newlines": "\n\n text \n\n\n",
    "edge blanks": "  \t text\t  ",
    "a rule first": "---\nnot: frontmatter\n---\nbody",
    "rules inside": "text\n---\nmore\n---\n",
    "dots": "...\n---\n...",
    "only a rule": "---",
    "emoji": "👩‍🚀 🇩🇪 e\u0301 \u200d 😀",
    "scripts": "中文 日本語 한국어 עברית العربية ไทย",
    "a BOM inside": "te\ufeffxt",
    "separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "controls": "a\x01\x1b[0m\x7f",
    "NUL": "before\x00after",
    "quotes": "'\"`$HOME %s {x} \\n \\",
    "yaml": "key: [1, 2\n- : ?",
    "many lines": "0123456789 äöü 中文\n" * 3_000,
    "one long line": "x" * 200_000,
    "links": "[[a]] ![[b|c]] [[#d]] [[",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_a_content_comes_back_byte_for_byte(terminal: Any, content: str) -> None:
    written = json.loads(
        terminal.ok("write", "-", "--category", "knowledge", "--json", stdin=content)
    )["memory"]
    assert written["content"] == content
    assert written["content_hash"] == hashlib.sha256(content.encode()).hexdigest()
    data = (terminal.home / written["path"]).read_bytes()
    header, _, body = data.partition(b"\n---\n")
    assert header.startswith(b"---\nid: ")
    assert body == content.encode() + b"\n"
    assert f"content_hash: {written['content_hash']}".encode() in header
    assert json.loads(terminal.ok("read", written["id"], "--json"))["memory"]["content"] == content
    assert terminal.ok("read", written["id"]).split("\n\n", 1)[1] == content + "\n"
    (listed,) = json.loads(terminal.ok("list", "--json"))["memories"]
    assert listed["content"] == content
    terminal.ok("tag", written["id"], "--add", "later")
    assert json.loads(terminal.ok("read", written["id"], "--json"))["memory"]["content"] == content
    terminal.ok("undo")
    assert (terminal.home / written["path"]).read_bytes() == data
    terminal.ok("delete", written["id"])
    terminal.ok("restore", written["id"])
    assert (terminal.home / written["path"]).read_bytes() == data


@pytest.mark.parametrize("content", ["", " ", "\n", "\r\n \t", "\u3000"])
def test_nothing_but_blanks_is_refused(terminal: Any, content: str) -> None:
    ran = terminal("write", "-", stdin=content)
    assert (ran.status, ran.err) == (1, "Error: content must not be empty\n")
    assert not list(terminal.home.rglob("*.md"))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory):
    with open_session(tmp_path_factory.mktemp("trips") / "home", watch=False) as memory:
        yield memory


BREAKS = ["\n", "\r\n", "\r", " ", "\t", "\u2028"]
PIECES = st.sampled_from(
    [*BREAKS, "---", "...", "id: x", "# ", "[[", "]]", "- ", "\ufeff", "\x00", "é", "😀"]
)
ANY = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=15).map("".join))


@given(
    ANY.filter(str.strip),
    st.lists(st.text(min_size=1, max_size=12).filter(lambda tag: tag.strip()), max_size=3),
)
def test_any_content_comes_back(memory, content: str, tags: list[str]) -> None:
    note = memory.write(Draft(content, project="categories", category="knowledge", tags=tags))
    assert note.content == content
    assert memory.read(note.id).content == content
    file = memory.home / "categories" / note.path
    assert file.read_bytes().endswith(b"\n---\n" + content.encode() + b"\n")
    tagged = memory.tag(note, add=["x"])
    assert tagged.content == content
    assert [tag for tag in tagged.tags if tag != "x"] == [tag for tag in note.tags if tag != "x"]
    memory.delete(note)
    assert not file.exists()


REFERENCE = TABLES["reference"]


def test_a_tree_of_the_reference_program_is_read_with_nothing_lost(terminal: Any) -> None:
    for path, text in REFERENCE.items():
        put(terminal.home / path, text)
    before = texts(terminal.home)
    listed = {
        memory["content"]: memory
        for memory in json.loads(terminal.ok("list", "--json", "--limit", "0"))["memories"]
    }
    known_thing = listed["known thing"]
    boxed = listed["boxed thing"]
    assert (known_thing["phase"], known_thing["category"]) == ("organized", "knowledge")
    assert (boxed["phase"], boxed["category"]) == ("inbox", "inbox")
    assert (known_thing["tags"], known_thing["source"], known_thing["access_count"]) == (
        ["go", "cli"],
        "claude",
        3,
    )
    assert known_thing["created_at"].startswith("2026-05-07T02:00:00.123456")
    assert {"short thing", "skilled thing"} <= set(listed)
    assert (listed["short thing"]["phase"], listed["skilled thing"]["phase"]) == (
        "inbox",
        "organized",
    )
    assert (listed["short thing"]["scope"], listed["skilled thing"]["category"]) == (
        "agent:claude",
        "skills",
    )
    now = notes_below(texts(terminal.home))
    assert {name: data for name, data in now.items() if not name.startswith(".memoranda")} == before
    terminal.ok("tag", "550e8400", "--add", "new")
    text = (
        terminal.home / "categories/knowledge/550e8400-e29b-41d4-a716-446655440000.md"
    ).read_text()
    assert "custom: kept\n" in text
    assert text.endswith("---\nknown thing\n")
