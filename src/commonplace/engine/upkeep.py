"""What upkeep does to the memories of project `categories`: store whole records, set keys, move between
categories, merge, remove, fold the counts of reads (contract 001, 2, 5 and 12; DESIGN.md, 4).

Each verb is one change. The caller plans from what it read (`NoteInfo`); a memory that is not as it was then
is a Conflict, and nothing is done.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.clock import parse_stamp, stamp
from commonplace.engine import changing, storing
from commonplace.engine.linking import ids, linked_keys
from commonplace.engine.memory import verb
from commonplace.errors import Conflict, Exists, InvalidInput, NotFound, NotText
from commonplace.index import graph, lookup, places
from commonplace.index.keys import TITLE_CUT
from commonplace.index.rows import NoteInfo
from commonplace.note import edit as edits
from commonplace.note import entry, links
from commonplace.note.compose import Record
from commonplace.note.frontmatter import REMOVE
from commonplace.note.links import fold_title
from commonplace.note.markdown import names
from commonplace.note.model import CATEGORIES, MEMORY_KEYS
from commonplace.query import Query
from commonplace.store.base import File
from commonplace.store.history import FOLD
from commonplace.store.home import Step
from commonplace.store.layout import PRIVATE

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.store.access import Held

T = TypeVar("T")

PROJECT = "categories"
_PLAIN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
FOLDED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Put:
    """How many records were new, and how many took the place of one with their id."""

    created: int
    updated: int


class Upkeep:
    """The verbs of upkeep for the caller of `memory`."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self._core = memory._core

    # --- reading --------------------------------------------------------------------------------

    @verb
    def every(self, query: Query = Query()) -> list[NoteInfo]:
        """All memories the caller sees that pass the query's filters, oldest first, then by id.

        Reads that are still in the access log are counted.
        """
        infos, _ = self.memory.list(query.replace(projects=(PROJECT,)), limit=0, order="created")
        return sorted(infos, key=lambda info: (info.created, info.id))

    @verb
    def content(self, info: NoteInfo) -> str:
        """The content as indexed: the text without frontmatter and the writer's final newline."""
        body = lookup.text_of(self._core.db, info.row)[1]
        return body[:-1] if body.endswith("\n") else body

    @verb
    def targets(self, infos: Sequence[NoteInfo]) -> dict[int, tuple[str, ...]]:
        """By row, the targets of the wikilinks in the text of each memory, as written, each once."""
        found = graph.targets(self._core.db, sorted(info.row for info in infos))
        return {
            info.row: tuple(each for each in dict.fromkeys(found.get(info.row, ())) if each not in info.links)
            for info in infos
        }

    @verb
    def record(self, info: NoteInfo) -> Record:
        """The memory as it is on disk now, with all its keys. Raises NotFound, NotText."""
        file = self._core.store(PROJECT).read(info.path)
        return Record.of(storing.with_address(self.memory, storing.parsed(self.memory, PROJECT, info.path, file)))

    @verb
    def state(self) -> tuple[int, ...]:
        """A value that is another one after any change of a note, by whatever program, or a counted read."""
        core = self._core
        core.fresh()
        (version,) = core.db.execute("pragma data_version").fetchone()
        return version, core.db.total_changes, *core.access.stamp()

    # --- whole records --------------------------------------------------------------------------

    @verb
    def put(self, records: Sequence[Record], verb: str, *, both_ways: bool = False) -> Put:
        """Store records as one change; one whose id a memory has takes its place, the old text goes to the history.

        With `both_ways` the memories a record links to gain the link back. Raises InvalidInput, Locked.
        """
        core = self._core
        with core.writing():
            core.fresh()
            steps: list[Step] = []
            created = 0
            taken: set[str] = set()
            for record in records:
                before = self._known(record.id)
                created += before is None
                steps += self._written(record, before, taken)
            if both_ways:
                steps += self._linked_back(records)
            if steps:
                core.commit(verb, steps, (PROJECT, steps[0].to or steps[0].path), self.memory.agent, self.memory.face)
            return Put(created, len(records) - created)

    def _known(self, identity: str) -> NoteInfo | None:
        found = places.with_ids(self._core.db, [identity], (PROJECT,))
        return next((info for info in found if self.memory.sees(info.scope)), None)

    def _written(self, record: Record, before: NoteInfo | None, taken: set[str]) -> list[Step]:
        storing.check_scope(self.memory, record.scope)
        if record.category not in CATEGORIES:
            raise InvalidInput(f'invalid category "{record.category}"')
        data = storing._encoded(record.text())
        if before is None:
            name = links.memory_file_name(record.content, _plain(record.id))
            path = self._free_path(record.category, name, record.id, taken)
            taken.add(path.lower())
            return [self._core.step("put", PROJECT, path, data=data, scope=record.scope)]
        file, _ = changing.editable(self.memory, before)
        return self._replaced(before, file, data, record.category, record.scope)

    def _replaced(self, info: NoteInfo, file: File, data: bytes, category: str, scope: str) -> list[Step]:
        """The steps that put `data` in place of a memory's file, into another category's folder if need be."""
        if info.path.startswith(f"{category}/"):
            return [self._core.step("put", PROJECT, info.path, data=data, old=file, scope=scope)]
        path = self._free_path(category, info.path.rpartition("/")[2], info.id)
        return [
            self._core.step("put", PROJECT, path, data=data, mode=file.mode, scope=scope),
            self._core.step("remove", PROJECT, info.path, old=file, scope=info.scope),
        ]

    def _free_path(self, category: str, name: str, identity: str, taken: Collection[str] = ()) -> str:
        """Where a memory goes, with the whole id in its name should the usual one be taken, also by this change."""
        plain, root = _plain(identity), self._core.store(PROJECT).root
        names = itertools.chain((name, f"{plain}.md"), (f"{plain}-{n}.md" for n in itertools.count(2)))
        paths = (f"{category}/{each}" for each in names)
        return next(
            path for path in paths
            if path.lower() not in taken and not os.path.lexists(os.path.join(root, path))
        )  # fmt: skip

    def _linked_back(self, records: Sequence[Record]) -> list[Step]:
        gained: dict[str, list[str]] = {}
        own = {record.id for record in records}
        for record in records:
            for target in record.links:
                if target not in own:
                    gained.setdefault(target, []).append(record.id)
        steps = []
        for target, sources in gained.items():
            info = self._known(target)
            if info is None or not (new := [each for each in sources if each not in info.links]):
                continue
            file, text = changing.editable(self.memory, info)
            steps.append(changing.key_step(self.memory, info, file, text, {"links": [*info.links, *new]}))
        return steps

    # --- single memories ------------------------------------------------------------------------

    def retried(self, ref: str, run: Callable[[NoteInfo], T]) -> T:
        """`run` with the memory `ref` names; again with what it is by then, when another program changed or moved it
        meanwhile. Raises as `Memory.memory_id`, and what `run` raises, a fifth Conflict included."""
        for _ in range(4):
            info = self.memory.memory_id(ref)
            try:
                return run(info)
            except (Conflict, NotFound):
                continue
        return run(self.memory.memory_id(ref))

    @verb
    def change(self, info: NoteInfo, keys: Mapping[str, Any], verb: str, *, category: str | None = None,
               touch: bool = True) -> NoteInfo:  # fmt: skip
        """Set header keys (REMOVE takes one out), and move the memory to another category's folder.

        Every other byte stays. `updated_at` follows unless `touch` is False. Returns what the index knows then.
        Raises Conflict, Locked, NotFound, NotText; InvalidInput for a header that is not valid YAML.
        """
        core = self._core
        if category is not None and category not in CATEGORIES:
            raise InvalidInput(f'invalid category "{category}"')
        with core.writing():
            file, text = self._as_read(info)
            wanted = _pinned(info) | dict(keys) | ({"category": category} if category else {})
            if touch:
                wanted["updated_at"] = stamp(self.memory.clock())
            data = _with_keys(info, text, wanted)
            steps = self._replaced(info, file, data, category or info.category or "inbox", info.scope)
            core.commit(verb, steps, (PROJECT, steps[0].path), self.memory.agent, self.memory.face)
            return self._now(steps[:1])[0]

    @verb
    def rewrite(self, info: NoteInfo, content: str, keys: Mapping[str, Any], verb: str) -> None:
        """Give a memory new content and header keys; id, file name and creation time stay, `version` grows by 1.

        Raises as `change`.
        """
        core = self._core
        with core.writing():
            file, text = self._as_read(info)
            note = storing.parsed(self.memory, PROJECT, info.path, file)
            text = _with_keys(info, text, dict(keys)).decode()
            note = core.note_of(PROJECT, info.path, changing._as_file(text)) or note
            data = changing._kept_up(self.memory, info, text, f"{text[: note.body_at]}{content}\n").encode()
            step = core.step("put", PROJECT, info.path, data=data, old=file, scope=info.scope)
            core.commit(verb, [step], (PROJECT, info.path), self.memory.agent, self.memory.face)

    @verb
    def remove(self, info: NoteInfo, verb: str) -> list[NoteInfo]:
        """Remove a memory, its text to the history, its id from the links of others; returns those others.

        Raises Conflict, also when it was read since, Locked, NotFound.
        """
        core = self._core
        with core.writing():
            file, _ = self._as_read(info)
            steps = [core.step("remove", PROJECT, info.path, old=file, scope=info.scope)]
            steps += changing.unlink_steps(self.memory, info)
            with core.access.held() as log:  # whoever reads it now finds it gone, or his read has counted
                if log.counts[info.id] + _count(info) != info.access_count:
                    raise Conflict(info.permalink, file.etag[:8], info.checksum)
                core.commit(verb, steps, (PROJECT, info.path), self.memory.agent, self.memory.face)
            return self._now(steps[1:])

    @verb
    def link(self, a: NoteInfo, b: NoteInfo, verb: str = "link") -> list[NoteInfo]:
        """Link two memories both ways; returns both. Raises Conflict, Locked, NotFound."""
        core = self._core
        with core.writing():
            steps = []
            for info, other in ((a, b), (b, a)):
                file, text = self._as_read(info)
                if other.id not in info.links:
                    keys = _pinned(info) | linked_keys(info, other)
                    steps.append(changing.key_step(self.memory, info, file, text, keys))
            if steps:
                core.commit(verb, steps, (PROJECT, a.path), self.memory.agent, self.memory.face)
            return self._now(steps)

    @verb
    def derive(self, source: NoteInfo, record: Record, keys: Mapping[str, Any], verb: str) -> list[NoteInfo]:
        """Store a record made from a memory, both linked; the memory gets these header keys too. One change.

        Returns both, the new one first. Raises Conflict, Exists when the id is taken, Locked, NotFound.
        """
        core = self._core
        with core.writing():
            file, text = self._as_read(source)
            if self._known(record.id) is not None:
                raise Exists(record.id)
            steps = self._written(replace(record, links=(*record.links, source.id)), None, set())
            keys = _pinned(source) | {"links": [*source.links, record.id]} | dict(keys)
            steps.append(changing.key_step(self.memory, source, file, text, keys))
            core.commit(verb, steps, (PROJECT, steps[0].path), self.memory.agent, self.memory.face)
            return self._now(steps)

    @verb
    def merge(self, survivor: NoteInfo, other: NoteInfo) -> list[NoteInfo]:
        """Merge `other` into `survivor` (contract 001, 5): one change, the other's text goes to the history.

        The survivor keeps id and content; what the other could be found by, counted or linked with goes to it.
        Returns what was written: the survivor, and those that linked to the other. Raises Conflict, Locked, NotFound.
        """
        core = self._core
        with core.writing():
            kept_file, text = self._as_read(survivor)
            gone_file, _ = self._as_read(other)
            new_names = self._new_names((survivor, kept_file), (other, gone_file))
            keys, category = _merged(survivor, other, new_names, core.access.counts()[other.id])
            keys = _pinned(survivor) | keys | {"updated_at": stamp(self.memory.clock())}
            steps = self._replaced(survivor, kept_file, _with_keys(survivor, text, keys), category, survivor.scope)
            steps.append(core.step("remove", PROJECT, other.path, old=gone_file, scope=other.scope))
            for holder in places.holding_link(core.db, other.id):
                if holder.row not in (survivor.row, other.row) and holder.project == PROJECT and not holder.locked:
                    file, text = changing.editable(self.memory, holder)
                    ids = [survivor.id if each == other.id else each for each in holder.links]
                    keys = {"links": list(dict.fromkeys(ids))}
                    steps.append(changing.key_step(self.memory, holder, file, text, keys))
            core.commit("merge", steps, (PROJECT, steps[0].path), self.memory.agent, self.memory.face)
            return self._now(steps)

    def _new_names(self, survivor: tuple[NoteInfo, File], other: tuple[NoteInfo, File]) -> list[str]:
        """What wikilinks could call the other memory by and not the survivor: they shall find the survivor."""
        kept, gone = (names(storing.parsed(self.memory, PROJECT, info.path, file)) for info, file in (survivor, other))
        known = {fold_title(name[:TITLE_CUT]) for name in kept}
        new = {fold_title(name): name for name in (each.lstrip("#").strip()[:TITLE_CUT] for each in reversed(gone))}
        return [name for folded, name in reversed(new.items()) if folded and folded not in known]

    def _now(self, steps: Sequence[Step]) -> list[NoteInfo]:
        """What the index knows now of the memories these steps wrote. No look at other files: it would cost more
        than the change."""
        written = [step.path for step in steps if step.do == "put"]
        found = [lookup.get(self._core.db, PROJECT, path) or self.memory.find_ref((PROJECT, path)) for path in written]
        self._core.counted(found)
        return found

    def _as_read(self, info: NoteInfo) -> tuple[File, str]:
        """The memory's bytes and text, as long as they are what `info` says. Raises Conflict, Locked, NotFound."""
        file, text = changing.editable(self.memory, info)
        if file.etag != info.etag:
            raise Conflict(info.permalink, file.etag[:8], info.checksum)
        return file, text

    # --- counts of reads ------------------------------------------------------------------------

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
        core = self._core
        with core.writing():
            core.fresh()
            with core.access.held() as log:
                steps, rest = [], dict(log.counts)
                for info in places.with_ids(core.db, log.counts, (PROJECT, entry.PROJECT)):
                    step = None if info.locked or len(steps) == FOLDED_AT_ONCE else self._counted(info, log)
                    if step is not None:
                        steps.append(step)
                        del rest[info.id]
                if steps or not log.is_short:
                    steps.append(Step("put", PRIVATE, str(core.layout.private), log.name, data=log.lines(rest),
                                      old=log.file, kept=False))  # fmt: skip
                    core.commit(FOLD, steps, ("", ""), None, self.memory.face)
                return max(len(steps) - 1, 0)

    def _counted(self, info: NoteInfo, log: Held) -> Step | None:
        try:
            file, text = changing.editable(self.memory, info)
            before = storing.parsed(self.memory, info.project, info.path, file).access_count
            keys: dict[str, Any] = {"access_count": before + log.counts[info.id]}
            if info.project == entry.PROJECT:
                keys["accessed_at"] = stamp(log.changed)
            data = edits.SetKeys(keys, MEMORY_KEYS if info.project == PROJECT else ()).apply(text).text.encode()
        except (NotFound, NotText, ValueError):
            return None  # gone, or no header to write into: its reads stay in the log
        return self._core.step("put", info.project, info.path, data=data, old=file, scope=info.scope, kept=False)


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
    """An id as a part of a file's name: itself, unless other programs gave it signs that do not belong there."""
    if _PLAIN_ID.fullmatch(identity):
        return identity
    return hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()


