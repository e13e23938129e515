"""Each error of contract 000b, 8 not covered beside its tool: text, code, unchanged files, a remedy that works."""

from __future__ import annotations

import os

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


def test_at_most_ten_candidates_are_listed(face):
    for n in range(15):
        face.put(f"{n}/Twin.md", "x")
    reply = face.call("read_note", identifier="Twin")
    assert '"Twin" names 15 notes' in reply.text
    assert len(reply.data["candidates"]) == 10


@pytest.mark.parametrize("path", OUTSIDE + HIDDEN)
def test_paths_that_leave_the_project_are_refused_when_writing(face, path):
    face.put("A.md", "a")
    before = face.snapshot()
    for tool, arguments in (
        ("write_note", {"title": "N", "content": "x", "directory": path}),
        ("move_note", {"identifier": "A", "destination_path": path}),
        ("move_note", {"identifier": "A", "destination_path": path + "/"}),
    ):
        text = face.refused(tool, "outside", **arguments)
        assert text.startswith("Path must stay inside project notes: ")
        assert text.endswith('Use a relative path without "..".')
    assert face.snapshot() == before
    assert {each.name for each in face.memory.home.iterdir()} <= {"notes", ".commonplace"}


@pytest.mark.parametrize("path", OUTSIDE + HIDDEN)
def test_paths_that_leave_the_project_are_refused_when_reading(face, path):
    face.put("A.md", "a")
    for place in (".hidden", "a/.git", ".commonplace"):
        face.put(f"{place}/x", "secret")
        face.put(f"{place}/x.md", "secret")
    for tool, arguments in (
        ("read_note", {"identifier": path}),
        ("read_note", {"identifier": f"memory://{path}"}),
        ("read_note", {"identifier": f"memory://notes/{path}"}),
        ("build_context", {"url": path}),
        ("build_context", {"url": f"memory://{path}"}),
        ("list_directory", {"dir_name": path}),
        ("list_directory", {"dir_name": path.rpartition("/")[0] or path}),
        ("delete_note", {"identifier": path}),
        ("delete_note", {"identifier": path, "is_directory": True}),
        ("edit_note", {"identifier": path, "operation": "append", "content": "x"}),
        ("move_note", {"identifier": path, "destination_path": "B"}),
        ("move_note", {"identifier": path, "destination_path": "B", "is_directory": True}),
    ):
        if arguments == {"dir_name": "a"}:
            continue
        reply = face.call(tool, **arguments)
        assert reply.is_error, (tool, arguments, reply.text)
        assert reply.data["code"] in ("outside", "not_found", "invalid")
        if reply.data["code"] == "outside":
            assert reply.text.startswith("Path must stay inside project notes: ")
        assert "secret" not in reply.text
        assert str(face.memory.home) not in reply.text
    assert face.file("A.md").read_text() == "a"


@pytest.mark.parametrize("path", OUTSIDE + HIDDEN)
def test_a_folder_is_not_moved_out_of_its_project(face, path):
    face.put("a/A.md", "a")
    for destination in (path, path + "/"):
        face.refused("move_note", "outside", identifier="a", destination_path=destination, is_directory=True)
    assert face.snapshot() == {"a/A.md": b"a"}


def test_a_symlinked_folder_is_no_way_out(face, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("secret")
    face.put("A.md", "a")
    os.symlink(tmp_path / "outside", face.file("way"))
    assert face.call("write_note", title="N", content="x", directory="way").is_error
    assert face.call("move_note", identifier="A", destination_path="way/B").is_error
    assert face.call("read_note", identifier="way/x.md").is_error
    assert face.call("list_directory", dir_name="way").is_error
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["x.md"]


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


def test_the_remedies_for_an_existing_note_work(face):
    face.write("A", "old")
    face.refused("write_note", "exists", title="A", content="new")
    face.data("edit_note", identifier="A", operation="append", content="more")
    assert face.write("A", "new", overwrite=True)["action"] == "updated"


def test_a_full_disk_is_told_in_plain_words(face, monkeypatch):
    face.put("A.md", "a")

    def refuse(*arguments, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    for tool, arguments in (
        ("write_note", {"title": "B", "content": "x"}),
        ("edit_note", {"identifier": "A", "operation": "append", "content": "x"}),
    ):
        text = face.refused(tool, "storage", **arguments)
        assert "OSError" not in text
        assert "Errno" not in text
        assert str(face.memory.home) not in text
    assert face.snapshot() == {"A.md": b"a"}


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
