"""The editors of JSON and Markdown files, and the base class of all editors of configuration files.

An editor changes one member of a text: a key of an object, or an item of a list. The `name` of an
item is a function that recognizes the item. Each editor parses its result, and raises Unsure if
anything but this member differs from the old text.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memoranda.errors import MemorandaError

Name = str | Callable[[Any], bool]
Tree = Any
"""The values of a text: an object as a tuple of (key, tree), a list of trees, or a scalar.

In contrast to a dict, this shows whether two members have the same key, and their order.
"""
BOM = "\ufeff"
# A comment. A string of JSON also matches, as the group, so that a `//` in it is not a comment.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*+")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
# A comma before a closing bracket. A string of JSON also matches, as the group, so that its commas
# are skipped.
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=[ \t\r\n]*[}\]])', re.DOTALL)
# A string, a sign of structure, or a bare word of JSON.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
# The first indented line: new lines are indented like it.
_INDENT = re.compile(r"\n([ \t]+)[^\s/]")
_SPACE = " \t\r\n"


class Unsure(MemorandaError):
    """Raised for a text that this code does not understand well enough to change it.

    The message says why.
    """

    code = "unsure"


class Hint(NamedTuple):
    """The changes that `put` made in addition to adding the member.

    new_containers: how many containers `put` created around the member.
    inner: the text that was at the place of the outermost new container. None if it was not
        recorded.
    """

    new_containers: int = 0
    inner: str | None = None


class Editor(ABC):
    """Changes one member of a text, and leaves every other byte as it is.

    The member is in the container at `path`, a path of keys such as `("mcpServers",)`.
    """

    @abstractmethod
    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        """Return the value of the member. None if there is no such member.

        text: the whole text of the file.
        path: the keys that lead to the container.
        name: the key of the member, or a function that recognizes the item of a list.

        Raises Unsure if the text cannot be read for sure.
        """

    @abstractmethod
    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        """Add the member at the end of its container. If the member is there, replace its value.

        text: the whole text of the file.
        path: the keys that lead to the container.
        name: the key of the member, or a function that recognizes the item of a list.
        value: the value of the member.

        Returns the new text, and the hint for `drop`. Raises Unsure.
        """

    @abstractmethod
    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        """Remove the member, which must exist, and return the new text. Raises Unsure.

        hint: the hint that `put` returned. With it, the containers that `put` created are removed,
            too. None if the hint was not kept: what is left then is said by each editor.
        """


@dataclass(slots=True)
class Node:
    """A value between the positions `start` and `end` of a text.

    kind: `{` for an object, `[` for a list, `null` for a null that counts as absent, "" for a
        scalar.
    items: the members of an object or a list.
    raw: the node of the YAML library; None in JSON.
    """

    start: int
    end: int
    kind: str = ""
    items: list[Member] = field(default_factory=list)
    raw: Any = None


@dataclass(slots=True)
class Member:
    """A member of a container.

    key: the key of the member. None for an item of a list.
    start: the position of the key, or of the item.
    node: the value.
    comma: the position of the comma behind the value; -1 without a comma.
    """

    key: str | None
    start: int
    node: Node
    comma: int = -1


class Document(NamedTuple):
    """A parsed text.

    root: the node of the whole text. None for an empty text.
    tree: the text as plain values.
    value: returns the Python value of a node.
    """

    text: str
    root: Node | None
    tree: Tree
    value: Callable[[Node], Any]

    def container(self, path: Sequence[str]) -> tuple[Node | None, Sequence[str]]:
        """Return (innermost container on the way to `path` that exists, missing keys below it).

        If `path` exists, no keys are missing. The container is None for an empty text.
        """
        node = self.root
        if node is None:
            return None, path
        for depth, name in enumerate(path):
            index = self.position(node, name)
            if index is None:
                return node, path[depth:]
            node = node.items[index].node
        return node, ()

    def position(self, node: Node, name: Name) -> int | None:
        """Return the index of a member in `node.items`. None if there is no such member.

        Raises Unsure if two members have the name, or if `node` is a list and not an object, or the
        reverse.
        """
        # A key of YAML without a value can still become an object or a list. It has no members.
        if node.kind == "null":
            return None
        sign = "{" if isinstance(name, str) else "["
        if node.kind != sign:
            line = self.text.count("\n", 0, node.start) + 1
            raise Unsure(f"line {line} has something other than {sign}")
        if not isinstance(name, str):
            for index, item in enumerate(node.items):
                if name(self.value(item.node)):
                    return index
            return None
        positions = [index for index, item in enumerate(node.items) if item.key == name]
        if len(positions) > 1:
            raise Unsure(f'"{name}" stands there twice')
        if positions:
            return positions[0]
        return None

    def place(self, path: Sequence[str], name: Name) -> tuple[Node, int] | None:
        """Return the container at `path` and the index of the member in its items.

        None if the container or the member does not exist.
        """
        node, missing_keys = self.container(path)
        if node is None or missing_keys:
            return None
        index = self.position(node, name)
        if index is None:
            return None
        return node, index

    def find(self, path: Sequence[str], name: Name) -> Any:
        """Return the value of a member. None if there is no such member."""
        place = self.place(path, name)
        if place is None:
            return None
        container, index = place
        return self.value(container.items[index].node)


def newline(text: str) -> str:
    """Return the line break of `text`, "\\n" or "\\r\\n".

    Raises Unsure for a lone carriage return, because programs disagree on whether it ends a line.
    """
    if re.search(r"\r(?!\n)", text):
        raise Unsure("a line ends in a carriage return alone")
    end = text.find("\n")
    if end > 0 and text[end - 1] == "\r":
        return "\r\n"
    return "\n"


def with_changed_member(
    tree: Tree, path: Sequence[str], position: int | None, member: Tree | None
) -> Tree:
    """Return a copy of `tree` with one changed member in the container at `path`.

    position: the index of the member to change. None adds a member.
    member: the new member. In an object, it is (key, tree). None removes the member.
    """
    items = list(tree)
    if path:
        first_key, *path_below = path
        keys = [key for key, _ in items]
        index = keys.index(first_key)
        _, inner_tree = items[index]
        new_tree = with_changed_member(inner_tree, path_below, position, member)
        items[index] = (first_key, new_tree)
    elif position is None:
        items.append(member)
    elif member is None:
        del items[position]
    else:
        items[position] = member
    # An object is a tuple, a list is a list.
    return type(tree)(items)


def check(result: Tree, expected: Tree) -> None:
    """Raise Unsure if a text was not changed as expected.

    result: the tree of the new text.
    expected: the tree that it should have.
    """
    try:
        is_right = result == expected
    except RecursionError:
        raise Unsure("it is nested too deeply") from None
    if not is_right:
        raise Unsure("the change would alter more than one entry")


class MarkdownEditor(Editor):
    """Edits a paragraph between two marks with its name: `<!-- memory -->`, `<!-- /memory -->`."""

    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        block = _block(name).search(text)
        if block:
            return block[1].replace("\r\n", "\n")
        return None

    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        """Add the paragraph at the end, or replace the paragraph with this name.

        The hint has the line breaks that were added before the paragraph. `path` has no effect.
        """
        end = newline(text)
        block = end.join([f"<!-- {name} -->", *value.split("\n"), f"<!-- /{name} -->", ""])
        present_block = _block(name).search(text)
        if present_block:
            text_before = text[: present_block.start()]
            text_after = text[present_block.end() :]
            return text_before + block + text_after, Hint()
        # A blank line separates the paragraph from the text before it.
        gap = ""
        if text:
            gap = end if text.endswith("\n") else end + end
        return text + gap + block, Hint(inner=gap)

    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        """Remove the paragraph between the marks, and the line breaks that `put` added before it.

        name: the name in the marks.
        hint: the result of `put`, which has these line breaks. None leaves them.
        """
        block = _block(name).search(text)
        assert block is not None
        text_before = text[: block.start()]
        if hint is not None and hint.inner:
            text_before = text_before.removesuffix(hint.inner)
        return text_before + text[block.end() :]


def _block(name: Name) -> re.Pattern[str]:
    """Return a pattern that matches the paragraph with this name, including its marks."""
    mark = re.escape(str(name))
    return re.compile(rf"<!-- {mark} -->\r?\n(.*?)\r?\n<!-- /{mark} -->\r?\n?", re.DOTALL)


class JsonEditor(Editor):
    """Edits JSON (see Editor).

    The hint of `put` says which containers it created. `drop` removes them with the member, if
    nothing else is in them.
    """

    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        return _read(text).find(path, name)

    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        """Add the member, and the containers that are missing on its path.

        A present member is replaced.
        """
        document = _read(text)
        style = _Style.of(text)
        if document.root is None:
            new_text = _new_document(text, _nested([*path, name], value), style)
            return new_text, Hint(len(path) + 1, text.removeprefix(BOM))
        container, missing_keys = document.container(path)
        assert container is not None
        if missing_keys:
            # The outermost missing container is the new member, with the others inside it.
            key: str | None = missing_keys[0]
            value = _nested([*missing_keys[1:], name], value)
            index = None
        else:
            # An item of a list has no key.
            key = name if isinstance(name, str) else None
            index = document.position(container, name)

        inner = None
        if index is None:
            new_text, inner = _add(text, container, key, value, style)
        else:
            new_text = _with_value(text, container, index, value, style)

        # Make sure that nothing else has changed.
        value_tree = _read(json.dumps(value)).tree
        member = value_tree if key is None else (key, value_tree)
        container_path = path[: len(path) - len(missing_keys)]
        expected = with_changed_member(document.tree, container_path, index, member)
        check(_read(new_text).tree, expected)
        return new_text, Hint(len(missing_keys), inner)

    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        """Remove the member, and the containers that `put` created if they are empty then.

        path: the keys that lead to the container.
        name: the key of the member, or a function that recognizes the item of a list.
        hint: the result of `put`. None removes only the member.
        """
        document = _read(text)
        place = document.place(path, name)
        assert place is not None
        container, index = place
        new_containers, earlier_text = hint or Hint()
        # If the member is alone in a container that `put` created, remove the container instead.
        while new_containers and path and _is_alone(text, container):
            *path, name = path
            new_containers -= 1
            place = document.place(path, name)
            assert place is not None
            container, index = place
        expected = with_changed_member(document.tree, path, index, None)
        text = _without(text, container, index, expected)
        if earlier_text is None:
            return text

        emptied, _ = _read(text).container(path)
        assert emptied is not None
        is_empty = not text[emptied.start + 1 : emptied.end - 1].strip(_SPACE)
        if not is_empty:
            # Another program has added something since.
            return text
        if new_containers:
            # `put` created the outermost container, too: the text had only blanks.
            return (BOM if text.startswith(BOM) else "") + earlier_text
        # The blanks that were between the brackets before the member came go back there.
        return text[: emptied.start + 1] + earlier_text + text[emptied.end - 1 :]


def _new_document(text: str, value: Any, style: _Style) -> str:
    """Return the JSON of a value for a file that has no JSON yet.

    text: the present text of the file: only blanks, perhaps with a byte order mark.
    style: the line break of the file.

    Raises Unsure if the file has comments.
    """
    if text.strip(BOM + _SPACE):
        raise Unsure("it holds nothing but comments")
    start = BOM if text.startswith(BOM) else ""
    return start + _dump(value, "", style) + style.end


def _nested(names: Sequence[Name], value: Any) -> Any:
    """Return `value` inside one container for each name.

    `["a", "b"]` and 1 give `{"a": {"b": 1}}`. A name that is a function gives a list.
    """
    for name in reversed(names):
        value = {name: value} if isinstance(name, str) else [value]
    return value


class _Style(NamedTuple):
    """How a JSON text is written.

    unit: the indentation of one level: the first one in the text, or two blanks.
    end: the line break.
    """

    unit: str
    end: str

    @classmethod
    def of(cls, text: str) -> _Style:
        """Return the style of a text. Raises Unsure if its line breaks are not clear."""
        indent = _INDENT.search(text)
        return cls(indent[1] if indent else "  ", newline(text))


def _dump(value: Any, indent: str, style: _Style, *, inline: bool = False) -> str:
    """Return `value` as JSON.

    indent: the blanks before each line except the first one.
    style: the indentation and line break of the file.
    inline: whether the JSON is one line.
    """
    value_text = json.dumps(value, ensure_ascii=False, indent=None if inline else style.unit)
    return value_text.replace("\n", style.end + indent)


def _line_indent(text: str, position: int) -> str:
    """Return the blanks at the beginning of the line that contains `position`."""
    line = text[text.rfind("\n", 0, position) + 1 : position].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _with_value(text: str, container: Node, index: int, value: Any, style: _Style) -> str:
    """Return the text with another value for the member at `index` of a container.

    style: the indentation and line break of the file.
    """
    item = container.items[index]
    is_inline = "\n" not in text[container.start : container.end]
    value_text = _dump(value, _line_indent(text, item.start), style, inline=is_inline)
    return text[: item.node.start] + value_text + text[item.node.end :]


def _add(
    text: str, node: Node, key: str | None, value: Any, style: _Style
) -> tuple[str, str | None]:
    """Return the text with one more member, and the text that was between the brackets before.

    The second value is None if the container was not empty.

    node: the container, to whose end the member is added.
    key: the key of the member. None for an item of a list.
    style: the indentation and line break of the file.
    """
    inner = text[node.start + 1 : node.end - 1]
    is_empty = not inner.strip(_SPACE)
    is_inline = _is_inline(text, node, inner, is_empty)
    outer = _line_indent(text, node.start)
    indent = _member_indent(text, node, outer + style.unit)
    member = _dump(value, indent, style, inline=is_inline)
    if key is not None:
        member = json.dumps(key, ensure_ascii=False) + ": " + member
    if is_empty:
        if not is_inline:
            member = f"{style.end}{indent}{member}{style.end}{outer}"
        return text[: node.start + 1] + member + text[node.end - 1 :], inner
    gap = " " if is_inline else style.end + indent
    return _added_behind(text, node, gap + member), None


def _added_behind(text: str, node: Node, addition: str) -> str:
    """Return the text with a member behind everything in a container, also behind comments.

    node: the container, which has members or comments.
    addition: the member, with the blanks or the line break before it.
    """
    point = len(text[: node.end - 1].rstrip(_SPACE))
    if not node.items:
        # The container has only comments.
        return text[:point] + addition + text[point:]
    last = node.items[-1]
    has_trailing_comma = last.comma >= 0
    if has_trailing_comma:
        # The new last member has one, too.
        return text[:point] + addition + "," + text[point:]
    # The comma goes directly behind the value, before any comment: `1, // one`.
    comma = last.node.end
    return text[:comma] + "," + text[comma:point] + addition + text[point:]


def _is_inline(text: str, node: Node, inner: str, is_empty: bool) -> bool:
    """Whether a new member is written on the same line as its container.

    If the container has members, the new one is written on the same line if they are on it. If the
    container is empty, the whole text must be one line, and more than the container.

    node: the container.
    inner: the text between the brackets of the container.
    is_empty: whether the container has no members.
    """
    if not is_empty:
        return "\n" not in inner
    is_root = not text[: node.start].strip(BOM + _SPACE)
    return "\n" not in text.strip(_SPACE) and not is_root


def _member_indent(text: str, node: Node, usual_indent: str) -> str:
    """Return the blanks before a new member.

    They are the blanks before the last member, if this is at the beginning of a line.

    node: the container.
    usual_indent: the blanks to return in other cases.
    """
    if not node.items:
        return usual_indent
    start = node.items[-1].start
    text_before = text[text.rfind("\n", 0, start) + 1 : start]
    is_at_line_start = not text_before.strip(" \t")
    return text_before if is_at_line_start else usual_indent


def _is_alone(text: str, node: Node) -> bool:
    """Whether a container has only one member and no comment.

    node: the container, which has at least one member.
    """
    if len(node.items) > 1:
        return False
    (member,) = node.items
    text_around = text[node.start + 1 : member.start] + text[member.node.end : node.end - 1]
    return not text_around.strip(_SPACE + ",")


def _without(text: str, node: Node, index: int, expected: Any) -> str:
    """Return the text without the member at `index` of a container.

    Where the commas and blanks around the member belong is not always clear. So several ways to cut
    the text are tried. Raises Unsure if none of them gives the tree `expected`.

    node: the container.
    expected: the tree that the new text must have.
    """
    # The first way that changes only the member is taken.
    for spans in _ways_to_cut(text, node, index):
        new_text = text
        # From the end of the text, so that the other positions stay right.
        for start, end in sorted(spans, reverse=True):
            new_text = new_text[:start] + new_text[end:]
        try:
            check(_read(new_text).tree, expected)
        except Unsure:
            continue
        return new_text
    raise Unsure("the entry cannot be taken out alone")


# A part of a text: the positions of its start and its end.
_Span = tuple[int, int]


def _ways_to_cut(text: str, node: Node, index: int) -> list[list[_Span]]:
    """Return the ways to cut a member out of a text, the best first. A way is a list of parts.

    In `{"a": 1, "b": 2}`, the member `b` is cut with the blank before it, and with the comma behind
    `1`. The second best way leaves the blank.

    node: the container.
    index: the place of the member in it.
    """
    member = node.items[index]
    is_last = index + 1 == len(node.items)
    if not is_last:
        # Cut the member and its comma, and the blanks before the next member.
        next_start = len(text) - len(text[member.comma + 1 :].lstrip(_SPACE))
        return [[(member.start, member.node.end), (member.comma, next_start)]]

    # Without a trailing comma, the comma before the last member separates it.
    comma = member.comma
    if comma < 0 and index > 0:
        comma = node.items[index - 1].comma
    commas: list[_Span] = []
    if comma >= 0:
        commas = [(comma, comma + 1)]
    blanks_start = len(text[: member.start].rstrip(_SPACE))
    ways = [
        [(blanks_start, member.node.end), *commas],
        [(member.start, member.node.end), *commas],
    ]
    if _is_alone(text, node):
        # The container is left as `{}`.
        ways.insert(0, [(node.start + 1, node.end - 1)])
    return ways


def _spaces(match: re.Match[str]) -> str:
    """Return blanks in place of a comment or comma. So all positions in the text stay the same.

    A match that is a string of JSON is returned as it is.
    """
    json_string = match[1]
    if json_string:
        return json_string
    return re.sub(r"[^\r\n]", " ", match[0])


def _refuse(text: str) -> Any:
    """Raise ValueError for `NaN` or `Infinity`, which Python reads but JSON does not have."""
    raise ValueError(text)


def _read(text: str) -> Document:
    """Return the document in a JSON text, which may have comments and trailing commas.

    Raises Unsure.
    """
    # The byte order mark, comments and trailing commas become blanks, so that positions stay.
    without_mark = " " + text[1:] if text.startswith(BOM) else text
    without_comments = _COMMENT.sub(_spaces, without_mark)
    plain_json = _TRAILING.sub(_spaces, without_comments)
    value = lambda node: json.loads(plain_json[node.start : node.end])
    if not plain_json.strip(_SPACE):
        return Document(text, None, None, value)
    try:
        tree = json.loads(plain_json, object_pairs_hook=tuple, parse_constant=_refuse)
        return Document(text, _parse(without_comments), tree, value)
    except RecursionError:
        raise Unsure("it is nested too deeply") from None
    except ValueError as error:
        raise Unsure(f"line {getattr(error, 'lineno', 1)} is not JSON") from None


def _parse(plain_json: str) -> Node:
    """Return the root node of a JSON text without comments. It has the positions of all values.

    `{"a": [1, 2]}` becomes an object with one member: its key at 1, and as its value a list from 6
    to 12, whose members begin at 7 and 10.

    The text must be valid JSON, except for trailing commas. Raises ValueError for a comma that
    follows no value.
    """
    # The root becomes the only item of this list around it.
    top = Node(0, len(plain_json), "[")
    # The containers that are not closed yet, the innermost last.
    open_nodes = [top]
    # The key whose value must follow. None if no key was read.
    label: re.Match[str] | None = None
    for token in _TOKEN.finditer(plain_json):
        sign = token[0]
        node = open_nodes[-1]
        if sign in ("}", "]"):
            open_nodes.pop().end = token.end()
        elif sign == ",":
            if not node.items:
                raise ValueError("a comma behind nothing")
            # A comma belongs to the member before it, with which it is removed.
            node.items[-1].comma = token.start()
        elif node.kind == "{" and label is None:
            # In an object, this token is a key. The value follows.
            label = token
        # A colon says nothing that `label` does not.
        elif sign != ":":
            # This token is a value, or opens one. The end of a container is set where it closes.
            is_container = sign in ("{", "[")
            value = Node(token.start(), token.end(), sign if is_container else "")
            if label is None:
                node.items.append(Member(None, token.start(), value))
            else:
                node.items.append(Member(json.loads(label[0]), label.start(), value))
            label = None
            if is_container:
                open_nodes.append(value)
    return top.items[0].node
