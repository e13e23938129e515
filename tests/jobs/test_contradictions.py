"""Contradictions are listed by `review`, decided by nobody but the owner, and nothing else is
listed.
"""

from __future__ import annotations

import pytest

from memoranda import Draft

pytestmark = pytest.mark.promise("issue-facts")


def remember(memory, *texts: str):
    return [memory.write(Draft(text, project="categories", category="knowledge")) for text in texts]


def asked(memory) -> list[str]:
    return [item.text for item in memory.review(kind="contradiction", limit=0)]


@pytest.mark.parametrize(
    "texts",
    [
        ("Anna lives in Berlin.", "Anna lives in Munich"),
        ("Tom works at Siemens", "tom works at Bosch."),
        ("Dr. Lindqvist's phone number is 030 1", "Dr. Lindqvist's phone number is 030 2"),
        ("The rent of the flat is 900 euros", "The rent of the flat is 950 euros"),
        ("王芳住在上海。", "王芳住在杭州"),
        ("办公室的无线密码是 a1", "办公室的无线密码是 b2"),
    ],
)
def test_memories_that_say_one_thing_with_two_values_are_asked_about(memory, texts):
    remember(memory, *texts)
    assert len(asked(memory)) == 1


@pytest.mark.parametrize(
    "texts",
    [
        ("Anna lives in Berlin.", "Tom lives in Munich."),
        ("Anna lives in Berlin.", "Anna lives in Berlin, in the Weserstraße."),
        ("Anna likes tea", "Anna likes coffee"),
        ("The user is a nurse", "The user is 34"),
        ("We met Bob on Monday", "We met Bob on Tuesday"),
        ("Invoice 17 was paid", "Invoice 18 was paid"),
    ],
)
def test_what_can_be_true_together_is_not_asked_about(memory, texts):
    remember(memory, *texts)
    assert asked(memory) == []


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ("- lives_in [[Berlin]]\n- lives_in [[Munich]]", 1),
        ("- lives_in [[Berlin]] (until 2025)\n- lives_in [[Munich]]", 0),
        ("- uses [[Redis]]\n- uses [[Postgres]]", 0),
        ("- [fact] phone: 1\n- [fact] phone: 2", 1),
        ("- [fact] Phone: 1\n- [fact] phone: 1", 0),
        ("- [fact] note: one\n- [fact] note: two", 0),
        ("- [fact] guest: a\n- [fact] guest: b\n- [fact] guest: c\n- [fact] guest: d", 0),
        ("- [事实] 电话：1\n- [事实] 电话：2", 1),
    ],
)
def test_lines_of_one_note_are_compared(memory, lines, count):
    memory.write(Draft(f"{lines}\n", project="notes", title="Anna"))
    assert len(asked(memory)) == count


def test_superseding_answers_it_and_undo_asks_again(memory):
    old, new = remember(memory, "Anna lives in Berlin", "Anna lives in Munich")
    [item] = memory.review(kind="contradiction")
    memory.decide(item.key, "n")
    assert asked(memory) == []
    ids = [hit.note.id for hit in memory.search("Where does Anna live?")]
    assert ids == [new.id]
    memory.undo()
    assert [item.text] == asked(memory)
    memory.decide(item.key, "o")
    ids = [hit.note.id for hit in memory.search("Where does Anna live?")]
    assert ids == [old.id]


def test_both_true_is_written_down_and_changes_no_note(memory):
    before = [
        note.text for note in remember(memory, "Anna lives in Berlin", "Anna lives in Munich")
    ]
    [item] = memory.review(kind="contradiction")
    memory.decide(item.key, "b")

    assert asked(memory) == []
    texts = sorted(memory.read(info).text for info in memory.list()[0])
    assert texts == sorted(before)


def test_of_two_lines_the_one_that_is_over_gets_its_end(memory):
    note = memory.write(
        Draft(
            "- lives_in [[Berlin]] (flat)\n- lives_in [[Munich]]\n", project="notes", title="Anna"
        )
    )
    [item] = memory.review(kind="contradiction")
    memory.decide(item.key, "n")
    today = f"{memory.clock():%Y-%m-%d}"
    assert (
        memory.read(note).body
        == f"- lives_in [[Berlin]] (flat, until {today})\n- lives_in [[Munich]]\n"
    )
    assert asked(memory) == []


def test_an_agent_is_asked_nothing_and_private_notes_are_compared_with_their_own_only(memory):
    claude = memory.as_caller("claude", "test")
    bob = memory.as_caller("bob", "test")
    for agent, town in ((claude, "Berlin"), (bob, "Munich")):
        scope = f"agent:{agent.agent}"
        agent.write(
            Draft(f"Anna lives in {town}", project="categories", category="people", scope=scope)
        )
    assert asked(memory) == []
    assert claude.review() == []
