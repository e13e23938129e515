"""Imports at the start what the page would import later.

Many modules import others only when they need them, since commands must start quickly. If an update
replaces the program under a running server, such an import would bring a module of another version.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import memoranda

# What no page needs: other interfaces, and what takes a package that may not be installed.
_NOT_NEEDED = (
    "memoranda.__main__",
    "memoranda.anthropic",
    "memoranda.basic_memory",
    "memoranda.cli",
    "memoranda.clients",
    "memoranda.faces",
    "memoranda.index.vectors",
)


@cache
def load() -> None:
    """Import all modules that a page may need. It takes 0.3 s of processor time, once."""
    # A package whose `__init__` needs something that is not installed is left out.
    for module in walk_packages(memoranda.__path__, "memoranda.", onerror=lambda name: None):
        if not module.name.startswith(_NOT_NEEDED):
            with suppress(ImportError):
                import_module(module.name)
