"""What tells a home in a folder from one in a database, for tests that run on both: see
`--home-kind`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from memoranda.engine import MemorySession, open_session


def in_database() -> bool:
    """Whether the notes of every home are in a database."""
    return "MEMORANDA_HOMES_IN" in os.environ


VAULT = "a vault used in place is a folder of one machine; notes in a database refuse it"
FILE = "a graph file used in place is a file of one machine; notes in a database refuse it"
BANK = "a folder of banks used in place is one of one machine; notes in a database refuse it"
DISK = "it is about what a disk or a file refuses; tests/postgres has a server that refuses"


def prepared(home: Path) -> Path:
    """The home, made already if it is in a database: what is then put into it by hand is committed
    there, all of it.
    """
    if in_database():
        open_session(home, watch=False).close()
    return home


def notes_below(notes: dict[str, Any]) -> dict[str, Any]:
    """What was found in a home, without what tells people that it is a copy."""
    return {
        name: content
        for name, content in notes.items()
        if not in_database() or name != "README.txt"
    }


def place_for(memory: MemorySession, name: str, folder: Path) -> Path:
    """Where a project of this name may be: the folder, or the one of its space."""
    if in_database():
        return memory.home / "projects" / name
    return folder


def with_projects(home: Path, **folders: Path) -> dict[str, Any]:
    """The arguments of `open_session` that make these folders projects; in a database, where
    each is one of its space, the path given leads there."""
    if not in_database():
        return {"projects": folders}
    with open_session(home, watch=False) as memory:
        for name, folder in folders.items():
            project_root = memory.add_project(name, f"projects/{name}")[0].root
            if folder.is_dir():
                project_root.rmdir()
                shutil.move(folder, project_root)
            folder.symlink_to(project_root)
    return {}
