"""The JSON of Basic Memory's replies: its keys, its error codes, and the form of a reply."""

from __future__ import annotations

from typing import Any

from memoranda.documents.cutting import compact
from memoranda.errors import Conflict, MemorandaError, OutsideError
from memoranda.faces.arguments import Arguments
from memoranda.faces.reply import Reply
from memoranda.index.rows import NoteInfo
from memoranda.note.model import Note

UNNAMED: dict[str, Any] = {"title": None, "permalink": None, "file_path": None}
"""The identity of a note that does not exist."""
# Errors for which Basic Memory has a code. For other errors, `error` is the message.
_CODES: dict[type[MemorandaError], str] = {
    OutsideError: "SECURITY_VALIDATION_ERROR",
    Conflict: "NOTE_REVISION_CONFLICT",
}


class Refused(MemorandaError):
    """The refusal of a call with a code of Basic Memory.

    error: the code, which is `error` in the JSON.
    fields: further keys of the JSON.
    """

    code = "invalid"

    def __init__(self, error: str, message: str, **fields: Any):
        super().__init__(message)
        self.error = error
        self.fields = fields


def identity(note: Note | NoteInfo) -> dict[str, Any]:
    """Return the keys that name a note in every reply."""
    return {"title": note.title, "permalink": note.permalink, "file_path": note.path}


def error_fields(error: MemorandaError) -> dict[str, Any]:
    """Return the keys that say why a call failed. `error` is a code of Basic Memory or our message."""
    if isinstance(error, Refused):
        return {"error": error.error, **error.fields}
    fields: dict[str, Any] = {"error": _CODES.get(type(error), str(error))}
    if isinstance(error, Conflict):
        fields["currentChecksum"] = error.now
    return fields


def text_reply(text: str, is_error: bool = False) -> Reply:
    """Return a reply with a text, which Basic Memory also has as structured content.

    is_error: whether the reply says that the call failed.
    """
    return Reply(text, {"result": text}, is_error)


def json_reply(data: Any, is_error: bool = False) -> Reply:
    """Return a reply with data, which the text has as compact JSON.

    Clients of Basic Memory read the data from `result`, other clients from the keys.

    is_error: whether the reply says that the call failed.
    """
    structured = {"result": data}
    if isinstance(data, dict):
        structured = {**data, "result": data}
    return Reply(compact(data), structured, is_error)


def either(args: Arguments, data: Any, text: str, is_error: bool = False) -> Reply:
    """Return a reply with `data` if the caller asked for JSON, otherwise with `text`.

    is_error: whether the reply says that the call failed.
    """
    if is_json(args):
        return json_reply(data, is_error)
    return text_reply(text, is_error)


def is_json(args: Arguments) -> bool:
    """Whether the caller asked for JSON."""
    return args.get("output_format") == "json"
