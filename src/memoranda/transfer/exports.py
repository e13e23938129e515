"""Import the exports of other assistants and memory servers, such as ChatGPT and mem0.

A text that a program remembers becomes a memory here, and a conversation becomes a note. Texts are
not changed or shortened. Each program has a reader (`READERS`) that yields `Exported` items.
docs/moving-in.md says what is taken from each.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.clock import EPOCH, parse_stamp, stamp
from memoranda.engine import MemorySession
from memoranda.engine.exchange import Exchange, foreign_rows
from memoranda.engine.upkeep import SOURCE_REF
from memoranda.note.frontmatter import parse, split
from memoranda.note.links import file_name, permalink_for
from memoranda.note.markdown import Record, compose_note, unpack_list
from memoranda.sources.base import File
from memoranda.sources.files import reason
from memoranda.text.unicode import flat, is_valid_unicode
from memoranda.transfer.moving import (
    IMPORT,
    UPDATE,
    MoveAction,
    MovePlan,
    WrongStore,
    files_below,
    read_bytes,
)

# The category here for the kinds of memories in other programs.
_CATEGORIES = {
    "decision": "decisions",
    "preference": "preferences",
    "bugfix": "lessons",
    "lesson": "lessons",
    "learning": "lessons",
    "person": "people",
    "project": "project",
    "feedback": "feedback",
    "habit": "habits",
    "skill": "skills",
}
_NEWER_HERE = "another text is there"
# Characters of a text that names it.
_MOST_TITLE_CHARACTERS = 60
# The texts about its user that ChatGPT gets in a conversation -> the category here.
_CONTEXTS = {
    "model_set_context": "knowledge",
    "user_profile": "people",
    "user_instructions": "preferences",
}
_SPEAKERS = {"user": "You", "assistant": "ChatGPT"}
# The number and date that ChatGPT puts before a saved memory: `12. [2026-01-05]. `
_NUMBER = re.compile(r"^\s*\d+\.\s*(?:\[[^\]]*\]\.?\s*)?")
# A citation as ChatGPT's exports encode it.
_CITED = re.compile("[ \\t]*\ue200[^\ue201]*\ue201")
# The digest at the end of a conversation's file name: `2026-01-05 0123abcd.md`
_DIGEST = re.compile(r" ([0-9a-f]{8})\.md\Z")
# The names of the archives that Claude splits a large export into.
_PART = re.compile(r"(?:conversations|memories|projects|design_chats)-\d+.*\.zip")
# A greater number is a time in milliseconds. In seconds, it would be after the year 5138.
_LEAST_MILLISECONDS = 1e11


class Turn(NamedTuple):
    """One contribution to a conversation, or one document of a project.

    speaker: who said it, such as `You`. The file name of a document.
    when: the time; None if unknown.
    """

    speaker: str
    when: datetime | None
    text: str


@dataclass(frozen=True, slots=True)
class Exported:
    """A memory, a conversation or a project of another program.

    ref: the id that the program gives it.
    text: the text of a memory, or the title of a conversation or project.
    created, updated: when it was made and last changed; None if unknown.
    tags: its tags, without `#`.
    category: the category of a memory. Others ignore it.
    turns: the contributions to a conversation, or the documents of a project. Empty for a memory.
    kind: the `type` of the note: `conversation` or `project`. A memory ignores it.
    """

    ref: str
    text: str
    created: datetime | None
    updated: datetime | None = None
    tags: tuple[str, ...] = ()
    category: str = "knowledge"
    turns: tuple[Turn, ...] = ()
    kind: str = "conversation"

    def label(self, source: str) -> str:
        """Return a name for people: `chatgpt 0123 (Tea for Anna)`.

        source: the name of the program.
        """
        title = _short(self.text)
        label = f"{source} {self.ref}"
        if title:
            label = f"{label} ({title})"
        # A text may hold half of a surrogate pair, which no terminal can show.
        return label.encode("utf-8", "backslashreplace").decode()

    def begun(self) -> datetime | None:
        """Return when it was created, or else the time of its first turn, or of its last change.

        None if no time is known.
        """
        times = (turn.when for turn in self.turns if turn.when)
        return self.created or min(times, default=self.updated)

    def changed(self) -> datetime | None:
        """Return the time of the last change. None if no time is known.

        If the export does not say it, this is the time of the last turn, or else of the creation.
        """
        times = (turn.when for turn in self.turns if turn.when)
        return self.updated or max(times, default=self.created)

    def age(self) -> tuple[datetime, int]:
        """Return a key that is greater for the newer of two copies. Without times, for the longer."""
        length = len(self.text) + sum(len(turn.text) for turn in self.turns)
        return self.changed() or EPOCH, length


class LeftOut(NamedTuple):
    """An item that is not imported.

    name: the name of the item, such as the path of its file.
    reason: why it is not imported, such as "not a text".
    """

    name: str
    reason: str


Found = Iterator[Exported | LeftOut]
"""The items that a reader finds in an export."""


def _short(text: str) -> str:
    """Return the beginning of a text in one line, to name it."""
    return " ".join(text.split())[:_MOST_TITLE_CHARACTERS]


def plan_export(
    memory: MemorySession,
    kind: str,
    path: Path,
    project: str,
    reader: Callable[[Path], Found] | None = None,
) -> MovePlan:
    """Plan to import an export.

    Conversations become notes in the folder `kind` of a project. If a memory exists already, the
    later text counts, and the other one goes to the history.

    kind: the program that made the export, one of READERS.
    path: the export: a file, a zip or a folder.
    project: the name of the project for conversations.
    reader: reads the export in place of the reader of `kind`. None uses that reader.

    Raises WrongStore, ProjectNotFound.
    """
    if not path.exists():
        raise WrongStore(f"no such file or folder: {path}")
    name = memory.project(project).name
    exchange = Exchange(memory)
    plan = MovePlan(partial(_write, exchange, name))
    read = reader or READERS[kind]
    newest = _newest_copies(kind, read(path), plan)

    memories = [item for item in newest if not item.turns]
    records = [_record(kind, item, memory.clock()) for item in memories]
    _plan_records(plan, exchange, records)

    conversations = [item for item in newest if item.turns]
    paths_by_digest = _conversations(exchange, name, kind)
    for item in conversations:
        _plan_note(
            plan,
            exchange=exchange,
            project=name,
            kind=kind,
            item=item,
            paths_by_digest=paths_by_digest,
        )
    return plan


def _write(exchange: Exchange, project: str, items: Sequence[MoveAction]) -> None:
    """Write the memories and the conversations of these items.

    project: the project of the conversations.
    """
    records = [action.content for action in items if isinstance(action.content, Record)]
    if records:
        exchange.put(records)
    notes = [action.content for action in items if isinstance(action.content, _NoteFile)]
    if notes:
        files = [(note.path, note.data) for note in notes]
        replaced_files = {note.path: note.existing for note in notes if note.existing is not None}
        exchange.add_files(project, files, replaced_files)


class _NoteFile(NamedTuple):
    """A note to write.

    path: its path in the project.
    data: its bytes.
    existing: the file that it replaces. None for a new one.
    """

    path: str
    data: bytes
    existing: File | None


def _plan_records(plan: MovePlan, exchange: Exchange, records: Sequence[Record]) -> None:
    """Add memories to a plan, each as an import, or as an update of an older text here.

    exchange: finds the memories that are here already.
    records: the memories.
    """
    existing_memories = exchange.known(record.id for record in records)
    for record in records:
        title = f"memory {_short(record.content)}"
        if record.id not in existing_memories:
            plan.items.append(MoveAction(IMPORT, title, len(record.content), record))
            continue
        info, content = existing_memories[record.id]
        if content == record.content:
            plan.unchanged += 1
        elif record.updated > parse_stamp(info.updated or info.changed):
            plan.items.append(MoveAction(UPDATE, title, len(record.content), record))
        else:
            plan.skipped.append((title, _NEWER_HERE))


def _newest_copies(kind: str, items: Found, plan: MovePlan) -> list[Exported]:
    """Return the items that can be imported. If the export has several copies, the newest counts.

    The other items are added to `plan` as skipped.
    """
    newest: dict[str, Exported] = {}
    for item in items:
        if not isinstance(item, Exported):
            plan.skipped.append(item)
            continue
        reason_to_skip = _reason_to_leave_out(item)
        if reason_to_skip:
            plan.skipped.append((item.label(kind), reason_to_skip))
            continue
        earlier_copy = newest.setdefault(item.ref, item)
        # This is the first copy, or it says the same
        if earlier_copy == item:
            continue
        older_copy = item
        is_newer = item.age() > earlier_copy.age()
        if is_newer:
            newest[item.ref] = item
            older_copy = earlier_copy
        plan.skipped.append((older_copy.label(kind), "the export holds a newer copy of it"))
    return list(newest.values())


def _reason_to_leave_out(item: Exported) -> str:
    """Return the reason why an item cannot be imported. "" if it can."""
    if not (item.text.strip() or item.turns):
        return "it has no text"
    if not item.turns and not is_valid_unicode(item.text + "".join(item.tags) + item.ref):
        return "it holds half of a surrogate pair, which is no text"
    return ""


def _record(kind: str, item: Exported, now: datetime) -> Record:
    """Turn an exported item into a memory.

    Its id follows from `kind` and the item's `ref`, so that the next import finds the memory.

    now: the time of a memory without a time.
    """
    from uuid import NAMESPACE_URL, uuid5

    created = item.created or item.updated or now
    return Record(
        id=str(uuid5(NAMESPACE_URL, f"memoranda:{kind}:{item.ref}")),
        content=item.text,
        category=item.category,
        created=created,
        updated=item.updated or created,
        tags=(kind, *item.tags),
        source=kind,
        further={SOURCE_REF: f"{kind}:{item.ref}"},
    )


def _conversations(exchange: Exchange, project: str, kind: str) -> dict[str, str]:
    """Return the paths of the conversations imported before, by the digests in their names.

    exchange: lists the files of the project.
    kind: the folder in the project, which is named after the program.
    """
    paths_by_digest: dict[str, str] = {}
    for path in exchange.paths_in(project, kind):
        match = _DIGEST.search(path)
        if match is not None:
            paths_by_digest[match[1]] = path
    return paths_by_digest


def _plan_note(
    plan: MovePlan,
    exchange: Exchange,
    project: str,
    kind: str,
    item: Exported,
    paths_by_digest: Mapping[str, str],
) -> None:
    """Plan to write a conversation as a note: `chatgpt/2026-01-05 0123abcd.md`.

    The digest in the name is made of the conversation's id. A later export finds the note by the
    digest, even if only one of the two exports knows the day.

    plan: the plan, to which the note is added.
    exchange: reads the notes that are here already.
    kind: the program that made the export.
    item: the conversation.
    paths_by_digest: the paths of the conversations imported before.
    """
    created = item.begun()
    changed = item.changed()
    day = created.date().isoformat() if created else "undated"
    digest = sha256(item.ref.encode("utf-8", "replace")).hexdigest()[:8]
    path = paths_by_digest.get(digest) or f"{kind}/{file_name(f'{day} {digest}')}"
    data = _note_data(kind, item, permalink_for(project, path))

    label = f"{project}/{path} ({item.text})"
    # Of two exports of a conversation, the one with the later change is kept.
    existing = exchange.file(project, path)
    if existing is None:
        note_file = _NoteFile(path, data, None)
        plan.items.append(MoveAction(IMPORT, label, len(data), note_file))
    elif existing.data == data:
        plan.unchanged += 1
    elif changed is not None and changed > _time_of_last_addition(existing):
        note_file = _NoteFile(path, data, existing)
        plan.items.append(MoveAction(UPDATE, label, len(data), note_file))
    else:
        plan.skipped.append((label, _NEWER_HERE))


def _turn_text(turn: Turn) -> str:
    """Return a contribution to a conversation as Markdown: `## You, 2026-01-05T09:00Z` and its text."""
    moment = f", {stamp(turn.when)[:16]}Z" if turn.when else ""
    return f"## {turn.speaker}{moment}\n\n{turn.text.strip()}\n"


def _time_of_last_addition(file: File) -> datetime:
    """Return when the conversation in a note was last added to, as its header says.

    A note without that time counts as newer than everything, so that it is not replaced.
    """
    try:
        header = parse(split(file.data.decode("utf-8", "replace")).yaml or "")
        return parse_stamp(str(header["updated_at"]))
    except (ValueError, KeyError):
        return datetime.max.replace(tzinfo=UTC)


def _note_data(kind: str, item: Exported, permalink: str) -> bytes:
    """Return the bytes of the note for a conversation.

    kind: the program that made the export.
    item: the conversation.
    """
    keys = {"source": kind, SOURCE_REF: f"{kind}:{item.ref}"}
    changed = item.changed()
    if changed:
        keys["updated_at"] = stamp(changed)
    note = compose_note(
        "\n" + "\n".join(map(_turn_text, item.turns)),
        title=item.text or "Conversation",
        type=item.kind,
        tags=(kind, *item.tags),
        permalink=permalink,
        created=item.begun(),
        metadata=keys,
    )
    return note.encode("utf-8", "replace")


def _members(path: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of each file in an export whose name matches. Raises WrongStore.

    path: a folder, a zip, a folder with the several zips of one export, or the file itself, whose
        name need not match.
    pattern: a regular expression for the whole name.
    """
    if path.is_dir():
        for file in files_below(path, lambda name: True):
            member_path = path / file.path
            if file.refused:
                continue
            if re.fullmatch(pattern, member_path.name):
                yield file.path, read_bytes(member_path)
            elif _PART.fullmatch(member_path.name):
                # One of the several zips of a large export
                yield from _zipped(member_path, pattern)
    elif zipfile.is_zipfile(path):
        yield from _zipped(path, pattern)
    else:
        yield path.name, read_bytes(path)


