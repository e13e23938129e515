"""The form for editing: title and tags of their own, a preview, and a warning of a secret."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest

from editing import replace_in
from memoranda import Draft
from memoranda.engine.upkeep import Upkeep
from memoranda.note.edit import FindReplace
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.note_text import body_without_title
from serve.test_page import memory
from serve.web import plain

pytestmark = pytest.mark.anyio

TEA = note_url("notes", "Tea.md")
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


def fields_of(html):
    """The fields of the form for editing."""
    form = re.search(r'<form [^>]*class="editor[^"]*".*?</form>', html, re.S)[0]
    inputs = re.findall(r"<input [^>]*>", form)
    fields = {}
    for tag in inputs:
        value = re.search(r'value="([^"]*)"', tag)
        fields[re.search(r'name="([^"]*)"', tag)[1]] = unescape(value[1]) if value else ""
    for name, text in re.findall(
        r'<textarea [^>]*name="(\w+)"[^>]*>\n(.*?)</textarea>', form, re.S
    ):
        fields[name] = unescape(text)
    fields.pop("csrf")
    return fields


async def edited(page, address, **changes):
    fields = fields_of(await page.see(f"{address}?part=edit"))
    answer = await page.send(address, **fields | changes)
    assert answer.status_code == 303, answer.text


async def test_title_and_tags_are_fields_of_their_own(web, page):
    note = web.note("Tea", "At four.", tags=("hot",))
    fields = fields_of(await page.see(f"{TEA}?part=edit"))
    assert fields["title"] == "Tea"
    assert fields["tags"] == "hot"
    await edited(page, TEA, title="Green tea: the best", tags="hot, green tea")
    changed = web.memory.read(note)
    assert changed.title == "Green tea: the best"
    assert changed.tags == ("hot", "green tea")
    assert changed.body.strip() == "At four."
    await edited(page, TEA, tags="")
    tags = web.memory.read(note).tags
    assert tags == ()


async def test_a_form_says_without_a_server_that_its_text_is_not_saved(web, page):
    web.note("Tea", "Green.")
    editing = f"{TEA}?part=edit"
    for address in (editing, "/page/new", "/page/remind"):
        form = await page.see(address)
        assert "stays here, not saved yet" in form
    today = await page.see("/page")
    assert "not saved yet" not in today


async def test_a_form_sent_unchanged_changes_no_byte(web, page):
    web.note("Tea", "At four. #inline", tags=("hot",))
    file = web.memory.home / "notes" / "Tea.md"
    odd = file.read_text().replace("tags:\n  - hot\n", "tags: [hot]   # by hand\nowner: me\n")
    file.write_text(odd)
    await edited(page, TEA)

    assert file.read_text() == odd


async def test_a_memory_without_a_title_has_no_field_for_one_and_names_its_category(web, page):
    note = memory(web, "Ann likes tea.", category="people")
    html = await page.see(f"{note_url(note.project, note.path)}?part=edit")
    assert "title" not in fields_of(html)
    assert re.search(r"Category\s*:\s*people", plain(html))


async def test_a_preview_shows_the_text_as_it_will_look_and_saves_nothing(web, page):
    note = web.note("Tea", "At four.")
    web.note("Cake", "x")
    fields = fields_of(await page.see(f"{TEA}?part=edit"))
    text = "Now **at five** with [[Cake]] and [[Nobody]].\n"
    html = (await page.send(TEA, **fields | {"text": text, "preview": "1", "title": "Chai"})).text
    assert "<strong>at five</strong>" in html
    assert f'<a href="{note_url("notes", "Cake.md")}">Cake</a>' in html
    assert re.search('<a href="/page/new[^"]*" class="missing">Nobody</a>', html)
    body = web.memory.read(note).body
    assert body.strip() == "At four."
    again = fields_of(html)
    assert again["text"] == text
    assert again["title"] == "Chai"
    answer = await page.send(TEA, **again)
    assert answer.status_code == 303
    assert web.memory.read(note).title == "Chai"
    assert "at five" in web.memory.read(note).text


async def test_a_preview_of_a_note_that_changed_meanwhile_still_leads_to_the_conflict(web, page):
    note = web.note("Tea", "At four.")
    fields = fields_of(await page.see(f"{TEA}?part=edit"))
    file = web.memory.home / "notes" / "Tea.md"
    replace_in(file, "four", "six")
    fields["text"] = "At five.\n"
    answered = await page.send(TEA, **fields | {"preview": "1"})
    answer = await page.send(TEA, **fields_of(answered.text))

    assert answer.status_code == 409
    text = web.memory.read(note).text
    assert "six" in text


@pytest.mark.parametrize("fields", [{"preview": "1"}, {"take_in": "1", "text": "x"}])
async def test_a_form_for_editing_without_its_fields_is_refused(web, page, fields):
    note = web.note("Tea", "At four.")
    assert (await page.send(TEA, do="edit", **fields)).status_code == 400
    assert web.memory.read(note).body.strip() == "At four."


async def test_a_new_note_has_a_preview_that_keeps_what_was_typed(web, page):
    answered = await page.send("/page/new", title="Plan", text="*soon*", tags="a", preview="1")
    assert "<em>soon</em>" in answered.text
    assert 'name="title" value="Plan"' in answered.text
    assert web.memory.list()[1] == 0


async def test_a_secret_is_warned_about_while_it_is_typed(web, page):
    answer = await page.send("/page/draft", text=f"At home.\nThe token is {TOKEN}")
    assert "Line 2 looks like a GitHub token." in plain(answer.text)
    assert TOKEN not in answer.text
    assert "Preview" not in answer.text
    harmless = await page.send("/page/draft", text="At home.")
    text = plain(harmless.text)
    assert text.strip() == ""


async def test_a_header_that_cannot_be_read_loses_nothing_that_was_typed(web, page):
    web.note("Tea", "At four.", tags=("hot",))
    fields = fields_of(await page.see(f"{TEA}?part=edit"))
    fields |= {"header": "---\ntitle: [Tea\n---\n", "text": "At five.\n", "tags": "green"}
    for more in ({}, {"preview": "1"}):
        answer = await page.send(TEA, **fields | more)
        assert answer.status_code == 400
        assert "The properties in the file cannot be read." in plain(answer.text)
        again = fields_of(answer.text)
        assert again["header"] == fields["header"]
        assert again["text"] == fields["text"]
        assert again["checksum"] == fields["checksum"]


@pytest.mark.parametrize(
    ("body", "title", "shown"),
    [
        ("Tea is green.\n", "Tea is green.", ""),
        ("Tea is green. It is hot.\nMore", "Tea is green", "It is hot.\nMore"),
        ("茶是绿的。也很热。", "茶是绿的", "也很热。"),
        ("# Tea\nx", "Tea", "x"),
        ("Tea\n===\nx", "Tea", "x"),
        ("Tea\n\n---\nx", "Tea", "---\nx"),
        ("Tea is green and hot", "Tea is green", "Tea is green and hot"),
        ("- [a] b\n- c", "- [a] b", "- [a] b\n- c"),
        ("a | b\n--|--\n1 | 2", "a | b", "a | b\n--|--\n1 | 2"),
        ("Other words", "Tea", "Other words"),
    ],
)
def test_the_title_of_a_note_is_said_once(body, title, shown):
    assert body_without_title(body, title) == shown


def test_a_long_line_that_is_no_underline_is_read_in_linear_time():
    begin = time.process_time()
    assert body_without_title("Tea\n-" + " " * 100_000 + "x", "Tea").startswith("-")
    # It took a minute when the blanks could be matched in two ways.
    assert time.process_time() - begin < 5


async def test_a_memory_shows_its_first_sentence_once_with_its_links(web, page):
    web.memory.write(Draft("x", project="notes", title="Ann"))
    note = web.memory.write(
        Draft("[[Ann]] likes *green* tea.\n\nNot in the evening.", project="categories")
    )
    html = await page.see(note_url(note.project, note.path))
    text = plain(html)
    assert text.count("likes green tea.") == 1
    assert "Not in the evening." in text
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", html)[1]
    assert heading == '<a href="/page/note/notes/Ann.md">Ann</a> likes <em>green</em> tea.'


async def test_tags_of_a_note_are_shown_once_and_changed_beside_it(web, page):
    note = web.memory.write(Draft("x", project="notes", title="Tea", tags=("hot", "green")))
    html = await page.see("/page/note/notes/Tea.md")
    assert plain(html).count("#hot") == 1
    assert '<a class="tag" href="/page/search?tag=hot">#hot</a>' in html
    await page.send("/page/note/notes/Tea.md", do="tag", tags="cold")
    assert web.memory.read(note).tags == ("cold",)


def linked_by_upkeep(web, sentence, *others):
    """A memory that upkeep linked with others, two hours after each other."""
    upkeep = Upkeep(web.memory.as_caller(None, "daemon"))
    note = memory(web, sentence, category="knowledge")
    for other_sentence in others:
        web.later(hours=2)
        other = memory(web, other_sentence, category="knowledge")
        info = web.memory.find(note.id)
        other_info = web.memory.find(other.id)
        upkeep.link(info, other_info)
    return note


async def history_of(page, note):
    address = note_url(note.project, note.path)
    return await page.text(f"{address}?part=history")


async def test_changes_of_upkeep_that_follow_each_other_are_one_row_of_the_history(web, page):
    cakes = ("Cake is at four.", "Cake is at five.", "Cake is at six.")
    tea = linked_by_upkeep(web, "Tea is at four.", *cakes)
    history = await history_of(page, tea)
    assert history.count("Upkeep linked") == 1
    assert "2 times before, the first today 14:00" in history


async def test_a_note_is_not_said_to_be_deleted_when_a_note_that_it_links_to_was(web, page):
    tea = linked_by_upkeep(web, "Tea is at four.", "Cake is at four.")
    (cake,) = web.memory.search("Cake", limit=1)
    claude = web.memory.as_caller("claude", "mcp")
    claude.delete(cake.note.id)
    history = await history_of(page, tea)
    assert "deleted it" not in history
    assert "claude changed a link in it along with another note" in history


async def test_notes_that_upkeep_linked_both_ways_are_listed_once(web, page):
    tea = linked_by_upkeep(web, "Tea is at four.", "Cake is at four.")
    address = note_url(tea.project, tea.path)
    text = await page.text(address)
    assert text.count("Cake is at four.") == 1
    assert "Linked both ways 1 Cake is at four." in text
    assert "Links to here" not in text


async def test_each_line_of_a_file_of_the_memory_tool_is_a_line(web, page):
    web.memory.write(Draft("Answers short.\nWorks in Vienna.", project="memories", title="me"))
    web.note("Wrapped", "One sentence\nover two lines.")
    own = await page.see("/page/note/memories/me.md")
    assert re.search(r"Answers short\.<br>\s*Works in Vienna\.", own)
    assert (
        "<br>" not in (await page.see("/page/note/notes/Wrapped.md")).partition('class="body"')[2]
    )


async def test_a_note_without_a_text_says_so_and_a_memory_is_read_as_a_sentence(web, page):
    web.note("Empty", "")
    empty = await page.text("/page/note/notes/Empty.md")
    assert "This note has no text yet. Write it" in empty
    tea = memory(web, "Tea is at four.", category="knowledge")
    address = note_url(tea.project, tea.path)
    html_shown = await page.see(address)
    assert '<h1 class="sentence">Tea is at four.</h1>' in html_shown
    assert "no text yet" not in html_shown


async def test_a_changed_fact_has_its_category_as_a_tag_in_the_history(web, page):
    lena = web.note("Lena", "- [role] works on Billing\n- knows Bo\n")
    edit = FindReplace("works", "leads the work")
    web.memory.edit(lena.id, edit)
    address = note_url(lena.project, lena.path)
    history = await page.see(f"{address}?part=history")
    assert '<span class="tag">role</span>' in history
    assert "[role]" not in history
    words = plain(history)
    assert "- knows Bo" in words, "other marks may be what was changed"


async def test_a_relation_to_a_note_is_read_from_the_note_that_has_it(web, page):
    heron = web.note("Heron", "A project.\n")
    web.note("Ann", "- leads [[Heron]]\n")
    html = await page.see(note_url(heron.project, heron.path))
    assert "Ann leads Heron" in plain(html)
