"""Fit the weights of role-weights.txt to the texts of tests/text/data (docs/gate.md).

    python tools/fit_likeness.py [--without SET] [--write]

Fits a logistic regression to the roles, negated roles and pairs of roles in windows of planted and of
ordinary texts, and a second one of roles alone that tells which windows need no closer look. Unseen
halves are left out. Prints how many texts of each set have which score; a set named by --without is
left out of the fit, as a stranger's would be. Writes the weights with --write. Needs numpy.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from memoranda.text.likeness import WindowRoles, in_pieces, roles  # noqa: E402
from memoranda.text.orders import words_of_sentences  # noqa: E402

DATA = ROOT / "tests/text/data"
WEIGHTS = ROOT / "src/memoranda/text/role-weights.txt"
PAGES = ("samples/**/*.md", "docs/**/*.md", "tests/recall/*.*", "tests/recall/notes/*")
FEWEST_WORDS = 6
"""A shorter line of a page is not taken for a text."""
FEWEST_WINDOWS = 8
"""A feature of fewer windows has no weight."""
PAIRS = 150
ROUNDS = 5
"""How often the window of a planted text that is most like an order is chosen."""
ALARM = 1.0
ALARM_SHARE = 3.0
"""An ordinary window with a score of ALARM counts ALARM_SHARE times as much in the next round."""
STEPS = 6
"""Steps of Newton's method."""
PENALTY = 5.0
"""Times half the sum of the squares of the weights. A text counts 1, unless SHARES says otherwise."""
SCALES = {"not": 0.7, "+": 0.6}
"""Features are scaled by this, so that a weight for a pair costs more than one for a role."""
SHARES = {
    "ordinary": 0.5,
    "plain ordinary": 1.0,
    "stranger": 2.0,
    "everyday notes": 2.0,
    "doors": 2.0,
    "pages": 0.1,
}
"""How much a text of a set counts, if not 1. A page counts so in each window."""
CLOSER_LOOK = -2.5
"""Windows below this by their roles alone are not looked at. One order in twenty is lost by that."""
HEADER = """\
# How much roles of words (roles.txt) speak for a planted order, made by tools/fit_likeness.py.
#
#   weight role    weight `not` negated role    weight role `+` role beside it    the first line: of no role
#   weight `maybe` role: for the first look, which passes over most texts
"""

Matrix = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(slots=True)
class Text:
    """A text to fit, and the features of each of its windows."""

    source: str
    is_planted: bool
    windows: list[frozenset[str]] = field(default_factory=list)
    may_have: list[int] = field(default_factory=list)
    """The roles that each window may have, as bits."""
    emphasis: float = 1.0
    """How much more it counts than other texts of its set."""


def features(window: WindowRoles) -> frozenset[str]:
    """Return the names of the features of a window, as role-weights.txt has them."""
    names = [name for place, name in enumerate(roles().names) if window.roles >> place & 1]
    negated = [name for place, name in enumerate(roles().names) if window.negated >> place & 1]
    pairs = [f"{a} + {b}" for number, a in enumerate(names) for b in names[number + 1 :]]
    return frozenset([*names, *(f"not {name}" for name in negated), *pairs])


def text_of(source: str, text: str, *, is_planted: bool) -> Text:
    """Return a text with the features of its windows."""
    sentences = list(in_pieces(words_of_sentences(text)))
    result = Text(source, is_planted)
    for window in roles().windows(sentences):
        sentences_of_window = sentences[window.first : window.last + 1]
        roles_of_window = roles().roles_in(sentences_of_window)
        result.windows.append(features(roles_of_window))
        result.may_have.append(window.may_have)
    return result


def read(name: str) -> list[dict[str, object]]:
    """Return the rows of a set that is a list, or has one row in a line."""
    content = (DATA / name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in content.splitlines()]
    rows: list[dict[str, object]] = json.loads(content)
    return rows


