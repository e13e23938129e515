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
        open_session(tmp_path / "home", watch=False) as other,
    ):
        yield memory, other


@pytest.mark.parametrize("verb", ["search", "context_for"])
def test_a_note_that_another_process_removes_in_the_middle_of_a_search_disturbs_nothing(
    both: tuple[MemorySession, MemorySession], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    memory, other = both
    for number in range(3):
        memory.write(Draft(f"green tea, cup {number}", project="notes", title=f"Cup {number}"))
    other.sync()
    real = searching.infos
    asked = []

    def interrupted(*arguments: Any) -> Any:
        if not asked:
            asked.append(other.delete("notes/cup-1"))
        return real(*arguments)

    monkeypatch.setattr(searching, "infos", interrupted)
    if verb == "search":
        found = memory.search("tea")
    else:
        found = memory.context_for("green tea")
    assert asked
    assert found if verb == "context_for" else found.total == 3
    monkeypatch.undo()
    assert memory.search("tea").total == 2


@pytest.mark.parametrize("verb", ["read", "tag", "link", "link_to", "unlink", "delete", "edit"])
def test_a_memory_that_another_process_moves_to_its_category_is_still_found_by_who_holds_it(
    both: tuple[MemorySession, MemorySession], verb: str
) -> None:
    memory, other = both
    one, two = (
        memory.write(Draft(text, project="categories")).id for text in ("green tea", "black tea")
    )
    held = memory.memory_id(one)
    second = memory.memory_id(two)
    Upkeep(other).change(other.memory_id(one), {"phase": "organized"}, "upgrade", category="skills")
    do: dict[str, Callable[[], Any]] = {
        "read": lambda: memory.read(held).category == "skills",
        "tag": lambda: list(memory.tag(held, ["hot"]).tags) == ["hot"],
        "link": lambda: memory.link(held, second),
        "link_to": lambda: memory.link(second, held),
        "unlink": lambda: not memory.unlink(held, second),
        "delete": lambda: memory.delete(held).paths[0].startswith("skills/"),
        "edit": lambda: memory.edit(held, Append("with milk")),
    }
    assert do[verb]()


def test_a_held_memory_that_is_gone_is_named_by_its_id(
    both: tuple[MemorySession, MemorySession],
) -> None:
    memory, other = both
    held = memory.memory_id(memory.write(Draft("green tea", project="categories")).id)
    other.delete(held.id)
    with pytest.raises(NotFound) as gone:
        memory.tag(held, ["hot"])
    assert gone.value.identifier == held.id


def test_what_another_program_writes_between_the_first_look_at_the_disk_and_the_lock_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        hub, one, two = (
            memory.write(Draft(text, project="categories")).id for text in ("hub", "one", "two")
        )
        (place,) = (tmp_path / "home" / "categories").rglob("hub-*.md")
    with open_session(tmp_path / "home", watch=False) as memory:
        look = memory.engine.catch_up

        def interrupted() -> None:
            look()
            place.write_text(
                place.read_text().replace("version: 1\n", f"version: 1\nlinks:\n  - {one}\n")
            )

        monkeypatch.setattr(memory.engine, "catch_up", interrupted)
        assert memory.link(hub, two)
        assert {*memory.memory_id(hub).links} == {one, two}
