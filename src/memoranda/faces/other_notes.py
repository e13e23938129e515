"""Notes that are in no list of a toolset, because another interface stored them.

The tools of the graph, of keys and values and of /memories each show one project. A caller who
lists or searches there is also told of the other notes of the home, in the form of its interface.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from memoranda.errors import MemorandaError
from memoranda.note.model import TRACE_PROJECT
from memoranda.note.names import Looseness
from memoranda.query import Query
from memoranda.text.fence import cut, without_marks
from memoranda.text.unicode import flat

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo

MOST_NOTES = 5
"""At most this many other notes are told with a reply."""
# The notes that may be told are looked for among this many, since some may be held back.
_MOST_READ_NOTES = 50
_MAX_TITLE_CHARACTERS = 80
_MAX_TEXT_CHARACTERS = 200


class OtherNote(NamedTuple):
    """A note of another project.

    project: the name of the project.
    title: the title of the note.
    text: a part of its text, as one line.
    remarks: who wrote it or gave it its name, such as `by claude, unconfirmed`. "" if the owner did.
    """

    project: str
    title: str
    text: str
    remarks: str

    @property
    def line(self) -> str:
        """Return the note as one line: `- "Tides" in project notes: High at noon`."""
        place = f"project {self.project}"
        if self.remarks:
            place = f"{place} ({self.remarks})"
        return f'- "{self.title}" in {place}: {self.text}'

    def fields(self) -> dict[str, str]:
        """Return the note as the keys of a JSON object. Without remarks, the key `remarks` is missing."""
        document = self._asdict()
        if not self.remarks:
            del document["remarks"]
        return document


def _other_projects(memory: MemorySession, project: str) -> tuple[str, ...]:
    """Return the names of the projects that the caller may use, except one and the traces."""
    return tuple(name for name in memory.project_names if name not in (project, TRACE_PROJECT))


def counts_elsewhere(memory: MemorySession, project: str) -> dict[str, int]:
    """Return how many notes each project has, except those without notes.

    project: the project to leave out.
    """
    counts = memory.stats().projects
    return {name: counts[name] for name in _other_projects(memory, project) if counts.get(name)}


def count_sentence(memory: MemorySession, project: str, place: str) -> str:
    """Return `The memory also has 12 notes outside the graph: notes 9, kv 3.`

    "" if it has no other notes.

    project: the project to leave out.
    place: the words for it, such as `the graph`.
    """
    counts = counts_elsewhere(memory, project)
    if not counts:
        return ""
    total = sum(counts.values())
    noun = "note" if total == 1 else "notes"
    parts = ", ".join(f"{flat(name)} {count}" for name, count in counts.items())
    return f"The memory also has {total} {noun} outside {place}: {parts}."


def notes_matching(
    memory: MemorySession, project: str, text: str, *, takes_any_word: bool
) -> list[OtherNote]:
    """Return the notes of other projects that match a text best.

    Notes that are archived, no longer valid or held back as suspicious are left out.

    project: the project to leave out.
    text: the words to look for. A blank text matches nothing.
    takes_any_word: whether a note with only some of the words will do.
    """
    # Most homes with only one interface end here, before a search.
    if not text.strip() or not counts_elsewhere(memory, project):
        return []
    projects = _other_projects(memory, project)
    query = Query(text=text, projects=projects, archived=False)
    hits = memory.search(query, limit=MOST_NOTES, vetted=True, is_use=False)
    if hits.relaxed and not takes_any_word:
        return []
    notes: list[OtherNote] = []
    for hit in hits:
        notes.append(_other_note(memory, hit.note, hit.passage))
    return notes


def newest_notes(memory: MemorySession, project: str) -> list[OtherNote]:
    """Return the notes of other projects that were changed last.

    The caller asked for none of them, so those that no session is told of are left out.

    project: the project to leave out.
    """
    from memoranda.engine.contents import contents
    from memoranda.engine.telling.manner import Telling

    projects = _other_projects(memory, project)
    query = Query(projects=projects, valid_at=memory.clock(), filled=True)
    infos, _ = memory.list(query, limit=_MOST_READ_NOTES)
    told_infos = (info for info in infos if memory.telling(info) is not Telling.SILENT)
    shown_infos = list(islice(told_infos, MOST_NOTES))
    texts = contents(memory, shown_infos)
    pairs = zip(shown_infos, texts, strict=True)
    return [_other_note(memory, info, text) for info, text in pairs]


def note_named(memory: MemorySession, project: str, name: str) -> OtherNote | None:
    """Return the note of another project that has a name. None if no or several notes have it.

    project: the project to leave out.
    name: a title, an address or an id.
    """
    try:
        info = memory.find(name, looseness=Looseness.CASE)
    except MemorandaError:
        return None
    is_elsewhere = info.project in _other_projects(memory, project)
    if is_elsewhere and not memory.is_held_back(info):
        return _other_note(memory, info, "")
    return None


def _other_note(memory: MemorySession, info: NoteInfo, text: str) -> OtherNote:
    """Return a note in the form that replies have, without marks that could end our own."""
    title = cut(info.title, _MAX_TITLE_CHARACTERS)
    one_line = " ".join(text[:_MAX_TEXT_CHARACTERS].split())
    remarks = ", ".join(mark.words for mark in memory.origin_marks(info))
    return OtherNote(
        project=info.project,
        title=without_marks(flat(title)),
        text=without_marks(flat(one_line)),
        remarks=remarks,
    )
