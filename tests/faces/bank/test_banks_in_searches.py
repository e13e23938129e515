"""A search prefers what somebody wrote to files of a bank in which nobody wrote yet."""

from __future__ import annotations

from memoranda.engine import open_session
from memoranda.faces import registry


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
