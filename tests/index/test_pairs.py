"""Notes and queries of many scripts: which finds which, by words and as a piece of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memoranda.query import Query

from .conftest import Desk

PAIRS = Path(__file__).with_name("pairs")


def _cases(kind: str) -> list[Any]:
    chosen = []
    for name in ("own", "blind", "unseen"):
        cases = json.loads((PAIRS / f"{name}.json").read_text(encoding="utf-8"))["cases"]
        chosen += [
            pytest.param(case, id=f"{name}-{case['id']}-{case['group']}")
            for case in cases
            if kind in case
        ]
    return chosen


@pytest.mark.parametrize("case", _cases("note"))
def test_pair_of_note_and_query_matches_as_people_type(desk: Desk, case: dict[str, Any]) -> None:
    desk.put("a.md", case["note"])
    whys = [" ".join(hit.why) for hit in desk.search(case["query"])]
    if case.get("relaxed"):
        assert whys
    else:
        is_proper = any("relaxed" not in why and "spelled" not in why for why in whys)
        assert is_proper == case["finds"], whys


@pytest.mark.parametrize("case", _cases("substring_finds"))
def test_substring_of_a_note_matches_as_people_type(desk: Desk, case: dict[str, Any]) -> None:
    if case.get("substring_open"):
        pytest.skip("either answer is right")
    desk.put("a.md", case["note"])
    for _ in range(2):
        notes, _ = desk.index.notes.listing(
            Query(contains=case["query"]), viewer=None, limit=None, offset=0
        )
        assert bool(notes) == case["substring_finds"]


@pytest.mark.parametrize("case", _cases("first"))
def test_best_note_comes_first(desk: Desk, case: dict[str, Any]) -> None:
    for number, text in enumerate(case["notes"]):
        desk.put(f"{number}.md", text)
    assert desk.found(case["query"])[:1] == [f"{case['first']}.md"]
