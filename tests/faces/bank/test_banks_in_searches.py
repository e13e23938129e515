"""A search prefers what somebody wrote to files of a bank in which nobody wrote yet."""

from __future__ import annotations

from pathlib import Path

from memoranda.engine import open_session
from memoranda.faces import registry
from memoranda.faces.bank.templates import list_without_templates
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
        untouched = list_without_templates(memory, Query(), limit=1)
        change = {"bank_type": "global", "bank_id": "default", "content": "Short answers"}
        bank.call(memory, "update", {**change, "target_file": "preferences.md"})
        changed = list_without_templates(memory, Query(), limit=0)
    assert [info.title for info in untouched.infos] == ["Ana likes tea"]
    assert untouched.total == 1
    assert untouched.hidden == "3 untouched bank templates"
    assert {info.title for info in changed.infos} == {"Ana likes tea", "preferences"}


def test_described_project_shows_its_main_file(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        bank = registry(("bank",), memory.settings)
        arguments = {"bank_type": "project", "bank_id": "zoo", "project_description": "A zoo"}
        bank.call(memory, "activate", arguments)
        listed = list_without_templates(memory, Query(), limit=0)
    assert [info.title for info in listed.infos] == ["readme"]
