"""kill -9 at every durable operation, and at random moments: all or nothing, nothing acknowledged
is lost.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crash import mortal
from crash.mortal import ENVIRONMENT, SCRIPTS, mortals
from memoranda.engine import MemorySession, open_session
from memoranda.faces.memory_tool import MemoryCommands
from memoranda.query import Query

SECONDS = 60
KILLS = int(os.environ.get("MEMORANDA_KILLS", "24"))
START = {
    "a.md": "- [count] count 0 #n\n",
    "folder/b.md": "# B\n\n- knows [[a]]\n",
    "folder/deep/c.md": "c\n",
    "folder/.hidden": "h\n",
}


def fresh(home: Path) -> Path:
    for path, text in START.items():
        place = home / "memories" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return home


def tree(home: Path) -> dict[str, str]:
    root = home / "memories"
    return {str(p.relative_to(root)): p.read_text() for p in sorted(root.rglob("*")) if p.is_file()}


def states(tmp_path: Path, script: str) -> list[dict[str, str]]:
    """The tree after none, one, two … calls of the script, undisturbed."""
    home = fresh(tmp_path / "undisturbed")
    trees = [tree(home)]
    with open_session(home, watch=False) as memory:
        commands = MemoryCommands()
        for arguments in SCRIPTS[script]:
            assert not commands.run(memory, arguments).is_error
            trees.append(tree(home))
    return trees


@contextmanager
def next_process(home: Path) -> Iterator[MemorySession]:
    """The memory as the next process opens it: no change is half done, and nothing is left behind."""
    with open_session(home, watch=False) as memory:
        memory.sync()
        with memory.exclusive():
            assert not memory.engine.ledger.unfinished()
        yield memory
        with memory.engine.guard:
            assert memory.index.is_sound()
    folder = home / ".memoranda"
    assert [*home.rglob(".tmp-*"), *folder.glob("redo-*")] == []


def check(home: Path, possible: list[dict[str, str]], acknowledged: int) -> None:
    """What the next process finds: one of the states from the acknowledged one on, whole, indexed
    and clean.
    """
    with next_process(home) as memory:
        tree_found = tree(home)
        assert tree_found in possible[acknowledged : acknowledged + 2]
        infos, total = memory.list(Query(order="path"), limit=0)
        visible = []
        for path in tree_found:
            if not any(part.startswith(".") for part in path.split("/")):
                visible.append(path)
        paths = sorted(info.path for info in infos)
        assert paths == sorted(visible)
        assert total == len(visible)
        numbers = [change.number for change in memory.log(limit=0)]
        assert numbers == sorted(set(numbers), reverse=True)
        assert len(numbers) == possible.index(tree_found)


@pytest.mark.slow
@pytest.mark.promise("issue-kill-9-at-every-step", "000a-12.5")
@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_killed_at_every_rename_sync_write_and_commit(tmp_path, script):
    possible = states(tmp_path, script)
    with mortals(mortal.__file__, script) as work:
        _, total = work(fresh(tmp_path / "count"))
        assert total > 30
        for die_at in range(1, total + 1):
            home = fresh(tmp_path / f"die-{die_at}")
            lines, _ = work(home, die_at)
            for line in lines:
                assert line.startswith("ok ")
            check(home, possible, len(lines))


@pytest.mark.slow
@pytest.mark.promise("issue-kill-9-random", "000a-12.5")
def test_killed_at_random_over_all_verbs_jobs_and_faces_nothing_is_lost_and_nothing_left_behind(
    tmp_path,
):
    """MEMORANDA_KILLS=2000 for the whole of it."""
    command = [
        sys.executable,
        str(Path(__file__).with_name("random_kills.py")),
        str(tmp_path),
        str(KILLS),
    ]
    ran = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS + KILLS
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].endswith("nothing lost, nothing left behind")


@pytest.mark.slow
@pytest.mark.promise("issue-kill-9-random")
def test_processes_killed_at_random_lose_nothing_that_they_acknowledged(tmp_path):
    """`memory call` and `memory mcp`. A kill of a process takes as long as a dozen of forks."""
    kills = max(2, KILLS // 12)
    command = [
        sys.executable,
        str(Path(__file__).with_name("process_kills.py")),
        str(tmp_path),
        str(kills),
    ]
    ran = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS + KILLS
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].endswith("nothing lost, nothing left behind")
