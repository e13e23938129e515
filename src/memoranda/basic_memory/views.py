"""The other parts of Basic Memory: showing files, tools for connectors, prompts, and resources."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from memoranda.basic_memory.documents import json_reply, text_reply
from memoranda.basic_memory.reading import check_inside, missing_note, recent_activity
from memoranda.basic_memory.texts import text_file
from memoranda.basic_memory.vault import Vault
from memoranda.documents.cutting import compact
from memoranda.errors import InvalidInput, MemorandaError, NotFound, OutsideError
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes.replies import PROMPTS, TEMPLATE, project_id
from memoranda.faces.reply import Reply
from memoranda.faces.tool import Prompt, Template
from memoranda.query import Query

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
_MAX_HITS = 10


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
    ending = name.rpartition(".")[2].lower()
    if ending not in _IMAGE_TYPES:
        kind = _TEXT_TYPES.get(ending, "text/plain")
        if kind.startswith("text/"):
            kind += "; charset=utf-8"
        try:
            text = data.decode("utf-8")
        except UnicodeError:
            kind = "application/octet-stream"
        else:
            row = {"type": "text", "text": text, "content_type": kind, "encoding": "utf-8"}
            return _data_reply(row)
    if len(data) > _MAX_BYTES:
        sizes = f"{len(data)} bytes; at most {_MAX_BYTES} are shown"
        return _data_reply({"type": "error", "error": f"The file has {sizes}."})
    kind = _IMAGE_TYPES.get(ending, "application/octet-stream")
    source = {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}
    return _data_reply(
        {"type": "image" if ending in _IMAGE_TYPES else "document", "source": source}
    )


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


def search(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Find notes for connectors, which use only the tools `search` and `fetch`."""
    query = Query(text=args["query"], projects=(args["project"],))
    notes = [hit.note for hit in memory.search(query, limit=_MAX_HITS)]
    rows = [{"id": note.permalink, "title": note.title, "url": note.permalink} for note in notes]
    return _wrapped({"results": rows, "total_count": len(rows), "query": args["query"]})


def fetch(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Return the note with an id from `search`."""
    name = args["id"]
    try:
        note = memory.read(name, project=args["project"])
    except NotFound as error:
        title = name.rpartition("/")[2].replace("-", " ").title()
        row = {"id": name, "title": title, "text": str(error), "url": name}
        return _wrapped(row | {"metadata": {"error": "Document not found"}})
    row = {"id": name, "title": note.title, "text": note.text, "url": name}
    return _wrapped(row | {"metadata": {"format": "markdown"}})


def _wrapped(data: dict[str, Any]) -> Reply:
    """Return data in the form for connectors: a list with one text, which is JSON."""
    return json_reply([{"type": "text", "text": json.dumps(data, ensure_ascii=False)}])


def prompts_of(vault: Vault) -> list[Prompt]:
    """Return our prompts, and two that only the program has."""
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
    """Fill in a prompt with the recent changes of a project. `file` is the file of its text."""
    project = vault.named(memory, {"project": args.get("project") or None})
    arguments = {"project": project, "timeframe": args.get("timeframe") or "7d"}
    activity = recent_activity(vault, memory, arguments | {"page": 1, "page_size": 10}).text
    return text_file(file).format(project=vault.shown(project), activity=activity)


def templates_of(vault: Vault) -> list[Template]:
    """Return the resource templates: the numbers of a project, then our template of a note.

    An address of a note may also match the first, which then shows the note.
    """
    uri = "memory://{workspace}/{project}/info"
    about = "A project in numbers: notes, observations, relations."
    numbers = Template(
        uri, "project_info", about, "application/json", partial(_project_info, vault)
    )
    return [numbers, replace(TEMPLATE, read=partial(_note, vault))]


def _note(vault: Vault, memory: MemorySession, variables: dict[str, str]) -> str:
    """Return the text of a note by the variables of its address.

    `project` may also be a folder of the default project. Raises NotFound.
    """
    args = {"identifier": f"{variables['project']}/{variables['path']}"}
    project = vault.detected(memory, args) or vault.named(memory, args)
    return memory.read(args["identifier"], project=project).text


def _project_info(vault: Vault, memory: MemorySession, variables: dict[str, str]) -> str:
    """Return the numbers of a project as JSON.

    If there is no such project, return the note with this address. Raises NotFound.
    """
    name = vault.known_name(memory, variables["project"])
    if name is None:
        path = f"{variables['project']}/info"
        return _note(vault, memory, {"project": variables["workspace"], "path": path})
    project = vault.projects(memory)[name]
    infos, total = memory.list(Query(projects=(project.name,), order="path"), limit=0)
    edges = list(chain.from_iterable(map(memory.outgoing, infos)))
    facts = list(chain.from_iterable(map(memory.observations, infos)))
    statistics = {
        "total_entities": total,
        "total_observations": len(facts),
        "total_relations": len(edges),
        "note_types": Counter(info.type for info in infos),
        "total_unresolved_relations": sum(edge.state != "resolved" for edge in edges),
        "observation_categories": Counter(fact.category or "note" for fact in facts),
        "relation_types": Counter(edge.type for edge in edges),
    }
    data = {
        "project_name": name,
        "project_path": str(project.root),
        "external_id": project_id(name),
        "default_project": vault.shown(memory.default_project),
        "statistics": statistics,
    }
    return json.dumps(data, indent=2)
