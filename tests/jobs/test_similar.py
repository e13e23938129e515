"""Duplicates and similar memories: what is merged into what, what is linked (contract 001, 5)."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.jobs import similar
from commonplace.jobs.digest import Digest, Link, Merge, after_links, after_merges, linked, parted, united
from commonplace.jobs.similar import lines, normalised, overlap, plan_duplicates, plan_similar
from commonplace.jobs.terms import plain, terms

START = datetime(2026, 5, 7, 10, tzinfo=UTC)
LONG = "The quarterly report is due at the end of March and goes to the whole board, with all its appendices, at once"
WORDS = [f"word{n}" for n in range(16)]


def memory(id: str, content: str, **more) -> Digest:
    return Digest(**({"id": id, "scope": "global", "content": content, "category": "project", "created": START} | more))


def gone(merges) -> list[tuple[str, str]]:
    return [(merge.id, merge.survivor) for merge in merges]


def pairs(links) -> list[tuple[str, str]]:
    return [(link.a, link.b) for link in links]


# Duplicates


def test_of_equal_texts_the_one_more_often_read_stays():
    assert gone(plan_duplicates([memory("a", "same"), memory("b", "same", access_count=1)])) == [("a", "b")]


def test_of_equal_texts_equally_often_read_the_older_stays_then_the_smaller_id():
    later = START + timedelta(days=1)
    assert gone(plan_duplicates([memory("a", "same", created=later), memory("b", "same")])) == [("a", "b")]
    assert gone(plan_duplicates([memory("b", "same"), memory("a", "same")])) == [("b", "a")]


def test_case_width_and_blanks_make_no_other_text():
    assert plan_duplicates([memory("a", "Ｓame  TEXT\r\n"), memory("b", " same text", access_count=1)]) == (
        Merge("a", "b", "same text as b"),
    )


def test_the_longer_text_stays_even_when_the_shorter_was_read_more_often():
    short, long = LONG, f"{LONG}\nand more"
    found = plan_duplicates([memory("a", short, access_count=9), memory("b", long)])
    assert found == (Merge("a", "b", "all its lines are in b"),)


def test_the_text_with_more_lines_stays_even_when_the_other_is_longer_by_repeating_itself():
    assert gone(plan_duplicates([memory("a", f"{LONG}\n{LONG}\n{LONG}"), memory("b", f"{LONG}\nx")])) == [("a", "b")]


def test_different_texts_of_one_beginning_both_stay():
    assert plan_duplicates([memory("a", f"{LONG}\none"), memory("b", f"{LONG}\ntwo")]) == ()


def test_a_text_that_begins_otherwise_is_no_candidate():
    assert plan_duplicates([memory("a", LONG), memory("b", f"more\n{LONG}")]) == ()


def test_other_scopes_are_never_merged():
    assert plan_duplicates([memory("a", "same"), memory("b", "same", scope="agent:x")]) == ()


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
    assert bool(plan_duplicates(both)) == bool(plan_similar(both).merges) == merged
    assert plan_similar(both).links == ()


def test_memories_without_text_stay():
    assert plan_duplicates([memory("a", ""), memory("b", " \n")]) == ()


def test_a_chain_goes_into_its_end_in_one_run():
    texts = [LONG, f"{LONG}\none", f"{LONG}\none\ntwo"]
    chain = [memory(id, text) for id, text in zip("abc", texts, strict=True)]
    found = plan_duplicates(chain)
    assert gone(found) == [("a", "c"), ("b", "c")]
    assert plan_duplicates(after_merges(chain, found)) == ()


def test_what_lies_in_two_texts_goes_into_the_longer():
    texts = [LONG, f"{LONG}\none", f"{LONG}\nanother"]
    assert gone(plan_duplicates([memory(id, text) for id, text in zip("abc", texts, strict=True)])) == [("a", "c")]


def test_many_texts_of_one_beginning_are_no_matter_of_all_pairs(monkeypatch):
    compared = []
    monkeypatch.setattr(similar, "_near", lambda a, b: compared.append(1) or True)
    many = [memory(f"{n:04}", f"{LONG}\nentry {n}\nnumber {n + 1}") for n in range(2000)]
    assert plan_duplicates(many) == plan_similar(many).merges == ()
    assert len(compared) < 4000


# Merging


def test_a_merge_unites_what_both_have():
    survivor = memory("a", "long", tags=("x", "y"), links=("c", "b"), access_count=2, created=START)
    other = memory(
        "b",
        "long",
        tags=("y", "z"),
        links=("a", "d"),
        access_count=3,
        created=START - timedelta(1),
        merged=("e",),
    )
    assert united(survivor, [other]) == replace(
        survivor,
        tags=("x", "y", "z"),
        links=("c", "d"),
        access_count=5,
        created=START - timedelta(1),
        merged=("b", "e"),
    )


def test_a_survivor_in_the_inbox_takes_category_and_phase_of_the_other_and_does_not_expire():
    inbox = memory("a", "x", phase="inbox", category="inbox", expires=START)
    found = united(inbox, [memory("b", "x", category="lessons")])
    assert (found.phase, found.category, found.expires) == ("organized", "lessons", None)


def test_two_in_the_inbox_expire_at_the_later_time():
    both = [memory(id, "x", phase="inbox", category="inbox", expires=START + timedelta(n)) for n, id in enumerate("ab")]
    assert united(both[0], both[1:]).expires == START + timedelta(1)


def test_links_to_what_was_merged_lead_to_the_survivor():
    known = [memory("a", "x"), memory("b", "x"), memory("c", "y", links=("a", "b")), memory("d", "z")]
    later = START + timedelta(days=1)
    after = after_merges(known, [Merge("b", "a", "")], later)
    assert [(each.id, each.links, each.updated) for each in after] == [
        ("a", (), later), ("c", ("a",), later), ("d", (), None)
    ]  # fmt: skip


def test_links_are_made_both_ways_and_once():
    known = [memory("a", "x", links=("b",)), memory("b", "y"), memory("c", "z")]
    later = START + timedelta(days=1)
    after = after_links(known, [Link("a", "b", 1, "")], later)
    assert [(each.links, each.updated) for each in after] == [(("b",), later), (("a",), later), ((), None)]


def test_ties_hold_from_either_side_and_for_what_was_merged():
    known = [
        memory("a", "x", merged=("old",)),
        memory("b", "y", links=("a",)),
        memory("c", "z", unlinked=("old",)),
    ]
    assert (linked(known), parted(known)) == ({(0, 1)}, {(0, 2)})


# Similar


def test_terms_are_words_and_pairs_of_han_characters():
    text = "Don’t use kube-proxy v1.2, Bob's config.yaml: 数据库 a我"
    assert terms(plain(text)) == {
        "don't", "use", "kube-proxy", "v1.2", "bob", "config.yaml", "数据", "据库", "a"
    }  # fmt: skip


def test_similar_texts_are_linked_with_their_overlap():
    known = [memory("a", "one two three four five six"), memory("b", "one two three four five six seven")]
    assert plan_similar([known[0], replace(known[1], content="seven one two three four five six")]).links == (
        Link("a", "b", 6 / 7, "similar 0.86"),
    )


def test_an_overlap_of_just_four_fifths_is_enough_and_less_is_not():
    four = " ".join(WORDS[:4])
    both = [memory("a", f"{four} x1 x2 x3 x4 y1"), memory("b", f"{four} x1 x2 x3 x4 y2")]
    assert [link.reason for link in plan_similar(both).links] == ["similar 0.80"]
    assert plan_similar([both[0], replace(both[1], content=f"{both[1].content} y3")]) == similar.Similar((), ())


def test_texts_of_few_terms_are_not_compared():
    both = [memory("a", "one two three four"), memory("b", "one two three four")]
    assert plan_similar(both) == similar.Similar((), ())
    both = [memory("a", "one two three four"), memory("b", "one two three four five")]
    assert plan_similar(both).links == ()


def test_similar_texts_one_in_the_other_are_merged_whatever_they_begin_with():
    both = [memory("a", " ".join(WORDS)), memory("b", "zulu\n" + " ".join(WORDS))]
    found = plan_similar(both)
    assert (gone(found.merges), found.links) == ([("a", "b")], ())


def test_a_text_in_another_of_many_more_terms_stays():
    both = [memory("a", " ".join(WORDS[:8])), memory("b", " ".join(WORDS[:8]) + "\n" + " ".join(WORDS[8:]))]
    assert plan_similar(both) == similar.Similar((), ())


def test_a_chain_of_similar_texts_goes_into_its_end_though_its_ends_are_not_similar():
    base = "\n".join(f"base{n} line{n}" for n in range(8))
    texts = [base, f"{base}\nnine ten eleven", f"{base}\nnine ten eleven\ntwelve thirteen fourteen"]
    chain = [memory(id, text) for id, text in zip("abc", texts, strict=True)]
    assert overlap(*(terms(texts[n]) for n in (0, 2))) < 0.8
    found = plan_similar(chain)
    assert gone(found.merges) == [("a", "c"), ("b", "c")]
    assert plan_similar(after_merges(chain, found.merges)) == similar.Similar((), ())


@pytest.mark.parametrize("more", [{"links": ("b",)}, {"unlinked": ("b",)}, {"scope": "agent:x"}])
def test_linked_unlinked_and_foreign_memories_are_not_linked(more):
    both = [memory("a", "one two three four five six", **more), memory("b", "six two three four five one")]
    assert plan_similar(both).links == ()


def test_notes_of_one_form_get_no_more_than_ten_links_each():
    many = [memory(f"{n:03}", f"{' '.join(WORDS)} n{n}") for n in range(60)]
    links = plan_similar(many).links
    ends = [end for pair in pairs(links) for end in pair]
    assert max(map(ends.count, set(ends))) == similar.MOST_LINKS
    assert plan_similar(after_links(many, links)).links == ()


# Whatever the memories are

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


def keeps_every_line(before, after, merges) -> bool:
    end = {merge.id: merge.survivor for merge in merges}
    left = {each.id: each for each in after}
    return all(lines(each.content) <= lines(left[end.get(each.id, each.id)].content) for each in before)


@settings(max_examples=150)
@given(collections(), st.randoms(use_true_random=False))
def test_no_line_is_lost_no_survivor_merged_and_a_second_run_has_nothing_to_do(known, chance):
    for plan in (plan_duplicates, lambda digests: plan_similar(digests).merges):
        merges = plan(known)
        assert not {merge.id for merge in merges} & {merge.survivor for merge in merges}
        after = after_merges(known, merges)
        assert len(after) == len(known) - len(merges)
        assert keeps_every_line(known, after, merges)
        assert plan(after) == ()
        assert plan(chance.sample(known, len(known))) == merges


@settings(max_examples=150)
@given(collections())
def test_after_a_plan_no_pair_is_left_that_a_slow_reading_of_the_rules_would_merge_or_link(known):
    found = plan_similar(known)
    after = after_merges(known, found.merges)
    closed = linked(after) | parted(after)
    expected = []
    for (n, a), (m, b) in combinations(enumerate(after), 2):
        own, other = terms(plain(a.content)), terms(plain(b.content))
        if a.block == b.block and min(len(own), len(other)) >= 5 and overlap(own, other) >= 0.8:
            assert not lines(a.content) <= lines(b.content)
            assert not lines(b.content) <= lines(a.content)
            if (n, m) not in closed:
                expected.append((a.id, b.id))
    assert sorted(pairs(found.links)) == expected
    again = plan_similar(after_links(after, found.links))
    assert (again.merges, again.links) == ((), ())


@settings(max_examples=150)
@given(collections())
def test_after_consolidating_no_pair_of_one_beginning_is_left_one_in_the_other(known):
    after = after_merges(known, plan_duplicates(known))
    for a, b in combinations([each for each in after if normalised(each.content)], 2):
        if a.block == b.block and normalised(a.content)[:100] == normalised(b.content)[:100]:
            assert not lines(a.content) <= lines(b.content)
            assert not lines(b.content) <= lines(a.content)


@pytest.mark.parametrize("vocabulary", [30, 60, 200, 3000])
def test_the_join_finds_what_comparing_all_pairs_finds(vocabulary):
    chance = random.Random(vocabulary)
    known = [[f"w{chance.randrange(vocabulary)}" for _ in range(chance.randrange(5, 40))] for _ in range(150)]
    known += [[word for word in chance.choice(known) if chance.random() < 0.93] for _ in range(150)]
    sets = sorted((frozenset(each) for each in known), key=len)
    join = similar._Join(sets)
    found = set()
    for place in range(len(sets)):
        found |= {(other, place) for other, _ in join.near(place)}
        join.add(place)
    every = {
        (a, b) for a, b in combinations(range(len(sets)), 2) if sets[a] | sets[b] and overlap(sets[a], sets[b]) >= 0.8
    }
    assert found == every
    assert len(found) > 20
