"""The tools of Basic Memory that change notes and projects, over our own.

They change files as Basic Memory does, and reply with its JSON.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from memoranda.basic_memory.documents import (
    UNNAMED,
    Refused,
    either,
    error_fields,
    identity,
    is_json,
    json_reply,
    text_reply,
)
from memoranda.basic_memory.vault import Vault
from memoranda.errors import (
    Exists,
    InvalidInput,
    MemorandaError,
    NotFound,
    OutsideError,
    ProjectNotFound,
)
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes import write_tools
from memoranda.faces.notes.replies import project_id
from memoranda.faces.reply import Reply
from memoranda.index.rows import NoteInfo
from memoranda.note.edit import SetKeys
from memoranda.note.links import numbered, permalink_for, slug
from memoranda.note.markdown import own_permalink
from memoranda.note.names import Looseness
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

# Entries of a folder that are searched for a name in another case.
_MAX_ENTRIES = 1000
# Signs that a title may have and a file's name may not.
_FORBIDDEN_SIGNS = re.compile(r'[-/\\<>:"|?*]+')
_OPERATIONS = (
    "append",
    "prepend",
    "find_replace",
    "replace_section",
    "insert_before_section",
    "insert_after_section",
)


def write_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Create a note in the file that Basic Memory would choose, or replace it with `overwrite`."""
    try:
        data = _write(vault, memory, args)
    except MemorandaError as error:
        return _write_error_reply(memory, args, error)
    if not is_json(args):
        return text_reply(data["text"])
    keys = ("title", "permalink", "file_path", "checksum", "action")
    return json_reply({**{key: data[key] for key in keys}, "similar_notes": []})


def _write(vault: Vault, memory: MemorySession, args: Arguments) -> dict[str, Any]:
    """Write a note. Return the data of our reply, with its text as `text`. Raises MemorandaError.

    args: the arguments of Basic Memory's tool. They are changed into the arguments of our tool.
    """
    project = args["project"]
    args.setdefault("overwrite", vault.write_note_overwrite_default)
    if args.get("expected_checksum") and not args["overwrite"]:
        raise InvalidInput("expected_checksum requires overwrite=True.")
    file = _set_file(vault, memory, args)
    is_new = not write_tools.sees_note(memory, project, file)
    # The permalink in the header of the content, if it has one.
    content_permalink = own_permalink(args["content"].lstrip("\n"))
    permalink = content_permalink or _derived_permalink(vault, project, file)
    # The note to overwrite may have moved, so that its file is missing here. Or the content names
    # the permalink of another note.
    may_be_elsewhere = is_new or content_permalink
    if args["overwrite"] and may_be_elsewhere:
        _check_not_elsewhere(memory, project, permalink, file)
    if is_new:
        _set_permalink(vault, memory, args, permalink)

    reply = write_tools.write_note(memory, args)
    assert reply.data is not None
    data = {**reply.data, "text": reply.text}
    if content_permalink and not is_new:
        # Our tool keeps the permalink of a note that it overwrites. Basic Memory takes the new one.
        edit = SetKeys({"permalink": content_permalink})
        changed = memory.edit((project, data["file_path"]), edit).note
        data |= {"permalink": changed.permalink, "checksum": changed.checksum}
    return data


def _set_file(vault: Vault, memory: MemorySession, args: Arguments) -> str:
    """Change the arguments so that our tool writes the file that Basic Memory would.

    Returns the path of the file.
    """
    args["note_type"] = _type_name(args.get("note_type") or "note")
    directory = (args.get("directory") or "").strip()
    if directory.endswith("/"):
        directory = directory.strip("/")
    args["directory"] = in_existing_case(memory, args["project"], directory)
    args["file_name"] = _file_stem(vault, args["title"])
    args["metadata"] = _without_own_arguments(args)
    if not args["content"].startswith(("---", "\n")):
        # Basic Memory leaves an empty line after the frontmatter.
        args["content"] = f"\n{args['content']}"
    return f"{args['directory']}/{args['file_name']}.md".lstrip("/")


