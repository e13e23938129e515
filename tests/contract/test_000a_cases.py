"""Contract 000a, 12.1 and 12.9: every case, each way the tool is offered; nothing leaks, nothing
outside changes.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from hypothesis import given
from hypothesis import strategies as st

from contract.memory_tool import CASES, Store, arguments, check_reply, check_silence, shape
from contract.note_tools import seen
from contract.tables import tables
from memoranda import faces
from memoranda.anthropic import AsyncMemoryTool, MemoryTool
from memoranda.config import load
from memoranda.engine import open_session
from serve.client import OfficialClient
from serve.process import memory_mcp

TABLES = tables("memory_links")


def surroundings(folder: Path) -> dict[str, tuple[Any, ...]]:
    """All below `folder`, which holds a home, but the memories and what is our own."""
    return seen(folder, but=("home/memories", "home/.memoranda"))


LINKS = {
    "to-file": "a.md",
    "to-folder": "folder",
    "dangling": "nothing",
    "loop": "loop",
    "through-loop": "loop/x",
    "out-file": "../outside/secret.txt",
    "out-folder": "../outside",
    "out-dangling": "../outside/nothing",
    "folder/up": "..",
    "root": ".",
    "absolute": "/etc",
}


def with_links(folder: Path) -> Path:
    """A memories folder with files and with links of every kind, and a folder beside it."""
    root = folder / "home" / "memories"
    outside = folder / "home" / "outside"
    (root / "folder").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text("the secret")
    (root / "a.md").write_text("one\ntwo\n")
    file = root / "folder" / "b.md"
    file.write_text("b\n")
    for name, target in LINKS.items():
        os.symlink(target, root / name)
    return root


class Tool:
    """The memory tool on a home, called as every transport calls it."""

    def __init__(self, home: Path):
        self.memory = open_session(home, watch=False)
        self.registry = faces.registry(["memory"], self.memory.settings)

    def __call__(self, **arguments: Any) -> tuple[str, bool]:
        reply = self.registry.call(self.memory, "memory", arguments)
        return reply.text, reply.is_error


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[tuple[Path, Tool]]:
    root = with_links(tmp_path)
    tool = Tool(root.parent)
    yield root, tool
    tool.memory.close()


@pytest.mark.promise("000a-12.9")
def test_a_listing_shows_links_that_stay_inside_and_no_others(linked):
    _, tool = linked
    text, failed = tool(command="view", path="/memories")
    assert not failed
    assert [line.split("\t")[1] for line in text.split("\n")[1:]] == [
        "/memories",
        "/memories/a.md",
        "/memories/folder/",
        "/memories/folder/b.md",
        "/memories/folder/up/",
        "/memories/root/",
        "/memories/to-file",
        "/memories/to-folder/",
    ]
    assert "8B\t/memories/to-file" in text


ESCAPE = "Path {path} would escape /memories directory"
MISSING = "The path {path} does not exist. Please provide a valid path."
WRITES = {
    "view": {},
    "create": {"file_text": "new"},
    "str_replace": {"old_str": "e", "new_str": "E"},
    "insert": {"insert_line": 0, "insert_text": "top"},
}


@pytest.mark.promise("000a-12.9")
@pytest.mark.parametrize("command", WRITES)
@pytest.mark.parametrize(
    "name",
    [
        "out-file",
        "out-folder",
        "out-folder/secret.txt",
        "out-folder/new/x",
        "out-dangling",
        "out-dangling/x",
        "absolute/x/y",
    ],
)
def test_a_link_that_leads_out_is_refused_by_every_command_that_follows_links(
    linked, command, name
):
    root, tool = linked
    before = seen(root.parent / "outside")
    path = f"/memories/{name}"

    assert tool(command=command, path=path, **WRITES[command]) == (ESCAPE.format(path=path), True)
    assert seen(root.parent / "outside") == before


@pytest.mark.promise("000a-12.9")
@pytest.mark.parametrize("command", WRITES)
def test_a_circle_of_links_is_refused_by_every_command_that_follows_links(linked, command):
    root, tool = linked
    before = shape(root)
    arguments_of_command = WRITES[command]
    for name in ("loop", "loop/x", "through-loop"):
        text, failed = tool(command=command, path=f"/memories/{name}", **arguments_of_command)
        assert failed
        check_silence(text, root)

    assert shape(root) == before


@pytest.mark.promise("000a-12.9")
def test_a_link_to_nothing_is_taken_for_create_and_missing_for_the_others(linked):
    root, tool = linked
    path = "/memories/dangling"
    assert tool(command="create", path=path, file_text="x") == (f"File {path} already exists", True)
    for command in ("view", "str_replace", "insert"):
        assert tool(command=command, path=path, **WRITES[command]) == (
            MISSING.format(path=path),
            True,
        )
    assert not (root / "nothing").exists()


@pytest.mark.promise("000a-12.9")
def test_below_a_link_to_nothing_a_file_makes_the_folder_it_names(linked):
    root, tool = linked
    assert not tool(command="create", path="/memories/dangling/b.md", file_text="b")[1]
    assert not tool(
        command="rename", old_path="/memories/dangling/b.md", new_path="/memories/dangling/n/c.md"
    )[1]
    text = (root / "nothing" / "n" / "c.md").read_text()
    assert text == "b"
    assert os.readlink(root / "dangling") == "nothing"


@pytest.mark.promise("000a-12.9")
def test_edits_write_through_a_link_inside_and_the_link_stays(linked):
    root, tool = linked
    for command in ("str_replace", "insert", "create"):
        _, failed = tool(command=command, path="/memories/to-file", **WRITES[command])
        assert not failed

    assert not tool(command="create", path="/memories/to-folder/c.md", file_text="c")[1]
    assert os.readlink(root / "to-file") == "a.md"
    assert (root / "a.md").read_text() == "new"
    text = (root / "folder" / "c.md").read_text()
    assert text == "c"


@pytest.mark.promise("000a-12.9")
@pytest.mark.parametrize("name", LINKS)
def test_rename_moves_and_delete_removes_the_link_itself(linked, name):
    root, tool = linked
    path = f"/memories/{name}"
    before = seen(root.parent / "outside")
    files = {
        path: shape_of_file
        for path, shape_of_file in shape(root).items()
        if shape_of_file[0] == "file"
    }
    assert tool(command="rename", old_path=path, new_path="/memories/moved") == (
        f"Successfully renamed {path} to /memories/moved",
        False,
    )
    assert os.readlink(root / "moved") == LINKS[name]
    assert not os.path.lexists(root / name)
    assert tool(command="delete", path="/memories/moved") == (
        "Successfully deleted /memories/moved",
        False,
    )
    assert not os.path.lexists(root / "moved")
    assert {
        path: shape_of_file
        for path, shape_of_file in shape(root).items()
        if shape_of_file[0] == "file"
    } == files
    assert seen(root.parent / "outside") == before


@pytest.mark.promise("000a-12.9")
def test_a_rename_names_the_path_that_leads_out(linked):
    root, tool = linked
    before = shape(root)
    for old, new, bad in [
        ("/memories/a.md", "/memories/out-folder/x", "/memories/out-folder/x"),
        ("/memories/out-folder/secret.txt", "/memories/x", "/memories/out-folder/secret.txt"),
        (
            "/memories/out-folder/secret.txt",
            "/memories/absolute/x",
            "/memories/out-folder/secret.txt",
        ),
    ]:
        assert tool(command="rename", old_path=old, new_path=new) == (ESCAPE.format(path=bad), True)
    for new in (
        "/memories/out-folder/new/x",
        "/memories/folder/in/itself",
        "/memories/to-folder/in/itself",
    ):
        text, failed = tool(command="rename", old_path="/memories/folder", new_path=new)
        assert failed
        check_silence(text, root)
        assert "refuses this name" not in text
    assert shape(root) == before


NASTY = st.lists(
    st.sampled_from(TABLES["hostile_parts"]),
    max_size=5,
)
TEXTS = st.one_of(
    st.none(), st.integers(-2, 9), st.booleans(), st.text(max_size=5), st.lists(st.integers(-2, 4))
)


@st.composite
def inputs(draw) -> dict[str, Any]:
    """A tool input with hostile paths and values of any kind."""
    prefix = draw(st.sampled_from(["/memories/", "memories/", "/memories", "/", ""]))
    paths = [prefix + "/".join(draw(NASTY)) for _ in range(3)]
    arguments = dict(zip(("path", "old_path", "new_path"), paths, strict=True))
    arguments["command"] = draw(
        st.sampled_from(["view", "create", "str_replace", "insert", "delete", "rename", "undo"])
    )
    for name in ("file_text", "old_str", "new_str", "insert_line", "insert_text", "view_range"):
        arguments[name] = draw(TEXTS)
    return arguments


@pytest.mark.promise("000a-12.9")
def test_no_input_leaks_or_changes_anything_outside(tmp_path):
    root = with_links(tmp_path)
    tool = Tool(root.parent)
    tool(command="view", path="/memories")

    before = surroundings(tmp_path)

    @given(inputs())
    def try_it(arguments):
        text, failed = tool(**arguments)
        assert text
        check_silence(text, tmp_path)
        assert "the secret" not in text
        assert surroundings(tmp_path) == before
        if not root.exists() or not failed:
            tool(command="create", path="/memories/a.md", file_text="one\ntwo\n")

    try_it()
    tool.memory.close()


Call = Callable[[dict[str, Any], Any], tuple[str, bool]]
"""A tool input, and the terminal of the test: the text of the result, and whether it is an error.
"""


@contextmanager
def served(home: Path) -> Iterator[Call]:
    (home.parent / "user").mkdir()
    with OfficialClient(memory_mcp(home, "--tools", "memory"), home.parent / "user") as client:

        def call(arguments: dict[str, Any], terminal: Any) -> tuple[str, bool]:
            reply = client.call("memory", arguments)
            assert reply["structured"] == (
                {"error": reply["text"], "is_error": True} if reply["is_error"] else None
            )
            return reply["text"], reply["is_error"]

        yield call


@contextmanager
def adapter(tool_class: type, home: Path) -> Iterator[Call]:
    tool = tool_class(home)

    def call(arguments: dict[str, Any], terminal: Any) -> tuple[str, bool]:
        try:
            reply = tool.call(arguments)
            return (asyncio.run(reply) if inspect.isawaitable(reply) else reply), False
        except ToolError as error:
            return error.content, True

    yield call
    tool.close()


@contextmanager
def command(home: Path) -> Iterator[Call]:
    def call(arguments: dict[str, Any], terminal: Any) -> tuple[str, bool]:
        ran = terminal("call", "memory", json.dumps(arguments), "--home", str(home), "--json")
        assert ran.status == (1 if ran.json["is_error"] else 0)
        return ran.json["text"], ran.json["is_error"]

    yield call


WAYS = {
    "MCP stdio": served,
    "adapter": partial(adapter, MemoryTool),
    "async adapter": partial(adapter, AsyncMemoryTool),
    "memory call": command,
}


@pytest.fixture(scope="module")
def opened(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str, str], tuple[Store, Call]]]:
    """A store by its configuration and the way it is called; each lasts for the module, as a server
    does.
    """
    with ExitStack() as ends:

        @cache
        def open_one(way: str, configuration: str) -> tuple[Store, Call]:
            store = Store(tmp_path_factory.mktemp("way") / "home")
            store.home.mkdir(exist_ok=True)
            (store.home / "config.yaml").write_text(configuration)
            call = ends.enter_context(WAYS[way](store.home))
            return store, call

        yield open_one


def carried(case: dict[str, Any], way: str) -> bool:
    """Whether this way can carry the case: the SDK knows only its own commands."""
    commands = [arguments(op).get("command") for op in case["ops"]]
    return "adapter" not in way or all(
        isinstance(carried_command, str) and carried_command != "undo_edit"
        for carried_command in commands
    )


@pytest.mark.promise("000a-12.1", "000a-12.7", "000a-12.9")
@pytest.mark.parametrize(
    ("way", "case"),
    [
        pytest.param(way, case, id=f"{way}: {case['name']}")
        for way in WAYS
        for case in CASES
        if carried(case, way)
    ],
)
def test_case_holds_through_every_transport(
    way: str, case: dict[str, Any], opened: Any, terminal: Any
) -> None:
    assert case.get("options", {}) in ({}, {"create_existing": "error"})
    store, call = opened(
        way, "memory_tool:\n  create_existing: error\n" if "options" in case else ""
    )
    store.fill(case)
    # The first call makes it
    if not (store.home / ".memoranda").exists():
        call({"command": "view", "path": "/memories"}, terminal)
    before = surroundings(store.home.parent)
    for op in case["ops"]:
        text, is_error = call(arguments(op), terminal)
        check_reply(op, text, is_error, store.home)
        check_silence(text, store.home.parent, store.outside)
    store.check(case)
    assert surroundings(store.home.parent) == before


@pytest.mark.promise("000a-12.1")
def test_the_settings_reach_the_description(tmp_path):
    (tmp_path / "config.yaml").write_text("memory_tool:\n  create_existing: error\n")
    described = faces.registry(["memory"], load(tmp_path)).tools["memory"].description
    assert "an existing file is refused" in described
    assert (
        "overwritten"
        in faces.registry(["memory"], load(tmp_path / "other")).tools["memory"].description
    )
