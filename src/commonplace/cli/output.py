"""The only code of the package that prints."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from commonplace.cli.failures import Failure


def prepare() -> None:
    """UTF-8 on both streams whatever the locale; what UTF-8 cannot hold is shown escaped."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def text(content: str) -> None:
    """Print `content` and a newline on stdout."""
    with _writing():
        sys.stdout.write(content + "\n")


def now(content: str) -> None:
    """As `text`, for a program that goes on: handed over at once."""
    text(content)
    finish()


def document(value: dict[str, Any]) -> None:
    """Print one JSON document on stdout."""
    text(json.dumps(value, ensure_ascii=False, indent=2))


def notice(line: str) -> None:
    """Print a line on stderr, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")


def errors() -> TextIO:
    """Where a log goes that has no file."""
    return sys.stderr


def failure(message: str) -> None:
    """Say on stderr, once, what went wrong."""
    notice(message if message.startswith("Error: ") else f"Error: {message}")


def finish() -> None:
    """Hand over everything printed. Raises BrokenPipeError when nobody listens any more, else Failure."""
    with _writing():
        sys.stdout.flush()


def flush() -> None:
    """Hand over what is left on both streams, as far as anybody takes it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or nobody reads any more
            stream.flush()


@contextmanager
def _writing() -> Iterator[None]:
    """Inside, what the system says against writing stdout is a Failure; a reader that left stays what it is."""
    if sys.stdout is None:
        raise Failure("cannot write the output: stdout is closed", "storage")
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        silence()
        raise Failure(f"cannot write the output: {error.strerror}", "storage") from None


def silence() -> None:
    """Drop what is left to print, or the interpreter complains of it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr as a callback `(done, total)`; None when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    import click

    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def show(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        yield show
