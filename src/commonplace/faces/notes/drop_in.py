"""The note tools as Basic Memory 0.24 has them: its arguments, aliases, routing and further tools (contract 000b, 10).

The listed schemas are ours; what that program accepts beyond them is in texts/basic-memory.json.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError, InvalidInput, NotFound
from commonplace.faces.arguments import Arguments
from commonplace.faces.notes import drop_in_replies as replies
from commonplace.faces.notes import drop_in_schemas as schemas
from commonplace.faces.notes.drop_in_replies import json_reply, text_reply
from commonplace.faces.notes.replies import project_id
from commonplace.faces.notes.vault import Vault
from commonplace.faces.reply import Reply
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Tool
from commonplace.note.edit import SetKeys
from commonplace.note.links import permalink_for, slug
from commonplace.query import Query

if TYPE_CHECKING:
    from commonplace.engine import Memory

Run = Callable[["Memory", Arguments], Reply]

_MIME = {"md": "text/markdown", "markdown": "text/markdown", "json": "application/json", "csv": "text/csv"}
_IMAGES = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif"}
_MOST_BYTES = 350_000
_ABSENT_IS_FALSE = ("delete_note",)


def tools(own: list[Tool], vault: Vault) -> list[Tool]:
    """`own`, the note tools, in that program's manner, and those it has besides."""
    data = json.loads(text_file("basic-memory.json"))
    by_name = {tool.name: tool for tool in own}
    served = []
    for tool in own:
        aliases = {alias: name for name, all in data["aliases"].get(tool.name, {}).items() for alias in all.split()}
        accepted = data["accepted"]["*"] | data["accepted"].get(tool.name, {}) | data["loosened"].get(tool.name, {})
        required = [each for each in tool.schema.get("required", ()) if each not in data["optional"].get(tool.name, ())]
        accepts = {**tool.schema, "properties": tool.schema["properties"] | accepted, "required": required}
        also = {**{k: v for k, v in tool.also.items() if k not in accepted}, **aliases}
        run = partial(_run, _SPECIAL.get(tool.name, _plain), tool, vault)
        rewrite = partial(_with_defaults, tool.name)
        served.append(replace(tool, run=run, also=also, accepts=accepts, rewrite=rewrite))
    for each in data["tools"]:
        run = partial(_run, _FURTHER[each["name"]], by_name["read_note"], vault)
        hints = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
        schema = {"type": "object", "properties": each["properties"], "required": each.get("required", [])}
        also = {**data["accepted"]["*"], **each.get("also", {})}
        served.append(Tool(each["name"], each["description"], schema, run, annotations=hints, also=also))
    return served


def _with_defaults(name: str, args: Arguments) -> Arguments:
    """Values other forms of which are ours: `/` for the root, tags as one text."""
    if name == "write_note" and args.get("overwrite", 0) is None:
        del args["overwrite"]
    return args


def _run(special: Callable[[Tool, Vault, Memory, Arguments], Reply], tool: Tool, vault: Vault, memory: Memory,
         args: Arguments) -> Reply:  # fmt: skip
    """Route the call to its project, run it, and word errors as that program does."""
    try:
        if special not in (_list_projects, _create_project, _delete_project):
            detected = _prefix(vault, memory, args)
            args["project"] = detected or vault.named(memory, args)
        return special(tool, vault, memory, args)
    except CommonplaceError as error:
        return replies.failed(tool.name, args, vault.shown(str(args.get("project") or "")), error)


def _prefix(vault: Vault, memory: Memory, args: Arguments) -> str | None:
    """The project an address begins with when none is named; it is cut off."""
    if args.get("project") or args.get("project_id") or vault.only:
        return None
    for key in ("identifier", "url", "path", "id"):
        given = args.get(key)
        if isinstance(given, str) and "/" in given.strip().removeprefix("memory://"):
            first, _, rest = given.strip().removeprefix("memory://").partition("/")
            for name, each in vault.projects(memory):
                if rest and slug(name) == slug(first) and each.name != memory.default_project:
                    args[key] = f"memory://{rest}" if given.strip().startswith("memory://") else given
                    return each.name
    return None


def _own(tool: Tool, memory: Memory, args: Arguments) -> Reply:
    """Our own reply, from the arguments our tool has."""
    known = {*tool.schema["properties"], *(k for k, v in tool.also.items() if v and not isinstance(v, str))}
    given = {k: v for k, v in args.items() if k in known and v is not None and k != "output_format"}
    return tool.run(memory, given)


