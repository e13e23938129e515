"""What agents got, by day and way; the picture of how it fits together; cards and the rail."""

from __future__ import annotations

import re

import pytest

from memoranda import Draft
from memoranda.engine.telling.served import log_of
from memoranda.note.edit import Append
from serve.web import plain

pytestmark = pytest.mark.anyio
GOT = "/page/used?agent=claude"


def got(web, how, asked, *notes, agent="claude"):
    """Record a call a minute later."""
    web.later(minutes=1)
    ids = [note.id for note in notes]
    log_of(web.memory).add(web.now, agent, how, asked, ids)


def days(html):
    """The words of each day of the page."""
    parts = html.split('<section class="card">')[1:]
    return [plain(part.partition("</section>")[0]) for part in parts]


async def test_like_calls_of_a_day_are_one_row_with_how_often(web, page):
    tea = web.note("Tea", "x")
    for _ in range(3):
        got(web, "read_note", "Tea", tea)
    got(web, "read_note", tea.id, tea)
    html = await page.see(GOT)
    (day,) = days(html)
    assert re.search(r"Read 1\s+Tea\s+4 times", day)


async def test_days_and_ways_are_apart(web, page):
    tea = web.note("Tea", "x")
    cake = web.note("Cake", "x")
    got(web, "session start", "", tea)
    web.later(days=1)
    got(web, "search_notes", "what is sweet", cake, tea)
    got(web, "read_note", "Cake", cake)
    html = await page.see(GOT)
    today, yesterday = days(html)
    assert today.index("Searched for 1") < today.index("Read 1")
    assert "what is sweet" in today
    assert "2 notes" in today
    assert "Told unasked 1" in yesterday
    often = html.partition("Most often")[2]
    assert 'Tea</a> <span class="soft">2 ×' in often


async def test_a_note_that_is_gone_is_no_bare_id(web, page):
    draft = Draft("Tea is green.", project="categories", category="knowledge")
    tea = web.memory.write(draft)
    got(web, "read_note", tea.id, tea)
    web.memory.delete(tea.id)
    html = await page.see(GOT)
    (day,) = days(html)
    assert "a note that is gone" in day
    assert tea.id not in day


async def test_who_got_a_note_has_the_names_of_agents(web, page):
    tea = web.note("Tea", "x")
    got(web, "search_notes", "tea", tea)
    got(web, "read_note", "Tea", tea, agent="cursor")
    html = await page.see("/page/note/notes/Tea.md?part=used")
    (day,) = days(html)
    assert re.search(r"Searched for 1\s+tea\s+claude", day)
    assert re.search(r"Read 1\s+.*cursor", day, re.S)


async def test_the_picture_has_the_agents_numbers_and_folder_of_this_memory(web, page):
    for agent in ("claude", "cursor"):
        caller = web.memory.as_caller(agent, "mcp")
        draft = Draft("x", project="notes", title=f"Note of {agent}")
        caller.write(draft)
    html = await page.see("/page/help")
    picture = html.partition('class="fits')[2].partition("<article")[0]
    assert 'href="/page?agent=claude"' in picture
    words = plain(picture)
    assert "claude one change" in words
    assert "2 notes" in words
    assert "2 changes in all" in words
    folder = str(web.memory.home)
    assert folder in words
    paths = re.findall(r' d="([^"]*)"', picture)
    assert paths[0].startswith("M16.67 0V12M50.00 0V12M83.33 0V12")
    assert "```" not in html
    assert "+-----" not in html


async def test_the_picture_of_an_empty_memory_says_how_to_connect_an_agent(page):
    html = await page.see("/page/help")
    assert "memory install" in html
    assert "NaN" not in html


async def test_a_card_names_each_note_once(web, page):
    agent = web.memory.as_caller("claude", "mcp", client="claude-code 2.1")
    for title in ("Tea", "Cake"):
        draft = Draft("x", project="notes", title=title)
        agent.write(draft)
    edit = Append("y\n")
    agent.edit("notes/Cake.md", edit)
    agent.edit("notes/Cake.md", edit)
    html = await page.see("/page/agents")
    latest = re.findall(r'<p class="latest"><a [^>]*>([^<]*)<', html)
    assert latest == ["Cake", "Tea"]


async def test_the_rail_and_the_card_of_an_agent_tell_one_time(web, page):
    agent = web.memory.as_caller("claude", "mcp", client="claude-code 2.1")
    draft = Draft("x", project="notes", title="Tea")
    agent.write(draft)
    await page.see("/page/rail")
    web.later(minutes=30)
    edit = Append("y\n")
    agent.edit("notes/Tea.md", edit)
    web.later(minutes=5)
    answer = await page.client.get("/page/agents")
    rail, _, cards = answer.text.partition("<main")
    rail_words = plain(rail)
    assert "5 min" in rail_words
    assert "35 min" not in rail_words
    card_words = plain(cards)
    assert "5 min ago" in card_words


async def test_days_before_the_last_two_are_folded_with_how_much_there_is(web, page):
    tea = web.note("Tea", "x")
    for number in range(3):
        got(web, "search_notes", f"tea {number}", tea)
        got(web, "read_note", "Tea", tea)
        web.later(days=1)
    html = await page.see(GOT)
    assert len(days(html)) == 2
    (folded,) = re.findall(r'<details class="earlier">(.*?)</summary>', html, re.S)
    assert plain(folded).split()[1:] == ["Searched", "for", "1", "·", "Read", "1"]
