"""Changes one member of a JSON text, with or without comments and trailing commas, and not another byte."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from commonplace.clients.spans import BOM, NO_HINT, Hint, Name, Tree, Unsure, changed, check, cut, newline

_BLANK = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.*?)\*/)*+")
_SCALAR = re.compile(
    r'"(?:[^"\\\x00-\x1f]|\\.)*+"|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])'
)
_INDENT = re.compile(r"\n([ \t]+)[^\s/]")
_SPACE = " \t\r\n"
_DEEPEST = 100


@dataclass(slots=True)
class Node:
    """A value from `start` to `end`. `kind` is `{`, `[` or, for a scalar, empty."""

    start: int
    end: int = 0
    kind: str = ""
    items: list[Member] = field(default_factory=list)


@dataclass(slots=True)
class Member:
    """A member that begins at `start`, with the place of the comma behind it, -1 for none."""

    key: str | None
    start: int
    node: Node
    comma: int = -1


def find(text: str, path: Sequence[str], name: Name) -> Any:
    """See spans."""
    root = _parse(text)
    node, missing = _container(text, root, path)
    at = None if node is None or missing else _position(text, node, name)
    return None if at is None or node is None else _plain(text, node.items[at].node)


def put(text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
    """See spans. A member that is there is replaced where it stands."""
    root, end = _parse(text), newline(text)
    if root is None:
        if text.strip(BOM + _SPACE):
            raise Unsure("it holds nothing but comments")
        made = _nested([*path, name], value)
        start = BOM if text.startswith(BOM) else ""
        return start + _dump(made, "", "  ", end) + end, Hint(len(path) + 1, text[len(start) :])
    node, missing = _container(text, root, path)
    assert node is not None
    indent = _INDENT.search(text)
    unit = indent[1] if indent else "  "
    at = None if missing else _position(text, node, name)
    hint = Hint(len(missing))
    key: str | None
    if at is not None:
        item = node.items[at]
        key, inline = item.key, "\n" not in text[node.start : node.end]
        shown = _dump(value, _line_indent(text, item.start), unit, end, inline=inline)
        new = text[: item.node.start] + shown + text[item.node.end :]
    else:
        key = missing[0] if missing else name if isinstance(name, str) else None
        value = _nested([*missing[1:], name], value) if missing else value
        new, blank = _add(text, node, key, value, unit, end)
        hint = hint._replace(inner=blank)
    wanted = json.dumps(value)
    member = (key, _tree(wanted, _parse(wanted)))
    check(_tree(new, _parse(new)), changed(_tree(text, root), path[: len(path) - len(missing)], at, member))
    return new, hint


def drop(text: str, path: Sequence[str], name: Name, hint: Hint = NO_HINT) -> str:
    """See spans. Containers that `put` made go too when nothing else is in them."""
    root = _parse(text)
    node, missing = _container(text, root, path)
    at = None if node is None or missing else _position(text, node, name)
    if node is None or at is None:
        return text
    text = _remove(text, path, node, at)
    for level in range(min(hint.made, len(path))):
        place = path[: len(path) - level]
        child, _ = _container(text, _parse(text), place)
        assert child is not None
        if text[child.start + 1 : child.end - 1].strip(_SPACE):
            return text
        parent, _ = _container(text, _parse(text), place[:-1])
        assert parent is not None
        at = _position(text, parent, place[-1])
        assert at is not None
        text = _remove(text, place[:-1], parent, at)
    left, _ = _container(text, _parse(text), path[: max(0, len(path) - hint.made)])
    assert left is not None
    if hint.inner is None or text[left.start + 1 : left.end - 1].strip(_SPACE):
        return text
    if hint.made > len(path):
        return (BOM if text.startswith(BOM) else "") + hint.inner
    return text[: left.start + 1] + hint.inner + text[left.end - 1 :]


def _nested(names: Sequence[Name], value: Any) -> Any:
    for name in reversed(names):
        value = {name: value} if isinstance(name, str) else [value]
    return value


def _dump(value: Any, indent: str, unit: str, end: str, *, inline: bool = False) -> str:
    shown = json.dumps(value, ensure_ascii=False, indent=None if inline else unit)
    return shown.replace("\n", end + indent)


def _line_indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line."""
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _add(text: str, node: Node, key: str | None, value: Any, unit: str, end: str) -> tuple[str, str | None]:
    """The text with one more member, and the blanks between the brackets if there was nothing else."""
    inner, last = text[node.start + 1 : node.end - 1], node.items[-1] if node.items else None
    empty, is_root = not inner.strip(_SPACE), not text[: node.start].strip(BOM + _SPACE)
    inline = "\n" not in (text.strip(_SPACE) if empty else inner) and not (empty and is_root)
    outer = _line_indent(text, node.start)
    own = text[text.rfind("\n", 0, last.start) + 1 : last.start] if last else outer + unit
    if own.strip(" \t"):  # it does not begin its line
        own = outer + unit
    label = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    member = label + _dump(value, own, unit, end, inline=inline)
    gap = ("" if empty else " ") if inline else end + own
    if empty:
        closing = "" if inline else end + outer
        return text[: node.start + 1] + gap + member + closing + text[node.end - 1 :], inner
    point = len(text[: node.end - 1].rstrip(_SPACE))
    if last is None or last.comma >= 0:
        return text[:point] + gap + member + ("," if last else "") + text[point:], None
    comma = last.node.end
    return text[:comma] + "," + text[comma:point] + gap + member + text[point:], None


