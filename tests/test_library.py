"""The library explains itself: docs/python.md, docstrings, the README's sample, types, values."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import memoranda
from memoranda import Draft, InvalidInput, MemorandaError, Memory, Query, errors, open_memory
from memoranda.engine import MemorySession

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "python.md"
SAMPLE = ROOT / "samples" / "library.py"
VERBS = sorted(name for name in dir(Memory) if not name.startswith("_"))
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("MEMORY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_page_has_an_entry_with_an_example_for_each_verb() -> None:
    entries = re.split(r"^### ", PAGE.read_text("utf-8"), flags=re.M)[1:]
    examples: dict[str, str] = {}
    for entry in entries:
        heading, _, body = entry.partition("\n")
        for name in heading.split(", "):
            examples[name] = "".join(_BLOCK.findall(body))

    assert sorted(examples) == sorted([*VERBS, "open_memory"])
    names = [name for name, code in examples.items() if name not in code]
    assert names == []


def test_the_examples_of_the_page_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in _BLOCK.findall(PAGE.read_text("utf-8")):
        exec(compile(block, "docs/python.md", "exec"), names)
    assert "Billing" in capsys.readouterr().out


def test_the_sample_of_the_readme_runs_twice(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = _BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    (example,) = [block for block in blocks if "open_memory" in block]
    for _ in range(2):
        exec(compile(example, "README.md", "exec"), {})
        assert capsys.readouterr().out.startswith("Billing | ")


@pytest.mark.parametrize("name", [*VERBS, "open_memory"])
def test_every_verb_documents_each_of_its_parameters(name: str) -> None:
    member = inspect.getattr_static(Memory, name, None) or getattr(memoranda, name)
    text = inspect.getdoc(member)
    assert text
    if isinstance(member, property):
        return
    lines = [line.partition(":")[0] for line in text.splitlines()]
    parameters = [
        parameter for parameter in inspect.signature(member).parameters if parameter != "self"
    ]
    assert [parameter for parameter in parameters if parameter not in lines] == []


@pytest.mark.parametrize("name", VERBS)
def test_the_engine_refers_to_the_contract_of_a_verb_instead_of_repeating_it(name: str) -> None:
    verb = inspect.getattr_static(Memory, name)
    source = inspect.getsource(verb.fget if isinstance(verb, property) else verb)
    handed_on = re.findall(r"return self\._session\.(\w+)", source)
    for engine_verb in set(handed_on) - {"home", "agent"}:
        text = inspect.getdoc(inspect.getattr_static(MemorySession, engine_verb)) or ""
        assert re.search(r"[Ss]ee\s`Memory\.\w+|first part of `Memory\.warnings`", text)


def test_every_field_of_a_draft_is_documented() -> None:
    lines = [line.partition(":")[0] for line in (inspect.getdoc(Draft) or "").splitlines()]
    assert [field for field in Draft.__dataclass_fields__ if field not in lines] == []


def test_no_public_verb_takes_or_returns_any() -> None:
    for name in [*VERBS, "open_memory"]:
        member = inspect.getattr_static(Memory, name, None) or getattr(memoranda, name)
        if isinstance(member, property):
            member = member.fget
        hints = member.__annotations__
        assert "return" in hints, name
        for hint in hints.values():
            assert not re.search(r"\bAny\b", str(hint)), name


def test_all_errors_are_exported() -> None:
    raised = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, MemorandaError)
    ]
    assert set(raised) <= set(memoranda.__all__)


def test_what_type_checkers_are_told_is_what_the_package_has() -> None:
    stub = (ROOT / "src" / "memoranda" / "__init__.pyi").read_text("utf-8")
    names_in_stub = re.findall(r"(\w+) as \1\b", stub)
    assert sorted(names_in_stub) == memoranda.__all__
    assert (ROOT / "src" / "memoranda" / "py.typed").is_file()


def test_a_text_and_a_draft_with_a_category_mean_what_they_say(home: Path) -> None:
    with open_memory() as memory:
        path = memory.write("Tea at four").path
        assert path == "Tea at four.md"
        note = memory.write(Draft("dark mode", category="preferences"))
        assert note.project == "categories"
        assert note.category == "preferences"
        _, total = memory.list(Query(category="preferences"))
        assert total == 1


@pytest.mark.parametrize(
    "wrong",
    [
        Draft("x", category="preference"),
        Draft("x", "notes", category="preferences"),
        Draft("x", tags="ui"),
        Draft(b"x"),  # type: ignore[arg-type]
        3,
        None,
        {"text": "x"},
    ],
)
def test_what_is_no_draft_or_has_an_unknown_category_is_refused(home: Path, wrong: object) -> None:
    with open_memory() as memory:
        with pytest.raises(InvalidInput):
            memory.write(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            memory.write_many([wrong])  # type: ignore[list-item]
        assert memory.stats().total == 0


def test_values_are_shown_on_one_line(home: Path) -> None:
    with open_memory() as memory:
        text = "- [fact] a heron\nstands\u2028 in \x1b[31m the reeds " + "long " * 99
        note = memory.write(Draft(text, title="A\tlong " + "title " * 30, folder="f" * 90))
        hits = memory.search("heron")
        texts = [repr(value) for value in (memory, note, hits, hits[0], hits[0].note)]
    for line in texts:
        assert len(line) <= 100
        assert line.isprintable()


SMALL = """
import sys
from memoranda import open_memory
with open_memory(sys.argv[1]) as memory:
    memory.write("Tea at four")
    assert memory.search("tea").total == 1
    memory.undo()
    assert memory.search("tea").total == 0
"""


def test_a_write_a_search_and_an_undo_warn_of_nothing(tmp_path: Path) -> None:
    for code in ("import memoranda", SMALL):
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-X", "dev", "-c", code, str(tmp_path / "home")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")


def test_the_sample_program_uses_every_verb_and_runs(tmp_path: Path) -> None:
    text = SAMPLE.read_text("utf-8")
    assert [name for name in VERBS if f"memory.{name}" not in text] == []
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(SAMPLE), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(tmp_path / "user"), "PATH": "", "MEMORY_SEMANTIC": "off"},
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.slow
def test_mypy_accepts_the_sample_program(tmp_path: Path) -> None:
    """So does pyright, which is no package of Python: `make check-types`."""
    sample = tmp_path / "library.py"
    sample.write_bytes(SAMPLE.read_bytes())
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(sample)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
