"""Shows the page of a change, and undoes changes.

If a later change or something else is in the way of an undo, the page says what it is, and offers
what can be done instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import RedirectResponse, Response

from memoranda.documents import differences
from memoranda.documents.listed import Document
from memoranda.engine import MemorySession
from memoranda.engine.history.refusals import later_changes_in_the_way, refused_undos
from memoranda.engine.history.verbs import Revision
from memoranda.engine.history.whereabouts import where_now
from memoranda.errors import CannotUndo, InvalidInput, NoSuchChange, UndoObstacle
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change
from memoranda.note import frontmatter
from memoranda.note.edit import Rewrite, SetKeys
from memoranda.serve.page.note.merging import merge
from memoranda.serve.page.today.change_rows import RowWriter, word_of
from memoranda.serve.page.visit import HOME, MAX_DIGITS, Visit

# Files of a change whose differences are shown.
_MAX_DIFFERENCES = 50
# The obstacles that leave another way: what the change did, or the text before it, may still be
# brought back by a new change.
_OBSTACLES_WITH_A_WAY = (UndoObstacle.LATER, UndoObstacle.OUTSIDE)


@dataclass(frozen=True)
class Barred:
    """The reason why a change cannot be undone, and a way out.

    obstacle: the kind of the reason.
    reason: the reason as the log words it.
    later: the later changes that are in the way, each with its row, the latest first. If the change
        is undone already, it is the undo.
    may_undo_together: whether all of `later` can be undone together with the change.
    note: the note that the change is about, at its present place. None if that is gone, or if the
        change is about several notes.
    may_take_back: whether what the change did to the note can be taken back alone, as a new change.
    may_restore: whether the text before the change can be restored, as a new change.
    """

    obstacle: UndoObstacle
    reason: str
    later: list[tuple[Change, Document]] = field(default_factory=list)
    may_undo_together: bool = False
    note: NoteInfo | None = None
    may_take_back: bool = False
    may_restore: bool = False


def show(visit: Visit) -> Response:
    """Show one change with the difference that it made to each file.

    The field `tried` says that an undo of it was refused just now, alone or with others ("all").
    """
    memory = visit.memory
    number = visit.number("change", 0)
    change = memory.change_numbered(number)
    revisions = _revisions(memory, number, is_known=change is not None)
    revisions_shown = [
        (revision, differences.of_revision(revision), _present_note(memory, revision))
        for revision in revisions[:_MAX_DIFFERENCES]
    ]
    refusal = refused_undos(memory, [number]).get(number)
    barred = None
    if change is not None and refusal is not None and not visit.is_part:
        barred = _barred(memory, change, refusal, revisions)
    return visit.part_or_page(
        "change_part.html",
        "change.html",
        change=change,
        word=word_of(change) if change else "",
        revisions=revisions_shown,
        has_more=len(revisions) > _MAX_DIFFERENCES,
        number=number,
        barred=barred,
        tried=visit.text("tried"),
    )


def _revisions(memory: MemorySession, number: int, *, is_known: bool) -> Sequence[Revision]:
    """Return the revisions of a change: one more than is shown, to know whether there are more.

    is_known: whether the history lists the change. Then the result is empty if everything that the
        change touched was erased. Otherwise this raises NoSuchChange.
    """
    try:
        return memory.revisions(number, limit=_MAX_DIFFERENCES + 1)
    except NoSuchChange:
        if is_known:
            return []
        raise


def _present_note(memory: MemorySession, revision: Revision) -> NoteInfo | None:
    """Return the note that a revision is about, at its present place. None if it is gone.

    A note that was merged into another one is gone: the page offers to delete what is returned.
    """
    touched = revision.touched
    return where_now(memory, touched.project, touched.to or touched.path, only_same=True)


def _barred(
    memory: MemorySession, change: Change, refusal: CannotUndo, revisions: Sequence[Revision]
) -> Barred:
    """Return the reason why a change cannot be undone, and a way out."""
    # The later changes that could be undone together with this one.
    together = []
    if refusal.obstacle == UndoObstacle.LATER:
        together = later_changes_in_the_way(memory, change.number)
    later = list(together)
    # If there are none, the one later change that the refusal names is shown.
    if not later and refusal.later is not None:
        later_change = memory.change_numbered(refusal.later)
        later = [later_change] if later_change else []
    writer = RowWriter(memory, later)

    # The ways out. They are only offered for a change of one note, which must still exist.
    own_revision = revisions[0] if len(revisions) == 1 else None
    note = _present_note(memory, own_revision) if own_revision else None
    has_a_way = refusal.obstacle in _OBSTACLES_WITH_A_WAY and note is not None
    return Barred(
        refusal.obstacle,
        refusal.reason,
        [(later_change, writer.row(later_change)) for later_change in later],
        may_undo_together=bool(together),
        note=note,
        may_take_back=has_a_way and _note_text_without(memory, note, own_revision) is not None,
        may_restore=has_a_way and _is_restorable(note, own_revision),
    )


def _is_restorable(note: NoteInfo | None, revision: Revision | None) -> bool:
    """Whether a note is where a revision left it, and has a text before it."""
    if note is None or revision is None or revision.touched.do == "move":
        return False
    touched = revision.touched
    return revision.before is not None and (note.project, note.path) == (
        touched.project,
        touched.path,
    )


def _note_text_without(
    memory: MemorySession, note: NoteInfo | None, revision: Revision | None
) -> str | None:
    """Take one revision out of the present text of a note, and return the text.

    None if a later change touched the same lines, if nothing of it is left, or if the history does
    not have both texts.
    """
    if note is None or revision is None or revision.before is None:
        return None
    text = memory.read(note, count=False).text
    after = revision.after
    # The history has a text once another replaced it. Until then it is in the file, wherever that is.
    if after is None and memory.file(note).etag == revision.touched.new:
        after = text
    if after is None:
        return None
    try:
        taken_back = text_without(text, revision.before, after)
    except ValueError:
        return None
    return None if taken_back == text else taken_back


def text_without(text: str, before: str, after: str) -> str | None:
    """Take the effect of one change out of the present text of a note, and return the text.

    A key of the header that was changed again later stays as it is.

    text: the present text.
    before, after: the texts before and after the change.

    Returns None if lines below the header that the change made were changed again later. Raises
    ValueError if a header cannot be read.
    """
    body_before_at = frontmatter.split(before).body_at
    body_after_at = frontmatter.split(after).body_at
    body_at = frontmatter.split(text).body_at
    # The change made `after` of `before`. Both the later edits and the step back begin at `after`.
    merged = merge(after[body_after_at:], text[body_at:], before[body_before_at:])
    if merged.conflicts:
        return None
    keys = _keys_to_set_back(
        now=frontmatter.header_of(text),
        before=frontmatter.header_of(before),
        after=frontmatter.header_of(after),
    )
    taken_back = text[:body_at] + merged.text()
    if not keys:
        return taken_back
    return SetKeys(keys).apply(taken_back).text


def _keys_to_set_back(
    now: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the header keys to set back: key -> the value before the change.

    A key that was changed again since is left out.

    now: the header as it is now.
    before, after: the header before and after the change.
    """
    return {
        key: before.get(key, frontmatter.REMOVE)
        for key in {*before, *after}
        if before.get(key) != after.get(key) and now.get(key) == after.get(key)
    }


