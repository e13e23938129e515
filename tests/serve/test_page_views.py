"""The page: search, graph, calendar, agents and health, and what `/api` says of the same
(docs/page.md).
"""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from html import unescape
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import doctor
from memoranda.index.search import queries
from memoranda.ledger.examination import DamageKind
from memoranda.note.model import NOT_UTF8_CODE, UTF16_CODE
from memoranda.serve.page import search as page_search
from serve.test_page import PACKAGE, memory
from serve.web import bearer, plain

pytestmark = pytest.mark.anyio


def note(web, title, text, **more):
    return web.memory.write(Draft(text, project="notes", title=title, **more))


@pytest.mark.promise("page-search")
async def test_search_says_where_each_hit_comes_from_and_why(web, page, monkeypatch):
    claude = web.memory.as_caller("claude", "mcp", client="claude-code", session="s1")
    memory(web, "The harbour lights are out", category="knowledge", tags=("sea",))
    claude.write(Draft("Harbour lights of the city", project="notes", title="City"))
    archived = memory(web, "Old harbour lights", category="knowledge")
    from memoranda.jobs.lifecycle import archive_named

    archive_named(web.memory, [archived.id])
    html = await page.see("/page/search?q=harbour+lights")
    assert "2 notes, the best first" in plain(html)
    assert "<mark>harbour</mark>" in html.lower()
    # Why a hit was found comes when somebody asks: as a part, or with the page without scripts
    assert "It has your words" not in html
    why = await page.see("/page/search?q=harbour+lights&why=1", **{"x-part": "1"})
    assert "It has your words: harbour, lights" in plain(why).lower().replace("it has", "It has")
    assert len(re.findall(r"<rect class=\"c\d\" x=", why)) >= 2
    whole = await page.see("/page/search?q=harbour+lights&why=2")
    assert whole.count("It has your words") == 1
    assert (
        await page.client.get("/page/search?q=harbour&why=99", headers={"x-part": "1"})
    ).status_code == 400
    part = await page.see("/page/search?q=harbour+lights", **{"x-part": "1"})
    assert "<!doctype" not in part
    expected_hits = {
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
    for filters, number in expected_hits.items():
        answer = await page.client.get(f"/api/search?q=harbour+lights&{filters}")
        assert answer.json()["total"] == number, filters
        for hit in answer.json()["hits"]:
            assert sum(hit["shares"].values()) == pytest.approx(hit["score"], abs=0.01)
            assert {"passage", "date", "source", "why", "line"} <= hit.keys()
    assert (await page.client.get("/page/search?from=never")).status_code == 400
    monkeypatch.setattr(queries, "MAX_COUNTED", 1)
    monkeypatch.setattr(page_search, "HITS", 1)
    assert "1+ notes, the best first" in await page.text("/page/search?q=harbour+lights")
    answer = (await page.client.get("/api/search?q=harbour+lights&limit=1")).json()
    assert (answer["total"], answer["total_is_lower_bound"]) == (1, True)


@pytest.mark.promise("page-graph")
async def test_the_graph_has_the_neighbourhood_of_a_note_or_a_search_and_clusters_of_many(
    web, page
):
    note(web, "A", "[[B]] and heron\n- part_of [[C]]")
    note(web, "B", "[[D]]")
    for title in ("C", "D", "E"):
        note(web, title, "alone")

    async def drawn(query):
        graph = (await page.client.get(f"/api/graph?{query}")).json()
        names = {node["id"]: node["title"] for node in graph["nodes"]}
        return (
            "".join(sorted(names.values())),
            {names[e["from"]] + names[e["to"]] for e in graph["links"]},
            graph,
        )

    assert (await drawn("note=A"))[:2] == ("ABCD", {"AB", "AC", "BD"})
    assert (await drawn("note=A&depth=1"))[:2] == ("ABC", {"AB", "AC"})
    assert (await drawn("note=A&depth=1&type=part_of"))[1] == {"AC"}
    assert (await drawn("note=A&limit=2"))[0] in ("AB", "AC")
    assert (await drawn("q=heron"))[:2] == ("ABC", {"AB", "AC"})
    assert (await drawn(""))[0] == "ABCDE"
    web.memory.write_many([Draft("[[A]]", title=f"n{n}", folder=f"f{n % 2}") for n in range(400)])
    nodes, _, graph = await drawn("")
    assert nodes == "Elsewhere in notesF0F1"
    assert graph["clusters"] is True
    assert graph["total"] == 405
    weights = sorted(link["weight"] for link in graph["links"])
    assert weights == [200, 200]
    sizes = [node["size"] for node in graph["nodes"]]
    assert sizes == [200, 200, 5]
    inside = await page.client.get(
        graph["nodes"][0]["url"].replace("/page/", "/api/") + "&limit=50"
    )
    assert len(inside.json()["nodes"]) == 50
    assert inside.json()["total"] == 200
    web.memory.write_many([Draft("x", title=f"m{n}", folder=f"f0/g{n % 2}/h") for n in range(300)])
    nodes, _, graph = await drawn("cluster=notes/f0")
    assert nodes == "f0g0g1"
    assert graph["total"] == 500
    assert {node["id"]: node["size"] for node in graph["nodes"]} == {
        "notes/f0/": 200,
        "notes/f0/g0": 150,
        "notes/f0/g1": 150,
    }
    assert [
        (await drawn(f"cluster={cluster}"))[2]["clusters"]
        for cluster in ("notes/f0/", "notes/f0/g1")
    ] == [False] * 2
    assert 'href="/page/note/notes/A.md"' in await page.see("/page/graph?note=B&depth=1&part=list")
    answer = await page.client.get("/page/graph?note=Z")
    assert answer.status_code == 404


@pytest.mark.promise("page-calendar")
async def test_the_calendar_has_notes_by_day_and_reminders_to_do_or_put_off(web, page):
    note(web, "Leap", "day", date="2024-02-29")
    ids = {}
    for text, due in (
        ("late", "2026-11-21T09:00:00Z"),
        ("today", "2026-11-22T23:00:00Z"),
        ("far", "2027-01-01T09:00:00Z"),
    ):
        ids[text] = memory(web, text, category="reminders", metadata={"due_at": due}).id

    async def states():
        calendar = (await page.client.get("/api/calendar?month=2024-02")).json()
        return calendar["days"], {
            reminder["text"]: reminder["state"] for reminder in calendar["reminders"]
        }

    assert await states() == (
        {"2024-02-29": 1},
        {"late": "overdue", "today": "due", "far": "later"},
    )
    assert "Leap" in await page.text("/page/calendar?day=2024-02-29")
    form = {"ref": ids["late"], "back": "/page/calendar"}
    answer = await page.send("/page/reminder", action="snooze", when="2026-12-24 10:00", **form)
    assert answer.headers["location"].startswith("/page/calendar?done=")
    assert (await states())[1]["late"] == "later"
    await page.send(
        "/page/undo", change=answer.headers["location"].partition("=")[2].partition(".")[0]
    )
    assert (await states())[1]["late"] == "overdue"
    answer = await page.client.post(
        "/api/reminder", json=form | {"action": "done", "csrf": page.csrf}
    )
    assert (answer.json()["id"], answer.json()["acked_at"] is None) == (ids["late"], False)
    assert (await states())[1]["late"] == "done"
    assert (await page.client.get("/api/calendar")).json()["month"] == "2026-11"
    again = memory(
        web,
        "again",
        category="reminders",
        metadata={"due_at": "2026-11-21T09:00:00Z", "repeat": "FREQ=WEEKLY"},
    )
    await page.send("/page/reminder", action="snooze", when="2026-11-30 10:00", ref=again.id)
    text_shown = await page.text("/page/calendar?day=2026-11-30")
    assert "Sat 09:00 · repeats · put off to Nov 30, 10:00" in text_shown
    assert "◷ 10:00 again" in text_shown
    assert web.memory.read(again.id).header["due_at"] == "2026-11-28T09:00:00Z"
    assert (
        await page.send("/page/reminder", action="snooze", when="qwertz", **form)
    ).status_code == 400
    assert (await page.send("/page/reminder", action="dance", **form)).status_code == 400
    for wrong in ("month=2026-13", "day=yesterday"):
        assert (await page.client.get(f"/page/calendar?{wrong}")).status_code == 400
    for month in ("1970-01", "2999-12"):
        assert month in await page.see(f"/page/calendar?month={month}")


@pytest.mark.promise("page-health")
async def test_agents_and_health_tell_who_wrote_and_called_and_how_large_it_is_and_revoke_tokens(
    web, page
):
    web.memory.as_caller("claude", "mcp", client="claude-code 2.1", session="s1").write(
        Draft("x", title="One")
    )
    secret = web.token("laptop")
    web.token("phone")
    token = web.access.tokens()[0].id
    assert "never" in await page.text("/page/agents")
    page.client.cookies, cookies = {}, page.client.cookies
    answer = await page.client.get("/api/search?q=x", headers=bearer(secret))
    assert answer.status_code == 200
    answer = await page.client.get("/api/health", headers=bearer(secret))
    assert answer.status_code == 400
    page.client.cookies = cookies
    text = await page.text("/page/agents")
    assert "claude-code 2.1 · one session · one note today" in text
    assert "connected" in text
    health = (await page.client.get("/api/health")).json()
    assert health["projects"] == {"notes": 1}
    assert health["writers"][0]["sessions"] == 1
    assert sum(health["weeks"].values()) == 1
    assert min(map(date.fromisoformat, health["weeks"])).weekday() == 0
    await page.send("/page/agents/revoke", token=token)
    # By cookie
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
