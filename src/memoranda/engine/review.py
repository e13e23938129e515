"""Questions of upkeep to the owner (contract 001, 18): the open ones, and what became of the
others.

Each source of questions is an entry of SOURCES. An answer that changes something is a change like
any other, which `undo` takes back. One that changes nothing ("keep them apart") is written down in
the ledger, so that it is not asked again; that, too, is a change `undo` takes back. The folders
that agents ask for as projects wait there too; nothing is done before the owner has answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from memoranda.clock import parse_stamp, stamp
from memoranda.engine.contents import rows_passing
from memoranda.engine.engine import verb
from memoranda.engine.restoring import RestoreVerbs
from memoranda.engine.session import HomeSession
from memoranda.engine.suspicion import KEEP, suspicion
from memoranda.engine.telling import Telling, author, telling
from memoranda.engine.transaction import Transaction, WritingSession
from memoranda.errors import InvalidInput, NotFound, ProjectRefused
from memoranda.index.rows import NoteInfo
from memoranda.ledger.review_rows import ANSWER, REQUEST
from memoranda.query import Query
from memoranda.sources.base import sha256
from memoranda.sources.layout import PRIVATE
from memoranda.text.unicode import flat

VERB = "review"
CLAIM = "claim"
DELETE = "d"
_TITLE_CHARACTERS = 60
LIMIT = 50
"""Questions `review` returns unless told otherwise."""
# So few questions of one kind are asked one by one.
_FEW_QUESTIONS = 3
# Questions answered at once.
_MOST_QUESTIONS_AT_ONCE = 25
# So many questions of a kind are asked one by one; more as one, about this many at most, with this in
# its key.
_ALL = ":all:"
# The verb of an agent's request and of the answer to it.
_ASK = "ask"
AGENT_PREFIX = "agent:"
# So many new notes of one agent in such a time are one question.
_NOTES_OF_BURST = 50
_BURST_LASTS = timedelta(minutes=10)
# Requests that may wait.
_MOST_REQUESTS = 100


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A question to the owner.

    key: begins with `kind:`, and stays the same as long as nothing changes that the question is
        about.
    kind: the kind of question.
    text: the question in one line.
    refs: the ids, or other references, of the notes it is about.
    choices: (letter to press, effect). The letters `s`, `q` and `u` have other meanings.
    lines: one line for each of several questions that are asked as one.
    """

    key: str
    kind: str
    text: str
    refs: tuple[str, ...]
    choices: tuple[tuple[str, str], ...]
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReviewBatch:
    """How many questions of one kind are asked as one: the question (`{}`: how many), what the
    answers `y` and `n` do, and the function of the open Memory that does for all what `y` says, as
    one change. `n` is each one's own `n`."""

    text: str
    yes: str
    no: str
    apply: Callable[[Any, Sequence[ReviewItem]], object]


@dataclass(frozen=True, slots=True)
class ReviewSource:
    """A source of questions of one kind: two functions of the open Memory.

    find: yields the questions that exist now, the most pressing first, answered ones included.
    apply: carries out a choice, and returns whether it changed something. Then the question
        disappears, and comes back if the change is undone. Otherwise the answer is stored instead.
    batch: if given, many questions may be asked as one.
    """

    find: Callable[[Any], Iterable[ReviewItem]]
    apply: Callable[[Any, ReviewItem, str], bool]
    batch: ReviewBatch | None = None


SOURCES = {
    "project": "memoranda.engine.review:REQUESTS",
    "suspicious": "memoranda.engine.review:SUSPICIOUS",
    "reminder": "memoranda.jobs.questions:REMINDERS",
    "contradiction": "memoranda.jobs.contradictions:CONTRADICTIONS",
    "claim": "memoranda.engine.profile:CLAIMS",
    "burst": "memoranda.engine.review:BURSTS",
    "lesson": "memoranda.transcripts.proposals:LESSONS",
    "merge": "memoranda.jobs.questions:MERGES",
    "category": "memoranda.jobs.questions:CATEGORIES",
    "archive": "memoranda.jobs.questions:ARCHIVES",
}
"""By kind, in the order of asking, `module:name` of its Source. Named, not imported: jobs stand
above the engine.
"""


