"""The `memory` command (contract 001): a view of the engine for the shell.

This module holds the table of commands and the outermost error handler; each group of commands has
a module, imported when one of them is run. Only output.py prints. Everything else is imported in
`main`, because an interrupt before `run` is reached would print a traceback.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # it has no stub; `signal` imports more
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    import click

    from memoranda.cli.invocation import Invocation
    from memoranda.cli.syntax import Group
    from memoranda.errors import MemorandaError

# The section of the help, the module, its commands.
_MODULES = (
    ("Memories", "memory_commands", "write supersede read delete tag link unlink resolve-links"),
    ("Memories", "search_commands", "list recent search context backlinks orphans"),
    ("Memories", "profile_commands", "profile"),
    ("Memories", "memory_commands", "edit"),
    ("Moving in and out", "exchange_commands", "ingest"),
    (
        "Upkeep and reminders",
        "lifecycle_commands",
        "tidy upgrade decay consolidate archive pin unpin dream remind notify review",
    ),
    ("Health", "upkeep_commands", "status doctor reindex embed"),
    ("Health", "bench_command", "bench"),
    ("Memories", "transcript_commands", "transcripts"),
    ("History", "history_commands", "log diff undo restore erase"),
    ("Projects and settings", "project_commands", "project"),
    ("Projects and settings", "settings_commands", "config"),
    ("Graph and entries", "tool_commands", "kv"),
    ("Moving in and out", "exchange_commands", "graph export import backup mirror move-home"),
    ("For agents and programs", "daemon_commands", "serve page"),
    ("For agents and programs", "settings_commands", "token space"),
    ("For agents and programs", "install_commands", "install uninstall"),
    ("For agents and programs", "tool_commands", "mcp call agent"),
    ("For agents and programs", "hook_commands", "hook"),
    ("This command", "syntax", "completion help man"),
)
COMMANDS: dict[str, str] = {}
for _, _module, _names in _MODULES:
    COMMANDS |= dict.fromkeys(_names.split(), _module)
"""Every command with its module below memoranda.cli."""

# Codes of errors about a time. Their JSON has `candidates`: the times that the text may mean
# (contract 001, 8).
_TIME_ERRORS = ("ambiguous_time", "past_time", "no_time", "invalid_time", "vague_time")
# The exit status of a program that Ctrl+C ended: 128 and the number of SIGINT.
_INTERRUPTED = 130
# Garbage is collected only after this many new objects. A short command makes 40,000.
_OBJECTS_BEFORE_COLLECTION = 100_000
_NO_LOCKS = "memory needs a POSIX system with file locks (Linux, macOS, WSL); this one has none"
_REPORT_IT = "Please report this line with the command you ran and `memory --version`."


def run() -> NoReturn:
    """Run the `memory` program: call `main` with little garbage collection, then exit immediately.

    Collecting garbage and finalizing the interpreter take a fifth of a short command's time, and
    the system frees the memory anyway. A long command makes enough objects for a collection.

    Until the command itself runs, Ctrl+C ends the process immediately. An import could turn a
    KeyboardInterrupt into another error.
    """
    # A client waits for its hook. The word may come behind one option with its value, `--home DIR`.
    if "hook" in sys.argv[1:4]:
        _run_usual_hook(sys.argv[1:])
    if sys.getfilesystemencoding() != "utf-8":
        _start_in_utf8()
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    if _end_at_interrupt():
        # The command itself must be able to clean up, so Ctrl+C raises again once it starts.
        status = main(starting=_raise_at_interrupt)
    else:
        status = main()
    from memoranda.cli import output

    output.flush()
    os._exit(status)


def _end_at_interrupt() -> bool:
    """Let Ctrl+C end the process immediately. Return whether it does.

    If the script that runs this command ignores Ctrl+C, the command ignores it, too.
    """
    if _signal.getsignal(_signal.SIGINT) is not _signal.default_int_handler:
        return False
    _signal.signal(_signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    return True


def _raise_at_interrupt() -> None:
    """Let Ctrl+C raise KeyboardInterrupt again, which is Python's default."""
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def _run_usual_hook(arguments: list[str]) -> None:
    """Answer the event of a hook and exit, if the command line is the usual one.

    The daemon answers most events. Without a daemon, this process answers. Neither needs the code
    that parses command lines, which takes time to import.
    """
    from memoranda.clients import hook_relay

    answer = hook_relay.relayed(arguments)
    if answer is not None:
        _end_with(answer)
    # Other options, an agent that the environment names, and other encodings need the usual way
    # through the code that parses command lines.
    usual_arguments = hook_relay.usual_arguments(arguments)
    if usual_arguments is None:
        return
    is_utf8 = sys.getfilesystemencoding() == "utf-8"
    if os.environ.get("MEMORY_AGENT") or not is_utf8:
        return
    home, client, name = usual_arguments
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    _end_at_interrupt()
    from memoranda.cli.hook_run import run_hook, settings_of

    run_hook(client, name, lambda: settings_of(home))
    os._exit(0)


