"""The exports of other assistants and memory servers, read as memories and conversations
(docs/moving-in.md).

Each reader takes the export's own words; nothing is summed up. What a program says it remembers
becomes a memory, a conversation one note.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
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
from memoranda.transfer.moving import IMPORT, UPDATE, MoveAction, MovePlan, WrongStore, read_bytes

# Kinds of other programs, and the category each is here.
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
# The texts that ChatGPT is given about its user in a conversation, with their category.
_CONTEXTS = {
    "model_set_context": "knowledge",
    "user_profile": "people",
    "user_instructions": "preferences",
}
_SPEAKERS = {"user": "You", "assistant": "ChatGPT"}
# The number and date that ChatGPT puts before a saved memory.
_NUMBER = re.compile(r"^\s*\d+\.\s*(?:\[[^\]]*\]\.?\s*)?")
# A citation as ChatGPT's exports encode it.
_CITED = re.compile("[ \\t]*\ue200[^\ue201]*\ue201")
# The digits by which two conversations of one title differ.
_DIGEST = re.compile(r" ([0-9a-f]{8})\.md\Z")
# Marks of ChatGPT where it cites something; the archives of Claude's export.
_PART = re.compile(r"(?:conversations|memories|projects)-\d+.*\.zip")


Turn = tuple[str, datetime | None, str]
"""Who said it, when, and what was said."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A memory (`turns` empty), a conversation, or a project: what it holds as turns. `ref` is the
    source's own id.
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
        """The name by which the person knows it."""
        title = " ".join(self.text.split())[:60]
        if title:
            label = f"{source} {self.ref} ({title})"
        else:
            label = f"{source} {self.ref}"
        return label.encode("utf-8", "backslashreplace").decode()

    def begun(self) -> datetime | None:
        """When it was created, or else the time of its first turn or of its last change.

        None if unknown.
        """
        times = (when for _, when, _ in self.turns if when)
        return self.created or min(times, default=self.updated)

    def changed(self) -> datetime | None:
        """When it was last changed, or else the time of its last turn or of its creation.

        None if unknown.
        """
        times = (when for _, when, _ in self.turns if when)
        return self.updated or max(times, default=self.created)

    def age(self) -> tuple[datetime, int]:
        """A key that is larger for the newer of two copies or, without times, for the longer one."""
        length = len(self.text) + sum(len(turn_text) for _, _, turn_text in self.turns)
        return self.changed() or EPOCH, length


Found = Iterator[Exported | tuple[str, str]]
"""What a reader finds; (name, why) for what cannot be taken."""


def plan_export(
    memory: MemorySession,
    kind: str,
    path: Path,
    project: str,
    reader: Callable[[Path], Found] | None = None,
) -> MovePlan:
    """The plan for taking in an export of one of READERS, or what `reader` reads; conversations go
    to the folder `kind` of `project`. What is there is compared: the later text counts, the other is
    in the history. Raises WrongStore, ProjectNotFound."""
    if not path.exists():
        raise WrongStore(f"no such file or folder: {path}")
    name = memory.project(project).name
    exchange = Exchange(memory)

    def act(items: Sequence[MoveAction]) -> None:
        records = [action.what for action in items if isinstance(action.what, Record)]
        if records:
            exchange.put(records)
        notes = [action.what for action in items if not isinstance(action.what, Record)]
        if notes:
            over = {path: old for path, _, old in notes if old is not None}
            exchange.add_files(name, [(path, data) for path, data, _ in notes], over)

    plan = MovePlan(act)
    newest = _newest_copies(kind, (reader or READERS[kind])(path), plan)
    records = [_record(kind, item, memory.clock()) for item in newest if not item.turns]
    _plan_records(plan, exchange, records)
    there_already = _conversations(exchange, name, kind)
    for item in newest:
        if item.turns:
            _plan_note(plan, exchange, name, kind, item, there_already)
    return plan


