"""Contract 000b, 12.10: write_note's file names, identity, frontmatter and values."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contract.note_tools import Tools, texts
from contract.tables import tables

TABLES = tables("note_writing")

pytestmark = pytest.mark.promise("000b-12.10")

TITLES = TABLES["titles"]


@pytest.mark.parametrize(("title", "name"), TITLES.items(), ids=lambda title: ascii(title)[:24])
def test_a_title_makes_a_file_name_and_is_kept_itself(
    emptied: Tools, title: str, name: str | None
) -> None:
    tools = emptied
    written_note = tools("write_note", title=title, content="text\n", directory="in")
    assert "/" not in written_note["file_path"].removeprefix("in/")
    if name is not None:
        assert written_note["file_path"] == f"in/{name}"
    assert len(written_note["file_path"].removeprefix("in/").removesuffix(".md").encode()) <= 200
    assert list(texts(tools.root())) == [written_note["file_path"]]
    assert written_note["title"] == title.strip()
    for name in (
        written_note["permalink"],
        written_note["file_path"],
        f"memory://{written_note['permalink']}",
    ):
        read = tools("read_note", identifier=name)
        assert read["title"] == title.strip()
        assert read["frontmatter"]["title"] == title.strip()
    tools.memory.reindex()
    assert tools("list_directory", dir_name="in")["entries"][0]["title"] == title.strip()[:1000]
    tools.refused("write_note", "exists", title=title, content="again", directory="in")


def test_names_that_differ_in_case_only_are_one_note(tools: Tools) -> None:
    first = tools("write_note", title="Readme", content="one")
    for title in ("README", "readme", "Read Me"):
        reply = tools.call("write_note", title=title, content="two")
        assert (reply.is_error, reply.data.get("code")) == (
            (True, "exists") if title != "Read Me" else (False, None)
        )
    replaced = tools("write_note", title="README", content="three", overwrite=True)

    assert replaced["file_path"] == first["file_path"]
    assert replaced["permalink"] == first["permalink"]
    assert sorted(texts(tools.root())) == ["Read Me.md", "Readme.md"]


def test_an_overwrite_keeps_id_permalink_written_time_and_the_keys_it_does_not_name(
    tools: Tools,
) -> None:
    head = (
        "---\nid: my-id\ntitle: Old\npermalink: Own/Place\ncreated_at: 2020-01-02T03:04:05Z\n"
        "tags: [a]\nstatus: open\n---\n"
    )
    file = tools.put("deep/Doc.md", f"{head}old text\n")
    overwritten = tools(
        "write_note",
        title="Doc",
        content="new text\n",
        directory="deep",
        overwrite=True,
        tags=["b"],
    )
    assert (overwritten["action"], overwritten["permalink"], overwritten["tags"]) == (
        "updated",
        "Own/Place",
        ["b"],
    )
    header = yaml.load(file.read_text().split("---\n")[1], yaml.BaseLoader)
    assert header == {
        "title": "Doc",
        "type": "note",
        "permalink": "Own/Place",
        "tags": ["b"],
        "status": "open",
        "id": "my-id",
        "created_at": "2020-01-02T03:04:05Z",
    }
    assert file.read_text().endswith("---\nnew text\n") or file.read_text().endswith(
        "---\n\nnew text\n"
    )
    tools.memory.undo()
    assert file.read_text() == f"{head}old text\n"


def test_a_checksum_is_compared_before_an_overwrite(tools: Tools) -> None:
    written_note = tools("write_note", title="Doc", content="one\n")
    before = texts(tools.root())
    tools.refused(
        "write_note",
        "conflict",
        title="Doc",
        content="two\n",
        overwrite=True,
        expected_checksum="12345678",
    )
    assert texts(tools.root()) == before
    tools(
        "write_note",
        title="Doc",
        content="two\n",
        overwrite=True,
        expected_checksum=written_note["checksum"],
    )


def test_the_frontmatter_comes_in_its_order_and_tags_as_a_list(tools: Tools) -> None:
    written_note = tools(
        "write_note",
        title="Doc",
        content="text",
        tags=["b", "a"],
        note_type="spec",
        metadata={"z": 1, "k": "v"},
    )
    text = (tools.root() / "Doc.md").read_text()
    assert re.fullmatch(
        r"---\ntitle: Doc\ntype: spec\npermalink: notes/doc\ntags:\n *- b\n *- a\n"
        r"created_at: '?\S+Z'?\nz: 1\nk: v\n---\n\n?text\n",
        text,
    ), text
    assert written_note["type"] == "spec"
    tools("write_note", title="Bare", content="text")
    assert "tags" not in (tools.root() / "Bare.md").read_text()


def test_frontmatter_in_the_content_is_united_with_the_call_and_the_call_wins(tools: Tools) -> None:
    content = "---\ntitle: Inner\ntype: inner\ntags: [a, b]\nstatus: open\nown: kept\npermalink: My/Own\n---\nbody\n"
    tools(
        "write_note",
        title="Outer",
        content=content,
        note_type="outer",
        tags=["b", "c"],
        metadata={"status": "done"},
    )
    header = tools("read_note", identifier="My/Own")["frontmatter"]
    assert header["title"] == "Outer"
    assert header["type"] == "outer"
    assert header["tags"] == ["a", "b", "c"]
    assert (header["status"], header["own"], header["permalink"]) == ("done", "kept", "My/Own")
    assert (tools.root() / "Outer.md").read_text().count("---\n") == 2
    tools("write_note", title="Second", content="---\ntype: inner\n---\nbody\n")
    assert tools("read_note", identifier="Second")["type"] == "inner"


VALUES = TABLES["values"]


def written(value: Any) -> Any:
    """A value as its frontmatter is shown: numbers in the form they have there."""
    if isinstance(value, list):
        return [written(element) for element in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return value


@pytest.mark.parametrize("value", VALUES, ids=lambda value_of_case: ascii(value_of_case)[:20])
def test_a_value_comes_back_as_it_was_given(emptied: Tools, value: Any) -> None:
    tools = emptied
    tools("write_note", title="Doc", content="body\n", metadata={"key": value})
    header = tools("read_note", identifier="Doc")["frontmatter"]
    assert header["key"] == written(value)
    assert header["title"] == "Doc"
    key = yaml.safe_load((tools.root() / "Doc.md").read_text().split("\n---\n")[0])["key"]
    assert key == value
    if isinstance(value, str) and value.strip():
        total = tools("search_notes", metadata_filters={"key": value})["total"]
        assert total == 1
    tools("edit_note", identifier="Doc", operation="append", content="more\n")
    key = tools("read_note", identifier="Doc")["frontmatter"]["key"]
    assert key == header["key"]


ANY = st.text(max_size=40)


@given(
    ANY,
    ANY,
    st.lists(ANY, max_size=3),
    st.dictionaries(ANY, st.one_of(ANY, st.integers(), st.booleans(), st.none()), max_size=3),
    ANY,
)
def test_whatever_is_written_is_kept_or_refused_with_nothing_written(
    shared, title, content, tags, metadata, directory
):
    before = texts(shared.root())
    reply = shared.call(
        "write_note",
        title=title,
        content=content,
        tags=tags,
        metadata=metadata,
        directory=directory,
        overwrite=True,
    )
    if reply.is_error:
        assert reply.data["code"] in ("invalid", "outside", "exists", "locked")
        assert texts(shared.root()) == before
        return
    file = shared.root() / reply.data["file_path"]
    text = file.read_bytes().decode()
    body = content.removeprefix("\ufeff")
    if not content.startswith(("---", "\ufeff")):
        assert text.endswith(body if body.endswith("\n") else body + "\n")
    read = shared("read_note", identifier=reply.data["file_path"], project="notes")
    assert read["content"] == text
    assert read["title"] == reply.data["title"]


@pytest.mark.parametrize("bad", ["\ud800", "a\udfffb"], ids=["high", "low"])
def test_text_that_is_no_unicode_is_refused_by_every_tool(tools: Tools, bad: str) -> None:
    for tool in tools.registry.tools.values():
        for name, schema in tool.schema["properties"].items():
            if tool.name != "memory" and schema.get("type") == "string" and "enum" not in schema:
                required = dict.fromkeys(tool.schema.get("required", ()), "x") | {
                    "operation": "append"
                }
                arguments = {
                    argument: value
                    for argument, value in required.items()
                    if argument in tool.schema["properties"]
                }
                assert f"`{name}`" in tools.refused(tool.name, "invalid", **arguments | {name: bad})
    assert texts(tools.root()) == {}
