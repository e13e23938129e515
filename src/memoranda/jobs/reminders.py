"""Reminders a person asks for, and firing what is due (contract 001, 8).

Firing goes through the pending lists, the memories, the desktop, in this order. A process that dies
between two of these steps loses no reminder and fires none twice: the lists are derived from the
memories, so the next round makes them again, and what has fired says so itself. Only its
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
from memoranda.engine.contents import contents
from memoranda.engine.overview import Pending
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
_MOST_NOTIFICATION_CHARACTERS = 100


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
    draft_fields: dict[str, Any] = {"scope": scope, "source": source, "metadata": keys_of(reading)}
    return memory.write(
        Draft(text, CATEGORY_PROJECT, category=REMINDERS, tags=tuple(tags), **draft_fields)
    )


def listed(memory: MemorySession, *, fired: bool = False) -> list[tuple[NoteInfo, Reminder]]:
    """The reminders that the caller sees and that will still fire, the next one first.

    After them come those that cannot fire because their time is unreadable. With `fired`, all
    reminders.
    """
    dated: list[tuple[datetime, str, NoteInfo, Reminder]] = []
    undated: list[tuple[NoteInfo, Reminder]] = []
    for info in Pending(memory).reminders():
        reminder = Reminder.of(info.header)
        is_listed = fired or reminder.is_waiting or reminder.is_undated
        if not is_listed or not memory.sees(info.scope):
            continue
        if reminder.due:
            dated.append((reminder.due, info.id, info, reminder))
        else:
            undated.append((info, reminder))
    dated.sort(key=lambda row: row[:2])
    return [*((info, reminder) for _, _, info, reminder in dated), *undated]


def acknowledge(memory: MemorySession, ref: str) -> NoteInfo:
    """Acknowledge a reminder, which removes it from the pending lists.

    A reminder that has not fired yet never will, unless it repeats. Raises NotFound, Ambiguous,
    Locked; InvalidInput for another memory.
    """
    now = memory.clock()

    def keys(reminder: Reminder) -> dict[str, Any] | None:
        if reminder.is_done:
            return None
        # Before a round found it due
        is_early = reminder.repeat and not reminder.has_fired and reminder.is_due(now)
        if is_early:
            new_keys = reminder.once_fired(now, memory.settings.reading_zone)
        else:
            new_keys = dict[str, Any]()
        is_put_off = reminder.snoozed is not None and not reminder.has_fired
        return new_keys | {"acked_at": stamp(now)} | ({SNOOZED: REMOVE} if is_put_off else {})

    return _change_header(memory, ref, DONE, keys)


def snooze(memory: MemorySession, ref: str, when: str) -> NoteInfo:
    """Put a reminder off to the time that `when` names. It leaves the pending lists and fires then.

    For a repeating one, only this occurrence moves. Raises the errors of `acknowledge`;
    TimeRefused.
    """
    reading = read_time(memory, when)

    def keys(reminder: Reminder) -> dict[str, Any]:
        if reminder.repeat:
            return reminder.put_off(reading.due, memory.clock(), memory.settings.reading_zone)
        new_keys = (
            dict.fromkeys(("fired_at", "acked_at", "all_day"), REMOVE)
            | keys_of(reading)
            | {"repeat": REMOVE}
        )
        return new_keys | {SNOOZED: stamp(reading.due)}

    return _change_header(memory, ref, SNOOZE, keys)


def _change_header(
    memory: MemorySession, ref: str, verb: str, keys: Callable[[Reminder], dict[str, Any] | None]
) -> NoteInfo:
    """Set header keys of a reminder and return it. If `keys` returns None, nothing is set."""
    upkeep = Upkeep(memory)

    def change(infos: list[NoteInfo]) -> NoteInfo:
        (info,) = infos
        if info.category != REMINDERS:
            raise InvalidInput(f"not a reminder: {info.id}")
        new_keys = keys(Reminder.of(info.header))
        if new_keys is None:
            return info
        return upkeep.change(info, new_keys, verb, touch=False)

    return upkeep.retried([ref], change)


class Notified(NamedTuple):
    """The result of `notify`.

    notified: the reminders that fired (or would fire, in a dry run), the oldest due first.
    pending: how many reminders that the caller sees wait for an acknowledgement now.
    actions: what was done.
    failure: why the desktop showed no notification.
    """

    notified: tuple[NoteInfo, ...]
    pending: int
    actions: tuple[Action, ...] = ()
    failure: str | None = None


def notify(memory: MemorySession, *, dry_run: bool = False) -> Notified:
    """Fire the due reminders that the caller sees, each once.

    A reminder that its owner locked cannot be marked as fired, so it does not fire. An unreachable
    desktop is not an error. Raises StorageError.
    """
    now = memory.clock()
    pending = Pending(memory)
    # Before the lock, as it may take long
    changed = outdated(memory, [info for info, _, _ in _due(memory, pending, now, {})])
    failure = None
    firing = None
    if dry_run:
        due = _due(memory, pending, now, changed)
        firing = {info.row: keys for info, _, keys in due}
    else:
        due = _fire(memory, pending, now, changed)
        # Not under the lock: a desktop that hangs must not keep others from writing
        failure = _show_fired(memory, due)
    visible = [info for info in pending.reminders() if memory.sees(info.scope)]
    waiting = pending.listed(now, visible, firing)
    actions = tuple(_fire_action(memory, info, moment) for info, moment, _ in due)
    return Notified(tuple(info for info, _, _ in due), len(waiting), actions, failure)


def _fire(
    memory: MemorySession, pending: Pending, now: datetime, changed: Mapping[str, str | None]
) -> list[_Due]:
    """Put what is due into the pending lists, then mark it as fired: what was marked."""
    upkeep = Upkeep(memory)
    fired: list[_Due] = []
    with memory.exclusive():
        due = _due(memory, pending, now, changed)
        pending.refresh(now, {info.row: keys for info, _, keys in due})
        for info, moment, keys in due:
            # Who edits it at this moment has it fire the next time
            with suppress(*CHANGED_MEANWHILE):
                fired.append((upkeep.change(info, keys, FIRE, touch=False), moment, keys))
        if len(fired) < len(due):
            pending.refresh(now)
    return fired


def _show_fired(memory: MemorySession, fired: Sequence[_Due]) -> str | None:
    """Show what fired on the desktop; why not, None when that went well."""
    if not fired:
        return None
    infos = [info for info, _, _ in fired]
    texts = [
        Reminder.of(info.header).caveat + text
        for info, text in zip(infos, contents(memory, infos), strict=True)
    ]
    return show(memory.settings, texts)


def _fire_action(memory: MemorySession, info: NoteInfo, moment: datetime) -> Action:
    local = moment.astimezone(memory.settings.reading_zone)
    path = f"{CATEGORY_PROJECT}/{info.path}"
    return Action("notify", FIRE, info.id, f"due {local:%Y-%m-%d %H:%M}", path)


def _due(
    memory: MemorySession, pending: Pending, now: datetime, changed: Mapping[str, str | None]
) -> list[_Due]:
    """The reminders to fire. `changed` comes from `outdated`."""
    zone = memory.settings.reading_zone
    before = memory.settings.notify_before
    due_reminders = []
    for info in pending.reminders():
        reminder = Reminder.of(info.header)
        if (
            memory.sees(info.scope)
            and not (info.locked or info.is_broken)
            and reminder.due is not None
            and reminder.is_due(now, before)
        ):
            due_reminders.append((info, reminder.due, reminder.once_fired(now, zone)))
    for info, _, keys in due_reminders:
        if info.id in changed:
            keys[SOURCE_CHANGED] = "gone" if changed[info.id] is None else "changed"
        elif SOURCE_CHANGED in info.header:
            keys[SOURCE_CHANGED] = REMOVE
    return sorted(due_reminders, key=lambda item: (item[1], item[0].id))


def show(settings: Settings, contents: Sequence[str]) -> str | None:
    """Show a desktop notification of reminders with these texts, as configured (`notification.*`).

    A reminder's text goes to another program as one argument, never into a script or through a
    shell. Returns None on success or if there is nothing to show. Otherwise the reason, for stderr.
    Source: contract 001, 8, "Methods".
    """
    if settings.notify and contents:
        method = _method(settings)
    else:
        method = "file"
    if method == "file":
        return None
    reason = _failure_of(_command(method, _message(contents)))
    if reason:
        return f"notify: {method} failed: {reason}"
    return None


def _method(settings: Settings) -> str:
    """The program that shows notifications, or "file" for none."""
    method = settings.notify_method
    if method != "auto":
        return method
    if sys.platform == "darwin":
        return "osascript"
    from shutil import which

    folder = os.environ.get("XDG_RUNTIME_DIR")
    has_bus = os.environ.get("DBUS_SESSION_BUS_ADDRESS") or (
        folder and os.path.exists(f"{folder}/bus")
    )
    if has_bus and which("notify-send"):
        return "notify-send"
    return "file"


def _message(contents: Sequence[str]) -> str:
    """The text of a notification: the text of a single reminder, or the number of several."""
    if len(contents) > 1:
        return f"You have {len(contents)} reminder(s)"
    # No argument of a process can hold a NUL
    message = contents[0].replace("\0", " ")
    if len(message) > _MOST_NOTIFICATION_CHARACTERS:
        return message[:_MOST_NOTIFICATION_CHARACTERS] + "..."
    return message


def _command(method: str, message: str) -> list[str]:
    """The command line that shows a message."""
    if method != "osascript":
        return [method, "--", TITLE, message]
    script = (
        "on run argv",
        "display notification (item 1 of argv) with title (item 2 of argv)",
        "end run",
    )
    command = [method]
    for line in script:
        command += ["-e", line]
    return [*command, "--", message, TITLE]


def _failure_of(command: Sequence[str]) -> str:
    """Run a command; why it failed, "" when it did not."""
    import subprocess

    try:
        result = subprocess.run(
            command,
            timeout=SECONDS,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS:g} s"
    except FileNotFoundError:
        return "it is not installed"
    except OSError as error:
        return (error.strerror or "it cannot be run").lower()
    if result.returncode == 0:
        return ""
    first_line = result.stderr.decode("utf-8", "replace").partition("\n")[0].strip()
    return first_line or f"it ended with status {result.returncode}"