def _set_permalink(vault: Vault, memory: MemorySession, args: Arguments, permalink: str) -> None:
    """Put the permalink that Basic Memory would give a new note into its metadata.

    permalink: the permalink that the note gets if no other note has it.
    """
    free_permalink = _free_permalink(memory, args["project"], permalink)
    is_numbered = free_permalink != permalink
    # Otherwise our tool writes the same permalink without being told
    if is_numbered or not vault.permalinks_include_project:
        args["metadata"]["permalink"] = free_permalink


def _type_name(kind: str) -> str:
    """Return a type as Basic Memory writes it: `decision_log` for `Decision Log`."""
    return slug(kind).replace("-", "_") or kind


def _file_stem(vault: Vault, title: str) -> str:
    """Return the name of the file for a title, without `.md`: `a-b` for `a/b`."""
    if vault.kebab_filenames:
        return slug(title.replace("/", "-").replace("\\", "-"))
    return _FORBIDDEN_SIGNS.sub("-", title).strip(".").strip("-")


def _without_own_arguments(args: Arguments) -> dict[str, Any]:
    """Return the argument `metadata` without keys that have a separate argument, such as `title`."""
    own_names = {"title", "type", "permalink"}
    if args.get("tags"):
        own_names.add("tags")
    metadata = args.get("metadata") or {}
    return {key: value for key, value in metadata.items() if key not in own_names}


def _derived_permalink(vault: Vault, project: str, file: str) -> str:
    """Return Basic Memory's permalink of a path: `main/plans/a-b` for `plans/A b.md`."""
    if vault.permalinks_include_project:
        return permalink_for(project, file)
    return slug(file.removesuffix(".md"))


def _check_not_elsewhere(memory: MemorySession, project: str, permalink: str, file: str) -> None:
    """Raise Refused if the note with this permalink has moved to another file."""
    holder = _holder(memory, project, permalink)
    if holder is not None and holder.path.lower() != file.lower():
        raise Refused(
            "NOTE_PATH_CONFLICT",
            f"The note {holder.permalink} is at {holder.path} now, so nothing was written. "
            "Change it there with edit_note, or write with overwrite=False.",
            **identity(holder),
        )


def _free_permalink(memory: MemorySession, project: str, permalink: str) -> str:
    """Return a permalink that no note has: `plans/trip`, or `plans/trip-1` if that one is taken."""
    for name in numbered(permalink):
        is_free = _holder(memory, project, name) is None
        if is_free:
            return name
    raise AssertionError("the numbers never end")


def _holder(memory: MemorySession, project: str, permalink: str) -> NoteInfo | None:
    """Return the note with this permalink, or None.

    The project in front does not count: `plans/trip` and `main/plans/trip` are one address, which
    must not lead to two notes.
    """
    query = Query(projects=(project,), address=permalink, order="address")
    notes = memory.list(query, limit=1).notes
    return notes[0] if notes else None


def in_existing_case(memory: MemorySession, project: str, path: str) -> str:
    """Return a path in the spelling of existing folders: `Plans/x` for `plans/x`.

    Basic Memory does so on a disk that ignores case.
    """
    folders = path.split("/")
    parent = ""
    for number, name in enumerate(folders):
        try:
            entries = memory.directory(project, parent, limit=_MAX_ENTRIES).entries
        except MemorandaError:
            # Nothing below exists; the caller reports the problem with the path.
            break
        names = {entry.path.rpartition("/")[2] for entry in entries if entry.kind == "folder"}
        name = _in_spelling_of(names, name)
        folders[number] = name
        parent = f"{parent}/{name}".lstrip("/")
    return "/".join(folders)


