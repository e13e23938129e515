"""The note tools as Basic Memory 0.24 has them: its arguments, aliases, routing and further tools (contract 000b, 10).

The listed schemas are ours; what that program accepts beyond them is in texts/basic-memory.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError, InvalidInput, NotFound, ProjectNotFound
from commonplace.faces.arguments import Arguments
from commonplace.faces.notes import drop_in_places as places
from commonplace.faces.notes import drop_in_reading as reading
from commonplace.faces.notes import drop_in_replies as replies
from commonplace.faces.notes import drop_in_schemas as schemas
from commonplace.faces.notes import drop_in_shell as shell
from commonplace.faces.notes import drop_in_views as views
from commonplace.faces.notes.drop_in_replies import json_reply, text_reply
from commonplace.faces.notes.replies import project_id
from commonplace.faces.notes.vault import Vault
from commonplace.faces.reply import Reply, error_reply
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Tool
from commonplace.index.rows import NoteInfo
from commonplace.note.edit import SetKeys
from commonplace.note.grammar import scan
from commonplace.note.links import permalink_for, slug
from commonplace.note.markdown import own_permalink
from commonplace.query import Query

if TYPE_CHECKING:
    from commonplace.engine import Memory

Run = Callable[["Memory", Arguments], Reply]

_SIGNS = re.compile(r'[-/\\<>:"|?*]+')
"""What a title has and its file's name has not."""
_TAGS = re.compile(r"\btag:([^\s\"]+)")


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
        if special not in (_list_projects, _create_project, _delete_project, *shell.TOOLS.values()):
            detected = vault.detected(memory, args)
            args["by_default"] = not (detected or vault.only or args.get("project") or args.get("project_id"))
            args["project"] = detected or vault.named(memory, args)
        return special(tool, vault, memory, args)
    except CommonplaceError as error:
        if isinstance(error, ProjectNotFound):  # the engine also knows projects that program has not
            error = ProjectNotFound(error.name, [name for name, _ in vault.projects(memory)])
        return replies.failed(tool.name, args, vault.shown(str(args.get("project") or "")), error)


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
    if args.get("expected_checksum") and not args["overwrite"]:
        raise InvalidInput("expected_checksum requires overwrite=True: it is the revision that is replaced.")
    args["note_type"] = _note_type(args.get("note_type") or "note")
    folder = (args.get("directory") or "").strip()
    folder = folder.strip("/") if folder == "/" or folder.endswith("/") else folder
    args["directory"] = folder = places.as_there(memory, args["project"], folder)
    stripped = ("title", "type", "permalink", *(("tags",) if args.get("tags") else ()))  # have arguments of their own
    metadata = {key: value for key, value in (args.get("metadata") or {}).items() if key not in stripped}
    if vault.kebab_filenames:
        args["file_name"] = slug(args["title"].replace("/", "-").replace("\\", "-"))
    else:
        args["file_name"] = _SIGNS.sub("-", args["title"]).strip(".").strip("-")
    if not args["content"].startswith(("---", "\n")):
        args["content"] = f"\n{args['content']}"  # an empty line after the frontmatter, as there
    file = f"{folder}/{args['file_name']}.md" if folder else f"{args['file_name']}.md"
    derived = permalink_for(args["project"], file) if vault.permalinks_include_project else slug(file[:-3])
    own = own_permalink(args["content"].lstrip("\n"))
    wanted = own or derived
    is_new, holder = places.at(memory, args["project"], file) is None, places.holder(memory, args["project"], wanted)
    if args["overwrite"] and holder and holder.path.lower() != file.lower() and (is_new or own):
        return replies.elsewhere(args, holder)
    if is_new and holder:
        wanted = places.free_permalink(memory, args["project"], wanted)
    if is_new and (holder or not vault.permalinks_include_project):
        metadata["permalink"] = wanted
    args["metadata"] = metadata
    reply = tool.run(memory, _for(tool, args, "file_name"))
    if not is_new and not reply.is_error and reply.data and own:
        changed = memory.edit((args["project"], reply.data["file_path"]), SetKeys({"permalink": wanted})).note
        reply.data |= {"permalink": changed.permalink, "checksum": changed.checksum}
    return reply if reply.is_error and not _worded(reply) else replies.written(args, memory, vault, reply)


