"""The face `bank`: three tools that keep banks of Markdown files for kinds of conversation (contract 003)."""

from __future__ import annotations

import json
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.faces.tool import Toolset


def toolset(
    *, debug: bool = False, llm_url: str | None = None, llm_model: str | None = None, llm_key: str | None = None
) -> Toolset:
    """The toolset of one server; what it remembers between calls is its own. `debug` writes a dump beside each updated
    bank. With `llm_url` and `llm_model` an OpenAI-compatible endpoint may choose the file of an update that names
    none."""
    from commonplace.faces.bank.tools import ServerState, tools

    state = ServerState(debug)
    if llm_url and llm_model:
        from commonplace.llm import Endpoint

        state.llm = Endpoint(llm_url, llm_model, llm_key)
    return Toolset("bank", tools(state))


def parse_response(response: Any) -> dict[str, Any]:
    """The reply of a bank tool as a dict (contract 003, 10), for clients in Python.

    `response` is a list of content items (with `.text`, or dicts with `"text"`), a result with `.content`, the
    pair (content, structured), a JSON text, or the dict itself. Raises InvalidInput for anything else.
    """
    if isinstance(response, tuple) and len(response) == 2:
        content, structured = response
        return structured if isinstance(structured, dict) else parse_response(content)
    if isinstance(response, dict):
        content = response.get("content")
        return parse_response(content) if isinstance(content, list) else response
    if isinstance(response, list):
        texts = [each.get("text") if isinstance(each, dict) else getattr(each, "text", None) for each in response]
        return parse_response(next((text for text in texts if isinstance(text, str)), None))
    if not isinstance(response, str):
        if hasattr(response, "content"):
            return parse_response(response.content)
        raise InvalidInput("This is no reply of a memory bank.")
    try:
        data = json.loads(response)
    except (ValueError, RecursionError):
        raise InvalidInput(f"This reply of a memory bank is no JSON: {response[:200]}") from None
    if not isinstance(data, dict):
        raise InvalidInput("This reply of a memory bank is no object.")
    return data
