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
    CannotUndo,
    ConfigFileError,
    MemorandaError,
    NotAFolder,
    NotFound,
    NoTime,
    NotInHistory,
    ProjectNotFound,
    ProjectOverlaps,
    choices,
)
from memoranda.text.unicode import flat, json_escape, one_line, visible

if TYPE_CHECKING:
    import logging

# Further warnings are only counted.
_MOST_WARNINGS = 10
_GAP = "  "
# The last cell of a table has at least this many columns, even on a narrow terminal.
_LEAST_COLUMNS = 12
# An entry of a log is cut to this many characters.
_MOST_LOGGED_CHARACTERS = 4_000
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
    """An error with a message that the command prints as it is.

    code: the code of the error for programs, such as `not_found` (contract 000b, 8).
    hint: a further line that says what to do. "" for none.
    guesses: names that the person may have meant. If there are any, they are the hint.
    """

    def __init__(
        self, message: str, code: str = "invalid", hint: str = "", guesses: Sequence[str] = ()
    ):
        if guesses:
            hint = f"Did you mean {' or '.join(guesses)}?"
        super().__init__(message, hint)
        self.code = code


def error_sentence(error: MemorandaError) -> str:
    """Return the sentence that the command prints after `Error: ` (contract 001, 1, 3, 4, 16)."""
    if isinstance(error, NotInHistory):
        return f"no older text of {error.identifier} is kept"
    if isinstance(error, (NotFound, Ambiguous)):
        # This import loads the engine, which help pages do not need.
        from memoranda.engine.overview import complaint

        return complaint(error)
    if isinstance(error, ProjectNotFound):
        return f"no such project: {error.name}"
    if isinstance(error, NotAFolder):
        return f"not a folder: {error.folder}"
    if isinstance(error, ProjectOverlaps):
        return f"{error.folder} overlaps project {error.other}"
    return str(error)


# The line below an error of a class that says which command helps. The first class counts.
_REMEDIES: tuple[tuple[type[MemorandaError], str], ...] = (
    (NotInHistory, "See which changes there were: memory log"),
    (NotFound, "Find it: memory search WORDS, or memory list. If it was deleted: memory log"),
    (NoTime, "Name one, as in: memory remind call Bob tomorrow at 3pm; or add --at WHEN."),
    (ConfigFileError, "Correct the file, or remove it; then the defaults count."),
)
_NUMBERS_OF_CHANGES = "See the changes with their numbers and who made them: memory log"


def remedy(error: MemorandaError) -> str:
    """Return the line below an error that says what to do. "" if no such line is known."""
    if error.hint:
        return error.hint
    if isinstance(error, ProjectNotFound):
        return choices(error.name, error.names, "Projects")
    if isinstance(error, NotFound) and error.suggestions:
        return f"Did you mean {' or '.join(error.suggestions)}?"
    if isinstance(error, CannotUndo) and not error.change:
        return _NUMBERS_OF_CHANGES
    for kind, line in _REMEDIES:
        if isinstance(error, kind):
            return line
    return ""


def table_row(template: str, *cells: object) -> str:
    """Return one line of a table. Line breaks and control characters in `cells` are escaped.

    template: the line with `{}` for each cell.
    """
    return template.format(*[flat(str(cell)) for cell in cells])


def text(
    content: str, *, as_json: bool = False, painted: bool = False, paged: bool = False
) -> None:
    """Print `content` and a newline on stdout.

    On a terminal, control characters, bidi marks and the like are shown as escapes, so that no text
    can act on the terminal. A pipe or file gets the text as it is.

    as_json: whether to show these characters as JSON escapes.
    painted: whether to print the characters unchanged, because the caller has cleaned the cells and
        has added colours.
    paged: whether to use a pager if the text is longer than the terminal.

    Raises Failure, BrokenPipeError.
    """
    if is_terminal():
        if not painted:
            content = visible(content, json_escape) if as_json else visible(content)
        if paged and sys.stdin is not None and sys.stdin.isatty() and _show_in_pager(content):
            return
    write(content + "\n")


