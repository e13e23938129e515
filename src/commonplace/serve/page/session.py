"""Who may look at the page: `memory page` gives out a code, good once and for minutes, and a browser that shows it gets
a cookie. Of both the file of tokens keeps the SHA-256, so the command and a running server share them.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from commonplace import clock as clocks
from commonplace.clock import Clock, parse_stamp, stamp
from commonplace.serve.auth import Access, digest, new_secret

CODE_LASTS, COOKIE_LASTS = timedelta(minutes=5), timedelta(days=7)
_KEY = "page"


class PageVisitors:
    """The codes and cookies of one home."""

    def __init__(self, access: Access, clock: Clock = clocks.now):
        self._access, self._clock = access, clock

    def new_code(self) -> str:
        """A code to open the page with. Raises StorageError."""
        return self._give("codes", CODE_LASTS)

    def enter(self, code: str) -> str | None:
        """The secret of a new cookie for who shows a code, which is over then; None for one that is not good."""
        if not self._known("codes", code):
            return None
        with self._access.changing() as rows:
            left = [each for each in rows[_KEY]["codes"] if each["hash"] != digest(code)]
            if len(left) == len(rows[_KEY]["codes"]):  # somebody else was first
                return None
            rows[_KEY]["codes"] = left
        return self._give("cookies", COOKIE_LASTS)

    def knows(self, secret: str) -> bool:
        """Whether a cookie is good."""
        return self._known("cookies", secret) is not None

    def leave(self, secret: str) -> None:
        """End a cookie."""
        with self._access.changing() as rows:
            cookies = rows.get(_KEY, {}).get("cookies", [])
            cookies[:] = [each for each in cookies if each["hash"] != digest(secret)]

    def _give(self, kind: str, lasts: timedelta) -> str:
        now = self._clock()
        secret, kept = new_secret("")
        with self._access.changing() as rows:
            known = rows.setdefault(_KEY, {}).setdefault(kind, [])
            known[:] = [each for each in known if now < parse_stamp(each["expires"])]
            known.append({"hash": kept, "expires": stamp(now + lasts)})
        return secret

    def _known(self, kind: str, secret: str) -> Mapping[str, Any] | None:
        """The row of a secret that is not over; all are compared, each in constant time."""
        kept, found = digest(secret).encode(), None
        for each in self._access.rows().get(_KEY, {}).get(kind, ()):
            if hmac.compare_digest(each["hash"].encode(), kept) and self._clock() < parse_stamp(each["expires"]):
                found = each
        return found


def name_of(secret: str) -> str:
    """What the journal calls the session of a cookie."""
    return digest(f"session {secret}")[:8]


def csrf_of(secret: str) -> str:
    """What each form of a cookie's owner must send along; nobody makes it who does not have the cookie."""
    return digest(f"csrf {secret}")


def is_csrf(given: str, secret: str) -> bool:
    """Whether `given` is what `csrf_of` makes of the cookie, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), csrf_of(secret).encode())
