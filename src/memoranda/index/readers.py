"""Read the files of a large project in several processes, since Python runs one thread at a time.

A reader is a child of this process. It gets paths on its standard input, and exits when this input
ends, which happens at the latest when its parent ends. The caller must read the files that a reader
cannot read, and all files if no reader can be started.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue

from memoranda.errors import MemorandaError
from memoranda.index.database import SCHEMA_VERSION
from memoranda.index.rows import NotIndexable
from memoranda.index.writer import Prepared, prepare
from memoranda.note.model import BAD_HEADER, Note, warning_text
from memoranda.sources.base import File
from memoranda.sources.folder import FolderSource, add_name_of_day
from memoranda.text.utf16 import utf16_coding

Suspicious = Callable[[Note], tuple[str, ...]]
# More processes than these would wait for the one that writes.
_MOST = 4
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; from memoranda.index.readers import answer; answer()"
)


class Readers:
    """The processes that read files while this context is open.

    source: the folder with the files.
    suspicious: returns the names of the rules of the gate that match a note.
    project: the id of the project in the index.
    """

    def __init__(self, source: FolderSource, suspicious: Suspicious, project: int):
        """Start the processes. If that fails, there are fewer of them, or none."""
        self._processes: list[subprocess.Popen[bytes]] = []
        # The processes that have nothing to do.
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        count = _process_count()
        with suppress(OSError):
            for _ in range(count):
                process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, *sys.path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                self._processes.append(process)
                self._idle.put(process)
                # The first message tells the reader what to do. The others are paths.
                pickle.dump((SCHEMA_VERSION, source, suspicious, project), process.stdin)  # type: ignore[arg-type]
        self._threads = ThreadPoolExecutor(max(1, count))

    def __enter__(self) -> Readers:
        """Return the readers, which were started already."""
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            # Leaving this block closes the pipes and waits for the process to end.
            with process, suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]

    def ahead(self, batches: Iterable[Sequence[str]]) -> Iterator[dict[str, Prepared]]:
        """Yield for each batch of paths: path → the index rows for its file.

        The processes read some batches ahead. The caller has to read the files whose path is
        missing in the result.
        """
        # The batches that are being read, the oldest first.
        reading: deque[Future[list[Prepared]]] = deque()
        for paths in batches:
            reading.append(self._threads.submit(self._ask, paths))
            # Two batches ahead for each process, so that none is idle and memory stays small.
            if len(reading) > 2 * len(self._processes):
                yield {note.path: note for note in reading.popleft().result()}
        for future in reading:
            yield {note.path: note for note in future.result()}

    def _ask(self, paths: Sequence[str]) -> list[Prepared]:
        """Let a free process read files. Returns their index rows, none if the process fails.

        paths: the paths of the files.
        """
        if not paths or not self._processes:
            return []
        process = self._idle.get()
        try:
            pickle.dump(paths, process.stdin)  # type: ignore[arg-type]
            process.stdin.flush()  # type: ignore[union-attr]
            return pickle.load(process.stdout)  # type: ignore[arg-type]
        except (
            OSError,
            EOFError,
            ValueError,
            pickle.PickleError,
            AttributeError,
            ImportError,
            IndexError,
        ):
            # The process ended, or runs another version of this program.
            process.kill()
            process.wait()
            return []
        finally:
            self._idle.put(process)


def _process_count() -> int:
    """Return how many processes to start. 0 if more processes would not help."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    # A program that embeds Python cannot be started as an interpreter.
    is_interpreter = "python" in os.path.basename(sys.executable or "")
    if cores == 1 or not is_interpreter:
        return 0
    return min(cores, _MOST)


def answer() -> None:
    """Run a reader: read the files whose paths come in on standard input, until it ends."""
    with suppress(EOFError, BrokenPipeError):
        version, source, suspicious, project = pickle.load(sys.stdin.buffer)
        # If the versions differ, this program was updated while the parent process ran. Then the
        # rows would not fit its index.
        while version == SCHEMA_VERSION:
            paths = pickle.load(sys.stdin.buffer)
            rows = _prepared(paths, source, suspicious, project)
            pickle.dump(rows, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
            sys.stdout.buffer.flush()


def _prepared(
    paths: Sequence[str], source: FolderSource, suspicious: Suspicious, project: int
) -> list[Prepared]:
    """Read files, and return the index rows of those that can be indexed here.

    Files that cannot be read, and notes with warnings, are left to the caller of `Readers.ahead`.
    Each step is done for all files before the next step, which takes a fifth less time: the
    processor's caches serve the next file.

    paths: the paths of the files.
    source: the folder with the files.
    suspicious: returns the names of the rules of the gate that match a note.
    project: the id of the project in the index.
    """
    # Read the files: (path, text, file) of each that is UTF-8.
    files: list[tuple[str, str, File]] = []
    for path in paths:
        with suppress(MemorandaError, UnicodeDecodeError):
            file = source.read(path)
            if utf16_coding(file.data) is None:
                files.append((path, file.data.decode("utf-8"), file))
    # Read the notes in them.
    notes = [file.note(source.name, path, text) for path, text, file in files]
    for note in notes:
        add_name_of_day(note, source)
        note.suspicious = suspicious(note)
    # Compute their index rows, unless the header is broken.
    prepared_notes: list[Prepared] = []
    for note, (_, _, file) in zip(notes, files, strict=True):
        if warning_text(note.warnings, BAD_HEADER) is None:
            with suppress(NotIndexable):
                prepared_notes.append(prepare(note, file.stamp, project))
    return prepared_notes
