"""Names notes and changes by the title of a note, as people know it, instead of its path."""

from __future__ import annotations

from collections.abc import Iterable

from memoranda.documents import differences
from memoranda.documents.differences import PropertyChange
from memoranda.engine.history.verbs import Revision
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Touched

# Header keys with the time until which a reminder is put off, in the order in which they count.
_PUT_OFF_KEYS = ("snoozed_until", "due_at")


def title_in(text: str) -> str:
    """Return the title in the text of a note.

    That is the title in the header, or else the first line with words. "" if the text has neither.
    """
    header, body = differences.split(text)
    title = header.get("title")
    if isinstance(title, str) and title.strip():
        return title.strip()
    for line in body.splitlines():
        words = line.strip("# \t")
        if words:
            return words
    return ""


def title_of_revision(revision: Revision | None) -> str:
    """Return the title that a note had after a change, or before it if the change removed the note.

    If the history keeps neither text, it is the name of the file.

    revision: what the change did to the note. None has the title "".
    """
    if revision is None:
        return ""
    text = revision.after or revision.before or ""
    return title_in(text) or title_of_path(revision.touched.to or revision.touched.path)


def title_of_path(path: str) -> str:
    """Return the name of a file without its folder and ending: `work/Plan.md` gives `Plan`."""
    return path.rpartition("/")[2].removesuffix(".md")


def time_put_off_to(properties: Iterable[PropertyChange]) -> str:
    """Return the time until which a change put a reminder off, as the note has it.

    "" if the change did not put it off.
    """
    values = {change.name: change.after for change in properties}
    for name in _PUT_OFF_KEYS:
        if values.get(name):
            return values[name] or ""
    return ""


def folder_of(touched: Touched) -> str:
    """Return the project and the folder of a file that a change wrote, moved or removed.

    The result has the form `notes/people`. For a moved file, it is the new folder.
    """
    path = f"{touched.project.lstrip('.')}/{touched.to or touched.path}"
    return path.rpartition("/")[0]


def place_of(info: NoteInfo) -> str:
    """Return the project and the folder of a note: `notes/people`."""
    return f"{info.project.lstrip('.')}/{info.path}".rpartition("/")[0]
