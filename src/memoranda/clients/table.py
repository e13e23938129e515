"""Reads the table of clients, clients.toml: the programs in which agents run, such as Claude Code.

For each client, the table says where its configuration file is, and which entry in the file
connects the client to this memory. Some clients have folders with their own memories. The end of
this module makes these folders projects, so that all other agents can find the memories.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda import former_name
from memoranda.clients.editing import Name
from memoranda.clients.hook_events import CLIENTS, FAILED, TOOL
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.text.pattern import lazy_pattern

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.project_list import Project

# A variable of the environment with its default, as a shell writes it.
_VARIABLE = re.compile(r"\$\{(\w+):-([^${}]*)\}")
_SYSTEM = "macos" if sys.platform == "darwin" else "linux"
# For each client with its own memories: its name, the environment variable that names the folder of
# its files, the default of this folder, and a pattern for the folders with memories inside it.
_PLACES = (
    ("claude", "CLAUDE_CONFIG_DIR", "~/.claude", "projects/*/memory"),
    ("codex", "CODEX_HOME", "~/.codex", "memories"),
    ("gemini", "", "~/.gemini", "tmp/*/memory"),
)
# The name of a project has at most this many characters.
_MOST_NAME_CHARACTERS = 64
# Characters that the name of a project cannot have, and those that it should not begin or end with.
_NOT_IN_NAMES = lazy_pattern(r"[^\w .\-]+")
_NOT_AT_ENDS = " .-"
# Present and former names of the command and of the module that clients start.
_PROGRAMS = {"memory", "memoranda", former_name.NAME}


@dataclass(frozen=True, slots=True)
class Client:
    """One table of clients.toml. The top of that file explains the meaning of each key.

    id: the name of the table, such as `claude-code`.
    title: the name for people, such as `Claude Code`.
    file: the path of the configuration file; a dict by system, or a list of candidates.
    format: the syntax of the file, a key of `install.EDITORS`.
    key: the path to the container with the servers, such as `("mcpServers",)`.
    stdio: the shape of our entry for a server that the client starts as a program.
    checked: "run" if the entry was tried with the program, "read" if its documentation says so.
    installed_if: the folders that exist if the client is installed; a list, or a dict by system.
    program: a command that is on PATH if the client is installed; "" if there is no such command.
    project: the path of the configuration file inside a project; None if the client has no such
        file.
    http: the shape of our entry for a server with an address. None if the client takes no address.
    token: the members to add to `http` for a server that requires a token. None if that is
        impossible.
    note: a hint for the person; "" for no hint.
    plugin: the setting that is true when our plugin is on. Empty without a plugin.
    hooks: the file, the shape and further members of our hooks. Empty without hooks.
    """

    id: str
    title: str
    file: Any
    format: str
    key: tuple[str, ...]
    stdio: Mapping[str, Any]
    checked: str
    installed_if: Any
    program: str = ""
    project: Any = None
    http: Mapping[str, Any] | None = None
    token: Mapping[str, Any] | None = None
    note: str = ""
    plugin: Mapping[str, Any] = field(default_factory=dict)
    hooks: Mapping[str, Any] = field(default_factory=dict)

    def place(
        self, environ: Mapping[str, str], project: Path | None = None, system: str = _SYSTEM
    ) -> Path | None:
        """Return the path of the configuration file. None for a project if the client has none there.

        environ: the environment variables, which may move folders.
        project: the folder of the project whose file is meant. None means the file for all
            projects.
        system: "linux" or "macos".
        """
        if project is None:
            return _first(self.file, environ, system)
        if self.project is None:
            return None
        return project / _first(self.project, environ, system, project)

    def is_here(self, environ: Mapping[str, str], system: str = _SYSTEM) -> bool:
        """Whether the client is installed: one of its folders, its file or its program exists.

        environ: the environment variables, which may move folders.
        system: "linux" or "macos".
        """
        folders = self.installed_if
        if isinstance(folders, dict):
            folders = folders[system]
        if any(expand(folder, environ).exists() for folder in folders):
            return True
        if _first(self.file, environ, system).exists():
            return True
        return bool(self.program and shutil.which(self.program, path=environ.get("PATH")))

    def hook_file(self, environ: Mapping[str, str]) -> Path | None:
        """Return the file with the client's hooks. None if the client has no hooks.

        environ: the environment variables, which may move folders.
        """
        if self.hooks:
            return expand(self.hooks["file"], environ)
        return None


class Edit(NamedTuple):
    """One member that should be set in a configuration file.

    label: the name of the edit in the records of `install`, such as "server".
    path: the path to the container of the member, such as `("mcpServers",)`.
    name: the key of the member, or a function that recognizes the item of a list.
    value: the value of the member.
    is_ours: says whether a value in the file was set by us.
    keeps_present: whether a value that is in the file already stays as it is.
    """

    label: str
    path: tuple[str, ...]
    name: Name
    value: Any
    is_ours: Callable[[Any], bool]
    keeps_present: bool = False


class Server(NamedTuple):
    """The server that a client should connect to: a program to start, or an address.

    name: the key of the server in the configuration file.
    argv: the command line of the program. Empty for an address.
    url: the address; "" for a program.
    token: the environment variable with the token for the address; "" if no token is needed.
    """

    name: str
    argv: tuple[str, ...] = ()
    url: str = ""
    token: str = ""


@cache
def clients() -> dict[str, Client]:
    """Return all clients by their id, in the order of clients.toml."""
    import tomllib

    rows = tomllib.loads(Path(__file__).with_name("clients.toml").read_text("utf-8"))
    return {
        name: Client(id=name, **(row | {"key": tuple(row["key"])})) for name, row in rows.items()
    }


def agents_md(folder: Path) -> Client:
    """Return the file AGENTS.md in `folder`, which every agent reads, in the form of a client.

    The entry of this client is a paragraph about the memory.
    """
    text = Path(__file__).with_name("AGENTS.md").read_text("utf-8").strip()
    file = str(folder / "AGENTS.md")
    return Client(
        id="agents-md",
        title="AGENTS.md",
        file=file,
        format="markdown",
        key=(),
        stdio={"text": text},
        checked="run",
        installed_if=[str(folder)],
        project=file,
    )


def launcher() -> list[str]:
    """Return the command line that starts this program, such as `["/usr/bin/memory"]`.

    Its paths are absolute, because programs with windows do not have the PATH of a shell.
    """
    program = sys.argv[0]
    if os.path.dirname(program):
        program_path = os.path.abspath(program)
    else:
        program_path = shutil.which(program) or ""
    is_our_name = os.path.basename(program_path) in ("memory", "memoranda")
    if is_our_name and os.access(program_path, os.X_OK):
        return [program_path]
    return [sys.executable, "-m", "memoranda"]


def expand(text: str, environ: Mapping[str, str]) -> Path:
    """Replace a leading `~` and each `${NAME:-default}` in a path.

    If XDG_CONFIG_HOME is not set, `${XDG_CONFIG_HOME:-~/.config}/Claude` gives
    `/home/ann/.config/Claude`.

    environ: the environment variables.
    """
    # A default may contain another variable, so the text is searched again after each replacement.
    while match := _VARIABLE.search(text):
        value = environ.get(match[1]) or match[2]
        text = text[: match.start()] + value + text[match.end() :]
    if text == "~" or text.startswith("~/"):
        home = environ.get("HOME") or os.path.expanduser("~")
        text = home + text[1:]
    return Path(text)


def entry(client: Client, server: Server) -> Edit:
    """Return the edit that connects a client to `server`.

    Raises InvalidInput if the client cannot use an address or a token, and the server requires it.
    """
    if client.format == "markdown":
        # A paragraph between marks with our name is always ours.
        return Edit("paragraph", (), server.name, client.stdio["text"], is_ours=lambda _: True)
    program, *arguments = server.argv or ("",)
    words = {
        "command": program,
        "args": arguments,
        "argv": [program, *arguments],
        "url": server.url,
        "name": server.name,
        "token": server.token,
    }
    value = _fill(_server_shape(client, server), words)
    name: Name = server.name
    if client.format == "yaml-list":
        name = lambda item: isinstance(item, dict) and item.get("name") == server.name
    return Edit("server", client.key, name, value, is_our_server)


def _server_shape(client: Client, server: Server) -> Mapping[str, Any]:
    """Return the shape of the client's entry for a server, with placeholders as in clients.toml.

    Raises InvalidInput if the client cannot use an address or a token, and the server requires it.
    """
    if not server.url:
        return client.stdio
    if client.http is None:
        message = f"{client.title} takes no address of a server in its file. {client.note}"
        raise InvalidInput(message.strip())
    if not server.token:
        return client.http
    if client.token is None:
        raise InvalidInput(f"{client.title} reads no token from the environment; put it in by hand")
    return {**client.http, **client.token}


def hooks(client: Client, program: Sequence[str]) -> list[Edit]:
    """Return the edits that make the client call `memory hook`. Empty for a client without hooks.

    program: the command line of this program, without `hook`.
    """
    if not client.hooks:
        return []
    # The file of the hooks needs keys such as a version. A present value stays, also another
    # program's.
    edits = [
        Edit(key, (), key, value, is_ours=lambda _: True, keeps_present=True)
        for key, value in client.hooks.get("file_members", {}).items()
    ]

    command = shlex.join([*program, "hook", client.id])
    is_ours = lambda item: any(_is_our_hook(string, client.id) for string in _strings(item))
    for event, kind in CLIENTS[client.id].events.items():
        value = _fill(_hook_entry(client, kind), {"hook": command, "event": event})
        # The hooks of an event are a list, in which ours is recognized by its command.
        edits.append(Edit(event, ("hooks", event), name=is_ours, value=value, is_ours=is_ours))
    return edits


def _hook_entry(client: Client, kind: str) -> Any:
    """Return the shape of the client's hook for an event of this kind.

    For tools (TOOL, FAILED), some clients have another shape, which limits the hook to some tools.
    """
    if kind in (TOOL, FAILED):
        return client.hooks.get("tool_entry", client.hooks["entry"])
    return client.hooks["entry"]


class FormerEntries(NamedTuple):
    """Entries of a file that this program wrote under its former name.

    format: the syntax of the file, a key of `install.EDITORS`.
    edits: the edits to remove.
    """

    file: Path
    format: str
    edits: list[Edit]


def former(client: Client) -> list[FormerEntries]:
    """Return the entries that this program wrote under its former name, in order to remove them.

    The entries that it writes now have other keys or other files, so they do not replace the former
    entries.
    """
    former_entries: list[FormerEntries] = []
    if client.plugin:
        file = expand(client.plugin["file"], os.environ)
        edit = _former_plugin(client.plugin["key"])
        former_entries.append(FormerEntries(file, client.plugin["format"], [edit]))
    hook_file = client.hook_file(os.environ)
    # Only a file with our name was a file with our former name.
    if hook_file is not None and hook_file.stem == "memoranda":
        file = hook_file.with_name(f"{former_name.NAME}{hook_file.suffix}")
        former_entries.append(FormerEntries(file, "json", hooks(client, ["memory"])))
    return former_entries


def _former_plugin(key: Sequence[str]) -> Edit:
    """Return the edit for the setting of our plugin under its former name.

    key: the path to the setting of the present plugin, such as `enabledPlugins`, then
        `memoranda@memoranda`. The part with "@" is the plugin's name.
    """
    (plugin_name,) = [name for name in key if "@" in name]
    # Whatever value the setting of the former plugin has, it is ours.
    return Edit(
        label="former plugin",
        path=tuple(key[: key.index(plugin_name)]),
        name=former_name.PLUGIN,
        value=True,
        is_ours=lambda _: True,
    )


def shares_hooks(value: Any, client: str) -> bool:
    """Whether a group of hooks has commands of other programs, too.

    value: the group as it is in the client's file.
    client: the id of the client.
    """
    if not isinstance(value, dict) or not isinstance(value.get("hooks"), list):
        return False
    for hook in value["hooks"]:
        is_ours = any(_is_our_hook(string, client) for string in _strings(hook))
        if not is_ours:
            return True
    return False


def is_our_server(value: Any) -> bool:
    """Whether an entry of a client's file starts this program as an MCP server."""
    words = [*_strings(value)]
    names = {os.path.basename(word) for word in words}
    return "mcp" in words and bool(names & _PROGRAMS)


