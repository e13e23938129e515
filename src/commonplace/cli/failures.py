"""Errors in the words of the command (contract 001, sections 1, 3, 4, 16)."""

from __future__ import annotations

from commonplace.errors import Ambiguous, CommonplaceError, NotFound, ProjectNotFound, ProjectRefused


class Failure(CommonplaceError):
    """An error already worded for the command; `code` as in contract 000b, 8."""

    def __init__(self, message: str, code: str = "invalid"):
        super().__init__(message)
        self.code = code


def sentence(error: CommonplaceError) -> str:
    """What the command says after `Error: `."""
    if isinstance(error, NotFound):
        if error.project == "the history":
            return f"no older text of {error.identifier} is kept"
        return f"memory not found: {error.identifier}"
    if isinstance(error, Ambiguous):
        return f'ambiguous id "{error.identifier}": {error.total} memories match'
    if isinstance(error, ProjectNotFound):
        return f"no such project: {error.name}"
    if isinstance(error, ProjectRefused):
        return _refusal(error)
    return str(error)


def _refusal(error: ProjectRefused) -> str:
    if error.reason == "not a folder":
        return f"not a folder: {error.folder}"
    if error.reason.startswith("it overlaps project "):
        return f"{error.folder} {error.reason.removeprefix('it ')}"
    return str(error)
