"""Who may look at the page: `memory page` gives out a code, good once and for minutes, and a browser that shows it gets
a cookie. Of both the file of tokens keeps the SHA-256, so the command and a running server share them.
"""

from __future__ import annotations

import hmac
from datetime import timedelta

from commonplace import clock as clocks
from commonplace.clock import Clock
from commonplace.serve.auth import Access, ShortSecrets, digest, new_secret

CODE_LASTS, COOKIE_LASTS = timedelta(minutes=5), timedelta(days=7)


class PageVisitors:
    """The codes and cookies of one home."""

    def __init__(self, access: Access, clock: Clock = clocks.now):
        self._secrets = ShortSecrets(access, "visitors", clock)

    def new_code(self) -> str:
        """A code to open the page with. Raises StorageError."""
        return self._new("codes", CODE_LASTS)

    def enter(self, code: str) -> str | None:
        """The secret of a new cookie for who shows a code, which is over then; None for one that is not good."""
        return None if self._secrets.take("codes", code) is None else self._new("cookies", COOKIE_LASTS)

    def knows(self, secret: str) -> bool:
        """Whether a cookie is good."""
        return self._secrets.known("cookies", secret) is not None

    def leave(self, secret: str) -> None:
        """End a cookie."""
        self._secrets.take("cookies", secret)

    def _new(self, kind: str, lasts: timedelta) -> str:
        secret, _ = new_secret("")
        self._secrets.give(kind, secret, lasts)
        return secret


def name_of(secret: str) -> str:
    """What the journal calls the session of a cookie."""
    return digest(f"session {secret}")[:8]


def csrf_of(secret: str) -> str:
    """What each form of a cookie's owner must send along; nobody makes it who does not have the cookie."""
    return digest(f"csrf {secret}")


def is_csrf(given: str, secret: str) -> bool:
    """Whether `given` is what `csrf_of` makes of the cookie, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), csrf_of(secret).encode())
