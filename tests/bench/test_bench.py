"""The benchmark runs and shows its figures. Nothing here looks at how fast anything was."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def bench(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One run of the benchmark with its temporary folder below `tmp_path`."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.run(
        [sys.executable, str(ROOT / "bench" / "run.py"), *arguments],
        capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a run over a tiny vault printed, and the folder it had for its temporary files."""
    place = tmp_path_factory.mktemp("bench")
    done = bench(place, "--notes", "60", "--only", "size,parse,sweep,search,graph,recall,write,calls")
    assert done.returncode == 0, done.stderr
    return done.stdout, place


@pytest.mark.parametrize(
    "what",
    [
        "index size", "parse the vault's notes", "sweep of 60", "search, 60 notes", "  a word of most notes",
        "  a Chinese word", "graph lookup, 60 entities", "recall of a key", "remember a key", "write, 10 notes",
        "write, 60 notes", "edit, 60 notes", "Python calls of a write, 60 notes",
    ],
)  # fmt: skip
def test_every_figure_has_a_row_beside_its_budget(ran: tuple[str, Path], what: str) -> None:
    table = ran[0].split("\n\n")[0].splitlines()
    row = [line for line in table if line.startswith(what)]
    assert len(row) == 1
    assert re.search(r"\d", row[0].removeprefix(what))
    assert row[0].endswith((" ok", " over")) or what in ("parse the vault's notes", "sweep of 60")


def test_a_page_of_documentation_can_take_the_last_block_as_it_is(ran: tuple[str, Path]) -> None:
    _, place = ran
    machine, figures = ran[0].rstrip().split("\n\n")[-2:]
    assert re.search(r"\d+ cores, .*Python 3\.\d+.*SQLite 3\.", machine)
    assert "write, 60 notes" in figures
    for path in (str(place), str(ROOT), sys.prefix):
        assert path not in machine + figures


def test_nothing_stays_in_the_temporary_folder(ran: tuple[str, Path]) -> None:
    assert list(ran[1].iterdir()) == []


def test_an_unknown_figure_is_refused_by_name(tmp_path: Path) -> None:
    done = bench(tmp_path, "--only", "index,nonsense")
    assert done.returncode == 2
    assert 'no figure "nonsense"' in done.stderr
