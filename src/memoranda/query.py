"""Queries: the `Query` value and its text form (contract 000b, 6)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any

from memoranda import clock
from memoranda.errors import InvalidInput, TimeframeError, choices
from memoranda.note.model import ARCHIVED, CATEGORIES, CATEGORY_PROJECT, PHASES, SCOPE, SCOPE_HINT
from memoranda.text.pattern import lazy_pattern
from memoranda.value_object import FrozenValueObject

ORDERS = ("changed", "created", "path", "address")
"""How a list may be sorted: the newest first by one of the two times, or by path or permalink."""

SEARCH_TYPES = ("text", "title", "permalink")
"""What the words of a search may be looked for in."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Query(FrozenValueObject):
    """The notes that a list or a search returns: those that pass all filters.

    A filter that is not set lets every note pass.

    text: words to look for; a list does not look at them.
    search_type: one of SEARCH_TYPES; for `permalink`, the text is an address with `*`.
    order: one of ORDERS, for lists.

    Where a note is:
    projects: names of projects; None is all of them.
    folder: a folder inside its project, at any depth.
    address: its permalink, with or without the project; `*` is any run of characters.
    ids: the note has one of these ids.

    What a note is:
    types: the note has one of these types.
    tags: the note and its observations have all of these tags together. Case does not matter.
    categories: an observation of the note has one of these categories.
    any_category: each of these is the category of the note or of an observation in it. In the text
        form, it is written `category:`.
    category, phase: the category and the phase of a memory.
    scope, source, status: the values of these keys in the header.
    metadata: conditions on header keys (`metadata_filters` in contract 000b, 7).
    contains: a piece of its text or title, folded.
    pinned: True for only pinned notes.
    archived: True for only archived memories, False for none. None leaves them out of lists, unless
        `phase` or `ids` asks for them, but not out of searches.
    filled: True for no files of memory banks that nobody has filled yet.
    by: who wrote the text: `owner`, an agent's name, `import`, `web`, `file`.
    client: the program it was written with.

    When. Moments are aware datetimes; the first bound is inclusive, the second is not:
    after, before: bounds of the time when the note was last changed.
    created_from, created_until: bounds of the time when the note was written.
    day_from, day_until: bounds of the day the note is about or, without one, of the day it was
        written. Both are the beginning of a day in the reader's zone.
    as_of: the note was valid at this moment. The zone of the moment says what day it is.
    valid_at: leaves out notes that are over, superseded or not valid yet at this moment, whenever
        they were written. Ranked searches without `as_of` use the present.
    upheld: the rows of notes that count as valid although another note supersedes them
        (`ReadVerbs.upheld_rows`).
    """

    text: str = ""
    search_type: str = "text"
    order: str = "changed"
    projects: tuple[str, ...] | None = None
    folder: str = ""
    address: str | None = None
    ids: tuple[str, ...] | None = None
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
    contains: str | None = None
    pinned: bool = False
    archived: bool | None = None
    filled: bool = False
    by: str | None = None
    client: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    created_from: datetime | None = None
    created_until: datetime | None = None
    day_from: datetime | None = None
    day_until: datetime | None = None
    as_of: datetime | None = None
    valid_at: datetime | None = None
    upheld: tuple[int, ...] = ()

    @property
    def lists_archived(self) -> bool | None:
        """Whether a list shows only archived memories (True) or leaves them out (False).

        None means that it shows all notes, archived or not.
        """
        if self.archived is not None:
            return self.archived
        # Notes that are named by their ids may be archived.
        if self.ids is not None:
            return None
        return self.phase == ARCHIVED

    def replace(self, **changes: Any) -> Query:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


# Filters that may be given several times, and the field of Query that gets their values.
_MANY = {"tag": "tags", "type": "types", "category": "any_category", "project": "projects"}
# Filters of which only the last one counts. They have the names of their fields.
_ONE = ("source", "scope", "status", "by", "client")
# A phrase in quotes, or a filter such as `tag:work` or `project:"My notes"`.
_FILTER = lazy_pattern(
    r'(?P<phrase>"[^"]*")'
    r"|(?<!\S)(?P<name>tag|type|category|project|source|scope|status|by|client|before|after|as_of):"
    r'(?:"(?P<quoted>[^"]+)"|(?P<plain>[^\s"]+))(?!\S)',
    re.I,
)


