"""kill -9 at every durable operation of `notify`: no reminder is lost, none fires twice (contract 001, 8)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commonplace import open_memory
from commonplace.engine.upkeep import Upkeep
from commonplace.jobs import reminders
from commonplace.note.compose import Record

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
NOW = datetime(2026, 5, 7, 15, 0, tzinfo=UTC)
DUE = {"due_at": "2026-05-07T15:00:00Z"}
DAILY = {"due_at": "2026-05-07T09:00:00Z", "repeat": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0"}
SECONDS = 120

NOTIFYING = r"""
import os, sys
from datetime import UTC, datetime
from commonplace import open_memory
from commonplace.jobs import reminders
from crash.mortal import Countdown, arm

def notifies(home, die_at):
    countdown = Countdown(die_at)
    arm(countdown)

    def push(settings, texts):
        countdown.tick()
        with open(home + "/pushed", "a") as file:
            file.write("\n".join(texts) + "\n")

    reminders.show = push
    with open_memory(home, watch=False, clock=lambda: datetime(2026, 5, 7, 15, 0, tzinfo=UTC)) as memory:
        memory.sync()
        countdown.awake = True
        reminders.notify(memory)
        countdown.awake = False
    print(countdown.seen, flush=True)

for line in sys.stdin:
    die_at, home = line.rstrip("\n").split(" ", 1)
    child = os.fork()
    if child == 0:
        notifies(home, int(die_at))
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -9), status
"""


def fresh(home: Path) -> Path:
    home.mkdir()
    (home / "config.yaml").write_text("timezone: UTC\n")
    with open_memory(home, watch=False, clock=lambda: NOW) as memory:
        records = [
            Record(f"{number:08}-1111-4111-8111-111111111111", text, "reminders", NOW, NOW, further=further)
            for number, (text, further) in enumerate([("once", DUE), ("also", DUE), ("daily", DAILY)])
        ]
        Upkeep(memory).put(records, "import")
    return home


def run(homes: dict[Path, int]) -> str:
    """What `notify` prints on each home, in a process that kills itself at that operation (0: never)."""
    lines = "".join(f"{die_at} {home}\n" for home, die_at in homes.items())
    command = [sys.executable, "-c", NOTIFYING]
    ran = subprocess.run(command, input=lines.encode(), env=ENVIRONMENT, capture_output=True, timeout=SECONDS)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout.decode()


def memories(home: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in (home / "categories").rglob("*.md")}
    return found | {"pending.md": (home / "pending.md").read_bytes()}


@pytest.mark.slow
@pytest.mark.promise("001-17.9")
def test_killed_anywhere_and_run_again_it_comes_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = fresh(tmp_path / "start")
    undisturbed = Path(shutil.copytree(start, tmp_path / "undisturbed"))
    total = int(run({undisturbed: 0}))
    assert total > 20
    wanted = memories(undisturbed)
    assert wanted["pending.md"].count(b"due 2026-05-07") == 3
    homes = {Path(shutil.copytree(start, tmp_path / f"die-{at}")): at for at in range(1, total + 1)}
    assert run(homes) == ""
    for home in homes:
        pushed = (home / "pushed").read_text().split() if (home / "pushed").exists() else []
        monkeypatch.setattr(reminders, "show", lambda settings, texts, to=pushed: to.extend(texts))
        with open_memory(home, watch=False, clock=lambda: NOW) as memory:
            reminders.notify(memory)
            assert memories(home) == wanted
            fired = [change.path for change in memory.log(limit=0) if change.verb == reminders.FIRE]
            assert len(fired) == len(set(fired)) == 3
            assert reminders.notify(memory).notified == ()
        assert len(pushed) == len(set(pushed))
        assert memories(home) == wanted
