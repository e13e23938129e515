"""Chooses the file of a bank for a text, and puts the text there (contract 003, 6 and 9).

A file is chosen by category: by a table of patterns (bank-categories.toml), or by a language model
whose answer is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.clock import stamp
from memoranda.faces.arguments import has_surrogate
from memoranda.faces.bank.bank import bank_data, is_target, template_files
from memoranda.faces.texts import text_file
from memoranda.note.edit import line_break_and_adapted
from memoranda.note.frontmatter import split
from memoranda.note.grammar import scan
from memoranda.note.model import Heading
from memoranda.note.names import as_shown, without_case
from memoranda.text.tokens import words

if TYPE_CHECKING:
    from memoranda.llm import Endpoint

OPERATIONS = ("append", "replace", "insert")
BY_RULES = "rule-based"
BY_LLM = "llm"
DEFAULT = "default"
# Folders in which a language model may choose files that are not in the template.
_FREE_FOLDERS = (
    "doc/",
    "notes/",
)
# A longer text is a sentence, not a category.
_MAX_CATEGORY_CHARACTERS = 40
# An explanation names at most this many concepts and similar headings.
_MAX_CONCEPTS = 10
_MAX_SIMILAR_HEADINGS = 3
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
    """A text, and where and how to write it.

    target: the path of the file in the bank.
    content: the text.
    operation: append, replace or insert.
    position: the heading of the section to insert into. "" for other operations.
    category: the category that was found. None if the caller named the file.
    confidence: how sure the category is, from 0 to 1.
    method: BY_RULES or BY_LLM.
    """

    target: str
    content: str
    operation: str = "append"
    position: str = ""
    category: str | None = None
    confidence: float = 0.0
    method: str = BY_RULES

    def apply(self, text: str) -> str:
        """Return the new text of a file that has `text` now.

        A text is inserted at the end of the section `position`, before the next heading of any
        level. `position` may be `## Goals` or `Goals`. A heading in another case counts if there is
        no exact one. A missing section is added at the end of the file.
        """
        if self.operation == "replace":
            return self.content
        if self.operation == "append":
            return append_block(text, self.content)

        return self._inserted(text)

    def _inserted(self, text: str) -> str:
        """Return the text of a file with the content in the section `position`.

        There is a blank line above and below the content.

        text: the present text of the file.
        """
        # The content gets the line breaks of the text, such as CRLF.
        newline, block = line_break_and_adapted(text or self.content, self.content)
        block = _without_blank_end(_without_blank_start(block))
        level, name = parse_position(self.position)
        headings = scan(text, split(text).body_at).headings
        section = _section_named(headings, level, name)
        if section is None:
            # A position without `#`, such as `Goals`, becomes a heading of the second level.
            heading = f"{'#' * (level or 2)} {name}"
            return append_block(text, f"{heading}{2 * newline}{block}")

        text_above, text_below = _split_at_end_of_section(text, section, headings)
        with_block = _without_blank_end(text_above) + 2 * newline + block + newline
        if text_below:
            return with_block + newline + text_below
        return with_block


def _split_at_end_of_section(
    text: str, section: Heading, headings: Sequence[Heading]
) -> tuple[str, str]:
    """Split the text of a file at the next heading below a section. Together they are the text.

    The second part is "" if the section is the last one.

    section: the heading of the section.
    headings: all headings of the file, in order.
    """
    lines_below = [heading.line for heading in headings if heading.line > section.line]
    if not lines_below:
        return text, ""
    next_heading_line = lines_below[0]
    # Line numbers begin with 1. The last part of this split is the rest from that line on.
    text_below = text.split("\n", next_heading_line - 1)[-1]
    return text.removesuffix(text_below), text_below


def place_by_rules(kind: str, content: str) -> Placement:
    """Choose the category of a text with the table of patterns, and the file of the category.

    kind: the kind of the bank. A category has another file in each kind.
    """
    # The whole text counts only if the title fits no category.
    choice = _by_title(content) or _by_hits(content)
    targets = bank_data("categories")["targets"][kind]
    target = targets.get(choice.category, targets[DEFAULT])
    confidence = round(choice.confidence, 2)
    return Placement(target, content, category=choice.category, confidence=confidence)


class _Choice(NamedTuple):
    """A category for a text.

    confidence: how sure the choice is, from 0.0 to 1.0.
    """

    category: str
    confidence: float


def _by_title(content: str) -> _Choice | None:
    """Choose a category by the title of a text, its first line. None if the title fits none.

    A category that the title names is chosen, unless more words of the title speak for another one.
    For example, `Status code of the endpoint` names the category `code`, but `status code` and
    `endpoint` both speak for `api`. If the title names no category, the first category with such a
    word is chosen.
    """
    title = _title_of(content)
    # How many words of the title speak for each category.
    hits = _category_hits(title)
    named_categories = [name for name in hits if _compiled(rf"\b{name}\b").search(title)]
    if not named_categories:
        for name, count in hits.items():
            if count:
                return _Choice(name, confidence=0.9)
        return None

    named = named_categories[0]
    # The name of the category counts as a hit, even if no pattern has it.
    named_hits = max(hits[named], 1)
    best = max(hits, key=hits.__getitem__)
    if hits[best] <= named_hits:
        return _Choice(named, confidence=1.0)
    # Both categories have words in the title, so the choice is less sure.
    return _Choice(best, confidence=hits[best] / (named_hits + hits[best]))


def _title_of(content: str) -> str:
    """Return the first line of a text that is not blank, without `#`. "" for a blank text."""
    for line in content.splitlines():
        if line.strip():
            return line.strip().lstrip("#").strip()
    return ""


def _by_hits(content: str) -> _Choice:
    """Choose the category with the most hits in a text, or the default category without any."""
    hits = _category_hits(content)
    total = sum(hits.values())
    if not total:
        return _Choice(DEFAULT, confidence=0.0)
    best = max(hits, key=hits.__getitem__)
    return _Choice(best, confidence=hits[best] / total)


def _category_hits(text: str) -> dict[str, int]:
    """Count the matches of each category's patterns in a text."""
    return {
        name: sum(len(pattern.findall(text)) for pattern in patterns)
        for name, patterns in category_patterns().items()
    }


