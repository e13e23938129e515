"""`memory mirror`: a folder kept like the memory, its commits, and the way back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import exchange, open_session
from memoranda.engine.graphs import open_graph
from memoranda.errors import InvalidInput, OutsideError
from memoranda.note.entity import Entity
from memoranda.transfer.moving import plan_mirror
from memoranda.transfer.whole_home import MIRROR, Mirror
from transfer.conftest import times_killed

START = datetime(2026, 5, 7, 10, tzinfo=UTC)


class Home:
    """A home, the folder it is mirrored to, and a clock that goes on a minute with each look."""

    def __init__(self, folder: Path):
        self.folder = folder / "home"
        self.copy = folder / "copy"
        self.time = START
        self.memory = open_session(self.folder, clock=self.now)

    def now(self) -> datetime:
        self.time += timedelta(minutes=1)
        return self.time

    def mirror(self, **more):
        return Mirror(self.memory, self.copy).run(**more)

    def write(self, text: str, path: str = "notes/a.md", agent: str | None = None, **more):
        project, _, title = path.removesuffix(".md").partition("/")
        return self.memory.as_caller(agent).write(Draft(text, project=project, title=title, **more))

    def git(self, *arguments: str) -> str:
        ran = subprocess.run(
            ["git", "-C", str(self.copy), *arguments], capture_output=True, text=True, check=True
        )
        return ran.stdout

    def commits(self) -> list[str]:
        """Author, time and subject of each commit, the oldest first."""
        return self.git("log", "--reverse", "--format=%an %at %s").splitlines()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    home = Home(tmp_path)
    yield home
    home.memory.close()


def files(folder: Path) -> dict[str, bytes]:
    """The files in a folder, without the mirror's own and git's."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    contents = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    return {
        name: data
        for name, data in contents.items()
        if not name.startswith((MIRROR, ".git/", ".memoranda"))
    }


def noted(home: Home) -> dict[str, bytes]:
    return {name: data for name, data in files(home.folder).items() if "/" in name}


def test_every_file_of_every_project_is_there_byte_for_byte(home, tmp_path):
    home.write("shared", "categories/a")
    home.write("mine", "categories/b", agent="claude", scope="agent:claude")
    of_windows = "# Windows\r\nline\r\n"
    home.memory.write(Draft(of_windows, project="notes", folder="deep/er", title="Old"))
    banks = home.folder / "banks" / "projects" / "shop"
    banks.mkdir(parents=True)
    (banks / ".bank.json").write_text("{}")
    (banks / "picture.png").write_bytes(b"\x89PNG\0\xff")
    memories = home.folder / "memories"
    memories.mkdir()
    (memories / ".plan").write_text("hidden, by the memory tool")
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "Note.md").write_bytes(b"\xef\xbb\xbfwith a BOM, no last newline")
    (vault / ".obsidian" / "app.json").write_text("{}")
    graph = tmp_path / "graph.jsonl"
    graph.write_text('{"type":"entity","name":"Anna","entityType":"person","observations":[]}\n')
    home.memory.add_project("My vault", str(vault))
    home.memory.add_project("people", str(graph))
    outcome = home.mirror()
    copied = files(home.copy)

    assert copied.pop("projects/My vault/Note.md") == (vault / "Note.md").read_bytes()
    assert copied.pop("projects/people.jsonl") == graph.read_bytes()
    assert copied == noted(home)
    assert len(copied) == 6
    assert outcome.files == 8
    assert outcome.copied == 8
    assert outcome.removed == 0
    for path in home.copy.rglob("*.md"):
        if "vault" not in str(path):
            assert path.stat().st_mode & 0o077 == 0


def test_a_later_run_writes_only_what_changed(home):
    home.write("one", "notes/a")
    home.write("two", "notes/b")
    home.mirror()
    inode = (home.copy / "notes" / "a.md").stat().st_ino
    home.memory.delete("notes/b.md")
    home.write("three", "notes/c")
    outcome = home.mirror()
    assert outcome.copied == 1
    assert outcome.removed == 1
    assert outcome.files == 2
    assert (home.copy / "notes" / "a.md").stat().st_ino == inode
    again = home.mirror()
    assert again.copied == 0
    assert again.removed == 0
    assert again.restored == 0
    assert again.commits == 0
    assert files(home.copy) == noted(home)


