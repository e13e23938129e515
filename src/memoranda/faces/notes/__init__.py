"""The face `notes`: its tools, prompts and resource template (contract 000b)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from memoranda.faces.notes import read_tools, replies, write_tools
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Run, Toolset, declared_tools, function_of

# Arguments that clients of Basic Memory send. Those with None are accepted and ignored, but where a
# tool gives them a meaning.
_COMMON: dict[str, Any] = {
    "output_format": {"type": "string", "enum": ["text", "json"]},
    "project_id": {"type": "string"},
    **dict.fromkeys(
        (
            "workspace",
            "compact",
            "include_frontmatter",
            "include_content",
            "min_similarity",
            "search_all_projects",
        )
    ),
}


def toolset(agents_may_add_projects: bool = True) -> Toolset:
    """Make the toolset `notes`, with its prompts and its resource template.

    agents_may_add_projects: whether `create_memory_project` adds projects (contract 000b, 1).
        Otherwise it refuses.
    """

    def run_of(name: str) -> Run:
        """Return the function that carries out a tool."""
        function = function_of(name, write_tools, read_tools)
        if name == "create_memory_project":
            function = partial(function, allowed=agents_may_add_projects)
        return function

    # These change the arguments before they are checked.
    rewrites = {
        "move_note": write_tools.with_destination,
        "search_notes": read_tools.as_text_search,
    }
    tools = [
        replace(
            tool,
            run=replies.with_complete_replies(tool.run, tool.is_wide),
            rewrite=rewrites.get(tool.name),
        )
        for tool in declared_tools("notes-tools.json", run_of, _COMMON)
    ]
    return Toolset(
        "notes",
        tools,
        text_file("notes-instructions.md").strip(),
        prompts=replies.PROMPTS,
        templates=[replies.TEMPLATE],
    )
