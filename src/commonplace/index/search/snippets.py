"""What a hit shows of a note: at most 200 characters, cut where the words of the query stand closest."""

from __future__ import annotations

from collections.abc import Sequence

SNIPPET = 200
"""The most characters of a snippet."""

Place = tuple[int, int]
"""Where in a text a word of the query stands, and its number."""

_APART = 60
"""Characters between two words at which their nearness is a half."""


def snippet(text: str, start: int, stop: int, places: Sequence[Place], weights: Sequence[float]) -> tuple[str, int]:
    """At most 200 characters of `text[start:stop]`, cut where the words of most weight stand; and their line, from 1
    in `text`. `places` are in order."""
    inside = [place for place in places if start <= place[0] < stop] if stop - start > SNIPPET else []
    if not inside:
        return shortened(text, start, stop)

    def weight(number: int) -> float:
        first = inside[number][0]
        return sum(weights[word] for word in {word for at, word in inside[number:] if at < first + SNIPPET - 40})

    # A little before the words: the start of their line when that is near, else of a word.
    at = inside[max(range(len(inside)), key=weight)][0]
    begin = text.rfind("\n", start, at) + 1 or start
    if at - begin > 60:
        back = max(start, at - 40)
        begin = text.find(" ", back, at) + 1 or back
    return shortened(text, begin, stop)


def shortened(text: str, begin: int, stop: int) -> tuple[str, int]:
    """At most 200 characters of `text` from `begin` on, up to `stop`; and their line, from 1 in `text`."""
    end = min(stop, begin + SNIPPET)
    if end < stop and not text[end].isspace():
        blank = max(text.rfind(" ", begin, end), text.rfind("\n", begin, end))
        if blank > begin + SNIPPET * 2 // 3:
            end = blank
    piece = text[begin:end]
    begin += len(piece) - len(piece.lstrip())
    return piece.strip(), text.count("\n", 0, begin) + 1


def nearness(places: Sequence[Place], words: int) -> float:
    """1 when words that are neighbors in a query of so many `words`, at least two, stand side by side, 0 when far
    apart. `places` are in order."""
    last, closest = [-1] * words, [_APART * 4] * words
    for at, word in places:
        last[word] = at
        for other in (word - 1, word + 1):
            if 0 <= other < words and last[other] >= 0:
                pair = min(word, other)
                closest[pair] = min(closest[pair], at - last[other])
    return sum(_APART / (_APART + gap) for gap in closest[: words - 1] if gap < _APART * 4) / (words - 1)