def _zipped(file: Path | BytesIO, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and bytes of each file in a zip whose name matches.

    The zips inside it are searched too, but not the zips inside these.

    pattern: a regular expression for the name without its folder.

    Raises WrongStore.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            is_outermost = isinstance(file, Path)
            for name in sorted(archive.namelist()):
                file_name = name.rpartition("/")[2]
                if re.fullmatch(pattern, file_name):
                    yield name, archive.read(name)
                elif is_outermost and _PART.fullmatch(file_name):
                    yield from _zipped(BytesIO(archive.read(name)), pattern)
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        name = str(file) if isinstance(file, Path) else "a zip in the zip"
        raise WrongStore(f"cannot read {name}: {error}") from None


def _json(name: str, data: bytes) -> Any:
    """Read a file of JSON, or of JSON Lines as a list. It may be compressed by gzip.

    Raises WrongStore.
    """
    try:
        is_gzip = data[:2] == b"\x1f\x8b"
        if is_gzip:
            data = gzip.decompress(data)
        text = data.decode("utf-8-sig")
        try:
            return json.loads(text)
        except ValueError:
            return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise WrongStore(f"{name} is no JSON: {error}") from None


def _rows(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a value of JSON.

    The value is a list of objects, an object with such a list as `results`, `memories` or `items`,
    or a single object.
    """
    for row in _row_list(value):
        if isinstance(row, dict):
            yield row


def _dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list. Empty if the value is not a list."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def _row_list(value: Any) -> list[Any]:
    """Return the list in a value of JSON. Any other value is the only item of a list."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for key in ("results", "memories", "items"):
            if isinstance(value.get(key), list):
                return value[key]
    return [value]


def _objects(path: Path, pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects in the JSON files whose names match, each with the name of its file.

    path: a folder, a zip, a folder with the several zips of one export, or the file itself, whose
        name need not match.
    pattern: a regular expression for the whole name.
    """
    for name, data in _members(path, pattern):
        for row in _rows(_json(name, data)):
            yield name, row


def _time(value: Any) -> datetime | None:
    """Read a time: seconds or milliseconds since 1970, or ISO 8601. None for anything else."""
    try:
        # A number may also be written as a text
        is_number = not isinstance(value, str) or value.replace(".", "", 1).isdigit()
        if not is_number:
            return parse_stamp(value)
        seconds = float(value)
        if seconds <= 0:
            return None
        if seconds > _LEAST_MILLISECONDS:
            seconds /= 1000
        return datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _chatgpt(path: Path) -> Found:
    """Read an export of ChatGPT: its memories, and the shown branch of each conversation.

    There are two kinds of memories: texts that calls of the tool `bio` save, and the newest list of
    memories and custom instructions that ChatGPT got in a conversation.
    """
    rows = _chatgpt_rows(path)
    saved_texts = set[str]()
    newest_contexts = dict[str, _Context]()
    for name, row in rows:
        talk = _talk(row)
        if talk is None:
            title = row.get("title")
            label = f"{name} ({title})" if title else name
            yield LeftOut(label, "it is no conversation of ChatGPT")
            continue
        for context in talk.contexts():
            newest = newest_contexts.get(context.key)
            if newest is None or context.age >= newest.age:
                newest_contexts[context.key] = context
        for memory in talk.saved():
            saved_texts.add(memory.text)
            yield memory
        yield talk.whole()

    # Many conversations repeat these texts, so only the newest of each kind counts.
    for context in newest_contexts.values():
        for memory in _context_memories(context):
            # ChatGPT also lists what its tool saved.
            if memory.text not in saved_texts:
                yield memory


def _chatgpt_rows(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the conversations of the export as JSON, each with the name of its file.

    Raises WrongStore.
    """
    rows = list(_objects(path, r"conversations(-\d+)?\.json"))
    if not any("mapping" in row for _, row in rows):
        raise WrongStore(f"{path} holds no conversations.json of ChatGPT")
    return rows


class _Message(NamedTuple):
    """A message of ChatGPT.

    id: the id of its node in the conversation.
    speaker: `You` or `ChatGPT`. "" for a message that is not part of the conversation.
    to: the recipient as the export has it: None, `all`, or the name of a tool.
    text: the text of the message.
    when: when it was sent; None if unknown.
    content: the whole content as the export has it.
    """

    id: str
    speaker: str
    to: Any
    text: str
    when: datetime | None
    content: Mapping[str, Any]


class _Context(NamedTuple):
    """A text about the user that ChatGPT was given in a conversation, such as a list of memories.

    key: the kind of text, one of _CONTEXTS.
    text: the words that ChatGPT was given.
    when: the time of the conversation. None if unknown.
    """

    key: str
    text: str
    when: datetime | None

    @property
    def age(self) -> datetime:
        """The time to compare contexts by. An unknown time is the oldest."""
        return self.when or EPOCH


def _message(identity: str, message: Mapping[str, Any]) -> _Message:
    """Read a message of ChatGPT. A hidden or empty one, or one to a tool, has no speaker.

    identity: the id of its node in the conversation.
    message: the message as the export has it.
    """
    content = message.get("content")
    author = message.get("author")
    metadata = message.get("metadata")
    recipient = message.get("recipient")
    text = _parts(content)
    role = author.get("role") if isinstance(author, dict) else None
    is_hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    is_to_tool = recipient is not None and recipient != "all"
    speaker = ""
    if text.strip() and not is_hidden and not is_to_tool:
        speaker = _SPEAKERS.get(str(role), "")
    return _Message(
        id=identity,
        speaker=speaker,
        to=recipient,
        text=text,
        when=_time(message.get("create_time")),
        content=content if isinstance(content, dict) else {},
    )


class _Talk(NamedTuple):
    """A conversation of ChatGPT, and the messages of its branch."""

    conversation: Exported
    messages: list[_Message]

    def contexts(self) -> Iterator[_Context]:
        """Yield the texts about its user that ChatGPT was given in this conversation."""
        for message in self.messages:
            when = self.conversation.updated or message.when
            for key in _CONTEXTS:
                if message.content.get(key):
                    yield _Context(key, str(message.content[key]), when)

    def saved(self) -> Iterator[Exported]:
        """Yield the memories that calls of the tool `bio` save. Each line is a memory."""
        for message in self.messages:
            if message.to != "bio":
                continue
            lines = [line.strip() for line in message.text.split("\n") if line.strip()]
            for number, line in enumerate(lines):
                ref = f"{message.id}.{number}" if number else message.id
                yield Exported(ref, line, message.when or self.conversation.changed())

    def whole(self) -> Exported | LeftOut:
        """Return the conversation, or its name and the reason why it is left out."""
        if self.conversation.turns:
            return self.conversation
        return LeftOut(self.conversation.label("chatgpt"), "it has no text")


def _talk(row: Mapping[str, Any]) -> _Talk | None:
    """Read a conversation of the export. None if the row is not a conversation."""
    ref = str(row.get("conversation_id") or row.get("id") or "")
    mapping = row.get("mapping")
    if not ref or not isinstance(mapping, dict):
        return None
    branch = _branch(mapping, row.get("current_node"))
    messages = [_message(identity, message) for identity, message in branch]
    turns = [Turn(item.speaker, item.when, item.text) for item in messages if item.speaker]
    created = _time(row.get("create_time"))
    updated = _time(row.get("update_time"))
    title = str(row.get("title") or "")
    return _Talk(Exported(ref, title, created, updated, turns=tuple(turns)), messages)


def _context_memories(context: _Context) -> Iterator[Exported]:
    """Yield the memories in a text about the user (`_Context`).

    `model_set_context` is the list of saved memories, and each of its lines is a memory. Any other
    text is one memory.
    """
    texts = [context.text]
    if context.key == "model_set_context":
        texts = [_NUMBER.sub("", line).strip() for line in context.text.split("\n")]
    category = _CONTEXTS[context.key]
    for text in filter(None, texts):
        digest = sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        yield Exported(f"{context.key}:{digest}", text, context.when, category=category)


def _branch(mapping: Mapping[str, Any], last: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the branch of a conversation that ChatGPT shows, as (id, message) from the first on.

    mapping: the nodes of the conversation by id. If they name neither parents nor children, all are
        returned in order.
    last: the id of the last node of the branch. Without one, the branch ends with the newest message
        that has no answer.
    """
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    parents = _parents(nodes)
    names = list(nodes)
    # Each edit of a question, and each new try of an answer, begins a branch
    if parents:
        has_last = isinstance(last, str) and last in nodes
        if has_last:
            end = last
        else:
            end = _newest_leaf(list(nodes), parents, time_of=partial(_node_time, nodes))
        names = _way_to(end, parents)

    branch = []
    for name in names:
        message = nodes[name].get("message")
        # A node may have no message
        if isinstance(message, dict):
            branch.append((str(message.get("id") or name), message))
    return branch


def _parents(nodes: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Map each node to its parent. A node's own `parent` counts more than the parent's `children`."""
    parents: dict[str, str] = {}
    # First from the `children` of nodes, then from their own `parent`, which replaces the others.
    for name, node in nodes.items():
        children = node.get("children")
        if not isinstance(children, list):
            continue
        for child in children:
            if isinstance(child, str) and child in nodes:
                parents.setdefault(child, name)
    for name, node in nodes.items():
        parent = node.get("parent")
        if isinstance(parent, str) and parent in nodes:
            parents[name] = parent
    return parents


def _node_time(nodes: Mapping[str, dict[str, Any]], name: str) -> datetime:
    """Return the time of a node's message. Without one, this is 1970."""
    message = nodes[name].get("message")
    when = _time(message.get("create_time")) if isinstance(message, dict) else None
    return when or EPOCH


def _newest_leaf(
    names: Sequence[str], parents: Mapping[str, str], time_of: Callable[[str], datetime]
) -> str:
    """Return the node without children whose message is the newest, the last one of equal ones.

    names: the ids of the nodes, in the order of the export.
    parents: the parent of each node, by id.
    time_of: returns the time of a node's message.
    """
    nodes_with_children = set(parents.values())
    leaves = [name for name in names if name not in nodes_with_children]
    # In a circle of parents, every node has a child
    candidates = leaves or list(names)
    # `max` returns the first of equal ones
    return max(reversed(candidates), key=time_of)


def _way_to(last: str, parents: Mapping[str, str]) -> list[str]:
    """Return the nodes from the first one to `last`. A circle of parents is gone through once."""
    way: dict[str, None] = {}
    name: str | None = last
    while name is not None and name not in way:
        way[name] = None
        name = parents.get(name)
    return list(reversed(way))


def _parts(content: Any) -> str:
    """Return the text of a message. A part that is not text becomes its kind: `[image]`."""
    if isinstance(content, str):
        return content
    if not isinstance(content, dict):
        return ""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return str(content.get("text") or "")
    texts = [_part_text(part) for part in parts if part]
    return _CITED.sub("", "\n".join(texts))


def _part_text(part: Any) -> str:
    """Return the text of a part of a message. For other parts, their kind in brackets."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return "[part]"
    # Spoken parts have a text
    return str(part.get("text") or f"[{part.get('content_type', 'part')}]")


_CLAUDE_FILES = r"(conversations|memories|projects)\.json|[0-9a-f]{8}-[0-9a-f-]{27}\.json"
# A row with one of these keys is what Claude remembers.
_CLAUDE_MEMORIES = ("conversations_memory", "project_memories", "memory_files")


def _claude(path: Path) -> Found:
    """Read an export of Claude: its memories, its projects and each conversation."""
    is_export = False
    for name, row in _objects(path, _CLAUDE_FILES):
        if any(key in row for key in _CLAUDE_MEMORIES):
            is_export = True
            yield from _claude_memories(row)
            continue
        item = _claude_talk(row) or _claude_design(row) or _claude_project(row)
        if item is None:
            yield LeftOut(name, "it is no conversation of Claude")
            continue
        is_export = True
        yield item if item.turns else LeftOut(item.label("claude"), "it has no text")
    if not is_export:
        raise WrongStore(f"{path} holds no conversations.json of Claude")


def _claude_memories(row: Mapping[str, Any]) -> Iterator[Exported]:
    """Yield the memory of all conversations, the memory of each project, and each memory file."""
    account = str(row.get("account_uuid") or "")
    updated = _time(row.get("updated_at"))
    text = row.get("conversations_memory")
    if isinstance(text, str) and text:
        yield Exported(f"memory:{account}", text, updated)
    projects = row.get("project_memories")
    if isinstance(projects, dict):
        for project, memory in projects.items():
            yield Exported(f"memory:{account}:{project}", str(memory), updated, category="project")
    for file in _dicts(row.get("memory_files")):
        changed = _time(file.get("updated_at")) or updated
        created = _time(file.get("created_at")) or changed
        ref = f"memory:{account}:{file.get('path')}"
        yield Exported(ref, str(file.get("content") or ""), created, changed)


def _claude_talk(row: Mapping[str, Any]) -> Exported | None:
    """Read a conversation. None if the row is not a conversation."""
    messages = row.get("chat_messages")
    if not isinstance(messages, list) or not row.get("uuid"):
        return None
    turns: list[Turn] = []
    for message in _claude_branch(_dicts(messages), row.get("current_leaf_message_uuid")):
        text = _claude_text(message)
        if text.strip():
            speaker = "You" if message.get("sender") == "human" else "Claude"
            turns.append(Turn(speaker, _time(message.get("created_at")), text))
    return _claude_item(row, turns, "conversation")


def _claude_branch(messages: Sequence[dict[str, Any]], last: Any) -> list[dict[str, Any]]:
    """Return the messages of a conversation without the branches that Claude does not show.

    An edited question and a repeated answer have the same `parent_message_uuid` as the one before.

    messages: the messages in the order of the export.
    last: the id of the last message shown. Without one, it is the newest message without an answer.
    """
    by_id = {str(message["uuid"]): message for message in messages if message.get("uuid")}
    parents: dict[str, str] = {}
    for name, message in by_id.items():
        parent = message.get("parent_message_uuid")
        if isinstance(parent, str):
            parents[name] = parent
    # The first messages have a parent that is no message of the conversation.
    is_tree = any(parent in by_id for parent in parents.values())
    if not is_tree:
        return list(messages)

    def time_of(name: str) -> datetime:
        """Return the time of a message."""
        return _time(by_id[name].get("created_at")) or EPOCH

    has_last = isinstance(last, str) and last in by_id
    end = last if has_last else _newest_leaf(list(by_id), parents, time_of)
    hidden = _replaced(_way_to(end, parents), parents)
    return [message for message in messages if str(message.get("uuid")) not in hidden]


def _replaced(shown_way: Sequence[str], parents: Mapping[str, str]) -> set[str]:
    """Return the messages that another one replaced, and all messages that follow them.

    shown_way: the messages that are shown, from the first to the last.
    parents: the parent of each message, by id.
    """
    children: dict[str, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent, []).append(name)
    shown = set(shown_way)
    waiting: list[str] = []
    for name in shown_way:
        siblings = children.get(parents.get(name, ""), [])
        waiting += [sibling for sibling in siblings if sibling not in shown]
    replaced = set[str]()
    while waiting:
        name = waiting.pop()
        if name not in replaced:
            replaced.add(name)
            waiting += children.get(name, [])
    return replaced


def _claude_design(row: Mapping[str, Any]) -> Exported | None:
    """Read a conversation about a design. None if the row is not one."""
    messages = row.get("messages")
    if not isinstance(messages, list) or not row.get("uuid"):
        return None
    turns: list[Turn] = []
    for message in _dicts(messages):
        content = message.get("content")
        text = _design_text(content)
        if text.strip():
            speaker = "Claude" if message.get("role") == "assistant" else "You"
            when = _time(message.get("created_at"))
            if when is None and isinstance(content, dict):
                when = _time(content.get("timestamp"))
            turns.append(Turn(speaker, when, text))
    project = row.get("project")
    project_name = project.get("name") if isinstance(project, dict) else None
    title = row.get("title") or row.get("name") or project_name
    return _claude_item({**row, "name": title}, turns, "conversation")


def _design_text(content: Any) -> str:
    """Return the text of one message in a conversation about a design, with attached texts."""
    if not isinstance(content, dict):
        return str(content or "")
    blocks = _dicts(content.get("contentBlocks"))
    texts = [_design_block_text(block) for block in blocks] or [str(content.get("content") or "")]
    parts = [text for text in texts if text]
    for attachment in _dicts(content.get("attachments")):
        parts.append(_titled("Attachment", attachment.get("name"), attachment.get("content")))
    return "\n\n".join(filter(None, parts))


def _design_block_text(block: Mapping[str, Any]) -> str:
    """Return the text of a block: words of Claude, or words with which the user interrupted it."""
    if block.get("type") == "user_interjection":
        message = block.get("message")
        text = message.get("content") if isinstance(message, dict) else message
        return f"You interrupted: {text}" if text else ""
    return str(block.get("text") or "") if block.get("type") == "text" else ""


def _claude_project(row: Mapping[str, Any]) -> Exported | None:
    """Read a project, with its instructions and documents as turns. None for another row."""
    docs = row.get("docs")
    seems_to_be_project = isinstance(docs, list) or "prompt_template" in row
    if not row.get("uuid") or not seems_to_be_project:
        return None
    turns: list[Turn] = []
    instructions = str(row.get("prompt_template") or row.get("description") or "")
    if instructions.strip():
        turns.append(Turn("Instructions", None, instructions))
    if isinstance(docs, list):
        turns += [_claude_document(document) for document in docs if _is_document(document)]
    return _claude_item(row, turns, "project")


def _is_document(value: Any) -> bool:
    """Whether a value is a document of a project with a text."""
    return isinstance(value, dict) and bool(str(value.get("content") or "").strip())


def _claude_document(document: Mapping[str, Any]) -> Turn:
    """Return a document of a project as a turn, with its file name as the speaker."""
    name = flat(str(document.get("filename") or "Document"))
    return Turn(name, _time(document.get("created_at")), str(document["content"]))


def _claude_item(row: Mapping[str, Any], turns: Sequence[Turn], kind: str) -> Exported:
    """Return a conversation or project with the id, name and times of its row."""
    return Exported(
        str(row["uuid"]),
        str(row.get("name") or ""),
        _time(row.get("created_at")),
        _time(row.get("updated_at")),
        turns=tuple(turns),
        kind=kind,
    )


def _claude_text(message: Mapping[str, Any]) -> str:
    """Return the text of one message in a conversation with Claude. It includes attached texts."""
    blocks = message.get("content")
    # The field `text` has "This block is not supported" for blocks that are not text.
    if isinstance(blocks, list) and blocks:
        texts = [_claude_block_text(block) for block in _dicts(blocks)]
    else:
        texts = [str(message.get("text") or "")]
    parts = [text for text in texts if text]

    # The texts of attachments follow the text of the message.
    for attachment in _dicts(message.get("attachments")):
        name = attachment.get("file_name")
        # A long text that was pasted into a message is an attachment without a name.
        parts.append(_titled("Attachment", name, attachment.get("extracted_content")))
    return "\n\n".join(filter(None, parts))


def _claude_block_text(block: Mapping[str, Any]) -> str:
    """Return the text of a block, or a document that Claude wrote in it. "" for other blocks."""
    document = block.get("input")
    if block.get("type") != "tool_use" or not isinstance(document, dict):
        return str(block.get("text") or "")
    if block.get("name") == "artifacts":
        return _titled("Document", document.get("title"), document.get("content"))
    if block.get("name") == "create_file":
        return _titled("Document", document.get("path"), document.get("file_text"))
    return ""


def _titled(noun: str, name: Any, text: Any) -> str:
    """Return a text under its kind and name: `Document a.md:` and the text. "" without a text."""
    if not text:
        return ""
    title = f"{noun} {name}" if name else noun
    return f"{title}:\n\n{text}"


def _mem0(path: Path) -> Found:
    """Read the output of mem0's `get_all`, or OpenMemory's export: JSON, JSON Lines or a zip."""
    has_memories = False
    for _, row in _objects(path, r".*\.(json|jsonl|jsonl\.gz)"):
        item = _mem0_memory(row)
        if item is not None:
            has_memories = has_memories or isinstance(item, Exported)
            yield item
    if not has_memories:
        raise WrongStore(f"{path} holds no memories of mem0")


def _mem0_memory(row: Mapping[str, Any]) -> Exported | LeftOut | None:
    """Read a memory of mem0. Returns its name and the reason if it is left out.

    None for rows about users, apps and so on, which are in the same file.
    """
    if not row.keys() & {"memory", "content", "text"}:
        return None
    text = row.get("memory") or row.get("content") or row.get("text")
    ref = row.get("id")
    if not isinstance(text, str) or ref is None:
        label = ref or _short(str(text or ""))
        return LeftOut(f"mem0 {label}", "it has no id or no text")
    if row.get("state") == "deleted" or row.get("deleted_at"):
        return LeftOut(f"mem0 {ref}", "it was deleted there")

    created = _time(row.get("created_at"))
    updated = _time(row.get("updated_at"))
    return Exported(
        ref=str(ref), text=text, created=created, updated=updated, tags=_tags(row.get("categories"))
    )


def _mcp_memory_service(path: Path) -> Found:
    """Read the database of mcp-memory-service (sqlite_vec.db), or its export as JSON."""
    place = path / "sqlite_vec.db" if path.is_dir() else path
    rows = _table(place, "memories", "content_hash")
    if rows is None:
        rows = [row for _, row in _objects(place, "")]
    if not any("content" in row for row in rows):
        raise WrongStore(f"{place} holds no memories of mcp-memory-service")
    yield from map(_mcp_memory, rows)


def _mcp_memory(row: Mapping[str, Any]) -> Exported | LeftOut:
    """Read a memory of mcp-memory-service. Returns its name and the reason if it is left out."""
    text = row.get("content")
    ref = row.get("content_hash") or row.get("id")
    if not isinstance(text, str) or ref is None:
        label = ref or _short(str(text or ""))
        return LeftOut(f"mcp-memory-service {label}", "it has no id or no content")
    if row.get("deleted_at"):
        return LeftOut(f"mcp-memory-service {ref}", "it was deleted there")
    created = _time(row.get("created_at")) or _time(row.get("created_at_iso"))
    updated = _time(row.get("updated_at")) or _time(row.get("updated_at_iso"))
    category = _CATEGORIES.get(str(row.get("memory_type")).lower(), "knowledge")
    return Exported(
        str(ref),
        text=text,
        created=created,
        updated=updated,
        tags=_tags(row.get("tags")),
        category=category,
    )


def _claude_mem(path: Path) -> Found:
    """Read the observations and summaries of claude-mem, from its database or its export as JSON."""
    place = path / "claude-mem.db" if path.is_dir() else path
    rows = _table(place, "observations", "id")
    summaries = _table(place, "session_summaries", "id")
    if rows is None:
        # This is no database, so it must be the JSON file that claude-mem's own script exports.
        data = _json(place.name, read_bytes(place))
        if not isinstance(data, dict):
            data = {}
        rows = [*_rows(data.get("observations"))]
        summaries = [*_rows(data.get("summaries"))]
    if not rows:
        raise WrongStore(f"{place} holds no observations of claude-mem")

    # An observation is one memory, its facts are a list in it.
    for row in rows:
        lines = [row.get("title"), row.get("subtitle"), row.get("narrative") or row.get("text")]
        lines += [f"- {fact}" for fact in _list_from_json(row.get("facts"))]
        yield _observed("observation", row, lines)
    for summary in summaries or ():
        yield _observed("summary", summary, _summary_lines(summary))


def _summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return the parts of claude-mem's summary of a session: `Next steps: …`."""
    lines = []
    for part in ("request", "investigated", "learned", "completed", "next_steps", "notes"):
        if summary.get(part):
            lines.append(f"{part.replace('_', ' ').capitalize()}: {summary[part]}")
    return lines


def _observed(
    noun: str, observation: Mapping[str, Any], lines: Sequence[Any]
) -> Exported | LeftOut:
    """Turn an observation or summary of claude-mem into a memory.

    Returns its name and the reason if it is left out.

    noun: `observation` or `summary`.
    lines: the lines of its text. Empty ones are left out.
    """
    if observation.get("id") is None:
        return LeftOut(f"claude-mem {noun}", "it has no id")
    tags = [noun]
    if observation.get("project"):
        tags.append(str(observation["project"]))
    tags += _tags(observation.get("concepts"))
    texts = [str(line).strip() for line in lines if line]
    text = "\n".join(filter(None, texts))
    moment = _time(observation.get("created_at_epoch")) or _time(observation.get("created_at"))
    category = _CATEGORIES.get(str(observation.get("type")).lower(), "knowledge")
    return Exported(
        f"{noun}:{observation['id']}", text, moment, tags=tuple(tags), category=category
    )


def _tags(value: Any) -> tuple[str, ...]:
    """Read tags: a list, a list as JSON (`["a", "b"]`), or a text with commas (`a, b`)."""
    items = unpack_list(value)
    if isinstance(items, str):
        items = items.split(",")
    if not isinstance(items, list):
        return ()
    tags = [str(item).strip() for item in items]
    # Programs in Python write a missing tag as the text "None".
    return tuple(tag for tag in tags if tag and tag != "None")


def _list_from_json(value: Any) -> list[str]:
    """Read a list that a database holds as JSON. Another text is the only item of the list."""
    try:
        items = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return [value]
    if isinstance(items, list):
        return [str(item) for item in items if item is not None]
    return []


def _table(path: Path, name: str, key: str) -> list[dict[str, Any]] | None:
    """Return the rows of a table of an SQLite database. None if the file is not such a database.

    key: the column that a row must have a value in.

    Raises WrongStore.
    """
    try:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return None
        return [row for row in foreign_rows(path, name) if row.get(key) is not None]
    except OSError as error:
        raise WrongStore(f"cannot read {path}: {reason(error)}") from None
    except ValueError as error:
        raise WrongStore(f"cannot read {path}: {error}") from None


READERS: dict[str, Callable[[Path], Found]] = {
    "chatgpt": _chatgpt,
    "claude": _claude,
    "mem0": _mem0,
    "claude-mem": _claude_mem,
    "mcp-memory-service": _mcp_memory_service,
}
