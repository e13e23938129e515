"""The rights of agents in one project: the values, and the scope its notes have for those who read.

The owner sets it, when a folder is added or later (`access` in the configuration).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memoranda.note.model import GLOBAL
from memoranda.text.pattern import lazy_pattern
from memoranda.value_object import FrozenValueObject

PREFIX = "agents:"
"""The beginning of the scope of notes that only some agents see: `agents:,claude,codex,`."""
_AGENT_CHARACTERS = 100
# The names agents may have, compared in lower case.
_AGENT = lazy_pattern(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProjectAccess(FrozenValueObject):
    """The access of agents to a project.

    agents: the agents that may use it; empty means all.
    write_folder: the only folder agents may write to, if there is one.
    is_read_only: whether nobody may change a note.
    ignore: patterns of files to leave out, in the form of gitignore.
    """

    is_read_only: bool = False
    agents: tuple[str, ...] = ()
    write_folder: str = ""
    ignore: tuple[str, ...] = ()

    def admits(self, agent: str | None) -> bool:
        """Whether this agent, or the owner (None), may use the project."""
        return agent is None or not self.agents or agent.lower() in self.agents

    @property
    def scope(self) -> str:
        """The scope of the project's notes that say nothing of theirs; `global` where all agents
        may use it."""
        return self.scope_of(GLOBAL)

    def scope_of(self, scope: str) -> str:
        """The scope in force for a note that says it has `scope`."""
        if not self.agents:
            return scope
        names = self.agents
        if scope != GLOBAL:
            names = tuple(name for name in names if scope == f"agent:{name}")
        return f"{PREFIX},{''.join(f'{name},' for name in names)}"


EVERYTHING = ProjectAccess()
"""The rights of agents where the owner has set nothing."""


def is_among(scope: str, agent: str) -> bool:
    """Whether a scope of several agents names this one."""
    return scope.startswith(PREFIX) and f",{agent}," in scope


def is_in_force(scopes: Collection[str], scope: str) -> bool:
    """Whether notes with these scopes may have been indexed where `scope` is in force; "" where all
    agents may use the project."""
    if not scope:
        return not any(indexed.startswith(PREFIX) for indexed in scopes)
    names = set(scope.removeprefix(PREFIX).split(","))
    for indexed in scopes:
        is_other = not indexed.startswith(PREFIX)
        if is_other or not set(indexed.removeprefix(PREFIX).split(",")) <= names:
            return False
    return scope in scopes


def is_agent(name: str) -> bool:
    """Whether `name` can be an agent's (contract 001, 1)."""
    return len(name) <= _AGENT_CHARACTERS and _AGENT.fullmatch(name.lower()) is not None
