"""The page: search, graph, calendar, agents and health, and what `/api` says of the same
(docs/page.md).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from memoranda import Draft
from memoranda.engine import doctor
from memoranda.index.search import queries
from memoranda.jobs.lifecycle import archive_named
from memoranda.ledger.examination import DamageKind
from memoranda.note.model import NOT_UTF8_CODE, UTF16_CODE
from memoranda.serve.page import search as page_search
from serve.test_page import PACKAGE, memory
from serve.web import bearer, plain

pytestmark = pytest.mark.anyio


def note(web, title, text, **more):
    return web.memory.write(Draft(text, project="notes", title=title, **more))


LIGHTS = "/page/search?q=harbour+lights"
TOTALS = {
    "archive=1": 3,
    "tag=sea": 1,
    "project=notes": 1,
    "category=knowledge": 1,
    "agent=claude": 1,
    "agent=owner": 1,
    "from=2026-11-22": 2,
    "from=2026-11-23": 0,
    "until=2026-11-21": 0,
}
"""How many of the notes about the lights each filter leaves."""


@pytest.fixture
def lights(web):
    """A memory, an agent's note and an archived memory, all about the lights of the harbour."""
    claude = web.memory.as_caller("claude", "mcp", client="claude-code", session="s1")
    memory(web, "The harbour lights are out", category="knowledge", tags=("sea",))
    claude.write(Draft("Harbour lights of the city", project="notes", title="City"))
    archived = memory(web, "Old harbour lights", category="knowledge")
    archive_named(web.memory, [archived.id])


@pytest.mark.promise("page-search")
async def test_search_shows_how_many_notes_it_found_and_marks_the_words(page, lights):
    html = await page.see(LIGHTS)
    assert "2 notes, the best first" in plain(html)
    assert "<mark>harbour</mark>" in html.lower()


@pytest.mark.promise("page-search")
async def test_why_a_hit_was_found_is_told_when_somebody_asks(page, lights):
    assert "It has your words" not in await page.see(LIGHTS)
    why = await page.see(f"{LIGHTS}&why=1", **{"x-part": "1"})
    assert "it has your words: harbour, lights" in plain(why).lower()
    assert len(re.findall(r"<rect class=\"c\d\" x=", why)) >= 2


@pytest.mark.promise("page-search")
async def test_why_a_hit_was_found_is_told_in_the_whole_page_without_scripts(page, lights):
    whole = await page.see(f"{LIGHTS}&why=2")
    assert whole.count("It has your words") == 1


@pytest.mark.promise("page-search")
async def test_part_of_a_search_is_no_whole_page(page, lights):
    part = await page.see(LIGHTS, **{"x-part": "1"})
    assert "<!doctype" not in part


@pytest.mark.promise("page-search")
async def test_search_for_what_cannot_be_is_refused(page, lights):
    answer = await page.client.get("/page/search?q=harbour&why=99", headers={"x-part": "1"})
    assert answer.status_code == 400
    answer = await page.client.get("/page/search?from=never")
    assert answer.status_code == 400


@pytest.mark.promise("page-search")
async def test_each_filter_of_a_search_leaves_the_hits_it_is_for(page, lights):
    totals = {}
    for filters in TOTALS:
        answer = await page.client.get(f"/api/search?q=harbour+lights&{filters}")
        totals[filters] = answer.json()["total"]
    assert totals == TOTALS


@pytest.mark.promise("page-search")
async def test_hit_says_where_it_comes_from_and_of_what_its_score_is(page, lights):
    hits = []
    for filters in TOTALS:
        answer = await page.client.get(f"/api/search?q=harbour+lights&{filters}")
        hits += answer.json()["hits"]
    assert len(hits) == sum(TOTALS.values())
    for hit in hits:
        assert sum(hit["shares"].values()) == pytest.approx(hit["score"], abs=0.01)
        assert {"passage", "date", "source", "why", "line"} <= hit.keys()


@pytest.mark.promise("page-search")
async def test_total_of_very_many_hits_is_told_as_a_lower_bound(page, lights, monkeypatch):
    monkeypatch.setattr(queries, "MAX_COUNTED", 1)
    monkeypatch.setattr(page_search, "HITS", 1)
    assert "1+ notes, the best first" in await page.text(LIGHTS)
    answer = (await page.client.get("/api/search?q=harbour+lights&limit=1")).json()
    assert (answer["total"], answer["total_is_lower_bound"]) == (1, True)


@dataclass(frozen=True)
class Drawing:
    """A graph as the page is told of it: all titles as one word, and each link as two of them."""

    titles: str
    links: set[str]
    document: dict[str, Any]


async def drawn(page, query):
    document = (await page.client.get(f"/api/graph?{query}")).json()
    title_by_id = {node["id"]: node["title"] for node in document["nodes"]}
    links = {title_by_id[link["from"]] + title_by_id[link["to"]] for link in document["links"]}
    return Drawing("".join(sorted(title_by_id.values())), links, document)


