from __future__ import annotations

import os
from urllib.parse import quote

import pytest

from commonplace.errors import (
    NotFound,
    ProjectNotFound,
)
from commonplace.faces.notes import toolset
from commonplace.serve.offers import resource_result

pytestmark = pytest.mark.promise("000b-12.17")

PROMPTS = {each.name: each for each in toolset().prompts}
TEMPLATE = toolset().templates[0]
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


def test_continuing_a_topic_shows_its_notes_with_date_permalink_and_first_observations(work):
    text = ask(work, "continue_conversation", topic="Heron")
    for part in (
        "Heron",
        "2025-03-01",
        "notes: notes/heron",
        "- [decision] use inotify",
        "- [idea] three",
        "read_note",
        "build_context",
    ):
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


def test_searching_shows_the_hits(work):
    text = ask(work, "search_knowledge_base", query="inotify")
    assert '"inotify"' in text
    assert "notes/heron" in text
    assert "notes/plain" not in text
    assert "search_notes" in text


def read(face, uri):
    (content,) = resource_result(face.memory, [TEMPLATE], uri)["contents"]
    return content["text"]


@pytest.mark.parametrize("encode", [str, quote])
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("specs/API (v2).md", "api\r\n"),
        ("specs/api-v2", "api\r\n"),
        ("notes/specs/api-v2", "api\r\n"),
        ("中文/量词.md", "一本书"),
        ("中文/量词", "一本书"),
        ("100%.md", "all"),
    ],
)
def test_a_note_is_a_resource_by_path_or_permalink_encoded_or_not(face, encode, path, text):
    face.put("specs/API (v2).md", "api\r\n")
    face.put("中文/量词.md", "一本书")
    face.put("100%.md", "all")
    assert read(face, f"memory://notes/{encode(path)}") == text


def test_a_resource_lies_in_the_project_named(face, tmp_path):
    face.put("A.md", "in memories", "memories")
    face.data("create_memory_project", project_name="My Vault", project_path=str(tmp_path / "v"))
    face.put("B.md", "in the vault", "My Vault")
    assert read(face, "memory://Memories/A.md") == "in memories"
    assert read(face, "memory://My%20Vault/B.md") == "in the vault"
    with pytest.raises(NotFound):
        read(face, "memory://notes/A.md")
    with pytest.raises(ProjectNotFound):
        read(face, "memory://nope/A.md")


def complete(face, variable, beginning, **others):
    return TEMPLATE.complete(face.memory, variable, beginning, others)


def test_projects_and_permalinks_complete_by_their_beginning(face):
    face.put("specs/API.md", "x")
    face.put("specs/Search.md", "x")
    face.put("中文/量词.md", "x")
    face.put("specs/own.md", "---\npermalink: specs/my-own\n---\nx")
    assert complete(face, "project", "NO") == ["notes"]
    assert "kv" in complete(face, "project", "")
    assert sorted(complete(face, "path", "spec", project="notes")) == [
        "specs/api",
        "specs/my-own",
        "specs/search",
    ]
    assert complete(face, "path", "中", project="notes") == ["中文/量词"]
    assert complete(face, "path", "notes/specs/a") == ["notes/specs/api"]
    assert complete(face, "path", "x", project="nope") == []
    assert complete(face, "other", "x") == []
    for value in complete(face, "path", "", project="notes"):
        assert read(face, f"memory://notes/{value}") == face.text("read_note", identifier=value)
