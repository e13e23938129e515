from __future__ import annotations

import asyncio

from commonplace.errors import ConfigError
from commonplace.serve.turns import CallQueue


class Pad:
    closed = False

    def close(self):
        self.closed = True


def test_upkeep_that_fails_is_logged_and_the_memory_is_closed(caplog):
    def upkeep(memory):
        raise ConfigError("the disk is full")

    pad = Pad()
    turns = CallQueue(lambda: pad, upkeep)
    asyncio.run(turns.take(lambda memory: memory.closed))
    turns.close()
    assert pad.closed
    assert "the disk is full" in caplog.text
