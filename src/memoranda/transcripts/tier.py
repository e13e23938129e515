"""The transcripts of the owner of a memory, as commands, tools and the page use them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.errors import InvalidInput, NotFound, StorageError
from memoranda.sources.files import reason
from memoranda.sources.layout import Layout
from memoranda.transcripts import places, search
from memoranda.transcripts.index import TraceIndex, remove
from memoranda.transcripts.mask import Mask
from memoranda.transcripts.search import TraceFilter, TraceHit
from memoranda.transcripts.sync import TranscriptSync, is_damaged, sync

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs

FRESH_SECONDS = 60
"""A search looks for what is new in transcripts unless that was done so lately."""
OFF = "transcripts are not read"
TURN_ON = "Turn it on: memory transcripts on"


class Transcripts:
    """The transcripts that an open memory may read.

    They are not notes: nothing here is written into the memory, and no other search finds it.
    """

    def __init__(self, memory: ReadVerbs):
        self._memory = memory
        self.path: Path = Layout(memory.home).transcripts
        self.mask = Mask(memory.gate_rules())

    @property
    def is_on(self) -> bool:
        """Whether the owner has said that transcripts may be read."""
        return self._memory.settings.transcripts

    @property
    def is_indexed(self) -> bool:
        """Whether they were read before."""
        return self.path.exists()

    def sync(self, progress: Callable[[int, int], None] | None = None) -> TranscriptSync:
        """Read new transcripts. Raises InvalidInput if transcripts are off, StorageError."""
        self._check()
        settings = self._memory.settings
        without = settings.transcripts_without
        try:
            try:
                return sync(self.path, self.mask, without=without, progress=progress)
            except sqlite3.Error as error:
                if not is_damaged(error):
                    raise
                # The index is derived, so it can be rebuilt from the transcripts.
                remove(self.path)
                return sync(self.path, self.mask, without=without, progress=progress)
        except OSError as error:
            raise StorageError("the index of transcripts", reason(error)) from None
        except sqlite3.Error as error:
            raise StorageError("the index of transcripts", str(error)) from None

    def refresh(self) -> None:
        """Index new transcripts.

        Nothing is read if that was done a moment ago. The first time is left to others, as it takes
        minutes.
        """
        if not self.is_indexed:
            return
        # The lock is touched after each look.
        lock = self.path.with_suffix(".lock")
        with suppress(OSError):
            age = self._memory.clock().timestamp() - lock.stat().st_mtime
            if 0 <= age < FRESH_SECONDS:
                return
        with suppress(StorageError):
            self.sync()
            lock.touch()

    def search(
        self, text: str, where: TraceFilter | None = None, *, limit: int = 10
    ) -> list[TraceHit]:
        """The best places for `text`, at most `limit`. Raises InvalidInput, StorageError."""
        self._check()
        if not self.is_indexed:
            return []
        self.refresh()
        with self._reading() as index:
            return search.find(index, self.mask, text, where or TraceFilter(), limit)

    def show(self, ref: str) -> list[TraceHit]:
        """The exchange around a place that a search found. Raises InvalidInput, NotFound."""
        self._check()
        hits: list[TraceHit] = []
        if self.is_indexed:
            with self._reading() as index:
                hits = search.shown(index, self.mask, ref)
        if not hits:
            raise NotFound(ref, "the transcripts")
        return hits

    def forget(self) -> bool:
        """Delete the index; returns whether there was one."""
        was_there = self.is_indexed
        remove(self.path)
        self.path.with_suffix(".lock").unlink(missing_ok=True)
        return was_there

    def status(self) -> dict[str, tuple[int, int, int, int]]:
        """By agent: files, sessions, turns, when the latest session ended."""
        if not self.is_indexed:
            return {}
        with self._reading() as index:
            return index.counts()

    def troubles(self) -> dict[str, str]:
        """Files that are not read, and why."""
        result = dict(places.closed())
        if self.is_indexed:
            with self._reading() as index:
                for row in index.sources().values():
                    if row.trouble:
                        result[row.path] = row.trouble
        return result

    def _check(self) -> None:
        if not self.is_on:
            raise InvalidInput(OFF, TURN_ON)

    def _reading(self) -> TraceIndex:
        try:
            return TraceIndex(self.path, may_write=False)
        except sqlite3.Error as error:
            raise StorageError("the index of transcripts", str(error)) from None


def find_traces(memory: ReadVerbs, text: str, *, limit: int = 10) -> list[TraceHit]:
    """The hits that the page shows beside the notes it found. Empty if transcripts are off."""
    transcripts = Transcripts(memory)
    if not transcripts.is_on or not text.strip():
        return []
    return transcripts.search(text, limit=limit)


def found_on_this_machine() -> dict[str, int]:
    """The agents with transcripts here, by their names for people, and how many files each has."""
    titles = places.agents()
    counts: dict[str, int] = {}
    for file in places.find():
        title = titles[file.agent]
        counts[title] = counts.get(title, 0) + 1
    return counts
