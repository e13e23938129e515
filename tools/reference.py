"""Writes docs/cli.md, docs/tools.md and docs/memory.1 from the code: `python tools/reference.py`.

For developers; no part of the package. A test checks that the pages are what this writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from memoranda import config
from memoranda.cli import command_group
from memoranda.cli.syntax import Command, Group, PositionalWords, manual_page
from memoranda.clients.install import snippet
from memoranda.clients.table import Server, clients
from memoranda.clients.table import entry as client_entry
from memoranda.documents import MEMORY_KEYS
from memoranda.faces import DEFAULT_TOOLSETS, TOOLSETS, registry
from memoranda.faces.tool import Tool, Toolset
from memoranda.note.model import FURTHER

DOCS = Path(__file__).parents[1] / "docs"

CLI_HEAD = """# The `memory` command

This page is made from the code by `tools/reference.py`; how things are meant is told by the transcripts in
`tests/sessions`, which are checked too.

Global options stand before or after the name of the command. An id may be cut to any beginning of at least
4 characters that only one memory has. Exit status: 0 done (also when nothing was found), 1 the operation
failed, 2 wrong usage, 130 interrupted; an error is one line on stderr, `Error: …`, near misses and the valid
values may stand below it. `add`, `ls`, `show`, `rm` are other names of `write`, `list`, `read`, `delete`.

On a terminal tables are as wide as it is, in colour unless `NO_COLOR` is set, and what is longer than the screen
goes through `PAGER`; in a pipe nothing of this happens.

With `--json` stdout is one document, whose first key is `"schema": "<command>/1"`; after a failure it is
`{"schema", "error": {"code", "message"}}`. A command that was given several ids has the documents in a list under
`results`. Times in text are local, in JSON UTC with `Z`.
"""

TOOLS_HEAD = """# The tools

This page is made from the code by `tools/reference.py`. Every transport offers these tools: `memory mcp`
(by default the toolsets {defaults}; `--tools` chooses), and `memory call TOOL JSON` for a single call.
"""


CLIENTS_HEAD = """# Clients

This page is made by `tools/reference.py` from the table that `memory install` works with.

    memory install                    # who is here, who is connected; nothing is changed
    memory install --all              # connects every client found; or name them: memory install codex zed
    memory install --dry-run --all    # the differences it would make
    memory uninstall --all

**What changes.** One entry, and the hooks (`docs/hooks.md`; `--no-hooks` leaves them out). Comments, order, line ends,
trailing commas, mode and symlinks of a file stay; `memory uninstall` leaves the bytes that were there before. A file
that is not understood is not changed: you are told why, and what to paste. An entry `memory` that is not ours stays,
unless you say `--replace`. Entries and hooks of an earlier checkout, under the name the project had then, are replaced,
and `memory uninstall` takes out both.

What a file was before is kept in `.memoranda/install/` of the memory, the
last 5 copies of each client; `cp` brings one back, and `memory erase` takes those that quote what it erases. If
another program changes the file meanwhile, its change is kept. At the end the command that was written is started
once and asked for its tools.

**What is written.** The full path of `memory`, because programs with windows do not have your shell's PATH; in the
files of a project (`--project`), which others check out, `memory` alone. Another home or configuration (`MEMORY_HOME`,
`--home`, `--config`, `--agent`) becomes part of the command. `--http URL` writes an address instead, and `--token-env
NAME` the name of the variable with its token: a token itself is never written.

**More.** `memory install --native-memory` lets Claude Code write its own memories (`autoMemoryDirectory`) into project
`claude memory`, for every agent to find; what it wrote before becomes projects with `memory project add --native`.
`memory install --agents-md` puts a paragraph about the memory between marks into `AGENTS.md` of the working folder,
for agents without hooks. `memory uninstall claude-code` and `memory uninstall --agents-md` take them out again.

