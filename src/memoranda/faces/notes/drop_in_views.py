"""What Basic Memory shows of its notes beside its note tools: files, connectors, prompts, a
project's numbers, schemas (contract 000b, 10). The words of the prompts are ours.

A schema is a note of type `schema`: its `entity` names a note type, its `schema` maps fields to
`type, description`; a field that ends in `?` may be missing, `(array)` stands behind one that may
occur more than once. A field is there when the note has an observation of that category or a
relation of that type.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from memoranda.errors import InvalidInput, MemorandaError, NotFound, OutsideError
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes.drop_in_reading import check_inside, missing_note, recent
from memoranda.faces.notes.drop_in_replies import data_reply, either, json_reply
from memoranda.faces.notes.replies import PROMPTS, TEMPLATE, project_id
from memoranda.faces.reply import Reply
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Prompt, Template
from memoranda.index.rows import NoteInfo
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.notes.drop_in_replies import Vault

_MIME = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "json": "application/json",
    "csv": "text/csv",
}
_IMAGES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
}
_MOST_BYTES = 350_000
# Share of notes that have a field: to suggest it, to require it
_USUAL = 0.25
_ALWAYS = 0.95


def read_content(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """A file as it is: text, or base64 of a picture or a document."""
    from memoranda.engine.plain_files import Files

    path = args["path"]
    project = args["project"]
    try:
        check_inside(path)
        info = memory.find(path, project)
        data = memory.file(info).data
        name = info.path
    except OutsideError:
        text = f"Path '{path}' is not allowed - paths must stay within project boundaries"
        return data_reply({"type": "error", "error": text})
    except NotFound:
        name = path.removeprefix("memory://").strip("/")
        try:
            data = Files(memory, project).read(name).data
        except MemorandaError:
            raise InvalidInput(f"Resource not found: {path}") from None
    ending = name.rpartition(".")[2].lower()
    if ending not in _IMAGES:
        try:
            text = data.decode("utf-8")
            kind = _MIME.get(ending, "text/plain")
        except UnicodeError:
            pass
        else:
            kind += "; charset=utf-8" if kind.startswith("text/") else ""
            return data_reply(
                {"type": "text", "text": text, "content_type": kind, "encoding": "utf-8"}
            )
    if len(data) > _MOST_BYTES:
        return data_reply(
            {
                "type": "error",
                "error": f"Document size {len(data)} bytes exceeds maximum allowed size",
            }
        )
    kind = _IMAGES.get(ending, "application/octet-stream")
    source = {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}
    return data_reply({"type": "image" if ending in _IMAGES else "document", "source": source})


def search(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """`search` for connectors that know only `search` and `fetch`."""
    hits = memory.search(Query(text=args["query"], projects=(args["project"],)), limit=10)
    rows = [
        {"id": hit.note.permalink, "title": hit.note.title, "url": hit.note.permalink}
        for hit in hits
    ]
    return _wrapped({"results": rows, "total_count": len(rows), "query": args["query"]})


def fetch(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """The note that `search` gave an id of."""
    name = args["id"]
    try:
        note = memory.read(name, project=args["project"])
    except NotFound:
        asked = {**args, "identifier": name, "output_format": "text"}
        missing = missing_note(asked, memory, vault.shown(args["project"])).text
        data = {
            "id": name,
            "title": name.rpartition("/")[2].replace("-", " ").title(),
            "text": missing,
            "url": name,
        }
        return _wrapped(data | {"metadata": {"error": "Document not found"}})
    data = {"id": name, "title": note.title, "text": note.text, "url": name}
    return _wrapped(data | {"metadata": {"format": "markdown"}})


def _wrapped(data: dict[str, Any]) -> Reply:
    """As connectors take it: a list of one text item that holds JSON."""
    return json_reply([{"type": "text", "text": json.dumps(data, ensure_ascii=False)}])


def prompts_of(vault: Vault) -> list[Prompt]:
    """Our prompts, and those that program has besides."""
    about = ("project", "Only this project; without it the default one", False)
    frame = ("timeframe", "How far back, e.g. 1d or 1 week", False)
    latest, start = (
        partial(_activity, vault, f"basic-memory-{name}.md") for name in ("recent", "start")
    )
    return [
        *PROMPTS,
        Prompt("recent_activity", "What changed lately in a project.", latest, [frame, about]),
        Prompt(
            "getting_started",
            "Show what the notes are for, and offer to write the first.",
            start,
            [about],
        ),
    ]


def _activity(vault: Vault, file: str, memory: MemorySession, args: dict[str, str]) -> str:
    """The text of `file` around what changed in a project."""
    project = vault.named(memory, {"project": args.get("project") or None})
    activity = recent(
        vault, memory, {"project": project, "timeframe": args.get("timeframe") or "7d"}
    ).text
    return text_file(file).format(project=vault.shown(project), activity=activity)


def templates_of(vault: Vault) -> list[Template]:
    """The numbers of a project, then our template of a note, which matches the same addresses."""
    uri = "memory://{workspace}/{project}/info"
    about = "A project in numbers: notes, observations, relations."
    return [
        Template(uri, "project_info", about, "application/json", partial(_info, vault)),
        replace(TEMPLATE, read=partial(_note, vault)),
    ]


def _note(vault: Vault, memory: MemorySession, variables: dict[str, str]) -> str:
    """A note's text; what its address begins with is a project, or a folder of the default one.
    Raises NotFound.
    """
    args = {"identifier": f"{variables['project']}/{variables['path']}"}
    project = vault.detected(memory, args) or vault.named(memory, args)
    return memory.read(args["identifier"], project=project).text


def _info(vault: Vault, memory: MemorySession, variables: dict[str, str]) -> str:
    """The numbers as JSON; a note whose address has this form is shown instead. Raises NotFound."""
    found = vault.known(memory, variables["project"])
    if found is None:
        return _note(
            vault,
            memory,
            {"project": variables["workspace"], "path": f"{variables['project']}/info"},
        )
    name, project = found
    infos = memory.list(Query(projects=(project.name,)), limit=0, order="path")[0]
    edges = [edge for info in infos for edge in memory.outgoing(info)]
    facts = [observation for info in infos for observation in memory.observations(info)]
    numbers: dict[str, Any] = {"total_entities": len(infos), "total_observations": len(facts)}
    numbers |= {"total_relations": len(edges), "note_types": Counter(info.type for info in infos)}
    numbers |= {"total_unresolved_relations": sum(edge.state != "resolved" for edge in edges)}
    numbers |= {"observation_categories": Counter(fact.category or "note" for fact in facts)}
    numbers |= {"relation_types": Counter(edge.type for edge in edges)}
    data = {
        "project_name": name,
        "project_path": str(project.root),
        "external_id": project_id(name),
    }
    return json.dumps(
        data | {"default_project": vault.shown(memory.default_project), "statistics": numbers},
        indent=2,
    )


def _of_type(memory: MemorySession, project: str, kind: str) -> list[NoteInfo]:
    return memory.list(Query(projects=(project,), types=(kind,)), limit=0, order="path")[0]


def _fields(memory: MemorySession, info: NoteInfo) -> Counter[str]:
    names = [observation.category or "note" for observation in memory.observations(info)]
    return Counter(
        [*names, *(edge.type for edge in memory.outgoing(info) if edge.type != "links_to")]
    )


def _schemas(memory: MemorySession, project: str) -> dict[str, dict[str, Any]]:
    """Note type -> the frontmatter of its schema note."""
    headers = [
        memory.read(each, count=False).header for each in _of_type(memory, project, "schema")
    ]
    return {str(header["entity"]).lower(): header for header in headers if header.get("entity")}


def _declared(header: dict[str, Any]) -> dict[str, bool]:
    """Field -> whether it is required."""
    fields = header.get("schema")
    if not isinstance(fields, dict):
        raise InvalidInput(
            f"The schema note for {header.get('entity')} has no mapping `schema` in its frontmatter."
        )
    return {
        str(name).partition("(")[0].rstrip("?").strip(): "?" not in str(name)
        for name in fields
        if not str(name).startswith("settings")
    }


def _error(args: Arguments, text: str) -> Reply:
    return either(args, {"error": text}, f"# {text}")


def schema_validate(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Whether a note, the notes of a type or all with a schema have what it requires."""
    project = args["project"]
    kind = args.get("note_type")
    schemas = _schemas(memory, args["project"])
    if args.get("identifier"):
        infos = [memory.find(args["identifier"], project)]
        kind = kind or infos[0].type
    elif kind:
        infos = _of_type(memory, project, kind)
    else:
        infos = [each for name in schemas for each in _of_type(memory, project, name)]
    if not schemas and not kind:
        return _error(args, "No schemas defined in this project")
    if not infos:
        return _error(args, f"No notes found of type '{kind}'")
    if kind and kind.lower() not in schemas:
        return _error(args, f"No schema found for type '{kind}'")
    results = []
    for info in infos:
        if info.type.lower() in schemas:
            header = schemas[info.type.lower()]
        else:
            header = schemas[str(kind).lower()]
        have = _fields(memory, info)
        missing = [
            name for name, required in _declared(header).items() if required and not have[name]
        ]
        said = [f"Missing required field: {name}" for name in missing]
        settings = header.get("settings")
        strict = isinstance(settings, dict) and settings.get("validation") == "strict"
        row = {
            "note_identifier": info.permalink,
            "schema_entity": header["entity"],
            "passed": not (said and strict),
        }
        results.append(row | {"warnings": [] if strict else said, "errors": said if strict else []})
    counts = {"total_notes": len(results), "total_entities": len(infos)}
    counts |= {"valid_count": sum(result["passed"] for result in results)}
    counts |= {
        f"{name}_count": sum(bool(result[f"{name}s"]) for result in results)
        for name in ("warning", "error")
    }
    rows = [
        f"# Schema Validation: {kind or 'all types'}\n\n{counts['valid_count']} of {len(results)} notes valid\n"
    ]
    for result in results:
        rows.append(
            f"- {result['note_identifier']}: {'; '.join(result['warnings'] + result['errors']) or 'valid'}"
        )
    return either(args, {"note_type": kind, **counts, "results": results}, "\n".join(rows))


