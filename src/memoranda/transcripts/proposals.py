"""Asks the owner whether lessons of sessions should become memories (see engine/review.py).

A proposal quotes what a person typed, or a command that failed and the command that worked then.
Nothing becomes a memory without the owner's yes.
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
from memoranda.transcripts.originals import raw_text
from memoranda.transcripts.search import origin, ref_of

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

KIND = "lesson"
_VERB = "review"
_KINDS = (LessonKind.REQUEST, LessonKind.DECISION, LessonKind.CORRECTION, LessonKind.FIX)
# The newest proposals that are asked about at a time.
_MAX_PROPOSALS = 200
_REDACTED = "[redacted:"
# Characters of a command in a proposal.
_COMMAND_CHARACTERS = 300
# Files named in a proposal.
_MAX_FILES = 20
_YES = "remember it"
_CATEGORIES = {LessonKind.DECISION: "decisions", LessonKind.FIX: "lessons"}


class Proposal(NamedTuple):
    """A lesson that may become a memory.

    key: identifies the question.
    kind: the kind of lesson.
    text: the text of the memory.
    turn: the turn that it is from.
    time: when it was said. In 1970 if unknown.
    files: the files that were changed in the same exchange.
    """

    key: str
    kind: LessonKind
    text: str
    turn: TurnRow
    time: datetime
    files: tuple[str, ...]

    @property
    def has_time(self) -> bool:
        """Whether the transcript gives the time of the words."""
        return self.time.year > 1970

    @property
    def id(self) -> str:
        """The id of the memory that it becomes. It is always the same, so that no copy is stored."""
        return str(uuid5(NAMESPACE_URL, f"memoranda-{self.key}"))


def proposals(memory: MemorySession) -> Iterator[Proposal]:
    """Yield the lessons about which the owner has not decided, newest first.

    Lessons that are memories already are left out.
    """
    path = Layout(memory.home).transcripts
    if not memory.settings.transcripts or not path.exists():
        return
    mask = Mask(memory.rules_for_reading())
    decided = memory.decisions()
    upkeep = Upkeep(memory)
    count = 0
    try:
        with TraceIndex(path, may_write=False) as index:
            for row in index.lessons(_KINDS):
                if count == _MAX_PROPOSALS:
                    return
                if _key(row) in decided:
                    continue
                proposal = _proposal(index, mask, row)
                if proposal is not None and not _is_known(memory, upkeep, proposal):
                    count += 1
                    yield proposal
    except sqlite3.Error:
        # Another process is rebuilding it.
        return


def count_proposals(memory: MemorySession) -> int:
    """Count the proposals, up to _MAX_PROPOSALS."""
    return sum(1 for _ in proposals(memory))


def _key(row: LessonRow) -> str:
    """Return the key of the question about a lesson: `lesson:00a1…`."""
    # SQLite keeps the hash as a signed number.
    unsigned_mark = row.mark & (1 << 64) - 1
    return f"{KIND}:{unsigned_mark:016x}"


def _is_known(memory: MemorySession, upkeep: Upkeep, proposal: Proposal) -> bool:
    """Whether a memory says the same, or was made from this proposal.

    upkeep: finds memories by their ids.
    proposal: the lesson.
    """
    # A memory made from this proposal has its id.
    if upkeep.is_there(proposal.id):
        return True
    _, count = memory.list(Query(contains=proposal.text), limit=1)
    return count > 0


def _proposal(index: TraceIndex, mask: Mask, row: LessonRow) -> Proposal | None:
    """Make the proposal to remember a lesson.

    None if its transcript is gone, or if it has secrets. None, too, if it may be an injected
    instruction, or if the name of its folder may be one, since that becomes a tag.

    index: the transcripts.
    mask: finds secrets and suspicious words.
    row: the lesson.
    """
    turn = index.turns([row.turn]).get(row.turn)
    if turn is None:
        return None
    text = mask.clean(_lesson_text(index, row, turn)).strip()
    if not text or _REDACTED in text:
        return None
    if mask.is_suspicious(text) or mask.is_suspicious_name(origin(turn)):
        return None
    time = datetime.fromtimestamp(row.time or 0, UTC)
    files = _changed_files(index, mask, turn)
    return Proposal(
        _key(row), kind=LessonKind(row.kind), text=text, turn=turn, time=time, files=files
    )


def _changed_files(index: TraceIndex, mask: Mask, turn: TurnRow) -> tuple[str, ...]:
    """Return the paths of files that the exchange of a turn changed, each once.

    mask: finds secrets and suspicious words. A path with one of them is left out.
    """
    paths: dict[str, None] = {}
    for edit in index.files_changed(turn.exchange):
        path = raw_text(edit)
        if path and _may_be_named(mask, path):
            paths[path] = None
    return tuple(paths)[:_MAX_FILES]


def _may_be_named(mask: Mask, path: str) -> bool:
    """Whether the path of a changed file has no secret, and does not seem to instruct its reader.

    mask: finds secrets and suspicious words.
    """
    return mask.clean(path) == path and not mask.is_suspicious_name(path)


def _lesson_text(index: TraceIndex, row: LessonRow, turn: TurnRow) -> str:
    """Return the text of a lesson, secrets included, or "" if its transcript is gone."""
    whole = raw_text(turn)
    if whole is None:
        return ""
    if row.kind != LessonKind.FIX:
        return whole[row.start : row.stop]
    for working_turn in index.turns(filter(None, [row.other])).values():
        working_command = raw_text(working_turn)
        if working_command is not None:
            return _fix_sentence(turn, whole, working_command)
    return ""


def _fix_sentence(turn: TurnRow, failed_command: str, working_command: str) -> str:
    """Return a sentence such as "`npm tset` failed in shop; `npm test` worked then.".

    turn: the turn with the failed command, whose folder is the project.
    """
    where = ""
    project = Path(turn.folder).name
    if project:
        where = f" in {project}"
    failed = one_line(failed_command)[:_COMMAND_CHARACTERS]
    working = one_line(working_command)[:_COMMAND_CHARACTERS]
    return f"`{failed}` failed{where}; `{working}` worked then."


def _questions(memory: MemorySession) -> Iterator[ReviewItem]:
    """Yield a question for each proposal."""
    for proposal in proposals(memory):
        turn = proposal.turn
        day = f"{proposal.time:%Y-%m-%d}" if proposal.has_time else ""
        origin_words = [turn.agent, Path(turn.folder).name, day]
        place = ", ".join([word for word in origin_words if word])
        subject = flat(one_line(proposal.text))
        line = f'"{subject}" ({flat(place)})'
        ref = ref_of(turn)
        text = f"Remember what was said in a session? {line} memory transcripts show {flat(ref)}"
        choices = (("y", _YES), ("n", "no"))
        yield ReviewItem(
            proposal.key,
            kind=KIND,
            text=text,
            refs=(ref,),
            choices=choices,
            lines=(line,),
            subject=subject,
        )


def _answer(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    """Carry out the owner's choice. Returns whether something was stored."""
    if choice != "y":
        return False
    _remember(memory, [item])
    return True


