"""A registry of tools as a Model Context Protocol server: what stands between the official SDK and the faces.

The SDK speaks the protocol in all its revisions. Ours is only what a memory needs beside that: requests
that need the memory take effect in the order received, no request is left without an answer, arguments
reach a tool as they came, and no text that JSON or UTF-8 cannot carry ends the connection.
Results are plain values in the form of the wire; the SDK checks and completes them for the client's revision.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
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
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from commonplace.errors import CommonplaceError
from commonplace.faces.tool import Registry
from commonplace.serve import offers
from commonplace.serve.clients import agent_of
from commonplace.serve.subscriptions import Subscriptions
from commonplace.serve.turns import Turns
from commonplace.serve.wire import Wire
from commonplace.text.unicode import repair_surrogates

if TYPE_CHECKING:
    from commonplace.engine import Memory

T = TypeVar("T")
Result = dict[str, Any]

RESOURCE_NOT_FOUND = -32002
"""The code of the revisions with a handshake; later ones say INVALID_PARAMS."""
_MISSING = ("not_found", "project_not_found", "ambiguous")
_ASKED_WRONG = ("invalid", "timeframe", "outside")
_GIVEN = "commonplace/arguments"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who serves, and who calls: `agent`, or if None what `clients` and our table make of the client's name."""

    name: str
    version: str
    title: str | None
    agent: str | None
    clients: Mapping[str, str]


async def converse(connection: Connection, registry: Registry, turns: Turns, identity: Identity) -> None:
    """Serve `registry` to the client of `connection` until that has ended and everything is answered."""
    answers = _Answers(registry, turns, identity)
    connection.at_end = answers.close
    server = Server(
        identity.name,
        version=identity.version,
        title=identity.title,
        instructions=registry.instructions or None,
        cache_hints=dict.fromkeys(CACHEABLE_METHODS, CacheHint()),
        **answers.by_request(),
    )
    # The SDK's own middleware would tell a tracer what is called; here nobody but the owner is told.
    server.middleware[:] = [_arguments_as_given]
    await server.run(connection.requests, connection, server.create_initialization_options())


class Connection:
    """One client on a wire: lines to the SDK's messages and back, and how many requests wait for an answer.

    It is the SDK's write stream. `requests` is its read stream, which ends when the client has sent all
    and each request has its answer: the SDK drops what is in progress once its input ends. `answered` is
    called after each answer, `at_end` when the client has sent all: it ends streams that would wait for more.
    """

    at_end: Callable[[], None] | None = None

    def __init__(self, wire: Wire, answered: Callable[[], None]):
        self._wire, self._answered = wire, answered
        self._inbox, self.requests = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        self._open = 0
        self._ended = False

    def receive(self, line: bytes) -> None:
        """One line from the client. What is no message is answered with a JSON-RPC error."""
        if self._ended or not line.strip():
            return
        try:
            message = message_of(line)
        except NoMessage as refused:
            self._wire.send(line_of(JSONRPCError(jsonrpc="2.0", id=refused.id, error=refused.error)))
            return
        metadata = None
        if isinstance(message, JSONRPCRequest):
            self._open += 1
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
        self._wire.send(line_of(item.message))
        if not isinstance(item.message, JSONRPCRequest | JSONRPCNotification):
            await self._settle()

    async def aclose(self) -> None:
        """The SDK has nothing more to say."""

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def _settle(self) -> None:
        self._open -= 1
        self._answered()
        self._close_when_answered()

    def _close_when_answered(self) -> None:
        if self._ended and self._open == 0:
            self._inbox.close()


class NoMessage(Exception):
    """A line that is no JSON-RPC message; `id` is the request's, None when it has none we can tell."""

    def __init__(self, code: int, message: str, id: RequestId | None = None):
        super().__init__(message)
        self.id, self.error = id, ErrorData(code=code, message=message)


