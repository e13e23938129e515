"""Reminders a person asks for, and firing what is due (contract 001, 8).

Firing goes through the pending lists, the memories, the desktop, in this order. A process that dies
between two of these steps loses no reminder and fires none twice: the lists are derived from the
memories, so the next round makes them anew, and what has fired says so itself. Only its
notification may be missing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.clock import stamp
from memoranda.engine.overview import Pending, contents
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import InvalidInput
from memoranda.jobs.job import CHANGED_MEANWHILE, Action
from memoranda.jobs.text_reminders import outdated
from memoranda.note.frontmatter import REMOVE
from memoranda.note.model import CATEGORY_PROJECT, GLOBAL, REMINDERS, Draft, Note
from memoranda.note.reminder import SNOOZED, SOURCE_CHANGED, Reminder, keys_of

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo
    from memoranda.note.timephrase import Reading

# A reminder to fire, when it is due, and the header keys it gets
_Due = tuple["NoteInfo", datetime, dict[str, Any]]
DONE = "done"
FIRE = "fire"
SNOOZE = "snooze"
TITLE = "Memory CLI"
"""The title of a notification."""
SECONDS = 5.0
"""How long a program may take that shows a notification."""
_LONGEST_NOTIFICATION = 100


def read_time(memory: MemorySession, text: str) -> Reading:
    """The one time `text` names, by the memory's clock and zone. Raises TimeRefused."""
    from memoranda.note import timephrase

    settings = memory.settings
    return timephrase.read(text, memory.clock(), settings.reading_zone, settings.day_hour)


def read_times(memory: MemorySession, text: str) -> list[Reading]:
    """The times `text` names, several where it joins them ("8am and 8pm"). Raises TimeRefused."""
    from memoranda.note import timephrase

    settings = memory.settings
    return timephrase.read_times(text, memory.clock(), settings.reading_zone, settings.day_hour)


def store(
    memory: MemorySession,
    text: str,
    reading: Reading,
    *,
    tags: Sequence[str] = (),
    scope: str = GLOBAL,
    source: str | None = None,
) -> Note:
    """Store a reminder of `text` at the time read. Raises as `Memory.write`."""
    more: dict[str, Any] = {"scope": scope, "source": source, "metadata": keys_of(reading)}
    return memory.write(Draft(text, CATEGORY_PROJECT, category=REMINDERS, tags=tuple(tags), **more))


def listed(memory: MemorySession, *, fired: bool = False) -> list[tuple[NoteInfo, Reminder]]:
    """The reminders the caller sees that are still to fire, the next one first, then those that
    cannot, as they have no time anybody can read; with `fired` all there are."""
    found = [
        (info, Reminder.of(info.header))
        for info in Pending(memory).reminders()
        if memory.sees(info.scope)
    ]
    shown = [each for each in found if fired or each[1].is_waiting or each[1].is_undated]
    dated = sorted(
        (each for each in shown if each[1].due), key=lambda each: (each[1].due, each[0].id)
    )
    return [*dated, *(each for each in shown if not each[1].due)]


def acknowledge(memory: MemorySession, ref: str) -> NoteInfo:
    """Acknowledge a reminder: it leaves the pending lists. One that has not fired yet never will,
    unless it repeats. Raises NotFound, Ambiguous, Locked; InvalidInput for another memory."""
    now = memory.clock()

    def keys(reminder: Reminder) -> dict[str, Any] | None:
        if reminder.is_done:
            return None
        # Before a round found it due
        is_early = reminder.repeat and not reminder.has_fired and reminder.is_due(now)
        if is_early:
            found = reminder.once_fired(now, memory.settings.reading_zone)
        else:
            found = dict[str, Any]()
        is_put_off = reminder.snoozed is not None and not reminder.has_fired
        return found | {"acked_at": stamp(now)} | ({SNOOZED: REMOVE} if is_put_off else {})

    return _changed(memory, ref, DONE, keys)


def snooze(memory: MemorySession, ref: str, when: str) -> NoteInfo:
    """Put a reminder off to the time `when` names: it leaves the pending lists and fires then. Of
    one that repeats this occurrence moves; the others come when they would. Raises as
    `acknowledge`; TimeRefused."""
    reading = read_time(memory, when)

    def keys(reminder: Reminder) -> dict[str, Any]:
        if reminder.repeat:
            return reminder.put_off(reading.due, memory.clock(), memory.settings.reading_zone)
        again = (
            dict.fromkeys(("fired_at", "acked_at", "all_day"), REMOVE)
            | keys_of(reading)
            | {"repeat": REMOVE}
        )
        return again | {SNOOZED: stamp(reading.due)}

    return _changed(memory, ref, SNOOZE, keys)


def _changed(
    memory: MemorySession, ref: str, verb: str, keys: Callable[[Reminder], dict[str, Any] | None]
) -> NoteInfo:
    """The reminder once it has these header keys; None for none to set."""
    upkeep = Upkeep(memory)

    def change(infos: list[NoteInfo]) -> NoteInfo:
        (info,) = infos
        if info.category != REMINDERS:
            raise InvalidInput(f"not a reminder: {info.id}")
        found = keys(Reminder.of(info.header))
        if found is None:
            return info
        return upkeep.change(info, found, verb, touch=False)

    return upkeep.retried([ref], change)


