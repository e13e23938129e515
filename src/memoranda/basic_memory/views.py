"""The other parts of Basic Memory: showing files, prompts, and the resource of a note."""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from memoranda.basic_memory.documents import text_reply
from memoranda.basic_memory.reading import check_inside, missing_note, recent_activity
from memoranda.basic_memory.texts import text_file
from memoranda.basic_memory.vault import Vault
from memoranda.documents.cutting import compact
from memoranda.errors import InvalidInput, MemorandaError, NotFound, OutsideError
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes.replies import PROMPTS, TEMPLATE
from memoranda.faces.reply import Reply
from memoranda.faces.tool import Prompt, Template

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

# Media types by extension.
_TEXT_TYPES = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "json": "application/json",
    "csv": "text/csv",
}
_IMAGE_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
}
# Basic Memory shows no larger file.
_MAX_BYTES = 350_000


def view_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Return a note with the request to show it to the user."""
    try:
        text = memory.read(args["identifier"], project=args["project"]).text
    except NotFound as error:
        return missing_note(vault, memory, args, error)
    head = "Show this note to the user as a Markdown artifact:"
    return text_reply(f"{head}\n\n<note>\n{text.strip()}\n</note>")


def read_content(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Return a file: as text, or as base64 if it is an image or is not UTF-8."""
    path = args["path"]
    try:
        check_inside(path)
        name, data = _file(memory, path, args["project"])
    except OutsideError:
        error = OutsideError(path, vault.shown(args["project"]))
        return _data_reply({"type": "error", "error": str(error)})
    extension = name.rpartition(".")[2].lower()
    is_image = extension in _IMAGE_TYPES
    if not is_image:
        with suppress(UnicodeError):
            return _data_reply(_text_data(extension, data.decode("utf-8")))
    if len(data) > _MAX_BYTES:
        sizes = f"{len(data)} bytes; at most {_MAX_BYTES} are shown"
        return _data_reply({"type": "error", "error": f"The file has {sizes}."})
    media_type = _IMAGE_TYPES.get(extension, "application/octet-stream")
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return _data_reply({"type": "image" if is_image else "document", "source": source})


def _text_data(extension: str, text: str) -> dict[str, Any]:
    """Return the data of a reply with the text of a file.

    extension: the extension of the file, without the dot.
    """
    media_type = _TEXT_TYPES.get(extension, "text/plain")
    if media_type.startswith("text/"):
        media_type += "; charset=utf-8"
    return {"type": "text", "text": text, "content_type": media_type, "encoding": "utf-8"}


def _file(memory: MemorySession, path: str, project: str) -> tuple[str, bytes]:
    """Read a note or another file. Return its path and its bytes. Raises OutsideError, InvalidInput."""
    from memoranda.engine.plain_files import Files

    try:
        info = memory.find(path, project)
    except NotFound:
        name = path.removeprefix("memory://").strip("/")
        try:
            return name, Files(memory, project).read(name).data
        except MemorandaError:
            raise InvalidInput(f"There is no file {path}.") from None
    return info.path, memory.file(info).data


def _data_reply(data: dict[str, Any]) -> Reply:
    """Return the reply of a tool that always replies with data."""
    return Reply(compact(data), data)


def prompts_of(vault: Vault) -> list[Prompt]:
    """Return the prompts: ours, and Basic Memory's `recent_activity` and `getting_started`."""
    project = ("project", "Only this project; without it the default one", False)
    frame = ("timeframe", "How far back, e.g. 1d or 1 week", False)
    recent = partial(_activity, vault, "recent.md")
    start = partial(_activity, vault, "start.md")
    about = "Show what the notes are for, and offer to write the first."
    return [
        *PROMPTS,
        Prompt("recent_activity", "What changed lately in a project.", recent, [frame, project]),
        Prompt("getting_started", about, start, [project]),
    ]


def _activity(vault: Vault, file: str, memory: MemorySession, args: dict[str, str]) -> str:
    """Fill in a prompt with the recent changes of a project.

    file: the name of the file with the text of the prompt.
    args: the arguments of the prompt.
    """
    project = vault.named(memory, {"project": args.get("project") or None})
    arguments = {"project": project, "timeframe": args.get("timeframe") or "7d"}
    activity = recent_activity(vault, memory, arguments | {"page": 1, "page_size": 10}).text
    return text_file(file).format(project=vault.shown(project), activity=activity)


def templates_of(vault: Vault) -> list[Template]:
    """Return our resource template of a note, whose address may leave out the project."""
    return [replace(TEMPLATE, read=partial(_note, vault))]


def _note(vault: Vault, memory: MemorySession, variables: dict[str, str]) -> str:
    """Return the text of a note by the variables of its address.

    `project` may also be a folder of the default project. Raises NotFound.
    """
    args = {"identifier": f"{variables['project']}/{variables['path']}"}
    project = vault.detected(memory, args) or vault.named(memory, args)
    return memory.read(args["identifier"], project=project).text
