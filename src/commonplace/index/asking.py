"""Questions: notes weighed by named features.

Which notes hold a word, the stemmed full-text table tells (`wording`); everything else is counted here, for some
hundred notes. What each feature weighs stands in `weights`.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from commonplace.index import question, weights
from commonplace.index.facets import passes
from commonplace.index.ranking import Asked, best_first
from commonplace.index.several import asks_several
from commonplace.index.standings import Standing
from commonplace.index.wording import Lookup, Word, passed_of
from commonplace.text.tokens import flatten

_LEAST_NEAR = 0.2
"""The cosine from which a note without a word of the question is worth showing."""
_FAR, _LEAST_SPREAD = 0.1, 0.25
"""Meaning counts from the cosine that so many of the notes do not reach, and from so far below the nearest at least."""
_MOST_IN_A_ROW = 5
_MANY_LISTS = 20
"""Of more lists of notes the groups are so many that notes are looked at one by one."""
_NAME = re.compile(r"[^\W\d_]+")
_SOMEBODY, _OFTEN = "someone", 25
_FACETS = "select row, facet from text where row in (select value from json_each(?))"


@dataclass(slots=True)
class Answers:
    """The notes that hold a word or stand beside one that does, best first, `total` in all (of words in very many
    notes, `notes` holds the newest only), and the scores of those that were weighed. `words`: what was looked for."""

    notes: list[int] = field(default_factory=list)
    scores: dict[int, float] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    total: int = 0
    every: Callable[[], list[int]] | None = None
    weighing: Weighing | None = None

    def shares(self, note: int) -> dict[str, float]:
        """What each feature adds to the score of a note; nothing for one that was not weighed."""
        return self.weighing.shares(note) if self.weighing else {}

    def is_meant(self, note: int) -> bool:
        """Whether a note was found by its meaning."""
        return self.weighing is not None and self.weighing.meant.get(note, 0.0) > 0

    def held(self, note: int) -> list[str]:
        """The words of the question that a note holds."""
        return self.weighing.held(note) if self.weighing else []

    def page(self, db: sqlite3.Connection, offset: int, limit: int) -> list[int]:
        """Some of the notes in order; of equal score those changed last come first, then by permalink."""
        if offset + limit > len(self.notes) and self.every is not None:
            self.notes = list(dict.fromkeys([*self.notes, *self.every()]))
            self.every = None
        notes, scores = self.notes, self.scores
        stop = min(offset + limit, len(notes))
        first, last = offset, stop
        while 0 < first < stop and notes[first] in scores and scores[notes[first]] == scores[notes[first - 1]]:
            first -= 1
        while offset < last < len(scores) and scores[notes[last]] == scores[notes[last - 1]]:
            last += 1
        weighed = {note: scores[note] for note in notes[first:last] if note in scores}
        part = best_first(db, weighed) + notes[first + len(weighed) : last]
        return part[offset - first : stop - first]


Nearness = Callable[[str, Collection[int]], Mapping[int, float]]
"""(question, notes) -> cosines of these notes and of those nearest in meaning, by row; {} where no model helps. A note
without a vector is left out."""


def answers(asked: Asked, text: str, today: date | None = None, near: Nearness | None = None) -> Answers:
    """The notes that answer the question `text`, for the filters and the viewer of `asked`. `today` is what "last
    week" counts from, `near` tells what means the same in other words."""
    asks = question.read(text, today)
    lookup = Lookup(asked)
    words = lookup.words(asks.words)
    if not words and not asks.only_days and near is None:
        return Answers()
    weighing = Weighing(asked, asks, words, _nameless(question.focus(text), words, lookup.size), near)
    found = Answers(words=[word.text for word in words], weighing=weighing)
    found.scores = scores = weighing.scores()
    found.notes = newest_first(scores)
    found.total = weighing.total
    found.every = weighing.others
    if any(word.is_cut for word in words) and not asked.filtered:
        found.total = max(found.total, lookup.count(words))
        found.every = lambda: [*weighing.others(), *lookup.every(words)]
    return found


