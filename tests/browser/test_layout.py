"""Where things are on a page, and what counts for itself there."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

from memoranda import Draft
from memoranda.note.model import TRACE_PROJECT
from memoranda.serve.page.addresses import note_url

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


def test_the_chosen_day_of_the_calendar_has_no_number_of_chosen_notes(visit):
    with visit("/page/calendar") as page:
        day = page.locator("td.chosen")
        expect(day).to_be_visible()
        assert day.evaluate("it => getComputedStyle(it, '::after').content") == "none"


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


def test_the_key_of_undo_is_inside_a_message_of_two_lines(visit, memory):
    title = "The heronry by the lake that was counted twice in one long and cold spring"
    info = memory.write(Draft("Herons.\n", project="notes", title=title))
    with visit(note_url(info.project, info.path), viewport={"width": 800, "height": 700}) as page:
        page.keyboard.press("p")
        message = page.locator("#toast")
        expect(message).to_contain_text("Undo")
        key = message.locator("kbd").bounding_box()
        lines = message.locator("span").bounding_box()
        box = message.bounding_box()
        assert lines["height"] > 2 * key["height"]
        assert key["x"] + key["width"] <= box["x"] + box["width"]


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


def test_label_of_a_fact_in_a_note_is_as_wide_as_its_word(visit, memory):
    text = "- [place] in the old brewery\n- [opening hours] nine to five\n"
    memory.store(Draft(text, project="notes", title="Old brewery"), overwrite=True)
    with visit("/page/note/notes/Old%20brewery.md") as page:
        short, long = (label.bounding_box() for label in page.locator(".body .fact").all())
        assert short["width"] < 60
        assert short["x"] == long["x"]
        lines = page.locator(".body li").all()
        assert lines[0].bounding_box()["height"] < 40


def test_a_memory_of_one_sentence_is_in_no_box_and_its_category_looks_like_a_choice(visit, memory):
    fact = memory.write(Draft("Larches lose their needles.", "categories", category="knowledge"))
    with visit(note_url(fact.project, fact.path)) as page:
        expect(page.locator("h1")).to_have_text("Larches lose their needles.")
        expect(page.locator("article > .card")).to_have_count(0)
        box = page.get_by_label("Category")
        border = box.evaluate("(field) => getComputedStyle(field).borderTopColor")
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert border not in ("rgba(0, 0, 0, 0)", background)
        assert box.bounding_box()["width"] < 200


def test_rail_counts_one_note_less_once_a_note_is_erased(visit, memory):
    memory.store(Draft("Gone soon.\n", project="notes", title="Gone soon"), overwrite=True)
    with visit("/page/note/notes/Gone%20soon.md?part=erase") as page:
        page.wait_for_function("document.body.dataset.ready === ''")
        count = page.locator('#rail a[href="/page/search"] .count')
        # The rail first shows the last known count, which may be from before the note was stored.
        totals = memory.stats()
        before = totals.total - totals.projects.get(TRACE_PROJECT, 0)
        expect(count).to_have_text(str(before))
        page.get_by_role("button", name="Erase for good").click()
        expect(page.locator("h1")).to_have_text("Erased")
        expect(count).to_have_text(str(before - 1))


def test_buttons_of_all_reminders_are_below_each_other(visit):
    with visit("/page/calendar", viewport={"width": 1280, "height": 720}) as page:
        done = page.locator(".reminder button.good")
        expect(done.first).to_be_visible()
        assert len({round(button.bounding_box()["x"]) for button in done.all()}) == 1


def test_words_beside_a_number_of_health_are_whole_on_a_phone(visit):
    viewport = {"width": 390, "height": 844}
    with visit("/page/health", viewport=viewport) as page:
        words = page.locator(".tile span")
        expect(words.first).to_be_visible()
        for word in words.all():
            box = word.bounding_box()
            height = box["height"]
            assert height < 30, "one line"


def test_long_titles_that_begin_alike_are_offered_with_their_ends(visit, memory):
    beginning = "Why the importer of the old provider failed on"
    monday = Draft("It waits.\n", project="notes", title=f"{beginning} Monday")
    friday = Draft("It waits.\n", project="notes", title=f"{beginning} Friday")
    memory.store(monday, overwrite=True)
    memory.store(friday, overwrite=True)
    provider = Draft("Ask Bo.\n", project="notes", title="Provider")
    memory.store(provider, overwrite=True)
    address = note_url("notes", "Provider.md")
    viewport = {"width": 1280, "height": 720}
    with visit(address, viewport=viewport) as page:
        page.locator(".note-actions summary").click()
        page.locator("[data-titles]").fill("Why the importer of the old")
        offered = page.locator(".titles button")
        expect(offered.first).to_be_visible()
        for button in offered.all():
            assert button.evaluate("it => it.scrollWidth <= it.clientWidth + 1")
            project = button.locator("small")
            box = project.bounding_box()
            height = box["height"]
            assert height < 25, "one line"


def test_a_badge_has_another_colour_than_the_row_that_is_chosen(visit, memory):
    text = "It is round.\n\n- [fact] it is grey\n"
    memory.store(Draft(text, project="notes", title="Lamp shade"), overwrite=True)
    with visit("/page") as page:
        colours = "it => [it, it.closest('.row')].map(x => getComputedStyle(x).backgroundColor)"
        badge = page.locator(".row.here .tag").first
        expect(badge).to_be_visible()
        colour_of_badge, colour_of_row = badge.evaluate(colours)
        assert colour_of_badge != colour_of_row


def test_the_category_of_a_note_begins_below_its_label(visit, memory):
    note = memory.write(Draft("Juniper is a shrub.", category="knowledge"))
    with visit(note_url(note.project, note.path)) as page:
        field = page.locator(".inplace select").first
        label = page.locator("dt", has_text="Category").first
        assert field.bounding_box()["x"] == label.bounding_box()["x"]
