"""A public vault, fetched before: what is in it, that nothing changes it, and what an edit changes.

    python -m vaults.public FOLDER [--lookups FILE]        (in tests/, for the laboratory)

FILE has a line for each look-up: the words, ` => `, and the path of the note to be found.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from memoranda.engine import MemorySession, open_session
from memoranda.engine.links.attachments import (
    conventions_of,
    inventory_of_project,
    unresolved_links,
)
from memoranda.note import edit as edits

_FIRST = 3


def checksums(root: Path) -> dict[str, str]:
    """The SHA-256 of every file below a folder."""
    checksums_found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            checksums_found[str(path.relative_to(root))] = hashlib.sha256(
                path.read_bytes()
            ).hexdigest()
    return checksums_found


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The files that differ."""
    names = before.keys() | after.keys()
    return sorted(name for name in names if before.get(name) != after.get(name))


def look_ups(memory: MemorySession, file: Path) -> tuple[int, list[str]]:
    """How many look-ups there are, and those whose note is not among the first three."""
    lines = [line for line in file.read_text("utf-8").splitlines() if " => " in line]
    missed = []
    for line in lines:
        words, _, path = line.partition(" => ")
        hits = memory.search(words, limit=_FIRST).hits
        if path not in [hit.note.path for hit in hits]:
            missed.append(f"{line}: {[hit.note.path for hit in hits]}")
    return len(lines), missed


def edit_and_undo(memory: MemorySession, root: Path, number: int) -> list[str]:
    """Edits and moves of some notes, each undone. Returns what was wrong."""
    random = Random(1)
    paths = sorted(info.path for info in memory.index.notes.below("vault", ""))
    before = checksums(root)
    wrong = []
    for path in random.sample(paths, min(number, len(paths))):
        memory.edit(("vault", path), edits.Append("one more line\n"))
        if changed(before, checksums(root)) != [path]:
            wrong.append(f"an edit of {path} changed {changed(before, checksums(root))}")
        memory.undo()
        memory.move(("vault", path), f"{path[:-3]} (moved).md")
        memory.undo()
        if changed(before, checksums(root)):
            wrong.append(f"{path}: undo left {changed(before, checksums(root))}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lookups", type=Path)
    parser.add_argument("--edits", type=int, default=10)
    options = parser.parse_args()
    before = checksums(options.folder)
    with (
        tempfile.TemporaryDirectory() as home,
        open_session(Path(home) / "home", projects={"vault": options.folder}) as memory,
    ):
        start = time.process_time()
        memory.sync()
        seconds = time.process_time() - start
        inventory = inventory_of_project(memory, "vault")
        links = unresolved_links(memory, "vault")
        print(f"programs: {conventions_of(memory, 'vault').program}")
        print(f"{inventory.notes} notes, {len(inventory.attachments)} attachments, {seconds:.1f} s")
        print(f"left out: {len(inventory.left_out)}, symlinks: {len(inventory.symlinks)}")
        print(f"links that lead nowhere: {len(links)}")
        for reason, number in Counter(link.reason for link in links).most_common(6):
            print(f"  {number} × {reason}")
        for link in links[:5]:
            print(f"  e.g. {link.path}:{link.line} [[{link.target}]]")
        if changed(before, checksums(options.folder)):
            print("CHANGED by reading:", changed(before, checksums(options.folder)))
        missed = []
        if options.lookups:
            total, missed = look_ups(memory, options.lookups)
            print(f"look-ups: {total - len(missed)} of {total} in the first {_FIRST}")
            print(*missed, sep="\n")
        wrong = edit_and_undo(memory, options.folder, options.edits)
        print(f"{options.edits} edits and moves, each undone: {len(wrong)} wrong")
        print(*wrong, sep="\n")
    wrong += changed(before, checksums(options.folder))
    return bool(wrong or missed)


if __name__ == "__main__":
    sys.exit(main())
