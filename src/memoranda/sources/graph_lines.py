"""Parses and writes the lines of a graph file (contract 002).

A line is one JSON object, an entity or a relation:
`{"type":"entity","name":"Ann","entityType":"person","observations":["likes tea"]}`
`{"type":"relation","from":"Ann","to":"Bob","relationType":"knows"}`

Files in other forms are recognised, such as one object with lists of `entities` and `relations`.
`as_lines` converts them into lines. "Glued" objects are several on one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from memoranda.note.entity import Entity, GraphRelation
from memoranda.sources.json_files import refuse_constant
from memoranda.text.unicode import is_valid_unicode, repair_surrogates

ENTITY_KEYS = ("type", "name", "entityType", "observations")
_BLANK = (" ", "\t", "\r")
_EMPTY = (b"{}", b"[]")
# A line or file without a match is certainly in none of the forms that `as_lines` converts.
_MAYBE_OTHER_FORM = re.compile(rb'[}\]][ \t]*\{|"(?:entities|relations)"|\A\s*(?:\{\s*\}|\[\s*\])')
# The lists of an object with a whole graph -> the type of their elements.
_MEMBERS = {"entities": "entity", "relations": "relation"}
_BOM = b"\xef\xbb\xbf"
# A file is recognised by this number of lines, and by this number of bytes of each.
_FIRST_LINES = 100
_MAX_LINE_BYTES = 1 << 20


class BadLine(ValueError):
    """A line that is not a JSON object, or whose object does not fit its type.

    Its text is the reason, such as `an entity without a name`.
    """


def parse_graph_object(value: dict[str, Any]) -> Entity | GraphRelation | None:
    """Return the entity or relation in a JSON object, None for an object of another type.

    Raises BadLine.
    """
    kind = value.get("type")
    if not isinstance(kind, str):
        raise BadLine("an object without a type")
    if kind == "entity":
        return _entity_in(value)
    if kind == "relation":
        return _relation_in(value)
    return None


def _entity_in(value: dict[str, Any]) -> Entity:
    """Return the entity in a JSON object of type `entity`. Raises BadLine."""
    name = value.get("name")
    if not isinstance(name, str):
        raise BadLine("an entity without a name")
    type_ = value.get("entityType")
    texts = value.get("observations")
    # Both may be missing or null.
    if type_ is None:
        type_ = ""
    if texts is None:
        texts = []
    are_texts = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    if not isinstance(type_, str) or not are_texts:
        raise BadLine("an entity whose type or observations are no texts")
    observations = tuple(map(repair_surrogates, texts))
    return Entity(repair_surrogates(name), repair_surrogates(type_), observations)


def _relation_in(value: dict[str, Any]) -> GraphRelation:
    """Return the relation in a JSON object of type `relation`. Raises BadLine."""
    source = value.get("from")
    target = value.get("to")
    kind = value.get("relationType")
    if not (isinstance(source, str) and isinstance(target, str) and isinstance(kind, str)):
        raise BadLine("a relation without from, to or relationType")
    return GraphRelation(
        repair_surrogates(source), repair_surrogates(target), repair_surrogates(kind)
    )


def holds_graph(file: Path) -> bool:
    """Whether a file contains a graph. Raises OSError.

    It does if one of its first lines is an entity or a relation, if `as_lines` can convert it, or
    if it is an empty `.json` file.
    """
    with file.open("rb") as lines:
        for _ in range(_FIRST_LINES):
            if graph_object_in(lines.readline(_MAX_LINE_BYTES)) is not None:
                return True
    if file.suffix.lower() != ".json":
        return False
    data = file.read_bytes()
    return not data.strip() or as_lines(data) is not None


def graph_object_in(line: bytes) -> Entity | GraphRelation | None:
    """Return the entity or relation in a line, None for any other line."""
    try:
        value = parse_line(line)
        return parse_graph_object(value) if value else None
    except BadLine:
        return None


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line, None for a blank line. Raises BadLine."""
    line = line.removeprefix(_BOM)
    if not line.strip():
        return None
    try:
        value = json.loads(line.decode(), parse_constant=refuse_constant)
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadLine("not JSON") from None
    if not isinstance(value, dict):
        raise BadLine("no JSON object")
    return value


