"""The parts of a sentence that say when: time words with their roles and how they are joined.

A time word is sure or weak. "tomorrow" is sure. "June" is weak, since it may be a name: it counts
only if something makes it sure, as "in" does in "in June".

A weak part of the day that nothing makes sure is loose: "night" in "night shift tomorrow at 8". It
names no time, but it must not contradict the time that the other words name. A weak span ("this
week") is loose in the same way.

Parts that are joined to each other are a cluster: "tomorrow at 3" is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from memoranda.note.timephrase.lexer import scan
from memoranda.note.timephrase.text import Text
from memoranda.note.timephrase.values import DAY_KINDS, Lexeme
from memoranda.note.timephrase.words import compiled, data_file

# A blank line: parts of one time never cross it.
PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
# A comma between two parts of one time: "Friday, at 5pm".
_COMMA = re.compile(r"\s*[,、]\s*(?:at|on)?\s*")
# How many characters before a time word may hold its role or its preposition.
_LONGEST_ROLE = 40
# The kinds of days that are weak only if they are named: "Christmas".
_HOLIDAY_KINDS = ("date", "easter", "lunar", "nth_weekday")
_CLOCK_KINDS = ("clock", "part")
# Months that are also first names.
_MONTHS_AND_NAMES = ("april", "may", "june")
_SERIES_KINDS = ("repeat", "weekday_range", "run", "unclear")
_TIMES = ("clock", "repeat", "instant", "vague", "offset")
START = "start"
END = "end"
EXCEPT = "except"
BETWEEN = "between"


@dataclass(frozen=True, slots=True)
class Part:
    """A time word with its place in the sentence: "until Friday" is Friday with the role `end`.

    lexeme: the time word, with its kind and value.
    start, end: its place in the plain text, the words of its role included.
    role: `start`, `between` or `end` of a range or series, or `except`. Empty for most words.
    link: how it is joined to the part before: "beside", "and", "or" or "apart".
    is_loose: whether it may be about something else, as the "night" of a night shift.
    """

    lexeme: Lexeme
    start: int
    end: int
    role: str = ""
    link: str = "apart"
    is_loose: bool = False

    @property
    def kind(self) -> str:
        """The kind of the time word, such as `weekday`."""
        return self.lexeme.kind

    @property
    def is_day(self) -> bool:
        """Whether the part names a day."""
        return self.lexeme.kind in DAY_KINDS

    @property
    def is_holiday(self) -> bool:
        """Whether the part is the name of a day, such as "Christmas"."""
        return self.lexeme.weak and self.lexeme.kind in _HOLIDAY_KINDS

    @property
    def is_clock(self) -> bool:
        """Whether the part names a time of day."""
        return self.lexeme.kind in _CLOCK_KINDS


def _pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of roles.toml with this name, such as `and` or `end_after`."""
    return compiled(data_file("roles.toml")[name])


def _ending(name: str) -> re.Pattern[str]:
    """Return a pattern that finds the words of a role at the end of a text.

    name: the name of the words in roles.toml, such as `end`.
    """
    return compiled(f"(?:{data_file('roles.toml')[name]})\\Z")


def parts_of(text: Text) -> list[Part]:
    """Return the time words of a text as parts, in order.

    Weak words such as "June" are among them. `parts_that_count` decides about those.
    """
    parts: list[Part] = []
    for lexeme in scan(text.plain):
        previous = parts[-1] if parts else None
        # A word such as "tonight" has two lexemes, at the same place: a day and a part of it. A list
        # such as "3 and 5 December" has one for each day.
        is_same_word = previous is not None and previous.lexeme.start == lexeme.start
        if previous is not None and is_same_word:
            link = "and" if previous.kind == lexeme.kind else "beside"
            parts.append(replace(previous, lexeme=lexeme, link=link))
            continue
        part = _part_after(text.plain, previous, lexeme)
        if previous is not None and _are_one_clock(previous, part):
            role = previous.role or part.role
            parts[-1] = replace(previous, role=role)
            part = replace(part, role=role)
        if previous is not None and _begins_days(previous, part):
            parts[-1] = replace(previous, role=START)
        if previous is not None and _is_period_of(text.plain, previous, part):
            part = replace(part, role=previous.role)
        parts.append(part)
    return parts


def _is_period_of(plain: str, day: Part, period: Part) -> bool:
    """Whether a part is the period of the day before it: "next month" in "the 5th of next month".

    plain: the text in plain form: `3pm` for `３PM`.
    """
    has_of = plain[day.end : period.start].strip() == "of"
    return has_of and day.is_day and period.kind in ("span", "month")