def message_of(line: bytes) -> JSONRPCMessage:
    """The message in `line`. Raises NoMessage.

    Lone surrogates and bytes that are no UTF-8 are kept, as surrogates, so that the tool they are meant for
    can name the parameter.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(line)
        if not (isinstance(message, JSONRPCNotification) and b'"id"' in line):
            return message
    except ValidationError:
        pass  # looked at again below, to say what is wrong
    given = _object_in(line)
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


def _object_in(line: bytes) -> dict[str, Any]:
    """The object in `line`, read more patiently than pydantic reads it. Raises NoMessage."""
    try:
        given = json.loads(line.decode("utf-8-sig", "surrogateescape"), parse_int=_whole_number)
    except RecursionError:
        raise NoMessage(PARSE_ERROR, "The message is nested too deep.") from None
    except ValueError:
        raise NoMessage(PARSE_ERROR, "The line is not JSON. Send one JSON-RPC message per line.") from None
    if not isinstance(given, dict):
        raise NoMessage(INVALID_REQUEST, "A JSON-RPC message is an object; send one per line, no batches.")
    return given


def _whole_number(digits: str) -> float:
    return int(digits) if len(digits) <= 1000 else math.inf  # far beyond all we count, and below Python's limit


def line_of(message: JSONRPCMessage) -> bytes:
    """`message` as one line without its break. A lone surrogate, which UTF-8 cannot carry, becomes U+FFFD."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except PydanticSerializationError:
        text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True), ensure_ascii=False)
        return repair_surrogates(text).encode()


async def _arguments_as_given(ctx: Any, call_next: Callable[[Any], Any]) -> Any:
    """Put arguments that are no object aside: the SDK would refuse them, but the tool is to answer."""
    if ctx.method == "tools/call" and not isinstance((ctx.params or {}).get("arguments"), dict | None):
        ctx = replace(ctx, params={**ctx.params, "arguments": {}, _GIVEN: ctx.params["arguments"]})
    return await call_next(ctx)


def _whole(handler: Callable[[Any, Any], Awaitable[Result]]) -> Callable[[Any, Any], Awaitable[Result]]:
    """`handler`, its results marked as final: newer revisions demand the mark, older ones drop it."""

    async def marked(ctx: Any, params: Any) -> Result:
        return {"resultType": "complete", **await handler(ctx, params)}

    return marked


