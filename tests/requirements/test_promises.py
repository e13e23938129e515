"""Promises and tests, both ways: none without the other."""

from __future__ import annotations

import ast
import tomllib
from itertools import chain
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TABLES = tomllib.loads(Path(__file__).with_name("promises.toml").read_text(encoding="utf-8"))
PROMISES = set(chain.from_iterable(TABLES.values()))
NAMING = ("contract", "crash")


def marked(node: ast.AST) -> set[str]:
    """The promise ids in the decorators of a function or class."""
    names: set[str] = set()
    for decorator in getattr(node, "decorator_list", []):
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.promise"):
            names |= {
                argument.value for argument in decorator.args if isinstance(argument, ast.Constant)
            }
    return names


def module_marks(tree: ast.Module) -> set[str]:
    """The ids a module's `pytestmark` gives to all its tests."""
    names: set[str] = set()
    for node in tree.body:
        if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != "pytestmark":
            continue
        for call in ast.walk(node.value):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("mark.promise"):
                ids = [argument for argument in call.args if isinstance(argument, ast.Constant)]
                names.update(argument.value for argument in ids)
    return names


def functions_of(place: Path) -> list[tuple[str, set[str]]]:
    """(test name, promise ids) of every test function of a file."""
    tree = ast.parse(place.read_text(encoding="utf-8"))
    whole = module_marks(tree)
    return [
        (node.name, marked(node) | whole)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
    ]


@pytest.fixture(scope="module")
def tests() -> dict[Path, list[tuple[str, set[str]]]]:
    """(test name, promise ids) of every test function, by file."""
    return {place: functions_of(place) for place in sorted(TESTS.rglob("test_*.py"))}


def test_every_promise_has_a_test_and_every_promise_a_test_names_is_listed(tests):
    promises_kept = set()
    for functions in tests.values():
        for _, names in functions:
            promises_kept.update(names)
    assert promises_kept == PROMISES


def test_every_contract_test_names_its_promise(tests):
    nameless = []
    for place, functions in tests.items():
        if place.parent.name in NAMING:
            nameless += [(place.name, test) for test, names in functions if not names]
    assert nameless == []
