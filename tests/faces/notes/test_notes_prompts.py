from __future__ import annotations

import os

import pytest

from memoranda.faces.notes import toolset

pytestmark = pytest.mark.promise("000b-12.17")

PROMPTS = {prompt.name: prompt for prompt in toolset().prompts}
LIMIT = 8000


def ask(face, name, **arguments):
    text = PROMPTS[name].render(face.memory, arguments)
    assert len(text) <= LIMIT
    return text


@pytest.fixture
def work(face):
    face.put(
        "Heron.md",
        "---\ndate: 2025-03-01\n---\n- [decision] use inotify\n- [fact] two\n- [idea] three\n- [later] four\n",
    )
    face.put("Plain.md", "# Plain\n\nJust words about herons.\n")
    return face


@pytest.mark.parametrize(
    ("name", "about"), [("continue_conversation", "topic"), ("search_knowledge_base", "query")]
)
def test_a_prompt_shows_the_best_notes_with_date_permalink_and_first_observations(
    work, name, about
):
    text = ask(work, name, **{about: "Heron"})
    notes = (
        "Heron",
        "2025-03-01",
        "notes: notes/heron",
        "- [decision] use inotify",
        "- [idea] three",
    )
    for part in (*notes, "read_note"):
        assert part in text
    assert "four" not in text
    assert "Just words about herons." in text


def test_continuing_without_a_topic_shows_the_latest(work):
    os.utime(work.file("Plain.md"), (1_700_000_000, 1_700_000_000))
    text = ask(work, "continue_conversation")
    assert "notes/heron" in text
    assert "notes/plain" not in text
    assert "notes/plain" in ask(work, "continue_conversation", timeframe="2023-01-01")


def test_an_older_topic_is_found_unless_a_time_frame_is_given(work):
    for name in ("Heron", "Plain"):
        os.utime(work.file(f"{name}.md"), (1_700_000_000, 1_700_000_000))
    text = ask(work, "continue_conversation", topic="Heron")
    assert "notes/heron" in text
    assert "Nothing changed in the last 7d" in text
    assert "notes/heron" not in ask(work, "continue_conversation", topic="Heron", timeframe="2d")
