"""Which category a text belongs to (contract 001, 7)."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoranda
from memoranda.config import Settings
from memoranda.jobs.classify import Classifier, classify, examples
from memoranda.jobs.job import MemoryState
from memoranda.note.model import CATEGORIES
from memoranda.text.standing import preference_words

ROWS = json.loads(
    (Path(__file__).parents[1] / "contract/data/classification.json").read_text(encoding="utf-8")
)["rows"]
TABLE = tomllib.loads(
    (Path(memoranda.__file__).parent / "jobs/classify.toml").read_text(encoding="utf-8")
)
TABLE["preferences"] = preference_words()
WEIGHTS = {"strong": 3, "normal": 2, "exact": 2, "weak": 1}
ENTRIES: list[tuple[str, str, str]] = []
for category_name, kinds in TABLE.items():
    for kind_name, words_of_kind in kinds.items():
        ENTRIES += [(word, category_name, kind_name) for word in words_of_kind]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["text"])
def test_a_sentence_gets_its_category(row):
    assert classify(row["text"]).category == row["category"]


def test_each_entry_of_the_table_counts_alone():
    for word, category, kind in ENTRIES:
        assert classify(f"...{word}...") == (category, (word,), {category: WEIGHTS[kind]})


@pytest.mark.parametrize(
    ("texts", "word"),
    [
        (
            [
                "shoulder",
                "reshould",
                "should2",
                "should_",
                "éshould",
                "shouldé",
                "Яshould",
                "pr",
                "Api",
            ],
            None,
        ),
        (
            [
                "应该用should吗",
                "(should)",
                "should-do",
                "should's",
                "아should는",
                "SHOULD",
                "Ｓｈｏｕｌｄ",
            ],
            "should",
        ),
        (["lesson \n\t learned", "LESSON\u3000Learned", "lesson\u00a0learned"], "lesson learned"),
        (["PR"], "PR"),
        (["API"], "API"),
        (["ci"], "CI"),
        (["we’ll use it"], "we'll use"),
    ],
)
def test_a_word_counts_by_itself_in_any_case_but_for_exact_ones_and_with_any_blanks(texts, word):
    for text in texts:
        assert (word in classify(text).words) if word else classify(text).words == (), text


def test_of_equal_scores_the_first_category_of_the_table_wins():
    assert classify("colleague, prefers").category == "preferences"
    assert list(classify("colleague, prefers").scores) == ["preferences", "people"]


def test_a_letter_that_grows_in_lower_case_moves_nothing():
    assert classify("İİİ PR İ decided").scores == {"decisions": 3, "project": 2}


def by_the_rules(text: str) -> dict[str, int]:
    """The scores by a slow reading of the contract: all matches, those inside longer ones dropped."""
    text = unicodedata.normalize("NFKC", text.replace("’", "'"))
    spans = []
    for word, category, kind in ENTRIES:
        sought = re.escape(word).replace(r"\ ", r"\s+")
        if word.isascii():
            sought = rf"(?<![A-Za-z0-9_]){sought}(?![A-Za-z0-9_])"
        flags = 0 if kind == "exact" else re.IGNORECASE
        for match in re.finditer(f"(?=({sought}))", text, flags):
            spans.append((*match.span(1), word, category, kind))
    counted = {
        (word, category, kind)
        for start, end, word, category, kind in spans
        if not any(s <= start and end <= e and e - s > end - start for s, e, *_ in spans)
    }
    scores: dict[str, int] = {}
    for _, category, kind in counted:
        scores[category] = scores.get(category, 0) + WEIGHTS[kind]
    return scores


PIECES = st.one_of(
    st.sampled_from([word for word, _, _ in ENTRIES]),
    st.sampled_from([word.upper() for word, _, _ in ENTRIES]),
    st.sampled_from(["  ", "\n", *"  ，'-_sx9说截i", "do", "not", "don’t", "ed"]),
)


@given(st.lists(PIECES, max_size=14))
def test_any_text_scores_by_the_rules(pieces):
    classified = classify("".join(pieces))
    expected = by_the_rules("".join(pieces))
    assert classified.scores == expected
    order = list(TABLE)
    best = min(
        expected,
        key=lambda category: (-expected[category], order.index(category)),
        default="knowledge",
    )
    assert classified.category == best


SETTINGS = Settings(Path("unused"), Path("unused"), timezone="UTC")


def state(text: str, category: str = "inbox") -> MemoryState:
    return MemoryState("id", "global", text, category, datetime(2026, 5, 6, 10, tzinfo=UTC))


@pytest.mark.promise("001.18.8-classification")
@pytest.mark.parametrize(
    ("text", "layer", "category", "reason"),
    [
        ("lesson: never force push", "table", "lessons", "lessons (lesson)"),
        ("Ela's school play is on 14 May", "time", "date", 'date (time "14 May")'),
        ("Pancakes each Sunday", "time", "habits", 'habits (time "each Sunday")'),
        ("6月9日看牙", "time", "date", 'date (time "6月9日")'),
        (
            "The capital of Austria is Vienna",
            "example",
            "knowledge",
            'knowledge (nearest to "The capital of Canada',
        ),
        ("会修自行车和摩托", "example", "skills", 'skills (nearest to "会修自行车'),
        ("she juggles", "example", "skills", "skills (nearest to"),
        ("zxcv qwer", "fallback", "knowledge", "knowledge (nothing like it is known)"),
    ],
)
def test_the_first_layer_that_says_something_decides_and_says_why(text, layer, category, reason):
    choice = Classifier(SETTINGS).choose(state(text))
    assert (choice.layer, choice.category) == (layer, category)
    assert choice.reason.startswith(reason)


def test_there_are_forty_examples_of_each_category_and_language():
    labelled = examples().labelled
    counts = Counter(
        (category, bool(re.search("[\u4e00-\u9fff]", text))) for text, category in labelled
    )

    assert len(set(labelled)) == len(labelled)
    names = {name for name, _ in counts}
    assert names == {*CATEGORIES} - {"inbox", "reminders"}
    assert len(counts) == 24
    assert min(counts.values()) >= 40


@pytest.mark.parametrize(
    "text",
    [
        "Wifi at the cabin: network Birke, passphrase blaubeere77",
        "Shoe size of Tom: 31",
        "Health insurance number K123456789",
        "Bike frame number WBK4471 B",
        "Anna moved to Hamburg, Eppendorfer Weg 3",
        "Build fails on arm64 when CGO_ENABLED=0; set CGO_ENABLED=1",
        "Landlord: Herr Schulte, 0176 5550142, calls back in the evening",
    ],
)
def test_a_text_without_a_time_is_no_date_however_like_a_sentence_about_one(text):
    assert Classifier(SETTINGS).choose(state(text)).category != "date"


def test_what_is_known_to_be_a_date_still_is_one():
    for text in [text for text, category in examples().labelled if category == "date"]:
        choice = Classifier(SETTINGS).choose(state(text))
        assert choice.category == "date" or choice.layer in ("table", "time"), text


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "?", "🙂", "\ud800", "a" * 100_000, "的" * 100_000, "'" * 50]
)
def test_any_text_has_a_category(text):
    assert Classifier(SETTINGS).choose(state(text)).category in CATEGORIES


# A text, and whether upkeep may choose its category without asking.
SURE = [
    ("I like my tea without sugar", True),
    ("We really like the corner table", True),
    ("They would like a window seat", True),
    ("I'd like shorter answers", True),
    ("She doesn't like phone calls", True),
    ("I prefer trains to planes", True),
    ("My sister Clara plays the cello", True),
    ("We decided to use PostgreSQL", True),
    ("Always use metric units", True),
    ("Sort it just like last time", False),
    ("It works like a charm", False),
    ("Something like a hundred boxes", False),
    ("Looks like rain over the ridge", False),
    ("The lid fits exactly like before", False),
    ("The crates came back half empty", False),
    ("Moss grows on the north side of the wall", False),
    ("The new lamp stands in the hall", False),
    ("qwertz uiop", False),
    # One word in common with an example says little
    ("plain one", False),
    ("plain yogurt", False),
    ("green tea", True),
    ("my tea", True),
]


@pytest.mark.parametrize(("text", "is_sure"), SURE)
def test_a_category_is_chosen_without_asking_only_where_the_choice_is_backed(
    tmp_path, text, is_sure
):
    classifier = Classifier(Settings(tmp_path, tmp_path / "config.yaml"))
    assert classifier.choose_for(text, datetime(2026, 5, 7, tzinfo=UTC)).is_sure is is_sure
