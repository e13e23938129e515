"""Reads the settings that other programs have for a folder of notes.

The settings say in which folders daily notes, templates and attachments are, and which files to
leave out. Obsidian, Logseq, Foam, Dendron, zk and Basic Memory are recognised by the files that they
put into the folder. Only these files are read, never a note, and nothing is written.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from memoranda.sources.ignoring import (
    IgnoreRules,
    Pattern,
    folder_pattern,
    gitignore_patterns,
    obsidian_patterns,
)
from memoranda.text.pattern import lazy_pattern
from memoranda.value_object import ValueObject

IGNORE_FILE = ".memoryignore"
# Only this many bytes of a settings file are read. No program writes more.
_MAX_SETTINGS_BYTES = 1 << 20
# Files and folders of settings. When one of them changes, all are read again.
_MARKS = (
    IGNORE_FILE,
    ".obsidian",
    ".obsidian/app.json",
    ".obsidian/templates.json",
    ".obsidian/daily-notes.json",
    ".obsidian/plugins/templater-obsidian/data.json",
    ".obsidian/plugins/periodic-notes/data.json",
    "logseq/config.edn",
    ".vscode/settings.json",
    ".foam",
    "dendron.yml",
    ".zk/config.toml",
    ".bmignore",
    ".basic-memory",
)
# Folders from which `_MARKS` names files. If such a folder is missing, so are its files.
_MARKED_FOLDERS = (".obsidian", ".vscode")
# A comment in JSON, or a string. The string is group 1, and stays even if it looks like a comment.
_COMMENT = lazy_pattern(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
# A comma before a closing bracket in JSON, or a string, which is group 1 and stays.
_TRAILING_COMMA = lazy_pattern(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')
# A comment in Logseq's configuration, or a string, which is group 1 and stays.
_EDN_COMMENT = lazy_pattern(r'("(?:[^"\\]|\\.)*")|;[^\n]*')
# A string of Logseq's configuration.
_EDN_TEXT = lazy_pattern(r'"((?:[^"\\]|\\.)*)"')
# One part of a date format of moment.js, as Obsidian uses it. `[text]` is copied: it is group 1.
_MOMENT_TOKEN = lazy_pattern(
    r"\[([^\]]*)\]|YYYY|YY|MMMM|MMM|MM|M|DD|Do|D|dddd|ddd|ww|WW|gggg|GGGG|."
)
# One part of a date format of Java, as Logseq uses it. `'text'` is copied: it is group 1.
_JAVA_TOKEN = lazy_pattern(r"'([^']*)'|yyyy|yy|MMMM|MMM|MM|M|dd|do|d|EEEE|EEE|E|.")
# Parts of a date format of Java -> the same parts in moment.js.
_JAVA_TO_MOMENT = {
    "yyyy": "YYYY",
    "yy": "YY",
    "dd": "DD",
    "d": "D",
    "do": "Do",
    "EEEE": "dddd",
    "EEE": "ddd",
    "E": "ddd",
}
# Parts of a date format -> the regular expression that reads them from a file's name.
_DAY_PARTS = {"YYYY": r"(?P<year>\d{4})", "MM": r"(?P<month>\d{2})", "DD": r"(?P<day>\d{2})"}


SHORTEST = "shortest"
RELATIVE = "relative"
ABSOLUTE = "absolute"
# How links name files: the values of Obsidian's setting `newLinkFormat`.
_LINK_PATHS = (SHORTEST, RELATIVE, ABSOLUTE)


@dataclass(slots=True, eq=False, repr=False)
class Conventions(ValueObject):
    """How programs keep notes in a folder. Paths are relative to that folder, "" if unknown.

    programs: the names of the programs.
    daily_folder, daily_format: where daily notes are, and how they are named. The format is one of
        moment.js, as in Obsidian: `YYYY-MM-DD`.
    day_title: how links name daily notes, if not by file name. A format of moment.js.
    templates, attachments, new_notes: folders.
    has_markdown_links: whether new links are Markdown `[text](path)`, and not `[[name]]`.
    link_paths: how new Markdown links name files: SHORTEST, RELATIVE, ABSOLUTE or "".
    warnings: sentences about settings that cannot be read.
    patterns: the patterns of files that are left out.
    """

    programs: list[str] = field(default_factory=list)
    daily_folder: str = ""
    daily_format: str = ""
    day_title: str = ""
    templates: str = ""
    attachments: str = ""
    new_notes: str = ""
    has_markdown_links: bool = False
    link_paths: str = ""
    warnings: list[str] = field(default_factory=list)
    patterns: list[Pattern] = field(default_factory=list)

    @property
    def program(self) -> str:
        """The names of the programs in one text. Empty if none is known."""
        return ", ".join(self.programs)

    @property
    def rules(self) -> IgnoreRules:
        """The rules that tell which files do not belong to the project."""
        return IgnoreRules(tuple(self.patterns))

    def leave_out(self, folder: str, reason: str) -> None:
        """Leave out one folder.

        reason: why, for people.
        """
        pattern = folder_pattern(folder, reason)
        if pattern is not None:
            self.patterns.append(pattern)


def marks_of(root: str, *, has_programs: bool) -> tuple[tuple[int, int] | None, ...]:
    """Return a key that changes whenever a file changes that `conventions_of` reads.

    It has a stamp for each file, None for a missing one.

    has_programs: whether other programs may use the folder.
    """
    if not has_programs:
        return (_stamp(os.path.join(root, IGNORE_FILE)),)
    # This runs before every call, so no file is looked for in a missing folder
    missing_folders = [
        name for name in _MARKED_FOLDERS if not os.path.isdir(os.path.join(root, name))
    ]
    stamps: list[tuple[int, int] | None] = []
    for mark in _MARKS:
        top_folder = mark.partition("/")[0]
        if top_folder in missing_folders:
            stamps.append(None)
        else:
            stamps.append(_stamp(os.path.join(root, mark)))
    return tuple(stamps)


def _stamp(path: str) -> tuple[int, int] | None:
    """Return change time and inode of a file, None if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        # Only the existence of the folder counts; programs write into it all the time.
        return 0, status.st_ino
    return status.st_mtime_ns, status.st_ino


