"""A prompt is read together with the turns of the session before it."""

from __future__ import annotations

import json

import pytest

from memoranda import Draft
from memoranda.clients import hook
from memoranda.clients.hook_conversation import conversation
from memoranda.clients.hook_events import PROMPT, HookEvent


def written(path, *turns):
    """A transcript in the form of Claude Code."""
    lines = [
        {"type": role, "message": {"role": role, "content": [{"type": "text", "text": text}]}}
        for role, text in turns
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n{cut off")
    return str(path)


def test_the_turns_before_a_prompt_come_first_and_the_prompt_once(tmp_path):
    prompt = "And how did we tune it the last time?"
    transcript = written(
        tmp_path / "t.jsonl",
        ("user", "The carburettor of the outboard floods."),
        ("assistant", "Is the float stuck?"),
        ("user", prompt),
    )
    assert conversation(prompt, transcript).split("\n") == [
        "User: The carburettor of the outboard floods.",
        "Assistant: Is the float stuck?",
        f"User: {prompt}",
    ]


@pytest.mark.parametrize("place", ["", "missing.jsonl", "."])
def test_without_a_transcript_the_prompt_is_asked_alone(tmp_path, place):
    assert conversation("Which bolt goes where?", str(tmp_path / place)) == "Which bolt goes where?"


def test_what_came_from_memory_is_not_asked_for_again(tmp_path):
    fenced = "<memoranda-memory note='x'>Ada sails on Tuesdays</memoranda-memory>"
    transcript = written(
        tmp_path / "t.jsonl", ("user", f"Hello there. {fenced}"), ("assistant", fenced)
    )
    assert conversation("Which bolt?", transcript) == "User: Hello there.\nUser: Which bolt?"


def test_only_the_last_turns_of_a_long_session_are_read(tmp_path):
    turns = [("user", f"question {at} {'x' * 600}") for at in range(400)]
    lines = conversation("Which bolt?", written(tmp_path / "t.jsonl", *turns)).split("\n")

    assert len(lines) == 5
    assert lines[0].startswith("User: question 396")
    for line in lines:
        assert len(line) < 420


def test_a_short_prompt_gets_what_memory_has_about_the_session(memory, tmp_path):
    memory.write(
        Draft(
            "The carburettor of the outboard needs a number 42 jet, tuned half a turn open.",
            project="categories",
            category="knowledge",
        )
    )
    for at in range(8):
        memory.write(
            Draft(f"Minutes of club meeting {at}", project="categories", category="knowledge")
        )

    def told(transcript):
        event = HookEvent(
            "claude-code",
            PROMPT,
            "UserPromptSubmit",
            f"s-{bool(transcript)}",
            prompt="Ok. And what did we do about that?",
            transcript=transcript,
        )
        return hook.answer(memory, event)

    turns = [("user", "The carburettor of my outboard has a bad jet, it floods.")]
    assert "number 42 jet" in told(written(tmp_path / "t.jsonl", *turns))
    assert told("") == ""


@pytest.mark.parametrize(
    "prompt",
    [
        "What is the port of Heron?",
        "How do we restart the Heron service?",
        "赫伦服务的端口是多少？",
    ],
)
@pytest.mark.parametrize(
    "turns",
    [
        [("user", "hi")],
        [
            ("user", "Fix the failing test in the parser module."),
            ("assistant", "I fixed the expression in parser.py; all tests pass."),
            ("user", "Thanks, commit it."),
            ("assistant", "Committed as 1a2b3c."),
        ],
    ],
)
def test_a_prompt_that_gets_a_note_alone_gets_it_after_other_turns_too(
    memory, tmp_path, prompt, turns
):
    for text in (
        "The Heron service listens on port 8417.",
        "Restart the Heron service with systemctl restart heron.",
        "赫伦服务监听端口 8417。",
    ):
        memory.write(Draft(text, project="categories", category="knowledge"))

    def told(session, transcript):
        event = HookEvent(
            "claude-code", PROMPT, "UserPromptSubmit", session, prompt=prompt, transcript=transcript
        )
        return hook.answer(memory, event)

    alone = told("alone", "")
    assert "heron" in alone or "8417" in alone
    assert told("later", written(tmp_path / "t.jsonl", *turns)) == alone


def test_the_role_of_a_turn_finds_no_note_of_that_name(memory, tmp_path):
    memory.write(Draft("- likes oat milk", title="User"))
    event = HookEvent(
        "claude-code",
        PROMPT,
        "UserPromptSubmit",
        "s-1",
        prompt="And what did we do about that?",
        transcript=written(tmp_path / "t.jsonl", ("user", "hi"), ("assistant", "Hello!")),
    )
    assert hook.answer(memory, event) == ""
