"""Shows the form for editing a note's text, and solves conflicts.

A conflict is a change of the note that somebody made while the form was open. The form then shows
both edits merged (merging.py), or asks which to keep where both changed the same lines. `base` is
always the text of the note when the form was first made.
"""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import Response

from memoranda.documents import differences
from memoranda.engine.history.former_places import Place
from memoranda.engine.history.whereabouts import where_now
from memoranda.errors import InvalidInput, SecretRefused
from memoranda.index.rows import NoteInfo
from memoranda.note import frontmatter
from memoranda.note.edit import SetKeys
from memoranda.note.markdown import listed_texts, other_tag_keys
from memoranda.note.model import MEMORY_KEYS, MEMORY_PROJECTS, Note, united
from memoranda.query import split_list
from memoranda.serve.page.note import create
from memoranda.serve.page.note.drafts import draft_of
from memoranda.serve.page.note.meanwhile import authors_since, text_of
from memoranda.serve.page.note.merging import BOTH, Merge, merge
from memoranda.serve.page.visit import Visit

EDITABLE = 1 << 20
"""Characters of the largest note that can be edited in the page."""
# The field with the typed text while a conflict is decided, and how the fields of the places begin.
_MINE = "mine"
_PLACE = "place"
# Characters that a browser's form does not send back unchanged.
_CHANGED_BY_FORMS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def show_form(
    visit: Visit, note: Note, text: str, base: str, status: int = 200, **values: Any
) -> Response:
    """Show the form for a note.

    Raises InvalidInput for a note whose text would come back changed from a form in the browser.

    text: the text in the form.
    base: the text of the note when the form was made.
    values: further values of the template, for a conflict, a preview or a problem.
    """
    _check_editable(note)
    further_values = {
        "merged": None,
        "author": "",
        "difference": None,
        "draft": None,
        "problem": "",
        "checksum": note.checksum,
        "since": visit.memory.journal_stamp(),
    } | values
    header, body = header_and_body(text)
    properties, _ = differences.split(text)
    title = properties.get("title")
    return visit.html(
        "edit.html",
        status,
        note=note,
        title=title if isinstance(title, str) else "",
        tags=", ".join(united(listed_texts(properties.get("tags")))),
        is_memory=note.project in MEMORY_PROJECTS,
        header=header,
        text=body,
        base=base,
        **further_values,
    )


def _check_editable(note: Note) -> None:
    """Raise InvalidInput for a note that a form cannot send back unchanged."""
    text_with_lf = note.text.replace("\r\n", "\n")
    text_with_crlf = text_with_lf.replace("\n", "\r\n")
    # Browsers send CR LF for every line end, so a note with both kinds would change.
    has_mixed_line_ends = note.text not in (text_with_lf, text_with_crlf)
    is_too_long = len(note.text) > EDITABLE
    if is_too_long or has_mixed_line_ends or _CHANGED_BY_FORMS.search(text_with_lf):
        raise InvalidInput(
            "A form would change more of this note than you do: it is too long, has control characters, "
            "or line ends of two kinds. Edit its file."
        )


def header_and_body(text: str) -> tuple[str, str]:
    """Split a note's text into its header, with the `---` around it, and the rest.

    Both together are the text. The header is "" if the text has none.
    """
    parts = frontmatter.split(text)
    if parts.yaml is None:
        return "", text
    return text[: parts.body_at], text[parts.body_at :]


def typed_text(visit: Visit) -> str:
    """Return the text of the note as it was typed into the form.

    The form has the text in the field `text`, and may have the header in the field `header`. If its
    fields `title` and `tags` were changed, they are put into the header. After a conflict, the field
    `mine` has the whole text instead.

    Raises KeyError if the form has neither `text` nor `mine`, and InvalidInput if the header cannot
    be read.
    """
    if _MINE in visit.fields:
        return visit.fields[_MINE].replace("\r\n", "\n")
    return _with_properties(visit, _as_typed(visit))


