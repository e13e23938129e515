"""All settings in one frozen value, from config.yaml and few environment variables (contract 001,
15).

Read only by `open_memory`, `serve` and `cli`, which pass plain values on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from memoranda import config_text
from memoranda.clock import SYSTEM_ZONE, duration
from memoranda.errors import ConfigError, InvalidInput
from memoranda.extras import MODEL_PACKAGES
from memoranda.note.model import CATEGORIES
from memoranda.text.user_path import absolute_path, user_folder, user_path

OWN_FOLDER = "projects"
"""The folder of the home below which agents may make projects."""
INSTRUCTIONS_CHARACTERS = 2000
_GATE = ("allow", "warn", "redact", "refuse")
_CHOICES = {
    "notify_method": ("auto", "osascript", "notify-send", "file"),
    "gate_secrets": _GATE,
    "gate_own_secrets": _GATE,
    "create_existing": ("overwrite", "error"),
}
"""The fields of Settings that are one of some words."""
SOURCES = ("claude", "car-agent", "fingersaver", "logseq", "obsidian")
_WEB = ("http://", "https://")


class ConfigKey(NamedTuple):
    """A key of the configuration, a row of config-keys.txt; `default` is its value as YAML, or in
    round brackets what holds without one."""

    name: str
    field: str
    default: str
    meaning: str


@cache
def keys() -> tuple[ConfigKey, ...]:
    """All keys, in the order of contract 001, 15."""
    lines = Path(__file__).with_name("config-keys.txt").read_text("utf-8").splitlines()
    return tuple(
        ConfigKey(*map(str.strip, line.split("|"))) for line in lines if line and line[0] != "#"
    )


# Generating __eq__ takes 0.3 ms of every command
@dataclass(frozen=True, eq=False)
class Settings:
    """What a home is configured to do. `file` is the configuration file, whether it exists or not."""

    home: Path
    file: Path
    url: str | None = field(default=None, repr=False)
    """The database the notes are in, without the space; `home` is then the folder of the copies."""
    space: str = ""
    short_term_ttl: timedelta = timedelta(hours=168)
    timezone: str | None = None
    offset: tzinfo | None = None
    agents: Mapping[str, str] = field(default_factory=dict)
    decay_threshold: timedelta = timedelta(hours=720)
    decay_exempt: tuple[str, ...] = ("soul",)
    traces: bool = True
    keep: tuple[str, ...] = ("soul", "preferences", "people", "skills", "lessons", "decisions")
    upgrade_access_threshold: int = 3
    ingestion: Mapping[str, str] = field(default_factory=dict)
    ingestion_off: frozenset[str] = frozenset()
    history_days: int = 90
    gate_secrets: str = "refuse"
    gate_own_secrets: str = "warn"
    gate_suspicious: bool = True
    gate_rules: str | None = None
    note_bytes: int = 64 << 20
    agent_notes_per_day: int = 10_000
    agent_bytes_per_day: int = 256 << 20
    create_existing: str = "overwrite"
    instructions: tuple[str, ...] = ()
    view_max_characters: int = 0
    projects: Mapping[str, str] = field(default_factory=dict)
    default_project: str = "notes"
    agents_may_add_projects: bool = True
    roots: tuple[str, ...] = ()
    graph_file: str | None = None
    graph_reply_chars: int = 80_000
    context_chars: int = 8000
    per_category: int = 10
    interval: timedelta = timedelta(seconds=60)
    autostart: bool = True
    dream: bool = True
    notify: bool = True
    notify_method: str = "auto"
    day_hour: int = 9
    notify_before: timedelta = timedelta(hours=1)
    pending_days: int = 7
    llm_base_url: str | None = None
    llm_model: str | None = None
    llm_key: str | None = field(default=None, repr=False)
    semantic_model: str | None = None
    semantic_endpoint: str | None = None
    semantic_key: str | None = field(default=None, repr=False)
    bank_debug: bool = False
    warnings: tuple[str, ...] = ()
    rows: dict[str, Any] = field(default_factory=dict, repr=False)
    """What the file said, as it said it."""
    stamp: tuple[int, int] | None = None
    """Of the file, just before it was read (`file_stamp`)."""

    def digest(self) -> str:
        """A text that is the same in two processes that are configured the same, the time zone of
        the system too.
        """
        import time
        from hashlib import sha256

        known = vars(replace(self, rows={}, stamp=None)).values()
        values = [sorted(each) if isinstance(each, frozenset) else each for each in known]
        return sha256(
            f"{values} {time.tzname} {time.timezone}".encode("utf-8", "replace")
        ).hexdigest()

    @property
    def address(self) -> str:
        """The home as `load` takes it: the folder, or the address of the space."""
        if self.url is None:
            return str(self.home)
        return self.address_of(self.space)

    def address_of(self, space: str) -> str:
        """The address of a space of the database the notes are in."""
        url = self.url or ""
        return f"{url}{'&' if '?' in url else '?'}space={space}"

    @property
    def shown_home(self) -> str:
        """The home for people: an address without its passwords."""
        shown = re.sub(r"(//[^/@:]*):[^/@]*@", r"\1@", self.address)
        if self.url is None:
            return shown
        return re.sub(r"[^?&=]*password=[^&]*&", "", shown)

    @property
    def zone(self) -> tzinfo | None:
        """The configured time zone; None means the system's."""
        if self.timezone:
            return _zone(self.timezone)
        return None

    @property
    def reading_zone(self) -> tzinfo:
        """The zone of times in reminders: configured, else `offset` (that of `--now`), else the
        system's.
        """
        return self.zone or self.offset or SYSTEM_ZONE