def conventions_of(root: str, *, has_programs: bool) -> Conventions:
    """Read the settings of the programs that use this folder, and the file `.memoryignore`.

    has_programs: whether other programs may use the folder. If not, only `.memoryignore` is read.
    """
    folder = Path(root)
    conventions = Conventions()
    if has_programs:
        for add_settings in _READERS:
            add_settings(folder, conventions)
    text = _text_of(folder / IGNORE_FILE, conventions)
    # The last pattern wins, so people can bring files back that a program leaves out
    conventions.patterns += gitignore_patterns(text.splitlines(), IGNORE_FILE)
    return conventions


def daily_path(conventions: Conventions, year: int, month: int, day: int) -> str:
    """Return the path of a day's note, without extension. "" if no format is known.

    In Obsidian with the folder `daily`: `daily/2026-05-07`.

    conventions: where the program keeps daily notes, and how it names them.
    """
    if not conventions.daily_format:
        return ""
    name = _format_day(conventions.daily_format, year, month, day)
    if not conventions.daily_folder:
        return name
    return f"{conventions.daily_folder}/{name}"


def title_of_day(conventions: Conventions, path: str) -> str:
    """Return the name that links use for the daily note at `path`.

    In Logseq, `journals/2025_12_01.md` is named `Dec 1st, 2025`. "" for other notes, and if links
    use the name of the file.

    conventions: how the program names daily notes.
    """
    folder, _, name = path.rpartition("/")
    if not conventions.day_title or folder != conventions.daily_folder:
        return ""
    name_without_extension = name.rpartition(".")[0]
    match = _day_regex(conventions.daily_format).fullmatch(name_without_extension)
    if match is None:
        return ""
    try:
        return _format_day(
            conventions.day_title, int(match["year"]), int(match["month"]), int(match["day"])
        )
    except (ValueError, IndexError):
        # No such day, or a format without year, month or day
        return ""


