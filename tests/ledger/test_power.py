"""After a power failure: the ledger was synced, the files behind it may be as they were, empty or
missing. POWER_FAILURES sets how many are simulated.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from memoranda import clock
from memoranda.errors import NotFound
from memoranda.ledger import ledger as homes
from memoranda.ledger.ledger import Ledger
from memoranda.sources.folder import FolderSource
from memoranda.sources.layout import Layout
from memoranda.sources.step import Step

FAILURES = int(os.environ.get("POWER_FAILURES", "25"))
NAMES = [f"f{number}.md" for number in range(4)] + ["d/g.md", "d/h.md"]
pytestmark = pytest.mark.promise("issue-power-failure")


class Notes:
    """Notes in a home that is used until the power fails, and the texts that they must have."""

    def __init__(self, root: Path, random: Random, monkeypatch: pytest.MonkeyPatch):
        self._random = random
        self._root = root
        monkeypatch.setattr("memoranda.ledger.file_sync.SECONDS", 3600)
        monkeypatch.setattr(homes, "boot_id", lambda: "before")
        self.ledger = Ledger(Layout(root), clock.now)
        self.folder = FolderSource("notes", self.ledger.layout.built_in["notes"])
        Path(self.folder.root).mkdir(mode=0o700)
        self.states: dict[str, list[bytes | None]] = {name: [None] for name in NAMES}
        self._synced = dict.fromkeys(NAMES, 0)

    def place(self, name: str) -> Path:
        return Path(self.folder.root) / name

    def _old(self, name: str):
        try:
            return self.folder.read(name)
        except NotFound:
            return None

    def change(self, number: int) -> None:
        """One change of one or two notes."""
        steps = []
        for name in self._random.sample(NAMES, self._random.choice([1, 1, 2])):
            old = self._old(name)
            root = self.folder.root
            if old is not None and self._random.random() < 0.2:
                steps.append(Step("remove", "notes", root, name, old=old))
                self.states[name].append(None)
                continue
            data = f"{number} {name} ".encode() * self._random.choice([1, 3000])
            steps.append(Step("put", "notes", root, name, data=data, old=old))
            self.states[name].append(data)
        with self.ledger.lock:
            self.ledger.write("write", lambda: steps, ("notes", steps[0].path))

    def sync(self) -> None:
        self.ledger.file_sync.sync()
        self._synced = {name: len(states) - 1 for name, states in self.states.items()}

    def fail(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The files are as at any moment since they were synced, or empty; the machine starts."""
        self.ledger.database.close()
        self.ledger.lock.close()
        for name, states in self.states.items():
            since = states[self._synced[name] :]
            if len(since) == 1:
                continue
            on_disk = self._random.choice([*since, b"", b"\0" * 40])
            self.place(name).unlink(missing_ok=True)
            if on_disk is not None and self.place(name).parent.is_dir():
                self.place(name).write_bytes(on_disk)
        monkeypatch.setattr(homes, "boot_id", lambda: "after")

    def wrong(self) -> list[str]:
        """The notes that are not what was acknowledged last."""
        ledger = Ledger(Layout(self._root), clock.now)
        with ledger.lock:
            pass
        ledger.close()
        wrong = []
        for name, states in self.states.items():
            path = self.place(name)
            if (path.read_bytes() if path.exists() else None) != states[-1]:
                wrong.append(name)
        return wrong


@pytest.mark.parametrize("seed", range(FAILURES))
def test_every_acknowledged_change_is_there_after_a_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    notes = Notes(tmp_path / "home", random, monkeypatch)
    for number in range(random.randint(1, 25)):
        notes.change(number)
        if random.random() < 0.2:
            notes.sync()
    notes.fail(monkeypatch)

    assert notes.wrong() == []
    paths = list((tmp_path / "home").rglob(".tmp-*"))
    assert not paths


def test_a_file_that_was_edited_after_the_power_failure_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = Notes(tmp_path / "home", Random(0), monkeypatch)
    for number in range(12):
        notes.change(number)
    notes.fail(monkeypatch)
    path = notes.place("f0.md")
    path.write_text("by hand, before memoranda ran again")
    notes.wrong()
    assert path.read_text() == "by hand, before memoranda ran again"


def test_moves_and_folders_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes(tmp_path / "home", Random(0), monkeypatch)
    root = notes.folder.root
    with notes.ledger.lock:
        put = Step("put", "notes", root, "a.md", data=b"text")
        notes.ledger.write("write", lambda: [put], ("notes", "a.md"))
        notes.ledger.file_sync.sync()
        move = Step("move", "notes", root, "a.md", "x/b.md", old=notes.folder.read("a.md"))
        notes.ledger.write("move", lambda: [move], ("notes", "x/b.md"))
    notes.place("x/b.md").rename(notes.place("a.md"))
    notes.place("x").rmdir()
    notes.states = {}
    notes.fail(monkeypatch)

    assert notes.wrong() == []
    content = notes.place("x/b.md").read_bytes()
    assert content == b"text"
    assert not notes.place("a.md").exists()
