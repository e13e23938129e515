"""How a command line is parsed: commands, global options, and errors for wrong usage
(contract 001, 1).

Built on click. A command names its positional arguments (`"ID"`, `"[REF]"` optional, `"CONTENT..."`
one or more); global options are accepted before and after the command's name. Here are also the
commands about the command: `completion`, `help` and `man`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import click

from memoranda.cli import output
from memoranda.cli.invocation import COMPLETE_VARIABLE, Invocation
from memoranda.cli.output import Failure
from memoranda.errors import MemorandaError, near
from memoranda.text.numbers import LARGEST

Values = Callable[[click.Context], Sequence[str]] | str
"""The completions of an argument, in one of two forms.

A function returns the values, each perhaps followed by a tab and a preview. A text is a kind of
values that the home knows, such as `tag` (engine/completion.py); "" offers no completions."""
Keys = Sequence[str] | Mapping[str, Sequence[str]]
"""The keys of a command's JSON document. In a mapping, each key of the document has the keys of the
objects in its list; () for a key without objects."""
Text = str | None
"""The value of an option without a default. In the functions of commands, whose docstrings are the
help for users, None means that the command line does not have the option or the argument."""
_HELP_NAMES = {"help_option_names": ["-h", "--help"]}
_SHELLS = ("bash", "zsh", "fish")
# The contract lets commands with these arguments take exactly one. Ours take several, but the error
# for a missing argument keeps the words of the contract (contract 001, 1).
_ONE_BY_CONTRACT = ("ID...", "REF...", "QUERY...", "QUESTION...", "B...")
# The kind of completions for a positional argument of this name.
_COMPLETION_KINDS = {"ID": "id", "A": "id", "B": "id", "REF": "id", "N": "change"}
ALIASES = {"add": "write", "ls": "list", "show": "read", "rm": "delete remove del"}
"""Alias -> the names that it may mean. The first name that the group has is run."""
# Names that other programs give to such commands -> our commands, to suggest in an error.
_FOREIGN_NAMES = {
    "cat": "read",
    "create": "write",
    "find": "search",
    "forget": "delete",
    "get": "read",
    "grep": "search",
    "history": "log",
    "new": "write",
    "remember": "write",
    "remove": "delete",
    "revert": "undo",
    "save": "write",
    "setup": "install",
    "start": "serve",
    "store": "write",
    "update": "edit",
}
# Options for a file or folder. An error for an unexpected argument suggests them.
_PLACE_OPTIONS = ("--path", "--input", "--output")
# An error for an unknown option names the commands that have it, unless there are more of them.
_MOST_TAKERS = 3


class Usage(click.UsageError):
    """A command line that cannot be understood, with our message instead of click's.

    ctx: the context of the command with the error. None means the current one.
    """

    guesses: Sequence[str] = ()
    """Commands or options that the user may have meant, for "Did you mean …?"."""
    form = ""
    """A line that shows the right form of the command line."""

    def __init__(self, message: str, ctx: click.Context | None = None):
        super().__init__(message, ctx or click.get_current_context(silent=True))


class Number(click.ParamType):
    """The type of an option for whole numbers of at least `least`."""

    name = "number"

    def __init__(self, least: int = 0):
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            raise _invalid(value, param, "not a number") from None
        if number < self.least:
            raise _invalid(value, param, f"must be at least {self.least}")
        if number > LARGEST:
            raise _invalid(value, param, f"must be at most {LARGEST}")
        return number


class Moment(click.ParamType):
    """The type of an option for a time in ISO 8601.

    A time without an offset is local: it becomes a datetime without a time zone.
    """

    name = "iso"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the time that a value means. Raises Usage if it is not a time in ISO 8601.

        param: the option that has the value. None if click does not name it.
        ctx: the context of the command, which is not used. It may be None.
        """
        try:
            moment = datetime.fromisoformat(value.strip())
            moment.astimezone(UTC)
        except (ValueError, OverflowError):
            raise _invalid(value, param, "not an ISO time") from None
        return moment