@lru_cache(maxsize=16)
def _day_regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression for file names in a date format of moment.js.

    Its groups are `year`, `month` and `day`. `YYYY-MM-DD dddd` becomes
    `(?P<year>\\d{4})-(?P<month>\\d{2})-(?P<day>\\d{2}) .+`, since the weekday is not needed.
    """
    parts: list[str] = []
    for match in _MOMENT_TOKEN.finditer(pattern):
        token = match[0]
        if match[1] is not None:
            parts.append(re.escape(match[1]))
        elif token in _DAY_PARTS:
            part = _DAY_PARTS[token]
            if part in parts:
                # A group may occur only once, so the second year in a format is any text
                part = ".+"
            parts.append(part)
        elif token.isalpha():
            parts.append(".+")
        else:
            parts.append(re.escape(token))
    return re.compile("".join(parts))


def _ordinal(number: int) -> str:
    """Return the number of a day with its English ending: `1st`, `12th`."""
    # 11, 12 and 13 are irregular
    if number // 10 == 1:
        return f"{number}th"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _format_day(pattern: str, year: int, month: int, day: int) -> str:
    """Format a day by a format of moment.js: `YYYY/MM-MMMM` gives `2026/05-May`.

    Only the parts that occur in names of files are known; others are copied.

    pattern: the format.
    """
    from datetime import date

    moment = date(year, month, day)
    iso = moment.isocalendar()
    values = {
        "YYYY": f"{year:04}",
        "GGGG": f"{iso.year:04}",
        "gggg": f"{iso.year:04}",
        "YY": f"{year % 100:02}",
        "MMMM": moment.strftime("%B"),
        "MMM": moment.strftime("%b"),
        "MM": f"{month:02}",
        "M": str(month),
        "DD": f"{day:02}",
        "D": str(day),
        "Do": _ordinal(day),
        "dddd": moment.strftime("%A"),
        "ddd": moment.strftime("%a"),
        "WW": f"{iso.week:02}",
        "ww": f"{iso.week:02}",
    }
    parts: list[str] = []
    for match in _MOMENT_TOKEN.finditer(pattern):
        if match[1] is None:
            parts.append(values.get(match[0], match[0]))
        else:
            # Text in square brackets is copied.
            parts.append(match[1])
    return "".join(parts)


def _obsidian(folder: Path, conventions: Conventions) -> None:
    """Add the settings in `.obsidian`, if the folder is an Obsidian vault.

    conventions: takes the settings.
    """
    settings = folder / ".obsidian"
    if not settings.is_dir():
        return
    conventions.programs.append("Obsidian")
    app = _json_of(settings / "app.json", conventions)
    conventions.attachments = _folder(app.get("attachmentFolderPath"))
    conventions.has_markdown_links = app.get("useMarkdownLinks") is True
    if conventions.has_markdown_links:
        link_format = app.get("newLinkFormat")
        conventions.link_paths = link_format if link_format in _LINK_PATHS else SHORTEST
    if app.get("newFileLocation") == "folder":
        conventions.new_notes = _folder(app.get("newFileFolderPath"))

    _add_obsidian_filters(app.get("userIgnoreFilters"), conventions)
    _leave_out_obsidian_templates(settings, conventions)
    _add_obsidian_days(settings, conventions)


def _add_obsidian_filters(filters: Any, conventions: Conventions) -> None:
    """Add the files that Obsidian excludes.

    filters: the value in Obsidian's settings, which should be a list of texts.
    """
    if not isinstance(filters, list):
        return
    patterns, unreadable = obsidian_patterns(filters, "Obsidian's excluded files")
    conventions.patterns += patterns
    conventions.warnings += [
        f"Obsidian's excluded files have {text}, which cannot be read here: "
        f"name what it leaves out in {IGNORE_FILE}."
        for text in unreadable
    ]


def _leave_out_obsidian_templates(settings: Path, conventions: Conventions) -> None:
    """Leave out the folders for templates of Obsidian and of its plugin Templater.

    settings: the folder `.obsidian`.
    """
    templates = _json_of(settings / "templates.json", conventions)
    templater = _json_of(settings / "plugins/templater-obsidian/data.json", conventions)
    # The last one counts: if there are both, new notes are made from Obsidian's own folder
    for value in (templater.get("templates_folder"), templates.get("folder")):
        name = _folder(value)
        if name:
            conventions.templates = name
            conventions.leave_out(name, f"the templates folder of Obsidian: {name}")


def _add_obsidian_days(settings: Path, conventions: Conventions) -> None:
    """Add the folder and the names of daily notes.

    settings: the folder `.obsidian`.
    """
    daily = _json_of(settings / "daily-notes.json", conventions)
    periodic = _json_of(settings / "plugins/periodic-notes/data.json", conventions).get("daily")
    if isinstance(periodic, Mapping) and periodic.get("enabled"):
        # The plugin Periodic Notes replaces Obsidian's own daily notes.
        daily = {**daily, **periodic}
    conventions.daily_folder = _folder(daily.get("folder"))
    conventions.daily_format = _text(daily.get("format")) or "YYYY-MM-DD"


def _logseq(folder: Path, conventions: Conventions) -> None:
    """Add the settings in `logseq/config.edn`, if it exists. EDN is the notation of Clojure.

    conventions: takes the settings.
    """
    file = folder / "logseq/config.edn"
    if not file.is_file():
        return
    conventions.programs.append("Logseq")
    text = _EDN_COMMENT.sub(lambda match: match[1] or "", _text_of(file, conventions))

    journals = _edn_text(text, ":journals-directory") or "journals"
    java_format = _edn_text(text, ":journal/file-name-format") or "yyyy_MM_dd"
    conventions.daily_folder = journals
    conventions.daily_format = _from_java(java_format)
    title_format = _edn_text(text, ":journal/page-title-format") or "MMM do, yyyy"
    conventions.day_title = _from_java(title_format)
    conventions.attachments = "assets"
    conventions.new_notes = _edn_text(text, ":pages-directory") or "pages"

    # Logseq keeps copies there of pages that were changed or removed
    conventions.leave_out("logseq", "the folder of Logseq itself: logseq")
    hidden_list = re.search(r":hidden\s*\[([^\]]*)\]", text)
    hidden_names = _EDN_TEXT.findall(hidden_list[1]) if hidden_list else []
    for name in hidden_names:
        path = name.strip("/")
        if path:
            regex = re.compile(f"^{re.escape(path)}(?:/|$)")
            conventions.patterns.append(Pattern(regex, f"Logseq's hidden: {name}"))


def _foam(folder: Path, conventions: Conventions) -> None:
    """Add the settings of Foam in `.vscode/settings.json`, if there are any.

    conventions: takes the settings.
    """
    vscode_settings = _json_of(folder / ".vscode/settings.json", conventions)
    settings = {key: value for key, value in vscode_settings.items() if key.startswith("foam.")}
    if not settings and not (folder / ".foam").is_dir():
        return
    conventions.programs.append("Foam")
    conventions.daily_folder = _folder(settings.get("foam.openDailyNote.directory"))
    filename = _text(settings.get("foam.openDailyNote.filenameFormat"))
    # Foam writes months as `mm`, Java as `MM`
    conventions.daily_format = _from_java(filename.replace("m", "M")) or "YYYY-MM-DD"
    for key in ("foam.files.ignore", "foam.files.exclude"):
        conventions.patterns += gitignore_patterns(_texts(settings.get(key)), f"Foam's {key}")


def _dendron(folder: Path, conventions: Conventions) -> None:
    """Add the settings in `dendron.yml`, if it exists.

    conventions: takes the settings.
    """
    file = folder / "dendron.yml"
    if not file.is_file():
        return
    conventions.programs.append("Dendron")
    from yaml import YAMLError, safe_load

    try:
        loaded = safe_load(_text_of(file, conventions))
    except YAMLError:
        conventions.warnings.append("dendron.yml cannot be read.")
        return
    settings = loaded if isinstance(loaded, Mapping) else {}
    journal = _table(settings, "workspace").get("journal")
    if isinstance(journal, Mapping):
        domain = _text(journal.get("dailyDomain")) or "daily"
        name = _text(journal.get("name")) or "journal"
        date_format = _text(journal.get("dateFormat")) or "y.MM.dd"
        # Dendron accepts `y` for the year
        date_format = re.sub(r"\by\b", "yyyy", date_format)
        conventions.daily_format = f"[{domain}.{name}.]{_from_java(date_format)}"
    conventions.attachments = "assets"


def _zk(folder: Path, conventions: Conventions) -> None:
    """Add the settings in `.zk/config.toml`, if it exists.

    conventions: takes the settings.
    """
    file = folder / ".zk/config.toml"
    if not file.is_file():
        return
    conventions.programs.append("zk")
    import tomllib

    try:
        settings = tomllib.loads(_text_of(file, conventions))
    except tomllib.TOMLDecodeError:
        conventions.warnings.append(".zk/config.toml cannot be read.")
        return
    note = _table(settings, "note")
    for key in ("ignore", "exclude"):
        conventions.patterns += gitignore_patterns(_texts(note.get(key)), f"zk's note.{key}")

    # Without this setting, zk writes `[Title](path)`, not `[[path]]`
    markdown = _table(_table(settings, "format"), "markdown")
    conventions.has_markdown_links = markdown.get("link-format") in (None, "markdown")
    # By default zk drops the extension, and such a link does not show that it leads to a note
    if conventions.has_markdown_links and markdown.get("link-drop-extension") is False:
        conventions.link_paths = RELATIVE

    daily = _table(_table(settings, "group"), "daily")
    paths = daily.get("paths")
    if isinstance(paths, list) and paths and isinstance(paths[0], str):
        conventions.daily_folder = _folder(paths[0])
        conventions.daily_format = "YYYY-MM-DD"


def _basic_memory(folder: Path, conventions: Conventions) -> None:
    """Add Basic Memory if it uses the folder, and the patterns in `.bmignore`.

    conventions: takes the settings.
    """
    if (
        (folder / ".bmignore").is_file()
        or (folder / ".basic-memory").is_dir()
        or _is_project_of_basic_memory(folder)
    ):
        conventions.programs.append("Basic Memory")
    text = _text_of(folder / ".bmignore", conventions)
    conventions.patterns += gitignore_patterns(text.splitlines(), ".bmignore")


def _is_project_of_basic_memory(folder: Path) -> bool:
    """Whether the configuration of Basic Memory on this machine names the folder."""
    from memoranda.text.user_path import user_folder

    user = user_folder()
    settings = os.environ.get("BASIC_MEMORY_CONFIG_DIR")
    if settings is None and user is not None:
        settings = str(user / ".basic-memory")
    if settings is None:
        return False
    file = Path(settings, "config.json")
    try:
        projects = json.loads(file.read_text("utf-8")).get("projects", {})
    except (OSError, ValueError, AttributeError, RecursionError):
        return False
    if not isinstance(projects, Mapping):
        return False
    for project in projects.values():
        # Earlier versions have the path itself
        path = project.get("path") if isinstance(project, Mapping) else project
        if isinstance(path, str) and os.path.realpath(path) == os.path.realpath(folder):
            return True
    return False


# People open one folder in several programs. A later reader overrides the folders of an earlier one.
_READERS: tuple[Callable[[Path, Conventions], None], ...] = (
    _dendron,
    _foam,
    _zk,
    _basic_memory,
    _logseq,
    _obsidian,
)


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the mapping under a key. It is empty if the key has no mapping."""
    value = values.get(name)
    if isinstance(value, Mapping):
        return value
    return {}