def parse(text: str, *, now: datetime | None = None, zone: tzinfo | None = None) -> Query:
    """Read the query that a person writes in one line (contract 000b, 6). Never raises.

    `dark mode tag:ui after:7d` has the text `dark mode`, the tag `ui` and a time. A value with
    blanks is in double quotes: `project:"My notes"`. If `tag:` or `category:` is given twice, both
    must hold; of several `type:` or `project:` filters, one must hold. If another filter is
    repeated, the last one counts. Other words with a colon, filters inside quotes and unreadable
    times stay text.

    now: the time from which `before:`, `after:` and `as_of:` count. None means the present time.
    zone: the time zone of these filters. None means the system's zone.
    """
    values: dict[str, Any] = {}

    def take(match: re.Match[str]) -> str:
        """Add a filter to `values`, and return the text that replaces it.

        That is a blank, or the filter itself if it stays text.
        """
        # Filters inside quotes stay text.
        if match["phrase"] is not None:
            return match[0]
        name = match["name"].lower()
        value = match["quoted"] or match["plain"]
        if name in _MANY:
            field_name = _MANY[name]
            if name == "tag":
                value = value.removeprefix("#")
            values[field_name] = (*values.get(field_name, ()), value)
        elif name in _ONE:
            values[name] = value
        else:
            # All other filters have a time.
            read = clock.as_of if name == "as_of" else clock.since
            try:
                values[name] = read(value, now or clock.now(), zone)
            except TimeframeError:
                return match[0]
        return " "

    text_without_filters = _FILTER.sub(take, text)
    if not values:
        return Query(text=text.strip())
    # The filters leave blanks behind.
    words = text_without_filters.split()
    return Query(text=" ".join(words), **values)


def narrowed(
    query: Query, text: str, *, now: datetime | None = None, zone: tzinfo | None = None
) -> tuple[Query, str]:
    """Add the filters in a text to a query. Returns the new query, and the text without filters.

    If both name projects or types, only those named in both pass. Of other filters that may have
    several values, such as tags, the values of both must hold. Any other filter in the text
    replaces the one of the query. A text without filters stays as it is.

    now: the time from which `before:`, `after:` and `as_of:` count. None means the present time.
    zone: the time zone of these filters. None means the system's zone.
    """
    query_of_text = parse(text, now=now, zone=zone)
    changes: dict[str, Any] = {}
    for query_field in dataclasses.fields(query_of_text):
        name = query_field.name
        value = getattr(query_of_text, name)
        # An empty `metadata` is a new dict each time, so its field has no default to compare with.
        is_set = value != query_field.default and value not in ((), {})
        if is_set and name != "text":
            changes[name] = _joined(name, getattr(query, name), value)
    if not changes:
        return query, text
    return query.replace(**changes), query_of_text.text


def _joined(filter_name: str, before: Any, value: Any) -> Any:
    """Join the values of a filter: the one that the query has, and the one from a text.

    filter_name: the name of the field.
    before: the value of the query.
    value: the value of the text.
    """
    if not isinstance(value, tuple):
        return value
    if filter_name in ("projects", "types") and before:
        names = {name.casefold() for name in before}
        return tuple(name for name in value if name.casefold() in names)
    return (*(before or ()), *value)


def check_memory(
    category: str | None = None, phase: str | None = None, scope: str | None = None
) -> None:
    """Raise InvalidInput for a category, phase or scope that does not exist (contract 001, 3).

    A value of None is not checked.
    """
    for name, value, allowed in (("category", category, CATEGORIES), ("phase", phase, PHASES)):
        if value is not None and value not in allowed:
            raise InvalidInput(f'invalid {name} "{value}"', choices(value, allowed))
    if scope is not None and not SCOPE.fullmatch(scope.lower()):
        raise InvalidInput(f'invalid scope "{scope}"', SCOPE_HINT)


