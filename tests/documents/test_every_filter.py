"""A filter written into a search means the same in the command, the tools, the page and `/api`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from documents.test_every_face import Faces
from memoranda import Draft
from memoranda.serve.auth import PageVisitors

FILTERS = {
    "tag:sea": {"Pier", "Anna likes the harbour"},
    "tag:#sea": {"Pier", "Anna likes the harbour"},
    "type:plan": {"Pier"},
    "category:preferences": {"Anna likes the harbour"},
    "category:depth": {"Basin"},
    "project:notes": {"Pier", "Basin"},
    "project:categories": {"Anna likes the harbour"},
    "source:radio": {"Anna likes the harbour"},
    "status:open": {"Basin"},
    "by:mallory": {"Basin"},
    "after:1d": {"Pier", "Basin", "Anna likes the harbour"},
    "before:2020-01-01": set(),
    "tag:sea type:plan": {"Pier"},
}


@pytest.fixture
def faces(terminal: Any) -> Iterator[Faces]:
    opened = Faces(terminal)
    try:
        owner = opened.memory
        text = "The harbour of ships"
        draft = Draft(text, project="notes", title="Pier", type="plan", tags=("sea",))
        owner.write(draft)
        text = "The harbour of boats\n\n- [depth] four metres"
        draft = Draft(text, project="notes", title="Basin", metadata={"status": "open"})
        owner.as_caller("mallory").write(draft)
        text = "Anna likes the harbour"
        owner.write(Draft(text, category="preferences", tags=("sea",), source="radio"))
        yield opened
    finally:
        opened.web.close()


@pytest.mark.anyio
@pytest.mark.parametrize("written", FILTERS)
async def test_filter_in_every_face_finds_the_same_notes(faces: Faces, written: str) -> None:
    query = f"harbour {written}"
    titles = FILTERS[written]
    ranked = faces.command("search", query, "--ranked")["memories"]
    listed = faces.command("search", query)["memories"]
    by_tool = faces.tool("notes", "search_notes", query=query)["results"]
    api = (await faces.api(f"/search?q={quote(query)}"))["hits"]
    by_page = (await faces.api(f"/search?q={quote(query)}", as_owner=True))["hits"]
    row_titles = {row["title"] for row in by_tool}
    assert row_titles == titles
    row_titles = {row["title"] for row in api}
    assert row_titles == titles
    row_titles = {row["title"] for row in by_page}
    assert row_titles == titles
    paths = {row["path"] for row in api}
    row_paths = {row["path"] for row in ranked}
    assert row_paths == paths
    row_paths = {row["path"] for row in listed}
    assert row_paths == paths
    hit_titles = {hit.note.title for hit in faces.memory.search(query)}
    assert hit_titles == titles


@pytest.mark.anyio
async def test_day_of_a_note_is_the_local_one_in_every_face(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    faces = Faces(terminal)
    try:
        # It is the eighth there already
        moment = datetime(2026, 5, 7, 22, 30, tzinfo=UTC)
        note = faces.memory.write(Draft("The harbour", project="notes", title="Pier"))
        file = faces.memory.home / "notes" / note.path
        file.write_text("---\ncreated: 2026-05-07T22:30:00Z\n---\nThe harbour\n", "utf-8")
        os.utime(file, (moment.timestamp(), moment.timestamp()))
        async with faces.web.served() as client:
            code = PageVisitors(faces.web.access).new_code()
            await client.get("/page/enter", params={"code": code})
            pages = [
                re.sub("<[^>]*>", " ", (await client.get(path)).text)
                for path in ("/page/search?q=harbour", f"/page/note/notes/{note.path}")
            ]
        texts = [
            faces.text("context", "harbour"),
            faces.text("read", "Pier"),
            faces.tool_text("search_notes", query="harbour"),
            faces.tool_text("recent_activity", timeframe="2026-05-01"),
            faces.tool_text("list_directory"),
        ]
        for text in texts:
            assert "2026-05-08" in text
            assert "2026-05-07" not in text
        for page in pages:
            assert " May 8 " in page
            assert " May 7 " not in page
    finally:
        faces.web.close()
