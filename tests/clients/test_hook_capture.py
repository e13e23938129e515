"""What a hook writes down: sentences a person asks to remember, traces of sessions (docs/hooks.md)."""

from __future__ import annotations

import errno
import json
import os
import time

import pytest

from clients.conftest import ask
from memoranda import Draft, Query, clock
from memoranda.clients import hook, hook_capture
from memoranda.clients.hook_events import CHECKPOINT, END, HookEvent
from memoranda.clients.hook_words import asked_to_remember
from memoranda.engine.telling.asked import Asked, put_aside
from memoranda.errors import StorageError
from memoranda.sources.layout import Layout

TRACES = Query(projects=("session-traces",))
KEY = "ghp_" + "8sK2mPq7Zt4XvB9nWc3RyD6fHj1LgE5aUo0T"


@pytest.mark.promise("issue-hook-capture")
@pytest.mark.parametrize(
    ("prompt", "remembered"),
    [
        (
            "Remember that the office closes at 6.5 pm on Fridays.",
            ["the office closes at 6.5 pm on Fridays."],
        ),
        ("ok, please remember that we use uv. Now fix the test", ["we use uv."]),
        ("fix it\n- remember: Anna owns the billing code", ["Anna owns the billing code"]),
        ("请记住：部署前要先跑测试。然后修复问题", ["部署前要先跑测试。"]),
        ("记住我喜欢深色模式", ["我喜欢深色模式"]),
        ("Remember that Anna drives. Remember that Bob walks!", ["Anna drives.", "Bob walks!"]),
        ("I remember that this was slow", []),
        ("do you remember that function?", []),
        ("Remember that bug we fixed on Monday?", []),
        ("你还记住吗，我们说过什么", []),
        ("你记住了吗？", []),
        ("```\nremember that this is code\n```\nexplain", []),
        ("> remember that somebody said so\nwhy?", []),
        ("<log>remember that it was pasted</log> why?", []),
        (
            "<memoranda-memory note='x'>\nRemember that it came from memory.\n</memoranda-memory>",
            [],
        ),
        ("we should remember the milk, and the test that fails", []),
    ],
)
def test_only_what_is_asked_for_in_so_many_words_is_to_be_remembered_and_verbatim(
    prompt, remembered
):
    assert asked_to_remember(prompt) == remembered


