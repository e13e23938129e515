"""A process without a watch leaves the look at all files to a daemon that has one."""

from __future__ import annotations

import signal

import pytest

from memoranda import Query
from memoranda.engine import daemon_client, freshness, open_session
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


class ReadingDaemon:
    """Answers as a daemon whose index is that of a home, and which reads a large file.

    answers: whether it is still reading, for each question. None lets the question wait too long.
    The last one answers all further questions.
    """

    def __init__(self, home, monkeypatch, answers):
        self._answers = list(answers)
        self.questions = 0
        with open_session(home, watch=False) as memory:
            memory.list()
            index = memory.engine.layout.index.stat()
            self._index = [index.st_dev, index.st_ino]
            self._projects = {name: source.root for name, source in memory.engine.sources.items()}
        monkeypatch.setattr(daemon_client, "ask", self._ask)
        monkeypatch.setattr(freshness, "_SECONDS_BETWEEN_QUESTIONS", 0)

    def _ask(self, *_):
        is_reading = self._answers[min(self.questions, len(self._answers) - 1)]
        self.questions += 1
        if is_reading is None:
            raise TimeoutError
        return {"index": self._index, "projects": self._projects, "reading": is_reading}


def test_a_large_file_that_the_daemon_is_reading_is_waited_for_and_not_read_twice(
    home, listed, monkeypatch
):
    daemon = ReadingDaemon(home, monkeypatch, [None, True, True, False])
    listed.clear()
    with open_session(home, watch=False) as memory:
        memory.list()
    assert listed == []
    assert daemon.questions == 4


def test_a_file_that_the_daemon_reads_again_and_again_is_read_here(home, listed, monkeypatch):
    ReadingDaemon(home, monkeypatch, [True])
    monkeypatch.setattr(freshness, "_SECONDS_OF_READING", 0)
    listed.clear()
    with open_session(home, watch=False) as memory:
        memory.list()
    assert "notes" in listed


def test_a_change_does_not_wait_for_a_large_file_that_the_daemon_is_reading(home, monkeypatch):
    daemon = ReadingDaemon(home, monkeypatch, [True])
    with open_session(home, watch=False) as memory, memory.engine.writing():
        memory.engine.freshness.update(is_locked=True)
    assert daemon.questions == 1
