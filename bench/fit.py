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
    questions: list[Asked] = []
    for conversation in read(options.sets):
        questions.extend(_asked(conversation))
    for question in questions:
        question.features *= [name not in options.without for name in FITTED]
    start = np.array([getattr(weights.WEIGHTS, name) for name in FITTED])
    names = list(dict.fromkeys(question.conversation for question in questions))
    print(f"{'left out':<20}{'in use':>10}{'fitted':>10}")
    total = np.zeros(2)
    for name in names:
        inside = [question for question in questions if question.conversation != name]
        outside = [question for question in questions if question.conversation == name]
        fitted_inside = fitted(inside, start, options.strength)
        pair = np.array([_recall(outside, start), _recall(outside, fitted_inside)])
        total += pair * len(outside) / len(questions)
        print(f"{name:<20}{pair[0]:>10.1f}{pair[1]:>10.1f}")
    print(f"{'all':<20}{total[0]:>10.1f}{total[1]:>10.1f}\n")
    fitted_to_all = fitted(questions, start, options.strength)
    for name, old, new in zip(FITTED, start, fitted_to_all, strict=True):
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
                path_of_row = dict(self.context.db.execute("select row, path from note"))
                paths = [path_of_row[row] for row in rows]
                calls.append((rows, feature_table(self, rows), paths))

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
                keys = [pipeline.known[path] for path in paths]
                is_evidence = np.array([key in evidence for key in keys])
                asked_question = Asked(conversation.id, table, is_evidence, len(evidence))
                questions.append(asked_question)
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
    scores_of_turns = {row: word_scores.get(row, 0.0) for row in turn_rows}
    best = set(newest_first(scores_of_turns)[: weights.WEIGHTS.sources])
    periods = ranking.question.periods

    def lent(near: Sequence[int], at: int) -> float:
        """The score that the neighbour at this distance lends."""
        if at < len(near) and near[at] in best:
            return word_scores.get(near[at], 0.0)
        return 0.0

    lines = []
    for row in rows:
        note = notes[row]
        ahead, behind = beside.get(row, ([], []))
        place = note.conversation
        score = word_scores.get(row, 0.0)
        values = {
            "words": score,
            "before": lent(ahead, 0),
            "after": lent(behind, 0),
            "around": lent(ahead, 1) + lent(ahead, 2) + lent(behind, 1) + lent(behind, 2),
            "own": note.first_person / 4,
            "date": sum(period.share(note.day) for period in periods),
        }
        if place is None:
            values["conversation"] = score
            values["conversation_words"] = (
                scorer[ranking.bits.get(row, 0)] / ranking._highest_of_all
            )
            values |= dict.fromkeys(("speaker", "asks", "timed"), 0.0)
        else:
            values["conversation"] = ranking._best_of_conversation.get(place, 0.0)
            values["conversation_words"] = (
                scorer[ranking._bits_of_conversation.get(place, 0)] / ranking._highest_of_all
            )
            values["speaker"] = float(note.speaker in ranking.speakers)
            values["asks"] = note.question / 100
            values["timed"] = float(ranking.question.when and note.has_time)
        lines.append([values[name] for name in FITTED])
    return np.array(lines).reshape(len(rows), len(FITTED))


def _recall(some: Sequence[Asked], table: np.ndarray) -> float:
    shares = []
    for question in some:
        scores = question.features @ table
        best = np.argsort(-scores, kind="stable")[:PAGE]
        shares.append(question.is_evidence[best].sum() / question.count)
    return 100 * float(np.mean(shares))


if __name__ == "__main__":
    sys.exit(main())
