"""`upgrade`, `decay`, `consolidate`, `dream` (contract 001, 3, 5 and 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli import memories, output
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Names, Number, command
from commonplace.errors import CommonplaceError
from commonplace.note.model import CATEGORIES, INBOX

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import NoteInfo
    from commonplace.jobs.job import Action, Outcome

ACTION_KEYS = ("job", "verb", "id", "reason", "path")
"""The keys of an action; those its verb has besides follow."""

_ANY = -(1 << 30)
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
_NOTHING = "Nothing to do."


def _lines(actions: Iterable[Action]) -> str:
    """What a dry run prints."""
    return "\n".join(each.line() for each in actions) or _NOTHING


def _documents(actions: Iterable[Action]) -> list[dict[str, Any]]:
    return [each.document() for each in actions]


@command("upgrade", "ID", keys=("memory", "changed"), now=True)
@click.option("--category", type=Names("category", lambda: CATEGORIES), help="One of the categories [by its words].")
@_DRY_RUN
def upgrade(call: Invocation, ref: str, *, category: str | None, dry_run: bool) -> None:
    """Organize a memory: out of the inbox, into a category, for good."""
    if category is not None and (category not in CATEGORIES or category == INBOX):
        raise Failure(f'invalid category "{category}"')
    with call.memory() as memory:
        from commonplace.engine.upkeep import Upkeep
        from commonplace.jobs.job import MemoryState, apply
        from commonplace.jobs.lifecycle import plan_upgrade_of

        upkeep = Upkeep(memory)

        def organized(info: NoteInfo) -> tuple[NoteInfo, Action | None]:
            action = plan_upgrade_of(MemoryState.of(info, upkeep.content(info)), category)
            if action is not None and not dry_run:
                (info,) = apply(upkeep, action, info, None)
            return info, action

        info, action = upkeep.retried(ref, organized)
        said = f"Upgraded memory {info.id} to long-term"
        if dry_run:
            said = _lines([action] if action else [])
        row = memories.record(memory, info, upkeep.content(info))
        call.answer(said, memory=row, changed=action is not None)


@command("decay", keys={"actions": ACTION_KEYS, "decayed": ()}, now=True)
@_DRY_RUN
def decay(call: Invocation, *, dry_run: bool) -> None:
    """Remove organized memories that are old and were never read. `memory undo` brings one back."""
    call.tidies = not dry_run
    with call.memory() as memory:
        from commonplace.jobs import lifecycle
        from commonplace.jobs.job import Round

        outcome = Round(memory, dry_run=dry_run).run("decay", lifecycle.plan_decay)
        if outcome.error is not None:
            raise outcome.error
        count = len(outcome.actions)
        said = _lines(outcome.actions) if dry_run else f"Decayed {count} unused memories"
        call.answer(said, actions=_documents(outcome.actions), decayed=count)


@command("consolidate", keys=("jobs",), now=True)
@_DRY_RUN
def consolidate(call: Invocation, *, dry_run: bool) -> int:
    """Run the lifecycle jobs: expire, decay, upgrade, and merge duplicates."""
    call.tidies = not dry_run
    with call.memory() as memory:
        from commonplace.jobs import lifecycle

        outcomes = lifecycle.consolidate(memory, dry_run=dry_run)
        said = "\n".join(_result(each) for each in outcomes)
        if dry_run and not any(each.error for each in outcomes):
            said = _lines(action for each in outcomes for action in each.actions)
        jobs = {each.job: {"processed": len(each.actions), "actions": _documents(each.actions)} for each in outcomes}
        return _answer(call, said, outcomes, jobs=jobs)


def _result(outcome: Outcome) -> str:
    return f"{outcome.job:<15} " + ("error" if outcome.error else f"{len(outcome.actions)} items processed")


def _answer(call: Invocation, said: str, outcomes: Sequence[Outcome], **data: Any) -> int:
    """Answer with what was done, and say what went wrong. Returns the exit status."""
    failed = [each for each in outcomes if each.error is not None]
    if failed:
        code = next((each.error.code for each in failed if isinstance(each.error, CommonplaceError)), "internal")
        data = {"error": {"code": code, "message": "; ".join(f"{each.job}: {each.failure}" for each in failed)}} | data
    call.answer(said, **data)
    for each in failed:
        output.failure(f"{each.job}: {each.failure}")
    return 1 if failed else 0


@command("dream", keys={"level": (), "processed": (), "actions": ACTION_KEYS, "report": ()}, now=True)
@click.option("--level", type=Number(_ANY), default=1, show_default=True,
              help="1 light: the inbox; 2 medium: also what is similar; 3 deep: also links and reminders.")  # fmt: skip
@_DRY_RUN
@click.option("--report", is_flag=True, help="Show the report of the last dream again.")
def dream(call: Invocation, *, level: int, dry_run: bool, report: bool) -> int:
    """Put memories in order: classify, merge, link, make reminders."""
    from commonplace.jobs import dream

    dream.check(level)
    call.tidies = not (dry_run or report)
    with call.memory() as memory:
        if report:
            return _last_report(call, memory)
        done = dream.run(memory, level, dry_run=dry_run, endpoint=dream.endpoint_of(memory.settings))
        is_deep = level == dream.LEVELS[-1]
        said = _lines(done.actions) if dry_run else _dreamt(memory, done.report, with_report=is_deep)
        keys = ("level", "processed", "actions", "report")
        return _answer(call, said, done.outcomes, **{key: done.report[key] for key in keys})


def _dreamt(memory: Memory, found: dict[str, Any], *, with_report: bool) -> str:
    from commonplace.jobs import report

    head = f"Dream (level {found['level']}) processed {found['processed']} items"
    return "\n".join([head, *(report.lines(found["report"], memory.settings.reading_zone) if with_report else ())])


def _last_report(call: Invocation, memory: Memory) -> int:
    from commonplace.jobs import report

    found = report.load(memory.home)
    if found is None:
        call.answer("No dream yet.", level=None, processed=0, actions=[], report=None)
        return 0
    found = report.seen_by(memory, found)
    keys = ("level", "processed", "actions", "report")
    call.answer(_dreamt(memory, found, with_report=True), **{key: found[key] for key in keys})
    return 0
