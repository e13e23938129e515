"""The settings of a home, from config.yaml and a few environment variables (contract 001, 15).

`load` returns all of them as one value, `Settings`. Only `open_memory`, `serve` and `cli` read the
settings. They pass plain values on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, timedelta, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from memoranda import config_text
from memoranda.clock import SYSTEM_ZONE, duration
from memoranda.errors import ConfigError, ConfigFileError, InvalidInput, choices
from memoranda.note.model import CATEGORIES
from memoranda.note.project_access import ProjectAccess
from memoranda.state_place import PRIVATE, keep_state
from memoranda.text.pattern import lazy_pattern
from memoranda.text.user_path import absolute_path, user_folder

OWN_FOLDER = "projects"
"""The folder of the home below which agents may make projects."""
INSTRUCTIONS_CHARACTERS = 2000
"""How long the owner's sentences for agents may be together."""
# How the write gate may treat secrets.
_GATE = ("allow", "warn", "redact", "refuse")
# The words that the value of a field may be, by the field of Settings.
_CHOICES = {
    "notify_method": ("auto", "osascript", "notify-send", "file"),
    "gate_secrets": _GATE,
    "gate_own_secrets": _GATE,
    "create_existing": ("overwrite", "error"),
}
SOURCES = ("claude", "car-agent", "fingersaver", "logseq", "obsidian")
"""The names of the sources of `memory ingest`."""
# Keys of a project that say what agents may do in it.
_ACCESS_KEYS = {"read_only", "agents", "write_folder", "ignore"}
_WEB = ("http://", "https://")


class ConfigKey(NamedTuple):
    """A key of the configuration, as a row of config-keys.txt describes it.

    name: the key with its section: `daemon.interval`.
    field: the field of Settings that it sets. "" for a key that is read in another way.
    default: the default value as YAML, or a description in round brackets.
    meaning: a sentence about it, for `memory config`.
    """

    name: str
    field: str
    default: str
    meaning: str


@cache
def keys() -> tuple[ConfigKey, ...]:
    """Return all keys, in the order of contract 001, 15."""
    lines = Path(__file__).with_name("config-keys.txt").read_text("utf-8").splitlines()
    config_keys: list[ConfigKey] = []
    for line in lines:
        if line and not line.startswith("#"):
            columns = [column.strip() for column in line.split("|")]
            config_keys.append(ConfigKey(*columns))
    return tuple(config_keys)


def key_named(name: str) -> ConfigKey:
    """Return the key with a name.

    Raises InvalidInput for an unknown name, with similar names.
    """
    for key in keys():
        # In the name of a key, `{name}` means any name, as in `agents.{name}`.
        pattern = re.escape(key.name).replace(r"\{name\}", r"[\w .@-]+?")
        if re.fullmatch(pattern, name):
            return key._replace(name=name)
    if name.startswith("projects."):
        raise InvalidInput("projects are added and removed by memory project")
    hint = choices(name, [key.name for key in keys()], "Settings")
    raise InvalidInput(f'unknown setting "{name}"', hint)


