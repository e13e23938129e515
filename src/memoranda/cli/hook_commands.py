"""`hook`: what clients call at the events of a session (docs/hooks.md). A separate module,
because a client waits for it: what the other commands import takes a fourth of its time."""

from __future__ import annotations

import os

from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.syntax import command
from memoranda.clients import hook as hooks


@command("hook", "CLIENT", "[EVENT]", example="memory hook claude-code")
def hook(call: Invocation, client: str, event: str = "") -> None:
    """Answer an event of CLIENT on stdin: memory for its context, notes of what was said.

    For the hooks of claude-code, codex, gemini-cli, cursor, copilot-cli and opencode. Always ends
    with status 0, mostly within 0.8 seconds, and is silent on events it does not know. EVENT: its
    name, if the client does not send it.
    """
    limit = hooks.HookLimit()
    try:
        limit.is_reading = True
        data = hooks.read_event()
        limit.is_reading = False
        reply = _reply(call, limit, client, data, event)
        if reply:
            output.text(reply)
            output.write(flush=True)
    except Exception as error:
        # The outermost loop of hooks: a client must never fail because of them.
        if os.environ.get("MEMORY_HOOK_DEBUG"):
            output.failure(f"{type(error).__name__}: {error}")
    finally:
        limit.is_kept.set()
        limit.cancel()


def _reply(
    call: Invocation, limit: hooks.HookLimit, client: str, data: bytes, name: str
) -> str | None:
    """Return the answer to an event of a client. None if the event has no answer.

    If the event asks to remember a sentence, the sentence is kept in a file until it is stored.
    """
    from memoranda.clients.hook_events import event_of, may_ask_to_remember

    event = event_of(client, data, os.environ, name)
    if event is None:
        return None
    settings = call.settings
    waiting = []
    if may_ask_to_remember(event):
        from memoranda.clients.hook_waiting import forget, keep_asked
        from memoranda.clock import now

        waiting = keep_asked(event, settings.home, now())
    limit.is_kept.set()
    reply = hooks.answer_to(event, settings, call.caller)
    if waiting and reply is not None:
        forget(waiting)
    return reply
