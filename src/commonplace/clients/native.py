"""What clients remember by themselves, as projects: used in place, so that every other agent finds it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError, InvalidInput

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.projects import Project

_PLACES = (
    ("claude", "CLAUDE_CONFIG_DIR", "~/.claude", "projects/*/memory"),
    ("codex", "CODEX_HOME", "~/.codex", "memories"),
    ("gemini", "", "~/.gemini", "tmp/*/memory"),
)
"""Of each client its name, the variable and the folder of its files, and the folders below that hold its memories."""
_NAME = 64


def native_folders() -> Iterator[tuple[str, Path]]:
    """The folders in which Claude Code, Codex and Gemini CLI keep memories of their own, with a name for a project."""
    for client, variable, usual, below in _PLACES:
        root = Path(os.path.expanduser(os.environ.get(variable) or usual))
        for folder in sorted(root.glob(below)):
            if folder.is_dir() and any(folder.rglob("*.md")):
                # the end of the path of the project they are about, which is written with `-` for `/`
                told = "-".join(folder.relative_to(root).parts[1:-1])
                told = re.sub(r"[^\w .\-]+", "-", told.removeprefix(re.sub(r"[^A-Za-z0-9]", "-", str(Path.home()))))
                told = told.strip(" .-")[-(_NAME - len(client) - 4) :].strip(" .-")
                yield f"{client} {told}".strip(), folder


def auto_memory_folder(home: Path) -> Path:
    """The folder of project `claude memory`, for the memories Claude Code writes by itself."""
    return home / "projects" / "claude-memory"


def add_native(memory: Memory) -> tuple[list[Project], list[tuple[Path, str]]]:
    """Make a project of each folder of `native_folders` that is none yet. Returns them, and the folders left out with
    the reason. Raises InvalidInput for an agent."""
    if memory.agent is not None:
        raise InvalidInput("only the owner adds the memories of other programs; run it without an agent's name")
    added: list[Project] = []
    refused: list[tuple[Path, str]] = []
    known = {os.path.realpath(each.root) for each in memory.projects}
    names = {each.name.lower() for each in memory.projects}
    for name, folder in native_folders():
        if os.path.realpath(folder) in known:
            continue
        free = next(
            each for each in (name, *(f"{name} {number}" for number in range(2, 100))) if each.lower() not in names
        )
        try:
            project, _ = memory.add_project(free, str(folder), make=False, hidden=True)
        except CommonplaceError as error:
            refused.append((folder, str(error)))
            continue
        names.add(free.lower())
        added.append(project)
    return added, refused
