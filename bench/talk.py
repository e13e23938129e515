"""How long a talk of 2,000 characters takes as a query, beside a question, by words and with a model.

    python bench/talk.py [--notes 10000] [--talks 12] [--meaning] [--seconds 100]

The home is a vault of `bench/vault.py`, and it is watched, as by the daemon through which agents
search: no search looks at all files first. Each talk is sentences of one note, a line for each of two
speakers in turn. It is told twice, the second time a turn later, as a hook does with each prompt.
Talks and questions take turns, so that both see the same load.

With `--meaning` the model that a home uses by default takes part: it reads each query, but notes get
vectors by chance, as a model would read 10,000 notes for minutes and a search takes as long with any.

Prints medians of processor time and of time by the clock, in milliseconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "src"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import vault  # noqa: E402
from memoranda import config  # noqa: E402
from memoranda.engine import MemorySession, open_session  # noqa: E402
from memoranda.engine.embedding import Embedding  # noqa: E402
from shelf import Shelf  # noqa: E402

if TYPE_CHECKING:
    from memoranda.index.vectors.runtimes import np

CHARACTERS = 2_000


def main() -> None:
    """Make the home, and time talks and questions in it."""
    options = _options()
    with TemporaryDirectory(prefix="memoranda-talk-") as scratch:
        home = Path(scratch)
        vault.make_vault(home / "notes", options.notes)
        settings = config.load(home)
        if not options.meaning:
            settings = replace(settings, semantic_model="off", semantic_endpoint=None)
        shelf = _ByChance() if options.meaning else None
        with (
            nullcontext() if shelf is None else shelf.lent(),
            open_session(home, config=settings, watch=True) as memory,
        ):
            memory.search("warm")
            if shelf is not None:
                shelf.fill(memory, options.seconds)
            _measure(memory, options)


class _ByChance(Shelf):
    """A model that reads queries, and gives notes vectors by chance."""

    is_filling = False
    _size: int | None = None

    def fill(self, memory: MemorySession, seconds: float) -> None:
        """Give notes their vectors, for at most this many seconds, and print how many have one."""
        embedding = Embedding(memory)
        end = time.monotonic() + seconds
        self.is_filling = True
        # A call may spend its time on cutting notes into passages, and another one goes on.
        while time.monotonic() < end and embedding.embed_some(10):
            pass
        self.is_filling = False
        print(self.name, embedding.counts(), flush=True)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return a unit vector for each text, by the model unless notes are read."""
        if not self.is_filling:
            return super().embed(texts)
        from memoranda.index.vectors.runtimes import np

        if self._size is None:
            self._size = super().embed(["size"]).shape[1]
        chance = np.random.default_rng(list(texts[0].encode()))
        rows = chance.standard_normal((len(texts), self._size), np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _measure(memory: MemorySession, options: argparse.Namespace) -> None:
    """Time talks and questions by turns, and print the medians."""
    questions = vault.questions(options.notes, per_kind=options.talks)
    times: dict[str, list[tuple[float, float]]] = {
        "a question": [],
        "a talk": [],
        "a turn later": [],
    }
    for number in range(options.talks):
        asked = questions[number % len(questions)].text
        question = f"When was {asked} decided?"
        talk = _talk(number, options.notes)
        _, _, talk_without_first_turn = talk.partition("\n")
        queries = {
            "a question": question,
            "a talk": talk,
            "a turn later": f"{talk_without_first_turn}user: {question}\n",
        }
        for kind, text in queries.items():
            began = (time.process_time(), time.perf_counter())
            memory.search(text, limit=10)
            ended = (time.process_time(), time.perf_counter())
            times[kind].append((ended[0] - began[0], ended[1] - began[1]))
    for kind, pairs in times.items():
        processor, clock = (1_000 * median(column) for column in zip(*pairs, strict=True))
        print(f"{kind}: {processor:.1f} ms of processor time, {clock:.1f} ms by the clock")


def _talk(number: int, notes: int) -> str:
    """Return a talk of two speakers about what one note says."""
    text = vault.note_text(number * 37 % notes, notes).rpartition("---\n")[2]
    sentences = [sentence.strip() for sentence in text.replace("\n", ". ").split(". ")]
    lines: list[str] = []
    while sum(map(len, lines)) < CHARACTERS:
        for sentence in filter(None, sentences):
            speaker = ("user", "assistant")[len(lines) % 2]
            lines.append(f"{speaker}: {sentence} {len(lines)}.\n")
    return "".join(lines)[-CHARACTERS:].partition("\n")[2]


def _options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--notes", type=int, default=10_000)
    add("--talks", type=int, default=12)
    add("--meaning", action="store_true", help="with the model that a home uses by default")
    add("--seconds", type=float, default=100, help="for the vectors of notes, at most")
    return parser.parse_args()


if __name__ == "__main__":
    main()
