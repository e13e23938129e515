"""Two replicas write at once and are killed again and again: what was acknowledged is there, once."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from threading import Thread

import psycopg
import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.note.edit import Append
from postgres.test_replicas import journal

KILLS = int(os.environ.get("MEMORANDA_KILLS", "24"))
TOGETHER = 4
LOG = "notes/log.md"


def write_until_killed(
    space: str, cache: Path, name: str, first: int, statements: int, output: int
) -> None:
    """Write notes and lines of a shared note from number `first` on, by threads that wait for the
    database together, say each that was begun (`+`) and each that was acknowledged, and die before
    the statement of this number. Runs in a separate process."""
    statements_left = statements
    execute = psycopg.Connection.execute

    def counted(self, query, *more, **options):
        nonlocal statements_left
        statements_left -= 1
        if statements_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(self, query, *more, **options)

    def write(memory: MemorySession, numbers: Iterator[int]) -> None:
        try:
            for number in numbers:
                os.write(output, f"+{number}\n".encode())
                text = f"{name}-{number}"
                if number % 3:
                    memory.in_turn(partial(memory.write, Draft(text, project="notes", title=text)))
                else:
                    memory.in_turn(partial(memory.edit, LOG, Append(f"line {text} end")))
                os.write(output, f"{number}\n".encode())
        finally:
            os._exit(1)

    os.environ["XDG_CACHE_HOME"] = str(cache / name)
    memory = open_session(space, agent=name)
    psycopg.Connection.execute = counted
    numbers = count(first)
    threads = [
        Thread(target=write, args=(memory.as_caller(name), numbers)) for _ in range(TOGETHER)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Writer:
    """A replica that writes, is killed, and goes on."""

    def __init__(self, space: str, cache: Path, name: str, random: Random):
        self._space = space
        self._cache = cache
        self.name = name
        self._random = random
        self.acknowledged: set[int] = set()
        self.next = 1

    def start(self) -> None:
        reading, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(reading)
                statements = self._random.randint(1, 90)
                write_until_killed(
                    self._space, self._cache, self.name, self.next, statements, writing
                )
            finally:
                os._exit(1)
        # The child's choice was made on a copy
        self._random.random()
        os.close(writing)
        self._reading = reading

    def wait(self) -> None:
        """Until it is dead; then what it acknowledged is known."""
        output = b""
        while block := os.read(self._reading, 4096):
            output += block
        os.close(self._reading)
        _, status = os.waitpid(self._pid, 0)
        assert os.WIFSIGNALED(status), "it was refused something"
        assert os.WTERMSIG(status) == signal.SIGKILL
        numbers = [int(line) for line in output.split()]
        self.acknowledged.update(int(line) for line in output.split() if not line.startswith(b"+"))
        # What it was at is not tried again
        self.next = max([self.next, *(number + 1 for number in numbers)])


@pytest.mark.slow
def test_what_two_killed_replicas_acknowledged_is_there_once(
    space: str, tmp_path: Path, monkeypatch
):
    cache = tmp_path / "cache"
    random = Random(19)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "c"))
    with open_session(space) as memory:
        memory.write(Draft("begin", project="notes", title="log"))
    writers = [Writer(space, cache, name, random) for name in ("anna", "ben")]
    for _ in range(KILLS // 2):
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.wait()
    with open_session(space) as memory:
        titles = Counter(info.title for info in memory.list(limit=0)[0])
        lines = Counter(re.findall(r"line (\S+) end", memory.read(LOG).text))
        changes = memory.log(limit=0)
    assert sum(len(writer.acknowledged) for writer in writers) > KILLS
    for writer in writers:
        tried = {f"{writer.name}-{number}" for number in range(1, writer.next)}
        counts = {
            name: count for name, count in (titles + lines).items() if name.startswith(writer.name)
        }
        assert (
            {f"{writer.name}-{number}" for number in writer.acknowledged} <= counts.keys() <= tried
        )
        assert {*counts.values()} == {1}
    print(
        f"{KILLS} kills, {len(changes)} changes, {sum(len(killed.acknowledged) for killed in writers)} acknowledged"
    )
    numbers = [change.number for change in changes]
    assert numbers == list(range(len(changes), 0, -1))
    assert len(changes) == titles.total() + lines.total()
    views = []
    for name in ("anna", "ben", "c", "new"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache / name))
        with open_session(space) as replica:
            all_changes = sorted(
                (path.name, path.read_bytes()) for path in (replica.home / "notes").rglob("*.md")
            )
            views.append((all_changes, journal(replica.home)))
    for view in views:
        assert view == views[0]
