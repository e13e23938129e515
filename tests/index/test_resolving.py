"""Where links lead: the steps of contract 000b, 3.4, one by one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from index.conftest import START, Desk

ID = "550e8400-e29b-41d4-a716-446655440000"


def test_step_1_an_id(desk: Desk) -> None:
    desk.put("a.md", f"---\nid: {ID}\n---\n")
    desk.put("b.md", f"---\ntitle: {ID}\n---\n")
    assert desk.leads(ID) == "a.md"


def test_step_2_a_permalink_verbatim_with_and_without_the_project(desk: Desk) -> None:
    desk.put("specs/API (v2).md")
    desk.put("own.md", "---\npermalink: Mixed/Case_Link\n---\n")
    for target in ("notes/specs/api-v2", "specs/api-v2"):
        assert desk.leads(target) == "specs/API (v2).md", target
    for target in ("Mixed/Case_Link", "notes/Mixed/Case_Link"):
        assert desk.leads(target) == "own.md", target


def test_step_3_the_permalink_of_the_slugged_target(desk: Desk) -> None:
    desk.put("specs/api-v2.md", "---\ntitle: Another title\n---\n")
    assert desk.leads("Specs/API (V2)") == "specs/api-v2.md"
    assert desk.leads("Notes/Specs/API V2") == "specs/api-v2.md"


def test_step_4_a_title_or_alias_exactly(desk: Desk) -> None:
    desk.put("x1.md", "---\ntitle: The Plan\n---\n")
    desk.put("x2.md", "---\naliases: [The Other Plan, Plan B]\n---\n")
    assert desk.leads("The Plan") == "x1.md"
    assert desk.leads("Plan B") == "x2.md"


def test_step_5_a_path_from_the_root_or_from_the_notes_folder(desk: Desk) -> None:
    desk.put_all(
        {"a/One.md": "---\ntitle: T1\npermalink: p1\n---\n", "a/b/Two.md": "---\ntitle: T2\npermalink: p2\n---\n"}
    )
    for target in ("a/One", "a/One.md", "/a/One"):
        assert desk.leads(target) == "a/One.md", target
    assert desk.leads("./One", folder="a") == "a/One.md"
    assert desk.leads("../One.md", folder="a/b") == "a/One.md"
    assert desk.leads("./b/Two", folder="a") == "a/b/Two.md"
    assert desk.leads("../../../One", folder="a/b") == "unwritten"
    assert desk.leads("./One", folder="") == "unwritten"


def test_step_6_a_file_name_if_only_one_has_it(desk: Desk) -> None:
    desk.put("deep/down/Odd.md", "---\ntitle: Something\npermalink: p\n---\n")
    assert desk.leads("Odd") == "deep/down/Odd.md"
    desk.put("other/Odd.md", "---\ntitle: Else\npermalink: q\n---\n")
    assert desk.leads("Odd") == "ambiguous"


def test_step_7_a_folded_title_or_alias(desk: Desk) -> None:
    desk.put("z.md", "---\ntitle: Weekly_Review  notes\naliases: [Wöchentlich]\npermalink: p\n---\n")
    for target in ("weekly-review notes", "WEEKLY REVIEW NOTES", "wöchentlich"):
        assert desk.leads(target) == "z.md", target


def test_an_earlier_step_wins(desk: Desk) -> None:
    desk.put("by-title.md", "---\ntitle: notes/target\npermalink: p1\n---\n")
    desk.put("target.md", "---\ntitle: Else\n---\n")
    desk.put("sub/target.md", "---\ntitle: target\npermalink: p3\n---\n")
    assert desk.leads("notes/target") == "target.md"
    assert desk.leads("target") == "target.md"
    desk.remove("target.md")
    assert desk.leads("notes/target") == "by-title.md"
    assert desk.leads("target") == "sub/target.md"


def test_a_whole_path_is_not_taken_for_the_slug_of_another_note(desk: Desk) -> None:
    desk.put("z.md", "---\npermalink: notes/a-b\n---\n")
    desk.put("a b.md", "derived")
    assert desk.leads("a b.md") == "a b.md"
    assert desk.leads("notes/a-b") == "z.md"


def test_several_matches_at_a_step_are_ambiguous_and_all_named(desk: Desk) -> None:
    desk.put("a/Same.md")
    desk.put("b/Same.md")
    answer = desk.resolve("Same")
    assert answer.state == "ambiguous"
    assert {note.path for note in answer.candidates} == {"a/Same.md", "b/Same.md"}


def test_other_projects_are_asked_by_permalink_and_title_if_one_note_matches(desk: Desk) -> None:
    desk.put("Far Away.md", "---\naliases: [Remote]\n---\n", project="vault")
    for target in ("Far Away", "Remote", "vault/far-away"):
        assert desk.leads(target) == "Far Away.md", target
    assert desk.leads("far away") == "unwritten"
    desk.put("x.md", "---\ntitle: Far Away\n---\n", project="other")
    assert desk.leads("Far Away") == "ambiguous"
    desk.put("Far Away.md", project="notes")
    assert desk.resolve("Far Away").note == desk.get("Far Away.md")


def test_a_target_with_a_project_looks_there_only(desk: Desk) -> None:
    desk.put("Here.md")
    desk.put("There.md", project="My Vault")
    assert desk.leads("There", target_project="My Vault") == "There.md"
    assert desk.leads("There", target_project="my vault") == "There.md"
    assert desk.leads("Here", target_project="My Vault") == "unwritten"
    assert desk.leads("my-vault/there") == "There.md"


def test_forward_references_resolve_when_the_note_comes_and_unresolve_when_it_goes(desk: Desk) -> None:
    desk.put("from.md", "see [[Not Yet]] and - list\n\n- needs [[later/Thing]]\n")
    before = desk.db.execute("select * from link").fetchall()
    wanted = {"Not Yet": "unwritten", "later/Thing": "unwritten"}
    assert {target: state for _, target, state in desk.outgoing("from.md")} == wanted
    desk.put("Not Yet.md")
    desk.put("later/Thing.md")
    assert {to for _, _, to in desk.outgoing("from.md")} == {"Not Yet.md", "later/Thing.md"}
    assert desk.incoming("Not Yet.md") == ["from.md"]
    assert desk.db.execute("select * from link").fetchall() == before
    desk.remove("Not Yet.md")
    assert {to for _, _, to in desk.outgoing("from.md")} == {"unwritten", "later/Thing.md"}


def test_notes_outside_the_callers_scope_look_as_if_they_did_not_exist(desk: Desk) -> None:
    desk.put("secret.md", "---\ntitle: Plan\nscope: agent:ada\n---\n[[open]]")
    desk.put("open.md", "[[Plan]] and [[secret]]")
    assert desk.leads("Plan", viewer="ada") == desk.leads("Plan") == "secret.md"
    assert desk.leads("Plan", viewer="bob") == desk.leads("secret", viewer="bob") == "unwritten"
    assert desk.outgoing("open.md", "bob") == [("links_to", "Plan", "unwritten"), ("links_to", "secret", "unwritten")]
    assert desk.incoming("open.md", "bob") == []
    assert desk.incoming("open.md", "ada") == ["secret.md"]
    desk.put("Plan.md")
    assert desk.leads("Plan", viewer="bob") == "Plan.md"


@pytest.mark.parametrize("title", ["🎉", "->", "C++", "深色模式", "Ünï", "a/b", "x" * 150, "?", "№ 5"])
def test_odd_titles_are_linked_by_themselves(desk: Desk, title: str) -> None:
    desk.put("n1.md", f"---\ntitle: {title!r}\npermalink: p1\n---\n")
    desk.put("n2.md", "---\ntitle: '💥'\npermalink: p2\n---\n")
    desk.put("from.md", f"[[{title}]]")
    assert desk.leads(title) == "n1.md"
    assert desk.incoming("n1.md") == ["from.md"]


@pytest.mark.parametrize("target", ["", " ", "/", ".", "..", "./", "../", "#", "nothing", "a" * 3000, "\ud800"])
def test_targets_that_mean_nothing_are_unwritten(desk: Desk, target: str) -> None:
    desk.put("a.md")
    assert desk.leads(target) == "unwritten"
    assert desk.leads(target, folder="x/y", target_project="nowhere") == "unwritten"


def test_memories_are_linked_by_their_first_line_title_alias_and_id(desk: Desk) -> None:
    desk.put("inbox/x.md", "# Dark mode is preferred\nsecond line", project="categories")
    desk.put(
        "inbox/y.md", f"---\nid: {ID}\ntitle: Short\naliases: [Nick]\n---\nThe whole first line", project="categories"
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
    assert desk.incoming("inbox/x.md", project="categories") == ["inbox/from.md"]


def test_of_equal_memories_the_same_scope_comes_first_then_the_oldest(desk: Desk) -> None:
    def memory(name: str, scope: str, day: int) -> None:
        at = (START + timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")
        desk.put(f"skills/{name}.md", f"---\nscope: {scope}\ncreated_at: {at}\n---\nTwin", project="categories")

    memory("new", "global", 9)
    memory("old", "global", 1)
    memory("ada", "agent:ada", 5)
    assert desk.leads("Twin", project="categories", source_scope="global") == "skills/old.md"
    assert desk.leads("Twin", project="categories", source_scope="agent:ada") == "skills/ada.md"
    assert desk.leads("Twin", project="categories", source_scope="agent:bob") == "skills/old.md"
    assert desk.leads("Twin", project="notes") == "ambiguous"
