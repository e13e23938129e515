"""The page that shows as a list of notes what an agent would be told."""

from __future__ import annotations

import pytest

from memoranda import Draft
from memoranda.clients.preview import preview
from memoranda.engine.upkeep import Upkeep
from memoranda.index.told_notes import Mark
from memoranda.serve.page.rendering import note_url

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
    assert section.title == "About the user"
    assert [told_note.marks for told_note in section.notes] == [(Mark("pinned"),)]
    html = await page.see("/page/ask?agent=claude")
    assert "About the user</h3>" in html
    assert "Lena · leads the project · works with Jo</a>" in html
    assert " · pinned</span>" in html


async def test_an_agent_that_would_be_told_nothing_is_said_to_be(page):
    html = await page.see("/page/ask?agent=claude&prompt=zebra")
    assert "claude would be told nothing" in html
