"""Formats with one JSON object a line, in files that only grow."""

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
    seconds,
)

# Bytes of one line; longer ones are skipped and named.
_LONGEST_LINE = 64 << 20
# A file is not in this format if this number of lines are all unknown.
_UNKNOWN = 3


class LineFormat:
    """Reads lines from where it ended the last time; a last line that is cut waits for the rest.

    A position is `OFFSET.PART`: where the line begins, in bytes, and which part of it is meant.
    """

    grows = True

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        """The parts of one line. Facts about its session are written into `session`.

        Empty for a line with nothing to show. None for a line that this format does not have.
        """
        raise NotImplementedError

    def begin(self, path: Path) -> Session:
        """Describe a session by its path alone."""
        return Session(name=path.stem)

    def read(self, path: Path, state: dict[str, Any]) -> Iterator[SessionTurns]:
        session = self.begin(path)
        if "session" in state:
            session = Session(**state["session"])
        outcome = SessionTurns(session)
        recognised = state.get("known", 0)
        unknown = 0
        offset = state.get("offset", 0)
        with path.open("rb") as file:
            file.seek(offset)
            for line in file:
                # The last line is still being written.
                if not line.endswith(b"\n"):
                    break
                turns = self._turns(line, offset, session)
                if turns is None:
                    unknown += 1
                else:
                    recognised += 1
                    outcome.turns += turns
                offset += len(line)
        if not recognised and unknown >= _UNKNOWN:
            raise NotUnderstood("none of its lines is known")
        state |= {"offset": offset, "known": recognised}
        state["session"] = {
            "name": session.name,
            "folder": session.folder,
            "time": session.time,
        }
        yield outcome

    def passage(self, path: Path, session: str, position: str) -> str | None:
        offset = position.partition(".")[0]
        with path.open("rb") as file:
            file.seek(int(offset))
            line = file.readline(_LONGEST_LINE)
        turns = self._turns(line, int(offset), self.begin(path)) or []
        return next((turn.text for turn in turns if turn.position == position), None)

    def _turns(self, line: bytes, offset: int, session: Session) -> list[Turn] | None:
        """The turns of a line. None if the line is not of this format."""
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(entry, dict):
            return None
        parts = self.parts(entry, session)
        if parts is None:
            return None
        return [
            Turn(part.kind, part.text, f"{offset}.{number}", session.time, *part[2:])
            for number, part in enumerate(parts)
        ]


class ClaudeCode(LineFormat):
    """`~/.claude/projects/FOLDER/SESSION.jsonl`."""

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        shape = entry.get("type")
        if not isinstance(shape, str):
            return None
        session.time = seconds(entry.get("timestamp")) or session.time
        session.folder = _text(entry, "cwd") or session.folder
        # Lines without a message hold titles, snapshots and the like.
        message = entry.get("message")
        if shape not in ("user", "assistant") or not isinstance(message, dict):
            return iter(())
        # Neither what the client inserted nor what a subagent was told is from the person.
        is_said = not (entry.get("isMeta") or entry.get("isCompactSummary"))
        if not is_said or entry.get("isSidechain"):
            return iter(())
        return anthropic_parts(str(message.get("role") or shape), message.get("content"))


class Codex(LineFormat):
    """`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, also as it was before `payload`."""

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        payload = entry.get("payload", entry)
        shape = entry.get("type")
        if not isinstance(payload, dict):
            return None
        if not isinstance(shape, str) and not ("id" in entry and "timestamp" in entry):
            return None
        session.time = seconds(entry.get("timestamp")) or session.time
        session.folder = _text(payload, "cwd") or session.folder
        if shape == "session_meta":
            session.name = _text(payload, "session_id") or _text(payload, "id") or session.name
        # Items repeat what an `event_msg` says.
        if shape in ("event_msg", "session_meta", "turn_context", "compacted"):
            return iter(())
        return self._item(payload)

    def _item(self, item: dict[str, Any]) -> Iterator[Part]:
        # Early versions had no type for messages.
        shape = item.get("type", "")
        if "role" in item:
            shape = item.get("type", "message")
        call = str(item.get("call_id") or item.get("id") or "")
        if shape == "message" and item.get("role") in ("user", "assistant"):
            yield from anthropic_parts(str(item["role"]), item.get("content"))
        elif shape in ("function_call", "custom_tool_call"):
            arguments = item.get("arguments", item.get("input"))
            yield from tool_call(str(item.get("name")), arguments, call)
        elif shape == "local_shell_call":
            yield from tool_call("local_shell", item.get("action"), call)
        elif shape in ("function_call_output", "custom_tool_call_output"):
            yield from self._output(item.get("output"), call)

    def _output(self, output: Any, call: str) -> Iterator[Part]:
        failed = None
        if isinstance(output, str) and output.startswith("Chunk ID:"):
            head, outcome, output = output.partition("\nOutput:\n")
            # The head has the exit code, as long as a line separates it from the output.
            if outcome:
                failed = failed_by_text(head)
        # The output and its exit code, as JSON in a text.
        if isinstance(output, str) and output.startswith("{"):
            try:
                output = json.loads(output)
            except (ValueError, RecursionError):
                return
        if isinstance(output, dict):
            code = (output.get("metadata") or {}).get("exit_code")
            failed = failed_by_code(code)
            if output.get("success") is False:
                failed = True
        yield from tool_result(output, call, failed)


