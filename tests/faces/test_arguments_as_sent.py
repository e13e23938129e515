"""Arguments as models and clients send them (amendment 5): blanks, JSON texts, nulls, omissions.

The rule: an empty text for an optional argument is an absent one, a list or object may be JSON
text, and a text that may be empty may be left out. The cases come from what Claude Code, Codex and
Gemini CLI send.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.faces import registry
from memoranda.faces.arguments import check
from memoranda.faces.reply import Reply
from memoranda.faces.tool import Registry

ADA = {"name": "Ada", "entityType": "person", "observations": ["likes tea"]}
EDGE = {"from": "Ada", "to": "Acme", "relationType": "works_at"}


class Caller:
    """Calls any tool of one memory."""

    def __init__(self, memory: MemorySession, tools: Registry):
        self.memory = memory
        self.tools = tools

    def __call__(self, tool: str, **arguments: Any) -> Reply:
        """The reply of a call that must succeed."""
        reply = self.tools.call(self.memory, tool, arguments)
        assert not reply.is_error, reply.text
        return reply


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    with open_session(tmp_path / "home", watch=False) as memory:
        yield Caller(memory, registry(("memory", "notes", "graph", "kv"), memory.settings))


GRAPH_CALLS = [
    ("memory_create_entities", {"entities": [ADA]}),
    ("memory_create_relations", {"relations": [EDGE]}),
    (
        "memory_add_observations",
        {"observations": [{"entityName": "Ada", "contents": ["new"]}]},
    ),
    ("memory_open_nodes", {"names": ["Ada"], "relationTypes": ["works_at"]}),
    ("memory_delete_relations", {"relations": [EDGE]}),
    (
        "memory_delete_observations",
        {"deletions": [{"entityName": "Ada", "observations": ["new"]}]},
    ),
    ("memory_delete_entities", {"entityNames": ["Ada"]}),
]


def test_graph_calls_with_lists_as_json_text_answer_the_same(tmp_path: Path) -> None:
    replies = []
    for as_text in (False, True):
        with open_session(tmp_path / f"home-{as_text}", watch=False) as memory:
            call = Caller(memory, registry(("graph",), memory.settings))
            for tool, arguments in GRAPH_CALLS:
                sent = arguments
                if as_text:
                    sent = {name: json.dumps(value) for name, value in arguments.items()}
                replies.append((as_text, tool, call(tool, **sent).data))
    half = len(replies) // 2

    assert [reply[1:] for reply in replies[:half]] == [reply[1:] for reply in replies[half:]]


def test_lists_inside_items_may_be_json_text_too(caller: Caller) -> None:
    entity = ADA | {"observations": json.dumps(["likes tea", "likes milk"])}
    caller("memory_create_entities", entities=json.dumps([entity]))
    nodes = caller("memory_open_nodes", names='["Ada"]').data
    assert nodes["entities"][0]["observations"] == ["likes tea", "likes milk"]


def without_checksum(text: str) -> str:
    return re.sub(r"checksum: [0-9a-f]{8}", "", text)


@pytest.mark.parametrize("blank", ["", None])
@pytest.mark.parametrize(
    ("tool", "arguments", "optional"),
    [
        ("write_note", {"title": "A", "content": "x"}, ("directory", "project", "tags")),
        ("read_note", {"identifier": "Old"}, ("project",)),
        ("search_notes", {"query": "old"}, ("project", "after_date", "search_type")),
        ("list_directory", {}, ("dir_name", "project", "file_name_glob")),
        ("recent_activity", {}, ("timeframe", "project", "type")),
        ("build_context", {"url": "Old"}, ("project", "timeframe")),
        ("memory_read_graph", {}, ("cursor", "project")),
        ("memory_search_nodes", {"query": ""}, ("cursor", "project")),
    ],
)
def test_blank_optional_arguments_count_as_absent(
    caller: Caller, tool: str, arguments: dict[str, Any], optional: tuple[str, ...], blank: Any
) -> None:
    caller("write_note", title="Old", content="old text")
    schema = caller.tools.tools[tool].schema
    known_names = [name for name in optional if name in schema["properties"]]
    assert known_names, f"{tool} has none of {optional}"
    plain = caller(tool, **arguments)
    if tool == "write_note":
        caller("delete_note", identifier="A")
    sent = caller(tool, **arguments, **dict.fromkeys(known_names, blank))
    # The checksum of a note written again differs by its time
    assert without_checksum(sent.text) == without_checksum(plain.text)


def test_an_edit_without_content_deletes_the_text_that_is_found(caller: Caller) -> None:
    caller("write_note", title="A", content="keep this, drop this")
    caller("edit_note", identifier="A", operation="find_replace", find_text=", drop this")
    assert "keep this\n" in caller("read_note", identifier="A").text + "\n"


def test_a_note_without_content_is_an_empty_note(caller: Caller) -> None:
    caller("write_note", title="Empty")
    assert "Empty" in caller("list_directory").text


def test_create_without_text_makes_an_empty_file_and_never_empties_one(caller: Caller) -> None:
    caller("memory", command="create", path="/memories/a.md")
    caller("memory", command="create", path="/memories/b.md", file_text="text")
    arguments = {"command": "create", "path": "/memories/b.md"}

    reply = caller.tools.call(caller.memory, "memory", arguments)
    assert reply.is_error
    text = caller("memory", command="view", path="/memories/b.md").text
    assert "text" in text


def test_a_rename_with_a_blank_old_path_moves_the_file_of_path(caller: Caller) -> None:
    caller("memory", command="create", path="/memories/a.md", file_text="text")
    names = {"path": "/memories/a.md", "old_path": "", "new_path": "/memories/b.md"}
    reply = caller("memory", command="rename", **names)
    assert reply.text == "Successfully renamed /memories/a.md to /memories/b.md"


def test_a_rename_with_blank_paths_alone_is_refused(caller: Caller) -> None:
    arguments = {"command": "rename", "path": "", "old_path": "", "new_path": "/memories/b.md"}
    reply = caller.tools.call(caller.memory, "memory", arguments)
    assert (reply.text, reply.is_error) == ("Path must start with /memories, got: ", True)


def test_a_text_that_looks_like_json_stays_text(caller: Caller) -> None:
    caller("memory_remember", key="k", value='["a"]')
    assert '["a"]' in caller("memory_recall", key="k").text


@pytest.mark.parametrize("name", ["metadata_filters", "tags", "page"])
def test_json_text_that_is_nested_too_deeply_is_refused_by_name(caller: Caller, name: str) -> None:
    deep_text = '{"a":' * 1900
    reply = caller.tools.call(caller.memory, "search_notes", {"query": "x", name: deep_text})
    is_list = name == "tags"
    assert reply.is_error is not is_list
    assert is_list or f"`{name}` must be" in reply.text


@pytest.mark.parametrize("contract", ["notes", "memory", "graph", "kv", "agent"])
def test_every_contract_takes_a_blank_optional_text_as_absent(contract: str) -> None:
    schema = {"properties": {"place": {"type": "string"}, "text": {"type": "string"}}}
    schema["required"] = ["text"]  # type: ignore[assignment]
    assert "place" not in check({"place": "", "text": "x"}, schema, contract, "tool")
