"""Where the text of a note comes from: what a change says of it, and what the journal tells the index later.

A note has the least trust of what it was made from: an edit keeps what was there and adds to it; a text that replaces
a note whole is its writer's alone; a change of the header alone (tags, links, counts) leaves the note as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from commonplace.clock import parse_stamp
from commonplace.index.index import Index
from commonplace.note.model import Provenance, least
from commonplace.store.base import File, sha256
from commonplace.store.change import Step
from commonplace.store.journal import IMPORTING, ORIGINS, History

_WHOLE = ("write", "overwrite", "create")
"""Verbs that replace a note's text as a whole."""
_RESTORING = ("undo", "restore")
_UNKNOWN = Provenance()
_SLACK = timedelta(days=1)


class Writers:
    """Reads the journal backwards, as far as needed and each line once; what it saw is kept while it lives.

    With `is_system` the journal has the times of the system's clock, as files have: a text is not looked for in changes
    older than its file.
    """

    def __init__(self, history: History, *, is_system: bool):
        self._changes = history.changes(origins=True)
        self._is_system = is_system
        self._at: str | None = None
        self._places: dict[tuple[str, str, str], Provenance] = {}
        self._texts: dict[str, Provenance] = {}

    def of(self, project: str, path: str, file: File) -> Provenance:
        """Where the text of this file comes from: from the latest change that wrote it there, else anywhere."""
        place = (project, path, file.etag)
        oldest = datetime.fromtimestamp(file.stamp.mtime_ns / 1e9, UTC) - _SLACK if self._is_system else None
        while place not in self._places and self._read(oldest):
            continue
        return self._places.get(place) or self._texts.get(file.etag, _UNKNOWN)

    def of_text(self, etag: str) -> Provenance | None:
        """Where this text comes from, by the latest change that wrote it anywhere; None when no change did."""
        while etag not in self._texts and self._read(None):
            continue
        return self._texts.get(etag)

    def _read(self, oldest: datetime | None) -> bool:
        """Look at one more change. False when there is none, or none young enough."""
        if oldest is not None and self._at is not None and parse_stamp(self._at) < oldest:
            return False
        change = next(self._changes, None)
        if change is None:
            return False
        self._at = change.time
        for each in change.files:
            if each.do in ("put", ORIGINS) and each.new is not None:
                found = change.provenance(each)
                self._places.setdefault((each.project, each.path, each.new), found)
                self._texts.setdefault(each.new, found)
        return True


def sign(
    steps: Sequence[Step], verb: str, agent: str | None, made_from: Sequence[Provenance], index: Index, history: History
) -> None:
    """Note in each `put` what the journal is to say of where its text comes from, besides the caller (`Touched.by`).

    `agent` (None: the owner) makes the change `verb`; new notes are made from notes that come from `made_from`.
    """
    puts = [step for step in steps if step.do == "put" and step.data is not None]
    gone = [step for step in steps if step.do == "remove" and step.old is not None]
    own = "import" if verb in IMPORTING else "owner" if agent is None else "agent"
    writers = Writers(history, is_system=False)
    for step in puts:
        if verb in _RESTORING:
            assert step.data is not None
            if was := writers.of_text(sha256(step.data)):
                step.by = (step.by or {}) | was.row()
                continue
        if verb in _WHOLE:
            continue
        before = [_known(index, step)] if step.old else []
        body = _body(step.data)
        if step.old is None:  # perhaps the same note under another path, in the archive or out of it
            before = [_known(index, each) for each in gone if each.old and _body(each.old.data) == body]
        if verb == "merge":
            before += [_known(index, each) for each in gone]
        elif before and verb != "edit" and (step.old is None or _body(step.old.data) == body):
            step.by = before[0].row()
            continue
        trust = least(own, *(each.trust for each in (*before, *(made_from if step.old is None else ()))))
        if trust != own:
            step.by = (step.by or {}) | {"trust": trust}


def _known(index: Index, step: Step) -> Provenance:
    """Where the text that stands there comes from, if the index has seen these bytes."""
    info = index.notes.get(step.project, step.path)
    assert step.old is not None
    return info.provenance if info is not None and info.etag == step.old.etag else _UNKNOWN


def _body(data: bytes | None) -> bytes:
    """What follows the header."""
    from commonplace.note.frontmatter import split

    text = (data or b"").decode("utf-8", "replace")
    return text[split(text)[1] :].strip().encode()
