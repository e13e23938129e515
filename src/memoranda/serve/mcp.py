"""Offers a registry of tools as a Model Context Protocol (MCP) server.

The official SDK speaks the protocol in all its revisions. `ClientConnection` converts the lines of
one client to the SDK's messages, and `Handlers` answers the requests that the SDK passes on.

This module adds guarantees to the SDK:

- Each request gets an answer.
- Arguments reach a tool unchanged.
- Text that JSON or UTF-8 cannot carry does not end the connection.
- Requests that need the memory take effect in the order received.

Results are dicts as the wire has them. The SDK checks and completes them for the client's revision.
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
from functools import cache
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
from memoranda.faces.reply import Reply
from memoranda.faces.sizes import check_sizes
from memoranda.faces.tool import Prompt, Registry, Resource, Template
from memoranda.note.model import TAKEN_AGENTS
from memoranda.serve.call_queue import CallQueue
from memoranda.text.fence import cut
from memoranda.text.outside import MOST_NAME_CHARACTERS, WITHHELD, outside_name

if TYPE_CHECKING:
    from memoranda.engine import MemorySession

T = TypeVar("T")
Result = dict[str, Any]

# Newer revisions demand this key in a final result. For older revisions the SDK drops it.
_FINAL: Result = {"resultType": "complete"}
# The codes of errors that are the caller's: they become INVALID_PARAMS, others INTERNAL_ERROR.
_CALLER_ERROR_CODES = (
    "invalid",
    "timeframe",
    "outside",
    "not_found",
    "project_not_found",
    "ambiguous",
)
# The key of a call's parameters under which arguments that are not an object reach our handler.
_ORIGINAL_ARGUMENTS = "memoranda/arguments"
# The agent of a client whose name cannot be used: it has no character that an agent's name may
# have, or it seems to give orders to its reader.
_UNNAMED_AGENT = "unknown"
# The key in the owner's table for every client that the table does not name.
_ANY_CLIENT = "*"
# The request by which a newer client asks for the revisions the server speaks.
_PROBE = "server/discover"
_FIRST_REQUESTS = ("initialize", _PROBE)
# A client with one of these tools may read any note of the profile, so it may see the profile.
_READING_TOOLS = frozenset(("memory", "read_note"))
# An introduction that takes longer is left out, so that a client can connect.
_MAX_INTRODUCTION_SECONDS = 1.0
_MAX_AGENT_NAME_CHARACTERS = 64
# An error quotes a name or an address that the client sent, so it may be long. It is cut to this.
_MAX_ERROR_CHARACTERS = 4_000
_NOT_IN_AGENT_NAMES = re.compile(r"[^a-z0-9._-]+")
MAX_VALUES = 100
"""A completion has at most this many values, by the protocol."""
# A variable of a resource template: `{name}` or `{+path}`.
_VARIABLE = re.compile(r"\{(\+?)(\w+)\}")
# For each kind of item in a list: the protocol's name of a field, and our attribute that has it.
_TOOL_FIELDS = {
    "name": "name",
    "title": "title",
    "description": "description",
    "inputSchema": "schema",
    "outputSchema": "output_schema",
    "annotations": "annotations",
}
_TEMPLATE_FIELDS = {
    "uriTemplate": "uri",
    "name": "name",
    "description": "description",
    "mimeType": "mime",
}
_RESOURCE_FIELDS = {
    "uri": "uri",
    "name": "name",
    "title": "title",
    "description": "description",
    "mimeType": "mime",
}


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The name of the server, and how it finds the agent that calls.

    name: the name that the server tells clients.
    version: the version that the server tells clients.
    agent: the agent of every caller. None: `agent_of` finds the agent by the client's name.
    clients: the owner's table from client name to agent, for `agent_of`.
    """

    name: str
    version: str
    agent: str | None
    clients: Mapping[str, str]
    on_request: Callable[[str, str], None] | None = None
    """Called after each request with the agent that made it, and the name its client gave. None for
    nothing to call."""


