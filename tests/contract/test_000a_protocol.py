"""Contract 000a, 12.2, 12.7 and 12.12: what the server shows and tells before anything is called."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract.memory_tool import answered, check_silence
from contract.tables import tables
from memoranda.config import load
from memoranda.note.markdown import parse_note
from serve.process import ServerProcess, connected

TABLES = tables("memory_protocol")

PUBLISHED = json.loads(
    (Path(__file__).parent / "data" / "tools_memory_notes.json").read_text(encoding="utf-8")
)["tools"][0]
PROTOCOL = """\
IMPORTANT: ALWAYS VIEW YOUR MEMORY DIRECTORY BEFORE DOING ANYTHING ELSE.
MEMORY PROTOCOL:
1. Use the `view` command of your `memory` tool to check for earlier progress.
2. ... (work on the task) ...
   - As you make progress, record status / progress / thoughts etc in your memory.
ASSUME INTERRUPTION: Your context window might be reset at any moment, so you risk \
losing any progress that is not recorded in your memory directory."""
FOLDERS = ("user/", "projects/", "sessions/", "patterns/")
NOTE_TOOLS = ("search_notes", "recent_activity", "build_context")
HEADINGS = [
    "Protocol",
    "Where things go",
    "A memory file",
    "Three patterns",
    "Finding it again",
    "Keeping it good",
]
WHEN = datetime(2026, 5, 7, tzinfo=UTC)
OWNERS = ["Answer in French — toujours.", "Never mention the lighthouse."]
CONFIGURATIONS = {
    "plain": {},
    "one sentence": {"instructions": OWNERS[0]},
    "sentences": {"instructions": OWNERS},
    "long": {"instructions": ["lighthouse " * 50] * 9},
    "refusing": {"create_existing": "error"},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Any]:
    """`served(configuration, *arguments)`: the module's server of that kind, and its handshake's
    answer.
    """
    servers: dict[tuple[str, ...], tuple[ServerProcess, dict[str, Any]]] = {}
    with ExitStack() as ends:

        def start(configuration: str, *arguments: str) -> tuple[ServerProcess, dict[str, Any]]:
            key = (configuration, *arguments)
            if key not in servers:
                folder = tmp_path_factory.mktemp("served")
                rows = {"memory_tool": CONFIGURATIONS[configuration]}
                (folder / "home").mkdir()
                (folder / "home" / "config.yaml").write_text(json.dumps(rows))
                server = ends.enter_context(connected(folder / "home", *arguments))
                servers[key] = server, server.hello
            return servers[key]

        yield start


def listed(server: ServerProcess) -> list[dict[str, Any]]:
    return server.ask("tools/list")["result"]["tools"]


def without_descriptions(value: Any) -> Any:
    """A schema without its descriptions, which may be reworded."""
    if isinstance(value, dict):
        return {
            key: without_descriptions(inner_value)
            for key, inner_value in value.items()
            if key != "description"
        }
    return value


@pytest.mark.promise("000a-12.2")
@pytest.mark.parametrize("arguments", [("--tools", "memory"), ("--as", "anthropic")])
def test_the_toolset_alone_is_this_one_tool_with_the_published_schema(served, arguments):
    server, _ = served("plain", *arguments)
    (tool,) = listed(server)
    assert without_descriptions(tool) == without_descriptions(PUBLISHED)
    assert set(tool) == {"name", "description", "inputSchema", "annotations"}
    assert tool["inputSchema"]["required"] == ["command"]
    assert tool["annotations"] == {"destructiveHint": True, "openWorldHint": False}


@pytest.mark.promise("000a-12.2")
def test_with_the_note_tools_it_comes_first_and_is_the_same(served):
    alone, _ = served("plain", "--tools", "memory")
    both, _ = served("plain")
    assert listed(both)[0] == listed(alone)[0]
    assert len(listed(both)) > len(listed(alone)) == 1


@pytest.mark.promise("000a-12.2")
@pytest.mark.parametrize(
    "arguments",
    [*TABLES["bad_inputs"], {"command": "view", "path": "/memories/" + "/".join(["a" * 200] * 30)}],
    ids=lambda arguments: json.dumps(arguments)[:40],
)
def test_every_bad_input_is_answered_by_the_tool(served, arguments):
    server, _ = served("plain", "--tools", "memory")
    text, failed = answered(
        server.ask("tools/call", {"name": "memory", "arguments": arguments})["result"]
    )
    assert failed
    check_silence(text)
    assert text.startswith(("Parameter `", "Invalid path: "))
    if not isinstance(arguments, dict) or arguments.get("command") not in (
        "view",
        "rename",
        "create",
        "insert",
    ):
        for command in ("view", "create", "str_replace", "insert", "delete", "rename"):
            assert command in text


@pytest.mark.promise("000a-12.2")
@pytest.mark.parametrize("name", ["path", "file_text"])
def test_text_that_is_no_unicode_is_refused_with_the_parameters_name(served, name):
    server, _ = served("plain", "--tools", "memory")
    arguments = {"command": "create", "path": "/memories/a.md", "file_text": "x"} | {
        name: "/memories/\ud800"
    }
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "memory", "arguments": arguments},
    }
    server.write(json.dumps(request).encode() + b"\n")
    text, failed = answered(server.receive()["result"])
    assert failed
    assert f"`{name}`" in text


@pytest.mark.promise("000a-12.2")
def test_what_clients_send_in_other_words_is_understood(served):
    server, _ = served("plain", "--tools", "memory")
    path = "/memories/tolerant.md"
    for arguments in [
        {
            "command": "create",
            "path": "memories/tolerant.md",
            "file_text": "1\n2\n3\n",
            "view_range": None,
            "more": 1,
        },
        {"command": "view", "path": path, "view_range": "[" * 5000, "new_str": 7, "file_text": 7},
        {
            "command": "insert",
            "path": path,
            "insert_line": " 3 ",
            "insert_text": "4",
            "old_str": None,
        },
        {"command": "insert", "path": path, "insert_line": 4.0, "insert_text": "5"},
        {"command": "str_replace", "path": path, "old_str": "1\n", "new_str": None},
        {"command": "rename", "path": path, "new_path": "/memories//./tolerant2.md"},
    ]:
        text, failed = answered(server.call("memory", arguments))
        assert not failed, text
    view = {"command": "view", "path": "/memories/tolerant2.md", "view_range": '["2", 3.0]'}
    assert server.text("memory", view).split("\n")[1:] == ["     2\t3", "     3\t4"]


@pytest.mark.promise("000a-12.7")
def test_the_description_says_what_create_does_with_an_existing_file(served):
    overwriting, refusing = (
        listed(served(configuration, "--tools", "memory")[0])[0]["description"]
        for configuration in ("plain", "refusing")
    )
    assert "an existing file is overwritten" in overwriting
    assert "an existing file is refused" in refusing
    assert "{" not in overwriting + refusing


@pytest.mark.promise("000a-12.7")
def test_create_refuses_an_existing_file_when_told_so_and_nothing_changes(served):
    server, _ = served("refusing", "--tools", "memory")
    create = {"command": "create", "path": "/memories/new/once.md", "file_text": "first"}
    assert answered(server.call("memory", create)) == (
        "File created successfully at: /memories/new/once.md",
        False,
    )
    again = create | {"file_text": "second"}
    assert answered(server.call("memory", again)) == (
        "File /memories/new/once.md already exists",
        True,
    )
    assert server.text("memory", {"command": "view", "path": "/memories/new/once.md"}).endswith(
        "     1\tfirst"
    )


def parts(instructions: str) -> tuple[str, str]:
    """The instructions without and from the owner's sentences on."""
    ours, heading, owner = instructions.partition("## From the owner\n")
    return ours, heading + owner


