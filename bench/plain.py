"""The raw baselines: what the same work costs without anything of ours around it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from memoranda.text.tokens import fts_text, query_text


def write(folder: Path, name: str, data: bytes) -> None:
    """A durable file: temp file, fsync, rename, fsync of the folder."""
    temp = os.fspath(folder / f".{name}.tmp")
    fd = os.open(temp, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(temp, folder / name)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def files(folder: Path) -> Iterator[str]:
    """All Markdown files below `folder`."""
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".md"):
                yield os.path.join(place, name)


def stat_all(folder: Path) -> int:
    """A stat of every file below `folder`; gives how many."""
    count = 0
    waiting = [os.fspath(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def index(folder: Path, database: Path) -> None:
    """All texts below `folder` in one FTS5 table that keeps them, in one transaction; no note is
    looked into.
    """
    db = sqlite3.connect(database, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute(
        "create virtual table words using fts5(body, tokenize = 'unicode61 remove_diacritics 2')"
    )
    db.execute("begin")
    for path in files(folder):
        with open(path, encoding="utf-8") as stream:
            db.execute("insert into words values (?)", (fts_text(stream.read()),))
    db.execute("commit")
    db.close()


def search(db: sqlite3.Connection, expression: str) -> list[Any]:
    """The ten best rows of the plain table by bm25."""
    return db.execute(
        "select rowid, rank from words where words match ? order by rank limit 10", (expression,)
    ).fetchall()


def expression(text: str, kind: str) -> str:
    """A sample question for the plain table: the same words, quoted; Chinese as pairs, as the table
    has it.
    """
    if kind == "phrase":
        return text
    if kind == "prefix":
        return f'"{text}"*'
    return " ".join(f'"{query_text(word)[0]}"' for word in text.split())


def frontmatter(text: str) -> Any:
    """The header alone, through PyYAML's C loader."""
    end = text.find("\n---\n", 4)
    if text.startswith("---\n"):
        return yaml.load(text[4:end], getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return None


def graph(lines: Path) -> tuple[list[Any], list[Any]]:
    """All entities and relations of a JSON Lines file, read at one go."""
    rows = json.loads(f"[{lines.read_text().replace(chr(10), ',')}]")
    return [row for row in rows if row["type"] == "entity"], [
        row for row in rows if row["type"] == "relation"
    ]


def open_node(lines: Path, name: str) -> tuple[list[Any], list[Any]]:
    """An entity and the relations that touch it."""
    entities, relations = graph(lines)
    return [row for row in entities if row["name"] == name], _touching(relations, {name})


def search_nodes(lines: Path, text: str) -> tuple[list[Any], list[Any]]:
    """Entities that hold the text anywhere, and the relations that touch them."""
    entities, relations = graph(lines)
    matching = []
    for row in entities:
        if (
            text in row["name"].lower()
            or text in row["entityType"].lower()
            or any(text in observation.lower() for observation in row["observations"])
        ):
            matching.append(row)
    return matching, _touching(relations, {row["name"] for row in matching})


def create_entity(lines: Path, entity: dict[str, Any]) -> None:
    """The whole file read, one entity added, and the whole file written, without any sync."""
    entities, relations = graph(lines)
    if all(row["name"] != entity["name"] for row in entities):
        lines.write_text("\n".join(map(json.dumps, [*entities, entity, *relations])))


def write_entries(file: Path, values: dict[str, str]) -> None:
    """Key-value entries as one JSON file."""
    times = dict.fromkeys(("created_at", "accessed_at"), "2026-01-01T00:00:00Z")
    more = {**times, "expires_at": None, "access_count": 0}
    file.write_text(
        json.dumps(
            [{"key": key, "value": value, **more} for key, value in values.items()], indent=2
        )
    )


def recall(file: Path, key: str) -> str:
    """The value of a key, counted: the whole file read, and written again without any sync."""
    entries = json.loads(file.read_text())
    (entry_of_key,) = (entry for entry in entries if entry["key"] == key)
    entry_of_key["access_count"] += 1
    file.write_text(json.dumps(entries, indent=2))
    return entry_of_key["value"]


def _touching(relations: list[Any], names: set[str]) -> list[Any]:
    return [row for row in relations if row["from"] in names or row["to"] in names]
