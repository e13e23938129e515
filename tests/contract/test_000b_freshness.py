"""Contract 000b, 12.8: what another program did before a call, the call shows, with and without a
watch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from contract.home_kinds import DISK, VAULT, in_database, with_projects
from contract.note_tools import Tools, put
from memoranda.engine import open_session

pytestmark = pytest.mark.promise("000b-12.8")


@pytest.fixture(params=["watching", "looking"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vault]:
    """Tools on a memory that has been in use, and the vault another program works in."""
    root = tmp_path / "vault"
    put(root / "a.md", "# A\n\nfirst apple [[Later]]\n")
    put(root / "deep/b.md", "second banana\n")
    put(root / "deep/er/c.md", "third cherry\n")
    with open_session(
        tmp_path / "home",
        **with_projects(tmp_path / "home", vault=root),
        watch=request.param == "watching",
    ) as memory:
        it = Vault(root, Tools(memory))
        assert it.shown() == {"a.md", "deep/b.md", "deep/er/c.md"}
        yield it


class Vault:
    def __init__(self, root: Path, tools: Tools):
        self.root = root
        self.tools = tools

    def shown(self) -> set[str]:
        """The notes a listing shows."""
        entries = self.tools("list_directory", project="vault", depth=10, page_size=200)["entries"]
        return {entry["path"] for entry in entries if entry["kind"] == "note"}

    def found(self, query: str) -> set[str]:
        return self.tools.found(query, project="vault")


def test_an_edit_of_the_same_size_within_the_same_moment(vault: Vault) -> None:
    file = vault.root / "a.md"
    for word in ("grape", "melon", "lemon", "mango"):
        before = file.stat()
        file.write_text(f"now {word}\n")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        assert vault.found(word) == {"a.md"}


def test_a_file_replaced_by_rename_even_with_equal_size_and_time(vault: Vault) -> None:
    file = vault.root / "deep/b.md"
    old = file.stat()
    for name in (".b.md.swp", "b.md~", "sub.tmp"):
        text = f"swapped {name.strip('.')[:4]}X"
        put(file.with_name(name), text.ljust(old.st_size - 1)[: old.st_size - 1] + "\n")
        os.utime(file.with_name(name), ns=(old.st_atime_ns, old.st_mtime_ns))
        os.replace(file.with_name(name), file)
        assert vault.found("swapped") == {"deep/b.md"}
        assert vault.found("banana") == set()
        assert vault.tools("read_note", identifier="deep/b.md", project="vault")[
            "content"
        ].startswith(text[:10])


def test_a_file_moved_keeps_its_links_under_the_new_path(vault: Vault) -> None:
    os.rename(vault.root / "deep/b.md", vault.root / "Later.md")
    assert vault.shown() == {"a.md", "Later.md", "deep/er/c.md"}
    assert vault.found("banana") == {"Later.md"}
    (result,) = vault.tools("build_context", url="a.md", project="vault")["results"]
    permalinks = [relation["permalink"] for relation in result["relations"]]
    assert permalinks == ["vault/later"]
    os.rename(vault.root / "Later.md", vault.root / "Later.txt")
    assert vault.found("banana") == set()
    (result,) = vault.tools("build_context", url="a.md", project="vault")["results"]
    states = [relation["state"] for relation in result["relations"]]
    assert states == ["unwritten"]


def test_files_that_change_places(vault: Vault) -> None:
    a = vault.root / "a.md"
    b = vault.root / "deep/b.md"
    c = vault.root / "deep/er/c.md"
    os.rename(a, vault.root / "x")
    os.rename(b, a)
    os.rename(c, b)
    os.rename(vault.root / "x", c)
    assert (vault.found("banana"), vault.found("cherry"), vault.found("apple")) == (
        {"a.md"},
        {"deep/b.md"},
        {"deep/er/c.md"},
    )


def test_a_folder_renamed_and_one_that_takes_its_name(vault: Vault) -> None:
    os.rename(vault.root / "deep", vault.root / "moved")
    assert vault.shown() == {"a.md", "moved/b.md", "moved/er/c.md"}
    put(vault.root / "deep/b.md", "another apricot\n")
    assert vault.found("apricot") == {"deep/b.md"}
    # In a folder known under another name before
    put(vault.root / "moved/er/c.md", "changed cranberry\n")
    assert vault.found("cranberry") == {"moved/er/c.md"}
    os.rename(vault.root / "moved/er", vault.root / "deep/er")
    put(vault.root / "deep/er/d.md", "damson\n")
    assert vault.shown() == {"a.md", "deep/b.md", "moved/b.md", "deep/er/c.md", "deep/er/d.md"}
    assert vault.found("damson") == {"deep/er/d.md"}


def test_folders_that_come_and_go_with_a_move(vault: Vault, tmp_path: Path) -> None:
    put(tmp_path / "outside/in/o.md", "olive\n")
    os.rename(tmp_path / "outside", vault.root / "inside")
    assert vault.found("olive") == {"inside/in/o.md"}
    put(vault.root / "inside/in/p.md", "plum\n")
    assert vault.found("plum") == {"inside/in/p.md"}
    os.rename(vault.root / "inside", tmp_path / "outside")
    assert vault.shown() == {"a.md", "deep/b.md", "deep/er/c.md"}
    put(tmp_path / "outside/in/q.md", "quince\n")
    assert vault.found("quince") == set()


def test_a_folder_that_becomes_hidden_or_is_not_ours(vault: Vault) -> None:
    os.rename(vault.root / "deep", vault.root / ".deep")
    assert vault.shown() == {"a.md"}
    os.rename(vault.root / ".deep", vault.root / "node_modules")
    assert vault.shown() == {"a.md"}
    os.rename(vault.root / "node_modules", vault.root / "deep")
    assert vault.found("cherry") == {"deep/er/c.md"}


def test_a_file_that_becomes_a_folder_or_a_link(vault: Vault) -> None:
    (vault.root / "a.md").unlink()
    put(vault.root / "a.md/inner.md", "raspberry\n")
    assert vault.found("raspberry") == {"a.md/inner.md"}
    assert vault.shown() == {"a.md/inner.md", "deep/b.md", "deep/er/c.md"}
    (vault.root / "deep/b.md").unlink()
    os.symlink(vault.root / "deep/er/c.md", vault.root / "deep/b.md")
    assert vault.shown() == {"a.md/inner.md", "deep/er/c.md"}


def test_the_first_file_of_a_built_in_project(vault: Vault) -> None:
    home = vault.tools.memory.home
    for project in ("notes", "memories", "graph", "kv", "banks", "categories"):
        put(home / project / "inbox/deep.md", f"strawberry {project}\n")
        assert vault.tools.found(f"strawberry {project}") == {"inbox/deep.md"}
        put(home / project / "inbox/deep.md", f"tangerine {project}\n")
        assert vault.tools.found(f"tangerine {project}") == {"inbox/deep.md"}


def test_a_restored_backup_with_older_times(vault: Vault) -> None:
    file = vault.root / "a.md"
    newer = file.stat()
    backup = put(vault.root.parent / "backup", "# A\n\nold ugli\n")
    os.utime(backup, ns=(1, 10**18))
    shutil.copy2(backup, file)

    assert file.stat().st_mtime_ns < newer.st_mtime_ns
    assert vault.found("ugli") == {"a.md"}
    total = vault.tools("recent_activity", project="vault", timeframe="1h")["total"]
    assert total == 2


@pytest.mark.parametrize("folder", ["deep", "."])
def test_an_unreadable_folder_hides_and_deletes_nothing(
    vault: Vault, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = vault.root / folder
    place.chmod(0)
    try:
        with monkeypatch.context() as patch:
            # This user reads every folder
            if os.access(place, os.R_OK):
                patch.setattr(os, "scandir", refusing(place))
            assert vault.found("cherry") == {"deep/er/c.md"}
            reply = vault.tools.call("search_notes", query="banana", project="vault")
            assert "Warning: " in reply.text
            assert reply.data["warnings"]
    finally:
        place.chmod(0o755)
    put(vault.root / "deep/b.md", "vanilla\n")
    assert vault.found("vanilla") == {"deep/b.md"}
    assert "warnings" not in vault.tools("search_notes", query="vanilla")


def refusing(folder: Path) -> Callable[..., object]:
    """`os.scandir` of a disk that cannot read this folder (which works for a user who may read
    everything).
    """
    scandir = os.scandir
    bad = os.path.realpath(folder)

    def refuse(path: object = ".") -> object:
        if isinstance(path, int):
            place = os.readlink(f"/proc/self/fd/{path}")
        else:
            place = os.path.realpath(os.fspath(path))
        if f"{place}/".startswith(f"{bad}/"):
            raise OSError(5, "Input/output error")
        return scandir(path)

    return refuse


@pytest.mark.folder_home(DISK)
def test_a_folder_the_disk_refuses_to_list_deletes_nothing(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing(vault.root / "deep"))
        with open_session(vault.tools.memory.home, projects={"vault": vault.root}) as other_memory:
            assert {info.path for info in other_memory.list("project:vault")[0]} == {
                "a.md",
                "deep/b.md",
                "deep/er/c.md",
            }
            assert other_memory.warnings
    assert vault.found("cherry") == {"deep/er/c.md"}


def test_a_folder_that_can_be_read_again_is_seen_again(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing(vault.root / "deep"))
        vault.tools.memory.reindex()
        put(vault.root / "other/new.md", "nothing else\n")
        warnings = vault.tools("search_notes", query="nothing else", project="vault")["warnings"]
        assert warnings
        assert vault.shown() == {"a.md", "other/new.md"}
    assert vault.found("cherry") == {"deep/er/c.md"}
    put(vault.root / "deep/er/c.md", "vanilla\n")
    assert vault.found("vanilla") == {"deep/er/c.md"}
    assert "warnings" not in vault.tools("search_notes", query="vanilla")


@pytest.mark.folder_home(VAULT)
def test_a_project_folder_that_goes_and_comes_back(vault: Vault) -> None:
    away = vault.root.with_name("away")
    os.rename(vault.root, away)
    reply = vault.tools.call("search_notes", query="cherry")
    file_paths = [result["file_path"] for result in reply.data["results"]]
    assert file_paths == ["deep/er/c.md"]
    assert any("vault" in warning for warning in reply.data["warnings"])
    assert "vault" in reply.text.rpartition("Warning: ")[2]
    assert vault.tools.call("read_note", identifier="nowhere at all").data["warnings"]
    put(away / "deep/er/c.md", "watermelon\n")
    os.rename(away, vault.root)
    reply = vault.tools.call("search_notes", query="watermelon")
    file_paths = [result["file_path"] for result in reply.data["results"]]
    assert file_paths == ["deep/er/c.md"]
    assert "warnings" not in reply.data


OTHER_PROGRAM = """
import os, sys
root = sys.argv[1]
for line in sys.stdin:
    verb, path, *rest = line.rstrip("\\n").split("\\t")
    place = os.path.join(root, path)
    if verb == "write":
        os.makedirs(os.path.dirname(place), exist_ok=True)
        open(place, "w").write(rest[0] + "\\n")
    elif verb == "rename":
        os.rename(place, os.path.join(root, rest[0]))
    elif verb == "delete":
        os.unlink(place)
    print("done", flush=True)