def load(
    home: str | os.PathLike[str] | None = None,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    unread: bool = False,
) -> Settings:
    """The settings for `home` (else MEMORY_HOME, else storage.root, else ~/.memory), read from
    `file` (else the home's config.yaml). A missing file means defaults, and so does `unread`.
    Raises ConfigError.
    """
    given = home or environ.get("MEMORY_HOME") or None
    url = None
    space = ""
    if isinstance(given, str) and "://" in given:
        if not is_database(given):
            raise ConfigError(
                f'the home is a folder or postgresql://HOST/DATABASE?space=NAME, not "{given}"'
            )
        url, space = _database(given)
    if url is None:
        if given is None and user_folder() is None:
            raise ConfigError(
                "no home folder is known for this user, so there is no place for the memory",
                "Set HOME or MEMORY_HOME, or give --home DIR.",
            )
        folder = absolute(given or "~/.memory")
        _check_readable(folder)
    else:
        folder = _replica(url, space, environ)
    path = absolute(file) if file else folder / "config.yaml"
    stamp = file_stamp(path)
    if unread:
        return Settings(folder, path, url, space, stamp=stamp)
    found = _File(path, config_text.read(path), stamp)
    storage = found.section("storage") if found.rows else {}
    if given is None and (address := storage.get("url")):
        if not isinstance(address, str) or not is_database(address):
            raise found.refuse(f'storage.url must begin with postgresql://, got "{address}"')
        url, space = _database(address)
        folder = _replica(url, space, environ)
    elif given is None and (root := found.text("storage.root", storage.get("root"))):
        folder = absolute(root)
    if (
        url is not None
        and (file or given is None)
        and (cache := found.text("storage.cache", storage.get("cache")))
    ):
        folder = absolute(cache)
    return found.settings(folder, environ, url, space)


def _check_readable(home: Path) -> None:
    """Raise ConfigError for a home this user may not read, as after `sudo memory write`."""
    for place in (home, home / PRIVATE_FOLDER):
        try:
            status = place.stat()
        except OSError:
            continue
        if not os.access(place, os.R_OK | os.X_OK):
            raise ConfigError(
                f"{place} belongs to {owner_of(status)}, and this user may not read it",
                f"Give the memory back to yourself: sudo chown -R {os.geteuid()} {home}",
            )


def owner_of(status: os.stat_result) -> str:
    """The user a file belongs to, by name where that is known."""
    import pwd

    try:
        return pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        return f"user {status.st_uid}"


def again(settings: Settings) -> Settings:
    """`settings` with what changed in their file meanwhile; what the caller or the environment gave
    in place of what the file said stays. Raises ConfigError."""
    stamp = file_stamp(settings.file)
    before, now = (
        _File(settings.file, *each).settings(
            settings.home, os.environ, settings.url, settings.space
        )
        for each in ((settings.rows, settings.stamp), (config_text.read(settings.file), stamp))
    )
    own = {name: value for name, value in vars(settings).items() if value != getattr(before, name)}
    return replace(now, **own)


