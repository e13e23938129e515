"""`memory move-home` from folder to folder: everything, with the history, resumable, and proven."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.errors import InvalidInput, StorageError
from memoranda.serve.auth import Access
from memoranda.transfer import whole_home
from memoranda.transfer.whole_home import MOVING, FolderMove, HomeMoved
from transfer.conftest import times_killed


def files(home: Path) -> dict[str, bytes]:
    """What a move takes byte for byte: all files but the index, locks and the ledger."""
    names = (path for path in home.rglob("*") if path.is_file() and not path.is_symlink())
    contents = {str(path.relative_to(home)): path.read_bytes() for path in names}
    return {
        name: data
        for name, data in contents.items()
        if not name.rpartition("/")[2].startswith(("index", "lock", "ledger"))
    }


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a history, a project inside, one elsewhere, a space, a token, reads and a
    link.
    """
    place = tmp_path / "old"
    with open_session(place) as memory:
        memory.write(Draft("first", project="notes", title="a"))
        memory.as_caller("claude").write(Draft("mine", scope="agent:claude"))
        memory.write(Draft("second", project="notes", title="b"))
        memory.delete("notes/b.md")
        memory.add_project("inside", str(place / "projects" / "inside"))
        memory.write(Draft("in it", project="inside", title="c"))
        outside = tmp_path / "outside"
        outside.mkdir()
        memory.add_project("outside", str(outside))
        memory.read("notes/a.md")
    (place / "memories").mkdir()
    (place / "memories" / "link.md").symlink_to("target.md")
    (place / "memories" / ".hidden").write_text("x")
    access = Access(place)
    access.add("laptop")
    access.add_space("team")
    with open_session(access.space("team").home) as team:
        team.write(Draft("of the team", project="notes", title="t"))
    return place


def test_everything_is_moved_with_its_history_and_the_source_is_as_it_was(home, tmp_path):
    before = files(home)
    target = tmp_path / "new"
    moved = FolderMove(home, target).run()
    assert files(home) == before
    moved_files = files(target)
    own_files = {"config.yaml"}
    names = {name for name in before if before[name] != moved_files.get(name)}
    assert names == own_files
    assert moved_files.keys() == before.keys()
    assert os.readlink(target / "memories" / "link.md") == "target.md"
    assert not (target / MOVING).exists()
    assert moved.outside == ["outside"]
    for name in before:
        assert (target / name).stat().st_mode == (home / name).stat().st_mode
        assert (
            name in own_files
            or (target / name).stat().st_mtime_ns == (home / name).stat().st_mtime_ns
        )
    with open_session(home) as old, open_session(target) as new:
        changes = new.log(limit=0)
        assert changes == old.log(limit=0)
        titles = [info.title for info in new.list(limit=0)[0]]
        info_titles = [info.title for info in old.list(limit=0)[0]]
        assert titles == info_titles
        assert {project.name: project.root for project in new.projects}[
            "inside"
        ] == target / "projects" / "inside"
        new.restore("notes/b.md")
        assert "second" in new.read("notes/b.md").text
        access_count = new.read("notes/a.md").access_count
        assert access_count == old.read("notes/a.md").access_count
    access = Access(target)
    assert access.space("team").home == target / "spaces" / "team"
    names = [token.name for token in access.tokens()]
    assert names == ["laptop"]


def test_a_dry_run_counts_and_makes_nothing_and_the_checksum_can_be_told_with_common_tools(
    home, tmp_path
):
    planned = FolderMove(home, tmp_path / "new").run(dry_run=True)
    assert not (tmp_path / "new").exists()
    moved = FolderMove(home, tmp_path / "new").run()
    assert (planned.files, planned.texts, planned.changes) == (
        moved.files,
        moved.texts,
        moved.changes,
    )
    assert planned.checksum == ""
    notes = [
        name
        for name in files(tmp_path / "new")
        if name.split("/")[0] in ("notes", "categories", "memories", "projects")
    ]
    lines = "".join(
        f"{sha256((home / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(notes)
    )
    assert moved.checksum == sha256(lines.encode()).hexdigest()