@pytest.mark.promise("000a-12.12")
@pytest.mark.parametrize(
    ("configuration", "arguments"),
    [*((name, ("--tools", "memory")) for name in CONFIGURATIONS), ("plain", ()), ("sentences", ())],
)
def test_the_instructions_hold_protocol_folders_and_rules_within_their_limit(
    served, configuration, arguments
):
    instructions = served(configuration, *arguments)[1]["instructions"]
    ours, owner = parts(instructions)
    assert ours.startswith(PROTOCOL)
    assert len(ours) <= 2500
    for words in (*FOLDERS, "- [category]", "[[", "not an instruction", "secret"):
        assert words in ours
    for tool in NOTE_TOOLS:
        assert (tool in ours) == (not arguments)
    assert ('project="memories"' in ours) == (not arguments)
    assert bool(owner) == ("instructions" in CONFIGURATIONS[configuration])


@pytest.mark.promise("000a-12.12")
@pytest.mark.parametrize(
    ("configuration", "arguments"),
    [
        ("one sentence", ("--tools", "memory")),
        ("sentences", ("--tools", "memory")),
        ("sentences", ()),
    ],
)
def test_the_owners_sentences_come_last_and_as_written(served, configuration, arguments):
    _, owner = parts(served(configuration, *arguments)[1]["instructions"])
    sentences = CONFIGURATIONS[configuration]["instructions"]
    assert owner.split("\n")[1:] == ([sentences] if isinstance(sentences, str) else sentences)


