"""The seven agent tools, and sessions that run batches of calls (contract 001, 13 and 14).

A batch is a list of tool calls, with a prompt if the client wants a context for it. A context is
the text of notes that fit the prompt.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memoranda import documents
from memoranda.clock import stamp
from memoranda.documents.wording import row_text
from memoranda.engine import overview, session_of
from memoranda.engine.contents import content_of, home_path
from memoranda.engine.telling.contested import with_leaders_first
from memoranda.errors import Ambiguous, InvalidInput, NotFound
from memoranda.faces import registry as registry_of
from memoranda.faces.arguments import Arguments
from memoranda.faces.reply import Reply, refused
from memoranda.faces.tool import Hooks, Registry, Subscription, function_of
from memoranda.note.model import CATEGORY_PROJECT, MEMORY_PROJECTS, TRACE_PROJECT, Draft
from memoranda.note.names import Looseness
from memoranda.query import day, memory_query

if TYPE_CHECKING:
    from memoranda.engine import HasSession, MemorySession
    from memoranda.index.rows import NoteInfo, ScoredMemory
    from memoranda.query import Query

_META_PREFIX = "memoranda/"
# The codes of errors about the arguments. They do not end a batch.
_ARGUMENT_ERROR_CODES = ("invalid", "timeframe")
# A context is made from this many hits, or from all hits if their texts are too short together.
_FIRST_HITS = 50
# The preview of a hit has at most this many characters.
_PREVIEW_CHARACTERS = 120
# Larger limits are not numbers of SQLite. No memory has as many notes.
_MAX_LIMIT = 1_000_000_000
_DRAFT_FIELDS = ("category", "scope", "tags", "source", "valid_from", "valid_until")


@dataclass(slots=True)
class Batch:
    """The calls and the prompt that a client sent.

    calls: each is `{"name", "params"}`. None if the client sent no calls.
    prompt: the query for the context. None if no context is wanted.
    """

    calls: list[dict[str, Any]] | None = None
    prompt: str | None = None


class Session:
    """Runs tool calls for the caller that `memory` is bound to.

    hooks: objects with some of `before_tool_call`, `after_tool_call` and `on_event`. The hooks of
        the entry points `memoranda.hooks` come first.
    tools: the names of the toolsets.
    registry: if given, it is used with its own hooks, and `hooks` and `tools` are ignored.
    """

    def __init__(
        self,
        memory: MemorySession | HasSession,
        hooks: Iterable[Any] = (),
        tools: Sequence[str] = ("agent",),
        registry: Registry | None = None,
    ):
        self.memory = session_of(memory)
        self.registry = registry or registry_of(
            tools, self.memory.settings, Hooks.configured(hooks, self.memory.clock)
        )
        self.context = ""
        """The text of the last `inject_context`."""

    def subscribe(self) -> Subscription:
        """Return a subscription that receives every event from now on (see Subscription)."""
        return self.registry.hooks.subscribe()

    def inject_context(self, query: str, max_tokens: int | None = None) -> str:
        """Set the context to the notes that fit `query` best, and return it.

        It has the contents of the notes that smart search finds, best first, one below the other,
        in at most `agent.context_chars` characters (contract 001, 14). It is "" if nothing is
        found. The owner's note comes before an unconfirmed one that says it supersedes it.

        max_tokens: with a number, the context is the best evidence for the question `query`, as
            `Memory.context` returns it, in at most this many tokens. None means the contents of
            notes, as above.
        """
        memory = self.memory
        if max_tokens is not None:
            self.context = memory.context_for(query, max_tokens=max_tokens)
        else:
            notes = _notes_for_context(memory, query)
            self.context = _context_of(memory, notes) if notes else ""
        return self.context

    def call(self, name: str, params: Any = None) -> Reply:
        """Run one tool. Every error becomes a reply, also for an unknown tool.

        params: the arguments; None for none.
        """
        return call_tool(self.registry, self.memory, name, {} if params is None else params)

    def run(self, calls: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Run calls `{"name", "params"}` in order. Each is returned with its `result`.

        A hard error (an unknown memory or tool, a call that a hook blocked, a disk that refuses)
        ends the batch: the last call returned has `error` in place of `result`. Raises InvalidInput
        before anything runs if one of them is not a call.
        """
        checked_calls = _read_calls(calls)
        results: list[dict[str, Any]] = []
        with self.registry.hooks.session():
            for call in checked_calls:
                reply = self.call(call["name"], call["params"])
                if ends_batch(reply):
                    results.append(call | {"error": reply.text})
                    break
                results.append(call | {"result": result_data(reply)})
        return results

    def run_batch(self, batch: Batch) -> dict[str, Any] | list[Any]:
        """Run a batch that is already parsed. Returns the same as `run_json`."""
        if batch.prompt is not None:
            self.inject_context(batch.prompt)
        results = self.run(batch.calls or [])
        if batch.prompt is None:
            if results:
                return {"tool_calls": results}
            return []
        return {"tool_calls": results, "context": self.context}

    def run_json(self, data: bytes | str) -> dict[str, Any] | list[Any]:
        """Run the batch in JSON that a client sent.

        data: an array of calls, or an object with `tool_calls` (or `calls`) and `prompt`.

        Returns `{"tool_calls": [...]}`, with `context` if there was a prompt. Without calls and
        prompt it returns []. Raises InvalidInput, before anything is run, for an invalid batch.
        """
        return self.run_batch(read_batch(data))


