"""What upkeep does to the memories of project `categories`: store whole records, set keys, move between
categories, merge, remove, fold the counts of reads (contract 001, 2, 5 and 12; docs/format.md).

Each verb is one change. The caller plans from what it read (`NoteInfo`); a memory that is not as it was then
is a Conflict, and nothing is done.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.clock import parse_stamp, stamp
from commonplace.engine.engine import verb
from commonplace.engine.history import HistoryVerbs
from commonplace.engine.transaction import Transaction
from commonplace.engine.writing import (
    as_file,
    editable,
    encoded,
    follow_content,
    id_list,
    linked_keys,
    remove_note,
    set_keys,
    with_keys,
)
from commonplace.errors import Conflict, Exists, InvalidInput, NotFound, NotText
from commonplace.index.keys import TITLE_CUT
from commonplace.index.rows import NoteInfo
from commonplace.note import entry, links
from commonplace.note.compose import Record
from commonplace.note.edit import SetKeys
from commonplace.note.frontmatter import REMOVE
from commonplace.note.links import fold_title
from commonplace.note.markdown import names
from commonplace.note.model import CATEGORIES, CATEGORY_PROJECT, MEMORY_KEYS
from commonplace.query import Query
from commonplace.store.base import File, sha256
from commonplace.store.change import Step
from commonplace.store.journal import FOLD
from commonplace.store.layout import PRIVATE

if TYPE_CHECKING:
    from commonplace.store.access import LockedLog

T = TypeVar("T")

_PLAIN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
FOLDED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class PutCounts:
    """How many records were new, and how many took the place of one with their id."""

    created: int
    updated: int


class Upkeep:
    """The verbs of upkeep for the caller of `memory`."""

    def __init__(self, memory: HistoryVerbs):
        self.memory = memory
        self.engine = memory.engine
        self._index = memory.index

    @verb
    def every(self, query: Query = Query()) -> list[NoteInfo]:
        """All memories the caller sees that pass the query's filters, oldest first, then by id.

        Reads that are still in the access log are counted.
        """
        infos, _ = self.memory.list(query.replace(projects=(CATEGORY_PROJECT,)), limit=0, order="created")
        return sorted(infos, key=lambda info: (info.created, info.id))

    @verb
    def content(self, info: NoteInfo) -> str:
        """The content as indexed: the text without frontmatter and the writer's final newline."""
        return self._index.notes.text_of(info.row)[1].removesuffix("\n")

    @verb
    def targets(self, infos: Sequence[NoteInfo]) -> dict[int, tuple[str, ...]]:
        """By row, the targets of the wikilinks in the text of each memory, as written, each once."""
        found = self._index.links.targets(sorted(info.row for info in infos))
        return {
            info.row: tuple(each for each in dict.fromkeys(found.get(info.row, ())) if each not in info.links)
            for info in infos
        }

    @verb
    def record(self, info: NoteInfo) -> Record:
        """The memory as it is on disk now, with all its keys. Raises NotFound, NotText."""
        file = self.engine.store(CATEGORY_PROJECT).read(info.path)
        return Record.of(self.memory.as_indexed(self.memory.parse(CATEGORY_PROJECT, info.path, file)))

    @verb
    def state(self) -> tuple[int, ...]:
        """A value that is another one after any change of a note, by whatever program, or a counted read."""
        self.engine.fresh()
        return *self._index.version(), *self.engine.access.stamp()

    @verb
    def put(self, records: Sequence[Record], verb: str, *, both_ways: bool = False) -> PutCounts:
        """Store records as one change; one whose id a memory has takes its place, the old text goes to the history.

        With `both_ways` the memories a record links to gain the link back. Raises InvalidInput, Locked.
        """
        created = 0
        taken: set[str] = set()
        with self.memory.change(verb) as change:
            for record in records:
                before = self._known(record.id)
                created += before is None
                self._put_record(change, record, before, taken)
            if both_ways:
                self._link_back(change, records)
        return PutCounts(created, len(records) - created)

    def _known(self, identity: str) -> NoteInfo | None:
        found = self._index.notes.with_ids([identity], (CATEGORY_PROJECT,))
        return next((info for info in found if self.memory.sees(info.scope)), None)

    def _put_record(
        self, change: Transaction, record: Record, before: NoteInfo | None, taken: set[str] | None = None
    ) -> None:
        """Write a record, new or in place of `before`; `taken` are the lower-cased paths this change uses."""
        self.memory.check_scope(record.scope)
        if record.category not in CATEGORIES:
            raise InvalidInput(f'invalid category "{record.category}"')
        data = encoded(record.text())
        if before is not None:
            file, _ = editable(self.memory, before)
            self._replace(change, before, file, data, record.category, record.scope)
            return
        taken = set() if taken is None else taken
        name = links.memory_file_name(record.content, _plain(record.id))
        path = self._free_path(record.category, name, record.id, taken)
        taken.add(path.lower())
        change.put(CATEGORY_PROJECT, path, data, scope=record.scope)

    def _replace(
        self, change: Transaction, info: NoteInfo, file: File, data: bytes, category: str, scope: str,
        taken: set[str] | None = None,
    ) -> None:  # fmt: skip
        """Put `data` in place of a memory's file, into another category's folder if need be. `taken`: `_put_record`."""
        if info.path.startswith(f"{category}/"):
            change.put(CATEGORY_PROJECT, info.path, data, old=file, scope=scope)
            return
        path = self._free_path(category, info.path.rpartition("/")[2], info.id, taken or ())
        if taken is not None:
            taken.add(path.lower())
        change.put(CATEGORY_PROJECT, path, data, mode=file.mode, scope=scope)
        change.remove(CATEGORY_PROJECT, info.path, file, scope=info.scope)

    def _free_path(self, category: str, name: str, identity: str, taken: Collection[str] = ()) -> str:
        """Where a memory goes, with the whole id in its name should the usual one be taken, also by this change."""
        plain, root = _plain(identity), self.engine.store(CATEGORY_PROJECT).root
        names = itertools.chain((name, f"{plain}.md"), (f"{plain}-{n}.md" for n in itertools.count(2)))
        paths = (f"{category}/{each}" for each in names)
        return next(
            path for path in paths
            if path.lower() not in taken and not os.path.lexists(os.path.join(root, path))
        )  # fmt: skip

    def _link_back(self, change: Transaction, records: Sequence[Record]) -> None:
        """Give the memories that the records link to the link back."""
        gained: dict[str, list[str]] = {}
        own = {record.id for record in records}
        for record in records:
            for target in record.links:
                if target not in own:
                    gained.setdefault(target, []).append(record.id)
        for target, sources in gained.items():
            info = self._known(target)
            if info is not None and (new := [each for each in sources if each not in info.links]):
                set_keys(self.memory, change, info, {"links": [*info.links, *new]})

    def retried(self, ref: str, run: Callable[[NoteInfo], T]) -> T:
        """As `retried_all`, for one memory."""
        return self.retried_all([ref], lambda infos: run(infos[0]))

    def retried_all(self, refs: Iterable[str], run: Callable[[list[NoteInfo]], T]) -> T:
        """`run` with the memories `refs` name, each once; again with what they are by then, when another program
        changed or moved one meanwhile. Raises as `Memory.memory_id`, and what `run` raises, a fifth Conflict included.
        """
        refs = list(refs)
        for _ in range(4):
            infos = self._named(refs)
            try:
                return run(infos)
            except (Conflict, NotFound):
                continue
        return run(self._named(refs))

    def _named(self, refs: Sequence[str]) -> list[NoteInfo]:
        return list({info.id: info for info in map(self.memory.memory_id, refs)}.values())

    @verb
    def change(self, info: NoteInfo, keys: Mapping[str, Any], verb: str, *, category: str | None = None,
               touch: bool = True) -> NoteInfo:  # fmt: skip
        """Set header keys (REMOVE takes one out), and move the memory to another category's folder.

        Every other byte stays. `updated_at` follows unless `touch` is False. Returns what the index knows then.
        Raises Conflict, Locked, NotFound, NotText; InvalidInput for a header that is not valid YAML.
        """
        if category is not None and category not in CATEGORIES:
            raise InvalidInput(f'invalid category "{category}"')
        return self.change_all([(info, category)], keys, verb, touch=touch)[0]

    @verb
    def change_all(self, memories: Sequence[tuple[NoteInfo, str | None]], keys: Mapping[str, Any], verb: str, *,
                   touch: bool = True) -> list[NoteInfo]:  # fmt: skip
        """As `change`, for several memories, each with its category, as one change: all or none."""
        taken: set[str] = set()
        with self.memory.change(verb, fresh=False) as change:
            for info, category in memories:
                file, text = self._as_read(info)
                wanted = _pinned(info) | dict(keys) | ({"category": category} if category else {})
                if touch:
                    wanted["updated_at"] = stamp(self.memory.clock())
                data = with_keys(info, text, wanted)
                self._replace(change, info, file, data, category or info.category or "inbox", info.scope, taken)
        return self._written(change)

    @verb
    def rewrite(self, info: NoteInfo, content: str, keys: Mapping[str, Any], verb: str) -> None:
        """Give a memory new content and header keys; id, file name and creation time stay, `version` grows by 1.

        Raises as `change`.
        """
        with self.memory.change(verb, fresh=False) as change:
            file, text = self._as_read(info)
            body_at = self.memory.parse(CATEGORY_PROJECT, info.path, file).body_at
            data = with_keys(info, text, keys)
            text = data.decode()
            note = self.engine.parse(CATEGORY_PROJECT, info.path, as_file(data))
            body_at = note.body_at if note is not None else body_at
            data = follow_content(self.memory, info, text, f"{text[:body_at]}{content}\n").encode()
            change.put(CATEGORY_PROJECT, info.path, data, old=file, scope=info.scope)

    @verb
    def remove(self, info: NoteInfo, verb: str) -> list[NoteInfo]:
        """Remove a memory, its text to the history, its id from the links of others; returns those others.

        Raises Conflict, also when it was read since, Locked, NotFound.
        """
        with self.engine.writing():
            file, _ = self._as_read(info)
            with self.engine.access.locked() as log:  # whoever reads it now finds it gone, or his read has counted
                if log.counts[info.id] + _count(info) != info.access_count:
                    raise Conflict(info.permalink, file.etag[:8], info.checksum)
                with self.memory.change(verb, fresh=False) as change:
                    remove_note(self.memory, change, (info, file))
            return self._written(change)

    @verb
    def link(self, a: NoteInfo, b: NoteInfo, verb: str = "link") -> list[NoteInfo]:
        """Link two memories both ways; returns those written. Raises Conflict, Locked, NotFound."""
        with self.memory.change(verb, (CATEGORY_PROJECT, a.path), fresh=False) as change:
            for info, other in ((a, b), (b, a)):
                file, text = self._as_read(info)
                if other.id not in info.links:
                    set_keys(self.memory, change, info, _pinned(info) | linked_keys(info, other), file, text)
        return self._written(change)

    @verb
    def derive(self, source: NoteInfo, record: Record, keys: Mapping[str, Any], verb: str) -> list[NoteInfo]:
        """Store a record made from a memory, both linked; the memory gets these header keys too. One change.

        Returns both, the new one first. Raises Conflict, Exists when the id is taken, Locked, NotFound.
        """
        with self.memory.change(verb, fresh=False) as change:
            file, text = self._as_read(source)
            if self._known(record.id) is not None:
                raise Exists(record.id)
            self._put_record(change, replace(record, links=(*record.links, source.id)), None)
            wanted = _pinned(source) | {"links": [*source.links, record.id]} | dict(keys)
            set_keys(self.memory, change, source, wanted, file, text)
        return self._written(change)

    @verb
    def merge(self, survivor: NoteInfo, other: NoteInfo) -> list[NoteInfo]:
        """Merge `other` into `survivor` (contract 001, 5): one change, the other's text goes to the history.

        The survivor keeps id and content; what the other could be found by, counted or linked with goes to it.
        Returns what was written: the survivor, and those that linked to the other. Raises Conflict, Locked, NotFound.
        """
        with self.memory.change("merge", fresh=False) as change:
            kept_file, text = self._as_read(survivor)
            gone_file, _ = self._as_read(other)
            new_names = self._new_names((survivor, kept_file), (other, gone_file))
            keys, category = _merged(survivor, other, new_names, self.engine.access.counts()[other.id])
            keys = _pinned(survivor) | keys | {"updated_at": stamp(self.memory.clock())}
            self._replace(change, survivor, kept_file, with_keys(survivor, text, keys), category, survivor.scope)
            change.remove(CATEGORY_PROJECT, other.path, gone_file, scope=other.scope)
            for holder in self._index.notes.holding_link(other.id):
                if (
                    holder.row not in (survivor.row, other.row)
                    and holder.project == CATEGORY_PROJECT
                    and not holder.locked
                ):
                    ids = [survivor.id if each == other.id else each for each in holder.links]
                    set_keys(self.memory, change, holder, {"links": list(dict.fromkeys(ids))})
        return self._written(change)

    def _new_names(self, survivor: tuple[NoteInfo, File], other: tuple[NoteInfo, File]) -> list[str]:
        """What wikilinks could call the other memory by and not the survivor: they shall find the survivor."""
        kept, gone = (names(self.memory.parse(CATEGORY_PROJECT, info.path, file)) for info, file in (survivor, other))
        known = {fold_title(name[:TITLE_CUT]) for name in kept}
        new = {fold_title(name): name for name in (each.lstrip("#").strip()[:TITLE_CUT] for each in reversed(gone))}
        return [name for folded, name in reversed(new.items()) if folded and folded not in known]

    def _written(self, change: Transaction) -> list[NoteInfo]:
        """What the index knows now of the memories a change wrote. No look at other files: it would cost more than
        the change."""
        paths = [step.path for step in change.steps if step.do == "put"]
        found = [
            self._index.notes.get(CATEGORY_PROJECT, path) or self.memory.find_ref((CATEGORY_PROJECT, path))
            for path in paths
        ]
        self.engine.count_pending_reads(found)
        return found

    def _as_read(self, info: NoteInfo) -> tuple[File, str]:
        """The memory's bytes and text, as long as they are what `info` says. Raises Conflict, Locked, NotFound."""
        file, text = editable(self.memory, info)
        if file.etag != info.etag:
            raise Conflict(info.permalink, file.etag[:8], info.checksum)
        return file, text

    def fold(self) -> int:
        """Fold the access log: into the frontmatter of memories and entries, for other notes to one line each.

        No change in the sense of the history: `log` does not show it, and it blocks no undo. Returns how many
        notes have their count now.
        """
        folded = 0
        while some := self._fold():
            folded += some
        return folded

    @verb
    def _fold(self) -> int:
        """The next notes, few enough that a read need not wait long for the log."""
        with self.engine.writing():
            self.engine.fresh()
            with self.engine.access.locked() as log:
                with self.memory.as_caller(None).change(FOLD, ("", ""), fresh=False) as change:
                    rest = dict(log.counts)
                    for info in self._index.notes.with_ids(log.counts, (CATEGORY_PROJECT, entry.PROJECT)):
                        has_room = len(change.steps) < FOLDED_AT_ONCE and not info.locked
                        if has_room and self._fold_into(change, info, log):
                            del rest[info.id]
                    folded = len(change.steps)
                    if folded or not log.is_short:
                        change.steps.append(self._log_step(log, rest))
                return folded

    def _log_step(self, log: LockedLog, rest: Mapping[str, int]) -> Step:
        """The step that leaves only `rest` in the access log."""
        folder = str(self.engine.layout.private)
        return Step("put", PRIVATE, folder, log.name, data=log.lines(rest), old=log.file, kept=False)

    def _fold_into(self, change: Transaction, info: NoteInfo, log: LockedLog) -> bool:
        """Write the counted reads into the note's header; False for one that is gone or has no header, whose reads
        stay in the log."""
        try:
            file, text = editable(self.memory, info)
            before = self.memory.parse(info.project, info.path, file).access_count
            keys: dict[str, Any] = {"access_count": before + log.counts[info.id]}
            if info.project == entry.PROJECT:
                keys["accessed_at"] = stamp(log.changed)
            data = SetKeys(keys, MEMORY_KEYS if info.project == CATEGORY_PROJECT else ()).apply(text).text.encode()
        except (NotFound, NotText, ValueError):
            return False
        change.put(info.project, info.path, data, old=file, scope=info.scope, kept=False)
        return True


