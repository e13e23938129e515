"""The small file in the home that says what a session of a client was given."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from memoranda.clock import parse_stamp, stamp
from memoranda.store.files import make_private, open_own

_FILES_KEPT = 200
"""Files of sessions that are kept, the newest."""
_FILE_KEPT_FOR = timedelta(days=30)
_FILE_BYTES = 64_000
"""Bytes of a file; a session that reaches it is given nothing more."""
_LOOKED_AT = 20


class SessionFile:
    """What is known of `session` of `client`: its file, which may be deleted at any time, has lines
    `saw TIME`, until when the client was told what others added, `note ID` for a note put into its
    context, and `text HASH` for a line of what was. `notes` are ids, `saw` a time or None,
    `is_known` whether it has begun before, `is_full` whether it was given as much as a session
    is."""

    def __init__(self, folder: Path, client: str, session: str):
        self._folder = folder
        self._prefix = f"{client}-"
        self.path = (
            folder / f"{client}-{sha256(session.encode('utf-8', 'replace')).hexdigest()[:20]}"
        )
        rows = _rows(self.path)
        self.is_known = bool(rows)
        self.notes = {value for word, value in rows if word == "note"}
        self._texts = {value for word, value in rows if word == "text"}
        self.saw = _saw(rows)
        self.is_full = self.is_known and os.path.getsize(self.path) >= _FILE_BYTES

    def last_seen(self) -> datetime | None:
        """Until when this client was told what others added, in whatever session."""
        found = sorted(self._folder.glob(f"{self._prefix}*"), key=_changed, reverse=True)[
            :_LOOKED_AT
        ]
        return max(filter(None, (_saw(_rows(path)) for path in found)), default=None)

    def add(
        self, *, saw: datetime | None = None, notes: Iterable[str] = (), text: str = ""
    ) -> None:
        """Note what the session is given now. Raises OSError."""
        make_private(self._folder)
        lines = [f"saw {stamp(saw)}"] if saw else []
        lines += [f"note {note}" for note in notes]
        lines += [f"text {each}" for each in dict.fromkeys(map(_hash, text.splitlines())) if each]
        self.notes.update(notes)
        with os.fdopen(
            open_own(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "wb", 0
        ) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())

    def without_given(self, text: str) -> str:
        """`text` without the lines that came from here."""
        return "\n".join(
            line for line in text.splitlines() if not (_hash(line) and _hash(line) in self._texts)
        )

    def sweep(self, now: datetime) -> None:
        """Remove the files of old sessions."""
        found = sorted(self._folder.glob("*-*"), key=_changed, reverse=True)
        oldest = (now - _FILE_KEPT_FOR).timestamp()
        for at, path in enumerate(found):
            if at >= _FILES_KEPT or _changed(path) < oldest:
                path.unlink(missing_ok=True)


def given_notes(folder: Path) -> tuple[int, set[str]]:
    """How many sessions were told something in the last days, and the ids of the notes."""
    sessions = 0
    notes: set[str] = set()
    for path in folder.glob("*-*"):
        given = {value for word, value in _rows(path) if word == "note"}
        sessions += bool(given)
        notes |= given
    return sessions, notes


def _changed(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _rows(path: Path) -> list[tuple[str, str]]:
    try:
        with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
            lines = file.read(2 * _FILE_BYTES).decode("ascii", "replace").splitlines()
    except OSError:
        return []
    return [(word, value) for word, _, value in (line.partition(" ") for line in lines)]


def _saw(rows: Iterable[tuple[str, str]]) -> datetime | None:
    found = None
    for word, value in rows:
        if word == "saw":
            with suppress(ValueError):
                found = parse_stamp(value)
    return found


def _hash(line: str) -> str:
    """Of a line long enough to tell where it comes from; list marks and blanks around it do not
    count.
    """
    line = line.strip().lstrip("-*> ")
    if len(line) >= 12:
        return sha256(line.encode("utf-8", "replace")).hexdigest()[:12]
    return ""
