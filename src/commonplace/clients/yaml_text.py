"""Changes one member of a block mapping or one item of a block list in a YAML text, and not another byte."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from commonplace.clients.editing import BOM, Document, Editor, Hint, Member, Name, Node, Unsure, changed, check, newline


class YamlEditor(Editor):
    """See Editor. `path` is one key; a new member goes behind the last one. Without a hint a key that has nothing left
    goes too."""

    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        return _read(text.removeprefix(BOM)).find(path, name)

    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        (key,), end, start = path, newline(text), BOM if text.startswith(BOM) else ""
        body = text.removeprefix(BOM)
        read, lines = _read(body), _block(name, value)
        fresh = _read(end.join(lines)).tree[0]
        at = None if read.root is None else read.position(read.root, key)
        node = None if read.root is None or at is None else read.root.items[at].node
        there = None if node is None else read.position(node, name)
        made = (key, (fresh,) if isinstance(name, str) else [fresh])
        indented = ["  " + line for line in lines]
        if node is None:
            if read.root is not None and read.root.raw.flow_style:
                raise Unsure("it is written in brackets")
            new = _insert(body, len(body), [f"{key}:", *indented], end)
            wanted = changed(read.tree or (), (), None, made)
        elif node.kind == "null":
            if written := body[node.start : node.end]:
                raise Unsure(f"{key} is written as {written}")
            new = _insert(body, _line_end(body, node.end), indented, end)
            wanted = changed(read.tree, (), at, made)
        elif node.raw.flow_style:
            last = node.items[-1].node.end if node.items else node.start + 1
            if there is not None or body[last : node.end - 1].strip():
                raise Unsure(f"{key} is written in brackets{'' if there else ' and ends in a comma or a comment'}")
            inner = json.dumps({name: value} if isinstance(name, str) else [value], ensure_ascii=False)[1:-1]
            new = body[:last] + (", " if node.items else "") + inner + body[last:]
            wanted = changed(read.tree, path, None, fresh)
        else:
            lines = [" " * node.raw.start_mark.column + line for line in lines]
            if there is None:
                new = _insert(body, _line_end(body, node.end), lines, end)
            else:
                first, last = _lines(body, node.items[there])
                new = body[:first] + end.join(lines) + (end if body[first:last].endswith("\n") else "") + body[last:]
            wanted = changed(read.tree, path, there, fresh)
        check(_read(new).tree, wanted)
        return start + new, Hint(int(node is None))

    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        (key,), start, body, end = path, BOM if text.startswith(BOM) else "", text.removeprefix(BOM), newline(text)
        read = _read(body)
        if (found := read.place(path, name)) is None or read.root is None:
            return text
        node, index = found
        if node.raw.flow_style:
            first = node.items[index - 1].node.end if index else node.start + 1
            last = node.items[1].start if not index and len(node.items) > 1 else node.items[index].node.end
        else:
            first, last = _lines(body, node.items[index])
        wanted = changed(read.tree, path, index, None)
        if len(node.items) == 1 and not node.raw.flow_style:
            at = next(number for number, each in enumerate(read.root.items) if each.key == key)
            wanted = changed(read.tree, (), at, (key, ("tag:yaml.org,2002:null", "")))
            if hint is None or hint.made:
                head = read.root.items[at].start
                line = _line_end(body, head + 1)
                if body[head:line].strip().rstrip(": ").strip("\"'") == key and not body[line:first].strip():
                    first, wanted = head, changed(read.tree, (), at, None)
        if last == len(body) and not body.endswith("\n") and body[:first].endswith(end):
            first -= len(end)
        new = body[:first] + body[last:]
        check(_read(new).tree or (), wanted)
        return start + new


def _read(text: str) -> Document:
    """The document in `text`. Raises Unsure."""
    import yaml

    def value(node: Node) -> Any:
        try:
            return yaml.constructor.SafeConstructor().construct_document(node.raw)
        except yaml.YAMLError:
            return {}  # with tags of somebody else's: none of ours

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        node = None if root is None else _node(root)
        if node is None or (node.kind == "null" and not node.raw.value):
            return Document(text, None, None, value)
        if node.kind == "null":
            raise Unsure("it is no mapping")
        return Document(text, node, _tree(node), value)
    except (yaml.YAMLError, RecursionError) as error:
        raise Unsure(f"it is not one YAML document: {' '.join(str(error).split())}") from None


def _node(found: Any, key: Any = None) -> Node:
    """A node of the library, the value of `key`, as ours. A block's own end mark lies behind the comments that follow
    it."""
    kind = {"mapping": "{", "sequence": "["}.get(found.id, "null" if found.tag.endswith(",2002:null") else "")
    node = Node(found.start_mark.index, found.end_mark.index, kind, raw=found)
    for each in found.value if kind in ("{", "[") else ():
        name, inner = each if kind == "{" else (None, each)
        begin = (name or inner).start_mark.index
        node.items.append(Member(name and str(name.value), begin, _node(inner, name)))
    if node.items and not found.flow_style:
        node.end = node.items[-1].node.end
    elif found.id == "scalar" and not found.value and found.style is None and key is not None:
        node.end = max(key.end_mark.index + 1, node.end)
    return node


def _tree(node: Node) -> Any:
    if node.kind == "{":
        return tuple((each.key, _tree(each.node)) for each in node.items)
    return [_tree(each.node) for each in node.items] if node.kind == "[" else (node.raw.tag, node.raw.value)


def _line_end(text: str, at: int) -> int:
    """The beginning of the next line; `at` itself when it is one."""
    if at and text[at - 1] == "\n":
        return at
    return text.find("\n", at) + 1 or len(text)


def _lines(text: str, member: Member) -> tuple[int, int]:
    """From where to where a member of a block stands, in whole lines."""
    first = text.rfind("\n", 0, member.start) + 1
    if text[first : member.start].strip(" -"):
        raise Unsure("the entry shares its line with another")
    return first, _line_end(text, member.node.end)


def _insert(text: str, at: int, lines: Sequence[str], end: str) -> str:
    """The text with more lines; it ends in a line break if it did before."""
    new = end.join(lines)
    if text[:at] and not text[:at].endswith("\n"):
        return text[:at] + end + new + text[at:]
    return text[:at] + new + end + text[at:]


def _block(name: Name, value: dict[str, Any]) -> list[str]:
    """The lines of a member."""
    pairs = [f"{key}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items()]
    if isinstance(name, str):
        return [f"{name}:", *("  " + pair for pair in pairs)]
    return ["- " + pairs[0], *("  " + pair for pair in pairs[1:])]
