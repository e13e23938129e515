"""The frame of a page is sent before a content that takes a while; what comes soon is sent whole."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import HTMLResponse, StreamingResponse

from memoranda import Draft
from memoranda.errors import InvalidInput, StorageError
from memoranda.serve.page import framing
from memoranda.serve.page.rendering import MAIN

pytestmark = pytest.mark.anyio

FRAME = f'<head><link rel="stylesheet" href="a.css"></head>{MAIN}'
ERROR = f'<head><link rel="stylesheet" href="b.css"></head>{MAIN}Not done'


async def frame():
    return FRAME


async def parts_of(answer):
    return [part async for part in answer.body_iterator]


async def test_a_page_that_takes_a_while_comes_in_two_parts_after_its_frame():
    may_answer = asyncio.Event()

    async def view():
        await may_answer.wait()
        return HTMLResponse(f"{FRAME}<h1>Notes</h1></main>")

    answer = await framing.framed(view(), frame)
    assert isinstance(answer, StreamingResponse)
    may_answer.set()
    assert await parts_of(answer) == [FRAME, "<h1>Notes</h1></main>"]


async def test_a_page_of_another_template_brings_its_style_sheets():
    async def view():
        return HTMLResponse(ERROR, 503)

    answer = await framing.framed(slowly(view()), frame)
    assert await parts_of(answer) == [FRAME, '<link rel="stylesheet" href="b.css">Not done']


async def test_an_error_after_the_frame_ends_the_page():
    async def view():
        raise StorageError("the index", "is gone")

    answer = await framing.framed(slowly(view()), frame)
    assert await parts_of(answer) == [FRAME]


async def slowly(view):
    await asyncio.sleep(3 * framing._GRACE)
    return await view


async def test_what_comes_soon_keeps_its_status():
    async def view():
        raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        await framing.framed(view(), frame)


async def test_every_framed_page_is_the_page_itself(web, page, monkeypatch):
    web.memory.write(Draft("The harbour", project="notes", title="Harbour"))
    paths = ("/page", "/page/search?q=harbour", "/page/people", "/page/calendar")
    whole = {path: (await page.client.get(path)).text for path in paths}
    monkeypatch.setattr(framing, "_GRACE", 0)
    for path in paths:
        answer = await page.client.get(path)
        assert answer.text == whole[path]
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    part = await page.client.get(paths[1], headers={"x-part": "1"})
    assert MAIN not in part.text
