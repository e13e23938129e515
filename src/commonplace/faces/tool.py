"""One registry for every face: tools, prompts, resource templates, and the way a call takes.

A call on any transport passes `Registry.call`: arguments checked in the way of the tool's contract,
before-hooks, the tool, after-hooks, events. A tool is a value; its `run` gets the engine bound to the
caller and words the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.faces.arguments import Also, Arguments, check
from commonplace.faces.hooks import Hooks
from commonplace.faces.reply import Reply, error_reply, plain_error_reply
from commonplace.faces.texts import text_file

if TYPE_CHECKING:
    from commonplace.engine import Memory


_TOOL = re.compile(r"[a-z]+(?:_[a-z]+)+")  # a tool's name in a sentence of advice, which names nothing else so written


_IN_TURN = frozenset((
    "write_note", "edit_note", "memory_write", "memory_tag", "memory_remember", "memory_create_entities",
    "memory_create_relations", "memory_add_observations", "create_entities", "create_relations", "add_observations",
))  # fmt: skip
"""The tools whose calls wait for the disk together: each makes one change, of files, and nothing but that."""


Run = Callable[["Memory", Arguments], Reply]


@cache
def _advice() -> dict[str, str]:
    """What errors of the engine advise -> what is said where a tool named there is not served."""
    return dict(json.loads(text_file("advice.json")))


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as clients see it.

    `contract` says how arguments are checked before `run` gets them (faces/arguments.py), None that they are not;
    `accepts` is the schema they are checked against where it is not the published one, `also` is as for `check`.
    `rewrite` turns arguments of older clients into those of the schema, before the check; it gets a copy.
    `refuse` words the reply to arguments that do not fit.
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


def declared(file: str, run: Callable[[str], Run], also: Also | None = None, **options: Any) -> list[Tool]:
    """The tools of a JSON file of texts/, in its order; `run` gives the function of each by its name."""
    return [
        Tool(
            each["name"], each["description"], each["inputSchema"], run(each["name"]),
            annotations=each["annotations"], also={**(also or {}), **each.get("also", {})}, **options,
        ) for each in json.loads(text_file(file))
    ]  # fmt: skip


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
        """Run tool `name` for the caller `memory` is bound to. Errors of our tree become error replies. Raises KeyError
        when there is no such tool."""
        tool = self.tools[name]
        given = {} if arguments is None else arguments
        return self.hooks.call(memory.agent, name, given, lambda given: self._advised(self._run(memory, tool, given)))

    def refusal(self, name: str, error: CommonplaceError) -> Reply:
        """The reply of tool `name` when its call could not even begin, in the form of its contract."""
        tool = self.tools.get(name)
        return error_reply(error) if tool is None or tool.contract == "notes" else plain_error_reply(error)

    def _advised(self, reply: Reply) -> Reply:
        """The reply; an error's advice to use a tool that is not served is reworded by texts/advice.json."""
        for sentence, instead in _advice().items() if reply.is_error else ():
            if sentence in reply.text and not self.tools.keys() >= set(_TOOL.findall(sentence)):
                reply.text = reply.text.replace(sentence, instead)
                if reply.data and "error" in reply.data:
                    reply.data["error"] = reply.data["error"].replace(sentence, instead)
        return reply

    def _run(self, memory: Memory, tool: Tool, arguments: Any) -> Reply:
        if tool.contract is not None:
            if tool.rewrite and isinstance(arguments, dict):
                arguments = tool.rewrite(dict(arguments))
            try:
                arguments = check(arguments, tool.accepts or tool.schema, tool.contract, tool.name, tool.also)
            except InvalidInput as error:
                return tool.refuse(error)
        caller = memory.using(tool.name)
        try:
            if tool.name in _IN_TURN:  # each time with arguments of its own: `run` may take out what it used
                return caller.in_turn(lambda: tool.run(caller, dict(arguments)))
            return tool.run(caller, arguments)
        except CommonplaceError as error:
            return error_reply(error)
