"""search_notes (contract 000b, 6 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.errors import InvalidInput
from commonplace.faces.notes.page import ROOM, Page, lengths, whole
from commonplace.faces.notes.words import address, lines, note_data, plural, short
from commonplace.faces.tool import Arguments, Reply
from commonplace.index.rows import Hit, Hits
from commonplace.query import Query, parse

if TYPE_CHECKING:
    from commonplace.engine import Memory

_WIDTHS = (200, 100, 50)
"""Characters of a snippet in the text; data holds it whole."""
_FILTERS = ("note_types", "tags", "categories", "status", "metadata_filters", "after_date")
_MEANS_TEXT = ("vector", "semantic", "hybrid")


def as_text_search(args: Arguments) -> Arguments:
    """Search types of other programs mean `text`."""
    if args.get("search_type") in _MEANS_TEXT:
        args["search_type"] = "text"
    return args


def search_notes(memory: Memory, args: Arguments) -> Reply:
    """The notes that match, best first; without query the newest that pass the filters."""
    page = Page.of(args, 100)
    words = args.get("query", "").strip()
    if "max_tokens" in args:
        whole(args, "max_tokens", 1)
    if not words and not any(args.get(name) for name in _FILTERS):
        raise InvalidInput(
            f"Parameter `query` must be a text unless one of {', '.join(_FILTERS)} is given; got nothing. "
            "recent_activity and list_directory list notes without a query."
        )
    query = _query(memory, args, words)
    hits = memory.search(query, limit=page.size, offset=page.offset, max_tokens=args.get("max_tokens"))
    if 0 < len(hits) < min(page.size, hits.total - page.offset):  # max_tokens took some away
        page = page.shorter(len(hits))
        hits.hits = hits.hits[: page.size]
    return _reply(args, page, hits, words)


def _query(memory: Memory, args: Arguments, words: str) -> Query:
    kind = args["search_type"]
    query = parse(words, now=memory.clock(), zone=memory.settings.zone) if kind != "permalink" else Query(text=words)
    named = [args["project"]] if args.get("project") is not None else args.get("projects")
    projects = tuple(memory.project(each).name for each in named) if named else None
    if projects and query.projects is not None:
        inside = {each.casefold() for each in query.projects}
        projects = tuple(each for each in projects if each.casefold() in inside)
    types = tuple(args.get("note_types", ()))
    if types and query.types:
        inside = {each.casefold() for each in query.types}
        types = tuple(each for each in types if each.casefold() in inside) or ("",)  # "" is no note's type
    since = memory.since(args["after_date"]) if args.get("after_date") is not None else None
    return query.replace(
        search_type=kind,
        projects=query.projects if projects is None else projects,
        types=types or query.types,
        tags=(*query.tags, *(each.lstrip("#") for each in args.get("tags", ()))),
        categories=(*query.categories, *args.get("categories", ())),
        status=args.get("status", query.status),
        metadata=args.get("metadata_filters", {}),
        after=max(filter(None, (since, query.after)), default=None),
    )


def _data(hit: Hit) -> dict[str, Any]:
    note = hit.note
    return {
        **note_data(note), "score": round(hit.score, 4), "snippet": hit.passage, "tags": list(note.tags),
        "date": note.date or note.created, "source": note.source, "why": hit.why,
    }  # fmt: skip


def _reply(args: Arguments, page: Page, hits: Hits, words: str) -> Reply:
    found, total, relaxed = hits.hits, hits.total, hits.relaxed
    entries = [_data(hit) for hit in found]
    for width in _WIDTHS:  # a long page shows shorter snippets before it shows fewer hits
        blocks = [_block(page.offset + n, hit, width) for n, hit in enumerate(found, 1)]
        if sum(map(len, blocks)) <= ROOM:
            break
    page = page.fitting(lengths(entries, blocks, args["as_json"]))
    entries, blocks = entries[: page.size], blocks[: page.size]
    about = f' for "{short(words, 200)}"' if words else ""
    head = f"# {plural(total, 'note')}{about}" + (" (relaxed: not all words)" if relaxed else "")
    hint = "" if total else "Try fewer or other words, search_type=title, or list_directory."
    data = {"query": words, "results": entries, **page.data(total, len(entries)), "relaxed": relaxed}
    return Reply(lines(head, *blocks, page.foot(total, len(entries)), hint), data)


def _block(number: int, hit: Hit, width: int) -> str:
    note = hit.note
    snippet = short(hit.passage, width)
    head = f"{number}. {short(note.title)} ({address(note)}), {note.type}, {(note.date or note.created)[:10]}"
    return f"{head}\n   {snippet}" if snippet else head
