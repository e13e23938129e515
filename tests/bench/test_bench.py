"""The benchmarks run and show their figures. Nothing here looks at how fast anything was."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]


def bench(name: str, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One run of a benchmark with its temporary folder below `tmp_path`."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    return subprocess.run(
        [sys.executable, str(ROOT / "bench" / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a run over a tiny vault printed, and the folder it had for its temporary files."""
    place = tmp_path_factory.mktemp("bench")
    figures = "size,parse,sweep,search,graph,recall,lists,page,http,write,calls"
    process = bench("run", place, "--notes", "20", "--only", figures)
    assert process.returncode == 0, process.stderr
    return process.stdout, place


@pytest.mark.slow
@pytest.mark.parametrize(
    "label",
    [
        "index size",
        "parse the vault's notes",
        "sweep of 20",
        "search, 20 notes",
        "  a word of most notes",
        "  a Chinese word",
        "graph lookup, 20 entities",
        "recall of a key",
        "list_directory, 20 notes",
        "page: the clusters of Graph, 20 notes",
        "an answer over a kept connection",
        "remember a key",
        "write, 10 notes",
        "write, 20 notes",
        "edit, 20 notes",
        "Python calls of a write, 20 notes",
    ],
)
def test_every_figure_has_a_row_beside_its_budget(ran: tuple[str, Path], label: str) -> None:
    table = ran[0].split("\n\n")[0].splitlines()
    row = [line for line in table if line.startswith(label)]

    assert len(row) == 1
    assert re.search(r"\d", row[0].removeprefix(label))
    assert row[0].endswith((" ok", " over")) or label in ("parse the vault's notes", "sweep of 20")


@pytest.mark.slow
def test_a_page_of_documentation_can_take_the_last_block_as_it_is(ran: tuple[str, Path]) -> None:
    _, place = ran
    machine, figures = ran[0].rstrip().split("\n\n")[-2:]
    assert re.search(r"\d+ cores, .*Python 3\.\d+.*SQLite 3\.", machine)
    assert "write, 20 notes" in figures
    for path in (str(place), str(ROOT), sys.prefix):
        assert path not in machine + figures


@pytest.mark.slow
def test_nothing_stays_in_the_temporary_folder(ran: tuple[str, Path]) -> None:
    assert list(ran[1].iterdir()) == []


@pytest.mark.slow
def test_an_unknown_figure_is_refused_by_name(tmp_path: Path) -> None:
    process = bench("run", tmp_path, "--only", "index,nonsense")
    assert process.returncode == 2
    assert 'no figure "nonsense"' in process.stderr


@pytest.mark.slow
def test_a_few_callers_lose_nothing_over_the_socket_and_over_http() -> None:
    # The address of a socket has room for 107 bytes
    with TemporaryDirectory(prefix="cpg") as short:
        process = bench(
            "callers",
            Path(short),
            "--callers",
            "3",
            "--seconds",
            "1",
            "--pause",
            "0.01",
            "--every",
            "1",
            "--notes",
            "5",
        )
    assert process.returncode == 0, process.stderr
    header, *rows = [line.split() for line in process.stdout.splitlines()]
    assert header[-2:] == ["refused", "lost"]
    assert [row[0] for row in rows] == ["socket", "http"]
    for row in rows:
        assert row[-2:] == ["0", "0"]
        assert int(row[-3]) > 0


INGEST = (
    "ingest",
    ["--notes", "12"],
    ("ingest, 12 new notes", "  again, all known", "  again, 12 of them changed"),
)
LIFECYCLE = (
    "lifecycle",
    ["--memories", "8", "--inbox", "3", "--rounds", "1", "--settle", "0"],
    ("dream 1, 3 in the inbox", "consolidate, 8 memories, nothing to do", "dream 3, 8 memories"),
)


@pytest.mark.parametrize(
    ("name", "arguments", "rows"), [INGEST, pytest.param(*LIFECYCLE, marks=pytest.mark.slow)]
)
def test_every_job_has_a_row_and_nothing_stays(
    tmp_path: Path, name: str, arguments: list[str], rows: tuple[str, ...]
) -> None:
    process = bench(name, tmp_path, *arguments)
    assert process.returncode == 0, process.stderr
    for row in rows:
        assert f"\n{row}" in f"\n{process.stdout}"
    paths = list(tmp_path.iterdir())
    assert paths == []
