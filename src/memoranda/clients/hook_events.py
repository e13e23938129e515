"""Reads the events that clients send to a hook, and formats the answers (docs/hooks.md).

Each client has its own dialect: names of events, keys of the payload, and form of the answer. The
payload of an unknown client is ignored. Several programs run the hooks in the settings of Claude
Code. So a payload that looks like the payload of another client is ignored, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

START = "start"
PROMPT = "prompt"
CHECKPOINT = "checkpoint"
END = "end"
TOOL = "tool"
FAILED = "failed"
# Systems know no longer path, and no longer name in a path.
_MOST_PATH_CHARACTERS = 4_096
_MOST_NAME_BYTES = 255
PROMPT_CHARACTERS = 20
"""Memory is not searched for a prompt with fewer characters. A CJK character counts as four.

A shorter prompt may still ask to remember something.
"""
# The words with which a person asks to remember something.
_REMEMBER = ("remember", "记住")

# At most this many characters are read of each field that a client sends.
_TEXT_CHARACTERS = 20_000
_ANSWER_CHARACTERS = 4_000
_INPUT_CHARACTERS = 60_000
_OUTPUT_CHARACTERS = 8_000
_NAME_CHARACTERS = 500
# Environment variables with these beginnings are set by other programs that run Claude Code's hooks.
_FOREIGN_VARIABLES = ("GROK_", "DEVIN_")


class HookEvent(NamedTuple):
    """One event that a client sent to its hook. A field that the client did not send is "".

    client: the id of the client, a key of CLIENTS.
    kind: START, PROMPT, CHECKPOINT, END, TOOL (a tool is about to run) or FAILED (a tool failed).
    name: the client's own name for the event.
    session: the id of the session.
    cwd: the working folder.
    prompt: the text of the prompt.
    source: the reason why a session began, or the author of a prompt.
    transcript: the path of the file with the session so far.
    answer: the last answer of the model.
    tool: the name of the tool.
    arguments: the tool's arguments as JSON.
    output: the output of a tool that failed.
    """

    client: str
    kind: str
    name: str
    session: str
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    transcript: str = ""
    answer: str = ""
    tool: str = ""
    arguments: str = ""
    output: str = ""


class HookDialect(NamedTuple):
    """The events that a client sends, and the form of the answers that it understands.

    handshake: the name that the client gives itself over MCP.
    agent: the name of the agent that acts through the client.
    events: the kind, such as START, of each event by the client's name of the event.
    reply: returns the client's form of an answer for the name of an event and a text.
    keys: the client's keys of payload values, by our names. Keys that are the same are left out.
    injects: the kinds of events at which the client accepts text.
    foreign: keys that show that a payload comes from another client.
    hold: returns the answer that stops a tool from running and tells the model the reason. None if
        the client has no such answer.
    """

    handshake: str
    agent: str
    events: Mapping[str, str]
    reply: Callable[[str, str], dict[str, Any]]
    keys: Mapping[str, str] = {}
    injects: tuple[str, ...] = (START, PROMPT, TOOL, FAILED)
    foreign: tuple[str, ...] = ("hookEventName", "sessionId", "conversation_id", "workspace_roots")
    hold: Callable[[str, str], dict[str, Any]] | None = None


def _claude_reply(name: str, text: str) -> dict[str, Any]:
    """Return the answer to an event that puts a text into the context of Claude Code.

    name: the name of the event.
    """
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def _claude_hold(name: str, text: str) -> dict[str, Any]:
    """Return the answer to an event that stops a tool in Claude Code.

    name: the name of the event.
    text: the reason, which the model is told.
    """
    decision = {
        "hookEventName": name,
        "permissionDecision": "deny",
        "permissionDecisionReason": text,
    }
    return {"hookSpecificOutput": decision}


# The client's name of an event -> our kind.
_CLAUDE_EVENTS = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "PreCompact": CHECKPOINT,
    "SessionEnd": END,
    "PreToolUse": TOOL,
    "PostToolUseFailure": FAILED,
}
_CODEX_EVENTS = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "PreCompact": CHECKPOINT,
    "SessionEnd": END,
    "PreToolUse": TOOL,
    "PostToolUse": FAILED,
}
CLIENTS = {
    "claude-code": HookDialect(
        handshake="claude-code",
        agent="claude",
        events=_CLAUDE_EVENTS,
        reply=_claude_reply,
        hold=_claude_hold,
    ),
    "codex": HookDialect(
        handshake="codex-mcp-client",
        agent="codex",
        events=_CODEX_EVENTS,
        reply=_claude_reply,
        hold=_claude_hold,
    ),
    "gemini-cli": HookDialect(
        handshake="gemini-cli-mcp-client",
        agent="gemini",
        events={
            "SessionStart": START,
            "BeforeAgent": PROMPT,
            "PreCompress": CHECKPOINT,
            "SessionEnd": END,
            # This client takes text before a tool runs only together with a refusal.
            "BeforeTool": TOOL,
            "AfterTool": FAILED,
        },
        reply=_claude_reply,
        injects=(START, PROMPT, FAILED),
        hold=lambda _, text: {"decision": "deny", "reason": text},
    ),
    "cursor": HookDialect(
        handshake="cursor-vscode",
        agent="cursor",
        events={
            "sessionStart": START,
            "beforeSubmitPrompt": PROMPT,
            "preCompact": CHECKPOINT,
            "sessionEnd": END,
            # This client takes text only after a tool has run, so the next call is told.
            "postToolUse": TOOL,
            "postToolUseFailure": FAILED,
        },
        reply=lambda _, text: {"additional_context": text},
        keys={"session": "conversation_id", "cwd": "workspace_roots"},
        injects=(START, TOOL, FAILED),
        foreign=("hookEventName", "sessionId"),
    ),
    "copilot-cli": HookDialect(
        handshake="copilot",
        agent="copilot",
        events={
            "sessionStart": START,
            "userPromptSubmitted": PROMPT,
            "sessionEnd": END,
            "preToolUse": TOOL,
            "postToolUse": FAILED,
        },
        reply=lambda _, text: {"additionalContext": text},
        keys={"session": "sessionId", "tool": "toolName", "arguments": "toolArgs"},
        injects=(START, TOOL, FAILED),
        foreign=("conversation_id", "workspace_roots"),
        hold=lambda _, text: {"permissionDecision": "deny", "permissionDecisionReason": text},
    ),
    "opencode": HookDialect(
        handshake="opencode",
        agent="opencode",
        events={
            "start": START,
            "prompt": PROMPT,
            "checkpoint": CHECKPOINT,
            "end": END,
            "tool": TOOL,
            "failed": FAILED,
        },
        reply=lambda _, text: {"context": text},
    ),
}
"""The clients that have hooks, by the name that `memory hook` is called with."""


def event_of(
    client: str, data: bytes, environ: Mapping[str, str], name: str = ""
) -> HookEvent | None:
    """Return the event that a client sent to its hook.

    None means that the hook has nothing to do: the data is invalid, the event is another program's,
    or the event needs no action.

    client: the client whose hook was called.
    data: the payload in JSON, as the client sent it.
    environ: the environment variables of the hook.
    name: the name of the event. "" if the payload has it.
    """
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(payload, dict):
        return None
    return event_in(client, payload, environ, name)


def event_in(
    client: str, payload: Mapping[str, Any], environ: Mapping[str, str], name: str = ""
) -> HookEvent | None:
    """Return the event in a parsed payload. None if the payload has no event that needs an action.

    For example, `{"hook_event_name": "SessionStart", "session_id": "7", …}` gives an event of kind
    START.

    client: the client whose hook was called. The payload may show that another client called it.
    environ: the environment variables of the hook.
    name: the name of the event. "" if the payload has it.
    """
    client = _sender(client, payload, environ)
    if not client:
        return None
    dialect = CLIENTS[client]
    name = _text(payload, "hook_event_name", _NAME_CHARACTERS) or name
    kind = dialect.events.get(name)
    cwd = _working_folder(dialect, payload)
    session = _text(payload, dialect.keys.get("session", "session_id"), _NAME_CHARACTERS)
    # Older versions of this client send no session id. The folder then identifies the session.
    if client == "copilot-cli" and not session:
        session = cwd
    if kind is None or not session:
        return None
    if kind in (TOOL, FAILED):
        return _tool_event(dialect, payload, HookEvent(client, kind, name, session, cwd))
    if payload.get("agent_id"):
        # A model wrote the prompts of a subagent, not a person.
        return None
    event = HookEvent(
        client,
        kind,
        name,
        session,
        cwd,
        prompt=_text(payload, "prompt", _TEXT_CHARACTERS),
        source=_text(payload, "source", _NAME_CHARACTERS),
        transcript=_text(payload, "transcript_path", _MOST_PATH_CHARACTERS),
        answer=_text(payload, "last_assistant_message", _ANSWER_CHARACTERS),
    )
    if kind == PROMPT and not _is_of_person(event):
        return None
    return event


def _sender(client: str, payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return the client that sent a payload to the hook of `client`; "" if it is unknown.

    A hook that was set up for Claude Code may be run by another client.

    environ: the environment variables of the hook.
    """
    dialect = CLIENTS.get(client)
    if dialect is None or any(key in payload for key in dialect.foreign):
        return ""
    if client != "claude-code":
        return client
    if any(variable.startswith(_FOREIGN_VARIABLES) for variable in environ):
        return ""
    # Codex runs the hooks of Claude Code's plugins.
    if "turn_id" in payload or "/rollout-" in str(payload.get("transcript_path")):
        return "codex"
    # Claude Code itself always names its transcript.
    return client if payload.get("transcript_path") else ""