def _end_with(text: str) -> NoReturn:
    """Print a text, unless it is empty, and exit immediately."""
    if text:
        from memoranda.cli import output

        try:
            output.text(text)
            output.write(flush=True)
        except BrokenPipeError:
            # The client has ended without waiting for the text.
            pass
    os._exit(0)


def _start_in_utf8() -> NoReturn:
    """Run this command again in Python's UTF-8 mode.

    In another mode the names of files are written in the encoding of the locale, and programs with
    another locale do not find them.
    """
    os.environ["PYTHONUTF8"] = "1"
    arguments = map(_in_utf8, sys.orig_argv[1:])
    os.execv(sys.executable, [os.fsencode(sys.executable), b"-X", b"utf8", *arguments])


def _in_utf8(argument: str) -> bytes:
    """Return an argument in UTF-8, whether the terminal sent UTF-8 or the locale's encoding."""
    sent = os.fsencode(argument)
    try:
        sent.decode("utf-8")
    except UnicodeDecodeError:
        return argument.encode("utf-8", "surrogateescape")
    return sent


def main(
    arguments: Sequence[str] | None = None, starting: Callable[[], object] = lambda: None
) -> int:
    """Run the command and return its exit status.

    arguments: the command line without the name of the program. None means the arguments of the process.
    starting: is called once the command line is understood.
    """
    from memoranda.cli import output
    from memoranda.cli.invocation import Invocation

    invocation = Invocation()
    invocation.starting = starting
    # The streams use UTF-8 whatever the locale. Characters without a UTF-8 form are escaped.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        if arguments is None:
            arguments = sys.argv[1:]
        status = _run(list(arguments), invocation)
        # A client takes any other status of a hook as a wish to block the action.
        if invocation.command == "hook":
            return 0
        return status
    except BrokenPipeError:
        output.silence()
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        # This is the outermost loop, so all errors are reported here. But if the user pressed Ctrl-C
        # during an import, the import may have turned the KeyboardInterrupt into another error.
        if isinstance(error.__cause__, KeyboardInterrupt):
            return _INTERRUPTED
        from memoranda.errors import internal_sentence

        return _report_failure(invocation, internal_sentence(error), "internal", 1, _REPORT_IT)


def _run(arguments: list[str], invocation: Invocation) -> int:
    """Run the command, report expected errors, and return the exit status.

    arguments: the command line without the name of the program.
    invocation: takes the global options, and says whether the answer is JSON.
    """
    import click

    from memoranda.cli import output
    from memoranda.errors import MemorandaError

    try:
        try:
            # Locks need this module. A system without it, such as Windows, gets a sentence instead
            # of a trace.
            import fcntl  # noqa: F401
        except ImportError:
            return _report_failure(invocation, _NO_LOCKS, "storage", 1)
        status = _invoke(arguments, invocation)
        output.write(flush=True)
        return status
    except click.Abort:
        return _INTERRUPTED
    except click.UsageError as error:
        return _report_usage(invocation, error, arguments)
    except MemorandaError as error:
        return _report_error(invocation, error)


