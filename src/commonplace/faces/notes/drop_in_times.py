"""Times written into observations, as Basic Memory reads them: `@effective[2026-06-10,2026-07-27)`, `@due:2026-07-27`.

They are a filter of its search_notes only; to our own tools such a mark is text (contract 000b, 3.2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.faces.arguments import Arguments

_MARK = re.compile(r"(?:^|\s)@(\w+)(?::(\S+)|([\[(][^\[\]()]*[\])]))")
_RANGE = re.compile(r"([\[(])\s*([^,]*?)\s*,\s*([^,]*?)\s*([\])])")
Span = tuple[datetime, bool, datetime, bool]
"""From when, whether that moment belongs to it, until when, whether that does."""


@dataclass(frozen=True, slots=True)
class Times:
    """What to look for: marks of a `kind`, and of a time that meets `span`."""

    kind: str | None
    span: Span | None

    @classmethod
    def of(cls, args: Arguments) -> Times | None:
        """The filter of a search; None without one. Raises InvalidInput for what is no time."""
        given = {name: args.get(name) for name in ("valid_at", "valid_overlaps", "time_kind")}
        if empty := [name for name, text in given.items() if text is not None and not text.strip()]:
            raise InvalidInput(f"{empty[0]} was given as an empty value. Leave it out to search without it.")
        at, during, kind = given.values()
        if at and during:
            raise InvalidInput("Give valid_at or valid_overlaps, not both.")
        if at:
            moment = _moment(at)
            return cls(kind, (moment, True, moment, True))
        return cls(kind, _span(during) if during else None) if during or kind else None

    def matching(self, text: str) -> list[dict[str, Any]]:
        """The marks in an observation that fit, as that program's results carry them."""
        found: list[dict[str, Any]] = []
        for mark in _MARK.finditer(text):
            kind, since, between = mark.groups()
            try:
                span = _span(between or f"[{since},)")
            except InvalidInput:
                continue
            if self.kind in (None, kind) and (self.span is None or _meet(self.span, span)):
                during = _shown(span, between or since)
                found.append({"kind": kind, "valid_during": during, "source_text": mark[0].strip()})
        return found


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text} is no date. Use e.g. 2026-07-27.") from None


def _span(text: str) -> Span:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"{text} is no range of dates. Use e.g. [2026-06-01,2026-08-01).")
    begin, end = match[2] and _moment(match[2]), match[3] and _moment(match[3])
    return begin or datetime.min, match[1] == "[", end or datetime.max, match[4] == "]" or not end


def _shown(span: Span, written: str) -> dict[str, Any]:
    """A span in that program's form: days half-open, moments in UTC to the microsecond; no key for an open end."""
    (begin, holds_begin), (end, holds_end) = span[:2], span[2:]
    is_instant = re.search(r"\d[Tt ]\d", written) is not None
    day = timedelta(days=1)
    if not is_instant:
        begin, holds_begin = (begin, True) if holds_begin or begin == datetime.min else (begin + day, True)
        end, holds_end = (end + day, False) if holds_end and end != datetime.max else (end, False)
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if is_instant else "%Y-%m-%d"
    lower = begin.strftime(form) if begin != datetime.min else ""
    upper = end.strftime(form) if end != datetime.max else ""
    holds_begin, holds_end = holds_begin and bool(lower), holds_end and bool(upper)
    literal = f"{'[' if holds_begin else '('}{lower},{upper}{']' if holds_end else ')'}"
    found: dict[str, Any] = {"axis": "instant" if is_instant else "date", "literal": literal}
    found |= {name: value for name, value in (("lower", lower), ("upper", upper)) if value}
    return found | {"lower_inclusive": holds_begin, "upper_inclusive": holds_end, "is_empty": False}


def _meet(one: Span, other: Span) -> bool:
    (begin, holds_begin), (end, holds_end) = max(one[:2], other[:2]), min(one[2:], other[2:])
    return begin < end or (begin == end and holds_begin and holds_end)
