"""Tools, prompts and resources as a server offers them, and how a call is carried out.

A call on any transport goes through `Registry.call`. It calls the before-hooks, checks the
arguments by the tool's contract, runs the tool, and calls the after-hooks. A tool is a value: its
`run` gets the caller's session and the arguments, and returns a reply.

A hook (contract 001, 14) is any object with some of `before_tool_call(ctx, name, params) -> bool`
(False blocks), `after_tool_call(ctx, name, params, result) -> result | None` and `on_event(event)`.
Hooks come from the Python API or from entry points of the group `memoranda.hooks`.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from memoranda.clock import Clock, now, stamp
from memoranda.engine.telling.served import record_call
from memoranda.errors import AgentPaused, ConfigError, InvalidInput, MemorandaError
from memoranda.faces.arguments import Also, Arguments, check
from memoranda.faces.reply import Reply, error_reply, plain_error_reply, refused
from memoranda.faces.sizes import check_sizes
from memoranda.faces.texts import text_file
from memoranda.text.fence import cut

if TYPE_CHECKING:
    from memoranda.engine import MemorySession


_log = logging.getLogger("memoranda.hooks")


Run = Callable[["MemorySession", Arguments], Reply]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as clients see it.

    The fields `name`, `description`, `title`, `annotations` and `output_schema` are as MCP has them.

    schema: the JSON schema of its arguments.
    run: carries out a call.
    contract: the contract by which arguments are checked before `run` gets them (a key of
        texts/contracts.json). None means that they are not checked.
    accepts: the schema that arguments are checked against. None means `schema`.
    also: further accepted names of arguments, each with the parameter that it means.
    rewrite: turns arguments of older clients into arguments of the schema, before the check. It
        gets a copy of them.
    refuse: makes the reply to arguments that do not fit.
    shares_commit: whether a call makes one change of files and nothing else. Such calls may wait
        for the disk together.
    is_for_admins: whether it changes projects or settings that other callers use.
    is_wide: whether it answers from many projects. Its answer may then lack the notes of a project
        that cannot be read.
    """

    name: str
    description: str
    schema: dict[str, Any]
    run: Run
    title: str | None = None
    annotations: Mapping[str, bool] = field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    contract: str | None = "notes"
    accepts: dict[str, Any] | None = None
    also: Also = field(default_factory=dict)
    rewrite: Callable[[Arguments], Arguments] | None = None
    refuse: Callable[[InvalidInput], Reply] = error_reply
    shares_commit: bool = False
    is_for_admins: bool = False
    is_wide: bool = False


# A reply repeats at most this many characters of a tool's name.
_MOST_SHOWN_CHARACTERS = 100
# The keys of a declaration that are fields of `Tool` with the same name.
_FLAGS = ("shares_commit", "is_for_admins", "is_wide")


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without `additionalProperties`, at any depth.

    Gemini's field `parameters` accepts only a part of OpenAPI's schemas. If one schema has this
    keyword, Gemini refuses all tools of the client.
    """
    plain = dict(schema)
    plain.pop("additionalProperties", None)
    properties = plain.get("properties")
    if isinstance(properties, dict):
        plain["properties"] = {name: plain_schema(value) for name, value in properties.items()}
    if isinstance(plain.get("items"), dict):
        plain["items"] = plain_schema(plain["items"])
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in plain:
            plain[keyword] = [plain_schema(value) for value in plain[keyword]]
    return plain


def declarations(file: str) -> list[dict[str, Any]]:
    """Return the declarations of a toolset's tools in serving order.

    file: a JSON file of texts/. It is a list of declarations, an object with the list as `tools`,
        or the declaration of a single tool.
    """
    data = json.loads(text_file(file))
    if isinstance(data, dict):
        rows: list[dict[str, Any]] = data.get("tools", [data])
        return rows
    return list(data)


def flags_of(declaration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags of Tool that a declaration in JSON sets: `{"shares_commit": True}`.

    Flags that the declaration leaves out are left out here, too.

    declaration: the object that declares one tool in a file of texts/.
    """
    return {name: declaration[name] for name in _FLAGS if name in declaration}


def function_of(name: str, *modules: ModuleType) -> Callable[..., Any]:
    """Return the function that has the name of a tool in the first of these modules.

    A function whose name Python already uses ends in `_`: the tool `list` is the function `list_`.
    Raises LookupError if no module has it.
    """
    for module in modules:
        for spelling in (name, f"{name}_"):
            function = vars(module).get(spelling)
            if callable(function):
                return cast("Callable[..., Any]", function)
    places = " or ".join(module.__name__ for module in modules)
    raise LookupError(f"the tool {name} is declared, and {places} has no function of that name")


