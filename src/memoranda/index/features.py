"""Ranking features of a note that are computed when it is indexed: speaker, day, conversation, kind
of sentence.

A turn of a conversation that is a separate note says little by its words. The ranking of questions
therefore also looks at the other notes of its conversation, which are in the same folder on the
same day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from memoranda.clock import microseconds
from memoranda.note.model import Note
from memoranda.text.checksum import blake2b
from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import remembered
from memoranda.text.tokens import parts, passages, pieces, stop_words, tokens, word_count
from memoranda.text.words import index_words, without_signs

SHORT = 700
"""A text of at most this many characters is one chunk; a longer one is no turn, and only its speaker
is read.
"""

STEMMED = 1_000_000
"""Characters of a text whose words questions find in other forms; the words themselves are found
wherever they are.
"""

# A day in a header: 2025-03-01.
_DAY = lazy_pattern(r"\d{4}-\d\d-\d\d")
_VOICE_KEYS = ("speaker", "author", "sender", "from")
_NAME = r"[^\W\d_][\w.'’-]{0,24}(?: (?![a-z])[^\W\d_][\w.'’-]{0,24}){0,2}"
# The beginning of a turn: perhaps a list sign and a time in brackets, then a name and a colon.
_SPEAKER = lazy_pattern(
    rf"(?:[-*+] )?(?:\[[^\]\n]{{1,40}}\] ?)?(?:\*\*)?({_NAME})(?:\*\*)?(?:：|:(?:\*\*)?(?=\s))(?:\*\*)?"
)
# Where a turn begins.
_TURN = lazy_pattern(rf"^(?={_SPEAKER.pattern})", re.M)
# Words before a name that name nobody.
_TITLES = frozenset(("dr", "mr", "mrs", "ms", "prof", "sir", "the"))
# Words before a colon that are a label.
_NOT_SPEAKERS = frozenset(("manual", "import", "note"))
# Fewer turns are not a conversation.
_MIN_TURNS = 4
# A sentence that ends in a question mark.
_QUESTION = lazy_pattern(r"[^.!?。！？\n]+[?？]")
# Words by which a speaker means themselves: such turns say more about them.
_FIRST_PERSON = lazy_pattern(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b|我|咱|俺|私|僕", re.I)


class Style(NamedTuple):
    """The style of a note.

    speaker: the folded first name of the person who says it.
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
    """The features of a note, by the columns of their table. `text` is the searched part of its
    body.

    The day is the day of its event, if it has one, or of its writing. The time of writing orders
    the notes of a conversation, which is a folder on a day. Only notes with a known speaker belong
    to a conversation.
    """
    voice = next(
        (note.header[key] for key in _VOICE_KEYS if isinstance(note.header.get(key), str)), None
    )
    style = style_of(text, voice or note.source)
    written = (note.date or "").strip()[:10]
    if _DAY.fullmatch(written):
        day = written
    else:
        day = note.created.date().isoformat()
    conversation = None
    if style.speaker is not None:
        place = f"{project}\0{note.path.rpartition('/')[0]}\0{day}"
        conversation = int.from_bytes(blake2b(place.encode("utf-8", "replace"), 6))
    return {
        "conversation": conversation,
        "position": microseconds(note.created),
        "day": day,
        **style._asdict(),
        "is_long": len(text) > SHORT,
    }


@remembered
def style_of(text: str, source: str | None = None) -> Style:
    """Who says a text, and how. `source` is the speaker where the text names none."""
    body = text.strip()
    speaker = speaker_of(body, source)
    size = max(1, round(word_count(body)))
    if len(body) > SHORT or not body:
        return Style(speaker, size, 0, 0, bool(body))
    if "?" in body or "？" in body:
        question_size = sum(map(len, _QUESTION.findall(body)))
    else:
        question_size = 0
    has_time = _time_words().search(body.lower()) is not None
    return Style(
        speaker, size, round(100 * question_size / len(body)), first_person(body), has_time
    )


def speaker_of(text: str, source: str | None = None) -> str | None:
    """Who says a text that begins without blanks; `source`, where it names nobody."""
    match = _SPEAKER.match(text)
    return (_first_name(match[1]) if match else None) or _first_name(source or "")


def first_person(text: str) -> int:
    """How many pronouns of the first person a short text has, up to 4; 0 of a longer one."""
    if len(text.strip()) > SHORT:
        return 0
    return min(4, len(_FIRST_PERSON.findall(text)))


def turns_or_passages(text: str) -> list[tuple[int, int]]:
    """Split a text into the turns of a conversation, or into passages of about 200 words: (start,
    end).

    A text counts as a conversation if people speak several times each.
    """
    starts: list[int] = []
    if text.count(":") + text.count("：") >= _MIN_TURNS:
        starts = [match.start() for match in _TURN.finditer(text)]
    if len(starts) >= _MIN_TURNS:
        names = {_SPEAKER.match(text, start)[1] for start in starts}  # type: ignore[index]  # _TURN looks ahead for it
        if len(names) * 2 <= len(starts) and (starts[-1] - starts[0]) / len(starts) <= 4_000:
            return [(a, b) for a, b in pairwise([0, *starts, len(text)]) if text[a:b].strip()]
    return [(passage.start, passage.end) for passage in passages(text)]


def stem_text(texts: Iterable[str], facet: str) -> str:
    """The stemmed words of `texts` (given as by `fts_text`), each once, and then the facet tokens.

    Stop words are left out, since questions do not look for them.
    """
    return " ".join([*_stems("\n".join(texts)), facet])


@remembered
def _stems(text: str) -> set[str]:
    """Every word of a text once, without stop words."""
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
    """The words, those with signs in them cut there, with and without the signs that are words."""
    with_signs = [word for word in words if not word.isalnum()]
    if not with_signs:
        return words
    written = index_words(" ".join(with_signs))
    return words.difference(with_signs).union(written, map(without_signs, written))


def _first_name(name: str) -> str | None:
    """The folded first name in `name`, by which a question would call the speaker.

    None if it is not a name of a speaker.
    """
    first = next((word for word in tokens(name) if word not in _TITLES), None)
    if first in _NOT_SPEAKERS or first in stop_words():
        return None
    return first


@cache
def _time_words() -> re.Pattern[str]:
    """Words that name a time, from times.txt."""
    lines = Path(__file__).with_name("times.txt").read_text(encoding="utf-8").splitlines()
    all_words = [word for line in lines if not line.startswith("#") for word in line.split()]
    latin = "|".join(word for word in all_words if word.isascii())
    return re.compile(
        rf"\b(?:{latin}|(?:19|20)\d\d)\b|{'|'.join(word for word in all_words if not word.isascii())}"
    )
