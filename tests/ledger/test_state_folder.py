"""A home whose state is outside it, as `storage.state` says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.engine.doctor import examine
from memoranda.errors import ConfigError, StorageError
from memoranda.note.model import Draft
from memoranda.transfer.whole_home import back_up, move


def home_with_state(home: Path, state: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(f"storage:\n  state: {state}\n")
    return home


def test_nothing_but_notes_is_in_a_home_whose_state_is_elsewhere(tmp_path: Path) -> None:
    home = home_with_state(tmp_path / "home", tmp_path / "state")
    with open_session(home, watch=False) as memory:
        memory.write(Draft("tea", title="Tea", project="notes"))
        titles = [note.title for note in memory.list(limit=0)[0]]
        assert titles == ["Tea"]
    assert not (home / ".memoranda").exists()
    names = {path.name for path in (tmp_path / "state").iterdir()}
    assert {"ledger.db", "index.db", "lock", "home"} <= names
    with open_session(home, watch=False) as memory:
        assert memory.undo().undoes == 1
        infos, _ = memory.list(limit=0)
        assert infos == []


def test_a_history_from_before_goes_along_and_stays_where_it_was(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with open_session(home, watch=False) as memory:
        memory.write(Draft("first", title="Tea", project="notes"))
    home_with_state(home, tmp_path / "elsewhere" / "state")
    with open_session(home, watch=False) as memory:
        verbs = [change.verb for change in memory.log()]
        assert verbs == ["write"]
        assert codes(memory) == {"left_state"}
        memory.undo()
    assert (home / ".memoranda" / "ledger.db").exists()
    shutil.rmtree(home / ".memoranda")
    with open_session(home, watch=False) as memory:
        verbs = [change.verb for change in memory.log()]
        assert verbs == ["undo", "write"]
        assert codes(memory) == set()


def codes(memory: MemorySession) -> set[str]:
    return {finding.code for finding in examine(memory)}


def test_a_home_opens_with_its_notes_when_its_state_is_gone(tmp_path: Path) -> None:
    home = home_with_state(tmp_path / "home", tmp_path / "state")
    with open_session(home, watch=False) as memory:
        memory.write(Draft("tea", title="Tea", project="notes"))
    shutil.rmtree(tmp_path / "state")
    with open_session(home, watch=False) as memory:
        titles = [note.title for note in memory.list(limit=0)[0]]
        assert titles == ["Tea"]
        assert memory.log() == []


def test_the_state_of_another_home_is_refused(tmp_path: Path) -> None:
    with open_session(home_with_state(tmp_path / "one", tmp_path / "state"), watch=False):
        pass
    second_home = home_with_state(tmp_path / "two", tmp_path / "state")
    with (
        pytest.raises(StorageError, match="is the state of"),
        open_session(second_home, watch=False),
    ):
        pass


@pytest.mark.parametrize("folder", ["state", "HOME", "HOME/inside"])
def test_a_state_inside_the_home_is_refused(tmp_path: Path, folder: str) -> None:
    home = tmp_path / "home"
    home_with_state(home, Path(folder.replace("HOME", str(home))))
    with pytest.raises(ConfigError, match="outside the home"), open_session(home, watch=False):
        pass


def test_a_copy_has_its_state_inside_itself(tmp_path: Path) -> None:
    home = home_with_state(tmp_path / "home", tmp_path / "state")
    with open_session(home, watch=False) as memory:
        memory.write(Draft("tea", title="Tea", project="notes"))
        changes = back_up(memory, tmp_path / "copy").changes
        assert changes == 1
    changes = move(str(home), str(tmp_path / "moved")).changes
    assert changes == 1
    for copy in (tmp_path / "copy", tmp_path / "moved"):
        assert (copy / ".memoranda" / "ledger.db").exists()
        with open_session(copy, watch=False) as memory:
            memory.undo()
    with open_session(home, watch=False) as memory:
        verbs = [change.verb for change in memory.log()]
        assert verbs == ["write"]


def test_erasing_proves_the_state_too(tmp_path: Path) -> None:
    home = home_with_state(tmp_path / "home", tmp_path / "state")
    with open_session(home, watch=False) as memory:
        path = memory.write(Draft("of zq4711vault", title="Tea", project="notes")).path
        remains = memory.erase(f"notes/{path}").remains
        assert remains == ()
    for path in (tmp_path / "state").rglob("*"):
        assert path.is_dir() or b"zq4711vault" not in path.read_bytes()


def test_every_process_finds_the_state(tmp_path: Path) -> None:
    home = home_with_state(tmp_path / "home", tmp_path / "state")
    command = [sys.executable, "-m", "memoranda", "--home", str(home)]
    subprocess.run([*command, "write", "likes tea"], check=True, capture_output=True)
    listed = subprocess.run([*command, "log"], check=True, capture_output=True, text=True)

    assert "likes tea" in listed.stdout
    assert not (home / ".memoranda").exists()
