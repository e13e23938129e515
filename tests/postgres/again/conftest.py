"""Contract tests once more, their homes in a database: what reaches the notes in other ways than in
a folder. All of them: pytest tests/contract --home-kind=postgres."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.conftest import *  # noqa: F403
from postgres.homes import sitecustomize

LEFT_OUT = re.compile(
    # Of other processes
    "stdio|stdout|mcp|server|preset|stream|subscribers|real_|kill_9|first_entity|example_of"
    # Of what is said, or refused, elsewhere
    "|nine_tools|leads_elsewhere|comes_in_pieces|fill_a_reply|mark_follows"
    # Of how a bank is named
    "|two_repositories|worktree|branch_is_read|debug_mode"
    # Of what the folder of copies does alone, for a long time
    "|large_graph|any_text|all_different|at_once_count"
    # Graph files; of the cases of a graph a fifth is enough here
    "|file-|graph-[0-9]*[^05]]"
).search


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    own_folder = Path(__file__).parent
    items[:] = [item for item in items if item.path.parent != own_folder or not is_left_out(item)]


def is_left_out(item: pytest.Item) -> bool:
    return bool(LEFT_OUT(item.name)) or any(
        item.get_closest_marker(name) for name in ("slow", "folder_home")
    )


@pytest.fixture(scope="module", autouse=True)
def homes_in_database(database: str) -> Iterator[None]:
    """Every home of this process, and of those it starts, is a space of a database meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(sitecustomize.VARIABLE, database)
        patch.setenv("PYTHONPATH", str(Path(sitecustomize.__file__).parent), prepend=os.pathsep)
        sitecustomize.install(database, patch.setattr)
        yield
