"""memoranda: one memory for all of a person's AI agents, plain Markdown notes on their own disk.

The public API: `open_memory` gives a `Memory`; `Draft`, `Note`, `Query`, `Hit` are its values.
`Session` runs tool calls with hooks and events. The errors are in `memoranda.errors`. Everything
else may change.
"""

from __future__ import annotations

# Typing is not imported: until memoranda.cli.run is reached, an interrupt prints a traceback
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memoranda.api import Memory, open_memory
    from memoranda.errors import (
        Ambiguous,
        CannotUndo,
        ConfigError,
        Conflict,
        CountMismatch,
        Exists,
        InvalidInput,
        Locked,
        MemorandaError,
        NotFound,
        NotText,
        OutsideError,
        ProjectNotFound,
        ProjectRefused,
        SectionError,
        StorageError,
        TimeframeError,
    )
    from memoranda.faces.agent.session import Session
    from memoranda.index.rows import Hit
    from memoranda.note.model import Draft, Note
    from memoranda.query import Query

__version__ = "0.1.0"

_HOMES = {
    "open_memory": "memoranda.api",
    "Memory": "memoranda.api",
    "Draft": "memoranda.note.model",
    "Note": "memoranda.note.model",
    "Query": "memoranda.query",
    "Hit": "memoranda.index.rows",
    "Session": "memoranda.faces.agent.session",
}

__all__ = [
    "Ambiguous",
    "CannotUndo",
    "ConfigError",
    "Conflict",
    "CountMismatch",
    "Draft",
    "Exists",
    "Hit",
    "InvalidInput",
    "Locked",
    "MemorandaError",
    "Memory",
    "NotFound",
    "NotText",
    "Note",
    "OutsideError",
    "ProjectNotFound",
    "ProjectRefused",
    "Query",
    "SectionError",
    "Session",
    "StorageError",
    "TimeframeError",
    "open_memory",
]


def __getattr__(name: str) -> Any:
    # Imported at first use, so that the command starts fast.
    if name not in __all__:
        raise AttributeError(f"module 'memoranda' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "memoranda.errors")), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
