"""Ask the owner questions, and carry out the answers (contract 001, 18).

Each kind of question has an entry in SOURCES. The entry finds the questions of this kind and
carries out the answers. Some answers change notes. Others, such as "keep them apart", change no
note. They are stored in the ledger, so that the question is not asked again. In both cases, the
answer is a change that can be undone.

Agents can ask for a folder as a project. Such a request is kept in the ledger until the owner
answers it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, cast

from memoranda.clock import parse_stamp, stamp
from memoranda.engine.contents import rows_passing
from memoranda.engine.engine import verb
from memoranda.engine.history.restoring import RestoreVerbs
from memoranda.engine.session import HomeSession
from memoranda.engine.suspicion import KEEP, suspicion
from memoranda.engine.telling.manner import author
from memoranda.engine.transaction import Transaction, WritingSession
from memoranda.errors import InvalidInput, NotFound, ProjectRefused
from memoranda.index.rows import NoteInfo
from memoranda.ledger.review_rows import ANSWER, REQUEST
from memoranda.query import Query
from memoranda.sources.base import sha256
from memoranda.sources.layout import PRIVATE
from memoranda.text.unicode import flat

VERB = "review"
# The letter of the answer that deletes notes.
DELETE = "d"
# A longer title is cut in a question.
_TITLE_CHARACTERS = 60
LIMIT = 50
"""How many questions `review` returns by default."""
# If a kind has more open questions than this, and has a batch, its questions are combined into one.
_MAX_SINGLE_QUESTIONS = 3
# How many questions are combined into one at most, so that their list fits on a screen.
_MAX_QUESTIONS_IN_BATCH = 25
# The middle of the key of a combined question, such as `merge:all:0123456789ab`.
_BATCH_MARK = ":all:"
# Digits of the hash in a key.
_KEY_DIGITS = 12
# The verb of an agent's request and of the answer to it.
_ASK = "ask"
# If an agent writes this many notes in this time, the owner is asked about them.
_NOTES_OF_BURST = 50
_BURST_TIME = timedelta(minutes=10)
# How many requests of agents may wait.
_MAX_REQUESTS = 100


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A question to the owner.

    key: begins with `kind:`. It changes when the notes change that the question is about.
    kind: the kind of question.
    text: the question in one line.
    refs: the ids, or other references, of the notes that the question is about.
    choices: pairs of the letter to press and its effect. The letters `s`, `q` and `u` are not used.
    lines: for a combined question, one line for each of its questions.
    subject: the text that the question quotes, for a list of questions. "" if it quotes none.
    quotes: the statements that the question compares, in the order of `refs`. () if it does not
        compare statements.
    due: when the reminder is due that the question is about. None for another question, and for a
        reminder without a time.
    phrase: the words of a note that name this time. "" if they are not known.
    """

    key: str
    kind: str
    text: str
    refs: tuple[str, ...]
    choices: tuple[tuple[str, str], ...]
    lines: tuple[str, ...] = ()
    subject: str = ""
    quotes: tuple[Quote, ...] = ()
    due: datetime | None = None
    phrase: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """One of two statements that a question of `review` compares.

    name: the subject of the statement: `Anna: city`.
    value: what it says about the subject: `Berlin`.
    line: the number of its line in the file, counted from 1. 0 if the statement is a sentence.
    start, stop: the place of the sentence in the text below the header. Both are 0 for a line.
    notes: how many notes say the same.
    writers: how many different writers these notes have.
    """

    name: str
    value: str
    line: int = 0
    start: int = 0
    stop: int = 0
    notes: int = 1
    writers: int = 1


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """An answer that can be given to many questions of one kind at once.

    letter: the letter of the answer.
    label: its effect on all of them, as choices show it.
    apply: carries it out for all of them as one change. Its first argument is the open Memory. None
        if the answer is only stored.
    """

    letter: str
    label: str
    apply: Callable[[Any, Sequence[ReviewItem]], object] | None = None


