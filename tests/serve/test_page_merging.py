"""Two notes become one on the page: whatever notes they are, it is one change."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest

from memoranda import Draft
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.review.merge_pages import differences_of
from serve.web import plain

pytestmark = pytest.mark.anyio


def note(web, title, text, **more):
    return web.memory.write(Draft(text, project="notes", title=title, **more))


def memory(web, text, **more):
    return web.memory.write(Draft(text, project="categories", category="knowledge", **more))


async def merged(page, note, other_ref):
    answer = await page.send(
        note_url(note.project, note.path), do="merge", other=other_ref, sure="yes"
    )
    assert answer.status_code == 303, answer.text


def state(web):
    """All notes with their texts."""
    infos, _ = web.memory.list(limit=0)
    return {(info.project, info.path): web.memory.file(info).data for info in infos}


@pytest.mark.parametrize(
    "kinds", ["notes", "memories", "a note and a memory", "a memory and a note"]
)
async def test_a_merge_is_one_change_and_one_undo_brings_both_back(web, page, kinds):
    if kinds == "memories":
        first, second = memory(web, "Tea is at four."), memory(web, "Cake is at five.")
    elif kinds == "a note and a memory":
        first, second = note(web, "Tea", "At four.\n"), memory(web, "Cake is at five.")
    elif kinds == "a memory and a note":
        first, second = memory(web, "Tea is at four."), note(web, "Cake", "At five.\n")
    else:
        first, second = note(web, "Tea", "At four.\n"), note(web, "Cake", "At five.\n")
    before = state(web)
    changes = len(web.memory.log(limit=0))
    await merged(page, first, second.id)
    assert len(web.memory.log(limit=0)) == changes + 1
    change = web.memory.log(limit=1)[0]
    assert change.verb == "merge"
    text = web.memory.read(first.id).content
    assert "four" in text
    assert "five" in text
    assert len(state(web)) == len(before) - 1
    web.memory.undo(change.number)
    assert state(web) == before


async def test_links_to_the_note_that_went_lead_to_the_one_that_stayed(web, page):
    tea = note(web, "Tea", "At four.\n")
    note(web, "Cake", "At five.\n")
    day = note(web, "Day", "[[Cake]] and [[Tea]]")
    await merged(page, tea, "Cake")
    leads = [edge.note.id for edge in web.memory.outgoing(day.id) if edge.note]

    assert leads == [tea.id, tea.id]


async def test_a_memory_that_links_to_the_one_that_went_forgets_its_id(web, page):
    tea = memory(web, "Tea is at four.")
    cake = note(web, "Cake", "At five.\n")
    third = memory(web, "Both are in the garden.")
    web.memory.link(tea.id, third.id)
    web.memory.link(third.id, tea.id)
    await merged(page, cake, tea.id)

    links = web.memory.memory_id(third.id).links
    assert tea.id not in links
    content = web.memory.read(cake.id).content
    assert "four" in content


async def test_what_is_said_already_is_not_said_twice(web, page):
    longer = memory(web, "Tea is at four.\n\nCake is at five.")
    shorter = memory(web, "Cake is at five.")
    await merged(page, longer, shorter.id)
    assert web.memory.read(longer.id).content.count("Cake is at five.") == 1


async def test_a_note_is_not_merged_into_itself_and_nothing_changes(web, page):
    tea = note(web, "Tea", "At four.\n")
    before = state(web)
    answer = await page.send(note_url(tea.project, tea.path), do="merge", other="Tea")

    assert answer.status_code == 400
    assert state(web) == before


@pytest.mark.parametrize("fields", [{}, {"other": " "}, {"sure": "yes"}])
async def test_a_merge_without_a_second_note_is_refused(web, page, fields):
    tea = note(web, "Tea", "At four.\n")
    answer = await page.send(note_url(tea.project, tea.path), do="merge", **fields)
    assert answer.status_code == 400
    assert "Name the other note." in answer.text


async def test_before_a_merge_both_are_shown_and_nothing_changes(web, page):
    tea, cake = note(web, "Tea", "At four.\n"), note(web, "Cake", "At five.\n")
    before = state(web)
    answer = await page.send(note_url(tea.project, tea.path), do="merge", other="Cake")
    assert answer.status_code == 200
    assert state(web) == before
    assert "four" in answer.text
    assert "five" in answer.text
    assert re.search(r'class="button main"[^>]*>Keep both', answer.text)
    again = await page.send(
        note_url(tea.project, tea.path), do="merge", other=f"notes/{cake.path}", sure="yes"
    )
    assert again.status_code == 303


async def test_of_two_people_of_one_name_in_two_projects_the_page_says_so(web, page, tmp_path):
    web.memory.add_project("vault", str(tmp_path / "vault"))
    ann = note(web, "Ann", "- [role] tester\n", folder="people")
    web.memory.write(Draft("- [role] tester\n", project="vault", title="Ann", folder="people"))
    note(web, "Ann", "- [role] cook\n", folder="friends")
    address = note_url(ann.project, ann.path)
    choice = await page.send(address, do="merge", other="Ann")
    assert choice.status_code == 200
    offered = re.findall(r'href="(/page/merge\?[^"]*)"', choice.text)
    link_by_note = {parse_qs(urlsplit(unescape(link)).query)["other"][0]: link for link in offered}
    assert sorted(link_by_note) == ["notes/friends/Ann.md", "vault/people/Ann.md"]
    html = await page.see(unescape(link_by_note["vault/people/Ann.md"]))
    assert "They are in two projects: notes and vault" in html
    assert re.search(r'class="button main"[^>]*>Keep both', html)


async def test_a_title_of_no_note_is_answered_beside_it_with_the_nearest_titles(web, page):
    tea = note(web, "Tea", "At four.\n")
    note(web, "Green tea ceremony", "x\n")
    note(web, "Harbour", "x\n")
    address = note_url(tea.project, tea.path)
    answer = await page.send(address, do="merge", other="Gren tea ceremonie")
    assert answer.status_code == 404
    assert 'name="other" value="Gren tea ceremonie"' in answer.text
    assert "No note has this title." in answer.text
    offered = re.findall(r'href="/page/merge\?[^"]*">([^<]*)<', answer.text)
    assert offered == ["Green tea ceremony"]


async def test_the_history_says_which_note_was_merged_into_it(web, page):
    tea, chai = note(web, "Tea", "At four.\n"), note(web, "Chai", "At five.\n")
    await merged(page, tea, f"notes/{chai.path}")
    text = await page.text(f"{note_url(tea.project, tea.path)}?part=history")
    assert "merged “Chai” into it" in text


async def test_two_chosen_notes_are_merged_either_way_round(web, page):
    note(web, "Tea", "At four.\n")
    note(web, "Chai", "At five.\n")
    note(web, "Cake", "Plum.\n")
    answer = await page.send("/page/bulk", ref="notes/Tea.md\nnotes/Chai.md", do="merge")
    assert answer.status_code == 303
    html = await page.see(answer.headers["location"])
    assert "“Chai” goes into “Tea”" in plain(html)
    (turned,) = re.findall(r'href="([^"]*)">The other way round', html)
    other_way = unescape(turned)
    text = await page.text(other_way)
    assert "“Tea” goes into “Chai”" in text
    for refs in ("notes/Tea.md", "notes/Tea.md\nnotes/Chai.md\nnotes/Cake.md"):
        refused = await page.send("/page/bulk", ref=refs, do="merge")
        assert refused.status_code == 400
        assert "Choose two notes to merge them." in refused.text


async def test_titles_are_offered_while_somebody_types_one(web, page):
    tea = note(web, "Tea", "At four.\n")
    note(web, "Green tea", "x\n")
    note(web, "茶道入门", "x\n")
    memory(web, "Tea is at five.")
    for typed, titles in (
        ("gre", ["Green tea"]),
        ("tea", ["Tea", "Tea is at five.", "Green tea"]),
        ("茶", ["茶道入门"]),
        ("", []),
        ("zzz", []),
    ):
        html = await page.see(f"/page/titles?q={typed}")
        assert re.findall('data-title="([^"]*)"', html) == titles, typed
    html = await page.see(f"/page/titles?q=tea&not={tea.id}")
    assert re.findall('data-title="([^"]*)"', html) == ["Tea is at five.", "Green tea"]


async def test_copies_of_one_memory_are_merged_though_they_have_one_id(web, page):
    tea = memory(web, "Tea is at four.")
    file = web.memory.home / "categories" / tea.path
    copy = web.memory.home / "categories" / "lessons" / file.name
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(file.read_text())
    refs = [f"categories/{tea.path}", f"categories/lessons/{file.name}"]
    answer = await page.send("/page/bulk", ref="\n".join(refs), do="merge")
    html = await page.see(answer.headers["location"])

    assert "Merge these two?" in plain(html)


async def test_before_a_merge_the_result_is_shown_and_what_is_kept_is_not_struck_out(web, page):
    tea = note(web, "Tea", "At four.\n\nWith milk.\n")
    note(web, "Chai", "At five.\n")
    answer = await page.send(note_url(tea.project, tea.path), do="merge", other="Chai")
    panes, _, result = answer.text.partition('<h2 class="meta">Afterwards</h2>')
    assert "<del>" not in answer.text
    assert "<ins>" not in panes
    assert "<mark>four" in panes
    assert re.findall("<ins>([^<]*)</ins>", result) == ["Chai", "At five."]
    assert plain(result).index("With milk.") < plain(result).index("Chai")
    shown = plain(re.sub("(?s)<p class=.*", "", result)).split()
    await merged(page, tea, "Chai")
    content = web.memory.read(tea.id).content.replace("## ", "")
    assert shown == ["Tea", *content.split()]


async def test_words_that_only_one_of_two_notes_has_are_marked_as_one_phrase(web, page):
    tea = memory(web, "Anna is very allergic to tea")
    chai = memory(web, "Anna has a strong allergy to tea")
    answer = await page.send(note_url(tea.project, tea.path), do="merge", other=chai.id)
    marked = re.findall("<mark>([^<]*)</mark>", answer.text)
    assert [words.strip() for words in marked] == ["is very allergic", "has a strong allergy"]


async def test_of_the_outcomes_of_a_merge_only_the_recommended_one_is_framed(web, page):
    tea = memory(web, "Tea in the office is always at four")
    nearly_same = memory(web, "Tea in the office is always at the four")
    other = memory(web, "Tea in the office is always at five")
    framed = []
    for chosen in (nearly_same, other):
        html = (await page.send(note_url(tea.project, tea.path), do="merge", other=chosen.id)).text
        framed.append(re.findall('<div class="pane first">.*?<b>([^<]*)</b>', html))
    assert framed == [["Stays"], []]


async def test_two_notes_to_merge_are_shown_with_their_titles(web, page):
    tea = note(web, "Tea", "At four.\n")
    note(web, "Chai", "At five.\n")
    answer = await page.send(note_url(tea.project, tea.path), do="merge", other="Chai")
    panes = answer.text.partition('<div class="panes">')[2]
    assert re.findall("<p><b>([^<]*)</b></p>", panes) == ["Tea", "Chai", "Tea"]


async def test_a_merge_of_memories_shows_which_tags_come_along(web, page):
    tea = memory(web, "Tea is at four, with milk.", tags=("tea",))
    chai = memory(web, "Tea is at four.", tags=("tea", "drink"))
    answer = await page.send(note_url(tea.project, tea.path), do="merge", other=chai.id)
    assert "<ins>#drink</ins>" in answer.text
    assert "<ins>#tea</ins>" not in answer.text
    await merged(page, tea, chai.id)
    assert set(web.memory.find(tea.id).tags) == {"tea", "drink"}


async def test_a_note_merged_from_the_texts_of_agents_is_not_said_to_be_written_by_the_owner(
    web, page
):
    codex = web.memory.as_caller("codex", "mcp", client="codex 1", session="s1")
    kept = codex.write(Draft("The lock is held for a minute.", project="notes", title="Lock"))
    other = codex.write(Draft("Uploads wait for it.", project="notes", title="Uploads"))
    form = {"do": "merge", "other": other.id, "sure": "yes"}
    await page.send(note_url("notes", kept.path), **form)

    html = await page.text(note_url("notes", kept.path))

    assert "Written by codex, with your edit" in html
    assert "Written by You" not in html


@pytest.mark.parametrize(
    ("text", "other_text", "sentences"),
    [
        (
            "In Heron, the client runs out of memory",
            "In Ledger, the client runs out of memory.",
            [
                "They differ in one place.",
                "The note that stays has “Heron”, the other has “Ledger”.",
            ],
        ),
        (
            "Deploys on Friday are allowed",
            "Deploys on **Friday** are not allowed",
            ["They differ in one place.", "Only the note that goes has “not”."],
        ),
        (
            "The quick brown fox is 3 years old",
            "The slow red fox is 4 years old",
            [
                "They differ in 2 places.",
                "The note that stays has “quick brown”, the other has “slow red”.",
                "The note that stays has “3”, the other has “4”.",
            ],
        ),
        ("Tea at four", "# Tea at four!", ["Both have the same words."]),
        ("one two three four five six", "a two b four c six d", []),
    ],
)
def test_the_words_in_which_two_notes_differ_are_named(text, other_text, sentences):
    assert differences_of("en", text, other_text) == sentences


def test_of_chinese_texts_the_characters_that_differ_are_named():
    assert differences_of("zh", "陈薇在杭州工作", "陈薇在苏州工作") == [
        "两者只有一处不同。",
        "保留的笔记写的是“杭”，另一篇写的是“苏”。",
    ]


async def test_before_a_merge_the_difference_and_the_result_are_beside_the_two_notes(web, page):
    tea = note(web, "Tea", "Tea is at four.\n")
    note(web, "Chai", "Tea is at five.\n")
    html = await page.see("/page/merge?note=notes/Tea.md&other=notes/Chai.md")
    assert "The note that stays has “four”, the other has “five”." in plain(html)
    panes = html[html.index('<div class="panes">') : html.index('<div class="actions">')]
    order = [panes.index(words) for words in ("Stays", "Goes into it", "Afterwards")]
    assert order == sorted(order)
    assert html.count('<div class="panes">') == 1
    assert web.memory.read(tea.id).content == tea.content


async def test_two_texts_that_nearly_say_the_same_are_not_doubled_by_the_filled_button(web, page):
    one = memory(web, "Tea in the office is always at four")
    other = memory(web, "Tea in the office is always at the four")
    refs = [f"{info.project}/{info.path}" for info in (one, other)]
    html = await page.see(f"/page/merge?note={refs[0]}&other={refs[1]}")
    (filled,) = re.findall(r'<button class="main"[^>]*>([^<]*)', html)
    assert filled == "Keep only this text"
    assert "They differ in one place." in plain(html)


@pytest.mark.parametrize(("kept", "gone"), [("Tea", "Chai"), ("Chai", "Tea")])
async def test_only_one_text_is_kept_and_links_to_the_other_lead_on(web, page, kept, gone):
    web.note("Tea", "Tea is green.")
    web.note("Chai", "Chai has milk.")
    web.note("List", f"See [[{gone}]].")
    html = await page.see("/page/merge?note=notes/Tea.md&other=notes/Chai.md")
    buttons = re.findall("Keep only this text", html)
    assert len(buttons) == 2
    address = note_url("notes", f"{kept}.md")
    await page.send(address, do="merge", other=f"notes/{gone}.md", sure="yes", keep="one")
    note = web.memory.read(f"notes/{kept}.md")
    assert gone not in note.content
    linking = web.memory.find("notes/List.md")
    (link,) = web.memory.outgoing(linking)
    assert link.note.title == kept
    web.memory.undo()
    note = web.memory.read(f"notes/{gone}.md")
    assert gone in note.content


async def test_of_two_memories_only_one_text_is_kept(web, page):
    tea = memory(web, "Tea is green.")
    other = memory(web, "Tea is mostly green.")
    address = note_url(tea.project, tea.path)
    await page.send(address, do="merge", other=other.id, sure="yes", keep="one")
    note = web.memory.read(tea.id)
    assert note.content == "Tea is green."
    assert note.header["merged"] == [other.id]


async def test_notes_that_differ_at_many_places_are_not_said_to_differ_in_one_word(web, page):
    line = "It is due on {}, at the house of {}, with {}, and is paid by {}.\n"
    text = line.format("Monday", "Bo", "cake", "Ann")
    tea = note(web, "Tea", text)
    other_text = line.format("Friday", "Lena", "wine", "Olu")
    note(web, "Rent", other_text)
    html = await page.see(f"/page/merge?note={tea.id}&other=Rent")
    words = plain(html)
    assert "They differ at many places" in words
