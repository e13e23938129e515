"""The engine: the only code that changes notes and the index. All interfaces call its verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoranda.engine.memory import HasSession, MemorySession, open_session, session_of

__all__ = ["HasSession", "MemorySession", "open_session", "session_of"]


def __getattr__(name: str) -> Any:
    # Imported at the first use, because completing words in a shell needs no open memory.
    if name not in __all__:
        raise AttributeError(f"module 'memoranda.engine' has no attribute {name!r}")
    from memoranda.engine import memory

    return getattr(memory, name)
