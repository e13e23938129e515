"""Says what the change that was just made did: to which note, and until when.

The words are in templates/toast_words.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memoranda.documents import differences
from memoranda.documents.differences import PropertyChange
from memoranda.engine import MemorySession
from memoranda.engine.history.refusals import refused_undos
from memoranda.engine.history.verbs import Revision
from memoranda.engine.history.whereabouts import where_now
from memoranda.engine.write_gate import RESTORING
from memoranda.ledger.change import Change
from memoranda.serve.page.note.secret_question import have_secret, masked_in
from memoranda.serve.page.words.titles import time_put_off_to, title_of_path, title_of_revision
from memoranda.sources.layout import PRIVATE

# Texts of a change that are looked at for a secret before the page names it.
_MAX_TEXTS = 20
_MERGE = "merge"


@dataclass(frozen=True)
class Toast:
    """The message about a change that was just made.

    change: the change as the ledger has it.
    title: the title of its note. "" if a text of it has a secret.
    merged_title: the title of the note that it merged into the first. "" if it merged none.
    others: how many more notes it changed.
    properties: the properties of the first note that it changed, by name.
    put_off_to: the time until which it put a reminder off. "" if it did not.
    masked: descriptions of the secrets that the gate masked, in words to translate.
    may_undo: whether it can be taken back.
    redoes: whether it undid an undo.
    """

    change: Change
    title: str
    merged_title: str
    others: int
    properties: dict[str, PropertyChange]
    put_off_to: str
    masked: Sequence[str]
    may_undo: bool
    redoes: bool


def toast_of(memory: MemorySession, change: Change) -> Toast:
    """Return the message about a change. If its texts have a secret, it names no title."""
    revisions = differences.joined_moves(memory.revisions(change.number, limit=_MAX_TEXTS))
    own_revision = _own_revision(change, revisions)
    title = ""
    merged_title = ""
    if not have_secret(memory, revisions):
        title = _title(memory, change, own_revision)
        merged_title = _merged_title(change, revisions)
    # A text that is brought back was masked when it was first written. That is no news.
    masked = [] if change.verb in RESTORING else masked_in(memory, revisions)
    properties = _properties(own_revision)
    return Toast(
        change,
        title=title,
        merged_title=merged_title,
        others=change.count_of_others(),
        properties=properties,
        put_off_to=time_put_off_to(properties.values()),
        masked=tuple(masked),
        may_undo=not refused_undos(memory, [change.number]),
        redoes=redoes(memory, change),
    )


def _merged_title(change: Change, revisions: Sequence[Revision]) -> str:
    """Return the title of the note that a change merged into another one. "" if it merged none."""
    if change.verb != _MERGE:
        return ""
    # Of the two notes of a merge, only the one that goes into the other has no text afterwards.
    for revision in revisions:
        if revision.after is None:
            return title_of_revision(revision)
    return ""


def redoes(memory: MemorySession, change: Change) -> bool:
    """Whether a change undid an undo, and so made the first change again."""
    undone_change = None if change.undoes is None else memory.change_numbered(change.undoes)
    return undone_change is not None and undone_change.undoes is not None


def _own_revision(change: Change, revisions: Sequence[Revision]) -> Revision | None:
    """Return the revision of the note that a change is listed under, else its first revision.

    A note that came to another place is there as removed, too.
    """
    own_revisions = [
        revision
        for revision in revisions
        if change.path in (revision.touched.path, revision.touched.to)
    ]
    in_order = sorted(own_revisions, key=lambda revision: revision.after is None)
    return next(iter([*in_order, *revisions]), None)


def _title(memory: MemorySession, change: Change, revision: Revision | None) -> str:
    """Return the title of the note that a change is about. "" if it is about no note."""
    if change.project == PRIVATE:
        return ""
    if revision is None:
        return title_of_path(change.path)
    touched = revision.touched
    info = where_now(memory, touched.project, touched.to or touched.path, only_same=True)
    if info is not None:
        return info.title
    return title_of_revision(revision)


def _properties(revision: Revision | None) -> dict[str, PropertyChange]:
    """Return the properties that a revision set or changed, by name. None of a note that is gone."""
    if revision is None or revision.after is None:
        return {}
    difference = differences.of_revision(revision, 1)
    return {change.name: change for change in difference.properties}
