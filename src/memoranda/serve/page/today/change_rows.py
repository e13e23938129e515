"""Makes the rows in which the page lists changes.

A row says in a word what a change did (learned, changed or forgot) and to which note, and shows the
first changed lines. *Machinery* is changes that nobody needs to know about, such as a reminder that
fired; its rows are only shown on demand. *Upkeep* is changes that jobs made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from memoranda import documents
from memoranda.documents import differences
from memoranda.documents.differences import GAP, Difference, Line
from memoranda.documents.listed import Document
from memoranda.engine import MemorySession
from memoranda.engine.history.refusals import refused_undos
from memoranda.engine.history.verbs import Revision, undone_by_change
from memoranda.engine.history.whereabouts import where_now
from memoranda.errors import UndoObstacle
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change, Touched
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.note_text import words_of_links
from memoranda.serve.page.visit import HOME
from memoranda.serve.page.words.fact_lines import FACT, OPENING, with_fact
from memoranda.serve.page.words.titles import title_of_path, title_of_revision
from memoranda.serve.page.words.toasts import redoes
from memoranda.text.word_diff import SAME, Part

# Lines of a row.
_LINES = 3
# Characters of unchanged text that are shown before and after the changed words.
_CONTEXT_CHARACTERS = 40
# Lines of a difference that are examined for those that say something.
_LINES_EXAMINED = 40
# Characters of a line.
_MAX_CHARACTERS = 220
PRIVATE = ".memoranda"
"""The project by which the log names the folder of the home's own files."""
LEARNED = "learned"
CHANGED = "changed"
FORGOT = "forgot"
TIDIED = "tidied"
# The word for a change by its verb. For other verbs it is CHANGED.
_WORD_OF = {
    "write": LEARNED,
    "create": LEARNED,
    "import": LEARNED,
    "ingest": LEARNED,
    "delete": FORGOT,
    "remove": FORGOT,
    "erase": FORGOT,
    "archive": FORGOT,
    "expire": FORGOT,
}


# Verbs of machinery: changes that nobody needs to know about, unless they ask.
_MACHINERY = frozenset(("fire", "review", "ask", "snooze", "done", "expire"))


def undone_in(changes: Iterable[Change]) -> Mapping[int, int]:
    """Return the changes that are undone: their number -> the number of the change that undid them.

    An undo that was undone itself does not count. If a whole run was undone at once, only its first
    change is named.
    """
    undone_by: dict[int, int] = {}
    for change in changes:
        undone_by.update(dict.fromkeys(undone_by_change(change), change.number))
    # An undo that is a key here was undone itself.
    return {number: undo for number, undo in undone_by.items() if undo not in undone_by}


class RowWriter:
    """Makes the rows that show changes on the page.

    The facts that the rows need are looked up once, for all changes.

    undos: further changes, which may have undone some of `changes`.
    """

    def __init__(
        self, memory: MemorySession, changes: Sequence[Change], undos: Iterable[Change] = ()
    ):
        self._memory = memory
        numbers = [change.number for change in changes]
        self._refusals = refused_undos(memory, numbers)
        self._undone = undone_in([*undos, *changes])
        # The text of the note it is about says enough for a row.
        own_changes = [replace(change, files=_own_files(change)) for change in changes]
        self._revisions = memory.revisions_of(own_changes, limit=1)
        self._places: dict[tuple[str, str], NoteInfo | None] = {}

    def row(self, change: Change) -> Document:
        """Make the row of a change: its document, and the words for a person.

        word: LEARNED, CHANGED or FORGOT.
        title, url: the title and the address of the note that it is about.
        is_planted: whether the note seems to hold instructions for agents.
        is_answer: whether it is an answer of the owner in Review, which has no note of its own.
        lines: the new text, or the changes word by word.
        properties: the changed keys of the header.
        others: how many other notes it changed.
        refusal: the error that it cannot be undone. None if it can.
        undone_by: the number of the change that undid it. None if it counts.
        undoes: the number of the change that it undid, or None.
        redoes: whether that was an undo itself.
        """
        revision = next(iter(self._revisions.get(change.number, [])), None)
        info = self._note(change)
        title = self._title(change, info, revision)
        row = {
            "word": word_of(change),
            "title": title,
            "is_planted": info is not None and self._memory.is_held_back(info),
            "is_answer": change.project == PRIVATE,
            "url": self._address(change, info),
            "others": change.count_of_others(),
            "refusal": self._refusals.get(change.number),
            "undone_by": self._undone_by(change.number),
            "undoes": change.undoes,
            "redoes": redoes(self._memory, change),
        }
        return documents.change(change) | row | _description(title, revision)

    def _undone_by(self, number: int) -> int | None:
        """Return the number of the change that undid a change. None if it counts.

        The undo need not be among the listed changes: these may be of one agent or day.
        """
        refusal = self._refusals.get(number)
        if refusal is not None and refusal.obstacle == UndoObstacle.UNDONE:
            return self._undone.get(number, refusal.later)
        return self._undone.get(number)

    def _note(self, change: Change) -> NoteInfo | None:
        """Return the note that a change is about, at its present place.

        None if the note is gone, or the change is not about a note.
        """
        is_note = change.project and change.path and not change.root
        if not is_note or change.project == PRIVATE or change.verb == "erase":
            return None
        place = (change.project, change.path)
        if place not in self._places:
            self._places[place] = where_now(self._memory, *place)
        return self._places[place]

    def _title(self, change: Change, info: NoteInfo | None, revision: Revision | None) -> str:
        """Return the title of the note, or if it is gone its first line, or the name of its file."""
        if info is not None:
            return info.title
        return title_of_revision(revision) or title_of_path(change.path)

    def _address(self, change: Change, info: NoteInfo | None) -> str:
        """Return the address of the note. If the note is gone, the address of the change."""
        if info is None:
            return f"{HOME}/change/{change.number}"
        return note_url(info.project, info.path)


