"""One registry for every face: tools, prompts, resource templates, and the way a call takes.

A call on any transport passes `Registry.call`: arguments checked in the way of the tool's contract,
before-hooks, the tool, after-hooks, events. A tool is a value; its `run` gets the engine bound to the
caller and words the reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.faces.hooks import Hooks
from commonplace.faces.reply import Reply
from commonplace.text.unicode import is_valid_unicode

if TYPE_CHECKING:
    from commonplace.engine import Memory

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as clients see it.

    `unknown` says what happens to parameters the schema does not have: `refuse`, `drop`, or `own` when
    the tool checks everything itself. `also` maps accepted names outside the schema to the parameter
    they stand for (None = ignored) or to a schema of their own. `rewrite` turns arguments of older clients
    into those of the schema, before any check; it gets a copy.
    """

    name: str
    description: str
    schema: dict[str, Any]
    run: Callable[[Memory, Arguments], Reply]
    title: str | None = None
    annotations: Mapping[str, bool] = field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    unknown: str = "refuse"
    also: Mapping[str, str | dict[str, Any] | None] = field(default_factory=dict)
    rewrite: Callable[[Arguments], Arguments] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: `arguments` are (name, description, required); `render` gives the user message's text."""

    name: str
    description: str
    render: Callable[[Memory, dict[str, str]], str]
    arguments: Sequence[tuple[str, str, bool]] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """A resource template: `read` gets the URI's variables; `complete` (variable, beginning, others) -> values."""

    uri: str
    name: str
    description: str
    mime: str
    read: Callable[[Memory, dict[str, str]], str]
    complete: Callable[[Memory, str, str, dict[str, str]], list[str]] | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource with an address of its own. `version` gives a value that differs once what it reads changed."""

    uri: str
    name: str
    title: str
    description: str
    mime: str
    read: Callable[[Memory], str]
    version: Callable[[Memory], Any]


@dataclass(frozen=True, slots=True)
class Toolset:
    """The tools of one face, and what its server tells the model; `closing` comes after all instructions."""

    name: str
    tools: Sequence[Tool]
    instructions: str = ""
    closing: str = ""
    prompts: Sequence[Prompt] = ()
    templates: Sequence[Template] = ()
    resources: Sequence[Resource] = ()


class Registry:
    """The toolsets one server offers. Raises InvalidInput when two tools share a name."""

    def __init__(self, toolsets: Iterable[Toolset], hooks: Hooks | None = None):
        self.toolsets = list(toolsets)
        self.hooks = hooks or Hooks()
        self.tools: dict[str, Tool] = {}
        for toolset in self.toolsets:
            for tool in toolset.tools:
                if tool.name in self.tools:
                    raise InvalidInput(f'Two toolsets have a tool "{tool.name}". Load them one at a time with --tools.')
                self.tools[tool.name] = tool

    @property
    def prompts(self) -> dict[str, Prompt]:
        """All prompts by name; one that two toolsets share is the same."""
        return {prompt.name: prompt for toolset in self.toolsets for prompt in toolset.prompts}

    @property
    def templates(self) -> list[Template]:
        """All resource templates."""
        return [template for toolset in self.toolsets for template in toolset.templates]

    @property
    def resources(self) -> dict[str, Resource]:
        """All resources by address."""
        return {each.uri: each for toolset in self.toolsets for each in toolset.resources}

    @property
    def instructions(self) -> str:
        """What the server tells the model, toolset by toolset; the owner's sentences come last."""
        told = [each.instructions for each in self.toolsets] + [each.closing for each in self.toolsets]
        return "\n\n".join(text.strip() for text in told if text.strip())

    def call(self, memory: Memory, name: str, arguments: Any) -> Reply:
        """Run tool `name` for the caller `memory` is bound to. Errors of our tree become error replies.

        Raises KeyError when there is no such tool.
        """
        tool = self.tools[name]
        run = self.hooks.around(memory.agent, name, lambda given: self._run(memory, tool, given))
        return run(arguments if arguments is not None else {})

    def refusal(self, name: str, error: CommonplaceError) -> Reply:
        """The reply of tool `name` when its call could not even begin, in the form of its contract."""
        tool = self.tools.get(name)
        if tool is not None and tool.unknown == "own":
            return Reply(str(error), {"error": str(error), "is_error": True}, is_error=True)
        return error_reply(error)

    def _run(self, memory: Memory, tool: Tool, arguments: Any) -> Reply:
        try:
            return tool.run(memory, checked(tool, arguments))
        except CommonplaceError as error:
            return error_reply(error)


