"""How a command line is read: commands, global options, and what is said about wrong usage (contract 001, 1).

Built on click. A command states its positional arguments by name (`"ID"`, `"[REF]"` optional, `"CONTENT..."`
one or more); global options are accepted before and after the command's name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import click

from commonplace.cli import output
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.text.unicode import is_valid_unicode

Completion = Callable[[click.Context, str, Sequence[str]], Sequence[str]]
Keys = Sequence[str] | Mapping[str, Sequence[str]]
HELP_NAMES = {"help_option_names": ["-h", "--help"]}


class Usage(click.UsageError):
    """Wrong usage, already in our words."""


class Number(click.ParamType):
    """A whole number from `least` on."""

    name = "number"

    def __init__(self, least: int = 0):
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            raise _invalid(value, param, ctx, "not a number") from None
        if number < self.least:
            raise _invalid(value, param, ctx, f"must be at least {self.least}")
        return number


class Moment(click.ParamType):
    """An ISO 8601 time; without an offset, as a naive one, it is local."""

    name = "iso"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value.strip())
            moment.astimezone(UTC)
        except (ValueError, OverflowError):
            raise _invalid(value, param, ctx, "not an ISO time") from None
        return moment


class Names(click.ParamType):
    """One name of several; not checked here, only offered to the shell and shown in the help."""

    def __init__(self, name: str, values: Callable[[], Sequence[str]]):
        self.name = name
        self._values = values

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        return _items(self._values(), incomplete)


def _items(values: Sequence[str], incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


def _invalid(value: object, param: click.Parameter | None, ctx: click.Context | None, why: str) -> Usage:
    name = max(param.opts, key=len) if param else "the argument"
    return Usage(f'invalid value "{value}" for {name}: {why}', ctx)


class Words(click.Argument):
    """All positional arguments of a command; how many there may be is said the way the contract words it."""

    def __init__(self, names: Sequence[str], complete: Completion | None = None):
        super().__init__(["words"], nargs=-1, required=False, type=click.UNPROCESSED)
        self.names = names
        self.least = sum(1 for name in names if not name.startswith("["))
        self.most = None if names and names[-1].rstrip("]").endswith("...") else len(names)
        self._complete = complete

    def make_metavar(self, ctx: click.Context | None = None) -> str:
        return " ".join(self.names)

    def process_value(self, ctx: click.Context, value: Any) -> tuple[str, ...]:
        words = tuple(value) if isinstance(value, (tuple, list)) else ()
        if not ctx.resilient_parsing and (message := self._complaint(len(words))):
            raise Usage(message, ctx)
        return words

    def _complaint(self, count: int) -> str | None:
        least, most = self.least, self.most
        if least <= count and (most is None or count <= most):
            return None
        if most is None:
            return f"requires at least {least} arg(s), only received {count}"
        if least == most:
            return f"accepts {least} arg(s), received {count}"
        if least == 0:
            return f"accepts at most {most} arg(s), received {count}"
        return f"accepts between {least} and {most} arg(s), received {count}"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        if self._complete is None:
            return []
        given = ctx.params.get("words") or ()
        return _items(self._complete(ctx, incomplete, given), incomplete)


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store a global option, wherever on the line it stood."""
    invocation = ctx.find_object(Invocation)
    if value and invocation is not None:
        setattr(invocation, param.name or "", value)


def _keep_now(ctx: click.Context, param: click.Parameter, value: datetime | None) -> None:
    invocation = ctx.find_object(Invocation)
    if value is not None and invocation is not None:
        invocation.now, invocation.offset = value.astimezone(UTC), value.tzinfo


def _global(name: str, text: str, **more: Any) -> click.Option:
    return click.Option([name], help=text, expose_value=False, **{"callback": _keep} | more)


def global_options(*, agent: bool = True, now: bool = True) -> list[click.Option]:
    """Fresh options `--home --config --agent --json --now`."""
    options = [
        _global("--home", "The memory home [MEMORY_HOME, else ~/.memory].", metavar="DIR"),
        _global("--config", "The configuration file [config.yaml of the home].", metavar="FILE"),
    ]
    if agent:
        options.append(_global("--agent", "Act as this agent [MEMORY_AGENT, else the owner].", metavar="NAME"))
    options.append(_global("--json", "Answer with one JSON document.", is_flag=True))
    if now:
        text = "Take this for the present time."
        options.append(_global("--now", text, type=Moment(), metavar="ISO", callback=_keep_now))
    return options


