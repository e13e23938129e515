"""The face `notes`: twelve tools, two prompts and one resource template (contract 000b)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from commonplace.faces.arguments import Arguments
from commonplace.faces.notes import prompts, read_tools, write_tools
from commonplace.faces.notes.replies import answering
from commonplace.faces.reply import Reply
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Tool, Toolset

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.notes.vault import Vault

_IGNORED = "workspace compact include_frontmatter min_similarity search_all_projects"
_COMMON: dict[str, Any] = {
    "output_format": {"type": "string", "enum": ["text", "json"]},
    "project_id": {"type": "string"},
    **dict.fromkeys(_IGNORED.split()),
}
_ALSO: dict[str, dict[str, Any]] = {
    "write_note": {
        "folder": "directory",
        "entity_type": "note_type",
        "supersedes": {"type": "array", "items": {"type": "string"}},
        "valid_from": {"type": "string"},
        "valid_until": {"type": "string"},
    },
    "list_directory": {"folder": "dir_name", "directory": "dir_name"},
    "search_notes": {
        "projects": {"type": "array", "items": {"type": "string"}},
        "max_tokens": {"type": "integer"},
        "entity_types": {"type": "array", "items": {"type": "string"}},
        "as_of": {"type": "string"},
    },
    "read_note": {"as_of": {"type": "string"}, "include_content": {"type": "boolean"}},
    "build_context": {"max_tokens": {"type": "integer"}},
    "recent_activity": {"type": {"type": "array", "items": {"type": "string"}}, "depth": None},
}


_WIDE = ("search_notes", "recent_activity", "list_memory_projects", "build_context")
"""Tools whose answer may lack what a project in trouble has."""


def toolset(agents_may_add_projects: bool = True, vault: Vault | None = None) -> Toolset:
    """The note tools with all that goes with them. `agents_may_add_projects`: contract 000b, 1. `vault`: in the manner
    of Basic Memory, with what its configuration says."""
    runs: dict[str, Callable[[Memory, Arguments], Reply]] = {
        "write_note": write_tools.write_note,
        "read_note": read_tools.read_note,
        "edit_note": write_tools.edit_note,
        "move_note": write_tools.move_note,
        "delete_note": write_tools.delete_note,
        "list_directory": read_tools.list_directory,
        "search_notes": read_tools.search_notes,
        "build_context": read_tools.build_context,
        "recent_activity": read_tools.recent_activity,
        "list_memory_projects": write_tools.list_memory_projects,
        "create_memory_project": partial(write_tools.create_memory_project, allowed=agents_may_add_projects),
        "delete_project": write_tools.delete_project,
    }
    rewrites = {"move_note": write_tools.with_destination, "search_notes": read_tools.as_text_search}
    tools = [
        Tool(
            name := each["name"],
            each["description"],
            each["inputSchema"],
            answering(runs[name], name in _WIDE),
            annotations=each["annotations"],
            also=_COMMON | _ALSO.get(name, {}),
            rewrite=rewrites.get(name),
        )
        for each in json.loads(text_file("notes-tools.json"))
    ]
    shown, templates = prompts.PROMPTS, [prompts.TEMPLATE]
    if vault is not None:
        from commonplace.faces.notes import drop_in, drop_in_views

        shown, templates = drop_in_views.prompts_of(vault), drop_in_views.templates_of(vault)
        tools = drop_in.tools(tools, vault)
    return Toolset(
        "notes", tools, instructions=text_file("notes-instructions.md").strip(), prompts=shown, templates=templates
    )
