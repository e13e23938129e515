"""What other assistants and memory servers hand out, read as memories and conversations
(docs/moving-in.md).

Each reader takes the export's own words; nothing is summed up. What a program says it remembers
becomes a memory, a conversation one note.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from memoranda.clock import EPOCH, parse_stamp, stamp
from memoranda.engine import MemorySession
from memoranda.engine.exchange import Exchange, foreign_rows
from memoranda.engine.upkeep import SOURCE_REF
from memoranda.note.frontmatter import parse, split
from memoranda.note.links import file_name, permalink_for
from memoranda.note.markdown import Record, compose_note
from memoranda.store.base import File
from memoranda.store.files import reason
from memoranda.text.unicode import flat, is_valid_unicode
from memoranda.transfer.moving import IMPORT, UPDATE, MoveAction, MovePlan, WrongStore, read_bytes

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
_CONTEXTS = {
    "model_set_context": "knowledge",
    "user_profile": "people",
    "user_instructions": "preferences",
}
"""What ChatGPT is told of its user in a conversation, and the category of it."""
_NUMBER = re.compile(r"^\s*\d+\.\s*(?:\[[^\]]*\]\.?\s*)?")
_CITED = re.compile("[ \\t]*\ue200[^\ue201]*\ue201")
_PART = re.compile(r"(?:conversations|memories|projects)-\d+.*\.zip")
"""Marks of ChatGPT where it cites something; the archives of Claude's export."""


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


Found = Iterator[Exported | tuple[str, str]]
"""What a reader finds; (name, why) for what cannot be taken."""


def plan_export(memory: MemorySession, kind: str, path: Path, project: str) -> MovePlan:
    """The plan for taking in an export of one of READERS; conversations go to the folder `kind` of
    `project`. What is there is compared: the later text counts, the other is in the history. Raises
    WrongStore, ProjectNotFound."""
    from uuid import NAMESPACE_URL, uuid5

    if not path.exists():
        raise WrongStore(f"no such file or folder: {path}")
    name = memory.project(project).name
    exchange = Exchange(memory)

    def act(items: Sequence[MoveAction]) -> None:
        records = [each.what for each in items if isinstance(each.what, Record)]
        if records:
            exchange.put(records)
        notes = [each.what for each in items if not isinstance(each.what, Record)]
        if notes:
            over = {path: old for path, _, old in notes if old is not None}
            exchange.add_files(name, [(path, data) for path, data, _ in notes], over)

    plan = MovePlan(act)
    found = list[Exported]()
    seen = set[str]()
    for each in READERS[kind](path):
        if not isinstance(each, Exported):
            plan.skipped.append(each)
        elif not (each.text.strip() or each.turns):
            plan.skipped.append((f"{kind} {each.ref}", "it has no text"))
        elif not (each.turns or is_valid_unicode(each.text + "".join(each.tags) + each.ref)):
            plan.skipped.append(
                (f"{kind} {each.ref!a}", "it holds half of a surrogate pair, which is no text")
            )
        elif each.ref not in seen:
            seen.add(each.ref)
            found.append(each)
    now = memory.clock()
    records = list[Record]()
    for each in found:
        if not each.turns:
            identity = str(uuid5(NAMESPACE_URL, f"memoranda:{kind}:{each.ref}"))
            created = each.created or now
            records.append(
                Record(
                    identity,
                    each.text,
                    each.category,
                    created,
                    each.updated or created,
                    tags=(kind, *each.tags),
                    source=kind,
                    further={SOURCE_REF: f"{kind}:{each.ref}"},
                )
            )
    known = exchange.known(each.id for each in records)
    for record in records:
        there = known.get(record.id)
        what = f"memory {' '.join(record.content.split())[:60]}"
        if there is None:
            plan.items.append(MoveAction(IMPORT, what, len(record.content), record))
        elif there[1] == record.content:
            plan.unchanged += 1
        elif record.updated > parse_stamp(there[0].updated or there[0].changed):
            plan.items.append(MoveAction(UPDATE, what, len(record.content), record))
        else:
            plan.skipped.append((what, _NEWER_HERE))
    for each in found:
        if each.turns:
            _plan_note(plan, exchange, name, kind, each)
    return plan


