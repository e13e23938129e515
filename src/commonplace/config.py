"""All settings in one frozen value, from config.yaml and few environment variables (contract 001, 15).

Read only by `open_memory`, `serve` and `cli`, which pass plain values on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta, tzinfo
from pathlib import Path
from typing import Any

from commonplace.clock import SYSTEM_ZONE, duration
from commonplace.errors import ConfigError, InvalidInput
from commonplace.note.model import CATEGORIES

DEFAULT_HOME = "~/.memory"
INSTRUCTIONS_CHARACTERS = 2000
_WEB = ("http://", "https://")

_KNOWN: dict[str, tuple[str, ...]] = {
    "storage": ("root", "short_term_ttl"),
    "daemon": ("interval", "decay_threshold", "decay_exempt", "upgrade_access_threshold", "dream"),
    "notification": ("enabled", "method", "day_hour", "pending_days"),
    "timezone": (),
    "agents": (),
    "ingestion": (),
    "index": ("per_category",),
    "agent": ("context_chars",),
    "history": ("days",),
    "llm": ("base_url", "model", "api_key_env"),
    "semantic": ("model", "endpoint", "api_key_env"),
    "bank": ("debug",),
    "memory_tool": ("create_existing", "instructions", "view_max_characters"),
    "projects": (),
    "notes": ("default_project", "agents_may_add_projects"),
    "graph": ("file", "memoryFilePath", "reply_chars"),
    "memoryFilePath": (),
}
METHODS = ("auto", "osascript", "notify-send", "file")
"""The ways to tell a person of a reminder."""
SOURCES = ("claude", "car-agent", "fingersaver", "logseq", "obsidian")
"""The sources of ingestion (contract 001, 11)."""
_OPEN = ("timezone", "agents", "ingestion", "projects")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a home is configured to do. `file` is the configuration file, whether it exists or not."""

    home: Path
    file: Path
    short_term_ttl: timedelta = timedelta(hours=168)
    timezone: str | None = None
    offset: tzinfo | None = None
    agents: Mapping[str, str] = field(default_factory=dict)
    decay_threshold: timedelta = timedelta(hours=720)
    decay_exempt: tuple[str, ...] = ("soul",)
    upgrade_access_threshold: int = 3
    ingestion: Mapping[str, str] = field(default_factory=dict)
    ingestion_off: frozenset[str] = frozenset()
    history_days: int = 90
    create_existing: str = "overwrite"
    instructions: tuple[str, ...] = ()
    view_max_characters: int = 0
    projects: Mapping[str, str] = field(default_factory=dict)
    default_project: str = "notes"
    agents_may_add_projects: bool = True
    graph_file: str | None = None
    graph_reply_chars: int = 80_000
    context_chars: int = 8000
    per_category: int = 10
    interval: timedelta = timedelta(seconds=60)
    dream: bool = True
    notify: bool = True
    notify_method: str = "auto"
    day_hour: int = 9
    pending_days: int = 7
    llm_base_url: str | None = None
    llm_model: str | None = None
    llm_key: str | None = field(default=None, repr=False)
    semantic_model: str | None = None
    semantic_endpoint: str | None = None
    semantic_key: str | None = field(default=None, repr=False)
    bank_debug: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def zone(self) -> tzinfo | None:
        """The configured time zone; None means the system's."""
        return _zone(self.timezone, self.file) if self.timezone else None

    @property
    def reading_zone(self) -> tzinfo:
        """The zone of what reminders say of time: configured, else `offset` (that of `--now`), else the system's."""
        return self.zone or self.offset or SYSTEM_ZONE


