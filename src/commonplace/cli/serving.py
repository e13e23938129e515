"""`mcp` and `call`: the tools of the faces, over MCP or once (contract 001, 16)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli import output, presets
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Names, Usage, command, text_from
from commonplace.query import split_list

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory
    from commonplace.engine.entities import Graph
    from commonplace.faces.kv import JsonFolder
    from commonplace.faces.tool import Registry

TOOLSET_NAMES = Names("list", lambda: _toolsets())
PRESET_NAMES = Names("preset", lambda: tuple(presets.PRESETS))


def _toolsets() -> tuple[str, ...]:
    from commonplace.faces import TOOLSETS

    return TOOLSETS


@command("mcp")
@click.option("--tools", type=TOOLSET_NAMES, help="Toolsets to serve, separated by commas [memory,notes]; or all.")
@click.option(
    "--as", "as_", type=PRESET_NAMES,
    help="Stand in for another server: anthropic, basic-memory, server-memory, thoughtbox, memory-bank, agent-memory.",
)  # fmt: skip
@click.option("--graph-file", metavar="FILE", help="The knowledge graph's file [the notes of project graph].")
def mcp(call: Invocation, *, tools: str | None, as_: str | None, graph_file: str | None) -> int:
    """Serve the tools over MCP on stdin and stdout, until the client closes stdin."""
    if tools is not None and as_ is not None:
        raise Usage("--tools and --as exclude each other", click.get_current_context())
    from commonplace import __version__
    from commonplace.faces import DEFAULT_TOOLSETS, registry
    from commonplace.faces.hooks import Hooks
    from commonplace.serve.stdio import run_stdio

    chosen = presets.preset(as_) if as_ else presets.Preset(_names(tools) or DEFAULT_TOOLSETS)
    settings, agent = call.settings(), call.caller
    if chosen.default_project is not None:
        settings = replace(settings, default_project=chosen.default_project)

    file = None
    if "graph" in chosen.tools or "all" in chosen.tools:
        file = presets.graph_file(graph_file, chosen.like, settings.graph_file)
    more = presets.graph_project(file, {**settings.projects, **chosen.projects})
    if settings.bank_debug:
        _log_to_stderr()

    def opened() -> Memory:
        from commonplace.engine import open_memory

        return open_memory(agent=agent, projects={**chosen.projects, **more}, config=settings, face="mcp")

    with _entries(chosen.json_folder or presets.json_folder()) as entries:
        served = registry(chosen.tools, settings, Hooks.configured(), chosen.like, entries, _graphs(file))
        return run_stdio(opened, served, name=chosen.name, version=__version__, agent=agent, clients=settings.agents)


@contextmanager
def _entries(folder: str | None) -> Iterator[JsonFolder | None]:
    """Where key-value entries are, when that is a folder of JSON files; closed at the end."""
    if folder is None:
        yield None
        return
    from commonplace.faces.kv import JsonFolder

    with closing(JsonFolder(folder)) as entries:
        yield entries


def _graphs(file: Path | None) -> Callable[[Memory, str], Graph] | None:
    """Where graphs are kept, when that of project `graph` is a file."""
    if file is None:
        return None
    from commonplace.engine.graph import opener

    return opener(file)


def _log_to_stderr() -> None:
    """Our own debug lines too; those of other packages from warnings on."""
    import logging

    logging.basicConfig()
    logging.getLogger("commonplace").setLevel(logging.DEBUG)


def _names(tools: str | None) -> tuple[str, ...]:
    return tuple(split_list(tools))


def tool_names(context: click.Context, beginning: str, given: Sequence[str]) -> list[str]:
    """Tool names for the shell to offer."""
    from commonplace.errors import CommonplaceError

    if given:
        return []
    invocation = context.find_object(Invocation) or Invocation()
    try:
        settings = invocation.settings()
        wanted = _names(context.params.get("tools")) or _toolsets()
        return list(dict.fromkeys(name for each in wanted for name in _registry(each, settings).tools))
    except CommonplaceError:
        return []


def _registry(toolset: str, settings: Settings) -> Registry:
    from commonplace.faces import registry

    return registry([toolset], settings)


@command("call", "TOOL", "[JSON]", keys=("tool", "is_error", "text", "structured"), complete=tool_names)
@click.option("--tools", type=TOOLSET_NAMES, help="Look for TOOL in these toolsets only.")
def call(run: Invocation, tool: str, given: str = "{}", *, tools: str | None) -> int:
    """Run one tool of any toolset with the arguments JSON and print its reply.

    JSON is an object; `-` reads it from stdin.
    """
    from commonplace.faces import registry
    from commonplace.faces.hooks import Hooks

    settings = run.settings()
    toolset = _toolset_of(tool, _names(tools) or _toolsets(), settings)
    file = presets.graph_file(None, None, settings.graph_file) if toolset == "graph" else None
    folder = presets.json_folder() if toolset == "kv" else None
    arguments = _arguments(given)
    with run.memory(presets.graph_project(file, settings.projects)) as memory, _entries(folder) as entries:
        found = registry([toolset], settings, Hooks.configured(), entries=entries, graphs=_graphs(file))
        reply = found.call(memory, tool, arguments)
    if run.json:
        run.document(tool=tool, is_error=reply.is_error, text=reply.text, structured=reply.data)
    if reply.is_error:
        output.failure(reply.text)
        return 1
    if not run.json:
        output.text(reply.text)
    return 0


def _toolset_of(tool: str, names: Sequence[str], settings: Settings) -> str:
    """The one toolset that has `tool`. Raises Failure when none has it, or several."""
    from commonplace.faces import ALL

    wanted = ALL if "all" in names else names
    having = [name for name in wanted if tool in _registry(name, settings).tools]
    if not having:
        raise Failure(f"tool not found: {tool}", "not_found")
    if len(having) > 1:
        raise Failure(f"tool {tool} is in several toolsets: {', '.join(having)}; choose one with --tools")
    return having[0]


def _arguments(text: str) -> Any:
    """The tool's arguments. Raises Failure when `text` is no JSON."""
    try:
        return json.loads(text_from((text,)))
    except (ValueError, RecursionError) as error:
        raise Failure(f"parse arguments: {error}") from None
