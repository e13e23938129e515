"""An editor saves between the moment a file was looked at and the moment it is replaced: its save is
in its place afterwards, whatever was called, and however files can be exchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession as Memory
from memoranda.engine import open_session as open_memory
from memoranda.errors import MemorandaError
from memoranda.faces.memory_tool import MemoryCommands
from memoranda.ledger import execution, file_exchange
from memoranda.ledger.execution import Execution
from memoranda.ledger.file_exchange import Entry
from memoranda.note.edit import Append, FindReplace, ReplaceSection, Rewrite

pytestmark = pytest.mark.promise("issue-editor-saves")

Save = Callable[[Path], None]
SAVED = "saved by the editor\n"


def save_in_place(path: Path) -> None:
    """As an editor does that writes into the file it opened."""
    path.write_text(SAVED)


def save_by_rename(path: Path) -> None:
    """As an editor does that puts a new file in place of the old one."""
    fresh = path.with_name(f"{path.name}~")
    fresh.write_text(SAVED)
    os.replace(fresh, path)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path / "home", watch=False) as opened:
        opened.write(Draft("## Part\nold text\n", title="Note"))
        opened.write(Draft("a memory", project="categories", category="knowledge"))
        yield opened


def run_tool(memory: Memory, **arguments: Any) -> None:
    reply = MemoryCommands().run(memory, arguments)
    assert not reply.is_error, reply.text


VERBS: dict[str, Callable[[Memory], Any]] = {
    "append": lambda memory: memory.edit("notes/note", Append("more")),
    "find_replace": lambda memory: memory.edit("notes/note", FindReplace("old", "kept")),
    "replace_section": lambda memory: memory.edit("notes/note", ReplaceSection("Part", "new")),
    "rewrite": lambda memory: memory.edit("notes/note", Rewrite("new")),
    "tag": lambda memory: memory.tag("notes/note", add=["x"]),
    "delete": lambda memory: memory.delete("notes/note"),
    "undo": lambda memory: memory.undo(1),
    "tool": lambda memory: run_tool(
        memory, command="create", path="/memories/a.md", file_text="overwritten"
    ),
}


class SlowDisk:
    """Has the editor save once, right before the system replaces or takes out a file."""

    def __init__(self, path: Path, save: Save):
        self._path = path
        self._save = save
        self.has_saved = False

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def slowed(*arguments: Any, **more: Any) -> Any:
            is_it = any(self._path.name in str(argument) for argument in arguments)
            if is_it and not self.has_saved:
                self.has_saved = True
                self._save(self._path)
            return call(*arguments, **more)

        return slowed


@pytest.mark.parametrize("save", [save_in_place, save_by_rename])
@pytest.mark.parametrize("way", ["exchange", "steps"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_save_during_a_change_is_never_buried(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, verb: str, way: str, save: Save
) -> None:
    path = memory.home / "notes" / "Note.md"
    if verb == "tool":
        path = memory.home / "memories" / "a.md"
        run_tool(memory, command="create", path="/memories/a.md", file_text="old")
    disk = SlowDisk(path, save)
    if way == "steps":
        monkeypatch.setattr(file_exchange, "_rename_with_flags", lambda: None)
    monkeypatch.setattr(execution, "exchange", disk.before(execution.exchange))
    monkeypatch.setattr(os, "rename", disk.before(os.rename))
    # A verb that cannot be repeated on what was saved says so
    with suppress(MemorandaError):
        VERBS[verb](memory)
    monkeypatch.undo()
    assert disk.has_saved
    texts = [path.read_text()] if path.exists() else []
    for change in memory.log(limit=0):
        for touched in change.files:
            if touched.old is not None and memory.engine.ledger.history.has_text(touched.old):
                texts.append(memory.engine.ledger.history.text(touched.old, "").decode())
    assert any(SAVED.strip() in text for text in texts), texts
    paths = list(memory.home.rglob(".tmp-*"))
    assert not paths


def _saved_in_place(path: Path, text: str) -> None:
    path.write_text(text)


def _saved_by_rename(path: Path, text: str) -> None:
    fresh = path.with_name("fresh~")
    fresh.write_text(text)
    os.replace(fresh, path)


def _saved_after_a_backup(path: Path, text: str) -> None:
    path.replace(path.with_name("backup~"))
    path.write_text(text)


@pytest.mark.parametrize("saves", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("save", [_saved_in_place, _saved_by_rename, _saved_after_a_backup])
def test_of_several_saves_during_a_change_the_last_one_stays(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, save: Callable[[Path, str], None], saves: int
) -> None:
    path = memory.home / "notes" / "Note.md"
    exchange = execution.exchange
    saved = []

    def exchange_after_a_save(new: Entry, place: Entry) -> None:
        if len(saved) < saves:
            saved.append(f"save {len(saved)} of the editor")
            save(path, saved[-1])
        exchange(new, place)

    monkeypatch.setattr(execution, "exchange", exchange_after_a_save)
    with suppress(MemorandaError):
        memory.edit("notes/note", FindReplace("old", "kept"))
    assert len(saved) == saves
    assert path.read_text() == saved[-1]


@pytest.mark.parametrize("verb", ["append", "rewrite", "delete"])
def test_a_save_into_the_file_that_was_just_replaced_is_not_lost(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    path = memory.home / "notes" / "Note.md"
    confirm = Execution.confirm
    with path.open("r+") as opened:

        def confirm_after_a_save(execution: Execution) -> None:
            opened.truncate(0)
            opened.write(SAVED)
            opened.flush()
            monkeypatch.setattr(Execution, "confirm", confirm)
            confirm(execution)

        monkeypatch.setattr(Execution, "confirm", confirm_after_a_save)
        with suppress(MemorandaError):
            VERBS[verb](memory)
    kept_texts = [text for _, text in memory.engine.ledger.history.texts_with_data()]
    present_texts = [path.read_bytes()] if path.exists() else []
    assert any(SAVED.encode() in text for text in present_texts + kept_texts)


def test_a_file_that_the_editor_takes_away_while_it_is_given_back_returns(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = memory.home / "notes" / "Note.md"
    exchange = execution.exchange
    calls = []

    def exchange_after_an_act(new: Entry, place: Entry) -> None:
        calls.append(new)
        if len(calls) == 1:
            save_by_rename(path)
        elif len(calls) == 2:
            path.unlink()
        exchange(new, place)

    monkeypatch.setattr(execution, "exchange", exchange_after_an_act)
    with suppress(MemorandaError):
        memory.edit("notes/note", FindReplace("old", "kept"))
    assert path.read_text() == SAVED


@pytest.mark.parametrize("way", ["exchange", "steps"])
def test_a_file_that_comes_while_a_new_one_is_written_stays(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    path = memory.home / "notes" / "New.md"
    disk = SlowDisk(path, save_by_rename)
    if way == "steps":
        monkeypatch.setattr(file_exchange, "_rename_with_flags", lambda: None)
    monkeypatch.setattr(os, "link", disk.before(os.link))
    with pytest.raises(MemorandaError, match="exists"):
        memory.write(Draft("ours", title="New"))
    monkeypatch.undo()

    assert path.read_text() == SAVED
    paths = list(memory.home.rglob(".tmp-*"))
    assert not paths


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


WAYS = [file_exchange.exchange, file_exchange.exchange_by_steps]


@pytest.mark.parametrize("exchange", WAYS)
def test_two_files_change_places(tmp_path: Path, folder: int, exchange: Any) -> None:
    (tmp_path / "new").write_text("new")
    (tmp_path / "place").write_text("old")
    exchange(Entry(folder, "new"), Entry(folder, "place"))

    assert (tmp_path / "new").read_text() == "old"
    assert (tmp_path / "place").read_text() == "new"
    names = os.listdir(tmp_path)
    assert sorted(names) == ["new", "place"]


@pytest.mark.parametrize("exchange", WAYS)
def test_nothing_to_exchange_with_is_refused(tmp_path: Path, folder: int, exchange: Any) -> None:
    (tmp_path / "new").write_text("new")
    with pytest.raises(FileNotFoundError):
        exchange(Entry(folder, "new"), Entry(folder, "place"))
    assert os.listdir(tmp_path) == ["new"]


def test_a_file_saved_while_the_name_is_free_stays(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new").write_text("new")
    file = tmp_path / "place"
    file.write_text("old")
    put_new = file_exchange.put_new

    def late(new: Entry, place: Entry) -> bool:
        file.write_text(SAVED)
        return put_new(new, place)

    monkeypatch.setattr(file_exchange, "put_new", late)
    with pytest.raises(FileExistsError):
        file_exchange.exchange_by_steps(Entry(folder, "new"), Entry(folder, "place"))
    assert file.read_text() == SAVED


def test_a_file_system_without_links_still_buries_nothing(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    (tmp_path / "new").write_text("new")
    (tmp_path / "place").write_text("old")
    with pytest.raises(FileExistsError):
        file_exchange.put_new(Entry(folder, "new"), Entry(folder, "place"))
    (tmp_path / "place").unlink()
    file_exchange.put_new(Entry(folder, "new"), Entry(folder, "place"))
    assert (tmp_path / "place").read_text() == "new"