def _note_type(text: str) -> str:
    """A note type as that program writes it: `Decision Log` is `decision_log`."""
    return slug(text).replace("-", "_") or text


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
    metadata = {k: v for k, v in (args.get("metadata") or {}).items() if k not in ("title", "permalink")}
    if absent := [name for name, value in metadata.items() if value is None]:
        raise InvalidInput(f"metadata values cannot be null (key deletion is not supported): {', '.join(absent)}")
    if "type" in metadata:
        if not str(metadata["type"]).strip():
            raise InvalidInput("metadata.type must not be blank: it is the note's type.")
        metadata["type"] = _note_type(str(metadata["type"]))
    if args.get("expected_checksum"):  # a note that is not there has no such revision
        try:
            memory.find(args["identifier"], args["project"])
        except NotFound as error:
            return replies.edited(args, memory, vault, error_reply(error))
    if args.get("replace_subsections") is False and args["operation"] == "replace_section":
        args["content"] += _subsections(memory, args)
    args["metadata"] = metadata
    args["expected_replacements"] = args.get("expected_replacements") or 1
    reply = tool.run(memory, _for(tool, args))
    if not reply.is_error and args.get("metadata") and reply.data:
        place = (reply.data["project"], reply.data["file_path"])
        reply.data["checksum"] = memory.edit(place, SetKeys(args["metadata"])).note.checksum
    return replies.edited(args, memory, vault, reply)


def _subsections(memory: Memory, args: Arguments) -> str:
    """What lies below the first heading inside the section, to be kept behind its new text."""
    note = memory.read(args["identifier"], project=args["project"])
    headings, lines = scan(note.text, note.body_at)[2], note.text.splitlines(keepends=True)
    wanted = args["section"].strip().lstrip("#").strip()
    for at, each in enumerate(headings):
        if each.text == wanted:
            below = next((one.line - 1 for one in headings[at + 1 :] if one.level <= each.level), len(lines))
            inner = next((one.line - 1 for one in headings[at + 1 :] if one.line <= below), below)
            return ("\n\n" + "".join(lines[inner:below]).rstrip("\n")) if inner < below else ""
    return ""


