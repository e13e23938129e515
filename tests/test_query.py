"""The text form of a query: contract 000b, 6."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.query import Query, narrowed, parse

NOW = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)


def test_filters_are_taken_out_of_the_text() -> None:
    text = "dark mode tag:ui type:Decision category:fact project:notes source:claude scope:agent:ada status:draft"
    assert parse(text) == Query(
        "dark mode",
        tags=("ui",),
        types=("Decision",),
        any_category=("fact",),
        projects=("notes",),
        source="claude",
        scope="agent:ada",
        status="draft",
    )


def test_a_filter_may_stand_anywhere_and_its_name_in_any_case() -> None:
    assert parse("Tag:#ui dark TYPE:note mode") == Query("dark mode", tags=("ui",), types=("note",))


def test_values_with_blanks_stand_in_quotes() -> None:
    assert parse('project:"My Vault" tag:"two words" x') == Query(
        "x", projects=("My Vault",), tags=("two words",)
    )


def test_tags_add_up_and_single_filters_are_replaced() -> None:
    assert parse("tag:a tag:b type:x type:y status:one status:two") == Query(
        tags=("a", "b"), types=("x", "y"), status="two"
    )


def test_before_and_after_take_time_frames() -> None:
    assert parse("x after:7d", now=NOW) == Query("x", after=NOW - timedelta(days=7))
    assert parse('x after:"3 days ago" before:2026-05-01', now=NOW, zone=UTC) == Query(
        "x", after=NOW - timedelta(days=3), before=datetime(2026, 5, 1, tzinfo=UTC)
    )
    east = timezone(timedelta(hours=8))
    assert parse("x as_of:2026-03", now=NOW, zone=UTC).as_of == datetime(
        2026, 4, 1, tzinfo=UTC
    ) - timedelta(microseconds=1)
    assert parse("x as_of:2026-13", now=NOW, zone=UTC) == Query("x as_of:2026-13")
    before = parse("before:昨天", now=NOW, zone=east).before
    assert before == datetime(2026, 5, 5, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "foo:bar",
        "http://x.org/a?b=c",
        "note: something",
        "tag:",
        "tag: ui",
        "mytag:ui",
        "x tag :ui",
        '"tag:ui"',
        'say "project:x or so" now',
        "before:lunch",
        "after:0d",
        "after:-3d",
        "12:30",
        "::",
        'tag:"open',
        'tag:""',
    ],
)
def test_any_other_colon_is_text(text: str) -> None:
    assert parse(text, now=NOW) == Query(text)


def test_phrases_keep_their_quotes_beside_filters() -> None:
    assert parse('"exact words" tag:x NOT "other"') == Query(
        '"exact words" NOT "other"', tags=("x",)
    )


def test_a_copy_with_changes_leaves_the_query_alone() -> None:
    query = Query("a", tags=("x",))
    assert query.replace(text="b") == Query("b", tags=("x",))
    assert query.text == "a"


@given(st.text())
def test_text_without_filters_comes_through_as_it_is(text: str) -> None:
    if ":" not in text:
        assert parse(text) == Query(text.strip())


def test_filters_in_a_text_narrow_a_query() -> None:
    query = Query(tags=("a",), projects=("notes", "work"))
    narrowed_query, text = narrowed(query, "dark  mode tag:b project:Work status:open")

    assert text == "dark mode"
    assert narrowed_query.tags == ("a", "b")
    assert narrowed_query.projects == ("Work",)
    assert narrowed_query.status == "open"


def test_text_without_filters_is_left_as_it_is() -> None:
    query = Query()
    assert narrowed(query, " two  blanks x:y ") == (query, " two  blanks x:y ")
