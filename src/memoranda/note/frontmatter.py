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
from typing import Any, Final, NamedTuple

from memoranda.clock import stamp
from memoranda.text.pattern import lazy_pattern

REMOVE: Final = object()
"""The value that takes a key out: see `set_keys`."""


class Parts(NamedTuple):
    """The YAML between the fences (None without a header), and the offset where the body begins."""

    yaml: str | None
    body_at: int


# Bare words that YAML 1.2 reads as other things than texts.
_TYPED: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
# The line that opens a header, at the very beginning of a file.
_OPENING = lazy_pattern(r"\ufeff?---[ \t]*\r?\n")
# The line that closes a header.
_CLOSING = lazy_pattern(r"\n(---|\.\.\.)[ \t]*(?:\r?\n|\Z)")
# A line with a key. Without one, `---` and `...` are a rule and a text.
_HAS_KEY = lazy_pattern(r"""^["']?\w[^\n]*:(?:\s|\Z)""", re.MULTILINE)


def split(text: str) -> Parts:
    """Where header and body of a file's text are; a BOM belongs to neither. The header's YAML is
    without its fences; `...` ends it too, as in YAML, if it has a key. Without a header the body is
    all of the text."""
    # The line break of a fence may be the one before the closing fence.
    opening = _OPENING.match(text)
    if opening:
        closing = _CLOSING.search(text, opening.end() - 1)
    else:
        closing = None
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
_ROW = lazy_pattern(
    rf"""({_KEY}):(?: +(?:({_PLAIN})|(?:"([^"\\]*)"|'([^']*)'|\[ *({_IN_FLOW}(?: *,\ *{_IN_FLOW})*)? *\]) *))? *"""
)
_ITEM = lazy_pattern(rf"""( *)- +(?:({_PLAIN})|(?:"([^"\\]*)"|'([^']*)') *)""")
# One item of a list in brackets: bare, in double quotes or in single ones.
_FLOW_ITEM = lazy_pattern(rf""" *(?:({_START}[^,:#\[\]{{}}]*+)|"([^"\\]*)"|'([^']*)') *,?""")


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
    """Parse like `parse`, but read plain numbers in JSON form as numbers. Raises ValueError."""

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
    """A scalar as it is in the file without quotes: `scalar` writes it so again."""

    __slots__ = ()


def parse_as_written(yaml_text: str) -> dict[str, Any]:
    """Parse like `parse`, but mark unquoted scalars as `AsWritten`, so that they are dumped
    unchanged.

    Raises ValueError.
    """
    return _full(yaml_text, AsWritten)


# A line that begins with a key.
_KEY_LINE = lazy_pattern(r"""(?:"[^"]*"|'[^']*'|[^\s:#\-"'*&!|>%@`\[\]{},?][^:]*):(?:\s|\Z)""")


def looks_like_header(yaml_text: str) -> bool:
    """Whether somebody meant these lines as a header.

    They are if the first line is a key, and each line is indented, a key, an item of a list, a
    bracket or a comment.
    """
    lines = [line for line in yaml_text.splitlines() if line.strip() and line[0] not in " \t#"]
    if not lines or not _KEY_LINE.match(lines[0]):
        return False
    return all(_KEY_LINE.match(line) or line[0] in "-]}" for line in lines)


