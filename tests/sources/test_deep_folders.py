"""Paths have a size, and folders deeper than that, which another program made, stop nobody."""

from __future__ import annotations

import os
import subprocess

import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.errors import InvalidInput
from memoranda.faces import ALL, registry
from memoranda.sources.path_guard import PATH_BYTES, SEGMENTS, clean
from memoranda.sources.walking import walk

DEPTH = 1_100


@pytest.fixture
def removed(tmp_path):
    """A folder that is removed at the end: pytest's own removal calls itself for each level."""
    yield tmp_path
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


def nest(root, depth):
    """Folders in each other, with a note in the last; longer than a path may be for the system."""
    before = os.open(".", os.O_RDONLY)
    os.chdir(root)
    try:
        for _ in range(depth):
            os.mkdir("d")
            os.chdir("d")
        with open("note.md", "w") as file:
            file.write("deep")
    finally:
        os.fchdir(before)
        os.close(before)


@pytest.mark.promise("paths-sizes")
@pytest.mark.parametrize(
    ("path", "is_right"),
    [
        ("/".join(["d"] * SEGMENTS), True),
        ("/".join(["d"] * (SEGMENTS + 1)), False),
        ("/".join(["x" * 255] * 4), True),
        ("/".join(["x" * 255] * 4) + "/y", False),
        ("/".join(["é" * 120] * 5), False),
        ("/./".join(["d"] * SEGMENTS) + "//", True),
    ],
)
def test_a_path_has_a_size(path, is_right):
    if is_right:
        assert len(clean(path, "notes").encode()) <= PATH_BYTES
        return
    with pytest.raises(InvalidInput, match="at most 64 names and 1,024 bytes"):
        clean(path, "notes")


@pytest.mark.promise("paths-sizes")
def test_no_tool_makes_folders_deeper_than_that(tmp_path):
    deep = "/".join(["d"] * 1_000)
    with open_session(tmp_path, watch=False, agent="bob") as memory:
        tools = registry(ALL, memory.settings)
        for name, arguments in (
            ("memory", {"command": "create", "path": f"/memories/{deep}/a.md", "file_text": "x"}),
            ("write_note", {"title": "a", "content": "x", "directory": deep}),
            ("create_memory_project", {"project_name": "p", "project_path": f"/x/{deep}"}),
        ):
            reply = tools.call(memory, name, arguments)
            assert reply.is_error, name
            assert "64 names" in reply.text, (name, reply.text)
        memory.write(Draft("x", title="b", project="memories"))
        rename = {"command": "rename", "old_path": "/memories/b.md"}
        assert tools.call(
            memory, "memory", rename | {"new_path": f"/memories/{deep}/b.md"}
        ).is_error


def test_a_walk_goes_as_deep_as_there_are_folders(tmp_path):
    nest(tmp_path, 500)
    (tmp_path / "link").symlink_to(tmp_path)
    depths = [folder.count("/d") for folder, _, _ in walk(tmp_path)]
    assert len(depths) == 501
    assert [len(folder) for folder, _, _ in walk(tmp_path, top_down=False)] == sorted(
        (len(folder) for folder, _, _ in walk(tmp_path)), reverse=True
    )


@pytest.mark.promise("paths-sizes")
def test_deep_folders_of_another_program_stop_no_command(removed, terminal):
    tmp_path = removed
    home = terminal.home
    (home / "memories").mkdir(parents=True)
    nest(home / "memories", DEPTH)
    assert terminal("write", "tea is green").status == 0
    for words in (
        ("doctor",),
        ("status",),
        ("mirror", str(tmp_path / "mirror")),
        ("move-home", str(home), str(tmp_path / "moved")),
        ("call", "memory", '{"command": "delete", "path": "/memories/d"}'),
    ):
        ran = terminal(*words)
        assert "recursion" not in ran.err.lower() + ran.out.lower(), (words, ran.err)
        assert "internal" not in ran.err.lower(), (words, ran.err)


@pytest.mark.promise("paths-sizes")
@pytest.mark.parametrize("kind", ["agent-memory", "mem0", "memory-bank", "anthropic-memory", "okf"])
def test_a_deep_folder_that_is_not_the_store_named_is_refused_in_a_sentence(
    removed, terminal, kind
):
    folder = removed / "deep"
    folder.mkdir()
    nest(folder, DEPTH)
    ran = terminal("import", "--from", kind, str(folder), "--dry-run")
    assert "recursion" not in ran.err.lower(), ran.err
    assert "internal" not in ran.err.lower(), ran.err
