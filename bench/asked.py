"""How many of the sentences a person asks to remember are stored, on a busy machine.

    python bench/asked.py 1000 --busy 10

Starts `--busy` programs that each use a core. Then runs 1,000 hooks with such a prompt, several at
a time, each as a process, as a client starts it. Then one command opens the home. Prints how many
of the hooks answered in time, how many sentences the memory holds, and the load.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from memoranda import Query
from memoranda.engine import open_session

_AT_ONCE = 4
_BURN = "while True: pass"
_CLIENT_TIMEOUT = 10.0


def hook(home: Path, number: int) -> tuple[bool, float]:
    """Run one hook as Claude Code does. Returns whether it answered, and its seconds."""
    payload = {
        "session_id": f"s{number}",
        "transcript_path": "/t.jsonl",
        "cwd": "/",
        "hook_event_name": "UserPromptSubmit",
        "prompt": f"Remember that the box number {number} holds the kiln of room {number * 7}.",
    }
    command = [sys.executable, "-m", "memoranda", "--home", str(home), "hook", "claude-code"]
    begun = time.monotonic()
    try:
        process = subprocess.run(
            command,
            input=json.dumps(payload).encode(),
            capture_output=True,
            timeout=_CLIENT_TIMEOUT,
        )
        is_answered = bool(process.stdout)
    except subprocess.TimeoutExpired:
        is_answered = False
    return is_answered, time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", type=int, nargs="?", default=1_000)
    parser.add_argument("--busy", type=int, default=10, help="Programs that want a core.")
    arguments = parser.parse_args()
    burning = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(arguments.busy)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder, "home")
            with open_session(home):
                pass
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                numbers = range(arguments.prompts)
                results = list(pool.map(partial(hook, home), numbers))
            seconds = sorted(call_seconds for _, call_seconds in results)
            with open_session(home) as memory:
                _, stored = memory.list(Query(source="hook-claude-code"), limit=1)
            waiting_files = home / ".memoranda" / "asked"
            waiting = len(list(waiting_files.glob("*")))
        answered = sum(is_answered for is_answered, _ in results)
        row = {
            "prompts": arguments.prompts,
            "answered in time": answered,
            "stored": stored,
            "waiting": waiting,
            "median seconds": round(seconds[len(seconds) // 2], 3),
            "99 of 100": round(seconds[len(seconds) * 99 // 100], 3),
            "longest": round(seconds[-1], 3),
            "load": os.getloadavg()[0],
        }
        print(json.dumps(row, indent=1))
    finally:
        for process in burning:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
