"""`log`, `undo`, `restore` (contract 001, 16)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from commonplace.cli.invocation import Invocation
from commonplace.cli.memory_commands import minute
from commonplace.cli.output import Failure
from commonplace.cli.syntax import Number, Text, Usage, command, option
from commonplace.errors import TimeframeError

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.store.journal import Change

_LOG_ROW = "#{} {:<16} {:<10} {:<8} {}"
_ENTRY_KEYS = ("change", "time", "verb", "project", "path", "old_hash", "new_hash", "agent", "face")


@command("log", "[REF]", keys={"entries": _ENTRY_KEYS}, own_agent=True, example="memory log --since yesterday")
@option("--limit", type=Number(), default=20, help="How many at most; 0 = all.")
@option("--agent", metavar="NAME", help="Only changes by this agent (before the command: act as it).")
@option("--since", metavar="DATE", help="Only changes since then, e.g. 2026-05-07, yesterday, 2h.")
def log(call: Invocation, ref: str | None = None, *, limit: int, agent: Text, since: Text) -> None:
    """List changes, newest first; with REF (an id, or a path as shown here) those of one note."""
    with call.memory() as memory:
        start = _timeframe(memory, since, "--since date") if since is not None else None
        changes = memory.log(ref, limit=limit, agent=agent, since=start)
        if call.json:
            return call.document(entries=[_entry(change) for change in changes])
        zone = memory.settings.zone
        lines = []
        for each in changes:
            row = each.number, minute(each.time, zone), each.verb, each.agent or "owner", _place(each)
            lines.append(_LOG_ROW.format(*row) + _details(each))
        call.answer("\n".join(lines) or "No changes found.")


def _timeframe(memory: Memory, text: str, name: str) -> datetime:
    """The beginning of a time frame such as `yesterday`. Raises Failure naming the parameter `name`."""
    try:
        return memory.since(text)
    except TimeframeError:
        hint = "Use e.g. 2h, 7d, yesterday, last week or 2026-11-01."
        raise Failure(f'invalid {name}: "{text}"', TimeframeError.code, hint) from None


def _place(change: Change) -> str:
    """`project/path`; for a project that only one process of the home had, the path from the file system's root."""
    place = change.root or change.project
    return f"{place}/{change.path}" if change.path else place


def _details(change: Change) -> str:
    """What the caller stated about a change, in brackets: ` (trigger: commit, update: 3)`."""
    words = ", ".join(f"{word}: {' '.join(str(value).split())}" for word, value in (change.details or {}).items())
    return f" ({words})" if words else ""


def _entry(change: Change) -> dict[str, Any]:
    """One change as JSON; the hashes are those of the file it is about. `details` and `root` only if set."""
    touched = sorted(change.texts(), key=lambda each: (each.project, each.path) != (change.project, change.path))
    about = next(iter(touched), None)
    own = {"change": change.number, "old_hash": about and about.old, "new_hash": about and about.new}
    further = {key: value for key in ("details", "root") if (value := getattr(change, key))}
    return {key: getattr(change, key, None) for key in _ENTRY_KEYS} | own | further


@command("undo", "[N]", keys=("undone", "change"), example="memory undo 12")
def undo(call: Invocation, number: str | None = None) -> None:
    """Take a change back: number N of `memory log`, else the latest. An undo is a change too."""
    digits = None if number is None else number.removeprefix("#")
    if digits is not None and not digits.isdecimal():
        raise Usage(f'invalid value "{number}" for N: not a number')
    with call.memory() as memory:
        change = memory.undo(None if digits is None else int(digits))
        undone = change.undoes or 0
        verb = next((each.verb for each in memory.log(limit=0) if each.number == undone), "")
        call.answer(f"Undid #{undone}: {verb} {_place(change)}", undone=undone, change=change.number)


@command("restore", "REF", keys=("path", "change"), example="memory restore notes/Plan.md --at yesterday")
@option("--at", metavar="TIME", help="The text as it stood then, e.g. 2026-05-07T10:00 or yesterday.")
@option("--change", type=Number(1), metavar="N", help="The text that change N replaced or deleted.")
@option("--to", metavar="PATH", help="Write it there instead; nothing may be there yet.")
def restore(call: Invocation, ref: str, *, at: Text, change: int | None, to: Text) -> None:
    """Bring back a deleted or older text of REF (an id, or a path as `log` shows it)."""
    if at is not None and change is not None:
        raise Usage("--at and --change exclude each other")
    with call.memory() as memory:
        moment = None if at is None else _moment(memory, at)
        path, number = memory.restore(ref, at=moment, change=change, to=to)
        call.answer(f"Restored {path} from #{number}", path=path, change=number)


def _moment(memory: Memory, text: str) -> datetime:
    """A time as ISO, local without an offset, else the beginning of a time frame. Raises Failure."""
    zone = memory.settings.zone
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone) if zone else moment.astimezone()
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return _timeframe(memory, text, "--at time")
