"""Passages that answer a question."""

from __future__ import annotations

import pytest

from index.conftest import Desk
from memoranda.index.rows import Hit
from memoranda.index.search import find_evidence
from memoranda.index.told_notes import Mark, evidence_text, told_notes

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
    return [(hit.note.path, hit.passage) for hit in find_evidence(desk.db, question, **more)]  # type: ignore[arg-type]


def evidence_of(hits: list[Hit]) -> str:
    return evidence_text(told_notes(hits))


def test_the_best_passage_comes_first_and_is_cut_from_the_text(shelf: Desk) -> None:
    path, passage = asked(shelf, "What is the name of the cat that was adopted?")[0]
    assert path == "may.md"
    assert "She adopted a cat named Oscar." in passage
    assert "sunrise" not in passage


def test_all_passages_together_keep_to_the_space(shelf: Desk) -> None:
    evidence = asked(shelf, "weather matters horse cat", max_chars=1_500)
    assert 0 < sum(len(passage) for _, passage in evidence) <= 1_500
    (only,) = asked(shelf, "What about the weather?", max_chars=100)
    assert len(only[1]) <= 100


def test_other_projects_and_scopes_stay_out(shelf: Desk) -> None:
    assert {path for path, _ in asked(shelf, "whose gift was the horse?")} == {
        "secret.md",
        "june.md",
    }
    assert {path for path, _ in asked(shelf, "whose gift was the horse?", viewer="bob")} == {
        "june.md"
    }
    assert asked(shelf, "whose gift was the horse?", projects=["vault"]) == []


def test_a_chinese_question_finds_a_chinese_note(shelf: Desk) -> None:
    assert asked(shelf, "用户现在住在上海吗？")[0][0] == "zh.md"


@pytest.mark.parametrize("question", ["", "???", "zebra", "the of and"])
def test_a_question_nothing_answers_gives_nothing(shelf: Desk, question: str) -> None:
    assert asked(shelf, question, projects=["vault"]) == []


def test_a_note_gives_only_the_turns_that_say_something(desk: Desk) -> None:
    turns = [f"{who}: {FILLER[:120]}" for who in ("Ada", "Mel") * 4]
    desk.put("a.md", "\n\n".join([*turns[:4], "Mel: The tortoise is called Ozzy.", *turns[4:]]))
    passages = [passage for _, passage in asked(desk, "What is the tortoise called?")]

    assert passages[0] == "Mel: The tortoise is called Ozzy."
    assert len(passages) < 9


def test_what_says_the_same_comes_once(desk: Desk) -> None:
    for number in range(5):
        desk.put(f"{number}.md", "The spare key hangs behind the barometer.")
    desk.put("other.md", "The spare key to the shed was lost in May.")
    passages = [passage for _, passage in asked(desk, "Where is the spare key?")]
    assert len(passages) == 2
    assert set(passages) == {
        "The spare key hangs behind the barometer.",
        "The spare key to the shed was lost in May.",
    }


def test_what_differs_in_a_number_only_is_no_repetition(desk: Desk) -> None:
    for rent in (900, 950):
        desk.put(
            f"{rent}.md",
            f"The rent of our flat in the old town by the river is {rent} euros a month.",
        )
    assert len(asked(desk, "How much is the rent of the flat?")) == 2


def test_evidence_is_told_under_one_line_a_note(shelf: Desk) -> None:
    text = evidence_of(
        find_evidence(shelf.db, "What did Mel paint in June 2023?", viewer=None, max_chars=900)
    )
    assert text.startswith("(2023-06-11, notes/june)\n")
    assert len(text) <= 900


def test_short_notes_of_one_folder_and_day_share_a_line(desk: Desk) -> None:
    for number, turn_text in enumerate(
        ("Ada: Where is the tent?", "Mel: The tent is in the attic.")
    ):
        desk.put(
            f"talk/turn-{number}.md",
            f"---\ndate: 2023-05-08\nsource: {turn_text[:3]}\n---\n{turn_text}",
        )
    text = evidence_of(find_evidence(desk.db, "Where is the tent?", viewer=None))
    assert (
        text
        == "(2023-05-08, notes/talk)\nturn-0: Ada: Where is the tent?\nturn-1: Mel: The tent is in the attic."
    )


def test_a_title_the_address_does_not_say_stands_in_front(desk: Desk) -> None:
    desk.put("a.md", "---\ntitle: Camping\ndate: 2023-05-08\n---\nThe tent is in the attic.")
    text = evidence_of(find_evidence(desk.db, "Where is the tent?", viewer=None))
    assert text == "Camping (2023-05-08, notes/a)\n  The tent is in the attic."


def test_a_memory_is_called_by_the_beginning_of_its_id(desk: Desk) -> None:
    desk.put(
        "preferences/dark-12345678.md",
        "---\nid: 12345678-aaaa-4bbb-8ccc-1234567890ab\ncreated_at: "
        "2023-05-08T10:00:00Z\n---\nPrefers dark mode.",
        project="categories",
    )
    text = evidence_of(find_evidence(desk.db, "Which mode is preferred?", viewer=None))
    assert text == "(2023-05-08, categories/preferences)\n12345678: Prefers dark mode."


