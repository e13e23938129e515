"""Which file a text belongs in, by the table of patterns (contract 003, 9)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from commonplace.clock import stamp
from commonplace.faces.bank import templates
from commonplace.text.tokens import words

BY_RULES, BY_LLM = "rule-based", "llm"
DEFAULT = "default"
_CONCEPTS, _SIMILAR = 10, 3
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)


@dataclass(slots=True)
class Placement:
    """Where a text goes and how that was found out; `content` is what goes there."""

    target_file: str
    content: str
    category: str
    confidence: float
    operation: str = "append"
    position: str | None = None
    method: str = BY_RULES
    concepts: list[str] = field(default_factory=list)
    related_files: list[str] = field(default_factory=list)
    similar_content: list[str] = field(default_factory=list)
    referenced_files: list[str] = field(default_factory=list)

    def as_data(self, moment: datetime) -> dict[str, Any]:
        """The placement in the form both ways of finding it share."""
        relationships = {
            "related_files": self.related_files,
            "similar_content": self.similar_content,
            "referenced_files": self.referenced_files,
        }
        metadata = {
            "timestamp": stamp(moment.replace(microsecond=0)),
            "category": self.category,
            "confidence": self.confidence,
            "concepts": self.concepts,
            "relationships": relationships,
            "processing_method": self.method,
        }
        return {
            "target_file": self.target_file,
            "operation": self.operation,
            "position": self.position,
            "content": self.content,
            "metadata": metadata,
        }


def place(kind: str, texts: Mapping[str, str], content: str) -> Placement:
    """Where `content` goes in a bank with these files."""
    category, confidence = categorise(content)
    targets = templates.data("categories")["targets"][kind]
    target = targets.get(category, targets[DEFAULT])
    return with_relations(Placement(target, content, category, confidence), texts)


def with_relations(placed: Placement, texts: Mapping[str, str]) -> Placement:
    """`placed` with what its text has to do with the rest of the bank."""
    text = placed.content
    patterns = [one for each in _patterns().values() for one in each]
    hits = sorted((hit.start(), hit[0].lower()) for one in patterns for hit in one.finditer(text))
    placed.concepts = list(dict.fromkeys(word for _, word in hits))[:_CONCEPTS]
    placed.referenced_files = [path for path in texts if path in text]
    same = _patterns().get(placed.category, ())
    others = {path: each for path, each in texts.items() if path != placed.target_file}
    placed.related_files = [path for path, each in others.items() if any(one.search(each) for one in same)]
    placed.similar_content = _similar(set(words(text)), texts)
    return placed


def categorise(text: str) -> tuple[str, float]:
    """(category, confidence): a category's name in the title, a pattern there, most hits in the whole text."""
    title = next((line.strip() for line in text.splitlines() if line.strip()), "").lstrip("#").strip()
    for name in _patterns():
        if _name(name).search(title):
            return name, 1.0
    for name, patterns in _patterns().items():
        if any(pattern.search(title) for pattern in patterns):
            return name, 0.9
    counts = {name: sum(len(each.findall(text)) for each in patterns) for name, patterns in _patterns().items()}
    best = max(counts, key=lambda name: counts[name])
    total = sum(counts.values())
    return (best, round(counts[best] / total, 2)) if total else (DEFAULT, 0.0)


def categories() -> list[str]:
    """All categories in their order, `default` apart."""
    return list(_patterns())


@cache
def _patterns() -> dict[str, list[re.Pattern[str]]]:
    rows = templates.data("categories")["category"]
    return {row["name"]: [_compiled(pattern) for pattern in row["patterns"]] for row in rows}


@cache
def _name(category: str) -> re.Pattern[str]:
    return _compiled(rf"\b{category}\b")


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def _similar(wanted: set[str], texts: Mapping[str, str]) -> list[str]:
    """The headings that share most words with a text, best first."""
    headings = dict.fromkeys(heading for text in texts.values() for heading in _HEADING.findall(text))
    shared = {heading: len(wanted & set(words(heading))) for heading in headings}
    return sorted((each for each in shared if shared[each]), key=lambda each: -shared[each])[:_SIMILAR]
