"""`memory serve --http` as a process: its port, its signals, and other processes of the same home."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from contextlib import suppress

import httpx2
import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.serve.auth import Access
from serve.daemon_process import Client, DaemonProcess
from serve.process import SECONDS, run_memory
from serve.web import ACCEPT, LIST, bearer, official

pytestmark = pytest.mark.slow


def served(home, *more):
    return DaemonProcess(home, "--http", "127.0.0.1:0", *more)


def address(daemon):
    """Where the process serves, once it does."""
    line = daemon.ready()
    return re.search(r"http://127\.0\.0\.1:\d+", line)[0]


def call(name, **arguments):
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


@pytest.mark.promise("http-process")
def test_tokens_made_and_revoked_by_another_process_count_at_once(home):
    with served(home) as daemon:
        url = address(daemon) + "/mcp"
        assert httpx2.post(url, json=LIST, headers=ACCEPT).status_code == 401
        secret = json.loads(run_memory(home, "token", "add", "laptop", "--json"))["secret"]
        headers = ACCEPT | bearer(secret)
        assert httpx2.post(url, json=LIST, headers=headers).status_code == 200
        run_memory(home, "write", "tea is green")
        created = httpx2.post(
            url, json=call("write_note", title="Cup", content="blue", directory=""), headers=headers
        )
        assert "# Created" in created.text
        # The socket shares the tools
        with Client(home) as client:
            assert (
                "blue"
                in client.ask(
                    "tools/call", params={"name": "read_note", "params": {"identifier": "cup"}}
                )["result"]["content"]
            )
        answer = httpx2.post(url, json=call("search_notes", query="tea"), headers=headers)
        assert "green" in answer.text
        run_memory(home, "token", "revoke", "laptop")
        assert httpx2.post(url, json=LIST, headers=headers).status_code == 401
        status, _, log = daemon.stop()
    assert status == 0
    assert "Traceback" not in log
    assert secret not in log
    assert "tool=write_note" in log


@pytest.mark.promise("http-process")
def test_what_is_in_progress_at_the_signal_is_answered_and_kept(home):
    secret = Access(home).add("laptop", rate=0)[1]

    async def burst(url):
        created = 0

        async def write(client, number):
            nonlocal created
            note = call("write_note", title=f"Note {number}", content="x", directory="")
            try:
                answer = await client.post(url, json=note, headers=ACCEPT | bearer(secret))
            except httpx2.TransportError:
                # It came after the end
                return
            created += answer.status_code == 200 and "# Created" in answer.text
            if created == 5:
                daemon.process.terminate()

        async with httpx2.AsyncClient(timeout=SECONDS) as client:
            await asyncio.gather(*(write(client, number) for number in range(60)))
        return created

    with served(home) as daemon:
        created = asyncio.run(burst(address(daemon) + "/mcp"))
        status, _, log = daemon.ended()
    assert status == 0
    assert "Traceback" not in log
    with open_session(home) as memory:
        assert memory.stats().projects["notes"] >= created >= 5


def test_a_port_that_is_taken_is_named(home):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with DaemonProcess(home, "--http", f"127.0.0.1:{port}") as daemon:
            status, _, log = daemon.ended()
    assert status == 1
    assert log == (
        f"Error: cannot listen on 127.0.0.1:{port}: Address already in use. Choose another address with --http.\n"
    )


CHUNKED = "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nno chunk"


@pytest.mark.promise("http-refused")
def test_after_what_is_no_http_and_callers_that_go_away_the_official_client_connects(home):
    secret = Access(home).add("laptop")[1]

    async def conversation(base):
        async with httpx2.AsyncClient(base_url=base) as client:
            for mode in ("legacy", "2026-07-28"):
                async with official(client, secret, mode=mode) as connected:
                    assert "read_note" in {
                        tool.name for tool in (await connected.list_tools()).tools
                    }

    mine = (
        "Content-Type: application/json\r\nAccept: */*\r\nAuthorization: Bearer " + secret + "\r\n"
    )
    with served(home, "--no-token") as daemon:
        port = int(address(daemon).rpartition(":")[2])
        for line, headers in (
            ("POST /mcp HTTP/1.1", f"Host: evil.example\r\n{CHUNKED}"),
            ("FOO / HTTP/1.1", f"Host: localhost\r\n{CHUNKED}"),
            ("POST /mcp HTTP/1.1", f"Host: localhost\r\n{mine}{CHUNKED}"),
            ("POST /mcp HTTP/1.1", f"Host: localhost\r\n{mine}Content-Length: 90\r\n\r\n{{"),
            ("\0", "\xff\r\n\r\n"),
            ("GET / HTTP/9.9", "\r\n"),
            ("POST /mcp HTTP/1.1", "A: " + "x" * 200_000),
            ("POST /mcp HTTP/1.1", "Host: a\r\nHost: b\r\nContent-Length: -1\r\n\r\n"),
        ):
            with socket.create_connection(("127.0.0.1", port)) as caller:
                caller.settimeout(SECONDS)
                # The server has hung up on it
                with suppress(ConnectionError):
                    caller.sendall(f"{line}\r\n{headers}".encode("latin-1"))
                    # Which here is an error of no class of its own
                    with suppress(OSError):
                        caller.shutdown(socket.SHUT_WR)
                    while caller.recv(4096):
                        pass
        asyncio.run(conversation(f"http://127.0.0.1:{port}"))
        assert (
            httpx2.post(f"http://127.0.0.1:{port}/mcp", json=LIST, headers=ACCEPT).status_code
            == 200
        )
        status, _, log = daemon.stop()
    assert status == 0
    assert "Traceback" not in log


@pytest.mark.promise("http-spaces")
def test_the_daemon_keeps_spaces_tidy_too_and_reports_one_whose_folder_cannot_be_opened(home):
    access = Access(home)
    tidy = access.add_space("tidy")
    broken = access.add_space("team")
    with open_session(tidy.home) as shared:
        shared.write(Draft("we decided to deploy on fridays only", project="categories"))
    access.set_member("team", "ann", "member")
    secret = access.add("ann", member="ann")[1]
    own_secret = access.add("own")[1]
    broken.home.rmdir()
    broken.home.write_text("no folder")
    with served(home) as daemon:
        url = address(daemon)
        assert (
            httpx2.post(url + "/s/team/mcp", json=LIST, headers=ACCEPT | bearer(secret)).status_code
            == 503
        )
        assert (
            httpx2.post(url + "/mcp", json=LIST, headers=ACCEPT | bearer(own_secret)).status_code
            == 200
        )
        waited = {"[spaces]", "[tidy: memory.md]"}
        while waited:
            line = daemon.process.stderr.readline()
            assert line
            assert "Traceback" not in line
            waited -= {name for name in waited if name in line}
        status, _, log = daemon.stop()
    assert status == 0
    assert "Traceback" not in log
    assert (tidy.home / "memory.md").exists()
