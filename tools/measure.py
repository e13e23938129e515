"""Counts what docs/architecture.md promises to keep small: `python tools/measure.py [--source
DIR]`.

Lines and files, lengths of functions, names with more than one meaning, and how many
functions of ours run for one call of five kinds. `--source`: the `src` folder to measure [ours], so
that two checkouts can be compared.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent

FLOWS = {
    "memory tool create": [
        ["call", "memory", '{"command": "create", "path": "/memories/a.md", "file_text": "tea"}'],
        ["call", "memory", '{"command": "create", "path": "/memories/b.md", "file_text": "tea"}'],
    ],
    "memory search dark": [["write", "prefers dark mode"], ["search", "dark"]],
    "memory context": [["write", "prefers dark mode"], ["context", "Which mode does she prefer?"]],
    "graph create_entities": [
        [
            "call",
            "memory_create_entities",
            '{"entities": [{"name": "A", "entityType": "x", "observations": ["o"]}]}',
        ],
        [
            "call",
            "memory_create_entities",
            '{"entities": [{"name": "B", "entityType": "x", "observations": ["o"]}]}',
        ],
    ],
    "dream 2, four memories": [
        *(
            ["write", text]
            for text in ("prefers dark mode", "likes tea", "works at Acme", "decided to use SQLite")
        ),
        ["dream", "--level", "2"],
    ],
}
"""What is run, the last command counted: after the same call before, so that nothing is made or
imported first.
"""

CHILD = """
import json, os, sys
commands, root = json.loads(sys.argv[1]), sys.argv[2]
from memoranda.cli import main
sys.stdout = open(os.devnull, "w")
for argv in commands[:-1]:
    main(argv)
seen, calls = set(), 0
def profile(frame, event, _):
    global calls
    if event == "call":
        code = frame.f_code
        if code.co_filename.startswith(root) and code.co_name != "<module>":
            calls += 1
            seen.add((code.co_filename, code.co_firstlineno, code.co_name))
sys.setprofile(profile)
main(commands[-1])
sys.setprofile(None)
generated = {each for each in seen if each[2] in ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")}
named = seen - generated
sys.stderr.write(json.dumps([len(named), len({each[0] for each in named}), calls]))
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=HERE / "src")
    source = parser.parse_args().source.resolve()
    table = sizes(source)
    table |= names(source)
    table |= flows(source)
    for name, value in table.items():
        print(f"{name:42} {value}")


def sizes(source: Path) -> dict[str, str]:
    """Lines, files and lengths of functions."""
    texts = [path.read_text(encoding="utf-8") for path in source.rglob("*.py")]
    counts = [text.count("\n") for text in texts]
    short_files = [count for count in counts if count <= 60]
    lines_of_imports = sum(import_lines(text) for text in texts)
    calls_of_flock = re.findall(r"\bflock\(", "\n".join(texts))
    lengths = sorted(length_of(function) for function in functions(texts))
    nine_tenths = int(len(lengths) * 0.9)
    return {
        "lines of src": f"{sum(counts):,}",
        "files": str(len(texts)),
        "files of at most 60 lines": str(len(short_files)),
        "lines of imports": f"{lines_of_imports:,}",
        "function length, median": str(int(statistics.median(lengths))),
        "function length, 90th percentile": str(lengths[nine_tenths]),
        "places that call flock": str(len(calls_of_flock)),
    }


def length_of(node: ast.stmt) -> int:
    """How many lines a statement takes."""
    last = node.end_lineno or node.lineno
    return last - node.lineno + 1


def functions(texts: Sequence[str]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method."""
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def import_lines(text: str) -> int:
    """Lines taken by import statements."""
    lines = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines += length_of(node)
    return lines


def names(source: Path) -> dict[str, str]:
    """Class and module names with more than one meaning."""
    classes: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for path in source.rglob("*.py"):
        modules[path.stem] += path.stem not in ("__init__", "__main__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    repeated = {}
    for kind, counts in (("class", classes), ("module", modules)):
        repeated[kind] = sorted(name for name, n in counts.items() if n > 1)
    return {
        f"{kind} names of several things": f"{len(repeated_names)} {' '.join(repeated_names)}"
        for kind, repeated_names in repeated.items()
    }


def flows(source: Path) -> dict[str, str]:
    """For each flow: functions of ours that run, in how many files, and calls of them."""
    figures = {}
    for name, commands in FLOWS.items():
        with tempfile.TemporaryDirectory() as home:
            environment = {
                **os.environ,
                "PYTHONPATH": str(source),
                "MEMORY_HOME": home,
                "MEMORY_SEMANTIC": "off",
            }
            child = [sys.executable, "-c", CHILD, json.dumps(commands), str(source / "memoranda")]
            ran = subprocess.run(
                child, env=environment, capture_output=True, text=True, timeout=120, check=True
            )
            functions_run, files, calls = json.loads(ran.stderr.splitlines()[-1])
            figures[f"functions run: {name}"] = f"{functions_run} in {files} files, {calls:,} calls"
    return figures


if __name__ == "__main__":
    main()
