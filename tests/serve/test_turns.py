from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from commonplace.errors import ConfigError, InvalidInput
from commonplace.serve.turns import InternalError, Turns


class Pad:
    def __init__(self):
        self.lines, self.threads, self.closed = [], set(), False

    def close(self):
        self.closed = True

    def put(self, line):
        self.lines.append(line)
        self.threads.add(threading.get_ident())
        return line


@pytest.fixture
def pad():
    return Pad()


@pytest.fixture
def turns(pad):
    turns = Turns(lambda: pad)
    yield turns
    turns.close()


def test_the_memory_is_opened_once_and_closed_at_the_end():
    opened = []

    def open_memory():
        opened.append(Pad())
        return opened[-1]

    turns = Turns(open_memory)
    turns.prepare()
    turns.prepare()
    assert asyncio.run(turns.take(lambda memory: memory.put("x"))) == "x"
    turns.close()
    assert [pad.closed for pad in opened] == [True]


def test_a_memory_that_cannot_be_opened_fails_the_call_and_is_tried_again(pad):
    answers = [ConfigError("config.yaml is broken"), ConfigError("config.yaml is broken still"), pad]

    def open_memory():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    turns = Turns(open_memory)
    turns.prepare()
    with pytest.raises(ConfigError, match="still"):
        asyncio.run(turns.take(lambda memory: memory.put("x")))
    assert asyncio.run(turns.take(lambda memory: memory.put("y"))) == "y"
    turns.close()
    assert pad.closed


def test_errors_of_our_tree_pass_and_others_are_logged_and_said_plainly(turns, caplog):
    def fail(error):
        def call(memory):
            raise error

        return call

    with pytest.raises(InvalidInput, match="wrong"):
        asyncio.run(turns.take(fail(InvalidInput("wrong"))))
    assert not caplog.records
    with caplog.at_level(logging.ERROR), pytest.raises(InternalError) as seen:
        asyncio.run(turns.take(fail(ValueError("/secret/place"))))
    assert "/secret/place" not in str(seen.value)
    assert "/secret/place" in caplog.text


def test_upkeep_that_fails_is_logged_and_the_memory_is_closed(pad, caplog):
    def upkeep(memory):
        raise ConfigError("the disk is full")

    turns = Turns(lambda: pad, upkeep)
    asyncio.run(turns.take(lambda memory: memory.put("x")))
    turns.close()
    assert pad.closed
    assert "the disk is full" in caplog.text
