"""Moving in a folder of JSON files as the agent-memory server keeps it: its entries become notes (contract 004, 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.engine.entries import Entry, NoteEntries, whole_milliseconds
from commonplace.engine.exchange import VERB
from commonplace.engine.json_entries import entry_of, unknown_of
from commonplace.store.inplace.json_files import JsonFiles
from commonplace.transfer.moving import IMPORT, KEEP, UPDATE, Item, Plan, WrongStore, folder_at

if TYPE_CHECKING:
    from commonplace.engine import Memory

EXPIRED = "its time to live is over"
_OLDER = "a newer one is here; this one is in the history"
_OLDER_PASSING = "a newer one is here"


@dataclass(frozen=True, slots=True)
class _Brought:
    """An entry with its unknown fields."""

    entry: Entry
    further: dict[str, Any]


def plan(memory: Memory, path: Path, *, skip_bad: bool = False) -> Plan:
    """The plan for copying the entries into notes. Of two with one key the later `created_at` counts, as
    remembering a key anew sets it; of one time, the one that is here.

    Raises WrongStore, also for a file that is no list of entries, which `skip_bad` leaves out.
    """
    folder_at(path, "a folder of agent-memory")
    moving = _Moving(memory)
    files = JsonFiles(path)
    stems = files.stems()
    if not stems:
        raise WrongStore(f"{path} holds no JSON files of agent-memory")
    made = Plan(moving.act)
    newest: dict[tuple[str, str], _Brought] = {}
    for stem in stems:
        try:
            content = files.read(stem)
        except (OSError, ValueError) as error:
            if not skip_bad:
                raise WrongStore(
                    f"{path / stem}.json is no list of entries ({error}); mend it, or leave it out with --skip-bad"
                ) from None
            made.skipped.append((f"{stem}.json", "it is no list of entries"))
            continue
        for row in content.rows:
            _collect(_Brought(entry_of(row, stem, content), unknown_of(row, stem)), newest, made, memory.clock())
    for each in newest.values():
        moving.decide(each, made)
    return made


def _collect(each: _Brought, newest: dict[tuple[str, str], _Brought], made: Plan, now: datetime) -> None:
    """Take an entry up unless it ended, cannot be asked for, or is older than another with its key."""
    entry = each.entry
    why = EXPIRED if entry.expires is not None and now > entry.expires else ""
    why = why or ("" if entry.key.strip() else "its key is blank")
    if why:
        made.skipped.append((_name(entry), why))
        return
    names = entry.namespace, entry.key
    other = newest.get(names)
    if other is None or entry.created >= other.entry.created:
        newest[names] = each
        each = other or each
    if other is not None:
        made.skipped.append((_name(each.entry), "another with its key is newer"))


def _name(entry: Entry) -> str:
    return f"kv/{entry.namespace}/{entry.key}"


class _Moving:
    """Decides against the entries here, and writes."""

    def __init__(self, memory: Memory):
        self._entries = NoteEntries(memory)

    def decide(self, each: _Brought, made: Plan) -> None:
        """Put what becomes of an entry into the plan."""
        entry, name = each.entry, _name(each.entry)
        there = self._entries.peek(entry.namespace, entry.key)
        if there is None:
            made.items.append(Item(IMPORT, name, len(entry.value), each))
            return
        here, is_locked = there
        if _said(here) == _said(entry):
            made.unchanged += 1
        elif entry.created.replace(microsecond=0) <= here.created.replace(microsecond=0):
            passing = entry.expires is not None or here.expires is not None
            made.skipped.append((name, _OLDER_PASSING if passing else _OLDER))
            made.items += [] if passing else [Item(KEEP, name, len(entry.value), each)]
        elif is_locked:
            made.skipped.append((name, "the one here is locked"))
        else:
            made.items.append(Item(UPDATE, name, len(entry.value), each))

    def act(self, items: Sequence[Item]) -> None:
        """Write a batch."""
        written = [(each.what.entry, each.what.further) for each in items if each.verb != KEEP]
        older = [(each.what.entry, each.what.further) for each in items if each.verb == KEEP]
        if written:
            self._entries.import_entries(written, VERB)
        if older:
            self._entries.keep_outdated(older)


def _said(entry: Entry) -> tuple[Any, ...]:
    """What two equal entries agree in; the notes keep seconds, and milliseconds of the end."""
    expires = entry.expires and whole_milliseconds(entry.expires)
    return entry.value, entry.created.replace(microsecond=0), expires
