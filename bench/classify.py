"""How often upkeep is right, on a set somebody else wrote: categories, duplicates, reminders,
times, links.

    python bench/classify.py FILE [--failures] [--meaning]

FILE is JSON, each key a list of cases: `classify` (text, category, acceptable, lang), `duplicates`
(a, b, kind: same, near or different), `reminders` (text, expected: the days, now), `remind`
(phrase, now, expected: a day or a time, or `repeat` and the first one, or `refuse`; several with `
or `), `links` (memories: [text, category]; pairs: positions). Only the totals are printed; with
--failures also each case that went wrong. With --meaning the installed embedding model helps to
classify.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

SOURCE = Path(__file__).resolve().parent.parent / "src"
if str(SOURCE) not in sys.path:
    sys.path.insert(0, str(SOURCE))

from memoranda.config import Settings  # noqa: E402
from memoranda.errors import TimeRefused  # noqa: E402
from memoranda.jobs.classify import Classifier, learn  # noqa: E402
from memoranda.jobs.dedup import near_pairs, plan_duplicates  # noqa: E402
from memoranda.jobs.job import MERGE, MemoryState  # noqa: E402
from memoranda.jobs.linking import plan_links  # noqa: E402
from memoranda.jobs.text_reminders import plan_from_text  # noqa: E402
from memoranda.note import timephrase  # noqa: E402

NOW = datetime(2026, 4, 15, 10, tzinfo=UTC)
CLOSE = ("soul", "lessons", "people")
"""The categories no memory may wrongly be put into more often than before."""
SETTINGS = Settings(Path("unused"), Path("unused"), timezone="UTC")
HOME = [SETTINGS]
"""The settings categories are chosen with: under --meaning of a home that has the vectors of the
examples.
"""

Outcome = tuple[str, bool, str]
"""The name of a total, whether the case counts for it, and the case in words."""


def state(text: str, number: int = 0, category: str = "inbox", now: datetime = NOW) -> MemoryState:
    return MemoryState(str(UUID(int=number, version=4)), "global", text, category, now)


def categories(cases: list[dict[str, Any]]) -> Iterator[Outcome]:
    classifier = Classifier(HOME[0])
    for case in cases:
        choice = classifier.choose(state(case["text"]))
        remark = (
            f"{case['text']} -> {choice.reason}; wanted {case['category']} {case['acceptable']}"
        )
        fits = choice.category == case["category"]
        yield f"category, {case['lang']}", fits, remark
        yield "category, exact", fits, ""
        yield "category, acceptable", fits or choice.category in case["acceptable"], ""
        yield f"category, by {choice.layer}", fits, ""
        if choice.category in CLOSE and not fits:
            yield f"category, wrongly {choice.category}", False, ""


def duplicates(cases: list[dict[str, Any]]) -> Iterator[Outcome]:
    for case in cases:
        both = [state(case["a"], 1, "knowledge"), state(case["b"], 2, "knowledge")]
        merged = any(action.verb == MERGE for action in plan_duplicates(both))
        linked = bool(near_pairs(both))
        if merged:
            kind = "same"
        elif linked:
            kind = "near"
        else:
            kind = "different"
        yield (
            f"duplicates, {case['kind']}",
            kind == case["kind"],
            f"{case['a']!r} / {case['b']!r}: {kind}",
        )
        if case["kind"] != "same":
            yield "duplicates, not wrongly merged", not merged, ""


def made(cases: list[dict[str, Any]]) -> Iterator[Outcome]:
    for case in cases:
        now = datetime.fromisoformat(case["now"])
        actions = plan_from_text([state(case["text"], 1, "knowledge", now)], SETTINGS, now, [])
        records = [action.record for action in actions if action.record]
        due_days = [str(record.further["due_at"])[:10] for record in records]
        expected_days = [day[:10] for day in case["expected"] or ()]
        yield (
            "reminders from texts",
            due_days == expected_days,
            f"{case['text']} -> {due_days}; wanted {expected_days}",
        )
        yield "reminders from texts, none made wrongly", set(due_days) <= set(expected_days), ""


def asked(cases: list[dict[str, Any]]) -> Iterator[Outcome]:
    for case in cases:
        try:
            reading = timephrase.read(case["phrase"], datetime.fromisoformat(case["now"]), UTC)
            answer = f"{'repeat ' if reading.repeat else ''}{reading.due:%Y-%m-%dT%H:%M}"
        except TimeRefused as error:
            answer = "refuse"
            reading = None
            remark = str(error)
        else:
            remark = f"{answer} {reading.repeat or ''}"
        expected_answers = case["expected"].split(" or ")
        fits = any(
            answer.startswith(expected) if expected != "repeat" else answer.startswith("repeat")
            for expected in expected_answers
        )
        yield "remind", fits, f"{case['phrase']} -> {remark}; wanted {case['expected']}"
        yield "remind, not silently wrong", fits or answer == "refuse", ""


def links(cases: list[dict[str, Any]]) -> Iterator[Outcome]:
    for case in cases:
        memories = [
            state(memory["text"], at + 1, memory["category"])
            for at, memory in enumerate(case["memories"])
        ]
        at = {memory.id: number for number, memory in enumerate(memories)}
        linked_pairs = {
            frozenset((at[plan_link.id], at[plan_link.target or ""]))
            for plan_link in plan_links(memories)
        }
        expected_pairs = {frozenset(pair) for pair in case["pairs"]}
        for pair in expected_pairs:
            yield (
                "links wanted",
                pair in linked_pairs,
                " / ".join(memories[end].content for end in pair),
            )
        for pair in linked_pairs:
            yield (
                "links made",
                pair in expected_pairs,
                " / ".join(memories[end].content for end in pair),
            )


PARTS = {
    "classify": categories,
    "duplicates": duplicates,
    "reminders": made,
    "remind": asked,
    "links": links,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--meaning", action="store_true")
    options = parser.parse_args()
    if options.meaning:
        HOME[0] = replace(SETTINGS, home=Path(tempfile.mkdtemp()))
        while learn(HOME[0]):
            continue
    cases = json.loads(options.file.read_text(encoding="utf-8"))
    for part, measure in PARTS.items():
        right = Counter[str]()
        total = Counter[str]()
        for name, fits, remark in measure(cases.get(part) or []):
            right[name] += fits
            total[name] += 1
            if options.failures and remark and not fits:
                print(f"  {name}: {remark}")
        for name in sorted(total):
            print(
                f"{name:42} {right[name]:4} of {total[name]:4}  {100 * right[name] // total[name]:3} %"
            )


if __name__ == "__main__":
    main()
