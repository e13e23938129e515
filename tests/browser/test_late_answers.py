"""An answer that comes late undoes nothing somebody did meanwhile."""

from __future__ import annotations

import time
from typing import Any

import pytest

from browser.chromium import missing
from memoranda import Draft
from memoranda.note.edit import Append
from memoranda.serve.page.static_files import static_url

why = missing()
if why:
    pytest.skip(why, allow_module_level=True)

from playwright.sync_api import expect  # noqa: E402

pytestmark = pytest.mark.slow


MOST_S = 30
"""How long anything is waited for, in seconds."""


class Held:
    """The first request to an address that `is_held` chooses waits until it is let go."""

    def __init__(self, page: Any, address: str, is_held: Any):
        self._page = page
        self._is_held = is_held
        self._routes: list[Any] = []
        page.route(address, self._route)

    def _route(self, route: Any) -> None:
        if self._routes or not self._is_held(route.request):
            route.continue_()
            return
        self._routes.append(route)

    def wait(self) -> None:
        """Until the request was made."""
        end = time.monotonic() + MOST_S
        while not self._routes:
            assert time.monotonic() < end, "the request was not made"
            self._page.wait_for_timeout(20)

    def let_go(self) -> None:
        """Send the request, and wait for its answer."""
        request = self._routes[0].request
        with self._page.expect_event("requestfinished", lambda finished: finished == request):
            self._routes[0].continue_()


def test_enter_in_the_palette_waits_for_the_words_that_were_typed(visit):
    with visit() as page:
        page.keyboard.press("/")
        expect(page.locator("#palette li").first).to_contain_text("Today")
        held_request = Held(page, "**/page/palette*", lambda request: True)
        page.keyboard.insert_text("reading group meets")
        page.keyboard.press("Enter")
        held_request.wait()
        expect(page).to_have_url("/page")
        held_request.let_go()
        page.wait_for_url("**/page/note/**")


def test_titles_chosen_from_by_key_stay_when_those_of_one_more_letter_arrive(visit):
    with visit("/page/note/notes/New%20day.md?part=edit") as page:
        text = page.locator("#text")
        before = text.input_value()
        text.press("Control+End")
        page.keyboard.type("[[Reading grou")
        titles = page.locator(".titles button")
        expect(titles.first).to_be_visible()
        page.wait_for_load_state("networkidle")
        held_request = Held(page, "**/page/titles?*", lambda request: True)
        page.keyboard.press("p")
        held_request.wait()
        page.keyboard.press("ArrowDown")
        expect(titles.first).to_be_focused()
        held_request.let_go()
        page.wait_for_timeout(200)
        page.keyboard.press("Enter")
        expect(text).to_have_value(f"{before}[[Reading group]]")
        # Leaving must not ask about a text that is not stored
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#toast")).to_contain_text("Changed")


def test_a_question_opened_meanwhile_stays_open_when_an_answer_arrives(visit, memory):
    with visit("/page/review") as page:
        page.locator(".questions a", has_text="staging database").click()
        expect(page.locator(".pane")).to_have_count(2)
        held_request = Held(page, "**/page/review*", lambda request: request.method == "POST")
        page.get_by_role("button", name="Keep the first").click()
        held_request.wait()
        page.locator(".questions a", has_text="grey and round").click()
        expect(page.locator(".question")).to_contain_text("grey and round")
        held_request.let_go()
        expect(page.locator("#toast")).to_contain_text("Merged")
        expect(page.locator(".questions a", has_text="staging database")).to_have_count(0)
        expect(page.locator(".question")).to_contain_text("grey and round")
    memory.undo(memory.log(limit=1)[0].number)


