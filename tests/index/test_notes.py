"""Lists of folders, counts, addresses, completions."""

from __future__ import annotations

import pytest

from index.conftest import Desk
from memoranda.query import Query


@pytest.fixture
def tree(desk: Desk) -> Desk:
    for path in (
        "top.md",
        "b/one.md",
        "b/two.md",
        "b/deep/three.md",
        "a/four.md",
        "ab/five.md",
        "文/六.md",
    ):
        desk.put(path)
    desk.put("b/secret.md", "---\nscope: agent:ada\n---\n")
    desk.put("other.md", project="vault")
    return desk


def entries(desk: Desk, folder: str = "", **more: object) -> list[tuple[str, int | None]]:
    more.setdefault("viewer", None)
    listed_entries, total = desk.index.notes.directory("notes", folder, **more)  # type: ignore[arg-type]
    assert len(listed_entries) <= total
    return [(entry.path, None if entry.note else entry.notes) for entry in listed_entries]


def test_folders_come_first_with_all_their_notes_then_notes_by_code_point(tree: Desk) -> None:
    assert entries(tree) == [("a", 1), ("ab", 1), ("b", 4), ("文", 1), ("top.md", None)]
    assert entries(tree, "b") == [
        ("b/deep", 1),
        ("b/one.md", None),
        ("b/secret.md", None),
        ("b/two.md", None),
    ]
    assert entries(tree, "/b/", viewer="eve") == [
        ("b/deep", 1),
        ("b/one.md", None),
        ("b/two.md", None),
    ]
    assert entries(tree, "nowhere") == []


def test_deeper_levels_pages_and_patterns(tree: Desk) -> None:
    assert entries(tree, depth=3) == [
        ("a", 1),
        ("ab", 1),
        ("b", 4),
        ("b/deep", 1),
        ("文", 1),
        ("a/four.md", None),
        ("ab/five.md", None),
        ("b/deep/three.md", None),
        ("b/one.md", None),
        ("b/secret.md", None),
        ("b/two.md", None),
        ("top.md", None),
        ("文/六.md", None),
    ]
    assert entries(tree, depth=9, glob="t*.md") == [
        ("b/deep/three.md", None),
        ("b/two.md", None),
        ("top.md", None),
    ]
    assert entries(tree, limit=2, offset=3) == [("文", 1), ("top.md", None)]
    assert tree.index.notes.directory("notes", viewer=None, limit=1)[1] == 5


@pytest.mark.parametrize("viewer", [None, "ada", "bob"])
@pytest.mark.parametrize("folder", ["", "b"])
@pytest.mark.parametrize("depth", [1, 2, 9])
def test_a_page_of_a_folder_is_its_part_of_the_whole_list(
    tree: Desk, viewer: str | None, folder: str, depth: int
) -> None:
    whole = entries(tree, folder, depth=depth, viewer=viewer, limit=None)
    for offset in range(len(whole) + 2):
        for limit in range(1, len(whole) + 2):
            rows, total = tree.index.notes.directory(
                "notes", folder, depth=depth, viewer=viewer, limit=limit, offset=offset
            )
            paths = [row.path for row in rows]
            assert paths == [path for path, _ in whole[offset : offset + limit]]
            assert total == len(whole)


def test_all_notes_of_a_folder_whatever_their_scope(tree: Desk) -> None:
    assert [note.path for note in tree.index.notes.below("notes", "b")] == [
        "b/deep/three.md",
        "b/one.md",
        "b/secret.md",
        "b/two.md",
    ]
    assert len(tree.index.notes.below("notes", "")) == 8


def test_counts_are_those_of_what_the_caller_sees(tree: Desk) -> None:
    tree.put("skills/a.md", "---\nphase: organized\n---\nx", project="categories")
    tree.put("inbox/b.md", "x", project="categories")
    tree.put("inbox/c.md", "---\nscope: agent:ada\n---\nx", project="categories")
    counts = tree.index.notes.counts(None)

    assert counts.projects == {"notes": 8, "vault": 1, "categories": 3}
    assert counts.categories == {("organized", "skills"): 1, ("inbox", "inbox"): 2}
    assert counts.total == 12
    assert tree.index.notes.counts("ada").total == 12
    assert tree.index.notes.counts("eve").total == 10


def matches(
    desk: Desk, address: str, viewer: str | None = None, projects: tuple[str, ...] | None = None
) -> list[str]:
    query = Query(address=address, projects=projects, order="address")
    notes, total = desk.index.notes.listing(query, viewer=viewer, limit=None)
    assert len(notes) == total
    return [note.path for note in notes]


def test_a_star_stands_for_any_run_of_characters_in_permalinks(tree: Desk) -> None:
    assert matches(tree, "notes/b/*") == ["b/deep/three.md", "b/one.md", "b/secret.md", "b/two.md"]
    assert matches(tree, "b/*", viewer="eve") == ["b/deep/three.md", "b/one.md", "b/two.md"]
    assert matches(tree, "*/t*") == ["b/deep/three.md", "b/two.md", "top.md"]
    assert matches(tree, "文/*") == ["文/六.md"]
    assert matches(tree, "*", projects=("vault",)) == ["other.md"]
    assert matches(tree, "vault/*") == ["other.md"]
    assert len(matches(tree, "*")) == 9
    assert matches(tree, "none/*") == []


def test_permalinks_are_completed_by_prefix(tree: Desk) -> None:
    inside = ["notes/b/deep/three", "notes/b/one", "notes/b/secret", "notes/b/two"]
    assert tree.index.notes.complete("notes/b/", None) == inside
    assert tree.index.notes.complete("notes/b/", "eve", limit=2) == [
        "notes/b/deep/three",
        "notes/b/one",
    ]
    assert tree.index.notes.complete("", None, project="vault") == ["vault/other"]
    assert tree.index.notes.complete("文", None) == []


def test_ids_used_twice_and_warnings_are_reported(desk: Desk) -> None:
    desk.put("a.md", "---\nid: same\n---\n")
    desk.put("b.md", "---\nid: same\n---\n")
    desk.put("c.md", "---\n: [\n---\n")
    twice = desk.index.notes.duplicates()
    assert list(twice) == ["same"]
    paths = [note.path for note in twice["same"]]
    assert paths == ["a.md", "b.md"]
    (warning,) = desk.index.notes.warnings()
    assert warning[:2] == ("notes", "c.md")
    assert warning[2][0].startswith("bad_frontmatter")