def declared_tools(
    file: str, run: Callable[[str], Run], also: Also | None = None, **options: Any
) -> list[Tool]:
    """Make the tools that a JSON file declares, in its order.

    file: the JSON file of texts/ with the declarations.
    run: returns the function of a tool by its name.
    also: further names of arguments that all tools accept, each with the parameter that it means.
        None for none.
    options: other fields of all the tools.
    """
    return [
        Tool(
            name=row["name"],
            description=row["description"],
            schema=row["inputSchema"],
            run=run(row["name"]),
            annotations=row["annotations"],
            also={**(also or {}), **row.get("also", {})},
            **flags_of(row),
            **options,
        )
        for row in declarations(file)
    ]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as clients see it.

    render: makes the text of the user's message of the prompt's arguments.
    arguments: the name, the description and whether it is required, of each argument.
    """

    name: str
    description: str
    render: Callable[[MemorySession, dict[str, str]], str]
    arguments: Sequence[tuple[str, str, bool]] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """A resource template as clients see it.

    uri: the address with variables, such as `memory://{path}`.
    name: the name in MCP.
    description: the description in MCP.
    mime: the type of the contents, such as `text/markdown`.
    read: returns the resource with the variables of its address, e.g. `{"path": "a.md"}`.
    complete: returns values for a variable. It gets the name of the variable, the beginning of its
        value, and the variables that already have a value.
    """

    uri: str
    name: str
    description: str
    mime: str
    read: Callable[[MemorySession, dict[str, str]], str]
    complete: Callable[[MemorySession, str, str, dict[str, str]], list[str]] | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource at a fixed address.

    uri: the address.
    name: the name in MCP.
    title: the title in MCP.
    description: the description in MCP.
    mime: the type of the contents, such as `application/json`.
    read: returns the text of the resource.
    version: returns a value that changes when the contents of the resource change.
    """

    uri: str
    name: str
    title: str
    description: str
    mime: str
    read: Callable[[MemorySession], str]
    version: Callable[[MemorySession], Any]


@dataclass(frozen=True, slots=True)
class Toolset:
    """The tools of one face, and the instructions that its server gives to the model.

    name: the name, such as `notes`.
    tools: the tools that it offers.
    prompts: the prompts that it offers.
    templates: the resource templates that it offers.
    resources: the resources at fixed addresses that it offers.
    instructions: sentences for the model.
    closing: instructions to put after the instructions of all toolsets.
    former: tools of another program that are missing here -> the tools to use instead.
    """

    name: str
    tools: Sequence[Tool]
    instructions: str = ""
    closing: str = ""
    prompts: Sequence[Prompt] = ()
    templates: Sequence[Template] = ()
    resources: Sequence[Resource] = ()
    former: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class HookContext:
    """The caller of a tool: the identity of an agent, or None for the owner of the memory."""

    agent: str | None


@dataclass(slots=True)
class Event:
    """Something that happened while a caller was connected.

    type: agent_start, agent_end, tool_start, tool_end or error.
    timestamp: ISO 8601 in UTC.
    tool_name: the tool. None if the event is about no tool.
    data: the arguments of a tool_start, or the reply of a tool_end. None for other types.
    error: the message of an error. None for other types.
    """

    type: str
    timestamp: str
    tool_name: str | None = None
    data: Any = None
    error: str | None = None


@dataclass(slots=True)
class Subscription:
    """The events that one subscriber has not taken yet, oldest first.

    At most 64 events wait: a new one then pushes out the oldest.
    """

    waiting: deque[Event] = field(default_factory=lambda: deque(maxlen=64))

    def drain(self) -> list[Event]:
        """Take all waiting events, oldest first."""
        events = list(self.waiting)
        self.waiting.clear()
        return events


