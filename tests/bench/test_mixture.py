"""Fitting how much meaning counts in a query (bench/mixture_fit.py)."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
from mixture_fit import SetOfQueries, fitted  # noqa: E402

WORDS_ARE_RIGHT = {"0.0": 1.0, "0.5": 0.5, "1.0": 0.0, "now": 0.4}
MEANING_IS_RIGHT = {"0.0": 0.0, "0.5": 0.5, "1.0": 1.0, "now": 0.6}


def queries(figures: dict[str, float], heard: float) -> SetOfQueries:
    rows = [{"figures": figures, "evidence": {"heard": heard}}] * 3
    return SetOfQueries(rows, ("one", "low"))


def test_a_figure_between_two_shares_is_interpolated() -> None:
    assert queries(WORDS_ARE_RIGHT, 1.0).figure(np.array([0.25, 0.0])) == pytest.approx(0.75)


def test_a_share_is_at_most_one() -> None:
    assert queries(MEANING_IS_RIGHT, 0.0).figure(np.array([0.9, 2.0])) == 1.0


def test_the_fit_gives_each_kind_of_query_what_answers_it() -> None:
    heard = queries(WORDS_ARE_RIGHT, 1.0)
    unheard = queries(MEANING_IS_RIGHT, 0.0)
    usual = np.array([0.5, 0.0])

    weights = fitted([heard, unheard], usual, 300)

    assert heard.figure(weights) > heard.figure(usual)
    assert unheard.figure(weights) > unheard.figure(usual)
