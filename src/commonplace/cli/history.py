"""`log`, `undo`, `restore` (contract 001, 16)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.memories import minute
from commonplace.cli.syntax import Number, Usage, command

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.store.journal import Change

LOG_ROW = "#{} {:<16} {:<10} {:<8} {}"
OWNER = "owner"
ENTRY_KEYS = ("change", "time", "verb", "project", "path", "old_hash", "new_hash", "agent", "face")


@command("log", "[REF]", keys={"entries": ENTRY_KEYS}, own_agent=True)
@click.option("--limit", type=Number(), default=20, show_default=True, help="How many at most; 0 = all.")
@click.option("--agent", metavar="NAME", help="Only changes by this agent (before the command: act as it).")
@click.option("--since", metavar="DATE", help="Only changes since then, e.g. 2026-05-07, yesterday, 2h.")
def log(call: Invocation, ref: str | None = None, *, limit: int, agent: str | None, since: str | None) -> None:
    """List changes, newest first; with REF (an id, or a path as shown here) those of one note."""
    with call.memory() as memory:
        changes = memory.log(ref, limit=limit, agent=agent, since=_since(memory, since))
        if call.json:
            return call.document(entries=[_entry(change) for change in changes])
        if not changes:
            return call.answer("No changes found.")
        zone = memory.settings.zone
        call.answer("\n".join(
            LOG_ROW.format(each.number, minute(each.time, zone), each.verb, each.agent or OWNER, place(each))
            + said(each)
            for each in changes
        ))  # fmt: skip


def _since(memory: Memory, text: str | None) -> datetime | None:
    from commonplace.errors import TimeframeError

    try:
        return memory.since(text) if text is not None else None
    except TimeframeError:
        raise Failure(f'invalid --since date: "{text}"', TimeframeError.code) from None


def place(change: Change) -> str:
    """Where a change took place, as `log` shows it: `project/path`; in a project that no other process of the home
    has, the path from the root of the file system."""
    place = change.root or change.project
    return f"{place}/{change.path}" if change.path else place


def said(change: Change) -> str:
    """What the caller said of a change, in brackets behind it: ` (trigger: commit, update: 3)`."""
    words = ", ".join(f"{word}: {' '.join(str(value).split())}" for word, value in (change.details or {}).items())
    return f" ({words})" if words else ""


def _entry(change: Change) -> dict[str, Any]:
    """One change as JSON; the hashes are those of the file it is about. `details` and `root` only where there are
    any."""
    touched = list(change.texts())
    about = next((each for each in touched if (each.project, each.path) == (change.project, change.path)), None)
    about = about or next(iter(touched), None)
    row = {key: getattr(change, key) for key in ("time", "verb", "project", "path", "agent", "face")}
    row |= {"change": change.number, "old_hash": about and about.old, "new_hash": about and about.new}
    more = {"details": change.details, "root": change.root}
    return {key: row[key] for key in ENTRY_KEYS} | {key: value for key, value in more.items() if value}


@command("undo", "[N]", keys=("undone", "change"))
def undo(call: Invocation, number: str | None = None) -> None:
    """Take a change back: number N of `memory log`, else the latest. An undo is a change too."""
    wanted = None if number is None else _number(number)
    with call.memory() as memory:
        change = memory.undo(wanted)
        undone = change.undoes or 0
        verb = next((each.verb for each in memory.log(limit=0) if each.number == undone), "")
        call.answer(f"Undid #{undone}: {verb} {place(change)}", undone=undone, change=change.number)


def _number(text: str) -> int:
    digits = text.removeprefix("#")
    if not digits.isdecimal():
        raise Usage(f'invalid value "{text}" for N: not a number', click.get_current_context())
    return int(digits)


@command("restore", "REF", keys=("path", "change"))
@click.option("--at", metavar="TIME", help="The text as it stood then, e.g. 2026-05-07T10:00 or yesterday.")
@click.option("--change", type=Number(1), metavar="N", help="The text that change N replaced or deleted.")
@click.option("--to", metavar="PATH", help="Write it there instead; nothing may be there yet.")
def restore(call: Invocation, ref: str, *, at: str | None, change: int | None, to: str | None) -> None:
    """Bring back a deleted or older text of REF (an id, or a path as `log` shows it)."""
    if at is not None and change is not None:
        raise Usage("--at and --change exclude each other", click.get_current_context())
    with call.memory() as memory:
        path, number = memory.restore(ref, at=_moment(memory, at), change=change, to=to)
        call.answer(f"Restored {path} from #{number}", path=path, change=number)


def _moment(memory: Memory, text: str | None) -> datetime | None:
    """A time as the user says it: ISO, local without an offset, else a time frame such as `yesterday`."""
    if text is None:
        return None
    zone = memory.settings.zone
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone) if zone else moment.astimezone()
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    from commonplace.errors import TimeframeError

    try:
        return memory.since(text)
    except TimeframeError:
        raise Failure(f'invalid --at time: "{text}"', TimeframeError.code) from None
