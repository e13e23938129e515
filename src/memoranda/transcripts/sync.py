"""Keeps the index of transcripts in step with the files that programs write.

`sync` finds files whose stamp has changed, reads their new parts, and writes turns and lessons.
A stamp is a text that changes with the file: `INODE SIZE TIME`. Much new text is read by several
processes, and only one process writes.
"""

from __future__ import annotations

import json
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

# The index is rebuilt when more than this share of its turns was deleted.
_MAX_DELETED_SHARE = 0.3
# An index with fewer turns is not worth rebuilding.
_MIN_TURNS_TO_REBUILD = 20_000
# More bytes than these are read by several processes.
_PARALLEL_BYTES = 32 << 20
# More processes wait for one another's writes.
_MAX_WORKERS = 4
# Turns of a file after which a batch is handed over for writing.
_BATCH_TURNS = 4_000
# Turns that are written in one transaction.
_TRANSACTION_TURNS = 16_000


@dataclass(slots=True)
class TranscriptSync:
    """The result of a sync.

    files: the number of files that were new or changed.
    turns: the number of turns that were written.
    removed: the number of files that are no longer there.
    skipped: path of a file that could not be read -> reason.
    is_busy: whether nothing was done, because another process was syncing.
    """

    files: int = 0
    turns: int = 0
    removed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    is_busy: bool = False


class ReadFile(NamedTuple):
    """A batch of new turns that were read from one file.

    file: the file with its agent and format.
    stamp: the stamp of the file, if this is its last batch. Otherwise "".
    state: where to go on reading.
    sessions: the sessions with their new turns and lessons.
    successes: hash of a command -> when it last worked, in seconds since 1970.
    trouble: why the file could not be read to its end, or "".
    """

    file: SourceFile
    stamp: str
    state: dict[str, Any]
    sessions: list[SessionRows]
    successes: dict[int, int]
    trouble: str = ""


def read_file(
    file: SourceFile, stamp: str, state: dict[str, Any], mask: Mask
) -> Iterator[ReadFile]:
    """Read the new part of a file in batches. Trouble is reported in the last batch, not raised.

    stamp: the present stamp of the file.
    state: where its format goes on reading. {} if it was not read before.
    mask: takes secrets out.
    """
    format = FORMATS[file.format]
    # The batch so far.
    sessions: list[SessionRows] = []
    successes: dict[int, int] = {}
    batch_turns = 0
    try:
        for session_turns in format.read(file.path, state):
            # In a file that grows, a command may get its output in a later look, so the miner of
            # lessons goes on where it was.
            miner_state = state if format.grows else {}
            rows, new_successes = _rows(session_turns, mask, miner_state)
            sessions.append(rows)
            _add_latest(successes, new_successes)
            batch_turns += len(rows.turns)
            # A file that grows is one batch: its state says how far it was read only at the end.
            is_batch_full = batch_turns >= _BATCH_TURNS and not format.grows
            if is_batch_full:
                # Without the stamp, the file is read again if this process dies before the end.
                yield ReadFile(file, "", dict(state), sessions, successes)
                sessions = []
                successes = {}
                batch_turns = 0
        trouble = ""
    except NotUnderstood as error:
        trouble = f"not understood: {error}"
    except OSError as error:
        trouble = reason(error)
    except RecursionError:
        trouble = "not understood: nested too deeply"
    yield ReadFile(
        file, stamp=stamp, state=state, sessions=sessions, successes=successes, trouble=trouble
    )


def _add_latest(times: dict[int, int], new_times: dict[int, int]) -> None:
    """Add the times of commands to `times`. If a command has two times, the later one counts.

    times, new_times: hash of a command -> when it worked, in seconds since 1970.
    """
    for term, time in new_times.items():
        times[term] = max(time, times.get(term, 0))


def _rows(
    session_turns: SessionTurns, mask: Mask, state: dict[str, Any]
) -> tuple[SessionRows, dict[int, int]]:
    """Return the rows of a session for the index, and when its commands worked for the last time.

    The times are in seconds since 1970, by the hash of the command.

    session_turns: the session with its new turns.
    mask: takes secrets out of the words.
    state: has the miner's state of the earlier part of the session. It is changed in place.
    """
    session = session_turns.session

    # Look for lessons.
    earlier_state: dict[str, Any] = {}
    if state.get("mined") == session.name:
        earlier_state = state["miner"]
    miner = Miner.of(earlier_state)
    miner.feed(session_turns.turns)
    miner.end()
    state["miner"] = miner.state(mask.clean)
    state["mined"] = session.name

    # Make the rows.
    words = mask.words(session_turns.turns)
    turns = [_new_turn(turn, text) for turn, text in zip(session_turns.turns, words, strict=True)]
    lessons = [
        NewLesson(
            lesson.kind,
            position=lesson.position,
            other=lesson.other,
            start=lesson.start,
            stop=lesson.stop,
            time=int(lesson.time),
            mark=hashed(lesson.identity),
            terms=new_terms(lesson),
        )
        for lesson in miner.lessons
    ]
    successes = {hashed(term): int(time) for term, time in miner.successes.items()}
    return SessionRows(session.name, session.folder, turns, lessons), successes


