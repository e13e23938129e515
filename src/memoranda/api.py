"""The public `Memory`, with which a program uses a person's notes.

Most verbs call the session inside (`Memory.session`), which interfaces and jobs use, too. The others
call upkeep, ingestion, or import and export, which are only imported when they are called.

The contract of a verb is written here: its parameters, its result and its errors. The docstring of
the session's verb refers to it, and adds what the session does beyond it.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memoranda import clock as clocks
from memoranda.argument_checks import check, check_arguments, check_fields, refusal
from memoranda.clock import Clock
from memoranda.engine import MemorySession, open_session
from memoranda.engine.reading import Ref
from memoranda.errors import InvalidInput
from memoranda.index.rows import Hits, NoteInfo, NotesListed
from memoranda.note.links import check_project_name
from memoranda.note.model import GLOBAL, Draft, Note
from memoranda.note.project_access import check_agent
from memoranda.query import Query, check_memory, check_query
from memoranda.sources.files import closed_on_error

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine.history.erase import Erased
    from memoranda.engine.history.verbs import Revision
    from memoranda.engine.links.memory_links import NoteContext
    from memoranda.engine.places import Deleted, Moved
    from memoranda.engine.project_list import Project
    from memoranda.engine.reading import Directory
    from memoranda.engine.review import ReviewItem
    from memoranda.index.note_queries import HomeCounts
    from memoranda.ingest import Ingestion
    from memoranda.jobs.dream import Dream
    from memoranda.jobs.job import Action, Outcome
    from memoranda.ledger.change import Change
    from memoranda.note.edit import Edit
    from memoranda.transfer.jsonl import Tally

Setting = str | int | float | bool | Sequence[str] | None
"""A value of config.yaml; None takes the key out."""


def _check_ref(name: str, value: Any) -> None:
    """Raise InvalidInput for a value that cannot name a note."""
    if isinstance(value, str | Note | NoteInfo):
        return
    is_pair = isinstance(value, tuple) and len(value) == 2
    if not is_pair or not all(isinstance(part, str) for part in value):
        raise refusal(name, "a text, a pair (project, path), or a note", value)


def _check_ref_or_draft(name: str, value: Any) -> None:
    """Raise InvalidInput for a value that is neither a note nor the draft of one."""
    if not isinstance(value, Draft):
        _check_ref(name, value)


def _check_query(name: str, value: Any) -> None:
    """Raise InvalidInput for any value but a text and a valid Query."""
    if isinstance(value, Query):
        check_fields(value)
        check_query(value)
    elif not isinstance(value, str):
        raise refusal(name, "a text or a Query", value)


def _check_question(name: str, value: Any) -> None:
    """Raise InvalidInput for a value that cannot name a question of `review`."""
    from memoranda.engine.review import ReviewItem

    if not isinstance(value, str | ReviewItem):
        raise refusal(name, "the key of a question, or the question", value)


_CHECKS = {
    "Ref": _check_ref,
    "str | ReviewItem": _check_question,
    "Ref | Draft": _check_ref_or_draft,
    "str | Query": _check_query,
}
"""The checks of the type hints that only this module knows."""


@check_arguments(_CHECKS)
class Memory:
    """An open memory, as one caller may use it (see `open_memory`). It is thread-safe.

    Close it, or use it as a context manager.

    A `ref` names a note. It is the note's title, path, permalink, `memory://` address or id, or a
    unique beginning of the id. It may also be a pair (project, path), or a note that another verb
    returned.
    """

    def __init__(self, session: MemorySession):
        """Wrap an open session. Programs call `open_memory` instead.

        session: an open home, as one caller uses it.
        """
        self._session = session

    def __repr__(self) -> str:
        caller = f" of agent {self.agent}" if self.agent else ""
        return f"<Memory {_without_beginning(str(self.home))}{caller}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the home. All notes are on disk before that."""
        self._session.close()

    @property
    def session(self) -> MemorySession:
        """The session that this object wraps, for programs that add their own interface.

        It may change in any version.
        """
        return self._session

    @property
    def home(self) -> Path:
        """The root folder of this memory."""
        return self._session.home

    @property
    def agent(self) -> str | None:
        """The name of the agent that uses this memory. None if it is the owner."""
        return self._session.agent

    @property
    def projects(self) -> builtins.list[Project]:
        """The projects that the caller may use: the built-in ones, then the added ones by name."""
        return self._session.projects

    @property
    def warnings(self) -> builtins.list[str]:
        """Warnings about files that the last call could not read, and notices of the write gate."""
        return [*self._session.warnings, *self._session.notices]

    # Writing

    def write(
        self, draft: Draft | str, *, overwrite: bool = False, checksum: str | None = None
    ) -> Note:
        """Store a note and return it.

        draft: the text, or a `Draft` with the text and further properties.
        overwrite: whether to replace an existing note. It keeps its id, its permalink, and the
            header keys that the draft does not set.
        checksum: the checksum of the note as it was read. If the file has changed since, nothing is
            written. None replaces any text.

        Raises Exists, Conflict, Locked, OutsideError, ProjectNotFound, LimitExceeded, StorageError.
        Raises InvalidInput for a property that a note cannot have, such as an unknown category;
        SecretRefused and NotWritable are kinds of it.
        """
        stored = self._session.store(_as_draft(draft), overwrite=overwrite, checksum=checksum)
        return stored.note

    def write_many(self, drafts: Iterable[Draft | str]) -> builtins.list[Note]:
        """Store new notes as one change, and return them. If one is refused, none is stored.

        drafts: the notes. Each is a text, or a `Draft` with the text and further properties.

        Raises the errors of `write`.
        """
        if isinstance(drafts, str | Draft) or not isinstance(drafts, Iterable):
            raise InvalidInput(
                "`write_many` takes a list of drafts.", "Store one note with `write`."
            )
        return self._session.write_many([_as_draft(draft) for draft in drafts])

    def edit(
        self,
        ref: Ref,
        edit: Edit,
        *,
        checksum: str | None = None,
        create: bool = False,
        project: str | None = None,
    ) -> Note:
        """Change a part of a note's text, and return the note. Every other byte stays.

        ref: the note.
        edit: the change, such as `Append(text)`, `StrReplace(old, new)` or `ReplaceSection(...)`.
        checksum: the checksum of the note as it was read. If the file has changed since, nothing is
            written. None edits any text.
        create: whether `Append` and `Prepend` make a note that is missing.
        project: the project in which `ref` is looked up. None means all projects.

        Raises NotFound, Ambiguous, Locked, Conflict, CountMismatch, SectionError, LimitExceeded,
        StorageError. Raises InvalidInput for an edit that is not possible; LineOutOfRange and
        SecretRefused are kinds of it.
        """
        changed = self._session.edit(ref, edit, checksum=checksum, create=create, project=project)
        return changed.note

    def tag(self, ref: Ref, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Note:
        """Add and remove tags in the header of a note, and return the note.

        ref: the note.
        add: tags to add.
        remove: tags to remove. Case does not matter.

        Raises NotFound, Ambiguous, Locked.
        """
        return self._session.tag(ref, add, remove)

    def link(self, ref: Ref, target: Ref, type: str = "links_to") -> bool:
        """Link two notes, and return whether the link is new.

        If both are memories, each gets the id of the other. Otherwise the first note gets a line
        with the relation.

        ref: the note that gets the link.
        target: the note that the link leads to.
        type: the type of the relation, for notes that are not memories.

        Raises NotFound, Ambiguous, Locked, InvalidInput for linking a note to itself.
        """
        return self._session.link(ref, target, type)

    def unlink(self, ref: Ref, target: Ref) -> bool:
        """Remove the link between two memories, and return whether there was one.

        ref: the one memory.
        target: the other memory.

        Raises NotFound, Ambiguous, Locked, InvalidInput for notes that are not memories.
        """
        return self._session.unlink(ref, target)

    def move(
        self, ref: Ref, destination: str, *, project: str | None = None, follow: bool = False
    ) -> Moved:
        """Move a note inside its project.

        ref: the note.
        destination: the new path in the project. If it ends in `/`, the file keeps its name. If it
            has no extension, `.md` is added.
        project: the project in which `ref` is looked up. None means all projects.
        follow: whether to change a permalink in the header to match the new path.

        Raises NotFound, Ambiguous, Exists, Locked, OutsideError.
        """
        return self._session.move(ref, destination, project=project, follow=follow)

    def delete(self, ref: Ref, *more: Ref, project: str | None = None) -> Deleted:
        """Delete notes as one change. `undo` brings them back.

        Other memories lose their links to the deleted memories.

        ref: the note.
        more: further notes.
        project: the project in which they are looked up. None means all projects.

        Raises NotFound, Ambiguous, Locked.
        """
        return self._session.delete(ref, *more, project=project)

    def supersede(
        self, old: Ref, new: Ref | Draft, *, valid_from: str | None = None
    ) -> tuple[NoteInfo, Note]:
        """Mark a note as replaced by a newer one, as one change. Both notes stay.

        old: the note that is no longer valid. Its header gets `valid_until`.
        new: the note that is valid now, or the `Draft` of such a note. Its header gets `supersedes`.
        valid_from: the time from which the new note is valid, such as `2026-03-01` or `yesterday`.
            None means the `valid_from` of the new note or, without that, the time when it was
            written.

        Returns both notes: the old one as it is listed, and the new one.

        Raises NotFound, Ambiguous, Locked. Raises InvalidInput in three cases: the notes would
        supersede each other, the old note is superseded already, or fewer agents may see the new
        note.
        """
        if isinstance(new, Draft):
            new = _as_draft(new)
        return self._session.supersede(old, new, valid_from=valid_from)

    def remind(
        self,
        text: str,
        at: str | None = None,
        *,
        tags: Sequence[str] = (),
        scope: str = GLOBAL,
        source: str | None = None,
    ) -> Note:
        """Store a reminder, and return its note.

        text: the text of the reminder. It names the time, unless `at` does.
        at: the time, such as `tomorrow at 3pm` or `every friday`. None reads it from `text`.
        tags: the note's tags.
        scope: who may see the note: `global`, or `agent:NAME`.
        source: where the note comes from. None means the name of the agent, if an agent calls.

        Raises TimeRefused for a text without a clear time, and the errors of `write`.
        """
        from memoranda.jobs import reminders

        session = self._session
        session.check_scope(scope)
        reading = reminders.read_time(session, text if at is None else at)
        return reminders.store(session, text, reading, tags=tags, scope=scope, source=source)

    def bring_back(self, ref: Ref, category: str | None = None) -> Note:
        """Take a note out of the archive, and return it.

        A memory goes to its category. A note of another project goes to its former place.

        ref: the note.
        category: the category that a memory gets; None for the category that it had.

        Raises NotFound, Ambiguous, Locked. Raises Exists if another note is at the former place now,
        and InvalidInput if the note is not archived.
        """
        info = self._session.find(ref)
        check_memory(category)
        return self._session.bring_back(info, category)

    # Reading

    def read(self, ref: Ref, *, project: str | None = None, count: bool = True) -> Note:
        """Return a whole note, as it is on disk.

        ref: the note.
        project: the project in which `ref` is looked up. None means all projects.
        count: whether this counts as a use of the note.

        Raises NotFound, Ambiguous, ProjectNotFound, NotText, CannotRead.
        """
        return self._session.read(ref, project=project, count=count)

    def find(self, ref: Ref, project: str | None = None) -> NoteInfo:
        """Look a note up. The result has everything that the index knows of it, but not its text.

        ref: names the note, for example by its path, permalink, title or id.
        project: look only in this project. None means all projects.

        Raises NotFound, Ambiguous, ProjectNotFound, OutsideError.
        """
        return self._session.find(ref, project)

    def list(
        self,
        query: str | Query = "",
        *,
        limit: int = 50,
        offset: int = 0,
        order: str | None = None,
    ) -> NotesListed:
        """Return one page of the notes that pass filters, and the number of all such notes.

        The result has `.notes` and `.total`, and can be unpacked as a pair.

        query: filters, such as `"tag:ui project:notes"`, or a `Query`.
        limit: how many notes the page has at most; 0 means all.
        offset: how many notes to skip.
        order: `changed` or `created` (the newest first), `path` or `address`. None means the order
            of the query.

        Raises ProjectNotFound for a project of the query that does not exist, and InvalidInput for
        an unknown order or a wrong condition in `Query.metadata`.
        """
        if order is not None:
            query = self._session.query_of(query).replace(order=order)
        return self._session.list(query, limit=limit, offset=offset)

    def search(
        self,
        query: str | Query,
        *,
        limit: int = 10,
        offset: int = 0,
        explain: bool = False,
        max_tokens: int | None = None,
    ) -> Hits:
        """Search for notes, and return one page of hits, the best first.

        Notes that are no longer valid or are superseded are only returned if no other note matches.
        `Query.as_of` searches for the notes that were valid on another day. At most 10,000 matches
        are counted (`Hits.is_lower_bound`).

        query: words, which may include filters such as `tag:ui` and `after:7d`; or a `Query`. Without
            words, all notes that pass the filters are hits, the latest change first.
        limit: how many hits the page has at most. 0 only counts the matches.
        offset: how many hits to skip.
        explain: whether each hit says how its score came about (`Hit.shares`).
        max_tokens: the most tokens that all titles and passages together have; a token is 4
            characters. The first hit is returned in any case. None means any number.

        Raises ProjectNotFound for a project of the query that does not exist, and InvalidInput for a
        wrong condition in `Query.metadata` or a `max_tokens` below 1.
        """
        return self._session.search(
            query, limit=limit, offset=offset, explain=explain, max_tokens=max_tokens
        )

    def recent(
        self,
        timeframe: str = "7d",
        *,
        projects: Sequence[str] | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> tuple[builtins.list[NoteInfo], int, datetime]:
        """List the notes that changed lately, the latest change first.

        timeframe: since when, such as `2h`, `7d`, `3 weeks`, `yesterday` or a day.
        projects: the names of the projects; None means all projects.
        limit: how many notes the page has at most; 0 means all.
        offset: how many notes to skip.

        Returns one page of the notes, the number of all such notes, and the time at which
        `timeframe` begins, in UTC.

        Raises TimeframeError, ProjectNotFound.
        """
        since = self._session.since(timeframe)
        query = Query(projects=_names(projects), after=since)
        notes, total = self._session.list(query, limit=limit, offset=offset)
        return notes, total, since

    def directory(
        self,
        project: str,
        folder: str = "",
        *,
        depth: int = 1,
        glob: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Directory:
        """List the folders and notes below a folder. Folders come first; both are sorted by name.

        project: the name of the project.
        folder: the path of the folder in the project; "" means the whole project.
        depth: how many levels of folders to list.
        glob: a pattern of file names, such as `*.md`. None means all notes.
        limit: how many entries the page has at most; 0 means all.
        offset: how many entries to skip.

        Raises NotFound, ProjectNotFound, OutsideError, and InvalidInput for a pattern of more than
        2,048 characters.
        """
        return self._session.directory(
            project, folder, depth=depth, glob=glob, limit=limit, offset=offset
        )

    def context(
        self,
        question: str,
        *,
        max_tokens: int | None = None,
        projects: Sequence[str] | None = None,
        as_of: datetime | None = None,
    ) -> str:
        """Return the best evidence for a question as text for a prompt, with dates and addresses.

        The text is "" if no passage is relevant enough to the question.

        question: a question, a task, or the last turns of a conversation.
        max_tokens: the most tokens that the text has; a token is 4 characters. None means 2000.
        projects: the names of the projects; None means all projects.
        as_of: the time at which the evidence was valid, aware; None means now.

        Raises ProjectNotFound, and InvalidInput for a `max_tokens` below 1.
        """
        return self._session.context_for(
            question, max_tokens=max_tokens, projects=_names(projects), as_of=as_of
        )

    def related(
        self,
        ref: Ref,
        *,
        depth: int = 1,
        since: datetime | None = None,
        limit: int = 10,
        project: str | None = None,
    ) -> NoteContext:
        """Return a note with its relations in both directions, and the notes near it.

        ref: the note.
        depth: how many relations away the other notes may be.
        since: only return other notes that changed since this time. None returns all.
        limit: how many other notes to return at most. 0 returns none.
        project: the project in which `ref` is looked up. None means all projects.

        Raises NotFound, Ambiguous, ProjectNotFound.
        """
        return self._session.context(ref, depth=depth, since=since, limit=limit, project=project)

    def backlinks(self, ref: Ref) -> builtins.list[NoteInfo]:
        """Return the notes that link to a note, the newest first.

        ref: the note.

        Raises NotFound, Ambiguous.
        """
        return self._session.backlinks(ref)

    # History

    def log(
        self,
        ref: str | None = None,
        *,
        limit: int = 20,
        agent: str | None = None,
        since: datetime | None = None,
    ) -> builtins.list[Change]:
        """Return changes, the newest first.

        ref: an id or `project/path`: only changes of this note, also those from before it came to
            its present place. None means changes of all notes.
        limit: how many changes to return at most; 0 means all.
        agent: only changes by this agent. None means changes by anybody.
        since: only changes since this time. None means changes at any time.

        Raises NotFound, Ambiguous.
        """
        return self._session.log(ref, limit=limit, agent=agent, since=since)

    def revisions(self, change: int, *, limit: int = 0) -> builtins.list[Revision]:
        """Return the text of each note of a change, before and after the change.

        change: the number of the change in `log`.
        limit: how many notes to return at most; 0 means all.

        Raises NoSuchChange.
        """
        return self._session.revisions(change, limit=limit)

    def undo(self, change: int | None = None) -> Change:
        """Undo a change, and return the change that undoes it.

        If the action of a job is undone, the job does not repeat it for that note. Links that a job
        made since do not prevent the undo, and the note keeps them.

        change: the number of the change in `log`. None means the latest change that is not undone.

        Raises CannotUndo if there is no such change, a later one touched the same note, or the text
        before it is not kept, for example (`CannotUndo.obstacle`).
        """
        return self._session.undo(change)

    def restore(
        self,
        ref: str,
        *,
        at: datetime | None = None,
        change: int | None = None,
        to: str | None = None,
    ) -> tuple[str, int]:
        """Bring back an older text of a note.

        Without `at` and `change`, it is the text before the last change.

        ref: the id or the `project/path` of the note, which may be deleted.
        at: the time at which the note had the text. None if no time is named.
        change: the number of the change that replaced the text. None if no change is named.
        to: another place to which the text is written, as `project/path`. None means the place of
            the note.

        Returns the `project/path` of the note, and the number of the change that has the text.

        Raises NotFound, Exists. Raises CannotUndo if this would replace a text that was just
        restored.
        """
        return self._session.restore(ref, at=at, change=change, to=to)

    def erase(
        self,
        *refs: Ref,
        agent: str | None = None,
        project: str | None = None,
        source: str | None = None,
        observation: str | None = None,
        dry_run: bool = False,
    ) -> Erased:
        """Remove notes for good, with their history. This cannot be undone.

        refs: the notes. A ref may also be the path of a deleted file as `log` shows it, or an entry
            of JSON files used in place: `FOLDER/NAMESPACE.json:KEY`.
        agent: also remove all notes that this agent made or that only it may see. None adds no
            notes.
        project: also remove all notes of this project. None adds no notes.
        source: also remove all notes with this source. None adds no notes.
        observation: only remove this observation of the note in `refs`. None removes whole notes.
        dry_run: whether to remove nothing, and only return what would be removed.

        Raises NotFound, Ambiguous, Locked, StorageError. Raises InvalidInput if the caller is an
        agent, and if nothing says what to remove.
        """
        if not (refs or agent or project or source):
            raise InvalidInput("erase needs a ref, an agent, a project or a source")
        return self._session.erase(
            *refs,
            agent=agent,
            project=project,
            source=source,
            observation=observation,
            dry_run=dry_run,
        )

    # The questions to the owner

    def review(
        self, *, limit: int = 50, offset: int = 0, kind: str | None = None
    ) -> builtins.list[ReviewItem]:
        """Return the questions that upkeep asks the owner. For an agent, the list is empty.

        If there are many questions of one kind, they are joined to one, unless `kind` is set.

        limit: how many questions to return at most; 0 means all.
        offset: how many questions to skip.
        kind: only questions of this kind, such as `merge` or `suspicious`. None means all kinds.

        Raises InvalidInput for an unknown kind.
        """
        return self._session.review(limit=limit, offset=offset, kind=kind)

    def decide(self, question: str | ReviewItem, choice: str) -> ReviewItem:
        """Answer a question of `review`, and return the question.

        The choice is carried out now, or recorded for the job that asked.

        question: the question, or its key.
        choice: the letter of one of its choices.

        Raises NotFound if the question is not open. Raises InvalidInput for another letter, and if
        the caller is an agent. Raises InvalidInput for several questions that `review` joined to
        one, if one of their notes has changed. Raises the errors of the change that the choice
        makes.
        """
        return self._session.decide(question, choice)

    # Projects and settings

    def add_project(
        self, name: str, folder: str | os.PathLike[str], *, default: bool = False
    ) -> Project:
        """Use a folder of notes or a graph file in place as a project, and return the project.

        name: the name of the project.
        folder: an absolute path, or a path that begins with `~`. A missing folder is made.
        default: whether it becomes the default project.

        Raises InvalidInput, Exists, ProjectRefused.
        """
        project, _ = self._session.add_project(name, os.fspath(folder), default)
        return project

    def remove_project(self, name: str) -> Project:
        """Remove a project from the configuration, and return it. Its files stay.

        name: the name of the project.

        Raises ProjectNotFound, ProjectRefused.
        """
        return self._session.remove_project(name)

    def configure(self, key: str, value: Setting) -> None:
        """Set a key of config.yaml.

        key: the name of the key, such as `daemon.interval`. `memory config list` shows all keys.
        value: the new value; None removes the key.

        Raises ConfigError for a value that the key cannot have, and InvalidInput for an unknown key
        and for an agent. Then nothing is written.
        """
        self._session.configure(key, value)

    # Upkeep, moving in and out

    def upkeep(self, *, dry_run: bool = False) -> builtins.list[Outcome]:
        """Run the four jobs of `memory consolidate`: expire, decay, upgrade, consolidate.

        A job that fails does not stop the others.

        dry_run: whether to change nothing, and only plan the actions.

        Returns the outcome of each job: the actions, and the `error` of a job that failed.
        """
        from memoranda.jobs import lifecycle

        return lifecycle.consolidate(self._session, dry_run=dry_run)

    def decay(self, *, dry_run: bool = False) -> builtins.list[Action]:
        """Archive organized memories that are old and were never used, and return the actions.

        dry_run: whether to change nothing, and only plan the actions.
        """
        from memoranda.jobs import lifecycle

        return lifecycle.decay(self._session, dry_run=dry_run)

    def dream(self, level: int = 1, *, dry_run: bool = False) -> Dream:
        """Put memories in order, and return what was done.

        level: 1 sorts the inbox, 2 also merges and links similar memories, 3 also links memories of
            different categories and makes reminders.
        dry_run: whether to change nothing, and only plan the actions.

        Raises InvalidInput for another level.
        """
        from memoranda.jobs import dream

        session = self._session
        endpoint = dream.endpoint_of(session.settings)
        return dream.run(session, level, dry_run=dry_run, endpoint=endpoint)

    def ingest(
        self,
        source: str = "all",
        path: str | os.PathLike[str] | None = None,
        *,
        dry_run: bool = False,
        again: bool = False,
    ) -> dict[str, Ingestion]:
        """Store the notes of other programs as memories, and return the counts by source.

        source: the names of sources, separated by commas. `all` means all that exist.
        path: the folder to read; None means the usual folder of the source.
        dry_run: whether to store nothing, and only count.
        again: whether to store memories again that were deleted or have expired.

        Raises InvalidInput for an unknown source or a missing folder.
        """
        from memoranda import ingest

        folder = None if path is None else os.fspath(path)
        sources = ingest.named_sources(source, folder, self._session.settings)
        plans, outcomes = ingest.run(self._session, sources, dry_run=dry_run, takes_removed=again)
        return {plan.source: outcome for plan, outcome in zip(plans, outcomes, strict=True)}

    def export(self, *, category: str | None = None, scope: str | None = None) -> Iterator[str]:
        """Return an iterator over the memories as lines of JSON, the oldest first.

        The lines have no line breaks. Notes of other projects are not among them.

        category: only memories of this category. None means all.
        scope: only memories of this scope. None means all.

        Raises InvalidInput for an unknown category or a malformed scope.
        """
        from memoranda.transfer.jsonl import exported_lines

        check_memory(category, scope=scope)
        return exported_lines(self._session, category, scope)

    def import_(self, lines: Iterable[str | bytes], *, skip_bad: bool = False) -> Tally:
        """Import lines of `export`, and return the counts. Importing them again changes nothing.

        lines: the lines. All of them are checked before anything is written.
        skip_bad: whether to leave out bad lines.

        Raises BadRecord with the number of the line, unless `skip_bad` is set.
        """
        from tempfile import TemporaryFile

        from memoranda.transfer.jsonl import Import, Tally

        with TemporaryFile() as file:
            for line in lines:
                if not isinstance(line, str | bytes):
                    raise refusal("lines", "a list of lines", line)
                data = line.encode() if isinstance(line, str) else line
                file.write(data)
                if not data.endswith(b"\n"):
                    file.write(b"\n")
            importing = Import(self._session, file, skip_bad=skip_bad)
            tally = Tally()
            if not skip_bad:
                importing.check()
            importing.run(tally, lambda _: None)
        return tally

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        """Make the index again from the files. Return the number of notes and of projects.

        progress: called with the number of files that were read, and the number of all files. None
            calls nothing.
        """
        return self._session.reindex(progress)

    def stats(self) -> HomeCounts:
        """Count the notes of each project, and the memories of each (phase, category).

        Notes that the caller may not see are left out.
        """
        return self._session.stats()


def open_memory(
    home: str | os.PathLike[str] | None = None,
    agent: str | None = None,
    projects: Mapping[str, str | os.PathLike[str]] | None = None,
    *,
    face: str = "python",
    config: Settings | str | os.PathLike[str] | None = None,
    clock: Clock = clocks.now,
    watch: bool = True,
    only: Collection[str] = (),
) -> Memory:
    """Open the memory of a person, and return it.

    home: the folder of the memory, or the address of a space in a database:
        `postgresql://HOST/DATABASE?space=NAME`. None means the first of these that is set: the
        environment variable MEMORY_HOME, `storage.root` in the configuration, `~/.memory`.
    agent: the name of the agent that uses the memory. It sees notes of scope `global` and of its
        own scope. None means the owner, who sees all notes.
    projects: further projects for this process: the folder or graph file of each, by name. None
        adds no projects.
    face: the name of the calling program in the history.
    config: a configuration file, or the settings themselves. None means `config.yaml` in the home.
    clock: a function that returns the present time. Tests pass another one.
    watch: whether the operating system reports changes on disk. Use it in a program that runs for
        long. Without it, each call lists the files.
    only: the names of the projects that this process may use. Empty means all projects.

    Raises ConfigError, StorageError. Raises InvalidInput for a name that an agent may not have, and
    ProjectNotFound for a name in `only` that no project has.
    """
    _check_opening(home=home, agent=agent, projects=projects, face=face, only=only)
    session = open_session(
        home, agent, projects, face=face, config=config, clock=clock, watch=watch, only=only
    )
    with closed_on_error(session):
        session.check_project_names(only)
    return Memory(session)


def _check_opening(
    *,
    home: str | os.PathLike[str] | None,
    agent: str | None,
    projects: Mapping[str, str | os.PathLike[str]] | None,
    face: str,
    only: Collection[str],
) -> None:
    """Raise InvalidInput for a wrong argument of `open_memory`."""
    check("home", home, "str | os.PathLike[str] | None")
    check("agent", agent, "str | None")
    check("projects", projects, "dict[str, Any] | None")
    check("face", face, "str")
    check("only", only, "Collection[str]")
    for name, folder in (projects or {}).items():
        check("projects", name, "str")
        check_project_name(name)
        check(f"projects[{name!r}]", folder, "str | os.PathLike[str]")
    if agent is not None:
        check_agent(agent)


# The most characters of the path in a `repr`.
_REPR_LENGTH = 60


def _without_beginning(text: str) -> str:
    """Shorten a long path by dropping its beginning."""
    if len(text) <= _REPR_LENGTH:
        return text
    return f"…{text[1 - _REPR_LENGTH :]}"


def _as_draft(value: Draft | str) -> Draft:
    """Return a draft, or a text as a draft. Raises InvalidInput for any other value."""
    if isinstance(value, str):
        return Draft(value)
    if isinstance(value, Draft):
        check_fields(value)
        return value
    raise InvalidInput(
        f"A note is written from a text or a Draft; got {type(value).__name__}.",
        'Call memory.write("text") or memory.write(Draft("text", title="Title")).',
    )


def _names(projects: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names of projects as a tuple. None, which means all projects, stays None."""
    if projects is None:
        return None
    return tuple(projects)
