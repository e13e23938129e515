"""For clients in Python: what a tool of this face answered, whatever the client library made of it."""

from __future__ import annotations

import json
from typing import Any

from commonplace.errors import InvalidInput


def parse_response(response: Any) -> dict[str, Any]:
    """The reply as a dict (contract 003, 10).

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
        text = next((text for each in response if (text := _text_of(each)) is not None), None)
        return parse_response(text)
    if isinstance(response, str):
        return _parsed(response)
    if hasattr(response, "content"):
        return parse_response(response.content)
    raise InvalidInput("This is no reply of a memory bank.")


def _text_of(item: Any) -> str | None:
    text = item.get("text") if isinstance(item, dict) else getattr(item, "text", None)
    return text if isinstance(text, str) else None


def _parsed(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"This reply of a memory bank is no JSON: {text[:200]}") from None
    if not isinstance(data, dict):
        raise InvalidInput("This reply of a memory bank is no object.")
    return data
