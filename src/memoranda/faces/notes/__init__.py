"""The face `notes`: twelve tools, two prompts and one resource template (contract 000b)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from memoranda.faces.notes import read_tools, replies, write_tools
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Run, Toolset, declared

_COMMON: dict[str, Any] = {
    "output_format": {"type": "string", "enum": ["text", "json"]},
    "project_id": {"type": "string"},
    **dict.fromkeys(
        ("workspace", "compact", "include_frontmatter", "min_similarity", "search_all_projects")
    ),
}


_WIDE = (
    "search_notes",
    "recent_activity",
    "list_directory",
    "list_memory_projects",
    "build_context",
)
"""Tools whose answer may lack what a project in trouble has."""


def toolset(agents_may_add_projects: bool = True) -> Toolset:
    """The note tools with all that goes with them. `agents_may_add_projects`: contract 000b, 1."""
    runs: dict[str, Run] = {
        each.__name__: each
        for each in (
            write_tools.write_note,
            write_tools.edit_note,
            write_tools.move_note,
            write_tools.delete_note,
            write_tools.list_memory_projects,
            write_tools.delete_project,
            read_tools.read_note,
            read_tools.list_directory,
            read_tools.search_notes,
            read_tools.build_context,
            read_tools.recent_activity,
        )
    }
    runs["create_memory_project"] = partial(
        write_tools.create_memory_project, allowed=agents_may_add_projects
    )
    tools = declared(
        "notes-tools.json", lambda name: replies.answering(runs[name], name in _WIDE), _COMMON
    )
    rewrites = {
        "move_note": write_tools.with_destination,
        "search_notes": read_tools.as_text_search,
    }
    tools = [replace(tool, rewrite=rewrites.get(tool.name)) for tool in tools]
    return Toolset(
        "notes",
        tools,
        text_file("notes-instructions.md").strip(),
        prompts=replies.PROMPTS,
        templates=[replies.TEMPLATE],
    )
