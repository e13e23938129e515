"""What the tests of hooks share."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memoranda.clients import hook
from memoranda.clients.hook_events import PROMPT, HookEvent
from memoranda.engine import open_session
from movable_clock import Clock


@pytest.fixture
def clock():
    return Clock(datetime(2026, 5, 7, 10, 0, tzinfo=UTC))


@pytest.fixture
def memory(tmp_path, clock):
    with open_session(tmp_path / "home", clock=clock, watch=False) as memory:
        yield memory


def ask(memory, prompt, session="s1", client="claude-code"):
    """What a client gets for a prompt."""
    return hook.answer(
        memory, HookEvent(client, PROMPT, "UserPromptSubmit", session, prompt=prompt)
    )
