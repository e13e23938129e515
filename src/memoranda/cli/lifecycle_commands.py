"""The commands of upkeep and reminders (contract 001, 3, 5, 6, 8 and 18.2).

`tidy`, `upgrade`, `decay`, `archive`, `pin`, `unpin`, `consolidate`, `dream`, `remind`, `notify` and
`review`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
from memoranda.cli.syntax import Number, Text, Usage, command, flag, option, wrong_count
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
_LEVELS_HELP = (
    "1 light: the inbox; 2 medium: also what is similar; 3 deep: also links and reminders."
)
_ORGANIZED_CATEGORIES = tuple(category for category in CATEGORIES if category != INBOX)
_dry_run_option = flag("--dry-run", "Only say what would be done.")


def _plan_text(actions: Iterable[Action]) -> str:
    """Return the text of a dry run: a line for each planned action."""
    return "\n".join(action.line() for action in actions) or "Nothing to do."


@command(
    "upgrade",
    "ID...",
    keys=("memory", "changed"),
    now=True,
    example="memory upgrade 5a1f --category people",
)
@category_option(f"One of {', '.join(_ORGANIZED_CATEGORIES)} [by its words].")
@_dry_run_option
def upgrade(call: Invocation, *refs: str, category: Text, dry_run: bool) -> None:
    """Move memories out of the inbox into a category, for good.

    If you name several memories, all of them are organized as one change, or none is. JSON then has
    the list `results`.
    """
    if category is not None and category not in _ORGANIZED_CATEGORIES:
        hint = choices(category, _ORGANIZED_CATEGORIES)
        raise Failure(f'invalid category "{category}"', hint=hint)
    with call.memory() as memory:
        from memoranda.jobs.lifecycle import upgrade_named

        upgraded = upgrade_named(memory, refs, category, dry_run=dry_run)
        texts = [f"Upgraded memory {info.id} to long-term" for info in upgraded.infos]
        if dry_run:
            texts = [_plan_text(action for action in upgraded.actions if action is not None)]

        rows = []
        for info, action in zip(upgraded.infos, upgraded.actions, strict=True):
            # A memory is also changed if it came back from the archive.
            has_changed = action is not None or info.id in upgraded.restored_ids
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
            text = _plan_text(actions)
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
        verb = "Would archive" if dry_run else "Archived"
        text = f"{verb} {len(infos)} {noun(infos)}"
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
        verb = "Pinned" if pinned else "Unpinned"
        text = f"{verb} {len(infos)} {noun(infos)}"
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
        question_count = len(memory.review(limit=_MOST_COUNTED))
        lines = [action.line() if dry_run else _action_line(action) for action in actions]
        if not lines:
            lines = ["Nothing to do."]
        if question_count:
            lines.append(f"{_question_count_text(question_count)} for you: memory review")
        lesson_count = _lesson_count(memory)
        if lesson_count:
            lines.append(
                f"{lesson_count} from your sessions to remember or not: memory review --kind lesson"
            )
        return _answer_with_errors(
            call,
            "\n".join(lines),
            outcomes,
            actions=[action.document() for action in actions],
            processed=len(actions),
            questions=question_count,
            lessons=lesson_count,
        )


def _lesson_count(memory: MemorySession) -> int:
    """Return how many lessons from sessions wait for an answer of the owner.

    0 if transcripts are not read, or for an agent, which may not answer.
    """
    if not memory.settings.transcripts or memory.agent is not None:
        return 0
    from memoranda.transcripts.proposals import count_proposals

    return count_proposals(memory)


# Counting questions takes time, so beyond this number "50+" is shown.
_MOST_COUNTED = 50
# Verb of an action -> its result for the memory, in one word.
_RESULT_WORDS = {
    "expire": "archived",
    "decay": "archived",
    "upgrade": "organized",
    "classify": "organized",
    "merge": "merged",
    "link": "linked",
    "remind": "reminder",
}


def _action_line(action: Action) -> str:
    """Return the line about an action that was carried out."""
    result = _RESULT_WORDS.get(action.verb, action.verb)
    return f"{result:<9} {action.id[:8]} {action.reason}"


def _question_count_text(count: int) -> str:
    """Return a number of questions in words. `50+ questions` may be more than 50."""
    if count == 1:
        return "1 question"
    plus_sign = "+" if count == _MOST_COUNTED else ""
    return f"{count}{plus_sign} questions"


@command("consolidate", keys=("jobs",), now=True, example="memory consolidate --dry-run")
@_dry_run_option
def consolidate(call: Invocation, *, dry_run: bool) -> int:
    """A part of tidy: expire, decay, upgrade, and merge duplicates."""
    call.checks_overview = not dry_run
    with call.memory() as memory:
        from memoranda.jobs import lifecycle

        outcomes = lifecycle.consolidate(memory, dry_run=dry_run)
        if dry_run and not any(outcome.error for outcome in outcomes):
            text = _plan_text(chain.from_iterable(outcome.actions for outcome in outcomes))
        else:
            text = "\n".join(_job_line(outcome) for outcome in outcomes)
        jobs = {}
        for outcome in outcomes:
            actions = [action.document() for action in outcome.actions]
            jobs[outcome.job] = {"processed": len(actions), "actions": actions}
        return _answer_with_errors(call, text, outcomes, jobs=jobs)


def _job_line(outcome: Outcome) -> str:
    """Return the line about a job that ran: its name, and how many items it processed."""
    result = f"{len(outcome.actions)} items processed"
    if outcome.error:
        result = "error"
    return f"{outcome.job:<15} {result}"


def _answer_with_errors(
    call: Invocation, text: str, outcomes: Sequence[Outcome], **data: Any
) -> int:
    """Print the answer, then the errors of jobs that failed. Returns the exit status.

    text: the answer for a person.
    outcomes: the outcome of each job, some perhaps with an error.
    data: the keys of the JSON document.
    """
    failed_outcomes = [outcome for outcome in outcomes if outcome.error is not None]
    if not failed_outcomes:
        call.answer(text, **data)
        return 0
    messages = [f"{outcome.job}: {outcome.failure}" for outcome in failed_outcomes]
    error = {"code": _error_code(failed_outcomes), "message": "; ".join(messages)}
    call.answer(text, error=error, **data)
    for message in messages:
        output.failure(message)
    return 1


def _error_code(failed_outcomes: Iterable[Outcome]) -> str:
    """Return the code of the first expected error. `internal` if all errors are unexpected."""
    for outcome in failed_outcomes:
        if isinstance(outcome.error, MemorandaError):
            return outcome.error.code
    return "internal"


@command(
    "dream",
    keys={"level": (), "processed": (), "actions": _ACTION_KEYS, "report": ()},
    now=True,
    example="memory dream --level 2 --dry-run",
)
@option("--level", type=Number(-(1 << 30)), default=1, help=_LEVELS_HELP)
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
            text = _plan_text(outcome.actions)
        else:
            text = _dream_text(memory, outcome.report, has_details=is_deep)
        document = {key: outcome.report[key] for key in _DREAM_KEYS}
        return _answer_with_errors(call, text, outcome.outcomes, **document)


def _show_last_dream(call: Invocation, memory: MemorySession) -> int:
    """Show the part of the last dream's report that the caller may see. Returns the exit status."""
    from memoranda.jobs import dream

    stored_report = dream.load_report(memory.home)
    if stored_report is None:
        empty_document = dict.fromkeys(_DREAM_KEYS) | {"processed": 0, "actions": []}
        return _answer_with_errors(call, "No dream yet.", (), **empty_document)
    report = dream.report_seen_by(memory, stored_report)
    text = _dream_text(memory, report, has_details=True)
    document = {key: report[key] for key in _DREAM_KEYS}
    return _answer_with_errors(call, text, (), **document)


