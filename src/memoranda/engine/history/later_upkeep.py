"""Find out what upkeep alone has done to a note since a change, so that an undo can step over it.

Upkeep links memories by keys of their headers, and moves a memory of the inbox to the folder of a
category. Such a change writes no sentence and takes none away, so it does not prevent the undo of an
earlier change. The undo works by this rule:

1. A later change can be stepped over if a job made it, if it wrote only files that were there before
   and after, or moved one memory to another category, and if it left the text below the headers as
   it was. The undo of a change of headers can be stepped over, too.
2. All later changes of the file must be of this kind, and nobody may have saved the file outside of
   memory meanwhile.
3. A note that stays keeps its place, and what upkeep added to its header. A key that the undone
   change set, too, gets its old value.
4. If a note goes, the links that upkeep made to it go from the other memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memoranda.engine.writing import id_list
from memoranda.errors import NotFound, StorageError
from memoranda.ledger.change import FOLD, Change, Location, Touched, undone_numbers
from memoranda.ledger.history import History
from memoranda.note import frontmatter
from memoranda.note.edit import SetKeys
from memoranda.note.model import CATEGORY_PROJECT, MEMORY_KEYS
from memoranda.sources.base import File
from memoranda.sources.step import StepKind


@dataclass(frozen=True)
class LaterUpkeep:
    """The work of upkeep alone on a file since a change.

    left: the header keys that the change left.
    now: the header keys of the file now.
    """

    left: Mapping[str, Any]
    now: Mapping[str, Any]

    def added_links(self) -> list[str]:
        """Return the ids of memories that upkeep linked the note with."""
        links_left = id_list(self.left.get("links"))
        return [id for id in id_list(self.now.get("links")) if id not in links_left]

    def on(self, data: bytes) -> bytes:
        """Return the text that an undo restores, with the header keys that upkeep changed since.

        A link that a job added later stays in the header, for example.

        data: the text before the undone change.

        Raises ValueError if its header cannot be read.
        """
        text = data.decode()
        header = frontmatter.header_of(text)
        names = {*self.left, *self.now}
        keys: dict[str, Any] = {}
        for name in names:
            if self.left.get(name) != self.now.get(name):
                value = _merged_value(header.get(name), self.left.get(name), self.now.get(name))
                keys[name] = frontmatter.REMOVE if value in (None, []) else value
        return SetKeys(keys, MEMORY_KEYS).apply(text).text.encode()


def _merged_value(before: Any, left: Any, now: Any) -> Any:
    """Return the value of a header key after an undo. None for no such key.

    before: the value before the undone change.
    left: the value that this change left.
    now: the value that upkeep gave it since.
    """
    if before == left:
        return now
    if all(isinstance(value, list | None) for value in (before, left, now)):
        items_left = left or []
        items_now = now or []
        kept = [item for item in before or [] if item in items_now or item not in items_left]
        added = [item for item in items_now if item not in items_left and item not in kept]
        return kept + added
    # The undone change set the key, so its undo decides.
    return before


def later_upkeep(
    history: History, place: Location, number: int, left: str, now: File, digest_now: str
) -> LaterUpkeep | None:
    """Return what upkeep did to a file since a change. None if others changed it, too.

    place: the file: project, path and folder.
    number: the number of the change.
    left: the SHA-256 of the text that the change left.
    now: the file as it is now, or as the undo of later changes leaves it.
    digest_now: the SHA-256 of the text in the history that `now` comes from.
    """
    first_text = _text_before_upkeep(history, place, number, left, digest_now)
    if first_text is None:
        return None
    try:
        text_left = history.text(first_text, place.path).decode()
        text_now = now.data.decode()
        body_left = text_left[frontmatter.split(text_left).body_at :]
        body_now = text_now[frontmatter.split(text_now).body_at :]
        if body_left != body_now:
            return None
        return LaterUpkeep(frontmatter.header_of(text_left), frontmatter.header_of(text_now))
    except (NotFound, StorageError, ValueError):
        # A text is no longer kept, or is no text with a header.
        return None


def _text_before_upkeep(
    history: History, place: Location, number: int, left: str, digest_now: str
) -> str | None:
    """Return the SHA-256 of the text that the first later change of upkeep replaced.

    It is the text that the change left, or a version of that text with more counted reads. None if
    one of the later changes cannot be stepped over.
    """
    # The undo of a later change brought back the text that the change left.
    if digest_now == left:
        return left
    text_before = None
    for change, replaced_text in _changes_back_from(history, place, number, digest_now):
        # FOLD only stores counts of reads.
        if change.verb != FOLD:
            is_sorting = _steps_of_sorting(change) is not None
            if not is_sorting and not can_be_stepped_over(history, change):
                return None
            text_before = replaced_text
        if replaced_text == left:
            return text_before
    return None


def _changes_back_from(
    history: History, place: Location, number: int, digest: str, before: int | None = None
) -> Iterator[tuple[Change, str | None]]:
    """Yield the changes that led to the text at a place, the last one first.

    Each comes with the SHA-256 of the text that it replaced; None if it made the file. A memory that
    a job moved to another category is followed back to its former place.

    number: the change at which this ends.
    digest: the SHA-256 of the text.
    before: only changes with lower numbers matter. None for all.
    """
    for change in history.changes_at(place.project, place.path, after=number, before=before):
        removed = _removed_by_sorting(change, place, digest)
        if removed is not None and removed.old is not None:
            yield change, removed.old
            yield from _changes_back_from(
                history, removed.place, number, removed.old, before=change.number
            )
            return
        for touched in reversed(change.files):
            # A step that wrote another text did not lead to this one. Either the other text was
            # replaced outside of memory, or an undo has taken the step back.
            is_here = touched.place == place
            if not is_here or touched.new != digest:
                continue
            yield change, touched.old
            if touched.old is None:
                return
            digest = touched.old


def path_after_sorting(history: History, place: Location, number: int) -> str:
    """Return the present path of a memory that upkeep may have moved since a change.

    Otherwise its path is returned.

    place: where the change left the memory: project, path and folder.
    number: the number of the change.
    """
    after = number
    while True:
        # The newest change comes first. It is the last one at this place, since nothing is there.
        for change in history.changes_at(place.project, place.path, after=after):
            new_place = _place_after_sorting(change, place)
            if new_place is not None:
                break
        else:
            return place.path
        place = new_place
        after = change.number


def _steps_of_sorting(change: Change) -> tuple[Touched, Touched] | None:
    """Return the two steps of a job that moved a memory to another category: removed, and put.

    None for any other change.
    """
    is_of_job = change.run is not None and change.undoes is None
    # The folder of the category may be made, and the former one removed.
    folder_kinds = (StepKind.MKDIR, StepKind.RMDIR)
    files = [touched for touched in change.files if touched.do not in folder_kinds]
    kinds = [touched.do for touched in files]
    if not is_of_job or sorted(kinds) != [StepKind.PUT, StepKind.REMOVE]:
        return None
    put = files[kinds.index(StepKind.PUT)]
    removed = files[kinds.index(StepKind.REMOVE)]
    is_in_categories = put.project == removed.project == CATEGORY_PROJECT
    is_move = put.old is None and put.root == removed.root
    return (removed, put) if is_in_categories and is_move else None


def _removed_by_sorting(change: Change, place: Location, digest: str) -> Touched | None:
    """Return the step of the former place if a change moved a memory to this place. None if not.

    digest: the SHA-256 of the text that the change wrote at this place.
    """
    steps = _steps_of_sorting(change)
    if steps is None:
        return None
    removed, put = steps
    is_of_this_text = put.place == place and put.new == digest
    return removed if is_of_this_text else None


def _place_after_sorting(change: Change, place: Location) -> Location | None:
    """Return the new place if a change moved the memory of this place. None if it did not."""
    steps = _steps_of_sorting(change)
    if steps is None:
        return None
    removed, put = steps
    return put.place if removed.place == place else None


def can_be_stepped_over(history: History, change: Change) -> bool:
    """Whether a job made a change that only wrote to files that were there before and after.

    This is also true of an undo of such changes.
    """
    if not all(_is_rewritten(touched) for touched in change.files):
        return False
    if change.undoes is None:
        return change.run is not None
    if change.run is not None:
        return True
    undone = [history.change(number) for number in undone_numbers(change.undoes, change.details)]
    return all(done is not None and done.run is not None for done in undone)


def _is_rewritten(touched: Touched) -> bool:
    """Whether a step replaced the text of a file by another one."""
    return touched.do == StepKind.PUT and touched.old is not None and touched.new is not None
