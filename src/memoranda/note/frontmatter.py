"""The YAML header of a note: reading it as written, changing single keys, writing new ones.

Source: contract 000b, 2. Usual shapes are read by two patterns here; everything else goes to
PyYAML.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import cache, partial
from itertools import accumulate
from typing import Any, Final, NamedTuple

from memoranda.clock import stamp

REMOVE: Final = object()
"""The value that takes a key out: see `set_keys`."""


class Parts(NamedTuple):
    """The YAML between the fences (None without a header), and the offset where the body begins."""

    yaml: str | None
    body_at: int


_TYPED: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_OPENING = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSING = re.compile(r"\n(---|\.\.\.)[ \t]*(?:\r?\n|\Z)")
_HAS_KEY = re.compile(r"""^["']?\w[^\n]*:(?:\s|\Z)""", re.MULTILINE)


def split(text: str) -> Parts:
    """Where header and body of a file's text are; a BOM belongs to neither. The header's YAML is
    without its fences; `...` ends it too, as in YAML, if it has a key. Without a header the body is
    all of the text."""
    # The line break of a fence may be the one before the closing fence.
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end() - 1) if opening else None
    while opening and closing:
        yaml_text = text[opening.end() : closing.start() + 1]
        if closing[1] == "---" or _HAS_KEY.search(yaml_text):
            return Parts(yaml_text, closing.end())
        closing = _CLOSING.search(text, closing.end() - 1)
    return Parts(None, 1 if text.startswith("\ufeff") else 0)


# A plain scalar of one line that is that text to every YAML reader; no `: `, ` #` or final `:`.
# (Written as what it is not: `re` is slow at compiling large ranges.)
_START = r"[^\x00-'),*:-@\[-^`{-\xa0-]"
_PLAIN = rf"{_START}[^:#]*+(?:(?::(?=[^ ])|(?<! )#)[^:#]*+)*+"
_IN_FLOW = rf"""(?:{_START}[^,:#\[\]{{}}]*+|"[^"\\]*"|'[^']*')"""
_KEY = r"[^\W\d][\w.\-]{0,99}(?: [\w.\-]{1,50}){0,6}"
_ROW = re.compile(
    rf"""({_KEY}):(?: +(?:({_PLAIN})|(?:"([^"\\]*)"|'([^']*)'|\[ *({_IN_FLOW}(?: *,\ *{_IN_FLOW})*)? *\]) *))? *"""
).fullmatch
_ITEM = re.compile(rf"""( *)- +(?:({_PLAIN})|(?:"([^"\\]*)"|'([^']*)') *)""").fullmatch
_FLOW_ITEM = re.compile(rf""" *(?:({_START}[^,:#\[\]{{}}]*+)|"([^"\\]*)"|'([^']*)') *,?""")


LONGEST = 500_000
"""Characters of a header that is read."""


def parse(yaml_text: str) -> dict[str, Any]:
    """The header's mapping: scalars as written, plain `true`, `false`, `null`, `~` and nothing
    typed. An empty header is an empty mapping. Raises ValueError(reason) for text that is no YAML
    or no mapping, or longer than any header."""
    if len(yaml_text) > LONGEST:
        raise ValueError(f"it has {len(yaml_text):,} characters, more than {LONGEST:,}")
    rows = _usual(yaml_text)
    if rows is None:
        return _full(yaml_text)
    return rows


def parse_typed(yaml_text: str) -> dict[str, Any]:
    """As `parse`, but plain numbers written as JSON writes them are numbers. Raises ValueError."""

    def typed(text: str) -> Any:
        try:
            if text[:1] in "-0123456789":
                value = json.loads(text)
            else:
                value = text
        except ValueError:
            return text
        if json.dumps(value) == text:
            return value
        return text

    return _full(yaml_text, typed)


class AsWritten(str):
    """A scalar as it stands in the file without quotes: `scalar` writes it so again."""

    __slots__ = ()


def parse_as_written(yaml_text: str) -> dict[str, Any]:
    """As `parse`, with what has no quotes as `AsWritten`: a number stays one when it is dumped.
    Raises ValueError."""
    return _full(yaml_text, AsWritten)


_KEY_LINE = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s:#\-"'*&!|>%@`\[\]{},?][^:]*):(?:\s|\Z)""")


def looks_like_header(yaml_text: str) -> bool:
    """Whether somebody meant these lines as a header: each that is not indented is a key, an item
    of a list, a bracket or a comment, and the first of them is a key."""
    lines = [line for line in yaml_text.splitlines() if line.strip() and line[0] not in " \t#"]
    if not lines or not _KEY_LINE.match(lines[0]):
        return False
    return all(_KEY_LINE.match(line) or line[0] in "-]}" for line in lines)


