"""How often notes in natural words are falsely said to contradict each other, or to end each other.

Each line of the sets is a note: those of one home are compared. Prints every alarm, to be read: `or`
between two values is a question of Review, `then` a mark of which nobody is asked.

    python bench/contradictions.py DATA/*/notes.jsonl
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from memoranda.note.changes import changes
from memoranda.note.claims import Claim, ClaimKind, claims, ends, sentences_in


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
        sentences = sentences_in(note["text"])
        for claim in [*claims(sentences), *changes(sentences)]:
            count += 1
            by_subject[note["home"], claim.subject].append((number, claim))
    seconds = time.process_time() - began
    alarms = []
    for statements in by_subject.values():
        for (first_note, first), (second_note, second) in pairwise(statements):
            if first_note != second_note and ends(first, second):
                alarms.append((first, second))
    microseconds = seconds / max(len(notes), 1) * 1e6
    print(
        f"{file}: {len(notes)} notes, {count} claims, {len(alarms)} alarms,"
        f" {microseconds:.0f} µs of processor time a note"
    )
    for first, second in alarms:
        is_asked = first.kind is second.kind is ClaimKind.ASKED
        between = "or" if is_asked else "then"
        print(f"    {first.name}: {first.value!r} {between} {second.value!r}")


if __name__ == "__main__":
    main()
