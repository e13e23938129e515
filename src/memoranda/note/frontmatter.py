"""Read the YAML header of a note, write new headers, and change single keys in place.

All values are read as texts, as they are written: `1.10` stays `1.10`. Lines in one of the usual
shapes are read by two patterns here, because PyYAML is slow. All other headers go to PyYAML.

Source: contract 000b, 2.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import cache
from typing import Any, Final, NamedTuple

from memoranda.clock import stamp
from memoranda.text.pattern import lazy_pattern

REMOVE: Final = object()
"""The value with which `set_keys` removes a key."""


class Parts(NamedTuple):
    """The header and the body of a file's text.

    yaml: the text between the two lines `---`; None if the file has no header.
    body_at: the offset in the text where the body begins.
    """

    yaml: str | None
    body_at: int


# Words without quotes that YAML 1.2 does not read as texts.
_TYPED: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
# The line that opens a header, at the very beginning of a file.
_OPENING = lazy_pattern(r"\ufeff?---[ \t]*\r?\n")
# The line that closes a header.
_CLOSING = lazy_pattern(r"\n(---|\.\.\.)[ \t]*(?:\r?\n|\Z)")
# A line with a key. Without such a line, `---` is a rule of Markdown, and `...` is a text.
_HAS_KEY = lazy_pattern(r"""^["']?\w[^\n]*:(?:\s|\Z)""", re.MULTILINE)


def split(text: str) -> Parts:
    """Split the text of a file into its header and its body.

    A header begins with a line `---` at the very start of the text. It ends with the next line
    `---`. A line `...` ends it, too, if it has a key by then. Without a header, the whole text is
    the body. A BOM at the start belongs to neither.
    """
    bom_length = 1 if text.startswith("\ufeff") else 0
    without_header = Parts(yaml=None, body_at=bom_length)
    opening = _OPENING.match(text)
    if opening is None:
        return without_header

    # From the line break of the opening line: in an empty header, the closing line is the next.
    closing = _CLOSING.search(text, opening.end() - 1)
    while closing:
        yaml_text = text[opening.end() : closing.start() + 1]
        # A line `...` above the first key is no end, but a text.
        if closing[1] == "---" or _HAS_KEY.search(yaml_text):
            return Parts(yaml_text, closing.end())
        closing = _CLOSING.search(text, closing.end() - 1)
    return without_header


# The first sign of a text that needs no quotes. (A negated set, because `re` is slow at compiling
# large ranges.)
_START = r"[^\x00-'),*:-@\[-^`{-\xa0-]"
# A text of one line that needs no quotes: it has no `: `, no ` #` and no `:` at its end.
_PLAIN = rf"{_START}[^:#]*+(?:(?::(?=[^ ])|(?<! )#)[^:#]*+)*+"
# An item of a list in brackets: `a`, `"a"` or `'a'`.
_IN_FLOW = rf"""(?:{_START}[^,:#\[\]{{}}]*+|"[^"\\]*"|'[^']*')"""
_KEY = r"[^\W\d][\w.\-]{0,99}(?: [\w.\-]{1,50}){0,6}"
# A line `key: value`. The value is bare, in double quotes, in single quotes, or a list in brackets.
# At most one of the groups after `key` matches; none for `key:` and `key: []`.
_ROW = lazy_pattern(
    rf"""(?P<key>{_KEY}):(?: +(?:(?P<bare>{_PLAIN})|(?:"(?P<double>[^"\\]*)"|'(?P<single>[^']*)'"""
    rf"""|\[ *(?P<items>{_IN_FLOW}(?: *,\ *{_IN_FLOW})*)? *\]) *))? *"""
)
# A line `- value`. Its groups: the indentation, then the value bare, in double or in single quotes.
_ITEM = lazy_pattern(rf"""( *)- +(?:({_PLAIN})|(?:"([^"\\]*)"|'([^']*)') *)""")
# One item of a list in brackets: bare, in double quotes or in single ones.
_FLOW_ITEM = lazy_pattern(rf""" *(?:({_START}[^,:#\[\]{{}}]*+)|"([^"\\]*)"|'([^']*)') *,?""")