def _begins_days(first: Part, last: Part) -> bool:
    """Whether two days are the ends of a range: "Monday to Friday"."""
    is_range = last.role == END and last.link == "beside"
    return is_range and first.is_day and last.is_day and not first.role


def _are_one_clock(first: Part, second: Part) -> bool:
    """Whether two parts are a clock and its part of the day, so that a role is of both.

    In 到下午五点 and 下午五点为止 ("until 5 in the afternoon"), both 下午 and 五点 are the end.
    """
    kinds = {first.kind, second.kind}
    # "from the morning until 5" has two roles, so it is a range.
    has_one_role = not (first.role and second.role)
    return kinds == {"clock", "part"} and second.link == "beside" and has_one_role


def _part_after(plain: str, previous: Part | None, lexeme: Lexeme) -> Part:
    """Return a time word as a part, with its role and its link to the part before.

    plain: the text in plain form: `3pm` for `３PM`.
    previous: the part before. None for the first part.
    lexeme: the time word.
    """
    # Words before it that name its role: "until Friday". They are close by.
    gap_start = previous.end if previous else 0
    search_start = max(gap_start, lexeme.start - _LONGEST_ROLE)
    role, role_start = _role_before(plain[search_start : lexeme.start])
    start = lexeme.start
    if role:
        start = search_start + role_start

    # Words between it and the part before: "3pm to 5pm".
    link = "apart"
    if previous:
        link, link_role = _link(plain, previous, lexeme, start)
        if link_role and not role:
            role = link_role
            start = gap_start

    # Words after it that name its role. A role that was named before counts more.
    end = lexeme.end
    for suffix, name in (("start_after", START), ("end_after", END), ("except_after", EXCEPT)):
        match = _pattern(suffix).match(plain, lexeme.end)
        has_words = match and match[0].strip()
        if match and has_words:
            role = role or name
            end = match.end()
    return Part(lexeme, start, end, role, link)


def _role_before(gap: str) -> tuple[str, int]:
    """Return the role that the words at the end of a gap give, and where they begin.

    "call from " gives (START, 5). Without such words it is ("", 0).
    """
    for name, role in (
        ("except", EXCEPT),
        ("between", BETWEEN),
        ("start", START),
        ("end", END),
    ):
        match = _ending(name).search(gap)
        if match:
            return role, match.start()
    return "", 0


def _link(plain: str, previous: Part, lexeme: Lexeme, start: int) -> tuple[str, str]:
    """Return how a lexeme is joined to the part before, and the role that this gives it.

    "5pm" is ("beside", END) after "3pm to", ("or", "") after "3pm or", ("apart", "") elsewhere.

    plain: the text in plain form: `3pm` for `３PM`.
    previous: the part before.
    lexeme: the time word.
    start: where the words that name its role begin.
    """
    words_between = plain[previous.end : lexeme.start]
    # In "Monday and until Friday", "until" is the role of Friday, and "and" joins the two.
    joining_words = plain[previous.end : start]
    # A vague word such as "soon" is never a part of another time.
    has_vague = "vague" in (previous.kind, lexeme.kind)
    if has_vague or PARAGRAPH.search(words_between):
        return "apart", ""
    # The end of a range comes first, since "and" is also the word of a list: "between 3 and 5".
    if _is_range(previous, lexeme, words_between):
        return "beside", END
    if _pattern("or").fullmatch(joining_words):
        return "or", ""
    if _is_list(previous, lexeme, joining_words):
        return "and", ""
    if words_between.strip() == "of":
        # "the 3rd of June" and "the morning of the 3rd" are one time, "Monday of 9am" is not.
        is_period = lexeme.kind in ("span", "month")
        is_part_of_day = previous.kind == "part" and lexeme.kind in DAY_KINDS
        return ("beside", "") if is_period or is_part_of_day else ("apart", "")
    for link in ("beside", "and"):
        if _pattern(link).fullmatch(joining_words):
            return link, ""
    return "apart", ""


def _is_range(previous: Part, lexeme: Lexeme, gap: str) -> bool:
    """Whether a lexeme is the end of a range that the part before begins.

    gap: the words between the two.
    """
    if _class_of(previous.lexeme) != _class_of(lexeme):
        return False
    is_between = previous.role == BETWEEN and _pattern("and").fullmatch(gap)
    return bool(is_between or _pattern("to").fullmatch(gap))


