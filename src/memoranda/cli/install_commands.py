"""`install` and `uninstall`: our entry in the configuration of other programs (docs/clients.md)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache, cached_property
from pathlib import Path
from string import Template
from typing import Any

import click

from memoranda import __version__, former_name
from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.output import Failure, table_row
from memoranda.cli.syntax import Text, Usage, command, flag, option
from memoranda.clients import table
from memoranda.clients.editing import Unsure
from memoranda.clients.install import (
    FileChange,
    Installer,
    Target,
    checked,
    checked_name,
    present,
    snippet,
)
from memoranda.clients.table import Client, Edit, Server
from memoranda.config import is_database
from memoranda.errors import MemorandaError, near
from memoranda.text.user_path import absolute_path

# How long the server that was written may take for its first answer.
_START_SECONDS = 30.0
# How long a client may take to name its version.
_VERSION_SECONDS = 10.0
_IDS = lambda _: [*table.clients()]
_NOBODY = "No client was found on this machine. Name one: memory install CLIENT; for others: memory install --print"
_STATUS = "{:<17} {:<6} {:<24} {:<8} {}"


@command(
    "install",
    "[CLIENT...]",
    keys=("clients", "server"),
    complete=_IDS,
    example="memory install codex zed --dry-run",
)
@flag("--all", "Every client found on this machine.", "all_")
@flag("--project", "The files of the project in the working folder, not your own.")
@option(
    "--http", metavar="URL", help="Connect to a server at this address instead of starting one."
)
@option(
    "--token-env",
    metavar="NAME",
    help="The variable of the environment that holds the token for --http.",
)
@click.option(
    "--hooks/--no-hooks",
    default=True,
    help="Bring memory into each session by the client's hooks, or take ours out [yes].",
)
@click.option(
    "--transcripts/--no-transcripts",
    "transcripts",
    default=None,
    help="Let the memory read the transcripts agents keep here [asked on a terminal].",
)
@flag(
    "--native-memory",
    "Let Claude Code keep its own memories in a project here, for all agents to find.",
)
@flag(
    "--agents-md", "Also, or only: a paragraph about the memory in AGENTS.md of the working folder."
)
@option("--name", default="memory", help="The name of the entry.")
@flag("--replace", "Take the place of an entry of that name that is not ours.")
@flag("--dry-run", "Show the changes, make none.")
@flag("--print", "Print what to paste, change nothing.", "print_")
def install(
    call: Invocation,
    *ids: str,
    all_: bool,
    project: bool,
    http: Text,
    token_env: Text,
    hooks: bool,
    transcripts: bool | None,
    native_memory: bool,
    agents_md: bool,
    name: str,
    replace: bool,
    dry_run: bool,
    print_: bool,
) -> int:
    """Connect other programs to this memory. Without CLIENT: show who is connected, change nothing.

    One entry of the client's configuration changes, and not another byte; a copy of the file is
    kept. Then the server is started once and asked for its tools.
    """
    if token_env is not None and http is None:
        raise Usage("--token-env needs --http")
    if native_memory and (project or print_ or (ids and "claude-code" not in ids)):
        raise Usage("--native-memory is a setting of your own claude-code")
    program = _program(project)
    server_argv = (*program, "mcp", *_globals(call))
    server = _server(name, server_argv, http or "", token_env or "")
    if not (ids or all_ or print_ or native_memory or agents_md):
        return _show(call, server, project)

    connecting = _Connecting(
        call,
        server,
        [*program, *_globals(call)],
        is_for_project=project,
        has_hooks=hooks,
        native_memory=native_memory,
        replace=replace,
        dry_run=dry_run,
        prints=print_,
        is_named=bool(ids),
    )
    client_ids = ids or (("claude-code",) if native_memory and not all_ else ())
    clients_chosen = _chosen(client_ids, all_, project, print_=print_, agents_md=agents_md)
    rows = [connecting.row(client) for client in clients_chosen]
    texts = [_told(client, row) for client, row in zip(clients_chosen, rows, strict=True)]
    started = None
    if connecting.has_served(rows):
        if not http:
            started = _start(server.argv)
            result = started["error"] or "{tools} tools, {seconds} s.".format_map(started)
            texts.append(f"Started it: {result}")
        texts += _what_is_recorded(call)
        texts += _transcripts_too(call, transcripts)
    texts += former_name.advice()
    call.answer("\n".join(texts) or _NOBODY, clients=rows, server=started)
    failed = any(row["result"] in ("refused", "not found") for row in rows)
    return int(failed or (started is not None and started["error"] is not None))


def _program(is_for_project: bool) -> list[str]:
    """The command a client starts; in a file that others check out, the bare name."""
    if is_for_project and shutil.which("memory"):
        return ["memory"]
    return list(table.launcher())


def _server(name: str, argv: tuple[str, ...], http: str, token_env: str) -> Server:
    """What a client's entry starts, or connects to. Raises InvalidInput."""
    server = Server(checked_name(name), argv, http, token_env)
    if http:
        message = f'invalid address "{http}": use http(s)://HOST[:PORT]/mcp, without user, password and query'
        checked(http, r"https?://[^\s/@?#]+(/[^\s@?#]*)?", message)
    # The message does not repeat it: it may be the token
    if token_env:
        message = "--token-env takes the NAME of a variable in capitals, never the token; e.g. MEMORY_TOKEN"
        checked(token_env, r"[A-Z_][A-Z0-9_]{0,63}", message)
    return server


