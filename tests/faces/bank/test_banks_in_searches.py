"""A search prefers what somebody wrote to files of a bank in which nobody wrote yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.engine import open_session
from memoranda.faces import registry
from memoranda.faces.bank.bank import BankInfo, template_texts
from memoranda.index.rows import FilledNotes
from memoranda.note import bank_files
from memoranda.note.model import Draft
from memoranda.query import Query


def test_files_of_a_new_bank_come_after_what_was_written_and_are_no_evidence(tmp_path):
    with open_session(tmp_path / "home", watch=False) as memory:
        tools = registry(["bank", "notes"], memory.settings)
        call = lambda name, **arguments: tools.call(memory, name, arguments)
        call("activate", bank_type="project", bank_id="heron", project_name="Heron")
        file = "doc/decisions.md"
        call(
            "update",
            bank_type="project",
            bank_id="heron",
            content="Postgres it is.",
            target_file=file,
        )
        file_paths = [
            result["file_path"] for result in call("search_notes", query="heron").data["results"]
        ]
        assert file_paths[0] == f"projects/heron/{file}"
        assert len(file_paths) == 8
        assert "Postgres" in memory.context_for("what did heron decide")
        assert memory.context_for("who takes part, who is affected?") == ""


def test_untouched_template_is_not_among_the_newest_notes(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        memory.write(Draft("Ana likes tea", category="preferences"))
        bank = registry(("bank",), memory.settings)
        bank.call(memory, "activate", {"bank_type": "global", "bank_id": "default"})
        untouched = memory.list_filled(Query(), limit=1)
        change = {"bank_type": "global", "bank_id": "default", "content": "Short answers"}
        bank.call(memory, "update", {**change, "target_file": "preferences.md"})
        changed = memory.list_filled(Query(), limit=0)
    assert [info.title for info in untouched.notes] == ["Ana likes tea"]
    assert untouched.total == 1
    assert untouched.unfilled == 3
    assert {info.title for info in changed.notes} == {"Ana likes tea", "preferences"}


def test_described_project_shows_its_main_file(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        bank = registry(("bank",), memory.settings)
        arguments = {"bank_type": "project", "bank_id": "zoo", "project_description": "A zoo"}
        bank.call(memory, "activate", arguments)
        notes = memory.list_filled(Query(), limit=0).notes
    assert [info.title for info in notes] == ["readme"]


def test_context_has_the_description_of_a_project(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        bank = registry(("bank",), memory.settings)
        description = "A zoo for otters and herons"
        arguments = {"bank_type": "project", "bank_id": "z", "project_description": description}
        bank.call(memory, "activate", arguments)
        assert description in memory.context_for("what is the zoo for otters")


def lay(home: Path, path: str, text: str) -> None:
    """Write a file of a bank, as an editor does."""
    file = home / "banks" / path
    file.parent.mkdir(parents=True)
    file.write_text(text)


def listed(home: Path, agent: str | None = None) -> FilledNotes:
    """Every note that a list of the newest notes shows to a caller."""
    with open_session(home, agent, watch=False) as memory:
        return memory.list_filled(Query(), limit=0)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home without notes."""
    home = tmp_path / "home"
    listed(home)
    return home


@pytest.mark.parametrize(
    "path",
    [
        "global/default/context.md",
        "global/default/rule.md",
        "projects/zoo/readme.md",
    ],
)
def test_file_of_one_line_in_a_bank_is_listed(home: Path, path: str) -> None:
    lay(home, path, "Never deploy on Fridays.")
    notes = listed(home).notes
    assert [info.path for info in notes] == [path]


def test_unfilled_file_that_was_imported_is_not_listed(home: Path) -> None:
    lay(home, "global/default/context.md", "# Context\r\n\r\n")
    assert listed(home) == ([], 0, 1)


def test_other_agents_do_not_count_unfilled_files_of_one_agent(home: Path) -> None:
    lay(
        home,
        "global/default/context.md",
        "---\nscope: agent:codex\n---\n# Context\n",
    )
    assert listed(home).unfilled == 1
    assert listed(home, "claude").unfilled == 0


@pytest.mark.parametrize("kind", bank_files.FOLDERS)
def test_unfilled_files_are_small_enough_to_be_read(kind: str) -> None:
    info = BankInfo("n" * 1_000)
    for text in template_texts(kind, info).values():
        size = len(text.encode())
        assert size < bank_files.MAX_UNFILLED_BYTES
