"""The parts of a sentence that say when: time words with their roles and how they are joined."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memoranda.note.timephrase.lexer import scan
from memoranda.note.timephrase.text import Text
from memoranda.note.timephrase.values import DAY_KINDS, Lexeme
from memoranda.note.timephrase.words import compiled, data_file

PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_COMMA = re.compile(r"\s*[,、]\s*(?:at|on)?\s*")
_LONGEST_ROLE = 40
_CLOCK_KINDS = ("clock", "part")
_TIMES = ("clock", "repeat", "instant", "vague", "offset")
START = "start"
END = "end"
EXCEPT = "except"


@dataclass(frozen=True, slots=True)
class Part:
    """A time word at plain[start:end], the words of its role included.

    `role`: "", `start` or `end` of a range or series, `except`. `link`: how it is joined to the
    part before, "beside", "and", "or" or "apart". A loose one may be about something else: the
    "night" of a night shift.
    """

    lexeme: Lexeme
    start: int
    end: int
    role: str = ""
    link: str = "apart"
    is_loose: bool = False

    @property
    def kind(self) -> str:
        return self.lexeme.kind

    @property
    def is_day(self) -> bool:
        return self.lexeme.kind in DAY_KINDS

    @property
    def is_clock(self) -> bool:
        return self.lexeme.kind in _CLOCK_KINDS


def _pattern(name: str) -> re.Pattern[str]:
    return compiled(data_file("roles.toml")[name])


def _ending(name: str) -> re.Pattern[str]:
    """The words of a role at the end of a text."""
    return compiled(f"(?:{data_file('roles.toml')[name]})\\Z")


def parts_of(text: Text) -> list[Part]:
    """The parts of a text in order, weak words that say no time left out."""
    parts: list[Part] = []
    for lexeme in scan(text.plain):
        previous = parts[-1] if parts else None
        if previous and previous.lexeme.start == lexeme.start:
            # The second lexeme of a word such as "tonight"
            parts.append(replace(previous, lexeme=lexeme, link="beside"))
        else:
            parts.append(_joined(text.plain, previous, lexeme))
    return parts


def _joined(plain: str, previous: Part | None, lexeme: Lexeme) -> Part:
    """A lexeme with its role and its link to the part before."""
    gap_start = previous.end if previous else 0
    # The words of a role are close by
    near = max(gap_start, lexeme.start - _LONGEST_ROLE)
    role, role_start = _role_before(plain[near : lexeme.start])
    start = near + role_start if role else lexeme.start
    link = "apart"
    if previous:
        link, link_role = _link(plain, previous, lexeme, start)
        if link_role and not role:
            role = link_role
            start = gap_start
    end = lexeme.end
    for suffix, name in (("start_after", START), ("end_after", END), ("except_after", EXCEPT)):
        match = _pattern(suffix).match(plain, lexeme.end)
        if match and match[0].strip():
            role = role or name
            end = match.end()
    return Part(lexeme, start, end, role, link)


def _role_before(gap: str) -> tuple[str, int]:
    """The role that the words at the end of a gap give, and where they begin."""
    for name, role in (
        ("except", EXCEPT),
        ("between", "between"),
        ("start", START),
        ("end", END),
    ):
        match = _ending(name).search(gap)
        if match:
            return role, match.start()
    return "", 0


def _link(plain: str, previous: Part, lexeme: Lexeme, start: int) -> tuple[str, str]:
    """How a lexeme is joined to the part before, and the role that this gives it."""
    gap = plain[previous.end : start]
    whole_gap = plain[previous.end : lexeme.start]
    if PARAGRAPH.search(whole_gap):
        return "apart", ""
    if "vague" in (previous.kind, lexeme.kind):
        return "apart", ""
    is_same_class = _class_of(previous.lexeme) == _class_of(lexeme)
    if is_same_class and _pattern("to").fullmatch(whole_gap):
        return "beside", END
    if is_same_class and previous.role == "between" and _pattern("and").fullmatch(whole_gap):
        return "beside", END
    if _pattern("or").fullmatch(gap):
        return "or", ""
    if is_same_class and lexeme.kind == previous.lexeme.kind and _COMMA.fullmatch(gap):
        return "and", ""
    if lexeme.kind == previous.lexeme.kind == "weekday" and not whole_gap:
        # 周二周四
        return "and", ""
    if whole_gap.strip() == "of":
        return ("beside" if lexeme.kind in ("span", "month") else "apart"), ""
    if _pattern("beside").fullmatch(gap):
        return "beside", ""
    if _pattern("and").fullmatch(gap):
        return "and", ""
    return "apart", ""


def _class_of(lexeme: Lexeme) -> str:
    if lexeme.kind in DAY_KINDS or lexeme.kind == "month":
        return "day"
    return "clock" if lexeme.kind in _CLOCK_KINDS else lexeme.kind


def clusters(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """The parts that are joined to each other, group by group."""
    cluster: list[Part] = []
    for part in parts:
        if cluster and part.link == "apart":
            yield cluster
            cluster = []
        cluster.append(part)
    if cluster:
        yield cluster


def settled(parts: Sequence[Part], plain: str) -> list[Part]:
    """The parts that count. A weak word counts beside a sure one, or where the words before it say
    that it is a time; a part of the day or a span elsewhere is loose; others say no time.
    """
    kept: list[Part] = []
    has_sure_clock = any(part.kind == "clock" and not part.lexeme.weak for part in parts)
    has_sure_day = any(part.is_day and not part.lexeme.weak for part in parts)
    has_time = any(part.kind in _TIMES or part.is_day for part in parts if part.kind != "part")
    has_series = any(part.kind == "repeat" for part in parts)
    for cluster in clusters(parts):
        for index, part in enumerate(cluster):
            if not part.lexeme.weak:
                kept.append(part)
                continue
            is_sure = _is_sure(cluster, index, plain)
            if part.kind == "clock":
                is_sure = is_sure or (has_sure_day and not has_sure_clock)
            elif part.kind == "part":
                # "the morning sun", and "in the evening" of no day, are no times
                is_sure = is_sure and has_time
            elif part.kind == "times":
                is_sure = has_series
            if is_sure:
                kept.append(part)
            elif part.kind in ("part", "span"):
                kept.append(replace(part, is_loose=True))
    return _linked_again(kept, parts)


def _is_sure(cluster: Sequence[Part], index: int, plain: str) -> bool:
    """Whether a weak part of a cluster says a time."""
    part = cluster[index]
    others = [other for other in cluster if other is not part]
    sure = [other for other in others if not other.lexeme.weak]
    before = plain[max(0, part.lexeme.start - _LONGEST_ROLE) : part.lexeme.start]
    is_announced = bool(part.role) or bool(_ending("sure").search(before))
    if part.kind == "weekday":
        has_clock = any(other.kind == "clock" for other in others)
        has_surer_day = any(other.is_day for other in sure)
        return not has_surer_day and (has_clock or is_announced)
    if part.kind in ("zone", "where"):
        follows_clock = index > 0 and cluster[index - 1].kind in ("clock", "instant", "zone")
        return follows_clock and "," not in plain[cluster[index - 1].end : part.lexeme.start]
    if part.kind == "month":
        return is_announced
    if part.kind == "part":
        has_weak_clock = any(other.kind == "clock" for other in others)
        return bool(sure) or has_weak_clock or is_announced or _is_clause(part, plain)
    if part.kind == "clock":
        return bool(sure) or any(other.kind == "part" for other in others)
    return bool(sure)


def _is_clause(part: Part, plain: str) -> bool:
    """Whether a Chinese part of the day is a clause by itself: 明天去医院，下午."""
    start = part.lexeme.start
    end = part.lexeme.end
    if plain[start:end].isascii():
        return False
    before = plain[:start].rstrip()
    after = plain[end:].lstrip()
    is_begun = before == "" or before[-1] in ",;。、:"
    is_ended = after == "" or after[0] in ",;。、"
    return is_ended and is_begun and not (before == "" and after == "")


def _linked_again(kept: list[Part], parts: Sequence[Part]) -> list[Part]:
    """Parts with the links that remain once others are left out: what was joined to a word that is
    left out, and that to the one before, is joined to that one."""
    links: list[Part] = []
    remaining = {part.lexeme: part for part in kept}
    pending = ""
    for part in parts:
        strongest = "apart" if "apart" in (part.link, pending) else part.link
        if part.lexeme in remaining:
            links.append(replace(remaining[part.lexeme], link=strongest))
            pending = ""
        else:
            pending = strongest
    return links
