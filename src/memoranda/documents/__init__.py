"""One form for each kind of thing: what a note, a hit, a change … is as data.

A document is a dict that JSON can hold. Note tools, agent tools, the command's `--json` and `/api`
give these; a face whose contract fixes a key of its own adds it to the document. Times are stamps in
UTC. Lists of documents are cut to size by `documents.cutting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memoranda.clock import parse_stamp, stamp
from memoranda.engine.overview import contents, home_path
from memoranda.errors import NotFound
from memoranda.index.rows import Edge, Hit, NoteInfo
from memoranda.note.model import (
    BAD_HEADER,
    FURTHER,
    MEMORY_PROJECTS,
    Note,
    Observation,
    warning_text,
)
from memoranda.store.base import sha256

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.projects import Project
    from memoranda.engine.reading import ReadVerbs
    from memoranda.engine.review import ReviewItem
    from memoranda.ledger.change import Change

Document = dict[str, Any]

MEMORY_KEYS = (
    "id",
    "content",
    "content_hash",
    "phase",
    "category",
    "scope",
    "tags",
    "source",
    "created_at",
    "updated_at",
    "expires_at",
    "access_count",
    "links",
    "version",
    "path",
)
"""The keys of a whole note, in order; those of FURTHER that are set follow (contract 001, 3)."""
NAMES = ("project", "title", "type", "permalink")
"""Further keys of a note that is no memory, and of one that is shown on its own."""
PROJECT_KEYS = ("name", "path", "notes", "default", "built_in")
CHANGE_KEYS = ("change", "time", "verb", "project", "path", "old_hash", "new_hash", "agent", "face")
# Further keys of a change, of those that have them.
_OF_SOME_CHANGES = ("details", "root", "run", "by", "undoes")
_LISTS = ("aliases", "merged", "unlinked", "kept_from", "supersedes")
_TIMES = ("due_at", "fired_at", "acked_at", "last_used_at", "archived_at")
TITLE = 1000
"""Characters of a title in a reference."""


def reference(note: Note | NoteInfo) -> Document:
    """What names a note in a list, and how suspicious it is."""
    document: Document = {}
    if note.suspicious:
        document["suspicious"] = list(note.suspicious)
    return document | {
        "title": note.title[:TITLE],
        "permalink": note.permalink,
        "file_path": note.path,
        "project": note.project,
        "type": note.type,
        "changed": _stamped(note.changed),
    }


def note(memory: ReadVerbs, shown: Note | NoteInfo, content: str) -> Document:
    """A whole note.

    memory: who asks; links to what they may not see are left out.
    shown: the note, as it was read or as the index has it.
    content: its text without header and final newline.
    """
    document: Document = {
        "id": shown.id,
        "content": content,
        "content_hash": sha256(content.encode("utf-8", "surrogatepass")),
        "phase": shown.phase,
        "category": shown.category,
        "scope": shown.scope,
        "tags": list(shown.tags),
        "source": shown.source,
        "created_at": _stamped(shown.created),
        "updated_at": _stamped(shown.updated or shown.changed),
        "expires_at": _stamped(shown.expires) if shown.expires else None,
        "access_count": shown.access_count,
        "links": visible_links(memory, shown.links),
        "version": shown.version,
        "path": home_path(shown),
    }
    is_memory = shown.project in MEMORY_PROJECTS
    if not is_memory:
        document |= names(shown)
    document |= _further(memory, shown)
    if shown.suspicious:
        document["suspicious"] = list(shown.suspicious)
    complaint = warning_text(shown.warnings, BAD_HEADER)
    if complaint and is_memory:
        document["header_error"] = complaint
    return document


def names(shown: Note | NoteInfo) -> Document:
    """The names of a note that is no memory."""
    return {key: getattr(shown, key) for key in NAMES}


def _further(memory: ReadVerbs, shown: Note | NoteInfo) -> Document:
    """The header keys of FURTHER that are set. The header of a listed note is read only if it may
    have one of them.
    """
    if isinstance(shown, NoteInfo) and not shown.may_say(FURTHER):
        return {}
    document = {}
    for key in FURTHER:
        value = shown.header.get(key)
        if value in (None, "", []):
            continue
        value = _header_value(key, value)
        if key == "unlinked":
            value = visible_links(memory, value)
        if value != []:
            document[key] = value
    return document


def _header_value(key: str, value: Any) -> Any:
    """The value of a header key in the form all notes have: a list, a stamp, or as written."""
    if key in _LISTS:
        if isinstance(value, list):
            return [str(item) for item in value]
        return [str(value)]
    if key in _TIMES:
        with suppress(ValueError, OverflowError):
            return stamp(parse_stamp(str(value)))
        return str(value)
    return value


def notes(memory: ReadVerbs, infos: Iterable[NoteInfo]) -> list[Document]:
    """Several whole notes as the index has them, with what should be said of their validity."""
    every = list(infos)
    marks = memory.validity_marks(every)
    documents = []
    for info, content in zip(every, contents(memory, every), strict=True):
        document = note(memory, info, content)
        if info.row in marks:
            document["validity"] = marks[info.row]
        documents.append(document)
    return documents


def read_note(memory: ReadVerbs, info: NoteInfo) -> Document:
    """A whole note as it is on disk now, counted as read, with what should be said of its validity."""
    shown = memory.read(info)
    marks = memory.validity_marks([info])
    document = note(memory, shown, shown.content)
    return document | ({"validity": marks[info.row]} if marks else {})


def page_of_note(memory: MemorySession, shown: Note, info: NoteInfo) -> Document:
    """A note on its own: the whole note, its file's text, what it says, its links both ways."""
    return {
        **note(memory, shown, shown.content),
        **names(shown),
        "checksum": shown.checksum,
        "text": shown.text,
        "observations": [observation(each) for each in shown.observations],
        "provenance": info.provenance.row(),
        "outgoing": [link(edge) for edge in memory.outgoing(info)],
        "incoming": [link(edge) for edge in memory.incoming(info)],
    }


