"""numpy, its multiplications on one thread.

Threads of BLAS wait by spinning: a question takes five times as long on a busy machine. Where there is enough to do,
`folder` has threads of its own, which share the work by texts and never wait for each other. A program that has
loaded numpy, or set the variable, keeps what it has.
"""

from __future__ import annotations

import os
import sys

_THREADS = "OPENBLAS_NUM_THREADS"
_is_ours = "numpy" not in sys.modules and _THREADS not in os.environ
if _is_ours:
    os.environ[_THREADS] = "1"  # read once, while it is loaded

import numpy as np  # noqa: E402

if _is_ours:
    del os.environ[_THREADS]  # not for programs we start

__all__ = ["np"]
