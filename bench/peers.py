"""Ours beside other memory servers: the same work, over MCP on stdio, in one run.

    python bench/peers.py [--notes 300] [--svg FILE] [--basic-memory PROGRAM]
        [--server-memory FILE] [--agent-memory PROGRAM]

Each server gets a new, empty folder. It starts, stores notes one by one, is searched for a rare
word, and reads notes by name. Ours does each work through the tools of the server it is compared with
(`memory mcp --as NAME --no-daemon`), so both answer the same calls. A peer without its option is
not measured. The options are:

- `--basic-memory`: the program `basic-memory` of a virtual environment (Python 3.12 or later);
- `--server-memory`: `dist/index.js` of the npm package @modelcontextprotocol/server-memory;
- `--agent-memory`: a program that serves the tools of the key-value server agent-memory. The
  package `agent-memory-mcp` of PyPI is another program.

Times are medians of one call: by the clock, and of the server's processor time, which other
programs at work hardly change. Linux only: processor time and memory are read from /proc.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
for place in (HERE, SOURCE):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

from graph import Call, Client  # noqa: E402

OURS = "memoranda"
# Calls of each kind that look something up.
_LOOKED_UP = 50
# The words that every note has. One more word is in that note alone.
_WORDS = "the release of the garden server waits for a review of its configuration by the owner"
# Clock ticks of /proc in a second, and bytes of a page of memory.
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

# The picture: colours of ours and of the peer, and lengths in pixels.
_COLOURS = ("#2b6cb0", "#d6a44c")
_WIDTH = 720
_LABEL = 230
_BAR = 12
_GAP = 10


@dataclass(frozen=True)
class Work:
    """What a server is asked to do, in the tools of one interface."""

    store: Callable[[int], Call]
    search: Callable[[int], Call]
    read: Callable[[int], Call]


@dataclass(frozen=True)
class Server:
    """A server of one interface. `env` is given the folder of its notes."""

    name: str
    program: Sequence[str]
    env: Callable[[str], dict[str, str]]


@dataclass(frozen=True)
class Figure:
    """One figure of a server."""

    label: str
    unit: str
    value: float


def text_of(number: int) -> str:
    """The text of a note; `only…` is in no other."""
    return f"Note {number}: {_WORDS}. {_WORDS.capitalize()}. only{number}x"


NOTES = Work(
    store=lambda n: (
        "write_note",
        {"title": f"Note {n}", "content": text_of(n), "directory": "notes"},
    ),
    search=lambda n: ("search_notes", {"query": f"only{n}x"}),
    read=lambda n: ("read_note", {"identifier": f"notes/note-{n}"}),
)
GRAPH = Work(
    store=lambda n: (
        "create_entities",
        {
            "entities": [
                {"name": f"Note {n}", "entityType": "note", "observations": [text_of(n)]},
            ]
        },
    ),
    search=lambda n: ("search_nodes", {"query": f"only{n}x"}),
    read=lambda n: ("open_nodes", {"names": [f"Note {n}"]}),
)
ENTRIES = Work(
    store=lambda n: (
        "memory_remember",
        {"key": f"note-{n}", "value": text_of(n), "namespace": "notes"},
    ),
    search=lambda n: ("memory_search", {"query": f"only{n}x"}),
    read=lambda n: ("memory_recall", {"key": f"note-{n}", "namespace": "notes"}),
)


def ours(preset: str) -> Server:
    """Our server in the manner of another one."""
    program = [sys.executable, "-m", "memoranda", "mcp", "--as", preset, "--no-daemon"]

    def env(folder: str) -> dict[str, str]:
        return {"PYTHONPATH": str(SOURCE), "MEMORY_HOME": f"{folder}/home", **_places(folder)}

    return Server(OURS, program, env)


def _places(folder: str) -> dict[str, str]:
    """Where servers keep their data, by the variables that tell them."""
    return {
        "HOME": folder,
        "MEMORY_FILE_PATH": f"{folder}/graph.jsonl",
        "AGENT_MEMORY_PATH": f"{folder}/entries",
        "BASIC_MEMORY_HOME": f"{folder}/vault",
        "BASIC_MEMORY_CONFIG_DIR": f"{folder}/config",
        # It would load a model from the network
        "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
    }


def measured(server: Server, work: Work, notes: int) -> list[Figure]:
    """The figures of one server with this many notes."""
    with tempfile.TemporaryDirectory(prefix="memoranda-peers-") as folder:
        os.mkdir(f"{folder}/vault")
        begin = time.perf_counter()
        client = Client(server.program, **server.env(folder))
        try:
            client._ask("tools/list", {})
            figures = [
                Figure("start, until tools/list", "ms", (time.perf_counter() - begin) * 1000),
                Figure("start, processor", "ms", _processor_ms(client)),
            ]
            figures += _of_calls(client, "store a note", [work.store(n) for n in range(notes)])
            numbers = [n * notes // _LOOKED_UP for n in range(_LOOKED_UP)]
            figures += _of_calls(client, "find a rare word", list(map(work.search, numbers)))
            figures += _of_calls(client, "read a note", list(map(work.read, numbers)))
            figures.append(Figure("memory", "MB", _resident_mb(client)))
            return figures
        finally:
            client.close()


def _of_calls(client: Client, name: str, calls: Sequence[Call]) -> list[Figure]:
    """The median time of calls, and the processor time that one took on average."""
    before = _processor_ms(client)
    times = [client.milliseconds(call) for call in calls]
    spent = (_processor_ms(client) - before) / len(calls)
    return [Figure(name, "ms", median(times)), Figure(f"{name}, processor", "ms", spent)]


def _processor_ms(client: Client) -> float:
    """The processor time a server took so far, with that of its threads."""
    stat = Path(f"/proc/{client.process.pid}/stat").read_text("utf-8")
    # Behind the name of the program, which may hold blanks
    fields = stat.rpartition(")")[2].split()
    user, system = fields[11:13]
    return (int(user) + int(system)) / _TICKS * 1000


def _resident_mb(client: Client) -> float:
    pages = Path(f"/proc/{client.process.pid}/statm").read_text("utf-8").split()[1]
    return int(pages) * _PAGE / 1_000_000


def table(peer: str, rows: Sequence[tuple[Figure, Figure]]) -> str:
    """Ours and the peer's, and how many times ours the peer's is."""
    lines = [f"| beside {peer} | {OURS} | {peer} | times |", "|---|---|---|---|"]
    for own_figure, peer_figure in rows:
        times = f"{peer_figure.value / own_figure.value:.1f}" if own_figure.value else ""
        lines.append(
            f"| {own_figure.label} | {own_figure.value:.1f} {own_figure.unit} "
            f"| {peer_figure.value:.1f} {peer_figure.unit} | {times} |"
        )
    return "\n".join(lines)


def drawn(tables: dict[str, list[tuple[Figure, Figure]]]) -> str:
    """The figures by the clock as bars, each pair to its own scale."""
    parts = []
    top = 20.0
    for peer, rows in tables.items():
        parts.append(_text(8, top, f"{OURS} beside {peer}", weight="bold"))
        top += 10
        for pair in rows:
            if pair[0].label.endswith("processor"):
                continue
            parts.append(_text(_LABEL - 8, top + _BAR + 3, pair[0].label, anchor="end"))
            longest = max(figure.value for figure in pair)
            for figure, colour in zip(pair, _COLOURS, strict=True):
                width = (_WIDTH - _LABEL - 80) * figure.value / longest
                parts.append(
                    f'<rect x="{_LABEL}" y="{top}" width="{width:.1f}" height="{_BAR - 1}"'
                    f' fill="{colour}"/>'
                )
                parts.append(
                    _text(_LABEL + width + 4, top + 9, f"{figure.value:.1f} {figure.unit}")
                )
                top += _BAR
            top += _GAP
        top += 24
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top:.0f}"'
        ' font-family="sans-serif" font-size="11">\n'
        f"<title>{OURS} (blue) beside other servers (yellow): shorter is better</title>\n"
        f'<rect width="{_WIDTH}" height="{top:.0f}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _text(left: float, top: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
        f' fill="#222">{escape(text)}</text>'
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the peers whose programs were named, and print the tables."""
    options = _arguments(arguments)
    peers = [
        ("Basic Memory", "basic-memory", NOTES, options.basic_memory, ["mcp"]),
        ("server-memory", "server-memory", GRAPH, options.server_memory, []),
        ("agent-memory", "agent-memory", ENTRIES, options.agent_memory, []),
    ]
    tables = {}
    for name, preset, work, program, more in peers:
        if program is None:
            print(f"{name}: not measured, its program was not named", file=sys.stderr)
            continue
        start = ["node", program] if program.endswith(".js") else [program]
        peer = Server(name, [*start, *more], _places)
        own_figures = measured(ours(preset), work, options.notes)
        tables[name] = list(zip(own_figures, measured(peer, work, options.notes), strict=True))
        print(table(name, tables[name]), end="\n\n", flush=True)
    if options.svg is not None:
        options.svg.write_text(drawn(tables), encoding="utf-8")
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--notes", type=int, default=300, help="notes that are stored [300]")
    parser.add_argument("--svg", type=Path, help="where the picture is written")
    for peer in ("basic-memory", "server-memory", "agent-memory"):
        parser.add_argument(f"--{peer}", metavar="PROGRAM", help="see above")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
