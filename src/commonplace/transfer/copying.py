"""Folders of files copied into a project byte for byte: memory banks (contract 003, 1) and vaults of notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.engine.exchange import Exchange
from commonplace.engine.writing import scope_of
from commonplace.errors import CommonplaceError
from commonplace.note.markdown import parse_note
from commonplace.store import path_guard
from commonplace.store.layout import NOTE_SUFFIXES, SKIPPED_FOLDERS
from commonplace.transfer.moving import IMPORT, Found, Item, Plan, WrongStore, files_below, folder_at, read_bytes

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.note.model import Note

BANKS = "banks"
BANK_KINDS = ("global", "projects", "code")
"""The folders of a root of banks, one for each kind."""
_RECORD = ".bank.json"
_DERIVED = ("cache.json", "cache_memory_dump.json")
"""Files of the bank server that it makes from the others."""
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A file to copy: where it lies, and where in the project it goes."""

    source: Path
    path: str


def vault(memory: Memory, path: Path, project: str) -> Plan:
    """The plan for copying a vault of notes into `project`, with its folders and other files.

    Raises WrongStore; ProjectNotFound.
    """
    folder_at(path, "a folder of notes")
    name = memory.project(project).name
    found = list(files_below(path, SKIPPED_FOLDERS.__contains__))
    if not any(_is_note(each.path) for each in found):
        raise WrongStore(f"{path} holds no notes (*.md)")
    return _Copying(memory, name).plan((each, _Copy(path / each.path, each.path)) for each in found)


def banks(memory: Memory, path: Path, named: Callable[[Path], tuple[str, str]], is_id: Callable[[str], bool]) -> Plan:
    """The plan for copying memory banks: a root with folders `global`, `projects`, `code`; one of these; a folder
    of projects; or one plain folder of Markdown files, for which `named` tells kind (as BANK_KINDS) and id.

    `is_id` judges the ids of banks. Raises WrongStore.
    """
    folder_at(path, "a folder of memory banks")
    copying = _Copying(memory, BANKS)
    places = _bank_places(path, named)
    if not places:
        raise WrongStore(f"{path} holds no memory banks: neither Markdown files nor folders of them")
    refused = [(f"{kind}/{name}/", "its name cannot be a bank's id") for kind, name, _ in places if not is_id(name)]
    plan = copying.plan(
        (each, _Copy(folder / each.path, f"{kind}/{name}/{each.path}"))
        for kind, name, folder in places
        if is_id(name)
        for each in _bank_files(folder)
    )
    plan.skipped += refused
    return plan


def _bank_places(path: Path, named: Callable[[Path], tuple[str, str]]) -> list[tuple[str, str, Path]]:
    """(kind, id, folder) of the banks at a path."""
    own = [each.name.lower() for each in path.iterdir() if each.is_file() and _is_note(each.name)]
    if not own or own == ["readme.md"]:
        found = [(kind, each.name, each) for kind in BANK_KINDS for each in _bank_folders(path / kind)]
        if found:
            return found
    if own:
        return [(*named(path), path)]
    here = path.resolve().name
    return [(here if here in BANK_KINDS else "projects", each.name, each) for each in _bank_folders(path)]


def _bank_folders(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    folders = [each for each in sorted(path.iterdir()) if each.is_dir() and not each.is_symlink()]
    return [each for each in folders if each.name[0] != "." and any(_is_note(file.path) for file in files_below(each))]


def _is_note(name: str) -> bool:
    return name.lower().endswith(NOTE_SUFFIXES)


def _bank_files(folder: Path) -> Iterator[Found]:
    """A bank's files, and its record, which begins with a dot."""
    yield from files_below(folder, lambda name: name in _DERIVED or name in SKIPPED_FOLDERS)
    record = folder / _RECORD
    if record.is_file() and not record.is_symlink():
        yield Found(_RECORD, record.stat().st_size)


class _Copying:
    """Plans and makes copies in one project."""

    def __init__(self, memory: Memory, project: str):
        self._memory, self._project = memory, project
        self._exchange = Exchange(memory)
        self._permalinks: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._paths: dict[str, str] = {}

    def plan(self, files: Iterable[tuple[Found, _Copy]]) -> Plan:
        """The plan: what is there with the same bytes is unchanged; nothing that is there is written over."""
        plan = Plan(self._copy)
        for found, copy in files:
            name = f"{self._project}/{copy.path}"
            why = found.refused or self._refusal(copy)
            if why == "":
                plan.items.append(Item(IMPORT, name, found.size, copy))
            elif why is None:
                plan.unchanged += 1
            else:
                plan.skipped.append((name, why))
        return plan

    def _refusal(self, copy: _Copy) -> str | None:
        """Why a file stays behind; "" when it goes, None when it is there already."""
        try:
            hidden = copy.path.endswith(f"/{_RECORD}")
            if path_guard.clean(copy.path, self._project, hidden=hidden) != copy.path:
                return "its name cannot be kept"
            there = self._exchange.file(self._project, copy.path)
        except CommonplaceError as error:
            return str(error)
        data = read_bytes(copy.source)
        if there is not None:
            if not self._memory.sees(scope_of(there.data)):
                return "something else is there"
            return None if there.data == data else "another text is there"
        other = self._paths.setdefault(copy.path.casefold(), copy.path)
        if other != copy.path or self._exchange.is_taken(self._project, copy.path):
            return f"{other if other != copy.path else 'something'} is there under the same name but for its case"
        if not self._memory.sees(scope := scope_of(data)):
            return f'its scope is "{scope}"'
        return self._claim(copy, data) if _is_note(copy.path) else ""

    def _claim(self, copy: _Copy, data: bytes) -> str:
        """Why a note cannot go where another has its permalink or id; "" when none has."""
        note = parse_note(data.decode("utf-8", "replace"), project=self._project, path=copy.path, changed=_EPOCH)
        permalink, identity = note.permalink if note.own_permalink else None, note.id if note.own_id else None
        holder = self._holder(note, permalink, identity)
        if holder is None:
            if permalink:
                self._permalinks[permalink] = copy.path
            if identity:
                self._ids[identity] = copy.path
            return ""
        what, whose = holder
        return f"its {what} is that of {whose}; change one of the two and import again"

    def _holder(self, note: Note, permalink: str | None, identity: str | None) -> tuple[str, str] | None:
        for what, value, planned in (("permalink", permalink, self._permalinks), ("id", identity, self._ids)):
            if value is None:
                continue
            if value in planned:
                return f'{what} "{value}"', f"{self._project}/{planned[value]}"
            info = self._exchange.holder(self._project, **{what if what == "permalink" else "identity": value})
            if info is not None:
                seen = self._memory.sees(info.scope)
                return f'{what} "{value}"', f"{info.project}/{info.path}" if seen else "another note"
        return None

    def _copy(self, items: Sequence[Item]) -> None:
        self._exchange.add_files(self._project, [(each.what.path, read_bytes(each.what.source)) for each in items])
