"""config.yaml as a text. A plain file is read without the YAML library. Changes are made line by
line, so all other lines stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memoranda.errors import ConfigFileError


def read(path: Path) -> dict[str, Any]:
    """The keys and values of the file at `path`; none if it does not exist. Raises ConfigError."""
    text = _text(path)
    if text:
        return parse(path, text)
    return {}


def stored_value(rows: dict[str, Any], key: str) -> Any:
    """The value of a key such as `daemon.interval` in the rows of a file, or None if it is not set."""
    value: Any = rows
    for part in key.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        else:
            value = None
    return value


def _text(path: Path) -> str:
    try:
        # Reading a pipe would never end
        if path.name == "config.yaml" and path.exists() and not path.is_file():
            raise ConfigFileError(path, "it is no regular file; remove it")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigFileError(path, why) from None


def parse(path: Path, text: str) -> dict[str, Any]:
    """The keys and values of a configuration text.

    `path` is named in errors. Raises ConfigError.
    """
    plain = read_plain(text)
    if plain is not None:
        return plain
    import yaml

    try:
        rows = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError) as error:
        # YAML raises ValueError for an impossible date.
        why = " ".join(str(error).split()).replace('in "<unicode string>", line', "at line")
        raise ConfigFileError(path, why) from None
    if rows is not None and not isinstance(rows, dict):
        raise ConfigFileError(path, "it must hold keys and values")
    return rows or {}


_LINE = (
    r"(?:([A-Za-z_][\w-]*):"
    r"|  ([A-Za-z_][\w-]*): (?:([A-Za-z/~][\w/.~-]*)|(0|[1-9][0-9]{0,15})|((?:[0-9]+[smhd])+))"
    r"|#.*)?"
)
# Words that YAML would not read as a key of ours.
_YAML_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}


def read_plain(text: str) -> dict[str, Any] | None:
    """The keys and values of a text that has only sections of plain values. None for any other
    text.

    This avoids the import of the YAML library, which takes 30 ms.
    """
    rows: dict[str, Any] = {}
    section: str | None = None
    for line in text.split("\n"):
        match = re.fullmatch(_LINE, line)
        if match is None:
            return None
        name, key, word, number, span = match.groups()
        if name:
            if name.lower() in _YAML_WORDS or name in rows:
                return None
            section = name
            rows[section] = None
        elif key:
            if section is None:
                return None
            values = rows[section] or {}
            if key.lower() in _YAML_WORDS or key in values or _means_other(word):
                return None
            rows[section] = {**values, key: _plain_value(word, number, span)}
    return rows


def _means_other(word: str | None) -> bool:
    """Whether YAML reads `word` as something else than a text or a truth value of our spelling."""
    if word is None or word in ("true", "false"):
        return False
    return word.lower() in _YAML_WORDS


def _plain_value(word: str | None, number: str | None, span: str | None) -> Any:
    """The value of one of the three forms that a line of `_LINE` can have."""
    if number:
        return int(number)
    if span:
        return span
    if word in ("true", "false"):
        return word == "true"
    return word


def change(path: Path, changes: Mapping[str, Any]) -> str:
    """The text of the configuration file at `path` with `section.key` entries set (None = removed).
    Every other line and comment stays. Raises ConfigError when the file cannot be read as YAML.
    """
    import yaml

    parts = {tuple(name.split(".", 1)): value for name, value in changes.items()}
    expected = read(path)
    text = _text(path)
    _set(expected, parts)
    lines = text.splitlines(keepends=True)
    for (section, key), value in parts.items():
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        _change_line(lines, section, key, value)
    changed = "".join(lines)
    # Anything but plain block mappings may have come out wrong: compare what YAML reads.
    with suppress(yaml.YAMLError):
        if _without_empty(yaml.safe_load(changed) or {}) == _without_empty(expected):
            return changed
    return round_trip_change(path, parts)


def _without_empty(rows: dict[str, Any]) -> dict[str, Any]:
    """The keys of a file that have a value."""
    return {key: value for key, value in rows.items() if value not in (None, {})}


def _first_beginning(
    lines: Sequence[str], numbers: Iterable[int], beginnings: tuple[str, ...]
) -> int | None:
    """The first of these line numbers whose line begins with one of `beginnings`."""
    for number in numbers:
        if lines[number].startswith(beginnings):
            return number
    return None


def _change_line(lines: list[str], section: str, key: str, value: Any) -> None:
    """Set, add or remove (None) the line of `key` in a block mapping named `section`."""
    new_lines = [] if value is None else [f"{_scalar(key)}: {_scalar(value)}\n"]
    top = _first_beginning(lines, range(len(lines)), (f"{section}:",))
    if top is None:
        if new_lines:
            lines += [f"{section}:\n", *(f"  {line}" for line in new_lines)]
        return
    nested = _nested_lines(lines, top)
    indent = "  "
    after = top + 1
    if nested:
        first = lines[nested[0]]
        indent = first[: len(first) - len(first.lstrip())]
        after = nested[-1] + 1
    spellings = tuple(f"{indent}{form}:" for form in (key, f'"{key}"', f"'{key}'", _scalar(key)))
    present = _first_beginning(lines, nested, spellings)
    indented = [indent + line for line in new_lines]
    if present is None:
        lines[after:after] = indented
    else:
        lines[present : present + 1] = indented


def _nested_lines(lines: list[str], top: int) -> list[int]:
    """The numbers of the lines below the key at line `top` that hold a key or value."""
    nested = []
    for at in range(top + 1, len(lines)):
        if lines[at][0] not in " \t#\n\r":
            break
        text = lines[at].strip()
        if text and not text.startswith("#"):
            nested.append(at)
    return nested


def _set(rows: dict[str, Any], changes: Mapping[tuple[str, ...], Any]) -> None:
    """Set nested keys in `rows`; a value of None removes the key.

    Sections on the way are created.
    """
    for (*sections, last), value in changes.items():
        inner = rows
        for name in sections:
            if not isinstance(inner.get(name), dict):
                if value is None:
                    break
                inner[name] = {}
            inner = inner[name]
        else:
            inner[last] = value
            if value is None:
                del inner[last]


def _scalar(value: Any) -> str:
    """A YAML scalar; what is not plainly safe is quoted as JSON, which YAML reads."""
    import json

    is_plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z/~][\w/.~-]*", value)
    if is_plain and value.lower() not in _YAML_WORDS:
        return value
    return json.dumps(value, default=str)


def round_trip_change(path: Path, changes: Mapping[tuple[str, ...], Any]) -> str:
    """The same for files written in another style. Raises ConfigError."""
    from memoranda.note.frontmatter import round_trip

    try:
        changed = round_trip(_text(path), lambda rows, _: _set(rows, changes))
    except ValueError as error:
        raise ConfigFileError(path, str(error)) from None
    emptied = "|".join(
        re.escape(_scalar(key[0])) for key, value in changes.items() if value is None
    )
    if emptied:
        return re.sub(rf"(?m)^(?:{emptied}): \{{\}}\n", "", changed)
    return changed
