"""What shows notes side by side: their links, their days, and why they were found."""

from __future__ import annotations

from datetime import date

import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.query import Query


@pytest.fixture
def memory(tmp_path):
    with open_session(tmp_path / "home") as opened:
        for title, text in (
            ("A", "[[B]]"),
            ("B", "- leads_to [[C]]"),
            ("C", "[[D]] and [[Nowhere]]"),
            ("D", "alone"),
        ):
            opened.write(Draft(text, project="notes", title=title))
        opened.write(Draft("[[A]] [[B]]", project="notes", title="Secret", scope="agent:ada"))
        yield opened


def names(memory, pairs):
    rows = {info.row: info.title for info in memory.list(Query(), limit=0)[0]}
    return {(rows[a], rows[b], kind) for a, b, kind in pairs}


@pytest.mark.parametrize(
    ("depth", "limit", "found", "links"),
    [
        (0, 9, ["A"], set()),
        (1, 9, ["A", "B", "Secret"], {("A", "B"), ("Secret", "A"), ("Secret", "B")}),
        (
            2,
            9,
            ["A", "B", "Secret", "C"],
            {("A", "B"), ("Secret", "A"), ("Secret", "B"), ("B", "C")},
        ),
        (3, 2, ["A", "Secret"], {("Secret", "A")}),
    ],
)
def test_a_neighbourhood_has_the_nearest_notes_and_the_links_among_them(
    memory, depth, limit, found, links
):
    notes, pairs = memory.neighbourhood([memory.find("A")], depth=depth, limit=limit)
    assert sorted(note.title for note in notes) == sorted(found)
    assert {(a, b) for a, b, _ in names(memory, pairs)} == links


def test_all_relations_are_those_between_notes_the_caller_sees(memory):
    mine = {("A", "B", "links_to"), ("B", "C", "leads_to"), ("C", "D", "links_to")}
    assert names(memory, memory.relations()) == mine | {
        ("Secret", "A", "links_to"),
        ("Secret", "B", "links_to"),
    }
    assert names(memory, memory.as_caller("bob").relations()) == mine
    notes, _ = memory.as_caller("bob").neighbourhood([memory.find("A")], depth=3)
    assert "Secret" not in {note.title for note in notes}
    assert memory.as_caller("bob").of_rows([memory.find("Secret").row]) == []


def test_a_note_stands_on_the_day_it_is_about_else_on_that_it_was_written(memory):
    for day in ("2024-02-29", "2024-02-29T23:59:00Z", "spring"):
        memory.write(Draft("then", project="notes", title=f"At {day[:10]} {len(day)}", date=day))
    found = memory.on_days(date(2024, 2, 1), date(2024, 3, 1))
    assert {day: len(rows) for day, rows in found.items()} == {"2024-02-29": 2}
    today = memory.clock().astimezone(memory.settings.zone).date()
    on_day = memory.on_days(today, date(today.year + 1, 1, 1))[today.isoformat()]
    assert [of_row.title for of_row in memory.of_rows(on_day)][-1] == "At spring 6"
    assert (
        len(memory.as_caller("bob").on_days(today, date(today.year + 1, 1, 1))[today.isoformat()])
        == 5
    )


@pytest.mark.parametrize("words", ["harbour lights", "Where are the harbour lights?"])
def test_the_shares_of_a_score_add_up_to_it(memory, words):
    memory.write(
        Draft(
            "The harbour lights are out. " * 3, project="notes", title="Harbour", tags=("lights",)
        )
    )
    memory.write(Draft("Lights of the city.", project="notes", title="City"))
    for hit in memory.search(words, explain=True):
        assert sum(hit.shares.values()) == pytest.approx(hit.score, abs=0.01), hit
        assert all(any(why.startswith(f"{name} ") for why in hit.why) for name in hit.shares)
    assert memory.search(words)[0].shares == {}
