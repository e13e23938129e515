"""How long one durable write takes on a slow disk, beside another version of the code.

    python bench/durable.py [--milliseconds 5] [--writes 100] [--rounds 3] [--beside FOLDER]

A write is answered when it is on the disk. On a disk whose syncs take five milliseconds, most of its
time is waiting for them, so the figure shows how many syncs a write waits for. bench/slow_disk.c is
compiled (needs a C compiler) and preloaded to make each sync take that much longer. Printed are the
medians by the clock of new notes and of notes that are overwritten, by turns with the `src` of the
other version in FOLDER, say of `git worktree add --detach FOLDER COMMIT`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
OURS = HERE.parent / "src"
KINDS = ("a new note", "a note overwritten")
Times = dict[str, list[float]]
"""Milliseconds by the clock, by kind of write."""


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--milliseconds", type=float, default=5.0)
    options.add_argument("--writes", type=int, default=100)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--beside", type=Path, help="the folder `src` of another version")
    options.add_argument("--only", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.only:
        print(json.dumps(write(chosen.only, chosen.writes)))
        return
    sources = [OURS]
    if chosen.beside:
        sources.append(chosen.beside.resolve())
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        rounds: dict[Path, list[Times]] = {source: [] for source in sources}
        for _ in range(chosen.rounds):
            for source in sources:
                times = in_a_process(source, chosen.writes, library, chosen.milliseconds)
                rounds[source].append(times)
    print(f"each sync takes {chosen.milliseconds:g} ms longer; milliseconds by the clock, medians")
    for kind in KINDS:
        medians = [
            median(ms for times in rounds[source] for ms in times[kind]) for source in sources
        ]
        print(row(kind, medians))


def row(kind: str, medians: list[float]) -> str:
    """A line of the table. With another version's median beside ours, it has their ratio."""
    ours = medians[0]
    text = f"{kind:<20} {ours:>6.1f}"
    if len(medians) == 2:
        text += f"  before {medians[1]:>6.1f}  times {ours / medians[1]:.2f}"
    return text


def compiled(folder: Path) -> Path:
    """The library that is preloaded, compiled into this folder."""
    library = folder / "slow_disk.so"
    source = HERE / "slow_disk.c"
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def in_a_process(source: Path, writes: int, library: Path, milliseconds: float) -> Times:
    """The times of one version's writes, in a process that has the slow disk."""
    environment = os.environ | {
        "LD_PRELOAD": str(library),
        "SLOW_DISK_MS": str(milliseconds),
        "PYTHONPATH": str(source),
    }
    command = [sys.executable, __file__, "--only", str(source), "--writes", str(writes)]
    process = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    times: Times = json.loads(process.stdout)
    return times


def write(source: Path, writes: int) -> Times:
    """Write notes and overwrite them, in a new home, and return how long each took.

    source: the folder `src` that the library is loaded from.
    """
    sys.path.insert(0, str(source))
    from memoranda import Draft, open_memory

    times: Times = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder, open_memory(f"{folder}/home") as memory:
        # The first write makes the home.
        memory.write(Draft("The harbour opens at six.", title="Harbour"))
        for kind in KINDS:
            for number in range(writes):
                draft = Draft(f"{kind.capitalize()}: kelp {number}.", title=f"Kelp {number}")
                begun = time.perf_counter()
                memory.write(draft, overwrite=True)
                times[kind].append((time.perf_counter() - begun) * 1e3)
    return times


if __name__ == "__main__":
    main()
