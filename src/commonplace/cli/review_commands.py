"""`review`: what upkeep is unsure of, one question at a time (contract 001, 18.2)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from commonplace.cli import output
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Number, Text, command, option
from commonplace.errors import CannotUndo, CommonplaceError

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.review import ReviewItem

_ITEM_KEYS = ("key", "kind", "text", "refs", "choices")
_KEYS = "s later, u undo the last answer, q quit"


@command("review", keys={"items": _ITEM_KEYS, "more": ()}, example="memory review --limit 5")
@option("--limit", type=Number(), default=50, help="How many at most; 0 = all.")
@option("--kind", metavar="KIND", help="Only merge, category, archive or reminder questions, and what else there is.")
def review(call: Invocation, *, limit: int, kind: Text) -> None:
    """Answer what upkeep is unsure of: merge? category? archive? reminder?

    On a terminal one question at a time, each answered by a key; elsewhere the list of them.
    """
    with call.memory() as memory:
        items = memory.review(limit=limit + 1 if limit else 0, kind=kind)
        shown, more = (items[:limit], len(items) > limit) if limit else (items, False)
        if not call.json and sys.stdin.isatty() and sys.stdout.isatty():
            return _ask(memory, shown, more=more)
        rows = [
            {"key": each.key, "kind": each.kind, "text": each.text, "refs": list(each.refs),
             "choices": [{"letter": letter, "label": label} for letter, label in each.choices]}
            for each in shown
        ]  # fmt: skip
        lines = [f"{each.kind:<9} {' '.join(ref[:8] for ref in each.refs)} {each.text}" for each in shown]
        last = [f"More: memory review --limit {2 * limit}"] if more else []
        call.answer("\n".join([*lines, *last]) or "Nothing to review.", items=rows, more=more)


def _ask(memory: Memory, items: list[ReviewItem], *, more: bool) -> None:
    """Ask one question after another until there are no more or `q` is pressed."""
    import click

    answered: list[tuple[int, int]] = []  # the position of a question, and the change its answer made
    at = 0
    while at < len(items):
        item = items[at]
        choices = [f"  {letter}  {label}" for letter, label in item.choices]
        output.text(
            "\n".join([f"\n{at + 1} of {len(items)}{'+' if more else ''}  {item.text}", *choices, f"  ({_KEYS})"])
        )
        key = click.getchar()
        if key in "q\x03\x04\x1b":
            break
        if key == "u":
            at = _take_back(memory, answered, at)
        elif key == "s":
            at += 1
        elif key in dict(item.choices):
            try:
                memory.decide(item, key)
                answered.append((at, memory.changed))
                output.text(f"-> {dict(item.choices)[key]}")
            except CommonplaceError as error:  # changed meanwhile: the next question is as good
                output.failure(output.error_sentence(error))
            at += 1
        else:
            output.text("Press one of the keys shown.")
    remedy = " memory undo takes the last answer back." if answered else ""
    output.text(f"Answered {len(answered)} of {len(items)} questions.{remedy}")


def _take_back(memory: Memory, answered: list[tuple[int, int]], at: int) -> int:
    """Undo the last answer of this review. Returns the position of the question to ask next."""
    if not answered:
        output.text("Nothing answered yet.")
        return at
    try:
        memory.undo(answered[-1][1])
    except CannotUndo as error:
        output.failure(output.error_sentence(error))
        return at
    output.text("Taken back.")
    return answered.pop()[0]
