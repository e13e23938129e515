"""What is credited to whom: the notes that a call gave, and the notes that an agent changed."""

from __future__ import annotations

import re

import pytest

from memoranda import Draft
from memoranda.engine.telling.served import log_of, record_call
from serve.web import plain

pytestmark = pytest.mark.anyio


async def test_a_read_is_credited_with_its_note_and_not_with_the_search_before(web):
    for title in ("Tea", "Green tea", "Black tea"):
        web.note(title, "It is hot.")
    agent = web.memory.as_caller("claude", "mcp")
    agent.search("tea")
    question = {"query": "tea"}
    record_call(agent, "search_notes", question)
    tea = agent.read("notes/Tea.md")
    name = {"identifier": "Tea"}
    record_call(agent, "read_note", name)

    log = log_of(web.memory)
    read, found = log.rows(agent="claude")
    assert len(found.notes) == 3
    assert read.notes == (tea.id,)


async def test_today_and_the_card_of_an_agent_count_the_same_notes_as_removed(web, page):
    agent = web.memory.as_caller("claude", "mcp", client="claude-code 2.1", session="s1234567890")
    target = agent.write(Draft("It is slow.", project="categories", category="knowledge"))
    for number in range(4):
        other = agent.write(
            Draft(f"Stop {number} is new.", project="categories", category="knowledge")
        )
        web.memory.link(target.id, other.id)
    agent.delete(target.id)
    today = await page.text("/page?agent=claude")
    assert "removed one note" in today
    assert "removed 5 notes" not in today
    card = await page.text("/page/agents")
    assert re.search(r"forgot 1\b|1 forgot", card), card


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("knows [[Jo]]", "knows"),
        ("led_by [[Jo]]", "led by"),
        ('"works with" [[Jo]]', "works with"),
        ("认识 [[Jo]]", "认识"),
        ("works with [[Jo]]", None),
        ("3 [[Jo]]", None),
    ],
)
async def test_only_what_the_index_reads_as_a_relation_is_drawn_as_one(web, page, line, shown):
    web.note("Jo", "Somebody.")
    web.note("Lena", f"- {line}\n")
    types = [edge.type for edge in web.memory.outgoing("notes/Lena.md")]
    html = await page.see("/page/note/notes/Lena.md")
    drawn = re.findall(r'<span class="relation">([^<]*)</span> <a', html)
    assert bool(drawn) is (types != ["links_to"])
    assert (shown in drawn) is (shown is not None)
    assert "works with" in plain(html) or "works" not in line
