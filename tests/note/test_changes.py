"""Sentences that end what was said before: moves, jobs and roles, in English and Chinese."""

from __future__ import annotations

import pytest

from memoranda.note.changes import changes, changes_in, is_of_an_earlier_year, item_changes
from memoranda.note.claims import (
    Claim,
    ClaimKind,
    claim_of,
    ends,
    item_claims,
    sentences_in,
)
from memoranda.note.model import Observation

ENDED = [
    ("Anna lives in Porto", "Anna moved to Lisbon"),
    ("Anna is based in Porto", "Anna has just moved from Porto to Lisbon in March."),
    ("I live in Porto", "User relocated to Lisbon"),
    ("Anna moved to Porto", "Anna lives in Lisbon"),
    ("The shop is located in Porto", "The shop moved to Lisbon"),
    ("The API is hosted on Heroku", "The API migrated to Fly.io"),
    ("Anna works at Acme", "Anna left Acme for Initech"),
    ("Anna works for Acme", "Anna started working at Initech"),
    ("Anna works at Acme", "Anna took a new job at Initech"),
    ("Anna works at Acme", "Anna joined Initech as a data engineer"),
    ("Jonas is our designer", "Jonas was promoted to head of design"),
    ("Jonas is a nurse", "Jonas is now a teacher"),
    ("Jonas works as a nurse", "Jonas became a teacher"),
    ("I'm a junior developer", "I'm now the CTO"),
    ("Anna lives in Porto", "- **Anna** moved to [[Lisbon]] #people"),
    ("Anna lives in Lisbon", "Anna moved back to Porto"),
    ("Anna works at Acme", "Anna left the company for Initech"),
    ("Anna works at Acme", "Anna left Acme for Paris Consulting"),
    ("王芳住在上海", "王芳搬到了杭州。"),
    ("王芳住在上海", "王芳最近搬去杭州了"),
    ("总部位于上海", "总部迁到杭州"),
    ("李雷在百度工作", "李雷跳槽到了字节跳动"),
    ("李雷就职于百度", "李雷现在在字节跳动上班"),
    ("李雷是设计师", "李雷现在是产品经理"),
    ("李雷担任组长", "李雷升任技术总监了"),
]
NOT_ENDED = [
    ("Anna lives in Porto", "Anna moved to Porto"),
    ("Anna lives in Porto", "Ben moved to Lisbon"),
    ("Anna lives in Porto", "Anna moved to the platform team"),
    ("Anna lives in Porto", "Anna moved to Team Blue"),
    ("Anna lives in Porto", "Anna might have moved to Lisbon"),
    ("Anna lives in Porto", "Anna never moved to Lisbon"),
    ("Anna lives in Porto", "Anna wants to say she moved to Lisbon"),
    ("Anna lives in Porto", "Anna moved to Lisbon ten years ago"),
    ("Anna lives in Porto", "Anna moved to Lisbon for a month"),
    ("Anna lives in Porto", "She moved to Lisbon"),
    ("Anna lives in Porto", "The standup of Anna moved to Tuesday"),
    ("Jonas is our designer", "Jonas is a teacher"),
    ("Jonas is a designer", "Jonas works as a teacher"),
    ("Jonas is a good nurse", "Jonas is now a teacher"),
    ("The parser is the lead", "The parser is now the manager"),
    ("Anna works at Acme", "Anna joined the call"),
    ("Anna works at Acme", "Anna left London for Paris"),
    ("Anna works at Acme", "Anna left the keys for Ben"),
    ("Anna works at Acme", "Anna left a note for Ben"),
    ("Anna works at Acme", "Anna started working with Ben"),
    ("Anna works at Acme", "Anna started working with React"),
    ("Anna works at Acme", "Anna joined Project Alpha as a designer"),
    ("Anna lives in Porto", "Anna moved to part-time"),
    ("Anna lives in Porto", "Anna moved to Sales"),
    ("Anna lives in Porto", "Anna moved to room 5"),
    ("Anna lives in Porto", "Anna moved to Slack"),
    ("Anna lives in Porto", "Anna migrated to Postgres"),
    ("Anna lives in Porto", "Anna moved to Lisbon but came back"),
    ("Anna lives in Porto", "Anna moved to Lisbon in May, and back to Porto in June"),
    ("Someone lives in Porto", "Someone moved to Lisbon"),
    ("The API is hosted on Heroku", "The API moved to version 2"),
    ("The API is hosted on Heroku", "The API moved to GraphQL"),
    ("The team is based in Porto", "The team moved to two-week sprints"),
    ("他住在上海", "他搬到了杭州"),
    ("他是设计师", "他现在是产品经理"),
    ("王芳住在上海", "王芳搬到二楼"),
    ("王芳住在上海", "王芳搬到新办公室了"),
    ("王芳住在上海", "王芳搬到周二"),
    ("李雷在百度工作", "李雷现在在家工作"),
    ("李雷在百度工作", "李雷现在在北京上班"),
    ("李雷在百度工作", "李雷现在在努力工作"),
    ("王芳住在上海", "王芳打算搬到杭州"),
    ("王芳住在上海", "王芳去年搬到了杭州"),
    ("李雷在百度工作", "李雷在公园工作"),
]


