"""What a hook says before a tool runs, and after one failed (docs/hooks.md): mostly nothing."""

from __future__ import annotations

from typing import NamedTuple

from memoranda.clients.hook_events import HookEvent
from memoranda.clients.hook_glance import action_of
from memoranda.engine import MemorySession
from memoranda.ledger.sessions import SessionRows
from memoranda.text.fence import MARKS, PLAIN_MARK, fenced
from memoranda.text.tokens import tokens_in
from memoranda.text.unicode import visible
from memoranda.transcripts.recall import facts

ACTION_TOKENS = 200
"""At most this many tokens for one call of a tool, with the marks around."""
HELD_BACK = (
    "Not run yet, as the memory of the user may speak against it. If it is right all the same, call"
    " it again: it will not be held back a second time."
)
"""What an agent is told of a call that is held back, in front of the facts."""
# Facts told before one tool runs.
_MOST_FACTS = 3


class ActionTelling(NamedTuple):
    """The text about an action, and the facts in it. `is_first`: nothing about this action was told
    in the session before, so that the agent does not know yet.
    """

    text: str
    facts: list[str]
    is_first: bool


def for_action(memory: MemorySession, event: HookEvent, session: SessionRows) -> ActionTelling:
    """What is known of the action, each fact once in a session."""
    room = ACTION_TOKENS - tokens_in(fenced("")) - tokens_in(HELD_BACK)
    lines: list[str] = []
    keys: list[str] = []
    is_first = True
    for fact in facts(memory, action_of(event)):
        if fact.key in session.notes:
            is_first = False
            continue
        if fact.key in keys:
            continue
        line = MARKS.sub(PLAIN_MARK, f"- {visible(fact.text)}")
        room -= tokens_in(line + "\n")
        if room < 0:
            break
        lines.append(line)
        keys.append(fact.key)
        if len(lines) == _MOST_FACTS:
            break
    text = ""
    if lines:
        text = fenced("\n".join(lines))
    return ActionTelling(text, keys, is_first)
