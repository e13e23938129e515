"""A phrase is found in one name of a note, never across two neighbouring names."""

from __future__ import annotations

import pytest

from memoranda.engine import open_session
from memoranda.query import Query

NOTE = """---
title: Winter wheat
aliases: [Rye bread, Barley soup]
tags: [red squirrel, oak, acorn flour, müller]
place: [North mill, South barn]
keeper: Ada Quist
---
# Stone hearth
Smoke.
## Copper kettle
#heron #marsh/reed
- [craft] grinds slowly #granite #flint
"""

# The phrase, and whether the note has it.
PHRASES = [
    ("Winter wheat", True),
    ("Rye bread", True),
    ("Barley soup", True),
    ("wheat Rye", False),
    ("bread Barley", False),
    ("soup Winter", False),
    ("red squirrel", True),
    ("acorn flour", True),
    ("squirrel oak", False),
    ("oak acorn", False),
    ("flour müller", False),
    ("muller heron", False),
    ("Stone hearth", True),
    ("Copper kettle", True),
    ("hearth Copper", False),
    ("North mill", True),
    ("South barn", True),
    ("mill South", False),
    ("barn Ada", False),
    ("Ada Quist", True),
    ("craft granite", False),
    ("granite craft", False),
    ("flint craft", False),
    ("heron marsh", True),  # The line of the text has them side by side
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("apart")
    vault = root / "vault"
    vault.mkdir()
    (vault / "field.md").write_text(NOTE)
    (vault / "japan.md").write_text("---\ntags: [東京, 大阪, 京大]\n---\nx\n")
    with open_session(root / "home", projects={"vault": vault}, watch=False) as memory:
        memory.sync()
        yield memory


@pytest.mark.parametrize(("phrase", "is_there"), PHRASES)
def test_a_phrase_is_found_in_one_name_only(memory, phrase: str, is_there: bool) -> None:
    result = memory.search(Query(text=f'"{phrase}"'))
    assert [hit.note.path for hit in result.hits] == (["field.md"] if is_there else [])


@pytest.mark.parametrize(
    ("phrase", "is_there"),
    [("東京", True), ("大阪", True), ("京大", True), ("京大阪", False), ("阪京", False)],
)
def test_runs_of_two_tags_are_no_word(memory, phrase: str, is_there: bool) -> None:
    result = memory.search(Query(text=f'"{phrase}"'))
    assert [hit.note.path for hit in result.hits] == (["japan.md"] if is_there else [])


def test_words_of_several_names_are_still_found_together(memory) -> None:
    for text in ("oak kettle", "bread squirrel Quist", "heron AND granite"):
        assert [hit.note.path for hit in memory.search(Query(text=text)).hits] == ["field.md"]
