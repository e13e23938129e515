"""Sends the frame of a page before its content, so that something is seen at once.

A page with many notes takes a while to make. Its frame (the style sheets, the rail) needs no note, so
a browser can read and paint it meanwhile. The answer stays one document, which needs no script.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from starlette.responses import HTMLResponse, Response, StreamingResponse

from memoranda.errors import MemorandaError
from memoranda.serve.page.rendering import MAIN

_OK = 200
_STYLES = re.compile(r'<link rel="stylesheet"[^>]*>')


async def framed(
    answer: Coroutine[Any, Any, Response],
    frame: Callable[[], Awaitable[str]],
    has_begun: asyncio.Event,
    error_page: Callable[[MemorandaError], Response],
) -> Response:
    """Answer with the response of a view. If it is a page, its frame is sent first.

    A view says by `Visit.begin_page` that its answer will be a page. Without that, its answer is
    returned as it is, with its own status.

    answer: the call of the view.
    frame: makes the frame of the page.
    has_begun: is set when the view calls `Visit.begin_page`.
    error_page: makes the page that tells an error.

    An error that the view raises before it begins a page is raised here. A later one is told in the
    page.
    """
    answer_task = asyncio.create_task(answer)
    # If the browser has gone meanwhile, nobody waits for the answer. Asking for the exception keeps
    # asyncio from reporting it as one that nobody looked at.
    answer_task.add_done_callback(lambda task: task.cancelled() or task.exception())
    begun_task = asyncio.create_task(has_begun.wait())
    await asyncio.wait({answer_task, begun_task}, return_when=asyncio.FIRST_COMPLETED)
    begun_task.cancel()
    if answer_task.done():
        return answer_task.result()
    beginning = await frame()
    # The view may have answered while the frame was made.
    if answer_task.done():
        return answer_task.result()
    return StreamingResponse(
        _in_two_parts(beginning, answer_task, error_page), _OK, media_type="text/html"
    )


async def _in_two_parts(
    frame: str,
    answer_task: asyncio.Task[Response],
    error_page: Callable[[MemorandaError], Response],
) -> AsyncIterator[str]:
    """Yield the frame of a page, then its content when the view has answered.

    error_page: makes the page that tells an error of the view.
    """
    yield frame
    try:
        answer = await answer_task
    except MemorandaError as error:
        answer = error_page(error)
    yield _content(frame, answer)


def _content(frame: str, answer: Response) -> str:
    """Return the rest of a page after its frame.

    A page of another template, such as the one of an error, brings its own style sheets.
    """
    if not isinstance(answer, HTMLResponse):
        return ""
    head, _, content = bytes(answer.body).decode().partition(MAIN)
    missing = [link for link in _STYLES.findall(head) if link not in frame]
    return "".join(missing) + content
