"""Weights of the ranking of questions, fitted: a regularised listwise fit over the candidates of
each question.

    python bench/fit.py SET.json [SET.json ...] [--strength 0.3] [--without FEATURE ...]

A set is in LoCoMo's form. Each conversation is left out in turn: fitted on the others, measured on
it. Then all are fitted together, and the table of `index/search/weights.py` is printed, ready to be
read and copied. Needs scipy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
for source_folder in (HERE, HERE.parent / "src"):
    if str(source_folder) not in sys.path:
        sys.path.insert(0, str(source_folder))

import numpy as np  # noqa: E402
from scipy.optimize import minimize  # noqa: E402

from haystacks import read  # noqa: E402
from memoranda.index import search  # noqa: E402
from memoranda.index.search import weights  # noqa: E402
from memoranda.index.search.ranking import Ranking, newest_first  # noqa: E402
from retrieval import PAGE, ByWords, Place  # noqa: E402

FITTED = (
    "words",
    "before",
    "after",
    "around",
    "conversation",
    "conversation_words",
    "speaker",
    "own",
    "asks",
    "date",
    "timed",
)
"""The features whose weights are fitted; those inside `words` and `several` keep theirs."""


@dataclass
class Asked:
    """The candidates of a question: a row of features each, which of them are evidence, how much
    evidence there is.
    """

    conversation: str
    features: np.ndarray
    is_evidence: np.ndarray
    count: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument(
        "--without", nargs="+", default=[], metavar="FEATURE", help="keep these out"
    )
    parser.add_argument(
        "--strength",
        type=float,
        default=0.3,
        help="of the regularisation towards the weights in use",
    )
    options = parser.parse_args(arguments)
    questions = [
        question for conversation in read(options.sets) for question in _asked(conversation)
    ]
    for question in questions:
        question.features *= [name not in options.without for name in FITTED]
    start = np.array([getattr(weights.WEIGHTS, name) for name in FITTED])
    names = list(dict.fromkeys(question.conversation for question in questions))
    print(f"{'left out':<20}{'in use':>10}{'fitted':>10}")
    total = np.zeros(2)
    for name in names:
        inside = [question for question in questions if question.conversation != name]
        outside = [question for question in questions if question.conversation == name]
        pair = np.array(
            [_recall(outside, start), _recall(outside, fitted(inside, start, options.strength))]
        )
        total += pair * len(outside) / len(questions)
        print(f"{name:<20}{pair[0]:>10.1f}{pair[1]:>10.1f}")
    print(f"{'all':<20}{total[0]:>10.1f}{total[1]:>10.1f}\n")
    for name, old, new in zip(
        FITTED, start, fitted(questions, start, options.strength), strict=True
    ):
        print(f"    {name}: float = {new:.2f}  # before: {old:.2f}")
    return 0


def fitted(some: Sequence[Asked], start: np.ndarray, strength: float) -> np.ndarray:
    """The weights under which the evidence is likeliest to be drawn from the candidates, drawn by
    the exponential of their score; near `start`, and of scale 1 for `words`."""
    usable = [question for question in some if question.is_evidence.any()]

    def loss(table: np.ndarray) -> tuple[float, np.ndarray]:
        value = 0.0
        slope = np.zeros(len(table))
        for question in usable:
            score = question.features @ table
            share = np.exp(score - score.max())
            share /= share.sum()
            value -= float(np.log(share[question.is_evidence] + 1e-12).mean())
            slope += share @ question.features - question.features[question.is_evidence].mean(
                axis=0
            )
        away = table / _SHARPNESS - start
        value = value / len(usable) + strength * float(away @ away)
        return value, slope / len(usable) + 2 * strength * away / _SHARPNESS

    best = minimize(loss, start * _SHARPNESS, jac=True, method="L-BFGS-B").x
    return best / best[0] * start[0]


_SHARPNESS = 4.0
"""Scores of about 1 to 3 are this much apart in the exponent."""


def _asked(conversation) -> list[Asked]:
    questions: list[Asked] = []
    with TemporaryDirectory(prefix="memoranda-fit-") as folder:
        pipeline = ByWords(Place(Path(folder)))
        pipeline.load(conversation.turns)
        usual = Ranking
        calls: list[tuple[list[int], np.ndarray, list[str]]] = []

        class Recorded(Ranking):
            """A ranking that keeps what each candidate's features are."""

            def __init__(self, *args, **more) -> None:
                super().__init__(*args, **more)
                rows = list(self.features)
                paths = dict(self.context.db.execute("select row, path from note"))
                calls.append((rows, feature_table(self, rows), [paths[row] for row in rows]))

        setattr(search, "Ranking", Recorded)  # noqa: B010
        try:
            for question in conversation.questions:
                if question.category not in (1, 2, 3, 4):
                    continue
                calls.clear()
                pipeline.find(question.text, PAGE)
                if not calls:
                    continue
                _, table, paths = calls[-1]
                evidence = set(question.evidence)
                is_evidence = np.array([pipeline.known[path] in evidence for path in paths])
                questions.append(Asked(conversation.id, table, is_evidence, len(evidence)))
        finally:
            setattr(search, "Ranking", usual)  # noqa: B010
            pipeline.close()
    return questions


def feature_table(ranking: Ranking, rows: Sequence[int]) -> np.ndarray:
    """What each feature says of these candidates, whatever its weight."""
    word_scores = ranking._word_scores
    scorer = ranking.scorer
    notes = ranking.features
    turn_rows = [row for row in rows if notes[row].conversation is not None]
    beside = ranking.context.neighbors(turn_rows)
    best = set(
        newest_first({row: word_scores.get(row, 0.0) for row in turn_rows})[
            : weights.WEIGHTS.sources
        ]
    )
    periods = ranking.question.periods
    when = ranking.question.when
    lines = []
    for row in rows:
        note = notes[row]
        sides = beside.get(row, ([], []))
        place = note.conversation

        def lent(near: Sequence[int], at: int) -> float:
            if at < len(near) and near[at] in best:
                return word_scores.get(near[at], 0.0)
            return 0.0

        ahead, behind = sides
        if place is None:
            together = ranking.bits.get(row, 0)
        else:
            together = ranking._together.get(place, 0)
        values = {
            "words": word_scores.get(row, 0.0),
            "before": lent(ahead, 0),
            "after": lent(behind, 0),
            "around": sum(lent(side, at) for side in sides for at in (1, 2)),
            "conversation": word_scores.get(row, 0.0)
            if place is None
            else ranking._best.get(place, 0.0),
            "conversation_words": scorer[together] / ranking._most,
            "speaker": float(place is not None and note.speaker in ranking.speakers),
            "own": note.first_person / 4,
            "asks": 0.0 if place is None else note.question / 100,
            "date": sum(period.share(note.day) for period in periods),
            "timed": float(place is not None and when and note.has_time),
        }
        lines.append([values[name] for name in FITTED])
    return np.array(lines).reshape(len(rows), len(FITTED))


def _recall(some: Sequence[Asked], table: np.ndarray) -> float:
    shares = []
    for question in some:
        best = np.argsort(-(question.features @ table), kind="stable")[:PAGE]
        shares.append(question.is_evidence[best].sum() / question.count)
    return 100 * float(np.mean(shares))


if __name__ == "__main__":
    sys.exit(main())
