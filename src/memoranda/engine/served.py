"""What agents got: which notes were read, found or told, to whom, when, and what was asked for.

A file of one line of JSON for each call, in the home's private folder. It is a record of reads, no
change of the memory: one that cannot be written costs the line, not the call.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.clock import stamp
from memoranda.store.files import lock_file

if TYPE_CHECKING:
    from memoranda.engine.transaction import HomeSession

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT
# Size at which the older half of the file goes.
_MOST_BYTES = 4 << 20
# Characters of what was asked for.
_LONGEST = 200
# Notes named in one row of what an agent got.
_MOST_NOTES = 50
# The arguments of a tool that say what was asked for, the most telling first.
_ASKED = ("query", "text", "identifier", "ref", "path", "name", "key", "topic", "url", "command")


@dataclass(frozen=True, slots=True)
class Served:
    """One call that gave notes to an agent. `how`: the tool, or `prompt` or `session start` for what
    was told unasked. `notes` are ids.
    """

    time: str
    agent: str
    how: str
    asked: str
    notes: tuple[str, ...]


class ServedLog:
    """The file of what agents got."""

    def __init__(self, path: Path):
        self._path = path

    def add(
        self, moment: datetime, agent: str, how: str, asked_for: str, notes: Iterable[str]
    ) -> None:
        """Note what an agent got."""
        ids = list(dict.fromkeys(notes))[:_MOST_NOTES]
        if not ids:
            return
        flat = " ".join(asked_for.split())[:_LONGEST]
        row = {"time": stamp(moment), "agent": agent, "how": how, "asked": flat, "notes": ids}
        with suppress(OSError):
            self._append(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def _append(self, line: bytes) -> None:
        descriptor = lock_file(self._path, fcntl.LOCK_SH, access=_APPEND)
        try:
            os.write(descriptor, line)
            is_full = os.fstat(descriptor).st_size > _MOST_BYTES
        finally:
            os.close(descriptor)
        if is_full:
            self._rewrite(lambda lines: lines[len(lines) // 2 :])

    def rows(
        self, *, agent: str | None = None, note: str | None = None, limit: int = 200
    ) -> list[Served]:
        """What an agent got, or who got a note, the latest first."""
        rows_read: list[Served] = []
        for row in reversed(list(self._read())):
            if agent is not None and row.agent != agent.lower():
                continue
            if note is not None and note not in row.notes:
                continue
            rows_read.append(row)
            if len(rows_read) == limit:
                break
        return rows_read

    def forget(self, ids: Collection[str]) -> None:
        """Leave out every line about these notes: they were erased."""
        forgotten_ids = [identity.encode() for identity in ids]
        if self._path.exists():
            self._rewrite(
                lambda lines: [
                    line
                    for line in lines
                    if not any(identity in line for identity in forgotten_ids)
                ]
            )

    def _rewrite(self, choose: Callable[[list[bytes]], list[bytes]]) -> None:
        """Keep the lines that `choose` returns of all, in the same file."""
        descriptor = lock_file(self._path, fcntl.LOCK_EX, access=os.O_RDWR)
        with os.fdopen(descriptor, "r+b", 0) as file:
            data = file.read()
            chosen = b"".join(choose(data.splitlines(keepends=True)))
            if len(chosen) == len(data):
                return
            file.seek(0)
            file.truncate()
            file.write(chosen)
            os.fsync(descriptor)

    def _read(self) -> Iterator[Served]:
        try:
            data = self._path.read_bytes()
        except OSError:
            return
        for line in data.splitlines():
            # A line that was cut off says nothing
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                yield Served(
                    str(row["time"]),
                    str(row["agent"]),
                    str(row["how"]),
                    str(row["asked"]),
                    tuple(map(str, row["notes"])),
                )


def log_of(session: HomeSession) -> ServedLog:
    """The file of a home."""
    return ServedLog(session.engine.layout.served)


def note_call(session: HomeSession, tool: str, arguments: Mapping[str, Any]) -> None:
    """Note what a call of a tool gave to an agent."""
    if session.agent is None or not session.served:
        return
    asked_for = next(
        (str(arguments[name]) for name in _ASKED if isinstance(arguments.get(name), str)), ""
    )
    log_of(session).add(session.engine.clock(), session.agent, tool, asked_for, session.served)
