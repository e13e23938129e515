"""Pages of Logseq: their `tags::`, and those that hold nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.ingest.sources import SOURCES, SourceNote, Tree


def pages(folder: Path, text: str) -> list[SourceNote]:
    (folder / "pages").mkdir()
    (folder / "pages/Heron.md").write_text(text)
    return list(SOURCES["logseq"].scan(Tree(str(folder), ())))


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("tags:: marsh, [[reed bed]]\n\n- wades", ("marsh", "reed bed")),
        ("- tags:: [[reed bed]] [[Marsh]]\n- wades", ("reed bed", "marsh")),
        ("alias:: H\nTags:: marsh\n- wades", ("marsh",)),
        ("tags::\n- wades", ()),
        ("- wades\n- tags:: marsh", ()),
        ('---\ntags: \'["marsh", "reed"]\'\n---\n- wades', ("marsh", "reed")),
    ],
)
def test_tags_at_the_top_of_a_page_are_tags_of_the_memory(
    tmp_path: Path, text: str, tags: tuple[str, ...]
) -> None:
    (page,) = pages(tmp_path, text)
    assert page.tags == ("logseq", "heron", *tags)


@pytest.mark.parametrize("text", ["", "-", "- \n", "-\n\t-\n", "* \n\n-", "  \r\n- \r\n"])
def test_a_page_of_empty_bullets_is_no_memory(tmp_path: Path, text: str) -> None:
    assert pages(tmp_path, text) == []


def test_empty_pages_are_named_in_one_warning(tmp_path: Path) -> None:
    (tmp_path / "journals").mkdir()
    (tmp_path / "pages").mkdir()
    (tmp_path / "journals/2026_01_02.md").write_text("-\n")
    for number in range(30):
        (tmp_path / f"pages/{number:02}.md").write_text("- \n" if number else "- heron\n")
    tree = Tree(str(tmp_path), ())
    assert len(list(SOURCES["logseq"].scan(tree))) == 1
    (warning,) = tree.warnings
    assert warning.startswith("journals/2026_01_02.md, pages/01.md, ")
    assert warning.endswith("pages/19.md and 10 more: left out, as nothing is written there")
