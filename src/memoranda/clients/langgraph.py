"""A LangGraph store over a memory (extra `memoranda[langgraph]`).

An item is an entry of the project `kv`, so that the key-value tools of other agents see it, too. The
namespace `("users", "anna")` is the key-value namespace `users.anna`, and the value is a JSON
object. If a tool wrote another text, the value is `{"value": text}`.
"""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from memoranda.extras import install_command

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        PutOp,
        SearchItem,
        SearchOp,
        TTLConfig,
        validate_op_namespace,
    )
except ImportError as error:
    raise ImportError(
        "memoranda.clients.langgraph needs LangGraph's store interface: "
        f"{install_command('langgraph')}"
    ) from error

from memoranda import Memory
from memoranda.engine import session_of
from memoranda.engine.entries import Entry, NoteEntries, whole_milliseconds
from memoranda.errors import InvalidInput
from memoranda.note.model import KV_PROJECT
from memoranda.query import Query
from memoranda.text.unicode import is_valid_unicode

# The header key for the time to live: how many minutes after the last write or read an entry expires.
_TTL = "ttl_minutes"
# The comparisons of LangGraph's filters.
_ORDER = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}


class MemorandaStore(BaseStore):
    """A `BaseStore` that keeps its items in an open memory. It is thread-safe.

    `search` with a query returns only items that match, the best first. It compares words, and also
    meanings if the home has embeddings. Without a query, it returns all items below the namespace.
    Expired items are never returned. Both `created_at` and `updated_at` are the time of the last
    `put`, in whole seconds. The parameter `index` of `put` has no effect, because every value can be
    searched for.

    Methods that write raise the errors of `Memory.write`, and InvalidInput for a value that is not
    JSON.
    """

    supports_ttl = True

    def __init__(self, memory: Memory, *, ttl: TTLConfig | None = None):
        """Use an open memory, which the caller must close.

        ttl: the default times to live, as LangGraph defines them.
        """
        self._memory = session_of(memory)
        self._entries = NoteEntries(self._memory)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations, and return their results in the same order.

        All reads are done first. Then all puts are written as one change.
        """
        results: list[Any] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        reads: dict[type, Any] = {
            GetOp: self._get,
            SearchOp: self._search,
            ListNamespacesOp: self._namespaces,
        }
        for op in ops:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
                results.append(None)
            else:
                results.append(reads[type(op)](op))
        self._put(puts)
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations in another thread (see `batch`)."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Remove expired items now, and return how many were removed.

        It is not necessary to call this, because every change also removes some.
        """
        return self._entries.purge()

    def _get(self, op: GetOp) -> Item | None:
        """Return the item at a namespace and key. None if there is no item."""
        entry = self._peek(op.namespace, op.key)
        if entry and op.refresh_ttl:
            self._refresh([entry])
        return entry and Item(
            value=_value(entry.value),
            key=op.key,
            namespace=op.namespace,
            created_at=entry.created,
            updated_at=entry.created,
        )

    def _peek(self, namespace: tuple[str, ...], key: str) -> Entry | None:
        """Return an entry without counting a read. None if it does not exist, or has expired.

        namespace: the labels of the namespace.
        """
        peeked = self._entries.peek(".".join(namespace), key)
        return peeked and peeked[0]

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """Return a page of the items that match the query and the filter."""
        if op.query and op.query.strip():
            matches = self._by_words(op.query, op.namespace_prefix)
        else:
            matches = self._all_below(op.namespace_prefix)
        if op.filter:
            matches = [match for match in matches if _passes(_value(match[0].value), op.filter)]
        page = matches[op.offset : op.offset + op.limit]
        if op.refresh_ttl:
            # An entry may have expired since the search.
            entries = (self._peek(_split(match.namespace), match.key) for match, _ in page)
            self._refresh(filter(None, entries))
        return [
            SearchItem(
                namespace=_split(match.namespace),
                key=match.key,
                value=_value(match.value),
                created_at=match.created,
                updated_at=match.created,
                score=score,
            )
            for match, score in page
        ]

    def _by_words(self, query: str, prefix: tuple[str, ...]) -> list[tuple[Entry, float | None]]:
        """Return the items below the namespace `prefix` that match a query, each with its score."""
        hits = self._memory.search(Query(query, projects=(KV_PROJECT,)), limit=1000).hits
        matches: list[tuple[Entry, float | None]] = []
        for hit in hits:
            space = _split(str(hit.note.header.get("namespace") or "default"))
            if space[: len(prefix)] != prefix:
                continue
            entry = self._peek(space, hit.note.title)
            if entry:
                matches.append((entry, hit.score))
        return matches

    def _all_below(self, prefix: tuple[str, ...]) -> list[tuple[Entry, float | None]]:
        """Return the items below the namespace `prefix`, each with None as its score."""
        entries = self._entries.search("", None, 1_000_000, 0)[0]
        return [
            (entry, None) for entry in entries if _split(entry.namespace)[: len(prefix)] == prefix
        ]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Return a page of the namespaces that meet all conditions, in order of their labels."""
        spaces = [
            _split(namespace.namespace)
            for namespace in self._entries.namespaces()
            if namespace.active
        ]
        for condition in op.match_conditions or ():
            is_prefix = condition.match_type == "prefix"
            spaces = [space for space in spaces if _fits(space, condition.path, is_prefix)]
        return sorted({space[: op.max_depth] for space in spaces})[op.offset : op.offset + op.limit]

    def _put(self, puts: dict[tuple[tuple[str, ...], str], PutOp]) -> None:
        """Write all items with a value as one change, then remove the items whose value is None."""
        now = self._memory.clock()
        # Pairs of an entry and its further header keys.
        entries: list[tuple[Entry, dict[str, Any]]] = []
        for (namespace, key), op in puts.items():
            if op.value is not None:
                text = _json_text(op.value)
                entry = Entry(".".join(namespace), key, text, now, now, _end(now, op.ttl))
                entries.append((entry, {} if op.ttl is None else {_TTL: op.ttl}))
        if entries:
            self._entries.import_entries(entries, "write")
        for (namespace, key), op in puts.items():
            if op.value is None and self._peek(namespace, key):
                self._entries.remove(".".join(namespace), key)

    def _refresh(self, entries: Iterable[Entry]) -> None:
        """Let the time to live of some items begin again, as one change."""
        now = self._memory.clock()
        # Pairs of an entry and its further header keys.
        refreshed: list[tuple[Entry, dict[str, Any]]] = []
        for entry in entries:
            if entry.expires is None:
                continue
            note = self._memory.read(entry.id, project=KV_PROJECT, count=False)
            minutes = note.header.get(_TTL)
            # Without the key, a key-value tool wrote the entry. Its time to live never begins again.
            if minutes is not None:
                expires = _end(now, float(minutes))
                refreshed.append((replace(entry, accessed=now, expires=expires), {}))
        if refreshed:
            self._entries.import_entries(refreshed, "edit")


def _json_text(value: Any) -> str:
    """Return the value of an item as JSON. Raises InvalidInput if that is impossible."""
    try:
        text = json.dumps(dict(value), ensure_ascii=False, indent=1)
        if is_valid_unicode(text):
            return text
        # The text has half of a surrogate pair. It is escaped here, as all other characters.
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the value of an item must be JSON: {error}") from None


def _end(now: datetime, minutes: float | None) -> datetime | None:
    """Return the time at which an entry expires that is written or read now.

    minutes: its time to live; None for ever.

    None means never. That is also the result if the time is beyond the end of the calendar.
    """
    try:
        if minutes is None:
            return None
        return whole_milliseconds(now + timedelta(minutes=minutes))
    except OverflowError:
        return None


def _split(namespace: str) -> tuple[str, ...]:
    return tuple(namespace.split("."))


def _value(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`. Any other text becomes `{"value": text}`."""
    with suppress(ValueError):
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    return {"value": text}


