"""The page of people and projects, however many names there are."""

from __future__ import annotations

import html
import re

import pytest

from memoranda import Draft
from memoranda.serve.page import people
from serve.test_page import memory, plain

pytestmark = pytest.mark.anyio


def person(web, name, text="", **more):
    return web.memory.write(
        Draft(text or f"{name}.", project="notes", title=name, type="person", **more)
    )


def names_in(html):
    """The names of the cards, in their order."""
    return re.findall(r"<b>([^<]*)</b>", "".join(re.findall(r"<li data-card.*?</li>", html)))


async def test_names_come_in_pages_by_title_each_once(web, page, monkeypatch):
    monkeypatch.setattr(people, "_FIRST", 3)
    monkeypatch.setattr(people, "_OF_ONE_KIND", 4)
    person_names = [f"Person {letter}" for letter in "ABCDEFGHIJ"]
    for name in reversed(person_names):
        person(web, name)
    web.memory.write(Draft("x", project="notes", title="In a folder", folder="people"))
    html = await page.see("/page/people")
    assert "People 11" in plain(html)
    names = names_in(html)
    assert names == ["In a folder", "Person A", "Person B"]
    while following := re.search(r'href="(/page/people\?[^"]*offset=\d+)" rel="next"', html):
        html = await page.see(following[1].replace("&amp;", "&"))
        names += names_in(html)
    assert names == ["In a folder", *person_names]


async def test_words_narrow_the_names_without_case_or_marks(web, page):
    for name in ("José Álvarez", "Mara", "陈薇"):
        person(web, name)
    part = await page.see("/page/people?name=jose+al", **{"x-part": "1"})
    assert "<!doctype" not in part
    assert names_in(part) == ["José Álvarez"]
    assert names_in(await page.see("/page/people?name=薇")) == ["陈薇"]
    nobody = await page.see("/page/people?name=nobody")
    assert names_in(nobody) == []
    assert "/page/about?name=nobody" in nobody


async def test_links_of_each_name_are_counted_where_they_really_lead(web, page, monkeypatch):
    person(web, "Ann", "[[Ann]] writes to [[Bob]].")
    person(web, "Bob", "- knows [[Ann]]")
    web.memory.write(Draft("[[Ann]] [[Ann|she]] [[Annette]]", project="notes", title="Day"))
    text = plain(await page.see("/page/people"))
    # Her own link, that of Bob, and of the day, whose two links to her are one relation
    assert "Ann 3 links" in text
    assert "Bob one link" in text
    monkeypatch.setattr(people, "_MAX_LINKS", 2)
    assert "Ann 2 links or more" in plain(await page.see("/page/people"))


async def test_a_kind_nobody_knows_is_refused(web, page):
    answer = await page.client.get("/page/people?kind=robots")
    assert answer.status_code == 400
    assert "people, projects" in answer.text


async def test_a_folder_of_people_counts_in_any_project_and_at_the_top_alone(web, page, tmp_path):
    vault = tmp_path / "vault"
    for path in ("People/Zoe.md", "Contacts/team/Yan.md", "life/People/Xaver.md", "people.md"):
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text("text\n")
    web.memory.add_project("vault", str(vault))
    assert names_in(await page.see("/page/people?kind=people")) == ["Yan", "Zoe"]


async def test_a_name_of_several_projects_is_one_card_and_one_page(web, page, tmp_path):
    web.memory.add_project("vault", str(tmp_path / "vault"))
    person(web, "Ann", "- [role] plants trees\n- knows [[Bob]]")
    person(web, "Bob")
    web.memory.write(
        Draft("- [place] Porto\n", project="vault", title="ann", folder="people", type="person")
    )
    web.memory.write(Draft("[[ann]] came.", project="vault", title="Day"))
    memory(web, "Ann likes tea.", category="people")
    html = await page.see("/page/people")
    assert names_in(html) == ["Ann", "Bob"]
    assert "People 2" in plain(html)
    assert "notes, vault" in plain(html)
    about = await page.see("/page/about?name=Ann")
    for fact in ("plants trees", "Porto", "Ann likes tea", "Day", "Bob"):
        assert fact in about
    facts = [plain(text) for text in re.findall(r"<h2>Facts(.*?)</h2>", about)]
    assert [text.strip() for text in facts] == ["notes", "vault/people"]


async def test_several_people_of_one_name_are_told_apart(web, page):
    for folder, text in (
        ("people", "- [role] plants trees"),
        ("old/people", "- [role] sells maps"),
    ):
        web.memory.write(Draft(text, project="notes", title="Aiko", folder=folder, type="person"))
    html_shown = await page.see("/page/people")
    addresses = [
        html.unescape(link) for link in re.findall(r'href="(/page/about[^"]*)"', html_shown)
    ]
    (address,) = set(addresses)
    about = await page.see(address)
    sections = re.findall(r"<h2>Facts(.*?)</h2>(.*?)</section>", about, re.S)
    facts_by_place = {plain(place).strip(): plain(facts) for place, facts in sections}
    assert "plants trees" in facts_by_place["notes/people"]
    assert "sells maps" in facts_by_place["notes/old/people"]
