"""Leaving out what cannot be near, told by a vector's share of the leading directions."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from commonplace.index.vectors.leading import Leading  # noqa: E402


def vectors(count: int, seed: int = 1) -> np.ndarray:
    """Unit vectors that differ more in some directions than in others, as texts' do."""
    chance = np.random.default_rng(seed)
    made = chance.standard_normal((count, 384)) * (np.arange(384) + 5.0) ** -0.6
    made = (made @ np.linalg.qr(np.random.default_rng(9).standard_normal((384, 384)))[0]).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_cosines_are_off_by_about_the_error_told() -> None:
    rows, leading = vectors(6_000), Leading()
    leading.extend(rows)
    for question in vectors(20, seed=2):
        about, error = leading.cosines(question)
        off = about - rows @ question
        assert 0.8 * error < np.sqrt(np.mean(np.square(off))) < 1.25 * error
        assert np.abs(off).max() < 8 * error


def test_vectors_added_later_are_told_as_if_all_had_come_at_once() -> None:
    rows, leading = vectors(3_000), Leading()
    for stop in (2_000, 2_001, 3_000, 3_000):
        leading.extend(rows[:stop])
    question = vectors(1, seed=3)[0]
    about, error = leading.cosines(question)
    assert len(about) == 3_000
    assert np.abs(about - rows @ question).max() < 8 * error


def test_directions_are_found_anew_when_there_are_twice_as_many_vectors() -> None:
    few, others = vectors(400), np.eye(384, dtype=np.float32)[np.arange(2_000) % 10]
    leading, rows = Leading(), np.concatenate([few, others])
    leading.extend(few)
    leading.extend(rows)
    about, error = leading.cosines(others[3])
    assert error < 0.02
    assert np.abs(about - rows @ others[3])[400:].max() < 0.05