def _plan_records(plan: MovePlan, exchange: Exchange, records: Sequence[Record]) -> None:
    """Add memories to a plan, each as an import, or as an update of an older text here."""
    known_records = exchange.known(record.id for record in records)
    for record in records:
        existing = known_records.get(record.id)
        title = f"memory {' '.join(record.content.split())[:60]}"
        if existing is None:
            plan.items.append(MoveAction(IMPORT, title, len(record.content), record))
        elif existing[1] == record.content:
            plan.unchanged += 1
        elif record.updated > parse_stamp(existing[0].updated or existing[0].changed):
            plan.items.append(MoveAction(UPDATE, title, len(record.content), record))
        else:
            plan.skipped.append((title, _NEWER_HERE))


def _newest_copies(kind: str, items: Found, plan: MovePlan) -> list[Exported]:
    """The items that can be taken, of several copies of one thing the newest; `plan` names the
    rest."""
    newest: dict[str, Exported] = {}
    for item in items:
        if not isinstance(item, Exported):
            plan.skipped.append(item)
            continue
        why = _unfit(item)
        before = newest.get(item.ref)
        if why:
            plan.skipped.append((item.label(kind), why))
        elif before is None:
            newest[item.ref] = item
        elif before != item:
            is_newer = item.age() > before.age()
            newest[item.ref] = item if is_newer else before
            if is_newer:
                older = before
            else:
                older = item
            plan.skipped.append((older.label(kind), "the export holds a newer copy of it"))
    return list(newest.values())


def _unfit(item: Exported) -> str:
    """The reason why it cannot be imported. Empty if it can."""
    if not (item.text.strip() or item.turns):
        return "it has no text"
    if not item.turns and not is_valid_unicode(item.text + "".join(item.tags) + item.ref):
        return "it holds half of a surrogate pair, which is no text"
    return ""


def _record(kind: str, item: Exported, now: datetime) -> Record:
    from uuid import NAMESPACE_URL, uuid5

    created = item.created or item.updated or now
    return Record(
        str(uuid5(NAMESPACE_URL, f"memoranda:{kind}:{item.ref}")),
        item.text,
        item.category,
        created,
        item.updated or created,
        tags=(kind, *item.tags),
        source=kind,
        further={SOURCE_REF: f"{kind}:{item.ref}"},
    )


def _conversations(exchange: Exchange, project: str, kind: str) -> dict[str, str]:
    """The paths of the conversations imported before, by the digest in their names."""
    found = ((_DIGEST.search(path), path) for path in exchange.paths_in(project, kind))
    return {match[1]: path for match, path in found if match}


def _plan_note(
    plan: MovePlan,
    exchange: Exchange,
    project: str,
    kind: str,
    item: Exported,
    there_already: Mapping[str, str],
) -> None:
    """Plan a conversation as a note.

    The name of the note contains the day, if it is known, and a digest of the conversation's id. A
    later export finds the note by the digest, even if only one of the two knows the day.
    """
    created = item.begun()
    changed = item.changed()
    if created:
        day = created.date().isoformat()
    else:
        day = "undated"
    digest = sha256(item.ref.encode("utf-8", "replace")).hexdigest()[:8]
    path = there_already.get(digest) or f"{kind}/{file_name(f'{day} {digest}')}"
    keys = {"source": kind, SOURCE_REF: f"{kind}:{item.ref}"}
    if changed:
        keys["updated_at"] = stamp(changed)
    note = compose_note(
        "\n" + "\n".join(map(_turn_text, item.turns)),
        title=item.text or "Conversation",
        type=item.kind,
        tags=(kind, *item.tags),
        permalink=permalink_for(project, path),
        created=created,
        metadata=keys,
    )
    data = note.encode("utf-8", "replace")
    name = f"{project}/{path}"
    label = f"{name} ({item.text})"
    existing = exchange.file(project, path)
    if existing is None:
        plan.items.append(MoveAction(IMPORT, label, len(data), (path, data, None)))
    elif existing.data == data:
        plan.unchanged += 1
    elif changed is not None and changed > _updated(existing):
        plan.items.append(MoveAction(UPDATE, label, len(data), (path, data, existing)))
    else:
        plan.skipped.append((label, _NEWER_HERE))


