"""A registry of tools as a Model Context Protocol server: what stands between the official SDK and
the faces, and between it and the lines of one client.

The SDK speaks the protocol in all its revisions. Here no request is left without an answer,
arguments reach a tool as they came, no text that JSON or UTF-8 cannot carry ends the connection,
and requests that need the memory take effect in the order received. Results are plain values in the
form of the wire; the SDK checks and completes them for the client's revision.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import anyio
from anyio.abc import ObjectSendStream
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    InitializeRequestParams,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from memoranda.errors import InvalidInput, MemorandaError
from memoranda.faces.tool import Prompt, Registry, Resource, Template
from memoranda.note.model import TAKEN_AGENTS
from memoranda.serve.turns import CallQueue
from memoranda.text.gate import default_rules

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

T = TypeVar("T")
Result = dict[str, Any]

# The mark newer revisions demand on a result; older ones drop it.
_FINAL: Result = {"resultType": "complete"}
_ASKED_WRONG = ("invalid", "timeframe", "outside", "not_found", "project_not_found", "ambiguous")
_ORIGINAL_ARGUMENTS = "memoranda/arguments"
_UNNAMED = "unknown"
_ANY = "*"
_PROBE = "server/discover"
_FIRST_REQUESTS = ("initialize", _PROBE)
# Who has one of these tools may read any note of the profile, and so may be told it.
_READERS = frozenset(("memory", "read_note"))
# Seconds a client waits at most for what it is told as it connects.
_INTRODUCTION_WAITS = 1.0
# Characters of a client's name; clients may send any text as one.
_CLIENT_NAME = 100
# Characters that count of what a client calls itself, and of an agent's name made from it.
_AGENT_NAME = 64
# Signs that an agent's name cannot have.
_NOT_IN_AGENTS = re.compile(r"[^a-z0-9._-]+")
VALUES = 100
"""Most values one completion may have, by the protocol."""
# A variable of a resource template: `{name}` or `{+path}`.
_VARIABLE = re.compile(r"\{(\+?)(\w+)\}")
_TOOL = {
    "name": "name",
    "title": "title",
    "description": "description",
    "inputSchema": "schema",
    "outputSchema": "output_schema",
    "annotations": "annotations",
}
_TEMPLATE = {"uriTemplate": "uri", "name": "name", "description": "description", "mimeType": "mime"}
# The protocol's names for the attributes shown in a list.
_RESOURCE = {
    "uri": "uri",
    "name": "name",
    "title": "title",
    "description": "description",
    "mimeType": "mime",
}


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Who serves, and who calls: `agent`, or if None what `agent_of` makes of the client's name
    with `clients`.
    """

    name: str
    version: str
    agent: str | None
    clients: Mapping[str, str]
    met: Callable[[str, str], None] | None = None
    """Told of each request who it is from: the agent, and what its client calls itself."""


def agent_of(client: str, own_names: Mapping[str, str] | None = None) -> str:
    """The agent of a client that calls itself `client` (contract 001, 1, "Identity").

    `own_names` is the owner's table (configuration key `agents`), which goes before ours: client name,
    in any case, to agent, `*` for every client not in it. A client in neither is its own name in
    the form a scope allows; one without any such character is `unknown`, so that it sees what is
    global and nothing else. Whatever the client says, this is a filter and no boundary (docs/trust.md):
    only an agent the owner gave is.
    """
    name = default_rules().redacted(client[:_CLIENT_NAME].strip()).lower()
    plain_name = _NOT_IN_AGENTS.sub("-", name).lstrip("-._")
    own_table = {key.lower(): agent for key, agent in (own_names or {}).items()}
    name_tables = (
        (own_table, name),
        (own_table, plain_name),
        (own_table, _ANY),
        (_known_clients(), name),
        (_known_clients(), plain_name),
    )
    found_agent = next(
        (table[key].lower() for table, key in name_tables if key in table), plain_name
    )
    agent = _NOT_IN_AGENTS.sub("-", found_agent).lstrip("-._")[:_AGENT_NAME] or _UNNAMED
    if agent in TAKEN_AGENTS:
        return f"{agent}-client"
    return agent


