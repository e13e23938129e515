"""What the editors of JSON, TOML and YAML texts share.

An editor module has three functions. `find(text, path, name)` is the value of member `name` in the container at
`path`, None when there is none. `put(text, path, name, value)` is the text with that member set, and a `Hint`;
`drop(text, path, name, hint)` is the text without it. In a list, `name` is a function that knows its item. All
compare the parse tree of what they made with the old tree and the one member, and raise Unsure when it is another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from commonplace.errors import CommonplaceError

Name = str | Callable[[Any], bool]
Tree = Any
"""`("{", members)` or `("[", members)`, a member being (key or None, tree); anything else is a scalar."""
BOM = "\ufeff"
_LONE_RETURN = re.compile(r"\r(?!\n)")


class Unsure(CommonplaceError):
    """A text this code does not understand well enough to change it; the message says why."""

    code = "unsure"


class Hint(NamedTuple):
    """What `put` made besides the member: `made` containers around it, and what stood where the first one is now."""

    made: int = 0
    inner: str | None = None


NO_HINT = Hint()


def newline(text: str) -> str:
    """How the lines of `text` end. Raises Unsure for ends that programs read differently."""
    if _LONE_RETURN.search(text):
        raise Unsure("a line ends in a carriage return alone")
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def changed(tree: Tree, path: Sequence[str], position: int | None, member: tuple[str | None, Tree] | None) -> Tree:
    """`tree` with a member of the container at `path`: added (`position` None), replaced, or (None) removed."""
    kind, members = tree
    if path:
        at = next(index for index, (key, _) in enumerate(members) if key == path[0])
        member, position = (path[0], changed(members[at][1], path[1:], position, member)), at
    if position is None:
        return kind, [*members, member]
    return kind, [*members[:position], *([] if member is None else [member]), *members[position + 1 :]]


def check(made: Tree, wanted: Tree) -> None:
    """Raise Unsure when the text that was made does not say what it should."""
    if made != wanted:
        raise Unsure("the change would alter more than one entry")


def cut(text: str, *spans: tuple[int, int]) -> str:
    """`text` without these parts."""
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text