class Hooks:
    """The hooks and subscribers of one registry."""

    def __init__(self, hooks: Iterable[Any] = (), clock: Clock = now):
        self._hooks = list(hooks)
        self._clock = clock
        self._subscriptions: list[Subscription] = []

    @classmethod
    def configured(cls, more_hooks: Iterable[Any] = (), clock: Clock = now) -> Hooks:
        """Make the hooks of the entry points `memoranda.hooks`, then `more_hooks`.

        Raises ConfigError for an entry point that cannot be loaded.
        """
        from importlib.metadata import entry_points

        hooks = []
        for entry_point in entry_points(group="memoranda.hooks"):
            try:
                hooks.append(entry_point.load()())
            except Exception as error:
                # Foreign code. Without the hook, calls that it should block would go through.
                raise ConfigError(
                    f'the hooks "{entry_point.name}" ({entry_point.value}) cannot be loaded: {error}'
                ) from error
        return cls([*hooks, *more_hooks], clock)

    def subscribe(self) -> Subscription:
        """Return a subscription that receives every event from now on."""
        subscription = Subscription()
        self._subscriptions.append(subscription)
        return subscription

    @contextmanager
    def session(self):
        """Send agent_start to hooks and subscribers now, and agent_end at the end of the block."""
        self._emit("agent_start")
        try:
            yield self
        finally:
            self._emit("agent_end")

    def call(
        self, agent: str | None, name: str, arguments: Any, run: Callable[[Any], Reply]
    ) -> Reply:
        """Return the reply of `run(arguments)`, with hooks called and events sent around it.

        A before-hook that returns False or fails blocks the call. An after-hook may replace the
        reply.

        agent: the agent that calls the tool. None means the owner of the memory.
        """
        if not self._hooks and not self._subscriptions:
            return run(arguments)
        context = HookContext(agent)
        self._emit("tool_start", name, arguments)
        if self._is_allowed(context, name, arguments):
            reply = self._reply_after_hooks(context, name, arguments, run(arguments))
        else:
            reply = refused(f"tool {name} blocked by before_tool_call hook", "blocked")
        if reply.is_error:
            self._emit("error", name, error=reply.text)
        else:
            self._emit("tool_end", name, reply)
        return reply

    def _is_allowed(self, context: HookContext, name: str, arguments: Any) -> bool:
        """Ask the before-hooks, until one blocks the call. Foreign code that fails blocks it, too."""
        for hook in self._hooks_having("before_tool_call"):
            try:
                is_allowed = bool(hook.before_tool_call(context, name, arguments))
            except Exception as error:
                _warn("before_tool_call", hook, error)
                return False
            if not is_allowed:
                return False
        return True

    def _reply_after_hooks(
        self, context: HookContext, name: str, arguments: Any, reply: Reply
    ) -> Reply:
        """Return a reply as the after-hooks change it, each the reply of the one before.

        A hook that fails, or returns something else than a Reply or None, changes nothing.
        """
        for hook in self._hooks_having("after_tool_call"):
            try:
                new_reply = hook.after_tool_call(context, name, arguments, reply)
                if new_reply is not None and not isinstance(new_reply, Reply):
                    type_name = type(new_reply).__name__
                    raise TypeError(f"it returned a {type_name}, not a Reply or None")
                reply = new_reply or reply
            except Exception as error:
                # A hook is foreign code; it may not break the call.
                _warn("after_tool_call", hook, error)
        return reply

    def _hooks_having(self, method: str) -> list[Any]:
        """Return the hooks that have this method, in order."""
        return [hook for hook in self._hooks if hasattr(hook, method)]

    def _emit(
        self, kind: str, tool: str | None = None, data: Any = None, error: str | None = None
    ) -> None:
        """Send an event to all subscribers, and to all hooks with `on_event`."""
        event = Event(
            type=kind,
            timestamp=stamp(self._clock()),
            tool_name=tool,
            data=data,
            error=error,
        )
        for subscription in self._subscriptions:
            subscription.waiting.append(event)
        for hook in self._hooks_having("on_event"):
            try:
                hook.on_event(event)
            except Exception as failure:
                # Foreign code again.
                _warn("on_event", hook, failure)


def _warn(method: str, hook: Any, error: Exception) -> None:
    """Log that a method of a hook failed."""
    _log.warning("%s of %s failed: %s", method, type(hook).__name__, error)


