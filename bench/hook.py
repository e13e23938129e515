"""What a hook costs a session, and how much it puts in: `memory hook` as a process, on a large
home.

    python bench/hook.py [--notes 10000] [--prompts 1000]

Each prompt of bench/prompts.txt, with several beginnings, is sent as Claude Code sends it, twenty
to a session, through a daemon and then without one. So are calls of tools about which nothing is
known, the traps of bench/traps.py, and their failures, each in a separate session. The home has
a vault of made-up notes, the sample vault and docs/ of this repository, so that notes about
software are there to be found, and a transcript with the lessons that the traps need.
Prints the times, the share of events that got something, and whether any answer was over its
budget of tokens or time. A figure over its budget says `over`; nothing fails.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

import traps  # noqa: E402
import vault  # noqa: E402
from memoranda import Draft  # noqa: E402
from memoranda.clients.hook_action import ACTION_TOKENS  # noqa: E402
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
ACTION_MILLISECONDS = 150
"""For 99 of 100 calls of tools, as a client waits for each of them."""
CPU: list[float] = []
"""Milliseconds of computing of each process, the daemon's share apart: on a busy machine the rest
is waiting.
"""
COMMAND = [sys.executable, "-m", "memoranda"]
PREFERENCES = 40


class Answers(NamedTuple):
    """How long the answers to some events took, in milliseconds, and their sizes in tokens."""

    times: list[float]
    sizes: list[int]


def event(session: int, **more: Any) -> bytes:
    """An event as Claude Code sends it."""
    base = {"session_id": f"s{session}", "transcript_path": "/t.jsonl", "cwd": str(HERE)}
    return json.dumps(base | more).encode()


def ask(home: Path, data: bytes) -> tuple[float, str]:
    """Milliseconds and the text of one answer: what goes into the context, or why a call is held."""
    begun = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(
        [*COMMAND, "--home", str(home), "hook", "claude-code"], input=data, capture_output=True
    )
    took = (time.perf_counter() - begun) * 1e3
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    CPU.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    assert (process.returncode, process.stderr) == (0, b""), process
    if not process.stdout.strip():
        return took, ""
    output = json.loads(process.stdout)["hookSpecificOutput"]
    return took, output.get("additionalContext") or output["permissionDecisionReason"]


def asked(home: Path, events: list[bytes]) -> Answers:
    """The answers to these events, one after the other."""
    answers = Answers([], [])
    for data in events:
        took, text = ask(home, data)
        answers.times.append(took)
        answers.sizes.append(tokens_in(text))
    return answers


def conversations(prompts: list[str], first: int) -> tuple[list[bytes], list[bytes]]:
    """The starts of sessions, and the prompts in them."""
    starts = []
    typed = []
    for at, prompt in enumerate(prompts):
        session = first + at // PER_SESSION
        is_first = at % PER_SESSION == 0
        if is_first:
            starts.append(event(session, hook_event_name="SessionStart", source="startup"))
        typed.append(event(session, hook_event_name="UserPromptSubmit", prompt=prompt))
    return starts, typed


def calls(first: int) -> dict[str, list[bytes]]:
    """Calls of tools, by what is known about them. Each is in a separate session."""
    sessions = itertools.count(first)

    def before(call: traps.Call) -> bytes:
        tool, arguments = call
        return event(
            next(sessions),
            hook_event_name="PreToolUse",
            cwd=traps.FOLDER,
            tool_name=tool,
            tool_input=arguments,
        )

    def failed(command: str, error: str) -> bytes:
        return event(
            next(sessions),
            hook_event_name="PostToolUseFailure",
            cwd=traps.FOLDER,
            tool_name="Bash",
            tool_input={"command": command},
            error=f"Exit code 1\n{error}",
        )

    return {
        "tool, nothing known": list(map(before, traps.others())),
        "tool, a trap": list(map(before, [*traps.traps()] * 4)),
        "after a failure": [failed(row[0], row[1]) for row in traps.FAILED * 6],
        "after an unknown one": [failed(f"./x{n}", "nothing of it") for n in range(100)],
    }


def row(label: str, answers: Answers, fits: Callable[[Answers], bool]) -> str:
    """One line of the table."""
    times, sizes = answers
    share = sum(map(bool, sizes)) / len(sizes)
    verdict = "ok" if fits(answers) else "over"
    return (
        f"{label:<36} {len(times):>5}  median {median(times):>4.0f} ms  p99 {p99(times):>4.0f}"
        f"  max {max(times):>4.0f}  with text {share:>4.0%}  most {max(sizes):>4} tokens  {verdict}"
    )


def p99(times: list[float]) -> float:
    """The time within which 99 of 100 were answered: one that was measured, none beyond them."""
    return sorted(times)[math.ceil(len(times) * 0.99) - 1]


def in_session(milliseconds: int, tokens: int) -> Callable[[Answers], bool]:
    """The budget of a start or a prompt."""
    return lambda answers: (
        median(answers.times) <= milliseconds
        and max(answers.times) <= 800
        and max(answers.sizes) <= tokens
    )


def at_action(answers: Answers) -> bool:
    """Whether calls of tools kept their budget."""
    return p99(answers.times) <= ACTION_MILLISECONDS and max(answers.sizes) <= ACTION_TOKENS


def report(label: str, answers: Answers, fits: Callable[[Answers], bool]) -> None:
    """Print a line of the table, and what the processes computed for it."""
    print(row(label, answers, fits))
    print(f"  of that computing {median(CPU):.0f} ms", flush=True)
    CPU.clear()


def made_home(folder: Path, notes: int) -> Path:
    """A home with notes, and a person with the transcript of one session."""
    os.environ["HOME"] = str(folder)
    home = folder / "home"
    home.mkdir()
    # Otherwise the first hook without a daemon would start one, which would answer the others.
    settings = "transcripts:\n  enabled: true\ndaemon:\n  autostart: false\n"
    (home / "config.yaml").write_text(settings)
    vault.make_vault(folder / "vault", notes)
    with open_session(home, watch=False) as memory:
        memory.add_project("vault", str(folder / "vault"))
        memory.add_project("sample", str(HERE.parent / "samples" / "vault"))
        memory.add_project("docs", str(HERE.parent / "docs"))
        for number in range(PREFERENCES):
            words = "short sentences and plain words, " * 5
            text = f"Prefers way {number} of doing things: {words}always."
            memory.write(Draft(text, project="categories", category="preferences"))
        traps.learn(memory, folder)
        memory.sync()
    return home


@contextmanager
def daemon(home: Path) -> Iterator[None]:
    """A daemon that is ready, for the time of the block."""
    process = subprocess.Popen(
        [*COMMAND, "--home", str(home), "serve"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--notes", type=int, default=10_000)
    options.add_argument("--prompts", type=int, default=1_000)
    options.add_argument("--only-tools", action="store_true", help="no starts, no prompts")
    chosen = options.parse_args()
    lines = (HERE / "prompts.txt").read_text("utf-8").splitlines()
    prompts = [begin + line for begin, line in itertools.product(BEGINNINGS, lines)][
        : chosen.prompts
    ]
    os.environ["PYTHONPATH"] = str(HERE.parent / "src")
    with tempfile.TemporaryDirectory() as folder:
        home = made_home(Path(folder), chosen.notes)
        print(f"{chosen.notes:,} notes, {len(prompts):,} prompts each way", flush=True)
        for at, (how, limit) in enumerate(MILLISECONDS.items()):
            first = 1_000_000 * at
            running = daemon(home) if how == "with a daemon" else nullcontext()
            with running:
                if not chosen.only_tools:
                    starts, typed = conversations(prompts, first)
                    # A prompt comes after the start of its session.
                    report(f"start, {how}", asked(home, starts), in_session(limit, START_TOKENS))
                    report(f"prompt, {how}", asked(home, typed), in_session(limit, PROMPT_TOKENS))
                for label, events in calls(first + 500_000).items():
                    report(f"{label}, {how}", asked(home, events), at_action)


if __name__ == "__main__":
    main()
