"""Store, change and fire reminders (contract 001, 8).

A due reminder fires in three steps: it is put into the pending lists (`memory.md`), then its header
is marked, then the desktop shows it. A process that dies between two steps loses no reminder and
fires none twice: the lists are derived from the memories, so the next round makes them again, and a
marked reminder does not fire again. Only its notification may be missing.
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
from memoranda.note.reminder import FIRED_FOR, SNOOZED, SOURCE_CHANGED, Reminder, keys_of

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo
    from memoranda.note.timephrase import Reading

DONE = "done"
FIRE = "fire"
SNOOZE = "snooze"
TITLE = "Memory CLI"
"""The title of a notification."""
SECONDS = 5.0
"""Seconds that a program may take to show a notification."""
_MOST_NOTIFICATION_CHARACTERS = 100


class _DueReminder(NamedTuple):
    """A reminder that is due, and is to fire.

    info: the reminder.
    moment: when it is due.
    keys: the header keys that mark it as fired.
    """

    info: NoteInfo
    moment: datetime
    keys: dict[str, Any]


def read_time(memory: MemorySession, text: str) -> Reading:
    """Read the one time that a text names, such as "tomorrow at 9". Raises TimeRefused."""
    from memoranda.note import timephrase

    settings = memory.settings
    return timephrase.read(text, memory.clock(), settings.reading_zone, settings.day_hour)


def read_times(memory: MemorySession, text: str) -> list[Reading]:
    """Read the times that a text names, two for "8am and 8pm". Raises TimeRefused."""
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
    """Store a reminder of `text` for one time. See `store_all` for the arguments and errors."""
    (note,) = store_all(memory, text, [reading], tags=tags, scope=scope, source=source)
    return note


def store_all(
    memory: MemorySession,
    text: str,
    readings: Sequence[Reading],
    *,
    tags: Sequence[str] = (),
    scope: str = GLOBAL,
    source: str | None = None,
) -> list[Note]:
    """Store a reminder of `text` for each time in `readings`, as one change.

    So one undo takes back all that one sentence made. Raises the errors of `Memory.write`, and then
    stores none.

    source: where the text is from. None if nothing is to be said of it.
    """
    drafts = [
        Draft(
            text,
            CATEGORY_PROJECT,
            category=REMINDERS,
            tags=tuple(tags),
            scope=scope,
            source=source,
            metadata=keys_of(reading),
        )
        for reading in readings
    ]
    return memory.write_many(drafts)


class _DatedReminder(NamedTuple):
    """A reminder with its time."""

    due: datetime
    info: NoteInfo
    reminder: Reminder

    def order(self) -> tuple[datetime, str]:
        """The sort key: the next one first, and a fixed order for the same time."""
        return self.due, self.info.id


def listed(memory: MemorySession, *, fired: bool = False) -> list[tuple[NoteInfo, Reminder]]:
    """Return the reminders that the caller sees and that will still fire, the next one first.

    At the end come reminders that cannot fire because their time is unreadable.

    fired: whether to return all reminders, also those that have fired.
    """
    dated: list[_DatedReminder] = []
    undated: list[tuple[NoteInfo, Reminder]] = []
    for info in Pending(memory).reminders():
        reminder = Reminder.of(info.header)
        is_listed = fired or reminder.is_waiting or reminder.is_undated
        if not is_listed or not memory.sees(info.scope):
            continue
        if reminder.due:
            dated.append(_DatedReminder(reminder.due, info, reminder))
        else:
            undated.append((info, reminder))
    dated.sort(key=_DatedReminder.order)
    return [*((item.info, item.reminder) for item in dated), *undated]


def acknowledge(memory: MemorySession, ref: str) -> NoteInfo:
    """Acknowledge a reminder, which removes it from the pending lists.

    A reminder that has not fired yet never will, unless it repeats. Raises NotFound, Ambiguous,
    Locked, and InvalidInput for a memory that is not a reminder.
    """
    now = memory.clock()

    def keys_once_acknowledged(reminder: Reminder) -> dict[str, Any] | None:
        """Return the new header keys. None if the reminder was acknowledged before."""
        if reminder.is_done:
            return None
        new_keys = dict[str, Any]()
        # A repeating reminder gets its next time when it fires. If this occurrence is due, it will
        # not fire any more, so the reminder gets its next time now.
        is_due = not reminder.has_fired and reminder.is_due(now)
        if reminder.repeat and is_due:
            new_keys = reminder.once_fired(now, memory.settings.reading_zone)
        if reminder.snoozed is not None and not reminder.has_fired:
            new_keys[SNOOZED] = REMOVE
        new_keys["acked_at"] = stamp(now)
        return new_keys

    return _change_header(memory, ref, DONE, keys_once_acknowledged)


def snooze(memory: MemorySession, ref: str, when: str) -> NoteInfo:
    """Put a reminder off to the time that `when` names. It leaves the pending lists and fires then.

    If the reminder repeats, only its present occurrence moves. Raises the errors of `acknowledge`,
    and TimeRefused.
    """
    reading = read_time(memory, when)

    def keys_once_snoozed(reminder: Reminder) -> dict[str, Any]:
        """Return the new header keys."""
        if reminder.repeat:
            return reminder.put_off(reading.due, memory.clock(), memory.settings.reading_zone)
        removed_keys = dict.fromkeys(("fired_at", "acked_at", "all_day"), REMOVE)
        new_keys = removed_keys | keys_of(reading)
        # It fires once at the new time, even if `when` names a repetition
        return new_keys | {"repeat": REMOVE, SNOOZED: stamp(reading.due)}

    return _change_header(memory, ref, SNOOZE, keys_once_snoozed)


def reschedule(memory: MemorySession, ref: str, when: str) -> NoteInfo:
    """Give a reminder the time and the repetition that `when` names, such as "every monday at 9".

    It fires again, even if it was acknowledged. Raises the errors of `snooze`.
    """
    reading = read_time(memory, when)
    # These say when the reminder fired, and how its former time repeats. They go, unless the new
    # time has them, too.
    former_keys = ("fired_at", "acked_at", "all_day", "repeat", SNOOZED, FIRED_FOR)

    def keys_of_new_time(reminder: Reminder) -> dict[str, Any]:
        """Return the new header keys. The former ones of the reminder do not matter."""
        return dict.fromkeys(former_keys, REMOVE) | keys_of(reading)

    return _change_header(memory, ref, "edit", keys_of_new_time)


def _change_header(
    memory: MemorySession,
    ref: str,
    verb: str,
    new_keys_of: Callable[[Reminder], dict[str, Any] | None],
) -> NoteInfo:
    """Set header keys of a reminder, and return its new index entry.

    ref: the id of the reminder.
    verb: the verb in the history.
    new_keys_of: returns the new keys for the present reminder, or None to change nothing.
    """
    upkeep = Upkeep(memory)

    def change(infos: list[NoteInfo]) -> NoteInfo:
        """Set the keys. `retried` calls this again if somebody changes the reminder meanwhile."""
        (info,) = infos
        if info.category != REMINDERS:
            raise InvalidInput(f"not a reminder: {info.id}")
        new_keys = new_keys_of(Reminder.of(info.header))
        if new_keys is None:
            return info
        return upkeep.change(info, new_keys, verb, touch=False)

    return upkeep.retried([ref], change)


class Notified(NamedTuple):
    """The result of `notify`.

    notified: the reminders that fired (in a dry run: would fire), the oldest due first.
    pending: the number of reminders that the caller sees and that wait for an acknowledgement.
    actions: an action for each reminder that fired.
    failure: the reason why the desktop showed no notification. None if it did, or had none to show.
    """

    notified: tuple[NoteInfo, ...]
    pending: int
    actions: tuple[Action, ...] = ()
    failure: str | None = None


def notify(memory: MemorySession, *, dry_run: bool = False) -> Notified:
    """Fire the due reminders that the caller sees, each once.

    A reminder that its owner locked cannot be marked as fired, so it does not fire. An unreachable
    desktop is not an error. Raises StorageError.

    dry_run: whether only to say which reminders would fire.
    """
    now = memory.clock()
    pending = Pending(memory)
    # Before the lock, as this may take long.
    due_infos = [item.info for item in _reminders_to_fire(memory, pending, now, outdated_texts={})]
    outdated_texts = outdated(memory, due_infos)
    failure = None
    # In a dry run, the header keys by row that the files would get
    planned_keys = None
    if dry_run:
        fired = _reminders_to_fire(memory, pending, now, outdated_texts)
        planned_keys = {item.info.row: item.keys for item in fired}
    else:
        fired = _fire(memory, pending, now, outdated_texts)
        # Without the lock: a desktop that hangs must not keep others from writing.
        failure = _show_fired(memory, fired)
    visible = [info for info in pending.reminders() if memory.sees(info.scope)]
    waiting = pending.listed(now, visible, planned_keys)
    actions = tuple(_fire_action(memory, item) for item in fired)
    return Notified(tuple(item.info for item in fired), len(waiting), actions, failure)


def _fire(
    memory: MemorySession,
    pending: Pending,
    now: datetime,
    outdated_texts: Mapping[str, str | None],
) -> list[_DueReminder]:
    """Put the due reminders into the pending lists, and mark them as fired. Returns the marked ones.

    pending: keeps the pending lists.
    now: the present time.
    outdated_texts: the present text of the memory of each outdated reminder, by the reminder's id.
        None for a text of a memory that is gone.
    """
    upkeep = Upkeep(memory)
    fired: list[_DueReminder] = []
    with memory.exclusive():
        to_fire = _reminders_to_fire(memory, pending, now, outdated_texts)
        # The lists come first: if this process dies, the reminder is shown, and fires again.
        pending.refresh(now, {item.info.row: item.keys for item in to_fire})
        for item in to_fire:
            # A reminder that somebody is just editing fires the next time.
            with suppress(*CHANGED_MEANWHILE):
                info = upkeep.change(item.info, item.keys, FIRE, touch=False)
                fired.append(item._replace(info=info))
        # The lists must not show a reminder that did not fire.
        if len(fired) < len(to_fire):
            pending.refresh(now)
    return fired


def _show_fired(memory: MemorySession, fired: Sequence[_DueReminder]) -> str | None:
    """Show reminders on the desktop. Returns the reason if that failed, or else None.

    fired: the reminders that just fired.
    """
    if not fired:
        return None
    infos = [item.info for item in fired]
    texts = [
        Reminder.of(info.header).caveat + text
        for info, text in zip(infos, contents(memory, infos), strict=True)
    ]
    return show(memory.settings, texts)


def _fire_action(memory: MemorySession, item: _DueReminder) -> Action:
    """Describe the firing of a reminder as an action."""
    local_time = item.moment.astimezone(memory.settings.reading_zone)
    path = f"{CATEGORY_PROJECT}/{item.info.path}"
    return Action(
        job="notify",
        verb=FIRE,
        id=item.info.id,
        reason=f"due {local_time:%Y-%m-%d %H:%M}",
        path=path,
    )


def _reminders_to_fire(
    memory: MemorySession,
    pending: Pending,
    now: datetime,
    outdated_texts: Mapping[str, str | None],
) -> list[_DueReminder]:
    """Return the reminders to fire that the caller sees, the oldest due first.

    pending: reads the reminders.
    now: the present time.
    outdated_texts: the present text of the memory of each outdated reminder, by the reminder's id.
        None for a text of a memory that is gone. These reminders get a remark.
    """
    settings = memory.settings
    due_reminders: list[_DueReminder] = []
    for info in pending.reminders():
        reminder = Reminder.of(info.header)
        may_change = memory.sees(info.scope) and not (info.locked or info.is_broken)
        if not may_change or reminder.due is None:
            continue
        if not reminder.is_due(now, settings.notify_before):
            continue
        keys = reminder.once_fired(now, settings.reading_zone)
        if info.id in outdated_texts:
            is_gone = outdated_texts[info.id] is None
            keys[SOURCE_CHANGED] = "gone" if is_gone else "changed"
        elif SOURCE_CHANGED in info.header:
            # The text is again as it was.
            keys[SOURCE_CHANGED] = REMOVE
        due_reminders.append(_DueReminder(info, reminder.due, keys))
    return sorted(due_reminders, key=lambda item: (item.moment, item.info.id))


def show(settings: Settings, contents: Sequence[str]) -> str | None:
    """Show a desktop notification of reminders, as configured (`notification.*`).

    A reminder's text goes to another program as one argument, never into a script or through a
    shell.

    contents: the texts of the reminders.

    Returns the reason if that failed. None means that it was shown, or that there was nothing to
    show.
    Source: contract 001, 8, "Methods".
    """
    if not settings.notify or not contents:
        return None
    method = _method(settings)
    # Reminders are only in files then.
    if method == "file":
        return None
    reason = _failure_of(_command(method, _message(contents)))
    if reason:
        return f"notify: {method} failed: {reason}"
    return None


def _method(settings: Settings) -> str:
    """Return the program that shows notifications. "file" means none."""
    method = settings.notify_method
    if method != "auto":
        return method
    if sys.platform == "darwin":
        return "osascript"
    from shutil import which

    # `notify-send` needs the message bus of a desktop session
    folder = os.environ.get("XDG_RUNTIME_DIR")
    has_bus_in_folder = bool(folder) and os.path.exists(f"{folder}/bus")
    has_bus = bool(os.environ.get("DBUS_SESSION_BUS_ADDRESS")) or has_bus_in_folder
    if has_bus and which("notify-send"):
        return "notify-send"
    return "file"


def _message(contents: Sequence[str]) -> str:
    """Return the text of a notification: the single reminder, or the number of several."""
    if len(contents) > 1:
        return f"You have {len(contents)} reminder(s)"
    # No argument of a process can hold a NUL
    message = contents[0].replace("\0", " ")
    if len(message) > _MOST_NOTIFICATION_CHARACTERS:
        return message[:_MOST_NOTIFICATION_CHARACTERS] + "..."
    return message


def _command(method: str, message: str) -> list[str]:
    """Return the command line that shows a message: `["notify-send", "--", "Memory CLI", …]`.

    method: the program that shows it.
    """
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
    """Run a command. Returns the reason if it failed, or else ""."""
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
