"""edit_note: change part of a note (contract 000b, 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.errors import InvalidInput
from commonplace.faces.notes.page import whole
from commonplace.faces.notes.words import lines, note_data, plural, short, where
from commonplace.faces.tool import Arguments, Reply
from commonplace.note import edit as edits

if TYPE_CHECKING:
    from commonplace.engine import Memory

_SECTIONS = {
    "replace_section": edits.ReplaceSection,
    "insert_before_section": edits.InsertBeforeSection,
    "insert_after_section": edits.InsertAfterSection,
}


def edit_note(memory: Memory, args: Arguments) -> Reply:
    """Apply one operation; `append` and `prepend` make a missing note."""
    operation = args["operation"]
    changed = memory.edit(
        args["identifier"], _edit(operation, args), checksum=args.get("expected_checksum"),
        create=operation in ("append", "prepend"), project=args.get("project"),
    )  # fmt: skip
    note, edited = changed.note, changed.edited
    action = "created" if changed.created else "edited"
    data: dict[str, Any] = {
        "action": action,
        "operation": operation,
        **note_data(note),
        "checksum": note.checksum,
    }
    if operation == "find_replace":
        data["replacements"] = edited.count
    if edited.section_added:
        data["section_added"] = True
    said = "" if changed.created else _said(operation, args, edited)
    return Reply(lines(f"# {action.capitalize()} note ({operation})", *where(note), said), data)


def _edit(operation: str, args: Arguments) -> Any:
    """The edit as the engine takes it. Raises InvalidInput when a parameter of its own is missing."""
    content = args["content"]
    if operation == "append":
        return edits.Append(content)
    if operation == "prepend":
        return edits.Prepend(content)
    if operation == "find_replace":
        find = args.get("find_text", "")
        if not find:
            raise InvalidInput("Parameter `find_text` must be the exact text to replace for find_replace; got nothing.")
        return edits.FindReplace(find, content, whole(args, "expected_replacements", 1))
    section = args.get("section", "")
    if not section.strip(" \t#"):
        raise InvalidInput(f'Parameter `section` must name a heading for {operation}; got "{section}".')
    return _SECTIONS[operation](section, content)


def _said(operation: str, args: Arguments, edited: edits.Edited) -> str:
    """One line on what changed."""
    section = short(args.get("section", "").strip())
    if operation == "find_replace":
        return f"replaced: {plural(edited.count, 'occurrence')} of find_text, the first in line {edited.line}"
    if edited.section_added:
        return f'added: section "{section}", which was missing, at the end, line {edited.line}'
    if operation == "replace_section":
        return f'replaced: the text of section "{section}", from line {edited.line}'
    added = args["content"].count("\n") + (not args["content"].endswith("\n"))
    return f"added: {plural(added, 'line')} at line {edited.line}"
