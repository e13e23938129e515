"""Every long list of the page goes on: each row stands on one of its parts, once."""

from __future__ import annotations

import html
import re
from itertools import chain
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest

from memoranda import Draft
from memoranda.engine.telling.served import log_of
from memoranda.note.edit import FindReplace
from memoranda.serve.page import agents, calendar, used
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.note import history as note_history
from serve.test_page import memory
from serve.web import plain

pytestmark = pytest.mark.anyio


async def all_parts(page, path, row):
    """What `row` finds on each part of a list, from the first to the last."""
    parts = []
    for _ in range(20):
        html_shown = await page.see(path)
        parts.append(re.findall(row, html_shown))
        following = re.search(r'href="([^"]*)" rel="next"', html_shown)
        if following is None:
            return parts
        path = html.unescape(following[1])
    raise AssertionError("the list does not end")


async def test_the_history_of_a_note(web, page, monkeypatch):
    monkeypatch.setattr(note_history, "_CHANGES_PER_PAGE", 4)
    written = web.note("Long", "word 0")
    for number in range(9):
        web.memory.edit(written.id, FindReplace(f"word {number}", f"word {number + 1}"))
    numbers = [change.number for change in web.memory.log(limit=0)]
    path = f"{note_url('notes', 'Long.md')}?part=history"
    parts = await all_parts(page, path, r'name="change" value="(\d+)"')
    numbers_shown = []
    for numbers_of_part in parts:
        numbers_shown += map(int, dict.fromkeys(numbers_of_part))
    # The first change has no text before it, and nothing to be taken back to
    assert numbers_shown == [number for number in numbers if number in numbers_shown]
    assert len(parts) == 3
    times = await all_parts(page, path, r"<li class=\"row")
    assert [len(part) for part in times] == [4, 4, 2]


async def test_a_session_of_an_agent(web, page, monkeypatch):
    monkeypatch.setattr(agents, "_CHANGES_PER_PAGE", 4)
    claude = web.memory.as_caller("claude", "mcp", client="c 1", session="s1")
    for number in range(10):
        claude.write(Draft(f"text {number}", project="notes", title=f"Note {number}"))
    path = "/page/session?agent=claude&session=s1"
    parts = await all_parts(page, path, r'data-key="Enter">(Note \d)<')

    assert [len(part) for part in parts] == [4, 4, 2]
    titles = set()
    for part in parts:
        titles.update(part)
    assert titles == {f"Note {n}" for n in range(10)}


async def test_the_notes_of_a_day(web, page, monkeypatch):
    monkeypatch.setattr(calendar, "LISTED", 3)
    for number in range(7):
        web.note(f"Walk {number}", "x", date="2024-04-09")
    parts = await all_parts(page, "/page/calendar?day=2024-04-09", r">(Walk \d)</a>")

    assert [len(part) for part in parts] == [3, 3, 1]
    assert len(set(chain.from_iterable(parts))) == 7


async def test_what_an_agent_got(web, page, monkeypatch):
    monkeypatch.setattr(used, "_ROWS_PER_PAGE", 3)
    read = web.note("Read often", "x")
    for number in range(8):
        log_of(web.memory).add(web.now, "claude", "search_notes", f"words {number}", [read.id])
    log_of(web.memory).add(web.now, "cursor", "search_notes", "words of another", [read.id])
    parts = await all_parts(page, "/page/used?agent=claude", r"asked\">(words[^<]*)</b>")
    assert [len(part) for part in parts] == [3, 3, 2]
    assert set(chain.from_iterable(parts)) == {f"words {n}" for n in range(8)}
    of_note = f"{note_url('notes', 'Read often.md')}?part=used"
    parts = await all_parts(page, of_note, r"asked\">(words[^<]*)</b>")
    assert sum(len(part) for part in parts) == 9


async def test_a_search_and_all_notes(web, page):
    for number in range(45):
        web.note(f"Port {number:02d}", "harbour")
    for path in ("/page/search?q=harbour", "/page/search"):
        parts = await all_parts(page, path, r">(Port \d\d)</a>")
        assert [len(part) for part in parts] == [20, 20, 5], path
        assert len(set(chain.from_iterable(parts))) == 45, path


@pytest.mark.parametrize(
    ("language", "this_week", "last_week"),
    [
        # The clock says Sunday, 22 November.
        ("en-GB", ["16", "22"], ["09", "15"]),
        ("en-US,en;q=0.9", ["22"], ["15", "16"]),
        ("zh-CN", ["16", "22"], ["09", "15"]),
        # Catalan and Swedish, not Canada and El Salvador
        ("ca,en-US;q=0.7", ["16", "22"], ["09", "15"]),
        ("sv", ["16", "22"], ["09", "15"]),
    ],
)
async def test_today_shows_this_week_and_the_last_as_the_reader_counts_weeks(
    web, page, language, this_week, last_week
):
    web.later(days=-16)
    for day in ("06", "09", "15", "16", "22"):
        web.now = web.now.replace(day=int(day))
        web.note(f"On the {day}", "x")
    for week, days in (("this", this_week), ("last", last_week)):
        html_shown = await page.see(f"/page?week={week}", **{"accept-language": language})
        matches = re.findall(r"On the (\d\d)<", html_shown)
        assert sorted(set(matches)) == days, week
    answer = await page.client.get("/page?week=next")

    assert answer.status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/page?day=0001-01-01",
        "/page?day=9999-12-31",
        "/page/agents/undo?agent=claude&since=0001-01-01T00:00",
        "/page/agents/undo?agent=claude&since=9999-12-31T23:59",
    ],
)
async def test_a_day_at_an_end_of_the_calendar_is_refused_in_every_zone(
    web, page, monkeypatch, path
):
    for zone in ("Asia/Tokyo", "America/New_York"):
        monkeypatch.setattr(type(web.memory.settings), "reading_zone", ZoneInfo(zone))
        answer = await page.client.get(path)
        assert answer.status_code == 400, zone


async def test_chips_of_who_and_when_are_chosen_together_and_cleared_by_a_second_click(web, page):
    claude = web.memory.as_caller("claude", "mcp")
    claude.write(Draft("x", project="notes", title="Of claude"))
    web.note("Of the owner", "x")
    html_shown = await page.see("/page?agent=claude&week=this")
    assert "Of the owner" not in html_shown
    links = re.findall(r'class="(?:chip|button)" href="([^"]*)"', html_shown)
    chips = [html.unescape(link) for link in links]
    assert "/page?week=this" in chips, "claude once more"
    assert "/page?agent=claude" in chips, "this week once more"
    queries = [parse_qs(urlsplit(link).query) for link in chips]
    assert {"agent": ["claude"], "day": ["2026-11-22"]} in queries, "a day of claude's"
    assert "<h1>This week</h1>" in html_shown


async def test_of_chosen_notes_no_category_and_no_action_is_chosen_beforehand(web, page):
    info = web.memory.write(Draft("Tea is at four", project="categories", category="knowledge"))
    ref = f"{info.project}/{info.path}"
    html_shown = await page.see("/page/search")
    bar = html_shown.partition('class="bulkbar"')[2].partition("</form>")[0]
    assert re.search(r'<select name="category"><option value=""></option>', bar)
    assert " selected" not in bar
    # Enter in the field of tags presses the first button.
    assert re.findall(r'name="do" value="(\w+)"', bar)[0] == "tag"
    for fields, missing in (
        ({"do": "category", "category": ""}, "Choose a category first."),
        ({"do": "tag", "tags": " , "}, "Write the tags to add first."),
    ):
        answer = await page.send("/page/bulk", ref=ref, **fields)
        assert answer.status_code == 400
        assert missing in answer.text
    assert web.memory.find(info.id).category == "knowledge"
    assert web.memory.log(limit=1)[0].number == 1


async def test_a_session_that_cannot_be_taken_back_says_so(web, page):
    claude = web.memory.as_caller("claude", "mcp", client="claude-code", session="s1")
    note = claude.write(Draft("x", project="notes", title="Tea"))
    web.memory.edit(note.id, FindReplace("x", "y"))
    html = await page.see("/page/session?agent=claude&session=s1")
    assert '<button class="danger" disabled>Undo all of it</button>' in html
    assert 'action="/page/session"' not in html
    assert 'href="/page/change/1"' in html


async def test_a_memory_of_the_inbox_says_when_it_goes_to_the_archive(web, page):
    claude = web.memory.as_caller("claude", "mcp")
    going = claude.write(Draft("Odds and ends.", project="categories", category="inbox"))
    staying = claude.write(Draft("The sky is blue.", project="categories", category="knowledge"))
    by_hand = memory(web, "Bits and pieces.", category="inbox")
    assert going.expires is not None
    html = await page.see("/page/search?category=inbox")
    hits = html.split('<li class="hit"')[1:]
    going_soon = [plain(hit) for hit in hits if "to the archive" in hit]
    assert len(hits) == 2
    assert len(going_soon) == 1
    assert "Odds" in going_soon[0]
    address = note_url(going.project, going.path)
    note = await page.text(address)
    assert "In the inbox until" in note
    assert "then in the archive" in note
    for other in (staying, by_hand):
        address = note_url(other.project, other.path)
        note = await page.text(address)
        assert "In the inbox until" not in note