def _tool_result(reply: Reply) -> Result:
    """Return the reply of a tool as MCP's result of a call."""
    texts = [reply.text]
    if reply.hint:
        texts.append(reply.hint)
    result = _FINAL | {
        "content": [{"type": "text", "text": text} for text in texts],
        "isError": reply.is_error,
    }
    if reply.data is not None:
        result["structuredContent"] = reply.data
    if reply.meta:
        result["_meta"] = reply.meta
    return result


def agent_of(client: str, own_names: Mapping[str, str] | None = None) -> str:
    """Return the agent of a client that calls itself `client` (contract 001, 1, "Identity").

    The owner's table is looked up first, then ours (clients.toml). The name of a client in neither
    table becomes its agent, with `-` for characters that agents may not have: "My Editor" gives
    "my-editor". A name of only such characters gives "unknown", an agent that sees only global
    notes.

    The agent is a filter, not a boundary, because a client may give any name (docs/trust.md).
    Only an agent that the owner set is a boundary.

    own_names: the owner's table (configuration key `agents`): client name, in any case, to agent.
        Its key `*` is for every client that it does not name. None for no table.
    """
    shown_name = outside_name(client.strip())
    # A name that seems to give orders to its reader is withheld.
    if shown_name == WITHHELD:
        return _UNNAMED_AGENT
    name = shown_name.lower()
    safe_name = _safe_agent_name(name)
    own_table = {key.lower(): agent for key, agent in (own_names or {}).items()}
    agent = _first_value(own_table, name, safe_name, _ANY_CLIENT)
    if agent is None:
        agent = _first_value(_known_clients(), name, safe_name)
    if agent is None:
        agent = safe_name
    # The owner's table may have any text.
    agent = _safe_agent_name(agent.lower())[:_MAX_AGENT_NAME_CHARACTERS]
    if not agent:
        return _UNNAMED_AGENT
    # In notes, these names say that a person or an import wrote them, and not a client.
    if agent in TAKEN_AGENTS:
        return f"{agent}-client"
    return agent


def _first_value(table: Mapping[str, str], *keys: str) -> str | None:
    """Return the value of the first key that the table has. None if it has none of the keys."""
    for key in keys:
        if key in table:
            return table[key]
    return None


def _safe_agent_name(name: str) -> str:
    """Return a lowercase name with only the characters of an agent's name.

    "my editor" gives "my-editor".
    """
    return _NOT_IN_AGENT_NAMES.sub("-", name).lstrip("-._")


def has_hooks(client: str) -> bool:
    """Whether our hooks introduce the memory to the sessions of a client.

    client: the name that the client gives itself.
    """
    name = _NOT_IN_AGENT_NAMES.sub("-", client[:MOST_NAME_CHARACTERS].strip().lower())
    for hooked_client, plugin_pattern in _plugin_patterns().items():
        # A client may add a word to its name: "codex" is also "codex-mcp-client".
        if name == hooked_client or name.startswith(f"{hooked_client}-"):
            return not plugin_pattern or _is_configured(plugin_pattern)
    return False


@cache
def _plugin_patterns() -> Mapping[str, str]:
    """Return the clients with hooks, each with a glob pattern for the plugin file of the hooks.

    The pattern is "" if the hooks need no plugin.
    """
    text = files("memoranda.serve").joinpath("clients-with-hooks.txt").read_text("utf-8")
    patterns: dict[str, str] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            client_name, _, pattern = line.partition(" ")
            patterns[client_name] = pattern
    return patterns


