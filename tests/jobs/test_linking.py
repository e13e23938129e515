"""Cross-category analysis: evidence, score, caps, and a second run (contract 001, 6)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.states import NOW, collections, memory
from memoranda.jobs import linking
from memoranda.jobs.dedup import lower_form
from memoranda.jobs.job import MemoryState, after_actions
from memoranda.jobs.linking import evidence_pairs, evidence_words, phrases, plan_links

LATER = NOW + timedelta(hours=1)
CATEGORIES = ("people", "project", "lessons", "skills")


def two(own: dict, other: dict | None = None) -> list[MemoryState]:
    """Two memories of different categories."""
    return [
        memory("a", **own),
        memory("b", **({"category": "people"} | (own if other is None else other))),
    ]


def points(reason: str) -> float:
    """The score of a link's evidence."""
    terms = reason.count('term "') + len(re.findall('term "[\u4e00-\u9fff]{4}', reason))
    return (
        reason.count('tag "')
        + 1.5 * reason.count('link "')
        + 2 * reason.count('name "')
        + min(3, terms)
    )


def reasons(known: list[MemoryState]) -> list[str]:
    return [link.reason for link in plan_links(known)]


@pytest.mark.parametrize(
    "word",
    [
        "kubernetes",
        "qx7z",
        "v2",
        "kube-proxy",
        "max_retries",
        "config.yaml",
        "3.11.2",
        "2026-05-07",
    ],
)
def test_long_words_and_marked_ones_are_terms(word):
    assert evidence_words(f"({word})") == {word}


@pytest.mark.parametrize(
    "word", ["because", "don't", "cat", "15", "3.5", "e.g", "[[kubernetes]]", "![[v2|kubernetes]]"]
)
def test_stop_words_short_words_numbers_and_wikilinks_are_none(word):
    assert evidence_words(f"({word})") == set()


def test_a_curly_apostrophe_and_a_possessive_make_no_other_term():
    assert evidence_words(lower_form("Kubernetes’s Don’t")) == {"kubernetes"}


def test_pairs_of_han_characters_are_terms_unless_they_say_nothing():
    assert evidence_pairs("我们的数据") == {"们的", "的数", "数据"}


# At the beginning of a sentence a word may have a capital
@pytest.mark.parametrize(
    ("own", "other", "linked"),
    [
        ("Kofi's wife is called Ama.", "Ama's recital is in spring", ['name "Ama"']),
        (
            "Our doctor is Dr. Lindqvist",
            "see Lindqvist soon",
            ['name "Lindqvist", term "lindqvist"'],
        ),
        ("Dentist: Dr. Lind, 555 01 02", "Appointment with Dr. Lind", ['name "Lind", term "lind"']),
        ("ask Mrs Okafor", "Mrs Bell knows", []),
        (
            "Apples are red",
            "Apples grow there",
            [],
        ),
        ("we meet on Mondays", "not on Mondays", []),
        ("I saw it in May", "done in May", []),
        ("we know that I may", "so I may", []),
    ],
)
def test_a_shared_name_links(own, other, linked):
    assert reasons(two({"content": own}, {"content": other})) == linked


def test_a_name_many_have_links_nothing():
    known = [memory(str(n), f"ask Ama {n}", CATEGORIES[n % 4]) for n in range(6)]
    assert len(reasons(known[:5])) > 0
    assert reasons(known) == []


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"content": "grafana", "tags": ("Ops",)}, 'tag "Ops", term "grafana"'),
        (
            {"content": "see [[Home Lab]], grafana", "targets": ("Home Lab",)},
            'link "Home Lab", term "grafana"',
        ),
        ({"tags": ("ops", "infra")}, 'tag "infra", tag "ops"'),
        ({"tags": ("ops",), "targets": ("Lab",)}, 'tag "ops", link "Lab"'),
        ({"targets": ("Lab", "Box")}, 'link "Box", link "Lab"'),
    ],
)
def test_evidence_of_two_points_makes_a_link(own, reason):
    assert reasons(two(own)) == [reason]


def test_tags_and_targets_are_one_in_whatever_case_and_shown_as_the_first_has_them():
    own = {"tags": ("Ops",), "targets": ("Home Lab",)}
    other = {"tags": ("ops",), "targets": ("home lab ",), "category": "people"}
    assert reasons(two(own, other)) == ['tag "Ops", link "Home Lab"']


def test_of_many_shared_terms_three_count_the_rarest():
    known = two({"content": "grafana prometheus loki-stack tempo2"})
    known.append(memory("c", "grafana", "lessons"))
    assert reasons(known) == ['term "loki-stack", term "prometheus", term "tempo2"']


def test_neighbouring_shared_pairs_of_han_characters_count_once_and_four_characters_twice():
    assert reasons(two({"content": "数据库"})) == []
    assert reasons(two({"content": "数据库迁移"})) == ['term "数据库迁移"']
    assert reasons(two({"content": "数据库迁移，回滚方案"})) == [
        'term "回滚方案", term "数据库迁移"'
    ]
    apart = {"content": "方案回滚：迁移数据库", "category": "people"}
    assert reasons(two({"content": "数据库迁移，回滚方案"}, apart)) == [
        'term "回滚", term "数据库", term "方案"'
    ]


