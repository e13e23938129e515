"""A browser, a served home, and a visit to it that ends well only if the page did nothing it must
not do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from browser.chromium import NAMES, SHELL, open_browser
from browser.house import Served, furnish
from memoranda.engine import open_session

LONGEST_WAIT = 60_000
"""Milliseconds for which a condition is awaited, also where other tests use the processors."""


# For one file: Playwright keeps the event loop of its thread, which tests of other folders need.
# With `scope="package"` it was still open in a worker when such tests began.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import expect

    # It is one value for all files
    expect.set_options(timeout=LONGEST_WAIT)
    with open_browser((SHELL, *NAMES)) as opened:
        yield opened


@pytest.fixture(scope="module")
def house(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server of a furnished home, in a separate process."""
    home = tmp_path_factory.mktemp("house") / "home"
    furnish(home)
    served = Served(home)
    yield served
    served.close()


@pytest.fixture(scope="module")
def cookies(browser: Any, house: Served) -> list[Any]:
    """What the browser has once the owner came in."""
    context = browser.new_context()
    context.request.get(house.way_in())
    context_cookies = context.cookies()
    context.close()
    return list(context_cookies)


@pytest.fixture
def memory(house: Served) -> Iterator[Any]:
    """The same home, open in this process: another one than the server's."""
    with open_session(house.home) as opened:
        yield opened


@dataclass
class Faults:
    """What a page must not do."""

    base: str
    faults: list[str] = field(default_factory=list)
    allowed: tuple[str, ...] = ()

    def watch(self, page: Any) -> None:
        page.on(
            "console",
            lambda message: (
                self._note("console", message.text)
                if message.type in ("error", "warning")
                else None
            ),
        )
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("request", self._request)

    def _request(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(
            self.base
        ).netloc and not request.url.startswith("data:"):
            self._note("request", request.url)

    def _note(self, kind: str, text: str) -> None:
        if not any(allowed_text in text for allowed_text in self.allowed):
            self.faults.append(f"{kind}: {text}")


@pytest.fixture(scope="module")
def visit(browser: Any, house: Served, cookies: list[Any]) -> Callable[..., Any]:
    """`with visit(path, **context) as page`: a page of the owner's; afterwards no fault may have
    been seen.
    """

    @contextmanager
    def opened(path: str = "/page", allowed: tuple[str, ...] = (), **more: Any) -> Iterator[Any]:
        context = browser.new_context(
            base_url=house.url, **{"reduced_motion": "reduce", "locale": "en-GB"} | more
        )
        context.set_default_timeout(LONGEST_WAIT)
        context.add_cookies(cookies)
        faults = Faults(house.url, allowed=allowed)
        page = context.new_page()
        faults.watch(page)
        try:
            page.goto(path)
            yield page
            assert faults.faults == []
        finally:
            context.close()

    return opened


AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")


_RUN_AXE = """() => {
    // A fault has the impact of its rule, so the rules of less impact are not tried
    const lesser = axe._audit.rules.filter((rule) => !["serious", "critical"].includes(rule.impact));
    const rules = Object.fromEntries(lesser.map((rule) => [rule.id, { enabled: false }]));
    return axe.run(document, { resultTypes: ["violations"], rules });
}"""


def serious_faults(page: Any) -> list[str]:
    """What axe-core, an init script of the page, finds serious or critical about it."""
    violations = page.evaluate(_RUN_AXE)["violations"]
    serious = [
        violation for violation in violations if violation["impact"] in ("serious", "critical")
    ]
    lines = []
    for violation in serious:
        for node in violation["nodes"][:3]:
            html = node["html"][:200]
            lines.append(f"{violation['id']}: {html} {node['failureSummary'][:300]}")
    return lines
