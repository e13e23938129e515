"""The seven key-value tools and their replies (contract 004, 1 to 6).

A reply is one text, in Markdown or JSON, and never longer than LIMIT characters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda import documents
from memoranda.clock import milliseconds, seconds
from memoranda.documents.cutting import text_that_fits
from memoranda.documents.listed import Listed
from memoranda.engine.entries import Entries, Entry, EntryError
from memoranda.errors import Advice, MemorandaError, ProjectOutOfReach
from memoranda.faces.arguments import Arguments, has_surrogate
from memoranda.faces.other_notes import counts_elsewhere, notes_matching
from memoranda.faces.reply import Reply
from memoranda.faces.tool import function_of
from memoranda.note.entry import DEFAULT_NAMESPACE
from memoranda.note.model import KV_PROJECT
from memoranda.text.unicode import flat

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

LIMIT = 25_000
"""A reply has at most this many characters."""
NAME_CHARACTERS = 1000
VALUE_BYTES = 10 * 1024 * 1024
LONGEST_TTL = 100_000_000_000
"""Seconds; later expiry times would have years of five digits."""
# A value in a list has at most this many characters.
_VALUE_CHARACTERS = 500
# And this many, if even one item with _VALUE_CHARACTERS would be too long for a reply.
_TIGHT_VALUE_CHARACTERS = 100
# The end of a value that is cut. It takes at most _MARK_CHARACTERS.
_MARK = "... [TRUNCATED at {} chars]"
_MARK_CHARACTERS = 30
# More results than any reply has room for.
_MAX_RESULTS = 400

# The fields that contract 004 shows of an entry found by a search.
_RESULT_KEYS = ("namespace", "key", "value", "created_at", "access_count")

# The fields with the name of an entry or a namespace.
_NAME_FIELDS = ("key", "namespace")

Fields = Mapping[str, Any]


class KvRefused(MemorandaError):
    """An argument that no entry can have, e.g. an empty key."""

    code = "invalid"


class Store(NamedTuple):
    """The entries of a caller, and the caller's other notes.

    other_notes: the memory that has them. None if replies have no fields about them.
    """

    entries: Entries
    other_notes: MemorySession | None = None


def answer(tool: str, store: Store, arguments: Arguments) -> Reply:
    """Run `tool` with arguments of the right types, and return its reply, also for errors."""
    form = arguments["format"]
    try:
        run = function_of(tool, sys.modules[__name__])
        return Reply(run(store, arguments, form))
    except (KvRefused, EntryError, ProjectOutOfReach) as error:
        return _error_reply(str(error), form, error.advice)
    except MemorandaError as error:
        return _error_reply(f"Internal error in {tool}: {error}", form, error.advice)


def _error_reply(message: str, form: str, advice: Advice | None) -> Reply:
    """Return the reply for an error in the form asked for (contract 004).

    advice: a part of the message that names tools; None for none.
    """
    if form == "json":
        text = json.dumps({"status": "error", "error": message, "isError": True}, indent=2)
    else:
        text = f"## ❌ Error\n**{message}**"
    return Reply(text, is_error=True, advice=advice, message=message)


def memory_remember(store: Store, arguments: Arguments, form: str) -> str:
    """Store a value under a key.

    form: the form of the reply, `json` or `markdown`.
    """
    key = _key(arguments)
    namespace = _namespace(arguments)
    value = arguments["value"]
    ttl = 0
    # For an empty value, `put_checked` raises the error, whatever the time to live is.
    if value:
        ttl = _non_negative(arguments, "ttl_seconds")
    entry = put_checked(store.entries, namespace, key, value, ttl)
    fields: dict[str, Any] = {
        "message": f"Stored {_quoted(key, form)} in namespace {_quoted(namespace, form)}",
        "key": key,
        "namespace": namespace,
        "expires_in": f"{ttl}s" if ttl else "never",
        "expires_at": milliseconds(entry.expires) if entry.expires else None,
    }
    return _success_text(fields, form)


def put_checked(entries: Entries, namespace: str, key: str, value: str, ttl: int) -> Entry:
    """Store an entry, and return it. Raises KvRefused for values that cannot be stored.

    ttl: the time to live in seconds. 0 means for ever.
    """
    _check_key(key)
    _check_name("Namespace", namespace)
    if not value:
        raise KvRefused("Value must not be empty")
    _check_unicode("Value", value)
    size = len(value.encode())
    if size > VALUE_BYTES:
        raise KvRefused(f"Value is too long ({size} bytes, at most {VALUE_BYTES})")
    if ttl > LONGEST_TTL:
        raise KvRefused(f"ttl_seconds is too large (at most {LONGEST_TTL})")
    return entries.put(namespace, key, value, ttl)


def memory_recall(store: Store, arguments: Arguments, form: str) -> str:
    """Show the value of a key. A long value is cut; `offset` continues it.

    form: the form of the reply, `json` or `markdown`.
    """
    key = _key(arguments)
    namespace = _namespace(arguments)
    offset = _non_negative(arguments, "offset")
    entry = store.entries.get(namespace, key)
    if offset and offset >= len(entry.value):
        raise KvRefused(
            f"offset {offset} is past the end of the value ({len(entry.value)} characters)"
        )
    entry = store.entries.count(entry)
    # The key comes before the namespace in this reply.
    fields = {"key": key, **documents.entry(entry)}
    text_with_part = partial(_recalled_text, fields, entry.value, offset, form)

    # A part of more than LIMIT characters never fits, so no longer one need be tried.
    largest_part = min(len(entry.value) - offset, LIMIT + 1)
    return text_that_fits(largest_part, text_with_part, LIMIT)


def _recalled_text(
    fields: dict[str, Any], value: str, offset: int, form: str, shown_characters: int
) -> str:
    """Return the reply of memory_recall with a part of a value.

    fields: the fields of the entry, with the whole value.
    offset: where the part begins.
    form: `json` or `markdown`.
    shown_characters: how many characters the part has.
    """
    is_whole = shown_characters == len(value)
    if is_whole:
        return _text_of(fields, form)
    end = offset + shown_characters
    has_more = end < len(value)
    mark = ""
    # JSON has the key `truncated` instead of a mark.
    if has_more and form != "json":
        mark = _MARK.format(LIMIT)
    part = {
        **fields,
        "value": value[offset:end] + mark,
        "truncated": has_more,
        "value_length": len(value),
        "offset": offset,
        "next_offset": end if has_more else None,
    }
    return _text_of(part, form)


def memory_forget(store: Store, arguments: Arguments, form: str) -> str:
    """Delete a key.

    form: the form of the reply, `json` or `markdown`.
    """
    key = _key(arguments)
    namespace = _namespace(arguments)
    store.entries.remove(namespace, key)
    message = f"Deleted {_quoted(key, form)} from namespace {_quoted(namespace, form)}"
    return _success_text({"message": message, "key": key, "namespace": namespace}, form)


def memory_search(store: Store, arguments: Arguments, form: str) -> str:
    """Find entries with the words of a query.

    form: the form of the reply, `json` or `markdown`.
    """
    query = arguments["query"]
    if not query.strip():
        raise KvRefused("Query must not be empty")
    _check_unicode("Query", query)
    limit = _non_negative(arguments, "limit")
    offset = _non_negative(arguments, "offset")
    # Without a namespace, all of them are searched.
    namespace = _namespace(arguments) if "namespace" in arguments else None
    matching_entries, total = store.entries.search(
        query, namespace, min(limit, _MAX_RESULTS), offset
    )
    results = []
    for entry in matching_entries:
        document = documents.entry(entry)
        result = {name: document[name] for name in _RESULT_KEYS}
        results.append(result | {"value": _cut_value(entry.value, _VALUE_CHARACTERS)})
    fields: dict[str, Any] = {
        "query": _cut_value(query, _VALUE_CHARACTERS),
        "total_matches": total,
        "returned": len(results),
    }
    more_fields: Fields = {}
    if namespace is None:
        fields |= _unreadable_field(store.entries)
        is_last_page = offset + len(results) >= total
        if is_last_page and store.other_notes is not None:
            more_fields = _other_notes_field(store.other_notes, query, takes_any_word=not total)
    listed = Listed(results, total)
    return _list_reply(fields, "results", listed, offset=offset, form=form, more_fields=more_fields)


def _other_notes_field(memory: MemorySession, query: str, *, takes_any_word: bool) -> Fields:
    """Return a field with the notes of other projects that match a query. Empty if none match.

    takes_any_word: whether a note with only some of the words will do.
    """
    notes = notes_matching(memory, KV_PROJECT, query, takes_any_word=takes_any_word)
    if notes:
        return {"other_notes": [note.fields() for note in notes]}
    return {}


def memory_list_namespaces(store: Store, arguments: Arguments, form: str) -> str:
    """List the namespaces with their numbers of entries.

    form: the form of the reply, `json` or `markdown`.
    """
    offset = _non_negative(arguments, "offset")
    tallies = store.entries.namespaces()
    items = []
    for tally in tallies[offset:]:
        items.append(
            {
                "namespace": tally.namespace,
                "total_entries": tally.active + tally.expired,
                "active_entries": tally.active,
                "expired_entries": tally.expired,
            }
        )
    listed = Listed(items, len(tallies))
    fields = {"namespace_count": len(tallies), **_unreadable_field(store.entries)}
    more_fields: Fields = {}
    if store.other_notes is not None:
        more_fields = _other_projects_field(store.other_notes)
    return _list_reply(
        fields, "namespaces", listed, offset=offset, form=form, more_fields=more_fields
    )


def _other_projects_field(memory: MemorySession) -> Fields:
    """Return a field with the numbers of notes of other projects. Empty if there are none."""
    counts = counts_elsewhere(memory, KV_PROJECT)
    if not counts:
        return {}
    rows = [{"project": project, "notes": count} for project, count in counts.items()]
    return {"other_projects": rows}


def _unreadable_field(entries: Entries) -> Fields:
    """Return a field with the namespaces that cannot be read. Empty if all can be read."""
    if entries.unreadable:
        return {"unreadable": ", ".join(entries.unreadable)}
    return {}


def memory_clear_namespace(store: Store, arguments: Arguments, form: str) -> str:
    """Delete all entries of a namespace.

    form: the form of the reply, `json` or `markdown`.
    """
    if not arguments["namespace"].strip():
        raise KvRefused("Namespace must not be empty")
    namespace = _namespace(arguments)
    count = store.entries.clear(namespace)
    message = f"Cleared {count} entries from namespace {_quoted(namespace, form)}"
    return _success_text({"message": message, "namespace": namespace, "deleted_count": count}, form)


def memory_stats(store: Store, arguments: Arguments, form: str) -> str:
    """Show the numbers and the size of all entries.

    form: the form of the reply, `json` or `markdown`.
    """
    totals = store.entries.stats()
    fields = {
        "total_entries": totals.entries,
        "total_size_bytes": totals.size,
        "total_size_human": _size_text(totals.size),
        "namespace_count": totals.namespaces,
        "oldest_entry": seconds(totals.oldest) if totals.oldest else "N/A",
        "newest_entry": seconds(totals.newest) if totals.newest else "N/A",
        "storage_path": totals.place,
        "free_tier_limit": 1000,
        "pro_tier_limit": "unlimited",
        **_unreadable_field(store.entries),
    }
    return _success_text(fields, form)


def _size_text(size: int) -> str:
    """Return a number of bytes for people: `1.5 KB`. The largest unit is TB."""
    units = ("B", "KB", "MB", "GB", "TB")
    # Each unit is 2 to the power of 10 times the one before. So ten binary digits are one unit.
    power = 0
    if size:
        power = min((size.bit_length() - 1) // 10, len(units) - 1)
    return f"{size / 1024**power:.1f} {units[power]}"


def _key(arguments: Arguments) -> str:
    """Return the argument `key`. Raises KvRefused if it is blank or too long."""
    key: str = arguments["key"]
    _check_key(key)
    return key


def _check_key(key: str) -> None:
    """Raise KvRefused for a key that is blank or too long."""
    if not key.strip():
        raise KvRefused("Key must not be empty")
    _check_name("Key", key)


def _namespace(arguments: Arguments) -> str:
    """Return the argument `namespace`, or the default one. Raises KvRefused if it is too long."""
    namespace: str = arguments["namespace"] or DEFAULT_NAMESPACE
    _check_name("Namespace", namespace)
    return namespace


def _check_name(noun: str, name: str) -> None:
    """Raise KvRefused for a key or a namespace that is too long.

    noun: how the error names it, such as `Key`.
    """
    _check_unicode(noun, name)
    if len(name) > NAME_CHARACTERS:
        raise KvRefused(f"{noun} is too long ({len(name)} characters, at most {NAME_CHARACTERS})")


def _check_unicode(noun: str, text: str) -> None:
    """Raise KvRefused for a text with lone surrogates.

    noun: how the error names the text, such as `Key`.
    """
    if has_surrogate(text):
        raise KvRefused(f"{noun} is not valid Unicode text")


def _non_negative(arguments: Arguments, name: str) -> int:
    """Return the argument `name`, 0 if it is missing. Raises KvRefused if it is negative."""
    value = arguments.get(name, 0)
    if value < 0:
        raise KvRefused(f"{name} must not be negative")
    return value


def _success_text(fields: Fields, form: str) -> str:
    """Return a reply with these fields. If it is too long, its values are cut.

    form: the form of the reply, `json` or `markdown`.
    """
    text = _text_of(fields, form)
    if len(text) <= LIMIT:
        return text
    cut_fields = {name: _cut_value(value, _VALUE_CHARACTERS) for name, value in fields.items()}
    return _text_of(cut_fields, form)


def _text_of(fields: Fields, form: str) -> str:
    """Return the fields of a reply as text.

    form: `json`, or `markdown`: a line `**name:** value` for each field.
    """
    if form == "json":
        return json.dumps({**fields, "status": "ok"}, indent=2)
    lines = ["## ✅ Success"]
    for name, value in fields.items():
        if not isinstance(value, list):
            lines.append(f"**{name}:** {_shown_value(name, value)}")
            continue
        lines.append(f"**{name}:** {len(value)} items")
        for item in value:
            lines += [f"  - **{key}:** {_shown_value(key, inner)}" for key, inner in item.items()]
            lines.append("")
    return "\n".join(lines)


def _shown_value(field: str, value: Any) -> str:
    """Return the value of a field for Markdown. Only the value of an entry may have several lines."""
    if field == "value":
        return str(value)
    if field in _NAME_FIELDS:
        return _shown_name(value)
    return flat(str(value))


def _shown_name(name: str) -> str:
    """Return a key or a namespace on one line. Names that differ are shown differently.

    A name that is not one line of visible characters is shown as a JSON text. So is a name that
    begins with a quotation mark, because it could be taken for such a text. All others are shown as
    they are: a line break is `"a\\nb"`, and `a\\nb` is the name with a backslash.
    """
    is_plain = flat(name) == name and not name.startswith('"')
    if is_plain:
        return name
    return flat(json.dumps(name, ensure_ascii=False))


def _quoted(name: str, form: str) -> str:
    """Return a key or a namespace in single quotes, for the message of a reply.

    form: the form of the reply, `json` or `markdown`.
    """
    shown_name = name if form == "json" else _shown_name(name)
    return f"'{shown_name}'"


def _cut_value(value: Any, most_characters: int) -> Any:
    """Cut a text that is too long, and mark it as cut. Other values are returned as they are.

    most_characters: the length to which it is cut.
    """
    if not isinstance(value, str) or len(value) <= most_characters:
        return value
    return value[: most_characters - _MARK_CHARACTERS] + _MARK.format(most_characters)


def _list_reply(
    fields: Fields, name: str, listed: Listed, *, offset: int, form: str, more_fields: Fields
) -> str:
    """Reply with as many whole items of a list as fit, and the offset of the next ones.

    fields: other fields of the reply. A field `returned` is set to the number of items.
    name: the field of the list.
    listed: the items of the list.
    offset: how many items come before them.
    form: the form of the reply, `json` or `markdown`.
    more_fields: fields that follow the last item.
    """

    def text_with(part: Listed) -> str:
        """Return the reply with this part of the list."""
        reply = {**fields}
        if "returned" in fields:
            reply["returned"] = len(part)
        reply[name] = part.rows
        if part.next is not None:
            # Further items follow.
            reply |= {"truncated": True, "next_offset": part.next}
        else:
            reply |= more_fields
        return _text_of(reply, form)

    # A reply must have at least one item, or the next call would have the same offset. So an item
    # that does not fit alone is shortened.
    if listed.rows and len(text_with(listed.first(1, offset))) > LIMIT:
        first, *others = listed.rows
        short_first = {
            key: _cut_value(value, _TIGHT_VALUE_CHARACTERS) for key, value in first.items()
        }
        listed = Listed([short_first, *others], listed.total)
    return text_that_fits(len(listed), lambda count: text_with(listed.first(count, offset)), LIMIT)
