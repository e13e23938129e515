"""Writing in a browser: titles that are offered, a preview, a warning of a secret, and merging."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

from editing import replace_in
from memoranda import Draft
from memoranda.engine import MemorySession
from memoranda.note.edit import Append, FindReplace
from memoranda.note.model import Note

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


def written(memory: MemorySession, draft: Draft) -> Note:
    """Write a note. A test that runs once more finds the note of its first run, and replaces it."""
    return memory.store(draft, overwrite=True).note


def test_titles_are_offered_after_two_brackets_and_taken_by_key_or_click(visit, memory):
    written(memory, Draft("x", project="notes", title="Quince orchard"))
    written(memory, Draft("x", project="notes", title="Quince jelly"))
    written(memory, Draft("Fruit: .\n", project="notes", title="Fruit"))
    with visit("/page/note/notes/Fruit.md?part=edit") as page:
        box = page.locator("#text")
        box.evaluate("(field) => field.setSelectionRange(7, 7)")
        box.press_sequentially("[[quin")
        offered = page.locator(".titles button")
        expect(offered).to_have_count(2)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        second = offered.nth(1).locator("span").inner_text()
        page.keyboard.press("Enter")
        expect(box).to_have_value(f"Fruit: [[{second}]].\n")
        expect(offered).to_have_count(0)
        box.press_sequentially(" and [[orch")
        # What the first letters offer has other titles before it
        offered.filter(has_text="Quince orchard").click()
        expect(box).to_have_value(f"Fruit: [[{second}]] and [[Quince orchard]].\n")
        box.press_sequentially(" [[quin")
        expect(offered).to_have_count(2)
        page.keyboard.press("Escape")
        expect(offered).to_have_count(0)
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".body a").first).to_contain_text("Quince")


def test_a_preview_follows_the_text_and_a_secret_is_warned_about_while_it_is_typed(visit, memory):
    written(memory, Draft("Plain.\n", project="notes", title="Preview me"))
    with visit("/page/note/notes/Preview%20me.md?part=edit") as page:
        box = page.locator("#text")
        preview = page.locator("[data-draft] .body")
        page.get_by_role("button", name="Preview").click()
        expect(preview).to_contain_text("Plain.")
        box.fill("Now **bold**.\n")
        expect(preview.locator("strong")).to_have_text("bold")
        assert box.input_value() == "Now **bold**.\n"
        box.fill(f"Now **bold**.\nThe token is {TOKEN}\n")
        expect(page.locator("[data-draft] [role=alert]")).to_contain_text("Line 2 looks like")
        page.get_by_role("button", name="Preview").click()
        expect(preview).to_have_count(0)
        box.fill("Plain.\n")


def test_another_note_is_found_by_the_beginning_of_its_title_and_merged(visit, memory):
    written(memory, Draft("One.\n", project="notes", title="Kingfisher"))
    written(memory, Draft("Two.\n", project="notes", title="Kingfisher again"))
    with visit("/page/note/notes/Kingfisher.md", allowed=("404 (Not Found)",)) as page:
        page.locator("summary[aria-label='More actions']").click()
        other_title = page.get_by_label("Merge another note into this one")
        other_title.press_sequentially("kingf")
        offered = page.locator(".titles button")
        # The note itself is not offered.
        expect(offered).to_have_count(1)
        offered.click()
        expect(other_title).to_have_value("Kingfisher again")
        # The title that was taken is not offered once more.
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(300)
        expect(offered).to_have_count(0)
        other_title.fill("Kingfisher agian")
        page.get_by_role("button", name="Merge …").click()
        expect(page.get_by_role("alert")).to_have_text("No note has this title.")
        expect(page.locator("[name=other]")).to_have_value("Kingfisher agian")
        page.get_by_role("link", name="Kingfisher again").click()
        page.get_by_role("button", name="Merge").click()
        toast = page.locator("#toast")
        expect(toast).to_contain_text("Merged “Kingfisher again” into “Kingfisher”.")
        beside = page.locator(".beside")
        expect(beside).to_be_visible()
        assert beside.bounding_box()["x"] > 500
        expect(page.locator(".body")).to_contain_text("Two.")


def test_two_chosen_notes_of_a_search_are_merged(visit, memory):
    written(memory, Draft("One heronry.\n", project="notes", title="Heronry"))
    written(memory, Draft("Another heronry.\n", project="notes", title="Heronry two"))
    with visit("/page/search?q=heronry") as page:
        for box in page.locator(".hit [name=ref]").all()[:2]:
            box.check()
        page.get_by_role("button", name="Merge …").click()
        expect(page.locator("h1")).to_have_text("Merge these two?")
        page.get_by_role("button", name="Merge").click()
        expect(page.locator("#toast")).to_contain_text("Merged “")
        expect(page.locator(".beside")).to_be_visible()
        page.locator("#toast").get_by_role("button", name="Undo").click()
        expect(page.locator("#toast")).to_contain_text("Taken back")


@pytest.mark.parametrize("scripts", [True, False])
def test_an_edit_outside_is_in_the_history_and_can_be_taken_back(visit, memory, scripts):
    title = f"Outside {scripts}"
    note = written(memory, Draft("At four.\n", project="notes", title=title))
    memory.edit(note, Append("With milk.\n"))
    file = memory.home / "notes" / f"{title}.md"
    replace_in(file, "four", "nine")
    address = f"/page/note/notes/{title.replace(' ', '%20')}.md"
    with visit(address, java_script_enabled=scripts) as page:
        if not scripts:
            page.goto(f"{address}?part=history")
        row = page.locator(".history .row").first
        expect(row).to_contain_text("Outside of memory")
        expect(row.locator("ins")).to_have_text("nine")
        row.get_by_role("button", name="Restore the text before this").click()
        expect(page.locator("article .body").first).to_contain_text("At four.")
    assert "At four." in file.read_text()


def test_an_open_form_says_at_once_what_an_agent_changed_and_takes_it_in(visit, memory):
    note = written(memory, Draft("One.\n\nTwo.\n\nThree.\n", project="notes", title="Beside"))
    with visit("/page/note/notes/Beside.md?part=edit") as page:
        box = page.locator("#text")
        page.wait_for_function("document.body.dataset.ready === ''")
        box.fill("My one.\n\nTwo.\n\nThree.\n")
        codex = memory.as_caller("codex", "mcp", client="codex")
        codex.edit(note, FindReplace("Three", "Four"))
        told = page.locator(".editor > [data-live]")
        expect(told).to_contain_text("Codex changed this note")
        assert box.input_value() == "My one.\n\nTwo.\n\nThree.\n"
        told.locator("summary").click()
        expect(told.locator("ins").last).to_contain_text("Four")
        told.get_by_role("button", name="Take it in").click()
        expect(box).to_have_value("My one.\n\nTwo.\n\nFour.\n")
        assert "My one" not in memory.read(note).text
        # The form that came back tells of later changes, too.
        codex.edit(note, FindReplace("Two", "Five"))
        expect(told).to_contain_text("Codex changed this note")
        box.evaluate("(field) => field.setSelectionRange(7, 7)")
        told.get_by_role("button", name="Take it in").click()
        expect(box).to_have_value("My one.\n\nFive.\n\nFour.\n")
        # The key that is printed on the button saves, since one is in the text again.
        expect(box).to_be_focused()
        assert box.evaluate("(field) => field.selectionStart") == 7
        page.keyboard.press("Control+Enter")
        expect(page.locator("#toast")).to_contain_text("Changed")
        text = memory.read(note).content
        assert text.strip() == "My one.\n\nFive.\n\nFour."


def test_text_that_came_back_is_written_on_where_one_was(visit, memory):
    draft = Draft("One.\n\nTwo.\n", project="notes", title="Written on")
    note = memory.store(draft, overwrite=True).note
    with visit("/page/note/notes/Written%20on.md?part=edit") as page:
        box = page.locator("#text")
        page.wait_for_function("document.body.dataset.ready === ''")
        box.press("Control+End")
        page.keyboard.type("Three")
        memory.as_caller("codex", "mcp", client="codex").edit(
            note, FindReplace("One", "Number one")
        )
        page.get_by_role("button", name="Take it in").click()
        expect(box).to_have_value("Number one.\n\nTwo.\nThree")
        page.keyboard.type(" and four.")
        expect(box).to_have_value("Number one.\n\nTwo.\nThree and four.")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".body")).to_contain_text("Three and four.")


def test_facts_of_a_name_are_confirmed_and_taken_out_by_keys(visit, memory):
    claude = memory.as_caller("claude", "mcp", client="claude-code")
    text = "- [role] plants trees\n- [age] 40\n"
    claude.store(Draft(text, project="notes", title="Vera Novak", type="person"), overwrite=True)
    claude.write(Draft("Vera Novak likes quince tea.", project="categories", category="people"))
    with visit("/page/about?name=Vera+Novak") as page:
        facts = page.locator("section").filter(has_text="Facts").locator("li.fact")
        expect(facts).to_have_count(2)
        page.wait_for_function("document.body.dataset.ready === ''")
        page.keyboard.press("d")
        expect(page.locator("#toast")).to_contain_text("Changed “Vera Novak”.")
        expect(facts).to_have_count(1)
        expect(facts).to_contain_text("40")
        page.keyboard.press("u")
        expect(facts).to_have_count(2)
        remembered = page.locator("li.fact").filter(has_text="quince tea")
        for _ in range(2):
            page.keyboard.press("j")
        expect(remembered).to_have_class("fact here")
        page.keyboard.press("y")
        expect(remembered.get_by_role("button", name="It is so")).to_have_count(0)
        page.keyboard.press("d")
        expect(remembered).to_have_count(0)
        page.keyboard.press("u")
        expect(remembered).to_have_count(1)


def test_what_an_agent_changed_meanwhile_does_not_move_the_text_one_types(visit, memory):
    note = memory.write(Draft("One.\n\nTwo.\n", project="notes", title="Steady"))
    with visit("/page/note/notes/Steady.md?part=edit") as page:
        text = page.get_by_label("Text")
        expect(text).to_be_focused()
        before = text.bounding_box()
        memory.as_caller("claude", "mcp").edit(note.id, Append("Three.\n"))
        bar = page.locator(".editor .warn")
        expect(bar).to_contain_text("Claude changed this note")
        assert text.bounding_box() == before
        box = bar.bounding_box()
        assert box["y"] + box["height"] <= page.viewport_size["height"]


def test_titles_for_a_link_are_offered_where_one_sees_them(visit, memory):
    long_text = "\n\n".join(f"Line {number}." for number in range(60))
    memory.write(Draft(long_text, project="notes", title="Long text"))
    with visit("/page/note/notes/Long%20text.md?part=edit") as page:
        text = page.get_by_label("Text")
        expect(text).to_be_focused()
        text.press("Control+Home")
        page.keyboard.type("[[Read")
        expect(page.locator(".titles button").first).to_be_visible()
        box = page.locator(".titles").bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= page.viewport_size["height"]
