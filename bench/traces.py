"""Speed of transcripts: how long the first index of generated transcripts takes, a day's work after
it, and a look-up. Processor seconds, as other programs may be running.

    python bench/traces.py --megabytes 200
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path

from memoranda.text.gate import default_rules
from memoranda.transcripts.index import TraceIndex
from memoranda.transcripts.mask import Mask
from memoranda.transcripts.search import TraceFilter, find
from memoranda.transcripts.sync import sync

_TEXT = """
the a cache of index parser module returns error when value is missing from config and
test fails because handler writes null before commit so we move check into loop then retry
request with timeout session token user database query plan scan table lock thread pool
socket buffer stream file path folder import package version build release branch merge
review note memory agent tool command output line column width color theme button form
page route server client proxy queue worker job task schedule event hook plugin setting
flag option default limit budget metric log trace span
"""
WORDS = _TEXT.split()
# The name of a session in exchanges that any session may have.
_NAME = "(session)"
# Exchanges that sessions are made of: about 50 MB.
_POOL = 6_000


def _sentence(chance: random.Random, words: list[str], length: int) -> str:
    return " ".join(chance.choice(words) for _ in range(length)).capitalize() + "."


def _exchange(chance: random.Random, words: list[str], turn: int) -> bytes:
    """An exchange of Claude Code, mostly what a tool gave back, as in life."""
    moment = f"2026-{chance.randint(1, 11):02d}-{chance.randint(1, 28):02d}T10:{turn % 60:02d}:00Z"
    about = {"sessionId": _NAME, "cwd": f"/work/p{chance.randint(0, 40)}", "timestamp": moment}
    call = f"t{turn}"
    command = f"make {chance.choice(words)} {chance.choice(words)}"
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
    output = "\n".join(_sentence(chance, words, 12) for _ in range(chance.randint(5, 120)))
    result: dict[str, object] = {"type": "tool_result", "tool_use_id": call, "content": output}
    if chance.random() < 0.1:
        result |= {"is_error": True, "content": f"Exit code 1\n{output}"}
    user_text = " ".join(_sentence(chance, words, 14) for _ in range(2))
    answer = " ".join(_sentence(chance, words, 18) for _ in range(6))
    messages = (
        ("user", user_text),
        ("assistant", [use]),
        ("user", [result]),
        ("assistant", [{"type": "text", "text": answer}]),
    )
    lines = []
    for role, content in messages:
        message = {"role": role, "content": content}
        lines.append(json.dumps({"type": role, "message": message, **about}) + "\n")
    return "".join(lines).encode()


class Generator:
    """Writes sessions of Claude Code, each of other exchanges in another order."""

    def __init__(self, projects: Path, chance: random.Random):
        self._projects = projects
        self._chance = chance
        self._number = 0
        letters = "abcdefghijklmnopqrstuvwxyz"
        names = ["".join(chance.choices(letters, k=8)) for _ in range(20_000)]
        words = WORDS * 40 + names
        # Composing sentences takes longer than indexing them, so that they are used again.
        self._pool = [_exchange(chance, words, turn) for turn in range(_POOL)]

    def write(self, megabytes: int) -> None:
        """Write new sessions of `megabytes` in all."""
        bytes_left = megabytes << 20
        while bytes_left > 0:
            size = min(bytes_left, self._chance.randint(200_000, 2_000_000))
            text = self._session(f"s{self._number:07}", size)
            place = self._projects / f"-work-p{self._number % 40}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"s{self._number:07}.jsonl").write_bytes(text)
            bytes_left -= len(text)
            self._number += 1

    def _session(self, name: str, size: int) -> bytes:
        exchanges = []
        total = 0
        while total < size:
            exchange = self._chance.choice(self._pool)
            exchanges.append(exchange)
            total += len(exchange)
        return b"".join(exchanges).replace(_NAME.encode(), name.encode())


def _processor_seconds() -> float:
    """Of this process and of those it waited for."""
    return sum(os.times()[:4])


def _timed(label: str, megabytes: float, path: Path, mask: Mask) -> None:
    wall = time.monotonic()
    cpu = _processor_seconds()
    synced = sync(path, mask)
    cpu = _processor_seconds() - cpu
    wall = time.monotonic() - wall
    rate = ""
    if megabytes and cpu:
        rate = f", {megabytes / cpu:.1f} MB/s"
    counts = f"{synced.files} files, {synced.turns} turns"
    print(f"{label}: {counts}, {cpu:.2f} s cpu{rate}, {wall:.2f} s wall", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--megabytes", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--folder", help="where to write (default: a temporary folder)")
    arguments = options.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        person = Path(folder)
        os.environ["HOME"] = str(person)
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            os.environ.pop(name, None)
        projects = person / ".claude" / "projects"
        generator = Generator(projects, chance)
        generator.write(arguments.megabytes)
        size = sum(file.stat().st_size for file in projects.rglob("*.jsonl"))
        print(f"generated {size >> 20} MB", flush=True)
        mask = Mask(default_rules())
        path = person / "transcripts.db"
        _timed("first index", size / (1 << 20), path, mask)
        print(f"index: {path.stat().st_size >> 20} MB")
        _timed("nothing new", 0, path, mask)
        for megabytes in (10, 20):
            generator.write(megabytes)
            _timed(f"a day's work ({megabytes} MB)", megabytes, path, mask)
        times = []
        with TraceIndex(path, may_write=False) as index:
            for number in range(200):
                query = " ".join(chance.choice(WORDS) for _ in range(2 + number % 6))
                cpu = time.process_time()
                find(index, mask, query, TraceFilter(), 10)
                times.append(time.process_time() - cpu)
        times.sort()
        print(
            f"look-up: median {times[100] * 1e3:.1f} ms, 99 % {times[197] * 1e3:.1f} ms,"
            f" longest {times[-1] * 1e3:.1f} ms (processor)"
        )


if __name__ == "__main__":
    main()
