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
_WORDS = _TEXT.split()


def _sentence(chance: random.Random, words: list[str], length: int) -> str:
    return " ".join(chance.choice(words) for _ in range(length)).capitalize() + "."


def _session(chance: random.Random, words: list[str], name: str, size: int) -> str:
    """A session of Claude Code of about so many bytes: mostly what tools gave back, as in life."""
    lines = []
    total = 0
    turn = 0
    while total < size:
        turn += 1
        moment = (
            f"2026-{chance.randint(1, 11):02d}-{chance.randint(1, 28):02d}T10:{turn % 60:02d}:00Z"
        )
        about = {"sessionId": name, "cwd": f"/work/p{chance.randint(0, 40)}", "timestamp": moment}

        def entry(role: str, content: object, about: dict[str, str] = about) -> str:
            message = {"role": role, "content": content}
            return json.dumps({"type": role, "message": message, **about}) + "\n"

        call = f"t{turn}"
        command = f"make {chance.choice(words)} {chance.choice(words)}"
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
        output = "\n".join(_sentence(chance, words, 12) for _ in range(chance.randint(5, 120)))
        result: dict[str, object] = {"type": "tool_result", "tool_use_id": call, "content": output}
        if chance.random() < 0.1:
            result |= {"is_error": True, "content": f"Exit code 1\n{output}"}
        said = " ".join(_sentence(chance, words, 14) for _ in range(2))
        answer = " ".join(_sentence(chance, words, 18) for _ in range(6))
        new = [
            entry("user", said),
            entry("assistant", [use]),
            entry("user", [result]),
            entry("assistant", [{"type": "text", "text": answer}]),
        ]
        lines += new
        total += sum(map(len, new))
    return "".join(lines)


def _generate(folder: Path, megabytes: int, first: int, chance: random.Random) -> int:
    """Write sessions; returns how many."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = ["".join(chance.choices(letters, k=8)) for _ in range(20_000)]
    words = _WORDS * 40 + names
    number = first
    left = megabytes << 20
    while left > 0:
        size = min(left, chance.randint(200_000, 2_000_000))
        text = _session(chance, words, f"s{number}", size)
        place = folder / f"-work-p{number % 40}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"s{number}.jsonl").write_text(text)
        left -= len(text)
        number += 1
    return number - first


def _processor_seconds() -> float:
    """Of this process and of those it waited for."""
    return sum(os.times()[:4])


def _timed(label: str, megabytes: float, path: Path, mask: Mask) -> None:
    wall = time.monotonic()
    cpu = _processor_seconds()
    done = sync(path, mask)
    cpu = _processor_seconds() - cpu
    wall = time.monotonic() - wall
    rate = f", {megabytes / cpu:.1f} MB/s" if megabytes and cpu else ""
    print(
        f"{label}: {done.files} files, {done.turns} turns, {cpu:.2f} s cpu{rate}, {wall:.2f} s wall"
    )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--megabytes", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--folder", help="where to write (default: a temporary folder)")
    given = options.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        person = Path(folder)
        os.environ["HOME"] = str(person)
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            os.environ.pop(name, None)
        projects = person / ".claude" / "projects"
        count = _generate(projects, given.megabytes, 0, chance)
        size = sum(file.stat().st_size for file in projects.rglob("*.jsonl"))
        print(f"generated {count} sessions, {size >> 20} MB")
        mask = Mask(default_rules())
        path = person / "transcripts.db"
        _timed("first index", size / (1 << 20), path, mask)
        print(f"index: {path.stat().st_size >> 20} MB")
        _timed("nothing new", 0, path, mask)
        for megabytes in (10, 20):
            count += _generate(projects, megabytes, count, chance)
            _timed(f"a day's work ({megabytes} MB)", megabytes, path, mask)
        times = []
        with TraceIndex(path, may_write=False) as index:
            for number in range(200):
                query = " ".join(chance.choice(_WORDS) for _ in range(2 + number % 6))
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