class Registry:
    """The toolsets that one server offers. Raises InvalidInput if two tools have the same name."""

    def __init__(self, toolsets: Iterable[Toolset], hooks: Hooks | None = None):
        self.toolsets = list(toolsets)
        self.hooks = hooks or Hooks()
        self.tools: dict[str, Tool] = {}
        self.prompts: dict[str, Prompt] = {}
        """All prompts by name. Prompts of two toolsets with the same name are equal."""
        self.templates: list[Template] = []
        self.resources: dict[str, Resource] = {}
        """All resources by address."""
        for toolset in self.toolsets:
            for tool in toolset.tools:
                if tool.name in self.tools:
                    raise InvalidInput(
                        f'Two toolsets have a tool "{tool.name}". '
                        "Load them one at a time with --tools."
                    )
                self.tools[tool.name] = tool
            for prompt in toolset.prompts:
                self.prompts[prompt.name] = prompt
            for resource in toolset.resources:
                self.resources[resource.uri] = resource
            self.templates += toolset.templates

    @property
    def instructions(self) -> str:
        """Return the instructions for the model, toolset by toolset.

        The closing sentences of all toolsets, which the owner wrote, come last.
        """
        texts = [toolset.instructions for toolset in self.toolsets]
        texts += [toolset.closing for toolset in self.toolsets]
        return "\n\n".join(text.strip() for text in texts if text.strip())

    def with_plain_schemas(self) -> Registry:
        """Return a registry whose tools publish schemas that Gemini accepts.

        Arguments are still checked against the full schemas.
        """
        toolsets = []
        for toolset in self.toolsets:
            tools = [_with_plain_schema(tool) for tool in toolset.tools]
            toolsets.append(replace(toolset, tools=tools))
        return Registry(toolsets, self.hooks)

    def call(self, memory: MemorySession, name: str, arguments: Any) -> Reply:
        """Run the tool `name` for the caller that `memory` is bound to.

        A MemorandaError becomes an error reply. Raises KeyError if the tool does not exist.
        """
        if arguments is None:
            arguments = {}
        run_tool = partial(self._run, memory, self.tools[name])
        return self.hooks.call(memory.agent, name, arguments, run_tool)

    def instead_of(self, name: str) -> str:
        """Return a sentence that names the tool to use instead of another program's tool.

        "" if no toolset knows the other program's tool.
        """
        for toolset in self.toolsets:
            if name in toolset.former:
                return f"{name} is not served here. Use {toolset.former[name]}."
        return ""

    def missing(self, name: str) -> Reply:
        """Return the reply to a call of a tool that is not served."""
        shown_name = cut(name, _MOST_SHOWN_CHARACTERS)
        return refused(self.instead_of(name) or f"tool not found: {shown_name}", "not_found")

    def refusal(self, name: str, error: MemorandaError) -> Reply:
        """Return the reply for an error that came up before the tool `name` ran."""
        tool = self.tools.get(name)
        if tool is None or tool.contract == "notes":
            return error_reply(error)
        return plain_error_reply(error)

    def _with_usable_advice(self, reply: Reply) -> Reply:
        """Reword the advice of an error reply if it names a tool that is not served."""
        if reply.advice is not None:
            serves_its_tools = self.tools.keys() >= set(reply.advice.tools)
            if not serves_its_tools:
                reply.reword_advice()
        return reply

    def _run(self, memory: MemorySession, tool: Tool, arguments: Any) -> Reply:
        """Check the arguments and run the tool. Errors become replies."""
        try:
            memory.check_not_paused()
        except AgentPaused as error:
            return self.refusal(tool.name, error)
        try:
            arguments = _checked(tool, arguments)
        except InvalidInput as error:
            return self._with_usable_advice(tool.refuse(error))
        caller = memory.using(tool.name)
        try:
            # A call that takes its turn may be run again, with the whole arguments, since `run` may
            # remove those it used.
            if tool.shares_commit:
                reply = caller.in_turn(lambda: tool.run(caller, dict(arguments)))
            else:
                reply = tool.run(caller, arguments)
        except MemorandaError as error:
            reply = error_reply(error)
        if reply.is_error:
            return self._with_usable_advice(reply)
        if isinstance(arguments, dict):
            record_call(caller, tool.name, arguments)
        return reply


def _with_plain_schema(tool: Tool) -> Tool:
    """Return a tool that publishes a schema that Gemini accepts, and still checks the full one."""
    return replace(tool, schema=plain_schema(tool.schema), accepts=tool.accepts or tool.schema)


def _checked(tool: Tool, arguments: Any) -> Any:
    """Return the arguments of a call as the tool takes them. Raises InvalidInput for wrong ones.

    A tool without a contract checks them itself, except for their size.
    """
    check_sizes(arguments)
    if tool.contract is None:
        return arguments
    if tool.rewrite and isinstance(arguments, dict):
        arguments = tool.rewrite(dict(arguments))
    schema = tool.accepts or tool.schema
    arguments = check(arguments, schema, tool.contract, tool.name, tool.also)
    # Check sizes again: a text may have become a list.
    check_sizes(arguments)
    return arguments
