"""The engine: the only one who touches notes and index. Everything else is a view of its verbs."""

from commonplace.engine.memory import Memory, open_memory

__all__ = ["Memory", "open_memory"]
