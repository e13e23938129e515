"""The links between the notes of the index."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from commonplace.index import graph, resolve
from commonplace.index.database import Database
from commonplace.index.rows import Edge, NoteInfo, Reached, Resolution


class Links:
    """Reads the links of one index. `viewer` is the agent that asks, None the owner."""

    def __init__(self, database: Database):
        self._database = database

    def outgoing(self, note: NoteInfo, viewer: str | None) -> list[Edge]:
        """The note's relations in the order of the file, each with where it leads for `viewer`.

        Ids in a memory's header that lead nowhere are shown to the owner alone: for an agent they may be those of
        memories it must not see (contract 001, 1).
        """
        return graph.outgoing(self._database.connection, note, viewer)

    def leading(self, rows: Sequence[int], viewer: str | None) -> list[tuple[int, str, int | None]]:
        """All relations of these notes at once, by note and place: (its row, target as written, row it leads to)."""
        return graph.leading(self._database.connection, rows, viewer)

    def targets(self, rows: Sequence[int]) -> dict[int, list[str]]:
        """The targets of these notes' relations, as written, by row and place; notes without any are left out."""
        return graph.targets(self._database.connection, rows)

    def incoming(self, note: NoteInfo, viewer: str | None, limit: int | None = None, offset: int = 0) -> list[Edge]:
        """The relations of other notes, and its own, that lead to `note`: newest source first.

        Only links that really resolve to it, from notes the viewer sees; `limit` and `offset` page.
        """
        return graph.incoming(self._database.connection, note, viewer, limit, offset)

    def degree(self, note: NoteInfo, viewer: str | None) -> int:
        """How many relations lead to the note: the length of all pages of `incoming`."""
        return graph.degree(self._database.connection, note, viewer)

    def neighbours(
        self,
        note: NoteInfo,
        *,
        depth: int,
        viewer: str | None,
        since: datetime | None = None,
        types: Sequence[str] | None = None,
        limit: int = 100,
    ) -> list[Reached]:
        """Notes within `depth` relations of `note`, in both directions: each once, nearest first, then newest.

        `types` are the relation types followed (None = all). `since` leaves out notes changed
        earlier, though the walk goes through them. At most `limit` notes; `note` itself is not one.
        """
        return graph.neighbours(
            self._database.connection, note, depth=depth, viewer=viewer, since=since, types=types, limit=limit
        )

    def unresolved(self, viewer: str | None, project: str | None = None) -> list[tuple[NoteInfo, str]]:
        """Every link that leads to no note, or to several: (note, target as written), by note and place."""
        return graph.unresolved(self._database.connection, viewer, project)

    def resolve(
        self,
        target: str,
        *,
        project: str,
        folder: str = "",
        viewer: str | None,
        target_project: str | None = None,
        source_scope: str | None = None,
    ) -> Resolution:
        """Where `[[target]]`, written in a note of `project` in `folder`, leads for `viewer`.

        `target_project` is the project of `[[project::target]]`. `source_scope` is the linking
        note's scope, by which `categories` chooses among equals (contract 001, 4).
        """
        return resolve.resolve(
            self._database.connection,
            target,
            project=project,
            folder=folder,
            viewer=viewer,
            target_project=target_project,
            source_scope=source_scope,
        )
