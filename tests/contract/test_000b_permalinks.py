"""Contract 000b, 12.5: permalinks, and the addresses by which a note is found."""

from __future__ import annotations

import itertools

import pytest

from contract.note_tools import Tools
from contract.tables import tables

TABLES = tables("note_permalinks")

pytestmark = pytest.mark.promise("000b-12.5")

EXAMPLES = TABLES["examples"]


@pytest.mark.parametrize(("path", "slug"), EXAMPLES.items())
def test_a_permalink_comes_from_the_path_and_leads_back_to_it(
    emptied: Tools, path: str, slug: str
) -> None:
    emptied.put(path, "x")
    assert emptied("read_note", identifier=path)["permalink"] == f"notes/{slug}"
    for name in (
        slug,
        f"notes/{slug}",
        f"memory://{slug}",
        f"memory://notes/{slug}",
        f"memory://notes/{path}",
    ):
        assert (
            emptied("build_context", url=name)["results"][0]["primary_result"]["file_path"] == path
        ), name


def test_of_equal_permalinks_the_later_paths_are_numbered_in_whatever_order_they_came(
    tools: Tools,
) -> None:
    expected = {
        "A B.md": "notes/a-b",
        "A-B.md": "notes/a-b-1",
        "a b.md": "notes/a-b-2",
        "a-b.md": "notes/a-b-3",
    }
    paths = [*expected]
    for order in itertools.permutations(paths):
        for path in order:
            tools.put(path, path)
            # They are indexed one at a time
            tools("list_directory")
        entries = tools("list_directory")["entries"]
        assert {entry["path"]: entry["permalink"] for entry in entries} == expected
        for path, permalink in expected.items():
            content = tools("read_note", identifier=permalink)["content"]
            assert content == path
        for path in order[1:]:
            (tools.root() / path).unlink()
        permalinks = [entry["permalink"] for entry in tools("list_directory")["entries"]]
        assert permalinks == ["notes/a-b"]
        (tools.root() / order[0]).unlink()


def test_a_permalink_of_ones_own_never_gives_way(tools: Tools) -> None:
    tools.put("z.md", "---\npermalink: notes/a-b\n---\nmine")
    tools.put("a b.md", "derived")
    entries = tools("list_directory")["entries"]
    assert {entry["path"]: entry["permalink"] for entry in entries} == {
        "z.md": "notes/a-b",
        "a b.md": "notes/a-b-1",
    }
    assert tools("read_note", identifier="notes/a-b")["content"].endswith("mine")
    assert tools("read_note", identifier="notes/a-b-1")["content"] == "derived"


def test_two_files_with_one_permalink_are_both_listed_and_the_address_is_ambiguous(
    tools: Tools,
) -> None:
    for name in ("one", "two"):
        tools.put(f"{name}.md", "---\npermalink: My/Place\n---\n")
    assert [entry["permalink"] for entry in tools("list_directory")["entries"]] == [
        "My/Place",
        "My/Place",
    ]
    tools.refused("read_note", "ambiguous", identifier="My/Place")
    assert tools("read_note", identifier="two.md")["file_path"] == "two.md"


@pytest.mark.parametrize(
    "permalink", ["Mixed/Case_Path.Md", "ALL CAPS", "mit/Ümlaut", "Ends-", "中文/Mixed"]
)
def test_a_permalink_as_written_is_found_verbatim_before_it_is_slugged(
    tools: Tools, permalink: str
) -> None:
    tools.put("other.md", f"---\npermalink: {permalink.lower()}\n---\nsmall")
    tools.put("it.md", f"---\npermalink: {permalink}\n---\n")
    for url in (permalink, f"memory://{permalink}", f"memory://{permalink.replace(' ', '%20')}"):
        assert (
            tools("build_context", url=url)["results"][0]["primary_result"]["file_path"] == "it.md"
        )


def test_a_star_matches_within_permalinks_verbatim_first(tools: Tools) -> None:
    for path in ("specs/One.md", "specs/deep/Two.md", "other/One.md", "Specs.md"):
        tools.put(path, "x")
    tools.put("own.md", "---\npermalink: Specs/Own\n---\n")

    def paths(url: str, **more: object) -> set[str]:
        return {
            result["file_path"]
            for result in tools.paged("build_context", "results", "primary_result", url=url, **more)
        }

    assert paths("memory://specs/*") == {"specs/One.md", "specs/deep/Two.md"}
    assert paths("memory://notes/specs/*") == {"specs/One.md", "specs/deep/Two.md"}
    assert paths("*/one") == {"specs/One.md", "other/One.md"}
    assert paths("Specs/*") == {"own.md"}
    assert paths("SPECS/*") == {"specs/One.md", "specs/deep/Two.md"}
    assert paths("*", project="notes") == {
        "specs/One.md",
        "specs/deep/Two.md",
        "other/One.md",
        "Specs.md",
        "own.md",
    }
    assert paths("nothing/*") == set()


@pytest.mark.parametrize(
    "url", ["http://notes/a", "memory://../a", "memory://%2e%2e/a", "memory://" + "a" * 2048]
)
def test_other_addresses_are_refused(tools: Tools, url: str) -> None:
    reply = tools.call("build_context", url=url)
    assert reply.data["code"] in ("invalid", "outside")
