"""One verb lists notes, and `Query` says everything a list can ask."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import InvalidInput, OutsideError
from memoranda.query import Query

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLACES = ("sea/Tides", "sea/deep/Vents", "sea-shore/Crabs", "land/Tides", "Top")
ADA = "agent:ada"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    """Notes written a day apart; each is about the moon but the last."""
    now = [START]
    with open_session(tmp_path / "home", clock=lambda: now[0]) as opened:
        for place in PLACES:
            folder, _, title = place.rpartition("/")
            opened.write(Draft("the moon", project="notes", folder=folder, title=title))
            now[0] += timedelta(days=1)
        opened.write(Draft("for Ada", project="notes", folder="sea", title="Secret", scope=ADA))
        yield opened


def listed(memory: MemorySession, query: Query) -> list[str]:
    infos, total = memory.list(query, limit=0)
    assert total == len(infos)
    pages = [memory.list(query, limit=2, offset=offset)[0] for offset in range(0, total, 2)]
    rows = [info.row for info in infos]
    page_rows = []
    for page in pages:
        page_rows += [info.row for info in page]
    assert page_rows == rows
    return [info.path.removesuffix(".md") for info in infos]


@pytest.mark.parametrize(
    ("folder", "expected_paths"),
    [
        ("sea", ["sea/Secret", "sea/Tides", "sea/deep/Vents"]),
        ("sea/deep", ["sea/deep/Vents"]),
        ("se", []),
        ("Sea", []),
        ("", ["Top", "land/Tides", "sea-shore/Crabs", "sea/Secret", "sea/Tides", "sea/deep/Vents"]),
    ],
)
def test_folder_asked_for_notes_below_it_are_listed(
    memory: MemorySession, folder: str, expected_paths: list[str]
) -> None:
    assert listed(memory, Query(folder=folder, order="path")) == expected_paths


@pytest.mark.parametrize(
    ("address", "expected_paths"),
    [
        ("notes/sea/*", ["sea/deep/Vents", "sea/Secret", "sea/Tides"]),
        ("*/tides", ["land/Tides", "sea/Tides"]),
        ("memory://notes/*/Tides", ["land/Tides", "sea/Tides"]),
        ("top", ["Top"]),
        ("none/*", []),
    ],
)
def test_address_asked_for_notes_that_fit_it_are_listed_by_address(
    memory: MemorySession, address: str, expected_paths: list[str]
) -> None:
    assert listed(memory, Query(address=address, order="address")) == expected_paths


def test_filters_of_place_and_time_hold_together(memory: MemorySession) -> None:
    second_day = START.replace(hour=0) + timedelta(days=1)
    query = Query(folder="sea", address="*/vents", day_from=second_day, order="created")
    assert listed(memory, query.replace(day_until=second_day + timedelta(days=1))) == [
        "sea/deep/Vents"
    ]
    assert listed(memory, query.replace(day_until=second_day)) == []
    assert listed(memory, Query(folder="sea", contains="MOON", order="path")) == [
        "sea/Tides",
        "sea/deep/Vents",
    ]


def test_agent_asks_by_place_what_is_anothers_stays_unseen(memory: MemorySession) -> None:
    bob = memory.as_caller("bob")
    secret = memory.find("Secret")
    for query in (Query(folder="sea"), Query(address="*/secret"), Query(ids=(secret.id,))):
        assert "sea/Secret" in listed(memory, query)
        assert "sea/Secret" in listed(memory.as_caller("ada"), query)
        assert "sea/Secret" not in listed(bob, query)


def test_ids_asked_for_archived_memories_are_among_them(memory: MemorySession) -> None:
    kept_memory = memory.write(Draft("kept", category="knowledge"))
    archived = memory.write(Draft("archived", category="knowledge"))
    Upkeep(memory).archive_all([memory.find(archived.id)], {})
    ids = (kept_memory.id, archived.id, "none")
    infos, _ = memory.list(Query(ids=ids), limit=0)

    info_ids = {info.id for info in infos}
    assert info_ids == {kept_memory.id, archived.id}
    _, total = memory.list(Query(ids=ids, archived=False))
    assert total == 1
    _, total = memory.list(Query(ids=()))
    assert total == 0


def test_search_keeps_to_the_place_asked_for(memory: MemorySession) -> None:
    hits = memory.search(Query("moon", folder="sea"))
    paths = {hit.note.path for hit in hits}
    assert paths == {"sea/Tides.md", "sea/deep/Vents.md"}
    assert hits.total == 2
    hits = memory.search(Query("moon", address="land/*"))
    paths = [hit.note.path for hit in hits]
    assert paths == ["land/Tides.md"]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (Query(address="https://example.org/x"), InvalidInput),
        (Query(address="../x"), OutsideError),
        (Query(order="size"), InvalidInput),
    ],
)
def test_query_nobody_can_answer_is_refused(
    memory: MemorySession, query: Query, error: type[Exception]
) -> None:
    with pytest.raises(error):
        memory.list(query)
