"""The tools that change notes and projects, with Basic Memory's effects on files and its JSON."""

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
from memoranda.faces.notes.read_tools import has_folder
from memoranda.faces.notes.replies import project_id
from memoranda.faces.reply import Reply
from memoranda.note.edit import SetKeys
from memoranda.note.links import permalink_for, slug
from memoranda.note.markdown import own_permalink
from memoranda.note.names import Looseness
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

# How many entries of a folder are looked at for a name in another case.
_FOLDERS = 1000
# Signs that a title may have and a file's name may not.
_SIGNS = re.compile(r'[-/\\<>:"|?*]+')
_OPERATIONS = (
    "append",
    "prepend",
    "find_replace",
    "replace_section",
    "insert_before_section",
    "insert_after_section",
)


def write_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Create a note at the place the program would choose, or replace one with `overwrite`."""
    try:
        data = _written(vault, memory, args)
    except MemorandaError as error:
        return _not_written(memory, args, error)
    if not is_json(args):
        return text_reply(data["text"])
    keys = ("title", "permalink", "file_path", "checksum", "action")
    return json_reply({**{key: data[key] for key in keys}, "similar_notes": []})


def _written(vault: Vault, memory: MemorySession, args: Arguments) -> dict[str, Any]:
    project = args["project"]
    args.setdefault("overwrite", vault.write_note_overwrite_default)
    if args.get("expected_checksum") and not args["overwrite"]:
        raise InvalidInput("expected_checksum requires overwrite=True.")
    file = _take_place(vault, memory, args)
    own = own_permalink(args["content"].lstrip("\n"))
    is_new = not _is_note(memory, project, file)
    _take_permalink(vault, memory, args, file, own, is_new=is_new)
    reply = write_tools.write_note(memory, args)
    assert reply.data is not None
    data = {**reply.data, "text": reply.text}
    if own and not is_new:
        changed = memory.edit((project, data["file_path"]), SetKeys({"permalink": own})).note
        data |= {"permalink": changed.permalink, "checksum": changed.checksum}
    return data


def _take_place(vault: Vault, memory: MemorySession, args: Arguments) -> str:
    """Give the arguments the file and the form that the program would. Returns the file's path."""
    args["note_type"] = _type_name(args.get("note_type") or "note")
    directory = (args.get("directory") or "").strip()
    if directory.endswith("/"):
        directory = directory.strip("/")
    args["directory"] = in_existing_case(memory, args["project"], directory)
    args["file_name"] = _file_stem(vault, args["title"])
    args["metadata"] = _without_own_arguments(args)
    if not args["content"].startswith(("---", "\n")):
        # The program leaves an empty line after the frontmatter
        args["content"] = f"\n{args['content']}"
    return f"{args['directory']}/{args['file_name']}.md".lstrip("/")


def _take_permalink(
    vault: Vault,
    memory: MemorySession,
    args: Arguments,
    file: str,
    own: str | None,
    *,
    is_new: bool,
) -> None:
    """Put the permalink that the program would give a new note into its metadata.

    own: the permalink that the content gives itself.

    Raises Refused if an overwrite means a note that is somewhere else by now.
    """
    project = args["project"]
    permalink = own or _derived_permalink(vault, project, file)
    if args["overwrite"] and (is_new or own):
        _check_not_elsewhere(memory, project, permalink, file)
    if is_new:
        free = memory.free_permalink(project, file, permalink=permalink)
        if free != permalink or not vault.permalinks_include_project:
            args["metadata"]["permalink"] = free


def _type_name(kind: str) -> str:
    """The type as the program writes it: `Decision Log` is `decision_log`."""
    return slug(kind).replace("-", "_") or kind


def _file_stem(vault: Vault, title: str) -> str:
    if vault.kebab_filenames:
        return slug(title.replace("/", "-").replace("\\", "-"))
    return _SIGNS.sub("-", title).strip(".").strip("-")


def _without_own_arguments(args: Arguments) -> dict[str, Any]:
    """The metadata without the keys that have an argument of their own."""
    own_names = {"title", "type", "permalink"}
    if args.get("tags"):
        own_names.add("tags")
    metadata = args.get("metadata") or {}
    return {key: value for key, value in metadata.items() if key not in own_names}


def _is_note(memory: MemorySession, project: str, path: str) -> bool:
    try:
        memory.find((project, path))
    except NotFound:
        return False
    return True


def _derived_permalink(vault: Vault, project: str, file: str) -> str:
    """The permalink that the program makes of a path."""
    if vault.permalinks_include_project:
        return permalink_for(project, file)
    return slug(file.removesuffix(".md"))


def _check_not_elsewhere(memory: MemorySession, project: str, permalink: str, file: str) -> None:
    """Raise Refused if an overwrite means a note that is somewhere else by now."""
    holder = memory.permalink_holder(project, file, permalink)
    if holder is not None and holder.path.lower() != file.lower():
        raise Refused(
            "NOTE_PATH_CONFLICT",
            f"The note {holder.permalink} is at {holder.path} now, so nothing was written. "
            "Change it there with edit_note, or write with overwrite=False.",
            **identity(holder),
        )


