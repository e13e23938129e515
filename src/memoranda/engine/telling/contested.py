"""Find notes that contradict each other: they claim different values for one subject.

A claim is a sentence such as "The port is 8080" (note/claims.py). `memory review` asks the owner
which note holds. Until it is answered, the newer note comes first wherever both are shown, and the
older one gets a mark that names the newer one. A note that says that something changed (note/changes.py)
marks older ones in the same way, and nobody is asked. But what the owner wrote or confirmed comes before an
unconfirmed note of somebody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from memoranda.engine.engine import Engine
from memoranda.errors import MemorandaError
from memoranda.index.index import Index
from memoranda.index.rows import NoteInfo, day_of
from memoranda.index.told_notes import Mark
from memoranda.ledger.review_rows import ANSWER
from memoranda.note.model import ARCHIVED, CATEGORY_PROJECT, TRACE_PROJECT
from memoranda.sources.base import sha256
from memoranda.text.unicode import flat, one_line

if TYPE_CHECKING:
    from memoranda.index.claims import ClaimRow
    from memoranda.ledger.change import Touched
    from memoranda.ledger.history import History
    from memoranda.note.claims import Claim

T = TypeVar("T")
KIND = "contradiction"
# With more values than this, a subject is a list.
_MOST_VALUES = 3
# Digits of an id that people type.
_ID_DIGITS = 8


class Reader(Protocol):
    """The parts of an open memory that this module needs.

    engine: the open home, which all callers share.
    index: the index of the home.
    clock: returns the present time.
    """

    engine: Engine
    index: Index
    clock: Callable[[], datetime]

    def sees(self, scope: str) -> bool:
        """Whether the caller may see notes of `scope`."""

    def is_held_back(self, info: NoteInfo) -> bool:
        """Whether a note may hold instructions that somebody planted, so that it is not shown
        unasked.
        """

    def author_marks(self, info: NoteInfo) -> Sequence[Mark]:
        """Return the author of a note, and `unconfirmed`, unless its words are the owner's."""

    def origin_marks(self, info: NoteInfo) -> Sequence[Mark]:
        """Return the remarks on who wrote a note, and on who gave it its place."""

    def invalid_rows(self) -> set[int]:
        """Return the rows of the notes that are not valid now."""


class Statement(NamedTuple):
    """A claim, and the note that makes it.

    info: the note.
    claim: what the note says of a subject: a name and a value.
    """

    info: NoteInfo
    claim: Claim

    @property
    def moment(self) -> tuple[str, int]:
        """The sort key that puts statements in the order of time.

        It is the date that the header gives, or else the time of creation, and the note's row.
        """
        return (self.info.date or self.info.created, self.info.row)