@pytest.mark.parametrize(
    "part", ["and\n", "\nalso,", "\n", "<a>", "</a><a>", "remember:\n", "记住", "```\n", "> a\n"]
)
def test_a_long_prompt_takes_time_in_proportion_to_its_length(part):
    began = time.process_time()
    asked_to_remember("x" + part * (200_000 // len(part)) + "x")
    # Each took a minute and more where it grew with the square
    assert time.process_time() - began < 1.5


@pytest.mark.parametrize("client", ["claude-code", "codex", "cursor", "copilot-cli"])
def test_it_is_organized_at_once_as_the_owners_word_with_client_and_session(memory, client):
    answered = ask(memory, "Remember that the kiln needs cone 6.", client=client)
    (note,), total = memory.list(Query(projects=("categories",)))
    assert total == 1
    assert note.category == "knowledge"
    assert note.phase == "organized"
    assert note.source == f"hook-{client}"
    content = memory.read(note).content
    assert content == "the kiln needs cone 6."
    by = note.provenance
    assert by.who == "owner"
    assert by.trust == "owner"
    assert by.client == client
    assert by.session == "s1"
    assert ("no need to store it again" in answered) == (client in ("claude-code", "codex"))
    ask(memory, "Remember that the kiln needs cone 6.", client=client)
    # Said twice in a session
    _, total = memory.list(Query(projects=("categories",)))
    assert total == 1


def test_a_secret_is_not_remembered_and_the_agent_is_told_why(memory):
    answered = ask(memory, f"Remember that the key is {KEY} for now")
    assert "looks like a secret" in answered
    assert KEY not in answered
    assert memory.list(Query(projects=("categories",)))[1] == 0


def test_what_was_injected_is_not_captured_when_it_is_said_again(memory):
    memory.write(
        Draft(
            "The zebrafish pipeline needs the flag --no-thaw",
            project="categories",
            category="project",
        )
    )
    injected = json.loads(ask(memory, "how does the zebrafish pipeline deploy?"))[
        "hookSpecificOutput"
    ]["additionalContext"]
    ask(memory, "What is this, and what is it for?\n" + injected)
    line = next(told_line for told_line in injected.splitlines() if "--no-thaw" in told_line)
    ask(memory, f"remember: {line}")
    assert memory.list(Query(projects=("categories",)))[1] == 1


def claude_lines():
    say = lambda role, content, **more: {
        "type": role,
        "message": {"role": role, "content": content},
        **more,
    }
    use = lambda name, **tool_input: {"type": "tool_use", "name": name, "input": tool_input}
    return [
        say("user", "Make the importer faster, please"),
        say("user", "internal", isMeta=True),
        say("user", "of a subagent", isSidechain=True),
        say(
            "assistant",
            [{"type": "text", "text": "Looking."}, use("Edit", file_path="/p/importer.py")],
        ),
        say("assistant", [use("Bash", command="make test")]),
        say("user", [{"type": "tool_result", "content": "ok"}]),
        say("user", "and link it to [[Importer]] #fast"),
        say("assistant", [{"type": "text", "text": f"Done, with key {KEY}."}]),
    ]


def codex_lines():
    item = lambda **payload: {"type": "response_item", "payload": payload}
    text = lambda role, words: item(
        type="message", role=role, content=[{"type": "input_text", "text": words}]
    )
    return [
        {"type": "session_meta", "payload": {"id": "s1", "cwd": "/p"}},
        text("developer", "<permissions>"),
        text("user", "<environment_context>cwd</environment_context>"),
        text("user", "Make the importer faster, please"),
        item(
            type="function_call", name="exec_command", arguments='{"cmd": "make test"}', call_id="1"
        ),
        item(
            type="custom_tool_call",
            name="apply_patch",
            input="*** Update File: /p/importer.py\n@@",
            call_id="2",
        ),
        text("user", "and link it to [[Importer]] #fast"),
        text("assistant", f"Done, with key {KEY}."),
    ]


@pytest.mark.promise("issue-hook-capture")
@pytest.mark.parametrize(
    ("client", "lines"), [("claude-code", claude_lines()), ("codex", codex_lines())]
)
@pytest.mark.parametrize("kind", [CHECKPOINT, END])
def test_a_checkpoint_is_an_extract_of_the_transcript_in_a_project_of_its_own(
    memory, tmp_path, client, lines, kind
):
    (tmp_path / "fjord" / ".git").mkdir(parents=True)
    transcript = tmp_path / "t.jsonl"
    transcript.write_text("\n".join(map(json.dumps, lines)) + "\n{cut off")
    for _ in range(2):
        event = HookEvent(
            client, kind, "x", "s1", cwd=str(tmp_path / "fjord"), transcript=str(transcript)
        )
        assert hook.answer(memory, event) == ""
    (note,), total = memory.list(TRACES)
    text = memory.read(note).body
    assert total == 1
    assert (note.type, note.tags) == ("trace", ("fjord",))
    assert note.provenance.client == client
    requests = text.partition("Files edited")[0]
    assert "Make the importer faster, please" in requests
    assert "and link it to" in requests
    assert "internal" not in text
    assert "subagent" not in text
    assert "environment_context" not in text
    assert "/p/importer.py" in text
    assert "make test" in text
    assert "Done, with key [redacted: " in text
    assert KEY not in text
    # Nothing that is said in a session links or tags
    assert not memory.outgoing(note)
    assert memory.search("importer").total == 0


@pytest.mark.parametrize("place", ["missing", "folder", "pipe", "\0"])
def test_a_transcript_that_cannot_be_read_leaves_no_trace(memory, tmp_path, place):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    event = HookEvent("claude-code", END, "SessionEnd", "s1", transcript=str(tmp_path / place))

    assert hook.answer(memory, event) == ""
    _, total = memory.list(TRACES)
    assert total == 0


def test_a_character_that_was_cut_in_two_does_not_cost_the_trace(memory, tmp_path):
    transcript = tmp_path / "t.jsonl"
    message = {"role": "user", "content": "Make the importer faster \ud83d"}
    transcript.write_text(json.dumps({"type": "user", "message": message}))
    hook.answer(
        memory, HookEvent("claude-code", END, "SessionEnd", "s1", transcript=str(transcript))
    )
    (trace,), _ = memory.list(TRACES)

    body = memory.read(trace).body
    assert "Make the importer faster" in body


def test_a_long_transcript_is_read_at_its_ends(memory, tmp_path):
    lines = claude_lines()
    filler = {
        "type": "assistant",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "x" * 9_000}]},
    }
    transcript = tmp_path / "t.jsonl"
    long_lines = [lines[0], *[filler] * 500, lines[-2]]
    transcript.write_text("\n".join(map(json.dumps, long_lines)))
    end = HookEvent("claude-code", END, "SessionEnd", "s1", transcript=str(transcript))
    hook.answer(memory, end)
    traces, _ = memory.list(TRACES)
    text = memory.read(traces[0]).body

    assert "Make the importer faster" in text
    assert "and link it to" in text
    assert len(text) < 3_000


def test_sentence_that_cannot_be_stored_is_told_to_the_user(memory, monkeypatch):
    def refuse(*_arguments):
        raise StorageError("note.md", "the disk is full")

    monkeypatch.setattr(hook_capture, "store_asked", refuse)
    answered = ask(memory, "Remember that the kiln needs cone 6.")
    told = "NOT stored in memory (the disk is full). Tell the user so: the kiln needs cone 6."
    assert told in answered


def test_file_of_a_sentence_that_cannot_be_written_is_removed(tmp_path, monkeypatch):
    def refuse(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    request = Asked("1", "the kiln needs cone 6.", clock.now(), "codex", "s1")
    with pytest.raises(OSError, match="No space"):
        put_aside(tmp_path, request)
    assert not any(Layout(tmp_path).asked.iterdir())
