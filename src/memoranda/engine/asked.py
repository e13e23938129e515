"""Sentences that a person asked to remember, with `put_aside` for hooks and `store`.

A hook has less than a second, and on a busy machine that is not enough to open the memory. So the
hook first writes the sentence to a file in `.memoranda/asked/`. The next process that opens the
home stores it as a memory.
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
    from memoranda.engine.history import HistoryVerbs

_SUFFIX = ".json"
# Named, not imported: jobs stand above the engine
_CLASSIFY = ("memoranda.jobs.classify", "category_of_text")


class Asked(NamedTuple):
    """A sentence to remember.

    id: the id of the memory it becomes. It is fixed now, so storing the sentence twice has no
        effect.
    text: its words.
    time: when it was said.
    client: the client it was said to.
    session: the session it was said in.
    """

    id: str
    text: str
    time: datetime
    client: str
    session: str


def put_aside(home: Path, request: Asked) -> Path:
    """Write a sentence to a file, from which `store_waiting` stores it. Raises OSError.

    Returns the path of the file.
    """
    folder = Layout(home).asked
    make_private(folder)
    path = folder / f"{request.id}{_SUFFIX}"
    temporary = path.with_suffix(f".{os.getpid()}")
    row = request._asdict() | {"time": stamp(request.time)}
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(json.dumps(row).encode("utf-8", "surrogatepass"))
    os.replace(temporary, path)
    return path


def store(memory: HistoryVerbs, request: Asked) -> str:
    """Store a sentence as a memory of the owner, in the category that fits, without an expiry.

    A memory that exists already stays as it is. Returns the id of the memory. Raises the errors of
    a write.
    """
    from memoranda.engine.upkeep import Upkeep
    from memoranda.note.markdown import Record

    owner = memory.as_caller(None, "hook", client=request.client, session=request.session)
    upkeep = Upkeep(owner)
    with owner.engine.writing():
        if not upkeep.is_there(request.id):
            module, name = _CLASSIFY
            category = getattr(import_module(module), name)(
                memory.settings, request.text, request.time
            )
            record = Record(
                request.id,
                request.text,
                category,
                request.time,
                request.time,
                source=f"hook-{request.client}",
            )
            upkeep.put([record], "write")
    return request.id


def store_waiting(memory: HistoryVerbs) -> int:
    """Store the sentences that hooks put aside in the home of `memory`. Returns how many.

    A sentence that cannot be stored now waits for the next process. Sentences with secrets are
    dropped.
    """
    if memory.only_reads:
        return 0
    stored = 0
    for path, request in _waiting_files(memory.home):
        try:
            if not memory.gate_rules().find(request.text, "secret"):
                store(memory, request)
                stored += 1
        except MemorandaError:
            # The home is locked or cannot be written, so the file is kept
            continue
        with suppress(OSError):
            path.unlink()
    return stored


def _waiting_files(home: Path) -> Iterator[tuple[Path, Asked]]:
    """The waiting files with their sentences, oldest first. Damaged files are left out."""
    try:
        paths = [Path(entry.path) for entry in os.scandir(Layout(home).asked)]
    except OSError:
        return
    requests = []
    for path in paths:
        if path.suffix == _SUFFIX:
            with suppress(OSError, ValueError, TypeError, KeyError):
                row: dict[str, Any] = json.loads(path.read_bytes())
                row["time"] = parse_stamp(row["time"])
                requests.append((path, Asked(**row)))
    yield from sorted(requests, key=lambda pair: pair[1].time)
