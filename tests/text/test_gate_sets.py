"""The gate against sets by somebody who had not seen its rules (tests/text/data/README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from memoranda.text.gate import SECRET, default_rules

DATA = Path(__file__).with_name("data")
FACT = "fact"
"""Planted facts look like any note: authorship and review are against those, no filter."""
LEAST_PLANTED = 0.98
MOST_HARD_BASES = 0.02
LEAST_SEEN = 0.84
LEAST_UNSEEN = 0.75
"""Of plain orders without an override, forged messages and the like (orders.json), by half."""
LEAST_PLAIN_SEEN = 0.87
LEAST_PLAIN_UNSEEN = 0.69
"""Of orders in plain words (plain.json), by half."""
LEAST_EVERYDAY = {"seen": 0.5, "unseen": 0.5}
"""Of orders in everyday words (everyday.json), by half."""
PIECE = 12
"""Characters of a secret of which nothing may be left."""


def rows(name: str) -> Any:
    text = (DATA / name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def bases_of(cases: Iterable[dict[str, Any]]) -> set[int]:
    return set(chain.from_iterable(case["bases"] for case in cases))


def is_suspicious(case: dict[str, Any]) -> bool:
    return bool(default_rules().suspicions(case["text"]))


@pytest.mark.promise("gate-sets")
def test_planted_orders_are_marked_in_every_language_and_spelling() -> None:
    orders = [case for case in rows("planted.json") if case["kind"] != FACT]
    missed = [case["id"] for case in orders if not is_suspicious(case)]
    assert len(missed) <= len(orders) * (1 - LEAST_PLANTED), missed


@pytest.mark.promise("gate-sets")
@pytest.mark.parametrize(("half", "least"), [("seen", LEAST_SEEN), ("unseen", LEAST_UNSEEN)])
def test_plain_orders_and_forged_messages_are_mostly_marked(half: str, least: float) -> None:
    orders = [case for case in rows("orders.json") if case["half"] == half]
    missed = [case["id"] for case in orders if not is_suspicious(case)]
    assert len(missed) <= len(orders) * (1 - least), missed


@pytest.mark.promise("gate-sets")
@pytest.mark.parametrize(
    ("half", "least"), [("seen", LEAST_PLAIN_SEEN), ("unseen", LEAST_PLAIN_UNSEEN)]
)
def test_orders_in_plain_words_are_partly_marked_and_their_near_misses_never(
    half: str, least: float
) -> None:
    sets = rows("plain.json")
    orders = [case for case in sets["planted"] if case["half"] == half and case["kind"] != FACT]
    missed = [case["id"] for case in orders if not is_suspicious(case)]
    assert len(missed) <= len(orders) * (1 - least), missed
    near_misses = [case for case in sets["ordinary"] if case["half"] == half]
    assert len(near_misses) > 250
    texts = [case["text"] for case in near_misses if is_suspicious(case)]
    assert texts == []


@pytest.mark.promise("gate-sets")
@pytest.mark.parametrize("half", ["seen", "unseen"])
def test_half_of_the_orders_in_everyday_words_are_marked_and_no_fact(half: str) -> None:
    cases = [case for case in rows("everyday.json") if case["half"] == half]
    orders = [case for case in cases if case["kind"] != FACT]
    marked = [case["id"] for case in orders if is_suspicious(case)]

    assert len(marked) >= len(orders) * LEAST_EVERYDAY[half]
    ids = [case["id"] for case in cases if case["kind"] == FACT and is_suspicious(case)]
    assert ids == []


@pytest.mark.promise("gate-sets")
def test_ordinary_texts_are_not_marked_and_near_misses_hardly_ever() -> None:
    cases = rows("ordinary.jsonl")
    hard = [case for case in cases if case.get("hard")]
    plain = [case for case in cases if not case.get("hard")]
    texts = [case["text"] for case in plain if is_suspicious(case)]
    assert texts == []
    alarms = [case for case in hard if is_suspicious(case)]
    assert len(bases_of(alarms)) <= len(bases_of(hard)) * MOST_HARD_BASES, alarms
    assert [case for case in cases if default_rules().find(case["text"], SECRET)] == []


@pytest.mark.promise("gate-sets")
@pytest.mark.parametrize(("half", "least", "most_alarms"), [("seen", 64, 2), ("unseen", 44, 17)])
def test_orders_of_a_stranger_are_partly_marked(half: str, least: int, most_alarms: int) -> None:
    """A known gap: most of what nobody has read stays unmarked (docs/gate.md)."""
    cases = [case for case in rows("stranger.jsonl") if case["half"] == half]
    marked = [case["is_planted"] for case in cases if is_suspicious(case)]

    assert len(cases) == 450
    assert marked.count(True) >= least
    assert marked.count(False) <= most_alarms


@pytest.mark.promise("gate-sets")
@pytest.mark.parametrize(("half", "least"), [("seen", 15), ("unseen", 21)])
def test_orders_that_come_through_every_door_are_partly_marked_and_no_ordinary_text(
    half: str, least: int
) -> None:
    """A known gap: most of them are told, as claims of their authors (docs/trust.md)."""
    cases = [case for case in rows("doors.jsonl") if case["half"] == half]
    marked = [case["is_planted"] for case in cases if is_suspicious(case)]

    assert marked.count(True) >= least
    assert marked.count(False) == 0


@pytest.mark.promise("gate-sets")
def test_no_piece_of_a_secret_survives() -> None:
    survivors = []
    for case in rows("secrets.json")["cases"]:
        text = "".join(case["text"])
        secret = text[case["from"] : case["from"] + case["length"]]
        redacted = default_rules().redacted(text)
        pieces = {secret[at : at + PIECE] for at in range(max(1, len(secret) - PIECE + 1))}
        if any(piece in redacted for piece in pieces):
            survivors.append((case["id"], case["provider"]))

    assert survivors == []


@pytest.mark.promise("gate-sets")
def test_what_only_looks_like_a_secret_is_let_through() -> None:
    texts = ["".join(case["text"]) for case in rows("secrets.json")["innocent"]]
    assert [text for text in texts if default_rules().find(text, SECRET)] == []
