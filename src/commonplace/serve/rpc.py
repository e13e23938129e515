"""The daemon's protocol: one JSON object a line each way (contract 001, 13)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from commonplace.faces.agent.session import call_tool, ends_batch, parse_json, result_data, tool_list
from commonplace.serve.turns import InternalError

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.tool import Registry

Method = Callable[["Memory", dict[str, Any]], Any]
Methods = Mapping[str, Method]
"""What the socket answers besides tools: functions of the caller's memory and the request's `params`, by method."""

LIMIT = 1 << 20
"""Bytes a request may have, its line break apart."""

_NOT_JSON, _NO_REQUEST, _NO_TOOL, _BAD_PARAMS, _TOOL_ERROR = -32700, -32600, -32601, -32602, -32000
_SAID = 100
"""Characters that count of what a client calls itself and its session."""
_FLAT = ("name", "params", "arguments")
_log = logging.getLogger("commonplace.serve")


class _Refused(Exception):
    """A request that cannot be carried out: its JSON-RPC `code`, and the text for everybody."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


class Protocol:
    """Answers requests with the tools of `registry`, as the callers they name (None: the owner of `memory`), and
    with the further `methods`."""

    def __init__(self, memory: Memory, registry: Registry, methods: Methods | None = None):
        self._memory = memory
        self._registry = registry
        self._methods = methods or {}

    def answer(self, line: bytes) -> bytes:
        """The reply to one line, with its line break. Never raises for what a client sent."""
        try:
            request = parse_json(line)
        except (ValueError, RecursionError) as error:
            return _error(_Refused(_NOT_JSON, f"parse error: {error}"), None, b'"jsonrpc"' in line)
        if not isinstance(request, dict):
            requests = request if isinstance(request, list) else []
            is_batch = any(isinstance(each, dict) and "jsonrpc" in each for each in requests)
            text = "batches are not supported" if is_batch else "not an object"
            return _error(_Refused(_NO_REQUEST, f"parse error: {text}"), None, is_batch)
        is_rpc, identity = request.get("jsonrpc") == "2.0", request.get("id", 0)
        try:
            if isinstance(identity, bool) or not isinstance(identity, int | float | str | None):
                identity = None
                raise _Refused(_NO_REQUEST, "parse error: id must be a number, a string or null")
            found = self._found(request)
        except _Refused as error:
            return _error(error, identity, is_rpc)
        except Exception:  # the outermost loop of this transport: reported, and the connection lives
            _log.exception("A call failed")
            return _error(_Refused(_TOOL_ERROR, str(InternalError())), identity, is_rpc)
        return _line({"jsonrpc": "2.0"} if is_rpc else {}, id=identity, result=found)

    def _found(self, request: dict[str, Any]) -> Any:
        """The result of a request. Raises _Refused."""
        method, params = request.get("method", ""), request.get("params")
        if not isinstance(method, str):
            raise _Refused(_NO_REQUEST, "parse error: method must be a string")
        if params is not None and not isinstance(params, dict):
            raise _Refused(_BAD_PARAMS, "params must be an object")
        memory = self._caller(request.get("agent"), request.get("client"), request.get("session"))
        if method == "tools/list":
            return tool_list(self._registry)
        if method in self._methods:
            return self._methods[method](memory, params or {})
        name, arguments = method, params or {}
        if method == "tools/call":  # the arguments are in `params`, in `arguments`, or flat beside `name`
            name = arguments.get("name", "")
            if not isinstance(name, str):
                raise _Refused(_BAD_PARAMS, "name must be a string")
            key = next((each for each in _FLAT[1:] if arguments.get(each) is not None), None)
            if key is not None and not isinstance(arguments[key], dict):
                raise _Refused(_BAD_PARAMS, f"{key} must be an object")
            flat = {each: value for each, value in arguments.items() if each not in _FLAT}
            arguments = arguments[key] if key is not None else flat
        reply = call_tool(self._registry, memory, name, arguments)
        if not ends_batch(reply):
            return result_data(reply)
        raise _Refused(_TOOL_ERROR if name in self._registry.tools else _NO_TOOL, reply.text)

    def _caller(self, agent: Any, client: Any, session: Any) -> Memory:
        given = {"client": client, "session": session}
        by = {key: value[:_SAID] for key, value in given.items() if isinstance(value, str) and value.isprintable()}
        if agent is None:
            return self._memory.as_caller(self._memory.agent, **by) if by else self._memory
        from commonplace.engine.writing import is_agent

        if self._memory.agent is not None and str(agent).lower() != self._memory.agent:
            raise _Refused(_BAD_PARAMS, f'this daemon serves agent "{self._memory.agent}" alone')
        if not isinstance(agent, str) or not is_agent(agent):
            raise _Refused(_BAD_PARAMS, f'invalid agent "{agent}"')
        return self._memory.as_caller(agent, **by)


def too_large() -> bytes:
    """The reply to a line beyond LIMIT."""
    return _error(_Refused(_NO_REQUEST, f"request too large (limit {LIMIT} bytes)"), None, False)


def _error(error: _Refused, identity: Any, is_rpc: bool) -> bytes:
    """The reply with an error; if its request cannot be identified, the id is 0, in JSON-RPC null."""
    if is_rpc:
        return _line({"jsonrpc": "2.0"}, id=identity, error={"code": error.code, "message": str(error)})
    if identity is None and error.code in (_NOT_JSON, _NO_REQUEST):
        identity = 0
    return _line({}, id=identity, error=str(error))


def _line(head: dict[str, Any], **reply: Any) -> bytes:
    text = json.dumps(head | reply, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"