class Names(click.ParamType):
    """The type of an option for a known name, such as a category, or a list of names ("A,B").

    The shell completes each name. The names are not checked here.

    name: the word for the value in the help.
    values: the completions.
    """

    def __init__(self, name: str, values: Values):
        self.name = name
        self._values = values

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Return the names that begin with the word typed so far.

        ctx, param: the command and the option, as click passes them.
        incomplete: the word typed so far. In a list, only the part after the last comma is
            completed.
        """
        from click.shell_completion import CompletionItem

        is_list = self.name in ("list", "A,B")
        start = incomplete.rfind(",") + 1 if is_list else 0
        names_before = incomplete[:start]
        prefix = incomplete[start:]
        lines: Iterable[str]
        if isinstance(self._values, str):
            lines = values_in_home(ctx, self._values, prefix)
        else:
            lines = self._values(ctx)
        items = []
        for line in lines:
            name, _, preview = line.partition("\t")
            if name.startswith(prefix):
                items.append(CompletionItem(names_before + name, help=preview or None))
        return items


def values_in_home(ctx: click.Context, kind: str, prefix: str = "") -> list[str]:
    """Return the values in the home that begin with `prefix`, so that a shell can complete them.

    A value with a preview is followed by a tab and the preview.

    ctx: the context of the command, which has the global options.
    kind: the kind of values, such as `id` or `tag`.
    """
    from memoranda.engine.completion import offers
    from memoranda.note.model import BUILT_IN_PROJECTS

    invocation = ctx.find_object(Invocation) or Invocation()
    try:
        return offers(invocation.settings, kind, prefix, invocation.caller)
    except MemorandaError:
        # The configuration cannot be read.
        if kind == "project":
            return [*BUILT_IN_PROJECTS]
        return []


def _invalid(value: object, param: click.Parameter | None, why: str) -> Usage:
    """Make the error for a value of an option or an argument.

    param: the option; None for an argument.
    why: why the value is not valid.
    """
    if param:
        name = max(param.opts, key=len)
    else:
        name = "the argument"
    return Usage(f'invalid value "{value}" for {name}: {why}')


class PositionalWords(click.Argument):
    """All positional arguments of a command, as one argument of click.

    Click would report a wrong number of arguments in its own words. This class uses the words of
    the contract.
    """

    def __init__(self, names: Sequence[str], first: Values | None = None):
        """Take the arguments of a command.

        names: the name of each argument: "ID". "[REF]" is optional, "ID..." takes several values.
        first: the completions of the first argument. None for no completions.
        """
        super().__init__(["words"], nargs=-1, required=False, type=click.UNPROCESSED)
        self.names = names
        self.least = len([name for name in names if not name.startswith("[")])
        if names and names[-1].rstrip("]").endswith("..."):
            self.most = None
        else:
            self.most = len(names)
        self._first = first

    def make_metavar(self, ctx: click.Context | None = None) -> str:
        return " ".join(self.names)

    def process_value(self, ctx: click.Context, value: Any) -> tuple[str, ...]:
        """Return the arguments of the command. Raises Usage if there are too few or too many."""
        words = tuple(value) if isinstance(value, (tuple, list)) else ()
        count = len(words)
        is_enough = self.least <= count
        is_too_much = self.most is not None and count > self.most
        if ctx.resilient_parsing or (is_enough and not is_too_much):
            return words
        error = wrong_count(self._wrong_count(count), ctx)
        if self.most == 0 and count == 1:
            # The word may belong to an option: `memory export notes` for `--output notes`.
            error.guesses = [
                f"{name} {words[0]}" for name in _spellings(ctx.command) if name in _PLACE_OPTIONS
            ]
        raise error

    def _wrong_count(self, count: int) -> str:
        """Return the contract's sentence for a wrong number of arguments.

        count: how many arguments the command line has.
        """
        if self.most is None and self.names[-1] not in _ONE_BY_CONTRACT:
            return f"requires at least {self.least} arg(s), only received {count}"
        if self.most is None or self.most == self.least:
            number = str(self.least)
        elif self.least == 0:
            number = f"at most {self.most}"
        else:
            number = f"between {self.least} and {self.most}"
        return f"accepts {number} arg(s), received {count}"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return the completions for the next argument.

        ctx: the context of the command, with the arguments so far.
        incomplete: the word typed so far.
        """
        count = len(ctx.params.get("words") or ())
        if self.most is not None and count >= self.most:
            return []
        name = self.names[min(count, len(self.names) - 1)]
        values: Values = _COMPLETION_KINDS.get(name.strip("[.]"), "")
        if self._first is not None and name == self.names[0]:
            values = self._first
        if values:
            return Names("word", values).shell_complete(ctx, self, incomplete)
        return []