def _working_folder(dialect: HookDialect, payload: Mapping[str, Any]) -> str:
    """Return the folder of a session; "" if it is unknown, or if it cannot be a folder.

    If the client sends several folders, the first one is returned.

    dialect: the names of the keys in this client's payloads.
    """
    # If there is nothing under the key of this client, there may be under the usual one.
    own_key = dialect.keys.get("cwd", "cwd")
    cwd = payload.get(own_key) or payload.get("cwd")
    if isinstance(cwd, list) and cwd:
        cwd = cwd[0]
    # The hook looks for files in this folder. The checks below are for paths with which the system
    # would raise an error instead of saying that no such folder exists.
    if not isinstance(cwd, str) or len(cwd) > _MOST_PATH_CHARACTERS or "\0" in cwd:
        return ""
    try:
        name_lengths = [len(os.fsencode(name)) for name in cwd.split("/")]
    except UnicodeEncodeError:
        return ""
    return cwd if max(name_lengths) <= _MOST_NAME_BYTES else ""


def _is_of_person(event: HookEvent) -> bool:
    """Whether a person wrote a prompt that is worth a search.

    The text must be long enough, and must not be a command of the client such as `/help`.
    """
    has_other_author = event.source not in ("", "user")
    if has_other_author:
        return False
    text = event.prompt.strip()
    # A short prompt counts if it asks to remember something.
    if not is_long_enough(text) and not may_ask_to_remember(event):
        return False
    is_command = text[0] in "/!"
    return not is_command


