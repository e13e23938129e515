"""Writes our entries into the configuration files of clients, and removes them.

A file is changed as text, so that the rest of the file stays as it is. The new text is written to a
second file, which then replaces the original. If another program changed the original in between,
the change begins again. The original is first copied to `.memoranda/install/` of the home.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memoranda import clock, former_name
from memoranda.clients import table
from memoranda.clients.editing import Editor, Hint, JsonEditor, MarkdownEditor, Unsure
from memoranda.clients.table import Client, Edit
from memoranda.clients.toml_yaml import TomlEditor, YamlEditor
from memoranda.errors import InvalidInput, StorageError
from memoranda.sources.base import File
from memoranda.sources.files import (
    lock_file,
    make_private,
    put_derived,
    read_file,
    reason,
    sync_folder,
    write_file,
)
from memoranda.sources.layout import Layout

EDITORS: dict[str, Editor] = {
    "json": JsonEditor(),
    "toml": TomlEditor(),
    "yaml": YamlEditor(),
    "yaml-list": YamlEditor(),
    "markdown": MarkdownEditor(),
}
# A file that another program keeps changing is tried at most this many times.
_MAX_ATTEMPTS = 5
# At most this many copies of a client's files are kept.
_MAX_BACKUPS = 5


class Target(NamedTuple):
    """A file of a client, and our edits of it, which can be put in or removed.

    format: the syntax of the file, a key of EDITORS.
    """

    client: Client
    file: Path
    format: str
    edits: Sequence[Edit]


# Returns the new text of a file for its old text, and updates the records of its edits.
# None as a text means that there is no file.
_Change = Callable[[str | None, dict[str, Any]], str | None]


class FileChange(NamedTuple):
    """The change of a file.

    old: the text before the change. None if the file did not exist.
    new: the text after the change. None if the file does not exist then.
    backup: the copy of the file before the change. None if there is no copy.
    """

    old: str | None
    new: str | None
    backup: Path | None = None


def snippet(format: str, edits: Sequence[Edit]) -> str:
    """Return a text with the edits that a person can paste into a file that we do not change."""
    text = ""
    for edit in edits:
        text, _ = EDITORS[format].put(text, edit.path, edit.name, edit.value)
    return text


def present(target: Target) -> list[Any]:
    """Return the value that the file has for each edit. None for a missing value.

    Raises Unsure, StorageError.
    """
    text = _text(_read(target.file))
    if text is None:
        return [None] * len(target.edits)
    editor = EDITORS[target.format]
    return [editor.find(text, edit.path, edit.name) for edit in target.edits]


class Installer:
    """Adds the entries of memoranda to the files of clients, and removes them again.

    Each change of a file is recorded in the home. `remove` needs the records to make the file as it
    was before. For each file, there is a record of each edit, by the edit's label:
        value: the value that was written last.
        hint: what else to remove with the member, so that the file is as before (`Hint`).
        created: whether we created the file.
        folders: how many folders above the file we created.
        beside: the hooks that the file had before a member with `keeps_present` was added, or None.
    """

    def __init__(self, home: Path):
        self.home = home
        self.folder = Layout(home).install
        self._records = self.folder / "records.json"

    def add(self, target: Target, *, replace: bool = False, dry_run: bool = False) -> FileChange:
        """Put the edits into the file.

        replace: whether to replace an entry with the same name that is not ours. If False, such an
            entry raises Unsure.
        dry_run: whether to compute the change without writing.
        """
        return self._change(target, partial(self._with_edits, target, replace), dry_run)

    def _with_edits(
        self, target: Target, replace: bool, old: str | None, edit_records: dict[str, Any]
    ) -> str | None:
        """Return the text of a file with our edits, and record how to remove them.

        replace: whether to replace entries that are not ours.
        old: the text of the file. None if the file does not exist.
        edit_records: label of an edit of the file -> its record.

        Returns None for a file that does not exist and gets no text.
        """
        editor = EDITORS[target.format]
        text = old or ""
        for edit in target.edits:
            present_value = editor.find(text, edit.path, edit.name)
            value = self._new_value(target, edit, present_value, edit_records, replace)
            if value is None:
                continue
            text, hint = editor.put(text, edit.path, edit.name, value)
            edit_record: dict[str, Any] = {
                "hint": [*hint],
                "created": old is None,
                "folders": _own_folder_count(target.file, self._load()),
                "value": value,
            }
            if present_value is not None:
                # The edit replaced an entry, and created nothing around it. If the entry was ours,
                # the record of its first writing is still right.
                edit_record["hint"] = [*Hint()]
                edit_record |= _first_record(edit_records.get(edit.label, {}))
            if edit.keeps_present:
                edit_record["beside"] = None if old is None else editor.find(old, (), "hooks")
            edit_records[edit.label] = edit_record
        if not text and old is None:
            return None
        return text

    def _new_value(
        self, target: Target, edit: Edit, old: Any, edit_records: dict[str, Any], replace: bool
    ) -> Any:
        """Return the value that an edit should write. None if the edit changes nothing.

        target: the file, and the client that it belongs to.
        edit: the edit.
        old: the present value. None if there is no value.
        edit_records: label of an edit of the file -> its record.
        replace: whether to replace an entry that is not ours. If False, such an entry raises
            Unsure.
        """
        if old is None:
            return edit.value
        if edit.keeps_present or old == edit.value:
            return None
        is_ours = _is_ours(edit, old, edit_records)
        if not replace and not is_ours:
            problem = f'it has an entry "{_shown_name(edit)}" already that is not ours'
            raise Unsure(f"{problem} (--replace takes its place)")
        # A group of hooks that other programs use, too, is left as it is.
        if table.shares_hooks(old, target.client.id):
            return None
        value = edit.value
        # Both start a server by a command, or both name an address.
        is_same_kind = bool(table.command_of(old)) == bool(table.command_of(value))
        if is_ours and isinstance(old, dict) and is_same_kind:
            # The person may have added further members to our entry. They stay.
            value = {**old, **value}
        if value == old:
            return None
        return value

    def remove(self, target: Target, *, replace: bool = False, dry_run: bool = False) -> FileChange:
        """Remove the edits from the file.

        replace: whether to remove an entry that is not ours. If False, such an entry raises Unsure.
        dry_run: whether to compute the change without writing.
        """
        return self._change(target, partial(_without_edits, target, replace), dry_run)

    def knows(self, target: Target) -> bool:
        """Whether the records have an entry that we wrote into the file."""
        return bool(self._load().get(str(target.file)))

    def wrote(self, target: Target, value: Any) -> bool:
        """Whether `value` is the value that we last wrote for the first edit."""
        edit_records = self._load().get(str(target.file), {})
        return bool(edit_records.get(target.edits[0].label, {}).get("value") == value)

    def _change(
        self,
        target: Target,
        change: _Change,
        dry_run: bool,
    ) -> FileChange:
        """Change the file. Raises Unsure, StorageError.

        change: returns the new text for the old one, and updates the records of its edits.
        dry_run: whether to compute the change without writing.
        """
        if dry_run:
            return self._would_change(target, change)
        with self._locked():
            for _ in range(_MAX_ATTEMPTS):
                records = self._load()
                edit_records = records.setdefault(str(target.file), {})
                file_change = self._change_file(target, change, edit_records)
                if file_change is None:
                    continue
                # Files without an edit of ours are forgotten.
                used_records = {file: of_file for file, of_file in records.items() if of_file}
                put_derived(self._records, json.dumps(used_records, indent=1).encode())
                return file_change
        raise StorageError(
            str(target.file), "another program keeps changing it; close it and try again"
        )

    def _would_change(self, target: Target, change: _Change) -> FileChange:
        """Return the change that would be made, without writing.

        Raises Unsure, and StorageError if the folder of the file may not be written to.
        """
        old = _text(_read(target.file))
        edit_records = self._load().get(str(target.file), {})
        new = change(old, edit_records)
        if new != old:
            _check_writable(target.file)
        return FileChange(old, new)

    def _change_file(
        self, target: Target, change: _Change, edit_records: dict[str, Any]
    ) -> FileChange | None:
        """Change the file once. Returns None if another program changed it in the meantime.

        Raises Unsure, StorageError.

        change: returns the new text for the old one, and updates `edit_records`.
        edit_records: label of an edit of the file -> its record.
        """
        file = _read(target.file)
        old = _text(file)
        created_folders = _folders_made_for(target.file, edit_records)
        new = change(old, edit_records)
        if new == old:
            return FileChange(old, new)
        backup = self._back_up(target.client.id, file)
        if not _swap(target.file, file, new):
            if backup is not None:
                backup.unlink()
            return None
        if new is None:
            # A folder that is not empty stays.
            with suppress(OSError):
                for folder in created_folders:
                    folder.rmdir()
        return FileChange(old, new, backup)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the records, so that only one process changes files.

        Raises StorageError.
        """
        # First, because nothing is adopted once `make_private` has made the private folder.
        former_name.adopt(self.home, Layout(self.home).private)
        try:
            make_private(self.folder)
            lock = lock_file(self.folder / "lock", fcntl.LOCK_EX)
        except OSError as error:
            raise StorageError("the memory home", reason(error)) from None
        try:
            yield
        finally:
            os.close(lock)

    def _load(self) -> dict[str, Any]:
        """Return the records. They are empty if they cannot be read."""
        # A home from before the change of our name has them at another place.
        former_file = former_name.records(self.home, Layout(self.home).private)
        try:
            rows = json.loads((former_file or self._records).read_bytes())
        except (OSError, ValueError):
            # Without the records, entries can still be removed. Only empty containers that were
            # created for them remain.
            return {}
        if isinstance(rows, dict):
            return rows
        return {}

    def _back_up(self, client: str, file: File | None) -> Path | None:
        """Copy the file to the folder of backups, and delete the client's oldest copies.

        client: the id of the client.
        file: the file. None if it does not exist.

        Returns the path of the copy, or None without a file. Raises StorageError.
        """
        if file is None:
            return None
        stamp = re.sub(r"[^0-9TZ]", "", clock.stamp(clock.now()))
        path = self.folder / f"{client}-{stamp}-{os.urandom(2).hex()}"
        try:
            write_file(str(path), file.data)
        except OSError as error:
            raise StorageError("the copy of the file", reason(error)) from None
        # The names begin with the time, so the oldest copies come first.
        copies = sorted(self.folder.glob(f"{client}-[0-9]*"))
        for old_copy in copies[:-_MAX_BACKUPS]:
            old_copy.unlink(missing_ok=True)
        return path


