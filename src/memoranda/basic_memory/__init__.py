"""The note tools in the manner of Basic Memory 0.24 (contract 000b, 10; amendment 8).

Names, arguments, aliases, JSON keys, configuration and effects on files are Basic Memory's. The
sentences are ours, and so are the listed schemas. Further arguments that Basic Memory accepts are
in texts/arguments.json. A call of a tool that is no longer served is answered with the name of the
tool that does its work.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from memoranda.basic_memory import reading, views, writing
from memoranda.basic_memory.documents import either, error_fields
from memoranda.basic_memory.texts import text_file
from memoranda.basic_memory.vault import Vault
from memoranda.errors import MemorandaError, ProjectNotFound
from memoranda.faces.arguments import Arguments
from memoranda.faces.reply import Reply
from memoranda.faces.tool import Tool, Toolset

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

Answer = Callable[[Vault, "MemorySession", Arguments], Reply]
# Hints for MCP clients about tools that only read.
_READ_HINTS = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}


@dataclass(frozen=True, slots=True)
class TheirTool:
    """A tool of Basic Memory.

    answer: answers a call as Basic Memory would.
    has_project: whether a call is about one project.
    """

    answer: Answer
    has_project: bool = True

    @property
    def name(self) -> str:
        """The tool's name, which is the name of its function."""
        return self.answer.__name__


TOOLS = [
    TheirTool(writing.write_note),
    TheirTool(reading.read_note),
    TheirTool(writing.edit_note),
    TheirTool(writing.move_note),
    TheirTool(writing.delete_note),
    TheirTool(reading.list_directory),
    TheirTool(reading.search_notes),
    TheirTool(reading.build_context),
    TheirTool(reading.recent_activity),
    TheirTool(writing.list_memory_projects, has_project=False),
    TheirTool(writing.create_memory_project, has_project=False),
    TheirTool(writing.delete_project, has_project=False),
    TheirTool(views.view_note),
    TheirTool(views.read_content),
]
"""The tools that are served as Basic Memory has them. Other note tools are served as our own."""

FORMER = {
    "cat": "read_note",
    "ls": "list_directory",
    "find": "list_directory or search_notes with metadata_filters",
    "grep": "search_notes",
    "tail": "recent_activity",
    "search": "search_notes",
    "fetch": "read_note",
    "schema_validate": "search_notes with note_types and metadata_filters",
    "schema_infer": "search_notes with note_types",
    "schema_diff": "search_notes with note_types",
}
"""Tools of Basic Memory that are not served -> the tools to use instead."""


def in_manner(vault: Vault) -> Callable[[Toolset], Toolset]:
    """Return a function that turns our note tools into Basic Memory's, for the projects of a vault."""

    def adapted(toolset: Toolset) -> Toolset:
        """Return the toolset with Basic Memory's tools, prompts and resources."""
        arguments = json.loads(text_file("arguments.json"))
        tools_by_name = {tool.name: tool for tool in TOOLS}
        tools = [
            _adapted_tool(tool, tools_by_name.get(tool.name), arguments, vault)
            for tool in toolset.tools
        ]
        tools += [
            _additional_tool(row, tools_by_name[row["name"]], arguments, vault)
            for row in arguments["tools"]
        ]
        return replace(
            toolset,
            tools=tools,
            prompts=views.prompts_of(vault),
            templates=views.templates_of(vault),
            former=FORMER,
        )

    return adapted


def _adapted_tool(tool: Tool, theirs: TheirTool | None, arguments: Any, vault: Vault) -> Tool:
    """Return our tool with the arguments and the replies of Basic Memory's tool of this name.

    theirs: that tool. None means that our tool is served.
    arguments: the contents of arguments.json.
    """
    if theirs is None:
        return tool
    # The schemas of arguments that Basic Memory accepts further, or in more forms than we do
    accepted = {
        **arguments["accepted"]["*"],
        **arguments["accepted"].get(tool.name, {}),
        **arguments["loosened"].get(tool.name, {}),
    }
    properties = {**tool.schema["properties"], **accepted}
    optional = arguments["optional"].get(tool.name, ())
    required = [name for name in tool.schema.get("required", ()) if name not in optional]

    # Another name of an argument -> the argument
    our_aliases = {name: meaning for name, meaning in tool.also.items() if name not in accepted}
    their_aliases: dict[str, str] = {}
    for name, names in arguments["aliases"].get(tool.name, {}).items():
        their_aliases |= dict.fromkeys(names.split(), name)
    return replace(
        tool,
        run=partial(_run, theirs, vault),
        also={**our_aliases, **their_aliases},
        accepts={**tool.schema, "properties": properties, "required": required},
        # Basic Memory refuses a destination in two forms. Our rewrite would hide one of them.
        rewrite=None,
    )


def _additional_tool(row: dict[str, Any], theirs: TheirTool, arguments: Any, vault: Vault) -> Tool:
    """Return a tool that only Basic Memory has.

    row: its declaration in arguments.json.
    theirs: how Basic Memory answers it.
    arguments: the whole of arguments.json.
    vault: the projects and options of Basic Memory.
    """
    return Tool(
        row["name"],
        row["description"],
        {"type": "object", "properties": row["properties"], "required": row.get("required", [])},
        partial(_run, theirs, vault),
        annotations=_READ_HINTS,
        also={**arguments["accepted"]["*"], **row.get("also", {})},
    )


def _run(theirs: TheirTool, vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Answer a call as Basic Memory would, also for errors.

    The argument `project` is set to our name of the project, if a call is about one project.

    theirs: the tool of Basic Memory.
    vault: the projects and options of Basic Memory.
    memory: the memory that answers.
    args: the arguments of the call.
    """
    try:
        if theirs.has_project:
            args["project"] = vault.detected(memory, args) or vault.named(memory, args)
        return theirs.answer(vault, memory, args)
    except MemorandaError as error:
        if isinstance(error, ProjectNotFound):
            # The engine also knows projects that Basic Memory does not have.
            error = ProjectNotFound(error.name, list(vault.projects(memory)))
        return either(args, error_fields(error), str(error), is_error=True)
