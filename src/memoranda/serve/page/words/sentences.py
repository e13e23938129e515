"""Says sentences of the engine in the words of the page, in the reader's language.

Errors, findings of the doctor, reasons and remarks are English sentences, which name commands and
tools. The catalog texts/sentences.json has, for each sentence, what the page says instead. It is
looked up as message catalogs do it: by the fixed words, with `{names}` in the place of the values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from memoranda.errors import MemorandaError, NotPutBack, OutcomeUnknown
from memoranda.serve.page.package_files import TEXTS, text_in
from memoranda.serve.page.words.times import Clock, time_element
from memoranda.serve.page.words.wording import translated
from memoranda.text.unicode import flat, visible

_PLACE = re.compile(r"\{(\w+)\}")
# A command in the words of the page.
_CODE = re.compile(r"`([^`]*)`")
# Values that are a sentence, and those that are a day or a time.
_SENTENCES = frozenset(("reason",))
_SEVERAL_TIMES = "times"
_TIMES = frozenset(("day", "begin", "end"))
# A longer sentence is not looked up: it repeats a long text, and matching would take a while.
_MAX_CHARACTERS = 800


def catalog() -> Mapping[str, str]:
    """Return the page's own English sentence for each sentence of the engine."""
    sentences: dict[str, str] = json.loads(text_in(TEXTS, "sentences.json"))
    return sentences


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return the catalog as patterns, those that fit the fewest sentences first."""
    entries = sorted(catalog().items(), key=lambda entry: _generality(entry[0]))
    return [(re.compile(_as_pattern(sentence), re.DOTALL), words) for sentence, words in entries]


def _generality(sentence: str) -> tuple[bool, int]:
    """Return a value that is higher for a sentence that fits more. Fixed words make it fit less."""
    return sentence.startswith("{"), -len(_PLACE.sub("", sentence))


def _as_pattern(sentence: str) -> str:
    """Return the regular expression of a sentence, with a group for each value."""
    # `split` gives fixed words and names by turns.
    parts = _PLACE.split(sentence)
    groups = [
        f"(?P<{part}>.*?)" if number % 2 else re.escape(part) for number, part in enumerate(parts)
    ]
    return "".join(groups)


def with_code(words: str) -> Markup:
    """Convert words of the page to markup. Text between backticks becomes code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(words))))


def known_words(clock: Clock, sentence: str) -> Markup | None:
    """Return a sentence of the engine as the page says it. None if the catalog does not have it."""
    stripped = sentence.strip()
    if len(stripped) > _MAX_CHARACTERS:
        return None
    for pattern, words in _patterns():
        match = pattern.fullmatch(stripped)
        if match:
            values = {name: _value(clock, name, text) for name, text in match.groupdict().items()}
            return with_code(translated(clock.language, words)).format(**values)
    return None


def in_words(clock: Clock, sentence: str) -> Markup | str:
    """Return a sentence of the engine as the page says it.

    One that the catalog does not have is marked as English for readers of another language.
    """
    words = known_words(clock, sentence)
    if words is not None:
        return words
    if clock.language == "en":
        return sentence
    return Markup('<span lang="en">{}</span>').format(visible(flat(sentence)))


def _value(clock: Clock, name: str, text: str) -> Any:
    """Return a value of a sentence: a reason or a time in words, anything else as it is."""
    if name in _SENTENCES:
        return in_words(clock, text)
    if name in _TIMES:
        return time_element(clock, visible(flat(text)))
    if name == _SEVERAL_TIMES:
        return Markup(" / ").join(time_element(clock, time) for time in text.split(" or "))
    return visible(flat(text))


class ErrorWords(NamedTuple):
    """The words of the page for an error.

    message: a sentence in the reader's language. "" if the catalog has none.
    details: the program's own words, in English. "" if the message says all.
    is_unchanged: whether nothing was changed.
    """

    message: Markup | str
    details: str = ""
    is_unchanged: bool = True


def error_words(clock: Clock, error: MemorandaError) -> ErrorWords:
    """Return an error in the words of the page."""
    sentence = str(error)
    if error.advice is not None:
        # The advice names tools of agents.
        sentence = sentence.removesuffix(error.advice.text) + error.advice.otherwise
    words = sentence_words(clock, sentence, error.hint)
    may_be_changed = isinstance(error, (OutcomeUnknown, NotPutBack))
    return words._replace(is_unchanged=not may_be_changed)


def sentence_words(clock: Clock, sentence: str, hint: str = "") -> ErrorWords:
    """Return an error's sentence in the language of the page.

    If it has no translation, it stays in English, together with the hint.

    sentence: the message of the error, in English.
    hint: an addition to the message for readers of English.
    """
    message = known_words(clock, sentence)
    # The catalog says all, including what the hint would add.
    if message is not None:
        return ErrorWords(message=message)
    own_words = " ".join(filter(None, (sentence, hint)))
    # The program's own words are English, so only readers of English get them as the message.
    if clock.language == "en":
        return ErrorWords(message=own_words)
    return ErrorWords(message="", details=own_words)
