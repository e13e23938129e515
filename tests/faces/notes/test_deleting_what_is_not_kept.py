"""delete_note promises a way back only where there is one: the text of an entry with a time to live
is not kept.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from contract.note_tools import Tools
from memoranda import faces
from memoranda.engine import open_session
from memoranda.errors import CannotUndo


@pytest.fixture
def tools(tmp_path: Path):
    with open_session(tmp_path / "home", watch=False) as memory:
        tools = Tools(memory, faces.registry(["notes", "kv"], memory.settings))
        for key, ttl in (("pin", 60), ("name", 0)):
            reply = tools.registry.call(
                memory, "memory_remember", {"key": key, "value": "x", "ttl_seconds": ttl}
            )
            assert not reply.is_error
        yield tools


def test_no_way_back_is_promised_for_an_entry_with_a_time_to_live(tools: Tools) -> None:
    text = tools.text("delete_note", identifier="kv/default/pin")
    assert text.endswith(
        "\nIt cannot be undone: the text of an entry with a time to live is not kept."
    )
    with pytest.raises(CannotUndo):
        tools.memory.undo()


def test_of_a_folder_it_says_what_does_not_come_back(tools: Tools) -> None:
    text = tools.text("delete_note", identifier="kv/default", is_directory=True)
    assert "All but 1 of them: the text of an entry with a time to live is not kept." in text
    tools.memory.undo(int(re.search(r"`memory undo (\d+)`", text)[1]))
    content = tools("read_note", identifier="kv/default/name")["content"]
    assert content.endswith("---\nx\n")
    tools.refused("read_note", "not_found", identifier="kv/default/pin")


def test_the_way_back_that_is_promised_works(tools: Tools) -> None:
    number = re.search(
        r"`memory undo (\d+)`\.$", tools.text("delete_note", identifier="kv/default/name")
    )[1]
    tools.memory.undo(int(number))
    assert tools("read_note", identifier="kv/default/name")["content"].endswith("---\nx\n")
