"""One JSON object a line: what a line holds, and changing one member of it while all other bytes stay."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

_BOM = b"\xef\xbb\xbf"


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_decoded = json.JSONDecoder(parse_constant=_no_constant).decode


class BadLine(ValueError):
    """A line that is no JSON object; the text says why."""


def value_of(line: bytes) -> dict[str, Any] | None:
    """The object in a line, None for a blank one. Raises BadLine."""
    line = line.removeprefix(_BOM)
    if not line.strip():
        return None
    try:
        value = _decoded(line.decode())
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadLine("not JSON") from None
    if not isinstance(value, dict):
        raise BadLine("no JSON object")
    return value


def replaced(line: bytes, key: str, value: Any) -> bytes:
    """`line`, an object, with another value at `key`; all its other bytes stay. A missing key is put last."""
    bom = _BOM if line.startswith(_BOM) else b""
    text = line.removeprefix(_BOM).decode()
    fresh = dumped(value)
    spans = [(start, end) for name, start, end in _members(text) if name == key]
    if spans:
        start, end = spans[-1]
        text = text[:start] + fresh + text[end:]
    else:
        brace = text.rindex("}")
        comma = "" if text[:brace].rstrip().endswith("{") else ","
        text = f"{text[:brace].rstrip()}{comma}{json.dumps(key)}:{fresh}{text[brace:]}"
    return bom + text.encode() + (b"" if text.endswith("\n") else b"\n")


def dumped(value: Any) -> str:
    """`value` as JSON without blanks, other alphabets raw."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shape_of(data: bytes, lines: Sequence[bytes]) -> str:
    """What the file is when it is not lines of JSON objects; empty when it is."""
    stripped = (each for line in lines if (each := line.removeprefix(_BOM).strip()))
    full = list(islice(stripped, 2))
    if not full:
        return ""
    first = _quietly(full[0])
    if isinstance(first, dict) and (len(full) > 1 or "type" in first):
        return ""
    full += stripped
    whole = _quietly(data.removeprefix(_BOM).strip())
    if isinstance(whole, list):
        return "a JSON array"
    if whole is not None and len(full) > 1:
        return "one JSON value over several lines"
    if isinstance(whole, dict):
        return "one JSON object without a type"
    if not any(line.startswith(b"{") for line in full):
        return "a file of another kind"
    is_torn = full[0] == b"{" or full[0].startswith(b"[")
    if is_torn and not any(isinstance(_quietly(line), dict) for line in full):
        return "one JSON value over several lines, cut off"
    return ""


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """(key, start and end of its value) of the object in `text`, which is known to be one."""
    decoder = json.JSONDecoder()
    at = text.index("{") + 1
    while True:
        at = _past_blanks(text, at)
        if text[at] == "}":
            return
        key, at = decoder.raw_decode(text, at)
        start = _past_blanks(text, _past_blanks(text, at) + 1)
        _, end = decoder.raw_decode(text, start)
        yield key, start, end
        at = _past_blanks(text, end)
        at += text[at] == ","


def _past_blanks(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _quietly(data: bytes) -> Any:
    """The JSON value, None when it is none."""
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