def schema_infer(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """A schema from what the notes of a type have."""
    kind = args["note_type"]
    if args.get("threshold") is None:
        least = _USUAL
    else:
        least = args["threshold"]
    infos = _of_type(memory, args["project"], kind)
    shares = _shares(memory, infos)
    usual = {name: share for name, share in shares.items() if share >= least}
    if not infos:
        return _error(args, f"No notes found of type '{kind}'")
    if not usual:
        return _error(args, f"No schema pattern found for '{kind}' (threshold: {least:.0%})")
    required = [name for name, share in usual.items() if share >= _ALWAYS]
    optional = [name for name in usual if name not in required]
    suggested = {**dict.fromkeys(required, "string"), **{f"{name}?": "string" for name in optional}}
    data: dict[str, Any] = {
        "note_type": kind,
        "notes_analyzed": len(infos),
        "suggested_schema": suggested,
    }
    data |= {"suggested_required": required, "suggested_optional": optional}
    data["field_frequencies"] = [
        {"name": name, "percentage": round(share, 3)} for name, share in shares.items()
    ]
    data["excluded"] = [each for each in shares if each not in usual]
    head = [f"# Schema for {kind}, from {len(infos)} notes", "", f"entity: {kind}", "schema:"]
    return either(
        args, data, "\n".join([*head, *(f"  {name}: {type}" for name, type in suggested.items())])
    )


def _shares(memory: MemorySession, infos: list[NoteInfo]) -> dict[str, float]:
    counts = Counter(name for info in infos for name in _fields(memory, info))
    return {name: count / len(infos) for name, count in counts.most_common()}


def schema_diff(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """What the notes of a type have that its schema lacks, and the other way round."""
    kind = args["note_type"]
    header = _schemas(memory, args["project"]).get(kind.lower())
    if header is None:
        return _error(args, f"No schema found for type '{kind}'")
    infos = _of_type(memory, args["project"], kind)
    declared = _declared(header)
    shares = _shares(memory, infos)
    new = [name for name, share in shares.items() if name not in declared and share >= _USUAL]
    rare = [name for name in declared if shares.get(name, 0.0) < _USUAL]
    data = {"note_type": kind, "schema_found": True, "new_fields": [{"name": name} for name in new]}
    data |= {"dropped_fields": [{"name": name} for name in rare], "cardinality_changes": []}
    listed = [f"- not in the schema: {name} ({shares[name]:.0%} of notes)" for name in new]
    listed += [f"- rarely used: {name}" for name in rare]
    return either(args, data, "\n".join([f"# Schema drift: {kind}", "", *(listed or ["None."])]))


TOOLS = {
    run.__name__: run
    for run in (read_content, search, fetch, schema_validate, schema_infer, schema_diff)
}
