"""One bit a number: vectors in so little that a million of them are looked through in some milliseconds."""

from __future__ import annotations

from commonplace.index.vectors.arrays import np

_BLOCK = 8192


class Rough:
    """The signs of vectors, packed in columns of 64; a small distance means a large cosine."""

    def __init__(self) -> None:
        self._columns: list[np.ndarray] = []
        self._count = 0

    def extend(self, rows: np.ndarray) -> None:
        """Take up the rows behind those known."""
        fresh = [_packed(rows[at : at + _BLOCK]) for at in range(self._count, len(rows), _BLOCK)]
        if fresh:
            columns = np.concatenate(fresh).T
            old = self._columns or [np.empty(0, np.uint64)] * len(columns)
            self._columns = [np.concatenate([*pair]) for pair in zip(old, columns, strict=True)]
            self._count = len(rows)

    def distances(self, question: np.ndarray) -> np.ndarray:
        """In how many signs each vector differs from `question`."""
        found = np.zeros(self._count, np.uint16)
        for column, bits in zip(self._columns, _packed(question[None])[0], strict=True):
            found += np.bitwise_count(column ^ bits)
        return found


def _packed(rows: np.ndarray) -> np.ndarray:
    bits = np.packbits(rows > 0, axis=1)
    return np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)
