"""The protocol by hand-written lines: what a client sees on the wire."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32602
LONG = "a" * 10_001


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_each_revision_with_a_handshake_is_spoken(start, version):
    server = start()
    answer = server.handshake(version)
    assert answer["protocolVersion"] == version
    assert answer["serverInfo"] == {"name": "memoranda", "version": "1.2.3"}
    assert answer["instructions"] == "Remember 记忆 things."
    assert set(answer["capabilities"]) - {"experimental"} == {
        "tools",
        "prompts",
        "resources",
        "completions",
    }
    assert server.call("append", {"text": "x"}) == {
        "content": [{"type": "text", "text": "line 1"}],
        "isError": False,
        "structuredContent": {"line": 1},
    }
    assert server.close() == 0


def test_the_revision_without_a_handshake_is_spoken(start):
    server = start()
    discovered = server.modern("server/discover")["result"]
    assert discovered["supportedVersions"] == ["2026-07-28"]
    assert discovered["instructions"] == "Remember 记忆 things."
    assert [tool["name"] for tool in server.modern("tools/list")["result"]["tools"]][:2] == [
        "append",
        "odd",
    ]
    result = server.modern("tools/call", name="append", arguments={"text": "x"})["result"]
    assert (result["isError"], result["structuredContent"], result["resultType"]) == (
        False,
        {"line": 1},
        "complete",
    )
    assert (
        server.modern("tools/call", name="own", arguments=[1])["result"]["content"][0]["text"]
        == "[1]"
    )
    assert server.modern("prompts/list")["result"]["prompts"][0]["name"] == "greet"
    assert server.modern("resources/list")["result"]["resources"] == []
    assert (
        server.modern("resources/templates/list")["result"]["resourceTemplates"][0]["name"]
        == "note"
    )
    read = server.modern("resources/read", uri="memory://notes/a")["result"]
    assert read["contents"][0]["text"] == "notes|a"
    missing = server.modern("resources/read", uri="memory://nowhere/a")["error"]
    assert (missing["code"], missing["data"]) == (INVALID_PARAMS, {"uri": "memory://nowhere/a"})
    assert server.close() == 0


def test_a_client_that_gave_up_its_probe_may_begin_with_a_handshake(start):
    server = start()
    server.modern("server/discover")
    assert server.handshake("2025-11-25")["protocolVersion"] == "2025-11-25"
    assert server.text("who") == "test through mcp"
    assert server.close() == 0


def test_without_a_handshake_each_request_has_the_identity_it_brings(start):
    server = start()
    who = [
        server.modern("tools/call", client, name="who", arguments={})["result"]["content"][0][
            "text"
        ]
        for client in ("Claude-Code", "Some Thing", None, "Claude-Code")
    ]
    assert who == [
        "claude through mcp",
        "some-thing through mcp",
        "unknown through mcp",
        "claude through mcp",
    ]


@pytest.mark.parametrize(("options", "agent"), [((), "robot"), (("--agent", "given"), "given")])
def test_the_agent_is_the_one_given_at_the_start_else_of_the_name_in_the_handshake(
    start, options, agent
):
    server = start(*options)
    server.handshake(client="House Robot")
    assert server.text("who") == f"{agent} through mcp"


def test_a_server_without_prompts_and_templates_offers_tools_alone(start):
    server = start("--bare")
    answer = server.handshake()
    assert set(answer["capabilities"]) - {"experimental"} == {"tools"}
    assert "instructions" not in answer
    for method in ("prompts/list", "resources/list", "resources/templates/list"):
        code = server.ask(method)["error"]["code"]
        assert code == METHOD_NOT_FOUND


def test_a_tool_is_listed_with_its_schema_word_for_word(mini):
    tools = {tool["name"]: tool for tool in mini.ask("tools/list")["result"]["tools"]}
    assert tools["append"]["annotations"] == {"destructiveHint": True, "openWorldHint": False}
    assert tools["append"]["title"] == "Append"
    assert "annotations" not in tools["odd"]
    assert not any("outputSchema" in tool for tool in tools.values())
    assert tools["odd"]["inputSchema"] == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to say", "x-own": {"deep": [1, None]}},
            "list": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            "when": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


def test_bad_arguments_are_answered_by_the_tool(mini):
    wrong = mini.call("odd", {"text": 5})
    assert wrong["isError"]
    assert wrong["structuredContent"]["error"] == wrong["content"][0]["text"]
    assert "`text` must be a text" in wrong["content"][0]["text"]
    assert "`text` is required" in mini.call("odd", {})["content"][0]["text"]
    assert (
        "Unknown parameter `else`"
        in mini.call("odd", {"text": "x", "else": 1})["content"][0]["text"]
    )
    assert mini.call("refuse")["structuredContent"] == {
        "error": "Parameter `text` is not to my liking.",
        "is_error": True,
        "code": "invalid",
    }


@pytest.mark.parametrize("arguments", [[], [1], "text", 5, 0.5, True, False])
def test_arguments_that_are_no_object_reach_the_tool(mini, arguments):
    params = {"name": "own", "arguments": arguments}
    text = mini.ask("tools/call", params)["result"]["content"][0]["text"]
    assert text == repr(arguments)
    params = {"name": "echo", "arguments": arguments}
    result = mini.ask("tools/call", params)["result"]
    assert result["isError"]
    assert result["content"][0]["text"] == "The arguments of echo must be an object."


@pytest.mark.parametrize("params", [{"name": "own"}, {"name": "own", "arguments": None}])
def test_absent_arguments_are_none(mini, params):
    assert mini.ask("tools/call", params)["result"]["content"][0]["text"] == "{}"


def test_an_unknown_tool_is_a_protocol_error_that_names_the_tools(mini):
    error = mini.ask("tools/call", {"name": "nothing", "arguments": {}})["error"]
    assert error["code"] == INVALID_PARAMS
    assert error["message"].startswith("Unknown tool: nothing. Tools: append, ")


def test_a_fault_of_ours_is_a_tool_error_without_its_cause(mini):
    result = mini.call("fail")
    assert result["isError"]
    assert "secret" not in json.dumps(result)
    assert "ValueError" not in json.dumps(result)
    assert mini.text("who")


@pytest.mark.parametrize("method", ["nothing", "logging/setLevel", "resources/subscribe", ""])
def test_an_unknown_request_is_refused(mini, method):
    params = {"level": "info", "uri": "memory://a/b"}
    assert mini.ask(method, params)["error"]["code"] == METHOD_NOT_FOUND


def test_a_prompt_gets_its_own_arguments_and_no_blank_ones(mini):
    result = mini.ask(
        "prompts/get", {"name": "greet", "arguments": {"name": "Ada", "tone": "  ", "c": "3"}}
    )["result"]
    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Greet Ada plainly."}}
    ]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"name": "greet"}, "Argument `name` is required"),
        ({"name": "greet", "arguments": {"name": ""}}, "Argument `name` is required"),
        ({"name": "nothing"}, 'No prompt "nothing". Prompts: greet.'),
    ],
)
def test_a_prompt_that_cannot_be_rendered_is_refused_in_words(mini, params, words):
    error = mini.ask("prompts/get", params)["error"]
    assert error["code"] == INVALID_PARAMS
    assert words in error["message"]


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("prompts/get", {"name": "greet", "arguments": {"name": LONG}}, "name"),
        ("resources/read", {"uri": f"memory://notes/{LONG}"}, "uri"),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "memory://{project}/{+path}"},
                "argument": {"name": "path", "value": LONG},
            },
            "path",
        ),
    ],
)
def test_arguments_that_are_no_tools_have_the_sizes_of_tools(mini, method, params, name):
    error = mini.ask(method, params)["error"]
    assert error["code"] == INVALID_PARAMS
    assert f"Parameter `{name}` may have 10,000 characters" in error["message"]
    assert len(str(error)) < 10_000


@pytest.mark.parametrize(
    "uri", ["memory://nowhere/a", "memory://notes", "file:///etc/hosts", "nonsense", ""]
)
def test_a_resource_that_is_not_there_is_said_with_the_protocols_code(mini, uri):
    error = mini.ask("resources/read", {"uri": uri})["error"]
    assert (error["code"], error["data"]) == (RESOURCE_NOT_FOUND, {"uri": uri})
    assert "not found" in error["message"] or "No resource" in error["message"]


def test_a_resource_address_that_leads_out_is_a_wrong_parameter(mini):
    error = mini.ask("resources/read", {"uri": "memory://notes/%2e%2e/x"})["error"]
    assert (error["code"], error["message"]) == (INVALID_PARAMS, "Not that way.")


def test_the_variables_of_the_template_are_completed(mini):
    def complete(name, value, **more):
        ref = {"type": "ref/resource", "uri": "memory://{project}/{+path}"}
        return mini.ask(
            "completion/complete", {"ref": ref, "argument": {"name": name, "value": value}, **more}
        )

    assert complete("project", "n")["result"]["completion"] == {
        "values": ["notes"],
        "total": 1,
        "hasMore": False,
    }
    paths = complete("path", "x", context={"arguments": {"project": "notes"}})["result"][
        "completion"
    ]
    assert (paths["values"][0], len(paths["values"]), paths["total"], paths["hasMore"]) == (
        "notes/x0",
        100,
        150,
        True,
    )
    assert complete("nothing", "")["error"]["code"] == INVALID_PARAMS


def test_a_prompts_arguments_complete_to_nothing_and_unknown_references_are_refused(mini):
    def complete(**ref):
        return mini.ask(
            "completion/complete", {"ref": ref, "argument": {"name": "name", "value": ""}}
        )

    values = complete(type="ref/prompt", name="greet")["result"]["completion"]["values"]
    assert values == []
    code = complete(type="ref/prompt", name="nothing")["error"]["code"]
    assert code == INVALID_PARAMS
    code = complete(type="ref/resource", uri="memory://{other}")["error"]["code"]
    assert code == INVALID_PARAMS
    code = complete(type="ref/else", uri="x")["error"]["code"]
    assert code == INVALID_PARAMS


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        (b"not json", None, PARSE_ERROR),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', None, PARSE_ERROR),
        (b"\xff\xfe\x00", None, PARSE_ERROR),
        (b'{"a": "' + b"[" * 100_000, None, PARSE_ERROR),
        (b"[" * 100_000, None, PARSE_ERROR),
        (b"[]", None, INVALID_REQUEST),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', None, INVALID_REQUEST),
        (b"5", None, INVALID_REQUEST),
        (b"null", None, INVALID_REQUEST),
        (b"{}", None, INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "method": 5}', None, INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 7, "result": 5}', None, INVALID_REQUEST),
        (b'{"jsonrpc": "1.0", "id": 99, "method": "ping"}', 99, INVALID_REQUEST),
        (b'{"id": 99, "method": "ping"}', 99, INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 99, "method": {}}', 99, INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 99, "method": "ping", "params": []}', 99, INVALID_PARAMS),
        (b'{"jsonrpc": "2.0", "id": 99, "method": "ping", "params": "x"}', 99, INVALID_PARAMS),
        (
            b'{"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": {"name": 5}}',
            99,
            INVALID_PARAMS,
        ),
        (b'{"jsonrpc": "2.0", "id": 99, "method": "tools/call"}', 99, INVALID_PARAMS),
    ],
)
def test_a_wrong_line_is_refused_under_its_id_if_it_has_one_and_the_connection_lives(
    mini, line, id, code
):
    mini.write(line + b"\n")
    answer = mini.receive()
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert mini.ask("ping")["result"] == {}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        *((value, "`text` must be a text") for value in (b"1" * 5000, b"-" + b"9" * 5000)),
        (b"[" * 500 + b"]" * 500, "`text` is nested more than 16 deep"),
        *(
            (text, "`text` must be valid Unicode")
            for text in (rb'"a\ud800b"', rb'"\udfff"', b'"a\xffb"', b'"\xed\xa0\x80"')
        ),
    ],
    ids=["long", "less", "deep", "high", "low", "byte", "encoded"],
)
def test_a_value_beyond_all_bounds_or_no_unicode_is_refused_by_the_tool_under_its_name(
    mini, value, words
):
    before = mini.text("all")
    call = b'{"jsonrpc": "2.0", "id": 98, "method": "tools/call", "params": '
    mini.write(call + b'{"name": "append", "arguments": {"text": ' + value + b"}}}\n")
    answer = mini.receive()

    assert answer["id"] == 98
    assert answer["result"]["isError"]
    assert words in answer["result"]["content"][0]["text"]
    assert mini.text("all") == before


def test_blank_lines_byte_order_marks_and_crlf_are_no_trouble(mini):
    mini.write(b"\n  \r\n\xef\xbb\xbf" + b'{"jsonrpc": "2.0", "id": "a", "method": "ping"}\r\n')
    assert mini.receive() == {"jsonrpc": "2.0", "id": "a", "result": {}}


@pytest.mark.parametrize(
    "line",
    [
        rb'{"jsonrpc": "2.0", "id": 97, "method": "tools/call", "params": {"name": "x\ud800", "arguments": {}}}',
        rb'{"jsonrpc": "2.0", "id": 97, "method": "nothing\ud800"}',
        rb'{"jsonrpc": "2.0", "id": 97, "method": "prompts/get", "params": {"name": "x\ud800"}}',
        rb'{"jsonrpc": "2.0", "id": 97, "method": "resources/read", "params": {"uri": "memory:\udc00"}}',
    ],
)
def test_a_name_that_is_no_unicode_gets_a_valid_error(mini, line):
    mini.write(line + b"\n")
    answer = mini.receive()
    assert answer["id"] == 97
    assert answer["error"]["code"] in (INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND)
    assert "\ufffd" in json.dumps(answer, ensure_ascii=False)
    json.dumps(answer, ensure_ascii=False).encode()


def test_a_reply_with_lone_surrogates_is_sent_as_unicode(mini):
    result = mini.call("surrogate")
    assert result["content"][0]["text"] == "a\ufffdb"
    assert list(result["structuredContent"].values()) == [["\U0001f600", "\ufffd"]]
    json.dumps(result, ensure_ascii=False).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_goes_to_a_tool_and_back_as_it_is(mini, text):
    result = mini.call("echo", {"text": text})
    assert result["content"][0]["text"] == text
    assert result["structuredContent"] == {"text": text, "none": None}


def test_a_line_beyond_sixteen_megabytes_is_one_message(mini):
    text = "0123456789abcde\n" * (17 << 16)
    result = mini.call("own", {"text": text})
    assert result["content"][0]["text"] == repr({"text": text})


def test_a_hundred_calls_sent_at_once_take_effect_in_the_order_sent(start):
    server = start()
    server.handshake()
    head = '{"jsonrpc": "2.0", "id": %d, "method": '
    kinds = [
        ('"tools/call", "params": {"name": "append", "arguments": {"text": "%d"}}}', "%d"),
        ('"prompts/get", "params": {"name": "greet", "arguments": {"name": "%d"}}}', "greet %d"),
        ('"resources/read", "params": {"uri": "memory://notes/%d"}}', "read %d"),
    ]
    calls = [(head % (1000 + n)) + kinds[n % 3][0] % n + "\n" for n in range(300)]
    server.write("".join(calls).encode())
    answers = [server.receive() for _ in calls]

    assert [answer["id"] for answer in answers] == [1000 + n for n in range(300)]
    for answer in answers:
        assert "error" not in answer
    text = server.text("all")
    assert text.split("\n") == [kinds[n % 3][1] % n for n in range(300)]


def test_a_hundred_calls_without_a_handshake_take_effect_in_the_order_sent(start):
    server = start()
    ids = []
    for n in range(100):
        params = {"name": "append", "arguments": {"text": str(n)}, "_meta": server.envelope("test")}
        ids.append(server.send("tools/call", params))
    assert [server.receive()["id"] for _ in ids] == ids
    everything = server.modern("tools/call", name="all", arguments={})["result"]["content"][0][
        "text"
    ]
    assert everything.split("\n") == [str(n) for n in range(100)]


def test_a_cancelled_call_is_not_answered_and_not_carried_out_if_it_waited(start, fifo):
    server = start()
    server.handshake()
    running = server.send("tools/call", {"name": "wait", "arguments": {"text": str(fifo)}})
    waiting = server.send("tools/call", {"name": "append", "arguments": {"text": "cancelled"}})
    last = server.send("tools/call", {"name": "append", "arguments": {"text": "last"}})
    server.until_error_line("waiting")
    server.notify("notifications/cancelled", {"requestId": running})
    server.notify("notifications/cancelled", {"requestId": waiting})
    result = server.ask("ping")["result"]
    assert result == {}
    fifo.write_text("first")
    assert server.receive()["id"] == last
    assert server.text("all") == "first\nlast"
    assert server.close() == 0
    assert server.rest() == []


def test_what_a_tool_prints_never_reaches_the_client(start):
    server = start()
    server.handshake()
    assert server.text("noise") == "quiet"
    assert server.text("who")
    assert server.close() == 0
    assert server.rest() == []
    assert server.errors().count("noise that is no protocol") == 3


def test_a_memory_that_cannot_be_opened_is_said_by_each_call(start):
    server = start("--unreadable")
    server.handshake()
    assert server.ask("tools/list")["result"]["tools"]
    for _ in range(2):
        result = server.call("who")
        assert result["isError"]
        assert result["content"][0]["text"] == "load config: the file is not readable"
    error = server.ask("resources/read", {"uri": "memory://notes/a"})["error"]
    assert (error["code"], error["message"]) == (
        INTERNAL_ERROR,
        "load config: the file is not readable",
    )
    assert server.close() == 0
