"""Converts notes, hits, changes and other things to documents: dicts that JSON can hold.

Each kind of thing has one form, which all tools, the command's `--json` and `/api` share. A face
may add keys of its contract. Times are stamps in UTC. Several documents are a `Listed`, and
`documents.cutting` cuts documents that are too long.
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
    from memoranda.engine.entries import Entry
    from memoranda.engine.history.verbs import Revision
    from memoranda.engine.links.attachments import Attachment
    from memoranda.engine.project_list import Project
    from memoranda.engine.reading import DirectoryEntry, ReadVerbs
    from memoranda.engine.review import ReviewItem
    from memoranda.ledger.change import Change, Touched
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
"""The keys of a whole note, in order. Keys of FURTHER that are set follow (contract 001, 3)."""
NAMES = ("project", "title", "type", "permalink")
"""Further keys of a note that is not a memory, and of any note that is shown alone."""
PROJECT_KEYS = ("name", "path", "notes", "default", "built_in")
CHANGE_KEYS = ("change", "time", "verb", "project", "path", "old_hash", "new_hash", "agent", "face")
# Keys that only some changes have.
_OPTIONAL_CHANGE_KEYS = ("details", "root", "run", "by", "undoes")
_LISTS = ("aliases", "merged", "unlinked", "kept_from", "supersedes")
_TIMES = ("due_at", "fired_at", "acked_at", "last_used_at", "archived_at")
TITLE = 1000
"""Characters of a title in a reference."""


def reference(note: Note | NoteInfo) -> Document:
    """Return the keys that name a note in a list.

    `suspicious` is among them only if the note seems to hold injected instructions.
    """
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
    """Return a whole note.

    memory: the caller's session. Links to notes that the caller may not see are left out.
    note_or_info: the note as it was read, or as the index has it.
    content: its text without its header and without the last newline.
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
    """Return the names of one note: the keys of NAMES with their values."""
    return {key: getattr(note_or_info, key) for key in NAMES}


def _further(memory: ReadVerbs, note_or_info: Note | NoteInfo) -> Document:
    """Return the header keys of FURTHER that are set.

    The header of a note from the index is parsed only if it may have one of them.

    note_or_info: the note as its file says it, or as the index knows it.
    """
    if isinstance(note_or_info, NoteInfo) and not note_or_info.may_say(FURTHER):
        return {}
    document = {}
    for key in FURTHER:
        value = note_or_info.header.get(key)
        is_set = value not in (None, "", [])
        if not is_set:
            continue
        value = _header_value(key, value)
        if key == "unlinked":
            value = visible_links(memory, value)
        # The caller may see none of the links.
        if value != []:
            document[key] = value
    return document


def _header_value(key: str, value: Any) -> Any:
    """Convert the value of a header key for a document.

    Keys of `_LISTS` get a list of texts, and keys of `_TIMES` a stamp. Other values stay.
    """
    if key in _LISTS:
        if isinstance(value, list):
            return [str(item) for item in value]
        return [str(value)]
    if key in _TIMES:
        # A value that is not a time stays as written.
        with suppress(ValueError, OverflowError):
            return stamp(parse_stamp(str(value)))
        return str(value)
    return value


def notes(memory: ReadVerbs, infos: Iterable[NoteInfo], total: int | None = None) -> Listed:
    """Return several whole notes from the index, with remarks about their validity.

    total: the number of all notes, if these are only the first. None if these are all.
    """
    note_list = list(infos)
    marks = memory.validity_marks(note_list)
    documents = []
    for info, content in zip(note_list, contents(memory, note_list), strict=True):
        documents.append(note(memory, info, content) | validity(marks, info))
    return Listed.part(documents, total)


def read_note(memory: ReadVerbs, info: NoteInfo, *, is_named: bool = False) -> Document:
    """Read a whole note as it is on disk, count the read, and add a remark about its validity.

    is_named: whether to add the note's names and its checksum.
    """
    note_read = memory.read(info)
    document = note(memory, note_read, note_read.content)
    if is_named:
        document |= names(note_read) | {"checksum": note_read.checksum}
    return document | validity(memory.validity_marks([info]), info)


def page_of_note(memory: MemorySession, full_note: Note, info: NoteInfo) -> Document:
    """Return a note for a page about it: its keys, its file, its observations, and all its links.

    memory: the memory that has the note.
    full_note: the note as its file says it.
    info: the note as the index knows it.
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
    """Return the ids in `links`, except the id of any memory that the caller may not see."""
    if memory.agent is None:
        return list(links)
    visible = []
    for identity in links:
        with suppress(NotFound):
            memory.memory_id(identity)
            visible.append(identity)
    return visible


def hit(search_hit: Hit) -> Document:
    """Return the keys that a search adds to a note: its score, passage, reason and writer."""
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
    """Return the references of notes, with remarks about their validity.

    total: the number of all notes in the list.
    offset: the number of notes before these.
    """
    marks = memory.validity_marks(infos)
    rows = [reference(info) | validity(marks, info) for info in infos]
    return Listed.part(rows, total, offset)


def validity(marks: Mapping[int, str], info: NoteInfo) -> Document:
    """Return the remark about a note's validity under the key `validity`. Empty without one.

    marks: the remarks, by the row of their note in the index.
    """
    if info.row in marks:
        return {"validity": marks[info.row]}
    return {}


def hits(search_hits: Hits, offset: int = 0) -> Listed:
    """Return the hits of a search, each with the reference of its note.

    search_hits: the page of hits, with the number of all hits.
    offset: the number of hits before these.
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
    """Return the whole notes that a search found, with their hits if the search ranks notes.

    memory: the memory that was searched.
    infos: the notes.
    search_hits: the hits in the same order. Empty if the search does not rank notes.
    offset: the number of notes before these.
    is_named: whether memories also have the keys of a reference, as other notes do.
    """
    rows = notes(memory, infos).rows
    if is_named:
        rows = [row | reference(info) for row, info in zip(rows, infos, strict=True)]
    for row, search_hit in zip(rows, search_hits, strict=False):
        row |= hit(search_hit) | {"provenance": search_hit.note.provenance.row()}
    is_lower_bound = search_hits.is_lower_bound
    return Listed.part(rows, search_hits.total, offset, is_lower_bound=is_lower_bound)