LONGEST = 500_000
"""How many characters a header may have to be read."""


def parse(yaml_text: str) -> dict[str, Any]:
    """Read a header as a mapping of its keys to values.

    `a: 1.10` and `b: [x, true]` on two lines become `{"a": "1.10", "b": ["x", True]}`. Values are
    texts as they are written, except `true`, `false`, `null`, `~` and an empty value without
    quotes. An empty header is an empty mapping.

    Raises ValueError(reason) for text that is not YAML or not a mapping, or is longer than LONGEST.
    """
    if len(yaml_text) > LONGEST:
        raise ValueError(f"it has {len(yaml_text):,} characters, more than {LONGEST:,}")
    rows = _usual(yaml_text)
    if rows is None:
        return _full(yaml_text)
    return rows


def header_of(text: str) -> dict[str, Any]:
    """Read the header of a whole text as a mapping. Empty for a text without a header.

    Raises ValueError(reason) for a header that `parse` refuses.
    """
    yaml_text = split(text).yaml
    if yaml_text is None:
        return {}
    return parse(yaml_text)


def parse_typed(yaml_text: str) -> dict[str, Any]:
    """Parse like `parse`, but read numbers as numbers: `a: 1.5` becomes `{"a": 1.5}`.

    A number that JSON would write in another form, such as `1.50`, stays a text. Raises ValueError.
    """

    def number_or_text(text: str) -> Any:
        """Return the number that a plain text stands for, or else the text.

        The number must be written as JSON writes it: `1.10` and `007` stay texts.
        """
        # Most texts are words, for which the attempt would take long.
        if text[:1] not in "-0123456789":
            return text
        try:
            value = json.loads(text)
        except ValueError:
            return text
        if json.dumps(value) == text:
            return value
        return text

    return _full(yaml_text, number_or_text)


class AsWritten(str):
    """A text that the header has without quotes. `scalar` writes it without quotes again."""

    __slots__ = ()


def parse_as_written(yaml_text: str) -> dict[str, Any]:
    """Parse like `parse`, but make each text without quotes an `AsWritten`.

    `dump` then writes such texts as they were. Raises ValueError.
    """
    return _full(yaml_text, AsWritten)


# A line that begins with a key.
_KEY_LINE = lazy_pattern(r"""(?:"[^"]*"|'[^']*'|[^\s:#\-"'*&!|>%@`\[\]{},?][^:]*):(?:\s|\Z)""")


def looks_like_header(yaml_text: str) -> bool:
    """Whether somebody meant these lines as a header, even if they are not valid YAML.

    The first line must have a key. Each further line must have a key, be indented or a comment, or
    begin with `-`, `]` or `}`.
    """
    lines = [line for line in yaml_text.splitlines() if line.strip() and line[0] not in " \t#"]
    if not lines or not _KEY_LINE.match(lines[0]):
        return False
    return all(_KEY_LINE.match(line) or line[0] in "-]}" for line in lines)


