"""`memory move-home` between a folder and a space of a database, both ways, and `memory mirror` of
one.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.errors import InvalidInput, StorageError
from memoranda.ledger.postgres.new_space import NewSpace
from memoranda.serve.auth import Access
from memoranda.transfer.whole_home import MIRROR, Mirror, move
from transfer.conftest import times_killed


def files(folder: Path) -> dict[str, bytes]:
    """The files of the projects of a home, or of a mirror."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    contents = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    left_out = (".memoranda", MIRROR, ".git")
    return {
        name: data
        for name, data in contents.items()
        if "/" in name and name.split("/")[0] not in left_out
    }


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a history, private notes, reads, a project inside and one elsewhere, and a
    token.
    """
    place = tmp_path / "old"
    with open_session(place) as memory:
        for number in range(12):
            memory.write(
                Draft(
                    f"text {number}", project="notes", folder=f"f{number % 3}", title=f"n{number}"
                )
            )
        memory.as_caller("claude").write(Draft("mine", project="categories", scope="agent:claude"))
        memory.delete("notes/f0/n0.md")
        memory.add_project("inside", str(place / "projects" / "inside"))
        memory.write(Draft("in it", project="inside", title="c"))
        memory.add_project("vault", str(tmp_path / "vault"))
        memory.read("notes/f2/n2.md")
        memory.read("notes/f2/n2.md")
    (place / "memories").mkdir()
    (place / "memories" / "odd.md").write_bytes(bytes(range(256)))
    (place / "memories" / "odd.md").chmod(0o640)
    (place / "notes" / "empty").mkdir()
    Access(place).add("laptop")
    return place


def test_a_home_goes_into_a_database_and_comes_back_with_everything(home, space, tmp_path):
    before = {
        str(p): p.read_bytes()
        for p in home.rglob("*")
        if p.is_file() and not p.name.startswith(("index", "lock", "ledger"))
    }
    moved = move(str(home), space)
    assert moved.outside == ["vault"]
    with open_session(home) as old, open_session(space) as new:
        changes = new.log(limit=0)
        assert changes == old.log(limit=0)
        assert files(new.home) == files(home)
        assert (new.home / "memories" / "odd.md").stat().st_mode & 0o777 == 0o640
        times = [
            (place / "notes" / "f1" / "n1.md").stat().st_mtime_ns for place in (home, new.home)
        ]
        assert times[0] == times[1]
        assert (new.home / "notes" / "empty").is_dir()
        project_names = [project.name for project in new.projects if not project.built_in]
        assert project_names == ["inside"]
        access_count = new.read("notes/f2/n2.md", count=False).access_count
        assert access_count == 2
        titles = {hit.note.title for hit in new.search("text 7").hits}
        assert "n7" in titles
        token_names = [token.name for token in Access(new.home).tokens()]
        assert token_names == ["laptop"]
        new.restore("notes/f0/n0.md")
        assert "text 0" in new.read("notes/f0/n0.md").text
        new.write(Draft("written there", project="inside", title="d"))
        new.move_folder("notes", "f1", "moved")
    back = move(space, str(tmp_path / "back"))
    with open_session(space) as new, open_session(tmp_path / "back") as again:
        changes = again.log(limit=0)
        assert changes == new.log(limit=0)
        assert files(again.home) == files(new.home)
        assert {project.name: project.root for project in again.projects}[
            "inside"
        ] == tmp_path / "back" / "projects" / "inside"
        access_count = again.read("notes/f2/n2.md", count=False).access_count
        assert access_count == 2
        again.undo()
        assert (again.home / "notes" / "f1" / "n1.md").is_file()
        names = os.listdir(again.home)
        assert "README.txt" not in names
        assert not (again.home / ".memoranda" / "replica.json").exists()
    assert moved.checksum != back.checksum
    after = {
        str(p): p.read_bytes()
        for p in home.rglob("*")
        if p.is_file() and not p.name.startswith(("index", "lock", "ledger"))
    }
    assert after == before


def test_a_dry_run_leaves_no_space_and_the_proof_is_the_same_on_both_ways(home, space, tmp_path):
    planned = move(str(home), space, dry_run=True)
    moved = move(str(home), space)
    back = move(space, str(tmp_path / "back"))
    assert moved.checksum == back.checksum
    assert moved.changes == back.changes
    assert moved.texts == back.texts
    planned.checksum = moved.checksum
    assert planned == moved


def test_a_space_with_notes_or_tokens_is_refused_and_an_unused_one_taken(home, space, tmp_path):
    with open_session(space):
        pass
    move(str(home), space)
    with pytest.raises(InvalidInput, match="not empty"):
        move(str(home), space)
    with open_session(f"{space}x") as used:
        used.write(Draft("one"))
    with pytest.raises(InvalidInput, match="not empty"):
        move(str(home), f"{space}x")
    with pytest.raises(InvalidInput, match="by way of a folder"):
        move(space, f"{space}y")


def test_a_replica_that_saw_the_empty_space_sees_what_was_moved_there(home, space, replica):
    early = replica("a")
    assert early.list(limit=1)[1] == 0
    move(str(home), space)
    assert early.list(limit=1)[1] > 10
    assert files(early.home) == files(home)


def test_nobody_sees_a_move_that_was_cut_off_and_another_home_does_not_go_on_with_it(
    home, space, tmp_path, monkeypatch
):
    monkeypatch.setattr(NewSpace, "read_again", lambda self: {})
    with pytest.raises(StorageError, match="not what was read"):
        move(str(home), space)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache2"))
    with open_session(tmp_path / "other") as other_home:
        other_home.write(Draft("x"))
    with pytest.raises(InvalidInput, match="Another home"):
        move(str(tmp_path / "other"), space)
    (home / "notes" / "f1" / "n1.md").write_text("changed by hand meanwhile")
    (home / "notes" / "f2" / "n2.md").unlink()
    move(str(home), space)
    with open_session(space) as new:
        assert files(new.home) == files(home)


def test_of_two_homes_that_begin_to_move_to_one_space_at_once_one_is_refused(space, monkeypatch):
    url, _, name = space.partition("&space=")
    first = NewSpace(url, name, "one")
    second = NewSpace(url, name, "other")
    refused = []

    def begin_other() -> None:
        try:
            second.begin()
        except InvalidInput as error:
            refused.append(str(error))

    thread = Thread(target=begin_other)
    check_free = first._check_free

    def check_and_wait(db):
        check_free(db)
        thread.start()
        thread.join(0.5)

    monkeypatch.setattr(first, "_check_free", check_and_wait)
    first.begin()
    thread.join()
    assert len(refused) == 1
    assert "Another home is being moved" in refused[0]
    first.close()
    second.close()


@pytest.mark.slow
def test_a_move_into_a_database_that_is_killed_goes_on(home, space, tmp_path):
    imports = (
        "import psycopg\n"
        "from memoranda.transfer.whole_home import move\n"
        "def told(run): return lambda *given, **named: (seen('statement', given), run(*given, **named))[1]\n"
        "psycopg.Connection.execute = told(psycopg.Connection.execute)\n"
        "psycopg.Cursor.executemany = told(psycopg.Cursor.executemany)\n"
    )
    stops = range(2, 400, 6)
    work = "move(*sys.argv[2:])"
    killed = times_killed(stops, ["statement"], imports, work, home, space)
    assert killed > 3
    with open_session(home) as old, open_session(space) as new:
        assert new.log(limit=0) == old.log(limit=0)
        assert files(new.home) == files(home)


def test_a_mirror_of_a_space_follows_every_replica(space, replica, tmp_path):
    first = replica("a")
    second = replica("b")
    first.as_caller("claude").write(Draft("one", project="notes", title="a"))
    copy = tmp_path / "copy"
    Mirror(second, copy).run(git=True)
    second.as_caller("cursor").write(Draft("two", project="notes", title="b"))
    first.delete("notes/a.md")
    mirrored = Mirror(second, copy).run()
    assert mirrored.commits == 1
    assert mirrored.removed == 1
    assert files(copy) == files(second.home)
    lines = subprocess.check_output(
        ["git", "-C", str(copy), "log", "--format=%an %s"], text=True
    ).splitlines()
    assert len(lines) == 2
    assert lines[1] == "claude write notes/a.md"
    assert subprocess.check_output(["git", "-C", str(copy), "status", "--porcelain"]) == b""


def test_the_command_shows_no_password(terminal, space, monkeypatch):
    terminal.write("one")
    address = space.replace("memoranda_team@", "memoranda_team:s3cret@") + "&password=s3cret"
    output = terminal.ok("move-home", str(terminal.home), address)

    assert "s3cret" not in output
    assert "&space=" in output
    output = terminal.ok("--home", space, "list")
    assert output == terminal.ok("list")
