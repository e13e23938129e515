"""Checking whether a tool's hook has anything to say. It runs often, so this imports little."""

from __future__ import annotations

from pathlib import Path

from memoranda.clients.hook_events import HookEvent
from memoranda.transcripts.recall import Action, ActionTerms


def action_of(event: HookEvent) -> Action:
    """The action an event is about."""
    return Action(event.cwd, event.tool, event.given, event.output)


def may_be_known(event: HookEvent, home: Path) -> bool:
    """Whether it is worth opening the memory for this event: looked up in its indexes alone."""
    terms = ActionTerms(action_of(event))
    if not terms.terms:
        return False
    from memoranda.engine.glance import may_know
    from memoranda.transcripts.glance import may_teach

    return may_teach(home, terms.terms) or may_know(home, terms.words)