def _is_list(previous: Part, lexeme: Lexeme, gap: str) -> bool:
    """Whether a comma, or in Chinese nothing, is between two words of a list: 周二周四.

    previous, lexeme: the two words.
    gap: the text between them.
    """
    if previous.kind != lexeme.kind:
        return False
    return bool(_COMMA.fullmatch(gap)) or (lexeme.kind == "weekday" and not gap)


def _class_of(lexeme: Lexeme) -> str:
    """Return `day` for all kinds of days, `clock` for times of day, and any other kind as it is."""
    if lexeme.kind in DAY_KINDS or lexeme.kind == "month":
        return "day"
    if lexeme.kind in _CLOCK_KINDS:
        return "clock"
    return lexeme.kind


def clusters(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Group the parts of a text into clusters. The parts of a cluster are joined to each other.

    "tomorrow at 3 … Friday" has two clusters: `[tomorrow, at 3]` and `[Friday]`.
    """
    cluster: list[Part] = []
    for part in parts:
        if cluster and part.link == "apart":
            yield cluster
            cluster = []
        cluster.append(part)
    if cluster:
        yield cluster


def parts_that_count(parts: Sequence[Part], plain: str) -> list[Part]:
    """Return the parts that count as times, and the loose ones.

    A weak word counts if its surroundings make it sure: "sat" does in "on sat" and in "sat 3pm".
    If they do not, a part of the day or a span is loose, and any other weak word is left out.

    parts: all parts of the text.
    plain: the text in plain form: `3pm` for `３PM`.
    """
    counting_parts: list[Part] = []
    for cluster in clusters(parts):
        for index, part in enumerate(cluster):
            is_sure = not part.lexeme.weak
            if is_sure or _Surroundings(parts, cluster, index, plain).make_sure():
                counting_parts.append(part)
            elif part.kind in ("part", "span"):
                counting_parts.append(replace(part, is_loose=True))
    return _linked_again(counting_parts, parts)


def with_shared_months(parts: Sequence[Part], plain: str) -> list[Part]:
    """Give a day of a month the month that is named beside it: "the 20th to the 25th of April".

    parts: the parts of a sentence.
    plain: the text in plain form: `3pm` for `３PM`.
    """
    shared = list(parts)
    # The month is named with the first of several days: 4月20日和25日, "April 20 and the 25th".
    for index in range(1, len(shared)):
        date, day = shared[index - 1 : index + 1]
        if _are_several_days(date, day) and _has_month(date) and day.kind == "monthday":
            shared[index] = _in_month_of(date, day)
    # English may also name it with the last one: "the 20th to the 25th of April".
    for index in reversed(range(1, len(shared))):
        day, date = shared[index - 1 : index + 1]
        is_english = plain[day.lexeme.start : day.lexeme.end].isascii()
        if not is_english or day.kind != "monthday":
            continue
        if _are_several_days(day, date) and _has_month(date):
            shared[index - 1] = _in_month_of(date, day)
    return shared


def _are_several_days(first: Part, second: Part) -> bool:
    """Whether two days are a list or the ends of a range, and not two names of one day."""
    return first.is_day and (second.link in ("and", "or") or second.role == END)


def _has_month(part: Part) -> bool:
    """Whether a part is a date with its month. 5/7 may have two months, so it has none."""
    return part.kind == "date" and len(part.lexeme.value) == 1


def _in_month_of(date: Part, day: Part) -> Part:
    """Return a day of a month as a day of the month of this date."""
    (named_date,) = date.lexeme.value
    value = (named_date._replace(day=day.lexeme.value),)
    return replace(day, lexeme=day.lexeme._replace(kind="date", value=value))


def with_series_ends(parts: Sequence[Part], plain: str) -> list[Part]:
    """Make a day that a repetition comes before the end of the series: 下个月五号之前每天.

    parts: the parts of a sentence.
    plain: the text in plain form: `3pm` for `３PM`.
    """
    changed = list(parts)
    for index, part in enumerate(changed):
        follows = [other for other in changed[index + 1 :] if other.kind == "repeat"]
        is_end = bool(follows) and part.is_day and not part.role
        if not is_end or not _pattern("end_of_series").match(plain, part.end):
            continue
        changed[index] = replace(part, role=END)
        # The period of the day is a word of its own: 下个月 before 五号.
        previous = changed[index - 1]
        if index and previous.kind == "span" and part.link == "beside":
            changed[index - 1] = replace(previous, role=END)
    return changed


def with_separate_clauses(parts: Sequence[Part], plain: str) -> list[Part]:
    """Join the times of clauses that name a day and a clock each, as "and" joins two times.

    "gym Monday at 9am and dentist Tuesday at 10am" has two times.

    parts: the parts of a sentence.
    plain: the text in plain form: `3pm` for `３PM`.
    """
    groups = list(clusters(parts))
    if len(groups) < 2 or not all(_is_complete_time(group) for group in groups):
        return list(parts)
    # "tomorrow at 9am works, Friday at 3pm does not"
    if _pattern("denied_clause").search(plain, groups[0][-1].end):
        return list(parts)
    joined = list(groups[0])
    for group in groups[1:]:
        words_between = plain[joined[-1].end : group[0].start]
        has_role = any(part.role for part in (*joined, *group))
        is_next_clause = _pattern("next_clause").fullmatch(words_between)
        if has_role or not is_next_clause:
            return list(parts)
        joined += [replace(group[0], link="and"), *group[1:]]
    return joined


def _is_complete_time(group: Sequence[Part]) -> bool:
    """Whether joined parts name a day and a clock."""
    has_day = any(part.is_day for part in group)
    return has_day and any(part.kind == "clock" for part in group)


class _Surroundings:
    """The surroundings of a weak part, which decide whether it names a time.

    They are the other parts of its cluster and of the text, and the words before it.
    """

    def __init__(self, parts: Sequence[Part], cluster: Sequence[Part], index: int, plain: str):
        self._parts = parts
        self._cluster = cluster
        self._part = cluster[index]
        self._previous = cluster[index - 1] if index else None
        self._following = cluster[index + 1] if index + 1 < len(cluster) else None
        self._neighbours = [part for part in cluster if part is not self._part]
        self._plain = plain

    def make_sure(self) -> bool:
        """Whether the part names a time in these surroundings. Each kind has a rule of its own."""
        makes_kind_sure = _RULES.get(self._part.kind, _Surroundings._is_beside_sure)
        return makes_kind_sure(self)

    def _is_beside_sure(self) -> bool:
        """Whether the cluster has another part that is sure, which a holiday is in 今年圣诞节."""
        if any(not part.lexeme.weak for part in self._neighbours):
            return True
        for index, part in enumerate(self._cluster):
            is_other_holiday = part.is_holiday and part is not self._part
            if not is_other_holiday:
                continue
            if _Surroundings(self._parts, self._cluster, index, self._plain)._make_holiday_sure():
                return True
        return False

    def _is_announced(self) -> bool:
        """Whether the part has a role ("until June") or a preposition before it ("in June")."""
        start = self._part.lexeme.start
        before = self._plain[max(0, start - _LONGEST_ROLE) : start]
        return bool(self._part.role) or bool(_ending("sure").search(before))

    def _has_clock(self) -> bool:
        """Whether a clock is in the cluster."""
        return any(part.kind == "clock" for part in self._neighbours)

    def _make_weekday_sure(self) -> bool:
        """Whether "sat" or "sun" means a day: beside a clock, but not beside a sure day.

        "Sun morning" is a day, too, but "the morning sun" is not.
        """
        if any(part.is_day and not part.lexeme.weak for part in self._neighbours):
            return False
        is_before_part = self._following is not None and self._following.kind == "part"
        return is_before_part or self._has_clock() or self._is_announced()

    def _make_zone_sure(self) -> bool:
        """Whether an abbreviation means a zone: only right after a clock."""
        previous = self._previous
        if previous is None or previous.kind not in ("clock", "instant", "zone"):
            return False
        return "," not in self._plain[previous.end : self._part.lexeme.start]

    def _make_month_sure(self) -> bool:
        """Whether "June" means the month: after a preposition, or beside a word that it bounds.

        That is a repetition (12月每天) or a year (明年三月).
        """
        words = self._plain[self._part.lexeme.start : self._part.lexeme.end]
        is_before_series = self._following is not None and self._following.kind == "repeat"
        # "call June every Friday"
        if words in _MONTHS_AND_NAMES and is_before_series and not self._is_announced():
            return False
        is_bound = any(
            part.kind == "repeat" or (part.kind == "span" and part.lexeme.value.unit == "year")
            for part in self._neighbours
        )
        return is_bound or self._is_announced()

    def _make_day_part_sure(self) -> bool:
        """Whether a part of the day means a time.

        It does not in "the morning sun", nor in "in the evening" if the text names no other time.
        """
        text_has_time = any(part.is_day or part.kind in _TIMES for part in self._parts)
        if not text_has_time:
            return False
        if self._is_beside_sure() or self._has_clock() or self._is_announced():
            return True
        is_after_weekday = self._previous is not None and self._previous.kind == "weekday"
        return is_after_weekday or _is_clause(self._part, self._plain)

    def _make_clock_sure(self) -> bool:
        """Whether "by 5" means a clock.

        It does beside another time word, or if the text names a day and no sure clock.
        """
        has_day_part = any(part.kind == "part" for part in self._neighbours)
        if self._is_beside_sure() or has_day_part:
            return True
        sure_parts = [part for part in self._parts if not part.lexeme.weak]
        has_day = any(part.is_day for part in sure_parts)
        has_clock = any(part.kind == "clock" for part in sure_parts)
        return has_day and not has_clock

    def _make_holiday_sure(self) -> bool:
        """Whether "Christmas" means the day: not in "Christmas dinner", nor in "for Christmas".

        The words on both sides of it must show that.
        """
        start = self._part.lexeme.start
        end = self._part.lexeme.end
        language = "english" if self._plain[end - 1].isascii() else "chinese"
        words_behind = _pattern(f"behind_holiday_{language}").match(self._plain, end)
        if not (words_behind or _is_of_time(self._following)):
            return False

        before = self._plain[max(0, start - _LONGEST_ROLE) : start]
        is_behind_day = self._previous is not None and self._previous.kind != "offset"
        # "the Friday before Christmas" is another day.
        if is_behind_day and before.endswith("before "):
            return False
        is_announced = bool(_ending(f"before_holiday_{language}").search(before))
        return is_announced or bool(self._part.role) or _is_of_time(self._previous)

    def _make_month_limit_sure(self) -> bool:
        """Whether "only in June" limits a series, or belongs to another time word."""
        is_series = any(part.kind in _SERIES_KINDS for part in self._parts)
        return is_series or bool(self._neighbours)

    def _make_times_sure(self) -> bool:
        """Whether "3 times" limits a series: only if there is one."""
        return any(part.kind == "repeat" for part in self._parts)


# The rule for each kind of weak part. Any other kind counts beside a sure part.
_RULES: dict[str, Callable[[_Surroundings], bool]] = {
    "weekday": _Surroundings._make_weekday_sure,
    "zone": _Surroundings._make_zone_sure,
    "where": _Surroundings._make_zone_sure,
    "month": _Surroundings._make_month_sure,
    "part": _Surroundings._make_day_part_sure,
    "clock": _Surroundings._make_clock_sure,
    "lunar": _Surroundings._make_holiday_sure,
    "date": _Surroundings._make_holiday_sure,
    "easter": _Surroundings._make_holiday_sure,
    "nth_weekday": _Surroundings._make_holiday_sure,
    "times": _Surroundings._make_times_sure,
    "month_limit": _Surroundings._make_month_limit_sure,
}


def _is_of_time(part: Part | None) -> bool:
    """Whether a part beside a holiday makes it a time: a clock, a day, or "two days before"."""
    if part is None:
        return False
    return part.is_clock or part.is_day or part.kind in ("offset", "repeat")


def _is_clause(part: Part, plain: str) -> bool:
    """Whether a Chinese part of the day is a separate clause: 下午 in 明天去医院，下午.

    plain: the text in plain form: `3pm` for `３PM`.
    """
    start = part.lexeme.start
    end = part.lexeme.end
    if plain[start:end].isascii():
        return False
    before = plain[:start].rstrip()
    after = plain[end:].lstrip()
    # It is no clause if it is the whole text.
    if before == "" and after == "":
        return False
    begins_clause = before == "" or before[-1] in ",;。、:"
    ends_clause = after == "" or after[0] in ",;。、"
    return begins_clause and ends_clause


def _linked_again(counting_parts: Sequence[Part], parts: Sequence[Part]) -> list[Part]:
    """Return the counting parts with the links that remain when the others are left out.

    If A, B and C are joined and B is left out, C is joined to A. If B was apart from A, so is C.

    counting_parts: the parts that count, in order.
    parts: all parts, in order.
    """
    linked: list[Part] = []
    # A loose part is a copy of its part, so the two are compared by their time word.
    counting_part_of = {part.lexeme: part for part in counting_parts}
    # Whether a part was left out since the last counting part, and was apart from it.
    has_gap_since_last = False
    for part in parts:
        link = "apart" if has_gap_since_last else part.link
        counting_part = counting_part_of.get(part.lexeme)
        if counting_part is None:
            has_gap_since_last = link == "apart"
        else:
            linked.append(replace(counting_part, link=link))
            has_gap_since_last = False
    return linked
