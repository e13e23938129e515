"""The tools that change notes and projects (contract 000b, 1 and 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from memoranda import documents
from memoranda.clock import parse_stamp
from memoranda.documents.wording import lines, plural, short
from memoranda.engine.attachments import conventions_of
from memoranda.engine.contested import otherwise, written_over
from memoranda.errors import (
    Exists,
    InvalidInput,
    NotFound,
    NothingToReplace,
    ProjectRefused,
    Taken,
)
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes.read_tools import folder_named, relative
from memoranda.faces.notes.replies import whole
from memoranda.faces.reply import Reply, refused
from memoranda.note import edit as edits
from memoranda.note.frontmatter import parse, split
from memoranda.note.model import CATEGORIES, CATEGORY_PROJECT, MEMORY_KEYS, Draft, Note
from memoranda.note.names import Looseness
from memoranda.query import Query, split_list
from memoranda.text.unicode import flat

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.notes import Stored

# Notes named whose links changed.
_SHOWN = 20
_STATES = {"resolved": "resolved", "unwritten": "not written yet", "ambiguous": "ambiguous"}
# Operations that make a missing note.
_ADDING = ("append", "prepend")
_SECTION_EDITS: dict[str, Callable[[str, str], edits.Edit]] = {
    "replace_section": edits.ReplaceSection,
    "insert_before_section": edits.InsertBeforeSection,
    "insert_after_section": edits.InsertAfterSection,
}
_GIVEN = ("tags", "metadata", "valid_from", "valid_until", "supersedes", "file_name")
_OWNERS = "adding projects is left to the owner. Ask them to run: memory project add NAME FOLDER"


def write_note(memory: MemorySession, args: Arguments) -> Reply:
    """Create a note, or replace one with `overwrite`."""
    draft = _draft(memory, args)
    stored = _store(memory, draft, args)
    note = stored.note
    if stored.created:
        action = "created"
    else:
        action = "updated"
    edges = memory.outgoing(note) if note.relations or note.links else ()
    states = Counter(edge.state for edge in edges)
    observations = _observation_counts(note)
    data = {
        "action": action,
        **documents.reference(note),
        "checksum": note.checksum,
        "observations": observations,
        "relations": {
            "resolved": states["resolved"],
            "unresolved": states.total() - states["resolved"],
        },
        "tags": list(note.tags),
    }
    if stored.created:
        data |= _warned(memory, note.project, note.path)
    counts = [f"{name or 'without category'} {count}" for name, count in observations.items()]
    relations = [f"{states[state]} {words}" for state, words in _STATES.items() if states[state]]
    summary = {
        "observations": short(", ".join(counts), 1000),
        "relations": ", ".join(relations),
        "tags": short(", ".join(note.tags), 1000),
    }
    rows = [f"{name}: {text}" for name, text in summary.items() if text]
    contradiction = _contradiction(memory, note)
    data |= contradiction
    rows += contradiction.values()
    return Reply(lines(*_changed(action, note), *rows), data)


def _observation_counts(note: Note) -> dict[str, int]:
    """How many observations of each category a note has, most first; "" for those without one.

    A category is spelled as it is first written.
    """
    spelled: dict[str, str] = {}
    names = [observation.category or "" for observation in note.observations]
    return dict(Counter(spelled.setdefault(name.casefold(), name) for name in names).most_common())


def _contradiction(memory: MemorySession, note: Note) -> dict[str, str]:
    """The keys that say which older note a note just written contradicts; {} for none."""
    pair = written_over(memory, note)
    if pair is None:
        return {}
    return {"contradicts": f"{otherwise(memory, pair)} The user is asked which of the two holds."}


def _store(memory: MemorySession, draft: Draft, args: Arguments) -> Stored:
    """Store the draft. Raises NothingToReplace, Taken, and as `store`."""
    checksum = args.get("expected_checksum")
    overwrite = args["overwrite"]
    try:
        return memory.store(draft, overwrite=overwrite, checksum=checksum)
    except NotFound as error:
        if checksum is None or draft.supersedes:
            raise
        raise NothingToReplace(error.identifier, error.project) from None
    except Exists as error:
        if overwrite or not _is_there(memory, draft.project, error.path):
            # The caller cannot change a file that is no note, or another agent's
            raise Taken(error.path, error.permalink) from None
        raise


def _is_there(memory: MemorySession, project: str, path: str) -> bool:
    """Whether the caller sees a note at this path."""
    try:
        memory.find((project, path))
    except NotFound:
        return False
    return True


def _changed(action: str, note: Note, detail: str = "") -> list[str]:
    where = {
        "project": note.project,
        "file_path": note.path,
        "permalink": note.permalink,
        "checksum": note.checksum,
    }
    return [
        f"# {action.capitalize()} note{detail}",
        *(f"{name}: {flat(value)}" for name, value in where.items()),
    ]


def _warned(memory: MemorySession, project: str, path: str, notes: int = 1) -> dict[str, Any]:
    """Warn of a folder with the project's name that a call made by putting its `notes` at `path`:
    addresses begin with that name, paths do not. {} for other calls.
    """
    folder, _, rest = path.partition("/")
    if folder.casefold() != project.casefold() or not rest:
        return {}
    entries_there = memory.directory(project, glob=folder, limit=0).entries
    if not any(entry.path == folder and entry.notes == notes for entry in entries_there):
        return {}
    warning = f"Paths begin inside project {project}, so this is in a folder {folder} of it. If you meant {flat(rest)}"
    return {"warnings": [f'{warning}, call move_note with destination_path="{flat(rest)}".']}


def _path(args: Arguments, name: str) -> str:
    """A parameter that takes a path. Raises InvalidInput for an address, which would become a
    folder `memory:`.
    """
    path: str = args.get(name, "")
    if path.startswith("memory://"):
        raise InvalidInput(
            f'Parameter `{name}` must be a path in the project, e.g. plans/2026; got the address "{short(path)}". '
            "Name the project in `project`."
        )
    return path


def _draft(memory: MemorySession, args: Arguments) -> Draft:
    project = memory.project(args.get("project") or memory.default_project).name
    folder = relative(_path(args, "directory"), project)
    kind = _note_type(args)
    title = args["title"].strip()
    if not title:
        raise InvalidInput('Parameter `title` must be a text that is not blank; got "".')
    arguments = {name: args[name] for name in _GIVEN if name in args}
    draft = Draft(
        args["content"], project=project, folder=folder, title=title, type=kind, **arguments
    )
    if project == CATEGORY_PROJECT:
        _make_memory(draft, folder, kind)
    return draft


def _note_type(args: Arguments) -> str | None:
    """The type of a note. None keeps the type that its content names. Raises InvalidInput."""
    kind: str = args["note_type"]
    if not kind.isprintable():
        raise InvalidInput(
            f'Parameter `note_type` must be one line without control characters; got "{short(kind)}".'
        )
    return None if kind == "note" else kind


def _make_memory(draft: Draft, folder: str, kind: str | None) -> None:
    """Give a draft for the project of memories its category. Raises InvalidInput."""
    _take_header(draft)
    draft.category = folder or draft.category or (kind if kind in CATEGORIES else None)
    if folder and folder not in CATEGORIES:
        names = ", ".join(CATEGORIES)
        raise InvalidInput(
            f'Parameter `directory` must be one of {names} in project categories; got "{folder}".'
        )


def _take_header(draft: Draft) -> None:
    """Make the header of a memory's content its own: pinned, category, tags, an end. A memory has
    one header, and its content is text.
    """
    front, body_at = split(draft.text)
    try:
        header = parse(front or "")
    except ValueError:
        return
    if not header:
        return
    draft.text = draft.text[body_at:]
    tags = header.pop("tags", None) or []
    draft.tags = (*draft.tags, *(map(str, tags) if isinstance(tags, list) else split_list(tags)))
    category = header.pop("category", None)
    if category in CATEGORIES:
        draft.category = category
    with suppress(ValueError, TypeError, OverflowError, AttributeError):
        draft.expires = parse_stamp(header.pop("expires_at", None))
    further = {key: value for key, value in header.items() if key not in MEMORY_KEYS}
    draft.metadata = further | draft.metadata


def edit_note(memory: MemorySession, args: Arguments) -> Reply:
    """Apply one operation; `append` and `prepend` make a missing note."""
    operation = args["operation"]
    changed = memory.edit(
        args["identifier"],
        _edit_asked_for(args),
        checksum=args.get("expected_checksum"),
        create=operation in _ADDING,
        project=args.get("project"),
    )
    note = changed.note
    action = "created" if changed.created else "edited"
    data: dict[str, Any] = {
        "action": action,
        "operation": operation,
        **documents.reference(note),
        "checksum": note.checksum,
    }
    if operation == "find_replace":
        data["replacements"] = changed.edited.count
    if changed.updated:
        data["updated_links"] = changed.updated
    if changed.broken:
        data["broken_links"] = changed.broken
    contradiction = _contradiction(memory, note)
    data |= contradiction
    text = lines(
        *_changed(action, note, f" ({operation})"),
        "" if changed.created else _edit_result(args, changed.edited),
        *_links_lines(changed.updated, changed.broken),
        *contradiction.values(),
    )
    return Reply(text, data)


def _edit_asked_for(args: Arguments) -> edits.Edit:
    """The edit that an operation means. Raises InvalidInput where its place is not named."""
    operation = args["operation"]
    content = args["content"]
    section = args.get("section", "")
    if operation in _ADDING:
        return _addition(operation, section.strip(" \t"), content)
    if operation == "find_replace":
        find = args.get("find_text", "")
        if not find:
            raise InvalidInput(
                "Parameter `find_text` must be the exact text to replace for find_replace; got "
                "nothing."
            )
        return edits.FindReplace(find, content, whole(args, "expected_replacements", 1))
    if not section.strip(" \t#"):
        raise InvalidInput(
            f'Parameter `section` must name a heading for {operation}; got "{section}".'
        )
    if operation == "replace_section" and args.get("replace_subsections") is False:
        return edits.ReplaceSection(section, content, keeps_subsections=True)
    return _SECTION_EDITS[operation](section, content)


def _addition(operation: str, section: str, content: str) -> edits.Edit:
    """The edit for `append` or `prepend`, to the section if one is named, or to the whole note."""
    if operation == "append":
        return edits.AppendToSection(section, content) if section else edits.Append(content)
    return edits.InsertAfterSection(section, content) if section else edits.Prepend(content)


def _edit_result(args: Arguments, edited: edits.Edited) -> str:
    """Describe an edit in one line."""
    operation = args["operation"]
    if operation == "find_replace":
        count = plural(edited.count, "occurrence")
        return f"replaced: {count} of find_text, the first in line {edited.line}"
    if operation == "replace_section":
        section = short(args.get("section", "").strip())
        return f'replaced: the text of section "{section}", from line {edited.line}'
    content = args["content"]
    added = content.count("\n") + (not content.endswith("\n"))
    return f"added: {plural(added, 'line')} at line {edited.line}"


def _links_lines(updated: list[str], broken: list[str]) -> list[str]:
    """Say how links to moved or renamed notes changed."""
    rows = []
    if updated:
        rows.append(f"Links updated in: {_listed(updated)}")
    if broken:
        rows.append(f"Links that no longer lead there, in: {_listed(broken)}")
    return rows


def with_destination(args: Arguments) -> Arguments:
    """Replace `destination_folder` in `args` by `destination_path` with a final `/`, which keeps
    the name.
    """
    folder = args.pop("destination_folder", None)
    if isinstance(folder, str) and args.get("destination_path") is None:
        args["destination_path"] = folder.rstrip("/") + "/"
    return args


def move_note(memory: MemorySession, args: Arguments) -> Reply:
    """Move or rename a note, or a folder with `is_directory`."""
    destination = _path(args, "destination_path")
    is_folder = args["is_directory"]
    follow = bool(args.get("follow"))
    update_links = args.get("update_links") is not False
    if not destination.strip():
        raise InvalidInput('Parameter `destination_path` must be a path in the project; got "".')
    try:
        if is_folder:
            project, folder = _folder(memory, args)
            relative(destination, project)
            moved = memory.move_folder(
                project, folder, destination, follow=follow, update_links=update_links
            )
        else:
            moved = memory.move(
                _note(memory, args, "move"), destination, follow=follow, update_links=update_links
            )
    except Exists as error:
        # Here it is the destination, whatever is there
        raise Exists(error.path) from None
    paths = {"old_path": moved.old_path, "new_path": moved.new_path}
    data = {
        "action": "moved",
        "project": moved.project,
        **paths,
        "notes": moved.notes,
        "broken_links": moved.broken,
    }
    data |= {"updated_links": moved.updated} if moved.updated else {}
    data |= _warned(memory, moved.project, moved.new_path, moved.notes)
    if is_folder:
        permalink = ""
    else:
        permalink = memory.find((moved.project, moved.new_path)).permalink
    text = lines(
        f"# Moved {'folder' if is_folder else 'note'}",
        f"project: {moved.project}",
        f"from: {flat(moved.old_path)}",
        f"to: {flat(moved.new_path)}",
        f"notes: {moved.notes}" if is_folder else f"permalink: {flat(permalink)}",
        *_links_lines(moved.updated, moved.broken),
    )
    return Reply(text, data)


def delete_note(memory: MemorySession, args: Arguments) -> Reply:
    """Delete a note, or the notes of a folder with `is_directory`."""
    if args["is_directory"]:
        project, folder = _folder(memory, args)
        deleted = memory.delete_folder(project, folder)
        noun_phrase = (
            f"folder {flat(folder)} of {deleted.project} with {plural(deleted.notes, 'note')}"
        )
        noun_phrase = f"{noun_phrase}: {_listed(deleted.paths)}"
    else:
        deleted = memory.delete(_note(memory, args, "delete"))
        noun_phrase = f"{flat(deleted.paths[0])} from {deleted.project}"
    back = f"The owner can bring it back with `memory undo {deleted.change}`."
    if deleted.lost:
        if deleted.lost < deleted.notes:
            few = f"{back} All but {deleted.lost:,} of them: "
        else:
            few = "It cannot be undone: "
        back = f"{few}the text of an entry with a time to live is not kept."
    text = f"Deleted {noun_phrase}\n{back}"
    data = {
        "action": "deleted",
        "project": deleted.project,
        "paths": deleted.paths,
        "notes": deleted.notes,
    }
    return Reply(text, data)


def _note(memory: MemorySession, args: Arguments, verb: str) -> Any:
    """The note; a folder named without `is_directory` gets its own answer. Raises NotFound,
    InvalidInput.
    """
    identifier = args["identifier"]
    project = args.get("project")
    if verb == "delete":
        looseness = Looseness.EXACT
    else:
        looseness = Looseness.CASE
    try:
        return memory.find(identifier, project, looseness=looseness)
    except NotFound as missing:
        try:
            _, folder = folder_named(memory, identifier, project)
        except NotFound:
            folder = ""
        if not folder:
            raise missing from None
    raise InvalidInput(
        f"Parameter `is_directory` must be true to {verb} the folder {folder}; got false."
    )


def _folder(memory: MemorySession, args: Arguments) -> tuple[str, str]:
    name = args["identifier"]
    project, folder = folder_named(memory, name, args.get("project"))
    if not folder:
        raise InvalidInput(
            f'Parameter `identifier` must name a folder below the project\'s root; got "{name}".'
        )
    return project, folder


def _listed(paths: list[str]) -> str:
    more = len(paths) - _SHOWN
    return short(", ".join(paths[:_SHOWN]), 4000) + (f" and {more:,} more" if more > 0 else "")


def list_memory_projects(memory: MemorySession, args: Arguments) -> Reply:
    """Every project with its folder and how many notes the caller sees in it."""
    entries = []
    rows = []
    for project in documents.projects(memory, memory.projects):
        row = f"{project['name']}: {plural(project['notes'], 'note')}, {flat(project['path'])}"
        rows.append(f"{row} (default)" if project["default"] else row)
        habits = _habits(memory, project["name"])
        rows += [f"  {name.replace('_', ' ')}: {value}" for name, value in habits.items()]
        entries.append(project | habits)
    return Reply(lines("# Projects", *rows), {"projects": entries})


def _habits(memory: MemorySession, project: str) -> dict[str, Any]:
    """Tell an agent about a folder that people keep with another program."""
    conventions = conventions_of(memory, project)
    access = memory.access_to(project)
    daily = "/".join(filter(None, (conventions.daily_folder, conventions.daily_format)))
    habit_words = {
        "kept_with": conventions.program,
        "read_only": "yes" if access.is_read_only else "",
        "you_write_in": access.write_folder,
        "new_notes_go_to": conventions.new_notes,
        "notes_of_days": daily,
        "links": _link_words(conventions.link_paths),
    }
    return {name: value for name, value in habit_words.items() if value}


def _link_words(link_paths: str) -> str:
    if not link_paths:
        return ""
    return f"[name](path.md), {link_paths} paths; a [[name]] you write becomes one"


def create_memory_project(memory: MemorySession, args: Arguments, *, allowed: bool = True) -> Reply:
    """Add a folder as a project; refused when the owner keeps that to themselves."""
    name = args["project_name"]
    folder = args["project_path"]
    if not allowed:
        raise ProjectRefused(short(folder), _OWNERS)
    try:
        project, action = memory.add_project(name, folder, args["set_default"])
    except Exists:
        text = f'A project "{short(name)}" exists already, with another folder. '
        return refused(
            f"{text}Choose another project_name; list_memory_projects shows those in use.",
            Exists.code,
        )
    except InvalidInput:
        must = "Parameter `project_name` must be 1 to 64 letters, digits, blanks, `.`, `_` or `-`"
        raise InvalidInput(f'{must}; got "{short(name, 80)}".') from None
    if action == "asked":
        count = 0
    else:
        count = memory.list(Query(projects=(project.name,)), limit=1)[1]
    data = {"action": action, "name": project.name, "path": str(project.root), "notes": count}
    rows = [f"name: {project.name}", f"path: {flat(str(project.root))}"]
    if action == "asked":
        rest = (
            "The owner has not allowed this folder yet, so nothing was added. They are asked in `memory review`; "
            "until then use another project."
        )
        return Reply(lines("# Asked the owner", *rows, rest), data)
    if action == "created":
        head = "# Created project"
    else:
        head = "# Project unchanged"
    return Reply(
        lines(head, *rows, f"notes: {count}", "default: yes" if project.default else ""), data
    )


def delete_project(memory: MemorySession, args: Arguments) -> Reply:
    """Take a project off the list; its files stay."""
    project = memory.project(args["project_name"])
    if project.built_in:
        raise InvalidInput(
            f"Project {project.name} is built in and cannot be removed. Projects added with create_memory_project can."
        )
    memory.remove_project(project.name)
    rest = "Its files stay. Add it again with create_memory_project."
    text = lines(
        "# Removed project", f"name: {project.name}", f"path: {flat(str(project.root))}", rest
    )
    return Reply(text, {"action": "removed", "name": project.name, "path": str(project.root)})