def _usual(text: str) -> dict[str, Any] | None:
    """The mapping, if every line has a usual shape. None if PyYAML must read it."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if not text.replace("\n", "").isprintable():
        return None
    header = _UsualHeader()
    for line in text.split("\n"):
        if not header.read(line):
            return None
    return header.rows


class _UsualHeader:
    """Reads the usual lines of a header, one after the other."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}
        # The key whose value is not given yet: the items of a list may follow.
        self._open_key: str | None = None
        # The indentation of that list's items; None before the first.
        self._indent: str | None = None

    def read(self, line: str) -> bool:
        """Add one line. Returns False for a line that is not usual."""
        key, blank, value = line.partition(": ")
        # Most lines are so plain that no pattern need look at them.
        if blank and key.isidentifier() and len(key) < 100 and _is_plain_value(value):
            self._open_key = None
            if key in self.rows:
                return False
            self.rows[key] = _TYPED.get(value, value)
            return True
        row = _ROW.fullmatch(line)
        if row:
            return self._add_row(line, row)
        item = _ITEM.fullmatch(line)
        if item:
            return self._add_item(item)
        return not line or line.isspace() or line.lstrip().startswith("#")

    def _add_row(self, line: str, row: re.Match[str]) -> bool:
        """Add `key: value`, a match of _ROW. Returns False for a key that is there already."""
        key = row[1]
        self._open_key = None
        if key in self.rows:
            return False
        group = row.lastindex
        if group == 2:
            value_text = row[2].rstrip()
            self.rows[key] = _TYPED.get(value_text, value_text)
        elif group == 5:
            self.rows[key] = [_item_value(*item) for item in _FLOW_ITEM.findall(row[5])]
        elif group != 1:
            self.rows[key] = row[group or 0]
        elif line.rstrip().endswith("]"):
            self.rows[key] = []
        else:
            self.rows[key] = None
            self._open_key = key
            self._indent = None
        return True

    def _add_item(self, item: re.Match[str]) -> bool:
        """Add `- value`, a match of _ITEM. Returns False for one that is in no list of ours."""
        if self._open_key is None:
            return False
        indent, plain_text, double_quoted, single_quoted = item.groups()
        if self._indent is None:
            self.rows[self._open_key] = []
            self._indent = indent
        elif indent != self._indent:
            return False
        value = _item_value(plain_text or "", double_quoted or "", single_quoted or "")
        self.rows[self._open_key].append(value)
        return True


def _is_plain_value(value: str) -> bool:
    """Whether a value has no sign that means something in YAML."""
    return value[:1].isalnum() and "#" not in value and ": " not in value and value[-1] not in ": "


def _item_value(plain_text: str, double_quoted: str, single_quoted: str) -> Any:
    """The value of a list's item, which has one of three forms."""
    if not plain_text:
        return double_quoted or single_quoted
    text = plain_text.rstrip()
    return _TYPED.get(text, text)


# Values and levels of a header: YAML can make a large tree of a small text.
_MOST_NODES = 100_000
_DEPTH = 100
_COLUMNS = 400
# A row of dashes and question marks so long that the YAML parser would recurse too deep.
_RUN = lazy_pattern(rf"^[ \-?]{{{_COLUMNS}}}", re.MULTILINE)


def _full(text: str, scalar_of: Callable[[str], Any] = str) -> dict[str, Any]:
    """The mapping as PyYAML reads it, without its guesses about types.

    scalar_of: makes the value of a text without quotes.
    """
    import yaml

    if _RUN.search(text) or _is_too_deep(text):
        raise ValueError("it is nested too deeply")
    try:
        root = _composer()(text).get_single_node()
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        mark = getattr(error, "problem_mark", None)
        if mark:
            where = f" in line {mark.line + 2}"
        else:
            where = ""
        raise ValueError(f"{getattr(error, 'problem', None) or 'it is no text'}{where}") from None
    if root is None or (root.id == "scalar" and not root.style and root.value in ("", "~", "null")):
        return {}
    if root.id != "mapping":
        raise ValueError("it is no mapping of keys to values")
    return _built(root, [_MOST_NODES], 0, scalar_of)


def _is_too_deep(text: str) -> bool:
    """Whether brackets are nested so deeply that the YAML parser, which recurses in C, could
    overflow its stack. Nobody writes such a header.
    """
    if text.count("[") + text.count("{") <= _DEPTH:
        return False
    depth = 0
    for sign in re.findall(r"[\[\]{}]", text):
        if sign in "[{":
            depth = depth + 1
        else:
            depth = max(depth - 1, 0)
        if depth > _DEPTH:
            return True
    return False


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


