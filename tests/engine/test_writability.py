"""Why nothing can be written into a home is said in words, and nothing is said of a sound one."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from memoranda.engine.writability import write_trouble

GIGABYTE = 1 << 30


@pytest.fixture
def disk(monkeypatch):
    """The numbers that the system says of a disk: a sound one, to be changed."""
    numbers = SimpleNamespace(f_flag=0, f_bavail=GIGABYTE, f_frsize=1, f_blocks=GIGABYTE)
    monkeypatch.setattr(os, "statvfs", lambda folder: numbers)
    return numbers


def test_folder_on_a_sound_disk_has_no_trouble(tmp_path, disk):
    assert write_trouble((tmp_path,)) == ""


def test_disk_without_room_is_called_full(tmp_path, disk):
    disk.f_bavail = 3000
    assert f"the disk of {tmp_path} is full (2 KB left)" in write_trouble((tmp_path,))


def test_file_system_of_unknown_size_is_not_called_full(tmp_path, disk):
    disk.f_bavail = 0
    disk.f_blocks = 0
    assert write_trouble((tmp_path,)) == ""


def test_read_only_file_system_is_named(tmp_path, disk):
    disk.f_flag = os.ST_RDONLY
    assert "is read-only" in write_trouble((tmp_path,))


def test_state_in_another_folder_is_looked_at_too(tmp_path, monkeypatch):
    state = tmp_path / "state"
    monkeypatch.setattr(os, "access", lambda folder, mode: folder != state)
    state.mkdir()
    assert f"may not write into {state}" in write_trouble((tmp_path, state))


def test_folder_that_is_missing_has_no_trouble(tmp_path):
    assert write_trouble((tmp_path / "nowhere",)) == ""