@dataclass(frozen=True, slots=True)
class ReviewBatch:
    """Combines many questions of one kind into one question.

    text: the question, with `{}` for the number of the questions.
    yes, no: the effects of the answers `y` and `n`, as choices show them.
    apply: carries out the answer `y` to all questions as one change. Its first argument is the open
        Memory. The answer `n` is stored as the answer `n` to each question.
    """

    text: str
    yes: str
    no: str
    apply: Callable[[Any, Sequence[ReviewItem]], object]


@dataclass(frozen=True, slots=True)
class ReviewSource:
    """Finds the questions of one kind, and carries out the answers.

    The first argument of its functions is the open Memory.

    find: yields the present questions, the most urgent first. Answered questions are included.
    apply: carries out an answer. It returns True if it changed notes, so that `find` no longer
        yields the question. After False, the caller stores the answer.
    batch: how questions of this kind are combined to one. None if they are not.
    shared: the answers that can be given to many questions at once, if there is no batch. A batch
        has its own list of them.
    """

    find: Callable[[Any], Iterable[ReviewItem]]
    apply: Callable[[Any, ReviewItem, str], bool]
    batch: ReviewBatch | None = None
    shared: tuple[SharedAnswer, ...] = ()


SOURCES = {
    "project": "memoranda.engine.review:REQUESTS",
    "suspicious": "memoranda.engine.review:SUSPICIOUS",
    "reminder": "memoranda.jobs.questions:REMINDERS",
    "contradiction": "memoranda.jobs.contradictions:CONTRADICTIONS",
    "claim": "memoranda.engine.telling.profile:CLAIMS",
    "burst": "memoranda.engine.review:BURSTS",
    "lesson": "memoranda.transcripts.proposals:LESSONS",
    "merge": "memoranda.jobs.questions:MERGES",
    "category": "memoranda.jobs.questions:CATEGORIES",
    "archive": "memoranda.jobs.questions:ARCHIVES",
}
"""The ReviewSource of each kind of question, as `module:name`.

Questions are asked in this order. The sources are not imported here, because the engine may not
import the jobs.
"""


def source(kind: str) -> ReviewSource:
    """Import and return the source of the questions of one kind."""
    module, _, name = SOURCES[kind].partition(":")
    return cast(ReviewSource, getattr(import_module(module), name))


def shared_answers(kind: str) -> tuple[SharedAnswer, ...]:
    """Return the answers that can be given to many questions of one kind at once."""
    question_source = source(kind)
    batch = question_source.batch
    if batch is None:
        return question_source.shared
    return (SharedAnswer("y", batch.yes, batch.apply), SharedAnswer("n", batch.no))


