"""The documentation is true."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import tomllib
from pathlib import Path
from types import ModuleType

import click
import pytest
import yaml

ROOT = Path(__file__).parents[1]


def reference() -> ModuleType:
    """The generator, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli.md", "clients.md", "tools.md", "memory.1"])
def test_the_reference_pages_are_what_the_code_generates(
    name: str, request: pytest.FixtureRequest
) -> None:
    now = reference().PAGES[name]()
    path = ROOT / "docs" / name
    if request.config.getoption("--update"):
        path.write_text(now, "utf-8")
    assert path.read_text("utf-8") == now, "run: python tools/reference.py"


TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
CONTRACTS = ROOT / "docs" / "contracts"
# What contracts say of the programs they describe is not what this one says of itself.
PAGES = sorted(
    path
    for path in [*(ROOT / name for name in TOP), *(ROOT / "docs").rglob("*.md")]
    if path.parent != CONTRACTS or path.name == "README.md"
)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced code blocks of a language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```$|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_holds_a_path_of_a_machine(page: Path) -> None:
    assert not re.search(r"(?<![\w.~])/(?:root|work|home/\w+|Users)/", page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_json_toml_and_python_in_the_pages_can_be_read(page: Path) -> None:
    for block in blocks(page, "json"):
        json.loads(block)
    for block in blocks(page, "toml"):
        tomllib.loads(block)
    for block in blocks(page, "python"):
        compile(block, str(page), "exec")
    for block in blocks(page, "yaml"):
        yaml.safe_load(block)


def test_the_readmes_library_example_runs(terminal, capsys) -> None:
    example = next(
        block for block in blocks(ROOT / "README.md", "python") if "open_memory" in block
    )
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("Billing | ")


@pytest.mark.parametrize("page", ["README.md", "docs/shell.md"])
def test_shell_examples_run_in_their_order(terminal, monkeypatch, tmp_path, page: str) -> None:
    monkeypatch.chdir(tmp_path)
    lines = []
    for block in blocks(ROOT / page, "sh"):
        lines.extend(block.splitlines())
    commands = [shlex.split(line, comments=True) for line in lines]
    of_the_memory = [words for words in commands if words[0] == "memory" and words[1] != "install"]
    assert len(of_the_memory) >= 6
    for words in of_the_memory:
        ran = terminal(*words[1:])
        assert ran.status == 0, (words, ran)


def test_every_setting_in_the_pages_is_known(tmp_path) -> None:
    from memoranda.config import load

    for page in PAGES:
        for block in blocks(page, "yaml"):
            (tmp_path / "config.yaml").write_text(block, "utf-8")
            assert load(tmp_path, environ={}).warnings == ()


def test_every_weight_in_the_table_of_the_features_is_the_one_in_use() -> None:
    from memoranda.index.search.weights import WEIGHTS

    page = (ROOT / "docs" / "ranking.md").read_text("utf-8")
    different = {}
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([-\d., ]+) \|", page, re.MULTILINE)
    for names, values in rows:
        features = re.findall(r"\w+", names)
        for feature, value in zip(features, values.split(", "), strict=True):
            if float(value) != getattr(WEIGHTS, feature):
                different[feature] = (value, getattr(WEIGHTS, feature))
    assert len(rows) > 20
    assert different == {}


OURS = [
    path
    for folder in ("src", "tests", "bench", "tools", "samples")
    for path in (ROOT / folder).rglob("*")
]
CODE = [path for path in OURS if path.suffix in (".py", ".sql", ".toml", ".txt", ".rules", ".md")]


def test_every_module_named_in_pages_and_code_is_there() -> None:
    """As prose and comments have them: `engine/history/undo.py`, or `undo.py` alone."""
    module_names = set()
    for module_path in OURS:
        parts = module_path.parts
        module_names |= {"/".join(parts[-length:]) for length in range(1, len(parts))}
    wrong = []
    code = [path for path in CODE if path.is_relative_to(ROOT / "src") and path.suffix != ".txt"]
    for page in (*(page_path for page_path in PAGES if page_path.name != "CHANGELOG.md"), *code):
        for name in re.findall(r"(?<![\w./*{}$~-])(?:\w+/)*\w+\.py\b", page.read_text("utf-8")):
            if name not in module_names:
                wrong.append(f"{page.relative_to(ROOT)}: {name}")
    assert wrong == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_name_in_the_pages_for_developers_is_one_of_the_code(page: str) -> None:
    words = {
        word
        for path in CODE
        for word in re.findall(r"\w+", f"{path.name} {path.read_text('utf-8')}")
    }
    spans = re.findall(r"`([^`\n]+)`", (ROOT / page).read_text("utf-8"))
    names = set()
    for span in spans:
        names.update(re.findall(r"_?[A-Za-z]+(?:_\w+)+|_\w+|[A-Z][a-z]+[A-Z]\w+", span))
    assert sorted(names - words) == []


def test_the_layer_table_names_every_layer() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    package = ROOT / "src" / "memoranda"
    for place in package.iterdir():
        if place.name.startswith("__") or place.suffix not in ("", ".py"):
            continue
        # Git leaves the cache of a package that was renamed
        if place.is_dir() and not any(place.glob("*.py")):
            continue
        assert f"`{place.name}{'/' if place.is_dir() else ''}`" in text, place.name


def test_every_test_that_tells_what_holds_exists():
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("t*/**/*.py")}
    for name in ("SECURITY.md", "docs/trust.md"):
        text = (ROOT / name).read_text("utf-8")
        file_names = set(re.findall(r"`((?:\w+/)*\w+\.py)`", text))
        assert file_names
        assert file_names - files == set(), name


def test_each_line_that_tells_what_holds_names_a_test():
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    tables = re.findall(r"\| shown by \|\n\|[-|]+\n((?:\|.*\n)+)", text)
    assert len(tables) == 2
    rows = []
    for table in tables:
        rows.extend(table.splitlines())
    assert len(rows) > 20
    assert [row for row in rows if "`tests/" not in row.rpartition(" | ")[2]] == []


def sections(page: Path) -> set[str]:
    """The numbers of the sections of a contract, and of the numbered items in them: 5, 5.1, 18.6."""
    numbers = set()
    section = ""
    for line in page.read_text("utf-8").splitlines():
        heading = re.match(r"#+ (\d+(?:\.\d+)?)\b", line)
        item = re.match(r"(?:\*\*)?(\d+)\.", line)
        if heading:
            section = heading[1]
            numbers.add(section)
        elif item:
            numbers.add(f"{section}.{item[1]}")
    return numbers


def test_every_section_of_a_contract_that_code_names_is_there() -> None:
    pages = {page.name.split("-")[0]: sections(page) for page in CONTRACTS.glob("0*.md")}
    pages["amendments"] = sections(CONTRACTS / "amendments.md")
    wrong = []
    count = 0
    for path in (ROOT / "src").rglob("*.py"):
        text = re.sub(r"\s*\n\s*(?:# )?", " ", path.read_text("utf-8"))
        for match in re.finditer(r"[Cc]ontracts? (00\d[ab]?)(?:, (\d+(?:\.\d+)?))?", text):
            count += 1
            page, section = match.groups()
            if page not in pages or (section and section not in pages[page]):
                wrong.append(f"{path.name}: {match[0]}")
        for match in re.finditer(r"(?:[Aa]mendments?|AMENDMENTS),? (\d+(?:\.\d+)?)", text):
            count += 1
            if match[1] not in pages["amendments"]:
                wrong.append(f"{path.name}: {match[0]}")
    assert wrong == []
    assert count > 100


SHELL_BLOCK = re.compile(r"^\s*```(?:sh|text)?\n(.*?)^\s*```$", re.MULTILINE | re.DOTALL)


def command_lines(page: Path) -> list[str]:
    """The lines of the fenced blocks of a page that call `memory`, without comments."""
    text = page.read_text("utf-8")
    lines = []
    for block in SHELL_BLOCK.findall(text):
        for line in block.splitlines():
            command = line.strip()
            if re.match(r"memory [a-z-]", command):
                lines.append(command)
    return lines


def parse(words: list[str]) -> None:
    """Parse a command line as `memory` does, without running it. Raises click.UsageError."""
    from memoranda.cli import command_group
    from memoranda.cli.invocation import Invocation

    group = command_group()
    context = group.make_context("memory", list(words), obj=Invocation())
    while isinstance(group, click.Group):
        name, group, rest = group.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        context = group.make_context(name, rest, parent=context)


# Contracts and laboratory notes quote other versions and other programs.
USER_PAGES = [page for page in PAGES if not {"contracts", "lab"} & {*page.parts}]


@pytest.mark.parametrize("page", USER_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_line_of_a_page_is_understood(page: Path) -> None:
    wrong = []
    for line in command_lines(page):
        # What follows a pipe or a redirection belongs to the shell.
        words = re.split(r"\s(?:[|>]|&&)\s", line, maxsplit=1)[0]
        try:
            parse(shlex.split(words, comments=True)[1:])
        except (click.UsageError, ValueError) as error:
            wrong.append(f"{line}: {error}")
    assert wrong == []


# An error message in a page, and words that are left out.
NO_COMMAND = re.compile(r"memory not found|…")


@pytest.mark.parametrize("page", USER_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_and_option_in_the_text_of_a_page_is_known(page: Path) -> None:
    text = re.sub(
        r"^\s*```.*?^\s*```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    wrong = []
    for span in re.findall(r"`(memory [a-z-][^`\n]*)`", text):
        if NO_COMMAND.search(span):
            continue
        try:
            parse(shlex.split(span)[1:])
        except click.UsageError as error:
            # The text names a command without its arguments.
            is_unknown = isinstance(error, click.NoSuchOption) or "unknown command" in str(error)
            if is_unknown:
                wrong.append(f"{span}: {error}")
        except (click.exceptions.Exit, IndexError):
            # `--version`, `--help`, and a group without a command
            continue
    assert wrong == []
