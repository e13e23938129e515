"""kill -9 at every durable operation of `notify`: no reminder is lost, none fires twice (contract
001, 8).
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crash.mortal import mortals
from memoranda.engine import open_session
from memoranda.engine.upkeep import Upkeep
from memoranda.jobs import reminders
from memoranda.note.markdown import Record

NOW = datetime(2026, 5, 7, 15, 0, tzinfo=UTC)
DUE = {"due_at": "2026-05-07T15:00:00Z"}
DAILY = {"due_at": "2026-05-07T09:00:00Z", "repeat": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0"}

NOTIFYING = r"""
from datetime import UTC, datetime
from unittest.mock import patch
from memoranda.engine import open_session
from memoranda.jobs import reminders
from crash.mortal import at_each

def notifies(home, countdown):
    def push(settings, texts):
        countdown.tick()
        with open(home + "/pushed", "a") as file:
            file.write("\n".join(texts) + "\n")

    now = datetime(2026, 5, 7, 15, 0, tzinfo=UTC)
    with patch.object(reminders, "show", push), open_session(home, watch=False, clock=lambda: now) as memory:
        memory.sync()
        countdown.awake = True
        reminders.notify(memory)
        countdown.awake = False

at_each(notifies)
"""


def fresh(home: Path) -> Path:
    home.mkdir()
    (home / "config.yaml").write_text("timezone: UTC\n")
    with open_session(home, watch=False, clock=lambda: NOW) as memory:
        records = [
            Record(
                f"{number:08}-1111-4111-8111-111111111111",
                text,
                "reminders",
                NOW,
                NOW,
                further=further,
            )
            for number, (text, further) in enumerate(
                [("once", DUE), ("also", DUE), ("daily", DAILY)]
            )
        ]
        Upkeep(memory).put(records, "import")
    return home


def memories(home: Path) -> dict[str, bytes]:
    contents = {path.name: path.read_bytes() for path in (home / "categories").rglob("*.md")}
    return contents | {"pending.md": (home / "pending.md").read_bytes()}


@pytest.mark.slow
@pytest.mark.promise("001-17.9")
def test_killed_anywhere_and_run_again_it_comes_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = fresh(tmp_path / "start")
    with mortals("-c", NOTIFYING) as work:
        undisturbed = Path(shutil.copytree(start, tmp_path / "undisturbed"))
        _, total = work(undisturbed)
        assert total > 20
        expected = memories(undisturbed)
        assert expected["pending.md"].count(b"due 2026-05-07") == 3
        for die_at in range(1, total + 1):
            home = Path(shutil.copytree(start, tmp_path / f"die-{die_at}"))
            work(home, die_at)
            pushed = []
            record = home / "pushed"
            if record.exists():
                pushed = record.read_text().split()
            monkeypatch.setattr(
                reminders, "show", lambda settings, texts, to=pushed: to.extend(texts)
            )
            with open_session(home, watch=False, clock=lambda: NOW) as memory:
                reminders.notify(memory)
                assert memories(home) == expected
                changes = memory.log(limit=0)
                fired = [change.path for change in changes if change.verb == reminders.FIRE]
                assert len(fired) == 3
                assert len(set(fired)) == 3
                again = reminders.notify(memory)
                assert again.notified == ()
            assert len(pushed) == len(set(pushed))
            assert memories(home) == expected