@pytest.fixture
def letters(web):
    """Five notes: A links to B and C, and B to D."""
    note(web, "A", "[[B]] and heron\n- part_of [[C]]")
    note(web, "B", "[[D]]")
    for title in ("C", "D", "E"):
        note(web, title, "alone")


@pytest.mark.promise("page-graph")
@pytest.mark.parametrize(
    ("query", "titles", "links"),
    [
        ("note=A", "ABCD", {"AB", "AC", "BD"}),
        ("note=A&depth=1", "ABC", {"AB", "AC"}),
        ("note=A&depth=1&type=part_of", "ABC", {"AC"}),
        ("q=heron", "ABC", {"AB", "AC"}),
        ("", "ABCDE", {"AB", "AC", "BD"}),
    ],
)
async def test_graph_has_what_is_around_a_note_or_a_hit(page, letters, query, titles, links):
    drawing = await drawn(page, query)
    assert drawing.titles == titles
    assert drawing.links == links


@pytest.mark.promise("page-graph")
async def test_graph_has_no_more_notes_than_asked_for(page, letters):
    drawing = await drawn(page, "note=A&limit=2")
    assert drawing.titles in ("AB", "AC")


@pytest.mark.promise("page-graph")
async def test_graph_as_a_list_leads_to_its_notes(page, letters):
    html = await page.see("/page/graph?note=B&depth=1&part=list")
    assert 'href="/page/note/notes/A.md"' in html


@pytest.mark.promise("page-graph")
async def test_graph_of_a_missing_note_is_not_found(page, letters):
    answer = await page.client.get("/page/graph?note=Z")
    assert answer.status_code == 404


@pytest.mark.promise("page-graph")
async def test_graph_of_very_many_notes_is_one_of_folders_that_open(web, page, letters):
    web.memory.write_many([Draft("[[A]]", title=f"n{n}", folder=f"f{n % 2}") for n in range(400)])
    drawing = await drawn(page, "")
    assert drawing.titles == "Elsewhere in notesF0F1"
    graph = drawing.document
    assert graph["clusters"] is True
    assert graph["total"] == 405
    assert sorted(link["weight"] for link in graph["links"]) == [200, 200]
    assert [node["size"] for node in graph["nodes"]] == [200, 200, 5]
    address = graph["nodes"][0]["url"].replace("/page/", "/api/")
    inside = (await page.client.get(f"{address}&limit=50")).json()
    assert len(inside["nodes"]) == 50
    assert inside["total"] == 200


@pytest.mark.promise("page-graph")
async def test_folder_of_very_many_notes_opens_as_its_folders(web, page):
    web.memory.write_many([Draft("x", title=f"n{n}", folder="f0") for n in range(200)])
    web.memory.write_many([Draft("x", title=f"m{n}", folder=f"f0/g{n % 2}/h") for n in range(300)])
    drawing = await drawn(page, "cluster=notes/f0")
    assert drawing.titles == "f0g0g1"
    assert drawing.document["total"] == 500
    sizes = {node["id"]: node["size"] for node in drawing.document["nodes"]}
    assert sizes == {"notes/f0/": 200, "notes/f0/g0": 150, "notes/f0/g1": 150}
    for cluster in ("notes/f0/", "notes/f0/g1"):
        inside = await drawn(page, f"cluster={cluster}")
        assert inside.document["clusters"] is False, cluster


@pytest.fixture
def reminders(web):
    """A note of a leap day, and the ids of an overdue reminder, one of today and a later one."""
    note(web, "Leap", "day", date="2024-02-29")
    due_by_text = {
        "late": "2026-11-21T09:00:00Z",
        "today": "2026-11-22T23:00:00Z",
        "far": "2027-01-01T09:00:00Z",
    }
    ids = {}
    for text, due in due_by_text.items():
        ids[text] = memory(web, text, category="reminders", metadata={"due_at": due}).id
    return ids


async def states_of(page):
    """Each reminder's state in the calendar, by its text."""
    calendar = (await page.client.get("/api/calendar?month=2024-02")).json()
    return {reminder["text"]: reminder["state"] for reminder in calendar["reminders"]}


@pytest.mark.promise("page-calendar")
async def test_calendar_has_how_many_notes_are_of_each_day(page, reminders):
    calendar = (await page.client.get("/api/calendar?month=2024-02")).json()
    assert calendar["days"] == {"2024-02-29": 1}
    assert "Leap" in await page.text("/page/calendar?day=2024-02-29")


@pytest.mark.promise("page-calendar")
async def test_calendar_has_the_state_of_each_reminder(page, reminders):
    assert await states_of(page) == {"late": "overdue", "today": "due", "far": "later"}


