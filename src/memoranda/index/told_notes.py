"""Notes as an agent is told them: as evidence for a question, or at the start of a session.

`ToldNote` is such a note as data. Everything that adds a mark to it works on this data, and the
functions at the end word it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import groupby
from typing import NamedTuple

from memoranda.index.rows import Hit, NoteInfo, day_of
from memoranda.note.links import slug
from memoranda.note.model import ARCHIVED
from memoranda.text.fence import cut, without_marks
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import flat

# Evidence shows this much of a title.
_MAX_TITLE_CHARACTERS = 60
# People type this many characters of an id.
_ID_CHARACTERS = 8
# Where a mark has its value.
_PLACE_OF_VALUE = lazy_pattern(r"\{\w+\}")
BELOW = "\n  "
"""Separates the passages below a line about a note."""


class Mark(NamedTuple):
    """A remark about a note, such as `Mark("pinned")` or `Mark("due {when}", "2026-11-28 09:00")`.

    pattern: the words, which can be translated. A name in braces is where the value is put.
    value: a time, a name, or "" for a remark without one.
    """

    pattern: str
    value: str = ""

    @property
    def words(self) -> str:
        """Return the remark with its value: `due 2026-11-28 09:00`."""
        return self.in_pattern(self.pattern)

    def in_pattern(self, pattern: str) -> str:
        """Put the value into a pattern, which is a translation of `pattern`."""
        return _PLACE_OF_VALUE.sub(lambda _: self.value, pattern)


class ToldNote(NamedTuple):
    """A note that an agent is told.

    note: all that the index knows of the note.
    day: the day that it is about, as YYYY-MM-DD.
    passages: parts of its text, in the order of the text. In evidence a passage may have several
        lines, otherwise it is one line.
    marks: remarks such as `pinned`, `by codex` or `unconfirmed`, in their order.
    score: the highest score of its passages, by which notes are ranked. 0.0 for a note that was not
        searched for.
    relevance: the highest relevance of its passages (`Hit.relevance`), which decides whether a
        prompt is answered. 0.0 for a note that was not searched for.
    """

    note: NoteInfo
    day: str
    passages: tuple[str, ...]
    marks: tuple[Mark, ...] = ()
    score: float = 0.0
    relevance: float = 0.0


class ToldSection(NamedTuple):
    """The notes under one title, such as those that are due.

    title: "" for notes without a title above them.
    """

    title: str
    notes: list[ToldNote]


class ToldText(NamedTuple):
    """A text for the context of an agent, and the notes in it.

    text: the text; "" if there is nothing to tell.
    sections: the notes, under their titles.
    """

    text: str = ""
    sections: tuple[ToldSection, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Return the ids of the notes in the text."""
        return [told_note.note.id for section in self.sections for told_note in section.notes]


class ToldLine(NamedTuple):
    """A line of evidence.

    text: the line.
    begins: the note whose first passage begins on this line. None for any other line.
    """

    text: str
    begins: ToldNote | None = None


class LineGroup(NamedTuple):
    """The properties that the notes of a shared line of evidence have in common.

    repeats_title: whether the address of each note repeats its title.
    day_and_place: the text "day, place". The place is the folder if the address repeats the title,
        else the whole address.
    """

    repeats_title: bool
    day_and_place: str


class NoteHeading(NamedTuple):
    """How evidence names a note.

    is_memory: whether its permalink ends in its id, as for memories (contract 001, 2).
    group: notes with the same group share a line.
    name: the name of the note within a shared line.
    line: the line for this note alone. The title is left out if the address repeats it.
    """

    is_memory: bool
    group: LineGroup
    name: str
    line: str

    def length(self, *, is_shared: bool) -> int:
        """Return how many characters this takes, with brackets, colon and line ends.

        is_shared: whether its group has a line already, so that only the name of the note is added.
        """
        # The name has a line break before it, and a colon and a blank behind it.
        name_length = len(self.name) + 3
        if is_shared:
            return name_length
        if self.is_memory:
            # The shared line has two brackets, and an empty line before it: two line breaks.
            return len(self.group.day_and_place) + 4 + name_length
        # The line for this note alone, with two line breaks before it and one behind it.
        return len(self.line) + 3


def heading_of(note: NoteInfo, day: str, marks: Iterable[Mark] = ()) -> NoteHeading:
    """Return how evidence names a note.

    day: the day that the note is about.
    marks: remarks to show with it.
    """
    # The parts: the address, the day and the remarks.
    last_segment = note.permalink.rpartition("/")[2]
    is_memory = bool(note.id) and note.permalink.endswith(f"-{note.id[:_ID_CHARACTERS]}")
    # The title of a memory is the beginning of its text, so it is left out, too.
    address_repeats_title = is_memory or slug(note.title) == last_segment
    address = note.permalink
    # The name of a hidden project begins with a dot, which permalinks leave out.
    if not address.startswith(f"{note.project.removeprefix('.')}/"):
        address = f"{note.project}: {address}"
    day_and_state = day
    if note.phase == ARCHIVED:
        day_and_state += f", {ARCHIVED}"
    remarks = ", ".join(mark.words for mark in marks)

    # Notes of one group share a line, in which each has only its name.
    place = address
    if address_repeats_title and "/" in address:
        place = address.rpartition("/")[0]
    name = note.id[:_ID_CHARACTERS] if is_memory else flat(last_segment)
    if remarks:
        name = f"{name} ({remarks})"

    # A note alone has its title, day, address and remarks in its line.
    title = ""
    if not address_repeats_title:
        title = " ".join(note.title[:_MAX_TITLE_CHARACTERS].split()) + " "
    details = [day_and_state, address]
    if remarks:
        details.append(remarks)
    return NoteHeading(
        is_memory,
        group=LineGroup(address_repeats_title, f"{day_and_state}, {place}"),
        name=name,
        line=flat(f"{title}({', '.join(details)})"),
    )


