"""`memory page` as a process: what it prints and starts, beside a daemon and without one, and the
live page.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading

import httpx2
import pytest

from memoranda import Draft
from memoranda.engine import open_session
from serve.daemon_process import DaemonProcess
from serve.forked import Forked
from serve.process import SECONDS, environment, memory_mcp, run_memory

pytestmark = [pytest.mark.slow, pytest.mark.promise("page-command")]


def command(home, *words):
    return [sys.executable, "-m", "memoranda", *words, "--home", str(home)]


class PageProcess(DaemonProcess):
    """`memory page` where it serves the home itself."""

    def __init__(self, home, *words):
        self.home = home
        line = command(home, "page", "--no-open", *words)
        self.process = Forked(
            line, env=environment(home.parent), stdin=subprocess.DEVNULL, text=True
        )


def printed(home):
    """Return the address that one run of the command printed before it ended."""
    return json.loads(run_memory(home, "page", "--no-open", "--json"))["address"]


def test_it_serves_the_page_until_it_is_stopped_and_others_find_it(home):
    with PageProcess(home) as page:
        first = page.ready()
        answer = httpx2.get(first)
        assert answer.status_code == 200
        second = printed(home)
        assert second.partition("/page")[0] == first.partition("/page")[0]
        answer = httpx2.get(second)
        assert answer.status_code == 200
        answer = httpx2.get(second)
        assert answer.status_code == 401
        status, _, errors = page.stop(signal.SIGINT)
        assert status == 0
        assert errors == ""
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(second)


def test_beside_a_daemon_without_http_it_serves_alone_and_with_it_not_at_all(home):
    with DaemonProcess(home) as daemon:
        daemon.ready()
        with PageProcess(home) as page:
            assert httpx2.get(page.ready()).status_code == 200
            assert page.stop()[0] == 0
    with DaemonProcess(home, "--http", "127.0.0.1:0") as daemon:
        assert "http://127.0.0.1:" in daemon.ready()
        assert httpx2.get(printed(home)).status_code == 200
        browser = home.parent / "browser"
        opened = home.parent / "opened"
        browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
        browser.chmod(0o700)
        screen = environment(home.parent) | {"DISPLAY": ":0", "BROWSER": f"{browser} %s"}
        process = subprocess.run(
            command(home, "page"), capture_output=True, text=True, env=screen, timeout=SECONDS
        )
        assert opened.read_text() == process.stdout
    as_agent = command(home, "--agent", "x", "page")
    env = environment(home.parent)
    assert (
        "page is the owner's"
        in subprocess.run(as_agent, capture_output=True, text=True, env=env).stderr
    )


@pytest.mark.promise("page-health")
def test_clients_that_only_read_are_shown_while_they_are_connected(home, start):
    with DaemonProcess(home, "--http", "127.0.0.1:0") as daemon:
        daemon.ready()
        with httpx2.Client(timeout=SECONDS) as client:
            place = str(client.get(printed(home), follow_redirects=True).url).partition("/page")[0]
            for name in ("claude-code", "cursor-vscode"):
                server = start(command=memory_mcp(home), user=home.parent)
                server.handshake(client=name)
            server.call("list_directory")
            connected = client.get(f"{place}/api/health").json()["connected"]
            assert [(client_row["agent"], client_row["client"]) for client_row in connected] == [
                ("cursor", "cursor-vscode 0"),
                ("claude", "claude-code 0"),
            ]
            assert connected[0]["since"] <= connected[0]["last"]
            text = client.get(f"{place}/page/agents").text
            assert "claude-code 0" in text
            assert server.close() == 0
            agents = [
                client_row["agent"]
                for client_row in client.get(f"{place}/api/health").json()["connected"]
            ]
            assert agents == ["claude"]


@pytest.mark.promise("page-today")
def test_a_change_by_another_process_is_told_as_it_happens(home):
    with PageProcess(home) as page:
        address = page.ready()
        first_page = address.partition("/enter")[0]
        with httpx2.Client(timeout=SECONDS) as client:
            answer = client.get(address)
            assert answer.status_code == 200
            with client.stream("GET", f"{first_page}/live") as stream:
                lines = stream.iter_lines()
                assert next(lines).startswith("retry")
                with open_session(home) as memory:
                    writing = threading.Timer(0.5, lambda: memory.write(Draft("x", title="Tea")))
                    writing.start()
                    events = (line for line in lines if line.startswith("event"))
                    assert next(events) == "event: change"
                    writing.join()
            text = client.get(first_page).text
            assert "Tea" in text
        status, _, _ = page.stop()
        assert status == 0
