"""Read and change the text of config.yaml.

A plain file is read without the YAML library, to save time. A change replaces single lines, so that
all other lines and comments stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memoranda.errors import ConfigFileError


def read(path: Path) -> dict[str, Any]:
    """Read the keys and values of a file. Empty if it does not exist. Raises ConfigError."""
    text = _text(path)
    if text:
        return parse(path, text)
    return {}


def stored_value(rows: dict[str, Any], key: str) -> Any:
    """Return the value of a key such as `daemon.interval`. None if it is not set.

    rows: the keys and values of a file.
    """
    value: Any = rows
    for part in key.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _text(path: Path) -> str:
    """Read the text of a file. "" if it does not exist. Raises ConfigError."""
    try:
        # Reading a pipe would never end. A file that the caller names may be one.
        is_default_file = path.name == "config.yaml"
        if is_default_file and path.exists() and not path.is_file():
            raise ConfigFileError(path, "it is no regular file; remove it")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigFileError(path, why) from None


def parse(path: Path, text: str) -> dict[str, Any]:
    """Read the keys and values of a configuration text. Raises ConfigError.

    path: the file, for errors.
    """
    rows_of_plain_text = read_plain(text)
    if rows_of_plain_text is not None:
        return rows_of_plain_text
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


# A line of a plain file: `section:`, `  key: word`, `  key: 12`, `  key: 1h30m`, a comment, or blank.
_LINE = (
    r"(?:([A-Za-z_][\w-]*):"
    r"|  ([A-Za-z_][\w-]*): (?:([A-Za-z/~][\w/.~-]*)|(0|[1-9][0-9]{0,15})|((?:[0-9]+[smhd])+))"
    r"|#.*)?"
)
# Words that YAML would not read as a key of ours.
_YAML_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}


def read_plain(text: str) -> dict[str, Any] | None:
    """Read a text that has only sections of plain values. None for any other text.

    `daemon:` and the line `  interval: 1h` give `{"daemon": {"interval": "1h"}}`. This avoids the
    import of the YAML library, which takes 30 ms.
    """
    rows: dict[str, Any] = {}
    section: str | None = None
    for line in text.split("\n"):
        match = re.fullmatch(_LINE, line)
        if match is None:
            return None
        name, key, word, number, span = match.groups()
        if name:
            # YAML reads the name as another value, or the section is there twice.
            if name.lower() in _YAML_WORDS or name in rows:
                return None
            section = name
            rows[section] = None
        elif key:
            # An indented line must be in a section.
            if section is None:
                return None
            values = rows[section] or {}
            if key.lower() in _YAML_WORDS or key in values or _means_other(word):
                return None
            rows[section] = {**values, key: _plain_value(word, number, span)}
    return rows


def _means_other(word: str | None) -> bool:
    """Whether YAML reads a word as a value that is neither a text nor `true` or `false`."""
    if word is None or word in ("true", "false"):
        return False
    return word.lower() in _YAML_WORDS


def _plain_value(word: str | None, number: str | None, span: str | None) -> Any:
    """Return the value of a line of the configuration. Only one of the three groups of `_LINE` is
    set.

    word: a word such as `true` or `notes`.
    number: the digits of a whole number.
    span: a span of time such as `30d`.
    """
    if number:
        return int(number)
    if span:
        return span
    if word in ("true", "false"):
        return word == "true"
    return word


def change(path: Path, changes: Mapping[str, Any]) -> str:
    """Return the text of a configuration file with some keys set. Other lines and comments stay.

    path: the file.
    changes: the new values by `section.key`. None removes a key.

    Raises ConfigError if the file cannot be read as YAML.
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
    # In a file of another style, the lines may have been changed wrongly. So YAML checks the result.
    with suppress(yaml.YAMLError):
        if _without_empty(yaml.safe_load(changed) or {}) == _without_empty(expected):
            return changed
    return round_trip_change(path, parts)


def _without_empty(rows: dict[str, Any]) -> dict[str, Any]:
    """Leave out the keys of a file that have no value."""
    return {key: value for key, value in rows.items() if value not in (None, {})}


