"""Figures of what shows many notes at once: folders, filters by a list of values, the page's questions
and clusters, by processor time, since others load a machine; and answers over a connection of HTTP that is
kept, by the clock.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from ground import Ground
from memoranda.engine import MemorySession, open_session
from memoranda.faces import registry
from memoranda.faces.tool import Registry
from memoranda.serve.page.graph.view import drawing
from outside import MEMORY, environment
from table import Budget, Row, milliseconds

FOLDER_MS = 12.0
VALUES_MS = 10.0
REVIEW_MS = 200.0
CLUSTERS_MS = 500.0
HTTP_MS = 2.0
ROUNDS = 25
VALUES = 200
# Values that the notes of the folder have between them.
_TOPICS = 1_000
_PROJECT = "flat"


def lists(ground: Ground) -> list[Row]:
    """A page of a folder that holds all notes, and a filter by many values of a header key."""
    with open_session(ground.folder / "flat-home") as memory:
        memory.add_project(_PROJECT, str(_flat_folder(ground.folder / "flat", ground.notes)))
        memory.sync()
        call = partial(_answer, registry(["notes"], memory.settings), memory)
        folder = {"project": _PROJECT, "dir_name": "all"}
        topics = [f"topic{number}" for number in Random(4).sample(range(_TOPICS), VALUES)]
        filters = {"project": _PROJECT, "metadata_filters": {"topic": {"$in": topics}}}
        return [
            _row(
                "list_directory, {:,} notes in a folder",
                ground,
                FOLDER_MS,
                call,
                "list_directory",
                folder,
            ),
            _row(
                f"$in of {VALUES} values, {{:,}} notes",
                ground,
                VALUES_MS,
                call,
                "search_notes",
                filters,
            ),
        ]


def _flat_folder(root: Path, notes: int) -> Path:
    """Make a folder with `notes` notes, each about one topic."""
    folder = root / "all"
    folder.mkdir(parents=True)
    for number in range(notes):
        text = f"---\ntopic: topic{number % _TOPICS}\n---\n# Note {number}\n\nOne of many.\n"
        file = folder / f"note-{number:06}.md"
        file.write_text(text, encoding="utf-8")
    return root


def _row(
    label: str,
    ground: Ground,
    most: float,
    call: Callable[[str, dict[str, Any]], None],
    tool: str,
    arguments: dict[str, Any],
) -> Row:
    call(tool, arguments)
    times = [_processor_ms(partial(call, tool, arguments)) for _ in range(ROUNDS)]
    return Row(label.format(ground.notes), "ms", times, budget=Budget(most=most))


def _answer(tools: Registry, memory: MemorySession, tool: str, arguments: dict[str, Any]) -> None:
    """One tool call. Raises RuntimeError when the tool refuses."""
    reply = tools.call(memory, tool, arguments)
    if reply.is_error:
        raise RuntimeError(f"{tool} was refused: {reply.text}")


def _processor_ms(call: Callable[[], object]) -> float:
    """The milliseconds of this process's processor time that one call takes."""
    begin = time.process_time()
    call()
    return (time.process_time() - begin) * 1e3


def page(ground: Ground) -> list[Row]:
    """The questions of Review and the clusters of Graph, as a page that is opened first finds them,
    and as one does later, where nothing changed since."""
    home = ground.home(ground.notes)
    rows = []
    for label, most, look in (
        ("page: the questions of Review", REVIEW_MS, _review),
        ("page: the clusters of Graph", CLUSTERS_MS, _clusters),
    ):
        first = []
        for _ in range(3):
            with open_session(home) as memory:
                memory.sync()
                first.append(_processor_ms(partial(look, memory)))
                later = [_processor_ms(partial(look, memory)) for _ in range(ROUNDS)]
        rows.append(
            Row(f"{label}, {ground.notes:,} notes, first", "ms", first, budget=Budget(most=most))
        )
        rows.append(Row("  later", "ms", later, budget=Budget(most=most)))
    return rows


def _review(memory: MemorySession) -> None:
    memory.review(limit=20)


def _clusters(memory: MemorySession) -> None:
    visit: Any = SimpleNamespace(
        memory=memory, fields={}, language="en", number=lambda name, default: default
    )
    drawing(visit)


def http_answers(ground: Ground) -> list[Row]:
    """Calls over one connection that is kept, by the clock."""
    home = ground.home(ground.small)
    with _http_server(home) as (host, port):
        connection = http.client.HTTPConnection(host, port, timeout=30)
        try:
            ask = partial(_posted, connection)
            ask()
            times = [milliseconds(ask) for _ in range(ROUNDS * 8)]
        finally:
            connection.close()
    return [Row("an answer over a kept connection", "ms", times, budget=Budget(most=HTTP_MS))]


@contextmanager
def _http_server(home: Path) -> Iterator[tuple[str, int]]:
    command = [*MEMORY, "serve", "--home", str(home), "--interval", "1h"]
    command += ["--http", "127.0.0.1:0", "--no-token"]
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        text=True,
    )
    with server:
        try:
            address = None
            while address is None:
                line = server.stdout.readline()
                if not line:
                    raise RuntimeError("the server did not start")
                address = re.search(r"http://([\d.]+):(\d+)", line)
            yield address[1], int(address[2])
        finally:
            server.terminate()


def _posted(connection: http.client.HTTPConnection) -> None:
    """One call of a tool that reads. Raises RuntimeError when it is refused."""
    call = {"name": "recent_activity", "arguments": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    connection.request("POST", "/mcp", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"refused: {answer.status} {text[:200]!r}")