def command_of(value: Any) -> list[str]:
    """Return the command line in a server's entry, which clients write in different shapes.

    For example, `{"command": "memory", "args": ["mcp"]}` gives `["memory", "mcp"]`. The list is
    empty for an address.
    """
    if not isinstance(value, dict):
        return []
    command = value.get("command", value.get("cmd", []))
    # Some clients write the whole command line as one list.
    if isinstance(command, str):
        command = [command]
    arguments = value.get("args", [])
    if not isinstance(command, list) or not isinstance(arguments, list):
        return []
    return [word for word in [*command, *arguments] if isinstance(word, str)]


def _is_our_hook(command: str, client: str) -> bool:
    """Whether a command line calls our hook for the client with this id."""
    return f" hook {client}" in command and any(name in command for name in _PROGRAMS)


def _first(value: Any, environ: Mapping[str, str], system: str, folder: Path = Path()) -> Path:
    """Return the first path that exists. If none exists, return the first path.

    value: a path, a list of paths, or a dict with one of these for each system.
    environ: the environment variables, for `expand`.
    system: "linux" or "macos".
    folder: the folder to which the paths are relative.
    """
    if isinstance(value, dict):
        value = value[system]
    candidates = [value] if isinstance(value, str) else value
    paths = [expand(candidate, environ) for candidate in candidates]
    for path in paths:
        if (folder / path).exists():
            return path
    return paths[0]