def _is_configured(plugin_pattern: str) -> bool:
    """Whether this person's folder of configurations has a file that matches the glob pattern."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return any(Path(folder).expanduser().glob(plugin_pattern))


def _introduction(memory: MemorySession) -> str:
    """Return the text that a client gets when it connects. "" if the owner wants none."""
    from memoranda.engine.telling.session_start import introduction

    if not memory.reread_settings().introduces:
        return ""
    return introduction(memory)


def client_text(client: Any, transport: str) -> str:
    """Return the name of a client for the ledger: "claude-code 2.1", for example.

    client: the name and version that the client gave. None means `transport`.
    """
    if not client:
        return transport
    return outside_name(f"{client.name} {client.version}".strip())


@cache
def _known_clients() -> Mapping[str, str]:
    """Return our own table from client name to agent (clients.toml)."""
    return tomllib.loads(files("memoranda.serve").joinpath("clients.toml").read_text("utf-8"))


class ClientConnection(ObjectSendStream[SessionMessage]):
    """One client: converts its lines to the SDK's messages and back.

    The SDK writes to this object and reads from `requests`. `requests` ends only after the client
    has sent everything and each request is answered, because the SDK drops running requests when
    its input ends. Some clients give up on a slow answer to their probe and begin like an older
    client, with `initialize`. Then `requests` is replaced by a new stream.

    write: sends the client a line, which it gets without the line break.
    on_answer: called after each answer.
    at_end: called when the client has sent everything. It ends streams that would wait for more.
    unanswered: the number of open requests.
    """

    at_end: Callable[[], None] | None = None

    def __init__(self, write: Callable[[bytes], None], on_answer: Callable[[], None]):
        self._write = write
        self._on_answer = on_answer
        # The two ends of one stream: what is put into `_inbox` comes out of `requests`.
        self._inbox, self.requests = anyio.create_memory_object_stream[SessionMessage | Exception](
            math.inf
        )
        self.unanswered = 0
        self._ended = False
        self._methods_received: set[str] = set()

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
            self._begin_again_after_probe(message.method)
            self._methods_received.add(message.method)
            # The SDK leaves a cancelled request without an answer. Then it calls this function.
            metadata = ServerMessageMetadata(on_request_unanswered=self._count_answered)
        self._inbox.send_nowait(SessionMessage(message, metadata))

    def _begin_again_after_probe(self, method: str) -> None:
        """Replace `requests` if the client gave up on its probe, and begins as an older client.

        Its requests then get a new stream, for which `converse` runs the SDK's server again.

        method: the method of the request that the client has just sent.
        """
        has_only_probed = self._methods_received == {_PROBE}
        if method == "initialize" and has_only_probed:
            self._inbox.close()
            self._inbox, self.requests = anyio.create_memory_object_stream(math.inf)

    def end(self) -> None:
        """Record that the client sends nothing more, or that its connection is gone."""
        self._ended = True
        if self.at_end is not None:
            self.at_end()
        if self.unanswered == 0:
            self._inbox.close()

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message of the SDK to the client."""
        self._write(line_of(item.message))
        is_answer = not isinstance(item.message, JSONRPCRequest | JSONRPCNotification)
        if is_answer:
            await self._count_answered()

    async def aclose(self) -> None:
        """Do nothing: the SDK has nothing more to say."""

    async def _count_answered(self) -> None:
        """Count one request less as open. After the last request of all, `requests` ends."""
        self.unanswered -= 1
        self._on_answer()
        if self._ended and self.unanswered == 0:
            self._inbox.close()


class NoMessage(Exception):
    """A line is not a JSON-RPC message.

    id: the id of the request. None if the line has no readable id.
    error: the error to answer with.
    """

    def __init__(self, code: int, message: str, id: RequestId | None = None):
        super().__init__(message)
        self.id = id
        self.error = ErrorData(code=code, message=message)


