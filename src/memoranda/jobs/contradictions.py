"""Ask the owner which of two statements is true, if both cannot be.

"Anna lives in Berlin" and "Anna lives in Rome" may be in two notes, or in two lines of one note.
Statements are found in note/claims.py, contradictions of two notes in engine/telling/contested.py, and
contradictions of two lines here.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.engine.contents import contents, notes_repeating
from memoranda.engine.review import Quote, ReviewItem, ReviewSource, SharedAnswer
from memoranda.engine.telling.contested import KIND, Contradiction, Statement, contradictions
from memoranda.engine.telling.manner import author
from memoranda.errors import NotFound
from memoranda.index.rows import NoteInfo, day_of
from memoranda.note.claims import differ
from memoranda.note.edit import FindReplace
from memoranda.note.model import KV_PROJECT
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

# The answers: (letter, words).
_CHOICES = (("o", "the first holds now"), ("n", "the second holds now"), ("b", "both are true"))
# If a key has more values, it is a list, of which all values may be true.
_MOST_VALUES = 3
_KEY_VALUE = re.compile(r"([^:：\[\](){}/.]{1,40}?)\s*[:：]\s*(\S.*)")
# The final parenthesis of an observation, where "until" goes.
_CLOSING = re.compile(r"\)\s*$")
# The signs that end a sentence.
_STOP = re.compile(r"[.!。！]*\Z")


class Line(NamedTuple):
    """A line of a note that gives something a value, such as `- [fact] city: Berlin`.

    name: the thing, for people: `Anna: city`.
    value: `Berlin`.
    number: the number of the line, counted from 1.
    """

    name: str
    value: str
    number: int


class LinePair(NamedTuple):
    """Two lines of one note that contradict each other.

    info: the note.
    subject: the subject of the lines as a key, to tell questions apart: `city:`.
    first, second: the upper and the lower line.
    """

    info: NoteInfo
    subject: str
    first: Line
    second: Line

    @property
    def refs(self) -> tuple[str, str]:
        """The references of the two lines: `ID:LINE`."""
        return (f"{self.info.id}:{self.first.number}", f"{self.info.id}:{self.second.number}")

    @property
    def key(self) -> str:
        """The key of the question. It changes if one of the lines changes."""
        parts = [
            self.info.project,
            self.info.path,
            self.subject,
            *self.refs,
            self.first.value,
            self.second.value,
        ]
        joined_parts = "\0".join(parts).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(joined_parts).hexdigest()
        return f"{KIND}:{digest[:16]}"


@cache
def _rules() -> dict[str, Any]:
    """Read contradictions.toml.

    relations: the types of relations that have one target only, such as `lives_in`.
    no_keys: words before a colon that do not name a value.
    over: the pattern of a remark that a statement is over, such as `until 2025`.
    promising: the pattern of a line that may give something a value. A text without such lines is
        not parsed.
    """
    rules = tomllib.loads(Path(__file__).with_name("contradictions.toml").read_text("utf-8"))
    relations = rules["relations"].split()
    names = "|".join(re.escape(relation).replace("_", "[ _-]") for relation in relations)
    return {
        "relations": set(relations),
        "no_keys": set(rules["no_keys"].split()),
        "over": re.compile(rules["over"], re.I),
        "promising": re.compile(
            rf'^[ \t]*[-*+] (?:"?(?:{names})\b|[^:：\n]{{1,60}}[:：])', re.I | re.M
        ),
    }


def _line_pairs(memory: MemorySession) -> Iterator[LinePair]:
    """Yield pairs of lines in the same note that contradict each other."""
    query = Query(valid_at=memory.clock(), order="path")
    # Most notes have no two such lines, and need no parsing
    for info in notes_repeating(memory, query, _rules()["promising"]):
        # The value of an entry is data, not sentences.
        if info.project == KV_PROJECT:
            continue
        for subject, lines in _lines(memory, info).items():
            yield from _pairs_of(info, subject, lines)


def _lines(memory: MemorySession, info: NoteInfo) -> dict[str, list[Line]]:
    """Find the lines of a note that give something a single value, by their subject.

    `- lives_in [[Rome]]` has the subject `lives_in`, and `- [fact] City: Rome` has the subject
    `city:`. Lines that say that they are over are left out.
    """
    rules = _rules()
    lines: dict[str, list[Line]] = {}
    for edge in memory.outgoing(info):
        kind = re.sub("[ -]", "_", edge.type.lower())
        if kind in rules["relations"] and not rules["over"].search(edge.context or ""):
            line = Line(f"{info.title}: {kind}", edge.target, edge.line)
            lines.setdefault(kind, []).append(line)

    # An observation such as `City: Rome` gives a value, too.
    for observation in memory.observations(info):
        match = _KEY_VALUE.fullmatch(observation.content)
        if match is None or rules["over"].search(observation.context or ""):
            continue
        key = match[1].lower()
        if key not in rules["no_keys"]:
            line = Line(f"{info.title}: {match[1]}", match[2], observation.line)
            lines.setdefault(f"{key}:", []).append(line)
    return lines


def _pairs_of(info: NoteInfo, subject: str, lines: list[Line]) -> Iterator[LinePair]:
    """Yield the neighbouring lines about one thing with different values.

    subject: the thing as a key, such as `city:`.
    lines: the lines about it. They are sorted here.
    """
    lines.sort(key=lambda line: line.number)
    # Of lines with the same value, the last counts
    by_value = {_fold_text(line.value): line for line in lines}
    # A thing with so many values is a list, such as a diary.
    if len(by_value) > _MOST_VALUES:
        return
    for (first_value, first), (second_value, second) in pairwise(by_value.items()):
        # "Berlin, Mitte" only says more than "Berlin"
        is_more_precise = first_value in second_value or second_value in first_value
        if not is_more_precise:
            yield LinePair(info, subject, first, second)


def _fold_text(text: str) -> str:
    """Return a value in a form for comparing: lower case, without a final sign."""
    return " ".join(text.casefold().split()).strip(" .。!！")


def _ask(memory: MemorySession) -> Iterator[ReviewItem]:
    """Yield the questions, those about two notes first."""
    for pair in contradictions(memory):
        yield _note_question(memory, pair)
    for line_pair in _line_pairs(memory):
        yield _line_question(memory, line_pair)


def _note_question(memory: MemorySession, pair: Contradiction) -> ReviewItem:
    """Ask which of two notes is true: `Anna: city "Berlin" (2026-01-05) or "Rome" (2026-03-02)?`

    pair: the two statements.
    """
    old = pair.old
    new = pair.new
    zone = memory.settings.zone
    text = (
        f'{old.claim.name} "{old.claim.value}" ({day_of(old.info, zone)})'
        f' or "{new.claim.value}" ({day_of(new.info, zone)})?{_weights(pair)}'
    )
    return ReviewItem(
        key=pair.key,
        kind=KIND,
        text=" ".join(text.split()),
        refs=(old.info.id, new.info.id),
        choices=_CHOICES,
        subject=old.claim.value,
        quotes=tuple(_quote(pair, side) for side in (old, new)),
    )


def _quote(pair: Contradiction, side: Statement) -> Quote:
    """Return one statement of a contradiction as the question shows it.

    It tells how many notes and writers say the same.

    pair: the contradiction.
    side: its older or its newer statement.
    """
    claim = side.claim
    infos = _agreeing(pair, side) or [side.info]
    is_in_sentence = claim.stop > 0
    return Quote(
        claim.name,
        claim.value,
        # A statement in a sentence has offsets, any other is a whole line
        line=0 if is_in_sentence else claim.line,
        start=claim.start,
        stop=claim.stop,
        notes=len({info.id for info in infos}),
        writers=len({author(info.provenance) for info in infos}),
    )


def _agreeing(pair: Contradiction, side: Statement) -> list[NoteInfo]:
    """Return the notes that agree with one side of a contradiction.

    pair: the contradiction, with all statements about its subject.
    side: its older or its newer statement.
    """
    return [
        statement.info for statement in pair.statements if not differ(statement.claim, side.claim)
    ]


def _line_question(memory: MemorySession, pair: LinePair) -> ReviewItem:
    """Ask the owner which of two lines in one note is true."""
    day = day_of(pair.info, memory.settings.zone)
    text = f'{pair.first.name} "{pair.first.value}" ({day}) or "{pair.second.value}" ({day})?'
    return ReviewItem(
        key=pair.key,
        kind=KIND,
        text=" ".join(text.split()),
        refs=pair.refs,
        choices=_CHOICES,
        subject=pair.first.value,
        quotes=tuple(
            Quote(line.name, line.value, line.number) for line in (pair.first, pair.second)
        ),
    )


def _weights(pair: Contradiction) -> str:
    """Say how many notes state each of two values, and from how many sources.

    The notes of one agent count as one source. "" if each value is in one note.
    """
    counts = []
    descriptions = []
    for side in (pair.old, pair.new):
        infos = _agreeing(pair, side)
        note_count = len({info.id for info in infos})
        counts.append(note_count)
        descriptions.append(_count_of_sources(note_count, infos))
    has_one_note_each = counts == [1, 1]
    if has_one_note_each:
        return ""
    return f" The first: {descriptions[0]}; the second: {descriptions[1]}."


def _count_of_sources(count: int, infos: Sequence[NoteInfo]) -> str:
    """Say how many notes there are, and who wrote them: `3 notes of 2 sources`.

    count: the number of different notes among `infos`.
    """
    sources = sorted({author(info.provenance) for info in infos})
    noun = "note" if count == 1 else "notes"
    if len(sources) == 1:
        return f"{count} {noun} of {sources[0]} alone"
    return f"{count} {noun} of {len(sources)} sources"


def _apply(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    """Carry out an answer: mark the statement that is no longer true as ended today.

    item: the question.
    choice: `o` if the first (older) statement holds now, `n` if the second does, `b` for both.

    Returns whether something was changed. Raises NotFound if the question is no longer open.
    """
    if choice == "b":
        return False
    first_holds = choice == "o"
    for pair in contradictions(memory):
        if pair.key != item.key:
            continue
        if first_holds:
            _end_statement(memory, pair.new, pair.old)
        else:
            _end_statement(memory, pair.old, pair.new)
        return True
    for line_pair in _line_pairs(memory):
        if line_pair.key != item.key:
            continue
        ended_line = line_pair.second if first_holds else line_pair.first
        _end_line(memory, line_pair.info, ended_line.number)
        return True
    raise NotFound(item.key, "the open questions")


def _end_statement(memory: MemorySession, old: Statement, new: Statement) -> None:
    """Mark a statement as ended: the whole note, or only its sentence or line.

    old: the statement that is no longer true.
    new: the statement that is true instead.
    """
    claim = old.claim
    # The claim of an observation has the line alone.
    is_in_sentence = claim.stop > 0
    if not is_in_sentence:
        _end_line(memory, old.info, claim.line)
        return
    body = contents(memory, [old.info])[0]
    sentence = body[claim.start : claim.stop]
    is_whole_note = sentence == body.strip()
    if is_whole_note:
        memory.supersede(old.info, new.info)
        return
    # The remark goes before the full stop
    ended_sentence = _STOP.sub(
        lambda stop: f" (until {_today(memory)}){stop[0]}", sentence, count=1
    )
    memory.edit(old.info, FindReplace(sentence, ended_sentence))


def _end_line(memory: MemorySession, info: NoteInfo, number: int) -> None:
    """Add `(until 2026-11-28)` to a line, or `, until 2026-11-28` to its final parenthesis."""
    line = memory.text_of(info).split("\n")[number - 1].rstrip("\r")
    until = f"until {_today(memory)})"
    if _CLOSING.search(line):
        ended = _CLOSING.sub(f", {until}", line)
    else:
        ended = f"{line} ({until}"
    memory.edit(info, FindReplace(line, ended))


def _today(memory: MemorySession) -> str:
    """Return the present day, as `2026-11-28`."""
    return f"{memory.clock():%Y-%m-%d}"


CONTRADICTIONS = ReviewSource(_ask, _apply, shared=(SharedAnswer("b", "both are true, each time"),))
"""The questions about statements of which only one can be true (docs/jobs.md)."""
