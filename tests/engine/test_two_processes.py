"""What one process reads while another writes the same home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commonplace import Draft, open_memory
from commonplace.index import search as searching

pytestmark = pytest.mark.promise("001-17.7")


@pytest.mark.parametrize("verb", ["search", "context_for"])
def test_a_note_that_another_process_removes_in_the_middle_of_a_search_disturbs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    home = tmp_path / "home"
    with open_memory(home, watch=False) as memory, open_memory(home, watch=False) as other:
        for number in range(3):
            memory.write(Draft(f"green tea, cup {number}", project="notes", title=f"Cup {number}"))
        other.sync()
        real, asked = searching.Asked, []

        class Interrupted(real):  # type: ignore[misc, valid-type]
            def judge(self, *arguments: Any, **more: Any) -> Any:
                if not asked:
                    asked.append(other.delete("notes/cup-1"))
                return super().judge(*arguments, **more)

        monkeypatch.setattr(f"commonplace.index.{'search' if verb == 'search' else 'evidence'}.Asked", Interrupted)
        found = memory.search("tea") if verb == "search" else memory.context_for("green tea")
        assert asked
        assert found if verb == "context_for" else found.total == 3
        monkeypatch.undo()
        assert memory.search("tea").total == 2
