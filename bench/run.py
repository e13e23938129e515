"""Figures beside budgets and raw baselines, all from one run. Nothing here fails: a figure over
budget says `over`.

    python bench/run.py [--notes 10000] [--large] [--only NAME,NAME]

Everything happens in a temporary folder (TMPDIR chooses the disk; on a RAM disk syncing costs
nothing) that is removed at the end. About two minutes on two quiet cores; `--large` adds 100,000
notes and six minutes.
"""

from __future__ import annotations

import argparse
import compileall
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "src"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import inside  # noqa: E402
import outside  # noqa: E402
import toolsets  # noqa: E402
import views  # noqa: E402
from ground import Ground  # noqa: E402
from table import Row, block, table  # noqa: E402

FIGURES: dict[str, Callable[[Ground], list[Row]]] = {
    "index": inside.index,
    "size": inside.index_size,
    "parse": inside.parse,
    "sweep": inside.sweep,
    "search": inside.search,
    "memory": outside.resident,
    "mcp": outside.start,
    "daemon": outside.daemon,
    "tools": outside.tools,
    "cli": outside.command_line,
    "graph": toolsets.graph,
    "recall": toolsets.recall,
    "lists": views.lists,
    "page": views.page,
    "http": views.http_answers,
    "write": inside.write,
    "calls": inside.calls,
}
"""What can be measured, in the order in which it is: what changes the vault comes last."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for and print it."""
    options = _arguments(arguments)
    names = options.only or list(FIGURES)
    compileall.compile_dir(HERE.parent / "src", quiet=1)
    rows: list[Row] = []
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="memoranda-bench-") as folder:
        ground = Ground(Path(folder), options.notes, large=options.large)
        sync = outside.disk_sync_ms(Path(folder))
        for name in (figure for figure in FIGURES if figure in names):
            begin = time.perf_counter()
            rows += FIGURES[name](ground)
            print(f"{name}: measured in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    over = sum(row.verdict == "over" for row in rows)
    print(table(rows))
    print(f"\n{len(rows)} figures, {over} over budget.")
    busiest = max(load, os.getloadavg()[0])
    if busiest > _cores() + 0.5:
        print(
            f"Other programs were at work too (load {busiest:.1f}, {_cores()} cores): look at the ratios."
        )
    print(f"\nMedians. {_machine(sync)}\n")
    print(block(rows))
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--notes", type=_notes, default=10_000, help="notes in the vault [10000]")
    parser.add_argument("--large", action="store_true", help="also with 100,000 notes")
    parser.add_argument("--only", type=_names, metavar="NAME,NAME", help=f"of {', '.join(FIGURES)}")
    return parser.parse_args(arguments)


def _notes(text: str) -> int:
    if not text.isdecimal() or not 20 <= int(text) <= 640_000:
        raise argparse.ArgumentTypeError("a number from 20 to 640000")
    return int(text)


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in FIGURES:
            raise argparse.ArgumentTypeError(f'no figure "{name}"; there are {", ".join(FIGURES)}')
    return names


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _machine(sync: float) -> str:
    """What this ran on, without any path."""
    return (
        f"{platform.system()} {platform.machine()}, {_cores()} cores, one fsync {sync:.2f} ms, "
        f"{platform.python_implementation()} {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"mcp {metadata.version('mcp')}, click {metadata.version('click')}."
    )


if __name__ == "__main__":
    sys.exit(main())
