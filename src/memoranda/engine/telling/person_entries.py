"""Recognize which entries of keys and values are about the person.

An entry has only a key, a namespace and a value, so their words must say it (person-keys.toml). A
value that says how things are to be, such as `always run them`, says it, too.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from memoranda.note.entry import DEFAULT_NAMESPACE
from memoranda.text.pattern import lazy_pattern
from memoranda.text.standing import says_what_holds

# Where a new word begins inside `keyboardLayout`.
_INNER_CAPITAL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = lazy_pattern(r"[^\W_]+")


def is_about_person(namespace: str, key: str, value: str) -> bool:
    """Whether an entry is about the person: `editor = vim` is, `build_number = 431` is not.

    In other namespaces than the default one, only the key and the namespace say so, because such a
    namespace is usually a program's own.
    """
    words = _words(key)
    # The last word says what the value is, as in `favourite_editor` and `user_build_number`.
    last_words = words[-1:]
    if not last_words or _has_word_of_kind("technical", last_words):
        return False
    is_technical = _has_word_of_kind("technical", words)
    names_person = _has_word_of_kind("person", [*words, *_words(namespace)])
    if names_person and not is_technical:
        return True
    if namespace != DEFAULT_NAMESPACE:
        return False
    is_trait = _has_word_of_kind("traits", last_words)
    if is_trait and not is_technical:
        return True
    return says_what_holds(" ".join(words)) or says_what_holds(value)


def _words(name: str) -> list[str]:
    """Return the words of a key or a namespace without case: `keyboard`, `layout`."""
    return [word.lower() for word in _WORD.findall(_INNER_CAPITAL.sub(" ", name))]


def _has_word_of_kind(kind: str, words: list[str]) -> bool:
    """Whether one of these words is in the table. A Chinese word only has to end in one.

    kind: a key of the table, such as `traits`.
    """
    return any(_pattern(kind).fullmatch(word) is not None for word in words)


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    """Return the pattern of the words under a key of the table."""
    table = tomllib.loads(Path(__file__).with_name("person-keys.toml").read_text(encoding="utf-8"))
    latin = "|".join(word for word in table[kind] if word.isascii())
    chinese = "|".join(word for word in table[kind] if not word.isascii())
    pattern = f"(?:{latin})"
    if chinese:
        # Chinese has no blanks between words, so other signs may stand before the word.
        pattern += f"|.*(?:{chinese})"
    return re.compile(pattern)
