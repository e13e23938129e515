"""What the process of test_failing_disk.py does. It imports no pytest, which would take as long as the
rest.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from memoranda.engine import MemorySession, open_session
from memoranda.engine.graphs import open_graph
from memoranda.engine.json_entries import JsonEntryFolder
from memoranda.errors import MemorandaError
from memoranda.note.edit import Append
from memoranda.note.entity import Entity
from memoranda.note.model import Draft

LARGE = f"large {'-' * 993}\n" * 1_200
"""More than a megabyte of few words. Many words cost as much as all other actions."""


def actions(memory: MemorySession, place: Path) -> dict[str, object]:
    """What is done while the disk fails, each about a note of its own."""
    entries = JsonEntryFolder(place / "kept").entries(memory)
    return {
        "write": lambda: memory.write(Draft("new text", project="notes", title="new")),
        "edit": lambda: memory.edit("notes/edited.md", Append("more\n")),
        "move": lambda: memory.move("notes/moved.md", "elsewhere/moved.md"),
        "delete": lambda: memory.delete("notes/deleted.md"),
        "folder": lambda: memory.move_folder("notes", "folder", "other"),
        "entry": lambda: entries.put("default", "name", "second"),
        "entity": lambda: open_graph(memory, "people").create_entities(
            [Entity("Bob", "person", ())]
        ),
        "large": lambda: memory.write(Draft(LARGE, project="notes", title="large")),
    }


def child() -> None:
    """Do all actions and print which were acknowledged."""
    import ctypes

    place = Path(sys.argv[1])
    library = ctypes.CDLL(None)
    outcomes: dict[str, object] = {}
    memory = open_session(place / "home", watch=False)
    library.failing_disk_start()
    for name, action in actions(memory, place).items():
        try:
            action()
        except MemorandaError as error:
            outcomes[name] = str(error)
        else:
            outcomes[name] = True
    calls = library.failing_disk_seen()
    # The process ends here: what a last call would still do is not done
    print(json.dumps({"said": outcomes, "calls": calls}), flush=True)
    os._exit(0)
