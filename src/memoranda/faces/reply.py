"""The reply of every tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memoranda.errors import MemorandaError
from memoranda.text.unicode import flat


@dataclass(slots=True)
class Reply:
    """The reply of a tool.

    text: the reply as readable text.
    data: the same reply as structured data. None means that the reply is text only.
    meta: further data for the client, under keys with our prefix.
    hint: a second text for the model: what was not done, and what to do next. It is separate since
        contracts fix the words of `text`.
    """

    text: str
    data: dict[str, Any] | None = None
    is_error: bool = False
    meta: dict[str, Any] | None = None
    hint: str = ""


def refused(text: str, code: str) -> Reply:
    """Return the reply that refuses a call. `code` is an error code of contract 000b, 8."""
    return Reply(text, {"error": text, "is_error": True, "code": code}, is_error=True)


def error_reply(error: MemorandaError) -> Reply:
    """Return the reply for an error, with its code, its hint and its suggestions (contract 000b, 8)."""
    reply = refused(flat(str(error)), error.code)
    assert reply.data is not None
    reply.hint = flat(error.hint)
    reply.data |= {
        key: getattr(error, key) for key in ("suggestions", "candidates") if hasattr(error, key)
    }
    return reply


def plain_error_reply(error: MemorandaError) -> Reply:
    """Return the reply for an error in a toolset whose replies have no error code."""
    return Reply(str(error), {"error": str(error), "is_error": True}, is_error=True)
