"""Formats with one JSON object in each line, in files that only grow.

An entry is the object in a line. Most programs name its kind in `type`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from memoranda.transcripts.blocks import (
    Part,
    anthropic_parts,
    failed_by_code,
    failed_by_text,
    failure,
    spoken,
    text_of,
    tool_call,
    tool_result,
)
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

# Bytes of a line that are read to show one turn.
_MAX_LINE_BYTES = 64 << 20
# A file is not in a format if it has at least this number of lines and none of them is known.
_MIN_UNKNOWN_LINES = 3


class LineFormat:
    """Reads the lines that were added since the last reading. A subclass reads one program's lines.

    A last line without an end is read the next time. A position is `OFFSET.PART`: where the line
    begins, in bytes, and the number of the part in it.
    """

    grows = True

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        """Return the parts of one entry, and update the session's name, folder and time.

        An empty iterator and None differ:

        - The iterator is empty if the program wrote the entry, but nobody said or did anything in
          it, such as a title.
        - None means that the entry is not of this format. A file that has only such entries is
          refused (`NotUnderstood`).
        """
        raise NotImplementedError

    def begin(self, path: Path) -> Session:
        """Return a session with the facts that the path of its file tells, before any line is read."""
        return Session(name=path.stem)

    def read(self, path: Path, state: dict[str, Any]) -> Iterator[SessionTurns]:
        """Yield the turns that were added to a file since the last call.

        state: how far the file was read, and the session so far. It is updated.

        Raises NotUnderstood if many lines were read and none has a known form.
        """
        session = self.begin(path)
        if "session" in state:
            session = Session(**state["session"])
        session_turns = SessionTurns(session)
        # The known lines count since the first reading, the unknown ones in this reading.
        known_lines = state.get("known", 0)
        unknown_lines = 0
        offset = state.get("offset", 0)
        with path.open("rb") as file:
            file.seek(offset)
            for line in file:
                # A last line without a line break is still being written.
                if not line.endswith(b"\n"):
                    break
                turns = self._turns(line, offset, session)
                if turns is None:
                    unknown_lines += 1
                else:
                    known_lines += 1
                    session_turns.turns += turns
                offset += len(line)
        if not known_lines and unknown_lines >= _MIN_UNKNOWN_LINES:
            raise NotUnderstood("none of its lines is known")
        state |= {"offset": offset, "known": known_lines}
        state["session"] = {
            "name": session.name,
            "folder": session.folder,
            "time": session.time,
        }
        yield session_turns

    def passage(self, path: Path, session: str, position: str) -> str | None:
        """Return the text of the turn at a position. None if it is gone."""
        offset = int(position.partition(".")[0])
        with path.open("rb") as file:
            file.seek(offset)
            line = file.readline(_MAX_LINE_BYTES)
        for turn in self._turns(line, offset, self.begin(path)) or ():
            if turn.position == position:
                return turn.text
        return None

    def _turns(self, line: bytes, offset: int, session: Session) -> list[Turn] | None:
        """Return the turns of a line, or None if the line is not of this format.

        offset: where the line begins in the file, in bytes.
        session: the session so far, which the line may change.
        """
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(entry, dict):
            return None
        try:
            parts = self.parts(entry, session)
            if parts is None:
                return None
            turns: list[Turn] = []
            for number, part in enumerate(parts):
                position = f"{offset}.{number}"
                time = session.time
                turns.append(Turn(part.kind, part.text, position, time, part.call, part.has_failed))
            return turns
        except RecursionError:
            # Reading a deeply nested value takes more levels than parsing it.
            return None


class ClaudeCode(LineFormat):
    """Reads `~/.claude/projects/FOLDER/SESSION.jsonl`."""

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        """Yield the parts of an entry, and update the session. None for an unknown entry."""
        entry_type = entry.get("type")
        if not isinstance(entry_type, str):
            return None
        session.time = seconds(entry.get("timestamp")) or session.time
        session.folder = _text_value(entry, "cwd") or session.folder
        # Entries without a message hold titles, snapshots and the like.
        message = entry.get("message")
        if entry_type not in ("user", "assistant") or not isinstance(message, dict):
            return iter(())
        # The client wrote these entries in the person's name: inserted text, a summary, or the
        # task of a subagent.
        is_inserted = entry.get("isMeta") or entry.get("isCompactSummary")
        if is_inserted or entry.get("isSidechain"):
            return iter(())
        return anthropic_parts(str(message.get("role") or entry_type), message.get("content"))


class Codex(LineFormat):
    """Reads `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`.

    In older files an entry is the item itself. In newer ones it has the item as `payload`.
    """

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        """Yield the parts of an entry, and update the session. None for an unknown entry."""
        payload = entry.get("payload", entry)
        entry_type = entry.get("type")
        if not isinstance(payload, dict):
            return None
        # The first line of the oldest files has no type, but the id and the time of the session.
        is_old_session_line = "id" in entry and "timestamp" in entry
        if not isinstance(entry_type, str) and not is_old_session_line:
            return None
        session.time = seconds(entry.get("timestamp")) or session.time
        session.folder = _text_value(payload, "cwd") or session.folder
        if entry_type == "session_meta":
            name = _text_value(payload, "session_id") or _text_value(payload, "id")
            session.name = name or session.name
        # Entries of these types have no text of their own: items repeat the text of an `event_msg`.
        if entry_type in ("event_msg", "session_meta", "turn_context", "compacted"):
            return iter(())
        return self._item(payload)

    def _item(self, item: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of a message, a tool call or an output."""
        # Early versions had no type for messages.
        entry_type = item.get("type", "")
        if "role" in item:
            entry_type = item.get("type", "message")
        call = str(item.get("call_id") or item.get("id") or "")
        if entry_type == "message" and item.get("role") in ("user", "assistant"):
            yield from anthropic_parts(str(item["role"]), item.get("content"))
        elif entry_type in ("function_call", "custom_tool_call"):
            arguments = item.get("arguments", item.get("input"))
            yield from tool_call(str(item.get("name")), arguments, call)
        elif entry_type == "local_shell_call":
            yield from tool_call("local_shell", item.get("action"), call)
        elif entry_type in ("function_call_output", "custom_tool_call_output"):
            yield from self._output(item.get("output"), call)

    def _output(self, output: Any, call: str) -> Iterator[Part]:
        """Yield the result of a tool call. Codex writes it in several forms.

        output: a text, a text with a head, JSON in a text, or an object.
        call: the id of the tool call.
        """
        failed = None
        if isinstance(output, str) and output.startswith("Chunk ID:"):
            head, separator, output = output.partition("\nOutput:\n")
            # Only a head that is separated from the output has the exit code.
            if separator:
                failed = failed_by_text(head)
        # Other versions write the output and its exit code as JSON in a text.
        if isinstance(output, str) and output.startswith("{"):
            try:
                output = json.loads(output)
            except (ValueError, RecursionError):
                return
        if isinstance(output, dict):
            code = as_object(output.get("metadata")).get("exit_code")
            failed = failed_by_code(code)
            if output.get("success") is False:
                failed = True
        yield from tool_result(output, call, failed)


