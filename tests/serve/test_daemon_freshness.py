"""A process without a watch leaves the look at all files to a daemon that has one."""

from __future__ import annotations

import signal

import pytest

from memoranda import Query
from memoranda.engine import daemon_client, open_session
from memoranda.sources.folder import FolderSource
from serve.daemon_process import DaemonProcess
from serve.process import SECONDS


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    (home / "notes").mkdir(parents=True)
    for name in ("edited", "removed"):
        (home / "notes" / f"{name}.md").write_text("tea\n")
    return home


@pytest.fixture
def daemon(home):
    with DaemonProcess(home, "--interval", "1h") as daemon:
        daemon.ready()
        yield daemon.process


@pytest.fixture
def listed(monkeypatch):
    """The projects whose files were all looked at."""
    projects = []
    look = FolderSource.parts
    monkeypatch.setattr(
        FolderSource, "parts", lambda self, *how: projects.append(self.name) or look(self, *how)
    )
    return projects


@pytest.fixture
def patient(monkeypatch):
    """The daemon has all the time it needs, on a busy machine too."""
    ask = daemon_client.ask
    monkeypatch.setattr(
        daemon_client, "ask", lambda path, method, params, _: ask(path, method, params, SECONDS)
    )


def found(memory, text):
    return sorted(hit.note.path for hit in memory.search(Query(text=text)))


def change_by_hand(home):
    (home / "notes" / "new.md").write_text("coffee\n")
    (home / "notes" / "edited.md").write_text("coffee\n")
    (home / "notes" / "removed.md").unlink()


def test_what_was_changed_by_hand_is_found_without_a_look_at_any_folder(
    home, daemon, listed, patient
):
    with open_session(home, watch=False) as memory:
        assert found(memory, "tea") == ["edited.md", "removed.md"]
        change_by_hand(home)
        assert found(memory, "tea") == []
        assert found(memory, "coffee") == ["edited.md", "new.md"]
        memory.delete("notes/new")
        assert found(memory, "coffee") == ["edited.md"]
    assert listed == []


def test_a_project_the_daemon_does_not_know_is_looked_at(home, daemon, listed, tmp_path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "a.md").write_text("coffee\n")
    with open_session(home, projects={"vault": tmp_path / "vault"}, watch=False) as memory:
        assert found(memory, "coffee") == ["a.md"]

    assert "vault" in listed


def test_an_index_that_was_thrown_away_is_made_again(home, daemon):
    with open_session(home, watch=False) as memory:
        assert found(memory, "tea")
        memory.reindex()
        change_by_hand(home)
        assert found(memory, "coffee") == ["edited.md", "new.md"]


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_daemon_that_does_not_answer_is_done_without(home, daemon, listed, number):
    with open_session(home, watch=False) as memory:
        assert found(memory, "tea")
        daemon.send_signal(number)
        change_by_hand(home)
        assert found(memory, "coffee") == ["edited.md", "new.md"]
    assert "notes" in listed
