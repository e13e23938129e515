"""The page opens a note in the program its folder is kept with."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from memoranda.serve.page.note.programs import is_local, openings

pytestmark = pytest.mark.anyio


def addresses(page: str) -> dict[str, str]:
    """The links of a page by their text."""
    links = re.findall(r'<a [^>]*?href="([^"]+)"[^>]*>([^<]+)</a>', page)
    return {text: html.unescape(address) for address, text in links}


@pytest.mark.parametrize(
    ("programs", "path", "expected"),
    [
        (
            ["Obsidian"],
            "Topics/Café & co.md",
            {
                "Obsidian": "obsidian://open?path=%2Fhome%2Fme%2FMy%20vault%2FTopics%2FCaf%C3%A9%20%26%20co.md",
                "file": "file:///home/me/My%20vault/Topics/Caf%C3%A9%20%26%20co.md",
            },
        ),
        (
            ["Logseq"],
            "pages/work___plan.md",
            {
                "Logseq": "logseq://graph/My%20vault?page=work%2Fplan",
                "file": "file:///home/me/My%20vault/pages/work___plan.md",
            },
        ),
        (
            ["Foam", "Dendron"],
            "a.md",
            {
                "VS Code": "vscode://file/home/me/My%20vault/a.md",
                "file": "file:///home/me/My%20vault/a.md",
            },
        ),
        ([], "a.md", {"file": "file:///home/me/My%20vault/a.md"}),
    ],
)
async def test_each_program_has_an_address_of_its_own(
    programs: list[str], path: str, expected: dict[str, str]
) -> None:
    assert dict(openings(programs, "/home/me/My vault", path)) == expected


async def test_only_the_machine_of_the_notes_opens_them() -> None:
    assert is_local("127.0.0.1")
    assert is_local("localhost")
    assert not is_local("notes.example.org")
    assert not is_local(None)


async def test_note_of_a_vault_opens_in_obsidian(web, page, tmp_path: Path) -> None:
    root = tmp_path / "my vault"
    (root / ".obsidian").mkdir(parents=True)
    text = "[there](obsidian://open?vault=x) [bad](javascript:alert(1)) [web](https://a.example)\n"
    (root / "One note.md").write_text(text)
    web.memory.add_project("vault", str(root))
    links = addresses(await page.see("/page/note/vault/One%20note.md"))
    assert links["Open in Obsidian"].startswith("obsidian://open?path=%2F")
    assert links["Open in Obsidian"].endswith("my%20vault%2FOne%20note.md")
    assert links["Open the file"].startswith("file:///")
    assert links["there"] == "obsidian://open?vault=x"
    assert "bad" not in links