class CopilotCli(LineFormat):
    """`~/.copilot/session-state/SESSION/events.jsonl`."""

    def begin(self, path: Path) -> Session:
        return Session(name=path.parent.name)

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        shape = entry.get("type")
        data = entry.get("data")
        if not isinstance(shape, str) or not isinstance(data, dict):
            return None
        session.time = seconds(entry.get("timestamp")) or session.time
        if shape == "session.start":
            session.name = _text(data, "sessionId") or session.name
            context = data.get("context")
            if isinstance(context, dict):
                session.folder = _text(context, "cwd") or session.folder
        return self._event(shape, data)

    def _event(self, shape: str, data: dict[str, Any]) -> Iterator[Part]:
        call = str(data.get("toolCallId") or "")
        if shape == "user.message":
            yield from spoken(Kind.SAID, text_of(data.get("content")))
        elif shape == "assistant.message":
            yield from spoken(Kind.ANSWERED, text_of(data.get("content")))
        elif shape == "tool.execution_start":
            yield from tool_call(str(data.get("toolName")), data.get("arguments"), call)
        elif shape == "tool.execution_complete":
            success = data.get("success")
            result = data.get("result") or data.get("error")
            yield from tool_result(result, call, failure(success is False))


class CursorCli(LineFormat):
    """`~/.cursor/projects/FOLDER/agent-transcripts/**/CHAT.jsonl`. The only time is the file's."""

    def begin(self, path: Path) -> Session:
        session = Session(path.stem, "", path.stat().st_mtime)
        for folder in path.parents:
            if folder.name == "agent-transcripts":
                session.folder = self._folder(folder.parent.name)
        return session

    def _folder(self, name: str) -> str:
        """The folder that Cursor means by a name, in which `-` replaces each `/`."""
        folder = f"/{name.replace('-', '/')}"
        if os.path.isdir(folder):
            return folder
        # A hyphen in the original path looks like a slash, so that nobody can tell.
        return name

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        message = entry.get("message")
        role = entry.get("role")
        if role not in ("user", "assistant") or not isinstance(message, dict):
            if isinstance(entry.get("type"), str):
                return iter(())
            return None
        parts = anthropic_parts(str(role), message.get("content"))
        return (part._replace(text=_without_query_marks(part.text)) for part in parts)


class GooseLines(LineFormat):
    """`~/.local/share/goose/sessions/*.jsonl`, as Goose wrote before its database."""

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        # The first line describes the session.
        if "role" not in entry:
            if "working_dir" not in entry and "description" not in entry:
                return None
            session.folder = _text(entry, "working_dir") or session.folder
            session.name = _text(entry, "id") or session.name
            return iter(())
        session.time = seconds(entry.get("created")) or session.time
        return goose_parts(str(entry["role"]), entry.get("content"))


def goose_parts(role: str, content: Any) -> Iterator[Part]:
    """The parts of a message of Goose, in lines and in its database."""
    for block in as_list(content):
        if not isinstance(block, dict):
            continue
        shape = block.get("type")
        call = str(block.get("id") or "")
        if shape == "toolRequest":
            value = (block.get("toolCall") or {}).get("value") or {}
            yield from tool_call(str(value.get("name")), value.get("arguments"), call)
        elif shape == "toolResponse":
            result = block.get("toolResult") or {}
            failed = failure(result.get("status") == "error")
            value = result.get("value") or result.get("error")
            yield from tool_result(value, call, failed)
        else:
            yield from anthropic_parts(role, [block])


class Windsurf(LineFormat):
    """`~/.windsurf/transcripts/TRAJECTORY.jsonl`, which its hooks are given."""

    def begin(self, path: Path) -> Session:
        return Session(path.stem, "", path.stat().st_mtime)

    def parts(self, entry: dict[str, Any], session: Session) -> Iterator[Part] | None:
        shape = entry.get("type")
        if not isinstance(shape, str):
            return None
        session.time = seconds(entry.get("timestamp")) or session.time
        step = entry.get(shape)
        if not isinstance(step, dict):
            return iter(())
        return self._step(shape, step)

    def _step(self, shape: str, step: dict[str, Any]) -> Iterator[Part]:
        if shape == "user_input":
            yield from spoken(Kind.SAID, text_of(step.get("user_response")))
        elif shape == "planner_response":
            yield from spoken(Kind.ANSWERED, text_of(step.get("response")))
        elif shape in ("code_action", "write_code"):
            path = _text(step, "path") or _text(step, "file_path")
            if path:
                yield Part(Kind.EDITED, unquote(path.removeprefix("file://")))
        elif shape in ("run_command", "command"):
            command = _text(step, "command_line") or _text(step, "command")
            if command:
                yield Part(Kind.RAN, command, "step")
                failed = failed_by_code(step.get("exit_code"))
                yield from tool_result(step.get("output"), "step", failed)


# A person's words in the tags Cursor puts around them.
_QUERY = re.compile(r"\A<user_query>\s*(.*?)\s*</user_query>\Z", re.S)


def _without_query_marks(text: str) -> str:
    """The text between the marks that Cursor puts around a prompt."""
    return _QUERY.sub(r"\1", text)


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    if isinstance(value, str):
        return value
    return ""
