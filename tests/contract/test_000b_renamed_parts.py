"""AMENDMENTS, 4.2: links to a heading or a block that an edit renames."""

from __future__ import annotations

import pytest

from contract.note_tools import Tools

pytestmark = pytest.mark.promise("amendments-4.2")

NOTE = "# Top\n\n[[#Brewing]] and [here](#brewing) `[[#Brewing]]`\n\n## Brewing\n\nhot ^b1\n\n### Deep\n"


def rename(tools: Tools, old: str, new: str, note: str = "Coffee") -> dict[str, object]:
    return tools("edit_note", identifier=note, operation="find_replace", find_text=old, content=new)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[[Coffee#Brewing]]", "[[Coffee#Making it]]"),
        ("[[Coffee#brewing|shown]]", "[[Coffee#Making it|shown]]"),
        ("[[Coffee#Top#Brewing#Deep]]", "[[Coffee#Top#Making it#Deep]]"),
        ("![[Coffee#Brewing]]", "![[Coffee#Making it]]"),
        ("[x](Coffee.md#Brewing)", "[x](Coffee.md#Making%20it)"),
        ("| [[Coffee#Brewing\\|cell]] |", "| [[Coffee#Making it\\|cell]] |"),
        ("[[Coffee#Deep]] [[Coffee]] [[Other#Brewing]]", None),
        ("`[[Coffee#Brewing]]`", None),
        ("[[Coffee#^b1]]", None),
    ],
)
def test_links_follow_a_renamed_heading(tools: Tools, link: str, expected: str | None) -> None:
    tools.put("Coffee.md", NOTE)
    tools.put("Other.md", "## Brewing\n")
    source = tools.put("sub/Source.md", f"one\r\n{link}\r\nlast")
    before = tools.snapshot()
    data = rename(tools, "## Brewing", "## Making it")
    assert source.read_bytes().decode() == f"one\r\n{expected or link}\r\nlast"
    assert data.get("updated_links", []) == (["sub/Source.md"] if expected else [])
    own_text = tools.file("Coffee.md").read_text()
    assert "[[#Making it]] and [here](#Making%20it) `[[#Brewing]]`" in own_text
    tools.memory.undo()
    assert tools.snapshot() == before


def test_links_follow_a_renamed_block(tools: Tools) -> None:
    tools.put("Coffee.md", NOTE)
    source = tools.put("Source.md", "[[Coffee#^b1]] ![[Coffee#^b1|x]] [[Coffee#^b2]]\n")
    header = tools.put("Header.md", '---\nup: "[[Coffee#^b1]]"\n---\n')
    rename(tools, "^b1", "^temperature")
    assert source.read_text() == (
        "[[Coffee#^temperature]] ![[Coffee#^temperature|x]] [[Coffee#^b2]]\n"
    )
    assert header.read_text() == '---\nup: "[[Coffee#^temperature]]"\n---\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## Brewing\n", ""),
        ("## Brewing", "## Deep"),
        ("## Brewing", "# Brewing"),
        ("hot", "cold"),
        ("## Brewing\n", "## Brewing\n\n## Another\n"),
    ],
)
def test_other_edits_leave_links_as_they_are(tools: Tools, old: str, new: str) -> None:
    tools.put("Coffee.md", NOTE)
    source = tools.put("Source.md", "[[Coffee#Brewing]]\n")
    rename(tools, old, new)
    assert source.read_text() == "[[Coffee#Brewing]]\n"


def test_two_headings_renamed_at_once_keep_their_order(tools: Tools) -> None:
    tools.put("Coffee.md", "## A one\n\n## B two\n")
    source = tools.put("Source.md", "[[Coffee#A one]] [[Coffee#B two]]\n")
    rename(tools, "## A one\n\n## B two", "## First: part\n\n## Second | part")
    assert source.read_text() == "[[Coffee#First part]] [[Coffee#Second part]]\n"


def test_note_that_may_not_be_changed_is_named(tools: Tools) -> None:
    tools.put("Coffee.md", NOTE)
    source = tools.put("Source.md", "---\nlocked: true\n---\n[[Coffee#Brewing]]\n")
    data = rename(tools, "## Brewing", "## Making it")
    assert data["broken_links"] == ["Source.md"]
    assert "[[Coffee#Brewing]]" in source.read_text()