def _text(value: object) -> str:
    """Return a text without blanks around it, "" for any other value."""
    if isinstance(value, str):
        return value.strip()
    return ""


def _texts(value: object) -> list[str]:
    """Return the texts in a list. Empty if the value is not a list."""
    if not isinstance(value, list):
        return []
    return [text for text in value if isinstance(text, str)]


def _folder(value: object) -> str:
    """Return a folder from a program's settings as a path in the project: `/daily/` is `daily`.

    "" for the project's own folder, for folders outside of it, and for any other value.
    """
    text = _text(value).replace("\\", "/").strip("/")
    is_project = text in ("", ".")
    # `./` is the folder of the present note in Obsidian, which is no fixed folder
    is_relative = text.startswith(("./", "../")) or "/../" in text
    if is_project or is_relative:
        return ""
    return text


def _edn_text(text: str, key: str) -> str:
    """Return the string after a key in Logseq's configuration, without slashes around it.

    From `:pages-directory "pages/"`, the key `:pages-directory` gives `pages`. "" if missing.
    """
    match = re.search(rf'{re.escape(key)}\s+"((?:[^"\\]|\\.)*)"', text)
    if match is None:
        return ""
    return match[1].strip("/")


def _from_java(pattern: str) -> str:
    """Translate a date format of Java into one of moment.js: `yyyy_MM_dd` into `YYYY_MM_DD`."""
    parts: list[str] = []
    for match in _JAVA_TOKEN.finditer(pattern):
        if match[1] is not None:
            parts.append(f"[{match[1]}]")
        else:
            parts.append(_JAVA_TO_MOMENT.get(match[0], match[0]))
    return "".join(parts)


