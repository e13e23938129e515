"""Where links lead: the steps of contract 000b, 3.4, one by one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from index.conftest import START, Desk
from memoranda.clock import stamp

ID = "550e8400-e29b-41d4-a716-446655440000"


def test_a_whole_path_is_not_taken_for_the_slug_of_another_note(desk: Desk) -> None:
    desk.put("z.md", "---\npermalink: notes/a-b\n---\n")
    desk.put("a b.md", "derived")
    assert desk.leads("a b.md") == "a b.md"
    assert desk.leads("notes/a-b") == "z.md"


@pytest.mark.parametrize(
    "title", ["🎉", "->", "C++", "深色模式", "Ünï", "a/b", "x" * 150, "?", "№ 5"]
)
def test_odd_titles_are_linked_by_themselves(desk: Desk, title: str) -> None:
    desk.put("n1.md", f"---\ntitle: {title!r}\npermalink: p1\n---\n")
    desk.put("n2.md", "---\ntitle: '💥'\npermalink: p2\n---\n")
    desk.put("from.md", f"[[{title}]]")

    assert desk.leads(title) == "n1.md"
    assert desk.incoming("n1.md") == ["from.md"]


@pytest.mark.parametrize(
    "target", ["", " ", "/", ".", "..", "./", "../", "#", "nothing", "a" * 3000, "\ud800"]
)
def test_targets_that_mean_nothing_are_unwritten(desk: Desk, target: str) -> None:
    desk.put("a.md")
    assert desk.leads(target) == "unwritten"
    assert desk.leads(target, folder="x/y", target_project="nowhere") == "unwritten"


def test_memories_are_linked_by_their_first_line_title_alias_and_id(desk: Desk) -> None:
    desk.put("inbox/x.md", "# Dark mode is preferred\nsecond line", project="categories")
    desk.put(
        "inbox/y.md",
        f"---\nid: {ID}\ntitle: Short\naliases: [Nick]\n---\nThe whole first line",
        project="categories",
    )
    for target in ("# Dark mode is preferred", "dark mode IS preferred", "Dark mode is preferred"):
        assert desk.leads(target, project="categories") == "inbox/x.md", target
    for target in ("short", "NICK", "the whole first line", ID):
        assert desk.leads(target, project="categories") == "inbox/y.md", target


def test_the_names_of_memories_are_cut_at_100_characters_on_both_sides(desk: Desk) -> None:
    line = "The committee resolved " + "to meet again and again " * 8
    desk.put("inbox/x.md", line, project="categories")
    desk.put("inbox/from.md", f"see [[{line[:110]}]]", project="categories")

    assert desk.leads(line[:100], project="categories") == "inbox/x.md"
    assert desk.leads(line[:130], project="categories") == "inbox/x.md"
    assert desk.leads(line[:99], project="categories") == "unwritten"
    edges = desk.incoming("inbox/x.md", project="categories")
    assert edges == ["inbox/from.md"]


def test_of_equal_memories_the_same_scope_comes_first_then_the_oldest(desk: Desk) -> None:
    def memory(name: str, scope: str, day: int) -> None:
        created_at = stamp(START + timedelta(days=day))
        text = f"---\nscope: {scope}\ncreated_at: {created_at}\n---\nTwin"
        desk.put(f"skills/{name}.md", text, project="categories")

    memory("new", "global", 9)
    memory("old", "global", 1)
    memory("ada", "agent:ada", 5)
    for scope, leads in (("global", "old"), ("agent:ada", "ada"), ("agent:bob", "old")):
        desk.put("inbox/from.md", f"---\nscope: {scope}\n---\n[[Twin]]", project="categories")
        source = desk.get("inbox/from.md", "categories")
        (edge,) = desk.index.links.outgoing(source, None)
        assert edge.note
        assert edge.note.path == f"skills/{leads}.md"
    assert desk.leads("Twin", project="notes") == "ambiguous"


@pytest.mark.parametrize("target", ["notes/plans/tea.md", "notes/plans/tea"])
@pytest.mark.parametrize("header", ["title", "aliases"])
def test_a_link_to_the_address_of_a_note_leads_there_though_another_is_called_so(
    desk: Desk, header: str, target: str
) -> None:
    desk.put("plans/tea.md", f"see [[{target}]]")
    desk.put("trap.md", f"---\n{header}: {target}\n---\n")
    assert desk.leads(target) == "plans/tea.md"
    assert desk.incoming("plans/tea.md") == ["plans/tea.md"]


@pytest.mark.parametrize("target", ["notes/plans/tea.md", "notes/plans/tea"])
def test_a_link_to_the_address_of_a_note_that_is_gone_leads_to_one_that_is_called_so(
    desk: Desk, target: str
) -> None:
    desk.put("trap.md", f"---\ntitle: {target}\n---\n")
    assert desk.leads(target) == "trap.md"
