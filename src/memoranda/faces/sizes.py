"""Refuses calls with arguments that are too large, on every transport, before they are carried out.

The largest sizes are in texts/sizes.json: characters of a text, elements of a list, keys of an
object. They are listed by the name of the argument, or of the key in an object. 0 means that only
the engine's limit of a note applies (`limits.note_bytes`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.faces.texts import text_file

# An error repeats at most this many characters of a name.
_NAME_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Sizes:
    """The largest sizes of arguments.

    depth: how deeply lists and objects may be nested.
    values: the number of values in a call, at all depths.
    text: characters of a text.
    texts: name of an argument -> characters, where they differ from `text`.
    list: elements of a list.
    lists: name of an argument -> elements, where they differ from `list`.
    list_of_objects: name of an argument -> elements, if the elements are objects.
    object: keys of an object.
    """

    depth: int
    values: int
    text: int
    texts: dict[str, int]
    list: int
    lists: dict[str, int]
    list_of_objects: dict[str, int]
    object: int


@cache
def _sizes() -> Sizes:
    """Return the largest sizes from texts/sizes.json."""
    return Sizes(**json.loads(text_file("sizes.json")))


def check_sizes(arguments: Any) -> None:
    """Raise InvalidInput for arguments that are too large, with the size and the remedy.

    Some clients send lists as text. Such a text is checked again after it became a list.
    """
    if not isinstance(arguments, dict):
        return
    value_count = 0
    # Each pass checks the values at one depth of nesting (`level`), and collects those inside them.
    # This is no recursion, because the arguments may be nested deeper than Python can follow.
    level = [(name, value) for name, value in arguments.items()]
    _check_keys("The call", arguments)
    for _ in range(_sizes().depth):
        inner: list[tuple[str, Any]] = []
        for name, value in level:
            inner += _check_value(name, value)
        value_count += len(level)
        if value_count > _sizes().values:
            raise InvalidInput(
                f"The call has more than {_sizes().values:,} values. Send it in several calls."
            )
        if not inner:
            return
        level = inner
    raise InvalidInput(
        f"Parameter `{_shown_name(level[0][0])}` is nested more than {_sizes().depth} deep. Flatten it."
    )


def _check_value(name: str, value: Any) -> list[tuple[str, Any]]:
    """Check the size of a value. Return (name, value) for each value in it, to be checked next.

    The elements of a list have the name of the list, the values of an object the names of their
    keys. The name decides on the limit. Raises InvalidInput.
    """
    if isinstance(value, str):
        _check_text(name, value)
        return []
    if isinstance(value, list):
        _check_list(name, value)
        return [(name, element) for element in value]
    if isinstance(value, dict):
        _check_keys(f"Parameter `{_shown_name(name)}`", value)
        # Users choose these keys, so that a key like `query` is not the argument of that name.
        has_own_names = name in ("metadata", "metadata_filters")
        return [(name if has_own_names else str(key), inner) for key, inner in value.items()]
    return []


def _check_text(name: str, value: str) -> None:
    """Raise InvalidInput for a text that is too long."""
    sizes = _sizes()
    most_characters = sizes.texts.get(name, sizes.text)
    if most_characters and name not in sizes.lists and len(value) > most_characters:
        raise InvalidInput(
            f"Parameter `{_shown_name(name)}` may have {most_characters:,} characters; "
            f"it has {len(value):,}. Shorten it, or put long text into the content of a note."
        )


def _check_list(name: str, value: list[Any]) -> None:
    """Raise InvalidInput for a list that is too long."""
    sizes = _sizes()
    most_items = sizes.lists.get(name, sizes.list)
    if any(isinstance(element, dict) for element in value):
        most_items = sizes.list_of_objects.get(name, most_items)
    if len(value) > most_items:
        raise InvalidInput(
            f"Parameter `{_shown_name(name)}` may have {most_items:,} elements; "
            f"it has {len(value):,}. Send it in several calls."
        )


def _check_keys(noun: str, value: dict[Any, Any]) -> None:
    """Raise InvalidInput for an object with too many or too long keys. `noun` begins the message."""
    most_keys = _sizes().object
    if len(value) > most_keys:
        raise InvalidInput(f"{noun} may have {most_keys} keys; it has {len(value):,}. Use fewer.")
    for key in value:
        if len(str(key)) > _sizes().text:
            raise InvalidInput(
                f"{noun} has a key of {len(str(key)):,} characters; {_sizes().text:,} is the most."
            )


def _shown_name(name: str) -> str:
    """Return the name of an argument for an error. A long one is cut."""
    if len(name) <= _NAME_SHOWN:
        return name
    return name[: _NAME_SHOWN - len("...")] + "..."
