"""`memory.review()` and `memory.decide()`: questions from sources; answers change something or are
written down.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoranda import Draft, errors
from memoranda.engine import open_session, review
from memoranda.engine.review import ReviewItem, ReviewSource

YES_NO = (("y", "yes"), ("n", "no"))


def _find(memory):
    for info in memory.list()[0]:
        yield ReviewItem(f"delete:{info.id}", "delete", f"delete {info.title}?", (info.id,), YES_NO)


def _apply(memory, item, choice):
    if choice == "y":
        memory.delete(item.refs[0])
    return choice == "y"


DELETE = ReviewSource(_find, _apply)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(review, "SOURCES", {"delete": f"{__name__}:DELETE"})
    with open_session(tmp_path / "home", watch=False) as opened:
        for name in ("one", "two", "three"):
            opened.write(Draft(name, project="notes", title=name))
        yield opened


def keys(memory) -> list[str]:
    return [question.key for question in memory.review()]


def test_a_question_is_asked_until_it_is_answered(memory):
    first, *rest = keys(memory)
    assert len(rest) == 2
    memory.decide(first, "n")
    assert keys(memory) == rest
    assert memory.decision(first) == "n"


def test_an_answer_outlives_the_process_and_the_index(memory, tmp_path):
    first, *rest = keys(memory)
    memory.decide(first, "n")
    memory.close()
    home = tmp_path / "home"
    (home / ".memoranda/index.db").unlink()
    with open_session(home, watch=False) as again:
        assert keys(again) == rest


def test_undo_of_an_answer_asks_again_whether_it_was_written_down_or_a_change_of_its_own(memory):
    before = keys(memory)
    for key, choice, verb in (
        (before[0], "n", "review"),
        (before[1], "n", "review"),
        (before[2], "y", "delete"),
    ):
        memory.decide(key, choice)
        assert memory.log(limit=1)[0].verb == verb
    assert keys(memory) == []
    for questions_left in (1, 2, 3):
        memory.undo()
        assert sorted(keys(memory)) == sorted(before[-questions_left:])


def test_questions_come_in_pages(memory):
    questions = memory.review()
    assert memory.review(limit=2) == questions[:2]
    assert memory.review(limit=2, offset=2) == questions[2:]
    assert memory.review(limit=0, kind="delete") == questions


@pytest.mark.parametrize(
    ("key", "choice", "error"),
    [
        ("delete:none", "y", errors.NotFound),
        ("none", "y", errors.NotFound),
        ("", "y", errors.NotFound),
        (None, "x", errors.InvalidInput),
        (None, "", errors.InvalidInput),
    ],
)
def test_what_is_not_asked_cannot_be_answered(memory, key, choice, error):
    before = keys(memory)
    with pytest.raises(error):
        memory.decide(before[0] if key is None else key, choice)
    assert keys(memory) == before


def test_an_agent_is_asked_nothing_and_decides_nothing(memory):
    first = keys(memory)[0]
    agent = memory.as_caller("claude")
    assert agent.review() == []
    with pytest.raises(errors.InvalidInput, match="only the owner decides"):
        agent.decide(first, "y")


def test_an_unknown_kind_names_those_there_are(memory):
    with pytest.raises(errors.InvalidInput, match=r"invalid kind \"x\" \(one of delete\)"):
        memory.review(kind="x")


def test_a_damaged_file_of_answers_is_reported_and_stays(memory, tmp_path):
    file = tmp_path / "home/.memoranda/review.json"
    for text in ("{", json.dumps([1]), json.dumps({"a": 1})):
        file.write_text(text)
        with pytest.raises(errors.StorageError, match=r"review\.json is damaged"):
            memory.review()
        assert file.read_text() == text


def _delete_all(memory, items):
    memory.delete(*(item.refs[0] for item in items))


SHARED = ReviewSource(
    _find,
    _apply,
    shared=(
        review.SharedAnswer("y", "delete them", _delete_all),
        review.SharedAnswer("n", "keep them"),
    ),
)


@pytest.fixture
def shared_memory(memory, monkeypatch):
    monkeypatch.setattr(review, "SOURCES", {"delete": f"{__name__}:SHARED"})
    return memory


@pytest.mark.parametrize("choice", ["y", "n"])
def test_many_questions_get_one_answer_as_one_change_that_one_undo_takes_back(
    shared_memory, choice
):
    first, second, third = keys(shared_memory)
    before = shared_memory.log(limit=1)[0].number
    answered = shared_memory.decide_all([first, third], choice)
    item_keys = {item.key for item in answered}
    assert item_keys == {first, third}
    assert keys(shared_memory) == [second]
    (change,) = shared_memory.log(limit=0)[: shared_memory.log(limit=1)[0].number - before]
    shared_memory.undo(change.number)
    assert set(keys(shared_memory)) == {first, second, third}


def test_of_many_questions_those_that_are_answered_already_are_passed_over(shared_memory):
    first, second, third = keys(shared_memory)
    shared_memory.decide(first, "n")
    item_keys = [item.key for item in shared_memory.decide_all([first, second], "n")]
    assert item_keys == [second]
    assert keys(shared_memory) == [third]
    with pytest.raises(errors.NotFound):
        shared_memory.decide_all([first, second], "n")


def test_many_questions_are_answered_only_by_the_owner_of_one_kind_and_by_a_shared_answer(
    shared_memory,
):
    first = keys(shared_memory)[0]
    for wrong_keys, choice in (([], "n"), ([first, "other:1"], "n"), ([first], "x")):
        with pytest.raises(errors.InvalidInput):
            shared_memory.decide_all(wrong_keys, choice)
    with pytest.raises(errors.InvalidInput):
        shared_memory.as_caller("claude", "mcp").decide_all([first], "n")

    assert first in keys(shared_memory)


@pytest.mark.parametrize("kind", list(review.SOURCES))
def test_an_answer_of_one_question_that_many_share_has_the_same_letter(kind):
    letters = [answer.letter for answer in review.shared_answers(kind)]
    assert len(set(letters)) == len(letters)
    assert review.source(kind).batch is None or letters == ["y", "n"]
