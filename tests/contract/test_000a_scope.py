"""Contract 000a, 12.13: files of an agent's scope, seen by the agent itself, another one, and the
owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.memory_tool import answered, shape
from memoranda.anthropic import MemoryTool
from serve.process import ServerProcess, connected

OF_A = "---\nscope: agent:a\n---\n- [fact] zebra\n"
SEEING = ("a", "owner")
OTHERS = ("b",)
Call = Callable[..., tuple[str, bool]]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("scope") / "home"


@pytest.fixture(scope="module")
def callers(home: Path) -> Iterator[dict[str, Call]]:
    """`callers[name](command, **given)` -> (text, is_error): a and b on servers, the owner in here."""
    from anthropic.lib.tools import ToolError

    tool = MemoryTool(home)

    def owner(command: str, **arguments: Any) -> tuple[str, bool]:
        try:
            return tool.call({"command": command, **arguments}), False
        except ToolError as error:
            return error.content, True

    def on(server: ServerProcess) -> Call:
        return lambda command, **arguments: answered(
            server.call("memory", {"command": command, **arguments})
        )

    with connected(home, "--agent", "a") as a, connected(home, "--agent", "b") as b:
        yield {"a": on(a), "b": on(b), "owner": owner}
    tool.close()


@pytest.fixture
def root(home: Path, callers: dict[str, Call]) -> Path:
    """The memories folder, fresh: a file of agent a's alone, one in a shared folder, and files for
    all.
    """
    root = home / "memories"
    for name in ("mine.md", "shared", "moved.md", "moved", "new.md"):
        if (root / name).exists():
            assert not callers["owner"]("delete", path=f"/memories/{name}")[1]
    for name, text in {
        "mine.md": OF_A,
        "shared/mine.md": OF_A,
        "shared/all.md": "for all\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


EDITS = {
    "view": {},
    "str_replace": {"old_str": "zebra", "new_str": "okapi"},
    "insert": {"insert_line": 4, "insert_text": "end"},
}


@pytest.mark.promise("000a-12.13")
@pytest.mark.parametrize("command", EDITS)
def test_view_and_edits_work_for_its_agent_and_the_owner_and_say_does_not_exist_to_others(
    callers, root, command
):
    missing = "The path /memories/mine.md does not exist. Please provide a valid path."
    before = shape(root)
    for name in OTHERS:
        assert callers[name](command, path="/memories/mine.md", **EDITS[command]) == (missing, True)
        assert shape(root) == before
    for name in SEEING:
        (root / "mine.md").write_text(OF_A)
        text, failed = callers[name](command, path="/memories/mine.md", **EDITS[command])
        assert not failed, text
        assert (shape(root) != before) == (command != "view")


@pytest.mark.promise("000a-12.13")
def test_it_is_listed_for_its_agent_and_the_owner_alone(callers, root):
    everything = [
        "/memories/mine.md",
        "/memories/shared/",
        "/memories/shared/all.md",
        "/memories/shared/mine.md",
    ]
    for name in SEEING + OTHERS:
        text, _ = callers[name]("view", path="/memories")
        listed_paths = [line.split("\t")[1] for line in text.split("\n")[2:]]
        assert listed_paths == [path for path in everything if name in SEEING or "mine" not in path]


@pytest.mark.promise("000a-12.13")
@pytest.mark.parametrize("name", OTHERS)
def test_its_place_is_taken_for_others(callers, root, name):
    before = shape(root)
    unusable = ("The path /memories/mine.md cannot be used. Choose another one.", True)
    assert callers[name]("create", path="/memories/mine.md", file_text="x") == unusable
    assert (
        callers[name]("rename", old_path="/memories/shared/all.md", new_path="/memories/mine.md")
        == unusable
    )
    assert shape(root) == before


@pytest.mark.promise("000a-12.13")
@pytest.mark.parametrize("name", OTHERS)
def test_others_can_neither_delete_nor_rename_it_and_it_stays_when_its_folder_goes(
    callers, root, name
):
    before = shape(root)
    refusal = ("The path /memories/mine.md does not exist", True)
    assert callers[name]("delete", path="/memories/mine.md") == refusal
    assert (
        callers[name]("rename", old_path="/memories/mine.md", new_path="/memories/moved.md")
        == refusal
    )
    assert shape(root) == before
    assert not callers[name]("rename", old_path="/memories/shared", new_path="/memories/moved")[1]
    assert (root / "moved" / "all.md").exists()
    assert not callers[name]("delete", path="/memories/moved")[1]
    missing = ("The path /memories/shared does not exist", True)
    assert callers[name]("delete", path="/memories/shared") == missing
    text = (root / "shared" / "mine.md").read_text()
    assert text == OF_A


@pytest.mark.promise("000a-12.13")
def test_a_folder_that_moves_where_a_hidden_folder_is_leaves_no_empty_folder(callers, root, home):
    hidden_file = root / "moved" / "part" / "mine.md"
    hidden_file.parent.mkdir(parents=True)
    hidden_file.write_text(OF_A)
    for path in ("new.md/all.md", "new.md/part/deep.md"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("for all\n")
    _, is_error = callers["b"]("rename", old_path="/memories/new.md", new_path="/memories/moved")
    assert not is_error
    assert not (root / "new.md").exists()
    moved = sorted(path.name for path in (root / "moved").rglob("*.md"))
    assert moved == ["all.md", "deep.md", "mine.md"]


@pytest.mark.promise("000a-12.13")
@pytest.mark.parametrize("name", SEEING)
def test_its_agent_and_the_owner_overwrite_rename_and_delete_it(callers, root, name):
    call = callers[name]
    assert not call("create", path="/memories/mine.md", file_text=OF_A + "more\n")[1]
    assert not call("rename", old_path="/memories/mine.md", new_path="/memories/moved.md")[1]
    assert not call("rename", old_path="/memories/shared", new_path="/memories/moved")[1]
    text = (root / "moved.md").read_text()
    assert text == OF_A + "more\n"
    assert not call("delete", path="/memories/moved.md")[1]
    assert not call("delete", path="/memories/moved")[1]
    assert shape(root) == {}


@pytest.mark.promise("000a-12.13")
def test_a_file_without_a_scope_is_for_everyone(callers, root):
    for name in SEEING + OTHERS:
        text, failed = callers[name](
            "insert", path="/memories/shared/all.md", insert_line=1, insert_text=f"by {name}"
        )
        assert not failed, text
    assert (root / "shared" / "all.md").read_text() == "for all\nby b\nby owner\nby a\n"


@pytest.mark.promise("000a-12.13")
def test_a_scope_written_by_a_hand_or_taken_away_counts_from_the_next_command_on(callers, root):
    path = "/memories/shared/all.md"
    file = root / "shared" / "all.md"
    assert not callers["b"]("view", path=path)[1]
    file.write_text("\ufeff---\r\ntags: [x]\r\nscope: 'agent:a'\r\n---\r\nnow mine\r\n")
    assert callers["b"]("view", path=path)[1]
    assert not callers["a"]("view", path=path)[1]
    assert not callers["a"]("str_replace", path=path, old_str="scope: 'agent:a'\r\n", new_str="")[1]
    assert not callers["b"]("view", path=path)[1]


@pytest.mark.promise("000a-12.13")
def test_an_agent_can_make_a_file_its_own_and_not_give_it_to_another(callers, root):
    assert not callers["b"](
        "create", path="/memories/new.md", file_text=OF_A.replace("agent:a", "agent:b")
    )[1]
    assert callers["a"]("view", path="/memories/new.md")[1]
    before = shape(root)
    text, failed = callers["b"](
        "str_replace", path="/memories/new.md", old_str="agent:b", new_str="agent:a"
    )
    assert failed
    assert 'scope "agent:a"' in text
    assert shape(root) == before
    assert not callers["owner"](
        "str_replace", path="/memories/new.md", old_str="agent:b", new_str="agent:a"
    )[1]
    assert not callers["a"]("view", path="/memories/new.md")[1]


@pytest.mark.promise("000a-12.13")
def test_the_note_tools_and_the_history_keep_to_the_scope_too(home, root, terminal):
    for agent, total in (("a", 2), ("b", 0)):
        with connected(home, "--agent", agent) as server:
            reply = server.call("search_notes", {"query": "zebra", "project": "memories"})[
                "structuredContent"
            ]
            assert reply["total"] == total
    delete = '{"command": "delete", "path": "/memories/mine.md"}'
    terminal.ok("call", "memory", delete, "--tools", "memory", "--home", str(home), "--agent", "a")
    options = {"owner": (), "a": ("--agent", "a"), "b": ("--agent", "b")}
    logged = {}
    for name, words in options.items():
        document = terminal(*words, "log", "--json", "--home", str(home)).json
        logged[name] = [entry["path"] for entry in document["entries"]]

    assert logged["owner"][0] == "mine.md"
    assert logged["a"][0] == "mine.md"
    assert "mine.md" not in logged["b"]


@pytest.mark.promise("000a-12.13")
def test_a_scope_that_the_caller_does_not_see_is_refused_with_those_it_sees(
    callers: dict[str, Call], root: Path
) -> None:
    text = "---\nscope: agent:b\n---\nx"
    answer = callers["a"]("create", path="/memories/of-b.md", file_text=text)
    assert answer == (
        '/memories/of-b.md was not changed: invalid scope "agent:b". '
        "You could not see the note. Use global or agent:a.",
        True,
    )
    assert not (root / "of-b.md").exists()
