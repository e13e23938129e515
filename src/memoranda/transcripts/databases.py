"""Formats in SQLite databases of other programs, which are only read.

Each session that has changed since the last reading is yielded whole. The `state` of Format is:
name of a session -> its mark, a text that changes with the session.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from memoranda.transcripts.blocks import (
    Part,
    failed_by_code,
    failure,
    speaker,
    spoken,
    text_of,
    tool_call,
    tool_result,
)
from memoranda.transcripts.lines import goose_parts
from memoranda.transcripts.turn import (
    Kind,
    NotUnderstood,
    Session,
    SessionTurns,
    Turn,
    as_list,
    as_object,
    seconds,
)

# Seconds to wait for the client that owns the database.
_BUSY_SECONDS = 0.5
# Seconds for unpacking one text of Zed.
_ZSTD_SECONDS = 10
_NO_ZSTD = "its threads are compressed with Zstandard: install the program zstd, or use Python 3.14"


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading. Raises OSError if it is missing, NotUnderstood for SQLite errors."""
    # Raises OSError with a better reason than SQLite's.
    path.stat()
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)) as database:
            database.row_factory = sqlite3.Row
            yield database
    except sqlite3.Error as error:
        raise NotUnderstood(f"SQLite: {error}") from None


class DatabaseFormat:
    """Reads the changed sessions of a database. A subclass reads one program's tables.

    A position is `KEY.PART`: the key of a row, and the number of the part in it.
    """

    grows = False

    def session_marks(self, database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
        """Yield the name of every session, and a mark that changes with the session."""
        raise NotImplementedError

    def session(self, database: sqlite3.Connection, name: str) -> SessionTurns:
        """Return one session with all its turns.

        database: the database of the program, open for reading.
        name: the name of the session, as `session_marks` yields it.
        """
        raise NotImplementedError

    def read(self, path: Path, state: dict[str, Any]) -> Iterator[SessionTurns]:
        """Yield the sessions that have changed since the last call.

        state: name of a session -> its mark. This method updates it.
        """
        with _reading(path) as database:
            # Read all names first, since a session is read with the same connection.
            for name, mark in list(self.session_marks(database)):
                if state.get(name) != mark:
                    yield self.session(database, name)
                    state[name] = mark

    def passage(self, path: Path, session: str, position: str) -> str | None:
        """Return the text of the turn at a position of a session. None if it is gone."""
        with _reading(path) as database:
            for turn in self.session(database, session).turns:
                if turn.position == position:
                    return turn.text
        return None


def _turns_of_row(key: str, parts: Iterator[Part], time: float) -> list[Turn]:
    """Return the parts of a row as turns. `time` is in seconds since 1970."""
    return [
        Turn(part.kind, part.text, f"{key}.{number}", time, part.call, part.has_failed)
        for number, part in enumerate(parts)
    ]


def _object(text: Any) -> dict[str, Any]:
    """Return the JSON object in a column, or {} for anything else."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return as_object(value)


def _row(database: sqlite3.Connection, query: str, key: str) -> dict[str, Any]:
    """Return the row that a query finds by its key, or {}.

    database: the database, open for reading.
    query: SQL with one `?` for the key.
    """
    row = database.execute(query, (key,)).fetchone()
    if row is None:
        return {}
    return dict(row)


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    """Return the names of a table's columns, because they differ between versions of a program.

    database: the database, open for reading.
    """
    rows = database.execute("select name from pragma_table_info(?)", (table,))
    return {str(row["name"]) for row in rows}


class OpenCode(DatabaseFormat):
    """Reads `~/.local/share/opencode/opencode.db`."""

    def session_marks(self, database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
        """Yield the name of every session, and the time of its last change."""
        rows = database.execute("select id, time_updated from session")
        for row in rows:
            yield str(row["id"]), str(row["time_updated"])

    def session(self, database: sqlite3.Connection, name: str) -> SessionTurns:
        """Return a session. Each row of the table `part` is a text or a tool call with its result."""
        query = "select directory, time_created from session where id = ?"
        session_row = _row(database, query, name)
        folder = str(session_row.get("directory") or "")
        session_turns = SessionTurns(
            Session(name, folder, seconds(session_row.get("time_created")))
        )
        rows = database.execute(
            "select message.data as message, part.id as id, part.data as part from message"
            " join part on part.message_id = message.id where message.session_id = ?"
            " order by message.time_created, message.id, part.id",
            (name,),
        )
        for row in rows:
            message = _object(row["message"])
            part = _object(row["part"])
            began = as_object(part.get("time")).get("start")
            time = seconds(began) or seconds(as_object(message.get("time")).get("created"))
            parts = self._parts(str(message.get("role")), part)
            session_turns.turns += _turns_of_row(
                str(row["id"]), parts, time or session_turns.session.time
            )
        return session_turns

    def _parts(self, role: str, part: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one row or message.

        role: `user` for the person; anything else is the agent.
        """
        shape = part.get("type")
        if shape == "text" and not part.get("synthetic"):
            yield from spoken(speaker(role == "user"), str(part.get("text") or ""))
        elif shape == "tool":
            state = as_object(part.get("state"))
            call = str(part.get("callID") or "")
            yield from tool_call(str(part.get("tool")), state.get("input"), call)
            # A command may end with an error code although the tool itself did not fail.
            failed = failed_by_code(as_object(state.get("metadata")).get("exit"))
            if failed is None:
                failed = failure(state.get("status") == "error")
            yield from tool_result(state.get("output") or state.get("error"), call, failed)


class CursorEditor(DatabaseFormat):
    """Reads `state.vscdb` of Cursor, a table of keys and JSON values.

    `composerData:ID` is a session, called a composer, and `bubbleId:ID:MESSAGE` a message, called
    a bubble.
    """

    def session_marks(self, database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
        """Yield the name of every session, and its size with the time of its last change."""
        tables = {row[0] for row in database.execute("select name from sqlite_master")}
        if "cursorDiskKV" not in tables:
            return
        # `json_extract` would fail for all rows if one value is damaged.
        rows = database.execute(
            "select key, length(value) as size,"
            " case when json_valid(value) then json_extract(value, '$.lastUpdatedAt') end as time"
            " from cursorDiskKV where key >= 'composerData:' and key < 'composerData;'"
            " and value is not null"
        )
        for row in rows:
            yield str(row["key"]).partition(":")[2], f"{row['time']} {row['size']}"

    def session(self, database: sqlite3.Connection, name: str) -> SessionTurns:
        """Return a session. Its folder is found in the first message that names one."""
        query = "select value from cursorDiskKV where key = ?"
        composer = _object(_row(database, query, f"composerData:{name}").get("value"))
        began = seconds(composer.get("createdAt"))
        session_turns = SessionTurns(Session(name, "", began))
        for key, bubble in self._bubbles(database, name, composer):
            if not session_turns.session.folder:
                session_turns.session.folder = self._folder(bubble)
            time = seconds(bubble.get("timestamp")) or seconds(bubble.get("createdAt")) or began
            session_turns.turns += _turns_of_row(key, self._parts(bubble), time)
        return session_turns

    def _folder(self, bubble: dict[str, Any]) -> str:
        """Return the folder that a message was written in, or "" if it does not say."""
        folder = bubble.get("workspaceProjectDir")
        if isinstance(folder, str) and folder:
            return folder
        for address in as_list(bubble.get("workspaceUris")):
            place = urlsplit(str(address))
            if place.scheme == "file":
                return unquote(place.path)
        return ""

    def _bubbles(
        self, database: sqlite3.Connection, name: str, composer: dict[str, Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the keys and the messages of a session in order.

        Older versions have them in the composer, newer ones in separate rows.

        composer: the session as JSON.
        """
        inline = composer.get("conversation")
        if isinstance(inline, list) and inline:
            for number, bubble in enumerate(inline):
                if isinstance(bubble, dict):
                    yield str(bubble.get("bubbleId") or number), bubble
            return
        # `;` is the character after `:`, so this range is every key with that prefix.
        rows = database.execute(
            "select key, value from cursorDiskKV where key >= ? and key < ? order by rowid",
            (f"bubbleId:{name}:", f"bubbleId:{name};"),
        )
        bubbles = {str(row["key"]).rpartition(":")[2]: _object(row["value"]) for row in rows}
        # Headers give the order. Messages without a header follow in the order of their rows.
        headers = as_list(composer.get("fullConversationHeadersOnly"))
        order = [str(item.get("bubbleId")) for item in headers if isinstance(item, dict)]
        for key in dict.fromkeys([*order, *bubbles]):
            if key in bubbles:
                yield key, bubbles[key]

    def _parts(self, bubble: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one row or message."""
        # Cursor numbers the speakers: 1 is the person.
        kind = speaker(bubble.get("type") == 1)
        text = bubble.get("text") or bubble.get("rawText")
        if isinstance(text, str):
            yield from spoken(kind, text)
        tool = bubble.get("toolFormerData")
        if isinstance(tool, dict):
            yield from self._tool(tool)

    def _tool(self, tool: dict[str, Any]) -> Iterator[Part]:
        """Yield the call of a tool and its result."""
        call = str(tool.get("toolCallId") or "")
        # The arguments as the model wrote them may be empty. Then those that Cursor made are taken.
        raw_arguments = tool.get("rawArgs")
        arguments = _object(raw_arguments) or tool.get("params") or raw_arguments
        yield from tool_call(str(tool.get("name")), arguments, call)

        result = tool.get("result")
        values = _object(result)
        if values.get("rejected"):
            # A call that the person refused has not run.
            return
        # A result that is not an object is a text, but `{}` is an empty object.
        output: Any = values
        if not values and result != "{}":
            output = result
        # The older key has no 0: Cursor leaves it out.
        failed = failed_by_code(values.get("exitCodeV2", values.get("exitCode")))
        if failed is None:
            failed = failure(tool.get("status") == "error")
        yield from tool_result(output, call, failed)


class GooseDatabase(DatabaseFormat):
    """Reads `~/.local/share/goose/sessions/sessions.db`.

    Older versions of Goose have neither types of sessions nor metadata of messages.
    """

    def session_marks(self, database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
        """Yield (name, id of the last message) of each session that a person had."""
        condition = ""
        if "session_type" in _columns(database, "sessions"):
            condition = (
                " where session_id not in"
                " (select id from sessions where session_type in ('sub_agent', 'hidden'))"
            )
        rows = database.execute(
            f"select session_id, max(id) as last from messages{condition} group by 1"
        )
        for row in rows:
            yield str(row["session_id"]), str(row["last"])

    def session(self, database: sqlite3.Connection, name: str) -> SessionTurns:
        """Return a session. Each row of the table `messages` has its content as JSON."""
        session_row = _row(database, "select working_dir from sessions where id = ?", name)
        folder = str(session_row.get("working_dir") or "")
        session_turns = SessionTurns(Session(name, folder))
        metadata = "null"
        if "metadata_json" in _columns(database, "messages"):
            metadata = "metadata_json"
        rows = database.execute(
            f"select id, role, content_json, created_timestamp, {metadata} as metadata"
            " from messages where session_id = ? order by id",
            (name,),
        )
        for row in rows:
            # Goose writes summaries of a conversation for the model alone, in the person's name.
            if _object(row["metadata"]).get("userVisible") is False:
                continue
            try:
                content = json.loads(row["content_json"])
            except (TypeError, ValueError, RecursionError):
                continue
            time = seconds(row["created_timestamp"])
            session_turns.turns += _turns_of_row(
                str(row["id"]), goose_parts(str(row["role"]), content), time
            )
        return session_turns


class Zed(DatabaseFormat):
    """Reads `threads.db` of Zed, which has a document for each thread, mostly compressed."""

    def session_marks(self, database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
        """Yield the name of every thread, and the time of its last change.

        Threads of subagents are left out. Raises NotUnderstood if threads are compressed and nothing
        on this machine can decompress them.
        """
        kinds = {row[0] for row in database.execute("select distinct data_type from threads")}
        if "zstd" in kinds and not _can_decompress():
            raise NotUnderstood(_NO_ZSTD)
        condition = ""
        # The thread of a subagent has a parent.
        if "parent_id" in _columns(database, "threads"):
            condition = " where parent_id is null"
        for row in database.execute(f"select id, updated_at from threads{condition}"):
            yield str(row["id"]), str(row["updated_at"])

    def session(self, database: sqlite3.Connection, name: str) -> SessionTurns:
        """Return a thread. The whole thread is one document in JSON, mostly compressed."""
        row = _row(database, "select * from threads where id = ?", name)
        session_turns = SessionTurns(Session(name))
        if not row:
            return session_turns
        # Older versions of Zed have no folders and no time of creation.
        session_turns.session.folder = self._first_folder(row)
        session_turns.session.time = seconds(row.get("created_at") or row["updated_at"])
        data = row["data"]
        if row["data_type"] == "zstd":
            data = _decompressed(data)
        messages = _object(data).get("messages")
        for number, message in enumerate(as_list(messages)):
            if isinstance(message, dict):
                parts = self._parts(message)
                session_turns.turns += _turns_of_row(str(number), parts, session_turns.session.time)
        return session_turns

    def _first_folder(self, row: dict[str, Any]) -> str:
        """Return the folder that a thread was opened with first, or "".

        Zed sorts the folders, and writes the place that each of them had beside them: the folders
        `/a` and `/b` with the places `1,0` were opened as `/b` and `/a`.
        """
        folders = str(row.get("folder_paths") or "").split("\n")
        places = str(row.get("folder_paths_order") or "").split(",")
        if len(places) == len(folders) and "0" in places:
            return folders[places.index("0")]
        return folders[0]

    def _parts(self, message: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one row or message."""
        if "segments" in message:
            yield from self._older_parts(message)
            return
        # The present form names the speaker by the key of the message.
        for name, kind in (("User", Kind.SAID), ("Agent", Kind.ANSWERED)):
            body = message.get(name)
            if isinstance(body, dict):
                yield from self._body(kind, body)

    def _older_parts(self, message: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of a message in the form of version 0.2.0 and before."""
        if message.get("role") not in ("user", "assistant"):
            return
        texts = [
            str(segment.get("text") or "")
            for segment in as_list(message["segments"])
            if isinstance(segment, dict) and segment.get("type") == "text"
        ]
        yield from spoken(speaker(message["role"] == "user"), "\n".join(texts))
        for use in map(as_object, as_list(message.get("tool_uses"))):
            yield from tool_call(str(use.get("name")), use.get("input"), str(use.get("id") or ""))
        for result in map(as_object, as_list(message.get("tool_results"))):
            call = str(result.get("tool_use_id") or "")
            yield from self._result(call, result)

    def _body(self, kind: Kind, body: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of a message in the present form."""
        for block in as_list(body.get("content")):
            if isinstance(block, dict):
                yield from self._block(kind, block)
        for call, result in as_object(body.get("tool_results")).items():
            if isinstance(result, dict):
                yield from self._result(str(call), result)

    def _result(self, call: str, result: dict[str, Any]) -> Iterator[Part]:
        """Yield the result of a tool. `call` is the id of its call."""
        failed = failure(bool(result.get("is_error")))
        yield from tool_result(text_of(_zed_text(result.get("content"))), call, failed)

    def _block(self, kind: Kind, block: dict[str, Any]) -> Iterator[Part]:
        """Yield the part of one block of a message: text or a tool call."""
        # A mention has the contents of a file or a page, which nobody said.
        text = block.get("Text")
        if isinstance(text, str):
            yield from spoken(kind, text)
        use = block.get("ToolUse")
        if isinstance(use, dict):
            call = str(use.get("id") or "")
            yield from tool_call(str(use.get("name")), use.get("input"), call)


def _zed_text(content: Any) -> Any:
    """Return the content of a result without Zed's tags: `a` for `{"Text": "a"}`."""
    if isinstance(content, dict):
        return content.get("Text") or ""
    if isinstance(content, list):
        return [_zed_text(item) for item in content]
    return content


def _can_decompress() -> bool:
    """Whether this Python, or the program zstd, decompresses Zstandard."""
    return _zstd_module() is not None or shutil.which("zstd") is not None


def _zstd_module() -> Any:
    """Return the module of this Python that decompresses Zstandard, or None."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


def _decompressed(data: bytes) -> bytes:
    """Decompress a text. b"" if it is damaged, so that the other threads can be read."""
    module = _zstd_module()
    try:
        if module is None:
            process = subprocess.run(
                ["zstd", "-dcq"], input=data, capture_output=True, timeout=_ZSTD_SECONDS, check=True
            )
            return process.stdout
        if module.__name__ == "zstandard":
            return bytes(module.ZstdDecompressor().decompressobj().decompress(data))
        return bytes(module.decompress(data))
    except (OSError, ValueError, RuntimeError, subprocess.SubprocessError):
        # Each module defines its own errors.
        return b""
    except getattr(module, "ZstdError", ValueError):
        return b""
