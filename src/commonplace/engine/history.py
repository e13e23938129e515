"""`log`, `undo`, `restore`: what changed, and taking it back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from commonplace.clock import parse_stamp
from commonplace.engine import locations
from commonplace.engine.engine import verb
from commonplace.engine.locations import Location, LocationGone
from commonplace.engine.notes import NoteVerbs
from commonplace.engine.transaction import Transaction
from commonplace.engine.writing import as_file, id_list, scope_of
from commonplace.errors import Ambiguous, CannotUndo, CommonplaceError, Exists, NotFound
from commonplace.index.rows import NoteInfo
from commonplace.note.model import ARCHIVE_PROJECT, CATEGORY_PROJECT, GLOBAL, MEMORY_KEYS, MEMORY_PROJECTS
from commonplace.store import path_guard
from commonplace.store.base import File, sha256
from commonplace.store.change import Step
from commonplace.store.folder import FolderStore
from commonplace.store.journal import ERASE, FOLD, LINES, Change, Touched

ENTRIES = "kv"
EXPIRE = "expire"
"""The verb of removing entries whose time to live is over."""
_DELETING = ("delete", EXPIRE, "decay")
_OF_JOBS = (EXPIRE, "decay", "merge", "classify")
"""Verbs only jobs have: journals of older versions number no runs."""
_OF_PAIRS = ("merge", "link")
_PASSING = "the text of an entry with a time to live is not kept"


class HistoryVerbs(NoteVerbs):
    """`log`, `undo` and `restore`."""

    @verb
    def log(
        self, ref: str | None = None, *, limit: int = 20, agent: str | None = None, since: datetime | None = None
    ) -> list[Change]:
        """Changes the caller may see, newest first; of one note (id, prefix or `project/path`), by one agent, since a
        moment; `limit` 0 = all."""
        return list(islice(self._seen_changes(ref, agent, since), limit or None))

    @verb
    def log_by_run(
        self, ref: str | None = None, *, limit: int = 20, agent: str | None = None, since: datetime | None = None,
        before: int = 0,
    ) -> list[list[Change]]:  # fmt: skip
        """As `log`, the changes of one run of a job together, at the place of its latest; `limit` counts these.
        With `before` only changes of lower numbers."""
        groups: dict[int, list[Change]] = {}
        runs: list[int] = []
        for change in self._seen_changes(ref, agent, since):
            if before and change.number >= before:
                continue
            run = change.run if change.undoes is None else None
            if limit and len(groups) >= limit and change.number < min(runs, default=change.number + 1):
                break  # what is still to come of a run has at least the number of its first change
            if (run or change.number) in groups or not limit or len(groups) < limit:
                groups.setdefault(run or change.number, []).append(change)
                runs += [run] if run else []
        return list(groups.values())

    def _seen_changes(self, ref: str | None, agent: str | None, since: datetime | None) -> Iterator[Change]:
        place = None if ref is None else self.locate(ref)
        agent = agent and agent.lower()
        for change in self.engine.home.history.changes():
            if since is not None and parse_stamp(change.time) < since:
                break
            if change.verb == FOLD or _is_blank(change) or (agent is not None and change.agent != agent):
                continue
            seen = replace(change, files=[each for each in change.files if self.may_see(each)])
            if place is not None and not _concerns(seen, place):
                continue
            if self._is_visible(change):
                yield seen

    def _is_visible(self, change: Change) -> bool:
        """Whether the caller sees all files of a change; of a deletion the links that other memories lost do not
        count. What was erased is the owner's to know."""
        if change.verb == ERASE:
            return self.agent is None and not self.engine.only
        about = [each for each in change.files if (each.project, each.path) == (change.project, change.path)]
        files = about if about and change.verb in _DELETING and not self.engine.only else change.files
        return all(self.may_see(each) for each in files)

    def may_see(self, each: Touched) -> bool:
        """Whether the caller may see what a change did to this file: its scope allows it, and there is its project."""
        return self.sees(each.scope) and (not self.engine.only or each.project in self.engine.stores)

    def locate(self, ref: str) -> Location:
        """The place of `project/path` or an absolute path, also of a note that is gone, or of an id the index or the
        history knows."""
        place = self._find_location(ref)
        if place is not None:
            return place
        try:
            info = self.memory_id(ref)
        except (NotFound, Ambiguous):
            if len(ref) >= 4:
                for change in self.engine.home.history.changes():
                    for each in change.files:
                        named = each.project in MEMORY_PROJECTS and each.path.endswith(f"-{ref[:8]}.md")
                        if named and self.may_see(each):
                            return each.project, each.path, each.root
            info = self.find(ref)
        return info.project, info.path, locations.root_of(self.engine, info.project)

    def _find_location(self, ref: str) -> Location | None:
        """The place of `project/path`, or of the absolute path of a file the history knows; None for anything else.

        One this home has is taken first, then the one the history has in a folder elsewhere. Raises Ambiguous when it
        has several, OutsideError.
        """
        engine = self.engine
        project, _, path = ref.partition("/")
        name = next((each for each in engine.stores if each.lower() == project.lower()), None) if path else None
        if name is None and not path:
            return None
        wanted = path_guard.clean(path, name or project, hidden=True) if not ref.startswith("/") else ref
        own = (name, wanted, locations.root_of(engine, name)) if name else None
        if own is not None and os.path.lexists(os.path.join(engine.store(own[0]).root, wanted)):
            return own
        found: dict[Location, None] = {}
        touched = (each for change in engine.home.history.changes() for each in change.files)
        for each in (each for each in touched if self.may_see(each)):
            for at in filter(None, (each.path, each.to)):
                if own == (each.project, at, each.root):
                    return own
                is_it = (each.project.lower(), at) == (project.lower(), wanted)
                if each.root and (is_it or os.path.join(each.root, at) == ref):
                    found[each.project, at, each.root] = None
        if len(found) > 1:
            raise Ambiguous(ref, [os.path.join(root, at) for _, at, root in found])
        return next(iter(found), own)

    def last_change(self, besides: str) -> datetime | None:
        """When something last changed by anything but the face `besides`, as far as the history goes back; None: never.

        A change made by hand in a file is not in the history.
        """
        for change in self.engine.home.history.changes():
            if change.face != besides and not _is_upkeep(change):
                return parse_stamp(change.time)
        return None

    def purge_history(self) -> int:
        """Forget changes older than `history.days`. Returns how many."""
        return self.engine.purge_history()

    @verb
    def undo_run(self, run: int) -> tuple[Change, list[Change]]:
        """Take all changes of a run of a job back that still stand, as one change or none. Returns it, and those.

        Raises CannotUndo.
        """
        with self.engine.writing():
            later: list[Change] = []
            undone: set[int | None] = set()
            of_run: list[tuple[Change, list[Change]]] = []
            for change in self.engine.home.history.changes():
                if change.number < run:
                    break
                if change.undoes is None and change.run == run:
                    if not self._is_visible(change):
                        raise CannotUndo(f"There is no run #{run}.")
                    if change.number not in undone:
                        of_run.append((change, list(later)))
                        continue  # what the run itself did later is taken back with it
                elif change.undoes is not None and change.number not in undone:
                    undone |= self._numbers(change)
                later.append(change)
            if not of_run:
                raise CannotUndo(f"There is no run #{run}." if not undone else f"cannot undo run #{run}: it was undone")
            done = [change for change, _ in of_run]
            about = (done[-1].project, done[-1].path)
            with self.change("undo", about, fresh=False, undoes=done[-1].number, run=run) as transaction:
                undo = _Undo(self, transaction)
                for change, after in of_run:
                    undo.take_back(change, after)
                undo.finish()
                if not transaction.steps:
                    raise CannotUndo(f"cannot undo run #{run}: nothing of it is left")
        assert transaction.done is not None
        return transaction.done, done

    def _numbers(self, undo: Change) -> set[int | None]:
        """The numbers of the changes an undo took back: one, or those of a run."""
        if undo.run is None:
            return {undo.undoes}
        return {each.number for each in self.engine.home.history.changes() if each.run == undo.run}

    @verb
    def undo(self, change: int | None = None) -> Change:
        """Take a change back (default: the latest not taken back yet). Itself a change. Raises CannotUndo, NotFound.

        A job whose action is taken back makes no such action for that memory again (contract 001, 18.5).
        """
        with self.engine.writing():
            done, later = self._find_change(change)
            if done is None:
                raise CannotUndo("There is nothing to undo." if change is None else f"There is no change #{change}.")
            if done.verb == ERASE:
                what = "what it changed was erased" if _is_blank(done) else "what was erased is gone for good"
                raise CannotUndo(f"cannot undo #{done.number}: {what}; memory undo N takes back another change")
            _check_standing(done, later, change)
            texts = list(done.texts())
            if texts and not any(each.kept for each in texts):
                raise CannotUndo(f"cannot undo #{done.number}: {_PASSING}")
            if any(each.do == LINES for each in done.files):
                from commonplace.engine.file_graph import undo_lines

                return undo_lines(self, done, lambda project, path: _blocked(done, project, path, later))
            about = (done.project, done.path)
            with self.change("undo", about, fresh=False, undoes=done.number) as transaction:
                undo = _Undo(self, transaction)
                undo.take_back(done, later)
                undo.finish()
                if not transaction.steps:
                    raise CannotUndo(f"cannot undo #{done.number}: nothing of it is left")
        assert transaction.done is not None
        return transaction.done

    def _find_change(self, number: int | None) -> tuple[Change | None, list[Change]]:
        """The change to take back, and all later ones. That an entry expired is upkeep, which only its number names."""
        later: list[Change] = []
        undone: set[int | None] = set()
        for change in self.engine.home.history.changes():
            visible = self._is_visible(change)
            is_meant = not (_is_upkeep(change) or _is_blank(change))
            stands = change.undoes is None and change.number not in undone and is_meant
            if number is None and stands and visible:
                return change, later
            if number == change.number:
                return (change if visible else None), later
            # An undo that was itself taken back leaves its change standing.
            if change.undoes is not None and change.number not in undone:
                undone |= self._numbers(change)
            later.append(change)
        return None, later

    @verb
    def restore(
        self, ref: str, *, at: datetime | None = None, change: int | None = None, to: str | None = None
    ) -> tuple[str, int]:
        """Bring back the text `ref` (id or `project/path`) had before `change`, at the moment `at`, or before it last
        changed, into `to` if given.

        Returns where it went (`project/path`) and the change it came from. Raises Exists, NotFound.
        """
        if at is None and change is None and to is None and (archived := self._archived(ref)) is not None:
            back = self.bring_back(archived)
            return f"{CATEGORY_PROJECT}/{back.path}", self._last_at(archived.project, archived.path)
        with self.change("restore", fresh=False) as transaction:
            project, path, root = place = self.locate(ref)
            store = locations.store_at(self.engine, project, root)
            source, each = self._older(place, _read(store, path), at, change)
            data = self.engine.home.history.text(each.old or each.new or "", f"{project}/{path}")
            if to is not None:
                project, path, root = self._restore_target(place, to)
                store = locations.store_at(self.engine, project, root)
            here = _read(store, path)
            if to is not None and here is not None:
                raise Exists(f"{project}/{path}")
            before = scope_of(here.data) if here is not None else GLOBAL
            if not (self.sees(before) and self.sees(scope_of(data))):
                raise NotFound(f"{project}/{path}", "the history")  # what is there now is not theirs to replace
            if root == "":
                self.engine.store(project).check_writable()
                data = self._with_own_id(project, path, data)
            scope = each.scope if before == GLOBAL else before
            transaction.put(project, path, data, store=store, old=here, mode=each.mode, scope=scope)
        return os.path.join(root or project, path), source.number

    def _archived(self, ref: str) -> NoteInfo | None:
        """The archived memory an id names, if it is one."""
        try:
            info = self.memory_id(ref)
        except (NotFound, Ambiguous):
            return None
        return info if info.project == ARCHIVE_PROJECT else None

    def _last_at(self, project: str, path: str) -> int:
        """The change that put a file where it is; the latest of all when the history holds it no more."""
        history = self.engine.home.history
        changes = (
            each.number for each in history.changes() if _concerns(each, (project, path, "")) and each.undoes is None
        )
        return next((number for number in changes if number < history.last), history.last)

    def _older(
        self, place: Location, now: File | None, at: datetime | None, number: int | None
    ) -> tuple[Change, Touched]:
        """The change whose replaced text is wanted. Raises NotFound when the history holds none."""
        best: tuple[Change, Touched] | None = None
        for change in self.engine.home.history.changes():
            for each in change.texts():
                is_it = (each.project, each.path, each.root) == place
                if not is_it or each.do == "move" or each.old is None or not each.kept:
                    continue
                if not self.may_see(each) or (number is not None and change.number != number):
                    continue
                if at is not None:
                    if parse_stamp(change.time) > at:
                        best = (change, each)  # the earliest change after `at` replaced what stood then
                    continue
                if number is None and now is not None and each.old == now.etag:
                    continue
                return change, each
        if best is None:
            raise NotFound(os.path.join(place[2] or place[0], place[1]), "the history")
        return best

    def _restore_target(self, place: Location, to: str) -> Location:
        name, _, rest = to.partition("/")
        for known in self.engine.stores:
            if rest and known.lower() == name.lower():
                return known, path_guard.clean(rest, known, hidden=True), locations.root_of(self.engine, known)
        return place[0], path_guard.clean(to, place[0], hidden=True), place[2]

    def _with_own_id(self, project: str, path: str, data: bytes) -> bytes:
        """The bytes of a memory to be restored, with a new id if another file has its own: of two memories with one id
        neither could be named any more."""
        if project not in MEMORY_PROJECTS:
            return data
        note = self.engine.parse(project, path, as_file(data))
        self.engine.fresh()
        if note is None or all(info.path == path for info in self.index.notes.with_ids([note.id], (project,))):
            return data
        from uuid import uuid4

        from commonplace.note.edit import SetKeys

        try:
            return SetKeys({"id": str(uuid4())}, MEMORY_KEYS).apply(data.decode()).text.encode()
        except ValueError:
            return data  # no header that could hold it