def newest_first(scores: Mapping[int, float]) -> list[int]:
    """The notes by score, of equal score the newest first: `best_first` without asking the index."""
    return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)


class Weighing:
    """The notes worth a closer look, and what each feature says of them.

    `bits`: three bits for each word that a note holds: as it is, akin, in the names. `groups`: the notes that hold a
    word by their bits; `bits` are those of the notes that were looked at.
    """

    def __init__(
        self, asked: Asked, asks: question.Question, words: Sequence[Word], text: str = "", near: Nearness | None = None
    ):
        self.asked, self.db, self.asks, self.words = asked, asked.db, asks, words
        self.table = weights.WEIGHTS
        self.voices = {word.text for word in words if word.voice}
        self.several = asks_several(text)
        self.groups, self.bits = _groups(words), {}
        self._tell = Telling(words)
        self.known: dict[int, Standing] = {}
        self.meant: dict[int, float] = {}
        self._best: dict[int, float] = {}
        self._together: dict[int, int] = {}
        self._choose()
        if asks.only_days:
            self._choose_by_day()
        self.told = self._weigh_words()
        if near is not None and self.table.meaning:
            self._mean(near, text)
        self.worth = {row: sum(self._worth(row)) for row in self.known} if self.meant else self.told
        self._gather()
        self.lent = self._lend()
        together = {*self._together.values(), *(self.bits.get(row, 0) for row in self.known)}
        self._most = max(map(self._tell.__getitem__, together), default=0.0) or 1.0
        self._present = self._present_in(self._best)
        self._after: dict[int, int] = {}

    def _mean(self, near: Nearness, text: str) -> None:
        """How near the notes are to `text`, the question, from 0 to 1; the nearest notes come to be known."""
        cosines = near(text, list(self.known))
        self._join([row for row, cosine in cosines.items() if cosine >= _LEAST_NEAR and row not in self.known])
        cosines = {row: cosine for row, cosine in cosines.items() if row in self.known}
        order = sorted(cosines.values())
        if order and order[-1] > 0:
            most = order[-1]
            least = min(order[int(len(order) * _FAR)], most * (1 - _LEAST_SPREAD))
            self.meant = {row: max(0.0, cosine - least) / (most - least) for row, cosine in cosines.items()}

    def _worth(self, row: int) -> tuple[float, float]:
        """What a note's words are worth and what its meaning is, together up to 1. Where meaning is not known, words
        stand for all."""
        told, meant, share = self.told.get(row, 0.0), self.meant.get(row), self.table.meaning
        return (told, 0.0) if meant is None else (told * (1 - share), meant * share)

    def scores(self) -> dict[int, float]:
        """The score of every known note: its features' shares together."""
        table, voices, periods = self.table, self.voices, self.asks.periods
        worth, lent, bits, tell = self.worth.get, self.lent.get, self.bits.get, self._tell
        words, sitting, session, saying = table.words, table.sitting, table.session / self._most, table.said
        asking, own_share, timing = table.asks / 100, table.own / 4, table.timed if self.asks.when else 0.0
        around = {
            place: sitting * best + session * tell[self._together[place]]
            + (table.present if place in self._present else 0.0)
            for place, best in self._best.items()
        }  # fmt: skip
        dated = {day: table.date * sum([period.share(day) for period in periods])
                 for day in {note.day for note in self.known.values()}} if periods else {}  # fmt: skip
        found = {}
        # Taken apart by position: to ask each note for its parts by name takes twice as long.
        for row, place, _, said, day, _, asked, own, timed, _ in self.known.values():
            alone = worth(row, 0.0)
            score = words * alone + lent(row, 0.0) + asking * asked + own_share * own + timing * timed
            if place is None:
                score += sitting * alone + session * tell[bits(row, 0)]
            else:
                score += around.get(place, 0.0)
                if said in voices:
                    score += saying
            if dated:
                score += dated[day]
            found[row] = (score * 1e6 + 0.5) // 1 / 1e6  # round(score, 6) in a third of the time: equals stay equal
        return self._parted(found) if self.several and table.several else found

    def _parted(self, scores: dict[int, float]) -> dict[int, float]:
        """The scores when several things are asked for: a note loses by each better one of its sitting."""
        seen: dict[int, int] = {}
        for row in newest_first(scores):
            place = self.known[row].sitting
            if place is not None:
                self._after[row] = before = min(seen.get(place, 0), _MOST_IN_A_ROW)
                seen[place] = before + 1
        share, after = self.table.several, self._after.get
        return {row: round(score + share * after(row, 0), 6) for row, score in scores.items()}

    def shares(self, row: int) -> dict[str, float]:
        """The same score feature by feature, without those that add nothing; empty for an unknown note."""
        note = self.known.get(row)
        if note is None:
            return {}
        table, place = self.table, note.sitting
        told, meant = self._worth(row)
        session = self.bits.get(row, 0) if place is None else self._together.get(place, 0)
        parts = {
            "words": table.words * told,
            "meaning": table.words * meant,
            "beside": self.lent.get(row, 0.0),
            "sitting": table.sitting * (told + meant if place is None else self._best.get(place, 0.0)),
            "session": table.session * self._tell[session] / self._most,
            "said": table.said if place is not None and note.said in self.voices else 0.0,
            "present": table.present if place in self._present else 0.0,
            "own": table.own * note.own / 4,
            "asks": table.asks * note.asks / 100,
            "date": table.date * sum(period.share(note.day) for period in self.asks.periods),
            "timed": table.timed if self.asks.when and note.timed else 0.0,
            "several": table.several * self._after.get(row, 0),
        }
        return {name: round(value, 3) for name, value in parts.items() if value}

    def others(self) -> list[int]:
        """The notes that hold a word and are not known, newest first."""
        return sorted(set().union(*self.groups.values()) - self.known.keys(), reverse=True)

    @property
    def total(self) -> int:
        """How many notes hold a word or are known."""
        return sum(map(len, self.groups.values())) + len(self.known.keys() - self.bits.keys())

    def held(self, row: int) -> list[str]:
        """The words of the question a note holds."""
        if row not in self.bits:
            self._look_up([row])
        bits = self.bits.get(row, 0)
        return [word.text for at, word in enumerate(self.words) if bits >> 3 * at & 7]

    def _choose(self) -> None:
        """The notes whose words tell most, equal ones newest first."""
        tell, room, rows = self._tell, self.table.most, []
        for bits in sorted(self.groups, key=lambda one: (-tell[one], one)):
            some: Collection[int] = self.groups[bits]
            if len(some) > room:
                some = sorted(some, reverse=True)[:room]
            self.bits.update(dict.fromkeys(some, bits))
            rows += some
            room -= len(some)
            if not room:
                break
        self.known = {note.row: note for note in self.asked.standings.of(rows)}

    def _look_up(self, rows: Collection[int]) -> None:
        """Which words these notes hold."""
        wanted = set(rows)
        for bits, group in self.groups.items():
            if found := group & wanted:
                self.bits.update(dict.fromkeys(found, bits))

    def _choose_by_day(self) -> None:
        """The newest notes of the days the question names, whatever they say."""
        for period in self.asks.periods:
            if len(period.first) == len("2026-11-21"):
                some = self.asked.standings.of_days(period.first, period.last, self.table.most)
                self._join([row for row in some if row not in self.known])

    def _weigh_words(self) -> dict[int, float]:
        """The words' worth in each note, 1 in the best one: of equal ones the shorter is worth more."""
        usual = sum([note.words for note in self.known.values()]) / (len(self.known) or 1) or 1
        tell, bits = self._tell, self.bits.get
        least, more = 1 + 1.2 * (1 - self.table.brevity), 1.2 * self.table.brevity / usual
        told = {row: tell[bits(row, 0)] / (least + more * note.words) for row, note in self.known.items()}
        most = max(told.values(), default=0.0) or 1.0
        return {row: value / most for row, value in told.items()}

    def _gather(self) -> None:
        """The best worth in each sitting, and the words its notes hold together."""
        best, together, bits = self._best, self._together, self.bits.get
        for row, value in self.worth.items():
            place = self.known[row].sitting
            if place is not None:
                if value > best.get(place, -1.0):
                    best[place] = value
                together[place] = together.get(place, 0) | bits(row, 0)

    def _lend(self) -> dict[int, float]:
        """What the best notes lend to those beside them. Turns that hold no word themselves come to be known so."""
        able = {row: self.worth[row] for row, note in self.known.items() if note.sitting is not None}
        rows = newest_first(able)[: self.table.sources]
        lent: dict[int, float] = {}
        if not rows:
            return lent
        table, known = self.table, self.known
        beside = self.asked.standings.beside(rows, self.asked.own)
        self._join({row for sides in beside.values() for side in sides for row in side if row not in known})
        to_later = (table.before, table.around, table.around)
        to_earlier = (table.after, table.around, table.around)
        for side, shares in enumerate((to_earlier, to_later)):
            for source in sorted(beside, reverse=not side):
                worth = self.worth[source]
                for share, row in zip(shares, beside[source][side], strict=False):
                    if row in known:
                        lent[row] = lent.get(row, 0.0) + share * worth
        return lent

    def _join(self, rows: Collection[int]) -> None:
        """Takes in those of the notes that pass all filters."""
        if self.asked.filtered:
            rows = passed_of(self.asked, rows)
        needed, unwanted = self.asked.needed, self.asked.unwanted
        if needed or unwanted:
            found = self.db.execute(_FACETS, (json.dumps(list(rows)),))
            rows = [row for row, facets in found if passes(facets, needed, unwanted)]
        self._look_up(rows)
        self.known.update((note.row, note) for note in self.asked.standings.of(rows))

    def _present_in(self, sittings: Collection[int]) -> set[int]:
        """The sittings in which somebody spoke whom the question names."""
        return self.asked.standings.heard(self.voices, sittings, self.asked.own) if self.voices else set()


