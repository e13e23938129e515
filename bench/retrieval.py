"""Ways to find the turns that answer a question: ours, and plain baselines on the very same texts."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Protocol

from commonplace import open_memory
from commonplace.engine.embedding import Embedding
from conversations import Question, Turn

DEPTH, PAGE = 50, 10
"""So many turns are asked for: enough to name ten sessions. The time is that of asking for one page."""

AT_ONCE = 500
_WORD = re.compile(r"\w+")


class Pipeline(Protocol):
    """Holds turns and ranks them for a text; `name` stands in the table."""

    name: str

    def load(self, turns: Sequence[Turn]) -> None: ...

    def find(self, text: str, depth: int) -> list[str]: ...

    def close(self) -> None: ...


class Ours:
    """The public API: one note per turn, written in batches, found by `search`; with vectors where a model is."""

    name = "commonplace"

    def __init__(self, home: Path):
        self._memory = open_memory(home)
        self._keys: dict[str, str] = {}
        self.seconds = self.embedding_seconds = 0.0
        self.embedded = 0

    def load(self, turns: Sequence[Turn]) -> None:
        begin = time.perf_counter()
        for at in range(0, len(turns), AT_ONCE):
            some = turns[at : at + AT_ONCE]
            notes = self._memory.write_many([turn.draft() for turn in some])
            self._keys.update(zip((note.path for note in notes), (turn.key for turn in some), strict=True))
        self.seconds += time.perf_counter() - begin
        begin = time.perf_counter()
        self.embedded += Embedding(self._memory).some(math.inf)
        self.embedding_seconds += time.perf_counter() - begin
        if self.embedded:
            self.name = f"commonplace + {Embedding(self._memory).name}"

    def find(self, text: str, depth: int) -> list[str]:
        return [self._keys[hit.note.path] for hit in self._memory.search(text, limit=depth)]

    def close(self) -> None:
        self._memory.close()


class PlainFts:
    """One FTS5 table with the porter stemmer, the question's words joined by OR, bm25."""

    name = "fts5 porter, OR"

    def __init__(self, _: Path):
        self._db = sqlite3.connect(":memory:")
        self._db.execute("create virtual table turn using fts5(key unindexed, body, tokenize = 'porter unicode61')")

    def load(self, turns: Sequence[Turn]) -> None:
        self._db.executemany("insert into turn values (?, ?)", [(turn.key, turn.spoken) for turn in turns])

    def find(self, text: str, depth: int) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(text)))
        found = self._db.execute("select key from turn where turn match ? order by rank limit ?", (words, depth))
        return [key for (key,) in found]

    def close(self) -> None:
        self._db.close()


class Grep:
    """Every turn read: those that hold most of the question's words first, in their order."""

    name = "grep"

    def __init__(self, _: Path):
        self._turns: list[tuple[str, str]] = []

    def load(self, turns: Sequence[Turn]) -> None:
        self._turns += [(turn.key, turn.spoken.lower()) for turn in turns]

    def find(self, text: str, depth: int) -> list[str]:
        words = set(_WORD.findall(text.lower()))
        counted = [(sum(word in body for word in words), key) for key, body in self._turns]
        return [key for held, key in sorted(counted, key=lambda one: -one[0])[:depth] if held]

    def close(self) -> None:
        self._turns.clear()


PIPELINES: dict[str, type[Ours] | type[PlainFts] | type[Grep]] = {"ours": Ours, "fts": PlainFts, "grep": Grep}


@dataclass(frozen=True)
class Answer:
    """What one pipeline found for one question: keys of turns, best first, and how long it took."""

    question: Question
    found: list[str]
    ms: float


def ask(pipeline: Pipeline, questions: Sequence[Question], prompt: str = "") -> list[Answer]:
    """Every question, with `prompt` in front."""
    answers = []
    for question in questions:
        begin = time.perf_counter()
        pipeline.find(prompt + question.text, PAGE)
        took = (time.perf_counter() - begin) * 1000
        answers.append(Answer(question, pipeline.find(prompt + question.text, DEPTH), took))
    return answers


def measures(answers: Sequence[Answer], sessions: dict[str, str]) -> dict[str, float]:
    """The means over all answers by the names of the JSON form; `ms_per_query` is the median.

    `sessions` names the session of every turn. Session recall looks at the first distinct sessions.
    """
    total: dict[str, float] = {}
    for answer in answers:
        for name, value in _measured(answer, sessions).items():
            total[name] = total.get(name, 0.0) + value
    means = {name: round(value / len(answers), 4) for name, value in total.items()}
    return {**means, "ms_per_query": round(median(answer.ms for answer in answers), 3)}


def ranked_sessions(found: Sequence[str], sessions: dict[str, str]) -> list[str]:
    """The sessions of these turns, each once, in their order."""
    return list(dict.fromkeys(sessions[key] for key in found))


def gain(ranked: Sequence[str], wanted: Sequence[str], depth: int) -> float:
    """nDCG: 1 when everything wanted stands first."""
    there = set(wanted)
    got = sum(1 / math.log2(at + 2) for at, key in enumerate(ranked[:depth]) if key in there)
    best = sum(1 / math.log2(at + 2) for at in range(min(depth, len(there))))
    return got / best


def _measured(answer: Answer, sessions: dict[str, str]) -> dict[str, float]:
    wanted = set(answer.question.evidence)
    found = answer.found
    first = next((at for at, key in enumerate(found, 1) if key in wanted), None)
    meant = {sessions[key] for key in wanted}
    seen = ranked_sessions(found, sessions)
    held = {depth: len(wanted & set(found[:depth])) / len(wanted) for depth in (5, 10, 20)}
    return {
        **{f"recall@{depth}": share for depth, share in held.items()},
        "hit@10": float(held[10] > 0),
        "all@10": float(held[10] == 1),
        "mrr": 1 / first if first else 0.0,
        "ndcg@10": gain(found, list(wanted), 10),
        **{f"session_recall@{depth}": len(meant & set(seen[:depth])) / len(meant) for depth in (5, 10)},
    }
