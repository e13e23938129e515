"""Puts the truth of every home in a folder into a space of a database, its folder being the replica of it.

Python runs this at its start where this folder is on PYTHONPATH; `--home-kind=postgres` calls it in the tests' process.
"""

from __future__ import annotations

import os
from hashlib import sha256

VARIABLE = "COMMONPLACE_HOMES_IN"


def install(url: str) -> None:
    """From now on homes that would be folders are spaces of the database at `url`, one for each folder.

    What a test put into the folder before it was opened first is moved there. What it writes there by hand later is no
    truth, as in any replica.
    """
    from commonplace.config import Settings
    from commonplace.store.postgres.replica_home import PostgresHome

    made, opened, adopting = Settings.__init__, PostgresHome.__init__, [False]

    def init(self, home, *values, **named):
        made(self, home, *values, **named)
        if self.url is None and not adopting[0]:
            object.__setattr__(self, "url", url)
            object.__setattr__(self, "space", f"t{sha256(os.path.realpath(home).encode()).hexdigest()[:24]}")

    def open_(self, layout, clock, where, space, **more):
        projects = [place for place in layout.built_in().values() if place.is_dir()]
        if where == url and not layout.replica.exists() and (projects or layout.config.exists()):
            adopting[0] = True
            try:
                _adopt(layout.root, f"{url}&space={space}")
            finally:
                adopting[0] = False
        opened(self, layout, clock, where, space, **more)

    Settings.__init__ = init
    PostgresHome.__init__ = open_


def _adopt(root, address: str) -> None:
    from commonplace.engine.database_move import IntoDatabase
    from commonplace.engine.memory import Memory
    from commonplace.errors import InvalidInput

    with Memory.open(root, watch=False) as memory:
        try:
            IntoDatabase(memory, address).run(dry_run=False, progress=None)
        except InvalidInput:
            return  # the space has notes: they count


if given := os.environ.get(VARIABLE):
    install(given)