def _dream_text(memory: MemorySession, report: dict[str, Any], *, has_details: bool) -> str:
    """Return the text about a run of the dream job, which tidies the notes.

    report: the document of the run. Its key `report` has the details.
    has_details: whether the details follow the headline.
    """
    from memoranda.jobs.dream import report_lines

    lines = [f"Dream (level {report['level']}) processed {report['processed']} items"]
    if has_details:
        lines += report_lines(report["report"], memory.settings.reading_zone)
    return "\n".join(lines)


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
@flag("--list", "List the reminders still to come.", "is_list")
@flag("--all", "With --list: also reminders that have fired.", "includes_fired")
@option("--done", "done_reminder", metavar="ID", help="Acknowledge a reminder.")
def remind(
    call: Invocation,
    *words: str,
    when: Text,
    dry_run: bool,
    is_list: bool,
    includes_fired: bool,
    done_reminder: Text,
    **note_options: Any,
) -> None:
    """Set a reminder at the time TEXT names, in English or Chinese.

    If TEXT has a time that cannot be used, no reminder is set, and the error names the words. Several
    times joined by "and" make several reminders.
    """
    # The command does one of three things. `--list` and `--done` are about present reminders, and
    # TEXT is the text of a new one.
    is_done = done_reminder is not None
    if is_list and is_done:
        raise Usage("--list and --done do not go together")
    if includes_fired and not is_list:
        raise Usage("--all needs --list")
    if (is_list or is_done) and words:
        raise wrong_count(f"accepts 0 arg(s), received {len(words)}")
    if is_list:
        _list_reminders(call, includes_fired=includes_fired)
    elif done_reminder is not None:
        _acknowledge(call, done_reminder, dry_run=dry_run)
    elif words:
        text = content_from(words, scope=note_options["scope"])
        _set_reminders(call, text, when, dry_run=dry_run, **note_options)
    else:
        raise wrong_count("requires at least 1 arg(s), only received 0")


