"""Notes in PostgreSQL beside notes in a folder, in one run: what a call takes, and what replicas
and spaces cost.

    python bench/teams.py [--notes 10000] [--parts calls,writers,clients,lag,spaces,move,cold]
    [--spaces 1,10,100]

`calls`: write, read, search and list on both, by turns, in processor time of this process (the
server's is not in it)
and by the clock. `writers`: callers of the sockets of one server and of `--replicas`, who only
write, on a folder and
in PostgreSQL; `--beside SRC` measures another version's `src` by turns. `clients`: `--replicas`
processes with
`--clients` threads together, one call of five a new note; then every acknowledged note is looked
for. `lag`: from the
acknowledgement on one replica to the end of a read that shows it on another, the read begun at
once. `spaces`: `--spaces`
spaces of `--each` notes; calls on one of them beside one alone on its server, and what each costs
on disk. `move`: a
folder of `--cold` notes into the database. `cold`: a new replica of as many until its first search.
A
server is started for this (or MEMORY_TEST_PG_URL is used), with its syncs on. All in temporary
folders.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from uuid import uuid4

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "src", HERE.parent / "tests"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import callers  # noqa: E402
from memoranda import Draft  # noqa: E402
from memoranda.engine import MemorySession, open_session  # noqa: E402
from memoranda.errors import MemorandaError  # noqa: E402
from memoranda.ledger.postgres.space_database import SpaceDatabase  # noqa: E402
from memoranda.sources.base import sha256  # noqa: E402
from memoranda.transfer.whole_home import move  # noqa: E402
from postgres.server import served  # noqa: E402
from vault import rare_word  # noqa: E402

BATCH = 500
WORDS = "the team met and wrote down what it decided about the plan for the next weeks and who does what"


def draft(at: int) -> Draft:
    return Draft(
        f"{WORDS}. {rare_word(at)} {WORDS}",
        project="notes",
        folder=f"f{at % 50}",
        title=f"Note {at}",
    )


def _place(at: int) -> str:
    return f"notes/f{at % 50}/Note {at}.md"


def filled(memory: MemorySession, count: int) -> MemorySession:
    for first in range(0, count, BATCH):
        memory.write_many([draft(at) for at in range(first, min(first + BATCH, count))])
    memory.search("begin")
    return memory


def _address(url: str, space: str) -> str:
    if "?" in url:
        return f"{url}&space={space}"
    return f"{url}?space={space}"


def opened(url: str, space: str, cache: Path) -> MemorySession:
    os.environ["XDG_CACHE_HOME"] = str(cache)
    return open_session(_address(url, space))


def measured(run: Callable[[int], object], times: int) -> tuple[float, float, float]:
    """Median and 95th percentile by the clock, and processor time, each in ms a call."""
    took = []
    begun = time.process_time()
    for at in range(times):
        start = time.perf_counter()
        run(at)
        took.append(time.perf_counter() - start)
    used = (time.process_time() - begun) / times
    return median(took) * 1000, sorted(took)[int(times * 0.95)] * 1000, used * 1000


def medians(measurements: Sequence[tuple[float, float, float]]) -> list[float]:
    """The median of each figure over several results of `measured`."""
    return [median(values) for values in zip(*measurements, strict=True)]


def numbered_call(
    call: Callable[[MemorySession, int], object], memory: MemorySession, first: int, at: int
) -> object:
    """Make call number `first + at` of a kind of call."""
    return call(memory, first + at)


def calls(url: str, folder: Path, options: argparse.Namespace) -> None:
    figures = "median    p95    cpu"
    print(f"\n{options.notes:,} notes            folder: {figures}   PostgreSQL: {figures} ms")
    with open_session(folder / "home") as near, opened(url, "calls", folder / "a") as far:
        for memory in (near, far):
            filled(memory, options.notes)
        turns: list[tuple[str, int, Callable[[MemorySession, int], object]]] = [
            ("write", 200, lambda memory, at: memory.write(draft(1_000_000 + at))),
            ("read", 500, lambda memory, at: memory.read(_place(at * 7 % options.notes))),
            (
                "search, a rare word",
                500,
                lambda memory, at: memory.search(rare_word(at * 11 % options.notes)),
            ),
            ("search, two words", 200, lambda memory, at: memory.search(f"plan {rare_word(at)}")),
            ("list", 200, lambda memory, at: memory.list(limit=20)),
        ]
        for name, times, call in turns:
            measured_times: dict[str, list[tuple[float, float, float]]] = {"near": [], "far": []}
            # By turns, so that what else the machine does falls on both
            for turn in range(4):
                for store, memory in (("near", near), ("far", far)):
                    part = times // 4
                    run = partial(numbered_call, call, memory, turn * part)
                    measured_times[store].append(measured(run, part))
            near_row = medians(measured_times["near"])
            far_row = medians(measured_times["far"])
            cells = [
                f"{near_row[0]:>16.2f}{near_row[1]:>7.2f}{near_row[2]:>7.2f}",
                f"{far_row[0]:>20.2f}{far_row[1]:>7.2f}{far_row[2]:>7.2f}",
            ]
            print(f"{name:<24}{''.join(cells)}", flush=True)


def _client(
    memory: MemorySession,
    who: str,
    seconds: float,
    count: int,
    written: list[str],
    took: list[float],
    refused: list[str],
) -> None:
    random = Random(who)
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        start = time.perf_counter()
        try:
            _call(memory, random, f"Client {who} {number}", number, count, written)
            took.append(time.perf_counter() - start)
        except MemorandaError as error:
            refused.append(str(error))
        number += 1
        time.sleep(random.random())


def _call(
    memory: MemorySession, random: Random, title: str, number: int, count: int, written: list[str]
) -> None:
    if number % 5 == 0:
        note = Draft(f"{WORDS} {title}", project="notes", folder="clients", title=title)
        # As a server calls a tool that writes
        memory.in_turn(lambda: memory.write(note))
        written.append(title)
    elif number % 5 in (1, 2):
        memory.search(rare_word(random.randrange(count)))
    elif number % 5 == 3:
        memory.read(_place(random.randrange(count)))
    else:
        memory.list(limit=20)


@contextmanager
def _daemon(home: str, source: Path, cache: Path) -> Iterator[Path]:
    """A `memory serve` of this version of the source. Yields its home, where its socket is."""
    environment = os.environ | {"PYTHONPATH": str(source), "XDG_CACHE_HOME": str(cache)}
    command = [
        sys.executable,
        "-m",
        "memoranda",
        "serve",
        "--home",
        home,
        "--interval",
        "1h",
        "--http",
        "127.0.0.1:0",
    ]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        (socket,) = [Path(home).joinpath("memory.sock"), *cache.rglob("memory.sock")][-1:]
        yield socket.parent
    finally:
        process.terminate()
        process.wait(60)


def writers(url: str, folder: Path, options: argparse.Namespace) -> None:
    title = f"writers for {options.burst} s"
    print(
        f"\n{title:<24}{'':<12}{'a second':>10}{'median ms':>10}{'p95':>8}"
        f"{'written':>9}{'lost':>6}{'refused':>8}"
    )
    versions = {"now": HERE.parent / "src"} | ({"before": options.beside} if options.beside else {})
    for replicas, many in ((1, 1), (1, 20), (1, 100), (options.replicas, options.clients)):
        for version, source in versions.items():
            for kind in ("folder", "PostgreSQL"):
                name = f"{kind[0]}{replicas}x{many}-{version}".lower()
                if kind == "folder":
                    homes = [str(folder / name)]
                else:
                    homes = [_address(url, name)] * replicas
                if len(homes) == replicas:
                    _write_all(
                        f"{replicas} x {many} {kind}",
                        version,
                        homes,
                        source,
                        folder / f"c-{name}",
                        argparse.Namespace(every=1, pause=0, seconds=options.burst, callers=many),
                    )


def _write_all(
    title: str,
    version: str,
    homes: Sequence[str],
    source: Path,
    cache: Path,
    options: argparse.Namespace,
) -> None:
    with ExitStack() as stack:
        served = [
            stack.enter_context(_daemon(home, source, cache / str(at)))
            for at, home in enumerate(homes)
        ]
        connects = []
        for home in served:
            connects += [callers.connect_socket(home) for _ in range(options.callers)]
        times, acknowledged, refused = asyncio.run(callers.crowd(connects, options))
    os.environ["XDG_CACHE_HOME"] = str(cache / "after")
    with open_session(homes[0]) as memory:
        titles = [note.title for note in memory.list(limit=0)[0]]
    times.sort()
    lost = (
        len({f"New {title_written}" for title_written in acknowledged} - {*titles})
        + len(titles)
        - len({*titles})
    )
    print(
        f"{title:<24}{version:<12}{len(acknowledged) / options.seconds:>10.0f}{median(times):>10.1f}"
        f"{times[int(len(times) * 0.95)]:>8.0f}{len(acknowledged):>9,}{lost:>6}{refused:>8}",
        flush=True,
    )


def _replica(
    url: str, cache: Path, name: str, clients: int, seconds: float, count: int, answer
) -> None:
    written: list[str] = []
    took: list[float] = []
    refused: list[str] = []

    with opened(url, "calls", cache) as memory:
        rest = (seconds, count, written, took, refused)
        threads = [
            threading.Thread(target=_client, args=(memory, f"{name}{at}", *rest))
            for at in range(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    answer.put((written, took, refused))


def clients(url: str, folder: Path, options: argparse.Namespace) -> None:
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    share = options.clients // options.replicas
    # The copies are there already, as on servers that run
    for at in range(options.replicas):
        with opened(url, "calls", folder / f"r{at}") as memory:
            while memory.lag():
                time.sleep(0.05)
            memory.search("begin")
    rest = (share, options.seconds, options.notes, answer)
    processes = [
        context.Process(target=_replica, args=(url, folder / f"r{at}", f"r{at}-", *rest))
        for at in range(options.replicas)
    ]
    for process in processes:
        process.start()
    written: list[str] = []
    took: list[float] = []
    refused: list[str] = []
    for _ in processes:
        titles_written, seconds, reasons = answer.get()
        written += titles_written
        took += seconds
        refused += reasons
    for process in processes:
        process.join()
    took.sort()
    with opened(url, "calls", folder / "after") as memory:
        while memory.lag():
            time.sleep(0.05)
        titles = [note.title for note in memory.list(limit=0)[0]]
    lost = len({*written} - {*titles})
    twice = sum(titles.count(title) > 1 for title in written[:2000])
    tail = [took[int(len(took) * part)] * 1000 for part in (0.5, 0.95, 0.99)]
    print(
        f"\n{options.replicas} replicas, {share * options.replicas} clients, "
        f"{options.seconds:.0f} s: {len(took):,} calls, "
        f"{len(took) / options.seconds:.0f} a second; "
        f"median {tail[0]:.0f} ms, p95 {tail[1]:.0f}, p99 {tail[2]:.0f}; "
        f"{len(written):,} notes written, {lost} lost, {twice} twice, {len(refused)} refused",
        *refused[:1],
        flush=True,
    )


def lag(url: str, folder: Path, options: argparse.Namespace) -> None:
    took = []
    question_seconds = []
    with opened(url, "calls", folder / "a") as writer, opened(url, "calls", folder / "b") as two:
        # A new copy is filled in the background
        while two.lag():
            time.sleep(0.05)
        two.search("begin")
        for at in range(300):
            title = f"Lag {at}"
            writer.write(Draft(WORDS, project="notes", folder="lag", title=title))
            start = time.perf_counter()
            assert two.read(f"notes/lag/{title}.md").title == title
            took.append(time.perf_counter() - start)
            start = time.perf_counter()
            two.engine.ledger.lag()
            question_seconds.append(time.perf_counter() - start)
    took.sort()
    question_seconds.sort()
    print(f"\nload {os.getloadavg()[0]:.0f}: milliseconds{'median':>12}{'p95':>8}{'p99':>8}")
    for name, times in (
        ("acknowledged here, read there", took),
        ("one question to the database", question_seconds),
    ):
        row = [times[int(len(times) * part)] * 1000 for part in (0.5, 0.95, 0.99)]
        print(f"{name:<31}{row[0]:>8.1f}{row[1]:>8.1f}{row[2]:>8.1f}", flush=True)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _rows(count: int, space: Path) -> tuple[str, str]:
    """What `count` notes written one by one are in the tables, as COPY takes it: notes and journal.
    They are made from two that are really written."""
    with open_session(space) as memory:
        # Makes the folder
        memory.write(draft(51))
        memory.write(draft(1))
        change = next(memory.engine.ledger.history.changes())
    text = (space / _place(1)).read_text()
    (touched,) = (file for file in change.files if file.do == "put")
    notes = []
    journal = []
    for number in range(1, count + 1):
        body = text.replace(rare_word(1), rare_word(number))
        body = body.replace("f1/note-1", f"f{number % 50}/note-{number}")
        data = body.replace("Note 1", f"Note {number}").encode()
        digest = sha256(data)
        path = _place(number).removeprefix("notes/")
        files = [replace(touched, path=path, new=digest, size=len(data))]
        line = replace(change, number=number, path=path, files=files).dump()
        now = time.time_ns()
        content = f"\\\\x{data.hex()}\t{digest}"
        notes.append(f"@\tnotes\t{path}\tfile\t{content}\t384\t{now}\t{number}\n")
        journal.append(f"@\t{number}\t{uuid4()}\t{change.time}\t\\\\x{line.hex()}\n")
    return "".join(notes), "".join(journal)


def _fill_space(url: str, name: str, notes: str, journal: str) -> None:
    """The rows into the partitions of a new space, past the lock and the index, which have no part
    in it.
    """
    database = SpaceDatabase(url, name)
    suffix = sha256(name.encode())[:12]
    database.prepare()
    db = database._db
    with db.transaction(), db.cursor() as cursor:
        for table, columns, rows in (
            ("note", "space, project, path, kind, body, sha256, mode, changed_ns, number", notes),
            ("journal", "space, number, id, at, line", journal),
        ):
            with cursor.copy(f"copy memoranda.{table}_{suffix} ({columns}) from stdin") as copy:
                copy.write(rows.replace("@\t", f"{name}\t"))
        db.execute(
            "update memoranda.space set last = %s where name = %s", [journal.count("\n"), name]
        )
    names = ("note", "change", "step")
    tables = ", ".join(f"memoranda.{name}_{suffix}" for name in names)
    db.execute(f"vacuum analyze {tables}")
    database.close()


def spaces(url: str, folder: Path, options: argparse.Namespace) -> None:
    """Measure one space among many and one alone on its server, by turns."""
    notes, journal = _rows(options.each, folder / "rows")
    spaces_made = 0
    SpaceDatabase(url, "first").prepare()
    with served(durable=True) as alone:
        _fill_space(alone, "alone", notes, journal)
        base = _database_size(url)
        with opened(alone, "alone", folder / "alone") as single:
            for many in map(int, options.spaces.split(",")):
                for at in range(spaces_made, many):
                    _fill_space(url, f"many-{at}", notes, journal)
                spaces_made = many
                grown = _database_size(url) - base
                bytes_of_space = grown / many
                bytes_of_note = bytes_of_space / options.each
                print(
                    f"\n{many} spaces of {options.each:,} notes: {grown / 1e6:,.0f} MB, "
                    f"{bytes_of_space / 1e3:,.0f} KB a space, {bytes_of_note:,.0f} bytes a note",
                    flush=True,
                )
                start = time.perf_counter()
                with opened(url, f"many-{many // 2}", folder / f"of-{many}") as memory_of_space:
                    memory_of_space.search("begin")
                    seconds = time.perf_counter() - start
                    print(
                        f"{'':<24}alone: median    cpu   one of {many:>3}: median    cpu ms   "
                        f"(first search after {seconds:.1f} s)"
                    )
                    _by_turns(single, memory_of_space, options.each)
    with opened(url, "empty", folder / "a"):
        pass
    before = _database_size(url)
    for at in range(20):
        opened(url, f"empty-{at}", folder / "a").close()
    grown = _database_size(url) - before
    kilobytes = grown / 20 / 1e3
    print(f"an empty space: {kilobytes:.0f} KB")


def _by_turns(single: MemorySession, among_many: MemorySession, count: int) -> None:
    single.search("begin")
    turns: list[tuple[str, int, Callable[[MemorySession, int], object]]] = [
        ("search", 200, lambda memory, at: memory.search(rare_word(at * 11 % count))),
        ("read", 200, lambda memory, at: memory.read(_place(1 + at * 7 % count))),
        (
            "write",
            100,
            lambda memory, at: memory.write(Draft(f"{WORDS} {uuid4()}", title=str(uuid4()))),
        ),
    ]
    for name, times, call in turns:
        times_alone = []
        times_among_many = []
        for _ in range(5):
            times_alone.append(measured(partial(call, single), times // 5))
            times_among_many.append(measured(partial(call, among_many), times // 5))
        wall, _, cpu = medians(times_alone)
        wall_among_many, _, cpu_among_many = medians(times_among_many)
        print(
            f"{name:<24}{wall:>13.2f}{cpu:>7.2f}{wall_among_many:>20.2f}{cpu_among_many:>7.2f}"
            f"{wall_among_many / wall:>10.2f} times, {cpu_among_many / cpu:.2f} of cpu",
            flush=True,
        )


def _database_size(url: str) -> int:
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        return int(db.execute("select pg_database_size(current_database())").fetchall()[0][0])


def moving(url: str, folder: Path, options: argparse.Namespace) -> None:
    with open_session(folder / "large") as memory:
        memory.write(draft(0))
    # By hand: what is measured comes after
    for at in range(1, options.cold):
        place = folder / "large" / _place(at)
        place.parent.mkdir(exist_ok=True, parents=True)
        place.write_text(f"---\ntitle: Note {at}\n---\n{draft(at).text}\n")
    start = time.perf_counter()
    moved = move(str(folder / "large"), _address(url, "moved"))
    took = time.perf_counter() - start
    print(
        f"\nmoved {moved.files:,} files and {moved.changes:,} changes into the database: {took:.1f} s",
        flush=True,
    )


def cold(url: str, folder: Path, options: argparse.Namespace) -> None:
    _fill_space(url, "cold", *_rows(options.cold, folder / "cold-rows"))
    os.environ["XDG_CACHE_HOME"] = str(folder / "new")
    start = time.perf_counter()
    used = time.process_time()
    with open_session(_address(url, "cold"), serving=True) as memory:
        memory.search(rare_word(7))
        first = time.perf_counter() - start
        warnings = memory.warnings
        while memory.lag():
            time.sleep(0.05)
            if time.perf_counter() - start > 10 * first + 5 and len(warnings) < 2:
                memory.search(rare_word(7))
                warnings += memory.warnings
        filled_after = time.perf_counter() - start
        assert memory.search(rare_word(7)).total
        ready = time.perf_counter() - start
    used = time.process_time() - used
    size = _size(folder / "new") / 1e6
    print(
        f"\na new replica of {options.cold:,} notes: answers after {first:.1f} s, "
        f"all notes after {filled_after:.1f}, found after {ready:.1f} s "
        f"({used:.1f} s of processor); {size:.0f} MB on its disk; meanwhile it says:",
        *warnings,
        sep="\n  ",
    )
    start = time.perf_counter()
    with opened(url, "cold", folder / "new") as memory:
        memory.search(rare_word(7))
    seconds = time.perf_counter() - start
    print(f"the same replica opened again and searched: {seconds:.2f} s", flush=True)


PARTS = {
    "calls": calls,
    "writers": writers,
    "clients": clients,
    "lag": lag,
    "spaces": spaces,
    "move": moving,
    "cold": cold,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the parts wanted and print them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--notes", type=int, default=10_000, help="notes of calls and clients [10000]"
    )
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)} [all]")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="for how long clients call [60]"
    )
    parser.add_argument("--clients", type=int, default=100, help="clients together [100]")
    parser.add_argument("--replicas", type=int, default=3, help="replicas at once [3]")
    parser.add_argument("--burst", type=float, default=8.0, help="seconds writers write [8]")
    parser.add_argument(
        "--beside", type=Path, help="the src folder of another version, for writers"
    )
    parser.add_argument(
        "--spaces", default="1,10,100", help="how many spaces, one after another [1,10,100]"
    )
    parser.add_argument("--each", type=int, default=10_000, help="notes in each of them [10000]")
    parser.add_argument("--cold", type=int, default=100_000, help="notes of a cold start [100000]")
    options = parser.parse_args(arguments)
    with (
        served(durable=True) as url,
        tempfile.TemporaryDirectory(prefix="memoranda-bench-") as folder,
    ):
        for name in options.parts.split(","):
            if name in ("clients", "lag") and "calls" not in options.parts:
                with opened(url, "calls", Path(folder) / "a") as memory:
                    if not memory.list(limit=1)[1]:
                        filled(memory, options.notes)
            PARTS[name](url, Path(folder), options)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
