"""Changes one member of a block mapping or one item of a block list in a YAML text, and not another byte."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from commonplace.clients.spans import BOM, Hint, Name, Tree, Unsure, changed, check, cut, newline

_EMPTIED = Hint(1)


def find(text: str, path: Sequence[str], name: Name) -> Any:
    """See spans."""
    (key,) = path
    container = _member(_root(text), key)
    found = None if container is None else _child(container[1], name)
    return None if found is None else _plain(found[1])


def put(text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
    """See spans. `path` is one key; the member goes behind the last one of its container."""
    (key,), end, start = path, newline(text), BOM if text.startswith(BOM) else ""
    root, body = _root(text), text.removeprefix(BOM)
    container = _member(root, key)
    old = _tree(root)
    shown = _block(name, value, end)
    fresh = _tree(_root(end.join(shown)))[1][0]
    at, node = container or (0, None)
    there, place, hint = None if node is None else _child(node, name), _tree_of(key), Hint()
    made = ("{" if isinstance(name, str) else "[", [fresh])
    if node is None:
        if root is not None and root.flow_style:
            raise Unsure("it is written in brackets")
        new = _insert(body, len(body), [f"{key}:", *("  " + line for line in shown)], end)
        wanted, hint = changed(old or ("{", []), (), None, (place, made)), Hint(1)
    elif there is None and _is_null(node):
        if body[node.start_mark.index : node.end_mark.index]:
            raise Unsure(f"{key} is written as {body[node.start_mark.index : node.end_mark.index]}")
        line = _line_end(body, root.value[at][0].end_mark.index)
        new = _insert(body, line, ["  " + each for each in shown], end)
        wanted = changed(old, (), at, (place, made))
    elif node.flow_style:
        if there is not None:
            raise Unsure(f"{key} is written in brackets")
        last = _last(node.value[-1]) if node.value else node.start_mark.index + 1
        if body[last : node.end_mark.index - 1].strip():
            raise Unsure(f"{key} is written in brackets and ends in a comma or a comment")
        inner = json.dumps({name: value} if isinstance(name, str) else [value], ensure_ascii=False)[1:-1]
        new = body[:last] + (", " if node.value else "") + inner + body[last:]
        wanted = changed(old, (place,), None, fresh)
    else:
        lines = [" " * node.start_mark.column + line for line in shown]
        if there is None:
            new = _insert(body, _line_end(body, _last(node.value[-1])), lines, end)
        else:
            first, last = _lines(body, node, there[0])
            closed = body[first:last].endswith("\n")
            new = body[:first] + end.join(lines) + (end if closed else "") + body[last:]
        wanted = changed(old, (place,), there[0] if there else None, fresh)
    check(_tree(_root(new)), wanted)
    return start + new, hint


def drop(text: str, path: Sequence[str], name: Name, hint: Hint = _EMPTIED) -> str:
    """See spans. Without a hint a key that has nothing left goes too."""
    (key,), start, body, end = path, BOM if text.startswith(BOM) else "", text.removeprefix(BOM), newline(text)
    root = _root(text)
    container = _member(root, key)
    found = None if container is None else _child(container[1], name)
    if container is None or found is None:
        return text
    (at, node), (index, _), old = container, found, _tree(root)
    if node.flow_style:
        first = _last(node.value[index - 1]) if index else node.start_mark.index + 1
        last = _last(node.value[index])
        if not index and len(node.value) > 1:
            last = _first(node.value[1]).start_mark.index
    else:
        first, last = _lines(body, node, index)
    wanted = changed(old, (_tree_of(key),), index, None)
    if len(node.value) == 1 and not node.flow_style:
        wanted = changed(old, (), at, (_tree_of(key), ("tag:yaml.org,2002:null", "")))
        if hint.made:
            name_node = root.value[at][0]
            line = _line_end(body, name_node.end_mark.index)
            if not body[name_node.end_mark.index + 1 : line].strip() and not body[line:first].strip():
                first, wanted = name_node.start_mark.index, changed(old, (), at, None)
    if last == len(body) and not body.endswith("\n") and body[:first].endswith(end):
        first -= len(end)
    new = cut(body, (first, last))
    check(_tree(_root(new)) or ("{", []), wanted)
    return start + new


def _root(text: str) -> Any:
    """The document's node, None for an empty one. Raises Unsure."""
    import yaml

    try:
        root = yaml.compose(text.removeprefix(BOM), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise Unsure(f"it is not one YAML document: {' '.join(str(error).split())}") from None
    return None if root is None or (_is_null(root) and not root.value) else root


def _member(root: Any, key: str) -> tuple[int, Any] | None:
    if root is None:
        return None
    if root.id != "mapping":
        raise Unsure("it is no mapping")
    return _only(root, lambda pair: pair[0].value == key, key)


def _child(node: Any, name: Name) -> tuple[int, Any] | None:
    if _is_null(node):
        return None
    if node.id != ("mapping" if isinstance(name, str) else "sequence"):
        raise Unsure("its entries are of another kind")
    if isinstance(name, str):
        return _only(node, lambda pair: pair[0].value == name, name)
    return next(((at, item) for at, item in enumerate(node.value) if name(_plain(item))), None)


def _only(node: Any, is_it: Any, key: str) -> tuple[int, Any] | None:
    found = [(at, pair[1]) for at, pair in enumerate(node.value) if is_it(pair)]
    if len(found) > 1:
        raise Unsure(f'"{key}" stands there twice')
    return found[0] if found else None


def _is_null(node: Any) -> bool:
    return bool(node.id == "scalar" and node.tag == "tag:yaml.org,2002:null")


def _plain(node: Any) -> Any:
    import yaml

    try:
        return yaml.constructor.SafeConstructor().construct_document(node)
    except yaml.YAMLError:
        return {}  # with tags of somebody else's: none of ours


def _first(member: Any) -> Any:
    return member[0] if isinstance(member, tuple) else member


def _last(member: Any) -> int:
    """Where the last character of a member ends; a block's own end mark lies behind the comments that follow it."""
    node = member[1] if isinstance(member, tuple) else member
    if node.id == "scalar" or node.flow_style or not node.value:
        if node.id == "scalar" and not node.value and isinstance(member, tuple) and node.style is None:
            return max(int(member[0].end_mark.index) + 1, int(node.end_mark.index))
        return int(node.end_mark.index)
    return _last(node.value[-1])


def _line_end(text: str, at: int) -> int:
    """The beginning of the next line; `at` itself when it is one."""
    if at and text[at - 1] == "\n":
        return at
    return text.find("\n", at) + 1 or len(text)


def _lines(text: str, node: Any, index: int) -> tuple[int, int]:
    """From where to where a member of a block stands, in whole lines."""
    first = text.rfind("\n", 0, _first(node.value[index]).start_mark.index) + 1
    if text[first : _first(node.value[index]).start_mark.index].strip(" -"):
        raise Unsure("the entry shares its line with another")
    return first, _line_end(text, _last(node.value[index]))


def _insert(text: str, at: int, lines: Sequence[str], end: str) -> str:
    """The text with more lines; it ends in a line break if it did before."""
    new = end.join(lines)
    if text[:at] and not text[:at].endswith("\n"):
        return text[:at] + end + new + text[at:]
    return text[:at] + new + end + text[at:]


def _block(name: Name, value: dict[str, Any], end: str) -> list[str]:
    """The lines of a member."""
    pairs = [f"{key}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items()]
    if isinstance(name, str):
        return [f"{name}:", *("  " + pair for pair in pairs)]
    return ["- " + pairs[0], *("  " + pair for pair in pairs[1:])]


def _tree_of(key: str) -> Tree:
    return "tag:yaml.org,2002:str", key


def _tree(node: Any) -> Tree:
    if node is None:
        return None
    if node.id == "scalar":
        return node.tag, node.value
    if node.id == "mapping":
        return "{", [(_tree(key), _tree(value)) for key, value in node.value]
    return "[", [(None, _tree(item)) for item in node.value]