class ReviewVerbs(RestoreVerbs):
    """The verbs `review` and `decide`. They are for the owner: an agent gets no questions."""

    def review(
        self, *, limit: int = LIMIT, offset: int = 0, kind: str | None = None
    ) -> list[ReviewItem]:
        """List the open questions (see `Memory.review`), in the order of SOURCES.

        kind: only questions of this kind. None means all kinds.
        """
        first = max(offset, 0)
        # A limit of 0 means all.
        end = first + limit if limit > 0 else None
        return list(islice(self._open_items(kind), first, end))

    def _open_items(self, kind: str | None) -> Iterator[ReviewItem]:
        """Yield the open questions.

        kind: yield only questions of this kind, and do not combine them. None means all kinds, and
            many questions of one kind are combined.
        """
        if kind is not None and kind not in SOURCES:
            raise InvalidInput(f'invalid kind "{kind}" (one of {", ".join(SOURCES)})')
        if self.agent is not None:
            return
        if kind:
            yield from self._open_of(kind)
            return
        for next_kind in SOURCES:
            items = self._open_of(next_kind)
            if source(next_kind).batch is None:
                yield from items
            else:
                yield from _combined(next_kind, list(items))

    def _open_of(self, kind: str) -> Iterator[ReviewItem]:
        """Yield the questions of one kind that have no stored answer."""
        decisions = self.decisions()
        return (item for item in source(kind).find(self) if item.key not in decisions)

    def confirm(self, transaction: Transaction, infos: Iterable[NoteInfo]) -> None:
        """Record in a change that the owner confirmed notes, so that they are not mere claims of an
        agent.

        Nothing is recorded if the caller is an agent, or if the owner wrote all of these notes.
        """
        unconfirmed = [info for info in infos if info.provenance.trust != "owner"]
        if self.agent is not None or not unconfirmed:
            return
        self._answer(transaction, [self.claim(info) for info in unconfirmed], KEEP)

    @verb
    def confirm_notes(self, infos: Sequence[NoteInfo]) -> None:
        """Store that the owner confirms notes. Raises InvalidInput for an agent."""
        if self.agent is not None:
            raise InvalidInput("only the owner confirms what agents noted")
        with self.change(VERB, fresh=False) as transaction:
            self.confirm(transaction, infos)

    def decide(self, question: str | ReviewItem, choice: str) -> ReviewItem:
        """Answer a question (see `Memory.decide`).

        question: the question or its key.
        choice: the letter of the answer, one of the question's `choices`.
        """
        if self.agent is not None:
            raise InvalidInput("only the owner decides; run memory review without an agent's name")
        item, items = self._parts_of(question)
        letters = [letter for letter, _ in item.choices]
        if choice not in letters:
            raise InvalidInput(f'invalid choice "{choice}" (one of {", ".join(letters)})')

        has_changed_notes = self._apply_answer(item, items, choice)
        # Without a change of notes, the question would be asked again. So the answer is stored.
        if not has_changed_notes:
            self._store_answers([single_item.key for single_item in items], choice)
        return item

    def _apply_answer(self, item: ReviewItem, items: Sequence[ReviewItem], choice: str) -> bool:
        """Carry out an answer, and return whether it changed notes.

        item: the question.
        items: the single questions that are combined in it. For a single question, only itself.
        choice: the letter of the answer.
        """
        question_source = source(_kind_of(item.key))
        is_combined = len(items) > 1
        if not is_combined:
            return question_source.apply(self, item, choice)
        # Only the answer `y` to a combined question has an effect. `n` leaves the notes as they are.
        if question_source.batch is None or choice != "y":
            return False
        question_source.batch.apply(self, items)
        return True

    def decide_all(self, keys: Iterable[str], choice: str) -> list[ReviewItem]:
        """Give the same answer to many open questions of one kind, as one change.

        keys: the keys of the questions. Questions that are no longer open or do not offer this
            answer are skipped.
        choice: the letter of one of `shared_answers`.

        Returns the questions that were answered. Raises InvalidInput, and NotFound if none of the
        questions is open.
        """
        if self.agent is not None:
            raise InvalidInput("only the owner decides; run memory review without an agent's name")
        chosen_keys = set(keys)
        kind = _kind_of_all(chosen_keys)
        answer = _shared_answer(kind, choice)
        items = [
            item
            for item in self._open_of(kind)
            if item.key in chosen_keys and _offers(item, choice)
        ]
        if not items:
            raise NotFound(", ".join(sorted(chosen_keys))[:100], "the open questions")
        if answer.apply is None:
            self._store_answers([item.key for item in items], choice)
        else:
            answer.apply(self, items)
        return items

    def _parts_of(self, question: str | ReviewItem) -> tuple[ReviewItem, list[ReviewItem]]:
        """Return a question, and the single questions that are combined in it.

        question: the question or its key. A single question is returned with itself.

        Raises InvalidInput, NotFound.
        """
        if isinstance(question, str):
            return self._open_question(question)
        may_be_combined = len(question.lines) > 1
        if not may_be_combined:
            return question, [question]
        return self._open_question(question.key)

    def _open_question(self, key: str) -> tuple[ReviewItem, list[ReviewItem]]:
        """Return the open question with a key, and the single questions that are combined in it.

        A single question is returned with itself. Raises NotFound, and InvalidInput if the single
        questions are no longer the same.
        """
        kind = _kind_of(key)
        items: list[ReviewItem] = []
        if kind in SOURCES:
            items = list(self._open_of(kind))
        for item in items:
            if item.key == key:
                return item, [item]
        for item in _combined(kind, items):
            if item.key == key:
                return item, items[:_MAX_QUESTIONS_IN_BATCH]
        if key.startswith(f"{kind}{_BATCH_MARK}"):
            # The key has a hash of the single questions, so other questions have another key.
            raise InvalidInput(
                "the list of this question changed meanwhile", "Ask for the questions again."
            )
        raise NotFound(key, "the open questions")

    @verb
    def _store_answers(self, keys: Iterable[str], choice: str) -> None:
        """Store the same answer to several questions, as one change.

        keys: the keys of the questions.
        choice: the letter of the answer.
        """
        with self.change(VERB, (PRIVATE, VERB), fresh=False) as transaction:
            self._answer(transaction, keys, choice)

    def _answer(self, transaction: Transaction, keys: Iterable[str], choice: str) -> None:
        """Add to a change the same answer to several questions.

        keys: the keys of the questions.
        choice: the letter of the answer.
        """
        row = {"choice": choice, "time": stamp(self.clock())}
        rows = self.engine.ledger.review_rows
        transaction.steps += [rows.step(ANSWER, key, row) for key in dict.fromkeys(keys)]

    def decisions(self) -> dict[str, dict[str, Any]]:
        """Return the stored answers, by the key of the question.

        Raises StorageError if the answers of an earlier version are in a damaged file.
        """
        return self.engine.ledger.review_values(ANSWER)


