"""`completion` and `help`."""

from __future__ import annotations

import click

from commonplace.cli import COMPLETE_VARIABLE
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Usage, command

SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    "SHELL",
    keys=("shell", "script"),
    complete=lambda context, beginning, given: () if given else SHELLS,
)
def completion(call: Invocation, shell: str) -> None:
    """Print the completion script for a shell: bash, zsh or fish.

    For example in ~/.bashrc: eval "$(memory completion bash)"
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell) if shell in SHELLS else None
    if kind is None:
        raise Failure(f'no completion for "{shell}"; there is one for {", ".join(SHELLS)}')
    root = click.get_current_context().find_root()
    script = kind(root.command, {}, "memory", COMPLETE_VARIABLE)
    source = kind.source_template % script.source_vars()
    call.answer(source.rstrip("\n"), shell=shell, script=source)


@command("help", "[COMMAND...]", keys=("command", "text"))
def help_command(call: Invocation, *path: str) -> None:
    """Show the help of the program or of a command."""
    context = click.get_current_context().find_root()
    for name in path:
        each = context.command
        found = each.get_command(context, name) if isinstance(each, click.Group) else None
        if found is None:
            raise Usage(f'unknown command "{name}" for "{context.command_path}"', context)
        context = click.Context(found, info_name=name, parent=context, **found.context_settings)
    text = context.get_help()
    call.answer(text, command=context.command_path, text=text)