def _in_spelling_of(names: set[str], name: str) -> str:
    """Return `name` as it is spelled in `names`, if one of them differs only in case.

    Otherwise `name` itself is returned.
    """
    if name in names:
        return name
    for candidate in sorted(names):
        if candidate.casefold() == name.casefold():
            return candidate
    return name


def _write_error_reply(memory: MemorySession, args: Arguments, error: MemorandaError) -> Reply:
    """Return the reply of write_note for an error."""
    action = "created" if isinstance(error, OutsideError) else "conflict"
    data = {**UNNAMED, "title": args["title"], "checksum": None, "action": action}
    if isinstance(error, Exists):
        data |= _identity_if_found(memory, error.permalink or error.path, args["project"])
        data |= {"error": "NOTE_ALREADY_EXISTS"}
    else:
        data |= error_fields(error)
    return either(args, data, str(error), is_error=True)


def _identity_if_found(memory: MemorySession, name: str, project: str) -> dict[str, Any]:
    """Return title, permalink and path of a note as replies name it.

    Empty if there is no such note.
    """
    try:
        return identity(memory.find(name, project))
    except MemorandaError:
        return {}


def edit_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Apply one operation to a note, and set the keys of `metadata` in its frontmatter."""
    try:
        data = _edit(memory, args)
    except MemorandaError as error:
        return _edit_error_reply(vault, memory, args, error)
    fields = {key: data[key] for key in (*UNNAMED, "checksum", "operation")}
    fields["fileCreated"] = data["action"] == "created"
    return either(args, fields, data["text"])


def _edit(memory: MemorySession, args: Arguments) -> dict[str, Any]:
    """Edit a note. Return the data of our reply, with its text as `text`. Raises MemorandaError."""
    operation = args["operation"]
    if operation not in _OPERATIONS:
        names = ", ".join(_OPERATIONS)
        raise InvalidInput(f"Invalid operation '{operation}'. Must be one of: {names}")
    # For Basic Memory, these two always mean the whole note.
    if operation in ("append", "prepend"):
        args.pop("section", None)
    metadata = _checked_metadata(args)
    if args.get("expected_checksum"):
        _check_is_there(memory, args)
    reply = write_tools.edit_note(memory, args)
    assert reply.data is not None
    data = {**reply.data, "text": reply.text}
    if metadata:
        place = (data["project"], data["file_path"])
        data["checksum"] = memory.edit(place, SetKeys(metadata)).note.checksum
    return data


def _checked_metadata(args: Arguments) -> dict[str, Any]:
    """Return the keys of `metadata` that may be set. Raises InvalidInput for values that may not."""
    all_metadata = args.get("metadata") or {}
    metadata = {
        key: value for key, value in all_metadata.items() if key not in ("title", "permalink")
    }
    keys_without_value = [key for key, value in metadata.items() if value is None]
    if keys_without_value:
        names = ", ".join(keys_without_value)
        raise InvalidInput(f"metadata values cannot be null (keys are not deleted): {names}")
    if "type" in metadata:
        kind = str(metadata["type"])
        if not kind.strip():
            raise InvalidInput("metadata.type must not be blank: it is the note's type.")
        metadata["type"] = _type_name(kind)
    return metadata


def _check_is_there(memory: MemorySession, args: Arguments) -> None:
    """Raise Refused if the note does not exist, since then it cannot have the given checksum."""
    name = args["identifier"]
    try:
        memory.find(name, args["project"], looseness=Looseness.CASE)
    except NotFound as error:
        raise Refused("NOTE_REVISION_CONFLICT", str(error), currentChecksum=None) from None


def _edit_error_reply(
    vault: Vault, memory: MemorySession, args: Arguments, error: MemorandaError
) -> Reply:
    """Return the reply of edit_note for an error."""
    operation = args["operation"]
    data = {**UNNAMED, "checksum": None, "operation": operation, "fileCreated": False}
    data |= error_fields(error)
    text = str(error)
    if isinstance(error, ProjectNotFound):
        route = args["identifier"].removeprefix("memory://").partition("/")[0]
        data |= {
            "error": "UNRESOLVED_PROJECT_ROUTE",
            "project": vault.shown(args["project"]),
            "projectRoute": route,
        }
        # The error would name projects that Basic Memory does not have.
        text = f"No project `{route}`. list_memory_projects shows those there are."
    elif "currentChecksum" in data:
        data |= _identity_if_found(memory, args["identifier"], args["project"])
    return either(args, data, text, is_error=True)


def move_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Move a note or a folder. As in Basic Memory, links in other notes are not changed."""
    name = args["identifier"]
    data = {"moved": False, **UNNAMED, "source": name}
    data["destination"] = args.get("destination_path") or args.get("destination_folder")
    try:
        _set_destination(vault, memory, args)
        args["follow"] = vault.update_permalinks_on_move
        args["update_links"] = False
        args["is_directory"] = bool(args.get("is_directory"))
        reply = write_tools.move_note(memory, args)
    except Refused as error:
        # In Basic Memory, such a reply is not an error for the client.
        return either(args, data | error_fields(error), str(error))
    except NotFound as error:
        data["error"] = f"Entity not found: {name}"
        return either(args, data, str(error), is_error=True)
    except MemorandaError as error:
        return either(args, data | error_fields(error), str(error), is_error=True)

    assert reply.data is not None
    our_data = reply.data
    data["moved"] = True
    if args["is_directory"]:
        note_count = our_data["notes"]
        data |= {"destination": args["destination_path"], "is_directory": True}
        data |= {"total_files": note_count, "successful_moves": note_count, "failed_moves": 0}
    else:
        note = memory.find((our_data["project"], our_data["new_path"]))
        data |= {**identity(note), "destination": our_data["new_path"]}
    return either(args, data, reply.text)