def has_hooks(client: str) -> bool:
    """Whether our hooks speak to the sessions of a client that calls itself `client`."""
    name = _NOT_IN_AGENTS.sub("-", client[:_CLIENT_NAME].strip().lower())
    for hooked, plugin in _hooked_clients().items():
        if name == hooked or name.startswith(f"{hooked}-"):
            return not plugin or _is_configured(plugin)
    return False


@cache
def _hooked_clients() -> Mapping[str, str]:
    """By the name of a client with hooks, the file of the plugin they need; "" where they need none."""
    lines = files("memoranda.serve").joinpath("clients-with-hooks.txt").read_text("utf-8")
    rows = [line.partition(" ") for line in lines.splitlines() if line and line[0] != "#"]
    return {name: plugin for name, _, plugin in rows}


def _is_configured(plugin: str) -> bool:
    """Whether a file like `plugin` is in this person's folder of configurations."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return any(Path(folder).expanduser().glob(plugin))


def _introduction(memory: MemorySession) -> str:
    from memoranda.engine.session_start import introduction

    if not memory.settings.introduces:
        return ""
    return introduction(memory)


def client_text(client: Any, transport: str) -> str:
    """The name under which a client is recorded as a writer: its own name and version, or the
    transport.
    """
    if client:
        client_label = f"{client.name[:_CLIENT_NAME]} {client.version[:_CLIENT_NAME]}"
        return default_rules().redacted(" ".join(client_label.split())[:_CLIENT_NAME])
    return transport


@cache
def _known_clients() -> Mapping[str, str]:
    return tomllib.loads(files("memoranda.serve").joinpath("clients.toml").read_text("utf-8"))


class ClientConnection(ObjectSendStream[SessionMessage]):
    """One client: converts its lines to the SDK's messages and back.

    It is the SDK's write stream; `requests` is its read stream. That stream ends after the client
    has sent everything and each request is answered, because the SDK drops running requests when
    its input ends. If a client gives up on a slow answer to its probe and begins like older
    clients, `requests` is replaced by a new stream.

    write: sends a line without its break.
    answered: called after each answer.
    at_end: called when the client has sent everything. It ends streams that would wait for more.
    unanswered: the number of open requests.
    """

    at_end: Callable[[], None] | None = None

    def __init__(self, write: Callable[[bytes], None], answered: Callable[[], None]):
        self._write = write
        self._answered = answered
        self._inbox, self.requests = anyio.create_memory_object_stream[SessionMessage | Exception](
            math.inf
        )
        self.unanswered = 0
        self._ended = False
        self._asked: set[str] = set()

    def receive(self, line: bytes) -> None:
        """Take one line from the client.

        A line that is not a message is answered with a JSON-RPC error.
        """
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
        """Note that the client sends nothing more, or is no longer heard."""
        self._ended = True
        if self.at_end is not None:
            self.at_end()
        if self.unanswered == 0:
            self._inbox.close()

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message of the SDK to the client."""
        self._write(line_of(item.message))
        if not isinstance(item.message, JSONRPCRequest | JSONRPCNotification):
            await self._settle()

    async def aclose(self) -> None:
        """Do nothing: the SDK has nothing more to say."""

    async def _settle(self) -> None:
        self.unanswered -= 1
        self._answered()
        if self._ended and self.unanswered == 0:
            self._inbox.close()


class NoMessage(Exception):
    """A line that is no JSON-RPC message; `id` is the request's, None when it has none that can be
    read.
    """

    def __init__(self, code: int, message: str, id: RequestId | None = None):
        super().__init__(message)
        self.id, self.error = id, ErrorData(code=code, message=message)