def paint(text: str, style: str, stream: object = None) -> str:
    """Return `text` in colour, or unchanged if colours are not wanted.

    Colours are used if the stream is a terminal with colours and NO_COLOR is not set.

    style: the name of a style in `_STYLES`, such as `head`.
    stream: the stream that will get the text. None means stdout.
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
    """Return how many columns of a terminal `text` takes.

    A Chinese character takes two columns, a combining accent none.
    """
    if text.isascii():
        return len(text)
    return sum(map(_width_of, text))


def _width_of(char: str) -> int:
    """Return how many columns of a terminal one character takes."""
    if combining(char):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def fit(text: str, columns: int) -> str:
    """Return `text`, cut to this many columns. A cut text ends in an ellipsis."""
    if width(text) <= columns:
        return text
    characters = []
    # The ellipsis takes one column.
    taken_columns = 1
    for char in text:
        taken_columns += width(char)
        if taken_columns > columns:
            break
        characters.append(char)
    return "".join(characters) + "…"


def columns() -> int:
    """Return how many columns the terminal has."""
    # This import takes 6 ms.
    import shutil

    return shutil.get_terminal_size().columns


def _printable(cell: str) -> str:
    """Make a cell safe to print: one line, with escapes for characters that act on a terminal."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in one_line(cell))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table that is as wide as the terminal.

    Every column is as wide as its widest cell. Only the last column is cut, to the space that the
    others leave. Control characters are escaped, so that no cell can move the cursor.

    head: the titles of the columns.
    rows: the cells of each row: an id, a kind, and any others.
    """
    printable_rows = [[_printable(cell) for cell in row] for row in rows]
    column_widths = []
    for column in zip(head, *printable_rows, strict=True):
        column_widths.append(max(width(cell) for cell in column))
    # The space that the columns before the last one take, each with the gap behind it.
    taken_width = sum(column_width + len(_GAP) for column_width in column_widths[:-1])
    last_width = max(columns() - taken_width, _LEAST_COLUMNS)

    lines = [paint(_GAP.join(_padded(head, column_widths)).rstrip(), "head")]
    for row in printable_rows:
        cells = _padded(row[:-1], column_widths[:-1])
        cells.append(fit(row[-1], last_width))
        # The first two cells of a row have colours of their own.
        id, kind, *other_cells = cells
        lines.append(_GAP.join([paint(id, "id"), paint(kind, "kind"), *other_cells]))
    return lines


def _padded(cells: Sequence[str], column_widths: Sequence[int]) -> list[str]:
    """Return cells with blanks at their ends, so that each is as wide as its column."""
    padded_cells = []
    for cell, column_width in zip(cells, column_widths, strict=True):
        padded_cells.append(cell + " " * (column_width - width(cell)))
    return padded_cells


def _show_in_pager(content: str) -> bool:
    """Show `content` in the pager PAGER, or in `less`.

    Returns False, and shows nothing, if the text fits on the screen or the pager does not start.
    """
    import shlex
    import shutil
    import subprocess

    size = shutil.get_terminal_size()
    columns = max(size.columns, 1)
    # The terminal breaks a long line into several.
    screen_lines = sum(1 + len(line) // columns for line in content.split("\n"))
    if screen_lines < size.lines:
        return False
    # `PAGER=cat`, or an empty PAGER, means that the user wants no pager.
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
    # The reader may leave the pager, or press Ctrl+C, before the whole text is written.
    with suppress(OSError, KeyboardInterrupt):
        pager.communicate(content.encode("utf-8", "backslashreplace") + b"\n")
    # Ctrl+C is meant for the pager, which decides what it does. Wait until it ends.
    while pager.poll() is None:
        with suppress(KeyboardInterrupt):
            pager.wait()
    return True


def json_value(value: Any) -> None:
    """Print one JSON value on stdout."""
    import json

    text(json.dumps(value, ensure_ascii=False, indent=2), as_json=True)


def is_terminal() -> bool:
    """Whether stdout is a terminal, so that a person reads the output."""
    return sys.stdout is not None and sys.stdout.isatty()


def notice(line: str) -> None:
    """Print a line on stderr, if the process has one. Control characters are escaped."""
    if sys.stderr is not None:
        sys.stderr.write(visible(line) + "\n")


def warnings(texts: Sequence[str]) -> None:
    """Print the first few warnings on stderr, each on its line, then the number of further ones."""
    for warning in texts[:_MOST_WARNINGS]:
        notice(flat(f"warning: {warning}"))
    hidden_count = len(texts) - _MOST_WARNINGS
    if hidden_count > 0:
        notice(f"warning: {hidden_count} more like these")


def failure(message: str, *, lines: bool = False) -> None:
    """Print an error message on stderr.

    lines: whether to keep the line breaks of the message. Without them, it becomes one line.
    """
    if sys.stderr is not None:
        message = message.removeprefix("Error: ")
        if lines:
            shown_text = visible(message)
        else:
            shown_text = flat(message)
        sys.stderr.write(f"{paint('Error:', 'error', sys.stderr)} {shown_text}\n")


def log_form(form: str) -> logging.Formatter:
    """Return a formatter that writes each entry of a log on one short line and redacts secrets.

    form: the format of an entry, as `logging.Formatter` takes it.
    """
    import logging

    from memoranda.text.gate import default_rules

    class OneLineFormatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            text = super().format(record)
            return flat(default_rules().redacted_beginning(text, _MOST_LOGGED_CHARACTERS))

    return OneLineFormatter(form)


def flush() -> None:
    """Flush stdout and stderr. A closed stream, or one without a reader, is ignored."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def write(content: str = "", *, flush: bool = False) -> None:
    """Write `content` to stdout. Raises Failure, and BrokenPipeError if the reader has ended.

    flush: whether to write all buffered text now.
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
    """Send stdout to the null device, so that text still buffered causes no error at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)


def confirmed(question: str) -> bool:
    """Print a question on stderr. Return whether the person at the terminal answers yes."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar on stderr while the context is open.

    Yield a function to call with (steps done, all steps). Yield None without a terminal.
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
