"""The replies of the note tools that read, in Basic Memory's words and JSON keys (contract 000b, 10)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.errors import InvalidInput, NotFound, OutsideError
from commonplace.faces.arguments import Arguments
from commonplace.faces.notes.drop_in_replies import identity, json_reply, text_reply
from commonplace.faces.notes.drop_in_times import Times
from commonplace.faces.notes.read_tools import search_query
from commonplace.faces.notes.replies import body_of, day, short
from commonplace.faces.reply import Reply
from commonplace.index.rows import Hit, NoteInfo
from commonplace.note.links import slug
from commonplace.note.model import Note
from commonplace.query import Query

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.notes.vault import Vault
    from commonplace.faces.tool import Tool

_PAGES = 50
_PAGE = {"page": 1, "page_size": 10}


def missing_note(args: Arguments, memory: Memory, shown: str, as_json: bool) -> Reply:
    """What read_note says of a note there is not: related ones, or how to look further."""
    name, size = args["identifier"], args.get("page_size") or 10
    text = name.removeprefix("memory://").replace("/", " ").strip()
    hits = memory.search(
        Query(text=text, projects=(args["project"],)), limit=size, offset=((args.get("page") or 1) - 1) * size
    )
    if as_json:
        blank: dict[str, Any] = dict.fromkeys(("title", "permalink", "file_path", "content", "frontmatter"))
        blank |= {"error": "NOTE_NOT_FOUND", "message": f"Note not found: {name}"}
        if hits:
            blank["related_results"] = [identity(hit.note) for hit in hits]
        return json_reply(blank)
    head = f'# Note Not Found in {shown}: "{name}"\n\n'
    if not hits:
        return text_reply(
            f'{head}No note matches "{name}" in {shown}. To look further, try '
            f'`search_notes(query="{name}", project="{shown}")` or `recent_activity(timeframe="7d", '
            f'project="{shown}")`. If the user wants this note created, use `write_note`.\n'
        )
    rows = [
        f"## {number}. {hit.note.title}\n- **Type**: entity\n- **Permalink**: {hit.note.permalink}\n"
        for number, hit in enumerate(hits, 1)
    ]
    end = f'Read one with `read_note(identifier="<permalink>", project="{shown}")`, or search further.\n'
    return text_reply(f'{head}No exact match for "{name}" in {shown}. Related notes:\n\n' + "\n".join([*rows, end]))


def line_range(args: Arguments, note: Note, as_json: bool) -> Reply:
    """Numbered lines `start_line` to `end_line`."""
    rows, first = note.text.split("\n"), args.get("start_line") or 1
    rows = rows[:-1] if rows[-1] == "" else rows
    last = min(args.get("end_line") or len(rows), len(rows))
    if first < 1 or (args.get("end_line") or first) < first:
        raise InvalidInput(f"end_line must be >= start_line >= 1, got {first} and {args.get('end_line')}")
    wanted, more = rows[first - 1 : last], last < len(rows)
    if not as_json:
        return text_reply("\n".join(f"{number}: {row}" for number, row in enumerate(wanted, first)))
    data = identity(note) | {"content": "\n".join(wanted), "frontmatter": note.header, "start_line": first}
    data |= {"end_line": last, "total_lines": len(rows), "has_more": more}
    data |= {"next_start_line": last + 1 if more else None}
    return json_reply(data | {"next_end_line": min(len(rows), last + last - first + 1) if more else None})


def node(kind: str, path: str, title: str | None, permalink: str | None, changed: str | None) -> dict[str, Any]:
    """A folder or a note as listings show it."""
    row: dict[str, Any] = {"name": path.rpartition("/")[2], "directory_path": f"/{path}"}
    if kind == "folder":
        return row | {"type": "directory"}
    row |= {"type": "file", "file_path": path, "title": title, "permalink": permalink, "updated_at": changed}
    return row | {"content_type": "text/markdown", "note_type": "note"}


def check_inside(address: str) -> None:
    """Raise OutsideError for an address in a home folder, on another machine, or one that climbs at great length."""
    if address.strip().removeprefix("memory://").startswith(("~", "\\\\")) or (".." in address and len(address) > 2048):
        raise OutsideError(address)


def directory(args: Arguments, memory: Memory, reply: Reply) -> Reply:
    """The reply to list_directory, from our own."""
    data, name, glob = reply.data or {}, args.get("dir_name") or "/", args.get("file_name_glob")
    depth, as_json = args.get("depth") or 1, args.get("output_format") == "json"
    if reply.is_error and data.get("code") != "not_found":
        return Reply(reply.text, {"result": reply.text}, is_error=True)
    entries = [] if reply.is_error else data["entries"]
    nodes = [
        node(each["kind"], each["path"], each.get("title"), each.get("permalink"), each.get("changed"))
        for each in entries
    ]
    total, more = (0, False) if reply.is_error else (data["total"], data["more"])
    page, size = args.get("page") or 1, args.get("page_size") or 50
    if as_json:
        return json_reply({"nodes": nodes, "page": page, "page_size": size, "total": total, "has_more": more})
    if not total:
        return text_reply(f"No files found in directory '{name}'" + (f" matching '{glob}'" if glob else ""))
    head = f"Files in '{name}' matching '{glob}' (depth {depth}):" if glob else f"Contents of '{name}' (depth {depth}):"
    folders = [each for each in nodes if each["type"] == "directory"]
    files = [each for each in nodes if each["type"] == "file"]
    rows = [head, f"Page {page} (page size {size}, {total} total items)", ""]
    rows += [f"📁 {each['name']:<30} {each['directory_path']}" for each in folders]
    rows += [""] if folders and files else []
    for each in files:
        title = f" | {each['title']}" if each["title"] != each["name"] else ""
        rows.append(f"📄 {each['name']:<30} {each['file_path']}{title} | {day(memory, each['updated_at'])}")
    parts = [f"{len(folders)} director{'y' if len(folders) == 1 else 'ies'}"] if folders else []
    parts += [f"{len(files)} file{'s' if len(files) != 1 else ''}"] if files else []
    rows += ["", f"Total: {len(nodes)} items" + (f" ({', '.join(parts)})" if parts else "")]
    if not nodes:
        rows.append(f"Requested page {page} is beyond the available results; the last is {-(-total // size)}.")
    if more:
        more_of = "".join(f", {key}={args[key]!r}" for key in ("file_name_glob", "project_id") if args.get(key))
        call = f"list_directory(dir_name={name!r}, page={page + 1}, page_size={size}{more_of})"
        rows += ["", f"More results available. Call {call} to continue."]
    return text_reply("\n".join(rows))


def found(args: Arguments, memory: Memory, vault: Vault, tool: Tool, own: Arguments) -> Reply:
    """The reply to search_notes: notes, or with `entity_types` the observations and relations of those that match."""
    page, size = (default if args.get(name) is None else args[name] for name, default in _PAGE.items())
    if page < 1 or size < 1:
        raise InvalidInput(f"page and page_size must be >= 1, got {page} and {size}")
    times = Times.of(args)
    words = (own.get("query") or "").strip()
    facts_only = args.get("categories") or times
    types = set(args.get("entity_types") or (["observation"] if facts_only else ["entity"]))
    if unknown := types - {"entity", "observation", "relation"}:
        raise InvalidInput(f"Invalid entity_types: {', '.join(unknown)}. They are entity, observation, relation.")
    filters = [name for name in own if name.endswith(("types", "tags", "status", "filters", "categories", "date"))]
    if not words and not times and not any(own.get(name) for name in filters):
        return text_reply("# No Search Criteria\n\nGive a query or at least one filter.", True)
    kind = own.get("search_type") if own.get("search_type") in ("title", "permalink") else "text"
    given = {"search_type": kind, "query": words}
    query = search_query(memory, {**{k: v for k, v in own.items() if v is not None}, **given}, words)
    whole = types == {"entity"} and not times
    hits = memory.search(query, limit=size if whole else 200, offset=(page - 1) * size if whole else 0)
    several = own.get("projects") is not None and "project" not in own
    before = {each.name: f"{slug(name)}/" for name, each in vault.projects(memory)} if several else {}
    rows = [
        _compact(row, before.get(hit.note.project, "")) if args.get("compact") else row
        for hit in hits
        for row in _result_rows(memory, hit, types, args, query, times)
    ]
    total = hits.total if whole else len(rows)
    rows = rows if whole else rows[(page - 1) * size : page * size]
    more = page * size < total
    if args.get("output_format") == "json":
        sums = {"current_page": page, "page_size": size, "total": total, "total_is_exact": True, "has_more": more}
        return json_reply({"results": rows, **sums, **({"temporal_applied": True} if times else {})})
    shown = "all projects" if several else vault.shown(args["project"])
    if not rows:
        return text_reply(
            f"No results found for '{words}' in project '{shown}'. Try broader or different terms, or call "
            f'recent_activity(project="{shown}") to orient.'
        )
    lines = [f"# Search Results: {words}" if words else "# Search Results", f"*project: {shown}*", ""]
    for row in rows:
        lines += [f"### {row['title']}", f"- permalink: {row['permalink']}", f"- score: {row['score']:.4f}"]
        lines += [f"- match: {short(row['matched_chunk'], 200)}"] if "matched_chunk" in row else []
        for each in row.get("temporal", ()):
            during = each["valid_during"]
            lines.append(f"- {each['kind']} valid time: {during['literal']} ({during['axis']})")
        lines.append("")
    count = len(rows)
    foot = f"*{count} result{'s' if count != 1 else ''} | page {page}, page_size {size}"
    return text_reply("\n".join([*lines, "---", foot + (" | more available*" if more else "*")]))


def entity_row(memory: Memory, hit: Hit) -> dict[str, Any]:
    """A note as a search finds it."""
    note = hit.note
    row = {"title": note.title, "type": "entity", "permalink": note.permalink, "matched_chunk": hit.passage}
    content = body_of(memory, note)[:1000]
    row |= _found_in(hit) | {"content": content}
    return row | {"metadata": {"note_type": note.type, "tags": list(note.tags)}}


def _found_in(hit: Hit) -> dict[str, Any]:
    """What every row says of its note."""
    note = hit.note
    base = {"score": round(hit.score, 4), "file_path": note.path, "updated_at": note.changed, "external_id": note.id}
    return base | {"entity": note.permalink, "created_at": note.created}


def _compact(row: dict[str, Any], before: str) -> dict[str, Any]:
    """A row without the note's prose, which an observation's title and address have too. `before`: what stands before
    a path when several projects are searched."""
    row = {key: value for key, value in row.items() if key not in ("content", "matched_chunk")}
    if row["type"] == "observation":
        row |= {"title": row["category"], "permalink": before + row["file_path"]}
    return row


def _result_rows(
    memory: Memory, hit: Hit, types: set[str], args: Arguments, query: Query, times: Times | None
) -> list[dict[str, Any]]:
    note, base = hit.note, _found_in(hit)
    rows: list[dict[str, Any]] = [entity_row(memory, hit)] if "entity" in types and not times else []
    words = [word.casefold() for word in query.text.replace('"', " ").split()]
    wanted = {each.casefold() for each in args.get("categories") or ()}
    if "observation" in types:
        for each in memory.observations(note):
            text, category = each.content, each.category or "note"
            is_match = not words or any(word in text.casefold() or word in category.casefold() for word in words)
            marks = times.matching(text) if times else []
            if is_match and (not wanted or category.casefold() in wanted) and (marks or not times):
                name = f"{note.permalink}/observations/{category}/{short(text, 60).lower().replace(' ', '-')}"
                row = {"title": f"{category}: {short(text)}", "type": "observation", "permalink": name}
                row |= base | {"content": text, "matched_chunk": text, "category": category}
                rows.append(row | {"temporal": marks} if times else row)
    if "relation" in types:
        for edge in memory.outgoing(note):
            title = f"{note.title} → {edge.target}"
            if not words or any(word in title.casefold() or word in edge.type.casefold() for word in words):
                name = f"{note.permalink}/{edge.type}/{edge.note.permalink if edge.note else edge.target}"
                row = {"title": title, "type": "relation", "permalink": name, "matched_chunk": title}
                to = edge.note.permalink if edge.note else None
                ends = {"from_entity": note.permalink, "to_entity": to, "relation_type": edge.type}
                rows.append(row | base | {"content": edge.context or "", **ends})
    return rows


def check_url(url: str) -> None:
    """Refuse what is no address there. Raises InvalidInput."""
    if "://" in url and not url.strip().startswith("memory://"):
        raise InvalidInput(f"Memory URL must begin with memory://, not with a protocol scheme (value_error): {url}")
    bare = url.strip().removeprefix("memory://")
    if not bare:
        raise InvalidInput("Memory URL cannot be empty or whitespace (value_error).")
    if "//" in bare:
        raise InvalidInput(f"Memory URL cannot contain double slashes (value_error): {url}")
    if bad := [sign for sign in '<>"|?' if sign in bare]:
        raise InvalidInput(f"Memory URL contains invalid characters {''.join(bad)} (value_error): {url}")


def context(args: Arguments, memory: Memory, shown: str) -> Reply:
    """The reply to build_context; without `output_format` it is JSON there."""
    page, size = (default if args.get(name) is None else args[name] for name, default in _PAGE.items())
    most = 10 if args.get("max_related") is None else args["max_related"]
    depth = args.get("depth") or 1
    limits = (("page", page, 1, 10**9), ("page_size", size, 1, _PAGES), ("max_related", most, 0, 100))
    for name, value, least, greatest in (*limits, ("depth", depth, 1, 5)):
        if not least <= value <= greatest:
            raise InvalidInput(f"{name} must be between {least} and {greatest}, got {value}.")
    url, frame = args["url"].strip(), args.get("timeframe")
    since = memory.since(frame) if frame else None
    if "*" in url:
        infos, total = memory.matching(url, project=args["project"], limit=size, offset=(page - 1) * size)
    else:
        try:
            infos, total = [memory.find(url, args["project"])][(page - 1) * size : page * size], 1
        except NotFound:
            infos, total = [], 0
    entries = [_context_entry(memory, info, depth, since, most, bool(args.get("compact"))) for info in infos]
    related = sum(len(each["related_results"]) for each in entries)
    meta = {"uri": url.removeprefix("memory://"), "depth": depth, "timeframe": frame, "primary_count": len(entries)}
    facts = sum(len(each.get("observations", ())) for each in entries)
    meta |= {"related_count": related, "total_results": len(entries) + related, "total_observations": facts}
    more = page * size < total
    if args.get("output_format") != "text":
        return json_reply({"results": entries, "metadata": meta, "page": page, "page_size": size, "has_more": more})
    if not entries:
        return text_reply(f"No results found for '{meta['uri']}' in project '{shown}'.")
    blocks = []
    for each in entries:
        primary = each["primary_result"]
        rows = [f"## {primary['title']}", f"permalink: {primary['permalink']}"]
        rows += ["", primary["content"]] if primary.get("content") else []
        if each.get("observations"):
            rows += ["", "### Observations", *(f"- [{o['category']}] {o['content']}" for o in each["observations"])]
        relations = [r for r in each["related_results"] if r["type"] == "relation"]
        if relations:
            rows += ["", "### Relations"]
        for one in relations:
            mine = one["from_entity"] == primary["title"]
            arrow = f"{one['relation_type']} [[{one['to_entity'] or one['to_name']}]]"
            rows.append(f"- {arrow}" if mine else f"- [[{one['from_entity']}]] {arrow}")
        near = [r for r in each["related_results"] if r["type"] == "entity"]
        rows += ["", "### Related", *(f"- [[{r['title']}]] ({r['permalink']})" for r in near)] if near else []
        blocks.append("\n".join(rows))
    title = entries[0]["primary_result"]["title"] if len(entries) == 1 else meta["uri"]
    foot = f"*{len(entries)} primary, {related} related | depth={depth} | project: {shown}*"
    return text_reply(f"# Context: {title}\n\n" + "\n\n---\n\n".join(blocks) + f"\n\n---\n{foot}")


def _context_entry(
    memory: Memory, info: NoteInfo, depth: int, since: datetime | None, most: int, is_compact: bool
) -> dict[str, Any]:
    known = memory.context(info, depth=depth, since=since, limit=most)
    primary = _entity(info)
    if not is_compact:
        primary["content"] = body_of(memory, info)
    facts = [] if is_compact else known.observations
    observations = [
        {
            "type": "observation",
            "category": each.category or "note",
            "content": each.content,
            "file_path": info.path,
            "created_at": info.created,
        }
        for each in facts
    ]
    related: list[dict[str, Any]] = []
    row: dict[str, Any]
    for edge in known.edges:
        other = edge.note
        out = edge.direction == "out"
        ends = (info.title, other.title if other else None) if out else (edge.target, info.title)
        row = {"type": "relation", "title": edge.type, "relation_type": edge.type, "from_entity": ends[0]}
        row |= {"to_entity": ends[1], "to_name": edge.target if out else info.title, "file_path": info.path}
        row["created_at"] = info.created
        related.append(row | {"permalink": f"{info.permalink}/{edge.type}/{other.permalink if other else edge.target}"})
    related = [*related, *(_entity(each.note) for each in known.reached)][: most or 0]
    shown = {} if is_compact else {"observations": observations}
    return {"primary_result": primary, **shown, "related_results": related}


def _entity(info: NoteInfo) -> dict[str, Any]:
    row = {"type": "entity", "external_id": info.id, **identity(info), "created_at": info.created}
    return row | {"updated_at": info.changed}


def recent_row(info: NoteInfo) -> dict[str, Any]:
    """A note of recent_activity's JSON."""
    return {"type": "entity", **identity(info), "created_at": info.created}


