"""How long a question takes, and loading and embedding, with many turns of conversations in one
home.

    python bench/asking.py [SET.json ...] [--memories 6000 100000] [--vectors model|near|off]
    [--json]

The turns are those of the sets, told again in other words until there are enough; without a set
they are made up. Each is a memory written through the public API in batches. Every kind of query is
asked by words alone and, where the `semantic` extra finds a model, by meaning too, beside a plain
FTS5 table (porter, words joined by OR) of the same texts. A figure over its budget says `over`;
nothing fails.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
for source_folder in (HERE, HERE.parent / "src"):
    if str(source_folder) not in sys.path:
        sys.path.insert(0, str(source_folder))

import haystacks  # noqa: E402
from crowd import Crowd, crowd  # noqa: E402
from memoranda.index.vectors import NoModel  # noqa: E402
from recall import PROMPT  # noqa: E402
from retrieval import PAGE, WARM, ByWords, Ours, Place, PlainFts  # noqa: E402
from shelf import Shelf  # noqa: E402
from table import p95  # noqa: E402

if TYPE_CHECKING:
    from memoranda.index.vectors.runtimes import np

BUDGETS = ((6_000, 3.0, 15.0), (100_000, 10.0, 25.0))
"""For each size: the memories, and the milliseconds that a median query may take, first by words,
then by meaning.
"""
TALK_BUDGET = (12.0, 40.0)
"""The same for a talk, in at most `MODEL_MOST` memories."""
LOADING = 1_000
EMBEDDING = 100
"""Turns a second, at least."""
MODEL_MOST = 10_000
"""The most memories of which all are embedded. Of more, `BASE` are, unless all are asked for."""
BASE = 2_000
_TURN = 0.75
"""How far a stand-in is turned away from a real vector: their cosine is 0.8."""
_WORD = re.compile(r"\w+")
_RUN = re.compile(r"[a-zA-Z]+(?: [a-zA-Z]+){2,}")
_PROMPTED = 2_000
_TALK = f"a talk of {_PROMPTED:,} characters"


@dataclass(frozen=True)
class Timed:
    """One kind of query by one pipeline: milliseconds by the clock and of processors, and how many
    notes of a page were found in the mean."""

    memories: int
    pipeline: str
    kind: str
    wall: list[float]
    busy: list[float]
    hits: float
    budget: float | None = None

    def line(self) -> str:
        """The figure's line of the table."""
        if self.budget is None:
            verdict = ""
        elif median(self.wall) <= self.budget:
            verdict = "ok"
        else:
            verdict = "over"
        limit = "" if self.budget is None else f"{self.budget:g}"
        times = "".join(
            f"{value:>10.2f}" for value in (median(self.wall), p95(self.wall), median(self.busy))
        )
        start = f"{self.kind:<30}{self.pipeline:<32}{len(self.wall):>5}"
        return f"{start}{times}{self.hits:>7.1f}{limit:>8}  {verdict}".rstrip()

    def object(self) -> dict[str, object]:
        """The figure as `--json` prints it."""
        return {
            "memories": self.memories,
            "pipeline": self.pipeline,
            "kind": self.kind,
            "queries": len(self.wall),
            "median_ms": round(median(self.wall), 3),
            "p95_ms": round(p95(self.wall), 3),
            "processor_ms": round(median(self.busy), 3),
            "budget_ms": self.budget,
        }


