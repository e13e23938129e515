"""How a note stands among others: who said it, when, in what manner, and which notes stand beside it.

A turn of a conversation that is a note of its own says little by itself. The ranking of questions therefore also
looks at the notes of its sitting: what was said in one folder on one day.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from commonplace.text.tokens import flatten, fts_text, passages, stop_words, tokens

_NAME = r"[^\W\d_][\w.'’-]{0,24}(?: (?![a-z])[^\W\d_][\w.'’-]{0,24}){0,2}"
_SPEAKER = re.compile(
    rf"(?:[-*+] )?(?:\[[^\]\n]{{1,40}}\] ?)?(?:\*\*)?({_NAME})(?:\*\*)?(?:：|:(?:\*\*)?(?=\s))(?:\*\*)?"
)
_TURN = re.compile(rf"^(?={_SPEAKER.pattern})", re.M)
_TITLES = frozenset(("dr", "mr", "mrs", "ms", "prof", "sir", "the"))
_NO_VOICE = frozenset(("manual", "import", "note"))
_LEAST_TURNS = 4
_QUESTION = re.compile(r"[^.!?。！？\n]+[?？]")
SHORT = 700
"""A text of no more characters is one passage; what is longer is no turn, and its manner tells nothing."""

_ME = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b|我|咱|俺|私|僕", re.I)
_MOST_ME = 4


class Manner(NamedTuple):
    """`said`: the folded first name of whoever said it. `words`: about how many. `asks`: how much of it is questions,
    in percent. `own`: how often it speaks of the speaker, up to 4. `timed`: whether it names a time."""

    said: str | None
    words: int
    asks: int
    own: int
    timed: bool


class Words(NamedTuple):
    """What the stemmed full-text table holds of a note. `names`: title, headings and tags; `address`: path and
    permalink; `facet`: its facet tokens."""

    names: str
    address: str
    body: str
    facet: str


def put(
    db: sqlite3.Connection, row: int, words: Words, *, project: int, path: str, source: str | None, day: str,
    dated: bool, created: int,
) -> None:  # fmt: skip
    """Notes how the note in `row` stands. `day`: the date of its event, else (not `dated`) of its writing
    (YYYY-MM-DD); `created` orders the notes of a sitting. What nobody is known to have said has a sitting only when
    it is short and dated."""
    how = manner(words.body, source)
    together = how.said is not None or (dated and len(words.body) <= SHORT)
    place = sitting(project, path, day) if together else None
    values = (row, place, created, how.said, day, *how[1:], len(words.body) > SHORT)
    db.execute("insert into standing values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    db.execute("insert into stem_fts (rowid, words) values (?, ?)", (row, _text(words)))


def remove(db: sqlite3.Connection, row: int, words: Words) -> None:
    """Forgets the note; the full-text table has to be told the very words it was given."""
    db.execute("insert into stem_fts (stem_fts, rowid, words) values ('delete', ?, ?)", (row, _text(words)))
    db.execute("delete from standing where row = ?", (row,))


def manner(text: str, source: str | None = None) -> Manner:
    """How a text is said. `source` is who said what names nobody itself."""
    body = text.strip()
    named = _SPEAKER.match(body)
    said = (_voice(named[1]) if named else None) or (_voice(source) if source else None)
    size = max(body.count(" ") + 1, len(body) // 12)
    if len(body) > SHORT or not body:
        return Manner(said, size, 0, 0, bool(body))
    asked = sum(map(len, _QUESTION.findall(body))) if "?" in body or "？" in body else 0
    own = min(_MOST_ME, len(_ME.findall(body)))
    return Manner(said, size, round(100 * asked / len(body)), own, _times().search(body.lower()) is not None)


def sitting(project: int, path: str, day: str) -> int:
    """The number of what was said in the folder of `path` on `day`."""
    place = f"{project}\0{path.rpartition('/')[0]}\0{day}"
    return int.from_bytes(blake2b(place.encode("utf-8", "replace"), digest_size=6).digest())


def parts(text: str) -> list[tuple[int, int]]:
    """The turns of a conversation, else the passages of about 200 words, as (start, end)."""
    return list(_turns(text)) or [(one.start, one.end) for one in passages(text)]


def _text(words: Words) -> str:
    """Every word once, without stop words: no question looks for those."""
    every = fts_text(f"{words.names}\n{words.address}\n{words.body}").lower()
    return " ".join([*sorted(set(tokens(every)) - stop_words()), words.facet])


def _voice(name: str) -> str | None:
    """The first name in `name`, folded: what a question would call the speaker."""
    for word in tokens(flatten(name)):
        if word not in _TITLES:
            return None if word in _NO_VOICE or word in stop_words() else word
    return None


def _turns(text: str) -> Sequence[tuple[int, int]]:
    """The turns of a conversation; none when the text is no such: people speak several times each."""
    starts = [match.start() for match in _TURN.finditer(text)]
    if len(starts) < _LEAST_TURNS:
        return ()
    names = {_SPEAKER.match(text, start)[1] for start in starts}  # type: ignore[index]
    if len(names) * 2 > len(starts) or (starts[-1] - starts[0]) / len(starts) > 4_000:
        return ()
    bounds = [0, *starts, len(text)]
    return [(a, b) for a, b in pairwise(bounds) if text[a:b].strip()]


@cache
def _times() -> re.Pattern[str]:
    """Words that name a time, from their file."""
    lines = Path(__file__).with_name("times.txt").read_text(encoding="utf-8").splitlines()
    every = [word for line in lines if not line.startswith("#") for word in line.split()]
    latin = "|".join(word for word in every if word.isascii())
    return re.compile(rf"\b(?:{latin}|(?:19|20)\d\d)\b|{'|'.join(word for word in every if not word.isascii())}")
