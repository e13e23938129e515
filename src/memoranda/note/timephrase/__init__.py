"""Reminder phrases in English and Chinese, read against a given clock (contract 001, 9).

Nothing is guessed: a text that may mean two times, or none, is refused with a reason
(`TimeRefused`).
"""

from __future__ import annotations

import re
from bisect import bisect
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import product

from memoranda.errors import (
    AmbiguousTime,
    InvalidTime,
    NoTime,
    PastTime,
    TimeRefused,
    UnusedWords,
    VagueTime,
)
from memoranda.note.timephrase import dates
from memoranda.note.timephrase.dates import DAY_KINDS, Delay, Lexeme, Recurrence, Unclear, following
from memoranda.note.timephrase.lexer import Text, compiled, scan

__all__ = ["Reading", "Recurrence", "following", "read", "read_all"]

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# The hour a day without a clock fires at when the usual one has passed
_LATE = 18
_BETWEEN = re.compile(r"(?:[\s,:]|的|在|于|(?<![a-z0-9_])(?:at|on|by|before|the|in)(?![a-z0-9_]))*")
_OR = ("or", "or on", "或", "或者", "还是")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_ZONE = re.compile(
    r"[^\S\n]*\(?((?:UTC|GMT)(?:[+-]\d{1,2}(?::?\d\d)?)?|[ECMP][SD]?T|[CEW]ES?T|AE[SD]T|[BIJK]ST"
    r"|(?:Eastern|Central|Mountain|Pacific)[^\S\n]+[Tt]ime)(?!\w)"
)
"""A time zone named behind a time, as it is usually written: of another one than the reader's
nothing is known.
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says: `due` is aware and in the zone asked for, `phrase` the words it was read
    from, `repeat` a rule (see `following`), `others` further time phrases that were not used.
    `is_dated`: its words name a day, not just a weekday or an hour; `is_explicit`: a date with its
    month, or a day counted from now."""

    phrase: str
    due: datetime
    all_day: bool = False
    repeat: str | None = None
    others: tuple[str, ...] = ()
    is_dated: bool = False
    is_explicit: bool = False

    @property
    def reading(self) -> str:
        """The time for people: Thu 7 May 2026 15:00."""
        due = self.due
        return f"{_DAYS[due.weekday()]} {due.day} {_MONTHS[due.month - 1]} {due.year} {due:%H:%M}"


def read(text: str, now: datetime, zone: tzinfo, day_hour: int = 9) -> Reading:
    """The time `text` speaks of, by its first group of time words, after `now` (aware).

    Days and clocks are those of `zone`; a day without a clock fires at `day_hour` (0-23). A vague
    word refuses wherever it stands, and so do words beside the time that were not used ("not
    tomorrow"), or another time after "or". Raises AmbiguousTime, PastTime, NoTime, InvalidTime or
    VagueTime (contract 001, 8).
    """
    written = Text(text)
    groups = _groups(written)
    for group in groups:
        for token in group.of("vague"):
            start, end = written.span(token.start, token.end)
            raise VagueTime(text[start:end])
    if not groups:
        raise NoTime(text)
    found = _meaning(groups[0], now, zone, day_hour)
    if len(groups) > 1 and text[groups[0].span[1] : groups[1].span[0]].strip(" ,，").lower() in _OR:
        either = [found.due, _meaning(groups[1], now, zone, day_hour).due]
        raise AmbiguousTime(text[groups[0].span[0] : groups[1].span[1]], either)
    unused = _unused(written, groups[0], found.due)
    if unused:
        raise UnusedWords(found.phrase, unused)
    return replace(found, others=tuple(group.phrase for group in groups[1:]))


