"""The replies of the note tools in Basic Memory's words and JSON keys (contract 000b, 10)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.errors import (
    CommonplaceError,
    Conflict,
    CountMismatch,
    Exists,
    InvalidInput,
    NotFound,
    OutsideError,
    ProjectNotFound,
    SectionError,
)
from commonplace.faces.arguments import Arguments
from commonplace.faces.notes.read_tools import search_query
from commonplace.faces.notes.replies import body_of, compact, day, short
from commonplace.faces.reply import Reply
from commonplace.index.rows import Hit, NoteInfo
from commonplace.note.model import Note
from commonplace.query import Query

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.notes.vault import Vault
    from commonplace.faces.tool import Tool

_ADDED = {"append": "end", "prepend": "beginning"}
_PAGES = 50


def text_reply(text: str, is_error: bool = False) -> Reply:
    """A text, as that program wraps it in structured content."""
    return Reply(text, {"result": text}, is_error)


def json_reply(data: Any, is_error: bool = False) -> Reply:
    """Data, compact in the text."""
    return Reply(compact(data), data if isinstance(data, dict) else {"result": data}, is_error)


def identity(note: Note | NoteInfo) -> dict[str, Any]:
    """What names a note in all its JSON."""
    return {"title": note.title, "permalink": note.permalink, "file_path": note.path}


def _session(text: str, project: str) -> Reply:
    return text_reply(f"{text}\n\n[Session: Using project '{project}']")


def _facts(memory: Memory, note: NoteInfo, unresolved_note: bool) -> list[str]:
    """The sections on observations and relations of a note just written."""
    counts = Counter(each.category or "note" for each in memory.observations(note))
    rows = ["\n## Observations", *(f"- {name}: {count}" for name, count in sorted(counts.items()))] if counts else []
    edges = memory.outgoing(note)
    if edges:
        resolved = sum(edge.state == "resolved" for edge in edges)
        rows += ["\n## Relations", f"- Resolved: {resolved}"]
        if resolved < len(edges):
            rows.append(f"- Unresolved: {len(edges) - resolved}")
            if unresolved_note:
                rows.append("\nNote: Unresolved relations point to entities that don't exist yet.")
                rows.append("They are resolved as soon as notes of these names are written.")
    return rows


def written(args: Arguments, memory: Memory, vault: Vault, reply: Reply) -> Reply:
    """The reply to write_note, from our own."""
    as_json, data = args.get("output_format") == "json", reply.data or {}
    if reply.is_error:
        return _not_written(args, memory, vault, reply)
    found = {key: data[key] for key in ("title", "permalink", "file_path", "checksum")}
    if as_json:
        return json_reply(found | {"action": data["action"], "similar_notes": []})
    shown = vault.shown(data["project"])
    rows = [f"# {data['action'].capitalize()} note", f"project: {shown}", f"file_path: {found['file_path']}"]
    rows += [f"permalink: {found['permalink']}", f"checksum: {found['checksum']}"]
    rows += _facts(memory, memory.find_ref((data["project"], data["file_path"])), True)
    if tags := [each.strip().lstrip("#") for each in args.get("tags") or () if each.strip()]:
        rows.append(f"\n## Tags\n- {', '.join(tags)}")
    return _session("\n".join(rows), shown)


def _not_written(args: Arguments, memory: Memory, vault: Vault, reply: Reply) -> Reply:
    code, title, shown = (reply.data or {}).get("code"), args["title"], vault.shown(args["project"])
    blank: dict[str, Any] = {"title": title, "permalink": None, "file_path": None, "checksum": None}
    if code == "exists":
        name = _between(reply.text, "exists: ", ". ")
        path = name
        try:
            info = memory.find(name, args["project"])
            name, path = info.permalink, info.path
        except CommonplaceError:
            pass
        blank |= {"permalink": name, "file_path": path, "action": "conflict", "error": "NOTE_ALREADY_EXISTS"}
        text = (
            f'# Error: Note already exists\n\n**"{title}"** already exists (`{name}`).\n\n`write_note` does not '
            f"overwrite by default. Choose an option:\n\n| Goal | Action |\n|------|--------|\n"
            f'| Append content | `edit_note("{name}", operation="append", content="...")` |\n'
            f'| Replace a section | `edit_note("{name}", operation="replace_section", section="...", '
            'content="...")` |\n'
            f'| Full replace | `write_note(title="{title}", content="...", directory="...", overwrite=True)` |\n'
            f'| Inspect first | `read_note("{name}")` |\n\nProject: {shown}'
        )
    elif code == "outside":
        blank |= {"action": "created", "error": "SECURITY_VALIDATION_ERROR"}
        folder = args["directory"]
        text = f"# Error\n\nDirectory path '{folder}' is not allowed - paths must stay within project boundaries"
    elif code == "conflict":
        now = _between(reply.text, "checksum ", ",")
        blank |= {"action": "conflict", "error": "NOTE_REVISION_CONFLICT", "currentChecksum": now}
        text = (
            f'# Error: Note revision conflict\n\n**"{title}"** changed since you read it, so nothing was replaced.\n'
            f"Current checksum: `{now}`\n\nProject: {shown}"
        )
    else:
        return Reply(reply.text, {"result": reply.text}, is_error=True)
    return json_reply(blank, True) if args.get("output_format") == "json" else text_reply(text, True)


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


def edited(args: Arguments, memory: Memory, vault: Vault, reply: Reply) -> Reply:
    """The reply to edit_note, from our own."""
    operation, shown, data = args["operation"], vault.shown(args["project"]), reply.data or {}
    if reply.is_error:
        return _not_edited(args, shown, reply)
    is_new = data["action"] == "created"
    found = {key: data[key] for key in ("title", "permalink", "file_path", "checksum")}
    if args.get("output_format") == "json":
        return json_reply(found | {"operation": operation, "fileCreated": is_new})
    rows = [f"# {'Created' if is_new else 'Edited'} note ({operation})", f"project: {shown}"]
    rows += [f"{key}: {found[key]}" for key in ("file_path", "permalink", "checksum")]
    count, section = len(args["content"].split("\n")), args.get("section")
    if is_new:
        rows += ["fileCreated: true", f"operation: Created note with {count} lines"]
    elif operation in _ADDED:
        rows.append(f"operation: Added {count} lines to {_ADDED[operation]} of note")
    elif operation == "find_replace":
        rows.append("operation: Find and replace operation completed")
    elif operation == "replace_section":
        rows.append(f"operation: Replaced content under section '{section}'")
    else:
        where = "before" if operation == "insert_before_section" else "after"
        rows.append(f"operation: Inserted content {where} section '{section}'")
    rows += _facts(memory, memory.find_ref((data["project"], data["file_path"])), False)
    return _session("\n".join(rows), shown)


def _not_edited(args: Arguments, shown: str, reply: Reply) -> Reply:
    code, name, find = (reply.data or {}).get("code"), args["identifier"], args.get("find_text")
    ours, error = reply.text, reply.text
    hint = f'Use `read_note(identifier="{name}", project="{shown}")` to see the current content.'
    if code in ("not_found", "project_not_found"):
        text = f"# Edit Failed - Note Not Found\n\nThe note with identifier '{name}' could not be found. {ours}"
        text += f'\n\nUse `search_notes(query="{name}")` to find it, or append/prepend, which create it.'
    elif code == "count":
        now = _between(ours, "found ", ".")
        text = f"# Edit Failed - Text Not Found\n\nThe text '{find}' was not found in the note '{name}'.\n\n{hint}"
        if now != "0":
            text = (
                f"# Edit Failed - Wrong Replacement Count\n\nExpected {args['expected_replacements']} occurrences of "
                f"'{find}' but found {now}.\n\nUpdate expected_replacements: set expected_replacements={now}, or give "
                f"more context. {hint}"
            )
    elif code == "section" and "times" in ours:
        text = f"# Edit Failed - Duplicate Section Headers\n\nMultiple sections found with the same header. {ours}"
    elif code == "conflict":
        error = "NOTE_REVISION_CONFLICT"
        text = f"# Edit Failed - Note Revision Conflict\n\n{ours}"
    else:
        text = f"# Edit Failed\n\nError editing note '{name}': {ours}\n\n{hint}"
    if args.get("output_format") != "json":
        return text_reply(text, True)
    blank: dict[str, Any] = {"title": None, "permalink": None, "file_path": None, "checksum": None}
    blank |= {"operation": args["operation"], "fileCreated": False, "error": error}
    if code == "conflict":
        blank["currentChecksum"] = _between(ours, "checksum ", ",")
    return json_reply(blank, True)


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
        return text_reply("\n".join(f"{number}\t{row}" for number, row in enumerate(wanted, first)))
    data = identity(note) | {"content": "\n".join(wanted), "frontmatter": note.header, "start_line": first}
    data |= {"end_line": last, "total_lines": len(rows), "has_more": more}
    data |= {"next_start_line": last + 1 if more else None}
    return json_reply(data | {"next_end_line": min(len(rows), last + last - first + 1) if more else None})


def bad_destination(path: str, folder: str, is_folder: bool) -> tuple[str, str] | None:
    """(code, text) of what a move must not be asked for."""
    if path and folder:
        text = "Cannot specify both destination_path and destination_folder. Use one or the other."
        return "MUTUALLY_EXCLUSIVE_PARAMS", f"# Move Failed - Invalid Parameters\n\n{text}"
    if not path and not folder:
        text = "Either destination_path or destination_folder must be provided."
        return "MISSING_DESTINATION", f"# Move Failed - Missing Destination\n\n{text}"
    if folder and is_folder:
        text = "destination_folder is only supported for single-file moves, not directory moves."
        return "DESTINATION_FOLDER_NOT_FOR_DIRECTORIES", f"# Move Failed - Invalid Parameters\n\n{text}"
    target = (path or folder).replace("\\", "/")
    if target.startswith(("/", "~")) or ".." in target.split("/") or target[1:3] == ":/":
        text = f"The destination path '{path or folder}' is not allowed - paths must stay within project boundaries."
        return "SECURITY_VALIDATION_ERROR", f"# Move Failed - Security Validation Error\n\n{text}"
    return None


def cross_project(args: Arguments, shown: str, other: str) -> str:
    """The refusal of a destination in another project."""
    name = args["identifier"]
    return (
        f"# Move Failed - Cross-Project Move Not Supported\n\nCannot move '{name}' from project '{shown}' to "
        f"project '{other}': a move stays inside its project.\n\n## Workaround\n"
        f'1. `read_note("{name}", project="{shown}")`\n2. `write_note(title="...", content="...", directory="...", '
        f'project="{other}")`\n3. `delete_note("{name}", project="{shown}")`\n\n'
        "Use `list_memory_projects()` to see all available projects."
    )


def no_extension(path: str) -> str:
    """The refusal of a destination that is no file name."""
    return (
        f"# Move Failed - File Extension Required\n\nThe destination path '{path}' must include a file extension "
        f"(e.g., '.md').\n\nTry `{path}.md`."
    )


def other_extension(path: str) -> str:
    """The refusal of another kind of file."""
    ending = path.rpartition(".")[2]
    return (
        f"# Move Failed - File Extension Mismatch\n\nThe destination file extension '.{ending}' does not match the "
        f"source file extension '.md'.\n\nTry `{path.rpartition('.')[0]}.md`."
    )


def same_place(args: Arguments, path: str) -> str:
    """The refusal of a move to where the note is."""
    return (
        f"# Move Failed - Destination Same as Source\n\nThe note '{args['identifier']}' is already at the requested "
        f"destination.\n\n**Current path:** `{path}`\n\nChoose a different destination path."
    )


def not_moved(args: Arguments, code: str, text: str, is_error: bool = False) -> Reply:
    """A move that was refused."""
    if args.get("output_format") != "json":
        return text_reply(text, is_error)
    target = args.get("destination_path") or args.get("destination_folder")
    blank: dict[str, Any] = {"moved": False, "title": None, "permalink": None, "file_path": None}
    return json_reply(blank | {"source": args["identifier"], "destination": target, "error": code}, is_error)


def has_folder(memory: Memory, project: str, folder: str) -> bool:
    """Whether the project has this folder."""
    try:
        return bool(memory.directory(project, folder, limit=1))
    except NotFound:
        return False


def moved(args: Arguments, memory: Memory, shown: str, reply: Reply, info: NoteInfo | None) -> Reply:
    """The reply to move_note, from our own."""
    data, name, target = reply.data or {}, args["identifier"], args["destination_path"]
    is_folder = info is None
    if reply.is_error:
        what = "Directory Move Failed" if is_folder else "Move Failed"
        why = {"exists": " - Destination Already Exists", "not_found": " - No Files Found" if is_folder else ""}
        text = f"# {what}{why.get(str(data.get('code')), '')}\n\nError moving '{name}' to '{target}': {reply.text}"
        if is_folder and data.get("code") == "not_found":
            text += "\nTotal files: 0."
        return not_moved(args, reply.text, text, True)
    if is_folder:
        count = data["notes"]
        if args.get("output_format") == "json":
            sums = {"total_files": count, "successful_moves": count, "failed_moves": 0}
            blank: dict[str, Any] = {"moved": True, "title": None, "permalink": None, "file_path": None}
            return json_reply(blank | {"source": name, "destination": target, "is_directory": True} | sums)
        below = memory.list(Query(projects=(data["project"],)), limit=0, order="path")[0]
        paths = [each.path for each in below if each.path.startswith(f"{data['new_path']}/")]
        return text_reply(
            f"# Directory Moved Successfully\n\n**Source:** `{name}`\n**Destination:** `{target}`\n\n## Summary\n"
            f"- Total files: {count}\n- Successfully moved: {count}\n- Failed: 0\n\n## Moved Files\n"
            + "\n".join([*_first_files(paths), "", f"<!-- Project: {shown} -->"])
        )
    now = memory.find_ref((data["project"], data["new_path"]))
    if args.get("output_format") == "json":
        return json_reply({"moved": True, **identity(now), "source": name, "destination": data["new_path"]})
    return text_reply(
        f"# Note Moved\n\n✅ Note moved successfully\n\n📁 `{data['old_path']}` → `{data['new_path']}`\n"
        f"From: {name}\nTo: {data['new_path']}\nPermalink: {now.permalink}\n"
        f"📊 Database and search index updated\n\n<!-- Project: {shown} -->"
    )


def _first_files(paths: list[str]) -> list[str]:
    rows = [f"- `{path}`" for path in paths[:10]]
    return rows + ([f"- ... and {len(paths) - 10} more"] if len(paths) > 10 else [])


def deleted(args: Arguments, shown: str, reply: Reply, info: NoteInfo | None) -> Reply:
    """The reply to delete_note, from our own."""
    data, name, as_json = reply.data or {}, args["identifier"], args.get("output_format") == "json"
    if reply.is_error:
        what = "Directory Delete Failed" if info is None else "Delete Failed"
        why = " - No Files Found" if data.get("code") == "not_found" else ""
        text = f"# {what}{why}\n\nNo files found for directory `{name}`.\nTotal files: 0.\n\n{reply.text}"
        if not why:
            text = f"# {what}\n\n{reply.text}"
        blank = {"deleted": False, "is_directory": info is None, "identifier": name, "total_files": 0}
        return json_reply(blank | {"error": reply.text}, True) if as_json else text_reply(text, True)
    if info is not None:
        return json_reply({"deleted": True, **identity(info)}) if as_json else Reply("true", {"result": True})
    count, paths = data["notes"], data["paths"]
    if as_json:
        sums = {"total_files": count, "successful_deletes": count, "failed_deletes": 0, "deleted_files": paths}
        return json_reply({"deleted": True, "is_directory": True, "identifier": name, **sums, "errors": []})
    rows = _first_files(paths)
    return text_reply(
        f"# Directory Deleted Successfully\n\n**Directory:** `{name}`\n\n## Summary\n- Total files: {count}\n"
        f"- Successfully deleted: {count}\n- Failed: 0\n\n## Deleted Files\n"
        + "\n".join([*rows, "", f"<!-- Project: {shown} -->"])
    )


def directory(args: Arguments, memory: Memory, reply: Reply) -> Reply:
    """The reply to list_directory, from our own."""
    data, name, glob = reply.data or {}, args.get("dir_name") or "/", args.get("file_name_glob")
    depth, as_json = args.get("depth") or 1, args.get("output_format") == "json"
    if reply.is_error and data.get("code") != "not_found":
        return Reply(reply.text, {"result": reply.text}, is_error=True)
    entries = [] if reply.is_error else data["entries"]
    nodes = []
    for each in entries:
        is_file = each["kind"] == "note"
        node = {"name": each["path"].rpartition("/")[2], "directory_path": f"/{each['path']}"}
        node |= {"type": "file" if is_file else "directory"}
        if is_file:
            node |= {"file_path": each["path"], "title": each["title"], "permalink": each["permalink"]}
            node |= {"updated_at": each["changed"], "content_type": "text/markdown", "note_type": "note"}
        nodes.append(node)
    total, more = (0, False) if reply.is_error else (data["total"], data["more"])
    page, size = args.get("page") or 1, args.get("page_size") or 50
    if as_json:
        return json_reply({"nodes": nodes, "page": page, "page_size": size, "total": total, "has_more": more})
    if not total:
        return text_reply(f"No files found in directory '{name}'" + (f" matching '{glob}'" if glob else ""))
    head = f"Files in '{name}' matching '{glob}' (depth {depth}):" if glob else f"Contents of '{name}' (depth {depth}):"
    folders = [node for node in nodes if node["type"] == "directory"]
    files = [node for node in nodes if node["type"] == "file"]
    rows = [head, f"Page {page} (page size {size}, {total} total items)", ""]
    rows += [f"📁 {node['name']:<30} {node['directory_path']}" for node in folders]
    rows += [""] if folders and files else []
    for node in files:
        title = f" | {node['title']}" if node["title"] != node["name"] else ""
        rows.append(f"📄 {node['name']:<30} {node['file_path']}{title} | {day(memory, node['updated_at'])}")
    parts = [f"{len(folders)} director{'y' if len(folders) == 1 else 'ies'}"] if folders else []
    parts += [f"{len(files)} file{'s' if len(files) != 1 else ''}"] if files else []
    rows += ["", f"Total: {len(nodes)} items" + (f" ({', '.join(parts)})" if parts else "")]
    if not nodes:
        rows.append(f"Requested page {page} is beyond the available results; the last is {-(-total // size)}.")
    if more:
        rows += ["", f"More results available. Call list_directory(dir_name={name!r}, page={page + 1}) to continue."]
    return text_reply("\n".join(rows))


def found(args: Arguments, memory: Memory, vault: Vault, tool: Tool, own: Arguments) -> Reply:
    """The reply to search_notes: notes, or with `entity_types` the observations and relations of those that match."""
    page, size = args.get("page") or 1, args.get("page_size") or 10
    if page < 1 or size < 1:
        raise InvalidInput(f"page and page_size must be >= 1, got {page} and {size}")
    words = (args.get("query") or "").strip()
    types = set(args.get("entity_types") or (["observation"] if args.get("categories") else ["entity"]))
    if unknown := types - {"entity", "observation", "relation"}:
        raise InvalidInput(f"Invalid entity_types: {', '.join(unknown)}. They are entity, observation, relation.")
    filters = [name for name in own if name.endswith(("types", "tags", "status", "filters", "categories", "date"))]
    if not words and not any(own.get(name) for name in filters):
        return text_reply("# No Search Criteria\n\nGive a query or at least one filter.", True)
    kind = own.get("search_type") if own.get("search_type") in ("title", "permalink") else "text"
    given = {"search_type": kind, "query": words}
    query = search_query(memory, {**{k: v for k, v in own.items() if v is not None}, **given}, words)
    whole = types == {"entity"}
    hits = memory.search(query, limit=size if whole else 200, offset=(page - 1) * size if whole else 0)
    rows = [row for hit in hits for row in _result_rows(memory, hit, types, args, query)]
    total = hits.total if whole else len(rows)
    rows = rows if whole else rows[(page - 1) * size : page * size]
    more = page * size < total
    if args.get("output_format") == "json":
        sums = {"current_page": page, "page_size": size, "total": total, "total_is_exact": True, "has_more": more}
        if args.get("compact"):
            rows = [{k: v for k, v in row.items() if k not in ("content", "matched_chunk")} for row in rows]
        return json_reply({"results": rows, **sums})
    several = own.get("projects") is not None and "project" not in own
    shown = "all projects" if several else vault.shown(args["project"])
    if not rows:
        return text_reply(
            f"No results found for '{words}' in project '{shown}'. Try broader or different terms, or call "
            f'recent_activity(project="{shown}") to orient.'
        )
    lines = [f"# Search Results: {words}" if words else "# Search Results", f"*project: {shown}*", ""]
    for row in rows:
        lines += [f"### {row['title']}", f"- permalink: {row['permalink']}", f"- score: {row['score']:.4f}"]
        lines += [f"- match: {short(row['matched_chunk'], 200)}", ""]
    count = len(rows)
    foot = f"*{count} result{'s' if count != 1 else ''} | page {page}, page_size {size}"
    return text_reply("\n".join([*lines, "---", foot + (" | more available*" if more else "*")]))


def _result_rows(memory: Memory, hit: Hit, types: set[str], args: Arguments, query: Query) -> list[dict[str, Any]]:
    note, score = hit.note, round(hit.score, 4)
    base = {"score": score, "file_path": note.path, "updated_at": note.changed, "external_id": note.id}
    base["entity"] = note.permalink
    rows: list[dict[str, Any]] = []
    if "entity" in types:
        row = {"title": note.title, "type": "entity", "permalink": note.permalink, "matched_chunk": hit.passage}
        content = body_of(memory, note)[:1000]
        rows.append(row | base | {"content": content, "metadata": {"note_type": note.type, "tags": list(note.tags)}})
    words = [word.casefold() for word in query.text.replace('"', " ").split()]
    wanted = {each.casefold() for each in args.get("categories") or ()}
    if "observation" in types:
        for each in memory.observations(note):
            text, category = each.content, each.category or "note"
            is_match = not words or any(word in text.casefold() or word in category.casefold() for word in words)
            if is_match and (not wanted or category.casefold() in wanted):
                name = f"{note.permalink}/observations/{category}/{short(text, 60).lower().replace(' ', '-')}"
                row = {"title": f"{category}: {short(text)}", "type": "observation", "permalink": name}
                rows.append(row | base | {"content": text, "matched_chunk": text, "category": category})
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
    page, size = args.get("page") or 1, args.get("page_size") or 10
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
    meta |= {"related_count": related, "total_results": len(entries) + related}
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
        if each["observations"]:
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
        {"type": "observation", "category": each.category or "note", "content": each.content, "file_path": info.path}
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
        related.append(row | {"permalink": f"{info.permalink}/{edge.type}/{other.permalink if other else edge.target}"})
    related = [*related, *(_entity(each.note) for each in known.reached)][: most or 0]
    return {"primary_result": primary, "observations": observations, "related_results": related}


def _entity(info: NoteInfo) -> dict[str, Any]:
    row = {"type": "entity", "external_id": info.id, **identity(info), "created_at": info.created}
    return row | {"updated_at": info.changed}


def recent_row(info: NoteInfo) -> dict[str, Any]:
    """A note of recent_activity's JSON."""
    return {"type": "entity", **identity(info), "created_at": info.created}