# The methods that `dataclass` would generate for 60 fields take 2 ms of every command.
@dataclass(frozen=True, init=False, repr=False, eq=False)
class Settings:
    """The settings of a home. config-keys.txt explains the fields that a key sets."""

    home: Path
    """The folder of the home or, for notes in a database, of their copies on this machine."""
    file: Path
    """The configuration file, whether it exists or not."""
    url: str | None = field(default=None, repr=False)
    """The address of the database that has the notes, without the space. None for a folder."""
    space: str = ""
    """The space in the database. "" for a folder."""
    short_term_ttl: timedelta = timedelta(hours=168)
    timezone: str | None = None
    offset: tzinfo | None = None
    agents: Mapping[str, str] = field(default_factory=dict)
    decay_threshold: timedelta = timedelta(hours=720)
    decay_exempt: tuple[str, ...] = ("soul",)
    traces: bool = True
    hook_tools: bool = True
    hook_hold: bool = True
    introduces: bool = True
    transcripts: bool = False
    transcripts_without: tuple[str, ...] = ()
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
    agent_note_bytes: int = 12 << 20
    agent_notes_per_day: int = 10_000
    agent_bytes_per_day: int = 256 << 20
    create_existing: str = "overwrite"
    instructions: tuple[str, ...] = ()
    view_max_characters: int = 0
    projects: Mapping[str, str] = field(default_factory=dict)
    access: Mapping[str, ProjectAccess] = field(default_factory=dict)
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
    rerank_model: str | None = None
    rerank_endpoint: str | None = None
    rerank_key: str | None = field(default=None, repr=False)
    bank_debug: bool = False
    warnings: tuple[str, ...] = ()
    rows: dict[str, Any] = field(default_factory=dict, repr=False)
    """The keys and values of the file, as it has them."""
    stamp: tuple[int, int] | None = None
    """The `file_stamp` of the file just before it was read. None if it was not read."""

    def __init__(
        self, home: Path, file: Path, url: str | None = None, space: str = "", **further: Any
    ):
        """Set all fields to their defaults, then to these values.

        further: values of other fields by name.

        Raises TypeError for a name that is not a field.
        """
        values = vars(self)
        for item in fields(self):
            if item.default_factory is not MISSING:
                values[item.name] = item.default_factory()
            else:
                values[item.name] = item.default
        unknown = further.keys() - values.keys()
        if unknown:
            raise TypeError(f"no settings: {', '.join(sorted(unknown))}")
        values.update(further, home=home, file=file, url=url, space=space)

    def __repr__(self) -> str:
        return f"<Settings {self.shown_home!r}>"

    def digest(self) -> str:
        """Return a text that is equal in two processes with the same settings and system time zone."""
        import time
        from hashlib import sha256

        values: list[Any] = []
        for value in vars(replace(self, rows={}, stamp=None)).values():
            # The order of a set differs between processes.
            values.append(sorted(value) if isinstance(value, frozenset) else value)
        text = f"{values} {time.tzname} {time.timezone}"
        return sha256(text.encode("utf-8", "replace")).hexdigest()

    @property
    def address(self) -> str:
        """The home in the form that `load` takes: the folder, or the address of the space."""
        if self.url is None:
            return str(self.home)
        return self.address_of(self.space)

    def address_of(self, space: str) -> str:
        """Return the address of a space in the database that has the notes."""
        url = self.url or ""
        separator = "&" if "?" in url else "?"
        return f"{url}{separator}space={space}"

    @property
    def shown_home(self) -> str:
        """The home for people: an address without its passwords."""
        address_shown = re.sub(r"(//[^/@:]*):[^/@]*@", r"\1@", self.address)
        if self.url is None:
            return address_shown
        return re.sub(r"[^?&=]*password=[^&]*&", "", address_shown)

    @property
    def zone(self) -> tzinfo | None:
        """The configured time zone, or None for the system's."""
        if self.timezone:
            return _zone(self.timezone)
        return None

    @property
    def reading_zone(self) -> tzinfo:
        """The time zone for reading times in texts, such as "tomorrow at 9".

        It is the configured zone. Without one, it is the offset of `--now`, or else the zone of the
        system.
        """
        return self.zone or self.offset or SYSTEM_ZONE


def load(
    home: str | os.PathLike[str] | None = None,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    unread: bool = False,
) -> Settings:
    """Read the settings of a home.

    home: the home. None means the first of these that is set: the environment variable MEMORY_HOME,
        `storage.root` in the configuration, `~/.memory`.
    file: the configuration file. None means `config.yaml` in the home. If the file is missing, the
        defaults are used.
    environ: the environment variables.
    unread: whether to use the defaults and leave the file unread.

    Raises ConfigError.
    """
    _check_not_blank("home", home)
    _check_not_blank("configuration file", file)
    # An empty variable is a variable that is not set, but an empty argument is a wrong place.
    chosen_home = home or environ.get("MEMORY_HOME") or None
    location = _location(chosen_home, environ)
    if file:
        path = absolute(file)
    else:
        path = location.folder / "config.yaml"
    stamp = file_stamp(path)
    if unread:
        return Settings(location.folder, path, location.url, location.space, stamp=stamp)
    config_file = _File(path, config_text.read(path), stamp)

    # The file may name another place for the home, unless the caller has chosen one.
    if chosen_home is None:
        location = _stored_location(config_file, location, environ)
    # The configuration in the folder with the copies of a database must not move that folder. It is
    # not there if the caller named the file, or if it was found in `~/.memory`.
    is_file_outside = bool(file) or chosen_home is None
    if is_file_outside:
        location = _with_cache_folder(config_file, location)

    # Later calls find the folder of the state by the home alone.
    keep_state(location.folder, _state(config_file, location))
    return config_file.settings(location.folder, environ, location.url, location.space)