def _fits(space: tuple[str, ...], path: Sequence[str], is_prefix: bool) -> bool:
    """Whether a namespace begins, or ends, with `path`, in which `*` means any label.

    space: the labels of the namespace.
    is_prefix: whether the beginning of the namespace counts, and not its end.
    """
    if is_prefix or not path:
        part = space[: len(path)]
    else:
        part = space[-len(path) :]
    if len(part) != len(path):
        return False
    return all(label in ("*", segment) for label, segment in zip(path, part, strict=True))


def _passes(value: Any, condition: Any) -> bool:
    """Whether a value meets a condition of a filter: `{"age": 7}` meets `{"age": {"$gt": 5}}`.

    condition: an object of operators, all of which the value must meet; or an object of conditions
        by key; or a list of conditions for the elements of a list; or a value that must be equal.
    """
    if isinstance(condition, dict):
        if any(key.startswith("$") for key in condition):
            return all(_passes_operator(value, *pair) for pair in condition.items())
        return isinstance(value, dict) and all(
            _passes(value.get(key), operand) for key, operand in condition.items()
        )
    if isinstance(condition, list | tuple):
        is_as_long = isinstance(value, list | tuple) and len(value) == len(condition)
        return is_as_long and all(map(_passes, value, condition))
    return bool(value == condition)


def _passes_operator(value: Any, sign: str, operand: Any) -> bool:
    """Whether a value meets a condition such as `$gt` 5. Raises InvalidInput for another operator.

    sign: the operator.
    operand: the value behind the operator.
    """
    if sign == "$eq":
        return bool(value == operand)
    if sign == "$ne":
        return bool(value != operand)
    if sign not in _ORDER:
        operators = "$eq, $ne, $gt, $gte, $lt and $lte are known"
        raise InvalidInput(f'unknown operator "{sign}" in a filter: {operators}')
    return value is not None and bool(_ORDER[sign](float(value), float(operand)))