def _text_of(file: Path, conventions: Conventions) -> str:
    """Return the text of a settings file, "" if it is missing or unreadable.

    An unreadable file adds a warning to `conventions`.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(_MAX_SETTINGS_BYTES)
    except FileNotFoundError:
        return ""
    except OSError as error:
        conventions.warnings.append(f"{file.name} cannot be read: {error.strerror}.")
        return ""
    return data.decode("utf-8-sig", "replace")


def _json_of(file: Path, conventions: Conventions) -> dict[str, Any]:
    """Return the keys of a settings file in JSON, which may have comments. Empty if it is missing.

    An invalid file adds a warning to `conventions`.
    """
    text = _text_of(file, conventions)
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = _with_comments(text)
    except RecursionError:
        value = None
    if isinstance(value, dict):
        return value
    conventions.warnings.append(
        f"{file.parent.name}/{file.name} cannot be read: it is no JSON object."
    )
    return {}


def _with_comments(text: str) -> object:
    """Parse JSON with comments and trailing commas, as editors accept it. None if it is invalid."""
    plain_json = _COMMENT.sub(lambda match: match[1] or "", text)
    plain_json = _TRAILING_COMMA.sub(lambda match: match[1] or "", plain_json)
    try:
        return json.loads(plain_json)
    except (ValueError, RecursionError):
        return None