def _remember(memory: MemorySession, items: Sequence[ReviewItem]) -> None:
    """Make memories of these questions, in one change. Raises NotFound if none is open any longer."""
    keys = {item.key for item in items}
    # The owner may answer an outdated question: only present proposals are stored.
    chosen = [proposal for proposal in proposals(memory) if proposal.key in keys]
    if not chosen:
        raise NotFound(items[0].key, "the open questions")
    Upkeep(memory).put([_record(memory, proposal) for proposal in chosen], _VERB)


def _record(memory: MemorySession, proposal: Proposal) -> Record:
    """Make the memory of a proposal."""
    from memoranda.jobs.classify import category_of_text

    category = _CATEGORIES.get(proposal.kind)
    if category is None:
        category = category_of_text(memory.settings, proposal.text, proposal.time)
    project = slug(Path(proposal.turn.folder).name)
    further: dict[str, Any] = {"source_ref": f"{proposal.turn.agent}:{ref_of(proposal.turn)}"}
    if proposal.files:
        further["files"] = list(proposal.files)
    now = memory.clock()
    return Record(
        proposal.id,
        proposal.text,
        category,
        created=proposal.time if proposal.has_time else now,
        updated=now,
        tags=(project,) if project else (),
        source=f"transcript-{proposal.turn.agent}",
        further=further,
    )


LESSONS = ReviewSource(
    _questions,
    _answer,
    ReviewBatch(
        "Remember these {} things of your sessions, each as shown?",
        "remember them",
        "none of them",
        _remember,
    ),
)
"""The questions about lessons of sessions (docs/transcripts.md)."""