def _state(config_file: _File, location: _Location) -> Path | None:
    """Return the folder outside the home that `storage.state` names.

    The state is the history and the index of the home. None if the setting names no folder, or if
    the home is in a database, which has its own history.

    config_file: the configuration.
    location: the place of the home.

    Raises ConfigError.
    """
    name = "storage.state"
    folder = config_file.text(name, config_file.section("storage").get("state"))
    if not folder or location.url is not None:
        return None
    place = absolute(folder)
    is_relative = not folder.startswith(("/", "~"))
    if is_relative or place.is_relative_to(location.folder):
        raise config_file.refuse(name, f'must be a folder outside the home, got "{folder}"')
    return place


class _Location(NamedTuple):
    """The place of a memory.

    folder: the folder of the home. For notes in a database, the folder with local copies of them.
    url: the address of the database; None for a folder.
    space: the space in the database; "" for a folder.
    """

    folder: Path
    url: str | None = None
    space: str = ""


def _check_not_blank(what: str, place: str | os.PathLike[str] | None) -> None:
    """Raise ConfigError for a place that is an empty text, as from a variable that is not set.

    what: the words for the place, such as `home`.
    """
    if place is not None and not os.fspath(place).strip():
        raise ConfigError(f"the {what} is an empty text", "Name a place, or leave it out.")


