"""`memory agent`, and the agent tools over `memory call` and MCP (contract 001, 14)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.mcp_server import Server

pytestmark = pytest.mark.promise("001-17.12")

WRITE = '{"name": "memory_write", "params": {"content": "dark mode", "category": "preferences"}}'
NOTHING = "No input. Use --input, stdin, or --list-tools.\n"


def test_calls_are_run_and_answered_as_indented_json(terminal: Any) -> None:
    out = terminal.ok(
        "agent", stdin=f'[{WRITE}, {{"name": "memory_list", "params": {{"limit": "1"}}}}]'
    )
    assert out.startswith(
        '{\n  "tool_calls": [\n    {\n      "name": "memory_write",\n      "params": {\n'
    )
    first, second = json.loads(out)["tool_calls"]
    assert first["result"]["metadata"]["id"] in second["result"]["content"]
    assert "preferences" in terminal.ok("list")


def test_the_result_of_a_write_in_chinese_is_readable(terminal: Any) -> None:
    out = terminal.ok("agent", stdin='[{"name": "memory_write", "params": {"content": "深色"}}]')
    assert '"content": "深色"' in out


@pytest.mark.parametrize(
    "data", ["", " \n", "{}", '{"prompt": ""}', '{"prompt": null, "tool_calls": null}']
)
def test_nothing_at_all_is_said_so(terminal: Any, data: str) -> None:
    assert terminal.ok("agent", stdin=data) == NOTHING
    assert not terminal.home.exists()


PROMPTS = {
    "an option": (("--prompt", "dark"), ""),
    "an option before calls": (("--prompt", "dark"), "[]"),
    "an option before another prompt": (("--prompt", "dark"), '{"prompt": "light"}'),
    "a prompt as JSON for an option": (("--prompt", "-"), '{"prompt": "dark"}'),
    "a prompt as text for an option": (("--prompt", "-"), "Is it dark?\n"),
    "text that looks like JSON": (("--prompt", "-"), "{dark}"),
    "a prompt as JSON": ((), '{"prompt": "dark"}'),
}


@pytest.fixture
def modes(terminal: Any) -> Any:
    """The command over a memory about dark mode and another one."""
    terminal.write("dark mode")
    terminal.write("light")
    return terminal


def test_prompt_from_any_place_gives_its_context(modes: Any) -> None:
    outputs = {name: modes.ok("agent", *argv, stdin=text) for name, (argv, text) in PROMPTS.items()}
    assert outputs == dict.fromkeys(PROMPTS, "Context: dark mode\n")


def test_prompt_that_finds_nothing_gives_an_empty_context(modes: Any) -> None:
    assert modes.ok("agent", "--prompt", "nothing like it") == "Context: \n"


def test_blank_prompt_is_no_input(modes: Any) -> None:
    assert modes.ok("agent", "--prompt", "-", stdin=" ") == NOTHING


def test_a_prompt_goes_with_calls(terminal: Any) -> None:
    terminal.write("dark mode")
    for argv, data in (
        (["--prompt", "dark"], '[{"name": "memory_list"}]'),
        ([], '{"prompt": "dark", "calls": [{"name": "memory_list"}]}'),
        (["--prompt", "-"], '{"prompt": "dark", "tool_calls": [{"name": "memory_list"}]}'),
    ):
        answer = json.loads(terminal.ok("agent", *argv, stdin=data))
        assert list(answer) == ["tool_calls", "context"]
        assert answer["context"] == "dark mode"
        assert answer["tool_calls"][0]["result"]["metadata"] == {"count": 1}


def test_calls_come_from_a_file(terminal: Any) -> None:
    file = terminal.folder / "calls.json"
    file.write_text(f"[{WRITE}]")
    tool_calls = json.loads(terminal.ok("agent", "--input", str(file)))["tool_calls"]
    assert tool_calls


def test_a_prompt_on_stdin_is_answered_from_what_is_there_before_the_calls(terminal: Any) -> None:
    file = terminal.folder / "calls.json"
    file.write_text(f"[{WRITE}]")
    terminal.ok("agent", "--input", str(file))
    answer = json.loads(terminal.ok("agent", "--input", str(file), "--prompt", "-", stdin="dark?"))
    assert answer["context"] == "dark mode"


def test_calls_come_from_stdin_in_place_of_a_file(terminal: Any) -> None:
    tool_calls = json.loads(terminal.ok("agent", "--input", "-", stdin=f"[{WRITE}]"))["tool_calls"]
    assert tool_calls


def test_a_file_of_calls_that_is_missing_is_named(terminal: Any) -> None:
    ran = terminal("agent", "--input", "none.json")
    assert ran.status == 1
    assert ran.out == ""
    assert ran.error == "open input file: none.json: no such file"


def test_a_hard_error_shows_the_earlier_results(terminal: Any) -> None:
    ran = terminal(
        "agent",
        stdin=f'[{WRITE}, {{"name": "memory_read", "params": {{"id": "nobody"}}}}, {WRITE}]',
    )
    assert (ran.status, ran.err) == (
        1,
        "Error: tool memory_read failed: memory not found: nobody\n",
    )
    first, second = ran.json["tool_calls"]
    assert first["result"]["is_error"] is False
    assert second == {
        "name": "memory_read",
        "params": {"id": "nobody"},
        "error": "memory not found: nobody",
    }
    assert "Showing 1 of 1" in terminal.ok("list")


@pytest.mark.parametrize(
    "data",
    [
        "notjson",
        '{"tool_calls": 5}',
        f'[{WRITE}, "x"]',
        f'[{WRITE}, {{"name": 5}}]',
        '{"prompt": []}',
        "true",
    ],
)
def test_bad_json_runs_nothing(terminal: Any, data: str) -> None:
    ran = terminal("agent", stdin=data)
    assert (ran.status, ran.out) == (1, "")
    assert ran.error.startswith("parse tool calls: ")
    assert terminal.ok("list") == "No memories found.\n"


def test_bytes_that_are_no_text_are_refused(terminal: Any) -> None:
    assert terminal("agent", stdin=b"\xff\xfe\xff").error.startswith("parse tool calls: ")
    assert (
        terminal("agent", "--prompt", "-", stdin=b"\xff").error
        == "the text on stdin is not valid UTF-8"
    )


def test_a_lone_surrogate_in_a_call_comes_back_as_it_was(terminal: Any) -> None:
    out = terminal.ok("agent", stdin='[{"name": "memory_write", "params": {"content": "\\ud800"}}]')
    assert json.loads(out)["tool_calls"][0]["params"] == {"content": "\ud800"}


def test_the_tools_are_listed_with_their_schemas(terminal: Any) -> None:
    out = terminal.ok("agent", "--list-tools")
    listed = json.loads(out)
    assert out == json.dumps(listed, ensure_ascii=False, indent=2) + "\n"
    assert listed[0]["name"] == "memory_write"
    assert len(listed) == 7
    names = {
        load["name"]
        for load in json.loads(terminal.ok("agent", "--list-tools", "--tools", "notes,agent"))
    }
    assert {"write_note", "memory_smart_search"} <= names
    assert not terminal.home.exists()


def test_toolsets_that_do_not_go_together_are_refused(terminal: Any) -> None:
    assert (
        'Two toolsets have a tool "memory_search"'
        in terminal("agent", "--tools", "kv,agent", "--list-tools").error
    )
    assert terminal("agent", "--tools", "nope", "--list-tools").error.startswith(
        'Unknown toolset "nope".'
    )


def test_failures_with_json_are_a_document_and_answers_are_as_always(terminal: Any) -> None:
    assert terminal("agent", "--json", stdin="x").json["error"]["code"] == "invalid"
    assert terminal.ok("agent", "--json", "--format", "json", stdin="[]") == "[]\n"


def test_an_agent_is_bound_to_its_scope(terminal: Any) -> None:
    terminal.write("dark of claude", "--scope", "agent:claude")
    assert terminal.ok("agent", "--agent", "copilot", "--prompt", "dark") == "Context: \n"
    assert (
        terminal.ok("agent", "--agent", "claude", "--prompt", "dark") == "Context: dark of claude\n"
    )
    terminal.ok("agent", "--agent", "claude", stdin=f"[{WRITE}]")
    assert "claude" in terminal.ok("list", "--source", "claude")


def test_one_tool_is_called_by_name(terminal: Any) -> None:
    ref = json.loads(terminal.ok("call", "memory_write", '{"content": "dark"}'))["id"]
    assert (
        json.loads(terminal.ok("call", "memory_read", json.dumps({"id": ref})))["content"] == "dark"
    )
    ran = terminal("call", "memory_search", '{"query": "dark"}')
    assert (
        ran.error == "tool memory_search is in several toolsets: kv, agent; choose one with --tools"
    )
    assert (
        json.loads(terminal.ok("call", "memory_search", '{"query": "dark"}', "--tools", "agent"))[
            0
        ]["id"]
        == ref
    )
    assert "**total_matches:** 0" in terminal.ok(
        "call", "memory_search", '{"query": "dark"}', "--tools", "all"
    )
    assert terminal("call", "memory_read", '{"id": "nobody"}').error == "memory not found: nobody"


def test_the_tools_are_served_over_mcp(terminal: Any) -> None:
    with Server(
        "--home", str(terminal.home), "--tools", "agent", HOME=str(terminal.folder)
    ) as server:
        tools = server.ask("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in tools][-1] == "memory_smart_search"
        server.call("memory_write", content="dark")
        got = server.call("memory_smart_search", query="dark")
    source = json.loads(got["content"][0]["text"])["results"][0]["source"]
    assert source == "test"
    assert got["_meta"] == {"memoranda/count": 1}
    assert "structuredContent" not in got