@cache
def category_patterns() -> dict[str, list[re.Pattern[str]]]:
    """Return the patterns of each category except `default`, in the order of the table."""
    rows = bank_data("categories")["category"]
    return {row["name"]: list(map(_compiled, row["patterns"])) for row in rows}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern for words in any case."""
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def explain(placed: Placement, texts: Mapping[str, str], moment: datetime) -> dict[str, Any]:
    """Return a placement as data for the log, with the files and headings related to its text.

    texts: the files of the bank.
    """
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
        "concepts": _concepts_in(text)[:_MAX_CONCEPTS],
        "relationships": {
            "related_files": related_files,
            "similar_content": _similar_headings(text, texts)[:_MAX_SIMILAR_HEADINGS],
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
    """Return the words in `text` that match a category's pattern, without duplicates."""
    hits = []
    for patterns in category_patterns().values():
        for pattern in patterns:
            hits += [(hit.start(), hit[0].lower()) for hit in pattern.finditer(text)]
    return list(dict.fromkeys(word for _, word in sorted(hits)))


def _similar_headings(text: str, texts: Mapping[str, str]) -> list[str]:
    """Return the headings of a bank's files that share words with `text`, most words first."""
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
    """Let a language model choose a file for `content`.

    It may choose a file of the template for this kind of bank, even one that does not exist yet, or
    a file of the bank that is in a folder of notes.

    Raises NoAnswer if it cannot be asked, or if its answer breaks a rule.

    endpoint: the language model.
    texts: the files of the bank: path -> text.
    """
    note_files = [path for path in texts if path.startswith(_FREE_FOLDERS)]
    allowed_files = dict.fromkeys([*template_files(kind), *note_files])
    values = {
        "type": kind,
        "files": "\n".join(_line_of_file(path, texts.get(path, "")) for path in allowed_files),
        "categories": ", ".join(category_patterns()),
    }
    instructions = Template(text_file("bank-llm.md")).substitute(values)
    return endpoint.ask(
        instructions, content, lambda answer: _checked_answer(answer, kind, texts, content)
    )


def _line_of_file(path: str, text: str) -> str:
    """Return the line that tells a language model of a file: `- path: heading, heading`."""
    # `#` is the title of the file. The sections, into which texts go, are below it.
    headings = [heading for signs, heading in _HEADING.findall(text) if signs != "#"]
    return f"- {path}: {', '.join(headings) or 'no headings'}"


def _checked_answer(answer: Any, kind: str, texts: Mapping[str, str], content: str) -> Placement:
    """Convert the answer of a model to a placement.

    kind: the kind of the bank.
    texts: path of a file of the bank -> its text.
    content: the text to place.

    Raises ValueError for an answer that must not be followed: it names a file elsewhere, or it
    leaves out lines of the text.
    """
    if not isinstance(answer, dict):
        raise ValueError("it is no object")
    for key in ("target_file", "operation", "content", "category"):
        if not isinstance(answer.get(key), str):
            raise ValueError(f"{key} is missing or no text")
    target = answer["target_file"]
    category = answer["category"].strip()
    text = answer["content"]
    _check_target(target, kind)
    _check_category(category)
    # The lines of the text must all be in the answer, which may have more of them.
    if not _distinct_lines(content).issubset(_distinct_lines(text)):
        raise ValueError("it leaves out lines of the text")
    if has_surrogate(text):
        raise ValueError("its content is no valid text")

    # The text is safe. The operation must not remove other texts.
    operation, position = _safe_operation(answer, texts.get(target, ""))
    return Placement(
        target=target,
        content=text,
        operation=operation,
        position=position,
        category=category,
        confidence=_confidence_in(answer),
        method=BY_LLM,
    )


