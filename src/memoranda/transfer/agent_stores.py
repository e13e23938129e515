"""Read memories that agents and other programs keep on disk (docs/moving-in.md).

There are readers for stores of Anthropic's memory, for notes of deja-vu, and for the memory files of
Codex, Gemini CLI and Copilot. Each yields `Exported` items, and `LeftOut` for what is left out.
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
from memoranda.transfer.exports import Exported, Found, LeftOut
from memoranda.transfer.moving import WrongStore, files_below

# The number of bytes of the largest file of memories that is read.
_MOST_FILE_BYTES = 1 << 20
STORE_MARK = ".anthropic-memory-store"
_TEXTS = (".md", ".txt", ".json", ".yaml", ".yml", ".xml", "")
# A heading: its signs, then its text.
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$", re.M)
# A list item with its indented lines.
_ITEM = re.compile(r"^[-*+]\s+(.+(?:\n(?:[ \t]+\S.*))*)", re.M)
# A heading over what an agent was asked to remember.
_MEMORIES = re.compile(r"memor|remember", re.I)
# The states of notes of deja-vu that are no longer valid.
_INVALID_STATES = ("rejected", "superseded", "stale")
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
    """Read a time in ISO 8601, in UTC if it has no offset. None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo:
        return moment
    return moment.replace(tzinfo=UTC)


def _read_text(file: Path) -> str | LeftOut:
    """Return the text of a file, or why the file is left out."""
    try:
        if file.stat().st_size > _MOST_FILE_BYTES:
            return LeftOut(str(file), "larger than 1 MB")
        return file.read_text("utf-8-sig")
    except OSError as error:
        return LeftOut(str(file), reason(error))
    except UnicodeDecodeError:
        return LeftOut(str(file), "not UTF-8 text")


def _read_store(file: Path) -> str:
    """Return the text of a file that is a whole store. Raises WrongStore if it cannot be read."""
    text = _read_text(file)
    if isinstance(text, LeftOut):
        raise WrongStore(f"{file}: {text.reason}")
    return text


def _whole_file(name: str, file: Path, tags: tuple[str, ...] = ()) -> Exported | LeftOut:
    """Return the text of a file as one memory, or why the file is left out.

    name: the name of the memory, by which it is recognized when it is imported again.
    """
    text = _read_text(file)
    if isinstance(text, LeftOut):
        return text
    return Exported(ref=name, text=text, created=None, updated=_change_time(file), tags=tags)


def _change_time(file: Path) -> datetime:
    """Return when a file was last changed."""
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def anthropic_memory(path: Path) -> Found:
    """Read a memory store of Anthropic: the SDK's folder with it, or a listing of it as JSON."""
    if path.is_file():
        yield from _entries_of_listing(path)
        return

    # The name of an entry is its path in the folder.
    has_files = False
    for entry in files_below(path, lambda name: not name.startswith(".")):
        if entry.refused:
            continue
        has_files = True
        file = path / entry.path
        name = f"/{entry.path}"
        if file.suffix not in _TEXTS:
            yield LeftOut(name, "not a text")
            continue
        yield _whole_file(name, file)
    # A store without entries has only this mark.
    if not has_files and not (path / STORE_MARK).exists():
        raise WrongStore(f"{path} holds no memory store")


def _entries_of_listing(path: Path) -> Found:
    """Read the entries of a listing: a list, an object with `data` or `memories`, or JSON Lines."""
    rows = list(_rows(_read_store(path)))
    if not any("path" in row for row in rows):
        raise WrongStore(f"{path} holds no listing of a memory store")
    for row in rows:
        name = str(row.get("path") or row.get("id") or "")
        content = row.get("content")
        if not isinstance(content, str):
            why = "it has no content; list the store with its contents"
            yield LeftOut(name or "an entry", why)
            continue
        created = _moment(row.get("created_at"))
        yield Exported(name, content, created, _moment(row.get("updated_at")))