def _pinned(info: NoteInfo) -> dict[str, Any]:
    """What a hand-made file says only by its place and its times, as keys: else a job would change it."""
    said = {"id": info.id, "source": info.source, "created_at": info.created}
    has_date = info.header.get("created_at") or info.header.get("created")
    return {
        key: value for key, value in said.items()
        if value and not (has_date if key == "created_at" else info.header.get(key))
    }  # fmt: skip


def _count(info: NoteInfo) -> int:
    """The reads its file tells of."""
    text = str(info.header.get("access_count") or 0).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _plain(identity: str) -> str:
    """An id as a part of a file's name: itself, or its hash if it has characters that do not belong there."""
    if _PLAIN_ID.fullmatch(identity):
        return identity
    return sha256(identity.encode("utf-8", "replace"))


def _merged(survivor: NoteInfo, other: NoteInfo, names: Sequence[str], pending: int) -> tuple[dict[str, Any], str]:
    """The keys the survivor takes over, and its category. `names` are those only the other had; so many `pending`
    reads of it are still in the log."""
    pair = (survivor.id, other.id)
    linked = [each for each in dict.fromkeys([*survivor.links, *other.links]) if each not in pair]
    tags: dict[str, str] = {}
    for tag in (*survivor.tags, *other.tags):
        tags.setdefault(tag.casefold(), tag)
    merged = [*id_list(survivor.header.get("merged")), other.id, *id_list(other.header.get("merged"))]
    unlinked = [*id_list(survivor.header.get("unlinked")), *id_list(other.header.get("unlinked"))]
    reminded = [*id_list(survivor.header.get("reminded")), *id_list(other.header.get("reminded"))]
    in_inbox = survivor.phase == "inbox" and other.phase != "inbox"
    keys: dict[str, Any] = {
        "tags": list(tags.values()) or REMOVE,
        "links": linked or REMOVE,
        "access_count": _count(survivor) + _count(other) + pending,
        "created_at": min(survivor.created, other.created, key=parse_stamp),
        "merged": list(dict.fromkeys(merged)),
        "reminded": list(dict.fromkeys(reminded)) or REMOVE,
        "aliases": [*survivor.aliases, *names] or REMOVE,
        "unlinked": [each for each in dict.fromkeys(unlinked) if each not in pair] or REMOVE,
    }  # fmt: skip
    keys["expires_at"] = None
    if survivor.expires and other.expires and "inbox" == survivor.phase == other.phase:
        keys["expires_at"] = max(survivor.expires, other.expires, key=parse_stamp)
    category = (other.category if in_inbox else survivor.category) or "inbox"
    if in_inbox:
        keys |= {"phase": "organized", "category": category}
    return keys, category