def wrong_count(message: str, ctx: click.Context | None = None) -> Usage:
    """Make the error for a wrong number of arguments. It shows the right form and an example.

    message: the contract's sentence for the number.
    ctx: the context of the command. None means the current one.
    """
    error = Usage(message, ctx)
    if error.ctx is not None:
        error.form = " ".join(error.ctx.get_usage().split())
        example = getattr(error.ctx.command, "example", "")
        if example:
            error.form += f", e.g. {example}"
    return error


@cache
def _global_options() -> dict[str, click.Option]:
    """Return the options that every command takes, by name."""
    return {
        "home": click.Option(
            ["--home"],
            help="The memory home, or postgresql://… [MEMORY_HOME, else ~/.memory].",
            metavar="DIR",
        ),
        "config": click.Option(
            ["--config"], help="The configuration file [config.yaml of the home].", metavar="FILE"
        ),
        "agent": click.Option(
            ["--agent"], help="Act as this agent [MEMORY_AGENT, else the owner].", metavar="NAME"
        ),
        "json": click.Option(["--json"], help="Answer with one JSON document.", is_flag=True),
        "no-pager": click.Option(
            ["--no-pager"], help="Print long output at once, also on a terminal.", is_flag=True
        ),
        "now": click.Option(
            ["--now"], help="Take this for the present time.", type=Moment(), metavar="ISO"
        ),
    }


def _set_now(invocation: Invocation, moment: datetime) -> None:
    """Let the invocation run at the time that `--now` names, and show times in its offset."""
    now = moment.astimezone(UTC)
    invocation.now = now
    invocation.offset = moment.tzinfo
    # The clock stands still, so that each time of the call is the same.
    invocation.own_clock = lambda: now


class _Documented(click.Command):
    """The common base of commands and groups.

    Global options may come before or after the command. Their values are set in the invocation.
    The help lists them in a separate section.

    global_options: the global options that this command or group takes.
    """

    global_options: Sequence[click.Option] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and hand the global options to the invocation.

        ctx: the context of the command.

        Returns the arguments that are left for a command of the group.
        """
        try:
            remaining_args = super().parse_args(ctx, args)
        except click.UsageError as error:
            # The message ends with a hint at the help of this command.
            if error.ctx is None:
                error.ctx = ctx
            raise
        invocation = ctx.find_object(Invocation) or Invocation()
        names = [parameter.name for parameter in self.global_options if parameter.name]
        global_values = {name: ctx.params.pop(name) for name in names}
        for name, value in global_values.items():
            # An option that was given before the name of the command still counts.
            is_given = value is not None and value is not False
            if is_given:
                setattr(invocation, name, value)
        moment = global_values.get("now")
        if moment is not None:
            _set_now(invocation, moment)
        return remaining_args

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the section with the options of this command, then the one with global options.

        ctx: the context of the command.
        formatter: collects the lines of the help.
        """
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        own_options = [option for option in options if option not in self.global_options]
        global_options = [option for option in options if option in self.global_options]
        _write_options("Options", own_options, ctx, formatter)
        _write_options("Global options", global_options, ctx, formatter)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


