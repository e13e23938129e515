"""Which file a text belongs in, as a language model sees it; every answer is checked (contract 003, 9)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Template
from typing import TYPE_CHECKING, Any

from commonplace.faces.bank import templates
from commonplace.faces.bank.blocks import named
from commonplace.faces.bank.names import is_target
from commonplace.faces.bank.rules import BY_LLM, Placement, categories, with_relations
from commonplace.faces.texts import text_file
from commonplace.text.unicode import is_valid_unicode

if TYPE_CHECKING:
    from commonplace.llm import Endpoint

OPERATIONS = ("append", "replace", "insert")
_FOLDERS = ("doc/", "notes/")
_CATEGORY_LENGTH = 40
_HEADING = re.compile(r"^#{2,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_MARKER = re.compile(r"^[\s>*+-]+")


def ask(endpoint: Endpoint, kind: str, texts: Mapping[str, str], content: str) -> Placement:
    """Where the model puts `content`. Raises NoAnswer when it cannot be asked or its answer breaks a rule."""
    shown = dict.fromkeys([*templates.files(kind), *(path for path in texts if path.startswith(_FOLDERS))])
    files = "\n".join(f"- {path}: {_headings(texts.get(path, ''))}" for path in shown)
    system = Template(text_file("bank-llm.md")).substitute(type=kind, files=files, categories=", ".join(categories()))
    return with_relations(endpoint.ask(system, content, lambda answer: _checked(answer, kind, texts, content)), texts)


def _headings(text: str) -> str:
    return ", ".join(_HEADING.findall(text)) or "no headings"


def _checked(answer: Any, kind: str, texts: Mapping[str, str], content: str) -> Placement:
    """The placement an answer stands for. Raises ValueError for one that must not be followed."""
    if not isinstance(answer, dict):
        raise ValueError("it is no object")
    for key in ("target_file", "operation", "content", "category"):
        if not isinstance(answer.get(key), str):
            raise ValueError(f"{key} is missing or no text")
    target, category, text = answer["target_file"], answer["category"].strip(), answer["content"]
    if not is_target(target) or not (target in templates.files(kind) or target.startswith(_FOLDERS)):
        raise ValueError("its target_file is none of this bank")
    if not category or len(category) > _CATEGORY_LENGTH or not category.isprintable():
        raise ValueError("its category is no name")
    if not _lines(content) <= _lines(text):
        raise ValueError("it leaves out lines of the text")
    if not is_valid_unicode(text):
        raise ValueError("its content is no valid text")
    operation, position = answer["operation"], answer.get("position")
    has_position = isinstance(position, str) and bool(named(position)[1]) and is_valid_unicode(position)
    loses = operation == "replace" and not _lines(texts.get(target, "")) <= _lines(text)
    if operation not in OPERATIONS or (operation == "insert" and not has_position) or loses:
        operation = "append"
    return Placement(
        target, text, category, _confidence(answer.get("confidence")), operation,
        position if operation == "insert" else None, BY_LLM,
    )  # fmt: skip


def _lines(text: str) -> set[str]:
    """The lines of a text that say something, list and quote signs apart."""
    return {_MARKER.sub("", line).strip() or line.strip() for line in text.splitlines() if line.strip()}


def _confidence(value: Any) -> float:
    """A share from 0 to 1; a model that gives none is taken to be half sure."""
    is_share = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
    return round(float(value), 2) if is_share else 0.5