def _strings(value: Any) -> list[str]:
    """Return all strings in a tree of dicts and lists. The keys of dicts are left out."""
    if isinstance(value, str):
        return [value]
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    return list(chain.from_iterable(map(_strings, inner)))


def _fill(shape: Any, words: Mapping[str, Any]) -> Any:
    """Fill the placeholders of a client's entry with words.

    `["{command}", "mcp"]` becomes `["memory", "mcp"]` if `command` is `memory`. A string that is
    only a placeholder may become a list.

    shape: the entry with placeholders. It is not changed; the result is a copy.
    words: placeholder -> its value.
    """
    if isinstance(shape, Mapping):
        return {key: _fill(part, words) for key, part in shape.items()}
    if isinstance(shape, list):
        return [_fill(part, words) for part in shape]
    if isinstance(shape, str):
        for key, word in words.items():
            placeholder = f"{{{key}}}"
            if shape == placeholder:
                return word
            if isinstance(word, str):
                shape = shape.replace(placeholder, word)
    return shape


def auto_memory_folder(home: Path) -> Path:
    """Return the folder of project `claude memory`, where Claude Code writes its own memories."""
    return home / "projects" / "claude-memory"


def add_native(memory: MemorySession) -> tuple[list[Project], list[tuple[Path, str]]]:
    """Add the folders where Claude Code, Codex and Gemini CLI keep their memories as projects.

    A folder that is a project already is left alone. Returns the new projects, and (folder, reason)
    of each folder that could not be added. Raises InvalidInput if the caller is an agent.
    """
    if memory.agent is not None:
        raise InvalidInput(
            "only the owner adds the memories of other programs; run it without an agent's name"
        )
    added_projects: list[Project] = []
    refused_folders: list[tuple[Path, str]] = []
    roots = {os.path.realpath(project.root) for project in memory.projects}
    names = {project.name.lower() for project in memory.projects}
    for client, root, folder in _native_folders():
        if os.path.realpath(folder) in roots:
            continue
        name = _free_name(_native_name(client, folder.relative_to(root)), names)
        try:
            project, _ = memory.add_project(name, str(folder), make=False, hidden=True)
        except MemorandaError as error:
            refused_folders.append((folder, str(error)))
            continue
        names.add(name.lower())
        added_projects.append(project)
    return added_projects, refused_folders


