"""Which files a change removed and wrote at another place, also in a change of very many files."""

from __future__ import annotations

import time

from memoranda.ledger.change import Change, Touched
from memoranda.sources.step import StepKind


def _change(files: list[Touched]) -> Change:
    return Change(
        number=1,
        time="2026-05-07T10:00:00Z",
        agent=None,
        face="cli",
        verb="move",
        project="notes",
        path="a",
        files=files,
    )


def _removed(path: str) -> Touched:
    return Touched(StepKind.REMOVE, "notes", path, old="a")


def _written(path: str) -> Touched:
    return Touched(StepKind.PUT, "notes", path, new="b")


def test_removed_file_is_paired_with_the_first_of_its_name_or_the_one_before_it() -> None:
    files = [_removed("a/Tea.md"), _written("b/Tea.md"), _written("c/Tea.md")]
    assert _change(files).moves_by_rewriting() == {0: 1}
    renamed = [_written("b/Tea.md"), _written("b/Oolong.md"), _removed("a/Tea.md")]
    assert _change(renamed).moves_by_rewriting() == {2: 1}


def test_change_of_very_many_files_is_read_in_a_moment() -> None:
    files = [_removed(f"a/{number}.md") for number in range(4_000)]
    files += [_written(f"b/{number}.md") for number in range(4_000)]
    change = _change(files)
    start = time.process_time()
    moves = change.moves_by_rewriting()
    # Comparing each file with each other one took 4 s.
    assert time.process_time() - start < 1
    assert moves == {number: number + 4_000 for number in range(4_000)}