def test_what_others_change_on_disk_is_taken_up_and_what_is_changed_in_the_mirror_is_put_back(home):
    home.write("one", "notes/a")
    home.mirror(git=True)
    (home.folder / "notes" / "a.md").write_text("by an editor")
    (home.folder / "notes" / "b.md").write_text("another")
    assert home.mirror().copied == 2
    assert files(home.copy) == noted(home)
    assert home.commits()[-1].endswith("Take up what was changed without the journal")
    (home.copy / "notes" / "a.md").write_text("changed here")
    (home.copy / "notes" / "b.md").unlink()
    outcome = home.mirror()
    assert outcome.restored == 2
    assert outcome.commits == 0
    assert files(home.copy) == noted(home)
    assert home.git("status", "--porcelain") == ""


def test_each_run_is_one_commit_of_what_is_there_then(home):
    home.write("first", "notes/a", agent="claude")
    home.mirror(git=True)
    states = [noted(home)]
    runs = (
        [lambda: home.write("second", "notes/b", agent="cursor")],
        [
            lambda: home.memory.move("notes/b.md", "deep/c.md"),
            lambda: home.write("third", "notes/d", agent="claude"),
        ],
        [lambda: home.memory.delete("notes/a.md")],
        [lambda: home.memory.undo()],
    )
    for steps in runs:
        for step in steps:
            step()
        assert home.mirror().commits == 1
        states.append(noted(home))
    assert home.mirror().commits == 0
    lines = [line.split(" ", 2)[::2] for line in home.commits()]
    assert lines == [
        ["claude", "write notes/a.md"],
        ["cursor", "write notes/b.md"],
        ["memory", "2 changes up to #4"],
        ["owner", "delete notes/a.md"],
        ["owner", "undo notes/a.md (takes back #5)"],
    ]
    commits = home.git("log", "--reverse", "--format=%H").split()
    for commit, then in zip(commits, states, strict=True):
        names = home.git("ls-tree", "-r", "--name-only", "-z", commit).split("\0")[:-1]
        committed = {
            name: subprocess.check_output(["git", "-C", str(home.copy), "show", f"{commit}:{name}"])
            for name in names
        }
        assert committed == then
    body = home.git("log", "-1", "--format=%b", commits[2])
    assert "#3 move notes/b.md (owner, " in body
    assert "#4 write notes/d.md (claude, " in body
    assert body.rstrip().endswith("Memory-Change: 4")


def test_a_run_that_was_killed_after_its_commit_is_gone_on_with(home):
    home.write("one", "notes/a")
    home.mirror(git=True)
    noted_before = (home.copy / MIRROR / "commits.json").read_bytes()
    home.write("two", "notes/b")
    home.mirror()
    # As if it had been killed before it noted the commit, in the middle of its index
    (home.copy / MIRROR / "commits.json").write_bytes(noted_before)
    (home.copy / ".git" / "memory-index.lock").write_bytes(b"torn")
    assert home.mirror().commits == 0
    home.write("three", "notes/c")
    assert home.mirror().commits == 1
    assert [line.split(" ", 2)[2] for line in home.commits()] == [
        f"write notes/{name}.md" for name in "abc"
    ]
    assert home.git("status", "--porcelain") == ""


def test_what_a_vault_tells_git_to_ignore_or_to_convert_is_committed_as_it_is(home, tmp_path):
    vault = tmp_path / "vault"
    put = {
        ".gitignore": b"*.md\n",
        ".gitattributes": b"* text eol=crlf working-tree-encoding=UTF-16\n",
        "a.md": b"a\nb\r\n",
    }
    vault.mkdir()
    for name, data in put.items():
        (vault / name).write_bytes(data)
        (home.folder / "memories").mkdir(exist_ok=True)
        (home.folder / "memories" / name).write_bytes(data)
    home.memory.add_project("vault", str(vault))
    home.mirror(git=True)
    for name in files(home.copy):
        output = subprocess.check_output(["git", "-C", str(home.copy), "show", f"HEAD:{name}"])
        assert output == (home.copy / name).read_bytes()
    assert len(files(home.copy)) >= 4


def test_a_graph_file_is_committed_as_it_is_after_its_last_change(home, tmp_path):
    file = tmp_path / "people.jsonl"
    file.write_text('{"type":"entity","name":"Ada","entityType":"person","observations":[]}\n')
    home.memory.add_project("people", str(file))
    home.write("one")
    home.mirror(git=True)
    graph = open_graph(home.memory, "people")
    graph.add_observations([("Ada", ["likes tea"])])
    graph.create_entities([Entity("Bob", "person", ())])

    assert home.mirror().commits == 1
    assert home.git("show", "HEAD:projects/people.jsonl") == file.read_text()
    assert "likes tea" in file.read_text()
    assert home.git("status", "--porcelain") == ""


