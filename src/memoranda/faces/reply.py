"""The reply of every tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memoranda.errors import MemorandaError
from memoranda.text.unicode import flat


@dataclass(slots=True)
class Reply:
    """The reply of a tool.

    text: a readable text.
    data: data that says the same on its own. None means text only.
    meta: data that a client may show beside it, under keys with our prefix.
    hint: a second text, beside one whose words a contract fixes: what was not done, and what to do
        next.
    """

    text: str
    data: dict[str, Any] | None = None
    is_error: bool = False
    meta: dict[str, Any] | None = None
    hint: str = ""


def refused(text: str, code: str) -> Reply:
    """The reply that refuses a call, with the code of contract 000b, 8."""
    return Reply(text, {"error": text, "is_error": True, "code": code}, is_error=True)


def error_reply(error: MemorandaError) -> Reply:
    """The reply for an error of our tree: contract 000b, 8."""
    reply = refused(flat(str(error)), error.code)
    assert reply.data is not None
    reply.hint = flat(error.hint)
    reply.data |= {
        key: getattr(error, key) for key in ("suggestions", "candidates") if hasattr(error, key)
    }
    return reply


def plain_error_reply(error: MemorandaError) -> Reply:
    """The reply for an error of a toolset whose replies have no error code."""
    return Reply(str(error), {"error": str(error), "is_error": True}, is_error=True)
