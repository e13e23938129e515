"""What an agent would be told, read back as a list of notes."""

from __future__ import annotations

import pytest

from memoranda import Draft
from memoranda.clients.preview import preview
from memoranda.serve.page.told import told

pytestmark = pytest.mark.anyio


def test_a_telling_of_a_session_is_read_by_its_parts():
    (due, about) = told(
        '<memoranda-memory note="Data">\nYou have a memory.\nDue:\n'
        "- (2026-09-30, categories/reminders/dentist-1a2b3c4d, due 2026-11-29 01:57) Call the dentist\n"
        "About the user:\n"
        "- (2026-09-30, notes/people/lena, pinned) Lena: - [role] leads - works with [[Jo]]\n"
        "</memoranda-memory>"
    )
    assert (due.title, about.title) == ("Due", "About the user")
    (dentist,) = due.notes
    assert dentist.ref == "categories/reminders/dentist-1a2b3c4d"
    assert dentist.remarks == ["due 2026-11-29 01:57"]
    assert about.notes[0].text == "Lena: leads · works with Jo"


def test_a_telling_for_a_prompt_is_read_with_ids_and_several_lines():
    (part,) = told(
        '<memoranda-memory note="Data">\n(2026-11-13, categories/knowledge)\n'
        "d0e9d37a: The importer reads CRLF.\n  Seen again.\n\n"
        "(2026-10-14, notes/week-52)\n  The queue failed.\n\n  - [fact] it locks\n</memoranda-memory>"
    )
    assert [(note.ref, note.text) for note in part.notes] == [
        ("d0e9d37a", "The importer reads CRLF. Seen again."),
        ("notes/week-52", "The queue failed. · it locks"),
    ]


def test_nothing_told_has_no_parts():
    assert told("") == []


async def test_each_note_that_an_agent_would_be_told_has_a_link_that_leads_to_it(web, page):
    web.memory.write(
        Draft(
            "The importer of Heron splits on LF only.", project="categories", category="knowledge"
        )
    )
    web.memory.write(Draft("Heron's importer is slow.", project="notes", title="Heron importer"))
    prompt = "why is the importer of Heron splitting lines on LF only"
    text = preview(web.memory, "claude", prompt).for_prompt
    notes = [note for part in told(text) for note in part.notes]
    assert notes
    shown = await page.see(f"/page/ask?agent=claude&prompt={prompt}")
    for note in notes:
        assert web.memory.find(note.ref)
        assert f"/page/find?ref={note.ref}" in shown
    assert "Word for word" in shown


async def test_a_memory_that_begins_with_a_heading_is_one_note(web, page):
    web.memory.write(
        Draft(
            "The importer of Heron splits lines in these steps:\n1. It reads LF only.\nThen:\n2. It stops.",
            project="categories",
            category="knowledge",
        )
    )
    prompt = "why is the importer of Heron splitting lines on LF only"
    text = preview(web.memory, "claude", prompt).for_prompt
    (part,) = told(text)
    (note,) = part.notes
    assert part.title == ""
    assert "in these steps:" in note.text
    assert "It stops." in note.text
    assert "in these steps:" in await page.see(f"/page/ask?agent=claude&prompt={prompt}")


def test_lines_after_a_title_belong_to_no_note():
    (part,) = told("(2026-11-13, notes/a)\n  One.\nDue:\nNothing is due.\n")
    assert [note.text for note in part.notes] == ["One."]
