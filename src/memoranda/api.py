"""The public `Memory`: what a program can do with a person's notes, one verb a thing.

Each verb hands its work to the session inside (`Memory.session`), which faces and jobs use, or to
what stands above the engine: upkeep, ingestion, moving in and out. The latter is imported when it
is called.

The contract of a verb is written here only: its parameters, what it returns and raises. A verb of
the session refers to it, and says what goes beyond it.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from memoranda import clock as clocks
from memoranda.clock import Clock
from memoranda.engine import MemorySession, open_session
from memoranda.engine.reading import Ref
from memoranda.errors import InvalidInput
from memoranda.index.rows import Hits, NoteInfo, NotesListed
from memoranda.note.model import ARCHIVED, GLOBAL, Draft, Note
from memoranda.query import Query, check_memory

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine.erase import Erased
    from memoranda.engine.history import Revision
    from memoranda.engine.memory_links import NoteContext
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


class Memory:
    """An open memory, bound to one caller: see `open_memory`. Thread-safe.

    Close it, or use it as a context manager. Where a verb takes a `ref`, that is a note's title,
    path, permalink, `memory://` address, id or a unique beginning of one; a (project, path) pair;
    or a note that another verb returned.
    """

    def __init__(self, session: MemorySession):
        """Wrap an open session. Programs call `open_memory` instead.

        session: an open home as one caller uses it.
        """
        self._session = session

    def __repr__(self) -> str:
        if self.agent:
            caller = f" of agent {self.agent}"
        else:
            caller = ""
        return f"<Memory {_without_beginning(str(self.home))}{caller}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the home. Notes are on disk already."""
        self._session.close()

    @property
    def session(self) -> MemorySession:
        """The session inside, for interfaces of one's own: what it has may change."""
        return self._session

    @property
    def home(self) -> Path:
        """The root folder of this memory."""
        return self._session.home

    @property
    def agent(self) -> str | None:
        """The name of the caller; None is the owner."""
        return self._session.agent

    @property
    def projects(self) -> builtins.list[Project]:
        """All projects: the built-in ones, then those added, by name."""
        return self._session.projects

    @property
    def warnings(self) -> builtins.list[str]:
        """Warnings about what the last call could not see on disk, and notes of the write gate on
        it."""
        return [*self._session.warnings, *self._session.notices]

    # Writing

    def write(
        self, draft: Draft | str, *, overwrite: bool = False, checksum: str | None = None
    ) -> Note:
        """Store a note and return it.

        draft: the text, or a `Draft` that says more.
        overwrite: replace an existing note; it keeps its id, its permalink and the header keys the
            draft does not set.
        checksum: the checksum of the note as it was read; a file that has changed since is refused.

        Raises Exists, InvalidInput, Conflict, Locked, OutsideError, SecretRefused, StorageError.
        """
        stored = self._session.store(_as_draft(draft), overwrite=overwrite, checksum=checksum)
        return stored.note

    def write_many(self, drafts: Iterable[Draft | str]) -> builtins.list[Note]:
        """Store new notes as one change: all, or none when one of them is refused.

        drafts: texts or `Draft` values, as for `write`.

        Raises as `write`.
        """
        if isinstance(drafts, str | Draft):
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
        """Change a part of a note's text; every other byte stays. Returns the note.

        ref: the note.
        edit: what to do, such as `Append(text)`, `StrReplace(old, new)`, `ReplaceSection(...)`.
        checksum: the checksum of the note as it was read; a file that has changed since is refused.
        create: make a missing note; for `Append` and `Prepend`.
        project: the project in which `ref` is looked up.

        Raises NotFound, Ambiguous, Locked, Conflict, CountMismatch, SectionError.
        """
        changed = self._session.edit(ref, edit, checksum=checksum, create=create, project=project)
        return changed.note

    def tag(self, ref: Ref, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Note:
        """Add and remove tags in a note's header. Returns the note.

        ref: the note.
        add: tags to add.
        remove: tags to remove, in upper or lower case.

        Raises NotFound, Ambiguous, Locked.
        """
        return self._session.tag(ref, _texts(add, "add"), _texts(remove, "remove"))

    def link(self, ref: Ref, target: Ref, type: str = "links_to") -> bool:
        """Link two notes. Returns whether the link is new.

        Two memories get each other's id; another note gets a line with the relation.

        ref: the note the link starts from.
        target: the note it leads to.
        type: the type of the relation, for notes that are not memories.

        Raises NotFound, Ambiguous, Locked, InvalidInput for linking a note to itself.
        """
        return self._session.link(ref, target, type)

    def unlink(self, ref: Ref, target: Ref) -> bool:
        """Remove the link between two memories. Returns whether a link existed.

        ref: a memory.
        target: the memory it is linked to.

        Raises NotFound, Ambiguous, Locked, InvalidInput for notes that are not memories.
        """
        return self._session.unlink(ref, target)

    def move(
        self, ref: Ref, destination: str, *, project: str | None = None, follow: bool = False
    ) -> Moved:
        """Move a note inside its project.

        ref: the note.
        destination: the new path. If it ends in `/`, the file keeps its name; without an extension,
            `.md` is added.
        project: the project in which `ref` is looked up.
        follow: whether to change a permalink in the header to match the new path.

        Raises NotFound, Ambiguous, Exists, Locked, OutsideError.
        """
        return self._session.move(ref, destination, project=project, follow=follow)

    def delete(self, ref: Ref, *more: Ref, project: str | None = None) -> Deleted:
        """Delete notes as one change, which `undo` takes back.

        Other memories lose their links to the ids of these.

        ref: the note.
        more: further notes.
        project: the project in which they are looked up.

        Raises NotFound, Ambiguous, Locked.
        """
        return self._session.delete(ref, *more, project=project)

    def supersede(
        self, old: Ref, new: Ref | Draft, *, valid_from: str | None = None
    ) -> tuple[NoteInfo, Note]:
        """Mark a note as replaced by a newer one. Both stay, and both are returned.

        Both headers are written in one change.

        old: the note that no longer holds; it gets `valid_until`.
        new: the note that holds now, or the `Draft` of one; it gets `supersedes`.
        valid_from: since when, such as `2026-03-01` or `yesterday`. None means the `valid_from` of
            the new note or, without that, the moment it was written.

        Raises NotFound, Ambiguous, Locked; InvalidInput for a circle, for a note that is superseded
        already, and for a new note that fewer agents may see.
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
        """Store a reminder. Returns the note.

        text: what to remind of, with the time unless `at` names it.
        at: the time, such as `tomorrow at 3pm` or `every friday`.
        tags: the note's tags.
        scope: who sees it: `global`, or `agent:NAME`.
        source: where it comes from.

        Raises TimeRefused, and as `write`.
        """
        from memoranda.jobs import reminders

        session = self._session
        session.check_scope(scope)
        reading = reminders.read_time(session, text if at is None else at)
        return reminders.store(
            session, text, reading, tags=_texts(tags, "tags"), scope=scope, source=source
        )

    def bring_back(self, ref: Ref, category: str | None = None) -> Note:
        """Take a note out of the archive and return it.

        A memory goes to its category, a note of another project returns to its former place.

        ref: the note.
        category: the category for a memory, in place of its own.

        Raises NotFound, Ambiguous, Locked; Exists if another note has taken its place; InvalidInput
        for a note that is not archived.
        """
        info = self._session.find(ref)
        if info.phase != ARCHIVED:
            raise InvalidInput(f"{info.permalink} is not archived.")
        check_memory(category)
        return self._session.bring_back(info, category)

    # Reading

    def read(self, ref: Ref, *, project: str | None = None, count: bool = True) -> Note:
        """Read a whole note as it is on disk.

        ref: the note.
        project: the project in which `ref` is looked up.
        count: whether this counts as a use of the note.

        Raises NotFound, Ambiguous, NotText.
        """
        return self._session.read(ref, project=project, count=count)

    def find(self, ref: Ref, project: str | None = None) -> NoteInfo:
        """Look a note up in the index, without its text.

        ref: the note.
        project: the project in which it is looked up.

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
        """List the notes that pass filters. Returns one page, and how many there are in all:
        `.notes` and `.total`, which unpack as a pair.

        query: filters, such as `"tag:ui project:notes"`, or a `Query`.
        limit: notes on the page; 0 is all of them.
        offset: notes to skip.
        order: `changed` or `created`, newest first, `path` or `address`; None means the order of
            the query.
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
        """Find notes, the best first.

        What is over or superseded is left out unless nothing else matches; `Query.as_of` asks
        for another day. Beyond 10,000 matches are not counted (`Hits.is_lower_bound`).

        query: words, with filters such as `tag:ui` and `after:7d` among them, or a `Query`.
        limit: hits on the page.
        offset: hits to skip.
        explain: whether each hit says what adds how much to its score.
        max_tokens: the length of all passages together, at 4 characters a token.
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
        """List the notes changed lately, newest first. Returns a page, the number of all such
        notes, and the moment at which `timeframe` begins.

        timeframe: such as `2h`, `7d`, `3 weeks`, `yesterday` or a day.
        projects: names of projects; None means all projects.
        limit: notes on the page.
        offset: notes to skip.

        Raises TimeframeError, ProjectNotFound.
        """
        if projects is None:
            names = None
        else:
            names = tuple(_texts(projects, "projects"))
        since = self._session.since(timeframe)
        query = Query(projects=names, after=since)
        return *self._session.list(query, limit=limit, offset=offset), since

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
        """List the folders and notes below a folder: folders first, then by name.

        project: the project's name.
        folder: a path inside it; empty is the whole project.
        depth: how many levels to show.
        glob: a pattern of file names, such as `*.md`.
        limit: entries on the page; 0 is all of them.
        offset: entries to skip.

        Raises NotFound, ProjectNotFound, OutsideError.
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
        """Collect the best evidence for a question as text for a prompt, with dates and addresses.

        Empty where no passage has enough to do with the question.

        question: the question, a task, or the last turns of a conversation.
        max_tokens: the length of the text, at 4 characters a token; None is 2000.
        projects: names of projects; None is all of them.
        as_of: the moment whose facts are asked for; None is the present.

        Raises InvalidInput, ProjectNotFound.
        """
        if projects is None:
            names = None
        else:
            names = tuple(_texts(projects, "projects"))
        return self._session.context_for(
            question, max_tokens=max_tokens, projects=names, as_of=as_of
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
        """Show what a note says, its relations both ways, and the notes near it.

        ref: the note.
        depth: how many links away the other notes may be.
        since: only notes changed since this moment.
        limit: how many other notes.
        project: the project in which `ref` is looked up.

        Raises NotFound, Ambiguous.
        """
        return self._session.context(ref, depth=depth, since=since, limit=limit, project=project)

    def backlinks(self, ref: Ref) -> builtins.list[NoteInfo]:
        """List the notes that link to a note, newest first.

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
        """List changes, newest first.

        ref: an id or `project/path`: only changes of this note; None is all notes.
        limit: how many; 0 is all of them.
        agent: only changes by this agent.
        since: only changes since this moment.

        Raises NotFound, Ambiguous.
        """
        return self._session.log(ref, limit=limit, agent=agent, since=since)

    def revisions(self, change: int, *, limit: int = 0) -> builtins.list[Revision]:
        """Show what a change did: the text of each note before and after it.

        change: the change's number in `log`.
        limit: how many notes; 0 is all of them.

        Raises NotFound.
        """
        return self._session.revisions(change, limit=limit)

    def undo(self, change: int | None = None) -> Change:
        """Take a change back. Returns the change that does so.

        A job whose action is taken back does not repeat it for that note.

        change: its number in `log`; None is the latest that was not taken back yet.

        Raises CannotUndo, NotFound.
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
        """Bring an older text of a note back. Returns its `project/path`, and the number of the
        change the text comes from.

        ref: the note's id or `project/path`; it may be deleted.
        at: the moment whose text is wanted.
        change: the number of the change that replaced the text. Without `at` and `change`, the text
            before the last change is restored.
        to: another place, as `project/path`.

        Raises NotFound, Exists; CannotUndo if this would replace a text that was just restored.
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
        """Remove notes for good, and their history too. This cannot be undone.

        refs: the notes; also the path of a deleted file as `log` shows it, or an entry of JSON
            files used in place, `FOLDER/NAMESPACE.json:KEY`.
        agent: all notes that this agent made or keeps private.
        project: all notes of this project.
        source: all notes of this source.
        observation: only this observation of the one note named.
        dry_run: only say what would go.

        Raises NotFound, Ambiguous, Locked, StorageError; InvalidInput if the caller is an agent.
        """
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
        """List what upkeep asks the owner. An agent is asked nothing.

        Many questions of a kind are one, unless `kind` asks for them.

        limit: how many questions; 0 is all of them.
        offset: questions to skip.
        kind: only questions of this kind, such as `merge` or `suspicious`.

        Raises InvalidInput for a kind there is not.
        """
        return self._session.review(limit=limit, offset=offset, kind=kind)

    def decide(self, question: str | ReviewItem, choice: str) -> ReviewItem:
        """Answer a question of `review` and return it. The choice is carried out now or noted for
        later.

        question: the question, or its key.
        choice: the letter of one of its choices.

        Raises NotFound if the question is not open; InvalidInput for another letter, for an agent,
        and for a list that has changed; what the change itself raises.
        """
        return self._session.decide(question, choice)

    # Projects and settings

    def add_project(
        self, name: str, folder: str | os.PathLike[str], *, default: bool = False
    ) -> Project:
        """Use a folder of notes, or a graph file, in place as a project. Returns the project.

        name: the name it gets.
        folder: an absolute path, or one from `~`; a missing folder is made.
        default: whether new notes go there.

        Raises InvalidInput, Exists, ProjectRefused.
        """
        project, _ = self._session.add_project(name, os.fspath(folder), default)
        return project

    def remove_project(self, name: str) -> Project:
        """Forget a project; its files stay. Returns it.

        name: the project's name.

        Raises ProjectNotFound, ProjectRefused.
        """
        return self._session.remove_project(name)

    def configure(self, key: str, value: Setting) -> None:
        """Set a key of config.yaml.

        key: such as `daemon.interval`; `memory config list` shows all.
        value: its value; None removes the key.

        Raises ConfigError, and InvalidInput for an agent. Nothing is written then.
        """
        self._session.configure(key, value)

    # Upkeep, moving in and out

    def upkeep(self, *, dry_run: bool = False) -> builtins.list[Outcome]:
        """Run the four jobs of `memory consolidate`: expire, decay, upgrade, consolidate.

        dry_run: only plan; the outcomes hold the actions that would be taken.

        A job that fails does not stop the others: its outcome has the `error`.
        """
        from memoranda.jobs import lifecycle

        return lifecycle.consolidate(self._session, dry_run=dry_run)

    def decay(self, *, dry_run: bool = False) -> builtins.list[Action]:
        """Archive organized memories that are old and were never used. Returns the actions.

        dry_run: only plan.
        """
        from memoranda.jobs import lifecycle

        return lifecycle.decay(self._session, dry_run=dry_run)

    def dream(self, level: int = 1, *, dry_run: bool = False) -> Dream:
        """Put memories in order.

        level: 1 sorts the inbox, 2 also merges what is similar, 3 also links and reminds.
        dry_run: only plan.

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
        """Take the notes of other programs in. Returns the counts of each source.

        source: names of sources, parted by commas; `all` is all that are there.
        path: the folder to read, in place of the one of the source.
        dry_run: only count.
        again: bring back what was deleted here.

        Raises InvalidInput for an unknown source or a missing folder.
        """
        from memoranda import ingest

        if path is None:
            folder = None
        else:
            folder = os.fspath(path)
        sources = ingest.named_sources(source, folder, self._session.settings)
        plans, outcomes = ingest.run(self._session, sources, dry_run=dry_run, takes_removed=again)
        return {plan.source: outcome for plan, outcome in zip(plans, outcomes, strict=True)}

    def export(self, *, category: str | None = None, scope: str | None = None) -> Iterator[str]:
        """Write the memories as lines of JSON, oldest first.

        category: only memories of this category.
        scope: only memories of this scope.

        Raises InvalidInput for a category or scope there is not.
        """
        from memoranda.transfer.jsonl import exported_lines

        check_memory(category, scope=scope)
        return exported_lines(self._session, category, scope)

    def import_(self, lines: Iterable[str | bytes], *, skip_bad: bool = False) -> Tally:
        """Take in lines of `export`; doing it twice is doing it once. Returns the counts.

        lines: the lines. All are checked before anything is written.
        skip_bad: leave bad lines out.

        Raises InvalidInput for a bad line, unless they are left out.
        """
        from tempfile import TemporaryFile

        from memoranda.transfer.jsonl import Import, Tally

        with TemporaryFile() as file:
            for line in lines:
                if isinstance(line, str):
                    data = line.encode()
                else:
                    data = line
                file.write(data if data.endswith(b"\n") else data + b"\n")
            importing = Import(self._session, file, skip_bad=skip_bad)
            tally = Tally()
            if not skip_bad:
                importing.check()
            importing.run(tally, lambda _: None)
        return tally

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        """Rebuild the index from the files. Returns the number of notes and of projects.

        progress: called with the number of files done, and the number of all files.
        """
        return self._session.reindex(progress)

    def stats(self) -> HomeCounts:
        """Count the notes by project, phase and category."""
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
    """Open the memory of a person.

    home: its folder, or the address of a space of a database,
        `postgresql://HOST/DATABASE?space=NAME`. None means the first of these that is set:
        MEMORY_HOME, the configuration's `storage.root`, `~/.memory`.
    agent: the caller's name; it sees notes of scope `global` and its own. None is the owner.
    projects: folders or graph files by name, as projects of this process only.
    face: what the history calls the program that writes.
    config: a configuration file, or settings already loaded.
    clock: tells the time; for tests.
    watch: learn of changes on disk from the system, as a long-lived program should.
    only: names of projects; if given, only these exist in this process.

    Raises ConfigError, StorageError.
    """
    session = open_session(
        home, agent, projects, face=face, config=config, clock=clock, watch=watch, only=only
    )
    return Memory(session)


# Characters of a `repr`.
_REPR_LENGTH = 60


def _without_beginning(text: str) -> str:
    """Shorten a long path by dropping its beginning."""
    if len(text) <= _REPR_LENGTH:
        return text
    return f"…{text[1 - _REPR_LENGTH :]}"


def _as_draft(value: Draft | str) -> Draft:
    """The draft of a text. Raises InvalidInput for what is neither."""
    if isinstance(value, str):
        return Draft(value)
    if isinstance(value, Draft):
        if not isinstance(value.text, str):
            raise InvalidInput(f"The text of a draft is a str; got {type(value.text).__name__}.")
        _texts(value.tags, "tags")
        return value
    raise InvalidInput(
        f"A note is written from a text or a Draft; got {type(value).__name__}.",
        'Call memory.write("text") or memory.write(Draft("text", title="Title")).',
    )


def _texts(values: Sequence[str], name: str) -> Sequence[str]:
    """Several texts. Raises InvalidInput for one text, whose letters nobody means."""
    if isinstance(values, str):
        raise InvalidInput(f"`{name}` is a list of texts; got one text.", f'Use ["{values}"].')
    return values
