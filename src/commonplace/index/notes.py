"""The notes of the index: one by one, in lists, and by what callers call them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from commonplace.index import lookup, places
from commonplace.index.database import Database
from commonplace.index.lookup import Counts, DirectoryEntry
from commonplace.index.rows import NoteInfo
from commonplace.query import Query
from commonplace.store.base import Stamp, Values

if TYPE_CHECKING:
    from commonplace.index.overview import Section
    from commonplace.note.model import Observation


class Notes:
    """Reads the notes of one index. `viewer` is the agent that asks, None the owner."""

    def __init__(self, database: Database):
        self._database = database

    def get(self, project: str, path: str) -> NoteInfo | None:
        """The note at `path` of `project` (exact), None when the index has none."""
        return lookup.get(self._database.connection, project, path)

    def get_row(self, row: int) -> NoteInfo | None:
        """The note of a row number, None when there is none."""
        return lookup.get_row(self._database.connection, row)

    def infos(self, rows: Iterable[int]) -> dict[int, NoteInfo]:
        """The notes of these rows by row; missing rows are left out."""
        return lookup.infos(self._database.connection, rows)

    def in_order(self, rows: Sequence[int]) -> list[NoteInfo]:
        """The notes of these rows, in the order given."""
        return lookup.in_order(self._database.connection, rows)

    def observations(self, note: NoteInfo) -> list[Observation]:
        """The note's observations in the order of the file."""
        return lookup.observations(self._database.connection, note)

    def is_graph(self, project: str) -> bool:
        """Whether the project is a graph file used in place."""
        return lookup.is_graph(self._database.connection, project)

    def text_of(self, row: int) -> tuple[str, str]:
        """A note's indexed text as (frontmatter, body); two empty ones when there is none."""
        return lookup.text_of(self._database.connection, row)

    def stamps(self, project: str, folder: str = "") -> dict[str, Values]:
        """Path → stamp of every note of a project, or of one folder of it, that the index knows, expired entries
        included.
        """
        return lookup.stamps(self._database.connection, project, folder)

    def projects(self) -> list[str]:
        """The names of all projects that were ever indexed and not forgotten."""
        return lookup.projects(self._database.connection)

    def counts(self, viewer: str | None) -> Counts:
        """How many notes `viewer` sees."""
        return lookup.counts(self._database.connection, viewer)

    def directory(
        self,
        project: str,
        folder: str = "",
        *,
        depth: int = 1,
        viewer: str | None = None,
        glob: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
    ) -> tuple[list[DirectoryEntry], int]:
        """A page of what lies in a folder (contract 000b, list_directory) and how many entries there are.

        Folders first, then notes, each by code point; down to `depth` levels. `glob` keeps the entries
        whose last name matches. Folders without a note the caller sees are not known here.
        """
        return lookup.directory(
            self._database.connection,
            project,
            folder,
            depth=depth,
            viewer=viewer,
            glob=glob,
            limit=limit,
            offset=offset,
        )

    def below(self, project: str, folder: str) -> list[NoteInfo]:
        """All notes of a folder of a project at any depth, whatever their scope, by path."""
        return lookup.below(self._database.connection, project, folder)

    def complete(self, prefix: str, viewer: str | None, limit: int = 100, project: str | None = None) -> list[str]:
        """Permalinks that begin with `prefix`, by code point, at most `limit`."""
        return lookup.complete(self._database.connection, prefix, viewer, limit, project)

    def matching(
        self,
        address: str,
        *,
        viewer: str | None,
        projects: Sequence[str] | None = None,
        limit: int | None = 10,
        offset: int = 0,
    ) -> tuple[list[NoteInfo], int]:
        """Notes whose permalink fits `address`, where `*` stands for any run of characters.

        The address counts with and without the project in front; verbatim first, slugged when that
        finds nothing (contract 000b, 4.2). By permalink, then project and path; and how many there are.
        """
        return lookup.matching(
            self._database.connection, address, viewer=viewer, projects=projects, limit=limit, offset=offset
        )

    def duplicates(self) -> dict[str, list[NoteInfo]]:
        """Ids that several notes claim."""
        return lookup.duplicates(self._database.connection)

    def warnings(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """What was odd about notes when they were read: (project, path, texts)."""
        return lookup.warnings(self._database.connection)

    def stamp(self, project: str, path: str) -> Stamp | None:
        """The stamp the index knows of a note or an expired entry, None when it knows none."""
        return places.stamp(self._database.connection, project, path)

    def permalink(self, project: str, path: str) -> str | None:
        """The final permalink of a note, None when the index has none there."""
        return places.permalink(self._database.connection, project, path)

    def over(self, now: int, limit: int = -1) -> list[str]:
        """The paths of key-value entries whose time is over at `now` (microseconds since 1970), as far as the index
        still shows them; at most `limit` of them.
        """
        return places.over(self._database.connection, now, limit)

    def in_other_case(self, project: str, path: str) -> NoteInfo | None:
        """A note of the same folder and name but for case."""
        return places.in_other_case(self._database.connection, project, path)

    def by_permalink(self, project: str, address: str) -> NoteInfo | None:
        """The first note of a project with exactly this permalink."""
        return places.by_permalink(self._database.connection, project, address)

    def holding_link(self, identity: str) -> list[NoteInfo]:
        """The memories whose `links` hold an id."""
        return places.holding_link(self._database.connection, identity)

    def with_ids(self, ids: Iterable[str], projects: Sequence[str]) -> list[NoteInfo]:
        """The notes of these projects that have one of these ids; of two with one id, neither is left out."""
        return places.with_ids(self._database.connection, ids, projects)

    def survivors(self, ids: Iterable[str]) -> dict[str, NoteInfo]:
        """The notes that ids were merged into, by id."""
        return places.survivors(self._database.connection, ids)

    def in_time(self, project: str, viewer: str | None, category: str | None, scope: str | None) -> array[int]:
        """The rows of a project's notes `viewer` sees, of one category and scope if given: oldest first, then by id."""
        return places.in_time(self._database.connection, project, viewer, category, scope)

    def bodies(self, rows: Sequence[int]) -> dict[int, str]:
        """The texts after the frontmatter of these rows."""
        return places.bodies(self._database.connection, rows)

    def scoped_bodies(self, project: str) -> Iterator[tuple[str, str]]:
        """(scope, text after the frontmatter) of every note of a project, one at a time."""
        return places.scoped_bodies(self._database.connection, project)

    def listing(
        self, query: Query, *, viewer: str | None, order: str = "changed", limit: int | None = 10, offset: int = 0
    ) -> tuple[list[NoteInfo], int]:
        """One page of the notes that pass the filters of `query` (its text is not looked at), and their number.

        `order` is `changed` or `created` (newest first, ties by permalink) or `path`. `contains`
        compares with case folded as Python does. Raises InvalidInput for a broken metadata filter.
        """
        from commonplace.index import listing

        return listing.listing(self._database.connection, query, viewer=viewer, order=order, limit=limit, offset=offset)

    def find(
        self, identifier: str, *, project: str | None = None, default_project: str, viewer: str | None
    ) -> NoteInfo:
        """The note an identifier names: an address with or without `memory://`, a title, an id, or a
        unique beginning of an id of at least 8 characters.

        With `project`: there. Without: in the default project; then, when the first segment names a
        project, in that one; then in all others together. Raises NotFound with suggestions, Ambiguous
        with candidates, and what `parse_address` raises for addresses that are refused.
        """
        from commonplace.index import find

        with self._database.snapshot():  # else another process may replace the row before it is read
            return find.find(
                self._database.connection, identifier, project=project, default_project=default_project, viewer=viewer
            )

    def find_id(
        self, text: str, *, viewer: str | None, project: str | None = "categories", minimum: int = 4
    ) -> NoteInfo:
        """The note whose id is `text` or uniquely begins with it, `minimum` characters at least.

        An id that was merged into another note answers that one. Raises NotFound, or Ambiguous with
        `total` notes. `project` None looks everywhere.
        """
        from commonplace.index import find

        with self._database.snapshot():
            return find.find_id(self._database.connection, text, viewer=viewer, project=project, minimum=minimum)

    def suggestions(self, target: str, *, viewer: str | None, project: str | None = None, limit: int = 5) -> list[str]:
        """Up to `limit` permalinks that come near `target`, the nearest first."""
        from commonplace.index import find

        return find.suggestions(self._database.connection, target, viewer=viewer, project=project, limit=limit)

    def sections(self, most: int, reads: Mapping[str, int]) -> list[Section]:
        """Every category that has memories; of each the `most` (0 = none) often read ones, then the newest.

        `reads` are counted besides those in the frontmatter, by id. Reminders are left to `reminders`.
        """
        from commonplace.index import overview

        return overview.sections(self._database.connection, most, reads)

    def reminders(self) -> list[NoteInfo]:
        """All memories of category `reminders` and scope `global`."""
        from commonplace.index import overview

        return overview.reminders(self._database.connection)