def test_what_is_typed_at_one_reminder_stays_when_another_is_done(visit, memory):
    with visit("/page/calendar") as page:
        done_reminder = page.locator(".reminder", has_text="certificate of the wiki")
        other_reminder = page.locator(".reminder", has_text="Book the room")
        held_request = Held(page, "**/page/reminder", lambda request: True)
        done_reminder.get_by_role("button", name="Done").click()
        held_request.wait()
        other_reminder.locator("summary").click()
        other_reminder.get_by_label("Another time").fill("next fri")
        held_request.let_go()
        expect(done_reminder).to_have_count(0)
        expect(other_reminder.get_by_label("Another time")).to_have_value("next fri")
        expect(other_reminder.get_by_label("Another time")).to_be_focused()
    memory.undo(memory.log(limit=1)[0].number)


def test_a_second_click_before_the_answer_sends_nothing_again(visit, memory):
    with visit("/page/calendar") as page:
        row = page.locator(".reminder", has_text="certificate of the wiki")
        held_request = Held(page, "**/page/reminder", lambda request: True)
        posts: list[str] = []
        page.on("request", lambda sent: posts.append(sent.url) if sent.method == "POST" else None)
        row.get_by_role("button", name="Done").click()
        held_request.wait()
        row.get_by_role("button", name="Done").click()
        held_request.let_go()
        expect(row).to_have_count(0)
        expect(page.locator("#trouble")).to_be_hidden()
        assert len(posts) == 1
    memory.undo(memory.log(limit=1)[0].number)


def test_a_live_update_keeps_the_focus_and_the_card(visit, memory):
    earlier_note = memory.write(Draft("Today began.", project="notes", title="Before"))
    with visit() as page:
        folds = page.locator("details.earlier")
        folds.filter(has_text="Ship notes before noon").locator("summary").first.click()
        title = page.locator(".row .title", has_text="Ship notes before noon").first
        title.focus()
        page.keyboard.press("j")
        title_of_card = page.locator(".row.here .title").inner_text()
        title.focus()
        note = memory.write(Draft("Comes in from elsewhere.", project="notes", title="From afar"))
        expect(page.locator(".row", has_text="From afar")).to_have_count(1)
        expect(title).to_be_focused()
        expect(page.locator(".row.here .title")).to_have_text(title_of_card)
        opened = page.locator("#days details[open]")
        expect(opened).to_have_count(1)
    memory.delete(note, earlier_note)


def test_a_live_update_waits_until_somebody_has_written(visit, memory):
    with visit() as page:
        page.evaluate("""() => {
            const input = document.createElement("input");
            document.querySelector("#days").before(input);
            input.focus();
        }""")
        with page.expect_event("console", lambda message: message.text == "told"):
            # Only an open stream tells of what comes from now on
            page.evaluate("""() => new Promise((opened) => {
                const events = new EventSource("/page/live");
                events.addEventListener("open", () => opened());
                events.addEventListener("change", () => setTimeout(() => console.log("told"), 600));
            })""")
            memory.edit("Reading group", Append("Bring the book."))
        expect(page.locator("#days")).not_to_contain_text("Bring the book.")
        page.locator("h1").click()
        expect(page.locator("#days")).to_contain_text("Bring the book.")
    memory.undo(memory.log(limit=1)[0].number)


def test_notes_chosen_in_a_search_stay_chosen_while_it_narrows(visit):
    with visit("/page/search?q=staging") as page:
        box = page.get_by_label("Choose “The staging database is rebuilt each Monday at six.”")
        box.check()
        page.get_by_label("Search for").fill("staging database")
        page.wait_for_url("**q=staging+database")
        expect(page.locator(".hit")).not_to_have_count(0)
        expect(box).to_be_checked()


def test_of_two_questions_opened_the_later_click_counts(visit):
    with visit("/page/review") as page:
        expect(page.locator(".questions li")).not_to_have_count(0)
        held_request = Held(page, "**/page/review?at=*", lambda request: True)
        page.locator(".questions a", has_text="staging database").click()
        held_request.wait()
        page.locator(".questions a", has_text="grey and round").click()
        expect(page.locator(".question")).to_contain_text("grey and round")
        held_request.let_go()
        expect(page.locator(".question")).to_contain_text("grey and round")
        expect(page.locator(".questions li:has([aria-current])")).to_contain_text("grey")


