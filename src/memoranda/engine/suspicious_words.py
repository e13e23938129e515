"""Find the words of a note by which it seems to hold injected instructions.

The gate judges a note as a whole (`Gate.suspicious`). The words that made it suspicious are found
here, to show them to the owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from memoranda.engine.write_gate import texts_in
from memoranda.note.model import Note
from memoranda.text.gate import Rules
from memoranda.text.narrowing import Span, narrowed, united

# The places outside the text that may have suspicious words.
TITLE = "title"
HEADER = "header"
"""A value of the header other than the title."""
NAME = "name"
"""The name of the file."""
FILE = "file"
"""The file as a whole: the words begin in its header and end in its text."""


@dataclass(frozen=True, slots=True)
class WordsElsewhere:
    """Suspicious words that are not in the text of a note.

    place: TITLE, HEADER, NAME or FILE.
    key: the key in the header. "" for another place.
    text: the value there. For FILE, it is only the suspicious part, on one line.
    spans: the suspicious parts of `text`.
    """

    place: str
    key: str
    text: str
    spans: tuple[Span, ...]


@dataclass(slots=True)
class SuspiciousWords:
    """The suspicious words of a note.

    spans: the suspicious parts of its `content`.
    elsewhere: words in other places. They match rules that no part of the text matches.
    """

    spans: list[Span] = field(default_factory=list)
    elsewhere: list[WordsElsewhere] = field(default_factory=list)


def suspicious_words(rules: Rules, note: Note) -> SuspiciousWords:
    """Find the words that make a note suspicious, so that a person can judge them.

    rules: the rules of the home. A rule that was changed since may no longer match.
    """
    spans: list[Span] = []
    elsewhere: list[WordsElsewhere] = []
    # Rules that only look at the length of a text, which no words show.
    rules_of_length = {rule.id for rule in rules if rule.longer is not None}
    for rule_id in note.suspicious:
        if rule_id in rules_of_length:
            continue
        spans_in_text = _spans(rules, rule_id, note.content)
        spans += spans_in_text
        if not spans_in_text:
            elsewhere += _words_elsewhere(rules, rule_id, note)
    # Several rules may match the same words.
    return SuspiciousWords(united(spans), list(dict.fromkeys(elsewhere)))


def _spans(rules: Rules, rule_id: str, text: str) -> list[Span]:
    """Return the shortest parts of a text that a rule matches.

    rules: the rules of the home.
    rule_id: the id of the rule.
    """
    return narrowed(text, lambda part: rule_id in rules.suspicions(part))


def _words_elsewhere(rules: Rules, rule_id: str, note: Note) -> list[WordsElsewhere]:
    """Return the words that a rule matches outside the text of a note.

    The title and the header are looked at first, then the file name, then the whole file. Only the
    first of these places that has words counts.

    rules: the rules of the home.
    rule_id: the id of the rule.
    """
    for key, value in _values(note):
        spans = _spans(rules, rule_id, value)
        if spans:
            place = TITLE if key == TITLE else HEADER
            return [WordsElsewhere(place, key, value, tuple(spans))]
    if rule_id in rules.name_suspicions(note.path):
        return [_whole_text(NAME, note.path)]
    found_words: list[WordsElsewhere] = []
    for span in _spans(rules, rule_id, note.text):
        part = note.text[span.start : span.stop]
        on_one_line = " ".join(part.split())
        found_words.append(_whole_text(FILE, on_one_line))
    return found_words


def _whole_text(place: str, text: str) -> WordsElsewhere:
    """Return a text outside the header that is suspicious as a whole."""
    return WordsElsewhere(place, key="", text=text, spans=(Span(0, len(text)),))


def _values(note: Note) -> Iterator[tuple[str, str]]:
    """Yield the texts in the header of a note with their keys, the title first."""
    yield TITLE, note.title
    for key, value in note.header.items():
        for text in texts_in(value):
            yield str(key), text
