"""Fit how much meaning counts in a query, each set left out in turn (`mixture.py` fills the cache).

    python bench/mixture_fit.py CACHE [--with EVIDENCE ...] [--steps N]

The share of meaning of a query is a sum of weights times evidence, from 0 to 1. `one` and `low` are
always in it: the share as such, and by how much the best note holds less than half of the query's
words. Figures between the shares of the cache are interpolated. Each set counts alike, and the weights
are held near those in use by a penalty. A set is measured with the weights that the others give.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

Weights = np.ndarray
_USUAL = {"one": 0.6, "low": 0.8}
_PENALTY = 0.002
_FIRST_STEP = 0.15


def _spread(evidence: Mapping, name: str) -> float:
    """How far a cosine is above the mean of all notes, in standard deviations."""
    return (evidence[name] - evidence["cos_mean"]) / (evidence["cos_sd"] or 1.0)


def _margin(evidence: Mapping) -> float:
    """How much of the best score by words the tenth note lacks."""
    scores = evidence["word_scores"]
    if not scores or not scores[0]:
        return 0.0
    return (scores[0] - scores[min(9, len(scores) - 1)]) / scores[0]


EVIDENCE: dict[str, Callable[[Mapping], float]] = {
    "one": lambda evidence: 1.0,
    "low": lambda evidence: max(0.0, 0.5 - evidence["heard"]),
    "high": lambda evidence: max(0.0, evidence["heard"] - 0.5),
    "alone": lambda evidence: evidence["alone"],
    # What is told has a share of its own
    "alone_high": lambda evidence: (
        evidence["alone"] * (evidence["heard"] > 0.5) * (not evidence["is_told"])
    ),
    "told": lambda evidence: float(evidence["is_told"]),
    "nearest": lambda evidence: _spread(evidence, "cos1") - 4,
    "tenth": lambda evidence: _spread(evidence, "cos10") - 2.2,
    "margin": lambda evidence: _margin(evidence) - 0.4,
    "agreement": lambda evidence: evidence["agree10"] - 0.25,
    "size": lambda evidence: float(np.log2(evidence["notes"])) - 9,
    "rarities": lambda evidence: float(np.log1p(sum(evidence["rarities"]))) - 3,
}


class SetOfQueries:
    """The queries of a set: their evidence, and the figure of each with each share of meaning."""

    def __init__(self, rows: Sequence[Mapping], names: Sequence[str]) -> None:
        figures = [row["figures"] for row in rows]
        self.shares = sorted(float(name) for name in figures[0] if name[0].isdigit())
        self.figures = np.array([[row[str(share)] for share in self.shares] for row in figures])
        self.now = np.array([row["now"] for row in figures])
        self.evidence = np.array(
            [[EVIDENCE[name](row["evidence"]) for name in names] for row in rows]
        )

    def figure(self, weights: Weights) -> float:
        """The mean figure with these weights."""
        wanted_shares = np.clip(self.evidence @ weights, 0, 1)
        rows = zip(wanted_shares, self.figures, strict=True)
        return float(np.mean([np.interp(share, self.shares, row) for share, row in rows]))


def fitted(sets: Sequence[SetOfQueries], usual: Weights, steps: int) -> Weights:
    """The weights with the best mean figure, found by steps of chance that become shorter."""
    chance = np.random.default_rng(15)

    def worth(weights: Weights) -> float:
        penalty = _PENALTY * float(np.sum((weights - usual) ** 2))
        return float(np.mean([queries.figure(weights) for queries in sets])) - penalty

    weights = usual
    best = worth(weights)
    length = _FIRST_STEP
    for step in range(steps):
        moves = chance.normal(0, length, len(usual))
        is_moved = chance.random(len(usual)) < 0.4
        changed = weights + moves * is_moved
        value = worth(changed)
        if value > best:
            weights = changed
            best = value
        if step % max(1, steps // 5) == 0:
            length *= 0.7
    return weights


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and print."""
    options = _arguments(arguments)
    names = ["one", "low", *options.evidence]
    usual = np.array([_USUAL.get(name, 0.0) for name in names])
    sets = {}
    for path in sorted(options.cache.glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = list(map(json.loads, lines))
        sets[path.stem] = SetOfQueries(rows, names)
    print(f"{'percent':<20}{'now':>7}{'fitted':>8}   weights, fitted without this set")
    for name, queries in sets.items():
        others = list(sets.values())
        others.remove(queries)
        weights = fitted(others, usual, options.steps)
        written = "  ".join(f"{key} {value:.2f}" for key, value in zip(names, weights, strict=True))
        now = 100 * float(queries.now.mean())
        figure = 100 * queries.figure(weights)
        print(f"{name:<20}{now:>7.1f}{figure:>8.1f}   {written}", flush=True)
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("cache", type=Path, metavar="CACHE")
    add(
        "--with",
        nargs="+",
        default=[],
        choices=list(EVIDENCE),
        dest="evidence",
        metavar="EVIDENCE",
        help=f"evidence beside one and low: {', '.join(EVIDENCE)}",
    )
    add("--steps", type=int, default=500, metavar="N", help="steps of each fit")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