def test_of_very_many_long_notes_each_gives_a_passage_not_its_beginning(desk: Desk) -> None:
    for number in range(30):
        filler = FILLER.replace("weather", f"weather w{number} x{number} y{number} z{number}")
        desk.put(
            f"{number}.md", f"{filler * 6}\n\nThe spare key hangs behind the barometer.\n\n{filler}"
        )
    evidence = asked(desk, "Where is the spare key?", max_chars=60_000)

    paths = {path for path, _ in evidence}
    assert len(paths) > 25
    for _, passage in evidence:
        assert "spare key" in passage


def test_a_long_passage_that_differs_in_one_word_is_no_repetition(desk: Desk) -> None:
    words = " ".join(f"sentence{number}" for number in range(60))
    for month, city in (("january", "Berlin"), ("june", "Lisbon")):
        desk.put(f"{month}.md", f"Report: the customer office is in {city}. {words}")
    evidence_text = " ".join(
        passage for _, passage in asked(desk, "In which cities has the customer office been?")
    )

    assert "Berlin" in evidence_text
    assert "Lisbon" in evidence_text


def test_notes_beside_a_folder_of_their_name_keep_their_titles(desk: Desk) -> None:
    day = "---\ndate: 2026-01-02\n"
    desk.put("foo.md", f"{day}title: Completely other\n---\nThe heron nests in the reeds.")
    desk.put("foo/bar.md", f"{day}---\nThe heron left in autumn.")
    text = evidence_of(find_evidence(desk.db, "When did the heron nest and leave?", viewer=None))
    assert "Completely other (2026-01-02, notes/foo)" in text


def test_words_behind_what_is_read_of_a_note_are_not_put_down_to_its_last_passage(
    desk: Desk,
) -> None:
    filler = (
        "lorem ipsum dolor amet consectetur adipiscing elit eiusmod tempor incididunt labore magna aliqua "
        * 11
    )
    later_paragraphs = {
        60: "Warranty papers came.",
        70: "Technician Halvorsen called.",
        80: "It ends in Oslo.",
    }
    desk.put(
        "log.md",
        "\n\n".join(
            f"Paragraph {number}. The turbine was installed. {later_paragraphs.get(number, '')} {filler}"
            for number in range(95)
        ),
    )
    for path, passage in asked(
        desk, "When does the turbine warranty with technician Halvorsen end in Oslo?"
    ):
        assert path == "log.md"
        number = int(passage.partition(".")[0].removeprefix("Paragraph "))
        assert number < 34 or "Halvorsen" in passage, passage[:40]


def test_in_too_little_space_there_is_nothing(shelf: Desk) -> None:
    assert asked(shelf, "What did Mel paint?", max_chars=8) == []


@pytest.mark.parametrize(
    "question",
    [
        "Which tariff applies to imported small tools?",
        "Which weather station measures volcanic gas?",
    ],
)
def test_question_that_shares_a_word_in_passing_gets_nothing_above_the_floor(
    shelf: Desk, question: str
) -> None:
    assert asked(shelf, question, floor=0.2) == []
    assert asked(shelf, question)


@pytest.mark.parametrize(
    "question",
    [
        "What is the name of the cat that was adopted?",
        "horse",
        "What did Mel paint on June 11, 2023?",
        "We talked about small things. They said it was the weather all the while again.",
    ],
)
def test_question_that_something_answers_passes_the_floor(shelf: Desk, question: str) -> None:
    assert asked(shelf, question, floor=0.2) == asked(shelf, question) != []


def test_a_mark_of_a_note_follows_its_address_or_its_name(desk: Desk) -> None:
    day = "---\ndate: 2026-01-02\n---\n"
    desk.put("talk/one.md", f"{day}Ada: Where is the tent?")
    desk.put("talk/two.md", f"{day}Mel: The tent is in the attic.")
    desk.put("tent.md", f"{day}The tent has three poles.")
    notes = told_notes(find_evidence(desk.db, "Where is the tent?", viewer=None))
    marked = [note._replace(marks=(Mark("old"),)) for note in notes]
    blocks = evidence_text(marked).split("\n\n")
    assert sorted(blocks) == [
        "(2026-01-02, notes/talk)\none (old): Ada: Where is the tent?\n"
        "two (old): Mel: The tent is in the attic.",
        "(2026-01-02, notes/tent, old)\n  The tent has three poles.",
    ]


def test_mark_puts_its_value_unread_into_any_wording() -> None:
    mark = Mark("by {agent}", r"{when} \1")
    assert mark.words == r"by {when} \1"
    assert mark.in_pattern("来自 {agent}") == r"来自 {when} \1"


def test_word_that_two_of_few_notes_have_is_rare_enough_to_pass_the_floor(desk: Desk) -> None:
    desk.put("postgres.md", "The billing service runs on Postgres 15 since the summer.")
    desk.put("rollback.md", "We rolled the billing service back because replication broke.")
    desk.put("sister.md", "My sister Marta lives in Lisbon and is a nurse.")
    question = "Which database does the billing team have?"

    assert {path for path, _ in asked(desk, question, floor=0.2)} == {"postgres.md", "rollback.md"}
    assert asked(desk, "Which magnets does the reactor team have?", floor=0.2) == []