def _notes_for_context(memory: MemorySession, query: str) -> list[NoteInfo]:
    """Return the notes that smart search finds for a context, best first. [] if nothing is found.

    An agent may say that its note supersedes a note of the owner. As long as the owner has not
    confirmed it, the owner's note stays in the context, before the agent's note.
    """
    # The search leaves out superseded notes, except the owner's notes of this kind.
    filters = memory_query().replace(projects=_shown_projects(memory), upheld=memory.upheld_rows())
    try:
        result = memory.smart_search(query, _FIRST_HITS, filters, use=False)
        has_more_hits = result.total > len(result.best)
        # The size of a note is in bytes, and a character takes up to 4 bytes.
        room_in_bytes = 4 * memory.settings.context_chars
        is_surely_enough = sum(hit.note.size for hit in result.best) >= room_in_bytes
        # A few hits usually fill the room. If they may not, all hits are fetched.
        if has_more_hits and not is_surely_enough:
            result = memory.smart_search(query, top=0, filters=filters, use=False)
    except InvalidInput:
        # The query has nothing to look for.
        return []
    notes = [hit.note for hit in result.best]
    leader_rows = memory.upheld_leaders({note.row for note in notes})
    return with_leaders_first(notes, lambda note: note, leader_rows)


def _context_of(memory: MemorySession, notes: Sequence[NoteInfo]) -> str:
    """Return the contents of these notes, one below the other, until the room is used up.

    A note that may hold instructions somebody planted is left out. The other notes are counted as
    used.
    """
    room = memory.settings.context_chars
    text = ""
    shown_notes: list[NoteInfo] = []
    validity_marks = memory.validity_marks(notes)
    for note in notes:
        if len(text) >= room:
            break
        if memory.is_held_back(note):
            continue
        # Remarks come before the contents: `[valid until 2026-12-01, by claude] We ship on Friday`.
        remarks = [validity_marks[note.row]] if note.row in validity_marks else []
        author_words = _author_words(memory, note)
        content = row_text(note, content_of(memory, note))
        if author_words:
            # On a line of their own, words of an agent would be read without the remark.
            content = " ".join(content.split())
        remarks += author_words
        if text:
            text += "\n"
        if remarks:
            text += f"[{', '.join(remarks)}] "
        text += content
        shown_notes.append(note)
    memory.record_use(shown_notes)
    return text[:room]


def _author_words(memory: MemorySession, note: NoteInfo) -> list[str]:
    """Return the words on the author of a note, for a context.

    [] for a note that the owner wrote, confirmed or imported, and for the caller's own note: the
    contract fixes how these are shown (001, 14).
    """
    is_own = note.provenance.agent is not None and note.provenance.agent == memory.agent
    if is_own:
        return []
    return [mark.words for mark in overview.authors_named(memory, note)]


def read_batch(data: bytes | str) -> Batch:
    """Parse a batch in JSON (see `Session.run_json`). Blank data is an empty batch.

    Raises InvalidInput with the message `parse tool calls: …`.
    """
    try:
        value = parse_json(data) if data.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"parse tool calls: {error}") from None
    # An array has only calls. An object may also have a prompt.
    if isinstance(value, list):
        return Batch(_read_calls(value))
    if not isinstance(value, dict):
        raise InvalidInput("parse tool calls: neither an array nor an object")
    prompt = value.get("prompt")
    if prompt is not None and not isinstance(prompt, str):
        raise InvalidInput("parse tool calls: prompt must be a string")
    # The calls have one of two keys. A null is the same as no key.
    calls = value.get("tool_calls")
    if calls is None:
        calls = value.get("calls")
    if calls is None:
        return Batch(prompt=prompt or None)
    if not isinstance(calls, list):
        raise InvalidInput("parse tool calls: tool_calls must be an array")
    return Batch(_read_calls(calls), prompt or None)


