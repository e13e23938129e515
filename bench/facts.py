"""Facts that stand only in transcripts, asked in other words: how many are among the first five.

300 facts of 60 kinds (facts.toml), five of each, are said in generated sessions of coding agents
among much else. Every other kind is left for the final figure: tune on the others only.

    python bench/facts.py [--unseen] [--show] [--chatty]

With --chatty the person tells something else in every second exchange.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.text.gate import default_rules
from memoranda.transcripts.index import TraceIndex
from memoranda.transcripts.mask import Mask
from memoranda.transcripts.search import TraceFilter, find, text_of
from memoranda.transcripts.sync import sync

_OF_A_KIND = 5
_SESSIONS = 120
_EXCHANGES = 25
_SLOT = re.compile(r"\{(\w+)\}")


class Fact(NamedTuple):
    """What is said in a session, and how it is asked for."""

    kind: int
    text: str
    question: str


def _facts(table: dict[str, Any], chance: random.Random) -> list[Fact]:
    words = {name: text.split() for name, text in table["words"].items()}
    result = []
    for number, kind in enumerate(table["kind"]):
        # The same word never twice in one kind, so that each question has one answer.
        chosen = {name: chance.sample(options, _OF_A_KIND) for name, options in words.items()}
        for at in range(_OF_A_KIND):
            slots = {name: options[at] for name, options in chosen.items()}
            question = kind["asks"][at % len(kind["asks"])]
            text = _filled(kind["says"], slots)
            result.append(Fact(number, text, _filled(question, slots)))
    return result


def _filled(template: str, slots: dict[str, str]) -> str:
    return _SLOT.sub(lambda slot: slots[slot[1]], template)


_NOISE = (
    "Look at {file} and tell me what {service} does there.",
    "Add a test for {service} that covers the new branch in {file}.",
    "Why is {file} so long? Split it, and keep {service} as it is.",
    "Run the tests of {service} again.",
    "Rename the helper in {file}, {person} finds the name odd.",
    "Deploy {service} to {host} when the tests pass.",
    "What did {person} change in {file} yesterday?",
    "The build with {tool} is red, have a look at {service}.",
    "Write a short note for {person} about {service} and {tool}.",
    "Can {tool} do what {other} does for {service}?",
    "Show me the log of {host}, {number} lines are enough.",
    "Make the page of {service} faster, {person} from {city} complained.",
)
# Other things that a person says. They answer none of the questions.
_CHAT = (
    "{person} likes how {service} looks now.",
    "I had {file} open all morning, it reads well.",
    "{person} and I looked at {tool} for {service} over lunch.",
    "The people in {city} were happy with {service} last week.",
    "{host} was quiet tonight, {service} too.",
    "I am a little afraid of {file}, there is much in it.",
    "{tool} and {other} came up again in the talk with {person}.",
    "It was {person} who told me about {file}.",
    "{service} is what I care about today, {file} less so.",
    "My guess is that {tool} has nothing to do with it.",
)
_ANSWERS = (
    "I read {file}. It opens the queue of {service}, takes {number} messages and writes them. Next I"
    " will add the test.",
    "Done: {service} has a test now, {file} is {number} lines shorter, and all tests pass.",
    "The failure comes from {tool}: its configuration names {host}, which does not answer. I changed"
    " it in {file}.",
    "I renamed it in {file} and in {number} places of {service}. {person} may want to look at the"
    " diff.",
    "{tool} and {other} both work for {service}. The former is there already, so I kept it.",
    "The log of {host} has {number} warnings about {service}, all of them about the clock.",
)


def _session(
    chance: random.Random,
    words: dict[str, list[str]],
    facts: list[Fact],
    at: int,
    is_chatty: bool,
) -> str:
    """A session of Claude Code in which these facts are said."""
    lines = []
    places = dict(zip(chance.sample(range(_EXCHANGES), len(facts)), facts, strict=True))
    for number in range(_EXCHANGES):
        slots = {name: chance.choice(options) for name, options in words.items()}
        user_text = _filled(chance.choice(_NOISE), slots)
        if is_chatty and chance.random() < 0.5:
            user_text = f"{user_text} {_filled(chance.choice(_CHAT), slots)}"
        if number in places:
            # Among other words, as people say things.
            user_text = f"{user_text} {places[number].text} So go on."
        answer = _filled(chance.choice(_ANSWERS), slots)
        moment = f"2026-{1 + at % 11:02d}-{1 + number:02d}T10:00:00Z"
        about = {"sessionId": f"s{at}", "cwd": f"/work/p{at % 9}", "timestamp": moment}
        for role, content in (
            ("user", user_text),
            ("assistant", [{"type": "text", "text": answer}]),
        ):
            message = {"role": role, "content": content}
            lines.append(json.dumps({"type": role, "message": message, **about}) + "\n")
    return "".join(lines)


def _write(
    person: Path,
    table: dict[str, Any],
    facts: list[Fact],
    chance: random.Random,
    is_chatty: bool = False,
) -> None:
    words = {name: text.split() for name, text in table["words"].items()}
    folder = person / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    shuffled = chance.sample(facts, len(facts))
    for at in range(_SESSIONS):
        text = _session(chance, words, shuffled[at::_SESSIONS], at, is_chatty)
        (folder / f"s{at}.jsonl").write_text(text)


def _rank(index: TraceIndex, mask: Mask, fact: Fact) -> int | None:
    """Which of the first ten exchanges has the fact, from 0."""
    for rank, hit in enumerate(find(index, mask, fact.question, TraceFilter(), 10)):
        session, _, position = hit.ref.rpartition("@")
        turn = index.find_turn(session, position)[0]
        for part in index.exchange(turn.exchange):
            text = text_of(part, mask) or ""
            if fact.text in text:
                return rank
    return None


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--unseen", action="store_true", help="the kinds left for the figure")
    options.add_argument("--show", action="store_true", help="print what is not among five")
    options.add_argument("--chatty", action="store_true", help="the person tells much else")
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args()
    chance = random.Random(arguments.seed)
    table = tomllib.loads(Path(__file__).with_name("facts.toml").read_text("utf-8"))
    facts = _facts(table, chance)
    asked_facts = [fact for fact in facts if fact.kind % 2 == arguments.unseen]
    with tempfile.TemporaryDirectory() as folder:
        person = Path(folder)
        os.environ["HOME"] = folder
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            os.environ.pop(name, None)
        _write(person, table, facts, chance, arguments.chatty)
        mask = Mask(default_rules())
        path = person / "transcripts.db"
        print(f"{sync(path, mask).turns} turns, {len(facts)} facts, {len(asked_facts)} asked for")
        with TraceIndex(path, may_write=False) as index:
            began = time.process_time()
            ranks = [_rank(index, mask, fact) for fact in asked_facts]
            seconds = time.process_time() - began
    for fact, rank in zip(asked_facts, ranks, strict=True):
        if arguments.show and (rank is None or rank > 4):
            print(f"    {fact.question}  <-  {fact.text}")
    for most in (1, 5, 10):
        count = sum(rank is not None and rank < most for rank in ranks)
        print(f"among {most}: {count / len(asked_facts):.1%}")
    print(f"{seconds / len(asked_facts) * 1e3:.1f} ms of processor time a question")


if __name__ == "__main__":
    main()
