"""Compute the ranking features of a note when it is indexed: speaker, day, conversation, style.

A note may be a *turn*: what one person says in a conversation. Alone, its words say little. So the
ranking of questions also looks at the other turns of the conversation, which are in the same folder
and have the same day.

The *speaker* of a text is the first name of the person who says it, folded: `anna` for
`Anna Weber: I agree.` A *chunk* is a part of a long text that a search scores by itself: a turn, a
list item, or a passage of about 200 words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from memoranda.clock import microseconds
from memoranda.note.model import Note
from memoranda.text.checksum import blake2b
from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import remembered
from memoranda.text.standing import MAX_CHARACTERS, says_what_holds
from memoranda.text.tokens import parts, passages, pieces, stop_words, tokens, word_count
from memoranda.text.words import index_words, without_signs

SHORT = 700
"""A text of at most this many characters is one chunk. Of a longer text, only the speaker is read,
not the style."""

STEMMED = 1_000_000
"""Questions find words in other forms only in this many characters of a text. They find the exact
words everywhere."""

# A day in a header: 2025-03-01.
_DAY = lazy_pattern(r"\d{4}-\d\d-\d\d")
# The keys of a header that may name the speaker, the first of them first.
_SPEAKER_KEYS = ("speaker", "author", "sender", "from")
_NAME = r"[^\W\d_][\w.'’-]{0,24}(?: (?![a-z])[^\W\d_][\w.'’-]{0,24}){0,2}"
# The beginning of a turn: perhaps a list sign and a time in brackets, then a name and a colon.
_SPEAKER = lazy_pattern(
    rf"(?:[-*+] )?(?:\[[^\]\n]{{1,40}}\] ?)?(?:\*\*)?({_NAME})(?:\*\*)?(?:：|:(?:\*\*)?(?=\s))(?:\*\*)?"
)
# Where a turn begins.
_TURN = lazy_pattern(rf"^(?={_SPEAKER.pattern})", re.M)
# A text with at least this many characters and list items is cut at the items.
_MIN_LIST_CHARACTERS = 200
_MIN_ITEMS = 3
# The beginning of a list item.
_ITEM = lazy_pattern(r"^(?:[-*+]|\d{1,3}[.)])[ \t]+\S", re.M)
# A short beginning that ends in a colon: the name of a speaker.
_NAME_OF_CHUNK = lazy_pattern(r"[^\n:：]{1,80}[:：]")
# Start, stop and words of a chunk in the index.
_CUT = Struct("<HHH")
_MAX_STORED_CHARACTERS = 0xFFFF
# Titles before a name, which are not the name.
_TITLES = frozenset(("dr", "mr", "mrs", "ms", "prof", "sir", "the"))
# Words before a colon that are a label.
_NOT_SPEAKERS = frozenset(("manual", "import", "note"))
# Fewer turns are not a conversation.
_MIN_TURNS = 4
# Longer turns on average are not a conversation either.
_MAX_TURN_CHARACTERS = 4_000
# A sentence that ends in a question mark.
_QUESTION = lazy_pattern(r"[^.!?。！？\n]+[?？]")
# Words by which a speaker means themselves: such turns say more about them.
# In ASCII text. `re` passes over a text faster if the pattern begins with a class of characters.
_FIRST_PERSON_IN_ASCII = lazy_pattern(
    r"[IMWOUimwou](?<!\w.)(?:(?<=[Ii])|(?i:(?<=m)(?:e|y|ine|yself)|(?<=w)e|(?<=u)s|(?<=o)urs?))(?!\w)"
)
_FIRST_PERSON = lazy_pattern(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b|我|咱|俺|私|僕", re.I)


class Style(NamedTuple):
    """The style of a note.

    speaker: the folded first name of the person who says it, or None.
    words: about how many words it has.
    question: the share of questions in percent.
    first_person: how many pronouns of the first person, up to 4.
    has_time: whether it names a time.
    """

    speaker: str | None
    words: int
    question: int
    first_person: int
    has_time: bool


def row(note: Note, text: str, project: int) -> dict[str, object]:
    """Return the row of a note in table `feature`.

    The day is the note's date or, without one, the day it was written. Notes with a speaker that
    have the same folder and day are a conversation. In it they are sorted by the time of writing.

    text: the searched part of the body.
    project: the id of the project.
    """
    # A name at the beginning of the text counts first, then the header.
    speaker_in_header = _speaker_in_header(note) or note.source
    style = style_of(text, speaker_in_header)
    is_turn = style.speaker is not None
    day = (note.date or "").strip()[:10]
    if not _DAY.fullmatch(day):
        day = note.created.date().isoformat()
    conversation = None
    if is_turn:
        # The turns of one conversation get the same number, made of all that they share: a hash of
        # 48 bits, since an integer of SQLite has 64.
        folder = note.path.rpartition("/")[0]
        shared_by_turns = f"{project}\0{folder}\0{day}".encode("utf-8", "replace")
        conversation = int.from_bytes(blake2b(shared_by_turns, digest_size=6))
    return {
        "conversation": conversation,
        # Turns are sorted by this number.
        "position": microseconds(note.created),
        "day": day,
        # `speaker`, `words`, `question`, `first_person` and `has_time`
        **style._asdict(),
        "is_long": len(text) > SHORT,
        "is_standing": is_turn and _is_standing(text),
    }


@remembered
def _is_standing(text: str) -> bool:
    """Whether a turn of a conversation says how things are to be from now on."""
    # Looking for a speaker takes long in a long text. This much is left without one.
    beginning = text.strip()[: 2 * MAX_CHARACTERS]
    return says_what_holds(_SPEAKER.sub("", beginning, count=1))


def _speaker_in_header(note: Note) -> str | None:
    """Return the person whom the header names as the one who says the note, or None."""
    for key in _SPEAKER_KEYS:
        speaker = note.header.get(key)
        if isinstance(speaker, str):
            return speaker
    return None


@remembered
def style_of(text: str, source: str | None = None) -> Style:
    """Return the speaker and the style of a text.

    source: the speaker if the text does not begin with a name. None if nobody is named.
    """
    body = text.strip()
    speaker = speaker_of(body, source)
    # Divided by elsewhere, so never 0.
    word_total = max(1, round(word_count(body)))
    # The style of a long text is not read: each of its chunks has another. It surely names a time.
    if len(body) > SHORT or not body:
        has_time = body != ""
        return Style(speaker, word_total, question=0, first_person=0, has_time=has_time)
    question_characters = 0
    if "?" in body or "？" in body:
        question_characters = sum(map(len, _QUESTION.findall(body)))
    question_percent = round(100 * question_characters / len(body))
    has_time = _time_words().search(body.lower()) is not None
    return Style(speaker, word_total, question_percent, first_person(body), has_time)


def speaker_of(text: str, source: str | None = None) -> str | None:
    """Return who says a text: `Anna: I agree.` → `anna`. None if nobody is named.

    text: a text without blanks at the beginning.
    source: the name to use if the text does not begin with one. None if nobody is named.
    """
    match = _SPEAKER.match(text)
    if match:
        speaker = _first_name(match[1])
        if speaker is not None:
            return speaker
    return _first_name(source or "")


def first_person(text: str) -> int:
    """Count the pronouns of the first person in a short text, up to 4. 0 for a longer text."""
    if len(text.strip()) > SHORT:
        return 0
    pattern = _FIRST_PERSON_IN_ASCII if text.isascii() else _FIRST_PERSON
    return min(4, len(pattern.findall(text)))


def turns_or_passages(text: str) -> list[tuple[int, int]]:
    """Split a text into the turns of a conversation, or into passages of about 200 words.

    Return (start, end) of each. A text is a conversation if it has at least four turns, not too
    long, and twice as many turns as speakers.
    """
    starts: list[int] = []
    # Every turn has a colon. Counting colons is faster than searching for turns.
    if text.count(":") + text.count("：") >= _MIN_TURNS:
        starts = [match.start() for match in _TURN.finditer(text)]
    if not _are_turns(text, starts):
        return [(passage.start, passage.end) for passage in passages(text)]
    # The text before the first turn is a part, too.
    bounds = pairwise([0, *starts, len(text)])
    return [(start, end) for start, end in bounds if text[start:end].strip()]


def _are_turns(text: str, starts: Sequence[int]) -> bool:
    """Whether a text is a conversation, as `turns_or_passages` defines it.

    starts: the positions at which turns would begin. A name and a colon follow at each.
    """
    if len(starts) < _MIN_TURNS:
        return False
    # In a conversation, speakers come again. Labels such as `Address:` do not.
    names = {_SPEAKER.match(text, start)[1] for start in starts}  # type: ignore[index]  # _TURN looks ahead for it
    names_come_again = len(names) * 2 <= len(starts)
    average_length = (starts[-1] - starts[0]) / len(starts)
    return names_come_again and average_length <= _MAX_TURN_CHARACTERS


class ChunkSpan(NamedTuple):
    """A chunk of a text: `text[start:stop]`.

    words: about how many words it has, at least 1.
    speaker: the folded first name of the person who says it, or None.
    """

    start: int
    stop: int
    words: int
    speaker: str | None


class StoredChunks(NamedTuple):
    """The chunks of a text as the index keeps them: columns of table `text`.

    cuts: start, stop and words of each chunk.
    speakers: the speakers as a JSON list. None if nobody is named.
    """

    cuts: bytes
    speakers: str | None


def chunk(text: str) -> list[tuple[int, int]]:
    """Split a text into turns of a conversation, or into list items and passages of about 200 words.

    Return (start, stop) of each. A short text is one chunk.
    """
    if len(text) <= SHORT:
        return [(0, len(text))]

    # Turns and passages with lists are split again, into the items of the lists.
    spans: list[tuple[int, int]] = []
    for start, stop in turns_or_passages(text):
        item_starts: list[int] = []
        if stop - start >= _MIN_LIST_CHARACTERS:
            item_starts = [match.start() for match in _ITEM.finditer(text, start, stop)]
        if len(item_starts) < _MIN_ITEMS:
            spans.append((start, stop))
            continue
        # Each item includes the text after it. A heading before the list belongs to the first item,
        # any other text before it is a separate chunk.
        text_before = text[start : item_starts[0]].strip()
        is_heading = text_before.startswith("#") and "\n" not in text_before
        is_separate_chunk = text_before != "" and not is_heading
        # The first chunk begins at `start`: the text before, or the first item with its heading.
        later_starts = item_starts if is_separate_chunk else item_starts[1:]
        chunk_starts = [start, *later_starts]
        chunk_stops = [*later_starts, stop]
        spans += zip(chunk_starts, chunk_stops, strict=True)
    return spans or [(0, len(text))]


def chunk_spans(text: str) -> list[ChunkSpan]:
    """Return the chunks of a text with their words and speakers."""
    spans: list[ChunkSpan] = []
    for start, stop in chunk(text):
        speaker = None
        # Only the beginning up to a colon is looked at, since a chunk may be long.
        match = _NAME_OF_CHUNK.match(text, start)
        if match:
            # `speaker_of` takes a name only if a word follows the colon. Any word will do.
            speaker = speaker_of(f"{match.group()} x".lstrip())
        words = round(word_count(text[start:stop])) or 1
        spans.append(ChunkSpan(start, stop, words, speaker))
    return spans


def stored_chunks(text: str) -> StoredChunks | None:
    """Return the chunks of a text for the index, so that a search need not cut it again.

    None for a text of a single chunk, and for one so long that its places need more than 2 bytes.
    """
    is_single_chunk = len(text) <= SHORT
    if is_single_chunk or len(text) > _MAX_STORED_CHARACTERS:
        return None
    spans = chunk_spans(text)
    speakers = [span.speaker for span in spans]
    cuts = b"".join([_CUT.pack(span.start, span.stop, span.words) for span in spans])
    if not any(speakers):
        return StoredChunks(cuts, speakers=None)
    return StoredChunks(cuts, json.dumps(speakers, ensure_ascii=False))


def spans_from_index(cuts: bytes, speakers: str | None) -> list[ChunkSpan]:
    """Return the chunks that `stored_chunks` stored.

    cuts: start, stop and words of each chunk, as bytes.
    speakers: the speakers as a JSON list. None if nobody is named.
    """
    numbers = _CUT.iter_unpack(cuts)
    if speakers is None:
        return [ChunkSpan(start, stop, words, speaker=None) for start, stop, words in numbers]
    names = json.loads(speakers)
    return [
        ChunkSpan(start, stop, words, name)
        for (start, stop, words), name in zip(numbers, names, strict=True)
    ]


def stem_text(texts: Iterable[str], facet: str) -> str:
    """Return the text to store in table `stem_fts`: each word once, and then the facet tokens.

    Stop words are left out, since questions do not look for them.

    texts: texts as `fts_text` returns them.
    facet: the facet tokens of the note.
    """
    return " ".join([*_stems("\n".join(texts)), facet])


@remembered
def _stems(text: str) -> set[str]:
    """Return the different words of a text without stop words."""
    stems: set[str] = set()
    for part in parts(text):
        words = pieces(part.lower())
        if part.isascii():
            stems.update(words)
        else:
            stems |= _stems_beyond_ascii(set(words))
    stems -= stop_words()
    return stems


def _stems_beyond_ascii(words: set[str]) -> set[str]:
    """Return words as the stemmed table has them.

    A word with signs in it is cut at the signs, and is also joined without them. Words without
    signs stay as they are.
    """
    with_signs = [word for word in words if not word.isalnum()]
    if not with_signs:
        return words
    # `wi-fi` → the parts `wi` and `fi`, and the word `wifi`
    parts_of_words = index_words(" ".join(with_signs))
    joined_words = map(without_signs, parts_of_words)
    return words.difference(with_signs).union(parts_of_words, joined_words)


def _first_name(name: str) -> str | None:
    """Return the folded first name, which a question would use: `Dr. Anna Weber` → `anna`.

    None if it is a label, such as `note`, or has no name.
    """
    names = [word for word in tokens(name) if word not in _TITLES]
    if not names or names[0] in _NOT_SPEAKERS or names[0] in stop_words():
        return None
    return names[0]


@cache
def _time_words() -> re.Pattern[str]:
    """Return the pattern for words that name a time, from times.txt, and for years."""
    lines = Path(__file__).with_name("times.txt").read_text(encoding="utf-8").splitlines()
    words: list[str] = []
    for line in lines:
        if not line.startswith("#"):
            words += line.split()
    latin_words = "|".join([word for word in words if word.isascii()])
    # Chinese and Japanese have no blanks between words.
    other_words = "|".join([word for word in words if not word.isascii()])
    return re.compile(rf"\b(?:{latin_words}|(?:19|20)\d\d)\b|{other_words}")
