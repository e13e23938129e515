"""Carries out the steps of a change on disk, and takes them back when one fails.

A step is one action on one file or folder (`sources/step.py`): put, remove, move, make or remove a
folder, link. The process that carries out a change is its writer. If the writer dies, the next
process finds out from the disk which steps were done, and does the other steps.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING

from memoranda.errors import Conflict, Exists, MemorandaError, NotFound
from memoranda.ledger.change import Touched
from memoranda.ledger.file_exchange import Entry, exchange, put_new
from memoranda.ledger.file_sync import PARALLEL_SYNCS
from memoranda.ledger.folder_move import clear_moved, move
from memoranda.sources.base import File, Stamp
from memoranda.sources.files import read_file, stamp_of, stat_in, write_file
from memoranda.sources.path_guard import Folder, open_folder
from memoranda.sources.step import NEW_MODE, Step, StepKind

if TYPE_CHECKING:
    from concurrent.futures import Executor

OPEN_FOLDERS = 200
"""Folders that a change keeps open at a time: a process may open only some hundred files."""
# How often a file that somebody else keeps saving is put back.
_MAX_GIVE_BACKS = 100
# A file that is empty since less than this time may be in the middle of a save.
_EMPTIED_NS = 1_000_000_000
# Within this time, an editor that has emptied a file writes into it.
_SAVE_SECONDS = 0.02
# The errors of a folder that cannot be removed because it is not empty
_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
# The steps that make something at their place. All others take something away from there.
_MAKING = (StepKind.MKDIR, StepKind.SYMLINK)


class _Reversal(Enum):
    """The ways to take a step back."""

    EXCHANGE = auto()
    """Exchange the new file at the place and the old file at the temporary name again."""
    PUT_BACK = auto()
    """Put a removed file back from its temporary name."""
    REMOVE_FILE = auto()
    """Remove a file that the step wrote at a free place."""
    MOVE_BACK = auto()
    """Move a file or folder from its new place to its old one."""
    REMOVE_FOLDER = auto()
    """Remove a folder that the step made."""
    MAKE_FOLDER = auto()
    """Make a folder that the step removed."""
    REMOVE_LINK = auto()
    """Remove a symlink that the step made."""
    MAKE_LINK = auto()
    """Make a symlink that the step removed."""


class Execution:
    """Carries out steps and remembers how to take them back.

    Before the change is recorded, the caller calls `check` and `write_temps`. Afterwards it calls
    `run` for each step, and then `finish`, which makes the steps final, or `rollback`, which takes
    them back.

    An editor may save a file at any moment in between. Its text is never lost: before `finish`, it
    goes back to its place, and the change fails with a Conflict.

    holds_truth: whether the files are the only truth. Then a file that differs from the step's
        `old` is a Conflict and stays. False for copies of a server's notes, which are replaced.
    """

    def __init__(self, *, holds_truth: bool = True):
        self._holds_truth = holds_truth
        # Open folders by (root, path), the one used last at the end
        self._folders: dict[tuple[str, str], Folder] = {}
        # How `rollback` takes back each step that was carried out, in the order of the steps
        self._reversals: list[tuple[_Reversal, Step]] = []
        # Steps whose temporary files must stay until `finish`: most hold a replaced text
        self._steps_with_temp: list[Step] = []
        # Steps whose temporary file the disk would not remove
        self._steps_with_stuck_temp: list[Step] = []

    # --- before the change is recorded

    def check(self, steps: Sequence[Step]) -> None:
        """Raise Conflict or Exists for a file that is not as it was read.

        A file that an earlier step of the change touches or moves is checked only by `run`.
        """
        touched_places = set[tuple[str, str]]()
        # Projects in which an earlier step may have put another file at any path
        rearranged_roots = set[str]()
        for step in steps:
            # SET is about a row of the ledger. For LINES, the source has read the file under its lock.
            if step.do in (StepKind.SET, StepKind.LINES):
                continue
            if step.do not in (StepKind.PUT, StepKind.REMOVE):
                rearranged_roots.add(step.root)
                continue
            place = (step.root, step.path)
            is_first_at_place = step.root not in rearranged_roots and place not in touched_places
            touched_places.add(place)
            if is_first_at_place:
                self._check_file(step)

    def _check_file(self, step: Step) -> None:
        """Compare the file at the place of a step with the file that was read.

        Raises Conflict if the file differs from `step.old`. Raises Exists if `step.old` is None and
        the place has a file.
        """
        try:
            folder, name = self._at(step)
        except NotFound:
            if step.old is None:
                # Its folder is still to be made
                return
            raise Conflict(step.path, "none", step.old.etag[:8]) from None
        # If an editor was saving when the file was read, it has written the text after this time.
        # Then the comparison below finds another file.
        if step.old is not None and self._is_just_emptied(step.old):
            time.sleep(_SAVE_SECONDS)
        status = stat_in(name, folder.fd)
        if step.old is None:
            if status is not None:
                raise Exists(step.path)
            return
        if status is None or not step.old.stamp.is_same_file(stamp_of(status)):
            raise self._conflict(step)
        # Only the change time differs. A rename or new rights set it, but so does a program that
        # changes the text and sets the old time: so the text is compared.
        has_new_change_time = stamp_of(status) != step.old.stamp
        if has_new_change_time and read_file(name, folder.fd).etag != step.old.etag:
            raise self._conflict(step)

    def _conflict(self, step: Step) -> Conflict:
        """Return the error that the file of a step has changed since it was read.

        It names the text that was read and the present one, each by the first 8 digits of its
        SHA-256.
        """
        folder, name = self._at(step)
        status = stat_in(name, folder.fd)
        present_text = "none"
        if status is not None and stat.S_ISREG(status.st_mode):
            present_text = read_file(name, folder.fd).etag[:8]
        text_as_read = "none"
        if step.old is not None:
            text_as_read = step.old.etag[:8]
        return Conflict(step.path, present_text, text_as_read)

    @staticmethod
    def _is_just_emptied(file: File) -> bool:
        """Whether a file may be in the middle of a save: some editors empty it before they write."""
        return not file.data and time.time_ns() - file.stamp.mtime_ns < _EMPTIED_NS

    def write_temps(self, puts: Sequence[Step]) -> None:
        """Write the new bytes of `put` steps as temporary files."""
        for step in puts:
            assert step.data is not None
            temp = self._temp(step)
            status = write_file(
                temp.name,
                step.data,
                mode=mode_of(step),
                folder=temp.folder,
                durable=False,
                written_ns=step.written_ns,
            )
            step.stamp = stamp_of(status)

    def has_temp(self, step: Step) -> bool:
        """Whether the temporary file of a `put` step is still the file that was written."""
        try:
            temp = self._temp(step)
        except MemorandaError:
            return False
        status = stat_in(temp.name, temp.folder)
        if status is None or step.stamp is None:
            return False
        return step.stamp.is_same_file(stamp_of(status))

    def sync_temps(self, puts: Sequence[Step], threads: Executor | None = None) -> None:
        """Sync the temporary files of `put` steps to the disk.

        puts: the steps.
        threads: syncs several files in parallel. With None, one file is synced after the other.
        """
        # A part has so few files that their folders can be open at the same time
        for first in range(0, len(puts), OPEN_FOLDERS):
            temps = [self._temp(step) for step in puts[first : first + OPEN_FOLDERS]]
            if threads is None or len(temps) < PARALLEL_SYNCS:
                _sync_files(temps)
                continue
            # Deal the files out: the first thread gets the files 0, 16, 32 …
            shares = [temps[number::PARALLEL_SYNCS] for number in range(PARALLEL_SYNCS)]
            # Reading the results waits for the threads, and raises their errors
            for _ in threads.map(_sync_files, shares):
                continue

    # --- on disk

    def run(self, step: Step) -> None:
        """Carry out one step on disk.

        Raises Conflict, Exists, NotFound or OSError; then the step is not done.
        """
        # A row of the ledger was set when the change was recorded
        if step.do == StepKind.SET:
            return
        if step.lines is not None:
            step.lines.write.run()
            return
        folder, name = self._at(step)
        place = Entry(folder.fd, name)
        match step.do:
            case StepKind.PUT:
                self._put(step, place)
                self._update_stamp(step, place)
            case StepKind.REMOVE:
                self._remove(step, place)
            case StepKind.MOVE:
                self._move(step, place)
            case StepKind.MKDIR:
                os.mkdir(name, 0o700, dir_fd=folder.fd)
                self._reversals.append((_Reversal.REMOVE_FOLDER, step))
                # The user's mask may have taken rights from the new folder.
                os.chmod(name, 0o700, dir_fd=folder.fd)
            case StepKind.RMDIR:
                self._remove_folder(step, place)
            case StepKind.SYMLINK:
                os.symlink(step.link, name, dir_fd=folder.fd)
                self._reversals.append((_Reversal.REMOVE_LINK, step))
            case _:
                self._unlink(step, place)

    def _put(self, step: Step, place: Entry) -> None:
        """Put the new file of a step, which has the temporary name so far, at `place`.

        Raises Conflict if the file at `place` is not the one that was read, and Exists if a file is
        at a place that was free. Then the file of somebody else is where it was.
        """
        temp = self._temp(step)
        # The copy of a server's note is replaced, whatever text it has.
        if not self._holds_truth:
            os.rename(temp.name, place.name, src_dir_fd=temp.folder, dst_dir_fd=place.folder)
            self._reversals.append((_Reversal.REMOVE_FILE, step))
            return

        # A new note takes a free place. If somebody was there first, their file stays.
        if step.old is None:
            try:
                is_temp_gone = put_new(temp, place)
            except FileExistsError:
                raise Exists(step.path) from None
            if not is_temp_gone:
                self._steps_with_temp.append(step)
            self._reversals.append((_Reversal.REMOVE_FILE, step))
            return

        # An existing note is exchanged with the new file, and comes out at the temporary name.
        try:
            exchange(temp, place)
        except (FileNotFoundError, FileExistsError):
            raise self._conflict(step) from None
        # An editor may have saved after `check`. Then its file came out, and goes back.
        if not self._is_old(step, temp):
            self._restore_saved_file(step, temp, place)
            raise self._conflict(step)
        self._steps_with_temp.append(step)
        self._reversals.append((_Reversal.EXCHANGE, step))

    def _is_old(self, step: Step, temp: Entry) -> bool:
        """Whether the file that was swapped out is the file that was read before the change.

        temp: the place of the swapped-out file.
        """
        assert step.old is not None
        stamp = self._stamp_at(temp)
        return stamp is not None and step.old.stamp.is_same_file(stamp)

    @staticmethod
    def _stamp_at(entry: Entry) -> Stamp | None:
        """Return the stamp of the file with this name, None if there is none."""
        status = stat_in(entry.name, entry.folder)
        if status is None:
            return None
        return stamp_of(status)

    def _restore_saved_file(self, step: Step, temp: Entry, place: Entry) -> None:
        """Put a file that was saved just before the exchange back, unless a newer one is there.

        temp: the saved file, which came out in the exchange.
        place: the place of the note.
        """
        try:
            self._give_back(step, temp, place)
        except FileNotFoundError:
            # The new file of this change was removed from the place, so there is nothing to
            # exchange. The saved file goes there, unless somebody saves another one first.
            with suppress(FileExistsError):
                put_new(temp, place)
        except FileExistsError:
            # Somebody saved once more while no file was at the place. Their file stays.
            pass

    def _give_back(self, step: Step, temp: Entry, place: Entry) -> None:
        """Put a file that somebody saved during the change back in its place.

        At first, the new file of this change is at `place`, and the saved file is at `temp`. An
        exchange swaps them. But somebody may save at `place` once more just before the exchange.
        Then their newest file comes out at `temp`, and must be put back in turn. So the exchanges
        are repeated until the file that comes out is the one that was put there last.

        temp: the temporary name of the step.
        place: the place of the note.
        """
        put_last = step.stamp
        for _ in range(_MAX_GIVE_BACKS):
            put_now = self._stamp_at(temp)
            exchange(temp, place)
            taken_out = self._stamp_at(temp)
            if taken_out is None or put_last is None or taken_out.is_same_file(put_last):
                return
            put_last = put_now

    def _update_stamp(self, step: Step, place: Entry) -> None:
        """Set `step.stamp` to the stamp of the file that was just put at its place.

        Renaming the file changed its change time, which is a part of the stamp. If somebody saved
        another file there in between, `step.stamp` keeps its value.
        """
        stamp = self._stamp_at(place)
        if stamp is not None and step.stamp is not None and stamp.is_same_file(step.stamp):
            step.stamp = stamp

    def _remove(self, step: Step, place: Entry) -> None:
        """Remove a file from its place.

        The file is renamed to its temporary name, which `finish` deletes. A copy of a server's note
        is deleted at once. Raises Conflict if the file is not the one that was read.
        """
        if not self._holds_truth:
            os.unlink(place.name, dir_fd=place.folder)
            return
        temp = self._temp(step)
        assert step.old is not None
        try:
            os.rename(place.name, temp.name, src_dir_fd=place.folder, dst_dir_fd=temp.folder)
        except FileNotFoundError:
            raise Conflict(step.path, "none", step.old.etag[:8]) from None
        if not self._is_old(step, temp):
            # If a newer file is there by now, it stays.
            with suppress(FileExistsError):
                put_new(temp, place)
            raise self._conflict(step)
        self._steps_with_temp.append(step)
        self._reversals.append((_Reversal.PUT_BACK, step))

    def _move(self, step: Step, place: Entry) -> None:
        """Move a file or folder from `place` to `step.to`.

        Raises Exists if that is taken, and Conflict if the file is not as it was read.
        """
        status = stat_in(place.name, place.folder)
        # A link has no text to compare
        is_link = status is not None and stat.S_ISLNK(status.st_mode)
        if step.old is not None and not is_link:
            self._check_file(step)
        target, new_name = self._at(step, step.to)
        target_status = stat_in(new_name, target.fd)
        if target_status is not None:
            source_status = stat_in(place.name, place.folder)
            # On a disk that ignores case, `note.md` is found when it becomes `Note.md`
            is_new_spelling = (
                source_status is not None
                and os.path.samestat(source_status, target_status)
                and step.path != step.to
            )
            if not is_new_spelling:
                raise Exists(step.to)
        move(place, Entry(target.fd, new_name))
        self._reversals.append((_Reversal.MOVE_BACK, step))
        # Only a folder has no text that was read
        is_folder = step.old is None
        if is_folder:
            self._close_below(step.root, step.path)

    def _remove_folder(self, step: Step, place: Entry) -> None:
        """Remove an empty folder. Raises Conflict if somebody put something in it since the plan."""
        try:
            os.rmdir(place.name, dir_fd=place.folder)
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise
            raise Conflict(step.path, "a new entry", "an empty folder") from None
        self._reversals.append((_Reversal.MAKE_FOLDER, step))
        self._close_below(step.root, step.path)

    def _unlink(self, step: Step, place: Entry) -> None:
        """Remove a symlink. Raises Conflict if something else is at its place."""
        status = stat_in(place.name, place.folder)
        if status is None or not stat.S_ISLNK(status.st_mode):
            raise Conflict(step.path, "a file" if status else "none", "a link")
        os.unlink(place.name, dir_fd=place.folder)
        self._reversals.append((_Reversal.MAKE_LINK, step))

    def confirm(self) -> None:
        """Look once more at the files that were replaced or removed.

        An editor that opened a file before the change may have written into it since.

        Raises Conflict if one of the files has changed.
        """
        for step in self._steps_with_temp:
            if step.old is None:
                continue
            if not self._is_old(step, self._temp(step)):
                raise self._conflict(step)

    def finish(self) -> None:
        """Make the steps final: delete the files that they replaced or removed."""
        self.remove_temps(self._steps_with_temp)
        self._steps_with_temp.clear()
        self._reversals.clear()

    def remove_temps(self, steps: Iterable[Step]) -> None:
        """Remove the temporary files of these steps, if they exist.

        If the disk refuses to remove some, `remove_stuck_temps` tries again.
        """
        for step in steps:
            if step.lines is not None:
                step.lines.write.cancel()
            if not step.temp:
                continue
            is_removed = self._remove_temp(step)
            if not is_removed:
                self._steps_with_stuck_temp.append(step)

    def _remove_temp(self, step: Step) -> bool:
        """Remove the temporary file of a step. Returns False if the disk refuses to remove it."""
        try:
            temp = self._temp(step)
            os.unlink(temp.name, dir_fd=temp.folder)
        except (FileNotFoundError, MemorandaError):
            return True
        except OSError:
            return False
        return True

    def remove_stuck_temps(self) -> bool:
        """Try again to remove the temporary files that the disk refused to remove.

        Returns whether all of them are removed now.
        """
        steps = self._steps_with_stuck_temp
        self._steps_with_stuck_temp = []
        # This puts the steps back whose files are still stuck
        self.remove_temps(steps)
        return not self._steps_with_stuck_temp

    # --- when a step fails

    def rollback(self) -> list[Step]:
        """Take the steps back, the last step first.

        Returns the steps that could not be taken back. One failure does not keep the other steps
        from being taken back.
        """
        lost_steps = []
        for reversal, step in reversed(self._reversals):
            try:
                self._take_back(reversal, step)
            except (OSError, MemorandaError):
                # A new folder stays if somebody has put a file there: nothing is lost
                if reversal != _Reversal.REMOVE_FOLDER:
                    lost_steps.append(step)
        self._reversals.clear()
        self._steps_with_temp.clear()
        return lost_steps

    def _take_back(self, reversal: _Reversal, step: Step) -> None:
        """Take one step back.

        reversal: how to take it back, which depends on what the step did.
        """
        folder, name = self._at(step)
        place = Entry(folder.fd, name)
        match reversal:
            case _Reversal.EXCHANGE:
                # If somebody saved over the new file meanwhile, their file is the newest, and stays
                self._give_back(step, self._temp(step), place)
            case _Reversal.PUT_BACK:
                put_new(self._temp(step), place)
            case _Reversal.REMOVE_FILE:
                # Only the file that the step wrote: somebody may have saved another one there
                stamp = self._stamp_at(place)
                if stamp is not None and step.stamp is not None and stamp.is_same_file(step.stamp):
                    os.unlink(name, dir_fd=folder.fd)
            case _Reversal.MOVE_BACK:
                new_folder, new_name = self._at(step, step.to)
                move(Entry(new_folder.fd, new_name), place)
                self._close_below(step.root, step.to)
            case _Reversal.REMOVE_FOLDER:
                self._close_below(step.root, step.path)
                os.rmdir(name, dir_fd=folder.fd)
            case _Reversal.MAKE_FOLDER:
                os.mkdir(name, 0o700, dir_fd=folder.fd)
            case _Reversal.REMOVE_LINK:
                os.unlink(name, dir_fd=folder.fd)
            case _Reversal.MAKE_LINK:
                os.symlink(step.link, name, dir_fd=folder.fd)

    # --- after a writer died

    def is_overtaken(self, steps: Sequence[Step], files: Sequence[Touched]) -> bool:
        """Whether somebody edited a file after the dead writer read it, and no step was done yet.

        Then the change is dropped in favour of the edit.

        files: the record of each step in the ledger, in the order of `steps`.
        """
        has_edit = False
        for step, touched in zip(steps, files, strict=True):
            # A row of the ledger is not a file that somebody edits.
            if step.do == StepKind.SET:
                continue
            is_of_folder_or_link = step.do not in (StepKind.PUT, StepKind.REMOVE)
            if is_of_folder_or_link:
                # A step whose folder is still to be made (NotFound) was not done
                with suppress(NotFound):
                    if self._is_done(step, touched):
                        return False
                continue
            file = None
            # The folder of a new file may still have to be made
            with suppress(NotFound):
                file = self._present_file(step)
            # The SHA-256 of the file now, and after the step. None where no file is.
            present_etag = file.etag if file is not None else None
            new_etag = touched.new if step.do == StepKind.PUT else None
            is_done = present_etag == new_etag
            if is_done:
                return False
            is_edited = present_etag != touched.old
            has_edit = has_edit or is_edited
        return has_edit

    def resume(self, step: Step, touched: Touched, *, lost_power: bool = False) -> None:
        """Carry out one step of a writer that died, unless the step was done.

        A file that has neither the old nor the new text was edited by somebody, and is kept.

        touched: the record of the step in the ledger, with the SHA-256 of its old and its new text.
        lost_power: whether the machine stopped. Then a missing or empty file is one whose bytes had
            not reached the disk, and it is written.
        """
        # The row was set in the transaction that recorded the change.
        if step.do == StepKind.SET:
            return
        if step.do in (StepKind.PUT, StepKind.REMOVE):
            # The step replaces or removes exactly the file that is looked at here.
            step.old = self._present_file(step)
            is_settled = self._may_stay(step, touched, lost_power=lost_power)
        else:
            is_settled = self._is_done(step, touched)
        if is_settled:
            return
        if step.do == StepKind.PUT:
            self._restore_temp(step, touched)
        # Somebody may save a file there at this moment. It stays.
        with suppress(Conflict, Exists):
            self.run(step)

    @staticmethod
    def _may_stay(step: Step, touched: Touched, *, lost_power: bool) -> bool:
        """Whether the file of a PUT or REMOVE step of a dead writer stays as it is now.

        step: the step. `step.old` is the present file, None if it is missing.
        touched: the record of the step in the ledger, with the SHA-256 of its old and its new text.
        lost_power: whether the machine stopped.
        """
        present_file = step.old
        is_removed = step.do == StepKind.REMOVE and present_file is None
        if is_removed:
            return True
        # After a power loss, the bytes of a file may be missing although it was written.
        has_no_bytes = present_file is None or not present_file.data.strip(b"\0")
        if lost_power and has_no_bytes:
            return False
        present_etag = present_file.etag if present_file is not None else None
        # A change may write the text that the file had before.
        is_put = step.do == StepKind.PUT and present_etag == touched.new
        # A file with a third text was edited by somebody.
        return is_put or present_etag != touched.old

    def _present_file(self, step: Step) -> File | None:
        """Read the file that is now at the place of a PUT or REMOVE step. None if it is missing.

        Raises NotFound if a PUT step has no folder for its file.
        """
        try:
            folder, name = self._at(step)
        except NotFound:
            if step.do == StepKind.PUT:
                raise
            return None
        if stat_in(name, folder.fd) is None:
            return None
        return read_file(name, folder.fd)

    def _is_done(self, step: Step, touched: Touched) -> bool:
        """Whether the dead writer had done a step of a folder or link, or moved a file.

        This is judged by what is on the disk now. Raises NotFound if the step makes something in a
        folder that does not exist yet.

        touched: the record of the step in the ledger.
        """
        try:
            folder, name = self._at(step)
        except NotFound:
            if step.do in _MAKING:
                raise
            # The folder is gone, and with it whatever the step removes or moves.
            return True
        status = stat_in(name, folder.fd)
        if step.do in _MAKING:
            return status is not None
        if status is None:
            return True
        match step.do:
            case StepKind.UNLINK:
                return not stat.S_ISLNK(status.st_mode)
            case StepKind.RMDIR:
                return False
            case _:
                return self._is_moved(step, touched)

    def _is_moved(self, step: Step, touched: Touched) -> bool:
        """Whether the writer that died had moved the file or folder to the step's destination.

        A folder may have been moved by copying it. Then this also removes the old files that were
        copied but not yet removed. A file at the old place proves nothing, since somebody may have
        saved it there after the move.

        touched: the record of the step in the ledger. `touched.old` is the SHA-256 of a moved file,
            and None for a folder.
        """
        try:
            target, name = self._at(step, step.to)
        except NotFound:
            return False
        status = stat_in(name, target.fd)
        if status is None:
            return False
        is_folder = touched.old is None
        if is_folder:
            # If it was moved by a copy, some of its old files may be left
            folder, old_name = self._at(step)
            clear_moved(Entry(folder.fd, old_name), Entry(target.fd, name))
            return True
        # A link has no text to compare.
        if not stat.S_ISREG(status.st_mode):
            return True
        return read_file(name, target.fd).etag == touched.old

    def _restore_temp(self, step: Step, touched: Touched) -> None:
        """Make sure that the temporary file has the new bytes of the step.

        After a crash the temporary file may be missing. If the crash came after an exchange, it has
        the old bytes. Raises NotFound if the new bytes are lost.

        touched: the record of the step in the ledger.
        """
        is_in_ledger = step.data is not None
        if is_in_ledger:
            self.remove_temps([step])
            self.write_temps([step])
            return
        temp = self._temp(step)
        file = read_file(temp.name, temp.folder)
        if file.etag != touched.new:
            raise NotFound(step.path, step.project)
        step.stamp = file.stamp

    def replace_by_new_file(self, step: Step) -> None:
        """Write the file of a PUT step once more, as a new file with the same time.

        A file that somebody edited since the step stays. Raises MemorandaError, OSError.
        """
        folder, name = self._at(step)
        present_file = read_file(name, folder.fd)
        if not self._has_bytes_of(present_file, step):
            return
        step.old = present_file
        step.mode = present_file.mode
        step.written_ns = present_file.stamp.mtime_ns
        try:
            self.remove_temps([step])
            self.write_temps([step])
            self.run(step)
        except BaseException:
            self.remove_temps([step])
            raise

    @staticmethod
    def _has_bytes_of(file: File, step: Step) -> bool:
        """Whether a file has the bytes that a PUT step wrote, or as many zeros where the disk failed."""
        assert step.data is not None
        is_emptied = len(file.data) == len(step.data) and not file.data.strip(b"\0")
        return file.data == step.data or is_emptied

    # --- open folders

    def entry_of(self, step: Step) -> Entry:
        """Return the folder and name of the step's file. The folder stays open."""
        folder, name = self._at(step)
        return Entry(folder.fd, name)

    def _at(self, step: Step, path: str | None = None) -> tuple[Folder, str]:
        """Return the open parent folder of a path, and the last name of the path.

        path: in the step's project. None for the step's own path.
        """
        if path is None:
            path = step.path
        parent, _, name = path.rpartition("/")
        return self._folder(step, parent), name

    def _temp(self, step: Step) -> Entry:
        """Return the folder and name of the step's temporary file, which may not exist."""
        return Entry(self._folder(step, step.temp_folder).fd, step.temp)

    def _folder(self, step: Step, path: str) -> Folder:
        """Return the open folder at `path` in the project of the step.

        A folder that is not open yet is checked and opened. At most `OPEN_FOLDERS` stay open.
        """
        key = (step.root, path)
        # It is taken out here and put in again below, so the folder used last is at the end
        folder = self._folders.pop(key, None)
        if folder is None:
            if len(self._folders) >= OPEN_FOLDERS:
                longest_unused = next(iter(self._folders))
                self._folders.pop(longest_unused).close()
            folder = open_folder(step.root, path, step.project)
        self._folders[key] = folder
        return folder

    def _close_below(self, root: str, path: str) -> None:
        """Close the folders at and below a folder that was moved or removed.

        The paths under which they are remembered lead to other folders now, or to nothing.
        """
        for key in list(self._folders):
            open_root, open_path = key
            is_inside = open_path == path or open_path.startswith(path + "/")
            if open_root == root and is_inside:
                self._folders.pop(key).close()

    def close(self) -> None:
        """Close all folders that are open."""
        for folder in self._folders.values():
            folder.close()
        self._folders.clear()


def mode_of(step: Step) -> int:
    """Return the mode of the file that a PUT step makes: its own, the replaced file's, or 0600."""
    if step.mode is not None:
        return step.mode
    if step.old:
        return step.old.mode
    return NEW_MODE


def _sync_files(files: Iterable[Entry]) -> None:
    """Sync these files to the disk, one after the other."""
    for file in files:
        fd = os.open(file.name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=file.folder)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
