"""`hook`: what clients call at the events of a session (docs/hooks.md). A module of its own,
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
    with status 0, within
    0.8 seconds, and is silent on whatever it does not know. EVENT: its name, where the client does
    not send it.
    """
    timer = hooks.limit_time()
    try:
        from memoranda.clients.hook_events import event_of

        found = event_of(client, hooks.read_event(), os.environ, event)
        if found:
            reply = hooks.answered(found, call.settings, call.caller)
        else:
            reply = ""
        if reply:
            output.text(reply)
            output.write(flush=True)
    # The outermost loop of hooks: a client is never to fail because of them
    except Exception as error:
        if os.environ.get("MEMORY_HOOK_DEBUG"):
            output.failure(f"{type(error).__name__}: {error}")
    finally:
        timer.cancel()
