"""One form for each kind of thing: what a note, a hit, a change … is as data.

A document is a dict that JSON can hold. Note tools, agent and key-value tools, the command's
`--json` and `/api` give these; a face adds the keys that its contract alone fixes.
Times are stamps in UTC. Several documents are a `Listed`. What is too long is cut to size by
`documents.cutting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memoranda.clock import milliseconds, parse_stamp, seconds, stamp
from memoranda.documents.listed import Document, Listed
from memoranda.engine.contents import contents, home_path
from memoranda.errors import NotFound
from memoranda.index.rows import Edge, Hit, Hits, NoteInfo
from memoranda.note.model import (
    BAD_HEADER,
    FURTHER,
    MEMORY_PROJECTS,
    Note,
    Observation,
    warning_text,
)
from memoranda.sources.base import sha256

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.attachments import Attachment
    from memoranda.engine.entries import Entry
    from memoranda.engine.history import Revision
    from memoranda.engine.project_list import Project
    from memoranda.engine.reading import DirectoryEntry, ReadVerbs
    from memoranda.engine.review import ReviewItem
    from memoranda.ledger.change import Change
    from memoranda.note.entity import GraphRelation

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
    """The keys that name a note in a list, and say how suspicious it is."""
    document: Document = {}
    if note.suspicious:
        document["suspicious"] = list(note.suspicious)
    return document | {
        "title": note.title[:TITLE],
        "permalink": note.permalink,
        "file_path": note.path,
        "project": note.project,
        "type": note.type,
        "changed": _stamp_of(note.changed),
    }


def note(memory: ReadVerbs, note_or_info: Note | NoteInfo, content: str) -> Document:
    """A whole note.

    memory: who asks; links to what they may not see are left out.
    note_or_info: the note, as it was read or as the index has it.
    content: its text without header and final newline.
    """
    document: Document = {
        "id": note_or_info.id,
        "content": content,
        "content_hash": sha256(content.encode("utf-8", "surrogatepass")),
        "phase": note_or_info.phase,
        "category": note_or_info.category,
        "scope": note_or_info.scope,
        "tags": list(note_or_info.tags),
        "source": note_or_info.source,
        "created_at": _stamp_of(note_or_info.created),
        "updated_at": _stamp_of(note_or_info.updated or note_or_info.changed),
        "expires_at": _stamp_of(note_or_info.expires) if note_or_info.expires else None,
        "access_count": note_or_info.access_count,
        "links": visible_links(memory, note_or_info.links),
        "version": note_or_info.version,
        "path": home_path(note_or_info),
    }
    is_memory = note_or_info.project in MEMORY_PROJECTS
    if not is_memory:
        document |= names(note_or_info)
    document |= _further(memory, note_or_info)
    if note_or_info.suspicious:
        document["suspicious"] = list(note_or_info.suspicious)
    complaint = warning_text(note_or_info.warnings, BAD_HEADER)
    if complaint and is_memory:
        document["header_error"] = complaint
    return document


def names(note_or_info: Note | NoteInfo) -> Document:
    """The names of a note that is not a memory."""
    return {key: getattr(note_or_info, key) for key in NAMES}


def _further(memory: ReadVerbs, note_or_info: Note | NoteInfo) -> Document:
    """The header keys of FURTHER that are set. The header of a listed note is read only if it may
    have one of them.
    """
    if isinstance(note_or_info, NoteInfo) and not note_or_info.may_say(FURTHER):
        return {}
    document = {}
    for key in FURTHER:
        value = note_or_info.header.get(key)
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


def notes(memory: ReadVerbs, infos: Iterable[NoteInfo], total: int | None = None) -> Listed:
    """Several whole notes from the index, with remarks about their validity.

    total: the number of all notes, if these are only the first.
    """
    note_list = list(infos)
    marks = memory.validity_marks(note_list)
    documents = []
    for info, content in zip(note_list, contents(memory, note_list), strict=True):
        documents.append(note(memory, info, content) | validity(marks, info))
    return Listed.part(documents, total)


def read_note(memory: ReadVerbs, info: NoteInfo, *, is_named: bool = False) -> Document:
    """Read a whole note as it is on disk, count the read, and add a remark about its validity.

    is_named: add its names and its checksum, as for a note that is not a memory.
    """
    note_read = memory.read(info)
    document = note(memory, note_read, note_read.content)
    if is_named:
        document |= names(note_read) | {"checksum": note_read.checksum}
    return document | validity(memory.validity_marks([info]), info)


def page_of_note(memory: MemorySession, full_note: Note, info: NoteInfo) -> Document:
    """A note on its own: its fields, the text of its file, its observations, and its links in both
    directions.
    """
    return {
        **note(memory, full_note, full_note.content),
        **names(full_note),
        "checksum": full_note.checksum,
        "text": full_note.text,
        "observations": [
            observation(one_observation) for one_observation in full_note.observations
        ],
        "provenance": info.provenance.row(),
        "outgoing": [link(edge) for edge in memory.outgoing(info)],
        "incoming": [link(edge) for edge in memory.incoming(info)],
    }


def visible_links(memory: ReadVerbs, links: Iterable[str]) -> list[str]:
    """The ids of `links`, without memories that the caller may not see."""
    if memory.agent is None:
        return list(links)
    visible = []
    for identity in links:
        with suppress(NotFound):
            memory.memory_id(identity)
            visible.append(identity)
    return visible


def hit(search_hit: Hit) -> Document:
    """Why and where a search found a note: what it adds to a reference, or to a whole note."""
    info = search_hit.note
    document = {
        "score": round(search_hit.score, 4),
        "passage": search_hit.passage,
        "line": search_hit.line,
        "date": info.date or info.created,
        "tags": list(info.tags),
        "source": info.source,
        "why": search_hit.why,
        "by": info.provenance.who,
        "trust": info.provenance.trust,
    }
    if search_hit.shares:
        document["shares"] = search_hit.shares
    return document


def references(memory: ReadVerbs, infos: Sequence[NoteInfo], total: int, offset: int) -> Listed:
    """The references of notes that follow `offset` others, with remarks about their validity."""
    marks = memory.validity_marks(infos)
    rows = [reference(info) | validity(marks, info) for info in infos]
    return Listed.part(rows, total, offset)


def validity(marks: Mapping[int, str], info: NoteInfo) -> Document:
    """The remark of `marks` about the validity of a note."""
    if info.row in marks:
        return {"validity": marks[info.row]}
    return {}


def hits(search_hits: Hits, offset: int = 0) -> Listed:
    """The results of a search, each hit with the reference of its note.

    offset: how many hits come before these.
    """
    rows = [reference(search_hit.note) | hit(search_hit) for search_hit in search_hits]
    is_lower_bound = search_hits.is_lower_bound
    return Listed.part(rows, search_hits.total, offset, is_lower_bound=is_lower_bound)


def found_notes(
    memory: ReadVerbs,
    infos: Sequence[NoteInfo],
    search_hits: Hits,
    offset: int = 0,
    *,
    is_named: bool = False,
) -> Listed:
    """The whole notes a search found, with the hit of each where it was a ranked one.

    offset: how many notes come before these.
    is_named: whether memories have the keys of their reference, as other notes do.
    """
    rows = notes(memory, infos).rows
    if is_named:
        rows = [row | reference(info) for row, info in zip(rows, infos, strict=True)]
    for row, search_hit in zip(rows, search_hits, strict=False):
        row |= hit(search_hit) | {"provenance": search_hit.note.provenance.row()}
    is_lower_bound = search_hits.is_lower_bound
    return Listed.part(rows, search_hits.total, offset, is_lower_bound=is_lower_bound)


def observation(observed: Observation) -> Document:
    """`- [category] content #tag (context)`."""
    return {
        "category": observed.category,
        "content": observed.content,
        "tags": list(observed.tags),
        "context": observed.context,
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


def change(ledger_change: Change) -> Document:
    """A change of the history. Its hashes belong to the file that it is about."""
    place = ledger_change.project, ledger_change.path
    texts = sorted(ledger_change.texts(), key=lambda text: (text.project, text.path) != place)
    if texts:
        first_text = texts[0]
    else:
        first_text = None
    document: Document = {
        "change": ledger_change.number,
        "time": ledger_change.time,
        "verb": ledger_change.verb,
        "project": ledger_change.project,
        "path": ledger_change.path,
        "old_hash": first_text and first_text.old,
        "new_hash": first_text and first_text.new,
        "agent": ledger_change.agent,
        "face": ledger_change.face,
    }
    optional_keys = {key: getattr(ledger_change, key) for key in _OF_SOME_CHANGES}
    return document | {key: value for key, value in optional_keys.items() if value}


def revision(file_changed: Revision) -> Document:
    """A file of a change, with the text it replaced and the one it made."""
    touched = file_changed.touched
    return {
        "do": touched.do,
        "project": touched.project,
        "path": touched.path,
        "to": touched.to,
        "before": file_changed.before,
        "after": file_changed.after,
    }


def bank(identity: str, last_used: str | None, description: str) -> Document:
    """A memory bank in a list (contract 003)."""
    return {"id": identity, "last_used": last_used, "description": description}


def opened_bank(
    kind: str, identity: str, files: Iterable[str], last_updated: str | None
) -> Document:
    """A memory bank with the names of its files."""
    return {"type": kind, "id": identity, "files": list(files), "last_updated": last_updated}


def entity(name: str, kind: str, observations: Sequence[str]) -> Document:
    """An entity of the knowledge graph (contract 002)."""
    return {"name": name, "entityType": kind, "observations": list(observations)}


def entity_relation(edge: GraphRelation) -> Document:
    """A relation between two entities."""
    return {"from": edge.source, "to": edge.target, "relationType": edge.type}


def entry(stored: Entry) -> Document:
    """A key-value entry, with the keys of ENTRY_KEYS (contract 004)."""
    return {
        "namespace": stored.namespace,
        "key": stored.key,
        "value": stored.value,
        "created_at": seconds(stored.created),
        "accessed_at": seconds(stored.accessed),
        "expires_at": stored.expires and milliseconds(stored.expires),
        "access_count": stored.access_count,
    }


def place(directory_entry: DirectoryEntry) -> Document:
    """A folder or a note in the listing of a folder."""
    if directory_entry.kind == "folder":
        return {
            "kind": "folder",
            "path": directory_entry.path,
            "notes": directory_entry.notes or 0,
        }
    return {
        "kind": "note",
        "path": directory_entry.path,
        "title": (directory_entry.title or "")[:TITLE],
        "permalink": directory_entry.permalink,
        "changed": directory_entry.changed or "",
    }


def attachment(attached: Attachment) -> Document:
    """A file beside the notes of a folder."""
    return {
        "path": attached.path,
        "type": attached.kind,
        "bytes": attached.size,
        "changed": stamp(attached.changed),
    }


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


def projects(memory: MemorySession, open_projects: Sequence[Project]) -> Listed:
    """Projects, with how many notes of each the caller sees."""
    counts = memory.stats().projects
    rows = [
        {
            "name": project.name,
            "path": str(project.root),
            "notes": counts.get(project.name, 0),
            "default": project.default,
            "built_in": project.built_in,
        }
        for project in open_projects
    ]
    return Listed.part(rows)


def _stamp_of(moment: datetime | str) -> str:
    if isinstance(moment, str):
        return moment
    return stamp(moment)