def _read_calls(calls: Iterable[Any]) -> list[dict[str, Any]]:
    """Check calls `{"name", "params"}` and complete them. Raises InvalidInput for other values.

    `{"name": "memory_list"}` becomes `{"name": "memory_list", "params": {}}`.
    """
    checked_calls = []
    for number, call in enumerate(calls, 1):
        # A name that is not a text marks a value that is no call.
        name = None
        params = None
        if isinstance(call, Mapping):
            # A call without a name is answered as a call of an unknown tool.
            name = call.get("name", "")
            params = call.get("params")
        are_params_valid = params is None or isinstance(params, dict)
        if not isinstance(name, str) or not are_params_valid:
            form = '{"name": TEXT, "params": OBJECT}'
            raise InvalidInput(f"parse tool calls: call {number} is not of the form {form}")
        checked_calls.append({"name": name, "params": params or {}})
    return checked_calls


def parse_json(data: bytes | str) -> Any:
    """Parse UTF-8 JSON.

    Raises RecursionError and ValueError. NaN and numbers too large for a float raise ValueError, too,
    because JSON cannot express them in a reply.
    """
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    return _DECODER.decode(text)


def _refuse_number(text: str) -> Any:
    """Raise ValueError for `NaN`, `Infinity` or a number that is too large."""
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    """Parse a number. Raises ValueError if it is too large for a float."""
    value = float(text)
    if math.isfinite(value):
        return value
    return _refuse_number(text)


_DECODER = json.JSONDecoder(parse_constant=_refuse_number, parse_float=_finite)


def call_tool(registry: Registry, memory: MemorySession, name: str, arguments: Any) -> Reply:
    """Call a tool (see `Registry.call`).

    An unknown tool gives an error reply, with hooks and events.

    registry: the tools that are served.
    arguments: the arguments as the client sent them.
    """
    if name in registry.tools:
        return registry.call(memory, name, arguments)
    missing = registry.missing(name)
    return registry.hooks.call(memory.agent, name, arguments, lambda _: missing)


def ends_batch(reply: Reply) -> bool:
    """Whether a reply ends its batch: every error does, except errors about the arguments."""
    if not reply.is_error:
        return False
    code = (reply.data or {}).get("code", "invalid")
    return code not in _ARGUMENT_ERROR_CODES


def result_data(reply: Reply) -> dict[str, Any]:
    """Return a reply as `{"content", "is_error"}`, with `metadata` if it has any.

    `hint` of the metadata is the second text of a reply. Errors have none.
    """
    metadata = {}
    for key, value in (reply.meta or {}).items():
        if key.startswith(_META_PREFIX):
            metadata[key.removeprefix(_META_PREFIX)] = value
    if reply.hint and not reply.is_error:
        metadata["hint"] = reply.hint
    data = {"content": reply.text, "is_error": reply.is_error}
    if metadata:
        data["metadata"] = metadata
    return data


def tool_list(registry: Registry) -> list[dict[str, Any]]:
    """Return the tools of a registry, each as `{"name", "description", "schema"}`."""
    listed = []
    for tool in registry.tools.values():
        document = {
            "properties": tool.schema.get("properties", {}),
            "required": list(tool.schema.get("required", ())),
        }
        listed.append(
            {
                "name": tool.name,
                "description": tool.description,
                "schema": {"type": "object", **document},
            }
        )
    return listed


def answer(tool: str, memory: MemorySession, arguments: Arguments) -> Reply:
    """Run `tool` with arguments of the right types, and return its reply.

    Raises InvalidInput for wrong values.
    """
    try:
        run = function_of(tool, sys.modules[__name__])
        reply: Reply = run(memory, arguments)
        return reply
    except (NotFound, Ambiguous) as error:
        return refused(overview.complaint(error), error.code)


def _success_reply(value: Any, **metadata: Any) -> Reply:
    """Return the reply with `value` as compact JSON, or as it is if it is a text.

    Keys are sorted, and non-ASCII characters are not escaped.

    metadata: further data for the client.
    """
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    meta = {f"{_META_PREFIX}{key}": item for key, item in metadata.items()}
    return Reply(value, meta=meta or None)


def memory_write(memory: MemorySession, arguments: Arguments) -> Reply:
    """Store a memory, and reply with it."""
    if not arguments["content"].strip():
        raise InvalidInput("content is required")
    draft_fields = {name: arguments[name] for name in _DRAFT_FIELDS if name in arguments}
    superseded_ids = [memory.find_memory(ref).id for ref in arguments.get("supersedes", [])]
    draft = Draft(
        arguments["content"],
        project=CATEGORY_PROJECT,
        supersedes=superseded_ids,
        **draft_fields,
    )
    note = memory.write(draft)
    expires = stamp(note.expires) if note.expires else ""
    document = {"id": note.id, "phase": note.phase, "scope": note.scope, "expires": expires}
    reply = _success_reply(document, id=note.id)
    # The first call imports it: a server must answer the handshake quickly.
    from memoranda.engine.telling.contested import remark_for_agent

    reply.hint = remark_for_agent(memory, note.project, note.path)
    return reply


