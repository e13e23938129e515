"""What agents ask the owner for: folders to be added as projects. `memory review` lists them; nothing is done before.

They are kept in `.commonplace/requests.json`, written as a change like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from commonplace.clock import stamp
from commonplace.engine.review import ReviewItem, ReviewSource, answers_step
from commonplace.engine.transaction import HomeSession
from commonplace.errors import ProjectRefused, StorageError
from commonplace.store.base import File, sha256
from commonplace.store.files import read_file, reason
from commonplace.store.layout import PRIVATE

KIND = "project"
_VERB = "ask"
_MOST = 100
"""Requests that may wait."""


def ask(session: HomeSession, name: str, root: Path, default: bool) -> None:
    """Note that the caller asks for this project. Raises ProjectRefused when the owner has refused it, or too much
    waits."""
    asked = sha256(json.dumps([name, str(root)]).encode())
    key = f"{KIND}:{asked[:12]}"
    with session.change(_VERB, (PRIVATE, ""), fresh=False) as change:
        file, known = _requests(session)
        if key in known:
            return
        if len(known) >= _MOST:
            raise ProjectRefused(str(root), f"{_MOST} folders wait for the owner's answer (memory review)")
        row = {"name": name, "folder": str(root), "default": default, "agent": session.agent}
        known[key] = row | {"time": stamp(session.engine.clock())}
        change.steps.append(answers_step(session.engine.layout.requests, file, known, kept=False))


def asked_by(session: HomeSession, agent: str) -> list[str]:
    """The keys of what an agent asked for and has no answer to."""
    return [key for key, row in _requests(session)[1].items() if row.get("agent") == agent]


def _requests(session: HomeSession) -> tuple[File | None, dict[str, dict[str, Any]]]:
    """The file of requests and what it holds, by key; a damaged one holds nothing."""
    try:
        file = read_file(str(session.engine.layout.requests))
        found = json.loads(file.data)
        return file, {key: row for key, row in found.items() if isinstance(row, dict)}
    except FileNotFoundError:
        return None, {}
    except OSError as error:
        raise StorageError("the requests of agents", reason(error)) from None
    except (ValueError, AttributeError):
        return file, {}


def _find(memory: Any) -> Iterable[ReviewItem]:
    for key, row in _requests(memory)[1].items():
        text = f'Agent {row.get("agent")} asks for the folder {row.get("folder")} as project "{row.get("name")}".'
        yield ReviewItem(key, KIND, text, (str(row.get("folder")),), (("y", "add it"), ("n", "refuse")))


def _apply(memory: Any, item: ReviewItem, choice: str) -> bool:
    """Add the project, or leave it out for good."""
    if choice != "y":
        return False
    row = _requests(memory)[1][item.key]
    memory.add_project(str(row["name"]), str(row["folder"]), row.get("default") is True)
    with memory.change(_VERB, (PRIVATE, ""), fresh=False) as change:
        file, known = _requests(memory)
        known.pop(item.key, None)
        change.steps.append(answers_step(memory.engine.layout.requests, file, known, kept=False))
    return True


SOURCE = ReviewSource(_find, _apply)
