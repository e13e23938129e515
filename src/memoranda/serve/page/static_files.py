"""Serves the scripts and styles of the page, at an address with a checksum of their content.

A browser may keep such a file for ever, since another content has another address:
`/page/static/0f3b8a2c91de/page.css`.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from mimetypes import guess_type

from starlette.requests import Request
from starlette.responses import Response

from memoranda.serve.page.package_files import STATIC as FOLDER
from memoranda.serve.page.package_files import files_in, package_files

STATIC = "/page/static"
"""The address below which the files are."""
YEAR = 31_536_000
"""A year in seconds, the longest time for which a browser keeps a file or a cookie."""
# Digits of the checksum in an address.
_CHECKSUM_DIGITS = 12
_ADDRESS = re.compile(rf"(?:(?P<checksum>[0-9a-f]{{{_CHECKSUM_DIGITS}}})/)?(?P<name>[^/]+)")


@cache
def version() -> str:
    """Return the checksum of all files together."""
    checksum = sha256()
    for name, content in sorted(files_in(FOLDER).items()):
        checksum.update(name.encode())
        checksum.update(content)
    return checksum.hexdigest()[:_CHECKSUM_DIGITS]


def static_url(name: str) -> str:
    """Return the address of a file, with the checksum."""
    return f"{STATIC}/{version()}/{name}"


async def static_file(request: Request) -> Response:
    """Return a file at its address with or without the checksum. Says how long it may be kept.

    A page that was open during an update asks with an earlier checksum. It gets the present file,
    which the browser does not keep under that address.
    """
    address = _ADDRESS.fullmatch(request.path_params["path"])
    if address is None:
        return Response(status_code=404)
    content = package_files().get(f"{FOLDER}/{address['name']}")
    if content is None:
        return Response(status_code=404)
    is_current = address["checksum"] == version()
    headers = {
        "Cache-Control": f"public, max-age={YEAR}, immutable" if is_current else "no-cache",
        "ETag": f'"{version()}"',
    }
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    media_type, _ = guess_type(address["name"])
    return Response(content, headers=headers, media_type=media_type)