def message_of(line: bytes) -> JSONRPCMessage:
    """Parse the message in `line`. Raises NoMessage.

    Lone surrogates stay, and bytes that are not UTF-8 become surrogates. The tool that gets them
    can then name the parameter.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(line)
        if not (isinstance(message, JSONRPCNotification) and b'"id"' in line):
            return message
    except ValidationError:
        # Looked at again below, to say what is wrong.
        pass
    value = _json_of(line)
    if not isinstance(value, dict):
        raise NoMessage(
            INVALID_REQUEST, "A JSON-RPC message is an object; send one per line, no batches."
        )
    id = value.get("id")
    if "id" in value and (isinstance(id, bool) or not isinstance(id, str | int)):
        raise NoMessage(INVALID_REQUEST, "The `id` of a request must be a text or a whole number.")
    try:
        return jsonrpc_message_adapter.validate_python(value)
    except ValidationError:
        raise _refusal_of(value, id) from None


def _json_of(line: bytes) -> Any:
    """The value of a line, read less strictly than pydantic reads it. Raises NoMessage."""
    # A number far beyond all we count is not one of Python's.
    number = lambda digits: int(digits) if len(digits) <= 1000 else math.inf
    try:
        return json.loads(line.decode("utf-8-sig", "surrogateescape"), parse_int=number)
    except RecursionError:
        raise NoMessage(PARSE_ERROR, "The message is nested too deep.") from None
    except ValueError:
        raise NoMessage(
            PARSE_ERROR, "The line is not JSON. Send one JSON-RPC message per line."
        ) from None


def _refusal_of(value: dict[str, Any], id: RequestId | None) -> NoMessage:
    """The error for an object that is no JSON-RPC message."""
    if "method" not in value:
        # An answer, so the id is one of ours.
        id = None
    if value.get("jsonrpc") == "2.0" and isinstance(value.get("method"), str):
        return NoMessage(INVALID_PARAMS, "`params` must be an object.", id)
    text = 'Not a JSON-RPC 2.0 message: it needs "jsonrpc": "2.0" and a `method`.'
    return NoMessage(INVALID_REQUEST, text, id)


def line_of(message: JSONRPCMessage) -> bytes:
    """`message` as one line without its break. A lone surrogate, which UTF-8 cannot carry, becomes
    U+FFFD.
    """
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except PydanticSerializationError:
        text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True), ensure_ascii=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


async def converse(
    connection: ClientConnection, registry: Registry, turns: CallQueue, identity: ServerIdentity
) -> None:
    """Serve `registry` to the client of `connection` until that has ended and everything is
    answered.
    """
    handlers = Handlers(registry, turns, identity)
    # Ends every stream with its answer
    connection.at_end = handlers.listen.close
    server = handlers.server()
    requests = None
    while requests is not connection.requests:
        requests = connection.requests
        await server.run(requests, connection, server.create_initialization_options())


def _listing(key: str, names: Mapping[str, str], items: Iterable[Any]) -> Callable[..., Any]:
    """The handler that lists `items` under `key`, each with its fields in `names`."""

    def shown(item: Any) -> Result:
        row = {shown_name: getattr(item, name) for shown_name, name in names.items()}
        return {name: value for name, value in row.items() if value not in (None, {})}

    async def listed(ctx: Any, params: Any) -> Result:
        return _FINAL | {key: [shown(item) for item in items]}

    return listed


class NoResource(MemorandaError):
    """No resource and no template reads `uri`."""

    code = "not_found"

    def __init__(self, uri: str, templates: Sequence[Template], resources: Iterable[str] = ()):
        shapes = ", ".join([*resources, *(template.uri for template in templates)]) or "none"
        super().__init__(f'No resource "{uri}". Resources have the form {shapes}.')


def resource_result(
    memory: MemorySession,
    templates: Sequence[Template],
    uri: str,
    resources: Mapping[str, Resource] = {},
) -> Result:
    """Read the resource at `uri`, or the first template that fits, as the answer to
    `resources/read`.

    Raises NoResource if none fits, and the errors of reading.
    """
    resource: Resource | Template | None = resources.get(uri)
    if resource is None:
        text = ""
    else:
        text = resources[uri].read(memory)
    for template in () if resource else templates:
        # RFC 6570: `{name}` is one segment, `{+name}` the rest. `?` and `#` belong to the last
        # variable: people write the names of their notes unencoded.
        pattern = ""
        end = 0
        for variable in _VARIABLE.finditer(template.uri):
            pattern += (
                re.escape(template.uri[end : variable.start()])
                + f"(?P<{variable[2]}>{'.+' if variable[1] else '[^/]+'})"
            )
            end = variable.end()
        match = re.fullmatch(pattern + re.escape(template.uri[end:]), uri, re.DOTALL)
        if match:
            variables = {name: unquote(value) for name, value in match.groupdict().items()}
            resource = template
            text = template.read(memory, variables)
            break
    if resource is None:
        raise NoResource(uri, templates, resources)
    return _FINAL | {"contents": [{"uri": uri, "mimeType": resource.mime, "text": text}]}


class Handlers:
    """The handlers of one server, as the SDK calls them: (context, parameters) -> result.

    A client learns of changed resources in the way of its protocol version: up to 2025-11-25 on its
    connection, after `resources/subscribe`; later on a stream, `subscriptions/listen`, which the
    SDK serves. Changes show in the version of each watched resource, compared after every call that
    used the memory.
    """

    def __init__(self, registry: Registry, turns: CallQueue | None, identity: ServerIdentity):
        self._registry = registry
        self._turns = turns
        self._identity = identity
        self._versions: dict[str, Any] = {}
        self._subscribed: set[str] = set()
        self._session = os.urandom(4).hex()
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)

    def server(self) -> Server[Any]:
        """The SDK's server of what the registry has. Without prompts or resources their requests
        stay unknown, and so out of the capabilities."""
        registry = self._registry
        prompts = self._registry.prompts
        handlers: dict[str, Any] = {"on_call_tool": self.call}
        handlers["on_list_tools"] = _listing("tools", _TOOL, registry.tools.values())
        if prompts:
            handlers |= {"on_get_prompt": self.prompt, "on_list_prompts": self.list_prompts}
        if registry.templates or registry.resources:
            handlers["on_read_resource"] = self.read
            handlers["on_list_resources"] = _listing(
                "resources", _RESOURCE, registry.resources.values()
            )
            handlers["on_list_resource_templates"] = _listing(
                "resourceTemplates", _TEMPLATE, registry.templates
            )
        if prompts or registry.templates:
            handlers["on_completion"] = self.complete
        # Only clients with a connection can be told about changes.
        if registry.resources and self._turns is not None:
            handlers |= {
                "on_subscribe_resource": self.subscribe,
                "on_unsubscribe_resource": self.unsubscribe,
            }
            handlers["on_subscriptions_listen"] = self.listen_to
        server: Server[Any] = Server(
            self._identity.name,
            version=self._identity.version,
            instructions=registry.instructions or None,
            cache_hints={method: CacheHint() for method in CACHEABLE_METHODS},  # type: ignore[misc]  # its keys are Literals
            **handlers,
        )
        # The SDK's own middleware would tell a tracer what is called; here nobody but the owner is
        # told.
        server.middleware[:] = [self._around]
        return server

    async def _around(self, ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        if ctx.method == "tools/call" and not isinstance(
            (ctx.params or {}).get("arguments"), dict | None
        ):
            # The SDK would refuse arguments that are not an object, but the tool must answer.
            ctx = replace(
                ctx,
                params={
                    **ctx.params,
                    "arguments": {},
                    _ORIGINAL_ARGUMENTS: ctx.params["arguments"],
                },
            )
        try:
            result = await call_next(ctx)
            if ctx.method in _FIRST_REQUESTS:
                result = await self._introduced(ctx, result)
            return result
        finally:
            if self._identity.met is not None:
                self._identity.met(*self._caller(ctx))

    async def _introduced(self, ctx: Any, result: Result) -> Result:
        """The answer to a client's first request, with what its session should know.

        The instructions of the registry come first, unchanged. A client with hooks hears it from
        these. No trouble with the memory, and no long wait for it, keeps a client from connecting.
        """
        client = self._client(ctx)
        may_read = not _READERS.isdisjoint(self._registry.tools)
        if not may_read or has_hooks(client.name if client else ""):
            return result
        introduction = ""
        with anyio.move_on_after(_INTRODUCTION_WAITS), suppress(MemorandaError):
            introduction = await self._take(ctx, _introduction)
        if not introduction:
            return result
        texts = [result.get("instructions") or "", introduction]
        return result | {"instructions": "\n\n".join(filter(None, texts))}

    @staticmethod
    def _client(ctx: Any) -> Any:
        """How the client names itself, or None. The SDK knows it only after `initialize`."""
        params = ctx.session.client_params
        if params is None and ctx.method == "initialize":
            params = InitializeRequestParams.model_validate(ctx.params, by_name=False)
        if params:
            return params.client_info
        return None

    def _caller(self, ctx: Any) -> tuple[str, str]:
        """The agent who calls, and the name that its client gives itself."""
        client = self._client(ctx)
        agent = self._identity.agent or agent_of(
            client.name if client else "", self._identity.clients
        )
        return agent, client_text(client, "mcp")

    async def call(self, ctx: Any, params: Any) -> Result:
        if params.name not in self._registry.tools:
            advice = self._registry.instead_of(params.name)
            tool_names = ", ".join(self._registry.tools)
            message = advice or f"Unknown tool: {params.name}. Tools: {tool_names}."
            raise MCPError(INVALID_PARAMS, message)
        arguments = ctx.params.get(_ORIGINAL_ARGUMENTS, params.arguments)
        try:
            reply = await self._take(
                ctx, lambda memory: self._registry.call(memory, params.name, arguments)
            )
        except MemorandaError as error:
            reply = self._registry.refusal(params.name, error)
        if reply.hint:
            texts = [reply.text, reply.hint]
        else:
            texts = [reply.text]
        result = _FINAL | {
            "content": [{"type": "text", "text": text} for text in texts],
            "isError": reply.is_error,
        }
        optional_keys = {"structuredContent": reply.data, "_meta": reply.meta or None}
        return result | {key: value for key, value in optional_keys.items() if value is not None}

    async def list_prompts(self, ctx: Any, params: Any) -> Result:
        keys = ("name", "description", "required")
        rows: list[Result] = []
        for prompt in self._registry.prompts.values():
            arguments = [dict(zip(keys, argument, strict=True)) for argument in prompt.arguments]
            rows.append(
                {"name": prompt.name, "description": prompt.description, "arguments": arguments}
            )
        return _FINAL | {"prompts": rows}

    async def prompt(self, ctx: Any, params: Any) -> Result:
        """A rendered prompt. Arguments it does not have are ignored; a blank one is one not given,
        as forms send it.
        """

        def render(memory: MemorySession) -> Result:
            prompt = self._prompt(params.name)
            names = {name for name, _, _ in prompt.arguments}
            given_arguments = params.arguments or {}
            arguments = {
                name: value
                for name, value in given_arguments.items()
                if name in names and value.strip()
            }
            for name, _, required in prompt.arguments:
                if required and name not in arguments:
                    raise InvalidInput(
                        f"Argument `{name}` is required for the prompt {prompt.name}."
                    )
            message = {
                "role": "user",
                "content": {"type": "text", "text": prompt.render(memory, arguments)},
            }
            return _FINAL | {"description": prompt.description, "messages": [message]}

        return await self._answer(ctx, render)

    def _prompt(self, name: str) -> Prompt:
        prompts = self._registry.prompts
        if name not in prompts:
            raise InvalidInput(f'No prompt "{name}". Prompts: {", ".join(prompts) or "none"}.')
        return prompts[name]

    async def read(self, ctx: Any, params: Any) -> Result:
        templates = self._registry.templates
        resources = self._registry.resources
        read = partial(resource_result, templates=templates, uri=params.uri, resources=resources)
        return await self._answer(ctx, read, uri=params.uri)

    async def complete(self, ctx: Any, params: Any) -> Result:
        """Values that go on from what was typed; prompts have none to offer."""
        uri = getattr(params.ref, "uri", "")
        variable = params.argument.name
        other_arguments = dict((params.context.arguments if params.context else None) or {})

        def complete(memory: MemorySession) -> Result:
            values: list[str] = []
            if params.ref.type == "ref/prompt":
                self._prompt(params.ref.name)
            elif (
                template := next(
                    (
                        this_template
                        for this_template in self._registry.templates
                        if this_template.uri == uri
                    ),
                    None,
                )
            ) is None:
                raise NoResource(uri, self._registry.templates)
            elif variable not in (names := [name for _, name in _VARIABLE.findall(uri)]):
                raise InvalidInput(
                    f"{uri} has no variable `{variable}`. Its variables: {', '.join(names)}."
                )
            elif template.complete is not None:
                values = template.complete(memory, variable, params.argument.value, other_arguments)
            found_values = {
                "values": values[:VALUES],
                "total": len(values),
                "hasMore": len(values) > VALUES,
            }
            return _FINAL | {"completion": found_values}

        return await self._answer(ctx, complete)

    async def subscribe(self, ctx: Any, params: Any) -> Result:
        def begin(memory: MemorySession) -> Result:
            if params.uri not in self._registry.resources:
                raise NoResource(params.uri, (), self._registry.resources)
            self._subscribed.add(params.uri)
            return self._watch(memory, [params.uri])

        return await self._answer(ctx, begin, uri=params.uri)

    async def unsubscribe(self, ctx: Any, params: Any) -> Result:
        self._subscribed.discard(params.uri)
        return {}

    async def listen_to(self, ctx: Any, params: Any) -> Any:
        uris = params.notifications.resource_subscriptions or ()
        await self._answer(ctx, lambda memory: self._watch(memory, uris))
        return await self.listen(ctx, params)

    def _watch(self, memory: MemorySession, uris: Iterable[str]) -> Result:
        """Begin to compare the versions of these resources, if they exist."""
        resources = self._registry.resources
        self._versions |= {uri: resources[uri].version(memory) for uri in uris if uri in resources}
        return {}

    async def _answer(self, ctx: Any, call: Callable[[MemorySession], T], **data: str) -> T:
        """The result of `call`, or its error as a protocol error with `data`."""
        try:
            return await self._take(ctx, call)
        except MemorandaError as error:
            if error.code in _ASKED_WRONG:
                code = INVALID_PARAMS
            else:
                code = INTERNAL_ERROR
            raise MCPError(code, str(error), data or None) from None

    async def _take(self, ctx: Any, call: Callable[[MemorySession], T]) -> T:
        """Run `call` as the caller of `ctx`, and tell subscribers which resources changed."""
        agent, name = self._caller(ctx)

        def run(memory: MemorySession) -> tuple[T, list[str]]:
            bound = memory.as_caller(agent, "mcp", client=name, session=self._session)
            done_result = call(bound)
            before = self._versions
            self._versions = {uri: self._registry.resources[uri].version(bound) for uri in before}
            return done_result, [
                uri for uri, version in self._versions.items() if version != before[uri]
            ]

        assert self._turns is not None
        result, changed = await self._turns.take(run)
        for uri in changed:
            if uri in self._subscribed:
                await ctx.session.send_resource_updated(uri)
            await self._bus.publish(ResourceUpdated(uri))
        return result
