"""One note: its text, facts, links both ways and history, and all that can be done with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import PlainTextResponse, RedirectResponse, Response

from memoranda import documents
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import Conflict, InvalidInput, NotFound
from memoranda.index.rows import NoteInfo
from memoranda.jobs.lifecycle import archive_named, upgrade_named
from memoranda.note.edit import Rewrite
from memoranda.note.model import ARCHIVE_PROJECT, CATEGORIES, INBOX, MEMORY_PROJECTS, Note
from memoranda.note.names import Looseness
from memoranda.query import split_list
from memoranda.serve.page.lists import undone_in
from memoranda.serve.page.visit import HOME, RENDERED, Visit, diff, markdown, note_url

EDITABLE = 1 << 20
"""The largest note, in characters, that is edited in the page."""
_LINKS = 100
_HISTORY = 30
_LOST = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""What a browser's form would not give back as it was."""


def find(visit: Visit) -> Response:
    """To the page of the note that `ref` names."""
    info = visit.memory.find(visit.given.get("ref", ""))
    return RedirectResponse(note_url(info.project, info.path), 303)


def _place(visit: Visit) -> tuple[str, str]:
    return visit.request.path_params["project"], visit.request.path_params["path"]


def show(visit: Visit) -> Response:
    """A note's page, a `part` of it (`history`, `text`, `edit`), or what a form of it wants done."""
    memory = visit.memory
    part = visit.given.get("part")
    if visit.is_post:
        return _changed(visit)
    if part == "history":
        return _history(visit)
    try:
        info = memory.find_ref(_place(visit))
    except NotFound:
        return _history(visit, gone=True)
    if part == "text":
        text = memory.file(info).data
        return PlainTextResponse(
            text, headers={"Content-Security-Policy": "sandbox", "Content-Disposition": "inline"}
        )
    note = memory.read(info, count=False)
    if part == "edit":
        return _edit_form(visit, note, note.text)
    outgoing = memory.outgoing(info)
    incoming = memory.incoming(info, _LINKS)
    known = {
        each.target: note_url(each.note.project, each.note.path) for each in outgoing if each.note
    }
    # A heading that only says the title again
    body = note.body.lstrip("\n").removeprefix(f"# {note.title}\n")
    return visit.html(
        "note.html",
        info=info,
        note=note,
        body=markdown(body, note.project, note.path, known),
        outgoing=outgoing[:_LINKS],
        incoming=incoming,
        marks=memory.validity_marks([info]).get(info.row, ""),
        is_long=len(note.body) > RENDERED,
        provenance=info.provenance.row(),
        categories=CATEGORIES,
        inbox=INBOX,
        is_memory=note.project in MEMORY_PROJECTS,
        is_archived=note.project == ARCHIVE_PROJECT,
        ref=f"{note.project}/{note.path}",
    )


def _history(visit: Visit, gone: bool = False) -> Response:
    """What changed in the note; of one that is gone there is nothing else. Raises NotFound."""
    project, path = _place(visit)
    changes = visit.memory.log(f"{project}/{path}", limit=_HISTORY)
    if gone and not changes:
        raise NotFound(path, project)
    # Whether the history has the text that a change replaced
    replaced = {
        change.number: any(
            (file.project, file.path) == (project, path)
            and file.old
            and file.kept
            and file.do != "move"
            for file in change.files
        )
        for change in changes
    }
    return visit.html(
        "history.html" if visit.is_live else "gone.html",
        404 if gone else 200,
        changes=changes,
        undone=undone_in(changes),
        project=project,
        path=path,
        gone=gone,
        replaced=replaced,
    )


def _edit_form(
    visit: Visit, note: Note, text: str, status: int = 200, clash: Any = None
) -> Response:
    plain = note.text.replace("\r\n", "\n")
    if (
        len(note.text) > EDITABLE
        or _LOST.search(plain)
        or plain.replace("\n", "\r\n") != note.text != plain
    ):
        raise InvalidInput(
            "A form would change more of this note than you do: it is too long, has control characters, "
            "or line ends of two kinds. Edit its file."
        )
    return visit.html("edit.html", status, note=note, text=text, clash=clash)