class _Undo:
    """The steps that take changes back, the latest first; CannotUndo when a file is not as a change left it."""

    _done: Change
    _later: list[Change]

    def __init__(self, session: NoteVerbs, transaction: Transaction):
        self._session = session
        self._engine = session.engine
        self._transaction = transaction
        self._steps: dict[tuple[str, str], Step] = {}
        self._kept_from: dict[tuple[str, str], list[str]] = {}
        self._carried: dict[str, list[str]] = {}

    def take_back(self, done: Change, later: list[Change]) -> None:
        """Add the inverse of each step of `done`, last first; `later` are the changes after it."""
        self._done, self._later = done, later
        if done.undoes is None and (done.run is not None or done.verb in _OF_JOBS):
            self._keep_from_job()
        for each in reversed(done.files):
            if each.do == "move" and each.old is None:
                self._refuse_foreign(each)
            self._add_inverse(each)

    def _keep_from_job(self) -> None:
        """Have the memories of a job's action remember that it was taken back: of a pair, one names the other."""
        done = self._done
        back = [each for each in done.files if each.project in MEMORY_PROJECTS and each.old is not None]
        if done.verb == "merge":
            back = [each for each in back if each.do == "remove" and each.path != done.path][-1:]
        elif done.verb == "link":
            back = back[:1]
        for each in back:
            mark = done.verb
            if mark in _OF_PAIRS:
                other = next(one for one in done.files if one.do == "put" and one.path != each.path)
                file = self._file(self._store(other), other.project, other.path)
                note = self._engine.parse(other.project, other.path, file) if file else None
                mark += f":{note.id}" if note else ""
            self._kept_from.setdefault((each.project, each.path), []).append(mark)

    def finish(self) -> None:
        """Write what memories remember into their headers."""
        for place, step in self._steps.items():
            marks = [*self._carried.get(_name(place[1]), ()), *self._kept_from.get(place, ())]
            if marks and step.do == "put" and step.data is not None and place[0] in MEMORY_PROJECTS:
                known = self._marks(*place, as_file(step.data))
                with suppress(ValueError):  # no header that could hold it
                    step.data = _marked(step.data, list(dict.fromkeys([*known, *marks])))

    def _marks(self, project: str, path: str, file: File) -> list[str]:
        """What a memory remembers of actions that were taken back."""
        note = self._engine.parse(project, path, file) if project in MEMORY_PROJECTS else None
        return id_list(note.header.get("kept_from")) if note else []

    def _is_but_marked(self, project: str, path: str, file: File, etag: str) -> bool:
        """Whether only an undo's mark tells the file from the text with this etag; the mark goes on with the memory."""
        marks = self._marks(project, path, file)
        for number in range(len(marks)):
            if sha256(_marked(file.data, marks[:number])) == etag:
                self._carried[_name(path)] = marks[number:]
                return True
        return False

    def _file(self, store: FolderStore, project: str, path: str) -> File | None:
        """The file as the steps so far leave it."""
        step = self._steps.get((project, path))
        if step is None:
            return _read(store, path)
        is_there = step.do == "put" and step.data is not None
        return replace(as_file(step.data), etag=sha256(step.data)) if is_there and step.data else None

    def _refuse_foreign(self, moved: Touched) -> None:
        """A folder that holds notes the caller may not see is not theirs to move back."""
        engine = self._engine
        if locations.is_here(engine, moved.project, moved.root):
            engine.fresh()
            scopes = [info.scope for info in engine.index.notes.below(moved.project, moved.to)]
        else:
            store = self._store(moved)
            scopes = [scope_of(store.read(path).data) for path in store.list(moved.to).stamps]
        if not all(map(self._session.sees, scopes)):
            raise self._refusal(f"{moved.project}/{moved.to} holds notes of another agent")

    def _refusal(self, why: str) -> CannotUndo:
        return CannotUndo(f"cannot undo #{self._done.number}: {why}")

    def _store(self, each: Touched) -> FolderStore:
        """The store the step was on."""
        try:
            return locations.store_at(self._engine, each.project, each.root)
        except LocationGone as error:
            raise self._refusal(str(error)) from None

    def _add(self, do: str, each: Touched, store: FolderStore, path: str, **more: Any) -> None:
        before = self._steps.get((each.project, path))
        if before is None or do not in ("put", "remove"):
            step = self._transaction.add(do, each.project, path, store=store, scope=each.scope, **more)
            if do in ("put", "remove"):
                self._steps[each.project, path] = step
            return
        if do == "remove" and before.old is None:  # made and removed again within what is taken back
            self._transaction.steps.remove(before)
            del self._steps[each.project, path]
            return
        before.do, before.data = do, more.get("data")  # an earlier change of the same file: its older text counts

    def _add_inverse(self, each: Touched) -> None:
        store = self._store(each)
        if each.do == "move":
            self._expect_there(store, each, each.to, each.new or each.old)
            self._expect_free(store, each)
            self._add("move", each, store, each.to, to=each.path, old=_read(store, each.to) if each.old else None)
        elif each.do == "put":
            file = self._expect_there(store, each, each.path, each.new)
            if each.old is None:
                self._add("remove", each, store, each.path, old=file)
            else:
                self._add("put", each, store, each.path, data=self._kept_text(each), old=file, mode=each.mode)
        elif each.do == "remove":
            if each.kept:  # else one of several that were cleared; the others come back
                self._expect_free(store, each)
                self._add("put", each, store, each.path, data=self._kept_text(each), mode=each.mode)
        elif each.do == "mkdir":
            if self._is_left_empty(store, each):
                self._add("rmdir", each, store, each.path)
        elif each.do == "rmdir":
            if not os.path.isdir(os.path.join(store.root, each.path)):
                self._add("mkdir", each, store, each.path)
        elif each.do == "unlink":
            self._expect_free(store, each)
            self._add("symlink", each, store, each.path, link=each.link)
        else:
            place = store.place(each.path)
            if place.kind != "link" or place.link != each.link:
                raise self._blocked(each, each.path)
            self._add("unlink", each, store, each.path, link=each.link)

    def _is_left_empty(self, store: FolderStore, each: Touched) -> bool:
        """Whether the folder the change made holds nothing but what the steps so far take away."""
        full = os.path.join(store.root, each.path)
        if not os.path.isdir(full):
            return False
        leaving = (one for one in self._transaction.steps if one.root == store.root)
        gone = {one.path for one in leaving if one.do not in ("put", "mkdir", "symlink")}
        return {f"{each.path}/{name}" for name in os.listdir(full)} <= gone

    def _expect_there(self, store: FolderStore, each: Touched, path: str, etag: str | None) -> File | None:
        """The file as the change left it at `path`; a moved folder (no etag) must just be there."""
        if etag is None:
            if os.path.lexists(os.path.join(store.root, path)):
                return None
            raise self._blocked(each, path)
        file = self._file(store, each.project, path)
        wanted = self._after_folds(etag, each.project, path)
        if file is None or (file.etag != wanted and not self._is_but_marked(each.project, path, file, wanted)):
            raise self._blocked(each, path)
        return file

    def _after_folds(self, etag: str, project: str, path: str) -> str:
        """What the text with this etag became by counts of reads written into it."""
        folds = (each for change in reversed(self._later) if change.verb == FOLD for each in change.files)
        for each in folds:
            if (each.project, each.path, each.old) == (project, path, etag):
                etag = each.new or etag
        return etag

    def _expect_free(self, store: FolderStore, each: Touched) -> None:
        step = self._steps.get((each.project, each.path))
        is_free = step.do == "remove" if step else not os.path.lexists(os.path.join(store.root, each.path))
        if not is_free:
            raise self._blocked(each, each.path)

    def _blocked(self, each: Touched, path: str) -> CannotUndo:
        return _blocked(self._done, each.project, path, self._later, each.root)

    def _kept_text(self, each: Touched) -> bytes:
        if not each.kept or each.old is None:
            raise self._refusal(_PASSING)
        name = f"{each.project}/{each.path}"
        try:
            return self._engine.home.history.text(each.old, name)
        except NotFound:
            raise self._refusal(f"the text of {name} is no longer kept") from None


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _marked(data: bytes, marks: list[str]) -> bytes:
    """A memory's text with just these marks. Raises ValueError for a header that cannot hold them."""
    from commonplace.note.edit import SetKeys
    from commonplace.note.frontmatter import REMOVE

    return SetKeys({"kept_from": marks or REMOVE}, MEMORY_KEYS).apply(data.decode()).text.encode()


