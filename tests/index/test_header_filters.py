"""Filters on header values: what passes, what they may hold, and that each value is looked at once."""

from __future__ import annotations

import pytest

from memoranda import Draft, Query, open_memory
from memoranda.errors import InvalidInput
from memoranda.index import header_filters
from memoranda.index.header_filters import DEPTH, KEYS, VALUES, conditions

HEADERS = {
    "one": {"owner": "ann", "labels": ["red", "blue"], "size": "10", "done": True},
    "two": {"owner": "bob", "labels": ["blue"], "size": "2.5", "day": "2026-05-01"},
    "three": {"owner": "Ann", "labels": "red", "size": "large", "day": "2026-05-02T10:00:00+02:00"},
    "four": {"labels": ["10", ["nested", "red"]], "at": {"place": "Rome", "tags": ["x"]}},
    "five": {"size": "10.0", "done": "true", "tags": ["tea", "blue"]},
    "six": {"begun": "0001-01-01T00:00+05:00"},
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with open_memory(tmp_path_factory.mktemp("home"), watch=False) as memory:
        for title, header in HEADERS.items():
            tags = tuple(header.get("tags", ()))
            metadata = {key: value for key, value in header.items() if key != "tags"}
            memory.write(Draft("x", title=title, project="notes", tags=tags, metadata=metadata))
        yield memory


@pytest.mark.parametrize(
    ("filters", "titles"),
    [
        ({"owner": "ann"}, "one"),
        ({"owner": {"$in": ["ann", "bob"]}}, "one two"),
        ({"owner": {"$in": []}}, ""),
        ({"labels": "red"}, "one three"),
        ({"labels": {"$in": ["red", "10"]}}, "one three four"),
        ({"labels": ["blue"]}, "one two"),
        ({"labels": ["blue", "red"]}, "one"),
        ({"labels": ["red"]}, "one four"),
        ({"labels": "nested"}, ""),
        ({"size": 10}, "one five"),
        ({"size": {"$gt": 2, "$lt": 10}}, "two"),
        ({"size": {"$between": [2, 10]}}, "one two five"),
        ({"size": {"$gte": "large"}}, "three"),
        ({"done": True}, "one five"),
        ({"done": {"$gt": 0}}, ""),
        ({"day": {"$gte": "2026-05-01", "$lt": "2026-05-02T09:00:00Z"}}, "two three"),
        ({"at.place": "Rome"}, "four"),
        ({"at.tags": "x"}, "four"),
        ({"at": "Rome"}, ""),
        ({"tags": {"$in": ["tea", "coffee"]}}, "five"),
        ({"title": {"$in": ["one", "five"]}, "size": 10}, "one five"),
        ({"type": "note", "owner": "bob"}, "two"),
        ({"nothing": "x"}, ""),
        ({"owner": None}, ""),
        ({"size": {"$lt": 10**400}}, "one two five"),
        ({"size": {"$gt": -(10**400)}}, "one two five"),
        ({"begun": "0001-01-01T00:00+05:00"}, "six"),
        ({"labels": {"$in": [["red", "blue"], "10"]}}, "one four"),
    ],
)
def test_a_filter_finds_the_notes_whose_values_pass(memory, filters, titles):
    hits = memory.search(Query(metadata=filters), limit=10)
    assert sorted(hit.note.title for hit in hits) == sorted(titles.split())
    assert hits.total == len(titles.split())


def test_a_note_written_or_removed_later_counts_at_once(tmp_path):
    with open_memory(tmp_path, watch=False) as memory:
        query = Query(metadata={"owner": {"$in": ["ann", "bob"]}})
        for number, owner in enumerate(["ann", "bob", "eve"]):
            memory.write(Draft("x", title=f"n{number}", project="notes", metadata={"owner": owner}))
            total = memory.search(query).total
            assert total == min(number + 1, 2)
        memory.delete("n0")
        total = memory.search(query).total
        assert total == 1


def test_a_value_is_looked_at_once_however_many_the_filter_names(memory, monkeypatch):
    values_checked = []
    whole = header_filters._In.passes
    monkeypatch.setattr(
        header_filters._In,
        "passes",
        lambda self, value: values_checked.append(value) or whole(self, value),
    )
    memory.search(Query(metadata={"owner": {"$in": [f"p{n}" for n in range(VALUES - 5)]}}))
    # Of three owners
    assert len(values_checked) == 3


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.promise("arguments-sizes")
@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ({f"k{n}": "x" for n in range(KEYS + 1)}, "may have 50 keys, got 51"),
        ({"k": {"$in": ["x"] * (VALUES + 1)}}, "may have 2,000 values"),
        ({"k": nested(DEPTH + 1)}, "may be nested 10 deep"),
        ({"k": nested(5000)}, "may be nested 10 deep"),
        ({"k": {"$not": 1}}, 'knows no "\\$not"'),
        ({"k": {}}, 'has an empty condition for "k"'),
        ({"k" * 5000: {}}, 'for "k{77}\\.\\.\\."'),
    ],
)
def test_a_filter_beyond_the_limits_is_refused_with_the_limit(filters, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        conditions(filters)
