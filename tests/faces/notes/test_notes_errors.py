"""Each error of contract 000b, 8 not covered beside its tool: text, code, unchanged files, a remedy
that works.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.promise("000b-12.12")


def test_a_missing_note_is_answered_with_suggestions_that_work(face):
    face.write("Search Engine", directory="specs")
    reply = face.call("read_note", identifier="Search Engin")
    assert reply.is_error
    assert reply.data["code"] == "not_found"
    assert reply.text == (
        'Note not found in notes: "Search Engin". Did you mean: notes/specs/search-engine? '
        "Find it with search_notes or list_directory."
    )
    assert reply.data["suggestions"] == ["notes/specs/search-engine"]
    assert face("read_note", identifier=reply.data["suggestions"][0])["title"] == "Search Engine"


def test_a_note_of_another_agent_is_never_overwritten(face):
    face.put("Secret.md", "---\nscope: agent:other\n---\nsecretword\n")
    me = face.as_agent("me")
    before = face.snapshot()

    beside_it = me.write("Secret")
    assert beside_it["file_path"] == "Secret 2.md"
    reply = me.call("write_note", title="Secret", content="x")
    assert reply.data["code"] == "exists"
    once_more = me.write("Secret", overwrite=True)
    assert once_more["file_path"] == "Secret 2.md"
    after = face.snapshot()
    assert before.items() <= after.items()
    elsewhere = me.write("Secret", directory="mine")
    assert elsewhere["file_path"] == "mine/Secret.md"


def test_nobody_writes_into_the_scope_of_another_agent(face):
    me = face.as_agent("me")
    reply = me.call("write_note", title="A", content="x", metadata={"scope": "agent:other"})
    assert reply.is_error
    reply = me.call("write_note", title="A", content="---\nscope: agent:other\n---\nx")
    assert reply.is_error
    assert face.snapshot() == {}
    action = me.write("A", metadata={"scope": "agent:me"})["action"]
    assert action == "created"
    reply = face.as_agent("other").call("read_note", identifier="A")
    assert reply.is_error


@pytest.mark.parametrize("long", ["x" * 100_000, "x/" * 50_000])
def test_errors_stay_short_whatever_is_given(face, long):
    assert len(face.refused("read_note", "invalid", identifier="A", **{long: 1})) < 300
    for tool, arguments in (
        ("read_note", {"identifier": long}),
        ("read_note", {"identifier": "A", "project": long}),
        ("list_directory", {"dir_name": long}),
        ("write_note", {"title": "A", "content": "x", "directory": long}),
        ("recent_activity", {"timeframe": long}),
        ("build_context", {"url": long}),
        ("delete_project", {"project_name": long}),
        ("edit_note", {"identifier": long, "operation": "append", "content": "x"}),
        ("create_memory_project", {"project_name": long, "project_path": "/x"}),
        ("create_memory_project", {"project_name": "p", "project_path": long}),
    ):
        reply = face.call(tool, **arguments)
        assert reply.is_error
        assert len(reply.text) < 3000, (tool, len(reply.text))
