"""The only code of the package that prints, and the words in which the command reports errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

from memoranda.errors import (
    Ambiguous,
    MemorandaError,
    NotAFolder,
    NotFound,
    NotInHistory,
    ProjectNotFound,
    ProjectOverlaps,
)
from memoranda.text.unicode import flat, json_escape, one_line, visible

if TYPE_CHECKING:
    import logging

_MOST_WARNINGS = 10
_GAP = "  "
# Columns the last cell of a table has at least, however narrow the terminal.
_LEAST_COLUMNS = 12
# SGR codes of ANSI terminals.
_STYLES = {
    "head": "1",
    "id": "33",
    "kind": "36",
    "dim": "2",
    "error": "31;1",
    "old": "31",
    "new": "32",
}


class Failure(MemorandaError):
    """An error already worded for the command; `code` as in contract 000b, 8. `guesses`: what may
    have been meant.
    """

    def __init__(
        self, message: str, code: str = "invalid", hint: str = "", guesses: Sequence[str] = ()
    ):
        super().__init__(message, f"Did you mean {' or '.join(guesses)}?" if guesses else hint)
        self.code = code


def error_sentence(error: MemorandaError) -> str:
    """The sentence that the command prints after `Error: ` (contract 001, sections 1, 3, 4, 16)."""
    if isinstance(error, NotInHistory):
        return f"no older text of {error.identifier} is kept"
    if isinstance(error, (NotFound, Ambiguous)):
        # Needs the engine, which help pages do not
        from memoranda.engine.overview import complaint

        return complaint(error)
    if isinstance(error, ProjectNotFound):
        return f"no such project: {error.name}"
    if isinstance(error, NotAFolder):
        return f"not a folder: {error.folder}"
    if isinstance(error, ProjectOverlaps):
        return f"{error.folder} overlaps project {error.other}"
    return str(error)


def table_row(template: str, *cells: object) -> str:
    """One line of a table; line breaks and control characters in `cells` are escaped."""
    return template.format(*[flat(str(cell)) for cell in cells])


def text(
    content: str, *, as_json: bool = False, painted: bool = False, paged: bool = False
) -> None:
    """Print `content` and a newline on stdout.

    On a terminal nothing in it acts: control characters, bidi marks and the like are shown as
    escapes. A pipe or file gets the text as it is.

    as_json: show them as JSON escapes.
    painted: leave them, since the cells are clean already.
    paged: use a pager on a terminal if the text is longer than that.

    Raises Failure, BrokenPipeError.
    """
    if is_terminal():
        if not painted:
            content = visible(content, json_escape) if as_json else visible(content)
        if paged and sys.stdin is not None and sys.stdin.isatty() and _page(content):
            return
    write(content + "\n")


def paint(text: str, style: str, stream: object = None) -> str:
    """`text` in colour where the stream [stdout] is a terminal that has colours, and NO_COLOR is
    not set.
    """
    if stream is None:
        stream = sys.stdout
    is_plain = (
        os.environ.get("NO_COLOR")
        or os.environ.get("TERM") == "dumb"
        or not getattr(stream, "isatty", bool)()
    )
    if is_plain:
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def width(text: str) -> int:
    """How many columns of a terminal `text` takes: two for a Chinese character, none for a combining
    accent.
    """
    if text.isascii():
        return len(text)
    return sum(map(_width_of, text))


def _width_of(char: str) -> int:
    """How many columns one character takes."""
    if combining(char):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def fit(text: str, columns: int) -> str:
    """`text` cut to this many columns, with an ellipsis when it was longer."""
    if width(text) <= columns:
        return text
    characters = []
    taken_columns = 1
    for char in text:
        taken_columns += width(char)
        if taken_columns > columns:
            break
        characters.append(char)
    return "".join(characters) + "…"


def columns() -> int:
    """How many columns the terminal has."""
    # 6 ms
    import shutil

    return shutil.get_terminal_size().columns


def _printable(cell: str) -> str:
    """A cell in one line, with a sign for every character that a terminal might act on."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in one_line(cell))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table as wide as the terminal, columns by the width of their characters; the last
    one is cut to what the others leave. Control characters are shown as they are in no text, so no
    cell can move the cursor."""
    cells = [list(map(_printable, row)) for row in rows]
    widths = [max(map(width, column)) for column in zip(head, *cells, strict=True)]
    room = columns() - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)

    def padded(row: Sequence[str]) -> list[str]:
        return [cell + " " * (size - width(cell)) for cell, size in zip(row, widths, strict=True)]

    lines = [paint(_GAP.join(padded(head)).rstrip(), "head")]
    for row in cells:
        shown_cells = [*padded(row)[:-1], fit(row[-1], max(room, _LEAST_COLUMNS))]
        lines.append(
            _GAP.join(
                [paint(shown_cells[0], "id"), paint(shown_cells[1], "kind"), *shown_cells[2:]]
            )
        )
    return lines


def _page(content: str) -> bool:
    """Show `content` in the pager: PAGER or less. Returns whether it was shown.

    False if it fits on the screen, or if there is no pager.
    """
    import shlex
    import shutil
    import subprocess

    size = shutil.get_terminal_size()
    if sum(1 + len(line) // max(size.columns, 1) for line in content.split("\n")) < size.lines:
        return False
    command = shlex.split(os.environ.get("PAGER", "less")) or ["cat"]
    if command[0] == "cat":
        return False
    try:
        pager = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            env={"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ},
        )
    except OSError:
        return False
    # The reader has seen enough
    with suppress(OSError, KeyboardInterrupt):
        pager.communicate(content.encode("utf-8", "backslashreplace") + b"\n")
    while pager.poll() is None:
        with suppress(KeyboardInterrupt):
            pager.wait()
    return True


def json_value(value: Any) -> None:
    """Print one JSON value on stdout."""
    import json

    text(json.dumps(value, ensure_ascii=False, indent=2), as_json=True)


def is_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout is not None and sys.stdout.isatty()


def notice(line: str) -> None:
    """Print on stderr, if there is one. Nothing in it acts on a terminal."""
    if sys.stderr is not None:
        sys.stderr.write(visible(line) + "\n")


def warnings(texts: Sequence[str]) -> None:
    """Print the first few warnings on stderr, each on its line, and the number of the others."""
    for warning in texts[:_MOST_WARNINGS]:
        notice(flat(f"warning: {warning}"))
    hidden_count = len(texts) - _MOST_WARNINGS
    if hidden_count > 0:
        notice(f"warning: {hidden_count} more like these")


def failure(message: str, *, lines: bool = False) -> None:
    """Print an error message on stderr: one line, unless it is a reply of several `lines`."""
    if sys.stderr is not None:
        message = message.removeprefix("Error: ")
        if lines:
            shown_text = visible(message)
        else:
            shown_text = flat(message)
        sys.stderr.write(f"{paint('Error:', 'error', sys.stderr)} {shown_text}\n")


def log_form(form: str) -> logging.Formatter:
    """How the lines of a log are written: each entry on one line, and no secret in it."""
    import logging

    from memoranda.text.gate import default_rules

    class Line(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return flat(default_rules().redacted(super().format(record)))

    return Line(form)


def flush() -> None:
    """Flush both streams and ignore that one is closed or has no reader."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def write(content: str = "", *, flush: bool = False) -> None:
    """Write `content` to stdout. Raises Failure, and BrokenPipeError if the reader is gone.

    flush: also write everything that waits.
    """
    if sys.stdout is None:
        raise Failure("cannot write the output: stdout is closed", "storage")
    try:
        sys.stdout.write(content)
        if flush:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence()
        raise Failure(f"cannot write the output: {error.strerror}", "storage") from None


def silence() -> None:
    """Drop what is still buffered for stdout; the interpreter would report it at exit otherwise."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)


def confirmed(question: str) -> bool:
    """Whether the person at the terminal says yes to a question on stderr."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar on stderr.

    Yields a callback `(done, total)`, or None without a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    import click

    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def show(finished: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(finished - bar.pos)

        yield show
