"""How the figures grow with the notes, from 1,000 to 1,000,000: the same home, made larger step by
step.

    python bench/growth.py [--to 1000000] [--folder FOLDER] [--svg FILE]

Every figure is the median, mean and p99 of processor time, since others load a machine. Beside them
is the raw limit, measured in the same run. Each step is a separate process. The figures are kept in
FOLDER (12 GB at a million), so that an interrupted run continues; remove the folder to start again.
About twenty minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "src"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import sqlite3  # noqa: E402

import plain  # noqa: E402
import vault  # noqa: E402
from ground import PROJECT, size  # noqa: E402
from memoranda.engine import MemorySession, open_session  # noqa: E402
from memoranda.note.model import Draft  # noqa: E402
from memoranda.query import Query  # noqa: E402
from memoranda.serve.call_queue import collect_garbage  # noqa: E402
from memoranda.text.tokens import fts_text  # noqa: E402
from table import aligned, p99  # noqa: E402

SIZES = (1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
KINDS = ("rare", "common", "both", "phrase", "prefix", "chinese")
WRITES = 200
Figures = dict[str, list[float]]
"""By what was measured: median, mean and p99, or one number."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sizes that are not known yet, and print all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--to", type=int, default=SIZES[-1], help="notes at most [1000000]")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "memoranda-growth"
    )
    parser.add_argument("--svg", type=Path, help="draw the growth into this file")
    parser.add_argument("--step", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    figures_file = options.folder / "figures.json"
    figures_by_size: dict[str, Figures] = (
        json.loads(figures_file.read_text()) if figures_file.exists() else {}
    )
    if options.step:
        figures_by_size[str(options.step)] = _step(
            options.folder, max(map(int, figures_by_size), default=0), options.step
        )
        figures_file.write_text(json.dumps(figures_by_size))
        return 0
    for notes in (
        number for number in SIZES if number <= options.to and str(number) not in figures_by_size
    ):
        command = [sys.executable, __file__, "--folder", str(options.folder), "--step", str(notes)]
        subprocess.run(command, check=True)
        figures_by_size = json.loads(figures_file.read_text())
        print(f"{notes:,} notes: done", file=sys.stderr)
    print(_table(figures_by_size))
    if options.svg:
        options.svg.write_text(_svg(figures_by_size))
    return 0


def _step(folder: Path, before: int, notes: int) -> Figures:
    """Make the vault larger and measure it."""
    notes_folder = folder / "vault"
    home = folder / "home"
    # Garbage is collected as the servers do it, which are the programs that answer in a large home.
    collect_garbage()
    _grow(notes_folder, before, notes)
    figures: Figures = {}
    raw = _grow_plain(folder / "plain.db", before, notes, figures)
    with open_session(home, watch=False) as memory:
        if PROJECT not in [project.name for project in memory.projects]:
            memory.add_project(PROJECT, str(notes_folder))
        begin = sum(os.times()[:4])
        wall = time.perf_counter()
        added = memory.sync().added
        if added:
            # With processes that read
            figures["index, a note, us"] = [(sum(os.times()[:4]) - begin) / added * 1e6]
            figures["index, a note, wall us"] = [(time.perf_counter() - wall) / added * 1e6]
    figures["index, peak MB"] = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
    notes_bytes = size(notes_folder)
    figures["index size, times the notes"] = [
        sum(path.stat().st_size for path in (home / ".memoranda").glob("index.db*")) / notes_bytes
    ]
    figures["index size, plain FTS5"] = [size(folder / "plain.db") / notes_bytes]
    with open_session(home, serving=True) as memory:
        begin = time.process_time()
        memory.search(vault.rare_word(1))
        figures["first look with a watch, ms"] = [(time.process_time() - begin) * 1e3]
        _catch_up(memory, notes, figures)
        _look(memory, raw, notes, figures)
        _write(memory, folder, figures)
    raw.close()
    return figures


def _grow(folder: Path, before: int, notes: int) -> None:
    """Write the notes from number `before` on; their links lead anywhere among `notes`."""
    made_folders = set()
    for number in range(before, notes):
        place = folder / vault.path_of(number)
        stamp = vault.time_of(number)
        if place.parent not in made_folders:
            place.parent.mkdir(parents=True, exist_ok=True)
            made_folders.add(place.parent)
        place.write_bytes(vault.note_text(number, notes).encode())
        os.utime(place, (stamp, stamp))


def _grow_plain(file: Path, before: int, notes: int, figures: Figures) -> sqlite3.Connection:
    """The same texts in one plain FTS5 table, which grows too."""
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    table = "create virtual table if not exists words using fts5(body, tokenize = 'unicode61 remove_diacritics 2')"
    db.execute(table)
    folder = file.parent / "vault"
    begin = time.process_time()
    db.execute("begin")
    for number in range(before, notes):
        text = (folder / vault.path_of(number)).read_text(encoding="utf-8")
        db.execute(
            "insert or replace into words (rowid, body) values (?, ?)", (number + 1, fts_text(text))
        )
    db.execute("commit")
    figures["index, a note, us, plain FTS5"] = [
        (time.process_time() - begin) / (notes - before) * 1e6
    ]
    return db


def _catch_up(memory: MemorySession, notes: int, figures: Figures) -> None:
    """How long calls wait while all files are compared with the index behind them, and what that
    takes.
    """
    waits = [0.0]
    begin = time.process_time()
    number = 0
    while memory.warnings:
        number += 1
        word = vault.rare_word(number % notes)
        called = time.perf_counter()
        memory.search(word)
        wait = time.perf_counter() - called
        waits.append(wait * 1e3)
        time.sleep(0.005)
    computing = time.process_time() - begin
    figures["caught up behind the calls, ms"] = [computing * 1e3]
    figures["calls meanwhile, wall ms"] = [median(waits), mean(waits), p99(waits)]


def _look(memory: MemorySession, raw: sqlite3.Connection, notes: int, figures: Figures) -> None:
    texts_of_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for question in vault.questions(notes, per_kind=30):
        if question.kind in KINDS:
            texts_of_kind[question.kind].append(question.text)
    for kind, texts in texts_of_kind.items():
        words = [plain.expression(text, kind) for text in texts]
        figures[f"search: {kind}, ms"] = _times_of(memory.search, texts)
        figures[f"search: {kind}, ms, plain FTS5"] = _times_of(partial(plain.search, raw), words)

    inside = Query(projects=(PROJECT,))
    queries = [inside.replace(text=text) for text in texts_of_kind["rare"]]
    figures["search: rare in the project, ms"] = _times_of(memory.search, queries)

    titles = [vault.title_of(number) for number in range(5, 300, 10)]
    asking = [f"What do we know about the {title.lower()}?" for title in titles]
    figures["search: question, ms"] = _times_of(memory.search, asking)

    paths = [(PROJECT, vault.path_of(number)) for number in range(0, notes, notes // 30)]
    figures["read, ms"] = _times_of(memory.read, paths)

    since = memory.clock() - timedelta(days=100_000)
    verbs: dict[str, Callable[[], object]] = {
        "stats": memory.stats,
        "list of the root": lambda: memory.directory(PROJECT),
        "list": memory.list,
        "list of the project": lambda: memory.list(inside),
        "recent": lambda: memory.list(inside.replace(after=since)),
        "context at a hub": lambda: memory.context((PROJECT, vault.path_of(3))),
    }
    for name, verb in verbs.items():
        figures[f"{name}, ms"] = _times([verb] * 10)


def _write(memory: MemorySession, folder: Path, figures: Figures) -> None:
    texts = [vault.note_text(number, 1000, 7).partition("\n---\n")[2] for number in range(WRITES)]
    target = folder / "plain-files"
    target.mkdir(exist_ok=True)
    name = f"{time.time_ns()}"
    drafts = [
        Draft(text, project=PROJECT, title=f"Thought {name} {at}", folder="journal/bench")
        for at, text in enumerate(texts)
    ]
    figures["write, ms"] = _times_of(memory.write, drafts)

    more = iter(drafts)
    rare_words = [vault.rare_word(number) for number in range(30)]
    searches = [partial(memory.search, word) for word in rare_words]
    figures["search: rare, after a write, ms"] = _times(
        searches, lambda: memory.store(next(more), overwrite=True)
    )

    plain_writes = []
    for at, text in enumerate(texts):
        plain_writes.append(partial(plain.write, target, f"{name}-{at}.md", text.encode()))
    figures["write, ms, file + fsyncs"] = _times(plain_writes)


def _times(
    calls: Sequence[Callable[[], object]], before: Callable[[], object] = lambda: None
) -> list[float]:
    """Median, mean and p99 of the processor time of the calls but the first, in milliseconds;
    `before` each, which does not count."""
    times = []
    for call in calls:
        before()
        begin = time.process_time()
        call()
        times.append((time.process_time() - begin) * 1e3)
    counted_times = times[1:]
    return [median(counted_times), mean(counted_times), p99(counted_times)]


def _times_of(verb: Callable[[Any], object], arguments: Sequence[Any]) -> list[float]:
    """The times of a verb that is called with each of the arguments."""
    return _times([partial(verb, argument) for argument in arguments])


def _number(value: float) -> str:
    """A figure with as many decimals as its size needs."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:,.1f}"
    return f"{value:,.2f}"


def _table(figures_by_size: dict[str, Figures]) -> str:
    """A line for each figure, a column for each size: median / mean / p99."""
    sizes = sorted(figures_by_size, key=int)
    names: dict[str, None] = {}
    for notes in sizes:
        names |= dict.fromkeys(figures_by_size[notes])
    rows = [["processor time: median / mean / p99", *(f"{int(notes):,}" for notes in sizes)]]
    for name in names:
        row = [name]
        for notes in sizes:
            values = figures_by_size[notes].get(name, ())
            row.append(" / ".join(map(_number, values)))
        rows.append(row)
    return "\n".join(aligned(rows))


def _svg(figures_by_size: dict[str, Figures]) -> str:
    """The medians of some figures against the number of notes, both on logarithmic scales."""
    from math import log10

    wide = 640
    high = 400
    margin = 60
    low = 40
    sizes = sorted(map(int, figures_by_size))
    largest = figures_by_size[str(sizes[-1])]
    lines = [
        name
        for name in largest
        if len(largest[name]) > 1 and "plain" not in name and "file" not in name
    ]
    first = log10(sizes[0])
    last = max(log10(sizes[-1]), log10(sizes[0]) + 1)

    def at(notes: int, value: float) -> str:
        x = margin + (log10(notes) - first) / (last - first) * (wide - margin - 190)
        y = high - low - (log10(max(value, 0.1)) + 1) / 4 * (high - 2 * low)
        return f"{x:.0f},{y:.0f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" '
        f'font-size="11"><rect width="{wide}" height="{high}" fill="white"/>'
    ]
    for power in range(-1, 4):
        y = at(sizes[0], 10.0**power).split(",")[1]
        parts.append(
            f'<path d="M{margin},{y}H{wide - 190}" stroke="#ddd"/><text x="8" y="{y}">{10.0**power:g} ms</text>'
        )
    for notes in sizes:
        x = at(notes, 1).split(",")[0]
        parts.append(f'<text x="{x}" y="{high - 12}" text-anchor="middle">{notes:,}</text>')
    for number, name in enumerate(lines):
        colour = f"hsl({number * 360 // len(lines)},70%,40%)"
        points = [
            at(notes, figures_by_size[str(notes)][name][0])
            for notes in sizes
            if name in figures_by_size[str(notes)]
        ]
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
        label = name.removesuffix(", ms")
        parts.append(
            f'<text x="{wide - 180}" y="{40 + 16 * number}" fill="{colour}">{label}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    sys.exit(main())
