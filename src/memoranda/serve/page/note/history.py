"""Shows the history of a note, also from before it was moved, sorted into a category or archived."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from starlette.responses import Response

from memoranda import documents
from memoranda.documents import differences
from memoranda.documents.differences import Difference
from memoranda.documents.listed import Document
from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import Place, PlacedChange, history_through_moves
from memoranda.engine.history.outside_edits import OutsideEdit, outside_edits
from memoranda.engine.history.refusals import refused_undos
from memoranda.engine.history.verbs import Revision
from memoranda.engine.history.whereabouts import where_now
from memoranda.errors import MemorandaError, NotFound, NotInHistory
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import UNLINKED, Change
from memoranda.note.edit import Rewrite
from memoranda.serve.page.note.secret_question import have_secret
from memoranda.serve.page.paging import page_of_list
from memoranda.serve.page.today.change_rows import undone_in
from memoranda.serve.page.visit import Visit
from memoranda.serve.page.words.titles import title_of_path, title_of_revision
from memoranda.serve.page.words.wording import translated
from memoranda.serve.page.words.writers import is_upkeep

# Changes on one page of the history.
_CHANGES_PER_PAGE = 30
# The keys of a header with links to other notes.
_LINK_KEYS = {"links", "unlinked"}


def show(visit: Visit, place: Place, *, is_gone: bool = False) -> Response:
    """Show the history of the note at a place.

    Raises NotFound if a note that `is_gone` has no history either.
    """
    offset = visit.number("offset", 0)
    project, path = place
    # One more than is shown, to know whether there are more.
    newest_steps = history_through_moves(
        visit.memory, project, path, limit=offset + _CHANGES_PER_PAGE + 1
    )
    listed = page_of_list(newest_steps[offset:], offset, _CHANGES_PER_PAGE)
    if is_gone and not listed.rows:
        raise NotFound(path, project)
    # `_title` finds the note, which reads a file that an editor saved: the history then keeps the
    # text that it replaced. So it comes before `_rows`, which shows that edit.
    title = _title(visit, place, newest_steps)
    # The last change of the page before this one. The first page has none before it.
    newer = newest_steps[offset - 1] if 0 < offset <= len(newest_steps) else None
    rows = _rows(visit.memory, listed.rows, place, newer=newer)
    listed = replace(listed, rows=rows)
    return visit.part_or_page(
        "history.html",
        "gone.html",
        404 if is_gone else 200,
        listed=listed,
        project=project,
        path=path,
        title=title,
        is_gone=is_gone,
    )


def _title(visit: Visit, place: Place, steps: Sequence[PlacedChange]) -> str:
    """Return the title of the note that is, or was last, at a place.

    If its last change has a secret, the title only says that.
    """
    memory = visit.memory
    with suppress(MemorandaError):
        return visit.title_of(memory.read(memory.find(place), count=False))
    for step in steps:
        for revision in memory.revisions(step.change.number):
            if is_about(revision, step.place):
                if have_secret(memory, [revision]):
                    return translated(visit.language, "A note with a secret")
                return title_of_revision(revision)
    return title_of_path(place[1])


def _rows(
    memory: MemorySession,
    steps: Sequence[PlacedChange],
    place: Place,
    *,
    newer: PlacedChange | None,
) -> list[Document]:
    """Return the rows of a note's history, newest change first.

    steps: the changes to show.
    place: where the note is, or was last.
    newer: the change after these. None if they are the newest.

    Edits outside of memoranda have rows of their own kind (`_outside_row`). Any other row is the
    document of a change, and:

    is_outside: False.
    is_upkeep: whether a job of upkeep made it.
    moved_from, moved_to: the folders between which the change moved the note. "" if it did not.
    differences: what it changed in the note.
    undone_by: the number of the change that undid it. None if it was not undone.
    refusal: the error why it cannot be undone now. None if it can.
    may_restore: whether the text before it can be restored.
    undoes: the number of the change that it undid, or None.
    merged: the title of the note that it merged into this one. "" if it merged none.
    linked: the note with which upkeep linked this one, at its present place, or None.
    is_of_other: whether the change is about another note, and changed only links in this one.
    repeated: the rows of similar changes just before it.
    """
    changes = [step.change for step in steps]
    undone = undone_in(changes)
    refusals = refused_undos(memory, [change.number for change in changes])
    newer_changes = [] if newer is None else [newer.change]
    revisions = memory.revisions_of([*newer_changes, *changes])
    edits = outside_edits(memory, steps, revisions, newer=newer)
    rows = []
    for step in steps:
        change = step.change
        moved_from, moved_to = _folders_of_move(step)
        if change.number in edits:
            rows.append(_outside_row(edits[change.number], may_restore=step.place == place))
        step_differences = _differences(step, revisions[change.number])
        # A restore of the text would change nothing after a pin, or undo a tag.
        changed_text = any(
            difference.lines or difference.is_text_lost for difference in step_differences
        )
        row = {
            "is_outside": False,
            "is_upkeep": is_upkeep([change]),
            "moved_from": moved_from,
            "moved_to": moved_to,
            "differences": step_differences,
            "undone_by": undone.get(change.number),
            "refusal": refusals.get(change.number),
            # The text of an earlier place would be restored there, so it is not offered.
            "may_restore": changed_text and step.place == place and _has_text_before(change, place),
            "undoes": change.undoes,
            "is_of_other": _is_of_other_note(step, step_differences),
            "merged": _title_merged(memory, step, revisions[change.number]),
            "linked": _linked_note(memory, step),
        }
        rows.append(documents.change(change) | row)
    return _with_runs_folded(rows)


def _is_of_other_note(step: PlacedChange, step_differences: Sequence[Difference]) -> bool:
    """Whether somebody's change is about another note, and only changed links in this one.

    step_differences: what it changed in this note.
    """
    change = step.change
    has_moved_this = step.place_before is not None
    is_about_this = has_moved_this or (change.project, change.path) == step.place
    if is_about_this or is_upkeep([change]) or change.verb in ("merge", "rename"):
        return False
    # An undo is about every note that it gives an older text, but not about one that it unlinks.
    if change.verb == "undo" and UNLINKED not in (change.details or {}):
        return False
    # A pin or a tag of several notes is about each of them.
    names = {item.name for difference in step_differences for item in difference.properties}
    has_lines = any(difference.lines for difference in step_differences)
    return names <= _LINK_KEYS and not (change.verb == "undo" and has_lines)


def _with_runs_folded(rows: Sequence[Document]) -> list[Document]:
    """Join rows of upkeep that follow each other into one row.

    It is the newest of them, and has the others in `repeated`. They have one verb, and show nothing
    that they changed.
    """
    folded: list[Document] = []
    for row in rows:
        row["repeated"] = []
        if folded and _is_repeated(folded[-1], row):
            folded[-1]["repeated"].append(row)
        else:
            folded.append(row)
    return folded


def _is_repeated(newer: Document, row: Document) -> bool:
    """Whether a row of the history may go into the row above it, which is newer.

    Both are changes of upkeep with the same verb. Neither moved the note, and the older one has no
    lines to show.
    """
    if newer["is_outside"] or row["is_outside"]:
        return False
    if not (newer["is_upkeep"] and row["is_upkeep"]):
        return False
    has_moved_note = newer["moved_from"] != "" or row["moved_from"] != ""
    has_lines = any(difference.lines for difference in row["differences"])
    return newer["verb"] == row["verb"] and not has_moved_note and not has_lines


def _linked_note(memory: MemorySession, step: PlacedChange) -> NoteInfo | None:
    """Return the note that upkeep linked with this one. None if there is no such note."""
    change = step.change
    others = [touched for touched in change.files if (touched.project, touched.path) != step.place]
    if change.verb != "link" or change.run is None or len(others) != 1:
        return None
    return where_now(memory, others[0].project, others[0].path)


def _title_merged(memory: MemorySession, step: PlacedChange, revisions: Sequence[Revision]) -> str:
    """Return the title of the note that a change merged into the note. "" if it merged none.

    A title with a secret is left out.
    """
    if step.change.verb != "merge":
        return ""
    for revision in revisions:
        is_other = revision.after is None and not is_about(revision, step.place)
        if is_other and not have_secret(memory, [revision]):
            return title_of_revision(revision)
    return ""


def _outside_row(edit: OutsideEdit, *, may_restore: bool) -> Document:
    """Return the row for an edit outside of memoranda.

    may_restore: whether the text before it can be restored at its place.
    """
    difference = Difference(is_text_lost=True)
    if edit.text_before is not None and edit.text_after is not None:
        difference = differences.between(edit.text_before, edit.text_after)
    return {
        "is_outside": True,
        "after": edit.after,
        "since": edit.since,
        "time": edit.time,
        "is_latest": edit.is_latest,
        "differences": [difference],
        "may_restore": may_restore and bool(difference.lines),
    }


def restore_before_outside_edit(visit: Visit, info: NoteInfo) -> None:
    """Give a note the text that it had before an edit outside of memoranda.

    The field `after` has the number of the last change before the edit.
    """
    memory = visit.memory
    number = visit.number("after", 0)
    for revision in memory.revisions(number):
        if is_about(revision, (info.project, info.path)) and revision.after is not None:
            memory.edit(info, Rewrite(revision.after), checksum=info.checksum)
            return
    raise NotInHistory(f"#{number}")


def _folders_of_move(step: PlacedChange) -> tuple[str, str]:
    """Return the names of the places between which a change moved the note. Both "" if none.

    These are the folders, or the files if only the name of the file changed.
    """
    if step.place_before is None:
        return "", ""
    old_folder = _folder(step.place_before)
    new_folder = _folder(step.place)
    if old_folder != new_folder:
        return old_folder, new_folder
    return step.place_before[1], step.place[1]


def _folder(place: Place) -> str:
    """Return the project and the folder of a place: `notes/people`."""
    project, path = place
    return f"{project.lstrip('.')}/{path}".rpartition("/")[0]


def _differences(step: PlacedChange, revisions: Sequence[Revision]) -> list[Difference]:
    """Return the differences that a change made to the note, also if it moved the note.

    revisions: all revisions of the change.
    """
    own_revisions = [revision for revision in revisions if is_about(revision, step.place)]
    text_before = _text_removed(step, revisions)
    if text_before is not None:
        own_revisions = [replace(revision, before=text_before) for revision in own_revisions]
    return [differences.of_revision(revision) for revision in own_revisions]


def _text_removed(step: PlacedChange, revisions: Sequence[Revision]) -> str | None:
    """Return the text that a moving change removed at the old place and wrote at the new one.

    None if the change did not move the text.
    """
    for revision in revisions:
        is_removed = revision.after is None and revision.before is not None
        if is_removed and step.place_before and is_about(revision, step.place_before):
            return revision.before
    return None


def is_about(revision: Revision, place: Place) -> bool:
    """Whether a revision is of the note at a place, or moved a note there."""
    touched = revision.touched
    return place in ((touched.project, touched.path), (touched.project, touched.to))


def _has_text_before(change: Change, place: Place) -> bool:
    """Whether the history has the text that a change replaced."""
    return any(
        (touched.project, touched.path) == place
        and touched.old
        and touched.kept
        and touched.do != "move"
        for touched in change.files
    )
