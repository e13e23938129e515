"""The seven key-value tools: arguments in, wording out (contract 004, 1 to 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commonplace.engine.entries import Entries, EntryError
from commonplace.errors import CommonplaceError
from commonplace.faces.kv import replies
from commonplace.faces.reply import Reply
from commonplace.note.entry import DEFAULT_NAMESPACE, milliseconds, seconds

Given = dict[str, Any]

NAME_CHARACTERS = 1000
VALUE_BYTES = 10 * 1024 * 1024
LONGEST_TTL = 100_000_000_000
"""Seconds; a year of five digits would be no time any more."""
_FREE, _PRO = 1000, "unlimited"
_AT_ONCE = 400
"""More results than any reply has room for."""


class Refused(CommonplaceError):
    """An argument no entry can have."""

    code = "invalid"


def answer(tool: str, entries: Entries, given: Given) -> Reply:
    """The reply of `tool` to arguments of the right types."""
    form = given.get("format", "markdown")
    try:
        return Reply(_TOOLS[tool](entries, given, form))
    except (Refused, EntryError) as error:
        return Reply(replies.failure(str(error), form), is_error=True)
    except CommonplaceError as error:
        return Reply(replies.failure(f"Internal error in {tool}: {error}", form), is_error=True)


def _remember(entries: Entries, given: Given, form: str) -> str:
    key, value, namespace = _key(given), given["value"], _namespace(given)
    if not value:
        raise Refused("Value must not be empty")
    size = len(_encoded("Value", value))
    if size > VALUE_BYTES:
        raise Refused(f"Value is too long ({size} bytes, at most {VALUE_BYTES})")
    ttl = _whole(given, "ttl_seconds", 0)
    if ttl > LONGEST_TTL:
        raise Refused(f"ttl_seconds is too large (at most {LONGEST_TTL})")
    entry = entries.put(namespace, key, value, ttl)
    fields = {
        "message": f"Stored '{key}' in namespace '{namespace}'",
        "key": key,
        "namespace": namespace,
        "expires_in": f"{ttl}s" if ttl else "never",
        "expires_at": entry.expires and milliseconds(entry.expires),
    }
    return replies.success(fields, form)


def _recall(entries: Entries, given: Given, form: str) -> str:
    key, namespace, offset = _key(given), _namespace(given), _whole(given, "offset", 0)
    entry = entries.get(namespace, key)
    if offset and offset >= len(entry.value):
        raise Refused(f"offset {offset} is past the end of the value ({len(entry.value)} characters)")
    entry = entries.count(entry)
    fields = {
        "key": key,
        "namespace": namespace,
        "value": entry.value,
        "created_at": seconds(entry.created),
        "accessed_at": seconds(entry.accessed),
        "expires_at": entry.expires and milliseconds(entry.expires),
        "access_count": entry.access_count,
    }
    return replies.piece(fields, offset, form)


def _forget(entries: Entries, given: Given, form: str) -> str:
    key, namespace = _key(given), _namespace(given)
    entries.remove(namespace, key)
    message = f"Deleted '{key}' from namespace '{namespace}'"
    return replies.success({"message": message, "key": key, "namespace": namespace}, form)


def _search(entries: Entries, given: Given, form: str) -> str:
    query = given["query"]
    if not query.strip():
        raise Refused("Query must not be empty")
    _encoded("Query", query)
    limit, offset = _whole(given, "limit", 10), _whole(given, "offset", 0)
    namespace = _namespace(given) if given.get("namespace") is not None else None
    found, total = entries.search(query, namespace, min(limit, _AT_ONCE), offset)
    results = [
        {
            "namespace": entry.namespace,
            "key": entry.key,
            "value": replies.cut(entry.value, replies.SHOWN),
            "created_at": seconds(entry.created),
            "access_count": entry.access_count,
        }
        for entry in found
    ]
    fields = {"query": replies.cut(query, replies.SHOWN), "total_matches": total, "returned": len(results)}
    return replies.page(fields, "results", results, offset, form)


def _list_namespaces(entries: Entries, given: Given, form: str) -> str:
    offset = _whole(given, "offset", 0)
    tallies = entries.namespaces()
    items = [
        {
            "namespace": each.namespace,
            "total_entries": each.active + each.expired,
            "active_entries": each.active,
            "expired_entries": each.expired,
        }
        for each in tallies[offset:]
    ]
    return replies.page({"namespace_count": len(tallies)}, "namespaces", items, offset, form)


def _clear_namespace(entries: Entries, given: Given, form: str) -> str:
    if not given["namespace"].strip():
        raise Refused("Namespace must not be empty")
    namespace = _namespace(given)
    count = entries.clear(namespace)
    message = f"Cleared {count} entries from namespace '{namespace}'"
    return replies.success({"message": message, "namespace": namespace, "deleted_count": count}, form)


def _stats(entries: Entries, given: Given, form: str) -> str:
    totals = entries.stats()
    fields = {
        "total_entries": totals.entries,
        "total_size_bytes": totals.size,
        "total_size_human": _human(totals.size),
        "namespace_count": totals.namespaces,
        "oldest_entry": seconds(totals.oldest) if totals.oldest else "N/A",
        "newest_entry": seconds(totals.newest) if totals.newest else "N/A",
        "storage_path": totals.place,
        "free_tier_limit": _FREE,
        "pro_tier_limit": _PRO,
    }
    return replies.success(fields, form)


_TOOLS: dict[str, Callable[[Entries, Given, str], str]] = {
    "memory_remember": _remember,
    "memory_recall": _recall,
    "memory_forget": _forget,
    "memory_search": _search,
    "memory_list_namespaces": _list_namespaces,
    "memory_clear_namespace": _clear_namespace,
    "memory_stats": _stats,
}


def _key(given: Given) -> str:
    if not given["key"].strip():
        raise Refused("Key must not be empty")
    return _name("Key", given["key"])


def _namespace(given: Given) -> str:
    return _name("Namespace", given.get("namespace") or DEFAULT_NAMESPACE)


def _name(what: str, text: str) -> str:
    _encoded(what, text)
    if len(text) > NAME_CHARACTERS:
        raise Refused(f"{what} is too long ({len(text)} characters, at most {NAME_CHARACTERS})")
    return text


def _encoded(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Refused(f"{what} is not valid Unicode text") from None


def _whole(given: Given, name: str, default: int) -> int:
    """A whole number of the arguments, which JSON may write as `3.0`."""
    value = int(given.get(name, default))
    if value < 0:
        raise Refused(f"{name} must not be negative")
    return value


def _human(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"
