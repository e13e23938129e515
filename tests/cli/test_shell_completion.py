"""`memory completion`, and what the shell is offered (contract 001, 1)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import PROGRAM, run_process
from serve.forked import run
from serve.process import environment


def offered(terminal: Any, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """What bash is offered for the last word of `line`."""
    monkeypatch.setenv("_MEMORY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    process = run(PROGRAM, env=environment())
    assert process.stderr == b""
    monkeypatch.delenv("_MEMORY_COMPLETE")
    return [row.partition(",")[2] for row in process.stdout.decode().split()]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "memory re",
            ["read", "resolve-links", "recent", "remind", "review", "reindex", "restore"],
        ),
        ("memory project d", ["default"]),
        ("memory list --li", ["--limit"]),
        ("memory list --phase o", ["organized"]),
        ("memory write x --category ha", ["habits"]),
        ("memory project remove ", ["work"]),
        ("memory project default no", ["notes"]),
        ("memory call write_", ["write_note"]),
        ("memory call --tools memory ", ["memory"]),
        ("memory mcp --as b", ["basic-memory"]),
        ("memory mcp --tools n", ["notes"]),
        ("memory completion ", ["bash", "zsh", "fish"]),
        ("memory completion bash ", []),
    ],
)
def test_names_are_offered(
    terminal: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, values: list[str]
) -> None:
    terminal.configure(f"projects:\n  work: {tmp_path}/work\n")
    assert offered(terminal, monkeypatch, line) == values
    assert [path.name for path in terminal.home.iterdir()] == ["config.yaml"]


@pytest.mark.promise("shell-5")
@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("memory read ", ["ONE", "TWO"]),
        ("memory edit TW", ["TWO"]),
        ("memory tag x --add in", ["infra"]),
        ("memory tag x --add new,na", ["new,naming"]),
        ("memory list --scope a", ["agent:claude"]),
        ("memory list --source ma", ["manual"]),
        ("memory undo ", ["2", "1"]),
        ("memory context x --project w", ["work"]),
        ("memory config get daemon.i", ["daemon.interval"]),
    ],
)
def test_what_the_home_holds_is_offered(
    terminal: Any, monkeypatch: pytest.MonkeyPatch, line: str, values: list[str]
) -> None:
    second = terminal.write("the second", "--tags", "infra,naming", "--scope", "agent:claude")
    first = terminal.write("the first")
    terminal.configure("projects:\n  work: /nowhere\n")
    before = sorted(terminal.home.rglob("*"))
    completions = offered(terminal, monkeypatch, line.replace("TW", second[:4]))
    assert completions == [{"ONE": first, "TWO": second}.get(value, value) for value in values]
    paths = sorted(terminal.home.rglob("*"))
    assert paths == before
    monkeypatch.setenv("MEMORY_AGENT", "copilot")
    assert second not in offered(terminal, monkeypatch, "memory read ")


def test_an_id_is_offered_with_a_preview_and_fast(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = terminal.write("the staging server is called heron\nand more")
    monkeypatch.setenv("_MEMORY_COMPLETE", "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", "memory read ")
    monkeypatch.setenv("COMP_CWORD", "2")
    process = run_process(sys.executable, "-X", "importtime", *PROGRAM[1:], check=True)
    assert process.stdout.decode() == f"plain\n{ref}\nthe staging server is called heron and more\n"
    loaded = {line.rpartition("|")[2].strip() for line in process.stderr.decode().splitlines()}
    assert not loaded & {"yaml", "mcp", "numpy", "asyncio", "pydantic", "memoranda.engine.memory"}


def test_the_script_of_a_shell_is_printed(terminal: Any) -> None:
    scripts = {shell: terminal.ok("completion", shell) for shell in ("bash", "zsh", "fish")}
    for shell, script in scripts.items():
        assert f"_MEMORY_COMPLETE={shell}_complete" in script
    assert (
        terminal("completion", "ksh").error
        == 'no completion for "ksh"; there is one for bash, zsh, fish'
    )
    assert not terminal.home.exists()
    process = run_process("bash", "-n", input=scripts["bash"].encode())
    assert process.returncode == 0
    assert process.stderr == b""


def test_built_in_projects_are_offered_beside_a_configuration_nobody_can_read(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.configure("projects: [\n")
    assert offered(terminal, monkeypatch, "memory project default no") == ["notes"]
    assert offered(terminal, monkeypatch, "memory context x --project no") == ["notes"]


def test_home_with_a_typing_mistake_is_completed_without_a_word(
    terminal: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert terminal("--home", f"{tmp_path}/notes", "write", "tea at four").status == 0
    # `offered` checks that nothing is on stderr.
    assert offered(terminal, monkeypatch, f"memory --home {tmp_path}/notse read ") == []


def test_home_with_a_missing_project_is_completed_without_a_word(
    terminal: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    assert terminal("project", "add", "work", str(folder)).status == 0
    folder.rmdir()
    assert offered(terminal, monkeypatch, "memory project remove ") == ["work"]
    offered(terminal, monkeypatch, "memory read ")