def dump_line(value: Any) -> str:
    """Return `value` as JSON in one line without blanks. Letters of all alphabets stay readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def entity_line(entity: Entity, other_keys: dict[str, Any]) -> str:
    """Return an entity as one line of JSON.

    other_keys: further keys of the object, and their values. Those in ENTITY_KEYS are ignored.
    """
    value = {
        "type": "entity",
        "name": entity.name,
        "entityType": entity.type,
        "observations": entity.observations,
    }
    further_keys = {key: item for key, item in other_keys.items() if key not in ENTITY_KEYS}
    return dump_line(value | further_keys)


def relation_line(relation: GraphRelation) -> str:
    """Return a relation as one line of JSON."""
    ends = {"from": relation.source, "to": relation.target, "relationType": relation.type}
    return dump_line({"type": "relation", **ends})


def with_members(line: bytes, **members: Any) -> bytes:
    """Set these keys in a line that is a JSON object. All its other bytes stay. New keys come last.

    `{"name": "Ann", "x":1}` with `x=2, y=3` becomes `{"name": "Ann", "x":2,"y":3}`.
    """
    bom = _BOM if line.startswith(_BOM) else b""
    text = line.removeprefix(_BOM).decode()
    for key, value in members.items():
        text = _with_member(text, key, dump_line(value))
    if not text.endswith("\n"):
        text += "\n"
    return bom + text.encode()


def _with_member(text: str, key: str, new_value: str) -> str:
    """Set one key in a text that is a JSON object.

    new_value: the value as JSON.
    """
    spans = [(start, end) for name, start, end in _members(text) if name == key]
    if spans:
        # Of a repeated key, the last value counts
        start, end = spans[-1]
        return text[:start] + new_value + text[end:]
    closing_brace = text.rindex("}")
    head = text[:closing_brace].rstrip()
    comma = "" if head.endswith("{") else ","
    return f"{head}{comma}{json.dumps(key)}:{new_value}{text[closing_brace:]}"


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (key, start of its value, end of its value) of the valid JSON object in `text`.

    `{"a": 1}` has `("a", 6, 7)`.
    """
    decoder = json.JSONDecoder()
    position = text.index("{") + 1
    while True:
        position = _skip_blanks(text, position)
        if text[position] == "}":
            return
        key, position = decoder.raw_decode(text, position)
        colon = _skip_blanks(text, position)
        start = _skip_blanks(text, colon + 1)
        _, end = decoder.raw_decode(text, start)
        yield key, start, end
        position = _skip_blanks(text, end)
        if text[position] == ",":
            position += 1


def _skip_blanks(text: str, position: int) -> int:
    """Return the position of the next character that is not a blank of JSON."""
    while text[position] in " \t\r\n":
        position += 1
    return position


def as_lines(data: bytes) -> list[bytes] | None:
    """Convert a file of another known form into lines. None if the file needs no conversion.

    Known forms are: one object `{"entities": [...], "relations": [...]}`; several objects glued on
    one line, `{...}{...}`; and a first line `{}` or `[]`, which programs write for an empty graph.
    All other lines, good or bad, keep their bytes.
    """
    text = data.removeprefix(_BOM).strip()
    first_line, _, later_lines = text.partition(b"\n")
    has_empty_first_line = first_line.strip() in _EMPTY
    if not (has_empty_first_line or _MAYBE_OTHER_FORM.search(text)):
        return None
    # The whole file may be one object
    members = _graph_members(json_value(text))
    if members is not None:
        return members

    remaining_data = later_lines if has_empty_first_line else data
    remaining_data = remaining_data.removesuffix(b"\n")
    lines: list[bytes] = []
    is_converted = has_empty_first_line
    for line in remaining_data.split(b"\n"):
        separated_lines = _separated(line)
        if separated_lines is None:
            lines.append(line + b"\n")
        else:
            lines += separated_lines
            is_converted = True
    if not is_converted:
        return None
    # Without data, `split` returns one empty line
    return lines if remaining_data else []