def _first_record(edit_record: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an edit's record that stay when the edit is written a second time."""
    return {key: edit_record[key] for key in ("hint", "created", "folders") if key in edit_record}


def _may_serve_other_hooks(editor: Editor, text: str, edit_record: dict[str, Any]) -> bool:
    """Whether other programs may have added hooks since we added a member for all hooks of a file.

    Such a member is the version of the file's form, which all hooks need.

    text: the text of the file.
    edit_record: the record of the edit that added the member. Empty if there is none.
    """
    return not edit_record or editor.find(text, (), "hooks") != edit_record.get("beside")


def _without_edits(
    target: Target, replace: bool, old: str | None, edit_records: dict[str, Any]
) -> str | None:
    """Return the text of a file without our edits. None if the file can be deleted.

    replace: whether to remove entries that are not ours.
    old: the text of the file. None if the file does not exist.
    edit_records: label of an edit -> its record. The records of the removed edits are deleted.

    Raises Unsure.
    """
    if old is None:
        return None
    editor = EDITORS[target.format]
    text = old
    has_created_file = False
    # In reverse order, each edit is removed from the text that it made.
    for edit in reversed(target.edits):
        edit_record = edit_records.pop(edit.label, {})
        has_created_file = has_created_file or bool(edit_record.get("created"))
        present_value = editor.find(text, edit.path, edit.name)
        if present_value is None:
            continue
        if edit.keeps_present and _may_serve_other_hooks(editor, text, edit_record):
            continue
        _check_removable(target, edit, present_value, edit_record, replace)
        hint = Hint(*edit_record["hint"]) if edit_record else None
        text = editor.drop(text, edit.path, edit.name, hint)
    if has_created_file and not text.strip("\ufeff \t\r\n"):
        return None
    return text


def _check_writable(file: Path) -> None:
    """Raise StorageError if this process may not create or replace a file."""
    existing_folders = [folder for folder in _parents(file) if folder.exists()]
    # The innermost is the one in which a file or a folder is created.
    if not os.access(existing_folders[0], os.W_OK | os.X_OK):
        denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        raise StorageError(str(file), reason(denied))


def _parents(file: Path) -> list[Path]:
    """Return the folders above `file`, the innermost first. A symlink is followed."""
    return [*Path(os.path.realpath(file)).parents]


def _folders_made_for(file: Path, edit_records: dict[str, Any]) -> list[Path]:
    """Return the folders above `file` that we created for it, by the records of its edits."""
    count = 0
    for edit_record in edit_records.values():
        # An earlier version only recorded whether one folder was created, under the key `folder`.
        count = max(count, edit_record.get("folders", int(edit_record.get("folder", False))))
    return _parents(file)[:count]


def _own_folder_count(file: Path, records: dict[str, Any]) -> int:
    """Return how many folders above `file` are missing, or were created by us for some file.

    When the last of these files is removed, the folders are removed, too.

    records: path of a file -> the records of its edits.
    """
    created: set[Path] = set()
    for name, edit_records in records.items():
        created.update(_folders_made_for(Path(name), edit_records))
    count = 0
    for folder in _parents(file):
        if folder.exists() and folder not in created:
            break
        count += 1
    return count


def _shown_name(edit: Edit) -> str:
    """Return how an error names a member. An item of a list has its name in its value."""
    if isinstance(edit.name, str):
        return edit.name
    return str(edit.value["name"])


def _check_removable(
    target: Target, edit: Edit, value: Any, edit_record: dict[str, Any], replace: bool
) -> None:
    """Raise Unsure for an entry that is not ours, or that also has hooks of other programs.

    edit_record: the record of the edit. Empty if there is no record.
    replace: whether an entry that is not ours may be removed.
    """
    if not replace and not _is_ours(edit, value, {edit.label: edit_record}):
        name = _shown_name(edit)
        raise Unsure(f'its entry "{name}" is not ours (--replace takes it out nevertheless)')
    if table.shares_hooks(value, target.client.id):
        raise Unsure(f"our hook for {edit.label} stands in one group with another")


def _is_ours(edit: Edit, value: Any, edit_records: dict[str, Any]) -> bool:
    """Whether we wrote a value of a client's file.

    The value itself shows it, or the record of the edit that wrote it.

    edit: the edit that would write such a value.
    edit_records: label of an edit of the file -> its record.
    """
    return edit.is_ours(value) or edit_records.get(edit.label, {}).get("value") == value


def _read(file: Path) -> File | None:
    """Return the file. None if the file does not exist. Raises StorageError."""
    try:
        return read_file(os.path.realpath(file))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError(str(file), reason(error)) from None


def _text(file: File | None) -> str | None:
    """Return the text of the file. None for no file. Raises Unsure if the text is not UTF-8."""
    if file is None:
        return None
    try:
        return file.data.decode("utf-8")
    except UnicodeDecodeError:
        raise Unsure("it is not UTF-8 text") from None


def _swap(file: Path, old: File | None, new: str | None) -> bool:
    """Replace the file by one with the text `new`. If it is a symlink, its target is replaced.

    Returns False, without a change, if another program changed the file since it was read.

    old: the file as it was read. None if it did not exist.
    new: the new text. None deletes the file.
    """
    real = Path(os.path.realpath(file))
    temporary_file = real.with_name(f".{real.name}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        if new is not None:
            real.parent.mkdir(parents=True, exist_ok=True)
            _write_like(temporary_file, new, real, old)
        # Compare as late as possible, so that hardly anybody can save in between.
        if _etag_of(_read(real)) != _etag_of(old):
            return False
        if new is None:
            real.unlink(missing_ok=True)
        else:
            os.replace(temporary_file, real)
            sync_folder(real.parent)
    except OSError as error:
        raise StorageError(str(file), reason(error)) from None
    finally:
        # The file does not exist if it was renamed, or never written.
        with suppress(OSError):
            temporary_file.unlink()
    return True


def _etag_of(file: File | None) -> str | None:
    """Return the value that changes with a file. None for a missing file."""
    return None if file is None else file.etag


def _write_like(path: Path, text: str, model: Path, old: File | None) -> None:
    """Write a file with the owner and the mode of the file `model`, which it will replace.

    old: the file `model` as it was read. None if it does not exist: then only its owner may read
        the new file.

    Raises OSError.
    """
    write_file(str(path), text.encode(), mode=0o600 if old is None else old.mode)
    if old is None:
        return
    status = os.stat(model)
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.chown(path, status.st_uid, status.st_gid)
            os.chmod(path, stat.S_IMODE(status.st_mode))


def check_text(text: str, pattern: str, message: str) -> None:
    """Raise InvalidInput with `message` unless the pattern matches all of `text`."""
    if not re.fullmatch(pattern, text):
        raise InvalidInput(message)


def checked_name(name: str) -> str:
    """Return `name` if it may be the name of an entry. Raises InvalidInput."""
    message = f'invalid name "{name}": use up to 64 letters, digits, - and _'
    check_text(name, r"[A-Za-z][A-Za-z0-9_-]{0,63}", message)
    return name
