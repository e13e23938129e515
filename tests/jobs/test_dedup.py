"""Duplicates and similar memories: what is merged into what, what is linked (contract 001, 5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.jobs.dedup import lines, overlap, plain, plan_duplicates, plan_similar, terms
from commonplace.jobs.job import LINK, MERGE, MemoryState, after_actions, linked_pairs

START = datetime(2026, 5, 7, 10, tzinfo=UTC)
LONG = "The quarterly report is due at the end of March and goes to the whole board, with all its appendices, at once"
WORDS = [f"word{n}" for n in range(16)]


def memory(id: str, content: str, **more) -> MemoryState:
    fields = {"id": id, "scope": "global", "content": content, "category": "project", "created": START}
    return MemoryState(**(fields | more))


def ends(actions, verb=MERGE) -> list[tuple[str, str]]:
    """What is merged into what, or linked with what."""
    return [(each.id, each.target) for each in actions if each.verb == verb]


def links(actions) -> list[tuple[str, str]]:
    return ends(actions, LINK)


def test_of_equal_texts_equally_often_read_the_older_stays_then_the_smaller_id():
    later = START + timedelta(days=1)
    assert ends(plan_duplicates([memory("a", "same", created=later), memory("b", "same")])) == [("a", "b")]
    assert ends(plan_duplicates([memory("b", "same"), memory("a", "same")])) == [("b", "a")]


def test_case_width_and_blanks_make_no_other_text():
    (merge,) = plan_duplicates([memory("a", "Ｓame  TEXT\r\n"), memory("b", " same text", access_count=1)])
    assert (merge.id, merge.target, merge.reason) == ("a", "b", "same text as b")


def test_the_longer_text_stays_even_when_the_shorter_was_read_more_often():
    short, long = LONG, f"{LONG}\nand more"
    (merge,) = plan_duplicates([memory("a", short, access_count=9), memory("b", long)])
    assert (merge.id, merge.target, merge.reason) == ("a", "b", "all its lines are in b")


def test_the_text_with_more_lines_stays_even_when_the_other_is_longer_by_repeating_itself():
    assert ends(plan_duplicates([memory("a", f"{LONG}\n{LONG}\n{LONG}"), memory("b", f"{LONG}\nx")])) == [("a", "b")]


@pytest.mark.parametrize(
    ("own", "other", "merged"),
    [
        ({"due_at": START}, {"due_at": START}, True),
        ({"due_at": START, "repeat": "weekly"}, {"due_at": START, "repeat": "weekly"}, True),
        ({"due_at": START}, {"due_at": START + timedelta(1)}, False),
        ({"due_at": START}, {"due_at": START, "repeat": "weekly"}, False),
        ({"due_at": START}, {"category": "project"}, False),
        ({}, {"category": "project"}, False),
    ],
)
def test_reminders_are_merged_with_reminders_of_equal_time_and_rule_alone(own, other, merged):
    text = "pay the rent to the landlord"
    both = [
        memory("a", text, **{"category": "reminders"} | own),
        memory("b", text, **{"category": "reminders"} | other),
    ]
    assert bool(plan_duplicates(both)) == bool(plan_similar(both)) == merged
    assert links(plan_similar(both)) == []


def test_what_lies_in_two_texts_goes_into_the_longer():
    texts = [LONG, f"{LONG}\none", f"{LONG}\nanother"]
    assert ends(plan_duplicates([memory(id, text) for id, text in zip("abc", texts, strict=True)])) == [("a", "c")]


def test_terms_are_words_and_pairs_of_han_characters():
    text = "Don’t use kube-proxy v1.2, Bob's config.yaml: 数据库 a我"
    assert terms(plain(text)) == {
        "don't", "use", "kube-proxy", "v1.2", "bob", "config.yaml", "数据", "据库", "a"
    }  # fmt: skip


def test_an_overlap_of_just_four_fifths_is_enough_and_less_is_not():
    four = " ".join(WORDS[:4])
    both = [memory("a", f"{four} x1 x2 x3 x4 y1"), memory("b", f"{four} x1 x2 x3 x4 y2")]
    assert [link.reason for link in plan_similar(both)] == ["similar 0.80"]
    assert plan_similar([both[0], replace(both[1], content=f"{both[1].content} y3")]) == []


def test_a_text_in_another_of_many_more_terms_stays():
    both = [memory("a", " ".join(WORDS[:8])), memory("b", " ".join(WORDS[:8]) + "\n" + " ".join(WORDS[8:]))]
    assert plan_similar(both) == []


LINES = [" ".join(WORDS[n : n + 6]) for n in range(0, 10, 2)] + [
    LONG,
    "Zulu",
    "数据库迁移前先备份，数据库迁移后再检查",
    "",
]
MEMORIES = st.builds(
    lambda body, shout, **more: replace(memory("", "\n".join(map(str.upper, body) if shout else body)), **more),
    body=st.lists(st.sampled_from(LINES), min_size=1, max_size=9),
    shout=st.booleans(),
    scope=st.sampled_from(["global", "global", "agent:x"]),
    access_count=st.integers(0, 2),
    category=st.sampled_from(["project", "people", "reminders"]),
    created=st.integers(0, 2).map(lambda days: START + timedelta(days)),
    due_at=st.sampled_from([None, START]),
)


@st.composite
def collections(draw):
    found = [replace(each, id=f"{n:02}") for n, each in enumerate(draw(st.lists(MEMORIES, max_size=14)))]
    ids = st.sampled_from([each.id for each in found]) if found else st.nothing()
    some = st.lists(ids, max_size=2).map(tuple) if found else st.just(())
    return [replace(each, links=draw(some), unlinked=draw(some)) for each in found]


@settings(max_examples=100)
@given(collections(), st.randoms(use_true_random=False))
def test_no_line_is_lost_no_survivor_merged_and_a_second_run_has_nothing_to_do(known, chance):
    for plan in (plan_duplicates, lambda memories: [each for each in plan_similar(memories) if each.verb == MERGE]):
        merges = plan(known)
        into = dict(ends(merges))
        assert not into.keys() & set(into.values())
        after = after_actions(known, merges)
        left = {each.id: lines(plain(each.content)) for each in after}
        assert len(after) == len(known) - len(merges)
        assert all(lines(plain(each.content)) <= left[into.get(each.id, each.id)] for each in known)
        assert plan(after) == []
        assert plan(chance.sample(known, len(known))) == merges


@settings(max_examples=100)
@given(collections())
def test_after_a_plan_no_pair_is_left_that_a_slow_reading_of_the_rules_would_merge_or_link(known):
    found = plan_similar(known)
    after = after_actions(known, [each for each in found if each.verb == MERGE])
    closed = linked_pairs(after) | linked_pairs(after, "unlinked")
    expected = []
    for (n, a), (m, b) in combinations(enumerate(after), 2):
        own, other = terms(plain(a.content)), terms(plain(b.content))
        if a.block == b.block and min(len(own), len(other)) >= 5 and overlap(own, other):
            assert not lines(plain(a.content)) <= lines(plain(b.content))
            assert not lines(plain(b.content)) <= lines(plain(a.content))
            if (n, m) not in closed:
                expected.append((a.id, b.id))
    assert sorted(links(found)) == expected
    assert plan_similar(after_actions(known, found)) == []


@settings(max_examples=100)
@given(collections())
def test_after_consolidating_no_pair_of_one_beginning_is_left_one_in_the_other(known):
    after = after_actions(known, plan_duplicates(known))
    texts = [(each.block, " ".join(plain(each.content).split()), lines(plain(each.content))) for each in after]
    for (block, text, own), (other_block, other_text, other) in combinations([each for each in texts if each[1]], 2):
        if block == other_block and text[:100] == other_text[:100]:
            assert not own <= other
            assert not other <= own