def test_a_term_of_more_than_five_memories_is_rare_only_among_many():
    six = [memory(f"{n:02}", "grafana prometheus", f"category{n}") for n in range(6)]
    assert reasons(six) == []
    assert reasons([*six, *(memory(f"x{n}") for n in range(593))]) == []
    assert len(reasons([*six, *(memory(f"x{n}") for n in range(594))])) == 7


def test_a_pair_unlinked_before_a_merge_stays_unlinked():
    known = two({"content": "grafana prometheus"})
    assert (
        plan_links([replace(known[0], merged=("old",)), replace(known[1], unlinked=("old",))]) == []
    )


def many_pairs() -> list[MemoryState]:
    return [
        each
        for n in range(60)
        for each in (
            memory(f"{n:02}a", f"term{n}x term{n}y"),
            memory(f"{n:02}b", f"term{n}x term{n}y", "people"),
        )
    ]


def test_a_run_makes_fifty_links_a_second_with_the_same_clock_none_a_later_one_the_rest():
    known = many_pairs()
    first = plan_links(known, NOW)
    assert len(first) == 50
    known = after_actions(known, first, NOW)
    assert plan_links(known, NOW) == []
    rest = plan_links(known, LATER)
    assert len(rest) == 10
    assert plan_links(after_actions(known, rest, LATER), LATER) == []


PIECES = [
    "grafana",
    "prometheus",
    "tempo2",
    "loki-stack",
    "cat",
    "because",
    "数据库迁移",
    "回滚方案",
    "迁移",
    "，",
]
MEMORIES = st.builds(
    memory,
    id=st.just(""),
    content=st.lists(st.sampled_from(PIECES), max_size=5).map(" ".join),
    category=st.sampled_from([*CATEGORIES, "reminders"]),
    scope=st.sampled_from(["global", "global", "agent:x"]),
    tags=st.lists(st.sampled_from(["ops", "infra", "Ops"]), max_size=2).map(tuple),
    targets=st.lists(st.sampled_from(["Lab", "Box"]), max_size=2).map(tuple),
    updated=st.sampled_from([None, NOW]),
)


def by_the_rules(known: list[MemoryState], now: datetime) -> list[tuple[str, str, float]]:
    """All pairs compared, best first under the caps."""
    known = sorted(
        (each for each in known if each.category != "reminders"), key=lambda each: each.id
    )
    words = [evidence_words(lower_form(each.content)) for each in known]
    pairs = [evidence_pairs(lower_form(each.content)) for each in known]
    tags = [{tag.lower() for tag in each.tags} for each in known]
    counts = Counter(term for n in range(len(known)) for term in words[n] | pairs[n])
    with_tag = Counter(tag for each in tags for tag in each)

    def score(a: int, b: int) -> float:
        rare = {
            t
            for t in (words[a] & words[b]) | (pairs[a] & pairs[b])
            if counts[t] <= max(5, len(known) / 100)
        }
        said = phrases(known[a].content, rare & pairs[a])
        groups = len(rare & words[a]) + len(said) + sum(len(each) > 3 for each in said)
        shared_tags = sum(with_tag[tag] <= 10 for tag in tags[a] & tags[b])
        return (
            min(3, groups) + shared_tags + 1.5 * len(set(known[a].targets) & set(known[b].targets))
        )

    related = {
        (a, b): score(a, b)
        for a, b in combinations(range(len(known)), 2)
        if known[a].scope == known[b].scope
        and known[a].category != known[b].category
        and score(a, b) >= 2
    }
    has = Counter[int]()
    left = linking.MOST_LINKS_PER_RUN
    for a, b in related:
        if known[b].id in known[a].links or known[a].id in known[b].links:
            has.update((a, b))
            left -= known[a].updated == now == known[b].updated
    found = []
    for (a, b), points in sorted(related.items(), key=lambda item: (-item[1], item[0])):
        own = known[a]
        other = known[b]
        if other.id in (*own.links, *own.unlinked) or own.id in (*other.links, *other.unlinked):
            continue
        if has[a] < 3 and has[b] < 3 and len(found) < left:
            has.update((a, b))
            found.append((known[a].id, known[b].id, points))
    return found


@given(collections(MEMORIES), st.randoms(use_true_random=False))
def test_the_plan_is_that_of_comparing_all_pairs_and_a_second_run_has_none(known, chance):
    links = plan_links(known, NOW)
    assert [(link.id, link.target, points(link.reason)) for link in links] == by_the_rules(
        known, NOW
    )
    assert plan_links(chance.sample(known, len(known)), NOW) == links
    after = after_actions(known, links, NOW)
    assert plan_links(after, NOW) == []
    assert plan_links(after, LATER) == by_the_rules(after, LATER) == []
