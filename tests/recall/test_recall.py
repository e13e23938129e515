"""Searching in plain language finds the right notes: our own recall set, with a floor for every
category.

`notes/*.yaml` are the notes of some invented people, `questions.jsonl` what is asked of them on 16
March 2026 and which notes answer it, `floors.toml` what the search reached when it was measured
last. README.md says more.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import floor
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from memoranda import Draft
from memoranda.engine import open_session

HERE = Path(__file__).parent
TODAY = datetime(2026, 3, 16, 12, tzinfo=UTC)
LIMIT = 10
LEAST_MARGIN = 2.0
"""Points between what is reached and the floor where one question weighs less."""

_CHINESE = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Kept:
    """A note of the set: the draft it is written from, and when."""

    key: str
    created: datetime
    draft: Draft


@dataclass(frozen=True)
class Question:
    """What is asked, and the keys of the notes that hold the answer."""

    category: str
    text: str
    evidence: frozenset[str]

    @property
    def language(self) -> str:
        if _CHINESE.search(self.text):
            return "中文"
        return "English"


@dataclass(frozen=True)
class Answer:
    """The keys of the notes a question found, best first."""

    question: Question
    keys: tuple[str, ...]

    @property
    def recall(self) -> float:
        return len(self.question.evidence.intersection(self.keys)) / len(self.question.evidence)

    @property
    def hit(self) -> float:
        return float(self.recall > 0)

    @property
    def first(self) -> float:
        """One over the place of the first note that helps, 0 when none does."""
        return next(
            (1 / place for place, key in enumerate(self.keys, 1) if key in self.question.evidence),
            0.0,
        )


class Figures(NamedTuple):
    """Means over some answers, in percent."""

    recall: float
    hit: float
    first: float


def kept_of(key: str, fields: dict[str, str]) -> Kept:
    """The note as the face that would have written it does."""
    project, _, folder = fields["in"].partition("/")
    created = datetime.fromisoformat(fields["created"]).replace(tzinfo=UTC)
    metadata: dict[str, object] = {"created_at": created}
    if project == "categories":
        metadata |= {"updated_at": created}
    if project == "kv":
        metadata |= {"namespace": folder, "key": fields["title"]}
    draft = Draft(
        fields["text"].rstrip("\n"),
        project=project,
        folder="" if project == "categories" else folder,
        category=folder if project == "categories" else None,
        title=fields.get("title"),
        type=fields.get("type", "kv" if project == "kv" else None),
        tags=tuple(filter(None, fields.get("tags", "").split(", "))),
        source=fields.get("source"),
        date=fields.get("date"),
        metadata=metadata,
    )
    return Kept(key, created, draft)


def read_notes() -> list[Kept]:
    files = sorted((HERE / "notes").glob("*.yaml"))
    documents = [yaml.load(file.read_text(encoding="utf-8"), yaml.BaseLoader) for file in files]
    texts = []
    for notes in documents:
        texts += [kept_of(key, fields) for key, fields in notes.items()]
    return texts


def read_questions() -> list[Question]:
    file = HERE / "questions.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    return [
        Question(row["category"], row["question"], frozenset(row["evidence"]))
        for row in map(json.loads, lines)
    ]


NOTES = read_notes()
QUESTIONS = read_questions()
FLOORS: dict[str, list[float]] = tomllib.loads((HERE / "floors.toml").read_text(encoding="utf-8"))[
    "floors"
]


def figures(answers: list[Answer]) -> Figures:
    def mean(values: Iterator[float]) -> float:
        return 100 * sum(values) / len(answers)

    return Figures(
        mean(a.recall for a in answers),
        mean(a.hit for a in answers),
        mean(a.first for a in answers),
    )


def of(group: str, answers: list[Answer]) -> list[Answer]:
    """The answers of a category or a language."""
    return [
        answer
        for answer in answers
        if group in (answer.question.category, answer.question.language)
    ]


def table(answers: list[Answer]) -> str:
    """All figures beside their floors."""
    lines = [f"{'':12}{'recall@10':>16}{'hit@10':>16}{'first':>16}   (reached / floor, percent)"]
    for group, floors in FLOORS.items():
        reached = figures(of(group, answers))
        cells = "".join(
            f"{got:9.1f} / {least:4.0f}" for got, least in zip(reached, floors, strict=True)
        )
        lines.append(f"{group:12}{cells}")
    return "\n".join(lines)


def missed(answers: list[Answer]) -> str:
    """The questions that lack evidence, and what they lack."""
    return "\n".join(
        f"{answer.question.text} -> {', '.join(sorted(answer.question.evidence.difference(answer.keys)))}"
        for answer in answers
        if answer.recall < 1
    )


def set_floors(answers: list[Answer]) -> None:
    """Raise the floors to one question below what is reached; none sinks, so that no update hides a
    worse ranking.
    """
    place = HERE / "floors.toml"
    rest = re.sub(
        r"(?m)^measured = .*$", f"measured = {date.today()}", place.read_text(encoding="utf-8")
    )
    lines = [rest[: rest.index("[floors]")] + "[floors]"]
    for group in FLOORS:
        mine = of(group, answers)
        reached = figures(mine)
        margin = max(LEAST_MARGIN, 100 / len(mine))
        FLOORS[group] = [
            max(old, floor(got - margin)) for old, got in zip(FLOORS[group], reached, strict=True)
        ]
        now = ", ".join(f"{got:.1f}" for got in reached)
        least = ", ".join(f"{figure:3}" for figure in FLOORS[group])
        lines.append(f'"{group}" = [{least}]  # {now}')
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")


def ask(home: Path) -> list[Answer]:
    """Every question asked of one home, into which all the notes were written as one change.

    Files get the time their note was written: of notes equally good the newer one comes first.
    """
    with open_session(home, clock=lambda: TODAY, watch=False) as memory:
        written = memory.write_many(kept_note.draft for kept_note in NOTES)
        keys = {
            (note.project, note.path): kept_note.key
            for note, kept_note in zip(written, NOTES, strict=True)
        }
        for place, (note, kept_note) in enumerate(zip(written, NOTES, strict=True)):
            seconds = kept_note.created.timestamp() + place / 1_000
            os.utime(home / note.project / note.path, (seconds, seconds))
        answers = []
        for question in QUESTIONS:
            hits = memory.search(question.text, limit=LIMIT)
            keys_of_hits = tuple(keys[hit.note.project, hit.note.path] for hit in hits)
            answers.append(Answer(question, keys_of_hits))
        return answers


@pytest.fixture(scope="session")
def answers(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> list[Answer]:
    answers_given = ask(tmp_path_factory.mktemp("recall") / "home")
    if request.config.getoption("update"):
        set_floors(answers_given)
    return answers_given


@pytest.mark.parametrize("group", FLOORS)
def test_a_search_finds_what_it_found_when_the_floors_were_set(
    group: str, answers: list[Answer]
) -> None:
    mine = of(group, answers)
    reached = figures(mine)
    below = [
        name
        for name, got, least in zip(Figures._fields, reached, FLOORS[group], strict=True)
        if got < least
    ]
    assert not below, (
        f"{group}: {', '.join(below)} below the floor\n{table(answers)}\n\n{missed(mine)}"
    )


def test_all_evidence_exists_and_no_question_is_asked_twice() -> None:
    keys = {note.key for note in NOTES}
    texts = [
        question.text for question in QUESTIONS if not question.evidence or question.evidence - keys
    ]
    assert texts == []
    assert max(Counter(question.text for question in QUESTIONS).values()) == 1
