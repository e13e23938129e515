"""numpy, each of its multiplications on one thread.

Threads of BLAS wait by spinning: a question takes five times as long on a busy machine. Where there is enough to do,
`folder` has threads of its own, which share the work by texts, and `product` some that share one long multiplication.
A program that has loaded numpy, or set the variable, keeps what it has.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from itertools import pairwise
from threading import Thread

_THREADS = "OPENBLAS_NUM_THREADS"
_is_ours = "numpy" not in sys.modules and _THREADS not in os.environ
if _is_ours:
    os.environ[_THREADS] = "1"  # read once, while it is loaded

import numpy as np  # noqa: E402

if _is_ours:
    del os.environ[_THREADS]  # not for programs we start

__all__ = ["np", "product"]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_PROCESSORS = min(4, _processors()) if _is_ours else 1
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
    shares = list(pairwise([count * part // parts for part in range(parts + 1)]))
    done = set()

    def work(share: tuple[int, int]) -> None:
        with suppress(IndexError, MemoryError):  # raised below, by the caller's own attempt
            multiply(*share)
            done.add(share)

    threads = [Thread(target=work, args=(share,)) for share in shares[1:]]
    with suppress(RuntimeError):  # a program at its end, or with too many threads, starts no more
        for each in threads:
            each.start()
    work(shares[0])
    for each in threads:
        if each.ident is not None:
            each.join()
    for share in shares:
        if share not in done:
            multiply(*share)
    return found
