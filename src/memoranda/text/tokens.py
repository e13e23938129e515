"""Bring texts and queries into the form of the full-text index, and cut texts into passages.

A run is a text of a script without blanks between words, such as Chinese. SQLite's tokenizer takes a
run for one word and finds nothing inside it. So runs become overlapping pairs before they are
indexed, and the runs of a query become phrases of pairs. words.py says what a word is, and
folding.py how letters are folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from memoranda.text.folding import beyond_ascii, fold
from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import remembered
from memoranda.text.words import (
    extras,
    is_run,
    phrase_of,
    runs,
    units,
    words_in,
    words_to_index,
)
from memoranda.text.written_numbers import number_forms

# For `bytes.translate`: makes a blank of each ASCII sign that is not a letter or digit.
_BLANKED = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))
# Where a long piece may be cut.
_BLANK = lazy_pattern(r"\s")

PASSAGE_WORDS = 200
"""About how many words a passage has. A Chinese character counts as two thirds of a word."""
# A passage may have this many words, so that a last short paragraph is not cut off.
_MOST_PASSAGE_WORDS = PASSAGE_WORDS * 1.25
# At a heading, a passage ends if it has more words than this. So few passages are tiny.
_LEAST_WORDS_BEFORE_HEADING = PASSAGE_WORDS * 0.4
# A paragraph with more words is cut.
_MOST_PARAGRAPH_WORDS = PASSAGE_WORDS * 1.5
# A paragraph with fewer characters cannot have that many words. So its words are not counted.
_LEAST_CHARACTERS_TO_CUT = PASSAGE_WORDS * 2
# The longest pieces of a paragraph that is cut, in ASCII text and in other text. Each has about
# PASSAGE_WORDS words.
_MOST_ASCII_PIECE_CHARACTERS = 1200
_MOST_PIECE_CHARACTERS = 450
# The shortest piece that may end at a line end.
_LEAST_PIECE_CHARACTERS = 300
# A line end is looked for first in this many characters before the end of the longest piece.
_NEAR_CHARACTERS = 100

# Up to this many characters, a text is cut at headings and paragraphs, which takes long.
_DETAILED_CHARACTERS = 1_000_000
# The rest of a longer text is cut at blanks, into pieces of this length.
_TAIL_CHARACTERS = 8_000

# The end of a block of Markdown: blank lines, or the line break before a heading.
_BLOCK_END = lazy_pattern(r"\n[ \t]*\r?\n\s*|\n(?=#{1,6} )")
# A heading; the group is its text.
_HEADING = lazy_pattern(r"#{1,6}[ \t]+(.*?)[ \t#]*$", re.M)
# The end of a line, of a sentence or of a word.
_SENTENCE_END = lazy_pattern(r"\n|(?<=[.!?;。！？；])\s*|\s+")


class Passage(NamedTuple):
    """A piece of a text: `text[start:end]`, and the heading it is under."""

    start: int
    end: int
    heading: str


@remembered
def fts_text(text: str) -> str:
    """Return `text` in the form of the full-text index.

    Letters are folded. Chinese and other texts without blanks become overlapping pairs: `重跑后`
    becomes `重跑 跑后`. Further words by which the text is found follow at the end: `Call getUser`
    becomes `call getuser get user`, and `1,299.99` becomes `1,299.99 1299 99`.
    """
    if not text:
        return ""
    extra_tokens = " ".join(filter(None, [extras(text), *number_forms(text)]))
    if extra_tokens:
        return f"{words_to_index(fold(text))} {extra_tokens}"
    return words_to_index(fold(text))


def query_text(text: str) -> tuple[str, bool]:
    """Return a query as a phrase of the index, and whether its last word is a prefix.

    `Use 重跑后` becomes `("use 重跑 跑后", False)`. If the query ends with a single Chinese character,
    this is searched as the first of a pair: `Use 重` becomes `("use 重", True)`. A query without
    words becomes `("", False)`.
    """
    return phrase_of(fold(text.replace("\0", " ")))


def tokens(text: str) -> list[str]:
    """Return the words of `text` in order, folded. A run is one word."""
    return words_in(fold(text))


def pieces(text: str) -> list[str]:
    """Split `text` at blanks and at signs of ASCII: `a-b c` into `a`, `b` and `c`.

    text: must be valid Unicode, without lone surrogates.
    """
    return text.encode().translate(_BLANKED).decode().split()


def parts(text: str, size: int = 1 << 18) -> Iterator[str]:
    """Yield `text` in pieces of about `size` characters that end at blanks.

    Work on a long text needs little memory when it is done piece by piece.
    """
    start = 0
    while start < len(text):
        blank = _BLANK.search(text, start + size)
        if blank:
            end = blank.end()
        else:
            end = len(text)
        yield text[start:end]
        start = end


def is_cjk(word: str) -> bool:
    """Whether a word is Chinese, Japanese or of another script without blanks.

    Its first character decides.
    """
    return is_run(word)


def pairs(word: str) -> list[str]:
    """Split a run into overlapping pairs: `記憶術` into `記憶` and `憶術`. Any other word stays."""
    if is_run(word):
        characters = units(word)
    else:
        characters = [word]
    if len(characters) < 3:
        return [word]
    return list(map("".join, pairwise(characters)))


def words(text: str) -> list[str]:
    """Return the informative words of `text`, folded, each once, in order.

    `Where is the tea?` gives `["tea"]`. Stop words and single Latin letters are left out, and a run
    is cut at its stop words. If no word would remain, all words are returned.
    """
    words_to_leave_out = stop_words()
    informative_words: list[str] = []
    all_tokens = tokens(text)
    for word in all_tokens:
        is_single_letter = len(word) == 1 and word.isalpha()
        # No run is ASCII. Checking that first saves most of the calls.
        if not word.isascii() and is_cjk(word):
            informative_words += filter(None, _run_stop_words().split(word))
        elif word not in words_to_leave_out and not is_single_letter:
            informative_words.append(word)
    return list(dict.fromkeys(informative_words or all_tokens))


@cache
def stop_words() -> frozenset[str]:
    """Return the words, such as `the`, that say little in a query. Words of runs are left out."""
    # No run begins below this character, so that most words need no expression of all scripts.
    return frozenset(word for word in _listed_stop_words() if word < "\u0e01")


@remembered
def passages(text: str) -> list[Passage]:
    """Cut `text` into passages of about PASSAGE_WORDS words.

    It is cut at headings and paragraphs, and a long paragraph at the ends of lines or sentences. The
    passages cover the whole text, except for blanks before the first.
    """
    result: list[Passage] = []
    # The latest heading so far
    heading = ""
    # The passage that is being filled: its beginning, its words so far, and its heading
    passage_start = 0
    passage_words = 0.0
    passage_heading = ""
    for block_start, block_end in _blocks(text):
        block = text[block_start:block_end]
        heading_match = _HEADING.match(block) if block.startswith("#") else None
        block_words = word_count(block)

        # End the passage before this block?
        would_be_too_long = passage_words + block_words > _MOST_PASSAGE_WORDS
        ends_at_heading = heading_match and passage_words > _LEAST_WORDS_BEFORE_HEADING
        if passage_words and (would_be_too_long or ends_at_heading):
            result.append(Passage(passage_start, block_start, passage_heading))
            passage_words = 0.0

        # Add the block to the passage, which may begin with it.
        if heading_match:
            heading = heading_match.group(1)
        is_first_block = not passage_words
        if is_first_block:
            passage_start = block_start
            passage_heading = heading
        passage_words += block_words
    if passage_words:
        result.append(Passage(passage_start, len(text), passage_heading))
    return result


def _blocks(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each paragraph and heading. Long paragraphs are cut into pieces."""
    blocks: list[tuple[int, int]] = []
    position = 0
    # Only the beginning of a very long text is cut at its paragraphs, which takes long.
    if len(text) <= _DETAILED_CHARACTERS:
        detailed_end = len(text)
    else:
        detailed_end = _blank_after(text, _DETAILED_CHARACTERS)
    ends = [match.end() for match in _BLOCK_END.finditer(text, 0, detailed_end)]
    for end in (*ends, detailed_end):
        block = text[position:end]
        if block.strip():
            # Counting words takes long, so the characters are counted before.
            may_be_long = len(block) > _LEAST_CHARACTERS_TO_CUT
            if may_be_long and word_count(block) > _MOST_PARAGRAPH_WORDS:
                blocks.extend(_pieces(text, position, end))
            else:
                blocks.append((position, end))
        position = end
    return blocks + _equal_blocks(text, position)


