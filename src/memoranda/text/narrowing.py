"""Find the shortest parts of a text that a test still matches.

The rules for injected instructions judge a whole text. A person wants to see the words that made a
rule match. To find them, a part of the text is shortened as long as the rule still matches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from memoranda.text.disguise import SENTENCE_END
from memoranda.text.pattern import lazy_pattern

MOST_SPANS = 20
"""How many parts are found at most."""
# A longer text is only shortened within its sentences, because trying the whole text takes long.
_LONGEST_WHOLE = 20_000
# The units by which a part is shortened: a word, a sign, or a character of a script without blanks.
_UNIT = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|[^\w\s]")


class Span(NamedTuple):
    """A part of a text, by its offsets. `stop` is not included."""

    start: int
    stop: int


def narrowed(text: str, is_matched: Callable[[str], bool]) -> list[Span]:
    """Return the shortest parts of a text that are matched, in the order of the text.

    They are looked for in each sentence. If no sentence is matched by itself, one part of the whole
    text is returned. A shortest part would not be matched without its first or its last word.

    is_matched: the test. Returns whether a text is matched.
    """
    spans: list[Span] = []
    for sentence in _sentences(text):
        if len(spans) < MOST_SPANS and is_matched(text[sentence.start : sentence.stop]):
            spans.append(_shortened(text, sentence, is_matched))
    if not spans and len(text) <= _LONGEST_WHOLE and is_matched(text):
        spans.append(_shortened(text, Span(0, len(text)), is_matched))
    return spans


def united(spans: list[Span]) -> list[Span]:
    """Return spans in the order of the text. Those that overlap or touch are joined."""
    result: list[Span] = []
    for span in sorted(spans):
        last = result[-1] if result else None
        if last is not None and span.start <= last.stop:
            result[-1] = Span(last.start, max(last.stop, span.stop))
        else:
            result.append(span)
    return result


def _sentences(text: str) -> Iterator[Span]:
    """Yield the sentences of a text, each with the sign at its end."""
    start = 0
    for match in SENTENCE_END.finditer(text):
        if match.end() > start:
            yield Span(start, match.end())
            start = match.end()
    if start < len(text):
        yield Span(start, len(text))


def _shortened(text: str, span: Span, is_matched: Callable[[str], bool]) -> Span:
    """Return the shortest part of a matched span, shortened first at its end, then at its start."""
    units = [match.span() for match in _UNIT.finditer(text, span.start, span.stop)]
    if not units:
        return span

    # The first end at which the span is matched
    stops = [stop for _, stop in units]
    index = _first_true(len(stops), lambda number: is_matched(text[span.start : stops[number]]))
    # Without an index, the span is only matched together with the blanks around its words
    stop = span.stop if index is None else stops[index]

    # The last start at which it is matched
    starts = [start for start, unit_stop in reversed(units) if unit_stop <= stop]
    index = _first_true(len(starts), lambda number: is_matched(text[starts[number] : stop]))
    start = span.start if index is None else starts[index]
    return Span(start, stop)


def _first_true(count: int, is_true: Callable[[int], bool]) -> int | None:
    """Find the first number below `count` that passes a test, by bisection.

    The test should be true for all numbers after that. If it is not, the result may be another
    number for which it is true, and whose predecessor fails the test.

    Returns None if the test is not even true for the last number.
    """
    if not is_true(count - 1):
        return None
    too_small = -1
    large_enough = count - 1
    while large_enough - too_small > 1:
        middle = (too_small + large_enough) // 2
        if is_true(middle):
            large_enough = middle
        else:
            too_small = middle
    return large_enough