def _write_options(
    title: str, options: Iterable[click.Option], ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write the section of the help about these options. Hidden options are left out.

    title: the heading of the section.
    ctx: the context of the command.
    formatter: collects the lines of the help.
    """
    rows = []
    for option in options:
        row = option.get_help_record(ctx)
        # A hidden option has no row.
        if row is not None:
            rows.append(row)
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


class Command(_Documented):
    """A command. Its callback gets the invocation, then its positional arguments, then its options.

    words: the names of its positional arguments, such as "ID" and "[REF]".
    keys: the keys of its JSON document after `schema`. Empty if the command prints its output itself.
    complete: the completions of the shell for the first argument.
    now: whether the command takes `--now`.
    own_agent: whether its `--agent` means something else than the global option.
    example: a command line that the help shows.
    """

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        keys: Keys = (),
        complete: Values | None = None,
        **settings: Any,
    ):
        self.takes_now = settings.pop("now", False)
        has_own_agent = settings.pop("own_agent", False)
        self.example: str = settings.pop("example", "")
        super().__init__(name, context_settings=dict(_HELP_NAMES), **settings)
        if isinstance(keys, Mapping):
            self.keys = keys
        else:
            self.keys = dict.fromkeys(keys, ())
        global_options = dict(_global_options())
        if has_own_agent:
            del global_options["agent"]
        if not self.takes_now:
            del global_options["now"]
        self.global_options = list(global_options.values())
        self.params = [PositionalWords(words, complete), *self.params, *self.global_options]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command: `callback(invocation, *words, **options)`.

        Raises Failure for an argument that is not valid UTF-8.
        """
        invocation = ctx.find_object(Invocation)
        assert invocation is not None
        assert self.callback is not None
        if invocation.now is not None and not self.takes_now:
            raise click.NoSuchOption("--now", ctx=ctx)
        options = dict(ctx.params)
        values = (*options["words"], *options.values(), *options.get("tags", ()))
        texts = [value for value in values if isinstance(value, str)]
        try:
            # Called only for its error: bytes that are not UTF-8 arrive as lone surrogates, which
            # cannot be encoded.
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise Failure("an argument is not valid UTF-8 text") from None
        invocation.starting()
        words = options.pop("words")
        return ctx.invoke(self.callback, invocation, *words, **options)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [piece for piece in super().collect_usage_pieces(ctx) if piece]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"{'':{formatter.current_indent}}{self.example}\n")


class Group(_Documented, click.Group):
    """Commands by name.

    modules: each command's module below memoranda.cli, imported when asked for. A command `b-c` is
        the function `b_c` there, or `b_c_` if that name is taken in Python. In a group `a` it is
        `a_b_c`.
    now: whether `--now` may be before the name of a command, because some of its commands take it.
    titles: the section of the help for each command.
    alone: returns the lines to print if no command is named. None prints the help.
    """

    def __init__(
        self,
        name: str,
        modules: Mapping[str, str],
        *,
        now: bool = False,
        titles: Mapping[str, str] = {},
        alone: Callable[[Invocation], list[str]] | None = None,
        **settings: Any,
    ):
        super().__init__(
            name, invoke_without_command=True, context_settings=dict(_HELP_NAMES), **settings
        )
        self._modules = modules
        self._titles = titles
        self.alone = alone
        self.global_options = [
            option for name, option in _global_options().items() if now or name != "now"
        ]
        self.params = [*self.params, *self.global_options]
        self.callback = _help_without_command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command, and return the command. None if there is no such name.

        ctx: the context of the group.
        cmd_name: the name of the command, such as `list`.
        """
        if cmd_name not in self._modules:
            return None
        module = import_module(f"memoranda.cli.{self._modules[cmd_name]}")
        # A command of a group has the name of the group in front: `kv get` is `kv_get`.
        is_group = self.name != "memory"
        full_name = f"{self.name}_{cmd_name}" if is_group else cmd_name
        attribute = full_name.replace("-", "_")
        # A name that Python uses itself, such as `list`, has an underscore behind it.
        return getattr(module, attribute, None) or getattr(module, f"{attribute}_")

    def named(self, word: str) -> str:
        """Return the name of the command that a word or an alias means: "read" for "show"."""
        if word in self._modules:
            return word
        for name in ALIASES.get(word, "").split():
            if name in self._modules:
                return name
        # No command has this name, so the caller reports it.
        return word

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return the name of the command on the command line, the command, and its arguments.

        The command line may have an alias of the name. Raises Usage for an unknown name.
        """
        name = self.named(args[0])
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            raise self.unknown(name, ctx)
        if ctx.parent is None:
            invocation = ctx.find_object(Invocation)
            if invocation is not None:
                invocation.command = name
        # A shell that asks for completions gets no error for an unknown name, but None.
        known_name = name if command else None
        return known_name, command, args[1:]

    def unknown(self, name: str, ctx: click.Context) -> Usage:
        """Make the error for an unknown command, with guesses which command was meant.

        ctx: the context of the group.
        """
        error = Usage(f'unknown command "{name}" for "{ctx.command_path}"', ctx)
        suggestion = _FOREIGN_NAMES.get(name, "")
        if suggestion in self._modules:
            error.guesses = [suggestion]
        else:
            aliases = [alias for alias in ALIASES if self.named(alias) in self._modules]
            error.guesses = near(name, [*self._modules, *aliases])
        # The help of the main group has too many commands for an error.
        if ctx.parent is not None:
            error.form = f"Commands: {', '.join(self._modules)}."
        return error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the five commands to begin with before everything else."""
        if ctx.parent is None:
            formatter.write_paragraph()
            formatter.write(first_steps())
        super().format_options(ctx, formatter)

    def summary(self, ctx: click.Context, name: str) -> str:
        """Return the summary of a command in one line.

        ctx: the context of the group.
        """
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=200) if command is not None else ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands into the help, in sections, each with its aliases and its summary."""
        sections: dict[str, list[tuple[str, str]]] = {}
        # The file of summaries has only the commands of the main group.
        summaries = _summaries() if ctx.parent is None else {}
        for name in self._modules:
            summary = summaries.get(name)
            if summary is None:
                summary = self.summary(ctx, name)
            aliases = [alias for alias in ALIASES if self.named(alias) == name and alias != name]
            label = f"{name} ({', '.join(aliases)})" if aliases else name
            title = self._titles.get(name, "Commands")
            sections.setdefault(title, []).append((label, summary))

        # The summaries of all sections begin in one column.
        width = max(len(label) for label, _ in chain.from_iterable(sections.values()))
        for title, rows in sections.items():
            with formatter.section(title):
                padded_rows = [(label.ljust(width), summary) for label, summary in rows]
                formatter.write_dl(padded_rows, col_max=width)