def _equal_blocks(text: str, position: int) -> list[tuple[int, int]]:
    """Cut a text from `position` on into blocks of equal length. Returns the (start, end) of each."""
    blocks: list[tuple[int, int]] = []
    while position < len(text):
        end = _blank_after(text, position + _TAIL_CHARACTERS)
        if not text[position:end].isspace():
            blocks.append((position, end))
        position = end
    return blocks


def _blank_after(text: str, position: int) -> int:
    """Return the end of the next blank after `position`, or `position` if no blank is near."""
    blank = _BLANK.search(text, position, position + _TAIL_CHARACTERS)
    if blank:
        return blank.end()
    return min(position, len(text))


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a long paragraph into pieces. Returns the (start, end) of each.

    It is cut at line ends, or else at ends of sentences or words, or else anywhere.

    start, end: the place of the paragraph in `text`.
    """
    pieces = []
    while start < end:
        latest_end = start + _MOST_ASCII_PIECE_CHARACTERS
        if not text[start:latest_end].isascii():
            latest_end = start + _MOST_PIECE_CHARACTERS
        is_last = latest_end >= end
        piece_end = end if is_last else _piece_end(text, start, latest_end)
        pieces.append((start, piece_end))
        start = piece_end
    return pieces


def _piece_end(text: str, start: int, latest_end: int) -> int:
    """Return where to end the piece that begins at `start`: at `latest_end` or before."""
    least_end = start + _LEAST_PIECE_CHARACTERS
    # Most pieces end at a line end near the latest end, which is found quickly.
    near_start = latest_end - _NEAR_CHARACTERS
    # The search must not begin inside of several blanks, since together they are one match.
    while near_start < latest_end and (
        text[near_start].isspace() or text[near_start - 1].isspace()
    ):
        near_start += 1
    near_line_ends = _line_ends(text, near_start, latest_end)
    if near_line_ends and near_line_ends[-1] > least_end:
        return near_line_ends[-1]

    # Else the last line end, the last end of a sentence or word, or the latest end.
    line_ends = [end for end in _line_ends(text, start + 1, latest_end) if end > least_end]
    if line_ends:
        return line_ends[-1]
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start + 1, latest_end)]
    if ends:
        return ends[-1]
    return latest_end


def _line_ends(text: str, start: int, end: int) -> list[int]:
    """Return the positions in `text[start:end]` where a sentence ends with a line break."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start, end)]
    return [line_end for line_end in ends if text[line_end - 1] == "\n"]


def word_count(block: str) -> float:
    """Return about how many words a text has, at least one for each 12 characters.

    A Chinese or Japanese character counts as two thirds of a word.
    """
    count = max(float(len(block.split())), len(block) / 12)
    if not block.isascii():
        run_characters = sum(map(len, runs().findall(beyond_ascii(block))))
        count = max(count, run_characters / 1.5)
    return count


@cache
def _listed_stop_words() -> tuple[str, ...]:
    """Return the words of stopwords.txt."""
    lines = Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    return tuple(" ".join(lines).split())


@cache
def _run_stop_words() -> re.Pattern[str]:
    """Return the pattern of the stop words of scripts without blanks, the longest first."""
    run_words = [word for word in _listed_stop_words() if is_cjk(word)]
    return re.compile("|".join(sorted(run_words, key=len, reverse=True)))


def tokens_in(text: str) -> int:
    """Estimate how many tokens of a language model `text` has, rather too many than too few.

    Four characters count as a token, and so does each Chinese or Japanese character.
    """
    run_characters = 0
    if not text.isascii():
        run_characters = sum(map(is_cjk, text))
    other_characters = len(text) - run_characters
    # Adding 3 rounds up.
    return run_characters + (other_characters + 3) // 4