def _read(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    for name in ("page", "page_size", "start_line", "end_line"):
        if args.get(name) is not None and args[name] < 1:
            raise InvalidInput(f"{name} must be >= 1, got {args[name]}")
    if (args.get("end_line") or 1e9) < (args.get("start_line") or 1):
        raise InvalidInput(f"end_line must be >= start_line, got {args['end_line']}")
    reading.check_inside(args["identifier"])
    as_json, is_ranged = args.get("output_format") == "json", bool(args.get("start_line") or args.get("end_line"))
    if args.get("include_content") is False and is_ranged:
        raise InvalidInput("include_content=False cannot be combined with start_line/end_line.")
    try:
        info = memory.find_ref(args["identifier"], args["project"])
    except NotFound:
        return reading.missing_note(args, memory, vault.shown(args["project"]), as_json)
    if args.get("include_content") is False:
        note = memory.read(info, count=False)
        data = replies.identity(note) | {"checksum": note.checksum, "updated_at": info.changed}
        return (
            json_reply(data)
            if as_json
            else text_reply("\n".join(["# Note metadata", *(f"{k}: {v}" for k, v in data.items())]))
        )
    if is_ranged:
        return reading.line_range(args, memory.read(info), as_json)
    note = memory.read(info)
    if not as_json:
        return text_reply(note.text)
    content = note.text if args.get("include_frontmatter") else note.text[note.body_at :].lstrip("\n")
    data = replies.identity(note) | {"content": content, "frontmatter": note.header}
    return json_reply(data | {"checksum": note.checksum})


def _move(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    path, folder = args.get("destination_path") or "", args.get("destination_folder") or ""
    folder = args["destination_folder"] = places.as_there(memory, args["project"], folder.strip("/") or folder)
    if not path.startswith("/"):
        path = places.as_there(memory, args["project"], path)
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
        elif "." not in path.rpartition("/")[2].rstrip("."):
            return replies.not_moved(args, "FILE_EXTENSION_REQUIRED", replies.no_extension(path))
        elif not path.endswith((".md", ".markdown")):
            return replies.not_moved(args, "FILE_EXTENSION_MISMATCH", replies.other_extension(path))
        if path.strip("/") == info.path:
            return replies.not_moved(args, "DESTINATION_SAME_AS_SOURCE", replies.same_place(args, path))
    else:
        info = None
    args["destination_path"] = path
    args["follow"] = vault.update_permalinks_on_move
    reply = tool.run(memory, _for(tool, args, "follow"))
    return replies.moved(args, memory, shown, reply, info)


def _delete(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    as_json, is_folder = args.get("output_format") == "json", bool(args.get("is_directory"))
    info = None
    if not is_folder:
        try:
            info = memory.find(args["identifier"], args["project"])
            if not _is_called(info, args["identifier"]):
                raise NotFound(args["identifier"])  # a title in another case: what is deleted is named exactly
        except NotFound:
            blank = {"deleted": False, "title": None, "permalink": None, "file_path": None}
            return json_reply(blank) if as_json else Reply("false", {"result": False})
    else:
        args["identifier"] = args["identifier"].strip("/")
    return replies.deleted(args, vault.shown(args["project"]), tool.run(memory, _for(tool, args)), info)


def _is_called(info: NoteInfo, name: str) -> bool:
    """Whether `name` is the note's title in its own case, or no title."""
    return info.title == name or info.title.casefold() != name.casefold() or name in (info.permalink, info.path)


def _directory(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    for name in ("page", "page_size"):
        if args.get(name, 1) < 1:
            raise InvalidInput(f"{name} must be >= 1, got {args[name]}")
    return reading.directory(args, memory, _own(tool, memory, args))


def _search(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    own = dict(args)
    for name in ("tags", "note_types"):
        if own.get(name):
            own[name] = [part.strip() for each in own[name] for part in each.split(",") if part.strip()]
    own["query"] = _TAGS.sub(lambda found: " ".join(f"tag:{each}" for each in found[1].split(",") if each),
                             args.get("query") or "")  # fmt: skip
    if args.get("search_all_projects") or args.get("projects"):
        wanted = args.get("projects")
        projects = vault.projects(memory)
        unknown = [each for each in wanted or () if slug(each) not in {slug(name) for name, _ in projects}]
        if unknown:
            known = ", ".join(name for name, _ in projects)
            raise InvalidInput(f"Unknown project(s): {', '.join(unknown)}. Available projects: {known}")
        slugs = {slug(each) for each in wanted} if wanted else None
        own["projects"] = [each.name for name, each in projects if slugs is None or slug(name) in slugs]
        own.pop("project", None)
    return reading.found(args, memory, vault, tool, own)


def _context(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    reading.check_url(args["url"])
    return reading.context(args, memory, vault.shown(args["project"]))


def _recent(tool: Tool, vault: Vault, memory: Memory, args: Arguments) -> Reply:
    return reading.recent(args, memory, vault.shown(args["project"]))


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
            return text_reply(reply.text, True)
        if (reply.data or {})["action"] == "asked":
            return _asked(args, reply)
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


def _asked(args: Arguments, reply: Reply) -> Reply:
    """The folder waits for the owner: nothing was added."""
    if args.get("output_format") != "json":
        return text_reply(reply.text)
    name, path = (reply.data or {})["name"], (reply.data or {})["path"]
    data = {"name": name, "external_id": None, "path": path, "is_default": False, "created": False}
    return json_reply(data | {"already_exists": False, "error": "OWNER_ASKED", "message": reply.text})


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
    "read_content": views.read_content,
    "search": views.openai_search,
    "fetch": views.openai_fetch,
    "schema_validate": schemas.validate,
    "schema_infer": schemas.infer,
    "schema_diff": schemas.diff,
    **shell.TOOLS,
}