@dataclass(frozen=True)
class _Connecting:
    """How `install` connects clients: its options, and the server they are to start.

    program: the command of this memory, for hooks.
    prints: whether what to paste is shown, and nothing is changed.
    is_named: whether a client was named.
    """

    call: Invocation
    server: Server
    program: Sequence[str]
    is_for_project: bool
    has_hooks: bool
    native_memory: bool
    replace: bool
    dry_run: bool
    prints: bool
    is_named: bool

    @cached_property
    def _installer(self) -> Installer:
        return Installer(self.call.settings.home)

    def row(self, client: Client) -> dict[str, Any]:
        """Connect a client. What became of it, as data."""
        try:
            outcome = self._connect(client)
        except MemorandaError as error:
            outcome = {"result": "refused", "reason": str(error)}
        return {"client": client.id, "title": client.title} | outcome

    def has_served(self, rows: Sequence[dict[str, Any]]) -> bool:
        """Whether a program is connected now that starts the server."""
        if self.dry_run or self.prints:
            return False
        results = [row["result"] for row in rows if row["client"] != "agents-md"]
        return any(result in ("written", "unchanged") for result in results)

    def _connect(self, client: Client) -> dict[str, Any]:
        memory_files = _memories(client, self._installer.home) if self.native_memory else []
        targets = _targets(
            client,
            self.server,
            self.is_for_project,
            hooks=self.has_hooks,
            program=self.program,
            more=memory_files,
        )
        if self.prints:
            # Where no client was named, what most of them take is printed, for none of them
            nobody = {} if self.is_named else {"client": None, "file": None}
            return self._paste(targets[0]) | {"result": "printed"} | nobody
        if not self.is_for_project and not client.is_here(os.environ):
            reason = f"{client.title} is not on this machine"
            return self._paste(targets[0]) | {"result": "not found", "reason": reason}

        former = [] if self.is_for_project else _former(client)
        if _plugin_is_on(client):
            if not memory_files:
                return self._beside_plugin(former)
            targets = _own_file(client, memory_files)
        removing = [*self._unwanted_hooks(client), *former]
        row = _changes(
            self._installer, targets, removing, replace=self.replace, dry_run=self.dry_run
        )
        if memory_files and row["result"] in ("written", "unchanged") and not self.dry_run:
            with self.call.memory() as memory:
                memory.add_project("claude memory", memory_files[0].value)
        return row

    def _paste(self, target: Target) -> dict[str, Any]:
        """What a person may paste into a client's file."""
        text = snippet(target.format, target.edits[:1])
        return {"file": str(target.file), "snippet": text}

    def _beside_plugin(self, former: Sequence[Target]) -> dict[str, Any]:
        """What is done for a client that has our plugin: what an earlier checkout left goes."""
        if not former:
            return {"result": "unchanged", "reason": "its plugin brings server and hooks"}
        return _changes(self._installer, (), former, replace=self.replace, dry_run=self.dry_run)

    def _unwanted_hooks(self, client: Client) -> list[Target]:
        """Our hooks, where they are to be taken out."""
        if self.has_hooks or self.is_for_project:
            return []
        return _own_file(client, table.hooks(client, ["memory"]))


