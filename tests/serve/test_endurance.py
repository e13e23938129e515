"""Servers that last: their memory does not grow with the calls they answered (docs/performance.md).

`MEMORANDA_CALLS=20000` makes as many calls over each transport; an ordinary run makes fewer.
"""

from __future__ import annotations

import os
import re
from itertools import count, cycle

import httpx2
import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.serve.auth import Access
from serve.daemon_process import Client, DaemonProcess
from serve.process import SECONDS, connected
from serve.test_page_process import PageProcess
from serve.web import ACCEPT, bearer

pytestmark = pytest.mark.slow
CALLS = int(os.environ.get("MEMORANDA_CALLS", "250"))
# Bytes a call may leave behind; without collection it left 2,400
BYTES_PER_CALL = 600
# What the first collections and caches take once
FEW_MEGABYTES = 4 << 20
FEW_DESCRIPTORS = 4
PAGES = (
    "/page",
    "/page/search?q=amber",
    "/page/static/base.css",
    "/page/note/notes/Note%203.md",
    "/page/review",
    "/page/graph",
)
"""What a person opens again and again."""
LISTING = {"name": "list_directory", "arguments": {"dir_name": "/"}}


def memory_of(pid: int) -> int:
    """The bytes a process has in memory now."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors_of(pid: int) -> int:
    """How many files and connections a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def grown(pid: int, call) -> tuple[int, int]:
    """By how many bytes and descriptors a process grew over CALLS calls, after as many to warm
    up."""
    for _ in range(CALLS):
        call()
    memory_before = memory_of(pid)
    descriptors_before = descriptors_of(pid)
    for _ in range(CALLS):
        call()
    return memory_of(pid) - memory_before, descriptors_of(pid) - descriptors_before


def over_stdio(home):
    with connected(home) as server:
        yield server.process.pid, lambda: server.call(LISTING["name"], LISTING["arguments"])


def over_a_session(home):
    with DaemonProcess(home, "--interval", "1h") as daemon:
        daemon.ready()
        with connected(home) as client:
            yield daemon.process.pid, lambda: client.call(LISTING["name"], LISTING["arguments"])


def over_the_socket(home):
    with DaemonProcess(home, "--interval", "1h") as daemon:
        daemon.ready()
        with Client(home) as client:
            yield daemon.process.pid, lambda: client.call("memory_list")


def over_new_connections(home):
    with DaemonProcess(home, "--interval", "1h") as daemon:
        daemon.ready()

        def call():
            with Client(home) as client:
                client.call("memory_list")

        yield daemon.process.pid, call


def over_http(home):
    secret = Access(home).add("laptop", rate=0)[1]
    headers = ACCEPT | bearer(secret)
    ids = count()
    with DaemonProcess(home, "--http", "127.0.0.1:0", "--log", os.devnull) as daemon:
        url = re.search(r"http://127\.0\.0\.1:\d+", daemon.ready())[0] + "/mcp"
        with httpx2.Client(timeout=SECONDS) as client:

            def call():
                body = {
                    "jsonrpc": "2.0",
                    "id": next(ids),
                    "method": "tools/call",
                    "params": LISTING,
                }
                assert client.post(url, json=body, headers=headers).status_code == 200

            yield daemon.process.pid, call


def over_the_page(home):
    """`memory page` where no daemon runs, read by a person who came in."""
    with open_session(home) as memory:
        for number in range(40):
            text = f"amber note {number} [[Note {number // 2}]]\n"
            memory.write(Draft(text, title=f"Note {number}", project="notes"))
    paths = cycle(PAGES)
    with PageProcess(home) as page:
        way_in = page.ready()
        base = way_in.partition("/page/")[0]
        with httpx2.Client(timeout=SECONDS, follow_redirects=True) as client:
            answer = client.get(way_in)
            assert answer.status_code == 200

            def call():
                assert client.get(base + next(paths)).status_code == 200

            yield page.process.pid, call


@pytest.mark.promise("servers-last")
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize(
    "transport",
    [over_stdio, over_a_session, over_the_socket, over_new_connections, over_http, over_the_page],
    ids=lambda transport: transport.__name__,
)
def test_a_server_does_not_grow_with_the_calls_it_answered(home, transport):
    running = transport(home)
    pid, call = next(running)
    try:
        more_bytes, more_descriptors = grown(pid, call)
        print(f"{CALLS} calls: {more_bytes} bytes and {more_descriptors} descriptors more")
        assert more_bytes < FEW_MEGABYTES + BYTES_PER_CALL * CALLS
        # Those of the last connections may not be closed yet
        assert more_descriptors <= FEW_DESCRIPTORS
    finally:
        running.close()
