"""Reminders a deep dream makes of what texts say about time (contract 001, 6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, UUID, uuid5

from commonplace.errors import AmbiguousTime, InvalidInput, PastTime, TimeRefused
from commonplace.jobs.job import REMIND, REMINDED, Action, Known
from commonplace.note import timephrase
from commonplace.note.compose import Record
from commonplace.note.model import ORGANIZED
from commonplace.note.reminder import CATEGORY, keys_of
from commonplace.note.timephrase import Reading

if TYPE_CHECKING:
    from commonplace.config import Settings

JOB, SOURCE, TAG = "dream", "dream-engine", "auto-reminder"
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_TOLD = (AmbiguousTime, PastTime)
"""The refusals the report tells of; a text may say "soon" as often as it likes."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A time expression of the memory `id` that makes no reminder; `code` is `ambiguous_time` or `past_time`."""

    id: str
    phrase: str
    code: str


@dataclass(frozen=True, slots=True)
class FromText:
    """The reminders to make, and the time expressions that make none."""

    actions: tuple[Action, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def plan_from_text(known: Sequence[Known], settings: Settings, now: datetime) -> FromText:
    """A reminder for each time that a memory which is none names, read with its own `created_at` as the clock.

    Each is made once: its id says from which memory and words, and stays in that memory's header under `reminded`
    though the reminder be deleted. A time that is over at `now` makes none; a rule goes on to its next time.
    """
    made = {each.id for each in known} | {id for each in known for id in _reminded(each)}
    actions: list[Action] = []
    skipped: list[Skipped] = []
    for each in known:
        if each.digest.category == CATEGORY:
            continue
        for paragraph, phrase, outcome in _times(each, settings):
            ids = [reminder_id(source, phrase) for source in (each.id, *each.digest.merged)]
            if not made.isdisjoint(ids):
                continue
            if isinstance(outcome, Reading):
                outcome = _ahead(outcome, settings, now)
            if isinstance(outcome, Reading):
                made.add(ids[0])
                actions.append(_action(each, ids[0], paragraph, outcome, now))
            elif isinstance(outcome, _TOLD):
                skipped.append(Skipped(each.id, phrase, outcome.code))
    return FromText(tuple(actions), tuple(skipped))


def reminder_id(source: str, phrase: str) -> str:
    """The id of the reminder made of `phrase` in the memory `source`."""
    try:
        namespace = UUID(source)
    except ValueError:
        namespace = uuid5(NAMESPACE_URL, f"memory://categories/{source}")
    return str(uuid5(namespace, phrase))


def _reminded(each: Known) -> list[str]:
    ids = each.info.header.get(REMINDED)
    return [str(id) for id in ids] if isinstance(ids, list) else []


def _times(each: Known, settings: Settings) -> Iterator[tuple[str, str, Reading | TimeRefused]]:
    """(paragraph, words, reading or refusal) of each time a memory names; of several ways to say one time in a
    paragraph the first."""
    content = each.digest.content
    seen: set[object] = set()
    for (start, end), outcome in timephrase.read_all(
        content, each.digest.created, settings.reading_zone, settings.day_hour
    ):
        paragraph = _paragraph(content, start, end)
        time = (paragraph, outcome.due, outcome.repeat) if isinstance(outcome, Reading) else (start,)
        if time not in seen:
            seen.add(time)
            yield paragraph, outcome.phrase, outcome


def _paragraph(text: str, start: int, end: int) -> str:
    """The paragraph that holds the characters from `start` to `end`."""
    begin = max((gap.end() for gap in _BLANK_LINE.finditer(text, 0, start)), default=0)
    gap = _BLANK_LINE.search(text, end)
    return text[begin : gap.start() if gap else len(text)].strip()


def _ahead(reading: Reading, settings: Settings, now: datetime) -> Reading | TimeRefused:
    """The reading as seen at `now`: a rule whose first time is over at its next one."""
    if reading.due > now:
        return reading
    if reading.repeat is None:
        return PastTime(reading.phrase)
    try:
        return replace(reading, due=timephrase.following(reading.repeat, now, settings.reading_zone, since=reading.due))
    except InvalidInput:
        return PastTime(reading.phrase)


def _action(each: Known, identity: str, paragraph: str, reading: Reading, now: datetime) -> Action:
    digest = each.digest
    tags = tuple(dict.fromkeys((*digest.tags, TAG)))
    record = Record(
        identity, paragraph, CATEGORY, now.astimezone(UTC), now.astimezone(UTC), digest.scope, ORGANIZED, tags, SOURCE,
        further=keys_of(reading) | {"reminder_of": digest.id},
    )  # fmt: skip
    reason = f'"{reading.phrase}": {reading.reading}'
    return Action(JOB, REMIND, identity, reason, each.path, target=digest.id, phrase=reading.phrase, record=record)