def _usual(text: str) -> dict[str, Any] | None:
    """Read a header whose every line has a usual shape. Return None if PyYAML must read it."""
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
    """Reads the lines of a header in their usual shapes: `key: value`, `key:` and `- value`.

    rows: the keys and values that were read so far.
    """

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}
        # The last key, if it has no value on its line: the items of a list may follow.
        self._open_key: str | None = None
        # The indentation of the items of that list; None before the first item.
        self._indent: str | None = None

    def read(self, line: str) -> bool:
        """Add one line. Return False for a line in no usual shape, or with a key met before."""
        key, separator, value = line.partition(": ")
        # Most lines are this plain, so that they need no pattern.
        if separator and key.isidentifier() and len(key) < 100 and _is_plain_value(value):
            self._open_key = None
            if key in self.rows:
                return False
            self.rows[key] = _TYPED.get(value, value)
            return True

        # Any other line is a key with a quoted value, an item of a list, a blank or a comment.
        row = _ROW.fullmatch(line)
        if row:
            return self._add_row(line, row)
        item = _ITEM.fullmatch(line)
        if item:
            return self._add_item(item)
        is_blank = not line or line.isspace()
        return is_blank or line.lstrip().startswith("#")

    def _add_row(self, line: str, row: re.Match[str]) -> bool:
        """Add `key: value`, a match of _ROW. Return False for a key that was met before."""
        key = row["key"]
        self._open_key = None
        if key in self.rows:
            return False
        if row["bare"] is not None:
            text = row["bare"].rstrip()
            self.rows[key] = _TYPED.get(text, text)
        elif row["double"] is not None:
            self.rows[key] = row["double"]
        elif row["single"] is not None:
            self.rows[key] = row["single"]
        elif row["items"] is not None:
            self.rows[key] = [_item_value(*item) for item in _FLOW_ITEM.findall(row["items"])]
        elif line.rstrip().endswith("]"):
            # `key: []`
            self.rows[key] = []
        else:
            # `key:`, under which the items of a list may follow.
            self.rows[key] = None
            self._open_key = key
            self._indent = None
        return True

    def _add_item(self, item: re.Match[str]) -> bool:
        """Add `- value`, a match of _ITEM, to the list of the last key.

        Return False if that key has a value on its line, or if the item is indented differently
        from the first one.
        """
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
    """Whether a value is free of signs that mean something in YAML."""
    return value[:1].isalnum() and "#" not in value and ": " not in value and value[-1] not in ": "


def _item_value(plain_text: str, double_quoted: str, single_quoted: str) -> Any:
    """Return the value of a list's item. The two forms that it does not have are "".

    plain_text: the item without quotes, or "".
    double_quoted, single_quoted: the text between its quotes, or "".
    """
    if not plain_text:
        return double_quoted or single_quoted
    text = plain_text.rstrip()
    return _TYPED.get(text, text)


# How many values a header may hold, and how deep: YAML can make a large tree of a small text.
_MOST_NODES = 100_000
_MOST_LEVELS = 100
# A line that begins with this many dashes and question marks makes the YAML parser recurse too deep.
_MOST_SIGNS = 400
_LONG_RUN = lazy_pattern(rf"^[ \-?]{{{_MOST_SIGNS}}}", re.MULTILINE)


def _full(text: str, scalar_of: Callable[[str], Any] = str) -> dict[str, Any]:
    """Read a header by PyYAML, without its guesses about types. Raises ValueError.

    scalar_of: makes the value from a text without quotes.
    """
    import yaml

    if _LONG_RUN.search(text) or _is_too_deep(text):
        raise ValueError("it is nested too deeply")
    try:
        root = _composer()(text).get_single_node()
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise ValueError(_complaint(error)) from None

    # An empty header has no keys. Anything else than a mapping cannot be read.
    if root is None:
        return {}
    is_bare_text = root.id == "scalar" and not root.style
    if is_bare_text and root.value in ("", "~", "null"):
        return {}
    if root.id != "mapping":
        raise ValueError("it is no mapping of keys to values")
    rows: dict[str, Any] = _NodeReader(scalar_of).read(root, depth=0)
    return rows


def _complaint(error: Exception) -> str:
    """Say in words why a header cannot be read: `did not find expected ']' in line 3`.

    error: the error of PyYAML, or of a text that cannot be encoded.
    """
    problem = getattr(error, "problem", None) or "it is no text"
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(problem)
    # PyYAML counts from 0, and the line `---` is above the header.
    return f"{problem} in line {mark.line + 2}"


def _is_too_deep(text: str) -> bool:
    """Whether brackets are nested so deeply that they could overflow the stack of the YAML parser.

    The parser recurses in C. Nobody writes such a header.
    """
    # With so few brackets, they cannot be nested deeper, however they are placed.
    if text.count("[") + text.count("{") <= _MOST_LEVELS:
        return False
    depth = 0
    for sign in re.findall(r"[\[\]{}]", text):
        if sign in "[{":
            depth = depth + 1
        else:
            depth = max(depth - 1, 0)
        if depth > _MOST_LEVELS:
            return True
    return False


