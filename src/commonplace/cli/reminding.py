"""`remind` and `notify` (contract 001, 3 and 8)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli import memories, output
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Usage, command, text_from
from commonplace.clock import stamp
from commonplace.note.model import GLOBAL
from commonplace.query import check_memory, split_list

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.note.reminder import Reminder
    from commonplace.note.timephrase import Reading

_ROW = "{:<8} {:<16} {}"
_NO_DATE, _UNREADABLE = "no date", "unreadable date"
_KEYS = ("stored", "text", "phrase", "due_at", "due_local", "reading", "all_day", "repeat", "others", "memory")


@command("remind", "[TEXT...]", keys=_KEYS, now=True)
@click.option("--at", "when", metavar="WHEN", help="The time, if TEXT does not say it.")
@click.option("--tags", metavar="A,B", help="Tags, separated by commas.")
@click.option("--scope", default=GLOBAL, show_default=True, help="global or agent:NAME.")
@click.option("--source", default="manual", show_default=True, help="Where it comes from.")
@click.option("--dry-run", is_flag=True, help="Only say what time is read.")
@click.option("--list", "shows", is_flag=True, help="List the reminders still to come.")
@click.option("--all", "every", is_flag=True, help="With --list: also those that fired.")
@click.option("--done", metavar="ID", help="Acknowledge a reminder.")
def remind(call: Invocation, *words: str, when: str | None, tags: str | None, scope: str, source: str, dry_run: bool,
           shows: bool, every: bool, done: str | None) -> None:  # fmt: skip
    """Set a reminder at the time TEXT names, in English or Chinese.

    memory remind call Bob tomorrow at 3pm
    """
    _check(words, shows, every, done)
    if done is not None:
        return _done(call, done, dry_run=dry_run)
    if shows:
        return _listed(call, every=every)
    check_memory(None, scope=scope)
    text = text_from(words)
    if not text.strip():
        raise Failure("content must not be empty")
    with call.memory() as memory:
        from commonplace.jobs import reminding

        memory.check_scope(scope)
        found = reminding.read(memory, text if when is None else when)
        row = _row(memory, text, found)
        if dry_run:
            return call.answer(f"Would remind: {row['reading']}", **row)
        note = reminding.store(memory, text, found, tags=split_list(tags), scope=scope, source=source)
        row |= {"stored": True, "memory": memories.record(memory, note, note.content)}
        call.answer(f"Reminder set: {note.id}\n  {row['reading']}", **row)


def _check(words: tuple[str, ...], shows: bool, every: bool, done: str | None) -> None:
    """Raises Usage for arguments that do not go together."""
    context = click.get_current_context()
    if shows and done is not None:
        raise Usage("--list and --done do not go together", context)
    if every and not shows:
        raise Usage("--all needs --list", context)
    if (shows or done is not None) and words:
        raise Usage(f"accepts 0 arg(s), received {len(words)}", context)
    if not (shows or done is not None or words):
        raise Usage("requires at least 1 arg(s), only received 0", context)


def _row(memory: Memory, text: str, found: Reading) -> dict[str, Any]:
    """What was read, as JSON shows it; `stored` is False yet."""
    local = found.due.astimezone(memory.settings.reading_zone)
    rule = f" repeat {found.repeat}" if found.repeat else ""
    return {
        "stored": False,
        "text": text,
        "phrase": found.phrase,
        "due_at": stamp(found.due),
        "due_local": local.isoformat(),
        "reading": f"{_day_and_time(local)} ({memories.on_one_line(found.phrase)}){rule}",
        "all_day": found.all_day,
        "repeat": found.repeat,
        "others": list(found.others),
    }


def _day_and_time(local: datetime) -> str:
    return f"{local:%a} {local.day} {local:%b} {local.year} {local:%H:%M}"


def _listed(call: Invocation, *, every: bool) -> None:
    with call.memory() as memory:
        from commonplace.jobs import reminding

        found = reminding.listed(memory, fired=every)
        if call.json:
            return call.document(reminders=memories.records(memory, (info for info, _ in found)))
        lines = [
            _ROW.format(info.id[:8], _when(memory, each), memories.preview(memories.content_of(memory, info), 60))
            for info, each in found
        ]
        call.answer("\n".join(lines) or "No reminders.")


def _when(memory: Memory, each: Reminder) -> str:
    if each.due is None:
        return _UNREADABLE if each.unreadable else _NO_DATE
    return memories.minute(each.due, memory.settings.reading_zone)


def _done(call: Invocation, ref: str, *, dry_run: bool) -> None:
    with call.memory() as memory:
        from commonplace.jobs import reminding

        info = memory.memory_id(ref) if dry_run else reminding.done(memory, ref)
        row = memories.record(memory, info, memories.content_of(memory, info))
        call.answer(f"{'Would be done' if dry_run else 'Done'}: {info.id[:8]}", id=info.id, memory=row)


@command("notify", keys=("notified", "pending"), now=True)
@click.option("--dry-run", is_flag=True, help="Only say what would fire.")
def notify(call: Invocation, *, dry_run: bool) -> None:
    """Fire the reminders that are due: list them in pending.md and show them on the desktop."""
    call.tidies = not dry_run
    with call.memory() as memory:
        from commonplace.jobs import notify

        done = notify.run(memory, dry_run=dry_run)
        said = f"Notified {len(done.notified)} reminders"
        if dry_run:
            said = "\n".join(each.line() for each in done.actions) or "Nothing to do."
        call.answer(said, notified=memories.records(memory, done.notified), pending=done.pending)
        if done.failure:
            output.notice(done.failure)
