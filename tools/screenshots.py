"""Make the screenshots of docs/page.md from the sample vault: `python tools/screenshots.py [DIR]`.

Needs what the tests in a browser need: Debian's chromium, and playwright. Look at each before it is
committed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser.chromium import missing, open_browser  # noqa: E402
from browser.house import Served, furnish  # noqa: E402
from memoranda import Draft  # noqa: E402
from memoranda.engine import open_session  # noqa: E402
from memoranda.note.edit import FindReplace  # noqa: E402

WIDE = (1100, 760)
PHONE = (390, 760)
SHOTS: dict[str, tuple[str, tuple[int, int], str, str]] = {
    "today": ("/page", WIDE, "light", "en"),
    "search": ("/page/search?q=lost+rename", WIDE, "light", "en"),
    "note": ("/page/note/vault/people/Mara%20Lindqvist.md", (1100, 1140), "light", "en"),
    "review": ("/page/review", WIDE, "light", "en"),
    "graph": ("/page/graph?note=vault/projects/Heron.md", (1000, 660), "dark", "en"),
    "calendar": ("/page/calendar", WIDE, "light", "en"),
    "agents": ("/page/agents", WIDE, "light", "en"),
    "people": ("/page/people", WIDE, "light", "en"),
    "me": ("/page/me", WIDE, "light", "en"),
    "dark": ("/page", WIDE, "dark", "en"),
    "phone": ("/page/search?q=全文检索", PHONE, "dark", "zh-CN"),
}
"""By name: the address, the window, the colours and the language."""
_CLICKED = {
    "search": "main details.why > summary",
    "review": ".questions a:has-text('staging database')",
}
"""What is clicked before the picture is taken: the first of these."""

_AWAITED = {
    "today": "[data-part='/page/needs'] li",
    "dark": "[data-part='/page/needs'] li",
    "review": ".pane mark",
    "note": "#history + div[data-filled]",
}
"""What comes after the page itself."""


def work_today(home: Path) -> None:
    """Let two agents learn something and change a note, so that Today shows what they did."""
    with open_session(home) as memory:
        claude = memory.as_caller("claude", "mcp", client="claude-code 2.1", session="91c3d07e")
        cursor = memory.as_caller("cursor", "mcp", client="cursor 3.0", session="5e0b72aa")
        cursor.write(
            Draft(
                "Heron's tests need its fixtures to be made first.",
                project="categories",
                category="lessons",
                tags=["heron"],
            )
        )
        claude.write(
            Draft(
                "Mara reviews pull requests before lunch, never on Fridays.",
                project="categories",
                category="habits",
            )
        )
        claude.edit("Reading group", FindReplace("room 4", "room 12"))


def shoot(browser: Any, served: Served, name: str, folder: Path) -> int:
    """Make one picture. Returns its size in bytes."""
    path, (width, height), scheme, locale = SHOTS[name]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        locale=locale,
        reduced_motion="reduce",
        base_url=served.url,
    )
    page = context.new_page()
    page.goto(served.way_in())
    page.wait_for_url("**/page")
    # The questions are counted after the first page was sent
    page.locator("#rail .count.hot").wait_for()
    page.goto(path)
    if name in _CLICKED:
        page.locator(_CLICKED[name]).first.click()
    if page.locator("canvas").count():
        page.locator("canvas[data-drawn]").wait_for()
    if name in _AWAITED:
        page.locator(_AWAITED[name]).first.wait_for()
    page.wait_for_timeout(400)
    place = folder / f"{name}.png"
    page.screenshot(path=str(place))
    context.close()
    return place.stat().st_size


def main(folder: Path) -> int:
    why = missing()
    if why:
        print(why, file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="memoranda-page-") as scratch:
        home = Path(scratch) / "home"
        furnish(home)
        work_today(home)
        served = Served(home)
        try:
            with open_browser() as browser:
                sizes = {name: shoot(browser, served, name, folder) for name in SHOTS}
        finally:
            served.close()
    print("\n".join(f"{name}.png {size // 1024} kB" for name, size in sizes.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "page"))