class StandIn(Shelf):
    """A shelf that embeds `base` texts in truth; each other one gets the vector of one of those,
    turned a little.
    """

    def __init__(self, base: Sequence[str]):
        super().__init__()
        with self.keeping():
            self._real = super().embed(base)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors as near to each other as those of real texts; a question's is its own."""
        if not self._keeping:
            return super().embed(texts)
        from memoranda.index.vectors.runtimes import np

        self.fresh += len(texts)
        chosen = []
        for text in texts:
            digest = blake2b(text.encode(), digest_size=7).digest()
            chosen.append(int.from_bytes(digest, "little"))
        shape = (len(texts), self._real.shape[1])
        noise = np.random.default_rng(chosen[0]).standard_normal(shape).astype(np.float32)
        noise *= _TURN / np.linalg.norm(noise, axis=1, keepdims=True)
        rows = [number % len(self._real) for number in chosen]
        turned = self._real[rows] + noise
        return turned / np.linalg.norm(turned, axis=1, keepdims=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _arguments(arguments)
    try:
        conversations = haystacks.read(options.sets)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    say: Callable[[str], None] = partial(
        print, file=sys.stderr if options.json else sys.stdout, flush=True
    )
    for number in options.memories:
        talk = crowd(conversations, number, 2 * options.each)
        origin = f"of {len(conversations)} conversations" if conversations else "made up"
        say(f"{number:,} memories, {origin}")
        shelf = _shelf(options.vectors, talk, say)
        if not options.json:
            names = f"{'n':>5}{'median':>10}{'p95':>10}{'processor':>10}{'hits':>7}{'budget':>8}"
            print(f"{'':<62}{names}")
        for figure in _measured(talk, shelf, options.each, say):
            print(json.dumps(figure.object()) if options.json else figure.line(), flush=True)
        load = os.getloadavg()[0]
        meaning = "Milliseconds; processor: of the time, that spent computing."
        say(f"{meaning} Load at the end {load:.1f}.\n")
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET")
    parser.add_argument("--memories", nargs="+", type=int, default=[6_000], metavar="N")
    parser.add_argument(
        "--each", type=int, default=100, metavar="N", help="queries of each kind [100]"
    )
    parser.add_argument(
        "--vectors",
        choices=("model", "near", "off"),
        help=f"all turns by the model, or {BASE:,} and for the others a stand-in near one of them, or none "
        f"[model up to {MODEL_MOST:,}, else near]",
    )
    parser.add_argument(
        "--json", action="store_true", help="one object a line; remarks go to stderr"
    )
    return parser.parse_args(arguments)


def _shelf(vectors: str | None, talk: Crowd, say: Callable[[str], None]) -> Shelf | None:
    """The model for all turns, a stand-in, or None; said in a sentence."""
    vectors = vectors or ("model" if len(talk.turns) <= MODEL_MOST else "near")
    if vectors == "off":
        return None
    try:
        if vectors == "model":
            return Shelf()
        step = max(1, len(talk.turns) // BASE)
        begin = time.perf_counter()
        shelf = StandIn([turn.spoken for turn in talk.turns[::step]][:BASE])
        took = time.perf_counter() - begin
    except NoModel as error:
        say(f"By words alone: {error}")
        return None
    rate = shelf.fresh / took
    say(
        f"Vectors are a stand-in: {shelf.fresh:,} turns are embedded ({rate:,.0f} a second), "
        "each other has the vector of one of them, turned to a cosine of 0.8. "
        "Questions are embedded in truth."
    )
    return shelf


def _measured(
    talk: Crowd, shelf: Shelf | None, questions_per_kind: int, say: Callable[[str], None]
) -> Iterator[Timed]:
    kinds = _kinds(talk, questions_per_kind)
    with tempfile.TemporaryDirectory(prefix="memoranda-asking-") as folder:
        ground = Place(Path(folder), shelf)
        ours = Ours(ground)
        ours.load(talk.turns)
        count = len(talk.turns)
        how = f"durable and indexed; {count / ours.computing:,.0f} a second of processor time"
        say(_rate("Loaded", "memories", count / ours.loading, LOADING, how))
        if shelf is not None and not isinstance(shelf, StandIn):
            rate = ours.embedded / ours.embedding
            say(_rate("Embedded", "passages", rate, EMBEDDING, "kept durably"))
        path_keys = ours.known
        ours.close()
        plain = PlainFts(ground)
        plain.load(talk.turns)
        limits = next((some for most, *some in BUDGETS if count <= most), [None, None])
        talk_limits = TALK_BUDGET if count <= MODEL_MOST else [None, None]
        sides: list[tuple[type[ByWords], float | None, float | None]] = [
            (ByWords, limits[0], talk_limits[0])
        ]
        if shelf is not None:
            sides.append((Ours, limits[1], talk_limits[1]))
        for pipeline, limit, talk_limit in sides:
            side = pipeline(ground)
            side.known = path_keys
            side.find(WARM, PAGE)
            for kind, texts in kinds.items():
                budget = talk_limit if kind == _TALK else limit
                yield _timed(count, side.name, kind, texts, side.find, budget)
            side.close()
        for kind, texts in kinds.items():
            yield _timed(count, plain.name, kind, texts[:20], plain.find)


def _timed(
    memories: int,
    name: str,
    kind: str,
    texts: Sequence[str],
    find: Callable[[str, int], list[str]],
    budget: float | None = None,
) -> Timed:
    wall = []
    busy = []
    hits = 0
    for text in texts:
        begin = time.perf_counter()
        computing = time.process_time()
        hits += len(find(text, PAGE))
        wall.append((time.perf_counter() - begin) * 1e3)
        busy.append((time.process_time() - computing) * 1e3)
    return Timed(memories, name, kind, wall, busy, hits / len(texts), budget)


def _rate(did: str, unit: str, rate: float, least: int, how: str) -> str:
    judgement = "ok" if rate >= least else "under"
    return f"{did} {rate:,.0f} {unit} a second, {how} (at least {least:,}: {judgement})."


def _kinds(talk: Crowd, per_kind: int) -> dict[str, list[str]]:
    """What is asked, by kind; no text twice in one of them, and no question in two: its vector
    would be known.
    """
    chance = Random(3)
    texts = [turn.spoken for turn in talk.turns]
    texts_with = Counter[str]()
    for text in texts:
        texts_with.update(set(_WORD.findall(text.lower())))
    words = sorted(texts_with, key=lambda word: (-texts_with[word], word))
    common = words[:20]
    rare = [word for word in words if texts_with[word] <= 2 and word.isalpha()]
    least = len(texts) / 500
    most = len(texts) / 50
    middling = [word for word in words if least <= texts_with[word] <= most and len(word) > 3]
    spread = chance.sample(texts, min(per_kind, len(texts)))
    before = (PROMPT * (_PROMPTED // len(PROMPT) + 1))[:_PROMPTED]
    share = math.floor(100 * texts_with[common[-1]] / len(texts))
    # The order in which the same chance is asked is part of the figures
    rare_sample = chance.sample(rare, min(per_kind, len(rare)))
    middling_sample = chance.sample(middling, min(per_kind, len(middling)))
    word_pairs = [_pair(text, chance) for text in spread]
    phrases = [_phrase(text, chance) for text in spread]
    prompts = [f"{before}\n{question}" for question in talk.questions[per_kind:]]
    questions = {
        "questions": talk.questions[:per_kind],
        "a word of 1 or 2 turns": rare_sample,
        "a word of 0.2 to 2 %": middling_sample,
        f"the 20 commonest (>= {share} %)": common,
        "two words of one turn": list(filter(None, word_pairs)),
        "two of the commonest": [f"{a} {b}" for a, b in pairwise(common)],
        "a phrase of three words": list(filter(None, phrases)),
        f"{_PROMPTED:,} characters, a question": prompts,
        _TALK: [_talk(texts, chance) for _ in range(per_kind)],
    }
    return {kind: list(dict.fromkeys(texts)) for kind, texts in questions.items() if texts}


def _talk(texts: Sequence[str], chance: Random) -> str:
    """Turns that follow each other, as many as fit."""
    at = chance.randrange(len(texts))
    lines: list[str] = []
    room = _PROMPTED
    for text in texts[at : at + _PROMPTED]:
        line = " ".join(text.split())
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def _pair(text: str, chance: Random) -> str:
    words = list(dict.fromkeys(word for word in _WORD.findall(text)[1:] if len(word) > 3))
    if len(words) > 1:
        return " ".join(chance.sample(words, 2))
    return ""


def _phrase(text: str, chance: Random) -> str:
    runs = _RUN.findall(text)
    if not runs:
        return ""
    run = chance.choice(runs)
    words = run.split()
    at = chance.randrange(len(words) - 2)
    phrase = " ".join(words[at : at + 3])
    return f'"{phrase}"'


if __name__ == "__main__":
    sys.exit(main())
