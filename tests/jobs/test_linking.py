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


def two(first_fields: dict, second_fields: dict | None = None) -> list[MemoryState]:
    """Two memories of different categories."""
    return [
        memory("a", **first_fields),
        memory(
            "b",
            **({"category": "people"} | (first_fields if second_fields is None else second_fields)),
        ),
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


def reasons(memories: list[MemoryState]) -> list[str]:
    return [link.reason for link in plan_links(memories)]


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
    ("first_text", "second_text", "linked"),
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
def test_a_shared_name_links(first_text, second_text, linked):
    assert reasons(two({"content": first_text}, {"content": second_text})) == linked


def test_a_name_many_have_links_nothing():
    memories = [memory(str(n), f"ask Ama {n}", CATEGORIES[n % 4]) for n in range(6)]
    assert len(reasons(memories[:5])) > 0
    assert reasons(memories) == []


@pytest.mark.parametrize(
    ("fields", "reason"),
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
def test_evidence_of_two_points_makes_a_link(fields, reason):
    assert reasons(two(fields)) == [reason]


def test_tags_and_targets_are_one_in_whatever_case_and_shown_as_the_first_has_them():
    first_fields = {"tags": ("Ops",), "targets": ("Home Lab",)}
    second_fields = {"tags": ("ops",), "targets": ("home lab ",), "category": "people"}
    assert reasons(two(first_fields, second_fields)) == ['tag "Ops", link "Home Lab"']


def test_of_many_shared_terms_three_count_the_rarest():
    memories = two({"content": "grafana prometheus loki-stack tempo2"})
    memories.append(memory("c", "grafana", "lessons"))
    assert reasons(memories) == ['term "loki-stack", term "prometheus", term "tempo2"']


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
    memories = two({"content": "grafana prometheus"})
    assert (
        plan_links([replace(memories[0], merged=("old",)), replace(memories[1], unlinked=("old",))])
        == []
    )


def many_pairs() -> list[MemoryState]:
    memories = []
    for n in range(60):
        text = f"term{n}x term{n}y"
        memories += [memory(f"{n:02}a", text), memory(f"{n:02}b", text, "people")]
    return memories


def test_a_run_makes_fifty_links_a_second_with_the_same_clock_none_a_later_one_the_rest():
    memories = many_pairs()
    first = plan_links(memories, NOW)
    assert len(first) == 50
    memories = after_actions(memories, first, NOW)
    assert plan_links(memories, NOW) == []
    rest = plan_links(memories, LATER)
    assert len(rest) == 10
    assert plan_links(after_actions(memories, rest, LATER), LATER) == []


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


class Compared:
    """Memories in the order of their ids, with the evidence that links are planned by."""

    def __init__(self, memories: list[MemoryState]):
        candidates = [state for state in memories if state.category != "reminders"]
        self.memories = sorted(candidates, key=lambda state: state.id)
        self.words = []
        self.pairs = []
        self.tags = []
        # How many memories have a word or pair of words, and a tag
        self.counts = Counter[str]()
        self.with_tag = Counter[str]()
        for state in self.memories:
            text = lower_form(state.content)
            self.words.append(evidence_words(text))
            self.pairs.append(evidence_pairs(text))
            self.tags.append({tag.lower() for tag in state.tags})
            self.counts.update(self.words[-1] | self.pairs[-1])
            self.with_tag.update(self.tags[-1])

    def score(self, a: int, b: int) -> float:
        """How strongly the memories at two positions belong together."""
        most = max(5, len(self.memories) / 100)
        shared_words = self.words[a] & self.words[b]
        shared_pairs = self.pairs[a] & self.pairs[b]
        rare = {term for term in shared_words | shared_pairs if self.counts[term] <= most}
        shared_phrases = phrases(self.memories[a].content, rare & self.pairs[a])

        groups = len(rare & self.words[a]) + len(shared_phrases)
        groups += sum(len(phrase) > 3 for phrase in shared_phrases)
        shared_tags = sum(self.with_tag[tag] <= 10 for tag in self.tags[a] & self.tags[b])
        shared_targets = set(self.memories[a].targets) & set(self.memories[b].targets)
        return min(3, groups) + shared_tags + 1.5 * len(shared_targets)

    def related(self) -> list[tuple[int, int, float]]:
        """The pairs of positions that may be linked, with their scores."""
        pairs = []
        for a, b in combinations(range(len(self.memories)), 2):
            first = self.memories[a]
            second = self.memories[b]
            score = self.score(a, b)
            if first.scope == second.scope and first.category != second.category and score >= 2:
                pairs.append((a, b, score))
        return pairs


def are_linked(first: MemoryState, second: MemoryState) -> bool:
    return second.id in first.links or first.id in second.links


def were_unlinked(first: MemoryState, second: MemoryState) -> bool:
    return second.id in first.unlinked or first.id in second.unlinked


def by_the_rules(memories: list[MemoryState], now: datetime) -> list[tuple[str, str, float]]:
    """All pairs compared, best first under the caps."""
    compared = Compared(memories)
    related = compared.related()
    link_counts = Counter[int]()
    links_left = linking.MOST_LINKS_PER_RUN
    for a, b, _ in related:
        first = compared.memories[a]
        second = compared.memories[b]
        if are_linked(first, second):
            link_counts.update((a, b))
            links_left -= first.updated == now == second.updated
    links = []
    for a, b, points in sorted(related, key=lambda pair: (-pair[2], pair[:2])):
        first = compared.memories[a]
        second = compared.memories[b]
        if are_linked(first, second) or were_unlinked(first, second):
            continue
        if link_counts[a] < 3 and link_counts[b] < 3 and len(links) < links_left:
            link_counts.update((a, b))
            links.append((first.id, second.id, points))
    return links


@given(collections(MEMORIES), st.randoms(use_true_random=False))
def test_the_plan_is_that_of_comparing_all_pairs_and_a_second_run_has_none(memories, chance):
    links = plan_links(memories, NOW)
    assert [(link.id, link.target, points(link.reason)) for link in links] == by_the_rules(
        memories, NOW
    )
    assert plan_links(chance.sample(memories, len(memories)), NOW) == links
    after = after_actions(memories, links, NOW)
    assert plan_links(after, NOW) == []
    assert plan_links(after, LATER) == []
    assert by_the_rules(after, LATER) == []
