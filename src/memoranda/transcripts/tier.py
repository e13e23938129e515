"""The transcripts of the owner of a memory, as commands, tools and the page use them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.errors import CannotRead, InvalidInput, NotFound, StorageError
from memoranda.sources.files import reason
from memoranda.sources.layout import Layout
from memoranda.text.unicode import one_line, visible
from memoranda.transcripts import places, search
from memoranda.transcripts.index import AgentCounts, TraceIndex, is_outdated, remove
from memoranda.transcripts.mask import Mask
from memoranda.transcripts.search import TraceFilter, TraceHit
from memoranda.transcripts.sync import TranscriptSync, is_damaged, sync
from memoranda.transcripts.turn import shorten

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs

FRESH_SECONDS = 60
"""A search reads new transcripts first, unless that was done within these seconds."""
# The turn that a memory was made from is shown with the turn after it, each with this many
# characters.
_TURNS_OF_A_SOURCE = 2
_SOURCE_CHARACTERS = 300
OFF = "transcripts are not read"
TURN_ON = "Turn it on: memory transcripts on"


class Transcripts:
    """The transcripts that an open memory may read.

    They are not notes: nothing here is written into the memory, and no other search finds it.
    """

    def __init__(self, memory: ReadVerbs):
        self._memory = memory
        self.path: Path = Layout(memory.home).transcripts
        self.mask = Mask(memory.rules_for_reading())

    @property
    def is_on(self) -> bool:
        """Whether the owner has said that transcripts may be read."""
        return self._memory.settings.transcripts

    @property
    def is_indexed(self) -> bool:
        """Whether transcripts were read before."""
        return self.path.exists()

    def sync(self, progress: Callable[[int, int], None] | None = None) -> TranscriptSync:
        """Bring the index in step with the transcripts.

        Raises InvalidInput if transcripts are off, StorageError if the index cannot be written.

        progress: called after each file with the number of files done and of all files. None calls
            nothing.
        """
        self._check()
        try:
            try:
                return self._sync(progress)
            except sqlite3.Error as error:
                if not is_damaged(error):
                    raise
                # The index is derived, so it can be rebuilt from the transcripts.
                remove(self.path)
                return self._sync(progress)
        except OSError as error:
            raise StorageError("the index of transcripts", reason(error)) from None
        except sqlite3.Error as error:
            raise StorageError("the index of transcripts", str(error)) from None

    def _sync(self, progress: Callable[[int, int], None] | None) -> TranscriptSync:
        """Bring the index in step with the transcripts. Raises OSError, sqlite3.Error."""
        without = self._memory.settings.transcripts_without
        return sync(self.path, self.mask, without=without, progress=progress)

    def refresh(self) -> None:
        """Index new transcripts, unless that was done in the last FRESH_SECONDS by this version.

        Nothing is done before the first `sync`, which takes minutes and must be asked for.
        """
        if not self.is_indexed:
            return
        # The lock is touched after each look.
        lock = self.path.with_suffix(".lock")
        with suppress(OSError):
            seconds_since_look = self._memory.clock().timestamp() - lock.stat().st_mtime
            # A time in the future means that the clock was set back.
            is_fresh = 0 <= seconds_since_look < FRESH_SECONDS
            if is_fresh and not self._is_outdated():
                return
        # Without new transcripts, a search is still of use.
        with suppress(StorageError):
            self.sync()
            lock.touch()

    def search(
        self, text: str, where: TraceFilter | None = None, *, limit: int = 10
    ) -> list[TraceHit]:
        """Return the exchanges that fit `text` best, at most `limit`, best first.

        Raises InvalidInput if transcripts are off, StorageError if the index cannot be read.

        where: the transcripts to look in. None means all.
        """
        self._check()
        if not self.is_indexed:
            return []
        self.refresh()
        with self._reading() as index:
            return search.find(index, self.mask, text, where or TraceFilter(), limit)

    def show(self, ref: str) -> list[TraceHit]:
        """Return the exchange around a search hit, one hit for each turn.

        Raises InvalidInput if transcripts are off, NotFound for an unknown reference.

        ref: the reference of the hit, `TraceHit.ref`.
        """
        self._check()
        hits: list[TraceHit] = []
        if self.is_indexed:
            if self._is_outdated():
                self.refresh()
            with self._reading() as index:
                hits = search.shown(index, self.mask, ref)
        if not hits:
            raise NotFound(ref, "the transcripts")
        return hits

    def turns_from(self, ref: str, number: int) -> list[TraceHit]:
        """Return a turn and those after it in its exchange. [] if the index cannot tell it now.

        The index is not brought up to date, since other callers may wait for this one.

        ref: the reference of the turn, `TraceHit.ref`.
        number: how many turns to return, at most.
        """
        if not self.is_indexed or self._is_outdated():
            return []
        with suppress(CannotRead), self._reading() as index:
            hits = search.shown(index, self.mask, ref, turns_after=number - 1)
            # If the turn itself is gone from its transcript, the others say nothing about it.
            if hits and hits[0].ref == ref:
                return hits
        return []

    def forget(self) -> bool:
        """Delete the index. Returns whether there was an index."""
        was_there = self.is_indexed
        remove(self.path)
        self.path.with_suffix(".lock").unlink(missing_ok=True)
        return was_there

    def status(self) -> dict[str, AgentCounts]:
        """Return the size of each agent's transcripts, by the agent's name. {} before a sync."""
        if not self.is_indexed:
            return {}
        with self._reading() as index:
            return index.counts()

    def troubles(self) -> dict[str, str]:
        """Return the files and agents that cannot be read, each with the reason."""
        result = dict(places.closed())
        if self.is_indexed:
            with self._reading() as index:
                result |= index.troubles()
        return result

    def _check(self) -> None:
        """Raise InvalidInput if transcripts are off."""
        if not self.is_on:
            raise InvalidInput(OFF, TURN_ON)

    def _is_outdated(self) -> bool:
        """Whether the index is of another version, or damaged, so that it cannot be searched."""
        try:
            return is_outdated(self.path)
        except sqlite3.Error:
            return True

    @contextmanager
    def _reading(self) -> Iterator[TraceIndex]:
        """Open the index. Raises CannotRead for an error of SQLite, also of one in the block."""
        try:
            with TraceIndex(self.path, may_write=False) as index:
                yield index
        except sqlite3.Error as error:
            remedy = "Make it anew: memory transcripts sync"
            raise CannotRead("the index of transcripts", str(error), remedy) from None


def find_traces(memory: ReadVerbs, text: str, *, limit: int = 10) -> list[TraceHit]:
    """Search transcripts for the page, which shows the hits beside notes. [] if they are off."""
    transcripts = Transcripts(memory)
    if not transcripts.is_on or not text.strip():
        return []
    return transcripts.search(text, limit=limit)


def source_turn(memory: ReadVerbs, ref: str) -> str:
    """Return the turn that a memory was made from and the turn after it, as one line.

    Example: `you: Keep dates in UTC, the API has no zones. agent: Done, all columns are UTC now.`
    The result is "" if transcripts are off, if the transcript is gone, or if a turn may hold
    injected instructions.

    ref: the reference of the turn, `TraceHit.ref`.
    """
    transcripts = Transcripts(memory)
    if not transcripts.is_on:
        return ""
    turns = transcripts.turns_from(ref, _TURNS_OF_A_SOURCE)
    if any(hit.is_suspicious for hit in turns):
        return ""
    words = [f"{hit.who}: {shorten(one_line(hit.passage), _SOURCE_CHARACTERS)}" for hit in turns]
    return visible(" ".join(words))


def found_on_this_machine() -> dict[str, int]:
    """Count the files with transcripts on this machine by agent, e.g. `{"Claude Code": 12}`."""
    titles = places.agents()
    counts: dict[str, int] = {}
    for file in places.find():
        title = titles[file.agent]
        counts[title] = counts.get(title, 0) + 1
    return counts
