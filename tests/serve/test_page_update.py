"""A server that runs while its program is updated goes on with the files it was started with."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

import memoranda
from memoranda import Draft, open_memory
from memoranda.serve.auth import Access, PageVisitors
from memoranda.serve.page import search
from memoranda.serve.page.routes import GET, PAGES

SECONDS = 60


@contextmanager
def server_of(folder: Path, home: Path) -> Iterator[str]:
    """Serve a home with the package in a folder. Yields the address of the server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "memoranda", "serve", "--home", str(home), "--no-socket"]
    process = subprocess.Popen(
        [*command, "--http", f"127.0.0.1:{port}"],
        env={**os.environ, "PYTHONPATH": str(folder), "HOME": str(home.parent)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(SECONDS)


PAGES_TO_SEE = [
    *(path for path, (methods, _) in PAGES.items() if "{" not in path and GET[0] in methods),
    *("/page/note/notes/Tea.md", "/page/note/notes/Tea.md?part=edit", "/page/change/1"),
    *("/page/search?q=tea", "/page/palette?q=tea", "/page/about?name=Tea"),
]
MARK = "{{ of_the_new_program }}"


@contextmanager
def entered(folder: Path, home: Path) -> Iterator[httpx2.Client]:
    """Somebody who has opened the page of a server, whose program is in a folder."""
    shutil.copytree(Path(memoranda.__file__).parent, folder / "memoranda")
    with open_memory(home) as memory:
        memory.write(Draft("The tea is green.", title="Tea", project="notes"))
    with server_of(folder, home) as address, httpx2.Client(base_url=address) as client:
        client.timeout = SECONDS
        code = PageVisitors(Access(home)).new_code()
        assert client.get("/page/enter", params={"code": code}).status_code == 200
        yield client


@pytest.mark.slow
def test_a_server_whose_program_is_replaced_shows_its_pages_as_before(tmp_path):
    folder = tmp_path / "site"
    with entered(folder, tmp_path / "home") as client:
        for file in folder.joinpath("memoranda").rglob("*.*"):
            is_of_page = "page" in file.parts
            if file.suffix == ".py" or is_of_page:
                file.write_text(MARK)
        for page in PAGES_TO_SEE:
            for language in ("en", "zh"):
                answer = client.get(page, headers={"accept-language": language})
                assert answer.status_code < 500, (page, language, answer.text)
                assert "of_the_new_program" not in answer.text
        style_sheet = re.search(r'href="(/page/static/[^"]+/base.css)"', client.get("/page").text)
        assert style_sheet is not None
        assert "of_the_new_program" not in client.get(style_sheet[1]).text


@pytest.mark.anyio
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_page_that_fails_after_an_update_says_to_start_the_server_again(
    web, page, monkeypatch, caplog, tmp_path, language
):
    def fail(*_):
        raise ImportError("cannot import a name of the new program")

    monkeypatch.setattr(search, "names_for", fail)
    address = "/page/palette?q=tea"
    answer = await page.client.get(address, headers={"accept-language": language})
    assert answer.status_code == 500
    assert "<code>memory page</code>" not in answer.text
    new_program = tmp_path / "__init__.py"
    new_program.write_text("new")
    monkeypatch.setattr(memoranda, "__file__", str(new_program))
    answer = await page.client.get(address, headers={"accept-language": language})
    assert answer.status_code == 503
    told = {"en": "memoranda was updated while its page was open.", "zh": "页面打开期间更新了"}
    assert told[language] in answer.text
    assert "<code>memory page</code>" in answer.text
    # The log tells of the failures, which the test meant.
    caplog.clear()