def error_reply(error: CommonplaceError, **more: Any) -> Reply:
    """The reply for an error of our tree: contract 000b, 8."""
    data: dict[str, Any] = {"error": str(error), "is_error": True, "code": error.code}
    for key in ("suggestions", "candidates"):
        if hasattr(error, key):
            data[key] = getattr(error, key)
    return Reply(str(error), data | more, is_error=True)


_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "array": (list,), "object": (dict,),
}  # fmt: skip
_WORDS = {
    "string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "array": "a list", "object": "an object",
}  # fmt: skip


def checked(tool: Tool, arguments: Any) -> Arguments:
    """`arguments` in the shape the tool's schema says, or InvalidInput naming the parameter.

    Tolerated as clients send them: null = absent, numbers and booleans as text, lists as JSON text or
    separated by commas, objects as JSON text.
    """
    if tool.unknown == "own":
        return arguments
    if not isinstance(arguments, dict):
        raise InvalidInput(f"The arguments of {tool.name} must be an object.")
    if tool.rewrite:
        arguments = tool.rewrite(dict(arguments))
    properties, accepted = tool.schema.get("properties", {}), {}
    for name, value in arguments.items():
        target, schema = name, properties.get(name)
        if schema is None and name in tool.also:
            other = tool.also[name]
            if other is None:
                continue
            target, schema = (other, properties[other]) if isinstance(other, str) else (name, other)
        if schema is None:
            if tool.unknown == "drop":
                continue
            known = ", ".join(properties) or "none"
            raise InvalidInput(f"Unknown parameter `{name[:80]}` for {tool.name}. Its parameters: {known}.")
        if value is not None and (target == name or arguments.get(target) is None):
            accepted[target] = _coerced(name, value, schema)
    for name in tool.schema.get("required", ()):
        if name not in accepted:
            raise InvalidInput(f"Parameter `{name}` is required for {tool.name}.")
    for name, schema in properties.items():
        if name not in accepted and "default" in schema:
            accepted[name] = schema["default"]
    return accepted


def _coerced(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if kind is None:
        return value
    value = _from_text(value, kind)
    good = isinstance(value, _KINDS[kind]) and not (kind in ("integer", "number") and isinstance(value, bool))
    if not good:
        raise InvalidInput(f"Parameter `{name}` must be {_WORDS[kind]}; got {_shown(value)}.")
    if "enum" in schema and value not in schema["enum"]:
        raise InvalidInput(f"Parameter `{name}` must be one of {', '.join(schema['enum'])}; got {_shown(value)}.")
    if kind == "array" and schema.get("items", {}).get("type") == "string":
        for each in value:
            if not isinstance(each, str):
                raise InvalidInput(f"Parameter `{name}` must be a list of texts; it holds {_shown(each)}.")
    if _has_surrogate(value):
        raise InvalidInput(f"Parameter `{name}` must be valid Unicode text; it holds a lone surrogate.")
    return value


def _from_text(value: Any, kind: str) -> Any:
    """What a client meant that sends a number, list or object as text; the value itself when it did not."""
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    if not isinstance(value, str) or kind == "string":
        return value
    text = value.strip()
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "array" and not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def _has_surrogate(value: Any) -> bool:
    if isinstance(value, str):
        return not is_valid_unicode(value)
    if isinstance(value, dict):
        return any(_has_surrogate(each) for pair in value.items() for each in pair)
    return isinstance(value, list) and any(map(_has_surrogate, value))
