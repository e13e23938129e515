"""The verbs of upkeep for the memories of project `categories`, and the verbs of ingestion.

Upkeep stores records, sets header keys, moves memories between categories, and merges and removes
memories. It also folds the counts of reads, which means that it adds them to the headers (contract
001, 2, 5 and 12; docs/format.md). Ingestion makes memories from files. To skip a file it has seen
before, it must know the texts that were ingested earlier.

Each verb of `Upkeep` is one change. The caller plans the change from the memories as it has read
them (`NoteInfo`). If one of these memories has changed since, the verb raises Conflict and does
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from memoranda.clock import parse_stamp, stamp
from memoranda.engine import writing
from memoranda.engine.contents import content_of
from memoranda.engine.engine import verb
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.engine.links.link_style import in_link_style
from memoranda.engine.review import ReviewVerbs
from memoranda.engine.transaction import Transaction
from memoranda.errors import Conflict, Exists, InvalidInput, NotFound, NotText, StorageError
from memoranda.index.resolve import TITLE_CUT
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import FOLD
from memoranda.ledger.reads import ReadRow
from memoranda.note import entry, frontmatter, links, model
from memoranda.note.edit import Append, SetKeys
from memoranda.note.frontmatter import REMOVE
from memoranda.note.links import fold_title
from memoranda.note.markdown import Record, names
from memoranda.note.model import CATEGORIES, CATEGORY_PROJECT, INBOX, MEMORY_PROJECTS, flag
from memoranda.query import Query
from memoranda.sources.base import File, sha256
from memoranda.sources.layout import PRIVATE
from memoranda.sources.step import StepKind

T = TypeVar("T")

# How many notes get their counts of reads in one change.
FOLDED_AT_ONCE = 100
# How often the work on named memories is tried, as other programs may change these meanwhile.
_TRIES = 5
INGEST = "ingest"
# The folder of the archive for notes of other projects.
_ARCHIVED_NOTES = "knowledge"
# Header keys of an ingested memory.
SOURCE_REF = "source_ref"
"""The name of the file that the memory was made from."""
SOURCE_ROOT = "source_root"
"""The folder of this file."""
SOURCE_HASH = "source_hash"
"""The SHA-256 of the text that this file had."""
# The digits of a read count in a header. A longer number does not fit in an integer of SQLite.
_MOST_COUNT_DIGITS = 18


class Upkeep:
    """The verbs that the upkeep jobs use, on behalf of the caller of `memory`.

    A `Record` is a memory to be written. A `NoteInfo` is a memory as the index knows it.
    """

    def __init__(self, memory: HistoryVerbs):
        self.memory = memory
        self.engine = memory.engine
        self._index = memory.index

    def runs_jobs(self) -> bool:
        """Whether this process does the upkeep of the memory.

        If several machines share the memory, only one machine does the upkeep.
        """
        return self.engine.ledger.runs_jobs()

    @verb
    def every(self, query: Query = Query()) -> list[NoteInfo]:
        """Return all memories that the caller sees and that pass the filters of a query.

        The oldest memory comes first. Memories of the same age are in the order of their ids. The
        access counts include the reads that are not yet written in the files.
        """
        infos, _ = self.memory.list(
            query.replace(projects=(CATEGORY_PROJECT,), order="created"), limit=0
        )
        return sorted(infos, key=lambda info: (info.created, info.id))

    @verb
    def targets(self, infos: Sequence[NoteInfo]) -> dict[int, tuple[str, ...]]:
        """Return the wikilinks in the text of each memory: row of the memory -> targets.

        A target is as the text has it, such as `Plan` for `[[Plan]]`. It is listed once for each
        memory. Targets that the header of the memory links to already are left out.
        """
        targets_by_row = self._index.links.targets(sorted(info.row for info in infos))
        new_targets: dict[int, tuple[str, ...]] = {}
        for info in infos:
            targets = dict.fromkeys(targets_by_row.get(info.row, ()))
            new_targets[info.row] = tuple(text for text in targets if text not in info.links)
        return new_targets

    @verb
    def state(self) -> tuple[int, ...]:
        """Return a value that differs after every change of a note and after every counted read.

        Changes that other programs make to notes count, too.
        """
        self.engine.fresh()
        version_of_notes = self._index.version()
        stamp_of_reads = self.engine.reads.stamp()
        return (*version_of_notes, *stamp_of_reads)

    @verb
    def put(self, records: Sequence[Record], verb: str) -> None:
        """Store records as one change. Raises InvalidInput, Locked.

        If a memory has the id of a record, the record replaces the memory, and the old text goes to
        the history.

        verb: the verb in the ledger, such as `import`.
        """
        taken_paths: set[str] = set()
        with self.memory.change(verb) as transaction:
            for record in records:
                self._put_record(transaction, record, self._info_of_id(record.id), taken_paths)

    @verb
    def is_there(self, identity: str) -> bool:
        """Whether a memory has this id, or was merged with the memory that had this id.

        Archived memories count, too.
        """
        self.engine.fresh()
        if self._info_of_id(identity) is not None:
            return True
        survivors = self._index.notes.survivors([identity])
        return bool(survivors)

    def _info_of_id(self, identity: str) -> NoteInfo | None:
        """Return the memory with this id, archived or not. None means that the caller sees no such
        memory.
        """
        for info in self._index.notes.with_ids([identity], MEMORY_PROJECTS):
            if self.memory.sees(info.scope):
                return info
        return None

    def _put_record(
        self,
        transaction: Transaction,
        record: Record,
        before: NoteInfo | None,
        taken_paths: set[str],
    ) -> None:
        """Add the steps to a change that write a record.

        before: the memory that the record replaces; None for a new memory.
        taken_paths: the paths that this change uses already, in lower case. The path of a new
            memory is added.
        """
        record = replace(
            record,
            scope=self.memory.check_scope(record.scope),
            category=_check_category(record.category),
        )
        data = writing.encoded(record.text())
        is_archived = record.phase == model.ARCHIVED
        project = model.ARCHIVE_PROJECT if is_archived else CATEGORY_PROJECT
        if before is None:
            self._put_new_record(transaction, record, data, project, taken_paths)
            return
        file, _ = writing.editable(self.memory, before)
        # This raises an error if the caller may not write such a text.
        writing.new_scope(self.memory, data, file.data)
        writing.place_memory(
            self.memory,
            transaction,
            info=before,
            file=file,
            data=data,
            project=project,
            category=record.category,
            scope=record.scope,
        )

    def _put_new_record(
        self,
        transaction: Transaction,
        record: Record,
        data: bytes,
        project: str,
        taken_paths: set[str],
    ) -> None:
        """Add the step to a change that writes a new memory.

        data: the text of the memory, with its header.
        project: the project of the categories, or the archive.
        taken_paths: the paths that this change uses already, in lower case. The new path is added.
        """
        # This raises an error if the caller may not write such a text.
        writing.new_scope(self.memory, data, identity=record.id)
        name = links.memory_file_name(record.content, writing.plain_id(record.id))
        path = writing.free_path(
            self.memory,
            project,
            category=record.category,
            name=name,
            identity=record.id,
            taken_paths=taken_paths,
        )
        taken_paths.add(path.lower())
        # The origin of an ingested text is its file, and not only the caller.
        source_ref = record.further.get(SOURCE_REF)
        by = None
        if transaction.verb == INGEST and source_ref:
            by = {"origin": str(source_ref)}
        transaction.put(project, path, data, scope=record.scope, by=by)

    def retried(self, refs: Iterable[str], run: Callable[[list[NoteInfo]], T]) -> T:
        """Call `run` with the memories that `refs` name, each memory once, and return the result.

        If another program changes or moves a memory in between, `run` raises Conflict or NotFound.
        Then the memories are looked up again and `run` is called again, up to five times in all.
        The fifth Conflict or NotFound is raised. So are all other errors of `run`, and those that
        `MemorySession.find_memory` raises.
        """
        refs = list(refs)
        remaining_tries = _TRIES
        while True:
            named_infos = [self.memory.find_memory(ref) for ref in refs]
            infos_by_id = {info.id: info for info in named_infos}
            remaining_tries -= 1
            try:
                return run([*infos_by_id.values()])
            except (Conflict, NotFound):
                if not remaining_tries:
                    raise

    def change(
        self,
        info: NoteInfo,
        keys: Mapping[str, Any],
        verb: str,
        *,
        category: str | None = None,
        touch: bool = True,
    ) -> NoteInfo:
        """Set header keys of a memory, and move it to the folder of another category.

        keys: the new values by key. REMOVE as a value removes the key.
        verb: the verb in the ledger.
        category: the category to move the memory to; None leaves it in its folder.
        touch: whether to set `updated_at` to now.

        Every other byte of the file stays. Returns the memory as the index knows it afterwards.
        Raises Conflict, Locked, NotFound, NotText, and InvalidInput for a header that is not valid
        YAML.
        """
        return self.change_all([(info, category)], keys, verb, touch=touch)[0]

    @verb
    def change_all(
        self,
        memories: Sequence[tuple[NoteInfo, str | None]],
        keys: Mapping[str, Any],
        verb: str,
        *,
        touch: bool = True,
    ) -> list[NoteInfo]:
        """Set header keys of several memories, and move them, as one change: all of them, or none.

        memories: each memory with its new category. None leaves a memory in its category.
        keys: the new values of header keys. REMOVE as a value removes the key.
        verb: the verb in the ledger.
        touch: whether to set `updated_at` to now.
        """
        taken_paths: set[str] = set()
        with self.memory.change(verb, fresh=False) as transaction:
            for info, category in memories:
                new_keys = dict(keys)
                if category:
                    new_keys["category"] = _check_category(category)
                folder = category or info.category or INBOX
                self._set_keys(
                    transaction,
                    info=info,
                    keys=new_keys,
                    project=info.project,
                    category=folder,
                    taken_paths=taken_paths,
                    touch=touch,
                )
        return self._written_memories(transaction)

    def _set_keys(
        self,
        transaction: Transaction,
        info: NoteInfo,
        keys: Mapping[str, Any],
        project: str = "",
        category: str = "",
        taken_paths: set[str] | None = None,
        *,
        touch: bool = False,
    ) -> None:
        """Add the step to a change that sets header keys of a memory.

        keys: the new values by key. REMOVE as a value removes the key.
        project: the project to move the memory to. It only counts with a category.
        category: the category to move the memory to; "" leaves the memory in its place.
        taken_paths: the paths that this change uses already, in lower case.
        touch: whether to set `updated_at` to now, too.

        Raises Conflict if the memory has changed since the caller read it.
        """
        file, text = self._as_read(info)
        new_keys = dict(keys)
        if info.project in MEMORY_PROJECTS or project in MEMORY_PROJECTS:
            new_keys = writing.pinned_down(info) | new_keys
        if touch:
            new_keys["updated_at"] = stamp(self.memory.clock())
        data = writing.with_keys(info, text, new_keys, self.memory.clock())
        if category:
            writing.place_memory(
                self.memory,
                transaction,
                info=info,
                file=file,
                data=data,
                project=project,
                category=category,
                scope=info.scope,
                taken_paths=taken_paths,
            )
        else:
            transaction.put(info.project, info.path, data, old=file, scope=info.scope)

    @verb
    def rewrite(self, info: NoteInfo, content: str, keys: Mapping[str, Any], verb: str) -> None:
        """Give a memory new content and set header keys.

        The id, the file name and the creation time stay. The header key `version` grows by 1.

        content: the new text below the header.
        keys: the new values of header keys. REMOVE as a value removes the key.
        verb: the verb in the ledger.

        Raises the errors of `change`.
        """
        with self.memory.change(verb, fresh=False) as transaction:
            file, text = self._as_read(info)
            data_with_keys = writing.with_keys(info, text, keys)
            note = self.memory.parse(info.project, info.path, writing.as_file(data_with_keys))
            text_with_keys = data_with_keys.decode()
            header_text = text_with_keys[: note.body_at]
            new_text = writing.follow_content(
                self.memory, info, text_with_keys, f"{header_text}{content}\n"
            )
            transaction.put(info.project, info.path, new_text.encode(), old=file, scope=info.scope)

    @verb
    def archive(
        self, info: NoteInfo, verb: str, by: str, category: str | None = None
    ) -> list[NoteInfo]:
        """Move a memory to the archive. Links to the memory still lead to it.

        verb: the verb in the ledger.
        by: who archives the memory, for its header.
        category: the folder in the archive; None means the memory's category.

        Returns the memory as the index knows it afterwards. Raises Conflict if the memory was
        changed or read since the caller found it. Raises Locked, NotFound, too.
        """
        with self.engine.writing():
            # The caller may archive the memory because it was seldom read. If it has been read
            # since the caller looked, this reason may not hold any longer.
            pending_reads = self.engine.reads.counts([info.id])[info.id]
            if _count(info) + pending_reads != info.access_count:
                raise Conflict(info.permalink, info.checksum, info.checksum)
            with self.memory.change(
                verb, (CATEGORY_PROJECT, info.path), fresh=False
            ) as transaction:
                self._archive(transaction, info, by, category)
            return self._written_memories(transaction)

    @verb
    def archive_all(
        self, infos: Sequence[NoteInfo], categories: Mapping[str, str | None]
    ) -> list[NoteInfo]:
        """Archive notes that the owner chose, as one change.

        infos: the notes. Notes that are in the archive already stay as they are.
        categories: the folder in the archive for each memory, by id. None means the memory's
            category. A note of another project goes to one folder for such notes, and its header
            gets its former place.

        Returns the notes as the index knows them afterwards. Raises Conflict, Locked, NotFound, and
        InvalidInput for an entity of a graph file.
        """
        live = [info for info in infos if info.project != model.ARCHIVE_PROJECT]
        # The log lists the change under the first note.
        first_place = (live[0].project, live[0].path) if live else None
        with self.memory.change("archive", first_place, fresh=False) as transaction:
            for info in live:
                self._archive(transaction, info, "user", categories.get(info.id))
        return self._after(transaction, infos)

    def _archive(
        self, transaction: Transaction, info: NoteInfo, by: str, category: str | None
    ) -> None:
        """Add the step that moves a note to the archive. Its header gets the time, and who archived
        it.

        by: who archives the note, such as `user`.
        category: the folder in the archive; None means the note's category.

        A note that is not a memory also gets header keys with its title and its former place.
        Raises InvalidInput for an entity of a graph file.
        """
        category = category or info.category or INBOX
        keys = {}
        if info.project != CATEGORY_PROJECT:
            if self.engine.source(info.project).holds_entities:
                raise InvalidInput(f"{info.title} is in a graph file, which has no archive.")
            category = _ARCHIVED_NOTES
            keys = {"title": info.title, "archived_from": f"{info.project}/{info.path}"}
        keys |= {
            "phase": model.ARCHIVED,
            "category": category,
            "archived_at": stamp(self.memory.clock()),
            "archived_by": by,
        }
        self._set_keys(transaction, info, keys, project=model.ARCHIVE_PROJECT, category=category)

    @verb
    def pin(self, infos: Sequence[NoteInfo], *, pinned: bool = True) -> list[NoteInfo]:
        """Pin or unpin notes as one change, and return the notes.

        Pinned notes are part of the profile. If the owner pins a note that an agent wrote, the
        owner thereby confirms the note.

        pinned: True pins the notes, False unpins them.

        Raises Conflict, Locked, NotFound, NotText, and InvalidInput for an entity of a graph file.
        """
        with self.memory.change("pin" if pinned else "unpin", fresh=False) as transaction:
            for info in infos:
                keys = self._pin_keys(info, pinned)
                if keys:
                    self._set_keys(transaction, info, keys)
            # By pinning a note, the owner says that it is true.
            if pinned and isinstance(self.memory, ReviewVerbs):
                self.memory.confirm(transaction, infos)
        return self._after(transaction, infos)

    def _pin_keys(self, info: NoteInfo, pinned: bool) -> dict[str, Any]:
        """Return the header keys to change when a note is pinned or unpinned.

        The result is empty if the note is pinned or unpinned already. Raises InvalidInput for an
        entity of a graph file.
        """
        if self.engine.source(info.project).holds_entities:
            raise InvalidInput(f"{info.title} is in a graph file, where no pin is kept.")
        is_pinned = flag(info.header.get("pinned")) is True
        if is_pinned == pinned:
            return {}
        return {"pinned": True if pinned else REMOVE}

    def _after(self, transaction: Transaction, infos: Sequence[NoteInfo]) -> list[NoteInfo]:
        """Return the notes as the index knows them after a change.

        Notes that the change did not write are returned as they are.
        """
        written_notes = {note.id: note for note in self._written_memories(transaction)}
        return [written_notes.get(info.id, info) for info in infos]

    @verb
    def uses(self) -> dict[str, datetime]:
        """Return when memories were last used, by id.

        Only uses that the headers of the memories do not have yet are included.
        """
        seconds_by_id = self.engine.reads.used()
        return {
            identity: datetime.fromtimestamp(second, UTC)
            for identity, second in seconds_by_id.items()
        }

    @verb
    def link(self, a: NoteInfo, b: NoteInfo) -> list[NoteInfo]:
        """Link two memories with each other, and return the memories that were written.

        A memory that has the link already is not written.

        a, b: the memories.

        Raises Conflict, Locked, NotFound.
        """
        with self.memory.change("link", (CATEGORY_PROJECT, a.path), fresh=False) as transaction:
            for info, partner in ((a, b), (b, a)):
                # Raises Conflict if the memory has changed, even if it is not written.
                self._as_read(info)
                if partner.id not in info.links:
                    self._set_keys(
                        transaction, info, writing.linked_keys(info, partner), touch=True
                    )
        return self._written_memories(transaction)

    @verb
    def derive(
        self, source: NoteInfo, record: Record, keys: Mapping[str, Any], verb: str
    ) -> list[NoteInfo]:
        """Store a record that was made from a memory, and link the two, as one change.

        source: the memory that the record was made from.
        record: the new memory. It is not trusted more than `source`.
        keys: header keys to set in `source`.
        verb: the verb in the ledger.

        Returns both memories, the new one first. Raises Conflict, Locked, NotFound, and Exists if
        the id of the record is taken.
        """
        with self.memory.change(verb, fresh=False) as transaction:
            if self._info_of_id(record.id) is not None:
                raise Exists(record.id)
            transaction.made_from.append(source.provenance)
            linked_record = replace(record, links=(*record.links, source.id))
            self._put_record(transaction, linked_record, before=None, taken_paths=set())
            keys_of_source = {"links": [*source.links, record.id], **keys}
            self._set_keys(transaction, source, keys_of_source, touch=True)
        return self._written_memories(transaction)

    @verb
    def merge(self, survivor: NoteInfo, other: NoteInfo, added: str = "") -> list[NoteInfo]:
        """Merge the memory `other` into `survivor`, as one change (contract 001, 5).

        The survivor keeps its id and content. It takes over the names, tags, links and counts of
        `other`. `other` is deleted, and its text goes to the history. Links to `other` lead to the
        survivor afterwards.

        added: a text to append to the survivor; "" appends nothing.

        Returns the memories that were written: the survivor, and the memories that linked to
        `other`. Raises Conflict, Locked, NotFound.
        """
        with self.memory.change("merge", fresh=False) as transaction:
            other_file, _ = self._as_read(other)
            survivor_file, text = self._as_read(survivor)
            new_names = _names_to_take_over(
                names(self.memory.parse(CATEGORY_PROJECT, survivor.path, survivor_file)),
                names(self.memory.parse(CATEGORY_PROJECT, other.path, other_file)),
            )

            # The new text of the survivor: first its content, then its header.
            if added:
                longer = Append(added).apply(text).text
                text = writing.follow_content(self.memory, survivor, text, longer)
            pending_reads = self.engine.reads.counts([other.id])[other.id]
            category = _merged_category(survivor, other)
            merged_keys = _merged_header(survivor, other, new_names, category, pending_reads)
            now = self.memory.clock()
            keys = writing.pinned_down(survivor) | merged_keys | {"updated_at": stamp(now)}
            data = writing.with_keys(survivor, text, keys, now)
            writing.place_memory(
                self.memory,
                transaction,
                info=survivor,
                file=survivor_file,
                data=data,
                project=survivor.project,
                category=category,
                scope=survivor.scope,
            )

            transaction.remove(CATEGORY_PROJECT, other.path, other_file, scope=other.scope)
            for holder in self._index.notes.holding_link(other.id):
                if holder.row not in (survivor.row, other.row):
                    self._redirect_link(transaction, holder, other.id, survivor.id)
        return self._written_memories(transaction)

    @verb
    def join(self, survivor: NoteInfo, other: NoteInfo, added: str) -> None:
        """Append the text `added` to `survivor`, and delete `other`, as one change.

        added: the words of `other` that the survivor lacks; "" appends nothing.

        If notes link to `other` by its name, the name becomes an alias of the survivor, so that the
        links then lead to the survivor. Raises Conflict, Locked, NotFound.
        """
        with self.memory.change(
            "merge", (survivor.project, survivor.path), fresh=False
        ) as transaction:
            other_file, _ = self._as_read(other)
            file, text = self._as_read(survivor)
            longer = Append(added).apply(text).text if added else text
            longer = in_link_style(self.memory, survivor.project, survivor.path, longer, text)
            longer = writing.follow_content(self.memory, survivor, text, longer)
            keys = self._names_that_lead_on(survivor, other)
            # The survivor must not link to a note that is gone.
            if other.id in survivor.links:
                keys |= writing.links_without(survivor, other.id)
            if keys:
                longer = writing.with_keys(survivor, longer, keys).decode()
            transaction.put(
                survivor.project, survivor.path, longer.encode(), old=file, scope=survivor.scope
            )
            writing.remove_note(self.memory, transaction, (other, other_file), survivor=survivor)

    def _names_that_lead_on(self, survivor: NoteInfo, other: NoteInfo) -> dict[str, Any]:
        """Return the header keys that make links to the name of `other` lead to the survivor.

        The result is empty if no note links to `other`, if the survivor has these names already,
        and for memories.
        """
        if survivor.project in MEMORY_PROJECTS or not self.memory.incoming(other, limit=1):
            return {}
        names_of_other = [other.title, *other.aliases]
        new_names = _names_to_take_over([survivor.title, *survivor.aliases], names_of_other)
        if not new_names:
            return {}
        return {"aliases": [*survivor.aliases, *new_names]}

    def _redirect_link(
        self, transaction: Transaction, holder: NoteInfo, old: str, new: str
    ) -> None:
        """Add the step that replaces the id `old` in the links of a memory by the id `new`.

        holder: the memory. Nothing is done if it is locked or its header is broken.
        """
        if holder.project not in MEMORY_PROJECTS or holder.locked or holder.is_broken:
            return
        ids = [new if link == old else link for link in holder.links]
        writing.set_keys(self.memory, transaction, holder, {"links": list(dict.fromkeys(ids))})

    def _written_memories(self, transaction: Transaction) -> list[NoteInfo]:
        """Return the memories that a change wrote, as the index knows them.

        Other files are not checked for changes, because that would cost more than the change
        itself.
        """
        written_notes: list[NoteInfo] = []
        for step in transaction.steps:
            if step.do != StepKind.PUT or step.project == PRIVATE:
                continue
            info = self._index.notes.get(step.project, step.path)
            # The index may have failed to take up the change. `find` compares it with the disk.
            if info is None:
                info = self.memory.find((step.project, step.path))
            written_notes.append(info)
        self.engine.count_pending_reads(written_notes)
        return written_notes

    def _as_read(self, info: NoteInfo) -> tuple[File, str]:
        """Return the file and the text of a memory, if they are still as the caller has read them.

        info: the memory as the caller has read it.

        Raises Conflict if the file has changed since. Raises Locked and NotFound, too.
        """
        file, text = writing.editable(self.memory, info)
        if file.etag != info.etag:
            raise Conflict(info.permalink, file.etag[:8], info.checksum)
        return file, text

    def fold(self) -> int:
        """Move the counts of reads from the log into the headers of memories and entries.

        This is not recorded as a change: `log` does not show it, and `undo` works as if it had not
        happened. Returns how many notes got their counts.
        """
        total = 0
        while True:
            notes = self._fold()
            if notes == 0:
                return total
            total += notes

    @verb
    def _fold(self) -> int:
        """Move the counts of the next FOLDED_AT_ONCE notes, and return the number of these notes.

        They are only a few, so that no other process waits long for the lock. The result 0 means
        that no counts are left.
        """
        with self.engine.writing():
            self.engine.fresh()
            rows = self.engine.reads.rows_to_fold()
            infos = self._index.notes.with_ids(rows, (*MEMORY_PROJECTS, entry.PROJECT))
            owner = self.memory.as_caller(agent=None)
            # The change is listed under no note.
            no_place = ("", "")
            with owner.change(FOLD, no_place, fresh=False) as transaction:
                for info in infos:
                    if len(transaction.steps) >= FOLDED_AT_ONCE:
                        break
                    if not info.locked and not info.is_broken:
                        self._fold_into(transaction, info, rows[info.id])
            return len(transaction.folded)

    def _fold_into(self, transaction: Transaction, info: NoteInfo, row: ReadRow) -> None:
        """Add the step that writes the counted reads of a note into its header.

        row: the reads of the note in the log. If the header cannot be written, no step is added and
            the reads stay in the log.
        """
        ordered = model.MEMORY_KEYS if info.project in MEMORY_PROJECTS else ()
        try:
            file, text = writing.editable(self.memory, info)
            before = self.memory.parse(info.project, info.path, file).access_count
            keys = _folded_keys(info, row, before)
            data = SetKeys(keys, ordered).apply(text).text.encode()
        except (NotFound, NotText, ValueError):
            return
        transaction.put(info.project, info.path, data, old=file, scope=info.scope, kept=False)
        transaction.folded[info.id] = row


def _folded_keys(info: NoteInfo, row: ReadRow, before: int) -> dict[str, Any]:
    """Return the header keys that bring the read count of a note up to date.

    row: the reads in the log, which the header does not count yet.
    before: the number of reads that the header has already.
    """
    keys: dict[str, Any] = {}
    if row.times:
        keys["access_count"] = before + row.times
    if info.project == entry.PROJECT:
        keys["accessed_at"] = stamp(datetime.fromtimestamp(row.read_at or row.used_at, UTC))
    elif row.used_at:
        keys["last_used_at"] = stamp(datetime.fromtimestamp(row.used_at, UTC))
    return keys


def _check_category(category: str) -> str:
    """Return the category. Raises InvalidInput if no such category exists."""
    if category not in CATEGORIES:
        raise InvalidInput(f'invalid category "{category}"')
    return category


def _count(info: NoteInfo) -> int:
    """Return the number of reads in the header of a note; 0 if the header has no valid number."""
    text = str(info.header.get("access_count") or 0).strip()
    if text.isascii() and text.isdigit() and len(text) <= _MOST_COUNT_DIGITS:
        return int(text)
    return 0


def _names_to_take_over(names: Sequence[str], other_names: Sequence[str]) -> list[str]:
    """Return the names that the survivor of a merge takes over, so that wikilinks still work.

    names: the names of the survivor.
    other_names: the names of the other memory. A name may begin with the `#` of a heading.

    A name is left out if the survivor has it, in whatever case. For `Plan` and `plan, # Budget`,
    the result is `Budget`.
    """
    own_folds = {fold_title(name[:TITLE_CUT]) for name in names}
    names_by_fold: dict[str, str] = {}
    for line in other_names:
        name = line.lstrip("#").strip()[:TITLE_CUT]
        folded = fold_title(name)
        if not folded or folded in own_folds:
            continue
        # Of several names that differ only in case, the first is taken over, at the place of the
        # last.
        names_by_fold[folded] = names_by_fold.pop(folded, name)
    return list(names_by_fold.values())


def _without_duplicates(tags: Iterable[str]) -> list[str]:
    """Return each tag once. A tag that differs from an earlier tag only in case is left out."""
    tags_by_key: dict[str, str] = {}
    for tag in tags:
        tags_by_key.setdefault(tag.casefold(), tag)
    return list(tags_by_key.values())


def _merged_category(survivor: NoteInfo, merged_note: NoteInfo) -> str:
    """Return the category of a memory into which another is merged.

    A memory that was sorted already stays sorted.
    """
    if _is_sorted_by_merge(survivor, merged_note):
        return merged_note.category or INBOX
    return survivor.category or INBOX


def _is_sorted_by_merge(survivor: NoteInfo, merged_note: NoteInfo) -> bool:
    """Whether only the memory that is merged into the survivor was sorted."""
    return survivor.phase == model.INBOX and merged_note.phase != model.INBOX


def _merged_header(
    survivor: NoteInfo,
    merged_note: NoteInfo,
    names: Sequence[str],
    category: str,
    pending_reads: int,
) -> dict[str, Any]:
    """Return the header keys that the survivor of a merge gets.

    merged_note: the memory that is merged into the survivor.
    names: the names that only the merged note has.
    category: the category of the survivor after the merge.
    pending_reads: how many reads of the merged note are in the log and not yet in its file.
    """
    tags = _without_duplicates([*survivor.tags, *merged_note.tags])
    # The ids of all memories that were ever merged into one of the two.
    merged_ids = [
        *writing.id_list(survivor.header.get("merged")),
        merged_note.id,
        *writing.id_list(merged_note.header.get("merged")),
    ]
    # The survivor must not link to itself, nor to the memory that will be gone.
    pair = (survivor.id, merged_note.id)
    links_of_both = dict.fromkeys([*survivor.links, *merged_note.links])
    keys: dict[str, Any] = {
        "tags": tags or REMOVE,
        "links": [id for id in links_of_both if id not in pair] or REMOVE,
        "access_count": _count(survivor) + _count(merged_note) + pending_reads,
        "created_at": min(survivor.created, merged_note.created, key=parse_stamp),
        "merged": list(dict.fromkeys(merged_ids)),
        "aliases": [*survivor.aliases, *names] or REMOVE,
        "expires_at": None,
    }
    for key in ("unlinked", "reminded", "supersedes"):
        ids = dict.fromkeys(_ids_of_both(survivor, merged_note, key))
        keys[key] = [id for id in ids if id not in pair] or REMOVE

    # The survivor is valid as soon as one of the two memories was.
    if survivor.header.get("valid_from"):
        keys["valid_from"] = min(_first_valid(survivor), _first_valid(merged_note))
    # The survivor expires only if both memories would.
    are_both_in_inbox = survivor.phase == model.INBOX and merged_note.phase == model.INBOX
    if are_both_in_inbox and survivor.expires and merged_note.expires:
        keys["expires_at"] = max(survivor.expires, merged_note.expires, key=parse_stamp)
    if _is_sorted_by_merge(survivor, merged_note):
        keys |= {"phase": model.ORGANIZED, "category": category}
    return keys


def _ids_of_both(survivor: NoteInfo, merged_note: NoteInfo, key: str) -> list[str]:
    """Return the ids that the headers of two memories have under a key."""
    # A memory may name what it supersedes as one id, not a list.
    is_single = key == "supersedes"
    return [
        *writing.id_list(survivor.header.get(key), single=is_single),
        *writing.id_list(merged_note.header.get(key), single=is_single),
    ]


def _first_valid(info: NoteInfo) -> str:
    """Return when a memory begins to be valid: a day or a time, as its header has it.

    The key `valid_from` has it. Without that key, a memory is valid since its date or, without a
    date, since it was created.
    """
    return str(info.header.get("valid_from") or info.date or info.created)


@dataclass(slots=True)
class IngestedTexts:
    """The texts and files that the memories a caller sees were made from.

    hashes: how many memories have a text, by the SHA-256 of the text. A memory counts for its
        present text, and for the text that it was made from.
    refs: the memories by source reference (the name of the file that a memory was made from).
    texts: the hashes of the texts of each memory, by the memory's id.
    gone_hashes, gone_refs: the hashes and the source references of removed memories whose text the
        history still has.
    change: the number of the latest change in the history when the texts were read.
    """

    hashes: Counter[str] = field(default_factory=Counter)
    refs: dict[str, NoteInfo] = field(default_factory=dict)
    texts: dict[str, frozenset[str]] = field(default_factory=dict)
    gone_hashes: set[str] = field(default_factory=set)
    gone_refs: set[str] = field(default_factory=set)
    change: int = 0

    def hold(self, identity: str, texts: frozenset[str]) -> frozenset[str]:
        """Record that a memory has these texts from now on, instead of its former texts.

        identity: the id of the memory.
        texts: the SHA-256 of each text.

        Returns the hashes of the former texts that no memory has now.
        """
        before = self.texts.get(identity, frozenset())
        self.hashes.update(texts)
        self.hashes.subtract(before)
        self.texts[identity] = texts
        return frozenset(text_hash for text_hash in before if not self.hashes[text_hash])


class Ingested:
    """The verbs that tell `memory ingest` which texts are stored already."""

    def __init__(self, memory: HistoryVerbs):
        self.memory = memory
        self.engine = memory.engine

    @verb
    def known(self) -> IngestedTexts:
        """Return the texts and files that memories were made from so far.

        This reads all memories and the whole history once.
        """
        ingested_texts = IngestedTexts()
        merged: set[str] = set()
        upkeep = Upkeep(self.memory)
        with self.engine.writing():
            for info in (*upkeep.every(), *upkeep.every(Query(archived=True))):
                texts = _texts_of(content_of(self.memory, info), info.header)
                ingested_texts.hold(info.id, frozenset(texts))
                source_ref = info.header.get(SOURCE_REF)
                if isinstance(source_ref, str):
                    ingested_texts.refs.setdefault(source_ref, info)
                merged.update(writing.id_list(info.header.get("merged")))
            ingested_texts.change = self.engine.ledger.history.last
        self._add_removed(ingested_texts, merged)
        return ingested_texts

    def _add_removed(self, ingested_texts: IngestedTexts, merged: set[str]) -> None:
        """Add the texts and files of removed memories to `ingested_texts`.

        merged: the ids of memories that were merged into other memories. Their files are not added
            to `gone_refs`, because the memories that they were merged into represent them.
        """
        history = self.engine.ledger.history
        seen_hashes: set[str] = set()
        for text_hash, path in self._removed_files():
            if text_hash in seen_hashes:
                continue
            seen_hashes.add(text_hash)
            try:
                text = history.text(text_hash, path).decode()
                yaml_text, body_at = frontmatter.split(text)
                header = frontmatter.parse(yaml_text or "")
            except (NotFound, StorageError, ValueError):
                # The text in the history is damaged, or is not the text of a memory.
                continue
            identity = str(header.get("id"))
            # If a memory with this id exists, it was not removed but moved by hand, or restored.
            if identity in ingested_texts.texts:
                continue
            content = text[body_at:].removesuffix("\n")
            ingested_texts.gone_hashes.update(_texts_of(content, header))
            source_ref = header.get(SOURCE_REF)
            if identity not in merged and isinstance(source_ref, str):
                ingested_texts.gone_refs.add(source_ref)

    def _removed_files(self) -> Iterator[tuple[str, str]]:
        """Yield (hash of the text, path) of each memory file that a change removed.

        Three kinds of files are left out: files that the change moved to another folder, files
        whose text the history does not keep, and files that the caller may not see.
        """
        for change in self.engine.ledger.history.changes():
            files = [file for file in change.files if file.project in MEMORY_PROJECTS]
            # A file that the same change writes elsewhere under its name was moved.
            names_put = {file.path.rpartition("/")[2] for file in files if file.do == StepKind.PUT}
            for file in files:
                is_moved = file.path.rpartition("/")[2] in names_put
                if file.do != StepKind.REMOVE or is_moved:
                    continue
                if not file.kept or not file.old:
                    continue
                if self.memory.sees(file.scope):
                    yield file.old, file.path

    @verb
    def store(
        self,
        batches: Sequence[Sequence[Record]],
        ingested: IngestedTexts,
        advance: Callable[[int], None],
    ) -> int:
        """Store new memories, each batch as one change, and return how many were stored.

        ingested: the texts that were ingested when the batches were made. Records of files or texts
            that another process has ingested since then are left out.
        advance: called after each batch with the number of its records.

        Raises InvalidInput, StorageError. The batches that were stored before an error stay.
        """
        stored = 0
        history = self.engine.ledger.history
        # All batches are stored by one verb, so that the disk is compared with the index only once.
        for batch in batches:
            with self.engine.writing():
                records = batch
                if self._was_ingested_after(ingested.change):
                    records = _not_ingested(batch, self.known())
                if records:
                    Upkeep(self.memory).put(records, INGEST)
                ingested.change = history.last
            stored += len(records)
            advance(len(batch))
        return stored

    def _was_ingested_after(self, number: int) -> bool:
        """Whether another process has ingested something after the change with this number."""
        # The history returns the newest change first.
        for change in self.engine.ledger.history.changes():
            if change.number <= number:
                return False
            if change.verb == INGEST:
                return True
        return False


def _not_ingested(records: Sequence[Record], ingested: IngestedTexts) -> list[Record]:
    """Return the records whose file and text were not ingested yet."""
    return [
        record
        for record in records
        if record.further[SOURCE_REF] not in ingested.refs
        and not ingested.hashes[record.further[SOURCE_HASH]]
    ]


def _texts_of(content: str, header: dict[str, Any]) -> Iterator[str]:
    """Yield the SHA-256 of a memory's content, and the SHA-256 of the text it was made from.

    The second hash comes from the header, and only if the header has it.
    """
    yield sha256(content.encode("utf-8", "surrogatepass"))
    text_hash = header.get(SOURCE_HASH)
    if isinstance(text_hash, str):
        yield text_hash
