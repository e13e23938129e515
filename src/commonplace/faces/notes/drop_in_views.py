"""What Basic Memory shows of its notes beside its note tools: files, connectors, prompts, a project's numbers
(contract 000b, 10). The words of the prompts are ours."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError, InvalidInput, NotFound, OutsideError
from commonplace.faces.arguments import Arguments
from commonplace.faces.notes import prompts
from commonplace.faces.notes.drop_in_reading import check_inside, missing_note, recent
from commonplace.faces.notes.drop_in_replies import data_reply, json_reply
from commonplace.faces.notes.replies import project_id
from commonplace.faces.reply import Reply
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Prompt, Template
from commonplace.note.links import slug
from commonplace.query import Query

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.notes.vault import Vault
    from commonplace.faces.tool import Tool

_MIME = {"md": "text/markdown", "markdown": "text/markdown", "json": "application/json", "csv": "text/csv"}
_IMAGES = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif"}
_MOST_BYTES = 350_000


def read_content(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    """A file as it is: text, or base64 of a picture or a document."""
    from commonplace.engine.plain_files import Files

    path, project = args["path"], args["project"]
    try:
        check_inside(path)
        info = memory.find(path, project)
        data, name = memory.file(info).data, info.path
    except OutsideError:
        text = f"Path '{path}' is not allowed - paths must stay within project boundaries"
        return data_reply({"type": "error", "error": text})
    except NotFound:
        name = path.removeprefix("memory://").strip("/")
        try:
            data = Files(memory, project).read(name).data
        except CommonplaceError:
            raise InvalidInput(f"Resource not found: {path}") from None
    ending = name.rpartition(".")[2].lower()
    if ending not in _IMAGES:
        try:
            text, kind = data.decode("utf-8"), _MIME.get(ending, "text/plain")
        except UnicodeError:
            pass
        else:
            kind += "; charset=utf-8" if kind.startswith("text/") else ""
            return data_reply({"type": "text", "text": text, "content_type": kind, "encoding": "utf-8"})
    if len(data) > _MOST_BYTES:
        return data_reply({"type": "error", "error": f"Document size {len(data)} bytes exceeds maximum allowed size"})
    kind = _IMAGES.get(ending, "application/octet-stream")
    source = {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}
    return data_reply({"type": "image" if ending in _IMAGES else "document", "source": source})


def search(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    """`search` for connectors that know only `search` and `fetch`."""
    hits = memory.search(Query(text=args["query"], projects=(args["project"],)), limit=10)
    rows = [{"id": hit.note.permalink, "title": hit.note.title, "url": hit.note.permalink} for hit in hits]
    return _wrapped({"results": rows, "total_count": len(rows), "query": args["query"]})


def fetch(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    """The note that `search` gave an id of."""
    name = args["id"]
    try:
        note = memory.read(name, project=args["project"])
    except NotFound:
        asked = {**args, "identifier": name, "output_format": "text"}
        missing = missing_note(asked, memory, vault.shown(args["project"])).text
        data = {"id": name, "title": name.rpartition("/")[2].replace("-", " ").title(), "text": missing, "url": name}
        return _wrapped(data | {"metadata": {"error": "Document not found"}})
    data = {"id": name, "title": note.title, "text": note.text, "url": name}
    return _wrapped(data | {"metadata": {"format": "markdown"}})


def _wrapped(data: dict[str, Any]) -> Reply:
    """As connectors take it: a list of one text item that holds JSON."""
    return json_reply([{"type": "text", "text": json.dumps(data, ensure_ascii=False)}])


TOOLS = {"read_content": read_content, "search": search, "fetch": fetch}


def prompts_of(vault: Vault) -> list[Prompt]:
    """Our prompts, and those that program has besides."""
    about = ("project", "Only this project; without it the default one", False)
    frame = ("timeframe", "How far back, e.g. 1d or 1 week", False)
    latest, start = (partial(_activity, vault, f"basic-memory-{name}.md") for name in ("recent", "start"))
    return [
        *prompts.PROMPTS,
        Prompt("recent_activity", "What changed lately in a project.", latest, [frame, about]),
        Prompt("getting_started", "Show what the notes are for, and offer to write the first.", start, [about]),
    ]


def _activity(vault: Vault, file: str, memory: Memory, args: dict[str, str]) -> str:
    """The text of `file` around what changed in a project."""
    project = vault.named(memory, {"project": args.get("project") or None})
    name = vault.shown(project)
    activity = recent({"project": project, "timeframe": args.get("timeframe") or "7d"}, memory, name).text
    return text_file(file).format(project=name, activity=activity)


def templates_of(vault: Vault) -> list[Template]:
    """The numbers of a project, then our template of a note, which matches the same addresses."""
    uri, about = "memory://{workspace}/{project}/info", "A project in numbers: notes, observations, relations."
    return [
        Template(uri, "project_info", about, "application/json", partial(_info, vault)),
        replace(prompts.TEMPLATE, read=partial(_note, vault)),
    ]


def _note(vault: Vault, memory: Memory, variables: dict[str, str]) -> str:
    """A note's text; what its address begins with is a project, or a folder of the default one. Raises NotFound."""
    args = {"identifier": f"{variables['project']}/{variables['path']}"}
    project = vault.detected(memory, args) or vault.named(memory, args)
    return memory.read(args["identifier"], project=project).text


def _info(vault: Vault, memory: Memory, variables: dict[str, str]) -> str:
    """The numbers as JSON; a note whose address has this form is shown instead. Raises NotFound."""
    found = [pair for pair in vault.projects(memory) if slug(pair[0]) == slug(variables["project"])]
    if not found:
        return _note(vault, memory, {"project": variables["workspace"], "path": f"{variables['project']}/info"})
    name, project = found[0]
    infos = memory.list(Query(projects=(project.name,)), limit=0, order="path")[0]
    edges = [edge for info in infos for edge in memory.outgoing(info)]
    facts = [one for info in infos for one in memory.observations(info)]
    numbers: dict[str, Any] = {"total_entities": len(infos), "total_observations": len(facts)}
    numbers |= {"total_relations": len(edges), "note_types": Counter(each.type for each in infos)}
    numbers |= {"total_unresolved_relations": sum(edge.state != "resolved" for edge in edges)}
    numbers |= {"observation_categories": Counter(each.category or "note" for each in facts)}
    numbers |= {"relation_types": Counter(edge.type for edge in edges)}
    data = {"project_name": name, "project_path": str(project.root), "external_id": project_id(name)}
    return json.dumps(data | {"default_project": vault.shown(memory.default_project), "statistics": numbers}, indent=2)
