"""How little a durable write could cost: its parts without a line of ours.

    python bench/floor.py [--rounds 300] [--together 32]

Each part is measured bare, in this process and by turns with whole writes: SQLite gets the rows that
a write has, prepared before; a file is made as a write makes it; a request is read and answered by
asyncio and nothing else. Four parts are ours and cannot be left out: reading the note, looking for
secrets, looking for planted orders, and computing the rows of the index. Printed is the processor
time of each part, for a write alone and for one of several that share a commit, and how many writes
a second one processor could do if these were all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
if str(HERE.parent / "src") not in sys.path:
    sys.path.insert(0, str(HERE.parent / "src"))

from memoranda import faces  # noqa: E402
from memoranda.clock import now, stamp  # noqa: E402
from memoranda.engine import MemorySession, open_session  # noqa: E402
from memoranda.index import database as index_database  # noqa: E402
from memoranda.index import writer  # noqa: E402
from memoranda.ledger.change import Change, Touched  # noqa: E402
from memoranda.ledger.database import LedgerDatabase  # noqa: E402
from memoranda.ledger.history import History  # noqa: E402
from memoranda.note.markdown import parse_note  # noqa: E402
from memoranda.note.model import Note  # noqa: E402
from memoranda.sources.base import Stamp, sha256  # noqa: E402
from memoranda.sources.layout import Layout  # noqa: E402
from memoranda.text.gate import SECRET, default_rules  # noqa: E402

CALLERS = 100
CALLS = 20
TEXT = "The harbour opens at six. - [fact] tea is warm #drink\n- likes [[Note 3]]\n"
CONFIGURATION = "limits:\n  agent_notes_per_day: 0\n  agent_bytes_per_day: 0\n"
Statement = tuple[str, Sequence[Any]]


class Recorder:
    """Takes the statements that would be executed, so that they can be executed bare."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        self.statements.append((sql, values))

    def executemany(self, sql: str, rows: Sequence[Any]) -> None:
        self.statements += [(sql, values) for values in rows]