def read_all(
    text: str, now: datetime, zone: tzinfo, day_hour: int = 9
) -> list[tuple[tuple[int, int], Reading | TimeRefused]]:
    """Every group of time words with its place in `text` (start, end) and its reading or why it has
    none. Arguments as for `read`. A vague word refuses all times of its paragraph (contract 001, 6
    and 9)."""
    written = Text(text)
    groups = _groups(written)
    ends = [blank.end() for blank in _PARAGRAPH.finditer(text)]
    paragraphs = [bisect(ends, group.span[0]) for group in groups]
    vague = {
        paragraph for paragraph, group in zip(paragraphs, groups, strict=True) if group.of("vague")
    }

    def outcome(paragraph: int, group: _Group) -> Reading | TimeRefused:
        try:
            if paragraph in vague:
                return VagueTime(group.phrase)
            unused = _unused(written, group, now.astimezone(zone))
            if unused:
                return UnusedWords(group.phrase, unused)
            return _meaning(group, now, zone, day_hour)
        except TimeRefused as refusal:
            return refusal

    return [
        (group.span, outcome(each, group)) for each, group in zip(paragraphs, groups, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Group:
    """Time words with nothing but connecting words between them: one time. `phrase` is the user's
    own text.
    """

    tokens: tuple[Lexeme, ...]
    phrase: str
    span: tuple[int, int]

    def of(self, *kinds: str) -> list[Lexeme]:
        return [token for token in self.tokens if token.kind in kinds]


def _groups(text: Text) -> list[_Group]:
    """The groups of a text in order. Weak words ("morning") form a group only beside another time
    word.
    """
    runs: list[list[Lexeme]] = []
    for token in scan(text.plain):
        if runs:
            between = text.plain[runs[-1][-1].end : token.start]
        else:
            between = ""
        is_of = between.strip() == "of" and token.kind == "span"
        is_beside = (
            between.strip() != "of"
            and _BETWEEN.fullmatch(between)
            and not _PARAGRAPH.search(between)
        )
        if not runs or not (is_of or is_beside):
            runs.append([])
        runs[-1].append(token)
    found = []
    for run in runs:
        has_clock = any(token.kind == "clock" for token in run)
        sure_day = any(token.kind in DAY_KINDS and not token.weak for token in run)
        # "sat" and "sun" are no days beside a surer one or without a clock; no sure word left, and
        # nothing is.
        tokens = [
            t for t in run if not (t.kind == "weekday" and t.weak and (sure_day or not has_clock))
        ]
        kinds = {token.kind for token in tokens}
        if not all(token.weak for token in tokens) or ("clock" in kinds and len(kinds) > 1):
            start, end = text.span(tokens[0].start, max(token.end for token in tokens))
            found.append(_Group(tuple(tokens), text.written[start:end], (start, end)))
    return found


def _unused(text: Text, group: _Group, local: datetime) -> str:
    """The words right beside a time that make it another one, as written; "" without. `local` has
    the reader's zone.
    """
    start = group.tokens[0].start
    end = max(token.end for token in group.tokens)
    before = compiled(r"(?<![a-z0-9])(?:<english.beside_before>)\Z").search(
        text.plain[max(0, start - 60) : start]
    )
    after = compiled(r"(?:<english.beside_after>)").match(text.plain, end)
    if before:
        return text.written[slice(*text.span(max(0, start - 60) + before.start(), start))].strip()
    if after:
        return text.written[slice(*text.span(end, after.end()))].strip()
    named = _ZONE.match(text.written, group.span[1])
    own = {local.replace(month=month, day=1).astimezone(local.tzinfo).tzname() for month in (1, 7)}
    if named and named[1] not in own:
        return named[1]
    return ""


def _meaning(group: _Group, now: datetime, zone: tzinfo, day_hour: int) -> Reading:
    phrase = group.phrase
    now = now.astimezone(zone)
    if group.of("vague"):
        raise VagueTime(phrase)
    if group.of("wrong"):
        raise InvalidTime(phrase)
    offsets = group.of("offset")
    if offsets:
        return _shifted(group, offsets, now, zone, day_hour)
    try:
        if group.of("repeat"):
            times = dates.first_times(group.tokens, now, zone, day_hour)
            if len(times) != 1:
                raise AmbiguousTime(phrase, sorted({due for due, _ in times}))
            due, rule = times[0]
            return Reading(
                phrase, due, not (group.of("clock", "part") or rule.is_elapsed), str(rule)
            )
        moments, all_day = _moments(group, now, zone, day_hour)
    except Unclear:
        raise AmbiguousTime(phrase) from None
    except (ValueError, OverflowError):
        raise InvalidTime(phrase) from None
    if not moments:
        raise AmbiguousTime(phrase)
    if all(moment <= now for moment in moments):
        raise PastTime(phrase)
    if len(moments) > 1:
        raise AmbiguousTime(phrase, sorted(moments))
    # Of a week that is named
    is_explicit = bool(
        group.of("date", "instant", "month_edge", "delay", "nth_weekday")
        or any(token.value[0] is not None for token in group.of("weekday"))
        or any(token.value > 0 for token in group.of("day"))
        or (group.of("monthday") and group.of("span"))
    )
    is_dated = is_explicit or bool(group.of("monthday", "span", "edge"))
    return Reading(phrase, min(moments), all_day, is_dated=is_dated, is_explicit=is_explicit)


def _shifted(
    group: _Group, offsets: list[Lexeme], now: datetime, zone: tzinfo, day_hour: int
) -> Reading:
    """A time some days or hours from another one: "a week from Friday", "two hours before
    midnight".
    """
    rest = tuple(token for token in group.tokens if token.kind != "offset")
    if len(offsets) != 1 or group.of("repeat") or not rest or rest[0].start < offsets[0].end:
        raise AmbiguousTime(group.phrase)
    delay = offsets[0].value
    try:
        base = _meaning(replace(group, tokens=rest), now, zone, day_hour)
        due = _later(delay, base.due, zone)
    except AmbiguousTime as error:
        raise AmbiguousTime(
            group.phrase, [_later(delay, each, zone) for each in error.candidates]
        ) from None
    except (ValueError, OverflowError):
        raise InvalidTime(group.phrase) from None
    if due <= now:
        raise PastTime(group.phrase)
    return replace(
        base, due=due, all_day=base.all_day and not delay.seconds, is_dated=True, is_explicit=True
    )


def _moments(
    group: _Group, now: datetime, zone: tzinfo, day_hour: int
) -> tuple[set[datetime], bool]:
    """All times a group may mean, and whether it names days only. Words that name a moment by
    themselves ("in 2 hours") must agree with those beside them."""
    moments: set[datetime] = set()
    rest = []
    today = now.date()
    for token in group.tokens:
        if token.kind == "instant":
            at = token.value
            moments.add(
                at.astimezone(zone) if at.tzinfo else dates.wall_time(at.date(), at.time(), zone)
            )
        elif token.kind == "delay" and token.value.seconds:
            moments.add(_later(token.value, now, zone))
        else:
            rest.append(token)
    if moments and all(token.kind == "day" and token.value == 0 for token in rest):
        return moments, False
    days = dates.possible_days(rest, today)
    hours = dates.possible_hours(rest)
    if days and not hours:
        # At the usual hour; when it has passed today, at the late one
        for day in days:
            usual = dates.wall_time(day, time(day_hour), zone)
            late = dates.wall_time(day, time(_LATE), zone)
            moments.add(late if len(days) == 1 and usual <= now < late else usual)
        return moments, True
    # Midnight of today is the one ahead
    for day, hour in product(days, hours):
        is_ahead = hour.word == "midnight" and day == today
        moments.add((hour._replace(days=1) if is_ahead else hour).on(day, zone))
    if not any(token.kind in DAY_KINDS for token in rest):
        # The next time a clock shows it; the end of the working day is today's
        for hour in hours:
            ahead = [hour.on(today + timedelta(days=step), zone) for step in (-1, 0, 1)]
            moments.add(
                ahead[1]
                if hour.word == "eod"
                else next((at for at in ahead if at > now), ahead[-1])
            )
    return moments, False


def _later(delay: Delay, now: datetime, zone: tzinfo) -> datetime:
    """Whole days go by the calendar, the rest by elapsed time."""
    start = now.replace(microsecond=0)
    if delay.months or delay.days:
        start = dates.wall_time(
            dates.shifted(start.date(), delay.months, delay.days), start.time(), zone
        )
    return (start.astimezone(UTC) + timedelta(seconds=delay.seconds)).astimezone(zone)