def _transcripts_too(call: Invocation, is_wanted: bool | None) -> list[str]:
    """Turn the reading of transcripts on or off: as the option says, else as a person at the
    terminal answers; in a pipe nothing changes, and it is said how to.
    """
    from memoranda.transcripts.tier import found_on_this_machine

    is_on = call.settings.transcripts
    agents_found = found_on_this_machine()
    if is_wanted is None and (is_on or not agents_found):
        return []
    agents = ", ".join(f"{title} ({count})" for title, count in agents_found.items())
    template_lines = (
        Path(__file__).with_name("install-transcripts.txt").read_text("utf-8").splitlines()
    )
    text_lines = [Template(line).substitute(agents=agents or "none") for line in template_lines]
    if is_wanted is None and call.on_terminal:
        output.notice("\n".join(text_lines))
        is_wanted = output.confirmed("Read them?")
    if is_wanted is None:
        return ["", *text_lines, "Turn it on: memory transcripts on"]
    if is_wanted != is_on:
        with call.memory() as memory:
            memory.configure("transcripts.enabled", is_wanted)
    if not is_wanted:
        return ["Transcripts are not read."]
    return ["Transcripts are read from now on. Index them now: memory transcripts sync"]


def _what_is_recorded(call: Invocation) -> list[str]:
    """What is kept from now on, where, how to turn each part off, and what runs."""
    text = Path(__file__).with_name("install-recorded.txt").read_text("utf-8")
    return ["", *Template(text).substitute(home=call.settings.shown_home).splitlines()]


@command(
    "uninstall", "[CLIENT...]", keys=("clients",), complete=_IDS, example="memory uninstall --all"
)
@flag("--all", "Every client that has our entry.", "all_")
@flag("--project", "The files of the project in the working folder, not your own.")
@flag("--agents-md", "Also, or only: the paragraph in AGENTS.md of the working folder.")
@option("--name", default="memory", help="The name of the entry.")
@flag("--replace", "Take out an entry of that name even if it is not ours.")
@flag("--dry-run", "Show the changes, make none.")
def uninstall(
    call: Invocation,
    *ids: str,
    all_: bool,
    project: bool,
    agents_md: bool,
    name: str,
    replace: bool,
    dry_run: bool,
) -> int:
    """Take our entry and hooks out of other programs' configuration; nothing else in it changes."""
    if not (ids or all_ or agents_md):
        raise Usage("requires a CLIENT, or --all")
    server = Server(checked_name(name))
    installer = Installer(call.settings.home)
    rows = []
    texts = []
    for client in _chosen(ids, all_, project, agents_md=agents_md):
        try:
            if not project:
                memory_files = _memories(client, installer.home)
            else:
                memory_files = []
            if any(
                not installer.wrote(target, present(target)[0])
                for target in _own_file(client, memory_files)[: len(memory_files)]
            ):
                # Somebody else's
                memory_files = []
            targets = _targets(
                client, server, project, hooks=not project, program=["memory"], more=memory_files
            )
            if not project:
                targets = [*targets, *_former(client)]
            outcome = _changes(installer, (), targets, replace=replace, dry_run=dry_run)
        except MemorandaError as error:
            outcome = {"result": "refused", "reason": str(error)}
        rows.append({"client": client.id, "title": client.title} | outcome)
        if ids or outcome["result"] != "unchanged":
            texts.append(_told(client, rows[-1]))
    texts += former_name.advice()
    call.answer("\n".join(texts) or "Nothing to take out.", clients=rows)
    return int(any(row["result"] == "refused" for row in rows))