def _rows(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in a text of JSON, or in lines of JSON.

    For an object with a list as `data` or `memories`, the objects of the list are yielded.
    """
    try:
        values = [json.loads(text)]
    except (ValueError, RecursionError):
        values = [_json(line) for line in text.splitlines() if line.strip()]

    for value in values:
        for row in _rows_of_value(value):
            if isinstance(row, dict):
                yield row


def _rows_of_value(value: Any) -> list[Any]:
    """Return the rows in a value of JSON: a list, an object with a list, or one object.

    `{"data": [{"path": "/a"}]}` has the row `{"path": "/a"}`.
    """
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        inner_list = value.get("data", value.get("memories"))
        if isinstance(inner_list, list):
            return inner_list
    return [value]


def _json(line: str) -> Any:
    """Read a line of JSON. None if it is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def deja_vu(path: Path) -> Found:
    """Read the notes of deja-vu. Notes that are no longer valid there are left out.

    Each line of the file has a note: `{"text": "We use Postgres", "session": "s1", "state": "stale"}`.
    This one yields `LeftOut("deja-vu We use Postgres", "it is stale there")`.

    path: the file `notes.jsonl`, or its folder.

    Raises WrongStore if the file cannot be read, or has no such notes.
    """
    file = path / "notes.jsonl" if path.is_dir() else path
    rows = [row for row in _rows(_read_store(file)) if isinstance(row.get("text"), str)]
    if not rows:
        raise WrongStore(f"{file} holds no notes of deja-vu")
    # A session may have several lines. The state in the last one is the state of all its notes.
    states = {str(row["session"]): row.get("state") for row in rows if row.get("session")}
    for row in rows:
        state = states.get(str(row.get("session") or "")) or row.get("state")
        if state in _INVALID_STATES:
            yield LeftOut(f"deja-vu {_deja_vu_name(row)}", f"it is {state} there")
        else:
            yield _deja_vu_note(row)


def _deja_vu_name(row: dict[str, Any]) -> str:
    """Return the title of a note of deja-vu, or else its first words."""
    title = str(row.get("title") or "").strip()
    return title or " ".join(row["text"].split())[:60]


def _deja_vu_note(row: dict[str, Any]) -> Exported:
    """Turn a note of deja-vu into a memory, with its project as a tag."""
    text = row["text"].strip()
    title = str(row.get("title") or "").strip()
    if title and not text.startswith(title):
        text = f"{title}\n\n{text}"

    values = row.get("tags")
    tags = [tag for tag in values if isinstance(tag, str)] if isinstance(values, list) else []
    if row.get("project"):
        tags.append(str(row["project"]))
    written = _moment(row.get("ts"))
    created = _moment(row.get("src_ts")) or written
    # A line without a session is recognized by its text when it is imported again.
    ref = str(row.get("session") or "") or _mark(f"{row.get('ts')} {text}")
    return Exported(
        ref=ref, text=text, created=created, updated=written or created, tags=tuple(tags)
    )


def agent_files(path: Path) -> Found:
    """Read the memory files of Codex, Gemini CLI and Copilot.

    path: the folder that contains `.codex`, `.gemini` and so on, or a single file of instructions.
    """
    if path.is_file():
        yield from _instructions("agent", path, path.name)
        return
    has_files = False
    for agent, folder, pattern in _FOLDERS:
        for file in sorted((path / folder).glob(pattern)):
            if not file.is_file():
                continue
            has_files = True
            name = file.relative_to(path).as_posix()
            yield _whole_file(name, file, tags=(agent,))
    for agent, name in _FILES:
        if (path / name).is_file():
            has_files = True
            yield from _instructions(agent, path / name, name)
    if not has_files:
        raise WrongStore(f"{path} holds no memories of Codex, Gemini CLI or Copilot")


def _instructions(agent: str, file: Path, name: str) -> Found:
    """Read the list items that a file of instructions has under a heading about memories.

    name: the name of the file, for the ids of its memories.
    """
    text = _read_text(file)
    if isinstance(text, LeftOut):
        yield text
        return
    for section in _memory_sections(text):
        for item in _ITEM.finditer(section):
            words = " ".join(item[1].split())
            yield Exported(
                ref=f"{name}#{_mark(words)}",
                text=words,
                created=None,
                updated=_change_time(file),
                tags=(agent,),
            )


def _memory_sections(text: str) -> Iterator[str]:
    """Yield the text below each heading such as `## Memories`, up to the next heading of its depth."""
    headings = list(_HEADING.finditer(text))
    for number, heading in enumerate(headings):
        if not _MEMORIES.search(heading[2]):
            continue
        depth = len(heading[1])
        end = len(text)
        for next_heading in headings[number + 1 :]:
            # A deeper heading belongs to this section
            if len(next_heading[1]) <= depth:
                end = next_heading.start()
                break
        yield text[heading.end() : end]


def _mark(text: str) -> str:
    """Return a digest of a text, as a part of an id."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


STORES: Mapping[str, Callable[[Path], Found]] = {
    "anthropic-memory": anthropic_memory,
    "deja-vu": deja_vu,
    "agent-files": agent_files,
}
"""The readers by their names for `memory import --from`."""
