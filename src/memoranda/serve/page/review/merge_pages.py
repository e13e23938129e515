"""Asks which notes to merge, and shows both with their differences before they are merged."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from memoranda.documents.differences import GAP, Line
from memoranda.engine import MemorySession
from memoranda.errors import MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.note.names import Looseness
from memoranda.serve.page.addresses import note_of_ref
from memoranda.serve.page.near_titles import nearest
from memoranda.serve.page.note.actions import are_memories, text_to_add
from memoranda.serve.page.people.person import notes_called
from memoranda.serve.page.review.review_page import panes_of, say_the_same
from memoranda.serve.page.visit import Visit
from memoranda.serve.page.words.plain_markdown import plain_text, with_category
from memoranda.serve.page.words.wording import counted, translated
from memoranda.text.word_diff import NEW, OLD, SAME, Part, changed_words

# Lines of a merged note that are shown of either text.
_MAX_LINES = 60
# Places at which two notes differ that are said in words, and the characters of such a place.
_MAX_PLACES = 3
_MAX_PLACE_CHARACTERS = 80
# What is around the words of a place and says nothing.
_MARGIN = " \t\n.,;:!?•。，；：！？"


def show(visit: Visit) -> Response:
    """Show the notes that the fields `note` and `other` name, and ask whether to merge them.

    `other` goes into `note`. It is a title as somebody typed it, or names a note exactly.
    """
    return ask(visit, note_of_ref(visit.memory, visit.text("note")))


def ask(visit: Visit, info: NoteInfo) -> Response:
    """Ask whether to merge the note that the field `other` names into a note.

    If no note or several notes have the name, ask for another one, with the nearest titles.
    """
    memory = visit.memory
    text = visit.text("other")
    if not text:
        return _other_title(visit, info, 400, problem="Name the other note.")
    infos = _notes_named(memory, text)
    other_notes = [candidate for candidate in infos if candidate.row != info.row]
    if infos and not other_notes:
        problem = "A note cannot be merged into itself. Name another one."
        return _other_title(visit, info, 400, problem=problem)
    if not other_notes:
        near = [candidate for candidate in nearest(memory, text) if candidate.row != info.row]
        return _other_title(visit, info, 404, problem="No note has this title.", infos=near)
    if len(other_notes) > 1:
        return _other_title(visit, info, 200, problem="", infos=other_notes)
    return _show_both(visit, info, other_notes[0])


def _show_both(visit: Visit, info: NoteInfo, other: NoteInfo) -> Response:
    """Show two notes and the note that a merge makes of them, before they are merged.

    info: the note that stays.
    other: the note that goes into it.
    """
    # Showing notes in order to ask about them is no use of them, so the reads are not counted.
    note = visit.memory.read(info, count=False)
    other_note = visit.memory.read(other, count=False)
    panes = panes_of([note, other_note])
    # Two notes with one id, as copies of a file have it, are one pane without a caption.
    if len(panes) == 2:
        panes[0].caption = "Stays"
        panes[1].caption = "Goes into it"
    # The other's title becomes a heading. As in other places, a secret in a title is masked.
    masked_title = visit.memory.rules_for_reading().redacted(other.title)
    added_text = text_to_add(visit.memory, info, other).replace(other.title, masked_title, 1)
    # Only a merge of memories joins their tags.
    new_tags: list[str] = []
    if are_memories(info, other):
        own_tags = {tag.casefold() for tag in info.tags}
        new_tags = [tag for tag in other.tags if tag.casefold() not in own_tags]
    return visit.html(
        "merge.html",
        note=info,
        other=other,
        panes=panes,
        is_same=say_the_same([note, other_note]),
        differences=differences_of(visit.language, note.content, other_note.content),
        result=_merged_lines(note.content, added_text),
        new_tags=new_tags,
    )


def differences_of(language: str, text: str, other_text: str) -> list[str]:
    """Return sentences that name the differing words of two notes. [] if there are too many.

    text: the text of the note that stays.
    other_text: the text of the note that goes into it.
    """
    places = _differing_places(plain_text(text.strip()), plain_text(other_text.strip()))
    if not places:
        return [translated(language, "Both have the same words.")]
    longest = max(len(words) for place in places for words in place)
    if len(places) > _MAX_PLACES or longest > _MAX_PLACE_CHARACTERS:
        return []
    sentences = [
        counted(language, "They differ in one place.", "They differ in {n} places.", len(places))
    ]
    for stays, goes in places:
        if stays and goes:
            sentence = "The note that stays has “{stays}”, the other has “{goes}”."
        elif stays:
            sentence = "Only the note that stays has “{stays}”."
        else:
            sentence = "Only the note that goes has “{goes}”."
        sentences.append(translated(language, sentence, stays=stays, goes=goes))
    return sentences


def _differing_places(text: str, other_text: str) -> list[tuple[str, str]]:
    """Return the places where two texts differ, as (words here, words in the other text).

    If only blanks or signs are between differing words, they form one place.
    """
    places: list[tuple[str, str]] = []
    # The words of the place that is not complete yet, in both texts.
    own_words = ""
    other_words = ""
    # A place is complete at the next words that both texts have. So there are some at the end.
    for part in [*changed_words(text, other_text), Part(SAME, "end")]:
        # Blanks and signs that both texts have join the differing words on both sides of them.
        is_between = part.kind == SAME and not any(map(str.isalnum, part.text))
        if is_between and not (own_words or other_words):
            continue
        if part.kind == OLD or is_between:
            own_words += part.text
        if part.kind == NEW or is_between:
            other_words += part.text
        if part.kind == SAME and not is_between:
            place = own_words.strip(_MARGIN), other_words.strip(_MARGIN)
            if any(place):
                places.append(place)
            own_words = ""
            other_words = ""
    return places


def _merged_lines(text: str, added_text: str) -> list[Line]:
    """Return the lines of a note after a merge, with the added ones marked as new.

    They are without the marks of Markdown, as in the panes of the two notes. Only the end of a long
    text is shown, where something is added.
    """
    own_lines = plain_text(text.strip("\n")).split("\n")
    new_lines = plain_text(added_text.rstrip("\n")).split("\n") if added_text else []
    lines = [_plain_line(line, SAME) for line in own_lines[-_MAX_LINES:]]
    lines += [_plain_line(line, NEW if line else SAME) for line in new_lines[:_MAX_LINES]]
    if len(own_lines) > _MAX_LINES:
        lines.insert(0, [Part(GAP, "")])
    if len(new_lines) > _MAX_LINES:
        lines.append([Part(GAP, "")])
    return lines


def _plain_line(line: str, kind: str) -> Line:
    """Write a line of `plain_text` with the category of its fact as a separate part."""
    parts = with_category([Part(SAME, line)])
    return [Part(kind, part.text) if part.kind == SAME else part for part in parts]


def _other_title(visit: Visit, info: NoteInfo, status: int, **values: Any) -> Response:
    """Show the form that asks which note to merge with, filled with what was typed so far.

    status: the HTTP status of the page.
    values: what is wrong with the typed title, and notes to choose from.
    """
    typed = visit.text("other")
    return visit.html("merge_which.html", status, note=info, typed=typed, **{"infos": []} | values)


def _notes_named(memory: MemorySession, text: str) -> list[NoteInfo]:
    """Return the notes that a text names: one by its id or place, else all notes of this name."""
    try:
        exact = note_of_ref(memory, text, looseness=Looseness.EXACT)
        is_exact = exact.id == text or text.startswith(f"{exact.project}/")
        if is_exact:
            return [exact]
    except MemorandaError:
        pass
    return notes_called(memory, text)
