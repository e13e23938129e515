"""A claim in Review: what was changed in it since the owner confirmed or pinned it."""

from __future__ import annotations

import pytest

from memoranda.engine.upkeep import Upkeep
from memoranda.note.edit import FindReplace
from serve.test_page import plain
from serve.test_page_review import asked, note_of_claude

pytestmark = pytest.mark.anyio


async def test_a_claim_says_what_was_changed_since_it_was_confirmed(web, page):
    note = note_of_claude(web, "Use tabs.\n", project="categories", category="preferences")
    web.later(hours=1)
    web.memory.confirm_notes([web.memory.find(note.id)])
    web.later(hours=1)
    codex = web.memory.as_caller("codex", "mcp", client="codex")
    codex.edit(note.id, FindReplace("tabs", "spaces"))
    question = (await asked(page, "claim")).partition("<h2>Is this so?")[2]
    assert "You confirmed it today 13:00. Since then codex changed it:" in plain(question)
    assert "<del>tabs</del>" in question
    assert "<ins>spaces</ins>" in question
    side = plain(await page.see(f"/page/id/{note.id}"))
    assert "Since then codex changed it:" in side


async def test_a_claim_says_what_was_changed_since_it_was_pinned(web, page):
    note = note_of_claude(web, "Use tabs.\n", project="notes", title="Style")
    web.later(hours=1)
    Upkeep(web.memory).pin([web.memory.find(note.id)])
    assert "Since then" not in plain(await asked(page, "claim"))
    web.later(hours=1)
    codex = web.memory.as_caller("codex", "mcp", client="codex")
    codex.edit(note.id, FindReplace("tabs", "spaces"))
    question = plain((await asked(page, "claim")).partition("<h2>Is this so?")[2])
    assert "You pinned it today 13:00. Since then codex changed it:" in question