**The daemon.** The first `memory mcp` or hook starts one process for the home, `memory serve`, where none runs; the
process of each client is then small and starts in a tenth of a second, reminders fire, and the inbox is sorted. There
is one for each home. It ends half an hour after its last client and writes its log to `.memoranda/daemon.log`.

`memory status` shows it, `memory serve --stop` ends it (the next client starts another one), and `memory serve`, when
you start it yourself, takes its place. `memory config set daemon.autostart false`, or `memory mcp --no-daemon` for one
client, does without. No client starts one where `CI` is set, where the home cannot be written, or for notes in
PostgreSQL. A daemon that is stopped or killed holds up nobody for more than five seconds: the client then serves
itself.

**Gemini.** The tools served by default have schemas that Gemini takes. Those of `graph` and `kv` say
`additionalProperties`, and a client that hands a schema to Gemini unchanged gets `Unknown name
"additionalProperties"` for all its tools. Gemini CLI is not such a client; for one that is, `memory mcp --tools kv
--plain-schemas` leaves the keyword out. Arguments are checked as before.

**Clients without hooks** are told your profile and due reminders as they connect, at the end of the server's
instructions ([what a session is told](hooks.md#what-a-session-is-told)).

**Plugins.** For Claude Code, Codex and Copilot CLI, `plugin/` of the repository is a plugin with server, hooks and a
skill; for Gemini CLI `plugin/gemini` is an extension, for Claude Desktop `plugin/mcpb` a bundle
([how](../plugin/README.md)). Use a plugin or `memory install`, not both; Claude Code and Codex with the
plugin are left alone.

`checked` below: *run*, the program itself read what `memory install` wrote; *read*, its documentation says so.
"""


def clients_page() -> str:
    """docs/clients.md: where each client keeps its servers, and what is written there."""
    rows = [
        "| client | `memory install` | its file | in a project | hooks | checked |\n|---|---|---|---|---|---|\n"
    ]
    for client in clients().values():
        hooks = f"`{client.hooks['file']}`" if client.hooks else ""
        cells = (
            client.title,
            f"`{client.id}`",
            _places(client.file),
            _places(client.project),
            hooks,
            client.checked,
        )
        rows.append(f"| {' | '.join(cells)} |\n")
    parts = [CLIENTS_HEAD, "".join(rows), "## By hand\n"]
    server = Server("memory", ("memory", "mcp"))
    clients_by_text: dict[str, list[Any]] = {}
    for client in clients().values():
        text = snippet(client.format, [client_entry(client, server)])
        kind = client.format.partition("-")[0].replace("yaml", "yml")
        clients_by_text.setdefault(f"```{kind}\n{text}```\n", []).append(client)
    for text, same in clients_by_text.items():
        parts.append(f"**{', '.join(same_client.title for same_client in same)}**\n\n{text}")
    parts += [
        f"{client.title}: {note}\n"
        for client in clients().values()
        for note in (client.note, client.hooks.get("note"))
        if note
    ]
    parts.append(
        "Claude Code by its own command: `claude mcp add --scope user memory -- memory mcp`.\n"
    )
    return "\n".join(parts)


def _places(value: Any) -> str:
    if isinstance(value, dict):
        return "<br>".join(f"{system}: {_places(place)}" for system, place in value.items())
    return " or ".join(f"`{path}`" for path in ([value] if isinstance(value, str) else value or []))


def cli_page() -> str:
    """docs/cli.md: every command with its options and JSON keys."""
    group = command_group()
    context = click.Context(group, info_name="memory", **group.context_settings)
    parts = [CLI_HEAD, "## Global options\n", _options(context, group.globals), _memory_object()]
    parts += _commands(group, context)
    return "\n".join(parts)


def _commands(group: Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, **command.context_settings)
        if isinstance(command, Group):
            yield f"## {inner.command_path}\n\n{_help(command)}\n"
            yield from _commands(command, inner)
        elif isinstance(command, Command):
            yield _command(command, inner)


def _command(command: Command, context: click.Context) -> str:
    words = next(param for param in command.params if isinstance(param, PositionalWords))
    options = [
        param
        for param in command.params
        if isinstance(param, click.Option) and param not in command.globals
    ]
    usage = " ".join([context.command_path, *(["[OPTIONS]"] if options else []), *words.names])
    parts = [f"## {context.command_path}\n", f"    {usage}\n", _help(command) + "\n"]
    if options:
        parts.append(_options(context, options))
    if command.example:
        parts.append(f"Example: `{command.example}`\n")
    if command.takes_now:
        parts.append("Takes `--now`.\n")
    if command.keys:
        parts.append(f"JSON: {', '.join(_key(*pair) for pair in command.keys.items())}.\n")
    return "\n".join(parts)


def _key(name: str, inner: Sequence[str]) -> str:
    return f"`{name}`" + (f" ({', '.join(f'`{key}`' for key in inner)})" if inner else "")


def _help(command: click.Command) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))


def _options(context: click.Context, options: Sequence[click.Option]) -> str:
    rows = [record for option in options if (record := option.get_help_record(context))]
    return "| option | |\n|---|---|\n" + "".join(
        f"| `{name}` | {_cell(text)} |\n" for name, text in rows
    )


def _memory_object() -> str:
    fixed, further = (", ".join(f"`{key}`" for key in keys) for keys in (MEMORY_KEYS, FURTHER))
    return f"A memory in JSON has the keys {fixed}, and then those of {further} that are set.\n"


def tools_page() -> str:
    """docs/tools.md: every tool of every toolset with its parameters."""
    settings = config.Settings(Path("home"), Path("home/config.yaml"))
    parts = [
        TOOLS_HEAD.format(
            defaults=" and ".join(f"`{default_toolset}`" for default_toolset in DEFAULT_TOOLSETS)
        )
    ]
    for name in TOOLSETS:
        parts += _toolset(registry([name], settings).toolsets[0])
    return "\n".join(parts)


def _toolset(toolset: Toolset) -> Iterator[str]:
    yield f"## Toolset `{toolset.name}`\n"
    for tool in toolset.tools:
        yield _tool(tool)
    for prompt in toolset.prompts:
        names = ", ".join(
            f"`{name}`" + ("" if required else "?") for name, _, required in prompt.arguments
        )
        yield f"Prompt `{prompt.name}`({names}): {_line(prompt.description)}\n"
    for template in toolset.templates:
        yield f"Resource `{template.uri}` ({template.mime}): {_line(template.description)}\n"


def _tool(tool: Tool) -> str:
    required = tool.schema.get("required", ())
    properties = tool.schema.get("properties", {})
    rows = [_parameter(name, schema, name in required) for name, schema in properties.items()]
    hints = ", ".join(name for name, value in tool.annotations.items() if value)
    parts = [f"### {tool.name}\n", tool.description.strip() + "\n"]
    if rows:
        parts.append("| parameter | type | default | |\n|---|---|---|---|\n" + "".join(rows))
    if hints:
        parts.append(f"Hints: {hints}.\n")
    return "\n".join(parts)


def _parameter(name: str, schema: dict[str, Any], required: bool) -> str:
    kind = schema.get("type", "any")
    if "enum" in schema:
        kind = " ".join(f"`{value}`" for value in schema["enum"])
    default = "required" if required else ""
    if schema.get("default") is not None:
        default = f"`{schema['default']!r}`"
    return f"| `{name}` | {kind} | {default} | {_cell(schema.get('description', ''))} |\n"


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(text.split())


def manual() -> str:
    """docs/memory.1: the manual page, installed with the package."""
    group = command_group()
    return manual_page(click.Context(group, info_name="memory", **group.context_settings))


PAGES = {"cli.md": cli_page, "clients.md": clients_page, "tools.md": tools_page, "memory.1": manual}


def main() -> None:
    for name, text in PAGES.items():
        (DOCS / name).write_text(text(), "utf-8")


if __name__ == "__main__":
    main()
