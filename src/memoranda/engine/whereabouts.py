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
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.sources.step import StepKind

# File names of memories end in the first eight digits of their id.
_ID_IN_NAME = re.compile(r"-([0-9a-f]{8})\.md$")
# Places a note is followed through: a circle of moves ends there.
_MOST_MOVES = 20

Place = tuple[str, str]
"""A project, and a path in it."""


@verb
def where_now(memory: HistoryVerbs, project: str, path: str) -> NoteInfo | None:
    """The note that is, or once was, at `path` of `project`. None if nothing is left of it.

    A note that is there now counts first. If the note was merged into another, that note is
    returned.
    """
    place = (project, path)
    met: set[Place] = set()
    for _ in range(_MOST_MOVES):
        info = _note_at(memory, place) or _by_id_in_name(memory, place)
        if info is not None:
            return info
        met.add(place)
        following = _left_for(memory, place)
        if following is None or following in met:
            return None
        place = following
    return None


def _note_at(memory: HistoryVerbs, place: Place) -> NoteInfo | None:
    """The note at a place now. None if no note is there."""
    with suppress(MemorandaError):
        return memory.find(place)
    return None


def _by_id_in_name(memory: HistoryVerbs, place: Place) -> NoteInfo | None:
    """The memory whose id is in the file name of `place`, wherever the memory is.

    `…/tea-1a2b3c4d.md` names the memory whose id begins with `1a2b3c4d`. None if there is no such
    memory.
    """
    match = _ID_IN_NAME.search(place[1])
    if match is None or place[0] not in MEMORY_PROJECTS:
        return None
    with suppress(MemorandaError):
        return memory.memory_id(match[1])
    return None


def _left_for(memory: HistoryVerbs, place: Place) -> Place | None:
    """The place to which the last change took the note of `place`.

    None if no change took the note away.
    """
    with suppress(MemorandaError):
        for change in memory.log("/".join(place), limit=0):
            following = _taken_by(change, place)
            if following is not None:
                return following
    return None


def _taken_by(change: Change, place: Place) -> Place | None:
    """The place to which one change took the note of `place`, by moving or rewriting the note.

    None if the change did not take the note away.
    """
    removed = False
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
        removed |= touched.do == StepKind.REMOVE and old_place == place
    written = [touched for touched in change.files if touched.do == StepKind.PUT]
    if removed and len(written) == 1:
        return written[0].project, written[0].path
    return None
