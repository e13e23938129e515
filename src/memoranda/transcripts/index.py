"""The index of transcripts: one SQLite file in the private folder of the home.

A turn is one thing said or done in a session. An exchange is a turn of the person with all turns
up to the person's next one; its number is the id of its first turn. A lesson is a sentence or a
failed command that is worth telling later. Texts are not stored: a turn's position says where its
transcript has the text. A mark is a hash by which an equal turn or lesson is recognized.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.sources.files import make_private
from memoranda.transcripts.turn import Kind, SourceFile

VERSION = 4
"""Raise it when schema.sql or what is indexed changes: an older file is deleted."""
# Seconds to wait for another process that indexes.
_BUSY_SECONDS = 5.0
# Turns that a search returns at most.
_MAX_HITS = 400
# Turns with one word that are counted. Of more turns, the number is estimated by the newest ones.
_MAX_COUNTED_TURNS = 20_000
# A search with filters scores more turns by this factor, because it drops other agents' turns.
_FILTERED_FACTOR = 20
# The kinds by their numbers. Looking one up takes a tenth of the time of `Kind(number)`.
_KINDS = {kind.value: kind for kind in Kind}
_NEW_TURN = (
    "insert into turn (id, session, exchange, kind, time, position, mark, is_statement) "
    "values (:id, :session, :exchange, :kind, :time, :position, :mark, :is_statement)"
)


_NEW_LESSON = (
    "insert into lesson (kind, session, turn, other, start, stop, time, mark)"
    " values (:kind, :session, :turn, :other, :start, :stop, :time, :mark)"
)


class SourceRow(NamedTuple):
    """A file with transcripts, as the table `source` has it.

    id: its number in the table.
    agent, format: the agent that wrote it, and the name of its format.
    path: the path of the file.
    stamp: changes with the file. "" if the file was not read to its end.
    state: where its format goes on reading, as JSON.
    trouble: why it could not be read, or "".
    """

    id: int
    agent: str
    format: str
    path: str
    stamp: str
    state: str
    trouble: str


class TurnRow(NamedTuple):
    """A turn in the index.

    id: its number; later turns have higher ones.
    exchange: the id of the first turn of its exchange: a person's words and everything up to the
        next.
    kind: who speaks, or what a tool did.
    time: seconds since 1970, 0 if unknown.
    position: its place in the transcript, as its format names it.
    session, folder: the name of its session, and the folder that session works in.
    agent, format: the agent that wrote the transcript, and the name of its format.
    path: the file of the transcript.
    is_statement: whether the person tells something, and does not only ask or give work.

    Turns of a session have ascending ids.
    """

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
    """A lesson in the index.

    kind: a number of LessonKind.
    turn: the id of the turn it is from.
    other: the id of the turn with the command that worked, or None.
    start, stop: the sentence in the text of `turn`. Both are 0 for a command.
    time: seconds since 1970.
    mark: a hash that equal lessons share.
    """

    id: int
    kind: int
    turn: int
    other: int | None
    start: int
    stop: int
    time: int
    mark: int


class TraceQuery(NamedTuple):
    """A search for words. A common word counts only in a turn with a second word of the search.

    words: words or phrases of FTS5, the rarest first.
    rare: how many of `words` are rare. They are the first ones; the other words are common.
    newest: the share of all turns that is searched, from 0 to 1, beginning with the newest.
    """

    words: tuple[str, ...]
    rare: int
    newest: float = 1.0

    @property
    def selective(self) -> str:
        """The FTS5 expression that a turn with one of the words must match to be scored.

        A turn must have a rare word or two common words. For the words a, b and c, of which only a
        is rare, the expression is `a OR (b AND (c))`. If all three are common, it is
        `(a AND (b OR c)) OR (b AND (c))`.

        "" if all words are rare: then any word is enough.
        """
        rare_words = self.words[: self.rare]
        common_words = self.words[self.rare :]
        if not common_words:
            return ""
        is_single_word = len(self.words) == 1
        if is_single_word:
            # A second word cannot be asked for.
            return common_words[0]
        # Each common word is paired with the words after it, so that no pair comes twice.
        pairs = [
            f"({word} AND ({' OR '.join(common_words[position:])}))"
            for position, word in enumerate(common_words[:-1], 1)
        ]
        return " OR ".join([*rare_words, *pairs])


class NewTurn(NamedTuple):
    """A turn to be written.

    kind: a number of Kind.
    time: seconds since 1970, 0 if unknown.
    position: its place in the transcript, as its format names it.
    mark: a hash of its text.
    words: the words by which it can be found.
    is_statement: whether the person tells something, and does not only ask or give work.
    """

    kind: int
    time: int
    position: str
    mark: int
    words: str
    is_statement: bool = False


class NewLesson(NamedTuple):
    """A lesson to be written.

    kind: a number of LessonKind.
    position: the position in the session of the turn it is from.
    other: the position of the turn with the command that worked. "" if there is none.
    start, stop: the sentence in the text of the turn. Both are 0 for a command.
    time: seconds since 1970.
    mark: a hash that equal lessons share.
    terms: hashes of the terms it is about.
    """

    kind: int
    position: str
    other: str
    start: int
    stop: int
    time: int
    mark: int
    terms: tuple[int, ...]


class SessionRows(NamedTuple):
    """A session to be written, with new turns and lessons.

    name, folder: the name of the session, and the folder it works in.
    turns, lessons: the new ones.
    """

    name: str
    folder: str
    turns: Sequence[NewTurn]
    lessons: Sequence[NewLesson]


class AgentCounts(NamedTuple):
    """The size of one agent's transcripts.

    files, sessions, turns: how many of each the index has.
    ended: when its latest session ended, in seconds since 1970; 0 if unknown.
    """

    files: int
    sessions: int
    turns: int
    ended: int


class ScoredTurn(NamedTuple):
    """A turn and how well it fits a search: the higher the score, the better."""

    turn: TurnRow
    score: float


_TURN = (
    "select turn.id, turn.exchange, turn.kind, turn.time, turn.position, turn.is_statement,"
    " session.name as session, session.folder, source.agent, source.format, source.path"
    " from turn join session on session.id = turn.session"
    " join source on source.id = session.source"
)


class TraceIndex:
    """An open index. Raises sqlite3.Error if the file is damaged. A damaged file may be deleted."""

    def __init__(self, path: Path, *, may_write: bool = True):
        """Open the index at `path`.

        may_write: whether it may be written. Then it is created if it is missing.
        """
        self.path = path
        # Word -> the number of turns that have it, for words that were counted before.
        self._counts: dict[str, int] = {}
        if may_write:
            make_private(path.parent)
            self._database = self._open_or_create(path)
        else:
            address = f"{path.as_uri()}?mode=ro"
            self._database = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)
            self._database.row_factory = sqlite3.Row

    def _open_or_create(self, path: Path) -> sqlite3.Connection:
        """Open the database for writing.

        It is created if it is missing, has another version, or is not a database.
        """
        # An unusable file is removed in the first pass and created in the second.
        for _ in range(2):
            database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            database.row_factory = sqlite3.Row
            try:
                # The words of transcripts must be as private as the transcripts.
                path.chmod(0o600)
                database.execute("pragma journal_mode = wal")
                database.execute("pragma synchronous = normal")
                if _is_empty(database):
                    schema = Path(__file__).with_name("schema.sql").read_text("utf-8")
                    database.executescript(f"begin;{schema};pragma user_version = {VERSION};commit")
                if _version_of(database) == VERSION:
                    return database
            except sqlite3.DatabaseError as error:
                # A locked file or a full disk is no reason to delete the index.
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

    @property
    def version(self) -> int:
        """The version of the open file. Another one than VERSION cannot be searched."""
        return _version_of(self._database)

    # Writing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that the block writes. If the block fails, nothing is written."""
        self._database.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._database.execute("rollback")
            raise
        self._database.execute("commit")

    def sources(self) -> dict[str, SourceRow]:
        """Return all files in the index by path."""
        rows = self._database.execute("select * from source")
        return {
            row["path"]: SourceRow(
                row["id"],
                agent=row["agent"],
                format=row["format"],
                path=row["path"],
                stamp=row["stamp"],
                state=row["state"],
                trouble=row["trouble"],
            )
            for row in rows
        }

    def troubles(self) -> dict[str, str]:
        """Return why files could not be read, by path."""
        rows = self._database.execute("select path, trouble from source where trouble <> ''")
        return {row["path"]: row["trouble"] for row in rows}

    def add_source(self, file: SourceFile) -> int:
        """Add a file unless the index has it, and return its id."""
        self._database.execute(
            "insert or ignore into source (agent, format, path) values (?, ?, ?)",
            (file.agent, file.format, str(file.path)),
        )
        row = self._database.execute(
            "select id from source where path = ?", (str(file.path),)
        ).fetchone()
        return int(row["id"])

    def set_source(self, id: int, stamp: str, state: dict[str, Any], trouble: str = "") -> None:
        """Write down how far a file was read.

        id: the number of the file.
        stamp, state, trouble: the new values of its SourceRow.
        """
        self._database.execute(
            "update source set stamp = ?, state = ?, trouble = ? where id = ?",
            (stamp, json.dumps(state), trouble, id),
        )

    def remove_source(self, id: int) -> None:
        """Remove a file with its sessions, their turns and lessons."""
        rows = self._database.execute("select id from session where source = ?", (id,)).fetchall()
        for row in rows:
            self._remove_turns(row["id"])
        self._database.execute("delete from session where source = ?", (id,))
        self._database.execute("delete from source where id = ?", (id,))

    def append(self, source: int, rows: SessionRows) -> None:
        """Add turns and lessons at the end of a session. `source` is the id of its file."""
        self._counts.clear()
        session = self._session(source, rows)
        last = self._database.execute(
            "select exchange from turn where session = ? order by id desc limit 1", (session,)
        ).fetchone()
        ids = self._insert(session, rows.turns, _number(last, "exchange"))
        self._insert_lessons(session, rows.lessons, ids)

    def replace(self, source: int, rows: SessionRows) -> None:
        """Replace the turns and lessons of a session by `rows`.

        Turns at its beginning that have not changed are not written again.

        source: the id of the session's file.
        """
        self._counts.clear()
        session = self._session(source, rows)
        known_rows = self._database.execute(
            "select id, position, mark, exchange from turn where session = ? order by id",
            (session,),
        ).fetchall()
        # Sessions mostly grow, so that only what follows the equal turns is written.
        equal_count = 0
        exchange = 0
        for row, turn in zip(known_rows, rows.turns, strict=False):
            if (row["position"], row["mark"]) != (turn.position, turn.mark):
                break
            equal_count += 1
            exchange = row["exchange"]
        outdated_ids = [(row["id"],) for row in known_rows[equal_count:]]
        self._forget_lessons(session)
        self._database.executemany("delete from turn where id = ?", outdated_ids)
        ids = {row["position"]: int(row["id"]) for row in known_rows[:equal_count]}
        ids |= self._insert(session, rows.turns[equal_count:], exchange)
        self._insert_lessons(session, rows.lessons, ids)

    def _session(self, source: int, rows: SessionRows) -> int:
        """Add a session or update its times, and return its id."""
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
        """Write turns, and return their ids by position.

        exchange: the exchange that the session's last turn belongs to. 0 for a new session.
        """
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
            # The words of a person begin an exchange.
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

    def _insert_lessons(
        self, session: int, lessons: Iterable[NewLesson], ids: dict[str, int]
    ) -> None:
        """Write lessons.

        session: the id of their session.
        ids: the ids of some turns, by position. Other turns are looked up.
        """
        for lesson in lessons:
            turn = ids.get(lesson.position) or self._turn_at(session, lesson.position)
            other_turn = ids.get(lesson.other) or self._turn_at(session, lesson.other)
            # The transcript was shortened meanwhile.
            if turn is None:
                continue
            row = {
                "kind": lesson.kind,
                "session": session,
                "turn": turn,
                "other": other_turn,
                "start": lesson.start,
                "stop": lesson.stop,
                "time": lesson.time,
                "mark": lesson.mark,
            }
            insertion = self._database.execute(_NEW_LESSON, row)
            self._database.executemany(
                "insert or ignore into anchor (term, lesson) values (?, ?)",
                [(term, insertion.lastrowid) for term in lesson.terms],
            )

    def _turn_at(self, session: int, position: str) -> int | None:
        """Return the id of the turn at a position, or None."""
        if not position:
            return None
        row = self._database.execute(
            "select id from turn where session = ? and position = ?", (session, position)
        ).fetchone()
        return _number(row, "id") or None

    def _remove_turns(self, session: int) -> None:
        """Delete the turns and lessons of a session."""
        # Their words remain in the full-text table: deleting them would need the texts.
        self._forget_lessons(session)
        self._database.execute("delete from turn where session = ?", (session,))

    def _forget_lessons(self, session: int) -> None:
        """Delete the lessons of a session."""
        self._database.execute(
            "delete from anchor where lesson in (select id from lesson where session = ?)",
            (session,),
        )
        self._database.execute("delete from lesson where session = ?", (session,))

    def waste(self) -> float:
        """Return the share of deleted turns among all turns ever written, from 0 to 1.

        The words of deleted turns still use space.
        """
        row = self._database.execute(
            "select (select count(*) from turn) as present_turns,"
            " (select seq from sqlite_sequence where name = 'turn') as written_turns"
        ).fetchone()
        if not row["written_turns"]:
            return 0.0
        return 1 - float(row["present_turns"]) / float(row["written_turns"])

    # Asking

    def folders(self) -> list[str]:
        """Return the folders that sessions worked in."""
        rows = self._database.execute("select distinct folder from session where folder <> ''")
        return [str(row["folder"]) for row in rows]

    def counts(self) -> dict[str, AgentCounts]:
        """Return the size of each agent's transcripts, by the agent's name."""
        rows = self._database.execute(
            "select source.agent, count(distinct source.id) as files,"
            " count(distinct session.id) as sessions, max(session.ended) as ended"
            " from source left join session on session.source = source.id"
            " where source.trouble = '' group by 1 order by 1"
        ).fetchall()
        turn_rows = self._database.execute(
            "select source.agent, count(*) from turn join session on session.id = turn.session"
            " join source on source.id = session.source group by 1"
        ).fetchall()
        turns_by_agent: dict[str, int] = dict(turn_rows)
        counts: dict[str, AgentCounts] = {}
        for row in rows:
            agent = row["agent"]
            counts[agent] = AgentCounts(
                files=row["files"],
                sessions=row["sessions"],
                turns=turns_by_agent.get(agent, 0),
                ended=row["ended"] or 0,
            )
        return counts

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """Count the turns that have each of these words in any form, e.g. `{"port": 12}`.

        Words that no turn has are left out. The count of a word that is in very many turns is an
        estimate. Counts are remembered while the index is open.
        """
        uncounted = [word for word in dict.fromkeys(words) if word not in self._counts]
        if uncounted:
            self._counts |= dict.fromkeys(uncounted, 0)
            self._counts |= self._count_turns(uncounted)
        return {word: self._counts[word] for word in words if self._counts[word]}

    def _count_turns(self, words: Sequence[str]) -> dict[str, int]:
        """Count the turns with each word. Words that no turn has are left out."""
        last = self.last_turn()
        counts = {}
        for word in words:
            phrase = '"' + word.replace('"', "") + '"'
            row = self._database.execute(
                "select count(*) as count, min(rowid) as first from (select rowid from turn_fts"
                " where turn_fts match ? order by rowid desc limit ?)",
                (phrase, _MAX_COUNTED_TURNS),
            ).fetchone()
            count = row["count"]
            # Counting all turns with a very common word would take longer than a whole search.
            if count == _MAX_COUNTED_TURNS:
                count = count * last // (last - row["first"] + 1)
            if count:
                counts[word] = count
        return counts

    def match(
        self, query: TraceQuery, filters: str = "", values: Sequence[Any] = ()
    ) -> list[ScoredTurn]:
        """Return the turns that match, best first.

        filters: an SQL condition on the columns of `hit`, e.g. `where hit.agent = ?`, or "".
        values: the values for its question marks.
        """
        max_hits = _MAX_HITS
        if filters:
            max_hits *= _FILTERED_FACTOR
        first = self._first_id_of_newest(query.newest)
        scored = self._scored(query.words, query.selective, first, max_hits)
        if not scored:
            # No turn has a rare word or two common ones: the rarest word alone is enough.
            scored = self._scored(query.words[:1], "", first, max_hits)
        rows = self._database.execute(
            "with scored(id, score, place) as (select value ->> 0, value ->> 1, key"
            " from json_each(?))"
            f" select scored.score, hit.* from scored join ({_TURN}) as hit on hit.id = scored.id"
            f" {filters} order by scored.place limit {_MAX_HITS}",
            (json.dumps(scored), *values),
        )
        # The bm25 of SQLite is negative: the lower, the better.
        return [ScoredTurn(_turn_row(row), -float(row["score"])) for row in rows]

    def _scored(
        self, words: Sequence[str], selective: str, first: int, max_hits: int
    ) -> list[tuple[int, float]]:
        """Return the ids and the bm25 scores of the best turns that have one of `words`.

        words: words or phrases of FTS5.
        selective: an FTS5 expression that scored turns must match. "" means all turns.
        first: the lowest id to look at.
        max_hits: the most turns to return.
        """
        condition = ""
        values: list[Any] = [" OR ".join(words), first]
        if selective:
            # The `+` keeps SQLite from querying the full-text table once for each id.
            condition = (
                " and +rowid in (select rowid from turn_fts where turn_fts match ? and rowid >= ?)"
            )
            values += [selective, first]
        rows = self._database.execute(
            "select rowid, bm25(turn_fts) as score from turn_fts"
            f" where turn_fts match ? and rowid >= ?{condition} order by score limit ?",
            (*values, max_hits),
        )
        return [(row["rowid"], row["score"]) for row in rows]

    def _first_id_of_newest(self, newest: float) -> int:
        """Return the id of the oldest turn in the newest share of all turns.

        newest: the share, from 0 to 1. With 0.1, only the last tenth of the turns has higher ids.
        """
        return int(self.last_turn() * (1 - newest))

    def last_turn(self) -> int:
        """Return the id of the newest turn, 0 if the index has no turns."""
        row = self._database.execute("select max(id) as last from turn").fetchone()
        return int(row["last"] or 0)

    def turns_with(self, word: str, newest: float, first: int) -> frozenset[int]:
        """Return the ids of the turns with a word.

        newest: the share of all turns that is searched, from 0 to 1, beginning with the newest.
        first: the lowest id to look at.
        """
        # One JSON text is read several times as fast as thousands of rows.
        row = self._database.execute(
            "select json_group_array(rowid) as ids from turn_fts"
            " where turn_fts match ? and rowid >= ?",
            (word, max(first, self._first_id_of_newest(newest))),
        ).fetchone()
        return frozenset(json.loads(row["ids"]))

    def turns(self, ids: Iterable[int]) -> dict[int, TurnRow]:
        """Return turns by their ids. Turns that were deleted meanwhile are left out."""
        turns = {}
        for id in ids:
            row = self._database.execute(f"{_TURN} where turn.id = ?", (id,)).fetchone()
            if row:
                turns[id] = _turn_row(row)
        return turns

    def exchange(self, id: int) -> list[TurnRow]:
        """Return the turns of an exchange in order; [] if it is not in the index.

        id: the id of the exchange's first turn.
        """
        row = self._database.execute("select session from turn where id = ?", (id,)).fetchone()
        if row is None:
            return []
        rows = self._database.execute(
            f"{_TURN} where turn.session = ? and turn.exchange = ? order by turn.id",
            (row["session"], id),
        )
        return [_turn_row(turn) for turn in rows]

    def find_turn(self, session: str, position: str) -> list[TurnRow]:
        """Return the turns at a position, in all sessions whose names begin with `session`.

        At most 5 are returned, which is enough to see that the beginning is not unique.
        """
        escaped = session.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        rows = self._database.execute(
            f"{_TURN} where session.name like ? escape '\\' and turn.position = ? limit 5",
            (f"{escaped}%", position),
        )
        return [_turn_row(row) for row in rows]

    def lessons(
        self, kinds: Sequence[int] = (), *, terms: Sequence[int] = (), limit: int = 0
    ) -> list[LessonRow]:
        """Return lessons, newest first. Of equal lessons only the newest is returned.

        kinds: numbers of LessonKind. Empty means all kinds.
        terms: hashes of terms. A lesson must be about one of them. Empty means about anything.
        limit: the largest number of lessons. 0 means all.
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
        # For SQLite, a negative limit is no limit.
        sql_limit = limit or -1
        rows = self._database.execute(
            f"select id, kind, turn, other, start, stop, max(time) as time, mark from lesson"
            f" where {condition} group by mark order by time desc limit ?",
            (*values, sql_limit),
        )
        return [LessonRow(*row) for row in rows]

    def has_lesson(self, terms: Sequence[int]) -> bool:
        """Whether there is a lesson about one of these terms, which are hashes."""
        marks = ", ".join("?" * len(terms))
        result = self._database.execute(
            f"select 1 from anchor where term in ({marks}) limit 1", tuple(terms)
        )
        return result.fetchone() is not None

    def lesson(self, mark: int) -> LessonRow | None:
        """Return the newest lesson with this mark, or None."""
        row = self._database.execute(
            "select id, kind, turn, other, start, stop, time, mark from lesson where mark = ?"
            " order by time desc limit 1",
            (mark,),
        ).fetchone()
        if row is None:
            return None
        return LessonRow(*row)

    def terms_of(self, lesson: int) -> set[int]:
        """Return the hashes of the terms that a lesson is about. `lesson` is its id.

        A term is a command, a package, a name in code, or an error.
        """
        rows = self._database.execute("select term from anchor where lesson = ?", (lesson,))
        return {int(row["term"]) for row in rows}

    def record_successes(self, times: dict[int, int]) -> None:
        """Write down when commands worked: hash of the command's term -> seconds since 1970.

        An earlier time than the recorded one changes nothing.
        """
        self._database.executemany(
            "insert into success (term, time) values (?, ?)"
            " on conflict (term) do update set time = max(time, excluded.time)",
            times.items(),
        )

    def last_success(self, term: int) -> int:
        """Return when a command worked for the last time, in seconds since 1970. 0 means never.

        term: the hash of the command's term.
        """
        row = self._database.execute("select time from success where term = ?", (term,)).fetchone()
        return _number(row, "time")

    def files_changed(self, exchange: int) -> list[TurnRow]:
        """Return the turns of an exchange that changed a file."""
        return [turn for turn in self.exchange(exchange) if turn.kind is Kind.EDITED]


def _is_empty(database: sqlite3.Connection) -> bool:
    """Whether a database has no tables yet."""
    return database.execute("select 1 from sqlite_master").fetchone() is None


def _version_of(database: sqlite3.Connection) -> int:
    """Return the version that `_open_or_create` wrote into an index. 0 for any other database."""
    return int(database.execute("pragma user_version").fetchone()[0])


def _number(row: sqlite3.Row | None, column: str) -> int:
    """Return the number in a column of a row, or 0 if there is no row."""
    if row is None:
        return 0
    return int(row[column])


def _turn_row(row: sqlite3.Row) -> TurnRow:
    """Convert a row of the query _TURN."""
    return TurnRow(
        id=row["id"],
        exchange=row["exchange"],
        kind=_KINDS[row["kind"]],
        time=row["time"],
        position=row["position"],
        session=row["session"],
        folder=row["folder"],
        agent=row["agent"],
        format=row["format"],
        path=row["path"],
        is_statement=bool(row["is_statement"]),
    )


def is_outdated(path: Path) -> bool:
    """Whether a file is the index of another version. `TraceIndex` replaces it when it writes."""
    with TraceIndex(path, may_write=False) as index:
        return index.version != VERSION


def remove(path: Path) -> None:
    """Delete an index and the files that SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            Path(f"{path}{suffix}").unlink()
