"""How much meaning and how much words a query gets: keep what both say once, try mixtures in seconds.

    python bench/mixture.py FOLDER SETS CACHE --vectors FOLDER [--only NAME ...]

FOLDER holds the sets of `needs.py`, SETS the checkouts of `held_out.py`. For each question the cache
gets one line of JSON: the figure with each share of meaning in SHARES, the figure of the model alone,
what the query and the index show before anybody knows the answer (`evidence`), and of the best notes
by words and by cosine both numbers. `mixture_fit.py` reads it. Only totals are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
for source_folder in (HERE, HERE.parent / "src"):
    if str(source_folder) not in sys.path:
        sys.path.insert(0, str(source_folder))

import needs  # noqa: E402
from held_out import Control, figure  # noqa: E402
from memoranda.index import search as search_package  # noqa: E402
from memoranda.index.search import weights  # noqa: E402
from memoranda.index.search.ranking import Ranking  # noqa: E402
from memoranda.index.vectors.runtimes import np  # noqa: E402
from memoranda.text.tokens import passages, words  # noqa: E402
from public_sets import found_in  # noqa: E402
from retrieval import AT_ONCE, Ours, Place  # noqa: E402
from shelf import Shelf  # noqa: E402

SHARES = (0.0, 0.3, 0.6, 0.8, 1.0)
PAGE = 10
_DEPTH = 60
_PUBLIC = ("REALTALK", "Cranfield", "CISI", "Preferences", "XQuAD en", "XQuAD zh")


@dataclass(frozen=True)
class Moment:
    """A question at the time it is asked.

    new: the texts that come into its home before it.
    measure: the measure of its set, as `held_out.figure` knows it.
    """

    id: str
    text: str
    evidence: tuple[str, ...]
    new: list
    measure: str


class Watched(Ranking):
    """The ranking of a search, which the last search leaves in `last`."""

    last: Ranking | None = None
    asked: str = ""

    def __init__(self, context, text, today=None, near=None, query=None, found_rows=()) -> None:
        def watched_near(meant, rows):
            Watched.asked = meant
            return near(meant, rows)

        super().__init__(
            context, text, today, None if near is None else watched_near, query, found_rows
        )
        Watched.last = self


class Matrix:
    """The vectors of all passages of a home."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.keys: list[str] = []
        self.lengths: dict[str, int] = {}
        self._rows: list = []

    def load(self, texts: Sequence) -> None:
        """Add texts."""
        pieces = []
        for text in texts:
            self.lengths[text.key] = len(words(text.spoken))
            for passage in passages(text.spoken):
                piece = text.spoken[passage.start : passage.end]
                pieces.append((text.key, piece))
        for at in range(0, len(pieces), AT_ONCE):
            some = pieces[at : at + AT_ONCE]
            self.keys += [key for key, _ in some]
            texts_of_some = [piece for _, piece in some]
            rows = self._shelf.embed(texts_of_some)
            self._rows.append(rows)

    def cosines(self, text: str) -> dict[str, float]:
        """The cosine of the nearest passage of each text."""
        if len(self._rows) > 1:
            self._rows = [np.concatenate(self._rows)]
        question = self._shelf.embed([text])[0]
        cosines = self._rows[0] @ question
        order = np.argsort(-cosines, kind="stable")
        best: dict[str, float] = {}
        for at in order.tolist():
            key = self.keys[at]
            if key not in best:
                best[key] = round(float(cosines[at]), 5)
        return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill the cache."""
    options = _arguments(arguments)
    search_package.Ranking = Watched
    shelf = Shelf(options.vectors)
    options.cache.mkdir(parents=True, exist_ok=True)
    for name, homes in _sets(options.needs, options.sets, options.sample):
        if options.only and name not in options.only:
            continue
        begin = time.process_time()
        count = 0
        with (options.cache / f"{name}.jsonl").open("w", encoding="utf-8") as lines:
            for home_name, moments in homes:
                for row in _rows(home_name, moments, shelf):
                    lines.write(json.dumps(row))
                    lines.write("\n")
                    count += 1
        seconds = time.process_time() - begin
        print(f"{name}: {count} in {seconds:.0f} s", flush=True)
    return 0


def _sets(
    folder: Path, checkouts: Path, sample: int
) -> Iterator[tuple[str, Iterator[tuple[str, Iterator[Moment]]]]]:
    for name, homes in needs._sets(folder):
        yield name, ((home.name, _moments_of_needs(home, sample)) for home in homes)
    for collection in found_in(checkouts):
        if collection.name in _PUBLIC:
            yield (
                collection.name,
                (
                    (home.name, _moments_of_set(home, collection.measure, sample))
                    for home in collection.homes()
                ),
            )


def _moments_of_needs(home: needs.Home, sample: int) -> Iterator[Moment]:
    questions = sorted(home.questions, key=lambda pending: (pending.day, pending.without))
    later_texts = list(home.texts)
    known_keys: set[str] = set()
    for number, question in enumerate(questions):
        asked_later = {later.without for later in questions[number:]}
        new = []
        still_later = []
        for text in later_texts:
            if needs._is_there(text, question, asked_later):
                new.append(text)
                known_keys.add(text.key)
            else:
                still_later.append(text)
        later_texts = still_later
        evidence = tuple(sorted(question.evidence & known_keys))
        if number % sample:
            evidence = ()
        yield Moment(question.id, question.text, evidence, new, "recall")


def _moments_of_set(home, measure: str, sample: int) -> Iterator[Moment]:
    """Every Nth question."""
    new = home.texts
    for question in home.questions[::sample]:
        yield Moment(question.id, question.text, question.evidence, new, measure)
        new = []


def _rows(home_name: str, moments: Iterator[Moment], shelf: Shelf) -> Iterator[dict]:
    with TemporaryDirectory(prefix="memoranda-mixture-") as scratch:
        ours = Ours(Place(Path(scratch), shelf))
        matrix = Matrix(shelf)
        texts: list = []
        control: Control | None = None
        for moment in moments:
            if moment.new:
                ours.load(moment.new)
                matrix.load(moment.new)
                texts += moment.new
                control = Control(texts)
            if moment.evidence:
                yield {"home": home_name, **_row(moment, ours, matrix, control)}
        ours.close()


def _row(moment: Moment, ours: Ours, matrix: Matrix, control: Control) -> dict:
    """All that is kept of one question."""
    asked = _Asked(moment)
    usual = weights.WEIGHTS
    Watched.asked = ""
    keys = ours.find(moment.text, PAGE)
    asked.figures["now"] = asked.figure(keys)
    evidence = _evidence_of(Watched.last)
    meant = Watched.asked or moment.text
    by_words: dict[str, float] = {}
    for share in SHARES:
        weights.WEIGHTS = replace(
            usual,
            meaning=share,
            told_meaning=share,
            unheard_meaning=share,
            alone_meaning=share,
        )
        if share == 0:
            hits = ours._memory.search(moment.text, limit=_DEPTH)
            by_words = {ours.known[hit.note.path]: hit.score or 0.0 for hit in hits}
            keys = list(by_words)
        else:
            keys = ours.find(moment.text, PAGE)
        asked.figures[str(share)] = asked.figure(keys)
    weights.WEIGHTS = usual
    cosines = matrix.cosines(meant)
    nearest = list(cosines)
    asked.figures["model"] = asked.figure(nearest[:PAGE])
    asked.figures["fts"] = asked.figure(control.find(moment.text, PAGE))
    candidates = dict.fromkeys([*by_words, *nearest[:_DEPTH]])
    values = np.array(list(cosines.values()))
    lengths = list(matrix.lengths.values())
    evidence |= {
        "notes": len(cosines),
        "passages": len(matrix.keys),
        "length": sum(lengths) / len(lengths),
        "cos1": float(values[0]),
        "cos10": float(values[min(9, len(values) - 1)]),
        "cos_mean": float(values.mean()),
        "cos_sd": float(values.std()),
        "word_scores": list(by_words.values())[:20],
        "agree10": len({*list(by_words)[:PAGE]} & {*nearest[:PAGE]}) / PAGE,
        "question_words": len(words(moment.text)),
    }
    return {
        "id": moment.id,
        "measure": moment.measure,
        "evidence_count": len(moment.evidence),
        "figures": asked.figures,
        "evidence": evidence,
        "candidates": [
            [key, by_words.get(key, 0.0), cosines.get(key, 0.0), int(key in moment.evidence)]
            for key in candidates
        ],
        "meant": meant,
    }


class _Asked:
    """A question, and its figures by name."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self.evidence = moment.evidence
        self.figures: dict[str, float] = {}

    def figure(self, keys: Sequence[str]) -> float:
        return round(figure(self._moment.measure, keys, self), 5)


def _evidence_of(ranking: Ranking | None) -> dict:
    """What the words of a query show."""
    if ranking is None:
        return {"is_told": False, "alone": 1.0, "heard": 0.0, "rarities": []}
    notes = list(ranking.features.values())
    rarities = [round(word.weight, 3) for word in ranking.words]
    rarities.sort(reverse=True)
    return {
        "is_told": ranking.is_told,
        "alone": sum(note.conversation is None for note in notes) / (len(notes) or 1),
        "is_strict": ranking.query is not None,
        "heard": round(ranking._heard_share(), 4),
        "rarities": rarities[:12],
        "speakers": len(ranking.speakers),
    }


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("needs", type=Path, metavar="FOLDER")
    add("sets", type=Path, metavar="SETS")
    add("cache", type=Path, metavar="CACHE")
    add("--vectors", type=Path, required=True, metavar="FOLDER", help="keep vectors here")
    add("--only", nargs="+", metavar="NAME", help="only these sets")
    add("--sample", type=int, default=1, metavar="N", help="every Nth question")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