def _usual(text: str) -> dict[str, Any] | None:
    """The mapping when every line has a usual shape; None: PyYAML must read it."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if not text.replace("\n", "").isprintable():
        return None
    rows: dict[str, Any] = {}
    open_key = None
    indent = ""
    for line in text.split("\n"):
        key, blank, value = line.partition(": ")
        is_plain = (
            blank
            and value[:1].isalnum()
            and "#" not in value
            and ": " not in value
            and value[-1] not in ": "
        )
        # So plain that no pattern need look at it
        if is_plain and key.isidentifier() and len(key) < 100:
            if key in rows:
                return None
            rows[key] = _TYPED.get(value, value)
            open_key = None
        elif row := _ROW(line):
            key = row[1]
            group = row.lastindex
            open_key = None
            if key in rows:
                return None
            if group == 2:
                value = row[2].rstrip()
                rows[key] = _TYPED.get(value, value)
            elif group == 1 and line.rstrip().endswith("]"):
                rows[key] = []
            elif group == 1:
                rows[key] = None
                open_key = key
                indent = "-"
            elif group == 5:
                rows[key] = [
                    _TYPED.get(plain := each[0].rstrip(), plain) if each[0] else each[1] or each[2]
                    for each in _FLOW_ITEM.findall(row[5])
                ]
            else:
                rows[key] = row[group or 0]
        elif item := _ITEM(line):
            if open_key is None:
                return None
            if indent == "-":
                rows[open_key] = []
                indent = item[1]
            elif item[1] != indent:
                return None
            value = item[item.lastindex or 0]
            rows[open_key].append(_TYPED.get(value.rstrip(), value.rstrip()) if item[2] else value)
        elif line and not line.isspace() and not line.lstrip().startswith("#"):
            return None
    return rows


_NODES = 100_000
_DEPTH = 100
_COLUMNS = 400
_RUN = re.compile(rf"^[ \-?]{{{_COLUMNS}}}", re.MULTILINE)


def _full(text: str, plain: Callable[[str], Any] = str) -> dict[str, Any]:
    """The mapping as PyYAML reads it, without its guesses about types; `plain` reads what stands
    without quotes.
    """
    import yaml

    # YAML's parser recurses in C and could run out of stack; nobody writes such a header.
    signs = re.findall(r"[\[\]{}]", text) if text.count("[") + text.count("{") > _DEPTH else ()
    depths = accumulate(
        signs, lambda depth, sign: depth + 1 if sign in "[{" else max(depth - 1, 0), initial=0
    )
    if _RUN.search(text) or max(depths) > _DEPTH:
        raise ValueError("it is nested too deeply")
    try:
        root = _composer()(text).get_single_node()
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        raise ValueError(f"{getattr(error, 'problem', None) or 'it is no text'}{where}") from None
    if root is None or (root.id == "scalar" and not root.style and root.value in ("", "~", "null")):
        return {}
    if root.id != "mapping":
        raise ValueError("it is no mapping of keys to values")
    return _built(root, [_NODES], 0, plain)


@cache
def _composer() -> Any:
    """A loader that resolves nothing but plain true, false and null."""
    from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs do not export it
    from yaml.resolver import BaseResolver

    class Composer(CParser, BaseResolver):
        def __init__(self, text: str):
            CParser.__init__(self, text)
            BaseResolver.__init__(self)

    Composer.add_implicit_resolver(
        "!typed", re.compile(r"(?:true|false|null|~|)$"), ["t", "f", "n", "~", ""]
    )
    return Composer


def _built(node: Any, budget: list[int], depth: int, plain: Callable[[str], Any]) -> Any:
    """A node as a plain value; anchors are expanded up to a bound."""
    budget[0] -= 1
    if budget[0] < 0 or depth > _DEPTH:
        raise ValueError("it is nested too deeply or grows too large")
    if node.id == "scalar":
        if node.tag == "!typed":
            return _TYPED[node.value]
        if node.style:
            return node.value
        return plain(node.value)
    if node.id == "sequence":
        return [_built(each, budget, depth + 1, plain) for each in node.value]
    rows: dict[str, Any] = {}
    for key, value in node.value:
        if key.id != "scalar":
            raise ValueError("a key is no text")
        name = key.value
        if plain is AsWritten and not key.style:
            name = AsWritten(name)
        rows[name] = _built(value, budget, depth + 1, plain)
    return rows


# YAML 1.1 and 1.2 and their usual readers take these for something other than text.
_RETYPED = re.compile(
    r"~|null|true|false|yes|no|on|off|y|n|<<|="
    r"|[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-f_]+|[-+]?\.inf|\.nan)"
    r"|(?:(?:[-+][0-9_]|[0-9])[0-9_]*(?::[0-9_]+)*\.?[0-9_]*|[-+]?\.[0-9_]+)(?:e[-+]?[0-9]+)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:(?:t|[ \t]+)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]*)?)?(?:[ \t]*(?:z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?",
    re.IGNORECASE,
)
_UNPRINTABLE = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff"
_SAFE = re.compile(
    rf"(?:[^\s\-?:,\[\]{{}}#&*!|>'\"%@`{_UNPRINTABLE}]|[\-?:](?=[^\s,\[\]{{}}]))[^{_UNPRINTABLE}]*"
)
_ESCAPED = re.compile(f"[{_UNPRINTABLE}]")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
_OURS = ["created", "updated", "accessed", "expires", "due", "fired", "acked", "last_used"]
_TIMES = ("created", "updated", "modified", "date", "expires", *(f"{our}_at" for our in _OURS))


def scalar(value: Any) -> str:
    """`value` as one YAML scalar of one line. Text is plain if readers of YAML 1.1 and 1.2 both
    read back exactly it, else double-quoted with JSON escapes (a lone surrogate becomes U+FFFD);
    times are `Z` stamps."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return ".nan"
        if value > 0:
            return ".inf"
        return "-.inf"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, AsWritten) and "\n" not in value:
        return str(value)
    # Of a date: its ISO form
    text = str(value)
    is_plain = (
        _SAFE.fullmatch(text) and ": " not in text and " #" not in text and not text.endswith(":")
    )
    if isinstance(value, date) or (
        is_plain and text == text.strip() and not _RETYPED.fullmatch(text)
    ):
        return text
    return _quoted(text)