def file_stamp(file: Path) -> tuple[int, int] | None:
    """What differs once the file is another one: its time of change in nanoseconds, and its inode."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


_DATABASE = re.compile(r"postgres(?:ql)?://")
_SPACE = re.compile(r"[a-z0-9][a-z0-9._-]{0,80}")
DEFAULT_SPACE = "main"
PRIVATE_FOLDER = ".memoranda"


def is_database(home: str) -> bool:
    """Whether this is the address of a database, not a folder."""
    return bool(_DATABASE.match(home))


def _database(address: str) -> tuple[str, str]:
    """The address of a database as its library takes it, and the space in it. Raises ConfigError."""
    from urllib.parse import parse_qsl, urlencode, urlsplit

    try:
        parts = urlsplit(address)
    except ValueError:
        remedy = "use postgresql://HOST/DATABASE?space=NAME"
        raise ConfigError(f"the address of the database cannot be read; {remedy}") from None
    rows = parse_qsl(parts.query, keep_blank_values=True)
    space = dict(rows).get("space", DEFAULT_SPACE)
    if not _SPACE.fullmatch(space):
        raise ConfigError(
            f'invalid space "{space}": use a-z, 0-9, dots, dashes and underscores, at most 81'
        )
    query = urlencode([row for row in rows if row[0] != "space"])
    return f"{parts.scheme}://{parts.netloc}{parts.path}{'?' if query else ''}{query}", space


def _replica(url: str, space: str, environ: Mapping[str, str]) -> Path:
    """The folder of the copies of a space: one for each server, database and space, whoever asks."""
    import hashlib
    from urllib.parse import parse_qsl, urlsplit

    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query))
    place = [
        given.get("host") or parts.netloc.rpartition("@")[2] or environ.get("PGHOST", ""),
        given.get("port") or environ.get("PGPORT", ""),
        given.get("dbname") or parts.path.strip("/") or environ.get("PGDATABASE", ""),
        given.get("service", ""),
        space,
    ]
    name = hashlib.sha256("\0".join(place).encode()).hexdigest()[:16]
    return absolute(environ.get("XDG_CACHE_HOME") or "~/.cache") / "memoranda" / f"{space}-{name}"


def with_key(path: Path, key: str, value: Any) -> str:
    """The text of the file at `path` with a key set (None = taken out), checked as a whole; its
    other lines, comments and order stay. Raises ConfigError."""
    is_plain = key.count(".") == 1 and not isinstance(value, list | dict)
    parts = {tuple(key.split(".")): value}
    if is_plain:
        text = config_text.change(path, {key: value})
    else:
        text = config_text.round_trip_change(path, parts)
    _File(path, config_text.parsed(path, text)).settings(path.parent, {})
    return text


def absolute(path: str | os.PathLike[str]) -> Path:
    """The path from the root of the file system, `~` expanded."""
    return Path(absolute_path(path))


class _File(NamedTuple):
    """A configuration file; its methods give values of Settings and raise ConfigError."""

    path: Path
    rows: dict[str, Any]
    stamp: tuple[int, int] | None = None

    def settings(
        self, home: Path, environ: Mapping[str, str], url: str | None = None, space: str = ""
    ) -> Settings:
        """What it says for a home, or for the copies of a space of the database at `url`."""
        values = {
            "rows": self.rows,
            "stamp": self.stamp,
            **self.llm(environ),
            **self.semantic(environ),
        }
        if self.rows:
            instructions, warnings = self.instructions()
            values |= self.plain() | self.names()
            values |= {"instructions": instructions, "warnings": (*warnings, *self.unknown())}
        if environ.get("MEMORY_BANK_DEBUG", "").lower() in ("1", "true", "yes"):
            values["bank_debug"] = True
        if url is not None:
            for name, place in values.get("projects", {}).items():
                if place != f"{OWN_FOLDER}/{name}":
                    raise self.refuse(
                        f"projects.{name}: {place} is of one machine, the notes are in PostgreSQL; "
                        f"use {OWN_FOLDER}/{name}, or take it out"
                    )
                values["projects"][name] = str(home / place)
        return Settings(home, self.path, url, space, **values)

    def refuse(self, message: str) -> ConfigError:
        return ConfigError(f"load config: {self.path}: {message}")

    def section(self, name: Any, above: str = "") -> dict[str, Any]:
        """The section `name`, or the one of that name within `above`; empty when there is none."""
        value = (self.section(above) if above else self.rows).get(name)
        if value is not None and not isinstance(value, dict):
            raise self.refuse(f"{above}{'.' if above else ''}{name} must hold keys and values")
        return value or {}

    def text(self, name: str, value: Any, *, is_web: bool = False) -> str | None:
        """A text or None; with `is_web` an address."""
        if value is not None and (not isinstance(value, str) or "\0" in value):
            raise self.refuse(f'{name} must be a text, got "{value}"')
        if is_web and value and not value.startswith(_WEB):
            raise self.refuse(f'{name} must begin with http:// or https://, got "{value}"')
        return value

    def typed(self, name: str, value: Any, usual: Any, words: tuple[str, ...] = ()) -> Any:
        """A value of the type of the `usual` one: one of some `words`, categories, a text (None), a
        duration, a whole number from 0 or a truth value."""
        if words:
            if value not in words:
                if len(words) > 2:
                    said = f"one of {', '.join(words)}"
                else:
                    said = " or ".join(words)
                raise self.refuse(f'{name} must be {said}, got "{value}"')
        elif isinstance(usual, tuple):
            value = tuple(value if isinstance(value, list) else [value])
            unknown = [each for each in value if each not in CATEGORIES]
            if unknown:
                raise self.refuse(f'{name}: invalid category "{unknown[0]}"')
        elif usual is None:
            return self.text(name, value)
        elif isinstance(usual, timedelta):
            try:
                return duration(str(value))
            except InvalidInput as error:
                raise self.refuse(f"{name}: {error}") from None
        elif type(value) is not type(usual) or value < 0:
            if isinstance(usual, bool):
                word = "true or false"
            else:
                word = "a whole number from 0"
            raise self.refuse(f'{name} must be {word}, got "{value}"')
        return value

    def plain(self) -> dict[str, Any]:
        """The values that are taken as they are."""
        values: dict[str, Any] = {}
        for each in keys():
            section, _, key = each.name.partition(".")
            to = each.field
            if to and (value := self.section(section).get(key)) is not None:
                values[to] = self.typed(
                    each.name, value, getattr(Settings, to), _CHOICES.get(to, ())
                )
        if values.get("interval", Settings.interval) < timedelta(seconds=1):
            raise self.refuse(
                f"daemon.interval: invalid interval: {self.section('daemon')['interval']}"
            )
        if values.get("day_hour", 0) > 23:
            raise self.refuse(f"notification.day_hour must be 0 to 23, got {values['day_hour']}")
        return values

    def names(self) -> dict[str, Any]:
        """Time zone, agents, projects, the graph's file; the folders of the sources, and which are
        left out.
        """
        values: dict[str, Any] = {
            "agents": {
                str(key).lower(): str(value) for key, value in self.section("agents").items()
            },
            "projects": {
                str(key): self.text(f"projects.{key}", at)
                for key, at in self.section("projects").items()
            },
        }
        nowhere = [
            name for name, folder in values["projects"].items() if not (folder and folder.strip())
        ]
        if nowhere:
            raise self.refuse(
                f"projects.{nowhere[0]} names no folder; give one, or take the line out"
            )
        zone = self.rows.get("timezone")
        if zone is not None:
            try:
                _zone(zone := str(zone))
            except (KeyError, ValueError, OSError):
                raise self.refuse(
                    f'timezone "{zone}" is unknown. Use an IANA name, e.g. Asia/Shanghai.'
                ) from None
            values["timezone"] = zone
        default = self.section("notes").get("default_project")
        if default is not None:
            values["default_project"] = str(default)
        roots = self.section("notes").get("roots") or []
        if not isinstance(roots, list) or not all(isinstance(root, str) for root in roots):
            raise self.refuse(f'notes.roots must be a list of folders, got "{roots}"')
        values["roots"] = tuple(str(absolute(root)) for root in roots)
        graph = self.section("graph")
        place = graph.get("file", graph.get("memoryFilePath", self.rows.get("memoryFilePath")))
        values["graph_file"] = self.text("graph.file", place)
        folders = {}
        off = set()
        for name in self.section("ingestion"):
            keys = self.section(name, "ingestion")
            folder = self.text(f"ingestion.{name}.path", keys.get("path") or "")
            if folder:
                folders[str(name)] = folder
            enabled = keys.get("enabled")
            if enabled is not None and not self.typed(f"ingestion.{name}.enabled", enabled, True):
                off.add(str(name))
        return values | {"ingestion": folders, "ingestion_off": frozenset(off)}

    def llm(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """The endpoint that may help and its key: `llm.*`, else the variables of the memory-bank
        server when all three are set (contract 003, 9)."""
        section = self.section("llm")
        texts = {
            key: self.text(f"llm.{key}", value, is_web=key == "base_url")
            for key, value in section.items()
        }
        url = texts.get("base_url")
        model = texts.get("model")
        key = environ.get(texts.get("api_key_env") or "MEMORY_LLM_API_KEY")
        if not section:
            url, model, key = map(environ.get, ("LLM_API_URL", "LLM_MODEL", "OPENROUTER_API_KEY"))
            if not (key and url and url.startswith(_WEB)):
                return {}
        if url and model:
            return {"llm_base_url": url, "llm_model": model, "llm_key": key or None}
        return {}

    def semantic(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """The embedding model (docs/semantic.md): `semantic.*`; the variable MEMORY_SEMANTIC
        replaces the section.
        """
        section = self.section("semantic")
        given = environ.get("MEMORY_SEMANTIC")
        if given:
            section = {"model": given}
        # YAML reads off as false
        if isinstance(section.get("model"), bool):
            section = section | {"model": None if section["model"] else "off"}
        texts = {
            key: self.text(f"semantic.{key}", value, is_web=key == "endpoint")
            for key, value in section.items()
        }
        model = texts.get("model") or None
        url = texts.get("endpoint") or None
        is_folder = model not in (None, "off", *MODEL_PACKAGES) and ":" not in str(model)
        if model and not url and is_folder:
            model = str(self.path.parent / user_path(model))
        if url:
            key = environ.get(texts.get("api_key_env") or "MEMORY_SEMANTIC_API_KEY")
        else:
            key = None
        return {"semantic_model": model, "semantic_endpoint": url, "semantic_key": key or None}

    def instructions(self) -> tuple[tuple[str, ...], list[str]]:
        """The owner's sentences, at most INSTRUCTIONS_CHARACTERS in all, and a warning if some were
        cut.
        """
        value = self.section("memory_tool").get("instructions") or []
        if not isinstance(value, (str, list)):
            raise self.refuse("memory_tool.instructions must be a text or a list of texts")
        sentences = [str(each).strip() for each in ([value] if isinstance(value, str) else value)]
        kept = []
        room = INSTRUCTIONS_CHARACTERS
        for sentence in sentences:
            if sentence and room > 0:
                kept.append(sentence[:room])
                room -= len(kept[-1]) + 1
        is_cut = sum(map(len, sentences)) > sum(map(len, kept))
        warning = f"memory_tool.instructions is longer than {INSTRUCTIONS_CHARACTERS:,} characters and was cut"
        return tuple(kept), [warning] if is_cut else []

    def unknown(self) -> list[str]:
        """Warnings for keys nobody reads."""
        names = {key.name for key in keys()} | {
            "graph.memoryFilePath",
            "memoryFilePath",
            "projects.{name}",
        }
        sections = {name.partition(".")[0] for name in names}
        found = [str(name) for name in self.rows if name not in sections]
        for name in dict.fromkeys(
            key.name.partition(".")[0] for key in keys() if "{" not in key.name
        ):
            section = self.rows.get(name)
            if isinstance(section, dict):
                found += [f"{name}.{key}" for key in section if f"{name}.{key}" not in names]
        for name, rows in self.section("ingestion").items():
            further = sorted({*map(str, rows or ())} - {"path", "enabled"})
            found += (
                [f"ingestion.{name}.{key}" for key in further]
                if name in SOURCES
                else [f"ingestion.{name}"]
            )
        return [f"unknown key {name}" for name in found]


def _zone(name: str) -> tzinfo:
    """The time zone of a name. Raises KeyError, ValueError or OSError."""
    from zoneinfo import ZoneInfo

    if name.upper() == "UTC":
        return UTC
    return ZoneInfo(name)