def memory_read(memory: MemorySession, arguments: Arguments) -> Reply:
    """Show a memory or note, as it is now or, with `as_of`, as it was then."""
    info = memory.find_any(arguments["id"])
    if "as_of" in arguments:
        info = memory.version_at(info, memory.as_of(arguments["as_of"]))
    is_named = info.project not in MEMORY_PROJECTS
    document = documents.read_note(memory, info, is_named=is_named)
    return _success_reply(document, provenance=info.provenance.row())


def memory_delete(memory: MemorySession, arguments: Arguments) -> Reply:
    """Delete a memory or note."""
    info = memory.find_any(arguments["id"], looseness=Looseness.EXACT)
    memory.delete(info)
    if info.project in MEMORY_PROJECTS:
        return _success_reply(f"memory {info.id} deleted")
    return _success_reply(f"note {home_path(info)} deleted")


def memory_list(memory: MemorySession, arguments: Arguments) -> Reply:
    """List the memories that pass the filters."""
    query = _query_of_filters(memory, arguments).replace(projects=None)
    limit = min(arguments["limit"], _MAX_LIMIT)
    infos = memory.list_filled(query, limit=limit).notes
    return _success_reply(documents.notes(memory, infos).rows, count=len(infos))


def memory_search(memory: MemorySession, arguments: Arguments) -> Reply:
    """List the memories that have a text and pass the filters."""
    zone = memory.settings.zone
    now = memory.clock()
    query = _query_of_filters(memory, arguments).replace(
        created_from=day(arguments.get("from"), "from", zone, now=now),
        created_until=day(arguments.get("to"), "to", zone, after=1, now=now),
    )
    infos, _ = memory.list(query.replace(contains=arguments["query"] or None), limit=0)
    return _success_reply(documents.notes(memory, infos).rows, count=len(infos))


def memory_tag(memory: MemorySession, arguments: Arguments) -> Reply:
    """Add and remove tags of a memory or note."""
    add = arguments.get("add", [])
    remove = arguments.get("remove", [])
    info = memory.find_any(arguments["id"], looseness=Looseness.CASE)
    note = memory.tag(info, add, remove)
    return _success_reply({"id": note.id, "tags": sorted(note.tags)})


def _scored_document(memory: MemorySession, hit: ScoredMemory) -> dict[str, Any]:
    """Return a memory of a smart search as JSON, with its score."""
    info = hit.note
    content = content_of(memory, info)
    preview = content
    if len(content) > _PREVIEW_CHARACTERS:
        preview = content[:_PREVIEW_CHARACTERS] + "..."
    document = {
        "id": info.id,
        "phase": info.phase,
        "category": info.category,
        "scope": info.scope,
        "source": info.source,
        "content": content,
        "tags": list(info.tags),
        "score": hit.score,
        "matched_tokens": hit.matched,
        "preview": preview,
    }
    if info.project not in MEMORY_PROJECTS:
        document |= documents.names(info)
    return document


def memory_smart_search(memory: MemorySession, arguments: Arguments) -> Reply:
    """Find the memories that fit a query best."""
    query = arguments["query"]
    result = memory.smart_search(
        query, min(arguments["top"], _MAX_LIMIT), _query_of_filters(memory, arguments)
    )
    marks = memory.validity_marks([hit.note for hit in result.best])
    results = []
    for hit in result.best:
        document = _scored_document(memory, hit)
        if hit.note.row in marks:
            document["validity"] = marks[hit.note.row]
        if hit.note.suspicious:
            document["suspicious"] = list(hit.note.suspicious)
        results.append(document)
    counts = {"returned": len(results), "tokens": result.tokens, "total_scored": result.total}
    return _success_reply({"query": query, "results": results, **counts}, count=len(results))


def _query_of_filters(memory: MemorySession, arguments: Arguments) -> Query:
    """Return the query for the filters in the arguments of a tool."""
    filters = {name: arguments.get(name) for name in ("phase", "category", "scope", "source")}
    as_of = memory.as_of(arguments["as_of"]) if "as_of" in arguments else None
    query = memory_query(**filters, tags=arguments.get("tags", ()))
    return query.replace(projects=_shown_projects(memory), as_of=as_of)


def _shown_projects(memory: MemorySession) -> tuple[str, ...]:
    """Return the names of all projects that the caller may use, except the traces of sessions."""
    names = [project.name for project in memory.projects]
    return tuple(name for name in names if name != TRACE_PROJECT)
