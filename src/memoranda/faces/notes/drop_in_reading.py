"""The replies of the note tools that read, in Basic Memory's words and JSON keys (contract 000b,
10).

Times written into observations, `@effective[2026-06-10,2026-07-27)`, `@due:2026-07-27`, are a
filter of its search_notes only; to our own tools such a mark is text (contract 000b, 3.2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from memoranda.errors import InvalidInput, NotFound, OutsideError
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes.drop_in_replies import (
    bounded,
    either,
    identity,
    is_json,
    json_reply,
    paged,
    text_reply,
)
from memoranda.faces.notes.read_tools import search_query
from memoranda.faces.notes.replies import body_of, day, short
from memoranda.faces.reply import Reply
from memoranda.index.rows import Hit, Hits, NoteInfo
from memoranda.note.links import slug
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.notes.drop_in_replies import Vault

_KINDS = {"entity", "observation", "relation"}
_MARK = re.compile(r"(?:^|\s)@(\w+)(?::(\S+)|([\[(][^\[\]()]*[\])]))")
_RANGE = re.compile(r"([\[(])\s*([^,]*?)\s*,\s*([^,]*?)\s*([\])])")
_DAY = timedelta(days=1)
Span = tuple[datetime, bool, datetime, bool]
"""From when, whether that moment belongs to it, until when, whether that does."""
# Notes read at a time, and at most, for a page of their observations and relations
_BATCH = 200
MOST_READ = 4_000


def missing_note(args: Arguments, memory: MemorySession, shown: str) -> Reply:
    """What read_note says of a note there is not: related ones, or how to look further."""
    name = args["identifier"]
    size = args.get("page_size") or 10
    query = Query(
        text=name.removeprefix("memory://").replace("/", " ").strip(), projects=(args["project"],)
    )
    hits = memory.search(query, limit=size, offset=((args.get("page") or 1) - 1) * size)
    data: dict[str, Any] = dict.fromkeys(
        ("title", "permalink", "file_path", "content", "frontmatter")
    )
    data |= {"error": "NOTE_NOT_FOUND", "message": f"Note not found: {name}"}
    head = f'# Note Not Found in {shown}: "{name}"\n\n'
    if not hits:
        return either(
            args,
            data,
            f'{head}No note matches "{name}" in {shown}. To look further, try '
            f'`search_notes(query="{name}", project="{shown}")` or `recent_activity(timeframe="7d", '
            f'project="{shown}")`. If the user wants this note created, use `write_note`.\n',
        )
    rows = [
        f"## {number}. {hit.note.title}\n- **Type**: entity\n- **Permalink**: {hit.note.permalink}\n"
        for number, hit in enumerate(hits, 1)
    ]
    rows.append(
        f'Read one with `read_note(identifier="<permalink>", project="{shown}")`, or search further.\n'
    )
    text = f'{head}No exact match for "{name}" in {shown}. Related notes:\n\n' + "\n".join(rows)
    return either(args, data | {"related_results": [identity(hit.note) for hit in hits]}, text)


def node(
    kind: str, path: str, title: str | None, permalink: str | None, changed: str | None
) -> dict[str, Any]:
    """A folder or a note as listings show it."""
    row: dict[str, Any] = {"name": path.rpartition("/")[2], "directory_path": f"/{path}"}
    if kind == "folder":
        return row | {"type": "directory"}
    row |= {
        "type": "file",
        "file_path": path,
        "title": title,
        "permalink": permalink,
        "updated_at": changed,
    }
    return row | {"content_type": "text/markdown", "note_type": "note"}


def check_inside(address: str) -> None:
    """Raise OutsideError for an address in a home folder, on another machine, or one that climbs at
    great length.
    """
    if address.strip().removeprefix("memory://").startswith(("~", "\\\\")) or (
        ".." in address and len(address) > 2048
    ):
        raise OutsideError(address)


def directory(args: Arguments, memory: MemorySession, reply: Reply) -> Reply:
    """The reply to list_directory, from our own."""
    data = reply.data or {}
    name = args.get("dir_name") or "/"
    glob = args.get("file_name_glob")
    if reply.is_error and data.get("code") != "not_found":
        return text_reply(reply.text, True)
    depth = args.get("depth") or 1
    total = data.get("total", 0)
    more = data.get("more", False)
    # Long names make a shorter page, which the next one begins after.
    page = data.get("page") or args.get("page") or 1
    size = data.get("page_size") or args.get("page_size") or 50
    keys = ("kind", "path", "title", "permalink", "changed")
    nodes = [node(*map(entry.get, keys)) for entry in data.get("entries", ())]
    if is_json(args):
        return json_reply(
            {"nodes": nodes, "page": page, "page_size": size, "total": total, "has_more": more}
        )
    if not total:
        return text_reply(
            f"No files found in directory '{name}'" + (f" matching '{glob}'" if glob else "")
        )
    if glob:
        head = f"Files in '{name}' matching '{glob}' (depth {depth}):"
    else:
        head = f"Contents of '{name}' (depth {depth}):"
    folders = [each for each in nodes if each["type"] == "directory"]
    files = [each for each in nodes if each["type"] == "file"]
    rows = [head, f"Page {page} (page size {size}, {total} total items)", ""]
    rows += [f"📁 {folder['name']:<30} {folder['directory_path']}" for folder in folders]
    rows += [""] if folders and files else []
    for file in files:
        if file["title"] not in (None, file["name"]):
            title = f" | {file['title']}"
        else:
            title = ""
        rows.append(
            f"📄 {file['name']:<30} {file['file_path']}{title} | {day(memory, file['updated_at'])}"
        )
    if folders:
        parts = [f"{len(folders)} director{'y' if len(folders) == 1 else 'ies'}"]
    else:
        parts = []
    parts += [f"{len(files)} file{'s' if len(files) != 1 else ''}"] if files else []
    rows += ["", f"Total: {len(nodes)} items" + (f" ({', '.join(parts)})" if parts else "")]
    if not nodes:
        rows.append(
            f"Requested page {page} is beyond the available results; the last is {-(-total // size)}."
        )
    if more:
        more_of = "".join(
            f", {key}={args[key]!r}" for key in ("file_name_glob", "project_id") if args.get(key)
        )
        call = f"list_directory(dir_name={name!r}, page={page + 1}, page_size={size}{more_of})"
        rows += ["", f"More results available. Call {call} to continue."]
    return text_reply("\n".join(rows))


def found(args: Arguments, memory: MemorySession, vault: Vault, own: Arguments) -> Reply:
    """The reply to search_notes: notes, or with `entity_types` the observations and relations of
    those that match.
    """
    page, size = paged(args)
    times = Times.of(args)
    words = (own.get("query") or "").strip()
    facts_only = args.get("categories") or times
    types = set(args.get("entity_types") or (["observation"] if facts_only else ["entity"]))
    unknown = types - _KINDS
    if unknown:
        raise InvalidInput(
            f"Invalid entity_types: {', '.join(unknown)}. They are entity, observation, relation."
        )
    filters = [
        name
        for name in own
        if name.endswith(("types", "tags", "status", "filters", "categories", "date"))
    ]
    if not words and not times and not any(own.get(name) for name in filters):
        return text_reply("# No Search Criteria\n\nGive a query or at least one filter.", True)
    if own.get("search_type") in ("title", "permalink"):
        kind = own.get("search_type")
    else:
        kind = "text"
    given = {"search_type": kind, "query": words}
    query = search_query(
        memory, {**{k: v for k, v in own.items() if v is not None}, **given}, words
    )
    whole = types == {"entity"} and not times
    several = own.get("projects") is not None and "project" not in own
    if several:
        before = {each.name: f"{slug(name)}/" for name, each in vault.projects(memory)}
    else:
        before = {}

    def read(offset: int, limit: int) -> tuple[Hits, list[dict[str, Any]]]:
        hits = memory.search(query, limit=limit, offset=offset)
        found = []
        for hit in hits:
            for row in _result_rows(memory, hit, types, args, query, times):
                # Without the note's prose, which an observation's title and address have too
                if args.get("compact"):
                    row = {
                        key: value
                        for key, value in row.items()
                        if key not in ("content", "matched_chunk")
                    }
                    if row["type"] == "observation":
                        place = before.get(hit.note.project, "") + row["file_path"]
                        row |= {"title": row["category"], "permalink": place}
                found.append(row)
        return hits, found

    hits, rows = (
        read((page - 1) * size, size) if whole else memory.at_once(partial(read, 0, _BATCH))
    )
    count = len(hits)
    while not whole and len(hits) == _BATCH and len(rows) <= page * size and count < MOST_READ:
        hits, found = memory.at_once(partial(read, count, _BATCH))
        count = count + len(hits)
        rows = rows + found
    total, is_exact = (
        (hits.total, not hits.is_lower_bound) if whole else (len(rows), len(hits) < _BATCH)
    )
    if whole:
        rows = rows
    else:
        rows = rows[(page - 1) * size : page * size]
    more = page * size < total or (whole and not is_exact)
    if is_json(args):
        sums = {
            "current_page": page,
            "page_size": size,
            "total": total,
            "total_is_exact": is_exact,
            "has_more": more,
        }
        return json_reply(
            {"results": rows, **sums, **({"temporal_applied": True} if times else {})}
        )
    if several:
        shown = "all projects"
    else:
        shown = vault.shown(args["project"])
    if not rows:
        return text_reply(
            f"No results found for '{words}' in project '{shown}'. Try broader or different terms, or call "
            f'recent_activity(project="{shown}") to orient.'
        )
    lines = [
        f"# Search Results: {words}" if words else "# Search Results",
        f"*project: {shown}*",
        "",
    ]
    for row in rows:
        lines += [
            f"### {row['title']}",
            f"- permalink: {row['permalink']}",
            f"- score: {row['score']:.4f}",
        ]
        lines += [f"- match: {short(row['matched_chunk'], 200)}"] if "matched_chunk" in row else []
        for each in row.get("temporal", ()):
            during = each["valid_during"]
            lines.append(f"- {each['kind']} valid time: {during['literal']} ({during['axis']})")
        lines.append("")
    count = len(rows)
    foot = f"*{count} result{'s' if count != 1 else ''} | page {page}, page_size {size}"
    return text_reply("\n".join([*lines, "---", foot + (" | more available*" if more else "*")]))


def entity_row(memory: MemorySession, hit: Hit) -> dict[str, Any]:
    """A note as a search finds it."""
    note = hit.note
    row = {
        "title": note.title,
        "type": "entity",
        "permalink": note.permalink,
        "matched_chunk": hit.passage,
    }
    row |= _found_in(hit) | {"content": body_of(memory, note)[0][:1000]}
    return row | {"metadata": {"note_type": note.type, "tags": list(note.tags)}}


def _found_in(hit: Hit) -> dict[str, Any]:
    """What every row says of its note."""
    note = hit.note
    base = {
        "score": round(hit.score, 4),
        "file_path": note.path,
        "updated_at": note.changed,
        "external_id": note.id,
    }
    return base | {"entity": note.permalink, "created_at": note.created}


def _result_rows(
    memory: MemorySession,
    hit: Hit,
    types: set[str],
    args: Arguments,
    query: Query,
    times: Times | None,
) -> list[dict[str, Any]]:
    note = hit.note
    base = _found_in(hit)
    rows: list[dict[str, Any]] = (
        [entity_row(memory, hit)] if "entity" in types and not times else []
    )
    words = [word.casefold() for word in query.text.replace('"', " ").split()]
    wanted = {each.casefold() for each in args.get("categories") or ()}
    if "observation" in types:
        for observation in memory.observations(note):
            text = observation.content
            category = observation.category or "note"
            is_match = not words or any(
                word in text.casefold() or word in category.casefold() for word in words
            )
            marks = times.matching(text) if times else []
            if is_match and (not wanted or category.casefold() in wanted) and (marks or not times):
                name = f"{note.permalink}/observations/{category}/{short(text, 60).lower().replace(' ', '-')}"
                row = {
                    "title": f"{category}: {short(text)}",
                    "type": "observation",
                    "permalink": name,
                }
                row |= base | {"content": text, "matched_chunk": text, "category": category}
                rows.append(row | {"temporal": marks} if times else row)
    if "relation" in types:
        for edge in memory.outgoing(note):
            title = f"{note.title} → {edge.target}"
            if not words or any(
                word in title.casefold() or word in edge.type.casefold() for word in words
            ):
                name = f"{note.permalink}/{edge.type}/{edge.note.permalink if edge.note else edge.target}"
                row = {
                    "title": title,
                    "type": "relation",
                    "permalink": name,
                    "matched_chunk": title,
                }
                to = edge.note.permalink if edge.note else None
                ends = {"from_entity": note.permalink, "to_entity": to, "relation_type": edge.type}
                rows.append(row | base | {"content": edge.context or "", **ends})
    return rows


def _check_url(url: str) -> None:
    """Refuse what is no address there. Raises InvalidInput."""
    if "://" in url and not url.strip().startswith("memory://"):
        raise InvalidInput(
            f"Memory URL must begin with memory://, not with a protocol scheme (value_error): {url}"
        )
    bare = url.strip().removeprefix("memory://")
    if not bare:
        raise InvalidInput("Memory URL cannot be empty or whitespace (value_error).")
    if "//" in bare:
        raise InvalidInput(f"Memory URL cannot contain double slashes (value_error): {url}")
    bad = [sign for sign in '<>"|?' if sign in bare]
    if bad:
        raise InvalidInput(
            f"Memory URL contains invalid characters {''.join(bad)} (value_error): {url}"
        )


def context(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """The reply to build_context; without `output_format` it is JSON there."""
    _check_url(args["url"])
    shown = vault.shown(args["project"])
    (page, size), depth = paged(args, 10, 50), max(bounded(args, "depth", 1, 5, least=0), 1)
    most = bounded(args, "max_related", 10, 100, least=0)
    url = args["url"].strip()
    frame = args.get("timeframe")
    if frame:
        since = memory.since(_at_least_a_day(frame))
    else:
        since = None
    if "*" in url and not memory.is_name(url, args["project"]):
        infos, total = memory.matching(
            url, project=args["project"], limit=size, offset=(page - 1) * size
        )
    else:
        try:
            infos = [memory.find(url, args["project"])][(page - 1) * size : page * size]
            total = 1
        except NotFound:
            infos = []
            total = 0
    entries = [
        _context_entry(memory, info, depth, since, most, bool(args.get("compact")))
        for info in infos
    ]
    related = sum(len(entry["related_results"]) for entry in entries)
    meta = {
        "uri": url.removeprefix("memory://"),
        "depth": depth,
        "timeframe": frame,
        "primary_count": len(entries),
    }
    facts = sum(len(entry.get("observations", ())) for entry in entries)
    meta |= {
        "related_count": related,
        "total_results": len(entries) + related,
        "total_observations": facts,
    }
    if args.get("output_format") != "text":
        paging = {"page": page, "page_size": size, "has_more": page * size < total}
        return json_reply({"results": entries, "metadata": meta, **paging})
    if not entries:
        return text_reply(f"No results found for '{meta['uri']}' in project '{shown}'.")
    blocks = []
    for entry in entries:
        primary = entry["primary_result"]
        title = entry["primary_result"]["title"]
        rows = [f"## {title}", f"permalink: {primary['permalink']}"]
        rows += ["", primary["content"]] if primary.get("content") else []
        relations = [
            ("" if one["from_entity"] == title else f"[[{one['from_entity']}]] ")
            + f"{one['relation_type']} [[{one['to_entity'] or one['to_name']}]]"
            for one in entry["related_results"]
            if one["type"] == "relation"
        ]
        near = [
            f"[[{one['title']}]] ({one['permalink']})"
            for one in entry["related_results"]
            if one["type"] == "entity"
        ]
        said = [
            f"[{observation['category']}] {observation['content']}"
            for observation in entry.get("observations", ())
        ]
        for heading, listed in (
            ("Observations", said),
            ("Relations", relations),
            ("Related", near),
        ):
            rows += ["", f"### {heading}", *(f"- {one}" for one in listed)] if listed else []
        blocks.append("\n".join(rows))
    if len(entries) == 1:
        title = entries[0]["primary_result"]["title"]
    else:
        title = meta["uri"]
    foot = f"*{len(entries)} primary, {related} related | depth={depth} | project: {shown}*"
    return text_reply(f"# Context: {title}\n\n" + "\n\n---\n\n".join(blocks) + f"\n\n---\n{foot}")


def _context_entry(
    memory: MemorySession,
    info: NoteInfo,
    depth: int,
    since: datetime | None,
    most: int,
    is_compact: bool,
) -> dict[str, Any]:
    known = memory.context(info, depth=depth, since=since, limit=most)
    primary = _entity(info)
    place = {"file_path": info.path, "created_at": info.created}
    related: list[dict[str, Any]] = []
    for edge in known.edges:
        other = edge.note
        row: dict[str, Any] = {"type": "relation", "title": edge.type, "relation_type": edge.type}
        if edge.direction == "out":
            row |= {
                "from_entity": info.title,
                "to_entity": other.title if other else None,
                "to_name": edge.target,
            }
        else:
            row |= {"from_entity": edge.target, "to_entity": info.title, "to_name": info.title}
        end = other.permalink if other else edge.target
        related.append(row | place | {"permalink": f"{info.permalink}/{edge.type}/{end}"})
    related = [*related, *(_entity(each.note) for each in known.reached)][: most or 0]
    if is_compact:
        return {"primary_result": primary, "related_results": related}
    facts = [
        {
            "type": "observation",
            "category": observation.category or "note",
            "content": observation.content,
            **place,
        }
        for observation in known.observations
    ]
    primary["content"] = body_of(memory, info)[0]
    return {"primary_result": primary, "observations": facts, "related_results": related}


def _entity(info: NoteInfo) -> dict[str, Any]:
    row = {"type": "entity", "external_id": info.id, **identity(info), "created_at": info.created}
    return row | {"updated_at": info.changed}


def _at_least_a_day(frame: str) -> str:
    """That program takes `0d` for today, and looks a day back at least."""
    if frame.strip().lower() in ("0d", "0 days"):
        return "1d"
    return frame


def recent(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """The reply to recent_activity."""
    shown = vault.shown(args["project"])
    frame, (page, size) = args.get("timeframe") or "7d", paged(args, 10, 100)
    bounded(args, "depth", 1, 5)
    wanted = {each.lower() for each in args.get("type") or () if each} or {"entity"}
    unknown = wanted - _KINDS
    if unknown:
        raise InvalidInput(
            f"Invalid type: {', '.join(unknown)}. Valid types: entity, observation, relation."
        )
    since = _at_least_a_day(frame)
    offset = (page - 1) * size
    infos, total, _ = memory.recent(since, projects=(args["project"],), limit=size, offset=offset)
    rows: list[dict[str, Any]] = []
    if "entity" in wanted:
        rows += [{"type": "entity", **identity(each), "created_at": each.created} for each in infos]
    facts: list[str] = []
    for info in infos:
        said = {
            "observation": [observation.content for observation in memory.observations(info)]
            if "observation" in wanted
            else []
        }
        edges = memory.outgoing(info) if "relation" in wanted else ()
        said["relation"] = [f"[[{info.title}]] → {edge.type} → [[{edge.target}]]" for edge in edges]
        place = {"permalink": info.permalink, "file_path": info.path, "created_at": info.created}
        rows += [
            {"type": kind, "title": text, **place} for kind, texts in said.items() for text in texts
        ]
        facts += [text for texts in said.values() for text in texts]
    if is_json(args):
        return json_reply(rows)
    head = f"## Recent Activity: {shown} ({frame})"
    if not rows and page > 1:
        return text_reply(
            f"{head}\n\nNo recent activity was found on page {page}.\nTry page={page - 1}."
        )
    if not rows:
        return text_reply(
            f"{head}\n\nNo recent activity in '{shown}' within {frame}.\n"
            f'Widen the window with recent_activity(project="{shown}", timeframe="30d").'
        )
    lines = [head]
    if "entity" in wanted:
        lines.append(f"\n**📄 Recent Notes & Documents ({len(infos)}):**")
        for info in infos:
            folder = info.path.rpartition("/")[0]
            lines.append(f"  • {info.title}{f' ({folder})' if folder else ''} [id: {info.id}]")
    if facts:
        lines += [
            f"\n**🔍 Recent Observations & Connections ({len(facts)}):**",
            *(f"  • {text}" for text in facts),
        ]
    count = len(rows)
    more = page * size < total
    if more:
        end = f"Showing {count} items (page {page}). Use page={page + 1} to see more."
    else:
        end = f"{count} items found."
    return text_reply("\n".join([*lines, f"\n**Activity Summary:** {end}"]))


@dataclass(frozen=True, slots=True)
class Times:
    """What to look for: marks of a `kind`, and of a time that meets `span`."""

    kind: str | None
    span: Span | None

    @classmethod
    def of(cls, args: Arguments) -> Times | None:
        """The filter of a search; None without one. Raises InvalidInput for what is no time."""
        given = {name: args.get(name) for name in ("valid_at", "valid_overlaps", "time_kind")}
        empty = [name for name, text in given.items() if text is not None and not text.strip()]
        if empty:
            raise InvalidInput(
                f"{empty[0]} was given as an empty value. Leave it out to search without it."
            )
        at, during, kind = given.values()
        if at and during:
            raise InvalidInput("Give valid_at or valid_overlaps, not both.")
        if at:
            moment = _moment(at)
            return cls(kind, (moment, True, moment, True))
        if during or kind:
            return cls(kind, _span(during) if during else None)
        return None

    def matching(self, text: str) -> list[dict[str, Any]]:
        """The marks in an observation that fit, as that program's results carry them."""
        found: list[dict[str, Any]] = []
        for mark in _MARK.finditer(text):
            kind, since, between = mark.groups()
            try:
                span = _span(between or f"[{since},)")
            except InvalidInput:
                continue
            wanted = self.span or span
            first = max(wanted[:2], span[:2])
            last = min(wanted[2:], span[2:])
            is_met = first[0] < last[0] or (first[0] == last[0] and first[1] and last[1])
            if self.kind not in (None, kind) or not (self.span is None or is_met):
                continue
            # In that program's form: days half-open, moments in UTC to the microsecond; no key for
            # an open end.
            (begin, holds_begin), (end, holds_end) = span[:2], span[2:]
            is_instant = re.search(r"\d[Tt ]\d", between or since) is not None
            if not is_instant:
                if holds_begin or begin == datetime.min:
                    begin = begin
                else:
                    begin = begin + _DAY
                holds_begin = True
                end, holds_end = (
                    (end + _DAY, False) if holds_end and end != datetime.max else (end, False)
                )
            form = "%Y-%m-%dT%H:%M:%S.%fZ" if is_instant else "%Y-%m-%d"
            if begin != datetime.min:
                lower = begin.strftime(form)
            else:
                lower = ""
            upper = end.strftime(form) if end != datetime.max else ""
            holds_begin = holds_begin and bool(lower)
            holds_end = holds_end and bool(upper)
            literal = f"{'[' if holds_begin else '('}{lower},{upper}{']' if holds_end else ')'}"
            during: dict[str, Any] = {
                "axis": "instant" if is_instant else "date",
                "literal": literal,
            }
            during |= {name: value for name, value in (("lower", lower), ("upper", upper)) if value}
            during |= {
                "lower_inclusive": holds_begin,
                "upper_inclusive": holds_end,
                "is_empty": False,
            }
            found.append({"kind": kind, "valid_during": during, "source_text": mark[0].strip()})
        return found


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo:
            return moment.astimezone(UTC).replace(tzinfo=None)
        return moment
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text} is no date. Use e.g. 2026-07-27.") from None


def _span(text: str) -> Span:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"{text} is no range of dates. Use e.g. [2026-06-01,2026-08-01).")
    begin = match[2] and _moment(match[2])
    end = match[3] and _moment(match[3])
    return begin or datetime.min, match[1] == "[", end or datetime.max, match[4] == "]" or not end
