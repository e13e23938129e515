"""What the jobs ask the owner, and what the daemon therefore leaves alone (engine/review.py,
jobs/questions.py).
"""

from __future__ import annotations

import pytest

from jobs.homes import ONE, TWO, Home
from memoranda import errors
from memoranda.jobs import dream, lifecycle
from memoranda.jobs.job import SET_BY
from memoranda.note.model import Draft

UNSURE = "zxcv qwer"


def kinds(home: Home) -> list[str]:
    return [question.kind for question in home.memory.review()]


def near(home: Home) -> None:
    home.put(ONE, "Ben is allergic to peanuts.", "people")
    home.put(TWO, "Ben has a peanut allergy.", "people")


@pytest.mark.promise("13.7-review")
@pytest.mark.parametrize(("choice", "kept_id"), [("1", ONE), ("2", TWO)])
def test_near_duplicates_are_merged_as_the_owner_says_and_undo_asks_again(
    home: Home, choice: str, kept_id: str
) -> None:
    near(home)
    (item,) = home.memory.review()
    assert item.kind == "merge"
    assert item.refs == (ONE, TWO)
    home.memory.decide(item.key, choice)
    assert home.ids() == {kept_id}
    assert home.memory.review() == []
    home.memory.undo()
    assert home.ids() == {ONE, TWO}
    keys = [question.key for question in home.memory.review()]
    assert keys == [item.key]


def test_a_question_about_a_memory_whose_id_is_all_is_about_it_alone(home: Home) -> None:
    home.put("all", "Ben is allergic to peanuts.", "people")
    home.put(TWO, "ben has a peanut allergy, is allergic to peanuts", "people")
    (item,) = [question for question in home.memory.review() if question.kind == "merge"]
    home.memory.decide(item.key, item.choices[0][0])

    assert len(home.ids()) == 1


def test_near_duplicates_kept_apart_are_asked_about_again_once_one_of_them_changes(
    home: Home,
) -> None:
    near(home)
    home.memory.decide(home.memory.review()[0].key, "n")
    assert kinds(home) == []
    home.upkeep.rewrite(home.info(TWO), "Ben has a bad peanut allergy.", {}, "edit")
    assert kinds(home) == ["merge"]


def test_a_linked_pair_of_near_duplicates_is_still_asked_about_and_an_unlinked_one_is_not(
    home: Home,
) -> None:
    near(home)
    dream.run(home.memory, 2)
    assert home.info(ONE).links == (TWO,)
    assert kinds(home) == ["merge"]
    home.memory.unlink(ONE, TWO)
    assert kinds(home) == []


def test_a_category_the_owner_chooses_is_learned_from(home: Home) -> None:
    home.write(UNSURE)
    (item,) = home.memory.review()
    label = dict(item.choices)["1"]
    home.memory.decide(item.key, "1")
    assert home.category(item.refs[0]) == label
    assert home.info(item.refs[0]).header[SET_BY] == "owner"
    second_id = home.write(f"{UNSURE} again")
    (action,) = dream.run(home.memory, 1).actions
    assert action.id == second_id
    assert action.category == label
    assert action.reason == f'{label} (you put "{UNSURE}" there)'


def test_the_daemon_leaves_in_the_inbox_what_would_be_asked(home: Home) -> None:
    sure = home.write("lesson: never force push")
    unsure = home.write(UNSURE)
    home.later(hours=3)
    home.round()

    assert home.category(sure) == "lessons"
    assert home.category(unsure) == "inbox"
    assert kinds(home) == ["category"]
    ids = [action.id for action in dream.run(home.memory, 1).actions]
    assert ids == [unsure]
    assert kinds(home) == []


def test_the_daemon_leaves_what_is_often_read_in_the_inbox_until_its_category_is_sure(
    home: Home,
) -> None:
    agent = home.memory.as_caller("claude", "mcp")
    unsure, sure, unread = (
        agent.write(Draft(text, project="categories")).id
        for text in (UNSURE, "lesson: never force push", "wvut yxzb")
    )
    for _ in range(3):
        home.memory.read(unsure)
        home.memory.read(sure)
    for days in (0, 30):
        home.later(days=days)
        home.round("dream")

    assert home.category(unsure) == "inbox"
    assert home.category(sure) == "lessons"
    assert home.ids() == {unsure, sure}
    phase = home.info(unread).phase
    assert phase == "archived"
    refs = home.memory.review(kind="category")[0].refs
    assert refs == (unsure,)
    actions = home.job("upgrade").actions
    ids = [action.id for action in actions]
    assert ids == [unsure]


def test_what_the_daemon_archives_by_itself_is_not_asked_about(home: Home) -> None:
    home.memory.as_caller("claude", "mcp").write(
        Draft("the build took long", project="categories", category="project")
    )
    mine = home.write("the boiler needs water", "knowledge")
    home.write("Anna is allergic to peanuts", "people")
    home.later(days=40)
    questions = home.memory.review(kind="archive")
    assert questions == []
    home.later(days=326)
    assert [question.refs for question in home.memory.review(kind="archive")] == [(mine,)]