def _acknowledge(call: Invocation, ref: str, *, dry_run: bool) -> None:
    """Mark a reminder as done, so that it is no longer pending.

    ref: the reminder.
    dry_run: whether only to say what would be done.
    """
    with call.memory() as memory:
        from memoranda.jobs import reminders

        if dry_run:
            info = memory.find_memory(ref)
            answer = "Would be done"
        else:
            info = reminders.acknowledge(memory, ref)
            answer = "Done"
        row = documents.note(memory, info, content_of(memory, info))
        call.answer(f"{answer}: {info.id[:8]}", id=info.id, memory=row)


def _set_reminders(
    call: Invocation, text: str, when: str | None, *, dry_run: bool, **note_options: Any
) -> None:
    """Set a reminder for each time that the words name: "today and on Friday" gives two.

    text: the text of the reminder.
    when: the words of the time; None finds them in `text`.
    dry_run: whether only to say when the reminders would fire.
    note_options: the options of a new memory, such as its scope.
    """
    with call.memory() as memory:
        from memoranda.jobs import reminders

        memory.check_scope(note_options["scope"])
        readings = reminders.read_times(memory, text if when is None else when)
        rows = [_reading_row(memory, text, reading, is_stored=not dry_run) for reading in readings]
        if dry_run:
            answers = [f"Would remind: {row['reading']}" for row in rows]
        else:
            notes = reminders.store_all(memory, text, readings, **note_options)
            answers = []
            for row, note in zip(rows, notes, strict=True):
                answers.append(f"Reminder set: {note.id}\n  {row['reading']}")
                row["memory"] = documents.note(memory, note, note.content)
        call.answer_each(answers, rows)


def _reading_row(
    memory: MemorySession, text: str, reading: Reading, *, is_stored: bool
) -> dict[str, Any]:
    """Return the JSON keys of a time that was read from a text.

    text: the text of the reminder.
    reading: the time, and the words that name it.
    is_stored: whether a reminder was made for it.
    """
    local = reading.due.astimezone(memory.settings.reading_zone)
    time_in_words = f"{local:%a} {local.day} {local:%b} {local.year} {local:%H:%M}"
    time_in_words += f" ({one_line(reading.phrase)})"
    if reading.repeat:
        time_in_words += f" repeat {reading.repeat}"
    return {
        "stored": is_stored,
        "text": text,
        "phrase": reading.phrase,
        "due_at": stamp(reading.due),
        "due_local": local.isoformat(),
        "reading": time_in_words,
        "all_day": reading.all_day,
        "repeat": reading.repeat,
        "others": list(reading.others),
    }


def _when_due(reminder: Reminder, zone: tzinfo | None) -> str:
    """Return when a reminder is due, to the minute, or why it has no time.

    zone: the time zone of the minute. None means the zone of this machine.
    """
    if reminder.due is not None:
        return minute(reminder.due, zone)
    return "unreadable date" if reminder.unreadable else "no date"


