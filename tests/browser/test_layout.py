"""Where things are on a page, and what counts for itself there."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

from memoranda import Draft

LONG_VALUE = "the contract of the old provider ends in May, and nobody has asked for another yet"
WINDOWS = ((390, 844), (1440, 900))


@pytest.mark.parametrize("window", WINDOWS)
def test_fact_of_a_name_is_one_row_of_label_value_and_button(visit, memory, window):
    text = f"- [provider] Larch\n- [risk] {LONG_VALUE}\n"
    memory.store(Draft(text, project="notes", title="Larch ledger"), overwrite=True)
    viewport = {"width": window[0], "height": window[1]}
    with visit("/page/about?name=Larch+ledger", viewport=viewport) as page:
        rows = page.locator("section.card li.fact")
        expect(rows).to_have_count(2)
        for row in rows.all():
            label = row.locator("> .tag").bounding_box()
            value = row.locator("> .what").bounding_box()
            button = row.locator("> .do").bounding_box()
            assert label["height"] < 25
            assert label["x"] + label["width"] <= value["x"] < label["x"] + 120
            assert value["x"] + value["width"] <= button["x"]
            assert button["y"] < value["y"] + value["height"]


def spoken_texts(page: Any) -> list[str]:
    """Return the texts that a screen reader finds, with those that a style sheet adds."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    return [node["name"]["value"] for node in nodes if "name" in node]


def test_chosen_notes_are_counted_also_out_of_sight(visit, memory):
    for number in range(12):
        title = f"Counted {number}"
        memory.store(Draft("Juniper.\n", project="notes", title=title), overwrite=True)
    with visit("/page/search?q=juniper", viewport={"width": 1280, "height": 500}) as page:
        page.locator("[data-all]").check()
        page.locator(".hit [name=ref]").nth(1).uncheck()
        page.mouse.wheel(0, 400)
        chosen = page.locator(".bulkbar .chosen")
        expect(chosen).to_be_visible()
        assert "11" in spoken_texts(page)


# The widths at which the sign after the link would not fit into the line are among them.
@pytest.mark.parametrize("width", range(200, 300, 8))
def test_no_sign_after_a_link_in_a_sentence_begins_a_line(phone_sentence, width):
    bottoms = phone_sentence.evaluate(
        """(width) => {
            const sentence = document.querySelector(".sub");
            sentence.style.width = `${width}px`;
            return [...sentence.children].map((part) => part.getClientRects()[part.getClientRects().length - 1].bottom);
        }""",
        width,
    )
    link, sign = bottoms
    assert abs(link - sign) < 20


@pytest.fixture(scope="module")
def phone_sentence(browser, house, cookies):
    """A page of a phone with a sentence that ends with a link and a sign."""
    context = browser.new_context(base_url=house.url, viewport={"width": 390, "height": 844})
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto("/page/help")
    sentence = '提到最多的是 <a href="/page">Noor Haddad</a><span>。</span>'
    page.evaluate("(html) => { document.querySelector('.sub').innerHTML = html; }", sentence)
    yield page
    context.close()
