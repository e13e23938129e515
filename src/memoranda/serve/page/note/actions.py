"""Carries out the actions on notes that forms of the page, and `/api/note`, ask for.

An action is a word such as "pin" or "merge". `act` does one to a single note, `act_on_several` to several
notes together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from memoranda import documents
from memoranda.engine import MemorySession
from memoranda.engine.links.memory_links import header_time
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import InvalidInput, NotFound
from memoranda.index.rows import NoteInfo
from memoranda.jobs.lifecycle import archive_named, upgrade_named
from memoranda.note.edit import Rewrite, SetKeys
from memoranda.note.frontmatter import REMOVE
from memoranda.note.model import CATEGORY_PROJECT, MEMORY_KEYS, MEMORY_PROJECTS
from memoranda.note.names import Looseness
from memoranda.query import split_list
from memoranda.serve.page import undoing
from memoranda.serve.page.addresses import note_of_ref, note_ref
from memoranda.serve.page.note import editing
from memoranda.serve.page.note import history as note_history
from memoranda.serve.page.visit import HOME, Visit

# Notes of one bulk action, which is a single change.
_MAX_NOTES_AT_ONCE = 200
_NOTES_OF_MERGE = 2

Action = Callable[[Visit, NoteInfo], "NoteInfo | None"]
"""Does something to a note. It may return the note that is left, if that is another one."""


def act(visit: Visit, info: NoteInfo) -> NoteInfo | None:
    """Do the action that the field `do` names (see ACTIONS) to a note.

    Returns the note after the action. None if it was deleted. Raises InvalidInput.
    """
    action = ACTIONS.get(visit.fields.get("do", ""))
    if action is None:
        raise InvalidInput(f"`do` must be one of {', '.join(ACTIONS)}")
    try:
        survivor = action(visit, info)
    except KeyError as missing:
        raise InvalidInput(f"{visit.fields['do']} needs the field {missing}") from None
    try:
        # The action may have moved the note, or changed what `info` says of it.
        return visit.memory.find(survivor or info)
    except NotFound:
        return None


def _edit(visit: Visit, info: NoteInfo) -> None:
    """Replace the text of a note, if the form changed it."""
    text_before = visit.memory.read(info, count=False).text
    text = editing.as_in_file(editing.text_to_save(visit, text_before), text_before)
    checksum = visit.fields["checksum"]
    merged = editing.merged_without_conflict(visit, info, text_before)
    if merged is not None:
        visit.merged_with = editing.author_meanwhile(visit, info)
        text = editing.as_in_file(merged, text_before)
        checksum = info.checksum
    # A wrong checksum means that the note changed since the form was made, which `edit` refuses.
    if text != text_before or checksum != info.checksum:
        visit.memory.edit(info, Rewrite(text), checksum=checksum)


def _tag(visit: Visit, info: NoteInfo) -> None:
    """Give a note exactly the tags of the form."""
    tags = split_list(visit.fields["tags"])
    names = {tag.lower() for tag in tags}
    removed_tags = [tag for tag in info.tags if tag.lower() not in names]
    visit.memory.tag(info, tags, removed_tags)


def _add_tag(visit: Visit, info: NoteInfo) -> None:
    """Add the tags of the form to a note."""
    visit.memory.tag(info, split_list(visit.fields["tags"]), [])


def _set_until(visit: Visit, info: NoteInfo) -> None:
    """Set until when a note is true: a day, or words such as "next Friday". "" removes the end."""
    text = visit.fields["until"].strip()
    value = header_time(visit.memory, text) if text else REMOVE
    visit.memory.edit(info, SetKeys({"valid_until": value}, MEMORY_KEYS))


def _merge(visit: Visit, info: NoteInfo) -> NoteInfo:
    """Merge the note that the field `other` names into this one. Returns this one.

    If the field `keep` is "one", the text of this note stays as it is.
    """
    memory = visit.memory
    other_note = other_of_merge(visit, info)
    is_one_text_kept = visit.text("keep") == "one"
    added_text = "" if is_one_text_kept else text_to_add(memory, info, other_note)
    if are_memories(info, other_note):
        Upkeep(memory).merge(info, other_note, added_text)
    else:
        Upkeep(memory).join(info, other_note, added_text)
    return info


def are_memories(info: NoteInfo, other_note: NoteInfo) -> bool:
    """Whether both notes are memories. A merge of memories also joins their tags and links."""
    return info.project == CATEGORY_PROJECT and other_note.project == CATEGORY_PROJECT


def text_to_add(memory: MemorySession, info: NoteInfo, other_note: NoteInfo) -> str:
    """Return the text that a merge of `other_note` adds to the end of a note.

    "" for two memories if the note has the text already.
    """
    text = memory.read(other_note, count=False).content.strip()
    if are_memories(info, other_note):
        is_there = text in memory.read(info, count=False).content
        return "" if is_there else f"\n{text}\n"
    # The title of a memory is only the beginning of its text.
    has_title = other_note.project not in MEMORY_PROJECTS
    heading = f"\n## {other_note.title}\n\n" if has_title else "\n"
    return f"{heading}{text}\n"


def other_of_merge(visit: Visit, info: NoteInfo) -> NoteInfo:
    """Return the note that the field `other` names, to be merged into a note.

    Raises InvalidInput if it is that note itself, NotFound, and Ambiguous.
    """
    ref = visit.text("other")
    if not ref:
        raise InvalidInput("Name the other note.")
    other_note = note_of_ref(visit.memory, ref, looseness=Looseness.CASE)
    if other_note.row == info.row:
        raise InvalidInput("A note cannot be merged into itself. Name another one.")
    return other_note


def _pin(visit: Visit, info: NoteInfo) -> None:
    """Pin a note."""
    Upkeep(visit.memory).pin([info])


def _unpin(visit: Visit, info: NoteInfo) -> None:
    """Unpin a note."""
    Upkeep(visit.memory).pin([info], pinned=False)


def _confirm(visit: Visit, info: NoteInfo) -> None:
    """Confirm what an agent wrote."""
    visit.memory.confirm_notes([info])


def _set_category(visit: Visit, info: NoteInfo) -> None:
    """Move a memory to the category of the form."""
    upgrade_named(visit.memory, [info.id], visit.fields["category"])


def _archive(visit: Visit, info: NoteInfo) -> None:
    """Archive a memory."""
    archive_named(visit.memory, [info.id])


def _bring_back(visit: Visit, info: NoteInfo) -> None:
    """Bring an archived memory back."""
    visit.memory.bring_back(info)


def _delete(visit: Visit, info: NoteInfo) -> None:
    """Delete a note."""
    visit.memory.delete(info)


def _erase(visit: Visit, info: NoteInfo) -> None:
    """Erase a note from the files and the history."""
    visit.memory.erase(info)


ACTIONS: Mapping[str, Action] = {
    "edit": _edit,
    "tag": _tag,
    "add_tag": _add_tag,
    "pin": _pin,
    "unpin": _unpin,
    "confirm": _confirm,
    "category": _set_category,
    "until": _set_until,
    "merge": _merge,
    "archive": _archive,
    "bring_back": _bring_back,
    "delete": _delete,
    "take_back": undoing.take_back_alone,
    "restore_outside": note_history.restore_before_outside_edit,
    "erase": _erase,
}
"""The actions that a form, or `/api/note`, may ask for, by name."""


def act_on_several(visit: Visit) -> Response:
    """Do an action to several notes as one change, and return to the page with the form.

    The field `ref` has a line for each note: its project and path.
    """
    refs = [ref for ref in visit.fields.get("ref", "").split("\n") if ref]
    action = visit.text("do")
    if not refs:
        raise InvalidInput("Choose at least one note.")
    if len(refs) > _MAX_NOTES_AT_ONCE:
        raise InvalidInput(f"At most {_MAX_NOTES_AT_ONCE} notes at once.")
    memory = visit.memory
    # Each as (project, path).
    infos = [memory.find(tuple(ref.split("/", 1))) for ref in refs]  # type: ignore[arg-type]
    if action == "merge":
        return _ask_to_merge(infos)
    _do_to_all(visit, action, infos)
    return visit.back(visit.fields.get("back") or f"{HOME}/search")


def _ask_to_merge(infos: Sequence[NoteInfo]) -> Response:
    """Lead to the question whether to merge two notes. Raises InvalidInput if they are not two."""
    if len(infos) != _NOTES_OF_MERGE:
        raise InvalidInput("Choose two notes to merge them.")
    note, second_note = (note_ref(info.project, info.path) for info in infos)
    return RedirectResponse(f"{HOME}/merge?{urlencode({'note': note, 'other': second_note})}", 303)


def _do_to_all(visit: Visit, action: str, infos: Sequence[NoteInfo]) -> None:
    """Do an action to several notes. Raises InvalidInput for an unknown action.

    The action `merge` is not one of these, because it shows a page of its own first.
    """
    memory = visit.memory
    if action == "delete":
        memory.delete(*infos)
    elif action == "archive":
        memories = [info.id for info in infos if info.project == CATEGORY_PROJECT]
        if len(memories) < len(infos):
            raise InvalidInput("Only memories have an archive. Choose those of categories alone.")
        archive_named(memory, memories)
    elif action == "pin":
        Upkeep(memory).pin(infos)
    elif action == "tag":
        memory.tag_many(infos, _chosen_tags(visit), [])
    elif action == "category":
        upgrade_named(memory, _memories_among(infos), _chosen_category(visit))
    else:
        raise InvalidInput("`do` must be one of delete, archive, pin, tag, category, merge")


def _chosen_tags(visit: Visit) -> list[str]:
    """Return the tags of a form. Raises InvalidInput if it has none."""
    tags = split_list(visit.fields.get("tags", ""))
    if not tags:
        raise InvalidInput("Write the tags to add first.")
    return tags


def _chosen_category(visit: Visit) -> str:
    """Return the category of a form. Raises InvalidInput if none is chosen."""
    category = visit.text("category")
    if not category:
        raise InvalidInput("Choose a category first.")
    return category


def _memories_among(infos: Sequence[NoteInfo]) -> list[str]:
    """Return the ids of the memories among some notes. Raises InvalidInput if there are none."""
    memories = [info.id for info in infos if info.project in MEMORY_PROJECTS]
    if not memories:
        raise InvalidInput("Only memories have a category. Choose at least one.")
    return memories


def as_json(visit: Visit) -> dict[str, Any]:
    """Return the note that the field `ref` names as JSON. A POST does an action to it first.

    The note is None if the action deleted it.
    """
    memory = visit.memory
    # For a change, the name must be exact.
    looseness = Looseness.EXACT if visit.is_post else Looseness.SIGNS
    info: NoteInfo | None = memory.find(visit.fields.get("ref", ""), looseness=looseness)
    if visit.is_post and info is not None:
        info = act(visit, info)
    changed = {"change": memory.changed or None}
    if info is None:
        return changed | {"note": None}
    # Reading counts as use by an agent, and brings an archived memory back. A person's look, or
    # the reply to a change, must not do that.
    is_use = not (visit.csrf or visit.is_post)
    note = memory.read(info, count=is_use)
    return changed | {"note": documents.page_of_note(memory, note, info)}
