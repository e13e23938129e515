"""`schema_validate`, `schema_infer` and `schema_diff` of Basic Memory: what the notes of a type have in common.

A schema is a note of type `schema`: its `entity` names a note type, its `schema` maps fields to `type, description`;
a field that ends in `?` may be missing, `(array)` stands behind one that may occur more than once. A field is there
when the note has an observation of that category or a relation of that type.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from commonplace.errors import InvalidInput
from commonplace.faces.arguments import Arguments
from commonplace.faces.notes.drop_in_replies import either
from commonplace.faces.reply import Reply
from commonplace.index.rows import NoteInfo
from commonplace.query import Query

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.notes.vault import Vault
    from commonplace.faces.tool import Tool

_USUAL, _ALWAYS = 0.25, 0.95  # share of notes that have a field: to suggest it, to require it


def _notes(memory: Memory, project: str, kind: str) -> list[NoteInfo]:
    return memory.list(Query(projects=(project,), types=(kind,)), limit=0, order="path")[0]


def _fields(memory: Memory, info: NoteInfo) -> Counter[str]:
    names = [each.category or "note" for each in memory.observations(info)]
    return Counter([*names, *(edge.type for edge in memory.outgoing(info) if edge.type != "links_to")])


def _schemas(memory: Memory, project: str) -> dict[str, dict[str, Any]]:
    """Note type -> the frontmatter of its schema note."""
    headers = [memory.read(each, count=False).header for each in _notes(memory, project, "schema")]
    return {str(each["entity"]).lower(): each for each in headers if each.get("entity")}


def _declared(header: dict[str, Any]) -> dict[str, bool]:
    """Field -> whether it is required."""
    fields = header.get("schema")
    if not isinstance(fields, dict):
        raise InvalidInput(f"The schema note for {header.get('entity')} has no mapping `schema` in its frontmatter.")
    return {
        str(name).partition("(")[0].rstrip("?").strip(): "?" not in str(name)
        for name in fields
        if not str(name).startswith("settings")
    }


def _error(args: Arguments, text: str) -> Reply:
    return either(args, {"error": text}, f"# {text}")


def validate(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    """Whether a note, the notes of a type or all with a schema have what it requires."""
    project, kind, schemas = args["project"], args.get("note_type"), _schemas(memory, args["project"])
    if args.get("identifier"):
        infos = [memory.find(args["identifier"], project)]
        kind = kind or infos[0].type
    elif kind:
        infos = _notes(memory, project, kind)
    else:
        infos = [each for name in schemas for each in _notes(memory, project, name)]
    if not schemas and not kind:
        return _error(args, "No schemas defined in this project")
    if not infos:
        return _error(args, f"No notes found of type '{kind}'")
    if kind and kind.lower() not in schemas:
        return _error(args, f"No schema found for type '{kind}'")
    results = []
    for info in infos:
        header = schemas[info.type.lower()] if info.type.lower() in schemas else schemas[str(kind).lower()]
        have = _fields(memory, info)
        missing = [name for name, required in _declared(header).items() if required and not have[name]]
        said = [f"Missing required field: {name}" for name in missing]
        settings = header.get("settings")
        strict = isinstance(settings, dict) and settings.get("validation") == "strict"
        row = {"note_identifier": info.permalink, "schema_entity": header["entity"], "passed": not (said and strict)}
        results.append(row | {"warnings": [] if strict else said, "errors": said if strict else []})
    counts = {"total_notes": len(results), "total_entities": len(infos)}
    counts |= {"valid_count": sum(each["passed"] for each in results)}
    counts |= {f"{name}_count": sum(bool(each[f"{name}s"]) for each in results) for name in ("warning", "error")}
    rows = [f"# Schema Validation: {kind or 'all types'}\n\n{counts['valid_count']} of {len(results)} notes valid\n"]
    for each in results:
        rows.append(f"- {each['note_identifier']}: {'; '.join(each['warnings'] + each['errors']) or 'valid'}")
    return either(args, {"note_type": kind, **counts, "results": results}, "\n".join(rows))


def infer(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    """A schema from what the notes of a type have."""
    kind, least = args["note_type"], _USUAL if args.get("threshold") is None else args["threshold"]
    infos = _notes(memory, args["project"], kind)
    shares = _shares(memory, infos)
    usual = {name: share for name, share in shares.items() if share >= least}
    if not infos:
        return _error(args, f"No notes found of type '{kind}'")
    if not usual:
        return _error(args, f"No schema pattern found for '{kind}' (threshold: {least:.0%})")
    required = [name for name, share in usual.items() if share >= _ALWAYS]
    optional = [name for name in usual if name not in required]
    suggested = {**dict.fromkeys(required, "string"), **{f"{name}?": "string" for name in optional}}
    data: dict[str, Any] = {"note_type": kind, "notes_analyzed": len(infos), "suggested_schema": suggested}
    data |= {"suggested_required": required, "suggested_optional": optional}
    data["field_frequencies"] = [{"name": name, "percentage": round(share, 3)} for name, share in shares.items()]
    data["excluded"] = [each for each in shares if each not in usual]
    head = [f"# Schema for {kind}, from {len(infos)} notes", "", f"entity: {kind}", "schema:"]
    return either(args, data, "\n".join([*head, *(f"  {name}: {type}" for name, type in suggested.items())]))


def _shares(memory: Memory, infos: list[NoteInfo]) -> dict[str, float]:
    counts = Counter(name for info in infos for name in _fields(memory, info))
    return {name: count / len(infos) for name, count in counts.most_common()}


def diff(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    """What the notes of a type have that its schema lacks, and the other way round."""
    kind = args["note_type"]
    header = _schemas(memory, args["project"]).get(kind.lower())
    if header is None:
        return _error(args, f"No schema found for type '{kind}'")
    infos, declared = _notes(memory, args["project"], kind), _declared(header)
    shares = _shares(memory, infos)
    new = [name for name, share in shares.items() if name not in declared and share >= _USUAL]
    rare = [name for name in declared if shares.get(name, 0.0) < _USUAL]
    data = {"note_type": kind, "schema_found": True, "new_fields": [{"name": name} for name in new]}
    data |= {"dropped_fields": [{"name": name} for name in rare], "cardinality_changes": []}
    listed = [f"- not in the schema: {name} ({shares[name]:.0%} of notes)" for name in new]
    listed += [f"- rarely used: {name}" for name in rare]
    return either(args, data, "\n".join([f"# Schema drift: {kind}", "", *(listed or ["None."])]))


TOOLS = {"schema_validate": validate, "schema_infer": infer, "schema_diff": diff}