def _kind_of(key: str) -> str:
    """Return the kind of question from a key: `merge` from `merge:0123`."""
    return key.partition(":")[0]


def _offers(item: ReviewItem, choice: str) -> bool:
    """Whether a question can be answered with a letter together with other questions.

    choice: the letter of the answer.
    """
    # The answer `y` of a batch takes the proposal of each question.
    has_batch = source(item.kind).batch is not None
    return has_batch or choice in (letter for letter, _ in item.choices)


def _kind_of_all(keys: Iterable[str]) -> str:
    """Return the kind of the questions with these keys. Raises InvalidInput if they are of several."""
    kinds = {_kind_of(key) for key in keys}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if kind not in SOURCES:
        raise InvalidInput("choose questions of one kind")
    return kind


def _shared_answer(kind: str, choice: str) -> SharedAnswer:
    """Return the answer with this letter that many questions of a kind can get. Raises InvalidInput."""
    answers = {answer.letter: answer for answer in shared_answers(kind)}
    if choice not in answers:
        raise InvalidInput(f'invalid choice "{choice}" (one of {", ".join(answers)})')
    return answers[choice]


def _combined(kind: str, items: list[ReviewItem]) -> list[ReviewItem]:
    """Combine the first _MAX_QUESTIONS_IN_BATCH questions of a kind into one question.

    If there are only a few questions, or the kind has no batch, the questions are returned as they
    are.
    """
    batch = source(kind).batch if kind in SOURCES else None
    if batch is None or len(items) <= _MAX_SINGLE_QUESTIONS:
        return items
    first_items = items[:_MAX_QUESTIONS_IN_BATCH]
    keys = json.dumps([item.key for item in first_items])
    key = f"{kind}{_BATCH_MARK}{sha256(keys.encode())[:_KEY_DIGITS]}"
    count = str(len(first_items))
    if len(first_items) < len(items):
        count = f"{len(first_items)} of {len(items)}"
    refs: list[str] = []
    lines: list[str] = []
    for item in first_items:
        refs += item.refs
        lines += item.lines
    text = batch.text.format(count)
    choices = (("y", batch.yes), ("n", batch.no))
    return [
        ReviewItem(
            key=key, kind=kind, text=text, refs=tuple(refs), choices=choices, lines=tuple(lines)
        )
    ]