def message_of(line: bytes) -> JSONRPCMessage:
    """Parse the message in `line`. Raises NoMessage.

    Lone surrogates stay, and bytes that are not UTF-8 become surrogates. The tool that gets them
    can then name the parameter.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(line)
        # A request whose `id` is invalid is read as a notification, and would get no answer. It is
        # parsed once more below, where the `id` is checked.
        may_be_request = isinstance(message, JSONRPCNotification) and b'"id"' in line
        if not may_be_request:
            return message
    except ValidationError:
        # The line may still be a message in a less strict sense. The steps below find out, or find
        # what is wrong.
        pass
    value = _json_of(line)
    if not isinstance(value, dict):
        raise NoMessage(
            INVALID_REQUEST, "A JSON-RPC message is an object; send one per line, no batches."
        )
    id = value.get("id")
    # In Python, but not in JSON, a truth value is a whole number.
    is_valid_id = isinstance(id, str | int) and not isinstance(id, bool)
    if "id" in value and not is_valid_id:
        raise NoMessage(INVALID_REQUEST, "The `id` of a request must be a text or a whole number.")
    try:
        return jsonrpc_message_adapter.validate_python(value)
    except ValidationError:
        raise _refusal_of(value, id) from None


def _json_of(line: bytes) -> Any:
    """Return the JSON value of a line, read less strictly than by pydantic. Raises NoMessage."""
    try:
        return json.loads(line.decode("utf-8-sig", "surrogateescape"), parse_int=_parsed_int)
    except RecursionError:
        raise NoMessage(PARSE_ERROR, "The message is nested too deep.") from None
    except ValueError:
        raise NoMessage(
            PARSE_ERROR, "The line is not JSON. Send one JSON-RPC message per line."
        ) from None


def _parsed_int(digits: str) -> float:
    """Return the whole number that digits spell. A number of more than 1,000 digits is infinite.

    Python refuses to convert a number of thousands of digits, and we count nothing so large.
    """
    if len(digits) > 1000:
        return math.inf
    return int(digits)


def _refusal_of(value: dict[str, Any], id: RequestId | None) -> NoMessage:
    """Return the error for a JSON object that is not a JSON-RPC message."""
    if "method" not in value:
        # The object is an answer, so its id is not of a request of the client.
        id = None
    if value.get("jsonrpc") == "2.0" and isinstance(value.get("method"), str):
        return NoMessage(INVALID_PARAMS, "`params` must be an object.", id)
    text = 'Not a JSON-RPC 2.0 message: it needs "jsonrpc": "2.0" and a `method`.'
    return NoMessage(INVALID_REQUEST, text, id)


def line_of(message: JSONRPCMessage) -> bytes:
    """Return `message` as one line of JSON, without a line break.

    A lone surrogate, which UTF-8 cannot carry, becomes U+FFFD.
    """
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except PydanticSerializationError:
        # UTF-16 can be written with a lone surrogate. Reading it again replaces the surrogate.
        text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True), ensure_ascii=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


async def converse(
    connection: ClientConnection,
    registry: Registry,
    call_queue: CallQueue,
    identity: ServerIdentity,
) -> None:
    """Serve `registry` to a client until it has sent everything and each request is answered.

    connection: the connection to the client.
    registry: the tools, prompts and resources.
    call_queue: the queue in which calls wait for the memory.
    identity: the name of the server, and how it finds the agent that calls.
    """
    handlers = Handlers(registry, call_queue, identity)
    # A stream of changes would stay open; closing it sends its answer.
    connection.at_end = handlers.listen.close
    server = handlers.server()
    requests = None
    # The connection replaces `requests` if the client begins again.
    while requests is not connection.requests:
        requests = connection.requests
        await server.run(requests, connection, server.create_initialization_options())


def _listing(key: str, fields: Mapping[str, str], items: Iterable[Any]) -> Callable[..., Any]:
    """Return a handler that lists `items` under `key`.

    fields: the protocol's name of a field, and the attribute of an item that has its value. A field
        without a value is left out.
    """

    def row_of(item: Any) -> Result:
        row = {}
        for field_name, attribute in fields.items():
            value = getattr(item, attribute)
            has_value = value is not None and value != {}
            if has_value:
                row[field_name] = value
        return row

    async def list_items(ctx: Any, params: Any) -> Result:
        return _FINAL | {key: [row_of(item) for item in items]}

    return list_items


class NoResource(MemorandaError):
    """`uri` is not a resource, and no template matches it."""

    code = "not_found"

    def __init__(self, uri: str, templates: Sequence[Template], resources: Iterable[str] = ()):
        template_uris = [template.uri for template in templates]
        forms = ", ".join([*resources, *template_uris]) or "none"
        super().__init__(f'No resource "{uri}". Resources have the form {forms}.')


def resource_result(
    memory: MemorySession,
    templates: Sequence[Template],
    uri: str,
    resources: Mapping[str, Resource] = {},
) -> Result:
    """Read the resource at `uri` and return the answer to `resources/read`.

    If `resources` has no such resource, the first template that matches `uri` reads it.

    memory: the memory of the caller.
    templates: the templates of addresses, in the order in which they are tried.
    resources: the resources at fixed addresses, by address.

    Raises NoResource if no template matches, and the errors of reading.
    """
    resource = resources.get(uri)
    if resource is not None:
        return _contents(uri, resource.mime, resource.read(memory))

    for template in templates:
        variables = _variables_in(uri, template.uri)
        if variables is not None:
            return _contents(uri, template.mime, template.read(memory, variables))
    raise NoResource(uri, templates, resources)


def _contents(uri: str, mime: str, text: str) -> Result:
    """Return the answer to `resources/read` with the text of a resource."""
    return _FINAL | {"contents": [{"uri": uri, "mimeType": mime, "text": text}]}


def _variables_in(uri: str, template_uri: str) -> dict[str, str] | None:
    """Return the values that the variables of a template have in `uri`. None if it does not match.

    `memory://note/a%20b` and the template `memory://note/{+path}` give `{"path": "a b"}`.

    uri: the address that a client asks for.
    template_uri: an address with variables in braces.
    """
    # RFC 6570: `{name}` is one segment of the path, `{+name}` may contain slashes. A value may have
    # `?` and `#`, because people write the names of their notes unencoded.
    pattern = ""
    end = 0
    for variable in _VARIABLE.finditer(template_uri):
        has_plus, variable_name = variable.groups()
        value_pattern = ".+" if has_plus else "[^/]+"
        pattern += re.escape(template_uri[end : variable.start()])
        pattern += f"(?P<{variable_name}>{value_pattern})"
        end = variable.end()
    pattern += re.escape(template_uri[end:])
    match = re.fullmatch(pattern, uri, re.DOTALL)
    if match is None:
        return None
    return {name: unquote(value) for name, value in match.groupdict().items()}


def _prompt_arguments(prompt: Prompt, sent_arguments: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments for a prompt, without blank ones and those that it does not have.

    sent_arguments: the arguments as the client sent them.

    Raises InvalidInput if a needed argument is missing, or if one is too long.
    """
    known_names = {name for name, _, _ in prompt.arguments}
    arguments = {
        name: value
        for name, value in sent_arguments.items()
        if name in known_names and value.strip()
    }
    check_sizes(arguments)
    for name, _, is_required in prompt.arguments:
        if is_required and name not in arguments:
            raise InvalidInput(f"Argument `{name}` is required for the prompt {prompt.name}.")
    return arguments


