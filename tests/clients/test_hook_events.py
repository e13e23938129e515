"""What each client sends a hook and gets back; other programs' events get nothing (docs/hooks.md)."""

from __future__ import annotations

import json

import pytest

from memoranda import Draft, Query
from memoranda.clients.hook import answer
from memoranda.clients.hook_events import (
    CHECKPOINT,
    CLIENTS,
    END,
    PROMPT,
    START,
    event_of,
    reply_of,
)

LONG = "what did we say about the deploy on Friday?"
CLAUDE = {
    "session_id": "s1",
    "transcript_path": "/home/a/.claude/projects/-p/s1.jsonl",
    "cwd": "/p",
}
CODEX = {
    "session_id": "s1",
    "transcript_path": "/home/a/.codex/sessions/2026/11/22/rollout-1.jsonl",
    "cwd": "/p",
    "model": "m",
    "permission_mode": "default",
}
CURSOR = {"conversation_id": "s1", "generation_id": "g", "workspace_roots": ["/p"]}
PROMPTED = {**CLAUDE, "hook_event_name": "UserPromptSubmit", "prompt": LONG}
COPILOT = {"sessionId": "s1", "timestamp": 1, "cwd": "/p"}


def event(client, payload, name="", environ=None):
    return event_of(client, json.dumps(payload).encode(), environ or {}, name)


@pytest.mark.promise("issue-hook-events")
@pytest.mark.parametrize(
    ("client", "payload", "name", "kind"),
    [
        (
            "claude-code",
            {**CLAUDE, "hook_event_name": "SessionStart", "source": "startup"},
            "",
            START,
        ),
        ("claude-code", PROMPTED, "", PROMPT),
        ("claude-code", PROMPTED | {"source": "user"}, "", PROMPT),
        (
            "claude-code",
            {**CLAUDE, "hook_event_name": "PreCompact", "trigger": "auto"},
            "",
            CHECKPOINT,
        ),
        ("claude-code", {**CLAUDE, "hook_event_name": "SessionEnd", "reason": "other"}, "", END),
        ("codex", {**CODEX, "hook_event_name": "SessionStart", "source": "startup"}, "", START),
        (
            "codex",
            {**CODEX, "hook_event_name": "UserPromptSubmit", "prompt": LONG, "turn_id": "t"},
            "",
            PROMPT,
        ),
        ("codex", {**CODEX, "transcript_path": None, "hook_event_name": "SessionStart"}, "", START),
        (
            "gemini-cli",
            {**CLAUDE, "hook_event_name": "SessionStart", "source": "startup"},
            "",
            START,
        ),
        ("gemini-cli", {**CLAUDE, "hook_event_name": "BeforeAgent", "prompt": LONG}, "", PROMPT),
        (
            "gemini-cli",
            {**CLAUDE, "hook_event_name": "PreCompress", "trigger": "auto"},
            "",
            CHECKPOINT,
        ),
        ("cursor", {**CURSOR, "hook_event_name": "sessionStart"}, "", START),
        ("cursor", {**CURSOR, "hook_event_name": "beforeSubmitPrompt", "prompt": LONG}, "", PROMPT),
        ("cursor", {**CURSOR, "hook_event_name": "sessionEnd"}, "", END),
        ("copilot-cli", {**COPILOT, "source": "new"}, "sessionStart", START),
        (
            "copilot-cli",
            {"timestamp": 1, "cwd": "/p", "prompt": LONG},
            "userPromptSubmitted",
            PROMPT,
        ),
        (
            "opencode",
            {"hook_event_name": "prompt", "session_id": "s1", "cwd": "/p", "prompt": LONG},
            "",
            PROMPT,
        ),
    ],
)
def test_the_events_of_each_client_are_recognised(client, payload, name, kind):
    hook_event = event(client, payload, name)
    assert hook_event is not None
    assert (hook_event.client, hook_event.kind, hook_event.cwd) == (client, kind, "/p")
    assert hook_event.session in ("s1", "/p")


