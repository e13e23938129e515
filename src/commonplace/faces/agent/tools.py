"""The seven agent tools: arguments in, wording out (contract 001, 14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from commonplace.clock import stamp
from commonplace.engine import memories
from commonplace.errors import Ambiguous, InvalidInput, NotFound
from commonplace.faces.agent.given import Given
from commonplace.faces.agent.results import compact, failure, success
from commonplace.note.model import GLOBAL, Draft
from commonplace.query import day, memory_query

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces import Reply
    from commonplace.index.smart import Scored
    from commonplace.query import Query

_PREVIEW = 120


def answer(tool: str, memory: Memory, given: Any) -> Reply:
    """The reply of `tool`. Raises InvalidInput for arguments that are missing or wrong."""
    try:
        return _TOOLS[tool](memory, Given(given))
    except (NotFound, Ambiguous) as error:
        return failure(memories.complaint(error), error.code)


def _write(memory: Memory, given: Given) -> Reply:
    content = given.required("content")
    if not content.strip():
        raise InvalidInput("content is required")
    draft = Draft(
        content,
        project=memories.PROJECT,
        category=given.text("category"),
        scope=given.text("scope") or GLOBAL,
        tags=given.names("tags"),
        source=given.text("source"),
    )
    note = memory.write(draft)
    expires = stamp(note.expires) if note.expires else ""
    return success(compact({"id": note.id, "phase": note.phase, "scope": note.scope, "expires": expires}), id=note.id)


def _read(memory: Memory, given: Given) -> Reply:
    note = memory.read(memory.memory_id(given.required("id")))
    return success(compact(memories.record(memory, note, note.content)))


def _delete(memory: Memory, given: Given) -> Reply:
    info = memory.memory_id(given.required("id"))
    memory.delete(info)
    return success(f"memory {info.id} deleted")


def _list(memory: Memory, given: Given) -> Reply:
    limit = given.whole("limit", 50)
    infos, _ = memory.list(_wanted(given, "source"), limit=limit, order="created")
    return success(compact(memories.records(memory, infos)), count=len(infos))


def _search(memory: Memory, given: Given) -> Reply:
    query, zone = given.required("query"), memory.settings.zone
    wanted = _wanted(given, "tags").replace(
        created_from=day(given.text("from"), "from", zone), created_until=day(given.text("to"), "to", zone, after=1)
    )
    infos, _ = memories.holding(memory, wanted, query)
    return success(compact(memories.records(memory, infos)), count=len(infos))


def _tag(memory: Memory, given: Given) -> Reply:
    ref, add, remove = given.required("id"), given.names("add"), given.names("remove")
    note = memory.tag(memory.memory_id(ref), add, remove)
    return success(compact({"id": note.id, "tags": sorted(note.tags)}))


def _smart_search(memory: Memory, given: Given) -> Reply:
    query, top = given.required("query"), given.whole("top", 10)
    found = memory.smart_search(query, top, _wanted(given, "tags", "source"))
    results = [_hit(memory, each) for each in found.best]
    shown = {
        "query": query,
        "results": results,
        "returned": len(results),
        "tokens": found.tokens,
        "total_scored": found.total,
    }
    return success(compact(shown), count=len(results))


def _hit(memory: Memory, each: Scored) -> dict[str, Any]:
    content, info = memories.content_of(memory, each.note), each.note
    return {
        "id": info.id,
        "content": content,
        "phase": info.phase,
        "category": info.category,
        "scope": info.scope,
        "source": info.source,
        "tags": list(info.tags),
        "score": each.score,
        "matched_tokens": each.matched,
        "preview": content if len(content) <= _PREVIEW else content[:_PREVIEW] + "...",
    }


def _wanted(given: Given, *more: str) -> Query:
    """The filters: phase, category and scope, and those of `source` and `tags` the tool has."""
    return memory_query(
        phase=given.text("phase"),
        category=given.text("category"),
        scope=given.text("scope"),
        source=given.text("source") if "source" in more else None,
        tags=given.names("tags") if "tags" in more else (),
    )


_TOOLS: dict[str, Callable[[Memory, Given], Reply]] = {
    "memory_write": _write,
    "memory_read": _read,
    "memory_delete": _delete,
    "memory_list": _list,
    "memory_search": _search,
    "memory_tag": _tag,
    "memory_smart_search": _smart_search,
}