def _report_usage(invocation: Invocation, error: click.UsageError, arguments: list[str]) -> int:
    """Report a command line that cannot be understood. Return the exit status 2.

    invocation: the run of the command. It may not know yet that `--json` is on the command line,
        because parsing ended at the error.
    arguments: the command line without the name of the program.
    """
    from memoranda.cli.syntax import usage_words

    # Words after `--` are text, even if they look like options.
    options = arguments
    if "--" in arguments:
        options = arguments[: arguments.index("--")]
    if "--json" in options:
        invocation.json = True
    message, hint = usage_words(error)
    return _report_failure(invocation, message, "usage", 2, hint)


def _invoke(arguments: list[str], invocation: Invocation) -> int:
    """Run the command, or the completion that a shell asks for. Return the exit status.

    arguments: the command line without the name of the program.
    invocation: takes the global options.
    """
    import click

    from memoranda.cli.invocation import COMPLETE_VARIABLE

    group = command_group()
    try:
        # A shell asks for completions by an environment variable, not by an argument.
        instruction = os.environ.get(COMPLETE_VARIABLE)
        if instruction:
            from click.shell_completion import shell_complete

            details = {"obj": invocation}
            return shell_complete(group, details, "memory", COMPLETE_VARIABLE, instruction)
        with group.make_context("memory", arguments, obj=invocation) as context:
            return group.invoke(context) or 0
    except click.exceptions.Exit as ended:
        return ended.exit_code


def _report_error(invocation: Invocation, error: MemorandaError) -> int:
    """Report an expected error with a hint that may help. Return the exit status.

    invocation: says whether the answer is JSON.
    """
    from memoranda.cli import output

    details = {}
    if error.code in _TIME_ERRORS:
        times = getattr(error, "candidates", ())
        details["candidates"] = [moment.isoformat() for moment in times]
    sentence = output.error_sentence(error)
    hint = output.remedy(error)
    return _report_failure(invocation, sentence, error.code, error.exit_code, hint, **details)


def command_group() -> Group:
    """Return the click group of all commands."""
    import click

    from memoranda.cli.syntax import Group

    version_option = click.Option(
        ["--version"],
        help="Show the version and exit.",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_version,
    )
    titles: dict[str, str] = {}
    for title, _, names in _MODULES:
        titles |= dict.fromkeys(names.split(), title)
    return Group(
        "memory",
        COMMANDS,
        now=True,
        titles=titles,
        params=[version_option],
        help=_HELP,
        alone=_today_lines,
    )


def _show_version(context: click.Context, _: click.Parameter, is_asked_for: bool) -> None:
    """Print the version and exit, if the command line has `--version`."""
    if is_asked_for and not context.resilient_parsing:
        from memoranda import __version__
        from memoranda.cli import output

        output.text(f"memory {__version__}")
        context.exit()


def _today_lines(invocation: Invocation) -> list[str]:
    """Return the lines that `memory` alone prints. Empty for a home without notes."""
    from memoranda.cli.today import has_notes, today_lines

    if has_notes(invocation):
        return today_lines(invocation)
    return []


# An error with more characters is shown without its middle.
_MOST_CHARACTERS_OF_ERROR = 2_000
_FIRST_CHARACTERS = 1_000
_LAST_CHARACTERS = 500
_HELP = """One memory for you and your agents: plain Markdown notes on your disk.

Write, read, list and search memories, link them, take changes back, serve them to agents.
"""


def _report_failure(
    invocation: Invocation,
    message: str,
    code: str,
    status: int,
    hint: str | None = None,
    **details: object,
) -> int:
    """Report an error on stderr. With `--json`, also print it as a document on stdout.

    invocation: says whether the answer is JSON.
    message: the sentence for a person.
    code: the code of the error for programs, such as `not_found`.
    status: the exit status, which is returned.
    hint: a further line that says what to do; None for none.
    details: further keys of the document.
    """
    from memoranda.cli import output

    if len(message) > _MOST_CHARACTERS_OF_ERROR:
        # Most errors repeat an argument. Their end says what is wrong with it.
        message = f"{message[:_FIRST_CHARACTERS]}…{message[-_LAST_CHARACTERS:]}"
    if invocation.json:
        invocation.document(error={"code": code, "message": message} | details)
    output.failure(message)
    if hint:
        output.notice(hint)
    return status