class _Spoken(click.Command):
    """What commands and groups share: errors know their command, global options stand apart in the help."""

    globals: Sequence[click.Option] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if error.ctx is None:
                error.ctx = ctx
            raise

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        everywhere: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                (everywhere if param in self.globals else own).append(record)
        for title, rows in (("Options", own), ("Global options", everywhere)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


class Command(_Spoken):
    """A command whose callback gets the invocation, then its positional arguments, then its options.

    `keys` are those of its JSON document after `schema`, each with the keys of the objects in it; none when
    the command keeps its own output.
    """

    def __init__(
        self,
        name: str,
        words: Sequence[str] = (),
        *,
        keys: Keys = (),
        complete: Completion | None = None,
        now: bool = False,
        own_agent: bool = False,
        **more: Any,
    ):
        super().__init__(name, context_settings=dict(HELP_NAMES), **more)
        self.keys = keys if isinstance(keys, Mapping) else dict.fromkeys(keys, ())
        self.takes_now = now
        self.globals = global_options(agent=not own_agent, now=now)
        self.params = [Words(words, complete), *self.params, *self.globals]

    def invoke(self, ctx: click.Context) -> Any:
        invocation = ctx.find_object(Invocation)
        assert invocation is not None
        if invocation.now is not None and not self.takes_now:
            raise click.NoSuchOption("--now", ctx=ctx)
        options = dict(ctx.params)
        for each in (*options["words"], *options.values()):
            if isinstance(each, str) and not is_valid_unicode(each):
                raise Failure("an argument is not valid UTF-8 text")
        return ctx.invoke(self.callback, invocation, *options.pop("words"), **options)  # type: ignore[arg-type]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [piece for piece in super().collect_usage_pieces(ctx) if piece]


class Group(_Spoken, click.Group):
    """Commands by name. `lazy` maps one to `module:attribute` below commonplace.cli, imported when asked for.

    `now`: takes `--now`, for those of its commands that do.
    """

    def __init__(self, name: str, lazy: Mapping[str, str], *, now: bool = False, **more: Any):
        super().__init__(name, invoke_without_command=True, context_settings=dict(HELP_NAMES), **more)
        self._lazy = lazy
        self.globals = global_options(now=now)
        self.params = [*self.params, *self.globals]
        self.callback = _help_without_command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self._lazy.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        return getattr(import_module(f"commonplace.cli.{module}"), attribute)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            raise Usage(f'unknown command "{args[0]}" for "{ctx.command_path}"', ctx)
        invocation = ctx.find_object(Invocation)
        if invocation is not None and ctx.parent is None:
            invocation.command = args[0]
        return (args[0] if command else None), command, args[1:]


def _show_help(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        output.text(ctx.get_help())
        ctx.exit()


@click.pass_context
def _help_without_command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        output.text(ctx.get_help())


def command(name: str, *words: str, keys: Keys = (), **more: Any) -> Callable[..., Command]:
    """The decorated function as the command `name`; its docstring is the help.

    `words` and `keys`: see Words and Command. `now`: takes `--now`. `own_agent`: `--agent` after the name
    means something else here. `complete` offers values for the positional arguments.
    """
    return click.command(name, cls=Command, words=words, keys=keys, **more)


def text_from(words: tuple[str, ...]) -> str:
    """The words joined by a blank; a lone `-` stands for all of stdin. Raises Failure if it is no UTF-8."""
    if words != ("-",):
        return " ".join(words)
    try:
        return sys.stdin.buffer.read().decode("utf-8") if sys.stdin else ""
    except UnicodeDecodeError:
        raise Failure("the text on stdin is not valid UTF-8", "not_text") from None


def usage_sentence(error: click.UsageError) -> str:
    """What is wrong, in the contract's words."""
    if isinstance(error, click.NoSuchOption):
        return f"unknown flag: {error.option_name}"
    if isinstance(error, click.BadOptionUsage):
        option = _option(error)
        if option is not None and option.is_flag:
            return f"{error.option_name} takes no value"
        return f"flag needs an argument: {error.option_name}"
    return error.format_message()


def _option(error: click.BadOptionUsage) -> click.Option | None:
    params = error.ctx.command.params if error.ctx else []
    return next((p for p in params if isinstance(p, click.Option) and error.option_name in p.opts), None)


def usage_hint(error: click.UsageError) -> str:
    """Where to read on: the line under the error."""
    path = error.ctx.command_path if error.ctx else "memory"
    hint = f"Run '{path} --help' for usage."
    if isinstance(error, click.NoSuchOption) and error.ctx and _takes_text(error.ctx.command):
        hint += "\nPut -- in front of text that begins with a dash."
    return hint


def _takes_text(each: click.Command) -> bool:
    return any(isinstance(p, Words) and p.most is None for p in each.params)
