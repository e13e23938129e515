"""Long notes in the index: their words go in and out in parts, so that other calls can come in.

The index stores a note with its first passages at once. A passage is a piece of a note that is found
by its own words. A note of more than about 200,000 characters has further passages and word stems,
which take seconds. They are inserted after the change, some at a time, each part in a transaction of
its own (`index/placing.py`). Before such a note is replaced, they are taken out in the same way.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from memoranda.engine.guard import Guard
from memoranda.errors import MemorandaError, StorageError
from memoranda.index.index import Index
from memoranda.index.placing import PASSAGES_AT_ONCE, has_parts

if TYPE_CHECKING:
    from memoranda.index.writer import Indexed


class LongNotes:
    """Inserts the words of long notes into the index, and takes them out.

    guard: held during each part of the work.
    home_released: a context that lets other threads use the home. It yields False if the running
        call does not allow that.
    handle_error: called with an error of the index, so that the next comparison with the disk goes
        on with the work.
    """

    def __init__(
        self,
        index: Index,
        guard: Guard,
        home_released: Callable[[], AbstractContextManager[bool]],
        handle_error: Callable[[Exception], None],
    ):
        self._index = index
        self._guard = guard
        self._home_released = home_released
        self._handle_error = handle_error
        # The rows of the notes whose words a thread is inserting now.
        self._being_placed: set[int] = set()
        # By the row of a note, the number of changes that are about to replace it.
        self._being_replaced: Counter[int] = Counter()
        # How many threads are about to insert words, once their change is in the index.
        self._will_place = 0

    def place_what_is_left(self) -> None:
        """Insert the words of long notes that a process left out because it ended.

        It does nothing while a thread of this process makes a change, and inserts them after it.
        """
        if not self._will_place:
            self.place_passages()

    def place_passages(self) -> None:
        """Insert the missing words of long notes into the index (`index/placing.py`).

        This is done in parts, and others may use the home between them, if the call allows it.
        Notes that another thread works at are left to that thread. If the index refuses, the next
        comparison with the disk goes on.

        Raises StorageError if the home was closed in between.
        """
        for note_row in self._notes_to_place():
            self._being_placed.add(note_row)
            try:
                self._place_passages_of(note_row)
            finally:
                self._being_placed.discard(note_row)

    def _place_passages_of(self, note_row: int) -> None:
        """Insert the missing passages of one long note, in parts.

        This ends early if another change is about to replace the note.
        """
        while note_row not in self._being_replaced:
            # This is so before the first part, too: others have just waited for the note itself.
            self._let_others_in()
            has_more = self._do_part(partial(self._index.place, note_row))
            if not has_more:
                return

    def _notes_to_place(self) -> list[int]:
        """Return the rows of notes whose words are not all indexed, and that no thread works on."""
        try:
            note_rows = self._index.unplaced()
        except (sqlite3.Error, OSError, StorageError) as error:
            self._handle_error(error)
            return []
        rows_in_work = self._being_placed | self._being_replaced.keys()
        return [row for row in note_rows if row not in rows_in_work]

    @contextmanager
    def replacing(self, notes: Sequence[tuple[str, Indexed]]) -> Iterator[None]:
        """Take passages and stems of long notes out of the index, for a block that replaces the
        notes.

        This is done in parts, and others may use the home between them, if the call allows it.
        After the block, the index gets the ones of the new notes, or of the old notes if the block
        did not replace them.

        notes: the notes, each with the name of its project before it.
        """
        long_notes = [(project, note) for project, note in notes if has_parts(note.passages)]
        rows = {note.row for _, note in long_notes}
        # Without this record, other threads would put the passages back. A number is recorded for
        # each note, because another change of the same note may end before this one.
        self._being_replaced.update(rows)
        self._will_place += 1
        try:
            for project, note in long_notes:
                self._withdraw(project, note)
            yield
        finally:
            self._being_replaced -= Counter(rows)
            try:
                self.place_passages()
            finally:
                self._will_place -= 1

    def _withdraw(self, project: str, note: Indexed) -> None:
        """Take the words of a long note out of the index, in parts, before the note is replaced.

        Words that are not taken out here are removed when the note is replaced.
        """
        # Between two parts, another thread may replace the note and put in the words of its new
        # text. The limit keeps this loop from taking out those words for ever.
        most_parts = note.passages // PASSAGES_AT_ONCE + 2
        for _ in range(most_parts):
            has_more = self._do_part(partial(self._index.withdraw, project, note.path))
            if not has_more:
                return
            self._let_others_in()

    def _do_part(self, work: Callable[[], bool]) -> bool:
        """Do a part of the work on the index, in its own transaction.

        work: returns False if nothing was left to do.

        Returns what `work` returns. False if the index refuses.
        """
        try:
            with self._guard, self._index.write_lock, self._index.transaction():
                return work()
        except (sqlite3.Error, OSError, MemorandaError) as error:
            self._handle_error(error)
            return False

    def _let_others_in(self) -> None:
        """Give the home to the threads that wait for it, if the running call allows it."""
        with self._home_released():
            pass