def test_reasons_stay_with_the_hit_they_were_opened_at(visit):
    with visit("/page/search?q=staging") as page:
        hit = page.locator("#hits .hit").nth(1)
        hit.locator("summary").click()
        expect(hit.locator(".shares")).to_be_visible()
        opened = hit.locator("h2").inner_text()
        with page.expect_response("**q=staging*archive=1*"):
            page.locator(".filters summary").click()
            page.get_by_label("with the archive").check()
        opened_hit = page.locator("#hits .hit:has(details[open])")
        expect(opened_hit.locator("h2")).to_have_text(opened)
        expect(opened_hit.locator(".shares")).to_be_visible()


def test_one_choice_among_several_stays_chosen_when_a_part_is_replaced(visit):
    with visit("/page/search") as page:
        choices = page.evaluate(
            """async (address) => {
                const { keeping } = await import(address);
                const form = document.createElement("form");
                const html = ["mine", "theirs", "both"].map((value) =>
                    `<input type="radio" name="place" value="${value}" ${value === "both" ? "checked" : ""}>`
                ).join("");
                form.innerHTML = html;
                document.querySelector("main").append(form);
                form.querySelector("[value=mine]").checked = true;
                keeping(form, () => { form.innerHTML = html; });
                return [...form.elements].map((choice) => [choice.value, choice.checked]);
            }""",
            static_url("keep.js"),
        )
    assert choices == [["mine", True], ["theirs", False], ["both", False]]


# Each time something is replaced: is an answer there hit by what is pressed at its middle?
_NOTE_HITS = """() => {
    window.hits = [];
    window.hitsAll = () => [...document.querySelectorAll("main .answers button, main .reminder .good")]
        .map((button) => {
            const box = button.getBoundingClientRect();
            const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
            return button.contains(hit);
        });
    new MutationObserver((changes) => {
        if ("fresh" in changes[0].target.dataset) window.hits.push(window.hitsAll());
    }).observe(document.getElementById("main"), { subtree: true, attributeFilter: ["data-fresh"] });
}"""


def _until(page: Any, condition: str) -> None:
    """Wait until something is true in the page, whose policy forbids Playwright's own way."""
    end = time.monotonic() + MOST_S
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


@pytest.mark.parametrize(
    ("path", "presses"),
    [
        ("/page/review", [".answers a"]),
        ("/page/calendar", [".reminder .put-off summary", ".put-off button[value='in 1 week']"]),
    ],
)
def test_an_answer_that_has_just_come_is_not_hit_by_a_press(visit, memory, path, presses):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    before = memory.log(limit=1)[0].number
    with visit(path, **phone) as page:
        expect(page.locator(presses[0]).first).to_be_visible()
        page.evaluate(_NOTE_HITS)
        for press in presses:
            page.locator(press).locator("visible=true").first.tap()
        _until(page, "window.hits.length > 0")
        assert not any(page.evaluate("window.hits.flat()"))
        # It is not so for long
        _until(page, "window.hitsAll().some((isHit) => isHit)")
    for change in memory.log(limit=5):
        if change.number > before:
            memory.undo(change.number)


def test_the_second_press_of_a_double_click_sends_nothing(visit, memory):
    with visit("/page/calendar") as page:
        done = page.locator(".reminder .good").first
        posts: list[str] = []
        page.on("request", lambda sent: posts.append(sent.url) if sent.method == "POST" else None)
        expect(page.locator("body[data-ready]")).to_have_count(1)
        done.dispatch_event("click", {"detail": 2})
        page.wait_for_timeout(200)
        assert posts == []
        done.dispatch_event("click", {"detail": 1})
        expect(page.locator("#toast")).to_contain_text("Undo")
        assert len(posts) == 1
    memory.undo(memory.log(limit=1)[0].number)