def _summaries() -> dict[str, str]:
    """Return command -> summary in one line, from summaries.txt.

    The file makes it possible to list commands without importing their modules.
    """
    text = Path(__file__).with_name("summaries.txt").read_text("utf-8")
    rows = (line.partition(" ") for line in text.splitlines())
    return {name: summary.strip() for name, _, summary in rows}


def _show_help(ctx: click.Context, param: click.Parameter, is_asked_for: bool) -> None:
    """Show the help of a command and exit, if its command line has `--help`."""
    # A shell that asks for completions parses the line, too (`resilient_parsing`).
    if is_asked_for and not ctx.resilient_parsing:
        output.text(ctx.get_help(), paged=True)
        ctx.exit()


@click.pass_context
def _help_without_command(ctx: click.Context) -> None:
    """Answer a command line that names no command, with the lines of `Group.alone` or the help."""
    if ctx.invoked_subcommand is not None:
        return
    invocation = ctx.find_object(Invocation) or Invocation()
    if invocation.json:
        invocation.command = "help"
        return invocation.document(command=ctx.command_path, text=ctx.get_help())
    group = ctx.command
    if isinstance(group, Group) and group.alone is not None:
        lines = group.alone(invocation)
        if lines:
            lines = [*lines, "", first_steps().rstrip("\n"), "", "All commands: memory help"]
            return output.text("\n".join(lines))
    output.text(ctx.get_help(), paged=True)


def first_steps() -> str:
    """Return the text about the five commands to begin with."""
    return Path(__file__).with_name("first-steps.txt").read_text("utf-8")


def group(name: str, module: str, commands: str, help: str) -> Group:
    """Return a group of commands whose functions are all in one module.

    name: the name of the group, such as `kv`.
    module: the name of the module below memoranda.cli.
    commands: the names of the commands, separated by blanks.
    help: the text of the help.
    """
    return Group(name, dict.fromkeys(commands.split(), module), help=help)


def command(name: str, *words: str, **settings: Any) -> Callable[..., Command]:
    """Return a decorator that makes a function the command `name`. Its docstring is the help.

    The function returns the exit status; None means 0.

    words: the positional arguments, such as "ID". "[REF]" may be missing. "CONTENT..." stands for
        one argument or more.
    settings: the other parameters of Command.
    """
    return click.command(name, cls=Command, words=words, **settings)


def option(*names: str, **settings: Any) -> Callable[..., Any]:
    """Return a decorator that adds an option. The help shows its default, if it has one."""
    return click.option(*names, show_default="default" in settings, **settings)


def flag(name: str, help: str, *names: str) -> Callable[..., Any]:
    """Return a decorator that adds an option without a value.

    help: the text of the help.
    names: the name of the parameter of the function, if it differs from the option.
    """
    return click.option(name, *names, is_flag=True, help=help)


