"""Who wrote a text, and when: the lists of the page say it of the text, not of its links."""

from __future__ import annotations

import re

import pytest

from memoranda import Draft
from memoranda.note.edit import FindReplace
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.words.text_origin import text_origin
from serve.test_page import memory
from serve.web import plain

pytestmark = pytest.mark.anyio


def written_by(web, agent, text, **fields):
    caller = web.memory.as_caller(agent, "mcp", client="claude-code 2.1", session="s1234567890")
    return caller.write(Draft(text, **fields))


def meta_of(html):
    """The lines below the hits of a search, with who wrote each and when."""
    return [plain(line) for line in re.findall(r'<p class="meta">(.*?)</p>', html, re.S)]


async def merged(web, page, stays, goes):
    answer = await page.send(
        note_url(stays.project, stays.path),
        do="merge",
        other=f"{goes.project}/{goes.path}",
        sure="yes",
    )
    assert answer.status_code in (200, 303)


@pytest.mark.parametrize(
    ("text", "words"), [("Mara moved to Leeds.", "Leeds"), ("马拉搬到利兹。", "马拉")]
)
async def test_a_memory_in_which_a_merge_moved_a_link_keeps_its_author_and_time(
    web, page, text, words
):
    claim = written_by(web, "claude", text, project="categories", category="people")
    line = memory(web, "Tram 4 is slow.", category="knowledge")
    depot = memory(web, "The depot is far.", category="knowledge")
    web.memory.link(claim.id, line.id)
    web.later(hours=9)
    await merged(web, page, depot, line)
    claim_now = web.memory.find(claim.id)
    assert claim_now.links == (depot.id,)
    origin = text_origin(web.memory, claim_now)
    assert origin.writer == "claude"
    assert origin.time == claim_now.created
    assert origin.tidied > origin.time
    html = await page.see(f"/page/search?q={words}")
    (meta,) = meta_of(html)
    assert "claude" in meta
    assert "You" not in meta


async def test_a_note_whose_link_follows_a_renamed_heading_keeps_its_author_and_time(web, page):
    written_by(web, "claude", "Says [[Tram#Stops]].", project="notes", title="Diary")
    web.note("Tram", "## Stops\n\nAt the mill.\n")
    web.later(hours=9)
    edit = FindReplace("## Stops", "## Halts")
    web.memory.edit("notes/Tram.md", edit)
    diary = web.memory.find("notes/Diary.md")
    text = web.memory.read(diary).text
    assert "[[Tram#Halts]]" in text
    origin = text_origin(web.memory, diary)
    assert origin.writer == "claude"
    assert origin.time == diary.created


async def test_a_header_or_a_move_does_not_make_an_author_and_an_edit_does(web, page):
    written_by(web, "claude", "Green tea.", project="notes", title="Tea")
    web.later(days=3)
    web.memory.tag("notes/Tea.md", ["hot"])
    web.memory.move("notes/Tea.md", "drinks/Tea.md")
    before = text_origin(web.memory, web.memory.find("notes/drinks/Tea.md"))
    assert (before.writer, before.time[:10]) == ("claude", "2026-11-22")
    web.memory.edit("notes/drinks/Tea.md", FindReplace("Green", "Black"))
    after = text_origin(web.memory, web.memory.find("notes/drinks/Tea.md"))
    assert (after.writer, after.time[:10]) == ("You", "2026-11-25")


async def test_a_link_that_an_edit_of_the_note_itself_leads_elsewhere_makes_an_author(web, page):
    written_by(web, "claude", "Led by [[Ann]].", project="notes", title="Team")
    web.memory.edit("notes/Team.md", FindReplace("[[Ann]]", "[[Bob]]"))
    assert text_origin(web.memory, web.memory.find("notes/Team.md")).writer == "You"


async def test_remembered_about_people_is_sorted_by_learning_and_names_the_writer(web, page):
    old = written_by(web, "claude", "Mara moved to Leeds.", project="categories", category="people")
    web.later(hours=2)
    new = memory(web, "Bo likes tea.", category="people")
    web.later(hours=2)
    trams = memory(web, "Trams run.", category="knowledge")
    web.memory.link(old.id, trams.id)

    text = await page.text("/page/people")
    title = new.title
    assert title in text
    new_place = text.index("Bo likes tea")
    old_place = text.index("Mara moved to Leeds. claude")
    assert new_place < old_place


async def test_all_notes_tell_who_wrote_the_text_whatever_was_tagged_later(web, page):
    written_by(web, "claude", "Green tea.", project="notes", title="Tea")
    web.later(hours=3)
    tags = ["hot"]
    web.memory.tag("notes/Tea.md", tags)
    html = await page.see("/page/search")
    (meta,) = meta_of(html)
    assert meta.strip() == "Cl claude · today 12:00 · notes"
    assert ">#hot</a>" in html

    edit = FindReplace("Green", "Black")
    web.memory.edit("notes/Tea.md", edit)
    html = await page.see("/page/search")
    (meta,) = meta_of(html)
    assert meta.strip() == "Y You · just now · notes"


def titles_listed(html):
    """The titles of the notes on the page of all notes, in their order."""
    return [
        plain(title).strip() for title in re.findall(r"<h2><a [^>]*>(.*?)</a></h2>", html, re.S)
    ]


