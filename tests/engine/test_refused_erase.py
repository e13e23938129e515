"""An erasure that the disk refuses says what became of it (docs/failures.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine.history import erase
from memoranda.engine.transaction import Transaction
from memoranda.errors import NotFound, NotPutBack, StorageError
from memoranda.ledger.database import LedgerRefused
from memoranda.ledger.ledger import Ledger

NOTE = "notes/secret.md"


@pytest.fixture
def home_with_note(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    with open_session(home) as memory:
        memory.write(Draft("of zq4711", project="notes", title="secret"))
    return home


def refuse(*_: Any, **__: Any) -> None:
    """Fail as a full disk does."""
    raise StorageError("the history", "the disk is full")


def refuse_history(*_: Any, **__: Any) -> None:
    """Fail as the history does on a full disk."""
    raise LedgerRefused("the disk is full")


def test_an_erasure_refused_before_its_first_step_is_not_done_later(
    home_with_note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(home_with_note) as memory:
        monkeypatch.setattr(Transaction, "commit", refuse)
        with pytest.raises(StorageError, match="Nothing was changed"):
            memory.erase(NOTE)
    monkeypatch.undo()
    with open_session(home_with_note) as memory:
        assert memory.find(NOTE).title == "secret"


@pytest.mark.parametrize("step", ["_forget_readers", "_revise_history", "_make_derived_again"])
def test_an_erasure_refused_in_the_middle_says_so_and_is_finished_by_the_next_opening(
    home_with_note: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with open_session(home_with_note) as memory:
        monkeypatch.setattr(erase, step, refuse)
        with pytest.raises(NotPutBack, match="the rest is erased when the memory is opened next"):
            memory.erase(NOTE)
    monkeypatch.undo()
    memory = open_session(home_with_note)
    memory.close()
    ledger = home_with_note / ".memoranda" / "ledger.db"
    data = ledger.read_bytes()
    assert b"zq4711" not in data


def test_an_erasure_of_the_past_alone_refused_in_the_middle_says_so(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write(Draft("of zq4711", project="notes", title="secret"))
    memory.delete(NOTE)
    monkeypatch.setattr(erase, "_make_derived_again", refuse)
    with pytest.raises(NotPutBack):
        memory.erase(NOTE)
    monkeypatch.undo()
    with pytest.raises(NotFound):
        memory.erase(NOTE)


def test_the_refusal_of_a_removal_names_what_was_not_written(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write(Draft("of zq4711", project="notes", title="secret"))
    monkeypatch.setattr(Ledger, "_record", refuse_history)
    with pytest.raises(StorageError, match="Could not write the notes: the disk is full"):
        memory.erase(NOTE)