class CopilotCli(LineFormat):
    """Reads `~/.copilot/session-state/SESSION/events.jsonl`."""

    def begin(self, path: Path) -> Session:
        """Return a new session, named after the folder that its file is in."""
        return Session(name=path.parent.name)

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        """Yield the parts of an event, and update the session. None for an unknown event."""
        entry_type = entry.get("type")
        data = entry.get("data")
        if not isinstance(entry_type, str) or not isinstance(data, dict):
            return None
        session.time = seconds(entry.get("timestamp")) or session.time
        if entry_type == "session.start":
            session.name = _text_value(data, "sessionId") or session.name
            context = data.get("context")
            if isinstance(context, dict):
                session.folder = _text_value(context, "cwd") or session.folder
        return self._event(entry_type, data)

    def _event(self, entry_type: str, data: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one event.

        entry_type: the kind of event, such as `user.message`.
        """
        call = str(data.get("toolCallId") or "")
        if entry_type == "user.message":
            yield from spoken(Kind.SAID, text_of(data.get("content")))
        elif entry_type == "assistant.message":
            yield from spoken(Kind.ANSWERED, text_of(data.get("content")))
        elif entry_type == "tool.execution_start":
            yield from tool_call(str(data.get("toolName")), data.get("arguments"), call)
        elif entry_type == "tool.execution_complete":
            # A command that failed is a success of the tool.
            failed = failed_by_code(as_object(data.get("shellExecution")).get("exitCode"))
            if data.get("success") is False:
                failed = True
            result = data.get("result") or data.get("error")
            yield from tool_result(result, call, failed)


class CursorCli(LineFormat):
    """Reads `~/.cursor/projects/FOLDER/agent-transcripts/**/CHAT.jsonl`.

    Entries have no times, so that the time of the file is used.
    """

    def begin(self, path: Path) -> Session:
        """Return a session with its name, its folder and the time of its file."""
        session = Session(path.stem, "", path.stat().st_mtime)
        for folder in path.parents:
            if folder.name == "agent-transcripts":
                session.folder = self._folder(folder.parent.name)
        return session

    def _folder(self, name: str) -> str:
        """Return the folder that Cursor means by a name: `/home/ana/app` for `home-ana-app`."""
        folder = f"/{name.replace('-', '/')}"
        if os.path.isdir(folder):
            return folder
        # The path had a hyphen, or is gone: nobody can tell where its slashes were.
        return name

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        """Return the parts of one entry, as `LineFormat.parts` describes.

        A message has a role and no type. Other entries of Cursor have a type, and no text. None for
        an entry that has neither.
        """
        message = entry.get("message")
        role = entry.get("role")
        if role in ("user", "assistant") and isinstance(message, dict):
            parts = anthropic_parts(str(role), message.get("content"))
            return (part._replace(text=_without_query_marks(part.text)) for part in parts)
        is_other_entry = isinstance(entry.get("type"), str)
        return iter(()) if is_other_entry else None


class GooseLines(LineFormat):
    """Reads `~/.local/share/goose/sessions/*.jsonl`, which Goose wrote before it had a database."""

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        """Yield the parts of a line, and update the session. None for an unknown line."""
        # The first line describes the session, and has no text.
        if "role" not in entry:
            if "working_dir" not in entry and "description" not in entry:
                return None
            session.folder = _text_value(entry, "working_dir") or session.folder
            session.name = _text_value(entry, "id") or session.name
            return iter(())
        session.time = seconds(entry.get("created")) or session.time
        return goose_parts(str(entry["role"]), entry.get("content"))


def goose_parts(role: str, content: Any) -> Iterator[Part]:
    """Yield the parts of a message of Goose, from a file or from its database.

    role: `user` for the person; anything else is the agent.
    """
    for block in as_list(content):
        if not isinstance(block, dict):
            continue
        entry_type = block.get("type")
        call = str(block.get("id") or "")
        if entry_type == "toolRequest":
            request = as_object(as_object(block.get("toolCall")).get("value"))
            yield from tool_call(str(request.get("name")), request.get("arguments"), call)
        elif entry_type == "toolResponse":
            result = as_object(block.get("toolResult"))
            value = result.get("value") or result.get("error")
            # The request of a tool may succeed although the tool itself fails.
            has_error = bool(as_object(value).get("isError"))
            failed = failure(result.get("status") == "error" or has_error)
            yield from tool_result(value, call, failed)
        else:
            yield from anthropic_parts(role, [block])


class Windsurf(LineFormat):
    """Reads `~/.windsurf/transcripts/TRAJECTORY.jsonl`, the file that Windsurf passes to hooks."""

    def begin(self, path: Path) -> Session:
        """Return a session with its name and the time of its file."""
        return Session(path.stem, "", path.stat().st_mtime)

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        """Yield the parts of a step, and update the session's time. None for an unknown line."""
        entry_type = entry.get("type")
        if not isinstance(entry_type, str):
            return None
        session.time = seconds(entry.get("timestamp")) or session.time
        step = entry.get(entry_type)
        if not isinstance(step, dict):
            return iter(())
        return self._step(entry_type, step)

    def _step(self, entry_type: str, step: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one step.

        entry_type: the kind of step, such as `user_input`.
        """
        if entry_type == "user_input":
            yield from spoken(Kind.SAID, text_of(step.get("user_response")))
        elif entry_type == "planner_response":
            yield from spoken(Kind.ANSWERED, text_of(step.get("response")))
        elif entry_type in ("code_action", "write_code"):
            path = _text_value(step, "path") or _text_value(step, "file_path")
            if path:
                yield Part(Kind.EDITED, unquote(path.removeprefix("file://")))
        elif entry_type in ("run_command", "command"):
            command = _text_value(step, "command_line") or _text_value(step, "command")
            if command:
                yield Part(Kind.RAN, command, "step")
                failed = failed_by_code(step.get("exit_code"))
                yield from tool_result(step.get("output"), "step", failed)


# A person's words in the tags Cursor puts around them.
_QUERY_MARKS = re.compile(r"\A<user_query>\s*(.*?)\s*</user_query>\Z", re.S)


def _without_query_marks(text: str) -> str:
    """Return a text without the tags that Cursor puts around a prompt."""
    return _QUERY_MARKS.sub(r"\1", text)


def _text_value(values: dict[str, Any], key: str) -> str:
    """Return the value of a key if it is a text, otherwise ""."""
    value = values.get(key)
    if isinstance(value, str):
        return value
    return ""
