"""The note tools as Basic Memory 0.24 has them: its arguments, aliases, routing and further tools
(contract 000b, 10).

The listed schemas are ours; what that program accepts beyond them is in texts/basic-memory.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from memoranda.errors import InvalidInput, MemorandaError, NotFound, ProjectNotFound
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes import drop_in_reading as reading
from memoranda.faces.notes import drop_in_replies as replies
from memoranda.faces.notes import drop_in_shell as shell
from memoranda.faces.notes import drop_in_views as views
from memoranda.faces.notes.drop_in_replies import (
    Vault,
    bounded,
    either,
    is_json,
    json_reply,
    paged,
    text_reply,
)
from memoranda.faces.notes.read_tools import beside_notes, has_folder
from memoranda.faces.notes.replies import plural, project_id
from memoranda.faces.reply import Reply, error_reply
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Tool
from memoranda.index.rows import NoteInfo
from memoranda.note.edit import SetKeys
from memoranda.note.grammar import scan
from memoranda.note.links import permalink_for, slug
from memoranda.note.markdown import own_permalink
from memoranda.note.names import Looseness
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

Run = Callable[[Vault, "MemorySession", Arguments], Reply]
_FOLDERS = 1000

# What a title has and its file's name has not
_SIGNS = re.compile(r'[-/\\<>:"|?*]+')
_TAGS = re.compile(r"\btag:([^\s\"]+)")


def tools(own: list[Tool], vault: Vault) -> list[Tool]:
    """`own`, the note tools, in that program's manner, and those it has besides."""
    data = json.loads(text_file("basic-memory.json"))
    unset = lambda args: {
        key: value for key, value in args.items() if key != "overwrite" or value is not None
    }
    served = []
    for tool in own:
        aliases = {
            alias: name
            for name, all in data["aliases"].get(tool.name, {}).items()
            for alias in all.split()
        }
        accepted = (
            data["accepted"]["*"]
            | data["accepted"].get(tool.name, {})
            | data["loosened"].get(tool.name, {})
        )
        required = [
            each
            for each in tool.schema.get("required", ())
            if each not in data["optional"].get(tool.name, ())
        ]
        accepts = {
            **tool.schema,
            "properties": tool.schema["properties"] | accepted,
            "required": required,
        }
        also = {**{k: v for k, v in tool.also.items() if k not in accepted}, **aliases}
        answer = _TOOLS.get(tool.name) or partial(_OVER_OURS[tool.name], tool)
        run = partial(_run, answer, tool.name, tool.name not in _OF_ALL_PROJECTS, vault)
        served.append(replace(tool, run=run, also=also, accepts=accepts, rewrite=unset))
    for each in data["tools"]:
        if each["name"] in shell.TOOLS and not vault.enable_posix_tools:
            continue
        run = partial(
            _run, _TOOLS[each["name"]], "read_note", each["name"] not in shell.TOOLS, vault
        )
        hints = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
        schema = {
            "type": "object",
            "properties": each["properties"],
            "required": each.get("required", []),
        }
        also = {**data["accepted"]["*"], **each.get("also", {})}
        served.append(
            Tool(each["name"], each["description"], schema, run, annotations=hints, also=also)
        )
    return served


def _run(
    run: Run, name: str, routes: bool, vault: Vault, memory: MemorySession, args: Arguments
) -> Reply:
    """Route the call to its project if need be, run it, and word errors as the tool `name` of that
    program does.
    """
    try:
        if routes:
            detected = vault.detected(memory, args)
            args["by_default"] = not (
                detected or vault.only or args.get("project") or args.get("project_id")
            )
            args["project"] = detected or vault.named(memory, args)
        return run(vault, memory, args)
    except MemorandaError as error:
        # The engine also knows projects that program has not
        if isinstance(error, ProjectNotFound):
            error = ProjectNotFound(error.name, [name for name, _ in vault.projects(memory)])
        return replies.failed(name, args, error)


