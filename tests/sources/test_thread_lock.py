"""The lock between the threads of one process: in the order they came, and none is forgotten when
one gives up.
"""

from __future__ import annotations

import threading

import pytest

from memoranda.clock import waits_at_most
from memoranda.errors import Busy
from memoranda.sources.files import ThreadLock


def waiting(lock: ThreadLock, work, count: int) -> threading.Thread:
    """A thread that does `work` inside `lock`, once it is the last of `count` that wait."""
    thread = threading.Thread(target=work)
    thread.start()
    while len(lock._queue) < count:
        threading.Event().wait(0.001)
    return thread


def test_threads_come_in_in_the_order_they_came_and_one_that_is_inside_comes_in_again():
    lock = ThreadLock()
    order = []

    def enter(number: int) -> None:
        with lock, lock:
            assert lock.is_mine
            order.append(number)

    with lock:
        threads = [
            waiting(lock, lambda number=number: enter(number), number + 1) for number in range(8)
        ]
    for thread in threads:
        thread.join(60)
    assert order == list(range(8))
    assert not lock.is_mine
    assert lock.take_if_free()
    assert lock.is_mine
    lock.__exit__()


def test_one_that_gives_up_holds_up_nobody_behind_it():
    lock = ThreadLock()
    events = []

    def give_up() -> None:
        with waits_at_most(0.05), pytest.raises(Busy, match="another call of this process"):
            lock.__enter__()
        events.append("gave up")

    def enter() -> None:
        with lock:
            events.append("came in")

    with lock:
        first = waiting(lock, give_up, 1)
        second = waiting(lock, enter, 1)
        first.join(60)
    second.join(60)
    assert events == ["gave up", "came in"]
