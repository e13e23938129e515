"""Text as the full-text index sees it: words, pairs of runs, passages.

SQLite's unicode61 tokenizer takes a run of Chinese, Japanese or Thai for one word and finds nothing
inside it. So such runs become overlapping pairs before they are indexed, and a query's runs become
phrases of pairs. What is a word, and how its letters are folded, is in `words` and `folding`.
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

_BLANKED = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))
# Where a long piece may be cut.
_BLANK = lazy_pattern(r"\s")

PASSAGE_WORDS = 200
"""About how long a passage is; a CJK character counts two thirds of a word."""

# Characters of a text whose blocks are told apart; beyond them any blank will do.
_DETAILED_CHARACTERS = 1_000_000
# Characters of a text that are cut at headings and paragraphs; and of the passages of what follows.
_TAIL_CHARACTERS = 8_000

# Where a block of Markdown ends.
_BLOCK_END = lazy_pattern(r"\n[ \t]*\r?\n\s*|\n(?=#{1,6} )")
# A heading; the group is its text.
_HEADING = lazy_pattern(r"#{1,6}[ \t]+(.*?)[ \t#]*$", re.M)
# Where a sentence ends, else a line, else a word.
_SENTENCE_END = lazy_pattern(r"\n|(?<=[.!?;。！？；])\s*|\s+")


class Passage(NamedTuple):
    """A piece of a text: `text[start:end]`, and the heading it is under."""

    start: int
    end: int
    heading: str


@remembered
def fts_text(text: str) -> str:
    """`text` as it goes into a full-text table: folded, runs as pairs, and at the end what its
    words are found by, too (`getUser`: `get user`, `e-mail`: `email`)."""
    extra_tokens = extras(text)
    if extra_tokens:
        return f"{words_to_index(fold(text))} {extra_tokens}"
    return words_to_index(fold(text))


def query_text(text: str) -> tuple[str, bool]:
    """`text` as a phrase to look for (empty when it holds no word), and whether its last token must
    be a prefix. A last run may go on in the note, so it has no lone last character unless it is one
    (then a prefix)."""
    return phrase_of(fold(text.replace("\0", " ")))


def tokens(text: str) -> list[str]:
    """The words of `text` in order, folded; runs whole."""
    return words_in(fold(text))


def pieces(text: str) -> list[str]:
    """`text`, which is valid Unicode, cut at blanks and at signs of ASCII."""
    return text.encode().translate(_BLANKED).decode().split()


def parts(text: str, size: int = 1 << 18) -> Iterator[str]:
    """`text` in pieces of about `size` characters that end at blanks, so that a long text needs
    little memory.
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
    """Whether `word` begins with a character of a script that is written in runs."""
    return is_run(word)


def pairs(word: str) -> list[str]:
    """A run in overlapping pairs of what a reader takes for a character; any other word as it is."""
    if is_run(word):
        characters = units(word)
    else:
        characters = [word]
    if len(characters) < 3:
        return [word]
    return list(map("".join, pairwise(characters)))


def words(text: str) -> list[str]:
    """The informative words of `text`, folded, each once, in order. Stop words and single Latin
    letters are left out; a CJK run is cut at its stop words. If nothing is left, all words are
    returned."""
    latin = stop_words()
    token_words: list[str] = []
    all_tokens = tokens(text)
    for word in all_tokens:
        if is_cjk(word):
            token_words += filter(None, _run_stop_words().split(word))
        elif word not in latin and (len(word) > 1 or not word.isalpha()):
            token_words.append(word)
    return list(dict.fromkeys(token_words or all_tokens))


@cache
def stop_words() -> frozenset[str]:
    """The Latin words that say little about what is looked for."""
    # No run begins below this character, so that most words need no expression of all scripts.
    return frozenset(word for word in _listed_stop_words() if word < "\u0e01")


