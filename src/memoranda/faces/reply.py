"""The reply of every tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memoranda.errors import Advice, MemorandaError
from memoranda.text.unicode import flat


@dataclass(slots=True)
class Reply:
    """The reply of a tool.

    text: the reply as readable text.
    data: the same reply as structured data. None means that the reply is text only.
    is_error: whether the call failed.
    meta: further data for the client, under keys with our prefix. None for none.
    hint: a second text for the model: what was not done, and what to do next. It is separate
        because contracts fix the words of `text`. "" for none.
    advice: a part of the text of an error, which names tools. None if the text has no such part.
    message: the sentence of an error whose `text` is in another form, such as JSON or Markdown.
        Otherwise "".
    """

    text: str
    data: dict[str, Any] | None = None
    is_error: bool = False
    meta: dict[str, Any] | None = None
    hint: str = ""
    advice: Advice | None = None
    message: str = ""

    def reword_advice(self) -> None:
        """Reword the advice in the text and the data for a reader who lacks its tools."""
        advice = self.advice
        if advice is None:
            return
        self.text = self.text.replace(advice.text, advice.otherwise)
        self.message = self.message.replace(advice.text, advice.otherwise)
        if self.data and "error" in self.data:
            self.data["error"] = self.data["error"].replace(advice.text, advice.otherwise)


def refused(text: str, code: str) -> Reply:
    """Return the reply that refuses a call. `code` is an error code of contract 000b, 8."""
    return Reply(text, {"error": text, "is_error": True, "code": code}, is_error=True)


def error_reply(error: MemorandaError) -> Reply:
    """Return the reply for an error, with its code, its hint and its suggestions (contract 000b, 8)."""
    reply = refused(flat(str(error)), error.code)
    assert reply.data is not None
    reply.hint = flat(error.hint)
    reply.advice = error.advice
    for key in ("suggestions", "candidates"):
        if hasattr(error, key):
            reply.data[key] = getattr(error, key)
    return reply


def plain_error_reply(error: MemorandaError) -> Reply:
    """Return the reply for an error in a toolset whose replies have no error code."""
    text = error.message_with_hint()
    data = {"error": text, "is_error": True}
    return Reply(text, data, is_error=True, advice=error.advice)