def _separated(line: bytes) -> list[bytes] | None:
    """Convert one line with several entities or relations into lines. None for any other line.

    They are objects glued together, `{...}{...}`, or the elements of `{"entities": [...]}`.
    """
    if not _MAYBE_OTHER_FORM.search(line):
        return None
    values = _values(line.removeprefix(_BOM))
    if values is None:
        return None
    lines: list[bytes] = []
    is_converted = len(values) > 1
    for value, data in values:
        members = _graph_members(value)
        if members is None:
            lines.append(data + b"\n")
        else:
            lines += members
            is_converted = True
    return lines if is_converted else None


def _values(line: bytes) -> list[tuple[Any, bytes]] | None:
    """Return (value, its bytes) of the JSON objects and empty arrays that make up a line.

    `{"a":1} {"b":2}` has two. None if the line has anything else.
    """
    decoder = json.JSONDecoder()
    values: list[tuple[Any, bytes]] = []
    try:
        text = line.decode().strip()
        position = 0
        while position < len(text):
            value, end = decoder.raw_decode(text, position)
            if not isinstance(value, dict) and value != []:
                return None
            values.append((value, text[position:end].encode()))
            position = end
            while text[position : position + 1] in _BLANK:
                position += 1
    except (ValueError, RecursionError):
        return None
    return values


def _graph_members(value: Any) -> list[bytes] | None:
    """Convert an object with `entities` and `relations` into lines. None for any other value.

    An empty object or array becomes no line. Other keys of the object become one further line.
    """
    if value in ({}, []):
        return []
    # An object with a type is a line of a graph file
    if not isinstance(value, dict) or "type" in value:
        return None
    if value.keys().isdisjoint(_MEMBERS):
        return None
    members_by_key = {key: value[key] for key in _MEMBERS if value.get(key) is not None}
    if not all(map(_holds_objects, members_by_key.values())):
        return None
    lines: list[bytes] = []
    for key, members in members_by_key.items():
        lines += [_member_line(_MEMBERS[key], member) for member in members]
    other_keys = {key: item for key, item in value.items() if key not in _MEMBERS}
    if other_keys:
        lines.append(_raw_line(other_keys))
    return lines


def _holds_objects(value: Any) -> bool:
    """Whether a JSON value is a list of objects."""
    return isinstance(value, list) and all(isinstance(member, dict) for member in value)


def _member_line(kind: str, member: dict[str, Any]) -> bytes:
    """Return an element of `entities` or `relations` as a line.

    kind: `entity` or `relation`.
    member: the element.
    """
    own_type = member.get("type")
    if kind == "entity" and "entityType" not in member:
        # Some programs write the type of an entity as `type` in such lists
        is_type_of_entity = own_type not in (None, kind)
        if is_type_of_entity:
            member = member | {"entityType": own_type}
    # `type` comes first, and replaces the element's own
    return _raw_line({"type": kind} | member | {"type": kind})


def _raw_line(value: Any) -> bytes:
    """Return a JSON value as a line in UTF-8. Half surrogate pairs are escaped, as `\\ud83d`."""
    text = dump_line(value)
    if not is_valid_unicode(text):
        text = json.dumps(value, separators=(",", ":"))
    return text.encode() + b"\n"


def shape_of(data: bytes, lines: Sequence[bytes]) -> str:
    """Describe a file that is not a graph file, such as `a JSON array`. "" for a graph file.

    A graph file has one JSON object in each line. The result is for an error message.

    data: the bytes of the file.
    lines: the same bytes by line.
    """
    stripped_lines = (line.removeprefix(_BOM).strip() for line in lines)
    full_lines = filter(None, stripped_lines)
    # Usually the first two lines that are not blank show that it is a graph file.
    first_lines = list(islice(full_lines, 2))
    if not first_lines:
        return ""
    first_value = json_value(first_lines[0])
    if isinstance(first_value, dict):
        # A single object may be another JSON file, unless it says that it is an entity or relation
        has_second_line = len(first_lines) > 1
        if has_second_line or "type" in first_value:
            return ""
    return _shape_of_lines(data, [*first_lines, *full_lines])


