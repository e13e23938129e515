"""Keeps the index of transcripts in step with what programs wrote."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.sources.files import lock_file, reason
from memoranda.transcripts.answers import states_something
from memoranda.transcripts.formats import FORMATS
from memoranda.transcripts.index import (
    NewLesson,
    NewTurn,
    SessionRows,
    SourceRow,
    TraceIndex,
    remove,
)
from memoranda.transcripts.lessons import Miner, new_terms
from memoranda.transcripts.mask import Mask
from memoranda.transcripts.places import find
from memoranda.transcripts.terms import hashed
from memoranda.transcripts.turn import Kind, NotUnderstood, SessionTurns, SourceFile, Turn

# The index is rebuilt when more than this part of its words belongs to deleted turns.
_WASTE = 0.3
# Turns below which rebuilding an index is not worth it.
_LEAST_TO_REBUILD = 20_000
# Bytes from which on files are read by processes of their own.
_MUCH = 32 << 20
# More processes wait for one another's writes.
_MOST_WORKERS = 4
# Turns of a file that are read at once.
_BATCH = 4_000
# Turns that are written in one transaction.
_WRITTEN_AT_ONCE = 16_000


@dataclass(slots=True)
class TranscriptSync:
    """Counts of one look at the transcripts: files that were new or changed, turns read, files that
    are gone; and what was not read, with the reason.
    """

    files: int = 0
    turns: int = 0
    removed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    is_busy: bool = False
    """Another process was at it."""


class ReadFile(NamedTuple):
    """The new part of one file: its sessions as rows, and how far it was read."""

    file: SourceFile
    stamp: str
    state: dict[str, Any]
    sessions: list[SessionRows]
    successes: dict[int, int]
    trouble: str = ""


def read_file(
    file: SourceFile, stamp: str, state: dict[str, Any], mask: Mask
) -> Iterator[ReadFile]:
    """Read the new part of a file, in batches, the last of which ends its state."""
    format = FORMATS[file.format]
    sessions: list[SessionRows] = []
    successes: dict[int, int] = {}
    waiting_turns = 0
    try:
        for outcome in format.read(file.path, state):
            # In a file that grows, a command may get its output in a later look.
            miner_state: dict[str, Any] = {}
            if format.grows:
                miner_state = state
            rows, worked = _rows(outcome, mask, miner_state)
            sessions.append(rows)
            for term, time in worked.items():
                successes[term] = max(time, successes.get(term, 0))
            waiting_turns += len(rows.turns)
            # A batch that is not the last has no stamp, so that a crash reads the file again.
            if waiting_turns >= _BATCH and not format.grows:
                yield ReadFile(file, "", dict(state), sessions, successes)
                sessions = []
                successes = {}
                waiting_turns = 0
    except NotUnderstood as error:
        yield ReadFile(file, stamp, state, sessions, successes, f"not understood: {error}")
        return
    except OSError as error:
        yield ReadFile(file, stamp, state, sessions, successes, reason(error))
        return
    yield ReadFile(file, stamp, state, sessions, successes)


def _rows(
    outcome: SessionTurns, mask: Mask, state: dict[str, Any]
) -> tuple[SessionRows, dict[int, int]]:
    """The rows of a session for the index, and when its commands worked. `state` is what was kept of
    its beginning, and is changed.
    """
    earlier: dict[str, Any] = {}
    if state.get("mined") == outcome.session.name:
        earlier = state["miner"]
    miner = Miner.of(earlier)
    miner.feed(outcome.turns)
    miner.end()
    state["miner"] = miner.state(mask.clean)
    state["mined"] = outcome.session.name
    words = mask.words(outcome.turns)
    turns = [_new_turn(turn, text) for turn, text in zip(outcome.turns, words, strict=True)]
    lessons = [
        NewLesson(
            lesson.kind,
            lesson.position,
            lesson.other,
            lesson.start,
            lesson.stop,
            int(lesson.time),
            hashed(lesson.identity),
            new_terms(lesson),
        )
        for lesson in miner.lessons
    ]
    successes = {hashed(term): int(time) for term, time in miner.successes.items()}
    return SessionRows(outcome.session.name, outcome.session.folder, turns, lessons), successes


def _new_turn(turn: Turn, words: str) -> NewTurn:
    is_statement = turn.kind is Kind.SAID and states_something(turn.text)
    return NewTurn(turn.kind, int(turn.time), turn.position, hashed(turn.text), words, is_statement)


def sync(
    path: Path,
    mask: Mask,
    *,
    without: Iterable[str] = (),
    folders: Iterable[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> TranscriptSync:
    """Bring the index at `path` in step with the transcripts of all agents except `without`.

    Only one process does it at a time. Others return immediately, with `is_busy`. Raises OSError,
    sqlite3.Error.
    """
    from memoranda.sources.files import make_private

    make_private(path.parent)
    lock = path.with_suffix(".lock")
    # Several hooks and commands may want to look at once: the first does it for all.
    try:
        descriptor = lock_file(lock, _exclusive())
    except BlockingIOError:
        return TranscriptSync(is_busy=True)
    try:
        return _synced(path, mask, set(without), list(folders), progress)
    finally:
        os.close(descriptor)


def _exclusive() -> int:
    import fcntl

    return fcntl.LOCK_EX | fcntl.LOCK_NB


def _synced(
    path: Path,
    mask: Mask,
    without: set[str],
    folders: list[str],
    progress: Callable[[int, int], None] | None,
) -> TranscriptSync:
    with TraceIndex(path) as index:
        is_wasteful = _is_wasteful(index)
    if is_wasteful:
        remove(path)
    with TraceIndex(path) as index:
        report = TranscriptSync()
        rows = index.sources()
        files = list(find(without=without, folders=[*folders, *index.folders()]))
        _forget(index, rows, files, report)
        jobs = []
        for file, stamp in _stamped(files):
            row = rows.get(str(file.path))
            if row is None or row.stamp != stamp:
                jobs.append(_job(index, row, file, stamp))
        _write_all(index, _read_ahead(jobs, mask), report, progress, len(jobs))
        for row in index.sources().values():
            if row.trouble:
                report.skipped[row.path] = row.trouble
        return report


def _is_wasteful(index: TraceIndex) -> bool:
    """Whether so much of the index is of deleted turns that it should be rebuilt."""
    if index.waste() <= _WASTE:
        return False
    turns = sum(count[2] for count in index.counts().values())
    return turns > _LEAST_TO_REBUILD


def _forget(
    index: TraceIndex,
    rows: dict[str, SourceRow],
    files: list[SourceFile],
    report: TranscriptSync,
) -> None:
    """Take out what is no longer there, or was of an agent that is left out now."""
    paths = {str(file.path) for file in files}
    for path, row in rows.items():
        if path not in paths:
            with index.transaction():
                index.remove_source(row.id)
            report.removed += 1


def _stamped(files: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, str]]:
    for file in files:
        try:
            status = file.path.stat()
            stamp = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
            # A database keeps its latest changes in a second file for a while.
            log = Path(f"{file.path}-wal")
            if file.path.suffix in (".db", ".vscdb") and log.exists():
                status = log.stat()
                stamp += f" {status.st_size} {status.st_mtime_ns}"
        except OSError:
            continue
        yield file, stamp


class _Job(NamedTuple):
    """A file to be read, with its known state."""

    file: SourceFile
    stamp: str
    state: dict[str, Any]


def _job(index: TraceIndex, row: SourceRow | None, file: SourceFile, stamp: str) -> _Job:
    """How to read a file: from where it ended, or all of it."""
    if row is None:
        return _Job(file, stamp, {})
    if FORMATS[file.format].grows and not _has_grown(row.stamp, stamp):
        # Another file by the same name, or one that was cut.
        with index.transaction():
            index.remove_source(row.id)
        return _Job(file, stamp, {})
    return _Job(file, stamp, dict(row.state))


def _read_whole(job: _Job, mask: Mask) -> list[ReadFile]:
    return list(read_file(job.file, job.stamp, job.state, mask))


def _cores() -> int:
    """The number of cores this process may use. 1 if the system does not say."""
    if not hasattr(os, "sched_getaffinity"):
        return 1
    return len(os.sched_getaffinity(0))


def _read_ahead(jobs: list[_Job], mask: Mask) -> Iterator[Iterable[ReadFile]]:
    """Read the new part of each file, in order; where that is much, in separate processes."""
    size = sum(int(job.stamp.split()[1]) - job.state.get("offset", 0) for job in jobs)
    cores = _cores()
    # Another program that embeds Python would start itself, not a reader.
    is_python = "python" in os.path.basename(sys.executable or "")
    if size < _MUCH or cores < 2 or len(jobs) < 2 or not is_python:
        for job in jobs:
            yield read_file(job.file, job.stamp, job.state, mask)
        return
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing import get_context

    workers = min(cores, _MOST_WORKERS)
    waiting: deque[Future[list[ReadFile]]] = deque()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for job in jobs:
            waiting.append(pool.submit(_read_whole, job, mask))
            # Little more than can be written is held in memory.
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _write_all(
    index: TraceIndex,
    files: Iterable[Iterable[ReadFile]],
    report: TranscriptSync,
    progress: Callable[[int, int], None] | None,
    count: int,
) -> None:
    """Write what was read of each of `count` files, several files at a time."""
    waiting: list[ReadFile] = []
    turns = 0
    for number, batches in enumerate(files, 1):
        report.files += 1
        for read in batches:
            waiting.append(read)
            turns += sum(len(session.turns) for session in read.sessions)
            # Few large transactions merge fewer parts of the full-text table.
            if turns >= _WRITTEN_AT_ONCE:
                _write(index, waiting, report)
                waiting = []
                turns = 0
        if progress is not None:
            progress(number, count)
    _write(index, waiting, report)


def _write(index: TraceIndex, reads: Sequence[ReadFile], report: TranscriptSync) -> None:
    """Write what was read. Turns and how far their files were read become visible together."""
    if not reads:
        return
    with index.transaction():
        for read in reads:
            format = FORMATS[read.file.format]
            source = index.add_source(read.file)
            for session in read.sessions:
                if format.grows:
                    index.append(source, session)
                else:
                    index.replace(source, session)
                report.turns += len(session.turns)
            index.note_successes(read.successes)
            index.set_source(source, read.stamp, read.state, read.trouble)


def _has_grown(old: str, new: str) -> bool:
    """Whether a file is the one it was, and not shorter."""
    before = old.split()
    after = new.split()
    return bool(before) and before[0] == after[0] and int(before[1]) <= int(after[1])


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether the index is no longer a database, and has to be rebuilt."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.OperationalError
    )
