"""Why a disk takes nothing, which SQLite reports like missing rights."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from memoranda import clock
from memoranda.index.database import explain
from memoranda.ledger.ledger import Ledger
from memoranda.sources.files import disk_state
from memoranda.sources.layout import Layout


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimpleNamespace(f_flag=0, f_blocks=100, f_bavail=0)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)


def test_disk_with_room_has_no_complaint(tmp_path: Path) -> None:
    assert disk_state(tmp_path) == ""


def test_disk_of_a_missing_folder_has_no_complaint(tmp_path: Path) -> None:
    assert disk_state(tmp_path / "missing") == ""


@pytest.mark.usefixtures("full_disk")
def test_full_disk_is_said(tmp_path: Path) -> None:
    assert disk_state(tmp_path) == "the disk is full"


def test_read_only_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimpleNamespace(f_flag=os.ST_RDONLY, f_blocks=100, f_bavail=0)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    assert disk_state(tmp_path) == "the file system is read-only"


@pytest.mark.usefixtures("full_disk")
def test_ledger_that_cannot_be_opened_on_a_full_disk_names_the_disk(tmp_path: Path) -> None:
    ledger = Ledger(Layout(tmp_path), clock.now)
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    assert ledger.database.refusal(error).reason == "the disk is full"


@pytest.mark.usefixtures("full_disk")
def test_index_that_is_read_only_on_a_full_disk_names_the_disk(tmp_path: Path) -> None:
    error = sqlite3.OperationalError("attempt to write a readonly database")
    assert explain(error, tmp_path) == "the disk is full"