class Contradiction(NamedTuple):
    """Two statements that cannot both be true.

    old: the older statement.
    new: the newer statement.
    statements: all statements about the subject, the oldest first. Only `contradictions` fills it.
    """

    old: Statement
    new: Statement
    statements: tuple[Statement, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Whether `memory review` asks which of the two holds, until the owner has answered."""
        from memoranda.note.claims import ClaimKind

        is_old_asked = self.old.claim.kind is ClaimKind.ASKED
        is_new_asked = self.new.claim.kind is ClaimKind.ASKED
        return is_old_asked and is_new_asked

    @property
    def key(self) -> str:
        """The key of the owner's answer in the ledger.

        It changes when either value changes, so that the owner is asked again.
        """
        parts = [self.old.claim.subject]
        for statement in (self.old, self.new):
            parts += [statement.info.id, statement.claim.value]
        joined_parts = "\0".join(parts).encode("utf-8", "surrogatepass")
        return f"{KIND}:{sha256(joined_parts)[:16]}"


def contradictions(memory: Reader) -> Iterator[Contradiction]:
    """Yield the contradictions between notes that the caller may see.

    Contradictions about which the owner has already decided are included.
    """
    subjects = memory.index.notes.contested()
    infos = valid_notes(memory, [row.note for row in chain.from_iterable(subjects)])
    for rows in subjects:
        statements = [Statement(infos[row.note], row.claim) for row in rows if row.note in infos]
        statements.sort(key=lambda statement: statement.moment)
        yield from _pairs(memory, statements)


def _pairs(memory: Reader, statements: Sequence[Statement]) -> Iterator[Contradiction]:
    """Yield each value about one subject together with the next newer value.

    statements: all statements about the subject, the oldest first.

    Yields nothing if the subject has more than _MOST_VALUES values: then it is a list, not a fact.
    """
    from memoranda.note.claims import differ

    # One statement for each value: of several with the same value, the latest counts.
    latest_of_each: list[Statement] = []
    for statement in statements:
        with_other_values = [
            earlier for earlier in latest_of_each if differ(earlier.claim, statement.claim)
        ]
        latest_of_each = [*with_other_values, statement]
    if len(latest_of_each) > _MOST_VALUES:
        return
    for old, new in pairwise(latest_of_each):
        # A note that names two values does not contradict itself.
        if old.info.row != new.info.row:
            pair = Contradiction(old, new, tuple(statements))
            yield _in_order(memory, pair)


def valid_notes(memory: Reader, rows: Iterable[int]) -> dict[int, NoteInfo]:
    """Return the notes in some rows that are valid now and that the caller may see, by row.

    Archived notes and traces of sessions are left out.

    rows: the rows of the notes in the index.
    """
    infos = memory.index.notes.infos(dict.fromkeys(rows))
    if not infos:
        return {}
    return _valid_among(memory, infos, memory.invalid_rows())


def _valid_among(
    memory: Reader, infos: Mapping[int, NoteInfo], invalid_rows: set[int]
) -> dict[int, NoteInfo]:
    """Return the notes that can take part in contradictions (see `valid_notes`), by row.

    infos: the notes by row.
    invalid_rows: the rows of all notes that are not valid now.
    """
    # Without the traces of sessions. The index may also have notes of a removed project.
    projects = memory.engine.sources.keys() - {TRACE_PROJECT}
    return {
        row: info
        for row, info in infos.items()
        if row not in invalid_rows
        and memory.sees(info.scope)
        and info.project in projects
        and info.phase != ARCHIVED
    }


class _ClaimingNotes:
    """The notes that make some claims, each read when it is first needed.

    A subject may have a hundred notes. Mostly one of them contradicts, so the others are not read.
    """

    def __init__(self, memory: Reader, infos: Iterable[NoteInfo]):
        """Begin with the notes that are known.

        infos: these notes.
        """
        self._memory = memory
        self._invalid_rows = memory.invalid_rows()
        infos_by_row = {info.row: info for info in infos}
        valid_infos = _valid_among(memory, infos_by_row, self._invalid_rows)
        # By row, the notes that were looked up. None for one that takes part in no contradiction.
        self._infos = {row: valid_infos.get(row) for row in infos_by_row}

    def contradiction(self, old: ClaimRow, new: ClaimRow) -> Contradiction | None:
        """Return the contradiction between two claims about one subject.

        None if the newer claim does not end the older one, or if one of the notes is not valid now
        or may not be seen by the caller.

        old, new: the claims, perhaps in the wrong order.
        """
        from memoranda.note.claims import ends

        # A claim of an older note can only be the newer one if the note was corrected later. Most
        # pairs in the wrong order are found here, without reading their notes.
        is_in_order = old.moment <= new.moment
        was_corrected = new.changed > old.time
        if not is_in_order and not was_corrected:
            return None
        if not ends(old.claim, new.claim):
            return None
        old_info = self._valid_info(old.note)
        new_info = self._valid_info(new.note)
        if old_info is None or new_info is None:
            return None
        return Contradiction(Statement(old_info, old.claim), Statement(new_info, new.claim))

    def _valid_info(self, row: int) -> NoteInfo | None:
        """Return the note in a row. None if it takes part in no contradiction."""
        if row not in self._infos:
            infos = self._memory.index.notes.infos([row])
            valid_infos = _valid_among(self._memory, infos, self._invalid_rows)
            self._infos[row] = valid_infos.get(row)
        return self._infos[row]


def newer_contradictions(memory: Reader, infos: Iterable[NoteInfo]) -> dict[int, Contradiction]:
    """Find newer notes that contradict these notes: row of the older note -> the contradiction.

    If several newer notes contradict an older one, the newest of them counts. Contradictions about
    which the owner has already decided are left out.
    """
    return _latest_unanswered(memory, list(infos), are_newer=False)


def older_contradictions(memory: Reader, infos: Iterable[NoteInfo]) -> dict[int, Contradiction]:
    """Find older notes that these notes contradict: row of the newer note -> the contradiction.

    If a note contradicts several older notes, the latest of them counts. Contradictions about which
    the owner has already decided are left out.
    """
    return _latest_unanswered(memory, list(infos), are_newer=True)


def _latest_unanswered(
    memory: Reader, infos: Sequence[NoteInfo], *, are_newer: bool
) -> dict[int, Contradiction]:
    """Return the contradiction of each note with the newest other note, by the row of the note.

    are_newer: whether these notes are the newer ones of the contradictions.
    """
    subjects = _disputed_claims(memory, infos)
    if not subjects:
        return {}
    notes = _ClaimingNotes(memory, infos)
    pairs: dict[int, Contradiction] = {}
    # By the row of a note, when the other claim of its pair was made.
    moments: dict[int, tuple[str, int]] = {}
    for claim_row, rivals in _rivals(subjects, infos):
        row = claim_row.note
        for rival in rivals:
            # Another statement of this note is contradicted by a newer note. The rivals that follow
            # are older still.
            if row in moments and moments[row] >= rival.moment:
                break
            if are_newer:
                pair = notes.contradiction(rival, claim_row)
            else:
                pair = notes.contradiction(claim_row, rival)
            if pair is not None and _is_unanswered(memory, pair):
                pairs[row] = pair
                moments[row] = rival.moment
                break
    return pairs


def unanswered_contradictions(memory: Reader, infos: Iterable[NoteInfo]) -> list[Contradiction]:
    """Return all contradictions between some notes and newer ones that the owner has not decided."""
    given_infos = list(infos)
    subjects = _disputed_claims(memory, given_infos)
    if not subjects:
        return []
    notes = _ClaimingNotes(memory, given_infos)
    pairs: list[Contradiction] = []
    for claim_row, rivals in _rivals(subjects, given_infos):
        for rival in rivals:
            pair = notes.contradiction(claim_row, rival)
            if pair is not None and _is_unanswered(memory, pair):
                pairs.append(pair)
    return pairs


def _disputed_claims(memory: Reader, infos: Iterable[NoteInfo]) -> list[list[ClaimRow]]:
    """Return the claims about each subject on which one of these notes and another note differ."""
    return memory.index.notes.disputed_claims({info.row for info in infos})


def _rivals(
    subjects: Iterable[Sequence[ClaimRow]], infos: Iterable[NoteInfo]
) -> Iterator[tuple[ClaimRow, Iterator[ClaimRow]]]:
    """Yield each claim in these notes with the claims about its subject in other notes.

    The newest of the others comes first. Two claims may still agree, and a note may not be valid.

    subjects: the claims about each subject.
    """
    given_rows = {info.row for info in infos}
    for claim_rows in subjects:
        newest_first = sorted(claim_rows, key=lambda row: row.moment, reverse=True)
        for claim_row in newest_first:
            if claim_row.note in given_rows:
                yield claim_row, _others(claim_row, newest_first)


def _others(claim_row: ClaimRow, claim_rows: Iterable[ClaimRow]) -> Iterator[ClaimRow]:
    """Yield the claims of other notes that are worded differently, in the same order."""
    for candidate in claim_rows:
        is_of_another_note = candidate.note != claim_row.note
        if is_of_another_note and candidate.claim.value != claim_row.claim.value:
            yield candidate


def _is_unanswered(memory: Reader, pair: Contradiction) -> bool:
    """Whether two statements are in their order, and the owner has not decided between them.

    pair: two statements about one subject that cannot both be true.
    """
    new = pair.new
    if _in_order(memory, pair).new is not new:
        return False
    # A note that is held back may have planted instructions. So it must not contradict others.
    if memory.is_held_back(new.info):
        return False
    return memory.engine.ledger.review_value(ANSWER, pair.key) is None


def _in_order(memory: Reader, pair: Contradiction) -> Contradiction:
    """Return two statements about one subject with the one that was made first as the older one.

    The note of a statement may be older than the statement: somebody has corrected its text since.

    pair: two statements, perhaps in the wrong order.
    """
    first, second = sorted((pair.old, pair.new), key=lambda statement: statement.moment)
    time_of_second, _ = second.moment
    # Of two notes that were both corrected, the one that was corrected last says what holds.
    first_correction = _number_of_correction(memory, first, time_of_second)
    if first_correction and first_correction > _number_of_correction(
        memory, second, time_of_second
    ):
        return pair._replace(old=second, new=first)
    return pair._replace(old=first, new=second)


def _number_of_correction(memory: Reader, statement: Statement, since: str) -> int:
    """Return the number of the change that brought a statement into the text of its note.

    0 if the text had its value before `since`. A note with a date of its own speaks of that date,
    whenever somebody corrects it, so the result is 0 for it, too.
    """
    info = statement.info
    # The file of most notes was not changed since.
    if info.date is not None or info.changed <= since:
        return 0
    history = memory.engine.ledger.history
    first_number = history.first_since(since)
    if first_number is None:
        return 0
    for step in reversed(history.placed_steps(info.project, info.path)):
        # This change and those before it were made before `since`.
        if step.number < first_number:
            return 0
        # An undo says nothing new.
        if step.verb != "undo" and _lacks(history, step.touched, statement.claim.value):
            return step.number
    return 0


def _lacks(history: History, touched: Touched, value: str) -> bool:
    """Whether a step changed a text that did not have a value. False if its text is not kept."""
    if touched.old is None or touched.old == touched.new:
        return False
    try:
        text = history.text(touched.old, touched.path)
    except MemorandaError:
        return False
    return value not in text.decode("utf-8", "replace")


def newer_marks(memory: Reader, infos: Iterable[NoteInfo]) -> dict[int, str]:
    """Return a mark for each note that a newer note contradicts, by row of the older note.

    The mark quotes the newer note: `newer: 8080 (1a2b3c4d, 2025-03-01)`.
    """
    return marks_of(memory, newer_contradictions(memory, infos))


def marks_of(memory: Reader, pairs: Mapping[int, Contradiction]) -> dict[int, str]:
    """Return the mark to show at the older note of each contradiction, by row.

    A mark has the newer value, and the name and day of the newer note:
    `newer: 8080 (1a2b3c4d, 2025-03-01)`. A newer note of an agent has its author behind the day:
    `newer: 8080 (1a2b3c4d, 2025-03-01, by claude, unconfirmed)`.

    pairs: the contradictions, by the row of the older note.
    """
    zone = memory.engine.settings.zone
    origin_marks = _once_for_each_note(memory.origin_marks)
    marks_by_row: dict[int, str] = {}
    for row, pair in pairs.items():
        info = pair.new.info
        authors = [mark.words for mark in origin_marks(info)]
        origin = ", ".join([name_of(info), day_of(info, zone), *authors])
        marks_by_row[row] = one_line(f"newer: {pair.new.claim.value} ({origin})")
    return marks_by_row


def name_of(info: NoteInfo) -> str:
    """Return a short name of a note that `find` understands.

    It is the first digits of a memory's id, or the permalink of any other note.
    """
    if info.project == CATEGORY_PROJECT:
        return info.id[:_ID_DIGITS]
    return flat(info.permalink)


def leader_rows_of(memory: Reader, pairs: Mapping[int, Contradiction]) -> dict[int, int]:
    """Return which note is shown first: row of a note -> row of the note that comes before it.

    Of two notes that contradict each other, the newer one comes first. But an unconfirmed note of
    somebody else never comes before the owner's.

    pairs: the contradictions, by the row of the older note.
    """
    author_marks = _once_for_each_note(memory.author_marks)
    leader_rows: dict[int, int] = {}
    for old_row, pair in pairs.items():
        new = pair.new.info
        # The words of the owner have no such marks.
        is_new_of_owner = not author_marks(new)
        is_old_of_owner = not author_marks(pair.old.info)
        if is_old_of_owner and not is_new_of_owner:
            leader_rows[new.row] = old_row
        else:
            leader_rows[old_row] = new.row
    return leader_rows


def _once_for_each_note(function: Callable[[NoteInfo], T]) -> Callable[[NoteInfo], T]:
    """Return a function that calls `function` once for each note, and then keeps its result.

    The newest note of a subject is in many contradictions.
    """
    results: dict[int, T] = {}

    def remembered(info: NoteInfo) -> T:
        if info.row not in results:
            results[info.row] = function(info)
        return results[info.row]

    return remembered


def with_leaders_first(
    items: Sequence[T], info_of: Callable[[T], NoteInfo], leader_rows: Mapping[int, int]
) -> list[T]:
    """Return the items in their order, except that the leader of a note comes before the note.

    If note 3 leads note 1, the notes 1, 2, 3, 4 become 3, 1, 2, 4.

    info_of: a function that returns the note of an item.
    leader_rows: the row of the leader of a note, by the row of the note.
    """
    result = list(items)
    for item in items:
        leader_row = leader_rows.get(info_of(item).row)
        if leader_row is None:
            continue
        # By identity: comparing the fields of hits would take longer than the search.
        item_position = next(
            position for position, moved_item in enumerate(result) if moved_item is item
        )
        # Only a leader behind the item is moved. One that is already before it stays there.
        for position in range(item_position, len(result)):
            if info_of(result[position]).row == leader_row:
                leader = result.pop(position)
                result.insert(item_position, leader)
                break
    return result


def contradicted_by(memory: Reader, project: str, path: str) -> Contradiction | None:
    """Return the contradiction between a note that was just written and an older note.

    None if the note contradicts nothing, or if the index does not have it.

    project, path: the place of the note.
    """
    info = memory.index.notes.get(project, path)
    if info is None:
        return None
    return older_contradictions(memory, [info]).get(info.row)


def remark_on_older(memory: Reader, pair: Contradiction) -> str:
    """Return a sentence for the writer of a note that contradicts an older one.

    For example: `An older note says otherwise: "Anna: Berlin" (1a2b3c4d, 2025-03-01).`

    pair: the older and the newer statement.
    """
    old = pair.old
    day = day_of(old.info, memory.engine.settings.zone)
    statement = f"{old.claim.name}: {old.claim.value}"
    return flat(f'An older note says otherwise: "{statement}" ({name_of(old.info)}, {day}).')


def remark_for_agent(memory: Reader, project: str, path: str) -> str:
    """Return what an agent is told of the older note that its new text contradicts.

    "" if it contradicts none.

    project, path: the place of the note that was just written.
    """
    contradiction = contradicted_by(memory, project, path)
    if contradiction is None:
        return ""
    remark = remark_on_older(memory, contradiction)
    if contradiction.is_asked:
        remark += " The user is asked which of the two holds."
    return remark