async def test_all_notes_come_by_the_time_of_their_texts_not_of_links_or_properties(web, page):
    notes = []
    for title in ("Ash", "Birch", "Cedar", "Dogwood"):
        notes.append(web.note(title, f"About [[{title} tree]]."))
        web.later(hours=2)
    memory(web, "Willows like water.", category="knowledge")
    web.later(hours=2)
    ash, birch, cedar, _ = notes
    await page.send(note_url("notes", birch.path), do="pin")
    await page.send(note_url("notes", cedar.path), do="tag", tags="wood")
    web.later(hours=2)
    edit = FindReplace("About", "All about")
    web.memory.edit(ash.id, edit)
    html = await page.see("/page/search")
    titles = titles_listed(html)
    assert titles == ["Ash", "Willows like water.", "Dogwood", "Cedar", "Birch"]
    assert "All notes, the newest text first: 5" in plain(html)
    filtered = await page.see("/page/search?project=notes")
    titles = titles_listed(filtered)
    assert titles == ["Ash", "Dogwood", "Cedar", "Birch"]


async def test_a_note_that_moved_keeps_its_place_in_all_notes(web, page):
    first = memory(web, "Willows like water.", category="knowledge")
    web.later(hours=2)
    web.note("Ash", "A tree.")
    web.later(hours=2)
    address = note_url(first.project, first.path)
    await page.send(address, do="category", category="lessons")
    html = await page.see("/page/search")
    titles = titles_listed(html)
    assert titles == ["Ash", "Willows like water."]


async def test_all_notes_are_on_its_pages_each_once(web, page, tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    for number in range(8):
        (vault / f"Found {number}.md").write_text("text\n")
    web.memory.add_project("vault", str(vault))
    for number in range(37):
        web.note(f"Note {number}", "Text.")
        web.later(minutes=3)
    titles = []
    path = "/page/search"
    while path:
        html = await page.see(path)
        titles += titles_listed(html)
        more = re.search(r'href="(/page/search\?[^"]*)" rel="next"', html)
        path = more and more[1].replace("&amp;", "&")
    assert len(titles) == 45
    assert len(set(titles)) == 45


async def test_an_undo_gives_back_the_writer_the_time_and_the_place_of_a_text(web, page):
    fern = written_by(web, "claude", "- [place] lives in Porto\n", project="notes", title="Fern")
    web.later(hours=2)
    memory(web, "Fern moved to Gdansk.", category="people")
    web.later(hours=2)
    web.note("Ash", "A tree.")
    before = text_origin(web.memory, web.memory.find(fern.id))
    html_before = await page.see(note_url("notes", fern.path))
    assert "Contradicted by" in html_before
    listed = titles_listed(await page.see("/page/search"))
    web.later(hours=1)
    web.memory.delete(fern.id)
    web.later(hours=1)
    undo = web.memory.undo()
    back = text_origin(web.memory, web.memory.find(fern.id))
    assert (back.writer, back.time) == (before.writer, before.time)
    assert "Contradicted by" in await page.see(note_url("notes", fern.path))
    assert titles_listed(await page.see("/page/search")) == listed
    # The undo is undone, and that undo too: the note is gone, and then there again.
    web.later(hours=1)
    again = web.memory.undo(undo.number)
    web.later(hours=1)
    web.memory.undo(again.number)
    back = text_origin(web.memory, web.memory.find(fern.id))
    assert (back.writer, back.time) == (before.writer, before.time)
    assert "Contradicted by" in await page.see(note_url("notes", fern.path))
    assert titles_listed(await page.see("/page/search")) == listed


async def test_an_edit_counts_again_after_its_undo_was_undone(web, page):
    tea = written_by(web, "claude", "Green tea.", project="notes", title="Tea")
    web.later(days=1)
    web.memory.edit(tea.id, FindReplace("Green", "Black"))
    edited = text_origin(web.memory, web.memory.find(tea.id))
    web.later(days=1)
    undo = web.memory.undo()
    back = text_origin(web.memory, web.memory.find(tea.id))
    assert (back.writer, back.time[:10]) == ("claude", "2026-11-22")
    web.later(days=1)
    web.memory.undo(undo.number)
    assert text_origin(web.memory, web.memory.find(tea.id)) == edited


async def test_the_undo_of_a_run_gives_back_the_writers_and_times_of_its_notes(web, page):
    first = written_by(web, "claude", "Green tea.", project="notes", title="Tea")
    web.later(days=1)
    web.memory.as_caller("codex", "mcp").edit(first.id, FindReplace("Green", "Black"))
    web.memory.as_caller("codex", "mcp").edit(first.id, FindReplace("Black", "Red"))
    web.later(days=1)
    web.memory.undo_changes_of("codex")
    back = text_origin(web.memory, web.memory.find(first.id))
    assert back.writer == "claude"
    assert back.time[:10] == "2026-11-22"


async def test_properties_that_changed_with_the_text_have_no_time_of_their_own(web, page):
    tea = written_by(web, "claude", "At four.", project="notes", title="Tea")
    web.memory.tag(tea.id, add=("hot",))
    assert text_origin(web.memory, web.memory.find(tea.id)).tidied
    address = note_url("notes", tea.path)
    assert "Links or properties changed" not in plain(await page.see(address))
    web.later(hours=2)
    web.memory.tag(tea.id, add=("green",))
    assert "Links or properties changed" in plain(await page.see(address))
