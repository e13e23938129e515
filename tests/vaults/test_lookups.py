"""What is looked up in a vault is among the first three (AMENDMENTS, 3.3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.engine import open_session
from vaults.generator import Vault
from vaults.lookups import LOOK_UPS, look_ups, missed


@pytest.mark.promise("amendments-3.3")
@pytest.mark.parametrize("seed", [1, 2])
def test_note_that_is_looked_up_is_among_the_first(tmp_path: Path, seed: int) -> None:
    vault = Vault(400, seed)
    assert len(look_ups(vault)) == LOOK_UPS
    root = tmp_path / "vault"
    vault.write(root)
    with open_session(tmp_path / "home", projects={"vault": root}) as memory:
        wrong = missed(memory, vault)
    assert not wrong, "\n".join(wrong)
