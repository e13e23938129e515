"""The text of one list item: an observation, a relation, or neither (contract 000b, 3.2 and 3.3).

Texts and names that Markdown cannot hold stand coded, as a JSON string in a code span (contract 002, 5.2).
"""

from __future__ import annotations

import json
import re

from commonplace.note.links import parse_link
from commonplace.note.model import Observation, Relation
from commonplace.text.unicode import SURROGATES

_CATEGORY = re.compile(r"\[([^\[\]()]{1,64})\]\s+(?=\S)").match
_CHECKBOX = re.compile(r"\[(?:[xX_]|[^\w\[\]]\ufe0f?)\](?:\s|$)").match
_CLOCK = r"[0-9]+(?::[0-9]{2})+(?:[.,][0-9]+)?"
_CLOCK_VALUE = re.compile(rf"{_CLOCK}(?:\s*(?:-->|->|[-–—])\s*{_CLOCK})?").fullmatch
# Marks of Latin and Indic scripts and of Thai are part of a letter.
_TAG_SIGNS = r"\w/\-\u0300-\u036f\u0900-\u0963\u0966-\u0eff"
_TAGS = re.compile(rf"#(?<!\S#)[{_TAG_SIGNS}]++(?:#[{_TAG_SIGNS}]++)*+").findall
_GROUP = r"\(([^()]*+(?:\([^()]*+\)[^()]*+)*+)\)"
_CODED = r'`("[^`]*")`'
_RELATION = re.compile(
    rf"""(?:([^\W\d][\w\-./:+]*)|"([^"\[\]`\\]+)"|{_CODED})[ \t]+(?:\[\[([^\[\]\n]+)\]\]|{_CODED})(?:[ \t]*{_GROUP})?"""
).fullmatch
_PLAIN_TARGET = re.compile(r"[^\[\]|#:\\]+").fullmatch
_CODED_TEXT = re.compile(_CODED).fullmatch
_SURROGATES = re.compile(f"[{SURROGATES}]")


def read_relation(text: str, number: int) -> Relation | None:
    """The relation of an item `type [[target]] (context)`, None when it is none. The target is empty for `[[]]`-like
    ones; a coded name may be the empty string."""
    word, opening, rest = text.partition(" [[")
    is_plain = opening and word.isascii() and word.isidentifier() and rest[-2:] == "]]"
    if is_plain and _PLAIN_TARGET(rest, 0, len(rest) - 2):
        return Relation(word, rest[:-2].strip(), None, None, number, True)
    match = _RELATION(text)
    if match is None:
        return None
    word, quoted, coded_type, inner, coded_target, context = match.groups()
    kind = word or (quoted.strip() if quoted else _decoded(coded_type))
    if kind is None or (quoted and not kind):
        return None
    project, target = (None, _decoded(coded_target)) if coded_target is not None else parse_link(inner)
    if target is None or (inner and inner[-1] == "\\"):
        return None
    return Relation(kind, target, (context or "").strip() or None, project, number, True)


def coded_text(text: str) -> str | None:
    """The string an item that is wholly `` `"…"` `` stands for; None for plain text."""
    match = _CODED_TEXT(text)
    return _decoded(match[1]) if match else None


def _decoded(code: str) -> str | None:
    try:
        text = json.loads(code)
    except ValueError:
        return None
    return _SURROGATES.sub("\ufffd", text) if isinstance(text, str) else None


def observation(text: str, masked: str, number: int) -> Observation | None:
    """The observation of an item `[category] content #tag (context)`; `masked` hides code spans."""
    if masked[:1] != "[":
        return None
    end = masked.find("]")
    if end > 2 and masked[1:end].isalpha() and end < 66 and masked[end + 1 : end + 2] == " " != masked[end + 2]:
        category, start = text[1:end], end + 2  # the usual case: a word, a blank
    elif (match := _CATEGORY(masked)) and _is_category(category := text[1 : match.end(1)].strip()):
        start = match.end()
    else:
        return None
    return _observation(category, text, text[start:], masked[start:], number)


def tagged(text: str, masked: str, number: int, *, is_any: bool = False) -> Observation | None:
    """The observation without category that an item with a tag is: no checkbox, no wikilink. `is_any` takes every item,
    as the section `Observations` of project `graph` does."""
    if not is_any and ("#" not in masked or "[[" in masked or _CHECKBOX(text)):
        return None
    found = _observation(None, text, text, masked, number)
    return found if found.tags or is_any else None


def _is_category(name: str) -> bool:
    """Whether the text in brackets is a category: no checkbox, footnote, clock value or escaped bracket."""
    if len(name) < 3:
        sign = name.replace("\ufe0f", "")
        if not sign or (len(sign) == 1 and (sign in "xX" or not sign.isalnum())):
            return False
    first = name[0]
    return not (first == "^" or name[-1] == "\\" or (first in "0123456789" and _CLOCK_VALUE(name)))


def _observation(category: str | None, text: str, content: str, masked: str, number: int) -> Observation:
    context = None
    if masked[-1:] == ")":
        start = _group_start(masked)
        if start > 0 and (inner := content[start + 1 : -1].strip()) and (rest := content[:start].rstrip()):
            context, content, masked = inner, rest, masked[: len(rest)]
    tags = _tags(masked) if "#" in masked else ()
    return Observation(category, content, tags, context, number, text)


def _group_start(text: str) -> int:
    """Where the parenthesised group at the very end begins; -1 when its parentheses do not match."""
    depth = 0
    for at in (sign.start() for sign in reversed([*re.finditer(r"[()]", text)])):
        depth += 1 if text[at] == ")" else -1
        if not depth:
            return at
    return -1


def _tags(text: str) -> tuple[str, ...]:
    """Tags in order, each once; `#12` is none, nor is what is glued to it."""
    at = text.find("#")
    if (not at or text[at - 1] == " ") and text.find("#", at + 1) < 0:
        tag = text[at + 1 :].partition(" ")[0]  # the usual case: one tag, of letters
        if tag.isalpha():
            return (tag,)
    found: dict[str, str] = {}
    for run in _TAGS(text):
        for tag in run[1:].split("#"):
            if tag.isdecimal():
                break
            found.setdefault(tag.casefold(), tag)
    return tuple(found.values())