def _first_beginning(
    lines: Sequence[str], numbers: Iterable[int], beginnings: tuple[str, ...]
) -> int | None:
    """Return the first line number among `numbers` whose line begins with one of `beginnings`.

    Returns None if no line does.
    """
    for number in numbers:
        if lines[number].startswith(beginnings):
            return number
    return None


def _change_line(lines: list[str], section: str, key: str, value: Any) -> None:
    """Set or add the line of a key in the lines of a section. The value None removes the line."""
    new_lines = [] if value is None else [f"{_scalar(key)}: {_scalar(value)}\n"]
    top = _first_beginning(lines, range(len(lines)), (f"{section}:",))
    if top is None:
        # The section is not there, so a key of it cannot be removed.
        if new_lines:
            lines += [f"{section}:\n", *(f"  {line}" for line in new_lines)]
        return

    # The new line is indented as the first line of the section is.
    nested = _nested_lines(lines, top)
    indent = "  "
    end_of_section = top + 1
    if nested:
        first_line = lines[nested[0]]
        indent = first_line[: len(first_line) - len(first_line.lstrip())]
        end_of_section = nested[-1] + 1
    spellings = (key, f'"{key}"', f"'{key}'", _scalar(key))
    beginnings = tuple(f"{indent}{spelling}:" for spelling in spellings)
    present_line = _first_beginning(lines, nested, beginnings)
    indented_lines = [indent + line for line in new_lines]
    if present_line is None:
        lines[end_of_section:end_of_section] = indented_lines
    else:
        lines[present_line : present_line + 1] = indented_lines


def _nested_lines(lines: list[str], top: int) -> list[int]:
    """Return the numbers of the lines of a section, without comments and blank lines.

    top: the number of the line with the section's name.
    """
    nested = []
    for number in range(top + 1, len(lines)):
        # A line that is not indented begins the next section.
        if lines[number][0] not in " \t#\n\r":
            break
        text = lines[number].strip()
        if text and not text.startswith("#"):
            nested.append(number)
    return nested


def _set(rows: dict[str, Any], changes: Mapping[tuple[str, ...], Any]) -> None:
    """Set nested keys in the keys and values of a file. Missing sections are added.

    changes: the new values, by the path of the key: `("daemon", "interval")`. None removes a key.
    """
    for (*sections, last_name), value in changes.items():
        if value is None:
            _remove_key(rows, sections, last_name)
            continue
        inner = rows
        for name in sections:
            if not isinstance(inner.get(name), dict):
                inner[name] = {}
            inner = inner[name]
        inner[last_name] = value


def _remove_key(rows: dict[str, Any], sections: Sequence[str], name: str) -> None:
    """Remove a nested key, if it is there.

    sections: the names of the sections around the key, the outermost first.
    """
    inner = rows
    for section in sections:
        if not isinstance(inner.get(section), dict):
            return
        inner = inner[section]
    inner.pop(name, None)


def _scalar(value: Any) -> str:
    """Write a value as YAML in one line. It is quoted as JSON unless it is safe without quotes."""
    import json

    is_plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z/~][\w/.~-]*", value)
    if is_plain and value.lower() not in _YAML_WORDS:
        return value
    return json.dumps(value, default=str)


def round_trip_change(path: Path, changes: Mapping[tuple[str, ...], Any]) -> str:
    """Return the text of a configuration file with some keys set, for a file of any style.

    The YAML library writes the whole file again, and keeps the comments. Raises ConfigError.

    path: the file.
    changes: the new values, by the path of the key: `("daemon", "interval")`. None removes a key.
    """
    from memoranda.note.frontmatter import round_trip

    text = _text(path)
    # A file with broken YAML is reported in the same words as when it is only read.
    parse(path, text)
    try:
        changed = round_trip(text, lambda rows, _: _set(rows, changes))
    except ValueError as error:
        raise ConfigFileError(path, str(error)) from None
    # A section whose last key was removed is left as `section: {}`. This line is removed, too.
    sections = [key[0] for key, value in changes.items() if value is None]
    if not sections:
        return changed
    names = "|".join(re.escape(_scalar(section)) for section in sections)
    return re.sub(rf"(?m)^(?:{names}): \{{\}}\n", "", changed)
