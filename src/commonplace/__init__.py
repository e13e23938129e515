"""commonplace: one memory for all of a person's AI agents, plain Markdown notes on their own disk.

The public API: `open_memory` gives a `Memory`; `Draft`, `Note`, `Query`, `Hit` are its values. `Session`
runs tool calls with hooks and events. The errors are in `commonplace.errors`. Everything else may change.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not imported: until commonplace.cli.run is reached, an interrupt prints a traceback
if TYPE_CHECKING:
    from typing import Any

    from commonplace.api import Memory, open_memory
    from commonplace.errors import (
        Ambiguous,
        CannotUndo,
        CommonplaceError,
        ConfigError,
        Conflict,
        CountMismatch,
        Exists,
        InvalidInput,
        Locked,
        NotFound,
        NotText,
        OutsideError,
        ProjectNotFound,
        ProjectRefused,
        SectionError,
        StorageError,
        TimeframeError,
    )
    from commonplace.faces.agent.session import Session
    from commonplace.index.rows import Hit
    from commonplace.note.model import Draft, Note
    from commonplace.query import Query

__version__ = "0.1.0"

_HOMES = {
    "open_memory": "commonplace.api", "Memory": "commonplace.api", "Draft": "commonplace.note.model",
    "Note": "commonplace.note.model", "Query": "commonplace.query", "Hit": "commonplace.index.rows",
    "Session": "commonplace.faces.agent.session",
}  # fmt: skip

__all__ = [
    "Ambiguous", "CannotUndo", "CommonplaceError", "ConfigError", "Conflict", "CountMismatch", "Draft", "Exists",
    "Hit", "InvalidInput", "Locked", "Memory", "NotFound", "NotText", "Note", "OutsideError", "ProjectNotFound",
    "ProjectRefused", "Query", "SectionError", "Session", "StorageError", "TimeframeError", "open_memory",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Imported at first use, so that the command starts fast.
    if name not in __all__:
        raise AttributeError(f"module 'commonplace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "commonplace.errors")), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
