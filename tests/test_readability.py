"""What a linter cannot hold of how code is written (docs: CONTRIBUTING.md, "Rules").

Each rule has a limit for the whole of `src`, not zero: a few names and phrases are right where they
are. A broken assert lists the places, so that the newest of them can be reworded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parents[1] / "src"
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)

# Names that say nothing about the value they hold.
VAGUE_NAMES = re.compile(
    r"_*(?:each|ones?|others?|every|found|told|said|given|known|shown|kept|own|wanted|asked|made"
    r"|done|taken|left|held|meant|seen|named|noted|come|gone|been|what|which|there|here|things?"
    r"|stuff)_*"
)
# Turns of phrase that readers had to read twice.
ODD_PHRASES = re.compile(
    r"\b(anew|so many|is none|are none|there is none|stands? (?:in|beside|under|for|where)|lies?"
    r"|besides|as far as|is to be|are to be|but for|mend(?:s|ed)?|akin|no more|not any ?more"
    r"|of its own|by itself)\b"
)
# Ways to build a sentence that a reader has to take apart, and how many times docstrings may use
# each. The numbers may only fall.
FOREIGN_CONSTRUCTIONS: dict[str, tuple[re.Pattern[str], int]] = {
    # "What is left" as the subject: name it, "The steps that are left".
    "begins with What": (re.compile(r"\AWhat\b"), 0),
    # "is no note": "is not a note".
    "is no": (
        re.compile(
            r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer|more\b|matter|one\b|less)[a-z]+"
        ),
        0,
    ),
    # "Of a list the first": "the first of a list".
    "fronted Of": (re.compile(r"(?:\A|[.:;] )[Oo]f (?:an?|the|what|these|very|many|such)\b"), 0),
    # "those of the header": repeat the noun.
    "that of, those of": (re.compile(r"\b(?:that of|those of)\b"), 0),
    # "whoever comes next shall": "the next process must".
    "shall, whoever": (re.compile(r"\b(?:shall(?! I)|whoever)\b", re.IGNORECASE), 0),
}
MOST_VAGUE_NAMES = 0.006
MOST_TUPLE_ASSIGNMENTS = 0.0015
MOST_ODD_PHRASES = 0.004


class Source(NamedTuple):
    """One file of `src`: its path below it, its lines, its syntax nodes."""

    path: str
    lines: list[str]
    nodes: list[ast.AST]


@cache
def sources() -> list[Source]:
    files: list[Source] = []
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text("utf-8")
        nodes = list(ast.walk(ast.parse(text)))
        files.append(Source(str(path.relative_to(SOURCES)), text.splitlines(), nodes))
    return files


def names() -> Iterator[tuple[str, str]]:
    """(place, name) of each variable and parameter."""
    for source in sources():
        for node in source.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield f"{source.path}:{node.lineno}", node.id
            elif isinstance(node, ast.arg):
                yield f"{source.path}:{node.lineno}", node.arg


def text_of(node: ast.AST) -> str:
    """The text of a statement that is only a string: a docstring, or the note below a constant."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return ""
    return node.value.value if isinstance(node.value.value, str) else ""


def prose() -> Iterator[tuple[str, str]]:
    """(place, text) of each docstring and comment."""
    for source in sources():
        for node in source.nodes:
            text = text_of(node)
            if text:
                yield f"{source.path}:{node.lineno}", text
        for number, line in enumerate(source.lines, 1):
            code = line.strip()
            comment = code if code.startswith("#") else code.partition("  # ")[2]
            if comment:
                yield f"{source.path}:{number}", comment


def docstrings() -> Iterator[tuple[str, str]]:
    """(place, text in one line) of each docstring."""
    for source in sources():
        for node in source.nodes:
            if isinstance(node, DOCUMENTED):
                docstring = ast.get_docstring(node)
                if docstring:
                    line = node.body[0].lineno
                    yield f"{source.path}:{line}", " ".join(docstring.split())


def code_lines() -> int:
    """How many lines there are that are neither blank nor a comment."""
    count = 0
    for source in sources():
        for line in source.lines:
            count += bool(line.strip()) and not line.strip().startswith("#")
    return count


def is_tuple_assignment(node: ast.AST) -> bool:
    """Whether values are assigned at once: `a, b = x, y`. A swap does not count."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        return False
    target_names = {ast.unparse(element) for element in target.elts}
    return target_names != {ast.unparse(element) for element in node.value.elts}


def test_names_of_variables_say_what_they_hold() -> None:
    all_names = list(names())
    vague = [f"{place} {name}" for place, name in all_names if VAGUE_NAMES.fullmatch(name)]
    assert len(vague) <= MOST_VAGUE_NAMES * len(all_names), vague


def test_unlike_values_are_assigned_on_lines_of_their_own() -> None:
    assignments: list[str] = []
    for source in sources():
        for node in source.nodes:
            if isinstance(node, ast.Assign) and is_tuple_assignment(node):
                assignments.append(f"{source.path}:{node.lineno}")
    assert len(assignments) <= MOST_TUPLE_ASSIGNMENTS * code_lines(), assignments


def test_prose_is_free_of_phrases_that_are_read_twice() -> None:
    odd: list[str] = []
    lines = 0
    for place, text in prose():
        lines += text.count("\n") + 1
        odd += [f"{place} {match[0]}" for match in ODD_PHRASES.finditer(text)]
    assert len(odd) <= MOST_ODD_PHRASES * lines, odd


def test_docstrings_are_built_as_english_sentences() -> None:
    """A broken assert means our own rule of style (CONTRIBUTING.md, "Rules")."""
    for construction, (pattern, most) in FOREIGN_CONSTRUCTIONS.items():
        places = [
            f"{place} {match[0]}"
            for place, docstring in docstrings()
            for match in pattern.finditer(docstring)
        ]
        assert len(places) <= most, (construction, places)
