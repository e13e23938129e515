"""How a server process starts, ends and is stopped."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager

import pytest

from serve.forked import Forked
from serve.process import MINI, SECONDS, environment

HANDSHAKE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "0"},
    },
}


def lines(*calls: str) -> bytes:
    """A handshake and one `append` for each text, as a client would send them."""
    messages = [HANDSHAKE, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    for n, text in enumerate(calls, 1):
        params = {"name": "append", "arguments": {"text": text}}
        messages.append({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params})
    return "".join(json.dumps(message) + "\n" for message in messages).encode()


def test_what_was_sent_before_the_end_of_input_is_carried_out_and_answered(start):
    server = start()
    server.write(lines(*map(str, range(50))))
    assert server.close() == 0
    answers = server.rest()
    ids = [answer["id"] for answer in answers]
    assert ids == list(range(51))
    assert answers[-1]["result"]["content"][0]["text"] == "line 50"


def test_the_end_of_input_waits_for_a_call_in_progress(start, fifo):
    server = start()
    server.handshake()
    wait = {"name": "wait", "arguments": {"text": str(fifo)}}
    waiting = server.send("tools/call", wait)
    server.until_error_line("waiting")
    server.process.stdin.close()
    fifo.write_text("done")

    assert server.receive()["id"] == waiting
    assert server.process.wait(SECONDS) == 0


def test_input_and_output_may_be_files(tmp_path):
    # The last line may lack its break
    (tmp_path / "in").write_bytes(lines("a", "b").rstrip(b"\n"))
    with open(tmp_path / "in", "rb") as input_file, open(tmp_path / "out", "wb") as output_file:
        server = Forked(MINI, env=environment(), stdin=input_file, stdout=output_file)
        _, errors = server.communicate(SECONDS)
    assert server.returncode == 0
    answers = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    ids = [answer["id"] for answer in answers]
    assert ids == [0, 1, 2]
    assert b"Traceback" not in errors


def test_no_input_at_all_is_a_quiet_end(start):
    server = start()
    assert server.close() == 0
    assert server.rest() == []
    assert server.errors() == "event agent_start\nevent agent_end\n"


def test_a_session_has_its_events_and_closes_its_memory(start):
    server = start()
    server.handshake()
    server.call("append", {"text": "x"})
    assert server.close() == 0
    assert server.errors().splitlines() == [
        "event agent_start",
        "memory opened",
        "event tool_start",
        "event tool_end",
        "event agent_end",
        "memory closed",
    ]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_an_idle_server_that_has_opened_its_memory_without_a_call(
    start, number, status
):
    server = start()
    server.handshake()
    server.until_error_line("memory opened")
    server.process.send_signal(number)
    assert server.process.wait(SECONDS) == status
    assert "Traceback" not in (errors := server.errors())
    assert "memory closed" in errors


def test_a_signal_lets_the_running_call_end_and_refuses_those_that_wait(start, fifo):
    server = start()
    server.handshake()
    running = server.send("tools/call", {"name": "wait", "arguments": {"text": str(fifo)}})
    waiting = server.send("tools/call", {"name": "append", "arguments": {"text": "never"}})
    server.until_error_line("waiting")
    server.process.send_signal(signal.SIGTERM)
    refused = server.receive()
    assert refused["id"] == waiting
    assert refused["result"]["isError"]
    assert refused["result"]["structuredContent"]["code"] == "stopping"
    fifo.write_text("done")
    answer = server.receive()
    assert answer["id"] == running
    assert answer["result"]["isError"] is False
    assert server.process.wait(SECONDS) == 0
    assert "Traceback" not in server.errors()


def test_a_second_signal_ends_the_process_at_once(start, fifo):
    server = start()
    server.handshake()
    server.send("tools/call", {"name": "wait", "arguments": {"text": str(fifo)}})
    server.send("tools/call", {"name": "append", "arguments": {"text": "never"}})
    server.until_error_line("waiting")
    server.process.send_signal(signal.SIGTERM)
    assert server.receive()["result"]["isError"]
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(SECONDS) == -signal.SIGTERM


@contextmanager
def writing_to(output):
    """A server whose output nobody gathers."""
    with os.fdopen(output, "wb") as stream:
        process = Forked(MINI, env=environment(), stdout=stream)
    try:
        yield process
    finally:
        process.kill()
        process.stdin.close()
        process.stderr.close()


def test_a_client_that_reads_no_more_ends_the_server_quietly():
    read, write = os.pipe()
    with writing_to(write) as process:
        os.close(read)
        process.stdin.write(lines("a", "b", "c"))
        # And stdin stays open: the broken pipe alone must end it
        process.stdin.flush()
        assert process.wait(SECONDS) == 0
        errors = process.stderr.read().decode()
    assert "Traceback" not in errors
    assert errors.endswith("event agent_end\nmemory closed\n")


def test_a_client_that_does_not_take_its_answers_can_still_stop_the_server():
    read, write = os.pipe()
    params = {"name": "own", "arguments": {"text": "x" * 1_000_000}}
    with writing_to(write) as process:
        message = HANDSHAKE | {"id": 1, "method": "tools/call", "params": params}
        process.stdin.write(lines() + json.dumps(message).encode() + b"\n")
        process.stdin.close()
        for line in process.stderr:
            if b"tool_end" in line:
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        assert b"Traceback" not in process.stderr.read()
    os.close(read)
