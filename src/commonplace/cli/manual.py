"""`man`: the manual page of the program, made from the same commands as the help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Command, Group, command

_EXITS = {
    "0": "Done, also when nothing was found.", "1": "The operation failed.", "2": "Wrong usage.", "130": "Interrupted.",
}  # fmt: skip
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
    text = page(click.get_current_context().find_root())
    call.answer(text.rstrip("\n"), page=text)


def page(context: click.Context) -> str:
    """The manual page of the group of `context`, as roff."""
    group = context.command
    assert isinstance(group, Group)
    summary, *rest = _paragraphs(group)
    usage = "[--home DIR] [--config FILE] [--agent NAME] [--json] COMMAND ..."
    lines = ['.TH MEMORY 1 "" commonplace "User Commands"', ".SH NAME", f"memory \\- {_text(summary)}"]
    lines += [".SH SYNOPSIS", ".B memory", _text(usage), ".SH DESCRIPTION", *map(_text, rest)]
    lines += [".SH GLOBAL OPTIONS", *_options(context, group.globals), ".SH COMMANDS", *_commands(group, context)]
    lines += [".SH EXIT STATUS", *_pairs(_EXITS), ".SH ENVIRONMENT", *_pairs(_VARIABLES)]
    return "\n".join(lines) + "\n"


def _commands(group: Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        each = group.get_command(context, name)
        assert each is not None
        inner = click.Context(each, info_name=name, parent=context)
        if isinstance(each, Group):
            yield from _commands(each, inner)
        elif isinstance(each, Command):
            yield f".SS {_text(' '.join([inner.command_path, *each.collect_usage_pieces(inner)]))}"
            for at, part in enumerate(_paragraphs(each)):
                yield from [".PP", _text(part)] if at else [_text(part)]
            own = [opt for opt in each.params if isinstance(opt, click.Option) and opt not in each.globals]
            yield from _options(inner, own)
            if each.example:
                yield from (".PP", "Example:", ".PP", ".RS", _text(each.example), ".RE")


def _options(context: click.Context, options: Sequence[click.Option]) -> list[str]:
    records = (each.get_help_record(context) for each in options)
    return _pairs(dict(record for record in records if record is not None))


def _pairs(rows: dict[str, str]) -> list[str]:
    return [line for name, text in rows.items() for line in (".TP", f".B {_text(name)}", _text(text))]


def _paragraphs(each: click.Command) -> list[str]:
    return [" ".join(part.split()) for part in (each.help or "").split("\n\n")]


def _text(text: str) -> str:
    """`text` as roff reads it: backslashes, dashes, and signs at the beginning of a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^(?=[.'])", r"\\&", escaped)