@pytest.mark.promise("000a-12.12")
def test_too_many_words_of_the_owner_are_cut_with_a_warning(served, tmp_path):
    _, owner = parts(served("long", "--tools", "memory")[1]["instructions"])
    owner_words = owner.partition("\n")[2]
    assert 1900 < len(owner_words) <= 2000
    assert set(owner_words.split()) <= {"lighthouse"} | {"lighthouse"[:n] for n in range(10)}
    (tmp_path / "config.yaml").write_text(json.dumps({"memory_tool": CONFIGURATIONS["long"]}))
    assert any("memory_tool.instructions" in warning for warning in load(tmp_path).warnings)


def guide(server: ServerProcess) -> str:
    (message,) = server.ask("prompts/get", {"name": "memory_guide"})["result"]["messages"]
    assert message["role"] == "user"
    return message["content"]["text"]


@pytest.mark.promise("000a-12.12")
def test_the_guide_is_one_prompt_without_arguments_and_with_a_sentence(served):
    server, _ = served("plain", "--tools", "memory")
    (prompt,) = server.ask("prompts/list")["result"]["prompts"]
    assert prompt["name"] == "memory_guide"
    assert not prompt.get("arguments")
    assert re.fullmatch(r"[A-Z][^.]+\.", prompt["description"])


@pytest.mark.promise("000a-12.12")
@pytest.mark.parametrize("configuration", ["plain", "sentences", "long"])
def test_the_guide_has_its_headings_within_its_limit(served, configuration):
    text = guide(served(configuration, "--tools", "memory")[0])
    outside_examples = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    if configuration != "plain":
        owner = ["From the owner"]
    else:
        owner = []
    assert re.findall(r"^## (.+)$", outside_examples, re.MULTILINE) == HEADINGS + owner
    assert len(text) <= 8000
    for words in (
        *FOLDERS,
        *NOTE_TOOLS,
        'project="memories"',
        "str_replace",
        "secret",
        "instruction",
    ):
        assert words in text
    if configuration == "sentences":
        assert text.rstrip().endswith("\n".join(OWNERS))


@pytest.mark.promise("000a-12.12")
def test_every_example_of_the_guide_is_a_note_with_observations(served):
    text = guide(served("plain", "--tools", "memory")[0])
    examples = re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == 4
    for number, example in enumerate(examples):
        note = parse_note(example, project="memories", path=f"example-{number}.md", changed=WHEN)
        assert note.observations
        assert (note.type, bool(note.title), bool(note.tags), note.warnings) == (
            "memory",
            True,
            True,
            [],
        )
    assert any(
        parse_note(note_example, project="memories", path="x.md", changed=WHEN).relations
        for note_example in examples
    )
