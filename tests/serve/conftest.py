"""Fixtures that start server processes."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from serve.process import ServerProcess, connected
from serve.web import Web, browser


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def connect(home):
    """Start `memory mcp` on the home, after its handshake as a client of this name."""
    with ExitStack() as stack:
        yield lambda *arguments, name="test": stack.enter_context(
            connected(home, *arguments, client=name)
        )


@pytest.fixture
def start():
    """Start servers that end with the test: `start("--agent", "a")`, or `start(command=[...])`."""
    with ExitStack() as stack:
        yield lambda *arguments, **more: stack.enter_context(ServerProcess(*arguments, **more))


@pytest.fixture(scope="module")
def mini():
    """One server for a whole module, after a handshake of revision 2025-06-18."""
    with ServerProcess() as server:
        server.handshake()
        yield server


@pytest.fixture
def fifo(tmp_path):
    """A named pipe: who reads it waits until a test writes."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def web(home):
    """A home served over HTTP in this process."""
    new_web = Web(home)
    yield new_web
    new_web.close()


@pytest.fixture
async def client(web, caplog):
    """A client of the server of `web`, which serves and ends without a fault."""
    async with web.served() as client:
        yield client
    assert traced(caplog) == []


@pytest.fixture
async def page(web, caplog):
    """The owner, who has entered the page of `web`."""
    async with browser(web) as visitor:
        yield visitor
    assert traced(caplog) == []


def traced(caplog):
    """What was logged with a traceback, during a test and at its end."""
    records = [*caplog.get_records("call"), *caplog.get_records("teardown")]
    return [record for record in records if record.exc_info or "Traceback" in record.getMessage()]
