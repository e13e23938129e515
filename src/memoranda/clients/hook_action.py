"""The texts of a hook before a tool runs, and after one failed (docs/hooks.md): mostly empty."""

from __future__ import annotations

from memoranda.clients.hook_context import Told
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
# Facts told before one tool runs.
_MOST_FACTS = 3


def for_action(memory: MemorySession, event: HookEvent, session: SessionRows) -> Told:
    """The known facts about the action. Each is told once per session."""
    room = ACTION_TOKENS - tokens_in(fenced(""))
    lines: list[str] = []
    keys: list[str] = []
    for fact in facts(memory, action_of(event)):
        if fact.key in session.notes or fact.key in keys:
            continue
        line = MARKS.sub(PLAIN_MARK, f"- {visible(fact.text)}")
        room -= tokens_in(line + "\n")
        if room < 0:
            break
        lines.append(line)
        keys.append(fact.key)
        if len(lines) == _MOST_FACTS:
            break
    return Told(fenced("\n".join(lines)) if lines else "", keys)
