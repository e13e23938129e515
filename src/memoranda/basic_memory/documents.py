"""The JSON of Basic Memory's replies: its keys, and how a reply carries them."""

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
# Errors for which Basic Memory has a code; others are told in their own words.
_CODES: dict[type[MemorandaError], str] = {
    OutsideError: "SECURITY_VALIDATION_ERROR",
    Conflict: "NOTE_REVISION_CONFLICT",
}


class Refused(MemorandaError):
    """A call that the program refuses with a separate code, `error` in its JSON."""

    code = "invalid"

    def __init__(self, error: str, message: str, **fields: Any):
        super().__init__(message)
        self.error = error
        self.fields = fields


def identity(note: Note | NoteInfo) -> dict[str, Any]:
    """The keys that name a note in all its JSON."""
    return {"title": note.title, "permalink": note.permalink, "file_path": note.path}


def error_fields(error: MemorandaError) -> dict[str, Any]:
    """The keys that tell why a call was refused: a code of the program, or our sentence."""
    if isinstance(error, Refused):
        return {"error": error.error, **error.fields}
    fields: dict[str, Any] = {"error": _CODES.get(type(error), str(error))}
    if isinstance(error, Conflict):
        fields["currentChecksum"] = error.now
    return fields


def text_reply(text: str, is_error: bool = False) -> Reply:
    """A text, as the program wraps it in structured content."""
    return Reply(text, {"result": text}, is_error)


def json_reply(data: Any, is_error: bool = False) -> Reply:
    """Data, compact in the text.

    Clients of the program take it from `result`, others from the keys themselves.
    """
    structured = {"result": data}
    if isinstance(data, dict):
        structured = {**data, "result": data}
    return Reply(compact(data), structured, is_error)


def either(args: Arguments, data: Any, text: str, is_error: bool = False) -> Reply:
    """A reply with `data` if the caller asked for JSON, otherwise with `text`."""
    if is_json(args):
        return json_reply(data, is_error)
    return text_reply(text, is_error)


def is_json(args: Arguments) -> bool:
    """Whether the caller asked for JSON."""
    return args.get("output_format") == "json"