@pytest.mark.promise("page-calendar")
async def test_reminder_put_off_in_the_calendar_is_later_until_that_is_taken_back(page, reminders):
    form = {"ref": reminders["late"], "back": "/page/calendar"}
    answer = await page.send("/page/reminder", action="snooze", when="2026-12-24 10:00", **form)
    where = answer.headers["location"]
    assert where.startswith("/page/calendar?done=")
    assert (await states_of(page))["late"] == "later"
    number = where.partition("=")[2].partition(".")[0]
    await page.send("/page/undo", change=number)
    assert (await states_of(page))["late"] == "overdue"


@pytest.mark.promise("page-calendar")
async def test_reminder_that_is_done_says_since_when(page, reminders):
    late = reminders["late"]
    form = {
        "ref": late,
        "action": "done",
        "csrf": page.csrf,
    }
    answer = await page.client.post("/api/reminder", json=form)
    document = answer.json()
    assert document["id"] == late
    assert document["acked_at"] is not None
    states = await states_of(page)
    assert states["late"] == "done"


@pytest.mark.promise("page-calendar")
async def test_repeating_reminder_put_off_is_shown_with_both_times_and_keeps_its_own(web, page):
    metadata = {"due_at": "2026-11-21T09:00:00Z", "repeat": "FREQ=WEEKLY"}
    again = memory(web, "again", category="reminders", metadata=metadata)
    await page.send("/page/reminder", action="snooze", when="2026-11-30 10:00", ref=again.id)
    text_shown = await page.text("/page/calendar?day=2026-11-30")
    assert "Sat 09:00 · repeats · put off to Nov 30, 10:00" in text_shown
    assert "◷ 10:00 again" in text_shown
    reminder = web.memory.read(again.id)
    assert reminder.header["due_at"] == "2026-11-28T09:00:00Z"


@pytest.mark.promise("page-calendar")
async def test_reminder_is_asked_nothing_that_it_cannot_do(page, reminders):
    for wrong in ({"action": "snooze", "when": "qwertz"}, {"action": "dance"}):
        answer = await page.send("/page/reminder", ref=reminders["late"], **wrong)
        assert answer.status_code == 400, wrong


@pytest.mark.promise("page-calendar")
async def test_calendar_shows_this_month_and_any_other(page):
    document = (await page.client.get("/api/calendar")).json()
    assert document["month"] == "2026-11"
    for month in ("1970-01", "2999-12"):
        assert month in await page.see(f"/page/calendar?month={month}")


@pytest.mark.promise("page-calendar")
async def test_calendar_of_a_day_or_month_that_is_none_is_refused(page):
    for wrong in ("month=2026-13", "day=yesterday"):
        answer = await page.client.get(f"/page/calendar?{wrong}")
        assert answer.status_code == 400, wrong


@pytest.fixture
def one_note(web):
    """A note that an agent wrote."""
    agent = web.memory.as_caller("claude", "mcp", client="claude-code 2.1", session="s1")
    return agent.write(Draft("x", title="One"))


@pytest.mark.promise("page-health")
async def test_health_tells_how_many_notes_there_are_and_who_wrote_them_when(page, one_note):
    answer = await page.client.get("/api/health")
    health = answer.json()
    assert health["projects"] == {"notes": 1}
    (writer,) = health["writers"]
    assert writer["sessions"] == 1
    weeks = health["weeks"]
    assert sum(weeks.values()) == 1
    first_week = min(weeks)
    first_day = date.fromisoformat(first_week)
    assert first_day.weekday() == 0


@pytest.mark.promise("page-health")
async def test_token_is_told_nothing_of_the_health(web, page, client):
    secret = web.token("laptop")
    client.cookies.clear()
    answer = await client.get("/api/health", headers=bearer(secret))
    assert answer.status_code == 400


@pytest.mark.promise("page-health")
async def test_agents_tell_who_wrote_and_whether_a_token_was_ever_used(web, page, one_note):
    secret = web.token("laptop")
    assert "never" in await page.text("/page/agents")
    cookies = page.client.cookies
    page.client.cookies = {}
    answer = await page.client.get("/api/search?q=x", headers=bearer(secret))
    assert answer.status_code == 200
    page.client.cookies = cookies
    text = await page.text("/page/agents")
    assert "never" not in text
    assert "claude-code 2.1 · one session · one note written today" in text
    assert "connected" in text


@pytest.mark.promise("page-health")
async def test_token_revoked_on_the_page_opens_nothing_and_the_cookie_does(web, page):
    secret = web.token("laptop")
    await page.send("/page/agents/revoke", token=web.access.tokens()[0].id)
    answer = await page.client.get("/api/search?q=x", headers=bearer(secret))
    assert answer.status_code == 200
    page.client.cookies = {}
    answer = await page.client.get("/api/search?q=x", headers=bearer(secret))
    assert answer.status_code == 401


