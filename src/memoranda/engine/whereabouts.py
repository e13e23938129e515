"""Finding where a note is now that was once at another place.

It may have been moved, sorted into a category, archived or merged since.
"""

from __future__ import annotations

import re
from contextlib import suppress

from memoranda.engine.engine import verb
from memoranda.engine.history import HistoryVerbs
from memoranda.errors import MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change
from memoranda.note import frontmatter
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.sources.step import StepKind

# File names of memories end in the first eight digits of their id.
_ID_IN_NAME = re.compile(r"-([0-9a-f]{8})\.md$")
# Places a note is followed through: a circle of moves ends there.
_MOST_MOVES = 20

Place = tuple[str, str]
"""A project, and a path in it."""


@verb
def where_now(
    memory: HistoryVerbs, project: str, path: str, *, only_same: bool = False
) -> NoteInfo | None:
    """The note that is, or once was, at `path` of `project`. None if nothing is left of it.

    A note that is there now counts first. If the note was merged into another, that note is
    returned.

    only_same: return the note itself only, not one that took its place or its links.
    """
    place = (project, path)
    met: set[Place] = set()
    for _ in range(_MOST_MOVES):
        info = _note_at(memory, place) or _by_id_in_name(memory, place, only_same)
        if info is not None:
            return info
        met.add(place)
        following = _left_for(memory, place, only_same)
        if following is None or following in met:
            return None
        place = following
    return None


def _note_at(memory: HistoryVerbs, place: Place) -> NoteInfo | None:
    """The note at a place now. None if no note is there."""
    with suppress(MemorandaError):
        return memory.find(place)
    return None


def _by_id_in_name(memory: HistoryVerbs, place: Place, only_same: bool) -> NoteInfo | None:
    """The memory whose id is in the file name of `place`, wherever the memory is.

    `…/tea-1a2b3c4d.md` names the memory whose id begins with `1a2b3c4d`, or, unless `only_same`,
    the memory that it was merged into. None if there is no such memory.
    """
    match = _ID_IN_NAME.search(place[1])
    if match is None or place[0] not in MEMORY_PROJECTS:
        return None
    with suppress(MemorandaError):
        info = memory.memory_id(match[1])
        if info.id.startswith(match[1]) or not only_same:
            return info
    return None


def _left_for(memory: HistoryVerbs, place: Place, only_same: bool) -> Place | None:
    """The place to which the last change took the note of `place`.

    None if no change took the note away, or if `only_same` and it left another note there.
    """
    with suppress(MemorandaError):
        for change in memory.log("/".join(place), limit=0):
            following = _moved_by(change, place)
            if following is not None:
                return following
            following = _left_by(change, place)
            if following is not None:
                is_same = not only_same or _is_same(memory, change, place, following)
                return following if is_same else None
    return None


def _moved_by(change: Change, place: Place) -> Place | None:
    """The place to which one change moved the file of `place`. None if it did not move it."""
    for touched in change.files:
        old_place = (touched.project, touched.path)
        if touched.do == StepKind.MOVE and old_place == place:
            return touched.project, touched.to
        # A folder that was moved with all its notes
        if (
            touched.do == StepKind.MOVE
            and place[1].startswith(f"{touched.path}/")
            and touched.old is None
        ):
            return touched.project, touched.to + place[1][len(touched.path) :]
    return None


def _left_by(change: Change, place: Place) -> Place | None:
    """The only place at which one change wrote a note while it removed the note of `place`.

    It is the same note, one that it was merged into, or one whose link to it was taken out. None if
    the change did not remove the note, or wrote no note or several.
    """
    written = []
    is_removed = False
    for touched in change.files:
        if touched.do == StepKind.PUT:
            written.append((touched.project, touched.path))
        elif touched.do == StepKind.REMOVE:
            is_removed |= (touched.project, touched.path) == place
    return written[0] if is_removed and len(written) == 1 else None


def _is_same(memory: HistoryVerbs, change: Change, place: Place, following: Place) -> bool:
    """Whether the note that a change removed at `place` is the one that it wrote at `following`."""
    before: str | None = None
    after: str | None = None
    for revision in memory.revisions_of([change])[change.number]:
        written_place = (revision.touched.project, revision.touched.path)
        if written_place == place:
            before = revision.before
        elif written_place == following:
            after = revision.after
    if before is None or after is None:
        return False
    identifier = _id_in(before)
    return before == after or (identifier is not None and identifier == _id_in(after))


def _id_in(text: str) -> str | None:
    """The id in the header of a note's text, or None."""
    yaml_text = frontmatter.split(text).yaml
    with suppress(ValueError):
        identifier = frontmatter.parse(yaml_text or "").get("id")
        return identifier if isinstance(identifier, str) else None
    return None
