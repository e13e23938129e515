"""While the index cannot be written, a server makes one in memory once, not for each call."""

from __future__ import annotations

import errno
import os

import pytest

from memoranda import Draft, errors
from memoranda.engine import open_session
from memoranda.index import database


class FullDisk:
    """Refuses to make an index on the disk while it has no room."""

    def __init__(self, make):
        self._make = make
        self.is_full = True

    def __call__(self, path):
        if path is not None and self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._make(path)


@pytest.fixture
def disk(monkeypatch):
    """A disk that is full for new indexes, tried again at every call."""
    full_disk = FullDisk(database._make)
    monkeypatch.setattr(database, "_make", full_disk)
    monkeypatch.setattr(database, "_RETRY_SECONDS", 0.0)
    return full_disk


@pytest.fixture
def home(tmp_path):
    """The folder of a home with two notes and without an index."""
    folder = tmp_path / "home"
    with open_session(folder, watch=False) as memory:
        memory.write(Draft("the heron nests by the weir", title="Heron"))
        memory.write(Draft("tea at four", title="Tea"))
    for file in (folder / ".memoranda").glob("index.db*"):
        file.unlink()
    return folder


def found(memory, words):
    return [hit.note.title for hit in memory.search(words)]


def test_index_in_memory_serves_later_calls_and_follows_the_disk(home, disk):
    with open_session(home, watch=False) as memory:
        assert found(memory, "heron") == ["Heron"]
        first_index = memory.engine.index.identity
        tea = home / "notes" / "Tea.md"
        tea.write_text("coffee at nine\n")
        assert found(memory, "coffee") == ["Tea"]
        assert found(memory, "four") == []
        last_index = memory.engine.index.identity
        assert last_index == first_index


def test_index_on_disk_is_made_and_used_once_the_disk_has_room(home, disk):
    with open_session(home, watch=False) as memory:
        assert found(memory, "heron") == ["Heron"]
        disk.is_full = False
        assert found(memory, "heron") == ["Heron"]
        memory.write(Draft("the finch sings", title="Finch"))
        assert found(memory, "finch") == ["Finch"]
        index = memory.engine.index
        assert not index.is_copy
    index_file = home / ".memoranda" / "index.db"
    assert index_file.stat().st_size > 0


def test_home_that_is_gone_is_not_served_from_memory(home, disk, tmp_path):
    with open_session(home, watch=False) as memory:
        assert found(memory, "heron") == ["Heron"]
        elsewhere = tmp_path / "elsewhere"
        home.rename(elsewhere)
        with pytest.raises(errors.StorageError):
            memory.search("heron")
