"""Changes one table of a TOML text, which is a block of its own under a header, one member of a
block mapping of a YAML text, or one item of a block list there, and not another byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from memoranda.clients.editing import (
    BOM,
    Document,
    Editor,
    Hint,
    Member,
    Name,
    Node,
    Unsure,
    changed,
    check,
    newline,
)

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class _TomlStatement(NamedTuple):
    """A header or a pair from `start` to `end`, without a comment behind it; the lines that are its
    reach to `next`.
    `keys`: a header's path, a pair's key."""

    start: int
    end: int
    next: int
    keys: tuple[str, ...]
    is_header: bool


class TomlEditor(Editor):
    """See Editor. A new table goes to the end; of one that is there, only pairs that differ change.
    Tables below go with it."""

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
        wanted = _load(text)
        end = newline(text)
        there = self.find(text, path, name)
        _at(wanted, (*path, name)).update(value)
        if there is None:
            head = ".".join(_key(each) for each in (*path, name))
            block = end.join(
                [f"[{head}]", *(f"{_key(key)} = {_inline(each)}" for key, each in value.items())]
            )
            started = text.removeprefix(BOM) != ""
            closed = text.endswith("\n") or not text.removeprefix(BOM)
            text += (
                (end if started else "") + ("" if closed else end) + block + (end if closed else "")
            )
        for key in reversed(value if there is not None else ()):
            header, *pairs = _table(text, _statements(text), (*path, name))
            line = f"{_key(key)} = {_inline(value[key])}"
            pair = next((each for each in pairs if each.keys == (key,)), None)
            if pair is None:
                text = text[: header.end] + end + line + text[header.end :]
            elif there[key] != value[key]:
                text = text[: pair.start] + line + text[pair.end :]
        _check_toml(text, wanted)
        return text, Hint()

    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        assert isinstance(name, str)
        wanted = _load(text)
        end = newline(text)
        whole = (*path, name)
        statements = [*_statements(text)]
        _table(text, statements, whole)
        ours = False
        spans = []
        for statement in statements:
            if statement.is_header:
                ours = statement.keys[: len(whole)] == whole
            else:
                ours = ours
            if ours and statement.is_header:
                spans.append((statement.start, statement.next))
            elif ours:
                spans[-1] = spans[-1][0], statement.next
        for at, stop in reversed(spans):
            start = text.rfind("\n", 0, at) + 1 or text.startswith(BOM)
            # The length of the blank line before the block, as `put` makes it
            before = text[:start]
            gap = 0
            if stop == len(text) and not text.endswith("\n"):
                gap = 2 * len(end) if before.endswith(2 * end) else 0
            elif stop == len(text) or text[stop:].startswith(end):
                if before.endswith("\n" + end) or before.removeprefix(BOM) == end:
                    gap = len(end)
                else:
                    gap = 0
            text = text[: start - gap] + text[stop:]
        del _at(wanted, path)[name]
        # A table that only its child had made
        for depth in range(len(path), 0, -1):
            if (
                not _at(wanted, path[:depth])
                and self.find(text, path[: depth - 1], path[depth - 1]) is None
            ):
                del _at(wanted, path[: depth - 1])[path[depth - 1]]
        _check_toml(text, wanted)
        return text


def _at(tree: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The table at `path`, made if it is missing."""
    for key in path:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise Unsure(f"{key} is no table")
    return tree


def _table(
    text: str, statements: Iterable[_TomlStatement], path: Sequence[str]
) -> list[_TomlStatement]:
    """The header of a table and its pairs. Raises Unsure when it stands in another form."""
    found: list[_TomlStatement] = []
    for statement in statements:
        if statement.is_header and found:
            break
        is_it = (
            statement.is_header
            and statement.keys == tuple(path)
            and text[statement.start : statement.start + 2] != "[["
        )
        found += [statement] if is_it or found else []
    if not found:
        raise Unsure(f"{'.'.join(path)} has no header [{'.'.join(path)}] of its own")
    return found


def _statements(text: str) -> Iterator[_TomlStatement]:
    """What stands in `text`: each line that is not blank, with those that follow until they are
    TOML together.
    """
    at = len(BOM) if text.startswith(BOM) else 0
    raw = ""
    start = at
    for line in re.findall(r"[^\n]*\n|[^\n]+", text[at:]):
        if not raw and (not line.strip() or line.lstrip().startswith("#")):
            at += len(line)
            continue
        if raw:
            start = start
        else:
            start = at + len(line) - len(line.lstrip())
        raw += line
        at += len(line)
        keys = _keys(raw)
        if keys is not None:
            cuts = (match.start() for match in re.finditer("#", raw))
            end = next((cut for cut in cuts if _keys(raw[:cut]) is not None), len(raw))
            yield _TomlStatement(
                start, start + len(raw[:end].strip()), at, keys, raw.lstrip().startswith("[")
            )
            raw = ""


def _keys(raw: str) -> tuple[str, ...] | None:
    """The path of a header, or the first key of a pair; None for what is not TOML."""
    # 5 ms, which the help of all commands need not take
    import tomllib

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
    if _BARE.fullmatch(name):
        return name
    return _inline(name)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{_key(key)} = {_inline(each)}" for key, each in value.items()) + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_inline(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_toml(text: str, wanted: dict[str, Any]) -> None:
    """As `check`, also when a number is NaN."""
    check(*(json.dumps(each, sort_keys=True, default=repr) for each in (_load(text), wanted)))