def _built(node: Any, budget: list[int], depth: int, scalar_of: Callable[[str], Any]) -> Any:
    """Convert a node to a plain value, and count its nodes off `budget[0]`. Anchors are expanded.

    Raises ValueError if the budget is used up or the nodes are nested too deeply.
    """
    budget[0] -= 1
    if budget[0] < 0 or depth > _DEPTH:
        raise ValueError("it is nested too deeply or grows too large")
    if node.id == "scalar":
        if node.tag == "!typed":
            return _TYPED[node.value]
        if node.style:
            return node.value
        return scalar_of(node.value)
    if node.id == "sequence":
        return [_built(child, budget, depth + 1, scalar_of) for child in node.value]
    rows: dict[str, Any] = {}
    for key, value in node.value:
        if key.id != "scalar":
            raise ValueError("a key is no text")
        name = key.value
        if scalar_of is AsWritten and not key.style:
            name = AsWritten(name)
        rows[name] = _built(value, budget, depth + 1, scalar_of)
    return rows


# YAML 1.1 and 1.2 and their usual readers take these for something other than text.
_RETYPED = lazy_pattern(
    r"~|null|true|false|yes|no|on|off|y|n|<<|="
    r"|[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-f_]+|[-+]?\.inf|\.nan)"
    r"|(?:(?:[-+][0-9_]|[0-9])[0-9_]*(?::[0-9_]+)*\.?[0-9_]*|[-+]?\.[0-9_]+)(?:e[-+]?[0-9]+)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:(?:t|[ \t]+)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]*)?)?(?:[ \t]*(?:z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?",
    re.IGNORECASE,
)
_UNPRINTABLE = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff"
# A text that YAML reads as itself without quotes.
_SAFE = lazy_pattern(
    rf"(?:[^\s\-?:,\[\]{{}}#&*!|>'\"%@`{_UNPRINTABLE}]|[\-?:](?=[^\s,\[\]{{}}]))[^{_UNPRINTABLE}]*"
)
# Signs that need an escape in double quotes.
_ESCAPED = lazy_pattern(f"[{_UNPRINTABLE}]")
# A day, perhaps with a time and a zone.
_MOMENT = lazy_pattern(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
_OURS = ["created", "updated", "accessed", "expires", "due", "fired", "acked", "last_used"]
_TIMES = ("created", "updated", "modified", "date", "expires", *(f"{our}_at" for our in _OURS))


def scalar(value: Any) -> str:
    """`value` as one YAML scalar on one line.

    Text is plain if readers of YAML 1.1 and 1.2 both read it back unchanged. Otherwise it is
    double-quoted with JSON escapes (a lone surrogate becomes U+FFFD). Times are `Z` stamps.
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, date):
        return str(value)
    text = str(value)
    if isinstance(value, AsWritten) and "\n" not in text:
        return text
    if _reads_back_plain(text):
        return text
    return _quote(text)


def _number(value: float) -> str:
    """A number in YAML."""
    if isinstance(value, int) or math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return ".nan"
    if value > 0:
        return ".inf"
    return "-.inf"


def _reads_back_plain(text: str) -> bool:
    """Whether every reader reads `text` without quotes as this text."""
    is_safe = bool(_SAFE.fullmatch(text)) and text == text.strip() and not text.endswith(":")
    return is_safe and ": " not in text and " #" not in text and not _RETYPED.fullmatch(text)


def _quote(value: Any) -> str:
    """JSON, with escapes for what YAML does not take raw."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _ESCAPED.sub(
        lambda sign: "\ufffd" if "\ud800" <= sign[0] <= "\udfff" else f"\\u{ord(sign[0]):04x}", text
    )


def dump(mapping: Mapping[str, Any]) -> str:
    """YAML lines for `mapping`, without fences: lists as block lists with two blanks, mappings as
    blocks.
    """
    return _join_lines({key: _lines(_key(key), value, "") for key, value in mapping.items()})