def _as_typed(visit: Visit) -> str:
    """Return the fields `header`, if it was sent, and `text` as one text."""
    header = visit.fields.get("header", "").replace("\r\n", "\n")
    text = visit.fields["text"].replace("\r\n", "\n")
    if header and not header.endswith("\n"):
        header += "\n"
    return header + text


def _with_properties(visit: Visit, text: str) -> str:
    """Return a text with the title and the tags of the form, if they were changed there.

    Raises InvalidInput if the header of the text cannot be read.
    """
    keys: dict[str, Any] = {}
    title = visit.text("title")
    if title and title != visit.text("title_before"):
        keys["title"] = title
    tags = visit.text("tags")
    if tags != visit.text("tags_before"):
        header, _ = differences.split(text)
        keys["tags"] = split_list(tags) or frontmatter.REMOVE
        keys |= dict.fromkeys(other_tag_keys(header), frontmatter.REMOVE)
    if not keys:
        return text
    try:
        return SetKeys(keys, MEMORY_KEYS).apply(text).text
    except ValueError:
        raise InvalidInput(
            "The properties in the file cannot be read. Fix them before you change title or tags."
        ) from None


def form_instead_of_saving(visit: Visit, info: NoteInfo) -> Response | None:
    """Show the form again instead of saving its text, in one of three cases.

    Somebody asks for a preview, or to take in what others changed meanwhile, or the typed header
    cannot be read. Returns None in any other case: then the text is to be saved.
    """
    try:
        text = typed_text(visit)
    except InvalidInput as error:
        return _form_again(visit, info, _as_typed(visit), 400, problem=str(error))
    takes_in_changes = bool(visit.fields.get("take_in"))
    # The form has the checksum of the text from which it was made, or the beginning of it.
    if takes_in_changes and not info.checksum.startswith(visit.fields["checksum"]):
        return show_conflict(visit, info, 200)
    # If there is nothing to take in, the form comes back as for a preview.
    if takes_in_changes or visit.fields.get("preview"):
        return _form_again(visit, info, text, 200, draft=draft_of(visit))
    return None


def _form_again(visit: Visit, info: NoteInfo, text: str, status: int, **values: Any) -> Response:
    note = visit.memory.read(info, count=False)
    # The form is about the text that the note had when it was first made.
    base = visit.fields.get("base", "").replace("\r\n", "\n")
    checksum = visit.fields.get("checksum", note.checksum)
    return show_form(visit, note, text=text, base=base, status=status, checksum=checksum, **values)


def show_meanwhile(visit: Visit, place: Place) -> Response:
    """Show the changes of a note that others made while the form for editing it is open.

    The field `checksum` belongs to the text in the form.
    """
    memory = visit.memory
    values: dict[str, Any] = {"is_gone": False, "author": "", "difference": None}
    info = where_now(memory, *place, only_same=True)
    checksum = visit.text("checksum")
    if info is None:
        values["is_gone"] = True
    elif not info.checksum.startswith(checksum):
        values["author"] = authors_since(memory, info, checksum, visit.language)
        base = text_of(memory, info, checksum)
        if base is not None:
            text = memory.read(info, count=False).text
            values["difference"] = differences.between(base, text)
    return visit.html("meanwhile.html", info=info, **values)


def text_to_save(visit: Visit, present_text: str) -> str:
    """Return the text of the form, merged with the present text of the note after a conflict.

    present_text: the present text of the note.
    """
    if _MINE not in visit.fields:
        return typed_text(visit)
    merged = _merged(visit, present_text)
    places = range(len(merged.conflicts))
    return merged.text([visit.fields.get(f"{_PLACE}{number}", BOTH) for number in places])


def _merged(visit: Visit, present_text: str) -> Merge:
    """Merge the typed text with the present text of the note."""
    # Without a base, the merged text has both texts whole.
    base = visit.fields.get("base", "").replace("\r\n", "\n")
    return merge(base, typed_text(visit), present_text.replace("\r\n", "\n"))


