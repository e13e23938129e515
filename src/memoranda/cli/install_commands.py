"""`install` and `uninstall`: our entry in the configuration of other programs (docs/clients.md)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache, partial
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
    check_text,
    checked_name,
    present,
    snippet,
)
from memoranda.clients.table import Client, Edit, Server
from memoranda.config import is_database
from memoranda.errors import MemorandaError, near
from memoranda.text.user_path import absolute_path

# A server that was configured may take this many seconds for its first answer.
_START_SECONDS = 30.0
# A program may take this many seconds to print its version.
_VERSION_SECONDS = 10.0
_NO_CLIENT_FOUND = (
    "No client was found on this machine. "
    "Name one: memory install CLIENT; for others: memory install --print"
)
# The template of a row of the table that `memory install` shows.
_STATUS_ROW = "{:<17} {:<6} {:<24} {:<8} {}"


def _client_ids(context: click.Context) -> list[str]:
    """Return the names of all clients, for the completion of a shell."""
    return list(table.clients())


@command(
    "install",
    "[CLIENT...]",
    keys=("clients", "server"),
    complete=_client_ids,
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
    help="The environment variable that has the token for --http.",
)
@click.option(
    "--hooks/--no-hooks",
    default=True,
    help="Add hooks that bring memory into each session of the client, or remove ours [yes].",
)
@click.option(
    "--transcripts/--no-transcripts",
    "transcripts",
    default=None,
    help="Let the memory read the transcripts of agents on this machine [asked on a terminal].",
)
@flag(
    "--native-memory",
    "Let Claude Code store its own memories in a project here, where all agents find them.",
)
@flag(
    "--agents-md",
    "Add a paragraph about the memory to AGENTS.md in the working folder. Without CLIENT, only that.",
)
@option("--name", default="memory", help="The name of the entry.")
@flag("--replace", "Replace an entry of that name even if it is not ours.")
@flag("--dry-run", "Only show the changes.")
@flag("--print", "Print what to paste, and change nothing.", "print_")
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

    Only one entry of the client's configuration changes, and no other byte. A copy of the file is
    kept. Then the server is started once, and asked for its tools.
    """
    _check_native_memory(native_memory, ids, is_elsewhere=project or print_)
    program = _program(is_shared=project)
    global_options = _global_options(call)
    server = _server(name, (*program, "mcp", *global_options), http, token_env)
    names_any_client = any((ids, all_, print_, native_memory, agents_md))
    if not names_any_client:
        return _show(call, server, is_for_project=project)

    # Only this client can store its memories in a project here.
    if native_memory and not ids and not all_:
        ids = ("claude-code",)
    clients = _chosen_clients(ids, all_, project, print_=print_, agents_md=agents_md)
    request = InstallRequest(
        is_for_project=project,
        has_hooks=hooks,
        has_native_memory=native_memory,
        replaces_others=replace,
        is_dry_run=dry_run,
    )
    connector = ClientConnector(call, request, server, [*program, *global_options])
    if print_:
        rows = connector.print_entries(clients, are_named=bool(ids))
    else:
        rows = connector.connect_all(clients)

    texts = [_result_line(client, row) for client, row in zip(clients, rows, strict=True)]
    started = None
    changes_nothing = dry_run or print_
    is_in_use_now = _is_any_connected(rows) and not changes_nothing
    # A server at an address runs elsewhere, so it cannot be started here.
    if is_in_use_now and not http:
        started = _start(server.argv)
        texts.append(_start_line(started))
    if is_in_use_now:
        texts += _lines_about_records(call)
        texts += _switch_transcripts(call, transcripts)
    texts += former_name.advice()
    call.answer("\n".join(texts) or _NO_CLIENT_FOUND, clients=rows, server=started)
    return _exit_code(rows, started)


def _check_native_memory(is_wanted: bool, ids: Sequence[str], *, is_elsewhere: bool) -> None:
    """Raise Usage if `--native-memory` cannot be applied.

    It is a setting of Claude Code, in the user's own files.

    is_wanted: whether the option is on the command line.
    ids: the named clients; empty if none is named.
    is_elsewhere: whether the files of a project are changed instead, or none at all.
    """
    names_only_others = bool(ids) and "claude-code" not in ids
    if is_wanted and (is_elsewhere or names_only_others):
        raise Usage("--native-memory is a setting of your own claude-code")


