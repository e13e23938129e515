"""Shows the page of one note: its text, its properties, its links in both directions, its history.

The forms of that page are carried out here, too: editing (editing.py) and other actions
(actions.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote, unquote

from markupsafe import Markup
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import Place
from memoranda.engine.history.whereabouts import where_now
from memoranda.engine.links.attachments import conventions_of
from memoranda.engine.telling.manner import Telling
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import (
    Ambiguous,
    Conflict,
    InvalidInput,
    MemorandaError,
    NotFound,
    SecretRefused,
)
from memoranda.index.rows import Edge, NoteInfo
from memoranda.jobs.lifecycle import ends_in_inbox
from memoranda.note.grammar import LINKS_TO
from memoranda.note.model import (
    ARCHIVE_PROJECT,
    CATEGORIES,
    CATEGORY_PROJECT,
    INBOX,
    MEMORY_PROJECTS,
    REMINDERS,
    Note,
    flag,
)
from memoranda.serve.page import used
from memoranda.serve.page.addresses import note_ref, note_url, notes_sharing, place_at, place_of_id
from memoranda.serve.page.calendar import SNOOZES, reminder_row
from memoranda.serve.page.graph.names import project_title
from memoranda.serve.page.note import actions as note_actions
from memoranda.serve.page.note import editing, erasing
from memoranda.serve.page.note import history as note_history
from memoranda.serve.page.note.contradicted import Contradicted, contradicted_in
from memoranda.serve.page.note.programs import Opening, is_local, openings
from memoranda.serve.page.note.since_confirmed import since_confirmed
from memoranda.serve.page.note_text import (
    RENDERED,
    LinkTargets,
    as_html,
    body_without_title,
    inline_html,
)
from memoranda.serve.page.people.people_page import is_name
from memoranda.serve.page.people.person import found_of
from memoranda.serve.page.review import merge_pages
from memoranda.serve.page.review.review_page import reasons_of
from memoranda.serve.page.visit import DONE, HOME, Visit
from memoranda.serve.page.words.text_origin import agents_of_text, text_origin
from memoranda.serve.page.words.writers import AUTHORS, writer_of
from memoranda.text.unicode import flat

# Links listed in each direction.
_MAX_LINKS = 100
# Links of a direction that are shown above "more".
_LINKS_SHOWN = 8
_AMBIGUOUS = "ambiguous"
# The fields of the form for editing that have a text of the person: the new text of the note and,
# on the page of a conflict, the person's own text.
_TYPED_FIELDS = ("text", "mine")
# The address of a link in the text as it is shown.
_HREF = re.compile(r'href="([^"]*)"')
# Notes that are offered for an ambiguous name.
_MAX_NAMESAKES = 50


def find(visit: Visit) -> Response:
    """Redirect to the page of the note that `ref` names.

    If several have that name, show a choice.
    """
    ref = visit.text("ref")
    try:
        info = visit.memory.find(ref)
    except Ambiguous as error:
        infos = found_of(visit.memory, error.candidates[:_MAX_NAMESAKES])
        return visit.html("choose.html", 300, ref=ref, infos=infos, total=error.total)
    return RedirectResponse(note_url(info.project, info.path), 303)


def _place(visit: Visit) -> Place:
    """Return the project and the path of the note in the address of the request."""
    parameters = visit.request.path_params
    if "id" in parameters:
        return place_of_id(visit.memory, parameters["id"])
    return place_at(visit.memory, parameters["project"], parameters["path"])


def _copies(visit: Visit) -> list[NoteInfo]:
    """Return the notes among which the address of the request does not choose."""
    parameters = visit.request.path_params
    if "id" in parameters:
        return []
    return notes_sharing(visit.memory, parameters["project"], parameters["path"])


def show(visit: Visit) -> Response:
    """Show the page of a note, or carry out a form of it. If several share the address, ask which.

    The field `part` asks for another view: "history", "text", "download", "used",
    "edit", "erase", "meanwhile" (what was changed since somebody began to edit it).
    """
    part_name = visit.fields.get("part")
    copies = _copies(visit)
    if copies:
        # Nothing is done to one of them that might be meant for another.
        return visit.html("choose.html", 300, ref="", infos=copies, total=len(copies))
    if visit.is_post:
        return _carry_out_form(visit)
    if part_name == "meanwhile":
        return editing.show_meanwhile(visit, _place(visit))
    if part_name == "history":
        return note_history.show(visit, _place(visit))
    try:
        info = visit.memory.find(_place(visit))
    except NotFound:
        return _redirect_to_present_place(visit)
    if part_name is None and _is_of_former_place(visit, info):
        return _redirect_to(visit, info)
    return _show_view(visit, info, part_name)


def _show_view(visit: Visit, info: NoteInfo, part_name: str | None) -> Response:
    """Return the page of a note, or another view of it (see `show`)."""
    if part_name in ("text", "download"):
        return _file(visit, info, part_name == "download")
    if part_name == "used":
        return used.of_note(visit, info)
    if part_name == "erase":
        return erasing.form(visit, info)
    # Read before the note, so that changes made meanwhile are announced to the page.
    since = visit.memory.journal_stamp()
    note = visit.memory.read(info, count=False)
    if part_name == "edit":
        return editing.show_form(visit, note, text=note.text, base=note.text, since=since)
    return _page(visit, info, note)


def _page(visit: Visit, info: NoteInfo, note: Note) -> Response:
    """Return the page of a note."""
    memory = visit.memory
    outgoing = memory.outgoing(info)
    incoming = memory.incoming(info, _MAX_LINKS)
    targets = _link_targets(memory, outgoing)
    telling = memory.telling(info)
    body = body_without_title(note.body, note.title)
    contradicted = contradicted_in(memory, info, outgoing)
    html, contradicted = _with_contradictions(visit, note, body, targets, contradicted)
    return visit.html(
        "note.html",
        info=info,
        note=note,
        body=html,
        heading=_heading(note, targets),
        has_links=bool(incoming or outgoing),
        is_name=is_name(info),
        origin=text_origin(memory, info),
        edited_agents=_edited_agents(memory, info),
        links=_links(incoming, outgoing, html),
        most_links=_MAX_LINKS,
        most_shown=_LINKS_SHOWN,
        contradicted=contradicted,
        marks=memory.validity_marks([info]).get(info.row, ""),
        is_long=len(note.body) > RENDERED,
        provenance=info.provenance,
        telling=telling.value,
        is_held_back=memory.is_held_back(info),
        reasons=reasons_of(visit, info.suspicious),
        used_at=_last_used(memory, info),
        since=since_confirmed(memory, info) if telling is Telling.CLAIM else None,
        categories=[name for name in CATEGORIES if name != INBOX],
        is_memory=note.project in MEMORY_PROJECTS,
        is_archived=note.project == ARCHIVE_PROJECT,
        is_pinned=flag(note.header.get("pinned")) is True,
        can_pin=not memory.holds_entities(note.project),
        can_edit=not info.locked and not memory.holds_entities(note.project),
        archived_at=ends_in_inbox(memory, [info]).get(info.row),
        until=str(note.header.get("valid_until") or ""),
        has_until=note.project in MEMORY_PROJECTS or not memory.holds_entities(note.project),
        place=project_title(visit.language, note.project),
        folder=note.path.rpartition("/")[0],
        ref=note_ref(note.project, note.path),
        reminder=reminder_row(memory, info) if info.category == REMINDERS else None,
        snoozes=SNOOZES,
        claim=Telling.CLAIM.value,
        category_project=CATEGORY_PROJECT,
        openings=_openings(visit, note),
    )


def _heading(note: Note, targets: LinkTargets) -> Markup | str:
    """Return the title of a note for its page. The first line of a text may have links in it."""
    if note.body.lstrip().startswith(note.title):
        return inline_html(note.title, note.project, note.path, targets)
    return flat(note.title)


def _edited_agents(memory: MemorySession, info: NoteInfo) -> list[str] | None:
    """Return the agents whose text the owner edited. None for any other note.

    The list is empty if the history does not name them.
    """
    provenance = info.provenance
    is_of_owner_alone = provenance.trust == "owner"
    if provenance.who != "owner" or is_of_owner_alone or writer_of(info) != AUTHORS["owner"]:
        return None
    return agents_of_text(memory, info)


def _with_contradictions(
    visit: Visit,
    note: Note,
    body: str,
    targets: LinkTargets,
    contradicted: Sequence[Contradicted],
) -> tuple[Markup, list[Contradicted]]:
    """Return a note as HTML with its contradictions marked, and those that could not be marked.

    In the HTML, a contradicted fact is struck out, with the newer statement behind it.

    body: the text of the note without its title.
    """
    first_line = _first_line(note.text, body)
    if first_line is None or not contradicted:
        return as_html(body, note.project, note.path, targets), list(contradicted)
    # The lines of facts count from 1 in the file, those of `as_html` from 0 in the shown text.
    by_line = {item.line - 1 - first_line: item for item in contradicted if item.line}
    against = {
        line: visit.piece("against.html", newer=item.newer) for line, item in by_line.items()
    }
    html = as_html(body, note.project, note.path, targets, against)
    # `as_html` has taken the lines of list items out of `against`. The others could not be marked.
    elsewhere = [item for item in contradicted if not item.line]
    elsewhere += [by_line[line] for line in against]
    return html, elsewhere


def _first_line(text: str, body: str) -> int | None:
    """Return the line of a note's file where its shown text begins, counted from 0.

    None if the shown text is not the end of the file as it is.

    text: the file.
    body: the text of the note as it is shown.
    """
    file_text = text.rstrip("\n")
    shown_text = body.rstrip("\n")
    if not file_text.endswith(shown_text):
        return None
    return file_text.count("\n") - shown_text.count("\n")


def _links(
    incoming: Sequence[Edge], outgoing: Sequence[Edge], html: str
) -> dict[str, list[tuple[NoteInfo, list[str]]]]:
    """Return the notes that are linked with a note, each with the names of the relations.

    The result has three lists. `in` has notes that link to this one. `out` has notes that it links
    to, if its text does not show the link. `both` has notes linked in both directions without a
    name, as upkeep links similar notes. Each note is listed once. Relations come first. Otherwise
    the newest notes do.

    html: the text of the note as it is shown.
    """
    outside_text = _not_shown(outgoing, html)
    links = {"in": _notes_of_links(incoming), "out": _notes_of_links(outside_text[:_MAX_LINKS])}
    # The notes of each direction whose links have no name.
    plain_rows = [{note.row for note, names in notes if not names} for notes in links.values()]
    in_both = set.intersection(*plain_rows)
    links["both"] = [pair for pair in links["in"] if pair[0].row in in_both]
    for direction in ("in", "out"):
        links[direction] = [pair for pair in links[direction] if pair[0].row not in in_both]
    for notes in links.values():
        # A sort keeps the order of equal items. So the newest notes stay first within each group.
        notes.sort(key=lambda pair: pair[0].created, reverse=True)
        notes.sort(key=lambda pair: not pair[1])
    return links


def _notes_of_links(edges: Sequence[Edge]) -> list[tuple[NoteInfo, list[str]]]:
    """Return the notes at the other end of links, each once, with the names of their relations."""
    notes: dict[int, tuple[NoteInfo, list[str]]] = {}
    for edge in edges:
        if edge.note is not None:
            _, names = notes.setdefault(edge.note.row, (edge.note, []))
            if edge.type != LINKS_TO:
                names.append(edge.type.replace("_", " "))
    return list(notes.values())


def _not_shown(edges: Sequence[Edge], html: str) -> list[Edge]:
    """Return the links that the shown text does not contain, such as links in the header.

    html: the text of the note as it is shown.
    """
    urls_in_text = set(_HREF.findall(html))
    return [
        edge
        for edge in edges
        if edge.note and note_url(edge.note.project, edge.note.path) not in urls_in_text
    ]


def _openings(visit: Visit, note: Note) -> list[Opening]:
    """Return the programs that can open the note's file.

    Empty unless the page is read on the machine of the notes.
    """
    memory = visit.memory
    if not is_local(visit.request.url.hostname) or note.project in MEMORY_PROJECTS:
        return []
    root = memory.project(note.project).root
    if not root.is_dir():
        return []
    return openings(conventions_of(memory, note.project).programs, str(root), note.path)


def _last_used(memory: MemorySession, info: NoteInfo) -> datetime | None:
    """Return when a note was last shown to an agent. None if unknown."""
    return Upkeep(memory).uses().get(info.id)


def _link_targets(memory: MemorySession, outgoing: Sequence[Edge]) -> LinkTargets:
    """Return where each wikilink of a note leads, and which wikilinks may mean several notes."""
    targets = {}
    ambiguous = {}
    for edge in outgoing:
        if edge.note is not None:
            targets[edge.target] = note_url(edge.note.project, edge.note.path)
        elif edge.state == _AMBIGUOUS:
            ambiguous[edge.target] = _namesake_count(memory, edge.target)
    return LinkTargets(targets, ambiguous)


def _namesake_count(memory: MemorySession, name: str) -> int:
    """Return how many notes have a name."""
    try:
        memory.find(name)
    except Ambiguous as error:
        return error.total
    except MemorandaError:
        return 0
    return 1


def _redirect_to_present_place(visit: Visit) -> Response:
    """Redirect to the present place of the note at this address.

    If it is gone, show its history.
    """
    place = _place(visit)
    project, path = place
    info = where_now(visit.memory, project, path)
    if info is not None:
        return _redirect_to(visit, info)
    return note_history.show(visit, place, is_gone=True)


def _redirect_to(visit: Visit, info: NoteInfo) -> Response:
    """Redirect to the address of a note.

    The field DONE, which names the change that was just made, is kept for the message there.
    """
    address = note_url(info.project, info.path)
    signed_change = visit.fields.get(DONE)
    if signed_change:
        address += f"?{DONE}={quote(signed_change)}"
    return RedirectResponse(address, 302)


def _is_of_former_place(visit: Visit, info: NoteInfo) -> bool:
    """Whether the address of the request names another place of a memory than the present one."""
    is_memory = visit.request.path_params.get("project") in MEMORY_PROJECTS
    # The address of a memory finds it by its id, wherever it is.
    address = note_url(info.project, info.path, visit.request.path_params.get("path", ""))
    return is_memory and unquote(address) != str(visit.request.scope["path"])


def _file(visit: Visit, info: NoteInfo, is_download: bool) -> Response:
    """Return the file of the note for the browser, to show it or to save it."""
    name = quote(info.path.rpartition("/")[2], errors="replace")
    disposition = f"attachment; filename*=UTF-8''{name}" if is_download else "inline"
    headers = {"Content-Security-Policy": "sandbox", "Content-Disposition": disposition}
    return PlainTextResponse(visit.memory.file(info).data, headers=headers)


def _carry_out_form(visit: Visit) -> Response:
    """Carry out the action of a form, then redirect to the page of the note, where it is then.

    The field `do` names the action. If the action has to be confirmed first, the question is shown.
    """
    place = _place(visit)
    action = visit.fields.get("do", "")
    if action == "restore":
        visit.memory.restore("/".join(place), change=visit.number("change", 0))
        return visit.back(note_url(*place))
    info = _note_to_change(visit, place)
    if info is None:
        return editing.offer_as_new_note(visit, place)
    question = _question(visit, info)
    if question is not None:
        return question
    if action == "edit":
        return _save_edit(visit, info)
    return _carry_out_action(visit, info)


def _note_to_change(visit: Visit, place: Place) -> NoteInfo | None:
    """Return the note that a form is about, also if it was moved while the page was open.

    If the note is gone, return None for a form with a typed text: the caller shows the text, so that
    it is not lost. For any other form, raise NotFound.

    place: where the note was when the page was made.
    """
    memory = visit.memory
    try:
        return memory.find(place)
    except NotFound:
        # Upkeep or somebody else may have moved it. A note into which it was merged is another one.
        moved_note = where_now(memory, *place, only_same=True)
        if moved_note is not None:
            return moved_note
        if _has_typed_text(visit):
            return None
        raise


def _has_typed_text(visit: Visit) -> bool:
    """Whether the request brings text that a person typed into the form for editing."""
    is_edit = visit.fields.get("do") == "edit"
    return is_edit and not visit.fields.keys().isdisjoint(_TYPED_FIELDS)


def _question(visit: Visit, info: NoteInfo) -> Response | None:
    """Return a question to ask before an action is carried out. None if nothing is asked."""
    action = visit.fields.get("do")
    if action == "erase":
        return erasing.erase(visit, info)
    if action == "merge" and visit.fields.get("sure") != "yes":
        return merge_pages.ask(visit, info)
    if action == "edit":
        try:
            return editing.form_instead_of_saving(visit, info)
        except KeyError as missing_field:
            raise InvalidInput(f"edit needs the field {missing_field}") from None
    return None


def _save_edit(visit: Visit, info: NoteInfo) -> Response:
    """Save the text of a form. If it is in conflict or has a secret, show the form again."""
    try:
        return _carry_out_action(visit, info)
    except Conflict:
        return editing.show_conflict(visit, info)
    except SecretRefused as refused:
        return editing.ask_about_secret(visit, info, refused)


def _carry_out_action(visit: Visit, info: NoteInfo) -> Response:
    """Do the action of a form to a note, then redirect to its page, which may have moved."""
    info_after = note_actions.act(visit, info)
    target = visit.fields.get("back")
    if not target:
        # A note that was deleted has no page any more.
        target = visit.note_address(info_after) if info_after else HOME
    return visit.back(target)
