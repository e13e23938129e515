"""A prompt too short to ask memory for anything may still ask it to remember (docs/hooks.md)."""

from __future__ import annotations

import json

import pytest

from commonplace import Draft, Query
from commonplace.clients.hook import answer
from commonplace.clients.hook_events import event_of


def said(memory, prompt):
    payload = {"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/", "hook_event_name": "UserPromptSubmit"}
    event = event_of("claude-code", json.dumps(payload | {"prompt": prompt}).encode(), {})
    return "" if event is None else answer(memory, event)


@pytest.mark.parametrize(
    ("prompt", "kept"), [("记住我喜欢蓝色的船", "我喜欢蓝色的船"), ("Remember: I use vim", "I use vim")]
)
def test_what_a_few_words_ask_to_remember_is_in_the_inbox(memory, prompt, kept):
    assert kept in json.loads(said(memory, prompt))["hookSpecificOutput"]["additionalContext"]
    [note] = memory.list(Query(projects=("categories",)))[0]
    assert memory.read(note).content.strip() == kept


@pytest.mark.parametrize(
    ("text", "prompt", "is_told"),
    [
        ("数据库在法兰克福的机房", "数据库在法兰克福吗", True),
        ("データベースは大阪にあります", "データベースは大阪？", True),
        ("数据库在法兰克福的机房", "法兰克福", False),
        ("The database is in Osaka", "database in Osaka?", False),
    ],
)
def test_a_sentence_without_blanks_is_long_enough_with_fewer_characters(memory, text, prompt, is_told):
    memory.write(Draft(text, project="categories", category="knowledge"))
    told = json.loads(said(memory, prompt) or "{}")
    assert (text in str(told)) is is_told


@pytest.mark.parametrize(
    "prompt", ["", "  ", "use vim", "我喜欢蓝色的船", "/remember: vim", "remember vim?", "你记住了吗？"]
)
def test_other_short_prompts_store_and_are_told_nothing(memory, prompt):
    assert said(memory, prompt) == ""
    assert memory.list(Query(projects=("categories",)))[1] == 0