def _globals(call: Invocation) -> list[str]:
    """The options that name this memory, if it is not the usual one: clients do not hand our
    environment on.
    """
    home = call.home or os.environ.get("MEMORY_HOME")
    if home and not is_database(home):
        home = absolute_path(home)
    return (["--home", home] if home else []) + call.options


def _chosen(
    ids: Sequence[str], all_: bool, project: bool, *, print_: bool = False, agents_md: bool = False
) -> list[Client]:
    """The clients that were named, or those on this machine. Raises Failure for a name nobody has."""
    clients_by_id = table.clients()
    unknown = [name for name in ids if name not in clients_by_id]
    if unknown:
        message = (
            f'unknown client "{unknown[0]}"; clients: {", ".join(clients_by_id)}. '
            "For others: memory install --print"
        )
        raise Failure(message, guesses=near(unknown[0], clients_by_id))
    if agents_md:
        more = [table.agents_md(Path.cwd())]
    else:
        more = []
    if ids or (agents_md and not all_):
        return [clients_by_id[name] for name in dict.fromkeys(ids)] + more
    if print_ and not all_:
        # The form most clients share
        return [clients_by_id["cursor"]]
    present_clients = [name for name in clients_by_id.values() if name.is_here(os.environ)]
    return [name for name in present_clients if name.project or not project] + more


def _targets(
    client: Client,
    server: Server,
    project: bool,
    *,
    hooks: bool,
    program: Sequence[str],
    more: Sequence[Edit] = (),
) -> list[Target]:
    """The files of the client with what belongs in them, `more` in that of its hooks. Raises
    Failure.
    """
    file = client.place(os.environ, Path.cwd() if project else None)
    edits = [table.entry(client, server)]
    if file is None:
        raise Failure(f"{client.title} has no file for projects")
    calls = [*(table.hooks(client, program) if hooks and not project else ()), *more]
    if calls and client.hook_file(os.environ) == file:
        return [Target(client, file, client.format, [*edits, *calls])]
    return [
        Target(client, file, client.format, edits),
        *(_own_file(client, calls) if calls else ()),
    ]


def _own_file(client: Client, edits: Sequence[Edit]) -> list[Target]:
    """The file of the client's hooks with these edits; none for a client without."""
    file = client.hook_file(os.environ)
    if file is None:
        return []
    return [Target(client, file, "json", edits)]


def _former(client: Client) -> list[Target]:
    """What an earlier checkout left of itself in files of the client, where it is still there."""
    targets = [Target(client, *place) for place in table.former(client)]
    return [target for target in targets if any(value is not None for value in _present(target))]


def _present(target: Target) -> list[Any]:
    """As `present`; nothing for a file that nobody can read as what it should be."""
    try:
        return present(target)
    except Unsure:
        return []


def _memories(client: Client, home: Path) -> list[Edit]:
    """What makes the client keep its own memories in a project of the home, where it can be told
    to.
    """
    if "memories" not in client.hooks:
        return []
    # Ours is what was written by us
    folder = str(table.auto_memory_folder(home))
    return [Edit("native memory", (), client.hooks["memories"], folder, lambda _: False)]


