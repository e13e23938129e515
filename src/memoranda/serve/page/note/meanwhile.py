"""Says who changed a note while somebody had a form of the page open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import PlacedChange, history_through_moves
from memoranda.engine.history.outside_edits import outside_edits
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change
from memoranda.serve.page.words.wording import joined_names, translated
from memoranda.serve.page.words.writers import is_upkeep

# Changes that are looked at for the one that the form was made from.
_MAX_CHANGES = 30
# Words for authors that have no name, to be translated.
EDITOR = "an editor or a sync program"
UPKEEP = "upkeep"
OWNER = "you, elsewhere"


def authors_since(memory: MemorySession, info: NoteInfo, checksum: str, language: str) -> str:
    """Return who changed a note since it had a checksum: `claude`, `claude and upkeep`.

    If the history does not know that text, return who changed the note last.

    language: the language of the words for authors without a name.
    """
    steps = history_through_moves(memory, info.project, info.path, limit=_MAX_CHANGES)
    # The history may have no change at all: then only an editor can have changed the file.
    authors = list(_authors(memory, steps, checksum)) or [EDITOR]
    if not _is_known(steps, checksum):
        authors = authors[:1]
    # Each author once, who changed the note first is the first.
    in_order_of_time = dict.fromkeys(reversed(authors))
    names = [translated(language, author) for author in in_order_of_time]
    return joined_names(language, names)


def text_of(memory: MemorySession, info: NoteInfo, checksum: str) -> str | None:
    """Return the earlier text of a note that had a checksum. None if the history does not have it."""
    steps = history_through_moves(memory, info.project, info.path, limit=_MAX_CHANGES)
    revisions = memory.revisions_of([step.change for step in steps])
    for step in steps:
        for revision in revisions[step.change.number]:
            if (revision.touched.old or "").startswith(checksum):
                return revision.before
    return None


def _authors(memory: MemorySession, steps: Sequence[PlacedChange], checksum: str) -> Iterator[str]:
    """Yield the authors of the changes back to the text with a checksum, the last one first."""
    revisions = memory.revisions_of([step.change for step in steps])
    edits = outside_edits(memory, steps, revisions, newer=None)
    for step in steps:
        # Somebody edited the file in an editor after this change.
        if step.change.number in edits:
            yield EDITOR
        # The change left the text with the checksum, so only what came after it counts.
        if _wrote(step.change, checksum):
            return
        yield _author_of(step.change)
        # Before the change, the note had the text with the checksum, so earlier ones do not count.
        if _replaced(step.change, checksum):
            return


def _author_of(change: Change) -> str:
    if is_upkeep([change]):
        return UPKEEP
    return change.agent or OWNER


def _is_known(steps: Sequence[PlacedChange], checksum: str) -> bool:
    """Whether one of the changes wrote or replaced the text with a checksum."""
    return any(_wrote(step.change, checksum) or _replaced(step.change, checksum) for step in steps)


def _wrote(change: Change, checksum: str) -> bool:
    """Whether a change wrote the text with a checksum, which may be the beginning of the whole one."""
    return any((touched.new or "").startswith(checksum) for touched in change.texts())


def _replaced(change: Change, checksum: str) -> bool:
    """Whether a change replaced the text with a checksum, which may be the beginning of the whole one."""
    return any((touched.old or "").startswith(checksum) for touched in change.texts())
