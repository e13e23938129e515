"""The tools of Basic Memory that read and search, over our own.

In JSON, replies have the keys of Basic Memory. As text they are the replies of our tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.basic_memory.documents import (
    UNNAMED,
    either,
    identity,
    is_json,
    json_reply,
    text_reply,
)
from memoranda.basic_memory.vault import Vault
from memoranda.documents.wording import short
from memoranda.errors import InvalidInput, NotFound, OutsideError
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes import read_tools
from memoranda.faces.notes.replies import Page, body_of
from memoranda.faces.reply import Reply
from memoranda.index.rows import Hit, Hits, NoteInfo
from memoranda.note.links import slug
from memoranda.note.model import Observation
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.index.rows import Edge

Row = dict[str, Any]
KINDS = {"entity", "observation", "relation"}
# Notes searched at a time while a page of observations or relations is filled.
_BATCH_NOTES = 200
MOST_READ = 4_000
"""The largest number of notes searched for a page of their observations and relations."""
_PROSE = ("content", "matched_chunk")
# Characters of a note's text in a search result.
_CONTENT_CHARACTERS = 1000
# A longer path with `..` leads out of any project.
_MOST_CLIMBING_CHARACTERS = 2048
_FILTERS = ("note_types", "tags", "status", "metadata_filters", "categories", "after_date")
# Arguments about times written into observations, which are text here.
_FORMER_TIMES = ("valid_at", "valid_overlaps", "time_kind")


def read_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Show a note, some of its lines, or only its names, checksum and time."""
    is_ranged = _is_ranged(args)
    has_content = args.get("include_content") is not False
    if is_ranged and not has_content:
        raise InvalidInput("include_content=False cannot be combined with start_line/end_line.")
    info = _find_note(vault, memory, args)
    if isinstance(info, Reply):
        return info
    if not has_content:
        note = memory.read(info, count=False)
        data = identity(note) | {"checksum": note.checksum, "updated_at": info.changed}
        return either(args, data, "\n".join(f"{key}: {value}" for key, value in data.items()))
    if is_ranged:
        return _lines_of_note(memory, args, info)
    return _whole_note(memory, args, info)


def _find_note(vault: Vault, memory: MemorySession, args: Arguments) -> NoteInfo | Reply:
    """Find the note that a call of read_note names. If no note has the name, return the reply to give."""
    name = args["identifier"]
    project = args["project"]
    try:
        check_inside(name)
        return memory.find(name, project)
    except OutsideError as error:
        return _outside(vault, args, error)
    except NotFound as error:
        # A reply that describes an attachment, or the place of the note behind a symlink
        reply_or_place = read_tools.beside_notes(memory, name, project)
        if isinstance(reply_or_place, Reply):
            return reply_or_place
        if reply_or_place is None:
            return missing_note(vault, memory, args, error)
        return memory.find(reply_or_place)


def _is_ranged(args: Arguments) -> bool:
    """Whether only some lines of a note are asked for. Raises InvalidInput for impossible ones."""
    first = args.get("start_line")
    last = args.get("end_line")
    if last and last < (first or 1):
        raise InvalidInput(
            f"Parameter `end_line` must be at least `start_line`, {first or 1}; got {last}."
        )
    return bool(first or last)


def _whole_note(memory: MemorySession, args: Arguments, info: NoteInfo) -> Reply:
    """Show a whole note. JSON has its frontmatter only with `include_frontmatter`."""
    note = memory.read(info)
    content = note.text
    if not args.get("include_frontmatter"):
        content = note.text[note.body_at :].lstrip("\n")
    data = identity(note) | {"content": content, "frontmatter": note.header}
    return either(args, data | {"checksum": note.checksum}, note.text)


def check_inside(address: str) -> None:
    """Raise OutsideError for a path in a home folder (`~/a`), on another machine (`\\\\a`), or far up."""
    place = address.strip().removeprefix("memory://")
    # Shorter paths with `..` may lead to a note of the project
    climbs_far = ".." in address and len(address) > _MOST_CLIMBING_CHARACTERS
    if place.startswith(("~", "\\\\")) or climbs_far:
        raise OutsideError(address)


def _outside(vault: Vault, args: Arguments, error: OutsideError) -> Reply:
    """Return the reply for a path outside the project.

    error: the error with the path.
    """
    project = vault.shown(args["project"])
    text = str(OutsideError(short(error.path), project))
    data = {**UNNAMED, "content": None, "frontmatter": None}
    return either(args, data | {"error": "SECURITY_VALIDATION_ERROR", "message": text}, text)


