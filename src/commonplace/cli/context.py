"""`context`: the best evidence for a question, as an agent would be given it."""

from __future__ import annotations

import click

from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Number, command

DEFAULT_TOKENS = 2_000


@command("context", "QUESTION", keys=("question", "context"))
@click.option("--max-tokens", type=Number(), default=DEFAULT_TOKENS, show_default=True,
              help="How long at most; a token is about 4 characters.")  # fmt: skip
@click.option("--project", metavar="NAME", help="Only notes of this project [all].")
def context(call: Invocation, question: str, *, max_tokens: int, project: str | None) -> None:
    """Print the passages that best answer QUESTION, under the dates and addresses of their notes."""
    with call.memory() as memory:
        projects = None if project is None else (memory.project(project).name,)
        most = max_tokens or DEFAULT_TOKENS
        found = memory.context_for(question, max_tokens=most, projects=projects)
        call.answer(found or f"Nothing found that fits into {most} tokens.", question=question, context=found)
