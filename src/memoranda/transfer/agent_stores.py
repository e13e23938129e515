"""Reads what agents and other memory programs keep on disk as memories (docs/moving-in.md): stores
of Anthropic's memory, notes of deja-vu, and the memory files of Codex, Gemini CLI and Copilot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from memoranda.sources.files import reason
from memoranda.transfer.exports import Exported, Found
from memoranda.transfer.moving import WrongStore

# Bytes of one file of memories.
_MOST_FILE_BYTES = 1 << 20
_STORE_MARK = ".anthropic-memory-store"
_TEXTS = (".md", ".txt", ".json", ".yaml", ".yml", ".xml", "")
# A heading: its signs, then its text.
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$", re.M)
# A list item with its indented lines.
_ITEM = re.compile(r"^[-*+]\s+(.+(?:\n(?:[ \t]+\S.*))*)", re.M)
# A heading over what an agent was asked to remember.
_MEMORIES = re.compile(r"memor|remember", re.I)
_STATES = ("rejected", "superseded", "stale")
_FOLDERS = (
    ("codex", ".codex", "memories/**/*.md"),
    ("gemini", ".gemini", "tmp/*/memory/**/*.md"),
    ("gemini", ".gemini", "memory/**/*.md"),
    ("copilot", ".copilot", "memories/**/*.md"),
)
# Files of instructions: what is under a heading about memories is one.
_FILES = (
    ("codex", ".codex/AGENTS.md"),
    ("gemini", ".gemini/GEMINI.md"),
    ("copilot", ".copilot/copilot-instructions.md"),
    ("copilot", ".github/copilot-instructions.md"),
)


def _moment(value: Any) -> datetime | None:
    """A time in ISO 8601. None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo:
        return moment
    return moment.replace(tzinfo=UTC)


def _read_text(file: Path) -> str | tuple[str, str]:
    """The text of a file, or its name and why it is left out."""
    try:
        if file.stat().st_size > _MOST_FILE_BYTES:
            return str(file), "larger than 1 MB"
        return file.read_text("utf-8-sig")
    except OSError as error:
        return str(file), reason(error)
    except UnicodeDecodeError:
        return str(file), "not UTF-8 text"


