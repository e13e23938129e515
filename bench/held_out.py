"""The sets of a folder, each by its own figure, beside an untuned FTS5 table with the same tokens.

    python bench/held_out.py FOLDER [--only NAME ...] [--sample N] [--meaning] [--keep FILE]
    [--beside FILE]
                             [--homes FOLDER] [--without FEATURE ...] [--vectors FOLDER] [--brief]
                             [--where]

`--where` says which public repositories to clone into the folder. Beside our figure is the
difference from the control, with its interval of 95 percent by paired bootstrap. Of sets with
many small homes, where many texts tie, it is also the difference from the control with the newest of
equal texts first, as ours has them. With `--meaning` there is the difference from the
model alone too, the cosine of the nearest passage. `--keep` writes the figure of each
question, and `--beside` compares with such a file. With `--without`, what these features are worth. Only
totals are printed: nobody reads the questions of a set that is to say what holds on unseen ones.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
for source_folder in (HERE, HERE.parent / "src"):
    if str(source_folder) not in sys.path:
        sys.path.insert(0, str(source_folder))

from conversations import CATEGORIES, Question  # noqa: E402
from memoranda.index.search import weights  # noqa: E402
from memoranda.text.tokens import fts_text, query_text, tokens  # noqa: E402
from public_sets import REPOSITORIES, Collection, Home, found_in  # noqa: E402
from retrieval import AT_ONCE, ByWords, Ours, Place, gain  # noqa: E402
from shelf import ModelAlone, Shelf  # noqa: E402

PAGE = 10
_RESAMPLES = 2_000


class Control:
    """FTS5 with porter and its own bm25(), the question's words and pairs of CJK characters joined
    by OR: no weight, no list, no stop word."""

    def __init__(self, texts: Sequence) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "create virtual table one using fts5(key unindexed, body,"
            " tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        self._db.executemany(
            "insert into one values (?, ?)", [(text.key, fts_text(text.spoken)) for text in texts]
        )

    def close(self) -> None:
        self._db.close()

    def find(self, text: str, depth: int, *, newest_first: bool = False) -> list[str]:
        """The keys of the best texts. Of equal ones FTS5 mostly has the oldest first."""
        query_words = []
        for token in tokens(text):
            query_words.extend(query_text(token)[0].split())
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(query_words))
        if not match:
            return []
        # Ranks of equal texts differ in their last digits.
        order = "round(rank, 6), rowid desc" if newest_first else "rank"
        rows = self._db.execute(
            f"select key from one where one match ? order by {order} limit ?", (match, depth)
        )
        return [key for (key,) in rows]


@dataclass(frozen=True)
class Figures:
    """The figures of one question: ours, the control's and the model's alone; `ms` is our time.

    newest: the control's with the newest of equal texts first, as ours. None where few texts tie.
    """

    question: Question
    ours: float
    control: float
    ms: float
    model: float | None = None
    newest: float | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _arguments(arguments)
    if options.where:
        print("\n".join(f"{name:<24}{place}" for name, place in REPOSITORIES.items()))
        return 0
    sets = found_in(options.folder)
    if options.only:
        sets = [collection for collection in sets if collection.name in options.only]
    if not sets:
        print(
            f"{options.folder}: none of the sets is there; --where says where they are found",
            file=sys.stderr,
        )
        return 1
    weights.WEIGHTS = replace(weights.WEIGHTS, **dict.fromkeys(options.without, 0.0))
    shelf = Shelf(options.vectors) if options.meaning else None
    before = {}
    if options.beside:
        before = json.loads(options.beside.read_text(encoding="utf-8"))
    figures_by_set: dict[str, dict[str, float]] = {}
    print(f"{'percent':<34}{'n':>6}{'FTS5':>7}{'ours':>7}   ours - FTS5{'':<10}and so on")
    for collection in sets:
        rows = list(_measured(collection, shelf, options.sample, options.homes))
        figures_by_set[collection.name] = {row.question.id: row.ours for row in rows}
        groups = {collection.name: rows}
        if collection.measure == "recall" and not options.brief:
            groups |= _by_kind(rows)
        for group, rows_of_group in groups.items():
            _print(group, rows_of_group, before.get(collection.name, {}))
    if options.keep:
        options.keep.write_text(json.dumps(figures_by_set), encoding="utf-8")
    return 0


def _by_kind(rows: Sequence[Figures]) -> dict[str, list[Figures]]:
    """The rows of each kind of question, under an indented title."""
    groups: dict[str, list[Figures]] = {}
    for row in rows:
        kind = row.question.category
        if isinstance(kind, int):
            kind = CATEGORIES[kind]
        groups.setdefault(f"  {kind}", []).append(row)
    return groups


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER")
    add("--only", nargs="+", metavar="NAME", help="only these sets")
    add(
        "--sample",
        type=int,
        default=1,
        metavar="N",
        help="of sets with many homes every Nth, else every Nth question",
    )
    add("--meaning", action="store_true", help="with the model that a home uses by default")
    add("--vectors", type=Path, metavar="FOLDER", help="keep vectors here, for the next run")
    add("--keep", type=Path, metavar="FILE", help="write the figure of each question")
    add("--beside", type=Path, metavar="FILE", help="compare with what was kept")
    add("--homes", type=Path, metavar="FOLDER", help="keep the loaded homes here, for the next run")
    add("--without", nargs="+", default=[], metavar="FEATURE", help="with these weights at 0")
    add("--brief", action="store_true", help="no line for each kind of question")
    add("--where", action="store_true", help="which repositories hold the sets")
    return parser.parse_args(arguments)


def _measured(
    collection: Collection, shelf: Shelf | None, sample: int, homes: Path | None
) -> Iterator[Figures]:
    """The figures of each question."""
    homes_of_set = list(collection.homes())
    is_many = len(homes_of_set) > 100
    if is_many:
        homes_of_set = homes_of_set[::sample]
    for home in homes_of_set:
        questions = home.questions if is_many else home.questions[::sample]
        with TemporaryDirectory(prefix="memoranda-sets-") as scratch:
            folder = Path(scratch)
            if homes is not None:
                folder = homes / home.name.replace("/", "_").replace(" ", "_")
            # Few texts tie often, and of equal ones the newest comes first: written one by one,
            # that is no chance.
            pipeline = _loaded(home, folder, shelf, 1 if is_many else AT_ONCE)
            control = Control(home.texts)
            alone = None
            if shelf is not None:
                alone = ModelAlone(shelf)
                alone.load(home.texts)
            for question in questions:
                figures = _asked(question, collection.measure, pipeline, control, alone)
                if is_many:
                    keys = control.find(question.text, PAGE, newest_first=True)
                    newest = figure(collection.measure, keys, question)
                    figures = replace(figures, newest=newest)
                yield figures
            pipeline.close()
            control.close()


def _loaded(home: Home, folder: Path, shelf: Shelf | None, at_once: int) -> ByWords:
    """A pipeline with the texts of a home, which it may have kept in `folder` from another run."""
    known_file = folder / ".known.json"
    is_loaded = known_file.exists()
    folder.mkdir(parents=True, exist_ok=True)
    place = Place(folder, shelf)
    pipeline = Ours(place) if shelf else ByWords(place)
    if is_loaded:
        pipeline.known = json.loads(known_file.read_text(encoding="utf-8"))
        pipeline.embed()
    else:
        pipeline.load(home.texts, at_once)
        known_file.write_text(json.dumps(pipeline.known), encoding="utf-8")
    return pipeline


def _asked(
    question: Question,
    measure: str,
    pipeline: ByWords,
    control: Control,
    alone: ModelAlone | None,
) -> Figures:
    """The figures of one question."""
    begin = time.perf_counter()
    our_keys = pipeline.find(question.text, PAGE)
    took = (time.perf_counter() - begin) * 1000
    plain_keys = control.find(question.text, PAGE)
    model_figure = None
    if alone is not None:
        model_figure = figure(measure, alone.find(question.text, PAGE), question)
    ours = figure(measure, our_keys, question)
    plain = figure(measure, plain_keys, question)
    return Figures(question, ours, plain, took, model_figure)


def figure(measure: str, keys: Sequence[str], question: Question) -> float:
    """The figure of one question by the measure of its set."""
    evidence = set(question.evidence)
    if measure == "ndcg":
        return gain(keys, question.evidence, PAGE)
    depth = PAGE if measure == "recall" else max(3, len(evidence))
    return len(evidence & set(keys[:depth])) / len(evidence)


def _print(name: str, rows: Sequence[Figures], before: Mapping[str, float]) -> None:
    ours = [row.ours for row in rows]
    control = [row.control for row in rows]
    line = f"{name:<34}{len(rows):>6}{_mean(control):>7.1f}{_mean(ours):>7.1f}"
    line += f"   {compared(ours, control):<20}"

    model = [row.model for row in rows if row.model is not None]
    if model:
        line += f"   model {_mean(model):.1f}, {compared(ours, model):<20}"
    newest = [row.newest for row in rows if row.newest is not None]
    if newest:
        line += f"   ties newest first {_mean(newest):.1f}, {compared(ours, newest)}"

    again = [row for row in rows if row.question.id in before]
    if again:
        new = [row.ours for row in again]
        old = [before[row.question.id] for row in again]
        line += f"   before {_mean(old):.1f}, {compared(new, old):<20}"

    milliseconds = median(row.ms for row in rows)
    print(f"{line}   {milliseconds:.2f} ms", flush=True)


def compared(figures: Sequence[float], other_figures: Sequence[float]) -> str:
    """The difference of the means in percent, with its interval."""
    differences = [a - b for a, b in zip(figures, other_figures, strict=True)]
    low, high = interval(differences)
    return f"{_mean(differences):+.1f} [{low:+.1f} {high:+.1f}]"


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of `differences`, in percent, by the bootstrap."""
    draw = random.Random(15)
    count = len(differences)
    means = sorted(math.fsum(draw.choices(differences, k=count)) / count for _ in range(_RESAMPLES))
    return 100 * means[_RESAMPLES // 40], 100 * means[-_RESAMPLES // 40 - 1]


def _mean(values: Sequence[float]) -> float:
    return 100 * math.fsum(values) / len(values)


if __name__ == "__main__":
    sys.exit(main())