def source(kind: str) -> ReviewSource:
    """Where the questions of one kind come from."""
    module, _, name = SOURCES[kind].partition(":")
    return cast(ReviewSource, getattr(import_module(module), name))


class ReviewVerbs(RestoreVerbs):
    """`review` and `decide`, for the owner only: an agent is asked nothing and decides nothing."""

    def review(
        self, *, limit: int = LIMIT, offset: int = 0, kind: str | None = None
    ) -> list[ReviewItem]:
        """List the open questions (see `Memory.review`), in the order of SOURCES."""
        first = max(offset, 0)
        return list(islice(self._open_items(kind), first, first + limit if limit > 0 else None))

    def _open_items(self, kind: str | None) -> Iterator[ReviewItem]:
        if kind is not None and kind not in SOURCES:
            raise InvalidInput(f'invalid kind "{kind}" (one of {", ".join(SOURCES)})')
        if self.agent is None:
            for kind_of_question in SOURCES if kind is None else (kind,):
                items = self._open_of(kind_of_question)
                yield from (
                    items
                    if kind or source(kind_of_question).batch is None
                    else _together(kind_of_question, list(items))
                )

    def _open_of(self, kind: str) -> Iterator[ReviewItem]:
        decided = self.decisions()
        return (item for item in source(kind).find(self) if item.key not in decided)

    def telling(self, info: NoteInfo) -> Telling:
        """How a note may be told to a session that did not ask for it (docs/trust.md)."""
        provenance = info.provenance
        is_own = provenance.trust == "owner"
        return telling(
            provenance,
            is_held_back=self.is_held_back(info),
            is_confirmed=not is_own and self.decision(self.claim(info)) == KEEP,
        )

    def claim(self, info: NoteInfo) -> str:
        """The key under which the owner confirms a note. It changes with the text."""
        return suspicion(self, info).replace("suspicious:", f"{CLAIM}:", 1)

    def confirm(self, change: Transaction, infos: Iterable[NoteInfo]) -> None:
        """Write down in `change` that the owner says these notes are so. Nothing for an agent."""
        unconfirmed = [info for info in infos if info.provenance.trust != "owner"]
        if self.agent is not None or not unconfirmed:
            return
        self._answer(change, [self.claim(info) for info in unconfirmed], KEEP)

    @verb
    def confirm_notes(self, infos: Sequence[NoteInfo]) -> None:
        """Write down that the owner says these notes are so. Raises InvalidInput for an agent."""
        if self.agent is not None:
            raise InvalidInput("only the owner confirms what agents noted")
        with self.change(VERB, fresh=False) as change:
            self.confirm(change, infos)

    def decide(self, question: str | ReviewItem, choice: str) -> ReviewItem:
        """Answer a question (see `Memory.decide`)."""
        if self.agent is not None:
            raise InvalidInput("only the owner decides; run memory review without an agent's name")
        item, items = self._parts_of(question)
        letters = [letter for letter, _ in item.choices]
        if choice not in letters:
            raise InvalidInput(f'invalid choice "{choice}" (one of {", ".join(letters)})')
        question_source = source(_kind_of(item.key))
        if len(items) > 1 and question_source.batch is not None and choice == "y":
            question_source.batch.apply(self, items)
        elif len(items) > 1 or not question_source.apply(self, item, choice):
            self._write_down([candidate.key for candidate in items], choice)
        return item

    def _parts_of(self, question: str | ReviewItem) -> tuple[ReviewItem, list[ReviewItem]]:
        """The question, and the single questions it asks as one. Raises as `_open_question`."""
        if isinstance(question, str):
            return self._open_question(question)
        if len(question.lines) < 2:
            return question, [question]
        return self._open_question(question.key)

    def _open_question(self, key: str) -> tuple[ReviewItem, list[ReviewItem]]:
        """The open question with this key, and the questions it combines, or itself. Raises
        InvalidInput, NotFound.
        """
        kind = _kind_of(key)
        items: list[ReviewItem] = []
        if kind in SOURCES:
            items = list(self._open_of(kind))
        for item in items:
            if item.key == key:
                return item, [item]
        for item in _together(kind, items):
            if item.key == key:
                return item, items[:_MOST_QUESTIONS_AT_ONCE]
        if key.startswith(f"{kind}{_ALL}"):
            # Its key has a digest of the questions it asked as one.
            raise InvalidInput(
                "the list of this question changed meanwhile", "Ask for the questions again."
            )
        raise NotFound(key, "the open questions")

    @verb
    def _write_down(self, keys: Iterable[str], choice: str) -> None:
        with self.change(VERB, (PRIVATE, VERB), fresh=False) as change:
            self._answer(change, keys, choice)

    def _answer(self, change: Transaction, keys: Iterable[str], choice: str) -> None:
        row = {"choice": choice, "time": stamp(self.clock())}
        rows = self.engine.ledger.review_rows
        change.steps += [rows.step(ANSWER, key, row) for key in dict.fromkeys(keys)]

    def decisions(self) -> dict[str, dict[str, Any]]:
        """The answers by key. Raises StorageError for a file of a version before that is damaged."""
        return self.engine.ledger.review_values(ANSWER)