def usage_words(error: click.UsageError) -> tuple[str, str]:
    """Return two texts about a wrong command line: its error message, and hints to show below it.

    The message is worded as the contract says. The hints name the help page and similar options or
    commands: `Did you mean --json?`
    """
    message = error.format_message()
    command_path = error.ctx.command_path if error.ctx else "memory"
    hint = f"Run '{command_path} --help' for usage."
    guesses: Sequence[str] = ()
    if isinstance(error, Usage):
        guesses = error.guesses
        hint += f"\n{error.form}" if error.form else ""
    elif isinstance(error, click.NoSuchOption):
        message = f"unknown flag: {error.option_name}"
        if error.ctx and _takes_any_words(error.ctx.command):
            hint += "\nPut -- in front of text that begins with a dash."
        takers = _commands_with(error)
        if takers:
            hint += f"\n{error.option_name} is an option of {' and '.join(takers)}."
        else:
            guesses = _options_like(error)
    elif isinstance(error, click.BadOptionUsage):
        if error.ctx and _is_flag(error.option_name, error.ctx.command):
            message = f"{error.option_name} takes no value"
        else:
            message = f"flag needs an argument: {error.option_name}"
    if guesses:
        hint += f"\nDid you mean {' or '.join(dict.fromkeys(guesses))}?"
    return message, hint


def _options(command: click.Command) -> list[click.Option]:
    """Return the options of a command, without its positional arguments."""
    return [param for param in command.params if isinstance(param, click.Option)]


def _spellings(command: click.Command) -> Iterator[str]:
    """Yield every way to write an option of a command: `-o`, `--output`."""
    return chain.from_iterable(option.opts for option in _options(command))


def _is_flag(spelling: str, command: click.Command) -> bool:
    """Whether a spelling belongs to an option without a value."""
    return any(option.is_flag for option in _options(command) if spelling in option.opts)


def _takes_any_words(command: click.Command) -> bool:
    """Whether a command takes any number of words, so that a text may be typed without quotes."""
    return any(
        isinstance(param, PositionalWords) and param.most is None for param in command.params
    )


def _options_like(error: click.NoSuchOption) -> list[str]:
    """Return the long options that the unknown option may mean: `--ouput` → `--output`."""
    if not error.ctx:
        return []
    long_options = [
        spelling.removeprefix("--")
        for spelling in _spellings(error.ctx.command)
        if spelling.startswith("--")
    ]
    unknown_name = error.option_name.lstrip("-")
    if len(unknown_name) == 1:
        # A short option such as `-o` may mean a long one that begins so, such as `--output`.
        similar_names = [name for name in long_options if name.startswith(unknown_name)]
    else:
        similar_names = near(unknown_name, long_options)
    return [f"--{name}" for name in similar_names]


def _commands_with(error: click.NoSuchOption) -> list[str]:
    """Return the few commands that have the unknown option: `memory recent` for `--since`.

    Empty if more than `_MOST_TAKERS` commands have it, since none of them is then meant.
    """
    if not error.ctx:
        return []
    root_context = error.ctx.find_root()
    root = root_context.command
    assert isinstance(root, Group)
    names = []
    for name in root.list_commands(root_context):
        command = root.get_command(root_context, name)
        if command is not None and error.option_name in _spellings(command):
            names.append(f"memory {name}")
    return names if len(names) <= _MOST_TAKERS else []


@command(
    "completion",
    "SHELL",
    keys=("shell", "script"),
    complete=lambda _: _SHELLS,
    example="memory completion zsh",
)
def completion(call: Invocation, shell: str) -> None:
    """Print the completion script for a shell: bash, zsh or fish.

    For example in ~/.bashrc: eval "$(memory completion bash)"
    """
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell) if shell in _SHELLS else None
    if completion_class is None:
        raise Failure(f'no completion for "{shell}"; there is one for {", ".join(_SHELLS)}')
    program = click.get_current_context().find_root().command
    completion = completion_class(program, {}, "memory", COMPLETE_VARIABLE)
    script = completion.source_template % completion.source_vars()
    call.answer(script.rstrip("\n"), shell=shell, script=script)


