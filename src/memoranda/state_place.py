"""Where the private folder of a home is: inside it, unless `storage.state` names another one.

A home in a folder that is synced between machines keeps its ledger and index outside, because two
machines would damage a database. `config.load` reads the setting and calls `keep_state`.
`sources/layout.py` has the names of the folders and files of a home.
"""

from __future__ import annotations

from pathlib import Path

PRIVATE = ".memoranda"
"""The name of the private folder in a home."""
# The private folders that are elsewhere, by the folder of the home.
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
