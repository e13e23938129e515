"""kill -9 at every durable operation of `erase`: the next open completes it, or it is as if not
begun.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crash.mortal import mortals
from memoranda import Draft
from memoranda.engine import open_session

SECRET = "zq4711vault"

ERASING = r"""
from unittest.mock import patch
from memoranda.engine import open_session
from memoranda.index.database import Database
from crash.mortal import at_each, counted

def erases(home, countdown):
    scrub = counted(Database.scrub, countdown, after=True)
    with patch.object(Database, "scrub", scrub), open_session(home, watch=False) as memory:
        memory.sync()
        countdown.awake = True
        memory.erase("notes/plan.md", "lines/Zq4711vault.md", "kv/default/key")
        countdown.awake = False

at_each(erases)
"""


def make(home: Path) -> None:
    from memoranda import Session
    from memoranda.faces.graph import entity_tools  # noqa: F401

    home.mkdir(mode=0o700)
    graph = home.with_name(f"{home.name}.jsonl")
    graph.write_text(
        '{"type":"entity","name":"Zq4711vault","entityType":"t","observations":["zq4711vault"]}\n'
    )
    (home / "config.yaml").write_text(f"projects:\n  lines: {graph}\n")
    with open_session(home, watch=False) as memory:
        memory.write(Draft("stays", title="bystander"))
        memory.write(Draft(f"of {SECRET}", title="draft"))
        memory.move("notes/draft.md", "plan.md")
        session = Session(memory, tools=("kv", "graph"))
        assert not session.call("memory_remember", {"key": "key", "value": SECRET}).is_error
        assert not session.call(
            "memory_remember", {"key": "key", "value": f"{SECRET} again"}
        ).is_error
        memory.read("notes/plan.md")
        memory.sync()


def holding(home: Path) -> list[str]:
    paths_of_home = [*home.rglob("*"), home.with_name(f"{home.name}.jsonl")]
    return [
        str(path)
        for path in paths_of_home
        if path.is_file() and SECRET in path.read_text("utf-8", "replace").lower()
    ]


@pytest.mark.slow
@pytest.mark.promise("issue-erase-crash")
def test_erase_killed_at_every_step_is_completed_by_the_next_open_or_never_began(
    tmp_path: Path,
) -> None:
    make(tmp_path / "home")
    whole = tmp_path / "0"

    def copy(name: str) -> Path:
        shutil.copytree(tmp_path / "home", tmp_path / name)
        graph = tmp_path / f"{name}.jsonl"
        shutil.copy(tmp_path / "home.jsonl", graph)
        (tmp_path / name / "config.yaml").write_text(f"projects:\n  lines: {graph}\n")
        return tmp_path / name

    begun = []
    with mortals("-c", ERASING) as work:
        _, steps = work(copy("0"))
        assert holding(whole) == []
        for die_at in range(1, steps + 1):
            home = copy(str(die_at))
            work(home, die_at)
            with open_session(home, watch=False) as memory:
                memory.sync()
                paths = {f"{info.project}/{info.path}" for info in memory.list(limit=0)[0]}
                log = memory.log(limit=0)
                erasures = [change for change in log if change.verb == "erase"]
                if len(paths) == 1:
                    assert paths == {"notes/bystander.md"}
                    assert [change.details for change in erasures] == [{"notes": 3}]
                    assert memory.undo(1).undoes == 1
                else:
                    assert len(paths) == 4
                    assert erasures == []
                    memory.erase("notes/plan.md", "lines/Zq4711vault.md", "kv/default/key")
                begun.append(len(paths) == 1)
                assert memory.engine.ledger.erasing() is None
            assert holding(home) == [], home
            assert list(home.rglob(".tmp-*")) == []
    # Before a moment it had not begun, after it is completed
    assert begun == sorted(begun)
    assert set(begun) == {False, True}
