"""Duplicates and similar memories: what is merged into what, what is linked (contract 001, 5)."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.jobs import dedup
from commonplace.jobs.dedup import lines, overlap, plain, plan_duplicates, plan_similar, terms
from commonplace.jobs.job import LINK, MERGE, Action, MemoryState, after_actions, linked_pairs

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


def action(verb: str, id: str, target: str, reason: str = "") -> Action:
    return Action("dream", verb, id, reason, "categories/", target=target)


def test_of_equal_texts_the_one_more_often_read_stays():
    assert ends(plan_duplicates([memory("a", "same"), memory("b", "same", access_count=1)])) == [("a", "b")]


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


def test_different_texts_of_one_beginning_both_stay():
    assert plan_duplicates([memory("a", f"{LONG}\none"), memory("b", f"{LONG}\ntwo")]) == []


def test_a_text_that_begins_otherwise_is_no_candidate():
    assert plan_duplicates([memory("a", LONG), memory("b", f"more\n{LONG}")]) == []


def test_other_scopes_are_never_merged():
    assert plan_duplicates([memory("a", "same"), memory("b", "same", scope="agent:x")]) == []


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


def test_memories_without_text_stay():
    assert plan_duplicates([memory("a", ""), memory("b", " \n")]) == []


def test_a_chain_goes_into_its_end_in_one_run():
    texts = [LONG, f"{LONG}\none", f"{LONG}\none\ntwo"]
    chain = [memory(id, text) for id, text in zip("abc", texts, strict=True)]
    found = plan_duplicates(chain)
    assert ends(found) == [("a", "c"), ("b", "c")]
    assert plan_duplicates(after_actions(chain, found)) == []


def test_what_lies_in_two_texts_goes_into_the_longer():
    texts = [LONG, f"{LONG}\none", f"{LONG}\nanother"]
    assert ends(plan_duplicates([memory(id, text) for id, text in zip("abc", texts, strict=True)])) == [("a", "c")]


def test_many_texts_of_one_beginning_are_no_matter_of_all_pairs(monkeypatch):
    compared = []
    monkeypatch.setattr(dedup, "overlap", lambda a, b: compared.append(1) or overlap(a, b))
    many = [memory(f"{n:04}", f"{LONG}\nentry {n}\nnumber {n + 1}") for n in range(2000)]
    assert plan_duplicates(many) == ends(plan_similar(many)) == []
    assert len(compared) < 100_000


def test_a_merge_unites_what_both_have():
    survivor = memory("a", "long", tags=("x", "y"), links=("c", "b"), access_count=2)
    yesterday = START - timedelta(1)
    other = memory("b", "l", tags=("y", "z"), links=("a", "d"), access_count=3, created=yesterday, merged=("e",))
    (found,) = after_actions([survivor, other], [action(MERGE, "b", "a")])
    assert found == replace(
        survivor, tags=("x", "y", "z"), links=("c", "d"), access_count=5, created=yesterday, merged=("b", "e")
    )


def test_a_survivor_in_the_inbox_takes_category_and_phase_of_the_other_and_does_not_expire():
    inbox = memory("a", "x", phase="inbox", category="inbox", expires=START)
    (found,) = after_actions([inbox, memory("b", "x", category="lessons")], [action(MERGE, "b", "a")])
    assert (found.phase, found.category, found.expires) == ("organized", "lessons", None)


def test_two_in_the_inbox_expire_at_the_later_time():
    both = [memory(id, "x", phase="inbox", category="inbox", expires=START + timedelta(n)) for n, id in enumerate("ab")]
    assert after_actions(both, [action(MERGE, "b", "a")])[0].expires == START + timedelta(1)


def test_links_to_what_was_merged_lead_to_the_survivor():
    known = [memory("a", "x"), memory("b", "x"), memory("c", "y", links=("a", "b")), memory("d", "z")]
    later = START + timedelta(days=1)
    after = after_actions(known, [action(MERGE, "b", "a")], later)
    assert [(each.id, each.links, each.updated) for each in after] == [
        ("a", (), later),
        ("c", ("a",), later),
        ("d", (), None),
    ]


def test_links_are_made_both_ways_and_once():
    known = [memory("a", "x", links=("b",)), memory("b", "y"), memory("c", "z")]
    later = START + timedelta(days=1)
    after = after_actions(known, [action(LINK, "a", "b")], later)
    assert [(each.links, each.updated) for each in after] == [(("b",), later), (("a",), later), ((), None)]


def test_ties_hold_from_either_side_and_for_what_was_merged():
    known = [memory("a", "x", merged=("old",)), memory("b", "y", links=("a",)), memory("c", "z", unlinked=("old",))]
    assert (linked_pairs(known), linked_pairs(known, "unlinked")) == ({(0, 1)}, {(0, 2)})


def test_terms_are_words_and_pairs_of_han_characters():
    text = "Don’t use kube-proxy v1.2, Bob's config.yaml: 数据库 a我"
    assert terms(plain(text)) == {
        "don't", "use", "kube-proxy", "v1.2", "bob", "config.yaml", "数据", "据库", "a"
    }  # fmt: skip


def test_similar_texts_are_linked_with_their_overlap():
    known = [memory("a", "one two three four five six"), memory("b", "one two three four five six seven")]
    (link,) = plan_similar([known[0], replace(known[1], content="seven one two three four five six")])
    assert (link.verb, link.id, link.target, link.reason) == ("link", "a", "b", "similar 0.86")


def test_an_overlap_of_just_four_fifths_is_enough_and_less_is_not():
    four = " ".join(WORDS[:4])
    both = [memory("a", f"{four} x1 x2 x3 x4 y1"), memory("b", f"{four} x1 x2 x3 x4 y2")]
    assert [link.reason for link in plan_similar(both)] == ["similar 0.80"]
    assert plan_similar([both[0], replace(both[1], content=f"{both[1].content} y3")]) == []


def test_texts_of_few_terms_are_not_compared():
    both = [memory("a", "one two three four"), memory("b", "one two three four")]
    assert plan_similar(both) == []
    both = [memory("a", "one two three four"), memory("b", "one two three four five")]
    assert links(plan_similar(both)) == []


def test_similar_texts_one_in_the_other_are_merged_whatever_they_begin_with():
    both = [memory("a", " ".join(WORDS)), memory("b", "zulu\n" + " ".join(WORDS))]
    found = plan_similar(both)
    assert (ends(found), links(found)) == ([("a", "b")], [])


def test_a_text_in_another_of_many_more_terms_stays():
    both = [memory("a", " ".join(WORDS[:8])), memory("b", " ".join(WORDS[:8]) + "\n" + " ".join(WORDS[8:]))]
    assert plan_similar(both) == []


def test_a_chain_of_similar_texts_goes_into_its_end_though_its_ends_are_not_similar():
    base = "\n".join(f"base{n} line{n}" for n in range(8))
    texts = [base, f"{base}\nnine ten eleven", f"{base}\nnine ten eleven\ntwelve thirteen fourteen"]
    chain = [memory(id, text) for id, text in zip("abc", texts, strict=True)]
    assert overlap(*(terms(texts[n]) for n in (0, 2))) == 0.0
    found = plan_similar(chain)
    assert ends(found) == [("a", "c"), ("b", "c")]
    assert plan_similar(after_actions(chain, found)) == []


@pytest.mark.parametrize("more", [{"links": ("b",)}, {"unlinked": ("b",)}, {"scope": "agent:x"}])
def test_linked_unlinked_and_foreign_memories_are_not_linked(more):
    both = [memory("a", "one two three four five six", **more), memory("b", "six two three four five one")]
    assert links(plan_similar(both)) == []


def test_notes_of_one_form_get_no_more_than_ten_links_each():
    many = [memory(f"{n:03}", f"{' '.join(WORDS)} n{n}") for n in range(60)]
    found = plan_similar(many)
    counts = Counter(end for pair in links(found) for end in pair)
    assert max(counts.values()) == dedup.MOST_LINKS
    assert plan_similar(after_actions(many, found)) == []


@pytest.mark.parametrize("vocabulary", [30, 60, 200, 3000])
def test_every_pair_that_overlaps_enough_is_found(vocabulary, monkeypatch):
    monkeypatch.setattr(dedup, "MOST_LINKS", 1000)
    chance = random.Random(vocabulary)
    known = [[f"w{chance.randrange(vocabulary)}" for _ in range(chance.randrange(5, 40))] for _ in range(150)]
    known += [[word for word in chance.choice(known) if chance.random() < 0.93] for _ in range(150)]
    memories = [memory(f"{n:03}", " ".join([f"w{n}x", *each])) for n, each in enumerate(known)]
    sets = [terms(each.content) for each in memories]
    every = {
        (memories[a].id, memories[b].id)
        for a, b in combinations(range(len(sets)), 2)
        if min(len(sets[a]), len(sets[b])) >= 5 and len(sets[a] & sets[b]) >= 0.8 * len(sets[a] | sets[b])
    }
    assert set(links(plan_similar(memories))) == every
    assert len(every) > 20


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
