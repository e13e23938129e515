"""Russian and Ukrainian words are found in their other forms, and other words are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from index.conftest import Desk
from memoranda.index.search.endings import other_endings
from memoranda.text.folding import fold

_PAIRS = Path(__file__).parent / "data" / "word_forms.txt"
# Words that begin alike and are not forms of each other.
_OTHER_WORDS = (
    ("план", "планета"),
    ("планета", "планёрка"),
    ("банк", "банкет"),
    ("код", "кодекс"),
    ("порт", "портрет"),
    ("сад", "садик"),
    ("мир", "мировой"),
    ("стол", "столица"),
    ("встреча", "встречный"),
    ("врач", "врачебный"),
    ("работа", "работник"),
    ("город", "городской"),
    ("письмо", "писатель"),
    ("нога", "ноготь"),
    ("книга", "книжный"),
    ("школа", "школьник"),
    ("день", "деньги"),
    ("место", "местный"),
    ("робота", "робітник"),
    ("місто", "містечко"),
)


def _pairs(language: str) -> list[list[str]]:
    pairs = []
    for line in _PAIRS.read_text("utf-8").splitlines():
        line_language, _, pair = line.partition(" ")
        if line_language == language:
            pairs.append(pair.split())
    return pairs


@pytest.mark.parametrize("language", ["ru", "uk"])
def test_word_in_one_form_is_found_by_another(language: str, desk: Desk) -> None:
    pairs = _pairs(language)
    desk.put_all({f"{number}.md": written for number, (written, _) in enumerate(pairs)})
    missed = []
    for number, pair in enumerate(pairs):
        found = desk.found(pair[1])
        if f"{number}.md" not in found:
            missed.append(pair)
    assert missed == []


def test_question_with_another_form_finds_the_word(desk: Desk) -> None:
    desk.put("doctor.md", "Записался к врачу на вторник")
    desk.put("other.md", "Купить хлеб и молоко")
    assert desk.found("Когда я иду к врачом?") == ["doctor.md"]


def test_word_in_another_form_is_shown_as_a_word_of_the_hit(desk: Desk) -> None:
    desk.put("doctor.md", "Записался к врачу на вторник")
    (hit,) = desk.search("врачом")
    assert hit.words == ("врачом",)


def test_words_that_begin_alike_are_no_forms() -> None:
    mixed_up = []
    for word, other_word in _OTHER_WORDS:
        forms = other_endings(fold(word))
        if fold(other_word) in forms:
            mixed_up.append(other_word)
    assert mixed_up == []


@pytest.mark.parametrize("word", ["plan", "schön", "计费", "он", "я" * 50])
def test_word_without_such_endings_has_no_forms(word: str) -> None:
    assert other_endings(word) == set()