def _shape_of_lines(data: bytes, full_lines: Sequence[bytes]) -> str:
    """Describe a file whose first line is not an object of a graph. "" for a graph file.

    data: the bytes of the file.
    full_lines: its lines that are not blank, without blanks around them. There is at least one.
    """
    document = json_value(data.removeprefix(_BOM).strip())
    if isinstance(document, list):
        return "a JSON array"
    if document is not None and len(full_lines) > 1:
        return "one JSON value over several lines"
    if isinstance(document, dict):
        return "one JSON object without a type"
    if not any(line.startswith(b"{") for line in full_lines):
        return "a file of another kind"
    is_beginning_of_value = full_lines[0] == b"{" or full_lines[0].startswith(b"[")
    has_object = any(isinstance(json_value(line), dict) for line in full_lines)
    if is_beginning_of_value and not has_object:
        return "one JSON value over several lines, cut off"
    # Single damaged lines are reported one by one.
    return ""


def json_value(text: str | bytes) -> Any:
    """Parse JSON. None if it is invalid, and for `null`."""
    try:
        return json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None


@dataclass(slots=True)
class GraphText:
    """The graph in a text.

    entities: each with the further keys of its JSON object.
    relations: in the order of the text.
    bad: (number of the line, reason) of what is neither.
    """

    entities: list[tuple[Entity, dict[str, Any]]] = field(default_factory=list)
    relations: list[GraphRelation] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)


def parse_graph(text: str) -> GraphText:
    """Read the graph in a text.

    The text is one object a line, an array of objects, or one object with `entities` and
    `relations`. Lines and elements of an array are counted from 1. Objects of another type are bad,
    too.
    """
    text = text.removeprefix("\ufeff")
    document = json_value(text) if text.lstrip()[:1] in ("[", "{") else None
    if isinstance(document, list):
        return _collect(enumerate(document, 1))
    if isinstance(document, dict) and "type" not in document:
        return _collect((1, member) for member in _typed_members(document))
    return _collect(_values_of_lines(text))


def _values_of_lines(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the number and the JSON value of each line that is not blank. None if it is invalid."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, json_value(line) if is_valid_unicode(line) else None


def _typed_members(document: dict[str, Any]) -> Iterator[Any]:
    """Yield the entities and relations of an object with a whole graph, each with its type."""
    for list_name, kind in _MEMBERS.items():
        values = document.get(list_name)
        if not isinstance(values, list):
            continue
        for value in values:
            # Anything else is reported as bad later
            yield {**value, "type": kind} if isinstance(value, dict) else value


# Type of an object -> why it is bad.
_BAD = {
    "entity": "no entity: it needs a name, and observations that are texts",
    "relation": "no relation: it needs from, to and relationType",
}


def _collect(values: Iterable[tuple[int, Any]]) -> GraphText:
    """Sort JSON values into a GraphText.

    values: (number of its line, value).
    """
    graph_text = GraphText()
    for number, value in values:
        if not isinstance(value, dict):
            graph_text.bad.append((number, "not a JSON object"))
            continue
        try:
            graph_object = parse_graph_object(value)
        except BadLine:
            graph_object = None
        if isinstance(graph_object, Entity):
            other_keys = {key: item for key, item in value.items() if key not in ENTITY_KEYS}
            graph_text.entities.append((graph_object, other_keys))
        elif graph_object is not None:
            graph_text.relations.append(graph_object)
        else:
            reason = _BAD.get(str(value.get("type")), "neither entity nor relation")
            graph_text.bad.append((number, reason))
    return graph_text
