"""Lessons of sessions as questions to the owner: remember it? (engine/review.py)

Each quotes exactly what a person typed, or a command that failed and the one that worked then.
Nothing becomes a note without a yes, and only the roles of the two commands are put in our words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from memoranda.engine.review import ReviewBatch, ReviewItem, ReviewSource
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import NotFound
from memoranda.note.links import slug
from memoranda.note.markdown import Record
from memoranda.query import Query
from memoranda.sources.layout import Layout
from memoranda.text.unicode import flat, one_line
from memoranda.transcripts.index import LessonRow, TraceIndex, TurnRow
from memoranda.transcripts.lessons import LessonKind
from memoranda.transcripts.mask import Mask
from memoranda.transcripts.search import raw_text, ref_of

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

KIND = "lesson"
_VERB = "review"
_KINDS = (LessonKind.REQUEST, LessonKind.DECISION, LessonKind.CORRECTION, LessonKind.FIX)
# Proposals that are looked for at once, the newest.
_MOST = 200
_REDACTED = "[redacted:"
# Characters of a command in a proposal.
_COMMAND = 300
# Files named in a proposal.
_MOST_FILES = 20
_YES = "remember it"
_CATEGORIES = {LessonKind.DECISION: "decisions", LessonKind.FIX: "lessons"}


class Proposal(NamedTuple):
    """Something that may be remembered: its words, where it was said, and what was changed then."""

    key: str
    kind: LessonKind
    text: str
    turn: TurnRow
    time: datetime
    files: tuple[str, ...]

    @property
    def has_time(self) -> bool:
        """Whether its transcript says when it was said."""
        return self.time.year > 1970

    @property
    def id(self) -> str:
        """That of the memory it becomes: storing it twice is storing it once."""
        return str(uuid5(NAMESPACE_URL, f"memoranda-{self.key}"))


def proposals(memory: MemorySession) -> Iterator[Proposal]:
    """The lessons that are neither a memory nor decided, newest first."""
    path = Layout(memory.home).transcripts
    if not memory.settings.transcripts or not path.exists():
        return
    mask = Mask(memory.gate_rules())
    decided = memory.decisions()
    upkeep = Upkeep(memory)
    count = 0
    try:
        with TraceIndex(path, may_write=False) as index:
            for row in index.lessons(_KINDS):
                if _key(row) in decided or count == _MOST:
                    continue
                result = _proposal(index, mask, row)
                if result is not None and not _is_known(memory, upkeep, result):
                    count += 1
                    yield result
    except sqlite3.Error:
        # Another process is rebuilding it.
        return


def count_proposals(memory: MemorySession) -> int:
    """How many proposals exist, up to a few hundred."""
    return sum(1 for _ in proposals(memory))


def _key(row: LessonRow) -> str:
    return f"{KIND}:{row.mark & (1 << 64) - 1:016x}"


def _is_known(memory: MemorySession, upkeep: Upkeep, result: Proposal) -> bool:
    """Whether a memory says it already, or was made of it."""
    # The id is made of the lesson, so that a note made of it is recognised.
    if upkeep.is_there(result.id):
        return True
    return memory.list(Query(contains=result.text), limit=1)[1] > 0


def _proposal(index: TraceIndex, mask: Mask, row: LessonRow) -> Proposal | None:
    """The words of a lesson; None where its transcript is gone, or it is not fit to be remembered."""
    turn = index.turns([row.turn]).get(row.turn)
    if turn is None:
        return None
    text = mask.clean(_words(index, row, turn)).strip()
    if not text or _REDACTED in text or mask.is_suspicious(text):
        return None
    changed = filter(None, map(raw_text, index.files_changed(turn.exchange)))
    files = tuple(dict.fromkeys(changed))[:_MOST_FILES]
    time = datetime.fromtimestamp(row.time or 0, UTC)
    return Proposal(_key(row), LessonKind(row.kind), text, turn, time, files)


def _words(index: TraceIndex, row: LessonRow, turn: TurnRow) -> str:
    """The words of a lesson, secrets included; "" where its transcript is gone."""
    whole = raw_text(turn)
    if whole is None:
        return ""
    if row.kind != LessonKind.FIX:
        return whole[row.start : row.stop]
    for working_turn in index.turns(filter(None, [row.other])).values():
        worked = raw_text(working_turn)
        if worked is not None:
            return _fix(turn, whole, worked)
    return ""


def _fix(turn: TurnRow, failed: str, worked: str) -> str:
    """The sentence about a command that failed, and the one that worked then."""
    where = ""
    project = Path(turn.folder).name
    if project:
        where = f" in {project}"
    first = one_line(failed)[:_COMMAND]
    second = one_line(worked)[:_COMMAND]
    return f"`{first}` failed{where}; `{second}` worked then."


def _ask(memory: MemorySession) -> Iterator[ReviewItem]:
    for result in proposals(memory):
        turn = result.turn
        day = ""
        if result.has_time:
            day = f"{result.time:%Y-%m-%d}"
        place = ", ".join(filter(None, (turn.agent, Path(turn.folder).name, day)))
        line = f'"{flat(one_line(result.text))}" ({flat(place)})'
        ref = ref_of(turn)
        text = f"Remember what was said in a session? {line} memory transcripts show {ref}"
        choices = (("y", _YES), ("n", "no"))
        yield ReviewItem(result.key, KIND, text, (ref,), choices, (line,))


def _answer(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    if choice != "y":
        return False
    _remember(memory, [item])
    return True


def _remember(memory: MemorySession, items: Sequence[ReviewItem]) -> None:
    """Make memories of these, in one change."""
    keys = {item.key for item in items}
    # A question shown may be outdated: only present proposals are stored.
    chosen = [result for result in proposals(memory) if result.key in keys]
    if not chosen:
        raise NotFound(items[0].key, "the open questions")
    Upkeep(memory).put([_record(memory, result) for result in chosen], _VERB)


def _record(memory: MemorySession, result: Proposal) -> Record:
    from memoranda.jobs.classify import category_of_text

    category = _CATEGORIES.get(result.kind)
    if category is None:
        category = category_of_text(memory.settings, result.text, result.time)
    project = slug(Path(result.turn.folder).name)
    further: dict[str, Any] = {"source_ref": f"{result.turn.agent}:{ref_of(result.turn)}"}
    if result.files:
        further["files"] = list(result.files)
    now = memory.clock()
    created = now
    if result.has_time:
        created = result.time
    return Record(
        result.id,
        result.text,
        category,
        created,
        now,
        tags=tuple(filter(None, [project])),
        source=f"transcript-{result.turn.agent}",
        further=further,
    )


LESSONS = ReviewSource(
    _ask,
    _answer,
    ReviewBatch(
        "Remember these {} things of your sessions, each as shown?",
        "remember them",
        "none of them",
        _remember,
    ),
)
"""The question about what sessions taught (docs/transcripts.md)."""
