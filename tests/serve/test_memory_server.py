"""`memory mcp` as a client starts it: the real command, engine and faces behind the protocol."""

from __future__ import annotations

import json
import signal
import sys

import pytest

SECONDS = 60


@pytest.fixture
def memory_mcp(start, tmp_path, monkeypatch):
    """Start `memory mcp` with these arguments on one home below tmp_path."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("MEMORY_HOME", "MEMORY_AGENT", "BASIC_MEMORY_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)

    def started(*arguments):
        home = str(tmp_path / "home")
        return start(*arguments, command=[sys.executable, "-m", "commonplace", "mcp", "--home", home])

    return started


def test_the_default_toolsets_are_memory_and_notes(memory_mcp):
    server = memory_mcp()
    answer = server.handshake()
    assert "MEMORY PROTOCOL" in answer["instructions"]
    assert set(answer["capabilities"]) - {"experimental"} == {"tools", "prompts", "resources", "completions"}
    tools = server.ask("tools/list")["result"]["tools"]
    assert len(tools) == 13
    assert tools[0]["name"] == "memory"
    assert len(json.dumps(tools, ensure_ascii=False, separators=(",", ":"))) <= 12_000
    assert server.close() == 0
    assert server.errors() == ""


def test_the_memory_toolset_alone_is_one_tool_and_its_guide(memory_mcp):
    server = memory_mcp("--tools", "memory")
    assert "resources" not in server.handshake()["capabilities"]
    assert [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]] == ["memory"]
    assert [prompt["name"] for prompt in server.ask("prompts/list")["result"]["prompts"]] == ["memory_guide"]
    guide = server.ask("prompts/get", {"name": "memory_guide"})["result"]
    assert "Protocol" in guide["messages"][0]["content"]["text"]


def test_a_file_of_the_memory_tool_is_at_once_a_note_and_a_resource(memory_mcp):
    server = memory_mcp()
    server.handshake()
    path = "/memories/user/偏好.md"
    create = {"command": "create", "path": path, "file_text": "- [fact] likes zebras #animals\n"}
    assert server.call("memory", create) == {
        "content": [{"type": "text", "text": f"File created successfully at: {path}"}],
        "isError": False,
    }
    hits = server.call("search_notes", {"query": "zebras"})["structuredContent"]
    assert [hit["file_path"] for hit in hits["results"]] == ["user/偏好.md"]
    uri = "memory://memories/user/%E5%81%8F%E5%A5%BD.md"
    contents = server.ask("resources/read", {"uri": uri})["result"]["contents"]
    assert contents == [{"uri": uri, "mimeType": "text/markdown", "text": create["file_text"]}]
    missing = server.ask("resources/read", {"uri": "memory://memories/user/nothing.md"})["error"]
    assert missing["code"] == -32002
    assert "user/nothing.md" in missing["message"]
    reference = {"type": "ref/resource", "uri": "memory://{project}/{+path}"}
    offered = server.ask("completion/complete", {"ref": reference, "argument": {"name": "project", "value": "mem"}})
    assert offered["result"]["completion"]["values"] == ["memories"]


def test_a_hundred_edits_sent_at_once_that_each_need_the_one_before_all_succeed(memory_mcp):
    server = memory_mcp()
    server.handshake()
    path = "/memories/counter.md"
    calls = [{"command": "create", "path": path, "file_text": "count 0\n"}]
    for n in range(50):
        calls.append({"command": "str_replace", "path": path, "old_str": f"count {n}\n", "new_str": f"count {n + 1}\n"})
        calls.append({"command": "insert", "path": path, "insert_line": n + 1, "insert_text": f"line {n + 1}"})
    ids = [server.send("tools/call", {"name": "memory", "arguments": call}) for call in calls]
    answers = [server.receive() for _ in ids]
    assert [answer["id"] for answer in answers] == ids
    assert not [answer for answer in answers if answer["result"]["isError"]]
    view = server.text("memory", {"command": "view", "path": path})
    assert view.split("\n")[1:4] == ["     1\tcount 50", "     2\tline 1", "     3\tline 2"]
    assert view.count("\tline ") == 50


def test_bad_input_of_the_memory_tool_is_answered_by_the_tool(memory_mcp):
    server = memory_mcp("--tools", "memory")
    server.handshake()
    for arguments in ({}, [], "view", {"command": 5}, {"command": "view", "path": 7}, {"command": "view", "path": "x"}):
        result = server.ask("tools/call", {"name": "memory", "arguments": arguments})["result"]
        text = result["content"][0]["text"]
        assert result["isError"]
        assert result["structuredContent"] == {"error": text, "is_error": True}
    server.write(
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory", "arguments": '
        rb'{"command": "create", "path": "/memories/a.md", "file_text": "\ud800"}}}' + b"\n"
    )
    assert "`file_text`" in server.receive()["result"]["content"][0]["text"]


def test_the_clients_name_decides_whose_notes_it_sees(memory_mcp, tmp_path):
    memories = tmp_path / "home" / "memories"
    memories.mkdir(parents=True)
    (memories / "mine.md").write_text("---\nscope: agent:claude\n---\nmine\n")
    view = {"command": "view", "path": "/memories/mine.md"}
    for client, sees in (("claude-code", True), ("cursor-vscode", False)):
        server = memory_mcp()
        server.handshake(client=client)
        assert server.call("memory", view)["isError"] is not sees
        assert server.close() == 0
    server = memory_mcp("--agent", "claude")
    server.handshake(client="cursor-vscode")
    assert server.call("memory", view)["isError"] is False


def test_the_server_ends_with_its_client_and_with_a_signal(memory_mcp):
    server = memory_mcp()
    server.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    server.process.stdin.close()
    assert server.receive()["result"] == {}
    assert server.process.wait(SECONDS) == 0
    server = memory_mcp()
    server.handshake()
    server.call("memory", {"command": "view", "path": "/memories"})
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(SECONDS) == 0
    assert server.errors() == ""