def _new_turn(turn: Turn, words: str) -> NewTurn:
    """Return the row of a turn. A search looks in `words` for it."""
    is_statement = turn.kind is Kind.SAID and states_something(turn.text)
    return NewTurn(
        turn.kind,
        time=int(turn.time),
        position=turn.position,
        mark=hashed(turn.text),
        words=words,
        is_statement=is_statement,
    )


def sync(
    path: Path,
    mask: Mask,
    *,
    without: Iterable[str] = (),
    folders: Iterable[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> TranscriptSync:
    """Bring the index at `path` in step with the transcripts of all agents except `without`.

    Only one process does it at a time. Others return immediately, with `is_busy`. Raises OSError or
    sqlite3.Error if the index cannot be written.

    mask: takes secrets out of the words that are indexed.
    without: names of agents whose transcripts are left out, and removed from the index.
    folders: folders of projects, in which some agents leave transcripts.
    progress: called with the number of files done and of all files to read. None calls nothing.
    """
    from memoranda.sources.files import make_private

    make_private(path.parent)
    lock = path.with_suffix(".lock")
    # Several hooks and commands may start a sync at the same time: the first does it for all.
    try:
        descriptor = lock_file(lock, _exclusive_lock_flags())
    except BlockingIOError:
        return TranscriptSync(is_busy=True)
    try:
        return _sync_locked(path, mask, set(without), list(folders), progress)
    finally:
        os.close(descriptor)


def _exclusive_lock_flags() -> int:
    """Return the flags for a lock that only one process gets and none waits for."""
    import fcntl

    return fcntl.LOCK_EX | fcntl.LOCK_NB


def _sync_locked(
    path: Path,
    mask: Mask,
    without: set[str],
    folders: list[str],
    progress: Callable[[int, int], None] | None,
) -> TranscriptSync:
    """Bring the index in step with the transcripts. The caller holds the lock.

    mask: takes secrets out of the words that are indexed.
    without: names of agents whose transcripts are left out, and removed from the index.
    folders: folders of projects, in which some agents leave transcripts.
    progress: called with the number of files done and of all files to read. None calls nothing.
    """
    with TraceIndex(path) as index:
        is_wasteful = _is_wasteful(index)
    # Most of the file would be words of deleted turns, so it is written again from the transcripts.
    if is_wasteful:
        remove(path)
    with TraceIndex(path) as index:
        report = TranscriptSync()
        rows = index.sources()
        files = list(find(without=without, folders=[*folders, *index.folders()]))
        _remove_missing_files(index, rows, files, report)
        jobs = []
        for file, stamp in _with_stamps(files):
            row = rows.get(str(file.path))
            if row is None or row.stamp != stamp:
                jobs.append(_new_job(index, row, file, stamp))
        _write_all(index, _read_ahead(jobs, mask), report, progress, len(jobs))
        report.skipped |= index.troubles()
        return report


def _is_wasteful(index: TraceIndex) -> bool:
    """Whether the index should be rebuilt, because too many turns were deleted."""
    if index.waste() <= _MAX_DELETED_SHARE:
        return False
    turns = sum(counts.turns for counts in index.counts().values())
    return turns > _MIN_TURNS_TO_REBUILD


def _remove_missing_files(
    index: TraceIndex,
    rows: dict[str, SourceRow],
    files: list[SourceFile],
    report: TranscriptSync,
) -> None:
    """Remove files from the index that are gone, or whose agent is left out now.

    rows: the files in the index by path.
    files: the files that exist.
    report: counts the files.
    """
    paths = {str(file.path) for file in files}
    for path, row in rows.items():
        if path not in paths:
            with index.transaction():
                index.remove_source(row.id)
            report.removed += 1


def _with_stamps(files: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, str]]:
    """Yield each file with its stamp. Files that vanished meanwhile are left out."""
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
    """A file to be read.

    file: the file with its agent and format.
    stamp: the present stamp of the file.
    state: where its format goes on reading. Empty to read from the start.
    """

    file: SourceFile
    stamp: str
    state: dict[str, Any]


def _new_job(index: TraceIndex, row: SourceRow | None, file: SourceFile, stamp: str) -> _Job:
    """Decide whether to read the new end of a file or all of it.

    row: the file in the index, or None if it is new.
    """
    if row is None:
        return _Job(file, stamp, {})
    if FORMATS[file.format].grows and not _has_grown(row.stamp, stamp):
        # The file was replaced or cut, so that its turns are not the indexed ones.
        with index.transaction():
            index.remove_source(row.id)
        return _Job(file, stamp, {})
    return _Job(file, stamp, json.loads(row.state))


# The mask of a worker process. It remembers words, so that all files of the process share it.
_worker_mask: Mask | None = None


def _begin_worker(mask: Mask) -> None:
    """Prepare a worker process."""
    global _worker_mask
    _worker_mask = mask


def _read_whole(job: _Job) -> list[ReadFile]:
    """Read all batches of a file, in a worker process."""
    assert _worker_mask is not None
    return list(read_file(job.file, job.stamp, job.state, _worker_mask))


def _cores() -> int:
    """Return the number of cores that this process may use, or 1 if the system does not say."""
    if not hasattr(os, "sched_getaffinity"):
        return 1
    return len(os.sched_getaffinity(0))


def _new_bytes(job: _Job) -> int:
    """Return how many bytes of a file were not read yet."""
    # The second number of a stamp is the size.
    return int(job.stamp.split()[1]) - job.state.get("offset", 0)


def _read_ahead(jobs: list[_Job], mask: Mask) -> Iterator[Iterable[ReadFile]]:
    """Yield the batches of each file, in the order of the jobs.

    More than _PARALLEL_BYTES of new text are read by several processes.

    jobs: the files to read, each with how far it was read before.
    mask: takes secrets out of the words.
    """
    cores = _cores()
    # If a program embeds Python, a worker process would start that program again.
    may_start_workers = cores >= 2 and "python" in os.path.basename(sys.executable or "")
    is_much = len(jobs) >= 2 and sum(map(_new_bytes, jobs)) >= _PARALLEL_BYTES
    reading_mask = mask.for_reading()
    if may_start_workers and is_much:
        yield from _read_by_workers(jobs, reading_mask, min(cores, _MAX_WORKERS))
    else:
        for job in jobs:
            yield read_file(job.file, job.stamp, job.state, reading_mask)


def _read_by_workers(
    jobs: list[_Job], reading_mask: Mask, workers: int
) -> Iterator[list[ReadFile]]:
    """Yield the batches of each file, in the order of the jobs. Worker processes read the files.

    jobs: the files to read, each with how far it was read before.
    reading_mask: takes secrets out of the words.
    workers: the number of processes.
    """
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing import get_context

    pending: deque[Future[list[ReadFile]]] = deque()
    with ProcessPoolExecutor(
        workers,
        mp_context=get_context("spawn"),
        initializer=_begin_worker,
        initargs=(reading_mask,),
    ) as pool:
        for job in jobs:
            pending.append(pool.submit(_read_whole, job))
            # Reading is faster than writing: do not let results pile up in memory.
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _write_all(
    index: TraceIndex,
    files: Iterable[Iterable[ReadFile]],
    report: TranscriptSync,
    progress: Callable[[int, int], None] | None,
    count: int,
) -> None:
    """Write the batches of all files, many in one transaction.

    If reading a file fails, the batches before it are written all the same.

    files: the batches of each file.
    report: counts the files and turns.
    progress: called after each file with its number and `count`.
    count: the number of files.
    """
    pending: list[ReadFile] = []
    turns = 0
    try:
        for number, batches in enumerate(files, 1):
            report.files += 1
            for batch in batches:
                pending.append(batch)
                turns += sum([len(session.turns) for session in batch.sessions])
                # A full-text table is written faster in few large transactions.
                if turns >= _TRANSACTION_TURNS:
                    # Emptied before, so that an error here does not write them twice.
                    full = pending
                    pending = []
                    turns = 0
                    _write(index, full, report)
            if progress is not None:
                progress(number, count)
    finally:
        _write(index, pending, report)


def _write(index: TraceIndex, batches: Sequence[ReadFile], report: TranscriptSync) -> None:
    """Write some batches in one transaction.

    So a crash cannot leave turns without the note of how far their file was read.

    batches: the batches, perhaps of several files.
    report: counts the turns.
    """
    if not batches:
        return
    with index.transaction():
        for batch in batches:
            format = FORMATS[batch.file.format]
            source = index.add_source(batch.file)
            for session in batch.sessions:
                if format.grows:
                    index.append(source, session)
                else:
                    index.replace(source, session)
                report.turns += len(session.turns)
            index.record_successes(batch.successes)
            index.set_source(source, batch.stamp, batch.state, batch.trouble)


def _has_grown(old: str, new: str) -> bool:
    """Whether a file was only appended to. `old` and `new` are its stamps: `INODE SIZE TIME`."""
    # A file that was not read to its end has no stamp.
    if not old:
        return False
    old_inode, old_size, *_ = old.split()
    new_inode, new_size, *_ = new.split()
    return old_inode == new_inode and int(old_size) <= int(new_size)


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether an error means that the index is no longer a database and must be rebuilt.

    An OperationalError, as for a locked file or a full disk, does not mean that.
    """
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.OperationalError
    )