def in_existing_case(memory: MemorySession, project: str, path: str) -> str:
    """`path` with the names of existing folders that differ in case only.

    The program does so on a disk that ignores case.
    """
    folders = path.split("/")
    parent = ""
    for number, name in enumerate(folders):
        try:
            entries = memory.directory(project, parent, limit=_FOLDERS).entries
        except MemorandaError:
            # Nothing below exists; the caller reports the problem with the path.
            break
        names = {entry.path.rpartition("/")[2] for entry in entries if entry.kind == "folder"}
        if name not in names:
            alike = (
                candidate for candidate in sorted(names) if candidate.casefold() == name.casefold()
            )
            name = next(alike, name)
        folders[number] = name
        parent = f"{parent}/{name}".lstrip("/")
    return "/".join(folders)


def _not_written(memory: MemorySession, args: Arguments, error: MemorandaError) -> Reply:
    if isinstance(error, OutsideError):
        action = "created"
    else:
        action = "conflict"
    data = {**UNNAMED, "title": args["title"], "checksum": None, "action": action}
    if isinstance(error, Exists):
        data |= _known(memory, error.permalink or error.path, args["project"])
        data |= {"error": "NOTE_ALREADY_EXISTS"}
    else:
        data |= error_fields(error)
    return either(args, data, str(error), True)


def _known(memory: MemorySession, name: str, project: str) -> dict[str, Any]:
    try:
        return identity(memory.find(name, project))
    except MemorandaError:
        return {}


def edit_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Apply one operation, and set header keys with `metadata`."""
    try:
        data = _edited(memory, args)
    except MemorandaError as error:
        return _not_edited(vault, memory, args, error)
    fields = {key: data[key] for key in (*UNNAMED, "checksum", "operation")}
    fields["fileCreated"] = data["action"] == "created"
    return either(args, fields, data["text"])


def _edited(memory: MemorySession, args: Arguments) -> dict[str, Any]:
    operation = args["operation"]
    if operation not in _OPERATIONS:
        names = ", ".join(_OPERATIONS)
        raise InvalidInput(f"Invalid operation '{operation}'. Must be one of: {names}")
    if operation in ("append", "prepend"):
        args.pop("section", None)
    metadata = _edited_metadata(args)
    if args.get("expected_checksum"):
        _check_is_there(memory, args)
    reply = write_tools.edit_note(memory, args)
    assert reply.data is not None
    data = {**reply.data, "text": reply.text}
    if metadata:
        place = (data["project"], data["file_path"])
        data["checksum"] = memory.edit(place, SetKeys(metadata)).note.checksum
    return data


def _edited_metadata(args: Arguments) -> dict[str, Any]:
    given_metadata = args.get("metadata") or {}
    metadata = {
        key: value for key, value in given_metadata.items() if key not in ("title", "permalink")
    }
    absent = [key for key, value in metadata.items() if value is None]
    if absent:
        raise InvalidInput(
            f"metadata values cannot be null (keys are not deleted): {', '.join(absent)}"
        )
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


def _not_edited(
    vault: Vault, memory: MemorySession, args: Arguments, error: MemorandaError
) -> Reply:
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
        # Our sentence would name projects that the program has not
        text = f"No project `{route}`. list_memory_projects shows those there are."
    elif "currentChecksum" in data:
        data |= _known(memory, args["identifier"], args["project"])
    return either(args, data, text, True)


def move_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Move a note or a folder. As in Basic Memory, no other note is rewritten.

    The names of `args` are replaced by ours.
    """
    name = args["identifier"]
    data = {"moved": False, **UNNAMED, "source": name}
    data["destination"] = args.get("destination_path") or args.get("destination_folder")
    try:
        _take_destination(vault, memory, args)
        args["follow"] = vault.update_permalinks_on_move
        args["update_links"] = False
        args["is_directory"] = bool(args.get("is_directory"))
        reply = write_tools.move_note(memory, args)
    except Refused as error:
        return either(args, data | error_fields(error), str(error))
    except NotFound as error:
        data["error"] = f"Entity not found: {name}"
        return either(args, data, str(error), True)
    except MemorandaError as error:
        return either(args, data | error_fields(error), str(error), True)
    assert reply.data is not None
    moved = reply.data
    data["moved"] = True
    if args["is_directory"]:
        number = moved["notes"]
        data |= {"destination": args["destination_path"], "is_directory": True}
        data |= {"total_files": number, "successful_moves": number, "failed_moves": 0}
    else:
        note = memory.find((moved["project"], moved["new_path"]))
        data |= {**identity(note), "destination": moved["new_path"]}
    return either(args, data, reply.text)