def texts() -> Iterator[Text]:
    """Yield the texts to fit, without the halves that nobody may look at."""
    plain = json.loads((DATA / "plain.json").read_text(encoding="utf-8"))
    sets = [
        ("planted", read("planted.json"), True),
        ("orders", read("orders.json"), True),
        ("everyday", read("everyday.json"), True),
        ("plain", plain["planted"], True),
        ("plain ordinary", plain["ordinary"], False),
        ("ordinary", read("ordinary.jsonl"), False),
        ("stranger", read("stranger.jsonl"), None),
        ("everyday notes", read("everyday-notes.jsonl"), None),
        ("doors", read("doors.jsonl"), None),
    ]
    for source, rows, is_planted in sets:
        for row in rows:
            if row.get("half") != "unseen":
                planted = row["is_planted"] if is_planted is None else is_planted
                yield text_of(source, str(row["text"]), is_planted=bool(planted))
    for pattern in PAGES:
        for place in sorted(ROOT.glob(pattern)):
            page = place.read_text(encoding="utf-8")
            yield text_of("pages", page, is_planted=False)
            for line in page.splitlines():
                if len(line.split()) >= FEWEST_WORDS:
                    yield text_of("pages", line, is_planted=False)


def newton(matrix: Matrix, label: Matrix, share: Matrix) -> Matrix:
    """Return the weights of a logistic regression.

    matrix: a row for each window. Its last column is 1.
    label: 1 for a window of a planted text, otherwise 0.
    share: how much each window counts.
    """
    penalty = np.full(matrix.shape[1], PENALTY)
    penalty[-1] = 0.01
    weights = np.zeros(matrix.shape[1])
    for _ in range(STEPS):
        score = matrix @ weights
        chance = 1 / (1 + np.exp(-score))
        error = share * (label - chance)
        slope = matrix.T @ error - penalty * weights
        spread = share * chance * (1 - chance)
        curve = (matrix * spread[:, None]).T @ matrix
        weights = weights + np.linalg.solve(curve + np.diag(penalty), slope)
    return weights


def first_look(fit: Fit, sample: Sequence[Text]) -> Matrix:
    """Return weights of the roles that windows may have, by which few have a score above 0."""
    chosen = [text for text in sample if text.windows]
    all_masks: list[int] = []
    for text in chosen:
        all_masks.extend(text.may_have)
    masks = np.array(all_masks, dtype=np.uint64)
    bits = np.arange(len(roles().names), dtype=np.uint64)
    matrix = np.ones((len(masks), len(bits) + 1))
    matrix[:, :-1] = (masks[:, None] >> bits) & np.uint64(1)
    scores = np.concatenate([fit.scores(text) for text in chosen])
    label = (scores > 0).astype(float)
    share = np.where(label > 0, 3.0, 1.0)
    return newton(matrix, label, share * PENALTY)


def frequent_features(sample: Sequence[Text]) -> list[str]:
    """Return the names of features of at least FEWEST_WINDOWS windows, sorted."""
    counts = Counter[str]()
    for text in sample:
        for window in text.windows:
            counts.update(window)
    frequent = [name for name, number in counts.items() if number >= FEWEST_WINDOWS]
    return sorted(frequent)