def recent(args: Arguments, memory: Memory, shown: str) -> Reply:
    """The reply to recent_activity."""
    page, size, frame = args.get("page") or 1, args.get("page_size") or 10, args.get("timeframe") or "7d"
    if page < 1 or size < 1 or size > 100:
        raise InvalidInput(f"page must be >= 1 and page_size between 1 and 100, got {page} and {size}")
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


def failed(tool: str, args: Arguments, shown: str, error: CommonplaceError) -> Reply:
    """An error of a call, in the manner of the tool."""
    text = str(error)
    if isinstance(error, ProjectNotFound):
        text = f"Project '{args.get('project')}' not found. {text}"
    elif isinstance(error, OutsideError) and tool in ("read_note", "view_note"):
        return text_reply(
            f"# Error\n\nIdentifier '{args['identifier']}' is not allowed - paths must stay within project boundaries"
        )
    elif isinstance(error, NotFound) and tool == "move_note":
        hint = f'Use `search_notes("{args["identifier"]}")` to find it.'
        text = (
            f"# Move Failed - Note Not Found\n\nThe note '{args['identifier']}' could not be found for moving. {hint}"
        )
        return not_moved(args, f"Entity not found: {args['identifier']}", text, True)
    elif isinstance(error, NotFound | Exists | Conflict | CountMismatch | SectionError):
        text = f"# Error\n\n{text}"
    return text_reply(text, True)
