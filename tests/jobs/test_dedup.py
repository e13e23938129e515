"""Duplicates and similar memories: what is merged into what, what is linked (contract 001, 5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.states import NOW, collections, memory
from memoranda.jobs.dedup import (
    lower_form,
    near_pairs,
    overlap,
    pairs_to_ask,
    plan_duplicates,
    plan_similar,
    terms,
)
from memoranda.jobs.job import LINK, MERGE, after_actions, linked_pairs
from memoranda.text.unicode import compared_lines

LONG = "The quarterly report is due at the end of March and goes to the whole board, with all its appendices, at once"
WORDS = [f"word{n}" for n in range(16)]


def ends(actions, verb=MERGE) -> list[tuple[str, str]]:
    """What is merged into what, or linked with what."""
    return [(action.id, action.target) for action in actions if action.verb == verb]


def links(actions) -> list[tuple[str, str]]:
    return ends(actions, LINK)


def test_of_equal_texts_equally_often_read_the_older_stays_then_the_smaller_id():
    later = NOW + timedelta(days=1)
    assert ends(plan_duplicates([memory("a", "same", created=later), memory("b", "same")])) == [
        ("a", "b")
    ]
    assert ends(plan_duplicates([memory("b", "same"), memory("a", "same")])) == [("b", "a")]


SAME = [
    ("Text", "Text."),
    ("Text", "Text!"),
    ("文字。", "文字"),
    ("文字！", "文字。"),
    ("a\r\nb\r\n", "a\nb"),
    ("a  b", "a b"),
    ("a \t b", "a b"),
    ("a   \nb\t", "a\nb"),
    ("\n\n a\n\n", " a"),
    ("one\ntwo", "one\ntwo\nthree"),
    ("two\nthree", "one\ntwo\nthree"),
    ("one\nthree", "one\ntwo\nthree."),
    ("one\nthree.", "one\ntwo\nthree"),
    ("same text here", "Same  text here"),
    ("The key lies under the mat.", "the key lies under the mat"),
    ("a\n\nb", "a\nb"),
    ("  - x\n  - y", "list\n  - x\n  - y"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_texts_that_differ_in_what_does_not_count_are_merged(first, second):
    for texts in ((first, second), (second, first)):
        assert (
            len(plan_duplicates([memory(id, text) for id, text in zip("ab", texts, strict=True)]))
            == 1
        )


TRAPS = [
    ("Password: Hunter2", "Password: hunter2"),
    ("Key AKIAxYz", "Key AKIAXYZ"),
    ("Use -v", "Use -V"),
    ("A", "a"),
    ("curl -O file", "curl -o file"),
    ("export Path=x", "export PATH=x"),
    ("Ünal", "ünal"),
    ("Polish", "polish"),
    ("if x:\n    stop()", "if x:\nstop()"),
    ("if x:\n    a()\n    b()", "if x:\n    a()\nb()"),
    (" a", "a"),
    ("- a\n  - b", "- a\n- b"),
    ("\ta", "    a"),
    ("key:\n  sub: 1", "key:\nsub: 1"),
    ("  x", "   x"),
    ("1. open\n2. close", "2. close\n1. open"),
    ("wash\nrinse\ndry", "wash\ndry\nrinse"),
    ("a\nb\na", "a\na\nb"),
    ("stop\nlift\nturn", "lift\nstop\nturn\nend"),
    ("b\na", "x\na\nb\ny"),
    ("a\na", "a\nb"),
    ("10⁵ cells", "105 cells"),
    ("H₂O", "H2O"),
    ("x² + 1", "x2 + 1"),
    ("CO₂", "CO2"),
    ("5 m²", "5 m2"),
    ("½", "1⁄2"),
    ("Ⅳ", "IV"),
    ("①", "1"),
    ("ﬁle", "file"),
    ("Ａ", "A"),
    ("１", "1"),
    ("㎏", "kg"),
    ("™", "TM"),
    ("Code 4417", "Code 4471"),
    ("Room 12", "Room 21"),
    ("3.14", "31.4"),
    ("1,000", "1.000"),
    ("v1.2", "v12"),
    ("0.5 l", "05 l"),
    ("-5 degrees", "5 degrees"),
    ("555-0142", "555-0412"),
    ("2026-05-07", "2026-07-05"),
    ("5 mg", "5 g"),
    ("5 mg", "5 µg"),
    ("10 km", "10 m"),
    ("20 °C", "20 °F"),
    ("3 MB", "3 Mb"),
    ("10 kW", "10 kWh"),
    ("I eat meat", "I do not eat meat"),
    ("He can swim", "He can't swim"),
    ("我吃肉", "我不吃肉"),
    ("Use it", "Never use it"),
    ("Meet on Monday", "Meet on Tuesday"),
    ("会议在周三", "会议在周二"),
    ("Tea, no milk", "Tea, no sugar"),
    ("Call Anna", "Call Hanna"),
    ("left valve", "right valve"),
    ("他来", "她来"),
    ("Ben pays Tom", "Tom pays Ben"),
    ("resume", "résumé"),
    ("Muller", "Müller"),
    ("año", "ano"),
    ("naïve", "naive"),
    ("Strasse", "Straße"),
    ("👍", "👎"),
    ("ok 🙂", "ok 🙃"),
    ("👩‍🚀", "👨‍🚀"),
    ("❤️", "❤"),
    ("wow!!", "wow"),
    ("Really?", "Really."),
    ("a, b", "a b"),
    ("...", "."),
    ("a;b", "a:b"),
    ("'x'", '"x"'),
    ("a-b", "a–b"),
    ("don't", "don’t"),
    ("one.\ntwo", "one\ntwo"),
    ("rm -rf ./a", "rm -rf /a"),
    ("a\u00a0b", "ab"),
    ("简体", "簡體"),
    ("a\\nb", "a\nb"),
    ("http://x/a", "http://x/A"),
    ("#tag", "tag"),
    ("*bold*", "bold"),
    ("x = 1", "x == 1"),
    ("a && b", "a & b"),
    ("Use it now", "USE it now"),
    ("Ab cd", "ab cd"),
    ("A is bigger than b", "a is bigger than b"),
    ("Sw0rd fish is it", "sw0rd fish is it"),
    ("The key is AbC", "The key is abC"),
    ("McX is my key", "mcX is my key"),
    ("Make -B all now", "make -B all now"),
    ("Run my_job at night", "run my_job at night"),
    ("Élan is here", "élan is here"),
    ("Call tom at home", "call Tom at home"),
    ("Path=x is set here", "path=x is set here"),
    ("One two\nthree", "one two\nthree"),
    ("Correct-horse battery staple now", "correct-Horse battery staple now"),
    ("Git push /a b", "git push /a b"),
    ("Say: Open sesame please", "Say: open sesame please"),
    ("Room Bc is free", "room bc is free"),
]


@pytest.mark.promise("001.18.6-merging")
@pytest.mark.parametrize(("first", "second"), TRAPS)
def test_texts_that_differ_in_what_counts_are_not_merged(first, second):
    assert first != second
    assert plan_duplicates([memory("a", first), memory("b", second)]) == []


NEAR = [
    ("Ben is allergic to peanuts.", "Ben has a peanut allergy."),
    ("Our flat is on the third floor, no lift.", "We live on the third floor without a lift."),
    ("The server backs up every night at 2.", "Every night at 2 a backup of the server runs."),
    (
        "My sister Clara lives in Lyon with her two cats.",
        "Clara, my sister, has two cats and lives in Lyon.",
    ),
    ("We fly from Basel to Berlin on Monday", "We all fly from Basel to Berlin on Monday"),
    ("服务器每天凌晨两点备份。", "每天凌晨两点，服务器会自动备份。"),
]
FAR = [
    ("Anna likes tea more than coffee.", "Anna likes coffee more than tea."),
    ("The meeting is on Monday at ten.", "The meeting is on Tuesday at ten."),
    ("Use --force to overwrite the file.", "Never use --force to overwrite the file."),
    (
        "My brother Max lives in Bern with his dog.",
        "My brother Max lives in Rome with his dog and cat.",
    ),
    ("The backup runs before the update.", "The update runs before the backup."),
    ("她喜欢喝茶，不喜欢咖啡。", "她喜欢咖啡，不喜欢喝茶。"),
    ("Dose: 5 mg twice a day", "Dose: 5 g twice a day"),
    ("The key is AbC-12", "The key is abc-12"),
    ("User prefers tabs over spaces", "User prefers spaces over tabs now"),
    ("We fly from Basel to Berlin on Monday", "On Monday we fly from Berlin to Basel"),
]


@pytest.mark.parametrize(
    ("pair", "is_near"),
    [(text_pair, True) for text_pair in NEAR] + [(text_pair, False) for text_pair in FAR],
)
def test_near_are_texts_that_say_the_same_in_other_words(pair, is_near):
    pairs = near_pairs([memory(id, text) for id, text in zip("ab", pair, strict=True)])
    assert [(a, b) for _, a, b in pairs] == ([("a", "b")] if is_near else [])


def test_near_texts_are_linked_once_and_never_merged():
    both = [memory(id, text) for id, text in zip("ab", NEAR[0], strict=True)]
    (link,) = plan_similar(both)

    assert link.verb == LINK
    assert link.id == "a"
    assert link.target == "b"
    assert link.reason == "near 1.00"
    assert plan_similar(after_actions(both, [link])) == []
    assert near_pairs(after_actions(both, [link]), linked=True) != []
    assert near_pairs([replace(both[0], unlinked=("b",)), both[1]], linked=True) == []


def test_the_longer_text_stays_even_when_the_shorter_was_read_more_often():
    short = LONG
    long = f"{LONG}\nand more"
    (merge,) = plan_duplicates([memory("a", short, access_count=9), memory("b", long)])
    assert (merge.id, merge.target, merge.reason) == ("a", "b", "all its lines are in b")


@pytest.mark.parametrize(
    ("first_keys", "second_keys", "merged"),
    [
        ({"due_at": NOW}, {"due_at": NOW}, True),
        ({"due_at": NOW, "repeat": "weekly"}, {"due_at": NOW, "repeat": "weekly"}, True),
        ({"due_at": NOW}, {"due_at": NOW + timedelta(1)}, False),
        ({"due_at": NOW}, {"due_at": NOW, "repeat": "weekly"}, False),
        ({"due_at": NOW}, {"category": "project"}, False),
        ({}, {"category": "project"}, False),
    ],
)
def test_reminders_are_merged_with_reminders_of_equal_time_and_rule_alone(
    first_keys, second_keys, merged
):
    text = "pay the rent to the landlord"
    both = [
        memory("a", text, **{"category": "reminders"} | first_keys),
        memory("b", text, **{"category": "reminders"} | second_keys),
    ]

    assert bool(plan_duplicates(both)) == merged
    assert bool(plan_similar(both)) == merged
    assert links(plan_similar(both)) == []


def test_what_lies_in_two_texts_goes_into_the_longer():
    texts = [LONG, f"{LONG}\none", f"{LONG}\nanother"]
    assert ends(
        plan_duplicates([memory(id, text) for id, text in zip("abc", texts, strict=True)])
    ) == [("a", "c")]


def test_terms_are_words_and_pairs_of_han_characters():
    text = "Don’t use kube-proxy v1.2, Bob's config.yaml: 数据库 a我"
    assert terms(lower_form(text)) == {
        "don't",
        "use",
        "kube-proxy",
        "v1.2",
        "bob",
        "config.yaml",
        "数据",
        "据库",
        "a",
    }


def test_an_overlap_of_just_four_fifths_is_enough_and_less_is_not():
    four = " ".join(WORDS[:4])
    both = [memory("a", f"{four} x1 x2 x3 x4 y1"), memory("b", f"{four} x1 x2 x3 x4 y2")]
    assert [link.reason for link in plan_similar(both)] == ["similar 0.80"]
    assert plan_similar([both[0], replace(both[1], content=f"{both[1].content} y3")]) == []


LINES = [" ".join(WORDS[n : n + 6]) for n in range(0, 10, 2)] + [
    LONG,
    "Zulu",
    "数据库迁移前先备份，数据库迁移后再检查",
    "",
]
MEMORIES = st.builds(
    lambda body, shout, **more: replace(
        memory("", "\n".join(map(str.upper, body) if shout else body)), **more
    ),
    body=st.lists(st.sampled_from(LINES), min_size=1, max_size=9),
    shout=st.booleans(),
    scope=st.sampled_from(["global", "global", "agent:x"]),
    access_count=st.integers(0, 2),
    category=st.sampled_from(["project", "people", "reminders"]),
    created=st.integers(0, 2).map(lambda days: NOW + timedelta(days)),
    due_at=st.sampled_from([None, NOW]),
)


def holds(inner: str, outer: str) -> bool:
    """A slow reading of the rule: all lines of one are lines of the other in order."""
    for cut in (0, 1):
        inner_lines, outer_lines = (list(compared_lines(text)) for text in (inner, outer))
        if cut:
            inner_lines, outer_lines = (
                [*lines[:-1], lines[-1].removesuffix(".")] if lines else []
                for lines in (inner_lines, outer_lines)
            )
        at = 0
        for line in inner_lines:
            if line in outer_lines[at:]:
                at = outer_lines.index(line, at) + 1
            else:
                at = len(outer_lines) + 1
        if inner_lines and at <= len(outer_lines):
            return True
    return False


@given(collections(MEMORIES), st.randoms(use_true_random=False))
def test_no_line_is_lost_no_survivor_merged_and_a_second_run_has_nothing_to_do(
    drawn_memories, chance
):
    merges = plan_duplicates(drawn_memories)
    into = dict(ends(merges))
    assert not into.keys() & set(into.values())
    after = after_actions(drawn_memories, merges)
    contents_left = {remaining.id: remaining.content for remaining in after}
    assert len(after) == len(drawn_memories) - len(merges)
    for drawn in drawn_memories:
        if drawn.id in into:
            assert holds(drawn.content, contents_left[into[drawn.id]])
    assert plan_duplicates(after) == []
    assert plan_duplicates(chance.sample(drawn_memories, len(drawn_memories))) == merges
    actions = [action for action in plan_similar(drawn_memories) if action.verb == MERGE]
    assert actions == plan_duplicates(drawn_memories, "dream")


@given(collections(MEMORIES))
def test_after_a_plan_no_pair_is_left_that_a_slow_reading_of_the_rules_would_merge_or_link(
    drawn_memories,
):
    actions = plan_similar(drawn_memories)
    after = after_actions(drawn_memories, [action for action in actions if action.verb == MERGE])
    closed = linked_pairs(after) | linked_pairs(after, "unlinked")
    expected = []
    for (n, a), (m, b) in combinations(enumerate(after), 2):
        if a.block != b.block:
            continue
        assert not holds(a.content, b.content)
        assert not holds(b.content, a.content)
        first_terms = terms(lower_form(a.content))
        second_terms = terms(lower_form(b.content))
        is_long_enough = min(len(first_terms), len(second_terms)) >= 5
        if is_long_enough and overlap(first_terms, second_terms) and (n, m) not in closed:
            expected.append((a.id, b.id))

    assert (
        sorted(links([action for action in actions if action.reason.startswith("similar")]))
        == expected
    )
    assert plan_similar(after_actions(drawn_memories, actions)) == []


# What a diary of trips says again and again.
TRIPS = [
    "Nora visited the harbour with her aunt and felt very happy there.",
    "Nora visited the old quarry behind the village with two friends and felt very happy there.",
    "Nora visited the castle and felt very happy there.",
    "With the whole class Nora visited the glacier and felt very happy there, though it rained.",
    "Nora visited a small theatre in Ulm with her neighbour Ines and felt very happy there.",
    "Nora visited the orchard at noon and felt very happy there.",
    "On Sunday Nora visited the lighthouse with her cousin and felt very happy there.",
]
STATEMENTS = [
    "My sister Clara lives in Lyon with her two cats.",
    "Clara, my sister, has two cats and lives in Lyon.",
    "The spare key hangs behind the blue door.",
    "The spare key hangs behind the blue door of the shed.",
    "Tilda keeps bees and sells the honey at the Saturday market.",
    "Tilda keeps geese and sells the eggs at the Saturday market.",
]


def test_a_phrase_that_many_memories_share_is_no_question():
    memories = [memory(f"m{number}", text) for number, text in enumerate(TRIPS)]
    assert near_pairs(memories)
    assert pairs_to_ask(memories) == []


def test_what_says_the_same_is_asked_about_among_many():
    texts = [*TRIPS, *STATEMENTS]
    memories = [memory(f"m{number:02}", text) for number, text in enumerate(texts)]
    asked_pairs = {(a, b) for _, a, b in pairs_to_ask(memories)}
    first = len(TRIPS)

    assert (f"m{first:02}", f"m{first + 1:02}") in asked_pairs
    assert (f"m{first + 2:02}", f"m{first + 3:02}") in asked_pairs
    assert (f"m{first + 4:02}", f"m{first + 5:02}") not in asked_pairs
    for pair in asked_pairs:
        assert pair[0] >= f"m{first:02}"


# Of the third pair too few words are the same: it is linked, and nobody is asked
@pytest.mark.parametrize("pair", [*NEAR[:2], *NEAR[3:]])
def test_two_memories_that_say_the_same_in_other_words_are_a_question(pair):
    memories = [memory(id, text) for id, text in zip("ab", pair, strict=True)]
    assert [(a, b) for _, a, b in pairs_to_ask(memories)] == [("a", "b")]


@pytest.mark.parametrize(
    ("text", "other_text"),
    [
        (
            "In Heron, the mobile client runs out of memory at night.",
            "In Mobile sync, the mobile client runs out of memory at night.",
        ),
        (
            "When the certificate fails in Heron: normalise line ends at the door.",
            "When the release script fails in Heron: normalise line ends at the door.",
        ),
        (
            "We decided that Ledger will normalise line ends.",
            "We decided that Data room will normalise line ends.",
        ),
        (
            "Heron: the nightly importer counts the same row twice.",
            "The nightly importer counts the same row twice in Mobile sync.",
        ),
        (
            "Lena Fischer keeps the spare key of the cellar.",
            "Priya keeps the spare key of the cellar.",
        ),
        ("北京分部的打印机每周二下午维护", "上海的打印机每周二下午维护"),
    ],
)
def test_two_memories_about_two_things_are_no_question(text, other_text):
    memories = [memory("a", text), memory("b", other_text)]
    assert pairs_to_ask(memories) == []


@pytest.mark.parametrize(
    ("text", "other_text"),
    [
        (
            "In Heron, the mobile client runs out of memory at night.",
            "In Heron, the mobile client always runs out of memory during the night.",
        ),
        (
            "Lena moved to Porto in spring and works from home.",
            "Lena recently relocated to Porto in spring and works from home.",
        ),
        (
            "The nightly importer of Ledger counts the same row twice.",
            "Ledger: the nightly importer counts the same row twice.",
        ),
        ("北京分部的打印机每周二下午维护", "每周二下午维护北京分部的打印机"),
    ],
)
def test_two_memories_about_one_thing_in_other_words_are_a_question(text, other_text):
    memories = [memory("a", text), memory("b", other_text)]
    assert [(a, b) for _, a, b in pairs_to_ask(memories)] == [("a", "b")]