def _location(chosen_home: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> _Location:
    """Return the place of a home. Raises ConfigError.

    chosen_home: a folder or an address that the caller or the environment chose. None means
        `~/.memory`.
    environ: the environment variables.
    """
    if isinstance(chosen_home, str) and "://" in chosen_home:
        if not is_database(chosen_home):
            raise ConfigError(
                "the home is a folder or postgresql://HOST/DATABASE?space=NAME, "
                f'not "{chosen_home}"'
            )
        return _database_location(chosen_home, environ)
    if chosen_home is None and user_folder() is None:
        raise ConfigError(
            "no home folder is known for this user, so there is no place for the memory",
            "Set HOME or MEMORY_HOME, or give --home DIR.",
        )
    folder = absolute(chosen_home or "~/.memory")
    _check_readable(folder)
    return _Location(folder)


def _database_location(address: str, environ: Mapping[str, str]) -> _Location:
    """Return where a memory in a database is: its local folder, the database and the space.

    address: `postgresql://HOST/DATABASE?space=NAME`. A space is one memory in the database.
    environ: the environment variables.

    Raises ConfigError.
    """
    url, space = _database(address)
    return _Location(_replica(url, space, environ), url, space)


def _stored_location(
    config_file: _File, location: _Location, environ: Mapping[str, str]
) -> _Location:
    """Return the place that the keys of `storage` name, or else `location`.

    config_file: the configuration.
    location: the place of the home without these keys.
    environ: the environment variables.

    Raises ConfigError.
    """
    storage = config_file.section("storage")
    address = storage.get("url")
    if address:
        if not isinstance(address, str) or not is_database(address):
            raise config_file.refuse(
                "storage.url", f'must begin with postgresql://, got "{address}"'
            )
        return _database_location(address, environ)
    root = config_file.text("storage.root", storage.get("root"))
    if root:
        return location._replace(folder=absolute(root))
    return location


def _with_cache_folder(config_file: _File, location: _Location) -> _Location:
    """Return a place with the folder that `storage.cache` names. Raises ConfigError.

    The folder has the copies of a home in a database. For a home in a folder, or without this key,
    the place is returned unchanged.
    """
    if location.url is None:
        return location
    cache_folder = config_file.text("storage.cache", config_file.section("storage").get("cache"))
    if not cache_folder:
        return location
    return location._replace(folder=absolute(cache_folder))


def _check_readable(home: Path) -> None:
    """Raise ConfigError for a home that is a file, or that this user may not read.

    A home belongs to another user after `sudo memory write`.
    """
    if home.is_file():
        raise ConfigError(f"{home} is a file", "The memory home must be a folder.")
    for place in (home, home / PRIVATE):
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
    """Return the name of the user that a file belongs to, or `user UID` if it has no name."""
    import pwd

    try:
        return pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        return f"user {status.st_uid}"


def reread(settings: Settings) -> Settings:
    """Read the settings again from their file.

    A setting that the caller or the environment set stays as it is. Raises ConfigError.
    """
    stamp = file_stamp(settings.file)
    file_before = _File(settings.file, settings.rows, settings.stamp)
    file_now = _File(settings.file, config_text.read(settings.file), stamp)
    place = (settings.home, os.environ, settings.url, settings.space)
    settings_before = file_before.settings(*place)
    settings_now = file_now.settings(*place)
    # Values that the file alone would not give came from the caller or the environment.
    overrides = {
        name: value
        for name, value in vars(settings).items()
        if value != getattr(settings_before, name)
    }
    return replace(settings_now, **overrides)


def file_stamp(file: Path) -> tuple[int, int] | None:
    """Return the time of the last change of a file in nanoseconds, and its inode.

    A file with the same pair has not changed. None if the file cannot be read.
    """
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


# An address of a home in PostgreSQL.
_DATABASE = lazy_pattern(r"postgres(?:ql)?://")
# A space is a part of table names and addresses, so only a few characters are allowed.
_SPACE = lazy_pattern(r"[a-z0-9][a-z0-9._-]{0,80}")
DEFAULT_SPACE = "main"


def is_database(home: str) -> bool:
    """Whether a home is the address of a database, not a folder."""
    return bool(_DATABASE.match(home))


def _database(address: str) -> tuple[str, str]:
    """Split an address into the address of the database, and the name of the space.

    `postgresql://host/db?space=work` gives `postgresql://host/db` and `work`. Raises ConfigError.
    """
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
    url = f"{parts.scheme}://{parts.netloc}{parts.path}"
    other_parameters = [(name, value) for name, value in rows if name != "space"]
    if other_parameters:
        url += f"?{urlencode(other_parameters)}"
    return url, space


def _replica(url: str, space: str, environ: Mapping[str, str]) -> Path:
    """Return the folder on this machine that keeps a copy of a memory in a database.

    All processes of the machine share it. Another server, database or space has another folder.

    url: the address of the database.
    space: the name of the memory in the database.
    environ: the environment variables. PGHOST and others replace missing parts of the address.
    """
    import hashlib
    from urllib.parse import parse_qsl, urlsplit

    parts = urlsplit(url)
    parameters = dict(parse_qsl(parts.query))
    # The part of an address in front of `@` has the user and the password.
    host_in_address = parts.netloc.rpartition("@")[2]
    database_in_address = parts.path.strip("/")
    place = [
        parameters.get("host") or host_in_address or environ.get("PGHOST", ""),
        parameters.get("port") or environ.get("PGPORT", ""),
        parameters.get("dbname") or database_in_address or environ.get("PGDATABASE", ""),
        parameters.get("service", ""),
        space,
    ]
    digest = hashlib.sha256("\0".join(place).encode()).hexdigest()[:16]
    caches = absolute(environ.get("XDG_CACHE_HOME") or "~/.cache")
    return caches / "memoranda" / f"{space}-{digest}"


def with_key(path: Path, key: str, value: Any) -> str:
    """Return the text of a configuration file with a key set. Other lines and comments stay.

    path: the file.
    key: the name of the key, such as `daemon.interval`.
    value: the new value. None removes the key.

    Raises ConfigError if the file would have a wrong value.
    """
    is_plain_line = key.count(".") == 1 and not isinstance(value, list | dict)
    if is_plain_line:
        text = config_text.change(path, {key: value})
    else:
        text = config_text.round_trip_change(path, {tuple(key.split(".")): value})
    # Reading the settings checks all values.
    _File(path, config_text.parse(path, text)).settings(path.parent, {})
    return text


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path, with `~` expanded."""
    return Path(absolute_path(path))


class _File(NamedTuple):
    """A configuration file whose values are checked and become Settings.

    All methods raise ConfigError.

    path: the file.
    rows: the keys and values of the file.
    stamp: the `file_stamp` before it was read.
    """

    path: Path
    rows: dict[str, Any]
    stamp: tuple[int, int] | None = None

    def settings(
        self, home: Path, environ: Mapping[str, str], url: str | None = None, space: str = ""
    ) -> Settings:
        """Return the settings of a home.

        home: its folder, or the folder with the copies of a space of a database.
        environ: the environment variables. Some of them override the file.
        url: the address of the database; None for a home in a folder.
        space: the space in the database; "" for a home in a folder.
        """
        values: dict[str, Any] = {
            "rows": self.rows,
            "stamp": self.stamp,
            **self.llm(environ),
            **self.semantic(environ),
        }
        if self.rows:
            instructions, warnings = self.instructions()
            values |= self.plain_values() | self.other_values()
            values["instructions"] = instructions
            values["warnings"] = (*warnings, *self.unknown_key_warnings())
        if environ.get("MEMORY_BANK_DEBUG", "").lower() in ("1", "true", "yes"):
            values["bank_debug"] = True
        if url is not None:
            values["projects"] = self._shared_projects(home, values.get("projects", {}))
        return Settings(home, self.path, url, space, **values)

    def _shared_projects(self, home: Path, projects: Mapping[str, str]) -> dict[str, str]:
        """Return the folder of each project of a memory in a database, by the project's name.

        home: the folder with the local copies of the notes.
        projects: the folders as the configuration names them.

        Raises ConfigError for a folder that other machines do not have.
        """
        folders: dict[str, str] = {}
        for name, place in projects.items():
            # Other machines that share the database do not have another folder of this machine.
            if place != f"{OWN_FOLDER}/{name}":
                raise self.refuse(
                    f"projects.{name}",
                    f"{place} is of one machine, the notes are in PostgreSQL; "
                    f"use {OWN_FOLDER}/{name}, or take it out",
                    joint=": ",
                )
            folders[name] = str(home / place)
        return folders

    def refuse(self, key: str, problem: str, joint: str = " ") -> ConfigFileError:
        """Return the error for a value that cannot be used.

        key: the key of the value.
        problem: what is wrong, in words.
        joint: the text between the key and the problem.
        """
        return ConfigFileError(self.path, problem, key, joint)

    def section(self, name: Any, above: str = "") -> dict[str, Any]:
        """Return the keys and values of a section. Empty if the file does not have it.

        above: the section that contains it. "" for a section of the file itself.
        """
        rows_above = self.section(above) if above else self.rows
        value = rows_above.get(name)
        if value is not None and not isinstance(value, dict):
            full_name = f"{above}.{name}" if above else str(name)
            raise self.refuse(full_name, "must hold keys and values")
        return value or {}

    def text(self, name: str, value: Any, *, is_web: bool = False) -> str | None:
        """Return `value` if it is a text or None. Raises ConfigError for another value.

        name: the key, for the error.
        is_web: whether the text must be an address with http or https.
        """
        if value is not None and (not isinstance(value, str) or "\0" in value):
            raise self.refuse(name, f'must be a text, got "{value}"')
        if is_web and value and not value.startswith(_WEB):
            raise self.refuse(name, f'must begin with http:// or https://, got "{value}"')
        return value

    def typed(self, name: str, value: Any, usual: Any, words: tuple[str, ...] = ()) -> Any:
        """Return a value in the type of the default value. Raises ConfigError for another type.

        name: the key, for the error.
        value: the value in the file.
        usual: the default value. Its type says what the value must be: a list of categories (a
            tuple), a list of texts (an empty tuple), a text (None), a duration (a timedelta), a
            number from 0 (an int), or true or false (a bool).
        words: the words of which the value must be one. Empty if any word is allowed.
        """
        if words:
            return self._word(name, value, words)
        if isinstance(usual, tuple):
            # Categories are the only lists with values by default.
            if usual:
                return self._categories(name, value)
            return self._texts(name, value)
        if usual is None:
            return self.text(name, value)
        if isinstance(usual, timedelta):
            try:
                return duration(str(value))
            except InvalidInput as error:
                raise self.refuse(name, str(error), ": ") from None
        # Not `isinstance`, because for Python true is a number, too.
        if type(value) is not type(usual) or value < 0:
            expected = "true or false" if isinstance(usual, bool) else "a whole number from 0"
            raise self.refuse(name, f'must be {expected}, got "{value}"')
        return value

    def _word(self, name: str, value: Any, words: tuple[str, ...]) -> Any:
        """Return `value` if it is one of `words`. Raises ConfigError for another value."""
        if value in words:
            return value
        expected = f"one of {', '.join(words)}" if len(words) > 2 else " or ".join(words)
        raise self.refuse(name, f'must be {expected}, got "{value}"')

    def _categories(self, name: str, value: Any) -> tuple[Any, ...]:
        """Return a category, or a list of categories, as a tuple. Raises ConfigError."""
        categories = tuple(value) if isinstance(value, list) else (value,)
        for category in categories:
            if category not in CATEGORIES:
                raise self.refuse(name, f'invalid category "{category}"', ": ")
        return categories

    def plain_values(self) -> dict[str, Any]:
        """Return the values of the keys that each set a single field of Settings."""
        values: dict[str, Any] = {}
        for key in keys():
            # A key without a field is read in another way.
            if not key.field:
                continue
            section, _, name = key.name.partition(".")
            value = self.section(section).get(name)
            if value is not None:
                usual = getattr(Settings, key.field)
                words = _CHOICES.get(key.field, ())
                values[key.field] = self.typed(key.name, value, usual, words)
        if values.get("interval", Settings.interval) < timedelta(seconds=1):
            raise self.refuse(
                "daemon.interval", f"invalid interval: {self.section('daemon')['interval']}", ": "
            )
        if values.get("day_hour", 0) > 23:
            raise self.refuse("notification.day_hour", f"must be 0 to 23, got {values['day_hour']}")
        return values

    def other_values(self) -> dict[str, Any]:
        """Return the values of the other keys, which are read one by one.

        These are the time zone, agents, projects, the file of the graph, and sources to ingest.
        """
        agents = {str(key).lower(): str(value) for key, value in self.section("agents").items()}
        values = {
            "agents": agents,
            "projects": self._projects(),
            "access": {str(name): self._access(str(name)) for name in self.section("access")},
            "roots": self._roots(),
            "graph_file": self._graph_file(),
            **self._sources(),
        }
        zone = self._time_zone()
        if zone is not None:
            values["timezone"] = zone
        default_project = self.section("notes").get("default_project")
        if default_project is not None:
            values["default_project"] = str(default_project)
        return values

    def _projects(self) -> dict[str, str]:
        """Return the folder or file of each project, by its name."""
        projects = {}
        for key, value in self.section("projects").items():
            folder = self.text(f"projects.{key}", value)
            if not folder or not folder.strip():
                raise self.refuse(
                    f"projects.{key}", "names no folder; give one, or take the line out"
                )
            projects[str(key)] = folder
        return projects

    def _roots(self) -> tuple[str, ...]:
        """Return the folders where agents may make projects."""
        roots = self.section("notes").get("roots") or []
        if not isinstance(roots, list) or not all(isinstance(root, str) for root in roots):
            raise self.refuse("notes.roots", f'must be a list of folders, got "{roots}"')
        return tuple(str(absolute(root)) for root in roots)

    def _graph_file(self) -> str | None:
        """Return the file of the knowledge graph. None if it is not set."""
        graph = self.section("graph")
        # Two other names of the key, which earlier versions had.
        other_file = graph.get("memoryFilePath", self.rows.get("memoryFilePath"))
        return self.text("graph.file", graph.get("file", other_file))

    def _time_zone(self) -> str | None:
        """Return the name of the configured time zone. None if not set."""
        if self.rows.get("timezone") is None:
            return None
        name = str(self.rows["timezone"])
        try:
            _zone(name)
        except (KeyError, ValueError, OSError):
            raise self.refuse(
                "timezone", f'"{name}" is unknown. Use an IANA name, e.g. Asia/Shanghai.'
            ) from None
        return name

    def _sources(self) -> dict[str, Any]:
        """Return the folders of sources to ingest, and the sources that are switched off."""
        folders = {}
        switched_off = set()
        for name in self.section("ingestion"):
            source = self.section(name, "ingestion")
            folder = self.text(f"ingestion.{name}.path", source.get("path") or "")
            if folder:
                folders[str(name)] = folder
            enabled = source.get("enabled")
            if enabled is None:
                continue
            if not self.typed(f"ingestion.{name}.enabled", enabled, usual=True):
                switched_off.add(str(name))
        return {"ingestion": folders, "ingestion_off": frozenset(switched_off)}

    def _access(self, project: str) -> ProjectAccess:
        """Return the rights of agents in a project."""
        keys = self.section(project, "access")
        name = f"access.{project}"
        read_only = keys.get("read_only")
        folder = self.text(f"{name}.write_folder", keys.get("write_folder")) or ""
        is_outside = folder.startswith(("/", "~")) or ".." in folder.split("/")
        if is_outside:
            raise self.refuse(
                f"{name}.write_folder", f'must be a folder of the project, got "{folder}"'
            )
        is_read_only = False
        if read_only is not None:
            is_read_only = self.typed(f"{name}.read_only", read_only, usual=False)
        agents = self._texts(f"{name}.agents", keys.get("agents"))
        return ProjectAccess(
            is_read_only,
            tuple(agent.lower() for agent in agents),
            folder.strip("/"),
            self._texts(f"{name}.ignore", keys.get("ignore")),
        )

    def _texts(self, name: str, value: Any) -> tuple[str, ...]:
        """Return a list of texts, or a single text, as a tuple."""
        texts = [value] if isinstance(value, str) else value or []
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self.refuse(name, f'must be a list of texts, got "{value}"')
        return tuple(texts)

    def llm(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the address of the language model, its name and its key, from `llm.*`.

        Without that section, the three variables of the memory-bank server count if all are set
        (contract 003, 9). Returns {} if no model is set.
        """
        section = self.section("llm")
        if not section:
            return self._bank_server_llm(environ)
        texts = {
            key: self.text(f"llm.{key}", value, is_web=key == "base_url")
            for key, value in section.items()
        }
        url = texts.get("base_url")
        model = texts.get("model")
        if not url or not model:
            return {}
        key = environ.get(texts.get("api_key_env") or "MEMORY_LLM_API_KEY") or None
        return {"llm_base_url": url, "llm_model": model, "llm_key": key}

    @staticmethod
    def _bank_server_llm(environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the same as `llm` from the variables of the memory-bank server."""
        url = environ.get("LLM_API_URL", "")
        model = environ.get("LLM_MODEL")
        key = environ.get("OPENROUTER_API_KEY")
        if not key or not model or not url.startswith(_WEB):
            return {}
        return {"llm_base_url": url, "llm_model": model, "llm_key": key}

    def semantic(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the embedding model and the reranking model, from `semantic.*`.

        The variable MEMORY_SEMANTIC replaces the section. See docs/semantic.md.
        """
        texts = self._semantic_texts(environ)
        model = texts.get("model") or None
        url = texts.get("endpoint") or None
        key = None
        if url:
            key = environ.get(texts.get("api_key_env") or "MEMORY_SEMANTIC_API_KEY") or None
        return {
            "semantic_model": model,
            "semantic_endpoint": url,
            "semantic_key": key,
            **self._reranking(texts, environ),
        }

    def _semantic_texts(self, environ: Mapping[str, str]) -> dict[str, str | None]:
        """Return the texts of `semantic.*`, by key.

        If the variable MEMORY_SEMANTIC is set, it names the model, and the section is not read.
        """
        section = self.section("semantic")
        model = environ.get("MEMORY_SEMANTIC")
        if model:
            section = {"model": model}
        # YAML reads `off` as false.
        if isinstance(section.get("model"), bool):
            section = section | {"model": None if section["model"] else "off"}
        texts = {}
        for key, value in section.items():
            is_web = key in ("endpoint", "rerank_endpoint")
            texts[key] = self.text(f"semantic.{key}", value, is_web=is_web)
        return texts

    def _reranking(
        self, texts: Mapping[str, str | None], environ: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the settings of the reranking model. Empty if no model is named.

        texts: the keys of section `semantic` that are texts.
        environ: the environment variables, which have the keys.
        """
        model = texts.get("rerank")
        if not model:
            return {}
        own_url = texts.get("rerank_endpoint")
        url = own_url or texts.get("endpoint")
        if not url:
            raise self.refuse("semantic.rerank", "needs semantic.rerank_endpoint")
        # The key of one endpoint must not be sent to another one.
        variable = texts.get("api_key_env") or "MEMORY_SEMANTIC_API_KEY"
        if own_url:
            variable = texts.get("rerank_api_key_env") or "MEMORY_RERANK_API_KEY"
        key = environ.get(variable) or None
        return {"rerank_model": model, "rerank_endpoint": url, "rerank_key": key}

    def instructions(self) -> tuple[tuple[str, ...], list[str]]:
        """Return the owner's sentences for agents, and a list with a warning if they were cut.

        They are cut if they are too long. If not, the list is empty.
        """
        value = self.section("memory_tool").get("instructions") or []
        if not isinstance(value, (str, list)):
            raise self.refuse("memory_tool.instructions", "must be a text or a list of texts")
        values = [value] if isinstance(value, str) else value
        sentences = [str(item).strip() for item in values]

        accepted: list[str] = []
        characters_left = INSTRUCTIONS_CHARACTERS
        for sentence in sentences:
            if sentence and characters_left > 0:
                accepted_part = sentence[:characters_left]
                accepted.append(accepted_part)
                # A blank is put between two sentences.
                characters_left -= len(accepted_part) + 1

        is_cut = len("".join(accepted)) < len("".join(sentences))
        if not is_cut:
            return tuple(accepted), []
        warning = (
            f"memory_tool.instructions is longer than {INSTRUCTIONS_CHARACTERS:,} characters "
            "and was cut"
        )
        return tuple(accepted), [warning]

    def unknown_key_warnings(self) -> list[str]:
        """Return a warning for each key that nobody reads, such as a misspelled one."""
        unknown_names = [
            *self._unknown_in_file(),
            *self._unknown_of_access(),
            *self._unknown_sources(),
        ]
        return [f"unknown key {name}" for name in unknown_names]

    def _unknown_in_file(self) -> list[str]:
        """Return the unknown sections, and the unknown keys of known sections."""
        known_names = {key.name for key in keys()}
        known_names |= {"graph.memoryFilePath", "memoryFilePath", "projects.{name}"}
        known_sections = {name.partition(".")[0] for name in known_names}
        unknown_names = [str(name) for name in self.rows if name not in known_sections]
        # Sections whose keys are names, such as projects, hold any key.
        fixed_sections = [key.name.partition(".")[0] for key in keys() if "{" not in key.name]
        for section in dict.fromkeys(fixed_sections):
            rows = self.rows.get(section)
            if isinstance(rows, dict):
                names = [f"{section}.{key}" for key in rows]
                unknown_names += [name for name in names if name not in known_names]
        return unknown_names

    def _unknown_of_access(self) -> list[str]:
        """Return the unknown keys of `access`."""
        unknown_names: list[str] = []
        for project, rows in self.section("access").items():
            names = {str(name) for name in rows or ()}
            unknown_keys = sorted(names - _ACCESS_KEYS)
            unknown_names += [f"access.{project}.{key}" for key in unknown_keys]
        return unknown_names

    def _unknown_sources(self) -> list[str]:
        """Return the unknown keys of `ingestion`."""
        unknown_names = []
        for source, rows in self.section("ingestion").items():
            if source not in SOURCES:
                unknown_names.append(f"ingestion.{source}")
                continue
            names = {str(name) for name in rows or ()}
            unknown_keys = sorted(names - {"path", "enabled"})
            unknown_names += [f"ingestion.{source}.{key}" for key in unknown_keys]
        return unknown_names


def _zone(name: str) -> tzinfo:
    """Return the time zone with a name. Raises KeyError, ValueError or OSError for an unknown one."""
    from zoneinfo import ZoneInfo

    if name.upper() == "UTC":
        return UTC
    return ZoneInfo(name)
