"""Changes one table of a TOML text and not another byte. The table is a block of its own under a header."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from commonplace.clients.spans import BOM, NO_HINT, Hint, Name, Tree, Unsure, check, cut, newline

_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_TOKEN = re.compile(
    r'"""(?s:(?:[^\\]|\\.)*?)"{3,5}|\'\'\'(?s:.*?)\'{3,5}|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*+|[^"\'#]'
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Statement(NamedTuple):
    """A header or a pair, from `start` to `end`, comments behind it left out. `keys`: a header's path, a pair's key."""

    start: int
    end: int
    keys: tuple[str, ...]
    is_header: bool


def find(text: str, path: Sequence[str], name: Name) -> Any:
    """See spans."""
    table: Any = _load(text)
    for key in (*path, name):
        if not isinstance(table, dict):
            raise Unsure("something else than a table has that name")
        if key not in table:
            return None
        table = table[key]
    return table


def put(text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
    """See spans. A new table goes to the end of the text; of one that is there, only pairs that differ change."""
    assert isinstance(name, str)
    wanted, end, there = _load(text), newline(text), find(text, path, name)
    _at(wanted, path).setdefault(name, {}).update(value)
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


def drop(text: str, path: Sequence[str], name: Name, hint: Hint = NO_HINT) -> str:
    """See spans. Its tables below go with it."""
    assert isinstance(name, str)
    if find(text, path, name) is None:
        return text
    wanted, end, whole = _load(text), newline(text), (*path, name)
    _table(text, whole)
    statements, spans = [*_statements(text)], []
    for at, each in enumerate(statements):
        if each.is_header and each.keys[: len(whole)] == whole:
            last = at
            while last + 1 < len(statements) and not statements[last + 1].is_header:
                last += 1
            start, stop = text.rfind("\n", 0, each.start) + 1, text.find("\n", statements[last].end) + 1
            spans.append((start or text.startswith(BOM), stop or len(text)))
    for start, stop in reversed(spans):
        start -= _gap(text, start, stop, end)
        text = cut(text, (start, stop))
    del _at(wanted, path)[name]
    for depth in range(len(path), 0, -1):  # a table that only its child had made
        if not _at(wanted, path[:depth]) and find(text, path[: depth - 1], path[depth - 1]) is None:
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


def _table(text: str, path: Sequence[str]) -> list[Statement]:
    """The header of a table and its pairs. Raises Unsure when it stands in another form."""
    statements = [*_statements(text)]
    for at, each in enumerate(statements):
        if each.is_header and each.keys == tuple(path) and text[each.start : each.start + 2] != "[[":
            rest = statements[at + 1 :]
            last = next((index for index, other in enumerate(rest) if other.is_header), len(rest))
            return [each, *rest[:last]]
    raise Unsure(f"{'.'.join(path)} has no header [{'.'.join(path)}] of its own")


def _statements(text: str) -> Iterator[Statement]:
    at = len(BOM) if text.startswith(BOM) else 0
    while True:
        blank = _BLANK.match(text, at)
        start = at = blank.end() if blank else at
        if at == len(text):
            return
        depth, end = 0, at
        while at < len(text) and (depth or text[at] not in "\n#"):
            token = _TOKEN.match(text, at)
            if token is None:
                raise Unsure(f"line {text.count(chr(10), 0, at) + 1} is not TOML")
            depth += (token[0] in "[{") - (token[0] in "]}")
            at = token.end()
            end = end if token[0].isspace() else at
        raw = text[start:end]
        yield Statement(start, end, _keys(raw), raw.startswith("["))


def _keys(raw: str) -> tuple[str, ...]:
    """The path of a header, or the first key of a pair."""
    value: Any = _load(raw)
    found = []
    while isinstance(value, (dict, list)) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        key, value = next(iter(value.items()))
        found.append(key)
        if not raw.startswith("["):
            break
    return tuple(found)


def _load(text: str) -> dict[str, Any]:
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
    if isinstance(value, dict):
        return {key: _tree(each) for key, each in value.items()}
    return [_tree(each) for each in value] if isinstance(value, list) else repr(value)
