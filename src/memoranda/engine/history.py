"""The verbs `log`, `undo` and `restore`: which changes there are, which of them is taken back (how:
undo.py), a note as it was; and the texts a change replaced and made, for differences.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from memoranda.clock import parse_stamp, stamp
from memoranda.engine.engine import verb
from memoranda.engine.notes import NoteVerbs
from memoranda.engine.past_privacy import PastPrivacy
from memoranda.engine.transaction import Location, Transaction, read_or_none, root_of, store_at
from memoranda.engine.undo import (
    ENTRIES,
    EXPIRE,
    PASSING,
    Undo,
    blocked,
    concerns,
    is_blank,
    is_upkeep,
)
from memoranda.engine.writing import as_file, scope_of
from memoranda.errors import (
    Ambiguous,
    CannotUndo,
    Exists,
    InvalidInput,
    MemorandaError,
    NotFound,
    NotInHistory,
    Unusable,
)
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import ERASE, FOLD, LINES, Change, Step, Touched
from memoranda.ledger.history import PlacedStep
from memoranda.note.model import (
    ARCHIVE_PROJECT,
    GLOBAL,
    MEMORY_KEYS,
    MEMORY_PROJECTS,
)
from memoranda.note.names import Looseness
from memoranda.store import path_guard
from memoranda.store.base import File

TAKEN_BACK = "taken_back"
"""In the details of an undo: the numbers of the changes it took back, where they are several."""
_DELETING = ("delete", EXPIRE, "decay")
_ID_BEGIN = re.compile(r"[0-9a-f]{8}[0-9a-f-]*")


def undone_by_change(change: Change) -> list[int]:
    """The numbers of the changes an undo says it took back; of a run the first one."""
    if change.undoes is None:
        return []
    several = (change.details or {}).get(TAKEN_BACK)
    if isinstance(several, list):
        return [number for number in several if isinstance(number, int)]
    return [change.undoes]


@dataclass(frozen=True, slots=True)
class Revision:
    """One file a change touched: its texts `before` and `after`, None where there was none or it is
    no longer kept.
    """

    change: Change
    touched: Touched
    before: str | None
    after: str | None


class HistoryVerbs(NoteVerbs):
    """`log`, `undo` and `restore`."""

    @verb
    def log(
        self,
        ref: str | None = None,
        *,
        limit: int = 20,
        agent: str | None = None,
        since: datetime | None = None,
    ) -> list[Change]:
        """See `Memory.log`. Only changes the caller may see are listed."""
        return list(islice(self._seen_changes(ref, agent, since), limit if limit > 0 else None))

    @verb
    def log_by_run(
        self,
        ref: str | None = None,
        *,
        limit: int = 20,
        agent: str | None = None,
        since: datetime | None = None,
        before: int = 0,
    ) -> list[list[Change]]:
        """As `log`, the changes of one run of a job together, at the place of its latest; `limit`
        counts these. With `before` only changes of lower numbers."""
        groups: dict[int, list[Change]] = {}
        runs: list[int] = []
        for change in self._seen_changes(ref, agent, since):
            if before and change.number >= before:
                continue
            if change.undoes is None:
                run = change.run
            else:
                run = None
            if (
                limit
                and len(groups) >= limit
                and change.number < min(runs, default=change.number + 1)
            ):
                # What is still to come of a run has at least the number of its first change
                break
            if (run or change.number) in groups or not limit or len(groups) < limit:
                groups.setdefault(run or change.number, []).append(change)
                runs += [run] if run else []
        return list(groups.values())

    def _seen_changes(
        self, ref: str | None, agent: str | None, since: datetime | None
    ) -> Iterator[Change]:
        if ref is None:
            place = None
        else:
            place = self.locate(ref)
        agent = agent and agent.lower()
        history = self.engine.home.history
        if place is not None:
            changes = history.changes_at(place[0], place[1])
        elif agent is not None:
            changes = history.changes_by(agent)
        else:
            changes = history.changes()
        past = self._past()
        for change in changes:
            if since is not None and parse_stamp(change.time) < since:
                break
            if (
                change.verb == FOLD
                or is_blank(change)
                or (agent is not None and change.agent != agent)
            ):
                continue
            visible_change = self._seen_part(change, past)
            if place is not None and not concerns(visible_change, place):
                continue
            if self._is_visible(change, past):
                yield visible_change

    def _past(self) -> PastPrivacy | None:
        """What this caller may see of the past; None for the owner, who sees all."""
        if self.agent is None:
            return None
        self.engine.fresh()
        return PastPrivacy(self)

    def undo_in(self, transaction: Transaction) -> Undo:
        """What takes changes back within a transaction, and names only changes the caller sees."""
        past = self._past()
        return Undo(self, transaction, lambda later: self._is_visible(later, past))

    def _is_visible(self, change: Change, past: PastPrivacy | None) -> bool:
        """Whether the caller sees all files of a change; of a deletion the links that other
        memories lost do not count. What was erased is the owner's to know."""
        if change.verb == ERASE:
            return self.agent is None and not self.engine.only
        about = [
            file
            for file in change.files
            if (file.project, file.path) == (change.project, change.path)
        ]
        files = change.files
        if about and not self.engine.only:
            if change.verb in _DELETING:
                files = about
            elif change.undoes is not None:
                # What came back may have come back into texts the caller does not see
                files = [file for file in change.files if file in about or file.old is None]
        return all(self.may_see(change, file, past) for file in files)

    def may_see(
        self, change: Change | PlacedStep, touched: Touched, past: PastPrivacy | None
    ) -> bool:
        """Whether the caller may see what a change did to this file: its project is there, and the
        note was never another agent's since. `past` is None for the owner.
        """
        if self.engine.only and touched.project not in self.engine.stores:
            return False
        return past is None or not past.hides(change, touched)

    def locate(self, ref: str, *, looseness: Looseness = Looseness.SIGNS) -> Location:
        """The place of `project/path` or the absolute path of a file, also of one that is gone, or
        of an id the index or the history knows. One this home has is taken first, then the one the
        history has in a folder elsewhere. Raises Ambiguous when it has several, NotFound,
        OutsideError."""
        engine = self.engine
        is_address = ref.startswith("memory://")
        project, _, path = ref.partition("/")
        if path and not is_address:
            name = next(
                (store for store in engine.stores if store.lower() == project.lower()), None
            )
        else:
            name = None
        if name is not None or (path and not is_address and project not in (".", "..")):
            if not ref.startswith("/"):
                wanted_path = path_guard.clean(path, name or project, hidden=True)
            else:
                wanted_path = ref
            if name:
                own_location = (name, wanted_path, root_of(engine, name))
            else:
                own_location = None
            if own_location is not None and os.path.lexists(
                os.path.join(engine.store(own_location[0]).root, wanted_path)
            ):
                return own_location
            locations: dict[Location, None] = {}
            for touched in self._seen_steps(engine.home.history.steps_at(wanted_path, ref)):
                for at in filter(None, (touched.path, touched.to)):
                    if own_location == (touched.project, at, touched.root):
                        return own_location
                    is_it = (touched.project.lower(), at) == (project.lower(), wanted_path)
                    if touched.root and (is_it or os.path.join(touched.root, at) == ref):
                        locations[touched.project, at, touched.root] = None
            if len(locations) > 1:
                raise Ambiguous(ref, [os.path.join(root, at) for _, at, root in locations])
            place = next(iter(locations), own_location)
            if place:
                return place
        try:
            info = self.memory_id(ref)
        except (NotFound, Ambiguous):
            for name in MEMORY_PROJECTS if _ID_BEGIN.fullmatch(ref) else ():
                steps = engine.home.history.steps_named(name, f"-{ref[:8]}.md")
                for touched in self._seen_steps(steps):
                    return touched.project, touched.path, touched.root
            info = self._find_as_listed(ref, looseness)
        return info.project, info.path, root_of(engine, info.project)

    def _seen_steps(self, steps: Iterable[PlacedStep]) -> Iterator[Touched]:
        """What steps did, of those the caller may see."""
        past = self._past()
        for step in steps:
            if self.may_see(step, step.touched, past):
                yield step.touched

    def last_change(self, besides: str) -> datetime | None:
        """When something the caller may see last changed by anything except the face `besides`, as far
        as the history goes back; None: never. A change made by hand in a file is not in the
        history."""
        past = self._past()
        for change in self.engine.home.history.changes():
            if change.face == besides or is_upkeep(change):
                continue
            if past is None or self._is_visible(change, past):
                return parse_stamp(change.time)
        return None

    def purge_history(self) -> int:
        """Forget changes older than `history.days`. Returns how many."""
        return self.engine.purge_history()

    @verb
    def undo_run(self, run: int) -> tuple[Change, list[Change]]:
        """Take all changes of a run of a job back that still stand, as one change or none. Returns
        it, and those. Raises CannotUndo."""
        with self.engine.writing():
            past = self._past()
            of_run: list[tuple[Change, list[Change]]] = []
            was_undone = False
            for change, later, undone_by in self.changes_to_undo():
                if change.number < run:
                    break
                was_undone |= change.undoes is not None and undone_by is None
                if change.undoes is None and change.run == run:
                    if not self._is_visible(change, past):
                        raise CannotUndo(f"There is no run #{run}.")
                    # What the run itself did later is taken back with it
                    if undone_by is None:
                        run_numbers = {change_of_run.number for change_of_run, _ in of_run}
                        of_run.append(
                            (
                                change,
                                [
                                    change_of_run
                                    for change_of_run in later
                                    if change_of_run.number not in run_numbers
                                ],
                            )
                        )
            if not of_run:
                raise CannotUndo(
                    f"cannot undo run #{run}: it was undone"
                    if was_undone
                    else f"There is no run #{run}."
                )
            return self._take_back(of_run, f"run #{run}", run), [change for change, _ in of_run]

    @verb
    def undo_changes_of(
        self, agent: str, since: datetime | None = None, project: str | None = None
    ) -> tuple[Change, list[Change]]:
        """Take all changes of an agent back that still stand, as one change or none.

        since: only changes made since then.
        project: only changes of this project.
        Returns the new change, and those it took back, the latest first. Raises CannotUndo where
        there is nothing to take back, or somebody else changed the same notes after it.
        """
        with self.engine.writing():
            past = self._past()
            if project is None:
                place = None
            else:
                place = self.engine.store(project).name
            changes: list[tuple[Change, list[Change]]] = []
            for change, later, undone_by in self.changes_to_undo():
                moment = parse_stamp(change.time)
                if since is not None and moment is not None and moment < since:
                    break
                is_theirs = change.agent == agent.lower() and change.undoes is None
                is_there = place in (None, change.project)
                if not (is_theirs and is_there and undone_by is None):
                    continue
                if is_upkeep(change) or is_blank(change) or not self._is_visible(change, past):
                    continue
                own_numbers = {change_taken.number for change_taken, _ in changes}
                later_others = [
                    later_change for later_change in later if later_change.number not in own_numbers
                ]
                changes.append((change, later_others))
            if not changes:
                raise CannotUndo(f"There is no change of {agent} to undo.")
            changes_taken = [change for change, _ in changes]
            return self._take_back(changes, f"the changes of {agent}"), changes_taken

    def _take_back(
        self,
        changes: Sequence[tuple[Change, list[Change]]],
        name: str,
        run: int | None = None,
    ) -> Change:
        """Take changes back, the latest first, each given with all after it, as one change. Raises
        CannotUndo.
        """
        first = changes[-1][0]
        with self.change("undo", (first.project, first.path), fresh=False) as transaction:
            transaction.undoes = first.number
            transaction.run = run
            if run is None and len(changes) > 1:
                transaction.details = {TAKEN_BACK: [change.number for change, _ in changes]}
            past = self._past()
            undo = Undo(self, transaction, lambda later: self._is_visible(later, past))
            for change, later in changes:
                undo.take_back(change, later)
            undo.finish()
            if not transaction.steps:
                raise CannotUndo(f"cannot undo {name}: nothing of it is left")
        self._keep_reads(transaction.steps)
        assert transaction.done is not None
        return self._seen_part(transaction.done, self._past())

    def _seen_part(self, change: Change, past: PastPrivacy | None) -> Change:
        """The change with those of its files that the caller may see."""
        files = [file for file in change.files if self.may_see(change, file, past)]
        return replace(change, files=files)

    def _keep_reads(self, steps: Sequence[Step]) -> None:
        """Reads are a note's, not its text's: those that were folded into the texts replaced are
        counted on.
        """
        before = self._reads((step, step.old) for step in steps if step.do in ("put", "remove"))
        now = self._reads((step, as_file(step.data)) for step in steps if step.data is not None)
        reads = self.engine.reads
        # Else memories were merged, or parted
        for id, count in now.items() if before.keys() == now.keys() else ():
            if before[id] < count:
                pending = reads.counts([id])[id]
                used = reads.used([id]).get(id)
                reads.restart(id)
                if used is not None:
                    reads.note_use([id], datetime.fromtimestamp(used, UTC))
                reads.count_read(id, max(0, pending + before[id] - count))
            elif before[id] > count:
                reads.count_read(id, before[id] - count)

    def _reads(self, files: Iterable[tuple[Step, File | None]]) -> dict[str, int]:
        """The counts in the headers of memories and entries, by id."""
        counted = [
            (step, file)
            for step, file in files
            if file and step.project in (*MEMORY_PROJECTS, ENTRIES)
        ]
        notes = [self.engine.parse(step.project, step.path, file) for step, file in counted]
        return {note.id: note.access_count for note in notes if note is not None}

    def changes_to_undo(self) -> Iterator[tuple[Change, list[Change], int | None]]:
        """All changes, newest first, each with those after it, and the undo that took it back
        unless it stands: an undo that was itself taken back leaves its change standing."""
        later: list[Change] = []
        undone: dict[int, int] = {}
        for change in self.engine.home.history.changes():
            yield change, later, undone.get(change.number)
            if change.undoes is not None and change.number not in undone:
                back = undone_by_change(change)
                if change.run is not None:
                    back = [
                        earlier.number
                        for earlier in self.engine.home.history.changes()
                        if earlier.run == change.run
                    ]
                for number in back:
                    undone.setdefault(number, change.number)
            later.append(change)

    @verb
    def undo(self, change: int | None = None) -> Change:
        """See `Memory.undo` and contract 001, 18.5."""
        with self.engine.writing():
            past = self._past()
            for done_change, later, undone_by in self.changes_to_undo():
                # That an entry expired is upkeep, which only its number names.
                stands = (
                    done_change.undoes is None
                    and undone_by is None
                    and not (is_upkeep(done_change) or is_blank(done_change))
                )
                if not (
                    (stands if change is None else done_change.number == change)
                    and self._is_visible(done_change, past)
                ):
                    continue
                if done_change.verb == ERASE:
                    if is_blank(done_change):
                        reason = "what it changed was erased"
                    else:
                        reason = "what was erased is gone for good"
                    raise CannotUndo(
                        f"cannot undo #{done_change.number}: {reason}; memory undo N takes back another change"
                    )
                if done_change.undoes is None and undone_by is not None:
                    raise CannotUndo(
                        f"cannot undo #{done_change.number}: it was undone already (#{undone_by})"
                    )
                texts = list(done_change.texts())
                if texts and not any(text.kept for text in texts):
                    raise CannotUndo(f"cannot undo #{done_change.number}: {PASSING}")
                if any(file.do == LINES for file in done_change.files):
                    from memoranda.engine.graph import undo_lines

                    return undo_lines(
                        self,
                        done_change,
                        partial(
                            blocked,
                            done_change,
                            later,
                            is_visible=lambda change: self._is_visible(change, past),
                        ),
                    )
                return self._take_back([(done_change, later)], f"#{done_change.number}")
            raise CannotUndo(
                "There is nothing to undo." if change is None else f"There is no change #{change}."
            )

    @verb
    def restore(
        self,
        ref: str,
        *,
        at: datetime | None = None,
        change: int | None = None,
        to: str | None = None,
    ) -> tuple[str, int]:
        """See `Memory.restore`."""
        is_named = at is not None or change is not None or to is not None
        if not is_named:
            archived: NoteInfo | None = None
            with suppress(NotFound, Ambiguous):
                archived = self.memory_id(ref)
            if archived is not None and archived.project == ARCHIVE_PROJECT:
                back = self.bring_back(archived)
                history = self.engine.home.history
                was_at = (archived.project, archived.path, "")
                # The change that put it there; the latest of all when the history holds that no
                # more.
                older = (
                    this_change
                    for this_change in history.changes()
                    if this_change.undoes is None and this_change.number < history.last
                )
                put = next(
                    (this_change.number for this_change in older if concerns(this_change, was_at)),
                    history.last,
                )
                return f"{back.project}/{back.path}", put
        with self.change("restore", fresh=False) as transaction:
            project, path, root = place = self.locate(ref, looseness=Looseness.CASE)
            store = store_at(self.engine, project, root)
            source, this_change = self._older(place, read_or_none(store, path), at, change)
            data = self.engine.home.history.text(
                this_change.old or this_change.new or "", f"{project}/{path}"
            )
            if to is not None:
                name, _, rest = to.partition("/")
                known_project = next(
                    (
                        this_change
                        for this_change in self.engine.stores
                        if rest and this_change.lower() == name.lower()
                    ),
                    None,
                )
                if known_project is not None:
                    project = known_project
                    to = rest
                    root = root_of(self.engine, known_project)
                was_note = store.is_note(path)
                path = path_guard.clean(to, project, hidden=True)
                store = store_at(self.engine, project, root)
                if was_note and not store.is_note(path):
                    # Else nothing would find it
                    path += ".md"
                    if to.endswith("/") or not store.is_note(path):
                        raise InvalidInput(
                            f'"{project}/{to}" could not hold the note. Name it with .md at its end.'
                        )
            current = read_or_none(store, path)
            if current is not None:
                before = scope_of(current.data)
            else:
                before = GLOBAL
            if not self.sees(before):
                # What is there now is not theirs to replace
                raise Unusable(f"{project}/{path}")
            if to is not None and current is not None:
                raise Exists(f"{project}/{path}")
            last = None
            if current is not None and not is_named:
                of_it = (
                    this_change
                    for this_change in self.engine.home.history.changes()
                    if concerns(this_change, place)
                )
                last = next(
                    (this_change for this_change in of_it if not is_upkeep(this_change)), None
                )
                if last is not None and current.etag not in {text.new for text in last.texts()}:
                    # Somebody changed it by hand since
                    last = None
            if last is not None and last.verb == "restore":
                name = os.path.join(root or project, path)
                remedy = f"--change N or --at TIME names an older text (memory log {ref}), memory undo takes it back"
                raise CannotUndo(f"{name} was restored already (#{last.number}); {remedy}")
            if not self.sees(scope_of(data)):
                raise NotInHistory(f"{project}/{path}")
            if root == "":
                self.engine.store(project).check_writable()
                data = self._with_own_id(project, path, data)
            if before == GLOBAL:
                scope = this_change.scope
            else:
                scope = before
            transaction.put(
                project, path, data, store=store, old=current, mode=this_change.mode, scope=scope
            )
        self._keep_reads(transaction.steps)
        return os.path.join(root or project, path), source.number

    def _older(
        self, place: Location, now: File | None, at: datetime | None, number: int | None
    ) -> tuple[Change, Touched]:
        """The change whose replaced text is wanted. Raises NotFound when the history holds none."""
        best: tuple[Change, Touched] | None = None
        past = self._past()
        for change in self.engine.home.history.changes():
            for text in change.texts():
                is_it = (text.project, text.path, text.root) == place
                if not is_it or text.do == "move" or text.old is None or not text.kept:
                    continue
                if not self.may_see(change, text, past) or (
                    number is not None and change.number != number
                ):
                    continue
                if at is not None:
                    if parse_stamp(change.time) > at:
                        # The earliest change after `at` replaced what stood then
                        best = (
                            change,
                            text,
                        )
                    continue
                if number is None and now is not None and text.old == now.etag:
                    continue
                return change, text
        if best is None:
            raise NotInHistory(os.path.join(place[2] or place[0], place[1]))
        return best

    def _with_own_id(self, project: str, path: str, data: bytes) -> bytes:
        """The bytes of a memory to be restored, with a new id if another file has its own: of two
        memories with one id neither could be named any more."""
        if project not in MEMORY_PROJECTS:
            return data
        note = self.engine.parse(project, path, as_file(data))
        self.engine.fresh()
        if note is None or all(
            info.path == path for info in self.index.notes.with_ids([note.id], (project,))
        ):
            return data
        from uuid import uuid4

        from memoranda.note.edit import SetKeys

        try:
            return SetKeys({"id": str(uuid4())}, MEMORY_KEYS).apply(data.decode()).text.encode()
        except ValueError:
            # No header that could hold it
            return data

    def revisions(self, change: int, *, limit: int = 0) -> list[Revision]:
        """See `Memory.revisions`. Only notes the caller may see are shown."""
        with self.engine.guard:
            near = next(iter(self.log_by_run(limit=1, before=change + 1)), [])
            change_meant = next(
                (near_change for near_change in near if near_change.number == change), None
            )
            if change_meant is None:
                raise NotInHistory(f"#{change}")
            # What texts became by counts of reads written into them: that has no history
            folds: dict[str, str] = {}
            for near_change in self.engine.home.history.changes():
                if near_change.number <= change:
                    break
                if near_change.verb == FOLD:
                    folds |= {
                        file.old: file.new for file in near_change.files if file.old and file.new
                    }
            return [
                self._revision(change_meant, text, folds)
                for text in islice(change_meant.texts(), limit or None)
            ]

    def revisions_of(
        self, changes: Sequence[Change], *, limit: int = 0
    ) -> dict[int, list[Revision]]:
        """As `revisions`, of several changes of `log` at once, by their numbers; `limit` of each."""
        with self.engine.guard:
            folds = self._folds_after(min((change.number for change in changes), default=0))
            return {
                change.number: [
                    self._revision(change, text, folds)
                    for text in islice(change.texts(), limit or None)
                ]
                for change in changes
            }

    def change_numbered(self, number: int) -> Change | None:
        """The change of this number, if the caller may see it."""
        change = self.engine.home.history.change(number)
        if change is None or not self._is_visible(change, self._past()):
            return None
        return change

    def last_number_before(self, moment: datetime) -> int:
        """The number of the last change before a moment; 0 for none."""
        return self.engine.home.history.last_before(stamp(moment))

    def _folds_after(self, number: int) -> dict[str, str]:
        """What texts became by counts of reads written into them since: that has no history."""
        folds: dict[str, str] = {}
        for change in self.engine.home.history.changes():
            if change.number <= number:
                break
            if change.verb == FOLD:
                folds |= {file.old: file.new for file in change.files if file.old and file.new}
        return folds

    def _revision(self, change: Change, text: Touched, folds: dict[str, str]) -> Revision:
        """What a change did to one text."""
        after = None
        if text.do != "remove":
            after = self._text_of(text, text.new or text.old, folds)
        return Revision(change, text, self._text_of(text, text.old, folds), after)

    def _text_of(self, touched: Touched, digest: str | None, folds: dict[str, str]) -> str | None:
        """The text with this SHA-256: kept, or still the file's."""
        name = f"{touched.project}/{touched.path}"
        for _ in range(len(folds) + 1):
            if digest is None:
                return None
            with suppress(MemorandaError):
                return self.engine.home.history.text(digest, name).decode("utf-8", "replace")
            for path in (touched.to, touched.path):
                with suppress(MemorandaError):
                    store = store_at(self.engine, touched.project, touched.root)
                    if path and (file := store.read(path)).etag == digest:
                        return file.data.decode("utf-8", "replace")
            digest = folds.get(digest)
        return None