def _changes(
    installer: Installer,
    adding: Sequence[Target],
    removing: Sequence[Target],
    *,
    replace: bool,
    dry_run: bool,
) -> dict[str, Any]:
    """Carry out one client's changes, as keys of its row; all are tried before the first file is
    written.
    """
    tasks = [(target, installer.add) for target in adding]
    tasks += [(target, installer.remove) for target in removing]
    files: list[tuple[Target, FileChange]] = []
    hooks_left: dict[str, str] = {}
    for is_dry in (True, dry_run):
        files.clear()
        for target, act in tasks:
            try:
                files.append((target, act(target, replace=replace, dry_run=is_dry)))
            except Unsure as error:
                problem = f"{target.file} was not changed: {error}"
                if adding:
                    is_beside = target not in adding
                else:
                    is_beside = target is not removing[0] and not installer.knows(target)
                if not is_beside:
                    return _refused(target, problem, may_paste=bool(adding))
                # Hooks nobody asked for, or wrote: the server can be connected or taken out all the
                # same
                hooks_left = {"hooks_left": problem}
    changed = [(target, file) for target, file in files if file.old != file.new]
    document: dict[str, Any] = {
        "result": "unchanged",
        "file": ", ".join(str(target.file) for target, _ in changed or files),
        "backup": [str(file.backup) for _, file in changed if file.backup is not None],
    }
    if changed and dry_run:
        document["result"] = "planned"
        diff = "".join(_diff(target, file) for target, file in changed)
        if diff:
            document["diff"] = diff
    elif changed:
        document["result"] = "written" if adding else "removed"
    return document | hooks_left


def _refused(target: Target, problem: str, *, may_paste: bool) -> dict[str, Any]:
    """The keys of a file that was not changed; what to paste, where something is to be added."""
    return {
        "result": "refused",
        "file": str(target.file),
        "reason": problem,
        "snippet": snippet(target.format, target.edits) if may_paste else None,
    }


def _diff(target: Target, file: FileChange) -> str:
    """What a change would do to a file, in the form of `diff -u`."""
    old = (file.old or "").splitlines(keepends=True)
    new = (file.new or "").splitlines(keepends=True)
    text = ""
    for line in unified_diff(old, new, str(target.file), str(target.file)):
        if not line.endswith("\n"):
            line += "\n\\ No newline at end of file\n"
        text += line
    return text


def _told(client: Client, row: dict[str, Any]) -> str:
    """What became of a client, for a person."""
    result = row["result"]
    if result == "printed":
        return (f"# {row['file']}\n" if row["file"] else "") + row["snippet"].rstrip("\n")
    head = f"{client.title}: {result}"
    if row.get("reason"):
        head = f"{client.title}: {row['reason']}"
    elif row.get("file"):
        head += f" ({row['file']})"
    parts = [head, *(f"  copy of what was there: {backup}" for backup in row.get("backup", ()))]
    if row.get("hooks_left"):
        parts.append(f"  {row['hooks_left']}")
    if row.get("snippet"):
        parts.append(f"  Paste this into {row['file']}:\n{row['snippet']}".rstrip("\n"))
    if row.get("diff"):
        parts.append(row["diff"].rstrip("\n"))
    if result == "written":
        notes = (
            client.note,
            client.hooks.get("note") if str(client.hook_file(os.environ)) in row["file"] else None,
        )
        parts += [f"  {note}" for note in notes if note]
    return "\n".join(parts)


def _plugin_is_on(client: Client) -> bool:
    """Whether the client has our plugin, which would do everything twice."""
    plugin = client.plugin
    if not plugin:
        return False
    *path, name = plugin["key"]
    edit = Edit("plugin", tuple(path), name, True, bool)
    try:
        return present(
            Target(client, table.expand(plugin["file"], os.environ), plugin["format"], [edit])
        ) == [True]
    except Unsure:
        return False


def _show(call: Invocation, server: Server, project: bool) -> int:
    """The table of clients; `entry` is "none", ok, other command, broken command, address, not ours,
    plugin or unreadable, with the reason."""
    installer = Installer(call.settings.home)
    rows = []
    lines = [table_row(_STATUS, "client", "found", "entry", "hooks", "file").rstrip()]
    for client in table.clients().values():
        if project and not client.project:
            continue
        row = _status_row(client, installer, server, project)
        rows.append(row)
        lines.append(_status_line(row))
    lines.append("\nConnect: memory install CLIENT, or memory install --all. Nothing was changed.")
    call.answer("\n".join(lines), clients=rows, server=None)
    return 0


