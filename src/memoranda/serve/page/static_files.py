"""Serves the scripts and styles of the page, at an address with a checksum of their content.

A browser may keep such a file for ever, since another content has another address:
`/page/static/0f3b8a2c91de/page.css`.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = "/page/static"
"""The address below which the files are."""
YEAR = 31_536_000
"""A year in seconds, the longest time for which a browser keeps a file or a cookie."""
_FOLDER = "static"
# Digits of the checksum in an address.
_CHECKSUM_DIGITS = 12
_CHECKSUM = re.compile(f"[0-9a-f]{{{_CHECKSUM_DIGITS}}}")


@cache
def version() -> str:
    """Return the checksum of all files together."""
    checksum = sha256()
    folder = files(__package__).joinpath(_FOLDER)
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        checksum.update(file.name.encode())
        checksum.update(file.read_bytes())
    return checksum.hexdigest()[:_CHECKSUM_DIGITS]


def static_url(name: str) -> str:
    """Return the address of a file, with the checksum."""
    return f"{STATIC}/{version()}/{name}"


class PageFiles(StaticFiles):
    """Serves the files with and without the checksum in their address."""

    def __init__(self) -> None:
        super().__init__(packages=[(__package__, _FOLDER)])

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, and say how long the browser may keep it.

        A page that was open during an update asks with an earlier checksum. It gets the present
        file, which the browser does not keep under that address.
        """
        parts = PurePath(path).parts
        checksum = parts[0] if len(parts) > 1 and _CHECKSUM.fullmatch(parts[0]) else ""
        if checksum:
            path = str(PurePath(*parts[1:]))
        answer = await super().get_response(path, scope)
        is_current = checksum == version()
        caching = f"public, max-age={YEAR}, immutable" if is_current else "no-cache"
        answer.headers["Cache-Control"] = caching
        return answer
