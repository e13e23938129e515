"""After a power failure: a change of a file used in place is there as a whole or not at all, and
every one before it is there. POWER_FAILURES sets how many are simulated.
"""

from __future__ import annotations

import errno
import json
import os
from functools import partial
from pathlib import Path
from random import Random

import pytest

from contract.graph_tools import GraphFile
from memoranda.engine import open_session
from memoranda.engine.json_entries import JsonEntryFolder
from memoranda.ledger import ledger as homes
from memoranda.sources import locked_file
from memoranda.sources.locked_file import Append, Overwriting, Replacement

FAILURES = int(os.environ.get("POWER_FAILURES", "25"))
BLOCK = 512
pytestmark = pytest.mark.promise("issue-power-failure")


class PowerFailure(BaseException):
    """The machine stops."""


def mixture(random: Random, old: bytes, new: bytes) -> bytes:
    """A file that was being overwritten: each block is as before, as after, or unwritten."""
    data = bytearray(old.ljust(len(new), b"\0"))
    for start in range(0, len(new), BLOCK):
        block = new[start : start + BLOCK]
        written = random.choice([data[start : start + len(block)], block, b"\0" * len(block)])
        data[start : start + len(block)] = written
    return bytes(data)


def fail_in_write(
    monkeypatch: pytest.MonkeyPatch, random: Random, *, may_replace: bool = True
) -> None:
    """The next change of a file is recorded; its file is as the disk happens to have it."""

    def append(self: Append) -> None:
        size = len(self.data)
        written = random.randint(0, size)
        data = self.data[:written]
        unwritten = b"\0" * random.choice([0, size - written])
        with open(self.file.path, "ab") as file:
            file.write(data + unwritten)
        raise PowerFailure

    def replace(self: Replacement) -> None:
        if random.random() < 0.5:
            self._rename()
        raise PowerFailure

    def overwrite(self: Overwriting) -> None:
        self.file.path.write_bytes(mixture(random, self.whole or b"", self.data))
        raise PowerFailure

    monkeypatch.setattr(Append, "run", append)
    monkeypatch.setattr(Overwriting, "run", overwrite)
    if may_replace:
        monkeypatch.setattr(Replacement, "run", replace)
    else:
        monkeypatch.setattr(locked_file.os, "rename", refuse_rename)


def refuse_rename(*_: object, **__: object) -> None:
    raise OSError(errno.EBUSY, "Device or resource busy")


def names_in(data: bytes) -> list[str]:
    """The entities of a graph file. Fails for a line that is not whole."""
    return [json.loads(line)["name"] for line in data.splitlines() if b"entity" in line]


@pytest.mark.parametrize("way", ["append", "replace", "overwrite"])
@pytest.mark.parametrize("seed", range(FAILURES))
def test_a_graph_file_is_whole_after_a_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, seed: int
) -> None:
    random = Random(seed)
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.setattr(homes, "boot_id", lambda: "before")
    with open_session(tmp_path / "home", watch=False) as memory:
        graph = GraphFile(folder, memory)
        names = [f"N{number}" for number in range(random.randint(2, 12))]
        for name in names:
            graph.nodes.entity(name, "x" * random.randint(1, 900))
        before = graph.place.read_bytes()
        if way == "append":
            change = partial(graph.nodes.entity, "New", "y" * random.randint(1, 900))
        else:
            change = partial(graph.delete, names[0])
        with monkeypatch.context() as patch:
            fail_in_write(patch, random, may_replace=way != "overwrite")
            with pytest.raises(PowerFailure):
                change()
    monkeypatch.setattr(homes, "boot_id", lambda: "after")
    with open_session(tmp_path / "home", watch=False) as memory:
        graph = GraphFile(folder, memory)
        names_shown = graph.names()
        changed = [*names, "New"] if way == "append" else names[1:]
        assert names_shown in (names, changed)
        assert names_in(graph.place.read_bytes()) == names_shown
        if names_shown == names:
            assert graph.place.read_bytes() == before
        changes = graph.log()
        assert len(changes) == len(names) + (names_shown == changed)
        if names_shown == changed:
            memory.undo()
            assert graph.place.read_bytes() == before


@pytest.mark.parametrize("seed", range(FAILURES))
def test_a_json_file_is_whole_after_a_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    monkeypatch.setattr(homes, "boot_id", lambda: "before")
    with open_session(tmp_path / "home", watch=False) as memory:
        entries = JsonEntryFolder(tmp_path / "kv").entries(memory)
        for key in "abc":
            entries.put("default", key, "first")
        if random.random() < 0.5:
            change = lambda: entries.put("default", "b", "second")
            after = {"a": "first", "c": "first", "b": "second"}
        else:
            change = lambda: entries.remove("default", "b")
            after = {"a": "first", "c": "first"}
        with monkeypatch.context() as patch:
            fail_in_write(patch, random)
            with pytest.raises(PowerFailure):
                change()
    monkeypatch.setattr(homes, "boot_id", lambda: "after")
    with open_session(tmp_path / "home", watch=False) as memory:
        memory.engine.ledger.try_to_recover()
        rows = json.loads((tmp_path / "kv" / "default.json").read_text())
        values = {row["key"]: row["value"] for row in rows}
        assert values in ({"a": "first", "b": "first", "c": "first"}, after)
        changes = memory.log(limit=0)
        assert len(changes) == 3 + (values == after)
