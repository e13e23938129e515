"""What a hook says before a tool runs, and after one failed (docs/hooks.md): mostly nothing."""

from __future__ import annotations

from pathlib import Path

from memoranda.clients.hook_context import MARKS, PLAIN_MARK, Told, fenced, tokens_in
from memoranda.clients.hook_events import HookEvent
from memoranda.clients.hook_sessions import SessionFile
from memoranda.engine import MemorySession
from memoranda.text.unicode import visible
from memoranda.transcripts.recall import Action, ActionTerms, facts

ACTION_TOKENS = 200
"""At most so many tokens for one call of a tool, with the marks around."""
_MOST_FACTS = 3


def action_of(event: HookEvent) -> Action:
    """The action an event is about."""
    return Action(event.cwd, event.tool, event.given, event.output)


def may_be_known(event: HookEvent, home: Path) -> bool:
    """Whether it is worth opening the memory for this event: looked up in its indexes alone."""
    from memoranda.engine.glance import may_know
    from memoranda.transcripts.glance import may_teach

    about = ActionTerms(action_of(event))
    return bool(about.terms) and (may_teach(home, about.terms) or may_know(home, about.words))


def for_action(memory: MemorySession, event: HookEvent, session: SessionFile) -> Told:
    """What is known of the action, each fact once in a session."""
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
