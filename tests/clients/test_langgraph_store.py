"""The LangGraph store: random operations give what `InMemoryStore` gives, and tests of what
is our own.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.engine import open_session
from memoranda.errors import InvalidInput

base = pytest.importorskip(
    "langgraph.store.base", reason="langgraph is not installed: pip install langgraph"
)
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp  # noqa: E402
from langgraph.store.memory import InMemoryStore  # noqa: E402

from memoranda.clients.langgraph import MemorandaStore  # noqa: E402

LABELS = st.sampled_from(["users", "anna", "Bo Li", "陈", "a/b", "_x", "node_modules", "🙂"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
KEYS = st.sampled_from(
    ["k", "K", " padded", "12", "true", "null", "a: b", "多", "x" * 200, "a/../b", "line\nbreak"]
)
NUMBERS = st.integers(-3, 3)
SCALARS = st.one_of(
    NUMBERS, st.none(), st.booleans(), st.floats(allow_nan=False), st.text(max_size=8)
)
VALUES = st.fixed_dictionaries(
    {"n": NUMBERS},
    optional={
        "text": st.text(max_size=20),
        "deep": st.dictionaries(KEYS, SCALARS, max_size=2),
        "list": st.lists(SCALARS, max_size=3),
    },
)
OPERATORS = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
FILTERS = st.one_of(
    st.none(),
    st.fixed_dictionaries({"n": NUMBERS}),
    st.fixed_dictionaries({"n": st.dictionaries(OPERATORS, NUMBERS, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"deep": st.dictionaries(KEYS, SCALARS, min_size=1, max_size=1)}),
    st.fixed_dictionaries({"list": st.lists(SCALARS, max_size=2)}),
)
PATHS = st.lists(st.one_of(LABELS, st.just("*")), min_size=1, max_size=3).map(tuple)
CONDITIONS = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS)
OPS = st.one_of(
    st.builds(
        PutOp, NAMESPACES, KEYS, st.one_of(VALUES, VALUES, VALUES, st.none()), st.none(), st.none()
    ),
    st.builds(GetOp, NAMESPACES, KEYS, st.booleans()),
    st.builds(SearchOp, PREFIXES, FILTERS, st.just(10_000), st.just(0), st.none(), st.booleans()),
    st.builds(
        ListNamespacesOp,
        st.lists(CONDITIONS, max_size=2).map(tuple) | st.none(),
        st.integers(1, 3) | st.none(),
        st.just(10_000),
        st.just(0),
    ),
)


def shown(result: Any) -> Any:
    """A result without times. The hits of a search, which come in any order, are sorted."""
    if isinstance(result, list):
        return sorted((shown(element) for element in result), key=repr)
    if isinstance(result, base.Item):
        return (result.namespace, result.key, result.value)
    return result


def expected(oracle: InMemoryStore, ops: list[Any]) -> list[Any]:
    """What the oracle gives; it also lists namespaces it was only asked for, or that are empty by
    now.
    """
    for name in [name for name, items in oracle._data.items() if not items]:
        del oracle._data[name]
    results: list[Any] = []
    for op in ops:
        results += oracle.batch([op]) if not isinstance(op, PutOp) else [None]
        for name in [name for name, items in oracle._data.items() if not items]:
            del oracle._data[name]
    oracle.batch([op for op in ops if isinstance(op, PutOp)])
    return results


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(batches=st.lists(st.lists(OPS, max_size=6), max_size=6), runs_async=st.booleans())
def test_random_operations_give_what_the_store_in_memory_gives(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Any]], runs_async: bool
) -> None:
    oracle = InMemoryStore()
    with open_session(tmp_path_factory.mktemp("home"), watch=False) as memory:
        store = MemorandaStore(memory)
        for ops in batches:
            expected_results = expected(oracle, ops)
            if runs_async:
                got = asyncio.run(store.abatch(ops))
            else:
                got = store.batch(ops)
            assert [shown(result) for result in got] == [
                shown(result) for result in expected_results
            ]


def test_pages_of_a_search_hold_every_item_once_and_the_newest_comes_first(tmp_path: Path) -> None:
    moments = iter(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(10_000))
    with open_session(tmp_path, clock=lambda: next(moments)) as memory:
        store = MemorandaStore(memory)
        for number in range(7):
            store.put(("n",), str(number), {"n": number})
        pages = [store.search(("n",), limit=3, offset=at) for at in (0, 3, 6)]

    keys = []
    for page in pages:
        keys += [item.key for item in page]
    assert keys == list("6543210")


def test_a_query_ranks_what_matches_and_the_key_value_tools_see_the_same_entry(
    tmp_path: Path,
) -> None:
    from memoranda import Session

    with open_session(tmp_path, agent="graph", face="langgraph") as memory:
        store = MemorandaStore(memory)
        store.put(("users", "anna"), "food", {"text": "likes green tea in the morning"})
        store.put(("users", "bo"), "food", {"text": "likes espresso"})
        store.put(("teams", "tea"), "name", {"text": "green tea club"})
        hits = store.search(("users",), query="green tea")
        assert [(hit.namespace, hit.key) for hit in hits] == [(("users", "anna"), "food")]
        assert hits[0].score
        reply = Session(memory, tools=("kv",)).call(
            "memory_recall", {"key": "food", "namespace": "users.anna"}
        )
        assert "green tea" in reply.text


def test_what_another_agent_kept_as_plain_text_is_an_item_with_a_value(tmp_path: Path) -> None:
    from memoranda import Session

    with open_session(tmp_path) as memory:
        reply = Session(memory, tools=("kv",)).call(
            "memory_remember", {"key": "k", "value": "plain", "namespace": "users"}
        )
        assert not reply.is_error, reply.text
        item = MemorandaStore(memory).get(("users",), "k")
    assert item is not None
    assert item.value == {"value": "plain"}


@pytest.mark.parametrize(("refresh", "alive"), [(True, True), (False, False)])
def test_an_item_lives_its_minutes_and_reading_begins_them_anew_unless_told_otherwise(
    tmp_path: Path, refresh: bool, alive: bool
) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    with open_session(tmp_path, clock=lambda: now[0]) as memory:
        store = MemorandaStore(memory, ttl={"refresh_on_read": refresh, "default_ttl": 10})
        store.put(("a",), "k", {"n": 1})
        store.put(("a",), "for ever", {"n": 2}, ttl=None)
        for _ in range(2):
            now[0] += timedelta(minutes=6)
            item = store.get(("a",), "k")
        assert (item is not None) == alive
        now[0] += timedelta(minutes=11)
        keys = [hit.key for hit in store.search(("a",))]
        assert keys == ["for ever"]
        assert store.list_namespaces() == [("a",)]
        assert store.get(("a",), "k") is None
        store.sweep_ttl()
        paths = list((tmp_path / "kv").rglob("*.md"))
        assert len(paths) == 1


@pytest.mark.parametrize("value", [{"when": datetime(2026, 1, 1)}, {"set": {1}}, {"bytes": b"x"}])
def test_a_value_that_is_no_json_is_refused_and_nothing_of_its_batch_is_written(
    tmp_path: Path, value: Any
) -> None:
    with open_session(tmp_path) as memory:
        store = MemorandaStore(memory)
        with pytest.raises(InvalidInput, match="must be JSON"):
            store.batch([PutOp(("a",), "good", {"n": 1}), PutOp(("a",), "bad", value)])
        assert store.search(()) == []


def test_minutes_no_calendar_has_are_for_ever(tmp_path: Path) -> None:
    with open_session(tmp_path) as memory:
        store = MemorandaStore(memory)
        store.put(("a",), "k", {"n": 1}, ttl=1e12)
        assert store.get(("a",), "k") is not None


def test_a_label_with_a_dot_is_refused_in_a_batch_too(tmp_path: Path) -> None:
    with open_session(tmp_path) as memory, pytest.raises(base.InvalidNamespaceError):
        MemorandaStore(memory).batch([GetOp(("a.b",), "k")])