def take_back_alone(visit: Visit, info: NoteInfo) -> None:
    """Undo only the change that the field `change` names, by a new change of the note.

    What came later stays. Raises InvalidInput.
    """
    memory = visit.memory
    number = visit.number("change", 0)
    revisions = memory.revisions(number)
    for revision in revisions:
        # A change may have touched other notes, too.
        touched_note = _present_note(memory, revision)
        if touched_note is None or touched_note.row != info.row:
            continue
        text = _note_text_without(memory, info, revision)
        # The history does not have both texts, or a later change touched the same lines.
        if text is None:
            continue
        # The other notes of the change stay as they are, so the change as a whole does not count
        # as undone.
        undone = number if len(revisions) == 1 else None
        memory.edit(info, Rewrite(text), checksum=info.checksum, undoes=undone)
        return
    raise InvalidInput("The same lines were changed again meanwhile. Edit the note instead.")


def undo(visit: Visit) -> Response | dict[str, Any]:
    """Undo the changes that the form names, and return to the page with the button.

    The field `change` names one change, `together` further changes, `run` a whole run.

    A refused undo leads to the page of the change, which says why. A caller with a token can undo
    only its own changes. Raises CannotUndo.
    """
    memory = visit.memory
    number = visit.number("change", 0)
    run = visit.number("run", 0)
    if memory.agent is not None and number not in _own_numbers(memory):
        raise CannotUndo(f"it is no change of {memory.agent}", number=number)
    try:
        undo_change = _undo_named_changes(visit, number, run)
    except CannotUndo as refusal:
        return lead_to_refusal(visit, refusal, is_of_many=bool(run))
    if visit.is_api:
        return {"change": undo_change.number, "undone": undo_change.undoes}
    return visit.back()


def _undo_named_changes(visit: Visit, number: int, run: int) -> Change:
    """Undo the changes that the form names, and return the new change.

    Raises CannotUndo, InvalidInput.
    """
    memory = visit.memory
    together = visit.text("together").split()
    if memory.agent is None and together:
        if not all(text.isdecimal() and len(text) <= MAX_DIGITS for text in together):
            raise InvalidInput("`together` must have the numbers of changes.")
        return memory.undo_together([number, *map(int, together)])
    if memory.agent is None and run:
        undo_change, _ = memory.undo_run(run)
        return undo_change
    return memory.undo(number or None)


def lead_to_refusal(visit: Visit, refusal: CannotUndo, *, is_of_many: bool) -> Response:
    """Redirect to the page of the change that cannot be undone, which says why.

    is_of_many: whether the form was to undo other changes, too.

    For `/api`, the refusal is raised instead. It is raised, too, if no single change is to blame.
    """
    if visit.is_api or refusal.number is None:
        raise refusal
    tried = "all" if is_of_many else "yes"
    return RedirectResponse(f"{HOME}/change/{refusal.number}?tried={tried}", 303)


def _own_numbers(memory: MemorySession) -> Collection[int]:
    """Return the numbers of all changes by the caller."""
    return {change.number for change in memory.log(limit=0, agent=memory.agent)}
