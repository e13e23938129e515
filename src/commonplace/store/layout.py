"""The only module that knows the names of a home's folders and files (docs/format.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from commonplace.note.model import BUILT_IN_PROJECTS

PRIVATE = ".commonplace"
TEMP_PREFIX = ".tmp-"
NOTE_SUFFIXES = (".md", ".markdown")
SKIPPED_FOLDERS = frozenset({"node_modules"})


class Layout:
    """Where everything lies in the home `root` (an absolute folder)."""

    def __init__(self, root: Path):
        self.root = root
        self.config = root / "config.yaml"
        self.private = root / PRIVATE
        self.index = self.private / "index.db"
        self.lock = self.private / "lock"
        self.redo = self.private / "redo"
        self.access_log = self.private / "access.log"
        self.journal = self.private / "history" / "journal.jsonl"
        self.objects = self.private / "history" / "objects"

    def index_for(self, extra: Mapping[str, str]) -> Path:
        """The index file: one of its own for a process that has projects (name -> folder) no other has."""
        if not extra:
            return self.index
        digest = hashlib.sha256("\0".join(f"{name}\0{extra[name]}" for name in sorted(extra)).encode()).hexdigest()
        return self.index.with_name(f"index-{digest[:12]}.db")

    def project(self, name: str) -> Path:
        """The folder of a built-in project."""
        return self.root / name

    def built_in(self) -> dict[str, Path]:
        """Every built-in project with its folder."""
        return {name: self.project(name) for name in BUILT_IN_PROJECTS}
