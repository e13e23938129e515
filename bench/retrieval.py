"""Ways to find the texts that answer a question: ours, and plain baselines on the very same texts."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Protocol

from conversations import Question
from memoranda import Draft, config
from memoranda.engine import open_session
from memoranda.engine.embedding import Embedding
from shelf import Nearest, Shelf

DEPTH = 50
PAGE = 10
"""So many texts are asked for: enough to name ten sessions. The time is that of asking for one
page.
"""

WARM = "What did somebody say about the weather?"
AT_ONCE = 500
_WORD = re.compile(r"\w+")


class Kept(Protocol):
    """A text as all pipelines get it: a turn, or a session as one note."""

    @property
    def key(self) -> str: ...

    @property
    def spoken(self) -> str: ...

    def draft(self, project: str = "notes") -> Draft: ...


@dataclass(frozen=True)
class Place:
    """Where a pipeline stands: an empty folder, the run's embedding model if there is one, the day
    of the questions (None = today)."""

    folder: Path
    shelf: Shelf | None = None
    asked_at: datetime | None = None


class Pipeline(Protocol):
    """Holds texts and ranks them for a question; the table shows `name`."""

    name: str

    def load(self, texts: Sequence[Kept]) -> None: ...

    def find(self, text: str, depth: int) -> list[str]: ...

    def close(self) -> None: ...


class ByWords:
    """The public API without a model: one note per text, written in batches, found by `search`.

    `loading` is how many seconds that took, `computing` how many of them processors worked for it.
    """

    name = "memoranda"
    meaning = False

    def __init__(self, place: Place):
        settings = config.load(place.folder)
        self._shelf = place.shelf if self.meaning else None
        if self._shelf is None:
            settings = replace(settings, semantic_model="off", semantic_endpoint=None)
        else:
            self.name = f"{self.name} + {self._shelf.name}"
        clock = {}
        if place.asked_at is not None:
            day = place.asked_at.replace(tzinfo=UTC)
            clock = {"clock": lambda: day}
        self._memory = open_session(place.folder, config=settings, **clock)
        self.known: dict[str, str] = {}
        self.loading = self.computing = self.embedding = 0.0
        self.embedded = 0

    def load(self, texts: Sequence[Kept], at_once: int = AT_ONCE) -> None:
        begin = time.perf_counter()
        computing = time.process_time()
        for at in range(0, len(texts), at_once):
            some = texts[at : at + at_once]
            notes = self._memory.write_many([text.draft() for text in some])
            self.known.update(
                zip((note.path for note in notes), (text.key for text in some), strict=True)
            )
        self.loading += time.perf_counter() - begin
        self.computing += time.process_time() - computing
        self.embed()

    def embed(self) -> None:
        """Compute the vectors that are missing."""
        if self._shelf is not None:
            before = self._shelf.fresh
            with self._shelf.lent(), self._shelf.keeping():
                begin = time.perf_counter()
                Embedding(self._memory).embed_some(math.inf)
                took = time.perf_counter() - begin
            # Else they are known from another home
            fresh = self._shelf.fresh - before
            if fresh:
                self.embedded = self.embedded + fresh
                self.embedding = self.embedding + took

    def find(self, text: str, depth: int) -> list[str]:
        with nullcontext() if self._shelf is None else self._shelf.lent():
            return [self.known[hit.note.path] for hit in self._memory.search(text, limit=depth)]

    def context(self, text: str, tokens: int) -> str:
        """What an agent would be given to answer `text`."""
        with nullcontext() if self._shelf is None else self._shelf.lent():
            return self._memory.context_for(text, max_tokens=tokens)

    def close(self) -> None:
        self._memory.close()


class Ours(ByWords):
    """The public API as it comes: by words and, where the `semantic` extra finds a model, by
    meaning.
    """

    meaning = True


class Cosine:
    """Every text as it stands and the question embedded with the same model; nothing but their
    cosine.
    """

    name = "cosine"

    def __init__(self, place: Place):
        assert place.shelf is not None
        self.name = f"cosine {place.shelf.name}"
        self._nearest = Nearest(place.shelf)

    def load(self, texts: Sequence[Kept]) -> None:
        self._nearest.add([text.key for text in texts], [text.spoken for text in texts])

    def find(self, text: str, depth: int) -> list[str]:
        return self._nearest.nearest(text, depth)

    def close(self) -> None:
        pass


class PlainFts:
    """One FTS5 table with the porter stemmer, the question's words joined by OR, bm25."""

    name = "fts5 porter, OR"

    def __init__(self, _: Place):
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "create virtual table turn using fts5(key unindexed, body, tokenize = 'porter unicode61')"
        )

    def load(self, texts: Sequence[Kept]) -> None:
        self._db.executemany(
            "insert into turn values (?, ?)", [(text.key, text.spoken) for text in texts]
        )

    def find(self, text: str, depth: int) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(text)))
        rows = self._db.execute(
            "select key from turn where turn match ? order by rank limit ?", (words, depth)
        )
        return [key for (key,) in rows]

    def close(self) -> None:
        self._db.close()


