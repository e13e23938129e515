"""Filters and lists: contract 000b, 7 (search_notes, recent_activity); contract 001, 3."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from index.conftest import START, Desk
from memoranda.errors import InvalidInput
from memoranda.index import listing, search
from memoranda.index.index import Index
from memoranda.index.search import queries
from memoranda.query import Query
from memoranda.sources.base import Stamp


@pytest.fixture
def shelf(desk: Desk) -> Desk:
    desk.put(
        "a.md",
        "---\ntype: Spec-Sheet\ntags: [UI, db/sql]\nstatus: Draft\nsource: mail\n---\n"
        "alpha word\n- [Fact] one #deep/tag\n",
    )
    desk.put(
        "b.md",
        "---\ntype: spec sheet\ntags: [ui]\nstatus: [open, done]\n---\nbeta word\n- [habit] two\n",
    )
    desk.put("c.md", "---\nscope: agent:ada\nsource: Mail\n---\ngamma word\n- three #ui\n")
    desk.put(
        "skills/m.md",
        "---\nphase: organized\ncategory: skills\nsource: claude\n---\ndelta word",
        project="categories",
    )
    desk.put(
        "inbox/n.md",
        "---\nphase: inbox\ncategory: inbox\nscope: agent:bob\n---\nepsilon word",
        project="categories",
    )
    return desk


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"a.md", "b.md", "c.md", "skills/m.md", "inbox/n.md"}),
    ({"projects": ("notes",)}, {"a.md", "b.md", "c.md"}),
    ({"projects": ("NOTES", "categories")}, {"a.md", "b.md", "c.md", "skills/m.md", "inbox/n.md"}),
    ({"projects": ()}, set()),
    ({"projects": ("unknown",)}, set()),
    ({"types": ("Spec_Sheet",)}, {"a.md", "b.md"}),
    ({"types": ("spec sheet", "skills")}, {"a.md", "b.md", "skills/m.md"}),
    ({"tags": ("ui",)}, {"a.md", "b.md", "c.md"}),
    ({"tags": ("#UI", "db/SQL")}, {"a.md"}),
    ({"tags": ("deep/tag",)}, {"a.md"}),
    ({"tags": ("deep",)}, {"a.md"}),
    ({"tags": ("deep/ta",)}, set()),
    ({"categories": ("fact",)}, {"a.md"}),
    ({"categories": ("FACT", "habit")}, {"a.md", "b.md"}),
    ({"any_category": ("skills",)}, {"skills/m.md"}),
    ({"any_category": ("habit",)}, {"b.md"}),
    ({"category": "skills"}, {"skills/m.md"}),
    ({"phase": "inbox"}, {"inbox/n.md"}),
    ({"scope": "global"}, {"a.md", "b.md", "skills/m.md"}),
    ({"scope": "agent:ada"}, {"c.md"}),
    ({"source": "mail"}, {"a.md", "c.md"}),
    ({"status": "draft"}, {"a.md"}),
    ({"status": "done"}, {"b.md"}),
    ({"types": ("spec sheet",), "tags": ("ui",), "status": "open"}, {"b.md"}),
    ({"after": START + timedelta(seconds=2)}, {"b.md", "c.md", "skills/m.md", "inbox/n.md"}),
    ({"before": START + timedelta(seconds=2)}, {"a.md"}),
    (
        {
            "after": START + timedelta(seconds=2),
            "before": START + timedelta(seconds=4),
            "tags": ("ui",),
        },
        {"b.md", "c.md"},
    ),
    ({"created_from": START + timedelta(seconds=4)}, {"skills/m.md", "inbox/n.md"}),
    ({"created_until": START + timedelta(seconds=2)}, {"a.md"}),
    ({"contains": "A WORD"}, {"a.md", "b.md", "c.md", "skills/m.md"}),
    ({"contains": "tags"}, set()),
]


@pytest.mark.parametrize(("filters", "expected_paths"), FILTERS)
def test_an_agent_sees_global_notes_and_its_own_under_any_filter(
    shelf: Desk, filters: dict[str, Any], expected_paths: set[str]
) -> None:
    theirs = expected_paths - {"inbox/n.md"}
    assert set(shelf.list(viewer="ada", **filters)) == theirs
    assert set(shelf.found("word", viewer="ada", **filters)) == theirs
    total = shelf.search("word", viewer="ada", limit=1, **filters).total
    assert total == len(theirs)
    assert set(shelf.list(viewer="eve", **filters)) == theirs - {"c.md"}
    total = shelf.search("", viewer="eve", limit=1, **filters).total
    assert total == len(theirs - {"c.md"})


def test_a_scope_nobody_can_read_is_the_owners_alone(desk: Desk) -> None:
    desk.put("odd.md", "---\nscope: everyone\n---\nword")
    assert desk.found("word") == ["odd.md"]
    assert desk.found("word", viewer="everyone") == desk.list(viewer="ada") == []


def test_case_is_folded_as_python_does_for_contains(desk: Desk) -> None:
    desk.put("a.md", "Straße und ÉTÉ 100% _x_")
    for part in ("STRASSE", "été", "100%", "_X_", "e UND é"):
        assert desk.list(contains=part) == ["a.md"], part
    assert desk.list(contains="und  été") == []


def test_lists_are_ordered_newest_first_and_ties_by_permalink(desk: Desk) -> None:
    def put(name: str, changed: int, created: int) -> None:
        desk.put(
            f"{name}.md",
            f"---\ncreated_at: 2026-01-0{created}T00:00:00Z\n---\n",
            at=START + timedelta(days=changed),
        )

    for name, changed, created in (("b", 1, 3), ("a", 1, 1), ("c", 2, 2), ("d", 0, 3)):
        put(name, changed, created)
    assert desk.list() == ["c.md", "a.md", "b.md", "d.md"]
    assert desk.list(order="created") == ["b.md", "d.md", "c.md", "a.md"]
    assert desk.list(order="path") == ["a.md", "b.md", "c.md", "d.md"]
    assert desk.list(limit=2, offset=1) == ["a.md", "b.md"]
    assert desk.list(limit=2, offset=9) == []
    with pytest.raises(InvalidInput, match="order"):
        desk.list(order="size")


@pytest.mark.slow
def test_a_filter_that_most_notes_pass_is_as_exact_as_a_rare_one(desk: Desk) -> None:

    def tags(number: int) -> str:
        if number % 40 == 0:
            return "[most, some]"
        if number % 50:
            return "[most]"
        return "[few]"

    desk.put_all(
        {f"{number:04}.md": f"---\ntags: {tags(number)}\n---\n" for number in range(5_400)}
    )
    most = [f"{number:04}.md" for number in range(5_399, -1, -1) if number % 50 or number % 40 == 0]
    assert desk.list(tags=("most",), limit=None) == most
    assert desk.list(tags=("most",), limit=70, offset=45) == most[45:115]
    assert desk.list(tags=("most",), limit=9, order="path", offset=100) == sorted(most)[100:109]
    assert desk.list(tags=("most",), limit=20, offset=len(most) - 5) == most[-5:]
    assert desk.list(projects=("notes",), limit=3, offset=2_700) == [
        "2699.md",
        "2698.md",
        "2697.md",
    ]
    total = desk.search("", tags=("most",)).total
    assert total == len(most)
    assert desk.list(tags=("some",), limit=2) == ["5360.md", "5320.md"]


def test_notes_since_a_time_are_counted_from_either_end_alike(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        if number % 3 == 0:
            scope = "---\nscope: agent:ada\n---\n"
        else:
            scope = ""
        desk.put(
            f"{number}.md", f"{scope}text", project="vault", at=START + timedelta(hours=number)
        )
    desk.put("other.md", "text", at=START + timedelta(hours=3))

    def totals(viewer: str | None) -> list[int]:
        queries = (
            Query(projects=("vault",), after=START + timedelta(hours=hour))
            for hour in range(-1, 14)
        )
        return [desk.index.notes.listing(query, viewer=viewer)[1] for query in queries]

    expected = [totals(viewer) for viewer in (None, "ada", "bob")]
    assert expected[0] == [12, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]
    monkeypatch.setattr(listing, "_MAX_SORTED", 4)
    assert [totals(viewer) for viewer in (None, "ada", "bob")] == expected


@pytest.mark.parametrize("module", [listing, queries])
def test_a_note_of_a_new_scope_written_in_between_stays_hidden(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, module: object
) -> None:
    desk.put("a.md", "a heron", project="categories")
    other_index = Index(desk.path)
    real = listing.wanted

    def interrupted(*arguments: object, **more: bool) -> object:
        rows_read = real(*arguments, **more)  # type: ignore[arg-type]
        with other_index.transaction():
            note = desk.note(
                "b.md", "---\nscope: agent:eve\n---\na heron of eve\n", project="categories"
            )
            other_index.put(note, Stamp(1, 1, 1))
        return rows_read

    monkeypatch.setattr(module, "wanted", interrupted)
    query = Query(projects=("categories",))
    if module is listing:
        paths = [info.path for info in listing.listing(desk.db, query, viewer="bob")[0]]
    else:
        paths = [
            hit.note.path for hit in search.smart_search(desk.db, "heron", query, viewer="bob").best
        ]
    other_index.close()
    assert paths == ["a.md"]
