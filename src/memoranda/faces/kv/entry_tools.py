"""The seven key-value tools and their replies: one text, in markdown or JSON, never longer than
LIMIT characters (contract 004, 1 to 6)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from memoranda import documents
from memoranda.clock import milliseconds, seconds
from memoranda.documents.cutting import longest
from memoranda.documents.listed import Listed
from memoranda.engine.entries import Entries, EntryError
from memoranda.errors import MemorandaError, ProjectOutOfReach
from memoranda.faces.arguments import Arguments, has_surrogate
from memoranda.faces.reply import Reply
from memoranda.faces.tool import function_of
from memoranda.note.entry import DEFAULT_NAMESPACE
from memoranda.text.unicode import flat

LIMIT = 25_000
"""Characters of a reply at most."""
NAME_CHARACTERS = 1000
VALUE_BYTES = 10 * 1024 * 1024
LONGEST_TTL = 100_000_000_000
"""Seconds; later expiry times would have years of five digits."""
# Characters of a value in a list.
_SHOWN = 500
# Characters of a text that is shown by its beginning, and in a reply where even that would be too
# long.
_SHOWN_TIGHT = 100
_MARK = "... [TRUNCATED at {} chars]"
# Room for the mark that says that a value was cut.
_MARK_ROOM = 30
# More results than any reply has room for
_MOST_RESULTS = 400

# The fields that contract 004 shows of an entry found by a search.
_RESULT_KEYS = ("namespace", "key", "value", "created_at", "access_count")

Fields = Mapping[str, Any]


class KvRefused(MemorandaError):
    """An argument no entry can have."""

    code = "invalid"


def answer(tool: str, entries: Entries, arguments: Arguments) -> Reply:
    """The reply of `tool` to arguments of the right types."""
    form = arguments["format"]
    try:
        run = function_of(tool, sys.modules[__name__])
        return Reply(run(entries, arguments, form))
    except (KvRefused, EntryError, ProjectOutOfReach) as error:
        message = str(error)
    except MemorandaError as error:
        message = f"Internal error in {tool}: {error}"
    text = json.dumps({"status": "error", "error": message, "isError": True}, indent=2)
    return Reply(text if form == "json" else f"## ❌ Error\n**{message}**", is_error=True)


def memory_remember(entries: Entries, arguments: Arguments, form: str) -> str:
    key = _key(arguments)
    namespace = _namespace(arguments)
    if arguments["value"]:
        ttl = _natural(arguments, "ttl_seconds")
    else:
        ttl = 0
    entry = entries.put(*checked_arguments(namespace, key, arguments["value"], ttl))
    fields: dict[str, Any] = {
        "message": f"Stored '{key}' in namespace '{namespace}'",
        "key": key,
        "namespace": namespace,
    }
    fields |= {
        "expires_in": f"{ttl}s" if ttl else "never",
        "expires_at": entry.expires and milliseconds(entry.expires),
    }
    return _success(fields, form)


def checked_arguments(namespace: str, key: str, value: str, ttl: int) -> tuple[str, str, str, int]:
    """The arguments for `Entries.put`. Raises Refused for values that cannot be stored."""
    _key({"key": key}), _name("Namespace", namespace)
    if not value:
        raise KvRefused("Value must not be empty")
    size = len(_unicode("Value", value).encode())
    if size > VALUE_BYTES:
        raise KvRefused(f"Value is too long ({size} bytes, at most {VALUE_BYTES})")
    if ttl > LONGEST_TTL:
        raise KvRefused(f"ttl_seconds is too large (at most {LONGEST_TTL})")
    return namespace, key, value, ttl


def memory_recall(entries: Entries, arguments: Arguments, form: str) -> str:
    key = _key(arguments)
    namespace = _namespace(arguments)
    offset = _natural(arguments, "offset")
    entry = entries.get(namespace, key)
    if offset and offset >= len(entry.value):
        raise KvRefused(
            f"offset {offset} is past the end of the value ({len(entry.value)} characters)"
        )
    entry = entries.count(entry)
    # The key comes before the namespace in this reply
    fields = {"key": key, **documents.entry(entry)}
    size = len(entry.value)
    remaining_size = size - offset

    def text(shown_characters: int) -> str:
        """The reply with this many characters of the value from `offset` on, and how to go on."""
        if shown_characters == size:
            return _wording_of(fields, form)
        end = offset + shown_characters
        is_cut = shown_characters < remaining_size
        if is_cut and form != "json":
            mark = _MARK.format(LIMIT)
        else:
            mark = ""
        paging = {"truncated": is_cut, "value_length": size, "offset": offset}
        part = {
            **fields,
            "value": entry.value[offset:end] + mark,
            **paging,
            "next_offset": end if is_cut else None,
        }
        return _wording_of(part, form)

    if remaining_size <= LIMIT and len(whole_reply := text(remaining_size)) <= LIMIT:
        return whole_reply
    return _longest(min(remaining_size - 1, LIMIT), text)


def memory_forget(entries: Entries, arguments: Arguments, form: str) -> str:
    key = _key(arguments)
    namespace = _namespace(arguments)
    entries.remove(namespace, key)
    message = f"Deleted '{key}' from namespace '{namespace}'"
    return _success({"message": message, "key": key, "namespace": namespace}, form)


def memory_search(entries: Entries, arguments: Arguments, form: str) -> str:
    query = arguments["query"]
    if not query.strip():
        raise KvRefused("Query must not be empty")
    _unicode("Query", query)
    limit = _natural(arguments, "limit")
    offset = _natural(arguments, "offset")
    if "namespace" in arguments:
        namespace = _namespace(arguments)
    else:
        namespace = None
    matching_entries, total = entries.search(query, namespace, min(limit, _MOST_RESULTS), offset)
    results = []
    for entry in matching_entries:
        document = documents.entry(entry)
        result = {name: document[name] for name in _RESULT_KEYS}
        results.append(result | {"value": _cut_value(entry.value, _SHOWN)})
    fields = {"query": _cut_value(query, _SHOWN), "total_matches": total, "returned": len(results)}
    if namespace is None:
        damaged = _damaged(entries)
    else:
        damaged = {}
    return _list_reply({**fields, **damaged}, "results", Listed(results, total), offset, form)


def memory_list_namespaces(entries: Entries, arguments: Arguments, form: str) -> str:
    offset = _natural(arguments, "offset")
    tallies = entries.namespaces()
    items = []
    for tally in tallies[offset:]:
        counts = {"active_entries": tally.active, "expired_entries": tally.expired}
        items.append(
            {"namespace": tally.namespace, "total_entries": sum(counts.values()), **counts}
        )
    listed = Listed(items, len(tallies))
    fields = {"namespace_count": len(tallies), **_damaged(entries)}
    return _list_reply(fields, "namespaces", listed, offset, form)


def _damaged(entries: Entries) -> Fields:
    """A field that names the namespaces left out because they cannot be read; none when all of them
    can.
    """
    if entries.unreadable:
        return {"unreadable": ", ".join(entries.unreadable)}
    return {}


def memory_clear_namespace(entries: Entries, arguments: Arguments, form: str) -> str:
    if not arguments["namespace"].strip():
        raise KvRefused("Namespace must not be empty")
    namespace = _namespace(arguments)
    count = entries.clear(namespace)
    message = f"Cleared {count} entries from namespace '{namespace}'"
    return _success({"message": message, "namespace": namespace, "deleted_count": count}, form)


def memory_stats(entries: Entries, arguments: Arguments, form: str) -> str:
    totals = entries.stats()
    if totals.size:
        power = min((totals.size.bit_length() - 1) // 10, 4)
    else:
        power = 0
    fields = {
        "total_entries": totals.entries,
        "total_size_bytes": totals.size,
        "total_size_human": f"{totals.size / 1024**power:.1f} {('B', 'KB', 'MB', 'GB', 'TB')[power]}",
        "namespace_count": totals.namespaces,
        "oldest_entry": seconds(totals.oldest) if totals.oldest else "N/A",
        "newest_entry": seconds(totals.newest) if totals.newest else "N/A",
        "storage_path": totals.place,
        "free_tier_limit": 1000,
        "pro_tier_limit": "unlimited",
        **_damaged(entries),
    }
    return _success(fields, form)


def _key(arguments: Arguments) -> str:
    if not arguments["key"].strip():
        raise KvRefused("Key must not be empty")
    return _name("Key", arguments["key"])


def _namespace(arguments: Arguments) -> str:
    return _name("Namespace", arguments["namespace"] or DEFAULT_NAMESPACE)


def _name(noun: str, text: str) -> str:
    if len(_unicode(noun, text)) > NAME_CHARACTERS:
        raise KvRefused(f"{noun} is too long ({len(text)} characters, at most {NAME_CHARACTERS})")
    return text


def _unicode(noun: str, text: str) -> str:
    if has_surrogate(text):
        raise KvRefused(f"{noun} is not valid Unicode text")
    return text


def _natural(arguments: Arguments, name: str) -> int:
    """A number of the arguments that must not be negative, or 0."""
    value = arguments.get(name, 0)
    if value < 0:
        raise KvRefused(f"{name} must not be negative")
    return value


def _success(fields: Fields, form: str) -> str:
    text = _wording_of(fields, form)
    if len(text) <= LIMIT:
        return text
    return _wording_of({name: _cut_value(value, _SHOWN) for name, value in fields.items()}, form)


def _wording_of(fields: Fields, form: str) -> str:
    if form == "json":
        return json.dumps({**fields, "status": "ok"}, indent=2)
    lines = ["## ✅ Success"]
    for name, value in fields.items():
        if not isinstance(value, list):
            lines.append(f"**{name}:** {_shown_value(name, value)}")
            continue
        lines.append(f"**{name}:** {len(value)} items")
        for item in value:
            lines += [
                *(f"  - **{key}:** {_shown_value(key, inner)}" for key, inner in item.items()),
                "",
            ]
    return "\n".join(lines)


def _shown_value(name: str, value: Any) -> str:
    if name == "value":
        return str(value)
    return flat(str(value))


def _cut_value(value: Any, most_characters: int) -> Any:
    if not isinstance(value, str) or len(value) <= most_characters:
        return value
    return value[: most_characters - _MARK_ROOM] + _MARK.format(most_characters)


def _list_reply(fields: Fields, name: str, listed: Listed, offset: int, form: str) -> str:
    """The reply with a list: as many whole items as fit, and how to go on. `returned`, if a field,
    counts them.
    """

    def text(part: Listed) -> str:
        counted = {"returned": len(part)} if "returned" in fields else {}
        cut_keys = {"truncated": True, "next_offset": part.next} if part.next is not None else {}
        return _wording_of({**fields, **counted, name: part.rows, **cut_keys}, form)

    # An item too long on its own would never be passed
    if listed.rows and len(text(listed.first(1, offset))) > LIMIT:
        shortened = {key: _cut_value(value, _SHOWN_TIGHT) for key, value in listed.rows[0].items()}
        listed = Listed([shortened, *listed.rows[1:]], listed.total)
    whole_reply = text(listed)
    if len(whole_reply) <= LIMIT:
        return whole_reply
    return _longest(len(listed) - 1, lambda size: text(listed.first(size, offset)))


def _longest(highest: int, text: Callable[[int], str]) -> str:
    """`text(size)` for the greatest size up to `highest` that is within the limit; it grows with the
    size.
    """
    return text(longest(highest, lambda size: len(text(size)), LIMIT))
