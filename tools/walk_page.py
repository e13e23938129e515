"""Take a picture of every page in every window: `python tools/walk_page.py HOME DIR [NAME ...]`.

HOME is a folder that tools/two_months.py wrote. Names narrow to pages or to windows. Each picture is
DIR/WINDOW-PAGE.png; look at each. Needs what the tests in a browser need.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser.chromium import missing, open_browser  # noqa: E402
from browser.house import Served  # noqa: E402
from memoranda.engine import open_session  # noqa: E402

FAILED_IMPORT = "/page/note/notes/" + quote("Why the ledger import failed this morning.md")
LENA = "/page/note/notes/people/" + quote("Lena Fischer.md")


@dataclass(frozen=True)
class Window:
    """A screen and its reader."""

    width: int
    height: int
    scheme: str = "light"
    locale: str = "en-GB"
    has_scripts: bool = True


WINDOWS = {
    "desktop": Window(1440, 900),
    "desktop-dark": Window(1440, 900, "dark"),
    "laptop": Window(1100, 760),
    "phone": Window(390, 844),
    "phone-dark": Window(390, 844, "dark"),
    "chinese": Window(1440, 900, locale="zh-CN"),
    "plain": Window(1440, 900, has_scripts=False),
}
PAGES = {
    "today": "/page",
    "today-agent": "/page?agent=claude",
    "review": "/page/review",
    "calendar": "/page/calendar",
    "notes": "/page/search",
    "search": "/page/search?q=why+does+the+importer+fail",
    "note": FAILED_IMPORT,
    "person-note": LENA,
    "edit": f"{FAILED_IMPORT}?part=edit",
    "erase": f"{FAILED_IMPORT}?part=erase",
    "people": "/page/people",
    "about": "/page/about?name=Lena+Fischer",
    "graph": "/page/graph",
    "graph-note": "/page/graph?note=notes/projects/Ledger.md",
    "graph-folders": "/page/graph?by=folders",
    "agents": "/page/agents",
    "agent-used": "/page/used?agent=claude",
    "ask": "/page/ask?prompt=why+does+the+importer+fail",
    "session": "/page/session?agent=cursor&session=5e0b72aa",
    "change": "/page/change/1500",
    "health": "/page/health",
    "me": "/page/me",
    "new": "/page/new",
    "remind": "/page/remind",
    "note-menu": FAILED_IMPORT,
    "palette": "/page",
    "keys": "/page",
    "menu": "/page/menu",
    "help": "/page/help",
    "nothing": "/page/search?q=zzzzqqqq",
    "missing": "/page/note/notes/" + quote("No such note.md"),
}
PRESSED = {"palette": "/", "keys": "?"}
"""By page: the key that is pressed before the picture."""
CLICKED = {"note-menu": ".note-actions summary"}
"""By page: what is clicked before the picture."""
LONGEST = 30_000
"""Milliseconds for what a page asks for later."""


def selection(names: list[str]) -> Iterator[tuple[str, str]]:
    """The windows and pages that these names leave; all without names."""
    windows = [name for name in names if name in WINDOWS] or list(WINDOWS)
    pages = [name for name in names if name in PAGES] or list(PAGES)
    for window in windows:
        for page in pages:
            yield window, page


def settle(page: Any) -> None:
    """Wait for what comes after the page itself."""
    page.locator("[data-part] .skeleton").first.wait_for(state="detached", timeout=LONGEST)
    if page.locator("canvas").count():
        page.locator("canvas[data-drawn]").wait_for(timeout=LONGEST)
    page.wait_for_timeout(350)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    why = missing()
    if why:
        print(why, file=sys.stderr)
        return 1
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with open_session(arguments.home) as memory:
        memory.sync()
    served = Served(arguments.home)
    try:
        with open_browser() as browser:
            take(browser, served, arguments)
    finally:
        served.close()
    return 0


def take(browser: Any, served: Served, arguments: argparse.Namespace) -> None:
    """All pictures; a window is opened once."""
    contexts: dict[str, Any] = {}
    for window_name, name in selection(arguments.names):
        window = WINDOWS[window_name]
        if window_name not in contexts:
            contexts[window_name] = browser.new_context(
                viewport={"width": window.width, "height": window.height},
                color_scheme=window.scheme,
                locale=window.locale,
                java_script_enabled=window.has_scripts,
                reduced_motion="reduce",
                base_url=served.url,
            )
            page = contexts[window_name].new_page()
            page.goto(served.way_in())
        page = contexts[window_name].pages[0]
        page.goto(PAGES[name])
        if window.has_scripts:
            page.locator("#rail .count").first.wait_for(state="attached", timeout=LONGEST)
            settle(page)
            if name in PRESSED:
                page.keyboard.press(PRESSED[name])
            if name in CLICKED:
                page.locator(CLICKED[name]).click()
        page.screenshot(path=str(arguments.folder / f"{window_name}-{name}.png"))


if __name__ == "__main__":
    sys.exit(main())
