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

    header_left: the header keys that the change left.
    header_now: the header keys of the file now.
    """

    header_left: Mapping[str, Any]
    header_now: Mapping[str, Any]

    def added_links(self) -> list[str]:
        """Return the ids of memories that upkeep linked the note with."""
        links_left = id_list(self.header_left.get("links"))
        links_now = id_list(self.header_now.get("links"))
        return [memory_id for memory_id in links_now if memory_id not in links_left]

    def applied_to(self, data: bytes) -> bytes:
        """Return the text that an undo restores, with the header keys that upkeep changed since.

        A link that a job added later stays in the header, for example.

        data: the text before the undone change.

        Raises ValueError if its header cannot be read.
        """
        text = data.decode()
        header_before = frontmatter.header_of(text)
        new_keys: dict[str, Any] = {}
        for name in {*self.header_left, *self.header_now}:
            value_left = self.header_left.get(name)
            value_now = self.header_now.get(name)
            if value_left != value_now:
                value = _merged_value(header_before.get(name), value_left, value_now)
                is_empty = value is None or value == []
                new_keys[name] = frontmatter.REMOVE if is_empty else value
        return SetKeys(new_keys, MEMORY_KEYS).apply(text).text.encode()


def _merged_value(before: Any, left: Any, now: Any) -> Any:
    """Return the value of a header key after an undo. None for no such key.

    before: the value before the undone change.
    left: the value that this change left.
    now: the value that upkeep gave it since.
    """
    # The undone change did not set the key, so it keeps what upkeep gave it.
    if before == left:
        return now
    are_lists = all(isinstance(value, list | None) for value in (before, left, now))
    if are_lists:
        items_before = before or []
        items_left = left or []
        items_now = now or []
        # Without the old items that upkeep removed since, and with those that it added.
        kept = [item for item in items_before if item in items_now or item not in items_left]
        added = [item for item in items_now if item not in items_left and item not in kept]
        return kept + added
    # The undone change set the key, so its undo decides.
    return before


def later_upkeep(
    history: History,
    place: Location,
    number: int,
    digest_left: str,
    file_now: File,
    digest_now: str,
) -> LaterUpkeep | None:
    """Return what upkeep did to a file since a change. None if others changed it, too.

    place: the file: project, path and folder.
    number: the number of the change.
    digest_left: the SHA-256 of the text that the change left.
    file_now: the file as it is now, or as the undo of later changes leaves it.
    digest_now: the SHA-256 of the text in the history that `file_now` comes from.
    """
    digest_before = _digest_before_upkeep(history, place, number, digest_left, digest_now)
    if digest_before is None:
        return None
    try:
        text_left = history.text(digest_before, place.path).decode()
        text_now = file_now.data.decode()
        body_left = text_left[frontmatter.split(text_left).body_at :]
        body_now = text_now[frontmatter.split(text_now).body_at :]
        if body_left != body_now:
            return None
        return LaterUpkeep(frontmatter.header_of(text_left), frontmatter.header_of(text_now))
    except (NotFound, StorageError, ValueError):
        # A text is no longer kept, or is no text with a header.
        return None


def _digest_before_upkeep(
    history: History, place: Location, number: int, digest_left: str, digest_now: str
) -> str | None:
    """Return the SHA-256 of the text that the first later change of upkeep replaced.

    It is the text that the change left, or a version of that text with more counted reads. None if
    one of the later changes cannot be stepped over, or if the changes do not lead back to the text
    that the change left.
    """
    # The undo of a later change brought back the text that the change left.
    if digest_now == digest_left:
        return digest_left
    # The changes come from the last to the first. So in the end, this is of the first one.
    digest_before: str | None = None
    for change, replaced_digest in _changes_back_from(history, place, number, digest_now):
        # FOLD only stores counts of reads.
        if change.verb != FOLD:
            is_sorting = _steps_of_sorting(change) is not None
            if not is_sorting and not can_be_stepped_over(history, change):
                return None
            digest_before = replaced_digest
        if replaced_digest == digest_left:
            return digest_before
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
            # Older changes of the memory are at its former place.
            yield from _changes_back_from(
                history, removed.place, number, removed.old, before=change.number
            )
            return
        for touched in reversed(change.files):
            # A step that wrote another text did not lead to this one. Either the other text was
            # replaced outside of memory, or an undo has taken the step back.
            if touched.place != place or touched.new != digest:
                continue
            yield change, touched.old
            if touched.old is None:
                return
            # The changes before it led to the text that it replaced.
            digest = touched.old


def path_after_sorting(history: History, place: Location, number: int) -> str:
    """Return the present path of a memory that upkeep may have moved since a change.

    Otherwise its path is returned.

    place: where the change left the memory: project, path and folder.
    number: the number of the change.
    """
    last_number = number
    while True:
        # The newest change comes first, so this is the last one that moved a memory away from here.
        for change in history.changes_at(place.project, place.path, after=last_number):
            new_place = _place_after_sorting(change, place)
            if new_place is not None:
                break
        else:
            # No change moved it further.
            return place.path
        place = new_place
        last_number = change.number


def _steps_of_sorting(change: Change) -> tuple[Touched, Touched] | None:
    """Return the two steps of a job that moved a memory to another category: removed, and put.

    None for any other change.
    """
    # Only changes by jobs belong to a run. The undo of one does, too.
    is_of_job = change.run is not None and change.undoes is None
    # The folder of the category may be made, and the former one removed.
    folder_kinds = (StepKind.MKDIR, StepKind.RMDIR)
    step_by_kind = {
        touched.do: touched for touched in change.files if touched.do not in folder_kinds
    }
    file_count = sum(touched.do not in folder_kinds for touched in change.files)
    put = step_by_kind.get(StepKind.PUT)
    removed = step_by_kind.get(StepKind.REMOVE)
    if not is_of_job or file_count != 2 or put is None or removed is None:
        return None
    are_memories = put.project == CATEGORY_PROJECT and removed.project == CATEGORY_PROJECT
    is_move = put.makes_file and put.root == removed.root
    return (removed, put) if are_memories and is_move else None


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
    # An undo of single changes of jobs does not belong to a run itself.
    numbers = undone_numbers(change.undoes, change.details)
    undone_changes = [history.change(number) for number in numbers]
    return all(undone is not None and undone.run is not None for undone in undone_changes)


def _is_rewritten(touched: Touched) -> bool:
    """Whether a step replaced the text of a file by another one."""
    return touched.do == StepKind.PUT and touched.old is not None and touched.new is not None
