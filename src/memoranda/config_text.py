"""config.yaml as a text: read without the YAML library where it is plain, and changed line by line,
so that all else in it stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from memoranda.errors import ConfigFileError


def read(path: Path) -> dict[str, Any]:
    """The keys and values of the file at `path`; none if it does not exist. Raises ConfigError."""
    text = _text(path)
    if text:
        return parsed(path, text)
    return {}


def stored(rows: dict[str, Any], key: str) -> Any:
    """What `rows`, those of a file, say for a key such as `daemon.interval`; None: nothing."""
    value: Any = rows
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
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


def parsed(path: Path, text: str) -> dict[str, Any]:
    """The keys and values of `text`, which stands at `path` or shall. Raises ConfigError."""
    plain = read_plain(text)
    if plain is not None:
        return plain
    import yaml

    try:
        rows = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    # A date that is none is a ValueError
    except (yaml.YAMLError, ValueError) as error:
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
_YAML_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}


def read_plain(text: str) -> dict[str, Any] | None:
    """What YAML reads in `text` if it has only sections of plain values, without the library (30
    ms); else None.
    """
    rows: dict[str, Any] = {}
    section = None
    for line in text.split("\n"):
        match = re.fullmatch(_LINE, line)
        if match is None:
            return None
        name, key, word, number, span = match.groups()
        if name and name.lower() not in _YAML_WORDS and name not in rows:
            section = name
            rows[name] = None
        elif (
            key and section and key.lower() not in _YAML_WORDS and key not in (rows[section] or {})
        ):
            value: Any = (
                int(number)
                if number
                else span or (word == "true" if word in ("true", "false") else word)
            )
            if word and word not in ("true", "false") and word.lower() in _YAML_WORDS:
                return None
            rows[section] = {**(rows[section] or {}), key: value}
        elif name or key:
            return None
    return rows


def change(path: Path, changes: Mapping[str, Any]) -> str:
    """The text of the configuration file at `path` with `section.key` entries set (None = removed).
    Every other line and comment stays. Raises ConfigError when the file cannot be read as YAML."""
    import yaml

    def filled(rows: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in rows.items() if value not in (None, {})}

    parts = {tuple(name.split(".", 1)): value for name, value in changes.items()}
    wanted = read(path)
    text = _text(path)
    _set(wanted, parts)
    lines = text.splitlines(keepends=True)
    # One nested line of a block mapping is set, added or removed
    for (
        section,
        key,
    ), value in parts.items():
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        if value is None:
            fresh = []
        else:
            fresh = [f"{_scalar(key)}: {_scalar(value)}\n"]
        top = next((at for at, line in enumerate(lines) if line.startswith(f"{section}:")), None)
        if top is None:
            lines += [f"{section}:\n", *(f"  {line}" for line in fresh)] if fresh else []
            continue
        end = next(
            (at for at in range(top + 1, len(lines)) if lines[at][0] not in " \t#\n\r"), len(lines)
        )
        nested = [
            at
            for at in range(top + 1, end)
            if lines[at].strip() and not lines[at].lstrip().startswith("#")
        ]
        if nested:
            indent = lines[nested[0]].partition(lines[nested[0]].lstrip())[0]
        else:
            indent = "  "
        names = tuple(f"{indent}{form}:" for form in (key, f'"{key}"', f"'{key}'", _scalar(key)))
        there = [at for at in nested if lines[at].startswith(names)][:1]
        if there:
            at = there[0]
        else:
            at = (nested[-1] if nested else top) + 1
        lines[at : at + len(there)] = [indent + line for line in fresh]
    changed = "".join(lines)
    with suppress(yaml.YAMLError):
        if filled(yaml.safe_load(changed) or {}) == filled(wanted):
            return changed
    return round_trip_change(path, parts)


def _set(rows: dict[str, Any], changes: Mapping[tuple[str, ...], Any]) -> None:
    """Set nested keys, or with None take them out; what is no section on the way becomes one."""
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