def _nameless(text: str, words: Sequence[Word], size: int) -> str:
    """The question for comparing meanings, of `size` notes: names of those who speak that very many notes hold tell no
    note from another, and are put as "someone"."""
    often = {word.text for word in words if word.voice and (word.is_cut or len(word.rows) * _OFTEN >= size)}
    if not often or all(word.voice for word in words):
        return text
    return _NAME.sub(lambda name: _SOMEBODY if flatten(name[0]).lower() in often else name[0], text)


def _groups(words: Sequence[Word]) -> dict[int, set[int]]:
    """The notes that hold a word, by what they hold: so few groups that their notes are counted and chosen by sets."""
    lists = [(bit << 3 * at, rows) for at, word in enumerate(words)
             for bit, rows in ((1, word.rows), (2, word.akin), (4, word.named)) if rows]  # fmt: skip
    found: dict[int, set[int]] = {}
    if len(lists) > _MANY_LISTS:
        bits: dict[int, int] = {}
        for bit, rows in lists:
            for row in rows:
                bits[row] = bits.get(row, 0) | bit
        for row, held in bits.items():
            found.setdefault(held, set()).add(row)
        return found
    for bit, rows in lists:
        left = set(rows)
        for bits_before, group in list(found.items()):
            if both := group & left:
                group -= both
                left -= both
                found[bits_before | bit] = both
        found[bit] = left
    return {held: group for held, group in found.items() if group}


class Telling(dict[int, float]):
    """What words add up to, by their bits. Names of those who speak (`names`, besides those the words know themselves
    to be) tell little, unless all words are."""

    def __init__(self, words: Sequence[Word], names: Collection[str] = ()):
        super().__init__()
        self._table = table = weights.WEIGHTS
        few = {} if all(word.voice or word.text in names for word in words) else dict.fromkeys(names, table.name)
        self._words = [(word.weight * few.get(word.text, 1.0), table.kin if word.rows else 1.0) for word in words]

    def __missing__(self, bits: int) -> float:
        told = 0.0
        for at, (weight, akin) in enumerate(self._words):
            one = bits >> 3 * at & 7
            if one & 1:
                told += weight
            elif one & 2:
                told += weight * akin
            if one & 4:
                told += weight * self._table.title
        self[bits] = told
        return told