def claims_in(sentence: str) -> list[Claim]:
    """All claims of a sentence, those that Review asks about first."""
    asked = claim_of(sentence)
    found = [] if asked is None else [asked]
    return found + list(changes_in(sentence))


def is_ended(old: str, new: str) -> bool:
    for first in claims_in(old):
        for second in claims_in(new):
            if first.subject == second.subject and ends(first, second):
                return True
    return False


@pytest.mark.parametrize(("old", "new"), ENDED)
def test_newer_sentence_ends_the_older_one(old: str, new: str) -> None:
    assert is_ended(old, new)


@pytest.mark.parametrize(("old", "new"), NOT_ENDED)
def test_newer_sentence_leaves_the_older_one(old: str, new: str) -> None:
    assert not is_ended(old, new)


def test_claims_of_a_longer_text_have_their_places() -> None:
    text = "We had tea.\n\nAnna moved to Lisbon. It rained.\n"

    first = changes(sentences_in(text))[0]

    sentence = text[first.start : first.stop]
    assert sentence == "Anna moved to Lisbon."
    assert first.line == 3
    assert first.value == "Lisbon"


def test_category_of_an_observation_says_what_it_is_about() -> None:
    city = Observation("city", "Porto", line=3)
    role = Observation("role", "designer", line=4)
    other = Observation("idea", "Paris", line=5)
    over = Observation("city", "Rome", context="until 2020", line=6)

    about_city, about_role = item_changes("Anna", [city, role, other, over])

    assert about_city.value == "Porto"
    assert about_city.line == 3
    assert about_city.kind is ClaimKind.ENDING
    assert about_role.value == "designer"
    assert about_role.kind is ClaimKind.PLAIN


def test_two_values_of_one_category_end_nothing() -> None:
    porto = Observation("city", "Porto", line=3)
    lisbon = Observation("place", "Lisbon", line=4)
    acme = Observation("company", "Acme", line=5)

    kinds = [claim.kind for claim in item_changes("Anna", [porto, lisbon, acme])]

    assert kinds == [ClaimKind.PLAIN, ClaimKind.PLAIN, ClaimKind.ENDING]


@pytest.mark.parametrize(
    ("title", "content", "value"),
    [
        ("Anna", "lives in Porto", "Porto"),
        ("Anna", "lives in [[cities/porto|Porto]] #home", "Porto"),
        ("Staging", "runs on Hetzner", "Hetzner"),
        ("陈薇", "住在柏林", "柏林"),
    ],
)
def test_fact_without_its_subject_is_about_the_note(title: str, content: str, value: str) -> None:
    fact = Observation("place", content, line=3)
    claims = list(item_claims(title, [fact], []))
    claim = claims[0]
    assert len(claims) == 1
    assert claim.name == title
    assert claim.value == value
    assert claim.line == 3


@pytest.mark.parametrize(
    "content", ["her brother lives in Porto", "the port is 8080", "plants trees"]
)
def test_fact_with_another_subject_is_not_about_the_note(content: str) -> None:
    fact = Observation("place", content, line=3)
    assert not list(item_claims("Anna", [fact], []))


@pytest.mark.parametrize(
    ("title", "content", "value"),
    [("Anna", "moved to Gdańsk", "Gdańsk"), ("陈薇", "搬到了汉堡", "汉堡")],
)
def test_change_without_its_subject_is_about_the_note(title: str, content: str, value: str) -> None:
    first, *_ = item_changes(title, [Observation("place", content, line=3)])
    assert first.value == value
    assert first.kind is ClaimKind.ENDING


@pytest.mark.parametrize("content", ["her brother moved to Porto", "moved to Porto in 2019"])
def test_change_of_somebody_else_or_of_a_year_is_none(content: str) -> None:
    assert not list(item_changes("Anna", [Observation("place", content, line=3)]))


def test_sentence_with_an_earlier_year_is_not_of_its_time() -> None:
    assert is_of_an_earlier_year("Anna moved to Lisbon in 2019", 2026)
    assert not is_of_an_earlier_year("Anna moved to Lisbon in 2026", 2026)
    assert not is_of_an_earlier_year("Anna moved to Lisbon", 2026)
