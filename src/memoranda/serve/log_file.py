"""The daemon's log file. It is private, and holds no secrets."""

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
# Characters of one line.
_LONGEST = 4_000


class PrivateLog(RotatingFileHandler):
    """A log file of mode 0600, whatever the mask of the process says; secrets in it are redacted."""

    def __init__(self, place: str, **limits: Any):
        super().__init__(place, encoding="utf-8", **limits)

    def _open(self) -> io.TextIOWrapper:
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        # A device such as /dev/null is everybody's
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.fchmod(fd, _MODE)
        return open(fd, "a", encoding="utf-8", errors="backslashreplace")

    def format(self, record: logging.LogRecord) -> str:
        """A line, cut to a size, without what looks like a secret."""
        line = super().format(record)[:_LONGEST]
        return default_rules().redacted(line)