@verb
def _suspicious(memory: ReviewVerbs) -> list[NoteInfo]:
    """Return all notes that seem to hold injected instructions, confirmed ones included."""
    memory.engine.fresh()
    return memory.index.notes.suspicious()


def _ask_suspicious(memory: ReviewVerbs) -> Iterator[ReviewItem]:
    """Ask about each note that seems to hold injected instructions."""
    for info in _suspicious(memory):
        title = " ".join(info.title.split())
        if len(title) > _TITLE_CHARACTERS:
            title = f"{title[: _TITLE_CHARACTERS - 1]}…"
        place = flat(f"{info.project}/{info.path}")
        rules = ", ".join(info.suspicious)
        text = f'"{flat(title)}" ({place}) may hold instructions: {rules}'
        choices = ((KEEP, "it is fine, show it everywhere"), (DELETE, "delete the note"))
        key = suspicion(memory, info)
        yield ReviewItem(
            key=key,
            kind="suspicious",
            text=text,
            refs=(info.id,),
            choices=choices,
            subject=flat(title),
        )


def _answer_suspicious(memory: ReviewVerbs, item: ReviewItem, choice: str) -> bool:
    """Delete the note, unless the owner keeps it. Returns whether it was deleted.

    item: the question.
    choice: the letter of the answer.
    """
    if choice == KEEP:
        return False
    for info in _suspicious(memory):
        if suspicion(memory, info) == item.key:
            memory.delete(info)
            return True
    raise NotFound(item.key, "the open questions")


def _delete_suspicious(memory: ReviewVerbs, items: Sequence[ReviewItem]) -> None:
    """Delete the notes of these questions, as one change."""
    keys = {item.key for item in items}
    infos = [info for info in _suspicious(memory) if suspicion(memory, info) in keys]
    memory.delete(*infos)


SUSPICIOUS = ReviewSource(
    _ask_suspicious,
    _answer_suspicious,
    shared=(
        SharedAnswer(DELETE, "delete the notes", _delete_suspicious),
        SharedAnswer(KEEP, "they are fine, show them everywhere"),
    ),
)
"""The question about notes that seem to hold injected instructions (docs/gate.md)."""


def _bursts(memory: Any) -> Iterator[list[NoteInfo]]:
    """Yield the notes of each burst: many notes that one agent wrote within some minutes."""
    rows_by_agent: dict[str, list[tuple[int, datetime]]] = {}
    # Few notes belong to a burst. So at first only the writer and the time of each note are read.
    rows = rows_passing(memory, Query(order="created"))
    for row, who, created in memory.index.notes.agents_at_work(rows):
        rows_by_agent.setdefault(who, []).append((row, parse_stamp(created)))
    for dated_rows in rows_by_agent.values():
        for burst in _split_by_time(dated_rows):
            if len(burst) >= _NOTES_OF_BURST:
                yield memory.index.notes.in_order(burst)


def _split_by_time(dated_rows: Sequence[tuple[int, datetime]]) -> Iterator[list[int]]:
    """Split the notes of an agent into groups, each written within the time of a burst.

    dated_rows: pairs of the row of a note and the time of its creation, the oldest first.

    Yields the rows of each group.
    """
    group: list[int] = []
    group_begins = None
    for row, created in dated_rows:
        if group_begins is None:
            group_begins = created
        if created - group_begins > _BURST_TIME:
            yield group
            group = []
            group_begins = created
        group.append(row)
    yield group


def _ask_bursts(memory: Any) -> Iterator[ReviewItem]:
    """Ask about each burst of notes."""
    for infos in _bursts(memory):
        name = author(infos[0].provenance)
        day = infos[0].created[:10]
        ids = "\0".join(sorted(info.id for info in infos))
        mark = sha256(ids.encode())[:_KEY_DIGITS]
        text = f"{name} wrote {len(infos)} notes within some minutes on {day}. Keep them?"
        refs = tuple(info.id for info in infos)
        choices = ((KEEP, "keep them"), (DELETE, "delete them all"))
        yield ReviewItem(key=f"burst:{mark}", kind="burst", text=text, refs=refs, choices=choices)


