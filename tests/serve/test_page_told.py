"""The page that shows as a list of notes what an agent would be told."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from memoranda import Draft
from memoranda.clients.preview import preview
from memoranda.clock import stamp
from memoranda.engine.telling.session_start import introduction
from memoranda.engine.upkeep import Upkeep
from memoranda.index.told_notes import Mark
from memoranda.serve.page.rendering import note_url
from serve.test_page import memory
from serve.web import plain

pytestmark = pytest.mark.anyio

PROMPT = "why is the importer of Heron splitting lines on LF only"


async def test_each_note_that_an_agent_would_be_told_has_a_link_that_leads_to_it(web, page):
    web.memory.write(
        Draft(
            "The importer of Heron splits on LF only.", project="categories", category="knowledge"
        )
    )
    web.note("Heron importer", "Heron's importer is slow.")
    told_text = preview(web.memory, "claude", PROMPT).for_prompt
    (section,) = told_text.sections
    assert section.notes
    html = await page.see(f"/page/ask?agent=claude&prompt={PROMPT}")
    for told_note in section.notes:
        assert f'href="{note_url(told_note.note.project, told_note.note.path)}"' in html
    assert "Word for word" in html


async def test_short_notes_that_share_a_line_have_a_link_each(web, page):
    for name in ("alder", "birch"):
        text = f"The importer of Heron splits the {name} on LF only."
        web.note(name, text, folder="trees")
    told_text = preview(web.memory, "claude", PROMPT).for_prompt
    assert "notes/trees)\nalder: The importer" in told_text.text
    html = await page.see(f"/page/ask?agent=claude&prompt={PROMPT}")
    assert note_url("notes", "trees/alder.md") in html
    assert note_url("notes", "trees/birch.md") in html


async def test_a_memory_that_begins_with_a_heading_is_one_note(web, page):
    web.memory.write(
        Draft(
            "The importer of Heron splits lines in these steps:\n1. It reads LF only.\nThen:\n2. It stops.",
            project="categories",
            category="knowledge",
        )
    )
    (section,) = preview(web.memory, "claude", PROMPT).for_prompt.sections
    (told_note,) = section.notes
    assert section.title == ""
    passages = "\n".join(told_note.passages)
    assert "in these steps:" in passages
    assert "It stops." in passages
    assert "in these steps:" in await page.see(f"/page/ask?agent=claude&prompt={PROMPT}")


async def test_the_start_of_a_session_is_shown_by_its_titles_with_facts_as_sentences(web, page):
    text = "# Lena\n\n- [role] leads the project\n- works with [[Jo]]"
    pinned = web.note("Lena", text)
    Upkeep(web.memory).pin([web.memory.find(pinned)])
    (section,) = preview(web.memory, "claude", "").at_start.sections
    assert section.title == "Pinned"
    assert [told_note.marks for told_note in section.notes] == [(Mark("pinned"),)]
    html = await page.see("/page/ask?agent=claude")
    assert "Pinned</h3>" in html
    assert "About the user</h3>" not in html
    assert "Lena</a>" in html
    assert "<p>leads the project · works with Jo</p>" in html
    assert " · pinned</span>" in html


async def test_an_agent_that_would_be_told_nothing_is_said_to_be(page):
    html = await page.see("/page/ask?agent=claude&prompt=zebra")
    assert "claude would be told nothing" in html


async def test_a_told_note_begins_with_its_title_once(web, page):
    text = "# Porto office\n\n- [place] in the old brewery\n- [rent] 900 euros"
    web.note("Porto office", text)
    memory(web, "The brewery office in Porto has 900 chairs.", category="knowledge")
    html = await page.see("/page/ask?agent=claude&prompt=what is the rent of the brewery office")
    told, _, _ = html.partition("At the start of a session")
    assert "Porto office</a>" in told
    assert "<p>in the old brewery · 900 euros</p>" in told
    assert "The brewery office in Porto has 900 chairs.</a>" in told
    assert told.count("900 chairs") == 2


async def test_a_prompt_without_a_near_note_shows_the_nearest_and_why(web, page):
    web.note("Lena", "# Lena\n\n- [allergy] hazelnuts")
    question = "does anybody know whether Lena dances tango on weekends or in summer?"
    html = await page.see(f"/page/ask?agent=claude&prompt={question}")
    told, _, _ = html.partition("At the start of a session")
    assert "no passage has enough of the words of this prompt" in told
    assert "not near enough</h3>" in told
    assert "Lena</a>" in told
    assert "<p>hazelnuts</p>" in told
    html = await page.see("/page/ask?agent=claude&prompt=Lena")
    told, _, _ = html.partition("At the start of a session")
    assert "with a prompt this short" in told
    assert "Lena</a>" in told


async def test_a_note_that_is_not_near_enough_shows_how_much_of_the_needed_words_it_has(web, page):
    web.note("Lena", "# Lena\n\n- [allergy] hazelnuts")
    shares = []
    for question in (
        "does anybody know whether Lena dances tango on weekends or in summer?",
        "does anybody know whether Lena dances in summer?",
    ):
        html = await page.see(f"/page/ask?agent=claude&prompt={question}")
        shares.append(int(re.search(r"(\d+) % of what is needed", html)[1]))
    # The same words are a larger part of a shorter question.
    assert 0 <= shares[0] < shares[1] < 100


async def test_a_note_that_is_told_has_no_share_of_what_is_needed(web, page):
    memory(web, "The brewery office in Porto has 900 chairs.", category="knowledge")
    question = "how many chairs has the brewery office in Porto?"
    html = await page.see(f"/page/ask?agent=claude&prompt={question}")
    assert "900 chairs" in html
    assert "of what is needed" not in html


async def test_a_pinned_note_about_somebody_else_is_not_told_as_one_about_the_user(web, page):
    text = "- [role] leads the work on Billing\n- [place] lives in Porto"
    lena = web.note("Lena", text, metadata={"pinned": True})
    web.memory.write(
        Draft(
            "I like short answers.",
            project="categories",
            category="preferences",
            metadata={"pinned": True},
        )
    )
    sections = preview(web.memory, "claude", "").at_start.sections
    titles = {section.title: [note.note.title for note in section.notes] for section in sections}
    assert titles == {"Pinned": ["Lena"], "About the user": ["I like short answers."]}
    html = await page.see("/page/ask?agent=claude")
    assert "<p>leads the work on Billing · lives in Porto</p>" in html
    introduced = introduction(web.memory.as_caller("claude", "mcp"))
    assert (
        introduced.index("Pinned:") < introduced.index("Lena") < introduced.index("About the user:")
    )
    assert introduced.index("About the user:") < introduced.index("short answers")

    # On the page about the owner it is unpinned, not deleted.
    about_me = await page.see("/page/me")
    (row,) = [row for row in about_me.split('<li class="fact"')[1:] if "leads the work" in row]
    assert 'value="unpin"' in row
    assert 'value="forget"' not in row
    await page.send("/page/me", ref=lena.id, do="unpin")
    assert "leads the work" not in await page.see("/page/me")
    assert web.memory.find(lena.id).title == "Lena"


async def test_a_reminder_that_is_overdue_for_too_long_is_said_not_to_be_told(web, page):
    for text, days in (("Renew the passport", 9), ("Water the fern", 2)):
        age = timedelta(days=days)
        due_at = stamp(web.now - age)
        memory(web, text, category="reminders", metadata={"due_at": due_at})
    html = await page.see("/page/ask?agent=claude")
    told, _, missing = html.partition("so no session is told of it:")
    assert "Water the fern" in told
    assert "Renew the passport" not in told
    assert "Renew the passport</a>" in missing
    assert "Water the fern" not in missing
    web.memory.delete("Renew the passport")
    html = await page.see("/page/ask?agent=claude")
    assert "so no session is told of it:" not in html


@pytest.mark.parametrize("prompt", ["where does Lena Fischer live now?", ""])
async def test_a_told_note_that_a_newer_one_contradicts_is_shown_with_that_one(web, page, prompt):
    text = "- [role] designer\n- [place] lives in Porto"
    metadata = {} if prompt else {"pinned": True}
    web.note("Lena Fischer", text, metadata=metadata)
    web.later(days=1)
    newer = memory(web, "Lena Fischer lives in Leeds.", category="people")
    texts = preview(web.memory, "claude", prompt)
    assert "newer: " in (texts.for_prompt if prompt else texts.at_start).text
    html = await page.see(f"/page/ask?agent=claude&prompt={prompt}")
    rows = re.findall("<li>.*?</li>", html, re.S)
    told_rows = [row for row in rows if "<p>designer · lives in Porto</p>" in row]
    assert told_rows
    for row in told_rows:
        assert "newer: " not in row
        contradicted = row.partition("Contradicted by")[2]
        assert note_url("categories", newer.path) in contradicted


async def test_a_prompt_that_tells_nothing_says_how_many_notes_have_each_of_its_words(web, page):
    web.note("Lena 1", "Lena is here.")
    web.note("Lena 2", "Lena is there.")
    web.note("Dance", "Somebody dances.")
    question = "does Lena know whether anybody dances tango on weekends or in summer?"
    html = await page.see(f"/page/ask?agent=claude&prompt={question}")
    told, _, _ = html.partition("At the start of a session")
    counts = re.search(r"Notes with each word of it:(.*?)</p>", told, re.S)
    line = plain(counts[1])
    words = line.split(" · ")
    assert "dances 1" in words
    last = words[-1]
    assert last.strip() == "lena 2", "the rarest comes first"