def _status_row(
    client: Client, installer: Installer, server: Server, is_for_project: bool
) -> dict[str, Any]:
    """What there is of us at a client, as data."""
    file = client.place(os.environ, Path.cwd() if is_for_project else None)
    assert file is not None
    entry = "none"
    version = None
    has_hooks = None
    try:
        entry, version = _entry_status(client, file, installer, server)
        if not is_for_project:
            has_hooks = _hooks_status(client)
    except MemorandaError as error:
        entry = f"unreadable: {error}"
    if not is_for_project and entry == "none" and _plugin_is_on(client):
        entry = "plugin"
        has_hooks = True
    return {
        "client": client.id,
        "title": client.title,
        "found": client.is_here(os.environ),
        "entry": entry,
        "version": version,
        "hooks": has_hooks,
        "file": str(file),
    }


def _entry_status(
    client: Client, file: Path, installer: Installer, server: Server
) -> tuple[str, str | None]:
    """What our entry in a client's file is, and the version of the program it starts. Raises
    Unsure.
    """
    edit = table.entry(client, server)
    target = Target(client, file, client.format, [edit])
    (value,) = present(target)
    if value is None:
        return "none", None
    argv = table.command_of(value)
    if not table.is_our_server(value):
        is_address = not argv and installer.wrote(target, value)
        return ("address" if is_address else "not ours"), None
    version = _version(*(argv[: argv.index("mcp")] if "mcp" in argv else argv[:1]))
    if not version:
        return "broken command", None
    return ("ok" if value == edit.value else "other command"), version


def _hooks_status(client: Client) -> bool | None:
    """Whether a client has all our hooks; None if it has no such file. Raises Unsure."""
    hook_file = client.hook_file(os.environ)
    if hook_file is None:
        return None
    calls = [hook for hook in table.hooks(client, ["memory"]) if not hook.kept]
    return all(value is not None for value in present(Target(client, hook_file, "json", calls)))


def _status_line(row: dict[str, Any]) -> str:
    """The row of a client in the table."""
    place = ""
    if row["found"]:
        place = re.sub(f"^{re.escape(os.path.expanduser('~'))}(?=/)", "~", row["file"])
    state = row["entry"]
    if row["version"]:
        state = f"{state} {row['version']}"
    has_hooks = {True: "yes", False: "no", None: "-"}[row["hooks"]]
    is_found = "yes" if row["found"] else "no"
    return table_row(_STATUS, row["client"], is_found, state, has_hooks, place).rstrip()


@cache
def _version(*program: str) -> str | None:
    """The version of the program an entry starts, None when it does not start."""
    if list(program) == table.launcher():
        return __version__
    try:
        process = subprocess.run(
            [*program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_SECONDS,
            check=True,
        )
        return process.stdout.decode("utf-8", "replace").split()[-1]
    except (OSError, subprocess.SubprocessError, IndexError):
        return None


def _start(argv: Sequence[str]) -> dict[str, Any]:
    """Start the server as a client would and ask for its tools."""
    client = {"name": "memory-install", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    lines: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    request = "".join(json.dumps(line) + "\n" for line in lines).encode()
    began = time.monotonic()
    answer = {"command": [*argv], "tools": None, "seconds": None, "error": None}
    try:
        process = subprocess.run(
            [*argv], input=request, capture_output=True, timeout=_START_SECONDS, check=False
        )
        replies = {reply.get("id"): reply for reply in map(json.loads, process.stdout.splitlines())}
        tools = len(replies[2]["result"]["tools"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, AttributeError) as error:
        return answer | {
            "error": f"the server did not answer ({type(error).__name__}); try: {' '.join(argv)}"
        }
    return answer | {"tools": tools, "seconds": round(time.monotonic() - began, 2)}
