"""Lists everything in a project's folder: notes, attachments, symlinks, and what is left out.

The index has only notes. So this looks at the folder itself, each time it is called.
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

# Kinds of attachments in words -> the endings of their names.
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

    path: relative to the project.
    kind: in words, such as `picture`.
    size: in bytes.
    mtime_ns: when it was changed last, in nanoseconds since 1970.
    """

    path: str
    kind: str
    size: int
    mtime_ns: int

    @property
    def changed(self) -> datetime:
        """When the file was changed last, in UTC."""
        return EPOCH + timedelta(microseconds=self.mtime_ns // 1000)


class Symlink(NamedTuple):
    """A symlink to a folder, or with the name of a note.

    target: where it leads. A path in the project if `is_inside`, otherwise as the link has it.
    is_inside: whether it leads to something inside the project.
    """

    path: str
    target: str
    is_inside: bool


class LeftOut(NamedTuple):
    """A file or folder that is left out of the project.

    path: its path in the project.
    reason: the list and the line that leave it out: `.memoryignore, line 3`.
    notes: how many files with the name of a note are in it, or 1 if it is such a file.
    """

    path: str
    reason: str
    notes: int


@dataclass(slots=True)
class Inventory:
    """The contents of a folder. All paths are relative to the project.

    notes: the number of notes.
    attachments: files that are not notes.
    symlinks: symlinks to folders, or with the name of a note.
    left_out: files and folders that the rules leave out.
    unreadable: folders and notes that may not be read; `/` is the project's own folder.
    """

    notes: int = 0
    attachments: list[Attachment] = field(default_factory=list)
    symlinks: list[Symlink] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def attachment(self, name: str, folder: str = "", usual: str = "") -> Attachment | None:
        """Return the attachment that a link means, such as `img/plan.png`.

        Tried in this order: the path from the note's folder, the path from the project, the path
        from `usual`, and the end of the path of any attachment.

        name: the target of the link.
        folder: the folder of the note that has the link.
        usual: the folder in which the program keeps attachments.

        None if no attachment fits, or if several fit equally.
        """
        by_key = {_key(attachment.path): attachment for attachment in self.attachments}
        path_in_project = name.lstrip("/")
        path_from_note = posixpath.normpath(posixpath.join(folder, name))
        path_in_usual_folder = posixpath.join(usual, path_in_project)
        for path in (path_from_note, path_in_project, path_in_usual_folder):
            if _key(path) in by_key:
                return by_key[_key(path)]
        path_end = f"/{_key(path_in_project)}"
        matches = [attachment for key, attachment in by_key.items() if key.endswith(path_end)]
        if len(matches) == 1:
            return matches[0]
        return None


def attachment_kind(name: str) -> str:
    """Return the kind of a file with this name, in words: `plan.png` is a `picture`.

    `file` if the ending is unknown.
    """
    folded = name.lower()
    for suffix, kind in _SUFFIXES.items():
        if folded.endswith(suffix):
            return kind
    return "file"


def inventory_of(source: FolderSource, below: str = "") -> Inventory:
    """List the folder `below` of a project, and all folders in it. "" is the whole project."""
    inventory = Inventory()
    if below and source.rules.reason(below, is_folder=True):
        return inventory
    waiting = [below]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(source.root, folder)) as entries:
                sorted_entries = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            inventory.unreadable.append(folder or "/")
            continue
        for entry in sorted_entries:
            if entry.name.startswith(".") or not is_valid_unicode(entry.name):
                continue
            is_folder_to_list = _add_entry(source, folder, entry, inventory)
            if is_folder_to_list:
                waiting.append(posixpath.join(folder, entry.name))
    inventory.attachments.sort()
    return inventory


