"""What a linter cannot hold of how code is written (docs: CONTRIBUTING.md, "Rules").

Each rule has a limit for a whole folder, not zero: a few names and phrases are right where they
are. A broken assert lists the places, so that the newest of them can be reworded.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "bench", "tools", "samples")
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
# Of each kind of expression, how many a thousand lines of code may have.
MOST_EXPRESSIONS = {
    "conditional expression": 15.0,
    "conditional expression in another": 0.0,
    "walrus": 2.0,
    "comprehension in another, or with two loops": 0.75,
}
MOST_LONG_LINES = 0.0055
# Syntax nodes a line: of half of the functions of a folder, and of nine in ten. They may only fall.
MOST_NODES_OF_HALF = 10.05
MOST_NODES = 14.05
# Ways through a function: of 99 functions in a hundred, and of the one with the most.
MOST_COMPLEXITY = 12
HIGHEST_COMPLEXITY = 18
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.match_case,
)
SHORTEST_FUNCTION = 5
"""Lines; in shorter functions the nodes a line say little."""


@dataclass
class Reading:
    """The facts about the Python files below one folder of the repository.

    names: (place, name) of each variable and parameter.
    prose: (place, text) of each docstring and comment.
    docstrings: (place, text in one line) of each docstring.
    tuple_assignments: the places where values are assigned at once.
    expressions: the places of each kind in MOST_EXPRESSIONS.
    densities: (syntax nodes a line, place) of each function.
    complexities: (ways through it, place) of each function.
    long_lines: the places of lines of code over 100 characters.
    format_skips: the places of lines that the formatter leaves alone.
    code_lines: how many lines are neither blank nor a comment.
    """

    names: list[tuple[str, str]] = field(default_factory=list)
    prose: list[tuple[str, str]] = field(default_factory=list)
    docstrings: list[tuple[str, str]] = field(default_factory=list)
    tuple_assignments: list[str] = field(default_factory=list)
    expressions: dict[str, list[str]] = field(
        default_factory=lambda: {kind: [] for kind in MOST_EXPRESSIONS}
    )
    densities: list[tuple[float, str]] = field(default_factory=list)
    complexities: list[tuple[int, str]] = field(default_factory=list)
    long_lines: list[str] = field(default_factory=list)
    format_skips: list[str] = field(default_factory=list)
    code_lines: int = 0

    def add(self, path: Path) -> None:
        """Read one file."""
        text = path.read_text("utf-8")
        lines = text.splitlines()
        place = str(path.relative_to(ROOT))
        prose_lines: set[int] = set()
        for node in ast.walk(ast.parse(text)):
            place_of_node = f"{place}:{getattr(node, 'lineno', 0)}"
            self._add_node(node, place_of_node)
            self._add_expression(node, place_of_node)
            if isinstance(node, FUNCTIONS):
                place_of_function = f"{place_of_node} {node.name}"
                self._add_density(node, lines, place_of_function)
                self.complexities.append((complexity_of(node), place_of_function))
            if text_of(node):
                prose_lines.update(range(node.lineno, node.end_lineno + 1))
            if isinstance(node, DOCUMENTED):
                docstring = ast.get_docstring(node)
                if docstring:
                    line = node.body[0].lineno
                    self.docstrings.append((f"{place}:{line}", " ".join(docstring.split())))
        for number, line in enumerate(lines, 1):
            code = line.strip()
            is_code = bool(code) and not code.startswith("#")
            self.code_lines += is_code
            if is_code and len(line) > 100 and number not in prose_lines:
                self.long_lines.append(f"{place}:{number}")
            if code.endswith(("# fmt: " + "skip", "# fmt: " + "off")):
                self.format_skips.append(f"{place}:{number}")
            comment = code if code.startswith("#") else code.partition("  # ")[2]
            if comment:
                self.prose.append((f"{place}:{number}", comment))

    def _add_expression(self, node: ast.AST, place: str) -> None:
        if isinstance(node, ast.NamedExpr):
            self.expressions["walrus"].append(place)
        elif isinstance(node, ast.IfExp):
            self.expressions["conditional expression"].append(place)
            if holds_another(node, (ast.IfExp,)):
                self.expressions["conditional expression in another"].append(place)
        elif is_nested_comprehension(node):
            self.expressions["comprehension in another, or with two loops"].append(place)

    def _add_density(self, function: ast.AST, lines: list[str], place: str) -> None:
        body = list(function.body)
        if text_of(body[0]):
            body.pop(0)
        if not body:
            return
        stripped = [line.strip() for line in lines[body[0].lineno - 1 : body[-1].end_lineno]]
        size = sum(bool(line) and not line.startswith("#") for line in stripped)
        if size >= SHORTEST_FUNCTION:
            nodes = sum(len(list(ast.walk(statement))) for statement in body)
            self.densities.append((nodes / size, place))

    def _add_node(self, node: ast.AST, place: str) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self.names.append((place, node.id))
        elif isinstance(node, ast.arg):
            self.names.append((place, node.arg))
        elif is_tuple_assignment(node):
            self.tuple_assignments.append(place)
        elif text_of(node):
            self.prose.append((place, text_of(node)))


@cache
def reading(folder: str) -> Reading:
    facts = Reading()
    for path in sorted((ROOT / folder).rglob("*.py")):
        facts.add(path)
    return facts


def text_of(node: ast.AST) -> str:
    """The text of a statement that is only a string: a docstring, or the note below a constant."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return ""
    return node.value.value if isinstance(node.value.value, str) else ""


