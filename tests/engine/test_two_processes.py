"""What one process reads while another writes the same home."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import NotFound
from memoranda.index import search as searching
from memoranda.note.edit import Append

pytestmark = pytest.mark.promise("001-17.7")


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[MemorySession, MemorySession]]:
    """One home, opened twice."""
    with (
        open_session(tmp_path / "home", watch=False) as memory,
        open_session(tmp_path / "home", watch=False) as second,
    ):
        yield memory, second


@pytest.mark.parametrize("verb", ["search", "context_for"])
def test_a_note_that_another_process_removes_in_the_middle_of_a_search_disturbs_nothing(
    both: tuple[MemorySession, MemorySession], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    memory, second = both
    for number in range(3):
        memory.write(Draft(f"green tea, cup {number}", project="notes", title=f"Cup {number}"))
    second.sync()
    real = searching.infos
    deletions = []

    def interrupted(*arguments: Any) -> Any:
        if not deletions:
            deletions.append(second.delete("notes/cup-1"))
        return real(*arguments)

    monkeypatch.setattr(searching, "infos", interrupted)
    if verb == "search":
        hits = memory.search("tea")
    else:
        hits = memory.context_for("green tea")
    assert deletions
    assert hits if verb == "context_for" else hits.total == 3
    monkeypatch.undo()
    assert memory.search("tea").total == 2


@pytest.mark.parametrize("verb", ["read", "tag", "link", "link_to", "unlink", "delete", "edit"])
def test_a_memory_that_another_process_moves_to_its_category_is_still_found_by_who_holds_it(
    both: tuple[MemorySession, MemorySession], verb: str
) -> None:
    memory, other_memory = both
    first_id, second_id = (
        memory.write(Draft(text, project="categories")).id for text in ("green tea", "black tea")
    )
    held_id = memory.memory_id(first_id)
    second = memory.memory_id(second_id)
    Upkeep(other_memory).change(
        other_memory.memory_id(first_id), {"phase": "organized"}, "upgrade", category="skills"
    )
    do: dict[str, Callable[[], Any]] = {
        "read": lambda: memory.read(held_id).category == "skills",
        "tag": lambda: list(memory.tag(held_id, ["hot"]).tags) == ["hot"],
        "link": lambda: memory.link(held_id, second),
        "link_to": lambda: memory.link(second, held_id),
        "unlink": lambda: not memory.unlink(held_id, second),
        "delete": lambda: memory.delete(held_id).paths[0].startswith("skills/"),
        "edit": lambda: memory.edit(held_id, Append("with milk")),
    }
    assert do[verb]()


def test_a_held_memory_that_is_gone_is_named_by_its_id(
    both: tuple[MemorySession, MemorySession],
) -> None:
    memory, second = both
    held_id = memory.memory_id(memory.write(Draft("green tea", project="categories")).id)
    second.delete(held_id.id)
    with pytest.raises(NotFound) as not_found:
        memory.tag(held_id, ["hot"])
    assert not_found.value.identifier == held_id.id


def test_what_another_program_writes_between_the_first_look_at_the_disk_and_the_lock_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        hub, first_id, second_id = (
            memory.write(Draft(text, project="categories")).id for text in ("hub", "one", "two")
        )
        (place,) = (tmp_path / "home" / "categories").rglob("hub-*.md")
    with open_session(tmp_path / "home", watch=False) as memory:
        look = memory.engine.catch_up

        def interrupted() -> None:
            look()
            place.write_text(
                place.read_text().replace("version: 1\n", f"version: 1\nlinks:\n  - {first_id}\n")
            )

        monkeypatch.setattr(memory.engine, "catch_up", interrupted)
        assert memory.link(hub, second_id)
        assert {*memory.memory_id(hub).links} == {first_id, second_id}
