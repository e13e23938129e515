"""The message after a change: to which note it was made, until when, and whether it can be undone."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from memoranda.clock import stamp
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.words.property_words import property_value
from memoranda.serve.page.words.times import Clock
from serve.test_page import memory
from serve.test_page_secret import followed
from serve.web import plain

pytestmark = pytest.mark.anyio

TEA = note_url("notes", "Tea.md")


def toast(answered):
    """The words of the message on a page, and whether it has a button "Undo"."""
    html = re.search(r'<div id="toast" role="status">(.*?)</div>', answered.text, re.S)[1]
    words = plain(re.sub("<form.*?</form>", "", html, flags=re.S)).strip()
    return words, 'action="/page/undo"' in html


async def message(page, address, **fields):
    """The message after a form was sent."""
    return toast(await followed(page, await page.send(address, **fields)))


async def test_a_message_after_a_title_that_is_a_sentence_has_one_full_stop(web, page):
    fact = memory(web, "The office opens before 15:00.", category="knowledge")
    address = note_url(fact.project, fact.path)
    words, _ = await message(page, address, do="pin")
    assert words == "Pinned “The office opens before 15:00”."


async def test_a_message_names_the_note_by_its_title_and_says_what_happened(web, page):
    web.note("Tea", "At four.")
    cases = [
        ({"do": "pin"}, "Pinned “Tea”."),
        ({"do": "tag", "tags": "hot, green"}, "“Tea” has the tags hot, green."),
        ({"do": "tag", "tags": ""}, "“Tea” has no tags any more."),
        ({"do": "until", "until": "friday"}, "“Tea” is true until Fri."),
        ({"do": "until", "until": ""}, "“Tea” is true without an end."),
    ]
    for fields, words in cases:
        assert await message(page, TEA, **fields) == (words, True)
    number = web.memory.log(limit=1)[0].number
    assert await message(page, "/page/undo", change=str(number), back=TEA) == (
        "Taken back: “Tea”.",
        True,
    )
    assert await message(page, TEA, do="delete") == ("Deleted “Tea”.", True)


async def test_a_reminder_that_was_put_off_or_done_says_until_when(web, page):
    due = {"due_at": stamp(web.now - timedelta(hours=2))}
    note = memory(web, "Water the fern", category="reminders", metadata=due)
    words, may_undo = await message(
        page, "/page/reminder", ref=note.id, action="snooze", when="tuesday 9:00", back="/page"
    )
    assert words == "“Water the fern” is put off until Tue 09:00."
    assert may_undo is True
    words, _ = await message(
        page, "/page/reminder", ref=note.id, action="due", when="every day 8:00", back="/page"
    )
    assert words == "“Water the fern” is due tomorrow 08:00."
    words, _ = await message(page, "/page/reminder", ref=note.id, action="done", back="/page")
    assert words == "“Water the fern” is done."


async def test_a_merge_names_both_notes_and_a_bulk_action_says_how_many_more(web, page):
    for title in ("Tea", "Green tea", "Coffee"):
        web.note(title, f"{title}.")
    words, _ = await message(page, TEA, do="merge", other="Green tea", sure="yes")
    assert words == "Merged “Green tea” into “Tea”."
    refs = "notes/Tea.md\nnotes/Coffee.md"
    words, _ = await message(page, "/page/bulk", ref=refs, do="delete", back="/page/search")
    assert words == "Deleted “Tea”. One more note, too."


async def test_a_message_offers_no_undo_where_it_would_be_refused(web, page):
    web.note("Tea", "At four.")
    answer = await page.send(TEA, do="pin")
    web.memory.delete("notes/Tea.md")
    web.note("Tea", "Another.")
    words, may_undo = toast(await followed(page, answer))
    assert words == "Pinned “Tea”."
    assert not may_undo


@pytest.mark.parametrize(
    ("key", "value", "english", "chinese"),
    [
        ("due_at", "2026-11-23T09:00:00Z", "tomorrow 09:00", "明天 09:00"),
        ("due_at", "2026-11-21T09:00:00Z", "yesterday 09:00", "昨天 09:00"),
        ("snoozed_until", "2026-11-24T09:00:00Z", "Tue 09:00", "周二 09:00"),
        ("valid_until", "2027-01-05", "Jan 5, 2027", "2027年1月5日"),
        ("valid_until", "soon", "soon", "soon"),
        ("repeat", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0", "every day", "每天"),
        ("category", "people", "people", "人物"),
    ],
)
def test_a_property_is_said_in_words(web, key, value, english, chinese):
    for language, words in (("en", english), ("zh", chinese)):
        clock = Clock(language, web.now, web.memory.settings.reading_zone)
        assert plain(property_value(clock, key, value)) == words


async def test_a_history_says_until_when_a_reminder_was_put_off(web, page):
    due = {"due_at": stamp(web.now - timedelta(hours=2))}
    note = memory(web, "Water the fern", category="reminders", metadata=due)
    await page.send("/page/reminder", ref=note.id, action="snooze", when="tuesday 9:00")
    text = await page.text(f"{note_url(note.project, note.path)}?part=history")
    assert "put off until Tue 09:00" in text
    assert not re.search("due_at|snoozed_until|2026-11-24T", text)


async def test_a_new_reminder_says_when_and_a_new_category_which(web, page):
    words, _ = await message(page, "/page/remind", text="water the fern tuesday 9:00")
    assert words == "You will be reminded of “water the fern tuesday 9:00” Tue 09:00."
    note = memory(web, "Ann likes tea.")
    address = note_url(note.project, note.path)
    words, _ = await message(page, address, do="category", category="people")
    assert words == "“Ann likes tea” is in people now."