def recent(args: Arguments, memory: Memory, shown: str) -> Reply:
    """The reply to recent_activity."""
    frame = args.get("timeframe") or "7d"
    page, size = (default if args.get(name) is None else args[name] for name, default in _PAGE.items())
    if page < 1 or size < 1 or size > 100:
        what = f"page must be >= 1, got {page}" if page < 1 else f"page_size must be between 1 and 100, got {size}"
        raise InvalidInput(what)
    if (depth := args.get("depth")) is not None and not 1 <= depth <= 5:
        raise InvalidInput(f"depth must be between 1 and 5, got {depth}")
    kinds = args.get("type") or []
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if unknown := {str(each).lower() for each in kinds} - {"entity", "observation", "relation", ""}:
        raise InvalidInput(f"Invalid type: {', '.join(unknown)}. Valid types: entity, observation, relation.")
    wanted = {str(each).lower() for each in kinds if each} or {"entity"}
    infos, total, _ = memory.recent(frame, projects=(args["project"],), limit=size, offset=(page - 1) * size)
    rows: list[dict[str, Any]] = [recent_row(each) for each in infos] if "entity" in wanted else []
    facts: list[tuple[str, dict[str, Any]]] = []
    for info in infos:
        place = {"permalink": info.permalink, "file_path": info.path, "created_at": info.created}
        for one in memory.observations(info) if "observation" in wanted else ():
            facts.append((one.content, {"type": "observation", "title": one.content, **place}))
        for edge in memory.outgoing(info) if "relation" in wanted else ():
            text = f"[[{info.title}]] → {edge.type} → [[{edge.target}]]"
            facts.append((text, {"type": "relation", "title": text, **place}))
    rows += [row for _, row in facts]
    if args.get("output_format") == "json":
        return json_reply(rows)
    head = f"## Recent Activity: {shown} ({frame})"
    if not rows and page > 1:
        return text_reply(f"{head}\n\nNo recent activity was found on page {page}.\nTry page={page - 1}.")
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
        lines += [f"\n**🔍 Recent Observations & Connections ({len(facts)}):**", *(f"  • {text}" for text, _ in facts)]
    count, more = len(rows), page * size < total
    end = f"Showing {count} items (page {page}). Use page={page + 1} to see more." if more else f"{count} items found."
    return text_reply("\n".join([*lines, f"\n**Activity Summary:** {end}"]))
