"""Replies of the key-value tools: one text, in markdown or JSON, never longer than the limit (contract 004, 2, 5)."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Fields = Mapping[str, Any]

LIMIT = 25_000
"""Characters of a reply at most."""
SHOWN, TIGHT = 500, 100
_MARK = "... [TRUNCATED at {} chars]"
_MARK_ROOM = 30


def success(fields: Fields, form: str) -> str:
    """The reply with these fields; texts in it are shortened if it would be too long."""
    text = _worded(fields, form)
    if len(text) > LIMIT:
        text = _worded({name: cut(value, SHOWN) for name, value in fields.items()}, form)
    return text


def failure(message: str, form: str) -> str:
    """The reply that says what went wrong."""
    if form == "json":
        return json.dumps({"status": "error", "error": message, "isError": True}, indent=2)
    return f"## ❌ Error\n**{message}**"


def _worded(fields: Fields, form: str) -> str:
    if form == "json":
        return json.dumps({**fields, "status": "ok"}, indent=2)
    lines = ["## ✅ Success"]
    for name, value in fields.items():
        if not isinstance(value, list):
            lines.append(f"**{name}:** {value}")
            continue
        lines.append(f"**{name}:** {len(value)} items")
        for item in value:
            lines += [*(f"  - **{key}:** {inner}" for key, inner in item.items()), ""]
    return "\n".join(lines)


def cut(value: Any, most: int) -> Any:
    """A text longer than `most` as its beginning and a mark; anything else as it is."""
    if not isinstance(value, str) or len(value) <= most:
        return value
    return value[: most - _MARK_ROOM] + _MARK.format(most)


def piece(fields: Fields, offset: int, form: str) -> str:
    """The reply to a recall: the value from `offset` on, as much of it as fits, and how to go on."""
    value: str = fields["value"]
    rest = len(value) - offset
    if rest <= LIMIT:
        whole = dict(fields) if not offset else _part(fields, offset, rest, form)
        text = _worded(whole, form)
        if len(text) <= LIMIT:
            return text
    return _longest(min(rest - 1, LIMIT), lambda size: _worded(_part(fields, offset, size, form), form))


def _part(fields: Fields, offset: int, size: int, form: str) -> Fields:
    value: str = fields["value"]
    end = offset + size
    is_cut = end < len(value)
    mark = _MARK.format(LIMIT) if is_cut and form != "json" else ""
    paging = {
        "truncated": is_cut, "value_length": len(value), "offset": offset, "next_offset": end if is_cut else None,
    }  # fmt: skip
    return {**fields, "value": value[offset:end] + mark, **paging}


def page(fields: Fields, name: str, items: Sequence[Fields], offset: int, form: str) -> str:
    """The reply with a list: as many whole items as fit, and how to go on. `returned`, if a field, counts them."""

    def text(size: int) -> str:
        counted = {"returned": size} if "returned" in fields else {}
        more = {"truncated": True, "next_offset": offset + size} if size < len(items) else {}
        return _worded({**fields, **counted, name: list(items[:size]), **more}, form)

    if items and len(text(1)) > LIMIT:  # an item too long by itself would never be passed
        items = [{key: cut(value, TIGHT) for key, value in items[0].items()}, *items[1:]]
    whole = text(len(items))
    return whole if len(whole) <= LIMIT else _longest(len(items) - 1, text)


def _longest(most: int, text: Callable[[int], str]) -> str:
    """`text(size)` for the greatest size up to `most` that is within the limit; it grows with the size."""
    return text(max(bisect_right(range(most + 1), LIMIT, key=lambda size: len(text(size))) - 1, 0))
