"""Reads the text that a hook gives to an agent, to show it to a person as a list of notes.

The text is for models. Each note in it has one of two forms, on one line or below its place:

    - (2026-11-28, notes/people/lena-fischer, pinned) Lena Fischer: lives in Porto

    (2026-11-13, categories/knowledge)
    d0e9d37a: The importer reads files with CRLF line ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memoranda.serve.page.search import readable_passage

_ITEM = re.compile(r"- \((?P<about>[^()]*)\) (?P<text>.*)")
_PLACE = re.compile(r"\((?P<about>\d{4}-\d\d-\d\d, [^()]*)\)")
_ID = re.compile(r"(?P<id>[0-9a-f]{8}): (?P<text>.*)")
# A fact or a relation of a note that is told on one line, and what then begins it.
_FACT = re.compile(r"(?P<colon>:)? - (?:\[[^\[\]]{2,60}\] |(?=[^\[\]]{2,40}\[\[))")
# The line before and after all that is told.
_FENCE = re.compile(r"</?memoranda-memory\b")


@dataclass
class ToldNote:
    """A note as an agent is told it.

    ref: names the note for `/page/find`.
    remarks: such as `pinned`, `by codex`.
    """

    date: str
    ref: str
    remarks: list[str]
    text: str


@dataclass
class Told:
    """A part of what an agent is told, such as what is due. `title` is "" before the first title."""

    title: str
    notes: list[ToldNote] = field(default_factory=list)


def told(text: str) -> list[Told]:
    """Return the parts of a text that have notes."""
    parts = [Told("")]
    is_open = False
    for line in text.splitlines():
        item = _ITEM.fullmatch(line)
        place = _PLACE.fullmatch(line)
        is_title = line.endswith(":") and not line.startswith((" ", "-")) and not _ID.match(line)
        notes = parts[-1].notes
        if item:
            notes.append(_note(item["about"], item["text"]))
        elif place:
            notes.append(_note(place["about"], ""))
        elif is_title:
            parts.append(Told(line.removesuffix(":")))
        elif is_open and not _FENCE.match(line):
            _add_line(notes[-1], line)
        # Further lines belong to the note whose place was on a line of its own.
        is_open = bool(place) or (is_open and not (item or is_title))
    for part in parts:
        for note in part.notes:
            note.text = readable_passage(_FACT.sub(_joint, note.text), "")
    return [part for part in parts if part.notes]


def _joint(fact: re.Match[str]) -> str:
    return ": " if fact["colon"] else " · "


def _note(about: str, text: str) -> ToldNote:
    """Make a note of the words in parentheses before its text: the date, the place, remarks."""
    date, _, rest = about.partition(", ")
    place, *remarks = rest.split(", ")
    return ToldNote(date, place, remarks, text)


def _add_line(note: ToldNote, line: str) -> None:
    """Add a line below the place of a note. A memory is named by its id there, not by its place."""
    match = _ID.fullmatch(line)
    if match and not note.text:
        note.ref = match["id"]
        note.text = match["text"]
    else:
        note.text += f"\n{line.strip()}"
