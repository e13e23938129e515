"""The tools that change notes and projects (contract 000b, 1 and 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memoranda import documents
from memoranda.clock import parse_stamp
from memoranda.documents.wording import lines, plural, short
from memoranda.engine.links.attachments import conventions_of
from memoranda.engine.telling.contested import remark_for_agent
from memoranda.errors import (
    Exists,
    InvalidInput,
    NotFound,
    NothingToReplace,
    ProjectRefused,
    ReadOnlyProject,
    Taken,
    project_title,
)
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes.read_tools import folder_named, relative
from memoranda.faces.notes.replies import whole_number
from memoranda.faces.reply import Reply, refused
from memoranda.note import edit as edits
from memoranda.note.frontmatter import parse, split
from memoranda.note.model import (
    CATEGORIES,
    CATEGORY_PROJECT,
    Draft,
    Note,
    warning_parts,
)
from memoranda.note.names import Looseness
from memoranda.query import Query, split_list
from memoranda.text.unicode import flat

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.notes import Stored
    from memoranda.engine.places import Deleted, Moved

# At most this many paths are named before "and N more".
_MAX_LISTED_PATHS = 20
# The state of a link -> its words in a reply.
_STATE_WORDS = {"resolved": "resolved", "unwritten": "not written yet", "ambiguous": "ambiguous"}
# Operations that create a missing note.
_CREATING_OPERATIONS = ("append", "prepend")
_SECTION_EDITS: dict[str, Callable[[str, str], edits.Edit]] = {
    "replace_section": edits.ReplaceSection,
    "insert_before_section": edits.InsertBeforeSection,
    "insert_after_section": edits.InsertAfterSection,
}
_DRAFT_FIELDS = ("tags", "metadata", "valid_from", "valid_until", "supersedes", "file_name")
# The header keys of a memory whose values are never the caller's (contract 001, 2).
_SET_BY_MEMORIES = (
    "id",
    "content_hash",
    "phase",
    "updated_at",
    "access_count",
    "links",
    "version",
)
_OWNERS_ONLY = (
    "adding projects is left to the owner. Ask them to run: memory project add NAME FOLDER"
)


def write_note(memory: MemorySession, args: Arguments) -> Reply:
    """Create a note, or replace one with `overwrite`."""
    draft, left_out_keys = _draft(memory, args)
    stored = _store_draft(memory, draft, args)
    note = stored.note
    action = "created" if stored.created else "updated"
    # An edge is a relation or link of the note, whose state says whether its target exists. Most
    # notes have none, and need no look into the index.
    edges = memory.outgoing(note) if note.relations or note.links else ()
    edge_states = Counter(edge.state for edge in edges)
    observations = _observation_counts(note)
    data = {
        "action": action,
        **documents.reference(note),
        "checksum": note.checksum,
        "observations": observations,
        "relations": {
            "resolved": edge_states["resolved"],
            "unresolved": edge_states.total() - edge_states["resolved"],
        },
        "tags": list(note.tags),
    }
    warnings = _header_warnings(note)
    if left_out_keys:
        names = ", ".join(left_out_keys)
        warnings.append(f"left out of the frontmatter, because a memory sets it itself: {names}")
    if stored.created:
        warnings += _folder_warnings(memory, note.project, note.path)
    if warnings:
        data["warnings"] = warnings
    contradiction = _contradiction_data(memory, note)
    data |= contradiction
    text_lines = [
        *_changed_lines(action, note),
        *_summary_lines(observations, edge_states, note.tags),
        *contradiction.values(),
    ]
    return Reply(lines(*text_lines), data)


def _summary_lines(
    observations: Mapping[str, int], edge_states: Counter[str], tags: Sequence[str]
) -> list[str]:
    """Return the lines on the contents of a written note, e.g. `observations: fact 3, idea 1`.

    There is no line for what the note does not have.

    observations: the number of observations of each category.
    edge_states: the number of relations and links in each state.
    """
    counts = [f"{name or 'without category'} {count}" for name, count in observations.items()]
    relations = [
        f"{edge_states[state]} {words}"
        for state, words in _STATE_WORDS.items()
        if edge_states[state]
    ]
    summary = {
        "observations": short(", ".join(counts), 1000),
        "relations": ", ".join(relations),
        "tags": short(", ".join(tags), 1000),
    }
    return [f"{name}: {text}" for name, text in summary.items() if text]


def _observation_counts(note: Note) -> dict[str, int]:
    """Count a note's observations by category, most first, e.g. `{"fact": 3, "": 1}`.

    "" counts the observations without a category. Categories that differ only in upper and lower
    case are one category, in the spelling that comes first.
    """
    first_spellings: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for observation in note.observations:
        category = observation.category or ""
        spelling = first_spellings.setdefault(category.casefold(), category)
        counts[spelling] += 1
    return dict(counts.most_common())


def _contradiction_data(memory: MemorySession, note: Note) -> dict[str, str]:
    """Return the key `contradicts`, which names the older note that a new one contradicts.

    Empty if the new note contradicts none.
    """
    remark = remark_for_agent(memory, note.project, note.path)
    return {"contradicts": remark} if remark else {}


def _store_draft(memory: MemorySession, draft: Draft, args: Arguments) -> Stored:
    """Store a draft with the arguments of write_note.

    Raises NothingToReplace if a checksum is given for a missing note, Taken if the path belongs to
    a file that the caller cannot change, and the other errors of `MemorySession.store`.
    """
    checksum = args.get("expected_checksum")
    overwrite = args["overwrite"]
    try:
        return memory.store(draft, overwrite=overwrite, checksum=checksum)
    except NotFound as error:
        # The note that is missing may also be the one that the draft supersedes.
        if checksum is None or draft.supersedes:
            raise
        raise NothingToReplace(error.identifier, error.project) from None
    except Exists as error:
        if overwrite or not sees_note(memory, draft.project, error.path):
            # The path belongs to another agent's note or to another kind of file. Advice to
            # overwrite it would be useless.
            raise Taken(error.path, error.permalink) from None
        raise


def sees_note(memory: MemorySession, project: str, path: str) -> bool:
    """Whether the caller sees a note at this path."""
    try:
        memory.find((project, path))
    except NotFound:
        return False
    return True


def _changed_lines(action: str, note: Note, detail: str = "") -> list[str]:
    """Return the first lines of a reply about a changed note.

    action: `created`, `updated` or `edited`.
    detail: added to the heading, e.g. ` (append)`.
    """
    where = {
        "project": project_title(note.project),
        "file_path": note.path,
        "permalink": note.permalink,
        "checksum": note.checksum,
    }
    return [
        f"# {action.capitalize()} note{detail}",
        *(f"{name}: {flat(value)}" for name, value in where.items()),
    ]


def _header_warnings(note: Note) -> list[str]:
    """Return what of a written note could not be read, such as the time of an `expires_at`."""
    return [warning_parts(warning)[1] for warning in note.warnings]


def _folder_warnings(memory: MemorySession, project: str, path: str, notes: int = 1) -> list[str]:
    """Return a warning if a call has created a folder with the name of its project. [] otherwise.

    The caller probably wrote an address, such as `project/note`. A path begins inside the project.

    path: the new path of the note or folder.
    notes: the number of notes that the call has put there.
    """
    folder, _, rest = path.partition("/")
    title = project_title(project)
    if folder.casefold() != title.casefold() or not rest:
        return []
    # A folder with more notes than the call has put there existed before, so that its name is
    # meant.
    entries_there = memory.directory(project, glob=folder, limit=0).entries
    is_new_folder = any(entry.path == folder and entry.notes == notes for entry in entries_there)
    if not is_new_folder:
        return []
    warning = (
        f"Paths begin inside project {title}, so this is in a folder {folder} of it. "
        f'If you meant {flat(rest)}, call move_note with destination_path="{flat(rest)}".'
    )
    return [warning]


def _path(args: Arguments, name: str) -> str:
    """Return the argument `name`, which must be a path. "" if it is missing.

    Raises InvalidInput for an address (`memory://…`), which would become a folder `memory:`.
    """
    path: str = args.get(name, "")
    if path.startswith("memory://"):
        raise InvalidInput(
            f"Parameter `{name}` must be a path in the project, e.g. plans/2026; "
            f'got the address "{short(path)}". Name the project in `project`.'
        )
    return path


def _draft(memory: MemorySession, args: Arguments) -> tuple[Draft, list[str]]:
    """Make the draft of a note from the arguments of write_note.

    Returns the draft, and the header keys that were left out of it, because a memory sets them
    itself. Raises InvalidInput.
    """
    project = memory.project(args.get("project") or memory.default_project).name
    folder = relative(_path(args, "directory"), project)
    kind = _note_type(args)
    title = args["title"].strip()
    if not title:
        raise InvalidInput('Parameter `title` must be a text that is not blank; got "".')
    other_fields = {name: args[name] for name in _DRAFT_FIELDS if name in args}
    draft = Draft(
        args["content"], project=project, folder=folder, title=title, type=kind, **other_fields
    )
    left_out_keys: list[str] = []
    if project == CATEGORY_PROJECT:
        # This may set a category, too.
        left_out_keys = _move_header_into(draft)
        _set_category(draft, folder, kind)
    return draft, left_out_keys


def _note_type(args: Arguments) -> str | None:
    """Return the type of the note to write. None for `note`, the default of the argument.

    Without a type, the frontmatter of the content may name one. Raises InvalidInput for a type that
    is not one line.
    """
    kind: str = args["note_type"]
    if not kind.isprintable():
        raise InvalidInput(
            f'Parameter `note_type` must be one line without control characters; got "{short(kind)}".'
        )
    return None if kind == "note" else kind


def _set_category(draft: Draft, folder: str, kind: str | None) -> None:
    """Set the category of a draft in the project of memories, where each folder is a category.

    It is the folder or, without a folder, the category in the frontmatter, or the type of the note.

    kind: the type of the note. It counts only if it is a category.

    Raises InvalidInput for a folder that is not a category.
    """
    if not folder:
        if not draft.category and kind in CATEGORIES:
            draft.category = kind
        return
    if folder not in CATEGORIES:
        names = ", ".join(CATEGORIES)
        raise InvalidInput(
            f'Parameter `directory` must be one of {names} in project categories; got "{folder}".'
        )
    draft.category = folder


def _move_header_into(draft: Draft) -> list[str]:
    """Move the values of a frontmatter in the draft's text into the draft.

    A memory has one frontmatter, which is made from the draft. Its text must not begin with another.
    So a value that cannot be moved would be lost. Raises InvalidInput for it.

    Returns the keys that were left out, because the memory sets them itself.
    """
    metadata = dict(draft.metadata)
    header = _taken_header(draft)
    draft.tags = (*draft.tags, *_header_tags(header.pop("tags", None)))
    # The caller's metadata comes before the header.
    category = metadata.pop("category", header.pop("category", None))
    if category is not None:
        draft.category = _header_category(category)
    scope = header.pop("scope", None)
    if scope is not None:
        draft.scope = str(scope)
    draft.expires = _header_expiry(header.pop("expires_at", None))
    # The title of the call wins.
    header.pop("title", None)
    left_out_keys = [key for key in _SET_BY_MEMORIES if key in header or key in metadata]
    # An id in the metadata stays: the owner may give one, and an agent gets an error.
    if "id" in metadata:
        left_out_keys.remove("id")
    values = header | metadata
    draft.metadata = {key: value for key, value in values.items() if key not in left_out_keys}
    return left_out_keys


def _taken_header(draft: Draft) -> dict[str, Any]:
    """Take the frontmatter out of the draft's text, and return it. Empty if the text has none.

    One that is not YAML stays as a part of the text.
    """
    front, body_at = split(draft.text)
    try:
        header = parse(front or "")
    except ValueError:
        return {}
    if header:
        draft.text = draft.text[body_at:]
    return header


def _header_category(value: Any) -> str:
    """Return the category that a frontmatter names. Raises InvalidInput if there is no such one."""
    category = str(value).strip()
    if category not in CATEGORIES:
        names = ", ".join(CATEGORIES)
        raise InvalidInput(
            f"`category` in the frontmatter must be one of {names} in project categories; "
            f'got "{short(category)}".'
        )
    return category


def _header_tags(value: Any) -> list[str]:
    """Return the tags of a frontmatter, which may be a list or words between commas."""
    if value is None:
        return []
    if isinstance(value, list):
        return [str(tag) for tag in value]
    if isinstance(value, dict):
        raise InvalidInput(
            f"`tags` in the frontmatter must be a list, such as [tea, work]; got {short(str(value))}."
        )
    return split_list(str(value))


def _header_expiry(value: Any) -> datetime | None:
    """Return the time at which a frontmatter lets the note expire. None if it never does."""
    if not value:
        return None
    try:
        return parse_stamp(value)
    except (ValueError, TypeError, OverflowError, AttributeError):
        raise InvalidInput(
            "`expires_at` in the frontmatter must be a time, such as 2026-03-01T09:00:00Z; "
            f'got "{short(str(value))}". Leave it out for a note that stays.'
        ) from None


def edit_note(memory: MemorySession, args: Arguments) -> Reply:
    """Apply one operation to a note. `append` and `prepend` create a missing note."""
    operation = args["operation"]
    changed = memory.edit(
        args["identifier"],
        _edit_of(args),
        checksum=args.get("expected_checksum"),
        create=operation in _CREATING_OPERATIONS,
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
    warnings = _header_warnings(note)
    if warnings:
        data["warnings"] = warnings
    contradiction = _contradiction_data(memory, note)
    data |= contradiction
    text = lines(
        *_changed_lines(action, note, f" ({operation})"),
        "" if changed.created else _edit_line(args, changed.edited),
        *_links_lines(changed.updated, changed.broken),
        *contradiction.values(),
    )
    return Reply(text, data)


def _edit_of(args: Arguments) -> edits.Edit:
    """Return the edit that the arguments of edit_note describe.

    Raises InvalidInput if the text or the section to change is missing.
    """
    operation = args["operation"]
    content = args["content"]
    section = args.get("section", "")
    if operation in _CREATING_OPERATIONS:
        return _addition(operation, section.strip(" \t"), content)
    if operation == "find_replace":
        find = args.get("find_text", "")
        if not find:
            raise InvalidInput(
                "Parameter `find_text` must be the exact text to replace for find_replace; got "
                "nothing."
            )
        count = whole_number(args, "expected_replacements", least=1)
        return edits.FindReplace(find, content, count)
    if not section.strip(" \t#"):
        raise InvalidInput(
            f'Parameter `section` must name a heading for {operation}; got "{section}".'
        )
    if operation == "replace_section" and args.get("replace_subsections") is False:
        return edits.ReplaceSection(section, content, keeps_subsections=True)
    return _SECTION_EDITS[operation](section, content)


def _addition(operation: str, section: str, content: str) -> edits.Edit:
    """Return the edit that adds a text to a note, or to one of its sections.

    operation: `append` or `prepend`.
    section: the heading of the section. "" means the whole note.
    content: the text.
    """
    is_append = operation == "append"
    if section:
        edit_of_section = edits.AppendToSection if is_append else edits.InsertAfterSection
        return edit_of_section(section, content)
    return edits.Append(content) if is_append else edits.Prepend(content)


def _edit_line(args: Arguments, edited: edits.Edited) -> str:
    """Return a line about the effect of an edit, e.g. `added: 2 lines at line 7`.

    edited: the effect of the edit.
    """
    operation = args["operation"]
    if operation == "find_replace":
        count = plural(edited.count, "occurrence")
        return f"replaced: {count} of find_text, the first in line {edited.line}"
    if operation == "replace_section":
        section = short(args.get("section", "").strip())
        return f'replaced: the text of section "{section}", from line {edited.line}'
    content = args["content"]
    added_lines = content.count("\n")
    if not content.endswith("\n"):
        added_lines += 1
    return f"added: {plural(added_lines, 'line')} at line {edited.line}"


def _links_lines(updated: list[str], broken: list[str]) -> list[str]:
    """Return the lines about links to a moved or renamed note.

    updated: paths of the notes whose links were changed.
    broken: paths of the notes whose links no longer lead to it.
    """
    rows = []
    if updated:
        rows.append(f"Links updated in: {_path_list(updated)}")
    if broken:
        rows.append(f"Links that no longer lead there, in: {_path_list(broken)}")
    return rows


def with_destination(args: Arguments) -> Arguments:
    """Replace the older argument `destination_folder` in `args` by `destination_path`.

    The path ends in `/`, which means that the note keeps its name in that folder.
    """
    folder = args.pop("destination_folder", None)
    has_path = args.get("destination_path") is not None
    if isinstance(folder, str) and not has_path:
        args["destination_path"] = folder.rstrip("/") + "/"
    return args


def move_note(memory: MemorySession, args: Arguments) -> Reply:
    """Move or rename a note, or a folder with `is_directory`."""
    destination = _path(args, "destination_path")
    if not destination.strip():
        raise InvalidInput('Parameter `destination_path` must be a path in the project; got "".')
    try:
        moved = _move(memory, args, destination)
    except Exists as error:
        # The error of the engine advises to overwrite a note, which move_note cannot do.
        raise Exists(error.path) from None
    data = {
        "action": "moved",
        "project": moved.project,
        "old_path": moved.old_path,
        "new_path": moved.new_path,
        "notes": moved.notes,
        "broken_links": moved.broken,
    }
    if moved.updated:
        data["updated_links"] = moved.updated
    warnings = _folder_warnings(memory, moved.project, moved.new_path, moved.notes)
    if warnings:
        data["warnings"] = warnings
    return Reply(_moved_text(memory, moved, is_folder=args["is_directory"]), data)


def _moved_text(memory: MemorySession, moved: Moved, *, is_folder: bool) -> str:
    """Reply to a move: which note was moved where, and what happened to links."""
    if is_folder:
        noun = "folder"
        last_row = f"notes: {moved.notes}"
    else:
        noun = "note"
        permalink = memory.find((moved.project, moved.new_path)).permalink
        last_row = f"permalink: {flat(permalink)}"
    return lines(
        f"# Moved {noun}",
        f"project: {project_title(moved.project)}",
        f"from: {flat(moved.old_path)}",
        f"to: {flat(moved.new_path)}",
        last_row,
        *_links_lines(moved.updated, moved.broken),
    )


def _move(memory: MemorySession, args: Arguments, destination: str) -> Moved:
    """Move the note or the folder that the arguments of move_note name.

    destination: the new path in the project.

    Raises OutsideError for a path outside of the project, and the errors of `MemorySession.move`.
    """
    follow = bool(args.get("follow"))
    update_links = args.get("update_links") is not False
    if not args["is_directory"]:
        note = _named_note(memory, args, "move")
        return memory.move(note, destination, follow=follow, update_links=update_links)
    project, folder = _named_folder(memory, args)
    # This raises for a path outside of the project.
    relative(destination, project)
    return memory.move_folder(
        project, folder, destination, follow=follow, update_links=update_links
    )


def delete_note(memory: MemorySession, args: Arguments) -> Reply:
    """Delete a note, or the notes of a folder with `is_directory`."""
    if args["is_directory"]:
        project, folder = _named_folder(memory, args)
        deleted = memory.delete_folder(project, folder)
        title = project_title(deleted.project)
        head = f"Deleted folder {flat(folder)} of {title} with {plural(deleted.notes, 'note')}"
        head += f": {_path_list(deleted.paths)}"
    else:
        deleted = memory.delete(_named_note(memory, args, "delete"))
        head = f"Deleted {flat(deleted.paths[0])} from {project_title(deleted.project)}"
    text = f"{head}\n{_undo_sentence(deleted)}"
    data = {
        "action": "deleted",
        "project": deleted.project,
        "paths": deleted.paths,
        "notes": deleted.notes,
    }
    return Reply(text, data)


def _undo_sentence(deleted: Deleted) -> str:
    """Return the sentence that says how the owner brings deleted notes back, or that it is not
    possible.
    """
    how = f"The owner can bring it back with `memory undo {deleted.change}`."
    if not deleted.lost:
        return how
    reason = "the text of an entry with a time to live is not kept."
    if deleted.lost < deleted.notes:
        return f"{how} All but {deleted.lost:,} of them: {reason}"
    return f"It cannot be undone: {reason}"


def _named_note(memory: MemorySession, args: Arguments, verb: str) -> Any:
    """Find the note that the arguments name.

    Raises NotFound, or InvalidInput if they name a folder without `is_directory`.

    verb: `move` or `delete`. A note to delete must be named exactly.
    """
    identifier = args["identifier"]
    project = args.get("project")
    looseness = Looseness.EXACT if verb == "delete" else Looseness.CASE
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


def _named_folder(memory: MemorySession, args: Arguments) -> tuple[str, str]:
    """Return (project, path) of the folder that the arguments name.

    Raises InvalidInput for the root of a project.
    """
    name = args["identifier"]
    project, folder = folder_named(memory, name, args.get("project"))
    if not folder:
        raise InvalidInput(
            f'Parameter `identifier` must name a folder below the project\'s root; got "{name}".'
        )
    return project, folder


def _path_list(paths: list[str]) -> str:
    """Return paths for a sentence: `a.md, b.md and 3 more`."""
    sentence = short(", ".join(paths[:_MAX_LISTED_PATHS]), 4000)
    hidden_count = len(paths) - _MAX_LISTED_PATHS
    if hidden_count > 0:
        sentence += f" and {hidden_count:,} more"
    return sentence


def list_memory_projects(memory: MemorySession, args: Arguments) -> Reply:
    """List the projects, each with its folder and the number of notes that the caller sees."""
    entries = []
    rows = []
    for project in documents.projects(memory, memory.projects):
        row = f"{project['name']}: {plural(project['notes'], 'note')}, {flat(project['path'])}"
        if project["default"]:
            row += " (default)"
        rows.append(row)
        habits = _folder_habits(memory, project["name"])
        rows += [f"  {name.replace('_', ' ')}: {value}" for name, value in habits.items()]
        entries.append(project | habits)
    return Reply(lines("# Projects", *rows), {"projects": entries})


def _folder_habits(memory: MemorySession, project: str) -> dict[str, Any]:
    """Return how an agent should write in a project that people keep with another program.

    For a vault of Obsidian: `{"kept_with": "Obsidian", "notes_of_days": "daily/YYYY-MM-DD"}`, for
    example. Empty for other projects.
    """
    conventions = conventions_of(memory, project)
    access = memory.access_to(project)
    daily_parts = (conventions.daily_folder, conventions.daily_format)
    habits = {
        "kept_with": conventions.program,
        "read_only": "yes" if access.is_read_only else "",
        "you_write_in": access.write_folder,
        "new_notes_go_to": conventions.new_notes,
        "notes_of_days": "/".join(part for part in daily_parts if part),
        "links": _link_words(conventions.link_paths),
    }
    return {name: value for name, value in habits.items() if value}


def _link_words(link_paths: str) -> str:
    """Describe how links are written in a project with Markdown links. "" for other projects.

    link_paths: the kind of paths in these links, such as `relative`. "" if links are [[links]].
    """
    if not link_paths:
        return ""
    return f"[name](path.md), {link_paths} paths; a [[name]] you write becomes one"


def create_memory_project(memory: MemorySession, args: Arguments, *, allowed: bool = True) -> Reply:
    """Add a folder as a project. Raises ProjectRefused if only the owner may do that.

    A folder that the owner has not allowed yet is not added. The owner is asked about it.

    allowed: whether agents may add projects.
    """
    name = args["project_name"]
    folder = args["project_path"]
    if not allowed:
        raise ProjectRefused(short(folder), _OWNERS_ONLY)
    if not folder.strip():
        raise InvalidInput(
            'Parameter `project_path` must be a folder, absolute or beginning with ~; got "".'
        )
    try:
        # The action is `created`, `unchanged` or `asked`.
        project, action = memory.add_project(name, folder, args["set_default"])
    except Exists:
        text = (
            f'A project "{short(name)}" exists already, with another folder. '
            "Choose another project_name; list_memory_projects shows those in use."
        )
        return refused(text, Exists.code)
    except ReadOnlyProject:
        # A graph file is a project already, and cannot become the default project.
        raise
    except InvalidInput:
        # Any other invalid argument is the name. A folder that cannot be used is ProjectRefused.
        rule = "Parameter `project_name` must be 1 to 64 letters, digits, blanks, `.`, `_` or `-`"
        raise InvalidInput(f'{rule}; got "{short(name, 80)}".') from None
    data = {"action": action, "name": project.name, "path": str(project.root), "notes": 0}
    rows = [f"name: {project.name}", f"path: {flat(str(project.root))}"]
    if action == "asked":
        rest = (
            "The owner has not allowed this folder yet, so nothing was added. "
            "They are asked in `memory review`; until then use another project."
        )
        return Reply(lines("# Asked the owner", *rows, rest), data)

    _, data["notes"] = memory.list(Query(projects=(project.name,)), limit=1)
    rows.append(f"notes: {data['notes']}")
    if project.default:
        rows.append("default: yes")
    head = "# Created project" if action == "created" else "# Project unchanged"
    return Reply(lines(head, *rows), data)


def delete_project(memory: MemorySession, args: Arguments) -> Reply:
    """Remove a project from the memory. Its files stay."""
    project = memory.project(args["project_name"])
    if project.built_in:
        raise InvalidInput(
            f"Project {project.name} is built in and cannot be removed. "
            "Projects added with create_memory_project can."
        )
    memory.remove_project(project.name)
    rest = "Its files stay. Add it again with create_memory_project."
    text = lines(
        "# Removed project", f"name: {project.name}", f"path: {flat(str(project.root))}", rest
    )
    return Reply(text, {"action": "removed", "name": project.name, "path": str(project.root)})
