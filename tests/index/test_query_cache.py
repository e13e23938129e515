"""What queries cached is never told when the index says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.index.search.queries import RowList
from memoranda.note.model import Draft
from memoranda.query import Query


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home") as opened:
        yield opened


def tell(memory: MemorySession, name: str, text: str) -> str:
    return memory.write(Draft(text, title=name, folder="talk", date="2024-05-01")).path


def found(memory: MemorySession, question: str) -> list[str]:
    return [hit.note.title for hit in memory.search(question)]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["by this process", "by another"])
def test_a_question_asked_again_finds_what_was_written_meanwhile(
    memory: MemorySession, tmp_path: Path, elsewhere: bool
) -> None:
    tell(memory, "One", "Ann: I baked bread with walnuts yesterday.")
    assert found(memory, "What did Ann bake with walnuts?") == ["One"]
    with open_session(tmp_path / "home") if elsewhere else nullcontext(memory) as writer:
        tell(writer, "Two", "Ann: Then I baked bread with walnuts again.")
    assert sorted(found(memory, "What did Ann bake with walnuts?")) == ["One", "Two"]


def test_a_question_asked_again_does_not_find_what_was_deleted_meanwhile(
    memory: MemorySession,
) -> None:
    for name in ("One", "Two"):
        tell(memory, name, f"Ann: I baked bread with walnuts, number {name}.")
    assert len(found(memory, "What did Ann bake with walnuts?")) == 2
    memory.delete("One")
    assert found(memory, "What did Ann bake with walnuts?") == ["Two"]


def test_two_homes_in_turn_do_not_mix(memory: MemorySession, tmp_path: Path) -> None:
    tell(memory, "One", "Ann: I baked bread with walnuts yesterday.")
    with open_session(tmp_path / "other") as other_memory:
        tell(other_memory, "Two", "Ben: Walnuts are what Ann would bake with, I think.")
        for _ in range(2):
            assert found(memory, "What did Ann bake with walnuts?") == ["One"]
            assert found(other_memory, "What did Ann bake with walnuts?") == ["Two"]


def test_a_word_is_spelled_as_titles_have_it_or_as_texts_do(memory: MemorySession) -> None:
    for number in range(5):
        memory.write(Draft(f"The kitchen has number {number}.", title=f"Room {number}"))
    memory.write(Draft("A man.", title="Kitchin family"))
    titles = Query("kitchn", search_type="title")
    texts = Query("kitchn")
    for query in (titles, texts, titles, texts):
        hits = memory.search(query)
        assert len(hits) == (1 if query is titles else 6)


def test_what_was_told_to_one_reader_is_not_told_to_another(tmp_path: Path) -> None:
    home = tmp_path / "home"
    question = "What did Ann say about walnts?"
    with (
        open_session(home, agent="one") as first_reader,
        open_session(home, agent="two") as second_reader,
    ):
        first_reader.write(
            Draft(
                "Ann: I like walnuts.",
                title="Hers",
                folder="talk",
                date="2024-05-01",
                scope="agent:one",
            )
        )
        for number in range(2):
            second_reader.write(
                Draft("Ben: I like bread.", title=f"His {number}", folder="talk", date="2024-05-01")
            )
        for _ in range(2):
            hits = first_reader.search(question)
            assert hits[0].note.title == "Hers"
            assert "spelled: walnuts" in hits[0].why
            assert "Hers" not in found(second_reader, question)
            for hit in second_reader.search(question):
                assert "walnuts" not in "\n".join(hit.why)


def test_a_note_moved_to_another_folder_stands_with_those_there(memory: MemorySession) -> None:
    for folder, name, text in (
        ("talk", "One", "Ann: I baked bread."),
        ("talk", "Two", "Ben: With what?"),
        ("other", "Three", "Cleo: Walnuts."),
    ):
        memory.write(Draft(text, title=name, folder=folder, date="2024-05-01"))
    assert "Two" in found(memory, "What bread did Ann bake?")
    root = memory.project("notes").root
    Path(root, "talk", "Two.md").rename(Path(root, "other", "Two.md"))
    assert "Two" not in found(memory, "What bread did Ann bake?")


@pytest.mark.parametrize(
    ("text", "rows", "span"), [("9,7,4", [9, 7, 4], 6), ("12", [12], 1)], ids=["some", "one"]
)
def test_listed_rows_are_those_of_the_text(text: str, rows: list[int], span: int) -> None:
    listed = RowList(text)

    assert len(listed) == len(rows)
    assert listed.span == span
    assert list(listed) == rows


def test_rows_of_an_empty_text_are_none() -> None:
    assert list(RowList("")) == []
    assert not RowList("")
