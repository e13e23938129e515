"""Puts the truth of every home in a folder into a space of a database, its folder being the replica of it.

Python runs this at its start where this folder is on PYTHONPATH; `--home-kind=postgres` calls it in the tests' process.
"""

from __future__ import annotations

import os
from hashlib import sha256

VARIABLE = "COMMONPLACE_HOMES_IN"


def install(url: str) -> None:
    """From now on homes that would be folders are spaces of the database at `url`, one for each folder."""
    from commonplace.config import Settings

    made = Settings.__init__

    def init(self, home, *values, **named):
        made(self, home, *values, **named)
        if self.url is None:
            object.__setattr__(self, "url", url)
            object.__setattr__(self, "space", f"t{sha256(os.path.realpath(home).encode()).hexdigest()[:24]}")

    Settings.__init__ = init


if given := os.environ.get(VARIABLE):
    install(given)
