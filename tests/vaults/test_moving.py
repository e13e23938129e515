"""Moves in a generated vault keep every link, and undo gives every byte back (AMENDMENTS, 4.2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from vaults.moving import run


@pytest.mark.promise("amendments-4.2")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_moves_keep_links_and_their_undo_every_byte(tmp_path: Path, seed: int) -> None:
    wrong, mover = run(200, 40, seed, tmp_path)
    assert wrong == []
    assert mover.updated > 25
    assert mover.parts > 0
    assert mover.left == 0
