"""The files below a source's root: which there are, and what they say (contract 001, 11)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from commonplace.store.files import reason
from commonplace.text.unicode import is_valid_unicode

MOST_BYTES = 1 << 20


class Tree:
    """A folder being read; None or a missing one holds nothing.

    `warnings` tells what was left out and why, `seen` counts the files asked for. Folders of `apart` (the memory
    home) are never entered. Nothing here writes.
    """

    def __init__(self, root: Path | None, apart: Collection[Path] = ()):
        self.root = "" if root is None else str(root)
        self.warnings: list[str] = []
        self.seen = 0
        self._real = os.path.realpath(self.root)
        self._apart = {os.path.realpath(each) for each in apart}

    def notes(self, folder: str = "", *, hidden: bool, deep: bool = True) -> list[str]:
        """Paths of all `*.md` below a folder of the root, sorted; with `hidden` also those in hidden folders.

        Without `deep` only those in the folder itself. Symbolic links that stay below the root are followed, each
        folder reached so once; others are not.
        """
        found: list[str] = []
        folders = [folder] if self.root else []
        linked: list[str] = []
        followed: set[str] = set()
        while folders or linked:
            here = folders.pop() if folders else linked.pop(0)
            for entry in self._entries(here):
                path = f"{here}/{entry.name}" if here else entry.name
                if entry.name.startswith(".") and not hidden:
                    continue
                if entry.is_symlink():  # one that leads nowhere, or to itself, is left out
                    if not os.path.exists(entry.path) or not self._leads_inside(entry, path, hidden):
                        continue
                    if self._is_new_folder(entry, followed):
                        linked.append(path)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                if entry.name.endswith(".md") and entry.is_file():
                    found.append(path)
            if not deep:
                break
        return sorted(found)

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """What a folder holds; nothing when it is missing, apart, unreadable, or reached by a link out of the root."""
        place = os.path.join(self.root, folder) if folder else self.root
        real = os.path.realpath(place)
        if real in self._apart or not self._is_inside(real):
            return
        try:
            with os.scandir(place) as entries:
                listed = list(entries)
        except FileNotFoundError:
            return
        except OSError as error:
            self.warn(folder or self.root, f"cannot be read ({reason(error)})")
            return
        for entry in listed:
            if entry.name.isprintable() or is_valid_unicode(entry.name):
                yield entry
            else:
                self.warn(f"{folder}/{entry.name}".lstrip("/"), "its name is not valid UTF-8")

    def _is_inside(self, real: str) -> bool:
        return real == self._real or real.startswith(self._real.rstrip("/") + "/")

    def _leads_inside(self, entry: os.DirEntry[str], path: str, hidden: bool) -> bool:
        real = os.path.realpath(entry.path)
        if not self._is_inside(real):
            if entry.is_dir() or entry.name.endswith(".md"):
                self.warn(path, "a link out of the folder is not followed")
            return False
        return hidden or "/." not in real[len(self._real.rstrip("/")) :]

    def _is_new_folder(self, entry: os.DirEntry[str], followed: set[str]) -> bool:
        """Whether a link leads to a folder that no link led to before and that it does not itself lie in."""
        if not entry.is_dir():
            return False
        real = os.path.realpath(entry.path)
        above = os.path.realpath(os.path.dirname(entry.path))
        if real in followed or f"{above}/".startswith(f"{real.rstrip('/')}/"):
            return False
        followed.add(real)
        return True

    def text(self, path: str) -> str | None:
        """The file's text without a byte order mark; None, with a warning, when it is too large or no UTF-8."""
        self.seen += 1
        try:
            with open(os.path.join(self.root, path), "rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            self.warn(path, f"cannot be read ({reason(error)})")
            return None
        if len(data) > MOST_BYTES:
            self.warn(path, "larger than 1 MB")
            return None
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.warn(path, "not UTF-8 text")
            return None

    def warn(self, path: str, why: str) -> None:
        """Note that `path` was not read as a whole."""
        shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        self.warnings.append(f"{shown}: {why}")