def _own_files(change: Change) -> list[Touched]:
    """Return the files whose text a change touched, first the note it is listed under.

    A deletion also takes links out of other notes.
    """
    # False sorts before True.
    return sorted(change.texts(), key=lambda file: change.path not in (file.path, file.to))


def word_of(change: Change) -> str:
    """Return the word for a change: LEARNED, CHANGED or FORGOT."""
    # An undo may delete the note, but it forgets nothing: the row says "took back".
    if change.undoes is not None:
        return CHANGED
    return _WORD_OF.get(change.verb, CHANGED)


def is_machinery(run: Sequence[Change]) -> bool:
    """Whether a run is machinery: nobody needs to know about it, unless they ask."""
    return all(
        change.verb in _MACHINERY or (change.project == PRIVATE and change.undoes is None)
        for change in run
    )


def _description(title: str, revision: Revision | None) -> Document:
    """Return the lines and properties that a change gave its first note.

    title: the title of the note, which a line need not repeat.
    """
    if revision is None or revision.is_text_lost:
        return {"lines": [], "properties": []}
    if revision.before is None or revision.after is None:
        text = revision.after or revision.before or ""
        return {"lines": _beginning(text, title), "properties": []}
    difference = differences.of_revision(revision, _LINES_EXAMINED)
    return {"lines": snippet(difference), "properties": difference.properties}


def _beginning(text: str, title: str) -> list[Line]:
    """Return the first lines of a text, without lines that only repeat the title."""
    _, body = differences.split(text)
    stripped = (line.strip() for line in body.splitlines())
    telling_lines = (line for line in stripped if line and line.lstrip("# ") != title)
    return [readable([Part(SAME, _cut(line))]) for line in islice(telling_lines, _LINES)]


def readable(line: Line) -> Line:
    """Return a line of Markdown as a row shows it: a fact has its category as a separate part, and links
    are words.
    """
    parts = list(with_fact(line))
    first = parts[0]
    marks = OPENING.match(first.text)
    if marks and first.kind != FACT:
        parts[0] = Part(first.kind, first.text[marks.end() :])
    return [Part(part.kind, words_of_links(part.text)) for part in parts]


def snippet(difference: Difference, max_lines: int = _LINES) -> list[Line]:
    """Return the first changed lines of a difference, each with little unchanged text."""
    changed_lines = [line for line in difference.lines if _has_changed(line)]
    lines_with_text = [line for line in changed_lines if line[0].kind != GAP and _has_text(line)]
    return [readable(_trimmed(line)) for line in lines_with_text[:max_lines]]


def _has_changed(line: Line) -> bool:
    return any(part.kind != SAME for part in line)


def _has_text(line: Line) -> bool:
    return any(part.text.strip() for part in line)


def _trimmed(line: Line) -> Line:
    """Shorten the unchanged text at both ends of a line: "…the old `word` stays…"."""
    last = len(line) - 1
    parts = []
    for number, part in enumerate(line):
        text = part.text
        if part.kind == SAME and number == 0 and len(text) > _CONTEXT_CHARACTERS:
            text = f"…{text[-_CONTEXT_CHARACTERS:]}"
        elif part.kind == SAME and number == last and len(text) > _CONTEXT_CHARACTERS:
            text = f"{text[:_CONTEXT_CHARACTERS]}…"
        parts.append(Part(part.kind, _cut(text)))
    return parts


def _cut(text: str) -> str:
    """Cut a text to the length of a line, with `…` at its end."""
    if len(text) <= _MAX_CHARACTERS:
        return text
    return f"{text[: _MAX_CHARACTERS - 1]}…"