def _native_folders() -> Iterator[tuple[str, Path, Path]]:
    """Yield the folders where clients store their own memories.

    Each is a tuple (client, folder with all files of the client, folder with memories).
    """
    for client, variable, default_root, pattern in _PLACES:
        root = Path(os.path.expanduser(os.environ.get(variable) or default_root))
        for folder in sorted(root.glob(pattern)):
            if folder.is_dir() and any(folder.rglob("*.md")):
                yield client, root, folder


def _native_name(client: str, place: Path) -> str:
    """Return a name for a project, made from the path of a folder with a client's memories.

    Clients name such a folder after the path that its memories are about, with `-` for `/`. For the
    user `/home/ann`, the folder `projects/-home-ann-shop/memory` of `claude` gives `claude shop`.

    place: the path of the folder, relative to the folder of the client.
    """
    # Of `projects/-home-ann-shop/memory`, the parts between the first and the last.
    dashed_path = "-".join(place.parts[1:-1])
    dashed_user_folder = re.sub(r"[^A-Za-z0-9]", "-", os.path.expanduser("~"))
    path_in_user_folder = dashed_path.removeprefix(dashed_user_folder)
    words = _NOT_IN_NAMES.sub("-", path_in_user_folder).strip(_NOT_AT_ENDS)
    # Of a long path, the end says most. The name must have room for the client and a space before
    # it, and for a number of `_free_name` behind it.
    most_characters = _MOST_NAME_CHARACTERS - len(f"{client} ") - len(" 99")
    shown_words = words[-most_characters:].strip(_NOT_AT_ENDS)
    return f"{client} {shown_words}".strip()


def _free_name(name: str, taken_names: Collection[str]) -> str:
    """Return `name` or, if it is taken, the first free one of `name 2`, `name 3` and so on.

    taken_names: the names that are taken, in lower case.
    """
    free_name = name
    number = 1
    while free_name.lower() in taken_names:
        number += 1
        free_name = f"{name} {number}"
    return free_name
