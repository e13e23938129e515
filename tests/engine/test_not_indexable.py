"""A note whose text memoranda itself fails at is left out; all others are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", watch=False) as memory:
        yield memory


@pytest.fixture(params=["memoranda.note.claims.sentences_in", "memoranda.note.markdown.parse_note"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a reader of texts fail at those with the word `zqbad`: before or at the index's rows."""
    module, _, name = request.param.rpartition(".")
    read: Callable[..., Any] = getattr(__import__(module, fromlist=[name]), name)

    def fails(text: str, *more: Any, **options: Any) -> Any:
        if "zqbad" in text:
            raise IndexError("list index out of range")
        return read(text, *more, **options)

    monkeypatch.setattr(request.param, fails)


def titles(memory: MemorySession) -> list[str]:
    notes, _ = memory.list(limit=0)
    return sorted(note.title for note in notes)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("count", [1, 60])
def test_a_file_that_a_reader_fails_at_is_left_out_and_named_until_it_changes(
    memory: MemorySession, count: int
) -> None:
    folder = memory.engine.layout.built_in["notes"]
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"good {number:02}.md").write_text("words of a note\n")
    (folder / "good 00 bad.md").write_text("words of zqbad\n")
    assert titles(memory) == [f"good {number:02}" for number in range(count)]
    total = memory.search("words").total
    assert total == count
    [(place, why)] = memory.unreadable.items()
    assert place == ("notes", "good 00 bad.md")
    assert "IndexError: list index out of range" in why
    (folder / "good 00 bad.md").write_text("words that are mended\n")
    assert len(titles(memory)) == count + 1
    assert memory.unreadable == {}


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("count", [1, 60])
def test_a_note_that_is_read_twice_for_another_is_counted_once(
    memory: MemorySession, count: int
) -> None:
    folder = memory.engine.layout.built_in["notes"]
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"good {number:02}.md").write_text("words of a note\n")
    (folder / "zz.md").write_text("words of zqbad\n")

    assert memory.sync().added == count


def test_a_text_that_came_while_memoranda_failed_at_the_former_one_is_indexed(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = memory.engine.layout.built_in["notes"]
    folder.mkdir(parents=True, exist_ok=True)

    def fails(text: str) -> Any:
        if "zqbad" in text:
            (folder / "note.md").write_text("words that are mended\n")
            raise IndexError("list index out of range")
        return []

    monkeypatch.setattr("memoranda.note.claims.sentences_in", fails)
    (folder / "note.md").write_text("words of zqbad\n")
    titles(memory)
    assert titles(memory) == ["note"]
    assert memory.unreadable == {}


def test_a_write_that_the_index_fails_at_is_made_and_answered(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(text: str) -> Any:
        if "zqbad" in text:
            raise IndexError("list index out of range")
        return []

    memory.write(Draft("words", title="Good"))
    monkeypatch.setattr("memoranda.note.claims.sentences_in", fails)
    note = memory.write(Draft("words of zqbad", title="Bad"))
    folder = memory.engine.layout.built_in["notes"]
    assert (folder / note.path).exists()
    assert titles(memory) == ["Good"]
    last_change = memory.log()[0]
    assert last_change.path == note.path
    assert [*memory.unreadable] == [("notes", note.path)]
    monkeypatch.undo()
    memory.engine.rebuild_index()
    assert titles(memory) == ["Bad", "Good"]
    assert memory.unreadable == {}


@pytest.mark.parametrize("watch", [False, True])
def test_a_file_that_was_left_out_and_is_gone_is_not_named_any_more(
    tmp_path: Path, reader: None, watch: bool
) -> None:
    with open_session(tmp_path / "home", watch=watch) as memory:
        folder = memory.engine.layout.built_in["notes"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bad.md").write_text("words of zqbad\n")
        titles(memory)
        assert [*memory.unreadable] == [("notes", "bad.md")]
        (folder / "bad.md").unlink()
        titles(memory)
        assert memory.unreadable == {}


def test_another_version_of_memoranda_reads_again_what_this_one_failed_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def fails(text: str) -> Any:
        if "zqbad" in text:
            reads.append(text)
            raise IndexError("list index out of range")
        return []

    monkeypatch.setattr("memoranda.note.claims.sentences_in", fails)
    with open_session(tmp_path / "home", watch=False) as memory:
        folder = memory.engine.layout.built_in["notes"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bad.md").write_text("words of zqbad\n")
        titles(memory)
    read_once = len(reads)
    with open_session(tmp_path / "home", watch=False) as memory:
        assert titles(memory) == []
        assert [*memory.unreadable] == [("notes", "bad.md")]
    assert len(reads) == read_once
    monkeypatch.setattr("memoranda.__version__", "99.0")
    with open_session(tmp_path / "home", watch=False) as memory:
        assert titles(memory) == []
        assert [*memory.unreadable] == [("notes", "bad.md")]
    assert len(reads) > read_once
    monkeypatch.setattr("memoranda.note.claims.sentences_in", lambda text: [])
    monkeypatch.setattr("memoranda.__version__", "99.1")
    with open_session(tmp_path / "home", watch=False) as memory:
        assert titles(memory) == ["bad"]
        assert memory.unreadable == {}


@pytest.mark.parametrize("share", [1, 2])
def test_many_files_that_a_reader_fails_at_are_read_a_few_times_each(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    reads = 0

    def fails(text: str) -> Any:
        nonlocal reads
        reads += 1
        if "zqbad" in text:
            raise IndexError("list index out of range")
        return []

    monkeypatch.setattr("memoranda.note.claims.sentences_in", fails)
    folder = memory.engine.layout.built_in["notes"]
    folder.mkdir(parents=True, exist_ok=True)
    count = 450
    for number in range(count):
        word = "zqbad" if number % share == 0 else "good"
        (folder / f"note {number:03}.md").write_text(f"words of {word} {number}\n")
    assert len(titles(memory)) == count - count // share
    assert len(memory.unreadable) == count // share
    assert reads < 3 * count


@pytest.mark.usefixtures("reader")
def test_a_file_at_which_the_daemon_of_another_version_fails_is_read_by_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        folder = memory.engine.layout.built_in["notes"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bad.md").write_text("words of zqbad\n")
        assert titles(memory) == []
        index = memory.engine.layout.index.stat()
        projects = {name: source.root for name, source in memory.engine.sources.items()}
    asked: list[str] = []

    def answer(socket: object, method: str, *more: object) -> dict[str, Any]:
        asked.append(method)
        return {"index": [index.st_dev, index.st_ino], "projects": projects}

    monkeypatch.undo()
    monkeypatch.setattr("memoranda.engine.daemon_client.ask", answer)
    monkeypatch.setattr("memoranda.__version__", "99.0")
    with open_session(tmp_path / "home", watch=False) as memory:
        assert titles(memory) == ["bad"]
        assert memory.unreadable == {}
    assert asked
