"""What a configuration of Basic Memory says, and the replies of the note tools that write in that
program's words and JSON keys (contract 000b, 10)."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from memoranda import errors
from memoranda.errors import InvalidInput, MemorandaError, NotFound, ProjectNotFound
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes.replies import compact, project_id
from memoranda.faces.reply import Reply
from memoranda.faces.texts import text_file
from memoranda.index.rows import NoteInfo
from memoranda.note.links import slug
from memoranda.note.model import Note
from memoranda.note.names import named_one
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.projects import Project

_EDITED = {
    "append": "Added {count} lines to end of note",
    "prepend": "Added {count} lines to beginning of note",
    "find_replace": "Find and replace operation completed",
    "replace_section": "Replaced content under section '{section}'",
    "insert_before_section": "Inserted content before section '{section}'",
    "insert_after_section": "Inserted content after section '{section}'",
}
_UNNAMED: dict[str, Any] = {"title": None, "permalink": None, "file_path": None}


@dataclass(frozen=True, slots=True)
class Vault:
    """What a Basic Memory configuration says. `names`: its project names -> ours; `only`: the one
    project every call is about; `cloud`: projects that are not on this disk; the rest are its
    options of these names."""

    names: Mapping[str, str] = field(default_factory=dict)
    only: str | None = None
    cloud: frozenset[str] = frozenset()
    kebab_filenames: bool = False
    write_note_overwrite_default: bool = False
    update_permalinks_on_move: bool = False
    permalinks_include_project: bool = True
    enable_posix_tools: bool = True

    def projects(self, memory: MemorySession) -> list[tuple[str, Project]]:
        """(that program's name, project) of every project it would know."""
        theirs = {ours: name for name, ours in self.names.items()}
        return [
            (theirs.get(project.name, project.name), project)
            for project in memory.projects
            if project.name in theirs
            or not project.built_in
            or (not theirs and project.name == memory.default_project)
        ]

    def known(self, memory: MemorySession, name: str) -> tuple[str, Project] | None:
        """The project that program would take `name` for, with its name for it."""
        projects = dict(self.projects(memory))
        exact = named_one(name, projects)
        if exact is None:
            # `ExampleProject` has the permalink `example-project` there
            exact = next((project for project in projects if slug(project) == slug(name)), None)
        return None if exact is None else (exact, projects[exact])

    def named(self, memory: MemorySession, args: Arguments) -> str:
        """Our name of the project a call is about. Raises ProjectNotFound, InvalidInput."""
        projects = self.projects(memory)
        if args.get("workspace"):
            raise InvalidInput(
                "Cloud workspaces are not used here; every project is a folder. Leave `workspace` out."
            )
        given = self.only or args.get("project")
        if not self.only and (identity := args.get("project_id")):
            found = [
                each.name for name, each in projects if project_id(name) == str(identity).lower()
            ]
            if not found:
                raise InvalidInput(
                    f"No project has the id {identity}. list_memory_projects shows them."
                )
            return found[0]
        if not given:
            return memory.default_project
        known = self.known(memory, str(given).strip())
        if known:
            return known[1].name
        if given in self.cloud:
            raise InvalidInput(
                f"Project {given} is kept in Basic Memory's cloud, which is not used here. "
                "Add its folder on this disk with create_memory_project."
            )
        raise ProjectNotFound(str(given), [name for name, _ in projects])

    def detected(self, memory: MemorySession, args: Arguments) -> str | None:
        """The project an address begins with when none is named; it is cut off."""
        if args.get("project") or args.get("project_id") or self.only:
            return None
        for key in ("identifier", "url", "path", "id"):
            given = args.get(key)
            address = given.strip() if isinstance(given, str) else ""
            first, _, rest = address.removeprefix("memory://").partition("/")
            known = self.known(memory, first) if rest else None
            if known and known[1].name != memory.default_project:
                args[key] = f"memory://{rest}" if address.startswith("memory://") else given
                return known[1].name
        return None

    def shown(self, name: str) -> str:
        """That program's name of our project."""
        return next((theirs for theirs, ours in self.names.items() if ours == name), name)


def text_reply(text: str, is_error: bool = False) -> Reply:
    """A text, as that program wraps it in structured content."""
    return Reply(text, {"result": text}, is_error)


def json_reply(data: Any, is_error: bool = False) -> Reply:
    """Data, compact in the text. Clients of that program take it from `result`, others from the
    keys themselves.
    """
    return Reply(
        compact(data),
        {**data, "result": data} if isinstance(data, dict) else {"result": data},
        is_error,
    )


def data_reply(data: dict[str, Any]) -> Reply:
    """The reply of a tool that always answers with data."""
    return Reply(compact(data), data)


def bounded(args: Arguments, name: str, default: int, most: int = 10**9, least: int = 1) -> int:
    """The whole number `args[name]`. Raises InvalidInput outside of `least` to `most`."""
    value: int = default if args.get(name) is None else args[name]
    if value < least:
        raise InvalidInput(f"{name} must be >= {least}, got {value}")
    if value > most:
        raise InvalidInput(f"{name} must be <= {most}, got {value}")
    return value


def paged(args: Arguments, size: int = 10, most: int = 10**9) -> tuple[int, int]:
    """The page asked for and its size. Raises InvalidInput below 1 or above `most`."""
    return bounded(args, "page", 1), bounded(args, "page_size", size, most)


def is_json(args: Arguments) -> bool:
    """Whether the caller asked for JSON."""
    return args.get("output_format") == "json"


def either(args: Arguments, data: Any, text: str, is_error: bool = False) -> Reply:
    """`data` where the caller asked for JSON, else `text`."""
    if is_json(args):
        return json_reply(data, is_error)
    return text_reply(text, is_error)


@cache
def _refusals() -> dict[str, Any]:
    return tomllib.loads(text_file("basic-memory-refusals.toml"))


def refused(
    args: Arguments,
    key: str,
    data: dict[str, Any],
    more: dict[str, Any] | None = None,
    is_error: bool = True,
    **values: Any,
) -> Reply:
    """The refusal `key` of the file: its text, or its other keys as JSON behind `data` and before
    `more`.
    """
    kind, _, case = key.partition(".")
    row = {name: text.format(**values) for name, text in _refusals()[kind][case].items()}
    text = row.pop("text")
    return either(args, data | row | (more or {}), text, is_error)


def identity(note: Note | NoteInfo) -> dict[str, Any]:
    """What names a note in all its JSON."""
    return {"title": note.title, "permalink": note.permalink, "file_path": note.path}


def written(args: Arguments, memory: MemorySession, vault: Vault, reply: Reply) -> Reply:
    """The reply to write_note, or with an `operation` to edit_note, from our own."""
    operation = args.get("operation")
    shown = vault.shown(args["project"])
    data = reply.data or {}
    if reply.is_error:
        return (_not_edited if operation else _not_written)(args, memory, shown, reply)
    is_new = data["action"] == "created"
    found = {key: data[key] for key in (*_UNNAMED, "checksum")}
    if is_json(args):
        edit = {"operation": operation, "fileCreated": is_new}
        return json_reply(
            found | (edit if operation else {"action": data["action"], "similar_notes": []})
        )
    rows = [
        f"# {data['action'].capitalize()} note{f' ({operation})' if operation else ''}",
        f"project: {shown}",
    ]
    rows += [f"{key}: {found[key]}" for key in ("file_path", "permalink", "checksum")]
    count = len(args["content"].split("\n"))
    if operation and is_new:
        rows += ["fileCreated: true", f"operation: Created note with {count} lines"]
    elif operation:
        rows.append(
            "operation: " + _EDITED[operation].format(count=count, section=args.get("section"))
        )
    note = memory.find_ref((data["project"], data["file_path"]))
    counts = Counter(observation.category or "note" for observation in memory.observations(note))
    rows += (
        ["\n## Observations", *(f"- {name}: {count}" for name, count in sorted(counts.items()))]
        if counts
        else []
    )
    edges = memory.outgoing(note)
    unresolved = sum(edge.state != "resolved" for edge in edges)
    rows += ["\n## Relations", f"- Resolved: {len(edges) - unresolved}"] if edges else []
    rows += [f"- Unresolved: {unresolved}"] if unresolved else []
    if unresolved and not operation:
        rows.append("\nNote: Unresolved relations point to entities that don't exist yet.")
        rows.append("They are resolved as soon as notes of these names are written.")
    tags = [tag.strip().lstrip("#") for tag in args.get("tags") or () if tag.strip()]
    rows += [f"\n## Tags\n- {', '.join(tags)}"] if tags and not operation else []
    why = (
        " (no project was given, so this used the default project; pass project to target another)"
    )
    return text_reply(
        "\n".join(rows) + f"\n\n[Project: '{shown}'{why if args.get('by_default') else ''}]"
    )


def _not_written(args: Arguments, memory: MemorySession, shown: str, reply: Reply) -> Reply:
    code = (reply.data or {}).get("code")
    title = args["title"]
    blank = {**_UNNAMED, "title": title, "checksum": None}
    if code == "exists":
        name = _between(reply.text, "exists: ", ". ")
        known = {"permalink": name, "file_path": name} | _known(memory, name, args["project"])
        name = known["permalink"]
        blank |= {"permalink": name, "file_path": known["file_path"]}
        return refused(args, "write.exists", blank, title=title, name=name, shown=shown)
    if code == "outside":
        return refused(args, "write.outside", blank, folder=args["directory"])
    if code == "conflict":
        now = _between(reply.text, "checksum ", ",")
        blank |= _known(memory, reply.text.partition(" changed since")[0], args["project"])
        return refused(
            args,
            "write.conflict",
            blank,
            {"currentChecksum": now},
            title=title,
            now=now,
            shown=shown,
        )
    return text_reply(reply.text, True)


def _known(memory: MemorySession, name: str, project: str) -> dict[str, Any]:
    try:
        return identity(memory.find(name, project))
    except MemorandaError:
        return {}


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


def _not_edited(args: Arguments, memory: MemorySession, shown: str, reply: Reply) -> Reply:
    case = str((reply.data or {}).get("code"))
    name = args["identifier"]
    ours = reply.text
    route = name.removeprefix("memory://").partition("/")[0]
    checksum = _between(ours, "checksum ", ",")
    count = _between(ours, "found ", ".")
    more: dict[str, Any] = {}
    if case == "not_found" and args.get("expected_checksum"):
        case = "gone"
    if case == "count" and count == "0":
        case = "missing_text"
    # Our sentence names projects that program has not
    elif case == "project_not_found":
        more = {"project": shown, "projectRoute": route}
    elif case in ("gone", "conflict"):
        more = _known(memory, name, args["project"]) | {"currentChecksum": checksum or None}
    elif case not in _refusals()["edit"] or (case == "section" and "times" not in ours):
        case = "other"
    blank = {**_UNNAMED, "checksum": None, "operation": args["operation"], "fileCreated": False}
    return refused(
        args,
        f"edit.{case}",
        blank,
        more,
        name=name,
        ours=ours,
        shown=shown,
        route=route,
        count=count,
        now=checksum,
        find=args.get("find_text"),
        expected=args.get("expected_replacements"),
        hint=f'Use `read_note(identifier="{name}", project="{shown}")` to see the current content.',
    )


def not_moved(args: Arguments, case: str, is_error: bool = False, **values: Any) -> Reply:
    """A move that was refused."""
    blank = {"moved": False, **_UNNAMED, "source": args["identifier"]}
    blank["destination"] = args.get("destination_path") or args.get("destination_folder")
    return refused(
        args, f"move.{case}", blank, is_error=is_error, name=args["identifier"], **values
    )


def moved(
    args: Arguments, memory: MemorySession, shown: str, reply: Reply, info: NoteInfo | None
) -> Reply:
    """The reply to move_note, from our own; of a folder without `info`."""
    data = reply.data or {}
    name = args["identifier"]
    target = args["destination_path"]
    if reply.is_error:
        what = "Move Failed" if info else "Directory Move Failed"
        is_missing = data.get("code") == "not_found"
        if data.get("code") == "exists":
            why = " - Destination Already Exists"
        else:
            why = ""
        none = ""
        if is_missing and not info:
            why = " - No Files Found"
            none = "\nNo files found. Total files: 0."
        return not_moved(
            args, "failed", True, what=what, why=why, path=target, ours=reply.text, none=none
        )
    if info is None:
        count = data["notes"]
        sums = {"total_files": count, "successful_moves": count, "failed_moves": 0}
        blank = {
            "moved": True,
            **_UNNAMED,
            "source": name,
            "destination": target,
            "is_directory": True,
        }
        below = memory.list(Query(projects=(data["project"],)), limit=0, order="path")[0]
        paths = [each.path for each in below if each.path.startswith(f"{data['new_path']}/")]
        head = (
            f"# Directory Moved Successfully\n\n**Source:** `{name}`\n**Destination:** `{target}`"
        )
        return either(args, blank | sums, _of_folder(head, "moved", "Moved", count, paths, shown))
    now = memory.find_ref((data["project"], data["new_path"]))
    return either(
        args,
        {"moved": True, **identity(now), "source": name, "destination": data["new_path"]},
        f"# Note Moved\n\n✅ Note moved successfully\n\n📁 `{data['old_path']}` → `{data['new_path']}`\n"
        f"From: {name}\nTo: {data['new_path']}\nPermalink: {now.permalink}\n"
        f"📊 Database and search index updated\n\n<!-- Project: {shown} -->",
    )


def _of_folder(head: str, verb: str, heading: str, count: int, paths: list[str], shown: str) -> str:
    rows = [f"- `{path}`" for path in paths[:10]]
    rows += [f"- ... and {len(paths) - 10} more"] if len(paths) > 10 else []
    sums = f"- Total files: {count}\n- Successfully {verb}: {count}\n- Failed: 0"
    return "\n".join(
        [
            f"{head}\n\n## Summary\n{sums}\n\n## {heading} Files",
            *rows,
            "",
            f"<!-- Project: {shown} -->",
        ]
    )


def deleted(args: Arguments, shown: str, reply: Reply, info: NoteInfo | None) -> Reply:
    """The reply to delete_note, from our own; of a folder without `info`."""
    data = reply.data or {}
    name = args["identifier"]
    if reply.is_error:
        if info is None:
            head = "# Directory Delete Failed"
        else:
            head = "# Delete Failed"
        rest = ""
        if data.get("code") == "not_found":
            head = f"{head} - No Files Found"
            rest = f"No files found for directory `{name}`.\nTotal files: 0.\n\n"
        blank = {
            "deleted": False,
            "is_directory": info is None,
            "identifier": name,
            "total_files": 0,
        }
        return either(args, blank | {"error": reply.text}, f"{head}\n\n{rest}{reply.text}", True)
    if info is not None:
        if is_json(args):
            return json_reply({"deleted": True, **identity(info)})
        return Reply("true", {"result": True})
    count = data["notes"]
    paths = data["paths"]
    sums = {
        "total_files": count,
        "successful_deletes": count,
        "failed_deletes": 0,
        "deleted_files": paths,
    }
    head = f"# Directory Deleted Successfully\n\n**Directory:** `{name}`"
    text = _of_folder(head, "deleted", "Deleted", count, paths, shown)
    return either(
        args,
        {"deleted": True, "is_directory": True, "identifier": name, **sums, "errors": []},
        text,
    )


def failed(tool: str, args: Arguments, error: MemorandaError) -> Reply:
    """An error of a call, in the manner of the tool."""
    text = str(error)
    if isinstance(error, errors.OutsideError) and tool == "read_note":
        blank = _UNNAMED | dict.fromkeys(("content", "frontmatter"))
        return refused(args, "read.outside", blank, is_error=False, name=error.path)
    if (
        isinstance(error, NotFound)
        and not isinstance(error, ProjectNotFound)
        and tool == "move_note"
    ):
        return not_moved(args, "not_found", True)
    if isinstance(error, ProjectNotFound):
        text = f"Project '{args.get('project')}' not found. {text}"
    elif tool == "edit_note":
        text = f"# Edit Failed\n\n{text}"
    elif isinstance(
        error,
        NotFound | errors.Exists | errors.Conflict | errors.CountMismatch | errors.SectionError,
    ):
        text = f"# Error\n\n{text}"
    return text_reply(text, True)
