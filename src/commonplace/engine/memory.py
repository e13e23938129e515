"""`Memory`: the verbs. Each takes and returns values, raises from errors.py, prints nothing."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace import clock as clocks
from commonplace.clock import Clock
from commonplace.config import Settings, load
from commonplace.engine import projects, storing
from commonplace.engine.core import Core
from commonplace.engine.verb import verb
from commonplace.errors import InvalidInput, NotFound
from commonplace.index.notes import Counts as NoteCounts
from commonplace.index.rows import NoteInfo
from commonplace.note import links
from commonplace.note.model import Draft, Note
from commonplace.query import Query, memory_query, parse

if TYPE_CHECKING:
    from commonplace.engine.results import (
        Changed,
        Context,
        Deleted,
        Directory,
        Moved,
        Project,
        ResolvedLinks,
        Stored,
    )
    from commonplace.index.asking import Nearness
    from commonplace.index.rows import Edge, Hits
    from commonplace.index.smart import Ranking
    from commonplace.index.sync import Result
    from commonplace.note.model import Observation
    from commonplace.store.base import File
    from commonplace.store.history import Change

Ref = str | tuple[str, str] | Note | NoteInfo

_CHARACTERS_PER_TOKEN = 4


def open_memory(
    home: str | os.PathLike[str] | None = None,
    agent: str | None = None,
    projects: Mapping[str, str | os.PathLike[str]] | None = None,
    *,
    face: str = "python",
    config: Settings | str | os.PathLike[str] | None = None,
    clock: Clock = clocks.now,
    watch: bool = True,
) -> Memory:
    """Open the memory at `home` (else MEMORY_HOME, the configuration's storage.root, ~/.memory).

    `agent` is the caller's identity: it sees notes of scope `global` and its own; None is the owner and
    sees all. `projects` (name -> folder or graph file) are added for this process only; one named like a
    built-in project puts that one elsewhere. `config` is a configuration file or `Settings` already loaded.
    With `watch` a long-lived process learns of changes on disk from the system instead of looking at every
    file on each call. Raises ConfigError, StorageError.
    """
    settings = config if isinstance(config, Settings) else load(home, config)
    return Memory(Core(settings, projects or {}, clock, watch), agent, face)


class Memory:
    """An open memory, bound to one caller. Thread-safe; close it, or use it as a context manager.

    A `ref` is an id, a unique beginning of one, a permalink, a title, a path or a `memory://` address; a
    (project, path) pair; or a note already read.
    """

    def __init__(self, core: Core, agent: str | None, face: str):
        self._core = core
        self.agent = agent
        self.face = face

    def as_caller(self, agent: str | None, face: str | None = None) -> Memory:
        """The same open memory for another caller."""
        return Memory(self._core, agent, face or self.face)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release everything; notes are on disk already."""
        self._core.close()

    @property
    def settings(self) -> Settings:
        return self._core.settings

    @property
    def home(self) -> Path:
        """The home's root folder."""
        return self._core.layout.root

    @property
    def clock(self) -> Clock:
        return self._core.clock

    @property
    def warnings(self) -> builtins.list[str]:
        """What the last look at the disk could not see, e.g. a missing project folder."""
        return self._core.warnings

    @property
    def has_changed_memories(self) -> bool:
        """Whether this process changed something in `categories` that `memory.md` does not show yet."""
        return "categories" in self._core.changed

    @property
    def unreadable(self) -> dict[tuple[str, str], str]:
        """Files of `categories` left out because they cannot be read: (project, path) -> why."""
        return self._core.unreadable

    # --- projects -------------------------------------------------------------------------------

    @property
    def projects(self) -> builtins.list[Project]:
        """All projects, built-in ones first."""
        return projects.listed(self._core)

    @property
    def default_project(self) -> str:
        """Where notes go and identifiers are looked up when no project is named."""
        return projects.default(self._core)

    def project(self, name: str) -> Project:
        """The project of that name, compared without case. Raises ProjectNotFound."""
        return projects.named(self._core, name)

    @verb
    def add_project(self, name: str, folder: str, default: bool = False, make: bool = True) -> tuple[Project, str]:
        """Add `folder` (absolute or from `~`; made if missing), or a graph file, as a project, used in place.

        Returns it with "created" or "unchanged". Raises InvalidInput, Exists, ProjectRefused.
        """
        return projects.add(self._core, name, folder, default, make)

    @verb
    def remove_project(self, name: str) -> Project:
        """Take a project off the list; its files stay. Raises ProjectNotFound, InvalidInput for a built-in one."""
        return projects.remove(self._core, name)

    @verb
    def set_default(self, name: str) -> Project:
        """Make `name` the default project. Raises ProjectNotFound."""
        return projects.set_default(self._core, name)

    # --- writing --------------------------------------------------------------------------------

    def write(self, draft: Draft) -> Note:
        """Store a new note. Raises InvalidInput, Exists, OutsideError, StorageError."""
        return self.store(draft).note

    @verb
    def write_many(self, drafts: Iterable[Draft]) -> builtins.list[Note]:
        """Store new notes as one change: all, or none when any of them is refused."""
        return [each.note for each in storing.store(self, builtins.list(drafts))]

    @verb
    def store(self, draft: Draft, *, overwrite: bool = False, checksum: str | None = None) -> Stored:
        """Store a note; with `overwrite` an existing one keeps its id, permalink and created_at.

        `checksum`: the one the caller read; another is a Conflict. Raises as `write`, and Locked.
        """
        return storing.store(self, [draft], overwrite=overwrite, checksum=checksum)[0]

    @verb
    def edit(self, ref: Ref, edit: Any, *, checksum: str | None = None, create: bool = False,
             project: str | None = None) -> Changed:  # fmt: skip
        """Apply an edit value of note/edit.py; every other byte stays. With `create` a missing note is made.

        Raises NotFound, Ambiguous, Locked, Conflict, NotText and the edit's own errors; then nothing changed.
        """
        from commonplace.engine import changing

        return changing.edit(self, ref, edit, checksum=checksum, create=create, project=project)

    @verb
    def move(self, ref: Ref, destination: str, *, project: str | None = None) -> Moved:
        """Move a note inside its project; a final `/` keeps its name, no extension means `.md`."""
        from commonplace.engine import changing

        return changing.move(self, ref, destination, project=project)

    @verb
    def move_folder(self, project: str, folder: str, destination: str) -> Moved:
        """Move a folder with all it holds inside its project."""
        from commonplace.engine import changing

        return changing.move_folder(self, project, folder, destination)

    @verb
    def delete(self, ref: Ref, *, project: str | None = None) -> Deleted:
        """Delete a note; the history keeps its text. Links other memories hold to its id go with it."""
        from commonplace.engine import changing

        return changing.delete(self, ref, project=project)

    @verb
    def delete_folder(self, project: str, folder: str) -> Deleted:
        """Delete the notes of a folder; files that are no notes stay. Refused for notes of a foreign scope."""
        from commonplace.engine import changing

        return changing.delete_folder(self, project, folder)

    @verb
    def tag(self, ref: Ref, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Note:
        """Add and remove tags in the frontmatter, compared without case."""
        from commonplace.engine import changing

        return changing.tag(self, ref, add, remove)

    @verb
    def link(self, a: Ref, b: Ref, type: str = "links_to") -> bool:
        """Link two notes: memories get each other's id, other notes a relation line. Returns whether it was new."""
        from commonplace.engine import linking

        return linking.link(self, a, b, type)

    @verb
    def unlink(self, a: Ref, b: Ref) -> bool:
        """Remove the links between two notes, both ways. Returns whether there were any."""
        from commonplace.engine import linking

        return linking.unlink(self, a, b)

    @verb
    def resolve_links(self, dry_run: bool = False) -> ResolvedLinks:
        """Turn the wikilinks of memories into ids in both directions (contract 001, 4)."""
        from commonplace.engine import linking

        return linking.resolve_links(self, dry_run)

    # --- reading --------------------------------------------------------------------------------

    @verb
    def read(self, ref: Ref, *, project: str | None = None, count: bool = True) -> Note:
        """The whole note as it is on disk now. Counts one access unless told otherwise."""
        return storing.read(self, ref, project, count)

    @verb
    def file(self, ref: Ref, project: str | None = None) -> File:
        """A note's bytes, whatever they are."""
        info = self.find_ref(ref, project)
        return self._core.store(info.project).read(info.path)

    @verb
    def find(self, identifier: str, project: str | None = None) -> NoteInfo:
        """The one note an identifier names (contract 000b, 4.2). Raises NotFound, Ambiguous, ProjectNotFound."""
        if project is not None:
            project = self._core.store(project).name
        self._core.fresh()
        info = self._core.index.notes.find(identifier, project=project, default_project=self.default_project,
                         viewer=self.agent)  # fmt: skip
        self._core.counted([info])
        return info

    @verb
    def memory_id(self, text: str) -> NoteInfo:
        """The memory of `categories` with this id or unique prefix (contract 001, 1). Raises NotFound, Ambiguous."""
        return storing.by_id(self, text)

    @verb
    def find_ref(self, ref: Ref, project: str | None = None) -> NoteInfo:
        """What the index knows of the note `ref` names. Raises as `find`."""
        if isinstance(ref, str):
            return self.find(ref, project)
        place = ref if isinstance(ref, tuple) else (ref.project, ref.path)
        self._core.fresh()
        info = self._core.index.notes.get(self._core.store(place[0]).name, place[1])
        if info is None and place[0] == "categories" and not isinstance(ref, tuple):
            return storing.by_id(self, ref.id)  # moved to its category, or merged, since the caller found it
        if info is None or not self.sees(info.scope):
            raise NotFound(place[1], place[0])
        self._core.counted([info])
        return info

    def sees(self, scope: str) -> bool:
        """Whether this caller may see notes of `scope`."""
        return self.agent is None or scope == "global" or scope == f"agent:{self.agent}"

    @verb
    def search(self, query: str | Query, *, limit: int = 10, offset: int = 0, explain: bool = False,
               max_tokens: int | None = None) -> Hits:  # fmt: skip
        """Notes that match, best first: contract 000b, 6. `max_tokens` bounds the page (4 characters a token)."""
        self._core.fresh()
        hits = self._core.index.search(self._query(query), viewer=self.agent, limit=limit, offset=offset,
                             explain=explain, today=self._today(), near=self._nearness())  # fmt: skip
        self._core.counted(hit.note for hit in hits)
        if max_tokens is not None:
            hits.cut(max_tokens * _CHARACTERS_PER_TOKEN)
        return hits

    def _nearness(self) -> Nearness | None:
        from commonplace.engine.embedding import Embedding

        return Embedding(self).nearness

    @verb
    def smart_search(self, query: str, top: int = 10, wanted: Query = memory_query()) -> Ranking:
        """Memories `wanted` lets through that hold words of `query`, best first (contract 001, 14); `top` 0 = all."""
        from commonplace.engine import memories

        return memories.smart_search(self, query, top, wanted)

    @verb
    def list(self, query: str | Query = Query(), *, limit: int = 50, offset: int = 0,
             order: str = "changed") -> tuple[builtins.list[NoteInfo], int]:  # fmt: skip
        """Notes that pass the query's filters, and how many there are in all; `limit` 0 = all of them.

        `order`: `changed` or `created` (newest first), or `path`.
        """
        self._core.fresh()
        infos, total = self._core.index.notes.listing(self._query(query), viewer=self.agent, order=order,
                                       limit=limit or None, offset=offset)  # fmt: skip
        self._core.counted(infos)
        return infos, total

    def recent(self, timeframe: str = "7d", *, projects: tuple[str, ...] | None = None, limit: int = 10,
               offset: int = 0) -> tuple[builtins.list[NoteInfo], int, datetime]:  # fmt: skip
        """Notes changed within a time frame, newest first; also how many, and since when. Raises TimeframeError."""
        since = self.since(timeframe)
        return *self.list(Query(projects=projects, after=since), limit=limit, offset=offset), since

    def since(self, text: str) -> datetime:
        """The moment a time frame such as `2h` or `yesterday` begins (contract 000b, 5)."""
        from commonplace.note import timeframe

        return timeframe.since(text, self.clock(), self.settings.zone)

    def _today(self) -> date:
        return self.clock().astimezone(self.settings.zone).date()

    def _query(self, query: str | Query) -> Query:
        if isinstance(query, str):
            query = parse(query, now=self.clock(), zone=self.settings.zone)
        if query.projects is not None:
            return query.replace(projects=tuple(self._core.store(name).name for name in query.projects))
        return query

    @verb
    def context(self, ref: Ref, *, depth: int = 1, since: datetime | None = None, limit: int = 10,
                project: str | None = None) -> Context:  # fmt: skip
        """A note, what it says, its relations both ways, and the notes within `depth` steps, nearest first."""
        from commonplace.engine.results import Context

        info = self.find_ref(ref, project)
        index = self._core.index
        edges = index.links.outgoing(info, self.agent) + index.links.incoming(info, self.agent)
        reached = index.links.neighbours(info, depth=depth, viewer=self.agent, since=since, limit=limit)
        return Context(info, index.notes.observations(info), edges, reached)

    @verb
    def matching(self, address: str, *, project: str | None = None, limit: int = 10,
                 offset: int = 0) -> tuple[builtins.list[NoteInfo], int]:  # fmt: skip
        """Notes whose address matches a pattern with `*`, and how many."""
        self._core.fresh()
        wanted = None if project is None else [self._core.store(project).name]
        return self._core.index.notes.matching(links.parse_address(address).text, viewer=self.agent, projects=wanted,
                               limit=limit, offset=offset)  # fmt: skip

    @verb
    def outgoing(self, ref: Ref) -> builtins.list[Edge]:
        """The note's relations, in the order of its text."""
        return self._core.index.links.outgoing(self.find_ref(ref), self.agent)

    @verb
    def incoming(self, ref: Ref, limit: int | None = None, offset: int = 0) -> builtins.list[Edge]:
        """Relations that lead to the note, newest source first."""
        return self._core.index.links.incoming(self.find_ref(ref), self.agent, limit=limit, offset=offset)

    def backlinks(self, ref: Ref) -> builtins.list[NoteInfo]:
        """The notes that link to a note, newest first, each once, the note itself excepted."""
        info = self.find_ref(ref)
        found = {edge.note.row: edge.note for edge in self.incoming(info) if edge.note and edge.note.row != info.row}
        return sorted(found.values(), key=lambda each: (each.created, each.id), reverse=True)

    @verb
    def observations(self, ref: Ref) -> builtins.list[Observation]:
        """The note's observations, in the order of its text."""
        return self._core.index.notes.observations(self.find_ref(ref))

    @verb
    def context_for(self, question: str, *, max_tokens: int | None = None,
                    projects: tuple[str, ...] | None = None) -> str:  # fmt: skip
        """The best evidence for a question as text, each piece with its date and address, in at most `max_tokens`
        [2000] of 4 characters. Raises InvalidInput for less than one."""
        if max_tokens is not None and max_tokens < 1:
            raise InvalidInput(f"`max_tokens` must be at least 1; got {max_tokens}.")
        self._core.fresh()
        room = (2000 if max_tokens is None else max_tokens) * _CHARACTERS_PER_TOKEN
        hits = self._core.index.evidence(question, viewer=self.agent, max_chars=room, projects=projects,
                                 today=self._today(), near=self._nearness())  # fmt: skip
        return self._core.index.evidence_text(hits)[:room]

    @verb
    def directory(self, project: str, folder: str = "", *, depth: int = 1, glob: str | None = None,
                  limit: int = 50, offset: int = 0) -> Directory:  # fmt: skip
        """Folders and notes below a folder: folders first, then names, by code point."""
        return storing.directory(self, project, folder, depth, glob, limit, offset)

    @verb
    def text_of(self, info: NoteInfo) -> str:
        """The note's text as indexed, without looking at the disk."""
        return "".join(self._core.index.notes.text_of(info.row))

    @verb
    def complete(self, prefix: str, limit: int = 100) -> builtins.list[str]:
        """Permalinks that begin with `prefix`."""
        self._core.fresh()
        return self._core.index.notes.complete(prefix, self.agent, limit)

    # --- history and upkeep ---------------------------------------------------------------------

    @verb
    def log(self, ref: str | None = None, *, limit: int = 20, agent: str | None = None,
            since: datetime | None = None) -> builtins.list[Change]:  # fmt: skip
        """Changes, newest first; of one note (id, prefix or `project/path`), by one agent, since a moment."""
        from commonplace.engine import history

        return history.log(self, ref, limit=limit, agent=agent, since=since)

    @verb
    def undo(self, change: int | None = None) -> Change:
        """Take a change back (default: the latest not taken back yet). Itself a change. Raises CannotUndo, NotFound."""
        from commonplace.engine import history

        return history.undo(self, change)

    @verb
    def restore(self, ref: str, *, at: datetime | None = None, change: int | None = None,
                to: str | None = None) -> tuple[str, int]:  # fmt: skip
        """Bring back a deleted or older text of `ref` (id or `project/path`), into `to` if given.

        Returns where it went (`project/path`) and the change it came from.
        """
        from commonplace.engine import history

        return history.restore(self, ref, at=at, change=change, to=to)

    @verb
    def sync(self) -> Result:
        """Make the index show what is on disk; every other verb does so by itself."""
        return self._core.fresh()

    @verb
    def reindex(self, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        """Throw the index away and make it anew. Returns (notes, projects) as far as this caller sees them."""
        self._core.rebuild()
        self._core.purge_history()
        self._core.changed.add("categories")  # by hand, perhaps: memory.md is made anew
        self._core.fresh(progress)
        counts = self._core.index.notes.counts(self.agent)
        return sum(counts.projects.values()), len(counts.projects)

    @verb
    def stats(self) -> NoteCounts:
        """How many notes there are per project, phase and category, as far as this caller sees."""
        self._core.fresh()
        return self._core.index.notes.counts(self.agent)