def _turn_text(turn: Turn) -> str:
    who, when, text = turn
    if when:
        moment = f", {stamp(when)[:16]}Z"
    else:
        moment = ""
    return f"## {who}{moment}\n\n{text.strip()}\n"


def _updated(file: File) -> datetime:
    """When the conversation in a note was last added to, as its header says."""
    try:
        header = parse(split(file.data.decode("utf-8", "replace")).yaml or "")
        return parse_stamp(str(header["updated_at"]))
    except (ValueError, KeyError):
        return datetime.max.replace(tzinfo=UTC)


def _members(path: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Find the files whose names match: the name and bytes of each. Raises WrongStore.

    They are looked for in a folder, in a zip, or in the several zips of one export. `path` may also
    be the file itself.
    """
    if path.is_dir():
        for member_path in sorted(path.rglob("*")):
            if member_path.is_file() and not member_path.is_symlink():
                if re.fullmatch(pattern, member_path.name):
                    yield str(member_path.relative_to(path)), read_bytes(member_path)
                elif _PART.fullmatch(member_path.name):
                    yield from _zipped(member_path, pattern)
    elif zipfile.is_zipfile(path):
        yield from _zipped(path, pattern)
    else:
        yield path.name, read_bytes(path)


def _zipped(file: Path | BytesIO, pattern: str) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(file) as archive:
            for name in sorted(archive.namelist()):
                if re.fullmatch(pattern, name.rpartition("/")[2]):
                    yield name, archive.read(name)
                elif isinstance(file, Path) and _PART.fullmatch(name.rpartition("/")[2]):
                    yield from _zipped(BytesIO(archive.read(name)), pattern)
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise WrongStore(
            f"cannot read {file if isinstance(file, Path) else 'a zip in the zip'}: {error}"
        ) from None


def _json(name: str, data: bytes) -> Any:
    """The JSON in a file; JSON Lines and gzip too. Raises WrongStore."""
    try:
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
        try:
            return json.loads(text)
        except ValueError:
            return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise WrongStore(f"{name} is no JSON: {error}") from None


def _rows(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list, or of the list an object holds as `results`, `memories` or `items`."""
    if isinstance(value, dict):
        value = next(
            (
                value[key]
                for key in ("results", "memories", "items")
                if isinstance(value.get(key), list)
            ),
            value,
        )
    yield from (
        row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)
    )


