"""The history of a note by its permalink, in which the project has another spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import open_session


@pytest.mark.parametrize("project", ["notes", "Vault One"])
def test_the_log_takes_a_permalink(tmp_path: Path, project: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "vault").mkdir()
    (home / "config.yaml").write_text(f"projects:\n  Vault One: {tmp_path / 'vault'}\n")
    with open_session(home, watch=False) as memory:
        note = memory.write(Draft("text", project=project, title="Old Plug"))
        assert note.permalink is not None
        verbs = [change.verb for change in memory.log(note.permalink)]
        assert verbs == ["write"]
        changes = memory.log(f"{project}/never there")
        assert changes == []
        memory.delete(note)
        verbs = [change.verb for change in memory.log(f"{project}/Old Plug.md")]
        assert verbs == [
            "delete",
            "write",
        ]