class Grep:
    """Every text read: those that hold most of the question's words first, in their order."""

    name = "grep"

    def __init__(self, _: Place):
        self._texts: list[tuple[str, str]] = []

    def load(self, texts: Sequence[Kept]) -> None:
        self._texts += [(text.key, text.spoken.lower()) for text in texts]

    def find(self, text: str, depth: int) -> list[str]:
        words = set(_WORD.findall(text.lower()))
        counted = []
        for key, body in self._texts:
            shared_words = sum(word in body for word in words)
            counted.append((shared_words, key))
        counted.sort(key=lambda counted_key: -counted_key[0])
        return [key for shared_words, key in counted[:depth] if shared_words]

    def close(self) -> None:
        self._texts.clear()


PIPELINES: dict[str, type[ByWords] | type[Cosine] | type[PlainFts] | type[Grep]] = {
    "ours": Ours,
    "words": ByWords,
    "cosine": Cosine,
    "fts": PlainFts,
    "grep": Grep,
}


def possible(names: Sequence[str], shelf: Shelf | None) -> list[str]:
    """Those of `names` that can be run and say something of their own: without a model there is no
    cosine, and ours is by words alone."""
    if shelf is not None:
        return list(names)
    return [
        name for name in names if name != "cosine" and not (name == "words" and "ours" in names)
    ]


@dataclass(frozen=True)
class Answer:
    """What one pipeline found for one question: keys of texts, best first, and how long it took.

    within: the share of the evidence that is in its context; None where it gives no context.
    """

    question: Question
    keys: list[str]
    ms: float
    within: float | None = None


def ask(
    pipeline: Pipeline,
    questions: Sequence[Question],
    prompt: str = "",
    tokens: int = 0,
    spoken: Mapping[str, str] | None = None,
) -> list[Answer]:
    """Every question, with `prompt` in front, after one that warms up.

    With `tokens` our pipelines are asked for so much context too, where the evidence is looked for:
    `spoken`, the texts of the turns by key.
    """
    answers = []
    pipeline.find(WARM, PAGE)
    for question in questions:
        text = prompt + question.text
        begin = time.perf_counter()
        pipeline.find(text, PAGE)
        took = (time.perf_counter() - begin) * 1000
        within = None
        if tokens and spoken is not None and isinstance(pipeline, ByWords):
            evidence = [spoken[key] for key in question.evidence]
            within = held(pipeline.context(text, tokens), evidence)
        answers.append(Answer(question, pipeline.find(text, DEPTH), took, within))
    return answers


def held(context: str, texts: Sequence[str]) -> float:
    """The share of `texts` that stand whole in `context`, whatever the blanks and line ends between
    words.
    """
    flat = _flat(context)
    return sum(_flat(text) in flat for text in texts) / len(texts)


def _flat(text: str) -> str:
    return " ".join(text.split())


def measures(
    answers: Sequence[Answer], sessions: Mapping[str, str], tokens: int = 0, *, whole: bool = False
) -> dict[str, float | None]:
    """The means over all answers by the names of the JSON form; `ms_per_query` is the median.

    `sessions` names the session of every key. Session recall looks at the first distinct sessions.
    `whole`: what was found are sessions, so recall of turns is None, and hit, all, MRR and nDCG are
    of sessions.
    """
    total: dict[str, float] = {}
    for answer in answers:
        for name, value in _measured(answer, sessions, whole).items():
            total[name] = total.get(name, 0.0) + value
    means: dict[str, float | None] = {
        name: round(value / len(answers), 4) for name, value in total.items()
    }
    if whole:
        means |= dict.fromkeys(name for name in means if name.startswith("recall@"))
    means["ms_per_query"] = round(median(answer.ms for answer in answers), 3)
    shares = [answer.within for answer in answers if answer.within is not None]
    if shares:
        means[f"evidence@{tokens}"] = round(sum(shares) / len(shares), 4)
    return means


def ranked_sessions(keys: Sequence[str], sessions: Mapping[str, str]) -> list[str]:
    """The sessions of these texts, each once, in their order."""
    return list(dict.fromkeys(sessions[key] for key in keys))


def gain(ranked: Sequence[str], evidence: Sequence[str], depth: int) -> float:
    """nDCG: 1 when everything wanted stands first."""
    wanted_keys = set(evidence)
    got = sum(1 / math.log2(at + 2) for at, key in enumerate(ranked[:depth]) if key in wanted_keys)
    best = sum(1 / math.log2(at + 2) for at in range(min(depth, len(wanted_keys))))
    return got / best


def _measured(answer: Answer, sessions: Mapping[str, str], whole: bool) -> dict[str, float]:
    question = answer.question
    keys = answer.keys
    evidence_sessions = set(question.sessions)
    evidence = evidence_sessions if whole else set(question.evidence)
    first = next((at for at, key in enumerate(keys, 1) if key in evidence), None)
    sessions_found = ranked_sessions(keys, sessions)
    shares = {depth: len(evidence & set(keys[:depth])) / len(evidence) for depth in (5, 10, 20)}
    return {
        **{f"recall@{depth}": share for depth, share in shares.items()},
        "hit@10": float(shares[10] > 0),
        "all@10": float(shares[10] == 1),
        "mrr": 1 / first if first else 0.0,
        "ndcg@10": gain(keys, list(evidence), 10),
        **{
            f"session_recall@{depth}": len(evidence_sessions & set(sessions_found[:depth]))
            / len(evidence_sessions)
            for depth in (5, 10)
        },
    }
