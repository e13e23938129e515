"""Each error of contract 000b, 8 not covered beside its tool: text, code, unchanged files, a remedy that works."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.promise("000b-12.12")

OUTSIDE = ["../x", "a/../../x", "%2e%2e/x", "..%2fx", "%252e%252e/x", "/etc/x", "..\\x", "a/..", "x\0y"]
HIDDEN = [".hidden/x", "a/.git/x", ".commonplace/x"]


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
    assert face.data("read_note", identifier=reply.data["suggestions"][0])["title"] == "Search Engine"


def test_nothing_near_gives_no_suggestions(face):
    for tool, arguments in (
        ("read_note", {}),
        ("delete_note", {}),
        ("move_note", {"destination_path": "b"}),
        ("edit_note", {"operation": "insert_after_section", "section": "A", "content": "x"}),
    ):
        text = face.refused(tool, "not_found", identifier="zzz", **arguments)
        assert text == 'Note not found in notes: "zzz". Find it with search_notes or list_directory.'


def test_an_ambiguous_name_lists_permalinks_that_work(face):
    face.put("a/Twin.md", "first")
    face.put("b/Twin.md", "second")
    for tool, arguments in (
        ("read_note", {"identifier": "Twin"}),
        ("build_context", {"url": "Twin"}),
        ("delete_note", {"identifier": "Twin"}),
        ("move_note", {"identifier": "Twin", "destination_path": "c"}),
        ("edit_note", {"identifier": "Twin", "operation": "append", "content": "x"}),
    ):
        reply = face.call(tool, **arguments)
        assert reply.data["code"] == "ambiguous"
        assert reply.text == '"Twin" names 2 notes: notes/a/twin, notes/b/twin. Use one of these permalinks, or a path.'
        assert reply.data["candidates"] == ["notes/a/twin", "notes/b/twin"]
    assert face.data("read_note", identifier="notes/b/twin")["content"] == "second"
    assert face.data("read_note", identifier="a/Twin.md")["content"] == "first"
    assert set(face.snapshot()) == {"a/Twin.md", "b/Twin.md"}


@pytest.mark.parametrize("frame", ["soon", "", "0d", "-3d", "2026-13-01", "7 fortnights"])
def test_a_time_frame_nobody_understands_is_refused_with_examples_that_work(face, frame):
    for tool, arguments in (
        ("recent_activity", {"timeframe": frame}),
        ("search_notes", {"query": "x", "after_date": frame}),
        ("build_context", {"url": "x*", "timeframe": frame}),
    ):
        text = face.refused(tool, "timeframe", **arguments)
        assert text == (f'Time frame "{frame}" is not understood. Use e.g. 2h, 7d, 3 weeks, yesterday or 2026-11-01.')
    for good in ("2h", "7d", "3 weeks", "yesterday", "2026-11-01"):
        face.data("recent_activity", timeframe=good)


def test_notes_of_another_agent_look_as_if_they_did_not_exist(face):
    face.put(
        "Secret.md",
        "---\ntitle: Hidden Thing\nscope: agent:other\npermalink: the/secret\n---\n"
        "- [fact] secretword\n- see [[Open]]\n",
    )
    face.put("Open.md", "- see [[Hidden Thing]]\n")
    me = face.as_agent("me")
    for identifier in ("Hidden Thing", "the/secret", "Secret.md", "memory://the/secret"):
        for tool, arguments in (
            ("read_note", {"identifier": identifier}),
            ("delete_note", {"identifier": identifier}),
            ("move_note", {"identifier": identifier, "destination_path": "x"}),
            ("build_context", {"url": identifier}),
        ):
            reply = me.call(tool, **arguments)
            assert reply.data["code"] == "not_found"
            assert reply.data["suggestions"] == []
    assert me.data("search_notes", query="secretword")["total"] == 0
    assert me.data("recent_activity")["total"] == 1
    assert [each["path"] for each in me.data("list_directory")["entries"]] == ["Open.md"]
    (result,) = me.data("build_context", url="Open")["results"]
    assert [each["state"] for each in result["relations"]] == ["unwritten"]
    assert result["related_results"] == []
    assert me.data("build_context", url="*")["total"] == 1
    other = face.as_agent("other")
    assert other.data("read_note", identifier="Hidden Thing")["permalink"] == "the/secret"
    assert other.data("search_notes", query="secretword")["total"] == 1


def test_a_note_of_another_agent_is_never_overwritten(face):
    face.put("Secret.md", "---\nscope: agent:other\n---\nsecretword\n")
    me = face.as_agent("me")
    before = face.snapshot()
    for overwrite in (False, True):
        text = me.refused("write_note", "exists", title="Secret", content="x", overwrite=overwrite)
        assert text.endswith("Choose another title or directory.")
    assert face.snapshot() == before
    assert me.write("Secret", directory="mine")["file_path"] == "mine/Secret.md"


def test_nobody_writes_into_the_scope_of_another_agent(face):
    me = face.as_agent("me")
    assert me.call("write_note", title="A", content="x", metadata={"scope": "agent:other"}).is_error
    assert me.call("write_note", title="A", content="---\nscope: agent:other\n---\nx").is_error
    assert face.snapshot() == {}
    assert me.write("A", metadata={"scope": "agent:me"})["action"] == "created"
    assert face.as_agent("other").call("read_note", identifier="A").is_error


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
