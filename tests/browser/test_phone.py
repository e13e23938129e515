"""The page on a phone: how long it is, what a finger hits, and what covers what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from browser.chromium import missing
from browser.house import Served, furnish
from memoranda import Draft
from memoranda.engine import open_session

if missing():
    pytest.skip(missing(), allow_module_level=True)

from playwright.sync_api import expect

pytestmark = pytest.mark.slow
WIDTH = 390
HEIGHT = 844
PHONE = {"viewport": {"width": WIDTH, "height": HEIGHT}, "has_touch": True}
PAGES = (
    "/page",
    "/page/search",
    "/page/search?q=heron",
    "/page/review",
    "/page/calendar",
    "/page/graph?note=vault/projects/Heron.md",
    "/page/people",
    "/page/about?name=Mara+Lindqvist",
    "/page/agents",
    "/page/health",
    "/page/me",
    "/page/menu",
    "/page/new",
    "/page/remind",
    "/page/help",
    "/page/ask?prompt=why",
    "/page/note/vault/people/Mara%20Lindqvist.md",
    "/page/note/notes/Reading%20group.md?part=edit",
    "/page/merge?note=notes/Reading%20group.md&other=notes/New%20day.md",
)
LEAST_TARGET = 44
# A link within a text is hit above and below its line, too.
_SMALL_TARGETS = """least => {
    const heightOf = (element) => {
        const box = element.getBoundingClientRect();
        const beside = getComputedStyle(element, "::after");
        const isHitBeside = beside.content !== "none" && beside.position === "absolute";
        const more = isHitBeside ? -parseFloat(beside.top) - parseFloat(beside.bottom) : 0;
        const label = element.closest("label")?.getBoundingClientRect().height ?? 0;
        return Math.max(box.height + (more || 0), label);
    };
    const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")];
    return all.filter((element) => element.checkVisibility({ visibilityProperty: true })
        && !element.closest("dialog, .skip") && !element.matches(".skip")
        && heightOf(element) < least - 0.5)
        .map((element) => `${element.tagName} ${element.textContent.trim().slice(0, 40)} ${heightOf(element)}`);
}"""


# What was not in the window yet has its height only once it is.
_TO_THE_END = """async () => {
    let before = -1;
    while (before !== scrollY) {
        before = scrollY;
        scrollTo(0, document.documentElement.scrollHeight);
        for (const _ of "123") await new Promise(requestAnimationFrame);
    }
}"""


@pytest.fixture(scope="module")
def house(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("phone") / "home"
    furnish(home)
    with open_session(home) as memory:
        for session in range(9):
            agent = memory.as_caller("claude", "mcp", session=f"busy-{session}")
            for number in range(5):
                agent.write(Draft("Tea is at four.", project="notes", title=f"T{session} {number}"))
    served = Served(home)
    yield served
    served.close()


def settle(page: Any) -> None:
    page.locator("#rail .count").first.wait_for(state="attached")
    page.locator("[data-part] .skeleton").first.wait_for(state="detached")
    if page.locator("canvas").count():
        page.locator("canvas[data-drawn]").wait_for()
        page.locator(".panel h2").wait_for()


@dataclass(frozen=True)
class PageSeen:
    """What a page is like on a phone: first as it was opened, then at its end."""

    small_targets: list[str]
    width: int
    end: float
    top_of_bar: float


@pytest.fixture(scope="module")
def phone(visit: Any) -> Iterator[Any]:
    """A phone that goes from page to page, which takes less than half of a new one for each."""
    with visit("/page", **PHONE) as page:
        yield page


@pytest.fixture(scope="module", params=PAGES)
def page_seen(request: pytest.FixtureRequest, phone: Any) -> PageSeen:
    phone.goto(request.param)
    settle(phone)
    small_targets = phone.evaluate(_SMALL_TARGETS, LEAST_TARGET)
    width = phone.evaluate("document.documentElement.scrollWidth")
    phone.evaluate(_TO_THE_END)
    top_of_bar = phone.locator("#rail").bounding_box()["y"]
    end = phone.evaluate(
        "Math.max(...[...document.querySelectorAll('main *')]"
        ".filter((element) => element.checkVisibility({ visibilityProperty: true }))"
        ".map((element) => element.getBoundingClientRect().bottom))"
    )
    return PageSeen(small_targets, width, end, top_of_bar)


def test_each_target_of_a_page_is_high_enough_for_a_finger(page_seen):
    assert page_seen.small_targets == []


def test_no_page_is_wider_than_a_common_phone(page_seen):
    assert page_seen.width <= WIDTH


def test_nothing_of_a_page_is_left_under_the_bar_at_its_end(page_seen):
    assert page_seen.end <= page_seen.top_of_bar


def test_the_answers_of_review_stay_just_above_the_bar(visit):
    with visit("/page/review?kind=claim", **PHONE) as page:
        settle(page)
        answers = page.locator(".question .answers")
        bar = page.locator("#rail").bounding_box()
        before = answers.bounding_box()
        assert before["y"] + before["height"] == pytest.approx(bar["y"], abs=1)
        page.evaluate("scrollTo(0, 300)")
        assert answers.bounding_box() == before
        page.locator(".questions li:not(.kind) a").last.click()
        expect(page.locator(".progress")).not_to_have_text(re.compile("^1 "))
        after = answers.bounding_box()
        assert after["y"] + after["height"] == pytest.approx(bar["y"], abs=1)
        # The choice of many has buttons of its own at that place.
        page.locator(".questions [name=ref]").first.check()
        expect(answers).to_be_hidden()


def test_today_is_a_few_screens_long_after_a_day_of_many_sessions(visit):
    with visit("/page", **PHONE) as page:
        settle(page)
        assert page.evaluate("document.documentElement.scrollHeight") < 5 * HEIGHT
        more = page.locator("#days > details.more > summary")
        more.click()
        expect(page.locator("details.more article.session").first).to_be_visible()
        earlier = page.locator("#days > details.earlier")
        expect(earlier.locator("article").first).to_be_hidden()
        earlier.first.locator("summary").first.click()
        expect(earlier.first.locator("article").first).to_be_visible()


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_the_bar_for_chosen_notes_is_one_row_with_a_menu_that_the_window_holds(visit, locale):
    with visit("/page/search?q=tea", locale=locale, **PHONE) as page:
        page.locator(".hit .choose").first.click()
        bar = page.locator(".bulkbar")
        expect(bar).to_be_visible()
        assert bar.bounding_box()["height"] < 1.6 * LEAST_TARGET
        assert bar.bounding_box()["width"] <= WIDTH
        buttons = [button.bounding_box() for button in bar.locator("> button, summary").all()]
        assert len(buttons) == 4
        assert len({round(button["y"]) for button in buttons}) == 1
        assert max(button["x"] + button["width"] for button in buttons) <= WIDTH
        bar.locator("summary").click()
        menu = bar.locator(".menu > div").bounding_box()
        assert menu["x"] >= 0
        assert menu["x"] + menu["width"] <= WIDTH
        assert menu["y"] >= 0
        assert menu["y"] + menu["height"] <= bar.bounding_box()["y"] + 10
        bar.locator("[name=tags]").fill("drink")
        bar.locator("[name=tags]").press("Enter")
        expect(page.locator("#toast")).to_contain_text("drink")
        page.locator("#toast button").click()
        expect(page.locator("#toast")).not_to_contain_text("drink")


def test_why_is_beside_the_writer_of_a_hit_until_it_is_opened(visit):
    with visit("/page/search?q=tea", **PHONE) as page:
        hit = page.locator(".hit").first
        writer = hit.locator(".meta").bounding_box()
        why = hit.locator(".why").bounding_box()
        assert why["x"] > writer["x"]
        assert why["y"] < writer["y"] + writer["height"]
        hit.locator("summary").click()
        expect(hit.locator(".shares").first).to_be_visible()
        assert hit.locator(".why").bounding_box()["width"] > 0.7 * WIDTH


def test_a_search_is_at_the_top_of_today_and_its_rows_are_hit_by_a_finger(visit):
    with visit("/page", **PHONE) as page:
        page.locator(".quick [data-palette]").click()
        rows = page.locator("#palette a[role=option]")
        expect(rows.first).to_be_visible()
        heights = [row.bounding_box()["height"] for row in rows.all()]
        assert min(heights) >= 43
        expect(page.locator("#palette kbd").first).to_be_hidden()
