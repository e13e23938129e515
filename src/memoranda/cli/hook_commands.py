"""`hook`: what clients call at the events of a session (docs/hooks.md)."""

from __future__ import annotations

from memoranda.cli.hook_run import run_hook
from memoranda.cli.invocation import Invocation
from memoranda.cli.syntax import command


@command("hook", "CLIENT", "[EVENT]", example="memory hook claude-code")
def hook(call: Invocation, client: str, event: str = "") -> None:
    """Answer an event of CLIENT on stdin: memory for its context, notes of what was said.

    For the hooks of claude-code, codex, gemini-cli, cursor, copilot-cli and opencode. Always ends
    with status 0, mostly within 0.8 seconds, and is silent on events it does not know. EVENT: its
    name, if the client does not send it.
    """
    run_hook(client, event, lambda: call.settings, lambda: call.caller)