"""


def test_a_real_other_process_in_step_with_our_calls(vault: Vault) -> None:
    program = [sys.executable, "-c", OTHER_PROGRAM, str(vault.root)]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other_process:
        assert other_process.stdin
        assert other_process.stdout

        def tell(*words: str) -> None:
            other_process.stdin.write("\t".join(words) + "\n")
            other_process.stdin.flush()
            assert other_process.stdout.readline() == "done\n"

        for number in range(25):
            tell("write", f"w{number % 5}/n.md", f"turn{number}x")
            assert vault.found(f"turn{number}x") == {f"w{number % 5}/n.md"}
            tell("rename", f"w{number % 5}", f"v{number}")
            assert vault.found(f"turn{number}x") == {f"v{number}/n.md"}
            tell("delete", f"v{number}/n.md")
            assert vault.found(f"turn{number}x") == set()
        other_process.stdin.close()


PATHS = st.builds(
    "{}{}.md".format, st.sampled_from(["", "a/", "a/b/", "c/"]), st.sampled_from("xyz")
)
FOLDERS = st.sampled_from(["a", "a/b", "c", "d", "c/e", ".h"])


class Vandal(RuleBasedStateMachine):
    """Any sequence of what another program may do; after each step the index shows just the files
    on disk.
    """

    watch = True

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.place = tempfile.TemporaryDirectory()
        base = Path(self.place.name)
        self.root = base / "vault"
        self.root.mkdir()
        self.count = 0
        self.memory = open_session(
            base / "home", **with_projects(base / "home", vault=self.root), watch=self.watch
        )

    def teardown(self) -> None:
        self.memory.close()
        self.place.cleanup()

    @rule(path=PATHS)
    def write(self, path: str) -> None:
        self.count += 1
        if (self.root / path).parent.is_dir() or not any(
            parent.is_file() for parent in (self.root / path).parents
        ):
            put(self.root / path, f"word{self.count}\n")

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    @rule(path=PATHS, to=PATHS)
    def move(self, path: str, to: str) -> None:
        if (self.root / path).is_file() and (self.root / to).parent.is_dir():
            os.replace(self.root / path, self.root / to)

    @rule(folder=FOLDERS)
    def make(self, folder: str) -> None:
        (self.root / folder).mkdir(parents=True, exist_ok=True)

    @rule(folder=FOLDERS, to=FOLDERS)
    def rename(self, folder: str, to: str) -> None:
        source = self.root / folder
        target = self.root / to
        if (
            source.is_dir()
            and target.parent.is_dir()
            and not target.exists()
            and source not in target.parents
        ):
            os.rename(source, target)

    @rule(folder=FOLDERS)
    def remove(self, folder: str) -> None:
        shutil.rmtree(self.root / folder, ignore_errors=True)

    @rule()
    def look_away(self) -> None:
        self.unseen = True

    unseen = False

    @invariant()
    def the_index_shows_what_lies_there(self) -> None:
        if self.unseen:
            self.unseen = False
            return
        infos, _ = self.memory.list(limit=0)
        indexed = {info.path: self.memory.text_of(info) for info in infos}
        on_disk = {}
        for path in self.root.rglob("*.md"):
            if not any(part.startswith(".") for part in path.relative_to(self.root).parts):
                on_disk[str(path.relative_to(self.root))] = path.read_text()
        assert indexed == on_disk


class VandalWithoutWatch(Vandal):
    watch = False


def machine(kind: type[RuleBasedStateMachine]) -> Callable[[], None]:
    from hypothesis.stateful import run_state_machine_as_test

    return lambda: run_state_machine_as_test(
        kind, settings=settings(max_examples=6 if in_database() else 15, stateful_step_count=25)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Vandal, VandalWithoutWatch])
def test_whatever_another_program_does_in_whatever_order(kind: type[RuleBasedStateMachine]) -> None:
    machine(kind)()
