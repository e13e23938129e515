"""Where the private folder of a home is: inside it, unless `storage.state` names another one.

A home in a folder that is synced between machines keeps its ledger and index outside: two machines
would tear a database. The configuration says so once for the process; the folders and files of a
home are named by `sources/layout.py`.
"""

from __future__ import annotations

from pathlib import Path

PRIVATE = ".memoranda"
# By the root of the home.
_PLACES: dict[Path, Path] = {}


def keep_state(home: Path, place: Path | None) -> None:
    """Remember that the private folder of a home is at `place`. None means inside the home."""
    if place is None:
        _PLACES.pop(home, None)
    else:
        _PLACES[home] = place


def state_of(home: Path) -> Path:
    """Return the private folder of a home."""
    return _PLACES.get(home, home / PRIVATE)
