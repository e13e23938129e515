"""Checks whether the memory may know something about the call of a tool.

A hook asks this before each call of a tool. It must be fast, so this module imports little.
"""

from __future__ import annotations

from pathlib import Path

from memoranda.clients.hook_events import HookEvent
from memoranda.transcripts.recall import MAX_NOTES, Action, ActionTerms, line_about


def action_of(event: HookEvent) -> Action:
    """Return the action (a tool and its arguments) that an event is about."""
    return Action(event.cwd, event.tool, event.arguments, event.output)


def may_be_known(event: HookEvent, home: Path) -> bool:
    """Whether the memory may know something about the call of a tool in an event.

    The answer comes from the indexes, without opening the memory, which is quick. If it is False,
    the hook is done. If it is True, the hook opens the memory to find out.

    home: the folder of the memory.
    """
    action_terms = ActionTerms(action_of(event))
    if not action_terms.terms:
        return False
    from memoranda.engine.telling.glance import bodies_known
    from memoranda.transcripts.glance import may_teach

    if may_teach(home, action_terms.terms):
        return True
    bodies = bodies_known(home, action_terms.words, MAX_NOTES)
    if bodies is None:
        # The index could not be read in time.
        return True
    return any(line_about(body, action_terms) for body in bodies)
