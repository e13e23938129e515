"""Passages that answer a question."""

from __future__ import annotations

import pytest

from commonplace.index import evidence
from index.conftest import Desk

FILLER = "They spoke about the weather and other small matters for a while. " * 22


@pytest.fixture
def shelf(desk: Desk) -> Desk:
    desk.put(
        "may.md",
        f"---\ndate: 2023-05-08\n---\nMel painted a sunrise.\n\n{FILLER}\n\nShe adopted a cat named Oscar.\n\n{FILLER}",
    )
    desk.put("june.md", f"---\ndate: 2023-06-11\n---\n{FILLER}\n\nMel painted a horse.\n")
    desk.put("secret.md", "---\nscope: agent:ada\n---\nThe horse was a gift.")
    desk.put("zh.md", "用户搬到了上海，喜欢深色模式。", project="vault")
    return desk


def asked(desk: Desk, question: str, **more: object) -> list[tuple[str, str]]:
    more.setdefault("viewer", None)
    return [(hit.note.path, hit.passage) for hit in evidence.evidence(desk.db, question, **more)]  # type: ignore[arg-type]


def test_the_best_passage_comes_first_and_is_cut_from_the_text(shelf: Desk) -> None:
    path, passage = asked(shelf, "What is the name of the cat that was adopted?")[0]
    assert path == "may.md"
    assert "She adopted a cat named Oscar." in passage
    assert "sunrise" not in passage


def test_a_month_in_the_question_favours_notes_of_that_time(shelf: Desk) -> None:
    assert asked(shelf, "What did Mel paint in June 2023?")[0][0] == "june.md"
    assert asked(shelf, "What did Mel paint in May 2023?")[0][0] == "may.md"
    assert asked(shelf, "What did Mel paint in 2023-06?")[0][0] == "june.md"


def test_all_passages_together_keep_to_the_space(shelf: Desk) -> None:
    found = asked(shelf, "weather matters horse cat", max_chars=1_500)
    assert 0 < sum(len(passage) for _, passage in found) <= 1_500
    (only,) = asked(shelf, "What about the weather?", max_chars=100)
    assert len(only[1]) <= 100


def test_other_projects_and_scopes_stay_out(shelf: Desk) -> None:
    assert {path for path, _ in asked(shelf, "whose gift was the horse?")} == {"secret.md", "june.md"}
    assert {path for path, _ in asked(shelf, "whose gift was the horse?", viewer="bob")} == {"june.md"}
    assert asked(shelf, "whose gift was the horse?", projects=["vault"]) == []


def test_a_chinese_question_finds_a_chinese_note(shelf: Desk) -> None:
    assert asked(shelf, "用户现在住在上海吗？")[0][0] == "zh.md"


@pytest.mark.parametrize("question", ["", "???", "zebra", "the of and"])
def test_a_question_nothing_answers_gives_nothing(shelf: Desk, question: str) -> None:
    assert asked(shelf, question, projects=["vault"]) == []