def _take_destination(vault: Vault, memory: MemorySession, args: Arguments) -> None:
    """Make `destination_path` of the destination a caller gave. Raises Refused, NotFound."""
    project = args["project"]
    path = args.get("destination_path") or ""
    folder = args.get("destination_folder") or ""
    _check_destination(path, folder, bool(args.get("is_directory")))
    folder = in_existing_case(memory, project, folder.strip("/") or folder)
    path = in_existing_case(memory, project, path)
    _check_project(vault, memory, project, path, folder)
    if not args.get("is_directory"):
        info = memory.find(args["identifier"], project, looseness=Looseness.CASE)
        if folder:
            path = folder.strip("/") + "/"
        else:
            _check_file_name(path)
        if path.strip("/") == info.path:
            message = f"The note is at {info.path} already. Choose another destination_path."
            raise Refused("DESTINATION_SAME_AS_SOURCE", message)
    args["destination_path"] = path


def _check_destination(path: str, folder: str, is_folder: bool) -> None:
    if path and folder:
        message = "Give destination_path or destination_folder, not both."
        raise Refused("MUTUALLY_EXCLUSIVE_PARAMS", message)
    if not path and not folder:
        raise Refused("MISSING_DESTINATION", "Give destination_path or destination_folder.")
    if folder and is_folder:
        message = "destination_folder is for notes; give destination_path for a folder."
        raise Refused("DESTINATION_FOLDER_NOT_FOR_DIRECTORIES", message)
    target = (path or folder).replace("\\", "/")
    is_outside = target.startswith(("/", "~")) or ".." in target.split("/")
    if is_outside or target[1:3] == ":/":
        raise Refused("SECURITY_VALIDATION_ERROR", str(OutsideError(path or folder)))


def _check_project(
    vault: Vault, memory: MemorySession, project: str, path: str, folder: str
) -> None:
    """Raise Refused for a destination in another project; a folder of that name is meant first."""
    if "/" not in path and not folder:
        return
    first = (folder or path).strip("/").partition("/")[0]
    other_name = vault.known_name(memory, first)
    if other_name is None or vault.projects(memory)[other_name].name == project:
        return
    if not has_folder(memory, project, first):
        message = (
            f"A move stays inside its project; {first} is another one. Write the note there with "
            "write_note, then delete it here."
        )
        raise Refused("CROSS_PROJECT_MOVE_NOT_SUPPORTED", message)


def _check_file_name(path: str) -> None:
    if "." not in path.rpartition("/")[2].rstrip("."):
        raise Refused("FILE_EXTENSION_REQUIRED", f"Give destination_path its ending: {path}.md")
    if not path.endswith((".md", ".markdown")):
        stem = path.rpartition(".")[0]
        raise Refused("FILE_EXTENSION_MISMATCH", f"A note's file ends in .md: {stem}.md")


def delete_note(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Delete a note of exactly this name, or a folder. The answer to a note is true or false."""
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
    name = args["identifier"]
    data = {"deleted": False, "is_directory": True, "identifier": name, "total_files": 0}
    args["identifier"] = name.strip("/") or name
    args["is_directory"] = True
    try:
        reply = write_tools.delete_note(memory, args)
    except MemorandaError as error:
        return either(args, data | {"error": str(error)}, str(error), True)
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
    """Add a folder as a project; one that is there is answered with what it is."""
    name = args["project_name"]
    if vault.only is not None:
        return _constrained(vault, args)
    if args.get("workspace"):
        raise InvalidInput("Cloud workspaces are not used here. Leave `workspace` out.")
    projects = vault.projects(memory)
    existing = next(
        (candidate for candidate in projects if candidate.casefold() == name.strip().casefold()),
        None,
    )
    if existing is not None:
        row = _project_row(memory, existing, projects[existing].name, str(projects[existing].root))
        row |= {"created": False, "already_exists": True}
        text = f"Project {existing} is there already."
    else:
        reply = write_tools.create_memory_project(memory, {"set_default": False, **args})
        if reply.is_error:
            return text_reply(reply.text, True)
        text = reply.text
        assert reply.data is not None
        if reply.data["action"] == "asked":
            return either(args, _asked(reply), text)
        ours = reply.data["name"]
        row = _project_row(memory, ours, ours, reply.data["path"])
        row |= {"created": True, "already_exists": False}
    ours = vault.names.get(row["name"], row["name"])
    total = memory.list(Query(projects=(ours,)), limit=1).total
    row["indexing"] = {"state": "completed", "total_files": total, "enqueued_files": total}
    return either(args, row, text)


def _asked(reply: Reply) -> dict[str, Any]:
    """The reply about a folder that waits for the owner's consent. Nothing was added."""
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
    is_default = memory.default_project == ours
    return {"name": name, "external_id": project_id(name), "path": path, "is_default": is_default}


def _constrained(vault: Vault, args: Arguments) -> Reply:
    text = f"Projects are not changed here: this server serves project '{vault.only}' alone."
    data = {"name": args["project_name"], "created": False, "already_exists": False}
    return either(args, data | {"error": "PROJECT_CONSTRAINED", "message": text}, text)


def delete_project(vault: Vault, memory: MemorySession, args: Arguments) -> Reply:
    """Take a project off the list; its files stay."""
    if vault.only is not None:
        return _constrained(vault, args)
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
    """The projects that the program would know."""
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