def _key(key: Any) -> str:
    if isinstance(key, AsWritten):
        return key
    return str(key)


def _flow(value: Any) -> str:
    """A value within one line, in the form of JSON except what was written without quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, AsWritten) and not _FLOW_SIGNS.search(value):
        return str(value)
    return _quote(value)


# Signs that would end a bare item of a list in brackets.
_FLOW_SIGNS = lazy_pattern(r"[,\[\]{}\n]|:\Z")


def _lines(key: str, value: Any, indent: str) -> list[str]:
    """The lines of a key and its value, a mapping or list as a block."""
    # At the start of a line --- and ... would end the document.
    if key.startswith(("---", "...")):
        written_key = _quote(key)
    else:
        written_key = scalar(key)
    name = f"{indent}{written_key}:"
    if isinstance(value, Mapping):
        inner = _lines_of_mapping(value, indent + "  ")
        if inner:
            return [name, *inner]
        return [f"{name} {{}}"]
    if isinstance(value, (list, tuple, set, frozenset)):
        inner = []
        for item in value:
            inner += _item_lines(item, indent)
        if inner:
            return [name, *inner]
        return [f"{name} []"]
    if isinstance(value, str) and key in _TIMES and _MOMENT.fullmatch(value):
        return [f"{name} {value}"]
    return [f"{name} {scalar(value)}"]


def _lines_of_mapping(mapping: Mapping[Any, Any], indent: str) -> list[str]:
    """The lines of a mapping's keys and values."""
    lines: list[str] = []
    for key, value in mapping.items():
        lines += _lines(_key(key), value, indent)
    return lines


def _item_lines(item: Any, indent: str) -> list[str]:
    """The lines of an item of the list whose key has this indentation."""
    if isinstance(item, Mapping) and item:
        first, *other_lines = _lines_of_mapping(item, indent + "    ")
        return [f"{indent}  - {first.lstrip(' ')}", *other_lines]
    if isinstance(item, (Mapping, list, tuple)):
        return [f"{indent}  - {_flow(item)}"]
    return [f"{indent}  - {scalar(item)}"]


def set_keys(text: str, changes: Mapping[str, Any], order: Sequence[str] = ()) -> str:
    """Set top-level keys in the header of a file's text, or remove them with REMOVE. All other
    bytes stay.

    A key that already has the value keeps its spelling, and a changed key its comment. A new key
    goes after the keys that `order` names before it, or to the end of the header. Raises ValueError
    if the present header does not parse.
    """
    yaml_text, body_at = split(text)
    lines = {key: _changed_lines(key, value) for key, value in changes.items()}
    written = _join_lines(lines)
    if yaml_text is None:
        return text[:body_at] + _new_header(written, is_crlf(text)) + text[body_at:]
    before = parse(yaml_text)
    # Compared as they are read back: `1.10` is a text in a header, whatever the caller gave.
    read_back = parse(written)
    after = dict(before)
    for key in changes:
        after.pop(key, None)
        if str(key) in read_back:
            after[key] = read_back[str(key)]
    differing = {
        key: key_lines
        for key, key_lines in lines.items()
        if before.get(key, REMOVE) != after.get(key, REMOVE)
    }
    if not differing:
        return text
    start = text.index("\n") + 1
    newline = "\r\n" if text[start - 2] == "\r" else "\n"
    for way in (partial(_by_lines, order=order), _by_round_trip):
        header = way(yaml_text, differing, newline)
        changed = text[:start] + header + text[start + len(yaml_text) :]
        if _reads_as(changed, after):
            return changed
    raise ValueError(f"the frontmatter is too unusual to set {', '.join(changes)} in it")


def _join_lines(lines_by_key: Mapping[str, list[str]]) -> str:
    """The lines of all keys as one text."""
    text = ""
    for lines in lines_by_key.values():
        for line in lines:
            text += f"{line}\n"
    return text