def told_notes(
    hits: Sequence[Hit], zone: tzinfo | None = None, last: Container[int] = ()
) -> list[ToldNote]:
    """Return the notes of hits with their passages, for `evidence_lines`.

    Notes that are told of in one line, a group, follow each other in the order of their creation.
    The groups are in the order of their first hit.

    zone: the time zone of the days. None means the system's.
    last: the rows of notes to put at the end of their group.
    """
    hits_by_row: dict[int, list[Hit]] = {}
    for hit in hits:
        hits_by_row.setdefault(hit.note.row, []).append(hit)

    # The notes by the group in whose line they are (`NoteHeading.group`).
    groups: dict[LineGroup, list[ToldNote]] = {}
    for note_hits in hits_by_row.values():
        note = note_hits[0].note
        day = day_of(note, zone)
        passages = tuple(hit.passage for hit in sorted(note_hits, key=lambda hit: hit.line))
        told_note = ToldNote(
            note,
            day,
            passages,
            score=max(hit.score for hit in note_hits),
            relevance=max(hit.relevance for hit in note_hits),
        )
        groups.setdefault(heading_of(note, day).group, []).append(told_note)

    def order(told_note: ToldNote) -> tuple[bool, str, str]:
        """Return the sort key of a note within its group."""
        note = told_note.note
        return note.row in last, note.created, note.permalink

    in_order: list[ToldNote] = []
    for group in groups.values():
        in_order += sorted(group, key=order)
    return in_order


def evidence_text(notes: Sequence[ToldNote]) -> str:
    """Word evidence: for each note a line with title, day and address, then its passages.

    Example of one note: `Budget (2026-11-21, work/plans/q4)`, then `  We agreed on 5,000 euros.`

    Lines of passages are indented by two blanks, so no text can look like a line about a note. If
    the address of a note repeats its title, the note shares a line with other such notes of its
    folder and day. The passages of each note then begin with its name. The name of a memory is the
    first 8 characters of its id.

    notes: the notes. Those that share a line must follow each other, as `told_notes` returns them.
    """
    return "\n".join(line.text for line in evidence_lines(notes))


def evidence_lines(notes: Sequence[ToldNote]) -> list[ToldLine]:
    """Return the lines that tell a prompt about these notes. `evidence_text` joins them to a text.

    notes: the notes. Notes below the same heading must follow each other, as `told_notes` returns
        them.
    """
    headings = [heading_of(told_note.note, told_note.day, told_note.marks) for told_note in notes]
    lines: list[ToldLine] = []
    pairs = zip(headings, notes, strict=True)
    for group, pairs_of_group in groupby(pairs, key=lambda pair: pair[0].group):
        if lines:
            lines.append(ToldLine(""))
        lines += _group_lines(group.day_and_place, list(pairs_of_group))
    return lines


def _group_lines(
    day_and_place: str, pairs: list[tuple[NoteHeading, ToldNote]]
) -> Iterator[ToldLine]:
    """Yield the lines of notes that share a line.

    day_and_place: the day and the place of the notes.
    pairs: each note with its heading.
    """
    first_heading, first_note = pairs[0]
    if len(pairs) == 1 and not first_heading.is_memory:
        yield ToldLine(first_heading.line)
        yield from _passage_lines("  ", first_note)
        return
    yield ToldLine(flat(f"({day_and_place})"))
    for note_heading, told_note in pairs:
        yield from _passage_lines(f"{note_heading.name}: ", told_note)


def _passage_lines(beginning: str, told_note: ToldNote) -> Iterator[ToldLine]:
    """Yield the passages of a note, line by line.

    beginning: the text to put in front of the first line.
    """
    first_line, *other_lines = BELOW.join(told_note.passages).split("\n")
    yield ToldLine(f"{beginning}{first_line}", told_note)
    yield from map(ToldLine, other_lines)


def item_line(told_note: ToldNote, longest: int) -> str:
    """Word a note as one line, such as `- (2026-11-28, notes/tea, pinned) Anna likes tea`.

    told_note: the note, its day and its remarks.
    longest: how many characters of its passages are shown.
    """
    remarks = [flat(mark.words) for mark in told_note.marks]
    origin = ", ".join([told_note.day, flat(told_note.note.permalink), *remarks])
    text = cut(" ".join(told_note.passages), longest)
    return without_marks(f"- ({origin}) {text}")
