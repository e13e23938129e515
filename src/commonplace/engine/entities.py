"""The knowledge graph as values, and what a graph can do whatever it is kept in (contract 002)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from commonplace.errors import CommonplaceError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity with all it says."""

    name: str
    type: str
    observations: tuple[str, ...] = ()


class Relation(NamedTuple):
    """A directed relation between two names. `order` tells its place in the graph and is no part of what it is:
    first the place of its source, by which it can be found again, last its place there."""

    source: str
    target: str
    type: str
    order: tuple[Any, ...] = ()

    @property
    def triple(self) -> tuple[str, str, str]:
        """What makes two relations one."""
        return self.source, self.target, self.type


class Key(NamedTuple):
    """One entity without its observations. `order` tells its place in the graph and outlives other entities;
    `handle` is the graph's own; `project` is set when several are looked at together."""

    order: tuple[Any, ...]
    name: str
    type: str
    handle: Any
    project: str | None = None


class NoEntity(CommonplaceError):
    """An observation for an entity that is not there."""

    code = "not_found"

    def __init__(self, name: str):
        super().__init__(f"Entity with name {name} not found")


class AmbiguousEntity(CommonplaceError):
    """Two notes have one title, so writing to that name could mean either."""

    code = "ambiguous"

    def __init__(self, name: str, paths: Iterable[str]):
        super().__init__(f"Entity with name {name} is ambiguous: {', '.join(paths)}")


class Graph(Protocol):
    """Entities and relations. A call is all or nothing, durable on return, and applied in turn with others.

    Names compare by code point. Reading sees what any program wrote before. Raises from errors.py.
    """

    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store those whose name is new, equal observations once; of twins the first counts. Returns them."""
        ...

    def create_relations(self, relations: Sequence[Relation]) -> list[Relation]:
        """Store those that are new; their ends need not exist. Returns them."""
        ...

    def add_observations(self, additions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
        """Add to each named entity what it does not say yet. Returns what was new. Raises NoEntity."""
        ...

    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove entities and every relation at either end; unknown names are no error."""
        ...

    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove all copies of observations; what is not there is no error."""
        ...

    def delete_relations(self, relations: Sequence[Relation]) -> None:
        """Remove relations; what is not there is no error."""
        ...

    def keys(self) -> list[Key]:
        """Every entity, in order."""
        ...

    def named(self, names: Iterable[str]) -> list[Key]:
        """The entities of these names, in order."""
        ...

    def matching(self, text: str) -> list[Key]:
        """The entities whose name, type or any one observation holds `text`, in lower case; in order."""
        ...

    def ranked(self, text: str) -> list[Key]:
        """The entities that hold the words of `text` in any order, best first."""
        ...

    def observations(self, keys: Sequence[Key]) -> list[list[str]]:
        """What each of these entities says, in stored order."""
        ...

    def relations(self, names: set[str] | None = None) -> list[Relation]:
        """The relations with at least one end among `names` (None: all), in order."""
        ...

    def version(self) -> Any:
        """A value that differs once something changed."""
        ...

    def warnings(self) -> list[str]:
        """What was met and is not shown, in few words; none for most graphs."""
        ...

    def at_once(self, read: Callable[[], T]) -> T:
        """What `read` returns, which only reads: all its looks see the graph as it is at one moment."""
        ...