def test_a_day_without_a_date_is_asked_about_and_what_is_repeated_or_negated_is_not(
    home: Home,
) -> None:
    source = home.write("Dinner with friends on Friday", "people")
    home.write("I run on Tuesdays.", "habits")
    home.write("No dinner on Friday", "people")
    dream.run(home.memory, 3)
    (item,) = home.memory.review(kind="reminder")
    assert item.refs == (source,)
    home.memory.decide(item.key, "y")
    (reminder,) = [memory for memory in home.upkeep.every() if memory.category == "reminders"]
    assert reminder.header["due_at"] == "2026-05-08T09:00:00Z"
    questions = home.memory.review(kind="reminder")
    assert questions == []
    home.memory.delete(reminder.id)
    questions = home.memory.review(kind="reminder")
    assert questions == []


def test_what_nobody_read_for_a_year_is_asked_about(home: Home) -> None:
    memory_id = home.write("the boiler needs water", "knowledge")
    home.later(days=366)
    (item,) = home.memory.review()
    assert item.kind == "archive"
    assert item.refs == (memory_id,)
    home.memory.decide(item.key, "n")
    assert home.memory.review() == []
    home.memory.undo()
    home.memory.decide(item.key, "y")
    assert home.memory.review() == []
    actions = home.job("decay").actions
    assert actions == ()


def test_a_question_about_what_changed_since_is_not_answered(home: Home) -> None:
    near(home)
    (item,) = home.memory.review()
    home.memory.delete(TWO)
    for question in (item, item.key):
        with pytest.raises(errors.NotFound):
            home.memory.decide(question, "1")

    assert home.ids() == {ONE}


def test_what_expires_in_the_inbox_is_unaffected_by_an_answer(home: Home) -> None:
    home.write(UNSURE)
    home.memory.decide(home.memory.review()[0].key, "n")
    home.later(days=8)
    assert len(lifecycle.consolidate(home.memory)[0].actions) == 1


SENTENCES = (
    "the boiler needs water",
    "garage code is 4471",
    "mortgage runs until 2031",
    "bins are green on even weeks",
    "the good pizza place is Da Remo",
)


def year_old(home: Home) -> list[str]:
    ids = []
    for text in SENTENCES:
        ids.append(home.write(text, "knowledge"))
        home.later(minutes=1)
    home.later(days=366)
    return ids


@pytest.mark.promise("13.7-review")
def test_many_of_a_kind_are_one_question_which_one_answer_and_one_undo_settle(home: Home) -> None:
    ids = year_old(home)
    (item,) = home.memory.review()
    assert item.text == "Archive these 5 notes nobody read for a year?"
    assert item.refs == tuple(ids)
    assert item.lines[0] == '"the boiler needs water" (knowledge), 2026-05-06'
    questions = home.memory.review(kind="archive")
    assert len(questions) == 5
    assert home.memory.decide(item, "y") == item
    assert (home.ids(), home.memory.review()) == (set(), [])
    home.memory.undo()
    keys = [question.key for question in home.memory.review()]
    assert keys == [item.key]
    with pytest.raises(errors.InvalidInput):
        home.memory.decide(item.key, "1")


def test_no_to_many_is_remembered_of_each_and_one_more_is_asked_about_alone(home: Home) -> None:
    year_old(home)
    home.memory.decide(home.memory.review()[0].key, "n")
    more = home.write("the key is with Paula", "knowledge")
    home.later(days=366)

    assert [question.refs for question in home.memory.review()] == [(more,)]


def test_a_question_about_many_that_are_no_longer_the_same_is_not_answered(home: Home) -> None:
    ids = year_old(home)
    (item,) = home.memory.review()
    home.memory.delete(ids[0])
    with pytest.raises(errors.InvalidInput, match="changed meanwhile"):
        home.memory.decide(item, "y")

    assert home.ids() == set(ids[1:])


def test_more_than_are_asked_about_at_once_are_counted(home: Home) -> None:
    for number in range(27):
        home.write(f"zxcv qwer {number}")
    (item,) = home.memory.review()
    assert item.text == "Sort these 25 of 27 memories of the inbox as shown?"
    assert len(item.lines) == 25


def test_many_without_a_sure_category_are_sorted_by_one_answer_and_teach_nothing(
    home: Home,
) -> None:
    ids = {home.write(text) for text in ("zxcv qwer", "wvut yxzb", "qqqq wwww", "kjhg fdsa")}
    (item,) = home.memory.review()
    assert item.text == "Sort these 4 memories of the inbox as shown?"
    assert {*item.refs} == ids
    assert '"zxcv qwer" -> knowledge' in item.lines
    home.memory.decide(item, "y")
    assert {home.category(memory_id) for memory_id in ids} == {"knowledge"}
    for memory_id in ids:
        assert SET_BY not in home.info(memory_id).header
    home.memory.undo()
    home.memory.decide(item.key, "n")
    assert home.memory.review() == []
    assert {home.category(memory_id) for memory_id in ids} == {"inbox"}


def test_nobody_is_asked_to_sort_what_expires_and_what_may_be_worth_keeping_does_not(
    home: Home,
) -> None:
    agent = home.memory.as_caller("claude", "mcp")
    passing = agent.write(Draft(UNSURE, project="categories")).id
    kept_id = agent.write(
        Draft("User wants commit messages in the imperative", project="categories")
    ).id
    questions = home.memory.review()
    assert [question.refs for question in questions] == [(kept_id,)]
    for _ in range(2):
        home.later(days=8)
        home.round("dream")
    phase = home.info(passing).phase
    assert phase == "archived"
    assert home.info(kept_id).phase == "inbox"