def test_the_first_run_is_one_commit_of_what_there_is(home):
    (home.folder / "notes").mkdir()
    (home.folder / "notes" / "old.md").write_text("by hand, before")
    home.write("one", "notes/a")
    home.memory.delete("notes/a.md")

    commits = home.mirror(git=True).commits
    assert commits == 1
    assert home.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["notes/old.md"]
    assert home.git("status", "--porcelain") == ""


def test_names_git_would_have_to_quote_and_texts_that_are_no_text_come_through(home):
    odd = home.folder / "memories"
    odd.mkdir()
    names = ['say "hi".md', "zwei\tTabs.md", "测试 note.md", "back\\slash.md", " blank.md"]
    for number, name in enumerate(names):
        (odd / name).write_bytes(bytes(range(256)) + b"%d" % number)
    home.mirror(git=True)
    listed = home.git("ls-tree", "-r", "--name-only", "-z", "HEAD").split("\0")[:-1]

    assert sorted(listed) == sorted(f"memories/{name}" for name in names)
    assert home.git("status", "--porcelain") == ""


def test_nothing_of_the_machines_git_takes_part(home, tmp_path, monkeypatch):
    user = tmp_path / "user"
    hooks = user / "hooks"
    hooks.mkdir(parents=True)
    for name in (
        "post-commit",
        "pre-commit",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
    ):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {user}/ran\n")
        (hooks / name).chmod(0o755)
    config = f"[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n[user]\n\tname = Somebody\n\temail = a@b\n"
    (user / ".gitconfig").write_text(config)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Else")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    home.write("a\r\nb", "notes/a")
    home.mirror(git=True)
    home.write("c\r\n", "notes/b")
    home.mirror()
    monkeypatch.delenv("GIT_DIR")
    assert (
        home.git("log", "--format=%an <%ae>").splitlines() == ["owner <owner@memory.invalid>"] * 2
    )
    assert (user / ".gitconfig").read_text() == config
    assert not (user / "ran").exists()
    assert not (tmp_path / "elsewhere").exists()
    assert subprocess.check_output(
        ["git", "-C", str(home.copy), "show", "HEAD:notes/b.md"]
    ).endswith(b"c\r\n")


def test_an_agent_may_not_mirror_nor_import_a_mirror(home):
    home.write("one")
    home.mirror()
    with pytest.raises(InvalidInput, match="owner"):
        Mirror(home.memory.as_caller("claude"), home.copy)
    with pytest.raises(InvalidInput, match="owner"):
        plan_mirror(home.memory.as_caller("claude"), home.copy)


def test_a_folder_with_other_things_in_it_is_refused_and_so_is_the_home(home):
    home.write("one")
    home.copy.mkdir()
    (home.copy / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="not empty"):
        home.mirror()
    names = os.listdir(home.copy)
    assert names == ["thesis.txt"]
    for place in (home.folder, home.folder.parent, home.folder / "notes" / "copy"):
        with pytest.raises(InvalidInput, match="memory home"):
            Mirror(home.memory, place)


def test_a_file_somebody_put_into_the_mirror_is_not_written_over(home):
    home.write("one", "notes/a")
    home.mirror()
    file = home.copy / "notes" / "b.md"
    file.write_text("mine")
    home.write("two", "notes/b")
    with pytest.raises(InvalidInput, match="not from the memory"):
        home.mirror()
    text = (home.copy / "notes" / "b.md").read_text()
    assert text == "mine"
    (home.copy / "notes" / "b.md").unlink()
    home.mirror()
    assert files(home.copy) == noted(home)


def test_no_symlink_in_the_mirror_is_followed(home, tmp_path):
    home.write("one", "notes/a")
    home.write("gone", "categories/b")
    home.mirror()
    outside = tmp_path / "outside"
    (home.copy / "notes").rename(outside)
    (home.copy / "notes").symlink_to(outside)
    before = files(outside)
    home.write("two", "notes/c")
    with pytest.raises(OutsideError):
        home.mirror()
    home.memory.delete("notes/a.md")
    home.memory.delete("notes/c.md")
    with pytest.raises(OutsideError):
        home.mirror()
    assert files(outside) == before
    (home.copy / "notes").unlink()
    target = tmp_path / "target.md"
    target.write_text("not ours")
    (home.copy / "notes").mkdir()
    home.write("three", "notes/d")
    home.mirror()
    (home.copy / "notes" / "d.md").unlink()
    (home.copy / "notes" / "d.md").symlink_to(target)
    home.mirror()
    assert not (home.copy / "notes" / "d.md").is_symlink()
    assert target.read_text() == "not ours"


