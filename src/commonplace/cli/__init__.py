"""The `memory` command (contract 001): a view of the engine for the shell.

This module holds the group of commands and the one outermost handler; each group of commands has a
module of its own, imported when one of them is asked for. Only output.py prints.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from commonplace.cli import output
from commonplace.cli.invocation import Invocation

if TYPE_CHECKING:
    import click

    from commonplace.cli.syntax import Group

COMMANDS = {
    "write": "notes:write",
    "read": "notes:read",
    "list": "notes:list_memories",
    "search": "notes:search",
    "context": "context:context",
    "delete": "notes:delete",
    "tag": "notes:tag",
    "link": "links:link",
    "unlink": "links:unlink",
    "backlinks": "links:backlinks",
    "resolve-links": "links:resolve_links",
    "ingest": "ingesting:ingest",
    "upgrade": "lifecycle:upgrade",
    "decay": "lifecycle:decay",
    "consolidate": "lifecycle:consolidate",
    "dream": "lifecycle:dream",
    "remind": "reminding:remind",
    "notify": "reminding:notify",
    "status": "upkeep:status",
    "doctor": "upkeep:doctor",
    "reindex": "upkeep:reindex",
    "embed": "upkeep:embed",
    "log": "history:log",
    "undo": "history:undo",
    "restore": "history:restore",
    "project": "projects:project",
    "graph": "graph:graph",
    "export": "exchange:export",
    "import": "exchange:import_memories",
    "serve": "daemon:serve",
    "mcp": "serving:mcp",
    "call": "serving:call",
    "agent": "agent:agent",
    "completion": "shell:completion",
    "help": "shell:help_command",
}
"""Every command with the place of its code below commonplace.cli."""

COMPLETE_VARIABLE = "_MEMORY_COMPLETE"
INTERRUPTED = 130
REPORT_IT = "Please report this line with the command you ran and `memory --version`."


def run() -> NoReturn:
    """The `memory` program: `main`, then out at once.

    Collecting garbage and tidying up the interpreter take a fifth of a short command's time, and the system
    frees the memory anyway; `mcp` turns collection on again.
    """
    gc.disable()
    status = main()
    output.flush()
    os._exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (default: those of the process) and return its exit status."""
    invocation = Invocation()
    output.prepare()
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments), invocation)
    except BrokenPipeError:
        output.silence()
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # the outermost loop: reported, never swallowed
        return _failed(invocation, _report(error), "internal", 1, REPORT_IT)


def _run(arguments: list[str], invocation: Invocation) -> int:
    """Run the command; foreseen errors are said here. Returns the exit status."""
    import click

    from commonplace.errors import CommonplaceError

    try:
        if missing := _unsupported():
            return _failed(invocation, missing, "storage", 1)
        try:
            status = _invoke(arguments, invocation)
        except click.exceptions.Exit as ended:
            status = ended.exit_code
        output.finish()
        return status
    except click.Abort:
        return INTERRUPTED
    except click.UsageError as error:
        from commonplace.cli.syntax import usage_hint, usage_sentence

        options = arguments[: arguments.index("--")] if "--" in arguments else arguments
        invocation.json = invocation.json or "--json" in options
        return _failed(invocation, usage_sentence(error), "usage", 2, usage_hint(error))
    except CommonplaceError as error:
        from commonplace.cli.failures import further, sentence

        return _failed(invocation, sentence(error), error.code, error.exit_code, **further(error))


def _invoke(arguments: list[str], invocation: Invocation) -> int:
    group = command_group()
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(group, {"obj": invocation}, "memory", COMPLETE_VARIABLE, instruction)
    with group.make_context("memory", arguments, obj=invocation) as context:
        return group.invoke(context) or 0


def command_group() -> Group:
    """The click group of all commands."""
    import click

    from commonplace.cli.syntax import Group

    def show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            from commonplace import __version__

            output.text(f"memory {__version__}")
            context.exit()

    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show_version,
        help="Show the version and exit.",
    )
    return Group("memory", COMMANDS, now=True, params=[version], help=_HELP)


_HELP = """One memory for you and your agents: plain Markdown notes on your disk.

Write, read, list and search memories, link them, take changes back, serve them to agents.
"""


def _unsupported() -> str | None:
    """Why this system cannot keep a home, None when it can."""
    try:
        import fcntl
    except ImportError:
        fcntl = None  # type: ignore[assignment]
    if sys.platform == "win32" or fcntl is None:
        return "memory needs a POSIX system with file locks (Linux, macOS, WSL); this one has none"
    return None


def _failed(
    invocation: Invocation, message: str, code: str, status: int, hint: str | None = None, **further: object
) -> int:
    """Say what went wrong, once, on stderr; with `--json` also as the document on stdout, with keys `further`."""
    if invocation.json:
        invocation.document(error={"code": code, "message": message} | further)
    output.failure(message)
    if hint:
        output.notice(hint)
    return status


def _report(error: Exception) -> str:
    """One sentence for a failure nobody foresaw, with the place in our code."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "?")
        if str(module).startswith("commonplace"):
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"something went wrong inside commonplace ({what}, at {place})"
