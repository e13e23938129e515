"""`config get | set | unset | list`: the keys of config.yaml (contract 001, 15; meanings: ../config-keys.txt), and
`project add | list | remove | default` (contract 001, 16; rules: contract 000b, 1)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace import config as settings_file
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Failure
from commonplace.cli.syntax import Usage, command, flag, group, stored
from commonplace.config import ConfigKey, keys
from commonplace.errors import ConfigError, choices
from commonplace.note.model import BUILT_IN_PROJECTS
from commonplace.query import split_list

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory
    from commonplace.engine.projects import Project

_KEYS = ("key", "value", "default", "set", "meaning")
_ROW = "{:<32} {:<24} {}"
_SETTINGS = lambda _: [f"{each.name}\t{each.meaning}" for each in keys() if "{" not in each.name]

config = group("config", "settings_commands", "get set unset list", "Show and change the settings in config.yaml.")


def _key(name: str) -> ConfigKey:
    """Raises Failure with the nearest for a key there is not."""
    for each in keys():
        pattern = re.escape(each.name).replace(r"\{name\}", r"[\w .@-]+?")
        if re.fullmatch(pattern, name):
            return each._replace(name=name)
    if name.startswith("projects."):
        raise Failure("projects are added and removed by memory project")
    raise Failure(f'unknown setting "{name}"', hint=choices(name, [each.name for each in keys()], "Settings"))


def _settings(call: Invocation) -> Settings:
    """The settings; for a file that cannot be read the defaults, so that it can be mended."""
    try:
        return call.settings
    except ConfigError:
        return settings_file.load(call.home, call.config, unread=True)


def _row(file: Path, key: ConfigKey) -> dict[str, Any]:
    found = settings_file.stored(file, key.name)
    default = None if key.default.startswith("(") else _value(key.default, "")
    row = key.name, default if found is None else found, default, found is not None, key.meaning
    return dict(zip(_KEYS, row, strict=True))


def _value(text: str, default: str) -> Any:
    """The value a person means: YAML; a list may be parted by commas."""
    import yaml

    if default.startswith("[") and not text.startswith("["):
        return split_list(text)
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, bool | int | list) else text


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


@command("get", "KEY", keys=_KEYS, complete=_SETTINGS, example="memory config get daemon.interval")
def config_get(call: Invocation, name: str) -> None:
    """Print the value of a setting: what config.yaml says, else the default."""
    row = _row(_settings(call).file, _key(name))
    call.answer(_shown(row["value"]), **row)


@command("set", "KEY", "VALUE...", keys=_KEYS, complete=_SETTINGS, example="memory config set timezone Asia/Shanghai")
def config_set(call: Invocation, name: str, *words: str) -> None:
    """Write a setting into config.yaml, whose other lines, comments and order stay.

    The parts of a list are separated by commas. What the setting cannot be is refused. Programs that run take it up
    at their next call; of agents, bank, graph, llm, memory_tool, semantic, storage, daemon.interval and
    notes.agents_may_add_projects when they start again.
    """
    key = _key(name)
    _write(call, key, _value(" ".join(words), key.default))


@command("unset", "KEY", keys=_KEYS, complete=_SETTINGS, example="memory config unset timezone")
def config_unset(call: Invocation, name: str) -> None:
    """Take a setting out of config.yaml: the default holds again."""
    _write(call, _key(name), None)


def _write(call: Invocation, key: ConfigKey, value: Any) -> None:
    from commonplace.engine import open_memory

    settings = _settings(call)
    with open_memory(agent=call.caller, config=settings, face="cli", watch=False) as memory:
        try:
            memory.configure(key.name, value)
        except ConfigError as error:
            reason = str(error).removeprefix(f"load config: {settings.file}: ")
            raise Failure(f"cannot set {key.name}: {reason.removeprefix(key.name).lstrip(': ')}", error.code) from None
    row = _row(settings.file, key)
    call.answer(f"{key.name}: {_shown(row['value']) or key.default}", **row)


@command("list", keys={"file": (), "settings": _KEYS}, example="memory config list")
def config_list(call: Invocation) -> None:
    """List all settings: value, whether it is the default, and what it means."""
    file = _settings(call).file
    known = [(each, _row(file, each)) for each in keys() if "{" not in each.name]
    cells = []
    for key, row in known:
        value = _shown(row["value"]) if row["set"] else f"{_shown(row['default']) or key.default.strip('()')} (default)"
        cells.append((key.name, value, key.meaning))
    if call.json:
        return call.document(file=str(file), settings=[row for _, row in known])
    call.table(("Setting", "Value", "Meaning"), cells, *([str(file)] if call.on_terminal else []), form=_ROW)


_PROJECT_KEYS = ("name", "path", "notes", "default", "built_in")

project = group("project", "settings_commands", "add list remove default",
                "Add folders of notes or graph files as projects, list them, take them off the list.")  # fmt: skip


_REMOVABLE = lambda context: [each for each in stored(context, "project") if each not in BUILT_IN_PROJECTS]


def _rows(memory: Memory, *projects: Project) -> list[dict[str, Any]]:
    counts = memory.stats().projects
    cells = ((each.name, str(each.root), counts.get(each.name, 0), each.default, each.built_in) for each in projects)
    return [dict(zip(_PROJECT_KEYS, row, strict=True)) for row in cells]


@command("add", "[NAME]", "[DIR]", keys={"project": _PROJECT_KEYS}, example="memory project add work ~/work/notes")
@flag("--default", "Make it the default project.", "as_default")
@flag("--native", "Add what Claude Code, Codex and Gemini CLI remember by themselves, a project for each folder.")
def project_add(call: Invocation, *words: str, as_default: bool, native: bool) -> None:
    """Use the notes of a folder in place, or the entities of a graph file, as project NAME.

    DIR is the folder or the JSON Lines file; without NAME its own name is taken: `memory project add .`
    With --native JSON has a list, `projects`.
    """
    if native:
        if words or as_default:
            raise Usage("--native takes no NAME, DIR or --default")
        from commonplace.clients.native import add_native

        with call.memory() as memory:
            rows, refused = add_native(memory)
            documents = _rows(memory, *rows)
            lines = [f"Added project {row['name']} ({row['path']}, {row['notes']} notes)" for row in documents]
            lines += [f"Left out {folder}: {why}" for folder, why in refused]
            said = "\n".join(lines) or "No memories of other programs that are not projects yet."
            return call.answer(said, projects=documents)
    if not words:
        raise Usage("accepts between 1 and 2 arg(s), received 0")
    folder = os.path.abspath(os.path.expanduser(words[-1])) if words[-1] else ""
    if len(words) == 1 and not os.path.exists(folder):
        raise Usage("accepts 2 arg(s), received 1")
    name = words[0] if len(words) > 1 else re.sub(r"[^\w .\-]+", "-", Path(folder).stem).strip(" .-")[:64]
    with call.memory() as memory:
        place = folder if memory.settings.url is None else words[-1]  # projects/NAME, on every machine
        is_new = memory.settings.url is None and not os.path.lexists(folder)
        added, action = memory.add_project(name, place, as_default)
        if action == "unchanged":
            raise Failure(f"project exists: {added.name}", "exists")
        (row,) = _rows(memory, added)
        if action == "asked":
            return call.answer(f"Asked the owner for {added.root}: see memory review", project=row)
        made = f"\n{folder} was not there, and was made." if is_new and call.on_terminal else ""
        call.answer(f"Added project {added.name} ({added.root}, {row['notes']} notes){made}", project=row)


@command("list", keys={"projects": _PROJECT_KEYS}, example="memory project list")
def project_list(call: Invocation) -> None:
    """List the projects with their notes and folders."""
    with call.memory() as memory:
        rows, head = _rows(memory, *memory.projects), ("Name", "Notes", "Folder")
        if call.json:
            return call.document(projects=rows)
        cells = [(r["name"], str(r["notes"]), r["path"] + (" (default)" if r["default"] else "")) for r in rows]
        call.table(head, cells if call.on_terminal else [head, *cells], form="{:<12} {:>6} {}")


@command("remove", "NAME", keys={"project": _PROJECT_KEYS}, complete=_REMOVABLE,
         example="memory project remove work")  # fmt: skip
def project_remove(call: Invocation, name: str) -> None:
    """Take a project off the list. Its files stay."""
    with call.memory() as memory:
        (row,) = _rows(memory, memory.project(name))
        call.answer(f"Removed project {memory.remove_project(name).name}", project=row)


@command("default", "NAME", keys={"project": _PROJECT_KEYS}, complete="project", example="memory project default work")
def project_default(call: Invocation, name: str) -> None:
    """Make NAME the default project: where new notes go."""
    with call.memory() as memory:
        chosen = memory.set_default(name)
        call.answer(f"Default project: {chosen.name}", project=_rows(memory, chosen)[0])
