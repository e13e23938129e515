"""The rights that agents have in one project, and the scope that its notes get from them.

A scope says who may see a note: `global`, `agent:NAME`, or several agents, `agents:,claude,codex,`.
The owner sets the rights when a folder is added or later (`access` in the configuration).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memoranda.errors import InvalidInput
from memoranda.note.model import GLOBAL, TAKEN_AGENTS
from memoranda.text.pattern import lazy_pattern
from memoranda.value_object import FrozenValueObject

PREFIX = "agents:"
"""The beginning of the scope of notes that only some agents see: `agents:,claude,codex,`."""
_MOST_AGENT_CHARACTERS = 100
# The names agents may have, compared in lower case.
_AGENT = lazy_pattern(r"[a-z0-9][a-z0-9._-]*")
_AGENT_HINT = (
    "An agent's name is of a-z, 0-9, dots, dashes and underscores, and not owner, manual, import, "
    "web or file."
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProjectAccess(FrozenValueObject):
    """The rights of agents in a project.

    is_read_only: whether nobody may change a note.
    agents: the names, in small letters, of the agents that may use the project; empty means all.
    write_folder: the only folder to which agents may write; "" means all folders.
    ignore: patterns of files to leave out, in the form of gitignore.
    """

    is_read_only: bool = False
    agents: tuple[str, ...] = ()
    write_folder: str = ""
    ignore: tuple[str, ...] = ()

    def admits(self, agent: str | None) -> bool:
        """Whether an agent may use the project. None is the owner, who always may."""
        return agent is None or not self.agents or agent.lower() in self.agents

    @property
    def scope(self) -> str:
        """The scope of a note whose header names no scope.

        It is `global` if all agents may use the project. Otherwise it names the agents that may.
        """
        return self.scope_of(GLOBAL)

    def scope_of(self, scope: str) -> str:
        """Return the scope that counts for a note whose header names `scope`.

        Only agents that both the header and the project admit may see the note.
        """
        if not self.agents:
            return scope
        names = self.agents
        if scope != GLOBAL:
            names = tuple(name for name in names if scope == f"agent:{name}")
        # A comma around each name, so that one search for `,name,` tells whether it is there.
        return PREFIX + "," + "".join([f"{name}," for name in names])


EVERYTHING = ProjectAccess()
"""The rights of agents in a project for which the owner has set none."""


def is_among(scope: str, agent: str) -> bool:
    """Whether a scope is one of several agents, and this agent is among them."""
    return scope.startswith(PREFIX) and f",{agent}," in scope


def is_in_force(scopes: Collection[str], scope: str) -> bool:
    """Whether the notes of a project are indexed with its present rights.

    scopes: the scopes that its notes have in the index.
    scope: the scope that the project has now; "" if all agents may use it.
    """
    if not scope:
        return not any(note_scope.startswith(PREFIX) for note_scope in scopes)
    admitted_names = set(scope.removeprefix(PREFIX).split(","))
    for note_scope in scopes:
        if not note_scope.startswith(PREFIX):
            return False
        names = set(note_scope.removeprefix(PREFIX).split(","))
        # A note may have fewer agents than the project, but no others.
        if not names <= admitted_names:
            return False
    return scope in scopes


def is_agent(name: str) -> bool:
    """Whether an agent may have this name (contract 001, 1).

    It may not be called `owner` or `web`: the history would show it as somebody else.
    """
    if len(name) > _MOST_AGENT_CHARACTERS or name.lower() in TAKEN_AGENTS:
        return False
    return _AGENT.fullmatch(name.lower()) is not None


def check_agent(name: str) -> None:
    """Raise InvalidInput if no agent may have this name."""
    if not is_agent(name):
        raise InvalidInput(f'invalid agent "{name}"', _AGENT_HINT)
