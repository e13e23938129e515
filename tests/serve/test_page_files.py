"""The page's own files: asked for once, and never an old one for a new page."""

from __future__ import annotations

import re

import pytest

from memoranda.serve.page.static_files import static_url, version

pytestmark = pytest.mark.anyio


async def test_every_file_a_page_names_is_there_and_kept_for_a_year(web, page):
    whole = (await page.client.get("/page/graph")).text
    names = set(re.findall(r'(?:src|href)="(/page/static/[^"#]+)', whole))
    assert len(names) > 10
    assert static_url("base.css") in names
    for address in names:
        answer = await page.client.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_an_older_page_gets_the_file_of_now_which_is_not_kept(web, page):
    old = "0" * len(version())
    for address in (f"/page/static/{old}/base.css", "/page/static/base.css"):
        answer = await page.client.get(address)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-cache"
        again = await page.client.get(address, headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == 304
    for address in (f"/page/static/{version()}/../routes.py", f"/page/static/{version()}/x.css"):
        response = await page.client.get(address)
        assert response.status_code == 404


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_page_of_help_has_no_link_to_a_page_that_the_server_lacks(web, page, language):
    html = await page.see("/page/help", **{"accept-language": language})
    assert re.findall(r'href="[^"]*\.md[^"]*"', html) == []
