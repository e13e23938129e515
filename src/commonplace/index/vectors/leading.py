"""The directions in which the vectors of a file reach farthest: these alone tell which are worth comparing."""

from __future__ import annotations

from commonplace.index.vectors.arrays import np, product

DIRECTIONS, _SAMPLE, _BLOCK = 128, 4_096, 8_192
_ANEW = 2
"""The directions are found anew when there are so many times as many vectors."""


class Leading:
    """What vectors share with their leading directions, in a third of the space of the vectors themselves."""

    def __init__(self) -> None:
        self._turned = np.empty((0, 0), np.float32)  # the first `_count` rows are filled
        self._count = self._first = 0
        self._basis = np.empty((0, 0), np.float32)
        self._spread = np.empty(0, np.float32)  # of each direction the mean square of what vectors share with it

    def extend(self, rows: np.ndarray) -> None:
        """Take up the rows behind those known."""
        total = len(rows)
        if self._count == total:
            return
        if total >= _ANEW * self._first:
            self._find(rows)
        if total > len(self._turned):
            wider = np.empty((total + total // 4, DIRECTIONS), np.float32)
            wider[: self._count] = self._turned[: self._count]
            self._turned = wider
        leading = np.ascontiguousarray(self._basis[:, :DIRECTIONS])
        for at in range(self._count, total, _BLOCK):
            stop = min(at + _BLOCK, total)
            np.matmul(rows[at:stop], leading, out=self._turned[at:stop])
        self._count = total

    def _find(self, rows: np.ndarray) -> None:
        some = rows[:: max(1, len(rows) // _SAMPLE)]
        spread, basis = np.linalg.eigh(some.T @ some / np.float32(len(some)))
        self._spread, self._basis = np.maximum(spread[::-1], 0), np.ascontiguousarray(basis[:, ::-1])
        self._first, self._count = len(rows), 0
        self._turned = np.empty((0, DIRECTIONS), np.float32)

    def cosines(self, question: np.ndarray) -> tuple[np.ndarray, float]:
        """About how near each vector is to `question`, and how far off that is in the (quadratic) mean."""
        shared = question @ self._basis
        error = float(np.sqrt(self._spread[DIRECTIONS:] @ np.square(shared[DIRECTIONS:])))
        return product(self._turned[: self._count], shared[:DIRECTIONS]), error
