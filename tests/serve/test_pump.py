"""`memory mcp` where a daemon runs: the same server, without one in each client's process
(docs/clients.md).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from memoranda.config import load
from memoranda.engine import open_session
from memoranda.faces import registry
from memoranda.serve import pump, sessions
from memoranda.serve.pump import program
from serve.client import OfficialClient
from serve.daemon_process import Client, DaemonProcess
from serve.process import SECONDS, memory_mcp

GRAPH = "memory://knowledge-graph"


@pytest.fixture
def home(tmp_path):
    notes = tmp_path / "home" / "notes"
    notes.mkdir(parents=True)
    (notes / "tea.md").write_text("# Tea\n\nGreen tea, 二十四节气.\n")
    (notes / "secret.md").write_text("---\nscope: agent:claude\n---\nsecret tea\n")
    return tmp_path / "home"


@pytest.fixture
def daemons(home):
    """Start daemons of the home that end with the test."""
    with ExitStack() as ends:

        def started():
            daemon = ends.enter_context(DaemonProcess(home, "--interval", "1h"))
            daemon.ready()
            return daemon

        yield started


@pytest.fixture
def daemon(daemons):
    return daemons()


@pytest.fixture
def locked(home):
    """While it is open, changes of the home wait."""

    @contextmanager
    def locked() -> Iterator[None]:
        with open_session(home, watch=False) as memory, memory.exclusive():
            yield

    return locked


def passes_on(server) -> bool:
    """Whether the process only passes on what its client and a daemon say."""
    process = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-p", str(server.process.pid)], capture_output=True, check=True
    )
    return b"pump.main" in process.stdout


def write(server, title, content="x"):
    return server.send(
        "tools/call", {"name": "write_note", "arguments": {"title": title, "content": content}}
    )


def known(server):
    """The server has received all that was sent before: a ping waits for no call."""
    assert server.ask("ping")["result"] == {}


def titles(home):
    return sorted(path.stem for path in (home / "notes").glob("*.md"))


def transcript(server):
    """What a server answers to lines of all kinds, as it came."""
    lines = [
        b'{"jsonrpc":"2.0","id":"a\\u00e9\\",\\"result\\":","method":"tools/list"}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":12345678901234567890,"method":"prompts/list"}',
        b'{"jsonrpc":"2.0","id":2,"method":"resources/templates/list"}',
        b'{"jsonrpc":"2.0","id":3,"method":"nothing/known","params":{}}',
        b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[]}',
        b"no JSON at all",
        b'{"jsonrpc":"2.0","id":11,"method":"pi',
        b'{"jsonrpc":"2.0","id":12,"method":"ping\x00"}',
        b'{"jsonrpc":"2.0","id":13,"method":"ping" "again"}',
        b'{"jsonrpc":"2.0","id":"lost \xed\xa0\x80","method":"ping"}',
        b'["batch"]',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read_note","arguments":{"identifier":"tea"}}}',
        b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"read_note","arguments":{"identifier":"\xff"}}}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"memory","arguments":"odd"}}',
        b'{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"memory://notes/tea"}}',
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"no_tool","arguments":{}}}',
        b'{"jsonrpc":"2.0","id":10,"method":"completion/complete","params":{"ref":{"type":"ref/resource",'
        b'"uri":"memory://{project}/{+path}"},"argument":{"name":"project","value":"n"}}}',
    ]
    answers = []
    for line in lines:
        server.write(line + b"\n")
        answers.append(server.line())
    return answers


@pytest.mark.slow
@pytest.mark.promise("daemon-mcp")
def test_a_client_is_answered_byte_for_byte_as_by_a_server_of_its_own(home, connect, daemons):
    alone = connect()
    expected = [alone.hello, *transcript(alone)]
    assert not passes_on(alone)
    assert alone.close() == 0
    daemons()
    served = connect()
    assert passes_on(served)
    assert [served.hello, *transcript(served)] == expected
    assert served.close() == 0
    assert served.errors() == ""


@pytest.mark.promise("daemon-mcp")
def test_plain_schemas_are_the_wish_of_one_client(home, connect, daemon):
    schemas = []
    for more in ((), ("--plain-schemas",), ("--plain-schemas", "--no-daemon")):
        client = connect("--tools", "kv", *more)
        tools = client.ask("tools/list")["result"]["tools"]
        schemas.append(str([tool["inputSchema"] for tool in tools]))
        assert client.close() == 0

    assert "additionalProperties" in schemas[0]
    assert "additionalProperties" not in schemas[1]
    assert schemas[1] == schemas[2]


@pytest.mark.promise("daemon-mcp")
def test_each_client_is_its_own_agent(home, connect, daemon):
    claude = connect(name="claude-code")
    cursor = connect(name="cursor-vscode")
    other_client = connect("--agent", "claude")
    secret = {"identifier": "notes/secret"}
    assert all(passes_on(client) for client in (claude, cursor, other_client))
    assert [
        client.call("read_note", secret)["isError"] for client in (claude, cursor, other_client)
    ] == [
        False,
        True,
        False,
    ]
    claude.text("write_note", {"title": "Mine", "content": "x"})
    provenance = claude.call("read_note", {"identifier": "notes/Mine"})["structuredContent"][
        "provenance"
    ]
    assert (provenance["who"], provenance["client"]) == ("agent:claude", "claude-code 0")


def test_what_was_sent_before_the_end_of_input_is_carried_out_and_answered(home, connect, daemon):
    server = connect()
    sent = [write(server, f"n{number}") for number in range(20)]

    assert server.close() == 0
    ids = [answer["id"] for answer in server.rest()]
    assert ids == sent
    assert len(titles(home)) == 22


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_refuses_the_calls_that_wait_and_ends_the_client_alone(
    home, connect, daemon, locked, number, status
):
    server = connect()
    other_client = connect()
    with locked():
        write(server, "running")
        waiting = write(server, "waiting")
        known(server)
        server.process.send_signal(number)
        answers = {answer["id"]: answer["result"] for answer in server.rest()}

    assert server.process.wait(SECONDS) == status
    refusal = answers[waiting]
    assert refusal["isError"]
    assert "The server is stopping" in refusal["content"][0]["text"]
    assert titles(home) == ["secret", "tea"]
    text = other_client.text("read_note", {"identifier": "tea"})
    assert "Green tea" in text


def test_a_call_that_is_cancelled_while_it_waits_is_not_carried_out(home, connect, daemon, locked):
    server = connect()
    with locked():
        first = write(server, "first")
        second = write(server, "second")
        known(server)
        server.notify("notifications/cancelled", {"requestId": second})
        known(server)
    assert server.receive()["id"] == first
    known(server)
    assert titles(home) == ["first", "secret", "tea"]


@pytest.mark.promise("daemon-gone")
def test_a_daemon_killed_in_a_call_leaves_the_session_and_says_that_the_outcome_is_unknown(
    home, connect, daemon, locked
):
    server = connect(name="claude-code")
    with locked():
        call = write(server, "lost")
        looked = server.send("tools/list")
        assert server.receive()["id"] == looked
        daemon.stop(signal.SIGKILL)
        answer = server.receive()
        assert answer["id"] == call
        assert answer["error"]["code"] == -32603
        assert "unknown whether" in answer["error"]["message"]
    # The same agent
    text = server.text("read_note", {"identifier": "notes/secret"})
    assert "secret tea" in text
    assert not passes_on(server)
    assert titles(home) == ["secret", "tea"]
    assert server.close() == 0
    assert server.rest() == []


@pytest.mark.slow
@pytest.mark.promise("daemon-gone")
def test_a_session_goes_on_with_the_daemon_that_comes_next(home, connect, daemon, daemons):
    server = connect(name="claude-code")
    for end in (signal.SIGTERM, signal.SIGKILL):
        assert "Traceback" not in daemon.stop(end)[2]
        daemon = daemons()
        # The same agent
        assert "secret tea" in server.text("read_note", {"identifier": "notes/secret"})
        assert passes_on(server)
    daemon.stop()
    assert server.close() == 0
    assert server.rest() == []


@pytest.mark.slow
@pytest.mark.promise("daemon-gone")
def test_the_official_client_does_not_notice_that_its_daemon_was_killed(home, daemon):
    with OfficialClient(memory_mcp(home), home.parent, "claude-code", "2026-07-28") as client:
        tools = client.tools()
        secret = {"identifier": "notes/secret"}
        before = client.call("read_note", secret)
        assert "secret tea" in before["text"]
        daemon.stop(signal.SIGKILL)
        assert client.call("read_note", secret) == before
        assert client.tools() == tools


@pytest.mark.slow
@pytest.mark.parametrize("answers", [0, 7])
@pytest.mark.promise("daemon-gone")
def test_a_daemon_killed_in_a_burst_loses_nothing_acknowledged_and_nothing_is_done_twice(
    home, connect, daemon, answers
):
    server = connect()
    operation = {"identifier": "notes/tea", "operation": "append"}
    sent = {}
    for number in range(100):
        edit = {**operation, "content": f"\nline {number} of many"}
        sent[server.send("tools/call", {"name": "edit_note", "arguments": edit})] = (
            f"line {number} of many"
        )
    first = [server.receive() for _ in range(answers)]
    daemon.stop(signal.SIGKILL)
    answers_received = [*first, *(server.receive() for _ in range(100 - answers))]
    ids = {answer["id"] for answer in answers_received}
    assert ids == sent.keys()
    assert server.close() == 0
    lines = (home / "notes" / "tea.md").read_text().splitlines()
    for answer in answers_received:
        if "result" in answer:
            assert not answer["result"]["isError"]
            assert lines.count(sent[answer["id"]]) == 1
        else:
            assert "unknown whether" in answer["error"]["message"]
            assert lines.count(sent[answer["id"]]) <= 1


@pytest.mark.slow
@pytest.mark.promise("daemon-gone")
def test_a_client_that_watches_a_resource_is_told_of_changes_when_the_daemon_has_gone(
    home, connect, daemon
):
    server = connect("--tools", "graph")
    assert server.ask("resources/subscribe", {"uri": GRAPH})["result"] == {}
    daemon.stop()
    known(server)
    entity = {"name": "E", "entityType": "t", "observations": []}
    call = server.send(
        "tools/call", {"name": "memory_create_entities", "arguments": {"entities": [entity]}}
    )
    notification = server.receive()
    answer = server.receive()
    assert (notification["method"], notification["params"]) == (
        "notifications/resources/updated",
        {"uri": GRAPH},
    )
    assert answer["id"] == call
    assert server.close() == 0
    assert server.rest() == []


@pytest.mark.slow
@pytest.mark.promise("daemon-gone")
def test_a_daemon_that_stops_ends_the_running_call_and_refuses_those_that_wait(
    home, connect, daemon, locked
):
    server = connect()
    with locked():
        running = write(server, "running")
        waiting = write(server, "waiting")
        known(server)
        daemon.process.send_signal(signal.SIGTERM)
        answers = {
            answer["id"]: answer["result"] for answer in (server.receive(), server.receive())
        }
        assert daemon.ended()[0] == 0

    assert answers.keys() == {running, waiting}
    assert "this call was not carried out" in answers[waiting]["content"][0]["text"]
    text = server.text("read_note", {"identifier": "tea"})
    assert "Green tea" in text


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown"}}\n',
        b"",
        sessions._GRANT_LINE,
    ],
    ids=["refuses", "goes", "grants a session and says nothing"],
)
def test_a_daemon_that_serves_no_session_is_asked_once_and_done_without(home, connect, answer):
    with listening(home, answer) as lines_heard:
        server = connect()
        text = server.text("read_note", {"identifier": "tea"})
        assert "Green tea" in text
        assert not passes_on(server)
    questions = [line for line in lines_heard if b'"mcp"' in line]
    assert len(questions) == 1


@contextmanager
def listening(home, answer) -> Iterator[list[bytes]]:
    """Something that answers each connection to the home's socket with `answer` and closes it: what
    it was asked.
    """
    lines_heard = []
    with socket.socket(socket.AF_UNIX) as listener:
        folder_before = os.getcwd()
        os.chdir(home)
        try:
            listener.bind("memory.sock")
        finally:
            os.chdir(folder_before)
        listener.listen()

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, connection.makefile("rb") as lines:
                    lines_heard.append(lines.readline())
                    connection.sendall(answer)
                    if answer == sessions._GRANT_LINE:
                        lines.readline()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield lines_heard
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)


def test_a_client_with_a_configuration_or_files_of_its_own_has_a_server_of_its_own(
    home, connect, daemon, tmp_path
):
    (tmp_path / "other.yaml").write_text("gate:\n  secrets: allow\n")
    assert not passes_on(connect("--config", str(tmp_path / "other.yaml")))
    assert not passes_on(connect("--tools", "graph", "--graph-file", str(tmp_path / "graph.jsonl")))
    assert passes_on(connect("--as", "memory-bank"))
    log = daemon.stop()[2]
    assert "served by its own process: this daemon has another configuration" in log


def test_a_daemon_serves_new_clients_by_a_configuration_that_changed_while_it_ran(
    home, connect, daemon
):
    before = connect()
    (home / "config.yaml").write_text("memory_tool:\n  create_existing: error\n")
    server = connect()
    assert passes_on(before)
    assert passes_on(server)
    arguments = {"command": "create", "path": "/memories/a.md", "file_text": "x"}
    assert "created" in server.text("memory", arguments)
    assert "already exists" in server.call("memory", arguments)["content"][0]["text"]


@pytest.mark.slow
def test_a_daemon_for_one_agent_serves_no_other(home, connect, start):
    with DaemonProcess(home, "--agent", "claude") as daemon:
        daemon.ready()
        assert not passes_on(connect())
        assert passes_on(connect("--agent", "claude"))


@pytest.mark.slow
@pytest.mark.promise("daemon-mcp")
def test_messages_of_megabytes_go_both_ways(home, connect, daemon):
    server = connect()
    content = "".join(f"{number:019}\n" for number in range(1 << 17))
    reply = server.call("write_note", {"title": "Large", "content": content})
    assert not reply["isError"]
    result = server.ask("resources/read", {"uri": "memory://notes/Large"})["result"]
    text = result["contents"][0]["text"]
    assert text.endswith(content)
    assert passes_on(server)


@pytest.mark.slow
@pytest.mark.promise("daemon-bounds")
def test_a_session_with_a_line_longer_than_the_daemon_takes_goes_on_without_it(
    home, connect, daemon
):
    server = connect()
    call = write(server, "before")
    server.write(
        b'{"jsonrpc":"2.0","id":99,' + b" " * (pump.LIMIT + pump.BLOCK) + b'"method":"ping"}\n'
    )

    assert [server.receive()["id"], server.receive()["id"]] == [call, 99]
    assert not passes_on(server)
    assert titles(home) == ["before", "secret", "tea"]


@pytest.mark.slow
@pytest.mark.promise("daemon-bounds")
def test_a_client_that_takes_no_answers_holds_up_neither_others_nor_the_end_of_the_daemon(
    home, connect, daemon
):
    (home / "notes" / "large.md").write_text("large\n" * 50_000)
    parameters = {
        "program": program(),
        "settings": load(home).digest(),
        "tools": ["notes"],
        "like": None,
        "name": "n",
        "agent": "a",
    }
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "0"},
    }
    read = {"name": "read_note", "arguments": {"identifier": "large"}}
    with Client(home) as silent:
        reply = silent.ask("mcp", jsonrpc="2.0", params=parameters)
        while reply.get("method") == "notifications/memoranda/alive":
            reply = silent.reply()
        assert reply.get("result") == {}, reply
        silent.send(
            json.dumps(
                {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
            ).encode()
            + b"\n"
        )
        for number in range(50):
            line = {"jsonrpc": "2.0", "id": number + 1, "method": "tools/call", "params": read}
            silent.send(json.dumps(line).encode() + b"\n")
        server = connect()
        assert "Green tea" in server.text("read_note", {"identifier": "tea"})
        assert daemon.stop()[0] == 0


@pytest.mark.promise("daemon-bounds")
def test_no_more_sessions_are_granted_than_a_daemon_may_have(home, monkeypatch):
    monkeypatch.setattr(sessions, "_MAX_SESSIONS", 1)
    with open_session(home, watch=False) as memory:
        served = sessions.McpSessions(
            memory, lambda names, like: registry(names, memory.settings, like=like)
        )
        parameters = {
            "program": program(),
            "settings": memory.settings.digest(),
            "tools": ["kv"],
            "like": None,
            "name": "n",
        }

        async def ask(connection):
            with connection:
                reader, writer = await asyncio.open_connection(sock=connection)
                await served.serve(parameters, reader, writer)
                writer.close()
                await writer.wait_closed()

        async def both():
            (first_socket, its), (second, second_end) = socket.socketpair(), socket.socketpair()
            with its, second_end:
                first = asyncio.create_task(ask(first_socket))
                its.setblocking(False)
                await asyncio.get_running_loop().sock_recv(its, 1000)
                await ask(second)
                refused = second_end.recv(1000)
                its.send(pump.END)
                await first
                return refused

        refused = asyncio.run(asyncio.wait_for(both(), SECONDS))
    refused = json.loads(refused.splitlines()[-1])
    assert refused["error"]["message"] == "this daemon serves no more sessions"
    assert served.connected() == []
