"""`memory help` lists all commands without loading their modules (our own design)."""

from __future__ import annotations

import subprocess
import sys

import click

from memoranda.cli import command_group
from memoranda.cli.syntax import Group, _summaries


def test_the_table_says_what_the_commands_say() -> None:
    group = command_group()
    assert isinstance(group, Group)
    context = click.Context(group, info_name="memory")
    summaries = {name: group.summary(context, name) for name in group.list_commands(context)}
    assert _summaries() == summaries


def test_help_loads_no_module_of_a_command() -> None:
    program = (
        "import sys; from memoranda.cli import main\n"
        "main(['help'])\n"
        "print([name for name in sys.modules if name.endswith('_commands')], file=sys.stderr)\n"
        "print('memoranda.engine' in sys.modules, file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stderr.splitlines() == ["[]", "False"]
    assert "Store a memory" in ran.stdout
