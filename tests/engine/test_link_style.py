"""Links that agents write into a vault whose program writes Markdown links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contract.note_tools import Tools, put
from memoranda.engine import open_session
from memoranda.note.edit import StrReplace

VAULT = {
    "Index.md": "Start\n",
    "Topics/Espresso.md": "Strong\n",
    "Topics/Cold Brew (new).md": "# Ice\n",
    "a/Plan.md": "First\n",
    "b/Plan.md": "Second\n",
}

# What an agent writes into `Log/Day.md`, and what is there with shortest, relative, absolute paths.
WRITTEN = [
    ("See [[Espresso]].", "[Espresso](Espresso.md)", "../Topics/Espresso.md", "Topics/Espresso.md"),
    ("[[Espresso|strong]]", "[strong](Espresso.md)", "../Topics/Espresso.md", "Topics/Espresso.md"),
    (
        "[[Topics/Espresso]]",
        "[Topics/Espresso](Espresso.md)",
        "../Topics/Espresso.md",
        "Topics/Espresso.md",
    ),
    ("![[Espresso]]", "![Espresso](Espresso.md)", "../Topics/Espresso.md", "Topics/Espresso.md"),
    (
        "[[Espresso#Taste of it]]",
        "[Espresso > Taste of it](Espresso.md#Taste%20of%20it)",
        "../Topics/Espresso.md#",
        "Topics/Espresso.md#",
    ),
    ("[[Espresso#^b1]]", "[Espresso > ^b1](Espresso.md#^b1)", "../Topics/", "Topics/Espresso.md#"),
    (
        "[[Cold Brew (new)]]",
        "[Cold Brew (new)](Cold%20Brew%20%28new%29.md)",
        "../Topics/Cold%20",
        "(Topics/Cold%20",
    ),
    ("[[a/Plan]]", "[a/Plan](a/Plan.md)", "../a/Plan.md", "a/Plan.md"),
    ("[[Index]]", "[Index](Index.md)", "../Index.md", "Index.md"),
    ("- see [[Index]] and [[Espresso]]", "[Index](Index.md) and [Espresso](Espresso.md)", "", ""),
    ("| [[Espresso\\|strong]] |", "| [strong](Espresso.md) |", "", ""),
    ("- [fact] from [[Espresso]] #x", "- [fact] from [Espresso](Espresso.md) #x", "", ""),
]
LEFT = [
    "[[Nowhere]]",
    "[[Plan]]",
    "- part_of [[Espresso]]",
    '- "made of" [[Espresso]] (always)',
    "`[[Espresso]]`",
    "```\n[[Espresso]]\n```",
    "<!-- [[Espresso]] -->",
    "![[picture.png]]",
    "[Espresso](../Topics/Espresso.md)",
    "\\[[Espresso]]",
    "[[categories::Espresso]]",
    '---\nup: "[[Espresso]]"\n---\ntext',
]


def written(tmp_path: Path, content: str, app: dict[str, object], *, as_owner: bool = False) -> str:
    """What an agent's note with this text is on disk, less its last newline."""
    vault = tmp_path / "vault"
    put(vault / ".obsidian/app.json", json.dumps(app))
    for path, text in VAULT.items():
        put(vault / path, text)
    with open_session(tmp_path / "home", projects={"vault": vault}, watch=False) as memory:
        caller = memory if as_owner else memory.as_caller("claude", "mcp")
        tools = Tools(caller)
        tools("write_note", title="Day", folder="Log", content=content, project="vault")
        resolved = [edge for edge in memory.outgoing("vault/Log/Day") if edge.note is not None]
        assert len(resolved) >= content.count("[[Espresso]]") * content.startswith("See")
    return (vault / "Log/Day.md").read_text().removesuffix("\n")


@pytest.mark.parametrize(("content", "shortest", "relative", "absolute"), WRITTEN)
def test_a_link_is_written_as_the_vault_has_links(
    tmp_path: Path, content: str, shortest: str, relative: str, absolute: str
) -> None:
    for number, (link_format, expected) in enumerate(
        [(None, shortest), ("shortest", shortest), ("relative", relative), ("absolute", absolute)]
    ):
        app: dict[str, object] = {"useMarkdownLinks": True}
        if link_format:
            app["newLinkFormat"] = link_format
        text = written(tmp_path / str(number), content, app)
        assert expected in text
        assert "[[" not in text


@pytest.mark.parametrize("content", LEFT)
def test_what_is_no_link_to_a_note_of_the_vault_stays(tmp_path: Path, content: str) -> None:
    assert written(tmp_path, content, {"useMarkdownLinks": True}) == content


@pytest.mark.parametrize(
    "app", [{}, {"useMarkdownLinks": False}, {"newLinkFormat": "relative"}, {"useMarkdownLinks": 1}]
)
def test_a_vault_with_links_in_brackets_keeps_them(tmp_path: Path, app: dict[str, object]) -> None:
    assert written(tmp_path, "[[Espresso]]", app) == "[[Espresso]]"


def test_what_the_owner_writes_stays(tmp_path: Path) -> None:
    app: dict[str, object] = {"useMarkdownLinks": True}
    assert "[[Espresso]]" in written(tmp_path, "[[Espresso]]", app, as_owner=True)


def test_an_edit_changes_the_lines_it_writes_alone(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    put(vault / ".obsidian/app.json", '{"useMarkdownLinks": true}')
    put(vault / "Index.md", "Start\n")
    put(vault / "Log.md", "Old [[Index]]\nmore\n")
    with open_session(tmp_path / "home", projects={"vault": vault}, watch=False) as memory:
        agent = memory.as_caller("claude", "mcp")
        agent.edit("vault/Log", StrReplace("more", "New [[Index]]"))
        assert (vault / "Log.md").read_text() == "Old [[Index]]\nNew [Index](Index.md)\n"
        memory.undo()
        assert (vault / "Log.md").read_text() == "Old [[Index]]\nmore\n"
