"""Contract 000a, 12.14 and section 10: the adapters in the hands of Anthropic's SDK."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from contract.memory_tool import check_silence, shape
from contract.messages_api import MessagesApi
from contract.tables import tables
from memoranda.anthropic import AsyncMemoryTool, MemoryTool
from memoranda.errors import InvalidInput, OutsideError
from serve.process import SECONDS, environment

TABLES = tables("memory_sdk")

BETA = "context-management-2025-06-27"
ENTRY = {"type": "memory_20250818", "name": "memory"}
PATH = "/memories/user/preferences.md"
TURNS = TABLES["turns"]
LISTED = (
    "Here're the files and directories up to 2 levels deep in /memories, "
    "excluding hidden items and node_modules:\n4K\t/memories"
)
RESULTS = TABLES["results"]


@pytest.fixture
def api(monkeypatch) -> Iterator[MessagesApi]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with MessagesApi(TURNS) as api:
        yield api


def request(client: Any, tool: Any) -> dict[str, Any]:
    """The arguments of a tool_runner that sends the whole conversation each turn."""
    options = {
        "max_tokens": 100,
        "model": "claude-test",
        "messages": [{"role": "user", "content": "Remember."}],
        "tools": [tool],
        "betas": [BETA],
        "max_iterations": 20,
    }
    threads = "thread" in inspect.signature(client.beta.messages.tool_runner).parameters
    return options | ({"thread": False} if threads else {})


def check_conversation(api: MessagesApi, last: Any, home: Path) -> None:
    assert last.content[0].text == "Done."
    assert len(api.requests) == len(TURNS) + 1
    for path, headers, body in api.requests:
        assert path.split("?")[0] == "/v1/messages"
        assert BETA in headers["anthropic-beta"]
        assert body["tools"] == [ENTRY]
    results = api.results()
    assert results == RESULTS
    for turn in results:
        for text, _ in turn:
            check_silence(text, home)
    assert shape(home / "memories") == {"a.md": ("file", 0o600, b"")}


async def run_async(url: str, tool: Any) -> Any:
    async with AsyncAnthropic(
        base_url=url, api_key="none", max_retries=0, timeout=SECONDS
    ) as client:
        runner = client.beta.messages.tool_runner(**request(client, tool))
        return await (await runner if inspect.isawaitable(runner) else runner).until_done()


@pytest.mark.promise("000a-12.14")
@pytest.mark.parametrize("tool_class", [MemoryTool, AsyncMemoryTool])
def test_the_tool_runner_gets_the_same_texts_and_is_error_for_failures(api, tmp_path, tool_class):
    tool = tool_class(tmp_path / "home")
    if tool_class is AsyncMemoryTool:
        last = asyncio.run(asyncio.wait_for(run_async(api.url, tool), SECONDS))
    else:
        with Anthropic(base_url=api.url, api_key="none", max_retries=0, timeout=SECONDS) as client:
            last = client.beta.messages.tool_runner(**request(client, tool)).until_done()
    tool.close()
    check_conversation(api, last, tmp_path / "home")


@pytest.mark.promise("000a-12.14")
@pytest.mark.parametrize(
    ("tool_class", "base"),
    [(MemoryTool, BetaAbstractMemoryTool), (AsyncMemoryTool, BetaAsyncAbstractMemoryTool)],
)
def test_the_adapters_are_the_sdks_classes_and_keep_the_wire_entry(tmp_path, tool_class, base):
    home = tmp_path / "home"
    plain = tool_class(home)
    cached = tool_class(home, cache_control={"type": "ephemeral"})
    assert isinstance(plain, base)
    assert plain.name == "memory"
    assert plain.to_dict() == ENTRY
    assert cached.to_dict() == ENTRY | {"cache_control": {"type": "ephemeral"}}
    plain.close()
    cached.close()


class Odd:
    """A command object whose fields nobody checked."""

    def __init__(self, **fields: Any):
        self.__dict__.update(fields)


ODD = [
    {},
    {"path": None},
    {"path": 5},
    {"path": b"/memories/a"},
    {"path": "/memories/\ud800"},
    {"path": "/memories/\0"},
    {"path": "/memories/a.md", "view_range": object()},
    {"path": "/memories/a.md", "view_range": "[" * 100_000},
    {"path": "/memories/a.md", "insert_line": float("nan"), "insert_text": "x"},
    {"path": "/memories/a.md", "insert_line": float("inf"), "insert_text": "x"},
    {"path": "/memories/a.md", "insert_line": 10**4000, "insert_text": "x"},
    {"path": "/memories/a.md", "old_str": ["x"], "new_str": {}},
    {"path": "/memories/a.md", "old_str": "x" * 10**6},
    {"path": "/memories/" + "x/" * 3000},
    {"path": "/memories/a.md/b", "file_text": ""},
    {"old_path": "/memories/a.md", "new_path": "/memories/" + "x" * 10**6},
    {"old_path": object(), "new_path": "\ud800"},
]


@pytest.mark.promise("000a-12.14", "000a-12.9")
def test_nothing_but_the_sdks_error_leaves_the_six_methods(tmp_path):
    tool = MemoryTool(tmp_path / "home")
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "x\n"})
    for fields in ODD:
        for method in (
            tool.view,
            tool.create,
            tool.str_replace,
            tool.insert,
            tool.delete,
            tool.rename,
        ):
            if method in (tool.delete, tool.rename) and fields.get("path") == "/memories/a.md":
                continue
            try:
                text = method(Odd(**fields))
            except ToolError as error:
                text = error.content
            check_silence(text, tmp_path)
    assert shape(tmp_path / "home" / "memories") == {"a.md": ("file", 0o600, b"x\n")}
    tool.close()


@pytest.mark.promise("000a-12.14")
@pytest.mark.parametrize("tool_class", [MemoryTool, AsyncMemoryTool])
def test_a_folder_of_its_own_for_each_user_is_all_of_memories_to_them(tmp_path, tool_class):
    home = tmp_path / "home"
    tools = {user: tool_class(home, folder=f"users/{user}") for user in ("ann", "bob")}

    def call(user: str, command: str, **arguments: Any) -> str:
        reply = tools[user].call({"command": command, **arguments})
        if inspect.isawaitable(reply):
            return asyncio.run(reply)
        return reply

    assert call("bob", "view", path="/memories") == LISTED
    for user in tools:
        call(user, "create", path="/memories/notes/me.md", file_text=f"I am {user}\n")
    (home / "memories" / "users" / "ann" / "bobs").symlink_to("../bob")
    (home / "memories" / "users" / "ann" / "all").symlink_to("../..")
    before = shape(home / "memories")
    for bad in TABLES["outside"]:
        with pytest.raises(ToolError):
            call("ann", **bad)
    below = {"command": "create", "path": "/memories/notes/me.md/x.md", "file_text": "x"}
    with pytest.raises(ToolError, match="is not a directory"):
        call("ann", **below)
    assert shape(home / "memories") == before
    assert "bobs" not in call("ann", "view", path="/memories")
    cleared = tools["ann"].clear_all_memory()
    assert (
        asyncio.run(cleared) if inspect.isawaitable(cleared) else cleared
    ) == "All memory cleared"
    assert call("ann", "view", path="/memories") == LISTED
    assert call("bob", "view", path="/memories/notes/me.md").endswith("I am bob\n     2\t")
    for tool in tools.values():
        tool.close()


@pytest.mark.promise("000a-12.14")
def test_arguments_it_cannot_use_are_refused_when_it_is_made(tmp_path):
    for folder in ("../x", "/x", "a/../b", ".memoranda", "a\0b", "%2e%2e"):
        with pytest.raises(OutsideError):
            MemoryTool(tmp_path / "home", folder=folder)
    with pytest.raises(InvalidInput):
        MemoryTool(tmp_path / "home", create_existing="sometimes")


@pytest.mark.promise("000a-12.7")
@pytest.mark.parametrize(
    ("configured", "allowed", "refused"),
    [
        ("overwrite", None, False),
        ("overwrite", "error", True),
        ("error", None, True),
        ("error", "overwrite", False),
    ],
)
def test_create_existing_of_the_adapter_goes_before_the_configuration(
    tmp_path, configured, allowed, refused
):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(f"memory_tool:\n  create_existing: {configured}\n")
    tool = MemoryTool(home, create_existing=allowed)
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "1"})
    again = {"command": "create", "path": "/memories/a.md", "file_text": "2"}
    if refused:
        with pytest.raises(ToolError, match=r"^File /memories/a\.md already exists$"):
            tool.call(again)
    else:
        tool.call(again)
    assert (home / "memories" / "a.md").read_text() == ("1" if refused else "2")
    tool.close()


@pytest.mark.promise("000a-12.14")
def test_without_the_sdk_the_import_names_the_extra():
    code = (
        "import sys; sys.modules['anthropic'] = None; import memoranda; import memoranda.anthropic"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, timeout=SECONDS
    )
    assert ran.returncode == 1
    assert "ImportError" in ran.stderr.decode()
    assert "pip install '.[anthropic]'" in ran.stderr.decode()
