"""The history of a home, as queries and transactions on the ledger.

It has the changes, the steps of each change, the texts they replaced (by SHA-256), and the origin
of every text: who wrote it, through which program. A purge forgets old changes and keeps origins.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from sqlite3 import Connection, Row
from typing import Any

from memoranda.clock import parse_stamp, stamp
from memoranda.errors import NotFound, StorageError
from memoranda.ledger.change import (
    ERASE,
    FIRST_OF_MACHINE,
    FOLD,
    ORIGINS,
    Change,
    Location,
    Touched,
    is_of_machine,
    undone_numbers,
)
from memoranda.ledger.change_rows import (
    CHANGE_COLUMNS,
    STEP_COLUMNS,
    change_of,
    change_values,
    insertion,
    json_or_none,
    step_values,
    storable_path,
    touched_of,
)
from memoranda.ledger.database import LedgerDatabase
from memoranda.ledger.review_rows import ANSWER, ReviewRows
from memoranda.note.model import GLOBAL, Provenance
from memoranda.sources.base import File, sha256
from memoranda.sources.files import (
    make_private,
    open_own,
    read_fd,
    reason,
    storing,
    sync_folder,
    write_file,
)
from memoranda.sources.layout import PRIVATE, Layout
from memoranda.sources.step import StepKind
from memoranda.value_object import FrozenValueObject

# Errors of systems that cannot link a file beside the ledger. Then it is copied.
CANNOT_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES}
ABOVE_ALL_NUMBERS = 1 << 62
"""Greater than the number of any change."""
LARGE = 1 << 20
"""Bytes from which on a text is kept as a file beside the ledger."""
# Changes read at first: most callers need only the latest. Each further part is twice as large.
_FIRST_PART_ROWS = 16
# Changes read at a time at most.
_MAX_PART_ROWS = 512
_CHANGE = insertion("change", CHANGE_COLUMNS)
_STEP = insertion("step", f"change, position, {STEP_COLUMNS}")
_ORIGIN = (
    "insert or replace into origin (project, path, root, new, scope, made_by) "
    "values (?, ?, ?, ?, ?, ?)"
)
_NAMED_BY_ID = "substr(s.path, -11, 8) = ? and s.project in ('categories', '.archive')"
# The steps of some changes that wrote a text which no later change wrote at the same place.
_LAST_WRITERS = (
    "select s.*, c.time as at, c.verb, c.agent, c.face, c.made_by as by_caller "
    "from step s join change c on c.number = s.change "
    "where s.change between ? and ? and s.do = 'put' and s.new is not null and not exists ("
    "select 1 from step t where t.new = s.new and t.do = 'put' and t.path = s.path "
    "and t.project = s.project and t.root = s.root and t.change > s.change)"
)
# The texts that a change keeps, with their places: the replaced texts, and the descriptions of new
# lines.
_TEXTS_OF_CHANGE = (
    "select old as digest, project, path, root from step where change = :change and old is not null "
    "union select new, project, path, root from step "
    f"where change = :change and do = '{StepKind.LINES}' and new is not null"
)
# Whether a text at a place is kept for another change. A text that a change wrote at another place
# may be kept because another program replaced it there (`keep_overwritten`).
_REFERENCE = (
    "select 1 from step where old = :digest union all select 1 from step where new = :digest "
    f"and (do = '{StepKind.LINES}' or (project, path, root) <> (:project, :path, :root)) limit 1"
)
# A text that a change wrote is kept, too, once another program replaced it (`keep_overwritten`).
_MENTION = (
    "select 1 from step where old = :digest "
    "union all select 1 from step where new = :digest limit 1"
)
# Texts read together, each of at most a megabyte.
_TEXTS_AT_A_TIME = 50
# Changes looked at together when they are purged.
_PURGED_AT_A_TIME = 10_000
# A clock is believed once a change is this old by it, and not yet old enough to be forgotten.
_BELIEVED_AFTER = timedelta(days=7)
# Characters of a time up to its seconds.
_SECOND_LENGTH = len("2026-05-07T10:00:00")
# The undos that may have taken a change back: by its number, its run, or a list of numbers.
_UNDOS_OF = (
    "select number, undoes, run, details from change where undoes = :number "
    "and number > :number and run is null and details is null "
    "union all select number, undoes, run, details from change where run = :run "
    "and number > :number and undoes is not null "
    "union all select number, undoes, run, details from change where undoes is not null "
    "and details is not null and number > :number and run is null"
)
_ALL_WRITERS = (
    "select s.*, c.time as at, c.verb, c.agent, c.face, c.made_by as by_caller "
    "from step s join change c on c.number = s.change "
    "where s.new = ? and s.do = 'put' order by s.change desc"
)


# The texts of a JSON list of digests that no change in the ledger wrote.
_UNKNOWN_TEXTS = (
    "select value as digest from json_each(?) "
    "where not exists (select 1 from step where new = value and do = 'put') "
    "and not exists (select 1 from origin where new = value)"
)
# When the latest change happened that may have removed others, with the origins of their texts: an
# erasure, or a purge of all changes before the first that is left.
_COMPLETE_SINCE = (
    f"select coalesce(max(time), '') as time from change where verb = '{ERASE}' "
    "or (number > 1 and number = (select min(number) from change))"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacedStep(FrozenValueObject):
    """A step and where it is in the history.

    number, verb: the change that the step is a part of.
    position: the index of the step among the steps of that change.
    touched: what the step did to a file or folder.
    """

    number: int
    position: int
    verb: str
    touched: Touched


class History:
    """The changes of one home. Writing is for the holder of the home's lock.

    All methods raise StorageError where the ledger cannot be read or written.
    """

    def __init__(self, layout: Layout, database: LedgerDatabase):
        self._layout = layout
        self.database = database
        self.review_rows = ReviewRows(database, str(layout.private))
        # A cache for `last`: its value, and the version of the database from which it was read. If
        # another process writes, the version changes. A write of this process does not change it, so
        # each one sets the value to None, and `last` reads it again.
        self._last: int | None = None
        self._version = (0, 0)

    # --- reading

    @property
    def last(self) -> int:
        """The number of the latest change, or 0."""
        version = self.database.version()
        if self._last is None or version != self._version:
            self._last = self._last_below(ABOVE_ALL_NUMBERS)
            self._version = version
        return self._last

    def _last_below(self, end: int) -> int:
        """Return the highest number of a change below `end`, or 0."""
        row = self.database.row("select max(number) as last from change where number < ?", (end,))
        assert row is not None
        return row["last"] or 0

    @property
    def latest_numbers(self) -> tuple[int, ...]:
        """The number of the latest change, as a tuple with one number for each series.

        A home has one series. A replica has a second one, for files that only its own machine has.
        """
        return (self.last,)

    def changes(self, *, origins: bool = False, before: int | None = None) -> Iterator[Change]:
        """Yield all changes, newest first.

        The changes that were purged are gone, but the ledger still has the origins of some texts
        that they wrote: who wrote a text, and when. Together these origins are called change 0.

        origins: whether to yield change 0 at the end, if the ledger has such origins.
        before: only changes below this number. None for all.
        """
        yield from self._read_back("select * from change where number < ?", (), before)
        if origins:
            yield from self._origins()

    def _origins(self) -> Iterator[Change]:
        """Yield change 0, if the ledger has origins of texts that purged changes wrote.

        Each file of change 0 is one of these texts.
        """
        rows = self.database.rows("select * from origin order by project, path")
        if rows:
            yield origins_change([self._origin_of(row) for row in rows])

    @staticmethod
    def _origin_of(row: Row) -> Touched:
        """Return the origin that a row of the table `origin` has."""
        return Touched(
            ORIGINS,
            row["project"],
            row["path"],
            new=row["new"],
            scope=row["scope"],
            root=os.fsdecode(row["root"]),
            by=json_or_none(row["made_by"]),
        )

    def changes_by(self, agent: str, *, before: int | None = None) -> Iterator[Change]:
        """Yield the changes that an agent made, newest first, all or below the number `before`."""
        sql = "select * from change where number < ? and agent = ?"
        yield from self._read_back(sql, (agent,), before)

    def changes_besides(self, face: str) -> Iterator[Change]:
        """Yield the changes that came through any other interface than this one, newest first."""
        sql = "select * from change where number < ? and face is not ?"
        yield from self._read_back(sql, (face,))

    def changes_at(
        self, project: str, path: str, *, after: int = 0, before: int | None = None
    ) -> Iterator[Change]:
        """Yield the changes that may be about the file at a place, newest first.

        Every move of a folder of the project is included, since the file may have been inside.

        after, before: only changes between these two numbers, without the two themselves.
        """
        sql = (
            "select * from change where number < ? and number > ? and (number in ("
            "select change from step where project = ? and path = ? "
            "union select change from step where project = ? and dest = ? and dest <> '' "
            "union select change from step where project = ? and do = 'move' and old is null "
            "union select number from change where project = ? and path = ?))"
        )
        place = (project, path)
        yield from self._read_back(sql, (after, *place, *place, project, *place), before)

    def steps_at(self, path: str, absolute: str) -> Iterator[PlacedStep]:
        """Yield the steps from or to a file, newest first in each part.

        path: steps at this path in any project come first.
        absolute: steps on the file with this absolute path come next. They are in projects whose
            folder is outside of the home.
        """
        # Steps from the file, then moves to it. `dest` is empty for a step that moves nothing.
        for where in ("s.path = :path", "s.dest = :path and s.dest <> ''"):
            yield from self._placed(f"{where} order by s.change desc", {"path": path})
        for root in self._roots_above(absolute):
            path_in_root = os.path.relpath(absolute, os.fsdecode(root))
            values = {"root": root, "path": path_in_root}
            for column in ("path", "dest"):
                where = f"s.{column} = :path and s.root = :root and s.{column} <> ''"
                yield from self._placed(f"{where} order by s.change desc", values)

    def _roots_above(self, absolute: str) -> list[Any]:
        """Return the project folders outside of the home that contain a path, as they are stored.

        A folder is text, or bytes if its name is not valid Unicode (`storable_path`).
        """
        # Millions of steps have few different roots. So the query jumps from one root to the next
        # in the index, instead of reading all steps.
        sql = (
            "with recursive known (root) as (select min(root) from step where root <> '' union all "
            "select (select min(root) from step where root <> '' and root > known.root) "
            "from known where known.root is not null) select root from known where root is not null"
        )
        roots = [row["root"] for row in self.database.rows(sql)]
        return [root for root in roots if absolute.startswith(f"{os.fsdecode(root)}/")]

    def steps_with_id(self, id_begin: str) -> Iterator[PlacedStep]:
        """Yield the steps on memories with this beginning of an id.

        The newest change comes first. Of each change, the steps that leave a file come first.

        id_begin: 8 digits, as in the file name `short-title-0a1b2c3d.md`.
        """
        where = f"{_NAMED_BY_ID} order by s.change desc, s.do = 'remove'"
        for step in self._placed(where, (id_begin,)):
            if step.touched.path.endswith(f"-{id_begin}.md"):
                yield step

    def steps_that_left(self, digest: str) -> Iterator[PlacedStep]:
        """Yield the steps that left a text at a place, by writing it or moving its file.

        The newest comes first.

        digest: the SHA-256 of the text.
        """
        where = (
            "(s.new = :digest and s.do in ('put', 'move')) "
            "or (s.old = :digest and s.new is null and s.do = 'move') "
            "order by s.change desc, s.position desc"
        )
        return self._placed(where, {"digest": digest})

    def has_removal(self, number: int) -> bool:
        """Whether a change removed a file."""
        sql = "select 1 from step where change = ? and do = 'remove' limit 1"
        return self.database.row(sql, (number,)) is not None

    def was_left_elsewhere(self, digest: str, place: Location) -> bool:
        """Whether changes left a text at other places only. False if no change left it.

        digest: the SHA-256 of the text, which is or was at `place`.
        """
        places_of_text = {
            step.touched.place._replace(path=step.touched.to or step.touched.path)
            for step in self.steps_that_left(digest)
        }
        return bool(places_of_text) and place not in places_of_text

    def steps_that_replaced(self, digest: str) -> Iterator[PlacedStep]:
        """Yield the steps that replaced, removed or moved a text, oldest first.

        digest: the SHA-256 of the text.
        """
        where = "s.old = ? and s.do in ('put', 'remove', 'move') order by s.change, s.position"
        return self._placed(where, (digest,))

    def place_of_text(self, digest_start: str) -> tuple[str, str] | None:
        """Return the project and path of the latest change that replaced or wrote a text.

        None if no change did.

        digest_start: the first digits of the SHA-256 of the text.
        """
        # "g" comes after all hexadecimal digits
        bounds = {"first": digest_start, "end": f"{digest_start}g"}
        row = self.database.row(
            "select change, project, path from step where old >= :first and old < :end "
            "union all select change, project, path from step where new >= :first and new < :end "
            "order by change desc limit 1",
            bounds,
        )
        if row is None:
            return None
        return row["project"], row["path"]

    def numbers_with_id(self, id_begin: str, before: int) -> list[int]:
        """Return the numbers below `before` of changes with a step on a file named by this id.

        id_begin: 8 digits, as in the file name `short-title-0a1b2c3d.md`.
        """
        sql = f"select distinct s.change from step s where {_NAMED_BY_ID} and s.change < ?"
        return [row["change"] for row in self.database.rows(sql, (id_begin, before))]

    def numbers_at(self, project: str, path: str, before: int) -> list[int]:
        """Return the numbers below `before` of changes that have a step from or to a place."""
        sql = (
            "select change from step where path = :path and project = :project and change < :before "
            "union select change from step where dest = :path and dest <> '' "
            "and project = :project and change < :before"
        )
        values = {"project": project, "path": path, "before": before}
        return [row["change"] for row in self.database.rows(sql, values)]

    def numbers_of_folder_moves(self, project: str, before: int) -> list[int]:
        """Return the numbers below `before` of changes that moved a folder of a project."""
        sql = (
            "select distinct change from step "
            "where project = ? and do = 'move' and old is null and change < ?"
        )
        return [row["change"] for row in self.database.rows(sql, (project, before))]

    def files_made_by(self, agent: str) -> Iterator[PlacedStep]:
        """Yield the steps of an agent that made a new file, oldest first."""
        where = (
            "s.change in (select number from change where agent = ?) "
            "and s.do = 'put' and s.old is null order by s.change, s.position"
        )
        yield from self._placed(where, (agent,))

    def next_departure(self, project: str, path: str, after: int) -> int | None:
        """Return the number of the first change after which the file at a place is another one.

        Such a change moved or removed the file. It may also have made a new file there, if somebody
        had removed the old one without our program.

        after: only changes above this number.

        None if there is no such change.
        """
        sql = (
            "select min(change) as number from step where path = ? and project = ? and change > ? "
            "and (do in ('move', 'remove') or (do = 'put' and old is null))"
        )
        row = self.database.row(sql, (path, project, after))
        if row is None:
            return None
        return row["number"]

    def was_made(self, project: str, path: str, before: int) -> bool:
        """Whether a change below the number `before` made the file at a place, or moved one there."""
        sql = (
            "select 1 from step where path = :path and project = :project and change < :before "
            "and do = 'put' and old is null "
            "union all select 1 from step where dest = :path and dest <> '' "
            "and project = :project and change < :before limit 1"
        )
        values = {"project": project, "path": path, "before": before}
        return self.database.row(sql, values) is not None

    def agent_that_named(
        self, project: str, path: str, after: int = 0, *, is_rewritten: bool = False
    ) -> str | None:
        """Return the agent that gave a file its name, or a folder above it.

        after: only changes above this number.
        is_rewritten: whether the owner wrote the whole text of the file. Then the owner has used
            the name under which an agent had made the file, so making it does not count.

        None if the owner did it, or if no change did.
        """
        # The changes are looked at from the newest to the oldest. A change that put a file or folder
        # at `a/b` named all of `a/b`. Below a moved folder each file keeps its name. So if the file
        # is `a/b/c.md`, an older change named the end `/c.md`.
        path_then = path
        # How many characters at the end of the path no change has named so far
        unnamed_length = len(path)
        before = ABOVE_ALL_NUMBERS
        while unnamed_length:
            row = self._last_placing(project, path_then, after, before)
            if row is None:
                return None

            new_path = row["place"]
            path_inside = path_then[len(new_path) :]
            # A change that only named a folder which a later change named again does not count
            names_more = len(path_inside) < unnamed_length
            if names_more:
                is_used_by_owner = is_rewritten and row["is_new"]
                if row["agent"] is not None and not is_used_by_owner:
                    return row["agent"]
                unnamed_length = len(path_inside)
            # Before this change, the file was here
            path_then = row["path"] + path_inside
            before = row["change"]
        return None

    def _last_placing(self, project: str, path: str, after: int, before: int) -> Row | None:
        """Return the last change that made the file at a place, or moved it there.

        The file may have come with a folder that was moved. The row has the `change`, its `agent`,
        the `place` of what was made or moved, and the `path` where that was before. `is_new` is
        whether the change made a new file. It is false for a file that was moved or brought back.

        after, before: only changes between these numbers.

        None if no change between them made or moved it.
        """
        folders = [path[:position] for position, sign in enumerate(path) if sign == "/"]
        marks = ", ".join("?" for _ in (path, *folders))
        # A move that changes links in the text writes a new file, and removes the old one.
        is_new = (
            "do = 'put' and verb not in ('undo', 'restore') and not exists "
            "(select 1 from step r where r.change = s.change and r.do = 'remove')"
        )
        sql = (
            f"select s.change, s.path, s.place, c.agent, {is_new} as is_new from ("
            "select change, do, path, path as place from step "
            "where path = ? and project = ? and do = 'put' and old is null "
            "union all select change, do, path, dest as place from step "
            f"where dest in ({marks}) and dest <> '' and project = ? and do = 'move'"
            ") s join change c on c.number = s.change "
            "where s.change > ? and s.change < ? order by s.change desc limit 1"
        )
        values = (path, project, path, *folders, project, after, before)
        return self.database.row(sql, values)

    def last_change_of_answers(self, keys: Sequence[str]) -> int:
        """Return the number of the last change to the owner's answers with these keys, or 0."""
        marks = ", ".join("?" for _ in keys)
        sql = f"select max(change) as number from step where project = ? and path in ({marks})"
        paths = [f"{ANSWER}/{key}" for key in keys]
        row = self.database.row(sql, (PRIVATE, *paths))
        if row is None or row["number"] is None:
            return 0
        return int(row["number"])

    def numbers_about(self, verb: str, project: str, path: str) -> list[int]:
        """Return the numbers of changes with this verb that are listed under a place."""
        sql = "select number from change where project = ? and path = ? and verb = ?"
        return [row["number"] for row in self.database.rows(sql, (project, path, verb))]

    def numbers_of_private_rows(self) -> list[int]:
        """Return the numbers of changes to the ledger's own rows (answers and requests)."""
        sql = f"select distinct change from step where project = '{PRIVATE}'"
        return [row["change"] for row in self.database.rows(sql)]

    def numbers_in_place(self, is_meant: Callable[[str], bool]) -> list[int]:
        """Return the numbers of changes that edited files of other programs in place.

        is_meant: says for the absolute path of a file whether its changes are meant.
        """
        file_rows = self.database.rows("select distinct file from step where file <> ''")
        sql = "select distinct change from step where file = ? and file <> ''"
        numbers: list[int] = []
        for file_row in file_rows:
            if is_meant(os.fsdecode(file_row["file"])):
                step_rows = self.database.rows(sql, (file_row["file"],))
                numbers += [step_row["change"] for step_row in step_rows]
        return numbers

    def places_of(self, project: str) -> list[tuple[str, str]]:
        """Return (path, root) of each file in a project that any change wrote, removed or moved.

        A moved file is listed with both paths.
        """
        steps = "from step where project = :project and do in ('put', 'remove', 'move')"
        # `dest` is where a move put the file, "" for other steps.
        sql = (
            f"select path, root {steps}"
            f" union select dest, root {steps} and dest <> ''"
            " order by path, root"
        )
        rows = self.database.rows(sql, {"project": project})
        return [(row["path"], os.fsdecode(row["root"])) for row in rows]

    def has_steps_below(self, project: str, path: str) -> bool:
        """Whether a change touched something below a folder."""
        # "0" is the character after "/": between the two are exactly the paths that begin with
        # the folder
        sql = "select 1 from step where path > ? and path < ? and project = ? limit 1"
        return self.database.row(sql, (f"{path}/", f"{path}0", project)) is not None

    def has_made_folder(self, project: str, path: str) -> bool:
        """Whether a change made the folder at a place, or moved one there."""
        sql = (
            "select 1 from step where path = :path and project = :project and do = 'mkdir' "
            "union all select 1 from step where dest = :path and dest <> '' "
            "and project = :project and do = 'move' limit 1"
        )
        return bool(self.database.rows(sql, {"project": project, "path": path}))

    def counted_versions(self, digest: str, after: int) -> Iterator[str]:
        """Yield the versions of a text that differ only in their count of reads, the oldest first.

        The header of a note counts how often it was read, so each new count makes a new version of
        the text.

        digest: the SHA-256 of the first version. Those of the others follow it.
        after: only changes above this number.
        """
        visited: set[str] = set()
        version: str | None = digest
        # After an undo, a version may come again.
        while version is not None and version not in visited:
            visited.add(version)
            yield version
            version = self._folded_into(version, after)

    def _folded_into(self, digest: str, after: int) -> str | None:
        """Return the SHA-256 of the text that a text became when read counts were written into it.

        digest: the SHA-256 of the text before.
        after: only changes above this number.

        None if no change did that.
        """
        sql = (
            "select s.new from step s join change c on c.number = s.change where s.old = ? "
            "and s.new is not null and s.change > ? and c.verb = ? order by s.change limit 1"
        )
        row = self.database.row(sql, (digest, after, FOLD))
        if row is None:
            return None
        return row["new"]

    def undone_by(self, change: Change) -> int | None:
        """Return the number of the undo that took a change back, None while the change counts.

        An undo that was undone does not count: if change 8 undoes change 7 and change 9 undoes
        change 8, change 7 counts again.
        """
        changes_by_undo = self._undos_around(change)
        # number of a change -> number of the undo that took it back and counts
        undo_of: dict[int, int] = {}
        # The latest undo counts, and those before it unless a later one took them back. So when an
        # undo is reached, all that could have taken it back are in `undo_of`.
        for undo in sorted(changes_by_undo, reverse=True):
            if undo in undo_of:
                continue
            for number in changes_by_undo[undo]:
                undo_of.setdefault(number, undo)
        return undo_of.get(change.number)

    def _undos_around(self, change: Change) -> dict[int, list[int]]:
        """Find the undos of a change, the undos of these undos and so on.

        Returns: number of an undo -> numbers of the changes that it undoes.
        """
        changes_by_undo: dict[int, list[int]] = {}
        waiting = [(change.number, change.run)]
        visited = {change.number}
        while waiting:
            number, run = waiting.pop()
            for row in self.database.rows(_UNDOS_OF, {"number": number, "run": run}):
                if not self._takes_back(row, number):
                    continue
                changes_by_undo.setdefault(row["number"], []).append(number)
                if row["number"] not in visited:
                    visited.add(row["number"])
                    waiting.append((row["number"], row["run"]))
        return changes_by_undo

    @staticmethod
    def _takes_back(undo: Row, number: int) -> bool:
        """Whether an undo from the rows of `_UNDOS_OF` took back the change with this number."""
        # The query returns undos of a run only for changes of that run
        if undo["run"] is not None:
            return True
        return number in undone_numbers(undo["undoes"], json_or_none(undo["details"]))

    def placed_steps(self, project: str, path: str) -> list[PlacedStep]:
        """Return the steps that wrote, removed or moved the file at a place, oldest first.

        A step that moved a folder is included if the place is below its old or its new path.
        """
        is_inside_old_path = "substr(:path, 1, length(s.path) + 1) = s.path || '/'"
        is_inside_new_path = "substr(:path, 1, length(s.dest) + 1) = s.dest || '/'"
        conditions = (
            "s.project = :project and s.path = :path and s.do in ('put', 'remove', 'move')",
            "s.project = :project and s.dest = :path and s.dest <> ''",
            "s.project = :project and s.do = 'move' and s.old is null "
            f"and ({is_inside_old_path} or {is_inside_new_path})",
        )
        values = {"project": project, "path": path}
        # A step may fulfil two conditions
        steps: dict[tuple[int, int], PlacedStep] = {}
        for condition in conditions:
            for step in self._placed(condition, values):
                steps[step.number, step.position] = step
        return [steps[key] for key in sorted(steps)]

    def steps_of(self, number: int) -> list[PlacedStep]:
        """Return the steps of one change, in their order."""
        return [*self._placed("s.change = ? order by s.position", (number,))]

    def has_private_steps(self) -> bool:
        """Whether any step was on a file that only some agents may see."""
        sql = f"select 1 from step where scope <> '{GLOBAL}' limit 1"
        return self.database.row(sql) is not None

    def _placed(
        self, where: str, values: Sequence[Any] | Mapping[str, Any]
    ) -> Iterator[PlacedStep]:
        """Yield the steps that meet an SQL condition, with the number and verb of their change.

        where: the condition. A step is `s` in it.
        values: the values of its placeholders.
        """
        sql = f"select s.*, c.verb from step s join change c on c.number = s.change where {where}"
        for row in self.database.rows(sql, values):
            yield PlacedStep(row["change"], row["position"], row["verb"], touched_of(row))

    def changes_of_run(self, run: int) -> list[Change]:
        """Return the changes of one run of a job, newest first."""
        return [*self._read_back("select * from change where number < ? and run = ?", (run,))]

    def change(self, number: int) -> Change | None:
        """Return the change with this number, None if it does not exist."""
        rows = self.database.rows("select * from change where number = ?", (number,))
        changes = self._with_steps(rows)
        return changes[0] if changes else None

    def first_since(self, time: str) -> int | None:
        """Return the number of the first change that is not before a time (ISO 8601, UTC).

        None if there is no such change.
        """
        row = self._first_since(time, range(1, ABOVE_ALL_NUMBERS))
        if row is None:
            return None
        return row["number"]

    def _first_since(self, time: str, series: range) -> Row | None:
        """Return number and time of the first change that is not before a time.

        series: the range of numbers to look in. Changes of one machine's own files have a range
            apart.

        None if all changes in the range are before the time.
        """
        sql = (
            "select number, time from change where number between :first and :last and number > ("
            "select coalesce(max(number), 0) from change "
            "where time < :time and number between :first and :last) order by number limit 1"
        )
        values = {"time": time, "first": series[0], "last": series[-1]}
        return self.database.row(sql, values)

    def _read_back(
        self, sql: str, values: tuple[Any, ...], before: int | None = None
    ) -> Iterator[Change]:
        """Yield the changes of a query, newest first.

        They are read in parts, and other processes may write between two parts.

        sql: a query on `change` with the condition `number < ?`, whose parameter is the first.
        values: the other parameters.
        before: only changes below this number. None for all.
        """
        number = ABOVE_ALL_NUMBERS if before is None else before
        # Most callers need only the latest changes, so the first part is small.
        part_rows = _FIRST_PART_ROWS
        while True:
            rows = self.database.rows(
                f"{sql} order by number desc limit ?", (number, *values, part_rows)
            )
            yield from self._with_steps(rows)
            if len(rows) < part_rows:
                return
            number = rows[-1]["number"]
            part_rows = min(2 * part_rows, _MAX_PART_ROWS)

    def _with_steps(self, rows: Sequence[Row]) -> list[Change]:
        """Return the changes of rows, which are sorted newest first, with their steps."""
        if not rows:
            return []
        changes = [change_of(row) for row in rows]
        by_number = {change.number: change for change in changes}
        newest = changes[0].number
        oldest = changes[-1].number
        # A range is read faster than a list of numbers.
        has_no_gaps = len(changes) == newest - oldest + 1
        if has_no_gaps:
            where = f"change between {oldest} and {newest}"
        else:
            where = f"change in ({','.join(map(str, by_number))})"
        for row in self.database.rows(
            f"select * from step where {where} order by change, position"
        ):
            by_number[row["change"]].files.append(touched_of(row))
        return changes

    # --- where texts come from

    def writer_at(self, project: str, path: str, etag: str) -> Provenance | None:
        """Return the origin of a text: who wrote it, and how.

        It comes from the latest change that wrote the text at this place, or else from the latest
        that wrote it anywhere. None if no change wrote it.

        etag: the SHA-256 of the text.
        """
        # The rows are newest first
        writers = self.database.rows(_ALL_WRITERS, (etag,))
        writers_here = [row for row in writers if (row["project"], row["path"]) == (project, path)]
        best_writers = writers_here or writers
        if best_writers:
            latest = best_writers[0]
            return _writer_of(latest).provenance(touched_of(latest))
        # The change may be purged. Then its origin is kept.
        sql = "select * from origin where new = ? order by project = ? and path = ? desc"
        origin = self.database.row(sql, (etag, project, path))
        if origin is not None:
            return Provenance(**json.loads(origin["made_by"]))
        return None

    def writer_of(self, etag: str) -> Provenance | None:
        """Return the origin of a text, given its SHA-256, from the latest change that wrote it.

        None if no change wrote it.
        """
        # No note is at an empty place, so the latest change anywhere counts
        return self.writer_at(project="", path="", etag=etag)

    def unknown(self, digests: Iterable[str]) -> list[str]:
        """Return the texts that no change wrote, neither one of the ledger nor one that was purged.

        digests: the SHA-256 of the texts.
        """
        rows = self.database.rows(_UNKNOWN_TEXTS, (json.dumps(list(digests)),))
        return [row["digest"] for row in rows]

    @property
    def complete_since(self) -> str:
        """The time after which no change was removed on purpose, in ISO 8601. "" for always."""
        row = self.database.row(_COMPLETE_SINCE)
        assert row is not None
        return str(row["time"])

    # --- recording

    def record(self, connection: Connection, changes: Iterable[Change]) -> None:
        """Insert changes, inside a transaction of the database."""
        self._last = None
        for change in changes:
            if change.verb == ORIGINS:
                self._insert_origins(connection, change.files)
                continue
            connection.execute(_CHANGE, change_values(change))
            connection.executemany(
                _STEP,
                [
                    (change.number, position, *step_values(touched))
                    for position, touched in enumerate(change.files)
                ],
            )

    def _insert_origins(self, connection: Connection, files: Iterable[Touched]) -> None:
        """Insert the origins of texts, inside a transaction of the database.

        files: the steps that wrote the texts, and say who wrote them.
        """
        rows = [
            (
                touched.project,
                touched.path,
                storable_path(touched.root),
                touched.new,
                touched.scope,
                json.dumps(touched.by or {}),
            )
            for touched in files
        ]
        connection.executemany(_ORIGIN, rows)

    def append(self, change: Change, *, durable: bool = True) -> None:
        """Record a change that changes no file.

        durable: whether it is safe on the disk on return.
        """
        with self.database.transaction(durable=durable) as connection:
            self.record(connection, [change])

    def append_all(self, changes: Sequence[Change]) -> None:
        """Record changes without a wait for the disk, since a server has them, too."""
        with self.database.transaction(durable=False) as connection:
            self.record(connection, changes)

    def retract(self, numbers: Iterable[int]) -> None:
        """Remove changes that could not be made, with the texts that only they kept.

        numbers: the latest first, since each restores the rows from before it.
        """
        self._last = None
        unreferenced: list[str] = []
        with self.database.transaction() as connection:
            for number in numbers:
                unreferenced += self._retract_one(connection, number)
            self._drop_texts(connection, unreferenced)
        self._remove_large(unreferenced)

    def retract_steps_except(self, number: int, positions: Collection[int]) -> None:
        """Remove the steps of a change except some, which were made and could not be taken back.

        The history keeps the texts that the remaining steps replaced.

        number: the number of the change.
        positions: the positions of the steps that stay.
        """
        kept_positions = ", ".join(map(str, positions))
        with self.database.transaction() as connection:
            self._put_rows_back(connection, number)
            digests = connection.execute(_TEXTS_OF_CHANGE, {"change": number}).fetchall()
            for table in ("step", "pending_step"):
                sql = f"delete from {table} where change = ? and position not in ({kept_positions})"
                connection.execute(sql, (number,))
            unreferenced = _unreferenced_of(connection, digests)
            self._drop_texts(connection, unreferenced)
        self._remove_large(unreferenced)

    def _retract_one(self, connection: Connection, number: int) -> list[str]:
        """Remove one change. Returns the SHA-256 of the texts that only it kept."""
        self._put_rows_back(connection, number)
        digests = connection.execute(_TEXTS_OF_CHANGE, {"change": number}).fetchall()
        for table in ("step", "pending_step", "unsynced", "line_change", "waiting"):
            connection.execute(f"delete from {table} where change = ?", (number,))
        connection.execute("delete from change where number = ?", (number,))
        return _unreferenced_of(connection, digests)

    def _drop_texts(self, connection: Connection, digests: Iterable[str]) -> None:
        """Delete small texts, inside a transaction of the database.

        digests: the SHA-256 of each text.
        """
        rows = [(digest,) for digest in digests]
        connection.executemany("delete from text where sha256 = ?", rows)

    def _put_rows_back(self, connection: Connection, number: int) -> None:
        """Restore the answers and requests that a change replaced."""
        sql = "select * from step where change = ? and do = ? order by position"
        rows = connection.execute(sql, (number, StepKind.SET)).fetchall()
        self.review_rows.take_back(connection, [touched_of(row) for row in rows])

    def replace_all(self, changes: Iterable[Change]) -> None:
        """Replace the whole history by these changes, which must be sorted by number."""
        with self.database.transaction(durable=False) as connection:
            for table in ("change", "step", "origin"):
                connection.execute(f"delete from {table}")
            self.record(connection, changes)

    def revise(self, revised: Mapping[int, Change], lost: Collection[tuple[str, str, str]]) -> None:
        """Replace changes in the history, and forget the origins of some texts.

        revised: number of a change -> the change to have in its place.
        lost: (project, path, root) of the files whose texts lose their origin.
        """
        with self.database.transaction() as connection:
            for number, change in revised.items():
                connection.execute("delete from step where change = ?", (number,))
                connection.execute("delete from change where number = ?", (number,))
                self.record(connection, [change])
            connection.executemany(
                "delete from origin where project = ? and path = ? and root = ?",
                [(project, path, storable_path(root)) for project, path, root in lost],
            )

    # --- texts

    def object_path(self, digest: str) -> str:
        """Return the path of the file that has the text with this SHA-256, if it is a large one."""
        return os.path.join(self._layout.texts, digest)

    def keep_large(self, old: File, name: str, folder: int) -> None:
        """Keep a large text as a file beside the ledger, durable on return. Raises OSError.

        If possible, the file gets a hard link there, so that its bytes need no copy.

        old: the text.
        name: the name of the file that has the text.
        folder: the descriptor of the folder of that file.
        """
        place = self.object_path(old.etag)
        make_private(self._layout.texts)
        try:
            os.link(name, place, src_dir_fd=folder, follow_symlinks=False)
            self._sync_text(place)
        except FileExistsError:
            # The text is kept already. The kept file is a link, so a program may have written into
            # it since.
            if not self._is_sound(old.etag):
                os.unlink(place)
                write_file(place, old.data)
        except OSError as error:
            # The disk has no links, or the home is on another disk.
            if error.errno not in CANNOT_LINK:
                raise
            write_file(place, old.data)
        sync_folder(self._layout.texts)

    def _sync_text(self, place: str) -> None:
        fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def keep_text(self, connection: Connection, data: bytes) -> str:
        """Keep a text, inside a transaction of the database. Returns its SHA-256."""
        digest = sha256(data)
        if len(data) < LARGE:
            connection.execute(
                "insert or ignore into text (sha256, data) values (?, ?)", (digest, data)
            )
            return digest
        # A large text is a file beside the ledger.
        if not self._is_sound(digest):
            place = self.object_path(digest)
            with storing("the history"):
                make_private(self._layout.texts)
                with suppress(FileNotFoundError):
                    os.unlink(place)
                write_file(place, data)
                sync_folder(self._layout.texts)
        return digest

    def keep_bytes(self, data: bytes, *, durable: bool = True) -> str:
        """Keep a text and return its SHA-256.

        durable: whether the text is safe on the disk on return.
        """
        with self.database.transaction(durable=durable) as connection:
            return self.keep_text(connection, data)

    def keep_overwritten(self, data: bytes) -> None:
        """Keep a text that a change wrote, and that another program then replaced.

        The history keeps the texts that changes replace. No change replaced this one, so it would be
        missing. Nothing is kept if no change wrote the text, or if a change replaced it.
        """
        if self.has_text(sha256(data)):
            return
        with self.database.transaction(durable=False) as connection:
            self.keep_overwritten_text(connection, data)

    def keep_overwritten_text(self, connection: Connection, data: bytes) -> None:
        """Keep a text as `keep_overwritten` does, inside a transaction of the database.

        So no erasure can come between the look at the changes and the keeping.
        """
        sql = (
            "select 1 from step where new = :digest and do = :put "
            "and not exists (select 1 from step where old = :digest) limit 1"
        )
        values = {"digest": sha256(data), "put": StepKind.PUT}
        if connection.execute(sql, values).fetchone() is not None:
            self.keep_text(connection, data)

    def _is_sound(self, digest: str) -> bool:
        """Whether the file of the large text with this SHA-256 exists and is undamaged."""
        # Only for its errors, whose place nobody sees
        try:
            self._large_text(digest, digest)
        except (NotFound, StorageError):
            return False
        return True

    def has_text(self, digest: str) -> bool:
        """Whether the text with this SHA-256 is kept."""
        row = self.database.row("select 1 from text where sha256 = ?", (digest,))
        return row is not None or os.path.exists(self.object_path(digest))

    def text(self, digest: str, path: str) -> bytes:
        """Return the kept text with this SHA-256.

        path: the file that errors name.

        Raises NotFound, and StorageError when the text is damaged.
        """
        row = self.database.row("select data from text where sha256 = ?", (digest,))
        if row is None:
            return self._large_text(digest, path)
        data = row["data"]
        if isinstance(data, bytes) and sha256(data) == digest:
            return data
        raise StorageError(path, "its kept text is damaged")

    def _large_text(self, digest: str, path: str) -> bytes:
        """Read the kept text that is a file beside the ledger. Raises NotFound, StorageError.

        path: the file that errors name.
        """
        try:
            fd = open_own(self.object_path(digest), os.O_RDONLY)
        except FileNotFoundError:
            raise NotFound(path) from None
        except OSError as error:
            raise StorageError(path, reason(error)) from None
        try:
            data = read_fd(fd)
        finally:
            os.close(fd)
        if sha256(data) != digest:
            raise StorageError(path, "its kept text is damaged")
        return data

    def forget_text(self, digest: str) -> None:
        """Delete a kept text that is damaged."""
        with self.database.transaction(durable=False) as connection:
            connection.execute("delete from text where sha256 = ?", (digest,))
        with suppress(FileNotFoundError):
            os.unlink(self.object_path(digest))

    def texts(self) -> Iterator[str]:
        """Yield the SHA-256 of every kept text: first of small ones, then of large ones."""
        sql = "select sha256 from text where sha256 > ? order by sha256 limit ?"
        yield from (row["sha256"] for row in self._in_parts(sql, _MAX_PART_ROWS))
        with suppress(FileNotFoundError):
            yield from sorted(os.listdir(self._layout.texts))

    def texts_with_data(self) -> Iterator[tuple[str, bytes]]:
        """Yield (SHA-256, text) of the texts in the ledger, also of damaged ones.

        Large texts are left out: they are files beside the ledger.
        """
        sql = "select sha256, data from text where sha256 > ? order by sha256 limit ?"
        for row in self._in_parts(sql, _TEXTS_AT_A_TIME):
            yield row["sha256"], bytes(row["data"])

    def _in_parts(self, sql: str, size: int) -> Iterator[Row]:
        """Yield the rows of a query on `text`, read `size` at a time: a home may have millions.

        sql: its parameters are the SHA-256 that all are above, and the number of rows.
        """
        digest = ""
        while rows := self.database.rows(sql, (digest, size)):
            yield from rows
            digest = rows[-1]["sha256"]

    # --- forgetting

    def believed_time(self, now: datetime, age_to_forget: timedelta) -> datetime:
        """Return the time by which changes are old enough to be forgotten.

        This is `now`, unless the clock may have jumped ahead: the ledger has changes that are old
        enough to be forgotten, and none between these and the changes of the last week. So either
        the home was not used for that long, or the clock is wrong. Then the time of the last of the
        old changes is returned. A week after the next change, the clock is believed.

        now: the present time by the clock.
        age_to_forget: how old a change must be to be forgotten.
        """
        # A history that is kept for a few days only has no change that is a week old.
        least_age = min(_BELIEVED_AFTER, age_to_forget / 2)
        rows = self.database.rows(
            "select (select max(time) from change where time < :oldest_kept) as before_pause, "
            "exists (select 1 from change where time between :oldest_kept and :believed) "
            "as has_recent",
            {"oldest_kept": stamp(now - age_to_forget), "believed": stamp(now - least_age)},
        )
        before_pause = rows[0]["before_pause"]
        if before_pause is None or rows[0]["has_recent"]:
            return now
        return parse_stamp(before_pause)

    def purge(
        self,
        before: datetime,
        living: Callable[[], Collection[str]] = frozenset,
        now: datetime | None = None,
    ) -> int:
        """Forget changes older than `before`, and texts that nothing refers to any more.

        A change that follows one that is not old was made by a clock that was behind. It stays.

        living: returns the SHA-256 of the texts whose origin is kept, called only if needed. The
            origins of texts in folders outside of the home are kept, too.
        now: the present time. A later change was made by a clock that was ahead, and says nothing
            about those that follow it. None believes all times.

        Returns how many changes were forgotten. The latest change always stays, so that numbers go
        on.
        """
        # The database compares times as text, so it can only leave out those of later seconds: "~"
        # comes after every character that may follow the seconds. Python compares the exact times.
        end_of_second = f"{stamp(before)[:_SECOND_LENGTH]}~"
        rows = self.database.rows(
            "select number, time from change where time <= ? "
            "and number not in (select change from unsynced)",
            (end_of_second,),
        )
        first_recent_numbers = self._first_recent(before, now)
        old_numbers: set[int] = set()
        for row in rows:
            number = row["number"]
            # Each of the two series of numbers has its own first recent change
            first_recent = first_recent_numbers[is_of_machine(number)]
            if parse_stamp(row["time"]) < before and number < first_recent:
                old_numbers.add(number)
        old_numbers -= set(self.latest_numbers)
        if old_numbers:
            self._forget(old_numbers, self._origins_of(old_numbers, living()))
        self.sweep()
        return len(old_numbers)

    def _first_recent(self, since: datetime, until: datetime | None) -> dict[bool, float]:
        """Return the number of the first change of a time span, for each of the two series.

        since: the beginning of the span.
        until: the end of the span. None means no end.

        The key says whether the series belongs to this machine, as `is_of_machine` does. Without
        such a change, the number is infinite.
        """
        end = stamp(until) if until is not None else "~"
        rows = self.database.rows(
            "select min(number) as number from change where time >= ? and time <= ? "
            "group by number >= ?",
            (stamp(since), end, FIRST_OF_MACHINE),
        )
        first_numbers = {False: math.inf, True: math.inf}
        for row in rows:
            first_numbers[is_of_machine(row["number"])] = row["number"]
        return first_numbers

    def _forget(self, numbers: Collection[int], origins: Sequence[Touched]) -> None:
        """Delete changes, but keep the origins of the texts in `origins`.

        numbers: the numbers of the changes.
        origins: the steps that wrote these texts.
        """
        rows = [(number,) for number in numbers]
        with self.database.transaction() as connection:
            self._insert_origins(connection, origins)
            connection.executemany("delete from step where change = ?", rows)
            connection.executemany("delete from change where number = ?", rows)

    def _origins_of(self, purged: Collection[int], living: Collection[str]) -> list[Touched]:
        """Return the origins that would be lost with the purged changes.

        purged: the numbers of these changes.
        living: the SHA-256 of the texts whose origin is kept.
        """
        origins: list[Touched] = []
        numbers = sorted(purged)
        for first in range(0, len(numbers), _PURGED_AT_A_TIME):
            part = numbers[first : first + _PURGED_AT_A_TIME]
            for row in self.database.rows(_LAST_WRITERS, (part[0], part[-1])):
                # A change that stays may have a number in between
                if row["change"] not in purged:
                    continue
                touched = touched_of(row)
                # `living` does not have the texts of folders outside of the home
                is_outside = touched.root != ""
                if is_outside or touched.new in living:
                    origins.append(_origin_step(touched, _writer_of(row)))
        return origins

    def sweep(self) -> int:
        """Delete the kept texts that no change needs. Returns how many were deleted."""
        unreferenced = self.unreferenced()
        if unreferenced:
            with self.database.transaction() as connection:
                self._drop_texts(connection, unreferenced)
        self._remove_large(unreferenced)
        return len(unreferenced)

    def _remove_large(self, digests: Iterable[str]) -> None:
        for digest in digests:
            with suppress(FileNotFoundError):
                os.unlink(self.object_path(digest))

    def unreferenced(self) -> list[str]:
        """Return the SHA-256 of the kept texts that no change replaced or wrote.

        Small texts are rows of the ledger, and large ones are files beside it.
        """
        rows = self.database.rows(
            "select sha256 from text t where not exists (select 1 from step where old = t.sha256) "
            "and not exists (select 1 from step where new = t.sha256)"
        )
        small_texts = [row["sha256"] for row in rows]
        large_texts: list[str] = []
        with suppress(FileNotFoundError):
            large_texts = sorted(os.listdir(self._layout.texts))
        unreferenced_large_texts = [
            digest
            for digest in large_texts
            if self.database.row(_MENTION, {"digest": digest}) is None
        ]
        return small_texts + unreferenced_large_texts

    def replaced(self) -> set[str]:
        """Return the SHA-256 of the texts that changes replaced, kept or not.

        If a change edited lines of a file in place, the descriptions of the new lines are included,
        too.
        """
        rows = self.database.rows(
            "select old as digest from step where old is not null "
            f"union select new from step where do = '{StepKind.LINES}' and new is not null"
        )
        return {row["digest"] for row in rows}