def _plain(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    return _own(tool, memory, args)


def _write(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    overwrite = args.get("overwrite")
    args["overwrite"] = vault.write_note_overwrite_default if overwrite is None else overwrite
    folder = (args.get("directory") or "").strip()
    args["directory"] = folder = folder.strip("/") if folder == "/" or folder.endswith("/") else folder
    metadata = dict(args.get("metadata") or {})
    if vault.kebab_filenames:
        args["file_name"] = slug(args["title"].replace("/", "-").replace("\\", "-"))
    if not vault.permalinks_include_project:
        name = args.get("file_name") or args["title"].replace("/", "-")
        metadata.setdefault("permalink", slug(f"{folder}/{name}" if folder else name))
    args["metadata"] = metadata
    reply = tool.run(memory, _for(tool, args, "file_name"))
    return reply if reply.is_error and not _worded(reply) else replies.written(args, memory, vault, reply)


def _worded(reply: Reply) -> bool:
    return bool(reply.data and reply.data.get("code"))


def _for(tool: Tool, args: Arguments, *more: str) -> Arguments:
    known = {*tool.schema["properties"], *more, "supersedes", "valid_from", "valid_until"}
    return {key: value for key, value in args.items() if key in known and value is not None}


def _edit(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    operations = tool.schema["properties"]["operation"]["enum"]
    if args["operation"] not in operations:
        raise InvalidInput(f"Invalid operation '{args['operation']}'. Must be one of: {', '.join(operations)}")
    if args["operation"] == "find_replace" and not args.get("find_text"):
        raise InvalidInput("find_text parameter is required for find_replace operation")
    if args["operation"].endswith("_section") and not args.get("section"):
        raise InvalidInput("section parameter is required for section-based operations")
    if args["operation"] in ("append", "prepend"):
        args.pop("section", None)
    if any(value is None for value in (args.get("metadata") or {}).values()):
        raise InvalidInput("metadata values cannot be null (key deletion is not supported)")
    args["expected_replacements"] = args.get("expected_replacements") or 1
    reply = tool.run(memory, _for(tool, args))
    if not reply.is_error and args.get("metadata") and reply.data:
        place = (reply.data["project"], reply.data["file_path"])
        reply.data["checksum"] = memory.edit(place, SetKeys(args["metadata"])).note.checksum
    return replies.edited(args, memory, vault, reply)


def _read(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    for name in ("page", "page_size"):
        if args.get(name, 1) < 1:
            raise InvalidInput(f"{name} must be >= 1, got {args[name]}")
    as_json = args.get("output_format") == "json"
    try:
        info = memory.find_ref(args["identifier"], args["project"])
    except NotFound:
        return replies.missing_note(args, memory, vault.shown(args["project"]), as_json)
    if args.get("include_content") is False:
        note = memory.read(info, count=False)
        data = replies.identity(note) | {"checksum": note.checksum, "updated_at": info.changed}
        return json_reply(data) if as_json else text_reply("\n".join(f"{k}: {v}" for k, v in data.items()))
    if args.get("start_line") or args.get("end_line"):
        return replies.line_range(args, memory.read(info), as_json)
    note = memory.read(info)
    if not as_json:
        return text_reply(note.text)
    content = note.text if args.get("include_frontmatter") else note.text[note.body_at :].lstrip("\n")
    return json_reply(replies.identity(note) | {"content": content, "frontmatter": note.header})


def _move(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    path, folder = args.get("destination_path") or "", args.get("destination_folder") or ""
    is_folder = bool(args.get("is_directory"))
    if (code := replies.bad_destination(path, folder, is_folder)) is not None:
        return replies.not_moved(args, *code)
    shown = vault.shown(args["project"])
    first = (folder or path).strip("/").partition("/")[0]
    for name, each in vault.projects(memory):
        crosses = slug(name) == slug(first) and each.name != args["project"]
        if crosses and ("/" in path or folder) and not replies.has_folder(memory, args["project"], first):
            return replies.not_moved(args, "CROSS_PROJECT_MOVE_NOT_SUPPORTED", replies.cross_project(args, shown, name))
    if not is_folder:
        info = memory.find(args["identifier"], args["project"])
        if folder:
            path = folder.strip("/") + "/"
        elif "." not in path.rpartition("/")[2]:
            return replies.not_moved(args, "FILE_EXTENSION_REQUIRED", replies.no_extension(path))
        elif not path.endswith((".md", ".markdown")):
            return replies.not_moved(args, "FILE_EXTENSION_MISMATCH", replies.other_extension(path))
        if path.strip("/") == info.path:
            return replies.not_moved(args, "DESTINATION_SAME_AS_SOURCE", replies.same_place(args, path))
    else:
        info = None
    args["destination_path"] = path
    reply = tool.run(memory, _for(tool, args))
    if not reply.is_error and reply.data and vault.update_permalinks_on_move:
        _follow_path(memory, reply.data["project"], reply.data["new_path"], is_folder)
    return replies.moved(args, memory, shown, reply, info)


def _follow_path(memory: Memory, project: str, path: str, is_folder: bool) -> None:
    """Give the moved notes that carry a permalink the one of their new path."""
    listed, _ = memory.list(Query(projects=(project,)), limit=0, order="path")
    for info in listed:
        if info.path == path or (is_folder and info.path.startswith(f"{path}/")):
            note = memory.read(info, count=False)
            if note.own_permalink:
                memory.edit(info, SetKeys({"permalink": permalink_for(project, info.path)}))


def _delete(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    as_json, is_folder = args.get("output_format") == "json", bool(args.get("is_directory"))
    info = None
    if not is_folder:
        try:
            info = memory.find(args["identifier"], args["project"])
        except NotFound:
            blank = {"deleted": False, "title": None, "permalink": None, "file_path": None}
            return json_reply(blank) if as_json else Reply("false", {"result": False})
    else:
        args["identifier"] = args["identifier"].strip("/")
    return replies.deleted(args, vault.shown(args["project"]), tool.run(memory, _for(tool, args)), info)


def _directory(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    return replies.directory(args, memory, _own(tool, memory, args))


def _search(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    own = dict(args)
    if not args.pop("_routed", True) or args.get("search_all_projects") or args.get("projects"):
        wanted = args.get("projects")
        projects = vault.projects(memory)
        unknown = [each for each in wanted or () if slug(each) not in {slug(name) for name, _ in projects}]
        if unknown:
            known = ", ".join(name for name, _ in projects)
            raise InvalidInput(f"Unknown project(s): {', '.join(unknown)}. Available projects: {known}")
        slugs = {slug(each) for each in wanted} if wanted else None
        own["projects"] = [each.name for name, each in projects if slugs is None or slug(name) in slugs]
        own.pop("project", None)
    return replies.found(args, memory, vault, tool, own)


def _context(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    replies.check_url(args["url"])
    return replies.context(args, memory, vault.shown(args["project"]))


def _recent(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    return replies.recent(args, memory, vault.shown(args["project"]))


def _list_projects(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    rows = []
    default = memory.default_project
    for name, each in sorted(vault.projects(memory), key=lambda pair: slug(pair[0])):
        path = str(each.root)
        row = {"name": name, "external_id": project_id(name), "path": path, "local_path": path, "source": "local"}
        rows.append(row | {"is_default": each.name == default, "is_private": False, "display_name": None})
    if args.get("output_format") == "json":
        shown = vault.shown(default)
        return json_reply({"projects": rows, "default_project": shown, "constrained_project": vault.only})
    if vault.only:
        return text_reply(
            f"Project: {vault.only}\n\nNote: This MCP server is constrained to a single project.\n"
            "All operations will automatically use this project."
        )
    lines = [f"- {row['name']} (local) [{row['external_id']}]" for row in rows]
    end = "Next: Ask which project to use for this session.\n"
    end += "Pass a project name (or its [external_id] as project_id) on tool calls to target a project."
    return text_reply("\n".join(["Available projects:", *lines, "", "─" * 40, end]))


def _constrained(vault: Vault, verb: str, args: Arguments) -> Reply | None:
    if vault.only is None:
        return None
    text = f"Project {verb} disabled - MCP server is constrained to project '{vault.only}'."
    name = args["project_name"]
    if args.get("output_format") == "json":
        data = {"name": name, "created": False, "already_exists": False, "error": "PROJECT_CONSTRAINED"}
        return json_reply(data | {"message": text})
    what, rest = ("create", f"add {name} FOLDER") if verb == "creation" else ("delete", f"remove {name}")
    how = f"{what} projects: `memory project {rest}`"
    return text_reply(f"# Error\n\n{text}\nUse the CLI to {how}")


def _create_project(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    if (refused := _constrained(vault, "creation", args)) is not None:
        return refused
    if args.get("workspace"):
        raise InvalidInput("Cloud workspaces are not used here; every project is a folder. Leave `workspace` out.")
    known = [pair for pair in vault.projects(memory) if pair[0].casefold() == args["project_name"].strip().casefold()]
    if not known:
        reply = tool.run(memory, _for(tool, args))
        if reply.is_error:
            return Reply(reply.text, {"result": reply.text}, is_error=True)
        name, path = (reply.data or {})["name"], (reply.data or {})["path"]
    else:
        name, path = known[0][0], str(known[0][1].root)
    is_default = memory.default_project == (known[0][1].name if known else name)
    if args.get("output_format") == "json":
        data = {"name": name, "external_id": project_id(name), "path": path, "is_default": is_default}
        count = memory.list(Query(projects=(known[0][1].name if known else name,)), limit=1)[1]
        indexing = {"state": "completed", "total_files": count}
        data |= {"created": not known, "already_exists": bool(known), "indexing": indexing}
        return json_reply(data)
    head = f"✓ Project already exists: {name}" if known else f"✓ Project '{name}' added successfully"
    rows = [head, "", "Project Details:", f"• Name: {name}", f"• External ID: {project_id(name)}", f"• Path: {path}"]
    rows += ["• Set as default project"] if is_default else []
    rows += ["", "Indexing:", "• State: completed", ""]
    rows.append(
        "Project is already available for use in tool calls; indexing completed."
        if known
        else f"Project is now available for use in tool calls; indexing completed.\nUse '{name}' as the project "
        "parameter in MCP tool calls."
    )
    return text_reply("\n".join(rows))


def _delete_project(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    if (refused := _constrained(vault, "deletion", args)) is not None:
        return refused
    if args.get("delete_notes"):
        raise InvalidInput(
            "delete_project never deletes notes here. Leave `delete_notes` out; delete the folder by hand."
        )
    wanted = slug(args["project_name"])
    for name, each in vault.projects(memory):
        if slug(name) == wanted and each.name == memory.default_project:
            raise InvalidInput(f"Cannot delete default project '{name}'. Make another project the default first.")
        if slug(name) == wanted:
            memory.remove_project(each.name)
            return text_reply(
                f"✓ Project '{name}' removed successfully\n\nRemoved project details:\n• Name: {name}\n"
                f"• Path: {each.root}\nNote files remain on disk but the project is no longer "
                "tracked by Basic Memory.\n"
                "Re-add the project to access its content again.\n"
            )
    known = ", ".join(name for name, _ in vault.projects(memory))
    raise InvalidInput(f"Project '{args['project_name']}' not found. Available projects: {known} (delete_project)")


def _view(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    reply = _read(tool, vault, memory, {**args, "output_format": "text"})
    if "# Note Not Found" in reply.text:
        return reply
    head = (
        f'Note retrieved: "{args["identifier"]}"\n\nDisplay this note as a markdown artifact for the user.\n\nContent:'
    )
    return text_reply(f"{head}\n<note>\n{reply.text.strip()}\n</note>")


def _read_content(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    from commonplace.engine.plain_files import Files

    path, project = args["path"], args["project"]
    try:
        info = memory.find(path, project)
        data, name = memory.file(info).data, info.path
    except NotFound:
        name = path.removeprefix("memory://").strip("/")
        try:
            data = Files(memory, project).read(name).data
        except CommonplaceError:
            raise InvalidInput(f"Resource not found: {path}") from None
    ending = name.rpartition(".")[2].lower()
    try:
        if ending in _IMAGES:
            raise UnicodeError
        text = data.decode("utf-8")
        kind = _MIME.get(ending, "text/plain")
        kind += "; charset=utf-8" if kind.startswith("text/") else ""
        return json_reply({"type": "text", "text": text, "content_type": kind, "encoding": "utf-8"})
    except UnicodeError:
        pass
    if len(data) > _MOST_BYTES:
        return json_reply({"type": "error", "error": f"Document size {len(data)} bytes exceeds maximum allowed size"})
    kind, is_image = _IMAGES.get(ending, "application/octet-stream"), ending in _IMAGES
    source = {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}
    return json_reply({"type": "image" if is_image else "document", "source": source})


def _openai_search(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    """`search` for connectors that know only `search` and `fetch`."""
    hits = memory.search(Query(text=args["query"], projects=(args["project"],)), limit=10)
    rows = [{"id": hit.note.permalink, "title": hit.note.title, "url": hit.note.permalink} for hit in hits]
    return _wrapped({"results": rows, "total_count": len(rows), "query": args["query"]})


def _openai_fetch(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    name = args["id"]
    try:
        note = memory.read(name, project=args["project"])
    except NotFound:
        missing = replies.missing_note({**args, "identifier": name}, memory, vault.shown(args["project"]), False).text
        data = {"id": name, "title": name.rpartition("/")[2].replace("-", " ").title(), "text": missing, "url": name}
        return _wrapped(data | {"metadata": {"error": "Document not found"}})
    return _wrapped(
        {"id": name, "title": note.title, "text": note.text, "url": name, "metadata": {"format": "markdown"}}
    )


def _wrapped(data: dict[str, Any]) -> Reply:
    """As connectors take it: a list of one text item that holds JSON."""
    return json_reply([{"type": "text", "text": json.dumps(data, ensure_ascii=False)}])


def _cat(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    note = memory.read(args["identifier"], project=args["project"])
    lines = note.text.splitlines()
    first, last = args.get("start_line") or 1, args.get("end_line") or len(lines)
    data = replies.identity(note) | {"content": note.text, "frontmatter": note.header}
    if args.get("start_line") or args.get("end_line"):
        place = {"start_line": first, "end_line": min(last, len(lines)), "total_lines": len(lines)}
        data |= {"content": "\n".join(lines[first - 1 : last]), **place}
    return json_reply(data)


def _notes_below(memory: Memory, project: str, path: str) -> list[Any]:
    infos, _ = memory.list(Query(projects=(project,)), limit=0, order="path")
    folder = path.strip("/.")
    return [each for each in infos if not folder or each.path == folder or each.path.startswith(f"{folder}/")]


def _grep(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    import re

    flags = re.IGNORECASE if args.get("ignore_case") else 0
    try:
        pattern = re.compile(args["pattern"] if args.get("regex") else re.escape(args["pattern"]), flags)
    except re.error as error:
        raise InvalidInput(f"Parameter `pattern` is no regular expression: {error}.") from None
    matches, most = [], min(args.get("max_results") or 100, 500)
    for info in _notes_below(memory, args["project"], args.get("path") or ""):
        for number, line in enumerate(memory.text_of(info).splitlines(), 1):
            if pattern.search(line):
                matches.append({"file_path": info.path, "line": number, "text": line[:300]})
    return json_reply({"matches": matches[:most], "total": len(matches), "has_more": len(matches) > most})


def _find(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    wanted = args.get("name") or "*"
    found = [
        {"title": each.title, "permalink": each.permalink, "file_path": each.path}
        for each in _notes_below(memory, args["project"], args.get("path") or "")
        if fnmatchcase(each.path.rpartition("/")[2], wanted)
    ]
    size = min(args.get("page_size") or 50, 200)
    start = (max(args.get("page") or 1, 1) - 1) * size
    more = start + size < len(found)
    return json_reply({"nodes": found[start : start + size], "total": len(found), "has_more": more})


def _tail(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    most = min(max(args.get("lines") or 10, 1), 100)
    infos, _, _ = memory.recent(args.get("timeframe") or "7d", projects=(args["project"],), limit=most)
    return json_reply([replies.recent_row(each) | {"updated_at": each.changed} for each in infos])


def _ls(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    found = memory.directory(args["project"], (args.get("path") or "/").strip("/"), limit=200)
    rows = [{"path": each.path, "type": "directory" if each.kind == "folder" else "file"} for each in found.entries]
    return json_reply({"nodes": rows, "total": found.total})


_SPECIAL: dict[str, Callable[[Tool, Vault, Memory, Arguments], Reply]] = {
    "write_note": _write,
    "read_note": _read,
    "edit_note": _edit,
    "move_note": _move,
    "delete_note": _delete,
    "list_directory": _directory,
    "search_notes": _search,
    "build_context": _context,
    "recent_activity": _recent,
    "list_memory_projects": _list_projects,
    "create_memory_project": _create_project,
    "delete_project": _delete_project,
}
_FURTHER: dict[str, Callable[[Tool, Vault, Memory, Arguments], Reply]] = {
    "view_note": _view,
    "read_content": _read_content,
    "search": _openai_search,
    "fetch": _openai_fetch,
    "schema_validate": schemas.validate,
    "schema_infer": schemas.infer,
    "schema_diff": schemas.diff,
    "cat": _cat,
    "grep": _grep,
    "ls": _ls,
    "find": _find,
    "tail": _tail,
}
