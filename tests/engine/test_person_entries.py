"""Which entries of keys and values are about the person, and are told at the start of a session.

The values were written before the rule, and the second half was not looked at until it was done.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.documents.wording import row_text
from memoranda.engine import MemorySession, open_session
from memoranda.engine.entries import NoteEntries
from memoranda.engine.telling.profile import profile
from memoranda.query import Query

ABOUT_PERSON = [
    "user_name = Alice Smith",
    "shell = fish",
    "editor = vim",
    "indentation = likes tabs",
    "theme = dark",
    "preferred_language = German",
    "favourite_tea = oolong",
    "timezone = Europe/Berlin",
    "reply_style = short, no bullet points",
    "coffee = prefers it without sugar",
    "name = Ana",
    "tests = always run them before a commit",
    "语言 = 中文",
    "喜欢的茶 = 乌龙茶",
    "commit_style = never mention the tool",
    # The second half.
    "my_city = Porto",
    "pronouns = they/them",
    "email_signature = Best, Ana",
    "diet = vegetarian",
    "units = metric",
    "communication-style = direct",
    "keyboardLayout = Dvorak",
    "allergies = peanuts",
    "meetings = doesn't like them before ten",
    "时区 = Asia/Shanghai",
    "回复风格 = 简短",
    "comments = Please always write them in English",
    "hobby = climbing",
    "birthday = 4 May",
    "me = a nurse who codes at night",
]
ABOUT_OTHER_THINGS = [
    "build_number = 431",
    "last_run = 2026-11-30T10:00:00Z",
    "api_base_url = https://api.example.com/v2",
    "release = 2.4.1",
    "db_host = 10.0.0.4",
    "current_branch = fix/login",
    "crawler_cursor = 8812",
    "retry_count = 3",
    "deploy_status = green",
    "todo = rename the parser",
    "feature_flag_x = true",
    "schema_version = 12",
    "构建号 = 431",
    "language_server_port = 9257",
    "queue = emails-high",
    # The second half.
    "last_commit = 9fceb02",
    "sprint_goal = finish the importer",
    "cache_dir = /var/cache/app",
    "open_pr = 118",
    "weather_lisbon = 21 degrees",
    "editor_build = 20261130",
    "theme_file = assets/dark.css",
    "invoice_total = 1,204.50",
    "server_timezone = UTC",
    "heron = nests near the weir",
    "retries = never more than three",
    "jobname = nightly-export",
    "版本 = 2.4.1",
    "model_name = small-v2",
    "postgres = chosen over MySQL for JSON columns",
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", watch=False) as memory:
        yield memory


def put(memory: MemorySession, line: str, namespace: str = "default") -> None:
    key, value = line.split(" = ")
    NoteEntries(memory).put(namespace, key, value)


def told(memory: MemorySession) -> set[str]:
    return {entry.text.replace(": ", " = ", 1) for entry in profile(memory, 100)}


def test_entries_about_the_person_are_told(memory: MemorySession) -> None:
    for line in ABOUT_PERSON:
        put(memory, line)
    assert sorted(set(ABOUT_PERSON) - told(memory)) == []


def test_entries_about_other_things_are_not_told(memory: MemorySession) -> None:
    for line in ABOUT_OTHER_THINGS:
        put(memory, line)
    assert sorted(told(memory)) == []


def test_entry_of_another_namespace_is_told_if_its_name_is_about_the_person(
    memory: MemorySession,
) -> None:
    put(memory, "shell = fish", "crawler")
    put(memory, "music = jazz", "user")
    assert told(memory) == {"music = jazz"}


def test_row_of_an_entry_begins_with_its_key_even_if_the_value_does_too(
    memory: MemorySession,
) -> None:
    put(memory, "4 = 431")
    ((info,), _) = memory.list(Query(projects=("kv",)))
    assert row_text(info, "431") == "4: 431"