def _list_reminders(call: Invocation, *, includes_fired: bool) -> None:
    """List the reminders that will fire.

    includes_fired: whether to list also the reminders that have fired.
    """
    with call.memory() as memory:
        from memoranda.jobs import reminders
        from memoranda.jobs.text_reminders import outdated
        from memoranda.note.reminder import CAVEATS

        notes_with_reminders = reminders.listed(memory, fired=includes_fired)
        if call.json:
            infos = (info for info, _ in notes_with_reminders)
            return call.document(reminders=documents.notes(memory, infos).rows)
        # The memory from which a reminder was read may have changed since, or be gone. By the id of
        # each such reminder: the present text of the memory, or None if it is gone.
        waiting = [info for info, reminder in notes_with_reminders if reminder.is_waiting]
        current_texts = outdated(memory, waiting)
        rows = []
        for info, reminder in notes_with_reminders:
            caveat = reminder.caveat
            if info.id in current_texts:
                is_gone = current_texts[info.id] is None
                caveat = CAVEATS["gone" if is_gone else "changed"]
            text = caveat + content_of(memory, info)
            # A pipe gets the first characters of each reminder, a terminal the whole text.
            if not call.on_terminal:
                text = preview(text, 60)
            when = _when_due(reminder, memory.settings.reading_zone)
            rows.append((info.id[:8], when, text))
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
            text = _plan_text(outcome.actions)
        else:
            text = f"Notified {len(outcome.notified)} reminders"
        call.answer(
            text, notified=documents.notes(memory, outcome.notified).rows, pending=outcome.pending
        )
        if outcome.failure:
            output.notice(outcome.failure)


_ITEM_KEYS = ("key", "kind", "text", "refs", "lines", "choices")
_REVIEW_KEYS = "s later, u undo the last answer, q quit"


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
        # One question beyond the limit tells whether there are more. 0 means no limit.
        read_limit = limit + 1 if limit else 0
        items = memory.review(limit=read_limit, kind=kind)
        has_more = limit > 0 and len(items) > limit
        if has_more:
            items = items[:limit]
        if not call.json and sys.stdin.isatty() and sys.stdout.isatty():
            return _ask(memory, items, has_more=has_more)
        rows = [documents.question(item) for item in items]
        lines = []
        for item in items:
            lines += question_lines(item)
        if has_more:
            lines.append(f"More: memory review --limit {2 * limit}")
        call.answer("\n".join(lines) or "Nothing to review.", items=rows, more=has_more)


def _ask(memory: MemorySession, items: list[ReviewItem], *, has_more: bool) -> None:
    """Ask one question after another until none is left or `q` is pressed.

    items: the questions.
    has_more: whether there are more questions than these.
    """
    import click

    answers: list[_AnswerOfReview] = []
    total = f"{len(items)}+" if has_more else str(len(items))
    index = 0
    while index < len(items):
        item = items[index]
        output.text(_question_text(item, f"{index + 1} of {total}"))
        key = click.getchar()
        # `q`, Ctrl-C, Ctrl-D or Escape.
        if key in "q\x03\x04\x1b":
            break
        labels = dict(item.choices)
        if key == "u":
            index = _take_back(memory, answers, index)
        elif key == "s":
            index += 1
        elif key in labels:
            try:
                memory.decide(item, key)
                answers.append(_AnswerOfReview(index, memory.changed))
                output.text(f"-> {labels[key]}")
            except MemorandaError as error:
                # Somebody has changed the memory meanwhile. So this question is skipped.
                output.failure(output.error_sentence(error))
            index += 1
        else:
            output.text("Press one of the keys shown.")
    remedy = " memory undo takes the last answer back." if answers else ""
    output.text(f"Answered {len(answers)} of {plural(len(items), 'question')}.{remedy}")


@dataclass(frozen=True)
class _AnswerOfReview:
    """An answer to a question of the review.

    index: the position of the question.
    change: the number of the change that the answer made.
    """

    index: int
    change: int


def _question_text(item: ReviewItem, position: str) -> str:
    """Return a question as text, with its subject and the keys that answer it.

    position: its number and the number of all questions: `2 of 5`.
    """
    lines = [f"\n{position}  {item.text}", *subject_lines(item)]
    lines += [f"  {letter}  {label}" for letter, label in item.choices]
    return "\n".join([*lines, f"  ({_REVIEW_KEYS})"])


def _take_back(memory: MemorySession, answers: list[_AnswerOfReview], index: int) -> int:
    """Take the last answer back, and remove it from `answers`.

    index: the position of the question that is shown now.

    Returns the position of the question to show next: the question of the answer, or `index` if no
    answer can be taken back.
    """
    if not answers:
        output.text("Nothing answered yet.")
        return index
    try:
        memory.undo(answers[-1].change)
    except CannotUndo as error:
        output.failure(output.error_sentence(error))
        return index
    output.text("Taken back.")
    return answers.pop().index
