"""Key-value entries as the index holds them, and those past their time to live (contract 004).

An expired entry leaves all other tables, and so every face; `expired` remembers where its file lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from commonplace.index import writer
from commonplace.index.database import Queries
from commonplace.index.keys import key as link_fold
from commonplace.index.notes import Notes
from commonplace.index.rows import get
from commonplace.note.entry import PROJECT, namespace_in, namespace_of

_PROJECT = f"(select id from project where name = '{PROJECT}')"


class Kept(NamedTuple):
    """What a list shows of an entry; `created` in microseconds since 1970, `body` the text after the frontmatter."""

    row: int
    path: str
    namespace: str
    key: str
    id: str
    scope: str
    created: int
    access_count: int
    size: int
    body: str


class Expired(NamedTuple):
    """An entry whose time is over and whose file is still there."""

    path: str
    namespace: str
    scope: str


class Entries(Queries):
    """Reads the key-value entries of one index, and retires those past their time to live."""

    def kept(self, *, bodies: bool = True) -> Iterator[Kept]:
        """Every entry that is not expired; without `bodies` each `body` is empty."""
        body = "t.text" if bodies else "''"
        found = self._db.execute(
            f"select n.row, n.path, t.front, n.title, n.id, n.scope, n.created, n.access_count, n.size, {body}"
            f" from note n join text t on t.row = n.row where n.project = {_PROJECT}"
        )
        for row, path, front, *rest in found:
            yield Kept(row, path, namespace_in(front, path), *rest)

    def expired(self, limit: int = -1) -> list[Expired]:
        """Entries that wait for their removal; `limit` -1 = all."""
        found = self._db.execute("select path, namespace, scope from expired order by path limit ?", (limit,))
        return [Expired(*one) for one in found]

    def paths_with(self, key: str) -> Sequence[str]:
        """Paths of all entries of this key, in any namespace, expired or not."""
        found = self._db.execute(
            f"select n.path from note_fold f cross join note n on n.row = f.note where f.fold = ?1 and n.title = ?2"
            f" and n.project = {_PROJECT} union select path from expired where key = ?2 order by 1",
            (link_fold(key), key),
        )
        return [path for (path,) in found]

    def retire(self, now: int) -> None:
        """Takes all entries whose time is over at `now` (microseconds since 1970) out of the tables every face reads.
        Expects to run inside a transaction."""
        db = self._db
        for path in Notes(self._database).over(now):
            info = get(db, PROJECT, path)
            assert info is not None
            writer.remove(db, PROJECT, path)
            db.execute(
                "insert into expired values (?, ?, ?, ?, ?, ?, ?)",
                (path, info.size, info.mtime_ns, info.inode, namespace_of(info.header, path), info.title, info.scope),
            )
