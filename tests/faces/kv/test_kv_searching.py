"""Finding entries, and lists that continue."""

from __future__ import annotations

import re

import pytest

from contract.key_value import LIMIT


def test_text_in_key_or_value_is_found_in_any_case(entries):
    entries.remember("ÜBER_KEY", "plain")
    entries.remember("other", "Straße in МОСКВА")

    assert entries.found("über") == [("default", "ÜBER_KEY")]
    assert entries.found("москва") == [("default", "other")]
    assert entries.found("STRAßE") == [("default", "other")]
    assert entries.found(" in ") == [("default", "other")]
    assert entries.found("expires_at") == []
    assert entries.found("type: kv") == []


def test_most_recalled_come_first_then_newest_then_by_namespace_and_key(entries, clock):
    for namespace, key in (("b", "x"), ("a", "y"), ("a", "x")):
        entries.remember(key, "v", namespace)
    clock.later(1)
    entries.remember("new", "v")
    entries.ok("recall", key="x", namespace="b")
    # A search is no recall
    order = [("b", "x"), ("default", "new"), ("a", "x"), ("a", "y")]

    assert entries.found("v") == order
    assert [entries.found("v", limit=1, offset=at)[0] for at in range(4)] == order
    assert entries.found("v", offset=4) == []
    total_matches = entries.ok("search", query="v", limit=2)["total_matches"]
    assert total_matches == 4
    assert entries.found("v", namespace="a") == order[2:]
    assert entries.found("v", namespace="") == order


def test_a_long_value_is_shown_by_its_beginning(entries):
    entries.remember("exact", "x" * 500)
    entries.remember("long", "y" * 501)
    assert entries.ok("search", query="xx")["results"][0]["value"] == "x" * 500
    assert (
        entries.ok("search", query="yy")["results"][0]["value"]
        == "y" * 470 + "... [TRUNCATED at 500 chars]"
    )
    assert (
        entries.ok("search", query="y" * 501)["query"] == "y" * 470 + "... [TRUNCATED at 500 chars]"
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "markdown"])
def test_results_that_do_not_fit_go_on_at_the_next_offset(entries, form):
    for number in range(120):
        entries.remember(f"k{number:03d}", "世" * 480, namespace="键" * 20)
    keys = []
    offset = 0
    replies = 0
    while offset is not None:
        text, _ = entries.call("search", query="世", limit=1000, offset=offset, format=form)
        fields = entries.ok("search", query="世", limit=1000, offset=offset)
        if form == "markdown":
            size = text.count("  - **key:** k")
            assert f"\n**returned:** {size}\n**results:** {size} items\n" in text
            assert ("\n**truncated:** True\n**next_offset:** " in text) == (offset + size < 120)
            assert text.endswith("\n") == (offset + size == 120)
            keys += re.findall(r"^  - \*\*key:\*\* (.*)$", text, re.MULTILINE)
            offset = offset + size if offset + size < 120 else None
        else:
            assert fields["returned"] == len(fields["results"])
            keys += [result["key"] for result in fields["results"]]
            offset = fields.get("next_offset")
            assert fields.get("truncated", False) is (offset is not None)
        assert len(text) > LIMIT - 4000 or offset is None
        replies += 1

    assert keys == [f"k{number:03d}" for number in range(120)]
    assert replies > 2


@pytest.mark.slow
def test_namespaces_that_do_not_fit_go_on_at_the_next_offset(entries):
    long_end = "n" * 300
    names = [f"{number:03d} {long_end}" for number in range(120)]
    for name in names:
        entries.remember("k", "v", name)
    namespaces = []
    offset = 0
    while offset is not None:
        fields = entries.ok("list_namespaces", offset=offset)
        assert fields["namespace_count"] == 120
        namespaces += [namespace["namespace"] for namespace in fields["namespaces"]]
        offset = fields.get("next_offset")

    assert namespaces == names
    behind_the_last = entries.ok("list_namespaces", offset=500)
    assert behind_the_last["namespaces"] == []


def test_sizes_are_those_of_the_files_for_people_too(entries):
    entries.remember("k", "x" * 31_000)
    fields = entries.ok("stats")

    assert fields["total_size_bytes"] == entries.file("default/k.md").stat().st_size
    assert fields["total_size_human"] == "30.4 KB"
    assert fields["oldest_entry"] == "2026-05-07T10:00:00Z"
    assert fields["newest_entry"] == "2026-05-07T10:00:00Z"
