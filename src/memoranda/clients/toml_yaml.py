"""Edits TOML and YAML: one table of a TOML text, or one member of a YAML mapping or list.

A TOML table can be edited if it is a block below a header such as `[servers.memory]`. Every other
byte of the text stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
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
    check,
    newline,
    with_changed_member,
)

# A key that TOML takes without quotes.
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class _TomlStatement(NamedTuple):
    """A header or a pair (`key = value`) of a TOML text.

    start: the position of its beginning.
    end: the position of its end, without a comment behind it.
    next: the position behind its last line.
    keys: the path of a header, such as `("servers", "memory")`, or the key of a pair.
    is_header: whether it is a header such as `[servers.memory]`.
    """

    start: int
    end: int
    next: int
    keys: tuple[str, ...]
    is_header: bool


class TomlEditor(Editor):
    """Edits TOML (see Editor). A new table is added at the end of the text.

    In a present table, only the pairs that differ are changed. If a table is removed, the tables
    below it (`[servers.memory.env]`) are removed, too.
    """

    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        """Return the table. None if there is no such table. Raises Unsure."""
        table: Any = _load(text)
        for key in (*path, name):
            if not isinstance(table, dict):
                raise Unsure("something other than a table has that name")
            if key not in table:
                return None
            table = table[key]
        return table

    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        """Add the table at the end or, if it is there, change the pairs that differ. Raises Unsure."""
        assert isinstance(name, str)
        whole_path = (*path, name)
        expected = _load(text)
        present = self.find(text, path, name)
        _at(expected, whole_path).update(value)
        if present is None:
            text = _with_table(text, whole_path, value)
        else:
            text = _with_pairs(text, whole_path, present, value)
        _check_toml(text, expected)
        return text, Hint()

    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        """Remove the table and the tables below it. Raises Unsure.

        path: the keys that lead to the table.
        name: the key of the table.
        hint: has no effect, whether a hint or None.
        """
        assert isinstance(name, str)
        expected = _load(text)
        whole_path = (*path, name)
        statements = [*_statements(text)]
        # Raises Unsure if the table has no header.
        _table(text, statements, whole_path)
        # From the end of the text, so that the positions of earlier blocks stay right.
        for start, stop in reversed(_blocks(statements, whole_path)):
            text = _without_block(text, start, stop)

        # Make sure that nothing else has changed.
        del _at(expected, path)[name]
        # `[servers.memory]` also creates the table `servers`. If nothing else does, `servers`
        # disappears with it.
        for depth in range(len(path), 0, -1):
            *parent_path, last = path[:depth]
            if not _at(expected, path[:depth]) and self.find(text, parent_path, last) is None:
                del _at(expected, parent_path)[last]
        _check_toml(text, expected)
        return text


def _with_table(text: str, path: Sequence[str], value: dict[str, Any]) -> str:
    """Return `text` with a new table at its end, after a blank line.

    path: the path of the table. For `("servers", "memory")`, the header is `[servers.memory]`.
    value: the pairs of the table.
    """
    end = newline(text)
    header = f"[{'.'.join(map(_key, path))}]"
    pairs = [f"{_key(key)} = {_inline(item)}" for key, item in value.items()]
    block = end.join([header, *pairs])
    if not text.removeprefix(BOM):
        return text + block + end
    if text.endswith("\n"):
        return text + end + block + end
    # A text that has no line break at its end gets none.
    return text + end + end + block


def _with_pairs(
    text: str, path: Sequence[str], present: dict[str, Any], value: dict[str, Any]
) -> str:
    """Return `text` with the pairs of a present table changed.

    Pairs of `value` that differ are replaced, new pairs are added below the header, and other pairs
    stay.

    present: the pairs that the table has now.
    """
    end = newline(text)
    # New pairs are all added directly below the header, so the last one must be added first.
    for key in reversed(value):
        header, *pairs = _table(text, _statements(text), path)
        line = f"{_key(key)} = {_inline(value[key])}"
        present_pairs = [pair for pair in pairs if pair.keys == (key,)]
        if not present_pairs:
            text = text[: header.end] + end + line + text[header.end :]
        elif present[key] != value[key]:
            pair = present_pairs[0]
            text = text[: pair.start] + line + text[pair.end :]
    return text


def _blocks(statements: Iterable[_TomlStatement], path: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the positions (begin, end) of the table at `path`, and of each table below it.

    statements: the statements of the text.
    """
    blocks: list[tuple[int, int]] = []
    is_inside = False
    for statement in statements:
        if statement.is_header:
            is_inside = statement.keys[: len(path)] == path
            if is_inside:
                blocks.append((statement.start, statement.next))
        elif is_inside:
            begin, _ = blocks[-1]
            blocks[-1] = (begin, statement.next)
    return blocks