@cache
def _composer() -> Any:
    """Return a class that parses YAML, and guesses the type of `true`, `false` and `null` only.

    Its instances have `get_single_node`, which returns the document as nodes of PyYAML.
    """
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


class _NodeReader:
    """Converts the nodes of PyYAML to texts, flags, None, lists and mappings.

    scalar_of: makes the value from a text without quotes.
    """

    def __init__(self, scalar_of: Callable[[str], Any]):
        self._scalar_of = scalar_of
        # How many nodes may still be converted.
        self._remaining_nodes = _MOST_NODES

    def read(self, node: Any, depth: int) -> Any:
        """Convert a node. The value of an anchor is repeated at each of its aliases.

        depth: how many nodes this one is in.

        Raises ValueError if the nodes are too many or nested too deeply.
        """
        self._remaining_nodes -= 1
        if self._remaining_nodes < 0 or depth > _MOST_LEVELS:
            raise ValueError("it is nested too deeply or grows too large")
        if node.id == "scalar":
            return self._scalar(node)
        if node.id == "sequence":
            return [self.read(child, depth + 1) for child in node.value]
        # A mapping.
        rows: dict[str, Any] = {}
        for key, value in node.value:
            rows[self._key(key)] = self.read(value, depth + 1)
        return rows

    def _scalar(self, node: Any) -> Any:
        """Convert a node that has no nodes in it."""
        if node.tag == "!typed":
            return _TYPED[node.value]
        # The style is the kind of its quotes.
        if node.style:
            return node.value
        return self._scalar_of(node.value)

    def _key(self, node: Any) -> str:
        """Return the key of a mapping. Raises ValueError for a key that is a list or a mapping."""
        if node.id != "scalar":
            raise ValueError("a key is no text")
        name: str = node.value
        if self._scalar_of is AsWritten and not node.style:
            return AsWritten(name)
        return name