def _lines_of_note(memory: MemorySession, args: Arguments, info: NoteInfo) -> Reply:
    """Show the lines of a note that the call asks for, as many as fit into a reply."""
    arguments = {
        "identifier": (info.project, info.path),
        "start_line": args.get("start_line") or 1,
        "end_line": args.get("end_line") or -1,
        "as_json": is_json(args),
    }
    reply = read_tools.read_note(memory, arguments)
    our_data = reply.data or {}
    first = our_data["start_line"]
    last = our_data["end_line"]
    total = our_data["total_lines"]
    data = {key: our_data[key] for key in UNNAMED} | {
        "content": our_data["content"].removesuffix("\n"),
        "frontmatter": our_data["frontmatter"],
        "start_line": first,
        "end_line": last,
        "total_lines": total,
        "has_more": last < total,
        "next_start_line": None,
        "next_end_line": None,
    }
    if last < total:
        # The next part has as many lines as this one
        line_count = last - first + 1
        data |= {"next_start_line": last + 1, "next_end_line": min(total, last + line_count)}
    return either(args, data, reply.text)


def missing_note(vault: Vault, memory: MemorySession, args: Arguments, error: NotFound) -> Reply:
    """Reply to read_note that a note does not exist, and suggest notes with words of its name."""
    name = args["identifier"]
    page = Page(args.get("page", 1), args.get("page_size", 10))
    words = name.removeprefix("memory://").replace("/", " ").strip()
    query = Query(text=words, projects=(args["project"],))
    hits = memory.search(query, limit=page.size, offset=page.offset)
    data: Row = dict.fromkeys([*UNNAMED, "content", "frontmatter"])
    data |= {"error": "NOTE_NOT_FOUND", "message": f"Note not found: {name}"}
    rows = [f"- {short(hit.note.title)} ({hit.note.permalink})" for hit in hits]
    if rows:
        data["related_results"] = [identity(hit.note) for hit in hits]
        rows = ["", "Notes that come near:", *rows]
    text = "\n".join([str(error), *rows])
    return either(args, data, text)


