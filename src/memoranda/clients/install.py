"""Writes our entries into the files of clients and takes them out again: the rest of each file
stays as it is.

A file is read, changed as text, written beside itself, compared with what was read, and renamed
over; a program that changed it meanwhile makes us begin again. What it was goes to
`.memoranda/install/` of the home first.
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
from itertools import takewhile
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
# How often a file is read again that another program changes meanwhile.
_ATTEMPTS = 5
# Copies kept of each client's files.
_BACKUPS = 5


class Target(NamedTuple):
    """A file of a client with what should be in it, or no longer."""

    client: Client
    file: Path
    format: str
    edits: Sequence[Edit]


class FileChange(NamedTuple):
    """What became of a file: its text before and after (None: no file), and the copy of what it
    was.
    """

    old: str | None
    new: str | None
    backup: Path | None = None


def snippet(format: str, edits: Sequence[Edit]) -> str:
    """What to paste into a file that is not changed by us."""
    text = ""
    for edit in edits:
        text, _ = EDITORS[format].put(text, edit.path, edit.name, edit.value)
    return text


def present(target: Target) -> list[Any]:
    """What stands now where each edit would put its value, None for nothing. Raises Unsure,
    StorageError.
    """
    text = _text(_read(target.file))
    return [
        None if text is None else EDITORS[target.format].find(text, edit.path, edit.name)
        for edit in target.edits
    ]


class Installer:
    """Changes files of clients for the memory in `home`, where it remembers what it made."""

    def __init__(self, home: Path):
        self.home, self.folder = home, Layout(home).install
        self._records = self.folder / "records.json"

    def add(self, target: Target, *, replace: bool = False, dry_run: bool = False) -> FileChange:
        """Put the edits in. Raises Unsure when an entry of somebody else's has the name, unless
        `replace`.
        """
        editor = EDITORS[target.format]

        def added(old: str | None, notes: dict[str, Any]) -> str | None:
            text = old or ""
            for edit in target.edits:
                there_present = editor.find(text, edit.path, edit.name)
                value = edit.value
                marks = {}
                if there_present is not None:
                    if edit.kept or there_present == value:
                        continue
                    is_ours = _is_ours(edit, there_present, notes)
                    if not replace and not is_ours:
                        problem = f'it has an entry "{_name(edit)}" already that is not ours'
                        raise Unsure(f"{problem} (--replace takes its place)")
                    if table.shares_hooks(there_present, target.client.id):
                        continue
                    same_kind = bool(table.command_of(there_present)) == bool(
                        table.command_of(value)
                    )
                    if is_ours and isinstance(there_present, dict) and same_kind:
                        value = {**there_present, **value}
                    if value == there_present:
                        continue
                    marks = notes.get(edit.label, {})
                text, hint = editor.put(text, edit.path, edit.name, value)
                notes[edit.label] = {
                    "hint": marks.get("hint", [*(hint if there_present is None else Hint())]),
                    "value": value,
                    "created": marks.get("created", old is None),
                    "folders": marks.get("folders", _made_folders(target.file, self._load())),
                }
                if edit.kept:
                    notes[edit.label]["beside"] = (
                        None if old is None else editor.find(old, (), "hooks")
                    )
            if text or old is not None:
                return text
            return None

        return self._change(target, added, dry_run)

    def remove(self, target: Target, *, replace: bool = False, dry_run: bool = False) -> FileChange:
        """Take the edits out. Raises Unsure when the entry is somebody else's, unless `replace`."""
        editor = EDITORS[target.format]

        def removed(old: str | None, notes: dict[str, Any]) -> str | None:
            if old is None:
                return None
            text = old
            created = False
            for edit in reversed(target.edits):
                note = notes.pop(edit.label, {})
                created = created or bool(note.get("created"))
                there_present = editor.find(text, edit.path, edit.name)
                if there_present is None:
                    continue
                if edit.kept and (not note or editor.find(text, (), "hooks") != note.get("beside")):
                    # Hooks that came since may need it
                    continue
                if not replace and not _is_ours(edit, there_present, {edit.label: note}):
                    raise Unsure(
                        f'its entry "{_name(edit)}" is not ours (--replace takes it out nevertheless)'
                    )
                if table.shares_hooks(there_present, target.client.id):
                    raise Unsure(f"our hook for {edit.label} stands in one group with another")
                text = editor.drop(
                    text, edit.path, edit.name, Hint(*note["hint"]) if note else None
                )
            if created and not text.strip("\ufeff \t\r\n"):
                return None
            return text

        return self._change(target, removed, dry_run)

    def knows(self, target: Target) -> bool:
        """Whether anything in the file was written by us."""
        return bool(self._load().get(str(target.file)))

    def wrote(self, target: Target, value: Any) -> bool:
        """Whether `value` is what was last written into the file as the first of the edits."""
        notes = self._load().get(str(target.file), {})
        return bool(notes.get(target.edits[0].label, {}).get("value") == value)

    def _change(
        self,
        target: Target,
        change: Callable[[str | None, dict[str, Any]], str | None],
        dry_run: bool,
    ) -> FileChange:
        """Carry `change` out. Raises Unsure, StorageError."""
        if dry_run:
            old = _text(_read(target.file))
            new = change(old, self._load().get(str(target.file), {}))
            folder = next(parent for parent in _parents(target.file) if parent.exists())
            # Nothing may be made or replaced there
            if new != old and not os.access(folder, os.W_OK | os.X_OK):
                raise StorageError(
                    str(target.file),
                    reason(PermissionError(errno.EACCES, os.strerror(errno.EACCES))),
                )
            return FileChange(old, new)
        with self._locked():
            for _ in range(_ATTEMPTS):
                records = self._load()
                file = _read(target.file)
                notes = records.setdefault(str(target.file), {})
                old = _text(file)
                created = _made(target.file, notes)
                new = change(old, notes)
                backup = None
                if new != old:
                    backup = self._back_up(target.client.id, file)
                    if not _swap(target.file, file, new):
                        if backup is not None:
                            backup.unlink()
                        continue
                    # There is something else in it
                    with suppress(OSError):
                        for folder in created if new is None else ():
                            folder.rmdir()
                put_derived(
                    self._records,
                    json.dumps({k: v for k, v in records.items() if v}, indent=1).encode(),
                )
                return FileChange(old, new, backup)
        raise StorageError(
            str(target.file), "another program keeps changing it; close it and try again"
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
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
        former = former_name.records(self.home, Layout(self.home).private)
        try:
            rows = json.loads((former or self._records).read_bytes())
        except (OSError, ValueError):
            # Without it, containers that were made for an entry stay behind empty
            return {}
        if isinstance(rows, dict):
            return rows
        return {}

    def _back_up(self, client: str, file: File | None) -> Path | None:
        """A copy of the file as it is, beside at most some older ones of the client."""
        if file is None:
            return None
        stamp = re.sub(r"[^0-9TZ]", "", clock.stamp(clock.now()))
        path = self.folder / f"{client}-{stamp}-{os.urandom(2).hex()}"
        try:
            write_file(str(path), file.data)
        except OSError as error:
            raise StorageError("the copy of the file", reason(error)) from None
        for old in sorted(self.folder.glob(f"{client}-[0-9]*"))[:-_BACKUPS]:
            old.unlink(missing_ok=True)
        return path


def _parents(file: Path) -> list[Path]:
    """The folders above `file`, or above what it is a link to, the innermost first."""
    return [*Path(os.path.realpath(file)).parents]


def _made(file: Path, notes: dict[str, Any]) -> list[Path]:
    """The folders above `file` that were made for it, as its notes say."""
    count = max(
        (note.get("folders", int(note.get("folder", False))) for note in notes.values()), default=0
    )
    return _parents(file)[:count]


def _made_folders(file: Path, records: dict[str, Any]) -> int:
    """How many of the folders above `file` are not there, or were made for other files of these
    records: which of them goes last takes the folder with it."""
    ours: set[Path] = set()
    for name, notes in records.items():
        ours.update(_made(Path(name), notes))
    return len(
        [
            *takewhile(
                lambda this_folder: this_folder in ours or not this_folder.exists(), _parents(file)
            )
        ]
    )


def _name(edit: Edit) -> str:
    """What the member is called; an item of a list says so itself."""
    if isinstance(edit.name, str):
        return edit.name
    return str(edit.value["name"])


def _is_ours(edit: Edit, value: Any, notes: dict[str, Any]) -> bool:
    return edit.is_ours(value) or notes.get(edit.label, {}).get("value") == value


def _read(file: Path) -> File | None:
    try:
        return read_file(os.path.realpath(file))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError(str(file), reason(error)) from None


def _text(file: File | None) -> str | None:
    if file is None:
        return None
    try:
        return file.data.decode("utf-8")
    except UnicodeDecodeError:
        raise Unsure("it is not UTF-8 text") from None


def _swap(file: Path, old: File | None, new: str | None) -> bool:
    """Make `new` (None: nothing) stand at `file`, through a symlink; False when it is no longer
    `old`.
    """
    real = Path(os.path.realpath(file))
    temp = real.with_name(f".{real.name}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        if new is not None:
            real.parent.mkdir(parents=True, exist_ok=True)
            write_file(str(temp), new.encode(), mode=0o600 if old is None else old.mode)
        if new is not None and old is not None:
            status = os.stat(real)
            if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.chown(temp, status.st_uid, status.st_gid)
                    os.chmod(temp, stat.S_IMODE(status.st_mode))
        now = _read(real)
        if (now and now.etag) != (old and old.etag):
            return False
        if new is None:
            real.unlink(missing_ok=True)
        else:
            os.replace(temp, real)
            sync_folder(real.parent)
    except OSError as error:
        raise StorageError(str(file), reason(error)) from None
    finally:
        # It is in its place, or never was
        with suppress(OSError):
            temp.unlink()
    return True


def checked(text: str, pattern: str, message: str) -> str:
    """`text` if the pattern fits all of it. Raises InvalidInput with the message."""
    if not re.fullmatch(pattern, text):
        raise InvalidInput(message)
    return text


def checked_name(name: str) -> str:
    """A name for the entry. Raises InvalidInput."""
    message = f'invalid name "{name}": use up to 64 letters, digits, - and _'
    return checked(name, r"[A-Za-z][A-Za-z0-9_-]{0,63}", message)
