"""memoranda: one memory for all of a person's AI agents, plain Markdown notes on their own disk.

The public API: `open_memory` gives a `Memory`, whose verbs take and return the values and raise the
errors named here. `Session` runs tool calls with hooks and events. Everything else may change.
docs/python.md has an example of each verb.
"""

from __future__ import annotations

__version__ = "0.1.0"

# The public names of each module. They are imported at first use, so that the command starts fast.
# `__init__.pyi` tells them to type checkers.
_MODULES = {
    "memoranda.api": (
        "Memory",
        "Setting",
        "open_memory",
    ),
    "memoranda.engine.history.erase": ("Erased",),
    "memoranda.engine.history.verbs": ("Revision",),
    "memoranda.engine.links.memory_links": ("NoteContext",),
    "memoranda.engine.places": (
        "Deleted",
        "Moved",
    ),
    "memoranda.engine.project_list": ("Project",),
    "memoranda.engine.reading": (
        "Directory",
        "DirectoryEntry",
        "Ref",
    ),
    "memoranda.engine.review": ("ReviewItem",),
    "memoranda.errors": (
        "AgentPaused",
        "Ambiguous",
        "AmbiguousTime",
        "BadRecord",
        "Busy",
        "CannotRead",
        "CannotUndo",
        "ConfigError",
        "ConfigFileError",
        "Conflict",
        "CountMismatch",
        "DatabaseAway",
        "DatabaseRefused",
        "Exists",
        "FolderNotFound",
        "InvalidInput",
        "InvalidTime",
        "LimitExceeded",
        "LineOutOfRange",
        "Locked",
        "MemorandaError",
        "NoSuchChange",
        "NoTime",
        "NotAFolder",
        "NotFound",
        "NotInHistory",
        "NotPutBack",
        "NotText",
        "NotWritable",
        "NothingToReplace",
        "OutcomeUnknown",
        "OutsideError",
        "PastTime",
        "ProjectNotFound",
        "ProjectOutOfReach",
        "ProjectOverlaps",
        "ProjectRefused",
        "ReadOnlyProject",
        "SecretRefused",
        "SectionError",
        "StorageError",
        "Taken",
        "TimeRefused",
        "TimeframeError",
        "Unusable",
        "UnusedWords",
        "VagueTime",
    ),
    "memoranda.faces.agent.session": ("Session",),
    "memoranda.index.note_queries": ("HomeCounts",),
    "memoranda.index.rows": (
        "Edge",
        "Hit",
        "Hits",
        "NoteInfo",
        "NotesListed",
        "Reached",
    ),
    "memoranda.ingest": ("Ingestion",),
    "memoranda.jobs.dream": ("Dream",),
    "memoranda.jobs.job": (
        "Action",
        "Outcome",
    ),
    "memoranda.note.edit": (
        "AddItem",
        "Append",
        "AppendToSection",
        "Edit",
        "FindReplace",
        "InsertAfterSection",
        "InsertBeforeSection",
        "InsertLine",
        "Prepend",
        "ReplaceSection",
        "Rewrite",
        "SetKeys",
        "StrReplace",
    ),
    "memoranda.note.model": (
        "Draft",
        "Note",
        "Observation",
        "Provenance",
        "Relation",
    ),
    "memoranda.query": ("Query",),
    "memoranda.ledger.change": (
        "Change",
        "Touched",
    ),
    "memoranda.transfer.jsonl": ("Tally",),
}

_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Import a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'memoranda' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
