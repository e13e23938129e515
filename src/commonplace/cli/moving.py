"""`import --from KIND PATH`: another program's store moved in (contracts 002, 11 and 004, 7; docs/moving-in.md)."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commonplace.cli import output
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Usage
from commonplace.errors import CommonplaceError

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.transfer.moving import Plan

KINDS = ("graph-jsonl", "agent-memory", "memory-bank", "basic-memory")


def move_in(call: Invocation, kind: str, path: str, *, project: str | None, dry_run: bool, skip_bad: bool) -> None:
    """Plan, tell what stays behind, and unless `dry_run` carry it out. Raises Usage for a kind there is not."""
    if kind not in KINDS:
        message = f'invalid value "{kind}" for --from: must be one of {", ".join(KINDS)}'
        raise Usage(message, click.get_current_context())
    gc.enable()  # a short command does without
    place = Path(path).expanduser()
    with call.memory(watch=True) as memory:
        if kind == "graph-jsonl":
            return _graph(call, memory, path, dry_run)
        _check_apart(memory.home, place)
        if kind == "agent-memory":
            from commonplace.transfer import agent_memory

            plan, what = agent_memory.plan(memory, place, skip_bad=skip_bad), "entries"
        elif kind == "memory-bank":
            plan, what = _banks(memory, place), "files"
        else:
            from commonplace.transfer import copying

            plan, what = copying.vault(memory, place, project or memory.default_project), "files"
        _tell_skipped(plan)
        number = plan.count("import") + plan.count("update")
        said = f"{number} {what} ({plan.unchanged} were there, {len(plan.skipped)} skipped)"
        _carry_out(call, plan, dry_run, said)


def _graph(call: Invocation, memory: Memory, path: str, dry_run: bool) -> None:
    """The same as `memory graph import`."""
    from commonplace.cli import graph
    from commonplace.engine.entities import parse_graph
    from commonplace.transfer.graph import plan

    found = parse_graph(graph.text_of(path))
    made = plan(graph.graph_at(memory, graph.place_for(call, path)), found)
    for number, why in found.bad:
        output.notice(f"line {number}: {why}")
    entities = len({each.name for each, _ in found.entities})
    relations = len({each.triple for each in found.relations})
    said = f"{entities} entities, {relations} relations ({len(found.bad)} lines skipped)"
    _carry_out(call, made, dry_run, said)


def _check_apart(home: Path, place: Path) -> None:
    """Raises Failure for a folder with the home in it, unless the home is hidden there."""
    inner = home.resolve()
    if inner.is_relative_to(place.resolve()) and not any(
        part.startswith(".") for part in inner.relative_to(place.resolve()).parts
    ):
        raise Failure(f"{place} holds the memory home itself: {home}")


def _banks(memory: Memory, place: Path) -> Plan:
    """A plain folder of Markdown files, such as a repository's `memory-bank/`, is the bank of its repository,
    else of a project of its name, as the tools would find it."""
    from commonplace.faces.bank import names, repository
    from commonplace.transfer import copying

    def named(folder: Path) -> tuple[str, str]:
        found = repository.find(str(folder))
        if found is not None:
            return "code", names.id_of_repository(found.name)
        folder = folder.resolve()
        plain = folder.name.lower().strip("._-").replace("_", "-") in ("memory-bank", "memorybank")
        return "projects", names.id_of_repository((folder.parent if plain else folder).name)

    return copying.banks(memory, place, named, names.is_id)


def _tell_skipped(plan: Plan) -> None:
    for name, why in plan.skipped:
        output.notice(f"skipped {name}: {why}")


def _carry_out(call: Invocation, plan: Plan, dry_run: bool, said: str) -> None:
    if dry_run and not call.json:
        for line in plan.lines():
            output.text(line)
    if not dry_run:
        done = 0

        def show(now: int, total: int) -> None:
            nonlocal done
            done = now
            if progress is not None:
                progress(now, total)

        try:
            with output.progress("importing") as progress:
                plan.carry_out(show)
        except CommonplaceError:
            if done:
                output.notice(f"{done} of {len(plan.items)} were imported before that; import the same again to go on")
            raise
    counts = {"imported": plan.count("import"), "updated": plan.count("update")}
    call.answer(f"{'Would import' if dry_run else 'Imported'} {said}", **counts, unchanged=plan.unchanged,
                skipped=len(plan.skipped))  # fmt: skip