class _Answers:
    """The handlers of one server, as the SDK calls them: (context, parameters) -> result."""

    def __init__(self, registry: Registry, turns: Turns, identity: Identity):
        self._registry, self._turns, self._identity = registry, turns, identity
        self._names: dict[str, str] = {}
        self._subscriptions = Subscriptions(registry.resources)

    def close(self) -> None:
        """The client asks for nothing more."""
        self._subscriptions.close()

    def by_request(self) -> dict[str, Any]:
        """Handlers for what the registry has, under the names of the SDK's parameters.

        Without prompts or resources their requests stay unknown, and so out of the capabilities.
        """
        handlers: dict[str, Any] = {"on_list_tools": self.tools, "on_call_tool": self.call}
        if self._registry.prompts:
            handlers |= {"on_list_prompts": self.prompts, "on_get_prompt": self.prompt}
        if self._registry.templates or self._registry.resources:
            handlers |= {
                "on_list_resources": self.resources,
                "on_list_resource_templates": self.templates,
                "on_read_resource": self.read,
            }
        if self._registry.prompts or self._registry.templates:
            handlers["on_completion"] = self.complete
        handlers = {name: _whole(handler) for name, handler in handlers.items()}
        if self._registry.resources:
            handlers |= {
                "on_subscribe_resource": self.subscribe,
                "on_unsubscribe_resource": self.unsubscribe,
                "on_subscriptions_listen": self.listen,
            }
        return handlers

    async def tools(self, ctx: Any, params: Any) -> Result:
        return {"tools": [offers.tool_entry(tool) for tool in self._registry.tools.values()]}

    async def call(self, ctx: Any, params: Any) -> Result:
        if params.name not in self._registry.tools:
            known = ", ".join(self._registry.tools)
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}. Tools: {known}.")
        arguments = ctx.params.get(_GIVEN, params.arguments)
        try:
            reply = await self._take(ctx, lambda memory: self._registry.call(memory, params.name, arguments))
        except CommonplaceError as error:
            reply = self._registry.refusal(params.name, error)
        return offers.tool_result(reply)

    async def prompts(self, ctx: Any, params: Any) -> Result:
        return {"prompts": [offers.prompt_entry(prompt) for prompt in self._registry.prompts.values()]}

    async def prompt(self, ctx: Any, params: Any) -> Result:
        def render(memory: Memory) -> Result:
            prompt = offers.prompt_named(self._registry, params.name)
            return offers.prompt_result(memory, prompt, params.arguments or {})

        return await self._answer(ctx, render)

    async def resources(self, ctx: Any, params: Any) -> Result:
        return {"resources": [offers.resource_entry(each) for each in self._registry.resources.values()]}

    async def templates(self, ctx: Any, params: Any) -> Result:
        return {"resourceTemplates": [offers.template_entry(template) for template in self._registry.templates]}

    async def read(self, ctx: Any, params: Any) -> Result:
        missing = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else RESOURCE_NOT_FOUND
        read = partial(offers.resource_result, templates=self._registry.templates, uri=params.uri,
                       resources=self._registry.resources)  # fmt: skip
        return await self._answer(ctx, read, missing, uri=params.uri)

    async def subscribe(self, ctx: Any, params: Any) -> Result:
        def begin(memory: Memory) -> Result:
            self._subscriptions.subscribe(params.uri)
            self._subscriptions.begin(memory, [params.uri])
            return {}

        return await self._answer(ctx, begin, RESOURCE_NOT_FOUND, uri=params.uri)

    async def unsubscribe(self, ctx: Any, params: Any) -> Result:
        self._subscriptions.unsubscribe(params.uri)
        return {}

    async def listen(self, ctx: Any, params: Any) -> Any:
        wanted = params.notifications.resource_subscriptions or ()
        await self._answer(ctx, lambda memory: self._subscriptions.begin(memory, wanted) or {})
        return await self._subscriptions.listen(ctx, params)

    async def complete(self, ctx: Any, params: Any) -> Result:
        def values(memory: Memory) -> Result:
            template = None
            if params.ref.type == "ref/prompt":
                offers.prompt_named(self._registry, params.ref.name)
            else:
                template = offers.template_named(self._registry, params.ref.uri)
            others = (params.context.arguments if params.context else None) or {}
            return offers.completion_result(memory, template, params.argument.name, params.argument.value, others)

        return await self._answer(ctx, values)

    async def _answer(
        self, ctx: Any, call: Callable[[Memory], Result], missing: int = INVALID_PARAMS, **data: str
    ) -> Result:
        """The result of `call`, or its error as a protocol error; `missing` is the code for what is not there."""
        try:
            return await self._take(ctx, call)
        except CommonplaceError as error:
            ours = INVALID_PARAMS if error.code in _ASKED_WRONG else INTERNAL_ERROR
            raise MCPError(missing if error.code in _MISSING else ours, str(error), data or None) from None

    async def _take(self, ctx: Any, call: Callable[[Memory], T]) -> T:
        agent = self._agent(ctx)

        def run(memory: Memory) -> tuple[T, list[str]]:
            bound = memory.as_caller(agent, "mcp")
            return call(bound), self._subscriptions.look(bound)

        result, changed = await self._turns.take(run)
        if changed:
            await self._subscriptions.tell(ctx.session, changed)
        return result

    def _agent(self, ctx: Any) -> str:
        if self._identity.agent:
            return self._identity.agent
        client = ctx.session.client_params
        name = client.client_info.name if client else ""
        if name not in self._names:
            self._names[name] = agent_of(name, self._identity.clients)
        return self._names[name]
