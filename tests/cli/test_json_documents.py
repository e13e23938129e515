"""`--json` of every command has the keys that docs/cli.md gives, in their order (contract 001, 1,
3, 16).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import click
import pytest

from memoranda.cli import COMMANDS, command_group

pytestmark = pytest.mark.promise("001-17.1")

LINES = """
write x | read ID | list | search x | search x --ranked | search x --archived | list --archived | context x |
supersede ID OTHER | supersede ID one, otherwise | tag ID --add t | delete ID --dry-run | delete ID | link ID OTHER |
unlink ID OTHER | backlinks ID |
recent | orphans | profile | resolve-links | resolve-links --dry-run | ingest | ingest --dry-run | upgrade ID |
decay --now 2027-01-01 | archive ID | archive ID --dry-run | pin ID OTHER | unpin ID | consolidate | tidy |
dream --report |
remind tea tomorrow | review | notify | notify --dry-run | status | doctor | reindex | log | diff ID | undo |
restore GONE |
erase GONE --yes | project add extra DIR | project list | project remove work | project default work |
token add laptop | token list | space add team | space list | graph export | graph import - | export --output FILE |
import | backup DIR | mirror DIR | move-home HOME DIR | graph show Anna | edit ID | config get timezone |
config set timezone UTC | config unset timezone | config list | kv set key value | kv get editor | kv list |
transcripts status | transcripts on | transcripts off | transcripts forget |
kv del editor | man | install | uninstall zed | call list_memory_projects | completion bash | help write
"""
RUNS = re.split(r"\s*\|\s*", LINES.strip())


@pytest.fixture(scope="module")
def kept_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the home of the first test is kept as the other ones find it."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def words(terminal: Any, kept_home: Path) -> dict[str, str]:
    """A home that holds something of each kind. Returns the values for the words of RUNS."""
    ids = kept_home / "ids"
    if not ids.exists():
        terminal.ok("kv", "set", "editor", "vim")
        anna = '{"type":"entity","name":"Anna","entityType":"person","observations":[]}'
        terminal.ok("graph", "import", "-", stdin=anna)
        terminal.ok("project", "add", "work", str(kept_home / "work"))
        written = [terminal.write(text) for text in ("one [[nobody]]", "two", "three")]
        terminal.ok("delete", written[2])
        shutil.copytree(terminal.home, kept_home / "home")
        ids.write_text(" ".join(written))
    else:
        shutil.copytree(kept_home / "home", terminal.home)
    places = {
        "DIR": str(terminal.folder / "dir"),
        "HOME": str(terminal.home),
        "FILE": str(terminal.folder / "file"),
    }
    return places | dict(zip(("ID", "OTHER", "GONE"), ids.read_text().split(), strict=True))


@pytest.mark.parametrize("line", RUNS)
def test_the_document_of_a_command_has_its_keys_in_order(
    terminal: Any, words: dict[str, str], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    argv = line.split()
    ran = terminal(*(words.get(word, word) for word in argv), "--json")
    assert ran.status == 0, ran
    command: Any = command_group()
    for word in argv:
        if isinstance(command, click.Group):
            command = command.get_command(None, word)
    # tests/test_docs.py sees that these are the keys of the page
    assert command.keys
    assert list(ran.json) == ["schema", *command.keys]
    assert ran.json["schema"] == f"{argv[0]}/1"
    assert ran.out.startswith('{\n  "schema"')
    assert ran.out.endswith("\n}\n")
    for key, inner in command.keys.items():
        if isinstance(ran.json[key], list):
            rows = ran.json[key]
        else:
            rows = [ran.json[key]]
        assert not inner or all(list(row) == list(inner) for row in rows)


def test_every_command_is_among_these_but_those_with_an_output_of_their_own() -> None:
    assert {line.split()[0] for line in RUNS} == set(COMMANDS) - {
        "mcp",
        "agent",
        "serve",
        "page",
        "embed",
        "bench",
        "hook",
    }
