"""The index of transcripts: one SQLite file in the private folder of the home."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.sources.files import make_private
from memoranda.transcripts.turn import Kind, SourceFile

VERSION = 2
"""Raise it when schema.sql or what is indexed changes: an older file is deleted."""
# Seconds to wait for another process that indexes.
_BUSY_SECONDS = 5.0
# Turns that are ranked closely.
_CANDIDATES = 400
_NEW_TURN = (
    "insert into turn (id, session, exchange, kind, time, position, mark, is_statement) "
    "values (:id, :session, :exchange, :kind, :time, :position, :mark, :is_statement)"
)


class SourceRow(NamedTuple):
    """A file as the index knows it: see schema.sql."""

    id: int
    agent: str
    format: str
    path: str
    stamp: str
    state: dict[str, Any]
    trouble: str


class TurnRow(NamedTuple):
    """A turn as the index knows it, and its place in the transcript."""

    id: int
    exchange: int
    kind: Kind
    time: int
    position: str
    session: str
    folder: str
    agent: str
    format: str
    path: str
    is_statement: bool


class LessonRow(NamedTuple):
    """A lesson as the index knows it: the turns it is from, by their ids."""

    id: int
    kind: int
    turn: int
    other: int | None
    start: int
    stop: int
    time: int
    mark: int


class TraceQuery(NamedTuple):
    """A search: `words` are words or phrases of FTS5, the rarest first.

    A turn with one of the first `rare` words is scored, and any turn with two words. `newest` is
    the part of the turns that is looked at, from 0 to 1.
    """

    words: tuple[str, ...]
    rare: int
    newest: float = 1.0

    @property
    def selective(self) -> str:
        """The expression for the turns to score.

        Empty if every turn with one of the words is scored.
        """
        if self.rare == len(self.words):
            return ""
        terms = list(self.words[: self.rare])
        common = self.words[self.rare :]
        for position, word in enumerate(common[:-1], 1):
            terms.append(f"({word} AND ({' OR '.join(common[position:])}))")
        return " OR ".join(terms) or common[0]


class NewTurn(NamedTuple):
    """A turn to be written.

    words: what it is found by.
    is_statement: whether the person tells something, and does not only ask or give work.
    """

    kind: int
    time: int
    position: str
    mark: int
    words: str
    is_statement: bool = False


class NewLesson(NamedTuple):
    """A lesson to be written, with the positions of its turns in the session."""

    kind: int
    position: str
    other: str
    start: int
    stop: int
    time: int
    mark: int
    terms: tuple[int, ...]


class SessionRows(NamedTuple):
    """A session as it will be written."""

    name: str
    folder: str
    turns: Sequence[NewTurn]
    lessons: Sequence[NewLesson]


_TURN = (
    "select turn.id, turn.exchange, turn.kind, turn.time, turn.position, turn.is_statement,"
    " session.name as session, session.folder, source.agent, source.format, source.path"
    " from turn join session on session.id = turn.session"
    " join source on source.id = session.source"
)


class TraceIndex:
    """An open index. Raises sqlite3.Error if the file is damaged; it may be deleted then."""

    def __init__(self, path: Path, *, may_write: bool = True):
        self.path = path
        self._counts: dict[str, int] = {}
        if may_write:
            make_private(path.parent)
            self._database = self._opened(path)
        else:
            address = f"{path.as_uri()}?mode=ro"
            self._database = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)
            self._database.row_factory = sqlite3.Row

    def _opened(self, path: Path) -> sqlite3.Connection:
        """The database. It is created if it is missing, has another version, or is not a database."""
        for _ in range(2):
            database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            database.row_factory = sqlite3.Row
            try:
                # Words of transcripts are as private as the transcripts.
                path.chmod(0o600)
                database.execute("pragma journal_mode = wal")
                database.execute("pragma synchronous = normal")
                version = database.execute("pragma user_version").fetchone()[0]
                if version == VERSION:
                    return database
                if version == 0 and not database.execute("select 1 from sqlite_master").fetchone():
                    schema = Path(__file__).with_name("schema.sql").read_text("utf-8")
                    database.executescript(f"begin;{schema};pragma user_version = {VERSION};commit")
                    return database
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    database.close()
                    raise
            database.close()
            remove(path)
        raise sqlite3.DatabaseError("the index of transcripts cannot be made")

    def __enter__(self) -> TraceIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    # Writing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is written inside, or nothing."""
        self._database.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._database.execute("rollback")
            raise
        self._database.execute("commit")

    def sources(self) -> dict[str, SourceRow]:
        """The files that are known, by path."""
        rows = self._database.execute("select * from source")
        return {
            row["path"]: SourceRow(
                row["id"],
                row["agent"],
                row["format"],
                row["path"],
                row["stamp"],
                json.loads(row["state"]),
                row["trouble"],
            )
            for row in rows
        }

    def add_source(self, file: SourceFile) -> int:
        """The id of a file, which is known from now on."""
        self._database.execute(
            "insert or ignore into source (agent, format, path) values (?, ?, ?)",
            (file.agent, file.format, str(file.path)),
        )
        row = self._database.execute(
            "select id from source where path = ?", (str(file.path),)
        ).fetchone()
        return int(row["id"])

    def set_source(self, id: int, stamp: str, state: dict[str, Any], trouble: str = "") -> None:
        """Write down how far a file was read."""
        self._database.execute(
            "update source set stamp = ?, state = ?, trouble = ? where id = ?",
            (stamp, json.dumps(state), trouble, id),
        )

    def remove_source(self, id: int) -> None:
        """Forget a file, its sessions and all they taught."""
        rows = self._database.execute("select id from session where source = ?", (id,)).fetchall()
        for row in rows:
            self._remove_turns(row["id"])
        self._database.execute("delete from session where source = ?", (id,))
        self._database.execute("delete from source where id = ?", (id,))

    def append(self, source: int, rows: SessionRows) -> None:
        """Write new turns of a session behind those that are there."""
        self._counts.clear()
        session = self._session(source, rows)
        last = self._database.execute(
            "select exchange from turn where session = ? order by id desc limit 1", (session,)
        ).fetchone()
        ids = self._insert(session, rows.turns, _number(last, "exchange"))
        self._teach(session, rows.lessons, ids)

    def replace(self, source: int, rows: SessionRows) -> None:
        """Make a session what `rows` says. Turns that are as they were stay."""
        self._counts.clear()
        session = self._session(source, rows)
        earlier = self._database.execute(
            "select id, position, mark, exchange from turn where session = ? order by id",
            (session,),
        ).fetchall()
        # Sessions mostly grow, so that only what follows the equal turns is written.
        same = 0
        exchange = 0
        for row, turn in zip(earlier, rows.turns, strict=False):
            if (row["position"], row["mark"]) != (turn.position, turn.mark):
                break
            same += 1
            exchange = row["exchange"]
        outdated = [(row["id"],) for row in earlier[same:]]
        self._forget_lessons(session)
        self._database.executemany("delete from turn where id = ?", outdated)
        ids = {row["position"]: int(row["id"]) for row in earlier[:same]}
        ids |= self._insert(session, rows.turns[same:], exchange)
        self._teach(session, rows.lessons, ids)

    def _session(self, source: int, rows: SessionRows) -> int:
        times = [turn.time for turn in rows.turns if turn.time]
        began = min(times, default=0)
        ended = max(times, default=0)
        self._database.execute(
            "insert into session (source, name, folder, began, ended) values (?, ?, ?, ?, ?)"
            " on conflict (source, name) do update set folder = excluded.folder,"
            " ended = max(ended, excluded.ended)",
            (source, rows.name, rows.folder, began, ended),
        )
        row = self._database.execute(
            "select id from session where source = ? and name = ?", (source, rows.name)
        ).fetchone()
        return int(row["id"])

    def _insert(self, session: int, turns: Sequence[NewTurn], exchange: int) -> dict[str, int]:
        """Write turns; returns their ids by position."""
        # Ids are never used again: the words of a deleted turn remain in the full-text table.
        last = self._database.execute(
            "select seq from sqlite_sequence where name = 'turn'"
        ).fetchone()
        id = _number(last, "seq")
        rows = []
        words = []
        ids = {}
        for turn in turns:
            id += 1
            if turn.kind == Kind.SAID or not exchange:
                exchange = id
            ids[turn.position] = id
            row = {
                "id": id,
                "session": session,
                "exchange": exchange,
                "kind": turn.kind,
                "time": turn.time,
                "position": turn.position,
                "mark": turn.mark,
                "is_statement": turn.is_statement,
            }
            rows.append(row)
            if turn.words:
                words.append((id, turn.words))
        self._database.executemany(_NEW_TURN, rows)
        self._database.executemany("insert into turn_fts (rowid, words) values (?, ?)", words)
        return ids

    def _teach(self, session: int, lessons: Iterable[NewLesson], ids: dict[str, int]) -> None:
        for lesson in lessons:
            turn = ids.get(lesson.position) or self._turn_at(session, lesson.position)
            other_turn = ids.get(lesson.other) or self._turn_at(session, lesson.other)
            if turn is None:
                continue
            written = self._database.execute(
                "insert into lesson (kind, session, turn, other, start, stop, time, mark)"
                " values (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    lesson.kind,
                    session,
                    turn,
                    other_turn,
                    lesson.start,
                    lesson.stop,
                    lesson.time,
                    lesson.mark,
                ),
            )
            self._database.executemany(
                "insert or ignore into anchor (term, lesson) values (?, ?)",
                [(term, written.lastrowid) for term in lesson.terms],
            )

    def _turn_at(self, session: int, position: str) -> int | None:
        if not position:
            return None
        row = self._database.execute(
            "select id from turn where session = ? and position = ?", (session, position)
        ).fetchone()
        return _number(row, "id") or None

    def _remove_turns(self, session: int) -> None:
        # Their words remain in the full-text table, which has no texts to delete them by.
        self._forget_lessons(session)
        self._database.execute("delete from turn where session = ?", (session,))

    def _forget_lessons(self, session: int) -> None:
        self._database.execute(
            "delete from anchor where lesson in (select id from lesson where session = ?)",
            (session,),
        )
        self._database.execute("delete from lesson where session = ?", (session,))

    def waste(self) -> float:
        """The part of the words that belongs to turns that are gone, from 0 to 1."""
        row = self._database.execute(
            "select (select count(*) from turn) as here,"
            " (select seq from sqlite_sequence where name = 'turn') as ever"
        ).fetchone()
        if not row["ever"]:
            return 0.0
        return 1 - float(row["here"]) / float(row["ever"])

    # Asking

    def folders(self) -> list[str]:
        """The folders that sessions worked in."""
        rows = self._database.execute("select distinct folder from session where folder <> ''")
        return [str(row["folder"]) for row in rows]

    def counts(self) -> dict[str, tuple[int, int, int, int]]:
        """By agent: files, sessions, turns, and when the latest session ended."""
        rows = self._database.execute(
            "select source.agent, count(distinct source.id) as files,"
            " count(distinct session.id) as sessions, max(session.ended) as ended"
            " from source left join session on session.source = source.id"
            " where source.trouble = '' group by 1 order by 1"
        ).fetchall()
        turns = dict(
            self._database.execute(
                "select source.agent, count(*) from turn join session on session.id = turn.session"
                " join source on source.id = session.source group by 1"
            ).fetchall()
        )
        return {
            row["agent"]: (
                row["files"],
                row["sessions"],
                turns.get(row["agent"], 0),
                row["ended"] or 0,
            )
            for row in rows
        }

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """In how many turns each of these words is, in any of its forms; those in none are left
        out. They are counted once while the index is open.
        """
        unknown = [word for word in dict.fromkeys(words) if word not in self._counts]
        if unknown:
            self._counts |= dict.fromkeys(unknown, 0)
            self._counts |= self._counted(unknown)
        return {word: self._counts[word] for word in words if self._counts[word]}

    def _counted(self, words: Sequence[str]) -> dict[str, int]:
        with closing(sqlite3.connect(":memory:")) as scratch:
            # Nothing but FTS5 knows its stems
            scratch.execute(
                "create virtual table stem using fts5(word, tokenize ="
                " \"porter unicode61 remove_diacritics 0 categories 'L* M* N* Co'\")"
            )
            scratch.executemany("insert into stem (rowid, word) values (?, ?)", enumerate(words))
            scratch.execute("create virtual table terms using fts5vocab(stem, instance)")
            stems = {
                words[row[0]]: row[1] for row in scratch.execute("select doc, term from terms")
            }
        counts = {}
        for word, stem in stems.items():
            row = self._database.execute(
                "select doc from turn_words where term = ?", (stem,)
            ).fetchone()
            if row is not None:
                counts[word] = int(row["doc"])
        return counts

    def match(
        self, query: TraceQuery, filters: str = "", values: Sequence[Any] = ()
    ) -> list[tuple[TurnRow, float]]:
        """The turns that match, best first, each with how well. `filters` is a condition on them,
        with `values` for its marks.
        """
        most = _CANDIDATES
        if filters:
            # Hits of other agents and projects are dropped after the search.
            most *= 20
        first = self._first(query.newest)
        scored = self._scored(query.words, query.selective, first, most)
        if not scored:
            # No turn has two of the words: one of them has to do.
            scored = self._scored(query.words[:1], "", first, most)
        rows = self._database.execute(
            "with scored(id, score, place) as (select value ->> 0, value ->> 1, key"
            " from json_each(?))"
            f" select scored.score, hit.* from scored join ({_TURN}) as hit on hit.id = scored.id"
            f" {filters} order by scored.place limit {_CANDIDATES}",
            (json.dumps(scored), *values),
        )
        return [(_turn_row(row), -float(row["score"])) for row in rows]

    def _scored(
        self, words: Sequence[str], selective: str, first: int, most: int
    ) -> list[tuple[int, float]]:
        """The ids of the best turns from `first` on that have one of `words`, with their scores.
        Only turns that match `selective`, if it is given, are scored.
        """
        condition = ""
        values: list[Any] = [" OR ".join(words), first]
        if selective:
            # The sign keeps SQLite from asking the full-text table once for each id.
            condition = " and +rowid in (select rowid from turn_fts where turn_fts match ?)"
            values.append(selective)
        rows = self._database.execute(
            "select rowid, bm25(turn_fts) as score from turn_fts"
            f" where turn_fts match ? and rowid >= ?{condition} order by score limit ?",
            (*values, most),
        )
        return [(row["rowid"], row["score"]) for row in rows]

    def _first(self, newest: float) -> int:
        """The id from which on turns are in the newest part, from 0 to 1, of all."""
        return int(self.last_turn() * (1 - newest))

    def last_turn(self) -> int:
        """The id of the newest turn; 0 without any."""
        row = self._database.execute("select max(id) as last from turn").fetchone()
        return int(row["last"] or 0)

    def turns_with(self, word: str, newest: float) -> frozenset[int]:
        """The ids of the turns with a word of a TraceQuery, in the newest part of all."""
        # A single text is read several times as fast as thousands of rows.
        row = self._database.execute(
            "select json_group_array(rowid) as ids from turn_fts"
            " where turn_fts match ? and rowid >= ?",
            (word, self._first(newest)),
        ).fetchone()
        return frozenset(json.loads(row["ids"]))

    def turns(self, ids: Iterable[int]) -> dict[int, TurnRow]:
        """Turns by their ids."""
        result = {}
        for id in ids:
            row = self._database.execute(f"{_TURN} where turn.id = ?", (id,)).fetchone()
            # A turn may be deleted between two questions.
            if row:
                result[id] = _turn_row(row)
        return result

    def exchange(self, id: int) -> list[TurnRow]:
        """The turns of one exchange, in order."""
        row = self._database.execute("select session from turn where id = ?", (id,)).fetchone()
        if row is None:
            return []
        rows = self._database.execute(
            f"{_TURN} where turn.session = ? and turn.exchange = ? order by turn.id",
            (row["session"], id),
        )
        return [_turn_row(item) for item in rows]

    def find_turn(self, session: str, position: str) -> list[TurnRow]:
        """The turns at a position of the sessions whose names begin with `session`."""
        escaped = session.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        rows = self._database.execute(
            f"{_TURN} where session.name like ? escape '\\' and turn.position = ? limit 5",
            (f"{escaped}%", position),
        )
        return [_turn_row(row) for row in rows]

    def lessons(
        self, kinds: Sequence[int] = (), *, terms: Sequence[int] = (), limit: int = 0
    ) -> list[LessonRow]:
        """The lessons of these kinds and about these terms, each once, newest first.

        kinds: numbers of kinds. Empty means all.
        terms: hashes of terms, of which a lesson must have one. Empty means all.
        limit: how many; 0 is all of them.
        """
        where = []
        values: list[Any] = []
        if kinds:
            where.append(f"kind in ({', '.join('?' * len(kinds))})")
            values += kinds
        if terms:
            marks = ", ".join("?" * len(terms))
            where.append(f"id in (select lesson from anchor where term in ({marks}))")
            values += terms
        condition = " and ".join(where) or "true"
        rows = self._database.execute(
            f"select id, kind, turn, other, start, stop, max(time) as time, mark from lesson"
            f" where {condition} group by mark order by time desc limit ?",
            (*values, limit or -1),
        )
        return [LessonRow(*row) for row in rows]

    def has_lesson(self, terms: Sequence[int]) -> bool:
        """Whether there is a lesson about one of these terms."""
        marks = ", ".join("?" * len(terms))
        result = self._database.execute(
            f"select 1 from anchor where term in ({marks}) limit 1", tuple(terms)
        )
        return result.fetchone() is not None

    def lesson(self, mark: int) -> LessonRow | None:
        """The newest lesson with a mark. None if none exists."""
        row = self._database.execute(
            "select id, kind, turn, other, start, stop, time, mark from lesson where mark = ?"
            " order by time desc limit 1",
            (mark,),
        ).fetchone()
        if row is None:
            return None
        return LessonRow(*row)

    def terms_of(self, lesson: int) -> set[int]:
        """The terms of a lesson, as hashes."""
        rows = self._database.execute("select term from anchor where lesson = ?", (lesson,))
        return {int(row["term"]) for row in rows}

    def note_successes(self, times: dict[int, int]) -> None:
        """Write down when commands, by their hashes, worked for the last time."""
        self._database.executemany(
            "insert into success (term, time) values (?, ?)"
            " on conflict (term) do update set time = max(time, excluded.time)",
            times.items(),
        )

    def last_success(self, term: int) -> int:
        """When a command worked for the last time, 0 for never."""
        row = self._database.execute("select time from success where term = ?", (term,)).fetchone()
        return _number(row, "time")

    def files_changed(self, exchange: int) -> list[TurnRow]:
        """The turns of an exchange in which a file was changed."""
        return [turn for turn in self.exchange(exchange) if turn.kind is Kind.EDITED]


def _number(row: sqlite3.Row | None, column: str) -> int:
    """A number in a row. 0 without a row."""
    if row is None:
        return 0
    return int(row[column])


def _turn_row(row: sqlite3.Row) -> TurnRow:
    return TurnRow(
        row["id"],
        row["exchange"],
        Kind(row["kind"]),
        row["time"],
        row["position"],
        row["session"],
        row["folder"],
        row["agent"],
        row["format"],
        row["path"],
        bool(row["is_statement"]),
    )


def remove(path: Path) -> None:
    """Delete an index with all that SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            Path(f"{path}{suffix}").unlink()
