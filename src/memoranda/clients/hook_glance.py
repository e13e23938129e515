"""Checks whether memory may know something about the call of a tool. A hook asks this before each
call, so this module imports little.
"""

from __future__ import annotations

from pathlib import Path

from memoranda.clients.hook_events import HookEvent
from memoranda.transcripts.recall import Action, ActionTerms


def action_of(event: HookEvent) -> Action:
    """Return the action (a tool and its arguments) that an event is about."""
    return Action(event.cwd, event.tool, event.given, event.output)


def may_be_known(event: HookEvent, home: Path) -> bool:
    """Return whether memory may know something about the event's action.

    Only the indexes are looked at, which is quick. A hook opens the memory only if this is True.

    home: the folder of the memory.
    """
    terms = ActionTerms(action_of(event))
    if not terms.terms:
        return False
    from memoranda.engine.glance import may_know
    from memoranda.transcripts.glance import may_teach

    return may_teach(home, terms.terms) or may_know(home, terms.words)