class Notified(NamedTuple):
    """`notified`: the reminders that fired (under a dry run: would fire), oldest due first;
    `pending`: how many of those the caller sees wait for an acknowledgement now. `failure`: why the
    desktop showed none."""

    notified: tuple[NoteInfo, ...]
    pending: int
    actions: tuple[Action, ...] = ()
    failure: str | None = None


def notify(memory: MemorySession, *, dry_run: bool = False) -> Notified:
    """Fire what is due of what the caller sees, each time once. A reminder its owner locked cannot
    be marked as fired, so it does not fire. Raises StorageError; a desktop that cannot be reached
    is no error."""
    now = memory.clock()
    pending = Pending(memory)
    zone = memory.settings.reading_zone
    # Before the lock: it may last
    changed = outdated(memory, [info for info, _, _ in _due(memory, pending, now, {})])
    due = _due(memory, pending, now, changed) if dry_run else []
    # Put what is due into the pending lists, then mark it as fired
    if not dry_run:
        upkeep = Upkeep(memory)
        with memory.exclusive():
            found = _due(memory, pending, now, changed)
            pending.refresh(now, {info.row: keys for info, _, keys in found})
            for info, moment, keys in found:
                # Who edits it at this moment has it fire the next time.
                with suppress(*CHANGED_MEANWHILE):
                    due.append((upkeep.change(info, keys, FIRE, touch=False), moment, keys))
            if len(due) < len(found):
                pending.refresh(now)
    notified = tuple(info for info, _, _ in due)
    # Not under the lock: a desktop that hangs must not keep others from writing.
    failure = None
    if due and not dry_run:
        texts = zip(notified, contents(memory, notified), strict=True)
        failure = show(
            memory.settings, [Reminder.of(info.header).caveat + text for info, text in texts]
        )
    actions = tuple(
        Action(
            "notify",
            FIRE,
            info.id,
            f"due {moment.astimezone(zone):%Y-%m-%d %H:%M}",
            f"{CATEGORY_PROJECT}/{info.path}",
        )
        for info, moment, _ in due
    )
    if dry_run:
        firing = {info.row: keys for info, _, keys in due}
    else:
        firing = None
    seen = [info for info in pending.reminders() if memory.sees(info.scope)]
    waiting = pending.listed(now, seen, firing)
    return Notified(notified, len(waiting), actions, failure)


def _due(
    memory: MemorySession, pending: Pending, now: datetime, changed: Mapping[str, str | None]
) -> list[_Due]:
    """What is to fire; `changed` is that of `outdated`."""
    zone = memory.settings.reading_zone
    before = memory.settings.notify_before
    found = []
    for info in pending.reminders():
        reminder = Reminder.of(info.header)
        if (
            memory.sees(info.scope)
            and not info.locked
            and reminder.due is not None
            and reminder.is_due(now, before)
        ):
            found.append((info, reminder.due, reminder.once_fired(now, zone)))
    for info, _, keys in found:
        if info.id in changed:
            keys[SOURCE_CHANGED] = "gone" if changed[info.id] is None else "changed"
        elif SOURCE_CHANGED in info.header:
            keys[SOURCE_CHANGED] = REMOVE
    return sorted(found, key=lambda each: (each[1], each[0].id))


def show(settings: Settings, contents: Sequence[str]) -> str | None:
    """Show a desktop notification of reminders with these texts, as configured (`notification.*`).
    What a reminder says goes to another program as one argument, never into a script or through a
    shell. Returns None when that went well or nothing is to be shown, else what is said on stderr.
    Source: contract 001, 8, "Methods"."""
    if settings.notify and contents:
        method = settings.notify_method
    else:
        method = "file"
    if method == "auto" and sys.platform == "darwin":
        method = "osascript"
    elif method == "auto":
        from shutil import which

        folder = os.environ.get("XDG_RUNTIME_DIR")
        has_bus = os.environ.get("DBUS_SESSION_BUS_ADDRESS") or (
            folder and os.path.exists(f"{folder}/bus")
        )
        if has_bus and which("notify-send"):
            method = "notify-send"
        else:
            method = "file"
    if method == "file":
        return None
    message = f"You have {len(contents)} reminder(s)"
    if len(contents) == 1:
        # No argument can hold one
        message = contents[0].replace("\0", " ")
        if len(message) <= _LONGEST_NOTIFICATION:
            message = message
        else:
            message = message[:_LONGEST_NOTIFICATION] + "..."
    command = [method, "--", TITLE, message]
    if method == "osascript":
        script = (
            "on run argv",
            "display notification (item 1 of argv) with title (item 2 of argv)",
            "end run",
        )
        command = [
            method,
            *(part for line in script for part in ("-e", line)),
            "--",
            message,
            TITLE,
        ]
    import subprocess

    pipes: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.PIPE,
    }
    try:
        ran = subprocess.run(command, timeout=SECONDS, start_new_session=True, **pipes)
        if ran.returncode == 0:
            return None
        why = ran.stderr.decode("utf-8", "replace").partition("\n")[0].strip()
        why = why or f"it ended with status {ran.returncode}"
    except subprocess.TimeoutExpired:
        why = f"no answer within {SECONDS:g} s"
    except FileNotFoundError:
        why = "it is not installed"
    except OSError as error:
        why = (error.strerror or "it cannot be run").lower()
    return f"notify: {method} failed: {why}"
