"""Sentences that a person asked to remember: hooks put them aside, and other processes store them.

A hook has less than a second. On a busy machine, this is not enough to open the memory. So the hook
first writes the sentence to a file in `.memoranda/asked/` (`put_aside`). The next process that
opens the home stores the sentence as a memory (`store_waiting`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.clock import parse_stamp, stamp
from memoranda.errors import MemorandaError
from memoranda.sources.files import make_private
from memoranda.sources.layout import Layout

if TYPE_CHECKING:
    from memoranda.engine.history.verbs import HistoryVerbs

_SUFFIX = ".json"
# The module is only named here, because the engine may not import the jobs.
_CLASSIFY = ("memoranda.jobs.classify", "category_of_text")


class Asked(NamedTuple):
    """A sentence to remember.

    id: the id of the memory that the sentence becomes. It is chosen here, so that storing the
        sentence twice makes only one memory.
    text: the words of the sentence.
    time: when the person wrote the sentence.
    client: the client in which the person wrote it.
    session: the session of the client.
    """

    id: str
    text: str
    time: datetime
    client: str
    session: str


def put_aside(home: Path, request: Asked) -> Path:
    """Write a sentence to a file, and return the path of the file. Raises OSError.

    `store_waiting` stores the sentence later.
    """
    path = _path_of(home, request)
    make_private(path.parent)
    temporary = path.with_suffix(f".{os.getpid()}")
    row = request._asdict() | {"time": stamp(request.time)}
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(row).encode("utf-8", "surrogatepass"))
        os.replace(temporary, path)
    except OSError:
        # A full disk takes the name of a file, but not its words.
        temporary.unlink(missing_ok=True)
        raise
    return path


def is_put_aside(home: Path, request: Asked) -> bool:
    """Whether a sentence is in a file, so that a later process stores it."""
    return _path_of(home, request).exists()


def _path_of(home: Path, request: Asked) -> Path:
    """Return the path of the file that a sentence is put aside in."""
    return Layout(home).asked / f"{request.id}{_SUFFIX}"


def store(memory: HistoryVerbs, request: Asked) -> str:
    """Store a sentence as a memory of the owner, and return the id of the memory.

    The memory gets the category that fits best, and does not expire. If the memory exists already,
    it stays as it is. Raises the errors of a write.
    """
    from memoranda.engine.upkeep import Upkeep
    from memoranda.note.markdown import Record

    owner = memory.as_caller(
        agent=None, face="hook", client=request.client, session=request.session
    )
    upkeep = Upkeep(owner)
    with owner.engine.writing():
        if not upkeep.is_there(request.id):
            module, name = _CLASSIFY
            category_of_text = getattr(import_module(module), name)
            category = category_of_text(memory.settings, request.text, request.time)
            record = Record(
                id=request.id,
                content=request.text,
                category=category,
                created=request.time,
                updated=request.time,
                source=f"hook-{request.client}",
            )
            upkeep.put([record], "write")
    return request.id


def store_waiting(memory: HistoryVerbs) -> int:
    """Store the sentences that hooks have written to files in the home, and return their number.

    If a sentence cannot be stored now, its file stays for the next process. A sentence with a
    secret is dropped.
    """
    if memory.only_reads:
        return 0
    stored_count = 0
    for path, request in _waiting_files(memory.home):
        try:
            has_secret = bool(memory.gate_rules().find(request.text, "secret"))
            if not has_secret:
                store(memory, request)
                stored_count += 1
        except MemorandaError:
            # The home is locked or cannot be written. The file stays for the next process.
            continue
        with suppress(OSError):
            path.unlink()
    return stored_count


def _waiting_files(home: Path) -> Iterator[tuple[Path, Asked]]:
    """Yield the files with sentences, and the sentence in each, the oldest first.

    Damaged files are left out.
    """
    try:
        paths = [Path(entry.path) for entry in os.scandir(Layout(home).asked)]
    except OSError:
        return
    requests: list[tuple[Path, Asked]] = []
    for path in paths:
        if path.suffix == _SUFFIX:
            with suppress(OSError, ValueError, TypeError, KeyError):
                row: dict[str, Any] = json.loads(path.read_bytes())
                row["time"] = parse_stamp(row["time"])
                requests.append((path, Asked(**row)))
    yield from sorted(requests, key=lambda pair: pair[1].time)