def visible_links(memory: ReadVerbs, links: Iterable[str]) -> list[str]:
    """The ids of `links` without those of memories the caller may not see."""
    if memory.agent is None:
        return list(links)
    shown = []
    for identity in links:
        with suppress(NotFound):
            memory.memory_id(identity)
            shown.append(identity)
    return shown


def hit(found: Hit) -> Document:
    """Why and where a search found a note: what it adds to a reference, or to a whole note."""
    shown = found.note
    document = {
        "score": round(found.score, 4),
        "passage": found.passage,
        "line": found.line,
        "date": shown.date or shown.created,
        "tags": list(shown.tags),
        "source": shown.source,
        "why": found.why,
        "by": shown.provenance.who,
        "trust": shown.provenance.trust,
    }
    if found.shares:
        document["shares"] = found.shares
    return document


def observation(said: Observation) -> Document:
    """`- [category] content #tag (context)`."""
    return {
        "category": said.category,
        "content": said.content,
        "tags": list(said.tags),
        "context": said.context,
    }


def link(edge: Edge) -> Document:
    """A link of a note by the ends it connects."""
    return {"type": edge.type, "target": edge.target, "id": edge.note and edge.note.id}


def relation(edge: Edge) -> Document:
    """A relation of a note with its direction and what became of its target."""
    return {
        "type": edge.type,
        "direction": edge.direction,
        "target": edge.target,
        "permalink": edge.note.permalink if edge.note else None,
        "state": edge.state,
        "context": edge.context,
    }


def change(done: Change) -> Document:
    """A change of the history. The hashes are those of the file it is about."""
    place = done.project, done.path
    texts = sorted(done.texts(), key=lambda text: (text.project, text.path) != place)
    if texts:
        about = texts[0]
    else:
        about = None
    document: Document = {
        "change": done.number,
        "time": done.time,
        "verb": done.verb,
        "project": done.project,
        "path": done.path,
        "old_hash": about and about.old,
        "new_hash": about and about.new,
        "agent": done.agent,
        "face": done.face,
    }
    further = {key: getattr(done, key) for key in _OF_SOME_CHANGES}
    return document | {key: value for key, value in further.items() if value}


def question(item: ReviewItem) -> Document:
    """A question to the owner."""
    return {
        "key": item.key,
        "kind": item.kind,
        "text": item.text,
        "refs": list(item.refs),
        "lines": list(item.lines),
        "choices": [{"letter": letter, "label": label} for letter, label in item.choices],
    }


def projects(memory: MemorySession, shown: Sequence[Project]) -> list[Document]:
    """Projects, with how many notes of each the caller sees."""
    counts = memory.stats().projects
    return [
        {
            "name": project.name,
            "path": str(project.root),
            "notes": counts.get(project.name, 0),
            "default": project.default,
            "built_in": project.built_in,
        }
        for project in shown
    ]


def _stamped(moment: datetime | str) -> str:
    if isinstance(moment, str):
        return moment
    return stamp(moment)
