"""A system call that writes fails, each in turn: what was acknowledged is there, what was refused is
not there or whole, and what was there can be brought back.

A C file is compiled and preloaded; where there is no compiler the tests are skipped. DISK_FAILURES
sets how many calls of each kind fail in turn.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest

from crash.failing_actions import LARGE
from memoranda.engine import open_session
from memoranda.engine.json_entries import JsonEntryFolder
from serve.forked import run

FAILURES = int(os.environ.get("DISK_FAILURES", "6"))
STAYS_FULL = "full"
KINDS = {"io": errno.EIO, "quota": errno.EDQUOT, STAYS_FULL: errno.ENOSPC}
NOTES = ("kept", "edited", "moved", "deleted", "folder/one", "folder/two")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler here"),
]


def outcome(place: Path) -> dict[str, bool | None]:
    """Whether what an action does is on the disk; None for anything between before and after."""
    notes = place / "home" / "notes"

    def moved(old: str, new: str) -> bool | None:
        before = (notes / old).exists()
        return None if before == (notes / new).exists() else not before

    def text(name: str, before: str, after: str) -> bool | None:
        now = (notes / name).read_text().partition("---\n")[2].partition("---\n")[2]
        now = now or (notes / name).read_text()
        return {before: False, after: True}.get(now)

    def begins(name: str, *beginnings: str) -> bool | None:
        if not (notes / name).exists():
            return False
        now = (notes / name).read_text()
        return True if all(now.count(word) == 1 for word in beginnings) else None

    folder_moves = {moved(f"folder/{name}.md", f"other/{name}.md") for name in ("one", "two")}
    names = {row["value"] for row in json.loads((place / "kept" / "default.json").read_text())}
    people = [
        json.loads(line)["name"] for line in (place / "people.jsonl").read_text().splitlines()
    ]
    large = notes / "large.md"
    return {
        "write": begins("new.md", "new text"),
        "edit": text("edited.md", "edited\n", "edited\nmore\n"),
        "move": moved("moved.md", "elsewhere/moved.md"),
        "delete": not (notes / "deleted.md").exists(),
        "folder": folder_moves.pop() if len(folder_moves) == 1 else None,
        "entry": {("first",): False, ("second",): True}.get(tuple(names)),
        "entity": {("Ada",): False, ("Ada", "Bob"): True}.get(tuple(people)),
        "large": large.exists() and (large.read_text().endswith(LARGE) or None),
    }


def made(place: Path) -> None:
    """A home with notes, a graph file and a JSON file."""
    people = place / "people.jsonl"
    people.write_text('{"type":"entity","name":"Ada","entityType":"person","observations":[]}\n')
    notes = place / "home" / "notes"
    with open_session(place / "home", watch=False) as memory:
        for name in NOTES:
            path = notes / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name}\n")
        memory.add_project("people", str(people))
        memory.sync()
        JsonEntryFolder(place / "kept").entries(memory).put("default", "name", "first")


def run_failing(library: Path, place: Path, kind: str, at: int) -> dict[str, object]:
    """What the actions came to in a process in which one call fails, and how many calls it made."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FAILING_FOLDER": str(place),
        "FAILING_AT": str(at),
        "FAILING_CODE": str(KINDS[kind]),
        "FAILING_ON": "1" if kind == STAYS_FULL else "",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [
        sys.executable,
        "-c",
        "from crash.failing_actions import child; child()",
        str(place),
    ]
    process = run(command, env=environment, timeout=300)
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout.splitlines()[-1])


def check(place: Path, outcomes: dict[str, object]) -> None:
    """What was acknowledged is there, nothing is torn, and all of it can be taken back."""
    with open_session(place / "home", watch=False) as memory:
        memory.sync()
        now = outcome(place)
        for name, is_there in now.items():
            assert is_there is not None, f"{name} is torn: {outcomes[name]}"
            assert is_there or outcomes[name] is not True, f"{name} was acknowledged and is lost"
        present = {name for name, is_there in now.items() if is_there}
        changes = [change for change in memory.log(limit=0) if change.number > 1]
        assert len(changes) == len(present), [(change.verb, change.path) for change in changes]
        for _ in changes:
            memory.undo()
        assert not any(outcome(place).values())


@cache
def calls_of(library: Path, folder: str) -> int:
    """How many calls the actions make where none fails."""
    place = Path(folder)
    made(place)
    return int(str(run_failing(library, place, "io", 1_000_000)["calls"]))


@pytest.fixture(scope="session")
def calls(library: Path, tmp_path_factory: pytest.TempPathFactory) -> int:
    return calls_of(library, str(tmp_path_factory.mktemp("whole")))


@pytest.mark.promise("issue-full-disk")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(FAILURES))
def test_a_call_that_fails_loses_and_tears_nothing(
    library: Path, calls: int, tmp_path: Path, kind: str, part: int
) -> None:
    assert calls > 40
    made(tmp_path)
    # Other places for each kind
    shift = [*KINDS].index(kind) / len(KINDS)
    at = 1 + int((part + shift) * calls / FAILURES)
    outcomes = run_failing(library, tmp_path, kind, at)["said"]
    assert isinstance(outcomes, dict)
    check(tmp_path, outcomes)
