"""The replies of the note tools that write in Basic Memory's words and JSON keys (contract 000b, 10)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from commonplace.errors import (
    CommonplaceError,
    Conflict,
    CountMismatch,
    Exists,
    NotFound,
    OutsideError,
    ProjectNotFound,
    SectionError,
)
from commonplace.faces.arguments import Arguments
from commonplace.faces.notes.replies import compact
from commonplace.faces.reply import Reply
from commonplace.index.rows import NoteInfo
from commonplace.note.model import Note
from commonplace.query import Query

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.notes.vault import Vault

_ADDED = {"append": "end", "prepend": "beginning"}


def text_reply(text: str, is_error: bool = False) -> Reply:
    """A text, as that program wraps it in structured content."""
    return Reply(text, {"result": text}, is_error)


def json_reply(data: Any, is_error: bool = False) -> Reply:
    """Data, compact in the text. Clients of that program take it from `result`, others from the keys themselves."""
    return Reply(compact(data), {**data, "result": data} if isinstance(data, dict) else {"result": data}, is_error)


def data_reply(data: dict[str, Any]) -> Reply:
    """The reply of a tool that always answers with data."""
    return Reply(compact(data), data)


def identity(note: Note | NoteInfo) -> dict[str, Any]:
    """What names a note in all its JSON."""
    return {"title": note.title, "permalink": note.permalink, "file_path": note.path}


def _in_project(text: str, project: str, args: Arguments) -> Reply:
    """`text` with the project it was written to; one that nobody named is the default."""
    why = " (no project was given, so this used the default project; pass project to target another)"
    return text_reply(f"{text}\n\n[Project: '{project}'{why if args.get('by_default') else ''}]")


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
    return _in_project("\n".join(rows), shown, args)


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
        blank |= _known(memory, reply.text.partition(" changed since")[0], args["project"])
        blank |= {"action": "conflict", "error": "NOTE_REVISION_CONFLICT", "currentChecksum": now}
        text = (
            f'# Error: Note revision conflict\n\n**"{title}"** changed since you read it, so nothing was replaced.\n'
            f'Current checksum: `{now}`. Read it again, then give expected_checksum="{now}".\n\nProject: {shown}'
        )
    else:
        return Reply(reply.text, {"result": reply.text}, is_error=True)
    return json_reply(blank, True) if args.get("output_format") == "json" else text_reply(text, True)


def _known(memory: Memory, name: str, project: str) -> dict[str, Any]:
    """What names the note in a conflict's JSON; nothing when it is gone."""
    try:
        return identity(memory.find(name, project))
    except CommonplaceError:
        return {}


def elsewhere(args: Arguments, moved: NoteInfo) -> Reply:
    """The refusal to overwrite a note that lies elsewhere by now."""
    blank: dict[str, Any] = {**identity(moved), "checksum": None, "action": "conflict", "error": "NOTE_PATH_CONFLICT"}
    text = (
        f"# Error: Note is at a different path\n\nThe note meant is at `{moved.path}` now, so nothing was written. "
        f'Change it there with `edit_note("{moved.permalink}", …)`, or write with overwrite=False.'
    )
    return json_reply(blank, True) if args.get("output_format") == "json" else text_reply(text, True)


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


def edited(args: Arguments, memory: Memory, vault: Vault, reply: Reply) -> Reply:
    """The reply to edit_note, from our own."""
    operation, shown, data = args["operation"], vault.shown(args["project"]), reply.data or {}
    if reply.is_error:
        return _not_edited(args, memory, shown, reply)
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
    return _in_project("\n".join(rows), shown, args)


def _not_edited(args: Arguments, memory: Memory, shown: str, reply: Reply) -> Reply:
    code, name, find = (reply.data or {}).get("code"), args["identifier"], args.get("find_text")
    ours, error = reply.text, reply.text
    hint = f'Use `read_note(identifier="{name}", project="{shown}")` to see the current content.'
    if code == "not_found" and args.get("expected_checksum"):
        error = "NOTE_REVISION_CONFLICT"
        text = f"# Edit Failed - Note Revision Conflict\n\nNo note '{name}' is left to edit, so nothing was written."
    elif code == "project_not_found":  # our sentence names projects that program has not
        error, route = "UNRESOLVED_PROJECT_ROUTE", name.removeprefix("memory://").partition("/")[0]
        text = (
            f"# Edit Failed - Unresolved Project Route\n\nThe address `{name}` begins with `{route}`, which is no "
            f"project. No note was edited or created, also not in the active project `{shown}`.\n\n"
            f"`list_memory_projects()` shows the projects. If `{route}` is a folder of `{shown}`, leave out `memory://`."
        )
    elif code == "not_found":
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
    elif code == "outside":
        error = "SECURITY_VALIDATION_ERROR"
        text = f"# Error\n\nIdentifier '{name}' is not allowed - paths must stay within project boundaries"
    elif code == "conflict":
        error = "NOTE_REVISION_CONFLICT"
        now = _between(ours, "checksum ", ",")
        text = f'# Edit Failed - Note Revision Conflict\n\n{ours} Then give expected_checksum="{now}".'
    else:
        text = f"# Edit Failed\n\nError editing note '{name}': {ours}\n\n{hint}"
    if args.get("output_format") != "json":
        return text_reply(text, True)
    blank: dict[str, Any] = {"title": None, "permalink": None, "file_path": None, "checksum": None}
    blank |= {"operation": args["operation"], "fileCreated": False, "error": error}
    if error == "UNRESOLVED_PROJECT_ROUTE":
        blank |= {"project": shown, "projectRoute": route}
    if error == "NOTE_REVISION_CONFLICT":
        checksum = _between(ours, "checksum ", ",") or None
        blank |= _known(memory, name, args["project"]) | {"currentChecksum": checksum}
    return json_reply(blank, True)


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
            text += "\nNo files found. Total files: 0."
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


def failed(tool: str, args: Arguments, shown: str, error: CommonplaceError) -> Reply:
    """An error of a call, in the manner of the tool."""
    text = str(error)
    if isinstance(error, ProjectNotFound):
        text = f"Project '{args.get('project')}' not found. {text}"
    elif isinstance(error, OutsideError) and tool in ("read_note", "view_note"):
        text = f"Identifier '{error.path}' is not allowed - paths must stay within project boundaries"
        if args.get("output_format") == "json":
            blank = dict.fromkeys(("title", "permalink", "file_path", "content", "frontmatter"))
            return json_reply({**blank, "error": "SECURITY_VALIDATION_ERROR", "message": text})
        return text_reply(f"# Error\n\n{text}")
    elif isinstance(error, NotFound) and tool == "move_note":
        hint = f'Use `search_notes("{args["identifier"]}")` to find it.'
        text = (
            f"# Move Failed - Note Not Found\n\nThe note '{args['identifier']}' could not be found for moving. {hint}"
        )
        return not_moved(args, f"Entity not found: {args['identifier']}", text, True)
    elif tool == "edit_note":
        text = f"# Edit Failed\n\n{text}"
    elif isinstance(error, NotFound | Exists | Conflict | CountMismatch | SectionError):
        text = f"# Error\n\n{text}"
    return text_reply(text, True)
