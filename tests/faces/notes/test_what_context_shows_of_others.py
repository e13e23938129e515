"""What build_context shows of notes beside the one asked for: a telling line, without reading
them, and nothing else.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.note_tools import Tools, put
from memoranda.engine import open_session


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    put(folder / "plans/Spec.md", "# Spec\n\n## Goals\n\nA quiet kestrel, see [[Start]].\n")
    put(folder / "Bare.md", "# Bare\n")
    return folder


@pytest.fixture
def tools(tmp_path: Path, vault: Path):
    put(tmp_path / "home/notes/Start.md", "See [[Spec]] and [[Bare]].\n")
    with open_session(tmp_path / "home", projects={"vault": vault}) as memory:
        yield Tools(memory.as_caller("bob", "mcp"))


def related(reply) -> dict[str, str]:
    [entry] = reply.data["results"]
    return {near_note["title"]: near_note["passage"] for near_note in entry["related_results"]}


def test_a_related_note_is_told_by_its_first_line_that_is_no_heading(tools: Tools) -> None:
    reply = tools.call("build_context", url="Start")
    assert related(reply) == {"Spec": "A quiet kestrel, see [[Start]].", "Bare": "# Bare"}


def test_a_note_whose_neighbour_is_in_a_missing_folder_has_its_context(
    tools: Tools, vault: Path
) -> None:
    tools.call("build_context", url="Start")
    vault.rename(vault.with_name("away"))
    reply = tools.call("build_context", url="Start")
    assert related(reply)["Spec"] == "A quiet kestrel, see [[Start]]."
    assert reply.text.endswith(
        "Warning: The folder of project vault is missing; its notes are as last seen."
    )


def test_a_note_of_a_missing_folder_is_refused_by_name_with_a_remedy(
    tools: Tools, vault: Path
) -> None:
    tools.call("search_notes", query="kestrel")
    vault.rename(vault.with_name("away"))
    text = (
        "Could not read plans/Spec.md: the folder of project vault is missing. "
        "Put the folder back, or let its owner run memory project remove vault."
    )
    for tool, more in (
        ("read_note", {}),
        ("edit_note", {"operation": "append", "content": "x"}),
        ("move_note", {"destination_path": "x"}),
        ("delete_note", {}),
    ):
        reply = tools.call(tool, identifier="Spec", **more)
        assert (reply.is_error, reply.data["code"], reply.text) == (True, "storage", text)
    listed = tools.call("list_directory", project="vault")
    assert listed.text.endswith(
        "Warning: The folder of project vault is missing; its notes are as last seen."
    )

    vault.with_name("away").rename(vault)
    assert not tools.call("edit_note", identifier="Spec", operation="append", content="x").is_error


def test_an_address_with_a_star_reads_no_note(tools: Tools) -> None:
    memory = tools.memory
    tools.call("build_context", url="memory://*/*")
    access_count = memory.find("Start").access_count
    assert access_count == 0
    assert memory.find("Spec").access_count == 0
    tools.call("build_context", url="Start")
    assert memory.find("Start").access_count == 1


@pytest.mark.parametrize("where", [{"url": "memory://*"}, {"url": "plans/*", "project": "vault"}])
def test_an_address_with_a_star_shows_notes_of_a_missing_folder_as_last_seen(
    tools: Tools, vault: Path, where
) -> None:
    before = tools.call("build_context", **where)
    vault.rename(vault.with_name("away"))
    after = tools.call("build_context", **where)
    assert "A quiet kestrel" in after.text
    assert after.data["results"] == before.data["results"]
    warning = "The folder of project vault is missing; its notes are as last seen."
    assert after.text == f"{before.text}\n\nWarning: {warning}"