def _changed_lines(key: str, value: Any) -> list[str]:
    """The lines of a key that is set, or none for REMOVE."""
    if value is REMOVE:
        return []
    return _lines(str(key), value, "")


def _new_header(written: str, has_crlf: bool) -> str:
    """The header for a file without one. Empty if nothing is written into it."""
    if not written:
        return ""
    header = f"---\n{written}---\n"
    if has_crlf:
        return header.replace("\n", "\r\n")
    return header


def _reads_as(text: str, expected: dict[str, Any]) -> bool:
    """Whether the header of `text` says what is expected."""
    yaml_text = split(text).yaml
    if yaml_text is None:
        return False
    try:
        return parse(yaml_text) == expected
    except ValueError:
        return False


def is_crlf(text: str) -> bool:
    """Whether the text has line breaks and every one is CRLF."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


# A key at the beginning of a line: in double quotes, in single ones, or bare.
_TOP_KEY = lazy_pattern(
    r"""(?:"((?:[^"\\\n]|\\.)*+)"|'((?:[^'\n]|'')*+)'"""
    r"""|([^\s"'#&*!|>%@`\[\]{},-](?:[^:#\n]|:(?=\S)|(?<=\S)#)*?))[ \t]*:(?=\s|\Z)"""
)
# The comment at the end of a line, after a value that may hold `#` itself.
_COMMENT = lazy_pattern(
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
            spans.append((_key_written(match), number, number + 1))
            is_text_block = line[match.end() :].lstrip(" \t")[:1] in ("|", ">")
        elif spans and line[0] in " \t-" and line.strip():
            # In a block of text `#` begins no comment.
            is_comment = line.lstrip().startswith("#") and not is_text_block
            if not is_comment:
                spans[-1] = (*spans[-1][:2], number + 1)
    return spans


def _key_written(match: re.Match[str]) -> str:
    """The key of a match of _TOP_KEY without its quotes."""
    double_quoted, single_quoted, plain_key = match.groups()
    if double_quoted is None:
        return plain_key or (single_quoted or "").replace("''", "'")
    # A key with escapes that are not JSON's stays as written.
    with suppress(ValueError):
        return str(json.loads(f'"{double_quoted}"'))
    return double_quoted


def _by_lines(
    yaml_text: str, changes: Mapping[str, Sequence[str]], newline: str, order: Sequence[str]
) -> str:
    """Replace exactly the lines of the changed keys; a key without new lines is removed.

    New keys go where `order` says, or to the end.
    """
    lines = yaml_text.splitlines(keepends=True)
    for key, written in changes.items():
        new_lines = [line + newline for line in written]
        spans = _spans(lines)
        line_ranges = [(first, last) for name, first, last in spans if name == key]
        if not line_ranges:
            place = _place_of_new_key(key, spans, order, len(lines))
            lines[place:place] = new_lines
        # If a key occurs twice, the last one counts.
        for first, last in reversed(line_ranges):
            lines[first:last] = _with_comment_of(lines[first], new_lines, newline)
            new_lines = []
    return "".join(lines)


def _place_of_new_key(
    key: str, spans: Sequence[tuple[str, int, int]], order: Sequence[str], end: int
) -> int:
    """The line at which a new key is put: behind those that `order` names before it."""
    if key not in order:
        return end
    earlier_keys = order[: order.index(key)]
    return max((last for name, _, last in spans if name in earlier_keys), default=0)


def _with_comment_of(line: str, new_lines: Sequence[str], newline: str) -> list[str]:
    """`new_lines` for the key in `line`, the first of them with the comment behind it."""
    key = _TOP_KEY.match(line)
    comment = _COMMENT.match(line, key.end() if key else 0)
    if not new_lines or not comment:
        return list(new_lines)
    return [new_lines[0].removesuffix(newline) + comment[1] + newline, *new_lines[1:]]


def _by_round_trip(yaml_text: str, changes: Mapping[str, Sequence[str]], newline: str) -> str:
    """Change a header that cannot be edited line by line."""

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