def _check_target(target: str, kind: str) -> None:
    """Raise ValueError unless a model may choose this file of a bank: one of its template, or a note.

    kind: the kind of bank, such as `project`.
    """
    is_allowed = target in template_files(kind) or target.startswith(_FREE_FOLDERS)
    if not is_target(target) or not is_allowed:
        raise ValueError("its target_file is none of this bank")


def _check_category(category: str) -> None:
    """Raise ValueError unless a text can be a category: short, on one line and not empty."""
    is_short = 1 <= len(category) <= _MAX_CATEGORY_CHARACTERS
    if not is_short or not category.isprintable():
        raise ValueError("its category is no name")


def _safe_operation(answer: Mapping[str, Any], text_before: str) -> tuple[str, str]:
    """Return the operation and the position of a model's answer.

    The operation becomes `append` if it is impossible or would lose lines of the file.

    text_before: the text of the file.
    """
    operation = answer["operation"]
    position = answer.get("position")
    if operation == "insert" and _names_section(position):
        return "insert", str(position)
    keeps_all_lines = _distinct_lines(text_before).issubset(_distinct_lines(answer["content"]))
    if operation == "replace" and keeps_all_lines:
        return "replace", ""
    return "append", ""


def _names_section(position: Any) -> bool:
    """Whether a position in a model's answer is the text of a heading."""
    if not isinstance(position, str) or has_surrogate(position):
        return False
    _, heading = parse_position(position)
    return heading != ""


def _confidence_in(answer: Mapping[str, Any]) -> float:
    """Return the confidence in a model's answer, from 0 to 1. It is 0.5 if the answer has none."""
    share = answer.get("confidence")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        return 0.5
    return round(float(share), 2)


def _distinct_lines(text: str) -> set[str]:
    """Return the lines of a text without signs of lists and quotes, and without blank lines.

    A line that has only such signs, as `---`, is returned as it is.
    """
    return {
        _LIST_OR_QUOTE_SIGNS.sub("", line).strip() or line.strip()
        for line in text.splitlines()
        if line.strip()
    }


def append_block(text: str, block: str) -> str:
    """Add a block at the end of a text, after an empty line. The result ends with one line break."""
    # An empty text takes over the line breaks of the block.
    newline, block = line_break_and_adapted(text or block, block)
    before = text.rstrip("\r\n")
    if before:
        before += 2 * newline
    return before + block.rstrip("\r\n") + newline


def _section_named(headings: Sequence[Heading], level: int, name: str) -> Heading | None:
    """Return the first heading with exactly this text, or else the first one in another case.

    The Unicode form and the number of blanks between words do not matter. None if no heading has
    the text.

    headings: the headings of a file, in order.
    level: the level of the heading. 0 means any.
    name: the text of the heading, with single blanks.
    """
    matching_headings = [
        heading
        for heading in headings
        if level in (0, heading.level)
        and without_case(_with_single_blanks(heading.text)) == without_case(name)
    ]
    for heading in matching_headings:
        if as_shown(_with_single_blanks(heading.text)) == as_shown(name):
            return heading
    if matching_headings:
        return matching_headings[0]
    return None


def parse_position(position: str) -> tuple[int, str]:
    """Return the level and the text of a heading: (2, "Goals") for `## Goals`.

    The level is 0 for a position without `#`. The text may be "".
    """
    line = _with_single_blanks(position)
    match = _POSITION.fullmatch(line)
    if match:
        return (len(match[1]), (match[2] or "").strip())
    return (0, line)


def _with_single_blanks(text: str) -> str:
    """Return a text on one line, with one blank between its words."""
    return " ".join(text.split())


def _without_blank_start(text: str) -> str:
    """Return a text without the blank lines at its beginning."""
    blank_lines = _BLANK_START.match(text)
    if blank_lines:
        return text[blank_lines.end() :]
    return text


def _without_blank_end(text: str) -> str:
    """Return a text without the line break and the blank lines at its end.

    Blanks at the end of the last line with words stay.
    """
    end_of_last_line = text.find("\n", len(text.rstrip(" \t\r\n")))
    if end_of_last_line < 0:
        return text
    return text[:end_of_last_line].removesuffix("\r")