def _check_standing(change: Change, later: list[Change], number: int | None) -> None:
    """Raises CannotUndo when change `number` was taken back already, and that was not itself taken back."""
    if number is None or change.undoes is not None:
        return
    undone = next((each for each in later if each.undoes is not None and _takes_back(each, change)), None)
    if undone is not None and not any(each.undoes == undone.number for each in later):
        raise CannotUndo(f"cannot undo #{change.number}: it was undone already (#{undone.number})")


def _takes_back(undo: Change, change: Change) -> bool:
    """Whether an undo took `change` back, by itself or with its run."""
    return undo.undoes == change.number or (change.run is not None and undo.run == change.run)


def _is_upkeep(change: Change) -> bool:
    """Whether a change is none somebody made or would take back: folded counts, entries past their time to live."""
    return change.verb == FOLD or (change.verb == EXPIRE and change.project == ENTRIES)


def _is_blank(change: Change) -> bool:
    """Whether a line only stands for a change of what was erased."""
    return change.verb == ERASE and not change.details


def _read(store: FolderStore, path: str) -> File | None:
    try:
        return store.read(path)
    except CommonplaceError:
        return None


def _blocked(change: Change, project: str, path: str, later: list[Change], root: str = "") -> CannotUndo:
    cause = next((each for each in later if each.verb != FOLD and _concerns(each, (project, path, root))), None)
    by = f"#{cause.number}" if cause else "outside commonplace"
    return CannotUndo(f"cannot undo #{change.number}: {os.path.join(root or project, path)} changed later ({by})")


def _concerns(change: Change, place: Location) -> bool:
    project, path, root = place
    if (change.project, change.path, change.root) == place:
        return True
    return any((each.project, each.root) == (project, root) and _reaches(each, path) for each in change.files)


def _reaches(each: Touched, path: str) -> bool:
    """Whether a step touched the file at `path`: itself, or with a folder above it."""
    if path in (each.path, each.to):
        return True
    is_folder = each.do == "move" and each.old is None
    return is_folder and (path.startswith(f"{each.path}/") or path.startswith(f"{each.to}/"))
