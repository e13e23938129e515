"""Find out which notes were deleted lately and are still gone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from memoranda.engine.engine import verb
from memoranda.engine.history.log import LogVerbs
from memoranda.engine.history.verbs import Revision
from memoranda.engine.writing import as_file

# Changes among which deletions are looked for.
_MAX_LOOKED_AT = 1_000


@verb
def standing_deletions(memory: LogVerbs, since: datetime, limit: int) -> list[Revision]:
    """Return the deletions of notes that nobody took back, the newest first.

    Deletions by jobs are left out, and notes that seem to hold instructions for agents. If a change
    deleted several notes, only the first one is returned. Only the latest changes are looked
    through.

    since: only deletions made since this time.
    limit: the number of deletions.
    """
    deletions: list[Revision] = []
    for deletion in _deletions(memory, since):
        if len(deletions) == limit:
            break
        if not _seems_planted(memory, deletion):
            deletions.append(deletion)
    return deletions


def _deletions(memory: LogVerbs, since: datetime) -> Iterator[Revision]:
    """Yield the deletions by people and agents that nobody took back, the newest first.

    If a change deleted several notes, only the first is yielded.
    """
    history = memory.engine.ledger.history
    for change in memory.log(limit=_MAX_LOOKED_AT, since=since):
        # Only changes by jobs belong to a run.
        is_by_job = change.run is not None
        is_deletion = change.verb == "delete" and not is_by_job
        if is_deletion and history.undone_by(change) is None:
            yield from memory.revisions(change.number, limit=1)


def _seems_planted(memory: LogVerbs, deletion: Revision) -> bool:
    """Whether the deleted text seems to hold instructions for agents.

    A text that the history does not keep counts as empty.
    """
    touched = deletion.touched
    deleted_text = deletion.before or ""
    note = memory.engine.parse(touched.project, touched.path, as_file(deleted_text.encode()))
    if note is None:
        return False
    broken_rules = memory.engine.gate.suspicious(note)
    return bool(broken_rules)