def merged_without_conflict(visit: Visit, info: NoteInfo, present_text: str) -> str | None:
    """Merge the typed text with changes that others made since the form was opened.

    None if no one else changed the note, or if both changed the same lines. Also None if the present
    text seems to hold instructions, because a person has to look at it first.

    present_text: the present text of the note.
    """
    is_first_try = _MINE not in visit.fields and "base" in visit.fields
    if not is_first_try or info.suspicious or visit.fields["checksum"] == info.checksum:
        return None
    merged = _merged(visit, present_text)
    return None if merged.conflicts else merged.text()


def author_meanwhile(visit: Visit, info: NoteInfo) -> str:
    """Return who changed a note since the form for it was made."""
    return authors_since(visit.memory, info, visit.fields["checksum"], visit.language)


def show_conflict(visit: Visit, info: NoteInfo, status: int = 409) -> Response:
    """Show the form again, with the typed text and the present text of the note merged.

    Where both changed the same lines, ask which to keep.

    status: the HTTP status, 200 if somebody asked for that.
    """
    note = visit.memory.read(info, count=False)
    merged = _merged(visit, note.text)
    author = author_meanwhile(visit, info)
    base = visit.fields.get("base", "").replace("\r\n", "\n")
    if merged.conflicts:
        _check_editable(note)
        return visit.html(
            "conflict.html",
            status,
            note=note,
            merged=merged,
            mine=typed_text(visit),
            base=base,
            author=author,
        )
    present_text = note.text.replace("\r\n", "\n")
    return show_form(
        visit,
        note,
        text=merged.text(),
        base=note.text,
        status=status,
        merged=merged,
        author=author,
        difference=differences.between(base or present_text, present_text),
    )


def ask_about_secret(visit: Visit, info: NoteInfo, refused: SecretRefused) -> Response:
    """Show the form again, with the typed text and the question about the secret in it."""
    note = visit.memory.read(info, count=False)
    # The note may have changed since the gate looked at the text.
    if visit.fields["checksum"] != note.checksum:
        return show_conflict(visit, info)
    visit.ask_about(refused)
    text = text_to_save(visit, note.text)
    return show_form(visit, note, text=text, base=note.text, status=400)


def offer_as_new_note(visit: Visit, place: tuple[str, str]) -> Response:
    """Offer the typed text as a new note, because the note was deleted while the form was open.

    A header that cannot be read stays in the text.

    place: the project and path of the deleted note.
    """
    project, path = place
    name_of_file = path.rpartition("/")[2].removesuffix(".md")
    # The text after a conflict (_MINE) or as it was typed, without the title and the tags of the
    # form: these cannot be put into a header that cannot be read.
    text = typed_text(visit) if _MINE in visit.fields else _as_typed(visit)
    if _has_readable_header(text):
        header, body = differences.split(typed_text(visit))
        title = str(header.get("title") or name_of_file)
        tags = ", ".join(united(listed_texts(header.get("tags"))))
    else:
        header = {}
        body = text
        title = visit.text("title") or name_of_file
        tags = visit.text("tags")
    fields = {
        "title": "" if header.get("category") else title,
        "text": body,
        "project": project,
        "category": str(header.get("category") or ""),
        "tags": tags,
    }
    return visit.html(
        "new.html",
        410,
        **create.choices(visit) | {"fields": fields},
        warning="The note was deleted meanwhile. Your text is below: save it as a new note, or leave it.",
    )


def _has_readable_header(text: str) -> bool:
    """Whether the header of a text can be read. A text without a header is readable, too."""
    try:
        frontmatter.header_of(text)
    except ValueError:
        return False
    return True


def as_in_file(text: str, file: str) -> str:
    """Return the text of a form with the line ends of the file's text: LF or CR LF."""
    text = text.replace("\r\n", "\n")
    if "\r\n" in file:
        return text.replace("\n", "\r\n")
    return text
