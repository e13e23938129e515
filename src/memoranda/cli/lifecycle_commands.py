"""`upgrade`, `decay`, `archive`, `pin`, `unpin`, `consolidate`, `dream`, `remind`, `notify`
(contract 001, 3, 5, 6 and
8), `review` (18.2).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from memoranda import documents
from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.memory_commands import (
    category_option,
    content_from,
    new_memory_options,
    notes_named,
)
from memoranda.cli.output import Failure
from memoranda.cli.rows import noun
from memoranda.cli.syntax import Number, Text, Usage, command, flag, option
from memoranda.clock import stamp
from memoranda.documents.wording import minute, plural, preview, question_lines, subject_lines
from memoranda.engine.contents import content_of
from memoranda.errors import CannotUndo, MemorandaError, choices
from memoranda.note.model import CATEGORIES, INBOX
from memoranda.text.unicode import one_line

if TYPE_CHECKING:
    from datetime import tzinfo

    from memoranda.engine import MemorySession
    from memoranda.engine.review import ReviewItem
    from memoranda.jobs.job import Action, Outcome
    from memoranda.note.reminder import Reminder
    from memoranda.note.timephrase import Reading

# The keys of an action; further ones of its verb follow.
_ACTION_KEYS = ("job", "verb", "id", "reason", "path")
_DREAM_KEYS = ("level", "processed", "actions", "report")
_REMIND_KEYS = (
    "stored",
    "text",
    "phrase",
    "due_at",
    "due_local",
    "reading",
    "all_day",
    "repeat",
    "others",
    "memory",
)
_LEVELS = "1 light: the inbox; 2 medium: also what is similar; 3 deep: also links and reminders."
_ORGANIZED = tuple(category for category in CATEGORIES if category != INBOX)
_dry_run_option = flag("--dry-run", "Only say what would be done.")


def _lines(actions: Iterable[Action]) -> str:
    """Return the text of a dry run: a line for each planned action."""
    return "\n".join(action.line() for action in actions) or "Nothing to do."


@command(
    "upgrade",
    "ID...",
    keys=("memory", "changed"),
    now=True,
    example="memory upgrade 5a1f --category people",
)
@category_option(f"One of {', '.join(_ORGANIZED)} [by its words].")
@_dry_run_option
def upgrade(call: Invocation, *refs: str, category: Text, dry_run: bool) -> None:
    """Move memories out of the inbox into a category, for good.

    If you name several memories, all of them are organized as one change, or none is. JSON then has
    the list `results`.
    """
    if category is not None and category not in _ORGANIZED:
        raise Failure(f'invalid category "{category}"', hint=choices(category, _ORGANIZED))
    with call.memory() as memory:
        from memoranda.jobs.lifecycle import upgrade_named

        infos, actions, restored_ids = upgrade_named(memory, refs, category, dry_run=dry_run)
        texts = [f"Upgraded memory {info.id} to long-term" for info in infos]
        if dry_run:
            texts = [_lines(line for line in actions if line)]

        rows = []
        for info, action in zip(infos, actions, strict=True):
            # A memory is also changed if it came back from the archive.
            has_changed = action is not None or info.id in restored_ids
            document = documents.note(memory, info, content_of(memory, info))
            rows.append({"memory": document, "changed": has_changed})
        call.answer_each(texts, rows)


@command(
    "decay",
    keys={"actions": _ACTION_KEYS, "decayed": ()},
    now=True,
    example="memory decay --dry-run",
)
@_dry_run_option
def decay(call: Invocation, *, dry_run: bool) -> None:
    """Archive organized memories that are old and were neither read nor used.

    Reading an archived memory brings it back.
    """
    call.checks_overview = not dry_run
    with call.memory() as memory:
        from memoranda.jobs import lifecycle

        actions = lifecycle.decay(memory, dry_run=dry_run)
        if dry_run:
            text = _lines(actions)
        else:
            text = f"Decayed {len(actions)} unused memories"
        call.answer(text, actions=[action.document() for action in actions], decayed=len(actions))


@command("archive", "ID...", keys=("memories",), now=True, example="memory archive 5a1f")
@_dry_run_option
def archive(call: Invocation, *refs: str, dry_run: bool) -> None:
    """Archive notes: lists leave them out, and ranked search still finds them.

    Reading a note, or `memory restore ID`, brings it back to its former place.
    """
    with call.memory() as memory:
        from memoranda.jobs.lifecycle import archive_named

        infos = archive_named(memory, notes_named(memory, refs), dry_run=dry_run)
        text = f"{'Would archive' if dry_run else 'Archived'} {len(infos)} {noun(infos)}"
        call.answer(text, memories=documents.notes(memory, infos).rows)


@command("pin", "ID...", keys=("memories",), example="memory pin 5a1f 77c2")
def pin(call: Invocation, *refs: str) -> None:
    """Pin notes of any project: each session is told them first, and no job archives them.

    A pinned memory neither expires nor decays, is not merged into another, and comes first in
    memory.md.
    """
    _pin(call, refs, pinned=True)


@command("unpin", "ID...", keys=("memories",), example="memory unpin 5a1f")
def unpin(call: Invocation, *refs: str) -> None:
    """Remove the pin from notes."""
    _pin(call, refs, pinned=False)


def _pin(call: Invocation, refs: Sequence[str], *, pinned: bool) -> None:
    """Pin or unpin the notes that the references name.

    pinned: True pins them, False unpins them.
    """
    with call.memory() as memory:
        from memoranda.engine.upkeep import Upkeep

        infos = Upkeep(memory).pin(notes_named(memory, refs), pinned=pinned)
        text = f"{'Pinned' if pinned else 'Unpinned'} {len(infos)} {noun(infos)}"
        call.answer(text, memories=documents.notes(memory, infos).rows)


@command(
    "tidy",
    keys=("actions", "processed", "questions", "lessons"),
    now=True,
    example="memory tidy --dry-run",
)
@_dry_run_option
def tidy(call: Invocation, *, dry_run: bool) -> int:
    """Run all upkeep once, as the daemon does every night, and show what it did.

    It archives memories that nobody uses, sorts the inbox, merges duplicates, links memories that
    belong together, and makes reminders from dates. Unclear cases stay as they are, and `memory
    review` asks about them. Its parts, `consolidate` and `dream`, never ask. `memory undo` takes back
    each change.
    """
    call.checks_overview = not dry_run
    with call.memory() as memory:
        from memoranda.jobs import lifecycle

        with output.progress("Tidying") as progress:
            outcomes = lifecycle.tidy(memory, dry_run=dry_run, progress=progress)
        actions = list(chain.from_iterable(outcome.actions for outcome in outcomes))
        questions = len(memory.review(limit=_MOST_COUNTED))
        lines = [action.line() if dry_run else _action_line(action) for action in actions]
        if not lines:
            lines = ["Nothing to do."]
        if questions:
            lines.append(f"{_question_count(questions)} for you: memory review")
        lessons = _lessons(memory)
        if lessons:
            lines.append(f"{lessons} from your sessions to remember or not: {_LESSONS}")
        documents = [action.document() for action in actions]
        return _answer(
            call,
            "\n".join(lines),
            outcomes,
            actions=documents,
            processed=len(actions),
            questions=questions,
            lessons=lessons,
        )


_LESSONS = "memory review --kind lesson"


def _lessons(memory: MemorySession) -> int:
    """Return how many lessons from sessions wait for an answer of the owner."""
    if not memory.settings.transcripts or memory.agent is not None:
        return 0
    from memoranda.transcripts.proposals import count_proposals

    return count_proposals(memory)


# Counting questions takes time, so beyond this number "50+" is shown.
_MOST_COUNTED = 50
# The result for a memory, in one word.
_DONE = {
    "expire": "archived",
    "decay": "archived",
    "upgrade": "organized",
    "classify": "organized",
    "merge": "merged",
    "link": "linked",
    "remind": "reminder",
}


def _action_line(action: Action) -> str:
    """Return an action that was carried out as a line."""
    return f"{_DONE.get(action.verb, action.verb):<9} {action.id[:8]} {action.reason}"


def _question_count(questions: int) -> str:
    if questions == 1:
        return "1 question"
    return f"{questions}{'+' if questions == _MOST_COUNTED else ''} questions"


@command("consolidate", keys=("jobs",), now=True, example="memory consolidate --dry-run")
@_dry_run_option
def consolidate(call: Invocation, *, dry_run: bool) -> int:
    """A part of tidy: expire, decay, upgrade, and merge duplicates."""
    call.checks_overview = not dry_run
    with call.memory() as memory:
        from memoranda.jobs import lifecycle

        outcomes = lifecycle.consolidate(memory, dry_run=dry_run)
        if dry_run and not any(outcome.error for outcome in outcomes):
            text = _lines(chain.from_iterable(outcome.actions for outcome in outcomes))
        else:
            results = {
                outcome.job: "error" if outcome.error else f"{len(outcome.actions)} items processed"
                for outcome in outcomes
            }
            text = "\n".join(f"{job:<15} {result}" for job, result in results.items())
        documents: dict[str, list[Any]] = {}
        for outcome in outcomes:
            documents[outcome.job] = [action.document() for action in outcome.actions]
        jobs = {
            job: {"processed": len(actions), "actions": actions}
            for job, actions in documents.items()
        }
        return _answer(call, text, outcomes, jobs=jobs)


def _answer(call: Invocation, text: str, outcomes: Sequence[Outcome], **data: Any) -> int:
    """Answer with what was done, and report what went wrong. Returns the exit status.

    text: the answer for a person.
    outcomes: the outcome of each job, some perhaps with an error.
    data: the keys of the JSON document.
    """
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    messages = [f"{failed_outcome.job}: {failed_outcome.failure}" for failed_outcome in failed]
    if failed:
        code = next(
            (
                failed_outcome.error.code
                for failed_outcome in failed
                if isinstance(failed_outcome.error, MemorandaError)
            ),
            "internal",
        )
        data = {"error": {"code": code, "message": "; ".join(messages)}} | data
    call.answer(text, **data)
    for message in messages:
        output.failure(message)
    if failed:
        return 1
    return 0


@command(
    "dream",
    keys={"level": (), "processed": (), "actions": _ACTION_KEYS, "report": ()},
    now=True,
    example="memory dream --level 2 --dry-run",
)
@option("--level", type=Number(-(1 << 30)), default=1, help=_LEVELS)
@_dry_run_option
@flag("--report", "Show the report of the last dream again.")
def dream(call: Invocation, *, level: int, dry_run: bool, report: bool) -> int:
    """A part of tidy: classify the inbox, merge, link, make reminders."""
    from memoranda.jobs import dream

    dream.check(level)
    call.checks_overview = not (dry_run or report)
    with call.memory() as memory:
        if report:
            return _show_last_dream(call, memory)
        with output.progress("Dreaming") as progress:
            endpoint = dream.endpoint_of(memory.settings)
            outcome = dream.run(
                memory, level, dry_run=dry_run, endpoint=endpoint, careful=True, progress=progress
            )
        is_deep = level == dream.LEVELS[-1]
        if dry_run:
            text = _lines(outcome.actions)
        else:
            text = _dream_lines(memory, outcome.report, with_report=is_deep)
        return _answer(
            call, text, outcome.outcomes, **{key: outcome.report[key] for key in _DREAM_KEYS}
        )


def _show_last_dream(call: Invocation, memory: MemorySession) -> int:
    """Show the report of the last dream, as far as the caller may see it. Returns the exit status."""
    from memoranda.jobs import dream

    stored_report = dream.load_report(memory.home)
    if stored_report is None:
        nothing = dict.fromkeys(_DREAM_KEYS) | {"processed": 0, "actions": []}
        return _answer(call, "No dream yet.", (), **nothing)
    row = dream.report_seen_by(memory, stored_report)
    text = _dream_lines(memory, row, with_report=True)
    return _answer(call, text, (), **{key: row[key] for key in _DREAM_KEYS})


def _dream_lines(memory: MemorySession, report: dict[str, Any], *, with_report: bool) -> str:
    """Return the text about a run of the dream job, which tidies the notes.

    with_report: whether the lines of its report follow the headline.
    """
    from memoranda.jobs.dream import report_lines

    head = f"Dream (level {report['level']}) processed {report['processed']} items"
    return "\n".join(
        [
            head,
            *(report_lines(report["report"], memory.settings.reading_zone) if with_report else ()),
        ]
    )


@command(
    "remind",
    "[TEXT...]",
    keys=_REMIND_KEYS,
    now=True,
    example="memory remind call Bob tomorrow at 3pm",
)
@option("--at", "when", metavar="WHEN", help="The time, if TEXT does not name it.")
@new_memory_options
@flag("--dry-run", "Only show which time is read.")
@flag("--list", "List the reminders still to come.", "shows")
@flag("--all", "With --list: also reminders that have fired.", "includes_fired")
@option("--done", "done_reminder", metavar="ID", help="Acknowledge a reminder.")
def remind(
    call: Invocation,
    *words: str,
    when: Text,
    dry_run: bool,
    shows: bool,
    includes_fired: bool,
    done_reminder: Text,
    **new: Any,
) -> None:
    """Set a reminder at the time TEXT names, in English or Chinese.

    If a word of time in TEXT cannot be used, the text is refused, and the word is named. Several
    times joined by "and" make several reminders.
    """
    if shows and done_reminder is not None:
        raise Usage("--list and --done do not go together")
    if includes_fired and not shows:
        raise Usage("--all needs --list")
    if (shows or done_reminder is not None) and words:
        raise Usage(f"accepts 0 arg(s), received {len(words)}")
    if shows:
        _list_reminders(call, includes_fired=includes_fired)
    elif done_reminder is not None:
        _acknowledge(call, done_reminder, dry_run=dry_run)
    elif words:
        text = content_from(words, scope=new["scope"])
        _set_reminders(call, text, when, dry_run=dry_run, **new)
    else:
        raise Usage("requires at least 1 arg(s), only received 0")


def _acknowledge(call: Invocation, ref: str, *, dry_run: bool) -> None:
    """Mark a reminder as done, so that it is no longer pending.

    ref: the reminder.
    dry_run: whether only to say what would be done.
    """
    with call.memory() as memory:
        from memoranda.jobs import reminders

        if dry_run:
            info = memory.find_memory(ref)
        else:
            info = reminders.acknowledge(memory, ref)
        row = documents.note(memory, info, content_of(memory, info))
        if dry_run:
            answer = "Would be done"
        else:
            answer = "Done"
        call.answer(f"{answer}: {info.id[:8]}", id=info.id, memory=row)


def _set_reminders(
    call: Invocation, text: str, when: str | None, *, dry_run: bool, **new: Any
) -> None:
    """Set a reminder for each time of the text, or of `when`: several joined by "and".

    when: the words of the time; None finds them in `text`.
    dry_run: whether only to say when the reminders would fire.
    """
    with call.memory() as memory:
        from memoranda.jobs import reminders

        memory.check_scope(new["scope"])
        answers = []
        rows = []
        for reading in reminders.read_times(memory, text if when is None else when):
            row = _reading_row(memory, text, reading, is_stored=not dry_run)
            answer = f"Would remind: {row['reading']}"
            if not dry_run:
                note = reminders.store(memory, text, reading, **new)
                answer = f"Reminder set: {note.id}\n  {row['reading']}"
                row["memory"] = documents.note(memory, note, note.content)
            answers.append(answer)
            rows.append(row)
        call.answer_each(answers, rows)


def _reading_row(
    memory: MemorySession, text: str, reading: Reading, *, is_stored: bool
) -> dict[str, Any]:
    """Return a reading of a time as JSON has it. Its key `reading` has the time in words.

    text: the text of the reminder.
    reading: the time that was read from the text.
    is_stored: whether a reminder was made of it.
    """
    local = reading.due.astimezone(memory.settings.reading_zone)
    shown_text = f"{local:%a} {local.day} {local:%b} {local.year} {local:%H:%M}"
    shown_text += f" ({one_line(reading.phrase)})"
    if reading.repeat:
        shown_text += f" repeat {reading.repeat}"
    return {
        "stored": is_stored,
        "text": text,
        "phrase": reading.phrase,
        "due_at": stamp(reading.due),
        "due_local": local.isoformat(),
        "reading": shown_text,
        "all_day": reading.all_day,
        "repeat": reading.repeat,
        "others": list(reading.others),
    }


def _when_due(reminder: Reminder, zone: tzinfo | None) -> str:
    """Return the minute at which a reminder is due, or why there is none."""
    if reminder.due is not None:
        return minute(reminder.due, zone)
    return "unreadable date" if reminder.unreadable else "no date"


def _list_reminders(call: Invocation, *, includes_fired: bool) -> None:
    """List the reminders that will fire.

    includes_fired: whether those that fired are listed too.
    """
    with call.memory() as memory:
        from memoranda.jobs import reminders
        from memoranda.jobs.text_reminders import outdated
        from memoranda.note.reminder import CAVEATS

        listed = reminders.listed(memory, fired=includes_fired)
        if call.json:
            rows_listed = documents.notes(memory, (info for info, _ in listed)).rows
            return call.document(reminders=rows_listed)
        # Those whose text has changed since, or that is gone.
        waiting = [info for info, reminder in listed if reminder.is_waiting]
        changed = outdated(memory, waiting)
        rows = []
        for info, reminder in listed:
            caveat = reminder.caveat
            if info.id in changed:
                caveat = CAVEATS["gone" if changed[info.id] is None else "changed"]
            text = caveat + content_of(memory, info)
            when = _when_due(reminder, memory.settings.reading_zone)
            rows.append((info.id[:8], when, text if call.on_terminal else preview(text, 60)))

        # A pipe gets the first characters of each reminder, a terminal the whole text.
        if not rows:
            return call.answer("No reminders.")
        call.table(("ID", "When", "Reminder"), rows, form="{:<8} {:<16} {}")


@command("notify", keys=("notified", "pending"), now=True, example="memory notify --dry-run")
@flag("--dry-run", "Only say what would fire.")
def notify(call: Invocation, *, dry_run: bool) -> None:
    """Fire the reminders that are due: list them in pending.md and show them on the desktop."""
    call.checks_overview = not dry_run
    with call.memory() as memory:
        from memoranda.jobs import reminders

        outcome = reminders.notify(memory, dry_run=dry_run)
        if dry_run:
            text = _lines(outcome.actions)
        else:
            text = f"Notified {len(outcome.notified)} reminders"
        call.answer(
            text, notified=documents.notes(memory, outcome.notified).rows, pending=outcome.pending
        )
        if outcome.failure:
            output.notice(outcome.failure)


_ITEM_KEYS = ("key", "kind", "text", "refs", "lines", "choices")
_KEYS = "s later, u undo the last answer, q quit"


@command("review", keys={"items": _ITEM_KEYS, "more": ()}, example="memory review --limit 5")
@option("--limit", type=Number(), default=10, help="How many at most; 0 = all.")
@option(
    "--kind",
    metavar="KIND",
    help="Only questions of this kind, e.g. category or archive, one by one.",
)
def review(call: Invocation, *, limit: int, kind: Text) -> None:
    """Answer what upkeep could not decide: reminders, merges, categories, archiving.

    On a terminal, it asks one question at a time, and you answer with a key. Elsewhere, it lists the
    questions. Until a question is answered, nothing is changed.
    """
    with call.memory() as memory:
        items = memory.review(limit=limit + 1 if limit else 0, kind=kind)
        page, has_more = (items[:limit], len(items) > limit) if limit else (items, False)
        if not call.json and sys.stdin.isatty() and sys.stdout.isatty():
            return _ask(memory, page, has_more=has_more)
        rows = [documents.question(item) for item in page]
        lines = []
        for item in page:
            lines += question_lines(item)
        if has_more:
            last = [f"More: memory review --limit {2 * limit}"]
        else:
            last = []
        call.answer("\n".join([*lines, *last]) or "Nothing to review.", items=rows, more=has_more)


def _ask(memory: MemorySession, items: list[ReviewItem], *, has_more: bool) -> None:
    """Ask one question after another until none is left or `q` is pressed.

    items: the questions.
    has_more: whether there are more questions than these.
    """
    import click

    # The position of a question, and the change its answer made
    answered: list[tuple[int, int]] = []
    index = 0
    while index < len(items):
        item = items[index]
        output.text(_question(item, f"{index + 1} of {len(items)}{'+' if has_more else ''}"))
        key = click.getchar()
        # `q`, Ctrl-C, Ctrl-D or Escape.
        if key in "q\x03\x04\x1b":
            break
        if key == "u":
            index = _take_back(memory, answered, index)
        elif key == "s":
            index += 1
        elif key in dict(item.choices):
            try:
                memory.decide(item, key)
                answered.append((index, memory.changed))
                output.text(f"-> {dict(item.choices)[key]}")
            except MemorandaError as error:
                # The memory changed in between; go on with the next question.
                output.failure(output.error_sentence(error))
            index += 1
        else:
            output.text("Press one of the keys shown.")
    remedy = " memory undo takes the last answer back." if answered else ""
    output.text(f"Answered {len(answered)} of {plural(len(items), 'question')}.{remedy}")


def _question(item: ReviewItem, number: str) -> str:
    """Return a question as text, with its subject and the keys that answer it.

    number: its number, and the number of all questions.
    """
    lines = [f"\n{number}  {item.text}", *subject_lines(item)]
    lines += [f"  {letter}  {label}" for letter, label in item.choices]
    return "\n".join([*lines, f"  ({_KEYS})"])


def _take_back(memory: MemorySession, answered: list[tuple[int, int]], index: int) -> int:
    """Take the last answer back, and remove it from `answered`.

    Returns the position of its question, or `index` if that is not possible.
    """
    if not answered:
        output.text("Nothing answered yet.")
        return index
    try:
        memory.undo(answered[-1][1])
    except CannotUndo as error:
        output.failure(output.error_sentence(error))
        return index
    output.text("Taken back.")
    position, _ = answered.pop()
    return position