class Handlers:
    """The handlers of one server. The SDK calls each with a context and parameters for a result.

    How a client is told of changed resources depends on its protocol version. Up to 2025-11-25, it
    sends `resources/subscribe`, and is told on its connection. In later versions, it opens a stream
    with `subscriptions/listen`, which the SDK serves. To find changes, the versions of all watched
    resources are compared after every call that used the memory.

    registry: the tools, prompts and resources.
    call_queue: the queue in which calls wait for the memory. None means that a subclass runs them.
    identity: the name of the server, and how it finds the agent that calls.
    """

    def __init__(self, registry: Registry, call_queue: CallQueue | None, identity: ServerIdentity):
        self._registry = registry
        self._call_queue = call_queue
        self._identity = identity
        # The version of each watched resource when it was last compared, by URI.
        self._versions: dict[str, Any] = {}
        # The URIs that the client subscribed to on its connection.
        self._subscribed: set[str] = set()
        # The id under which the ledger records the client's session.
        self._session = os.urandom(4).hex()
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)

    def server(self) -> Server[Any]:
        """Make the SDK's server for the tools, prompts and resources of the registry.

        The SDK announces the capabilities that it has handlers for. So a registry without prompts,
        for example, gets no handlers for prompts.
        """
        registry = self._registry
        prompts = registry.prompts
        handlers: dict[str, Any] = {"on_call_tool": self.call}
        handlers["on_list_tools"] = _listing("tools", _TOOL_FIELDS, registry.tools.values())
        if prompts:
            handlers |= {"on_get_prompt": self.prompt, "on_list_prompts": self.list_prompts}
        if registry.templates or registry.resources:
            handlers["on_read_resource"] = self.read
            handlers["on_list_resources"] = _listing(
                "resources", _RESOURCE_FIELDS, registry.resources.values()
            )
            handlers["on_list_resource_templates"] = _listing(
                "resourceTemplates", _TEMPLATE_FIELDS, registry.templates
            )
        if prompts or registry.templates:
            handlers["on_completion"] = self.complete
        # Only clients with a connection can be told about changes.
        if registry.resources and self._call_queue is not None:
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
        # The SDK's own middleware would report calls to a tracer, and only the owner may see them.
        server.middleware[:] = [self._around]
        return server

    async def _around(self, ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        """Answer a request by `call_next`: the middleware around all handlers.

        It lets odd arguments through to the tool, introduces the memory to a client that connects,
        and reports the caller.

        ctx: the context of the request, from the SDK.
        """
        arguments = (ctx.params or {}).get("arguments")
        if ctx.method == "tools/call" and not isinstance(arguments, dict | None):
            # The SDK would refuse arguments that are not an object, but the tool must answer.
            params = {**ctx.params, "arguments": {}, _ORIGINAL_ARGUMENTS: arguments}
            ctx = replace(ctx, params=params)
        try:
            result = await call_next(ctx)
            if ctx.method in _FIRST_REQUESTS:
                result = await self._introduced(ctx, result)
            return result
        finally:
            if self._identity.on_request is not None:
                agent, client_name = self._caller(ctx)
                self._identity.on_request(agent, client_name)

    async def _introduced(self, ctx: Any, result: Result) -> Result:
        """Return the answer to a client's first request, with an introduction to the memory.

        The introduction follows the registry's instructions, which stay unchanged. A client with
        hooks gets none here, since the hooks introduce the memory. A memory that fails or is slow
        does not keep a client from connecting: the introduction is left out.

        ctx: the context of the request, from the SDK.
        result: the answer of the SDK, without the introduction.
        """
        client = self._client(ctx)
        client_name = client.name if client else ""
        may_read = not _READING_TOOLS.isdisjoint(self._registry.tools)
        if not may_read or has_hooks(client_name):
            return result
        introduction = ""
        with anyio.move_on_after(_MAX_INTRODUCTION_SECONDS), suppress(MemorandaError):
            introduction = await self._run_for_caller(ctx, _introduction)
        if not introduction:
            return result
        instructions = result.get("instructions")
        if instructions:
            introduction = f"{instructions}\n\n{introduction}"
        return result | {"instructions": introduction}

    @staticmethod
    def _client(ctx: Any) -> Any:
        """Return the name and version that the client gave. None if it gave none."""
        params = ctx.session.client_params
        # The SDK has them in the session only after it has answered `initialize`.
        if params is None and ctx.method == "initialize":
            params = InitializeRequestParams.model_validate(ctx.params, by_name=False)
        if params:
            return params.client_info
        return None

    def _caller(self, ctx: Any) -> tuple[str, str]:
        """Return the agent who calls, and the client's name as the ledger records it.

        The agent is the one that the server was started for. Without one, the name of the client
        tells it, by the owner's table of clients.
        """
        client = self._client(ctx)
        recorded_client = client_text(client, "mcp")
        agent = self._identity.agent
        if agent:
            return agent, recorded_client
        client_name = client.name if client else ""
        return agent_of(client_name, self._identity.clients), recorded_client

    async def call(self, ctx: Any, params: Any) -> Result:
        """Run a tool. Its errors are results with `isError`; only an unknown tool is MCPError.

        ctx: the context of the request, from the SDK.
        params: the name of the tool, and its arguments.
        """
        if params.name not in self._registry.tools:
            advice = self._registry.instead_of(params.name)
            tool_names = ", ".join(self._registry.tools)
            shown_name = cut(params.name, MOST_NAME_CHARACTERS)
            message = advice or f"Unknown tool: {shown_name}. Tools: {tool_names}."
            raise MCPError(INVALID_PARAMS, message)

        # `_around` has put odd arguments aside, because the SDK would refuse them.
        arguments = ctx.params.get(_ORIGINAL_ARGUMENTS, params.arguments)
        try:
            reply = await self._run_for_caller(
                ctx, lambda memory: self._registry.call(memory, params.name, arguments)
            )
        except MemorandaError as error:
            reply = self._registry.refusal(params.name, error)
        return _tool_result(reply)

    async def list_prompts(self, ctx: Any, params: Any) -> Result:
        """Return all prompts with their arguments.

        ctx, params: from the SDK. Not used, as the list is short and always whole.
        """
        rows: list[Result] = []
        for prompt in self._registry.prompts.values():
            arguments = [
                {"name": name, "description": description, "required": is_required}
                for name, description, is_required in prompt.arguments
            ]
            rows.append(
                {"name": prompt.name, "description": prompt.description, "arguments": arguments}
            )
        return _FINAL | {"prompts": rows}

    async def prompt(self, ctx: Any, params: Any) -> Result:
        """Render a prompt.

        Arguments that the prompt does not have are ignored. A blank argument counts as missing,
        because forms send empty fields as blanks.

        ctx: the context of the request, from the SDK.
        params: the name of the prompt, and its arguments.
        """

        def render(memory: MemorySession) -> Result:
            prompt = self._prompt(params.name)
            arguments = _prompt_arguments(prompt, params.arguments or {})
            text = prompt.render(memory, arguments)
            message = {"role": "user", "content": {"type": "text", "text": text}}
            return _FINAL | {"description": prompt.description, "messages": [message]}

        return await self._answer(ctx, render)

    def _prompt(self, name: str) -> Prompt:
        """Return the prompt of this name. Raises InvalidInput."""
        prompts = self._registry.prompts
        if name not in prompts:
            raise InvalidInput(f'No prompt "{name}". Prompts: {", ".join(prompts) or "none"}.')
        return prompts[name]

    async def read(self, ctx: Any, params: Any) -> Result:
        """Read the resource at the URI of the request.

        ctx: the context of the request, from the SDK.
        params: contains the address of the resource.
        """
        templates = self._registry.templates
        resources = self._registry.resources

        def read_resource(memory: MemorySession) -> Result:
            check_sizes({"uri": params.uri})
            return resource_result(memory, templates, params.uri, resources)

        return await self._answer(ctx, read_resource, uri=params.uri)

    async def complete(self, ctx: Any, params: Any) -> Result:
        """Return values that begin with the typed text, for a variable of a resource template.

        Prompts have no values to offer, but an unknown prompt is an error.

        ctx: the context of the request, from the SDK.
        params: the template or prompt, the variable, and the text typed so far.
        """

        def values_for(memory: MemorySession) -> list[str]:
            """Return the values for the typed text. Empty if the template offers none."""
            if params.ref.type == "ref/prompt":
                # Only to refuse a name that no prompt has.
                self._prompt(params.ref.name)
                return []
            variable = params.argument.name
            template = self._template_with(params.ref.uri, variable)
            if template.complete is None:
                return []
            context_arguments = params.context.arguments if params.context else None
            other_variables = dict(context_arguments or {})
            check_sizes(other_variables | {variable: params.argument.value})
            return template.complete(memory, variable, params.argument.value, other_variables)

        values = await self._answer(ctx, values_for)
        completion = {
            "values": values[:MAX_VALUES],
            "total": len(values),
            "hasMore": len(values) > MAX_VALUES,
        }
        return _FINAL | {"completion": completion}

    def _template_with(self, uri: str, variable: str) -> Template:
        """Return the resource template that is written `uri` and has this variable.

        Raises NoResource, InvalidInput.
        """
        templates_by_uri = {template.uri: template for template in self._registry.templates}
        if uri not in templates_by_uri:
            raise NoResource(uri, self._registry.templates)
        variables = [name for _, name in _VARIABLE.findall(uri)]
        if variable not in variables:
            raise InvalidInput(
                f"{uri} has no variable `{variable}`. Its variables: {', '.join(variables)}."
            )
        return templates_by_uri[uri]

    async def subscribe(self, ctx: Any, params: Any) -> Result:
        """Report later changes of a resource on the client's connection.

        ctx: the context of the request, from the SDK.
        params: contains the address of the resource.
        """

        def begin(memory: MemorySession) -> Result:
            """Watch the resource. Raises NoResource."""
            if params.uri not in self._registry.resources:
                raise NoResource(params.uri, (), self._registry.resources)
            self._subscribed.add(params.uri)
            return self._watch(memory, [params.uri])

        return await self._answer(ctx, begin, uri=params.uri)

    async def unsubscribe(self, ctx: Any, params: Any) -> Result:
        """Stop reporting changes of a resource on the client's connection.

        ctx: the context of the request, from the SDK.
        params: contains the address of the resource.
        """
        self._subscribed.discard(params.uri)
        return {}

    async def listen_to(self, ctx: Any, params: Any) -> Any:
        """Open a stream that reports changes of the resources that the request names.

        ctx: the context of the request, from the SDK.
        params: contains the addresses of the resources.
        """
        uris = params.notifications.resource_subscriptions or ()
        await self._answer(ctx, lambda memory: self._watch(memory, uris))
        return await self.listen(ctx, params)

    def _watch(self, memory: MemorySession, uris: Iterable[str]) -> Result:
        """Begin to compare the versions of these resources, if they exist.

        uris: the addresses of the resources.
        """
        resources = self._registry.resources
        self._versions |= {uri: resources[uri].version(memory) for uri in uris if uri in resources}
        return {}

    async def _answer(self, ctx: Any, call: Callable[[MemorySession], T], **data: str) -> T:
        """Return the result of `call`. Its MemorandaError becomes an MCPError.

        ctx: the context of the request, from the SDK.
        call: gets the memory of the caller.
        data: facts for the client that the MCPError has, too.
        """
        try:
            return await self._run_for_caller(ctx, call)
        except MemorandaError as error:
            is_of_caller = error.code in _CALLER_ERROR_CODES
            code = INVALID_PARAMS if is_of_caller else INTERNAL_ERROR
            shown_data = {key: cut(value, _MAX_ERROR_CHARACTERS) for key, value in data.items()}
            message = cut(str(error), _MAX_ERROR_CHARACTERS)
            raise MCPError(code, message, shown_data or None) from None

    def _changed_resources(self, memory: MemorySession) -> list[str]:
        """Return the watched resources that have another version than at the last call."""
        old_versions = self._versions
        self._versions = {
            uri: self._registry.resources[uri].version(memory) for uri in old_versions
        }
        return [uri for uri, version in self._versions.items() if version != old_versions[uri]]

    async def _run_for_caller(self, ctx: Any, call: Callable[[MemorySession], T]) -> T:
        """Run `call` with the memory of the caller, and tell subscribers which resources changed.

        ctx: the context of the request, from the SDK.
        """
        agent, client_name = self._caller(ctx)

        def run_and_compare(memory: MemorySession) -> tuple[T, list[str]]:
            """Return the result of the call, and the resources that have changed since the last."""
            caller_memory = memory.as_caller(
                agent, "mcp", client=client_name, session=self._session
            )
            call_result = call(caller_memory)
            return call_result, self._changed_resources(caller_memory)

        # Only a subclass that replaces this method has no queue.
        assert self._call_queue is not None
        result, changed_uris = await self._call_queue.run(run_and_compare)
        # Older clients are told on their connection, newer ones by the stream they opened.
        for uri in changed_uris:
            if uri in self._subscribed:
                await ctx.session.send_resource_updated(uri)
            await self._bus.publish(ResourceUpdated(uri))
        return result
