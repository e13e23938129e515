"""`memory search --ranked --explain` says what each feature added to a score."""

from __future__ import annotations

import re
from typing import Any

import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.engine.freshness import Freshness

TEXTS = (
    "The harbour opens in May",
    "Harbour dues are paid by the ship, and the harbour master counts them twice a year",
    "Ships wait outside when the wind is from the north",
    "harbour " + "and a long text about something else altogether. " * 120 + "the harbour again",
)


@pytest.fixture
def harbour(terminal: Any) -> Any:
    with open_session(terminal.home) as memory:
        for number, text in enumerate(TEXTS):
            memory.write(Draft(text, project="notes", title=f"Note {number}"))
    return terminal


def test_shares_of_a_hit_explained_add_up_to_its_score(harbour: Any) -> None:
    rows = harbour("search", "harbour", "--ranked", "--explain", "--json").json["memories"]
    assert len(rows) == 3
    for row in rows:
        assert sum(row["shares"].values()) == pytest.approx(row["score"], abs=0.01)


def test_hits_explained_have_a_line_each_below_the_rows(harbour: Any) -> None:
    plain = harbour.ok("search", "harbour", "--ranked")
    explained = harbour.ok("search", "harbour", "--ranked", "--explain")
    assert explained.startswith(plain)
    rows = harbour("search", "harbour", "--ranked", "--json").json["memories"]
    assert "shares" not in rows[0]
    lines = explained.removeprefix(plain).strip().splitlines()
    for line, row in zip(lines, rows, strict=True):
        identity, score, shares = re.fullmatch(r"(\w{8}) (\S+) = (.+)", line).groups()  # type: ignore[union-attr]
        assert row["id"].startswith(identity)
        assert float(score) == pytest.approx(row["score"], abs=0.001)
        values = [float(share.rpartition(" ")[2]) for share in shares.split(", ")]
        assert sum(values) == pytest.approx(float(score), abs=0.01)
        assert values == sorted(values, key=lambda value: -abs(value))


def test_list_by_time_has_nothing_to_explain(harbour: Any) -> None:
    ran = harbour("search", "harbour", "--explain")
    assert (ran.status, ran.error) == (2, "--explain needs --ranked")


@pytest.mark.parametrize(
    "command",
    [
        ("search", "harbour"),
        ("search", "harbour", "--ranked"),
        ("search", "walrus"),
        ("search", "walrus", "seal", "--ranked"),
        ("list",),
        ("recent", "--since", "7d"),
        ("backlinks", "Note 1"),
        ("orphans",),
        ("status",),
        ("log", "-p"),
        ("diff", "Note 1"),
    ],
    ids=" ".join,
)
def test_a_command_that_only_reads_looks_at_the_disk_once(
    harbour: Any, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    looks = []
    update = Freshness.update

    def counting(freshness: Freshness, *args: Any, **kwargs: Any) -> Any:
        looks.append(args)
        return update(freshness, *args, **kwargs)

    monkeypatch.setattr(Freshness, "update", counting)
    harbour.ok(*command)
    assert len(looks) == 1
