"""What a hook costs a session, and how much it puts in: `memory hook` as a process, on a large
home.

    python bench/hook.py [--notes 10000] [--prompts 1000]

Each prompt of bench/prompts.txt, with several beginnings, is sent as Claude Code sends it, twenty
to a session, through a daemon and then without one. The home has a vault of made-up notes, the
sample vault and docs/ of this repository, so that notes about software are there to be found.
Prints the times, the share of prompts that got something, and whether any answer was over its
budget of tokens or time. A figure over its budget says `over`; nothing fails.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

import vault  # noqa: E402
from memoranda import Draft  # noqa: E402
from memoranda.clients.hook_context import PROMPT_TOKENS, START_TOKENS  # noqa: E402
from memoranda.engine import open_session  # noqa: E402
from memoranda.text.tokens import tokens_in  # noqa: E402

BEGINNINGS = (
    "",
    "Please: ",
    "In src/app/main.py: ",
    "ok, next. ",
    "Hmm. ",
    "As I said, ",
    "Again: ",
    "And ",
    "Now ",
    "So ",
)
PER_SESSION = 20
MILLISECONDS = {"with a daemon": 150, "without": 300}
CPU: list[float] = []
"""Milliseconds of computing of each process, the daemon's share apart: on a busy machine the rest
is waiting.
"""
COMMAND = [sys.executable, "-m", "memoranda"]
PREFERENCES = 40


def event(session: int, **more: str) -> bytes:
    """An event as Claude Code sends it."""
    base = {"session_id": f"s{session}", "transcript_path": "/t.jsonl", "cwd": str(HERE)}
    return json.dumps(base | more).encode()


def ask(home: Path, data: bytes) -> tuple[float, str]:
    """Milliseconds and the context of one answer."""
    begun = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*COMMAND, "--home", str(home), "hook", "claude-code"], input=data, capture_output=True
    )
    took = (time.perf_counter() - begun) * 1e3
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    CPU.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    assert (done.returncode, done.stderr) == (0, b""), done
    return took, json.loads(done.stdout)["hookSpecificOutput"][
        "additionalContext"
    ] if done.stdout.strip() else ""


def measure(
    home: Path, prompts: list[str], first: int
) -> tuple[list[float], list[float], list[int], list[int]]:
    """Times of starts and prompts, and the tokens of their answers."""
    starts = []
    times = []
    start_sizes = []
    sizes = []
    for at, prompt in enumerate(prompts):
        session = first + at // PER_SESSION
        if at % PER_SESSION == 0:
            took, text = ask(home, event(session, hook_event_name="SessionStart", source="startup"))
            starts.append(took)
            start_sizes.append(tokens_in(text))
        took, text = ask(home, event(session, hook_event_name="UserPromptSubmit", prompt=prompt))
        times.append(took)
        sizes.append(tokens_in(text))
    return starts, times, start_sizes, sizes


def row(what: str, times: list[float], sizes: list[int], milliseconds: int, tokens: int) -> str:
    """One line of the table."""
    if len(times) > 1:
        high = quantiles(times, n=100)[98]
    else:
        high = times[0]
    share = sum(1 for size in sizes if size) / len(sizes)
    fits = median(times) <= milliseconds and max(times) <= 800 and max(sizes) <= tokens
    return (
        f"{what:<24} {len(times):>5}  {median(times):>4.0f} ms (≤ {milliseconds})  p99 {high:>4.0f}"
        f"  max {max(times):>4.0f} (≤ 800)"
        f"  with text {share:>4.0%}  most {max(sizes):>4} tokens (≤ {tokens})  {'ok' if fits else 'over'}"
    )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--notes", type=int, default=10_000)
    options.add_argument("--prompts", type=int, default=1_000)
    given = options.parse_args()
    lines = (HERE / "prompts.txt").read_text("utf-8").splitlines()
    prompts = [begin + line for begin in BEGINNINGS for line in lines][: given.prompts]
    os.environ["PYTHONPATH"] = str(HERE.parent / "src")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        vault.make_vault(Path(folder) / "vault", given.notes)
        with open_session(home, watch=False) as memory:
            memory.add_project("vault", str(Path(folder) / "vault"))
            memory.add_project("sample", str(HERE.parent / "samples" / "vault"))
            memory.add_project("docs", str(HERE.parent / "docs"))
            for number in range(PREFERENCES):
                text = f"Prefers way {number} of doing things: {'short sentences and plain words, ' * 5}always."
                memory.write(Draft(text, project="categories", category="preferences"))
            memory.sync()
        print(f"{given.notes:,} notes, {len(prompts):,} prompts each way", flush=True)
        daemon = subprocess.Popen(
            [*COMMAND, "--home", str(home), "serve"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert daemon.stdout is not None
        daemon.stdout.readline()
        for at, (how, limit) in enumerate(MILLISECONDS.items()):
            starts, times, start_sizes, sizes = measure(home, prompts, 1_000_000 * at)
            print(row(f"start, {how}", starts, start_sizes, limit, START_TOKENS))
            print(row(f"prompt, {how}", times, sizes, limit, PROMPT_TOKENS))
            print(f"  of that computing {median(CPU):.0f} ms", flush=True)
            CPU.clear()
            if daemon.poll() is None:
                daemon.terminate()
                daemon.wait()


if __name__ == "__main__":
    main()