def _unreferenced_of(connection: Connection, digests: Iterable[Row]) -> list[str]:
    """Return the SHA-256 of each text in these rows that is not kept for another change.

    digests: rows of `_TEXTS_OF_CHANGE`.
    """
    return [
        row["digest"]
        for row in digests
        if connection.execute(_REFERENCE, dict(row)).fetchone() is None
    ]


def origins_change(origins: Sequence[Touched]) -> Change:
    """Return change 0, which has the origins of texts that purged changes wrote.

    origins: the steps that wrote these texts. At least one.
    """
    times = [(touched.by or {}).get("time", "") for touched in origins]
    return Change(
        number=0,
        time=min(times),
        verb=ORIGINS,
        project=origins[0].project,
        path="",
        agent=None,
        face=None,
        files=[*origins],
    )


def _origin_step(touched: Touched, writer: Change) -> Touched:
    """Return a step that only says where a text comes from, to be kept after its change is gone.

    touched: the step that wrote the text.
    writer: its change.
    """
    return Touched(
        ORIGINS,
        touched.project,
        touched.path,
        new=touched.new,
        scope=touched.scope,
        root=touched.root,
        by=writer.provenance(touched).row(),
    )


def _writer_of(row: Row) -> Change:
    """Convert a row of `_ALL_WRITERS` or `_LAST_WRITERS` to a change without files."""
    by = json_or_none(row["by_caller"])
    return Change(
        row["change"],
        row["at"],
        row["verb"],
        project="",
        path="",
        agent=row["agent"],
        face=row["face"],
        by=by,
    )