def _objects(path: Path, pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects in the JSON files whose names match (see `_members`), each with the name of its
    file.
    """
    for name, data in _members(path, pattern):
        for row in _rows(_json(name, data)):
            yield name, row


def _time(value: Any) -> datetime | None:
    """A time in seconds or milliseconds since 1970, or ISO 8601. None for anything else."""
    try:
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            return parse_stamp(value)
        seconds = float(value)
        if seconds > 0:
            return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC)
        return None
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _chatgpt(path: Path) -> Found:
    """An export of ChatGPT: what it saved (its calls of the tool `bio`, and the newest list of
    memories and custom instructions that a conversation shows), and the branch shown of each
    conversation."""
    rows = _chatgpt_rows(path)
    saved = set[str]()
    newest = dict[str, _Context]()
    for name, row in rows:
        talk = _talk(row)
        if talk is None:
            title = row.get("title")
            yield f"{name} ({title})" if title else name, "it is no conversation of ChatGPT"
            continue
        for context in talk.contexts():
            if context.age >= newest.get(context.key, context).age:
                newest[context.key] = context
        for memory in talk.saved():
            saved.add(memory.text)
            yield memory
        yield talk.whole()
    for context in newest.values():
        yield from (memory for memory in _told_memories(context) if memory.text not in saved)


def _chatgpt_rows(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The rows of the export, each with its file's name. Raises WrongStore."""
    rows = list(_objects(path, r"conversations(-\d+)?\.json"))
    if not any("mapping" in row for _, row in rows):
        raise WrongStore(f"{path} holds no conversations.json of ChatGPT")
    return rows


class _Message(NamedTuple):
    """A message of ChatGPT. `speaker` is empty if it is not part of the conversation."""

    id: str
    speaker: str
    to: Any
    text: str
    when: datetime | None
    content: Mapping[str, Any]


class _Context(NamedTuple):
    """A text that ChatGPT is given about its user.

    key: one of _CONTEXTS.
    text: the text.
    when: when it was valid.
    """

    key: str
    text: str
    when: datetime | None

    @property
    def age(self) -> datetime:
        return self.when or EPOCH


def _message(identity: str, message: Mapping[str, Any]) -> _Message:
    content = message.get("content")
    author = message.get("author")
    metadata = message.get("metadata")
    text = _parts(content)
    to = message.get("recipient")
    if isinstance(author, dict):
        role = author.get("role")
    else:
        role = None
    is_hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    speaker = _SPEAKERS.get(str(role), "")
    if is_hidden or to not in (None, "all") or not text.strip():
        speaker = ""
    when = _time(message.get("create_time"))
    return _Message(identity, speaker, to, text, when, content if isinstance(content, dict) else {})


class _Talk(NamedTuple):
    """A conversation of ChatGPT, and the messages of its branch."""

    conversation: Exported
    messages: list[_Message]

    def contexts(self) -> Iterator[_Context]:
        for message in self.messages:
            when = self.conversation.updated or message.when
            for key in _CONTEXTS:
                if message.content.get(key):
                    yield _Context(key, str(message.content[key]), when)

    def saved(self) -> Iterator[Exported]:
        """The memories, one a line, that calls of the tool `bio` save."""
        for message in self.messages:
            lines = [line.strip() for line in message.text.split("\n") if line.strip()]
            for number, line in enumerate(lines if message.to == "bio" else ()):
                if number:
                    ref = f"{message.id}.{number}"
                else:
                    ref = message.id
                yield Exported(ref, line, message.when or self.conversation.changed())

    def whole(self) -> Exported | tuple[str, str]:
        """The conversation, or why it is left out."""
        if self.conversation.turns:
            return self.conversation
        return self.conversation.label("chatgpt"), "it has no text"


def _talk(row: Mapping[str, Any]) -> _Talk | None:
    """The conversation in a row of the export, or None if the row is not one."""
    ref = str(row.get("conversation_id") or row.get("id") or "")
    mapping = row.get("mapping")
    if not ref or not isinstance(mapping, dict):
        return None
    branch = _branch(mapping, row.get("current_node"))
    messages = [_message(identity, message) for identity, message in branch]
    turns = [(item.speaker, item.when, item.text) for item in messages if item.speaker]
    created = _time(row.get("create_time"))
    updated = _time(row.get("update_time"))
    title = str(row.get("title") or "")
    return _Talk(Exported(ref, title, created, updated, turns=tuple(turns)), messages)


def _told_memories(context: _Context) -> Iterator[Exported]:
    """The memories in what ChatGPT is told; a list of memories has one a line."""
    lines = [context.text]
    if context.key == "model_set_context":
        lines = [_NUMBER.sub("", line).strip() for line in context.text.split("\n")]
    for line in filter(None, lines):
        digest = sha256(line.encode("utf-8", "replace")).hexdigest()[:16]
        category = _CONTEXTS[context.key]
        yield Exported(f"{context.key}:{digest}", line, context.when, category=category)


def _branch(mapping: Mapping[str, Any], last: Any) -> list[tuple[str, dict[str, Any]]]:
    """The messages from the first to `last`, or without it to the newest message without an answer.

    If nodes name neither parents nor children, all of them in order.
    """
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    parents = _parents(nodes)
    names = list(nodes)
    if parents:
        is_named = isinstance(last, str) and last in nodes
        if is_named:
            end = last
        else:
            end = _newest_leaf(nodes, parents)
        names = _way_to(end, parents)
    messages = [(name, nodes[name].get("message")) for name in names]
    return [
        (str(message.get("id") or name), message)
        for name, message in messages
        if isinstance(message, dict)
    ]


def _parents(nodes: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Map each node to its parent, by the node's own word or by the `children` of the parent."""
    parents: dict[str, str] = {}
    for name, node in nodes.items():
        children = node.get("children")
        for child in children if isinstance(children, list) else ():
            if isinstance(child, str) and child in nodes:
                parents.setdefault(child, name)
    for name, node in nodes.items():
        parent = node.get("parent")
        if isinstance(parent, str) and parent in nodes:
            parents[name] = parent
    return parents


def _newest_leaf(nodes: Mapping[str, dict[str, Any]], parents: Mapping[str, str]) -> str:
    """The node without a child whose message is the newest. If several are, the last one."""
    inner = set(parents.values())
    leaves = [name for name in nodes if name not in inner] or list(nodes)

    def age(position: int) -> tuple[datetime, int]:
        message = nodes[leaves[position]].get("message")
        if isinstance(message, dict):
            when = _time(message.get("create_time"))
        else:
            when = None
        return when or EPOCH, position

    return leaves[max(range(len(leaves)), key=age)]


def _way_to(last: str, parents: Mapping[str, str]) -> list[str]:
    """The nodes from the first one to `last`; a circle ends where it began."""
    way: dict[str, None] = {}
    name: str | None = last
    while name is not None and name not in way:
        way[name] = None
        name = parents.get(name)
    return list(reversed(way))


def _parts(content: Any) -> str:
    """The text of a message. A part that is not text is replaced by its kind."""
    if not isinstance(content, dict):
        if isinstance(content, str):
            return content
        return ""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return str(content.get("text") or "")
    texts = []
    for part in filter(None, parts):
        # Spoken parts have a text.
        if isinstance(part, dict):
            texts.append(str(part.get("text") or f"[{part.get('content_type', 'part')}]"))
        else:
            texts.append(part if isinstance(part, str) else "[part]")
    return _CITED.sub("", "\n".join(texts))


_CLAUDE_FILES = r"(conversations|memories|projects)\.json|[0-9a-f]{8}-[0-9a-f-]{27}\.json"


def _claude(path: Path) -> Found:
    """An export of Claude: its memory, of everything and of each project, its projects and each
    conversation.
    """
    is_one = False
    for name, row in _objects(path, _CLAUDE_FILES):
        if "conversations_memory" in row or "project_memories" in row:
            is_one = True
            yield from _claude_memories(row)
            continue
        item = _claude_talk(row) or _claude_project(row)
        if item is None:
            yield name, "it is no conversation of Claude"
            continue
        is_one = True
        yield item if item.turns else (item.label("claude"), "it has no text")
    if not is_one:
        raise WrongStore(f"{path} holds no conversations.json of Claude")


def _claude_memories(row: Mapping[str, Any]) -> Iterator[Exported]:
    account = str(row.get("account_uuid") or "")
    updated = _time(row.get("updated_at"))
    text = row.get("conversations_memory")
    if isinstance(text, str) and text:
        yield Exported(f"memory:{account}", text, updated)
    projects = row.get("project_memories")
    for project, memory in projects.items() if isinstance(projects, dict) else ():
        yield Exported(f"memory:{account}:{project}", str(memory), updated, category="project")


def _claude_talk(row: Mapping[str, Any]) -> Exported | None:
    """The conversation in a row, or None if the row is not one."""
    messages = row.get("chat_messages")
    if not isinstance(messages, list) or not row.get("uuid"):
        return None
    turns: list[Turn] = []
    for message in messages:
        if isinstance(message, dict):
            text = _claude_text(message)
        else:
            text = ""
        if text.strip():
            if message.get("sender") == "human":
                speaker = "You"
            else:
                speaker = "Claude"
            turns.append((speaker, _time(message.get("created_at")), text))
    return _claude_item(row, turns, "conversation")


def _claude_project(row: Mapping[str, Any]) -> Exported | None:
    """A project with its instructions and documents as turns. None if the row is not a project."""
    docs = row.get("docs")
    if not row.get("uuid") or not (isinstance(docs, list) or "prompt_template" in row):
        return None
    turns: list[Turn] = []
    instructions = str(row.get("prompt_template") or row.get("description") or "")
    if instructions.strip():
        turns.append(("Instructions", None, instructions))
    turns += map(_claude_document, filter(_is_document, docs if isinstance(docs, list) else ()))
    return _claude_item(row, turns, "project")


def _is_document(value: Any) -> bool:
    return isinstance(value, dict) and bool(str(value.get("content") or "").strip())


def _claude_document(document: Mapping[str, Any]) -> Turn:
    name = flat(str(document.get("filename") or "Document"))
    return name, _time(document.get("created_at")), str(document["content"])


def _claude_item(row: Mapping[str, Any], turns: Sequence[Turn], kind: str) -> Exported:
    return Exported(
        str(row["uuid"]),
        str(row.get("name") or ""),
        _time(row.get("created_at")),
        _time(row.get("updated_at")),
        turns=tuple(turns),
        kind=kind,
    )


def _claude_text(message: Mapping[str, Any]) -> str:
    blocks = message.get("content")
    # `text` says of other blocks that they cannot be shown
    if isinstance(blocks, list) and blocks:
        texts = [str(block.get("text") or "") for block in blocks if isinstance(block, dict)]
    else:
        texts = [str(message.get("text") or "")]
    parts = [text for text in texts if text]
    for attachment in _rows(message.get("attachments")):
        content = attachment.get("extracted_content")
        if content:
            parts.append(f"Attachment {attachment.get('file_name') or ''}:\n\n{content}")
    return "\n\n".join(parts)


def _mem0(path: Path) -> Found:
    """The memories in the output of mem0's `get_all` or of OpenMemory's export: JSON, JSON Lines or
    a zip.
    """
    count = 0
    for _, row in _objects(path, r".*\.(json|jsonl|jsonl\.gz)"):
        item = _mem0_memory(row)
        if item is not None:
            count += isinstance(item, Exported)
            yield item
    if not count:
        raise WrongStore(f"{path} holds no memories of mem0")


def _mem0_memory(row: Mapping[str, Any]) -> Exported | tuple[str, str] | None:
    """The memory in a row, or why it is left out. None for users, apps and the like, which are in
    the same file."""
    text = row.get("memory") or row.get("content") or row.get("text")
    ref = row.get("id")
    if not row.keys() & {"memory", "content", "text"}:
        return None
    if not isinstance(text, str) or ref is None:
        label = ref or " ".join(str(text or "").split())[:60]
        return f"mem0 {label}", "it has no id or no text"
    if row.get("state") == "deleted" or row.get("deleted_at"):
        return f"mem0 {ref}", "it was deleted there"
    created = _time(row.get("created_at"))
    updated = _time(row.get("updated_at"))
    return Exported(str(ref), text, created, updated, _tags(row.get("categories")))


def _mcp_memory_service(path: Path) -> Found:
    """The database of mcp-memory-service (sqlite_vec.db), or its export as JSON."""
    if path.is_dir():
        place = path / "sqlite_vec.db"
    else:
        place = path
    rows = _table(place, "memories", "content_hash")
    if rows is None:
        rows = [row for _, row in _objects(place, "")]
    if not any("content" in row for row in rows):
        raise WrongStore(f"{place} holds no memories of mcp-memory-service")
    yield from map(_mcp_memory, rows)


def _mcp_memory(row: Mapping[str, Any]) -> Exported | tuple[str, str]:
    text = row.get("content")
    ref = row.get("content_hash") or row.get("id")
    if not isinstance(text, str) or ref is None:
        label = ref or " ".join(str(text or "").split())[:60]
        return f"mcp-memory-service {label}", "it has no id or no content"
    if row.get("deleted_at"):
        return f"mcp-memory-service {ref}", "it was deleted there"
    created = _time(row.get("created_at")) or _time(row.get("created_at_iso"))
    updated = _time(row.get("updated_at")) or _time(row.get("updated_at_iso"))
    category = _CATEGORIES.get(str(row.get("memory_type")).lower(), "knowledge")
    return Exported(str(ref), text, created, updated, _tags(row.get("tags")), category)


def _claude_mem(path: Path) -> Found:
    """The database of claude-mem, or its export as JSON: observations, and summaries of sessions."""
    place = path / "claude-mem.db" if path.is_dir() else path
    rows = _table(place, "observations", "id")
    summaries = _table(place, "session_summaries", "id")
    if rows is None:
        # No database: what its own script exports
        data = _json(place.name, read_bytes(place))
        if not isinstance(data, dict):
            data = {}
        rows = [*_rows(data.get("observations"))]
        summaries = [*_rows(data.get("summaries"))]
    if not rows:
        raise WrongStore(f"{place} holds no observations of claude-mem")
    for row in rows:
        lines = [row.get("title"), row.get("subtitle"), row.get("narrative") or row.get("text")]
        lines += [f"- {fact}" for fact in _list_from_json(row.get("facts"))]
        yield _observed("observation", row, lines)
    for summary in summaries or ():
        yield _observed("summary", summary, _summary_lines(summary))


def _summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """The parts of claude-mem's summary of a session, each with its name."""
    lines = []
    for part in ("request", "investigated", "learned", "completed", "next_steps", "notes"):
        if summary.get(part):
            lines.append(f"{part.replace('_', ' ').capitalize()}: {summary[part]}")
    return lines


def _observed(
    noun: str, observation: Mapping[str, Any], lines: Sequence[Any]
) -> Exported | tuple[str, str]:
    if observation.get("id") is None:
        return f"claude-mem {noun}", "it has no id"
    tags = [noun, *filter(None, (observation.get("project"),)), *_tags(observation.get("concepts"))]
    text = "\n".join(str(line).strip() for line in lines if line and str(line).strip())
    moment = _time(observation.get("created_at_epoch")) or _time(observation.get("created_at"))
    category = _CATEGORIES.get(str(observation.get("type")).lower(), "knowledge")
    return Exported(
        f"{noun}:{observation['id']}", text, moment, tags=tuple(map(str, tags)), category=category
    )


def _tags(value: Any) -> tuple[str, ...]:
    """The tags in a list, in a list as JSON, or in a text with commas."""
    items = unpack_list(value)
    if isinstance(items, str):
        items = items.split(",")
    if isinstance(items, list):
        tags = [str(item).strip() for item in items]
    else:
        tags = []
    return tuple(tag for tag in tags if tag and tag != "None")


def _list_from_json(value: Any) -> list[str]:
    """A list that a database holds as JSON."""
    try:
        if isinstance(value, str):
            items = json.loads(value)
        else:
            items = value
    except ValueError:
        return [value]
    if isinstance(items, list):
        return [str(item) for item in items if item is not None]
    return []


def _table(path: Path, name: str, key: str) -> list[dict[str, Any]] | None:
    """The rows of a table with the column `key` in an SQLite database. None for another file.
    Raises WrongStore.
    """
    try:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return None
        return [
            foreign_row
            for foreign_row in foreign_rows(path, name)
            if foreign_row.get(key) is not None
        ]
    except (OSError, ValueError) as error:
        raise WrongStore(
            f"cannot read {path}: {reason(error) if isinstance(error, OSError) else error}"
        ) from None


READERS: dict[str, Callable[[Path], Found]] = {
    "chatgpt": _chatgpt,
    "claude": _claude,
    "mem0": _mem0,
    "claude-mem": _claude_mem,
    "mcp-memory-service": _mcp_memory_service,
}
