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
    """Whether the memory may know something about the action (a tool and its arguments) of an
    event.

    The answer comes from the indexes, without opening the memory, which is quick. If it is False,
    the hook is done. If it is True, the hook opens the memory to find out.

    home: the folder of the memory.
    """
    about = ActionTerms(action_of(event))
    if not about.terms:
        return False
    from memoranda.engine.glance import bodies_known
    from memoranda.transcripts.glance import may_teach

    if may_teach(home, about.terms):
        return True
    bodies = bodies_known(home, about.words, MAX_NOTES)
    return bodies is None or any(line_about(body, about) for body in bodies)