def list_directory(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """List the folders and notes of a folder. A missing folder counts as empty."""
    paging = {"page": args["page"], "page_size": args["page_size"]}
    try:
        reply = read_tools.list_directory(memory, args | {"as_json": is_json(args)})
    except NotFound as error:
        nothing = {"nodes": [], **paging, "total": 0, "has_more": False}
        return either(args, nothing, str(error))
    assert reply.data is not None
    listed = reply.data
    data = {
        "nodes": [_listing_row(entry) for entry in listed["entries"]],
        "page": listed["page"],
        "page_size": listed["page_size"],
        "total": listed["total"],
        "has_more": listed["more"],
    }
    return either(args, data, reply.text)


def _listing_row(entry: Row) -> Row:
    """Convert an entry of our listing to a row of Basic Memory's."""
    path = entry["path"]
    row = {"name": path.rpartition("/")[2], "directory_path": f"/{path}"}
    if entry["kind"] == "folder":
        return row | {"type": "directory"}
    row |= {"type": "file", "file_path": path, "updated_at": entry["changed"]}
    if entry["kind"] == "attachment":
        return row | {"title": None, "permalink": None, "content_type": entry["type"]}
    return row | {
        "title": entry["title"],
        "permalink": entry["permalink"],
        "content_type": "text/markdown",
        "note_type": "note",
    }


def search_notes(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Find notes. With `entity_types`, find observations and relations of the notes that match."""
    page = Page(args["page"], args["page_size"])
    search_arguments = _search_arguments(vault, memory, args)
    words = search_arguments["query"]
    if not words and not any(search_arguments.get(name) for name in _FILTERS):
        raise InvalidInput("Give a query or at least one filter.")
    search = RowSearch(
        memory=memory,
        query=read_tools.search_query(memory, search_arguments, words),
        kinds=_kinds(args),
        categories={name.casefold() for name in args.get("categories") or ()},
        is_compact=bool(args.get("compact")),
        prefixes=_prefixes(vault, memory, search_arguments),
    )
    if search.kinds == {"entity"}:
        found_page = _page_of_notes(search, words, page)
    else:
        found_page = _page_of_facts(search, page)
    data = {
        "results": found_page.rows,
        "current_page": page.number,
        "page_size": page.size,
        "total": found_page.total,
        "total_is_exact": found_page.is_exact,
        "has_more": found_page.has_more,
    }
    return either(args, data, found_page.text)


class _FoundPage(NamedTuple):
    """One page of results of search_notes.

    rows: the results on this page.
    total: the number of results on all pages that was counted.
    is_exact: whether this number is exact. If not, there may be more results.
    has_more: whether another page follows.
    text: the page as text.
    """

    rows: list[Row]
    total: int
    is_exact: bool
    has_more: bool
    text: str


def _page_of_notes(search: RowSearch, words: str, page: Page) -> _FoundPage:
    """Return a page of the notes that a search finds.

    words: the words of the query.
    """
    hits = search.memory.search(search.query, limit=page.size, offset=page.offset)
    is_exact = not hits.is_lower_bound
    return _FoundPage(
        rows=list(chain.from_iterable(map(search.rows_of, hits))),
        total=hits.total,
        is_exact=is_exact,
        has_more=page.end < hits.total or not is_exact,
        text=read_tools.search_text(search.memory, hits, words, page),
    )


def _page_of_facts(search: RowSearch, page: Page) -> _FoundPage:
    """Return a page of the observations and relations that a search finds."""
    # These are the facts of all pages up to this one, and at least one more if there is one.
    facts, is_exact = search.facts(page.end)
    rows = facts[page.offset : page.end]
    total = len(facts)
    lines = [f"- {short(row['title'])} ({row['permalink']})" for row in rows]
    return _FoundPage(
        rows=rows,
        total=total,
        is_exact=is_exact,
        has_more=page.end < total,
        text="\n".join([f"# {total} found", *lines]),
    )


def _search_arguments(vault: Vault, memory: MemorySession, args: Arguments) -> Arguments:
    """Convert the arguments of Basic Memory's search_notes to ours. Raises InvalidInput."""
    unused_names = [name for name in _FORMER_TIMES if args.get(name) is not None]
    if unused_names:
        raise InvalidInput(
            f"{unused_names[0]} is not used here: times in observations are text. Search for the "
            "words, or give as_of to search_notes for what held on a day."
        )
    our_arguments = dict(args)
    for name in ("tags", "note_types"):
        our_arguments[name] = _split_at_commas(our_arguments.get(name, []))
    if our_arguments.get("search_type") not in ("title", "permalink"):
        our_arguments["search_type"] = "text"
    our_arguments["query"] = _with_single_tags(our_arguments.get("query", "")).strip()
    if our_arguments.get("search_all_projects") or our_arguments.get("projects"):
        our_arguments["projects"] = _searched_projects(
            vault, memory, our_arguments.get("projects", [])
        )
        our_arguments.pop("project", None)
    return our_arguments


def _split_at_commas(texts: list[str]) -> list[str]:
    """Split texts at commas: `["a, b", "c"]` becomes `["a", "b", "c"]`."""
    parts = [part.strip() for part in ",".join(texts).split(",")]
    return [part for part in parts if part]


def _with_single_tags(words: str) -> str:
    """Replace `tag:a,b`, which means both tags in Basic Memory, by `tag:a tag:b`."""
    parts = []
    for word in words.split(" "):
        if word.startswith("tag:") and '"' not in word:
            parts += [f"tag:{tag}" for tag in word.removeprefix("tag:").split(",") if tag]
        else:
            parts.append(word)
    return " ".join(parts)


def _searched_projects(vault: Vault, memory: MemorySession, names: list[str]) -> list[str]:
    """Return our names of the projects to search, all projects if `names` is empty.

    Raises InvalidInput for unknown names.
    """
    projects = vault.projects(memory)
    if not names:
        return [project.name for project in projects.values()]
    our_names: list[str] = []
    unknown_names: list[str] = []
    for name in dict.fromkeys(names):
        known_name = vault.known_name(memory, name)
        if known_name is None:
            unknown_names.append(name)
        else:
            our_names.append(projects[known_name].name)
    if unknown_names:
        raise InvalidInput(
            f"Unknown project(s): {', '.join(unknown_names)}. "
            f"Available projects: {', '.join(projects)}"
        )
    return our_names


def _kinds(args: Arguments) -> set[str]:
    """Return the kinds of results to search for: the argument `entity_types`, or a default.

    By default, notes are searched, or observations if `categories` are given. Raises InvalidInput
    for a kind that is not in KINDS.
    """
    # Only observations have categories
    default_kind = "observation" if args.get("categories") else "entity"
    kinds = set(args.get("entity_types") or [default_kind])
    unknown_kinds = kinds - KINDS
    if unknown_kinds:
        names = ", ".join(unknown_kinds)
        raise InvalidInput(
            f"Invalid entity_types: {names}. They are entity, observation, relation."
        )
    return kinds


@dataclass(frozen=True, slots=True)
class RowSearch:
    """A search whose results are notes, observations or relations, each as one row.

    memory: the memory to search.
    query: selects the notes.
    kinds: the kinds of rows to return, from KINDS.
    categories: return only observations of these categories, folded. Empty means all.
    is_compact: whether to leave the text of notes out of the rows.
    prefixes: project -> the text to put in front of a path in compact rows.
    """

    memory: MemorySession
    query: Query
    kinds: set[str]
    categories: set[str]
    is_compact: bool
    prefixes: dict[str, str]

    def facts(self, needed: int) -> tuple[list[Row], bool]:
        """Return the rows of observations or relations that were found, and whether they are all.

        A matching note may have no observation or relation. So notes are searched in batches, the
        best first, until there are enough rows. At most MOST_READ notes are searched.

        needed: the search ends once there are more rows than this. The second value is then False.
        """
        rows: list[Row] = []
        notes_read = 0
        while True:
            hits, batch = self.memory.at_once(partial(self._batch, notes_read))
            rows += batch
            notes_read += len(hits)
            is_last_batch = len(hits) < _BATCH_NOTES
            if is_last_batch:
                return rows, True
            if len(rows) > needed or notes_read >= MOST_READ:
                return rows, False

    def _batch(self, offset: int) -> tuple[Hits, list[Row]]:
        """Return the hits from `offset` on, and their rows."""
        hits = self.memory.search(self.query, limit=_BATCH_NOTES, offset=offset)
        return hits, list(chain.from_iterable(map(self.rows_of, hits)))

    def rows_of(self, hit: Hit) -> Iterator[Row]:
        """Yield the rows of one note."""
        if "entity" in self.kinds:
            yield self._as_shown(hit, entity_row(self.memory, hit))
        if "observation" in self.kinds:
            for row in self._observation_rows(hit):
                yield self._as_shown(hit, row)
        if "relation" in self.kinds:
            for row in self._relation_rows(hit):
                yield self._as_shown(hit, row)

    def _observation_rows(self, hit: Hit) -> Iterator[Row]:
        """Yield the rows of a note's observations that are asked for."""
        for observation in self.memory.observations(hit.note):
            category = observation.category or "note"
            is_wanted = not self.categories or category.casefold() in self.categories
            if is_wanted and self._has_query_word(observation.content, category):
                yield _observation_row(hit, observation)

    def _relation_rows(self, hit: Hit) -> Iterator[Row]:
        """Yield the rows of a note's relations that are asked for."""
        for edge in self.memory.outgoing(hit.note):
            if self._has_query_word(f"{hit.note.title} → {edge.target}", edge.type):
                yield _relation_row(hit, edge)

    def _has_query_word(self, *texts: str) -> bool:
        """Whether one of the texts has a word of the query. True for a query without words."""
        words = self.query.text.replace('"', " ").casefold().split()
        text = "\n".join(texts).casefold()
        return not words or any(word in text for word in words)

    def _as_shown(self, hit: Hit, row: Row) -> Row:
        """Return a row as the caller wants it. A compact row has no text of the note.

        hit: the note that the row is about.
        row: the row with all its keys.
        """
        if not self.is_compact:
            return row
        compact_row = {key: value for key, value in row.items() if key not in _PROSE}
        if row["type"] == "observation":
            # Title and permalink of an observation have its text
            compact_row["title"] = row["category"]
            compact_row["permalink"] = self.prefixes.get(hit.note.project, "") + row["file_path"]
        return compact_row


def entity_row(memory: MemorySession, hit: Hit) -> Row:
    """Return the row of a note that a search found."""
    note = hit.note
    body, _ = body_of(memory, note)
    return {
        "title": note.title,
        "type": "entity",
        "permalink": note.permalink,
        "matched_chunk": hit.passage,
        **_found_in(hit),
        "content": body[:_CONTENT_CHARACTERS],
        "metadata": {"note_type": note.type, "tags": list(note.tags)},
    }


def _observation_row(hit: Hit, observation: Observation) -> Row:
    """Return the row for one observation.

    hit: the note that has the observation.
    """
    text = observation.content
    category = observation.category or "note"
    name = short(text, 60).lower().replace(" ", "-")
    return {
        "title": f"{category}: {short(text)}",
        "type": "observation",
        "permalink": f"{hit.note.permalink}/observations/{category}/{name}",
        **_found_in(hit),
        "content": text,
        "matched_chunk": text,
        "category": category,
    }


def _relation_row(hit: Hit, edge: Edge) -> Row:
    """Return the row for one relation.

    hit: the note that has the relation.
    edge: the relation, with the note it leads to.
    """
    title = f"{hit.note.title} → {edge.target}"
    # None if no note has the name that the relation leads to
    target_permalink = edge.note.permalink if edge.note else None
    return {
        "title": title,
        "type": "relation",
        "permalink": f"{hit.note.permalink}/{edge.type}/{target_permalink or edge.target}",
        "matched_chunk": title,
        **_found_in(hit),
        "content": edge.context or "",
        "from_entity": hit.note.permalink,
        "to_entity": target_permalink,
        "relation_type": edge.type,
    }


def _found_in(hit: Hit) -> Row:
    """Return the keys that every row has of its note."""
    note = hit.note
    return {
        "score": round(hit.score, 4),
        "file_path": note.path,
        "updated_at": note.changed,
        "external_id": note.id,
        "entity": note.permalink,
        "created_at": note.created,
    }


def _prefixes(vault: Vault, memory: MemorySession, search_arguments: Arguments) -> dict[str, str]:
    """Return the text before a path in compact rows, by our name of the project.

    Empty if only one project is searched.

    search_arguments: the arguments of the search.
    """
    if "project" in search_arguments:
        return {}
    return {project.name: f"{slug(name)}/" for name, project in vault.projects(memory).items()}


def build_context(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Show the notes at an address with related notes. The reply is JSON unless text is asked for."""
    url = args["url"].strip()
    _check_url(url)
    page = Page(args["page"], args["page_size"])
    depth = max(args["depth"], 1)
    frame = args.get("timeframe")
    since = memory.since(at_least_a_day(frame)) if frame else None
    try:
        infos, total = read_tools.notes_at(memory, url, args["project"], page)
    except NotFound:
        infos, total = [], 0
    if args.get("output_format") == "text" and not total:
        return text_reply(f"No note is at {url}. Find one with search_notes.")
    if args.get("output_format") == "text":
        # The text is that of our own tool, without the time frame.
        our_arguments = args | {"url": url, "depth": depth, "as_json": False}
        our_arguments.pop("timeframe", None)
        return text_reply(read_tools.build_context(memory, our_arguments).text)

    is_compact = bool(args.get("compact"))
    entries = [
        _context_entry(
            memory,
            info,
            depth=depth,
            since=since,
            max_related=args["max_related"],
            is_compact=is_compact,
        )
        for info in infos
    ]
    related_count = sum(len(entry["related_results"]) for entry in entries)
    # A compact entry has no observations.
    observation_count = sum(len(entry.get("observations", ())) for entry in entries)
    metadata = {
        "uri": url.removeprefix("memory://"),
        "depth": depth,
        "timeframe": frame,
        "primary_count": len(entries),
        "related_count": related_count,
        "total_results": len(entries) + related_count,
        "total_observations": observation_count,
    }
    paging = {"page": page.number, "page_size": page.size, "has_more": page.end < total}
    return json_reply({"results": entries, "metadata": metadata, **paging})


def _check_url(url: str) -> None:
    """Raise InvalidInput for an invalid address."""
    if "://" in url and not url.startswith("memory://"):
        raise InvalidInput(f"An address begins with memory:// or with a name: {url}")
    address_without_scheme = url.removeprefix("memory://")
    if not address_without_scheme:
        raise InvalidInput("The address is empty.")
    if "//" in address_without_scheme:
        raise InvalidInput(f"An address has no double slashes: {url}")
    forbidden_signs = [sign for sign in '<>"|?' if sign in address_without_scheme]
    if forbidden_signs:
        raise InvalidInput(f"An address does not hold {''.join(forbidden_signs)}: {url}")


def _context_entry(
    memory: MemorySession,
    info: NoteInfo,
    depth: int,
    since: datetime | None,
    max_related: int,
    is_compact: bool,
) -> Row:
    """Return a note with its observations and related notes, as build_context shows them.

    memory: the memory that has the note.
    info: the note.
    depth: how many links away related notes may be.
    since: only related notes changed since then. None means all.
    max_related: the largest number of related notes and relations.
    is_compact: whether to leave out the text and the observations.
    """
    context = memory.context(info, depth=depth, since=since, limit=max_related)
    primary = _entity(info)
    related_rows = [_context_edge(info, edge) for edge in context.edges]
    related_rows += [_entity(reached.note) for reached in context.reached]
    related_rows = related_rows[:max_related]
    if is_compact:
        return {"primary_result": primary, "related_results": related_rows}
    observations = [
        {
            "type": "observation",
            "category": observation.category or "note",
            "content": observation.content,
            "file_path": info.path,
            "created_at": info.created,
        }
        for observation in context.observations
    ]
    primary["content"], _ = body_of(memory, info)
    return {
        "primary_result": primary,
        "observations": observations,
        "related_results": related_rows,
    }


def _context_edge(info: NoteInfo, edge: Edge) -> Row:
    """Return a relation of a note, as build_context shows it.

    info: the note.
    edge: its relation, or a relation of another note to it.
    """
    if edge.direction == "out":
        target_title = edge.note.title if edge.note else None
        ends = {"from_entity": info.title, "to_entity": target_title, "to_name": edge.target}
    else:
        ends = {"from_entity": edge.target, "to_entity": info.title, "to_name": info.title}
    # No note may have the name that the relation leads to
    end = edge.note.permalink if edge.note else edge.target
    return {
        "type": "relation",
        "title": edge.type,
        "relation_type": edge.type,
        **ends,
        "file_path": info.path,
        "created_at": info.created,
        "permalink": f"{info.permalink}/{edge.type}/{end}",
    }


def _entity(info: NoteInfo) -> Row:
    """Return a note, as build_context shows it."""
    return {
        "type": "entity",
        "external_id": info.id,
        **identity(info),
        "created_at": info.created,
        "updated_at": info.changed,
    }


def at_least_a_day(frame: str) -> str:
    """Return a time frame, `1d` for `0d`: Basic Memory looks back at least one day."""
    if frame.strip().lower() in ("0d", "0 days"):
        return "1d"
    return frame


def recent_activity(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """List the notes changed in a time frame. With `type`, list their observations and relations."""
    frame = at_least_a_day(args["timeframe"])
    page = Page(args["page"], args["page_size"])
    kinds = {kind.lower() for kind in args.get("type") or () if kind} or {"entity"}
    unknown_kinds = kinds - KINDS
    if unknown_kinds:
        names = ", ".join(unknown_kinds)
        raise InvalidInput(f"Invalid type: {names}. Valid types: entity, observation, relation.")
    # The text is that of our own tool, which knows no `type`, with the facts below it.
    our_arguments = args | {"timeframe": frame, "as_json": False}
    our_arguments.pop("type", None)
    text = read_tools.recent_activity(memory, our_arguments).text

    query = Query(projects=(args["project"],), after=memory.since(frame))
    infos, _ = memory.list(query, limit=page.size, offset=page.offset)
    rows = [_recent_row(info) for info in infos if "entity" in kinds]
    facts: list[Any] = []
    for info in infos:
        facts += _recent_facts(memory, info, kinds)
    if is_json(args):
        return json_reply(rows + facts)
    return text_reply("\n".join([text, *(f"- {row['title']}" for row in facts)]))


def _recent_facts(memory: MemorySession, info: NoteInfo, kinds: set[str]) -> Iterator[Row]:
    """Yield the observations and relations of a note, as recent_activity lists them.

    kinds: which of the two: `observation`, `relation`, or both.
    """
    place = {"permalink": info.permalink, "file_path": info.path, "created_at": info.created}
    if "observation" in kinds:
        for observation in memory.observations(info):
            yield {"type": "observation", "title": observation.content, **place}
    if "relation" in kinds:
        for edge in memory.outgoing(info):
            title = f"[[{info.title}]] → {edge.type} → [[{edge.target}]]"
            yield {"type": "relation", "title": title, **place}


def _recent_row(info: NoteInfo) -> Row:
    """Return a note, as recent_activity lists it."""
    return {"type": "entity", **identity(info), "created_at": info.created}
