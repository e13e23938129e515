"""One MCP client on stdin and stdout: lines to the SDK's messages and back.

The SDK speaks the protocol in all its revisions. Here no request is left without an answer, arguments reach a tool
as they came, and no text that JSON or UTF-8 cannot carry ends the connection.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import anyio
from anyio.abc import ObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

_PROBE = "server/discover"


class ClientConnection(ObjectSendStream[SessionMessage]):
    """One client: its lines as the SDK's messages and back, and the number of requests `unanswered`.

    It is the SDK's write stream. `requests` is its read stream, which ends when the client has sent all and
    each request has its answer, because the SDK drops what is in progress once its input ends. A client that found
    our answer to its probe too long in coming begins as older ones do: then `requests` is another one. `write` sends
    a line without its break, `answered` is called after each answer, `at_end` when the client has sent all: it ends
    streams that would wait for more.
    """

    at_end: Callable[[], None] | None = None

    def __init__(self, write: Callable[[bytes], None], answered: Callable[[], None]):
        self._write, self._answered = write, answered
        self._inbox, self.requests = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        self.unanswered = 0
        self._ended = False
        self._asked: set[str] = set()

    def receive(self, line: bytes) -> None:
        """One line from the client. What is no message is answered with a JSON-RPC error."""
        if self._ended or not line.strip():
            return
        try:
            message = message_of(line)
        except NoMessage as refused:
            self._write(line_of(JSONRPCError(jsonrpc="2.0", id=refused.id, error=refused.error)))
            return
        metadata = None
        if isinstance(message, JSONRPCRequest):
            self.unanswered += 1
            if message.method == "initialize" and self._asked == {_PROBE}:
                self._inbox.close()
                self._inbox, self.requests = anyio.create_memory_object_stream(math.inf)
            self._asked.add(message.method)
            metadata = ServerMessageMetadata(on_request_unanswered=self._settle)
        self._inbox.send_nowait(SessionMessage(message, metadata))

    def end(self) -> None:
        """The client sends no more, or is heard no more."""
        self._ended = True
        if self.at_end is not None:
            self.at_end()
        self._close_when_answered()

    async def send(self, item: SessionMessage, /) -> None:
        """The SDK's message to the client."""
        self._write(line_of(item.message))
        if not isinstance(item.message, JSONRPCRequest | JSONRPCNotification):
            await self._settle()

    async def aclose(self) -> None:
        """The SDK has nothing more to say."""

    async def _settle(self) -> None:
        self.unanswered -= 1
        self._answered()
        self._close_when_answered()

    def _close_when_answered(self) -> None:
        if self._ended and self.unanswered == 0:
            self._inbox.close()


class NoMessage(Exception):
    """A line that is no JSON-RPC message; `id` is the request's, None when it has none that can be read."""

    def __init__(self, code: int, message: str, id: RequestId | None = None):
        super().__init__(message)
        self.id, self.error = id, ErrorData(code=code, message=message)


def message_of(line: bytes) -> JSONRPCMessage:
    """The message in `line`. Raises NoMessage. Lone surrogates and bytes that are no UTF-8 are kept, as surrogates, so
    that the tool they are meant for can name the parameter."""
    try:
        message = jsonrpc_message_adapter.validate_json(line)
        if not (isinstance(message, JSONRPCNotification) and b'"id"' in line):
            return message
    except ValidationError:
        pass  # looked at again below, to say what is wrong
    try:  # less strictly than pydantic reads it; a number far beyond all we count is none of Python's
        number = lambda digits: int(digits) if len(digits) <= 1000 else math.inf
        given = json.loads(line.decode("utf-8-sig", "surrogateescape"), parse_int=number)
    except RecursionError:
        raise NoMessage(PARSE_ERROR, "The message is nested too deep.") from None
    except ValueError:
        raise NoMessage(PARSE_ERROR, "The line is not JSON. Send one JSON-RPC message per line.") from None
    if not isinstance(given, dict):
        raise NoMessage(INVALID_REQUEST, "A JSON-RPC message is an object; send one per line, no batches.")
    id = given.get("id")
    if "id" in given and (isinstance(id, bool) or not isinstance(id, str | int)):
        raise NoMessage(INVALID_REQUEST, "The `id` of a request must be a text or a whole number.")
    try:
        return jsonrpc_message_adapter.validate_python(given)
    except ValidationError:
        pass
    if "method" not in given:
        id = None  # an answer, so the id is one of ours
    if given.get("jsonrpc") == "2.0" and isinstance(given.get("method"), str):
        raise NoMessage(INVALID_PARAMS, "`params` must be an object.", id)
    raise NoMessage(INVALID_REQUEST, 'Not a JSON-RPC 2.0 message: it needs "jsonrpc": "2.0" and a `method`.', id)


def line_of(message: JSONRPCMessage) -> bytes:
    """`message` as one line without its break. A lone surrogate, which UTF-8 cannot carry, becomes U+FFFD."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except PydanticSerializationError:
        text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True), ensure_ascii=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
