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

        ttl: the default times to live, as LangGraph defines them, in minutes.
        """
        self._memory = session_of(memory)
        self._entries = NoteEntries(self._memory)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations, and return their results in the same order.

        ops: LangGraph's operations. The result of a `GetOp` is an `Item`, or None if there is none.
            A `SearchOp` gives a list of `SearchItem`, a `ListNamespacesOp` a list of tuples of
            labels, and a `PutOp` None.

        All reads are done first, so they do not see the puts of the same call. Then all values are
        written as one change, and the items that are put with the value None are removed. Of several
        puts at one key, the last one counts.
        """
        results: list[Any] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        read_methods: dict[type, Any] = {
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
                read = read_methods[type(op)]
                results.append(read(op))
        self._put(puts)
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations in another thread, as `batch` does."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Remove expired items now, and return how many were removed.

        It is not necessary to call this, because every change also removes some.
        """
        return self._entries.purge()

    def _get(self, op: GetOp) -> Item | None:
        """Return the item at a namespace and key. None if there is no item."""
        entry = self._peek(op.namespace, op.key)
        if entry is None:
            return None
        if op.refresh_ttl:
            self._refresh([entry])
        return Item(
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
        entry_and_lock = self._entries.peek(".".join(namespace), key)
        if entry_and_lock is None:
            return None
        entry, _ = entry_and_lock
        return entry

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """Return a page of the items that match the query and the filter."""
        if op.query and op.query.strip():
            matches = self._by_words(op.query, op.namespace_prefix)
        else:
            matches = self._all_below(op.namespace_prefix)
        if op.filter:
            matches = [
                (entry, score)
                for entry, score in matches
                if _passes(_value(entry.value), op.filter)
            ]
        page = matches[op.offset : op.offset + op.limit]
        if op.refresh_ttl:
            # An entry may have expired since the search.
            entries = [self._peek(_split(entry.namespace), entry.key) for entry, _ in page]
            self._refresh([entry for entry in entries if entry is not None])
        return [
            SearchItem(
                namespace=_split(entry.namespace),
                key=entry.key,
                value=_value(entry.value),
                created_at=entry.created,
                updated_at=entry.created,
                score=score,
            )
            for entry, score in page
        ]

    def _by_words(self, query: str, prefix: tuple[str, ...]) -> list[tuple[Entry, float | None]]:
        """Return the items below the namespace `prefix` that match a query, each with its score."""
        # Hits of other namespaces are left out afterwards, so many are asked for.
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
        entries, _ = self._entries.search("", None, 1_000_000, 0)
        return [
            (entry, None) for entry in entries if _split(entry.namespace)[: len(prefix)] == prefix
        ]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Return a page of the namespaces that meet all conditions, in order of their labels."""
        # A namespace whose entries have all expired is not listed.
        namespaces = [
            _split(tally.namespace) for tally in self._entries.namespaces() if tally.active
        ]
        for condition in op.match_conditions or ():
            is_prefix = condition.match_type == "prefix"
            namespaces = [
                labels for labels in namespaces if _fits(labels, condition.path, is_prefix)
            ]
        cut_namespaces = sorted({labels[: op.max_depth] for labels in namespaces})
        return cut_namespaces[op.offset : op.offset + op.limit]

    def _put(self, puts: dict[tuple[tuple[str, ...], str], PutOp]) -> None:
        """Write all items with a value as one change, then remove the items whose value is None."""
        now = self._memory.clock()
        # Pairs of an entry and its further header keys.
        entries: list[tuple[Entry, dict[str, Any]]] = []
        for (namespace, key), op in puts.items():
            if op.value is not None:
                text = _json_text(op.value)
                entry = Entry(".".join(namespace), key, text, now, now, _expiry(now, op.ttl))
                entries.append((entry, {} if op.ttl is None else {_TTL: op.ttl}))
        if entries:
            self._entries.import_entries(entries, "write")
        for (namespace, key), op in puts.items():
            if op.value is None and self._peek(namespace, key):
                self._entries.remove(".".join(namespace), key)

    def _refresh(self, entries: Iterable[Entry]) -> None:
        """Restart the time to live of these items, as one change."""
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
                expires = _expiry(now, float(minutes))
                refreshed.append((replace(entry, accessed=now, expires=expires), {}))
        if refreshed:
            self._entries.import_entries(refreshed, "edit")


def _json_text(value: Any) -> str:
    """Return the value of an item as JSON. Raises InvalidInput if that is impossible."""
    try:
        text = json.dumps(dict(value), ensure_ascii=False, indent=1)
        if is_valid_unicode(text):
            return text
        # A lone surrogate cannot be written as UTF-8. Here it is escaped, as all other characters.
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the value of an item must be JSON: {error}") from None


def _expiry(now: datetime, minutes: float | None) -> datetime | None:
    """Return when an entry that is written or read now expires.

    Returns None for never, also if the time is beyond the end of the calendar.

    minutes: its time to live. None means that it lives for ever.
    """
    if minutes is None:
        return None
    try:
        return whole_milliseconds(now + timedelta(minutes=minutes))
    except OverflowError:
        return None


def _split(namespace: str) -> tuple[str, ...]:
    """Return the labels of a namespace: `("users", "anna")` for `users.anna`."""
    return tuple(namespace.split("."))


def _value(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`. Any other text becomes `{"value": text}`."""
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    return {"value": text}


def _fits(space: tuple[str, ...], path: Sequence[str], is_prefix: bool) -> bool:
    """Whether a namespace begins, or ends, with `path`. A `*` in `path` means any label.

    space: the labels of the namespace.
    is_prefix: whether the beginning of the namespace counts, and not its end.
    """
    if len(path) > len(space):
        return False
    start = 0 if is_prefix else len(space) - len(path)
    part = space[start : start + len(path)]
    return all(pattern in ("*", label) for pattern, label in zip(path, part, strict=True))


def _passes(value: Any, condition: Any) -> bool:
    """Whether a value meets a condition of a filter: `{"age": 7}` meets `{"age": {"$gt": 5}}`.

    condition: one of these four:
        - an object of operators, all of which the value must meet
        - an object with a condition for each key
        - a list with a condition for each element of a list
        - a value that must be equal
    """
    if isinstance(condition, dict):
        has_operators = any(key.startswith("$") for key in condition)
        if has_operators:
            return all(
                _passes_operator(value, sign, operand) for sign, operand in condition.items()
            )
        if not isinstance(value, dict):
            return False
        return all(_passes(value.get(key), inner) for key, inner in condition.items())
    if isinstance(condition, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(condition):
            return False
        return all(_passes(item, inner) for item, inner in zip(value, condition, strict=True))
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
