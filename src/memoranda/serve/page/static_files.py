"""The page's own scripts and styles, at an address that names their content.

So a browser asks for each file once: what it has is good until the files themselves are others.
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
"""A year in seconds: as long as anything may be kept."""
_FOLDER = "static"
# Digits of the checksum in an address.
_DIGITS = 12
_VERSION = re.compile(f"[0-9a-f]{{{_DIGITS}}}")


@cache
def version() -> str:
    """The checksum of all files, by which their address changes with them."""
    checksum = sha256()
    folder = files(__package__).joinpath(_FOLDER)
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        checksum.update(file.name.encode())
        checksum.update(file.read_bytes())
    return checksum.hexdigest()[:_DIGITS]


def static_url(name: str) -> str:
    """The address of a file, which is good until the files are others."""
    return f"{STATIC}/{version()}/{name}"


class PageFiles(StaticFiles):
    """Serves the files with and without the checksum in their address."""

    def __init__(self) -> None:
        super().__init__(packages=[(__package__, _FOLDER)])

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file. A page that is still open may ask by an earlier checksum: it gets the present
        file, and browsers do not keep it.
        """
        parts = PurePath(path).parts
        checksum = parts[0] if len(parts) > 1 and _VERSION.fullmatch(parts[0]) else ""
        if checksum:
            path = str(PurePath(*parts[1:]))
        answer = await super().get_response(path, scope)
        is_current = checksum == version()
        answer.headers["Cache-Control"] = (
            f"public, max-age={YEAR}, immutable" if is_current else "no-cache"
        )
        return answer
