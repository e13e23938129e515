"""Contract 000a, 12.15 and 12.16: modes whatever the umask, and very many files and lines."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.memory_tool import answered
from memoranda.anthropic import MemoryTool
from serve.process import ServerProcess, connected


def mode(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


@pytest.fixture(scope="module")
def careless(tmp_path_factory) -> Iterator[tuple[Path, ServerProcess]]:
    """A home and a server on it whose umask takes nothing away."""
    home = tmp_path_factory.mktemp("careless") / "home"
    with connected(home, "--tools", "memory", umask=0) as server:
        yield home, server


CALLS = [
    {"command": "create", "path": "/memories/a/b/c.md", "file_text": "one\n"},
    {"command": "create", "path": "/memories/d.md", "file_text": "one\n"},
    {"command": "create", "path": "/memories/d.md", "file_text": "two\n"},
    {"command": "insert", "path": "/memories/a/b/c.md", "insert_line": 0, "insert_text": "zero"},
    {"command": "str_replace", "path": "/memories/a/b/c.md", "old_str": "one", "new_str": "1"},
    {"command": "rename", "old_path": "/memories/a/b/c.md", "new_path": "/memories/e/f/g.md"},
]


def check_modes(root: Path) -> None:
    folders = [root, *(root / name for name in ("a", "a/b", "e", "e/f"))]
    assert {str(place): mode(place) for place in folders} == {
        str(place): 0o700 for place in folders
    }
    assert [mode(root / name) for name in ("d.md", "e/f/g.md")] == [0o600, 0o600]


@pytest.mark.promise("000a-12.15")
def test_under_umask_0_new_files_are_0600_and_new_folders_0700(careless):
    home, server = careless
    for call in CALLS:
        assert not answered(server.call("memory", call))[1]
    check_modes(home / "memories")

    assert [mode(home), mode(home / ".memoranda")] == [0o700, 0o700]


@pytest.mark.promise("000a-12.15")
def test_a_umask_that_takes_everything_away_changes_nothing_about_that(tmp_path):
    tool = MemoryTool(tmp_path / "home")
    tool.call({"command": "create", "path": "/memories/first.md", "file_text": "x"})
    usual = os.umask(0o777)
    try:
        for call in CALLS:
            tool.call(call)
    finally:
        os.umask(usual)
        tool.close()
    check_modes(tmp_path / "home" / "memories")


@pytest.mark.promise("000a-12.15")
@pytest.mark.parametrize("file_mode", [0o644, 0o640, 0o400, 0o755], ids=oct)
def test_an_existing_file_keeps_its_mode(careless, file_mode):
    home, server = careless
    file = home / "memories" / f"{file_mode:o}.md"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    path = f"/memories/{file.name}"
    for call in [
        {"command": "create", "path": path, "file_text": "one\n"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "zero"},
        {"command": "str_replace", "path": path, "old_str": "one", "new_str": "1"},
        {"command": "rename", "old_path": path, "new_path": f"{path}.moved"},
    ]:
        file.unlink(missing_ok=True)
        file.write_text("one\n")
        file.chmod(file_mode)
        assert not answered(server.call("memory", call))[1]
        assert mode(file if file.exists() else file.with_name(f"{file.name}.moved")) == file_mode


FILES = 10_000
LINES = 999_999


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Iterator[ServerProcess]:
    """A server whose memories hold very much; its reply lines are long."""
    home = tmp_path_factory.mktemp("large") / "home"
    many = home / "memories" / "many"
    many.mkdir(parents=True)
    for number in range(FILES):
        fd = os.open(many / f"{number:05}.md", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"x" * (number % 3))
        os.close(fd)
    (home / "memories" / "most.md").write_text("x\n" * (LINES - 1))
    with connected(home, "--tools", "memory") as server:
        yield server


@pytest.mark.slow
@pytest.mark.promise("000a-12.16")
@pytest.mark.parametrize(("path", "extra"), [("/memories/many", 0), ("/memories", 2)])
def test_a_folder_with_ten_thousand_files_is_listed_whole(large, path, extra):
    rows = large.text("memory", {"command": "view", "path": path}).split("\n")[1:]
    assert len(rows) == FILES + 1 + extra
    file_rows = [row for row in rows if row.endswith(".md") and "/many/" in row]
    assert file_rows == [f"{number % 3}B\t/memories/many/{number:05}.md" for number in range(FILES)]


@pytest.mark.slow
@pytest.mark.promise("000a-12.16")
def test_a_file_with_as_many_lines_as_allowed_is_shown_and_with_one_more_refused(large):
    path = "/memories/most.md"
    header, *lines = large.text("memory", {"command": "view", "path": path}).split("\n")
    assert header == f"Here's the content of {path} with line numbers:"
    assert len(lines) == LINES
    assert lines[0] == "     1\tx"
    assert lines[-2] == "999998\tx"
    assert lines[-1] == "999999\t"
    end = {"command": "view", "path": path, "view_range": [LINES, 2**40]}
    text = large.text("memory", end)
    assert text == f"{header}\n999999\t"
    large.text(
        "memory",
        {"command": "insert", "path": path, "insert_line": LINES - 1, "insert_text": "the end"},
    )
    for more in ({}, {"view_range": [1, 2]}):
        reply = answered(large.call("memory", {"command": "view", "path": path, **more}))
        assert reply == (f"File {path} exceeds maximum line limit of 999,999 lines.", True)


@pytest.mark.promise("000a-12.16")
def test_a_view_longer_than_the_owner_allows_is_cut_at_a_line_and_says_how_to_go_on(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(json.dumps({"memory_tool": {"view_max_characters": 20}}))
    with connected(home, "--tools", "memory", user=tmp_path) as server:

        def view(text: str, **more: object) -> list[str]:
            server.text(
                "memory", {"command": "create", "path": "/memories/a.md", "file_text": text}
            )
            return server.text(
                "memory", {"command": "view", "path": "/memories/a.md", **more}
            ).split("\n")[1:]

        text = "line one\nline two\nline three\nline four\n"
        *shown_lines, last = view(text)
        assert shown_lines == ["     1\tline one", "     2\tline two"]
        for words in ("1-2", "of 5", "view_range", "[3, 5]"):
            assert words in last
        assert view(text, view_range=[1, -1])[-1] == "     5\t"
        assert view("x" * 100 + "\nnext\n")[0] == "     1\t" + "x" * 100
        assert view("x" * 19 + "\n") == ["     1\t" + "x" * 19, "     2\t"]