def test_a_project_that_cannot_be_listed_keeps_its_copies(home, tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("x")
    home.memory.add_project("vault", str(vault))
    home.mirror()
    vault.rename(tmp_path / "unmounted")
    outcome = home.mirror()

    assert outcome.left == ["projects/vault/"]
    text = (home.copy / "projects" / "vault" / "a.md").read_text()
    assert text == "x"


def test_the_mirror_of_another_home_is_refused(home, tmp_path):
    home.write("one")
    home.mirror()
    with (
        open_session(tmp_path / "other") as other_memory,
        pytest.raises(InvalidInput, match="mirrors"),
    ):
        Mirror(other_memory, home.copy).run()


def test_commits_of_somebody_else_are_refused_with_the_way_back(home):
    home.write("one")
    home.mirror(git=True)
    head = home.git("rev-parse", "HEAD").strip()
    home.git(
        "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "mine"
    )
    with pytest.raises(InvalidInput, match=head):
        home.mirror()


def all_objects(home: Home) -> bytes:
    return subprocess.check_output(
        ["git", "-C", str(home.copy), "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    )


def test_after_an_erasing_the_files_follow_and_the_commits_wait_for_the_owner(home):
    home.write("the secret password is hunter2", "notes/a")
    home.write("other", "notes/b", agent="claude")
    home.mirror(git=True)
    home.memory.erase("notes/a.md")
    home.write("later", "notes/c")
    with pytest.raises(InvalidInput, match="--after-erase"):
        home.mirror()
    assert files(home.copy) == noted(home)
    assert len(home.commits()) == 1
    home.git("branch", "mine")
    outcome = home.mirror(after_erase="rewrite")
    assert "refs/heads/mine" in outcome.notices[0]
    assert b"hunter2" in all_objects(home)
    home.git("branch", "-D", "mine")
    home.git("gc", "-q", "--prune=now")
    assert b"hunter2" not in all_objects(home)
    assert [line.split(" ", 2)[::2] for line in home.commits()] == [
        ["owner", "Begin anew without what was erased"]
    ]
    assert home.git("status", "--porcelain") == ""


def test_a_rewritten_mirror_holds_nothing_of_what_was_erased_and_a_kept_one_does(home):
    home.write("the secret password is hunter2", "notes/a")
    home.mirror(git=True)
    home.memory.erase("notes/a.md")
    commits = home.mirror(after_erase="keep").commits
    assert commits == 1
    assert b"hunter2" in all_objects(home)
    home.write("hunter3 is another", "notes/d")
    home.mirror()
    home.memory.erase("notes/d.md")
    home.mirror(after_erase="rewrite")
    assert b"hunter" not in all_objects(home)
    mirror_bytes = b"".join(path.read_bytes() for path in home.copy.rglob("*") if path.is_file())
    assert b"notes/a.md" not in mirror_bytes


@pytest.mark.parametrize("git", [False, True])
def test_a_mirror_comes_back_into_an_empty_home(home, tmp_path, git):
    home.write("one", "notes/a")
    home.write("mine", "categories/b", agent="claude", scope="agent:claude")
    home.memory.add_project("vault", str(home.folder / "projects" / "vault"))
    home.memory.write(Draft("in the vault", project="vault", folder="x", title="y"))
    (home.folder / "memories").mkdir()
    (home.folder / "memories" / ".plan").write_text("hidden")
    home.mirror(git=git)
    with open_session(tmp_path / "back") as back:
        plan = plan_mirror(back, home.copy)
        plan.carry_out()
        assert plan.skipped == []
        assert plan_mirror(back, home.copy).items == []
        names = [project.name for project in back.projects if not project.built_in]
        assert names == ["vault"]

    assert {name: data for name, data in files(tmp_path / "back").items() if "/" in name} == noted(
        home
    )


def test_a_mirror_is_no_more_than_a_commit_behind_where_the_history_was_purged(home):
    home.write("one", "notes/a")
    home.mirror(git=True)
    for number in range(3):
        home.write(f"{number}", f"notes/n{number}")
    home.time += timedelta(days=200)
    home.memory.engine.purge_history()
    home.write("last", "notes/z")
    home.mirror()

    assert files(home.copy) == noted(home)
    assert home.git("status", "--porcelain") == ""
    assert home.git("ls-tree", "-r", "--name-only", "HEAD").split() == sorted(noted(home))


def test_the_command_answers_in_numbers_and_names_wrong_words(terminal):
    terminal.write("one")
    copy = terminal.folder / "copy"
    assert (
        terminal.ok("mirror", str(copy))
        == f"{copy}: 1 file (1 copied, 0 removed), as of change #1\n"
    )
    ran = terminal("mirror", str(copy), "--git", "--json")
    assert (ran.json["files"], ran.json["copied"], ran.json["commits"]) == (1, 0, 1)
    assert terminal("mirror", str(copy), "--after-erase", "no").status == 2
    assert terminal("--agent", "claude", "mirror", str(copy)).status == 1
    assert terminal("import", "--from", "mirror", str(terminal.folder)).error.endswith(
        "it has no folder .memory-mirror"
    )
    output = terminal.ok(
        "--home", str(terminal.folder / "b"), "import", "--from", "mirror", str(copy)
    )
    assert output == "Imported 1 files (0 were there, 0 skipped)\n"


@pytest.mark.slow
def test_a_mirror_that_is_killed_again_and_again_has_one_commit(tmp_path):
    places = {"HOME": str(tmp_path), "MEMORY_HOME": str(tmp_path / "home")}
    with open_session(tmp_path / "home") as memory:
        for number in range(80):
            memory.write(
                Draft(
                    f"text {number} " * 50,
                    project="notes",
                    folder=f"f{number % 7}",
                    title=f"n{number}",
                )
            )
    command = ["mirror", str(tmp_path / "copy"), "--git"]
    imports = "import memoranda.transfer.whole_home\nfrom memoranda.cli import main"
    events = ["open", "os.rename", "os.utime", "subprocess.Popen", "os.remove"]
    stops = (stop * stop for stop in range(2, 80, 4))
    killed = times_killed(
        stops, events, imports, "sys.exit(main(sys.argv[2:]))", *command, **places
    )
    assert killed > 5
    command = [sys.executable, "-m", "memoranda", *command]
    subprocess.run(command, env={**os.environ, **places}, check=True, capture_output=True)
    log = subprocess.check_output(
        ["git", "-C", str(tmp_path / "copy"), "log", "--format=%s"], text=True
    ).splitlines()
    assert log == ["80 changes up to #80"]
    assert files(tmp_path / "copy") == {
        n: d for n, d in files(tmp_path / "home").items() if "/" in n
    }
    assert (
        subprocess.check_output(["git", "-C", str(tmp_path / "copy"), "status", "--porcelain"])
        == b""
    )
    assert not json.loads((tmp_path / "copy" / MIRROR / "state.json").read_text())["writing"]


@pytest.mark.slow
def test_a_mirror_that_watches_follows_each_change_until_it_is_stopped(tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "MEMORY_HOME": str(tmp_path / "home")}
    command = [
        sys.executable,
        "-m",
        "memoranda",
        "mirror",
        str(tmp_path / "copy"),
        "--watch",
        "--git",
    ]
    with open_session(tmp_path / "home") as memory:
        memory.write(Draft("one", project="notes", title="a"))
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        ) as watching:
            assert watching.stdout is not None
            try:
                assert "1 file (1 copied, 0 removed, 1 commit)" in watching.stdout.readline()
                memory.write(Draft("two", project="notes", title="b"))
                assert "2 files (1 copied, 0 removed, 1 commit)" in watching.stdout.readline()
            finally:
                watching.send_signal(signal.SIGINT)
        assert watching.returncode == 130
        assert (tmp_path / "copy" / "notes" / "b.md").is_file()


def test_a_file_removed_while_its_folder_is_listed_hides_no_other_file(home, monkeypatch):
    """Our own design: another program may remove a file at any moment."""
    titles = {"a", "b", "c"}
    for title in titles:
        home.write("tea", f"notes/{title}.md")
    folder = Path(home.memory.engine.source("notes").root)
    is_kept_name = exchange.is_kept_name
    removed: list[str] = []

    def remove_first_note(project: str, name: str) -> bool:
        """Remove the first note that is listed, before its size and times are read."""
        if project == "notes" and name.endswith(".md") and not removed:
            (folder / name).unlink()
            removed.append(name.removesuffix(".md"))
        return is_kept_name(project, name)

    monkeypatch.setattr(exchange, "is_kept_name", remove_first_note)
    files = exchange.Contents(home.memory).listed().files
    listed = {Path(path).stem for project, path, _ in files.values() if project == "notes"}
    assert listed == titles - {*removed}
