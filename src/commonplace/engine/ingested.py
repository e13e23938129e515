"""What was taken in from other programs: which texts and files memories have, or had (contract 001, 11)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commonplace.engine.memory import verb
from commonplace.engine.upkeep import PROJECT, Upkeep
from commonplace.errors import NotFound, StorageError
from commonplace.index.rows import NoteInfo
from commonplace.note import frontmatter
from commonplace.note.compose import Record
from commonplace.store.history import Change

if TYPE_CHECKING:
    from commonplace.engine import Memory

VERB = "ingest"
SOURCE_REF, SOURCE_HASH = "source_ref", "source_hash"
"""Header keys: the file a memory was made from, and the hash of the text it had then."""


@dataclass(slots=True)
class Known:
    """The texts and files that memories the caller sees were made from.

    `hashes` counts the memories that have a text, by its SHA-256: the one they hold and the one they were made
    from. `refs` are memories by source reference. `gone_hashes` and `gone_refs` are those of memories that were
    removed, as far as the history holds them.
    """

    hashes: Counter[str] = field(default_factory=Counter)
    refs: dict[str, NoteInfo] = field(default_factory=dict)
    texts: dict[str, frozenset[str]] = field(default_factory=dict)
    gone_hashes: set[str] = field(default_factory=set)
    gone_refs: set[str] = field(default_factory=set)
    change: int = 0

    def hold(self, identity: str, texts: frozenset[str]) -> frozenset[str]:
        """Memory `identity` has these texts from now on. Returns the hashes nothing has any more."""
        before = self.texts.get(identity, frozenset())
        self.hashes.update(texts)
        self.hashes.subtract(before)
        self.texts[identity] = texts
        return frozenset(each for each in before if not self.hashes[each])


class Ingested:
    """The verbs of ingestion for the caller of `memory`."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self._core = memory._core

    @verb
    def known(self) -> Known:
        """What is known now: one pass over the memories, one over the history."""
        core, upkeep = self._core, Upkeep(self.memory)
        known, merged = Known(), set()
        with core.writing():
            for info in upkeep.every():
                known.hold(info.id, frozenset(_texts_of(upkeep.content(info), info.header)))
                if isinstance(ref := info.header.get(SOURCE_REF), str):
                    known.refs.setdefault(ref, info)
                merged.update(each for each in _list(info.header.get("merged")))
            known.change = core.home.history.last
        for header, content in self._removed():
            identity = str(header.get("id"))
            if identity in known.texts:
                continue  # moved since, or brought back
            known.gone_hashes.update(_texts_of(content, header))
            if identity not in merged and isinstance(ref := header.get(SOURCE_REF), str):
                known.gone_refs.add(ref)
        return known

    def _removed(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Header and content of every text the history holds of a memory that was removed."""
        history = self._core.home.history
        done: set[str] = set()
        for change in history.changes():
            for digest, path in self._removals(change):
                if digest not in done:
                    done.add(digest)
                    try:
                        yield _parts(history.text(digest, path).decode())
                    except (NotFound, StorageError, ValueError):
                        continue  # damaged, or no memory

    def _removals(self, change: Change) -> Iterator[tuple[str, str]]:
        """Digest and path of the memories a change removed; one that went to another folder is not gone."""
        here = [each for each in change.files if each.project == PROJECT]
        put = {each.path.rpartition("/")[2] for each in here if each.do == "put"}
        for each in here:
            is_moved = each.path.rpartition("/")[2] in put
            if each.do == "remove" and each.kept and each.old and not is_moved and self.memory.sees(each.scope):
                yield each.old, each.path

    @verb
    def store(self, batches: Sequence[Sequence[Record]], known: Known, advance: Callable[[int], None]) -> int:
        """Store new memories, each batch as one change, and tell `advance` how many a batch had.

        What another run took in since `known` was made is left out. Returns how many were stored. Raises
        InvalidInput, StorageError; the batches stored before stay.
        """
        stored = 0
        for batch in batches:  # in one verb, that the disk be looked over once
            stored += self._store(batch, known)
            advance(len(batch))
        return stored

    def _store(self, records: Sequence[Record], known: Known) -> int:
        core = self._core
        with core.writing():
            if self._others_ingested(known.change):
                now = self.known()
                records = [
                    each for each in records
                    if each.further[SOURCE_REF] not in now.refs and not now.hashes[each.further[SOURCE_HASH]]
                ]  # fmt: skip
            if records:
                Upkeep(self.memory).put(records, VERB)
            known.change = core.home.history.last
            return len(records)

    def _others_ingested(self, since: int) -> bool:
        """Whether the journal has an ingestion after change number `since`."""
        history = self._core.home.history
        if history.last == since:
            return False
        for change in history.changes():
            if change.number <= since:
                break
            if change.verb == VERB:
                return True
        return False


def _texts_of(content: str, header: dict[str, Any]) -> Iterator[str]:
    yield hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    if isinstance(taken := header.get(SOURCE_HASH), str):
        yield taken


def _parts(text: str) -> tuple[dict[str, Any], str]:
    """Header and content of a memory's file. Raises ValueError for a header that is not valid YAML."""
    yaml_text, body_at = frontmatter.split(text)
    return frontmatter.parse(yaml_text or ""), text[body_at:].removesuffix("\n")


def _list(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []
