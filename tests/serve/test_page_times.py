"""Times on the page follow one rule, and each says in full what it is."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from html import unescape

import pytest

from memoranda import Draft
from memoranda.clock import stamp
from memoranda.serve.auth import Access
from memoranda.serve.page.routes import GET, PAGES
from memoranda.serve.page.words.times import Clock, full_time, late_words, time_element, time_words
from serve.test_page import memory

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ZONE = timezone(timedelta(hours=1))
ENGLISH = Clock("en", NOW, ZONE)
CHINESE = Clock("zh", NOW, ZONE)


@pytest.mark.parametrize(
    ("at", "english", "chinese"),
    [
        (NOW - timedelta(seconds=9), "just now", "刚刚"),
        (NOW - timedelta(minutes=9), "9 min ago", "9 分钟前"),
        (NOW - timedelta(hours=3), "today 10:00", "今天 10:00"),
        (NOW + timedelta(minutes=9), "today 13:09", "今天 13:09"),
        (NOW - timedelta(days=1), "yesterday 13:00", "昨天 13:00"),
        (NOW + timedelta(days=1), "tomorrow 13:00", "明天 13:00"),
        (NOW - timedelta(days=6), "Mon 13:00", "周一 13:00"),
        (NOW + timedelta(days=6), "Sat 13:00", "周六 13:00"),
        (NOW - timedelta(days=7), "Nov 15", "11月15日"),
        (NOW + timedelta(days=7), "Nov 29, 13:00", "11月29日 13:00"),
        (NOW - timedelta(days=400), "Oct 18, 2025", "2025年10月18日"),
        (NOW + timedelta(days=400), "Dec 27, 2027, 13:00", "2027年12月27日 13:00"),
        ("2026-11-22T11:00:00Z", "today 12:00", "今天 12:00"),
        ("2026-11-22 11:00", "today 11:00", "今天 11:00"),
        (date(2026, 11, 22), "today", "今天"),
        ("2026-11-23", "tomorrow", "明天"),
        ("2026-11-27", "Fri", "周五"),
        ("2026-01-05", "Jan 5", "1月5日"),
        ("2027-01-05", "Jan 5, 2027", "2027年1月5日"),
        ("next spring", "next spring", "next spring"),
        (None, "", ""),
    ],
)
def test_a_time_is_told_by_one_rule(at, english, chinese):
    assert time_words(ENGLISH, at) == english
    assert time_words(CHINESE, at) == chinese


def test_the_full_time_has_the_weekday_the_year_and_the_zone():
    assert full_time(ENGLISH, NOW) == "Sunday, November 22, 2026, 13:00 UTC+01:00"
    assert full_time(CHINESE, NOW) == "2026年11月22日，星期日 13:00 UTC+01:00"
    assert full_time(Clock("en", NOW, UTC), NOW) == "Sunday, November 22, 2026, 12:00 UTC"
    assert full_time(ENGLISH, "2026-11-22") == "Sunday, November 22, 2026"


def test_an_element_has_the_time_for_programs_and_escapes_what_is_none():
    assert time_element(ENGLISH, NOW) == (
        '<time datetime="2026-11-22T13:00:00+01:00" '
        'title="Sunday, November 22, 2026, 13:00 UTC+01:00">just now</time>'
    )
    assert time_element(ENGLISH, "<b>") == "<b>"
    assert not hasattr(time_element(ENGLISH, "<b>"), "__html__")


def test_what_is_overdue_says_how_late_it_is():
    assert late_words(ENGLISH, NOW - timedelta(hours=3)) == "3 h late"
    assert late_words(ENGLISH, NOW - timedelta(days=9)) == "9 days late"
    assert late_words(ENGLISH, NOW + timedelta(days=3)) == "Wed 13:00"


def furnish(web):
    """Fill a home with notes, reminders and calls of several days."""
    now = web.now
    claude = web.memory.as_caller("claude", "mcp", client="claude-code 2.1", session="4f2a90c1")
    for days in (400, 20, 3, 1, 0):
        web.now = now - timedelta(days=days)
        claude.write(Draft(f"Tea of day {days}.", title=f"Tea {days}", project="notes"))
        claude.write(Draft(f"Lena likes tea {days}.", project="categories", category="people"))
    web.note("Plan", "A plan.", valid_until="2027-02-01", folder="people")
    for days in (-3, 0.2, 4, 12):
        due = {"due_at": stamp(web.now + timedelta(days=days))}
        memory(web, f"Call Lena {days}", category="reminders", metadata=due)
    Access(web.memory.home).add("phone", lasts=timedelta(days=90))


async def test_no_page_has_a_time_of_another_form(web, page):
    furnish(web)
    web.later(hours=1)
    paths = [path for path, (methods, _) in PAGES.items() if "{" not in path and GET[0] in methods]
    paths += [
        "/page/note/notes/Tea%2020.md",
        "/page/note/notes/Tea%2020.md?part=history",
        "/page/note/notes/people/Plan.md",
        "/page/change/1",
        "/page/session?agent=claude&session=4f2a90c1",
        "/page/agents/undo?agent=claude&span=1+week",
        "/page/ask?prompt=tea",
        "/page/search?q=tea",
        "/page/about?name=Lena",
        "/page/remind?text=call+Ann+friday+9:00",
    ]
    number = 0
    for path in paths:
        for language in ("en", "zh"):
            html = (await page.client.get(path, headers={"accept-language": language})).text
            for element in re.findall(r"<time[^>]*>", html):
                match = re.fullmatch(r'<time datetime="([^"]+)" title="([^"]+)">', element)
                assert match, (path, element)
                assert datetime.fromisoformat(match[1])
                assert "2026" in match[2] or "202" in match[2]
                number += 1
            assert other_forms(html) == [], (path, language)
    assert number > 100


def other_forms(html):
    """Return what looks like a time of another form in the words of a page."""
    without_code = re.sub(
        r"<(pre|code|option|textarea|script|title)\b.*?</\1>", "", html, flags=re.S
    )
    text = unescape(re.sub("<[^>]*>", " ", without_code))
    months = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
    return re.findall(rf"\d{{4}}-\d\d-\d\d|\b\d{{1,2}} (?:{months})\b|\d\dT\d\d:", text)