def _set_destination(vault: Vault, memory: MemorySession, args: Arguments) -> None:
    """Set `destination_path` to the destination in any of its forms. Raises Refused, NotFound.

    `destination_folder`, which only a note may have, becomes a path that ends in `/`: the note keeps
    its file name. For `"destination_folder": "plans"`, `destination_path` becomes `Plans/` if there
    is a folder of that name.
    """
    project = args["project"]
    is_folder_moved = bool(args.get("is_directory"))
    path = args.get("destination_path") or ""
    folder = args.get("destination_folder") or ""
    _check_destination(path, folder, is_folder_moved)
    folder = in_existing_case(memory, project, folder.strip("/"))
    path = in_existing_case(memory, project, path)
    _check_project(vault, memory, project, path, folder)
    if not is_folder_moved:
        if folder:
            path = f"{folder}/"
        _check_destination_of_note(memory, args, path)
    args["destination_path"] = path


def _check_destination_of_note(memory: MemorySession, args: Arguments, path: str) -> None:
    """Raise Refused if a note cannot be moved to a path, and NotFound if there is no such note.

    path: the new path of the note. If it ends in `/`, the folder into which the note goes.
    """
    info = memory.find(args["identifier"], args["project"], looseness=Looseness.CASE)
    if not args.get("destination_folder"):
        _check_file_name(path)
    if path.strip("/") == info.path:
        message = f"The note is at {info.path} already. Choose another destination_path."
        raise Refused("DESTINATION_SAME_AS_SOURCE", message)


def _check_destination(path: str, folder: str, is_folder: bool) -> None:
    """Raise Refused for a missing, ambiguous or forbidden destination.

    path, folder: the arguments `destination_path` and `destination_folder`, "" if missing.
    is_folder: whether a folder is moved.
    """
    if path and folder:
        message = "Give destination_path or destination_folder, not both."
        raise Refused("MUTUALLY_EXCLUSIVE_PARAMS", message)
    if not path and not folder:
        raise Refused("MISSING_DESTINATION", "Give destination_path or destination_folder.")
    if folder and is_folder:
        message = "destination_folder is for notes; give destination_path for a folder."
        raise Refused("DESTINATION_FOLDER_NOT_FOR_DIRECTORIES", message)
    destination = path or folder
    if _leads_outside(destination.replace("\\", "/")):
        raise Refused("SECURITY_VALIDATION_ERROR", str(OutsideError(destination)))