def _plan_note(plan: MovePlan, exchange: Exchange, project: str, kind: str, each: Exported) -> None:
    """Plan a conversation as a note; its name holds the day and its id, so that the next export
    finds it.
    """
    created = (
        each.created
        or next((when for _, when, _ in each.turns if when), None)
        or each.updated
        or EPOCH
    )
    day = created.date().isoformat()
    digest = sha256(each.ref.encode("utf-8", "replace")).hexdigest()[:8]
    path = f"{kind}/{file_name(f'{day} {digest}')}"
    parts = []
    for who, when, text in each.turns:
        parts.append(f"## {who}{f', {stamp(when)[:16]}Z' if when else ''}\n\n{text.strip()}\n")
    keys = {
        "source": kind,
        SOURCE_REF: f"{kind}:{each.ref}",
        "updated_at": stamp(each.updated or created),
    }
    note = compose_note(
        "\n" + "\n".join(parts),
        title=each.text or "Conversation",
        type=each.kind,
        tags=(kind, *each.tags),
        permalink=permalink_for(project, path),
        created=created,
        metadata=keys,
    )
    data = note.encode("utf-8", "replace")
    name = f"{project}/{path}"
    there = exchange.file(project, path)
    if there is None:
        plan.items.append(
            MoveAction(IMPORT, f"{name} ({each.text})", len(data), (path, data, None))
        )
    elif there.data == data:
        plan.unchanged += 1
    elif each.updated is not None and each.updated > _updated(there):
        plan.items.append(
            MoveAction(UPDATE, f"{name} ({each.text})", len(data), (path, data, there))
        )
    else:
        plan.skipped.append((name, _NEWER_HERE))


def _updated(file: File) -> datetime:
    """When the conversation in a note was last added to, as its header says."""
    try:
        header = parse(split(file.data.decode("utf-8", "replace")).yaml or "")
        return parse_stamp(str(header["updated_at"]))
    except (ValueError, KeyError):
        return datetime.max.replace(tzinfo=UTC)


