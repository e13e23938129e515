"""Where the figures are measured: vaults and homes of several sizes, made when first asked for."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import plain
import vault
from memoranda.engine import MemorySession, open_session

PROJECT = "vault"


class Ground:
    """Everything below `folder`, which belongs to this run alone. `notes` is the main size."""

    def __init__(self, folder: Path, notes: int, *, large: bool = False):
        self.folder = folder
        self.notes = notes
        self.small = max(10, notes // 10)
        self.sizes = [self.small, notes, *([100_000] if large else [])]
        self._homes: dict[int, Path] = {}
        self._made = 0

    def vault(self, notes: int) -> Path:
        """The folder with `notes` sample notes."""
        folder = self.folder / f"vault-{notes}"
        if not folder.exists():
            vault.make_vault(folder, notes)
        return folder

    def texts(self, notes: int, *, seed: int = 1) -> list[str]:
        """Return the first `notes` texts of the vault of the main size."""
        return [vault.note_text(number, self.notes, seed) for number in range(notes)]

    def new_home(self, notes: int) -> Path:
        """A fresh home that has the vault as a project and no index yet; the one to use from now
        on.
        """
        self._made += 1
        home = self.folder / f"home-{notes}-{self._made}"
        with open_session(home, watch=False) as memory:
            memory.add_project(PROJECT, str(self.vault(notes)))
        self._homes[notes] = home
        return home

    def home(self, notes: int) -> Path:
        """A home whose index has the vault of `notes` notes."""
        if notes not in self._homes:
            self.new_home(notes)
        with open_session(self._homes[notes], watch=False) as memory:
            memory.sync()
        return self._homes[notes]

    def memory(self, notes: int) -> MemorySession:
        """The memory of that size, open as in a server that lives long."""
        memory = open_session(self.home(notes))
        memory.sync()
        return memory

    def plain_index(self, notes: int) -> Path:
        """The same texts in a plain FTS5 table."""
        place = self.folder / f"plain-{notes}.db"
        if not place.exists():
            plain.index(self.vault(notes), place)
        return place

    def plain_database(self, notes: int) -> sqlite3.Connection:
        """The plain table, open."""
        return sqlite3.connect(self.plain_index(notes))


def size(place: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if place.is_dir():
        return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    return place.stat().st_size
