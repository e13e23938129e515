"""Errors in the words of the command (contract 001, sections 1, 3, 4, 16)."""

from __future__ import annotations

from typing import Any

from commonplace.errors import Ambiguous, CommonplaceError, NotFound, ProjectNotFound, ProjectRefused

_TIMES = ("ambiguous_time", "past_time", "no_time", "invalid_time", "vague_time")


class Failure(CommonplaceError):
    """An error already worded for the command; `code` as in contract 000b, 8."""

    def __init__(self, message: str, code: str = "invalid"):
        super().__init__(message)
        self.code = code


def sentence(error: CommonplaceError) -> str:
    """What the command says after `Error: `."""
    if isinstance(error, NotFound) and error.project == "the history":
        return f"no older text of {error.identifier} is kept"
    if isinstance(error, (NotFound, Ambiguous)):
        from commonplace.engine.memories import complaint  # needs the engine, which help pages do not

        return complaint(error)
    if isinstance(error, ProjectNotFound):
        return f"no such project: {error.name}"
    if isinstance(error, ProjectRefused):
        return _refusal(error)
    return str(error)


def further(error: CommonplaceError) -> dict[str, Any]:
    """The keys of an error in JSON besides `code` and `message`: the `candidates` of a time (contract 001, 8)."""
    if error.code not in _TIMES:
        return {}
    return {"candidates": [each.isoformat() for each in getattr(error, "candidates", ())]}


def _refusal(error: ProjectRefused) -> str:
    if error.reason == "not a folder":
        return f"not a folder: {error.folder}"
    if error.reason.startswith("it overlaps project "):
        return f"{error.folder} {error.reason.removeprefix('it ')}"
    return str(error)