@remembered
def passages(text: str) -> list[Passage]:
    """`text` in passages of about 200 words (CJK: 300 characters), cut at headings and
    paragraphs; a longer paragraph is cut at line or sentence ends. Covers all but blank edges."""
    result: list[Passage] = []
    heading = ""
    passage_heading = ""
    begin = 0
    size = 0.0
    for block_start, block_end in _blocks(text):
        block = text[block_start:block_end]
        new = _HEADING.match(block) if block.startswith("#") else None
        weight = word_count(block)
        if size and (size + weight > PASSAGE_WORDS * 1.25 or (new and size > PASSAGE_WORDS * 0.4)):
            result.append(Passage(begin, block_start, passage_heading))
            begin = block_start
            size = 0.0
        if new:
            heading = new.group(1)
        if not size:
            begin = block_start
            passage_heading = heading
        size += weight
    if size:
        result.append(Passage(begin, len(text), passage_heading))
    return result


def _blocks(text: str) -> list[tuple[int, int]]:
    """Paragraphs and headings as (start, end); what is too long for one passage comes in pieces."""
    blocks: list[tuple[int, int]] = []
    position = 0
    if len(text) <= _DETAILED_CHARACTERS:
        detailed = len(text)
    else:
        detailed = _blank_after(text, _DETAILED_CHARACTERS)
    ends = [match.end() for match in _BLOCK_END.finditer(text, 0, detailed)]
    for end in (*ends, detailed):
        if text[position:end].strip():
            if (
                end - position > PASSAGE_WORDS * 2
                and word_count(text[position:end]) > PASSAGE_WORDS * 1.5
            ):
                blocks.extend(_pieces(text, position, end))
            else:
                blocks.append((position, end))
        position = end
    while position < len(text):
        end = _blank_after(text, position + _TAIL_CHARACTERS)
        if not text[position:end].isspace():
            blocks.append((position, end))
        position = end
    return blocks


def _blank_after(text: str, position: int) -> int:
    """The end of the next blank, if it is near."""
    blank = _BLANK.search(text, position, position + _TAIL_CHARACTERS)
    if blank:
        return blank.end()
    return min(position, len(text))


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a long paragraph at line ends, or else at sentence ends or blanks, or else anywhere."""
    pieces = []
    while start < end:
        reach = start + (1200 if text[start : start + 1200].isascii() else 450)
        if reach >= end:
            pieces.append((start, end))
            break
        cut = _cut_before(text, start, reach)
        pieces.append((start, cut))
        start = cut
    return pieces


def _cut_before(text: str, start: int, reach: int) -> int:
    """Where a piece that begins at `start` ends, at `reach` at the latest."""
    # The last line end, if it is near, is looked for from where no blank goes on.
    earliest = reach - 100
    while earliest < reach and (text[earliest].isspace() or text[earliest - 1].isspace()):
        earliest += 1
    near_line_ends = _line_ends(text, earliest, reach)
    if near_line_ends and near_line_ends[-1] > start + 300:
        return near_line_ends[-1]
    line_ends = [end for end in _line_ends(text, start + 1, reach) if end > start + 300]
    if line_ends:
        return line_ends[-1]
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start + 1, reach)]
    if ends:
        return ends[-1]
    return reach


def _line_ends(text: str, start: int, end: int) -> list[int]:
    """Those ends of sentences in this part of a text that are ends of lines."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start, end)]
    return [line_end for line_end in ends if text[line_end - 1] == "\n"]


def word_count(block: str) -> float:
    """About how many words `block` has.

    A text without blanks is measured by its length: a Chinese or Japanese character is two thirds
    of a word.
    """
    words = float(len(block.split()))
    least = len(block) / 12
    if words > least:
        size = words
    else:
        size = least
    if not block.isascii():
        size = max(size, sum(map(len, runs().findall(beyond_ascii(block)))) / 1.5)
    return size


@cache
def _listed_stop_words() -> tuple[str, ...]:
    lines = Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    return tuple(" ".join(lines).split())


@cache
def _run_stop_words() -> re.Pattern[str]:
    """Matches the stop words of scripts that are written in runs, the longest first."""
    cjk = [word for word in _listed_stop_words() if is_cjk(word)]
    return re.compile("|".join(sorted(cjk, key=len, reverse=True)))


def tokens_in(text: str) -> int:
    """About how many tokens `text` has, rather too many: 4 characters each, a Chinese or Japanese
    one on its own.
    """
    if text.isascii():
        wide = 0
    else:
        wide = sum(map(is_cjk, text))
    return wide + (len(text) - wide + 3) // 4