# VS Code
@pytest.mark.parametrize(
    ("client", "payload"),
    [
        (
            "claude-code",
            {"hookEventName": "SessionStart", "sessionId": "s", "cwd": "/p"},
        ),
        ("claude-code", {**CLAUDE, "sessionId": "s", "hook_event_name": "SessionStart"}),
        (
            "claude-code",
            {
                **CURSOR,
                "hook_event_name": "SessionStart",
                "session_id": "s",
                "transcript_path": "/t",
            },
        ),
        ("claude-code", {**CLAUDE, "transcript_path": "", "hook_event_name": "SessionStart"}),
        ("claude-code", PROMPTED | {"agent_id": "a1"}),
        ("claude-code", {**CLAUDE, "hook_event_name": "PostToolUse"}),
        ("claude-code", {**CLAUDE, "hook_event_name": 7}),
        ("claude-code", {**CLAUDE, "session_id": "", "hook_event_name": "SessionStart"}),
        ("claude-code", [1, 2]),
        ("nobody", {**CLAUDE, "hook_event_name": "SessionStart"}),
        ("cursor", {"hook_event_name": "sessionStart"}),
        ("copilot-cli", {"timestamp": 1, "cwd": "/p"}),
        ("claude-code", PROMPTED | {"prompt": "fix the bug"}),
        ("claude-code", PROMPTED | {"prompt": "x" * 19}),
        ("claude-code", PROMPTED | {"prompt": "/compact and keep the plan"}),
        ("claude-code", PROMPTED | {"prompt": "!ls -la some/folder/somewhere"}),
        ("claude-code", PROMPTED | {"prompt": "   \n" * 20}),
        ("claude-code", PROMPTED | {"prompt": None}),
        ("claude-code", PROMPTED | {"source": "system"}),
        ("claude-code", PROMPTED | {"source": "loop_wakeup"}),
        ("claude-code", PROMPTED | {"source": "sdk"}),
    ],
)
def test_what_is_foreign_unknown_short_or_typed_by_no_person_is_no_event(client, payload):
    assert event(client, payload) is None


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_what_is_no_json_is_no_event(data):
    assert event_of("claude-code", data, {}) is None


@pytest.mark.parametrize("variable", ["GROK_SESSION", "DEVIN_HOME"])
def test_the_hook_of_claude_code_is_silent_when_another_program_runs_it(variable):
    payload = {**CLAUDE, "hook_event_name": "SessionStart"}
    assert event("claude-code", payload, environ={variable: "1"}) is None
    assert (
        event(
            "claude-code", payload, environ={"VSCODE_GIT_IPC_HANDLE": "1", "TERM_PROGRAM": "vscode"}
        )
        is not None
    )


def test_codex_running_the_hook_of_claude_codes_plugin_is_codex():
    assert event("claude-code", {**CODEX, "hook_event_name": "SessionStart"}).client == "codex"


REPLIES = {
    "claude-code": {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "a é"}
    },
    "codex": {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "a é"}},
    "gemini-cli": {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "a é"}
    },
    "cursor": {"additional_context": "a é"},
    "copilot-cli": {"additionalContext": "a é"},
    "opencode": {"context": "a é"},
}
PAYLOADS = {
    "claude-code": CLAUDE,
    "codex": CODEX,
    "gemini-cli": CLAUDE,
    "cursor": CURSOR,
    "copilot-cli": COPILOT,
    "opencode": {"session_id": "s1"},
}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_answer_has_the_keys_the_client_reads_and_no_other(client):
    names = {kind: name for name, kind in CLIENTS[client].events.items()}
    start = event(client, {**PAYLOADS[client], "hook_event_name": names[START]})
    prompt = event(client, {**PAYLOADS[client], "hook_event_name": names[PROMPT], "prompt": LONG})

    document = json.loads(reply_of(start, "a é"))
    assert document == REPLIES[client]
    # Whatever encoding the client's pipe has
    assert reply_of(start, "a é").isascii()
    assert reply_of(start, "") == ""
    # Which take no context in there
    assert bool(reply_of(prompt, "a")) == (client not in ("cursor", "copilot-cli"))


def said(memory, prompt):
    """What the client gets for a prompt. One too short to ask memory for anything may still ask it
    to remember.
    """
    hook_event = event(
        "claude-code", {**CLAUDE, "hook_event_name": "UserPromptSubmit", "prompt": prompt}
    )
    if hook_event is None:
        return ""
    return answer(memory, hook_event)


@pytest.mark.parametrize(
    ("prompt", "remembered"),
    [("记住我喜欢蓝色的船", "我喜欢蓝色的船"), ("Remember: I use vim", "I use vim")],
)
def test_what_a_few_words_ask_to_remember_is_in_the_inbox(memory, prompt, remembered):
    assert remembered in json.loads(said(memory, prompt))["hookSpecificOutput"]["additionalContext"]
    [note] = memory.list(Query(projects=("categories",)))[0]
    assert memory.read(note).content.strip() == remembered


@pytest.mark.parametrize(
    ("text", "prompt", "is_told"),
    [
        ("数据库在法兰克福的机房", "数据库在法兰克福吗", True),
        ("データベースは大阪にあります", "データベースは大阪？", True),
        ("数据库在法兰克福的机房", "法兰克福", False),
        ("The database is in Osaka", "database in Osaka?", False),
    ],
)
def test_a_sentence_without_blanks_is_long_enough_with_fewer_characters(
    memory, text, prompt, is_told
):
    memory.write(Draft(text, project="categories", category="knowledge"))
    hook_answer = json.loads(said(memory, prompt) or "{}")
    assert (text in str(hook_answer)) is is_told


@pytest.mark.parametrize(
    "prompt",
    ["", "  ", "use vim", "我喜欢蓝色的船", "/remember: vim", "remember vim?", "你记住了吗？"],
)
def test_other_short_prompts_store_and_are_told_nothing(memory, prompt):
    assert said(memory, prompt) == ""
    assert memory.list(Query(projects=("categories",)))[1] == 0
