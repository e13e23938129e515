from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from memoranda.errors import Busy, ConfigError
from memoranda.serve import call_queue as queue_module
from memoranda.serve.call_queue import CallQueue


class Pad:
    closed = False

    def close(self):
        self.closed = True


def test_upkeep_that_fails_is_logged_and_the_memory_is_closed(caplog):
    def upkeep(memory):
        raise ConfigError("the disk is full")

    pad = Pad()
    turns = CallQueue(lambda: pad, upkeep)
    asyncio.run(turns.run(lambda memory: memory.closed))
    turns.close()
    assert pad.closed
    assert "the disk is full" in caplog.text


def test_a_call_behind_one_that_takes_too_long_is_refused_and_can_be_repeated(monkeypatch):
    monkeypatch.setattr(queue_module, "CALL_WAITS", 0.05)
    going = threading.Event()
    turns = CallQueue(Pad)

    async def calls():
        first = asyncio.ensure_future(turns.run(lambda memory: going.wait(60)))
        # The first one takes its turn
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="another call of this server"):
            await turns.run(lambda memory: None)
        going.set()
        assert await first
        assert await turns.run(lambda memory: "again") == "again"

    asyncio.run(calls())
    turns.close()


def test_what_a_call_returned_is_kept_no_longer_than_its_caller_keeps_it():
    turns = CallQueue(Pad)

    async def call():
        pad_reference = weakref.ref(await turns.run(lambda memory: Pad()))
        await turns.run(lambda memory: gc.collect())
        assert pad_reference() is None

    asyncio.run(call())
    turns.close()


def test_a_call_does_not_wait_for_the_work_in_the_background(monkeypatch):
    monkeypatch.setattr(queue_module, "KEPT_UP_AFTER", 0.0)
    working = threading.Event()
    ended = threading.Event()

    def background(memory):
        working.set()
        return not ended.wait(60)

    turns = CallQueue(Pad, background=background)

    async def calls():
        await turns.run(lambda memory: None)
        assert await asyncio.to_thread(working.wait, 60)
        assert await turns.run(lambda memory: "now") == "now"
        ended.set()

    asyncio.run(calls())
    turns.close()