def _tool_event(
    dialect: HookDialect, payload: Mapping[str, Any], event: HookEvent
) -> HookEvent | None:
    """Return `event` with the name, the arguments and the output of the tool.

    Some clients send an event of kind FAILED at every end of a tool. If the tool did not fail, the
    result is None.

    dialect: the names of the keys in this client's payloads.
    event: the event without these fields.
    """
    tool_input = payload.get(dialect.keys.get("arguments", "tool_input"), "")
    if not isinstance(tool_input, str):
        tool_input = json.dumps(tool_input, ensure_ascii=False)
    tool = _text(payload, dialect.keys.get("tool", "tool_name"), _NAME_CHARACTERS)
    event = event._replace(tool=tool, arguments=storable(tool_input[:_INPUT_CHARACTERS]))
    if event.kind == TOOL:
        return event
    output = _failure(payload)
    if not output:
        return None
    return event._replace(output=storable(output[-_OUTPUT_CHARACTERS:]))


# The keys under which clients send the output of a tool.
_RESULT_KEYS = ("tool_response", "toolResult", "tool_output", "output", "result")
_FAILED_STATES = ("failure", "error", "failed", "rejected")


def _failure(payload: Mapping[str, Any]) -> str:
    """Return the output of a tool that failed; "" if the tool did not fail.

    The first of these that the client sends decides whether it failed:

    1. an error;
    2. a state such as "error", or the exit code of a command in the output;
    3. the words of the output, if there is neither a state nor an exit code.
    """
    for key in ("error", "error_message"):
        error = payload.get(key)
        if error and isinstance(error, str):
            return error
    from memoranda.transcripts.blocks import failed_by_text

    text, state = _outcome(payload)
    if state in _FAILED_STATES:
        return text or "failed"
    # None if the output has no exit code.
    has_failed = failed_by_text(text)
    if has_failed is None:
        has_failed = state is None and _reads_as_failure(text)
    if has_failed:
        return text or "failed"
    return ""