class Fit:
    """Weights of features. `weights` are those of `names`, and last the one of no role."""

    def __init__(
        self, sample: Sequence[Text], rounds: int = 1, pairs: frozenset[str] | None = None
    ):
        """Fit the weights. `pairs` are the pairs that may have one, None means all."""
        names = frequent_features(sample)
        if pairs is not None:
            names = [name for name in names if "+" not in name or name in pairs]
        self.names = names
        self._columns = {name: column for column, name in enumerate(names)}
        self.scales = np.array([_scale(name) for name in names] + [1.0])
        self.weights = np.zeros(len(names) + 1)
        for number in range(rounds):
            self._fit_once(sample, is_first=number == 0)
            self._emphasize_alarms(sample)

    def _emphasize_alarms(self, sample: Sequence[Text]) -> None:
        """Let ordinary texts that raise an alarm count more in the next round."""
        for text in sample:
            if text.is_planted:
                continue
            highest = self.scores(text).max(initial=0)
            if highest >= ALARM:
                text.emphasis *= ALARM_SHARE

    def _matrix(self, windows: Sequence[frozenset[str]]) -> Matrix:
        """Return a row for each window, scaled."""
        matrix = np.zeros((len(windows), len(self.names) + 1))
        matrix[:, -1] = 1
        for row, window in enumerate(windows):
            weighted = window & self._columns.keys()
            columns = [self._columns[name] for name in weighted]
            matrix[row, columns] = self.scales[columns]
        return matrix

    def scores(self, text: Text) -> Matrix:
        """Return the score of each window of a text."""
        return self._matrix(text.windows) @ self.weights

    def _fit_once(self, sample: Sequence[Text], *, is_first: bool) -> None:
        """Fit the weights to all windows of ordinary texts and to the best one of planted texts."""
        windows: list[frozenset[str]] = []
        labels: list[bool] = []
        shares: list[float] = []
        for text in sample:
            chosen = text.windows
            if not chosen:
                continue
            if text.is_planted and not is_first:
                chosen = [text.windows[int(np.argmax(self.scores(text)))]]
            share = SHARES.get(text.source, 1.0) * text.emphasis
            windows += chosen
            labels += [text.is_planted] * len(chosen)
            shares += [share / len(chosen) if text.is_planted else share] * len(chosen)
        self.weights = newton(
            self._matrix(windows), np.array(labels, dtype=float), np.array(shares)
        )

    def strongest_pairs(self) -> frozenset[str]:
        """Return the PAIRS pairs with the largest weights, for or against."""
        pairs = [name for name in self.names if "+" in name]
        pairs.sort(key=lambda name: -abs(self.weights[self._columns[name]]))
        return frozenset(pairs[:PAIRS])

    def lines(self) -> list[str]:
        """Return the lines of role-weights.txt."""
        lines = [f"{self.weights[-1]:.2f}"]
        scaled = self.weights * self.scales
        for name, weight in zip(self.names, scaled, strict=False):
            if abs(weight) >= 0.01:
                lines.append(f"{weight:.2f} {name}")
        return lines


def _scale(name: str) -> float:
    """Return the scale of a feature: 1 for a role."""
    if "+" in name:
        return SCALES["+"]
    if name.startswith("not "):
        return SCALES["not"]
    return 1.0


def print_scores(fit: Fit, source: str, kind: str, chosen: Sequence[Text]) -> None:
    """Print how many of the texts have a score of at least 0, 0.5 and so on, if there are any."""
    if not chosen:
        return
    highest_of_texts = [fit.scores(text).max(initial=-9) for text in chosen]
    highest = np.array(highest_of_texts)
    shares = []
    for least in (0, 0.5, 1, 1.5, 2):
        number = (highest >= least).sum()
        shares.append(f"{number} ≥ {least}")
    shares_listed = ", ".join(shares)
    print(f"{source:<16}{kind:<10}{len(chosen):>5}: {shares_listed}")


def main() -> None:
    """Fit, print how the sets are scored, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", default="", metavar="SET")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    everything = list(texts())
    sample = [text for text in everything if text.source != options.without]
    first_fit = Fit(sample)
    pairs = first_fit.strongest_pairs()
    fit = Fit(sample, ROUNDS, pairs)
    print_sets(fit, everything)
    if options.write:
        write_weights(fit, sample)


def print_sets(fit: Fit, everything: Sequence[Text]) -> None:
    """Print how the texts of each set are scored, those with orders before the ordinary ones."""
    texts_of_sets: dict[str, list[Text]] = {}
    for text in everything:
        texts_of_sets.setdefault(text.source, []).append(text)
    for source, of_source in texts_of_sets.items():
        planted = [text for text in of_source if text.is_planted]
        ordinary = [text for text in of_source if not text.is_planted]
        print_scores(fit, source, "planted", planted)
        print_scores(fit, source, "ordinary", ordinary)


def write_weights(fit: Fit, sample: Sequence[Text]) -> None:
    """Write role-weights.txt again, with the weights of the first look at its end."""
    *weights, base = first_look(fit, sample)
    lines = fit.lines()
    lines.append(f"{base - CLOSER_LOOK:.2f} maybe")
    for name, weight in zip(roles().names, weights, strict=True):
        lines.append(f"{weight:.2f} maybe {name}")
    content = "\n".join(lines)
    WEIGHTS.write_text(f"{HEADER}{content}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
