"""What shows notes side by side: their links, their days, and why they were found."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.engine.links.link_walk import neighbourhood, relations
from memoranda.engine.overview import by_day
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
    ("depth", "limit", "expected_titles", "links"),
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
    memory, depth, limit, expected_titles, links
):
    notes, pairs = neighbourhood(memory, [memory.find("A")], depth=depth, limit=limit)
    assert sorted(note.title for note in notes) == sorted(expected_titles)
    assert {(a, b) for a, b, _ in names(memory, pairs)} == links


def test_all_relations_are_those_between_notes_the_caller_sees(memory):
    mine = {("A", "B", "links_to"), ("B", "C", "leads_to"), ("C", "D", "links_to")}
    assert names(memory, relations(memory)) == mine | {
        ("Secret", "A", "links_to"),
        ("Secret", "B", "links_to"),
    }
    assert names(memory, relations(memory.as_caller("bob"))) == mine
    notes, _ = neighbourhood(memory.as_caller("bob"), [memory.find("A")], depth=3)
    titles = {note.title for note in notes}
    assert "Secret" not in titles
    by_id = Query(ids=(memory.find("Secret").id,))
    _, total = memory.list(by_id)
    assert total == 1
    assert memory.as_caller("bob").list(by_id) == ([], 0)


def test_a_note_stands_on_the_day_it_is_about_else_on_that_it_was_written(memory):
    for day in ("2024-02-29", "2024-02-29T23:59:00Z", "spring"):
        memory.write(Draft("then", project="notes", title=f"At {day[:10]} {len(day)}", date=day))
    assert by_day(memory, date(2024, 2, 1), date(2024, 3, 1)) == {"2024-02-29": 2}
    midnight = memory.clock().astimezone(memory.settings.zone).replace(hour=0, minute=0, second=0)
    today = midnight.date()
    query = Query(day_from=midnight, day_until=midnight + timedelta(days=1), order="created")
    infos, total = memory.list(query, limit=1)
    titles = [info.title for info in infos]
    assert titles == ["At spring 6"]
    bob = memory.as_caller("bob")
    until = date(today.year + 1, 1, 1)
    assert by_day(memory, today, until)[today.isoformat()] == total
    assert by_day(bob, today, until)[today.isoformat()] == 5
    assert bob.list(query)[1] == 5


@pytest.mark.parametrize("words", ["harbour lights", "Where are the harbour lights?"])
def test_the_shares_of_a_score_add_up_to_it(memory, words):
    lights = "The harbour lights are out. " * 3
    memory.write(Draft(lights, project="notes", title="Harbour", tags=("lights",)))
    memory.write(Draft("Lights of the city.", project="notes", title="City"))
    for hit in memory.search(words, explain=True):
        assert sum(hit.shares.values()) == pytest.approx(hit.score, abs=0.01), hit
        for name in hit.shares:
            assert any(why.startswith(f"{name} ") for why in hit.why)

    best_hit = memory.search(words)[0]
    assert best_hit.shares == {}
