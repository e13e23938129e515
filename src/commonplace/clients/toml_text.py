"""Changes one table of a TOML text and not another byte. The table is a block of its own under a header."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from commonplace.clients.editing import BOM, Editor, Hint, Name, Tree, Unsure, check, newline

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class _TomlStatement(NamedTuple):
    """A header or a pair from `start` to `end`, without a comment behind it; the lines that are its reach to `next`.
    `keys`: a header's path, a pair's key."""

    start: int
    end: int
    next: int
    keys: tuple[str, ...]
    is_header: bool


class TomlEditor(Editor):
    """See Editor. A new table goes to the end; of one that is there, only pairs that differ change. Tables below go
    with it."""

    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        table: Any = _load(text)
        for key in (*path, name):
            if not isinstance(table, dict):
                raise Unsure("something else than a table has that name")
            if key not in table:
                return None
            table = table[key]
        return table

    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        assert isinstance(name, str)
        wanted, end, there = _load(text), newline(text), self.find(text, path, name)
        _at(wanted, (*path, name)).update(value)
        if there is None:
            head = ".".join(_key(each) for each in (*path, name))
            block = end.join([f"[{head}]", *(f"{_key(key)} = {_inline(each)}" for key, each in value.items())])
            started, closed = text.removeprefix(BOM) != "", text.endswith("\n") or not text.removeprefix(BOM)
            text += (end if started else "") + ("" if closed else end) + block + (end if closed else "")
        for key in reversed(value if there is not None else ()):
            header, *pairs = _table(text, (*path, name))
            line = f"{_key(key)} = {_inline(value[key])}"
            pair = next((each for each in pairs if each.keys == (key,)), None)
            if pair is None:
                text = text[: header.end] + end + line + text[header.end :]
            elif there[key] != value[key]:
                text = text[: pair.start] + line + text[pair.end :]
        check(_tree(_load(text)), _tree(wanted))
        return text, Hint()

    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        assert isinstance(name, str)
        wanted, end, whole = _load(text), newline(text), (*path, name)
        _table(text, whole)
        ours, spans = False, []
        for each in _statements(text):
            ours = each.keys[: len(whole)] == whole if each.is_header else ours
            if ours and each.is_header:
                spans.append((each.start, each.next))
            elif ours:
                spans[-1] = spans[-1][0], each.next
        for at, stop in reversed(spans):
            start = text.rfind("\n", 0, at) + 1 or text.startswith(BOM)
            text = text[: start - _gap(text, start, stop, end)] + text[stop:]
        del _at(wanted, path)[name]
        for depth in range(len(path), 0, -1):  # a table that only its child had made
            if not _at(wanted, path[:depth]) and self.find(text, path[: depth - 1], path[depth - 1]) is None:
                del _at(wanted, path[: depth - 1])[path[depth - 1]]
        check(_tree(_load(text)), _tree(wanted))
        return text


def _gap(text: str, start: int, stop: int, end: str) -> int:
    """The length of the blank line before a block that goes, as `put` makes it."""
    before = text[:start]
    if stop == len(text) and not text.endswith("\n"):
        return 2 * len(end) if before.endswith(2 * end) else 0
    if stop < len(text) and not text[stop:].startswith(end):
        return 0
    return len(end) if before.endswith("\n" + end) or before.removeprefix(BOM) == end else 0


def _at(tree: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The table at `path`, made if it is missing."""
    for key in path:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise Unsure(f"{key} is no table")
    return tree


def _table(text: str, path: Sequence[str]) -> list[_TomlStatement]:
    """The header of a table and its pairs. Raises Unsure when it stands in another form."""
    found: list[_TomlStatement] = []
    for each in _statements(text):
        if each.is_header and found:
            break
        is_it = each.is_header and each.keys == tuple(path) and text[each.start : each.start + 2] != "[["
        found += [each] if is_it or found else []
    if not found:
        raise Unsure(f"{'.'.join(path)} has no header [{'.'.join(path)}] of its own")
    return found


def _statements(text: str) -> Iterator[_TomlStatement]:
    """What stands in `text`: each line that is not blank, with those that follow until they are TOML together."""
    at, raw = len(BOM) if text.startswith(BOM) else 0, ""
    start = at
    for line in re.findall(r"[^\n]*\n|[^\n]+", text[at:]):
        if not raw and (not line.strip() or line.lstrip().startswith("#")):
            at += len(line)
            continue
        start = start if raw else at + len(line) - len(line.lstrip())
        raw += line
        at += len(line)
        if (keys := _keys(raw)) is not None:
            cuts = (found.start() for found in re.finditer("#", raw))
            end = next((cut for cut in cuts if _keys(raw[:cut]) is not None), len(raw))
            yield _TomlStatement(start, start + len(raw[:end].strip()), at, keys, raw.lstrip().startswith("["))
            raw = ""


def _keys(raw: str) -> tuple[str, ...] | None:
    """The path of a header, or the first key of a pair; None for what is not TOML."""
    import tomllib  # 5 ms, which the help of all commands need not take

    try:
        value: Any = tomllib.loads(raw)
    except (ValueError, RecursionError):
        return None
    found: list[str] = []
    while isinstance(value, (dict, list)) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        key, value = next(iter(value.items()))
        found.append(key)
        if not raw.lstrip().startswith("["):
            break
    return tuple(found)


def _load(text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text.removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        raise Unsure(f"it is not TOML: {error}") from None


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _inline(name)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_inline(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _tree(value: Any) -> Tree:
    """Comparable, also when a number is NaN."""
    return json.dumps(value, sort_keys=True, default=repr)
