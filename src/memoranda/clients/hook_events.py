"""What clients tell a hook on its standard input, and how each wants its answer (docs/hooks.md).

A payload of a client that is none of these, or looks like another one's, is no event: several
programs run the hooks of Claude Code's settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

START = "start"
PROMPT = "prompt"
CHECKPOINT = "checkpoint"
END = "end"
PROMPT_CHARACTERS = 20
"""Shorter prompts ask memory nothing; they may ask to remember something. A CJK character counts
four.
"""
_REMEMBER = ("remember", "记住")

_TEXT = 20_000
_ANSWER = 4_000
_NAME = 500
_FOREIGN_VARIABLES = ("GROK_", "DEVIN_")


class HookEvent(NamedTuple):
    """One event of one client: `kind` is START, PROMPT, CHECKPOINT or END, `name` the client's own
    name for it.
    `source`: what began a session, or whose prompt it is. `transcript`: the file with the session
    so far, or "".
    `answer`: the last answer, where the client tells it."""

    client: str
    kind: str
    name: str
    session: str
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    transcript: str = ""
    answer: str = ""


class HookDialect(NamedTuple):
    """How a client speaks. `handshake` is the name it gives itself over MCP, `agent` the agent it
    stands for; `events` are its names for the kinds of events, `keys` of its payload's values;
    `injects`: the kinds at which it takes text in; `reply` makes its answer of an event's name and
    a text."""

    handshake: str
    agent: str
    events: Mapping[str, str]
    reply: Callable[[str, str], dict[str, Any]]
    keys: Mapping[str, str] = {}
    injects: tuple[str, ...] = (START, PROMPT)
    foreign: tuple[str, ...] = ("hookEventName", "sessionId", "conversation_id", "workspace_roots")


_CLAUDE_REPLY = lambda name, text: {
    "hookSpecificOutput": {"hookEventName": name, "additionalContext": text}
}
_CLAUDE = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "PreCompact": CHECKPOINT,
    "SessionEnd": END,
}
CLIENTS = {
    "claude-code": HookDialect("claude-code", "claude", _CLAUDE, _CLAUDE_REPLY),
    "codex": HookDialect("codex-mcp-client", "codex", _CLAUDE, _CLAUDE_REPLY),
    "gemini-cli": HookDialect(
        "gemini-cli-mcp-client",
        "gemini",
        {
            "SessionStart": START,
            "BeforeAgent": PROMPT,
            "PreCompress": CHECKPOINT,
            "SessionEnd": END,
        },
        _CLAUDE_REPLY,
    ),
    "cursor": HookDialect(
        "cursor-vscode",
        "cursor",
        {
            "sessionStart": START,
            "beforeSubmitPrompt": PROMPT,
            "preCompact": CHECKPOINT,
            "sessionEnd": END,
        },
        lambda _, text: {"additional_context": text},
        {"session": "conversation_id", "cwd": "workspace_roots"},
        (START,),
        ("hookEventName", "sessionId"),
    ),
    "copilot-cli": HookDialect(
        "copilot",
        "copilot",
        {"sessionStart": START, "userPromptSubmitted": PROMPT, "sessionEnd": END},
        lambda _, text: {"additionalContext": text},
        {"session": "sessionId"},
        (START,),
        ("conversation_id", "workspace_roots"),
    ),
    "opencode": HookDialect(
        "opencode",
        "opencode",
        {"start": START, "prompt": PROMPT, "checkpoint": CHECKPOINT, "end": END},
        lambda _, text: {"context": text},
    ),
}
"""The clients that have hooks, by the name `memory hook` takes."""


def event_of(
    client: str, data: bytes, environ: Mapping[str, str], name: str = ""
) -> HookEvent | None:
    """The event in `data`, which the program whose hook for `client` this is sent; None for what is
    none, for a foreign program's, and for one about which there is nothing to do. `name`: the
    event, of a client that does not say it in its payload."""
    known = CLIENTS.get(client)
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if (
        known is None
        or not isinstance(payload, dict)
        or any(name in payload for name in known.foreign)
    ):
        return None
    if client == "claude-code":
        if any(name.startswith(_FOREIGN_VARIABLES) for name in environ):
            return None
        if "turn_id" in payload or "/rollout-" in str(payload.get("transcript_path")):
            # Which runs the hooks of Claude Code's plugins
            client = "codex"
            known = CLIENTS["codex"]
        elif not payload.get("transcript_path"):
            return None
    name = _text(payload, "hook_event_name", _NAME) or name
    cwd = payload.get(known.keys.get("cwd", "cwd")) or payload.get("cwd")
    cwd = cwd[0] if isinstance(cwd, list) and cwd else cwd
    cwd = cwd[:4096] if isinstance(cwd, str) else ""
    kind = known.events.get(name)
    session = _text(payload, known.keys.get("session", "session_id"), _NAME)
    if client == "copilot-cli":
        # Its older versions name no session
        session = session or cwd
    if kind is None or not session or payload.get("agent_id"):
        # A subagent's prompts are no person's
        return None
    event = HookEvent(
        client,
        kind,
        name,
        session,
        cwd,
        _text(payload, "prompt", _TEXT),
        _text(payload, "source", _NAME),
        _text(payload, "transcript_path", 4096),
        _text(payload, "last_assistant_message", _ANSWER),
    )
    # Of a person, and a sentence: no command of the client's, and long enough
    text = event.prompt.strip()
    is_sentence = is_long_enough(text) or may_ask_to_remember(event)
    is_asking = event.source in ("", "user") and is_sentence and text[0] not in "/!"
    if kind != PROMPT or is_asking:
        return event
    return None


def may_ask_to_remember(event: HookEvent) -> bool:
    """Whether it is worth a look what the prompt of an event asks to remember."""
    prompt = event.prompt.lower()
    return event.kind == PROMPT and any(word in prompt for word in _REMEMBER)


def is_long_enough(text: str) -> bool:
    """Whether memory is asked about a prompt of these words."""
    if text.isascii():
        return len(text) >= PROMPT_CHARACTERS
    # Some ms, which most prompts need not take
    from memoranda.text.tokens import is_cjk

    return len(text) + 3 * sum(map(is_cjk, text[:PROMPT_CHARACTERS])) >= PROMPT_CHARACTERS


def _text(payload: Mapping[str, Any], key: str, most: int) -> str:
    value = payload.get(key)
    if isinstance(value, str):
        return value[:most]
    return ""


def reply_of(event: HookEvent, text: str) -> str:
    """The answer to `event` that puts `text` into the client's context; nothing where there is
    nothing to say.
    """
    known = CLIENTS[event.client]
    if text and event.kind in known.injects:
        return json.dumps(known.reply(event.name, text), ensure_ascii=True)
    return ""
