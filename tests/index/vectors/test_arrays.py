"""A product shared out to threads is the product."""

from __future__ import annotations

from threading import Thread

import pytest

from commonplace.index.vectors import arrays
from commonplace.index.vectors.arrays import np

pytestmark = pytest.mark.parametrize("processors", [1, 2, 3])


@pytest.fixture(autouse=True)
def shared_out(monkeypatch: pytest.MonkeyPatch, processors: int) -> None:
    monkeypatch.setattr(arrays, "_PROCESSORS", processors)
    monkeypatch.setattr(arrays, "_MANY", 100)
    monkeypatch.setattr(arrays, "_BLOCK", 7)


def made(count: int) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(count)
    return chance.standard_normal((count, 12), np.float32), chance.standard_normal(12, np.float32)


@pytest.mark.parametrize("count", [0, 1, 2, 8, 9, 100, 1001])
def test_all_rows(count: int) -> None:
    rows, vector = made(count)
    np.testing.assert_allclose(arrays.product(rows, vector), rows @ vector, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2, 20, 500])
def test_rows_picked_out(count: int) -> None:
    rows, vector = made(300)
    at = np.random.default_rng(1).integers(0, 300, count)
    np.testing.assert_allclose(arrays.product(rows, vector, at), rows[at] @ vector, rtol=1e-5, atol=1e-6)


def test_the_wider_kind_of_number_is_kept() -> None:
    rows, vector = made(50)
    assert arrays.product(rows, vector.astype(np.float64)).dtype == np.float64


def test_what_goes_wrong_in_any_thread_is_raised() -> None:
    rows, vector = made(300)
    with pytest.raises(IndexError):
        arrays.product(rows, vector, np.array([1] * 200 + [300]))


def test_where_no_thread_is_to_be_had_it_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread(Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(arrays, "Thread", NoThread)
    rows, vector = made(300)
    np.testing.assert_allclose(arrays.product(rows, vector), rows @ vector, rtol=1e-5, atol=1e-6)
