"""numpy, its multiplications on one thread.

Threads of BLAS wait by spinning: a question takes five times as long on a busy machine. Where there is enough to do,
`folder` has threads of its own, which share the work by texts and never wait for each other. A program that has
loaded numpy, or set the variable, keeps what it has.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

_THREADS = "OPENBLAS_NUM_THREADS"
_is_ours = "numpy" not in sys.modules and _THREADS not in os.environ
if _is_ours:
    os.environ[_THREADS] = "1"  # read once, while it is loaded

import numpy as np  # noqa: E402

if _is_ours:
    del os.environ[_THREADS]  # not for programs we start

__all__ = ["np", "product"]

_PROCESSORS = min(4, os.cpu_count() or 1)
_MANY, _BLOCK = 500_000, 256
"""Below so many numbers a thread is not worth its start; so many rows picked out at a time fit into a cache."""


def product(rows: np.ndarray, vector: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
    """`rows @ vector`, or `rows[at] @ vector`. Long ones are shared out to threads: they wait for memory, and one
    processor alone does not get all there is."""
    count = len(rows) if at is None else len(at)
    found = np.empty(count, np.result_type(rows, vector))

    def multiply(first: int, last: int) -> None:
        if at is None:
            np.matmul(rows[first:last], vector, out=found[first:last])
            return
        for start in range(first, last, _BLOCK):
            stop = min(start + _BLOCK, last)
            np.matmul(rows[at[start:stop]], vector, out=found[start:stop])

    parts = _PROCESSORS if count * len(vector) >= _MANY else 1
    if parts == 1:
        multiply(0, count)
        return found
    bounds = [count * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts - 1) as threads:
        others = [threads.submit(multiply, *share) for share in pairwise(bounds[1:])]
        multiply(0, bounds[1])
        for each in others:
            each.result()
    return found