def _kind_of(key: str) -> str:
    """The kind of question that a key is of."""
    return key.partition(":")[0]


def _together(kind: str, items: list[ReviewItem]) -> list[ReviewItem]:
    """The questions of one kind, or a single one that stands in for the first of many."""
    batch = source(kind).batch if kind in SOURCES else None
    if batch is None or len(items) <= _FEW_QUESTIONS:
        return items
    first_items = items[:_MOST_QUESTIONS_AT_ONCE]
    key = f"{kind}{_ALL}{sha256(json.dumps([item.key for item in first_items]).encode())[:12]}"
    count = (
        f"{len(first_items)} of {len(items)}" if len(first_items) < len(items) else len(first_items)
    )
    refs = tuple(chain.from_iterable(item.refs for item in first_items))
    lines = tuple(chain.from_iterable(item.lines for item in first_items))
    choices = (("y", batch.yes), ("n", batch.no))
    return [ReviewItem(key, kind, batch.text.format(count), refs, choices, lines)]


@verb
def _suspicious(memory: ReviewVerbs) -> list[NoteInfo]:
    memory.engine.fresh()
    return memory.index.notes.suspicious()


def _ask_suspicious(memory: ReviewVerbs) -> Iterator[ReviewItem]:
    for info in _suspicious(memory):
        title = " ".join(info.title.split())
        title = flat(
            title if len(title) <= _TITLE_CHARACTERS else f"{title[: _TITLE_CHARACTERS - 1]}…"
        )
        text = f'"{title}" ({flat(f"{info.project}/{info.path}")}) may hold instructions: {", ".join(info.suspicious)}'
        choices = (KEEP, "it is fine, show it everywhere"), (DELETE, "delete the note")
        yield ReviewItem(suspicion(memory, info), "suspicious", text, (info.id,), choices)


def _answer_suspicious(memory: ReviewVerbs, item: ReviewItem, choice: str) -> bool:
    if choice == KEEP:
        return False
    memory.delete(next(info for info in _suspicious(memory) if suspicion(memory, info) == item.key))
    return True


SUSPICIOUS = ReviewSource(_ask_suspicious, _answer_suspicious)
"""The question about notes that seem to hold injected instructions (docs/gate.md)."""


def _bursts(memory: Any) -> Iterator[list[NoteInfo]]:
    """The notes each agent made in a hurry: many within some minutes."""
    rows_by_agent: dict[str, list[tuple[int, datetime]]] = {}
    # Most notes are in no burst, so nothing more of them is read
    for row, who, created in memory.index.notes.agents_at_work(
        rows_passing(memory, Query(order="created"))
    ):
        rows_by_agent.setdefault(who, []).append((row, parse_stamp(created)))
    for rows in rows_by_agent.values():
        for burst in _runs_of(rows):
            if len(burst) >= _NOTES_OF_BURST:
                yield memory.index.notes.in_order(burst)


