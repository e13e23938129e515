"""Text as the full-text index sees it: words, CJK pairs, passages.

SQLite's unicode61 tokenizer takes a run of Chinese, Japanese or Korean for one word and finds
nothing inside it. So such runs become overlapping pairs before they are indexed, and a query's runs
become phrases of pairs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_CJK = (
    "\u3005-\u3007\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7fb\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
_ASCII = bytes(range(128))
_BLANKED = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))
_BLANK = re.compile(r"\s")
_FULL_WIDTH = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]+")
_TO_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
# Private-use characters mark facets (index/filters.py); variation selectors would part a run.
_DROPPED = re.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd\ufe00-\ufe0f\U000e0100-\U000e01ef]+")


@cache
def runs() -> re.Pattern[str]:
    """Matches runs of Han, kana, bopomofo or Hangul. Compiled when first needed, as `one_word` is."""
    # What `re` looks for a beginning of twice as fast as with `+`
    return re.compile(f"[{_CJK}][{_CJK}]*")


@cache
def one_word() -> re.Pattern[str]:
    """Matches a word of either kind. Compiled when first needed, since that takes `re` long."""
    return re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+")


PASSAGE_WORDS = 200
"""About how long a passage is; a CJK character counts two thirds of a word."""

_DETAILED = 1_000_000
_TAIL = 8_000
"""Characters of a text that are cut at headings and paragraphs; and of the passages of what
follows.
"""

_BLOCK_END = re.compile(r"\n[ \t]*\r?\n\s*|\n(?=#{1,6} )")
_HEADING = re.compile(r"#{1,6}[ \t]+(.*?)[ \t#]*$", re.M)
_SENTENCE_END = re.compile(r"\n|(?<=[.!?;。！？；])\s*|\s+")


class Passage(NamedTuple):
    """A piece of a text: `text[start:end]`, and the heading it stands under."""

    start: int
    end: int
    heading: str


def fts_text(text: str) -> str:
    """`text` as it goes into a full-text table: NFC, full-width letters plain, CJK runs as pairs.

    `重跑qx7z后` becomes `重跑 跑 qx7z 后`: pairs, then the run's last character by itself.
    """
    if text.isascii():
        return text
    plain = _plain(text)
    if runs().search(_beyond_ascii(plain)):
        return runs().sub(_pairs, plain)
    return plain


def query_text(text: str) -> tuple[str, bool]:
    """`text` as a phrase to look for (empty when it holds no letter or digit), and whether its last
    token must be a prefix. A last CJK run may go on in the note, so it has no lone last character
    unless it is one (then a prefix)."""
    plain = _plain(text.replace("\0", " "))
    words = one_word().findall(plain)
    if not words:
        return "", False
    phrase = runs().sub(_pairs, plain)
    is_run = is_cjk(words[-1])
    if is_run and len(words[-1]) > 1:
        return phrase.rstrip()[:-1].rstrip(), False
    return phrase.strip(), is_run


def tokens(text: str) -> list[str]:
    """The words of `text` in order: Latin words and whole CJK runs, as written."""
    if text.isascii():
        return pieces(text)
    return one_word().findall(_plain(text))


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
        end = blank.end() if blank else len(text)
        yield text[start:end]
        start = end


def is_cjk(word: str) -> bool:
    """Whether `word` begins with a Chinese, Japanese or Korean character."""
    return runs().match(word) is not None


class _InWord(dict[str, bool]):
    """Whether a character goes on a Latin word; CJK characters begin words of their own."""

    def __missing__(self, char: str) -> bool:
        self[char] = char.isalnum() and not is_cjk(char)
        return self[char]


IN_WORD = _InWord()


def words(text: str) -> list[str]:
    """The informative words of `text`, lower case, each once, in order. Stop words and single Latin
    letters are left out; a CJK run is cut at its stop words. If nothing is left, all words are
    returned."""
    latin, cjk = _stop_words()
    found: list[str] = []
    every = [word.lower() for word in tokens(text)]
    for word in every:
        if is_cjk(word):
            found += filter(None, cjk.split(word))
        elif word not in latin and (len(word) > 1 or word.isdigit()):
            found.append(word)
    return list(dict.fromkeys(found or every))


def stop_words() -> frozenset[str]:
    """The Latin words that say little about what is looked for."""
    return _stop_words()[0]


def flatten(text: str) -> str:
    """`text` in lower case without Latin marks, full-width letters plain; every character keeps
    its place, so positions found in it are positions in `text`."""
    if text.isascii():
        return text.lower()
    low = text.lower()
    if len(low) != len(text):
        low = "".join(c if len(c.lower()) != 1 else c.lower() for c in text)
    # Compiled when first needed: a start need not wait for it.
    if re.search("[\u00c0-\u024f\u1e00-\u1eff\uff10-\uff5a]", low):
        return low.translate(_unmarked())
    return low


def passages(text: str) -> list[Passage]:
    """`text` in passages of about 200 words (CJK: 300 characters), cut at headings and
    paragraphs; a longer paragraph is cut at line or sentence ends. Covers all but blank edges."""
    found: list[Passage] = []
    heading = ""
    passage_heading = ""
    begin = 0
    size = 0.0
    for block_start, block_end in _blocks(text):
        block = text[block_start:block_end]
        new = _HEADING.match(block)
        weight = word_count(block)
        if size and (size + weight > PASSAGE_WORDS * 1.25 or (new and size > PASSAGE_WORDS * 0.4)):
            found.append(Passage(begin, block_start, passage_heading))
            begin = block_start
            size = 0.0
        if new:
            heading = new.group(1)
        if not size:
            begin = block_start
            passage_heading = heading
        size += weight
    if size:
        found.append(Passage(begin, len(text), passage_heading))
    return found


def _plain(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    signs = _beyond_ascii(text)
    if _DROPPED.search(signs):
        text = _DROPPED.sub("", text)
    if _FULL_WIDTH.search(signs):
        return _FULL_WIDTH.sub(lambda run: run[0].translate(_TO_ASCII), text)
    return text


def _beyond_ascii(text: str) -> str:
    """The characters of `text` beyond ASCII, usually few: made much faster than `re` looks through
    the text.
    """
    return (
        text.encode("utf-8", "surrogatepass")
        .translate(None, _ASCII)
        .decode("utf-8", "surrogatepass")
    )


class _Twice(dict[int, str]):
    """A character -> itself, a blank, itself again: what a run becomes pairs by."""

    def __missing__(self, code: int) -> str:
        self[code] = f"{chr(code)} {chr(code)}"
        return self[code]


_TWICE = _Twice()


def _pairs(run: re.Match[str]) -> str:
    return f" {run.group().translate(_TWICE)[2:]} "


def _blocks(text: str) -> list[tuple[int, int]]:
    """Paragraphs and headings as (start, end); what is too long for one passage comes in pieces."""
    found: list[tuple[int, int]] = []
    position = 0
    if len(text) <= _DETAILED:
        detailed = len(text)
    else:
        detailed = _blank_after(text, _DETAILED)
    ends = [match.end() for match in _BLOCK_END.finditer(text, 0, detailed)]
    for end in (*ends, detailed):
        if text[position:end].strip():
            if (
                end - position > PASSAGE_WORDS * 2
                and word_count(text[position:end]) > PASSAGE_WORDS * 1.5
            ):
                found.extend(_pieces(text, position, end))
            else:
                found.append((position, end))
        position = end
    while position < len(text):
        end = _blank_after(text, position + _TAIL)
        if not text[position:end].isspace():
            found.append((position, end))
        position = end
    return found


def _blank_after(text: str, at: int) -> int:
    """The end of the next blank, if it is near."""
    blank = _BLANK.search(text, at, at + _TAIL)
    if blank:
        return blank.end()
    return min(at, len(text))


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """A long paragraph cut at line ends, else at sentence ends or blanks, else anywhere."""
    found = []
    while start < end:
        reach = min(end, start + (1200 if text[start : start + 1200].isascii() else 450))
        if reach == end:
            found.append((start, end))
            break
        # The last line before `reach`, if it is near, is looked for from where no blank goes on.
        at = reach - 100
        while at < reach and (text[at].isspace() or text[at - 1].isspace()):
            at += 1
        ends = (match.end() for match in _SENTENCE_END.finditer(text, at, reach))
        line = max((each for each in ends if text[each - 1] == "\n"), default=-1)
        if line > start + 300:
            reach = line
        else:
            cuts = [match.end() for match in _SENTENCE_END.finditer(text, start + 1, reach)]
            lines = [cut for cut in cuts if text[cut - 1] == "\n" and cut - start > 300]
            reach = (lines or cuts or [reach])[-1]
        found.append((start, reach))
        start = reach
    return found


def word_count(block: str) -> float:
    """About how many words `block` has; what has hardly any blanks is measured by its length, a CJK
    character being two thirds of a word."""
    size = max(float(len(block.split())), len(block) / 12)
    if not block.isascii():
        size = max(size, sum(map(len, runs().findall(_beyond_ascii(block)))) / 1.5)
    return size


@cache
def _stop_words() -> tuple[frozenset[str], re.Pattern[str]]:
    text = Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8")
    every = [w for line in text.splitlines() if not line.startswith("#") for w in line.split()]
    latin = frozenset(word for word in every if not is_cjk(word))
    cjk = sorted((word for word in every if is_cjk(word)), key=len, reverse=True)
    return latin, re.compile("|".join(cjk))


@cache
def _unmarked() -> dict[int, int]:
    table = {code: plain for code, plain in _TO_ASCII.items() if chr(plain).isalnum()}
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        plain = unicodedata.normalize("NFD", chr(code))[0]
        if plain != chr(code):
            table[code] = ord(plain.lower())
    return table
