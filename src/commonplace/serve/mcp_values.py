"""What a registry offers, in the form MCP has for it: plain values, no SDK.

Errors are of our tree, worded for the client; serve/mcp.py gives them their protocol codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from commonplace.errors import CommonplaceError, InvalidInput

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.reply import Reply
from commonplace.faces.tool import Prompt, Registry, Resource, Template, Tool

Result = dict[str, Any]

VALUES = 100
"""Most values one completion may have, by the protocol."""
_VARIABLE = re.compile(r"\{(\+?)(\w+)\}")


class NoResource(CommonplaceError):
    """No resource and no template reads `uri`."""

    code = "not_found"

    def __init__(self, uri: str, templates: Sequence[Template], resources: Iterable[str] = ()):
        shapes = ", ".join([*resources, *(template.uri for template in templates)]) or "none"
        super().__init__(f'No resource "{uri}". Resources have the form {shapes}.')


def tool_entry(tool: Tool) -> Result:
    """A tool as `tools/list` shows it, the schema as the tool has it."""
    entry = {"name": tool.name, "title": tool.title, "description": tool.description, "inputSchema": tool.schema}
    entry["outputSchema"] = tool.output_schema
    entry["annotations"] = dict(tool.annotations) or None
    return {key: value for key, value in entry.items() if value is not None}


def tool_result(reply: Reply) -> Result:
    """A reply as the answer to `tools/call`."""
    texts = [reply.text, reply.hint] if reply.hint else [reply.text]
    result: Result = {"content": [{"type": "text", "text": each} for each in texts], "isError": reply.is_error}
    if reply.data is not None:
        result["structuredContent"] = reply.data
    if reply.meta:
        result["_meta"] = reply.meta
    return result


def prompt_entry(prompt: Prompt) -> Result:
    """A prompt as `prompts/list` shows it."""
    keys = ("name", "description", "required")
    arguments = [dict(zip(keys, each, strict=True)) for each in prompt.arguments]
    return {"name": prompt.name, "description": prompt.description, "arguments": arguments}


def prompt_result(memory: Memory, prompt: Prompt, given: Mapping[str, str]) -> Result:
    """A rendered prompt as the answer to `prompts/get`. Raises InvalidInput for a missing argument.

    Arguments the prompt does not have are ignored; a blank one is one not given, as forms send it.
    """
    names = {name for name, _, _ in prompt.arguments}
    arguments = {name: value for name, value in given.items() if name in names and value.strip()}
    for name, _, required in prompt.arguments:
        if required and name not in arguments:
            raise InvalidInput(f"Argument `{name}` is required for the prompt {prompt.name}.")
    message = {"role": "user", "content": {"type": "text", "text": prompt.render(memory, arguments)}}
    return {"description": prompt.description, "messages": [message]}


def resource_entry(resource: Resource) -> Result:
    """A resource as `resources/list` shows it."""
    entry = {"uri": resource.uri, "name": resource.name, "title": resource.title}
    return entry | {"description": resource.description, "mimeType": resource.mime}


def template_entry(template: Template) -> Result:
    """A template as `resources/templates/list` shows it."""
    entry = {"uriTemplate": template.uri, "name": template.name}
    return entry | {"description": template.description, "mimeType": template.mime}


def resource_result(
    memory: Memory, templates: Sequence[Template], uri: str, resources: Mapping[str, Resource] | None = None
) -> Result:
    """What the resource, or the first template that fits, reads at `uri`, as the answer to `resources/read`.

    Raises NoResource when none fits, else what reading raises.
    """

    def contents(mime: str, text: str) -> Result:
        return {"contents": [{"uri": uri, "mimeType": mime, "text": text}]}

    if resources and uri in resources:
        return contents(resources[uri].mime, resources[uri].read(memory))
    for template in templates:
        if (variables := _variables(template.uri, uri)) is not None:
            return contents(template.mime, template.read(memory, variables))
    raise NoResource(uri, templates, resources or {})


def completion_result(
    memory: Memory, template: Template | None, variable: str, beginning: str, others: Mapping[str, str]
) -> Result:
    """Values for `variable` that go on from `beginning`, as the answer to `completion/complete`.

    Prompts have no values to offer: `template` None. Raises InvalidInput for a variable that is none.
    """
    values: list[str] = []
    if template is not None:
        names = [name for _, name in _VARIABLE.findall(template.uri)]
        if variable not in names:
            raise InvalidInput(f"{template.uri} has no variable `{variable}`. Its variables: {', '.join(names)}.")
        if template.complete is not None:
            values = template.complete(memory, variable, beginning, dict(others))
    return {"completion": {"values": values[:VALUES], "total": len(values), "hasMore": len(values) > VALUES}}


def prompt_named(registry: Registry, name: str) -> Prompt:
    """The prompt `name`. Raises InvalidInput."""
    prompts = registry.prompts
    if name not in prompts:
        raise InvalidInput(f'No prompt "{name}". Prompts: {", ".join(prompts) or "none"}.')
    return prompts[name]


def template_named(registry: Registry, uri: str) -> Template:
    """The template whose own address is `uri`. Raises NoResource."""
    if found := next((each for each in registry.templates if each.uri == uri), None):
        return found
    raise NoResource(uri, registry.templates)


def _variables(template: str, uri: str) -> dict[str, str] | None:
    """The variables of RFC 6570 `{name}` (one segment) and `{+name}` (the rest) in `uri`; None: no match.

    `?` and `#` belong to the last variable: people write the names of their notes unencoded.
    """
    pattern, end = "", 0
    for match in _VARIABLE.finditer(template):
        pattern += re.escape(template[end : match.start()]) + f"(?P<{match[2]}>{'.+' if match[1] else '[^/]+'})"
        end = match.end()
    found = re.fullmatch(pattern + re.escape(template[end:]), uri, re.DOTALL)
    return {name: unquote(value) for name, value in found.groupdict().items()} if found else None