class YamlEditor(Editor):
    """See Editor. `path` is one key; a new member goes behind the last one. Without a hint a key
    that has nothing left goes too."""

    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        return _yaml(text.removeprefix(BOM)).find(path, name)

    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        (key,), end, start = path, newline(text), BOM if text.startswith(BOM) else ""
        body = text.removeprefix(BOM)
        read = _yaml(body)
        lines = _yaml_block(name, value)
        fresh = _yaml(end.join(lines)).tree[0]
        if read.root is None:
            at = None
        else:
            at = read.position(read.root, key)
        if read.root is None or at is None:
            node = None
        else:
            node = read.root.items[at].node
        there = None if node is None else read.position(node, name)
        made = (key, (fresh,) if isinstance(name, str) else [fresh])
        indented = ["  " + line for line in lines]
        if node is None:
            if read.root is not None and read.root.raw.flow_style:
                raise Unsure("it is written in brackets")
            new = _insert(body, len(body), [f"{key}:", *indented], end)
            wanted = changed(read.tree or (), (), None, made)
        elif node.kind == "null":
            written = body[node.start : node.end]
            if written:
                raise Unsure(f"{key} is written as {written}")
            new = _insert(body, _line_end(body, node.end), indented, end)
            wanted = changed(read.tree, (), at, made)
        elif node.raw.flow_style:
            if node.items:
                last = node.items[-1].node.end
            else:
                last = node.start + 1
            if there is not None or body[last : node.end - 1].strip():
                raise Unsure(
                    f"{key} is written in brackets{'' if there else ' and ends in a comma or a comment'}"
                )
            inner = json.dumps(
                {name: value} if isinstance(name, str) else [value], ensure_ascii=False
            )[1:-1]
            new = body[:last] + (", " if node.items else "") + inner + body[last:]
            wanted = changed(read.tree, path, None, fresh)
        else:
            lines = [" " * node.raw.start_mark.column + line for line in lines]
            if there is None:
                new = _insert(body, _line_end(body, node.end), lines, end)
            else:
                first, last = _lines(body, node.items[there])
                new = (
                    body[:first]
                    + end.join(lines)
                    + (end if body[first:last].endswith("\n") else "")
                    + body[last:]
                )
            wanted = changed(read.tree, path, there, fresh)
        check(_yaml(new).tree, wanted)
        return start + new, Hint(int(node is None))

    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        (key,), start, body, end = (
            path,
            BOM if text.startswith(BOM) else "",
            text.removeprefix(BOM),
            newline(text),
        )
        read = _yaml(body)
        found = read.place(path, name)
        if found is None or read.root is None:
            return text
        node, index = found
        if node.raw.flow_style:
            if index:
                first = node.items[index - 1].node.end
            else:
                first = node.start + 1
            if not index and len(node.items) > 1:
                last = node.items[1].start
            else:
                last = node.items[index].node.end
        else:
            first, last = _lines(body, node.items[index])
        wanted = changed(read.tree, path, index, None)
        if len(node.items) == 1 and not node.raw.flow_style:
            at = next(number for number, item in enumerate(read.root.items) if item.key == key)
            wanted = changed(read.tree, (), at, (key, ("tag:yaml.org,2002:null", "")))
            if hint is None or hint.made:
                head = read.root.items[at].start
                line = _line_end(body, head + 1)
                if (
                    body[head:line].strip().rstrip(": ").strip("\"'") == key
                    and not body[line:first].strip()
                ):
                    first = head
                    wanted = changed(read.tree, (), at, None)
        if last == len(body) and not body.endswith("\n") and body[:first].endswith(end):
            first -= len(end)
        new = body[:first] + body[last:]
        check(_yaml(new).tree or (), wanted)
        return start + new


def _yaml(text: str) -> Document:
    """The document in `text`. Raises Unsure."""
    import yaml

    def value(node: Node) -> Any:
        try:
            return yaml.constructor.SafeConstructor().construct_document(node.raw)
        except yaml.YAMLError:
            # With tags of somebody else's: none of ours
            return {}

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        node = None if root is None else _yaml_node(root)
        if node is None or (node.kind == "null" and not node.raw.value):
            return Document(text, None, None, value)
        if node.kind == "null":
            raise Unsure("it is no mapping")
        return Document(text, node, _yaml_tree(node), value)
    except (yaml.YAMLError, RecursionError) as error:
        raise Unsure(f"it is not one YAML document: {' '.join(str(error).split())}") from None


def _yaml_node(found: Any, key: Any = None) -> Node:
    """A node of the library, the value of `key`, as ours. A block's own end mark lies behind the
    comments that follow it."""
    kind = {"mapping": "{", "sequence": "["}.get(
        found.id, "null" if found.tag.endswith(",2002:null") else ""
    )
    node = Node(found.start_mark.index, found.end_mark.index, kind, raw=found)
    for each in found.value if kind in ("{", "[") else ():
        name, inner = each if kind == "{" else (None, each)
        begin = (name or inner).start_mark.index
        node.items.append(Member(name and str(name.value), begin, _yaml_node(inner, name)))
    if node.items and not found.flow_style:
        node.end = node.items[-1].node.end
    elif found.id == "scalar" and not found.value and found.style is None and key is not None:
        node.end = max(key.end_mark.index + 1, node.end)
    return node


def _yaml_tree(node: Node) -> Any:
    if node.kind == "{":
        return tuple((item.key, _yaml_tree(item.node)) for item in node.items)
    if node.kind == "[":
        return [_yaml_tree(item.node) for item in node.items]
    return (node.raw.tag, node.raw.value)


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


def _yaml_block(name: Name, value: dict[str, Any]) -> list[str]:
    """The lines of a member."""
    pairs = [f"{key}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items()]
    if isinstance(name, str):
        return [f"{name}:", *("  " + pair for pair in pairs)]
    return ["- " + pairs[0], *("  " + pair for pair in pairs[1:])]