def _leads_outside(path: str) -> bool:
    """Whether a path leads out of its project: `/etc`, `~/notes`, `../other` or `C:/notes`."""
    is_on_drive = path[1:3] == ":/"
    return path.startswith(("/", "~")) or ".." in path.split("/") or is_on_drive


def _check_project(
    vault: Vault, memory: MemorySession, project: str, path: str, folder: str
) -> None:
    """Refuse to move a note to another project. Raises Refused.

    A destination such as `work/plan.md` means project `work` if there is one, unless the note's own
    project has a folder `work`.
    """
    # Without a folder, the path is a file directly in the note's own project.
    if "/" not in path and not folder:
        return
    first = (folder or path).strip("/").partition("/")[0]
    other_name = vault.known_name(memory, first)
    if other_name is None or vault.projects(memory)[other_name].name == project:
        return
    if not memory.has_folder(project, first):
        message = (
            f"A move stays inside its project; {first} is another one. Write the note there with "
            "write_note, then delete it here."
        )
        raise Refused("CROSS_PROJECT_MOVE_NOT_SUPPORTED", message)


def _check_file_name(path: str) -> None:
    """Raise Refused unless a path ends in `.md` or `.markdown`."""
    file_name = path.rpartition("/")[2]
    has_extension = "." in file_name.rstrip(".")
    if not has_extension:
        raise Refused("FILE_EXTENSION_REQUIRED", f"Give destination_path its ending: {path}.md")
    if not path.endswith((".md", ".markdown")):
        stem = path.rpartition(".")[0]
        raise Refused("FILE_EXTENSION_MISMATCH", f"A note's file ends in .md: {stem}.md")


def delete_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Delete a note of exactly this name, or a folder. For a note, the reply is true or false."""
    name = args["identifier"]
    if args.get("is_directory"):
        return _delete_folder(memory, args)
    try:
        info = memory.find(name, args["project"], looseness=Looseness.EXACT)
    except NotFound:
        if is_json(args):
            return json_reply({"deleted": False, **UNNAMED})
        return Reply("false", {"result": False})
    memory.delete(info)
    if is_json(args):
        return json_reply({"deleted": True, **identity(info)})
    return Reply("true", {"result": True})


def _delete_folder(memory: MemorySession, args: Arguments) -> Reply:
    """Delete the notes of a folder."""
    name = args["identifier"]
    data = {"deleted": False, "is_directory": True, "identifier": name, "total_files": 0}
    args["identifier"] = name.strip("/") or name
    args["is_directory"] = True
    try:
        reply = write_tools.delete_note(memory, args)
    except MemorandaError as error:
        return either(args, data | {"error": str(error)}, str(error), is_error=True)
    assert reply.data is not None
    number = reply.data["notes"]
    data |= {
        "deleted": True,
        "total_files": number,
        "successful_deletes": number,
        "failed_deletes": 0,
        "deleted_files": reply.data["paths"],
        "errors": [],
    }
    return either(args, data, reply.text)


def create_memory_project(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Add a folder as a project. For an existing project, the reply describes it."""
    if vault.only is not None:
        return _one_project_reply(vault, args)
    if args.get("workspace"):
        raise InvalidInput("Cloud workspaces are not used here. Leave `workspace` out.")
    existing_name = _existing_name(vault, memory, args["project_name"])
    if existing_name is not None:
        project = vault.projects(memory)[existing_name]
        row = _project_row(memory, existing_name, project.name, str(project.root))
        row |= {"created": False, "already_exists": True}
        text = f"Project {existing_name} is there already."
    else:
        reply = write_tools.create_memory_project(memory, {"set_default": False, **args})
        if reply.is_error:
            return text_reply(reply.text, is_error=True)
        text = reply.text
        assert reply.data is not None
        if reply.data["action"] == "asked":
            # The owner must consent first, so there is no project yet.
            return either(args, _waiting_project(reply), text)
        new_name = reply.data["name"]
        row = _project_row(memory, new_name, new_name, reply.data["path"])
        row |= {"created": True, "already_exists": False}
    our_name = vault.names.get(row["name"], row["name"])
    total = memory.list(Query(projects=(our_name,)), limit=1).total
    # Basic Memory indexes a new project behind the call. Here, it is indexed already.
    row["indexing"] = {"state": "completed", "total_files": total, "enqueued_files": total}
    return either(args, row, text)


