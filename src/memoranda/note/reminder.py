"""Read the header of a reminder, and say which header keys change when it fires or is put off.

A reminder is a memory with a time. It fires when that time comes. A repeating one has a rule, such
as `every Friday`, and then waits for the next time of its rule, its next occurrence. Nothing here
writes a file. Source: contract 001, 2 and 8.
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
"""The header key of a repeating reminder for the due time it last fired for.

`due_at` is then already the next time of its rule.
"""
SNOOZED = "snoozed_until"
"""The header key of a repeating reminder for the time to which its present occurrence is put off.

Its rule goes on from `due_at`.
"""
SOURCE_CHANGED = "source_changed"
"""The header key of a reminder made from a text that no longer named its time when it fired.

Its value is `gone` if the memory with that text was deleted, and `changed` if the text changed.
"""
CAVEATS = {"gone": "[its memory is gone] ", "changed": "[its memory changed] "}
"""The remark before the text of such a reminder, by the value of SOURCE_CHANGED."""
# In the years 1 and 9999, a change of the time zone could overflow.
_YEARS = range(2, 9999)


@dataclass(frozen=True, slots=True)
class Reminder:
    """The state of a reminder. Times are aware UTC; None means not set, or unreadable.

    due: when it fires next: `regular`, or `snoozed` if that is earlier.
    regular: the time under `due_at`, for a repeating reminder the next time of its rule.
    snoozed: the time to which an occurrence of a repeating reminder was put off.
    repeat: the rule as written.
    fired: when it last fired.
    fired_for: the due time for which it last fired.
    has_fired: whether `fired_at` has a value, readable or not.
    is_done: whether somebody acknowledged it.
    is_early: whether it may fire before its time, because it reminds of an hour named in a text.
    unreadable: the value of `due_at`, if it is not a time.
    caveat: a remark shown before the text, or "".
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
        """Read a reminder from the header of its memory."""
        due_text = header.get("due_at")
        regular = moment_of(due_text)
        has_due_text = due_text not in (None, "")
        unreadable = str(due_text) if has_due_text and regular is None else None

        # Only a repeating reminder is put off under a key of its own.
        repeat = header.get("repeat")
        snoozed = moment_of(header.get(SNOOZED)) if repeat and regular else None
        due = min(regular, snoozed) if regular and snoozed else regular
        is_made_from_text = "reminder_of" in header
        # Neither a whole day, nor a series, nor put off to another hour.
        has_one_hour = header.keys().isdisjoint(("all_day", "repeat", SNOOZED))
        return cls(
            due=due,
            regular=regular,
            snoozed=snoozed,
            repeat=str(repeat) if repeat else None,
            fired=moment_of(header.get("fired_at")),
            fired_for=moment_of(header.get(FIRED_FOR)),
            has_fired=bool(header.get("fired_at")),
            is_done=bool(header.get("acked_at")),
            is_early=is_made_from_text and has_one_hour,
            unreadable=unreadable,
            caveat=CAVEATS.get(str(header.get(SOURCE_CHANGED)), ""),
        )

    @property
    def is_waiting(self) -> bool:
        """Whether the reminder will still fire. A repeating one will if it has a next time."""
        if self.due is None:
            return False
        if self.repeat is None:
            return not self.has_fired and not self.is_done
        # Firing sets `due_at` to the next time. If the header does not have it, the rule decides.
        if self.fired is None or self.due > self.fired:
            return True
        return self._next(self.fired, UTC) is not None

    @property
    def is_undated(self) -> bool:
        """Whether the reminder has no time when it could fire, and nobody acknowledged it."""
        return self.due is None and not self.is_done

    @property
    def shown_due(self) -> datetime | None:
        """The time to show for the reminder, None if it has none.

        A repeating reminder that fired shows the time it fired for. All others show when they fire.
        """
        if self.repeat and self.fired_for:
            return self.fired_for
        return self.due

    def is_due(self, now: datetime, before: timedelta = timedelta()) -> bool:
        """Whether the reminder must fire at `now`.

        before: how long before its time an early reminder (`is_early`) fires.
        """
        if self.due is None or not self.is_waiting:
            return False
        lead_time = before if self.is_early else timedelta()
        return self.due <= now + lead_time

    def is_pending(self, now: datetime, days: int) -> bool:
        """Whether the reminder fired in the last `days` days and nobody has acknowledged it."""
        if self.fired is None or self.is_done:
            return False
        return now - self.fired <= timedelta(days=days)

    def complaints(self, now: datetime, zone: tzinfo, *, locked: bool = False) -> list[str]:
        """Return the reasons why the reminder will not fire as intended, in words.

        zone: the time zone in which its rule is meant.
        locked: whether programs may not change its file.
        """
        complaints = []
        if self.unreadable is not None and not self.is_done:
            complaints.append(f'due_at "{self.unreadable}" is no time, so the reminder never fires')
        if self.repeat and self._is_rule_over(now, zone) and not self._has_end():
            complaints.append(
                f'repeat "{self.repeat}" is no rule or has no time left, '
                "so the reminder fires once at most"
            )
        if locked and self.is_waiting:
            complaints.append("the reminder is locked, so it never fires")
        return complaints

    def _is_rule_over(self, now: datetime, zone: tzinfo) -> bool:
        """Whether the rule has no time after `now` and after `due_at`, or cannot be read.

        False for a reminder without a time.
        """
        return self.regular is not None and self._next(max(now, self.regular), zone) is None

    def _has_end(self) -> bool:
        """Whether the repeating rule has an end, as "every day until Friday" does."""
        from memoranda.note.timephrase.rules import parse_rule

        try:
            return parse_rule(self.repeat or "").until is not None
        except InvalidInput:
            return False

    def once_fired(self, now: datetime, zone: tzinfo) -> dict[str, Any]:
        """Return the header keys to set when the reminder fires at `now`.

        A repeating reminder gets the next time of its rule after `now`, so that missed times are
        skipped.

        zone: the time zone in which its rule is meant.
        """
        keys: dict[str, Any] = {"fired_at": stamp(now)}
        if self.repeat is None or self.due is None or self.regular is None:
            return keys
        # Only the occurrence before this one was acknowledged.
        if self.is_done:
            keys["acked_at"] = REMOVE
        if self.snoozed is not None and self.snoozed <= now:
            keys[SNOOZED] = REMOVE
        # After the last time of the rule, that time stays.
        if self.regular <= now:
            keys["due_at"] = stamp(self._next(now, zone) or self.regular)
        return keys | {FIRED_FOR: stamp(self.due)}

    def put_off(self, to: datetime, now: datetime, zone: tzinfo) -> dict[str, Any]:
        """Return the header keys to set when a repeating reminder is put off to the time `to`.

        Its present occurrence is put off: the one that fired or was put off before, or else the
        next one. The rule goes on. If the rule has no time left, the reminder fires once, at `to`.

        zone: the time zone in which its rule is meant.
        """
        keys: dict[str, Any] = dict.fromkeys(("fired_at", "acked_at", FIRED_FOR), REMOVE)
        # An occurrence is open if it fired and waits for an answer, or was put off before.
        waits_for_answer = self.has_fired and not self.is_done
        is_occurrence_open = waits_for_answer or self.snoozed is not None
        next_time = self.regular
        if next_time is not None:
            # Without an open occurrence, the next one is put off, so the rule goes on behind it.
            is_next_put_off = not is_occurrence_open
            has_passed = next_time <= now
            if is_next_put_off or has_passed:
                next_time = self._next(max(now, next_time), zone)
        if next_time is None:
            keys["due_at"] = stamp(to)
        else:
            keys["due_at"] = stamp(next_time)
            keys[SNOOZED] = stamp(to)
        return keys

    def _next(self, now: datetime, zone: tzinfo) -> datetime | None:
        """Return the first time of the rule after `now`, None if the rule has none or is unreadable.

        zone: the time zone in which the rule is meant.
        """
        from memoranda.note.timephrase.rules import complete_rule, next_time_after

        if self.repeat is None or self.regular is None:
            return None
        try:
            rule = complete_rule(self.repeat, self.regular.astimezone(zone))
            return next_time_after(rule, now, zone, since=self.regular)
        except InvalidInput:
            return None


def moment_of(value: object) -> datetime | None:
    """Read a value of a header as a time with a time zone. None if it is not such a time."""
    if not isinstance(value, str):
        return None
    try:
        moment = parse_stamp(value)
    except (ValueError, OverflowError):
        return None
    # Callers show the time in a zone, which would overflow at the ends of the calendar.
    if moment.year in _YEARS:
        return moment
    return None


def keys_of(reading: Reading) -> dict[str, Any]:
    """Return the header keys of a reminder whose time was read from words: `reading`."""
    keys: dict[str, Any] = {"due_at": stamp(reading.due), "due_text": reading.phrase}
    optional_keys = {"all_day": reading.all_day, "repeat": reading.repeat}
    return keys | {key: value for key, value in optional_keys.items() if value}