def holds_another(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    """Whether another node of these kinds is inside."""
    return any(child is not node and isinstance(child, kinds) for child in ast.walk(node))


def complexity_of(function: ast.AST) -> int:
    """How many ways lead through a function, without those through functions defined in it."""
    ways = 1
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, BRANCHES):
            ways += 1
        elif isinstance(node, ast.comprehension):
            ways += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            ways += len(node.values) - 1
        pending.extend(ast.iter_child_nodes(node))
    return ways


def is_nested_comprehension(node: ast.AST) -> bool:
    """Whether a comprehension has two loops or another comprehension in it."""
    if not isinstance(node, COMPREHENSIONS):
        return False
    return len(node.generators) > 1 or holds_another(node, COMPREHENSIONS)


def is_tuple_assignment(node: ast.AST) -> bool:
    """Whether values are assigned at once: `a, b = x, y`. A swap does not count."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        return False
    target_names = {ast.unparse(element) for element in target.elts}
    return target_names != {ast.unparse(element) for element in node.value.elts}


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_of_variables_say_what_they_hold(folder: str) -> None:
    names = reading(folder).names
    vague = [f"{place} {name}" for place, name in names if VAGUE_NAMES.fullmatch(name)]
    assert len(vague) <= MOST_VAGUE_NAMES * len(names), vague


@pytest.mark.parametrize("folder", FOLDERS)
def test_unlike_values_are_assigned_on_lines_of_their_own(folder: str) -> None:
    facts = reading(folder)
    most = MOST_TUPLE_ASSIGNMENTS * facts.code_lines
    assert len(facts.tuple_assignments) <= most, facts.tuple_assignments


@pytest.mark.parametrize("folder", FOLDERS)
def test_prose_is_free_of_phrases_that_are_read_twice(folder: str) -> None:
    odd: list[str] = []
    lines = 0
    for place, text in reading(folder).prose:
        lines += text.count("\n") + 1
        odd += [f"{place} {match[0]}" for match in ODD_PHRASES.finditer(text)]
    assert len(odd) <= MOST_ODD_PHRASES * lines, odd


@pytest.mark.parametrize("kind", MOST_EXPRESSIONS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_expressions_that_are_hard_to_read_are_rare(folder: str, kind: str) -> None:
    """A broken assert means our own rule of style (CONTRIBUTING.md, "Rules")."""
    facts = reading(folder)
    places = facts.expressions[kind]
    assert len(places) * 1000 <= MOST_EXPRESSIONS[kind] * facts.code_lines, places


@pytest.mark.parametrize("folder", FOLDERS)
def test_lines_hold_few_things(folder: str) -> None:
    """A broken assert means our own rule of style (CONTRIBUTING.md, "Rules")."""
    densities = sorted(reading(folder).densities)
    nodes_of_half, _ = densities[len(densities) // 2]
    assert nodes_of_half <= MOST_NODES_OF_HALF

    densest = densities[int(len(densities) * 0.9) :]
    nodes, _ = densest[0]
    assert nodes <= MOST_NODES, densest[-20:]


@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_have_few_ways_through_them(folder: str) -> None:
    """A broken assert means our own rule of style (CONTRIBUTING.md, "Rules")."""
    complexities = sorted(reading(folder).complexities)
    highest, place = complexities[-1]
    assert highest <= HIGHEST_COMPLEXITY, place

    most_complex = complexities[int(len(complexities) * 0.99) :]
    ways, _ = most_complex[0]
    assert ways <= MOST_COMPLEXITY, most_complex


@pytest.mark.parametrize("folder", FOLDERS)
def test_lines_are_short_and_set_by_the_formatter(folder: str) -> None:
    """A broken assert means our own rule of style (CONTRIBUTING.md, "Rules")."""
    facts = reading(folder)
    assert facts.format_skips == []
    assert len(facts.long_lines) <= MOST_LONG_LINES * facts.code_lines, facts.long_lines


def test_docstrings_are_built_as_english_sentences() -> None:
    """A broken assert means our own rule of style (CONTRIBUTING.md, "Rules")."""
    for construction, (pattern, most) in FOREIGN_CONSTRUCTIONS.items():
        places = []
        for place, docstring in reading("src").docstrings:
            places += [f"{place} {match[0]}" for match in pattern.finditer(docstring)]
        assert len(places) <= most, (construction, places)