def _quoted(value: Any) -> str:
    """JSON, with escapes for what YAML does not take raw."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _ESCAPED.sub(
        lambda sign: "\ufffd" if "\ud800" <= sign[0] <= "\udfff" else f"\\u{ord(sign[0]):04x}", text
    )


def dump(mapping: Mapping[str, Any]) -> str:
    """YAML lines for `mapping`, without fences: lists as block lists with two blanks, mappings as
    blocks.
    """
    return "".join(
        f"{line}\n" for key, value in mapping.items() for line in _lines(_key(key), value, "")
    )


def _key(key: Any) -> str:
    if isinstance(key, AsWritten):
        return key
    return str(key)


def _flow(value: Any) -> str:
    """A value within one line, in the form of JSON but for what was written without quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(own)}" for key, own in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, AsWritten) and not _FLOW_SIGNS.search(value):
        return str(value)
    return _quoted(value)


_FLOW_SIGNS = re.compile(r"[,\[\]{}\n]|:\Z")


def _lines(key: str, value: Any, indent: str) -> list[str]:
    # At the start of a line --- and ... would end the document.
    name = f"{indent}{_quoted(key) if key.startswith(('---', '...')) else scalar(key)}:"
    if isinstance(value, Mapping):
        inner = [line for k, v in value.items() for line in _lines(_key(k), v, indent + "  ")]
        if inner:
            return [name, *inner]
        return [f"{name} {{}}"]
    if isinstance(value, (list, tuple, set, frozenset)):
        inner = []
        for each in value:
            if isinstance(each, Mapping) and each:
                first, *rest = [
                    line for k, v in each.items() for line in _lines(_key(k), v, indent + "    ")
                ]
                inner += [f"{indent}  - {first.lstrip(' ')}", *rest]
            else:
                if isinstance(each, (Mapping, list, tuple)):
                    plain = _flow(each)
                else:
                    plain = scalar(each)
                inner.append(f"{indent}  - {plain}")
        if inner:
            return [name, *inner]
        return [f"{name} []"]
    is_time = isinstance(value, str) and key in _TIMES and _MOMENT.fullmatch(value)
    return [f"{name} {value if is_time else scalar(value)}"]


def set_keys(text: str, changes: Mapping[str, Any], order: Sequence[str] = ()) -> str:
    """The file's text with these top-level keys set, or taken out by REMOVE; every other byte
    stays. A key that already holds the value keeps its writing, a changed one its comment. A new
    key goes behind those that `order` names before it, else to the end of the header. Raises
    ValueError when the header there does not parse."""
    yaml_text, body_at = split(text)
    lines = {
        key: [] if value is REMOVE else _lines(str(key), value, "")
        for key, value in changes.items()
    }
    written = "".join(f"{line}\n" for own in lines.values() for line in own)
    if yaml_text is None:
        block = f"---\n{written}---\n" if written else ""
        return (
            text[:body_at]
            + (block.replace("\n", "\r\n") if is_crlf(text) else block)
            + text[body_at:]
        )
    before = parse(yaml_text)
    read = parse(written)
    values = {key: read.get(str(key), REMOVE) for key in changes}
    differing = {key: own for key, own in lines.items() if before.get(key, REMOVE) != values[key]}
    if not differing:
        return text
    wanted = {key: value for key, value in (before | values).items() if value is not REMOVE}
    start = text.index("\n") + 1
    newline = "\r\n" if text[start - 2] == "\r" else "\n"
    for way in (partial(_by_lines, order=order), _by_round_trip):
        changed = text[:start] + way(yaml_text, differing, newline) + text[start + len(yaml_text) :]
        with suppress(ValueError):
            yaml = split(changed).yaml
            if yaml is not None and parse(yaml) == wanted:
                return changed
    raise ValueError(f"the frontmatter is too unusual to set {', '.join(changes)} in it")