def observation(observed: Observation) -> Document:
    """Return an observation, which is `- [category] content #tag (context)` in a note."""
    return {
        "category": observed.category,
        "content": observed.content,
        "tags": list(observed.tags),
        "context": observed.context,
    }


def link(edge: Edge) -> Document:
    """Return a link of a note. `id` is None if no note is at the target."""
    identifier = edge.note.id if edge.note else None
    return {"type": edge.type, "target": edge.target, "id": identifier}


def relation(edge: Edge) -> Document:
    """Return a relation of a note, with keys named as in `Edge`.

    `permalink` names the note at the other end. None unless `state` is `resolved`.
    """
    return {
        "type": edge.type,
        "direction": edge.direction,
        "target": edge.target,
        "permalink": edge.note.permalink if edge.note else None,
        "state": edge.state,
        "context": edge.context,
    }


def change(ledger_change: Change) -> Document:
    """Return a change of the history. Its hashes are of the file that it is about.

    If that file has no text in the change, they belong to the first file that has one.
    """
    main_text = _main_text(ledger_change)
    document: Document = {
        "change": ledger_change.number,
        "time": ledger_change.time,
        "verb": ledger_change.verb,
        "project": ledger_change.project,
        "path": ledger_change.path,
        "old_hash": main_text.old if main_text else None,
        "new_hash": main_text.new if main_text else None,
        "agent": ledger_change.agent,
        "face": ledger_change.face,
    }
    optional_keys = {key: getattr(ledger_change, key) for key in _OPTIONAL_CHANGE_KEYS}
    return document | {key: value for key, value in optional_keys.items() if value}


def _main_text(ledger_change: Change) -> Touched | None:
    """Return the file whose text is shown for a change, or else the first file that has a text.

    None if no file of the change has a text.
    """
    texts = list(ledger_change.texts())
    for text in texts:
        if (text.project, text.path) == (ledger_change.project, ledger_change.path):
            return text
    return texts[0] if texts else None


def revision(file_changed: Revision) -> Document:
    """Return a file of a change, with its texts before and after.

    `to` is the new path of a file that was moved, None for any other.
    """
    touched = file_changed.touched
    return {
        "do": touched.do,
        "project": touched.project,
        "path": touched.path,
        "to": touched.to,
        "before": file_changed.before,
        "after": file_changed.after,
    }


def bank(identity: str, last_used: str, description: str) -> Document:
    """Return a memory bank as the list of banks has it (contract 003).

    identity: the name of the bank.
    last_used: when it was last used, as a stamp.
    description: its description in words.
    """
    return {"id": identity, "last_used": last_used, "description": description}


def opened_bank(
    kind: str, identity: str, files: Iterable[str], last_updated: str | None
) -> Document:
    """Return a memory bank with the names of its files.

    kind: the type of the bank.
    identity: the name of the bank.
    files: the names of its files.
    last_updated: when a file of it last changed, as a stamp. None if it has no files.
    """
    return {"type": kind, "id": identity, "files": list(files), "last_updated": last_updated}


def entity(name: str, kind: str, observations: Sequence[str]) -> Document:
    """Return an entity of the knowledge graph (contract 002)."""
    return {"name": name, "entityType": kind, "observations": list(observations)}


def entity_relation(edge: GraphRelation) -> Document:
    """Return a relation between two entities."""
    return {"from": edge.source, "to": edge.target, "relationType": edge.type}


def entry(stored: Entry) -> Document:
    """Return a key-value entry (contract 004)."""
    return {
        "namespace": stored.namespace,
        "key": stored.key,
        "value": stored.value,
        "created_at": seconds(stored.created),
        "accessed_at": seconds(stored.accessed),
        "expires_at": milliseconds(stored.expires) if stored.expires else None,
        "access_count": stored.access_count,
    }


def place(directory_entry: DirectoryEntry) -> Document:
    """Return a folder or a note in the listing of a folder."""
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
    """Return a file in a folder of notes that is not a note."""
    return {
        "path": attached.path,
        "type": attached.kind,
        "bytes": attached.size,
        "changed": stamp(attached.changed),
    }


def question(item: ReviewItem) -> Document:
    """Return a question to the owner."""
    return {
        "key": item.key,
        "kind": item.kind,
        "text": item.text,
        "refs": list(item.refs),
        "lines": list(item.lines),
        "choices": [{"letter": letter, "label": label} for letter, label in item.choices],
    }


def projects(memory: MemorySession, open_projects: Sequence[Project]) -> Listed:
    """Return projects, each with the number of notes that the caller sees.

    open_projects: the projects that the caller may use.
    """
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
    """Return the stamp of a time, which may be a stamp already."""
    if isinstance(moment, str):
        return moment
    return stamp(moment)