def _without_block(text: str, start_of_block: int, stop: int) -> str:
    """Return the text without a block, and without the blank line that `put` added before it.

    start_of_block: the position of the beginning of the block.
    stop: the position of its end.
    """
    start_of_line = text.rfind("\n", 0, start_of_block) + 1
    if start_of_line == 0 and text.startswith(BOM):
        start_of_line = len(BOM)
    before = text[:start_of_line]
    after = text[stop:]
    gap = _gap_before_block(before, after, newline(text), ends_line=text.endswith("\n"))
    return before.removesuffix(gap) + after


def _gap_before_block(before: str, after: str, end: str, *, ends_line: bool) -> str:
    """Return the line breaks that `put` added before a block. "" if it added none.

    before: the text before the block.
    after: the text behind the block.
    end: the line break of the text.
    ends_line: whether the text ends with a line break.
    """
    if not after and not ends_line:
        # `put` added two line breaks to a text without one at its end.
        return 2 * end
    # A block in the middle that no blank line follows is not one that `put` has added.
    may_be_added = not after or after.startswith(end)
    is_after_blank_line = before.endswith("\n" + end) or before.removeprefix(BOM) == end
    if may_be_added and is_after_blank_line:
        return end
    return ""


def _at(tree: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return the table at `path`, which is created if it is missing. Raises Unsure for another
    value.

    tree: the values of the text.
    """
    for key in path:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise Unsure(f"{key} is no table")
    return tree


def _table(
    text: str, statements: Iterable[_TomlStatement], path: Sequence[str]
) -> list[_TomlStatement]:
    """Return the header of the table at `path`, followed by the pairs of the table.

    statements: the statements of the text.

    Raises Unsure if the table has no header, as in `servers = { memory = {} }`.
    """
    table: list[_TomlStatement] = []
    for statement in statements:
        if table:
            # The table ends at the next header.
            if statement.is_header:
                break
            table.append(statement)
        elif statement.is_header and statement.keys == tuple(path):
            # `[[servers]]` begins an item of a list.
            is_list_item = text.startswith("[[", statement.start)
            if not is_list_item:
                table.append(statement)
    if not table:
        name = ".".join(path)
        raise Unsure(f"{name} has no header [{name}] of its own")
    return table


def _statements(text: str) -> Iterator[_TomlStatement]:
    """Yield the headers and pairs of `text`.

    A statement may take several lines: lines are joined until together they are valid TOML.
    """
    position = len(BOM) if text.startswith(BOM) else 0
    # The lines of the statement that is not complete yet, and the position of its beginning.
    raw = ""
    start = position
    for line in re.findall(r"[^\n]*\n|[^\n]+", text[position:]):
        line_start = position
        position += len(line)
        if not raw:
            is_blank_or_comment = not line.strip() or line.lstrip().startswith("#")
            if is_blank_or_comment:
                continue
            start = line_start + len(line) - len(line.lstrip())
        raw += line
        keys = _keys(raw)
        if keys is not None:
            end = start + len(_without_comment(raw).strip())
            is_header = raw.lstrip().startswith("[")
            yield _TomlStatement(start, end, position, keys, is_header)
            raw = ""


def _without_comment(raw: str) -> str:
    """Return a statement without the comment behind it. `a = 1 # one` gives `a = 1 `."""
    for comment in re.finditer("#", raw):
        statement = raw[: comment.start()]
        # If the `#` is inside a string, the part before it is not valid TOML.
        if _keys(statement) is not None:
            return statement
    return raw


def _keys(raw: str) -> tuple[str, ...] | None:
    """Return the path of a header, or the first key of a pair. None for invalid TOML.

    `[a.b]` gives `("a", "b")`, and `c = 1` gives `("c",)`.
    """
    # This import takes 5 ms. Commands that edit no TOML do not need it.
    import tomllib

    try:
        value: Any = tomllib.loads(raw)
    except (ValueError, RecursionError):
        return None
    # One statement gives nested tables with one key each: `[a.b]` gives `{"a": {"b": {}}}`. The
    # header of an item of a list gives a list with one table.
    is_header = raw.lstrip().startswith("[")
    keys: list[str] = []
    while isinstance(value, (dict, list)) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        key, value = next(iter(value.items()))
        keys.append(key)
        if not is_header:
            break
    return tuple(keys)


def _load(text: str) -> dict[str, Any]:
    """Return the values of a TOML text. Raises Unsure if the text is not TOML."""
    import tomllib

    try:
        return tomllib.loads(text.removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        raise Unsure(f"it is not TOML: {error}") from None


def _key(name: str) -> str:
    """Return a key as TOML writes it, in quotes if needed."""
    if _BARE.fullmatch(name):
        return name
    return _inline(name)


def _inline(value: Any) -> str:
    """Return a value as TOML writes it in one line: `{"a": [1]}` gives `{ a = [1] }`."""
    if isinstance(value, dict):
        pairs = [f"{_key(key)} = {_inline(item)}" for key, item in value.items()]
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_toml(text: str, expected: dict[str, Any]) -> None:
    """Raise Unsure if the values of `text` are not the expected ones.

    The values are compared as JSON, because a NaN is not equal to itself.
    """
    dump = partial(json.dumps, sort_keys=True, default=repr)
    check(dump(_load(text)), dump(expected))


class YamlEditor(Editor):
    """Edits YAML (see Editor). `path` is a single key, and a new member becomes the last one.

    If `drop` gets no hint, it also removes a key that has no members left.
    """

    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        return _yaml(text.removeprefix(BOM)).find(path, name)

    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        """Add the member as the last one of its container, or replace it if it is there.

        The container may be missing, empty (`mcp:`), in brackets (`mcp: {a: 1}`) or a block of
        lines. `_NewMember` has a method for each form.

        path: the key that leads to the container.
        name: the key of the member, or a function that recognizes the item of a list.
        value: the value of the member.

        Returns the new text, and the hint for `drop`. Raises Unsure.
        """
        (key,) = path
        body = text.removeprefix(BOM)
        byte_order_mark = text.removesuffix(body)
        document = _yaml(body)
        place = document.place((), key)
        member = _NewMember(name, value, newline(text))
        # If a function recognizes the member, and not a key, the container is a list.
        container_tree = (member.tree,) if isinstance(name, str) else [member.tree]
        new_container = (key, container_tree)
        if place is None:
            new_body = member.with_container(body, document, key)
            expected = with_changed_member(document.tree or (), (), None, new_container)
            check(_yaml(new_body).tree, expected)
            return byte_order_mark + new_body, Hint(new_containers=1)

        root, index = place
        node = root.items[index].node
        if node.kind == "null":
            new_body = member.in_empty(body, node, key)
            expected = with_changed_member(document.tree, (), index, new_container)
        elif node.raw.flow_style:
            is_new = document.position(node, name) is None
            new_body = member.in_brackets(body, node, key, is_new=is_new)
            expected = with_changed_member(document.tree, path, None, member.tree)
        else:
            position = document.position(node, name)
            new_body = member.in_block(body, node, position)
            expected = with_changed_member(document.tree, path, position, member.tree)
        # Any other value than the expected ones means that the edit went wrong.
        check(_yaml(new_body).tree, expected)
        return byte_order_mark + new_body, Hint()

    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        """Remove the member. If `put` created its key and no other member is left, remove the key.

        path: the key that leads to the container.
        name: the key of the member, or a function that recognizes the item of a list.
        hint: the result of `put`. None means that `put` created the key.

        Raises Unsure.
        """
        (key,) = path
        body = text.removeprefix(BOM)
        byte_order_mark = text.removesuffix(body)
        document = _yaml(body)
        place = document.place(path, name)
        place_of_key = document.place((), key)
        if place is None or place_of_key is None:
            return text
        node, index = place
        first, last = _span(body, node, index)
        expected = with_changed_member(document.tree, path, index, None)
        is_last_member = len(node.items) == 1
        if is_last_member and not node.raw.flow_style:
            # If `put` created the key, it is removed, too. Otherwise it stays without a value.
            root, key_index = place_of_key
            key_start = root.items[key_index].start
            empty_item: tuple[str, tuple[str, str]] | None = (key, ("tag:yaml.org,2002:null", ""))
            if _has_created_key(hint) and _is_bare_key(body, key_start, first, key):
                first = key_start
                empty_item = None
            expected = with_changed_member(document.tree, (), key_index, empty_item)
        new_body = _without(body, first, last, newline(text))
        check(_yaml(new_body).tree or (), expected)
        return byte_order_mark + new_body


def _without(text: str, first: int, last: int, end: str) -> str:
    """Return `text` without the part from `first` to `last`.

    If this part was the end of a text without a final line break, the new text has none either.

    end: the line break.
    """
    is_last = last == len(text) and not text.endswith("\n")
    if is_last:
        return text[:first].removesuffix(end)
    return text[:first] + text[last:]


def _has_created_key(hint: Hint | None) -> bool:
    """Whether `put` created the key that has the member. Without a hint, the answer is True."""
    return hint is None or bool(hint.new_containers)


class _NewMember:
    """A member to add to a YAML text. There is a method for each form of container.

    tree: the member in the form of `_yaml_tree`.
    """

    def __init__(self, name: Name, value: dict[str, Any], end: str) -> None:
        """Prepare the lines of the member.

        name: the key of the member. In a list, where members have no keys, it is the function by
            which the member is found again.
        value: the value of the member.
        end: the line break of the file.
        """
        self._name = name
        self._value = value
        self._end = end
        self._lines = _yaml_block(name, value)
        self.tree = _yaml(end.join(self._lines)).tree[0]

    def with_container(self, body: str, document: Document, key: str) -> str:
        """Return the text with the member in a new container at its end.

        body: the text.
        document: the parsed text.
        key: the key of the new container.

        Raises Unsure if the document is written in brackets.
        """
        if document.root is not None and document.root.raw.flow_style:
            raise Unsure("it is written in brackets")
        return _insert(body, len(body), [f"{key}:", *self._indented()], self._end)

    def in_empty(self, body: str, node: Node, key: str) -> str:
        """Return the text with the member below a key without a value.

        body: the text.
        node: the missing value.
        key: the key as an error names it.

        Raises Unsure if the value is written, such as `null`.
        """
        written_value = body[node.start : node.end]
        if written_value:
            raise Unsure(f"{key} is written as {written_value}")
        return _insert(body, _line_end(body, node.end), self._indented(), self._end)

    def in_brackets(self, body: str, node: Node, key: str, *, is_new: bool) -> str:
        """Return the text with the member behind the last one between `[…]` or `{…}`.

        body: the text.
        node: the container between brackets.
        key: the key of the container, for the error.
        is_new: whether the container does not have the member yet. A present member is not replaced
            here.

        Raises Unsure.
        """
        if not is_new:
            raise Unsure(f"{key} is written in brackets")
        place = node.items[-1].node.end if node.items else node.start + 1
        if body[place : node.end - 1].strip():
            raise Unsure(f"{key} is written in brackets and ends in a comma or a comment")
        container = {self._name: self._value} if isinstance(self._name, str) else [self._value]
        member_without_brackets = json.dumps(container, ensure_ascii=False)[1:-1]
        comma = ", " if node.items else ""
        return body[:place] + comma + member_without_brackets + body[place:]

    def in_block(self, body: str, node: Node, position: int | None) -> str:
        """Add the member to a container that is a block of lines, and return the text.

        node: the container.
        position: the index of the member to replace. None adds the member at the end.
        """
        indent = " " * node.raw.start_mark.column
        lines = [indent + line for line in self._lines]
        if position is None:
            return _insert(body, _line_end(body, node.end), lines, self._end)
        first, last = _lines_of(body, node.items[position])
        # The last line of a text may have no line break.
        final_break = self._end if body[first:last].endswith("\n") else ""
        return body[:first] + self._end.join(lines) + final_break + body[last:]

    def _indented(self) -> list[str]:
        """Return the lines of the member as they are below a key."""
        return ["  " + line for line in self._lines]


def _span(body: str, node: Node, index: int) -> tuple[int, int]:
    """Return (begin, end) of the text to cut out of `body` in order to remove one member.

    In a block of lines, whole lines are cut. Between brackets, a comma is cut, too.

    body: the text of the file.
    node: the list or mapping that has the member.
    index: the position of the member in it.
    """
    if not node.raw.flow_style:
        return _lines_of(body, node.items[index])
    if index:
        return node.items[index - 1].node.end, node.items[index].node.end
    if len(node.items) > 1:
        return node.start + 1, node.items[1].start
    return node.start + 1, node.items[0].node.end


def _is_bare_key(body: str, key_start: int, first: int, key: str) -> bool:
    """Whether no comment is between a key and its first member, so that the key can be removed.

    key_start: the position of the key.
    first: the position of the first member's line.
    """
    line_end = _line_end(body, key_start + 1)
    text_of_line = body[key_start:line_end].strip().rstrip(": ").strip("\"'")
    return text_of_line == key and not body[line_end:first].strip()


def _yaml(text: str) -> Document:
    """Return the document in a YAML text. Raises Unsure."""
    import yaml

    def value(node: Node) -> Any:
        """Return the value of a node. An empty mapping if its tags are unknown."""
        try:
            return yaml.constructor.SafeConstructor().construct_document(node.raw)
        except yaml.YAMLError:
            # The value has tags of another program. So it is not an entry that we wrote.
            return {}

    try:
        yaml_root = yaml.compose(text, Loader=yaml.SafeLoader)
        if yaml_root is None:
            return Document(text, None, None, value)
        root = _yaml_node(yaml_root)
        if root.kind == "null":
            if root.raw.value:
                raise Unsure("it is no mapping")
            # A text with only `---` has a null that is not written.
            return Document(text, None, None, value)
        return Document(text, root, _yaml_tree(root), value)
    except (yaml.YAMLError, RecursionError) as error:
        raise Unsure(f"it is not one YAML document: {' '.join(str(error).split())}") from None


def _yaml_node(yaml_node: Any, key: Any = None) -> Node:
    """Convert a node of the YAML library to one of ours.

    yaml_node: the node of the library.
    key: the library's node of the key that has this value. None for the root and an item of a list.
    """
    kind = {"mapping": "{", "sequence": "["}.get(yaml_node.id, "")
    if not kind and yaml_node.tag.endswith(",2002:null"):
        kind = "null"
    node = Node(yaml_node.start_mark.index, yaml_node.end_mark.index, kind, raw=yaml_node)
    if kind == "{":
        for name, inner in yaml_node.value:
            begin = name.start_mark.index
            node.items.append(Member(str(name.value), begin, _yaml_node(inner, name)))
    elif kind == "[":
        for inner in yaml_node.value:
            node.items.append(Member(None, inner.start_mark.index, _yaml_node(inner)))
    if node.items and not yaml_node.flow_style:
        # The library's end of a block is behind the comments that follow the block.
        node.end = node.items[-1].node.end
    elif key is not None and _is_without_value(yaml_node):
        # The missing value ends behind the colon of its key.
        node.end = max(key.end_mark.index + 1, node.end)
    return node


def _is_without_value(yaml_node: Any) -> bool:
    """Whether a key is written without a value, as in `key:`."""
    return yaml_node.id == "scalar" and not yaml_node.value and yaml_node.style is None


def _yaml_tree(node: Node) -> Any:
    """Return a node as plain values (see `Tree`). A scalar becomes (tag, text)."""
    if node.kind == "{":
        return tuple((item.key, _yaml_tree(item.node)) for item in node.items)
    if node.kind == "[":
        return [_yaml_tree(item.node) for item in node.items]
    return (node.raw.tag, node.raw.value)


def _line_end(text: str, position: int) -> int:
    """Return the position of the next line, or `position` if it is the beginning of a line.

    In the last line of a text, it is the end of the text.
    """
    if position and text[position - 1] == "\n":
        return position
    line_break = text.find("\n", position)
    return len(text) if line_break < 0 else line_break + 1


def _lines_of(text: str, member: Member) -> tuple[int, int]:
    """Return (begin, end) of the lines that belong to a member.

    Raises Unsure if another member is on one of these lines.
    """
    first = text.rfind("\n", 0, member.start) + 1
    if text[first : member.start].strip(" -"):
        raise Unsure("the entry shares its line with another")
    return first, _line_end(text, member.node.end)


def _insert(text: str, position: int, lines: Sequence[str], end: str) -> str:
    """Return the text with more lines at `position`.

    position: the beginning of a line, or the end of the text.
    end: the line break.
    """
    before = text[:position]
    after = text[position:]
    new = end.join(lines)
    if before and not before.endswith("\n"):
        return before + end + new + after
    return before + new + end + after


def _yaml_block(name: Name, value: dict[str, Any]) -> list[str]:
    """Return the lines of a member.

    A member of a mapping has lines such as `memory:` and `  command: "x"`. An item of a list has
    lines such as `- command: "x"`.
    """
    pairs = [f"{key}: {json.dumps(item, ensure_ascii=False)}" for key, item in value.items()]
    if isinstance(name, str):
        return [f"{name}:", *("  " + pair for pair in pairs)]
    return ["- " + pairs[0], *("  " + pair for pair in pairs[1:])]