def is_crlf(text: str) -> bool:
    """Whether the text has line breaks and every one is CRLF."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


_TOP_KEY = re.compile(
    r"""(?:"((?:[^"\\\n]|\\.)*+)"|'((?:[^'\n]|'')*+)'"""
    r"""|([^\s"'#&*!|>%@`\[\]{},-](?:[^:#\n]|:(?=\S)|(?<=\S)#)*?))[ \t]*:(?=\s|\Z)"""
)
_COMMENT = re.compile(
    r"""(?:[ \t]+(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\n]|'')*+'"""
    r"""|[^\s"'|>\[{&*!#](?:[^\s#]|(?<=\S)#|[ \t]++(?!#))*+))?([ \t]+#[^\r\n]*)\r?\n"""
)


def entries(yaml_text: str) -> list[tuple[str, str]]:
    """(key, its lines as written) of the top-level keys, judged by the look of the lines; comments
    and blank lines between keys are left out."""
    lines = yaml_text.splitlines(keepends=True)
    return [(key, "".join(lines[first:last])) for key, first, last in _spans(lines)]


def _spans(lines: list[str]) -> list[tuple[str, int, int]]:
    """(key, first line, line after the last) of each top-level key; comments after a value are not
    its own.
    """
    spans: list[tuple[str, int, int]] = []
    is_text_block = False
    for number, line in enumerate(lines):
        match = _TOP_KEY.match(line)
        if match:
            key = match[3] or (match[2] or "").replace("''", "'")
            if match[1] is not None:
                # One with escapes that are not JSON's stays as written
                key = match[1]
                with suppress(ValueError):
                    key = str(json.loads(f'"{key}"'))
            spans.append((key, number, number + 1))
            is_text_block = line[match.end() :].lstrip(" \t")[:1] in ("|", ">")
        elif (
            spans
            and line[0] in " \t-"
            and line.strip()
            and (is_text_block or not line.lstrip().startswith("#"))
        ):
            spans[-1] = (*spans[-1][:2], number + 1)
    return spans


def _by_lines(
    yaml_text: str, changes: Mapping[str, Sequence[str]], newline: str, order: Sequence[str]
) -> str:
    """Replace exactly the lines of the keys that change, none for one that goes; new keys go where
    `order` says, else to the end."""
    lines = yaml_text.splitlines(keepends=True)
    for key, written in changes.items():
        fresh = [line + newline for line in written]
        spans = _spans(lines)
        own = [(first, last) for name, first, last in spans if name == key]
        if not own:
            earlier = order[: order.index(key)] if key in order else ()
            if key in order:
                place = max((last for name, _, last in spans if name in earlier), default=0)
            else:
                place = len(lines)
            lines[place:place] = fresh
        # Of keys that stand twice the last one counts
        for first, last in reversed(own):
            name = _TOP_KEY.match(lines[first])
            comment = _COMMENT.match(lines[first], name.end() if name else 0)
            if fresh and comment:
                fresh[0] = fresh[0][: -len(newline)] + comment[1] + newline
            lines[first:last] = fresh
            fresh = []
    return "".join(lines)


def _by_round_trip(yaml_text: str, changes: Mapping[str, Sequence[str]], newline: str) -> str:
    """The same for headers that cannot be edited line by line."""

    def change(rows: Any, load: Callable[[str], Any]) -> None:
        for key, lines in changes.items():
            if lines:
                rows[key] = load("\n".join(lines))[key]
            else:
                rows.pop(key, None)

    return round_trip(yaml_text, change).replace("\r\n", "\n").replace("\n", newline)


def round_trip(yaml_text: str, change: Callable[[Any, Callable[[str], Any]], None]) -> str:
    """YAML after `change` of what it holds, through ruamel.yaml, so that comments, order and quotes
    stay. `change` takes the mapping and what reads YAML. Raises ValueError."""
    import io

    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    out = io.StringIO()
    try:
        rows = yaml.load(yaml_text)
        if rows is None:
            rows = {}
        change(rows, yaml.load)
        yaml.dump(rows, out)
    except (YAMLError, AttributeError, ValueError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    return out.getvalue()
