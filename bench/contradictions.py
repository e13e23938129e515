"""How often notes in natural words are falsely said to contradict each other.

Each line of the sets is a note: those of one home are compared. Prints every alarm, to be read.

    python bench/contradictions.py DATA/*/notes.jsonl
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from memoranda.note.claims import Claim, claims, differ


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("files", nargs="+", type=Path, help='lines {"home": …, "text": …}')
    arguments = options.parse_args()
    for file in arguments.files:
        _measure(file)


def _measure(file: Path) -> None:
    # Not splitlines: a text may hold other signs that end a line.
    lines = filter(None, file.read_text("utf-8").split("\n"))
    notes = [json.loads(line) for line in lines]
    by_subject: dict[tuple[str, str], list[tuple[int, Claim]]] = defaultdict(list)
    began = time.process_time()
    count = 0
    for number, note in enumerate(notes):
        for claim in claims(note["text"]):
            count += 1
            by_subject[note["home"], claim.subject].append((number, claim))
    seconds = time.process_time() - began
    alarms = []
    for statements in by_subject.values():
        for (first_note, first), (second_note, second) in pairwise(statements):
            if first_note != second_note and differ(first, second):
                alarms.append((first, second))
    microseconds = seconds / max(len(notes), 1) * 1e6
    print(
        f"{file}: {len(notes)} notes, {count} claims, {len(alarms)} alarms,"
        f" {microseconds:.0f} µs of processor time a note"
    )
    for first, second in alarms:
        print(f"    {first.name}: {first.value!r} or {second.value!r}")


if __name__ == "__main__":
    main()