def _members(path: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the files whose names match, in a folder, a zip and the zips an export
    comes in parts as; or of the one file `path`. Raises WrongStore."""
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.is_file() and not each.is_symlink():
                if re.fullmatch(pattern, each.name):
                    yield str(each.relative_to(path)), read_bytes(each)
                elif _PART.fullmatch(each.name):
                    yield from _zipped(each, pattern)
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
        each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)
    )


def _objects(path: Path, pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects in the JSON files whose names match, as for `_members`, each with its file's
    name.
    """
    return (
        (name, each) for name, data in _members(path, pattern) for each in _rows(_json(name, data))
    )


def _time(value: Any) -> datetime | None:
    """A time as seconds or milliseconds since 1970, or ISO 8601; None for anything else."""
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
    rows = list(_objects(path, r"conversations(-\d+)?\.json"))
    if not any("mapping" in each for _, each in rows):
        raise WrongStore(f"{path} holds no conversations.json of ChatGPT")
    saved = set[str]()
    shown = dict[str, tuple[float, str, datetime | None]]()
    for name, each in rows:
        mapping = each.get("mapping")
        ref = str(each.get("conversation_id") or each.get("id") or "")
        if not ref or not isinstance(mapping, dict):
            yield name, "it is no conversation of ChatGPT"
            continue
        turns = []
        updated = _time(each.get("update_time"))
        for identity, message in _branch(mapping, each.get("current_node")):
            content = message.get("content")
            author = message.get("author")
            text = _parts(content)
            when = _time(message.get("create_time"))
            if isinstance(author, dict):
                role = author.get("role")
            else:
                role = None
            told: dict[str, Any] = content if isinstance(content, dict) else {}
            for key in _CONTEXTS.keys() & told.keys():
                age = (updated or when or EPOCH).timestamp()
                if told[key] and age >= shown.get(key, (0.0,))[0]:
                    shown[key] = age, str(told[key]), updated or when
            if message.get("recipient") == "bio" and text.strip():
                for number, line in enumerate(
                    filter(None, (one.strip() for one in text.split("\n")))
                ):
                    saved.add(line)
                    yield Exported(f"{identity}.{number}" if number else identity, line, when)
            elif (
                role in ("user", "assistant")
                and message.get("recipient") in (None, "all")
                and text.strip()
            ):
                about = message.get("metadata")
                if isinstance(about, dict) and about.get("is_visually_hidden_from_conversation"):
                    continue
                turns.append(("You" if role == "user" else "ChatGPT", when, text))
        if turns:
            yield Exported(
                ref,
                str(each.get("title") or ""),
                _time(each.get("create_time")),
                updated,
                turns=tuple(turns),
            )
        else:
            yield f"chatgpt {ref}", "it has no text"
    for key, (_, text, when) in shown.items():
        if key == "model_set_context":
            lines = [_NUMBER.sub("", line).strip() for line in text.split("\n")]
        else:
            lines = [text]
        for line in lines:
            if line and line not in saved:
                yield Exported(
                    f"{key}:{sha256(line.encode('utf-8', 'replace')).hexdigest()[:16]}",
                    line,
                    when,
                    category=_CONTEXTS[key],
                )


def _branch(mapping: Mapping[str, Any], last: Any) -> list[tuple[str, dict[str, Any]]]:
    """The messages from the first to `last`; without one, all in their order."""
    found: list[tuple[str, dict[str, Any]]] = []
    chosen: Iterable[Any] = reversed([*mapping])
    if isinstance(last, str) and last in mapping:
        names = dict[str, None]()
        chosen = ()
        while isinstance(last, str) and last in mapping and last not in names:
            names[last] = None
            if isinstance(node := mapping[last], dict):
                last = node.get("parent")
            else:
                last = None
        chosen = names
    for name in chosen:
        node = mapping[name]
        if isinstance(node, dict) and isinstance(message := node.get("message"), dict):
            found.append((str(message.get("id") or name), message))
    return found[::-1]


def _parts(content: Any) -> str:
    """The text of a message; of a part that is none, its kind."""
    if not isinstance(content, dict):
        if isinstance(content, str):
            return content
        return ""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return str(content.get("text") or "")
    shown = []
    for each in filter(None, parts):
        # What was spoken has a text
        if isinstance(each, dict):
            shown.append(str(each.get("text") or f"[{each.get('content_type', 'part')}]"))
        else:
            shown.append(each if isinstance(each, str) else "[part]")
    return _CITED.sub("", "\n".join(shown))


def _claude(path: Path) -> Found:
    """An export of Claude: its memory, of everything and of each project, its projects and each
    conversation.
    """
    is_one = False
    for name, each in _objects(
        path, r"(conversations|memories|projects)\.json|[0-9a-f]{8}-[0-9a-f-]{27}\.json"
    ):
        ref = str(each.get("uuid") or "")
        turns = list[Turn]()
        kind = "conversation"
        if "conversations_memory" in each or "project_memories" in each:
            is_one = True
            account = str(each.get("account_uuid") or "")
            updated = _time(each.get("updated_at"))
            if isinstance(text := each.get("conversations_memory"), str) and text:
                yield Exported(f"memory:{account}", text, updated)
            told = each.get("project_memories")
            for project, text in told.items() if isinstance(told, dict) else ():
                yield Exported(
                    f"memory:{account}:{project}", str(text), updated, category="project"
                )
            continue
        if isinstance(messages := each.get("chat_messages"), list):
            said = [one for one in messages if isinstance(one, dict) and _claude_text(one).strip()]
            turns = [
                (
                    "You" if one.get("sender") == "human" else "Claude",
                    _time(one.get("created_at")),
                    _claude_text(one),
                )
                for one in said
            ]
        elif isinstance(each.get("docs"), list) or "prompt_template" in each:
            kind = "project"
            docs = each.get("docs")
            instructions = str(each.get("prompt_template") or each.get("description") or "")
            if instructions.strip():
                turns = [("Instructions", None, instructions)]
            else:
                turns = []
            for one in docs if isinstance(docs, list) else ():
                if isinstance(one, dict) and (document := str(one.get("content") or "")).strip():
                    turns.append(
                        (
                            flat(str(one.get("filename") or "Document")),
                            _time(one.get("created_at")),
                            document,
                        )
                    )
        else:
            ref = ""
        is_one = is_one or bool(ref)
        if turns and ref:
            yield Exported(
                ref,
                str(each.get("name") or ""),
                _time(each.get("created_at")),
                _time(each.get("updated_at")),
                turns=tuple(turns),
                kind=kind,
            )
        else:
            yield (
                (f"claude {ref}", "it has no text")
                if ref
                else (name, "it is no conversation of Claude")
            )
    if not is_one:
        raise WrongStore(f"{path} holds no conversations.json of Claude")


def _claude_text(message: Mapping[str, Any]) -> str:
    blocks = message.get("content")
    # `text` says of other blocks that they cannot be shown
    if isinstance(blocks, list) and blocks:
        texts = [str(each.get("text") or "") for each in blocks if isinstance(each, dict)]
    else:
        texts = [str(message.get("text") or "")]
    if text := "\n\n".join(filter(None, texts)):
        parts = [text]
    else:
        parts = []
    attached = message.get("attachments")
    for each in attached if isinstance(attached, list) else ():
        if isinstance(each, dict) and each.get("extracted_content"):
            parts.append(
                f"Attachment {each.get('file_name') or ''}:\n\n{each['extracted_content']}"
            )
    return "\n\n".join(parts)


def _mem0(path: Path) -> Found:
    """What mem0's `get_all` or OpenMemory's export gives, as JSON, JSON Lines or a zip."""
    count = 0
    for _, each in _objects(path, r".*\.(json|jsonl|jsonl\.gz)"):
        text = each.get("memory") or each.get("content") or each.get("text")
        if not isinstance(text, str) or each.get("id") is None:
            # users, apps and the like stand in the same file
            continue
        if each.get("state") == "deleted" or each.get("deleted_at"):
            yield f"mem0 {each['id']}", "it was deleted there"
            continue
        count += 1
        tags = tuple(filter(None, _listed(each.get("categories"))))
        yield Exported(
            str(each["id"]),
            text,
            _time(each.get("created_at")),
            _time(each.get("updated_at")),
            tags,
        )
    if not count:
        raise WrongStore(f"{path} holds no memories of mem0")


def _mcp_memory_service(path: Path) -> Found:
    """The database of mcp-memory-service (sqlite_vec.db), or its export as JSON."""
    place = path / "sqlite_vec.db" if path.is_dir() else path
    rows = _table(place, "memories", "content_hash")
    if rows is None:
        rows = [each for _, each in _objects(place, "")]
    if not any("content" in each for each in rows):
        raise WrongStore(f"{place} holds no memories of mcp-memory-service")
    for each in rows:
        text = each.get("content")
        ref = each.get("content_hash") or each.get("id")
        if not isinstance(text, str) or ref is None:
            yield f"mcp-memory-service {ref}", "it has no content"
        elif each.get("deleted_at"):
            yield f"mcp-memory-service {ref}", "it was deleted there"
        else:
            tags = each.get("tags")
            tags = tuple(
                one.strip()
                for one in (tags.split(",") if isinstance(tags, str) else _listed(tags))
                if one
            )
            created = _time(each.get("created_at")) or _time(each.get("created_at_iso"))
            updated = _time(each.get("updated_at")) or _time(each.get("updated_at_iso"))
            kind = str(each.get("memory_type")).lower()
            yield Exported(
                str(ref), text, created, updated, tags, _CATEGORIES.get(kind, "knowledge")
            )


def _claude_mem(path: Path) -> Found:
    """The database of claude-mem, or its export as JSON: observations, and summaries of sessions."""
    place = path / "claude-mem.db" if path.is_dir() else path
    rows, summaries = (_table(place, name, "id") for name in ("observations", "session_summaries"))
    # What its own script exports
    if rows is None:
        found = _json(place.name, read_bytes(place))
        parts: Iterable[Any] = (
            found.get(key) if isinstance(found, dict) else []
            for key in ("observations", "summaries")
        )
        rows, summaries = ([*_rows(each)] for each in parts)
    if not rows:
        raise WrongStore(f"{place} holds no observations of claude-mem")
    for each in rows:
        lines = [each.get("title"), each.get("subtitle"), each.get("narrative") or each.get("text")]
        yield _observed(
            "observation", each, [*lines, *(f"- {fact}" for fact in _listed(each.get("facts")))]
        )
    for each in summaries or ():
        names = ("request", "investigated", "learned", "completed", "next_steps", "notes")
        yield _observed(
            "summary",
            each,
            [f"{n.replace('_', ' ').capitalize()}: {each[n]}" for n in names if each.get(n)],
        )


def _observed(
    what: str, each: Mapping[str, Any], lines: Sequence[Any]
) -> Exported | tuple[str, str]:
    if each.get("id") is None:
        return f"claude-mem {what}", "it has no id"
    tags = [what, *filter(None, (each.get("project"),)), *_listed(each.get("concepts"))]
    text = "\n".join(str(line).strip() for line in lines if line and str(line).strip())
    moment = _time(each.get("created_at_epoch")) or _time(each.get("created_at"))
    category = _CATEGORIES.get(str(each.get("type")).lower(), "knowledge")
    return Exported(
        f"{what}:{each['id']}", text, moment, tags=tuple(map(str, tags)), category=category
    )


def _listed(value: Any) -> list[str]:
    """A list that a database holds as JSON."""
    try:
        if isinstance(value, str):
            value = json.loads(value)
        else:
            value = value
    except ValueError:
        return [value]
    if isinstance(value, list):
        return [str(each) for each in value if each is not None]
    return []


def _table(path: Path, name: str, key: str) -> list[dict[str, Any]] | None:
    """The rows of a table of an SQLite database that have `key`, None for a file that is none.
    Raises WrongStore.
    """
    try:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return None
        return [each for each in foreign_rows(path, name) if each.get(key) is not None]
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
