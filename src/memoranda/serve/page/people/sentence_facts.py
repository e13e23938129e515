"""Reads facts about a name from sentences: "Ann moved to Porto" says that the place of Ann is Porto.

texts/sentence_facts.toml has the sentences that are understood.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from memoranda.serve.page.package_files import TEXTS, text_in
from memoranda.text.folding import fold

# A name or a word of the table. It ends before "and" with a small letter, which begins another clause.
_NAME = r"(?P<value>[^,;:，；。]+?)(?=\s+and\s+[a-z]|\s+now\b|[,;:，；。]|[.!](?:\s|\Z)|\Z)"
_WORDS = r"(?P<value>[^,;，；。]+?)(?=\s+now\b|[,;，；。]|[.!](?:\s|\Z)|\Z)"
# A clause begins right behind the name, or behind a sign or "and".
_CLAUSE = r"(?:\A\s*|\s+and\s+|[,;，；]\s*)"
_NOW = re.compile(r"\bnow\b|现在", re.I)
# Words between two names of which a sentence speaks together.
_JOINED = re.compile(r"\s*(?:and|&|,|和|与|、|,\s*and)\s*")


class SentenceFact(NamedTuple):
    """A fact about a name that a sentence has.

    label: what kind of fact it is, as the page shows it: `place`.
    value: the words that say it: `Porto`.
    holds_alone: whether no other value of the label holds beside it.
    """

    label: str
    value: str
    holds_alone: bool


class _Kind(NamedTuple):
    """One kind of fact in sentence_facts.toml."""

    label: str
    is_single: bool
    categories: frozenset[str]
    pattern: re.Pattern[str]


@cache
def _kinds() -> Sequence[_Kind]:
    """Return the kinds of facts in their order on the card."""
    table = tomllib.loads(text_in(TEXTS, "sentence_facts.toml"))
    return [
        _Kind(
            row["label"],
            row["is_single"],
            frozenset(row["categories"]),
            _any_of(row["patterns"]),
        )
        for row in table["fact"]
    ]


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Combine patterns of clauses into one that matches if any of them does.

    A group may have a name only once in a pattern, so the groups of the values are numbered.
    """
    forms = []
    for number, pattern in enumerate(patterns):
        form = pattern.replace("<name>", _NAME).replace("<words>", _WORDS)
        forms.append(form.replace("(?P<value>", f"(?P<value{number}>"))
    return re.compile(f"{_CLAUSE}(?:{'|'.join(forms)})", re.I)


def facts_in_sentence(sentence: str, name: str) -> Iterator[SentenceFact]:
    """Yield the facts about a name in a sentence that begins with it: "Ann moved to Porto".

    Other sentences have no facts.
    """
    # The name must end there: "Ann" does not begin "Anna". Only in scripts without spaces may other
    # letters follow it directly.
    beginning = re.match(
        rf"\s*{re.escape(name)}(?!\w)|\s*{re.escape(name)}(?=[^\x00-\x7f])", sentence, re.I
    )
    if beginning is None:
        return
    words = sentence[beginning.end() :]
    is_now = _NOW.search(words) is not None
    for kind in _kinds():
        match = kind.pattern.search(words)
        if match is not None:
            # Each form in the pattern has a group for the value, and one form has matched.
            (value,) = [text for text in match.groups() if text is not None]
            # "Ann works on Wiki now" says that she works on nothing else.
            holds_alone = kind.is_single or is_now
            yield SentenceFact(kind.label, value.strip(), holds_alone)


def labels_of_fact(category: str, words: str, name: str) -> list[str]:
    """Return the kinds of facts (`role`, `place`) that a line about a name may tell.

    Lines in the note "Ann" often leave the name out: `lives in Porto`. The labels let the page
    compare such a line with sentences of other notes: "Ann moved to Rome". If the words tell no
    fact, the category of the line decides. The result may be empty.

    category: the category of the line, as in `- [place] Porto`.
    words: the text of the line.
    name: the name that the note is about.
    """
    said = [fact.label for fact in facts_in_sentence(f"{name} {words}", name)]
    if said:
        return said
    folded_category = category.casefold()
    return [kind.label for kind in _kinds() if folded_category in kind.categories]


def rank_of_label(label: str) -> int:
    """Return the position of a label on the card. Labels that the table does not have come last."""
    return _ranks().get(label, len(_ranks()))


@cache
def _ranks() -> Mapping[str, int]:
    """Return the place of each label, and of each category that says the same, on the card."""
    ranks: dict[str, int] = {}
    for rank, kind in enumerate(_kinds()):
        for label in (kind.label, *kind.categories):
            ranks.setdefault(label, rank)
    return ranks


def is_about(sentence: str, name: str, folded_names: Iterable[str]) -> bool:
    """Whether a sentence is about a name, and does not only mention it.

    It is about the first name in it, and about those that are joined with that: "Ann and Bo met Cy"
    is about Ann and Bo.

    folded_names: the names that are looked for beside `name`, folded.
    """
    folded_sentence = fold(sentence)
    names_there = {known for known in folded_names if known in folded_sentence}
    places = _places_of_names(folded_sentence, {fold(name), *names_there})
    # The end of the name before, None at the first name. The names are looked at in the order of the
    # sentence, as long as only a word such as "and" is between two of them.
    end = None
    for start, stop, found_name in places:
        is_joined = end is not None and _JOINED.fullmatch(folded_sentence[end:start])
        if end is not None and not is_joined:
            return False
        if found_name == fold(name):
            return True
        end = stop
    return False


def _places_of_names(sentence: str, names: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return where names begin and end in a sentence, in order. Of two that overlap, the longer one.

    sentence, names: all folded.
    """
    places: list[tuple[int, int, str]] = []
    for name in sorted(names, key=len, reverse=True):
        if not name or name not in sentence:
            continue
        # Scripts without spaces have no whole words.
        word_edge = r"\b" if name.isascii() else ""
        for match in re.finditer(f"{word_edge}{re.escape(name)}{word_edge}", sentence):
            # Longer names come first, so a place that is taken has a longer name.
            is_taken = any(
                start < match.end() and match.start() < stop for start, stop, _ in places
            )
            if not is_taken:
                places.append((match.start(), match.end(), name))
    return sorted(places)
