"""Files of a home that are the same on every machine, where its notes are in a database: configuration, tokens, ...

A home in a folder has no such source, and all of this does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol


class SharedSource(Protocol):
    """Where shared files come from: see `follow_shared`, `changing_shared`."""

    space: str

    def follow(self) -> None: ...

    def changing(self, path: Path) -> AbstractContextManager[None]: ...


_SOURCES: dict[Path, SharedSource] = {}
"""By the root of the home, for this process."""


def share(root: Path, source: SharedSource) -> None:
    """From now on the files of the home at `root` are those of `source`."""
    _SOURCES[root] = source


def shared_space(root: Path) -> str | None:
    """The space of the database that the files at `root` are of; None for a home in a folder."""
    source = _SOURCES.get(root)
    return None if source is None else source.space


def follow_shared(root: Path) -> None:
    """Have the files at `root` as they are now; as they were if the database cannot be asked."""
    if (source := _SOURCES.get(root)) is not None:
        source.follow()


@contextmanager
def changing_shared(root: Path, path: Path) -> Iterator[None]:
    """Inside, the file at `path` is as it is now and may be written or removed; no other machine changes it. At the
    end it is so everywhere. Raises DatabaseAway, DatabaseRefused; then it is as before."""
    source = _SOURCES.get(root)
    if source is None:
        yield
    else:
        with source.changing(path):
            yield