def _remove(text: str, path: Sequence[str], node: Node, at: int) -> str:
    """The text without a member of the container `node` at `path`."""
    item, wanted = node.items[at], changed(_tree(text, _parse(text)), path, at, None)
    before = len(text[: item.start].rstrip(_SPACE))
    if at + 1 < len(node.items):
        behind = len(text) - len(text[item.comma + 1 :].lstrip(_SPACE))
        tries = [[(item.start, item.node.end), (item.comma, behind)]]
    else:
        comma = item.comma if item.comma >= 0 or at == 0 else node.items[at - 1].comma
        commas = [(comma, comma + 1)] if comma >= 0 else []
        tries = [[(before, item.node.end), *commas], [(item.start, item.node.end), *commas]]
        if len(node.items) == 1 and not (text[node.start + 1 : item.start] + text[item.node.end : node.end - 1]).strip(
            _SPACE + ","
        ):
            tries.insert(0, [(node.start + 1, node.end - 1)])
    for spans in tries:
        new = cut(text, *spans)
        try:
            check(_tree(new, _parse(new)), wanted)
        except Unsure:
            continue
        return new
    raise Unsure("the entry cannot be taken out alone")


def _parse(text: str) -> Node | None:
    """The value in `text`, None when there is none. Raises Unsure."""
    at = _skip(text, len(BOM) if text.startswith(BOM) else 0)
    if at == len(text):
        return None
    root = _value(text, at, 0)
    if (at := _skip(text, root.end)) != len(text):
        raise _not_understood(text, at)
    return root


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _not_understood(text: str, at: int) -> Unsure:
    return Unsure(f"line {text.count(chr(10), 0, at) + 1} is not JSON")


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise Unsure("it is nested too deeply")
    if text[at : at + 1] in ("{", "["):
        return _members(text, at, depth)
    match = _SCALAR.match(text, at)
    if match is None:
        raise _not_understood(text, at)
    return Node(at, match.end())


def _members(text: str, at: int, depth: int) -> Node:
    node = Node(at, kind=text[at])
    closing = "}" if node.kind == "{" else "]"
    at = _skip(text, at + 1)
    while text[at : at + 1] != closing:
        if node.items and node.items[-1].comma < 0:
            raise _not_understood(text, at)
        start, key = at, None
        if node.kind == "{":
            match = _SCALAR.match(text, at)
            colon = _skip(text, match.end()) if match else at
            if match is None or text[at] != '"' or text[colon : colon + 1] != ":":
                raise _not_understood(text, at)
            key, at = _text(match[0]), _skip(text, colon + 1)
        item = Member(key, start, _value(text, at, depth + 1))
        node.items.append(item)
        at = _skip(text, item.node.end)
        if text[at : at + 1] == ",":
            item.comma, at = at, _skip(text, at + 1)
    node.end = at + 1
    return node


def _text(quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        raise Unsure(f"{quoted} is not JSON") from None


def _container(text: str, root: Node | None, path: Sequence[str]) -> tuple[Node | None, Sequence[str]]:
    """The innermost container on the way to `path` that is there, and the names below it that are missing."""
    node = root
    for depth, name in enumerate(path):
        at = None if node is None else _position(text, node, name)
        if node is None or at is None:
            return node, path[depth:]
        node = node.items[at].node
    return node, ()


def _position(text: str, node: Node, name: Name) -> int | None:
    """Where in `node` the member is. Raises Unsure when there are two, or `node` is of another kind."""
    wanted = "{" if isinstance(name, str) else "["
    if node.kind != wanted:
        raise Unsure(f"line {text.count(chr(10), 0, node.start) + 1} has something else than {wanted}")
    if isinstance(name, str):
        found = [at for at, item in enumerate(node.items) if item.key == name]
        if len(found) > 1:
            raise Unsure(f'"{name}" stands there twice')
    else:
        found = [at for at, item in enumerate(node.items) if name(_plain(text, item.node))]
    return found[0] if found else None


def _plain(text: str, node: Node) -> Any:
    """The Python value."""
    if node.kind == "{":
        return {item.key: _plain(text, item.node) for item in node.items}
    if node.kind == "[":
        return [_plain(text, item.node) for item in node.items]
    try:
        return json.loads(text[node.start : node.end])
    except ValueError:
        raise _not_understood(text, node.start) from None


def _tree(text: str, node: Node | None) -> Tree:
    if node is None:
        return None
    if node.kind:
        return node.kind, [(item.key, _tree(text, item.node)) for item in node.items]
    raw = text[node.start : node.end]
    return json.dumps(_text(raw)) if raw[0] == '"' else raw
