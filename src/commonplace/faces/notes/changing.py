"""The tools that change notes: write_note, edit_note, move_note, delete_note (contract 000b, 7)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from commonplace.errors import Exists, InvalidInput, NotFound
from commonplace.faces.notes.folders import folder_named, relative
from commonplace.faces.notes.words import lines, note_data, plural, short, where
from commonplace.faces.tool import Arguments, Reply
from commonplace.note.model import CATEGORIES, Draft, Observation

if TYPE_CHECKING:
    from commonplace.engine import Memory

_SHOWN = 20
_NO_CATEGORY = "without category"


def write_note(memory: Memory, args: Arguments) -> Reply:
    """Create a note, or replace one with `overwrite`."""
    draft = _draft(memory, args)
    try:
        stored = memory.store(draft, overwrite=args["overwrite"], checksum=args.get("expected_checksum"))
    except Exists as error:
        return _taken(memory, draft, error, args["overwrite"])
    note, action = stored.note, "created" if stored.created else "updated"
    states = Counter(edge.state for edge in memory.outgoing(note))
    observations = _by_category(note.observations)
    relations = {"resolved": states["resolved"], "unresolved": states.total() - states["resolved"]}
    data = {"action": action, **note_data(note), "checksum": note.checksum, "observations": observations,
            "relations": relations, "tags": list(note.tags)}  # fmt: skip
    counts = ", ".join(f"{name or _NO_CATEGORY} {count}" for name, count in observations.items())
    text = lines(
        f"# {action.capitalize()} note",
        *where(note),
        f"observations: {short(counts, 1000)}" if counts else "",
        _relations_line(states),
        f"tags: {short(', '.join(note.tags), 1000)}" if note.tags else "",
    )
    return Reply(text, data)


def _draft(memory: Memory, args: Arguments) -> Draft:
    project = memory.project(args.get("project") or memory.default_project).name
    folder = relative(args.get("directory", ""), project)
    kind = args["note_type"] if args["note_type"] != "note" else None  # the default leaves the content's own type
    if not args["title"].strip():
        raise InvalidInput('Parameter `title` must be a text that is not blank; got "".')
    draft = Draft(
        args["content"], project=project, folder=folder, title=args["title"].strip(), type=kind,
        tags=args.get("tags", []), metadata=args.get("metadata", {}),
    )  # fmt: skip
    if project == "categories":
        draft.category = folder or (kind if kind in CATEGORIES else None)
        if folder and folder not in CATEGORIES:
            names = ", ".join(CATEGORIES)
            raise InvalidInput(f'Parameter `directory` must be one of {names} in project categories; got "{folder}".')
    return draft


def _taken(memory: Memory, draft: Draft, error: Exists, overwrite: bool) -> Reply:
    """The refusal, with a remedy that works: what is no note, or not the caller's, cannot be changed by them."""
    try:
        memory.find_ref((draft.project, error.path))
        hidden = overwrite
    except NotFound:
        hidden = True
    text = str(error)
    if hidden:
        text = f"Note already exists: {error.permalink or error.path}. Choose another title or directory."
    return Reply(text, {"error": text, "is_error": True, "code": error.code}, is_error=True)


def _by_category(observations: list[Observation]) -> dict[str, int]:
    """How many observations each category has, most first; named as first written, "" for those without."""
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for each in observations:
        key = (each.category or "").casefold()
        counts[spelled.setdefault(key, each.category or "")] += 1
    return dict(counts.most_common())


def _relations_line(states: Counter[str]) -> str:
    words = {"resolved": "resolved", "unwritten": "not written yet", "ambiguous": "ambiguous"}
    parts = [f"{states[state]} {word}" for state, word in words.items() if states[state]]
    return f"relations: {', '.join(parts)}" if parts else ""


def with_destination(args: Arguments) -> Arguments:
    """`destination_folder` is `destination_path` with a final `/`: the name stays."""
    folder = args.pop("destination_folder", None)
    if isinstance(folder, str) and args.get("destination_path") is None:
        args["destination_path"] = folder.rstrip("/") + "/"
    return args


def move_note(memory: Memory, args: Arguments) -> Reply:
    """Move or rename a note, or a folder with `is_directory`."""
    identifier, destination, project = args["identifier"], args["destination_path"], args.get("project")
    if not destination.strip():
        raise InvalidInput('Parameter `destination_path` must be a path in the project; got "".')
    try:
        if args["is_directory"]:
            place = _folder(memory, identifier, project)
            relative(destination, place[0])
            moved = memory.move_folder(*place, destination)
        else:
            moved = memory.move(_note(memory, identifier, project, "move"), destination)
    except Exists as error:
        raise Exists(error.path) from None  # here it is the destination, whatever lies there
    data = {
        "action": "moved", "project": moved.project, "old_path": moved.old_path, "new_path": moved.new_path,
        "notes": moved.notes, "broken_links": moved.broken,
    }  # fmt: skip
    broken = f"Links by path that no longer lead there, in: {_listed(moved.broken)}" if moved.broken else ""
    text = lines(
        f"# Moved {'folder' if args['is_directory'] else 'note'}",
        f"project: {moved.project}",
        f"from: {moved.old_path}",
        f"to: {moved.new_path}",
        f"notes: {moved.notes}" if args["is_directory"] else "",
        broken,
    )
    return Reply(text, data)


def delete_note(memory: Memory, args: Arguments) -> Reply:
    """Delete a note, or the notes of a folder with `is_directory`."""
    identifier, project = args["identifier"], args.get("project")
    if args["is_directory"]:
        place = _folder(memory, identifier, project)
        deleted = memory.delete_folder(*place)
        what = f"folder {place[1]} of {deleted.project} with {plural(deleted.notes, 'note')}: {_listed(deleted.paths)}"
    else:
        deleted = memory.delete(_note(memory, identifier, project, "delete"))
        what = f"{deleted.paths[0]} from {deleted.project}"
    text = f"Deleted {what}\nThe owner can bring it back with `memory undo {deleted.change}`."
    data = {"action": "deleted", "project": deleted.project, "paths": deleted.paths, "notes": deleted.notes}
    return Reply(text, data)


def _note(memory: Memory, identifier: str, project: str | None, verb: str) -> Any:
    """The note; a folder named without `is_directory` gets its own answer. Raises NotFound, InvalidInput."""
    try:
        return memory.find(identifier, project)
    except NotFound:
        try:
            _, folder = folder_named(memory, identifier, project)
        except NotFound:
            folder = ""
        if not folder:
            raise
    raise InvalidInput(f"Parameter `is_directory` must be true to {verb} the folder {folder}; got false.")


def _folder(memory: Memory, identifier: str, project: str | None) -> tuple[str, str]:
    place = folder_named(memory, identifier, project)
    if not place[1]:
        raise InvalidInput(f'Parameter `identifier` must name a folder below the project\'s root; got "{identifier}".')
    return place


def _listed(paths: list[str]) -> str:
    more = len(paths) - _SHOWN
    return short(", ".join(paths[:_SHOWN]), 4000) + (f" and {more:,} more" if more > 0 else "")
