"""Which files an agent made, after they were moved, removed and made again."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from memoranda.engine import open_session
from memoranda.engine.history.authorship import made_by
from memoranda.engine.memory import MemorySession
from memoranda.engine.plain_files import Files

AGENTS = ("ann", "bob")
FOLDERS = ("a", "b", "a/c")


class Notebook:
    """Files of two agents, and who made each; of one that is gone, the place it had last."""

    def __init__(self, memory: MemorySession, random: Random):
        self.memory = memory
        self.makers: dict[str, str] = {}
        self.gone: dict[str, str] = {}
        self._random = random

    def files(self, agent: str | None = None) -> Files:
        return Files(self.memory.as_caller(agent or self._random.choice(AGENTS)), "memories")

    def create(self) -> None:
        path = f"{self._random.choice(FOLDERS)}/{self._random.randrange(9)}.md"
        if path in self.makers:
            return
        agent = self._random.choice(AGENTS)
        self.files(agent).write(path, f"of {agent}", overwrite=False)
        self.gone.pop(path, None)
        self.makers[path] = agent

    def edit(self) -> None:
        if self.makers:
            path = self._random.choice(sorted(self.makers))
            self.files().write(path, f"edit {self._random.random()}", overwrite=True)

    def move(self) -> None:
        if not self.makers:
            return
        path = self._random.choice(sorted(self.makers))
        to = f"{self._random.choice(FOLDERS)}/moved {self._random.randrange(99)}.md"
        if to not in self.makers:
            self.files().rename(path, to)
            self._has_moved(path, to)

    def move_folder(self) -> None:
        folder = self._random.choice(FOLDERS)
        to = f"folder {self._random.randrange(999)}"
        below = [path for path in self.makers if path.startswith(f"{folder}/")]
        if not below or (self.memory.home / "memories" / to).exists():
            return
        self.files().rename(folder, to)
        for path in [*below, *self.gone]:
            if path.startswith(f"{folder}/"):
                self._has_moved(path, to + path[len(folder) :])

    def _has_moved(self, path: str, to: str) -> None:
        for places in (self.makers, self.gone):
            if path in places:
                self.gone.pop(to, None)
                places[to] = places.pop(path)
                return

    def delete(self) -> None:
        if self.makers:
            path = self._random.choice(sorted(self.makers))
            self.files().delete(path)
            self.gone[path] = self.makers.pop(path)

    def of(self, agent: str) -> set[str]:
        everything = {**self.gone, **self.makers}
        return {path for path, maker in everything.items() if maker == agent}


@pytest.mark.parametrize("seed", range(6))
def test_files_of_an_agent_after_anything_are_where_they_were_last(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    with open_session(tmp_path / "home", watch=False) as memory:
        notebook = Notebook(memory, random)
        steps = [notebook.create, notebook.edit, notebook.move, notebook.move_folder]
        for _ in range(60):
            random.choice([*steps, notebook.create, notebook.delete])()
        for agent in AGENTS:
            places = {path for project, path, _ in made_by(memory.engine, agent)}
            assert notebook.of(agent) <= places
            other_places = {path for path in notebook.makers if notebook.makers[path] != agent}
            assert not places & other_places
