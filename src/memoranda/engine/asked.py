"""Sentences that a person asked to remember, stored at once or from a small file in the home.

A hook has less than a second, and on a busy machine that is not enough to open the memory. So it
first writes what it was asked into `.memoranda/asked/`. The next process that opens the home stores
it.
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
    """Write a file from which `store_waiting` stores this. Raises OSError."""
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
    """Store a sentence as the owner's, organized in the category it belongs to, without an end.

    What is there already stays as it is. Returns the id of the memory. Raises what a write raises.
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
    """Store what hooks put aside in the home of `memory`; returns how many. What cannot be stored
    now waits for the next process. Secrets are not stored.
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
            # The home is kept locked, or cannot be written: the file stays
            continue
        with suppress(OSError):
            path.unlink()
    return stored


def _waiting_files(home: Path) -> Iterator[tuple[Path, Asked]]:
    """The files that wait, oldest first, and what they say; a damaged one is left out."""
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