def _runs_of(rows: Sequence[tuple[int, datetime]]) -> Iterator[list[int]]:
    """Rows, the oldest first, cut into runs that each last no longer than a burst."""
    run: list[int] = []
    begun = None
    for row, moment in rows:
        if begun is None or moment - begun > _BURST_LASTS:
            yield run
            run = []
            begun = moment
        run.append(row)
    yield run


def _ask_bursts(memory: Any) -> Iterator[ReviewItem]:
    for infos in _bursts(memory):
        name = author(infos[0].provenance)
        day = infos[0].created[:10]
        mark = sha256("\0".join(sorted(info.id for info in infos)).encode())[:12]
        text = f"{name} wrote {len(infos)} notes within some minutes on {day}. Keep them?"
        refs = tuple(info.id for info in infos)
        choices = (KEEP, "keep them"), (DELETE, "delete them all")
        yield ReviewItem(f"burst:{mark}", "burst", text, refs, choices)


def _answer_burst(memory: Any, item: ReviewItem, choice: str) -> bool:
    if choice != DELETE:
        return False
    for infos in _bursts(memory):
        if {info.id for info in infos} == set(item.refs):
            memory.delete(*infos)
            return True
    raise NotFound(item.key, "the open questions")


BURSTS = ReviewSource(_ask_bursts, _answer_burst)
"""The question about many notes that one agent made in a hurry (docs/trust.md)."""


def ask(session: WritingSession, name: str, root: Path, default: bool) -> None:
    """Note that the caller asks for this project. Raises ProjectRefused when the owner has refused
    it, or too much waits."""
    request_key = sha256(json.dumps([name, str(root)]).encode())
    key = f"project:{request_key[:12]}"
    with session.change(_ASK, (PRIVATE, ""), fresh=False) as change:
        requests = _requests(session)
        if key in requests:
            return
        if len(requests) >= _MOST_REQUESTS:
            raise ProjectRefused(
                str(root), f"{_MOST_REQUESTS} folders wait for the owner's answer (memory review)"
            )
        row = {"name": name, "folder": str(root), "default": default, "agent": session.agent}
        row["time"] = stamp(session.engine.clock())
        change.steps.append(session.engine.ledger.review_rows.step(REQUEST, key, row, kept=False))


def asked_by(session: HomeSession, agent: str) -> list[str]:
    """The keys of what an agent asked for and has no answer to."""
    return [key for key, row in _requests(session).items() if row.get("agent") == agent]


def _requests(session: HomeSession) -> dict[str, dict[str, Any]]:
    """The requests of agents, by key."""
    return session.engine.ledger.review_values(REQUEST)


def _ask_requests(memory: ReviewVerbs) -> Iterator[ReviewItem]:
    for key, row in _requests(memory).items():
        text = f'Agent {row.get("agent")} asks for the folder {row.get("folder")} as project "{row.get("name")}".'
        yield ReviewItem(
            key, "project", text, (str(row.get("folder")),), (("y", "add it"), ("n", "refuse"))
        )


def _answer_request(memory: Any, item: ReviewItem, choice: str) -> bool:
    """Add the project that an agent asked for, or refuse it for good.

    Returns whether it was added.
    """
    if choice != "y":
        return False
    row = _requests(memory)[item.key]
    memory.add_project(str(row["name"]), str(row["folder"]), row.get("default") is True)
    with memory.change(_ASK, (PRIVATE, ""), fresh=False) as change:
        rows = memory.engine.ledger.review_rows
        change.steps.append(rows.step(REQUEST, item.key, None, kept=False))
    return True


REQUESTS = ReviewSource(_ask_requests, _answer_request)
"""The question about a folder that an agent asks for as a project."""


def suspicious_notes(memory: ReviewVerbs) -> list[NoteInfo]:
    """The notes that seem to hold instructions and that the owner has not found fine."""
    return [info for info in _suspicious(memory) if memory.is_held_back(info)]
