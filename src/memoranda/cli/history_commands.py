"""`log`, `diff`, `undo`, `restore`, `erase` (contract 001, 16; docs/failures.md)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from memoranda import documents
from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.memory_commands import moment_of
from memoranda.cli.older_texts import number_of, text_changed
from memoranda.cli.output import Failure, confirmed
from memoranda.cli.patch import patch as patch_of
from memoranda.cli.rows import limit_option, traces_flag
from memoranda.cli.syntax import Names, Number, Text, Usage, command, flag, option
from memoranda.clock import to_utc
from memoranda.documents.differences import split
from memoranda.documents.wording import change_line, minute, place, place_of_change, plural
from memoranda.engine.writing import as_file
from memoranda.errors import MemorandaError, NotInHistory
from memoranda.note.markdown import shown_stem
from memoranda.note.model import TRACE_PROJECT
from memoranda.text.unicode import flat

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.history.erase import Erased
    from memoranda.engine.history.verbs import Revision
    from memoranda.ledger.change import Change

_TIME_HINT = "Use e.g. 2h, 7d, yesterday, last week or 2026-11-01."
_ERASED_KEYS = (
    "notes",
    "changes",
    "texts",
    "files",
    "bytes",
    "remains",
    "mentions",
    "out_of_reach",
)
# At most this many notes are named in the question whether to erase them.
_MOST_NAMED = 20
# At most this many texts of one change are compared for `--patch`.
_MOST_COMPARED = 20


@command(
    "log",
    "[REF]",
    keys={"entries": documents.CHANGE_KEYS},
    own_agent=True,
    example="memory log --since yesterday",
)
@limit_option(20)
@option(
    "--agent",
    metavar="NAME",
    help="Only changes by this agent (before the command, the option means to act as it).",
)
@option(
    "--since", metavar="DATE", help="Only changes since this time, e.g. 2026-05-07, yesterday, 2h."
)
@option(
    "--run",
    type=Number(1),
    metavar="N",
    help="The changes of one run of a job, by the number of its first change.",
)
@click.option("--patch", "-p", is_flag=True, help="Also show what changed, word by word.")
@traces_flag
def log(
    call: Invocation,
    ref: str | None = None,
    *,
    limit: int,
    agent: Text,
    since: Text,
    run: int | None,
    patch: bool,
    traces: bool,
) -> None:
    """List changes, newest first; with REF (an id, or a path as shown here) only its changes.

    All changes of one run of a job are one line; --run opens it. Traces of sessions are left out
    unless asked for.
    """
    with call.memory(looks_once=True) as memory:
        start = None
        if since is not None:
            start = moment_of(memory.since, since, "--since date", _TIME_HINT)
        # Traces are the records of sessions. With a REF, all changes of that note are shown.
        hides_traces = not traces and ref is None
        read_limit = limit
        # A limit of 0 means all changes.
        if hides_traces and limit:
            # Changes of traces are read but not shown, so as many more changes must be read.
            read_limit += _count_of_traces(memory, limit, agent, start)
        selection = _Selection(ref, run, agent, start, read_limit)
        runs = _runs_of(memory, selection, are_grouped=not call.json)
        if hides_traces:
            runs = _without_traces(runs, limit)
        if call.json:
            # Without grouping, each run is one change.
            return call.document(entries=[documents.change(changes[0]) for changes in runs])
        text = _log_text(call, memory, runs, has_patches=patch) or "No changes found."
        output.text(text, painted=patch and call.on_terminal, paged=not call.no_pager)


def _log_text(
    call: Invocation, memory: MemorySession, runs: Sequence[Sequence[Change]], *, has_patches: bool
) -> str:
    """Return the lines of `log`. All changes of one run of a job are on one line.

    runs: groups of changes, the newest first.
    has_patches: whether the changed words follow the line of their change.
    """
    titles = _titles(memory, [changes[0] for changes in runs if len(changes) == 1])
    lines = []
    for changes in runs:
        title = titles.get(changes[0].number, "")
        lines.append(change_line(changes, memory.settings.zone, title))
        if has_patches:
            lines += _patch_lines(call, memory, changes)
    return "\n".join(lines)


class _Selection(NamedTuple):
    """The changes that `log` asks for.

    ref: the note that the changes are about. None means any note.
    run: the number of the run of a job that made them. None means any.
    agent: the agent that made them. None means any.
    since: the earliest time. None means any time.
    limit: the most runs to list. 0 means all.
    """

    ref: str | None
    run: int | None
    agent: str | None
    since: datetime | None
    limit: int


def _runs_of(
    memory: MemorySession, selection: _Selection, *, are_grouped: bool
) -> Sequence[Sequence[Change]]:
    """Return the selected changes in groups, the newest first.

    selection: which changes.
    are_grouped: whether all changes of one run of a job are a group. If False, each change is a
        group.
    """
    if selection.run is not None:
        return _changes_of_run(memory, selection, selection.run)
    filters: dict[str, Any] = {
        "limit": selection.limit,
        "agent": selection.agent,
        "since": selection.since,
    }
    if are_grouped:
        return memory.log_by_run(selection.ref, **filters)
    return [[change] for change in memory.log(selection.ref, **filters)]


def _without_traces(runs: Sequence[Sequence[Change]], limit: int) -> Sequence[Sequence[Change]]:
    """Return the first `limit` runs that are not about traces of sessions. 0 means all of them."""
    shown_runs = [changes for changes in runs if changes[0].project != TRACE_PROJECT]
    if limit:
        return shown_runs[:limit]
    return shown_runs


def _changes_of_run(memory: MemorySession, selection: _Selection, run: int) -> list[list[Change]]:
    """Return the selected changes of one run of a job, newest first, each in a separate list.

    run: the number of the run.
    """
    changes = memory.log(selection.ref, limit=0, agent=selection.agent, since=selection.since)
    # The undoing of a run has the number of the run, too.
    changes_of_run = [change for change in changes if change.run == run and change.undoes is None]
    if selection.limit:
        changes_of_run = changes_of_run[: selection.limit]
    return [[change] for change in changes_of_run]


def _count_of_traces(memory: MemorySession, limit: int, agent: Text, start: datetime | None) -> int:
    """Return how many of the latest changes are about traces of sessions, which `log` leaves out.

    So many changes more must be read to show `limit` of them. Only ten times as many changes as the
    limit are looked at: if most of these are about traces, `log` shows fewer than its limit.

    limit: the limit of `log`, at least 1.
    agent: only changes of this agent; None for all.
    start: only changes made since this time; None for all.
    """
    latest_changes = memory.log(limit=10 * limit, agent=agent, since=start)
    return sum(change.project == TRACE_PROJECT for change in latest_changes)


def _patch_lines(call: Invocation, memory: MemorySession, changes: Sequence[Change]) -> list[str]:
    """Return the lines that show how the changes of one run edited texts."""
    lines = []
    for change in changes:
        revisions = memory.revisions(change.number, limit=_MOST_COMPARED)
        lines += patch_of(revisions, colored=call.on_terminal)
    return lines


@command(
    "diff",
    "NOTE",
    "[CHANGE]",
    keys=("change", "before", "after", "text_lost"),
    example="memory diff 5a1f",
)
def diff(call: Invocation, ref: str, number: str | None = None) -> None:
    """Show which words the last change of NOTE, or change number CHANGE, removed and added.

    If the text of a version was not kept, the answer says so. The history keeps no text of entries
    with a time to live. It also misses a text that an editor replaced before the index was lost.
    """
    with call.memory(looks_once=True) as memory:
        change_number = None if number is None else number_of(number)
        change, revision = _revision(memory, ref, change_number)
        if call.json:
            return call.document(
                change=change.number,
                before=revision.before,
                after=revision.after,
                text_lost=revision.is_text_lost,
            )
        headline = change_line([change], memory.settings.zone)
        lines = patch_of([revision], colored=call.on_terminal) or [_why_no_patch(revision)]
        text = "\n".join([headline, *lines])
        output.text(text, painted=call.on_terminal, paged=not call.no_pager)


def _why_no_patch(revision: Revision) -> str:
    """Return the line for a change that altered no word of the text."""
    if revision.is_text_lost:
        return "  (the history does not keep a text of this change)"
    if revision.before == revision.after:
        return "  (the same text)"
    header_before, _ = split(revision.before or "")
    header_after, _ = split(revision.after or "")
    if header_before == header_after:
        return "  (no words: only line ends, empty lines or the form of the header)"
    return "  (only what memoranda notes for itself in the header, e.g. times)"


def _revision(memory: MemorySession, ref: str, number: int | None) -> tuple[Change, Revision]:
    """Return a change of a note, with the note's text before and after it.

    number: the number of the change. None means the latest one.

    Raises Failure, NotFound.
    """
    from memoranda.engine.history.former_places import history_of_note

    for placed in history_of_note(memory, _place_in_log(memory, ref)):
        # The latest change comes first.
        if number is None or number == placed.change.number:
            return placed.change, text_changed(memory, "/".join(placed.place), placed.change)
    problem = "no change" if number is None else f"#{number} is no change"
    raise Failure(f"{problem} of {ref}", "not_found", f"memory log {ref} lists its changes.")


def _place_in_log(memory: MemorySession, ref: str) -> str:
    """Return the path of the note that a reference names. If the note is gone, return `ref`."""
    with suppress(MemorandaError):
        return place(memory.find_any(ref))
    return ref


def _titles(memory: MemorySession, changes: Sequence[Change]) -> dict[int, str]:
    """Return number of a change -> title of its note. A deleted note has its last title.

    Titles that are the name of the file are left out.
    """
    titles: dict[int, str] = {}
    changes_of_deleted: list[Change] = []
    for change in changes:
        is_of_folder = not change.path or change.path.endswith("/")
        # A change with a root was made in a folder outside the home, which may be no project now.
        may_be_elsewhere = bool(change.root)
        if is_of_folder or may_be_elsewhere:
            continue
        try:
            titles[change.number] = memory.find((change.project, change.path)).title
        except MemorandaError:
            changes_of_deleted.append(change)

    # The title of a deleted note is in the history.
    for number, revisions in memory.revisions_of(changes_of_deleted, limit=1).items():
        for revision in revisions:
            titles[number] = _title_of(memory, revision)
    file_names = {change.number: shown_stem(change.path) for change in changes}
    return {
        number: title for number, title in titles.items() if title and title != file_names[number]
    }


def _title_of(memory: MemorySession, revision: Revision) -> str:
    """Return the title of a note after a change or, if the change deleted it, before.

    Returns "" if there is no text, or if it has no valid header.

    revision: the texts of the note before and after the change.
    """
    text = revision.before if revision.after is None else revision.after
    if text is None:
        return ""
    file = as_file(text.encode("utf-8", "surrogatepass"))
    try:
        return memory.parse(revision.touched.project, revision.touched.path, file).title
    except MemorandaError:
        return ""


@command("undo", "[N]", keys=("undone", "change"), example="memory undo 12")
@option(
    "--run",
    type=Number(1),
    metavar="N",
    help="All changes of one run of a job, by the number of its first change.",
)
@option("--by", "by", metavar="AGENT", help="All changes of this agent, as one.")
@option(
    "--since",
    metavar="DATE",
    help="With --by: only changes since this time, e.g. 2h, yesterday, 2026-05-07.",
)
@option(
    "--project",
    metavar="NAME",
    type=Names("name", "project"),
    help="With --by: only changes in this project.",
)
def undo(
    call: Invocation,
    number: str | None = None,
    *,
    run: int | None,
    by: Text,
    since: Text,
    project: Text,
) -> None:
    """Undo a change: number N of `memory log`, or the latest. An undo is a change, too.

    If a job's change of a memory is undone, the job does not change the memory again. To see the
    changes of an agent, use `memory log --agent NAME -p`. To undo them as one change, use `memory
    undo --by NAME`.
    """
    names_change = number is not None
    names_run = run is not None
    if by is not None and (names_change or names_run):
        raise Usage("N, --run and --by exclude each other")
    if by is None and (since is not None or project is not None):
        raise Usage("--since and --project go with --by")
    if names_change and names_run:
        raise Usage("N and --run exclude each other")
    if by is not None:
        return _undo_agent(call, by, since, project)
    if run is not None:
        return _undo_run(call, run)
    _undo_change(call, number)


def _undo_change(call: Invocation, number_text: Text) -> None:
    """Undo one change.

    number_text: its number as the person typed it, such as `12` or `#12`. None means the latest one.

    Raises Usage if it is not a number.
    """
    number = None
    if number_text is not None:
        number = number_of(number_text, "N")
    with call.memory() as memory:
        change = memory.undo(number)
        undone_number = change.undoes or 0
        undone_change = memory.change_numbered(undone_number)
        verb = undone_change.verb if undone_change is not None else ""
        call.answer(
            f"Undid #{undone_number}: {verb} {flat(place_of_change(change))}",
            undone=undone_number,
            change=change.number,
        )
        run = undone_change.run if undone_change is not None else None
        left = memory.count_left_of_run(run) if run is not None else 0
    if left:
        output.notice(f"{plural(left, 'other change')} of the same run: memory undo --run {run}")


def _undo_run(call: Invocation, run: int) -> None:
    """Undo all changes of one run of a job."""
    with call.memory() as memory:
        change, undone_changes = memory.undo_run(run)
        # The newest change is the first.
        last = undone_changes[0]
        first = undone_changes[-1]
        numbers = f"#{first.number}"
        if last.number != first.number:
            numbers += f"-{last.number}"
        text = f"Undid {numbers}: {last.verb} ({len(undone_changes)} memories)"
        call.answer(text, undone=first.number, change=change.number)


def _undo_agent(call: Invocation, agent: str, since: Text, project: Text) -> None:
    """Undo all changes of an agent since a time, in one project or in all."""
    with call.memory() as memory:
        start = None
        if since is not None:
            start = moment_of(memory.since, since, "--since date", _TIME_HINT)
        change, undone_changes = memory.undo_changes_of(agent, start, project)
        lines = [f"Undid {plural(len(undone_changes), 'change')} of {agent}:"]
        for undone in undone_changes:
            lines.append(f"#{undone.number}: {undone.verb} {flat(place_of_change(undone))}")
        first = undone_changes[-1]
        call.answer("\n".join(lines), undone=first.number, change=change.number)


def _moment_at(memory: MemorySession, text: str) -> datetime:
    """Read the time of `--at`: ISO 8601, or words such as `yesterday`. Raises Failure."""
    try:
        return to_utc(datetime.fromisoformat(text.strip()), memory.settings.zone)
    except (ValueError, OverflowError):
        return moment_of(memory.since, text, "--at time", _TIME_HINT)


@command(
    "restore", "REF", keys=("path", "change"), example="memory restore notes/Plan.md --at yesterday"
)
@option("--at", metavar="TIME", help="The text at this time, e.g. 2026-05-07T10:00 or yesterday.")
@option("--change", type=Number(1), metavar="N", help="The text that change N replaced or deleted.")
@option(
    "--to",
    metavar="PATH",
    help="Write the text to this place instead, where no file may be. A note ends in .md.",
)
def restore(call: Invocation, ref: str, *, at: Text, change: int | None, to: Text) -> None:
    """Bring back a deleted or older text of REF (an id, or a path as `log` shows it).

    Without --at and --change, it is the text before the last change. Repeating the command does not
    take that back.
    """
    if at is not None and change is not None:
        raise Usage("--at and --change exclude each other")
    with call.memory() as memory:
        moment = None if at is None else _moment_at(memory, at)
        try:
            path, number = memory.restore(ref, at=moment, change=change, to=to)
        except NotInHistory as error:
            if change is None:
                raise
            problem = f"#{change} replaced or deleted no text of {error.identifier}"
            raise Failure(
                problem, error.code, f"memory log {ref} lists the changes that did."
            ) from None
        text = f"Restored {flat(path)} from #{number}"
        # A person is also told which text this is.
        source = memory.change_numbered(number) if call.on_terminal else None
        if source is not None:
            time = minute(source.time, memory.settings.zone)
            text += f"\nIt is what it was before {time} ({source.verb})."
        call.answer(text, path=path, change=number)


@command(
    "erase",
    "[REF...]",
    keys=_ERASED_KEYS,
    own_agent=True,
    example="memory erase notes/Plan.md --dry-run",
)
@option("--agent", metavar="NAME", help="All notes this agent made or keeps private.")
@option("--project", metavar="NAME", help="All notes of this project.")
@option("--source", metavar="TEXT", help="All notes with this source.")
@option(
    "--observation",
    metavar="TEXT",
    help="Only this observation of REF, and the older versions of the note.",
)
@flag("--dry-run", "Only say what would be erased.")
@flag("--yes", "Do not ask.")
def erase(
    call: Invocation,
    *refs: str,
    agent: Text,
    project: Text,
    source: Text,
    observation: Text,
    dry_run: bool,
    yes: bool,
) -> int:
    """Remove notes for good, with every older version and trace. It cannot be undone.

    REF is an id, a path as `log` shows it, an address, or an entry FOLDER/NAMESPACE.json:KEY. A name
    must match exactly. At the end, the whole home is searched for remains of the texts.
    """
    if not (refs or agent or project or source):
        raise Usage("erase needs a REF, --agent, --project or --source")
    with call.memory() as memory:
        erase_notes = partial(
            memory.erase,
            *refs,
            agent=agent,
            project=project,
            source=source,
            observation=observation,
        )
        planned = erase_notes(dry_run=True)
        if dry_run or not planned.notes:
            text = "\n".join(f"would erase {note}" for note in planned.notes)
            call.answer(text or "Nothing to erase.", **_erasure_keys(planned))
            return 0

        # A person must agree, because nothing can bring the notes back.
        if not yes:
            _confirm_erasure(planned.notes)
        erasure = erase_notes()
        call.answer("\n".join(_erasure_lines(erasure)), **_erasure_keys(erasure))
        return 1 if erasure.remains else 0


def _confirm_erasure(notes: Sequence[str]) -> None:
    """Ask whether to erase the notes for good.

    Raises Failure for a no, and if nobody can be asked.
    """
    if not sys.stdin.isatty():
        raise Failure("erase cannot be undone: give --yes, or run it on a terminal to be asked")
    lines = list(notes[:_MOST_NAMED])
    if len(notes) > _MOST_NAMED:
        lines.append(f"and {len(notes) - _MOST_NAMED} more")
    lines.append(f"Erase {len(notes)} for good, with every older version?")
    if not confirmed("\n".join(lines)):
        raise Failure("nothing was erased")


def _erasure_keys(erasure: Erased) -> dict[str, Any]:
    """Return an erasure as the keys of `--json`."""
    return asdict(erasure) | {"mentions": [mention.words for mention in erasure.mentions]}


def _erasure_lines(erasure: Erased) -> list[str]:
    """Return the lines about an erasure: the removed texts, the searched places, and remains."""
    lines = [f"Erased {note}" for note in erasure.notes]
    lines.append(f"Gone with it: {erasure.changes} in the log, {erasure.texts} in the history")
    ending = "some of it is left" if erasure.remains else "nothing of it is left"
    searched = f"{plural(erasure.files, 'file')}, {plural(erasure.bytes, 'byte')}"
    lines.append(f"Searched {searched}: {ending}")
    lines += [f"still in {remain}" for remain in erasure.remains]
    lines += [f"out of reach: {place}" for place in erasure.out_of_reach]
    lines += [f"{mention.relation}, which stays as it is" for mention in erasure.mentions]
    return lines
