"""`memory bench`: how well the notes of a memory are found."""

from __future__ import annotations

import json
from typing import Any

THINGS = (
    "The harbour crane lifts pallets of oranges on Tuesdays before noon",
    "Grandmother keeps walnut recipes inside a tin behind the oven",
    "Postgres replicas lag when the nightly vacuum meets a bulk import",
    "Our beagle limps after long walks along the frozen canal",
)


def test_notes_are_found_by_their_own_words(terminal: Any) -> None:
    for text in THINGS:
        terminal.write(text)
    figures = terminal("bench", "--json").json
    rows = figures["recall"]
    kinds = {row["kind"] for row in rows}

    assert kinds == {"two words", "question", "part of a sentence", "title"}
    for row in rows:
        assert row["asked"] == len(THINGS)
        assert row["page"] == 100
    assert figures["given"] == 0
    assert figures["read"] == 0
    assert figures["sessions"] == 0


def test_what_was_superseded_is_not_looked_for(terminal: Any) -> None:
    for text in THINGS:
        terminal.write(text)
    first = terminal.ok("list", "--json")
    old = json.loads(first)["memories"][0]["id"]
    terminal.ok("supersede", old, "The pier bell rings twice before every foggy morning")
    rows = terminal("bench", "--json").json["recall"]
    assert all((row["asked"], row["page"]) == (len(THINGS), 100) for row in rows)


def test_the_same_seed_asks_for_the_same_notes(terminal: Any) -> None:
    for text in THINGS:
        terminal.write(text)

    def found(*options: str) -> list[tuple[str, int, float, float]]:
        rows = terminal("bench", "--json", "--notes", "2", *options).json["recall"]
        return [(row["kind"], row["asked"], row["first"], row["page"]) for row in rows]

    assert found() == found("--seed", "1")
    for _, question_count, _, _ in found("--seed", "2"):
        assert question_count == 2


def test_a_memory_without_notes_has_nothing_to_look_for(terminal: Any) -> None:
    assert "no note that says enough" in terminal.ok("bench")
