"""Links of a generated vault lead where Obsidian's documented rules say (AMENDMENTS, 4.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from vaults.generator import Link, Vault
from vaults.obsidian import Links

NOTES = 400


def leads(memory: MemorySession) -> dict[tuple[str, str], tuple[str, str | None]]:
    """What each link of project `vault` leads to: (source, target as written) -> state, path."""
    answers: dict[tuple[str, str], tuple[str, str | None]] = {}
    for info in memory.index.notes.below("vault", ""):
        for edge in memory.outgoing(info):
            path = edge.note.path if edge.note else None
            answers[info.path, edge.target] = (edge.state, path)
    return answers


def wrong_links(vault: Vault, memory: MemorySession) -> list[tuple[Link, object, object]]:
    """The links that lead elsewhere than the rules say, with both answers."""
    rules = Links(vault.paths)
    answers = leads(memory)
    wrong: list[tuple[Link, object, object]] = []
    for link in vault.links:
        if link.is_markdown:
            targets = rules.markdown(link.text, link.source)
        else:
            targets = rules.wikilink(link.text, link.source)
        answer = answers.get((link.source, link.text))
        if answer is None and link.is_markdown:
            # What leads out of the folder and back is shown as it was read
            answer = answers.get((link.source, f"./{link.text}"))
        if len(targets) == 1:
            rule = ("resolved", targets[0])
        else:
            rule = ("ambiguous" if targets else "unwritten", None)
        if answer != rule:
            wrong.append((link, answer, rule))
    return wrong


@pytest.mark.promise("amendments-4.1")
@pytest.mark.parametrize("seed", [1, 2])
def test_links_of_a_vault_lead_where_obsidian_says(tmp_path: Path, seed: int) -> None:
    vault = Vault(NOTES, seed)
    root = tmp_path / "vault"
    vault.write(root)
    with open_session(tmp_path / "home", projects={"vault": root}) as memory:
        memory.sync()
        wrong = wrong_links(vault, memory)
    assert not wrong, f"{len(wrong)} of {len(vault.links)}: {wrong[:5]}"
