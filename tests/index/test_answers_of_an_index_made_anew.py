"""What is asked of links has the same order in an index that was made again, with other rows (contract
000b, 12.16).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract.note_tools import put
from memoranda.engine import open_session
from memoranda.errors import Ambiguous

STAMP = 1_700_000_000
NOTES = {
    "z.md": "- uses [[hub]]\n- near [[middle]]\n",
    "m.md": "---\ntitle: same\n---\n- uses [[hub]]\n- knows [[far]]\n",
    "a.md": "---\ntitle: same\n---\n- uses [[hub]]\n- likes [[far]]\n",
    "middle.md": "- sees [[far]]\n",
    "far.md": "far\n",
    "hub.md": "hub\n",
}


def answers(home: Path) -> object:
    with open_session(home, watch=False) as memory:
        around_hub = memory.context("hub", depth=2)
        with pytest.raises(Ambiguous) as ambiguous:
            memory.find("same")
        edges = [(edge.type, edge.note.path if edge.note else "") for edge in around_hub.edges]
        return (
            [
                (reached_note.note.path, reached_note.depth, reached_note.via)
                for reached_note in around_hub.reached
            ],
            edges,
            ambiguous.value.candidates,
        )


def test_notes_that_changed_at_once_stand_in_the_same_order(tmp_path: Path) -> None:
    home = tmp_path / "home"
    # They are indexed one at a time, in this order
    for name, text in NOTES.items():
        put(home / "notes" / name, text)
        os.utime(home / "notes" / name, (STAMP, STAMP))
        with open_session(home, watch=False) as memory:
            memory.sync()
    before = answers(home)
    for file in (home / ".memoranda").glob("index.db*"):
        file.unlink()
    assert answers(home) == before
    assert before[2] == ["notes/a", "notes/m"]
