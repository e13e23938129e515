"""Connections over HTTP: what strangers who send nothing may take from others (docs/http.md)."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from contextlib import ExitStack, asynccontextmanager, suppress
from statistics import median

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from memoranda.serve import connections, middleware
from memoranda.serve.connections import Connection
from memoranda.serve.http import Place
from memoranda.serve.middleware import HANDLERS, BodyLimits, RequestLog
from serve.process import SECONDS

pytestmark = pytest.mark.anyio
ASK = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"


async def _echo(request):
    return JSONResponse({"length": len(await request.body())})


@asynccontextmanager
async def listening():
    """The port of a small application on our connections."""
    app = Starlette(
        routes=[Route("/echo", _echo, methods=["POST"])],
        middleware=[Middleware(RequestLog, counts=Counter()), Middleware(BodyLimits)],
        exception_handlers=HANDLERS,
    )
    config = uvicorn.Config(app, http=Connection, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with Place("127.0.0.1", 0).listen() as listener:
        serving = asyncio.create_task(server._serve([listener]))
        try:
            while not server.started:
                await asyncio.sleep(0)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def caller(port):
    """A connection to the port, as its two streams."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def answer(reader) -> tuple[int, dict]:
    """Status and body of the next answer."""
    async with asyncio.timeout(SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return int(head.split()[1]), json.loads(await reader.readexactly(length))


@pytest.fixture
def header_seconds(monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.05)


@pytest.mark.promise("http-strangers")
@pytest.mark.parametrize(
    "beginning", [b"", b"POST /echo HTTP/1.1\r\nHost: localhost\r\nX: ", b"P", ASK + b"POST /e"]
)
async def test_a_header_that_does_not_come_ends_with_408(header_seconds, beginning):
    async with listening() as port, caller(port) as (reader, writer):
        writer.write(beginning)
        if beginning.startswith(ASK):
            assert await answer(reader) == (200, {"length": 2})
            writer.write(b"cho")
        status, body = await answer(reader)
        assert status == 408
        assert "header" in body["error"]["message"]
        assert await reader.read() == b""


@pytest.mark.promise("http-strangers")
async def test_connections_that_send_nothing_take_no_place_from_others(monkeypatch):
    monkeypatch.setattr(connections, "FOR_ADDRESS", 10)
    monkeypatch.setattr(connections, "CONNECTIONS", 20)
    async with listening() as port, caller(port) as kept_connection:
        kept_connection[1].write(ASK)
        assert await answer(kept_connection[0]) == (200, {"length": 2})
        with ExitStack() as silent:
            for _ in range(60):
                stranger = silent.enter_context(socket.create_connection(("127.0.0.1", port)))
                stranger.sendall(ASK[:-2])
                await asyncio.sleep(0)
            async with caller(port) as new:
                for reader, writer in (new, kept_connection):
                    writer.write(ASK)
                    assert await answer(reader) == (200, {"length": 2})


@pytest.mark.promise("http-strangers")
async def test_an_address_that_opens_too_many_loses_its_own_connections(monkeypatch):
    monkeypatch.setattr(connections, "FOR_ADDRESS", 5)
    monkeypatch.setattr(connections, "LOOPBACK", ())
    async with listening() as port, caller(port) as (reader, _writer):
        with ExitStack() as silent:
            for _ in range(12):
                silent.enter_context(socket.create_connection(("127.0.0.1", port)))
            async with caller(port) as (new_reader, new_writer):
                new_writer.write(ASK)
                assert await answer(new_reader) == (200, {"length": 2})
        assert await reader.read() == b""


@pytest.mark.promise("http-strangers")
async def test_a_body_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(middleware, "BODY_BYTES", 100)
    async with listening() as port, caller(port) as (reader, writer):
        writer.write(ASK.replace(b"Length: 2", b"Length: 200") + b"x" * 198)
        assert (await answer(reader))[0] == 413


@pytest.mark.promise("http-fast")
async def test_an_answer_on_a_kept_connection_is_one_packet_that_waits_for_nothing():
    took = []
    async with listening() as port, caller(port) as (reader, writer):
        for _ in range(9):
            begun = time.perf_counter()
            writer.write(ASK)
            piece = await reader.read(1 << 16)
            ended = time.perf_counter()
            took.append(ended - begun)
            assert piece.endswith(b'{"length":2}')
    # Delayed acknowledgement takes 40 ms each time
    assert median(took) < 0.035