def _outcome(payload: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the output of a tool, and how the tool ended, such as "error".

    The second value is None if the payload does not say it.
    """
    from memoranda.transcripts.blocks import text_of

    results: list[Any] = [payload[key] for key in _RESULT_KEYS if payload.get(key)]
    result = results[0] if results else ""
    text = text_of(result)
    if not isinstance(result, dict):
        return text, None
    other_result = result.get("textResultForLlm") or result.get("llmContent")
    return text or str(other_result or ""), _state_of(result)


def _reads_as_failure(text: str) -> bool:
    """Whether the words of an output report a failure.

    Codex sends its hooks only the output, and not whether the tool failed.
    """
    from memoranda.transcripts.lessons import is_broken
    from memoranda.transcripts.terms import error_line, is_error

    return is_broken(text[:1_000]) or is_error(error_line(text))


def _state_of(result: Mapping[str, Any]) -> Any:
    """Return how a tool ended, such as "error", from its result. None if unknown."""
    error = result.get("error")
    if isinstance(error, dict | str) and error:
        return "error"
    return result.get("resultType")


def may_ask_to_remember(event: HookEvent) -> bool:
    """Whether a prompt has a word that can begin a request to remember, such as "remember"."""
    prompt = event.prompt.lower()
    return event.kind == PROMPT and any(word in prompt for word in _REMEMBER)


def is_long_enough(text: str) -> bool:
    """Whether the memory is searched for a prompt of this length. A CJK character counts as four."""
    if text.isascii():
        return len(text) >= PROMPT_CHARACTERS
    # The import takes some ms, which prompts in ASCII can save.
    from memoranda.text.tokens import is_cjk

    return len(text) + 3 * sum(map(is_cjk, text[:PROMPT_CHARACTERS])) >= PROMPT_CHARACTERS


def _text(payload: Mapping[str, Any], key: str, most_characters: int) -> str:
    """Return the first `most_characters` characters of the text at `key`; "" if there is no text."""
    value = payload.get(key)
    if isinstance(value, str):
        return storable(value[:most_characters])
    return ""


def storable(text: str) -> str:
    """Return a text without the halves of characters that a client cut in two.

    UTF-8 has no form for such a half, so the text could not be stored.
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "ignore").decode("utf-8")


def reply_of(event: HookEvent, text: str) -> str:
    """Return the answer to `event`, as JSON, that puts `text` into the client's context.

    The answer is "" if `text` is empty, or if the client accepts no text at such an event.
    """
    dialect = CLIENTS[event.client]
    if not text or event.kind not in dialect.injects:
        return ""
    return json.dumps(dialect.reply(event.name, text), ensure_ascii=True)


def held_reply(event: HookEvent, text: str) -> str:
    """Return the answer to `event` that stops the tool from running and tells the model `text`.

    The client must be one whose dialect has `hold`.
    """
    hold = CLIENTS[event.client].hold
    assert hold is not None
    return json.dumps(hold(event.name, text), ensure_ascii=True)