def _existing_name(vault: Vault, memory: MemorySession, name: str) -> str | None:
    """Find the project called `name`, and return its name as Basic Memory spells it.

    Capital and small letters are not distinguished: "Work" finds `work`. The first match counts.
        Returns None if there is no such project.
    """
    for existing_name in vault.projects(memory):
        if existing_name.casefold() == name.strip().casefold():
            return existing_name
    return None


def _waiting_project(reply: Reply) -> dict[str, Any]:
    """Return the data of the reply if the owner must first consent to the folder of a new project.

    The data say that the project was not created.
    """
    assert reply.data is not None
    return {
        "name": reply.data["name"],
        "external_id": None,
        "path": reply.data["path"],
        "is_default": False,
        "created": False,
        "already_exists": False,
        "error": "OWNER_ASKED",
        "message": reply.text,
    }


def _project_row(memory: MemorySession, name: str, ours: str, path: str) -> dict[str, Any]:
    """Describe a project. `name` is Basic Memory's name of it, `ours` is our name."""
    is_default = memory.default_project == ours
    return {"name": name, "external_id": project_id(name), "path": path, "is_default": is_default}


def _one_project_reply(vault: Vault, args: Arguments) -> Reply:
    """Return the refusal to change projects on a server for one project."""
    text = f"Projects are not changed here: this server serves project '{vault.only}' alone."
    data = {"name": args["project_name"], "created": False, "already_exists": False}
    return either(args, data | {"error": "PROJECT_CONSTRAINED", "message": text}, text)


def delete_project(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Remove a project from the memory. Its files stay."""
    if vault.only is not None:
        return _one_project_reply(vault, args)
    if args.get("delete_notes"):
        raise InvalidInput(
            "delete_project never deletes notes here. Leave `delete_notes` out; "
            "delete the folder by hand."
        )
    name = vault.known_name(memory, args["project_name"])
    if name is None:
        raise ProjectNotFound(args["project_name"], list(vault.projects(memory)))
    project = vault.projects(memory)[name]
    if project.name == memory.default_project:
        raise InvalidInput(f"Project {name} is the default. Make another one the default first.")
    memory.remove_project(project.name)
    return text_reply(f"Removed project {name}. Its files stay in {project.root}.")


def list_memory_projects(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """List the projects that Basic Memory would know."""
    rows = []
    for name, project in sorted(vault.projects(memory).items(), key=lambda pair: slug(pair[0])):
        row = _project_row(memory, name, project.name, str(project.root))
        row |= {"local_path": row["path"], "source": "local"}
        rows.append(row | {"is_private": False, "display_name": None})
    data = {
        "projects": rows,
        "default_project": vault.shown(memory.default_project),
        "constrained_project": vault.only,
    }
    lines = [f"- {row['name']} (local) [{row['external_id']}]" for row in rows]
    head = "Projects, each with the id that `project_id` takes:"
    if vault.only:
        head = f"Every call is about project {vault.only}:"
    return either(args, data, "\n".join([head, *lines]))
