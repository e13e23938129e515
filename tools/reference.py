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
HEADS = Path(__file__).parent / "page_heads"
"""The texts in front of what the code gives, by the name of the page."""


def head(name: str) -> str:
    """The text at the head of a page: "cli", "tools" or "clients"."""
    return (HEADS / f"{name}.md").read_text(encoding="utf-8")


def clients_page() -> str:
    """docs/clients.md: where each client keeps its servers, and what is written there."""
    parts = [head("clients"), _table_of_clients(), "## By hand\n", *_entries_by_hand()]
    for client in clients().values():
        notes = filter(None, (client.note, client.hooks.get("note")))
        parts += [f"{client.title}: {note}\n" for note in notes]
    parts.append(
        "Claude Code by its own command: `claude mcp add --scope user memory -- memory mcp`.\n"
    )
    return "\n".join(parts)


def _table_of_clients() -> str:
    columns = "| client | `memory install` | its file | in a project | hooks | checked |\n"
    rows = [columns, "|---|---|---|---|---|---|\n"]
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
        row = " | ".join(cells)
        rows.append(f"| {row} |\n")
    return "".join(rows)


def _entries_by_hand() -> Iterator[str]:
    """The text to put into the files of clients, once for all clients that take the same."""
    server = Server("memory", ("memory", "mcp"))
    titles_by_text: dict[str, list[str]] = {}
    for client in clients().values():
        entry = client_entry(client, server)
        text = snippet(client.format, [entry])
        kind = client.format.partition("-")[0].replace("yaml", "yml")
        titles = titles_by_text.setdefault(f"```{kind}\n{text}```\n", [])
        titles.append(client.title)
    for text, titles in titles_by_text.items():
        titles_listed = ", ".join(titles)
        yield f"**{titles_listed}**\n\n{text}"


def _places(value: Any) -> str:
    if not value:
        return ""
    if isinstance(value, str):
        return f"`{value}`"
    if isinstance(value, dict):
        return "<br>".join(f"{system}: {_places(place)}" for system, place in value.items())
    return " or ".join(f"`{path}`" for path in value)


def cli_page() -> str:
    """docs/cli.md: every command with its options and JSON keys."""
    group = command_group()
    context = click.Context(group, info_name="memory", **group.context_settings)
    parts = [
        head("cli"),
        "## Global options\n",
        _options(context, group.global_options),
        _memory_object(),
    ]
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
    options = []
    for param in command.params:
        if isinstance(param, click.Option) and param not in command.global_options:
            options.append(param)
    usage_words = [context.command_path]
    if options:
        usage_words.append("[OPTIONS]")
    usage = " ".join([*usage_words, *words.names])
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
    lines = ["| option | |\n|---|---|\n"]
    for option in options:
        record = option.get_help_record(context)
        if record is None:
            continue
        name, text = record
        lines.append(f"| `{name}` | {_cell(text)} |\n")
    return "".join(lines)


def _memory_object() -> str:
    fixed = ", ".join(f"`{key}`" for key in MEMORY_KEYS)
    further = ", ".join(f"`{key}`" for key in FURTHER)
    return f"A memory in JSON has the keys {fixed}, and then those of {further} that are set.\n"


def tools_page() -> str:
    """docs/tools.md: every tool of every toolset with its parameters."""
    settings = config.Settings(Path("home"), Path("home/config.yaml"))
    parts = [
        head("tools").format(
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
        names = []
        for name, _, is_required in prompt.arguments:
            names.append(f"`{name}`" if is_required else f"`{name}`?")
        arguments = ", ".join(names)
        yield f"Prompt `{prompt.name}`({arguments}): {_line(prompt.description)}\n"
    for template in toolset.templates:
        yield f"Resource `{template.uri}` ({template.mime}): {_line(template.description)}\n"


def _tool(tool: Tool) -> str:
    required = tool.schema.get("required", ())
    properties = tool.schema.get("properties", {})
    rows = []
    for name, schema in properties.items():
        rows.append(_parameter(name, schema, name in required))
    hints = ", ".join(name for name, value in tool.annotations.items() if value)
    parts = [f"### {tool.name}\n", tool.description.strip() + "\n"]
    if rows:
        columns = "| parameter | type | default | |\n|---|---|---|---|\n"
        parts.append(columns + "".join(rows))
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