def _answer_burst(memory: Any, item: ReviewItem, choice: str) -> bool:
    """Delete the notes of a burst if the owner chose that. Returns whether they were deleted.

    item: the question.
    choice: the letter of the answer.
    """
    if choice != DELETE:
        return False
    for infos in _bursts(memory):
        if {info.id for info in infos} == set(item.refs):
            memory.delete(*infos)
            return True
    raise NotFound(item.key, "the open questions")


BURSTS = ReviewSource(_ask_bursts, _answer_burst)
"""The question about many notes that one agent wrote within some minutes (docs/trust.md)."""


def ask(session: WritingSession, name: str, root: Path, default: bool) -> None:
    """Store the caller's request for a folder as a project, unless it is stored already.

    name: the name of the project.
    root: the folder of the project.
    default: whether it should become the default project.

    Raises ProjectRefused if too many requests wait for an answer.
    """
    request_hash = sha256(json.dumps([name, str(root)]).encode())
    key = f"project:{request_hash[:_KEY_DIGITS]}"
    with session.change(_ASK, (PRIVATE, ""), fresh=False) as transaction:
        requests = _requests(session)
        if key in requests:
            return
        if len(requests) >= _MAX_REQUESTS:
            raise ProjectRefused(
                str(root), f"{_MAX_REQUESTS} folders wait for the owner's answer (memory review)"
            )
        row = {"name": name, "folder": str(root), "default": default, "agent": session.agent}
        row["time"] = stamp(session.engine.clock())
        transaction.steps.append(
            session.engine.ledger.review_rows.step(REQUEST, key, row, kept=False)
        )


def asked_by(session: HomeSession, agent: str) -> list[str]:
    """Return the keys of an agent's requests that the owner has not answered yet."""
    return [key for key, row in _requests(session).items() if row.get("agent") == agent]


def _requests(session: HomeSession) -> dict[str, dict[str, Any]]:
    """Return the waiting requests of agents by key."""
    return session.engine.ledger.review_values(REQUEST)


def _ask_requests(memory: ReviewVerbs) -> Iterator[ReviewItem]:
    """Ask about each folder that an agent asks for as a project."""
    choices = (("y", "add it"), ("n", "refuse"))
    for key, row in _requests(memory).items():
        folder = row.get("folder")
        text = (
            f'Agent {row.get("agent")} asks for the folder {folder} as project "{row.get("name")}".'
        )
        subject = str(row.get("name"))
        yield ReviewItem(
            key=key,
            kind="project",
            text=text,
            refs=(str(folder),),
            choices=choices,
            subject=subject,
        )


def _answer_request(memory: Any, item: ReviewItem, choice: str) -> bool:
    """Add the project that an agent asked for, if the owner chose that.

    item: the question.
    choice: the letter of the answer.

    Returns whether the project was added. If not, the caller stores the refusal, so that the
    question is not asked again.
    """
    if choice != "y":
        return False
    row = _requests(memory)[item.key]
    memory.add_project(str(row["name"]), str(row["folder"]), row.get("default") is True)
    with memory.change(_ASK, (PRIVATE, ""), fresh=False) as transaction:
        rows = memory.engine.ledger.review_rows
        transaction.steps.append(rows.step(REQUEST, item.key, value=None, kept=False))
    return True


REQUESTS = ReviewSource(_ask_requests, _answer_request)
"""The question about a folder that an agent asks for as a project."""


def suspicious_notes(memory: ReviewVerbs) -> list[NoteInfo]:
    """Return the notes that seem to hold instructions and that the owner has not confirmed."""
    return [info for info in _suspicious(memory) if memory.is_held_back(info)]
