"""Verbs that store, edit, tag and supersede notes, and bring archived notes back.

Each verb is one change: either all of it is written, or nothing. This module also decides in which
file a new note is stored (note/links.py makes the name of the file), and when a new memory expires.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.clock import stamp
from memoranda.engine.engine import verb
from memoranda.engine.links import memory_links
from memoranda.engine.links.habits import (
    Habits,
    habits_of,
    usual_folder,
    usual_place_of_day,
    with_tags,
)
from memoranda.engine.links.link_style import in_link_style
from memoranda.engine.links.memory_links import LinkVerbs
from memoranda.engine.links.relinking import put_texts, relink_anchors
from memoranda.engine.places import PlaceVerbs
from memoranda.engine.reading import Ref
from memoranda.engine.suspicion import KEEP, claim_of_text
from memoranda.engine.transaction import Transaction
from memoranda.engine.writing import (
    check_etag,
    editable,
    encoded,
    follow_content,
    new_scope,
    pinned_down,
    place_memory,
    set_keys,
    with_keys,
)
from memoranda.errors import (
    CountMismatch,
    Exists,
    InvalidInput,
    Locked,
    MemorandaError,
    NotFound,
    OutsideError,
    SectionError,
    choices,
)
from memoranda.index.rows import NoteInfo
from memoranda.ledger.review_rows import ANSWER
from memoranda.note import links
from memoranda.note.model import (
    ARCHIVE_PROJECT,
    ARCHIVED,
    CATEGORIES,
    CATEGORY_PROJECT,
    GLOBAL,
    INBOX,
    ORGANIZED,
    REMINDERS,
    Draft,
    Note,
)
from memoranda.note.names import Looseness, file_key, without_case
from memoranda.sources import path_guard
from memoranda.sources.base import File
from memoranda.sources.step import Step

if TYPE_CHECKING:
    from memoranda.note.edit import Edit, Edited


# The header keys that a note gets when it is archived.
_ARCHIVING_KEYS = ("phase", "category", "archived_at", "archived_by", "archived_from")


@dataclass(slots=True)
class Stored:
    """A note that was just written.

    created: whether the note is new. False means that it replaced another note.
    """

    note: Note
    created: bool


@dataclass(slots=True)
class Changed:
    """A note after an edit.

    edited: the effect of the edit on the text.
    created: whether the edit created the note.
    updated: other notes that were changed, too, because they link to a heading or block that the
        edit renamed.
    broken: notes that link to such a heading or block, but could not be changed.
    """

    note: Note
    edited: Edited
    created: bool = False
    updated: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


class _Place(NamedTuple):
    """The place for a note in its project.

    path: the path in the project.
    info: the note that is there. None if the place is free.
    file: the file of that note. None if the place is free.
    """

    path: str
    info: NoteInfo | None
    file: File | None


class _NewNote(NamedTuple):
    """The names of a note that is about to be written."""

    project: str
    path: str
    title: str
    permalink: str


class NoteVerbs(PlaceVerbs, LinkVerbs):
    """The verbs that write notes."""

    @verb
    def read(self, ref: Ref, *, project: str | None = None, count: bool = True) -> Note:
        """Return a note (see `Memory.read`).

        Reading an archived memory takes it out of the archive (contract 001, 18.1). The memory
        stays there if it cannot be moved: the caller only reads, the home is read-only, or a lock
        is held too long. It is returned in any case.

        ref: the note: an id, path, title or permalink, a (project, path), or a note.
        project: the project in which to look for it; None for all.
        count: whether to count one read of the note. If not, an archived memory stays in the
            archive.
        """
        note = super().read(ref, project=project, count=count)
        may_bring_back = count and not self.only_reads
        if may_bring_back and note.project == ARCHIVE_PROJECT:
            with suppress(MemorandaError):
                return self.bring_back(note)
        return note

    @verb
    def bring_back(self, ref: Ref, category: str | None = None) -> Note:
        """Take a note out of the archive (see `Memory.bring_back`).

        A memory counts as sorted afterwards, and does not expire.

        category: the category that a memory gets. None means the one that it had before.

        Raises the errors of `Memory.bring_back`, NotText and StorageError.
        """
        with self.change("restore", fresh=False) as transaction:
            info = self.find(ref, looseness=Looseness.CASE)
            # A note that is not archived would be moved out of its project.
            if info.phase != ARCHIVED and info.project != ARCHIVE_PROJECT:
                raise InvalidInput(f"{info.permalink} is not archived.")
            if info.header.get("archived_from"):
                self._put_back(transaction, info)
            else:
                self._bring_back(transaction, info, category or info.category or INBOX)
        return transaction.written(transaction.steps[0])

    def _bring_back(self, transaction: Transaction, info: NoteInfo, category: str) -> None:
        """Add the step that moves a memory from the archive to a category."""
        from memoranda.note.frontmatter import REMOVE

        file, text = editable(self, info)
        # The move changes the path and the times of the file. So a property that a hand-made file
        # gets from these is written to its header first.
        keys = pinned_down(info) | {
            "phase": ORGANIZED,
            "category": category,
            "expires_at": None,
            "last_used_at": stamp(self.clock()),
            "archived_at": REMOVE,
            "archived_by": REMOVE,
        }
        data = with_keys(info, text, keys)
        place_memory(
            self,
            transaction,
            info,
            file,
            data,
            project=CATEGORY_PROJECT,
            category=category,
            scope=info.scope,
        )

    def _put_back(self, transaction: Transaction, info: NoteInfo) -> None:
        """Add the steps that move a note that is not a memory from the archive back to its former
        place.

        The header keys that the archive added are removed. Raises Exists if the place is taken.
        """
        from memoranda.note.frontmatter import REMOVE

        file, text = editable(self, info)
        origin = str(info.header["archived_from"])
        project, _, path = origin.partition("/")
        keys = dict.fromkeys(_ARCHIVING_KEYS, REMOVE)
        # If the note had no title, the archive gave it the name of its file as a title.
        if info.title == path.rpartition("/")[2].removesuffix(".md"):
            keys["title"] = REMOVE
        if self.engine.source(project).place(path).kind != "missing":
            raise Exists(origin)
        data = with_keys(info, text, keys)
        transaction.put(project, path, data, mode=file.mode, scope=info.scope)
        transaction.remove(info.project, info.path, file, scope=info.scope)

    def write(self, draft: Draft) -> Note:
        """Store a new note. Raises InvalidInput, Exists, OutsideError, StorageError."""
        return self.store(draft).note

    @verb
    def write_many(self, drafts: Iterable[Draft]) -> list[Note]:
        """Store several notes as one change (see `Memory.write_many`)."""
        outcomes = self._write_drafts(list(drafts), overwrite=False, checksum=None)
        return [outcome.note for outcome in outcomes]

    @verb
    def store(
        self, draft: Draft, *, overwrite: bool = False, checksum: str | None = None
    ) -> Stored:
        """Store a note (see `Memory.write`).

        overwrite: whether the draft may replace a note.
        checksum: the checksum that the replaced note must have; None for any checksum.
        """
        return self._write_drafts([draft], overwrite=overwrite, checksum=checksum)[0]

    def _write_drafts(
        self, drafts: Sequence[Draft], *, overwrite: bool, checksum: str | None
    ) -> list[Stored]:
        """Write the drafts as one change, and return the notes in the order of the drafts.

        Every draft is checked before the first byte is written.

        overwrite: whether a draft may replace a note.
        checksum: the checksum that the replaced note must have; None for any checksum.
        """
        needs_index = any(draft.project != CATEGORY_PROJECT for draft in drafts)
        with self.change("write", fresh=needs_index) as transaction:
            taken_places: set[tuple[str, str]] = set()
            permalinks: set[str] = set()
            steps: list[Step] = []
            for draft in drafts:
                old = memory_links.supersedable(self, draft.supersedes)
                draft = self._complete_draft(draft, old)
                if draft.project == CATEGORY_PROJECT:
                    step = self._put_memory(transaction, draft)
                else:
                    step = self._put_note(transaction, draft, overwrite, checksum, permalinks)

                place = (step.project, file_key(step.path))
                if place in taken_places:
                    # Two drafts of this call would write the same file.
                    raise Exists(step.path)
                taken_places.add(place)
                steps.append(step)

                if old:
                    transaction.verb = "supersede"
                    memory_links.end_superseded(self, transaction, old, draft, step)
            # The history names the change after its first draft.
            if steps and steps[0].old is not None:
                transaction.verb = "overwrite"
        return [Stored(transaction.written(step), created=step.old is None) for step in steps]

    def _complete_draft(self, draft: Draft, superseded: list[NoteInfo]) -> Draft:
        """Return a draft with a checked scope, and with the times when it begins and ends to be valid.

        superseded: the notes that the draft supersedes.
        """
        scope = self.check_scope(draft.scope)
        if scope != draft.scope:
            draft = replace(draft, scope=scope)
        if superseded or draft.valid_from or draft.valid_until:
            draft = memory_links.with_validity(self, draft, superseded)
        return draft

    @verb
    def supersede(
        self, old: Ref, new: Ref | Draft, *, valid_from: str | None = None
    ) -> tuple[NoteInfo, Note]:
        """Mark a note as replaced by a newer note (see `Memory.supersede`).

        new: the newer note, or a draft of it, which is written first.
        valid_from: when the newer note begins to be valid; None means the time in the draft or,
            without one, the present.

        Returns the old note and the newer note.
        """
        if isinstance(new, Draft):
            before = self.find(old, looseness=Looseness.CASE)
            place = (before.project, before.path)
            draft = replace(
                new,
                supersedes=[*new.supersedes, place],
                valid_from=valid_from or new.valid_from,
            )
            note = self.write(draft)
            return self.find(place), note
        with self.change("supersede") as transaction:
            before = self.find(old, looseness=Looseness.CASE)
            after = self.find(new, looseness=Looseness.CASE)
            step = memory_links.supersede(self, transaction, before, after, valid_from)
        return self.find((before.project, before.path)), transaction.written(step)

    def _put_memory(self, transaction: Transaction, draft: Draft) -> Step:
        """Add the step that writes a new memory (contract 001, 2), and return the step.

        draft: the text and the further properties of the memory.

        Raises InvalidInput for an unknown category or an empty text.
        """
        category = draft.category or INBOX
        if category not in CATEGORIES:
            raise InvalidInput(f'invalid category "{category}"', choices(category, CATEGORIES))
        if not draft.text.strip():
            raise InvalidInput("content must not be empty")

        # These imports take 5 ms, and only new memories need them.
        from uuid import uuid4

        from memoranda.note import markdown

        moment = self.clock()
        identity = str(uuid4())
        record = markdown.Record(
            id=identity,
            content=draft.text,
            category=category,
            created=moment,
            updated=moment,
            scope=draft.scope,
            tags=tuple(draft.tags),
            source=draft.source or self.agent,
            expires=self._end_of_memory(draft, category, moment),
            further=self._further_keys(draft, category, moment),
        )
        path = self._path_of_memory(draft.text, category, identity)
        data = encoded(record.text())
        scope = new_scope(self, data, identity=identity)
        return transaction.put(CATEGORY_PROJECT, path, data, scope=scope)

    def _end_of_memory(self, draft: Draft, category: str, moment: datetime) -> datetime | None:
        """Return when a new memory expires. None if it does not.

        moment: when the memory is written.
        """
        if draft.expires is not None or category != INBOX:
            return draft.expires
        try:
            return moment + self.settings.short_term_ttl
        except OverflowError:
            # The owner may set so long a time to live that the calendar ends before it.
            return None

    def _further_keys(self, draft: Draft, category: str, moment: datetime) -> dict[str, object]:
        """Return those header keys of a new memory that not every memory has.

        moment: when the memory is written. The times in the text of a reminder are read from there.
        """
        keys: dict[str, object] = {}
        if draft.title:
            keys["title"] = draft.title
        if draft.date:
            keys["date"] = draft.date
        keys |= draft.metadata
        # A reminder is due at the time that its text names (contract 001, 3).
        if category == REMINDERS and not draft.metadata.get("due_at"):
            # These imports take 10 ms, and only reminders need them.
            from memoranda.note import reminder, timephrase

            zone = self.settings.reading_zone
            hour = self.settings.day_hour
            # The text may name no time, or an unclear one. Then the reminder has no time.
            with suppress(InvalidInput):
                keys |= reminder.keys_of(timephrase.read(draft.text, moment, zone, hour))
        return keys

    def _path_of_memory(self, text: str, category: str, identity: str) -> str:
        """Return the path of a new memory in its project.

        It is `CATEGORY/SLUG-ID8.md`, such as `inbox/buy-milk-1a2b3c4d.md`: the slug is made from
        the text, and the last part is the beginning of the id.
        """
        path = f"{category}/{links.memory_file_name(text, identity)}"
        root = self.engine.source(CATEGORY_PROJECT).root
        if not os.path.lexists(os.path.join(root, path)):
            return path
        # The name has only the first digits of the id, so another memory may have it. The whole id
        # is unique.
        return f"{category}/{identity}.md"

    def _put_note(
        self,
        transaction: Transaction,
        draft: Draft,
        overwrite: bool,
        checksum: str | None,
        taken_permalinks: set[str],
    ) -> Step:
        """Add the step that writes a note, and return the step (contract 000b, 7, write_note).

        overwrite: whether the draft may replace a note.
        checksum: the checksum that the replaced note must have; None for any checksum.
        taken_permalinks: the permalinks of the notes that this change has written so far. The permalink
            of the new note is added.
        """
        from memoranda.note import markdown

        project, path, title = self._place_of(draft)
        namesake = None if draft.file_name else title
        place = self._free_or_same_place(project, path, namesake)
        _check_overwrite(place, project, overwrite=overwrite, checksum=checksum)

        # The place may differ from the path of the replaced note in case. The file keeps its name.
        path = place.path if place.info is None else place.info.path
        permalink = self.free_permalink(project, path, taken_permalinks)
        taken_permalinks.add(permalink)
        text = self._compose(draft, _NewNote(project, path, title, permalink), place)

        data = encoded(text)
        # The permalink that was chosen above is free. But a replaced note or the draft may have
        # another one.
        if place.info is not None or _names_permalink(draft):
            self._check_permalink(project, path, markdown.own_permalink(text))
        scope = new_scope(self, data, place.file.data if place.file else None)
        return transaction.put(project, path, data, old=place.file, scope=scope)

    def _compose(self, draft: Draft, new: _NewNote, place: _Place) -> str:
        """Return the text of the file for a new note, with its header.

        draft: the content and the properties of the note.
        new: the names of the note.
        place: the place of the note. If another note is there, some of its header keys stay.
        """
        from memoranda.note import markdown

        replaced_text = ""
        kept_keys: dict[str, object] = {}
        if place.info is not None and place.file is not None:
            replaced_text = place.file.data.decode("utf-8", "replace")
            replaced_note = self.parse(new.project, new.path, place.file)
            kept_keys = _kept_keys(place.info, replaced_note)

        content = draft.text
        tags: Sequence[str] = draft.tags
        usual_keys: set[str] | None = None
        habits = habits_of(self, new.project)
        # Another program uses this folder, too. So the note gets only the header keys that the
        # notes in this folder usually have.
        if habits is not None:
            content, tags = with_tags(content, tags, habits)
            usual_keys = _usual_keys(habits, replaced_text, new.title, new.path)
            if replaced_text:
                kept_keys = {key: value for key, value in kept_keys.items() if key in usual_keys}

        text = markdown.compose_note(
            content,
            title=new.title,
            type=draft.type,
            tags=tags,
            metadata=_metadata_of(draft),
            created=self.clock(),
            permalink=new.permalink,
            keep=kept_keys,
            old=replaced_text,
            habits=usual_keys,
        )
        if replaced_text:
            text = markdown.with_counted_time(replaced_text, text, self.clock())
        return in_link_style(self, new.project, new.path, text, replaced_text)

    def _place_of(self, draft: Draft) -> tuple[str, str, str]:
        """Return the project, path and title of the note that a draft would make.

        Raises InvalidInput, OutsideError, ProjectNotFound.
        """
        if draft.category is not None:
            raise InvalidInput(
                f"A note of project {draft.project} has no category; memories have one.",
                "Leave the project out, or the category.",
            )
        source = self.source_named(draft.project)
        if source.name == ARCHIVE_PROJECT:
            raise InvalidInput(
                "Notes cannot be written into the archive; archive a memory instead."
            )
        title = draft.title or _first_line(draft.text)
        if not title.strip():
            raise InvalidInput("Parameter `title` must not be empty.")
        folder, file_title = self._usual_place_of(draft, source.name, title)
        folder = path_guard.clean(folder, source.name)
        # A folder that exists in another case or Unicode form is the same folder.
        folder = self.engine.spelled(source.name, folder)
        name = links.file_name(file_title)
        if name.startswith("."):
            # A dot would hide the file.
            name = "_" + name[1:]
        path = f"{folder}/{name}".lstrip("/")
        self._check_place(source.name, path)
        return source.name, path, title

    def _usual_place_of(self, draft: Draft, project: str, title: str) -> tuple[str, str]:
        """Return the folder of a draft as written, and the title that names its file.

        A draft without a folder goes where the vault usually has such notes. A draft with folder
        `/` goes to the root of the project.

        title: the title of the note.
        """
        file_title = draft.file_name or title
        if draft.folder:
            folder = "" if draft.folder == "/" else draft.folder
            return folder, file_title
        # No other program has settings for a built-in project.
        if project in self.engine.layout.built_in:
            return "", file_title
        if not draft.file_name:
            day = usual_place_of_day(self, project, title)
            if day is not None:
                return day
        return usual_folder(self, project), file_title

    def _check_permalink(self, project: str, path: str, permalink: str | None) -> None:
        """Raise InvalidInput if `permalink` is already the address of another note."""
        if not permalink:
            return
        holder = self.permalink_holder(project, path, permalink)
        if holder is not None:
            raise InvalidInput(
                f'The permalink "{permalink}" is the address of {holder.path}. '
                "Leave it out, or choose another."
            )

    def _free_or_same_place(self, project: str, path: str, title: str | None) -> _Place:
        """Find the place for a note: a free one, or the place of a note that it may replace.

        The path gets a number, such as `plan 2.md`, in two cases: the caller may not see the note
        at the place, or that note has another title that makes the same file name. Paths that
        differ only in case or Unicode form are the same place.

        title: the title of the new note. None means that the caller chose the file name, so that
            the title of the other note does not matter.

        Raises Exists if something other than a note is at the place. Raises InvalidInput if a
        number would not help, because the title is exactly the name of the file.
        """
        notes = self.index.notes
        source = self.engine.source(project)
        stem, dot, suffix = path.rpartition(".")
        place = path
        number = 1
        while True:
            self.engine.freshness.show_if_late(project, place)
            info = notes.get(project, place) or notes.in_other_case(project, place)
            if info is None:
                if source.place(place).kind != "missing":
                    raise Exists(place, f"{project}/{place}")
                return _Place(place, info=None, file=None)

            # The place of a note that the caller may not see is taken, so the next number is tried.
            if self.sees(info.scope):
                if not _is_other_title(info, path, title):
                    return _Place(place, info, source.read(info.path))
                is_name_of_file = links.file_name(title or "") == f"{title}.md"
                if is_name_of_file:
                    raise InvalidInput(
                        f'The file {info.path} is that of the note "{info.title}". '
                        "Choose another title or directory."
                    )
            number += 1
            place = f"{stem} {number}{dot}{suffix}"

    @verb
    def edit(
        self,
        ref: Ref,
        edit: Edit,
        *,
        checksum: str | None = None,
        create: bool = False,
        project: str | None = None,
        undoes: int | None = None,
    ) -> Changed:
        """Change a part of a note (see `Memory.edit`).

        ref: the note to change.
        edit: what to do to its text.
        checksum: the checksum that the note must have; None for any checksum.
        create: whether `append` and `prepend` may create a missing note.
        project: the project in which to look for the note; None for all.
        undoes: the number of the change that the edit takes back, while later changes of the note
            stay. The history then shows the edit as an undo. None for any other edit.

        Raises NotText, the errors of `Memory.edit`, and the errors of the edit itself.
        """
        with self.change("edit" if undoes is None else "undo") as transaction:
            transaction.undoes = undoes
            try:
                info = self.find(ref, project, looseness=Looseness.CASE)
            except NotFound:
                if not create or not isinstance(ref, str):
                    raise
                return self._create(ref, edit, project)
            file, text = editable(self, info)
            if checksum is not None:
                check_etag(info, file, checksum)

            edited = _apply_edit(edit, text, info.permalink)
            # The style comes before the anchors: it is for the lines that the caller wrote. A line
            # whose link is only rewritten because a heading was renamed keeps its own form.
            styled_text = in_link_style(self, info.project, info.path, edited.text, text)
            new_text, relinked = relink_anchors(self, info, text, styled_text)
            # The header has the hash and the version of the content, so the content is final now.
            data = follow_content(self, info, text, new_text).encode()
            # The check of what the caller may write needs the bytes that will be in the file.
            scope = new_scope(self, data, file.data)
            step = transaction.put(info.project, info.path, data, old=file, scope=scope)
            # Other notes with links to a renamed heading change in the same change, so that one
            # undo takes all back.
            put_texts(transaction, relinked)
            if undoes is None:
                self._keep_confirmed(transaction, info, file, data)
        note = transaction.written(step)
        return Changed(note, edited, updated=relinked.updated, broken=relinked.broken)

    def _keep_confirmed(
        self, transaction: Transaction, info: NoteInfo, before: File, data: bytes
    ) -> None:
        """Add to the owner's edit of a note that its new text is confirmed, if the present one is.

        What the owner wrote is the owner's, and the rest was confirmed before. Jobs confirm nothing.

        before: the file of the note as it was read.
        data: its new bytes.
        """
        is_by_owner = self.agent is None and self.run is None
        # The index may not have the present text, if an editor has just saved it.
        if not is_by_owner or info.provenance.trust == "owner" or info.etag != before.etag:
            return
        if self.decision(self.claim(info)) != KEEP:
            return
        after = self.parse(info.project, info.path, replace(before, data=data))
        answer = {"choice": KEEP, "time": stamp(self.clock())}
        rows = self.engine.ledger.review_rows
        transaction.steps.append(rows.step(ANSWER, claim_of_text(info.id, after), answer))

    def _create(self, identifier: str, edit: Edit, project: str | None) -> Changed:
        """Create a note that should be edited but does not exist. Its text is the text of the edit.

        identifier: the path or title of the missing note.

        Raises NotFound unless the edit is an `append` or a `prepend`.
        """
        from memoranda.note import edit as edits

        if not isinstance(edit, (edits.Append, edits.Prepend)):
            raise NotFound(identifier, project or self.default_project)
        name, path = self._place_of_missing(identifier, project)
        folder, _, title = path.rpartition("/")
        if title.lower().endswith(".md"):
            title = title[: -len(".md")]
        if title.startswith("."):
            raise OutsideError(identifier, name)
        note = self.store(Draft(edit.text, project=name, folder=folder, title=title)).note
        return Changed(note, edits.Edited(note.text), created=True)

    def _place_of_missing(self, identifier: str, project: str | None) -> tuple[str, str]:
        """Return the project and the path that the identifier of a missing note means.

        The usual project is the one that the caller named, or else the default project.

        - `plan` is in the usual project.
        - `work/plan` is `plan` in the project `work`. If there is no such project, or the caller
          named another one, it is `work/plan` in the usual project.
        - `memory://work/plan` means the same, but `work` must be a project, or a folder of the usual
          project.

        project: the project that the caller named; None if the caller named no project.

        Raises ProjectNotFound, and InvalidInput for an address in another project than `project`.
        """
        usual_project = self.source_named(project).name if project else self.default_project
        path = links.parse_address(identifier)
        first_part, slash, remaining_path = path.partition("/")
        if not slash:
            return usual_project, path

        projects_by_name = {
            name.lower(): name for name in self.engine.sources if self.may_use(name)
        }
        first_project = projects_by_name.get(first_part.lower())
        may_be_in_first_project = project is None or first_project == usual_project
        if first_project is not None and may_be_in_first_project:
            return first_project, remaining_path

        is_address = identifier.startswith(links.SCHEME)
        if not is_address or self._kind(usual_project, first_part) == "folder":
            return usual_project, path
        source = self.source_named(first_part)
        if project is not None:
            raise InvalidInput(
                f"{identifier} names project {source.name}, the call {usual_project}."
                " Name one of them."
            )
        return source.name, remaining_path

    @verb
    def tag(self, ref: Ref, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Note:
        """Add and remove tags of a note (see `Memory.tag`).

        add, remove: the tags. A tag in both is removed.
        """
        return self.tag_many([ref], add, remove)[0]

    @verb
    def tag_many(
        self, refs: Iterable[Ref], add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> list[Note]:
        """Add and remove tags of several notes as one change.

        If one note cannot be changed, no note is changed.

        add, remove: the tags. A tag in both is removed.

        Returns the notes, each once.
        """
        from memoranda.note.frontmatter import REMOVE
        from memoranda.note.markdown import other_tag_keys

        with self.change("tag") as transaction:
            named_notes = [self.find(ref, looseness=Looseness.CASE) for ref in refs]
            # Several refs may name the same note.
            infos = {info.row: info for info in named_notes}
            # A note whose tags stay as they are, or the step that changes a note.
            results: list[Note | Step] = []
            for info in infos.values():
                file, text = editable(self, info)
                note = self.parse(info.project, info.path, file)
                tags = _with_tags_changed(note.tags, add, remove)
                if tags == list(note.tags):
                    results.append(note)
                    continue
                # Afterwards, all tags are in the one key `tags`.
                keys = {"tags": tags or REMOVE} | dict.fromkeys(other_tag_keys(note.header), REMOVE)
                step = set_keys(self, transaction, info, keys, file=file, text=text)
                if step.data is not None:
                    self._keep_confirmed(transaction, info, file, step.data)
                results.append(step)

        notes: list[Note] = []
        for result in results:
            if isinstance(result, Note):
                notes.append(self.as_indexed(result))
            else:
                notes.append(transaction.written(result))
        return notes


def _check_overwrite(place: _Place, project: str, *, overwrite: bool, checksum: str | None) -> None:
    """Raise an error if a draft may not be written to a place.

    project: the project of the place.
    overwrite: whether the draft may replace a note.
    checksum: the checksum that the replaced note must have; None for any checksum.

    Raises NotFound if there is a checksum but no note. Raises Conflict, Exists, Locked.
    """
    if place.info is None or place.file is None:
        if checksum is not None:
            raise NotFound(place.path, project)
        return
    if checksum is not None:
        check_etag(place.info, place.file, checksum)
    if not overwrite:
        raise Exists(place.info.path, place.info.permalink)
    if place.info.locked:
        raise Locked(place.info.permalink)


def _apply_edit(edit: Edit, text: str, permalink: str) -> Edited:
    """Apply an edit to the text of a note.

    The edit does not know the note. So if it fails, the permalink is added to its error here.
    """
    try:
        return edit.apply(text)
    except CountMismatch as error:
        raise CountMismatch(error.found, error.expected, error.lines, permalink) from None
    except SectionError as error:
        raise SectionError(error.section, error.headings, error.lines, permalink) from None


def _names_permalink(draft: Draft) -> bool:
    """Whether a draft may name a permalink, in its metadata or in a header of its text."""
    # The text may have a header, with or without a BOM before it.
    return "permalink" in draft.metadata or draft.text.startswith(("---", "\ufeff"))


def _usual_keys(habits: Habits, old: str, title: str, path: str) -> set[str]:
    """Return the header keys that a note gets in a folder whose notes another program writes, too.

    habits: the header keys and other customs of the notes in that folder.
    old: the text of the replaced note, whose keys stay; "" for a new note.
    title, path: title and path of the new note. It gets a key `title` if the file has another name.
    """
    keys = note_keys(old) if old else set(habits.keys)
    if title != links.without_suffix(path.rpartition("/")[2]):
        keys.add("title")
    return keys


def _first_line(text: str) -> str:
    """Return the first line of a text that is not empty, without the signs of a heading.

    For example, `# Plan` gives `Plan`. "" means that the text has no such line.
    """
    for line in text.splitlines():
        stripped = line.strip("# \t")
        if stripped:
            return stripped
    return ""


def _with_tags_changed(tags: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> list[str]:
    """Return `tags` without the tags in `remove` and with the tags in `add`.

    Tags that differ only in case or Unicode form are the same tag. A tag in both `add` and `remove`
    is removed.
    """
    removed_keys = {without_case(tag) for tag in remove}
    changed = [tag for tag in tags if without_case(tag) not in removed_keys]
    present_keys = {without_case(tag) for tag in changed}
    for tag in add:
        key = without_case(tag)
        if key not in present_keys | removed_keys:
            changed.append(tag)
            present_keys.add(key)
    return changed


def _kept_keys(info: NoteInfo, note: Note) -> dict[str, object]:
    """Return the header keys that a note keeps when its text is replaced.

    They are the id, the permalink and the time of creation. They stay even if the new text has
    others.
    """
    keys: dict[str, object] = {"id": note.id} if note.own_id else {}
    keys["permalink"] = info.permalink
    header = note.header
    keys["created_at"] = header.get("created_at") or header.get("created") or note.created
    return keys


def _metadata_of(draft: Draft) -> dict[str, Any]:
    """Return the header keys of a new note that its draft gives.

    If the metadata and a field of the draft give the same key, the metadata decides.
    """
    fields = {
        "scope": draft.scope if draft.scope != GLOBAL else None,
        "source": draft.source,
        "date": draft.date,
        "expires_at": draft.expires,
    }
    metadata = dict(draft.metadata)
    for key, value in fields.items():
        if value is not None:
            metadata.setdefault(key, value)
    return metadata


def note_keys(text: str) -> set[str]:
    """Return the header keys of a note; an empty set if the header cannot be read."""
    from memoranda.note.frontmatter import parse, split

    header_text = split(text)[0] or ""
    try:
        return set(parse(header_text))
    except ValueError:
        return set()


def _is_other_title(info: NoteInfo, path: str, title: str | None) -> bool:
    """Whether `title` and the title of a note differ but make the same file name.

    For example, `a/b` and `a:b` both make `a-b.md`. If `title` is None, the result is False.

    path: the path of the new note.
    """
    if title is None or file_key(info.title.strip()) == file_key(title.strip()):
        return False
    return file_key(links.file_name(info.title)) == file_key(path.rpartition("/")[2])