def _changed(visit: Visit) -> Response:
    """Carry out what a form wants; then the note's page where it is by then."""
    memory = visit.memory
    do = visit.given.get("do", "")
    place = _place(visit)
    if do == "restore":
        memory.restore("/".join(place), change=visit.number("change", 0))
        return visit.back(note_url(*place))
    info = memory.find_ref(place)
    if do == "erase" and visit.given.get("sure") != "yes":
        return visit.html("erase.html", note=info, found=memory.erase(info, dry_run=True))
    try:
        at = act(visit, info)
    except Conflict:
        note = memory.read(info, count=False)
        given = _as_in_file(visit.given.get("text", ""), note.text)
        return _edit_form(visit, note, given, 409, clash=diff(note.text, given))
    to = visit.given.get("back") or (note_url(at.project, at.path) if at else HOME)
    return visit.back(to, is_final=do == "erase")


def act(visit: Visit, info: NoteInfo) -> NoteInfo | None:
    """Do to a note what the form field `do` says (see ACTIONS). Returns the note then, None where
    there is none.
    """
    action = ACTIONS.get(visit.given.get("do", ""))
    if action is None:
        raise InvalidInput(f"`do` must be one of {', '.join(ACTIONS)}")
    try:
        action(visit, info)
    except KeyError as missing:
        raise InvalidInput(f"{visit.given['do']} needs the field {missing}") from None
    try:
        return visit.memory.find_ref(info)
    except NotFound:
        return None


def _edit(visit: Visit, info: NoteInfo) -> None:
    now = visit.memory.read(info, count=False).text
    text = _as_in_file(visit.given["text"], now)
    checksum = visit.given["checksum"]
    if text != now or checksum != info.checksum:
        visit.memory.edit(info, Rewrite(text), checksum=checksum)


def _as_in_file(text: str, file: str) -> str:
    """The text of a form, whose lines end in CR LF, with the line ends of the file."""
    text = text.replace("\r\n", "\n")
    if "\r\n" in file:
        return text.replace("\n", "\r\n")
    return text


def _tag(visit: Visit, info: NoteInfo) -> None:
    wanted = split_list(visit.given["tags"])
    names = {each.lower() for each in wanted}
    visit.memory.tag(info, wanted, [tag for tag in info.tags if tag.lower() not in names])


ACTIONS: Mapping[str, Callable[[Visit, NoteInfo], Any]] = {
    "edit": _edit,
    "tag": _tag,
    "pin": lambda visit, info: Upkeep(visit.memory).pin([info]),
    "unpin": lambda visit, info: Upkeep(visit.memory).pin([info], pinned=False),
    "category": lambda visit, info: upgrade_named(visit.memory, [info.id], visit.given["category"]),
    "archive": lambda visit, info: archive_named(visit.memory, [info.id]),
    "bring_back": lambda visit, info: visit.memory.bring_back(info),
    "delete": lambda visit, info: visit.memory.delete(info),
    "erase": lambda visit, info: visit.memory.erase(info),
}
"""What a form, or `/api/note`, may ask for."""


def json(visit: Visit) -> dict[str, Any]:
    """The note `ref` names, or after a POST what became of it."""
    memory = visit.memory
    looseness = Looseness.EXACT if visit.is_post else Looseness.SIGNS
    info: NoteInfo | None = memory.find(visit.given.get("ref", ""), looseness=looseness)
    assert info is not None
    if visit.is_post:
        info = act(visit, info)
    changed = {"change": memory.changed or None}
    if info is None:
        return changed | {"note": None}

    # Else what was archived would come back
    note = memory.read(info, count=not (visit.csrf or visit.is_post))
    return changed | {"note": documents.page_of_note(memory, note, info)}
