"""Which file of a bank a text belongs in, by a table of patterns or a language model, and how it is
put there (contract 003, 6 and 9)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from string import Template
from typing import TYPE_CHECKING, Any

from memoranda.clock import stamp
from memoranda.faces.arguments import has_surrogate
from memoranda.faces.bank.bank import bank_data, is_target, template_files
from memoranda.faces.texts import text_file
from memoranda.note.edit import breaks
from memoranda.note.frontmatter import split
from memoranda.note.grammar import scan
from memoranda.note.model import Heading
from memoranda.text.tokens import words

if TYPE_CHECKING:
    from memoranda.llm import Endpoint

OPERATIONS = ("append", "replace", "insert")
BY_RULES = "rule-based"
BY_LLM = "llm"
DEFAULT = "default"
# Where a language model may choose files that are in no template
_FREE_FOLDERS = (
    "doc/",
    "notes/",
)
# A longer text is a sentence, no category.
_CATEGORY_LENGTH = 40
# Concepts and similar headings named for one text.
_MOST_CONCEPTS = 10
_MOST_SIMILAR = 3
# A heading that says where a text goes: its signs, then its name.
_POSITION = re.compile(r"(#{1,6})(?:[ \t]+(.*?)(?:[ \t]+#+)?)?[ \t]*")
# Blank lines at the beginning of a block.
_BLANK_START = re.compile(r"(?:[ \t]*\r?\n)+")
# A heading of Markdown: its signs, then its text.
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
# The signs of a list item or a quoted line.
_LIST_OR_QUOTE_SIGNS = re.compile(r"^[\s>*+-]+")


@dataclass(slots=True)
class Placement:
    """A text, and where it goes.

    target: the file of the bank.
    content: the text.
    operation, position: how it is put there.
    category: the category that was found. None if the caller named the file.
    confidence: from 0 to 1.
    method: how the category was found.
    """

    target: str
    content: str
    operation: str = "append"
    position: str = ""
    category: str | None = None
    confidence: float = 0.0
    method: str = BY_RULES

    def apply(self, text: str) -> str:
        """The new text of a file that has `text` now.

        An inserted text goes to the end of the own text of the section `position`, before the next
        heading of any level. `position` is a heading, with or without its `#`s. A heading with
        exactly this text counts first, then one in another case. A missing section is added at the
        end.
        """
        if self.operation == "replace":
            return self.content
        if self.operation == "append":
            return append_block(text, self.content)
        newline, block = breaks(text or self.content, self.content)
        blank = _BLANK_START.match(block)
        if blank:
            block = block[blank.end() :]
        block = _without_blank_end(block)
        level, name = parse_position(self.position)
        headings = scan(text, split(text).body_at)[2]
        section = _section_named(headings, level, name)
        if section is None:
            return append_block(text, f"{'#' * (level or 2)} {name}{2 * newline}{block}")
        end = next((heading.line for heading in headings if heading.line > section.line), None)
        if end is None:
            text_below = ""
        else:
            text_below = text.split("\n", end - 1)[-1]
        before = _without_blank_end(text.removesuffix(text_below))
        with_block = before + 2 * newline + block + newline
        if text_below:
            return with_block + newline + text_below
        return with_block


def place_by_rules(kind: str, content: str) -> Placement:
    """Choose a file for `content` by the table of patterns.

    In this order: a category's name in the title, a pattern in the title, the most hits in the
    whole text. A name gives way to another category with several patterns in the title: `status
    code` is not about code.
    """
    title = (
        next((line.strip() for line in content.splitlines() if line.strip()), "")
        .lstrip("#")
        .strip()
    )
    hits = _hits(title)
    category_in_title = next(
        (name for name in hits if _compiled(rf"\b{name}\b").search(title)), None
    )
    best_category = max(hits, key=hits.__getitem__)
    if category_in_title is not None:
        own_hits = max(hits[category_in_title], 1)
        category, confidence = (
            (category_in_title, 1.0)
            if hits[best_category] <= own_hits
            else (best_category, hits[best_category] / (own_hits + hits[best_category]))
        )
    elif first := next((name for name in hits if hits[name]), None):
        category = first
        confidence = 0.9
    else:
        counts = _hits(content)
        best = max(counts, key=counts.__getitem__)
        total = sum(counts.values())
        category, confidence = (best, counts[best] / total) if total else (DEFAULT, 0.0)
    targets = bank_data("categories")["targets"][kind]
    target = targets.get(category, targets[DEFAULT])
    return Placement(target, content, category=category, confidence=round(confidence, 2))


def _hits(text: str) -> dict[str, int]:
    return {
        name: sum(len(pattern.findall(text)) for pattern in patterns)
        for name, patterns in category_patterns().items()
    }


@cache
def category_patterns() -> dict[str, list[re.Pattern[str]]]:
    """All categories in their order, `default` apart, with their patterns."""
    rows = bank_data("categories")["category"]
    return {row["name"]: list(map(_compiled, row["patterns"])) for row in rows}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def explain(placed: Placement, texts: Mapping[str, str], moment: datetime) -> dict[str, Any]:
    """The placement as data, with the bank's files that are related to its text."""
    text = placed.content
    same_category = category_patterns().get(placed.category or "", ())
    related_files = []
    for path, other_text in texts.items():
        if path != placed.target and any(pattern.search(other_text) for pattern in same_category):
            related_files.append(path)
    metadata = {
        "timestamp": stamp(moment.replace(microsecond=0)),
        "category": placed.category,
        "confidence": placed.confidence,
        "concepts": _concepts_in(text)[:_MOST_CONCEPTS],
        "relationships": {
            "related_files": related_files,
            "similar_content": _similar_headings(text, texts)[:_MOST_SIMILAR],
            "referenced_files": [path for path in texts if path in text],
        },
        "processing_method": placed.method,
    }
    place = {
        "target_file": placed.target,
        "operation": placed.operation,
        "position": placed.position or None,
    }
    return {**place, "content": text, "metadata": metadata}


