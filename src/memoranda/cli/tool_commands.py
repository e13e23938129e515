"""The commands for agents and programs.

`mcp` and `call` (contract 001, 16), `agent`, which runs tool calls from stdin (contract 001, 14),
and `kv get | set | del | list`, key-value entries as bare values (contract 004).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memoranda.cli import output, presets
from memoranda.cli.invocation import Invocation, input_of, text_from
from memoranda.cli.output import Failure
from memoranda.cli.syntax import Names, Number, Text, Usage, command, flag, group, option
from memoranda.errors import InvalidInput, near
from memoranda.faces import PRESETS
from memoranda.note.entry import DEFAULT_NAMESPACE, ENTRY_KEYS
from memoranda.query import split_list

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.engine.entries import Entries
    from memoranda.engine.graph import Graph
    from memoranda.faces.agent.session import Batch
    from memoranda.faces.kv import JsonFolder
    from memoranda.faces.tool import Registry


def _toolsets(_: object) -> tuple[str, ...]:
    """Return the names of all toolsets, for the completion of a shell."""
    from memoranda.faces import TOOLSETS

    return TOOLSETS


_TOOLSET_NAMES = Names("list", _toolsets)
_CALL_EXAMPLE = 'memory call read_note \'{"identifier": "notes/Plan"}\''
_FORM = Names("json", lambda _: ("json",))
# A limit that no home reaches.
_ALL_ENTRIES = 1 << 30
_PRESETS_HELP = f"Stand in for another server: {', '.join(PRESETS)}."


@command("mcp", example="memory mcp --tools memory,notes,graph")
@option(
    "--tools",
    type=_TOOLSET_NAMES,
    help="Toolsets to serve, separated by commas [memory,notes]; or all.",
)
@option("--as", "as_", type=Names("preset", lambda _: PRESETS), help=_PRESETS_HELP)
@option(
    "--project", metavar="NAME", help="With --as basic-memory: every call is about this project."
)
@option(
    "--graph-file",
    metavar="FILE",
    help="The file of the knowledge graph [the notes of project graph].",
)
@flag("--plain-schemas", "Leave out parts of the tools' schemas that Gemini refuses.")
@flag("--no-daemon", "Serve this client in a separate process, and neither start nor use a daemon.")
def mcp(
    call: Invocation,
    *,
    tools: Text,
    as_: Text,
    project: Text,
    graph_file: Text,
    plain_schemas: bool,
    no_daemon: bool,
) -> int:
    """Serve the tools over MCP on stdin and stdout, until the client closes stdin.

    With --agent NAME before the command, the caller is that agent. Otherwise it is the agent that the
    client says it is, which is a filter and not a boundary (docs/trust.md). The daemon of this home
    serves this client, too. If no daemon runs, one is started (docs/clients.md).
    """
    if sys.stdin is None or sys.stdout is None:
        raise Failure("memory mcp speaks over stdin and stdout, and one of them is closed", "usage")
    if project is not None and as_ != "basic-memory":
        raise Usage("--project goes with --as basic-memory only")
    if sys.stdin.isatty():
        output.notice(
            "This waits for a program that speaks MCP, up to Ctrl-D. "
            "To connect yours: memory install"
        )
    preset = _chosen_preset(as_, project, split_list(tools))
    settings = call.settings
    if preset.default_project is not None:
        settings = replace(settings, default_project=preset.default_project)
    file = _graph_file_to_serve(preset, settings, graph_file)
    # Only this server has these projects.
    own_projects: dict[str, str | os.PathLike[str]] = {**preset.projects}
    own_projects |= presets.graph_project(file, {**settings.projects, **preset.projects})
    json_folder = preset.json_folder or presets.json_folder()

    # The daemon serves the home as it is configured. If an option or a preset asks for something
    # else, this process must serve the client.
    differs_from_home = any(
        (own_projects, file, json_folder, preset.manners, preset.default_project)
    )
    # Debug messages of a bank must come from this process.
    may_use_daemon = not (differs_from_home or settings.bank_debug or no_daemon)
    if may_use_daemon:
        # If a daemon serves this client, this does not return.
        _pass_to_daemon(call, settings, preset, plain_schemas=plain_schemas)
    if settings.bank_debug:
        _log_everything()
    with presets.json_entries(json_folder) as entries:
        served = _registry_of(preset, settings, entries, file)
        if plain_schemas:
            served = served.with_plain_schemas()
        return _serve_here(call, settings, own_projects, served, preset.name)


def _graph_file_to_serve(
    preset: presets.Preset, settings: Settings, named_file: Text
) -> Path | None:
    """Return the file of the knowledge graph. None if no graph is served, or if it is in notes.

    preset: the toolsets to serve.
    named_file: the file on the command line; None if none is named.
    """
    if "graph" in preset.tools or "all" in preset.tools:
        return presets.graph_file(settings.graph_file, named_file, preset.like)
    return None


def _registry_of(
    preset: presets.Preset, settings: Settings, entries: JsonFolder | None, file: Path | None
) -> Registry:
    """Return the tools of a preset, ready to be called.

    entries: the folder of JSON files with the key-value entries; None if they are notes.
    file: the file of the knowledge graph; None if it is in notes.
    """
    from memoranda.faces import registry
    from memoranda.faces.tool import Hooks

    return registry(
        preset.tools,
        settings,
        hooks=Hooks.configured(),
        like=preset.like,
        entries=entries,
        graphs=_graph_opener(file),
        manners=preset.manners,
    )


def _serve_here(
    call: Invocation,
    settings: Settings,
    projects: Mapping[str, str | os.PathLike[str]],
    served: Registry,
    name: str,
) -> int:
    """Serve tools from this process until the client closes stdin. Return the exit status.

    projects: the folders and files of projects that only this server has, by name.
    served: the tools.
    name: the name of the server, as the client sees it.
    """
    from memoranda import __version__
    from memoranda.serve.stdio import run_stdio

    def open_memory() -> MemorySession:
        """Open the home once the client has said who it is."""
        from memoranda.engine import open_session

        return open_session(
            agent=call.caller, projects=projects, config=settings, face="mcp", serving=True
        )

    return run_stdio(
        open_memory,
        served,
        name=name,
        version=__version__,
        agent=call.caller,
        clients=settings.agents,
    )


def _pass_to_daemon(
    call: Invocation, settings: Settings, preset: presets.Preset, *, plain_schemas: bool
) -> None:
    """Let the daemon of the home serve this client. Returns only if no daemon can.

    preset: the tools to serve.
    plain_schemas: whether to leave out the parts of schemas that Gemini refuses.
    """
    from memoranda.serve.pump import pass_on

    arguments = {
        "tools": preset.tools,
        "like": preset.like,
        "name": preset.name,
        "agent": call.caller,
        "plain_schemas": plain_schemas,
    }
    pass_on(settings, arguments)


def _chosen_preset(name: Text, project: Text, toolsets: Sequence[str]) -> presets.Preset:
    """Return the tools to serve: a preset with further toolsets, or only toolsets.

    name: the name of the preset, such as `basic-memory`. None means no preset.
    project: the only project that the preset's calls are about. None for any project.
    toolsets: the named toolsets. Without them and a preset, the default ones are served.
    """
    from memoranda.faces import DEFAULT_TOOLSETS

    if not name:
        return presets.Preset(tuple(toolsets) or DEFAULT_TOOLSETS)
    environ = {**os.environ}
    if project:
        environ["BASIC_MEMORY_MCP_PROJECT"] = project
    preset = presets.preset(name, environ)
    tools_without_repeats = tuple(dict.fromkeys((*preset.tools, *toolsets)))
    return replace(preset, tools=tools_without_repeats)


def _log_everything() -> None:
    """Log all messages of this package, and warnings of others."""
    import logging

    logging.basicConfig()
    logging.getLogger().handlers[0].setFormatter(output.log_form(logging.BASIC_FORMAT))
    logging.getLogger("memoranda").setLevel(logging.DEBUG)


def _graph_opener(file: Path | None) -> Callable[[MemorySession, str], Graph] | None:
    """Return the function that opens the graph in `file`. None without a file."""
    if file is None:
        return None
    from memoranda.engine.graphs import opener

    return opener(file)


def _tool_names(context: click.Context) -> list[str]:
    """Return the names of tools for completion in a shell."""
    from memoranda.faces import TOOLSETS, expand, tool_names

    with suppress(InvalidInput):
        return tool_names(expand(split_list(context.params.get("tools")) or TOOLSETS))
    return []


@command(
    "call",
    "TOOL",
    "[JSON]",
    keys=("tool", "is_error", "text", "structured"),
    complete=_tool_names,
    example=_CALL_EXAMPLE,
)
@option("--tools", type=_TOOLSET_NAMES, help="Look for TOOL in these toolsets only.")
def call(run: Invocation, tool: str, json_text: str = "{}", *, tools: Text) -> int:
    """Run one tool of any toolset with JSON arguments and print its reply.

    JSON is an object; `-` reads it from stdin.
    """
    from memoranda.faces import registry
    from memoranda.faces.tool import Hooks

    settings = run.settings
    toolset = _toolset_of(tool, split_list(tools))
    file = presets.graph_file(settings.graph_file) if toolset == "graph" else None
    folder = presets.json_folder() if toolset == "kv" else None
    try:
        arguments = json.loads(text_from((json_text,)))
    except (ValueError, RecursionError) as error:
        raise Failure(f"parse arguments: {error}") from None
    with (
        run.memory(presets.graph_project(file, settings.projects)) as memory,
        presets.json_entries(folder) as entries,
    ):
        tools_of_toolset = registry(
            [toolset],
            settings,
            hooks=Hooks.configured(),
            entries=entries,
            graphs=_graph_opener(file),
        )
        reply = tools_of_toolset.call(memory, tool, arguments)
    if run.json or not reply.is_error:
        document = {"is_error": reply.is_error, "text": reply.text, "structured": reply.data}
        if reply.hint:
            document["hint"] = reply.hint
        run.answer(reply.text, tool=tool, **document)
    # The second text of a note tool is only a checksum, which is for programs.
    if reply.hint and not reply.is_error and toolset != "notes":
        output.notice(reply.hint)
    if reply.is_error:
        lines = [reply.message or reply.text, reply.hint]
        output.failure("\n".join([line for line in lines if line]), lines=True)
    return int(reply.is_error)


def _toolset_of(tool: str, toolsets: Sequence[str]) -> str:
    """Return the toolset that has a tool.

    toolsets: the toolsets to look in; empty for all.

    Raises Failure if no toolset has the tool, or if several have it.
    """
    from memoranda.faces import TOOLSETS, expand, tool_names, toolsets_having

    names = expand(toolsets or TOOLSETS)
    owners = toolsets_having(tool, names)
    if not owners:
        guesses = near(tool, tool_names(names))
        raise Failure(f"tool not found: {tool}", "not_found", guesses=guesses)
    if len(owners) > 1:
        raise Failure(
            f"tool {tool} is in several toolsets: {', '.join(owners)}; choose one with --tools"
        )
    return owners[0]


@command("agent", example="memory agent --list-tools")
@option("--prompt", metavar="QUERY", help="What the context is about; - reads it from stdin.")
@option("--input", "file", metavar="FILE", help="Read the calls from FILE [stdin].")
@click.option(
    "--format",
    "form",
    type=_FORM,
    default="json",
    help="The form of input and output; json is the only one.",
)
@flag("--list-tools", "Print the tools with their schemas.")
@option(
    "--tools", type=_TOOLSET_NAMES, default="agent", help="Toolsets to offer, separated by commas."
)
def agent(
    call: Invocation, *, prompt: Text, file: Text, form: str, list_tools: bool, tools: str
) -> int:
    """Run tool calls given as JSON and print their results as JSON.

    The input is an array of {"name", "params"}, or an object with "tool_calls" and "prompt". With a
    prompt, the answer has a context: the memories that contain its words, the best first.
    """
    if form != "json":
        raise Usage(f'invalid value "{form}" for --format: not json')
    toolsets = split_list(tools)
    if list_tools:
        from memoranda.faces import registry
        from memoranda.faces.agent.session import tool_list

        output.json_value(tool_list(registry(toolsets, call.settings)))
        return 0
    from memoranda.faces.agent.session import Session

    batch = _batch(prompt, None if file == "-" else file)
    if batch.prompt is None and batch.calls is None:
        output.text("No input. Use --input, stdin, or --list-tools.")
        return 0
    with call.memory() as memory:
        session = Session(memory, tools=toolsets)
        if not batch.calls and batch.prompt is not None:
            output.text(f"Context: {session.inject_context(batch.prompt)}")
            return 0
        answer = session.run_batch(batch)
    output.json_value(answer)
    # A batch without calls is answered by a list.
    if not isinstance(answer, dict):
        return 0
    return _report_failed_call(answer["tool_calls"])


def _report_failed_call(results: Sequence[dict[str, Any]]) -> int:
    """Print the error of the call that failed. Returns the exit code: 1, or 0 if none failed."""
    # The batch ends with the first call that fails, so only the last result can be an error.
    last_result = results[-1]
    if "error" not in last_result:
        return 0
    output.failure(f"tool {last_result['name']} failed: {last_result['error']}")
    return 1


def _batch(prompt: str | None, file: str | None) -> Batch:
    """Read the calls and the prompt.

    prompt: the value of `--prompt`. `-` reads the prompt from stdin: an object that contains one,
        or a plain text. None means that the input may have one.
    file: the file with the calls. None means stdin.

    Raises Failure and InvalidInput for input that cannot be read.
    """
    from memoranda.faces.agent.session import read_batch

    if prompt == "-":
        batch = _batch_with_prompt(_stdin())
        if file is None:
            return batch
        # The calls come from the file, and only the prompt from stdin.
        prompt = batch.prompt
    if file is None:
        batch = read_batch(_stdin())
    else:
        with input_of(file) as stream:
            batch = read_batch(stream.read())
    batch.prompt = prompt or batch.prompt
    return batch


def _batch_with_prompt(data: bytes) -> Batch:
    """Read a prompt from stdin: an object with `prompt` and perhaps calls, or a plain text.

    Raises Failure for bytes that are not UTF-8, InvalidInput for a wrong object.
    """
    from memoranda.faces.agent.session import Batch, read_batch

    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise Failure("the text on stdin is not valid UTF-8", "not_text") from None
    with suppress(ValueError, RecursionError):
        is_object = text.startswith("{") and isinstance(json.loads(text), dict)
        if is_object:
            return read_batch(text)
    return Batch(prompt=text or None)


def _stdin() -> bytes:
    """Return the bytes of stdin.

    A terminal is not read, because nobody there would know that the command waits. It gives b"".
    """
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    return sys.stdin.buffer.read()


kv = group(
    "kv",
    "tool_commands",
    "get set del list",
    "Store short texts under keys: print, set, delete and list them.",
)
_namespace_option = option(
    "--namespace", metavar="NAME", default=DEFAULT_NAMESPACE, help="Where the key is."
)


@contextmanager
def _entries(call: Invocation) -> Iterator[Entries]:
    """Yield the entries that the kv tools use."""
    from memoranda.engine.entries import NoteEntries

    json_folder = presets.json_folder()
    with call.memory() as memory, presets.json_entries(json_folder) as open_entries:
        if open_entries is not None:
            yield open_entries(memory)
        else:
            yield NoteEntries(memory)


@contextmanager
def _guessing(entries: Entries, key: str, namespace: str) -> Iterator[None]:
    """Add to the error for a missing key those keys that the person may have meant.

    entries: the entries of the home.
    key, namespace: the entry that the block reads.
    """
    from memoranda.engine.entries import NoEntry

    try:
        yield
    except NoEntry as error:
        present_entries, _ = entries.search("", namespace, _ALL_ENTRIES, 0)
        guesses = near(key, (entry.key for entry in present_entries))
        raise Failure(str(error), error.code, guesses=guesses) from None


@command("get", "KEY", keys=ENTRY_KEYS, example="memory kv get editor")
@_namespace_option
def kv_get(call: Invocation, key: str, *, namespace: str) -> None:
    """Print the value of KEY, and nothing else. This counts as one access."""
    from memoranda import documents

    with _entries(call) as entries, _guessing(entries, key, namespace):
        entry = entries.count(entries.get(namespace, key))
        call.answer(entry.value, **documents.entry(entry))


@command(
    "set",
    "KEY",
    "VALUE...",
    keys=ENTRY_KEYS,
    example="memory kv set editor vim",
)
@_namespace_option
@option(
    "--ttl",
    type=Number(),
    default=0,
    metavar="SECONDS",
    help="Delete the entry after this many seconds; 0 = never.",
)
def kv_set(call: Invocation, key: str, *words: str, namespace: str, ttl: int) -> None:
    """Store VALUE under KEY. It replaces the present value.

    The words of VALUE are joined by blanks; `-` reads it from stdin.
    """
    from memoranda import documents
    from memoranda.faces.kv.entry_tools import put_checked

    with _entries(call) as entries:
        entry = put_checked(entries, namespace, key, text_from(words), ttl)
        call.answer(f"Set {key}", **documents.entry(entry))


@command("del", "KEY...", keys=("namespace", "key"), example="memory kv del editor")
@_namespace_option
def kv_del(call: Invocation, *keys: str, namespace: str) -> None:
    """Delete KEY. If you name several keys and one does not exist, none is deleted."""
    with _entries(call) as entries:
        if len(keys) > 1:
            # All keys are looked up before the first one is deleted.
            for key in keys:
                with _guessing(entries, key, namespace):
                    entries.get(namespace, key)
        keys_without_repeats = list(dict.fromkeys(keys))
        for key in keys_without_repeats:
            with _guessing(entries, key, namespace):
                entries.remove(namespace, key)
        texts = [f"Deleted {key}" for key in keys_without_repeats]
        rows = [{"namespace": namespace, "key": key} for key in keys_without_repeats]
        call.answer_each(texts, rows)


@command("list", "[TEXT]", keys=("namespace", "entries"), example="memory kv list")
@_namespace_option
@option(
    "--all", "of_all", is_flag=True, help="The entries of all namespaces, each as NAMESPACE/KEY."
)
def kv_list(call: Invocation, text: str = "", *, namespace: str, of_all: bool) -> None:
    """Print the keys, one a line; with TEXT, only entries with it in the key or value."""
    from memoranda import documents

    with _entries(call) as entries:
        namespace_to_search = None if of_all else namespace
        matches, _ = entries.search(text, namespace_to_search, _ALL_ENTRIES, 0)
        matches = sorted(matches, key=lambda entry: (entry.namespace, entry.key))
        names = [entry.key for entry in matches]
        if of_all:
            names = [f"{entry.namespace}/{entry.key}" for entry in matches]
        # A script reads the names from stdout, so this line goes to stderr.
        if not matches and not call.json:
            return output.notice("No entries.")
        if call.on_terminal:
            values = [entry.value for entry in matches]
            return call.table(("Key", "Value"), list(zip(names, values, strict=True)))
        rows = [documents.entry(entry) for entry in matches]
        call.answer("\n".join(names), namespace=namespace_to_search, entries=rows)
