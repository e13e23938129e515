"""Days shown to a reader are days of the reader's time zone; times in data stay UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.movable_clock import Clock

from contract.note_tools import Tools
from memoranda.engine import MemorySession, open_session
from memoranda.faces import registry

EVENING = datetime(2026, 5, 7, 20, 30, tzinfo=UTC)
LOCAL_DAY = "2026-05-08"


@pytest.fixture
def tokyo(tmp_path: Path) -> Iterator[MemorySession]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("timezone: Asia/Tokyo\n", encoding="utf-8")
    with open_session(home, watch=False, clock=Clock(EVENING)) as memory:
        yield memory


def test_hit_shows_the_day_of_the_reader(tokyo: MemorySession) -> None:
    tools = Tools(tokyo)
    tools("write_note", title="Kiln", content="The kiln was fired.", directory="")
    assert LOCAL_DAY in tools.text("search_notes", query="kiln")


def test_context_shows_the_day_of_the_reader(tokyo: MemorySession) -> None:
    Tools(tokyo)("write_note", title="Kiln", content="The kiln was fired.", directory="")
    assert LOCAL_DAY in tokyo.context_for("when was the kiln fired?")


def test_prompt_shows_the_day_of_the_reader(tokyo: MemorySession) -> None:
    Tools(tokyo)("write_note", title="Kiln", content="The kiln was fired.", directory="")
    prompts = registry(["notes"], tokyo.settings).prompts
    assert LOCAL_DAY in prompts["search_knowledge_base"].render(tokyo, {"query": "kiln"})