def _program(*, is_shared: bool) -> list[str]:
    """Return the command line of this program for an entry in a client's file.

    is_shared: whether other people check out the file. They may have `memory` in another place, so
        the command line then relies on their PATH.
    """
    if is_shared and shutil.which("memory"):
        return ["memory"]
    return table.launcher()


def _is_any_connected(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether any client has our entry now. A paragraph in AGENTS.md does not count."""
    return any(
        row["result"] in ("written", "unchanged") and row["client"] != "agents-md" for row in rows
    )


def _server(name: str, argv: tuple[str, ...], url: Text, token_variable: Text) -> Server:
    """Return the server to write into the files of clients.

    name: the name of the entry in a client's file.
    argv: the command line that starts the server.
    url: the address of a running server; None starts one.
    token_variable: the environment variable with the token for `url`; None for no token.

    Raises Usage for a token without an address. Raises InvalidInput for an address, or the name of
    a variable, that no client could use.
    """
    if token_variable is not None and url is None:
        raise Usage("--token-env needs --http")
    server = Server(checked_name(name), argv, url or "", token_variable or "")
    if url is not None:
        message = (
            f'invalid address "{server.url}": use http(s)://HOST[:PORT]/mcp, without user, '
            "password and query"
        )
        check_text(server.url, r"https?://[^\s/@?#]+(/[^\s@?#]*)?", message)
    if server.token:
        # The message does not repeat the value, which may be the token.
        message = (
            "--token-env takes the NAME of a variable in capitals, never the token; "
            "e.g. MEMORY_TOKEN"
        )
        check_text(server.token, r"[A-Z_][A-Z0-9_]{0,63}", message)
    return server


def _exit_code(rows: Sequence[dict[str, Any]], started: dict[str, Any] | None) -> int:
    """Return 1 if a client could not be connected or the server did not start, else 0.

    started: the result of starting the server. None if it was not started.
    """
    has_not_started = started is not None and started["error"] is not None
    has_unconnected = any(row["result"] in ("refused", "not found") for row in rows)
    return 1 if has_not_started or has_unconnected else 0


def _start_line(started: dict[str, Any]) -> str:
    """Return the line about the trial start of the server.

    started: the result as `_start` returns it.
    """
    if started["error"]:
        return f"Started it: {started['error']}"
    return f"Started it: {started['tools']} tools, {started['seconds']} s."


@dataclass(frozen=True)
class InstallRequest:
    """The options of `install` that apply to every client.

    is_for_project: whether to write into the files of the project in the working folder.
    has_hooks: whether to install hooks. If False, our hooks are removed.
    has_native_memory: whether the client must keep its own memories in a project of the home.
    replaces_others: whether to replace an entry of our name even if another program wrote it.
    is_dry_run: whether to show the changes without making them.
    """

    is_for_project: bool
    has_hooks: bool
    has_native_memory: bool
    replaces_others: bool
    is_dry_run: bool


def _row(client: Client, change_client: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the row of a client for the answer.

    change_client: changes the client and returns keys for the row. If it raises a MemorandaError,
        the row has the reason instead.
    """
    row = {"client": client.id, "title": client.title}
    try:
        return row | change_client()
    except MemorandaError as error:
        return row | {"result": "refused", "reason": str(error)}


class ClientConnector:
    """Connects clients to a server, one after the other.

    program: the command line that hooks begin with.
    """

    def __init__(
        self, call: Invocation, request: InstallRequest, server: Server, program: Sequence[str]
    ):
        self._call = call
        self._request = request
        self._server = server
        self._program = program
        self._installer = Installer(call.settings.home)

    def print_entries(self, clients: Sequence[Client], *, are_named: bool) -> list[dict[str, Any]]:
        """Return a row for each client, with the entry to paste or the reason why it has no entry.

        are_named: whether the user named the clients. If not, the entries are meant for any client,
            also for one that is not in our table. Then a row names neither a client nor a file.
        """
        rows = [_row(client, partial(self._row_to_paste, client)) for client in clients]
        if are_named:
            return rows
        for row in rows:
            has_entry = row["result"] == "printed"
            if has_entry:
                row |= {"client": None, "file": None}
                row.pop("hooks", None)
        return rows

    def connect_all(self, clients: Sequence[Client]) -> list[dict[str, Any]]:
        """Connect clients. Return their rows. The row of a client that failed has the reason."""
        return [_row(client, partial(self._connect, client)) for client in clients]

    def _row_to_paste(self, client: Client) -> dict[str, Any]:
        """Return the row for a client whose files the user edits: their paths, and what to paste.

        Raises MemorandaError.
        """
        first, *others = self._targets(client)
        text = snippet(first.format, first.edits)
        row: dict[str, Any] = {"file": str(first.file), "snippet": text, "result": "printed"}
        # The hooks of most clients are in a file of their own.
        for target in others:
            hooks_text = snippet(target.format, target.edits)
            row["hooks"] = {"file": str(target.file), "snippet": hooks_text}
        return row

    def _connect(self, client: Client) -> dict[str, Any]:
        """Connect a client. Returns the keys of its row. Raises MemorandaError."""
        request = self._request
        # What to write so that the client stores its memories here. Empty unless that is asked for.
        memory_edits = self._memory_edits(client)
        # The files to change. This raises if the client cannot take such a server, so nothing is
        # written before.
        targets = self._targets(client)
        if not request.is_for_project and not client.is_here(os.environ):
            reason = f"{client.title} is not on this machine"
            return self._row_to_paste(client) | {"result": "not found", "reason": reason}

        # Entries from the time when this program had another name are removed.
        former_entries = [] if request.is_for_project else _former_entries(client)
        if _plugin_is_on(client):
            # The plugin brings the server and the hooks. With our entries as well, each hook would
            # run twice.
            if not memory_edits:
                return self._row_beside_plugin(former_entries)
            # Of the files, only the one with the folder of memories is changed.
            targets = _hook_file(client, memory_edits)
        row = self._change(targets, [*self._unwanted_hooks(client), *former_entries])

        is_connected = row["result"] in ("written", "unchanged")
        if memory_edits and is_connected and not request.is_dry_run:
            # The client writes its memories into this folder, which becomes a project.
            folder = memory_edits[0].value
            with self._call.memory() as memory:
                memory.add_project("claude memory", folder)
        return row

    def _memory_edits(self, client: Client) -> list[Edit]:
        """Return the edits that make the client keep its own memories in a project of the home.

        [] if the command line does not ask for that, or if the client cannot do it.
        """
        if not self._request.has_native_memory:
            return []
        return _native_memory_edits(client, self._installer.home)

    def _targets(self, client: Client) -> list[Target]:
        """Return the files of a client with the contents that they must have."""
        return _targets(
            client,
            self._server,
            is_for_project=self._request.is_for_project,
            has_hooks=self._request.has_hooks,
            program=self._program,
            more_edits=self._memory_edits(client),
        )

    def _row_beside_plugin(self, former_entries: Sequence[Target]) -> dict[str, Any]:
        """Return the row for a client that gets the server and the hooks from a plugin.

        Nothing is added for it. Entries that an earlier installation left are removed.

        former_entries: the files with such entries.
        """
        if former_entries:
            return self._change(adding=(), removing=former_entries)
        return {"result": "unchanged", "reason": "its plugin brings server and hooks"}

    def _unwanted_hooks(self, client: Client) -> list[Target]:
        """Return the file with our hooks, if the options say to remove them. Else []."""
        if self._request.has_hooks or self._request.is_for_project:
            return []
        return _hook_file(client, table.hooks(client, ["memory"]))

    def _change(self, adding: Sequence[Target], removing: Sequence[Target]) -> dict[str, Any]:
        """Change the files of one client, and return the keys of its row.

        adding: files that get our entry or our hooks.
        removing: files that lose them.
        """
        return _change_files(
            self._installer,
            adding,
            removing,
            replace=self._request.replaces_others,
            dry_run=self._request.is_dry_run,
        )


def _switch_transcripts(call: Invocation, is_wanted: bool | None) -> list[str]:
    """Turn the reading of transcripts on or off, and return lines that say so.

    Without the option, a person at the terminal is asked. In a pipe nothing changes, and the lines
    say how to turn it on. Returns [] if there is nothing to decide.

    is_wanted: the option `--transcripts`; None if it is not given.
    """
    from memoranda.transcripts.tier import found_on_this_machine

    is_on = call.settings.transcripts
    file_counts = found_on_this_machine()
    # There is nothing to ask: the transcripts are read already, or no agent has any.
    if is_wanted is None and (is_on or not file_counts):
        return []
    agents = ", ".join(f"{title} ({count})" for title, count in file_counts.items())
    template_lines = (
        Path(__file__).with_name("install-transcripts.txt").read_text("utf-8").splitlines()
    )
    text_lines = [Template(line).substitute(agents=agents or "none") for line in template_lines]
    if is_wanted is None and call.on_terminal:
        output.notice("\n".join(text_lines))
        is_wanted = output.confirmed("Read them?")
    if is_wanted is None:
        return ["", *text_lines, "Turn it on: memory transcripts on"]

    # The option or the person decided.
    if is_wanted != is_on:
        with call.memory() as memory:
            memory.configure("transcripts.enabled", is_wanted)
    if not is_wanted:
        return ["Transcripts are not read."]
    return ["Transcripts are read from now on. Index them now: memory transcripts sync"]


def _lines_about_records(call: Invocation) -> list[str]:
    """Return lines that tell which data are recorded, where, and how to turn each part off."""
    text = Path(__file__).with_name("install-recorded.txt").read_text("utf-8")
    return ["", *Template(text).substitute(home=call.settings.shown_home).splitlines()]


@command(
    "uninstall",
    "[CLIENT...]",
    keys=("clients",),
    complete=_client_ids,
    example="memory uninstall --all",
)
@flag("--all", "Every client that has our entry.", "all_")
@flag("--project", "The files of the project in the working folder, not your own.")
@flag(
    "--agents-md",
    "Remove the paragraph in AGENTS.md in the working folder. Without CLIENT, only that.",
)
@option("--name", default="memory", help="The name of the entry.")
@flag("--replace", "Remove an entry of that name even if it is not ours.")
@flag("--dry-run", "Only show the changes.")
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
    """Remove our entry and hooks from other programs' configuration; nothing else in it changes."""
    if not (ids or all_ or agents_md):
        raise Usage("requires a CLIENT, or --all")
    server = Server(checked_name(name))
    installer = Installer(call.settings.home)
    clients = _chosen_clients(ids, all_, project, agents_md=agents_md)
    rows = []
    texts = []
    for client in clients:
        remove = partial(
            _remove_from, client, server, installer, project, replace=replace, dry_run=dry_run
        )
        row = _row(client, remove)
        rows.append(row)
        if ids or row["result"] != "unchanged":
            texts.append(_result_line(client, row))
    texts += former_name.advice()
    call.answer("\n".join(texts) or "Nothing to take out.", clients=rows)
    return int(any(row["result"] == "refused" for row in rows))


def _remove_from(
    client: Client,
    server: Server,
    installer: Installer,
    is_for_project: bool,
    *,
    replace: bool,
    dry_run: bool,
) -> dict[str, Any]:
    """Remove our entries from a client's files. Return the keys of its row.

    server: has the name under which our entry is in the files. The rest of it does not count.
    installer: writes the files.
    is_for_project: whether the files of the project in the working folder are meant.
    replace: whether to remove an entry of our name even if it is not ours.
    dry_run: whether only to try it.

    Raises MemorandaError.
    """
    targets = _entries_to_remove(client, server, installer, is_for_project)
    return _change_files(installer, (), targets, replace=replace, dry_run=dry_run)


def _entries_to_remove(
    client: Client, server: Server, installer: Installer, is_for_project: bool
) -> list[Target]:
    """Return all entries that `install` may have put into a client's files.

    server: has the name under which our entry is in the files. The rest of it does not count.
    installer: knows which values we wrote.
    is_for_project: whether the files of the project in the working folder are meant.

    Raises MemorandaError.
    """
    if is_for_project:
        return _targets(client, server, is_for_project=True, has_hooks=False, program=["memory"])
    memory_edits = _native_memory_edits(client, installer.home)
    if memory_edits and not _wrote_native_memory(client, memory_edits, installer):
        # The user or another program has set the folder of the client's memories, so it is kept.
        memory_edits = []
    our_entries = _targets(
        client,
        server,
        is_for_project=False,
        has_hooks=True,
        program=["memory"],
        more_edits=memory_edits,
    )
    return [*our_entries, *_former_entries(client)]


def _wrote_native_memory(
    client: Client, memory_edits: Sequence[Edit], installer: Installer
) -> bool:
    """Whether `install` set the folder of a client's own memories that is in the client's file now.

    memory_edits: the edits that set the folder.
    installer: knows which values we wrote.

    Raises MemorandaError.
    """
    for target in _hook_file(client, memory_edits):
        # The folder is the only edit, so the file has one value for it.
        (folder_in_file,) = present(target)
        if not installer.wrote(target, folder_in_file):
            return False
    return True


def _global_options(call: Invocation) -> list[str]:
    """Return the global options for the command line that a client runs.

    Clients do not pass our environment variables on, so this command line must name the home,
    unless it is the default one.
    """
    home = call.home or os.environ.get("MEMORY_HOME")
    if not home:
        return call.options
    if not is_database(home):
        # A client may run the command in any working folder.
        home = absolute_path(home)
    return ["--home", home, *call.options]


def _check_known(ids: Sequence[str], clients_by_id: Mapping[str, Client]) -> None:
    """Raise Failure for a name that no client has.

    ids: the names on the command line.
    clients_by_id: all clients that we know, by name.
    """
    for name in ids:
        if name not in clients_by_id:
            message = (
                f'unknown client "{name}"; clients: {", ".join(clients_by_id)}. '
                "For others: memory install --print"
            )
            raise Failure(message, guesses=near(name, clients_by_id))


def _chosen_clients(
    ids: Sequence[str], all_: bool, project: bool, *, print_: bool = False, agents_md: bool = False
) -> list[Client]:
    """Return the clients that a command line of `install` or `uninstall` chooses.

    These are the named clients or, without a name, those on this machine.

    ids: the names on the command line.
    all_: the option `--all`: all clients on this machine.
    project: the option `--project`: only clients with files in a project.
    print_: the option `--print`: the entries are only printed.
    agents_md: the option `--agents-md`: the file AGENTS.md of the working folder, too.

    Raises Failure for an unknown name.
    """
    clients_by_id = table.clients()
    _check_known(ids, clients_by_id)
    # Without CLIENT, `--agents-md` means only that file.
    is_only_agents_md = agents_md and not all_
    if ids or is_only_agents_md:
        chosen = [clients_by_id[name] for name in dict.fromkeys(ids)]
    elif print_ and not all_:
        # Most clients take an entry in the form of this client.
        chosen = [clients_by_id["cursor"]]
    else:
        chosen = _clients_here(clients_by_id.values(), has_project=project)
    if agents_md:
        chosen.append(table.agents_md(Path.cwd()))
    return chosen


def _clients_here(clients: Iterable[Client], *, has_project: bool) -> list[Client]:
    """Return the clients on this machine.

    has_project: whether to return only clients that can be configured for one project.
    """
    return [
        client
        for client in clients
        if client.is_here(os.environ) and (client.project or not has_project)
    ]


def _targets(
    client: Client,
    server: Server,
    *,
    is_for_project: bool,
    has_hooks: bool,
    program: Sequence[str],
    more_edits: Sequence[Edit] = (),
) -> list[Target]:
    """Return the files of a client with the contents that they must have.

    server: the server of the entry.
    is_for_project: whether the files of the project in the working folder are meant.
    has_hooks: whether the files must have our hooks.
    program: the command line that hooks begin with.
    more_edits: further edits for the file of the client's hooks.

    Raises Failure for a client without files in a project.
    """
    file = client.place(os.environ, Path.cwd() if is_for_project else None)
    server_edit = table.entry(client, server)
    if file is None:
        raise Failure(f"{client.title} has no file for projects")
    hook_edits = [*more_edits]
    # Hooks are the user's own: a project has none.
    if has_hooks and not is_for_project:
        hook_edits = [*table.hooks(client, program), *more_edits]
    # Some clients have one file for servers and hooks, others have two.
    if hook_edits and client.hook_file(os.environ) == file:
        return [Target(client, file, client.format, [server_edit, *hook_edits])]
    targets = [Target(client, file, client.format, [server_edit])]
    if hook_edits:
        targets += _hook_file(client, hook_edits)
    return targets


def _hook_file(client: Client, edits: Sequence[Edit]) -> list[Target]:
    """Return the file of a client's hooks with these edits, as a list.

    The list is empty if the client has no such file.
    """
    file = client.hook_file(os.environ)
    if file is None:
        return []
    return [Target(client, file, "json", edits)]


def _former_entries(client: Client) -> list[Target]:
    """Return the files of a client with entries that an earlier installation left there."""
    targets = [
        Target(client, entries.file, entries.format, entries.edits)
        for entries in table.former(client)
    ]
    return [target for target in targets if _has_our_entry(target)]


def _has_our_entry(target: Target) -> bool:
    """Whether a file has any of our entries. False if the file cannot be understood."""
    try:
        values = present(target)
    except Unsure:
        return False
    return any(value is not None for value in values)


def _native_memory_edits(client: Client, home: Path) -> list[Edit]:
    """Return the edits that make a client keep its own memories in a project of the home.

    [] if the client cannot keep them in another folder.
    """
    if "memories" not in client.hooks:
        return []
    folder = str(table.auto_memory_folder(home))

    def is_ours(value: Any) -> bool:
        """Say no: the person may have set the same folder. Only our record of the edit tells."""
        return False

    return [Edit("native memory", (), client.hooks["memories"], folder, is_ours)]


def _change_files(
    installer: Installer,
    adding: Sequence[Target],
    removing: Sequence[Target],
    *,
    replace: bool,
    dry_run: bool,
) -> dict[str, Any]:
    """Change the files of one client, and return the keys of its row.

    All changes are tried first, so that no file is written if one of them is refused. If only a
    file of hooks cannot be changed, it is skipped, and the row names it in `hooks_left`.

    adding: files that get our entry or our hooks.
    removing: files that lose them.
    replace: whether to replace an entry of our name that is not ours.
    dry_run: whether only to try the changes.
    """
    make_changes = partial(_make_changes, installer, adding, removing, replace=replace)
    try:
        # The trial, which writes no file
        changes = make_changes(dry_run=True)
        if not dry_run:
            changes = make_changes(dry_run=False)
    except _Refused as refused:
        target = refused.target
        return {
            "result": "refused",
            "file": str(target.file),
            "reason": str(refused),
            "snippet": snippet(target.format, target.edits) if adding else None,
        }
    row = _changes_document(changes.of_files, bool(adding), dry_run)
    if changes.skipped_because is not None:
        row["hooks_left"] = changes.skipped_because
    return row


class _Refused(Exception):
    """A file that must be changed cannot be changed.

    target: the file.
    """

    def __init__(self, target: Target, problem: str):
        super().__init__(problem)
        self.target = target


@dataclass(frozen=True)
class _Changes:
    """The changes of one client's files.

    of_files: each changed file, with its text before and after.
    skipped_because: why a file of hooks was skipped. None if none was skipped.
    """

    of_files: Sequence[tuple[Target, FileChange]]
    skipped_because: str | None


def _make_changes(
    installer: Installer,
    adding: Sequence[Target],
    removing: Sequence[Target],
    *,
    replace: bool,
    dry_run: bool,
) -> _Changes:
    """Change the files of one client. Raises _Refused.

    adding: files that get our entry or our hooks.
    removing: files that lose them.
    replace: whether to replace an entry of our name that is not ours.
    dry_run: whether only to try the changes.
    """
    steps = [(target, installer.add) for target in adding]
    steps += [(target, installer.remove) for target in removing]
    changes = []
    problem = None
    for target, change_file in steps:
        try:
            changes.append((target, change_file(target, replace=replace, dry_run=dry_run)))
        except Unsure as error:
            problem = f"{target.file} was not changed: {error}"
            if not _may_be_skipped(target, installer, adding, removing):
                raise _Refused(target, problem) from None
    return _Changes(changes, problem)


def _may_be_skipped(
    target: Target, installer: Installer, adding: Sequence[Target], removing: Sequence[Target]
) -> bool:
    """Whether the server can be connected, or removed, without a change of this file.

    installer: knows which files we wrote.
    adding: files that would get our entry or our hooks.
    removing: files that would lose them.
    """
    if adding:
        # Old entries and hooks may stay. But each file that gets something new is needed.
        is_needed = target in adding
    else:
        # The first file has the entry of the server. A file with hooks of ours must lose them, too,
        # or they would call a program that may be gone.
        has_server_entry = target is removing[0]
        is_needed = has_server_entry or installer.knows(target)
    return not is_needed


def _changes_document(
    changes: Sequence[tuple[Target, FileChange]], is_adding: bool, dry_run: bool
) -> dict[str, Any]:
    """Return the JSON keys of a client that say how its files were changed.

    changes: each file with its text before and after, which may be the same.
    is_adding: whether entries are added, and not removed.
    dry_run: whether the changes were only tried.
    """
    changed = [(target, change) for target, change in changes if change.old != change.new]
    # If nothing changed, the row still names the files that were looked at.
    files_to_name = changed or changes
    document = {
        "result": _result(bool(changed), is_adding, dry_run),
        "file": ", ".join(str(target.file) for target, _ in files_to_name),
        "backup": [str(change.backup) for _, change in changed if change.backup is not None],
    }
    if dry_run and changed:
        document["diff"] = "".join(_diff_of(str(target.file), change) for target, change in changed)
    return document


def _result(has_changes: bool, is_adding: bool, dry_run: bool) -> str:
    """Return the word for the result of changing a client's files.

    has_changes: whether any file changes.
    is_adding: whether entries are added, and not removed.
    dry_run: whether the changes were only tried.
    """
    if not has_changes:
        return "unchanged"
    if dry_run:
        return "planned"
    return "written" if is_adding else "removed"


def _diff_of(file: str, change: FileChange) -> str:
    """Return the change of one file as a unified diff."""
    old = (change.old or "").splitlines(keepends=True)
    new = (change.new or "").splitlines(keepends=True)
    diff = ""
    for line in unified_diff(old, new, file, file):
        diff += line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
    return diff


def _result_line(client: Client, row: dict[str, Any]) -> str:
    """Return the lines that tell a person the result for a client."""
    if row["result"] == "printed":
        heading = f"# {row['file']}\n" if row["file"] else ""
        lines = [heading + row["snippet"].rstrip("\n")]
        if "hooks" in row:
            lines.append(f"# {row['hooks']['file']}\n{row['hooks']['snippet']}".rstrip("\n"))
        return "\n".join(lines)

    # The first line says what happened, or why nothing could be done.
    if row.get("reason"):
        headline = f"{client.title}: {row['reason']}"
    elif row.get("file"):
        headline = f"{client.title}: {row['result']} ({row['file']})"
    else:
        headline = f"{client.title}: {row['result']}"
    parts = [headline]
    parts += [f"  copy of what was there: {backup}" for backup in row.get("backup", ())]
    if row.get("hooks_left"):
        parts.append(f"  {row['hooks_left']}")
    if row.get("snippet"):
        parts.append(f"  Paste this into {row['file']}:\n{row['snippet']}".rstrip("\n"))
    if row.get("hooks"):
        hooks = row["hooks"]
        parts.append(f"  And this into {hooks['file']}:\n{hooks['snippet']}".rstrip("\n"))
    if row.get("diff"):
        parts.append(row["diff"].rstrip("\n"))
    if row["result"] == "written":
        parts += [f"  {remark}" for remark in _remarks_on(client, row["file"])]
    return "\n".join(parts)


def _remarks_on(client: Client, files: str) -> list[str]:
    """Return the remarks in the table of clients that a user should read after the installation.

    client: the client whose files were written.
    files: the paths of these files, separated by commas.
    """
    remarks = [client.note]
    if str(client.hook_file(os.environ)) in files:
        remarks.append(client.hooks.get("note", ""))
    return [remark for remark in remarks if remark]


def _plugin_is_on(client: Client) -> bool:
    """Whether the client has our plugin switched on.

    A setting in a file of the client tells: for Claude Code, the key `memoranda@memoranda` of
    `enabledPlugins` in `settings.json`. If the file cannot be understood, the plugin counts as
    switched off.
    """
    plugin = client.plugin
    if not plugin:
        return False
    *path, name = plugin["key"]
    # What the file has if the plugin is switched on.
    switched_on = Edit("plugin", tuple(path), name, True, bool)
    file = table.expand(plugin["file"], os.environ)
    try:
        (value_in_file,) = present(Target(client, file, plugin["format"], [switched_on]))
    except Unsure:
        return False
    return bool(value_in_file == switched_on.value)


def _show(call: Invocation, server: Server, *, is_for_project: bool) -> int:
    """Print the table of clients, and whether each one is connected. Returns exit status 0.

    server: the server that the entry of a client should start.
    is_for_project: whether to look at the files of the project in the working folder.
    """
    installer = Installer(call.settings.home)
    rows = []
    lines = [table_row(_STATUS_ROW, "client", "found", "entry", "hooks", "file").rstrip()]
    for client in table.clients().values():
        if is_for_project and not client.project:
            continue
        row = _state_of(client, server, installer, is_for_project=is_for_project)
        rows.append(row)
        lines.append(_state_line(row))
    lines.append("\nConnect: memory install CLIENT, or memory install --all. Nothing was changed.")
    call.answer("\n".join(lines), clients=rows, server=None)
    return 0


def _state_of(
    client: Client, server: Server, installer: Installer, *, is_for_project: bool
) -> dict[str, Any]:
    """Return the row of a client in the table: whether and how the client is connected.

    server: the server that the entry should start.
    installer: knows which values we wrote.
    is_for_project: whether the files of the project in the working folder are meant.
    """
    file = client.place(os.environ, Path.cwd() if is_for_project else None)
    assert file is not None
    entry = "none"
    # None means unknown, or not looked for.
    version = None
    hooks = None
    try:
        target = Target(client, file, client.format, [table.entry(client, server)])
        entry, version = _entry_of(target, installer)
        if not is_for_project:
            hooks = _has_hooks(client)
    except MemorandaError as error:
        entry = f"unreadable: {error}"
    # A plugin has the server and the hooks, so the client's own file needs no entry.
    if not is_for_project and entry == "none" and _plugin_is_on(client):
        entry = "plugin"
        hooks = True
    return {
        "client": client.id,
        "title": client.title,
        "found": client.is_here(os.environ),
        "entry": entry,
        "version": version,
        "hooks": hooks,
        "file": str(file),
    }


def _entry_of(target: Target, installer: Installer) -> tuple[str, str | None]:
    """Return (state of a client's entry, version of the program that the entry starts).

    The version is None if it is unknown. The state is a word for the table:

    - `none`: the file has no entry.
    - `address`: we wrote the entry, which connects to a server at an address.
    - `not ours`: another program has an entry of this name.
    - `broken command`: the entry starts our server, but the program does not run.
    - `ok`: the entry is the one that `install` would write.
    - `other command`: the entry starts our server in another way.

    target: the client's file, with the entry that it should have.
    installer: knows which values we wrote.

    Raises MemorandaError.
    """
    (value,) = present(target)
    if value is None:
        return "none", None
    argv = table.command_of(value)
    if not table.is_our_server(value):
        has_only_address = not argv
        if has_only_address and installer.wrote(target, value):
            return "address", None
        return "not ours", None
    # In the command line, the program comes before `mcp`, and the options of the server after it.
    program = argv[: argv.index("mcp")] if "mcp" in argv else argv[:1]
    version = _version(*program)
    if not version:
        return "broken command", version
    if value == target.edits[0].value:
        return "ok", version
    return "other command", version


def _has_hooks(client: Client) -> bool | None:
    """Whether all our hooks are in a client's file. None if the client has no hooks.

    Raises MemorandaError.
    """
    hook_file = client.hook_file(os.environ)
    if hook_file is None:
        return None
    # The other edits set values that the user may have set before us, so they prove nothing.
    hook_edits = [edit for edit in table.hooks(client, ["memory"]) if not edit.keeps_present]
    values_in_file = present(Target(client, hook_file, "json", hook_edits))
    return all(value is not None for value in values_in_file)


def _state_line(row: dict[str, Any]) -> str:
    """Write the row of one client in the table as a line for a person."""
    has_hooks = {True: "yes", False: "no", None: "-"}[row["hooks"]]
    state = row["entry"]
    if row["version"]:
        state += f" {row['version']}"
    is_found = "no"
    place = ""
    if row["found"]:
        is_found = "yes"
        place = re.sub(f"^{re.escape(os.path.expanduser('~'))}(?=/)", "~", row["file"])
    return table_row(_STATUS_ROW, row["client"], is_found, state, has_hooks, place).rstrip()


@cache
def _version(*program: str) -> str | None:
    """Return the version of the program that an entry starts. None if it does not start."""
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
    """Start the server as a client would, and ask for its tools.

    Returns the keys `command`, `tools` (their number), `seconds` and `error`. The two in the middle
    are None if the server did not answer, and `error` is None if it did.
    """
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
        replies = [json.loads(line) for line in process.stdout.splitlines()]
        replies_by_id = {reply.get("id"): reply for reply in replies}
        # 2 is the id of the request for the list of tools.
        tool_count = len(replies_by_id[2]["result"]["tools"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, AttributeError) as error:
        return answer | {
            "error": f"the server did not answer ({type(error).__name__}); try: {' '.join(argv)}"
        }
    return answer | {"tools": tool_count, "seconds": round(time.monotonic() - began, 2)}