def check_query(query: Query) -> None:
    """Raise InvalidInput for a query with an order, a search type, or a category, phase or scope that
    does not exist.
    """
    for name, allowed in (("search_type", SEARCH_TYPES), ("order", ORDERS)):
        value = getattr(query, name)
        if value not in allowed:
            raise InvalidInput(f'invalid {name} "{value}"', choices(value, allowed))
    check_memory(query.category, query.phase, query.scope)


def memory_query(
    *,
    category: str | None = None,
    phase: str | None = None,
    scope: str | None = None,
    source: str | None = None,
    archived: bool | None = None,
    tags: Iterable[str] = (),
    first: datetime | None = None,
    until: datetime | None = None,
) -> Query:
    """Return the query for memories of the project `categories`, the latest first.

    category, phase, scope, source: the values that a memory must have; None means any value.
    archived: only memories that are archived (True) or that are not (False). None leaves archived
        memories out of a list, unless `phase` asks for them, but not out of a search.
    tags: a memory must have all of them. Case does not matter.
    first, until: bounds of the time when a memory was written, from `first` until before `until`.
        None means no bound.

    Raises InvalidInput for a category, phase or scope that does not exist. Source: contract 001, 3
    and 14.
    """
    check_memory(category, phase, scope)
    scope = scope and scope.lower()
    return Query(
        order="created",
        projects=(CATEGORY_PROJECT,),
        category=category,
        phase=phase,
        scope=scope,
        source=source,
        archived=archived,
        tags=tuple(tags),
        created_from=first,
        created_until=until,
    )


def day(
    text: str | None, name: str, zone: tzinfo | None, after: int = 0, now: datetime | None = None
) -> datetime | None:
    """Return the midnight when a day or a week begins or ends, in UTC.

    text: YYYY-MM-DD, or a time frame such as `yesterday` or `last week`. An amount (`7d`) means the
        one day that long ago. None returns None.
    name: the name of the parameter, for the error.
    zone: the zone of the midnight. None means the system's.
    after: 0 for the beginning of the first day. 1 for the end of the last day, which is the next
        midnight.
    now: the present moment. None asks the clock.

    Raises InvalidInput for another text.
    """
    if text is None:
        return None
    try:
        first_day, number_of_days = _days_of(text, zone, now or clock.now())
        shown_day = first_day + timedelta(days=number_of_days * after)
        return clock.to_utc(datetime.combine(shown_day, time()), zone)
    except (ValueError, OverflowError, TimeframeError):
        raise InvalidInput(f'invalid {name} date: "{text}"', _DAYS) from None


def _days_of(text: str, zone: tzinfo | None, now: datetime) -> tuple[date, int]:
    """Return the first day that a text means, and the number of days. Raises ValueError.

    text: YYYY-MM-DD, or a time frame such as `yesterday` or `last week`.
    zone: the zone of the days. None means the system's.
    now: the present moment.

    Raises TimeframeError for a time frame that cannot be read.
    """
    looks_like_date = len(text) == len("YYYY-MM-DD") and text[:1].isdigit() and text[-1:].isdigit()
    if looks_like_date:
        return date.fromisoformat(text), 1
    # Another text with a year and a dash is not a time frame.
    if text[:4].isdigit() and text[4:5] == "-":
        raise ValueError(text)
    first_day = clock.since(text, now, zone).astimezone(zone).date()
    frame = "".join(text.lower().split())
    if frame in ("thisweek", "本周", "lastweek", "上周"):
        return first_day, 7
    if frame == "lastmonth":
        # Four days after the 28th, it is the next month.
        next_month = (first_day.replace(day=28) + timedelta(days=4)).replace(day=1)
        return first_day, (next_month - first_day).days
    return first_day, 1


_DAYS = "A day is YYYY-MM-DD, today, yesterday, 7d (so long ago), last week, last month, 昨天, 本周 or 上周."


def split_list(text: str | None) -> list[str]:
    """Split a list with commas: `a, b,` gives `["a", "b"]`. None gives an empty list."""
    if text is None:
        return []
    return [part.strip() for part in text.split(",") if part.strip()]