def test_only_an_empty_target_is_taken(home, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.txt").write_text("mine")
    for target in (full, home, home / "inside", tmp_path):
        with pytest.raises(InvalidInput):
            FolderMove(home, target)
    with pytest.raises(InvalidInput, match="no memory home"):
        FolderMove(full, tmp_path / "new")
    names = os.listdir(full)
    assert names == ["thesis.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    FolderMove(home, empty).run()
    with pytest.raises(InvalidInput, match="not empty"):
        FolderMove(home, empty)


def test_a_copy_that_is_not_the_same_is_no_home(home, tmp_path, monkeypatch):
    write = whole_home.write_file
    target = tmp_path / "new"

    def damaged(name, data, **more):
        return write(name, data.replace(b"first", b"f1rst"), **more)

    monkeypatch.setattr(whole_home, "write_file", damaged)
    with pytest.raises(StorageError, match="not what was read"):
        FolderMove(home, target).run()
    names = os.listdir(target)
    assert names == [MOVING]
    monkeypatch.undo()
    FolderMove(home, target).run()
    content = (target / "notes" / "a.md").read_bytes()
    assert b"first" in content


def test_what_is_written_while_it_is_copied_is_moved_too(home, tmp_path):
    with open_session(home) as memory:
        written = []

        def write(now: int, total: int) -> None:
            if not written:
                written.append(memory.write(Draft("meanwhile", project="notes", title="z")))
                memory.delete("notes/a.md")

        FolderMove(home, tmp_path / "new").run(progress=write)
    names = {name for name in files(tmp_path / "new") if name.startswith("notes/")}
    assert names == {
        "notes/mine.md",
        "notes/z.md",
    }
    with open_session(home) as old, open_session(tmp_path / "new") as new:
        changes = new.log(limit=0)
        assert changes == old.log(limit=0)


def test_a_backup_of_a_home_in_use_is_a_home_with_the_same_notes_and_history(home, tmp_path):
    target = tmp_path / "backup"
    with open_session(home) as memory:
        memory.write(Draft("written just now", project="notes", title="z"))
        copied = whole_home.back_up(memory, target)
        log = memory.log(limit=0)
        memory.write(Draft("written later", project="notes", title="later"))
    assert copied.rewritten == []
    assert copied.changes == len(log)
    with open_session(target) as backup:
        assert backup.log(limit=0) == log
        assert backup.read("notes/z").content == "written just now"
        assert backup.restore("notes/b.md")
    with pytest.raises(InvalidInput, match="not empty"), open_session(home) as memory:
        whole_home.back_up(memory, target)


def test_a_move_from_another_home_is_not_gone_on_with(home, tmp_path, monkeypatch):
    monkeypatch.setattr(FolderMove, "_check", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(StorageError):
        FolderMove(home, tmp_path / "new").run()
    with open_session(tmp_path / "other"):
        pass
    with pytest.raises(InvalidInput, match="not empty"):
        FolderMove(tmp_path / "other", tmp_path / "new")


@pytest.mark.slow
def test_a_move_that_is_killed_goes_on_and_ends_with_everything(home, tmp_path):
    imports = "from memoranda.transfer.whole_home import FolderMove"
    before = files(home)
    events = ["os.rename", "os.utime", "os.mkdir", "os.remove", "shutil.rmtree"]
    work = "FolderMove(*map(Path, sys.argv[2:])).run()"
    killed = times_killed(range(3, 400, 8), events, imports, work, home, tmp_path / "new")
    assert killed > 3
    assert files(home).keys() == before.keys()
    assert files(tmp_path / "new").keys() == before.keys()
    assert not (tmp_path / "new" / MOVING).exists()
    with open_session(home) as old, open_session(tmp_path / "new") as new:
        changes = new.log(limit=0)
        assert changes == old.log(limit=0)


def test_the_command_says_what_was_moved_and_refuses_agents(terminal):
    terminal.write("one")
    target = terminal.folder / "new"
    output = terminal.ok("move-home", str(terminal.home), str(target))
    assert output.startswith("Moved 3 files, 1 change, 0 older texts from")
    assert "are the same: " in output
    assert terminal.ok("--home", str(target), "list") == terminal.ok("list")
    ran = terminal(
        "move-home", str(terminal.home), str(terminal.folder / "b"), "--dry-run", "--json"
    )
    assert ran.json.keys() == {"schema", *HomeMoved.__slots__}
    assert (
        terminal(
            "--agent", "claude", "move-home", str(terminal.home), str(terminal.folder / "c")
        ).status
        == 1
    )
    assert (
        json.loads(terminal("move-home", "/none", str(target), "--json").out)["error"]["code"]
        == "invalid"
    )
