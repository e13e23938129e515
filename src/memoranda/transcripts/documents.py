"""Formats with one JSON document for each session, which its program rewrites again and again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

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

# Larger documents are not read, because a document is read whole.
_MAX_BYTES = 256 << 20


class Message:
    """A message of a document.

    name: its id or number in the document.
    parts: its parts, which are read when they are needed.
    time: seconds since 1970, 0.0 if unknown.
    """

    __slots__ = ("name", "parts", "time")

    def __init__(self, name: str, parts: Iterator[Part], time: float = 0.0):
        self.name = name
        self.parts = parts
        self.time = time


class DocumentFormat:
    """Reads a document whole whenever its file has changed. A subclass reads one program's.

    A position is `MESSAGE.PART`: the name of a message and the number of the part in it.
    """

    grows = False

    def messages(self, document: Any, path: Path, session: Session) -> Iterator[Message]:
        """Yield the messages of a document, and set the session's name, folder and time.

        Raises NotUnderstood for a document of another form.
        """
        raise NotImplementedError

    def load(self, path: Path) -> Any:
        """Return the document in a file. Raises OSError, NotUnderstood."""
        if path.stat().st_size > _MAX_BYTES:
            raise NotUnderstood(f"larger than {_MAX_BYTES >> 20} MB")
        try:
            return json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            raise NotUnderstood("not JSON") from None

    def read(self, path: Path, state: dict[str, Any]) -> Iterator[SessionTurns]:
        """Yield the session of a document with all its turns."""
        session = Session(path.stem, "", path.stat().st_mtime)
        messages = self.messages(self.load(path), path, session)
        turns: list[Turn] = []
        for message in messages:
            time = message.time or session.time
            for number, part in enumerate(message.parts):
                position = f"{message.name}.{number}"
                turns.append(Turn(part.kind, part.text, position, time, part.call, part.has_failed))
        yield SessionTurns(session, turns)

    def passage(self, path: Path, session: str, position: str) -> str | None:
        """Return the text of the turn at a position. None if it is gone."""
        for session_turns in self.read(path, {}):
            for turn in session_turns.turns:
                if turn.position == position:
                    return turn.text
        return None


class GeminiCli(DocumentFormat):
    """Reads `~/.gemini/tmp/PROJECT/chats/session-*.json` and `session-*.jsonl`.

    In a `.jsonl` file, each line adds or changes a message, or changes the session.
    """

    def load(self, path: Path) -> Any:
        """Return the document in a file. In a `.jsonl` file, each line changes the document."""
        if path.suffix != ".jsonl":
            return super().load(path)
        document: dict[str, Any] = {"messages": []}
        messages: dict[str, dict[str, Any]] = {}
        for line in path.read_bytes().split(b"\n"):
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                # Blank, or cut off by a crash.
                continue
            if isinstance(entry, dict):
                messages = self._replayed(entry, document, messages)
        document["messages"] = list(messages.values())
        return document

    def _replayed(
        self, entry: dict[str, Any], document: dict[str, Any], messages: dict[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Apply one more line of a `.jsonl` file, and return the messages afterwards.

        entry: the line.
        document, messages: the session and its messages so far. Both may be changed in place.
        """
        # The person went back to an earlier message: it and what followed it no longer count.
        if "$rewindTo" in entry:
            names = list(messages)
            target = str(entry["$rewindTo"])
            end = names.index(target) if target in messages else len(names)
            return {name: messages[name] for name in names[:end]}
        # A change of the session itself, which may replace all its messages.
        change = entry.get("$set")
        if isinstance(change, dict):
            replacement = change.pop("messages", None)
            document |= change
            if not isinstance(replacement, list):
                return messages
            return {str(item.get("id")): item for item in replacement if isinstance(item, dict)}
        if "id" in entry and "type" in entry:
            messages[str(entry["id"])] = entry
        elif "sessionId" in entry:
            document |= entry
        return messages

    def messages(self, document: Any, path: Path, session: Session) -> Iterator[Message]:
        """Yield the messages of a document, and set the session's name, folder and time."""
        messages = as_object(document).get("messages")
        if not isinstance(messages, list) or not document.get("sessionId"):
            raise NotUnderstood("no session of Gemini CLI")
        session.name = str(document["sessionId"])
        session.time = seconds(document.get("startTime")) or session.time
        session.folder = self._folder(path)
        for number, message in enumerate(messages):
            if isinstance(message, dict):
                name = str(message.get("id") or number)
                yield Message(name, self._parts(message), seconds(message.get("timestamp")))

    def _folder(self, path: Path) -> str:
        """Return the folder of the project, which Gemini writes near the chats. "" if unknown."""
        project = path.parent.parent
        try:
            return (project / ".project_root").read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            pass
        try:
            registry = json.loads((project.parent.parent / "projects.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return ""
        projects = as_object(as_object(registry).get("projects"))
        for folder, name in projects.items():
            if name == project.name:
                return str(folder)
        return ""

    def _parts(self, message: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one message."""
        shape = message.get("type")
        if shape == "user":
            yield from spoken(Kind.SAID, text_of(message.get("content")))
        elif shape in ("gemini", "model"):
            yield from spoken(Kind.ANSWERED, text_of(message.get("content")))
            for call in as_list(message.get("toolCalls")):
                if isinstance(call, dict):
                    yield from self._call(call)

    def _call(self, call: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one tool call."""
        name = str(call.get("id") or "")
        yield from tool_call(str(call.get("name")), call.get("args"), name)
        response = self._response(call)
        failed = failure(call.get("status") == "error")
        if failed is None:
            failed = failed_by_text(text_of(response))
        # The output as the person saw it has no exit code.
        display = call.get("resultDisplay")
        if not isinstance(display, str) or not display:
            display = response
        yield from tool_result(display, name, failed)

    def _response(self, call: dict[str, Any]) -> list[Any]:
        """Return the output of a tool as the model got it."""
        return [
            as_object(result.get("functionResponse")).get("response") or {}
            for result in as_list(call.get("result"))
            if isinstance(result, dict)
        ]


# The id of a command and its output if the transcript gives them none.
_ONLY_CALL = "shown"
# The text of a person, in the tags Cline puts around it.
_TASK = re.compile(
    r"\A<(task|feedback|user_message|user_input|answer)(?: [^>]*)?>\s*(.*?)\s*</\1>", re.S
)
# The result of a command, as Cline reports it.
_RAN = re.compile(r"\A\[execute_command for '(.*?)'\] Result:\s*(.*)\Z", re.S)
# The result of any tool, as Cline reports it.
_TOOLS = re.compile(r"\A\[(\w+)(?: for '.*?')?\] Result:", re.S)


class Cline(DocumentFormat):
    """Reads the files of Cline.

    Its extension writes `tasks/TASK/api_conversation_history.json`, and its command
    `sessions/ID/ID.messages.json`.
    """

    def messages(self, document: Any, path: Path, session: Session) -> Iterator[Message]:
        """Yield the messages of a conversation, and set the session's name, folder and time."""
        # The command writes an object, the extension only its list.
        messages = document
        if isinstance(document, dict):
            messages = document.get("messages")
        if not isinstance(messages, list):
            raise NotUnderstood("no conversation of Cline")
        self._describe_session(document, path, session)
        for number, message in enumerate(messages):
            if isinstance(message, dict):
                time = seconds(message.get("ts"))
                yield Message(str(number), self._parts(message), time)

    def _describe_session(self, document: Any, path: Path, session: Session) -> None:
        """Set the session's name, folder and time, which are partly in other files."""
        session.name = path.parent.name
        # The command keeps a manifest beside a session.
        if isinstance(document, dict):
            manifest = _object(path.with_name(f"{path.parent.name}.json"))
            session.name = str(document.get("sessionId") or session.name)
            session.folder = str(manifest.get("workspace_root") or manifest.get("cwd") or "")
            return
        # The extension names a task by its time, and lists all tasks in one file.
        session.time = seconds(path.parent.name) or session.time
        for task in _list(path.parents[2] / "state" / "taskHistory.json"):
            if isinstance(task, dict) and str(task.get("id")) == path.parent.name:
                session.folder = str(task.get("cwdOnTaskInitialization") or "")

    def _parts(self, message: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one message."""
        role = str(message.get("role"))
        for part in anthropic_parts(role, message.get("content")):
            if part.kind is Kind.SAID:
                yield from self._person_parts(part.text)
            else:
                yield part

    def _person_parts(self, text: str) -> Iterator[Part]:
        """Yield the parts of a text in the person's name, without the tags around it.

        Cline also writes commands and their output in the person's name.
        """
        run = _RAN.match(text)
        if run:
            command, output = run.groups()
            yield Part(Kind.RAN, command, _ONLY_CALL)
            yield from tool_result(output, _ONLY_CALL)
            return
        # The result of another tool.
        if _TOOLS.match(text):
            return
        task = _TASK.match(text)
        if task:
            # The text after the tag describes the state of the editor.
            text = task[2]
        yield from spoken(Kind.SAID, text)


class Amp(DocumentFormat):
    """Reads `~/.local/share/amp/threads/T-*.json`."""

    def messages(self, document: Any, path: Path, session: Session) -> Iterator[Message]:
        """Yield the messages of a thread, and set the session's name, folder and time."""
        if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
            raise NotUnderstood("no thread of Amp")
        session.name = str(document.get("id") or path.stem)
        session.time = seconds(document.get("created")) or session.time
        session.folder = self._folder(document) or session.folder
        for number, message in enumerate(document["messages"]):
            if isinstance(message, dict):
                name = str(message.get("messageId", number))
                yield Message(name, self._parts(message), self._time(message))

    def _folder(self, document: dict[str, Any]) -> str:
        """Return the first folder that the thread works in, or ""."""
        initial = as_object(as_object(document.get("env")).get("initial"))
        trees = [tree for tree in as_list(initial.get("trees")) if isinstance(tree, dict)]
        if not trees:
            return ""
        address = trees[0].get("uri")
        # The extension of VS Code writes the parts of the address.
        if isinstance(address, dict):
            return str(address.get("fsPath") or address.get("path") or "")
        return unquote(urlsplit(str(address or "")).path)

    def _time(self, message: dict[str, Any]) -> float:
        """Return when a message was sent or an answer arrived, in seconds since 1970; 0.0 if unknown."""
        sent = as_object(message.get("meta")).get("sentAt")
        answered = as_object(message.get("usage")).get("timestamp")
        return seconds(sent) or seconds(answered)

    def _parts(self, message: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one message."""
        role = str(message.get("role"))
        content = message.get("content")
        if not isinstance(content, list):
            content = [content]
        for block in content:
            # Amp has the run of a tool in place of its result.
            if isinstance(block, dict) and isinstance(block.get("run"), dict):
                yield from self._run(block["run"], str(block.get("toolUseID") or ""))
            else:
                yield from anthropic_parts(role, [block])

    def _run(self, run: dict[str, Any], call: str) -> Iterator[Part]:
        """Yield the result of a tool.

        run: the result as Amp writes it, with its status.
        call: the id of its call.
        """
        # A call that the person refused has not run.
        if run.get("status") == "rejected-by-user":
            return
        result = run.get("result") or run.get("error") or run.get("progress")
        failed = failed_by_code(as_object(result).get("exitCode"))
        if failed is None:
            failed = failure(run.get("status") == "error")
        yield from tool_result(result, call, failed)


class Continue(DocumentFormat):
    """Reads `~/.continue/sessions/ID.json`."""

    def messages(self, document: Any, path: Path, session: Session) -> Iterator[Message]:
        """Yield the messages of a session, and set the session's name, folder and time."""
        history = as_object(document).get("history")
        if not isinstance(history, list):
            raise NotUnderstood("no session of Continue")
        session.name = str(document.get("sessionId") or path.stem)
        session.folder = str(document.get("workspaceDirectory") or "")
        # Newer versions write the folder as a URL.
        if "://" in session.folder:
            session.folder = unquote(urlsplit(session.folder).path)
        session.time = self._time(path, session.name) or session.time
        for number, item in enumerate(history):
            if isinstance(item, dict) and isinstance(item.get("message"), dict):
                yield Message(str(number), self._parts(item))

    def _time(self, path: Path, session: str) -> float:
        """Return when a session was created, in seconds since 1970; 0.0 if unknown.

        The time is in `sessions.json` in the same folder.
        """
        time = 0.0
        for entry in _list(path.with_name("sessions.json")):
            if isinstance(entry, dict) and entry.get("sessionId") == session:
                time = seconds(entry.get("dateCreated")) or time
        return time

    def _parts(self, item: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one message."""
        message = item["message"]
        role = message.get("role")
        if role == "user":
            yield from spoken(Kind.SAID, text_of(message.get("content")))
        elif role == "assistant":
            yield from spoken(Kind.ANSWERED, text_of(message.get("content")))
            for call in as_list(message.get("toolCalls")):
                yield from self._call(as_object(call))
            for state in as_list(item.get("toolCallStates")):
                yield from self._result(as_object(state))

    def _call(self, call: dict[str, Any]) -> Iterator[Part]:
        """Yield the parts of one tool call."""
        function = as_object(call.get("function"))
        name = str(call.get("id") or "")
        yield from tool_call(str(function.get("name")), function.get("arguments"), name)

    def _result(self, state: dict[str, Any]) -> Iterator[Part]:
        """Yield the result of one tool call."""
        name = str(state.get("toolCallId") or "")
        failed = failure(state.get("status") == "errored")
        yield from tool_result(state.get("output"), name, failed)


def _object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of the program, or {} if it is missing or damaged."""
    return as_object(_json_value(path))


def _list(path: Path) -> list[Any]:
    """Return the JSON list in a file of the program, or [] if it is missing or damaged."""
    return as_list(_json_value(path))


def _json_value(path: Path) -> Any:
    """Return the JSON value in a file, or None if it is missing or damaged."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
