"""What to look for: the `Query` value and its text form (contract 000b, 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any

from commonplace import clock
from commonplace.errors import TimeframeError


@dataclass(frozen=True, slots=True)
class Query:
    """Text and filters; all filters must hold. Empty = every note.

    `search_type` is `text`, `title` or `permalink` (an address with `*`). `projects` None = all.
    `tags`: all of them (note tags or observation tags, without case). `categories`: notes with an
    observation of such a category. `category`, `phase`: of the `categories` project. `any_category`:
    for each, the memory's own category or an observation's (`category:` in the text form). `after` /
    `before` bound the changed time (aware datetimes), `created_from` / `created_until` the written
    time (from inclusive, until exclusive). `contains` is a case-insensitive substring of the content.
    `metadata` is contract 000b's `metadata_filters`.
    """

    text: str = ""
    search_type: str = "text"
    projects: tuple[str, ...] | None = None
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    any_category: tuple[str, ...] = ()
    category: str | None = None
    phase: str | None = None
    scope: str | None = None
    source: str | None = None
    status: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    after: datetime | None = None
    before: datetime | None = None
    created_from: datetime | None = None
    created_until: datetime | None = None
    contains: str | None = None

    def but(self, **changes: Any) -> Query:
        """A copy with these fields changed."""
        return replace(self, **changes)


_MANY = {"tag": "tags", "type": "types", "category": "any_category", "project": "projects"}
_ONE = ("source", "scope", "status")
_TIMES = ("before", "after")
_FILTER = re.compile(
    r'(?P<phrase>"[^"]*")'
    r"|(?<!\S)(?P<name>tag|type|category|project|source|scope|status|before|after):"
    r'(?:"(?P<quoted>[^"]+)"|(?P<plain>[^\s"]+))(?!\S)',
    re.I,
)


def parse(text: str, *, now: datetime | None = None, zone: tzinfo | None = None) -> Query:
    """The query a person writes in one line: `dark mode tag:ui after:7d` (contract 000b, 6).

    Filters `tag:` `type:` `category:` `project:` `source:` `scope:` `status:` `before:` `after:`
    are taken out of the text; a value with blanks stands in double quotes. `tag:` and `category:`
    given twice must both hold, of several `type:` and `project:` one; else the last one counts.
    Any other `x:y`, a filter inside quotes and a time nobody can read stay text. `now` (default:
    the clock) and `zone` (default: local) are for `before:` and `after:`. Never raises.
    """
    found: dict[str, Any] = {}

    def take(match: re.Match[str]) -> str:
        if match["phrase"] is not None:
            return match[0]
        name, value = match["name"].lower(), match["quoted"] or match["plain"]
        if name in _MANY:
            found[_MANY[name]] = (*found.get(_MANY[name], ()), value.removeprefix("#") if name == "tag" else value)
        elif name in _ONE:
            found[name] = value
        else:
            moment = _moment(value, now, zone)
            if moment is None:
                return match[0]
            found[name] = moment
        return " "

    rest = _FILTER.sub(take, text)
    return Query(text=" ".join(rest.split()) if found else text.strip(), **found)


def _moment(value: str, now: datetime | None, zone: tzinfo | None) -> datetime | None:
    from commonplace.note.timeframe import since

    try:
        return since(value, now or clock.now(), zone)
    except TimeframeError:
        return None
