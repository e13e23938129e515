"""Sixty questions on facts that changed within two years: now no stale answer, with `as_of` what
was right then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
from tests.contract.note_tools import Tools

from memoranda import Draft, Query
from memoranda.engine import open_session
from movable_clock import Clock

pytestmark = pytest.mark.promise("issue-facts")

DATA = Path(__file__).parents[1] / "data" / "changing_facts.txt"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SHOWN = 10
ALLOWED_RANK = 3


@dataclass
class Fact:
    """A chain of versions (since when, text), the question, and which version was right on which
    day.
    """

    number: int
    versions: list[tuple[str, str]] = field(default_factory=list)
    ends: str | None = None
    question: str = ""
    days: dict[str, int] = field(default_factory=dict)


def read_facts() -> list[Fact]:
    facts = []
    blocks = DATA.read_text("utf-8").split("\n\n")[1:]
    for number, block in enumerate(blocks):
        fact = Fact(number)
        for line in block.strip().split("\n"):
            if line.startswith("? "):
                fact.question = line[2:]
            elif match := re.fullmatch(r"([\d-]{10}): (.*)", line):
                fact.versions.append((match[1], match[2]))
            elif match := re.fullmatch(r"([\d-]{10}) never", line):
                fact.ends = match[1]
            else:
                fact.days = {}
                for part in line.split(", "):
                    day, version = part.split(" ")
                    fact.days[day] = int(version)
        facts.append(fact)
    return facts


FACTS = read_facts()


def write_as_it_happens(memory, clock, fact: Fact) -> None:
    """Each version on its day, by `supersede` with a new text."""
    old = None
    for day, text in fact.versions:
        clock.now = datetime.fromisoformat(f"{day}T00:30:00+00:00")
        draft = Draft(text, project="categories", category="knowledge", valid_until=fact.ends)
        if old is None:
            old = memory.write(draft)
        else:
            old = memory.supersede(old, draft)[1]
    clock.now = NOW


def write_later_by_the_note_tool(memory, clock, fact: Fact) -> None:
    """All of it today, by write_note with its further arguments."""
    tools = Tools(memory)
    older = {}
    for number, (day, text) in enumerate(fact.versions, 1):
        title = f"Fact {fact.number} version {number}"
        more = {"valid_until": fact.ends} if fact.ends else {}
        written = tools("write_note", title=title, content=text, valid_from=day, **older, **more)
        older = {"supersedes": [written["permalink"]]}


def write_with_dates(memory, clock, fact: Fact) -> None:
    """All of it today, newest first, each with its own two dates and nothing that links them."""
    ends = [day for day, _ in fact.versions[1:]] + [fact.ends]
    for (day, text), until in reversed([*zip(fact.versions, ends, strict=True)]):
        memory.write(
            Draft(text, project="categories", category="people", valid_from=day, valid_until=until)
        )


WAYS = (write_as_it_happens, write_later_by_the_note_tool, write_with_dates)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    clock = Clock(NOW)
    folder = tmp_path_factory.mktemp("facts") / "home"
    folder.mkdir()
    (folder / "config.yaml").write_text("timezone: UTC\n")
    with open_session(folder, clock=clock, watch=False) as memory:
        for fact in FACTS:
            tell = WAYS[fact.number % len(WAYS)]
            tell(memory, clock, fact)
        yield memory


def versions_found(fact: Fact, texts: list[str]) -> list[int]:
    """The numbers of the fact's versions among the texts, by rank."""
    numbers = []
    for text in texts:
        numbers += [
            number
            for number, (_, version_text) in enumerate(fact.versions, 1)
            if version_text in text
        ]
    return list(dict.fromkeys(numbers))


def python_answer(memory, question: str, day: str | None) -> list[str]:
    as_of = None if day is None else memory.as_of(day)
    return [hit.passage for hit in memory.search(Query(text=question, as_of=as_of), limit=SHOWN)]


def tool_answer(memory, question: str, day: str | None) -> list[str]:
    more = {} if day is None else {"as_of": day}
    results = Tools(memory)("search_notes", query=question, page_size=SHOWN, **more)["results"]
    return [result["snippet"] for result in results]


def typed_answer(memory, question: str, day: str | None) -> list[str]:
    """The filter in the query's own words, as a person types it."""
    hits = memory.search(question if day is None else f"{question} as_of:{day}", limit=SHOWN)
    return [hit.passage for hit in hits]


ANSWERS = (python_answer, tool_answer, typed_answer)


def test_there_are_sixty_questions_in_two_languages() -> None:
    assert len(FACTS) == 60
    assert sum(not fact.question.isascii() for fact in FACTS) == 20
    assert all(fact.days and fact.question for fact in FACTS)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact.number}-{fact.question}")
def test_the_present_answer_is_found_and_no_stale_one(home, fact: Fact) -> None:
    for answer in ANSWERS:
        texts = answer(home, fact.question, None)
        # Nothing else answers, and it says so itself
        if fact.ends:
            texts = [text for text in texts if not text.startswith(f"[valid until {fact.ends}] ")]
            assert versions_found(fact, texts) == [], answer
        else:
            assert versions_found(fact, texts) == [len(fact.versions)], answer
            assert versions_found(fact, texts[:ALLOWED_RANK]), answer


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact.number}-{fact.question}")
def test_with_as_of_the_answer_of_that_day_is_found_and_no_other(home, fact: Fact) -> None:
    for answer, (day, right) in product(ANSWERS, fact.days.items()):
        texts = answer(home, fact.question, day)
        assert versions_found(fact, texts) == ([right] if right else []), (answer, day)
        if right:
            assert versions_found(fact, texts[:ALLOWED_RANK]), (answer, day)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact.number}-{fact.question}")
def test_context_says_what_is_valid(home, fact: Fact) -> None:
    text = home.context_for(fact.question)
    # Nothing else answers, and it says so itself
    if fact.ends:
        assert f"[valid until {fact.ends}] {fact.versions[-1][1]}" in text or not versions_found(
            fact, [text]
        )
    else:
        assert versions_found(fact, [text]) == [len(fact.versions)]
    for day, right in fact.days.items():
        texts = [home.context_for(fact.question, as_of=home.as_of(day))]
        assert versions_found(fact, texts) == ([right] if right else []), day


@pytest.mark.parametrize(
    "fact",
    [numbered_fact for numbered_fact in FACTS if numbered_fact.number % 3 == 0],
    ids=lambda fact: fact.question,
)
def test_smart_search_leaves_out_what_is_over(home, fact: Fact) -> None:
    words = fact.versions[-1][1]
    best = [hit.note for hit in home.smart_search(words, top=0).best]
    versions = versions_found(fact, [home.text_of(info) for info in best])
    # What is over is shown where nothing else answers, and says so
    if fact.ends:
        assert not versions or all(info.row in home.validity_marks(best) for info in best)
    else:
        assert versions == [len(fact.versions)]


def test_as_of_means_the_end_of_the_day_month_or_year_it_names(home) -> None:
    assert home.as_of("2025-03-01") == datetime(2025, 3, 2, tzinfo=UTC) - timedelta(microseconds=1)
    assert home.as_of("2025-02") == datetime(2025, 3, 1, tzinfo=UTC) - timedelta(microseconds=1)
    assert home.as_of("2025") == datetime(2026, 1, 1, tzinfo=UTC) - timedelta(microseconds=1)
    assert home.as_of("yesterday") == datetime(2026, 11, 22, tzinfo=UTC) - timedelta(microseconds=1)
    assert home.as_of("2 weeks ago") == NOW - timedelta(weeks=2)
