"""kill -9 at every durable operation, and at random moments: all or nothing, nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commonplace import Memory, open_memory
from commonplace.faces.memory_tool import MemoryCommands
from crash.mortal import ENVIRONMENT, SCRIPTS, killed

SECONDS = 60
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
    found = [tree(home)]
    with open_memory(home, watch=False) as memory:
        commands = MemoryCommands()
        for arguments in SCRIPTS[script]:
            assert not commands.run(memory, arguments).is_error
            found.append(tree(home))
    return found


def run(homes: dict[Path, int], script: str) -> list[list[str]]:
    """For each home, the lines of a process that kills itself at that operation (0: never)."""
    said = killed(homes, str(Path(__file__).with_name("mortal.py")), script)
    return [part.splitlines() for part in said.split("end\n")[:-1]]


@contextmanager
def next_process(home: Path) -> Iterator[Memory]:
    """The memory as the next process opens it: no change is half done, and nothing is left behind."""
    with open_memory(home, watch=False) as memory:
        memory.sync()
        with memory.exclusive():
            assert not memory.engine.home.unfinished()
        yield memory
        with memory.engine.guard:
            assert memory.index.is_sound()
    assert [*home.rglob(".tmp-*"), *(home / ".commonplace").glob("redo-*")] == []


def check(home: Path, possible: list[dict[str, str]], acknowledged: int) -> None:
    """What the next process finds: one of the states from the acknowledged one on, whole, indexed and clean."""
    with next_process(home) as memory:
        found = tree(home)
        assert found in possible[acknowledged : acknowledged + 2]
        infos, total = memory.list(limit=0, order="path")
        visible = [path for path in found if not any(part.startswith(".") for part in path.split("/"))]
        assert sorted(info.path for info in infos) == sorted(visible)
        assert total == len(visible)
        numbers = [change.number for change in memory.log(limit=0)]
        assert numbers == sorted(set(numbers), reverse=True)
        assert len(numbers) == possible.index(found)


@pytest.mark.slow
@pytest.mark.promise("issue-kill-9-at-every-step", "000a-12.5")
@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_killed_at_every_rename_sync_write_and_commit(tmp_path, script):
    possible = states(tmp_path, script)
    (everything,) = run({fresh(tmp_path / "count"): 0}, script)
    assert everything[-1].startswith("done ")
    total = int(everything[-1].split()[1])
    assert total > 30
    homes = {fresh(tmp_path / f"die-{die_at}"): die_at for die_at in range(1, total + 1)}
    for home, lines in zip(homes, run(homes, script), strict=True):
        assert all(line.startswith("ok ") for line in lines)
        check(home, possible, len(lines))


BURST = """
import sys
from commonplace import open_memory
from commonplace.faces.memory_tool import MemoryCommands
memory = open_memory(sys.argv[1], watch=False)
commands = MemoryCommands()
for number in range(int(sys.argv[2]), 1_000_000):
    for arguments in (
        {"command": "str_replace", "path": "/memories/n.md", "old_str": f"n{number};", "new_str": f"n{number + 1};"},
        {"command": "insert", "path": "/memories/log.md", "insert_line": 0, "insert_text": f"line {number}"},
    ):
        reply = commands.run(memory, arguments)
        assert not reply.is_error, reply.text
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.promise("issue-kill-9-random", "000a-12.5")
def test_killed_at_random_moments_again_and_again_on_one_home(tmp_path):
    home, random_moment = tmp_path / "home", random.Random(7)
    (home / "memories").mkdir(parents=True)
    (home / "memories" / "n.md").write_text("n0;")
    (home / "memories" / "log.md").write_text("")
    number = 0
    for _ in range(KILLS):
        number = burst(home, number, random_moment.uniform(0.0, 0.06))
    with open_memory(home, watch=False) as memory:
        assert memory.search("line").total == 1
    assert list(home.rglob(".tmp-*")) == []


KILLS = int(os.environ.get("COMMONPLACE_KILLS", "60"))


def burst(home: Path, number: int, life: float) -> int:
    """Start a writer, kill it `life` seconds after its first answer, check what it left; the number reached."""
    command = [sys.executable, "-c", BURST, str(home), str(number)]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    answers = [process.stdout.readline()]
    end = time.monotonic() + life
    while time.monotonic() < end:
        answers.append(process.stdout.readline())
    process.kill()
    answers += process.stdout.read().splitlines()
    process.wait(SECONDS)
    process.stdout.close()
    acknowledged = [int(line) for line in answers if line.strip()]
    with open_memory(home, watch=False):
        pass  # the next start finishes a change whose steps were already noted
    reached = int((home / "memories" / "n.md").read_text().strip("n;"))
    assert reached >= acknowledged[-1] + 1
    assert reached <= acknowledged[-1] + 2
    written = (home / "memories" / "log.md").read_text().splitlines()
    assert written == [f"line {each}" for each in range(len(written) - 1, -1, -1)]
    assert len(written) in (acknowledged[-1] + 1, acknowledged[-1] + 2)
    # A call under way may be there or not; the next writer goes on from what is there.
    if len(written) < reached:
        with open(home / "memories" / "log.md", "r+") as log:
            text = log.read()
            log.seek(0)
            log.write(f"line {reached - 1}\n{text}")
    return reached
