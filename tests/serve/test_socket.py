"""The daemon's socket: lines, limits, many clients, a stop that answers first (contract 001, 13)."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress

import pytest

from memoranda.errors import StorageError
from memoranda.serve.socket import LIMIT, Listener, SocketServer

SOON = 20.0

pytestmark = pytest.mark.promise("001-17.11")


def echo(line: bytes) -> bytes:
    return b"got " + line.strip() + b"\n"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "memory.sock"


WRITERS: list[asyncio.StreamWriter] = []


def run(main):
    """Run `main` in a new loop, and close at the end what it dialled."""

    async def whole():
        try:
            return await main()
        finally:
            while WRITERS:
                writer = WRITERS.pop()
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()

    return asyncio.run(whole())


def running(place, conversation, answer=echo):
    """Run `conversation(server)` while a server listens at `place`, then stop it."""

    async def main():
        server = SocketServer(Listener(place), answer, nullcontext, ThreadPoolExecutor(4))
        await server.start()
        try:
            return await asyncio.wait_for(conversation(server), SOON)
        finally:
            await asyncio.wait_for(server.stop(), SOON)

    return run(main)


async def dial(place):
    reader, writer = await asyncio.open_unix_connection(str(place), limit=4 * LIMIT)
    WRITERS.append(writer)
    return reader, writer


def test_answers_come_in_order_on_a_connection_that_stays_open(place):
    async def talk(_):
        reader, writer = await dial(place)
        for number in range(3):
            writer.write(b"a%d\nb%d\n" % (number, number))
            line = await reader.readline()
            assert line == b"got a%d\n" % number
            line = await reader.readline()
            assert line == b"got b%d\n" % number
        writer.close()

    running(place, talk)


def test_half_lines_are_waited_for_and_the_last_line_needs_no_line_break(place):
    async def talk(_):
        reader, writer = await dial(place)
        writer.write(b"he")
        await writer.drain()
        writer.write(b"llo\n\n\nlast")
        writer.write_eof()
        assert await reader.read() == b"got hello\ngot last\n"

    running(place, talk)


def test_a_line_of_the_limit_is_read_and_a_longer_one_ends_the_connection(place):
    async def talk(_):
        reader, writer = await dial(place)
        writer.write(b"x" * LIMIT + b"\n")
        line = await reader.readline()
        assert line == b"got " + b"x" * LIMIT + b"\n"
        writer.write(b"x" * (LIMIT + 1) + b"\n")
        assert (
            await reader.read() == b'{"id":0,"error":"request too large (limit 1048576 bytes)"}\n'
        )
        reader, writer = await dial(place)
        writer.write(b"still there\n")
        assert await reader.readline() == b"got still there\n"

    running(place, talk)


def test_a_line_far_beyond_the_limit_can_be_sent_whole_before_the_refusal_is_read(place):
    def send_then_read():
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(SOON)
            client.connect(str(place))
            client.sendall(b"x" * (8 * LIMIT) + b"\n")
            return client.makefile("rb").read()

    async def talk(_):
        refusal = await asyncio.to_thread(send_then_read)
        assert refusal == b'{"id":0,"error":"request too large (limit 1048576 bytes)"}\n'

    running(place, talk)


def test_a_reply_may_be_larger_than_a_request(place):
    async def talk(_):
        reader, writer = await dial(place)
        writer.write(b"\n{}\n")
        assert len(await reader.readline()) == 3 * LIMIT + 1

    running(place, talk, lambda _: b"y" * (3 * LIMIT) + b"\n")


def test_a_stop_answers_what_is_in_progress_and_closes_the_rest(place):
    begun = threading.Event()
    go_on = threading.Event()

    def slow(line):
        begun.set()
        assert go_on.wait(SOON)
        return echo(line)

    async def main():
        server = SocketServer(Listener(place), slow, nullcontext, ThreadPoolExecutor(4))
        await server.start()
        reader, writer = await dial(place)
        idle, _ = await dial(place)
        writer.write(b"work\nlater\n")
        assert await asyncio.to_thread(begun.wait, SOON)
        stopping = asyncio.ensure_future(server.stop())
        assert await asyncio.wait_for(idle.read(), SOON) == b""
        go_on.set()
        assert await asyncio.wait_for(reader.read(), SOON) == b"got work\n"
        await asyncio.wait_for(stopping, SOON)

    run(main)
    assert not place.exists()


def test_the_socket_is_the_owners_alone(place):
    listener = Listener(place)
    assert stat.S_IMODE(os.lstat(place).st_mode) == 0o600
    listener.close()
    assert not place.exists()


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(place):
    Listener(place).socket.close()
    live = Listener(place)
    with pytest.raises(StorageError, match="another program listens on it"):
        Listener(place)
    live.close()


def test_what_is_no_socket_is_left_alone(place):
    place.write_text("mine")
    with pytest.raises(StorageError, match="something other than a socket"):
        Listener(place)
    assert place.read_text() == "mine"


def test_a_path_too_long_for_the_system_is_bound_by_its_name(tmp_path):
    folder = tmp_path / ("d" * 100) / ("e" * 100)
    folder.mkdir(parents=True)
    listener = Listener(folder / "memory.sock")
    folder_before = os.getcwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("memory.sock")
    finally:
        os.chdir(folder_before)
    listener.close()


def test_where_there_can_be_no_socket_the_error_names_the_length(tmp_path):
    path = tmp_path / "gone" / "memory.sock"
    with pytest.raises(StorageError, match=f"its path has {len(os.fsencode(path))} bytes"):
        Listener(path)