@command("help", "[COMMAND...]", keys=("command", "text"), example="memory help project add")
def help_(call: Invocation, *path: str) -> None:
    """Show the help of the program or of a command; `memory help words` says how it fits together."""
    context = click.get_current_context().find_root()
    if path == ("words",):
        text = Path(__file__).with_name("words.txt").read_text("utf-8").rstrip("\n")
        return call.answer(text, command="memory help words", text=text)
    for word in path:
        group = context.command
        if not isinstance(group, Group):
            raise Usage(f'unknown command "{word}" for "{context.command_path}"', context)
        name = group.named(word)
        found_command = group.get_command(context, name)
        if found_command is None:
            raise group.unknown(name, context)
        context = click.Context(
            found_command, info_name=name, parent=context, **found_command.context_settings
        )
    text = context.get_help()
    call.answer(text, command=context.command_path, text=text)


# For the manual page.
_EXITS = {
    "0": "Done, also when nothing was found.",
    "1": "The operation failed.",
    "2": "Wrong usage.",
    "130": "Interrupted.",
}
_VARIABLES = {
    "MEMORY_HOME": "The memory home.",
    "MEMORY_AGENT": "The acting agent.",
    "VISUAL, EDITOR": "What memory edit runs.",
    "PAGER": "What shows long output on a terminal [less].",
    "NO_COLOR": "If set, nothing is in colour.",
}


@command("man", keys=("page",), example="memory man > memory.1 && man ./memory.1")
def man(call: Invocation) -> None:
    """Print the manual page in the format of man."""
    text = manual_page(click.get_current_context().find_root())
    call.answer(text.rstrip("\n"), page=text)


def manual_page(context: click.Context) -> str:
    """Return the manual page of the command group in `context`, in roff, the format of `man`."""
    group = context.command
    assert isinstance(group, Group)
    summary, *paragraphs = _paragraphs(group)
    usage = "[--home DIR] [--config FILE] [--agent NAME] [--json] COMMAND ..."
    lines = ['.TH MEMORY 1 "" memoranda "User Commands"']
    lines += [".SH NAME", f"memory \\- {_roff(summary)}"]
    lines += [".SH SYNOPSIS", ".B memory", _roff(usage)]
    lines += [".SH DESCRIPTION", *(_roff(paragraph) for paragraph in paragraphs)]
    lines += [".SH GLOBAL OPTIONS", *_option_lines(context, group.global_options)]
    lines += [".SH COMMANDS", *_command_lines(group, context)]
    lines += [".SH EXIT STATUS", *_definition_list(_EXITS)]
    lines += [".SH ENVIRONMENT", *_definition_list(_VARIABLES)]
    return "\n".join(lines) + "\n"


def _command_lines(group: Group, context: click.Context) -> Iterator[str]:
    """Yield the lines of the manual page about the commands of a group, in roff.

    context: the context of the group.
    """
    for name in group.list_commands(context):
        member = group.get_command(context, name)
        assert member is not None
        member_context = click.Context(member, info_name=name, parent=context)
        if isinstance(member, Group):
            yield from _command_lines(member, member_context)
        elif isinstance(member, Command):
            yield from _lines_of_command(member, member_context)


def _lines_of_command(command: Command, context: click.Context) -> Iterator[str]:
    """Yield the lines of the manual page about one command, in roff.

    context: the context of the command.
    """
    usage = [context.command_path, *command.collect_usage_pieces(context)]
    yield f".SS {_roff(' '.join(usage))}"
    for number, paragraph in enumerate(_paragraphs(command)):
        if number > 0:
            yield ".PP"
        yield _roff(paragraph)
    own_options = [option for option in _options(command) if option not in command.global_options]
    yield from _option_lines(context, own_options)
    if command.example:
        yield from (".PP", "Example:", ".PP", ".RS", _roff(command.example), ".RE")


def _option_lines(context: click.Context, options: Sequence[click.Option]) -> list[str]:
    """Return the lines of the manual page about options, in roff.

    context: the context of their command.
    """
    records = (option.get_help_record(context) for option in options)
    return _definition_list(dict(record for record in records if record is not None))


def _definition_list(rows: dict[str, str]) -> list[str]:
    """Return the lines of a manual page (roff) that list names with their texts."""
    lines: list[str] = []
    for name, text in rows.items():
        lines += [".TP", f".B {_roff(name)}", _roff(text)]
    return lines


def _paragraphs(command: click.Command) -> list[str]:
    """Return the paragraphs of a command's help, each on one line."""
    return [" ".join(part.split()) for part in (command.help or "").split("\n\n")]


def _roff(text: str) -> str:
    """Escape `text` for roff: backslashes, dashes, and signs that begin a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^(?=[.'])", r"\\&", escaped)