def _with_keys(info: NoteInfo, text: str, keys: Mapping[str, Any]) -> bytes:
    try:
        return edits.SetKeys(keys, MEMORY_KEYS).apply(text).text.encode()
    except ValueError:
        raise InvalidInput(
            f"The frontmatter of {info.permalink} is not valid YAML, so nothing was changed. Mend it first."
        ) from None


def _merged(survivor: NoteInfo, other: NoteInfo, names: Sequence[str], pending: int) -> tuple[dict[str, Any], str]:
    """The keys the survivor takes over, and its category. `names` are those only the other had; so many `pending`
    reads of it are still in the log."""
    pair = (survivor.id, other.id)
    linked = [each for each in dict.fromkeys([*survivor.links, *other.links]) if each not in pair]
    tags: dict[str, str] = {}
    for tag in (*survivor.tags, *other.tags):
        tags.setdefault(tag.casefold(), tag)
    merged = [*ids(survivor.header.get("merged")), other.id, *ids(other.header.get("merged"))]
    unlinked = [*ids(survivor.header.get("unlinked")), *ids(other.header.get("unlinked"))]
    reminded = [*ids(survivor.header.get("reminded")), *ids(other.header.get("reminded"))]
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
    both_expire = survivor.expires and other.expires and "inbox" == survivor.phase == other.phase
    keys["expires_at"] = max(survivor.expires, other.expires, key=parse_stamp) if both_expire else None
    category = (other.category if in_inbox else survivor.category) or "inbox"
    if in_inbox:
        keys |= {"phase": "organized", "category": category}
    return keys, category
