"""Taking a vault in, as whole processes of the `memory` command (contract 001, 11).

    python bench/ingest.py [--notes 10000]

The baseline is a program that reads every file of the vault and writes and syncs it under another
name, 200 at a time. A figure over its budget says `over`; nothing fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
for place in (HERE, SOURCE):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import vault  # noqa: E402
from table import Budget, Row, seconds, table  # noqa: E402

AT_ONCE = 200
FIRST = Budget(most=20)
AGAIN = Budget(most=5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=10_000, metavar="N")
    notes = parser.parse_args(arguments).notes
    with tempfile.TemporaryDirectory(prefix="memoranda-bench-") as name:
        print(table(_measured(Path(name), notes)))
    return 0


def _measured(folder: Path, notes: int) -> list[Row]:
    source = folder / "vault"
    home = folder / "home"
    paths = vault.make_vault(source, notes)
    plain = seconds(lambda: _copy(source, folder / "copy", paths))
    rows = [
        Row(
            f"ingest, {notes:,} new notes",
            "s",
            [_ingest(home, source)],
            [plain],
            "copied and synced",
            FIRST,
        )
    ]
    rows.append(Row("  again, all known", "s", [_ingest(home, source)], budget=AGAIN))
    some = paths[:: max(1, notes // 100)]
    for path in some:
        with open(source / path, "a", encoding="utf-8") as file:
            file.write("\nOne more line.\n")
    rows.append(
        Row(f"  again, {len(some)} of them changed", "s", [_ingest(home, source)], budget=AGAIN)
    )
    return rows


def _ingest(home: Path, source: Path) -> float:
    program = [
        sys.executable,
        "-m",
        "memoranda",
        "--home",
        str(home),
        "ingest",
        "--source",
        "obsidian",
        "--path",
    ]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return seconds(
        lambda: subprocess.run(
            [*program, str(source)], check=True, stdout=subprocess.DEVNULL, env=environment
        )
    )


def _copy(source: Path, target: Path, paths: Sequence[str]) -> None:
    target.mkdir()
    for at, path in enumerate(paths):
        (target / f"{at}.md").write_bytes((source / path).read_bytes())
        if at % AT_ONCE == AT_ONCE - 1:
            os.sync()


if __name__ == "__main__":
    raise SystemExit(main())
