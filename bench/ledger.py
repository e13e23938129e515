"""What a long history costs: opening, writing, undo, log, restore, erase, backup.

    python bench/ledger.py [--changes 100000] [--notes 10000] [--folder FOLDER]

A home is made with notes whose older texts are all in the ledger, some of them large. As it is
here, that takes less than a minute; with --changes 1000000 --notes 100000 it takes some minutes, and
the ledger has more than 2 GB. Then each verb is measured in a separate process: median and largest
of the processor time, since others load a machine, and the memory the process took. The home is kept
in FOLDER, so that a second run only measures; remove the folder to make it again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median

HERE = Path(__file__).resolve().parent
if str(HERE.parent / "src") not in sys.path:
    sys.path.insert(0, str(HERE.parent / "src"))

from memoranda.clock import stamp  # noqa: E402
from memoranda.engine import MemorySession, open_session  # noqa: E402
from memoranda.engine.history.erase import Erasure  # noqa: E402
from memoranda.errors import NotFound  # noqa: E402
from memoranda.ledger.change import Change, Touched  # noqa: E402
from memoranda.ledger.database import LedgerDatabase  # noqa: E402
from memoranda.ledger.history import History  # noqa: E402
from memoranda.note import edit as edits  # noqa: E402
from memoranda.note.model import Draft  # noqa: E402
from memoranda.sources.base import sha256  # noqa: E402
from memoranda.sources.layout import Layout  # noqa: E402
from memoranda.transfer.whole_home import back_up  # noqa: E402

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PROJECT = "notes"
AGENTS = ("claude", "codex", "cursor", None)
AT_ONCE = 2_000
"""Changes recorded in one transaction."""
UNTOUCHED = 1_000
"""Notes that only one old change was about."""
RUN = 20
"""Changes of the run of a job that is taken back."""
LARGE = 50 << 20
"""Bytes of a large note."""
BODY = 1_400
"""Characters of any other note."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the home if it is not there, and measure it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=2, help="notes of 50 MB [2]")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "memoranda-ledger"
    )
    parser.add_argument("--measure", choices=sorted(MEASURED), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    home = options.folder / "home"
    if options.measure:
        print(json.dumps(measured(home, options.measure)))
        return 0
    make_home(home, options)
    size = sum(path.stat().st_size for path in (home / ".memoranda").glob("ledger.db*"))
    print(f"{options.changes:,} changes, {options.notes:,} notes, a ledger of {size / 1e9:.2f} GB")
    print(f"{'what':<24}{'median ms':>12}{'largest ms':>12}{'MB':>8}")
    for name in MEASURED:
        command = [sys.executable, __file__, "--folder", str(options.folder), "--measure", name]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            print(f"{name:<24}{'failed: ' + result.stderr.strip().splitlines()[-1]}")
            continue
        row = json.loads(result.stdout)
        print(f"{name:<24}{row['median']:>12.1f}{row['largest']:>12.1f}{row['memory']:>8.0f}")
    return 0


# --- making the home


@cache
def many_words() -> str:
    """A text from which notes have their words. Making each note word by word would take minutes."""
    chance = Random(1)
    return " ".join(f"w{chance.randrange(20_000)}" for _ in range(200_000))


def text_of(note: int, version: int) -> bytes:
    """A version of a note: about 1,500 bytes."""
    words = many_words()
    begin = (note * 7_919 + version * 104_729) % (len(words) - BODY)
    body = words[begin : begin + BODY]
    return f"# Note {note}\n\nVersion {version} of word{note}note.\n\n{body}\n".encode()


def path_of(note: int) -> str:
    """Where a note is: a thousand in a folder."""
    return f"part-{note // 1_000:03}/note {note}.md"


def make_home(home: Path, options: argparse.Namespace) -> None:
    """Write notes and ledger, and index the notes."""
    if (home / "made").exists():
        return
    shutil.rmtree(home, ignore_errors=True)
    layout = Layout(home)
    with open_session(home):
        pass
    with closing(LedgerDatabase(layout.ledger)) as database:
        history = History(layout, database)
        versions = record_all(history, options.changes, options.notes)
    for note, version in enumerate(versions):
        path = home / PROJECT / path_of(note)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text_of(note, version))
    with open_session(home) as memory:
        memory.sync()
        for number in range(options.large):
            path = home / PROJECT / f"large {number}.md"
            path.write_text("large " * (LARGE // 6))
        memory.sync()
    (home / "made").touch()


def record_all(history: History, changes: int, notes: int) -> list[int]:
    """Write the rows of the changes into the ledger. Returns the latest version of each note."""
    versions = [-1] * notes
    every_change = planned(changes, notes, versions)
    while batch := list(islice(every_change, AT_ONCE)):
        texts = []
        for change, text in batch:
            texts += [(step.old, text) for step in change.files if text]
        with history.database.transaction(durable=False) as connection:
            connection.executemany("insert or ignore into text (sha256, data) values (?, ?)", texts)
            history.record(connection, [change for change, _ in batch])
    return versions


def planned(changes: int, notes: int, versions: list[int]) -> Iterator[tuple[Change, bytes | None]]:
    """Each change with the text it replaced; `versions` is kept up to date."""
    chance = Random(1)
    for number in range(1, changes + 1):
        is_new = number <= notes
        if is_new:
            note = number - 1
        else:
            note = chance.randrange(min(UNTOUCHED, notes - 1), notes)
        old = None
        if not is_new:
            old = text_of(note, versions[note])
        versions[note] += 1
        new = text_of(note, versions[note])
        step = Touched(
            "put",
            PROJECT,
            path_of(note),
            old=sha256(old) if old is not None else None,
            new=sha256(new),
            mode=None if is_new else 0o600,
            size=len(new),
        )
        change = Change(
            number,
            stamp(BEGIN + timedelta(seconds=20 * number)),
            "write" if is_new else "edit",
            PROJECT,
            path_of(note),
            AGENTS[number % len(AGENTS)],
            "mcp",
            [step],
            # The first notes are of one run, which no later change was about
            run=1 if number <= RUN else None,
        )
        yield change, old


# --- measuring


def measured(home: Path, name: str) -> dict[str, float]:
    """Processor time in milliseconds and memory in MB of one thing, in this process."""
    prepare, rounds = MEASURED[name]
    times = []
    before = time.process_time()
    with open_session(home) as memory:
        opening = time.process_time() - before
        memory.log(limit=1)
        call = prepare(memory)
        for number in range(rounds):
            start = time.process_time()
            call(number)
            times.append(time.process_time() - start)
    if name == "open":
        times = [opening]
    return {
        "median": 1000 * median(times),
        "largest": 1000 * max(times),
        "memory": peak_memory(),
    }


def peak_memory() -> float:
    """The most memory this process had, in MB."""
    # What `getrusage` says begins with the memory of the process that started this one
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def existing(memory: MemorySession, number: int) -> str:
    """A note that was changed several times."""
    notes = len(os.listdir(memory.home / PROJECT)) * 1_000 - 3_000
    return f"notes/{path_of(UNTOUCHED + number % max(notes, 100))}"


Call = Callable[[int], object]


def nothing(memory: MemorySession) -> Call:
    """For the time of opening."""
    return lambda _: None


def log(memory: MemorySession) -> Call:
    """The latest 20 changes."""
    return lambda _: memory.log()


def log_of_note(memory: MemorySession) -> Call:
    """The changes of one note."""
    return lambda number: memory.log(existing(memory, 50 + number))


def log_of_agent(memory: MemorySession) -> Call:
    """The changes of one agent."""
    return lambda _: memory.log(agent="codex")


def log_of_nothing(memory: MemorySession) -> Call:
    """The history of a note that is gone, by the beginning of its id."""

    def call(number: int) -> None:
        with suppress(NotFound):
            memory.log(f"{number:08x}")

    return call


def write(memory: MemorySession) -> Call:
    """A new note."""
    run = f"{time.time_ns():x}"
    return lambda number: memory.write(
        Draft("a text", project=PROJECT, title=f"New {run} {number}")
    )


def edit(memory: MemorySession) -> Call:
    """One line more."""
    return lambda number: memory.edit(existing(memory, 200 + number), edits.Append("one more\n"))


def undo(memory: MemorySession) -> Call:
    """The latest change."""
    return lambda _: memory.undo()


def undo_old(memory: MemorySession) -> Call:
    """The oldest change of a note that nothing happened to since, and that undo undone."""

    def call(number: int) -> None:
        memory.undo(memory.undo(RUN + 10 + number).number)

    return call


def undo_run(memory: MemorySession) -> Call:
    """The first run, and that undone."""

    def call(_: int) -> None:
        memory.undo(memory.undo_run(1)[0].number)

    return call


def restore(memory: MemorySession) -> Call:
    """The text of a note before its latest change, under another name."""
    run = f"{time.time_ns():x}"
    return lambda number: memory.restore(
        existing(memory, 300 + number), to=f"notes/restored {run} {number}.md"
    )


def erase(memory: MemorySession) -> Call:
    """One note with all its versions, and the proof."""

    def call(number: int) -> None:
        with open(memory.engine.layout.private / "bench-erased", "a+") as log_file:
            log_file.write("x")
            at = log_file.tell()
        erased = Erasure(memory).erase(
            [existing(memory, 500 + at)],
            agent=None,
            project=None,
            source=None,
            observation=None,
            dry_run=False,
        )
        assert not erased.remains, erased.remains

    return call


def backup(memory: MemorySession) -> Call:
    """A copy of the home in use."""

    def call(_: int) -> None:
        place = memory.engine.layout.root.parent / f"backup-{os.getpid()}"
        try:
            back_up(memory, place)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    return call


MEASURED: dict[str, tuple[Callable[[MemorySession], Call], int]] = {
    "open": (nothing, 1),
    "log": (log, 20),
    "log of a note": (log_of_note, 20),
    "log of an agent": (log_of_agent, 20),
    "log of an unknown id": (log_of_nothing, 5),
    "write": (write, 50),
    "edit": (edit, 50),
    "undo": (undo, 20),
    "undo of an old change": (undo_old, 20),
    "undo of an old run": (undo_run, 3),
    "restore": (restore, 10),
    "backup": (backup, 1),
    "erase with its proof": (erase, 1),
}

if __name__ == "__main__":
    sys.exit(main())
