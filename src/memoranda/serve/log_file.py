"""Writes the daemon's log file, which is private and contains no secrets."""

from __future__ import annotations

import io
import logging
import os
import stat
from logging.handlers import RotatingFileHandler
from typing import Any

from memoranda.text.gate import default_rules

# Only the owner may read a log: it names notes.
_MODE = 0o600
_MAX_LINE_CHARACTERS = 4_000


class PrivateLog(RotatingFileHandler):
    """A log file of mode 0600, with redacted secrets.

    The mode does not depend on the umask of the process.
    """

    def __init__(self, place: str, **limits: Any):
        super().__init__(place, encoding="utf-8", **limits)

    def _open(self) -> io.TextIOWrapper:
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        # A device such as /dev/null belongs to everybody, so its mode must stay.
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.fchmod(fd, _MODE)
        return open(fd, "a", encoding="utf-8", errors="backslashreplace")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, with redacted secrets, cut to a size."""
        return default_rules().redacted_beginning(super().format(record), _MAX_LINE_CHARACTERS)
