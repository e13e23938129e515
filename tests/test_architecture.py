"""The house stands as drawn: imports go one way, hidden ones counted; only cli/output.py prints."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import commonplace

SOURCE = Path(commonplace.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# What each layer may import, besides itself.
BELOW = {
    "errors": set(),
    "text": {"errors"},
    "clock": {"errors"},
    "config": {"errors", "clock", "text", "note"},
    "llm": {"errors"},
    "note": {"errors", "clock", "text"},
    "query": {"errors", "clock", "text", "note"},
    "store": {"errors", "clock", "text", "note"},
    "index": {"errors", "clock", "text", "note", "query", "store", "llm"},
    "engine": {"errors", "clock", "text", "config", "note", "query", "store", "index"},
    "faces": {"errors", "clock", "text", "config", "note", "query", "store", "index", "engine", "llm"},
    "jobs": {"errors", "clock", "text", "config", "note", "query", "store", "index", "engine", "llm"},
    "transfer": {"errors", "clock", "text", "note", "query", "store", "index", "engine"},
    "ingest": {"errors", "clock", "text", "note", "store", "index", "engine"},
    "anthropic": {"errors", "engine", "faces", "store"},
    "serve": {"errors", "clock", "text", "config", "note", "query", "engine", "faces", "jobs", ""},
    "cli": {
        "errors",
        "clock",
        "text",
        "config",
        "note",
        "query",
        "store",
        "index",
        "engine",
        "faces",
        "jobs",
        "transfer",
        "ingest",
        "serve",
        "",
    },
    "__main__": {"cli"},
    "": {"errors", "engine", "note", "index", "query", "faces"},
}
ONLY_IN = {"mcp": "serve", "mcp_types": "serve", "anyio": "serve", "pydantic": "serve", "anthropic": "anthropic",
           "click": "cli", "inotify_simple": "index", "sqlite3": ("index", "engine"), "asyncio": "serve"}  # fmt: skip

MODELS = {"numpy", "tokenizers", "onnxruntime", "sentence_transformers", "fastembed"}


def layer(place: Path) -> str:
    """The layer a file belongs to: the first part of its path in the package, "" for the package itself."""
    parts = place.relative_to(SOURCE).parts
    return "" if parts == ("__init__.py",) else parts[0].removesuffix(".py")


def imports(place: Path) -> list[tuple[str, int, bool]]:
    """(module, line, only for type checkers) of every import in a file, those inside functions included."""
    tree = ast.parse(place.read_text(encoding="utf-8"))
    typing = for_type_checkers(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno, id(node) in typing) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place.name}:{node.lineno} imports relatively"
            module = node.module or ""
            if module == "commonplace":
                found += [(f"commonplace.{alias.name}", node.lineno, id(node) in typing) for alias in node.names]
            else:
                found.append((module, node.lineno, id(node) in typing))
    return found


def for_type_checkers(tree: ast.Module) -> set[int]:
    """The ids of all nodes below `if TYPE_CHECKING:`."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            found |= {id(inner) for each in node.body for inner in ast.walk(each)}
    return found


def our_layer(module: str) -> str | None:
    """The layer of one of our modules, None for others."""
    if module != "commonplace" and not module.startswith("commonplace."):
        return None
    name = module.removeprefix("commonplace").lstrip(".").partition(".")[0]
    return name if name in BELOW else ""


@pytest.mark.parametrize("place", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(place):
    here = layer(place)
    for module, line, _ in imports(place):
        there = our_layer(module)
        if there is not None and there != here:
            assert there in BELOW[here], f"{place.relative_to(SOURCE)}:{line} imports {module}"


@pytest.mark.parametrize("place", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_foreign_packages_are_imported_only_where_they_belong(place):
    for module, line, _ in imports(place):
        owner = ONLY_IN.get(module.partition(".")[0])
        if owner is not None:
            owners = owner if isinstance(owner, tuple) else (owner,)
            allowed = layer(place) in owners or (module.startswith("anyio") and layer(place) == "anthropic")
            assert allowed, f"{place.relative_to(SOURCE)}:{line} imports {module}"


@pytest.mark.parametrize("place", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_numpy_and_what_runs_models_is_imported_only_for_vectors(place):
    if place.parent == SOURCE / "index" / "vectors":
        return
    for module, line, _ in imports(place):
        assert module.partition(".")[0] not in MODELS, f"{place.relative_to(SOURCE)}:{line} imports {module}"


def test_every_layer_of_the_table_exists():
    assert {layer(place) for place in FILES} == set(BELOW)


def test_no_modules_import_each_other_in_a_circle():
    known = {module_name(place): place for place in FILES}
    edges = {name: reached(place, known) for name, place in known.items()}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name in done:
            return
        for other in sorted(edges[name]):
            visit(other, (*path, name))
        done.add(name)

    for name in sorted(known):
        visit(name, ())


def module_name(place: Path) -> str:
    parts = ("commonplace", *place.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def reached(place: Path, known: dict[str, Path]) -> set[str]:
    """Modules of ours a file imports when it runs, at its top or inside a function; type checking apart."""
    found = set()
    tree = ast.parse(place.read_text(encoding="utf-8"))
    typing = for_type_checkers(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in typing:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in known or node.module in known:
                    found.add(full if full in known else node.module)
    return found - {module_name(place), "commonplace"}


@pytest.mark.parametrize("place", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_the_output_module_prints(place):
    if place == SOURCE / "cli" / "output.py":
        return
    tree = ast.parse(place.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write"), (
                f"{place.relative_to(SOURCE)}:{node.lineno} prints"
            )


@pytest.mark.parametrize("place", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_broad_excepts_stand_only_at_the_outermost_loops(place):
    allowed = {
        "faces/hooks.py",
        "serve/turns.py",
        "serve/mcp.py",
        "cli/__init__.py",
        "cli/failures.py",
        "cli/shell.py",
        "jobs/job.py",
        "serve/daemon.py",
        "serve/rpc.py",
    }
    if str(place.relative_to(SOURCE)) in allowed:
        return
    for node in ast.walk(ast.parse(place.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            names = ast.unparse(node.type) if node.type else ""
            reraises = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
            broad = names in ("", "Exception", "BaseException")
            assert not broad or reraises, f"{place.relative_to(SOURCE)}:{node.lineno}"