def seconds_of(call: Callable[[], object]) -> float:
    """The processor time of one call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def note_text(number: int) -> str:
    return f"---\ntitle: Note {number}\ntype: note\npermalink: notes/note-{number}\n---\n\n{TEXT}"


def index_statements(first: int, notes: int) -> list[Statement]:
    """What a write executes to put notes into the index, without its questions."""
    recorder = Recorder()
    rows = []
    for number in range(first, first + notes):
        text = note_text(number)
        note = parse_note(text, project="notes", path=f"Note {number}.md", changed=now())
        note.etag = sha256(text.encode())
        rows.append((number, writer.prepare(note, Stamp(len(text), number, number), 1)))
    writer._insert(recorder, rows)  # type: ignore[arg-type]
    return recorder.statements


def ledger_statements(first: int, changes: int) -> list[Statement]:
    """What a write executes to record changes, without its questions."""
    recorder = Recorder()
    history = History.__new__(History)
    for number in range(first, first + changes):
        data = note_text(number).encode()
        step = Touched(
            "put",
            "notes",
            f"Note {number}.md",
            old=None,
            new=sha256(data),
            mode=None,
            size=len(data),
        )
        moment = stamp(now())
        change = Change(
            number, moment, "write", "notes", step.path, "alice", "mcp", [step], None, None, None
        )
        history.record(recorder, [change])  # type: ignore[arg-type]
        recorder.execute(
            "insert into unsynced (change, batch, boot) values (?, ?, ?)", (number, first, "boot")
        )
        recorder.execute(
            "insert into pending_step (change, position, root, temp, temp_folder, mode, data) "
            "values (?, ?, ?, ?, ?, ?, ?)",
            (number, 0, "/home/notes", f".tmp-4711-{number}", "", None, data),
        )
    return recorder.statements


def execute(connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    """Execute statements in one transaction."""
    connection.execute("begin immediate")
    for sql, values in statements:
        connection.execute(sql, values)
    connection.execute("commit")


def write_file(folder: int, number: int) -> None:
    """Make a file as a write does: beside its place, then at it."""
    data = note_text(number).encode()
    name = f".tmp-4711-{number}"
    place = f"Note {number}.md"
    fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    os.write(fd, data)
    os.fstat(fd)
    os.close(fd)
    os.link(name, place, src_dir_fd=folder, dst_dir_fd=folder)
    os.unlink(name, dir_fd=folder)
    os.stat(place, dir_fd=folder)


def serve(address: str, pipe: Connection) -> None:
    """Answer each line with a line, and send the processor time of a call when all are gone."""

    async def run() -> None:
        calls = 0
        connected = 0
        over = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, sender: asyncio.StreamWriter) -> None:
            nonlocal calls, connected
            connected += 1
            while line := await reader.readline():
                request = json.loads(line)
                calls += 1
                reply = {"id": request["id"], "result": {"text": request["arguments"]["title"]}}
                sender.write(json.dumps(reply).encode() + b"\n")
            sender.close()
            connected -= 1
            if not connected and calls == CALLERS * CALLS:
                over.set()

        async with await asyncio.start_unix_server(answer, address):
            begin = time.process_time()
            pipe.send(None)
            await over.wait()
            pipe.send((time.process_time() - begin) / calls)

    asyncio.run(run())


async def ask_all(address: str) -> None:
    """Call as many callers do at once."""

    async def ask(caller: int) -> None:
        reader, sender = await asyncio.open_unix_connection(address)
        for number in range(CALLS):
            arguments = {"title": f"Note {caller} {number}", "content": TEXT, "project": "notes"}
            request = {"id": number, "method": "write_note", "arguments": arguments}
            sender.write(json.dumps(request).encode() + b"\n")
            await reader.readline()
        sender.close()

    await asyncio.gather(*map(ask, range(CALLERS)))


def request_seconds(folder: Path) -> float:
    """The processor time for which a bare server reads a request and answers it."""
    address = str(folder / "socket")
    mine, other_value = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(address, other_value))
    process.start()
    mine.recv()
    asyncio.run(ask_all(address))
    seconds: float = mine.recv()
    process.join()
    return seconds


@contextmanager
def bare_databases(folder: Path) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    """An empty ledger and an empty index, as they are but without their classes."""
    layout = Layout(folder / "bare")
    layout.private.mkdir(parents=True)
    LedgerDatabase(layout.ledger).close()
    index_database._make(layout.index).close()
    with (
        closing(sqlite3.connect(layout.ledger, isolation_level=None)) as ledger,
        closing(sqlite3.connect(layout.index, isolation_level=None)) as index,
    ):
        ledger.execute("pragma synchronous = full")
        for setting in index_database._SETTINGS:
            index.execute(f"pragma {setting}")
        index.execute("insert into project (name) values ('notes')")
        yield ledger, index


def measure(folder: Path, rounds: int, together: int) -> dict[str, list[list[float]]]:
    """Processor seconds of each part of a write: of those alone, and of those that share."""
    parts: dict[str, list[list[float]]] = {}

    def note(part: str, column: int, seconds: float) -> None:
        parts.setdefault(part, [[], []])[column].append(seconds)

    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text(CONFIGURATION)
    place = folder / "files"
    place.mkdir()
    place_fd = os.open(place, os.O_RDONLY)
    with open_session(home, watch=True) as memory, bare_databases(folder) as (ledger, index):
        alice = memory.as_caller("alice", "mcp", client="floor 1")
        number = 1
        for turn in range(rounds):
            note("a whole write of ours", 0, whole(memory, alice, turn))
            for column, size in enumerate((1, together)):
                for part, database, statements in (
                    ("ledger: rows, commit", ledger, ledger_statements(number, size)),
                    ("index: rows, commit", index, index_statements(number, size)),
                ):
                    seconds = seconds_of(lambda d=database, s=statements: execute(d, s))
                    note(part, column, seconds / size)
                seconds = seconds_of(lambda n=number: write_file(place_fd, n))
                note("file", column, seconds)
                number += size
            for part, seconds in text_parts(number):
                note(part, 0, seconds)
                note(part, 1, seconds)
    for _ in range(5):
        seconds = request_seconds(folder)
        note("request and reply", 0, seconds)
        note("request and reply", 1, seconds)
    os.close(place_fd)
    return parts


def text_parts(number: int) -> Iterator[tuple[str, float]]:
    """The processor time of each part of a write that looks at the text of the note."""
    text = note_text(number)
    path = f"Note {number}.md"
    rules = default_rules()
    notes: list[Note] = []

    def read() -> None:
        notes.append(parse_note(text, project="notes", path=path, changed=now()))

    yield "note read (ours)", seconds_of(read)
    (note,) = notes
    note.etag = sha256(text.encode())
    stamp_of_file = Stamp(len(text), number, number)
    yield "secrets (ours)", seconds_of(lambda: rules.find(text, SECRET))
    yield "orders (ours)", seconds_of(lambda: rules.suspicions(text))
    yield "rows computed (ours)", seconds_of(lambda: writer.prepare(note, stamp_of_file, 1))


def whole(memory: MemorySession, caller: MemorySession, number: int) -> float:
    """A write of ours, as a tool is called, without a server."""
    tools = faces.registry(["all"], memory.settings)
    arguments = {"title": f"Note {number}", "content": TEXT, "project": "notes", "directory": ""}
    return seconds_of(lambda: tools.call(caller, "write_note", arguments))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--together", type=int, default=32, help="writes that share a commit [32]")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="memoranda-floor-") as folder:
        parts = measure(Path(folder), options.rounds, options.together)
    print(f"{'processor time, ms':<26}{'alone':>10}{f'of {options.together}':>10}")
    sums = [0.0, 0.0]
    for part, columns in parts.items():
        shown_rows = []
        for column, values in enumerate(columns):
            value = median(values) if values else 0.0
            shown_rows.append(f"{1000 * value:>10.3f}" if values else f"{'':>10}")
            if not part.startswith("a whole"):
                sums[column] += value
        print(f"{part:<26}{''.join(shown_rows)}")
    print(f"{'all of these parts':<26}" + "".join(f"{1000 * total:>10.3f}" for total in sums))
    print(f"{'so at most, a second':<26}" + "".join(f"{1 / total:>10,.0f}" for total in sums))
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