def _concepts_in(text: str) -> list[str]:
    """The words in `text` that mean a category, each once, in order."""
    hits = []
    for patterns in category_patterns().values():
        for pattern in patterns:
            hits += [(hit.start(), hit[0].lower()) for hit in pattern.finditer(text)]
    return list(dict.fromkeys(word for _, word in sorted(hits)))


def _similar_headings(text: str, texts: Mapping[str, str]) -> list[str]:
    """The headings of a bank's files that share words with `text`, most words first."""
    own_words = set(words(text))
    shared_words: dict[str, int] = {}
    for other_text in texts.values():
        for _, heading in _HEADING.findall(other_text):
            shared_words[heading] = len(own_words & set(words(heading)))
    similar_headings = [heading for heading, count in shared_words.items() if count]
    return sorted(similar_headings, key=lambda heading: -shared_words[heading])


def place_by_llm(
    endpoint: Endpoint, kind: str, texts: Mapping[str, str], content: str
) -> Placement:
    """Where the model puts `content`. Raises NoAnswer when it cannot be asked or its answer breaks
    a rule.
    """
    excerpts = dict.fromkeys(
        [*template_files(kind), *(path for path in texts if path.startswith(_FREE_FOLDERS))]
    )
    lines = []
    for path in excerpts:
        headings = [text for signs, text in _HEADING.findall(texts.get(path, "")) if signs != "#"]
        lines.append(f"- {path}: {', '.join(headings) or 'no headings'}")
    values = {"type": kind, "files": "\n".join(lines), "categories": ", ".join(category_patterns())}
    system = Template(text_file("bank-llm.md")).substitute(values)
    return endpoint.ask(
        system, content, lambda answer: _checked_answer(answer, kind, texts, content)
    )


def _checked_answer(answer: Any, kind: str, texts: Mapping[str, str], content: str) -> Placement:
    """The placement an answer means. Raises ValueError for one that must not be followed."""
    if not isinstance(answer, dict):
        raise ValueError("it is no object")
    for key in ("target_file", "operation", "content", "category"):
        if not isinstance(answer.get(key), str):
            raise ValueError(f"{key} is missing or no text")
    target = answer["target_file"]
    category = answer["category"].strip()
    text = answer["content"]
    is_ours = target in template_files(kind) or target.startswith(_FREE_FOLDERS)
    if not is_target(target) or not is_ours:
        raise ValueError("its target_file is none of this bank")
    if not category or len(category) > _CATEGORY_LENGTH or not category.isprintable():
        raise ValueError("its category is no name")
    if not _lines(content) <= _lines(text):
        raise ValueError("it leaves out lines of the text")
    if has_surrogate(text):
        raise ValueError("its content is no valid text")
    operation, position = _safe_operation(answer, texts.get(target, ""))
    confidence = _confidence_in(answer)
    return Placement(target, text, operation, position, category, confidence, BY_LLM)


def _safe_operation(answer: Mapping[str, Any], text_before: str) -> tuple[str, str]:
    """The operation and position of a model's answer.

    It becomes `append` if the operation is impossible or would lose lines of the file.
    """
    operation = answer["operation"]
    position = answer.get("position")
    if operation == "insert" and _names_section(position):
        return "insert", str(position)
    if operation == "replace" and _lines(text_before) <= _lines(answer["content"]):
        return "replace", ""
    return "append", ""


def _names_section(position: Any) -> bool:
    """Whether a position is a heading."""
    if not isinstance(position, str) or has_surrogate(position):
        return False
    return bool(parse_position(position)[1])


def _confidence_in(answer: Mapping[str, Any]) -> float:
    """The confidence of an answer, from 0 to 1; 0.5 for one that gives none."""
    share = answer.get("confidence")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        return 0.5
    return round(float(share), 2)


def _lines(text: str) -> set[str]:
    return {
        _LIST_OR_QUOTE_SIGNS.sub("", line).strip() or line.strip()
        for line in text.splitlines()
        if line.strip()
    }


def append_block(text: str, block: str) -> str:
    """`text` with `block` at its end after one empty line; it ends with exactly one line break."""
    newline, block = breaks(text or block, block)
    before = text.rstrip("\r\n")
    return (before + 2 * newline if before else "") + block.rstrip("\r\n") + newline


def _section_named(headings: Sequence[Heading], level: int, name: str) -> Heading | None:
    """The first heading with exactly this text, or else the first in another case. None if none
    matches.

    level: the level of the heading; 0 means any.
    """
    fitting = [
        heading
        for heading in headings
        if level in (0, heading.level) and heading.text.strip().casefold() == name.casefold()
    ]
    for heading in fitting:
        if heading.text.strip() == name:
            return heading
    if fitting:
        return fitting[0]
    return None


def parse_position(position: str) -> tuple[int, str]:
    """(level or 0, text on one line) of the heading a position names; the text may be empty."""
    line = " ".join(position.split())
    match = _POSITION.fullmatch(line)
    if match:
        return (len(match[1]), (match[2] or "").strip())
    return (0, line)


def _without_blank_end(text: str) -> str:
    end = text.find("\n", len(text.rstrip(" \t\r\n")))
    if end < 0:
        return text
    return text[:end].removesuffix("\r")
