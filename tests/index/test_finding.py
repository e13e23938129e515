"""Identifiers, ids and their beginnings: contracts 000b, 4.2 and 001, 1."""

from __future__ import annotations

import pytest

from index.conftest import Desk
from memoranda.errors import Ambiguous, NotFound

ID = "7f8d9e00-1111-4222-8333-444455556666"


@pytest.fixture
def shelf(desk: Desk) -> Desk:
    desk.put("specs/API (v2).md", f"---\nid: {ID}\n---\n")
    desk.put("plan.md", "---\ntitle: The Plan\n---\n")
    desk.put("plan.md", "---\ntitle: Vault plan\n---\n", project="Vault")
    desk.put("only/there.md", "---\ntitle: Only there\n---\n", project="Vault")
    return desk


@pytest.mark.parametrize(
    "identifier",
    [
        "notes/specs/api-v2",
        "specs/api-v2",
        "memory://notes/specs/api-v2",
        "memory://specs/API%20%28v2%29.md",
        "specs/API (v2).md",
        "notes/specs/API (v2).md",
        "notes/specs/API (v2)",
        "API (v2)",
        "api (V2)",
        ID,
        ID[:8],
        ID[:20],
    ],
)
def test_an_identifier_is_an_address_a_title_an_id_or_its_beginning(
    shelf: Desk, identifier: str
) -> None:
    assert shelf.find(identifier) == "specs/API (v2).md"


def test_the_default_project_then_the_named_one_then_all_others(shelf: Desk) -> None:
    assert shelf.find("plan") == "plan.md"
    assert shelf.index.notes.find("plan", default_project="notes", viewer=None).project == "notes"
    assert (
        shelf.index.notes.find("vault/plan", default_project="notes", viewer=None).project
        == "Vault"
    )
    assert (
        shelf.index.notes.find("Vault/plan.md", default_project="notes", viewer=None).project
        == "Vault"
    )
    assert shelf.find("Only there") == "only/there.md"
    assert shelf.find("only/there.md") == "only/there.md"


def test_an_ambiguous_identifier_names_its_candidates(shelf: Desk) -> None:
    shelf.put_all({f"{name}/Twin.md": "" for name in "abc"})
    with pytest.raises(Ambiguous) as caught:
        shelf.find("Twin")
    assert caught.value.candidates == ["notes/a/twin", "notes/b/twin", "notes/c/twin"]
    shelf.put_all({f"{number}.md": "---\npermalink: same\n---\n" for number in range(12)})
    with pytest.raises(Ambiguous) as caught:
        shelf.find("same")
    assert len(caught.value.candidates) == 10
    assert caught.value.total == 12
    assert len(set(caught.value.candidates)) == 10


def test_a_missing_note_is_an_error_with_suggestions(shelf: Desk) -> None:
    for wrong in ("API v3", "specs/api", "apiv"):
        with pytest.raises(NotFound) as caught:
            shelf.find(wrong)
        assert "notes/specs/api-v2" in caught.value.suggestions, wrong
    with pytest.raises(NotFound) as caught:
        shelf.find("the plann")
    assert caught.value.suggestions[0] == "notes/plan"
    shelf.put_all({f"plan {number}.md": "" for number in range(20)})
    with pytest.raises(NotFound) as caught:
        shelf.find("plan 99")
    assert len(caught.value.suggestions) == 5


def test_suggestions_name_nothing_the_caller_may_not_see(shelf: Desk) -> None:
    shelf.put("private.md", "---\ntitle: Quartz report\nscope: agent:ada\n---\n")
    with pytest.raises(NotFound) as answer_to_bob:
        shelf.find("Quartz reports", viewer="bob")
    assert answer_to_bob.value.suggestions == []
    with pytest.raises(NotFound) as answer_to_ada:
        shelf.find("Quartz reports", viewer="ada")
    assert answer_to_ada.value.suggestions == ["notes/private"]
    with pytest.raises(NotFound):
        shelf.find("Quartz report", viewer="bob")
    path = shelf.find("Quartz report", viewer="ada")
    assert path == "private.md"


@pytest.mark.parametrize(
    "target", [ID, ID[:8], ID[:20], ID.upper(), f"vault/{ID}", "zettel-202401"]
)
@pytest.mark.parametrize(
    "claim", ["aliases: ['{}']", "title: '{}'", "permalink: '{}'", "merged: ['{}']", "path"]
)
def test_no_name_takes_over_the_id_of_another_note(desk: Desk, target: str, claim: str) -> None:
    identity = target if target.startswith("zettel") else ID
    desk.put("mine.md", f"---\nid: {identity}\n---\n", project="Vault")
    desk.put(
        f"{target}.md" if claim == "path" else "theirs.md", f"---\n{claim.format(target)}\n---\n"
    )

    assert desk.find(target) == "mine.md"
    assert desk.find(target.lower(), project="Vault") == "mine.md"


def memory(desk: Desk, name: str, id: str, more: str = "", scope: str = "global") -> None:
    desk.put(
        f"skills/{name}.md",
        f"---\nid: {id}\nscope: {scope}\n{more}---\n{name}",
        project="categories",
    )


def by_id(desk: Desk, text: str, viewer: str | None = None) -> str:
    return desk.index.notes.find_id(text, viewer=viewer).path


def test_a_whole_id_wins_over_longer_ones_that_begin_with_it(desk: Desk) -> None:
    memory(desk, "short", "abcd")
    memory(desk, "long", "abcdef")
    assert by_id(desk, "abcd") == "skills/short.md"


def test_the_id_of_a_merged_memory_answers_the_survivor(desk: Desk) -> None:
    memory(desk, "survivor", "11112222", "merged:\n  - deadbeef-1\n  - deadbeef-2\n")
    for text in ("deadbeef-1", "deadbeef", "dead"):
        assert by_id(desk, text) == "skills/survivor.md"
    desk.remove("skills/survivor.md", "categories")
    with pytest.raises(NotFound):
        by_id(desk, "deadbeef-1")
    desk.holds_nothing()


def test_a_foreign_memory_is_not_found_and_makes_no_prefix_ambiguous(desk: Desk) -> None:
    memory(desk, "mine", "abcd1111", scope="agent:ada")
    memory(desk, "theirs", "abcd2222", scope="agent:bob")
    assert by_id(desk, "abcd", viewer="ada") == "skills/mine.md"
    with pytest.raises(NotFound):
        by_id(desk, "abcd2222", viewer="ada")
    with pytest.raises(Ambiguous):
        by_id(desk, "abcd")
