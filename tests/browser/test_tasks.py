"""What people come to the page for, from Today on, with the steps it takes (docs/lab).

A step is a click, a key, or words typed at one place. A count that rises is a fault.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from browser.chromium import missing
from memoranda import Draft, clock
from memoranda.engine import open_session
from memoranda.errors import NotFound
from memoranda.note.edit import Append, FindReplace
from memoranda.note.names import Looseness

why = missing()
if why:
    pytest.skip(why, allow_module_level=True)

from playwright.sync_api import expect  # noqa: E402

pytestmark = pytest.mark.slow


def is_there(memory: Any, title: str) -> bool:
    """Whether a note has exactly this name."""
    try:
        memory.find(title, looseness=Looseness.EXACT)
    except NotFound:
        return False
    return True


class Person:
    """Somebody at Today, whose steps are counted."""

    def __init__(self, page: Any):
        self.page = page
        self.steps = 0

    def click(self, target: Any) -> None:
        target.click()
        self.steps += 1

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.steps += 1

    def write(self, words: str) -> None:
        self.page.keyboard.insert_text(words)
        self.steps += 1

    def fill(self, target: Any, words: str) -> None:
        target.fill(words)
        self.steps += 1

    def choose(self, target: Any, option: str) -> None:
        target.select_option(option)
        self.steps += 1

    def go_to(self, title: str) -> None:
        """Open a note by its name: three steps."""
        self.press("/")
        expect(self.page.locator("#palette input")).to_be_focused()
        self.write(title)
        self.press("Enter")
        expect(self.page.locator("body[data-ready] .reading h1")).to_contain_text(title)


def test_what_an_agent_learned_last_week_is_found_in_one_step(visit):
    with visit() as page:
        person = Person(page)
        person.click(page.locator(".chips").get_by_role("link", name="claude"))
        expect(page.locator("#days")).to_contain_text("Mara prefers answers first")
        expect(page.locator("#days")).not_to_contain_text("Use tabs in the Makefiles")
        assert person.steps == 1


def test_wrong_change_of_two_days_ago_is_undone_in_three_steps(visit, house, memory):
    then = clock.now() - timedelta(days=2)
    with open_session(house.home, clock=lambda: then) as earlier:
        claude = earlier.as_caller("claude", "mcp", client="claude-code 2.1", session="0aa0")
        note = claude.write(
            Draft("The lab is in room 3.", project="notes", title="Where the lab is")
        )
        claude.edit(note.id, FindReplace("room 3", "room 99"))
    with visit() as page:
        person = Person(page)
        day = f"{then.astimezone(memory.settings.reading_zone):%A}"
        person.click(page.locator(".filter summary"))
        person.click(page.locator(".filter").get_by_role("link", name=day, exact=True))
        row = page.locator(".row").filter(has_text="99")
        person.click(row.get_by_role("button", name="Undo"))
        expect(page.locator("#toast")).to_contain_text("Taken back")
        assert person.steps == 3

    content = memory.read(note.id).content
    assert "room 3." in content


def test_category_is_corrected_in_four_steps(visit, memory):
    with visit() as page:
        person = Person(page)
        person.go_to("Lukas moved to the platform team")
        person.choose(page.get_by_label("Category"), "knowledge")
        expect(page.locator("#toast")).not_to_be_empty()
        assert person.steps == 4
    category = memory.search("Lukas platform team")[0].note.category
    assert category == "knowledge"


def test_two_notes_that_say_the_same_are_merged_in_two_steps(visit):
    with visit() as page:
        person = Person(page)
        person.click(page.locator(".side").get_by_role("link", name="possible duplicate"))
        person.click(page.get_by_role("button", name="Keep the first"))
        expect(page.locator("#toast")).to_contain_text("Merged")
        assert person.steps == 2


def test_any_two_notes_are_merged_in_seven_steps(visit, memory):
    first = memory.write(Draft("Tea is at four.", project="notes", title="Tea time"))
    other_note = memory.write(Draft("There are biscuits.", project="notes", title="Biscuits"))
    with visit() as page:
        person = Person(page)
        person.go_to("Tea time")
        person.click(page.get_by_label("More actions"))
        person.fill(page.get_by_label("Merge another note into this one"), "Biscuits")
        person.press("Enter")
        person.click(page.get_by_role("button", name="Merge", exact=True))
        expect(page.locator("#toast")).not_to_be_empty()
        expect(page.locator(".body")).to_contain_text("biscuits")
        # The note has the styles of a note, although the page before it had others.
        expect(page.locator(".reading")).to_have_css("display", "grid")
        expect(page.locator(".history .row").first).to_have_css("display", "grid")
        assert person.steps == 7

    assert memory.read(first.id).id
    assert not is_there(memory, other_note.title)


def test_why_a_hit_came_first_is_seen_in_three_steps(visit):
    with visit() as page:
        person = Person(page)
        person.click(page.locator("#rail").get_by_role("link", name="Notes"))
        person.fill(page.get_by_role("searchbox", name="Search for"), "importer nightly queue")
        expect(page.locator(".hit").first).to_contain_text("importer")
        person.click(page.locator(".hit .why summary").first)
        expect(page.locator(".hit .shares").first).to_be_visible()
        assert person.steps == 3


def test_edit_beside_an_agent_keeps_both_texts_in_six_steps(visit, memory):
    note = memory.write(Draft("One.\n\nTwo.\n", project="notes", title="Shared list"))
    with visit(allowed=("409 (Conflict)",)) as page:
        person = Person(page)
        person.go_to("Shared list")
        person.press("e")
        text = page.get_by_label("Text")
        expect(text).to_be_focused()
        memory.as_caller("claude", "mcp").edit(note.id, Append("Three, of the agent.\n"))
        person.fill(text, text.input_value().replace("One.", "One, of mine."))
        person.press("Control+Enter")
        expect(page.locator(".body")).to_contain_text("One, of mine.")
        expect(page.locator("#toast")).to_contain_text("claude")
        assert person.steps == 6
    content = memory.read(note.id).content

    assert "One, of mine." in content
    assert "Three, of the agent." in content


def test_secret_is_erased_in_six_steps(visit, memory):
    memory.write(Draft("The door code is 4711.", project="notes", title="Door code"))
    with visit() as page:
        person = Person(page)
        person.go_to("Door code")
        person.click(page.get_by_label("More actions"))
        person.click(page.get_by_role("link", name="Erase for good"))
        person.click(page.get_by_role("button", name="Erase for good"))
        expect(page.locator("h1")).to_have_text("Erased")
        assert person.steps == 6

    assert not is_there(memory, "Door code")


def test_reminder_that_is_due_is_put_off_in_three_steps(visit):
    with visit() as page:
        person = Person(page)
        person.click(page.locator(".tile").filter(has_text="due"))
        expect(page.locator(".reminder.here")).to_have_count(1)
        name = page.locator(".reminder.here p a").inner_text()
        person.press("z")
        person.press("Enter")
        expect(page.locator("#toast")).to_contain_text("put off until")
        expect(page.locator(".reminder").filter(has_text=name)).not_to_contain_text("late")
        assert person.steps == 3


def test_note_is_pinned_in_four_steps(visit, memory):
    with visit() as page:
        person = Person(page)
        person.go_to("Ship notes before noon")
        person.press("p")
        expect(page.get_by_role("button", name="Unpin")).to_be_visible()
        expect(page.locator("#rail")).to_contain_text("Ship notes before noon")
        assert person.steps == 4


def test_all_about_a_person_is_seen_in_two_steps(visit):
    with visit() as page:
        person = Person(page)
        person.click(page.locator("#rail").get_by_role("link", name="People"))
        person.click(page.get_by_role("link", name="Mara Lindqvist"))
        expect(page.locator("h1")).to_have_text("Mara Lindqvist")
        expect(page.locator("main")).to_contain_text("Works with Mara Lindqvist")
        assert person.steps == 2


def test_a_session_of_an_agent_is_looked_through_and_taken_back_as_one(visit, memory):
    agent = memory.as_caller("gemini", "mcp", client="gemini-cli 1", session="5e55")
    for number in range(3):
        agent.write(Draft(f"Guess {number}.", project="notes", title=f"Guess {number}"))
    other_agent = memory.as_caller("gemini", "mcp", client="gemini-cli 1", session="0the")
    other_agent.write(Draft("This was right.", project="notes", title="A right guess"))
    with visit() as page:
        person = Person(page)
        group = page.locator(".session").filter(has_text="Guess 1")
        person.click(group.get_by_role("link", name="3 changes"))
        expect(page.locator("main .row")).to_have_count(3)
        page.once("dialog", lambda dialog: dialog.accept())
        person.click(page.get_by_role("button", name="Undo all of it"))
        expect(page.locator("#toast")).to_contain_text("Taken back")
        expect(page.locator("main .row.undone")).to_have_count(3)
        assert person.steps == 2
    assert not is_there(memory, "Guess 1")
    assert is_there(memory, "A right guess")
    memory.undo(memory.log(limit=1)[0].number)
    assert is_there(memory, "Guess 1")


def test_several_claims_get_one_answer_by_keys_and_one_key_takes_it_back(visit):
    with visit("/page/review?kind=claim") as page:
        boxes = page.locator(".questions [name=ref]")
        expect(boxes).to_have_count(2)
        expect(page.locator("#many")).to_be_hidden()
        page.keyboard.press("x")
        page.keyboard.press("j")
        expect(page.locator(".question .progress")).to_contain_text("2 of 2")
        page.keyboard.press("x")
        expect(page.locator(".questions [name=ref]:checked")).to_have_count(2)
        expect(page.locator("#many")).to_be_visible()
        expect(page.locator(".question")).to_be_hidden()
        page.keyboard.press("n")
        expect(page.locator("#toast")).to_contain_text("Answered 2 questions.")
        expect(boxes).to_have_count(0)
        page.keyboard.press("u")
        expect(boxes).to_have_count(2)