def write_note(tool: Tool, vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    overwrite = args.get("overwrite")
    args["overwrite"] = vault.write_note_overwrite_default if overwrite is None else overwrite
    if args.get("expected_checksum") and not args["overwrite"]:
        raise InvalidInput(
            "expected_checksum requires overwrite=True: it is the revision that is replaced."
        )
    kind = args.get("note_type") or "note"
    # As there: `Decision Log` is `decision_log`
    args["note_type"] = slug(kind).replace("-", "_") or kind
    folder = (args.get("directory") or "").strip()
    if folder == "/" or folder.endswith("/"):
        folder = folder.strip("/")
    else:
        folder = folder
    args["directory"] = folder = _as_there(memory, args["project"], folder)
    # Have arguments of their own
    stripped = (
        "title",
        "type",
        "permalink",
        *(("tags",) if args.get("tags") else ()),
    )
    metadata = {
        key: value for key, value in (args.get("metadata") or {}).items() if key not in stripped
    }
    if vault.kebab_filenames:
        args["file_name"] = slug(args["title"].replace("/", "-").replace("\\", "-"))
    else:
        args["file_name"] = _SIGNS.sub("-", args["title"]).strip(".").strip("-")
    if not args["content"].startswith(("---", "\n")):
        # An empty line after the frontmatter, as there
        args["content"] = f"\n{args['content']}"
    if folder:
        file = f"{folder}/{args['file_name']}.md"
    else:
        file = f"{args['file_name']}.md"
    if vault.permalinks_include_project:
        derived = permalink_for(args["project"], file)
    else:
        derived = slug(file[:-3])
    own = own_permalink(args["content"].lstrip("\n"))
    wanted = own or derived
    holder = _holder(memory, args["project"], wanted)
    is_new = False
    try:
        memory.find_ref((args["project"], file))
    except NotFound:
        is_new = True
    if args["overwrite"] and holder and holder.path.lower() != file.lower() and (is_new or own):
        data = replies.identity(holder) | {"checksum": None}
        return replies.refused(
            args, "write.elsewhere", data, path=holder.path, permalink=holder.permalink
        )
    if is_new and holder:
        numbered = (f"{wanted}-{number}" for number in count(1))
        wanted = next(each for each in numbered if _holder(memory, args["project"], each) is None)
    if is_new and (holder or not vault.permalinks_include_project):
        metadata["permalink"] = wanted
    args["metadata"] = metadata
    reply = tool.run(memory, _for(tool, args, "file_name"))
    if not is_new and not reply.is_error and reply.data and own:
        changed = memory.edit(
            (args["project"], reply.data["file_path"]), SetKeys({"permalink": wanted})
        ).note
        reply.data |= {"permalink": changed.permalink, "checksum": changed.checksum}
    return replies.written(args, memory, vault, reply)


def _holder(memory: MemorySession, project: str, permalink: str) -> NoteInfo | None:
    return next(iter(memory.matching(permalink, project=project, limit=1)[0]), None)


def _as_there(memory: MemorySession, project: str, path: str) -> str:
    """`path` with the names of the folders that are there in another case only, as on a disk that
    ignores it.
    """
    folders = path.split("/")
    there = ""
    for number, name in enumerate(folders):
        try:
            entries = memory.directory(project, there, limit=_FOLDERS).entries
        # Nothing below is there; what is wrong with the path, the caller says
        except MemorandaError:
            break
        known = {entry.path.rpartition("/")[2] for entry in entries if entry.kind == "folder"}
        if name not in known:
            name = next(
                (each for each in sorted(known) if each.casefold() == name.casefold()), name
            )
        folders[number] = name
        there = f"{there}/{name}".lstrip("/")
    return "/".join(folders)


def _for(tool: Tool, args: Arguments, *more: str) -> Arguments:
    known = {*tool.schema["properties"], *more, "supersedes", "valid_from", "valid_until"}
    return {key: value for key, value in args.items() if key in known and value is not None}


def edit_note(tool: Tool, vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    operations = tool.schema["properties"]["operation"]["enum"]
    if args["operation"] not in operations:
        raise InvalidInput(
            f"Invalid operation '{args['operation']}'. Must be one of: {', '.join(operations)}"
        )
    if args["operation"] == "find_replace" and not args.get("find_text"):
        raise InvalidInput("find_text parameter is required for find_replace operation")
    if args["operation"].endswith("_section") and not args.get("section"):
        raise InvalidInput("section parameter is required for section-based operations")
    if args["operation"] in ("append", "prepend"):
        args.pop("section", None)
    metadata = {
        k: v for k, v in (args.get("metadata") or {}).items() if k not in ("title", "permalink")
    }
    absent = [name for name, value in metadata.items() if value is None]
    if absent:
        raise InvalidInput(
            f"metadata values cannot be null (key deletion is not supported): {', '.join(absent)}"
        )
    if "type" in metadata:
        if not str(metadata["type"]).strip():
            raise InvalidInput("metadata.type must not be blank: it is the note's type.")
        metadata["type"] = slug(str(metadata["type"])).replace("-", "_") or str(metadata["type"])
    # A note that is not there has no such revision
    if args.get("expected_checksum"):
        try:
            memory.find(args["identifier"], args["project"], looseness=Looseness.CASE)
        except NotFound as error:
            return replies.written(args, memory, vault, error_reply(error))
    if args.get("replace_subsections") is False and args["operation"] == "replace_section":
        args["content"] += _subsections(memory, args)
    args["metadata"] = metadata
    args["expected_replacements"] = args.get("expected_replacements") or 1
    reply = tool.run(memory, _for(tool, args))
    if not reply.is_error and args.get("metadata") and reply.data:
        place = (reply.data["project"], reply.data["file_path"])
        reply.data["checksum"] = memory.edit(place, SetKeys(args["metadata"])).note.checksum
    return replies.written(args, memory, vault, reply)


def _subsections(memory: MemorySession, args: Arguments) -> str:
    """What lies below the first heading inside the section, to be kept behind its new text."""
    note = memory.read(args["identifier"], project=args["project"])
    headings = scan(note.text, note.body_at)[2]
    lines = note.text.splitlines(keepends=True)
    wanted = args["section"].strip().lstrip("#").strip()
    for at, heading in enumerate(headings):
        if heading.text == wanted:
            below = next(
                (
                    heading.line - 1
                    for heading in headings[at + 1 :]
                    if heading.level <= heading.level
                ),
                len(lines),
            )
            inner = next(
                (heading.line - 1 for heading in headings[at + 1 :] if heading.line <= below), below
            )
            if inner < below:
                return "\n\n" + "".join(lines[inner:below]).rstrip("\n")
            return ""
    return ""


def read_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    for name in ("page", "page_size", "start_line", "end_line"):
        bounded(args, name, 1)
    if (args.get("end_line") or 1e9) < (args.get("start_line") or 1):
        raise InvalidInput(f"end_line must be >= start_line, got {args['end_line']}")
    reading.check_inside(args["identifier"])
    is_ranged = bool(args.get("start_line") or args.get("end_line"))
    if args.get("include_content") is False and is_ranged:
        raise InvalidInput("include_content=False cannot be combined with start_line/end_line.")
    try:
        info = memory.find_ref(args["identifier"], args["project"])
    except NotFound:
        beside = beside_notes(memory, args["identifier"], args["project"])
        if isinstance(beside, Reply):
            return beside
        if beside is None:
            return reading.missing_note(args, memory, vault.shown(args["project"]))
        info = memory.find_ref(beside)
    note = memory.read(info, count=args.get("include_content") is not False)
    if args.get("include_content") is False:
        data = replies.identity(note) | {"checksum": note.checksum, "updated_at": info.changed}
        return either(
            args, data, "\n".join(["# Note metadata", *(f"{k}: {v}" for k, v in data.items())])
        )
    if is_ranged:
        rows = note.text.split("\n")
        first = args.get("start_line") or 1
        rows = rows[:-1] if rows[-1] == "" else rows
        last = min(args.get("end_line") or len(rows), len(rows))
        wanted = rows[first - 1 : last]
        more = last < len(rows)
        data = replies.identity(note) | {
            "content": "\n".join(wanted),
            "frontmatter": note.header,
            "start_line": first,
            "end_line": last,
            "total_lines": len(rows),
            "has_more": more,
            "next_start_line": last + 1 if more else None,
            "next_end_line": min(len(rows), last + last - first + 1) if more else None,
        }
        text = "\n".join(f"{number}: {row}" for number, row in enumerate(wanted, first))
        return either(
            args, data, text or f"[no line {first}: the note has {plural(len(rows), 'line')}]"
        )
    if args.get("include_frontmatter"):
        content = note.text
    else:
        content = note.text[note.body_at :].lstrip("\n")
    data = replies.identity(note) | {"content": content, "frontmatter": note.header}
    return either(args, data | {"checksum": note.checksum}, note.text)


def move_note(tool: Tool, vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    path = args.get("destination_path") or ""
    folder = args.get("destination_folder") or ""
    folder = args["destination_folder"] = _as_there(
        memory, args["project"], folder.strip("/") or folder
    )
    if not path.startswith("/"):
        path = _as_there(memory, args["project"], path)
    is_folder = bool(args.get("is_directory"))
    target = (path or folder).replace("\\", "/")
    if bool(path) == bool(folder):
        return replies.not_moved(args, "both" if path else "neither")
    if folder and is_folder:
        return replies.not_moved(args, "folder_to_folder")
    if target.startswith(("/", "~")) or ".." in target.split("/") or target[1:3] == ":/":
        return replies.not_moved(args, "outside", path=path or folder)
    shown = vault.shown(args["project"])
    first = (folder or path).strip("/").partition("/")[0]
    if "/" in path or folder:
        other = vault.known(memory, first)
    else:
        other = None
    if (
        other
        and other[1].name != args["project"]
        and not has_folder(memory, args["project"], first)
    ):
        return replies.not_moved(args, "cross_project", shown=shown, other=other[0])
    info = None
    if not is_folder:
        info = memory.find(args["identifier"], args["project"], looseness=Looseness.CASE)
        if folder:
            path = folder.strip("/") + "/"
        elif "." not in path.rpartition("/")[2].rstrip("."):
            return replies.not_moved(args, "no_extension", path=path)
        elif not path.endswith((".md", ".markdown")):
            stem, _, ending = path.rpartition(".")
            return replies.not_moved(args, "other_extension", ending=ending, stem=stem)
        if path.strip("/") == info.path:
            return replies.not_moved(args, "same_place", path=path)
    args["destination_path"] = path
    args["follow"] = vault.update_permalinks_on_move
    # As there: no other note is rewritten
    args["update_links"] = False
    reply = tool.run(memory, _for(tool, args, "follow", "update_links"))
    return replies.moved(args, memory, shown, reply, info)


def delete_note(tool: Tool, vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    info = None
    name = args["identifier"]
    if args.get("is_directory"):
        args["identifier"] = name.strip("/") or name
    else:
        try:
            info = memory.find(name, args["project"], looseness=Looseness.EXACT)
        except NotFound:
            pass
        if info is None:
            blank = {"deleted": False, "title": None, "permalink": None, "file_path": None}
            if is_json(args):
                return json_reply(blank)
            return Reply("false", {"result": False})
    return replies.deleted(
        args, vault.shown(args["project"]), tool.run(memory, _for(tool, args)), info
    )


def list_directory(tool: Tool, vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    paged(args)
    return reading.directory(args, memory, tool.run(memory, _for(tool, args)))


def search_notes(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    own = dict(args)
    for name in ("tags", "note_types"):
        if own.get(name):
            own[name] = [
                part.strip() for each in own[name] for part in each.split(",") if part.strip()
            ]
    own["query"] = _TAGS.sub(
        lambda found: " ".join(f"tag:{part}" for part in found[1].split(",") if part),
        args.get("query") or "",
    )
    if args.get("search_all_projects") or args.get("projects"):
        wanted = args.get("projects") or []
        projects = vault.projects(memory)
        unknown = [each for each in wanted if vault.known(memory, each) is None]
        if unknown:
            known = ", ".join(name for name, _ in projects)
            raise InvalidInput(
                f"Unknown project(s): {', '.join(unknown)}. Available projects: {known}"
            )
        slugs = {slug(each) for each in wanted}
        own["projects"] = [each.name for name, each in projects if not slugs or slug(name) in slugs]
        own.pop("project", None)
    return reading.found(args, memory, vault, own)


def list_memory_projects(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    rows = []
    default = memory.default_project
    for name, each in sorted(vault.projects(memory), key=lambda pair: slug(pair[0])):
        path = str(each.root)
        row = {
            "name": name,
            "external_id": project_id(name),
            "path": path,
            "local_path": path,
            "source": "local",
        }
        rows.append(
            row | {"is_default": each.name == default, "is_private": False, "display_name": None}
        )
    lines = [f"- {row['name']} (local) [{row['external_id']}]" for row in rows]
    end = "Next: Ask which project to use for this session.\n"
    end += "Pass a project name (or its [external_id] as project_id) on tool calls to target a project. "
    text = "\n".join(
        [
            "Available projects:",
            *lines,
            "",
            "─" * 40,
            f"{end}Calls without one use the default project.",
        ]
    )
    if vault.only:
        text = (
            f"Project: {vault.only}\n\nNote: This MCP server is constrained to a single project.\n"
        )
        text += "All operations will automatically use this project."
    data = {
        "projects": rows,
        "default_project": vault.shown(default),
        "constrained_project": vault.only,
    }
    return either(args, data, text)


def _constrained(vault: Vault, verb: str, how: str, args: Arguments) -> Reply:
    text = f"Project {verb} disabled - MCP server is constrained to project '{vault.only}'."
    data = {
        "name": args["project_name"],
        "created": False,
        "already_exists": False,
        "error": "PROJECT_CONSTRAINED",
    }
    return either(args, data | {"message": text}, f"# Error\n\n{text}\nUse the CLI to {how}")


def create_memory_project(
    tool: Tool, vault: Vault, memory: MemorySession, args: Arguments
) -> Reply:
    if vault.only is not None:
        how = f"create projects: `memory project add {args['project_name']} FOLDER`"
        return _constrained(vault, "creation", how, args)
    if args.get("workspace"):
        raise InvalidInput(
            "Cloud workspaces are not used here; every project is a folder. Leave `workspace` out."
        )
    wanted = args["project_name"].strip().casefold()
    known = next((pair for pair in vault.projects(memory) if pair[0].casefold() == wanted), None)
    if known is None:
        reply = tool.run(memory, _for(tool, args))
        if reply.is_error:
            return text_reply(reply.text, True)
        data = reply.data or {}
        name = ours = data["name"]
        path = data["path"]
        # The folder waits for the owner: nothing was added
        if data["action"] == "asked":
            row = {
                "name": name,
                "external_id": None,
                "path": path,
                "is_default": False,
                "created": False,
            }
            row |= {"already_exists": False, "error": "OWNER_ASKED", "message": reply.text}
            return either(args, row, reply.text)
    else:
        name, ours, path = known[0], known[1].name, str(known[1].root)
    is_default = memory.default_project == ours
    is_known = known is not None
    total = memory.list(Query(projects=(ours,)), limit=1)[1]
    row = {"name": name, "external_id": project_id(name), "path": path, "is_default": is_default}
    row |= {"created": not is_known, "already_exists": is_known}
    row["indexing"] = {"state": "completed", "total_files": total, "enqueued_files": total}
    if is_known:
        head = f"✓ Project already exists: {name}"
    else:
        head = f"✓ Project '{name}' added successfully"
    rows = [
        head,
        "",
        "Project Details:",
        f"• Name: {name}",
        f"• External ID: {project_id(name)}",
        f"• Path: {path}",
    ]
    rows += ["• Set as default project"] if is_default else []
    rows += ["", "Indexing:", "• State: completed", ""]
    when = "already" if is_known else "now"
    rows.append(f"Project is {when} available for use in tool calls; indexing completed.")
    rows += [] if is_known else [f"Use '{name}' as the project parameter in MCP tool calls."]
    return either(args, row, "\n".join(rows))


def delete_project(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    if vault.only is not None:
        return _constrained(
            vault,
            "deletion",
            f"delete projects: `memory project remove {args['project_name']}`",
            args,
        )
    if args.get("delete_notes"):
        raise InvalidInput(
            "delete_project never deletes notes here. Leave `delete_notes` out; delete the folder by hand."
        )
    found = vault.known(memory, args["project_name"])
    if found is None:
        known = ", ".join(name for name, _ in vault.projects(memory))
        raise InvalidInput(
            f"Project '{args['project_name']}' not found. Available projects: {known} (delete_project)"
        )
    name, project = found
    if project.name == memory.default_project:
        raise InvalidInput(
            f"Cannot delete default project '{name}'. Make another project the default first."
        )
    memory.remove_project(project.name)
    return text_reply(
        f"✓ Project '{name}' removed successfully\n\nRemoved project details:\n• Name: {name}\n• Path: {project.root}\n"
        "Note files remain on disk but the project is no longer tracked by Basic Memory.\n"
        "Re-add the project to access its content again.\n"
    )


def view_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    reply = read_note(vault, memory, {**args, "output_format": "text"})
    if "# Note Not Found" in reply.text:
        return reply
    head = f'Note retrieved: "{args["identifier"]}"\n\nDisplay this note as a markdown artifact for the user.'
    return text_reply(f"{head}\n\nContent:\n<note>\n{reply.text.strip()}\n</note>")


_OVER_OURS = {
    each.__name__: each
    for each in (
        write_note,
        edit_note,
        move_note,
        delete_note,
        list_directory,
        create_memory_project,
    )
}
"""What is done by our tool of the same name, which they get first."""
_OWN: tuple[Run, ...] = (read_note, search_notes, list_memory_projects, delete_project, view_note)
_TOOLS: dict[str, Run] = {
    "build_context": reading.context,
    "recent_activity": reading.recent,
    **{each.__name__: each for each in _OWN},
    **views.TOOLS,
    **shell.TOOLS,
}
_OF_ALL_PROJECTS = ("list_memory_projects", "create_memory_project", "delete_project")
