"""What the editors of JSON, TOML, YAML and Markdown texts share, and the one of Markdown.

In a list, the `name` of a member is a function that knows its item. All compare the parse tree of what they made with
the old tree and the one member, and raise Unsure when it is another.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from commonplace.errors import CommonplaceError

Name = str | Callable[[Any], bool]
Tree = Any
"""A tuple of (key, tree), a list of trees, or a scalar."""
BOM = "\ufeff"


class Unsure(CommonplaceError):
    """A text this code does not understand well enough to change it; the message says why."""

    code = "unsure"


class Hint(NamedTuple):
    """What `put` made besides the member: `made` containers around it, and what stood where the first one is now."""

    made: int = 0
    inner: str | None = None


class Editor(ABC):
    """Changes one member of a text, in the container at `path`, and not another byte."""

    @abstractmethod
    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        """The value of the member, None when there is none. Raises Unsure."""

    @abstractmethod
    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        """The text with the member set; one that is there is replaced where it stands. Raises Unsure."""

    @abstractmethod
    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        """The text without the member, which is there; with the hint of `put`, without what that made besides. Raises
        Unsure."""


@dataclass(slots=True)
class Node:
    """A value from `start` to `end`. `kind` is `{`, `[`, `null` where that is as good as nothing, or "" for a scalar;
    `raw` is the parser's own."""

    start: int
    end: int
    kind: str = ""
    items: list[Member] = field(default_factory=list)
    raw: Any = None


@dataclass(slots=True)
class Member:
    """A member that begins at `start`, with the place of the comma behind it, -1 for none."""

    key: str | None
    start: int
    node: Node
    comma: int = -1


class Document(NamedTuple):
    """A text that was read: `root` None for an empty one; `value` tells that of a node."""

    text: str
    root: Node | None
    tree: Tree
    value: Callable[[Node], Any]

    def container(self, path: Sequence[str]) -> tuple[Node | None, Sequence[str]]:
        """The innermost container on the way to `path` that is there, and the names below it that are missing."""
        node = self.root
        for depth, name in enumerate(path):
            at = None if node is None else self.position(node, name)
            if node is None or at is None:
                return node, path[depth:]
            node = node.items[at].node
        return node, ()

    def position(self, node: Node, name: Name) -> int | None:
        """Where in `node` the member is. Raises Unsure when there are two, or `node` is of another kind."""
        if node.kind == "null":
            return None
        wanted = "{" if isinstance(name, str) else "["
        if node.kind != wanted:
            raise Unsure(f"line {self.text.count(chr(10), 0, node.start) + 1} has something else than {wanted}")
        if isinstance(name, str):
            found = [at for at, item in enumerate(node.items) if item.key == name]
            if len(found) > 1:
                raise Unsure(f'"{name}" stands there twice')
        else:
            found = [at for at, item in enumerate(node.items) if name(self.value(item.node))]
        return found[0] if found else None

    def place(self, path: Sequence[str], name: Name) -> tuple[Node, int] | None:
        """The container at `path` and where in it the member is; None when there is none."""
        node, missing = self.container(path)
        at = None if node is None or missing else self.position(node, name)
        return None if node is None or at is None else (node, at)

    def find(self, path: Sequence[str], name: Name) -> Any:
        """The value of a member, None when there is none."""
        found = self.place(path, name)
        return None if found is None else self.value(found[0].items[found[1]].node)


def newline(text: str) -> str:
    """How the lines of `text` end. Raises Unsure for ends that programs read differently."""
    if re.search(r"\r(?!\n)", text):
        raise Unsure("a line ends in a carriage return alone")
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def changed(tree: Tree, path: Sequence[str], position: int | None, member: Tree | None) -> Tree:
    """`tree` with a member of the container at `path` added (`position` None), replaced, or (None) removed; that of an
    object is (key, tree)."""
    items = list(tree)
    if path:
        at = next(index for index, (key, _) in enumerate(items) if key == path[0])
        items[at] = path[0], changed(items[at][1], path[1:], position, member)
    elif position is None:
        items.append(member)
    else:
        items[position : position + 1] = [] if member is None else [member]
    return type(tree)(items)


def check(made: Tree, wanted: Tree) -> None:
    """Raise Unsure when the text that was made does not say what it should."""
    try:
        is_right = made == wanted
    except RecursionError:
        raise Unsure("it is nested too deeply") from None
    if not is_right:
        raise Unsure("the change would alter more than one entry")


class MarkdownEditor(Editor):
    """Puts a paragraph between marks, which hold its name."""

    def find(self, text: str, path: Sequence[str], name: Name) -> Any:
        found = _block(name).search(text)
        return found[1].replace("\r\n", "\n") if found else None

    def put(self, text: str, path: Sequence[str], name: Name, value: Any) -> tuple[str, Hint]:
        end = newline(text)
        block = end.join([f"<!-- {name} -->", *value.split("\n"), f"<!-- /{name} -->", ""])
        if found := _block(name).search(text):
            return text[: found.start()] + block + text[found.end() :], Hint()
        gap = "" if not text else end if text.endswith("\n") else end + end
        return text + gap + block, Hint(inner=gap)

    def drop(self, text: str, path: Sequence[str], name: Name, hint: Hint | None = None) -> str:
        found = _block(name).search(text)
        assert found is not None
        return text[: found.start()].removesuffix((hint and hint.inner) or "") + text[found.end() :]


def _block(name: Name) -> re.Pattern[str]:
    mark = re.escape(str(name))
    return re.compile(rf"<!-- {mark} -->\r?\n(.*?)\r?\n<!-- /{mark} -->\r?\n?", re.DOTALL)
