"""Find which tokens of a very long query a text has, without looking for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

# A token is looked for in a word that has its first characters next to each other.
_BEGINNING = 3


class ManyTokens:
    """The tokens of a query by their beginnings.

    A word has few beginnings of tokens, and texts have many words in common. So the time for a text
    hardly depends on the length of the query.

    tokens: different tokens without blanks.
    """

    def __init__(self, tokens: Sequence[str]):
        self._tokens = tokens
        # Beginning of tokens -> their positions in the query.
        self._by_beginning: dict[str, list[int]] = {}
        for position, token in enumerate(tokens):
            self._by_beginning.setdefault(token[:_BEGINNING], []).append(position)
        # Word of a text -> the positions of the tokens in it.
        self._in_known_words: dict[str, list[int]] = {}

    def in_text(self, text: str) -> list[str]:
        """Return the tokens that a text has, also inside longer words, in the order of the query."""
        positions: set[int] = set()
        for word in set(text.split()):
            in_word = self._in_known_words.get(word)
            if in_word is None:
                in_word = self._in_word(word)
                self._in_known_words[word] = in_word
            positions.update(in_word)
        return [self._tokens[position] for position in sorted(positions)]

    def _in_word(self, word: str) -> list[int]:
        """Return the positions of the tokens that are in a word."""
        positions: list[int] = []
        # A token can only be in a word that has its beginning.
        for beginning in self._by_beginning.keys() & _short_parts(word):
            positions += [
                position
                for position in self._by_beginning[beginning]
                if self._tokens[position] in word
            ]
        return positions


def _short_parts(word: str) -> set[str]:
    """Return all parts of a word that have one, two or three characters.

    `tea` → `t`, `e`, `a`, `te`, `ea`, `tea`.
    """
    # `map` joins each character and the next one, then each pair and the character after it.
    pairs = list(map(add, word, word[1:]))
    triples = map(add, pairs, word[2:])
    return {*word, *pairs, *triples}
