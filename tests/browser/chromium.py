"""Debian's Chromium, driven by Playwright, which downloads nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One process beside that of the browser in place of three takes a ninth less for each page
    "--renderer-process-limit=1",
    "--in-process-gpu",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")
SHELL = "chromium-headless-shell"
"""The same engine without a program's windows: a test of the page takes a third less of the
processor.
"""


def missing() -> str:
    """What is not installed and how to get it; empty when all is there."""
    if not any(map(shutil.which, (SHELL, *NAMES))):
        return "Chromium is not installed (on Debian: apt-get install chromium), so the page is not tried in a browser"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "Playwright is not installed (pip install playwright), so the page is not tried in a browser"
    return ""


@contextmanager
def open_browser(names: Sequence[str] = (*NAMES, SHELL)) -> Iterator[Browser]:
    """The first of these browsers that is here, without a window, with a new, empty profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, names))), args=FLAGS
        )
        try:
            yield browser
        finally:
            browser.close()
