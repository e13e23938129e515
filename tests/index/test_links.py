"""Relations in both directions, walks, and what is open."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from index.conftest import START, Desk
from memoranda.index import link_queries, superseding
from memoranda.index.link_queries import MOST_VISITED


def reached(desk: Desk, path: str, depth: int = 1, **more: object) -> list[tuple[str, int, str]]:
    more.setdefault("viewer", None)
    near_notes = desk.index.links.neighbours([desk.get(path)], depth=depth, **more)  # type: ignore[arg-type]
    return [(near.note.path, near.depth, near.via) for near in near_notes]


def test_relations_come_in_the_order_of_the_file_with_their_state(desk: Desk) -> None:
    desk.put(
        "a.md",
        '- uses [[b]] (daily)\n- "was inspired by" [[Ghost]]\n\nText with [[b|shown]] and [[twin]].\n',
    )
    desk.put("b.md")
    desk.put("x/twin.md")
    desk.put("y/twin.md")
    edges = desk.index.links.outgoing(desk.get("a.md"), None)
    assert [(edge.type, edge.target, edge.state, edge.context, edge.line) for edge in edges] == [
        ("uses", "b", "resolved", "daily", 1),
        ("was inspired by", "Ghost", "unwritten", None, 2),
        ("links_to", "b", "resolved", None, 4),
        ("links_to", "twin", "ambiguous", None, 4),
    ]
    assert edges[0].note == desk.get("b.md")
    assert edges[3].note is None


def test_backlinks_come_newest_first_and_only_from_links_that_really_lead_here(desk: Desk) -> None:
    desk.put("target.md", "---\naliases: [T]\n---\n")
    desk.put("old.md", "[[target]]", at=START)
    desk.put("new.md", "- likes [[T]]\n", at=START + timedelta(days=1))
    desk.put("far.md", "[[notes/target]]", project="vault", at=START + timedelta(hours=1))
    desk.put("sub/near.md", "[[../target]]", at=START + timedelta(hours=2))
    desk.put("not.md", "[[elsewhere::target]] [[sub/target]] [[targets]]")
    edges = desk.incoming("target.md")
    assert edges == ["new.md", "sub/near.md", "far.md", "old.md"]
    edges = desk.incoming("target.md", limit=2, offset=1)
    assert edges == ["sub/near.md", "far.md"]
    edge = desk.index.links.incoming(desk.get("target.md"), None)[0]
    assert edge.type == "likes"
    assert edge.target == "new"


def test_a_walk_goes_both_ways_breadth_first_each_note_once(desk: Desk) -> None:
    desk.put_all(
        {
            "a.md": "[[b]]",
            "b.md": "- knows [[c]]\n",
            "c.md": "[[a]] [[d]]",
            "d.md": "",
            "e.md": "[[a]]",
            "f.md": "",
        }
    )
    assert reached(desk, "a.md") == [
        ("e.md", 1, "links_to"),
        ("c.md", 1, "links_to"),
        ("b.md", 1, "links_to"),
    ]
    assert [near for near in reached(desk, "a.md", 5) if near[1] > 1] == [("d.md", 2, "links_to")]
    assert reached(desk, "f.md", 5) == []


def test_a_time_limit_hides_old_notes_but_the_walk_goes_through_them(desk: Desk) -> None:
    desk.put("a.md", "[[b]]")
    desk.put("b.md", "[[c]]", at=START - timedelta(days=30))
    desk.put("c.md")
    _, _, near_notes = desk.index.links.around(desk.get("a.md"), depth=2, viewer=None, since=START)

    assert [(near.note.path, near.depth, near.via) for near in near_notes] == [
        ("c.md", 2, "links_to")
    ]


@pytest.mark.slow
def test_a_hub_with_five_thousand_links_stays_bounded(desk: Desk) -> None:
    desk.put("hub.md", "".join(f"- has [[spoke {number}]]\n" for number in range(2_000)))
    desk.put_all({f"spoke {number}.md": "[[hub]]" if number % 2 else "" for number in range(2_000)})
    desk.put_all({f"fan {number}.md": "about [[Hub]]" for number in range(3_000)})
    assert len(desk.index.links.outgoing(desk.get("hub.md"), None)) == 2_000
    edges = desk.index.links.incoming(desk.get("hub.md"), None)
    assert len(edges) == 4_000
    near_notes = reached(desk, "hub.md", 5, limit=10)
    assert near_notes == [(f"fan {number}.md", 1, "links_to") for number in range(2_999, 2_989, -1)]
    assert len(reached(desk, "hub.md", 5, limit=100_000)) <= MOST_VISITED


def test_of_a_hub_the_newest_links_are_told_and_the_rest_is_counted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_queries, "MOST_SHOWN", 3)
    monkeypatch.setattr(link_queries, "_SOURCES_PER_STATEMENT", 2)
    desk.put("hub.md", "[[out]]")
    desk.put("out.md")
    for number in range(9):
        desk.put(f"{number}.md", "[[hub]] and again [[hub]]", at=START + timedelta(hours=number))
    edges, more, near = desk.index.links.around(desk.get("hub.md"), depth=1, viewer=None, limit=2)
    targets = [edge.target for edge in edges]
    assert targets == ["out", "8", "7", "6"]
    assert more == 6
    paths = [neighbor.note.path for neighbor in near]
    assert paths == ["8.md", "7.md"]
    edges, more, near = desk.index.links.around(desk.get("hub.md"), depth=2, viewer=None, limit=20)
    assert len(edges) == 10
    assert more == 0
    assert len(near) == 10
    edges = desk.incoming("hub.md", limit=3, offset=4)
    assert edges == ["4.md", "3.md", "2.md"]


def test_what_superseded_notes_is_not_looked_for_among_all_notes(desk: Desk) -> None:
    plan = [row[3] for row in desk.db.execute(f"explain query plan {superseding._LIMITED}")]
    assert not any(step in ("SCAN new", "SCAN old") for step in plan)


def test_the_links_of_all_notes_are_those_of_each(desk: Desk) -> None:
    desk.put("target.md", "---\naliases: [T]\n---\n[[target]]")
    desk.put("old.md", "[[target]] [[T]] [[C# tips]]")
    desk.put("C# tips.md", "[[old]]")
    desk.put("far.md", "[[notes/target]] [[old#part]]", project="vault")
    desk.put("sub/near.md", "[[../target]] [[./beside]] [[old]]")
    desk.put("sub/beside.md", "- part_of [[near]]")
    desk.put("sub/old.md", "[[nobody]]")
    desk.put("mine.md", "---\nscope: agent:claude\n---\n[[target]]")
    for viewer in (None, "claude", "cursor"):
        rows = [desk.get(path).row for path in ("target.md", "old.md", "C# tips.md")]
        rows += [desk.get(path).row for path in ("sub/near.md", "sub/beside.md", "sub/old.md")]
        rows.append(desk.get("far.md", project="vault").row)
        if viewer != "cursor":
            rows.append(desk.get("mine.md").row)
        of_each = desk.index.links.pairs(rows, viewer)
        assert desk.index.links.pairs(None, viewer) == of_each
        assert len(of_each) > 6
        assert desk.index.links.pairs(None, viewer) == of_each
    before = desk.index.links.pairs(None, None)
    desk.put("nobody.md", "[[target]]")
    after = desk.index.links.pairs(None, None)
    nobody = desk.get("nobody.md").row
    added = {(nobody, desk.get("target.md").row), (desk.get("sub/old.md").row, nobody)}

    assert {pair[:2] for pair in after - before} == added


def test_incoming_links_are_counted_as_they_are_listed(desk: Desk) -> None:
    desk.put("target.md", "---\naliases: [T]\n---\n")
    desk.put("other.md", "[[target]]")
    for number in range(5):
        desk.put(f"from {number}.md", "[[T]] [[other]] [[targets]]")
    notes = [desk.get("target.md"), desk.get("other.md")]
    for viewer in (None, "claude"):
        counts = desk.index.links.count_incoming(notes, viewer, 100)
        listed = {note.row: len(desk.index.links.incoming(note, viewer)) for note in notes}
        assert counts == {notes[0].row: 6, notes[1].row: 5}
        assert listed == {notes[0].row: 6, notes[1].row: 5}

    assert desk.index.links.count_incoming(notes, None, 3) == {note.row: 3 for note in notes}


def test_texts_with_a_pattern_twice_are_found_also_after_they_changed(desk: Desk) -> None:
    pattern = re.compile(r"^- \w+:", re.M)

    def found() -> set[int]:
        return desk.index.notes.rows_repeating(pattern)

    desk.put("one.md", "- a: 1\n")
    desk.put("two.md", "- a: 1\n- b: 2\n")
    row = desk.get("two.md").row
    assert row in found()
    row = desk.get("one.md").row
    assert row not in found()
    desk.put("one.md", "- a: 1\ntext\n- a: 2\n- a: 3\n")
    desk.put("two.md", "- a: 1\n")
    row = desk.get("one.md").row
    assert row in found()
    row = desk.get("two.md").row
    assert row not in found()
