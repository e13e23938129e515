"""Composes the answer of a hook before a tool runs and after a tool failed (docs/hooks.md).

A fact is a sentence from the memory about such a call of a tool. Mostly there is no fact, and the
answer is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memoranda.clients.hook_events import HookEvent
from memoranda.clients.hook_glance import action_of
from memoranda.text.fence import fenced, without_marks
from memoranda.text.tokens import tokens_in
from memoranda.text.unicode import visible
from memoranda.transcripts.recall import facts

if TYPE_CHECKING:
    from memoranda.engine.read_session import ReadSession
    from memoranda.ledger.sessions import SessionRows

ACTION_TOKENS = 200
"""At most this many tokens for one call of a tool, with the marks around."""
HELD_BACK = (
    "Not run yet, as the memory of the user may speak against it. If it is right all the same, call"
    " it again: it will not be held back a second time."
)
"""The sentence that an agent is told in front of the facts when its call is held back."""
# At most this many facts are told before one tool runs.
_MOST_FACTS = 3


class ActionTelling(NamedTuple):
    """The text that an agent is told about an action (a tool and its arguments).

    text: the text; "" if there is nothing to tell.
    facts: the keys of the facts in the text.
    is_first: whether this session was told no fact about this action before.
    """

    text: str
    facts: list[str]
    is_first: bool


def for_action(memory: ReadSession, event: HookEvent, session: SessionRows) -> ActionTelling:
    """Return the facts in the memory that the agent should know before the action of an event.

    The facts are about the files or the command of the action. There are at most _MOST_FACTS, and
    together they fit into ACTION_TOKENS.

    session: records which facts this session was told. These are not told again.
    """
    # The sentence for a call that is held back comes on top of the facts.
    room = ACTION_TOKENS - tokens_in(fenced("")) - tokens_in(HELD_BACK)
    lines: list[str] = []
    keys: list[str] = []
    is_first = True
    for fact in facts(memory, action_of(event)):
        was_told_before = fact.key in session.notes
        if was_told_before:
            is_first = False
            continue
        # The same fact may be found in several ways. It is told once.
        if fact.key in keys:
            continue
        line = without_marks(f"- {visible(fact.text)}")
        room -= tokens_in(line + "\n")
        if room < 0:
            break
        lines.append(line)
        keys.append(fact.key)
        if len(lines) == _MOST_FACTS:
            break
    text = fenced("\n".join(lines)) if lines else ""
    return ActionTelling(text, keys, is_first)
