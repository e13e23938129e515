"""What every tool answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from commonplace.errors import CommonplaceError
from commonplace.text.neutral import flat


@dataclass(slots=True)
class Reply:
    """What a tool answers: a readable text, and data that says the same by itself (None = text only). `meta` is what a
    client may show beside it, under keys with our prefix. `hint` is a second text beside one whose words a contract
    fixes: what was not done, and what to do next."""

    text: str
    data: dict[str, Any] | None = None
    is_error: bool = False
    meta: dict[str, Any] | None = None
    hint: str = ""


def error_reply(error: CommonplaceError) -> Reply:
    """The reply for an error of our tree: contract 000b, 8."""
    text = flat(str(error))
    data: dict[str, Any] = {"error": text, "is_error": True, "code": error.code}
    for key in ("suggestions", "candidates"):
        if hasattr(error, key):
            data[key] = getattr(error, key)
    return Reply(text, data, is_error=True)


def plain_error_reply(error: CommonplaceError) -> Reply:
    """The reply for an error of a toolset whose replies have no error code."""
    return Reply(str(error), {"error": str(error), "is_error": True}, is_error=True)
