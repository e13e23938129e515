"""Sends the frame of a page before its content, so that something is seen at once.

A page with many notes takes a while to make. Its frame (the style sheets, the rail) needs no note, so
a browser can read and paint it meanwhile. The answer stays one document, which needs no script.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from starlette.responses import HTMLResponse, Response, StreamingResponse

from memoranda.errors import MemorandaError
from memoranda.serve.page.rendering import MAIN

# Seconds for an answer to come whole. Refusals do, so that they have their status.
_GRACE = 0.012
_OK = 200
_STYLES = re.compile(r'<link rel="stylesheet"[^>]*>')


async def framed(
    answer: Coroutine[Any, Any, Response], frame: Callable[[], Awaitable[str]]
) -> Response:
    """Return an answer whole if it comes soon, else its frame first.

    frame: makes the frame of the page.

    Raises what `answer` raises soon. What it raises later ends the page.
    """
    coming = asyncio.create_task(answer)
    # Nobody waits for the answer if the browser has gone meanwhile.
    coming.add_done_callback(lambda task: task.cancelled() or task.exception())
    done, _ = await asyncio.wait({coming}, timeout=_GRACE)
    if done:
        return coming.result()
    beginning = await frame()
    if coming.done():
        return coming.result()
    return StreamingResponse(_in_two_parts(beginning, coming), _OK, media_type="text/html")


async def _in_two_parts(frame: str, coming: asyncio.Task[Response]) -> AsyncIterator[str]:
    yield frame
    with suppress(MemorandaError):
        yield _content(frame, await coming)


def _content(frame: str, answer: Response) -> str:
    """Return the rest of a page after its frame.

    A page of another template, such as the one of an error, brings its own style sheets.
    """
    if not isinstance(answer, HTMLResponse):
        return ""
    head, _, content = bytes(answer.body).decode().partition(MAIN)
    missing = [link for link in _STYLES.findall(head) if link not in frame]
    return "".join(missing) + content
