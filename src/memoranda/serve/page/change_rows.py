"""One change as a row that a person reads: what was learned, changed or forgotten, and its words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from memoranda.documents import differences
from memoranda.documents.differences import GAP, Difference, Line
from memoranda.engine import MemorySession
from memoranda.engine.history import Revision, undone_by_change
from memoranda.engine.refusals import refused_undos
from memoranda.engine.whereabouts import where_now
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change
from memoranda.serve.page.rendering import note_url
from memoranda.serve.page.visit import HOME
from memoranda.text.word_diff import SAME, Part

# Lines of a row.
_LINES = 3
# Characters of a line of a row.
_LINE = 220
# Characters that stay of the text around a changed word.
_AROUND = 40
PRIVATE = ".memoranda"
"""What the log calls the folder of the home's own files."""
LEARNED = "learned"
CHANGED = "changed"
FORGOT = "forgot"
TIDIED = "tidied"
# The word for a change by its verb; all others changed something.
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


# Verbs of what nobody has to know about, unless they ask.
_MACHINERY = frozenset(("fire", "review", "ask", "snooze", "done", "expire"))
# Verbs of upkeep when the daemon, or a run of a job, did them.
_JOBS = frozenset(("classify", "upgrade", "consolidate", "decay", "remind", "merge", "link"))


@dataclass
class Row:
    """One change as a person reads it.

    word: LEARNED, CHANGED or FORGOT.
    lines: the new text, or the changes word by word.
    properties: the changed keys of the header.
    others: how many other notes it changed.
    refusal: the reason why it cannot be taken back. Empty if it can.
    undone_by: the change that took it back.
    undoes: the change that it took back.
    """

    number: int
    time: str
    word: str
    verb: str
    title: str
    url: str
    lines: list[Line] = field(default_factory=list)
    properties: list[differences.PropertyChange] = field(default_factory=list)
    others: int = 0
    refusal: str = ""
    undone_by: int | None = None
    undoes: int | None = None


def undone_in(changes: Iterable[Change]) -> Mapping[int, int]:
    """By number, the change that took a change, or the run that begins with it, back and stands
    itself.
    """
    undos: dict[int, int] = {}
    for change in changes:
        undos.update(dict.fromkeys(undone_by_change(change), change.number))
    return {number: undo for number, undo in undos.items() if undo not in undos}


class RowWriter:
    """Makes rows of changes; what all of them need is looked up once."""

    def __init__(
        self, memory: MemorySession, changes: Sequence[Change], undos: Iterable[Change] = ()
    ):
        """`undos`: changes that may have taken some of these back and are not among them."""
        self._memory = memory
        numbers = [change.number for change in changes]
        self._refusals = refused_undos(memory, numbers)
        self._undone = undone_in([*undos, *changes])
        self._revisions = memory.revisions_of(changes, limit=1)
        self._places: dict[tuple[str, str], NoteInfo | None] = {}

    def row(self, change: Change) -> Row:
        """A change with the note it is about, what it says, and whether it can be taken back."""
        revision = next(iter(self._revisions.get(change.number, [])), None)
        info = self._note(change)
        row = Row(
            change.number,
            change.time,
            word_of(change),
            change.verb,
            self._title(change, info, revision),
            self._address(change, info),
            others=max(0, sum(1 for _ in change.texts()) - 1),
            refusal=self._refusals.get(change.number, ""),
            undone_by=self._undone.get(change.number),
            undoes=change.undoes,
        )
        if revision is not None:
            _describe(row, revision)
        return row

    def _note(self, change: Change) -> NoteInfo | None:
        """The note that a change is about, at its present place.

        None if it is gone, or not a note.
        """
        is_note = change.project and change.path and not change.root
        if not is_note or change.project == PRIVATE or change.verb == "erase":
            return None
        place = (change.project, change.path)
        if place not in self._places:
            self._places[place] = where_now(self._memory, *place)
        return self._places[place]

    def _title(self, change: Change, info: NoteInfo | None, revision: Revision | None) -> str:
        if info is not None:
            return info.title[:_LINE]
        if revision is not None and (revision.before or revision.after):
            text = differences.split(revision.after or revision.before or "")[1]
            for line in text.splitlines():
                if line.strip("# \t"):
                    return line.strip("# \t")[:_LINE]
        return change.path.rpartition("/")[2].removesuffix(".md")

    def _address(self, change: Change, info: NoteInfo | None) -> str:
        """The address of the note. If the note is gone, the address of the change."""
        if info is None:
            return f"{HOME}/change/{change.number}"
        return note_url(info.project, info.path)


def word_of(change: Change) -> str:
    """The word for a change in the page: LEARNED, CHANGED or FORGOT."""
    # Taking a write back does not count as forgetting: the page says "took back".
    if change.undoes is not None:
        return CHANGED
    return _WORD_OF.get(change.verb, CHANGED)


def is_machinery(run: Sequence[Change]) -> bool:
    """Whether nobody has to know about this, unless they ask."""
    return all(
        change.verb in _MACHINERY or (change.project == PRIVATE and change.undoes is None)
        for change in run
    )


def is_upkeep(run: Sequence[Change]) -> bool:
    """Whether a job did this, and nobody asked for it."""
    first = run[0]
    if first.undoes is not None:
        return False
    return first.run is not None or (first.face == "daemon" and first.verb in _JOBS)


def _describe(row: Row, revision: Revision) -> None:
    """Say in the row what the change did to its first note."""
    if revision.before is None and revision.after is not None:
        row.lines = _beginning(revision.after, row.title)
        return
    if revision.after is None and revision.before is not None:
        row.lines = _beginning(revision.before, row.title)
        return
    # A row shows three lines; a few more are looked at to find those that say something
    difference = differences.of_revision(revision, 40)
    row.properties = difference.properties
    row.lines = snippet(difference)


def _beginning(text: str, title: str) -> list[Line]:
    """The first lines of a new text that do not only say the title again."""
    body = differences.split(text)[1]
    stripped = (line.strip() for line in body.splitlines())
    telling = (line for line in stripped if line and line.lstrip("# ") != title)
    return [[Part(SAME, _cut(line))] for line in islice(telling, _LINES)]


def snippet(difference: Difference, most: int = _LINES) -> list[Line]:
    """The changed lines of a difference, with little of what stayed around the words."""
    changed = [line for line in difference.lines if _has_changed(line)]
    telling = [line for line in changed if line[0].kind != GAP and _says_something(line)]
    return [_trimmed(line) for line in telling[:most]]


def _has_changed(line: Line) -> bool:
    return any(part.kind != SAME for part in line)


def _says_something(line: Line) -> bool:
    return any(part.text.strip() for part in line)


def _trimmed(line: Line) -> Line:
    last = len(line) - 1
    parts = []
    for number, part in enumerate(line):
        text = part.text
        if part.kind == SAME and number == 0 and len(text) > _AROUND:
            text = f"…{text[-_AROUND:]}"
        elif part.kind == SAME and number == last and len(text) > _AROUND:
            text = f"{text[:_AROUND]}…"
        parts.append(Part(part.kind, _cut(text)))
    return parts


def _cut(text: str) -> str:
    if len(text) <= _LINE:
        return text
    return f"{text[: _LINE - 1]}…"
