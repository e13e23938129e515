"""Everything in a project's folder, notes or not: attachments, symlinks, and what is left out.

The index knows notes alone. This looks at the folder itself, whenever it is asked.
"""

from __future__ import annotations

import os
import posixpath
import stat
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from memoranda.clock import EPOCH
from memoranda.sources.folder import FolderSource
from memoranda.sources.layout import DRAWING_SUFFIX, SKIPPED_FOLDERS
from memoranda.text.unicode import is_valid_unicode

# Attachments by their extensions.
_KINDS = {
    "Obsidian canvas": ".canvas",
    "Excalidraw drawing": f"{DRAWING_SUFFIX} .excalidraw",
    "Obsidian base": ".base",
    "PDF document": ".pdf",
    "picture": ".png .jpg .jpeg .gif .webp .svg .bmp .avif .heic .tif .tiff",
    "sound": ".mp3 .wav .m4a .ogg .flac .3gp .opus",
    "film": ".mp4 .webm .ogv .mov .mkv .avi",
    "table": ".csv .tsv .xlsx .xls .ods",
    "text": ".txt .org .rst .tex .json .yaml .yml .toml .xml .html .htm .css .js .ts .py .sh .edn",
    "book": ".epub .mobi",
    "office document": ".docx .doc .odt .pptx .ppt .odp .rtf",
    "archive": ".zip .tar .gz .7z",
}
_SUFFIXES: dict[str, str] = {}
for _kind, _suffixes in _KINDS.items():
    _SUFFIXES |= dict.fromkeys(_suffixes.split(), _kind)


class Attachment(NamedTuple):
    """A file that is not a note.

    kind: its kind in words.
    size: in bytes.
    """

    path: str
    kind: str
    size: int
    mtime_ns: int

    @property
    def changed(self) -> datetime:
        """When the file was changed last, aware UTC."""
        return EPOCH + timedelta(microseconds=self.mtime_ns // 1000)


class Symlink(NamedTuple):
    """A symlink to a folder, or with the name of a note.

    target: project-relative if `is_inside` the project. Otherwise as the link has it.
    """

    path: str
    target: str
    is_inside: bool


class LeftOut(NamedTuple):
    """A file or folder that is not part of the project, and the list that says so."""

    path: str
    reason: str
    notes: int


@dataclass(slots=True)
class Inventory:
    """The files of a folder; all paths are relative to the project."""

    notes: int = 0
    attachments: list[Attachment] = field(default_factory=list)
    symlinks: list[Symlink] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def attachment(self, name: str, folder: str = "", usual: str = "") -> Attachment | None:
        """The attachment that a link in a note of `folder` means; `usual` is where the vault keeps
        its attachments. None for no attachment, and for several that fit equally."""
        by_key = {_key(attachment.path): attachment for attachment in self.attachments}
        plain = name.lstrip("/")
        relative = posixpath.normpath(posixpath.join(folder, name))
        for path in (relative, plain, posixpath.join(usual, plain)):
            if _key(path) in by_key:
                return by_key[_key(path)]
        ending = f"/{_key(plain)}"
        matches = [by_key[key] for key in by_key if key.endswith(ending)]
        if len(matches) == 1:
            return matches[0]
        return None


def attachment_kind(name: str) -> str:
    """The kind of a file of this name, in words."""
    folded = name.lower()
    for suffix, kind in _SUFFIXES.items():
        if folded.endswith(suffix):
            return kind
    return "file"


def inventory_of(source: FolderSource, below: str = "") -> Inventory:
    """List the folder `below` of a project, with all folders in it."""
    inventory = Inventory()
    if below and source.rules.reason(below, is_folder=True):
        return inventory
    waiting = [below]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(source.root, folder)) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            inventory.unreadable.append(folder or "/")
            continue
        for entry in listed:
            if entry.name.startswith(".") or not is_valid_unicode(entry.name):
                continue
            inner = _take(source, folder, entry, inventory)
            if inner:
                waiting.append(inner)
    inventory.attachments.sort()
    return inventory


def attachments_of_folder(source: FolderSource, folder: str) -> list[Attachment]:
    """The attachments directly in one folder of a project, sorted by path."""
    if folder and source.rules.reason(folder, is_folder=True):
        return []
    place = os.path.join(source.root, folder)
    try:
        names = os.listdir(place)
    except OSError:
        return []
    # A folder may hold very many notes, so what is named like most of them is passed over first
    names = [name for name in names if not name.endswith(".md") or name.endswith(DRAWING_SUFFIX)]
    inventory = Inventory()
    for name in names:
        path = posixpath.join(folder, name)
        is_shown = not name.startswith(".") and is_valid_unicode(name)
        if is_shown and not source.has_note_name(path) and not source.rules.reason(path):
            _take_attachment(path, os.path.join(place, name), inventory)
    inventory.attachments.sort()
    return inventory.attachments


def _take_attachment(path: str, place: str, inventory: Inventory) -> None:
    """Add the file at `place` if it is a regular file that is still there."""
    try:
        status = os.lstat(place)
    except OSError:
        return
    if stat.S_ISREG(status.st_mode):
        kind = attachment_kind(path)
        inventory.attachments.append(Attachment(path, kind, status.st_size, status.st_mtime_ns))


def _take(source: FolderSource, folder: str, entry: os.DirEntry[str], inventory: Inventory) -> str:
    """Add one entry to what was found. Returns the folder to go on with, if it is one."""
    path = posixpath.join(folder, entry.name)
    is_folder = entry.is_dir(follow_symlinks=False)
    if is_folder and entry.name in SKIPPED_FOLDERS:
        return ""
    reason = source.rules.reason(path, is_folder=is_folder)
    if reason:
        notes = int(source.has_note_name(path))
        if is_folder:
            notes = _notes_below(source, path)
        inventory.left_out.append(LeftOut(path, reason, notes))
    elif is_folder:
        return path
    elif entry.is_symlink():
        _take_symlink(source, path, entry, inventory)
    elif entry.is_file(follow_symlinks=False):
        _take_file(source, path, entry, inventory)
    return ""


def _take_file(
    source: FolderSource, path: str, entry: os.DirEntry[str], inventory: Inventory
) -> None:
    if source.has_note_name(path):
        if os.access(entry.path, os.R_OK):
            inventory.notes += 1
        else:
            inventory.unreadable.append(path)
        return
    _take_attachment(path, entry.path, inventory)


def _take_symlink(
    source: FolderSource, path: str, entry: os.DirEntry[str], inventory: Inventory
) -> None:
    if not source.has_note_name(path) and not entry.is_dir():
        return
    inventory.symlinks.append(symlink_at(source, path))


def symlink_at(source: FolderSource, path: str) -> Symlink:
    """Where the symlink at `path` of a project leads."""
    base = os.path.realpath(source.root)
    place = os.path.join(source.root, path)
    target = os.path.realpath(place)
    if target.startswith(f"{base}/"):
        return Symlink(path, target[len(base) + 1 :], True)
    try:
        return Symlink(path, os.readlink(place), False)
    except OSError:
        return Symlink(path, target, False)


def _notes_below(source: FolderSource, folder: str) -> int:
    """How many files below a folder that is left out have the name of a note."""
    from memoranda.sources.walking import walk

    total = 0
    for _, folders, names in walk(os.path.join(source.root, folder)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        total += sum(source.has_note_name(name) for name in names if not name.startswith("."))
    return total


def _key(path: str) -> str:
    folded = unicodedata.normalize("NFC", path).casefold()
    if folded.endswith(DRAWING_SUFFIX):
        return folded.removesuffix(".md")
    return folded
