"""The seven agent tools: arguments in, wording out (contract 001, 14)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from commonplace.clock import stamp
from commonplace.engine import overview
from commonplace.errors import Ambiguous, InvalidInput, NotFound
from commonplace.faces.arguments import Arguments
from commonplace.faces.reply import Reply, refused
from commonplace.note.model import CATEGORY_PROJECT, Draft
from commonplace.query import day, memory_query

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.query import Query

_PREVIEW = 120
_MOST = 1_000_000_000
_GIVEN = ("category", "scope", "tags", "source", "valid_from", "valid_until")


def answer(tool: str, memory: Memory, arguments: Arguments) -> Reply:
    """The reply of `tool` to arguments of the right types. Raises InvalidInput for values that are wrong."""
    try:
        return _TOOLS[tool](memory, arguments)
    except (NotFound, Ambiguous) as error:
        return refused(overview.complaint(error), error.code)


def _success(value: Any, **metadata: Any) -> Reply:
    """The reply with `value` as JSON without blanks, keys sorted, non-ASCII as it is; a text stands for itself."""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return Reply(value, meta={f"commonplace/{key}": each for key, each in metadata.items()} or None)


def _write(memory: Memory, arguments: Arguments) -> Reply:
    if not arguments["content"].strip():
        raise InvalidInput("content is required")
    given = {name: arguments[name] for name in _GIVEN if name in arguments}
    old = [memory.memory_id(each).id for each in arguments.get("supersedes", [])]
    note = memory.write(Draft(arguments["content"], project=CATEGORY_PROJECT, supersedes=old, **given))
    expires = stamp(note.expires) if note.expires else ""
    return _success({"id": note.id, "phase": note.phase, "scope": note.scope, "expires": expires}, id=note.id)


def _read(memory: Memory, arguments: Arguments) -> Reply:
    info = memory.memory_id(arguments["id"])
    if "as_of" in arguments:
        info = memory.version_at(info, memory.as_of(arguments["as_of"]))
    return _success(overview.read_record(memory, info), provenance=info.provenance.row())


def _delete(memory: Memory, arguments: Arguments) -> Reply:
    info = memory.memory_id(arguments["id"])
    memory.delete(info)
    return _success(f"memory {info.id} deleted")


def _list(memory: Memory, arguments: Arguments) -> Reply:
    infos, _ = memory.list(_query(memory, arguments), limit=min(arguments["limit"], _MOST), order="created")
    return _success(overview.records(memory, infos), count=len(infos))


def _search(memory: Memory, arguments: Arguments) -> Reply:
    zone, now = memory.settings.zone, memory.clock()
    wanted = _query(memory, arguments).replace(
        created_from=day(arguments.get("from"), "from", zone, now=now),
        created_until=day(arguments.get("to"), "to", zone, 1, now),
    )
    infos, _ = memory.list(wanted.replace(contains=arguments["query"] or None), limit=0, order="created")
    return _success(overview.records(memory, infos), count=len(infos))


def _tag(memory: Memory, arguments: Arguments) -> Reply:
    add, remove = arguments.get("add", []), arguments.get("remove", [])
    note = memory.tag(memory.memory_id(arguments["id"]), add, remove)
    return _success({"id": note.id, "tags": sorted(note.tags)})


def _smart_search(memory: Memory, arguments: Arguments) -> Reply:
    query = arguments["query"]
    found = memory.smart_search(query, min(arguments["top"], _MOST), _query(memory, arguments))
    results, marks = [], memory.validity_marks([each.note for each in found.best])
    for each in found.best:
        content, info = overview.content_of(memory, each.note), each.note
        hit = {name: getattr(info, name) for name in ("id", "phase", "category", "scope", "source")}
        hit |= {"content": content, "tags": list(info.tags), "score": each.score, "matched_tokens": each.matched}
        hit["preview"] = content if len(content) <= _PREVIEW else content[:_PREVIEW] + "..."
        hit |= {"validity": marks[info.row]} if info.row in marks else {}
        hit |= {"suspicious": list(info.suspicious)} if info.suspicious else {}
        results.append(hit)
    counts = {"returned": len(results), "tokens": found.tokens, "total_scored": found.total}
    return _success({"query": query, "results": results, **counts}, count=len(results))


def _query(memory: Memory, arguments: Arguments) -> Query:
    filters = {name: arguments.get(name) for name in ("phase", "category", "scope", "source")}
    as_of = memory.as_of(arguments["as_of"]) if "as_of" in arguments else None
    return memory_query(**filters, tags=arguments.get("tags", ())).replace(as_of=as_of)


_RUNS = (_write, _read, _delete, _list, _search, _tag, _smart_search)
_TOOLS: dict[str, Callable[[Memory, Arguments], Reply]] = {f"memory{run.__name__}": run for run in _RUNS}