@pytest.mark.promise("page-health")
async def test_the_doctors_findings_are_shown_and_mended(web, page):
    web.memory.home.chmod(0o755)
    html = await page.see("/page/doctor", **{"x-part": "1"})

    assert "Others who use this machine can read your notes." in html
    # The words of the program are there for who asks for them
    assert "others can read the folder of the notes" in html.partition("<details")[2]
    assert "others can read the folder of the notes" not in html.partition("<details")[0]
    assert re.search(r'action="/page/doctor".*Fix', html, re.DOTALL)
    assert "The button below lets only you read it" in unescape(html)
    text = (await page.send("/page/doctor")).text
    assert "fixed" in text
    assert "All is well" in await page.see("/page/doctor")


def test_each_finding_of_the_doctor_has_a_plain_sentence():
    source = Path(doctor.__file__).read_text("utf-8")
    codes = set(re.findall(r'Finding\(\s*"\w+",\s*"(\w+)"', source))
    codes |= {kind.value for kind in DamageKind} | {*doctor._WARNING_LEVELS, "unreadable"}
    codes -= {NOT_UTF8_CODE, UTF16_CODE}
    assert len(codes) > 20
    findings = json.loads(PACKAGE.joinpath("texts", "findings.json").read_text("utf-8"))
    assert codes - findings.keys() == set()


async def test_findings_of_a_kind_are_told_once_with_their_notes(web, page):
    folder = web.memory.home / "notes"
    folder.mkdir()
    for name in ("One", "Two"):
        folder.joinpath(f"{name}.md").write_text("---\ntitle: [\n---\nx\n")
    findings = await page.see("/page/doctor", **{"x-part": "1"})
    assert '<a href="/page/note/notes/One.md">One</a>' in findings
    text = plain(findings)
    assert text.count("The properties of a note cannot all be read.") == 1
    assert "× 2" in text
    assert "2 things to look at" in text


async def test_the_bars_of_an_agent_have_dates(web, page):
    agent = web.memory.as_caller("claude", "mcp")
    web.now -= timedelta(hours=30)
    agent.write(Draft("one", project="notes", title="One"))
    agent.write(Draft("two", project="notes", title="Two"))
    web.now += timedelta(hours=30)
    agent.write(Draft("three", project="notes", title="Three"))
    text = await page.see("/page/agents")
    (bars,) = re.findall(r'<svg class="days".*?</svg>\s*<p.*?</p>', text, re.S)
    titles = re.findall(r"<title>(.*?)</title>", bars)

    assert len(titles) == 30
    assert titles[-3:] == ["Nov 20: 0 changes", "Nov 21: 2 changes", "Nov 22: one change"]
    text = plain(bars.partition("</svg>")[2])
    assert text.strip() == "Oct 24 Nov 8 Today"


async def test_the_month_has_a_key(page):
    text = plain(await page.see("/page/calendar"))
    assert (
        "Signs: ! overdue ◷ due today ◷ later ✓ done a plain number: notes written that day" in text
    )


async def test_a_field_of_an_address_has_a_size(page):
    """A search for twenty thousand characters kept everybody waiting for minutes."""
    longest = "x" * 10_000
    answer = await page.client.get(f"/api/search?q={longest}")
    assert answer.status_code == 200
    refused = await page.client.get(f"/api/search?q={longest}x")
    assert refused.status_code == 414
    assert "10001 characters; at most 10000" in refused.text


async def test_the_notes_of_a_day_are_grouped_by_who_wrote_them_and_the_first_are_shown(web, page):
    claude = web.memory.as_caller("claude", "mcp")
    day = "2024-04-09"
    for number in range(5):
        web.later(minutes=1)
        title = f"Walk {number}"
        draft = Draft("x", project="notes", title=title, date=day)
        claude.write(draft)
    for number in range(4):
        web.later(minutes=1)
        title = f"Talk {number}"
        web.note(title, "x", date=day)
    html = await page.see("/page/calendar?day=2024-04-09")
    of_day = html.partition("Tuesday, April 9, 2024")[2]
    groups = of_day.split("<h3>")[1:]
    own_notes, notes_of_claude = groups
    own_words = plain(own_notes)
    assert own_words.split()[:3] == ["Y", "You", "4"]
    words_of_claude = plain(notes_of_claude)
    assert words_of_claude.split()[:3] == ["Cl", "claude", "5"]
    # A single further note takes no more room than the words that hide it.
    assert "<summary" not in own_notes
    shown, _, folded = notes_of_claude.partition("<summary")
    assert re.findall(r"Walk \d", shown) == ["Walk 4", "Walk 3", "Walk 2"]
    assert re.findall(r"Walk \d", folded) == ["Walk 1", "Walk 0"]
    assert "+ 2 more" in folded