def _change_time(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def anthropic_memory(path: Path) -> Found:
    """A folder that the SDK keeps in step with a memory store, or a listing of one as JSON."""
    if path.is_file():
        yield from _entries_of_listing(path)
        return
    result = False
    for file in sorted(path.rglob("*")):
        name = "/" + file.relative_to(path).as_posix()
        is_hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
        if not file.is_file() or file.is_symlink() or is_hidden:
            continue
        result = True
        if file.suffix not in _TEXTS:
            yield name, "not a text"
            continue
        text = _read_text(file)
        yield text if isinstance(text, tuple) else Exported(name, text, None, _change_time(file))
    if not result and not (path / _STORE_MARK).exists():
        raise WrongStore(f"{path} holds no memory store")


def _entries_of_listing(path: Path) -> Found:
    """The entries of a listing: `data`, `memories` or the list itself, or a line each."""
    text = _read_text(path)
    if isinstance(text, tuple):
        raise WrongStore(f"{path}: {text[1]}")
    rows = list(_rows(text))
    if not any("path" in row for row in rows):
        raise WrongStore(f"{path} holds no listing of a memory store")
    for row in rows:
        name = str(row.get("path") or row.get("id") or "")
        content = row.get("content")
        if not isinstance(content, str):
            yield name or "an entry", "it has no content; list the store with its contents"
            continue
        created = _moment(row.get("created_at"))
        yield Exported(name, content, created, _moment(row.get("updated_at")))


def _rows(text: str) -> Iterator[dict[str, Any]]:
    try:
        values = [json.loads(text)]
    except (ValueError, RecursionError):
        values = [_json(line) for line in text.splitlines() if line.strip()]
    for value in values:
        if isinstance(value, dict):
            inner = value.get("data", value.get("memories"))
            if isinstance(inner, list):
                value = inner
            else:
                value = [value]
        yield from (row for row in value or () if isinstance(row, dict))


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def deja_vu(path: Path) -> Found:
    """The notes of deja-vu: `notes.jsonl`, or the folder it is in."""
    if path.is_dir():
        file = path / "notes.jsonl"
    else:
        file = path
    text = _read_text(file)
    if isinstance(text, tuple):
        raise WrongStore(f"{file}: {text[1]}")
    rows = [row for row in _rows(text) if isinstance(row.get("text"), str)]
    if not rows:
        raise WrongStore(f"{file} holds no notes of deja-vu")
    # A later line of a session says what holds of it now
    states = {row["session"]: row.get("state") for row in rows if row.get("session")}
    for row in rows:
        state = states.get(row.get("session")) or row.get("state")
        if state in _STATES:
            yield f"deja-vu {_deja_vu_name(row)}", f"it is {state} there"
        else:
            yield _deja_vu_note(row)


def _deja_vu_name(row: dict[str, Any]) -> str:
    """The title of a note of deja-vu: by its title, else by its first words."""
    title = str(row.get("title") or "").strip()
    return title or " ".join(row["text"].split())[:60]


def _deja_vu_note(row: dict[str, Any]) -> Exported:
    text = row["text"].strip()
    title = str(row.get("title") or "").strip()
    if title and not text.startswith(title):
        text = f"{title}\n\n{text}"
    tags = [tag for tag in row.get("tags") or () if isinstance(tag, str)]
    if row.get("project"):
        tags.append(str(row["project"]))
    written = _moment(row.get("ts"))
    created = _moment(row.get("src_ts")) or written
    # A line without a session is known by what it says.
    ref = str(row.get("session") or "") or _mark(f"{row.get('ts')} {text}")
    return Exported(ref, text, created, written or created, tuple(tags))


def agent_files(path: Path) -> Found:
    """The memory files of Codex, Gemini CLI and Copilot below a folder; or one such file."""
    if path.is_file():
        yield from _instructions("agent", path, path.name)
        return
    result = 0
    for agent, folder, pattern in _FOLDERS:
        for file in sorted((path / folder).glob(pattern)):
            if file.is_file():
                result += 1
                text = _read_text(file)
                ref = file.relative_to(path).as_posix()
                tags = (agent,)
                yield (
                    text
                    if isinstance(text, tuple)
                    else Exported(ref, text, None, _change_time(file), tags)
                )
    for agent, name in _FILES:
        if (path / name).is_file():
            result += 1
            yield from _instructions(agent, path / name, name)
    if not result:
        raise WrongStore(f"{path} holds no memories of Codex, Gemini CLI or Copilot")


def _instructions(agent: str, file: Path, name: str) -> Found:
    """The items that are in a file of instructions under a heading about memories."""
    text = _read_text(file)
    if isinstance(text, tuple):
        yield text
        return
    for section in _memory_sections(text):
        for item in _ITEM.finditer(section):
            words = " ".join(item[1].split())
            yield Exported(f"{name}#{_mark(words)}", words, None, _change_time(file), (agent,))


def _memory_sections(text: str) -> Iterator[str]:
    headings = list(_HEADING.finditer(text))
    for number, heading in enumerate(headings):
        if not _MEMORIES.search(heading[2]):
            continue
        depth = len(heading[1])
        next_headings = (other for other in headings[number + 1 :] if len(other[1]) <= depth)
        end = next((other.start() for other in next_headings), len(text))
        yield text[heading.end() : end]


def _mark(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


STORES: Mapping[str, Callable[[Path], Found]] = {
    "anthropic-memory": anthropic_memory,
    "deja-vu": deja_vu,
    "agent-files": agent_files,
}
"""The readers by their names for `memory import --from`."""
