"""The header of a reminder: when it is due, whether it fired, whether somebody acknowledged it.

Source: contract 001, 2 and 8. Pure: the code that fires a reminder writes the keys planned here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from memoranda.clock import parse_stamp, stamp
from memoranda.errors import InvalidInput
from memoranda.note.frontmatter import REMOVE

if TYPE_CHECKING:
    from memoranda.note.timephrase import Reading

FIRED_FOR = "fired_for"
"""Header key of a repeating reminder: the due time it last fired for, as `due_at` has gone on to
the next one.
"""
SNOOZED = "snoozed_until"
"""Header key of a reminder that was put off: when it fires; of a repeating one that occurrence, its
rule goes on.
"""
SOURCE_CHANGED = "source_changed"
"""Header key of a reminder made from a text that did not name its time any more when it fired:
`gone` or `changed`.
"""
CAVEATS = {"gone": "[its memory is gone] ", "changed": "[its memory changed] "}
"""Shown before the text of such a reminder."""
_YEARS = range(2, 9999)


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder's times, aware UTC. None means not set, or unreadable.

    due: when it fires next.
    regular: the next time of its rule.
    snoozed: the time an occurrence was put off to.
    repeat: the rule as written.
    fired: when it fired.
    fired_for: the time it fired for.
    has_fired: whether `fired_at` has a value, readable or not.
    is_done: whether somebody acknowledged it.
    is_early: whether it may fire before its time, since the text names an hour to be ready for.
    unreadable: the value of `due_at`, if it is not a time.
    caveat: a remark shown before the text.
    """

    due: datetime | None = None
    regular: datetime | None = None
    snoozed: datetime | None = None
    repeat: str | None = None
    fired: datetime | None = None
    fired_for: datetime | None = None
    has_fired: bool = False
    is_done: bool = False
    is_early: bool = False
    unreadable: str | None = None
    caveat: str = ""

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> Reminder:
        """The reminder of a memory's header."""
        due_text = header.get("due_at")
        due = moment_of(header.get("due_at"))
        repeat = header.get("repeat")
        if repeat and due:
            snoozed = moment_of(header.get(SNOOZED))
        else:
            snoozed = None
        return cls(
            due=min(due, snoozed) if due and snoozed else due,
            regular=due,
            snoozed=snoozed,
            repeat=str(repeat) if repeat else None,
            fired=moment_of(header.get("fired_at")),
            fired_for=moment_of(header.get(FIRED_FOR)),
            has_fired=bool(header.get("fired_at")),
            is_done=bool(header.get("acked_at")),
            is_early="reminder_of" in header
            and header.keys().isdisjoint(("all_day", "repeat", SNOOZED)),
            unreadable=str(due_text) if due is None and due_text not in (None, "") else None,
            caveat=CAVEATS.get(str(header.get(SOURCE_CHANGED)), ""),
        )

    @property
    def is_waiting(self) -> bool:
        """Whether the reminder will still fire. A repeating one does, if it has a next time."""
        if self.due is None or self.repeat is None:
            return self.due is not None and not self.has_fired and not self.is_done
        return (
            self.fired is None or self.due > self.fired or self._next(self.fired, UTC) is not None
        )

    @property
    def is_undated(self) -> bool:
        """Whether it has no time it could fire at, and is not done with."""
        return self.due is None and not self.is_done

    @property
    def shown_due(self) -> datetime | None:
        """The time it fired for, if it repeats.

        Otherwise the time it is due. None if it has no time.
        """
        if self.repeat and self.fired_for:
            return self.fired_for
        return self.due

    def is_due(self, now: datetime, before: timedelta = timedelta()) -> bool:
        """Whether it must fire at `now`. An early one may fire `before` its time."""
        return (
            self.is_waiting
            and self.due is not None
            and self.due <= now + (before if self.is_early else timedelta())
        )

    def is_pending(self, now: datetime, days: int) -> bool:
        """Whether it fired in the last `days` days and nobody has acknowledged it."""
        return (
            self.fired is not None and not self.is_done and now - self.fired <= timedelta(days=days)
        )

    def complaints(self, now: datetime, zone: tzinfo, *, locked: bool = False) -> list[str]:
        """The reasons why it will not fire as intended, in words.

        locked: whether programs may not change its file.
        """
        complaints = []
        if self.unreadable is not None and not self.is_done:
            complaints.append(f'due_at "{self.unreadable}" is no time, so the reminder never fires')
        if (
            self.regular is not None
            and self.repeat
            and not self._has_end()
            and self._next(max(now, self.regular), zone) is None
        ):
            complaints.append(
                f'repeat "{self.repeat}" is no rule or has no time left, '
                "so the reminder fires once at most"
            )
        if locked and self.is_waiting:
            complaints.append("the reminder is locked, so it never fires")
        return complaints

    def _has_end(self) -> bool:
        """Whether the repeating rule has an end, as "every day until Friday" does."""
        from memoranda.note.timephrase.rules import parse_rule

        try:
            return parse_rule(self.repeat or "").until is not None
        except InvalidInput:
            return False

    def once_fired(self, now: datetime, zone: tzinfo) -> dict[str, Any]:
        """The header keys after it fired at `now`. A repeating reminder goes on to its next time.

        Missed times are skipped. The rule is in the local time of `zone`.
        """
        keys: dict[str, Any] = {"fired_at": stamp(now)}
        if self.repeat is None or self.due is None or self.regular is None:
            return keys
        if self.is_done:
            keys["acked_at"] = REMOVE
        if self.snoozed is not None and self.snoozed <= now:
            keys[SNOOZED] = REMOVE
        if self.regular <= now:
            keys["due_at"] = stamp(self._next(now, zone) or self.regular)
        return keys | {FIRED_FOR: stamp(self.due)}

    def put_off(self, to: datetime, now: datetime, zone: tzinfo) -> dict[str, Any]:
        """The header keys of a repeating reminder whose present occurrence is put off to `to`.

        The present occurrence is the one that fired or was put off before, or else the next one.
        The rule goes on. If it has no time left, the reminder fires once more, at `to`.
        """
        keys: dict[str, Any] = dict.fromkeys(("fired_at", "acked_at", FIRED_FOR), REMOVE)
        is_open = (self.has_fired and not self.is_done) or self.snoozed is not None
        next_time = self.regular
        if next_time is not None and (not is_open or next_time <= now):
            next_time = self._next(max(now, next_time), zone)
        return keys | (
            {"due_at": stamp(next_time), SNOOZED: stamp(to)} if next_time else {"due_at": stamp(to)}
        )

    def _next(self, now: datetime, zone: tzinfo) -> datetime | None:
        """The first time of its rule after `now`.

        None if the rule is unreadable or has no time left.
        """
        from memoranda.note.timephrase.rules import complete_rule, next_time_after

        if self.repeat is None or self.regular is None:
            return None
        try:
            return next_time_after(
                complete_rule(self.repeat, self.regular.astimezone(zone)),
                now,
                zone,
                since=self.regular,
            )
        except InvalidInput:
            return None


def moment_of(value: object) -> datetime | None:
    """A time of a header as an aware moment, None for anything else."""
    try:
        if isinstance(value, str):
            moment = parse_stamp(value)
        else:
            moment = None
    except (ValueError, OverflowError):
        return None
    if moment is not None and moment.year in _YEARS:
        return moment
    return None


def keys_of(reading: Reading) -> dict[str, Any]:
    """The header keys of a reminder whose time was read so."""
    keys: dict[str, Any] = {"due_at": stamp(reading.due), "due_text": reading.phrase}
    optional_keys = {"all_day": reading.all_day, "repeat": reading.repeat}
    return keys | {key: value for key, value in optional_keys.items() if value}
