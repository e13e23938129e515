"""`export` and `import` (contract 001, 12): memories as JSON Lines, and moving in from other programs."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import click

from commonplace.cli import output
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.moving import KINDS, move_in
from commonplace.cli.notes import CATEGORY_NAMES
from commonplace.cli.syntax import Names, Usage, command
from commonplace.errors import CommonplaceError
from commonplace.query import check_memory
from commonplace.store.files import reason

_BLOCK = 1 << 20


@command("export", keys=("exported", "file"))
@click.option("--output", "file", metavar="FILE", help="Where to write; `-` or nothing is stdout.")
@click.option("--category", type=CATEGORY_NAMES, help="Only this category.")
@click.option("--scope", help="Only this scope: global or agent:NAME.")
def export(call: Invocation, *, file: str | None, category: str | None, scope: str | None) -> None:
    """Write memories as JSON Lines, oldest first, with all that is known of them.

    `memory import` reads them back. With --json and no FILE the lines themselves are printed.
    """
    from commonplace.transfer.jsonl import exported

    check_memory(category, scope=scope)
    gc.enable()  # a short command does without
    place = None if file in (None, "", "-") else Path(file or "").expanduser()
    with call.memory(watch=True) as memory:
        lines = exported(memory, category, scope)
        first = next(lines, None)
        if first is None:
            output.notice("No memories to export.")
            if place is not None and call.json:
                call.document(exported=0, file=None)
            return
        lines = chain([first], lines)
        if place is None:
            for line in lines:
                output.text(line)
            return
        count = _written(place, lines)
        call.answer(f"Exported {count} memories to {file}", exported=count, file=file)


def _written(place: Path, lines: Iterable[str]) -> int:
    """Write the lines to a file, which stays as it was should that fail; how many they are. Raises Failure."""
    target = Path(os.path.realpath(place))
    temporary: str | None = None
    try:
        if target.exists() and not target.is_file():  # a pipe or a device
            with target.open("wb") as stream:
                return _copied(stream, lines)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".export-", delete=False) as stream:
            temporary = stream.name
            count = _copied(stream, lines)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(temporary, target)
        temporary = None
        return count
    except OSError as error:
        raise Failure(f"cannot write {place}: {reason(error)}", "storage") from None
    finally:
        if temporary is not None:
            os.unlink(temporary)


def _copied(stream: BinaryIO, lines: Iterable[str]) -> int:
    count = 0
    for line in lines:
        stream.write(line.encode("utf-8", "backslashreplace") + b"\n")
        count += 1
    return count


@command("import", keys=("imported", "updated", "unchanged", "skipped"))
@click.option("--input", "file", metavar="FILE", help="JSON Lines of `memory export`; `-` or nothing is stdin.")
@click.option("--from", "moved", nargs=2, type=(Names("kind", lambda: KINDS), str), metavar="KIND PATH",
              help=f"Move another program's store in: {', '.join(KINDS)}.")  # fmt: skip
@click.option("--project", metavar="NAME", help="With --from basic-memory: the project its notes go to.")
@click.option("--dry-run", is_flag=True, help="Only say what would be imported.")
@click.option("--skip-bad", is_flag=True, help="Leave out what cannot be read, import the rest.")
def import_memories(call: Invocation, *, file: str | None, moved: tuple[str, str] | None, project: str | None,
                    dry_run: bool, skip_bad: bool) -> None:  # fmt: skip
    """Take memories in, with nothing lost. Doing it twice is doing it once.

    Everything is looked at before anything is written. Of a memory that is there already the newer one stays;
    the other is in the history.
    """
    context = click.get_current_context()
    if moved and file is not None:
        raise Usage("--from names its own PATH: leave out --input", context)
    if project is not None and (not moved or moved[0] != "basic-memory"):
        raise Usage("--project needs --from basic-memory", context)
    if moved:
        return move_in(call, *moved, project=project, dry_run=dry_run, skip_bad=skip_bad)
    from commonplace.transfer.jsonl import Import, Tally

    gc.enable()  # a short command does without
    with _opened(file) as given, call.memory(watch=True) as memory, _seekable(given, memory.home) as source:
        importing = Import(memory, source, skip_bad=skip_bad)
        if dry_run:
            say = (lambda _: None) if call.json else output.text
            tally = importing.plan(say, output.notice)
            call.answer(f"Would import {tally.imported + tally.updated} memories", **asdict(tally))
            return
        if not skip_bad:
            importing.check()
        tally = Tally()
        try:
            with output.progress("importing") as progress:
                importing.run(tally, output.notice, progress)
        except CommonplaceError:
            if done := tally.imported + tally.updated:
                output.notice(f"{done} memories were imported before that; import the same again to go on")
            raise
        call.answer(f"Imported {tally.imported + tally.updated} memories", **asdict(tally))


@contextmanager
def _opened(file: str | None) -> Iterator[BinaryIO]:
    """The input as bytes. Raises Failure naming the file."""
    if file in (None, "-"):
        if sys.stdin is None:
            raise Failure("cannot read the input: stdin is closed")
        yield sys.stdin.buffer
        return
    try:
        stream = Path(file or "").expanduser().open("rb")
    except FileNotFoundError:
        raise Failure(f"open input file: {file}: no such file", "not_found") from None
    except OSError as error:
        raise Failure(f"open input file: {file}: {reason(error)}", "storage") from None
    with stream:
        yield stream


@contextmanager
def _seekable(stream: BinaryIO, home: Path) -> Iterator[BinaryIO]:
    """`stream`, by way of an unnamed file on the home's disk if it can be read but once."""
    from commonplace.store.layout import Layout

    if stream.seekable() and stream is not getattr(sys.stdin, "buffer", None):
        yield stream
        return
    try:
        with tempfile.TemporaryFile(dir=Layout(home).private) as spooled:
            while block := stream.read(_BLOCK):
                spooled.write(block)
            yield spooled
    except OSError as error:
        raise Failure(f"cannot read the input: {reason(error)}", "storage") from None
