"""The daemon's protocol, line by line (contract 001, 13)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.engine import open_session
from memoranda.faces import registry
from memoranda.note.model import Draft
from memoranda.serve.socket import Protocol

pytestmark = pytest.mark.promise("001-17.11")


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with open_session(tmp_path_factory.mktemp("home"), face="socket") as opened:
        yield opened


@pytest.fixture(scope="module")
def protocol(memory):
    return Protocol(memory, registry(("agent",), memory.settings))


@pytest.fixture
def ask(protocol):
    def send(request):
        if isinstance(request, bytes):
            data = request
        else:
            data = json.dumps(request).encode()
        reply = protocol.answer(data + b"\n")
        assert reply.endswith(b"\n")
        assert reply.count(b"\n") == 1
        return json.loads(reply)

    return send


def test_tools_list_names_the_seven_tools_with_their_schemas(ask):
    reply = ask({"id": 1, "method": "tools/list"})
    assert reply["id"] == 1
    assert [tool["name"] for tool in reply["result"]] == [
        "memory_write",
        "memory_read",
        "memory_delete",
        "memory_list",
        "memory_search",
        "memory_tag",
        "memory_smart_search",
    ]
    assert all(set(tool) == {"name", "description", "schema"} for tool in reply["result"])


@pytest.mark.parametrize(
    "request_",
    [
        {"method": "tools/call", "params": {"name": "memory_list", "params": {"limit": 1}}},
        {"method": "tools/call", "params": {"name": "memory_list", "arguments": {"limit": 1}}},
        {"method": "tools/call", "params": {"name": "memory_list", "limit": 1}},
        {
            "method": "tools/call",
            "params": {"name": "memory_list", "params": None, "arguments": {"limit": 1}},
        },
        {"method": "memory_list", "params": {"limit": 1}},
    ],
)
def test_a_tool_can_be_called_in_each_documented_form(ask, memory, request_):
    memory.write(Draft("one", project="categories"))
    memory.write(Draft("two", project="categories"))
    reply = ask({"id": "x", **request_})

    assert reply["id"] == "x"
    assert reply["result"]["is_error"] is False
    assert len(json.loads(reply["result"]["content"])) == 1


@pytest.mark.parametrize("identity", [7, 1.5, "seven", "", None, 0])
def test_the_id_comes_back_as_sent_and_an_absent_one_is_0(ask, identity):
    assert ask({"id": identity, "method": "memory_list"})["id"] == identity
    assert ask({"method": "memory_list"})["id"] == 0


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"id": 1, "method": "nope"}, "tool not found: nope"),
        ({"id": 1}, "tool not found: "),
        ({"id": 1, "method": "tools/call", "params": {}}, "tool not found: "),
        ({"id": 1, "method": "tools/call", "params": {"name": 5}}, "name must be a string"),
        (
            {"id": 1, "method": "tools/call", "params": {"name": "x", "arguments": [1]}},
            "arguments must be an object",
        ),
        ({"id": 1, "method": "memory_read", "params": {"id": "x"}}, "memory not found: x"),
        ({"id": 1, "method": "memory_read", "params": []}, "params must be an object"),
        ({"id": 1, "method": "memory_list", "agent": "A B"}, 'invalid agent "A B"'),
    ],
)
def test_a_refused_request_answers_with_a_text(ask, request_, error):
    assert ask(request_) == {"id": 1, "error": error}


def test_a_soft_error_is_a_result(ask):
    assert ask({"id": 1, "method": "memory_read"})["result"] == {
        "content": "id is required",
        "is_error": True,
    }


@pytest.mark.parametrize(
    "line",
    [
        b"nope",
        b"[1]",
        b'"text"',
        b"\xff",
        b"{",
        b"[" * 100_000,
        b'{"id": NaN, "method": "memory_list"}',
        b'{"id": 1e999, "method": "memory_list"}',
        b'{"id": "\xed\xa0\x80"}',
        '{"method": "memory_list"}'.encode("utf-16"),
    ],
)
def test_what_is_no_request_answers_with_id_0_and_a_parse_error(ask, line):
    reply = ask(line)
    assert reply["id"] == 0
    assert reply["error"].startswith("parse error: ")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b'{"jsonrpc": "2.0", "id": 1, ', -32700),
        ([{"jsonrpc": "2.0", "id": 1, "method": "memory_list"}], -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "nope"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "memory_read", "params": [1]}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "memory_read", "params": {"id": "gone"}}, -32000),
    ],
)
def test_json_rpc_gets_error_objects(ask, request_, code):
    reply = ask(request_)
    assert reply["jsonrpc"] == "2.0"
    assert reply["error"]["code"] == code
    assert reply["id"] == (1 if isinstance(request_, dict) else None)
    jsonrpc = ask({"jsonrpc": "2.0", "id": 3, "method": "memory_list"})["jsonrpc"]
    assert jsonrpc == "2.0"


def test_agent_binds_a_request_to_an_identity(ask, memory):
    note = memory.as_caller("y").write(Draft("secret of y", project="categories", scope="agent:y"))
    read = {"id": 1, "method": "memory_read", "params": {"id": note.id}}
    assert ask({**read, "agent": "x"})["error"] == f"memory not found: {note.id}"
    assert "secret" in ask({**read, "agent": "y"})["result"]["content"]


@pytest.mark.promise("socket-unnamed")
def test_who_names_no_agent_is_an_unnamed_one_and_never_the_owner(ask, memory):
    private = memory.as_caller("y").write(
        Draft("secret of y", project="categories", scope="agent:y")
    )
    for caller in ({}, {"client": "desk"}, {"session": "s"}, {"agent": None}):
        read = {"id": 1, "method": "memory_read", "params": {"id": private.id}}
        error = ask({**read, **caller})["error"]
        assert error == f"memory not found: {private.id}"
        write = {"id": 1, "method": "memory_write", "params": {"content": f"told {caller}"}}
        written = json.loads(ask({**write, **caller})["result"]["content"])
        who = memory.memory_id(written["id"]).provenance.who
        assert who == "agent:unknown"


@pytest.mark.promise("socket-unnamed")
@pytest.mark.parametrize(
    "request_",
    [
        {"method": "memory_list", "params": {"agent": "y"}},
        {"method": "tools/call", "params": {"name": "memory_list", "agent": "y"}},
        {"method": "tools/call", "params": {"name": "memory_list", "params": {}, "agent": "y"}},
        {"method": "tools/call", "params": {"name": "memory_list", "arguments": {"agent": "y"}}},
        {"method": "memory_list", "Agent": "y"},
        {"method": "memory_list", "AGENT": "y", "agent": "y"},
        {"method": "memory_list", "params": {"Agent": "y"}},
    ],
)
def test_an_agent_in_the_wrong_place_is_refused(ask, request_):
    assert ask({"id": 1, **request_})["error"].startswith("agent is a key of the request")
    rpc = ask({"jsonrpc": "2.0", "id": 1, **request_})
    assert rpc["error"]["code"] == -32602


@pytest.mark.promise("socket-unnamed")
@pytest.mark.parametrize("name", ["owner", "Owner", "manual", "web", "FILE", "import"])
def test_no_request_takes_a_name_by_which_the_history_calls_somebody_else(ask, name):
    reply = ask({"id": 1, "method": "memory_list", "agent": name})
    assert reply == {"id": 1, "error": f'invalid agent "{name}"'}


def test_a_daemon_of_one_agent_serves_no_other(memory):
    bound = Protocol(memory.as_caller("x"), registry(("agent",), memory.settings))
    reply = json.loads(bound.answer(b'{"id": 1, "method": "memory_list", "agent": "y"}\n'))
    assert reply == {"id": 1, "error": 'this daemon serves agent "x" alone'}


def test_a_request_may_name_its_program_and_session(ask, memory):
    write = {
        "id": 1,
        "method": "memory_write",
        "params": {"content": "told by a desk"},
        "agent": "Y",
    }
    for client, session in (("desk 2", "s9"), (7, "\x1b[2J")):
        note = json.loads(ask({**write, "client": client, "session": session})["result"]["content"])
        provenance = memory.memory_id(note["id"]).provenance
        is_text = client == "desk 2"
        assert (provenance.who, provenance.tool) == ("agent:y", "memory_write")
        assert (provenance.client, provenance.session) == (
            ("desk 2", "s9") if is_text else ("socket", None)
        )


@pytest.mark.parametrize("before", [0, 60, 80, 99])
def test_of_a_secret_in_a_programs_name_nothing_is_left_where_the_name_is_cut(ask, memory, before):
    secret = "gh" + "p_9vXz7LmB4nR8sYwE1uC6pJ2dF5gA0iKoMqZt"
    name = "x" * before + " " + secret
    write = {"id": 1, "method": "memory_write", "params": {"content": f"told by {before}"}}
    answer = ask({**write, "agent": "Y", "client": name, "session": name})
    provenance = memory.memory_id(json.loads(answer["result"]["content"])["id"]).provenance
    for name_shown in (provenance.client, provenance.session):
        assert "x" * before in name_shown
        assert secret[:12] not in name_shown


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["id", "method", "params", "agent", "jsonrpc", "x"]),
        values | st.sampled_from(["memory_list", "tools/call", "2.0", "tools/list"]),
    )
)
def test_every_object_gets_one_line_of_json(protocol, request_):
    reply = protocol.answer(json.dumps(request_).encode() + b"\n")
    assert reply.count(b"\n") == 1
    assert ("result" in json.loads(reply)) != ("error" in json.loads(reply))


def test_a_fault_of_ours_is_answered_and_logged_and_the_connection_goes_on(
    protocol, monkeypatch, caplog
):
    def fail(*_):
        raise RuntimeError("a place nobody should hear of")

    monkeypatch.setattr("memoranda.serve.socket.call_tool", fail)
    reply = json.loads(protocol.answer(b'{"id": 7, "method": "memory_list"}\n'))
    assert reply["id"] == 7
    assert reply["error"].startswith("The call failed inside the server.")
    assert "a place nobody should hear of" in caplog.text
