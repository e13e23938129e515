"""Which words of a query a note contains, and how, as one number: three marks for each word.

The number is called *bits*. Its lowest three bits are the marks of the first word, the next three
the marks of the second. A note that has the second word in its text and title has `0b101_000`.

One number is compared, joined (`|`) and looked up faster than a set of words.
"""

from __future__ import annotations

EXACT = 1
"""The text contains the word."""
LOOSE = 2
"""The text contains only a longer word that begins so, or only the note's address contains it."""
TITLE = 4
"""Title, headings or tags contain the word."""
IN_TEXT = EXACT | LOOSE

WIDTH = 3
"""How many bits the marks of one word take."""
# All of these bits.
_ALL = EXACT | LOOSE | TITLE


def bits_of(word_number: int, marks: int) -> int:
    """Return the bits that give the marks `marks` to one word of the query.

    word_number: the number of the word in the query, from 0. Its marks are WIDTH bits, to the left
        of the marks of the words before it.
    """
    return marks << (WIDTH * word_number)


def marks_of(bits: int, word_number: int) -> int:
    """Return the marks that `bits` have for one word of the query. 0 if it is not contained.

    word_number: the number of the word in the query, from 0.
    """
    return (bits >> (WIDTH * word_number)) & _ALL


def last_word(bits: int) -> int:
    """Return the number of the last word of the query that is marked in `bits`. -1 if none is."""
    return (bits.bit_length() - 1) // WIDTH
