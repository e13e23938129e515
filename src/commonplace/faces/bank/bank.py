"""One memory bank: its folder in the project `banks`, its record, its files (contract 003, 1)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.clock import stamp
from commonplace.errors import CommonplaceError, NotFound
from commonplace.faces.bank import templates
from commonplace.faces.bank.names import FOLDERS, is_id, title_of
from commonplace.faces.bank.repository import Repository

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.store.base import File, Stamp

PROJECT = "banks"
RECORD = ".bank.json"
Puts = dict[str, "tuple[str, File | None]"]
"""Files to write: path -> (new text, what was read there)."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a bank is called and about when it is new."""

    name: str
    description: str = ""
    repository: Repository | None = None


class Bank:
    """The bank `kind`/`id` (a valid id) as one caller sees it."""

    def __init__(self, memory: Memory, kind: str, id: str):
        from commonplace.engine.files import (
            Files,
        )  # the engine is needed by the first call, not by the handshake

        self.kind, self.id = kind, id
        self.key = f"{kind}:{id}"
        self.agent = memory.agent
        self.files = Files(memory, PROJECT, f"{FOLDERS[kind]}/{id}")

    def notes(self) -> dict[str, Stamp]:
        """The bank's Markdown files, in the order of paths, with their stamps. Raises as `Files.notes`."""
        return {path: stamp for path, stamp in self.files.notes().items() if path.lower().endswith(".md")}

    def exists(self) -> bool:
        """Whether there is a record or a file. Raises OutsideError when the folder is a link, StorageError."""
        return self.has_record() or bool(self.notes())

    def has_record(self) -> bool:
        """Whether `.bank.json` is there. Raises OutsideError when the folder is a link."""
        return self.files.itself(RECORD).kind != "missing"

    def record(self) -> dict[str, Any]:
        """What `.bank.json` says; {} when there is none or nobody can read it."""
        try:
            rows = json.loads(self.files.read(RECORD).data)
        except (CommonplaceError, ValueError, RecursionError):
            return {}
        return rows if isinstance(rows, dict) else {}

    def read(self, path: str) -> File | None:
        """A file as it is now, None when there is none. Raises OutsideError, StorageError."""
        try:
            return self.files.read(path)
        except NotFound:
            return None

    def beginning(self) -> Beginning:
        """Name and description as recorded, else from the id."""
        record = self.record()
        name, description = record.get("name"), record.get("description")
        return Beginning(
            name if isinstance(name, str) and name else title_of(self.id),
            description if isinstance(description, str) else "",
        )

    def first_files(self, start: Beginning, moment: datetime) -> Puts:
        """All files of the new bank, its record last."""
        texts = templates.texts(self.kind, start.name, start.description)
        made: Puts = {path: (text, None) for path, text in texts.items()}
        row = {
            "name": start.name,
            "description": start.description,
            "created_at": stamp(moment.replace(microsecond=0)),
        }
        made[RECORD] = (_record_text({**row, "repo": _repo(start.repository)}), None)
        return made

    def create(self, start: Beginning, moment: datetime) -> None:
        """Make the bank, unless somebody else just did. Raises StorageError and the like."""
        self.files.put(lambda: {} if self.exists() else self.first_files(start, moment), "create")

    def belongs_to(self, repository: Repository) -> bool | None:
        """Whether the record names this repository by path or origin; None when it names none."""
        repo = self.record().get("repo")
        if not isinstance(repo, dict):
            return None
        same_origin = repository.origin is not None and repo.get("origin") == repository.origin
        return same_origin or repo.get("path") == repository.root

    def claim(self, repository: Repository) -> None:
        """Record whose bank this is, where nobody did; a record that cannot be read stays as it is."""

        def plan() -> Puts:
            old = self.read(RECORD)
            row = self.record()
            if row.get("repo") is not None or (old is not None and not row):
                return {}
            made = row or {"name": repository.name, "description": "", "created_at": None}
            return {RECORD: (_record_text({**made, "repo": _repo(repository)}), old)}

        self.files.put(plan, "edit")


def all_banks(memory: Memory, kind: str) -> list[Bank]:
    """Every bank of a kind. Raises StorageError."""
    from commonplace.engine.files import Files

    try:
        found = Files(memory, PROJECT).entries(FOLDERS[kind])
    except NotFound:
        return []
    names = [name for name, place in found if place.kind == "folder" and not place.link and is_id(name)]
    banks = [Bank(memory, kind, name) for name in names]
    return [bank for bank in banks if bank.exists()]


def _repo(repository: Repository | None) -> dict[str, str | None] | None:
    return None if repository is None else {"path": repository.root, "origin": repository.origin}


def _record_text(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, indent=2) + "\n"