def attachments_of_folder(source: FolderSource, folder: str) -> list[Attachment]:
    """Return the attachments directly in one folder of a project, sorted by path."""
    if folder and source.rules.reason(folder, is_folder=True):
        return []
    place = os.path.join(source.root, folder)
    try:
        names = os.listdir(place)
    except OSError:
        return []
    inventory = Inventory()
    for name in names:
        # A folder may have very many notes, so names like theirs are sorted out first
        if name.endswith(".md") and not name.lower().endswith(DRAWING_SUFFIX):
            continue
        if name.startswith(".") or not is_valid_unicode(name):
            continue
        path = posixpath.join(folder, name)
        if not source.has_note_name(path) and not source.rules.reason(path):
            _add_attachment(path, os.path.join(place, name), inventory)
    inventory.attachments.sort()
    return inventory.attachments


def _add_attachment(path: str, place: str, inventory: Inventory) -> None:
    """Add a file to an inventory, if it is a regular file that still exists.

    path: its path in the project.
    place: its absolute path.
    """
    try:
        status = os.lstat(place)
    except OSError:
        return
    if stat.S_ISREG(status.st_mode):
        kind = attachment_kind(path)
        inventory.attachments.append(Attachment(path, kind, status.st_size, status.st_mtime_ns))


def _add_entry(
    source: FolderSource, folder: str, entry: os.DirEntry[str], inventory: Inventory
) -> bool:
    """Add one entry of a folder to the inventory.

    Returns whether the entry is a folder, whose entries must be added next.

    folder: the path of the folder in the project.
    entry: the entry as `os.scandir` lists it.
    """
    path = posixpath.join(folder, entry.name)
    is_folder = entry.is_dir(follow_symlinks=False)
    if is_folder and entry.name in SKIPPED_FOLDERS:
        return False
    reason = source.rules.reason(path, is_folder=is_folder)
    if reason:
        notes = _notes_below(source, path) if is_folder else int(source.has_note_name(path))
        inventory.left_out.append(LeftOut(path, reason, notes))
        return False
    if is_folder:
        return True
    if entry.is_symlink():
        _add_symlink(source, path, entry, inventory)
    elif entry.is_file(follow_symlinks=False):
        _add_file(source, path, entry, inventory)
    return False


def _add_file(
    source: FolderSource, path: str, entry: os.DirEntry[str], inventory: Inventory
) -> None:
    """Add a file to an inventory, as a note or as an attachment.

    path: its path in the project.
    entry: the file as `os.scandir` lists it.
    """
    if source.has_note_name(path):
        if os.access(entry.path, os.R_OK):
            inventory.notes += 1
        else:
            inventory.unreadable.append(path)
        return
    _add_attachment(path, entry.path, inventory)


def _add_symlink(
    source: FolderSource, path: str, entry: os.DirEntry[str], inventory: Inventory
) -> None:
    """Add a symlink to an inventory if it leads to a folder or has the name of a note.

    path: its path in the project.
    entry: the symlink as `os.scandir` lists it.
    """
    if not source.has_note_name(path) and not entry.is_dir():
        return
    inventory.symlinks.append(symlink_at(source, path))


def symlink_at(source: FolderSource, path: str) -> Symlink:
    """Return the symlink at `path` of a project."""
    real_root = os.path.realpath(source.root)
    place = os.path.join(source.root, path)
    target = os.path.realpath(place)
    if target.startswith(f"{real_root}/"):
        return Symlink(path, target.removeprefix(f"{real_root}/"), is_inside=True)
    try:
        return Symlink(path, os.readlink(place), is_inside=False)
    except OSError:
        return Symlink(path, target, is_inside=False)


def _notes_below(source: FolderSource, folder: str) -> int:
    """Return how many files below a folder have the name of a note, though they are left out."""
    from memoranda.sources.walking import walk

    total = 0
    for _, folders, names in walk(os.path.join(source.root, folder)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        total += sum(source.has_note_name(name) for name in names if not name.startswith("."))
    return total


def _key(path: str) -> str:
    """Return a path in a form for comparing.

    Case and the form of Unicode do not matter. Obsidian's links name the drawing
    `Plan.excalidraw.md` as `Plan.excalidraw`, so the `.md` of a drawing is left out.
    """
    folded = unicodedata.normalize("NFC", path).casefold()
    if folded.endswith(DRAWING_SUFFIX):
        return folded.removesuffix(".md")
    return folded