# Words that readers of YAML 1.1 or 1.2 do not read as texts, such as `no`, `0x1f` or `2026-01-31`.
_RETYPED = lazy_pattern(
    r"~|null|true|false|yes|no|on|off|y|n|<<|="
    r"|[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-f_]+|[-+]?\.inf|\.nan)"
    r"|(?:(?:[-+][0-9_]|[0-9])[0-9_]*(?::[0-9_]+)*\.?[0-9_]*|[-+]?\.[0-9_]+)(?:e[-+]?[0-9]+)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:(?:t|[ \t]+)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]*)?)?(?:[ \t]*(?:z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?",
    re.IGNORECASE,
)
_UNPRINTABLE = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff"
# A text that YAML reads unchanged without quotes.
_SAFE = lazy_pattern(
    rf"(?:[^\s\-?:,\[\]{{}}#&*!|>'\"%@`{_UNPRINTABLE}]|[\-?:](?=[^\s,\[\]{{}}]))[^{_UNPRINTABLE}]*"
)
# Signs that need an escape in double quotes.
_ESCAPED = lazy_pattern(f"[{_UNPRINTABLE}]")
# A day, perhaps with a time and a zone.
_MOMENT = lazy_pattern(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
_OUR_EVENTS = ["created", "updated", "accessed", "expires", "due", "fired", "acked", "last_used"]
# Keys whose value, if it is a time, is written without quotes although it is a text to us.
_TIME_KEYS = (
    "created",
    "updated",
    "modified",
    "date",
    "expires",
    *(f"{event}_at" for event in _OUR_EVENTS),
)


def scalar(value: Any) -> str:
    """Write a value in YAML, on one line: `tea`, `"1.10"`, `true`, `2026-01-31T12:00:00Z`.

    A text is written without quotes if readers of YAML 1.1 and 1.2 both read it back unchanged. If
    not, it is in double quotes with the escapes of JSON. A lone surrogate becomes U+FFFD.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
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
    """Write a number in YAML, which has its own words for infinity and NaN."""
    if isinstance(value, int) or math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return ".nan"
    if value > 0:
        return ".inf"
    return "-.inf"


def _reads_back_plain(text: str) -> bool:
    """Whether every reader of YAML reads `text` back unchanged if it is written without quotes."""
    if not _SAFE.fullmatch(text) or text != text.strip():
        return False
    # A colon would begin a value, and a `#` a comment.
    if text.endswith(":") or ": " in text or " #" in text:
        return False
    return not _RETYPED.fullmatch(text)


def _quote(value: Any) -> str:
    """Write a value as JSON, which YAML can read. Signs that YAML forbids are escaped."""
    return _ESCAPED.sub(_escape, json.dumps(value, ensure_ascii=False, default=str))


def _escape(match: re.Match[str]) -> str:
    """Return the escape of a sign, a match of _ESCAPED. A lone surrogate becomes U+FFFD."""
    sign = match[0]
    if "\ud800" <= sign <= "\udfff":
        return "\ufffd"
    return f"\\u{ord(sign):04x}"


def dump(mapping: Mapping[str, Any]) -> str:
    """Write a mapping as YAML, without the `---` lines.

    `{"a": 1, "b": ["x"]}` becomes the lines `a: 1`, `b:` and `  - x`.
    """
    lines_by_key = {key: _lines(_key(key), value, indent="") for key, value in mapping.items()}
    return _join_lines(lines_by_key)


def _key(key: Any) -> str:
    """Return a key as a text. An `AsWritten` stays one."""
    if isinstance(key, AsWritten):
        return key
    return str(key)


def _flow(value: Any) -> str:
    """Write a value on one line, as JSON: `{"a": ["x"]}`. An `AsWritten` gets no quotes."""
    if isinstance(value, Mapping):
        pairs = [f"{_flow(key)}: {_flow(item)}" for key, item in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, AsWritten) and not _FLOW_SIGNS.search(value):
        return str(value)
    return _quote(value)


# Signs that would end a bare item of a list in brackets.
_FLOW_SIGNS = lazy_pattern(r"[,\[\]{}\n]|:\Z")


def _lines(key: str, value: Any, indent: str) -> list[str]:
    """Return the lines of a key and its value, without line breaks.

    The members of a mapping or list are on lines of their own.

    indent: the spaces before the key.
    """
    # At the start of a line --- and ... would end the document.
    would_end_document = key.startswith(("---", "..."))
    written_key = _quote(key) if would_end_document else scalar(key)
    name = f"{indent}{written_key}:"
    # An empty mapping or list fits on the line of its key.
    if isinstance(value, Mapping):
        inner = _lines_of_mapping(value, indent + "  ")
        return [name, *inner] if inner else [f"{name} {{}}"]
    if isinstance(value, (list, tuple, set, frozenset)):
        inner = []
        for item in value:
            inner += _item_lines(item, indent)
        return [name, *inner] if inner else [f"{name} []"]
    if isinstance(value, str) and key in _TIME_KEYS and _MOMENT.fullmatch(value):
        return [f"{name} {value}"]
    return [f"{name} {scalar(value)}"]


def _lines_of_mapping(mapping: Mapping[Any, Any], indent: str) -> list[str]:
    """Return the lines of a mapping's keys and values, each after `indent`."""
    lines: list[str] = []
    for key, value in mapping.items():
        lines += _lines(_key(key), value, indent)
    return lines


def _item_lines(item: Any, indent: str) -> list[str]:
    """Write one item of a list as YAML lines.

    indent: the indentation of the list's key.
    """
    if isinstance(item, Mapping) and item:
        first, *other_lines = _lines_of_mapping(item, indent + "    ")
        return [f"{indent}  - {first.lstrip(' ')}", *other_lines]
    if isinstance(item, (Mapping, list, tuple)):
        return [f"{indent}  - {_flow(item)}"]
    return [f"{indent}  - {scalar(item)}"]


def set_keys(text: str, changes: Mapping[str, Any], order: Sequence[str] = ()) -> str:
    """Set top-level keys in the header of a file's text. All other characters stay.

    A key that already has the value keeps its spelling, and a changed key keeps its comment. A file
    without a header gets one.

    changes: the new value of each key; REMOVE takes the key out.
    order: the usual order of keys. A new key is put after the keys of the header that are before it
        in `order`. A new key that is not in `order` is put at the end.

    Raises ValueError if the present header cannot be read.
    """
    yaml_text, body_at = split(text)
    new_lines = {key: _changed_lines(key, value) for key, value in changes.items()}
    written = _join_lines(new_lines)
    if yaml_text is None:
        return text[:body_at] + _new_header(written, is_crlf(text)) + text[body_at:]

    before = parse(yaml_text)
    after = _with_changes(before, changes, written)
    # Lines whose value stays keep their spelling.
    differing_lines = {
        key: key_lines
        for key, key_lines in new_lines.items()
        # REMOVE here means a header without the key.
        if before.get(key, REMOVE) != after.get(key, REMOVE)
    }
    if not differing_lines:
        return text

    # The header begins behind the line `---`.
    start = text.index("\n") + 1
    end = start + len(yaml_text)
    newline = "\r\n" if text[start - 2] == "\r" else "\n"
    # Replacing lines keeps the most, but fails for headers in unusual shapes.
    changed = text[:start] + _by_lines(yaml_text, differing_lines, newline, order) + text[end:]
    if _reads_as(changed, after):
        return changed
    changed = text[:start] + _by_round_trip(yaml_text, differing_lines, newline) + text[end:]
    if _reads_as(changed, after):
        return changed
    raise ValueError(f"the frontmatter is too unusual to set {', '.join(changes)} in it")


def _with_changes(
    before: Mapping[str, Any], changes: Mapping[str, Any], written: str
) -> dict[str, Any]:
    """Return the values of a header after a change, as `parse` will read them.

    before: the values before the change.
    changes: the new value of each key; REMOVE takes the key out.
    written: the lines of the new values. They are read back, because a number that the caller sets,
        such as 1.5, is a text in a header.
    """
    new_values = parse(written)
    after = {key: value for key, value in before.items() if key not in changes}
    for key in changes:
        if str(key) in new_values:
            after[key] = new_values[str(key)]
    return after


def _join_lines(lines_by_key: Mapping[str, list[str]]) -> str:
    """Return the lines of all keys as one text."""
    all_lines: list[str] = []
    for lines in lines_by_key.values():
        all_lines += lines
    return "".join([f"{line}\n" for line in all_lines])


def _changed_lines(key: str, value: Any) -> list[str]:
    """Return the lines of a key for a new value. REMOVE gives no lines."""
    if value is REMOVE:
        return []
    return _lines(str(key), value, indent="")


def _new_header(written: str, has_crlf: bool) -> str:
    """Return the header for a file that has none, with its `---` lines.

    written: the lines of its keys. If empty, the file gets no header.
    has_crlf: whether the lines end with `\\r\\n`.
    """
    if not written:
        return ""
    header = f"---\n{written}---\n"
    if has_crlf:
        return header.replace("\n", "\r\n")
    return header


def _reads_as(text: str, expected: dict[str, Any]) -> bool:
    """Whether the text of a file has a header, with exactly the expected keys and values."""
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
    """Return (key, its lines as written) for each top-level key of a header.

    `a: 1`, `b:` and `  - x` on three lines become `[("a", "a: 1\\n"), ("b", "b:\\n  - x\\n")]`. The
    header need not be valid YAML. Comments and blank lines between keys are left out.
    """
    lines = yaml_text.splitlines(keepends=True)
    return [(span.key, "".join(lines[span.start : span.end])) for span in _spans(lines)]


class _Span(NamedTuple):
    """The lines of a top-level key of a header.

    key: the name of the key.
    start, end: the index of its first line, and the index after its last.
    """

    key: str
    start: int
    end: int


def _spans(lines: list[str]) -> list[_Span]:
    """Find the lines of each top-level key. Comments below a key's value are not part of them."""
    spans: list[_Span] = []
    is_text_block = False
    for index, line in enumerate(lines):
        match = _TOP_KEY.match(line)
        if match:
            spans.append(_Span(_unquoted_key(match), index, index + 1))
            # `key: |` and `key: >` begin a text of several lines.
            is_text_block = line[match.end() :].lstrip(" \t")[:1] in ("|", ">")
        elif spans and line[0] in " \t-" and line.strip():
            # In such a text, `#` does not begin a comment.
            is_comment = line.lstrip().startswith("#") and not is_text_block
            if not is_comment:
                spans[-1] = spans[-1]._replace(end=index + 1)
    return spans


def _unquoted_key(match: re.Match[str]) -> str:
    """Return the key of a match of _TOP_KEY without its quotes."""
    double_quoted, single_quoted, plain_key = match.groups()
    if double_quoted is None:
        return plain_key or (single_quoted or "").replace("''", "'")
    # A key with escapes that JSON does not have stays as written.
    with suppress(ValueError):
        return str(json.loads(f'"{double_quoted}"'))
    return double_quoted


def _by_lines(
    yaml_text: str, changes: Mapping[str, Sequence[str]], newline: str, order: Sequence[str]
) -> str:
    """Change a header by replacing the lines of the changed keys.

    yaml_text: the header between its two lines of `---`.
    changes: the new lines of each key; no lines remove the key.
    newline: the line break of the file.
    order: the usual order of keys, by which a new key gets its place in the header.
    """
    lines = yaml_text.splitlines(keepends=True)
    for key, written in changes.items():
        new_lines = [line + newline for line in written]
        spans = _spans(lines)
        spans_of_key = [span for span in spans if span.key == key]
        if not spans_of_key:
            place = _place_of_new_key(key, spans, order, len(lines))
            lines[place:place] = new_lines
            continue
        # A header may have a key twice. YAML counts the last: it gets the new lines, and the others
        # are removed. Going backwards, the lines above keep their places.
        *repeated, last = spans_of_key
        lines[last.start : last.end] = _with_comment_of(lines[last.start], new_lines, newline)
        for span in reversed(repeated):
            del lines[span.start : span.end]
    return "".join(lines)


def _place_of_new_key(key: str, spans: Sequence[_Span], order: Sequence[str], end: int) -> int:
    """Return the line index where a new key is inserted. `end` means the end of the header.

    The key goes behind all keys that are before it in `order`.

    spans: the keys that the header has, with their lines.
    """
    if key not in order:
        return end
    earlier_keys = order[: order.index(key)]
    ends_of_earlier_keys = [span.end for span in spans if span.key in earlier_keys]
    return max(ends_of_earlier_keys, default=0)


def _with_comment_of(line: str, new_lines: Sequence[str], newline: str) -> list[str]:
    """Return `new_lines`, with the comment at the end of the old `line` added to the first.

    newline: the line break of the file.
    """
    key = _TOP_KEY.match(line)
    comment = _COMMENT.match(line, key.end() if key else 0)
    if not new_lines or not comment:
        return list(new_lines)
    first_line = new_lines[0].removesuffix(newline)
    return [first_line + comment[1] + newline, *new_lines[1:]]


def _by_round_trip(yaml_text: str, changes: Mapping[str, Sequence[str]], newline: str) -> str:
    """Change a header, whose lines may be in any shape, by ruamel.yaml.

    yaml_text: the header between its two lines of `---`.
    changes: the new lines of each key; no lines remove the key.
    newline: the line break of the file.
    """

    def change(rows: Any, load: Callable[[str], Any]) -> None:
        """Change the keys of a header.

        rows: the mapping as ruamel.yaml holds it.
        load: reads a text of YAML.
        """
        for key, lines in changes.items():
            if lines:
                rows[key] = load("\n".join(lines))[key]
            else:
                rows.pop(key, None)

    return round_trip(yaml_text, change).replace("\r\n", "\n").replace("\n", newline)


def round_trip(yaml_text: str, change: Callable[[Any, Callable[[str], Any]], None]) -> str:
    """Change YAML by ruamel.yaml, which keeps comments, the order of keys, and quotes.

    yaml_text: the YAML to change, a mapping or an empty text.
    change: changes the mapping that it gets first. Its second argument is the function that reads
        a text of YAML.

    Raises ValueError if ruamel.yaml cannot read or write the YAML.
    """
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
