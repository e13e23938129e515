"""Notes and queries of many scripts: which finds which, by words and as a piece of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memoranda.query import Query

from .conftest import Desk

PAIRS = Path(__file__).with_name("pairs")


Case = dict[str, Any]


def cases_with(key: str) -> dict[str, list[Case]]:
    """The cases that have `key`, by the script or the kind of text that they are about."""
    groups: dict[str, list[Case]] = {}
    for name in ("own", "blind", "unseen"):
        text = (PAIRS / f"{name}.json").read_text(encoding="utf-8")
        for case in json.loads(text)["cases"]:
            if key in case:
                groups.setdefault(case["group"], []).append(case | {"id": f"{name}-{case['id']}"})
    return groups


PAIRS_OF_NOTE_AND_QUERY = cases_with("note")
SUBSTRINGS = cases_with("substring_finds")
RANKINGS = [case for cases in cases_with("first").values() for case in cases]


@pytest.mark.parametrize("group", PAIRS_OF_NOTE_AND_QUERY)
def test_pairs_of_note_and_query_match_as_people_type(desk: Desk, group: str) -> None:
    wrong = {}
    for case in PAIRS_OF_NOTE_AND_QUERY[group]:
        desk.put("a.md", case["note"])
        reasons = [" ".join(hit.why) for hit in desk.search(case["query"])]
        is_proper = any("relaxed" not in why and "spelled" not in why for why in reasons)
        is_right = is_proper == case["finds"]
        if case.get("relaxed"):
            is_right = bool(reasons)
        if not is_right:
            wrong[case["id"], case["query"]] = reasons
    assert wrong == {}


@pytest.mark.parametrize("group", SUBSTRINGS)
def test_substrings_of_a_note_match_as_people_type(desk: Desk, group: str) -> None:
    wrong = []
    for case in SUBSTRINGS[group]:
        # Either answer is right to those that are open.
        if case.get("substring_open"):
            continue
        desk.put("a.md", case["note"])
        substring = Query(contains=case["query"])
        # The second look finds what the first one kept.
        for look in ("first", "second"):
            notes, _ = desk.index.notes.listing(substring, viewer=None, limit=None, offset=0)
            if bool(notes) != case["substring_finds"]:
                wrong.append((case["id"], case["query"], look))
    assert wrong == []


@pytest.mark.parametrize("case", RANKINGS, ids=lambda case: case["id"])
def test_best_note_comes_first(desk: Desk, case: Case) -> None:
    for number, text in enumerate(case["notes"]):
        desk.put(f"{number}.md", text)
    assert desk.found(case["query"])[:1] == [f"{case['first']}.md"]