def load(
    home: str | os.PathLike[str] | None = None,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings for `home` (else MEMORY_HOME, else storage.root, else ~/.memory), read from `file`
    (else the home's config.yaml). A missing file means defaults. Raises ConfigError.
    """
    given = home or environ.get("MEMORY_HOME") or None
    folder = _absolute(given or DEFAULT_HOME)
    path = _absolute(file) if file else folder / "config.yaml"
    rows = _read(path)
    if given is None and (root := _section(rows, "storage", path).get("root")):
        folder = _absolute(root)
    further = _lifecycle(rows, path) | _ingestion(rows, path)
    further |= _endpoint(rows, path, environ) | _bank(rows, path, environ)
    further |= _semantic(rows, path, environ)
    return replace(_settings(folder, path, rows), **further)


def _absolute(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.abspath(os.path.expanduser(os.fspath(path))))


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"load config: {path}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    if (usual := _usual(text)) is not None:
        return usual
    import yaml

    try:
        rows = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ConfigError(f"load config: {path}: {' '.join(str(error).split())}") from None
    if rows is None:
        return {}
    if not isinstance(rows, dict):
        raise ConfigError(f"load config: {path}: it must hold keys and values")
    return rows


_LINE = re.compile(
    r"(?:([A-Za-z_][\w-]*):"
    r"|  ([A-Za-z_][\w-]*): (?:([A-Za-z/~][\w/.~-]*)|(0|[1-9][0-9]{0,15})|((?:[0-9]+[smhd])+))"
    r"|#.*)?"
).fullmatch


def _usual(text: str) -> dict[str, Any] | None:
    """What YAML reads in a file of sections with plain values, which needs no 30 ms for the library; else None."""
    rows: dict[str, Any] = {}
    section = None
    for line in text.split("\n"):
        match = _LINE(line)
        if match is None:
            return None
        name, key, word, number, span = match.groups()
        if name and name.lower() not in _WORDS and name not in rows:
            section, rows[name] = name, None
        elif key and section and key.lower() not in _WORDS and key not in (rows[section] or {}):
            value: Any = int(number) if number else span or (word == "true" if word in ("true", "false") else word)
            if word and word not in ("true", "false") and word.lower() in _WORDS:
                return None
            rows[section] = {**(rows[section] or {}), key: value}
        elif name or key:
            return None
    return rows


def _section(rows: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    value = rows.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"load config: {path}: {name} must hold keys and values")
    return value


def _settings(home: Path, path: Path, rows: dict[str, Any]) -> Settings:
    values: dict[str, Any] = {}
    storage, tool, notes = (_section(rows, name, path) for name in ("storage", "memory_tool", "notes"))
    if (ttl := storage.get("short_term_ttl")) is not None:
        values["short_term_ttl"] = _duration(ttl, "storage.short_term_ttl", path)
    if (zone := rows.get("timezone")) is not None:
        _zone(str(zone), path)
        values["timezone"] = str(zone)
    values["agents"] = {str(k).lower(): str(v) for k, v in _section(rows, "agents", path).items()}
    _take(values, "history_days", _section(rows, "history", path), "days", int, "history.days", path)
    _take(values, "view_max_characters", tool, "view_max_characters", int, "memory_tool.view_max_characters", path)
    adding = "agents_may_add_projects"
    _take(values, adding, notes, adding, bool, f"notes.{adding}", path)
    graph = _section(rows, "graph", path)
    _take(values, "graph_reply_chars", graph, "reply_chars", int, "graph.reply_chars", path)
    if (place := graph.get("file", graph.get("memoryFilePath", rows.get("memoryFilePath")))) is not None:
        values["graph_file"] = str(place)
    _take(values, "context_chars", _section(rows, "agent", path), "context_chars", int, "agent.context_chars", path)
    existing = tool.get("create_existing", "overwrite")
    if existing not in ("overwrite", "error"):
        raise ConfigError(
            f'load config: {path}: memory_tool.create_existing must be overwrite or error, got "{existing}"'
        )
    values["create_existing"] = existing
    sentences, warnings = _instructions(tool.get("instructions"), path)
    values["instructions"] = sentences
    values["projects"] = {str(k): str(v) for k, v in _section(rows, "projects", path).items()}
    if (default := notes.get("default_project")) is not None:
        values["default_project"] = str(default)
    return Settings(home, path, warnings=(*warnings, *_unknown(rows)), **values)


def _lifecycle(rows: dict[str, Any], path: Path) -> dict[str, Any]:
    """What the lifecycle jobs and the daemon go by: `daemon.*`, `index.*`, `notification.*`."""
    values: dict[str, Any] = {}
    section = _section(rows, "daemon", path)
    if (threshold := section.get("decay_threshold")) is not None:
        values["decay_threshold"] = _duration(threshold, "daemon.decay_threshold", path)
    if (exempt := section.get("decay_exempt")) is not None:
        names = exempt if isinstance(exempt, list) else [exempt]
        if unknown := [each for each in names if each not in CATEGORIES]:
            raise ConfigError(f'load config: {path}: daemon.decay_exempt: invalid category "{unknown[0]}"')
        values["decay_exempt"] = tuple(names)
    reads = "upgrade_access_threshold"
    _take(values, reads, section, reads, int, f"daemon.{reads}", path)
    if (interval := section.get("interval")) is not None:
        values["interval"] = _duration(interval, "daemon.interval", path)
        if values["interval"] < timedelta(seconds=1):
            raise ConfigError(f"load config: {path}: daemon.interval: invalid interval: {interval}")
    _take(values, "dream", section, "dream", bool, "daemon.dream", path)
    _take(values, "per_category", _section(rows, "index", path), "per_category", int, "index.per_category", path)
    return values | _notification(_section(rows, "notification", path), path)


def _notification(section: dict[str, Any], path: Path) -> dict[str, Any]:
    """How reminders reach the person: `notification.*`."""
    values: dict[str, Any] = {}
    _take(values, "notify", section, "enabled", bool, "notification.enabled", path)
    _take(values, "day_hour", section, "day_hour", int, "notification.day_hour", path)
    _take(values, "pending_days", section, "pending_days", int, "notification.pending_days", path)
    if values.get("day_hour", 0) > 23:
        raise ConfigError(f"load config: {path}: notification.day_hour must be 0 to 23, got {values['day_hour']}")
    if (method := section.get("method")) is not None:
        if method not in METHODS:
            methods = ", ".join(METHODS)
            raise ConfigError(f'load config: {path}: notification.method must be one of {methods}, got "{method}"')
        values["notify_method"] = method
    return values


def _ingestion(rows: dict[str, Any], path: Path) -> dict[str, Any]:
    """Where the sources of ingestion lie, and which are left out: `ingestion.<source>.path`, `.enabled`."""
    folders: dict[str, str] = {}
    off = set()
    for name, keys in _section(rows, "ingestion", path).items():
        if keys is None:
            continue
        if not isinstance(keys, dict):
            raise ConfigError(f"load config: {path}: ingestion.{name} must hold keys and values")
        if not isinstance(folder := keys.get("path") or "", str):
            raise ConfigError(f'load config: {path}: ingestion.{name}.path must be a text, got "{folder}"')
        enabled: dict[str, Any] = {}
        _take(enabled, "is", keys, "enabled", bool, f"ingestion.{name}.enabled", path)
        if folder:
            folders[str(name)] = folder
        if not enabled.get("is", True):
            off.add(str(name))
    return {"ingestion": folders, "ingestion_off": frozenset(off)}


def _endpoint(rows: dict[str, Any], path: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The endpoint that may help and its key: `llm.*`, else the variables of the memory-bank server when all
    three are set (contract 003, 9)."""
    section = _section(rows, "llm", path)
    for key, value in section.items():
        if value is not None and not isinstance(value, str):
            raise ConfigError(f'load config: {path}: llm.{key} must be a text, got "{value}"')
    url, model = section.get("base_url"), section.get("model")
    if url and not url.startswith(_WEB):
        raise ConfigError(f'load config: {path}: llm.base_url must begin with http:// or https://, got "{url}"')
    key = environ.get(section.get("api_key_env") or "MEMORY_LLM_API_KEY")
    if not section:
        url, model, key = (environ.get(name) for name in ("LLM_API_URL", "LLM_MODEL", "OPENROUTER_API_KEY"))
        if not (key and url and url.startswith(_WEB)):
            return {}
    return {"llm_base_url": url, "llm_model": model, "llm_key": key or None} if url and model else {}


def _semantic(rows: dict[str, Any], path: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The embedding model (docs/semantic.md): `semantic.*`; the variable MEMORY_SEMANTIC stands in for `model`."""
    section = dict(_section(rows, "semantic", path))
    if given := environ.get("MEMORY_SEMANTIC"):
        section = {"model": given}
    section["model"] = {False: "off", True: None}.get(section.get("model"), section.get("model"))  # YAML: off is false
    for key, value in section.items():
        if value is not None and not isinstance(value, str):
            raise ConfigError(f'load config: {path}: semantic.{key} must be a text, got "{value}"')
    model, url = section["model"] or None, section.get("endpoint") or None
    if url and not url.startswith(_WEB):
        raise ConfigError(f'load config: {path}: semantic.endpoint must begin with http:// or https://, got "{url}"')
    if model and not url and model != "off" and ":" not in model:
        model = str(path.parent / os.path.expanduser(model))
    key = environ.get(section.get("api_key_env") or "MEMORY_SEMANTIC_API_KEY") if url else None
    return {"semantic_model": model, "semantic_endpoint": url, "semantic_key": key or None}


def _bank(rows: dict[str, Any], path: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    _take(values, "bank_debug", _section(rows, "bank", path), "debug", bool, "bank.debug", path)
    return {"bank_debug": True} if environ.get("MEMORY_BANK_DEBUG", "").lower() in ("1", "true", "yes") else values


def _take(values: dict[str, Any], to: str, rows: dict[str, Any], key: str, kind: type, name: str, path: Path) -> None:
    value = rows.get(key)
    if value is None:
        return
    if type(value) is not kind or (kind is int and value < 0):
        word = "true or false" if kind is bool else "a whole number from 0"
        raise ConfigError(f'load config: {path}: {name} must be {word}, got "{value}"')
    values[to] = value


def _duration(value: Any, name: str, path: Path) -> timedelta:
    try:
        return duration(str(value))
    except InvalidInput as error:
        raise ConfigError(f"load config: {path}: {name}: {error}") from None


def _zone(name: str, path: Path) -> tzinfo:
    from zoneinfo import ZoneInfo

    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError(
            f'load config: {path}: timezone "{name}" is unknown. Use an IANA name, e.g. Asia/Shanghai.'
        ) from None


def _instructions(value: Any, path: Path) -> tuple[tuple[str, ...], list[str]]:
    """The owner's sentences, at most 2,000 characters in all, and a warning if some were cut."""
    if value is None:
        return (), []
    if not isinstance(value, (str, list)):
        raise ConfigError(f"load config: {path}: memory_tool.instructions must be a text or a list of texts")
    sentences = [value] if isinstance(value, str) else [str(each) for each in value]
    kept, room = [], INSTRUCTIONS_CHARACTERS
    for sentence in (each.strip() for each in sentences):
        if sentence and room > 0:
            kept.append(sentence[:room])
            room -= len(kept[-1]) + 1
    cut = sum(len(s.strip()) for s in sentences) > sum(map(len, kept))
    warning = f"memory_tool.instructions is longer than {INSTRUCTIONS_CHARACTERS:,} characters and was cut"
    return tuple(kept), [warning] if cut else []


def _unknown(rows: dict[str, Any]) -> list[str]:
    """Warnings for keys nobody reads."""
    found = [str(name) for name in rows if name not in _KNOWN]
    for name, keys in _KNOWN.items():
        section = rows.get(name)
        if name not in _OPEN and isinstance(section, dict):
            found += [f"{name}.{key}" for key in section if key not in keys]
    for name, keys in (rows.get("ingestion") or {}).items():
        strange = keys.keys() - {"path", "enabled"} if name in SOURCES and keys else set()
        found += [f"ingestion.{name}.{key}" for key in sorted(map(str, strange))]
        found += [f"ingestion.{name}"] if name not in SOURCES else []
    return [f"unknown key {name}" for name in found]


def change(path: Path, changes: Mapping[str, Any]) -> str:
    """The text of the configuration file at `path` with `section.key` entries set (None = removed).

    Every other line and comment stays. Raises ConfigError when the file cannot be read as YAML.
    """
    before = _read(path)
    text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    wanted = {name: dict(rows) if isinstance(rows, dict) else rows for name, rows in before.items()}
    lines = text.splitlines(keepends=True)
    for name, value in changes.items():
        section, _, key = name.partition(".")
        _set(lines, section, key, value)
        if not isinstance(wanted.get(section), dict):
            wanted[section] = {}
        wanted[section].pop(key, None)
        if value is not None:
            wanted[section][key] = value
    changed = "".join(lines)
    return changed if _loads_as(changed, wanted) else _round_trip(text, changes)


def _set(lines: list[str], section: str, key: str, value: Any) -> None:
    """Set, add or remove one nested line of a block mapping, in place."""
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    fresh = [] if value is None else [f"{_scalar(key)}: {_scalar(value)}\n"]
    top = next((at for at, line in enumerate(lines) if line.startswith(f"{section}:")), None)
    if top is None:
        lines += [f"{section}:\n", *(f"  {line}" for line in fresh)] if fresh else []
        return
    end = next((at for at in range(top + 1, len(lines)) if lines[at][0] not in " \t#\n\r"), len(lines))
    nested = [at for at in range(top + 1, end) if lines[at].strip() and not lines[at].lstrip().startswith("#")]
    indent = lines[nested[0]][: len(lines[nested[0]]) - len(lines[nested[0]].lstrip())] if nested else "  "
    names = tuple(f"{indent}{form}:" for form in (key, f'"{key}"', f"'{key}'", _scalar(key)))
    at = next((at for at in nested if lines[at].startswith(names)), None)
    if at is None:
        behind = (nested[-1] if nested else top) + 1
        lines[behind:behind] = [indent + line for line in fresh]
    else:
        lines[at : at + 1] = [indent + line for line in fresh]


def _scalar(value: Any) -> str:
    """A YAML scalar; what is not plainly safe is quoted as JSON, which YAML reads."""
    text = str(value)
    return text if re.fullmatch(r"[A-Za-z/~][\w/.~-]*", text) and text.lower() not in _WORDS else json.dumps(text)


_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}


def _loads_as(text: str, wanted: dict[str, Any]) -> bool:
    import yaml

    try:
        rows = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        return False
    empty = (None, {})
    return {k: v for k, v in rows.items() if v not in empty} == {k: v for k, v in wanted.items() if v not in empty}


def _round_trip(text: str, changes: Mapping[str, Any]) -> str:
    """The same through ruamel.yaml, for files written in another style."""
    import io

    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    rows = yaml.load(text)
    rows = CommentedMap() if rows is None else rows
    for name, value in changes.items():
        section, _, key = name.partition(".")
        if rows.get(section) is None:
            rows[section] = CommentedMap()
        if value is None:
            rows[section].pop(key, None)
        else:
            rows[section][key] = value
    out = io.StringIO()
    yaml.dump(rows, out)
    return out.getvalue()
