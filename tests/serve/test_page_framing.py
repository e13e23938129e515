"""The frame of a page is sent before a content that takes a while; what comes soon is sent whole."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import HTMLResponse, StreamingResponse

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


def told(error):
    return HTMLResponse(f"{ERROR}: {error}", 500)


def begun():
    event = asyncio.Event()
    event.set()
    return event


async def test_a_page_comes_in_two_parts_after_its_frame():
    may_answer = asyncio.Event()

    async def view():
        await may_answer.wait()
        return HTMLResponse(f"{FRAME}<h1>Notes</h1></main>")

    answer = await framing.framed(view(), frame, begun(), told)
    assert isinstance(answer, StreamingResponse)
    may_answer.set()
    assert await parts_of(answer) == [FRAME, "<h1>Notes</h1></main>"]


async def test_a_page_of_another_template_brings_its_style_sheets():
    may_answer = asyncio.Event()

    async def view():
        await may_answer.wait()
        return HTMLResponse(ERROR, 503)

    answer = await framing.framed(view(), frame, begun(), told)
    may_answer.set()
    assert await parts_of(answer) == [FRAME, '<link rel="stylesheet" href="b.css">Not done']


async def test_an_error_after_the_frame_is_told_in_the_page():
    may_answer = asyncio.Event()

    async def view():
        await may_answer.wait()
        raise StorageError("the index", "is gone")

    answer = await framing.framed(view(), frame, begun(), told)
    may_answer.set()
    beginning, content = await parts_of(answer)
    assert beginning == FRAME
    assert "Not done" in content
    assert "the index" in content


async def test_a_view_that_refuses_before_it_begins_a_page_keeps_its_status():
    async def view():
        await asyncio.sleep(0)
        raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        await framing.framed(view(), frame, asyncio.Event(), told)


async def test_every_framed_page_is_one_whole_document(web, page):
    web.note("Harbour", "The harbour")
    paths = ("/page", "/page/search?q=harbour", "/page/people", "/page/calendar", "/page/health")
    answers = [await page.client.get(path) for path in paths]
    for answer in answers:
        assert answer.status_code == 200
        assert answer.text.count(MAIN) == 1
        assert answer.text.rstrip().endswith("</html>")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    part = await page.client.get(paths[1], headers={"x-part": "1"})
    assert MAIN not in part.text
